/* A step line by line: what training and serving share of it. */
#include "scalemodel/plan.h"

#include <string.h>

const char *sm_bound_name(sm_bound bound) {
    static const char *const names[] = {"compute", "memory", "network", "bubble", "latency"};
    return names[bound];
}

sm_bound sm_plan_op_bound(const sm_plan_op *op) {
    if (!(op->bytes > 0)) return SM_BOUND_LATENCY;
    return op->memory_s > op->time_s / 2 ? SM_BOUND_MEMORY : SM_BOUND_COMPUTE;
}

void sm_plan_axes_text(sm_axes axes, const sm_degrees *d, char *out, size_t size) {
    static const char *const names[SM_AXIS_COUNT] = {"data",   "fsdp",   "expert", "context",
                                                     "tensor", "tensor", "tensor"};
    size_t n = 0;
    out[0] = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (!(axes >> a & 1) || d->axis[a] <= 1 || strstr(out, names[a])) continue;
        int wrote = snprintf(out + n, size - n, "%s%s", n ? "," : "", names[a]);
        if (wrote < 0 || (size_t)wrote >= size - n) return;
        n += (size_t)wrote;
    }
}

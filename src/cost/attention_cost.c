/* What attention costs on one chip: fused kernels that keep the scores on the chip, and the older
 * separate kernels that write them to memory. */
#include "scalemodel/cost.h"
#include <math.h>

static double positive(double x) { return x > 0.0 ? x : 0.0; }

static double rate_time(double amount, double per_s) { return amount > 0.0 ? amount / per_s : 0.0; }

static double flops_of(const sm_attention_shape *s, bool backward) {
    double forward =
        2.0 * s->batch * s->heads * s->q_len * s->keys * (s->head_size + s->v_head_size);
    return backward ? 2.5 * forward : forward;
}

/* Queries in and values out in 16 bits or more; keys and values once. Backward touches each array
 * and its gradient. */
static double bytes_of(const sm_attention_shape *s, bool backward) {
    double element = fmax(2.0, sm_dtype_bytes(s->dtype));
    double q = s->batch * s->q_len * s->heads * (s->head_size + s->v_head_size) * element;
    double kv_size = s->head_size + (s->shared_kv ? 0.0 : s->v_head_size);
    double bytes = q + s->batch * s->kv_len * s->kv_heads * kv_size * s->kv_bytes;
    return backward ? 2.0 * bytes : bytes;
}

sm_op_cost sm_attention_cost(const sm_chip *chip, const sm_calibration *c,
                             const sm_attention_shape *shape, bool backward) {
    double peak = sm_chip_peak(chip, shape->dtype, NULL);
    sm_op_cost cost = {.tile_efficiency = 1.0};
    cost.math_s = positive(rate_time(flops_of(shape, backward), peak));
    cost.memory_s = positive(rate_time(bytes_of(shape, backward), chip->memory_bytes_per_s.value));
    double efficiency = backward ? c->attention_efficiency_backward : c->attention_efficiency;
    double busy = cost.math_s / efficiency, stream = cost.memory_s / c->memory_efficiency;
    cost.lower_s = fmax(cost.math_s, cost.memory_s);
    cost.expected_s = fmax(busy, stream) + c->launch_s;
    cost.upper_s = busy + stream + c->launch_s;
    return cost;
}

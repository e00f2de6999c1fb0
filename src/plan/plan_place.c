/* Where the axes of a plan sit on a system. */

#include "scalemodel/plan.h"

const char *sm_plan_refuse_dims(const sm_plan *plan, const sm_system *system, char *room,
                                size_t size) {
    int dims = system->torus_dims;
    for (int i = 0; i < plan->dims_named; i++) {
        if (plan->dims[i] < dims) continue;
        int used = snprintf(room, size, "dims names dimension %d, and %s has ", plan->dims[i],
                            system->text);
        if (used < 0 || (size_t)used >= size) return room;
        const char *const has[] = {"no torus: no dims order its levels", "dimension 0 alone",
                                   "dimensions 0 and 1", "dimensions 0, 1 and 2"};
        snprintf(room + used, size - (size_t)used, "%s", has[dims < 3 ? dims : 3]);
        return room;
    }
    return NULL;
}

bool sm_plan_place(const sm_plan *plan, const sm_degrees *degrees, const sm_system *system,
                   sm_placement *placement) {
    static const uint8_t axis_of[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_AXIS_DATA,     [SM_PLAN_FSDP] = SM_AXIS_FSDP,
        [SM_PLAN_TENSOR] = SM_AXIS_TENSOR, [SM_PLAN_CONTEXT] = SM_AXIS_CONTEXT,
        [SM_PLAN_EXPERT] = SM_AXIS_EXPERT, [SM_PLAN_PIPELINE] = SM_PLACED_PIPELINE};
    int sizes[SM_PLACED_AXES], order[SM_PLACED_AXES], dims[SM_MAX_LEVELS], filled = 0, n = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++) sizes[a] = (int)degrees->axis[a];
    sizes[SM_PLACED_PIPELINE] = plan->pipeline;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) { /* parts of the tensor degree stand together */
        order[n++] = axis_of[plan->order[i]];
        if (plan->order[i] != SM_PLAN_TENSOR) continue;
        order[n++] = SM_AXIS_TENSOR_Q;
        order[n++] = SM_AXIS_TENSOR_W;
    }
    for (int i = 0; i < 3; i++)
        if (plan->dims[i] < system->torus_dims) dims[filled++] = plan->dims[i];
    for (int l = filled; l < system->levels; l++) dims[l] = l;
    return sm_placement_fill(system, SM_PLACED_AXES, sizes, order, dims, placement);
}

double sm_ragged_part(const sm_system *system, double top_k, int in_order, const sm_group *g) {
    int groups = 1;
    bool scales_out = false;
    for (int i = 0; i < g->parts; i++) scales_out |= g->part[i].level > 0;
    for (int i = 0; i < g->parts; i++)
        if (system->torus_dims > 0 || !scales_out || g->part[i].level > 0)
            groups *= g->part[i].size;
    if (groups <= 1 || top_k <= 0) return 1;
    double reached = sm_ragged_fraction(groups, top_k) * groups;
    if (in_order >= groups) /* k of E/Z a group, from a multiple of k on */
        reached = 1 + (top_k - sm_common_factor((int)top_k, in_order / groups)) * groups / in_order;
    return reached < top_k ? reached / top_k : 1;
}

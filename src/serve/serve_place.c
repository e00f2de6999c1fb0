/* Where the axes of a plan sit on the system, and the curves of its collectives. */
#include <string.h>

#include "serve_space.h"

bool serve_place(const sm_serve *s, const sm_plan *plan, const degrees *d,
                 sm_placement *placement) {
    int sizes[PLACED_AXES], order[PLACED_AXES], dims[SM_MAX_LEVELS], n = 0, m = 0;
    static const uint8_t axis_of[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_AXIS_DATA,     [SM_PLAN_FSDP] = SM_AXIS_FSDP,
        [SM_PLAN_TENSOR] = SM_AXIS_TENSOR, [SM_PLAN_CONTEXT] = SM_AXIS_CONTEXT,
        [SM_PLAN_EXPERT] = SM_AXIS_EXPERT, [SM_PLAN_PIPELINE] = PIPE_AXIS};
    for (int a = 0; a < SM_AXIS_COUNT; a++) sizes[a] = (int)d->axis[a];
    sizes[PIPE_AXIS] = plan->pipeline;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        order[n++] = axis_of[plan->order[i]];
        if (plan->order[i] == SM_PLAN_TENSOR) order[n++] = SM_AXIS_TENSOR_Q;
    }
    for (int i = 0; i < 3; i++)
        if (plan->dims[i] < s->system.torus_dims) dims[m++] = plan->dims[i];
    for (int l = m; l < s->system.levels; l++) dims[l] = l;
    return sm_placement_fill(&s->system, PLACED_AXES, sizes, order, dims, placement);
}

static uint64_t mixed(uint64_t h, uint64_t word) {
    h = (h ^ word) * 1099511628211ull;
    return h ^ h >> 29;
}

static uint64_t group_key(sm_collective op, const sm_group *g, bool ragged) {
    uint64_t h = mixed(1469598103934665603ull, (uint64_t)op << 1 ^ (uint64_t)ragged);
    for (int i = 0; i < g->parts; i++)
        h = mixed(h, (uint64_t)g->part[i].level << 56 ^ (uint64_t)g->part[i].size << 28 ^
                         (uint64_t)g->part[i].stride);
    return h != 0 ? h : 1;
}

/* A token is sent once to each group of experts that hosts any of its k, and passed on inside: of k
 * copies, this part moves. A group is what sits below the outermost level that the collective
 * crosses (a node, as in DeepEP), or a chip. */
static double ragged_part(const sm_serve *s, const sm_group *g) {
    double groups = 1, k = s->largest_top_k;
    bool scales_out = false;
    for (int i = 0; i < g->parts; i++) scales_out |= g->part[i].level > 0;
    for (int i = 0; i < g->parts; i++)
        if (s->system.torus_dims > 0 || !scales_out || g->part[i].level > 0)
            groups *= g->part[i].size;
    if (groups <= 1 || k <= 0) return 1;
    double part = sm_ragged_fraction(groups, k) * groups / k;
    return part < 1 ? part : 1;
}

void curves_forget(sm_serve *s) {
    if (s->curves_used > 0) memset(s->curves, 0, CURVES * sizeof *s->curves);
    s->curves_used = 0;
}

/* The memo is emptied when it is three quarters full: what it returns never depends on its
 * history. */
const sm_curve *curve_of(sm_serve *s, const sm_placement *at, sm_collective op, sm_axes axes,
                         bool ragged) {
    sm_group g = sm_group_join(at, axes);
    if (g.size <= 1) return NULL;
    uint64_t key = group_key(op, &g, ragged);
    if (s->curves_used >= CURVES * 3 / 4) curves_forget(s);
    size_t i = key % CURVES;
    for (; s->curves[i].key; i = (i + 1) % CURVES)
        if (s->curves[i].key == key) return &s->curves[i].curve;
    s->curves[i].curve = sm_collective_curve(&s->system, op, &g, ragged ? ragged_part(s, &g) : 1);
    s->curves[i].key = key;
    s->curves_used++;
    return &s->curves[i].curve;
}

/* A lower bound of the time of a pipeline from sums alone. */
#include "schedule_order.h"

/* Fill: the forwards that lead to the stage's first op. Then all its work. Drain: the input
 * gradients from its first chunk to the start of the model; a schedule that splits the backward may
 * do the stage's own weight gradients meanwhile. Stages p-1-i and i of dualpipe are alike. */
static double line_bound_s(const sm_pipeline *p) {
    double fill_s = 0, drain_s = 0, bound_s = 0;
    bool split = sm_schedule_splits(p->schedule);
    bool mirrored = p->schedule == SM_SCHEDULE_DUALPIPE;
    for (int i = 0; i < (mirrored ? p->stages / 2 : p->stages); i++) {
        double late_s = split ? sm_stage_weight_s(p, i) : 0;
        double early_s = sm_stage_work_s(p, i) - late_s;
        bound_s = later(bound_s, fill_s + early_s + later(late_s, drain_s));
        fill_s += sm_op_forward_s(p, i);
        drain_s += sm_op_backward_input_s(p, i) + (split ? 0 : p->chunk[i].backward_weight);
    }
    return bound_s;
}

/* Where a V turns back to its stage, that stage waits for its second chunk as well: until all
 * chunks before that one have passed a forward it has nothing to do but its first chunk's forwards,
 * and after the last gradient of that one nothing but its first chunk's gradients. */
static double fold_bound_s(const sm_pipeline *p) {
    double fill_s = 0, drain_s = 0, far_fill_s = 0, far_drain_s = 0, bound_s = 0;
    const double m = p->microbatches;
    for (int c = 0; c < 2 * p->stages; c++) {
        far_fill_s += sm_op_forward_s(p, c);
        far_drain_s += sm_op_backward_input_s(p, c);
    }
    for (int i = 0, far = 2 * p->stages - 1; i < p->stages; i++, far--) {
        double f = sm_op_forward_s(p, i), b = sm_op_backward_input_s(p, i);
        double far_f = sm_op_forward_s(p, far), far_b = sm_op_backward_input_s(p, far);
        far_fill_s -= far_f;
        far_drain_s -= far_b;
        double late_s = later(sm_stage_weight_s(p, i), drain_s), far_s = m * (far_f + far_b);
        bound_s = later(bound_s, far_fill_s + far_s + later(far_drain_s, m * b + late_s));
        bound_s = later(bound_s, fill_s + m * f + far_s + far_drain_s);
        fill_s += f;
        drain_s += b;
    }
    return bound_s;
}

double sm_pipeline_bound(const sm_pipeline *p) {
    double bound_s = line_bound_s(p);
    return p->schedule == SM_SCHEDULE_ZB_V ? later(bound_s, fold_bound_s(p)) : bound_s;
}

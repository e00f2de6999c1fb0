/* A lower bound of the time of a pipeline from sums alone. */
#include "schedule_order.h"

static inline double later(double a, double b) { return a > b ? a : b; }

/* Fill: the forwards that lead to the stage's first op. Then all its work. Drain: the input
 * gradients from its first chunk to the start of the model; a schedule that splits the backward may
 * do the stage's own weight gradients meanwhile. Stages p-1-i and i of dualpipe are alike. */
double sm_pipeline_bound(const sm_pipeline *p) {
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

/* Closed forms of the time of a pipeline, and a bound from sums alone. */
#include "schedule_order.h"

static inline double later(double a, double b) { return a > b ? a : b; }

static double whole_backward_s(const sm_pipeline *p, int chunk) {
    return sm_op_backward_input_s(p, chunk) + p->chunk[chunk].backward_weight;
}

/* Identical jobs through a line of machines take the sum of the stages once, and the slowest of
 * them for each job more. All forwards pass, then all backwards; no stage ever starts its
 * backwards before the last stage has ended the forwards. */
double sm_gpipe_s(const sm_pipeline *p) {
    double sum_s = 0, forward_s = 0, backward_s = 0;
    for (int i = 0; i < p->stages; i++) {
        double f = sm_op_forward_s(p, i), b = whole_backward_s(p, i);
        sum_s += f + b;
        forward_s = later(forward_s, f);
        backward_s = later(backward_s, b);
    }
    return sum_s + (p->microbatches - 1) * (forward_s + backward_s);
}

sm_pipeline_time sm_pipeline_closed(const sm_pipeline *p, bool *exact) {
    *exact = p->schedule == SM_SCHEDULE_GPIPE;
    return sm_pipeline_timed(p, *exact ? sm_gpipe_s(p) : sm_pipeline_bound(p));
}

/* Fill: the forwards that lead to the stage's first op. Then all its work. Drain: the input
 * gradients from its first chunk to the start of the model; a
 * schedule that splits the backward may keep the stage's own weight gradients for afterwards. */
static double bound_at(double fill_s, double drain_s, double work_s, double late_s) {
    return fill_s + work_s - late_s + later(late_s, drain_s);
}

double sm_pipeline_bound(const sm_pipeline *p) {
    double fill_s = 0, drain_s = 0, bound_s = 0;
    bool split = sm_schedule_splits(p->schedule);
    bool mirrored = p->schedule == SM_SCHEDULE_DUALPIPE;
    for (int i = 0; i < (mirrored ? p->stages / 2 : p->stages); i++) {
        double work_s = sm_stage_work_s(p, i);
        double late_s = split ? sm_stage_weight_s(p, i) : 0;
        bound_s = later(bound_s, bound_at(fill_s, drain_s, work_s, late_s));
        fill_s += sm_op_forward_s(p, i);
        drain_s += sm_op_backward_input_s(p, i) + (split ? 0 : p->chunk[i].backward_weight);
    }
    return bound_s;
}

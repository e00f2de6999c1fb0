/* Quick simulation of ZB-V and DualPipe: the ops before and after the steady part run one by one,
 * as in a step of the fewest microbatches; between them the steady iterations, alike on all stages,
 * run as one loop over a few numbers per stage, and repeat in the end (schedule_period.h). */
#include "schedule_engine.h"
#include "schedule_period.h"

/* Durations of the ops of one iteration on a stage. Near is the lane whose forward comes first. */
typedef struct iteration_s {
    double near_forward, near_backward, near_weight, far_forward, far_backward, far_weight;
} iteration_s;

/* The state between two iterations: for each stage, the end of its last near forward and of its
 * last far backward, which a neighbour takes in the next iteration, and of its last op. All other
 * outputs are taken within the iteration. */
typedef struct steady {
    int p;
    double *near_s, *far_s, *idle_s; /* together in memory */
    double *past;                    /* room for an earlier state */
    iteration_s *duration;
    int *stop; /* of each stage: the ops of its order before the first iteration */
} steady;

typedef void iterate_fn(const steady *s);

/* Zb-v, iteration n of stage r: near forward 2p-r-1+n, near backward n, far forward p+n, far
 * backward p-r+n, each followed by its weight gradient. */
static void zb_v_iterate(const steady *s) {
    int last = s->p - 1;
    double near_backward_s = s->far_s[last], far_forward_s = 0; /* of the stage behind */
    for (int r = last; r >= 0; r--) {
        const iteration_s *d = &s->duration[r];
        double before_s = r > 0 ? s->near_s[r - 1] : 0, gradient_s = r > 0 ? s->far_s[r - 1] : 0;
        s->near_s[r] = later(s->idle_s[r], before_s) + d->near_forward;
        near_backward_s = later(s->near_s[r], near_backward_s) + d->near_backward;
        far_forward_s = later(near_backward_s + d->near_weight, far_forward_s) + d->far_forward;
        s->far_s[r] = later(far_forward_s, gradient_s) + d->far_backward;
        s->idle_s[r] = s->far_s[r] + d->far_weight;
    }
}

/* Dualpipe, iteration n of the stage of distance r from its end: near forward p-r-1+n, far backward
 * p/2-r-1+n, far forward p/2+n, near backward n. The first two need the last iteration alone. */
static void dualpipe_first_ops(const steady *s, int stage, int outer) {
    const iteration_s *d = &s->duration[stage];
    double before_s = outer >= 0 ? s->near_s[outer] : 0;
    double gradient_s = outer >= 0 ? s->far_s[outer] : 0;
    s->near_s[stage] = later(s->idle_s[stage], before_s) + d->near_forward;
    s->far_s[stage] = later(s->near_s[stage], gradient_s) + d->far_backward + d->far_weight;
}

/* The other two come from the next stage inwards, in the middle from the other half. */
static void dualpipe_last_ops(const steady *s, int stage, double *forward_s, double *backward_s) {
    const iteration_s *d = &s->duration[stage];
    *forward_s = later(s->far_s[stage], *forward_s) + d->far_forward;
    *backward_s = later(*forward_s, *backward_s) + d->near_backward + d->near_weight;
    s->idle_s[stage] = *backward_s;
}

static void dualpipe_iterate(const steady *s) {
    int end = s->p - 1, half = s->p / 2;
    for (int r = half - 1; r >= 0; r--) {
        dualpipe_first_ops(s, r, r - 1);
        dualpipe_first_ops(s, end - r, r > 0 ? end - r + 1 : -1);
    }
    double low_forward_s = s->near_s[half], low_backward_s = s->far_s[half];
    double high_forward_s = s->near_s[half - 1], high_backward_s = s->far_s[half - 1];
    for (int r = half - 1; r >= 0; r--) {
        dualpipe_last_ops(s, r, &low_forward_s, &low_backward_s);
        dualpipe_last_ops(s, end - r, &high_forward_s, &high_backward_s);
    }
}

/* --- Between the engine and the loop. */
static bool near_is_local_1(const sm_pipeline *p, int stage) {
    return p->schedule == SM_SCHEDULE_DUALPIPE && stage >= p->stages / 2;
}

static int ops_before_steady(const sm_pipeline *p, int stage) {
    int n = p->stages, rank = stage < n / 2 ? stage : n - 1 - stage;
    if (p->schedule == SM_SCHEDULE_ZB_V) return 5 * n - 3 * stage - 1;
    return 5 * (n / 2 - rank - 1) + 2 * (rank + 1);
}

static steady steady_of(const sm_engine *e, double *scratch) {
    steady s = {.p = e->p, .near_s = scratch, .past = scratch + 3 * e->p};
    s.far_s = scratch + e->p;
    s.idle_s = scratch + 2 * e->p;
    s.duration = (iteration_s *)(void *)(scratch + 6 * e->p);
    s.stop = (int *)(void *)(scratch + 12 * e->p);
    for (int i = 0; i < e->p; i++) {
        const sm_action *local = e->actions + 8 * i;
        const sm_action *near = local + 4 * near_is_local_1(e->pipeline, i);
        const sm_action *far = local + 4 * !near_is_local_1(e->pipeline, i);
        s.duration[i] = (iteration_s){
            near[SM_SLOT_FORWARD].duration_s,         near[SM_SLOT_BACKWARD_INPUT].duration_s,
            near[SM_SLOT_BACKWARD_WEIGHT].duration_s, far[SM_SLOT_FORWARD].duration_s,
            far[SM_SLOT_BACKWARD_INPUT].duration_s,   far[SM_SLOT_BACKWARD_WEIGHT].duration_s};
        s.stop[i] = ops_before_steady(e->pipeline, i);
    }
    return s;
}

/* The engine's last near forward and far backward of a stage; NULL where it has none. */
static double *last_end(const sm_engine *e, int stage, bool near, int row) {
    bool local_1 = near_is_local_1(e->pipeline, stage) == near;
    int at = sm_lane_of(e->pipeline, stage, local_1) * SM_ROWS + row, done = e->done[at];
    return done > 0 ? &e->end_s[(size_t)at * (size_t)e->m + (size_t)done - 1] : NULL;
}

/* Run so many iterations; the time of those skipped. */
static double run_steady(const steady *s, int iterations, iterate_fn *iterate) {
    sm_snapshot snapshot = {.state = s->past, .count = 3 * s->p, .age = -1};
    double skipped_s = 0;
    while (iterations > 0) {
        int length;
        double shift_s;
        int skip = sm_periods_to_skip(&snapshot, s->near_s, iterations, &length, &shift_s);
        if (skip > 0) {
            skipped_s += skip * shift_s;
            iterations -= skip * length;
        }
        if (iterations-- > 0) iterate(s);
    }
    return skipped_s;
}

double sm_two_lanes_s(const sm_pipeline *p, void *scratch) {
    bool v_shape = p->schedule == SM_SCHEDULE_ZB_V;
    int fewest = v_shape ? 2 * p->stages - 1 : 2 * p->stages - 2;
    int iterations = (p->microbatches - fewest) / (v_shape ? 1 : 2);
    int microbatches = iterations > 0 ? fewest : p->microbatches;
    double *room = (double *)scratch + 13 * p->stages, skipped_s = 0;
    sm_engine e = sm_engine_start(p, microbatches, room, NULL);
    if (iterations > 0) {
        steady s = steady_of(&e, scratch);
        sm_engine_run(&e, s.stop);
        for (int i = 0; i < e.p; i++) {
            const double *near = last_end(&e, i, true, SM_ROW_FORWARD);
            const double *far = last_end(&e, i, false, SM_ROW_BACKWARD);
            s.near_s[i] = near ? *near : 0;
            s.far_s[i] = far ? *far : 0;
            s.idle_s[i] = e.idle_s[i];
        }
        skipped_s = run_steady(&s, iterations, v_shape ? zb_v_iterate : dualpipe_iterate);
        /* The engine goes on with the microbatches it knows, as late as the steady part has left
         * off. */
        for (int i = 0; i < e.p; i++) {
            double *near = last_end(&e, i, true, SM_ROW_FORWARD);
            double *far = last_end(&e, i, false, SM_ROW_BACKWARD);
            if (near) *near = s.near_s[i];
            if (far) *far = s.far_s[i];
            e.idle_s[i] = s.idle_s[i];
        }
    }
    return sm_engine_finish(&e) + skipped_s;
}

/* Exact simulation of a pipeline schedule, op by op. */
#include "schedule_engine.h"

/* The sum over a stage's chunks, as often as microbatches pass them; dualpipe sends half of the
 * microbatches through chunk i of stage i, half through its chunk p-1-i. */
typedef double op_duration_fn(const sm_pipeline *p, int chunk);

static double stage_sum_s(const sm_pipeline *p, int stage, op_duration_fn *duration_s) {
    int n = p->stages;
    double sum_s = 0;
    if (p->schedule == SM_SCHEDULE_DUALPIPE) {
        int each = p->microbatches / 2;
        return each * (duration_s(p, stage) + duration_s(p, n - 1 - stage));
    }
    if (p->schedule == SM_SCHEDULE_ZB_V)
        return p->microbatches * (duration_s(p, stage) + duration_s(p, 2 * n - 1 - stage));
    for (int c = stage; c < n * p->chunks_per_stage; c += n) sum_s += duration_s(p, c);
    return p->microbatches * sum_s;
}

static double weight_s(const sm_pipeline *p, int chunk) { return p->chunk[chunk].backward_weight; }

static double all_ops_s(const sm_pipeline *p, int chunk) {
    return sm_op_forward_s(p, chunk) + sm_op_backward_input_s(p, chunk) + weight_s(p, chunk);
}

double sm_stage_weight_s(const sm_pipeline *p, int stage) {
    return stage_sum_s(p, stage, weight_s);
}

double sm_stage_work_s(const sm_pipeline *p, int stage) { return stage_sum_s(p, stage, all_ops_s); }

sm_pipeline_time sm_pipeline_timed(const sm_pipeline *p, double total_s) {
    sm_pipeline_time time = {.total_s = total_s, .busiest_s = -1};
    for (int i = 0; i < p->stages; i++) {
        double stage_s = sm_stage_work_s(p, i);
        if (stage_s > time.busiest_s) {
            time.busiest_s = stage_s;
            time.busiest_stage = i;
        }
    }
    return time;
}

/* Identical jobs through a line of machines take the sum of the stages once, and the slowest of
 * them for each job more. All forwards pass, then all backwards; no stage ever starts its
 * backwards before the last stage has ended the forwards. */
static double gpipe_s(const sm_pipeline *p) {
    double sum_s = 0, forward_s = 0, backward_s = 0;
    for (int i = 0; i < p->stages; i++) {
        double f = sm_op_forward_s(p, i);
        double b = sm_op_backward_input_s(p, i) + p->chunk[i].backward_weight;
        sum_s += f + b;
        forward_s = later(forward_s, f);
        backward_s = later(backward_s, b);
    }
    return sum_s + (p->microbatches - 1) * (forward_s + backward_s);
}

/* Where ops fold the engine runs those before and after the steady part alone. */
size_t sm_pipeline_scratch(const sm_pipeline *p, bool slots) {
    bool folds = p->schedule == SM_SCHEDULE_ZB_V || p->schedule == SM_SCHEDULE_DUALPIPE;
    if (slots) return sm_engine_bytes(p, p->microbatches);
    if (!folds) return SM_WAVE_DOUBLES(p->stages, p->chunks_per_stage) * sizeof(double);
    return sm_engine_bytes(p, smaller(p->microbatches, 2 * p->stages)) + SM_STEADY_BYTES(p->stages);
}

/* Dualpipe splits p/2 + (p/2 - 1 - r) backwards on the stages of distance r from their end. */
size_t sm_pipeline_slots(const sm_pipeline *p) {
    size_t stages = (size_t)p->stages, half = stages / 2;
    size_t passes = (size_t)p->chunks_per_stage * (size_t)p->microbatches;
    if (p->schedule == SM_SCHEDULE_DUALPIPE)
        return 2 * stages * (size_t)p->microbatches + 2 * (half * half + half * (half - 1) / 2);
    return (sm_schedule_splits(p->schedule) ? 3 : 2) * stages * passes;
}

double sm_pipeline_simulated_s(const sm_pipeline *p, void *scratch) {
    if (p->stages == 1) return sm_stage_work_s(p, 0); /* waits for no other */
    switch (p->schedule) {
    case SM_SCHEDULE_GPIPE: return gpipe_s(p);
    case SM_SCHEDULE_1F1B:
    case SM_SCHEDULE_ZB_H1: return sm_wave_1f1b(p, scratch);
    case SM_SCHEDULE_INTERLEAVED: return sm_wave_interleaved(p, scratch);
    case SM_SCHEDULE_ZB_V:
    case SM_SCHEDULE_DUALPIPE: return sm_two_lanes_s(p, scratch);
    case SM_SCHEDULE_COUNT:
    default: return 0;
    }
}

sm_pipeline_time sm_pipeline_simulate(const sm_pipeline *p, void *scratch, sm_slot *slots) {
    sm_engine e;
    if (slots) e = sm_engine_start(p, p->microbatches, scratch, slots);
    return sm_pipeline_timed(p, slots ? sm_engine_finish(&e) : sm_pipeline_simulated_s(p, scratch));
}

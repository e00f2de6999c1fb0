/* Exact simulation of a pipeline schedule, op by op. */
#include "schedule_order.h"

/* What is known while ops run: how many of each kind a lane has done, and when they ended. */
typedef struct engine {
    const sm_pipeline *pipeline;
    int p, local_lanes, m;  /* stages, lanes of a stage, microbatches of a lane */
    int chunks, lanes;      /* of the model; dualpipe feeds each chunk by two lanes */
    double *forward_end, *backward_end;     /* [lane * m + microbatch] */
    double *forward_s, *input_s, *weight_s; /* durations, of each lane */
    double *idle_s;                         /* of each stage: the end of its last op */
    sm_op_list *orders;                     /* of each stage; count: the ops still to come */
    sm_op_code *code;                       /* room for the orders */
    int *forwards, *backwards, *weights;    /* of each lane: ops done */
    int *next;                              /* of each stage: its next op */
    sm_slot *slot;                          /* NULL when none are wanted */
    int *slot_base;                         /* of each stage: its first slot */
} engine;

static inline double later(double a, double b) { return a > b ? a : b; }

static bool crosses(const sm_pipeline *p, int from, int to) {
    return sm_schedule_stage(p->schedule, p->stages, p->chunks_per_stage, from) !=
           sm_schedule_stage(p->schedule, p->stages, p->chunks_per_stage, to);
}

double sm_op_forward_s(const sm_pipeline *p, int chunk) {
    bool received = chunk > 0 && crosses(p, chunk - 1, chunk);
    return p->chunk[chunk].forward + (received ? p->send_s : 0);
}

double sm_op_backward_input_s(const sm_pipeline *p, int chunk) {
    int last = sm_schedule_chunks(p->schedule, p->stages, p->chunks_per_stage) - 1;
    bool received = chunk < last && crosses(p, chunk, chunk + 1);
    return p->chunk[chunk].backward_input + (received ? p->send_s : 0);
}

/* Lanes are numbered by chunk; the second direction of dualpipe follows behind the first. */
static inline int lane_of(const engine *e, int stage, int local) {
    bool folds = e->pipeline->schedule != SM_SCHEDULE_INTERLEAVED;
    return folds && local == 1 ? 2 * e->p - 1 - stage : local * e->p + stage;
}

/* --- The engine's memory, cut from the caller's scratch. */
static size_t order_room(const engine *e) {
    return 3 * (size_t)e->local_lanes * (size_t)e->m;
}

static engine engine_of(const sm_pipeline *p, int microbatches) {
    engine e = {.pipeline = p, .p = p->stages};
    e.m = sm_schedule_lane_microbatches(p->schedule, microbatches);
    e.local_lanes = sm_schedule_lanes(p->schedule, p->chunks_per_stage);
    e.lanes = e.local_lanes * e.p;
    e.chunks = sm_schedule_chunks(p->schedule, p->stages, p->chunks_per_stage);
    return e;
}

static size_t engine_bytes(const engine *e) {
    size_t lanes = (size_t)e->lanes, stages = (size_t)e->p;
    size_t doubles = 2 * lanes * (size_t)e->m + 3 * lanes + stages;
    return doubles * sizeof(double) + stages * sizeof(sm_op_list) +
           (3 * lanes + 2 * stages) * sizeof(int) + stages * order_room(e) * sizeof(sm_op_code);
}

static void engine_place(engine *e, void *scratch) {
    size_t lanes = (size_t)e->lanes, stages = (size_t)e->p;
    e->forward_end = scratch;
    e->backward_end = e->forward_end + lanes * (size_t)e->m;
    e->forward_s = e->backward_end + lanes * (size_t)e->m;
    e->input_s = e->forward_s + lanes;
    e->weight_s = e->input_s + lanes;
    e->idle_s = e->weight_s + lanes;
    e->orders = (sm_op_list *)(void *)(e->idle_s + stages);
    e->forwards = (int *)(void *)(e->orders + stages);
    e->backwards = e->forwards + lanes;
    e->weights = e->backwards + lanes;
    e->next = e->weights + lanes;
    e->slot_base = e->next + stages;
    e->code = (sm_op_code *)(void *)(e->slot_base + stages);
}

static void engine_start(engine *e, int microbatches) {
    const sm_pipeline *p = e->pipeline;
    int slots = 0;
    for (int g = 0; g < e->lanes; g++) {
        int chunk = g % e->chunks;
        e->forward_s[g] = sm_op_forward_s(p, chunk);
        e->input_s[g] = sm_op_backward_input_s(p, chunk);
        e->weight_s[g] = p->chunk[chunk].backward_weight;
        e->forwards[g] = e->backwards[g] = e->weights[g] = 0;
    }
    for (int i = 0; i < e->p; i++) {
        e->orders[i] = (sm_op_list){.code = e->code + (size_t)i * order_room(e)};
        sm_schedule_order(p->schedule, e->p, p->chunks_per_stage, microbatches, i, &e->orders[i]);
        e->slot_base[i] = slots;
        slots += e->orders[i].count;
        e->idle_s[i] = 0;
        e->next[i] = 0;
    }
}

/* --- Running. When is the input of an op there? A negative number: not yet. */
static inline double forward_ready_s(const engine *e, int lane, int j) {
    if (lane % e->chunks == 0)
        return 0;
    size_t fed = (size_t)(lane - 1) * (size_t)e->m + (size_t)j;
    return e->forwards[lane - 1] > j ? e->forward_end[fed] : -1;
}

static inline double backward_ready_s(const engine *e, int lane, int j) {
    if ((lane + 1) % e->chunks == 0)
        return e->forwards[lane] > j ? 0 : -1; /* its own forward: this stage has done it */
    size_t fed = (size_t)(lane + 1) * (size_t)e->m + (size_t)j;
    return e->backwards[lane + 1] > j ? e->backward_end[fed] : -1;
}

static inline double op_duration_s(const engine *e, sm_slot_kind kind, int lane) {
    switch (kind) {
    case SM_SLOT_FORWARD:
        return e->forward_s[lane];
    case SM_SLOT_BACKWARD:
        return e->input_s[lane] + e->weight_s[lane];
    case SM_SLOT_BACKWARD_INPUT:
        return e->input_s[lane];
    case SM_SLOT_BACKWARD_WEIGHT:
    default:
        return e->weight_s[lane];
    }
}

static void record(const engine *e, int stage, int lane, int j, sm_slot_kind kind, double start_s,
                   double end_s) {
    bool second = lane >= e->chunks;
    e->slot[e->slot_base[stage] + e->next[stage]] =
        (sm_slot){.stage = stage, .chunk = lane % e->chunks,
                  .microbatch = second ? e->m + j : j, .kind = kind,
                  .start_s = start_s, .end_s = end_s};
}

/* Run the next op of a stage if its input is there. */
static inline bool run_op(engine *e, int stage) {
    sm_op_code code = e->orders[stage].code[e->next[stage]];
    sm_slot_kind kind = SM_OP_KIND(code);
    int lane = lane_of(e, stage, SM_OP_LOCAL(code));
    int *done = kind == SM_SLOT_FORWARD           ? e->forwards
                : kind == SM_SLOT_BACKWARD_WEIGHT ? e->weights
                                                  : e->backwards;
    int j = done[lane];
    double ready_s = kind == SM_SLOT_FORWARD           ? forward_ready_s(e, lane, j)
                     : kind == SM_SLOT_BACKWARD_WEIGHT ? 0
                                                       : backward_ready_s(e, lane, j);
    if (ready_s < 0)
        return false;
    double start_s = later(ready_s, e->idle_s[stage]);
    double end_s = start_s + op_duration_s(e, kind, lane);
    size_t place = (size_t)lane * (size_t)e->m + (size_t)j;
    if (kind == SM_SLOT_FORWARD)
        e->forward_end[place] = end_s;
    else if (kind != SM_SLOT_BACKWARD_WEIGHT)
        e->backward_end[place] = end_s;
    if (e->slot)
        record(e, stage, lane, j, kind, start_s, end_s);
    if (kind == SM_SLOT_BACKWARD)
        e->weights[lane]++;
    done[lane]++;
    e->idle_s[stage] = end_s;
    return true;
}

static bool run_stage(engine *e, int stage) {
    int start = e->next[stage], count = e->orders[stage].count;
    while (e->next[stage] < count && run_op(e, stage))
        e->next[stage]++;
    return e->next[stage] > start;
}

/* Sweeps down the stages favour forwards, sweeps up backwards. */
static double engine_run(engine *e) {
    double total_s = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < e->p; i++)
            moved |= run_stage(e, i);
        for (int i = e->p - 1; i >= 0; i--)
            moved |= run_stage(e, i);
    }
    for (int i = 0; i < e->p; i++)
        total_s = later(total_s, e->idle_s[i]);
    return total_s;
}

static double run_all(const sm_pipeline *p, int microbatches, void *scratch, sm_slot *slots,
                      engine *e) {
    *e = engine_of(p, microbatches);
    engine_place(e, scratch);
    e->slot = slots;
    engine_start(e, microbatches);
    return engine_run(e);
}

/* --- What callers see. */
/* The sum over a stage's chunks, as often as microbatches pass them; dualpipe sends half of the
 * microbatches through chunk i of stage i, half through its chunk p-1-i. */
typedef double op_duration(const sm_pipeline *p, int chunk);

static double stage_sum_s(const sm_pipeline *p, int stage, op_duration *duration_s) {
    int n = p->stages;
    double sum_s = 0;
    if (p->schedule == SM_SCHEDULE_DUALPIPE)
        return p->microbatches / 2 * (duration_s(p, stage) + duration_s(p, n - 1 - stage));
    if (p->schedule == SM_SCHEDULE_ZB_V)
        return p->microbatches * (duration_s(p, stage) + duration_s(p, 2 * n - 1 - stage));
    for (int c = stage; c < n * p->chunks_per_stage; c += n)
        sum_s += duration_s(p, c);
    return p->microbatches * sum_s;
}

static double weight_s(const sm_pipeline *p, int chunk) { return p->chunk[chunk].backward_weight; }

static double all_ops_s(const sm_pipeline *p, int chunk) {
    return sm_op_forward_s(p, chunk) + sm_op_backward_input_s(p, chunk) + weight_s(p, chunk);
}

double sm_stage_weight_s(const sm_pipeline *p, int stage) {
    return stage_sum_s(p, stage, weight_s);
}

double sm_stage_work_s(const sm_pipeline *p, int stage) {
    return stage_sum_s(p, stage, all_ops_s);
}

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

size_t sm_pipeline_scratch(const sm_pipeline *p) {
    engine e = engine_of(p, p->microbatches);
    size_t wave = SM_WAVE_DOUBLES(p->stages, p->chunks_per_stage) * sizeof(double);
    size_t general = engine_bytes(&e);
    return wave > general ? wave : general;
}

/* Dualpipe splits p/2 + (p/2 - 1 - r) backwards on the stages of distance r from their end. */
size_t sm_pipeline_slots(const sm_pipeline *p) {
    size_t stages = (size_t)p->stages, half = stages / 2;
    size_t passes = (size_t)p->chunks_per_stage * (size_t)p->microbatches;
    if (p->schedule == SM_SCHEDULE_DUALPIPE)
        return 2 * stages * (size_t)p->microbatches + 2 * (half * half + half * (half - 1) / 2);
    return (sm_schedule_splits(p->schedule) ? 3 : 2) * stages * passes;
}

sm_pipeline_time sm_pipeline_simulate(const sm_pipeline *p, void *scratch, sm_slot *slots) {
    engine e;
    double total_s;
    if (!slots && (p->schedule == SM_SCHEDULE_1F1B || p->schedule == SM_SCHEDULE_ZB_H1))
        total_s = sm_wave_1f1b(p, scratch);
    else if (!slots && p->schedule == SM_SCHEDULE_INTERLEAVED)
        total_s = sm_wave_interleaved(p, scratch);
    else
        total_s = run_all(p, p->microbatches, scratch, slots, &e);
    return sm_pipeline_timed(p, total_s);
}

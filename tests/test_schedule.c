/* Pipeline schedules against a naive run of explicit op lists, bounds, published facts. */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "scalemodel/schedule.h"

#define EXACT 1e-12
enum { CHUNKS_MAX = 64 };

/* --- Cases: a pipeline with its chunk times and memory. */
typedef struct example {
    sm_pipeline pipeline;
    sm_chunk_time chunk[CHUNKS_MAX];
    void *scratch, *engine; /* without slots, with them */
    sm_slot *slot;
    size_t slots;
} example;

static int chunk_count(const sm_pipeline *p) {
    return p->schedule == SM_SCHEDULE_DUALPIPE ? p->stages : p->stages * p->chunks_per_stage;
}

static void set_up(example *e, sm_schedule schedule, int p, int v, int m, double send_s) {
    e->pipeline = (sm_pipeline){schedule, p, v, m, e->chunk, send_s};
    e->slots = sm_pipeline_slots(&e->pipeline);
    e->scratch = malloc(sm_pipeline_scratch(&e->pipeline, false));
    e->engine = malloc(sm_pipeline_scratch(&e->pipeline, true));
    e->slot = calloc(e->slots, sizeof *e->slot);
    assert_true(e->scratch && e->engine);
    assert_non_null(e->slot);
}

static void tear_down(example *e) {
    free(e->scratch);
    free(e->engine);
    free(e->slot);
}

static void set_times(example *e, double forward, double input, double weight) {
    for (int c = 0; c < CHUNKS_MAX; c++) e->chunk[c] = (sm_chunk_time){forward, input, weight};
}

static void scale_chunk(example *e, int c, double by) {
    e->chunk[c].forward *= by;
    e->chunk[c].backward_input *= by;
    e->chunk[c].backward_weight *= by;
}

static double simulated(example *e) {
    return sm_pipeline_simulate(&e->pipeline, e->scratch, NULL).total_s;
}

static double simulated_slots(example *e) {
    return sm_pipeline_simulate(&e->pipeline, e->engine, e->slot).total_s;
}

static bool close_to(double a, double b) { return fabs(a - b) <= EXACT * fabs(b); }

/* How the chunks differ. */
typedef enum shape { RANDOM, UNEVEN, EQUAL, HEAVY_LAST, LIGHT_FIRST, WILD_ENDS, SHAPES } shape;

static double between(sm_rng *rng, double low, double high) {
    return low + (high - low) * sm_rng_unit(rng);
}

/* Anything from a hundredth to a hundred. */
static double wild(sm_rng *rng) { return pow(10, between(rng, -2, 2)); }

static void shape_times(example *e, sm_rng *rng, shape s) {
    int last = chunk_count(&e->pipeline) - 1;
    double f = between(rng, 0.5, 1.5);
    set_times(e, f, f * between(rng, 0.8, 1.6), f * between(rng, 0.5, 1.1));
    for (int c = 0; c <= last && (s == RANDOM || s == UNEVEN); c++) {
        double spread = s == RANDOM ? 1 : 0.3;
        e->chunk[c].forward = f * between(rng, 1 - spread, 1 + spread);
        e->chunk[c].backward_input = f * between(rng, 1 - spread, 1 + spread);
        e->chunk[c].backward_weight = f * between(rng, 1 - spread, 1 + spread);
    }
    if (s == LIGHT_FIRST) scale_chunk(e, 0, between(rng, 0.8, 1.03));
    if (s == LIGHT_FIRST || s == HEAVY_LAST) scale_chunk(e, last, between(rng, 1.04, 1.5));
    if (s == WILD_ENDS) {
        set_times(e, wild(rng), wild(rng), wild(rng));
        e->chunk[0] = (sm_chunk_time){wild(rng), wild(rng), wild(rng)};
        e->chunk[last] = (sm_chunk_time){wild(rng), wild(rng), wild(rng)};
    }
}

/* A random possible case of the schedule. */
static void draw(example *e, sm_rng *rng, sm_schedule schedule, shape s, int most) {
    for (;;) {
        int p = 1 + (int)sm_rng_below(rng, 12), v = 1 + (int)sm_rng_below(rng, 4);
        int m = 1 + (int)sm_rng_below(rng, (uint64_t)most);
        if (schedule == SM_SCHEDULE_INTERLEAVED) m = p * (1 + m / p);
        if (!sm_schedule_possible(schedule, p, v, m, NULL)) continue;
        set_up(e, schedule, p, v, m, sm_rng_below(rng, 2) ? between(rng, 0, 0.1) : 0);
        shape_times(e, rng, s);
        return;
    }
}

/* --- The oracle. It takes from the slots nothing but the order of each stage's ops, runs them by
 * looking for any stage whose next op has its inputs, and so checks order, times and completeness.
 * An op is (stage, kind, chunk, microbatch); its end is NAN while it has not run. */
typedef struct oracle {
    const sm_pipeline *p;
    int chunks;
    double *forward, *input, *weight; /* ends, [chunk * m + microbatch] */
    bool blocks;                      /* run dualpipe's overlapped pairs as one block */
} oracle;

static size_t place(const oracle *o, int chunk, int microbatch) {
    return (size_t)chunk * (size_t)o->p->microbatches + (size_t)microbatch;
}

/* The stage on which a microbatch meets a chunk. */
static int home(const sm_pipeline *p, int chunk, int microbatch) {
    if (p->schedule == SM_SCHEDULE_DUALPIPE && microbatch >= p->microbatches / 2)
        return p->stages - 1 - chunk;
    if (p->schedule == SM_SCHEDULE_ZB_V && chunk >= p->stages) return 2 * p->stages - 1 - chunk;
    return chunk % p->stages;
}

/* The op whose output this op takes: its end (NAN: not yet), and whether it crosses stages. */
static double input_end(const oracle *o, const sm_slot *op, bool *crosses) {
    int from = op->chunk + (op->kind == SM_SLOT_FORWARD ? -1 : 1);
    *crosses = false;
    if (op->kind == SM_SLOT_BACKWARD_WEIGHT) return o->input[place(o, op->chunk, op->microbatch)];
    if (from < 0) return 0;
    if (from == o->chunks) return o->forward[place(o, op->chunk, op->microbatch)];
    *crosses = home(o->p, from, op->microbatch) != op->stage;
    const double *ends = op->kind == SM_SLOT_FORWARD ? o->forward : o->input;
    return ends[place(o, from, op->microbatch)];
}

static double own_time(const oracle *o, const sm_slot *op) {
    const sm_chunk_time *t = &o->p->chunk[op->chunk];
    switch (op->kind) {
    case SM_SLOT_FORWARD: return t->forward;
    case SM_SLOT_BACKWARD: return t->backward_input + t->backward_weight;
    case SM_SLOT_BACKWARD_INPUT: return t->backward_input;
    case SM_SLOT_BACKWARD_WEIGHT:
    default: return t->backward_weight;
    }
}

static void finish(oracle *o, const sm_slot *op, double end_s) {
    size_t at = place(o, op->chunk, op->microbatch);
    double *first = op->kind == SM_SLOT_FORWARD           ? o->forward
                    : op->kind == SM_SLOT_BACKWARD_WEIGHT ? o->weight
                                                          : o->input;
    assert_int_equal(op->stage, home(o->p, op->chunk, op->microbatch));
    assert_true(isnan(first[at]) != 0); /* once */
    first[at] = end_s;
    if (op->kind == SM_SLOT_BACKWARD) {
        assert_true(isnan(o->weight[at]) != 0);
        o->weight[at] = end_s;
    }
}

/* Does this op and the next make one of dualpipe's overlapped pairs? Not the first whole backward
 * of the two middle stages. */
static bool is_block(const oracle *o, const sm_slot *op, bool last, bool any_whole) {
    int i = op->stage, half = o->p->stages / 2;
    if (!o->blocks || last || op[0].kind != SM_SLOT_FORWARD || op[1].kind != SM_SLOT_BACKWARD)
        return false;
    return any_whole || (i != half - 1 && i != half);
}

/* Run the op (or the block it starts) of a stage free at free_s; the end, or NAN to wait. */
static double step(oracle *o, const sm_slot *op, int count, double free_s) {
    double start_s = free_s, time_s = 0;
    for (int k = 0; k < count; k++) {
        bool crosses;
        double ready_s = input_end(o, op + k, &crosses);
        if (isnan(ready_s)) return NAN;
        start_s = fmax(start_s, ready_s);
        time_s += own_time(o, op + k) + (crosses ? o->p->send_s : 0);
    }
    for (int k = 0; k < count; k++) finish(o, op + k, start_s + time_s);
    return start_s + time_s;
}

static void oracle_open(oracle *o, const sm_pipeline *p, bool blocks) {
    *o = (oracle){.p = p, .chunks = chunk_count(p), .blocks = blocks};
    size_t cells = (size_t)o->chunks * (size_t)p->microbatches;
    o->forward = malloc(3 * cells * sizeof(double));
    assert_non_null(o->forward);
    o->input = o->forward + cells;
    o->weight = o->input + cells;
    for (size_t k = 0; k < 3 * cells; k++) o->forward[k] = NAN;
}

/* All ops must have run, and the last of them ends the step. */
static double oracle_close(oracle *o) {
    size_t cells = 3 * (size_t)o->chunks * (size_t)o->p->microbatches;
    double total_s = 0;
    for (size_t k = 0; k < cells; k++) {
        assert_true(o->forward[k] >= 0); /* not NAN */
        total_s = fmax(total_s, o->forward[k]);
    }
    free(o->forward);
    return total_s;
}

/* The slots hold the stages one after the other. */
static size_t stage_end(const example *e, size_t from, int stage) {
    while (from < e->slots && e->slot[from].stage == stage) from++;
    return from;
}

static double oracle_run(const example *e, bool blocks) {
    oracle o;
    int p = e->pipeline.stages;
    size_t *next = calloc((size_t)p + 1, sizeof *next), *stop = calloc((size_t)p, sizeof *stop);
    double *free_s = calloc((size_t)p, sizeof *free_s);
    bool *whole = calloc((size_t)p, sizeof *whole);
    assert_true(next && stop && free_s && whole);
    for (int i = 0; i < p; i++) next[i + 1] = stop[i] = stage_end(e, next[i], i);
    assert_int_equal(stop[p - 1], e->slots);
    oracle_open(&o, &e->pipeline, blocks);
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < p; i++) {
            if (next[i] == stop[i]) continue;
            const sm_slot *op = &e->slot[next[i]];
            int count = is_block(&o, op, next[i] + 1 == stop[i], whole[i]) ? 2 : 1;
            double end_s = step(&o, op, count, free_s[i]);
            if (isnan(end_s)) continue;
            if (!blocks) assert_true(close_to(op->end_s, end_s) || end_s == 0);
            whole[i] |= op->kind == SM_SLOT_BACKWARD;
            next[i] += (size_t)count;
            free_s[i] = end_s;
            moved = true;
        }
    }
    for (int i = 0; i < p; i++) assert_int_equal(next[i], stop[i]);
    free(next);
    free(stop);
    free(free_s);
    free(whole);
    return oracle_close(&o);
}

/* Slots of a stage follow each other in time and do not overlap. */
static void check_slot_times(const example *e) {
    for (size_t k = 0; k < e->slots; k++) {
        const sm_slot *s = &e->slot[k];
        assert_true(s->end_s >= s->start_s && s->start_s >= 0);
        if (k > 0 && s[-1].stage == s->stage) assert_true(s->start_s >= s[-1].end_s);
        else assert_true(k == 0 || s->stage == s[-1].stage + 1);
    }
}

static void simulation_equals_the_naive_run(void **state) {
    sm_rng rng = {1};
    for (int k = 0; k < 1200; k++) {
        example e;
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), (shape)(k / 6 % SHAPES), 40);
        double total_s = simulated_slots(&e);
        check_slot_times(&e);
        assert_true(close_to(oracle_run(&e, false), total_s));
        assert_true(close_to(simulated(&e), total_s));
        tear_down(&e);
    }
}

static void long_runs_equal_the_full_simulation(void **state) {
    sm_rng rng = {2};
    for (int k = 0; k < 400; k++) {
        example e;
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), (shape)(k / 6 % SHAPES), 500);
        assert_true(close_to(simulated(&e), simulated_slots(&e)));
        tear_down(&e);
    }
}

/* Two stages alternate as bottleneck by a hair: the step settles late or never. */
static void slow_settling_is_not_skipped(void **state) {
    for (int s = 0; s < SM_SCHEDULE_COUNT; s++) {
        example e;
        int v = s == SM_SCHEDULE_GPIPE || s == SM_SCHEDULE_1F1B || s == SM_SCHEDULE_ZB_H1 ? 1 : 2;
        set_up(&e, (sm_schedule)s, 4, v, 400, 0);
        for (int hair = 0; hair < 14; hair++) {
            set_times(&e, 1, 1, 1);
            e.chunk[0].forward += pow(10, -hair);
            e.chunk[2].backward_input += 1.01 * pow(10, -hair);
            assert_true(close_to(simulated(&e), simulated_slots(&e)));
        }
        tear_down(&e);
    }
}

/* --- Bounds. */
static void no_bound_exceeds_the_simulation(void **state) {
    for (int schedule = 0; schedule < SM_SCHEDULE_COUNT; schedule++)
        for (int s = 0; s < SHAPES; s++) {
            sm_rng rng = {100 + (uint64_t)schedule * SHAPES + (uint64_t)s};
            for (int k = 0; k < (s == WILD_ENDS ? 4000 : 600); k++) {
                example e;
                draw(&e, &rng, (sm_schedule)schedule, (shape)s, 40);
                assert_true(sm_pipeline_bound(&e.pipeline) <= simulated(&e) * (1 + EXACT));
                tear_down(&e);
            }
        }
}

/* A microbatch goes down all chunks of a V and back up, whatever few there are of them: the bound
 * of a step has all of it, and of equal chunks never less than three quarters of the time. */
static void few_microbatches_of_a_fold_are_bound_by_their_way(void **state) {
    sm_rng rng = {211};
    for (int k = 0; k < 400; k++) {
        example e;
        draw(&e, &rng, SM_SCHEDULE_ZB_V, k % 2 ? EQUAL : RANDOM, 4);
        double way_s = 0, bound_s = sm_pipeline_bound(&e.pipeline);
        for (int c = 0; c < chunk_count(&e.pipeline); c++) {
            bool sends = c > 0 && c != e.pipeline.stages && e.pipeline.stages > 1;
            way_s += e.chunk[c].forward + e.chunk[c].backward_input;
            way_s += sends ? 2 * e.pipeline.send_s : 0;
        }
        assert_true(bound_s >= way_s * (1 - EXACT));
        if (k % 2) assert_true(bound_s >= 0.75 * simulated(&e));
        tear_down(&e);
    }
}

/* A search has room for steps of any length: the total alone needs none for the part that repeats.
 */
static void room_does_not_grow_with_the_step(void **state) {
    for (int schedule = 0; schedule < SM_SCHEDULE_COUNT; schedule++) {
        int v = schedule < SM_SCHEDULE_INTERLEAVED || schedule == SM_SCHEDULE_ZB_H1 ? 1 : 2;
        sm_chunk_time chunk[CHUNKS_MAX];
        for (int c = 0; c < CHUNKS_MAX; c++) chunk[c] = (sm_chunk_time){1, 1, 1};
        sm_pipeline p = {(sm_schedule)schedule, 16, v, 64, chunk, 0.25};
        size_t room = sm_pipeline_scratch(&p, false);
        void *scratch = malloc(room);
        assert_non_null(scratch);
        sm_pipeline_time few = sm_pipeline_simulate(&p, scratch, NULL);
        p.microbatches = 1 << 16;
        assert_int_equal(sm_pipeline_scratch(&p, false), room);
        sm_pipeline_time many = sm_pipeline_simulate(&p, scratch, NULL);
        double more_s = many.total_s - few.total_s, work_s = many.busiest_s - few.busiest_s;
        assert_true(more_s >= work_s * (1 - EXACT) && more_s <= 1.2 * work_s);
        free(scratch);
    }
}

static void busiest_stage_is_the_one_with_most_work(void **state) {
    sm_rng rng = {3};
    for (int k = 0; k < 300; k++) {
        example e;
        double work_s[16] = {0}, most_s = 0;
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), RANDOM, 40);
        sm_pipeline_time t = sm_pipeline_simulate(&e.pipeline, e.engine, e.slot);
        for (size_t j = 0; j < e.slots; j++)
            work_s[e.slot[j].stage] += e.slot[j].end_s - e.slot[j].start_s;
        for (int i = 0; i < e.pipeline.stages; i++) most_s = fmax(most_s, work_s[i]);
        assert_true(fabs(t.busiest_s - most_s) <= 1e-10 * most_s);
        assert_true(fabs(work_s[t.busiest_stage] - most_s) <= 1e-10 * most_s);
        assert_true(t.busiest_s <= t.total_s * (1 + EXACT));
        tear_down(&e);
    }
}

static void no_chunk_gets_faster_by_being_slower(void **state) {
    sm_rng rng = {4};
    for (int k = 0; k < 600; k++) {
        example e;
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), (shape)(k / 6 % SHAPES), 40);
        double before_s = simulated(&e);
        int c = (int)sm_rng_below(&rng, (uint64_t)chunk_count(&e.pipeline));
        double *part[3] = {&e.chunk[c].forward, &e.chunk[c].backward_input,
                           &e.chunk[c].backward_weight};
        *part[sm_rng_below(&rng, 3)] += between(&rng, 0, 1);
        assert_true(simulated(&e) >= before_s * (1 - EXACT));
        tear_down(&e);
    }
}

/* --- Published facts. */
static double bubble_s(sm_schedule schedule, int p, int v, int m, sm_chunk_time t) {
    example e;
    set_up(&e, schedule, p, v, m, 0);
    set_times(&e, t.forward, t.backward_input, t.backward_weight);
    sm_pipeline_time time = sm_pipeline_simulate(&e.pipeline, e.scratch, NULL);
    tear_down(&e);
    return time.total_s - time.busiest_s;
}

/* Narayanan et al. 2021 (arXiv 2104.04473), section 2.2: the bubble of GPipe and 1F1B is
 * (p-1)(f+b), a share (p-1)/m of the ideal time; v chunks per stage divide it by v. */
static void bubbles_of_the_1f1b_family(void **state) {
    for (int p = 1; p <= 12; p++)
        for (int k = 1; k <= 4; k++) {
            double expected_s = (p - 1) * (1 + 1.25 + 0.75);
            sm_chunk_time whole = {1, 1.25, 0.75};
            assert_true(fabs(bubble_s(SM_SCHEDULE_GPIPE, p, 1, k * p, whole) - expected_s) < 1e-9);
            assert_true(fabs(bubble_s(SM_SCHEDULE_1F1B, p, 1, k * p, whole) - expected_s) < 1e-9);
            for (int v = 2; v <= 4; v++) {
                sm_chunk_time part = {1.0 / v, 1.25 / v, 0.75 / v};
                double s = bubble_s(SM_SCHEDULE_INTERLEAVED, p, v, k * p, part);
                assert_true(fabs(s - expected_s / v) < 1e-9);
            }
        }
}

/* Qi et al. 2023 (arXiv 2401.10241), table 1: ZB-H1 leaves (p-1)(f+b-w), a third of 1F1B's
 * (p-1)(f+b+w) when the three are equal. */
static void zb_h1_bubble_is_a_third(void **state) {
    for (int p = 2; p <= 12; p++)
        for (int m = p; m <= 4 * p; m++) {
            double zb = bubble_s(SM_SCHEDULE_ZB_H1, p, 1, m, (sm_chunk_time){1, 1, 1});
            double plain = bubble_s(SM_SCHEDULE_1F1B, p, 1, m, (sm_chunk_time){1, 1, 1});
            assert_true(fabs(3 * zb - plain) < 1e-9);
        }
    double s = bubble_s(SM_SCHEDULE_ZB_H1, 8, 1, 24, (sm_chunk_time){1, 1.25, 0.75});
    assert_true(fabs(s - 7 * (1 + 1.25 - 0.75)) < 1e-9);
}

/* Qi et al. 2024 (arXiv 2405.15362): with f = b = w V-ZB stops for nothing but the fill. */
static void zb_v_waits_for_the_fill_alone(void **state) {
    for (int p = 1; p <= 12; p++)
        for (int m = 2 * p - 1; m <= 5 * p; m++)
            assert_true(fabs(bubble_s(SM_SCHEDULE_ZB_V, p, 2, m, (sm_chunk_time){1, 1, 1}) -
                             (p - 1)) < 1e-9);
}

/* DeepSeek-V3 (arXiv 2412.19437), table 2: bubble (p/2-1)(F&B + B - 3W), with F&B a forward and a
 * backward that run as one block. Ops one after the other hand on their outputs sooner. */
static void dualpipe_bubble_as_published(void **state) {
    for (int p = 2; p <= 12; p += 2)
        for (int m = 2 * p; m <= 5 * p; m += 2) {
            example e;
            set_up(&e, SM_SCHEDULE_DUALPIPE, p, 2, m, 0);
            set_times(&e, 1, 1, 1);
            double serial_s = simulated_slots(&e), ideal_s = 3 * m;
            double f_and_b = 3, b = 2, w = 1;
            assert_true(fabs(oracle_run(&e, true) - ideal_s - (p / 2 - 1) * (f_and_b + b - 3 * w)) <
                        1e-9);
            assert_true(fabs(serial_s - ideal_s - (p / 2 - 1)) < 1e-9);
            tear_down(&e);
        }
}

static void one_stage_only_works(void **state) {
    sm_rng rng = {5};
    for (int k = 0; k < 300; k++) {
        example e;
        sm_schedule schedule = (sm_schedule)(k % SM_SCHEDULE_DUALPIPE);
        int v = schedule == SM_SCHEDULE_INTERLEAVED ? 3 : schedule == SM_SCHEDULE_ZB_V ? 2 : 1;
        int m = 1 + (int)sm_rng_below(&rng, 50);
        set_up(&e, schedule, 1, v, m, 0.25);
        shape_times(&e, &rng, RANDOM);
        double work_s = 0;
        for (int c = 0; c < v; c++)
            work_s += e.chunk[c].forward + e.chunk[c].backward_input + e.chunk[c].backward_weight;
        assert_true(close_to(simulated(&e), m * work_s));
        assert_true(close_to(simulated_slots(&e), m * work_s));
        tear_down(&e);
    }
}

/* Megatron's order for p = 4, v = 2, m = 8 on stage 1: 2(4-1-1) + 4 = 8 forwards, then pairs. */
static void interleaved_order_of_megatron(void **state) {
    static const char *const expected =
        "F0.0 F0.1 F0.2 F0.3 F1.0 F1.1 F1.2 F1.3 F0.4 B1.0 F0.5 B1.1 F0.6 B1.2 F0.7 B1.3 "
        "F1.4 B0.0 F1.5 B0.1 F1.6 B0.2 F1.7 B0.3 B1.4 B1.5 B1.6 B1.7 B0.4 B0.5 B0.6 B0.7 ";
    char text[512] = "";
    example e;
    set_up(&e, SM_SCHEDULE_INTERLEAVED, 4, 2, 8, 0);
    set_times(&e, 1, 1, 1);
    simulated_slots(&e);
    for (size_t k = 0, n = 0; k < e.slots; k++)
        if (e.slot[k].stage == 1) {
            text[n++] = e.slot[k].kind == SM_SLOT_FORWARD ? 'F' : 'B';
            text[n++] = (char)('0' + e.slot[k].chunk / 4);
            text[n++] = '.';
            text[n++] = (char)('0' + e.slot[k].microbatch);
            text[n++] = ' ';
        }
    assert_string_equal(text, expected);
    tear_down(&e);
}

/* --- Memory: activations held, counted from the slots. */
static void count_held(const example *e, int stage, int *held) {
    int now[CHUNKS_MAX] = {0}, total = 0, peak = 0, chunks = chunk_count(&e->pipeline);
    int at_peak[CHUNKS_MAX] = {0}, local = 0;
    bool here[CHUNKS_MAX] = {false};
    for (size_t k = 0; k < e->slots; k++) {
        const sm_slot *s = &e->slot[k];
        if (s->stage != stage || s->kind == SM_SLOT_BACKWARD_INPUT) continue;
        here[s->chunk] = true;
        now[s->chunk] += s->kind == SM_SLOT_FORWARD ? 1 : -1;
        total += s->kind == SM_SLOT_FORWARD ? 1 : -1;
        if (total > peak) {
            peak = total;
            memcpy(at_peak, now, sizeof now);
        }
    }
    for (int c = 0; c < chunks; c++)
        if (here[c]) held[local++] = at_peak[c];
}

static void in_flight_equals_the_count(void **state) {
    sm_rng rng = {6};
    for (int k = 0; k < 900; k++) {
        example e;
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), EQUAL, k % 5 ? 40 : 200);
        const sm_pipeline *p = &e.pipeline;
        simulated_slots(&e);
        for (int i = 0; i < p->stages; i++) {
            int held[CHUNKS_MAX] = {0}, counted[CHUNKS_MAX] = {0};
            sm_schedule_in_flight(p->schedule, p->stages, p->chunks_per_stage, p->microbatches, i,
                                  held);
            count_held(&e, i, counted);
            assert_memory_equal(held, counted, sizeof held);
        }
        tear_down(&e);
    }
}

static int in_flight_total(sm_schedule schedule, int p, int v, int m, int stage) {
    int held[CHUNKS_MAX] = {0}, total = 0;
    sm_schedule_in_flight(schedule, p, v, m, stage, held);
    for (int c = 0; c < v; c++) total += held[c];
    return total;
}

static void in_flight_as_published(void **state) {
    for (int i = 0; i < 8; i++) {
        assert_int_equal(in_flight_total(SM_SCHEDULE_GPIPE, 8, 1, 24, i), 24);
        assert_int_equal(in_flight_total(SM_SCHEDULE_1F1B, 8, 1, 24, i), 8 - i);
        assert_int_equal(in_flight_total(SM_SCHEDULE_1F1B, 8, 1, 3, i), i < 5 ? 3 : 8 - i);
        assert_int_equal(in_flight_total(SM_SCHEDULE_INTERLEAVED, 8, 3, 24, i),
                         2 * (7 - i) + 2 * 8 + 1);
        assert_int_equal(in_flight_total(SM_SCHEDULE_ZB_H1, 8, 1, 24, i), 8);
        assert_int_equal(in_flight_total(SM_SCHEDULE_ZB_V, 8, 2, 24, i), 2 * 8);
        assert_int_equal(in_flight_total(SM_SCHEDULE_DUALPIPE, 8, 2, 24, i), 8 + 1);
    }
}

/* --- The frame. */
static void names_and_stages(void **state) {
    assert_string_equal(sm_schedule_names[SM_SCHEDULE_1F1B], "1f1b");
    assert_string_equal(sm_schedule_names[SM_SCHEDULE_ZB_H1], "zb-h1");
    assert_string_equal(sm_schedule_names[SM_SCHEDULE_DUALPIPE], "dualpipe");
    assert_int_equal(sm_schedule_stage(SM_SCHEDULE_INTERLEAVED, 4, 3, 9), 1);
    assert_int_equal(sm_schedule_stage(SM_SCHEDULE_ZB_V, 4, 2, 3), 3);
    assert_int_equal(sm_schedule_stage(SM_SCHEDULE_ZB_V, 4, 2, 4), 3);
    assert_int_equal(sm_schedule_stage(SM_SCHEDULE_ZB_V, 4, 2, 7), 0);
    assert_int_equal(sm_schedule_stage(SM_SCHEDULE_DUALPIPE, 4, 2, 3), 3);
}

static void refuses(sm_schedule schedule, int p, int v, int m, const char *expected) {
    const char *why = NULL;
    assert_false(sm_schedule_possible(schedule, p, v, m, &why));
    assert_string_equal(why, expected);
}

static void impossible_combinations_say_why(void **state) {
    const char *why = "before";
    assert_true(sm_schedule_possible(SM_SCHEDULE_1F1B, 8, 1, 3, &why));
    assert_null(why);
    refuses(SM_SCHEDULE_1F1B, 0, 1, 3,
            "stages, chunks per stage and microbatches must be at least 1");
    refuses(SM_SCHEDULE_1F1B, 4, 1, -2147483647 - 1,
            "stages, chunks per stage and microbatches must be at least 1");
    refuses(SM_SCHEDULE_1F1B, 2147483647, 1, 1, "a pipeline has at most 1024 stages");
    refuses(SM_SCHEDULE_INTERLEAVED, 4, 513, 4, "a stage has at most 512 chunks");
    refuses(SM_SCHEDULE_GPIPE, 4, 1, 2147483647, "a step has at most 1048576 microbatches");
    refuses(SM_SCHEDULE_ZB_H1, 4, 2, 8, "this schedule holds 1 chunk per stage");
    refuses(SM_SCHEDULE_INTERLEAVED, 4, 1, 8, "interleaved needs at least 2 chunks per stage");
    refuses(SM_SCHEDULE_INTERLEAVED, 4, 2, 9,
            "interleaved needs a multiple of the stages as microbatches");
    refuses(SM_SCHEDULE_ZB_V, 4, 3, 9, "zb-v holds 2 chunks per stage");
    refuses(SM_SCHEDULE_DUALPIPE, 4, 1, 8, "dualpipe holds 2 chunks per stage");
    refuses(SM_SCHEDULE_DUALPIPE, 3, 2, 8, "dualpipe needs an even number of stages");
    refuses(SM_SCHEDULE_DUALPIPE, 4, 2, 9,
            "dualpipe needs an even number of microbatches, half from each end");
    refuses(SM_SCHEDULE_DUALPIPE, 4, 2, 6, "dualpipe needs at least 2 microbatches per stage");
    refuses(SM_SCHEDULE_COUNT, 4, 1, 8, "no such schedule");
}

static void nothing_is_allocated(void **state) {
    sm_rng rng = {7};
    for (int k = 0; k < 60; k++) {
        example e;
        int held[CHUNKS_MAX];
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), RANDOM, 100);
        const sm_pipeline *p = &e.pipeline;
        uint64_t before = sm_allocation_count();
        sm_pipeline_simulate(p, e.scratch, NULL);
        sm_pipeline_simulate(p, e.engine, e.slot);
        sm_pipeline_bound(p);
        sm_schedule_in_flight(p->schedule, p->stages, p->chunks_per_stage, p->microbatches, 0,
                              held);
        assert_int_equal(sm_allocation_count(), before);
        tear_down(&e);
    }
}

/* Times that are no numbers end the simulation all the same; infinite ones make it infinite. */
static void strange_times_end(void **state) {
    static const double strange[] = {0, INFINITY, NAN, 1e308, 5e-324};
    sm_rng rng = {8};
    for (int k = 0; k < 600; k++) {
        example e;
        double x = strange[k / 6 % 5];
        draw(&e, &rng, (sm_schedule)(k % SM_SCHEDULE_COUNT), EQUAL, 100);
        e.chunk[sm_rng_below(&rng, (uint64_t)chunk_count(&e.pipeline))].forward = x;
        double total_s = simulated(&e), slots_s = simulated_slots(&e);
        sm_pipeline_bound(&e.pipeline);
        if (x == INFINITY) assert_true(isinf(total_s) && isinf(slots_s));
        set_times(&e, 0, 0, 0);
        e.pipeline.send_s = 0;
        assert_true(simulated(&e) == 0 && simulated_slots(&e) == 0);
        tear_down(&e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulation_equals_the_naive_run),
        cmocka_unit_test(long_runs_equal_the_full_simulation),
        cmocka_unit_test(slow_settling_is_not_skipped),
        cmocka_unit_test(no_bound_exceeds_the_simulation),
        cmocka_unit_test(few_microbatches_of_a_fold_are_bound_by_their_way),
        cmocka_unit_test(room_does_not_grow_with_the_step),
        cmocka_unit_test(busiest_stage_is_the_one_with_most_work),
        cmocka_unit_test(no_chunk_gets_faster_by_being_slower),
        cmocka_unit_test(bubbles_of_the_1f1b_family),
        cmocka_unit_test(zb_h1_bubble_is_a_third),
        cmocka_unit_test(zb_v_waits_for_the_fill_alone),
        cmocka_unit_test(dualpipe_bubble_as_published),
        cmocka_unit_test(one_stage_only_works),
        cmocka_unit_test(interleaved_order_of_megatron),
        cmocka_unit_test(in_flight_equals_the_count),
        cmocka_unit_test(in_flight_as_published),
        cmocka_unit_test(names_and_stages),
        cmocka_unit_test(impossible_combinations_say_why),
        cmocka_unit_test(nothing_is_allocated),
        cmocka_unit_test(strange_times_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ring attention: the program says what travels as a ring; losses, gradients and bytes are those of
 * one rank and of a gather; what a rank holds of the others does not grow with their number. */
#include <math.h>
#include "unit.h"
#include "failing_alloc.h"
#include <stdio.h>
#include <string.h>

#include "model_of.h"
#include "train_plans.h"
#include "partition.h"

enum { TOKENS = 24, WIDTH = 24 }; /* over 2, 3, 4 and 8 ranks */

/* ---- the program ---- */

typedef struct told {
    int forward, gradient, home, other; /* steps of rings, by the kind of task */
} told;

static sm_status count_rings(const sm_program_task *task, void *context, sm_error *err) {
    told *all = context;
    (void)err;
    for (int i = 0; i < SM_MAX_STEPS; i++) {
        if (!(task->ring >> i & 1u)) continue;
        const sm_step *s = &task->lowering.step[i];
        bool gathers = s->op == SM_ALL_GATHER, home = task->kind == SM_TASK_HOME;
        assert_true(i < task->lowering.steps && s->kind == SM_STEP_COLLECTIVE);
        assert_int_equal(s->axes, SM_BIT(SM_AXIS_CONTEXT));
        assert_true(gathers || (home && s->op == SM_REDUCE_SCATTER));
        if (task->kind == SM_TASK_FORWARD) all->forward++;
        else if (task->kind == SM_TASK_INPUT_GRADIENT) all->gradient++;
        else if (home) all->home++;
        else all->other++;
    }
    return SM_OK;
}

static int priced_rings(const sm_partition *p) {
    int rings = 0;
    for (int i = 0; i < p->comms; i++) rings += p->comm[i].stream == SM_STREAM_RING;
    return rings;
}

static told walked(sm_context_by by, int *priced) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_rules rules = {.context_by = by};
    sm_mesh mesh = *sm_program_mesh();
    sm_program program;
    double size[SM_MAX_DIMENSIONS];
    told all = {.forward = 0};
    for (int a = 0; a < SM_AXIS_COUNT; a++) mesh.axis[a].size = 1;
    mesh.axis[SM_AXIS_CONTEXT].size = 2;
    assert_int_equal(sm_program_build(&model, SM_PIECE_LAYER, 0, TOKENS, &rules, &program, NULL),
                     SM_OK);
    sm_partition *part = sm_malloc(sizeof *part);
    assert_int_equal(sm_program_partition(&program, NULL, part, NULL), SM_OK);
    *priced = priced_rings(part);
    sm_free(part);
    sm_program_sizes(&program, &(sm_program_extent){.sequences = 1}, size);
    assert_int_equal(sm_program_walk(&program, &mesh, size, count_rings, &all, NULL), SM_OK);
    return all;
}

/* Keys and values forward, again for the gradients (which three tasks share), and their own
 * gradients home. */
static void the_program_says_what_is_a_ring(void **state) {
    int priced;
    told ring = walked(SM_CONTEXT_RING, &priced);
    assert_int_equal(priced, 6);
    assert_int_equal(ring.forward, 2);
    assert_int_equal(ring.gradient, 3 * 2);
    assert_int_equal(ring.home, 2);
    assert_int_equal(ring.other, 0);
    for (int by = SM_CONTEXT_GATHER; by <= SM_CONTEXT_HEADS; by++) {
        told none = walked((sm_context_by)by, &priced);
        assert_int_equal(priced + none.forward + none.gradient + none.home + none.other, 0);
    }
}

/* ---- plans ---- */

static const train_plan plans[] = {
    {.words = "context=2"},
    {.words = "context=3"},
    {.words = "context=4,micro=2"},
    {.words = "context=8"},
    {.words = "context=3,recompute=1"},
    {.words = "context=4,recompute=2"},
    {.words = "context=3,recompute=3,micro=4"},
    {.words = "context=3,tensor=2"},
    {.words = "context=3,tensor=2,seq,recompute=3"},
    {.words = "context=3,tensor_q=2,seq"},
    {.words = "context=2,tensor=2,tensor_q=2,seq"},
    {.words = "context=3,fsdp=2,zero=3"},
    {.words = "context=4,fsdp=2,zero=3,spread"},
    {.words = "context=3,data=2,zero=2,micro=2"},
    {.words = "context=3,expert=2"},
    {.words = "context=2,expert=2,tensor=2,seq,recompute=2"},
    {"micro=1,context=3", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,context=3,recompute=1", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=2,context=2,tensor=2,seq", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1,context=4", SM_SCHEDULE_ZB_V, 2, 2},
};

static sm_model wide_model(train_kind kind, int layers, int width) {
    char members[64];
    snprintf(members, sizeof members, "\"hidden_size\": %d, \"head_dim\": 4", width);
    return train_model_with(kind, layers, members);
}

static void run_one(train_kind kind, int layers, int width, train_curve *one) {
    sm_model model = wide_model(kind, layers, width);
    sm_train_setup setup = train_setup_of(&model);
    setup.tokens = TOKENS;
    train_curve_on_threads(&setup, TRAIN_STEPS, one);
    one->setup = NULL;
    assert_int_equal(one->status, SM_OK);
}

static void make_job(const train_plan *plan, train_kind kind, int width, train_job *job) {
    assert_true(train_job_of(plan, kind, job));
    job->model = wide_model(kind, job->model.L, width);
    job->setup.tokens = TOKENS;
}

/* A gather moves the same bytes. */
static int compare_with_gather(const train_plan *plan, const train_curve *one, train_job *job,
                               const train_curve *ring) {
    train_curve gather;
    job->setup.rules.context_by = SM_CONTEXT_GATHER;
    train_curve_on_threads(&job->setup, TRAIN_STEPS, &gather);
    int wrong = train_curve_compare(plan, one, &gather);
    wrong += memcmp(ring->counted, gather.counted, sizeof ring->counted) != 0;
    wrong += memcmp(ring->loss, gather.loss, sizeof ring->loss) == 0; /* other sums */
    if (wrong) print_message("%s gathered\n", plan->words);
    return wrong;
}

static int every_plan(train_kind kind) {
    static train_job job;
    train_curve one[2], ring;
    int wrong = 0;
    for (int deep = 0; deep < 2; deep++) run_one(kind, deep ? 4 : 2, WIDTH, &one[deep]);
    for (size_t i = TRAIN_FIRST; i < sizeof plans / sizeof *plans; i += TRAIN_EVERY) {
        const train_curve *expected = &one[train_plan_layers(&plans[i]) > 2];
        make_job(&plans[i], kind, WIDTH, &job);
        train_curve_on_threads(&job.setup, TRAIN_STEPS, &ring);
        wrong += train_curve_compare(&plans[i], expected, &ring);
        if (i % 7 == 1) wrong += compare_with_gather(&plans[i], expected, &job, &ring);
    }
    return wrong;
}

static void dense_rings_are_equal(void **state) { assert_int_equal(every_plan(TRAIN_DENSE), 0); }
static void expert_rings_are_equal(void **state) { assert_int_equal(every_plan(TRAIN_EXPERTS), 0); }

/* Weights of a width that three ranks cannot share out: rows of ZeRO are filled up, and predicted
 * so. */
static void odd_rows_are_filled_up(void **state) {
    enum { ODD = 16 };
    static const train_plan odd[] = {{.words = "context=3,zero=1"},
                                     {.words = "context=3,fsdp=2,zero=3"},
                                     {.words = "context=3,data=2,zero=2,micro=2"},
                                     {"micro=1,context=3,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2}};
    static train_job job;
    train_curve one[2], c;
    int wrong = 0;
    for (int deep = 0; deep < 2; deep++) run_one(TRAIN_DENSE, deep ? 4 : 2, ODD, &one[deep]);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        make_job(&odd[i], TRAIN_DENSE, ODD, &job);
        train_curve_on_threads(&job.setup, TRAIN_STEPS, &c);
        wrong += train_curve_compare(&odd[i], &one[train_plan_layers(&odd[i]) > 2], &c);
    }
    assert_int_equal(wrong, 0);
}

/* More queries than are worked on at once, on one rank and on two; on three and eight not. */
static void long_sequences_are_cut(void **state) {
    enum { LONG = 264 };
    static const int ring[] = {2, 3, 8};
    sm_model model = train_model(TRAIN_DENSE, 2);
    train_curve one, c;
    int wrong = 0;
    assert_true(LONG / 2 > SM_QUERIES_AT_ONCE && LONG / 3 < SM_QUERIES_AT_ONCE);
    sm_train_setup setup = train_setup_of(&model);
    setup.tokens = LONG;
    setup.sequences = setup.microbatch = 1;
    train_curve_on_threads(&setup, TRAIN_STEPS, &one);
    for (size_t i = 0; i < sizeof ring / sizeof *ring; i++) {
        const train_plan plan = {.words = "a long sequence"};
        setup.degree[SM_AXIS_CONTEXT] = ring[i];
        train_curve_on_threads(&setup, TRAIN_STEPS, &c);
        wrong += train_curve_compare(&plan, &one, &c);
    }
    assert_int_equal(wrong, 0);
}

/* ---- gradients ---- */

enum { MOST_NUMBERS = 1 << 16 };
typedef struct slopes {
    sm_train_setup setup;
    size_t n;
    double slope[MOST_NUMBERS];
} slopes;

/* Of the whole model: each rank of the sequence holds a part of every sum. */
static sm_status sum_slopes(sm_communicator *world, void *context, sm_error *err) {
    slopes *all = context;
    sm_trainer *t = NULL;
    sm_train_result r;
    sm_train_weight w;
    double *mine = sm_calloc(MOST_NUMBERS, sizeof *mine);
    size_t n = 0;
    sm_status status = mine ? sm_trainer_new(world, &all->setup, &t, err) : sm_fail_memory(err);
    if (!status) status = sm_trainer_gradients(t, 0, &r, err);
    for (int layer = -1; !status && layer <= all->setup.model->L; layer++)
        for (int i = 0; sm_trainer_weight(t, layer, i, &w); i++) {
            size_t count = 1;
            for (int d = 0; d < w.rank; d++) count *= w.size[d];
            for (size_t k = 0; k < count && n < MOST_NUMBERS; k++) mine[n++] = w.gradient[k];
        }
    if (!status) status = sm_run_all_reduce(world, mine, n, SM_ELEMENT_F64, err);
    if (!status && world->rank == 0) {
        all->n = n;
        memcpy(all->slope, mine, n * sizeof *mine);
    }
    sm_trainer_free(t);
    sm_free(mine);
    return status;
}

static void run_slopes(const sm_model *model, int context, slopes *all) {
    sm_error err = {.status = SM_OK};
    all->setup = train_setup_of(model);
    all->setup.tokens = TOKENS;
    all->setup.degree[SM_AXIS_CONTEXT] = context;
    if (sm_run_threads(context, sum_slopes, all, &err)) fail_msg("%s", err.sentence);
}

static void gradients_are_those_of_one_rank(void **state) {
    static slopes one, ring;
    for (int kind = 0; kind < TRAIN_KINDS; kind++)
        for (int heads = 1; heads <= 4; heads *= 2) { /* of keys, for four of queries */
            char members[64];
            snprintf(members, sizeof members, "\"num_key_value_heads\": %d", heads);
            sm_model model = train_model_with((train_kind)kind, 2, members);
            run_slopes(&model, 1, &one);
            run_slopes(&model, heads == 1 ? 8 : 3, &ring);
            double apart = 0, size = 0;
            assert_true(one.n > 1000 && one.n == ring.n && one.n < MOST_NUMBERS);
            for (size_t i = 0; i < one.n; i++) {
                apart = fmax(apart, fabs(one.slope[i] - ring.slope[i]));
                size = fmax(size, fabs(one.slope[i]));
            }
            if (!(apart < 1e-5 * size)) fail_msg("%g of %g apart", apart, size);
        }
}

/* Sinks and windows: what no block of keys has, and blocks of which no key is seen. */
static void sinks_are_those_of_one_rank(void **state) {
    static slopes one, ring;
    const sm_model model = model_of(
        "sinks", "{\"model_type\": \"gpt_oss\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 8, "
                 "\"intermediate_size\": 24, \"vocab_size\": 256, \"num_local_experts\": 4, "
                 "\"num_experts_per_tok\": 2, \"sliding_window\": 7}");
    run_slopes(&model, 1, &one);
    for (int n = 2; n <= 8; n *= 2) {
        double apart = 0, size = 0;
        run_slopes(&model, n, &ring);
        assert_true(one.n > 1000 && one.n == ring.n && one.n < MOST_NUMBERS);
        for (size_t i = 0; i < one.n; i++) {
            apart = fmax(apart, fabs(one.slope[i] - ring.slope[i]));
            size = fmax(size, fabs(one.slope[i]));
        }
        if (!(apart < 1e-5 * size)) fail_msg("%g of %g apart on %d ranks", apart, size, n);
    }
}

/* ---- what is held ---- */

typedef struct holding {
    sm_train_setup setup;
    double bytes;
} holding;

static sm_status hold(sm_communicator *world, void *context, sm_error *err) {
    holding *h = context;
    sm_trainer *t = NULL;
    sm_train_result r;
    sm_status status = sm_trainer_new(world, &h->setup, &t, err);
    if (!status) status = sm_trainer_step(t, 0, &r, err);
    double bytes = status ? 0 : sm_trainer_ring_bytes(t);
    if (!status) status = sm_run_all_reduce(world, &bytes, 1, SM_ELEMENT_F64, err);
    if (world->rank == 0) h->bytes = bytes / world->size;
    sm_trainer_free(t);
    return status;
}

/* Two blocks of keys and values and three of their gradients, whatever the length of the ring; of
 * two ranks one block is enough. */
static void a_rank_holds_two_blocks_of_others(void **state) {
    enum { PART = 6, SEQUENCES = 2 };
    sm_model model = train_model(TRAIN_DENSE, 2);
    const sm_layer_kind *k = &model.kind[0];
    double block = 4.0 * SEQUENCES * PART * k->K * k->H;
    for (int n = 1; n <= 8; n++) {
        sm_error err = {.status = SM_OK};
        holding h = {.setup = train_setup_of(&model)};
        h.setup.sequences = h.setup.microbatch = SEQUENCES;
        h.setup.tokens = PART * n;
        h.setup.degree[SM_AXIS_CONTEXT] = n;
        if (sm_run_threads(n, hold, &h, &err)) fail_msg("%s", err.sentence);
        int blocks = n == 1 ? 0 : n == 2 ? 1 + 3 : 2 + 3;
        assert_true(h.bytes == 2 * blocks * block);
        h.setup.rules.context_by = SM_CONTEXT_GATHER;
        if (sm_run_threads(n, hold, &h, &err)) fail_msg("%s", err.sentence);
        assert_true(h.bytes == 0);
    }
}

/* ---- times ---- */

typedef struct rows {
    sm_train_setup setup;
    int n;
    sm_train_row row[SM_MOST_TRAIN_ROWS];
} rows;

static sm_status list_rows(sm_communicator *world, void *context, sm_error *err) {
    rows *all = context;
    sm_trainer *t = NULL;
    sm_train_result r;
    sm_status status = sm_trainer_new(world, &all->setup, &t, err);
    if (!status) status = sm_trainer_step(t, 0, &r, err);
    if (!status && world->rank == 0)
        all->n = sm_trainer_rows(t, true, false, all->row, SM_MOST_TRAIN_ROWS);
    sm_trainer_free(t);
    return status;
}

/* What went round is counted under the array it was, as often as a gather would be. */
static void arrays_that_pass_are_counted_by_name(void **state) {
    static rows ring, gather;
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_error err = {.status = SM_OK};
    ring.setup = train_setup_of(&model);
    ring.setup.tokens = TOKENS;
    ring.setup.degree[SM_AXIS_CONTEXT] = 3;
    gather.setup = ring.setup;
    gather.setup.rules.context_by = SM_CONTEXT_GATHER;
    if (sm_run_threads(3, list_rows, &ring, &err)) fail_msg("%s", err.sentence);
    if (sm_run_threads(3, list_rows, &gather, &err)) fail_msg("%s", err.sentence);
    assert_true(ring.n >= 6 && ring.n == gather.n);
    int found = 0;
    for (int i = 0; i < gather.n; i++)
        for (int k = 0; k < ring.n; k++) {
            const sm_train_row *a = &gather.row[i], *b = &ring.row[k];
            bool same = a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
                        a->weight == b->weight && a->gradient == b->gradient &&
                        a->phase == b->phase && a->step_end == b->step_end;
            found += same && a->bytes == b->bytes && a->calls == b->calls;
        }
    assert_int_equal(found, gather.n);
}

/* ---- debug mode and faults ---- */

static sm_status train_compared(sm_communicator *world, void *context, sm_error *err) {
    world->debug = true;
    return train_curve_run(world, context, err);
}

static void debug_mode_finds_nothing(void **state) {
    static train_job job;
    train_curve one, ring = {.steps = TRAIN_STEPS};
    sm_error err = {.status = SM_OK};
    const train_plan plan = {.words = "context=3,tensor=2,seq"};
    run_one(TRAIN_DENSE, 2, WIDTH, &one);
    make_job(&plan, TRAIN_DENSE, WIDTH, &job);
    ring.setup = &job.setup;
    if (sm_run_threads(6, train_compared, &ring, &err)) fail_msg("%s", err.sentence);
    assert_int_equal(train_curve_compare(&plan, &one, &ring), 0);
}

/* Whatever allocation fails, all ranks end: those of the passes too, in the middle of a ring, where
 * a rank that fails has sent what nobody takes any more. */
static void failing_allocations_end_every_rank(void **state) {
    static train_job job;
    const train_plan plan = {.words = "context=3"};
    assert_true(train_job_of(&plan, TRAIN_DENSE, &job));
    job.setup.tokens = 6;
    job.setup.sequences = job.setup.microbatch = 1;
    train_curve all = {.setup = &job.setup, .steps = 1};
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err = {.status = SM_OK};
        sm_status status = sm_run_threads(3, train_curve_run, &all, &err);
        assert_true(status == SM_OK || (loop.n && status == SM_INTERNAL));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_says_what_is_a_ring),
        cmocka_unit_test(dense_rings_are_equal),
        cmocka_unit_test(expert_rings_are_equal),
        cmocka_unit_test(odd_rows_are_filled_up),
        cmocka_unit_test(long_sequences_are_cut),
        cmocka_unit_test(sinks_are_those_of_one_rank),
        cmocka_unit_test(gradients_are_those_of_one_rank),
        cmocka_unit_test(a_rank_holds_two_blocks_of_others),
        cmocka_unit_test(arrays_that_pass_are_counted_by_name),
        cmocka_unit_test(debug_mode_finds_nothing),
        cmocka_unit_test(failing_allocations_end_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

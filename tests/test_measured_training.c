/* Constants from short trainings: those under which synthetic timings were made are found again,
 * and real trainings fill in every row. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measuring.h"

extern void openblas_set_num_threads(int threads) __attribute__((weak));

typedef struct bench {
    cli_call call;
    measuring q;
    sm_system system;
    sm_train_setup *setups;
} bench;

static void open_bench(bench *b, bool quick) {
    sm_error err = {0};
    memset(b, 0, sizeof *b);
    b->call.arena = sm_arena_new();
    b->q.call = &b->call;
    b->q.found = sm_arena_alloc(b->call.arena, sizeof *b->q.found);
    b->q.found->ranks = 2;
    b->q.chip = (sm_chip){.name = "lab",
                          .aliases = "",
                          .vendor = "measured",
                          .conflicts = "",
                          .calibration = "cpu",
                          .tile_m = 8,
                          .tile_n = 8,
                          .tile_k = 1,
                          .cores = 1,
                          .matrix_units_per_core = 1,
                          .chips_per_host = 2,
                          .fabric = SM_FABRIC_SWITCH,
                          .tree_levels = 1,
                          .links_per_chip = 1};
    b->q.chip.flops_per_s[SM_FP32] = (sm_fact){8e10, "test"};
    b->q.chip.vector_flops_per_s = (sm_fact){1.2e10, "test"};
    b->q.chip.memory_bytes_per_s = (sm_fact){1.5e10, "test"};
    b->q.chip.memory_bytes = (sm_fact){1e10, "test"};
    b->q.chip.link_bytes_per_s_oneway = (sm_fact){1e10, "test"};
    b->q.chip.tree[0] = (sm_tree_level){.name = "host",
                                        .degree = 2,
                                        .child_bytes_per_s_oneway = {1e10, "test"},
                                        .hop_latency_s = {1e-5, "test"}};
    b->q.calibration = *sm_calibration_of(&b->q.chip);
    sm_source on = sm_source_of("system", "lab:2");
    if (sm_system_parse(&on, &b->q.chip, 1, &b->system, &err)) fail_msg("%s", err.sentence);
    if (measured_runs(&b->q, 2, quick, &b->setups, &err)) fail_msg("%s", err.sentence);
}

static void close_bench(bench *b) { sm_arena_free(b->call.arena); }

/* ---- synthetic timings ---- */

static const double WAITING = 4e-5;

static void give_lines(bench *b) {
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        b->q.line[b->q.lines++] = (collective_line){
            .op = (sm_collective)op, .ranks = 2, .line = {.line = {2e-5 + op * 1e-6, 2e-10}}};
}

static sm_calibration truth_of(const bench *b, sm_collective_line *line) {
    sm_calibration truth = b->q.calibration;
    truth.matmul_efficiency = truth.matmul_efficiency_fp8 = 0.71;
    truth.matmul_half_k = 33;
    truth.attention_efficiency = 0.52;
    truth.attention_efficiency_backward = 0.63;
    truth.launch_s = 4e-6;
    truth.overlap = 0;
    truth.step_overhead_s = 3e-4;
    for (int i = 0; i < b->q.lines; i++) {
        const collective_line *l = &b->q.line[i];
        line[i] = (sm_collective_line){l->op, l->ranks, l->line.line};
        line[i].line.latency_s += WAITING;
    }
    truth.line = line;
    truth.lines = b->q.lines;
    return truth;
}

static void pretend_moves(const sm_calibration *truth, sm_measured_training *to) {
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) {
        const sm_collective_line *line = sm_calibration_line(truth, (sm_collective)op, 2);
        to->moves[op] = 10 + op;
        to->move_bytes[op] = 1e6 * (op + 1);
        to->move_s[op] =
            to->moves[op] * line->line.latency_s + to->move_bytes[op] * line->line.s_per_byte;
    }
}

static void pretend(bench *b, int run, const sm_calibration *truth) {
    measured_run *r = &b->q.run[run];
    sm_measured_training *to = &b->q.found->training[run];
    sm_error err = {0};
    sm_plan_detail d;
    sm_train *train;
    sm_job job = {.size = sizeof(sm_job),
                  .model = &r->model,
                  .system = &b->system,
                  .batch_tokens = (double)r->setup.sequences * r->setup.tokens,
                  .seq = r->setup.tokens,
                  .usd_per_chip_hour = -1};
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    sm_train_set_software(train, &sm_train_runtime);
    sm_train_set_calibration(train, truth);
    assert_int_equal(sm_train_ops(train, &r->plan, b->call.arena, &d, &err), SM_OK);
    to->seconds = (sm_spread){.n = 9, .low = d.price.expected_s};
    for (int i = 0; i < d.lines.ops; i++) {
        const sm_plan_op *x = &d.lines.op[i];
        sm_train_row *op = &to->op[to->ops++];
        *op = (sm_train_row){.kind = (int)x->kind,
                             .phase = x->phase,
                             .again = x->again,
                             .calls = x->count,
                             .around_s = truth->launch_s * x->count,
                             .seconds = x->time_s - truth->launch_s * x->count};
        snprintf(op->name, sizeof op->name, "%s", x->op);
    }
    pretend_moves(truth, to);
    sm_train_free(train);
}

static void near(double found, double wanted, const char *what) {
    if (fabs(found / wanted - 1) > 0.01) fail_msg("%s: %g for %g", what, found, wanted);
}

static void known_constants_are_found(void **state) {
    sm_collective_line line[SM_COLLECTIVE_COUNT];
    static bench b;
    sm_error err = {0};
    open_bench(&b, true);
    assert_int_equal(b.q.runs, 2);
    give_lines(&b);
    sm_calibration truth = truth_of(&b, line);
    for (int i = 0; i < b.q.runs; i++) pretend(&b, i, &truth);
    b.q.found->trainings = b.q.runs;
    assert_int_equal(measured_lines(&b.q, &err), SM_OK);
    assert_int_equal(measured_training_fit(&b.q, &b.system, &err), SM_OK);
    const sm_calibration *c = &b.q.calibration;
    near(c->matmul_efficiency, truth.matmul_efficiency, "matmul_efficiency");
    near(c->matmul_half_k, truth.matmul_half_k, "matmul_half_k");
    near(c->attention_efficiency, truth.attention_efficiency, "attention_efficiency");
    near(c->attention_efficiency_backward, truth.attention_efficiency_backward, "backward");
    near(c->launch_s, truth.launch_s, "launch_s");
    near(c->step_overhead_s, truth.step_overhead_s, "step_overhead_s");
    near(b.q.waiting_s, WAITING, "waiting");
    assert_true(c->overlap <= 0);
    assert_true(b.q.training_error < 1e-3 && b.q.op_error < 1e-3);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        near(sm_calibration_line(c, (sm_collective)op, 2)->line.latency_s, line[op].line.latency_s,
             "line");
    close_bench(&b);
}

/* A tenth of the products took three times as long. */
static void a_few_disturbed_rows_do_not_matter(void **state) {
    sm_collective_line line[SM_COLLECTIVE_COUNT];
    static bench b;
    sm_error err = {0};
    open_bench(&b, true);
    give_lines(&b);
    sm_calibration truth = truth_of(&b, line);
    int n = 0;
    for (int i = 0; i < b.q.runs; i++) {
        sm_measured_training *t = &b.q.found->training[i];
        pretend(&b, i, &truth);
        for (int k = 0; k < t->ops; k++)
            if (t->op[k].kind == SM_OP_EINSUM && n++ % 10 == 0) t->op[k].seconds *= 3;
    }
    b.q.found->trainings = b.q.runs;
    assert_int_equal(measured_lines(&b.q, &err), SM_OK);
    assert_int_equal(measured_training_fit(&b.q, &b.system, &err), SM_OK);
    assert_true(fabs(b.q.calibration.matmul_efficiency / truth.matmul_efficiency - 1) < 0.03);
    assert_true(fabs(b.q.calibration.step_overhead_s / truth.step_overhead_s - 1) < 0.3);
    close_bench(&b);
}

/* All trainings are models that the runtime takes, on any number of ranks; none asks one rank for
 * tensor parallelism. */
static void there_are_trainings_for_any_ranks(void **state) {
    static bench b;
    for (int ranks = 1; ranks <= 6; ranks++) {
        sm_error err = {0};
        open_bench(&b, true);
        b.q.runs = 0;
        assert_int_equal(measured_runs(&b.q, ranks, false, &b.setups, &err), SM_OK);
        assert_true(b.q.runs >= 5 && b.q.runs <= SM_MOST_MEASURED_TRAININGS);
        for (int i = 0; i < b.q.runs; i++) {
            assert_int_equal(sm_train_setup_ranks(&b.setups[i]), ranks);
            if (sm_train_setup_check(&b.setups[i], &err)) fail_msg("%s", err.sentence);
            assert_true(ranks > 1 || !b.q.run[i].has_moves);
        }
        close_bench(&b);
    }
}

static void nothing_trained_changes_nothing(void **state) {
    static bench b;
    sm_error err = {0};
    open_bench(&b, true);
    sm_calibration before = b.q.calibration;
    assert_int_equal(measured_training_fit(&b.q, &b.system, &err), SM_OK);
    assert_memory_equal(&before, &b.q.calibration, sizeof before);
    close_bench(&b);
}

/* ---- real ones: nothing here looks at how long anything took ---- */

static void every_run_fills_its_rows(void **state) {
    static bench b;
    sm_error err = {0};
    open_bench(&b, true);
    sm_measure_job job = {.quick = true,
                          .budget_s = 0,
                          .most_repeats = 5,
                          .stream_bytes = 65536,
                          .cached_bytes = 65536,
                          .trainings = b.q.runs,
                          .training = b.setups,
                          .out = b.q.found};
    if (sm_run_threads(2, sm_measure_body, &job, &err)) fail_msg("%s", err.sentence);
    assert_int_equal(b.q.found->trainings, b.q.runs);
    for (int i = 0; i < b.q.runs; i++) {
        const sm_measured_training *t = &b.q.found->training[i];
        double ops = 0, einsums = 0, moves = 0;
        for (int k = 0; k < t->ops; k++) {
            assert_true(t->op[k].name[0] && t->op[k].seconds >= 0 && t->op[k].around_s >= 0);
            ops += t->op[k].seconds;
            einsums += t->op[k].kind == SM_OP_EINSUM;
        }
        for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) moves += t->moves[op];
        assert_true(t->seconds.n >= 5 && t->seconds.median > 0 && ops > 0);
        assert_true(einsums >= 3 * 7 && moves > 0);
    }
    close_bench(&b);
}

int main(void) {
    if (openblas_set_num_threads) openblas_set_num_threads(1); /* ranks are cores */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_constants_are_found),
        cmocka_unit_test(a_few_disturbed_rows_do_not_matter),
        cmocka_unit_test(there_are_trainings_for_any_ranks),
        cmocka_unit_test(nothing_trained_changes_nothing),
        cmocka_unit_test(every_run_fills_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

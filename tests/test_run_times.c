/* Times of training by op and by collective: every kernel is counted under the op, the phase and
 * the pass it belongs to, the bytes of the rows are those of the communicators, and the parts make
 * up the step. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "train_plans.h"

enum { STEPS = 3 };
typedef struct seen {
    const sm_train_setup *setup;
    int ops, moves, all_ops, steps;
    sm_train_row op[SM_MOST_TRAIN_ROWS], all_op[SM_MOST_TRAIN_ROWS], move[SM_MOST_TRAIN_ROWS];
    sm_train_result last;
    double bytes_apart; /* of rows and of communicators, over the ranks */
    double parts_apart; /* of rows and of the parts of a step, relative */
    double all_apart;   /* of the sum of all steps and the steps' sums, relative */
} seen;

static double kernels_s(const sm_train_row *row, int rows) {
    double sum = 0;
    for (int i = 0; i < rows; i++) sum += row[i].seconds + row[i].around_s;
    return sum;
}

/* Rows of ops against the parts of a step that they are rows of. */
static double parts_apart(const seen *x) {
    double sum = 0, parts = 0;
    for (int i = 0; i < x->ops; i++) {
        bool rest = strcmp(x->op[i].name, "gradients as rows") == 0 ||
                    strcmp(x->op[i].name, "loss and norm") == 0;
        if (!rest) sum += x->op[i].seconds + x->op[i].around_s;
    }
    for (int i = 0; i < SM_TRAIN_TIME_REST; i++)
        if (i != SM_TRAIN_TIME_COLLECTIVE) parts += x->last.time_s[i];
    return fabs(sum - parts) / parts;
}

/* What stages hand over is a row of ops, and counted as permutes. */
static double bytes_apart(const seen *x) {
    double apart = 0;
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        if (k == SM_PERMUTE && x->setup->stages > 1) continue;
        double sum = -x->last.bytes_counted[k];
        for (int i = 0; i < x->moves; i++)
            if (x->move[i].kind == k) sum += x->move[i].bytes;
        apart += fabs(sum);
    }
    return apart;
}

static sm_status timed_rank(sm_communicator *world, void *context, sm_error *err) {
    seen *out = context, *x = sm_calloc(1, sizeof *x);
    sm_trainer *t = NULL;
    double steps_s = 0;
    if (!x) return sm_fail_memory(err);
    x->setup = out->setup;
    sm_status status = sm_trainer_new(world, x->setup, &t, err);
    for (int i = 0; !status && i < STEPS; i++) {
        status = sm_trainer_step(t, i, &x->last, err);
        x->ops = sm_trainer_rows(t, false, false, x->op, SM_MOST_TRAIN_ROWS);
        x->moves = sm_trainer_rows(t, true, false, x->move, SM_MOST_TRAIN_ROWS);
        x->bytes_apart += bytes_apart(x);
        x->parts_apart = fmax(x->parts_apart, parts_apart(x));
        steps_s += kernels_s(x->op, x->ops);
    }
    x->all_ops = sm_trainer_rows(t, false, true, x->all_op, SM_MOST_TRAIN_ROWS);
    x->all_apart = fabs(kernels_s(x->all_op, x->all_ops) - steps_s) / steps_s;
    x->steps = sm_trainer_forget_times(t);
    if (sm_trainer_rows(t, false, true, x->all_op, SM_MOST_TRAIN_ROWS)) x->all_apart = INFINITY;
    double apart[2] = {x->bytes_apart, x->parts_apart + x->all_apart};
    if (!status) status = sm_run_all_reduce(world, apart, 2, SM_ELEMENT_F64, err);
    x->bytes_apart = apart[0];
    x->parts_apart = apart[1];
    if (world->rank == 0) *out = *x;
    sm_free(x);
    sm_trainer_free(t);
    return status;
}

static void run_timed(const sm_train_setup *setup, seen *x) {
    sm_error err = {.status = SM_OK};
    memset(x, 0, sizeof *x);
    x->setup = setup;
    if (sm_run_threads(sm_train_setup_ranks(setup), timed_rank, x, &err))
        print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    assert_int_equal(x->steps, STEPS);
}

static double calls(const seen *x, const char *op, sm_phase phase, bool again) {
    double sum = 0;
    for (int i = 0; i < x->ops; i++)
        if (strcmp(x->op[i].name, op) == 0 && x->op[i].phase == phase && x->op[i].again == again)
            sum += x->op[i].calls;
    return sum;
}

/* Of one rank: layers x microbatches of each kernel, twice where the op runs again. */
static void kernels_are_counted(void **state) {
    static seen x;
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup s = train_setup_of(&model);
    s.microbatch = 2; /* of 8 sequences: 4 microbatches */
    s.recompute = SM_RECOMPUTE_FULL;
    run_timed(&s, &x);
    assert_true(calls(&x, "q", SM_PHASE_FORWARD, false) == 8);
    assert_true(calls(&x, "q", SM_PHASE_FORWARD, true) == 8);
    assert_true(calls(&x, "q", SM_PHASE_BACKWARD_INPUT, false) == 8);
    assert_true(calls(&x, "q", SM_PHASE_BACKWARD_WEIGHT, false) == 8);
    assert_true(calls(&x, "o", SM_PHASE_BACKWARD_INPUT, false) == 8);
    assert_true(calls(&x, "o", SM_PHASE_BACKWARD_WEIGHT, false) == 0);
    assert_true(calls(&x, "l", SM_PHASE_FORWARD, false) == 4);
    assert_true(calls(&x, "l", SM_PHASE_FORWARD, true) == 0);
    assert_true(calls(&x, "x", SM_PHASE_BACKWARD_WEIGHT, false) == 4);
    assert_true(calls(&x, "optimizer", SM_PHASE_FORWARD, false) == 1);
    assert_true(calls(&x, "loss and norm", SM_PHASE_FORWARD, false) == 1);
    assert_true(calls(&x, "hand over", SM_PHASE_FORWARD, false) == 0);
    assert_int_equal(x.moves, 0);
    s.recompute = SM_RECOMPUTE_NONE;
    run_timed(&s, &x);
    assert_true(calls(&x, "q", SM_PHASE_FORWARD, true) == 0);
}

/* Under every plan the rows of collectives carry the bytes of the communicators on every rank, and
 * rows and parts are the same seconds. */
static void rows_are_the_step(void **state) {
    static seen x;
    static train_job job;
    int failed = 0;
    for (size_t i = TRAIN_FIRST; i < train_plan_count; i += TRAIN_EVERY)
        for (int kind = 0; kind < TRAIN_KINDS; kind++) {
            if (!train_job_of(&train_plans[i], (train_kind)kind, &job)) continue;
            if (i % 3 != (size_t)kind) continue; /* a third of each: they take long */
            run_timed(&job.setup, &x);
            if (!(x.bytes_apart > 0) && x.parts_apart < 1e-6) continue;
            print_message("%s: bytes apart %g, parts %g\n", train_plans[i].words, x.bytes_apart,
                          x.parts_apart);
            failed++;
        }
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_counted),
                                       cmocka_unit_test(rows_are_the_step)};
    return cmocka_run_group_tests_name("run_times", tests, NULL, NULL);
}

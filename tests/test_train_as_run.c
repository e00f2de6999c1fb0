/* A plan priced as src/run executes it: the same plan with arrays twice as wide and more slots. */
#include "unit.h"
#include "catalogue.h"
#include "scalemodel/io.h"
#include "scalemodel/train.h"
#include <math.h>
#include <string.h>

typedef struct priced_job {
    sm_arena *arena;
    sm_model model;
    sm_system system;
    sm_train *train;
} priced_job;

static void open_job(priced_job *j, const char *model, const char *system) {
    sm_error err = {0};
    sm_source source = sm_source_of("system", system);
    assert_int_equal(sm_system_parse(&source, NULL, 0, &j->system, &err), SM_OK);
    j->arena = sm_arena_new();
    assert_int_equal(sm_io_model_load(model, j->arena, &j->model, &err), SM_OK);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &j->model,
                  .system = &j->system,
                  .batch_tokens = 65536,
                  .seq = 2048,
                  .usd_per_chip_hour = -1};
    assert_int_equal(sm_train_new(&job, &j->train, &err), SM_OK);
}

static sm_plan_detail detail_of(sm_train *train, const char *text, sm_arena *arena) {
    sm_error err = {0};
    sm_plan plan;
    sm_plan_detail detail;
    sm_source source = sm_source_of("plan", text);
    assert_int_equal(sm_plan_parse(&source, &plan, &err), SM_OK);
    if (sm_train_detail(train, &plan, arena, &detail, &err)) fail_msg("%s", err.sentence);
    return detail;
}

static double bytes_of(const sm_plan_detail *d, sm_collective op, const char *array) {
    double bytes = 0;
    for (int i = 0; i < d->lines.collectives; i++)
        if (d->lines.collective[i].op == op && strcmp(d->lines.collective[i].array, array) == 0)
            bytes += d->lines.collective[i].bytes * d->lines.collective[i].count;
    return bytes;
}

/* Activations travel in four bytes instead of two; gradients in the dtype of the plan either way.
 */
static void activations_are_twice_as_wide(void **state) {
    priced_job j;
    open_job(&j, "llama-3.1-8b", "h100-sxm:8");
    const char *plan = "tensor=8,seq=on,microbatch=1";
    sm_plan_detail usual = detail_of(j.train, plan, j.arena);
    sm_train_set_software(j.train, &sm_train_runtime);
    sm_plan_detail run = detail_of(j.train, plan, j.arena);
    int same = 0;
    for (int i = 0; i < usual.lines.collectives; i++) {
        const sm_plan_collective *c = &usual.lines.collective[i];
        double before = bytes_of(&usual, c->op, c->array), after = bytes_of(&run, c->op, c->array);
        if (fabs(after / before - 2) < 1e-9) same++;
    }
    assert_true(same >= 4);
    assert_true(fabs(run.price.memory.params / usual.price.memory.params - 2) < 1e-9);
    assert_true(run.price.expected_s > usual.price.expected_s);
    sm_train_free(j.train);
    sm_arena_free(j.arena);
}

/* Of E experts with k chosen, slots for all tokens are E/k times those of a balanced load. */
static void experts_have_a_slot_for_every_token(void **state) {
    priced_job j;
    open_job(&j, "mixtral-8x7b", "h100-sxm:8");
    const char *plan = "expert=8,microbatch=1";
    sm_plan_detail usual = detail_of(j.train, plan, j.arena);
    sm_train_set_software(j.train, &sm_train_runtime);
    sm_plan_detail run = detail_of(j.train, plan, j.arena);
    double before = bytes_of(&usual, SM_ALL_TO_ALL, "z");
    double after = bytes_of(&run, SM_ALL_TO_ALL, "z");
    assert_true(before > 0 && fabs(after / before - 2 * 8 / 2) < 1e-9);
    sm_train_free(j.train);
    sm_arena_free(j.arena);
}

/* The optimizer's state holds no second copy of weights that are in single precision. */
static void weights_are_their_own_master_copy(void **state) {
    priced_job j;
    open_job(&j, "llama-3.1-8b", "h100-sxm:8");
    sm_plan_detail usual = detail_of(j.train, "tensor=8,optimizer=adam-no-master", j.arena);
    sm_train_set_software(j.train, &sm_train_runtime);
    sm_plan_detail adam = detail_of(j.train, "tensor=8,optimizer=adam", j.arena);
    sm_plan_detail none = detail_of(j.train, "tensor=8,optimizer=adam-no-master", j.arena);
    assert_true(fabs(adam.price.memory.optimizer / none.price.memory.optimizer - 1) < 1e-12);
    assert_true(fabs(none.price.memory.optimizer / usual.price.memory.optimizer - 1) < 1e-12);
    sm_train_free(j.train);
    sm_arena_free(j.arena);
}

static double op_s(priced_job *j, const char *text, const char *name, sm_phase phase) {
    sm_error err = {0};
    sm_plan plan;
    sm_plan_detail d;
    sm_source source = sm_source_of("plan", text);
    assert_int_equal(sm_plan_parse(&source, &plan, &err), SM_OK);
    if (sm_train_ops(j->train, &plan, j->arena, &d, &err)) fail_msg("%s", err.sentence);
    for (int i = 0; i < d.lines.ops; i++)
        if (strcmp(d.lines.op[i].op, name) == 0 && d.lines.op[i].phase == phase &&
            !d.lines.op[i].again)
            return d.lines.op[i].time_s / d.lines.op[i].count;
    fail_msg("no op %s", name);
    return 0;
}

/* 128 queries at a time meet the keys up to their end: of 2048, (128 + 256 + ... + 2048) / 16 =
 * 1088 on average; of the second half of the sequence, 1024 + (128 + ... + 1024) / 8 = 1600. */
static void the_chip_with_the_end_of_a_sequence_attends_most(void **state) {
    priced_job j;
    open_job(&j, "llama-3.1-8b", "h100-sxm:8");
    sm_calibration c = *sm_train_calibration(j.train);
    c.launch_s = 1e-12;
    sm_train_set_software(j.train, &sm_train_runtime);
    sm_train_set_calibration(j.train, &c);
    for (int way = SM_PHASE_FORWARD; way <= SM_PHASE_BACKWARD_INPUT; way++) {
        double whole = op_s(&j, "data=8,microbatch=1", "o", (sm_phase)way);
        double half =
            op_s(&j, "data=4,context=2,context_by=gather,microbatch=1", "o", (sm_phase)way);
        double heads =
            op_s(&j, "data=4,context=2,context_by=heads,microbatch=1", "o", (sm_phase)way);
        assert_true(fabs(half / whole - 0.5 * 1600 / 1088) < 1e-6);
        assert_true(fabs(heads / whole - 0.5) < 1e-6);
    }
    sm_train_free(j.train);
    sm_arena_free(j.arena);
}

/* Eight chips that share eight sequences attend no quicker than with a sequence each: a kernel of
 * fewer rows masks less of a block in vain and fills less of the matrix units. */
static void a_ring_of_tpus_attends_no_quicker_than_one_chip(void **state) {
    static const char *const systems[] = {"tpu-v5p:2x2x2", "tpu-v5e:2x4", "tpu-v6e:2x4"};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        for (int way = SM_PHASE_FORWARD; way <= SM_PHASE_BACKWARD_INPUT; way++) {
            priced_job j;
            open_job(&j, "llama-3.1-8b", systems[i]);
            double alone = op_s(&j, "data=8,microbatch=1", "o", (sm_phase)way);
            double ring = op_s(&j, "context=8,context_by=ring,microbatch=8", "o", (sm_phase)way);
            if (!(ring >= alone * (1 - 1e-3)))
                fail_msg("%s, %d: %g s, %g alone", systems[i], way, ring, alone);
            sm_train_free(j.train);
            sm_arena_free(j.arena);
        }
}

/* The launch of an op is that of the calibration, not the gap of a GPU's queue. */
static void an_op_costs_its_launch(void **state) {
    priced_job j;
    open_job(&j, "llama-3.1-8b", "h100-sxm:8");
    sm_calibration c = *sm_train_calibration(j.train);
    sm_train_set_software(j.train, &sm_train_runtime);
    c.launch_s = 1e-6;
    sm_train_set_calibration(j.train, &c);
    double before = op_s(&j, "data=8", "x.2", SM_PHASE_FORWARD);
    c.launch_s = 5e-4;
    sm_train_set_calibration(j.train, &c);
    double after = op_s(&j, "data=8", "x.2", SM_PHASE_FORWARD);
    assert_true(fabs(after - before - 4.99e-4) < 1e-9);
    sm_train_free(j.train);
    sm_arena_free(j.arena);
}

/* Of every model of the catalogue: it is refused, as `run train` refuses it, or has a price. */
static void what_cannot_be_run_is_refused(void **state) {
    const char *refused[] = {"bert-base", "vit-base", "gemma-4-26b-a4b", "zamba-7b",
                             "deepseek-v3.2"};
    size_t n = 0, runs = 0, tells = 0;
    FOR_CATALOGUE(i) {
        if (SANITIZED && i % 2) continue;
        priced_job j;
        sm_error err = {0};
        open_job(&j, sm_catalogue_at(i)->name, "h100-sxm");
        sm_status status = sm_program_runs(&j.model, 128, false, &err);
        for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
            if (strcmp(sm_catalogue_at(i)->name, refused[k]) == 0) n += status == SM_BAD_INPUT;
        if (status) assert_non_null(strstr(err.sentence, "cannot be run"));
        tells += status && sm_program_runs(&j.model, 128, true, &err) == SM_OK;
        if (!status) {
            sm_train_set_software(j.train, &sm_train_runtime);
            detail_of(j.train, "data=1,microbatch=32", j.arena);
            runs++;
        }
        sm_train_free(j.train);
        sm_arena_free(j.arena);
    }
    assert_true(REPEATED || n == sizeof refused / sizeof *refused);
    assert_true(runs > 20 && (SANITIZED || tells > 2)); /* a few models tell */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_twice_as_wide),
        cmocka_unit_test(experts_have_a_slot_for_every_token),
        cmocka_unit_test(weights_are_their_own_master_copy),
        cmocka_unit_test(the_chip_with_the_end_of_a_sequence_attends_most),
        cmocka_unit_test(a_ring_of_tpus_attends_no_quicker_than_one_chip),
        cmocka_unit_test(an_op_costs_its_launch),
        cmocka_unit_test(what_cannot_be_run_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

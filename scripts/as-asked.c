/* What `train` prints of measured steps whose software it is not told: each row's plan under the
 * constants of the framework that runs it best, as src/answer/train/train_frameworks.c chooses.
 *
 *   as-asked FILE...       one line a file: rows, median, 90th percentile, bias, in the interval
 */
#include "scalemodel/answer.h"
#include "scalemodel/io.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct asking {
    sm_arena *arena;
    sm_frameworks *all;
    double *error; /* on the logarithm */
    int n, within;
} asking;

/* No search chooses them, and a row says what its code base does. */
static uint64_t keys_of(const sm_plan *plan, const sm_model *model) {
    static const sm_plan_key own[] = {SM_PLAN_DTYPE, SM_PLAN_OPTIMIZER, SM_PLAN_GRADIENT,
                                      SM_PLAN_ATTENTION};
    uint64_t keys = sm_plan_keys_for(plan, model);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) keys &= ~(1ull << own[i]);
    return keys;
}

static sm_prediction ask(asking *a, sm_truth_case *c, const sm_truth_row *row) {
    const sm_chip *chip = sm_truth_row_chip(row);
    const sm_calibration *usual = sm_calibration_of(chip);
    const sm_model *model = sm_truth_case_model(c);
    const sm_system system = {.chip = *chip,
                              .chips = (int)row->of.training.chips,
                              .torus_dims = chip->fabric == SM_FABRIC_SWITCH ? 0 : 3};
    const sm_plan_job job = {model, &system, row->of.training.global_batch_sequences};
    const sm_step_sizes step = sm_step_sizes_of(model, system.chips, row->of.training.seq_len);
    sm_prediction best, one;
    sm_error err;
    sm_truth_predict(c, usual, &best);
    if (best.unknown) return best;
    const sm_plan plan = best.plan;
    double least = HUGE_VAL;
    for (int k = 0; k < a->all->n; k++) {
        const sm_framework *f = a->all->of[k];
        const sm_framework_job asked = {f, SM_EVIDENCE_TRAINING, model, chip};
        const sm_calibration *own = NULL;
        if (sm_framework_use(f) != SM_PLAN_TRAINING || sm_framework_is_program(f) ||
            !sm_framework_runs_on(f, &system) ||
            sm_framework_refuses(f, &plan, keys_of(&plan, model), &job) ||
            sm_framework_calibration(&asked, NULL, a->arena, &own, &err))
            continue;
        if (!own) own = usual;
        sm_truth_predict(c, own, &one);
        if (one.unknown) continue;
        char beyond[80];
        sm_calibration_outside(own, &step, beyond, sizeof beyond);
        if (beyond[0] || sm_calibration_is_usual(own, chip))
            sm_interval_widen(one.expected_s, SM_UNMEASURED_WIDER, &one.low_s, &one.high_s);
        if (one.high_s < least) best = one;
        least = fmin(least, one.high_s);
    }
    return best;
}

static void add_row(asking *a, const sm_truth_row *row) {
    const sm_training_row *t = &row->of.training;
    sm_error err;
    sm_truth_case *c = NULL;
    if (t->duplicate_of[0] || !(row->measured_s > 0) || !sm_truth_row_chip(row)) return;
    if (sm_truth_case_new(row, &c, &err)) fprintf(stderr, "as-asked: %s\n", err.sentence), exit(2);
    sm_prediction p = ask(a, c, row);
    if (!p.unknown) {
        a->error[a->n++] = log(p.expected_s / row->measured_s);
        a->within += row->measured_s >= p.low_s && row->measured_s <= p.high_s;
    }
    sm_truth_case_free(c);
}

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int main(int n, char **file) {
    sm_error err;
    asking a = {.arena = sm_arena_new()};
    if (!a.arena || sm_frameworks_shipped(a.arena, &a.all, &err)) return 2;
    for (int i = 1; i < n; i++) {
        sm_truth truth;
        if (sm_truth_read(file[i], a.arena, &truth, &err))
            return fprintf(stderr, "as-asked: %s: %s\n", file[i], err.sentence), 2;
        a.error = sm_arena_array(a.arena, truth.n, sizeof *a.error);
        a.n = a.within = 0;
        for (size_t k = 0; a.error && k < truth.n; k++) add_row(&a, &truth.row[k]);
        if (!a.error || a.n == 0) return 2;
        qsort(a.error, (size_t)a.n, sizeof *a.error, by_size);
        double bias = expm1(a.error[a.n / 2]);
        for (int k = 0; k < a.n; k++) a.error[k] = fabs(expm1(a.error[k]));
        qsort(a.error, (size_t)a.n, sizeof *a.error, by_size);
        printf("%d %.4f %.4f %.4f %.4f\n", a.n, a.error[a.n / 2], a.error[a.n * 9 / 10], bias,
               (double)a.within / a.n);
    }
    sm_arena_free(a.arena);
    return 0;
}

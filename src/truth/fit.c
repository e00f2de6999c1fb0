/* The fit of a calibration to measured rows, and its error on rows that it has not seen. */
#include "fit.h"
#include <math.h>
#include <string.h>

/* The rows say more than the prior did when their information is the larger: the variance that is
 * left is below half of the prior's. */
#define IDENTIFIED 0.7071

static double relative(double residual) { return fabs(expm1(residual)); }

/* Median and 90th percentile of |expected / measured - 1|; those that are not known are left out.
 */
static double error_quantile(fit_problem *f, const double *residual, double q) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (isfinite(residual[i])) f->scratch[n++] = relative(residual[i]);
    return sm_quantile(f->scratch, n, q);
}

static void residuals_under(fit_problem *f, const sm_calibration *c, double *out) {
    for (size_t i = 0; i < f->n; i++) out[i] = fit_residual(f, i, c);
}

/* Each group in turn is predicted by constants fitted to the others. NAN when there is one group.
 */
static void hold_out(fit_problem *f, fit_group by, int groups, const double *u, double *out) {
    for (size_t i = 0; i < f->n; i++) out[i] = NAN;
    for (int group = 0; group < groups && groups > 1; group++) {
        fit_solution s;
        memset(&s, 0, sizeof s);
        memcpy(s.u, u, sizeof s.u);
        fit_solve(f, by, group, &s);
        sm_calibration c = fit_calibration(f, s.u);
        for (size_t i = 0; i < f->n; i++)
            if (fit_is_held_out(&f->row[i], by, group)) out[i] = fit_residual(f, i, &c);
    }
}

static sm_regime regime_of(sm_truth_kind kind) {
    static const sm_regime regimes[SM_TRUTH_KIND_COUNT] = {
        [SM_TRUTH_GEMM] = SM_REGIME_matmul,           [SM_TRUTH_ATTENTION] = SM_REGIME_attention,
        [SM_TRUTH_COLLECTIVE] = SM_REGIME_collective, [SM_TRUTH_MEMOP] = SM_REGIME_memory,
        [SM_TRUTH_TRAINING] = SM_REGIME_step,         [SM_TRUTH_INFERENCE] = SM_REGIME_decode};
    return regimes[kind];
}

/* To four digits, which is more than any fit knows. */
static double rounded(double value) {
    if (!(value > 0.0)) return value;
    double unit = pow(10.0, floor(log10(value)) - 3.0);
    return unit < 1.0 ? round(value / unit) / round(1.0 / unit) : round(value / unit) * unit;
}

/* The q-quantile of a sample too small for its extremes: the value that a share q of the rows to
 * come lies below (of n rows, the i-th is the i / (n + 1) quantile). */
static double foreseen(double *values, size_t n, double q) {
    double at = (q * ((double)n + 1.0) - 1.0) / ((double)n - 1.0);
    return sm_quantile(values, n, fmin(fmax(at, 0.0), 1.0));
}

enum { FEWEST = 5 }; /* rows that an interval is learned from */

/* The 10 % and 90 % quantiles of measured / expected on rows held out, of one kind and not of this
 * group (-1: of all). false where the rows are too few. */
static bool learn_interval(fit_problem *f, const double *residual, sm_truth_kind kind, int group,
                           sm_calibration *c) {
    size_t n = 0, of_kind = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->row[i].row->kind != kind || !isfinite(residual[i])) continue;
        of_kind++;
        if (f->row[i].model != group) f->scratch[n++] = -residual[i];
    }
    if (of_kind > 0) c->interval[regime_of(kind)].n = 0; /* what was learned with other constants */
    if (n < FEWEST) return false;
    c->interval[regime_of(kind)].lowest = rounded(exp(foreseen(f->scratch, n, 0.1)));
    c->interval[regime_of(kind)].highest = rounded(exp(foreseen(f->scratch, n, 0.9)));
    c->interval[regime_of(kind)].n = (int)n;
    return true;
}

static void describe_constants(const fit_problem *f, const fit_solution *s, sm_fit *fit) {
    fit->constants = f->p;
    for (int j = 0; j < f->p; j++) {
        sm_constant which = f->free[j];
        double prior = fit_prior_deviation(which, f->u0[j]);
        bool identified = s->deviation[j] < IDENTIFIED * prior;
        fit->constant[j] =
            (sm_fit_constant){.which = which,
                              .before = sm_calibration_get(f->start, which),
                              .after = sm_calibration_get(&fit->calibration, which),
                              .deviation = s->deviation[j] * fit_relative(which, s->u[j]),
                              .identified = identified};
        if (identified) fit->calibration.fitted |= 1u << which;
        else fit->calibration.fitted &= ~(1u << which);
    }
}

static sm_status rooms_of(fit_problem *f, const sm_fit_options *options, double *residual[3],
                          sm_fit *fit, sm_error *err) {
    for (int i = 0; i < 3; i++) {
        residual[i] = sm_arena_array(options->arena, f->n, sizeof(double));
        if (!residual[i]) return sm_fail_memory(err);
    }
    fit->row = sm_arena_array(options->arena, f->n, sizeof *fit->row);
    return fit->row ? SM_OK : sm_fail_memory(err);
}

static void list_rows(const fit_problem *f, const fit_solution *s, double *const residual[3],
                      sm_fit *fit) {
    for (size_t i = 0; i < f->n; i++)
        fit->row[i] = (sm_fit_row){.row = f->row[i].row,
                                   .in_sample = expm1(residual[0][i]),
                                   .held_out = expm1(residual[1][i]),
                                   .held_out_by_source = expm1(residual[2][i]),
                                   .outlier = fabs(residual[0][i]) >
                                              FIT_OUTLIER * s->spread[f->row[i].row->kind]};
}

static sm_status describe_rows(fit_problem *f, const fit_solution *s, const sm_fit_options *options,
                               sm_fit *fit, sm_error *err) {
    double *residual[3];
    for (int j = 0; j < f->p; j++) f->unfelt[j] = s->sensitivity[j] <= 0.0;
    sm_status status = rooms_of(f, options, residual, fit, err);
    if (status) return status;
    residuals_under(f, f->start, residual[0]);
    fit->before_median = error_quantile(f, residual[0], 0.5);
    residuals_under(f, &fit->calibration, residual[0]);
    int folds = options->folds > 1 && options->folds < f->models ? options->folds : f->models;
    for (size_t i = 0; i < f->n; i++) f->row[i].model %= folds;
    hold_out(f, FIT_BY_MODEL, folds, s->u, residual[1]);
    hold_out(f, FIT_BY_SOURCE, f->sources, s->u, residual[2]);
    fit->in_sample_median = error_quantile(f, residual[0], 0.5);
    fit->held_out_median = error_quantile(f, residual[1], 0.5);
    fit->held_out_p90 = error_quantile(f, residual[1], 0.9);
    fit->held_out_by_source_median = error_quantile(f, residual[2], 0.5);
    for (int k = 0; k < SM_TRUTH_KIND_COUNT; k++)
        if (learn_interval(f, residual[1], (sm_truth_kind)k, -1, &fit->calibration))
            fit->learned |= 1u << regime_of((sm_truth_kind)k);
    list_rows(f, s, residual, fit);
    /* Whether each row lies in the interval that the other groups teach. */
    for (int group = 0; group < folds; group++) {
        sm_calibration c = fit->calibration;
        for (int k = 0; k < SM_TRUTH_KIND_COUNT; k++)
            learn_interval(f, residual[1], (sm_truth_kind)k, group, &c);
        for (size_t i = 0; i < f->n; i++) {
            if (f->row[i].model != group || !isfinite(residual[1][i])) continue;
            const sm_truth_row *row = f->row[i].row;
            double low, high, expected = row->measured_s * exp(residual[1][i]);
            sm_calibration_interval(&c, sm_truth_chip(row->chip), regime_of(row->kind), expected,
                                    &low, &high);
            fit->row[i].covered = row->measured_s >= low && row->measured_s <= high;
        }
    }
    return SM_OK;
}

static bool any_identified(const sm_fit *fit) {
    for (int j = 0; j < fit->constants; j++)
        if (fit->constant[j].identified) return true;
    return false;
}

sm_status sm_calibrate(const sm_ready_row *rows, size_t n, const sm_calibration *start,
                       const sm_fit_options *options, sm_fit *fit, sm_error *err) {
    fit_problem f = {.start = start};
    fit_solution s;
    memset(fit, 0, sizeof *fit);
    memset(&s, 0, sizeof s);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        if (!(options->free >> i & 1)) continue;
        sm_constant which = (sm_constant)i;
        double u0 = fit_to_line(which, sm_calibration_get(f.start, which));
        double sigma = fit_prior_deviation(which, u0);
        f.free[f.p] = which;
        f.u0[f.p] = u0;
        f.precision[f.p++] = options->prior_weight / (sigma * sigma);
    }
    if (f.p == 0) return sm_fail(err, SM_NEGATIVE, "no constant is free to be fitted");
    sm_status status = fit_rows_of(rows, n, start, options->arena, &f, err);
    if (status) return status;
    memcpy(s.u, f.u0, sizeof s.u);
    fit_solve(&f, FIT_NO_GROUP, 0, &s);
    fit->calibration = fit_calibration(&f, s.u);
    for (int j = 0; j < f.p; j++) {
        const sm_constant_info *info = sm_constant_of(f.free[j]);
        double value = rounded(sm_calibration_get(&fit->calibration, f.free[j]));
        if (s.u[j] < f.u0[j] || s.u[j] > f.u0[j])
            sm_calibration_set(&fit->calibration, f.free[j],
                               fmin(fmax(value, info->low), info->high));
    }
    if (*f.out_of_memory) return sm_fail_memory(err);
    fit->rows = f.n;
    fit->outliers = s.outliers;
    describe_constants(&f, &s, fit);
    fit_advise(&f, &s, fit->measure_next, sizeof fit->measure_next);
    if (!any_identified(fit))
        return sm_fail(err, SM_NEGATIVE,
                       "%zu row%s say%s no more about any constant than was known before%s%s", f.n,
                       f.n == 1 ? "" : "s", f.n == 1 ? "s" : "",
                       fit->measure_next[0] ? "; measure " : "", fit->measure_next);
    status = describe_rows(&f, &s, options, fit, err);
    return !status && *f.out_of_memory ? sm_fail_memory(err) : status;
}

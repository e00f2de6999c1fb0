/* Timings: their spread, the line through them, and the constants of a model of them. */
#include "scalemodel/measure.h"

#include <math.h>
#include <stdlib.h>

/* ---- spread ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the order statistics around (n - 1) share. */
static double quantile(const double *sorted, int n, double share) {
    double place = share * (n - 1);
    int below = (int)place;
    if (below >= n - 1) return sorted[n - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

sm_spread sm_spread_of(double *sample, int n) {
    sm_spread spread = {.n = 0};
    if (n < 1) return spread;
    qsort(sample, (size_t)n, sizeof *sample, by_size);
    spread.n = n;
    spread.least = sample[0];
    spread.low = quantile(sample, n, 0.25);
    spread.median = quantile(sample, n, 0.5);
    spread.high = quantile(sample, n, 0.75);
    return spread;
}

/* The median of |r|; sorts room. */
static double median_size(const double *r, int n, double *room) {
    for (int i = 0; i < n; i++) room[i] = fabs(r[i]);
    return sm_spread_of(room, n).median;
}

static const double LEAST_SCALE = 0.01;
static double scale_of(const double *r, int n, double *room) {
    return fmax(LEAST_SCALE, 1.4826 * median_size(r, n, room));
}

static bool is_positive(double x) { return x > 0.0 && x < INFINITY; }

/* ---- the line ---- */

typedef struct line_rows {
    const double *bytes, *seconds;
    int n;
    double *weight, *residual, *room;
} line_rows;

/* Weighted least squares of latency u + slope v = 1, where u = 1 / seconds, v = bytes / seconds:
 * the normal equations, and where one of the two would be negative the other alone. Bytes are
 * counted in units of the largest, so that the sums are of one size. */
static sm_line solve(const line_rows *rows, double unit) {
    double uu = 0.0, uv = 0.0, vv = 0.0, u1 = 0.0, v1 = 0.0;
    for (int i = 0; i < rows->n; i++) {
        double w = rows->weight[i], u = 1.0 / rows->seconds[i];
        double v = rows->bytes[i] / unit * u;
        uu += w * u * u, uv += w * u * v, vv += w * v * v;
        u1 += w * u, v1 += w * v;
    }
    double determinant = uu * vv - uv * uv;
    sm_line line = {(u1 * vv - v1 * uv) / determinant, (v1 * uu - u1 * uv) / determinant};
    if (!(line.latency_s >= 0.0)) line = (sm_line){0.0, v1 / vv};
    if (!(line.s_per_byte >= 0.0)) line = (sm_line){u1 / uu, 0.0};
    line.s_per_byte /= unit;
    return line;
}

static void reweigh(line_rows *rows, sm_line line) {
    for (int i = 0; i < rows->n; i++)
        rows->residual[i] = sm_line_at(line, rows->bytes[i]) / rows->seconds[i] - 1.0;
    double scale = scale_of(rows->residual, rows->n, rows->room);
    for (int i = 0; i < rows->n; i++)
        rows->weight[i] = 1.0 / sqrt(1.0 + pow(rows->residual[i] / scale, 2.0));
}

static void fit_line(line_rows *rows, double unit, sm_measured_line *out) {
    enum { ROUNDS = 60 };
    for (int i = 0; i < rows->n; i++) rows->weight[i] = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        out->line = solve(rows, unit);
        reweigh(rows, out->line);
    }
    const sm_line *line = &out->line;
    out->crossover_bytes = line->s_per_byte > 0.0 ? line->latency_s / line->s_per_byte : 0.0;
    out->error = median_size(rows->residual, rows->n, rows->room);
}

static sm_status check_line(const double *bytes, const double *seconds, int n, double *most,
                            sm_error *err) {
    bool differ = false;
    *most = 0.0;
    for (int i = 0; i < n; i++) {
        if (!(bytes[i] >= 0.0 && bytes[i] < INFINITY) || !is_positive(seconds[i]))
            return sm_fail(err, SM_BAD_INPUT, "timing %d is %g s for %g bytes", i + 1, seconds[i],
                           bytes[i]);
        differ = differ || bytes[i] < bytes[0] || bytes[i] > bytes[0];
        *most = fmax(*most, bytes[i]);
    }
    if (differ) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "a line needs timings of two sizes");
}

sm_status sm_measure_line(const double *bytes, const double *seconds, int n, sm_measured_line *out,
                          sm_error *err) {
    double most;
    sm_status status = check_line(bytes, seconds, n, &most, err);
    if (status) return status;
    double *room = sm_calloc(3 * (size_t)n, sizeof *room);
    if (!room) return sm_fail_memory(err);
    line_rows rows = {bytes, seconds, n, room, room + n, room + 2 * n};
    fit_line(&rows, most, out);
    sm_free(room);
    return SM_OK;
}

/* ---- constants of a model ---- */

typedef struct search {
    sm_time_model model;
    void *context;
    const double *seconds;
    int rows, constants;
    const sm_measured_constant *range;
    double scale, *residual, *room;
} search;

/* False when the model gives no time. */
static bool residuals(const search *s, const double *constant) {
    for (int i = 0; i < s->rows; i++) {
        double model_s = s->model(constant, i, s->context);
        if (!is_positive(model_s)) return false;
        s->residual[i] = log(model_s / s->seconds[i]);
    }
    return true;
}

static double loss(const search *s, const double *constant) {
    double sum = 0.0;
    if (!residuals(s, constant)) return INFINITY;
    for (int i = 0; i < s->rows; i++) sum += sqrt(1.0 + pow(s->residual[i] / s->scale, 2.0)) - 1.0;
    return sum;
}

static double within(const sm_measured_constant *range, double value) {
    return fmin(range->high, fmax(range->low, value));
}

/* One constant a step up or down; true when that was better. */
static bool improve(const search *s, int which, double step, double *constant, double *best) {
    double kept = constant[which];
    for (int way = -1; way <= 1; way += 2) {
        constant[which] = within(&s->range[which], kept * exp(way * step));
        double now = loss(s, constant);
        if (now < *best) {
            *best = now;
            return true;
        }
    }
    constant[which] = kept;
    return false;
}

/* Go on where all constants went (Hooke and Jeeves, J. ACM 8 (1961) 212). */
static void follow(const search *s, const double *before, double *constant, double *best) {
    double next[SM_MOST_MEASURED_CONSTANTS];
    for (int c = 0; c < s->constants; c++)
        next[c] = within(&s->range[c], constant[c] * constant[c] / before[c]);
    double now = loss(s, next);
    if (!(now < *best)) return;
    *best = now;
    for (int c = 0; c < s->constants; c++) constant[c] = next[c];
}

static double descend(const search *s, double *constant) {
    enum { MOST_ROUNDS = 2000 };
    double step = 0.5, best = loss(s, constant), before[SM_MOST_MEASURED_CONSTANTS];
    for (int round = 0; step > 1e-5 && round < MOST_ROUNDS; round++) {
        bool better = false;
        for (int c = 0; c < s->constants; c++) before[c] = constant[c];
        for (int c = 0; c < s->constants; c++)
            better = improve(s, c, step, constant, &best) || better;
        if (better) follow(s, before, constant, &best);
        else step *= 0.5;
    }
    return best;
}

/* The number-th point of a grid of three per constant, evenly on the logarithm. */
static void grid_point(const search *s, int number, double *constant) {
    for (int c = 0; c < s->constants; c++, number /= 3) {
        double share = 0.2 + 0.3 * (number % 3);
        constant[c] = s->range[c].low * pow(s->range[c].high / s->range[c].low, share);
    }
}

static void search_all(const search *s, double *constant) {
    double best = descend(s, constant), other[SM_MOST_MEASURED_CONSTANTS];
    int points = 1;
    for (int c = 0; c < s->constants; c++) points *= 3;
    for (int i = 0; i < points; i++) {
        grid_point(s, i, other);
        double found = descend(s, other);
        if (!(found < best)) continue;
        best = found;
        for (int c = 0; c < s->constants; c++) constant[c] = other[c];
    }
}

static sm_status check_search(const search *s, sm_error *err) {
    if (s->rows < 1 || s->constants < 1 || s->constants > SM_MOST_MEASURED_CONSTANTS)
        return sm_fail(err, SM_BAD_INPUT, "%d constants cannot be fitted to %d timings",
                       s->constants, s->rows);
    for (int i = 0; i < s->rows; i++)
        if (!is_positive(s->seconds[i]))
            return sm_fail(err, SM_BAD_INPUT, "timing %d is %g s", i + 1, s->seconds[i]);
    for (int c = 0; c < s->constants; c++) {
        const sm_measured_constant *k = &s->range[c];
        if (!is_positive(k->low) || !is_positive(k->high) || !(k->low <= k->value) ||
            !(k->value <= k->high))
            return sm_fail(err, SM_BAD_INPUT, "constant %d starts at %g, not in %g to %g", c + 1,
                           k->value, k->low, k->high);
    }
    return SM_OK;
}

static sm_status run_search(search *s, double *constant, double *error, sm_error *err) {
    enum { ROUNDS = 5 };
    s->scale = 0.1;
    if (!residuals(s, constant))
        return sm_fail(err, SM_BAD_INPUT, "the model gives no time where its constants start");
    search_all(s, constant);
    for (int round = 0; round < ROUNDS && residuals(s, constant); round++) {
        s->scale = scale_of(s->residual, s->rows, s->room);
        descend(s, constant);
    }
    residuals(s, constant);
    *error = median_size(s->residual, s->rows, s->room);
    return SM_OK;
}

sm_status sm_measure_constants(sm_time_model model, void *context, const double *seconds, int rows,
                               sm_measured_constant *constant, int constants, double *error,
                               sm_error *err) {
    search s = {.model = model, .context = context, .seconds = seconds, .rows = rows};
    s.constants = constants;
    s.range = constant;
    sm_status status = check_search(&s, err);
    if (status) return status;
    double *room = sm_calloc(2 * (size_t)rows, sizeof *room), at[SM_MOST_MEASURED_CONSTANTS];
    if (!room) return sm_fail_memory(err);
    s.residual = room;
    s.room = room + rows;
    for (int c = 0; c < constants; c++) at[c] = constant[c].value;
    status = run_search(&s, at, error, err);
    for (int c = 0; !status && c < constants; c++) constant[c].value = at[c];
    sm_free(room);
    return status;
}

/* Timings: their spread, the line through them, and the constants of a model of them. The line is
 * Hockney's t = latency + bytes / bandwidth (R. W. Hockney, Parallel Computing 20 (1994) 389).
 * Constants minimise the robust sum over rows of log(model / measured), as search.h has it. */
#include "scalemodel/measure.h"
#include "scalemodel/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- spread ---- */

sm_spread sm_spread_of(double *sample, int n) {
    sm_spread spread = {.n = 0};
    if (n < 1) return spread;
    spread.n = n;
    spread.least = sm_quantile(sample, (size_t)n, 0.0);
    spread.low = sm_quantile(sample, (size_t)n, 0.25);
    spread.median = sm_quantile(sample, (size_t)n, 0.5);
    spread.high = sm_quantile(sample, (size_t)n, 0.75);
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
    enum { ROUNDS = 60 };
    assert(rows.n >= 2 && most > 0.0);
    for (int i = 0; i < rows.n; i++) rows.weight[i] = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        out->line = solve(&rows, most);
        for (int i = 0; i < rows.n; i++)
            rows.residual[i] = sm_line_at(out->line, rows.bytes[i]) / rows.seconds[i] - 1.0;
        double scale = scale_of(rows.residual, rows.n, rows.room);
        for (int i = 0; i < rows.n; i++) rows.weight[i] = sm_soft_weight(rows.residual[i] / scale);
    }
    const sm_line *line = &out->line;
    out->crossover_bytes = line->s_per_byte > 0.0 ? line->latency_s / line->s_per_byte : 0.0;
    out->error = median_size(rows.residual, rows.n, rows.room);
    sm_free(room);
    return SM_OK;
}

/* ---- constants of a model ---- */

/* Constants are fitted as their logarithms. */
typedef struct fitting {
    const sm_timings *timings;
    int constants;
    double *room;
} fitting;

/* A model without a time is as far from the timing as can be. */
static void residuals(void *context, const double *u, double *residual) {
    static const double NO_TIME = 100.0;
    const fitting *f = context;
    const sm_timings *t = f->timings;
    double constant[SM_MOST_MEASURED_CONSTANTS];
    for (int c = 0; c < f->constants; c++) constant[c] = exp(u[c]);
    for (int i = 0; i < t->rows; i++) {
        double model_s = t->model(constant, i, t->context);
        residual[i] = is_positive(model_s) ? log(model_s / t->seconds[i]) : NO_TIME;
    }
}

static const double FIRST_SCALE = 0.1;
static void spreads(void *context, const double *residual, bool settled, double *spread) {
    const fitting *f = context;
    int rows = f->timings->rows;
    double scale = settled ? scale_of(residual, rows, f->room) : FIRST_SCALE;
    for (int i = 0; i < rows; i++) spread[i] = scale;
}

/* From the start and from every point of a grid of three per constant, evenly on the logarithm; the
 * best is kept. */
static void search_all(const sm_robust_fit *f, double *u) {
    enum { MOST_ROUNDS = 100 };
    int points = 1;
    for (int c = 0; c < f->parameters; c++) points *= 3;
    sm_robust_descend(f, MOST_ROUNDS, u);
    double best = sm_robust_merit(f, FIRST_SCALE, u), other[SM_MAX_PARAMETERS] = {0};
    for (int i = 0; i < points; i++) {
        for (int c = 0, number = i; c < f->parameters; c++, number /= 3)
            other[c] = f->low[c] + (f->high[c] - f->low[c]) * (0.2 + 0.3 * (number % 3));
        sm_robust_descend(f, MOST_ROUNDS, other);
        double found = sm_robust_merit(f, FIRST_SCALE, other);
        if (!(found < best)) continue;
        best = found;
        memcpy(u, other, sizeof other);
    }
}

static sm_status check_timings(const sm_timings *t, const sm_measured_constant *constant,
                               int constants, sm_error *err) {
    double value[SM_MOST_MEASURED_CONSTANTS];
    if (t->rows < 1 || constants < 1 || constants > SM_MOST_MEASURED_CONSTANTS)
        return sm_fail(err, SM_BAD_INPUT, "%d constants cannot be fitted to %d timings", constants,
                       t->rows);
    for (int c = 0; c < constants; c++) {
        const sm_measured_constant *k = &constant[c];
        value[c] = k->value;
        if (!is_positive(k->low) || !is_positive(k->high) || !(k->low <= k->value) ||
            !(k->value <= k->high))
            return sm_fail(err, SM_BAD_INPUT, "constant %d starts at %g, not in %g to %g", c + 1,
                           k->value, k->low, k->high);
    }
    for (int i = 0; i < t->rows; i++) {
        if (!is_positive(t->seconds[i]))
            return sm_fail(err, SM_BAD_INPUT, "timing %d is %g s", i + 1, t->seconds[i]);
        if (!is_positive(t->model(value, i, t->context)))
            return sm_fail(err, SM_BAD_INPUT, "the model gives no time where its constants start");
    }
    return SM_OK;
}

static void fit_constants(fitting *t, double *room, sm_measured_constant *constant, double *error) {
    size_t n = (size_t)t->timings->rows;
    double u[SM_MAX_PARAMETERS] = {0}, *weight = room, *residual = room + n;
    sm_robust_fit f = {.context = t,
                       .residuals = residuals,
                       .spreads = spreads,
                       .rows = n,
                       .weight = weight,
                       .parameters = t->constants,
                       .room = room + 3 * n};
    t->room = room + 2 * n;
    for (size_t i = 0; i < n; i++) weight[i] = 1.0;
    for (int c = 0; c < t->constants; c++) {
        f.low[c] = log(constant[c].low);
        f.high[c] = log(constant[c].high);
        u[c] = log(constant[c].value);
    }
    search_all(&f, u);
    residuals(t, u, residual);
    *error = median_size(residual, (int)n, t->room);
    for (int c = 0; c < t->constants; c++)
        constant[c].value = fmin(fmax(exp(u[c]), constant[c].low), constant[c].high);
}

sm_status sm_measure_constants(const sm_timings *timings, sm_measured_constant *constant,
                               int constants, double *error, sm_error *err) {
    sm_status status = check_timings(timings, constant, constants, err);
    if (status) return status;
    size_t n = (size_t)timings->rows;
    double *room = sm_calloc(3 * n + sm_robust_room(n), sizeof *room);
    if (!room) return sm_fail_memory(err);
    fitting f = {timings, constants, NULL};
    fit_constants(&f, room, constant, error);
    sm_free(room);
    return SM_OK;
}

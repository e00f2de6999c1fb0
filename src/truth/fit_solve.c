/* Robust Levenberg-Marquardt: weights from the residuals, a numeric Jacobian, damped steps. */
#include "fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 0.01        /* of the numeric derivative, on the line */
#define SMALL_GAIN 1e-3  /* of the objective: less is not worth a step */
#define LONGEST_MOVE 0.7 /* of one constant in one step: a factor of two */
#define FLOOR 0.05       /* least spread: software releases alone differ by 4 % */
#define FLOOR_ROWS 4.0   /* as many rows say so */
/* Most: a spread that grew with what is not yet fitted would make any error look like noise. */
#define CEILING 0.10    /* steps: one configuration differs by 9 % between releases at the 90th % */
#define OF_KERNELS 0.30 /* honest sources of one kernel differ by 10 to 20 % */
enum {
    FRESH_FOR = 4,      /* steps that one Jacobian is kept up for */
    COMMON_ROUNDS = 10, /* at most, until kinds that contradict one another have settled */
    MOST_ROUNDS = 40,
    MOST_TRIES = 8,
    P = SM_CONSTANT_COUNT
};

bool fit_is_held_out(const fit_row *row, fit_group by, int group) {
    if (by == FIT_BY_MODEL) return row->model == group;
    return by == FIT_BY_SOURCE && row->source == group;
}

sm_calibration fit_calibration(const fit_problem *f, const double *u) {
    sm_calibration c = *f->start;
    for (int j = 0; j < f->p; j++)
        if (u[j] != f->u0[j]) /* a constant that has not moved keeps its exact value */
            sm_calibration_set(&c, f->free[j], fit_from_line(f->free[j], u[j]));
    return c;
}

double fit_residual(const fit_row *row, const sm_calibration *c) {
    sm_prediction p;
    sm_truth_predict(row->c, c, &p);
    if (p.unknown || !(p.expected_s > 0.0) || !isfinite(p.expected_s)) return NAN;
    return log(p.expected_s) - row->log_measured;
}

/* ---- weights ---- */

/* The spread of a kind: 1.4826 times the median of |r|, drawn to FLOOR where rows are few, and not
 * beyond what measurements differ by. */
static double spread_of(fit_problem *f, fit_group by, int group, sm_truth_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const fit_row *row = &f->row[i];
        if (row->row->kind != kind || fit_is_held_out(row, by, group)) continue;
        if (isfinite(f->residual[i])) f->scratch[n++] = fabs(f->residual[i]);
    }
    if (n == 0) return FLOOR;
    double median = 1.4826 * sm_quantile(f->scratch, n, 0.5), rows = (double)n;
    double square = (rows * median * median + FLOOR_ROWS * FLOOR * FLOOR) / (rows + FLOOR_ROWS);
    return fmin(fmax(sqrt(square), FLOOR), kind == SM_TRUTH_TRAINING ? CEILING : OF_KERNELS);
}

static int by_size(const void *a, const void *b) {
    const fit_weighed *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

/* The same of all kinds together: the weighted median. */
static double common_spread(fit_problem *f, fit_group by, int group) {
    size_t n = 0, i = 0;
    double total = 0.0, below = 0.0;
    for (size_t k = 0; k < f->n; k++) {
        if (fit_is_held_out(&f->row[k], by, group) || !isfinite(f->residual[k])) continue;
        f->weighed[n++] = (fit_weighed){fabs(f->residual[k]), f->row[k].weight};
        total += f->row[k].weight;
    }
    if (n == 0) return FLOOR;
    qsort(f->weighed, n, sizeof *f->weighed, by_size);
    while (i + 1 < n && below + f->weighed[i].weight < 0.5 * total) below += f->weighed[i++].weight;
    return fmax(1.4826 * f->weighed[i].size, FLOOR);
}

/* The weight of a squared residual that gives the slope of the soft L1 loss. */
static double soft_weight(double z) { return 1.0 / sqrt(1.0 + z * z); }
static double soft_loss(double z) { return sqrt(1.0 + z * z) - 1.0; }

/* w / s^2 over sqrt(1 + (r/s)^2): 0 for rows held out. */
static void reweigh(fit_problem *f, fit_group by, int group, bool settled, fit_solution *s) {
    double common = settled ? 0.0 : common_spread(f, by, group);
    s->rows = s->outliers = 0;
    for (int k = 0; k < SM_TRUTH_KIND_COUNT; k++)
        s->spread[k] = settled ? spread_of(f, by, group, (sm_truth_kind)k) : common;
    for (size_t i = 0; i < f->n; i++) {
        const fit_row *row = &f->row[i];
        f->irls[i] = 0.0;
        if (fit_is_held_out(row, by, group) || !isfinite(f->residual[i])) continue;
        double spread = s->spread[row->row->kind], z = f->residual[i] / spread;
        f->irls[i] = row->weight / (spread * spread) * soft_weight(z);
        s->rows++;
        s->outliers += fabs(z) > FIT_OUTLIER;
    }
}

/* ---- residuals and derivatives of the rows in use ---- */

static void fill_residuals(fit_problem *f, fit_group by, int group, const double *u) {
    sm_calibration c = fit_calibration(f, u);
    for (size_t i = 0; i < f->n; i++)
        f->residual[i] =
            fit_is_held_out(&f->row[i], by, group) ? NAN : fit_residual(&f->row[i], &c);
}

static void fill_jacobian(fit_problem *f, const double *u) {
    for (int j = 0; j < f->p; j++) {
        if (f->unfelt[j]) continue;
        double moved[P];
        memcpy(moved, u, sizeof moved);
        moved[j] += STEP;
        sm_calibration c = fit_calibration(f, moved);
        for (size_t i = 0; i < f->n; i++) {
            double slope = 0.0;
            if (f->irls[i] > 0.0) slope = (fit_residual(&f->row[i], &c) - f->residual[i]) / STEP;
            f->jacobian[i * P + (size_t)j] = isfinite(slope) ? slope : 0.0;
        }
    }
}

/* ---- the normal equations ---- */

typedef struct equations {
    double a[P][P], b[P]; /* a x = b */
} equations;

/* Priors are soft too: one constant may be far off where the rows insist. */
static double prior_deviations(const fit_problem *f, int j, const double *u) {
    return sqrt(f->precision[j]) * (u[j] - f->u0[j]);
}
static double prior_weight(const fit_problem *f, int j, const double *u) {
    return soft_weight(prior_deviations(f, j, u));
}

static void fill_equations(const fit_problem *f, const double *u, equations *e) {
    memset(e, 0, sizeof *e);
    for (size_t i = 0; i < f->n; i++) {
        const double *row = &f->jacobian[i * P];
        if (!(f->irls[i] > 0.0)) continue;
        for (int j = 0; j < f->p; j++) {
            e->b[j] -= f->irls[i] * row[j] * f->residual[i];
            for (int k = 0; k < f->p; k++) e->a[j][k] += f->irls[i] * row[j] * row[k];
        }
    }
    for (int j = 0; j < f->p; j++) {
        double precision = f->precision[j] * prior_weight(f, j, u);
        e->a[j][j] += precision + 1e-9;
        e->b[j] -= precision * (u[j] - f->u0[j]);
    }
}

/* Cholesky: l lower triangular with l l' = a + damping diag(a). */
static void factor(const equations *e, int p, double damping, double l[P][P]) {
    for (int j = 0; j < p; j++)
        for (int i = j; i < p; i++) {
            double sum = e->a[i][j] * (i == j ? 1.0 + damping : 1.0);
            for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / l[j][j];
        }
}

static void solve(double l[P][P], int p, const double *b, double *x) {
    for (int i = 0; i < p; i++) {
        x[i] = b[i];
        for (int k = 0; k < i; k++) x[i] -= l[i][k] * x[k];
        x[i] /= l[i][i];
    }
    for (int i = p - 1; i >= 0; i--) {
        for (int k = i + 1; k < p; k++) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
}

/* ---- steps ---- */

/* The t likelihood at fixed spreads, and the priors. */
static double objective(const fit_problem *f, const fit_solution *s, const double *u) {
    double sum = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        if (!(f->irls[i] > 0.0) || !isfinite(f->residual[i])) continue;
        double z = f->residual[i] / s->spread[f->row[i].row->kind];
        sum += f->row[i].weight * soft_loss(z);
    }
    for (int j = 0; j < f->p; j++) sum += soft_loss(prior_deviations(f, j, u));
    return sum;
}

/* Not beyond the range of the constant, where rows feel nothing any more. */
static double bounded(sm_constant which, double u) {
    const sm_constant_info *info = sm_constant_of(which);
    return fmin(fmax(u, fit_to_line(which, info->low)), fit_to_line(which, info->high));
}

static double move(const fit_problem *f, const double *u, const double *x, double *to) {
    double longest = 0.0;
    memcpy(to, u, sizeof(double) * P);
    for (int j = 0; j < f->p; j++) {
        if (fabs(x[j]) < 1e-12) continue;
        to[j] = bounded(f->free[j], u[j] + fmin(fmax(x[j], -LONGEST_MOVE), LONGEST_MOVE));
        longest = fmax(longest, fabs(to[j] - u[j]));
    }
    return longest;
}

/* Broyden's rank-one update, which saves most of the derivatives: J += (dr - J dx) dx' / dx'dx. */
static void update_jacobian(fit_problem *f, const double *from, const double *to) {
    double dx[P] = {0}, square = 0.0;
    for (int j = 0; j < f->p; j++) {
        dx[j] = to[j] - from[j];
        square += dx[j] * dx[j];
    }
    for (size_t i = 0; i < f->n && square > 0.0; i++) {
        double *row = &f->jacobian[i * P], miss = f->residual[i] - f->previous[i];
        if (!(f->irls[i] > 0.0) || !isfinite(miss)) continue;
        for (int j = 0; j < f->p; j++) miss -= row[j] * dx[j];
        for (int j = 0; j < f->p; j++)
            if (!f->unfelt[j]) row[j] += miss * dx[j] / square;
    }
}

/* One step, more damped until the objective falls; by how much of itself it fell. */
static double step(fit_problem *f, fit_group by, int group, fit_solution *s, double *damping) {
    equations e;
    double l[P][P] = {{0}}, x[P] = {0}, to[P];
    fill_equations(f, s->u, &e);
    double before = objective(f, s, s->u);
    memcpy(f->previous, f->residual, f->n * sizeof *f->previous);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        factor(&e, f->p, *damping, l);
        solve(l, f->p, e.b, x);
        move(f, s->u, x, to);
        fill_residuals(f, by, group, to);
        double after = objective(f, s, to);
        if (after < before) {
            update_jacobian(f, s->u, to);
            memcpy(s->u, to, sizeof to);
            *damping = fmax(*damping / 5.0, 1e-6);
            return (before - after) / before;
        }
        *damping *= 8.0;
    }
    fill_residuals(f, by, group, s->u);
    return 0.0;
}

/* Deviations from the inverse of the normal equations, without damping. */
static void fill_deviations(fit_problem *f, fit_solution *s) {
    equations e;
    double l[P][P] = {{0}}, x[P] = {0}, weights = 0.0;
    fill_jacobian(f, s->u);
    fill_equations(f, s->u, &e);
    factor(&e, f->p, 0.0, l);
    for (size_t i = 0; i < f->n; i++) weights += f->irls[i] > 0.0;
    for (int j = 0; j < f->p; j++) {
        double unit[P] = {0}, square = 0.0;
        unit[j] = 1.0;
        solve(l, f->p, unit, x);
        s->deviation[j] = sqrt(fmax(x[j], 0.0));
        for (size_t i = 0; i < f->n; i++) {
            double slope = f->irls[i] > 0.0 ? f->jacobian[i * P + (size_t)j] : 0.0;
            square += slope * slope;
        }
        s->sensitivity[j] = weights > 0.0 ? sqrt(square / weights) : 0.0;
    }
}

/* Derivatives are taken afresh where the last step gained little, or after FRESH_FOR of them. */
static void descend(fit_problem *f, fit_group by, int group, int rounds, fit_solution *s) {
    double damping = 1e-3;
    fill_residuals(f, by, group, s->u);
    bool settled = !f->mixed;
    reweigh(f, by, group, settled, s);
    int age = FRESH_FOR;
    for (int round = 0; round < rounds; round++) {
        bool fresh = age >= FRESH_FOR;
        if (fresh) {
            fill_jacobian(f, s->u);
            age = 0;
        }
        double gain = step(f, by, group, s, &damping);
        age = gain < SMALL_GAIN ? FRESH_FOR : age + 1;
        if (fresh && gain < SMALL_GAIN) {
            if (settled) break;
            settled = true;
        }
        settled = settled || round >= COMMON_ROUNDS;
        reweigh(f, by, group, settled, s);
    }
}

/* The objective with the least spread for every kind, so that two solutions compare. */
static double merit(fit_problem *f, fit_group by, int group, const fit_solution *s) {
    fit_solution even = *s;
    fill_residuals(f, by, group, s->u);
    reweigh(f, by, group, true, &even);
    for (int k = 0; k < SM_TRUTH_KIND_COUNT; k++) even.spread[k] = FLOOR;
    return objective(f, &even, s->u);
}

/* ---- starts ---- */

/* Steps bound by launches, by the chip, or by a poor network have hills between them, on whose far
 * side a constant is not felt: the descent starts on every side. 0: as it is. */
enum { SIDES = 4, MOST_VALUES = 3, KEPT = 4, FIRST_ROUNDS = 4 };
static const struct side {
    sm_constant which;
    int values;
    double value[MOST_VALUES];
} sides[SIDES] = {{SM_CONSTANT_launch_s, 3, {0, 1e-5, 4e-5}},
                  {SM_CONSTANT_network_efficiency_outer, 3, {0, 0.25, 0.06}},
                  {SM_CONSTANT_network_efficiency_inner, 2, {0, 0.3}},
                  {SM_CONSTANT_overlap, 2, {0, 0.5}}};

typedef struct candidate {
    double merit;
    fit_solution s;
} candidate;

static int index_of(const fit_problem *f, sm_constant which) {
    for (int j = 0; j < f->p; j++)
        if (f->free[j] == which) return j;
    return -1;
}

/* In order of merit, the worst of KEPT + 1 falls out. */
static void insert(candidate *list, int *n, const candidate *c) {
    int at = *n;
    while (at > 0 && list[at - 1].merit > c->merit) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = *c;
    if (*n < KEPT) ++*n;
}

/* Every combination of the sides that are free to move, one side a call. */
static void try_sides(fit_problem *f, int side, const fit_solution *from, candidate *list, int *n) {
    if (side == SIDES) {
        candidate c = {0.0, *from};
        c.merit = merit(f, FIT_NO_GROUP, 0, from);
        insert(list, n, &c);
        return;
    }
    const struct side *which = &sides[side];
    int j = index_of(f, which->which);
    for (int i = 0; i < (j < 0 ? 1 : which->values); i++) {
        fit_solution s = *from;
        if (i > 0) s.u[j] = fit_to_line(which->which, which->value[i]);
        try_sides(f, side + 1, &s, list, n);
    }
}

/* The best few go down some steps; the best of these is where the descent goes on. */
static void best_start(fit_problem *f, fit_solution *s) {
    candidate list[KEPT + 1];
    int n = 0, best = 0;
    try_sides(f, 0, s, list, &n);
    for (int i = 0; i < n; i++) {
        descend(f, FIT_NO_GROUP, 0, FIRST_ROUNDS, &list[i].s);
        list[i].merit = merit(f, FIT_NO_GROUP, 0, &list[i].s);
        if (list[i].merit < list[best].merit) best = i;
    }
    *s = list[best].s;
}

void fit_solve(fit_problem *f, fit_group by, int group, fit_solution *s) {
    if (by == FIT_NO_GROUP) best_start(f, s);
    descend(f, by, group, MOST_ROUNDS, s);
    fill_residuals(f, by, group, s->u);
    reweigh(f, by, group, true, s);
    if (by == FIT_NO_GROUP) fill_deviations(f, s);
}

/* The fit of constants: spreads of the kinds of measurement, and where the robust fit starts. */
#include "fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOOR 0.05     /* least spread: software releases alone differ by 4 % */
#define FLOOR_ROWS 4.0 /* as many rows say so */
/* Most: a spread that grew with what is not yet fitted would make any error look like noise. */
#define CEILING 0.10    /* steps: one configuration differs by 9 % between releases at the 90th % */
#define OF_KERNELS 0.30 /* honest sources of one kernel differ by 10 to 20 % */
enum { MOST_ROUNDS = 40 };

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

double fit_residual(const fit_problem *f, size_t i, const sm_calibration *c) {
    const fit_row *row = &f->row[i];
    sm_prediction p;
    sm_truth_predict(row->c, c, &p);
    if (p.out_of_memory) *f->out_of_memory = true;
    if (p.unknown || !(p.expected_s > 0.0) || !isfinite(p.expected_s)) return NAN;
    return log(p.expected_s) - row->log_measured;
}

/* ---- spreads ---- */

/* The spread of a kind: 1.4826 times the median of |r|, drawn to FLOOR where rows are few, and not
 * beyond what measurements differ by. */
static double spread_of(const fit_problem *f, const double *residual, sm_truth_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->row[i].row->kind == kind && isfinite(residual[i]))
            f->scratch[n++] = fabs(residual[i]);
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
static double common_spread(const fit_problem *f, const double *residual) {
    size_t n = 0, i = 0;
    double total = 0.0, below = 0.0;
    for (size_t k = 0; k < f->n; k++) {
        if (!isfinite(residual[k])) continue;
        f->weighed[n++] = (fit_weighed){fabs(residual[k]), f->weight[k]};
        total += f->weight[k];
    }
    if (n == 0) return FLOOR;
    qsort(f->weighed, n, sizeof *f->weighed, by_size);
    while (i + 1 < n && below + f->weighed[i].weight < 0.5 * total) below += f->weighed[i++].weight;
    return fmax(1.4826 * f->weighed[i].size, FLOOR);
}

/* ---- the robust fit of these rows ---- */

typedef struct held {
    const fit_problem *f;
    fit_group by;
    int group;
} held;

static void residuals(void *context, const double *u, double *residual) {
    const held *h = context;
    sm_calibration c = fit_calibration(h->f, u);
    for (size_t i = 0; i < h->f->n; i++)
        residual[i] =
            fit_is_held_out(&h->f->row[i], h->by, h->group) ? NAN : fit_residual(h->f, i, &c);
}

static void spreads(void *context, const double *residual, bool settled, double *spread) {
    const fit_problem *f = ((const held *)context)->f;
    double of[SM_TRUTH_KIND_COUNT], common = settled ? 0.0 : common_spread(f, residual);
    for (int k = 0; k < SM_TRUTH_KIND_COUNT; k++)
        of[k] = settled ? spread_of(f, residual, (sm_truth_kind)k) : common;
    for (size_t i = 0; i < f->n; i++) spread[i] = of[f->row[i].row->kind];
}

static sm_robust_fit robust_of(const fit_problem *f, held *h) {
    sm_robust_fit r = {.context = h,
                       .residuals = residuals,
                       .spreads = spreads,
                       .settled = !f->mixed,
                       .rows = f->n,
                       .weight = f->weight,
                       .parameters = f->p,
                       .room = f->room};
    for (int j = 0; j < f->p; j++) {
        const sm_constant_info *info = sm_constant_of(f->free[j]);
        r.u0[j] = f->u0[j];
        r.precision[j] = f->precision[j];
        r.unfelt[j] = f->unfelt[j];
        r.low[j] = fit_to_line(f->free[j], info->low);
        r.high[j] = fit_to_line(f->free[j], info->high);
    }
    return r;
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
static void try_sides(const fit_problem *f, const sm_robust_fit *r, int side,
                      const fit_solution *from, candidate *list, int *n) {
    if (side == SIDES) {
        candidate c = {0.0, *from};
        c.merit = sm_robust_merit(r, FLOOR, from->u);
        insert(list, n, &c);
        return;
    }
    const struct side *which = &sides[side];
    int j = index_of(f, which->which);
    for (int i = 0; i < (j < 0 ? 1 : which->values); i++) {
        fit_solution s = *from;
        if (i > 0) s.u[j] = fit_to_line(which->which, which->value[i]);
        try_sides(f, r, side + 1, &s, list, n);
    }
}

/* The best few go down some steps; the best of these is where the descent goes on. */
static void best_start(const fit_problem *f, const sm_robust_fit *r, fit_solution *s) {
    candidate list[KEPT + 1];
    int n = 0, best = 0;
    try_sides(f, r, 0, s, list, &n);
    for (int i = 0; i < n; i++) {
        sm_robust_descend(r, FIRST_ROUNDS, list[i].s.u);
        list[i].merit = sm_robust_merit(r, FLOOR, list[i].s.u);
        if (list[i].merit < list[best].merit) best = i;
    }
    *s = list[best].s;
}

void fit_solve(const fit_problem *f, fit_group by, int group, fit_solution *s) {
    held h = {f, by, group};
    sm_robust_fit r = robust_of(f, &h);
    double *residual = f->room, *spread = f->room + f->n; /* free after the descent */
    if (by == FIT_NO_GROUP) best_start(f, &r, s);
    sm_robust_descend(&r, MOST_ROUNDS, s->u);
    sm_robust_at(&r, s->u, residual, spread);
    s->outliers = 0;
    for (size_t i = 0; i < f->n; i++) {
        s->spread[f->row[i].row->kind] = spread[i];
        s->outliers += isfinite(residual[i]) && fabs(residual[i] / spread[i]) > FIT_OUTLIER;
    }
    if (by == FIT_NO_GROUP) sm_robust_deviations(&r, s->u, s->deviation, s->sensitivity);
}

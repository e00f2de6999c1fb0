/* The robust fit: minimise the sum of w (sqrt(1 + (r/s)^2) - 1) over the rows, the soft L1 loss of
 * residuals r with spreads s, and of the same loss over the priors. Each step solves the weighted
 * normal equations (J' W J + damping D) x = -J' W r with a numeric Jacobian (Levenberg 1944,
 * Marquardt 1963). */
#include "scalemodel/search.h"
#include <assert.h>
#include <math.h>
#include <string.h>

#define STEP 0.01        /* of the numeric derivative, on the line */
#define SMALL_GAIN 1e-3  /* of the objective: less is not worth a step */
#define LONGEST_MOVE 0.7 /* of one parameter in one step: a factor of two of its logarithm */
enum {
    FRESH_FOR = 4,      /* steps that one Jacobian is kept up for */
    COMMON_ROUNDS = 10, /* at most, until the spreads are those of settled parameters */
    MOST_TRIES = 8,
    P = SM_MAX_PARAMETERS
};

double sm_soft_weight(double z) { return 1.0 / sqrt(1.0 + z * z); }
double sm_soft_loss(double z) { return sqrt(1.0 + z * z) - 1.0; }

/* The caller's room: of each row its residual and the one before the step, its spread, how hard it
 * pulls (0: not at all), and its derivatives. */
typedef struct work {
    double *residual, *previous, *spread, *pull, *jacobian;
} work;

size_t sm_robust_room(size_t rows) { return rows * (4 + P); }

static work work_of(const sm_robust_fit *f) {
    double *at = f->room;
    assert(f->parameters > 0 && f->parameters <= P);
    return (work){at, at + f->rows, at + 2 * f->rows, at + 3 * f->rows, at + 4 * f->rows};
}

/* w / s^2 over sqrt(1 + (r/s)^2). */
static void reweigh(const sm_robust_fit *f, work *w, bool settled) {
    f->spreads(f->context, w->residual, settled, w->spread);
    for (size_t i = 0; i < f->rows; i++) {
        w->pull[i] = 0.0;
        if (!isfinite(w->residual[i])) continue;
        double spread = w->spread[i], z = w->residual[i] / spread;
        w->pull[i] = f->weight[i] / (spread * spread) * sm_soft_weight(z);
    }
}

/* `previous` is room for the residuals of a parameter that has moved. */
static void fill_jacobian(const sm_robust_fit *f, work *w, const double *u) {
    for (int j = 0; j < f->parameters; j++) {
        if (f->unfelt[j]) continue;
        double moved[P];
        memcpy(moved, u, sizeof moved);
        moved[j] += STEP;
        f->residuals(f->context, moved, w->previous);
        for (size_t i = 0; i < f->rows; i++) {
            double slope = 0.0;
            if (w->pull[i] > 0.0) slope = (w->previous[i] - w->residual[i]) / STEP;
            w->jacobian[i * P + (size_t)j] = isfinite(slope) ? slope : 0.0;
        }
    }
}

/* ---- the normal equations ---- */

typedef struct equations {
    double a[P][P], b[P]; /* a x = b */
} equations;

/* Priors are soft too: one parameter may be far off where the rows insist. */
static double prior_deviations(const sm_robust_fit *f, int j, const double *u) {
    return sqrt(f->precision[j]) * (u[j] - f->u0[j]);
}

static void fill_equations(const sm_robust_fit *f, const work *w, const double *u, equations *e) {
    memset(e, 0, sizeof *e);
    for (size_t i = 0; i < f->rows; i++) {
        const double *row = &w->jacobian[i * P];
        if (!(w->pull[i] > 0.0)) continue;
        for (int j = 0; j < f->parameters; j++) {
            e->b[j] -= w->pull[i] * row[j] * w->residual[i];
            for (int k = 0; k < f->parameters; k++) e->a[j][k] += w->pull[i] * row[j] * row[k];
        }
    }
    for (int j = 0; j < f->parameters; j++) {
        double precision = f->precision[j] * sm_soft_weight(prior_deviations(f, j, u));
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

static double objective(const sm_robust_fit *f, const work *w, const double *u) {
    double sum = 0.0;
    for (size_t i = 0; i < f->rows; i++)
        if (w->pull[i] > 0.0 && isfinite(w->residual[i]))
            sum += f->weight[i] * sm_soft_loss(w->residual[i] / w->spread[i]);
    for (int j = 0; j < f->parameters; j++) sum += sm_soft_loss(prior_deviations(f, j, u));
    return sum;
}

/* Broyden's rank-one update, which saves most of the derivatives: J += (dr - J dx) dx' / dx'dx. */
static void update_jacobian(const sm_robust_fit *f, work *w, const double *from, const double *to) {
    double dx[P] = {0}, square = 0.0;
    for (int j = 0; j < f->parameters; j++) {
        dx[j] = to[j] - from[j];
        square += dx[j] * dx[j];
    }
    for (size_t i = 0; i < f->rows && square > 0.0; i++) {
        double *row = &w->jacobian[i * P], miss = w->residual[i] - w->previous[i];
        if (!(w->pull[i] > 0.0) || !isfinite(miss)) continue;
        for (int j = 0; j < f->parameters; j++) miss -= row[j] * dx[j];
        for (int j = 0; j < f->parameters; j++)
            if (!f->unfelt[j]) row[j] += miss * dx[j] / square;
    }
}

/* One step, more damped until the objective falls; by how much of itself it fell. */
static double step(const sm_robust_fit *f, work *w, double *u, double *damping) {
    equations e;
    double l[P][P] = {{0}}, x[P] = {0}, to[P];
    fill_equations(f, w, u, &e);
    double before = objective(f, w, u);
    memcpy(w->previous, w->residual, f->rows * sizeof *w->previous);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        factor(&e, f->parameters, *damping, l);
        solve(l, f->parameters, e.b, x);
        /* Not beyond the ends of a parameter, where rows feel nothing any more. */
        memcpy(to, u, sizeof(double) * P);
        for (int j = 0; j < f->parameters; j++) {
            if (fabs(x[j]) < 1e-12) continue;
            double moved = u[j] + fmin(fmax(x[j], -LONGEST_MOVE), LONGEST_MOVE);
            to[j] = fmin(fmax(moved, f->low[j]), f->high[j]);
        }
        f->residuals(f->context, to, w->residual);
        double after = objective(f, w, to);
        if (after < before) {
            update_jacobian(f, w, u, to);
            memcpy(u, to, sizeof to);
            *damping = fmax(*damping / 5.0, 1e-6);
            return (before - after) / before;
        }
        *damping *= 8.0;
    }
    f->residuals(f->context, u, w->residual);
    return 0.0;
}

/* Derivatives are taken afresh where the last step gained little, or after FRESH_FOR of them. */
void sm_robust_descend(const sm_robust_fit *f, int rounds, double *u) {
    work w = work_of(f);
    double damping = 1e-3;
    bool settled = f->settled;
    int age = FRESH_FOR;
    f->residuals(f->context, u, w.residual);
    reweigh(f, &w, settled);
    for (int round = 0; round < rounds; round++) {
        bool fresh = age >= FRESH_FOR;
        if (fresh) {
            fill_jacobian(f, &w, u);
            age = 0;
        }
        double gain = step(f, &w, u, &damping);
        age = gain < SMALL_GAIN ? FRESH_FOR : age + 1;
        if (fresh && gain < SMALL_GAIN) {
            if (settled) break;
            settled = true;
        }
        settled = settled || round >= COMMON_ROUNDS;
        reweigh(f, &w, settled);
    }
}

double sm_robust_merit(const sm_robust_fit *f, double spread, const double *u) {
    work w = work_of(f);
    f->residuals(f->context, u, w.residual);
    reweigh(f, &w, true);
    for (size_t i = 0; i < f->rows; i++) w.spread[i] = spread;
    return objective(f, &w, u);
}

void sm_robust_at(const sm_robust_fit *f, const double *u, double *residual, double *spread) {
    f->residuals(f->context, u, residual);
    f->spreads(f->context, residual, true, spread);
}

/* Without damping. */
void sm_robust_deviations(const sm_robust_fit *f, const double *u, double *deviation,
                          double *sensitivity) {
    work w = work_of(f);
    equations e;
    double l[P][P] = {{0}}, x[P] = {0}, pulling = 0.0;
    f->residuals(f->context, u, w.residual);
    reweigh(f, &w, true);
    fill_jacobian(f, &w, u);
    fill_equations(f, &w, u, &e);
    factor(&e, f->parameters, 0.0, l);
    for (size_t i = 0; i < f->rows; i++) pulling += w.pull[i] > 0.0;
    for (int j = 0; j < f->parameters; j++) {
        double unit[P] = {0}, square = 0.0;
        unit[j] = 1.0;
        solve(l, f->parameters, unit, x);
        deviation[j] = sqrt(fmax(x[j], 0.0));
        for (size_t i = 0; i < f->rows; i++) {
            double slope = w.pull[i] > 0.0 ? w.jacobian[i * P + (size_t)j] : 0.0;
            square += slope * slope;
        }
        sensitivity[j] = pulling > 0.0 ? sqrt(square / pulling) : 0.0;
    }
}

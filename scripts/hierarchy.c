#include "hierarchy.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P = MOST_PARAMETERS, MOST_TRIES = 5 };
#define GAIN 0.0015 /* of the objective: less is not worth a step */
#define STEP 0.08   /* of the numeric derivative */

_Noreturn void fit_stop(const hierarchy *h, const char *why) {
    fprintf(stderr, "%s: %s\n", h->program, why);
    exit(2);
}
void *fit_array(hierarchy *h, size_t n, size_t size) {
    void *p = sm_arena_array(h->arena, n ? n : 1, size);
    if (!p) fit_stop(h, "out of memory");
    return p;
}
int name_index(hierarchy *h, names *list, const char *name) {
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0) return i;
    if (list->n == MOST_NAMES) fit_stop(h, "too many names");
    list->name[list->n] = sm_arena_copy(h->arena, name, strlen(name));
    if (!list->name[list->n]) fit_stop(h, "out of memory");
    return list->n++;
}

/* ---- constants on the line ---- */

static bool is_compute(int j) {
    return j == SM_CONSTANT_matmul_efficiency || j == SM_CONSTANT_matmul_efficiency_fp8 ||
           j == SM_CONSTANT_attention_efficiency || j == SM_CONSTANT_attention_efficiency_backward;
}
static bool is_share(int j) {
    if (j >= SM_CONSTANT_COUNT || is_compute(j)) return false;
    const sm_constant_info *info = sm_constant_of((sm_constant)j);
    return info->high <= 1.0 && strcmp(info->unit, "s") != 0;
}
static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

#define WHOLE 1.0001 /* a share of 1 has a finite logit */
double to_line(const hierarchy *h, int j, double value) {
    const parameter *p = &h->parameter[j];
    double v = clamp(value, p->low, p->high);
    return is_share(j) ? log(v / (WHOLE - v)) : log(fmax(v, 1e-12));
}
double from_line(const hierarchy *h, int j, double u) {
    const parameter *p = &h->parameter[j];
    double value = is_share(j) ? WHOLE / (1.0 + exp(-u)) : exp(u);
    return clamp(value, p->low, p->high);
}
static bool is_moved(const hierarchy *h, int j) {
    for (int l = 0; l < LEVELS; l++)
        if (h->parameter[j].sigma[l] > 0.0) return true;
    return false;
}
sm_calibration constants_at(const hierarchy *h, const cell *c, const double *x) {
    sm_calibration out = c->start;
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        if (is_moved(h, j))
            sm_calibration_set(&out, (sm_constant)j,
                               from_line(h, j, x[j] + (is_compute(j) ? x[COMPUTE] : 0.0)));
    return out;
}
void place(const hierarchy *h, const cell *c, int levels, double *x) {
    for (int j = 0; j < h->parameters; j++) {
        x[j] = c->base[j];
        for (int l = 0; l < levels; l++) x[j] += h->term[l][c->group[l]][j];
    }
}

/* ---- cells ---- */

const char *constants_name(const sm_chip *chip) {
    const char *last = chip->calibration ? strrchr(chip->calibration, ' ') : NULL;
    if (chip->fabric == SM_FABRIC_TORUS || !chip->calibration || !chip->calibration[0])
        return chip->name;
    return last ? last + 1 : chip->calibration;
}
int cell_index(hierarchy *h, const sm_chip *chip, const char *software, const char *family,
               const sm_calibration *start, bool *is_new) {
    *is_new = false;
    for (int i = 0; i < h->cells; i++)
        if (h->cell[i].chip == chip && strcmp(h->cell[i].software, software) == 0) return i;
    if (h->cells == MOST_GROUPS) fit_stop(h, "too many cells");
    *is_new = true;
    cell *c = &h->cell[h->cells];
    *c = (cell){.chip = chip, .software = software, .start = *start};
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        c->base[j] = to_line(h, j, sm_calibration_get(start, (sm_constant)j));
    char both[200];
    snprintf(both, sizeof both, "%s %s", constants_name(chip), software);
    const char *name[LEVELS] = {chip->fabric == SM_FABRIC_TORUS ? "torus" : "switch",
                                constants_name(chip), family, software, both};
    for (int l = 0; l < LEVELS; l++) c->group[l] = name_index(h, &h->group[l], name[l]);
    return h->cells++;
}

/* ---- the fit ---- */

/* Moves a parameter by a step from where it is, or inward from the bound that it is at or beyond,
 * where nothing would show; returns the step. */
static double take_step(const hierarchy *h, int j, double *x) {
    double rest = is_compute(j) ? x[COMPUTE] : 0.0;
    double low = to_line(h, j, h->parameter[j].low), high = to_line(h, j, h->parameter[j].high);
    double from = clamp(x[j] + rest, low, high), step = from + STEP > high ? -STEP : STEP;
    if (j == COMPUTE) step = -STEP, from = x[j];
    x[j] = from + step - rest;
    return step;
}
/* Residuals, and on demand their slopes, at the terms. */
static void evaluate(hierarchy *h, bool slopes) {
    double *at = malloc((size_t)(h->residuals + 1) * sizeof *at);
    if (!at) fit_stop(h, "out of memory");
    for (int c = 0; c < h->cells; c++) {
        double *x = h->cell[c].x;
        place(h, &h->cell[c], LEVELS, x);
        h->predict(c, x, at);
        for (int i = 0; i < h->residuals; i++)
            if (h->residual[i].cell == c) h->residual[i].at = at[i];
        for (int j = 0; slopes && j < h->parameters; j++) {
            if (!is_moved(h, j)) continue;
            double moved[P];
            memcpy(moved, x, sizeof moved);
            double step = take_step(h, j, moved);
            h->predict(c, moved, at);
            for (int i = 0; i < h->residuals; i++) {
                residual *r = &h->residual[i];
                if (r->cell != c) continue;
                r->slope[j] = (at[i] - r->at) / step;
                if (!isfinite(r->slope[j])) r->slope[j] = 0.0;
            }
        }
    }
    free(at);
}

static double objective(const hierarchy *h) {
    double sum = 0.0;
    for (int i = 0; i < h->residuals; i++) {
        const residual *r = &h->residual[i];
        if (!r->masked && isfinite(r->at)) sum += r->weight * sm_soft_loss(r->at / r->spread);
    }
    for (int l = 0; l < LEVELS; l++)
        for (int g = 0; g < h->group[l].n; g++)
            for (int j = 0; j < h->parameters; j++) {
                double s = h->parameter[j].sigma[l], z = s > 0.0 ? h->term[l][g][j] / s : 0.0;
                sum += 0.5 * z * z;
            }
    return sum;
}

/* Solve a x = b for a symmetric positive definite, in place; b becomes x; variance: the diagonal of
 * the inverse. */
static void solve(int n, double a[P][P], double *b, double *variance) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double s = a[i][k];
            for (int m = 0; m < k; m++) s -= a[i][m] * a[k][m];
            a[i][k] = i == k ? sqrt(fmax(s, 1e-12)) : s / a[k][k];
        }
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < i; m++) b[i] -= a[i][m] * b[m];
        b[i] /= a[i][i];
    }
    for (int i = n; i-- > 0;) {
        for (int m = i + 1; m < n; m++) b[i] -= a[m][i] * b[m];
        b[i] /= a[i][i];
    }
    for (int c = 0; c < n; c++) {
        double y[P] = {0};
        variance[c] = 0.0;
        for (int i = c; i < n; i++) {
            double s = i == c ? 1.0 : 0.0;
            for (int m = c; m < i; m++) s -= a[i][m] * y[m];
            y[i] = s / a[i][i];
            variance[c] += y[i] * y[i];
        }
    }
}

/* The normal equations of each group of a level. */
typedef struct normal {
    double a[MOST_GROUPS][P][P], b[MOST_GROUPS][P], change[MOST_GROUPS][P];
} normal;

static void add_residuals(const hierarchy *h, int level, const double *at, normal *n) {
    memset(n, 0, sizeof *n);
    for (int i = 0; i < h->residuals; i++) {
        const residual *r = &h->residual[i];
        if (r->masked || !isfinite(at[i])) continue;
        int g = h->cell[r->cell].group[level];
        double w = r->weight * sm_soft_weight(at[i] / r->spread) / (r->spread * r->spread);
        for (int j = 0; j < h->parameters; j++) {
            double pull = w * r->slope[j];
            if (!(fabs(pull) > 0.0)) continue;
            n->b[g][j] -= pull * at[i];
            for (int k = 0; k <= j; k++) n->a[g][j][k] += pull * r->slope[k];
        }
    }
}

/* Moves the terms of one group to the least of its own problem. */
static void solve_group(hierarchy *h, int level, int g, const double *old, normal *n) {
    int index[P], free_of = 0;
    double m[P][P], v[P], variance[P], *term = h->term[level][g];
    for (int j = 0; j < h->parameters; j++)
        if (h->parameter[j].sigma[level] > 0.0) index[free_of++] = j;
    for (int i = 0; i < free_of; i++) {
        int j = index[i];
        double precision = 1.0 / pow(h->parameter[j].sigma[level], 2.0);
        for (int k = 0; k <= i; k++) m[i][k] = n->a[g][j][index[k]];
        m[i][i] += (1.0 + h->damping) * precision;
        v[i] = n->b[g][j] - (term[j] + h->damping * (term[j] - old[j])) * precision;
    }
    solve(free_of, m, v, variance);
    for (int i = 0; i < free_of; i++) {
        n->change[g][index[i]] = v[i];
        term[index[i]] += v[i];
        h->deviation[level][g][index[i]] = sqrt(variance[i]);
    }
}

/* The least of the linear problem: residuals at + slope (x - the cell's x), group by group. */
static void solve_linear(hierarchy *h, const double *old, int sweeps) {
    normal *n = malloc(sizeof *n);
    double *at = calloc((size_t)h->residuals + 1, sizeof *at);
    if (!n || !at) fit_stop(h, "out of memory");
    for (int i = 0; i < h->residuals; i++) {
        const residual *r = &h->residual[i];
        double x[P];
        place(h, &h->cell[r->cell], LEVELS, x);
        at[i] = r->at;
        for (int j = 0; j < h->parameters; j++)
            at[i] += r->slope[j] * (x[j] - h->cell[r->cell].x[j]);
    }
    for (int t = 0; t < sweeps; t++)
        for (int l = 0; l < LEVELS; l++) {
            add_residuals(h, l, at, n);
            for (int g = 0; g < h->group[l].n; g++)
                solve_group(h, l, g, old + (l * MOST_GROUPS + g) * P, n);
            for (int i = 0; i < h->residuals; i++) {
                const residual *r = &h->residual[i];
                const double *change = n->change[h->cell[r->cell].group[l]];
                for (int j = 0; j < h->parameters; j++) at[i] += r->slope[j] * change[j];
            }
        }
    free(at);
    free(n);
}

/* One step of Levenberg and Marquardt; false: nothing is gained any more. */
static bool descend(hierarchy *h, double *old, int sweeps) {
    memcpy(old, h->term, sizeof h->term);
    evaluate(h, true);
    double before = objective(h), after = before;
    residual *kept = malloc((size_t)(h->residuals + 1) * sizeof *kept);
    cell *cells = malloc(sizeof h->cell);
    if (!kept || !cells) fit_stop(h, "out of memory");
    memcpy(kept, h->residual, (size_t)h->residuals * sizeof *kept);
    memcpy(cells, h->cell, sizeof h->cell);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        memcpy(h->term, old, sizeof h->term);
        solve_linear(h, old, sweeps);
        evaluate(h, false);
        after = objective(h);
        fprintf(stderr, "  %.3f -> %.3f (damping %g)\n", before, after, h->damping);
        if (after < before) break;
        h->damping = h->damping > 0.0 ? 4.0 * h->damping : 1.0;
        memcpy(h->residual, kept, (size_t)h->residuals * sizeof *kept);
        memcpy(h->cell, cells, sizeof h->cell);
    }
    if (after < before) h->damping = h->damping > 0.3 ? h->damping / 3.0 : 0.0;
    else memcpy(h->term, old, sizeof h->term);
    free(kept);
    free(cells);
    return after < before * (1.0 - GAIN);
}

void fit_terms(hierarchy *h, int rounds, int sweeps) {
    double *old = malloc(sizeof h->term);
    if (!old) fit_stop(h, "out of memory");
    for (int i = 0; i < rounds && descend(h, old, sweeps); i++) {
    }
    free(old);
    evaluate(h, true);
    h->damping = 0.0;
}

/* A parameter of a cell. */
typedef struct place_of {
    int cell, j;
} place_of;
static double variance_of(const hierarchy *h, int j, int level) {
    return h->parameter[j].sigma[level] * h->parameter[j].sigma[level];
}
/* What the priors let two have in common. */
static double in_common(const hierarchy *h, place_of a, place_of b) {
    double sum = a.cell == b.cell && a.j == b.j ? 1e-6 : 0.0;
    for (int l = 0; l < LEVELS; l++) {
        if (h->cell[a.cell].group[l] != h->cell[b.cell].group[l]) continue;
        if (a.j == b.j) sum += variance_of(h, a.j, l);
        if (is_compute(a.j) && is_compute(b.j)) sum += variance_of(h, COMPUTE, l);
    }
    return sum;
}
/* n x n, symmetric positive definite, by Cholesky; b becomes the solution. */
static void solve_dense(int n, double *a, double *b) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double s = a[i * n + k];
            for (int m = 0; m < k; m++) s -= a[i * n + m] * a[k * n + m];
            a[i * n + k] = i == k ? sqrt(fmax(s, 1e-12)) : s / a[k * n + k];
        }
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < i; m++) b[i] -= a[i * n + m] * b[m];
        b[i] /= a[i * n + i];
    }
    for (int i = n; i-- > 0;) {
        for (int m = i + 1; m < n; m++) b[i] -= a[m * n + i] * b[m];
        b[i] /= a[i * n + i];
    }
}
static void start_at(hierarchy *h, double x[][MOST_PARAMETERS], const place_of *of, int n) {
    double *a = fit_array(h, (size_t)n * (size_t)n, sizeof *a),
           *b = fit_array(h, (size_t)n, sizeof *b);
    for (int i = 0; i < n; i++) {
        b[i] = x[of[i].cell][of[i].j] - h->cell[of[i].cell].base[of[i].j];
        for (int k = 0; k < n; k++) a[i * n + k] = in_common(h, of[i], of[k]);
    }
    solve_dense(n, a, b);
    for (int i = 0; i < n; i++)
        for (int l = 0; l < LEVELS; l++) {
            double *term = h->term[l][h->cell[of[i].cell].group[l]];
            term[of[i].j] += variance_of(h, of[i].j, l) * b[i];
            if (is_compute(of[i].j)) term[COMPUTE] += variance_of(h, COMPUTE, l) * b[i];
        }
}

void fit_start(hierarchy *h, double x[][MOST_PARAMETERS]) {
    place_of *list = fit_array(h, (size_t)h->cells * (size_t)h->parameters, sizeof *list);
    for (int first = 0; first < h->parameters; first++) { /* those that share COMPUTE at once */
        bool compute = first == COMPUTE;
        int n = 0;
        for (int j = 0; j < h->parameters; j++)
            for (int c = 0; c < h->cells; c++)
                if (is_moved(h, j) && !isnan(x[c][j]) && j != COMPUTE &&
                    (compute ? is_compute(j) : j == first && !is_compute(j)))
                    list[n++] = (place_of){c, j};
        start_at(h, x, list, n);
    }
}

void fit_without(hierarchy *h, int sweeps) {
    double *old = malloc(sizeof h->term), *term = **h->term, *drift = **h->drift;
    if (!old) fit_stop(h, "out of memory");
    memcpy(old, h->term, sizeof h->term);
    solve_linear(h, old, sweeps);
    for (size_t i = 0; i < sizeof h->term / sizeof *term; i++) term[i] -= drift[i];
    free(old);
}

void fit_drift(hierarchy *h, int sweeps) {
    hierarchy *kept = malloc(sizeof *kept);
    if (!kept) fit_stop(h, "out of memory");
    *kept = *h;
    fit_without(h, sweeps);
    for (size_t i = 0; i < sizeof h->term / sizeof ***h->term; i++)
        (**kept->drift)[i] = (**h->term)[i] - (**kept->term)[i];
    *h = *kept;
    free(kept);
}

/* ---- files ---- */

unsigned identified(const hierarchy *h, const cell *c, int from, int to) {
    unsigned bits = 0;
    for (int l = from; l <= to; l++)
        for (int j = 0; j < SM_CONSTANT_COUNT; j++) {
            double sigma = h->parameter[j].sigma[l], known = h->deviation[l][c->group[l]][j];
            if (sigma > 0.0 && known < sqrt(0.5) * sigma) bits |= 1u << j;
        }
    return bits;
}
double rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}
void round_constants(sm_calibration *k) {
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        sm_calibration_set(k, (sm_constant)j, rounded(sm_calibration_get(k, (sm_constant)j)));
}
FILE *open_file(const hierarchy *h, const char *folder, const char *name, const char *what) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out) fit_stop(h, sm_arena_printf(h->arena, "%s cannot be written", path));
    if (what) fprintf(out, "# %s. See docs/calibration-file.md.\n", what);
    return out;
}

#include "hierarchy.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P = MOST_PARAMETERS };
#define GAIN 5e-4 /* of the objective: less is not worth a step */
#define FIRST_DAMPING 0.1
#define LEAST_DAMPING 1e-3
#define MOST_DAMPING 100.0
#define STEP 0.12 /* of the numeric derivative */

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

static bool is_solved(const hierarchy *h, int j) { return is_moved(h, j) && j != COMPUTE; }
static double low_of(const hierarchy *h, int j) { return to_line(h, j, h->parameter[j].low); }
static double high_of(const hierarchy *h, int j) { return to_line(h, j, h->parameter[j].high); }
/* Where a parameter stands with what moves several, within its bounds. */
static double stands_at(const hierarchy *h, const double *x, int j) {
    return clamp(x[j] + (is_compute(j) ? x[COMPUTE] : 0.0), low_of(h, j), high_of(h, j));
}

/* Chips and softwares, groups of BOTH, that something is done to. */
typedef bool chosen[MOST_GROUPS];
static bool is_in(const hierarchy *h, const bool *which, int c) {
    return which[h->cell[c].group[BOTH]];
}
/* Residuals where the terms are, but for what is held. */
static void evaluate(hierarchy *h) {
    double *at = calloc((size_t)h->residuals + 1, sizeof *at);
    if (!at) fit_stop(h, "out of memory");
    for (int c = 0; c < h->cells; c++) {
        place(h, &h->cell[c], LEVELS, h->cell[c].x);
        if (!is_in(h, h->held, c)) h->predict(c, h->cell[c].x, at);
    }
    for (int i = 0; i < h->residuals; i++) h->residual[i].at = at[i];
    free(at);
}
/* Slopes about where the residuals are of, wide enough to look past jumps and edges: to both sides,
 * but at a bound. */
static void find_slopes(hierarchy *h, const bool *which) {
    double *above = calloc(2 * (size_t)h->residuals + 2, sizeof *above),
           *below = above + h->residuals + 1;
    if (!above) fit_stop(h, "out of memory");
    for (int c = 0; c < h->cells; c++)
        for (int j = 0; j < h->parameters; j++) {
            double moved[P], *x = h->cell[c].x, from = stands_at(h, x, j);
            if (!is_in(h, which, c) || is_in(h, h->held, c) || !is_solved(h, j)) continue;
            double high = fmin(from + STEP, high_of(h, j)), low = fmax(from - STEP, low_of(h, j));
            memcpy(moved, x, sizeof moved);
            moved[j] = high - (is_compute(j) ? x[COMPUTE] : 0.0);
            h->predict(c, moved, above);
            moved[j] = low - (is_compute(j) ? x[COMPUTE] : 0.0);
            h->predict(c, moved, below);
            for (int i = 0; i < h->residuals; i++) {
                residual *r = &h->residual[i];
                if (r->cell != c) continue;
                r->slope[j] = (above[i] - below[i]) / (high - low);
                if (!isfinite(r->slope[j])) r->slope[j] = 0.0;
            }
        }
    free(above);
}
/* Broyden's update after a step, of the slopes of what a residual hangs on (Schubert). */
static void update_slopes(const hierarchy *h, const cell *old, residual *r, double before) {
    double d[P] = {0}, norm = 0.0, error = r->at - before;
    for (int j = 0; j < h->parameters; j++) {
        if (!is_solved(h, j) || !(fabs(r->slope[j]) > 0.0)) continue;
        d[j] = stands_at(h, h->cell[r->cell].x, j) - stands_at(h, old[r->cell].x, j);
        norm += d[j] * d[j];
        error -= r->slope[j] * d[j];
    }
    if (!(norm > 1e-6) || !isfinite(error)) return;
    for (int j = 0; j < h->parameters; j++) r->slope[j] += error * d[j] / norm;
}
/* What the rows of each chip and software add to the objective. */
static void find_losses(const hierarchy *h, double *loss) {
    memset(loss, 0, MOST_GROUPS * sizeof *loss);
    for (int i = 0; i < h->residuals; i++) {
        const residual *r = &h->residual[i];
        if (!r->masked && isfinite(r->at))
            loss[h->cell[r->cell].group[BOTH]] += r->weight * sm_soft_loss(r->at / r->spread);
    }
}

/* A parameter of a chip and a software: of one cell, or of several whose groups are all the same.
 */
typedef struct unknown {
    int cell, j;
} unknown;
/* All of them, each where it stands beside its base, u, and what the prior lets any two have in
 * common, inverted. */
struct problem {
    int n, at[MOST_GROUPS][P]; /* of BOTH; -1: not moved */
    unknown *of;
    double *prior, *a, *b, *u, *drift;
};
typedef struct problem problem;

/* LAPACK: the factor of a symmetric positive definite matrix, what it solves, its inverse. */
void dpotrf_(const char *half, const int *n, double *a, const int *stride, int *info);
void dpotrs_(const char *half, const int *n, const int *columns, const double *a, const int *stride,
             double *b, const int *stride_b, int *info);
void dpotri_(const char *half, const int *n, double *a, const int *stride, int *info);

static void factor(const hierarchy *h, int n, double *a) {
    int info;
    dpotrf_("U", &n, a, &n, &info); /* the lower half of C's order */
    if (info != 0) fit_stop(h, "normal equations are not positive definite");
}
static double variance_of(const hierarchy *h, int j, int level) {
    return h->parameter[j].sigma[level] * h->parameter[j].sigma[level];
}
static double in_common(const hierarchy *h, unknown a, unknown b) {
    double sum = a.cell == b.cell && a.j == b.j ? 1e-6 : 0.0;
    for (int l = 0; l < LEVELS; l++) {
        if (h->cell[a.cell].group[l] != h->cell[b.cell].group[l]) continue;
        if (a.j == b.j) sum += variance_of(h, a.j, l);
        if (is_compute(a.j) && is_compute(b.j)) sum += variance_of(h, COMPUTE, l);
    }
    return sum;
}
static problem *problem_of(hierarchy *h) {
    if (h->problem) return h->problem;
    problem *p = h->problem = fit_array(h, 1, sizeof *p);
    size_t most = (size_t)h->group[BOTH].n * (size_t)h->parameters;
    p->of = fit_array(h, most, sizeof *p->of);
    memset(p->at, -1, sizeof p->at);
    for (int c = 0; c < h->cells; c++)
        for (int j = 0; j < h->parameters; j++) {
            int *at = &p->at[h->cell[c].group[BOTH]][j];
            if (!is_solved(h, j) || *at >= 0) continue;
            p->of[ *at = p->n++] = (unknown){c, j};
        }
    size_t n = (size_t)p->n;
    p->prior = fit_array(h, n * n, sizeof *p->prior);
    p->a = fit_array(h, n * n, sizeof *p->a);
    p->b = fit_array(h, n, sizeof *p->b);
    p->u = fit_array(h, n, sizeof *p->u);
    p->drift = fit_array(h, n, sizeof *p->drift);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) p->prior[i * n + k] = in_common(h, p->of[i], p->of[k]);
    int info;
    factor(h, p->n, p->prior);
    dpotri_("U", &p->n, p->prior, &p->n, &info);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) p->prior[k * n + i] = p->prior[i * n + k];
    return p;
}
static int at_of(const hierarchy *h, const problem *p, int c, int j) {
    return p->at[h->cell[c].group[BOTH]][j];
}
/* Terms whose sums are u, the least that the prior has. */
static void set_terms(hierarchy *h, const problem *p) {
    memset(h->term, 0, sizeof h->term);
    for (int i = 0; i < p->n; i++) {
        double pull = 0.0;
        int j = p->of[i].j;
        for (int k = 0; k < p->n; k++)
            pull += p->prior[(size_t)i * (size_t)p->n + (size_t)k] * p->u[k];
        for (int l = 0; l < LEVELS; l++) {
            double *term = h->term[l][h->cell[p->of[i].cell].group[l]];
            term[j] += variance_of(h, j, l) * pull;
            if (is_compute(j)) term[COMPUTE] += variance_of(h, COMPUTE, l) * pull;
        }
    }
}
/* Half u'au - b'u of the rows, about where their residuals are of, at weights as if u were so. */
static void add_residuals(const hierarchy *h, const double *x, const double *u, problem *p) {
    size_t n = (size_t)p->n;
    memset(p->a, 0, n * n * sizeof *p->a);
    memset(p->b, 0, n * sizeof *p->b);
    for (int i = 0; i < h->residuals; i++) {
        const residual *r = &h->residual[i];
        double at = r->at, of = r->at; /* at u, at 0 */
        if (r->masked || !isfinite(at)) continue;
        for (int j = 0; j < h->parameters; j++) {
            int k = at_of(h, p, r->cell, j);
            if (k < 0) continue;
            at += r->slope[j] * (u[k] - x[k]);
            of -= r->slope[j] * x[k];
        }
        double w = r->weight * sm_soft_weight(at / r->spread) / (r->spread * r->spread);
        for (int j = 0; j < h->parameters; j++) {
            double pull = w * r->slope[j];
            if (!(fabs(pull) > 0.0)) continue;
            int row = at_of(h, p, r->cell, j);
            p->b[row] -= pull * of;
            for (int k = 0; k <= j; k++) {
                int column = at_of(h, p, r->cell, k);
                if (column >= 0) p->a[(size_t)row * n + (size_t)column] += pull * r->slope[k];
            }
        }
    }
}
/* Pins to its bounds what u takes beyond; false: nothing. */
#define PINNED 1e6
static bool pin_beyond(const hierarchy *h, problem *p, double *pinned) {
    bool any = false;
    for (int c = 0; c < h->cells; c++)
        for (int j = 0; j < h->parameters; j++) {
            int k = at_of(h, p, c, j);
            if (k < 0 || !(h->parameter[j].sigma[BOTH] > 0.0) || pinned[k] > 0.0) continue;
            double base = h->cell[c].base[j], to = base + p->u[k];
            double bound = clamp(to, low_of(h, j), high_of(h, j));
            if (fabs(to - bound) < 1e-4) continue;
            pinned[k] = PINNED;
            p->b[k] += PINNED * (bound - base);
            any = true;
        }
    return any;
}
/* u where the terms are. */
static void find_places(const hierarchy *h, problem *p) {
    for (int i = 0; i < p->n; i++) {
        const cell *c = &h->cell[p->of[i].cell];
        p->u[i] = stands_at(h, c->x, p->of[i].j) - c->base[p->of[i].j];
    }
}
/* u and its terms of the least of the linear problem at the slopes, within the bounds; each part of
 * a step damped by what curves it. */
static void step(hierarchy *h, problem *p, const double *damping) {
    enum { WEIGHED = 3 };
    size_t n = (size_t)p->n;
    int one = 1, info;
    double *x = calloc(n * (n + 3), sizeof *x), *pinned = x + n, *extra = pinned + n,
           *m = extra + n;
    if (!x) fit_stop(h, "out of memory");
    find_places(h, p);
    memcpy(x, p->u, n * sizeof *x);
    for (int t = 0; t < WEIGHED; t++) {
        add_residuals(h, x, p->u, p);
        memset(pinned, 0, n * sizeof *pinned);
        for (size_t i = 0; i < n; i++) {
            extra[i] = damping[h->cell[p->of[i].cell].group[BOTH]] *
                       (p->a[i * n + i] + 1.0 / in_common(h, p->of[i], p->of[i]));
            if (is_in(h, h->held, p->of[i].cell)) extra[i] = PINNED;
            p->b[i] += extra[i] * x[i];
        }
        do {
            for (size_t i = 0; i < n * n; i++) m[i] = p->a[i] + p->prior[i];
            for (size_t i = 0; i < n; i++) m[i * n + i] += extra[i] + pinned[i];
            memcpy(p->u, p->b, n * sizeof *p->u);
            factor(h, p->n, m);
            dpotrs_("U", &p->n, &one, m, &p->n, p->u, &p->n, &info);
        } while (pin_beyond(h, p, pinned));
    }
    set_terms(h, p);
    free(x);
}

static double objective(const hierarchy *h, const double *loss) {
    double sum = 0.0;
    for (int g = 0; g < h->group[BOTH].n; g++) sum += loss[g];
    for (int l = 0; l < LEVELS; l++)
        for (int g = 0; g < h->group[l].n; g++)
            for (int j = 0; j < h->parameters; j++) {
                double s = h->parameter[j].sigma[l], z = s > 0.0 ? h->term[l][g][j] / s : 0.0;
                sum += 0.5 * z * z;
            }
    return sum;
}

void fit_terms(hierarchy *h, int most) {
    problem *p = problem_of(h);
    int groups = h->group[BOTH].n;
    size_t residuals = (size_t)h->residuals;
    hierarchy *old = fit_array(h, 1, sizeof *old);
    residual *was = fit_array(h, residuals, sizeof *was);
    double damping[MOST_GROUPS], loss[MOST_GROUPS], next_loss[MOST_GROUPS];
    chosen anew, stale = {false};
    memset(anew, 1, sizeof anew);
    for (int g = 0; g < groups; g++) damping[g] = FIRST_DAMPING;
    evaluate(h);
    find_slopes(h, anew);
    find_losses(h, loss);
    double now = objective(h, loss);
    for (int round = 0; round < most; round++) {
        int fresh = 0, worse = 0;
        *old = *h;
        memcpy(was, h->residual, residuals * sizeof *was);
        step(h, p, damping);
        evaluate(h);
        find_losses(h, next_loss);
        double next = objective(h, next_loss), gain = now - next;
        bool little = fabs(gain) < GAIN * now, all_fresh = true;
        for (int g = 0; g < groups; g++) {
            bool is_worse = next_loss[g] > loss[g];
            all_fresh = all_fresh && !stale[g];
            if (is_worse && !stale[g]) damping[g] *= 4.0;
            if (!is_worse || gain <= 0.0) damping[g] *= gain > 0.0 ? 1 / 3.0 : 2.0;
            damping[g] = clamp(damping[g], LEAST_DAMPING, MOST_DAMPING);
            anew[g] = stale[g] && (is_worse || little);
            stale[g] = (stale[g] || gain > 0.0) && !anew[g];
            fresh += anew[g], worse += is_worse;
        }
        fprintf(stderr, "  %.3f -> %.3f (%d of %d worse, slopes of %d anew)\n", now, next, worse,
                groups, fresh);
        if (gain > 0.0) {
            for (size_t i = 0; i < residuals; i++)
                update_slopes(h, old->cell, &h->residual[i], was[i].at);
            memcpy(loss, next_loss, sizeof loss);
            now = next;
        } else {
            *h = *old;
            memcpy(h->residual, was, residuals * sizeof *was);
        }
        if (little && all_fresh) break;
        find_slopes(h, anew);
    }
}

void fit_start(hierarchy *h, double x[][MOST_PARAMETERS]) {
    problem *p = problem_of(h);
    for (int i = 0; i < p->n; i++) {
        double to = x[p->of[i].cell][p->of[i].j];
        p->u[i] = isnan(to) ? 0.0 : to - h->cell[p->of[i].cell].base[p->of[i].j];
    }
    set_terms(h, p);
}

/* A term is known as well as the best known of the parameters that it is in, of what the prior left
 * open. */
static void find_deviations(hierarchy *h, problem *p) {
    size_t n = (size_t)p->n;
    int info;
    for (int l = 0; l < LEVELS; l++)
        for (int g = 0; g < h->group[l].n; g++)
            for (int j = 0; j < h->parameters; j++)
                h->deviation[l][g][j] = h->parameter[j].sigma[l];
    for (size_t i = 0; i < n * n; i++) p->a[i] += p->prior[i];
    factor(h, p->n, p->a);
    dpotri_("U", &p->n, p->a, &p->n, &info);
    for (size_t i = 0; i < n; i++) {
        unknown of = p->of[i];
        double share = sqrt(p->a[i * n + i] / in_common(h, of, of));
        for (int l = 0; l < LEVELS; l++) {
            double *d = &h->deviation[l][h->cell[of.cell].group[l]][of.j];
            *d = fmin(*d, share * h->parameter[of.j].sigma[l]);
        }
    }
}

static const double UNDAMPED[MOST_GROUPS];
void fit_without(hierarchy *h) {
    problem *p = problem_of(h);
    step(h, p, UNDAMPED);
    for (int i = 0; i < p->n; i++) p->u[i] -= p->drift[i];
    set_terms(h, p);
}
void fit_drift(hierarchy *h) {
    problem *p = problem_of(h);
    find_places(h, p);
    memcpy(p->drift, p->u, (size_t)p->n * sizeof *p->u);
    step(h, p, UNDAMPED);
    for (int i = 0; i < p->n; i++) p->drift[i] = p->u[i] - p->drift[i];
    find_deviations(h, p);
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

/* The fit of a calibration to measured rows, and its error on rows that it has not seen. */
#include "measured_format.h"
#include "truth_parts.h"
#include <assert.h>
#include <stdlib.h>

typedef struct fit_row {
    sm_truth_case *c;
    const sm_truth_row *row;
    double log_measured;
    int model, source; /* group of the cross-validation */
} fit_row;

typedef struct fit_problem {
    size_t n;
    fit_row *row;
    int models, sources; /* groups */
    const sm_calibration *start;
    int p; /* constants that are free */
    sm_constant free[SM_CONSTANT_COUNT];
    double u0[SM_MAX_PARAMETERS], precision[SM_CONSTANT_COUNT]; /* 1 / sigma^2, 0: no prior */
    bool unfelt[SM_CONSTANT_COUNT]; /* no row depends on it: its derivatives are known to be 0 */
    double *weight;                 /* how many independent rows each row counts as */
    double *room;                   /* of the robust fit */
    sm_counted *counted;            /* n */
    bool mixed;                     /* steps beside operations */
    bool *out_of_memory;            /* a row could not be predicted for want of it */
} fit_problem;

typedef struct fit_solution {
    double u[SM_MAX_PARAMETERS];
    double deviation[SM_MAX_PARAMETERS];   /* of u, posterior */
    double sensitivity[SM_MAX_PARAMETERS]; /* root mean square of d log expected / d u */
    double spread[SM_TRUTH_KIND_COUNT];    /* s_k */
    size_t outliers;                       /* rows beyond FIT_OUTLIER spreads */
} fit_solution;

#define FIT_OUTLIER 3.0

/* Which rows are left out: those of a group. */
typedef enum fit_group { FIT_NO_GROUP, FIT_BY_MODEL, FIT_BY_SOURCE } fit_group;

/* ---- constants as numbers on the whole line, and how far a calibration is trusted before any row
 */

/* A share of something is fitted by its logit, which keeps it between 0 and 1; all else by its
 * logarithm. An overhead may be 0, whose logarithm is cut off at LEAST. */
#define LEAST 1e-6
#define LEAST_SHARE 0.004 /* shares keep away from 0 and 1, where the logit has no slope */
#define MOST_SHARE 0.97

static bool is_share(sm_constant which) {
    return sm_constant_of(which)->high <= 1.0 && strcmp(sm_constant_of(which)->unit, "s") != 0;
}

static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

static double fit_to_line(sm_constant which, double value) {
    if (!is_share(which)) return log(fmax(value, LEAST * 1e-3));
    double share = clamp(value, LEAST_SHARE, MOST_SHARE);
    return log(share / (1.0 - share));
}

/* within the range of the constant */
static double fit_from_line(sm_constant which, double u) {
    const sm_constant_info *info = sm_constant_of(which);
    double value = is_share(which) ? 1.0 / (1.0 + exp(-u)) : exp(u);
    return clamp(value, info->low, info->high);
}

/* d log value / d u: turns a deviation of u into a relative one of the value. */
static double fit_relative(sm_constant which, double u) {
    return is_share(which) ? 1.0 - 1.0 / (1.0 + exp(-u)) : 1.0;
}

/* Relative standard deviation before any row: matmuls and attention are known to some 25 % from
 * single-operation benchmarks, memory and networks differ more from one code base to the next, and
 * what a framework adds is known to a factor of three. */
static double prior_relative(sm_constant which) {
    switch (which) {
    case SM_CONSTANT_matmul_efficiency:
    case SM_CONSTANT_matmul_efficiency_fp8:
    case SM_CONSTANT_attention_efficiency:
    case SM_CONSTANT_attention_efficiency_backward: return 0.25;
    case SM_CONSTANT_elementwise_bytes: return 0.25;
    case SM_CONSTANT_network_efficiency_inner: return 0.4;
    case SM_CONSTANT_memory_efficiency: return 0.4;
    case SM_CONSTANT_network_efficiency_outer: return 0.6;
    case SM_CONSTANT_matmul_half_k: return 0.7;
    default: return 1.2;
    }
}

/* A share near 1 has little slope; its deviation on the line is bounded so that it stays a prior.
 */
static double fit_prior_deviation(sm_constant which, double u0) {
    if (which == SM_CONSTANT_overlap) return 1.0;
    return fmin(prior_relative(which) / fit_relative(which, u0), 2.5);
}

/* The rows of a fit: which can be predicted, how much each counts, and which belong together. */

/* Rows of one sweep share their errors, so g rows of one model count as g^(3/4); and no kind of
 * measurement counts as more than MOST_COUNTED rows, or BESIDE_STEPS of what the training steps
 * count, so that thousands of matmuls do not drown thirty steps. */
#define MOST_COUNTED 60.0
#define BESIDE_STEPS 0.5
enum { MOST_GROUPS = 12, NAME_BYTES = 160 };

/* ---- groups ---- */

typedef struct names {
    size_t *rows, n; /* of each name */
} names;

static int octave(double size) { return size > 1.0 ? (int)floor(log2(size)) : 0; }

/* What is held out together: models of one width, so that neither another depth nor a relative of
 * a model is left in; for operations, their shape to the octave. */
static void model_name(const sm_truth_row *row, char *out) {
    switch (row->kind) {
    case SM_TRUTH_TRAINING:
        snprintf(out, NAME_BYTES, "training %d", row->of.training.model.d_model);
        return;
    case SM_TRUTH_GEMM:
        snprintf(out, NAME_BYTES, "gemm %d %d", octave(row->of.gemm.n), octave(row->of.gemm.k));
        return;
    case SM_TRUTH_ATTENTION:
        snprintf(out, NAME_BYTES, "attention %d %d %d", row->of.attention.n_heads,
                 row->of.attention.n_kv_heads, row->of.attention.d_head);
        return;
    case SM_TRUTH_COLLECTIVE:
        snprintf(out, NAME_BYTES, "collective %.60s %d", row->of.collective.op,
                 row->of.collective.ranks);
        return;
    case SM_TRUTH_INFERENCE:
        snprintf(out, NAME_BYTES, "serving %.120s", row->of.inference.model.name);
        return;
    default:
        snprintf(out, NAME_BYTES, "memop %.60s %d", row->of.memop.op, octave(row->of.memop.bytes));
    }
}

/* Of a single model, what is held out together: its steps of one layout and sequence length, its
 * requests of one length in one layout. */
static void layout_name(const sm_truth_row *row, char *out) {
    const sm_training_row *t = &row->of.training;
    const sm_inference_row *r = &row->of.inference;
    if (row->kind == SM_TRUTH_INFERENCE)
        snprintf(out, NAME_BYTES, "layout %d %d %d %.0f %.0f", r->tp, r->ep, r->chips, r->input_len,
                 r->output_len);
    else if (row->kind != SM_TRUTH_TRAINING) model_name(row, out);
    else snprintf(out, NAME_BYTES, "layout %d %d %d %.0f", t->tp, t->pp, t->chips, t->seq_len);
}

/* A source says what it measured after a colon. */
static void source_name(const sm_truth_row *row, char *out) {
    int length = row->kind == SM_TRUTH_TRAINING ? 150 : (int)strcspn(row->source, ":");
    snprintf(out, NAME_BYTES, "%.*s", length < 150 ? length : 150, row->source);
}

/* ---- weights ---- */

/* Those that were folded count each. */
static double rows_of(const fit_row *row) { return 1.0 + row->row->alike; }

static void weigh(fit_problem *f, const names *models, const int *model) {
    double total[SM_TRUTH_KIND_COUNT] = {0};
    for (size_t i = 0; i < f->n; i++) {
        const fit_row *row = &f->row[i];
        /* Of a step of quality B or C, something that the time depends on is not stated. */
        const bool step = row->row->kind == SM_TRUTH_TRAINING;
        const char quality = step ? row->row->of.training.quality[0] : 'A';
        const double trust = quality == 'B' || quality == 'C' ? 0.5 : 1.0;
        f->weight[i] = pow((double)models->rows[model[i]], -0.25) * trust * rows_of(row);
        total[row->row->kind] += f->weight[i];
    }
    for (size_t i = 0; i < f->n; i++) {
        sm_truth_kind kind = f->row[i].row->kind;
        double most = fmin(MOST_COUNTED, BESIDE_STEPS * total[SM_TRUTH_TRAINING]);
        if (kind == SM_TRUTH_TRAINING || !(most > 0.0)) most = MOST_COUNTED;
        else f->mixed = true;
        f->weight[i] *= fmin(1.0, most / total[kind]);
    }
}

/* At most MOST_GROUPS fits: groups are dealt out in turn. A single group is held out by the row. */
static void deal(fit_problem *f, const names *models, const names *sources) {
    bool single = models->n < 2;
    f->models = (int)(single ? f->n : models->n);
    f->sources = (int)sources->n;
    if (f->models > MOST_GROUPS) f->models = MOST_GROUPS;
    if (f->sources > MOST_GROUPS) f->sources = MOST_GROUPS;
    for (size_t i = 0; i < f->n; i++) {
        fit_row *row = &f->row[i];
        row->model = (single ? (int)i : row->model) % MOST_GROUPS;
        row->source %= MOST_GROUPS;
    }
}

/* Each row's index among the distinct names that name_of gives; NULL: out of memory. */
static int *index_rows(const fit_problem *f, void (*name_of)(const sm_truth_row *, char *),
                       names *list, sm_arena *arena) {
    sm_texts distinct = {.n = 0};
    int *index = sm_arena_array(arena, f->n, sizeof *index);
    list->rows = sm_arena_array(arena, f->n, sizeof *list->rows);
    if (!index || !list->rows) return NULL;
    for (size_t i = 0; i < f->n && index; i++) {
        char name[NAME_BYTES] = {0};
        name_of(f->row[i].row, name);
        index[i] = sm_texts_place(&distinct, arena, name, strlen(name));
        if (index[i] < 0) index = NULL;
        else list->rows[index[i]] += (size_t)f->row[i].row->alike + 1;
    }
    list->n = (size_t)distinct.n;
    sm_texts_free(&distinct);
    return index;
}

static bool group_rows(fit_problem *f, sm_arena *arena) {
    names models = {0}, sources = {0}, layouts = {0};
    const int *model = index_rows(f, model_name, &models, arena);
    const int *source = index_rows(f, source_name, &sources, arena);
    const int *layout = index_rows(f, layout_name, &layouts, arena);
    if (!model || !source || !layout) return false;
    bool single = models.n < 2;
    weigh(f, &models, model);
    for (size_t i = 0; i < f->n; i++) {
        f->row[i].model = single ? layout[i] : model[i];
        f->row[i].source = source[i];
    }
    deal(f, single ? &layouts : &models, &sources);
    return true;
}

/* ---- rows ---- */

static sm_status fit_rows_of(const sm_ready_row *rows, size_t n, const sm_calibration *start,
                             sm_arena *arena, fit_problem *f, sm_error *err) {
    char why[320] = "";
    size_t room = n ? n : 1;
    f->row = sm_arena_array(arena, room, sizeof *f->row);
    f->weight = sm_arena_array(arena, room, sizeof *f->weight);
    f->counted = sm_arena_array(arena, room, sizeof *f->counted);
    f->room = sm_arena_array(arena, sm_robust_room(room), sizeof *f->room);
    f->out_of_memory = sm_arena_alloc(arena, sizeof *f->out_of_memory);
    if (!f->row || !f->weight || !f->counted || !f->room || !f->out_of_memory)
        return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const sm_truth_row *row = rows[i].row;
        sm_prediction p;
        sm_truth_predict(rows[i].c, start, &p);
        if (p.out_of_memory) return sm_fail_memory(err);
        if (p.unknown && !why[0]) snprintf(why, sizeof why, "%.300s", p.unknown);
        bool usable = !p.unknown && row->measured_s > 0.0 && isfinite(row->measured_s) &&
                      p.expected_s > 0.0 && isfinite(p.expected_s);
        if (!usable) continue;
        f->row[f->n++] =
            (fit_row){.c = rows[i].c, .row = row, .log_measured = log(row->measured_s)};
    }
    if (n == 0) return sm_fail(err, SM_NEGATIVE, "there is no row to fit to");
    if (f->n == 0)
        return sm_fail(err, SM_NEGATIVE, "none of the %zu rows can be fitted to: %.300s", n,
                       why[0] ? why : "the source states no time");
    return group_rows(f, arena) ? SM_OK : sm_fail_memory(err);
}

/* The fit of constants: spreads of the kinds of measurement, and where the robust fit starts. */

#define FLOOR 0.05     /* least spread: software releases alone differ by 4 % */
#define FLOOR_ROWS 4.0 /* as many rows say so */
/* Most: a spread that grew with what is not yet fitted would make any error look like noise. */
#define CEILING 0.10    /* steps: one configuration differs by 9 % between releases at the 90th % */
#define OF_KERNELS 0.30 /* honest sources of one kernel differ by 10 to 20 % */
enum { MOST_ROUNDS = 40 };

static bool fit_is_held_out(const fit_row *row, fit_group by, int group) {
    if (by == FIT_BY_MODEL) return row->model == group;
    return by == FIT_BY_SOURCE && row->source == group;
}

static sm_calibration fit_calibration(const fit_problem *f, const double *u) {
    sm_calibration c = *f->start;
    for (int j = 0; j < f->p; j++)
        if (u[j] != f->u0[j]) /* a constant that has not moved keeps its exact value */
            sm_calibration_set(&c, f->free[j], fit_from_line(f->free[j], u[j]));
    return c;
}

/* log(expected / measured) of every row that `group` holds out under these constants. */
static double fit_residual(const fit_problem *f, size_t i, const sm_calibration *c) {
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
    double rows = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->row[i].row->kind != kind || !isfinite(residual[i])) continue;
        f->counted[n++] = (sm_counted){fabs(residual[i]), rows_of(&f->row[i])};
        rows += rows_of(&f->row[i]);
    }
    if (n == 0) return FLOOR;
    double median = 1.4826 * sm_quantile_counted(f->counted, n, 0.5);
    double square = (rows * median * median + FLOOR_ROWS * FLOOR * FLOOR) / (rows + FLOOR_ROWS);
    return fmin(fmax(sqrt(square), FLOOR), kind == SM_TRUTH_TRAINING ? CEILING : OF_KERNELS);
}

SM_ORDER(by_value, sm_counted, SM_ASCENDING(value))

/* The same of all kinds together: the weighted median. */
static double common_spread(const fit_problem *f, const double *residual) {
    size_t n = 0, i = 0;
    double total = 0.0, below = 0.0;
    for (size_t k = 0; k < f->n; k++) {
        if (!isfinite(residual[k])) continue;
        f->counted[n++] = (sm_counted){fabs(residual[k]), f->weight[k]};
        total += f->weight[k];
    }
    if (n == 0) return FLOOR;
    qsort(f->counted, n, sizeof *f->counted, by_value);
    while (i + 1 < n && below + f->counted[i].count < 0.5 * total) below += f->counted[i++].count;
    return fmax(1.4826 * f->counted[i].value, FLOOR);
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

/* Every combination of the sides that are free to move, one side a call. */
static void try_sides(const fit_problem *f, const sm_robust_fit *r, int side,
                      const fit_solution *from, candidate *list, int *n) {
    if (side == SIDES) {
        candidate c = {0.0, *from};
        c.merit = sm_robust_merit(r, FLOOR, from->u);
        /* In order of merit, the worst of KEPT + 1 falls out. */
        int at = *n;
        while (at > 0 && list[at - 1].merit > c.merit) {
            list[at] = list[at - 1];
            at--;
        }
        list[at] = c;
        if (*n < KEPT) ++*n;
        return;
    }
    const struct side *which = &sides[side];
    int j = f->p - 1;
    while (j >= 0 && f->free[j] != which->which) j--;
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

static void fit_solve(const fit_problem *f, fit_group by, int group, fit_solution *s) {
    held h = {f, by, group};
    sm_robust_fit r = robust_of(f, &h);
    double *residual = f->room, *spread = f->room + f->n; /* free after the descent */
    if (by == FIT_NO_GROUP) best_start(f, &r, s);
    sm_robust_descend(&r, MOST_ROUNDS, s->u);
    sm_robust_at(&r, s->u, residual, spread);
    s->outliers = 0;
    for (size_t i = 0; i < f->n; i++) {
        s->spread[f->row[i].row->kind] = spread[i];
        if (isfinite(residual[i]) && fabs(residual[i] / spread[i]) > FIT_OUTLIER)
            s->outliers += (size_t)f->row[i].row->alike + 1;
    }
    if (by == FIT_NO_GROUP) sm_robust_deviations(&r, s->u, s->deviation, s->sensitivity);
}

/* Which measurement would say most about the constants that the rows leave open. */

/* Of the constants known least, that which moves these rows the most; when every one that the rows
 * feel is known, the first that they do not feel at all. */
static int least_known(const fit_problem *f, const fit_solution *s) {
    int most = -1, unfelt = -1;
    double open = 0.002; /* less than this of a row's time is not worth a measurement */
    for (int j = 0; j < f->p; j++) {
        double deviation = s->deviation[j] * s->sensitivity[j];
        double ratio = s->deviation[j] / fit_prior_deviation(f->free[j], f->u0[j]);
        if (s->sensitivity[j] <= 0.0 && unfelt < 0) unfelt = j;
        if (ratio > 0.7 && deviation > open) {
            open = deviation;
            most = j;
        }
    }
    return most >= 0 ? most : unfelt;
}

static void fit_advise(const fit_problem *f, const fit_solution *s, char *out, size_t size) {
    int j = least_known(f, s);
    if (size > 0) out[0] = 0;
    if (j < 0) return;
    const char *name = sm_constant_of(f->free[j])->name;
    const measured_telling_row *telling = NAMED(measured_telling, name);
    assert(telling);
    snprintf(out, size, "%s, for %s", telling->measurement, name);
}

/* The rows say more than the prior did when their information is the larger: the variance that is
 * left is below half of the prior's. */
#define IDENTIFIED 0.7071

static double relative(double residual) { return fabs(expm1(residual)); }

/* Median and 90th percentile of |expected / measured - 1|; those that are not known are left out.
 */
static double error_quantile(fit_problem *f, const double *residual, double q) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (isfinite(residual[i]))
            f->counted[n++] = (sm_counted){relative(residual[i]), rows_of(&f->row[i])};
    return sm_quantile_counted(f->counted, n, q);
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

sm_regime truth_regime(sm_truth_kind kind) {
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
static double foreseen(sm_counted *values, size_t n, double rows, double q) {
    double at = (q * (rows + 1.0) - 1.0) / (rows - 1.0);
    return sm_quantile_counted(values, n, fmin(fmax(at, 0.0), 1.0));
}

enum { FEWEST = 5 }; /* rows that an interval is learned from */

/* The 10 % and 90 % quantiles of measured / expected on rows held out, of one kind and not of this
 * group (-1: of all). false where the rows are too few. */
static bool learn_interval(fit_problem *f, const double *residual, sm_truth_kind kind, int group,
                           sm_calibration *c) {
    size_t n = 0, of_kind = 0;
    double rows = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->row[i].row->kind != kind || !isfinite(residual[i])) continue;
        of_kind++;
        if (f->row[i].model == group) continue;
        f->counted[n++] = (sm_counted){-residual[i], rows_of(&f->row[i])};
        rows += rows_of(&f->row[i]);
    }
    const sm_regime regime = truth_regime(kind);
    if (of_kind > 0) c->interval[regime].n = 0; /* what was learned with other constants */
    if (of_kind > 0 && regime == SM_REGIME_step) c->interval[SM_REGIME_experts].n = 0;
    if (rows < FEWEST) return false;
    c->interval[regime].lowest = rounded(exp(foreseen(f->counted, n, rows, 0.1)));
    c->interval[regime].highest = rounded(exp(foreseen(f->counted, n, rows, 0.9)));
    c->interval[regime].n = (int)rows;
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
            fit->learned |= 1u << truth_regime((sm_truth_kind)k);
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
            sm_calibration_interval(&c, sm_truth_chip(row->chip), truth_regime(row->kind), expected,
                                    &low, &high);
            fit->row[i].covered = row->measured_s >= low && row->measured_s <= high;
        }
    }
    return SM_OK;
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
    fit->n = f.n;
    for (size_t i = 0; i < f.n; i++) fit->rows += (size_t)f.row[i].row->alike + 1;
    fit->outliers = s.outliers;
    describe_constants(&f, &s, fit);
    fit_advise(&f, &s, fit->measure_next, sizeof fit->measure_next);
    bool identified = false;
    for (int j = 0; j < fit->constants; j++) identified |= fit->constant[j].identified;
    if (!identified)
        return sm_fail(err, SM_NEGATIVE,
                       "%zu row%s say%s no more about any constant than was known before%s%s",
                       fit->rows, fit->rows == 1 ? "" : "s", fit->rows == 1 ? "s" : "",
                       fit->measure_next[0] ? "; measure " : "", fit->measure_next);
    status = describe_rows(&f, &s, options, fit, err);
    return !status && *f.out_of_memory ? sm_fail_memory(err) : status;
}

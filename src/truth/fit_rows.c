/* The rows of a fit: which can be predicted, how much each counts, and which belong together. */
#include "fit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of one sweep share their errors, so g rows of one model count as sqrt(g); and no kind of
 * measurement counts as more than MOST_COUNTED rows, or BESIDE_STEPS of what the training steps
 * count, so that thousands of matmuls do not drown thirty steps. */
#define MOST_COUNTED 60.0
#define BESIDE_STEPS 0.5
enum { MOST_GROUPS = 12, NAME_BYTES = 160 };

/* ---- groups ---- */

typedef struct names {
    char (*name)[NAME_BYTES];
    size_t *rows;
    size_t n;
} names;

static int octave(double size) { return size > 1.0 ? (int)floor(log2(size)) : 0; }

/* What is held out together: a model; for operations, their shape to the octave. */
static void model_name(const sm_truth_row *row, char *out) {
    switch (row->kind) {
    case SM_TRUTH_TRAINING:
        snprintf(out, NAME_BYTES, "training %.120s", row->of.training.model.name);
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
    default:
        snprintf(out, NAME_BYTES, "memop %.60s %d", row->of.memop.op, octave(row->of.memop.bytes));
    }
}

/* A source says what it measured after a colon. */
static void source_name(const sm_truth_row *row, char *out) {
    int length = row->kind == SM_TRUTH_TRAINING ? 150 : (int)strcspn(row->source, ":");
    snprintf(out, NAME_BYTES, "%.*s", length < 150 ? length : 150, row->source);
}

static int name_index(names *list, const char *name) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0) {
            list->rows[i]++;
            return (int)i;
        }
    memcpy(list->name[list->n], name, NAME_BYTES);
    list->rows[list->n] = 1;
    return (int)list->n++;
}

static bool names_new(names *list, size_t room, sm_arena *arena) {
    list->name = sm_arena_array(arena, room, sizeof *list->name);
    list->rows = sm_arena_array(arena, room, sizeof *list->rows);
    list->n = 0;
    return list->name && list->rows;
}

/* ---- weights ---- */

static void weigh(fit_problem *f, const names *models) {
    double total[SM_TRUTH_KIND_COUNT] = {0};
    for (size_t i = 0; i < f->n; i++) {
        fit_row *row = &f->row[i];
        row->weight = 1.0 / sqrt((double)models->rows[row->model]);
        total[row->row->kind] += row->weight;
    }
    for (size_t i = 0; i < f->n; i++) {
        sm_truth_kind kind = f->row[i].row->kind;
        double most = fmin(MOST_COUNTED, BESIDE_STEPS * total[SM_TRUTH_TRAINING]);
        if (kind == SM_TRUTH_TRAINING || !(most > 0.0)) most = MOST_COUNTED;
        else f->mixed = true;
        f->row[i].weight *= fmin(1.0, most / total[kind]);
    }
}

/* At most MOST_GROUPS fits: groups are dealt out in turn. A single model is held out by the row. */
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

static bool group_rows(fit_problem *f, sm_arena *arena) {
    names models, sources;
    if (!names_new(&models, f->n, arena) || !names_new(&sources, f->n, arena)) return false;
    for (size_t i = 0; i < f->n; i++) {
        char name[NAME_BYTES] = {0};
        model_name(f->row[i].row, name);
        f->row[i].model = name_index(&models, name);
        memset(name, 0, sizeof name);
        source_name(f->row[i].row, name);
        f->row[i].source = name_index(&sources, name);
    }
    weigh(f, &models);
    deal(f, &models, &sources);
    return true;
}

/* ---- rows ---- */

static bool is_usable(const sm_truth_row *row, const sm_prediction *p) {
    if (p->unknown || !(row->measured_s > 0.0) || !isfinite(row->measured_s)) return false;
    return p->expected_s > 0.0 && isfinite(p->expected_s);
}

static sm_status fail_unusable(const char *why, size_t n, sm_error *err) {
    if (n == 0) return sm_fail(err, SM_NEGATIVE, "there is no row to fit to");
    return sm_fail(err, SM_NEGATIVE, "none of the %zu rows can be fitted to: %.300s", n,
                   why[0] ? why : "the source states no time");
}

sm_status fit_rows_of(sm_truth_case *const *cases, size_t n, const sm_calibration *start,
                      sm_arena *arena, fit_problem *f, sm_error *err) {
    char why[320] = "";
    size_t room = n ? n : 1;
    f->row = sm_arena_array(arena, room, sizeof *f->row);
    f->residual = sm_arena_array(arena, room, sizeof *f->residual);
    f->irls = sm_arena_array(arena, room, sizeof *f->irls);
    f->scratch = sm_arena_array(arena, room, sizeof *f->scratch);
    f->weighed = sm_arena_array(arena, room, sizeof *f->weighed);
    f->jacobian = sm_arena_array(arena, room * SM_CONSTANT_COUNT, sizeof *f->jacobian);
    if (!f->row || !f->residual || !f->irls || !f->jacobian || !f->scratch || !f->weighed)
        return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const sm_truth_row *row = sm_truth_case_row(cases[i]);
        sm_prediction p;
        sm_truth_predict(cases[i], start, &p);
        if (p.unknown && !why[0]) snprintf(why, sizeof why, "%.300s", p.unknown);
        if (!is_usable(row, &p)) continue;
        f->row[f->n++] = (fit_row){.c = cases[i], .row = row, .log_measured = log(row->measured_s)};
    }
    if (f->n == 0) return fail_unusable(why, n, err);
    return group_rows(f, arena) ? SM_OK : sm_fail_memory(err);
}

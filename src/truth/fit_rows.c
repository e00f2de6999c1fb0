/* The rows of a fit: which can be predicted, how much each counts, and which belong together. */
#include "fit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of one sweep share their errors, so g rows of one model count as g^(3/4); and no kind of
 * measurement counts as more than MOST_COUNTED rows, or BESIDE_STEPS of what the training steps
 * count, so that thousands of matmuls do not drown thirty steps. */
#define MOST_COUNTED 60.0
#define BESIDE_STEPS 0.5
enum { MOST_GROUPS = 12, NAME_BYTES = 160 };

/* ---- groups ---- */

typedef struct names {
    const char **name;
    size_t *rows, n;
    size_t *place, room; /* of a name by its hash: its index and 1; room is a power of two */
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
    default:
        snprintf(out, NAME_BYTES, "memop %.60s %d", row->of.memop.op, octave(row->of.memop.bytes));
    }
}

/* Of a single model, what is held out together: its steps of one layout and sequence length. */
static void layout_name(const sm_truth_row *row, char *out) {
    const sm_training_row *t = &row->of.training;
    if (row->kind != SM_TRUTH_TRAINING) model_name(row, out);
    else snprintf(out, NAME_BYTES, "layout %d %d %d %.0f", t->tp, t->pp, t->chips, t->seq_len);
}

/* A source says what it measured after a colon. */
static void source_name(const sm_truth_row *row, char *out) {
    int length = row->kind == SM_TRUTH_TRAINING ? 150 : (int)strcspn(row->source, ":");
    snprintf(out, NAME_BYTES, "%.*s", length < 150 ? length : 150, row->source);
}

/* -1: out of memory. */
static int name_index(names *list, const char *name, sm_arena *arena) {
    size_t hash = 5381; /* Bernstein's */
    for (const char *c = name; *c; c++) hash = 33 * hash + (unsigned char)*c;
    size_t at = hash & (list->room - 1);
    while (list->place[at] && strcmp(list->name[list->place[at] - 1], name) != 0)
        at = (at + 1) & (list->room - 1);
    if (!list->place[at]) {
        list->name[list->n] = sm_arena_copy(arena, name, strlen(name));
        if (!list->name[list->n]) return -1;
        list->place[at] = ++list->n;
    }
    list->rows[list->place[at] - 1]++;
    return (int)list->place[at] - 1;
}

static bool names_new(names *list, size_t rows, sm_arena *arena) {
    *list = (names){.room = 1};
    while (list->room < 2 * rows) list->room *= 2;
    list->name = sm_arena_array(arena, rows, sizeof *list->name);
    list->rows = sm_arena_array(arena, rows, sizeof *list->rows);
    list->place = sm_arena_array(arena, list->room, sizeof *list->place);
    return list->name && list->rows && list->place;
}

/* ---- weights ---- */

/* Of a step of quality B or C, something that the time depends on is not stated. */
static double trust_of(const sm_truth_row *row) {
    const char *quality = row->kind == SM_TRUTH_TRAINING ? row->of.training.quality : "";
    return strcmp(quality, "B") == 0 || strcmp(quality, "C") == 0 ? 0.5 : 1.0;
}

static void weigh(fit_problem *f, const names *models, const int *model) {
    double total[SM_TRUTH_KIND_COUNT] = {0};
    for (size_t i = 0; i < f->n; i++) {
        const fit_row *row = &f->row[i];
        f->weight[i] = pow((double)models->rows[model[i]], -0.25) * trust_of(row->row);
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
    int *index = sm_arena_array(arena, f->n, sizeof *index);
    if (!index || !names_new(list, f->n, arena)) return NULL;
    for (size_t i = 0; i < f->n; i++) {
        char name[NAME_BYTES] = {0};
        name_of(f->row[i].row, name);
        index[i] = name_index(list, name, arena);
        if (index[i] < 0) return NULL;
    }
    return index;
}

static bool group_rows(fit_problem *f, sm_arena *arena) {
    names models, sources, layouts;
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

static bool is_usable(const sm_truth_row *row, const sm_prediction *p) {
    if (p->unknown || !(row->measured_s > 0.0) || !isfinite(row->measured_s)) return false;
    return p->expected_s > 0.0 && isfinite(p->expected_s);
}

static sm_status fail_unusable(const char *why, size_t n, sm_error *err) {
    if (n == 0) return sm_fail(err, SM_NEGATIVE, "there is no row to fit to");
    return sm_fail(err, SM_NEGATIVE, "none of the %zu rows can be fitted to: %.300s", n,
                   why[0] ? why : "the source states no time");
}

sm_status fit_rows_of(const sm_ready_row *rows, size_t n, const sm_calibration *start,
                      sm_arena *arena, fit_problem *f, sm_error *err) {
    char why[320] = "";
    size_t room = n ? n : 1;
    f->row = sm_arena_array(arena, room, sizeof *f->row);
    f->weight = sm_arena_array(arena, room, sizeof *f->weight);
    f->scratch = sm_arena_array(arena, room, sizeof *f->scratch);
    f->weighed = sm_arena_array(arena, room, sizeof *f->weighed);
    f->room = sm_arena_array(arena, sm_robust_room(room), sizeof *f->room);
    f->out_of_memory = sm_arena_alloc(arena, sizeof *f->out_of_memory);
    if (!f->row || !f->weight || !f->scratch || !f->weighed || !f->room || !f->out_of_memory)
        return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const sm_truth_row *row = rows[i].row;
        sm_prediction p;
        sm_truth_predict(rows[i].c, start, &p);
        if (p.out_of_memory) return sm_fail_memory(err);
        if (p.unknown && !why[0]) snprintf(why, sizeof why, "%.300s", p.unknown);
        if (!is_usable(row, &p)) continue;
        f->row[f->n++] =
            (fit_row){.c = rows[i].c, .row = row, .log_measured = log(row->measured_s)};
    }
    if (f->n == 0) return fail_unusable(why, n, err);
    return group_rows(f, arena) ? SM_OK : sm_fail_memory(err);
}

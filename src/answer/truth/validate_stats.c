/* validate_stats: what the errors of the rows come to: all together, and by chip, source, model and
 * parallelism. */
#include "validated.h"
#include <assert.h>
#include <stdlib.h>

enum { USUAL_DIMENSIONS = 5, USUAL_GROUPS = 12 };

/* ---- what a row is grouped by ---- */

enum dimension { KIND, CHIP, SOURCE, MODEL, PARALLELISM, SOFTWARE, PRECISION, QUALITY };
const char *const sm_validate_groups[SM_VALIDATE_GROUPS] = {
    "kind", "chip", "source", "model", "parallelism", "software", "precision", "quality"};

/* The model of a step; of an operation, which it is. "" where a row has none. */
static const char *model_of(const sm_truth_row *row, bool precision) {
    switch (row->kind) {
    case SM_TRUTH_GEMM: return row->of.gemm.dtype;
    case SM_TRUTH_ATTENTION: return precision ? row->of.attention.dtype : row->of.attention.phase;
    case SM_TRUTH_COLLECTIVE: return precision ? "" : row->of.collective.op;
    case SM_TRUTH_MEMOP: return precision ? row->of.memop.dtype : row->of.memop.op;
    case SM_TRUTH_TRAINING:
        return precision ? row->of.training.precision_class : row->of.training.model.name;
    case SM_TRUTH_INFERENCE:
        return precision ? row->of.inference.weight_dtype : row->of.inference.model.name;
    default: return "";
    }
}

/* What a row is in this dimension; NULL: out of memory. */
static const char *key_of(sm_arena *arena, const sm_checked *c, int dimension) {
    const sm_truth_row *row = c->row;
    switch ((enum dimension)dimension) {
    case KIND: return sm_truth_kind_name(row->kind);
    case CHIP: return c->chip;
    case SOURCE: return row->source;
    case MODEL: return model_of(row, false);
    case PARALLELISM: {
        /* Which degrees of a training step exceed one; where the members of a collective sit. */
        const sm_training_row *t = &row->of.training;
        if (row->kind == SM_TRUTH_COLLECTIVE)
            return sm_arena_printf(arena, "%d ranks, %s", row->of.collective.ranks,
                                   row->of.collective.nodes > 1 ? "several nodes" : "one node");
        if (row->kind == SM_TRUTH_INFERENCE) {
            const sm_inference_row *s = &row->of.inference;
            if (s->disagg == SM_YES) return "pools of their own";
            return sm_arena_printf(arena, "%d chip%s, tensor %d%s%s", s->chips,
                                   s->chips == 1 ? "" : "s", s->tp > 1 ? s->tp : 1,
                                   s->pp > 1 ? ", pipeline" : "",
                                   s->ep > 1 || s->dp > 1 || s->attention_dp > 1 ? ", expert" : "");
        }
        if (row->kind != SM_TRUTH_TRAINING) return "one chip";
        const char *text = sm_arena_printf(
            arena, "%s%s%s%s", t->tp > 1 ? ", tensor" : "", t->pp > 1 ? ", pipeline" : "",
            t->cp > 1 ? ", context" : "", t->ep > 1 ? ", expert" : "");
        return text && !text[0] ? "data alone" : text ? text + 2 : NULL;
    }
    case SOFTWARE: return sm_truth_software(row);
    case PRECISION: return model_of(row, true);
    case QUALITY: return row->kind == SM_TRUTH_TRAINING ? row->of.training.quality : "";
    }
    return "";
}

/* ---- groups ---- */

SM_ORDER(by_key, sm_member, SM_BY_TEXT(key) SM_ASCENDING(at))

void sm_members_sort(sm_member *m, size_t n) { qsort(m, n, sizeof *m, by_key); }

size_t sm_members_run(const sm_member *m, size_t n, size_t from) {
    size_t end = from;
    assert(from < n);
    while (end < n && strcmp(m[end].key, m[from].key) == 0) end++;
    return end;
}

typedef struct group {
    const char *key;
    sm_error_stats stats;
} group;
typedef struct grouping {
    size_t n;
    group *group;
} grouping;

SM_ORDER(by_rows, group, SM_DESCENDING(stats.n) SM_BY_TEXT(key))

static sm_member *members_by(const sm_validation *v, int d) {
    sm_arena *arena = v->arena;
    sm_member *m = sm_arena_array(arena, v->compared ? v->compared : 1, sizeof *m);
    for (size_t i = 0; m && i < v->compared; i++) {
        const char *key = key_of(arena, &v->row[v->index[i]], d);
        if (!key) return NULL;
        m[i] = (sm_member){key[0] ? key : "not stated", v->index[i]};
    }
    if (m) sm_members_sort(m, v->compared);
    return m;
}

/* The largest first. */
static bool group_by(const sm_validation *v, int d, grouping *out) {
    size_t room = v->compared ? v->compared : 1;
    sm_member *m = members_by(v, d);
    size_t *index = sm_arena_array(v->arena, room, sizeof *index);
    out->n = 0;
    out->group = sm_arena_array(v->arena, room, sizeof *out->group);
    if (!m || !index || !out->group) return false;
    for (size_t i = 0, j; i < v->compared; i = j) {
        j = sm_members_run(m, v->compared, i);
        for (size_t at = i; at < j; at++) index[at - i] = m[at].at;
        out->group[out->n++] = (group){m[i].key, sm_stats_of(v, index, j - i)};
    }
    qsort(out->group, out->n, sizeof *out->group, by_rows);
    return true;
}

/* ---- showing ---- */

void sm_put_error_stats(sm_report *r, sm_data *object, const sm_error_stats *s) {
    sm_put(r, object, "n|median|mean|p90|bias|coverage|below_lower", (double)s->n, s->median,
           s->mean, s->p90, s->bias, s->coverage, (double)s->below_lower);
}

static void add_groups(sm_report *r, const sm_validation *v, sm_data *by, int d, size_t most) {
    grouping g;
    if (!group_by(v, d, &g)) {
        r->out_of_memory = true;
        return;
    }
    const char *head = d == MODEL ? "model or operation" : sm_validate_groups[d];
    const sm_listing list = sm_page_list(
        r, by, sm_validate_groups[d], sm_textf(r, "By %s", head),
        sm_textf(r,
                 "name<%s|n>{=}rows|median>{%%}median|mean>{%%}mean|p90>{%%}p90|bias>{+%%}bias|"
                 "coverage>{%%}in interval|below_lower>{=}below lower",
                 head));
    const bool shown = g.n > 1 || most == SIZE_MAX;
    for (size_t i = 0; i < g.n; i++) {
        const sm_error_stats *s = &g.group[i].stats;
        sm_list_row(&list, shown && i < most, g.group[i].key, (double)s->n, s->median, s->mean,
                    s->p90, s->bias, s->coverage, (double)s->below_lower);
    }
    if (shown && g.n > most)
        sm_report_text(r, "and %zu more with fewer rows; --by %s shows all", g.n - most,
                       sm_validate_groups[d]);
}

/* ---- rows kept apart ---- */

static void add_apart(sm_report *r, const sm_validation *v) {
    size_t n = 0;
    sm_member *m = sm_arena_array(v->arena, v->n ? v->n : 1, sizeof *m);
    for (size_t i = 0; m && i < v->n; i++)
        if (v->row[i].apart) m[n++] = (sm_member){v->row[i].apart, i};
    if (m) sm_members_sort(m, n);
    else r->out_of_memory = true;
    const sm_listing list =
        sm_page_list(r, r->data, "kept_apart", "Kept apart", ">{=}rows|because<because|n");
    for (size_t i = 0, j; i < n; i = j) {
        j = sm_members_run(m, n, i);
        sm_list_row(&list, true, (double)(j - i), m[i].key, (double)(j - i));
    }
}

/* ---- all together ---- */

void sm_validate_stats(sm_report *r, const sm_validation *v) {
    size_t predicted = 0;
    for (size_t i = 0; i < v->n; i++) predicted += !v->row[i].p.unknown;
    sm_error_stats s = sm_stats_of(v, v->index, v->compared);
    sm_data *summary = sm_put_object(r, r->data, "summary");
    sm_put_error_stats(r, summary, &s);
    sm_put(r, summary, "rows|predicted|kept_apart", (double)v->n, (double)predicted,
           (double)(v->n - v->compared));
    sm_table *table = sm_page_table(r, NULL, "<error|>{%}value|<");
    sm_page_row(r, table, "rows", sm_show_exact(r, (double)v->n),
                sm_textf(r, "%zu predicted, %zu compared, %zu kept apart", predicted, v->compared,
                         v->n - v->compared));
    sm_page_row(r, table, "median", s.median, "of |expected / measured - 1|");
    sm_page_row(r, table, "mean", s.mean, "");
    sm_page_row(r, table, "90th percentile", s.p90, "");
    sm_page_row(r, table, "bias", sm_show_signed_percent(r, s.bias),
                "median with its sign: + is too slow");
    sm_page_row(r, table, "in the interval", s.coverage, "80 % is meant");
    sm_page_row(r, table, "below lower", sm_show_exact(r, (double)s.below_lower),
                "measured faster than the bound");
    sm_put_by_quantity(r, v, summary);
    sm_data *groups = sm_put_object(r, r->data, "by");
    int n = v->in.n_by > 0 ? v->in.n_by : USUAL_DIMENSIONS;
    size_t most = v->in.n_by > 0 ? SIZE_MAX : USUAL_GROUPS;
    for (int i = 0; i < n; i++) add_groups(r, v, groups, v->in.n_by > 0 ? v->in.by[i] : i, most);
    add_apart(r, v);
}

/* validate_memory: verdicts on configurations that ran out of memory and on those that ran, and
 * predicted peaks against those that were measured. */
#include "validated.h"
#include <assert.h>
#include <stdlib.h>

static bool is_priced(const sm_validation *v, const sm_checked *c) {
    return c->row->kind == SM_TRUTH_TRAINING && !c->p.unknown && c->p.memory.total > 0.0 &&
           (v->in.all || !sm_row_tunes(c->row));
}

/* ---- verdicts ---- */

typedef struct verdicts {
    size_t oom_refused, oom_passed, ran_passed, ran_refused;
    size_t twins_passed, twins_refused; /* of those that ran: a source of rows that did not */
    double least_room; /* of the rows that ran out and were passed: predicted / capacity */
} verdicts;

/* A source that lists what ran out of memory beside what ran: the two differ in their layouts. */
typedef struct sources {
    size_t n;
    const char **name; /* sorted */
} sources;

/* False: out of memory. */
static bool find_sources(const sm_validation *v, sources *s) {
    *s = (sources){0, sm_arena_array(v->arena, v->n, sizeof *s->name)};
    for (size_t i = 0; s->name && i < v->n; i++) {
        const sm_truth_row *row = v->row[i].row;
        bool out = row->kind == SM_TRUTH_TRAINING && row->of.training.oom;
        if (out) s->name[s->n++] = row->source;
    }
    if (s->name) qsort(s->name, s->n, sizeof *s->name, sm_compare_texts);
    return s->name != NULL;
}

static void count_verdict(const sources *twins, const sm_checked *c, verdicts *v) {
    assert(c->p.memory.capacity > 0.0);
    if (!c->row->of.training.oom) {
        if (c->p.fits) v->ran_passed++;
        else v->ran_refused++;
        bool twin = twins->n && bsearch(&c->row->source, twins->name, twins->n, sizeof *twins->name,
                                        sm_compare_texts);
        if (!twin) return;
        if (c->p.fits) v->twins_passed++;
        else v->twins_refused++;
    } else if (!c->p.fits) {
        v->oom_refused++;
    } else {
        v->oom_passed++;
        v->least_room = fmin(v->least_room, c->p.memory.total / c->p.memory.capacity);
    }
}

/* Of the rows that ran out of memory and those that ran from the same sources. */
static double twins_right(const verdicts *v) {
    size_t right = v->oom_refused + v->twins_passed;
    size_t all = right + v->oom_passed + v->twins_refused;
    return all > 0 ? (double)right / (double)all : NAN;
}

static void add_verdicts(sm_report *r, const sm_validation *v) {
    verdicts n = {.least_room = HUGE_VAL};
    sources twins;
    if (!find_sources(v, &twins)) r->out_of_memory = true;
    if (r->out_of_memory) return;
    for (size_t i = 0; i < v->n; i++)
        if (is_priced(v, &v->row[i])) count_verdict(&twins, &v->row[i], &n);
    size_t all = n.oom_refused + n.oom_passed + n.ran_passed + n.ran_refused;
    if (all == 0) return;
    double right = (double)(n.oom_refused + n.ran_passed) / (double)all;
    sm_put(r, sm_put_object(r, r->data, "verdicts"),
           "out_of_memory_refused|out_of_memory_passed|ran_passed|ran_refused|"
           "right|twins_passed|twins_refused|twins_right|"
           "least_predicted_share_passed",
           (double)n.oom_refused, (double)n.oom_passed, (double)n.ran_passed, (double)n.ran_refused,
           right, (double)n.twins_passed, (double)n.twins_refused, twins_right(&n), n.least_room);
    sm_table *table = sm_page_table(r, "Fits or not", "<reported|>{=}does not fit|>{=}fits");
    sm_page_row(r, table, "ran out of memory", (double)n.oom_refused, (double)n.oom_passed);
    sm_page_row(r, table, "ran", (double)n.ran_refused, (double)n.ran_passed);
    if (n.twins_passed + n.twins_refused)
        sm_page_row(r, table, "  of them from the sources above", (double)n.twins_refused,
                    (double)n.twins_passed);
    sm_report_text(r, "%s of the verdicts are right.", sm_show_percent(r, right));
    if (n.twins_passed + n.twins_refused)
        sm_report_text(r, "Of the sources that report both: %s.",
                       sm_show_percent(r, twins_right(&n)));
    if (n.oom_passed)
        sm_report_text(r,
                       "Of the rows that ran out and were said to fit, the emptiest chip was "
                       "predicted %s full.",
                       sm_show_percent(r, n.least_room));
}

/* ---- peak memory ---- */

typedef struct peak_stats {
    sm_error_stats stats;
    double worst_under; /* 1 - predicted / measured, at most; 0 when none is too small */
    double within;      /* share of them off by no more than a tenth */
} peak_stats;

/* Bytes of a peak, tokens of a cache; 0: neither is stated, or not priced. */
static double stated_of(const sm_validation *v, const sm_checked *c) {
    if (c->row->kind == SM_TRUTH_INFERENCE && !c->p.unknown) return c->row->of.inference.kv_tokens;
    return is_priced(v, c) ? c->row->of.training.peak_memory_bytes : 0.0;
}

static peak_stats stats_of(const sm_validation *v, const sm_member *m, size_t n) {
    peak_stats p = {.worst_under = 0.0};
    for (size_t i = 0; i < n; i++) {
        const sm_checked *c = &v->row[m[i].at];
        sm_comparison *peak = &v->pairs[i];
        const bool room = c->row->kind == SM_TRUTH_INFERENCE;
        *peak = (sm_comparison){.measured = stated_of(v, c),
                                .lower = NAN,
                                .expected = room ? c->p.kv_tokens : c->p.memory.total,
                                .low = NAN,
                                .high = NAN};
        if (!room)
            sm_calibration_interval(c->p.calibration, sm_truth_row_chip(c->row), SM_REGIME_peak,
                                    peak->expected, &peak->low, &peak->high);
        p.worst_under = fmax(p.worst_under, -sm_comparison_error(peak));
        p.within += (fabs(sm_comparison_error(peak)) <= 0.1) / (double)n;
    }
    p.stats = sm_error_stats_of(v->pairs, n, v->scratch);
    return p;
}

static void put_peak(sm_report *r, sm_table *table, sm_data *object, const char *name,
                     const peak_stats *p) {
    const sm_error_stats *s = &p->stats;
    sm_page_row(r, table, name, (double)s->n, s->median, s->p90, s->bias, p->worst_under,
                s->coverage);
    sm_put(r, object, "n|median|mean|p90|bias|coverage|worst_under|within_a_tenth", (double)s->n,
           s->median, s->mean, s->p90, s->bias, s->coverage, p->worst_under, p->within);
}

static void add_peaks(sm_report *r, const sm_validation *v, const sm_member *m, size_t n) {
    const bool room = v->row[m[0].at].row->kind == SM_TRUTH_INFERENCE;
    sm_table *table = sm_page_table(r,
                                    room ? "Tokens of KV cache, predicted against printed"
                                         : "Peak memory, predicted against measured",
                                    "<source|>{=}rows|>{%}median|>{%}p90|>{+%}bias|"
                                    ">{%}worst under|>{%}in interval");
    peak_stats all = stats_of(v, m, n);
    sm_data *object = sm_put_object(r, r->data, room ? "kv_room" : "memory");
    put_peak(r, table, object, "all", &all);
    sm_data *list = sm_put_array(r, object, "by_source");
    for (size_t i = 0, j; i < n; i = j) {
        j = sm_members_run(m, n, i);
        peak_stats some = stats_of(v, &m[i], j - i);
        sm_data *entry = sm_put_object(r, list, NULL);
        sm_put(r, entry, "source", m[i].key);
        put_peak(r, table, entry, m[i].key, &some);
    }
}

void sm_validate_memory(sm_report *r, const sm_validation *v) {
    size_t n = 0;
    add_verdicts(r, v);
    sm_member *m = sm_arena_array(v->arena, v->n + 1, sizeof *m);
    for (size_t i = 0; m && i < v->n; i++)
        if (stated_of(v, &v->row[i]) > 0.0) m[n++] = (sm_member){v->row[i].row->source, i};
    if (m) sm_members_sort(m, n);
    if (!m) r->out_of_memory = true;
    else if (n > 0) add_peaks(r, v, m, n);
}

/* validate_worst: the rows that a person should look at: those measured below the bound, and those
 * that are predicted worst. */
#include "validated.h"
#include <stdlib.h>

enum { MOST_BELOW_SHOWN = 20 };

typedef struct ranked {
    double off; /* how many times too long or too short, as a logarithm */
    size_t at;
} ranked;

SM_ORDER(worst_first, ranked, SM_DESCENDING(off) SM_ASCENDING(at))

static double error_of(const sm_checked *c) { return c->p.expected_s / c->row->measured_s - 1.0; }

/* ---- listing ---- */

static sm_table *row_table(sm_report *r, const char *title) {
    return sm_page_table(r, title,
                         "<row|<chip|>{s}measured|>{s}lower|>{s}expected|>{s}upper|>{+%}error");
}

static void show_row(sm_report *r, sm_table *table, const sm_validation *v, const sm_checked *c) {
    sm_page_row(r, table, sm_row_name(r, v, c), c->chip, c->row->measured_s, c->p.lower_s,
                c->p.expected_s, c->p.upper_s, error_of(c));
}

static void put_row(sm_report *r, sm_data *list, const sm_validation *v, const sm_checked *c) {
    sm_data *object = sm_put_object(r, list, NULL);
    sm_put_row_id(r, object, v, c);
    sm_put(r, object, "measured|lower|expected|error", c->row->measured_s, c->p.lower_s,
           c->p.expected_s, error_of(c));
}

static void add_below(sm_report *r, const sm_validation *v) {
    sm_data *list = sm_put_array(r, r->data, "below_lower");
    sm_table *table = row_table(r, "Measured below the bound: a defect of ours or of the row");
    size_t n = 0;
    for (size_t i = 0; i < v->compared; i++) {
        const sm_checked *c = &v->row[v->index[i]];
        sm_comparison pair = {.measured = c->row->measured_s, .lower = c->p.lower_s};
        if (!sm_comparison_below(&pair)) continue;
        put_row(r, list, v, c);
        if (n++ < MOST_BELOW_SHOWN) show_row(r, table, v, c);
    }
    if (n > MOST_BELOW_SHOWN) sm_report_text(r, "and %zu more", n - MOST_BELOW_SHOWN);
}

/* ---- explaining ---- */

static sm_status explain_row(sm_report *r, const sm_validation *v, const sm_checked *c,
                             sm_error *err) {
    sm_truth_case *ready;
    sm_prediction p;
    sm_status status = sm_truth_case_new(c->row, &ready, err);
    if (status) return status;
    sm_truth_predict(ready, sm_override_for(v, c->row), &p);
    sm_why *node = sm_page_why(r, r->why, sm_textf(r, "error of row %s", sm_row_name(r, v, c)),
                               "expected / measured - 1", error_of(c), "");
    sm_page_leaf(r, node, "measured", c->row->measured_s, "s", c->row->source);
    sm_why *tree;
    status = sm_truth_why(ready, r->arena, &tree, err);
    sm_truth_case_free(ready);
    if (status) return status;
    if (tree) sm_why_add(node, tree);
    else sm_page_leaf(r, node, "expected", c->p.expected_s, "s", c->p.calibration->source);
    sm_page_leaf(r, node, "lower", c->p.lower_s, "s", "datasheet rates alone");
    return SM_OK;
}

static sm_status explain(sm_report *r, const sm_validation *v, const ranked *list, size_t n,
                         sm_error *err) {
    r->why = sm_page_why(r, NULL, "worst rows", "explained below", (double)n, "rows");
    for (size_t i = 0; i < n; i++) {
        sm_status status = explain_row(r, v, &v->row[list[i].at], err);
        if (status) return status;
    }
    return SM_OK;
}

sm_status sm_validate_worst(sm_report *r, const sm_validation *v, size_t most, sm_error *err) {
    ranked *list = sm_arena_array(v->arena, v->compared + 1, sizeof *list);
    for (size_t i = 0; list && i < v->compared; i++) {
        const sm_checked *c = &v->row[v->index[i]];
        list[i] = (ranked){fabs(log(c->p.expected_s / c->row->measured_s)), v->index[i]};
    }
    if (list) qsort(list, v->compared, sizeof *list, worst_first);
    if (!list) return sm_fail_memory(err);
    size_t n = v->compared < most ? v->compared : most;
    add_below(r, v);
    sm_data *array = sm_put_array(r, r->data, "worst");
    sm_table *table = row_table(r, sm_textf(r, "The %zu worst", n));
    for (size_t i = 0; i < n; i++) {
        put_row(r, array, v, &v->row[list[i].at]);
        show_row(r, table, v, &v->row[list[i].at]);
    }
    return v->in.explain && n ? explain(r, v, list, n, err) : SM_OK;
}

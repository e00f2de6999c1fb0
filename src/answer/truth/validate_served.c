/* validate_served: rows of inference state several figures; each beside its prediction, and what
 * they come to by quantity. */
#include "validated.h"

void sm_put_parts(sm_report *r, sm_data *object, const sm_checked *c) {
    if (c->row->kind != SM_TRUTH_INFERENCE || c->p.unknown) return;
    sm_data *parts = sm_put_array(r, object, "parts");
    for (int i = 0; i < c->p.parts; i++) {
        sm_data *part = sm_put_object(r, parts, NULL);
        sm_put(r, part, "quantity|measured|lower|expected", sm_served_name(c->p.part[i].quantity),
               c->p.part[i].measured_s, c->p.part[i].lower_s, c->p.part[i].expected_s);
        sm_put(r, sm_put_array(r, part, "interval"), NULL, c->p.part[i].low_s, c->p.part[i].high_s);
        sm_put(r, part, "error", c->p.part[i].expected_s / c->p.part[i].measured_s - 1.0);
    }
}

void sm_put_by_quantity(sm_report *r, const sm_validation *v, sm_data *summary) {
    sm_data *by = NULL;
    sm_table *table = NULL;
    for (int q = 0; q < SM_SERVED_COUNT; q++) {
        /* The comparisons of one quantity among the rows compared, into v->pairs. */
        size_t n = 0;
        for (size_t i = 0; i < v->compared; i++) {
            const sm_prediction *p = &v->row[v->index[i]].p;
            for (int k = 0; k < p->parts; k++)
                if (p->part[k].quantity == (sm_served)q)
                    v->pairs[n++] =
                        (sm_comparison){p->part[k].measured_s, p->part[k].lower_s,
                                        p->part[k].expected_s, p->part[k].low_s, p->part[k].high_s};
        }

        if (n == 0) continue;
        if (!by) {
            by = sm_put_object(r, summary, "by_quantity");
            table = sm_page_table(r, "By quantity of serving",
                                  "<quantity|>{=}figures|>{%}median|>{%}p90|>{+%}bias|"
                                  ">{%}in interval|>{=}below lower");
        }
        sm_error_stats s = sm_error_stats_of(v->pairs, n, v->scratch);
        sm_put_error_stats(r, sm_put_object(r, by, sm_served_name((sm_served)q)), &s);
        sm_page_row(r, table, sm_served_name((sm_served)q), (double)s.n, s.median, s.p90, s.bias,
                    s.coverage, (double)s.below_lower);
    }
}

/* validate_suspects: rows that look wrong rather than hard to predict, as reading them noticed. */
#include "validated.h"

enum { MOST_SHOWN = 20 };

/* The rows of one file lie together, in the order of its lines, as its warnings do. */
static const sm_checked *row_of(const sm_validation *v, const sm_truth *truth, int line,
                                size_t *at) {
    for (; *at < v->n && v->row[*at].truth == truth && v->row[*at].row->line < line; (*at)++)
        continue;
    bool found = *at < v->n && v->row[*at].truth == truth && v->row[*at].row->line == line;
    return found ? &v->row[*at] : NULL;
}

void sm_validate_suspects(sm_report *r, const sm_validation *v) {
    sm_data *list = sm_put_array(r, r->data, "warnings");
    sm_table *table = sm_page_table(r, "Rows that look wrong", "<row|>line|<why");
    size_t n = 0, at = 0;
    for (size_t f = 0; f < v->in.files; f++) {
        const sm_truth *truth = &v->truth[f];
        for (size_t w = 0; w < truth->warnings; w++) {
            const sm_checked *c = row_of(v, truth, truth->warning[w].line, &at);
            if (c) {
                sm_data *object = sm_put_object(r, list, NULL);
                sm_put_row_id(r, object, v, c);
                sm_put(r, object, "line|warning", c->row->line, truth->warning[w].text);
                if (n++ < MOST_SHOWN)
                    sm_page_row(r, table, sm_row_name(r, v, c), sm_show_exact(r, c->row->line),
                                truth->warning[w].text);
            }
        }
        while (at < v->n && v->row[at].truth == truth) at++;
    }
    if (n > MOST_SHOWN) sm_report_text(r, "and %zu more; --json lists all", n - MOST_SHOWN);
}

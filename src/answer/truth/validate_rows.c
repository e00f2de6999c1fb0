/* validate_rows: every row with its prediction, for machines. */
#include "validated.h"

static double known(const sm_checked *c, double value) { return c->p.unknown ? NAN : value; }

static double measured_of(const sm_checked *c) {
    return c->row->measured_s > 0.0 ? c->row->measured_s : NAN;
}

/* Rows of files without ids are named by their line. */
static bool is_line_number(const sm_truth_row *row) {
    char line[24];
    snprintf(line, sizeof line, "%d", row->line);
    return strcmp(line, row->id) == 0;
}

const char *sm_row_name(sm_report *r, const sm_validation *v, const sm_checked *c) {
    if (v->in.files == 1 || !is_line_number(c->row)) return c->row->id;
    const char *slash = strrchr(c->truth->file, '/');
    return sm_textf(r, "%s:%d", slash ? slash + 1 : c->truth->file, c->row->line);
}

void sm_put_row_id(sm_report *r, sm_data *object, const sm_validation *v, const sm_checked *c) {
    if (is_line_number(c->row)) sm_put(r, object, "id", c->row->line);
    else sm_put(r, object, "id", c->row->id);
    if (v->in.files > 1) sm_put(r, object, "file", c->truth->file);
}

void sm_validate_rows(sm_report *r, const sm_validation *v) {
    sm_data *rows = sm_put_array(r, r->data, "rows");
    r->records = rows;
    for (size_t i = 0; i < v->n; i++) {
        const sm_checked *c = &v->row[i];
        sm_data *object = sm_put_object(r, rows, NULL);
        sm_put_row_id(r, object, v, c);
        sm_put(r, object, "kind|chip|source|measured|lower|expected|upper",
               sm_truth_kind_name(c->row->kind), c->chip, c->row->source, measured_of(c),
               known(c, c->p.lower_s), known(c, c->p.expected_s), known(c, c->p.upper_s));
        sm_data *interval = sm_put_array(r, object, "interval");
        sm_put(r, interval, NULL, known(c, c->p.low_s));
        sm_put(r, interval, NULL, known(c, c->p.high_s));
        sm_put(r, object, "error", known(c, c->p.expected_s / measured_of(c) - 1.0));
        if (c->row->kind == SM_TRUTH_TRAINING) {
            if (!c->p.unknown) sm_put(r, object, "fits", c->p.fits);
            const sm_memory *m = &c->p.memory;
            if (m->total > 0.0 && !c->p.unknown)
                sm_put(r, sm_put_object(r, object, "memory_bytes"),
                       "params|gradients|optimizer|activations|buffers|total|capacity", m->params,
                       m->gradients, m->optimizer, m->activations, m->buffers, m->total,
                       m->capacity);
            sm_put(r, object, "measured_memory_bytes", c->row->of.training.peak_memory_bytes);
        }
        if (c->row->kind == SM_TRUTH_INFERENCE && c->row->of.inference.kv_tokens > 0.0)
            sm_put(r, object, "kv_tokens|printed_kv_tokens", known(c, c->p.kv_tokens),
                   c->row->of.inference.kv_tokens);
        sm_put_parts(r, object, c);
        const sm_calibration *k = c->p.calibration;
        if (k && !c->p.unknown)
            sm_put(r, object, "calibration", sm_textf(r, "%s/%s", k->chip, k->software));
        if (c->p.unknown) sm_put(r, object, "unknown", c->p.unknown);
        else if (c->apart) sm_put(r, object, "apart", c->apart);
    }
}

/* validate_rows: every row with its prediction, as JSON and as columns. */
#include "validated.h"
#include <math.h>
#include <string.h>

static bool is_training(const sm_checked *c) { return c->row->kind == SM_TRUTH_TRAINING; }

static double known(const sm_checked *c, double value) { return c->p.unknown ? NAN : value; }

static double measured_of(const sm_checked *c) {
    return c->row->measured_s > 0.0 ? c->row->measured_s : NAN;
}

static double error_of(const sm_checked *c) {
    return known(c, c->p.expected_s / measured_of(c) - 1.0);
}

static double measured_bytes(const sm_checked *c) {
    return is_training(c) ? c->row->of.training.peak_memory_bytes : NAN;
}

static double memory_of(const sm_checked *c) {
    return is_training(c) && c->p.memory.total > 0.0 ? known(c, c->p.memory.total) : NAN;
}

static const char *calibration_of(sm_report *r, const sm_checked *c) {
    const sm_calibration *k = c->p.calibration;
    return k && !c->p.unknown ? sm_textf(r, "%s/%s", k->chip, k->software) : NULL;
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

/* ---- JSON ---- */

void sm_put_row_id(sm_report *r, sm_data *object, const sm_validation *v, const sm_checked *c) {
    if (is_line_number(c->row)) sm_put(r, object, "id", c->row->line);
    else sm_put(r, object, "id", c->row->id);
    if (v->in.files > 1) sm_put(r, object, "file", c->truth->file);
}

void sm_validate_rows(sm_report *r, const sm_validation *v) {
    sm_data *rows = sm_put_array(r, r->data, "rows");
    for (size_t i = 0; i < v->n; i++) {
        const sm_checked *c = &v->row[i];
        sm_data *object = sm_put_object(r, rows, NULL);
        sm_put_row_id(r, object, v, c);
        sm_put(r, object, "kind|chip|measured|lower|expected|upper",
               sm_truth_kind_name(c->row->kind), c->chip, measured_of(c), known(c, c->p.lower_s),
               known(c, c->p.expected_s), known(c, c->p.upper_s));
        sm_data *interval = sm_put_array(r, object, "interval");
        sm_put(r, interval, NULL, known(c, c->p.low_s));
        sm_put(r, interval, NULL, known(c, c->p.high_s));
        sm_put(r, object, "error", error_of(c));
        if (is_training(c)) {
            if (!c->p.unknown) sm_put(r, object, "fits", c->p.fits);
            if (isfinite(memory_of(c))) {
                const sm_memory *m = &c->p.memory;
                sm_put(r, sm_put_object(r, object, "memory_bytes"),
                       "params|gradients|optimizer|activations|buffers|total|capacity", m->params,
                       m->gradients, m->optimizer, m->activations, m->buffers, m->total,
                       m->capacity);
            }
            sm_put(r, object, "measured_memory_bytes", measured_bytes(c));
        }
        sm_put_parts(r, object, c);
        const char *calibration = calibration_of(r, c);
        if (calibration) sm_put(r, object, "calibration", calibration);
        if (c->p.unknown) sm_put(r, object, "unknown", c->p.unknown);
        else if (c->apart) sm_put(r, object, "apart", c->apart);
    }
}

/* ---- columns ---- */

enum { ROW_COLUMNS = 18 };

static const char *exact(sm_report *r, double value) {
    return isfinite(value) ? sm_show_exact(r, value) : "";
}

void sm_validate_table(sm_report *r, const sm_validation *v) {
    static const char *const heads[ROW_COLUMNS] = {
        "file",       "id",          "kind",         "chip",
        "source",     "calibration", "measured_s",   "lower_s",
        "expected_s", "upper_s",     "low_s",        "high_s",
        "error",      "fits",        "memory_bytes", "measured_memory_bytes",
        "unknown",    "apart"};
    static const sm_align aligns[ROW_COLUMNS] = {SM_LEFT};
    sm_table *table = sm_table_new(r->arena, NULL, ROW_COLUMNS, heads, aligns);
    if (!table) r->out_of_memory = true;
    for (size_t i = 0; table && i < v->n; i++) {
        const char *calibration = calibration_of(r, &v->row[i]);
        const char *cells[ROW_COLUMNS] = {
            v->row[i].truth->file,
            v->row[i].row->id,
            sm_truth_kind_name(v->row[i].row->kind),
            v->row[i].chip,
            v->row[i].row->source,
            calibration ? calibration : "",
            exact(r, measured_of(&v->row[i])),
            exact(r, known(&v->row[i], v->row[i].p.lower_s)),
            exact(r, known(&v->row[i], v->row[i].p.expected_s)),
            exact(r, known(&v->row[i], v->row[i].p.upper_s)),
            exact(r, known(&v->row[i], v->row[i].p.low_s)),
            exact(r, known(&v->row[i], v->row[i].p.high_s)),
            exact(r, error_of(&v->row[i])),
            !is_training(&v->row[i]) || v->row[i].p.unknown ? ""
            : v->row[i].p.fits                              ? "yes"
                                                            : "no",
            exact(r, memory_of(&v->row[i])),
            exact(r, measured_bytes(&v->row[i])),
            v->row[i].p.unknown ? v->row[i].p.unknown : "",
            v->row[i].apart && !v->row[i].p.unknown ? v->row[i].apart : "",
        };
        if (!sm_table_row(table, r->arena, cells)) r->out_of_memory = true;
    }
    if (table) sm_report_table(r, table);
}

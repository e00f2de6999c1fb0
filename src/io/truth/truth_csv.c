/* Measured rows as CSV (RFC 4180: quotes, doubled quotes, line ends inside quotes), the columns in
 * any order; columns that no schema names are passed over. */
#include "csv_record.h"
#include "truth_form.h"

#include <assert.h>

typedef struct csv_form {
    size_t at; /* where the next line begins */
    int line;  /* its number */
    csv_record header, row;
    int column[TRUTH_MAX_FIELDS]; /* of each field of the schema, -1: not there */
} csv_form;

static sm_status take_record(const truth_file *f, csv_form *csv, int columns, csv_record *out) {
    size_t at = csv->at;
    if (!csv_read(f->source, &csv->at, columns, out))
        return sm_fail_at(f->err, f->source, out->wrong, "%s", out->sentence);
    for (; at < csv->at; at++) csv->line += f->source->text[at] == '\n';
    return SM_OK;
}

/* Lines without a mark in them, and those that begin with '#', are no rows. */
static void skip_empty_lines(const sm_source *s, csv_form *csv) {
    while (csv->at < s->length) {
        const char *end = memchr(s->text + csv->at, '\n', s->length - csv->at);
        size_t next = end ? (size_t)(end - s->text) + 1 : s->length;
        sm_span line = sm_source_trim(s, csv->at, next);
        if (line.length > 0 && s->text[line.offset] != '#') return;
        csv->at = next;
        csv->line++;
    }
}

/* ---- the form ---- */

static sm_status read_cell(const truth_file *f, size_t field, truth_cell *out) {
    const csv_form *csv = f->form;
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (csv->column[field] < 0) return SM_OK;
    sm_span cell = csv->row.cell[csv->column[field]];
    if (cell.length == 0) return SM_OK;
    out->text = csv_copy(f->source, cell, f->row);
    if (!out->text) return sm_fail_memory(f->err);
    if (out->text[0]) out->kind = CELL_RAW;
    return SM_OK;
}

static sm_status fail_field(const truth_file *f, size_t field, const char *sentence) {
    const csv_form *csv = f->form;
    int column = csv->column[field];
    sm_span span = column < 0 ? csv->row.whole : csv->row.cell[column];
    return sm_fail_at(f->err, f->source, span, "%s", sentence);
}

/* ---- the header ---- */

typedef struct column_names {
    size_t n;
    const char *name[CSV_MOST_CELLS];
} column_names;

static int find_column(const column_names *names, const char *key) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->name[i], key) == 0) return (int)i;
    return -1;
}

static bool has_column(const void *where, const char *key) { return find_column(where, key) >= 0; }

static sm_status name_columns(const truth_file *f, const csv_form *csv, column_names *names) {
    names->n = 0;
    for (int i = 0; i < csv->header.n; i++) {
        const char *name = csv_copy(f->source, csv->header.cell[i], f->arena);
        if (!name) return sm_fail_memory(f->err);
        if (name[0] && find_column(names, name) >= 0)
            return sm_fail_at(f->err, f->source, csv->header.cell[i],
                              "the column \"%.60s\" is named twice", name);
        names->name[names->n++] = name;
    }
    return SM_OK;
}

static sm_status bind_columns(truth_file *f, csv_form *csv, const column_names *names) {
    char kinds[400];
    f->schema = truth_recognise(has_column, names);
    if (!f->schema)
        return sm_fail_at(f->err, f->source, csv->header.whole,
                          "the header tells no kind of measured rows: expected one of %s",
                          truth_known_kinds(kinds, sizeof kinds));
    if (f->schema->needed && find_column(names, f->schema->needed) < 0) {
        const char *needed = f->schema->needed, *kind = sm_truth_kind_name(f->schema->kind);
        const char *nearest = sm_nearest(needed, strlen(needed), names->name, names->n);
        if (!nearest)
            return sm_fail_at(f->err, f->source, csv->header.whole,
                              "%s rows need the column \"%s\"", kind, needed);
        return sm_fail_at(f->err, f->source, csv->header.cell[find_column(names, nearest)],
                          "%s rows need the column \"%s\"; the nearest here is \"%.60s\"", kind,
                          needed, nearest);
    }
    assert(f->schema->n <= TRUTH_MAX_FIELDS);
    for (size_t i = 0; i < f->schema->n; i++)
        csv->column[i] = find_column(names, f->schema->field[i].key);
    return SM_OK;
}

sm_status truth_csv_read(truth_file *f, truth_rows *rows) {
    csv_form csv = {.line = 1};
    f->form = &csv;
    f->cell = read_cell;
    f->fail = fail_field;
    column_names names;
    skip_empty_lines(f->source, &csv);
    sm_status status = take_record(f, &csv, 0, &csv.header);
    if (status == SM_OK) status = name_columns(f, &csv, &names);
    status = status == SM_OK ? bind_columns(f, &csv, &names) : status;
    while (status == SM_OK) {
        skip_empty_lines(f->source, &csv);
        if (csv.at >= f->source->length) break;
        f->line = csv.line;
        status = take_record(f, &csv, csv.header.n, &csv.row);
        if (status == SM_OK) status = truth_row_read(f, rows);
    }
    f->form = NULL;
    return status;
}

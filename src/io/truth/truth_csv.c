/* Measured rows as CSV (RFC 4180: quotes, doubled quotes, line ends inside quotes), the columns in
 * any order; columns that no schema names are passed over. */
#include "truth_form.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 256 };

typedef struct csv_line {
    size_t n;
    sm_span cell[MOST_COLUMNS]; /* with quotes, without blanks around */
} csv_line;

typedef struct csv_form {
    size_t at; /* where the next line begins */
    int line;  /* its number */
    csv_line header, row;
    sm_span whole;                /* the row under reading */
    int column[TRUTH_MAX_FIELDS]; /* of each field of the schema, -1: not there */
} csv_form;

/* ---- cells ---- */

static bool at_line_end(const sm_source *s, size_t at) {
    return at >= s->length || s->text[at] == '\n' ||
           (s->text[at] == '\r' && (at + 1 >= s->length || s->text[at + 1] == '\n'));
}

static size_t skip_blanks(const sm_source *s, size_t at) {
    while (at < s->length && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
    return at;
}

/* The byte after a quoted cell; the opening quote's own place when it is never closed. */
static size_t after_quotes(const sm_source *s, size_t at) {
    for (size_t i = at + 1; i < s->length; i++) {
        if (s->text[i] != '"') continue;
        if (i + 1 >= s->length || s->text[i + 1] != '"') return i + 1;
        i++;
    }
    return at;
}

static sm_status take_quoted(const truth_file *f, size_t *at, sm_span *cell) {
    const sm_source *s = f->source;
    size_t end = after_quotes(s, *at);
    if (end == *at) return sm_fail_at(f->err, s, (sm_span){*at, 1}, "this quote is never closed");
    *cell = (sm_span){*at, end - *at};
    *at = skip_blanks(s, end);
    if (at_line_end(s, *at) || s->text[*at] == ',') return SM_OK;
    return sm_fail_at(f->err, s, (sm_span){*at, 1},
                      "expected a comma or the end of the line after the closing quote");
}

static void take_plain(const sm_source *s, size_t *at, sm_span *cell) {
    size_t start = *at;
    while (!at_line_end(s, *at) && s->text[*at] != ',') ++*at;
    size_t end = *at;
    while (end > start && (s->text[end - 1] == ' ' || s->text[end - 1] == '\t')) end--;
    *cell = (sm_span){start, end - start};
}

static sm_status take_line(const truth_file *f, csv_form *csv, csv_line *line) {
    const sm_source *s = f->source;
    size_t at = csv->at;
    line->n = 0;
    for (;; at++) { /* past the comma */
        at = skip_blanks(s, at);
        if (line->n == MOST_COLUMNS)
            return sm_fail_at(f->err, s, (sm_span){at, 1}, "a row has at most %d cells",
                              MOST_COLUMNS);
        sm_span *cell = &line->cell[line->n++];
        sm_status status = SM_OK;
        if (at < s->length && s->text[at] == '"') status = take_quoted(f, &at, cell);
        else take_plain(s, &at, cell);
        if (status != SM_OK) return status;
        if (at_line_end(s, at)) break;
    }
    csv->whole = (sm_span){csv->at, at - csv->at};
    while (csv->at < at) csv->line += s->text[csv->at++] == '\n';
    csv->at += at < s->length && s->text[at] == '\r';
    csv->at += csv->at < s->length;
    csv->line++;
    return SM_OK;
}

/* Lines without a mark in them, and those that begin with '#', are no rows. */
static void skip_empty_lines(const sm_source *s, csv_form *csv) {
    while (csv->at < s->length) {
        size_t at = skip_blanks(s, csv->at);
        bool comment = at < s->length && s->text[at] == '#';
        if (!comment && !at_line_end(s, at)) return;
        const char *end = memchr(s->text + at, '\n', s->length - at);
        csv->at = end ? (size_t)(end - s->text) + 1 : s->length;
        csv->line++;
    }
}

/* A copy without the quotes around it, inner doubled quotes single. */
static char *plain_copy(const truth_file *f, sm_span cell) {
    const char *text = f->source->text + cell.offset;
    if (cell.length == 0 || text[0] != '"') return sm_arena_copy(f->arena, text, cell.length);
    char *copy = sm_arena_alloc(f->arena, cell.length);
    size_t n = 0;
    for (size_t i = 1; copy && i + 1 < cell.length; i++) {
        copy[n++] = text[i];
        i += text[i] == '"';
    }
    return copy;
}

/* ---- the form ---- */

static sm_status read_cell(const truth_file *f, size_t field, truth_cell *out) {
    const csv_form *csv = f->form;
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (csv->column[field] < 0) return SM_OK;
    sm_span cell = csv->row.cell[csv->column[field]];
    if (cell.length == 0) return SM_OK;
    out->text = plain_copy(f, cell);
    if (!out->text) return sm_fail_memory(f->err);
    if (out->text[0]) out->kind = CELL_RAW;
    return SM_OK;
}

static sm_status fail_field(const truth_file *f, size_t field, const char *sentence) {
    const csv_form *csv = f->form;
    int column = csv->column[field];
    sm_span span = column < 0 ? csv->whole : csv->row.cell[column];
    return sm_fail_at(f->err, f->source, span, "%s", sentence);
}

/* ---- the header ---- */

typedef struct column_names {
    size_t n;
    const char *name[MOST_COLUMNS];
} column_names;

static int find_column(const column_names *names, const char *key) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->name[i], key) == 0) return (int)i;
    return -1;
}

static bool has_column(const void *where, const char *key) { return find_column(where, key) >= 0; }

static sm_status name_columns(const truth_file *f, const csv_form *csv, column_names *names) {
    names->n = 0;
    for (size_t i = 0; i < csv->header.n; i++) {
        const char *name = plain_copy(f, csv->header.cell[i]);
        if (!name) return sm_fail_memory(f->err);
        if (name[0] && find_column(names, name) >= 0)
            return sm_fail_at(f->err, f->source, csv->header.cell[i],
                              "the column \"%.60s\" is named twice", name);
        names->name[names->n++] = name;
    }
    return SM_OK;
}

static sm_status fail_needed(const truth_file *f, const csv_form *csv, const column_names *names) {
    const char *needed = f->schema->needed, *kind = sm_truth_kind_name(f->schema->kind);
    const char *nearest = sm_nearest(needed, strlen(needed), names->name, names->n);
    if (!nearest)
        return sm_fail_at(f->err, f->source, csv->whole, "%s rows need the column \"%s\"", kind,
                          needed);
    return sm_fail_at(f->err, f->source, csv->header.cell[find_column(names, nearest)],
                      "%s rows need the column \"%s\"; the nearest here is \"%.60s\"", kind, needed,
                      nearest);
}

static sm_status bind_columns(truth_file *f, csv_form *csv, const column_names *names) {
    char kinds[400];
    f->schema = truth_recognise(has_column, names);
    if (!f->schema)
        return sm_fail_at(f->err, f->source, csv->whole,
                          "the header tells no kind of measured rows: expected one of %s",
                          truth_known_kinds(kinds, sizeof kinds));
    if (f->schema->needed && find_column(names, f->schema->needed) < 0)
        return fail_needed(f, csv, names);
    for (size_t i = 0; i < f->schema->n; i++)
        csv->column[i] = find_column(names, f->schema->field[i].key);
    return SM_OK;
}

static sm_status read_header(truth_file *f, csv_form *csv) {
    column_names names;
    skip_empty_lines(f->source, csv);
    sm_status status = take_line(f, csv, &csv->header);
    if (status == SM_OK) status = name_columns(f, csv, &names);
    return status == SM_OK ? bind_columns(f, csv, &names) : status;
}

static sm_status read_row(truth_file *f, csv_form *csv, truth_rows *rows) {
    f->line = csv->line;
    sm_status status = take_line(f, csv, &csv->row);
    if (status != SM_OK) return status;
    if (csv->row.n != csv->header.n)
        return sm_fail_at(f->err, f->source, csv->whole,
                          "this row has %zu cells, but the header names %zu columns", csv->row.n,
                          csv->header.n);
    return truth_row_read(f, rows);
}

sm_status truth_csv_read(truth_file *f, truth_rows *rows) {
    csv_form csv = {.line = 1};
    f->form = &csv;
    f->cell = read_cell;
    f->fail = fail_field;
    sm_status status = read_header(f, &csv);
    while (status == SM_OK) {
        skip_empty_lines(f->source, &csv);
        if (csv.at >= f->source->length) break;
        status = read_row(f, &csv, rows);
    }
    f->form = NULL;
    return status;
}

/* Requests as CSV: a header that names the columns, then a row for each. */
#include "request_row.h"

#include <string.h>

/* The next cell of a line: without quotes, without blanks around. False at the end of the line. */
static bool next_cell(const sm_source *line, size_t *at, bool *more, sm_span *cell, bool *torn) {
    const char *text = line->text;
    size_t length = line->length, i = *at;
    if (!*more) return false;
    while (i < length && (text[i] == ' ' || text[i] == '\t')) i++;
    bool quoted = i < length && text[i] == '"';
    size_t start = quoted ? ++i : i;
    while (i < length && (quoted ? text[i] != '"' : text[i] != ',')) i++;
    size_t end = i;
    *torn = quoted && i == length;
    if (quoted && !*torn) i++;
    while (!quoted && end > start && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
    *cell = (sm_span){start, end - start};
    while (i < length && text[i] != ',') i++;
    *more = i < length;
    *at = *more ? i + 1 : i;
    return true;
}

static sm_status fail_torn(const line_reader *r, const sm_source *line, sm_span cell,
                           sm_error *err) {
    return line_fail(r, line, (sm_span){cell.offset - 1, 1}, err, "this quote is never closed");
}

/* ---- the header ---- */

static const char *nearest_to(const sm_source *line, sm_span cell, request_field field) {
    const char *names[REQUEST_NAMES];
    size_t n = 0;
    for (int i = 0; i < REQUEST_NAMES; i++)
        if (request_names[i].field == field) names[n++] = request_names[i].name;
    return sm_nearest(line->text + cell.offset, cell.length, names, n);
}

/* A missing column is perhaps there under a name that is nearly right. */
static sm_status fail_missing(const line_reader *r, const sm_source *line, request_field field,
                              sm_error *err) {
    size_t at = 0;
    bool more = true, torn = false;
    sm_span cell = {0, 0};
    while (next_cell(line, &at, &more, &cell, &torn)) {
        const char *near = nearest_to(line, cell, field);
        if (near && !request_name_of(line->text + cell.offset, cell.length))
            return line_fail(r, line, cell, err,
                             "no column holds what the trace needs as %s; did you mean '%s' here?",
                             request_field_names(field), near);
    }
    return line_fail(r, line, (sm_span){0, line->length}, err, "the header has no column %s",
                     request_field_names(field));
}

static sm_status check_header(const line_reader *r, const sm_source *line,
                              const bool found[REQUEST_FIELDS], sm_error *err) {
    for (int field = 0; field < REQUEST_NEEDED; field++)
        if (!found[field]) return fail_missing(r, line, (request_field)field, err);
    if (found[REQUEST_PREFIX] && !found[REQUEST_PREFIX_TOKENS])
        return fail_missing(r, line, REQUEST_PREFIX_TOKENS, err);
    return SM_OK;
}

sm_status request_header_read(const line_reader *r, const sm_source *line, request_header *header,
                              sm_error *err) {
    bool found[REQUEST_FIELDS] = {false}, more = true, torn = false;
    size_t at = 0;
    sm_span cell;
    header->columns = 0;
    while (next_cell(line, &at, &more, &cell, &torn)) {
        if (torn) return fail_torn(r, line, cell, err);
        if (header->columns == REQUEST_MOST_COLUMNS)
            return line_fail(r, line, cell, err, "a header names at most %d columns",
                             REQUEST_MOST_COLUMNS);
        const request_name *name = request_name_of(line->text + cell.offset, cell.length);
        if (name && name->field == REQUEST_BLOCKS) name = NULL; /* a list: of JSON alone */
        if (name && found[name->field])
            return line_fail(r, line, cell, err, "two columns hold %s", name->name);
        if (name) found[name->field] = true;
        header->name[header->columns++] = name;
    }
    return check_header(r, line, found, err);
}

/* ---- rows ---- */

sm_status request_csv_read(const line_reader *r, const sm_source *line,
                           const request_header *header, request_row *row, sm_error *err) {
    size_t at = 0;
    int column = 0;
    bool more = true, torn = false;
    sm_span cell;
    for (; column < header->columns && next_cell(line, &at, &more, &cell, &torn); column++) {
        const request_name *name = header->name[column];
        if (torn) return fail_torn(r, line, cell, err);
        if (!name || cell.length == 0) continue;
        request_cell *to = &row->cell[name->field];
        *to = (request_cell){CELL_IS_TEXT, cell, 0.0, name->unit_s};
        if (request_number(line->text + cell.offset, cell.length, &to->number))
            to->kind = CELL_IS_NUMBER;
    }
    if (column == header->columns && !more) return SM_OK;
    return line_fail(r, line, (sm_span){0, line->length}, err,
                     "this row has %s cells than the header has columns (%d)",
                     more ? "more" : "fewer", header->columns);
}

/* Requests as CSV: a header that names the columns, then a row for each. */
#include "csv_record.h"
#include "request_row.h"

#include <string.h>

/* ---- the header ---- */

static const char *nearest_to(const sm_source *line, sm_span cell, request_field field) {
    const char *names[REQUEST_NAMES];
    size_t n = 0;
    for (int i = 0; i < REQUEST_NAMES; i++)
        if (request_names[i].field == field) names[n++] = request_names[i].name;
    return sm_nearest(line->text + cell.offset, cell.length, names, n);
}

/* A missing column is perhaps there under a name that is nearly right. */
static sm_status fail_missing(const line_reader *r, const sm_source *line, const csv_record *cells,
                              request_field field, sm_error *err) {
    for (int i = 0; i < cells->n; i++) {
        sm_span cell = csv_inside(line, cells->cell[i]);
        const char *near = nearest_to(line, cell, field);
        if (near && !request_name_of(line->text + cell.offset, cell.length))
            return line_fail(r, line, cell, err,
                             "no column holds what the trace needs as %s; did you mean '%s' here?",
                             request_field_names(field), near);
    }
    return line_fail(r, line, (sm_span){0, line->length}, err, "the header has no column %s",
                     request_field_names(field));
}

sm_status request_header_read(const line_reader *r, const sm_source *line, request_header *header,
                              sm_error *err) {
    bool found[REQUEST_FIELDS] = {false};
    csv_record cells;
    size_t at = 0;
    if (!csv_read(line, &at, 0, &cells))
        return line_fail(r, line, cells.wrong, err, "%s", cells.sentence);
    header->columns = cells.n;
    for (int i = 0; i < cells.n; i++) {
        sm_span cell = csv_inside(line, cells.cell[i]);
        const request_name *name = request_name_of(line->text + cell.offset, cell.length);
        if (name && name->field == REQUEST_BLOCKS) name = NULL; /* a list: of JSON alone */
        if (name && found[name->field])
            return line_fail(r, line, cell, err, "two columns hold %s", name->name);
        if (name) found[name->field] = true;
        header->name[i] = name;
    }
    for (int field = 0; field < REQUEST_NEEDED; field++)
        if (!found[field]) return fail_missing(r, line, &cells, (request_field)field, err);
    if (found[REQUEST_PREFIX] && !found[REQUEST_PREFIX_TOKENS])
        return fail_missing(r, line, &cells, REQUEST_PREFIX_TOKENS, err);
    return SM_OK;
}

/* ---- rows ---- */

sm_status request_csv_read(const line_reader *r, const sm_source *line,
                           const request_header *header, request_row *row, sm_error *err) {
    csv_record cells;
    size_t at = 0;
    if (!csv_read(line, &at, header->columns, &cells))
        return line_fail(r, line, cells.wrong, err, "%s", cells.sentence);
    for (int i = 0; i < cells.n; i++) {
        const request_name *name = header->name[i];
        sm_span cell = csv_inside(line, cells.cell[i]);
        if (!name || cell.length == 0) continue;
        request_cell *to = &row->cell[name->field];
        *to = (request_cell){CELL_IS_TEXT, cell, 0.0, name->unit_s};
        if (request_number(line->text + cell.offset, cell.length, &to->number))
            to->kind = CELL_IS_NUMBER;
    }
    return SM_OK;
}

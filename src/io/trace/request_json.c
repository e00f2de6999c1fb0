/* Requests as JSON, one object a line. */
#include "json_load.h"
#include "json_place.h"
#include "request_row.h"

#include <string.h>

static sm_status fail_here(const line_reader *r, const sm_source *line, const char *key,
                           const char *sentence, sm_error *err) {
    return line_fail(r, line, sm_json_nearest_place(line, key, false), err, "%s", sentence);
}

static sm_status set_blocks(const line_reader *r, const sm_source *line, json_t *list,
                            request_row *row, sm_error *err) {
    size_t n = json_array_size(list);
    if (n > (size_t)row->block_room) {
        uint64_t *wider = sm_realloc(row->block, n * sizeof *wider);
        if (!wider) return sm_fail_memory(err);
        row->block = wider;
        row->block_room = (int)n; /* a line has at most LINE_MOST_BYTES */
    }
    for (size_t i = 0; i < n; i++) {
        json_t *id = json_array_get(list, i);
        if (!json_is_integer(id))
            return fail_here(r, line, "hash_ids", "expected a list of whole numbers", err);
        row->block[i] = (uint64_t)json_integer_value(id);
    }
    row->blocks = (int)n;
    return SM_OK;
}

sm_span request_place(const sm_source *line, const char *key) {
    return sm_json_place(line, key, false);
}

static sm_span within_quotes(sm_span span) {
    return span.length >= 2 ? (sm_span){span.offset + 1, span.length - 2} : span;
}

static sm_status set_cell(const line_reader *r, const sm_source *line, const request_name *name,
                          json_t *value, request_row *row, sm_error *err) {
    request_cell *to = &row->cell[name->field];
    if (to->kind != CELL_ABSENT)
        return fail_here(r, line, name->name, "two keys hold the same thing", err);
    if (json_is_null(value)) return SM_OK;
    *to = (request_cell){CELL_IS_NUMBER, {0, 0}, json_number_value(value), name->unit_s};
    if (name->field == REQUEST_BLOCKS && json_is_array(value)) {
        to->kind = CELL_IS_LIST;
        return set_blocks(r, line, value, row, err);
    }
    if (json_is_number(value)) {
        if (name->field == REQUEST_PREFIX || name->field == REQUEST_CONVERSATION)
            to->text = sm_json_place(line, name->name, false);
        return SM_OK;
    }
    if (!json_is_string(value) || name->field == REQUEST_BLOCKS)
        return fail_here(r, line, name->name,
                         name->field == REQUEST_BLOCKS ? "expected a list of whole numbers"
                                                       : "expected a number or a text",
                         err);
    to->kind = CELL_IS_TEXT;
    to->text = within_quotes(sm_json_place(line, name->name, false));
    return SM_OK;
}

static sm_status read_object(const line_reader *r, const sm_source *line, json_t *object,
                             request_row *row, sm_error *err) {
    if (!json_is_object(object))
        return fail_here(r, line, "", "expected one JSON object {...} a line", err);
    for (int i = 0; i < REQUEST_NAMES; i++) {
        json_t *value = json_object_get(object, request_names[i].name);
        sm_status status = value ? set_cell(r, line, &request_names[i], value, row, err) : SM_OK;
        if (status) return status;
    }
    return SM_OK;
}

sm_status request_json_read(const line_reader *r, const sm_source *line, request_row *row,
                            sm_error *err) {
    json_t *object = NULL;
    if (request_flat_read(line, row)) return SM_OK;
    memset(row->cell, 0, sizeof row->cell);
    row->blocks = 0;
    sm_status status = sm_json_load(line, err, &object);
    if (status == SM_BAD_INPUT && err) err->line = r->line;
    if (!status) status = read_object(r, line, object, row, err);
    json_decref(object);
    return status;
}

/* Requests as JSON, one object a line. */
#include "json_tree.h"
#include "request_row.h"

#include <string.h>

static sm_status set_cell(const request_name *name, const json_value *value, request_row *row) {
    request_cell *to = &row->cell[name->field];
    if (to->kind != CELL_ABSENT) return json_fail(value, "two keys hold the same thing");
    *to = (request_cell){CELL_ABSENT, json_place(value), json_number(value), name->unit_s};
    if (value->kind == IS_NULL) return SM_OK;
    if (name->field == REQUEST_BLOCKS && value->kind == IS_LIST) {
        to->kind = CELL_IS_LIST;
        if (value->n > (uint32_t)row->block_room) {
            uint64_t *wider = sm_realloc(row->block, value->n * sizeof *wider);
            if (!wider) return sm_fail_memory(value->in->err);
            row->block = wider;
            row->block_room = (int)value->n; /* a line has at most LINE_MOST_BYTES */
        }
        for (uint32_t i = 0; i < value->n; i++) {
            if (value->item[i].kind != IS_NUMBER || !value->item[i].whole)
                return json_fail(value, "expected a list of whole numbers");
            row->block[i] = (uint64_t)value->item[i].integer;
        }
        row->blocks = (int)value->n;
        return SM_OK;
    }
    if (name->field == REQUEST_BLOCKS && value->kind != IS_NUMBER)
        return json_fail(value, "expected a list of whole numbers");
    if (value->kind != IS_TEXT && value->kind != IS_NUMBER)
        return json_fail(value, "expected a number or a text");
    to->kind = value->kind == IS_TEXT ? CELL_IS_TEXT : CELL_IS_NUMBER;
    if (value->kind == IS_TEXT) to->text = (sm_span){to->text.offset + 1, to->text.length - 2};
    return SM_OK;
}

sm_status request_json_read(const line_reader *r, const sm_source *line, request_row *row,
                            sm_error *err) {
    if (request_flat_read(line, row)) return SM_OK;
    memset(row->cell, 0, sizeof row->cell);
    row->blocks = 0;
    sm_arena *arena = sm_arena_new();
    const json_document document = {.source = line, .arena = arena, .err = err, .line = r->line};
    const json_value *object;
    if (!arena) return sm_fail_memory(err);
    sm_status status = json_parse(&document, &object);
    if (!status) {
        status = json_is(object, IS_OBJECT)
                     ? SM_OK
                     : json_fail(object, "expected one JSON object {...} a line");
        for (int i = 0; !status && i < REQUEST_NAMES; i++) {
            const json_value *value = json_get(object, request_names[i].name);
            if (value) status = set_cell(&request_names[i], value, row);
        }
    }
    sm_arena_free(arena);
    return status;
}

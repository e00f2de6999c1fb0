/* Measured rows as JSON, one object a line. */
#include "truth_form.h"

static sm_status fail_field(const truth_file *f, size_t field, const char *sentence) {
    return json_fail(json_nearest(f->form, f->schema->field[field].key), "%s", sentence);
}

static bool has_key(const void *where, const char *key) { return json_find(where, key) != NULL; }

/* Texts joined by one space; a list of anything else is CELL_OTHER. */
static sm_status set_list(const truth_file *f, const json_value *list, truth_cell *out) {
    size_t length = 0;
    *out = (truth_cell){.kind = CELL_OTHER, .text = "a list"};
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->item[i].kind != IS_TEXT) return SM_OK;
        length += list->item[i].n + 1;
    }
    char *text = sm_arena_alloc(f->row, length + 1), *at = text;
    if (!text) return sm_fail_memory(f->err);
    for (uint32_t i = 0; i < list->n; i++) {
        if (i > 0) *at++ = ' ';
        memcpy(at, list->item[i].text, list->item[i].n);
        at += list->item[i].n;
    }
    *out = (truth_cell){.kind = CELL_TEXT, .text = text, .list = true};
    return SM_OK;
}

static sm_status read_cell(const truth_file *f, size_t field, truth_cell *out) {
    const char *key = f->schema->field[field].key;
    const json_value *v = json_find(f->form, key);
    if (f->tool) return truth_tool_cell(f->tool, f->form, key, f->row, f->err, out);
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (!v) return SM_OK;
    switch (v->kind) {
    case IS_NULL: break;
    case IS_TEXT:
        out->kind = CELL_TEXT;
        out->text = sm_arena_copy(f->row, v->text, v->n);
        break;
    case IS_NUMBER:
        out->kind = CELL_NUMBER;
        out->number = v->number;
        out->text = sm_arena_printf(f->row, "%.15g", v->number);
        break;
    case IS_BOOL:
        *out =
            (truth_cell){.kind = CELL_FLAG, .text = v->truth ? "true" : "false", .yes = v->truth};
        break;
    case IS_LIST: return set_list(f, v, out);
    case IS_OBJECT: *out = (truth_cell){.kind = CELL_OTHER, .text = "an object"}; break;
    }
    return out->text ? SM_OK : sm_fail_memory(f->err);
}

/* A section that is something else would make all its keys silently absent. A source may be a
 * plain text. */
static sm_status check_section(const truth_file *f, const char *key, size_t length) {
    char section[64];
    snprintf(section, sizeof section, "%.*s", (int)length, key);
    const json_value *v = json_find(f->form, section);
    if (!v || v->kind == IS_NULL || v->kind == IS_OBJECT || strcmp(section, "source") == 0)
        return SM_OK;
    return json_fail(v, "%s: expected an object {...}", section);
}

/* The first row tells the kind; the others must be of it. */
static sm_status check_kind(truth_file *f) {
    const json_value *form = f->form;
    f->tool = truth_tool_of(form);
    const truth_schema *schema =
        f->tool ? truth_schema_of(SM_TRUTH_INFERENCE) : truth_recognise(has_key, f->form);
    char kinds[400];
    if (!f->schema) f->schema = schema;
    if (f->tool && schema == f->schema) return SM_OK;
    if (schema && schema == f->schema) {
        for (size_t i = 0; i < f->schema->n; i++) {
            const char *key = f->schema->field[i].key;
            for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
                sm_status status = check_section(f, key, (size_t)(dot - key));
                if (status != SM_OK) return status;
            }
        }
        return SM_OK;
    }
    if (f->schema)
        return json_fail(form, "this row is of another kind: the file began with %s",
                         sm_truth_kind_name(f->schema->kind));
    return json_fail(form, "the keys tell no kind of measured row: expected one of %s",
                     truth_known_kinds(kinds, sizeof kinds));
}

static sm_status read_object(truth_file *f, truth_rows *rows, const json_value *object) {
    f->form = object;
    sm_status status = object->kind == IS_OBJECT
                           ? check_kind(f)
                           : json_fail(object, "expected an object {...}: one row a line");
    if (!status) status = truth_row_read(f, rows);
    f->form = NULL;
    return status;
}

/* A line, or a whole file: an object, or of a file a list of them. */
static sm_status read_text(truth_file *f, truth_rows *rows, const sm_source *text, bool whole) {
    sm_arena *arena = sm_arena_new(); /* the rows keep copies of their own */
    const json_document document = {
        .source = text, .arena = arena, .err = f->err, .line = f->line, .python = whole};
    const json_value *root;
    if (!arena) return sm_fail_memory(f->err);
    sm_status status = json_parse(&document, &root);
    bool list = !status && whole && root->kind == IS_LIST;
    uint32_t at = 0;
    for (uint32_t i = 0; list && i < root->n && !status; i++) {
        for (; at < root->item[i].at; at++) f->line += text->text[at] == '\n';
        status = read_object(f, rows, &root->item[i]);
    }
    if (list && !status && root->n == 0)
        status = json_fail(root, "there are no measured rows: an empty list");
    if (!list && !status) status = read_object(f, rows, root);
    sm_arena_free(arena);
    return status;
}

static void begin(truth_file *f) {
    f->cell = read_cell;
    f->fail = fail_field;
    f->line = 1;
}

sm_status truth_json_read(truth_file *f, truth_rows *rows) {
    begin(f);
    return read_text(f, rows, f->source, true);
}

sm_status truth_json_lines(truth_file *f, line_reader *lines, truth_rows *rows) {
    sm_source line;
    bool more = true;
    begin(f);
    sm_status status = line_reader_next(lines, &line, &more, f->err);
    while (!status && more) {
        f->line = lines->line;
        status = read_text(f, rows, &line, false);
        if (!status) status = line_reader_next(lines, &line, &more, f->err);
    }
    return status;
}

/* Measured rows as JSON, one object a line. */
#include "json_load.h"
#include "json_place.h"
#include "truth_form.h"

#include <stdio.h>
#include <string.h>

typedef struct json_row {
    sm_source text; /* the line */
    json_t *object;
} json_row;

/* Errors speak of a line as if it were the whole document. */
static sm_status place_line(const truth_file *f, sm_status status) {
    if (status != SM_OK && f->err && f->err->line > 0) f->err->line += f->line - 1;
    return status;
}

static sm_status fail_at_key(const truth_file *f, const char *key, const char *sentence) {
    const json_row *row = f->form;
    return place_line(f, sm_json_fail(f->err, &row->text, key, false, "%s", sentence));
}

static sm_status fail_field(const truth_file *f, size_t field, const char *sentence) {
    return fail_at_key(f, f->schema->field[field].key, sentence);
}

/* The value at a path of keys, NULL when absent. */
static json_t *find(json_t *value, const char *path) {
    while (value && *path) {
        size_t n = strcspn(path, ".");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        value = json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
}

static bool has_key(const void *where, const char *key) {
    const json_row *row = where;
    return find(row->object, key) != NULL;
}

static sm_status set_text(const truth_file *f, const char *text, truth_cell *out) {
    out->text = sm_arena_copy(f->arena, text, strlen(text));
    return out->text ? SM_OK : sm_fail_memory(f->err);
}

static sm_status set_number(const truth_file *f, const json_t *v, truth_cell *out) {
    out->kind = CELL_NUMBER;
    out->number = json_number_value(v);
    out->text = sm_arena_printf(f->arena, "%.15g", out->number);
    return out->text ? SM_OK : sm_fail_memory(f->err);
}

/* Texts joined by one space; a list of anything else is CELL_OTHER. */
static sm_status set_list(const truth_file *f, json_t *list, truth_cell *out) {
    size_t i, length = 0;
    json_t *v;
    *out = (truth_cell){.kind = CELL_OTHER, .text = "a list"};
    json_array_foreach(list, i, v) {
        if (!json_is_string(v)) return SM_OK;
        length += json_string_length(v) + 1;
    }
    char *text = sm_arena_alloc(f->arena, length + 1), *at = text;
    if (!text) return sm_fail_memory(f->err);
    json_array_foreach(list, i, v) {
        if (i > 0) *at++ = ' ';
        memcpy(at, json_string_value(v), json_string_length(v));
        at += json_string_length(v);
    }
    *out = (truth_cell){.kind = CELL_TEXT, .text = text, .list = true};
    return SM_OK;
}

static sm_status read_cell(const truth_file *f, size_t field, truth_cell *out) {
    const json_row *row = f->form;
    json_t *v = find(row->object, f->schema->field[field].key);
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (!v || json_is_null(v)) return SM_OK;
    switch (json_typeof(v)) {
    case JSON_STRING: out->kind = CELL_TEXT; return set_text(f, json_string_value(v), out);
    case JSON_INTEGER:
    case JSON_REAL: return set_number(f, v, out);
    case JSON_ARRAY: return set_list(f, v, out);
    case JSON_OBJECT: *out = (truth_cell){.kind = CELL_OTHER, .text = "an object"}; return SM_OK;
    default:
        *out = (truth_cell){
            .kind = CELL_FLAG, .text = json_is_true(v) ? "true" : "false", .yes = json_is_true(v)};
        return SM_OK;
    }
}

/* A section that is something else would make all its keys silently absent. A source may be a
 * plain text. */
static sm_status check_section(const truth_file *f, const char *key, size_t length) {
    const json_row *row = f->form;
    char section[64], sentence[120];
    snprintf(section, sizeof section, "%.*s", (int)length, key);
    const json_t *v = find(row->object, section);
    if (!v || json_is_null(v) || json_is_object(v) || strcmp(section, "source") == 0) return SM_OK;
    snprintf(sentence, sizeof sentence, "%s: expected an object {...}", section);
    return fail_at_key(f, section, sentence);
}

static sm_status check_sections(const truth_file *f) {
    for (size_t i = 0; i < f->schema->n; i++) {
        const char *key = f->schema->field[i].key;
        for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
            sm_status status = check_section(f, key, (size_t)(dot - key));
            if (status != SM_OK) return status;
        }
    }
    return SM_OK;
}

/* The first row tells the kind; the others must be of it. */
static sm_status check_kind(truth_file *f) {
    const truth_schema *schema = truth_recognise(has_key, f->form);
    char sentence[600], kinds[400];
    if (!f->schema) f->schema = schema;
    if (schema && schema == f->schema) return check_sections(f);
    if (f->schema)
        snprintf(sentence, sizeof sentence, "this row is of another kind: the file began with %s",
                 sm_truth_kind_name(f->schema->kind));
    else
        snprintf(sentence, sizeof sentence,
                 "the keys tell no kind of measured row: expected one of %s",
                 truth_known_kinds(kinds, sizeof kinds));
    return fail_at_key(f, "", sentence);
}

static sm_status read_line(truth_file *f, truth_rows *rows, json_row *row) {
    sm_status status = place_line(f, sm_json_load(&row->text, f->err, &row->object));
    if (status != SM_OK) return status;
    f->form = row;
    if (!json_is_object(row->object))
        status = fail_at_key(f, "", "expected an object {...}: one row a line");
    else status = check_kind(f);
    if (status == SM_OK) status = truth_row_read(f, rows);
    json_decref(row->object);
    return status;
}

static bool is_blank(const sm_source *text) {
    for (size_t i = 0; i < text->length; i++)
        if (!strchr(" \t\r", text->text[i]) || text->text[i] == 0) return false;
    return true;
}

sm_status truth_json_read(truth_file *f, truth_rows *rows) {
    const sm_source *s = f->source;
    f->cell = read_cell;
    f->fail = fail_field;
    f->line = 1;
    for (size_t at = 0; at < s->length; f->line++) {
        const char *end = memchr(s->text + at, '\n', s->length - at);
        size_t length = end ? (size_t)(end - s->text) - at : s->length - at;
        json_row row = {{s->name, s->text + at, length}, NULL};
        sm_status status = is_blank(&row.text) ? SM_OK : read_line(f, rows, &row);
        if (status != SM_OK) return status;
        at += length + 1;
    }
    return SM_OK;
}

/* A data tree as JSON text. */
#include "scalemodel/json.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = 100,     /* of the longest list or object kept on one line */
    LONGEST = 24,      /* columns of a number: -2.2250738585072014e-308 */
    MOST_LEVELS = 512, /* of nesting; our own reports have fewer than ten */
};

/* Where text goes: a stream, or memory of so much room, and no more. */
typedef struct sink {
    FILE *out;    /* NULL: into memory */
    char *memory; /* not terminated */
    size_t room, length;
    size_t kept; /* of the room: what longer numbers in the place of timed ones would take */
    bool full;   /* memory was too small */
} sink;

static void put(sink *s, const char *text, size_t length) {
    if (s->out != NULL) {
        fwrite(text, 1, length, s->out);
        return;
    }
    s->full = s->full || length + s->kept > s->room - s->length;
    if (s->full || length == 0) return;
    memcpy(s->memory + s->length, text, length);
    s->length += length;
}

static void put_text(sink *s, const char *text) { put(s, text, strlen(text)); }

/* The escapes that RFC 8259 section 7 asks for. */
static void put_escaped(sink *s, uint32_t code) {
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char text[16];
    const char *found = code != 0 ? memchr(named, (int)code, sizeof named - 1) : NULL;
    if (found != NULL) snprintf(text, sizeof text, "\\%c", letters[found - named]);
    else snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    put_text(s, text);
}

static void put_string(sink *s, const char *text) {
    size_t length = strlen(text), n = 0;
    put(s, "\"", 1);
    for (size_t at = 0; at < length && !s->full; at += n) {
        uint32_t code = 0;
        n = sm_utf8_decode(text + at, length - at, &code);
        if (n == 0) put_text(s, "\xEF\xBF\xBD"); /* U+FFFD */
        else if (code < 0x20 || code == '"' || code == '\\' || code == 0x7F) put_escaped(s, code);
        else put(s, text + at, n);
        if (n == 0) n = 1;
    }
    put(s, "\"", 1);
}

static void put_number(sink *s, double value, bool timed) {
    char text[64];
    size_t before = s->length;
    put_text(s, isfinite(value) ? sm_format_exact(text, sizeof text, value) : "null");
    size_t columns = s->length - before;
    if (!timed || s->out != NULL || columns >= LONGEST) return;
    s->kept += LONGEST - columns;
    s->full = s->full || s->kept > s->room - s->length;
}

static void put_scalar(sink *s, const sm_data *data) {
    switch (data->kind) {
    case SM_DATA_BOOL: put_text(s, data->truth ? "true" : "false"); break;
    case SM_DATA_NUMBER: put_number(s, data->number, data->timed); break;
    case SM_DATA_STRING: put_string(s, data->string); break;
    default: put_text(s, "null"); break;
    }
}

static bool is_container(const sm_data *data) {
    return data->kind == SM_DATA_ARRAY || data->kind == SM_DATA_OBJECT;
}

/* All on one line; blank: " " or "", after each comma and colon. False when nested too deep. */
static bool put_inline(sink *s, const sm_data *data, const char *blank, int level) {
    bool object = data->kind == SM_DATA_OBJECT;
    if (!is_container(data)) {
        put_scalar(s, data);
        return true;
    }
    if (level >= MOST_LEVELS) return false;
    put_text(s, object ? "{" : "[");
    for (const sm_data *child = data->first; child != NULL && !s->full; child = child->next) {
        if (object) {
            put_string(s, child->key);
            put_text(s, ":");
            put_text(s, blank);
        }
        if (!put_inline(s, child, blank, level + 1)) return false;
        if (child->next == NULL) continue;
        put_text(s, ",");
        put_text(s, blank);
    }
    put_text(s, object ? "}" : "]");
    return true;
}

/* Does it fit on what is left of a line? Then it has been written. */
static bool put_on_one_line(sink *s, const sm_data *data, int level) {
    char line[COLUMNS];
    int indent = 2 * level;
    sink memory = {.memory = line, .room = indent < COLUMNS ? (size_t)(COLUMNS - indent) : 0};
    if (!put_inline(&memory, data, " ", level) || memory.full) return false;
    put(s, line, memory.length);
    return true;
}

static void put_newline(sink *s, int level) {
    put_text(s, "\n");
    for (int i = 0; i < level; i++) put_text(s, "  ");
}

/* False when nested too deep. */
static bool put_page(sink *s, const sm_data *data, int level) {
    bool object = data->kind == SM_DATA_OBJECT;
    if (level >= MOST_LEVELS) return false;
    if (!is_container(data)) {
        put_scalar(s, data);
        return true;
    }
    if (level > 0 && put_on_one_line(s, data, level)) return true;
    put_text(s, object ? "{" : "[");
    for (const sm_data *child = data->first; child != NULL; child = child->next) {
        put_newline(s, level + 1);
        if (object) {
            put_string(s, child->key);
            put_text(s, ": ");
        }
        if (!put_page(s, child, level + 1)) return false;
        if (child->next != NULL) put_text(s, ",");
    }
    put_newline(s, level);
    put_text(s, object ? "}" : "]");
    return true;
}

sm_status sm_json_write(FILE *out, const sm_data *data, sm_json_layout layout, sm_error *err) {
    sink s = {.out = out};
    bool shallow = layout == SM_JSON_PAGE ? put_page(&s, data, 0) : put_inline(&s, data, "", 0);
    if (!shallow)
        return sm_fail(err, SM_INTERNAL, "the answer is nested more than %d levels deep",
                       MOST_LEVELS);
    if (layout == SM_JSON_PAGE) put_text(&s, "\n");
    return SM_OK;
}

sm_status sm_json_format(const sm_data *data, sm_json_layout layout, sm_arena *arena, char **text,
                         size_t *length, sm_error *err) {
    sm_memory_stream memory;
    FILE *out = data != NULL ? sm_memory_stream_open(&memory) : NULL;
    if (out == NULL) return sm_fail_memory(err);
    sm_status status = sm_json_write(out, data, layout, err);
    status = sm_memory_stream_close(&memory, out, status, err);
    *length = memory.length;
    *text = status == SM_OK ? sm_arena_copy(arena, memory.text, *length) : NULL;
    sm_free(memory.text);
    return status == SM_OK && *text == NULL ? sm_fail_memory(err) : status;
}

void sm_json_write_string(FILE *out, const char *text) {
    sink s = {.out = out};
    put_string(&s, text);
}

void sm_json_write_number(FILE *out, double value) {
    sink s = {.out = out};
    put_number(&s, value, false);
}

/* The data tree as JSON, two blanks an indentation; what fits on one line stays on one line. */
#include "json.h"
#include "columns.h"
#include "scalemodel/render.h"

#define LINE 100        /* longest container kept on one line */
#define MOST_LEVELS 512 /* of nesting; our own reports have fewer than ten */

static void put_scalar(json_sink *sink, const sm_data *data) {
    switch (data->kind) {
    case SM_DATA_BOOL: sm_json_put_text(sink, data->truth ? "true" : "false"); break;
    case SM_DATA_NUMBER: sm_json_put_number(sink, data->number); break;
    case SM_DATA_STRING: sm_json_put_string(sink, data->string); break;
    default: sm_json_put_text(sink, "null"); break;
    }
}

static bool is_container(const sm_data *data) {
    return data->kind == SM_DATA_ARRAY || data->kind == SM_DATA_OBJECT;
}

static void put_key(json_sink *sink, const sm_data *parent, const sm_data *child) {
    if (parent->kind != SM_DATA_OBJECT) return;
    sm_json_put_string(sink, child->key);
    sm_json_put_text(sink, ": ");
}

static void put_inline(json_sink *sink, const sm_data *data, int level) {
    if (!is_container(data)) {
        put_scalar(sink, data);
        return;
    }
    if (level >= MOST_LEVELS) sink->full = true;
    sm_json_put_text(sink, data->kind == SM_DATA_ARRAY ? "[" : "{");
    for (const sm_data *child = data->first; child != NULL && !sink->full; child = child->next) {
        put_key(sink, data, child);
        put_inline(sink, child, level + 1);
        if (child->next != NULL) sm_json_put_text(sink, ", ");
    }
    sm_json_put_text(sink, data->kind == SM_DATA_ARRAY ? "]" : "}");
}

/* Does it fit on what is left of a line? Then it has been written. */
static bool put_on_one_line(json_sink *sink, const sm_data *data, int level) {
    char line[LINE];
    int indent = 2 * level;
    json_sink memory = {.memory = line, .room = indent < LINE ? (size_t)(LINE - indent) : 0};
    put_inline(&memory, data, 0);
    if (!memory.full) sm_json_put_raw(sink, line, memory.length);
    return !memory.full;
}

static void put_newline(json_sink *sink, int level) {
    sm_json_put_text(sink, "\n");
    for (int i = 0; i < level; i++) sm_json_put_text(sink, "  ");
}

/* False when nested too deep. */
static bool put_data(json_sink *sink, const sm_data *data, int level) {
    if (level >= MOST_LEVELS) return false;
    if (!is_container(data)) {
        put_scalar(sink, data);
        return true;
    }
    if (level > 0 && put_on_one_line(sink, data, level)) return true;
    sm_json_put_text(sink, data->kind == SM_DATA_ARRAY ? "[" : "{");
    for (const sm_data *child = data->first; child != NULL; child = child->next) {
        put_newline(sink, level + 1);
        put_key(sink, data, child);
        if (!put_data(sink, child, level + 1)) return false;
        if (child->next != NULL) sm_json_put_text(sink, ",");
    }
    put_newline(sink, level);
    sm_json_put_text(sink, data->kind == SM_DATA_ARRAY ? "]" : "}");
    return true;
}

sm_status sm_render_json(const sm_report *report, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    json_sink sink = {.out = out};
    if (!put_data(&sink, report->data, 0))
        return sm_fail(err, SM_INTERNAL, "the answer is nested more than %d levels deep",
                       MOST_LEVELS);
    sm_json_put_text(&sink, "\n");
    return sm_finish_stream(out, err);
}

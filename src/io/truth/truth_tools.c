/* Result files of benchmarks of serving, as their tools write them: one row of inference each, by
 * where data/formats/benchmarks.json says that its columns stand in them. None says which chips and
 * which plan served: --set does (truth_given). */
#include "truth_form.h"

const truth_tool *truth_tool_of(const json_value *object) {
    for (size_t i = 0; i < benchmarks_tools_count; i++) {
        int k = 0;
        while (k < 3 && json_find(object, benchmarks_tools[i].sign[k])) k++;
        if (k == 3) return &benchmarks_tools[i];
    }
    return NULL;
}

/* A list of one, as loads of several are told, counts as what is in it. */
static const json_value *value_at(const json_value *object, const char *path) {
    const json_value *v = path ? json_find(object, path) : NULL;
    if (v && v->kind == IS_LIST && v->n == 1) v = &v->item[0];
    return v && v->kind != IS_NULL ? v : NULL;
}

static bool is_set(const json_value *v) {
    const char *text = json_text(v);
    return text ? strcmp(text, "true") == 0 || strcmp(text, "True") == 0
                : json_is(v, IS_BOOL) && v->truth;
}

/* AIPerf tells its units. */
static double milliseconds(const json_value *object, const char *at) {
    char unit[64];
    snprintf(unit, sizeof unit, "%.*s.unit", (int)strcspn(at, "."), at);
    const char *text = json_text(json_find(object, unit));
    return !text                                                ? 1.0
           : strcmp(text, "s") == 0 || strcmp(text, "sec") == 0 ? 1e3
           : strcmp(text, "us") == 0                            ? 1e-3
           : strcmp(text, "ns") == 0                            ? 1e-6
                                                                : 1.0;
}

static bool take(const json_value *object, const tool_field *f, sm_arena *arena, truth_cell *out) {
    const json_value *v = value_at(object, f->at), *over = value_at(object, f->over),
                     *plus = value_at(object, f->plus);
    if (!v || (f->only && !is_set(value_at(object, f->only)))) return false;
    if (f->says) {
        *out = (truth_cell){.kind = CELL_TEXT, .text = f->says};
        return true;
    }
    if (v->kind == IS_BOOL) {
        *out =
            (truth_cell){.kind = CELL_FLAG, .text = v->truth ? "true" : "false", .yes = v->truth};
        return true;
    }
    if (v->kind == IS_TEXT) { /* "inf" requests a second: all at once */
        /* hw may say whose machines they are: "h200-nb" */
        size_t n = strcmp(f->key, "chip") == 0 ? strcspn(v->text, "-_") : v->n;
        if (strcmp(v->text, "inf") == 0) return false;
        *out = (truth_cell){.kind = CELL_RAW, .text = sm_arena_copy(arena, v->text, n)};
        return true;
    }
    if (v->kind != IS_NUMBER || !isfinite(v->number)) return false;
    double number = v->number * (f->times > 0 ? f->times : 1.0);
    if (strncmp(f->key, "measured.", 9) == 0) number *= milliseconds(object, f->at);
    if (plus) number += json_number(plus);
    if (f->over && !(json_number(over) > 0)) return false;
    if (f->over) number /= json_number(over);
    *out = (truth_cell){
        .kind = CELL_NUMBER, .number = number, .text = sm_arena_printf(arena, "%.15g", number)};
    return true;
}

static bool is_of(const tool_field *f, const truth_tool *tool, const char *key) {
    return strcmp(f->tool, tool->name) == 0 && strcmp(f->key, key) == 0;
}

sm_status truth_tool_cell(const truth_tool *tool, const json_value *object, const char *key,
                          sm_arena *arena, sm_error *err, truth_cell *out) {
    *out = (truth_cell){.kind = CELL_NONE, .text = ""};
    if (strcmp(key, "source") == 0) *out = (truth_cell){.kind = CELL_TEXT, .text = tool->title};
    for (size_t i = 0; i < benchmarks_columns_count; i++)
        if (is_of(&benchmarks_columns[i], tool, key) &&
            take(object, &benchmarks_columns[i], arena, out))
            break;
    if (out->kind == CELL_RAW || out->kind == CELL_NONE) { /* as of --metadata, or not stated */
        const json_value *own = out->kind == CELL_NONE ? json_get(object, key) : NULL;
        if (own && own->kind == IS_TEXT)
            *out = (truth_cell){.kind = CELL_RAW, .text = sm_arena_copy(arena, own->text, own->n)};
        else if (own && own->kind == IS_NUMBER)
            *out = (truth_cell){.kind = CELL_NUMBER,
                                .number = own->number,
                                .text = sm_arena_printf(arena, "%.15g", own->number)};
    }
    return out->text ? SM_OK : sm_fail_memory(err);
}

const char *sm_truth_tool_name(size_t i) {
    return i < benchmarks_tools_count ? benchmarks_tools[i].title : NULL;
}

const char *sm_truth_tool_key(size_t i, const char *column, double *times) {
    for (size_t k = 0; i < benchmarks_tools_count && k < benchmarks_columns_count; k++) {
        const tool_field *f = &benchmarks_columns[k];
        if (!is_of(f, &benchmarks_tools[i], column) || f->says) continue;
        *times = f->times > 0 ? f->times : 1.0;
        return f->at;
    }
    return NULL;
}

/* Measured rows written as they are read: one JSON object a line, by the keys of the schema. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scalemodel/json.h"
#include "truth_form.h"

static const truth_schema *schema_of(sm_truth_kind kind) {
    for (int i = 0; i < SM_TRUTH_KIND_COUNT; i++)
        if (rows_schemas[i].kind == kind) return &rows_schemas[i];
    return NULL;
}

static void *place(truth_draft *draft, const truth_field *f) { return (char *)draft + f->offset; }

/* ---- a row that states nothing ---- */

static void unstate(truth_draft *draft, const truth_field *f) {
    switch (f->type) {
    case TRUTH_TEXT:
    case TRUTH_LABEL:
    case TRUTH_WORDS: *(const char **)place(draft, f) = ""; return;
    case TRUTH_NUMBER:
    case TRUTH_TIME:
    case TRUTH_SIZE: *(double *)place(draft, f) = NAN; return;
    case TRUTH_COUNT: *(int *)place(draft, f) = 0; return;
    case TRUTH_STAGE: *(int *)place(draft, f) = -1; return;
    case TRUTH_FLAG: *(sm_stated *)place(draft, f) = SM_UNSTATED; return;
    }
}

static void unstate_all(truth_draft *draft, sm_truth_kind kind) {
    const truth_schema *s = schema_of(kind);
    memset(draft, 0, sizeof *draft);
    for (size_t i = 0; i < s->n; i++) unstate(draft, &s->field[i]);
    draft->row.kind = kind;
    draft->row.measured_s = NAN;
}

void sm_truth_row_blank(sm_truth_kind kind, sm_truth_row *row) {
    truth_draft draft;
    unstate_all(&draft, kind);
    if (kind == SM_TRUTH_TRAINING)
        draft.row.of.training.peak_memory_bytes = draft.row.of.training.derived_step_time_s = NAN;
    *row = draft.row;
    row->source = "";
}

/* ---- writing ---- */

/* "OOM repeated": a list of texts. */
static sm_data *words(sm_arena *arena, const char *text) {
    sm_data *list = sm_data_array(arena);
    while (list && *text) {
        size_t n = strcspn(text, " ");
        char *word = n ? sm_arena_copy(arena, text, n) : NULL;
        if (n && !(word && sm_data_push(list, sm_data_string(arena, word)))) return NULL;
        text += n + (text[n] == ' ');
    }
    return list;
}

static bool stated(truth_draft *draft, const truth_field *f) {
    switch (f->type) {
    case TRUTH_TEXT:
    case TRUTH_LABEL:
    case TRUTH_WORDS: {
        const char *text = *(const char **)place(draft, f);
        return text && text[0];
    }
    case TRUTH_NUMBER:
    case TRUTH_TIME:
    case TRUTH_SIZE: return isfinite(*(double *)place(draft, f));
    case TRUTH_COUNT: return *(int *)place(draft, f) != 0;
    case TRUTH_STAGE: return *(int *)place(draft, f) >= 0;
    case TRUTH_FLAG: return *(sm_stated *)place(draft, f) != SM_UNSTATED;
    }
    return false;
}

static sm_data *value_of(sm_arena *arena, truth_draft *draft, const truth_field *f) {
    switch (f->type) {
    case TRUTH_TEXT:
    case TRUTH_LABEL: return sm_data_string(arena, *(const char **)place(draft, f));
    case TRUTH_WORDS: return words(arena, *(const char **)place(draft, f));
    case TRUTH_NUMBER:
    case TRUTH_TIME:
    case TRUTH_SIZE: return sm_data_number(arena, *(double *)place(draft, f));
    case TRUTH_COUNT:
    case TRUTH_STAGE: return sm_data_number(arena, *(int *)place(draft, f));
    case TRUTH_FLAG: return sm_data_bool(arena, *(sm_stated *)place(draft, f) == SM_YES);
    }
    return NULL;
}

/* "model.layers" goes into the object "model". */
static bool put(sm_arena *arena, sm_data *object, const char *key, sm_data *value) {
    size_t n = strcspn(key, ".");
    if (!key[n]) return sm_data_put(object, arena, key, value);
    const char *outer = sm_arena_copy(arena, key, n);
    if (!outer) return false;
    sm_data *inner = object->first;
    while (inner && strcmp(inner->key, outer) != 0) inner = inner->next;
    if (!inner) {
        inner = sm_data_object(arena);
        if (!sm_data_put(object, arena, outer, inner)) return false;
    }
    return put(arena, inner, key + n + 1, value);
}

/* What the file prints in other units than a row is in. */
static void undo_units(truth_draft *draft) {
    sm_truth_row *row = &draft->row;
    if (row->kind == SM_TRUTH_TRAINING) {
        draft->peak_gib = ldexp(row->of.training.peak_memory_bytes, -30);
        draft->time_from_tokens_s = row->of.training.derived_step_time_s;
        row->of.training.title = row->source;
        return;
    }
    if (row->kind == SM_TRUTH_INFERENCE) {
        draft->ttft_ms = row->of.inference.ttft_s * 1e3;
        draft->tpot_ms = row->of.inference.tpot_s * 1e3;
        draft->latency_ms = row->of.inference.latency_s * 1e3;
        return;
    }
    draft->label = row->source;
    draft->time_us = row->measured_s * 1e6;
}

/* NULL: out of memory. */
static sm_data *object_of(sm_arena *arena, const sm_truth_row *row) {
    truth_draft draft;
    const truth_schema *s = schema_of(row->kind);
    sm_data *object = sm_data_object(arena);
    unstate_all(&draft, row->kind);
    draft.row = *row;
    undo_units(&draft);
    for (size_t i = 0; object && i < s->n; i++) {
        const truth_field *f = &s->field[i];
        if (stated(&draft, f) && !put(arena, object, f->key, value_of(arena, &draft, f)))
            return NULL;
    }
    return object;
}

/* ---- appending ---- */

static sm_status read_so_far(const char *path, sm_truth_kind kind, sm_arena *arena,
                             sm_source *so_far, sm_error *err) {
    *so_far = (sm_source){.text = "", .length = 0};
    if (access(path, F_OK) != 0) return SM_OK;
    sm_status status = sm_io_read_most(path, SM_IO_DATA_BYTES, arena, so_far, err);
    if (status) return status;
    /* All rows of a file are of one kind, and of one form. */
    sm_truth truth;
    sm_span all = sm_source_trim(so_far, 0, so_far->length);
    if (all.length == 0) return SM_OK;
    if (so_far->text[all.offset] != '{')
        return sm_fail(err, SM_BAD_INPUT, "%s holds no JSON lines: rows are added to those alone",
                       path);
    status = sm_truth_read(path, arena, &truth, err);
    if (status || truth.kind == kind) return status;
    return sm_fail(err, SM_BAD_INPUT, "%s holds rows of %s, and this one is of %s", path,
                   sm_truth_kind_name(truth.kind), sm_truth_kind_name(kind));
}

sm_status sm_truth_append_check(const char *path, sm_truth_kind kind, sm_error *err) {
    sm_source so_far;
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    sm_status status = read_so_far(path, kind, arena, &so_far, err);
    sm_arena_free(arena);
    return status;
}

static sm_status write_lines(const char *path, const sm_source *so_far, const char *line,
                             size_t more, sm_arena *arena, sm_error *err) {
    size_t n = so_far->length;
    bool ended = n == 0 || so_far->text[n - 1] == '\n';
    char *text = sm_arena_alloc(arena, n + more + 3);
    if (!text) return sm_fail_memory(err);
    if (n) memcpy(text, so_far->text, n);
    if (!ended) text[n++] = '\n';
    memcpy(text + n, line, more);
    text[n + more] = '\n';
    return sm_io_write(path, text, n + more + 1, err);
}

static sm_status append(const char *path, const sm_truth_row *row, sm_arena *arena, sm_error *err) {
    sm_source so_far;
    sm_status status = read_so_far(path, row->kind, arena, &so_far, err);
    if (status) return status;
    char *line;
    size_t n;
    status = sm_json_format(object_of(arena, row), SM_JSON_LINE, arena, &line, &n, err);
    return status ? status : write_lines(path, &so_far, line, n, arena, err);
}

/* One after the other, where several add to one file. */
sm_status sm_truth_append(const char *path, const sm_truth_row *row, sm_error *err) {
    struct stat is;
    sm_file_lock *lock = NULL;
    bool device = stat(path, &is) == 0 && !S_ISREG(is.st_mode);
    sm_status status = device ? SM_OK : sm_io_lock(path, true, &lock, err);
    sm_arena *arena = status ? NULL : sm_arena_new();
    if (!status) status = arena ? append(path, row, arena, err) : sm_fail_memory(err);
    sm_arena_free(arena);
    sm_io_unlock(lock);
    return status;
}

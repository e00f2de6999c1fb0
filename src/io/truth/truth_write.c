/* Measured rows written as they are read: one JSON object a line, by the keys of the schema. */
#include <sys/stat.h>
#include <unistd.h>

#include "scalemodel/json.h"
#include "truth_form.h"

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

void truth_draft_blank(truth_draft *draft, sm_truth_kind kind) {
    const truth_schema *s = truth_schema_of(kind);
    memset(draft, 0, sizeof *draft);
    for (size_t i = 0; i < s->n; i++) unstate(draft, &s->field[i]);
    draft->row.kind = kind;
    draft->row.measured_s = NAN;
}

void sm_truth_row_blank(sm_truth_kind kind, sm_truth_row *row) {
    truth_draft draft;
    truth_draft_blank(&draft, kind);
    if (kind == SM_TRUTH_TRAINING)
        draft.row.of.training.peak_memory_bytes = draft.row.of.training.derived_step_time_s = NAN;
    *row = draft.row;
    row->source = "";
}

/* ---- writing ---- */

/* A field's value into the object, if the row states it. */
static void put_field(sm_report *r, sm_data *object, truth_draft *draft, const truth_field *f) {
    const void *at = place(draft, f);
    const char *key = f->key, *text = f->type <= TRUTH_WORDS ? *(const char *const *)at : NULL;
    sm_stated flag = f->type == TRUTH_FLAG ? *(const sm_stated *)at : SM_UNSTATED;
    double number = NAN;
    if (f->type == TRUTH_NUMBER || f->type == TRUTH_TIME || f->type == TRUTH_SIZE)
        number = *(const double *)at / (f->times > 0 ? f->times : 1);
    if ((f->type == TRUTH_COUNT && *(const int *)at) ||
        (f->type == TRUTH_STAGE && *(const int *)at >= 0))
        number = *(const int *)at;
    if ((!text || !text[0]) && flag == SM_UNSTATED && !isfinite(number)) return;
    object = sm_put_nested(r, object, &key);
    if (f->type == TRUTH_WORDS) { /* "OOM repeated": a list of texts */
        sm_data *list = sm_put_array(r, object, key);
        for (size_t n; (n = sm_next_word(&text, &key)) > 0;)
            sm_put(r, list, NULL, sm_textf(r, "%.*s", (int)n, key));
    } else if (text) sm_put(r, object, key, text);
    else if (flag != SM_UNSTATED) sm_put(r, object, key, (bool)(flag == SM_YES));
    else sm_put(r, object, key, number);
}

sm_status truth_row_line(const sm_truth_row *row, bool same, sm_arena *arena, char **line,
                         size_t *n, sm_error *err) {
    truth_draft draft;
    const truth_schema *s = truth_schema_of(row->kind);
    sm_report r = {.arena = arena}; /* of which no more is used than whether memory ran out */
    sm_data *object = sm_data_object(arena);
    truth_draft_blank(&draft, row->kind);
    draft.row = *row;
    if (row->kind == SM_TRUTH_TRAINING) {
        draft.peak_gib = ldexp(row->of.training.peak_memory_bytes, -30);
        draft.time_from_tokens_s = row->of.training.derived_step_time_s;
        draft.row.of.training.title = row->source;
    } else if (row->kind != SM_TRUTH_INFERENCE) draft.label = row->source;
    for (size_t i = 0; i < s->n && !r.out_of_memory; i++)
        if (!same || s->field[i].same) put_field(&r, object, &draft, &s->field[i]);
    return object && !r.out_of_memory ? sm_json_format(object, SM_JSON_LINE, arena, line, n, err)
                                      : sm_fail_memory(err);
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
    status = truth_row_line(row, false, arena, &line, &n, err);
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

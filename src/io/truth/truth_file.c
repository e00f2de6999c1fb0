/* Files of measured rows: which form, which kind, all rows of it. */

#include "truth_form.h"

#include <stdlib.h>
#include <string.h>

const truth_schema *truth_recognise(bool (*has)(const void *where, const char *key),
                                    const void *where) {
    for (size_t i = 0; i < SM_TRUTH_KIND_COUNT; i++) {
        const char *const *sign = rows_schemas[i].sign;
        while (*sign && has(where, *sign)) sign++;
        if (!*sign) return &rows_schemas[i];
    }
    return NULL;
}

const truth_schema *truth_schema_of(sm_truth_kind kind) {
    size_t i = 0;
    while (rows_schemas[i].kind != kind) i++;
    return &rows_schemas[i];
}

const char *truth_known_kinds(char *out, size_t size) {
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < SM_TRUTH_KIND_COUNT; i++) {
        const truth_schema *schema = &rows_schemas[i];
        for (size_t j = 0; schema->sign[j] && at < size; j++)
            at += (size_t)snprintf(out + at, size - at, "%s%s",
                                   j   ? ", "
                                   : i ? "; "
                                       : "",
                                   schema->sign[j]);
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, " (%s)", sm_truth_kind_name(schema->kind));
    }
    return out;
}

static sm_status read_rows(truth_file *f, truth_rows *rows) {
    const sm_source *s = f->source;
    size_t at = sm_source_trim(s, 0, s->length).offset;
    if (at == s->length)
        return sm_fail_at(f->err, s, (sm_span){0, 0},
                          "there are no measured rows: expected CSV with a header, or one JSON "
                          "object a line");
    return strchr("{[", s->text[at]) ? truth_json_read(f, rows) : truth_csv_read(f, rows);
}

static sm_status keep(const truth_file *f, const truth_rows *rows, sm_truth *truth) {
    truth->file = sm_arena_copy(f->arena, f->source->name, strlen(f->source->name));
    truth->row = sm_arena_array(f->arena, rows->n ? rows->n : 1, sizeof *truth->row);
    if (!truth->file || !truth->row) return sm_fail_memory(f->err);
    truth->kind = f->schema->kind;
    for (size_t i = 0; i < rows->n; i++)
        if (rows->row[i].alike != FOLDED) truth->row[truth->n++] = rows->row[i];
    return SM_OK;
}

SM_ORDER(by_line, sm_truth_warning, SM_ASCENDING(line) SM_BY_TEXT(text))

static sm_status parse(const sm_source *source, const sm_truth_given *given, sm_arena *arena,
                       sm_truth *truth, sm_error *err) {
    memset(truth, 0, sizeof *truth);
    truth_rows rows = {.row = NULL};
    bool marked = source->length >= 3 && memcmp(source->text, "\xEF\xBB\xBF", 3) == 0;
    size_t skipped = marked ? 3 : 0; /* a byte order mark */
    sm_source text = {source->name, source->text + skipped, source->length - skipped};
    sm_texts texts = {.n = 0};
    truth_file f = {.source = &text, .given = given, .arena = arena, .texts = &texts, .err = err};
    sm_status status = read_rows(&f, &rows);
    if (status == SM_OK) status = sm_truth_counted_times(rows.row, rows.n, err);
    if (status == SM_OK) status = keep(&f, &rows, truth);
    sm_free(rows.row);
    sm_numbers_free(&rows.places);
    sm_texts_free(&texts);
    if (status == SM_OK) {
        truth_warnings w = {.r = {.arena = f.arena}};
        for (size_t i = 0; i < truth->n && !w.r.out_of_memory; i++)
            truth_suspect_row(&w, &truth->row[i]);
        if (!w.r.out_of_memory) truth_suspect_twins(&w, truth->row, truth->n);
        sm_truth_warning *kept =
            w.r.out_of_memory ? NULL : sm_arena_array(f.arena, w.n + 1, sizeof *kept);
        if (kept && w.n) memcpy(kept, w.warning, w.n * sizeof *kept);
        if (kept) qsort(kept, w.n, sizeof *kept, by_line);
        truth->warning = kept;
        truth->warnings = kept ? w.n : 0;
        sm_free(w.warning);
        status = kept ? SM_OK : sm_fail_memory(f.err);
    }
    if (status != SM_OK) memset(truth, 0, sizeof *truth);
    return status;
}

sm_status sm_truth_parse(const sm_source *source, sm_arena *arena, sm_truth *truth, sm_error *err) {
    return parse(source, NULL, arena, truth, err);
}

sm_status sm_truth_read(const char *path, sm_arena *arena, sm_truth *truth, sm_error *err) {
    return sm_truth_read_given(path, NULL, arena, truth, err);
}

sm_status sm_truth_read_given(const char *path, const sm_truth_given *given, sm_arena *arena,
                              sm_truth *truth, sm_error *err) {
    sm_source source;
    sm_arena *whole = sm_arena_new(); /* the rows keep none of it */
    memset(truth, 0, sizeof *truth);
    if (!whole) return sm_fail_memory(err);
    sm_status status = sm_io_read_most(path, SM_IO_DATA_BYTES, whole, &source, err);
    if (status == SM_OK) status = parse(&source, given, arena, truth, err);
    sm_arena_free(whole);
    return status;
}

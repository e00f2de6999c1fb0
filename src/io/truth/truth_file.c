/* Files of measured rows: which form, which kind, all rows of it. */

#include "truth_form.h"

#include <stdlib.h>

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

static sm_source without_mark(sm_source s) {
    size_t mark = s.length >= 3 && memcmp(s.text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return (sm_source){s.name, s.text + mark, s.length - mark};
}

/* One row a line ends its first line with its brace, if that is not too long to be seen at once;
 * what tools write goes on. */
static bool has_lines(const sm_source *s) {
    const sm_span all = sm_source_trim(s, 0, s->length);
    const char *at = s->text + all.offset, *end = memchr(at, '\n', all.length);
    const sm_span first = sm_source_trim(s, all.offset, end ? (size_t)(end - s->text) : s->length);
    bool cut = !end && s->length >= PACKED_PEEK - 3;
    return all.length > 0 && *at == '{' && (cut || at[first.length - 1] == '}');
}

static sm_status read_rows(truth_file *f, line_reader *lines, truth_rows *rows) {
    sm_source text = without_mark(packed_first(lines->file));
    if (has_lines(&text)) return truth_json_lines(f, lines, rows);
    sm_arena *whole = sm_arena_new(); /* the rows keep none of it */
    sm_status status = whole ? packed_rest(lines->file, SM_IO_DATA_BYTES, whole, &text, f->err)
                             : sm_fail_memory(f->err);
    if (!status) {
        text = without_mark(text);
        f->source = &text;
        size_t at = sm_source_trim(&text, 0, text.length).offset;
        if (at == text.length)
            status = sm_fail_at(f->err, &text, (sm_span){0, 0},
                                "there are no measured rows: expected CSV with a header, or one "
                                "JSON object a line");
        else
            status =
                strchr("{[", text.text[at]) ? truth_json_read(f, rows) : truth_csv_read(f, rows);
    }
    f->source = NULL;
    sm_arena_free(whole);
    return status;
}

static sm_status keep(const truth_file *f, const truth_rows *rows, sm_truth *truth) {
    truth->file = sm_arena_copy(f->arena, f->name, strlen(f->name));
    truth->row = sm_arena_array(f->arena, rows->n ? rows->n : 1, sizeof *truth->row);
    if (!truth->file || !truth->row) return sm_fail_memory(f->err);
    truth->kind = f->schema->kind;
    for (size_t i = 0; i < rows->n; i++)
        if (rows->row[i].alike != FOLDED) truth->row[truth->n++] = rows->row[i];
    return SM_OK;
}

SM_ORDER(by_line, sm_truth_warning, SM_ASCENDING(line) SM_BY_TEXT(text))

/* Closes the lines; opened: what opening them gave. */
static sm_status parse(sm_status opened, line_reader *lines, const sm_truth_given *given,
                       sm_arena *arena, sm_truth *truth, sm_error *err) {
    memset(truth, 0, sizeof *truth);
    truth_rows rows = {.row = NULL};
    sm_texts texts = {.n = 0};
    truth_file f = {
        .name = lines->name, .given = given, .arena = arena, .texts = &texts, .err = err};
    sm_status status = opened ? opened : read_rows(&f, lines, &rows);
    line_reader_close(lines);
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
    line_reader lines;
    return parse(line_reader_of(&lines, source, err), &lines, NULL, arena, truth, err);
}

sm_status sm_truth_read(const char *path, sm_arena *arena, sm_truth *truth, sm_error *err) {
    return sm_truth_read_given(path, NULL, arena, truth, err);
}

sm_status sm_truth_read_given(const char *path, const sm_truth_given *given, sm_arena *arena,
                              sm_truth *truth, sm_error *err) {
    line_reader lines;
    return parse(line_reader_open(&lines, path, err), &lines, given, arena, truth, err);
}

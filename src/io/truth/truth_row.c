/* From the values of a row, whatever form they stand in, to the row: each value checked,
 * conventions brought to one: seconds, bytes. */
#include "truth_form.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

enum { MOST_ROWS = 1000000 };

static sm_status fail_type(const truth_file *f, size_t field, const truth_cell *cell,
                           const char *expected) {
    char sentence[240];
    snprintf(sentence, sizeof sentence, "%s: expected %s, found %s%.60s%s",
             f->schema->field[field].key, expected, cell->kind == CELL_OTHER ? "" : "\"",
             cell->text, cell->kind == CELL_OTHER ? "" : "\"");
    return f->fail(f, field, sentence);
}

static bool spells_number(const char *text, double *number) {
    char *end = NULL;
    if (text[0] == 0 || text[strspn(text, "0123456789+-.eE")] != 0) return false;
    *number = strtod(text, &end);
    return *end == 0 && isfinite(*number);
}

static bool is_number(const truth_cell *cell, double *number) {
    if (cell->kind == CELL_RAW) return spells_number(cell->text, number);
    *number = cell->number;
    return cell->kind == CELL_NUMBER;
}

static bool is_whole(double number) { return number >= floor(number) && number <= floor(number); }

static sm_status set_number(const truth_file *f, size_t field, const truth_cell *cell,
                            double *value) {
    truth_type type = f->schema->field[field].type;
    double number = 0, times = f->schema->field[field].times;
    if (!is_number(cell, &number)) return fail_type(f, field, cell, "a number");
    if (number < 0) return fail_type(f, field, cell, "a number of at least 0");
    if (type == TRUTH_TIME && number <= 0) return fail_type(f, field, cell, "a number above 0");
    if (type == TRUTH_SIZE && (number < 1 || !is_whole(number)))
        return fail_type(f, field, cell, "a whole number from 1");
    *value = times > 0 ? number * times : number;
    return SM_OK;
}

static sm_status set_count(const truth_file *f, size_t field, const truth_cell *cell, int *value) {
    double number = 0;
    if (!is_number(cell, &number) || number < 0 || number > INT_MAX || !is_whole(number))
        return fail_type(f, field, cell, "a whole number");
    *value = (int)number;
    return SM_OK;
}

static bool spells_flag(const char *text, bool *yes) {
    static const char *const words[] = {"false", "true", "False", "True", "no", "yes", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        *yes = i % 2 == 1;
        if (strcmp(text, words[i]) == 0) return true;
    }
    return false;
}

static sm_status set_flag(const truth_file *f, size_t field, const truth_cell *cell,
                          sm_stated *value) {
    bool yes = cell->yes;
    if (cell->kind == CELL_RAW ? !spells_flag(cell->text, &yes) : cell->kind != CELL_FLAG)
        return fail_type(f, field, cell, "true or false");
    *value = yes ? SM_YES : SM_NO;
    return SM_OK;
}

static sm_status set_text(const truth_file *f, size_t field, const truth_cell *cell,
                          const char **value) {
    truth_type type = f->schema->field[field].type;
    if (type == TRUTH_LABEL && cell->kind == CELL_OTHER) return SM_OK;
    if (type == TRUTH_WORDS ? cell->kind != CELL_RAW && !cell->list
                            : cell->kind == CELL_OTHER || cell->list)
        return fail_type(f, field, cell, type == TRUTH_WORDS ? "a list of texts" : "a text");
    bool id = f->schema->field[field].offset == offsetof(truth_draft, row.id); /* not yet kept */
    *value = id ? cell->text : !cell->text[0] ? "" : sm_texts_keep(f->texts, f->arena, cell->text);
    return *value ? SM_OK : sm_fail_memory(f->err);
}

/* ---- what rows do not state ---- */

static size_t key_length(const sm_source *pair) { return strcspn(pair->text, "="); }

static sm_status fill_in(const truth_file *f, const char *key, truth_cell *cell) {
    for (size_t i = 0; i < f->given->n; i++) {
        const sm_source *pair = &f->given->pair[i];
        size_t n = key_length(pair);
        if (strncmp(pair->text, key, n) != 0 || key[n]) continue;
        const char *value = pair->text + n + 1;
        *cell = (truth_cell){.kind = CELL_RAW, .text = sm_arena_copy(f->row, value, strlen(value))};
    }
    return cell->text ? SM_OK : sm_fail_memory(f->err);
}

/* Each pair names a column of these rows. */
static sm_status check_given(const truth_file *f) {
    const char *names[TRUTH_MAX_FIELDS];
    assert(f->schema->n <= TRUTH_MAX_FIELDS);
    for (size_t i = 0; i < f->schema->n; i++) names[i] = f->schema->field[i].key;
    const sm_words words = {names, (int)f->schema->n};
    for (size_t i = 0; i < f->given->n; i++) {
        const sm_source *pair = &f->given->pair[i];
        const sm_span key = {0, key_length(pair)};
        if (key.length == pair->length)
            return sm_fail_at(f->err, pair, key, "expected COLUMN=VALUE, as in chip=h100-sxm");
        if (sm_words_find(words, pair, key) < 0)
            return sm_words_fail(words, pair, key, "such rows have no column", f->err);
    }
    return SM_OK;
}

static sm_status set_field(const truth_file *f, size_t field, truth_draft *draft) {
    truth_cell cell = {CELL_NONE, "", 0, false, false};
    char *at = (char *)draft + f->schema->field[field].offset;
    sm_status status = f->cell(f, field, &cell);
    if (status == SM_OK && f->given && cell.kind == CELL_NONE)
        status = fill_in(f, f->schema->field[field].key, &cell);
    if (status != SM_OK || cell.kind == CELL_NONE) return status;
    switch (f->schema->field[field].type) {
    case TRUTH_TEXT:
    case TRUTH_LABEL:
    case TRUTH_WORDS: return set_text(f, field, &cell, (const char **)(void *)at);
    case TRUTH_NUMBER:
    case TRUTH_TIME:
    case TRUTH_SIZE: return set_number(f, field, &cell, (double *)(void *)at);
    case TRUTH_COUNT:
    case TRUTH_STAGE: return set_count(f, field, &cell, (int *)(void *)at);
    case TRUTH_FLAG: return set_flag(f, field, &cell, (sm_stated *)(void *)at);
    }
    return SM_OK;
}

/* ---- one convention ---- */

static bool has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return true;
    return false;
}

/* Seconds of a step: as printed, else by the printed tokens/s, else by arithmetic that the file
 * itself carries. FLOP/s and MFU are turned into seconds by what their source counts, once all rows
 * are read (sm_truth_counted_times). */
static double step_seconds(const sm_training_row *t) {
    double tokens = t->global_batch_sequences * t->seq_len;
    if (!isnan(t->step_time_s)) return t->step_time_s;
    if (tokens > 0 && t->tokens_per_s_per_chip > 0 && t->chips > 0)
        return tokens / (t->tokens_per_s_per_chip * t->chips);
    return t->derived_step_time_s;
}

static void finish(const truth_file *f, truth_draft *draft) {
    if (f->schema->kind == SM_TRUTH_TRAINING) {
        sm_training_row *t = &draft->row.of.training;
        assert(t->title);
        draft->row.source = t->title;
        if (!t->title[0]) draft->row.source = t->title = draft->label;
        t->oom = has_word(t->flags, "OOM");
        t->in_order = has_word(t->flags, "moe_in_order");
        t->peak_memory_bytes =
            isnan(draft->peak_gib) ? draft->peak_gb * 1e9 : ldexp(draft->peak_gib, 30);
        t->derived_step_time_s =
            isnan(draft->time_from_tokens_s) ? draft->time_from_flops_s : draft->time_from_tokens_s;
        draft->row.measured_s = step_seconds(t);
        return;
    }
    if (!draft->row.source || !draft->row.source[0]) draft->row.source = draft->label;
    const sm_inference_row *r = &draft->row.of.inference;
    if (f->schema->kind == SM_TRUTH_INFERENCE)
        draft->row.measured_s = sm_inference_measured(r, sm_inference_primary(r));
}

static sm_status append(const truth_file *f, truth_rows *rows, sm_truth_row *row) {
    size_t at = rows->n;
    const char *id = NULL;
    if (rows->read++ == MOST_ROWS)
        return sm_fail(f->err, SM_BAD_INPUT, "%s has more than %d rows", f->name, MOST_ROWS);
    bool folded = f->given && f->given->fold && row->measured_s > 0.0 &&
                  isfinite(row->measured_s) &&
                  !(row->kind == SM_TRUTH_TRAINING && row->of.training.oom);
    sm_status status = folded ? truth_fold(f, rows, row, &at, &id) : SM_OK;
    if (status) return status;
    if (!id && row->id[0]) id = sm_texts_keep(f->texts, f->arena, row->id);
    else if (!id) id = sm_arena_printf(f->arena, "%d", f->line);
    if (!id) return sm_fail_memory(f->err);
    row->id = id;
    if (at < rows->n) {
        rows->row[at] = *row;
        return SM_OK;
    }
    sm_truth_row *grown = sm_grow(rows->row, rows->n, &rows->room, sizeof *grown);
    if (!grown) return sm_fail_memory(f->err);
    rows->row = grown;
    grown[rows->n++] = *row;
    return SM_OK;
}

static sm_status set_fields(const truth_file *f, truth_draft *draft) {
    for (size_t i = 0; i < f->schema->n; i++) {
        sm_status status = set_field(f, i, draft);
        if (status != SM_OK) return status;
    }
    /* A count that nobody knows is told of here, where its place is known. */
    if (f->schema->kind != SM_TRUTH_TRAINING) return SM_OK;
    sm_source text = sm_source_of("", draft->row.of.training.flops_counted);
    const sm_codebase *of;
    sm_flops_count count;
    sm_error err;
    size_t field = 0;
    if (!text.length) return SM_OK;
    if (!sm_flops_count_parse(&text, (sm_span){0, text.length}, NULL, 0, &count, &of, &err))
        return SM_OK;
    while (strcmp(f->schema->field[field].key, "flops_counted") != 0) field++;
    return f->fail(f, field, err.sentence);
}

sm_status truth_row_read(truth_file *f, truth_rows *rows) {
    truth_draft draft;
    truth_draft_blank(&draft, f->schema->kind);
    draft.row.line = f->line;
    if (f->given && rows->n == 0 && (!f->given->kind || *f->given->kind == f->schema->kind)) {
        sm_status known = check_given(f);
        if (known != SM_OK) return known;
    }
    f->row = sm_arena_new();
    sm_status status = f->row ? set_fields(f, &draft) : sm_fail_memory(f->err);
    if (status == SM_OK) {
        finish(f, &draft);
        assert(draft.row.id);
        status = append(f, rows, &draft.row);
    }
    sm_arena_free(f->row);
    f->row = NULL;
    return status;
}

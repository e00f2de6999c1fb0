/* validate_input: read the rows that are asked for and predict each. */
#include "scalemodel/io.h"
#include "validate.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- which rows ---- */

static bool contains(const char *text, const char *words) {
    size_t n = strlen(words);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)words[i])) i++;
        if (i == n) return true;
    }
    return n == 0;
}

static const char *chip_of(const sm_truth_row *row) {
    const sm_chip *chip = sm_truth_row_chip(row);
    return chip ? chip->name : row->chip;
}

static bool is_wanted_chip(const sm_truth_row *row, const char *name) {
    const sm_chip *wanted = sm_chip_find(name, strlen(name));
    if (wanted) return sm_truth_row_chip(row) == wanted;
    return contains(row->chip, name);
}

static bool is_quality(const sm_truth_row *row, const char *quality) {
    return row->kind == SM_TRUTH_TRAINING && strcmp(row->of.training.quality, quality) == 0;
}

static bool is_wanted(const cli_validation *v, const sm_truth_row *row) {
    const cli_validate_values *o = v->values;
    if (cli_given(v->call, &o->kind) && row->kind != o->kind) return false;
    if (o->chip && !is_wanted_chip(row, o->chip)) return false;
    if (o->source && !contains(row->source, o->source)) return false;
    return !cli_given(v->call, &o->quality) || is_quality(row, cli_qualities[o->quality]);
}

/* ---- what is compared ---- */

static const char *apart_training(const sm_training_row *t, bool all) {
    if (t->oom) return "out of memory: a verdict, not a time";
    if (!all && t->duplicate_of[0]) return "repeats another row";
    if (!all && t->task[0] && strcmp(t->task, "pretrain") != 0) return "fine-tuning";
    return NULL;
}

/* Rows kept apart are answered all the same. */
static const char *apart_because(const cli_checked *c, bool all) {
    const sm_truth_row *row = c->row;
    if (row->kind == SM_TRUTH_TRAINING) {
        const char *why = apart_training(&row->of.training, all);
        if (why) return why;
    }
    if (c->p.unknown) return c->p.unknown;
    return row->measured_s > 0.0 ? NULL : "the source states no time";
}

/* The reason may live in the case, which goes first. */
static sm_status keep_reason(sm_prediction *p, sm_arena *arena, sm_error *err) {
    if (!p->unknown) return SM_OK;
    p->unknown = sm_arena_copy(arena, p->unknown, strlen(p->unknown));
    return p->unknown ? SM_OK : sm_fail_memory(err);
}

static sm_status predict(const sm_truth_row *row, const cli_override *override, sm_arena *arena,
                         cli_checked *c, sm_error *err) {
    sm_truth_case *ready;
    sm_status status = sm_truth_case_new(row, &ready, err);
    if (status) return status;
    sm_truth_predict(ready, cli_override_for(override, row), &c->p);
    status = keep_reason(&c->p, arena, err);
    sm_truth_case_free(ready);
    return status;
}

static sm_status check_file(const sm_truth *truth, cli_validation *v, sm_error *err) {
    for (size_t i = 0; i < truth->n; i++) {
        const sm_truth_row *row = &truth->row[i];
        if (!is_wanted(v, row)) continue;
        cli_checked *c = &v->row[v->n];
        *c = (cli_checked){.row = row, .truth = truth, .chip = chip_of(row)};
        sm_status status = predict(row, &v->override, v->call->arena, c, err);
        if (status) return status;
        c->apart = apart_because(c, v->values->all);
        if (!c->apart) v->index[v->compared++] = v->n;
        v->n++;
    }
    return SM_OK;
}

/* ---- reading ---- */

static sm_status find_files(const cli_call *call, const char *const **files, size_t *n,
                            sm_error *err) {
    const cli_validate_values *values = call->values;
    *files = call->positional;
    *n = (size_t)call->positionals;
    if (*n && values->data)
        return sm_fail(err, SM_USAGE, "--data names a folder to validate in place of files");
    if (*n) return SM_OK;
    const char **found = NULL;
    sm_status status = cli_truth_files(call, values->data, &found, n, err);
    *files = found;
    return status;
}

/* Rows of a chip of --system are predicted for that chip. */
static void place_rows(const cli_validation *v, sm_truth *truth) {
    for (size_t i = 0; i < truth->n; i++)
        for (size_t k = 0; k < v->chips; k++)
            if (strcmp(truth->row[i].chip, v->chip[k].name) == 0) truth->row[i].on = &v->chip[k];
}

static sm_status read_files(const cli_call *call, cli_validation *v, sm_error *err) {
    const char *const *files;
    sm_status status = find_files(call, &files, &v->files, err);
    if (status) return status;
    v->truth = sm_arena_array(call->arena, v->files, sizeof *v->truth);
    if (!v->truth) return sm_fail_memory(err);
    for (size_t i = 0; i < v->files && !status; i++) {
        status = sm_truth_read(files[i], call->arena, &v->truth[i], err);
        if (!status) place_rows(v, &v->truth[i]);
    }
    v->title = v->files == 1 ? files[0]
                             : sm_arena_printf(call->arena, "%zu files of measurements", v->files);
    return v->title ? status : sm_fail_memory(err);
}

static sm_status make_room(cli_validation *v, size_t rows, sm_error *err) {
    sm_arena *arena = v->call->arena;
    size_t room = rows ? rows : 1;
    v->row = sm_arena_array(arena, room, sizeof *v->row);
    v->index = sm_arena_array(arena, room, sizeof *v->index);
    v->pairs = sm_arena_array(arena, room, sizeof *v->pairs);
    v->scratch = sm_arena_array(arena, room, sizeof *v->scratch);
    return v->row && v->index && v->pairs && v->scratch ? SM_OK : sm_fail_memory(err);
}

sm_status cli_validation_read(const cli_call *call, cli_validation *v, sm_error *err) {
    *v = (cli_validation){.call = call, .values = call->values};
    sm_status status = cli_override_read(call, &v->override, err);
    if (!status) status = cli_system_file(call, &v->chip, &v->chips, err);
    if (!status) status = read_files(call, v, err);
    size_t rows = 0;
    for (size_t i = 0; i < v->files && !status; i++) rows += v->truth[i].n;
    if (!status) status = make_room(v, rows, err);
    for (size_t i = 0; i < v->files && !status; i++) status = check_file(&v->truth[i], v, err);
    return status;
}

/* ---- statistics ---- */

static sm_comparison comparison_of(const cli_checked *c) {
    return (sm_comparison){.measured = c->row->measured_s,
                           .lower = c->p.lower_s,
                           .expected = c->p.expected_s,
                           .low = c->p.high_s > 0.0 ? c->p.low_s : NAN,
                           .high = c->p.high_s > 0.0 ? c->p.high_s : NAN};
}

sm_error_stats cli_stats_of(const cli_validation *v, const size_t *index, size_t n) {
    for (size_t i = 0; i < n; i++) v->pairs[i] = comparison_of(&v->row[index[i]]);
    return sm_error_stats_of(v->pairs, n, v->scratch);
}

/* validate_predict: read the rows that are asked for and predict each. */
#include "validated.h"
#include <assert.h>
#include <ctype.h>

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

static bool is_wanted(const sm_validate_question *q, const sm_truth_row *row) {
    if (q->kind && row->kind != *q->kind) return false;
    const sm_chip *chip = q->chip ? sm_chip_find(q->chip, strlen(q->chip)) : NULL;
    if (chip && sm_truth_row_chip(row) != chip) return false;
    if (q->chip && !chip && !contains(row->chip, q->chip)) return false;
    if (q->source && !contains(row->source, q->source)) return false;
    return !q->quality ||
           (row->kind == SM_TRUTH_TRAINING && strcmp(row->of.training.quality, q->quality) == 0);
}

/* ---- what is compared ---- */

const char *sm_row_apart(const sm_truth_row *row, bool all) {
    const sm_training_row *t = &row->of.training;
    if (row->kind != SM_TRUTH_TRAINING) return NULL;
    if (t->oom) return "out of memory: a verdict, not a time";
    if (!all && t->duplicate_of[0]) return "repeats another row";
    return !all && sm_row_tunes(row) ? "fine-tuning" : NULL;
}

/* Rows kept apart are answered all the same. */
static const char *apart_because(const sm_checked *c, bool all) {
    const char *why = sm_row_apart(c->row, all);
    if (why || c->p.unknown) return why ? why : c->p.unknown;
    return c->row->measured_s > 0.0 ? NULL : "the source states no time";
}

static sm_status predict(const sm_validation *v, sm_checked *c, sm_error *err) {
    sm_truth_case *ready;
    sm_status status = sm_truth_cases_get(v->cases, c->row, &ready, err);
    if (status) return status;
    sm_truth_case_codebases(ready, v->in.codebases, v->in.n_codebases);
    sm_truth_predict(ready, sm_override_for(v, c->row), &c->p);
    if (c->p.unknown) { /* the reason may live in the case, which goes first */
        c->p.unknown = sm_arena_copy(v->arena, c->p.unknown, strlen(c->p.unknown));
        if (!c->p.unknown || c->p.out_of_memory) status = sm_fail_memory(err);
    }
    sm_truth_case_rest(ready);
    if (!status && c->p.calibration) { /* so may the constants */
        sm_calibration *kept = sm_arena_alloc(v->arena, sizeof *kept);
        if (!kept) return sm_fail_memory(err);
        *kept = *c->p.calibration;
        c->p.calibration = kept;
    }
    return status;
}

static sm_status check_file(const sm_truth *truth, sm_validation *v, sm_error *err) {
    for (size_t i = 0; i < truth->n; i++) {
        const sm_truth_row *row = &truth->row[i];
        if (!is_wanted(&v->in, row)) continue;
        sm_checked *c = &v->row[v->n];
        const sm_chip *chip = sm_truth_row_chip(row);
        *c = (sm_checked){.row = row, .truth = truth, .chip = chip ? chip->name : row->chip};
        sm_status status = predict(v, c, err);
        if (status) return status;
        c->apart = apart_because(c, v->in.all);
        if (!c->apart) v->index[v->compared++] = v->n;
        v->n++;
    }
    return SM_OK;
}

/* ---- reading ---- */

sm_status sm_validation_read(sm_validation *v, sm_error *err) {
    const sm_validate_question *q = &v->in;
    size_t rows = 0;
    v->truth = sm_arena_array(v->arena, q->files + 1, sizeof *v->truth);
    v->title = q->files == 1 ? q->file[0]
                             : sm_arena_printf(v->arena, "%zu files of measurements", q->files);
    if (!v->truth || !v->title) return sm_fail_memory(err);
    sm_status status = sm_override_check(v, err);
    for (size_t i = 0; i < q->files && !status; i++) {
        const sm_truth_given given = {.n = q->n_given, .pair = q->given, .kind = q->kind};
        status = sm_truth_read_given(q->file[i], q->n_given ? &given : NULL, v->arena, &v->truth[i],
                                     err);
        if (status) return status;
        for (size_t k = 0; k < v->truth[i].n; k++) {
            sm_truth_row *row = &v->truth[i].row[k];
            /* served as if by this software: its constants and what it does with requests */
            if (q->software.text && row->kind == SM_TRUTH_INFERENCE)
                row->software = q->software.text;
            for (size_t own = 0; own < q->n_own; own++)
                if (strcmp(row->chip, q->own[own].name) == 0) row->on = &q->own[own];
        }
        rows += v->truth[i].n;
    }
    if (!status) {
        size_t room = rows ? rows : 1;
        v->row = sm_arena_array(v->arena, room, sizeof *v->row);
        v->index = sm_arena_array(v->arena, room, sizeof *v->index);
        v->pairs = sm_arena_array(v->arena, room, sizeof *v->pairs);
        v->scratch = sm_arena_array(v->arena, room, sizeof *v->scratch);
        status = v->row && v->index && v->pairs && v->scratch ? SM_OK : sm_fail_memory(err);
    }
    v->cases = status ? NULL : sm_truth_cases_new(true);
    if (!status && !v->cases) status = sm_fail_memory(err);
    for (size_t i = 0; i < q->files && !status; i++) status = check_file(&v->truth[i], v, err);
    sm_truth_cases_free(v->cases);
    return status;
}

/* ---- statistics ---- */

sm_error_stats sm_stats_of(const sm_validation *v, const size_t *index, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const sm_checked *c = &v->row[index[i]];
        assert(index[i] < v->n);
        v->pairs[i] = (sm_comparison){.measured = c->row->measured_s,
                                      .lower = c->p.lower_s,
                                      .expected = c->p.expected_s,
                                      .low = c->p.high_s > 0.0 ? c->p.low_s : NAN,
                                      .high = c->p.high_s > 0.0 ? c->p.high_s : NAN};
    }
    return sm_error_stats_of(v->pairs, n, v->scratch);
}

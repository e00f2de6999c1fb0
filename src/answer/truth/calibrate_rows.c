/* calibrate_rows: the measured rows that constants are fitted to. */
#include "calibrated.h"
#include "scalemodel/io.h"
#include <string.h>

/* As `validate` keeps them out of its statistics. */
static bool is_apart(const sm_truth_row *row, bool all) {
    const sm_training_row *t = &row->of.training;
    if (!(row->measured_s > 0.0)) return true;
    if (row->kind != SM_TRUTH_TRAINING) return row->kind == SM_TRUTH_INFERENCE;
    if (t->oom) return true;
    if (all) return false;
    return t->duplicate_of[0] || strcmp(t->quality, "C") == 0 ||
           (t->task[0] && strcmp(t->task, "pretrain") != 0);
}

static bool is_named_software(const sm_fitting *q, const sm_truth *truth, size_t files) {
    for (size_t f = 0; f < files; f++)
        for (size_t i = 0; i < truth[f].n; i++) {
            const sm_truth_row *row = &truth[f].row[i];
            if (sm_truth_chip(row->chip) != q->in.chip) continue;
            if (strcmp(sm_truth_software(row), q->in.software) == 0) return true;
        }
    return false;
}

static sm_status take_rows(sm_fitting *q, const sm_truth *truth, bool only_software,
                           sm_error *err) {
    q->read += truth->n;
    for (size_t i = 0; i < truth->n; i++) {
        const sm_truth_row *row = &truth->row[i];
        if (sm_truth_chip(row->chip) != q->in.chip) continue;
        q->of_chip++;
        bool other = only_software && strcmp(sm_truth_software(row), q->in.software) != 0;
        if (other || is_apart(row, q->in.all)) {
            q->apart++;
            continue;
        }
        sm_status status = sm_truth_cases_get(q->cases, row, &q->ready[q->n].c, err);
        if (status) return status;
        q->ready[q->n].row = row;
        q->n++;
    }
    return SM_OK;
}

sm_status sm_fitting_rows(sm_fitting *q, sm_error *err) {
    size_t files = q->in.files, rows = 0;
    sm_truth *truth = sm_arena_array(q->arena, files + 1, sizeof *truth);
    sm_status status = SM_OK;
    if (!truth) return sm_fail_memory(err);
    q->files = "";
    for (size_t i = 0; i < files && !status; i++) {
        status = sm_truth_read(q->in.file[i], q->arena, &truth[i], err);
        if (status) return status;
        rows += truth[i].n;
        q->files = sm_arena_printf(q->arena, "%s%s%s", q->files, i ? ", " : "", q->in.file[i]);
        if (!q->files) return sm_fail_memory(err);
    }
    q->ready = sm_arena_array(q->arena, rows ? rows : 1, sizeof *q->ready);
    const sm_library *families = NULL;
    status = sm_library_shipped(q->arena, &families, err);
    if (status) return status;
    q->cases = sm_truth_cases_new(families);
    if (!q->ready || !q->cases) return sm_fail_memory(err);
    bool only = is_named_software(q, truth, files);
    for (size_t f = 0; f < files && !status; f++) status = take_rows(q, &truth[f], only, err);
    return status;
}

void sm_fitting_free(sm_fitting *q) { sm_truth_cases_free(q->cases); }

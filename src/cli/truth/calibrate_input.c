/* calibrate_input: the options of `calibrate`, and the rows it fits to. */
#include "calibrate.h"
#include "scalemodel/io.h"
#include <string.h>

/* ---- options ---- */

static sm_status read_chip(const char *text, cli_fitting *q, sm_error *err) {
    enum { MOST_NAMES = 256 };
    const char *names[MOST_NAMES];
    q->chip = sm_chip_find(text, strlen(text));
    if (q->chip) return SM_OK;
    size_t n = 0;
    while (n < sm_chip_count() && n < MOST_NAMES) {
        names[n] = sm_chip_at(n)->name;
        n++;
    }
    sm_source source = sm_source_of("--chip", text);
    const char *near = sm_nearest(text, source.length, names, n);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "the catalogue has no chip '%.60s'%s%s%s", text,
                      near ? "; did you mean " : "; 'scalemodel chip' lists them", near ? near : "",
                      near ? "?" : "");
}

static sm_status read_start(const char *text, cli_fitting *q, sm_error *err) {
    enum { MOST_NAMES = 64 };
    const char *names[MOST_NAMES];
    q->start = sm_calibration_for(q->chip, text ? text : q->software);
    if (!q->start && !text) q->start = sm_calibration_of(q->chip);
    if (q->start) return SM_OK;
    sm_source source = sm_source_of("--start", text);
    const char *near = sm_nearest(text, source.length, names,
                                  sm_calibration_softwares(q->chip, names, MOST_NAMES));
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "%s has no calibration for '%.60s'%s%s%s", q->chip->name, text,
                      near ? "; did you mean " : "; 'chip NAME --calibration' lists them",
                      near ? near : "", near ? "?" : "");
}

static unsigned constants_to_fit(const cli_call *call) {
    const cli_choices *fit = &((const cli_calibrate_values *)call->values)->fit;
    unsigned free = cli_given(call, fit) ? 0 : (1u << SM_CONSTANT_COUNT) - 1u;
    for (int i = 0; i < fit->n; i++) free |= 1u << fit->word[i];
    return free;
}

/* ---- rows ---- */

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

static bool is_named_software(const cli_fitting *q, const sm_truth *truth, size_t files) {
    for (size_t f = 0; f < files; f++)
        for (size_t i = 0; i < truth[f].n; i++) {
            const sm_truth_row *row = &truth[f].row[i];
            if (sm_truth_chip(row->chip) != q->chip) continue;
            if (strcmp(sm_truth_software(row), q->software) == 0) return true;
        }
    return false;
}

static sm_status take_rows(cli_fitting *q, const sm_truth *truth, bool only_software,
                           sm_error *err) {
    bool all = ((const cli_calibrate_values *)q->call->values)->all;
    q->read += truth->n;
    for (size_t i = 0; i < truth->n; i++) {
        const sm_truth_row *row = &truth->row[i];
        if (sm_truth_chip(row->chip) != q->chip) continue;
        q->of_chip++;
        bool other = only_software && strcmp(sm_truth_software(row), q->software) != 0;
        if (other || is_apart(row, all)) {
            q->apart++;
            continue;
        }
        sm_status status = sm_truth_case_new(row, &q->ready[q->n], err);
        if (status) return status;
        q->n++;
    }
    return SM_OK;
}

static sm_status read_files(cli_fitting *q, sm_truth *truth, size_t *rows, sm_error *err) {
    const cli_call *call = q->call;
    q->files = "";
    for (int i = 0; i < call->positionals; i++) {
        sm_status status = sm_truth_read(call->positional[i], call->arena, &truth[i], err);
        if (status) return status;
        *rows += truth[i].n;
        q->files =
            sm_arena_printf(call->arena, "%s%s%s", q->files, i ? ", " : "", call->positional[i]);
        if (!q->files) return sm_fail_memory(err);
    }
    return SM_OK;
}

static sm_status read_rows(cli_fitting *q, sm_error *err) {
    size_t files = (size_t)q->call->positionals, rows = 0;
    sm_truth *truth = sm_arena_array(q->call->arena, files, sizeof *truth);
    if (!truth) return sm_fail_memory(err);
    sm_status status = read_files(q, truth, &rows, err);
    if (status) return status;
    q->ready = sm_arena_array(q->call->arena, rows ? rows : 1, sizeof(void *));
    if (!q->ready) return sm_fail_memory(err);
    bool only = is_named_software(q, truth, files);
    for (size_t f = 0; f < files && !status; f++) status = take_rows(q, &truth[f], only, err);
    return status;
}

sm_status cli_fitting_read(const cli_call *call, cli_fitting *q, sm_error *err) {
    const cli_calibrate_values *values = call->values;
    sm_status status = read_chip(values->chip, q, err);
    q->software = values->software;
    q->free = constants_to_fit(call);
    if (!status) status = read_start(values->start, q, err);
    if (!status) status = read_rows(q, err);
    return status;
}

void cli_fitting_free(cli_fitting *q) {
    for (size_t i = 0; i < q->n; i++) sm_truth_case_free(q->ready[i]);
}

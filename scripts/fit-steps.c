/* The constants of training steps: one hierarchical fit of all measured rows, and its errors on
 * rows that had no part in it.
 *
 *   fit-steps [-o FOLDER] [-m MEASURED] [-r ROWS] [-a AFTER] FILE...
 *
 * The terms of hierarchy.h: what belongs to a chip is learned from every software that ran on it,
 * what belongs to a software from every chip, and a group of few rows stays near those it belongs
 * to. One more parameter of each group, `compute`, moves matmuls and attention together. Groups are
 * fitted in turn by the robust fit of search.h (backfitting: Buja, Hastie and Tibshirani, Ann.
 * Stat. 17 (1989) 453), rows weighed anew in each, on derivatives of each row by the constants of
 * its cell, which are worked out anew for each level of the fit, and for each sweep of one that
 * leaves rows out (Gauss and Newton's method, within LONGEST of where they are of).
 *
 * Without a software of its own, a question gets benchmarks + fabric + chip ("default"). Errors:
 * each source in turn is left out of the fit, then each tenth of the models (widths in a source).
 * Prints the table, and rows for held-out.csv; -o writes the sections as files of data/calibration;
 * -m what was measured of each model (data/evidence), -r every row with its errors; rows of -a came
 * after the fit: they teach no constant and are in no figure, but the intervals that are written.
 */
#include "evidence.h"
#include "scalemodel/io.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMETERS = COMPUTE + 1,
    /* Over all groups; the last of them over families and software alone: the fit of these still
     * gained, while chips with more came to follow the sources that they have. */
    SWEEPS = 6,
    FOLD_SWEEPS = 5,
    OWN_SWEEPS = 3,
    ROUNDS = 6, /* of the robust fit of one */
    MODEL_FOLDS = 10,
    SMALL_EVERY = 6 /* so many rows of small models, one is taken */
};
_Static_assert((int)PARAMETERS <= (int)SM_MAX_PARAMETERS, "they fit into one robust fit");
#define STEP 0.08   /* of a derivative */
#define LONGEST 0.7 /* on the line, of one fit of a group */
#define SPREAD 0.07 /* of a row: releases of one software alone differ by 4 to 9 % */

static const parameter parameters[PARAMETERS] = {
    [SM_CONSTANT_matmul_efficiency] = {.35, .95, {.08, .06, .05, .05, .05}},
    [SM_CONSTANT_matmul_efficiency_fp8] = {.30, .95, {.08, .06, .05, .05, .08}},
    [SM_CONSTANT_matmul_half_k] = {10, 600, {.5, .2, .1, .1, 0}},
    [SM_CONSTANT_attention_efficiency] = {.25, .85, {.3, .12, .12, .12, .15}},
    [SM_CONSTANT_attention_efficiency_backward] = {.2, .8, {.3, .12, .12, .12, .15}},
    [SM_CONSTANT_memory_efficiency] = {.45, 1, {.5, .25, .4, .4, .2}},
    [SM_CONSTANT_network_efficiency_inner] = {.35, 1, {.5, .25, .3, .3, .2}},
    [SM_CONSTANT_network_efficiency_outer] = {.25, 1, {.5, .3, .5, .5, .4}},
    [SM_CONSTANT_launch_s] = {5e-7, 4e-4, {1, .3, .5, .35, .25}},
    [SM_CONSTANT_collective_s] = {1e-6, 2e-4, {.7, .2, .3, .3, 0}},
    [SM_CONSTANT_overlap] = {.3, .97, {.8, .2, .7, .7, .4}},
    [SM_CONSTANT_step_overhead_s] = {1e-4, .5, {1, .2, .5, .5, .3}},
    [SM_CONSTANT_routing_s] = {1e-9, 3e-6, {1.5, .3, .7, 1, .5}},
    [SM_CONSTANT_elementwise_bytes] = {.7, 8, {.5, .1, .4, .4, .2}},
    [COMPUTE] = {0, 0, {0, .1, .15, .1, .15}},
};

/* What is left out. EXPERTS_OUT and SIZE_OUT: the source, and the other models of the chip that
 * have experts, or have none, as the row's has; or that are near to its size. */
typedef enum fold_kind {
    IN_SAMPLE,
    SOURCE_OUT,
    MODEL_OUT,
    EXPERTS_OUT,
    SIZE_OUT,
    FOLD_KINDS
} fold_kind;
typedef struct step {
    const sm_truth_row *row;
    sm_truth_case *c;
    int cell, source, model, fold[FOLD_KINDS];
    double weight, log_measured;
    double log_params, far; /* of the model; how far from the nearest of its chip in SIZE_OUT */
    bool large, masked, after, experts;
    double at, slope[PARAMETERS]; /* residual, and its derivatives by what its cell has */
    double own[FOLD_KINDS], usual[FOLD_KINDS]; /* log expected / measured */
    double log_work;                           /* FLOPs of a chip, causal attention */
    double one_rate;                 /* as alone, by one FLOP/s of a chip: see one_rates */
    double alone, any_three;         /* with the source left out: see three_rows */
    double alone_other, other_three; /* the three of other models */
} step;

typedef struct fit {
    hierarchy h;
    step *step;
    size_t n;
    names sources, models, fold[FOLD_KINDS];
    int cells; /* those of rows that are fitted: the first */
    /* of the group being fitted */
    int level, at, free[PARAMETERS], p;
    size_t *index, m;
    double *weight, *room, *scratch;
} fit;

/* The constants of a cell by its first `levels` terms. */
static sm_calibration constants_of(const fit *f, const cell *c, int levels) {
    double x[MOST_PARAMETERS];
    place(&f->h, c, levels, x);
    return constants_at(&f->h, c, x);
}

static double residual_of(const step *s, const sm_calibration *c) {
    sm_prediction p;
    sm_truth_predict(s->c, c, &p);
    if (p.out_of_memory) fprintf(stderr, "fit-steps: out of memory\n"), exit(2);
    return !p.unknown && p.expected_s > 0.0 ? log(p.expected_s) - s->log_measured : NAN;
}

/* ---- derivatives ---- */

static bool is_fitted(int j) {
    for (int l = 0; l < LEVELS; l++)
        if (parameters[j].sigma[l] > 0.0) return true;
    return false;
}

/* Of the rows of a cell, where its terms are now. */
static void linearise_cell(fit *f, int c) {
    cell *at = &f->h.cell[c];
    place(&f->h, at, LEVELS, at->x);
    for (int j = -1; j < PARAMETERS; j++) {
        double x[PARAMETERS];
        if (j >= 0 && !is_fitted(j)) continue;
        memcpy(x, at->x, sizeof x);
        if (j >= 0) x[j] += STEP;
        sm_calibration k = constants_at(&f->h, at, x);
        for (size_t i = 0; i < f->n; i++) {
            step *s = &f->step[i];
            if (s->cell != c || s->masked) continue;
            double r = residual_of(s, &k);
            if (j < 0) s->at = r;
            else s->slope[j] = isfinite(r) ? (r - s->at) / STEP : 0.0;
        }
    }
}

/* only: cells with a group that is fitted above the fabric; NULL: all. */
static void linearise(fit *f, const bool only[LEVELS][MOST_GROUPS]) {
    for (int c = 0; c < f->h.cells; c++) {
        bool touched = !only;
        for (int l = CHIP; l < LEVELS && !touched; l++) touched = only[l][f->h.cell[c].group[l]];
        if (touched) linearise_cell(f, c);
    }
}

/* ---- the fit of one group ---- */

static void residuals(void *context, const double *u, double *out) {
    const fit *f = context;
    static double moved[MOST_GROUPS][PARAMETERS];
    bool known[MOST_GROUPS] = {false};
    for (size_t i = 0; i < f->m; i++) {
        const step *s = &f->step[f->index[i]];
        const cell *c = &f->h.cell[s->cell];
        double *by = moved[s->cell];
        if (!known[s->cell]) {
            double x[MOST_PARAMETERS];
            place(&f->h, c, LEVELS, x);
            for (int j = 0; j < PARAMETERS; j++) by[j] = x[j] - c->x[j];
            for (int j = 0; j < f->p; j++)
                by[f->free[j]] += u[j] - f->h.term[f->level][f->at][f->free[j]];
        }
        known[s->cell] = true;
        out[i] = s->at;
        for (int j = 0; j < PARAMETERS; j++) out[i] += s->slope[j] * by[j];
    }
}

static void spreads(void *context, const double *at, bool settled, double *spread) {
    (void)at, (void)settled;
    for (size_t i = 0; i < ((const fit *)context)->m; i++) spread[i] = SPREAD;
}

/* n rows of one source in a group count as n^(1/2), so that none outweighs all others, and rows of
 * one model as somewhat less again. */
static void take_rows(fit *f) {
    int of_source[MOST_NAMES] = {0}, of_model[MOST_NAMES] = {0};
    f->m = 0;
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        if (s->masked || f->h.cell[s->cell].group[f->level] != f->at) continue;
        f->index[f->m++] = i;
        of_source[s->source]++, of_model[s->model]++;
    }
    for (size_t i = 0; i < f->m; i++) {
        const step *s = &f->step[f->index[i]];
        f->weight[i] = s->weight * pow(of_source[s->source], -0.5) * pow(of_model[s->model], -0.25);
    }
}

static void fit_group(fit *f, int level, int at) {
    double u[SM_MAX_PARAMETERS] = {0}, *term = f->h.term[level][at];
    f->level = level, f->at = at, f->p = 0;
    take_rows(f);
    sm_robust_fit r = {.context = f,
                       .residuals = residuals,
                       .spreads = spreads,
                       .settled = true,
                       .rows = f->m,
                       .weight = f->weight,
                       .room = f->room};
    for (int j = 0; j < PARAMETERS; j++) {
        double sigma = parameters[j].sigma[level];
        if (!(sigma > 0.0)) continue;
        u[f->p] = term[j];
        r.precision[f->p] = 1.0 / (sigma * sigma);
        r.low[f->p] = term[j] - LONGEST, r.high[f->p] = term[j] + LONGEST;
        f->free[f->p++] = j;
    }
    r.parameters = f->p;
    if (f->m == 0) memset(u, 0, sizeof u);
    else sm_robust_descend(&r, ROUNDS, u);
    double deviation[SM_MAX_PARAMETERS], sensitivity[SM_MAX_PARAMETERS];
    if (f->m > 0) sm_robust_deviations(&r, u, deviation, sensitivity);
    for (int j = 0; j < f->p; j++) {
        term[f->free[j]] = u[j];
        f->h.deviation[level][at][f->free[j]] = f->m > 0 ? deviation[j] : INFINITY;
    }
}

/* only: a mark for each group that is fitted; NULL: all. */
static void sweep(fit *f, int times, const bool only[LEVELS][MOST_GROUPS]) {
    for (int t = 0; t < times; t++) {
        const int first = t < times - OWN_SWEEPS ? 0 : FAMILY;
        for (int l = first; l < LEVELS; l++) {
            if (!only || l == first) linearise(f, only);
            for (int g = 0; g < f->h.group[l].n; g++)
                if (!only || only[l][g]) fit_group(f, l, g);
        }
    }
}

/* ---- what is left out ---- */

/* fold: its rows; -1: all. */
static void predict(fit *f, fold_kind kind, int fold) {
    for (int c = 0; c < f->h.cells; c++) {
        sm_calibration own = constants_of(f, &f->h.cell[c], LEVELS);
        sm_calibration usual = constants_of(f, &f->h.cell[c], FAMILY);
        for (size_t i = 0; i < f->n; i++) {
            step *s = &f->step[i];
            if (s->cell != c || (fold >= 0 && s->fold[kind] != fold)) continue;
            s->own[kind] = residual_of(s, &own);
            s->usual[kind] = residual_of(s, &usual);
        }
    }
}

static bool same_chip(const fit *f, const step *a, const step *b) {
    return f->h.cell[a->cell].group[CHIP] == f->h.cell[b->cell].group[CHIP];
}
/* Models of a fold are within a factor of two of one another, those that stay without beyond FAR of
 * its first. */
#define FAR 8.0
static int size_of(const step *s) { return (int)floor(s->log_params / log(2)); }

/* Whether a row has no part in what predicts those of a fold, which are like the first of them. */
static bool is_left_out(const fit *f, fold_kind kind, const step *first, const step *s) {
    switch (kind) {
    case EXPERTS_OUT:
        return s->source == first->source ||
               (same_chip(f, s, first) && s->experts == first->experts);
    case SIZE_OUT:
        return s->source == first->source ||
               (same_chip(f, s, first) && fabs(s->log_params - first->log_params) < log(FAR));
    default: return s->fold[kind] == first->fold[kind];
    }
}

/* How far each row of a fold is from the sizes that its chip has left: INFINITY, from all. */
static void measure_far(fit *f, fold_kind kind, int fold) {
    for (size_t i = 0; i < f->n; i++) {
        step *s = &f->step[i];
        if (s->fold[kind] != fold) continue;
        double far = INFINITY;
        for (size_t k = 0; k < f->n; k++) {
            const step *o = &f->step[k];
            if (!o->masked && same_chip(f, o, s))
                far = fmin(far, fabs(o->log_params - s->log_params));
        }
        if (kind == SIZE_OUT) s->far = far;
        if (isinf(far)) s->own[kind] = s->usual[kind] = NAN; /* of a chip that nobody has */
    }
}

/* The terms that rows of the fold had a part in begin at 0 again, but for that of the fabric, which
 * hundreds of rows share. */
static void leave_out(fit *f, fold_kind kind, int fold) {
    static bool touched[LEVELS][MOST_GROUPS];
    const step *first = f->step;
    memset(touched, 0, sizeof touched);
    while (first->fold[kind] != fold) first++;
    for (int g = 0; g < f->h.group[FABRIC].n; g++) touched[FABRIC][g] = true;
    for (size_t i = 0; i < f->n; i++) {
        step *s = &f->step[i];
        bool out = !s->after && is_left_out(f, kind, first, s);
        s->masked = s->after || out;
        for (int l = CHIP; out && l < LEVELS; l++) touched[l][f->h.cell[s->cell].group[l]] = true;
    }
    for (int l = CHIP; l < LEVELS; l++)
        for (int g = 0; g < f->h.group[l].n; g++)
            if (touched[l][g]) memset(f->h.term[l][g], 0, sizeof f->h.term[l][g]);
    sweep(f, FOLD_SWEEPS, (const bool(*)[MOST_GROUPS])touched);
    predict(f, kind, fold);
    if (kind >= EXPERTS_OUT) measure_far(f, kind, fold);
    for (size_t i = 0; i < f->n; i++) f->step[i].masked = f->step[i].after;
}

/* Where kernels outlast their launches no step feels these: they begin where small models do. */
#define FIRST_LAUNCH 3e-5 /* s */
static void start_launches(fit *f) {
    for (int c = 0; c < f->cells; c++) {
        const cell *at = &f->h.cell[c];
        int j = SM_CONSTANT_launch_s;
        if (at->chip->fabric != SM_FABRIC_TORUS)
            f->h.term[FABRIC][at->group[FABRIC]][j] = to_line(&f->h, j, FIRST_LAUNCH) - at->base[j];
    }
}

static void fit_and_leave_out(fit *f) {
    start_launches(f);
    sweep(f, SWEEPS, NULL);
    predict(f, IN_SAMPLE, -1);
    for (size_t i = 0; i < f->n; i++) {
        step *s = &f->step[i];
        if (!s->after) continue;
        s->own[SOURCE_OUT] = s->own[IN_SAMPLE], s->usual[SOURCE_OUT] = s->usual[IN_SAMPLE];
    }
    linearise(f, NULL);
    size_t bytes = sizeof f->h.term;
    step *steps = fit_array(&f->h, f->n, sizeof *steps);
    cell *cells = fit_array(&f->h, (size_t)f->h.cells, sizeof *cells);
    memcpy(steps, f->step, f->n * sizeof *steps);
    memcpy(cells, f->h.cell, (size_t)f->h.cells * sizeof *cells);
    double *kept = fit_array(&f->h, bytes, 1), *deviations = fit_array(&f->h, bytes, 1);
    memcpy(kept, f->h.term, bytes);
    memcpy(deviations, f->h.deviation, bytes);
    for (fold_kind kind = SOURCE_OUT; kind < FOLD_KINDS; kind++)
        for (int i = 0; i < (kind == MODEL_OUT ? MODEL_FOLDS : f->fold[kind].n); i++) {
            memcpy(f->h.term, kept, bytes);
            memcpy(f->h.cell, cells, (size_t)f->h.cells * sizeof *cells);
            bool any = false;
            for (size_t k = 0; k < f->n; k++) {
                f->step[k].at = steps[k].at;
                memcpy(f->step[k].slope, steps[k].slope, sizeof steps[k].slope);
                any = any || f->step[k].fold[kind] == i;
            }
            if (any) leave_out(f, kind, i);
        }
    memcpy(f->h.term, kept, bytes);
    memcpy(f->h.deviation, deviations, bytes);
}

/* ---- rows ---- */

/* Code bases that share most of their code. */
static const char *family_of(const char *software) {
    static const char *const families[][2] = {
        {"megatron-bridge-graphs", "cuda-graphs"},
        {"megatron-bridge-overlap-host", "megatron-core"},
        {"megatron-bridge-overlap", "cuda-graphs"},
        {"mlperf-graphs", "cuda-graphs"},
        {"megatron-bridge", "megatron-core"},
        {"megatron-core", "megatron-core"},
        {"nemo", "megatron-core"},
        {"dgx-cloud-xla", "xla-gpu"},
        {"jax-toolbox", "pax"},
        {"dgx-cloud", "megatron-core"},
        {"mlperf", "megatron-core"},
        {"megatron-lm-ci", "megatron-core"},
        {"megatron-", "megatron-2021"},
        {"vtrain", "megatron-2021"},
        {"maxtext", "maxtext"},
        {"torchtitan", "pytorch"},
        {"nanotron", "pytorch"},
        {"internevo", "pytorch"},
        {"aleph-alpha", "pytorch"},
        {"llm-foundry", "pytorch"},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(software, families[i][0], strlen(families[i][0])) == 0) return families[i][1];
    return software;
}

#define FIRST_ROUTING 2.5e-7 /* s: what single operations do not tell */
static int cell_of(fit *f, const sm_chip *chip, const char *software) {
    bool torus = chip->fabric == SM_FABRIC_TORUS, is_new;
    /* TPUs: their benchmarks are of slow attention kernels */
    const sm_chip *like = torus ? sm_chip_find("tpu-v2", 6) : chip;
    const sm_calibration *kernels = torus ? NULL : sm_calibration_for(chip, "kernels");
    sm_calibration start = kernels ? *kernels : *sm_calibration_of(like);
    start.routing_s = FIRST_ROUTING, start.elementwise_bytes = 1.0;
    return cell_index(&f->h, chip, software, family_of(software), &start, &is_new);
}

static bool is_lora(const sm_truth_row *row) { return strcmp(row->of.training.task, "lora") == 0; }
static bool is_apart(const sm_truth_row *row, bool large) {
    const sm_training_row *t = &row->of.training;
    return !(row->measured_s > 0.0) || t->oom || t->duplicate_of[0] ||
           (large && strcmp(t->quality, "C") == 0) ||
           (t->task[0] && strcmp(t->task, "pretrain") != 0 && !is_lora(row)) ||
           !sm_truth_row_chip(row) || strcmp(sm_truth_software(row), "default") == 0;
}

static void fold_of(fit *f, step *s) {
    char key[80];
    int chip = f->h.cell[s->cell].group[CHIP];
    snprintf(key, sizeof key, "%d", s->source);
    s->fold[SOURCE_OUT] = name_index(&f->h, &f->fold[SOURCE_OUT], key);
    s->fold[MODEL_OUT] = s->model % MODEL_FOLDS;
    snprintf(key, sizeof key, "%d %d %d", s->source, chip, s->experts);
    s->fold[EXPERTS_OUT] = name_index(&f->h, &f->fold[EXPERTS_OUT], key);
    snprintf(key, sizeof key, "%d %d %d", s->source, chip, size_of(s));
    s->fold[SIZE_OUT] = name_index(&f->h, &f->fold[SIZE_OUT], key);
}

static void add_row(fit *f, sm_truth_cases *cases, const sm_truth_row *row, double work, bool large,
                    bool after) {
    step s = {.row = row, .log_measured = log(row->measured_s), .log_work = log(work)};
    s.large = large && !is_lora(row); /* adapters teach the fit, and count in none of its figures */
    s.after = s.masked = after;
    sm_error err = {0};
    if (is_apart(row, large)) return;
    if (sm_truth_cases_get(cases, row, &s.c, &err)) fit_stop(&f->h, err.sentence);
    s.cell = cell_of(f, sm_truth_row_chip(row), sm_truth_software(row));
    sm_calibration c = f->h.cell[s.cell].start;
    if (!isfinite(residual_of(&s, &c))) return;
    char model[300];
    s.source = name_index(&f->h, &f->sources, row->source);
    snprintf(model, sizeof model, "%d %d", s.source, row->of.training.model.d_model);
    s.model = name_index(&f->h, &f->models, model);
    s.weight = strcmp(row->of.training.quality, "B") == 0 ? 0.5 : 1.0;
    const sm_model *m = sm_truth_case_model(s.c);
    s.log_params = m ? log(sm_model_params(m).total) : NAN;
    s.experts = m && sm_model_has_experts(m);
    for (int k = 0; k < FOLD_KINDS; k++) s.fold[k] = -1;
    if (!s.after) fold_of(f, &s);
    for (int k = 0; k < FOLD_KINDS; k++) s.own[k] = s.usual[k] = NAN;
    f->step[f->n++] = s;
}

/* FLOPs of a chip in each row's step: the seconds it would take at 1 FLOP/s by its count. */
static double *work_of(fit *f, const sm_truth *truth) {
    sm_error err = {0};
    sm_truth_row *row = fit_array(&f->h, truth->n, sizeof *row);
    double *work = fit_array(&f->h, truth->n, sizeof *work);
    for (size_t i = 0; i < truth->n; i++) {
        row[i] = truth->row[i];
        row[i].measured_s = NAN;
        row[i].of.training.flops_counted = "causal";
        row[i].of.training.model_tflops_per_chip = 1e-12;
    }
    if (sm_truth_counted_times(row, truth->n, &err)) fit_stop(&f->h, err.sentence);
    for (size_t i = 0; i < truth->n; i++) work[i] = row[i].measured_s;
    return work;
}

/* The second file and those after it hold small models, of which a part is enough; the last, rows
 * that came after the fit, where there are some. */
static void read_rows(fit *f, int files, char **file, const char *after) {
    sm_error err = {0};
    const int fitted = files;
    files += after != NULL;
    sm_truth *truth = fit_array(&f->h, (size_t)files, sizeof *truth);
    size_t rows = 0;
    sm_truth_cases *cases = sm_truth_cases_new(true);
    for (int i = 0; i < files; i++) {
        const char *path = i < fitted ? file[i] : after;
        if (sm_truth_read(path, f->h.arena, &truth[i], &err))
            fprintf(stderr, "fit-steps: %s: %s\n", path, err.sentence), exit(2);
        rows += truth[i].n;
    }
    f->step = fit_array(&f->h, rows, sizeof *f->step);
    for (int i = 0; i < files; i++) {
        const double *work = work_of(f, &truth[i]);
        bool later = i == fitted;
        for (size_t k = 0; k < truth[i].n; k += i == 0 || later ? 1 : SMALL_EVERY)
            add_row(f, cases, &truth[i].row[k], work[k], i == 0, later);
        if (!later) f->cells = f->h.cells;
    }
    f->index = fit_array(&f->h, f->n, sizeof *f->index);
    f->weight = fit_array(&f->h, f->n, sizeof *f->weight);
    f->scratch = fit_array(&f->h, f->n, sizeof *f->scratch);
    f->room = fit_array(&f->h, sm_robust_room(f->n), sizeof *f->room);
}

/* ---- figures ---- */

typedef double (*residual_at)(const step *, fold_kind);
static double own_of(const step *s, fold_kind kind) { return s->own[kind]; }
static double usual_of(const step *s, fold_kind kind) { return s->usual[kind]; }

static double one_rate_of(const step *s, fold_kind kind) { return (void)kind, s->one_rate; }
static double alone_of(const step *s, fold_kind kind) { return (void)kind, s->alone; }
static double any_three_of(const step *s, fold_kind kind) { return (void)kind, s->any_three; }
static double alone_other_of(const step *s, fold_kind kind) { return (void)kind, s->alone_other; }
static double other_three_of(const step *s, fold_kind kind) { return (void)kind, s->other_three; }

static bool is_a(const step *s) {
    return s->large && strcmp(s->row->of.training.quality, "A") == 0;
}
static bool is_sparse(const step *s) { return is_a(s) && s->experts; }
static bool is_large(const step *s) { return s->large; }

static double error_of(const step *s, residual_at of, fold_kind kind) {
    return fabs(expm1(of(s, kind)));
}

static double quantile_of(fit *f, bool (*is)(const step *), residual_at of, fold_kind kind,
                          double q) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (is(&f->step[i]) && isfinite(of(&f->step[i], kind)))
            f->scratch[n++] = error_of(&f->step[i], of, kind);
    return sm_quantile(f->scratch, n, q);
}

/* The median over cells, each source on each chip once, of the median of their rows. */
static double cell_median(fit *f, residual_at of, fold_kind kind) {
    double *median =
        fit_array(&f->h, (size_t)f->sources.n * (size_t)f->h.group[CHIP].n, sizeof *median);
    size_t cells = 0;
    for (int s = 0; s < f->sources.n; s++)
        for (int c = 0; c < f->h.group[CHIP].n; c++) {
            size_t n = 0;
            for (size_t i = 0; i < f->n; i++) {
                const step *at = &f->step[i];
                if (at->source == s && f->h.cell[at->cell].group[CHIP] == c && is_a(at) &&
                    isfinite(of(at, kind)))
                    f->scratch[n++] = error_of(at, of, kind);
            }
            if (n > 0) median[cells++] = sm_quantile(f->scratch, n, 0.5);
        }
    return sm_quantile(median, cells, 0.5);
}

/* The q-quantile of log measured / expected, n rows of a source counting as n^(3/4), as calibrate
 * counts rows of one width. Of quality A and B, and of those that came after the fit: whoever asks
 * is no source of the fit, and what B lacks (clocks, loaders of data) he rarely knows either.
 * Mixtures of experts, of which steps vary twice as much as of dense models, and these apart. */
static bool teaches_interval(const step *s) {
    return (s->large || s->after) && strcmp(s->row->of.training.quality, "C") != 0;
}
typedef struct weighed {
    double value, weight;
} weighed;
static int by_value(const void *a, const void *b) {
    const weighed *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}
static double balanced_quantile(fit *f, residual_at of, fold_kind kind, int without, bool experts,
                                double q) {
    weighed *w = fit_array(&f->h, f->n, sizeof *w);
    int rows[MOST_NAMES] = {0};
    double total = 0.0, below = 0.0;
    size_t n = 0, i = 0;
    for (size_t k = 0; k < f->n; k++) rows[f->step[k].source] += teaches_interval(&f->step[k]);
    for (size_t k = 0; k < f->n; k++) {
        const step *s = &f->step[k];
        if (!teaches_interval(s) || s->experts != experts || s->source == without ||
            !isfinite(of(s, kind)))
            continue;
        w[n] = (weighed){-of(s, kind), pow(rows[s->source], -0.25)};
        total += w[n++].weight;
    }
    qsort(w, n, sizeof *w, by_value);
    while (i + 1 < n && below + w[i].weight < q * total) below += w[i++].weight;
    return n ? w[i].value : NAN;
}

/* Is a row beyond the sizes that the other sources have of its chip? */
static bool is_beyond(const fit *f, const step *s) {
    const sm_training_row *t = &s->row->of.training;
    sm_step_sizes low = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL, false}, high = {.experts = false};
    for (size_t i = 0; i < f->n; i++) {
        const sm_training_row *o = &f->step[i].row->of.training;
        if (f->step[i].after || f->step[i].source == s->source ||
            f->h.cell[f->step[i].cell].group[CHIP] != f->h.cell[s->cell].group[CHIP])
            continue;
        low.chips = fmin(low.chips, o->chips), high.chips = fmax(high.chips, o->chips);
        low.sequence = fmin(low.sequence, o->seq_len);
        high.sequence = fmax(high.sequence, o->seq_len);
        low.d_model = fmin(low.d_model, o->model.d_model);
        high.d_model = fmax(high.d_model, o->model.d_model);
        low.layers = fmin(low.layers, o->model.layers);
        high.layers = fmax(high.layers, o->model.layers);
        high.experts = high.experts || o->model.experts > 0;
    }
    return t->chips < low.chips || t->chips > high.chips || t->seq_len < low.sequence ||
           t->seq_len > high.sequence || t->model.d_model < low.d_model ||
           t->model.d_model > high.d_model || t->model.layers < low.layers ||
           t->model.layers > high.layers || (t->model.experts > 0 && !high.experts);
}

/* Four of five, fewer of the rest above than below: most sources are vendors and papers, whose
 * steps lie close together and rather below, and those of strangers far above. Between equal tails
 * lay 89 % of the former. */
#define LOWEST 0.14
#define HIGHEST 0.94
/* The share of rows (of quality A), of those within or beyond the range of other sources, inside
 * the interval that the other sources teach. */
/* Two releases of one software differ by so much on one configuration, in the median. */
#define NOISE 1.037
static double coverage(fit *f, bool (*is)(const step *), residual_at of, fold_kind kind,
                       bool within, bool beyond) {
    size_t inside = 0, n = 0;
    for (int s = 0; s < f->sources.n; s++) {
        double low[2], high[2]; /* dense models and mixtures of experts */
        for (int e = 0; e < 2; e++) {
            low[e] = balanced_quantile(f, of, kind, s, e, LOWEST);
            high[e] = balanced_quantile(f, of, kind, s, e, HIGHEST);
        }
        for (size_t i = 0; i < f->n; i++) {
            const step *at = &f->step[i];
            if (at->source != s || !is(at) || !isfinite(of(at, kind))) continue;
            bool far = kind == SOURCE_OUT && is_beyond(f, at);
            if (far ? !beyond : !within) continue;
            double r = -of(at, kind);
            n++;
            inside += r >= low[at->experts] && r <= high[at->experts];
        }
    }
    return n ? (double)inside / (double)n : NAN;
}

static bool is_twin(const step *a, const step *b) {
    const sm_training_row *s = &a->row->of.training, *t = &b->row->of.training;
    return s->plan && t->plan && strcmp(s->plan, t->plan) == 0 &&
           !(fabs(s->global_batch_sequences - t->global_batch_sequences) > 0.5);
}

/* One layout measured several times counts once, at the geometric mean: log_measured of the first
 * becomes that of all, less `sequences`; the number of layouts. */
static size_t join_twins(const fit *f, const size_t *at, size_t n, residual_at of, fold_kind kind,
                         double *measured, double *expected) {
    size_t layouts = 0;
    for (size_t i = 0; i < n; i++) {
        const step *s = &f->step[at[i]];
        double sum = 0.0, times = 0.0, sequences = log(s->row->of.training.global_batch_sequences);
        size_t first = 0;
        while (!is_twin(s, &f->step[at[first]])) first++;
        for (size_t k = i; first == i && k < n; k++)
            if (is_twin(s, &f->step[at[k]])) sum += f->step[at[k]].log_measured, times += 1.0;
        if (first < i) continue;
        measured[layouts] = exp(sum / times - sequences);
        expected[layouts++] = exp(s->log_measured + of(s, kind) - sequences);
    }
    return layouts;
}

/* Kendall's tau of each sweep of at least 8 layouts of one model on one machine; their median.
 * apart: pairs measured no further from each other have no order. */
static double median_tau(fit *f, residual_at of, fold_kind kind, double apart) {
    enum { FEWEST = 8 };
    double *a = fit_array(&f->h, f->n, sizeof *a), *b = fit_array(&f->h, f->n, sizeof *b), *tau,
           *room;
    tau = fit_array(&f->h, f->n, sizeof *tau), room = fit_array(&f->h, 4 * f->n, sizeof *room);
    bool *done = fit_array(&f->h, f->n, sizeof *done);
    size_t sweeps = 0, *at = fit_array(&f->h, f->n, sizeof *at);
    for (size_t i = 0; i < f->n; i++) {
        const sm_training_row *t = &f->step[i].row->of.training;
        size_t n = 0;
        if (done[i] || !f->step[i].large) continue;
        for (size_t k = i; k < f->n; k++) {
            const sm_training_row *o = &f->step[k].row->of.training;
            if (f->step[k].after || f->step[k].source != f->step[i].source ||
                f->step[k].cell != f->step[i].cell || o->chips != t->chips ||
                o->model.heads != t->model.heads || o->seq_len < t->seq_len ||
                o->seq_len > t->seq_len || strcmp(o->model.name, t->model.name) != 0 ||
                strcmp(o->precision_class, t->precision_class) != 0)
                continue;
            done[k] = true;
            at[n++] = k;
        }
        n = join_twins(f, at, n, of, kind, a, b);
        if (n < FEWEST) continue;
        double found = apart > 1.0 ? sm_kendall_tau_apart(b, a, n, apart, room)
                                   : sm_kendall_tau(a, b, n, room);
        if (isfinite(found)) tau[sweeps++] = found;
    }
    return sm_quantile(tau, sweeps, 0.5);
}

/* ---- three rows of one's own ---- */

enum { FEWEST_OWN = 6 };

static bool is_same_run(const step *a, const step *b) {
    return a->source == b->source && a->cell == b->cell && is_a(a) && is_a(b);
}

/* How much of a factor that three rows show a user may believe: the variance between code bases on
 * a chip, over that of what three of their rows say of it. Of the sources other than this. */
static double believed(const fit *f, int without) {
    double within = 0, between = 0, freedom = 0, cells = 0, noise = 0;
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        double n = 0, mean = 0, square = 0;
        bool first = is_a(s) && s->source != without;
        for (size_t k = 0; k < f->n && first; k++) {
            double off = f->step[k].usual[SOURCE_OUT];
            if (!is_same_run(s, &f->step[k])) continue;
            first = k >= i;
            n++, mean += off, square += off * off;
        }
        if (!first || n < FEWEST_OWN) continue;
        mean /= n;
        within += square - n * mean * mean;
        freedom += n - 1;
        between += mean * mean; /* about none: the usual constants aim at the middle */
        noise += 1 / n;
        cells++;
    }
    within /= freedom;
    between = fmax(0, between / cells - within * noise / cells);
    return 3 * between / (3 * between + within);
}

/* Each row of a code base on a chip that has at least FEWEST_OWN of them, by the usual constants
 * that know nothing of its source (alone), and by these and one factor: the median of what three
 * others are off by, drawn once, as far as it is believed. others: of other models. */
static double with_three(fit *f, size_t i, double belief, bool others, sm_rng *rng, size_t *of) {
    const step *s = &f->step[i];
    size_t same = 0, n = 0;
    double off[3];
    for (size_t k = 0; k < f->n; k++) {
        if (!is_same_run(s, &f->step[k])) continue;
        same++;
        if (k != i && (!others || f->step[k].model != s->model)) of[n++] = k;
    }
    if (same < FEWEST_OWN || n < 3) return NAN;
    for (int k = 0; k < 3; k++) {
        size_t at = sm_rng_below(rng, n);
        off[k] = f->step[of[at]].usual[SOURCE_OUT];
        of[at] = of[--n];
    }
    return s->usual[SOURCE_OUT] - belief * sm_quantile(off, 3, 0.5);
}

static void three_rows(fit *f) {
    sm_rng rng = {.state = 17};
    size_t *room = fit_array(&f->h, f->n, sizeof *room);
    double belief[MOST_NAMES];
    for (int s = 0; s < f->sources.n; s++) belief[s] = believed(f, s);
    for (size_t i = 0; i < f->n; i++) {
        step *s = &f->step[i];
        s->any_three = with_three(f, i, belief[s->source], false, &rng, room);
        s->other_three = with_three(f, i, belief[s->source], true, &rng, room);
        s->alone = isfinite(s->any_three) ? s->usual[SOURCE_OUT] : NAN;
        s->alone_other = isfinite(s->other_three) ? s->usual[SOURCE_OUT] : NAN;
    }
}

static bool is_narrow(const step *s) {
    const char *is = s->row->of.training.precision_class;
    return strstr(is, "fp8") || strstr(is, "fp4");
}

/* The simplest peer: one FLOP/s for a chip in 16 bits and one in fewer, the median of what the
 * other sources reached on it; NAN where there are none. */
static void one_rates(fit *f) {
    double *rate = fit_array(&f->h, f->n, sizeof *rate);
    for (size_t i = 0; i < f->n; i++) {
        step *s = &f->step[i];
        size_t n = 0;
        for (size_t k = 0; k < f->n; k++) {
            const step *o = &f->step[k];
            if (is_a(o) && o->source != s->source && is_narrow(o) == is_narrow(s) &&
                f->h.cell[o->cell].group[CHIP] == f->h.cell[s->cell].group[CHIP])
                rate[n++] = o->log_work - o->log_measured;
        }
        s->one_rate = n ? s->log_work - sm_quantile(rate, n, 0.5) - s->log_measured : NAN;
    }
}

static void table(fit *f) {
    static const struct column {
        const char *name;
        residual_at of;
        fold_kind kind;
    } columns[] = {
        {"default, source left out", usual_of, SOURCE_OUT},
        {"own software, source left out", own_of, SOURCE_OUT},
        {"default, model left out", usual_of, MODEL_OUT},
        {"own software, model left out", own_of, MODEL_OUT},
        {"own software, in sample", own_of, IN_SAMPLE},
        {"default with the source left out, code bases of 6 rows on a chip", alone_of, SOURCE_OUT},
        {"the same, one factor from 3 other rows", any_three_of, SOURCE_OUT},
        {"default with the source left out, those of them with 3 rows of other models",
         alone_other_of, SOURCE_OUT},
        {"the same, one factor from 3 rows of other models", other_three_of, SOURCE_OUT},
        {"a peer: one FLOP/s a chip, source left out", one_rate_of, SOURCE_OUT}};
    printf("constants,rows,median,cell median,p90,coverage,within range,beyond,experts "
           "median,experts p90,tau,tau apart,experts coverage\n");
    three_rows(f);
    one_rates(f);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        residual_at of = columns[i].of;
        fold_kind kind = columns[i].kind;
        bool all = of == usual_of || of == own_of; /* of sweeps whole */
        size_t rows = 0;
        for (size_t k = 0; k < f->n; k++)
            rows += is_a(&f->step[k]) && isfinite(of(&f->step[k], kind));
        printf("\"%s\",%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%.4f\n",
               columns[i].name, rows, quantile_of(f, is_a, of, kind, 0.5), cell_median(f, of, kind),
               quantile_of(f, is_a, of, kind, 0.9), coverage(f, is_a, of, kind, true, true),
               coverage(f, is_a, of, kind, true, false), coverage(f, is_a, of, kind, false, true),
               quantile_of(f, is_sparse, of, kind, 0.5), quantile_of(f, is_sparse, of, kind, 0.9),
               all ? median_tau(f, of, kind, 1.0) : NAN, all ? median_tau(f, of, kind, NOISE) : NAN,
               coverage(f, is_sparse, of, kind, true, true));
    }
    printf("all large rows,%.4f,%.4f", quantile_of(f, is_large, usual_of, SOURCE_OUT, 0.5),
           quantile_of(f, is_large, own_of, SOURCE_OUT, 0.5));
    for (int i = 0; i < 2; i++) /* of all that teach intervals: as a whole, within range, beyond */
        for (int part = 0; part < 3; part++)
            printf(",%.4f", coverage(f, teaches_interval, i ? own_of : usual_of, SOURCE_OUT,
                                     part != 2, part != 1));
    printf("\n");
}

static bool write_rows(const fit *f, const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) return false;
    fprintf(out, "id\tchip\tsoftware\tquality\tlarge\texperts\tin_sample\tsource_out\tmodel_out\t"
                 "experts_out\tsize_out\tdefault_in_sample\tdefault_source_out\tdefault_model_out\t"
                 "default_experts_out\tdefault_size_out\tfar\tsource\n");
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        const cell *c = &f->h.cell[s->cell];
        if (s->after) continue;
        fprintf(out, "%s\t%s\t%s\t%s\t%d\t%d", s->row->id, c->chip->name, c->software,
                s->row->of.training.quality, s->large, s->row->of.training.model.experts);
        for (int k = 0; k < FOLD_KINDS; k++) fprintf(out, "\t%.4f", expm1(s->own[k]));
        for (int k = 0; k < FOLD_KINDS; k++) fprintf(out, "\t%.4f", expm1(s->usual[k]));
        fprintf(out, "\t%.3f\t%s\n", s->far, s->row->source);
    }
    return fclose(out) == 0;
}

/* Of large rows of quality A that both folds have; of sizes on each unit of how far. */
static double excess(fit *f, residual_at of, fold_kind with, fold_kind without) {
    size_t n = 0;
    double *m = fit_array(&f->h, f->n, sizeof *m), *c = fit_array(&f->h, f->n, sizeof *c),
           *far = fit_array(&f->h, f->n, sizeof *far);
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        if (!is_a(s) || !isfinite(of(s, with)) || !isfinite(of(s, without))) continue;
        m[n] = error_of(s, of, with), c[n] = error_of(s, of, without), far[n++] = s->far;
    }
    double more = evidence_excess(m, c, n);
    return with == SIZE_OUT && n > 0 ? more / sm_quantile(far, n, 0.5) : more;
}

/* With a source its models are left out too, but for those that others have; constants of another
 * chip miss by the factor of calibration_interval.c, and by one as large what lies beyond the sizes
 * of other sources. */
#define BORROWED 1.2
#define BEYOND 1.3
static void find_apart(fit *f, sm_evidence_apart apart[2]) {
    const residual_at of[2] = {own_of, usual_of};
    double known = quantile_of(f, is_a, own_of, SOURCE_OUT, 0.5);
    double hidden = quantile_of(f, is_a, usual_of, SOURCE_OUT, 0.5);
    for (int i = 0; i < 2; i++) {
        double whole = i ? hidden : known;
        apart[i] = (sm_evidence_apart){.whole = whole,
                                       .experts = excess(f, of[i], EXPERTS_OUT, SOURCE_OUT),
                                       .size = excess(f, of[i], SIZE_OUT, SOURCE_OUT),
                                       .chip = log(BORROWED),
                                       .sizes = whole * sqrt(BEYOND * BEYOND - 1)};
    }
    apart[0].software = sqrt(fmax(0, hidden * hidden - known * known));
}

static void write_measured(fit *f, const char *path) {
    static const char *const sizes[MEASURED_SIZES] = {"chips", "sequence", "batch"};
    measured_row *list = fit_array(&f->h, f->n, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        const sm_training_row *t = &s->row->of.training;
        list[n] = (measured_row){
            .name = t->model.name,
            .model = sm_truth_case_model(s->c),
            .chip = f->h.cell[s->cell].chip,
            .software = f->h.cell[s->cell].software,
            .type = t->precision_class,
            .size = {t->chips, t->seq_len, t->global_batch_sequences * t->seq_len, NAN},
            .own = {s->own[SOURCE_OUT], NAN},
            .usual = {s->usual[SOURCE_OUT], NAN}};
        if (list[n].model && !s->after) n++;
    }
    sm_evidence_apart apart[2];
    find_apart(f, apart);
    evidence_write(&f->h, path, apart, sizes, list, n);
}

/* ---- calibration files ---- */

/* Of rows of these groups (-1: any): how many, of which sources, sizes and years. */
typedef struct extent {
    size_t rows;
    int sources, first_year, last_year;
    double low[4], high[4];
    bool experts, narrow;
    double median; /* |error| with the source left out */
} extent;
static const char *const sizes[4] = {"chips", "sequence", "d_model", "layers"};

static extent extent_of(fit *f, int chip, int software, residual_at of) {
    extent e = {.first_year = 9999};
    bool seen[MOST_NAMES] = {false};
    for (int j = 0; j < 4; j++) e.low[j] = INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        const sm_training_row *t = &s->row->of.training;
        const cell *c = &f->h.cell[s->cell];
        if (s->after || (chip >= 0 && c->group[CHIP] != chip) ||
            (software >= 0 && c->group[SOFTWARE] != software))
            continue;
        const double value[4] = {t->chips, t->seq_len, t->model.d_model, t->model.layers};
        for (int j = 0; j < 4; j++) {
            e.low[j] = fmin(e.low[j], value[j]);
            e.high[j] = fmax(e.high[j], value[j]);
        }
        e.sources += !seen[s->source];
        seen[s->source] = true;
        if (t->year > 0 && t->year < e.first_year) e.first_year = t->year;
        if (t->year > e.last_year) e.last_year = t->year;
        e.experts = e.experts || t->model.experts > 0;
        e.narrow = e.narrow || sm_dtype_bytes(SM_FP8) >= 1.0 * (strstr(t->precision_class, "fp8") ||
                                                                strstr(t->precision_class, "fp4"));
        f->scratch[e.rows++] = error_of(s, of, SOURCE_OUT);
    }
    e.median = sm_quantile(f->scratch, e.rows, 0.5);
    return e;
}

static const char *range_text(fit *f, const extent *e) {
    const char *out = "";
    for (int j = 0; j < 4; j++)
        out = sm_arena_printf(f->h.arena,
                              e->low[j] < e->high[j] ? "%s%s%s %.0f to %.0f" : "%s%s%s %.0f", out,
                              j ? "; " : "", sizes[j], e->low[j], e->high[j]);
    return sm_arena_printf(f->h.arena, "%s%s", out, e->experts ? "; experts" : "");
}

static int sources_teaching(const fit *f, bool experts) {
    bool seen[MOST_NAMES] = {false};
    int n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const step *s = &f->step[i];
        if (teaches_interval(s) && s->experts == experts)
            n += !seen[s->source], seen[s->source] = 1;
    }
    return n;
}

static void write_section(fit *f, FILE *out, const cell *c, bool usual) {
    residual_at of = usual ? usual_of : own_of;
    extent e = extent_of(f, c->group[CHIP], usual ? -1 : c->group[SOFTWARE], of);
    sm_calibration k = constants_of(f, c, usual ? FAMILY : LEVELS);
    round_constants(&k);
    memset(k.interval, 0, sizeof k.interval);
    for (int i = 0; i < 2; i++) {
        sm_regime regime = i ? SM_REGIME_experts : SM_REGIME_step;
        k.interval[regime].lowest =
            rounded(exp(balanced_quantile(f, of, SOURCE_OUT, -1, i, LOWEST)));
        k.interval[regime].highest =
            rounded(exp(balanced_quantile(f, of, SOURCE_OUT, -1, i, HIGHEST)));
        k.interval[regime].n = sources_teaching(f, i);
    }
    k.chip = constants_name(c->chip);
    k.software = usual ? "default" : c->software;
    k.fitted = usual ? identified(&f->h, c, CHIP, CHIP) : identified(&f->h, c, SOFTWARE, BOTH);
    const char *until =
        e.last_year == e.first_year ? "" : sm_arena_printf(f->h.arena, " to %d", e.last_year);
    k.source = sm_arena_printf(
        f->h.arena,
        "%zu measured training step%s of %d source%s, %d%s, in one fit of all chips and software; "
        "with the source left out the median error is %.1f %%",
        e.rows, e.rows == 1 ? "" : "s", e.sources, e.sources == 1 ? "" : "s", e.first_year, until,
        100.0 * e.median);
    k.range = range_text(f, &e);
    char *text = sm_calibration_format(&k, f->h.arena);
    if (!text) exit(2);
    fprintf(out, "\n%s", text);
}

/* A file per chip with its usual constants, and one per software with a section for each chip. */
static void write_calibrations(fit *f, const char *folder) {
    for (int g = 0; g < f->h.group[CHIP].n; g++) {
        int c = 0;
        if (extent_of(f, g, -1, usual_of).rows == 0) continue;
        while (f->h.cell[c].group[CHIP] != g) c++;
        const char *name = f->h.group[CHIP].name[g];
        FILE *out = open_file(&f->h, folder, sm_arena_printf(f->h.arena, "%s.txt", name),
                              sm_arena_printf(f->h.arena, "%s, training steps", name));
        write_section(f, out, &f->h.cell[c], true);
        fclose(out);
    }
    for (int g = 0; g < f->h.group[SOFTWARE].n; g++) {
        char name[100];
        bool written[MOST_GROUPS] = {false};
        if (extent_of(f, -1, g, own_of).rows == 0) continue;
        snprintf(name, sizeof name, "training-%s", f->h.group[SOFTWARE].name[g]);
        FILE *out = open_file(
            &f->h, folder, sm_arena_printf(f->h.arena, "%s.txt", name),
            sm_arena_printf(f->h.arena, "Training steps of %s", f->h.group[SOFTWARE].name[g]));
        for (int c = 0; c < f->h.cells; c++) {
            const int *group = f->h.cell[c].group;
            if (group[SOFTWARE] != g || written[group[CHIP]]) continue;
            if (extent_of(f, group[CHIP], g, own_of).rows == 0) continue;
            written[group[CHIP]] = true;
            write_section(f, out, &f->h.cell[c], false);
        }
        fclose(out);
    }
}

int main(int n, char **word) {
    const char *folder = NULL, *rows = NULL, *measurements = NULL, *after = NULL;
    int first = 1;
    while (first + 1 < n && word[first][0] == '-') {
        if (strcmp(word[first], "-o") == 0) folder = word[first + 1];
        else if (strcmp(word[first], "-m") == 0) measurements = word[first + 1];
        else if (strcmp(word[first], "-r") == 0) rows = word[first + 1];
        else if (strcmp(word[first], "-a") == 0) after = word[first + 1];
        else
            return fprintf(
                       stderr,
                       "usage: fit-steps [-o FOLDER] [-m MEASURED] [-r ROWS] [-a AFTER] FILE...\n"),
                   2;
        first += 2;
    }
    static fit f;
    f.h = (hierarchy){.program = "fit-steps",
                      .parameter = parameters,
                      .parameters = PARAMETERS,
                      .arena = sm_arena_new()};
    if (!f.h.arena || first >= n) return 2;
    read_rows(&f, n - first, word + first, after);
    fit_and_leave_out(&f);
    table(&f);
    if (folder) write_calibrations(&f, folder);
    if (measurements) write_measured(&f, measurements);
    if (rows && !write_rows(&f, rows)) return 2;
    sm_arena_free(f.h.arena);
    return 0;
}

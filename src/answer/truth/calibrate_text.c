/* calibrate_text: the calibration file that `calibrate` writes: the constants, and where they come
 * from. */
#include "calibrated.h"
#include <math.h>
#include <string.h>

enum { MOST_SOURCES = 8, MOST_WORDS = 3800 };

/* Titles of the sources, each once, with how many rows each gave. */
static char *source_list(const sm_fitting *q) {
    sm_arena *arena = q->arena;
    char *out = sm_arena_printf(arena, "%s", "");
    int shown = 0;
    for (size_t i = 0; i < q->fit.rows && out && shown < MOST_SOURCES; i++) {
        const char *source = q->fit.row[i].row->source;
        size_t rows = 0, first = i;
        for (size_t k = 0; k < q->fit.rows; k++) {
            if (strcmp(q->fit.row[k].row->source, source) != 0) continue;
            if (k < first) first = k;
            rows++;
        }
        if (first < i) continue;
        out = sm_arena_printf(arena, "%s%s%.120s (%zu)", out, shown++ ? "; " : "", source, rows);
    }
    return out;
}

/* "name 3.2 to 64" of the values that f gives, 0 where a row states none. */
static char *add_range(sm_arena *arena, char *out, const sm_fit *fit, const char *name,
                       double (*value)(const sm_truth_row *)) {
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < fit->rows; i++) {
        double v = value(fit->row[i].row);
        if (!(v > 0.0)) continue;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (!out || !(most > 0.0)) return out;
    const char *comma = *out ? "; " : "";
    if (least == most) return sm_arena_printf(arena, "%s%s%s %.6g", out, comma, name, most);
    return sm_arena_printf(arena, "%s%s%s %.6g to %.6g", out, comma, name, least, most);
}

static bool is_step(const sm_truth_row *row) { return row->kind == SM_TRUTH_TRAINING; }
static double chips_of(const sm_truth_row *row) {
    return is_step(row) ? row->of.training.chips : 0.0;
}
static double seq_of(const sm_truth_row *row) {
    return is_step(row) ? row->of.training.seq_len : 0.0;
}
static double width_of(const sm_truth_row *row) {
    return is_step(row) ? row->of.training.model.d_model : 0.0;
}
static double layers_of(const sm_truth_row *row) {
    return is_step(row) ? row->of.training.model.layers : 0.0;
}
static double m_of(const sm_truth_row *row) {
    return row->kind == SM_TRUTH_GEMM ? row->of.gemm.m : 0.0;
}
static double k_of(const sm_truth_row *row) {
    return row->kind == SM_TRUTH_GEMM ? row->of.gemm.k : 0.0;
}
static double n_of(const sm_truth_row *row) {
    return row->kind == SM_TRUTH_GEMM ? row->of.gemm.n : 0.0;
}
static double length_of(const sm_truth_row *row) {
    return row->kind == SM_TRUTH_ATTENTION ? row->of.attention.kv_len : 0.0;
}
static double ranks_of(const sm_truth_row *row) {
    return row->kind == SM_TRUTH_COLLECTIVE ? row->of.collective.ranks : 0.0;
}

static char *range_text(const sm_fitting *q) {
    static const struct {
        const char *name;
        double (*value)(const sm_truth_row *);
    } ranges[] = {{"steps on chips", chips_of},
                  {"sequence", seq_of},
                  {"d_model", width_of},
                  {"layers", layers_of},
                  {"matmul M", m_of},
                  {"matmul N", n_of},
                  {"matmul K", k_of},
                  {"attention keys", length_of},
                  {"collective ranks", ranks_of}};
    sm_arena *arena = q->arena;
    char *out = sm_arena_printf(arena, "%s", "");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        out = add_range(arena, out, &q->fit, ranges[i].name, ranges[i].value);
    return out;
}

static char *error_text(const sm_fitting *q) {
    const sm_fit *f = &q->fit;
    return sm_arena_printf(q->arena,
                           "median error on models held out %.1f %% (90 %% of rows below %.1f %%), "
                           "in sample %.1f %%, with the start %.1f %%",
                           100.0 * f->held_out_median, 100.0 * f->held_out_p90,
                           100.0 * f->in_sample_median, 100.0 * f->before_median);
}

/* Only what may stand in a calibration file: no control characters, not too long. */
static char *clean(const sm_fitting *q, const char *text) {
    char *out = text ? sm_arena_alloc(q->arena, MOST_WORDS) : NULL;
    if (out) sm_utf8_clean(out, MOST_WORDS, text, strlen(text));
    return out;
}

char *sm_fitting_text(sm_fitting *q) {
    sm_arena *arena = q->arena;
    sm_calibration *c = &q->fit.calibration;
    const char *sources = source_list(q), *errors = error_text(q);
    if (!sources || !errors) return NULL;
    c->source = clean(q, sm_arena_printf(arena,
                                         "scalemodel calibrate: %zu rows (%zu outliers) of %.400s: "
                                         "%s; started from %s %s; %s",
                                         q->fit.rows, q->fit.outliers, q->files, sources,
                                         q->in.start->chip, q->in.start->software, errors));
    c->range = clean(q, range_text(q));
    c->chip = q->in.chip->name;
    c->software = q->in.software;
    if (!c->source || !c->range) return NULL;
    return sm_calibration_format(c, arena);
}

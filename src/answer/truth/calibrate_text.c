/* calibrate_text: the calibration file that `calibrate` writes: the constants, and where they come
 * from. */
#include "calibrated.h"
#include <math.h>
#include <string.h>

enum { MOST_SOURCES = 8, MOST_WORDS = 3800 };

/* Titles of the sources, each once, with how many rows each gave. */
static char *source_list(const sm_fitting *q) {
    const char *source[MOST_SOURCES];
    size_t rows[MOST_SOURCES] = {0};
    int n = 0;
    for (size_t i = 0; i < q->fit.rows; i++) {
        int at = 0;
        while (at < n && strcmp(source[at], q->fit.row[i].row->source) != 0) at++;
        if (at == MOST_SOURCES) continue;
        if (at == n) source[n++] = q->fit.row[i].row->source;
        rows[at]++;
    }
    char *out = sm_arena_printf(q->arena, "%s", "");
    for (int i = 0; i < n && out; i++)
        out = sm_arena_printf(q->arena, "%s%s%.120s (%zu)", out, i ? "; " : "", source[i], rows[i]);
    return out;
}

/* Where the rows lie: "sequence 2048 to 8192; matmul M 16 to 4096". */
typedef struct extent {
    const char *name;
    sm_truth_kind kind;
    size_t offset; /* of the number in a row */
    bool whole;    /* it is an int, otherwise a double; 0 where a row states none */
} extent;
#define EXTENT(name, kind, member)                                                                 \
    {                                                                                              \
        name, kind, offsetof(sm_truth_row, of.member),                                             \
            _Generic(((sm_truth_row *)0)->of.member, int                                           \
                     : true, double                                                                \
                     : false)                                                                      \
    }
static const extent extents[] = {
    EXTENT("steps on chips", SM_TRUTH_TRAINING, training.chips),
    EXTENT("sequence", SM_TRUTH_TRAINING, training.seq_len),
    EXTENT("d_model", SM_TRUTH_TRAINING, training.model.d_model),
    EXTENT("layers", SM_TRUTH_TRAINING, training.model.layers),
    EXTENT("matmul M", SM_TRUTH_GEMM, gemm.m),
    EXTENT("matmul N", SM_TRUTH_GEMM, gemm.n),
    EXTENT("matmul K", SM_TRUTH_GEMM, gemm.k),
    EXTENT("attention keys", SM_TRUTH_ATTENTION, attention.kv_len),
    EXTENT("collective ranks", SM_TRUTH_COLLECTIVE, collective.ranks),
};

static char *range_text(const sm_fitting *q) {
    char *out = sm_arena_printf(q->arena, "%s", "");
    for (size_t k = 0; out && k < sizeof extents / sizeof *extents; k++) {
        double least = INFINITY, most = 0.0;
        for (size_t i = 0; i < q->fit.rows; i++) {
            const sm_truth_row *row = q->fit.row[i].row;
            const void *place = (const char *)row + extents[k].offset;
            if (row->kind != extents[k].kind) continue;
            double value = extents[k].whole ? *(const int *)place : *(const double *)place;
            if (!(value > 0.0)) continue;
            least = fmin(least, value);
            most = fmax(most, value);
        }
        if (!(most > 0.0)) continue;
        out =
            sm_arena_printf(q->arena, "%s%s%s %.6g", out, *out ? "; " : "", extents[k].name, least);
        if (out && least < most) out = sm_arena_printf(q->arena, "%s to %.6g", out, most);
    }
    return out;
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
    const sm_fit *f = &q->fit;
    const char *sources = source_list(q),
               *errors = sm_arena_printf(
                   q->arena,
                   "median error on models held out %.1f %% (90 %% of rows below %.1f %%), "
                   "in sample %.1f %%, with the start %.1f %%",
                   100.0 * f->held_out_median, 100.0 * f->held_out_p90, 100.0 * f->in_sample_median,
                   100.0 * f->before_median);
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

/* answer_calibrate: constants of a chip and a software fitted to measured rows. */
#include "validated.h"
#include "chip_facts.h"
#include "scalemodel/load.h"
#include <stdlib.h>

typedef struct sm_fitting {
    sm_calibrate_question in;
    sm_report *r;
    sm_arena *arena;             /* the report's */
    size_t read, of_chip, apart; /* rows of the files; of the chip; of those left out; folded ones
                                    count each */
    size_t n;
    sm_ready_row *ready; /* those to fit to */
    sm_truth_cases *cases;
    const char *files; /* their names, joined */
    bool serving;      /* all rows are of serving, whose constants are apart from others */
    sm_calibration usual;
    sm_fit fit;
    const char *reason; /* why nothing could be fitted, or NULL */
} sm_fitting;

/* The measured rows that constants are fitted to. */

/* What `validate` keeps out of its statistics, and what it counts but no constant should follow: of
 * quality C is what states too little, or contradicts itself. */
static bool is_apart(const sm_truth_row *row, bool all, bool serving) {
    if (!(row->measured_s > 0.0) || sm_row_apart(row, all)) return true;
    if (row->kind != SM_TRUTH_TRAINING) return row->kind == SM_TRUTH_INFERENCE && !serving;
    return !all && strcmp(row->of.training.quality, "C") == 0;
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
    for (size_t i = 0; i < truth->n; i++) {
        const sm_truth_row *row = &truth->row[i];
        size_t rows = (size_t)row->alike + 1;
        q->read += rows;
        if (sm_truth_chip(row->chip) != q->in.chip) continue;
        q->of_chip += rows;
        bool other = only_software && strcmp(sm_truth_software(row), q->in.software) != 0;
        if (other || is_apart(row, q->in.all, q->serving)) {
            q->apart += rows;
            continue;
        }
        sm_status status = sm_truth_cases_get(q->cases, row, &q->ready[q->n].c, err);
        if (status) return status;
        q->ready[q->n].row = row;
        q->n++;
    }
    return SM_OK;
}

/* Constants of serving begin as those of the engine that the rows name, else of the usual one. */
static void choose_start(sm_fitting *q, const sm_truth *truth, size_t files) {
    const sm_chip *chip = q->in.chip;
    q->serving = true;
    for (size_t f = 0; f < files; f++)
        q->serving = q->serving && truth[f].n > 0 && truth[f].kind == SM_TRUTH_INFERENCE;
    const char *engine = q->serving ? sm_truth_software(&truth[0].row[0]) : NULL;
    if (!q->in.start && q->serving) q->in.start = sm_software_calibration(chip, q->in.software);
    if (!q->in.start && q->serving) q->in.start = sm_software_calibration(chip, engine);
    if (!q->in.start && q->serving) {
        q->usual = sm_serve_usual_calibration(chip);
        q->in.start = &q->usual;
    }
    if (!q->in.start) q->in.start = sm_calibration_for(chip, q->in.software);
    if (!q->in.start) q->in.start = sm_calibration_of(chip);
}

/* The rows to fit to. The cases are freed by the caller, also after an error. */
static sm_status sm_fitting_rows(sm_fitting *q, sm_error *err) {
    size_t files = q->in.files, rows = 0;
    sm_truth *truth = sm_arena_array(q->arena, files + 1, sizeof *truth);
    sm_status status = SM_OK;
    if (!truth) return sm_fail_memory(err);
    q->files = "";
    for (size_t i = 0; i < files && !status; i++) {
        const sm_truth_given given = {q->in.n_given, q->in.given, .fold = true};
        status = calibrate_read(q->in.file[i], q->in.chip, &given, q->arena, &truth[i], err);
        if (status) return status;
        rows += truth[i].n;
        q->files = sm_textf(q->r, "%s%s%s", q->files, i ? ", " : "", q->in.file[i]);
    }
    q->ready = sm_arena_array(q->arena, rows ? rows : 1, sizeof *q->ready);
    q->cases = sm_truth_cases_new(false);
    if (!q->ready || !q->cases) return sm_fail_memory(err);
    bool only = is_named_software(q, truth, files);
    choose_start(q, truth, files);
    for (size_t f = 0; f < files && !status; f++) status = take_rows(q, &truth[f], only, err);
    return status;
}

/* The calibration file that `calibrate` writes: the constants, and where they come from. */

enum { MOST_SOURCES = 8, MOST_WORDS = 3800 };

/* Titles of the sources, each once, with how many rows each gave. */
static const char *source_list(const sm_fitting *q) {
    const char *source[MOST_SOURCES];
    size_t rows[MOST_SOURCES] = {0};
    int n = 0;
    for (size_t i = 0; i < q->fit.n; i++) {
        int at = 0;
        while (at < n && strcmp(source[at], q->fit.row[i].row->source) != 0) at++;
        if (at == MOST_SOURCES) continue;
        if (at == n) source[n++] = q->fit.row[i].row->source;
        rows[at] += (size_t)q->fit.row[i].row->alike + 1;
    }
    const char *out = "";
    for (int i = 0; i < n; i++)
        out = sm_textf(q->r, "%s%s%.120s (%zu)", out, i ? "; " : "", source[i], rows[i]);
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
    EXTENT("served on chips", SM_TRUTH_INFERENCE, inference.chips),
    EXTENT("concurrency", SM_TRUTH_INFERENCE, inference.concurrency),
    EXTENT("prompt", SM_TRUTH_INFERENCE, inference.input_len),
    EXTENT("output", SM_TRUTH_INFERENCE, inference.output_len),
    EXTENT("matmul M", SM_TRUTH_GEMM, gemm.m),
    EXTENT("matmul N", SM_TRUTH_GEMM, gemm.n),
    EXTENT("matmul K", SM_TRUTH_GEMM, gemm.k),
    EXTENT("attention keys", SM_TRUTH_ATTENTION, attention.kv_len),
    EXTENT("collective ranks", SM_TRUTH_COLLECTIVE, collective.ranks),
};

static const char *range_text(const sm_fitting *q) {
    const char *out = "";
    for (size_t k = 0; k < sizeof extents / sizeof *extents; k++) {
        double least = INFINITY, most = 0.0;
        for (size_t i = 0; i < q->fit.n; i++) {
            const sm_truth_row *row = q->fit.row[i].row;
            const void *place = (const char *)row + extents[k].offset;
            if (row->kind != extents[k].kind) continue;
            double value = extents[k].whole ? *(const int *)place : *(const double *)place;
            if (!(value > 0.0)) continue;
            least = fmin(least, value);
            most = fmax(most, value);
        }
        if (!(most > 0.0)) continue;
        out = sm_textf(q->r, "%s%s%s %.0f", out, *out ? "; " : "", extents[k].name, least);
        if (least < most) out = sm_textf(q->r, "%s to %.0f", out, most);
    }
    return out;
}

/* Only what may stand in a calibration file: no control characters, not too long. */
static char *clean(const sm_fitting *q, const char *text) {
    char *out = sm_arena_alloc(q->arena, MOST_WORDS);
    if (out) sm_utf8_clean(out, MOST_WORDS, text, strlen(text));
    return out;
}

/* The text of the file, with what it was fitted to; NULL: out of memory. */
static char *sm_fitting_text(sm_fitting *q) {
    sm_calibration *c = &q->fit.calibration;
    const sm_fit *f = &q->fit;
    const char *errors = sm_textf(
        q->r,
        "median error on models held out %.1f %% (90 %% of rows below %.1f %%), in sample %.1f %%, "
        "with the start %.1f %%",
        100.0 * f->held_out_median, 100.0 * f->held_out_p90, 100.0 * f->in_sample_median,
        100.0 * f->before_median);
    c->source = clean(q, sm_textf(q->r,
                                  "scalemodel calibrate: %zu rows (%zu outliers) of %.400s: %s; "
                                  "started from %s %s; %s",
                                  q->fit.rows, q->fit.outliers, q->files, source_list(q),
                                  q->in.start->chip, q->in.start->software, errors));
    c->range = clean(q, range_text(q));
    c->chip = q->in.chip->name;
    c->software = q->in.software;
    if (!c->source || !c->range) return NULL;
    return sm_calibration_format(c, q->arena);
}

/* The page: the constants before and after, the error on rows held out, the rows that do not
 * fit, and what to measure next. */

enum { MOST_OUTLIERS = 10, MOST_GROUPS = 12 };

/* ---- errors on rows held out ---- */

typedef struct group {
    const char *name;
    sm_counted *error; /* |error| of its rows */
    size_t n, rows;    /* rows: with those that were folded */
} group;

SM_ORDER(by_size, group, SM_DESCENDING(rows) SM_BY_TEXT(name))

/* Groups of the rows that have such an error, the largest first; NULL: out of memory. */
static group *group_rows(const sm_fitting *q, bool by_source, size_t *n) {
    sm_arena *arena = q->arena;
    sm_texts names = {.n = 0};
    group *list = sm_arena_array(arena, q->fit.n + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0; list && i < q->fit.n; i++) {
        const sm_fit_row *row = &q->fit.row[i];
        bool training = row->row->kind == SM_TRUTH_TRAINING;
        double error = by_source ? row->held_out_by_source : row->held_out;
        const char *name = by_source  ? row->row->source
                           : training ? row->row->of.training.model.name
                                      : sm_truth_kind_name(row->row->kind);
        if (!isfinite(error)) continue;
        int g = sm_texts_place(&names, arena, name, training ? strlen(name) : strcspn(name, ":"));
        if (g == (int)*n) {
            list[g] =
                (group){names.text[g], sm_arena_array(arena, q->fit.n, sizeof(sm_counted)), 0, 0};
            ++*n;
        }
        if (g < 0 || !list[g].error) list = NULL;
        if (!list) break;
        list[g].error[list[g].n++] = (sm_counted){fabs(error), 1.0 + row->row->alike};
        list[g].rows += (size_t)row->row->alike + 1;
    }
    sm_texts_free(&names);
    if (list) qsort(list, *n, sizeof *list, by_size);
    return list;
}

static void error_rows(sm_report *r, const sm_fitting *q, const char *what, bool by_source) {
    size_t n = 0;
    group *list = group_rows(q, by_source, &n);
    const sm_listing rows = sm_page_list(
        r, r->data, by_source ? "held_out_by_source" : "held_out_by_model",
        sm_textf(r, "Error when the %s is held out", what),
        sm_textf(r, "%s|<%s|rows>{=}rows|median>{%%}median|p90>{%%}90 %%", what, what));
    if (!list) r->out_of_memory = true;
    for (size_t g = 0; list && g < n; g++)
        sm_list_row(&rows, g < MOST_GROUPS, list[g].name, sm_textf(r, "%.60s", list[g].name),
                    (double)list[g].rows, sm_quantile_counted(list[g].error, list[g].n, 0.5),
                    sm_quantile_counted(list[g].error, list[g].n, 0.9));
    if (n > MOST_GROUPS) sm_report_text(r, "... and %zu more.", n - MOST_GROUPS);
}

static void error_lines(sm_report *r, const sm_fitting *q) {
    const sm_fit *f = &q->fit;
    /* Shipped constants of this very software may have been fitted to these rows. */
    bool unseen = strcmp(q->in.start->software, q->in.software) != 0;
    sm_report_text(r,
                   "Median error %s with the start; fitted, %s on what was held out (90 %% of rows "
                   "below %s) and %s in sample%s.",
                   sm_show_percent(r, f->before_median), sm_show_percent(r, f->held_out_median),
                   sm_show_percent(r, f->held_out_p90), sm_show_percent(r, f->in_sample_median),
                   isfinite(f->held_out_by_source_median)
                       ? sm_textf(r, "; with the source held out %s",
                                  sm_show_percent(r, f->held_out_by_source_median))
                       : "");
    sm_put(r, sm_put_object(r, r->data, "error"),
           "before_median|in_sample_median|held_out_median|held_out_p90|"
           "held_out_by_source_median",
           f->before_median, f->in_sample_median, f->held_out_median, f->held_out_p90,
           f->held_out_by_source_median);
    if (unseen && f->held_out_median > f->before_median)
        sm_report_text(r, "On what was held out the start errs less: keep it until there are more "
                          "rows, of more models.");
}

/* ---- every row, for machines ---- */

static void put_rows(sm_report *r, const sm_fitting *q) {
    sm_data *array = sm_put_array(r, r->data, "fitted");
    for (size_t i = 0; i < q->fit.n; i++) {
        const sm_fit_row *f = &q->fit.row[i];
        sm_data *object = sm_put_object(r, array, NULL);
        sm_put(r, object, "id|in_sample|held_out|held_out_by_source", f->row->id, f->in_sample,
               f->held_out, f->held_out_by_source);
        if (f->row->alike) sm_put(r, object, "rows", 1.0 + f->row->alike);
        if (isfinite(f->held_out)) sm_put(r, object, "covered", f->covered);
    }
}

/* ---- outliers ---- */

static void outlier_rows(sm_report *r, const sm_fitting *q) {
    const sm_listing list =
        sm_page_list(r, r->data, "outliers", "Rows that do not fit: they count for little",
                     "id|<row|line>{=}line|measured_s>{s}measured|>{s}expected|error>{+%}error");
    int shown = 0;
    for (size_t i = 0; i < q->fit.n; i++) {
        const sm_fit_row *f = &q->fit.row[i];
        if (f->outlier)
            sm_list_row(&list, shown++ < MOST_OUTLIERS, f->row->id,
                        sm_textf(r, "%.70s", f->row->id), f->row->line, f->row->measured_s,
                        f->row->measured_s * (1.0 + f->in_sample), f->in_sample);
    }
    if (shown > MOST_OUTLIERS) sm_report_text(r, "... and %d more.", shown - MOST_OUTLIERS);
}

/* ---- intervals ---- */

static void interval_rows(sm_report *r, const sm_fitting *q) {
    sm_data *array = sm_put_array(r, r->data, "intervals");
    for (int i = 0; i < SM_REGIME_COUNT; i++) {
        const sm_calibration *c = &q->fit.calibration;
        const char *name = sm_regime_name((sm_regime)i);
        if (!(q->fit.learned >> i & 1)) continue;
        sm_report_text(r,
                       "80 %% of what was held out (%s) took %.3g to %.3g times what is expected.",
                       name, c->interval[i].lowest, c->interval[i].highest);
        sm_put(r, sm_put_object(r, array, NULL), "regime|lowest|highest|rows", name,
               c->interval[i].lowest, c->interval[i].highest, c->interval[i].n);
    }
}

/* ---- the derivation ---- */

static void explain(sm_report *r, const sm_fitting *q) {
    r->why =
        sm_page_why(r, NULL, "median error on what was held out",
                    "median of |expected / measured - 1|, constants fitted to the other groups",
                    q->fit.held_out_median, "");
    sm_page_given(r, r->why, "rows", (double)q->fit.rows, "");
    for (int i = 0; i < q->fit.constants; i++) {
        const sm_fit_constant *c = &q->fit.constant[i];
        const sm_constant_info *info = sm_constant_of(c->which);
        sm_why *node =
            sm_page_why(r, r->why, info->name, "most likely under the prior and the rows", c->after,
                        strcmp(info->unit, "s") == 0 ? "s" : "");
        sm_page_leaf(r, node, "start", c->before, strcmp(info->unit, "s") == 0 ? "s" : "",
                     q->in.start->source);
        sm_page_leaf(r, node, "relative deviation", c->deviation, "",
                     c->identified ? "the rows" : "the prior");
    }
}

/* ---- the whole ---- */

static void head_fields(sm_report *r, const sm_fitting *q) {
    sm_put(r, r->data, "command|chip|software", "calibrate", q->in.chip->name, q->in.software);
    sm_data *start = sm_put_object(r, r->data, "start");
    sm_put(r, start, "chip|software", q->in.start->chip, q->in.start->software);
    sm_put(r, sm_put_object(r, r->data, "rows"), "read|of_chip|kept_apart|fitted_to|outliers",
           (double)q->read, (double)q->of_chip, (double)q->apart, (double)q->fit.rows,
           (double)q->fit.outliers);
}

static void sm_fitting_page(sm_report *r, const sm_fitting *q) {
    sm_report_heading(r, "Calibration of %s, software '%s'", q->in.chip->name, q->in.software);
    head_fields(r, q);
    if (q->reason) {
        sm_report_text(r, "No calibration: %s.", q->reason);
        sm_put(r, r->data, "reason", q->reason);
        return;
    }
    sm_report_text(r,
                   "%zu of %zu rows are of this chip; %zu of them are kept apart, %zu cannot be "
                   "predicted, %zu are fitted to. Start and prior: %s %s.",
                   q->of_chip, q->read, q->apart, q->of_chip - q->apart - q->fit.rows, q->fit.rows,
                   q->in.start->chip, q->in.start->software);
    const sm_listing list = sm_page_list(r, r->data, "constants", NULL,
                                         "name<constant|before|>before|after|>after|"
                                         "relative_deviation>{%}deviation|identified|<from");
    for (int i = 0; i < q->fit.constants; i++) {
        const sm_fit_constant *c = &q->fit.constant[i];
        const sm_constant_info *info = sm_constant_of(c->which);
        sm_list_row(&list, true, info->name, c->before, sm_constant_text(r, info, c->before),
                    c->after, sm_constant_text(r, info, c->after), c->deviation, c->identified,
                    c->identified ? "the rows" : "the prior");
    }
    error_lines(r, q);
    error_rows(r, q, "source", true);
    error_rows(r, q, "model", false);
    interval_rows(r, q);
    put_rows(r, q);
    outlier_rows(r, q);
    if (q->fit.measure_next[0]) sm_report_text(r, "Measure next: %s.", q->fit.measure_next);
    sm_put(r, r->data, "measure_next", q->fit.measure_next);
    if (q->in.output) sm_report_text(r, "Written to %s.", q->in.output);
    if (q->in.explain) explain(r, q);
}

static sm_status fit(sm_fitting *q, sm_report *r, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_fit_options options = {.free = q->in.constants, .prior_weight = 1.0, .arena = q->arena};
    sm_status status = sm_calibrate(q->ready, q->n, q->in.start, &options, &q->fit, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (status == SM_NEGATIVE) q->reason = sm_textf(r, "%s", none.sentence);
    if (status) return status;
    if (q->serving) q->fit.measure_next[0] = 0; /* it knows measurements of training alone */
    r->file = sm_fitting_text(q);
    return r->file ? SM_OK : sm_fail_memory(err);
}

/* All constants; of a few training steps alone only what matmuls reach, since they say little about
 * the rest, and one factor of one's own is worth as much as all of them. */
static unsigned usual_constants(const sm_fitting *q) {
    enum { FEW_STEPS = 20 };
    bool few = q->n < FEW_STEPS;
    for (size_t i = 0; few && i < q->n; i++) few = q->ready[i].row->kind == SM_TRUTH_TRAINING;
    if (!few) return (1u << SM_CONSTANT_COUNT) - 1u;
    return 1u << SM_CONSTANT_matmul_efficiency | 1u << SM_CONSTANT_matmul_efficiency_fp8;
}

sm_status sm_answer_calibrate(const sm_calibrate_question *question, sm_report *r, sm_error *err) {
    sm_fitting q = {.r = r, .arena = r->arena};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (!status) status = sm_question_needs(q.in.files > 0 && q.in.chip, "a file and a chip", err);
    if (status) return status;
    if (!q.in.software) q.in.software = "mine";
    status = sm_fitting_rows(&q, err);
    if (!q.in.constants) q.in.constants = usual_constants(&q);
    if (!status) status = fit(&q, r, err);
    if (status <= SM_NEGATIVE) sm_fitting_page(r, &q);
    sm_truth_cases_free(q.cases);
    return status;
}

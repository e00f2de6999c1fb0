/* A measured row that reads well and cannot be right, or hardly: against the chip's datasheet,
 * where a unit wrong by 1000 shows, and against its own other figures. */
#include "truth_warnings.h"

#include <math.h>
#include <string.h>

/* Times of single operations compare with at least LAUNCH_S: small ones take about that, whatever
 * they do. None is over in SOONEST_S. */
#define LAUNCH_S 10e-6
#define SOONEST_S 0.5e-6
#define FASTER 3.0         /* times above the datasheet's rates: caches, boosted clocks */
#define SLOWER_OP 300.0    /* times the larger of bound and LAUNCH_S */
#define SLOWER_STEP 1000.0 /* times the bound */
#define UNIT 1000.0
#define NOTABLE 0.02 /* two printed figures of one step may differ by rounding */

/* ---- notes ---- */

void truth_warn(truth_warnings *w, const sm_truth_row *row, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = sm_arena_vprintf(w->arena, format, args);
    va_end(args);
    if (text && w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        sm_truth_warning *grown = sm_realloc(w->warning, room * sizeof *grown);
        if (!grown) text = NULL;
        else w->warning = grown, w->room = room;
    }
    if (text) w->warning[w->n++] = (sm_truth_warning){row->line, row->id, text};
    else w->refused = true;
}

/* ---- against the datasheet ---- */

/* The printed figure that the time comes from. */
static const char *figure_of(const sm_truth_row *row) {
    if (row->kind != SM_TRUTH_TRAINING) return "time_us";
    if (!isnan(row->of.training.step_time_s)) return "step_time_s";
    return isnan(row->of.training.tokens_per_s_per_chip) ? "the derived step time"
                                                         : "tokens_per_s_per_chip";
}

/* What the figure would be in if it were off by this factor. */
static const char *guess_short(const sm_truth_row *row, double factor) {
    if (row->kind == SM_TRUTH_TRAINING)
        return isnan(row->of.training.step_time_s) ? "is it of all chips, or the batch in tokens?"
                                                   : "is the batch in tokens?";
    if (factor > UNIT * UNIT / 30) return "is it in seconds?";
    return factor > UNIT / 30 ? "is it in milliseconds?" : "is the shape right?";
}

static const char *guess_long(const sm_truth_row *row, double factor) {
    if (row->kind == SM_TRUTH_TRAINING)
        return isnan(row->of.training.step_time_s) ? "is it in thousands?"
                                                   : "is it in milliseconds?";
    return factor > UNIT / 30 ? "is it in nanoseconds?" : "is the shape right?";
}

static void suspect_time(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip) {
    truth_work work = truth_work_of(row, chip);
    double bound = truth_work_seconds(&work), seconds = row->measured_s;
    bool step = row->kind == SM_TRUTH_TRAINING;
    double usual = step ? bound : fmax(bound, LAUNCH_S);
    double soonest = step ? bound / FASTER : fmax(bound / FASTER, SOONEST_S);
    char measured[24], least[24];
    sm_format_seconds(measured, sizeof measured, seconds);
    sm_format_seconds(least, sizeof least, bound);
    if (!(usual > 0) || isnan(seconds)) return;
    if (seconds < soonest && bound > SOONEST_S)
        truth_warn(w, row, "%s says %s, but %s needs %s at its datasheet's rates; %s",
                   figure_of(row), measured, chip->name, least, guess_short(row, usual / seconds));
    else if (seconds < soonest)
        truth_warn(w, row, "%s says %s, but no kernel is that short; %s", figure_of(row), measured,
                   guess_short(row, usual / seconds));
    else if (seconds > usual * (step ? SLOWER_STEP : SLOWER_OP))
        truth_warn(w, row, "%s says %s, %.0f times what %s needs at its datasheet's rates; %s",
                   figure_of(row), measured, seconds / usual, chip->name,
                   guess_long(row, seconds / usual));
}

static void suspect_memory(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip) {
    double peak = row->of.training.peak_memory_bytes, has = chip->memory_bytes.value;
    char printed[24], room[24];
    sm_format_bytes(printed, sizeof printed, peak);
    sm_format_bytes(room, sizeof room, has);
    if (!(has > 0) || isnan(peak)) return;
    if (peak > 2 * has)
        truth_warn(w, row, "the peak memory is %s, but %s has %s; is it in MiB, or of all chips?",
                   printed, chip->name, room);
    else if (peak < has / UNIT)
        truth_warn(w, row, "the peak memory is %s of the %s that %s has; is it a share, or in TiB?",
                   printed, room, chip->name);
}

/* ---- against itself ---- */

static void suspect_training(truth_warnings *w, const sm_truth_row *row) {
    const sm_training_row *t = &row->of.training;
    double ranks = (double)t->tp * t->cp * t->pp * t->dp;
    double tokens = t->global_batch_sequences * t->seq_len;
    double by_tokens = tokens / (t->tokens_per_s_per_chip * t->chips);
    char printed[24], implied[24];
    if (ranks > 0 && t->devices > 0 && fabs(ranks - t->devices) > 0.5)
        truth_warn(w, row, "tp %d x cp %d x pp %d x dp %d is %.0f, but there are %d devices", t->tp,
                   t->cp, t->pp, t->dp, ranks, t->devices);
    bool both = t->step_time_s > 0 && by_tokens > 0 && isfinite(by_tokens);
    if (both && fabs(by_tokens / t->step_time_s - 1) > NOTABLE)
        truth_warn(w, row, "step_time_s says %s, but tokens_per_s_per_chip gives %s",
                   sm_format_seconds(printed, sizeof printed, t->step_time_s),
                   sm_format_seconds(implied, sizeof implied, by_tokens));
}

/* Bus bandwidth is bytes/time times a factor of the collective that lies between 1/2 and 2. */
static void suspect_bandwidth(truth_warnings *w, const sm_truth_row *row) {
    const sm_collective_row *c = &row->of.collective;
    double rate = c->bytes / row->measured_s, printed = c->busbw_GBps * 1e9;
    char by_time[24], bus[24];
    if (!(rate > 0) || !(printed > 0) || !isfinite(rate)) return;
    if (printed < rate * 10 && printed > rate / 10) return;
    truth_warn(w, row, "busbw_GBps says %s, but bytes and time_us give %s",
               sm_format_rate(bus, sizeof bus, printed, "B/s"),
               sm_format_rate(by_time, sizeof by_time, rate, "B/s"));
}

void truth_suspect_row(truth_warnings *w, const sm_truth_row *row) {
    const sm_chip *chip = sm_truth_chip(row->chip);
    if (row->kind == SM_TRUTH_INFERENCE) {
        truth_suspect_serving(w, row, chip);
        return;
    }
    if (chip) suspect_time(w, row, chip);
    if (row->kind == SM_TRUTH_COLLECTIVE) suspect_bandwidth(w, row);
    if (row->kind == SM_TRUTH_TRAINING && chip) suspect_memory(w, row, chip);
    if (row->kind == SM_TRUTH_TRAINING) suspect_training(w, row);
}

/* A measured row that reads well and cannot be right, or hardly: against the chip's datasheet,
 * where a unit wrong by 1000 shows, and against its own other figures. */
#include "truth_form.h"

/* A rough count of what a measured row must do, good to a factor of two or three: enough to see
 * that a time is a thousand times off. The predictions of src/truth are the careful count. */

/* over all of its dtypes */
static double truth_most_flops_per_s(const sm_chip *chip) {
    double most = 0;
    for (int d = 0; d < SM_DTYPE_COUNT; d++) most = fmax(most, chip->flops_per_s[d].value);
    return most;
}

/* Parameters of layers that every token meets, of the experts those it is sent to; 0: not stated.
 */
static double active_params(const sm_row_model *m) {
    double D = m->d_model, q = (double)m->heads * m->d_head, kv = (double)m->kv_heads * m->d_head;
    double width =
        m->experts > 0 ? (double)m->d_ff_expert * (m->top_k + m->shared_experts) : m->d_ff;
    double mlp = (m->gated_mlp == SM_NO ? 2 : 3) * D * width;
    return m->layers * (D * (2 * (q > 0 ? q : D) + 2 * kv) + mlp);
}

/* Forward and backward: 6 FLOPs per token and parameter that it meets, the output head too. */
static double training_flops(const sm_training_row *t) {
    double params = active_params(&t->model) + (double)t->model.d_model * t->model.vocab;
    double tokens = t->global_batch_sequences * t->seq_len;
    bool known = t->model.layers > 0 && t->model.d_model > 0 && t->chips > 0;
    return known ? 6 * params * tokens / t->chips : 0;
}

static truth_work truth_work_of(const sm_truth_row *row, const sm_chip *chip) {
    truth_work w = {.flops_per_s = truth_most_flops_per_s(chip),
                    .bytes_per_s = chip->memory_bytes_per_s.value};
    const sm_gemm_row *g = &row->of.gemm;
    const sm_attention_row *a = &row->of.attention;
    const sm_collective_row *c = &row->of.collective;
    switch (row->kind) {
    case SM_TRUTH_GEMM: /* half a byte an element: no type in use is smaller */
        w.flops = 2 * g->m * g->n * g->k;
        w.bytes = 0.5 * g->n * g->k;
        break;
    case SM_TRUTH_ATTENTION: /* QK^T and PV, half of it under a causal mask; one pass over K and V
                              */
        w.flops =
            4 * a->batch * a->q_len * (a->kv_len - 0.5 * (a->q_len - 1)) * a->n_heads * a->d_head;
        w.bytes = a->batch * a->kv_len * a->n_kv_heads * a->d_head;
        break;
    case SM_TRUTH_COLLECTIVE: /* a ring moves (ranks-1)/ranks of the buffer out of each chip */
        w.bytes = c->ranks > 1 ? c->bytes * (1 - 1.0 / c->ranks) : 0;
        /* What leaves a chip over all its links. */
        if (chip->fabric == SM_FABRIC_SWITCH && chip->tree_levels > 0)
            w.bytes_per_s = chip->tree[0].child_bytes_per_s_oneway.value;
        else w.bytes_per_s = chip->link_bytes_per_s_oneway.value * chip->links_per_chip;
        break;
    case SM_TRUTH_MEMOP: w.bytes = row->of.memop.bytes; break;
    case SM_TRUTH_TRAINING: w.flops = training_flops(&row->of.training); break;
    case SM_TRUTH_INFERENCE:
    case SM_TRUTH_KIND_COUNT: break;
    }
    w.flops = w.flops > 0 ? w.flops : 0; /* NaN: not stated */
    w.bytes = w.bytes > 0 ? w.bytes : 0;
    return w;
}

/* A row of inference that reads well and cannot be right, or hardly: against the least work of a
 * token, where a unit wrong by 1000 shows, and against its own other figures. */

#define FASTER 3.0      /* times above the datasheet's rates: caches, boosted clocks */
#define SLOWER 3000.0   /* times the least, and over LONGEST_S */
#define LONGEST_S 10.0  /* between two tokens, or a counted token of a whole system */
#define LEAST_BYTES 0.5 /* of a weight */
#define NOTABLE 0.02    /* two printed figures may differ by rounding */
#define DIFFERENT 0.25  /* mean lengths and medians of times are further apart */

/* Between two tokens of a sequence: its weights are read once at least. Of a counted token: its
 * FLOPs are done. */
static void suspect_least(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip,
                          sm_served quantity) {
    static const char *const figures[] = {
        [SM_SERVED_TPOT] = "tpot_ms", [SM_SERVED_TOKEN] = "tokens_per_s"};
    const sm_inference_row *r = &row->of.inference;
    double seconds = sm_inference_measured(r, quantity), params = active_params(&r->model);
    double least = quantity == SM_SERVED_TPOT
                       ? params * LEAST_BYTES / (chip->memory_bytes_per_s.value * r->chips)
                       : 2 * params / (truth_most_flops_per_s(chip) * r->chips);
    if (isnan(seconds) || !(least > 0) || !isfinite(least)) return;
    const char *measured = sm_show_seconds(&w->r, seconds), *bound = sm_show_seconds(&w->r, least);
    if (seconds * FASTER < least)
        truth_warn(w, row, "%s says %s a token, but %s needs %s at its datasheet's rates; %s",
                   figures[quantity], measured, chip->name, bound,
                   quantity == SM_SERVED_TPOT ? "is it in seconds?" : "does it count the input?");
    else if (seconds > LONGEST_S && seconds > SLOWER * least)
        truth_warn(w, row, "%s says %s a token, %.0f times what %s needs; %s", figures[quantity],
                   measured, seconds / least, chip->name,
                   quantity == SM_SERVED_TPOT ? "is it in microseconds?" : "is it of one request?");
}

/* The same of a row of inference; chip NULL: not in the catalogue. */
static void truth_suspect_serving(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip) {
    const sm_inference_row *r = &row->of.inference;
    double of_chips = r->tokens_per_s_per_chip * r->chips;
    double ranks = (double)(r->tp > 0 ? r->tp : 1) * (r->pp > 0 ? r->pp : 1);
    double by_tokens = r->tpot_s * (r->output_len - 1);
    if (chip) suspect_least(w, row, chip, SM_SERVED_TPOT);
    if (chip) suspect_least(w, row, chip, SM_SERVED_TOKEN);
    if (r->tokens_per_s > 0 && of_chips > 0 && fabs(of_chips / r->tokens_per_s - 1) > NOTABLE)
        truth_warn(w, row, "tokens_per_s says %.5g, but tokens_per_s_per_chip gives %.5g",
                   r->tokens_per_s, of_chips);
    /* devices are chips, or two to a chip */
    if (r->disagg != SM_YES && r->chips > 0 && ranks > 2.0 * r->chips)
        truth_warn(w, row, "tp %d x pp %d is %.0f, but there are %d chips", r->tp, r->pp, ranks,
                   r->chips);
    if (r->latency_s > 0 && isfinite(by_tokens) && by_tokens * (1 - DIFFERENT) > r->latency_s)
        truth_warn(w, row, "latency_ms says %s, but tpot_ms over the output gives %s",
                   sm_show_seconds(&w->r, r->latency_s), sm_show_seconds(&w->r, by_tokens));
}

/* Times of single operations compare with at least LAUNCH_S: small ones take about that, whatever
 * they do. None is over in SOONEST_S. */
#define LAUNCH_S 10e-6
#define SOONEST_S 0.5e-6
#define SLOWER_OP 300.0    /* times the larger of bound and LAUNCH_S */
#define SLOWER_STEP 1000.0 /* times the bound */
#define UNIT 1000.0

/* ---- notes ---- */

void truth_note(truth_warnings *w, const sm_truth_row *row, const char *text) {
    sm_truth_warning *grown = sm_grow(w->warning, w->n, &w->room, sizeof *grown);
    w->r.out_of_memory |= !grown;
    if (!grown) return;
    w->warning = grown;
    grown[w->n++] = (sm_truth_warning){row->line, row->id, text};
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
    double math = work.flops_per_s > 0 ? work.flops / work.flops_per_s : 0;
    double move = work.bytes_per_s > 0 ? work.bytes / work.bytes_per_s : 0;
    double bound = fmax(math, move), seconds = row->measured_s;
    bool step = row->kind == SM_TRUTH_TRAINING;
    double usual = step ? bound : fmax(bound, LAUNCH_S);
    double soonest = step ? bound / FASTER : fmax(bound / FASTER, SOONEST_S);
    if (!(usual > 0) || isnan(seconds)) return;
    const char *measured = sm_show_seconds(&w->r, seconds), *least = sm_show_seconds(&w->r, bound);
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
    double peak = row->of.training.peak_memory_bytes, has = sm_chip_memory(chip)->value;
    if (!(has > 0) || isnan(peak)) return;
    const char *printed = sm_show_bytes(&w->r, peak), *room = sm_show_bytes(&w->r, has);
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
    if (ranks > 0 && t->devices > 0 && fabs(ranks - t->devices) > 0.5)
        truth_warn(w, row, "tp %d x cp %d x pp %d x dp %d is %.0f, but there are %d devices", t->tp,
                   t->cp, t->pp, t->dp, ranks, t->devices);
    bool both = t->step_time_s > 0 && by_tokens > 0 && isfinite(by_tokens);
    if (both && fabs(by_tokens / t->step_time_s - 1) > NOTABLE)
        truth_warn(w, row, "step_time_s says %s, but tokens_per_s_per_chip gives %s",
                   sm_show_seconds(&w->r, t->step_time_s), sm_show_seconds(&w->r, by_tokens));
}

/* Bus bandwidth is bytes/time times a factor of the collective that lies between 1/2 and 2. */
static void suspect_bandwidth(truth_warnings *w, const sm_truth_row *row) {
    const sm_collective_row *c = &row->of.collective;
    double rate = c->bytes / row->measured_s, printed = c->busbw_GBps * 1e9;
    if (!(rate > 0) || !(printed > 0) || !isfinite(rate)) return;
    if (printed < rate * 10 && printed > rate / 10) return;
    truth_warn(w, row, "busbw_GBps says %s, but bytes and time_us give %s",
               sm_show_rate(&w->r, printed, "B/s"), sm_show_rate(&w->r, rate, "B/s"));
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

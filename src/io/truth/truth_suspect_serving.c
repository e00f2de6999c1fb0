/* A row of inference that reads well and cannot be right, or hardly: against the least work of a
 * token, where a unit wrong by 1000 shows, and against its own other figures. */
#include "truth_warnings.h"

#include <math.h>

#define FASTER 3.0      /* times above the datasheet's rates */
#define SLOWER 3000.0   /* times the least, and over LONGEST_S */
#define LONGEST_S 10.0  /* between two tokens, or a counted token of a whole system */
#define LEAST_BYTES 0.5 /* of a weight */
#define NOTABLE 0.02    /* two printed figures may differ by rounding */
#define DIFFERENT 0.25  /* mean lengths and medians of times are further apart */

/* Parameters that every token meets, without embeddings; 0: not stated. */
static double active_params(const sm_inference_row *r) {
    double head = r->model.d_head > 0 ? r->model.d_head : 0, D = r->model.d_model;
    double attention = D * head * (2.0 * r->model.heads + 2.0 * r->model.kv_heads);
    double matrices = r->model.gated_mlp == SM_NO ? 2 : 3, width = r->model.d_ff;
    if (r->model.experts > 0)
        width = (double)r->model.d_ff_expert * (r->model.top_k + r->model.shared_experts);
    return r->model.layers * (attention + matrices * D * width);
}

/* Between two tokens of a sequence: its weights are read once at least. Of a counted token: its
 * FLOPs are done. */
static void suspect_least(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip,
                          sm_served quantity) {
    static const char *const figures[] = {
        [SM_SERVED_TPOT] = "tpot_ms", [SM_SERVED_TOKEN] = "tokens_per_s"};
    const sm_inference_row *r = &row->of.inference;
    double seconds = sm_inference_measured(r, quantity), params = active_params(r);
    double least = quantity == SM_SERVED_TPOT
                       ? params * LEAST_BYTES / (chip->memory_bytes_per_s.value * r->chips)
                       : 2 * params / (truth_most_flops_per_s(chip) * r->chips);
    char measured[24], bound[24];
    if (isnan(seconds) || !(least > 0) || !isfinite(least)) return;
    sm_format_seconds(measured, sizeof measured, seconds);
    sm_format_seconds(bound, sizeof bound, least);
    if (seconds * FASTER < least)
        truth_warn(w, row, "%s says %s a token, but %s needs %s at its datasheet's rates; %s",
                   figures[quantity], measured, chip->name, bound,
                   quantity == SM_SERVED_TPOT ? "is it in seconds?" : "does it count the input?");
    else if (seconds > LONGEST_S && seconds > SLOWER * least)
        truth_warn(w, row, "%s says %s a token, %.0f times what %s needs; %s", figures[quantity],
                   measured, seconds / least, chip->name,
                   quantity == SM_SERVED_TPOT ? "is it in microseconds?" : "is it of one request?");
}

void truth_suspect_serving(truth_warnings *w, const sm_truth_row *row, const sm_chip *chip) {
    const sm_inference_row *r = &row->of.inference;
    double of_chips = r->tokens_per_s_per_chip * r->chips;
    double ranks = (double)(r->tp > 0 ? r->tp : 1) * (r->pp > 0 ? r->pp : 1);
    double by_tokens = r->tpot_s * (r->output_len - 1);
    char printed[24], tokens[24];
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
                   sm_format_seconds(printed, sizeof printed, r->latency_s),
                   sm_format_seconds(tokens, sizeof tokens, by_tokens));
}

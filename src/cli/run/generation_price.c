/* What generating is predicted to take: the price of serving, for the passes that are made. */
#include "generation.h"

/* Every sequence puts so many queries to a cache of so many tokens. */
static sm_status price_pass(const generation *g, sm_serve *serve, double queries, double past,
                            double sampled, double *seconds, sm_error *err) {
    double n = g->target.setup.sequences;
    sm_step_batch batch = {.groups = 1,
                           .group = {{.sequences = n, .queries = queries, .past = past}},
                           .sampled = n * sampled};
    sm_step_price price;
    sm_status status = sm_serve_step(serve, &g->plan, &batch, &price, err);
    if (!status) *seconds = price.expected_s;
    return status;
}

/* A prompt's pass, padded to the longest, and one of `queries` bytes at the mean length of a text.
 * constants: NULL for the usual ones of serving. */
static sm_status price_model(const generation *g, const sm_model *model,
                             const sm_calibration *constants, double queries, double *prefill_s,
                             double *decode_s, sm_error *err) {
    sm_serve *serve = NULL;
    double prompt = 0, tokens = (double)g->tokens;
    for (size_t i = 0; i < g->prompts; i++) prompt += (double)g->prompt_bytes[i];
    prompt /= (double)g->prompts;
    const sm_serve_job job = {.model = model,
                              .system = &g->system,
                              .dtypes = {SM_FP32, SM_FP32, SM_FP32},
                              .prompt = prompt,
                              .output = tokens,
                              .imbalance = 1,
                              .eager = true,
                              .reserve = -1,
                              .usd_per_chip_hour = -1};
    sm_status status = sm_serve_new(&job, &serve, err);
    if (!status && constants) sm_serve_set_calibration(serve, constants);
    if (!status) status = price_pass(g, serve, (double)g->longest, 0, 1, prefill_s, err);
    if (!status)
        status = price_pass(g, serve, queries, prompt + tokens / 2, queries, decode_s, err);
    sm_serve_free(serve);
    return status;
}

sm_status generation_predict(generation *g, sm_error *err) {
    const run_generate_values *o = g->call->values;
    const cli_calibration_values *named = &o->predicted.constants;
    const sm_calibration *constants = NULL;
    const char *on;
    generation_price *p = &g->price;
    double queries = g->drafts ? g->depth + 1 : 1;
    sm_status status = prediction_system_name(g->call, o->predicted.on,
                                              sm_train_setup_ranks(&g->target.setup), &on, err);
    if (!status) status = cli_system(g->call, on, &g->system, err);
    if (!status && (named->calibration || named->software))
        status = cli_calibration(g->call, &g->system.chip, named, &constants, err);
    if (!status)
        status =
            price_model(g, &g->target.model, constants, queries, &p->prefill_s, &p->decode_s, err);
    if (status || !g->drafts) return status;
    return price_model(g, &g->draft.model, constants, 1, &p->draft_prefill_s, &p->draft_s, err);
}

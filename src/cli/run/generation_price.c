/* What generating is predicted to take: the price of serving, for the passes that are made. */
#include "generation.h"

typedef struct asked {
    double queries, past, sampled; /* of each sequence */
} asked;

static sm_status price_pass(const generation *g, sm_serve *serve, asked a, double *seconds,
                            sm_error *err) {
    double n = g->target.setup.sequences;
    sm_step_batch batch = {.groups = 1,
                           .group = {{.sequences = n, .queries = a.queries, .past = a.past}},
                           .sampled = n * a.sampled};
    sm_step_price price;
    sm_status status = sm_serve_step(serve, &g->plan, &batch, &price, err);
    if (!status) *seconds = price.expected_s;
    return status;
}

static double mean_prompt(const generation *g) {
    double sum = 0;
    for (size_t i = 0; i < g->prompts; i++) sum += (double)g->prompt_bytes[i];
    return sum / (double)g->prompts;
}

/* Prompts are padded to the longest: all its positions are computed. */
static double longest_prompt(const generation *g) {
    size_t most = 0;
    for (size_t i = 0; i < g->prompts; i++)
        if (g->prompt_bytes[i] > most) most = g->prompt_bytes[i];
    return (double)most;
}

/* A prompt's pass, and one of `queries` bytes at the mean length of a text. */
static sm_status price_model(const generation *g, const sm_model *model,
                             const sm_calibration *constants, double queries, double *prefill_s,
                             double *decode_s, sm_error *err) {
    sm_serve *serve = NULL;
    double past = mean_prompt(g) + (double)g->tokens / 2;
    const sm_serve_job job = {.model = model,
                              .system = &g->system,
                              .dtypes = {SM_FP32, SM_FP32, SM_FP32},
                              .prompt = mean_prompt(g),
                              .output = (double)g->tokens,
                              .imbalance = 1,
                              .eager = true,
                              .reserve = -1,
                              .usd_per_chip_hour = -1};
    sm_status status = sm_serve_new(&job, &serve, err);
    if (!status && constants) sm_serve_set_calibration(serve, constants);
    if (!status) status = price_pass(g, serve, (asked){longest_prompt(g), 0, 1}, prefill_s, err);
    if (!status) status = price_pass(g, serve, (asked){queries, past, queries}, decode_s, err);
    sm_serve_free(serve);
    return status;
}

/* NULL: the usual ones of serving. */
static sm_status constants_of(const generation *g, const sm_calibration **constants,
                              sm_error *err) {
    const run_generate_values *given = g->call->values;
    const cli_calibration_values *named = &given->predicted.constants;
    *constants = NULL;
    if (!named->calibration && !named->software) return SM_OK;
    return cli_calibration(g->call, &g->system.chip, named, constants, err);
}

sm_status generation_predict(generation *g, sm_error *err) {
    const run_generate_values *given = g->call->values;
    const sm_calibration *constants;
    const char *on;
    generation_price *p = &g->price;
    double queries = g->drafts ? g->depth + 1 : 1;
    sm_status status = prediction_system_name(g->call, given->predicted.on,
                                              sm_train_setup_ranks(&g->target.setup), &on, err);
    if (!status) status = cli_system(g->call, on, &g->system, err);
    if (!status) status = constants_of(g, &constants, err);
    if (!status)
        status =
            price_model(g, &g->target.model, constants, queries, &p->prefill_s, &p->decode_s, err);
    if (!status && g->drafts)
        status =
            price_model(g, &g->draft.model, constants, 1, &p->draft_prefill_s, &p->draft_s, err);
    return status;
}

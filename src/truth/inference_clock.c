/* Steps of an engine as the program of serving prices them. */
#include <math.h>

#include "inference_parts.h"

static double price(inference_clock *c, sm_serve *serve, const sm_serve_plan *plan,
                    const sm_step_batch *batch) {
    sm_step_price p;
    if (c->failed) return NAN;
    if (sm_serve_step(serve, plan, batch, &p, &c->err) != SM_OK) {
        c->failed = true;
        return NAN;
    }
    return c->lower ? p.lower_s : p.expected_s;
}

double inference_prefill_s(inference_clock *c, double n) {
    const sm_step_batch batch = {.groups = 1, .group = {{n, c->load->prompt, 0}}, .sampled = n};
    return price(c, c->prefill, &c->layout->prefill.plan, &batch);
}

static double mean_context(const inference_clock *c) {
    return c->load->prompt + 0.5 * c->load->output;
}

double inference_decode_s(inference_clock *c, double n) {
    const sm_step_batch batch = {
        .groups = 1, .group = {{n, 1.0 + c->drafted, mean_context(c)}}, .sampled = n};
    return price(c, c->decode, &c->layout->decode.plan, &batch);
}

/* (1 - a^(k+1)) / (1 - a) tokens of k drafted, each accepted with probability a (Leviathan et al.
 * 2023). */
double inference_yield(const inference_clock *c) {
    double a = c->engine->accepted;
    return c->drafted > 0 ? (1 - pow(a, c->drafted + 1)) / (1 - a) : 1;
}

/* A step of n sequences in decode with `tokens` of prompts beside them. */
static double mixed_s(inference_clock *c, double n, double tokens) {
    double prompts = tokens / c->load->prompt, past = 0, queries = c->load->prompt;
    if (prompts < 1) { /* a chunk of one: the middle one of its prompt */
        queries = tokens;
        past = 0.5 * (c->load->prompt - tokens);
        prompts = 1;
    }
    const sm_step_batch batch = {
        .groups = 2,
        .group = {{n, 1.0 + c->drafted, mean_context(c)}, {prompts, queries, past}},
        .sampled = n + prompts};
    return price(c, c->decode, &c->layout->decode.plan, &batch);
}

/* Prompts come as requests end: prompt x n / output tokens a step on average, of which a step takes
 * no more than its budget and no fewer than one prompt or chunk. */
double inference_added_s(inference_clock *c, double n) {
    double prompt = c->load->prompt, budget = c->engine->budget;
    double coming = prompt * n * inference_yield(c) / c->load->output;
    double tokens = fmin(budget, fmax(fmin(prompt, budget), coming));
    if (!c->engine->mixed) {
        double prompts = fmax(1, tokens / prompt);
        return inference_prefill_s(c, prompts) / prompts;
    }
    return prompt / tokens * fmax(0, mixed_s(c, n, tokens) - inference_decode_s(c, n));
}

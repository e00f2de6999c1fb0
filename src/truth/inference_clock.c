/* Steps of an engine as the program of serving prices them. */
#include <math.h>

#include "inference_parts.h"

static double price(inference_clock *c, sm_serve *serve, const sm_plan *plan,
                    const sm_step_batch *batch) {
    sm_step_price p;
    if (c->failed) return NAN;
    if (sm_serve_step(serve, plan, batch, &p, &c->err) != SM_OK) {
        c->failed = true;
        return NAN;
    }
    return c->lower ? p.lower_s : p.expected_s;
}

static double step_of(inference_clock *c, sm_serve *serve, const sm_plan *plan,
                      const sm_step_batch *batch) {
    double host = c->lower || batch->group[0].past <= 0 ? 0 : c->engine->host_s_per_sequence;
    return price(c, serve, plan, batch) + host * batch->group[0].sequences;
}

/* Stages of a pipeline take one group of the sequences each: as many groups as stages are on their
 * way, and each passes all stages. Prompts that come at once fill and drain it. */
double inference_prefill_s(inference_clock *c, double n) {
    double stages = c->layout->prefill.plan.pipeline, groups = fmin(n, stages);
    const sm_step_batch batch = {
        .groups = 1, .group = {{n / groups, c->load->prompt, 0}}, .sampled = n / groups};
    double pass = step_of(c, c->prefill, &c->layout->prefill.plan, &batch);
    return pass * (groups + stages - 1) / stages;
}

static double mean_context(const inference_clock *c) {
    return c->load->prompt + 0.5 * c->load->output;
}

static double in_group(const inference_clock *c, double n) {
    return fmax(1, n / c->layout->decode.plan.pipeline);
}

double inference_decode_s(inference_clock *c, double n) {
    double group = in_group(c, n);
    const sm_step_batch batch = {
        .groups = 1, .group = {{group, 1.0 + c->drafted, mean_context(c)}}, .sampled = group};
    return step_of(c, c->decode, &c->layout->decode.plan, &batch);
}

/* (1 - a^(k+1)) / (1 - a) tokens of k drafted, each accepted with probability a (Leviathan et al.
 * 2023). */
double inference_yield(const inference_clock *c) {
    double a = c->engine->accepted;
    return c->drafted > 0 ? (1 - pow(a, c->drafted + 1)) / (1 - a) : 1;
}

/* A step of n sequences in decode with `tokens` of prompts beside them. */
static double mixed_s(inference_clock *c, double n, double tokens) {
    double group = in_group(c, n), prompts = tokens / c->load->prompt, past = 0;
    double queries = c->load->prompt, ranks = inference_ranks(c);
    if (prompts < ranks) { /* a chunk of one: the middle one of its prompt */
        queries = tokens / ranks;
        past = 0.5 * (c->load->prompt - queries);
        prompts = ranks;
    }
    const sm_step_batch batch = {
        .groups = 2,
        .group = {{group, 1.0 + c->drafted, mean_context(c)}, {prompts, queries, past}},
        .sampled = group + prompts};
    return step_of(c, c->decode, &c->layout->decode.plan, &batch);
}

double inference_ranks(const inference_clock *c) {
    const sm_plan *plan = &c->layout->decode.plan;
    return (double)plan->data * plan->expert;
}

/* Prompts come as requests end: prompt x n / output tokens a step on average, of which a step takes
 * no more than its budget and no fewer than one prompt or chunk, on each rank of data-parallel
 * attention. */
double inference_added_s(inference_clock *c, double n) {
    double prompt = c->load->prompt, ranks = inference_ranks(c);
    double most = c->engine->budget_tokens * ranks,
           least = fmin(prompt, c->engine->budget_tokens) * ranks;
    double coming = prompt * n * inference_yield(c) / c->load->output;
    double tokens = fmin(most, fmax(least, coming)), stages = c->layout->decode.plan.pipeline;
    if (!c->engine->mixed_steps) {
        double prompts = fmax(ranks, tokens / prompt);
        return inference_prefill_s(c, prompts) / prompts / stages;
    }
    double longer = mixed_s(c, n, tokens) - inference_decode_s(c, n);
    return prompt / tokens * fmax(0, longer) / stages;
}

/* Steps of an engine under a load, as the program of serving prices them. With n sequences in
 * decode a step takes D(n) and yields y tokens of each; the prefill of a request adds S(n) to the
 * steps. Each token of n sequences ends n / output requests, and as many begin: time per token   t
 * = D(n) / y + S(n) n / output                       (n of one engine) */
#include <math.h>

#include "load_steps.h"

static double price(load_steps *c, sm_serve *serve, const sm_plan *plan,
                    const sm_step_batch *batch) {
    sm_step_price p;
    if (c->failed) return NAN;
    sm_status status = c->any ? step_anywhere(serve, plan, batch, c->any, &p, &c->err)
                              : sm_serve_step(serve, plan, batch, &p, &c->err);
    if (status) {
        c->failed = true;
        return NAN;
    }
    return c->lower ? p.lower_s : p.expected_s;
}

/* New tokens of a prompt, beside those that are cached already. */
static double new_tokens(const sm_serve *s) { return s->job.prompt - s->job.prefix; }

/* Stages of a pipeline take one group of the sequences each: as many groups as stages are on their
 * way, and each passes all stages. Prompts that come at once fill and drain it. */
double load_prefill_s(load_steps *c, double n) {
    sm_serve *s = c->e->prefill;
    const sm_plan *plan = &c->e->prefill_plan;
    double stages = plan->pipeline, groups = fmin(n, stages);
    const sm_step_batch batch = point_batch(n / groups, new_tokens(s), s->job.prefix);
    if (c->prompts == n) return c->prefill_s;
    c->prompts = n;
    return c->prefill_s = price(c, s, plan, &batch) * (groups + stages - 1) / stages;
}

/* One after the other, so that stages are busy with those before and after. */
static double prefill_each_s(load_steps *c, double n) {
    double stages = c->e->prefill_plan.pipeline, groups = fmin(n, stages);
    return load_prefill_s(c, n) / n * groups / (groups + stages - 1);
}

double load_decode_s(load_steps *c, double n, double *tokens) {
    decode_time t;
    *tokens = 1;
    if (c->failed) return NAN;
    if (point_decode(c->e->decode, &c->e->plan, point_group(&c->e->plan, n), &t, &c->err)) {
        c->failed = true;
        return NAN;
    }
    *tokens = t.tokens;
    return c->lower ? t.step.lower_s : t.step.expected_s;
}

double load_alone_s(load_steps *c, double n) {
    double tokens, seconds = load_decode_s(c, n, &tokens);
    return seconds / tokens;
}

/* A step of n sequences in decode with `tokens` of prompts beside them, in so many groups. */
static double mixed_s(load_steps *c, double n, double tokens, double groups) {
    sm_serve *s = c->e->decode;
    int drafted = s->job.speculation.depth > 0 ? s->job.speculation.depth : 0;
    double prompt = new_tokens(s), prompts = tokens / prompt, past = s->job.prefix;
    double queries = prompt;
    if (prompts < groups) { /* a chunk of one: the middle one of its prompt */
        queries = tokens / groups;
        past += 0.5 * (prompt - queries);
        prompts = groups;
    }
    sm_step_batch batch = point_drafted(s, point_group(&c->e->plan, n), drafted);
    batch.groups = 2;
    batch.group[1] = (sm_attend){prompts, queries, past};
    batch.sampled += prompts;
    return price(c, s, &c->e->plan, &batch);
}

/* Prompts come as requests end: prompt x n / output tokens a step on average, of which a step takes
 * no more than its budget and no fewer than one prompt or chunk, on each group of chips that has
 * sequences. A prompt that would take longer beside decoding has steps of its own.
 *
 * The groups of a pipeline follow one another: a round of its stages takes as long as the longest
 * of their steps. With prefill in a share p of the steps it is in one of them in 1 - (1 - p)^stages
 * of the rounds, and of p x stages steps that have some so many are hidden behind others. */
double load_added_s(load_steps *c, double n, double decode_s, double yield) {
    const sm_serve *s = c->e->decode;
    double prompt = new_tokens(s),
           groups = fmax(1, fmin(n, sm_plan_groups(&c->e->plan, &s->model)));
    double stages = c->e->plan.pipeline, coming = prompt * n * yield / s->job.output / stages;
    double chunk = fmin(prompt, c->software->budget_tokens);
    if (c->at_random) groups = fmin(groups, fmax(1, coming / chunk));
    double most = c->software->budget_tokens * groups, least = chunk * groups;
    double tokens = fmin(most, fmax(least, coming)), share = fmin(1, coming / tokens);
    double shown = c->any || c->lower ? 1 / stages
                   : share > 0        ? -expm1(stages * log1p(-share)) / (share * stages)
                                      : 1;
    double own_s = prefill_each_s(c, fmax(groups, c->software->mixed_steps ? 0 : tokens / prompt));
    own_s *= shown * stages;
    if (!c->software->mixed_steps) return own_s;
    double longer = fmax(0, mixed_s(c, n, tokens, groups) - decode_s),
           steps = prompt / tokens * shown;
    /* Of two least times the difference is no least: as much of it as leaves a sum of both. */
    if (c->any) steps = fmin(steps, s->job.output / (n * yield));
    return fmin(longer * steps, own_s);
}

double load_token_s(load_steps *c, double n) {
    double tokens, decode = load_decode_s(c, n, &tokens), t = decode / tokens;
    if (c->load->no_prefill || c->e->apart) return t;
    return t + load_added_s(c, n, decode, tokens) * n / c->e->decode->job.output;
}

double load_service_s(load_steps *c) {
    return prefill_each_s(c, sm_plan_groups(&c->e->prefill_plan, &c->e->prefill->model));
}

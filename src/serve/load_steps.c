/* Steps of an engine under a load, as the program of serving prices them. With n sequences in
 * decode a step takes D(n) and yields y tokens of each; the prefill of a request adds S(n) to the
 * steps. Each token of n sequences ends n / output requests, and as many begin: time per token   t
 * = D(n) / y + S(n) n / output                       (n of one engine) */

#include "load_steps.h"

static double copies_of(double engines, const sm_plan *plan, double requests) {
    return fmin(plan->data, fmax(1, requests / engines));
}

sm_engines sm_engines_of(sm_serve *serve, const sm_plan *plan, double n) {
    return (sm_engines){serve, serve, *plan, *plan, n, n, .apart = false};
}

load_steps load_steps_of(const sm_engines *e, const sm_load *load, double requests) {
    return (load_steps){.e = e,
                        .load = load,
                        .software = e->decode->job.software,
                        .n = e->n * copies_of(e->n, &e->plan, requests),
                        .prefill_n =
                            e->prefill_n * copies_of(e->prefill_n, &e->prefill_plan, requests)};
}

static double step_s(const load_steps *c, const sm_step_price *p) {
    return c->lower ? p->lower_s : c->upper ? p->upper_s : p->expected_s;
}

/* A step of all copies that have requests, which takes as long as that of one. */
static double price(load_steps *c, sm_serve *serve, const sm_plan *plan, double copies,
                    sm_step_batch batch) {
    sm_step_price p;
    if (c->failed) return NAN;
    for (int i = 0; i < batch.groups; i++) batch.group[i].sequences *= copies;
    batch.sampled *= copies;
    batch.begun *= copies;
    if (c->any) {
        step_floor *floor = &c->floor[batch.groups > 1];
        c->failed = step_floor_s(floor, serve, plan, &batch, c->any, LEAST_EXPECTED, &c->err);
        return c->failed ? NAN : floor->seconds;
    }
    c->failed = sm_serve_step(serve, plan, &batch, &p, &c->err);
    return c->failed ? NAN : step_s(c, &p);
}

/* New tokens of a prompt, beside those that are cached already. */
static double new_tokens(const sm_serve *s) { return s->job.prompt - s->job.prefix; }

/* Stages of a pipeline take one group of the sequences each: as many groups as stages are on their
 * way, and each passes all stages. Prompts that come at once fill and drain it. */
double load_prefill_s(load_steps *c, double n) {
    sm_serve *s = c->e->prefill;
    const sm_plan *plan = &c->e->prefill_plan;
    double stages = plan->pipeline, groups = fmin(n, stages);
    if (c->prompts == n) return c->prefill_s;
    c->prompts = n;
    double step_s = price(c, s, plan, c->prefill_n / c->e->prefill_n,
                          point_batch(n / groups, new_tokens(s), s->job.prefix));
    return c->prefill_s = step_s * (groups + stages - 1) / stages;
}

/* One after the other, so that stages are busy with those before and after. */
static double prefill_each_s(load_steps *c, double n) {
    double stages = c->e->prefill_plan.pipeline, groups = fmin(n, stages);
    return load_prefill_s(c, n) / n * groups / (groups + stages - 1);
}

/* A step of n sequences in decode, and the tokens that it gives each of them. */
static double load_decode_s(load_steps *c, double n, double *tokens) {
    decode_time t;
    double sequences = point_group(&c->e->plan, n * c->n / c->e->n);
    *tokens = 1;
    if (c->failed) return NAN;
    if (point_decode(c->e->decode, &c->e->plan, sequences, &t, &c->err)) {
        c->failed = true;
        return NAN;
    }
    *tokens = t.tokens;
    return step_s(c, &t.step);
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
    double queries = prompt, begun = prompts;
    if (prompts < groups) { /* a chunk of one: the middle one of its prompt */
        queries = tokens / groups;
        past += 0.5 * (prompt - queries);
        prompts = groups;
    }
    sm_step_batch batch = point_drafted(s, point_group(&c->e->plan, n), drafted);
    batch.groups = 2;
    batch.group[1] = (sm_attend){prompts, queries, past};
    batch.sampled += prompts;
    batch.begun = begun;
    return price(c, s, &c->e->plan, c->n / c->e->n, batch);
}

double load_groups(const sm_plan *plan, const sm_serve *s) {
    return fmax(1, sm_plan_groups(plan, &s->model) / plan->data);
}

double load_budget(const sm_software *software, const sm_plan *plan, const sm_serve *s) {
    const double groups = load_groups(plan, s);
    return sm_software_budget(software, groups) / groups;
}

/* What a step takes longer for so many tokens of prompts on so many groups of chips: a step of
 * their own where the software does so, or where they would take longer beside decoding. */
static double with_prompts_s(load_steps *c, double n, double decode_s, double tokens,
                             double groups) {
    double prompts = tokens / new_tokens(c->e->decode);
    double own_s = prefill_each_s(c, fmax(groups, prompts)) * prompts * c->e->plan.pipeline;
    if (!c->software->mixed_steps) return own_s;
    return fmin(own_s, fmax(0, mixed_s(c, n, tokens, groups) - decode_s));
}

/* Prompts come as requests end: prompt x n / output tokens a step on average. A step takes those
 * that came since the software last looked for them, or while it waited for one on each group of
 * chips: no more than its budget and no fewer than one prompt or chunk. Groups that have none wait
 * for those that do. Of a queue, whose requests are all of one length and there from the start,
 * those of all groups begin and end together: the least.
 *
 * The groups of a pipeline follow one another: a round of its stages takes as long as the longest
 * of their steps. With prefill in a share p of the steps it is in one of them in 1 - (1 - p)^stages
 * of the rounds, and of p x stages steps that have some so many are hidden behind others. */
double load_added_s(load_steps *c, double n, double decode_s, double yield) {
    const sm_serve *s = c->e->decode;
    const sm_software *software = c->software;
    double budget = load_budget(software, &c->e->plan, s), stages = c->e->plan.pipeline;
    bool whole = c->e->apart || !software->mixed_steps; /* prompts, in a step */
    double prompt = new_tokens(s), chunk = whole ? prompt : fmin(prompt, budget);
    double groups = fmax(1, fmin(n, load_groups(&c->e->plan, s)));
    double come = prompt * n * yield / s->job.output / stages / chunk;
    double looks = fmax(1, fmax(software->look_steps, software->gather_steps));
    bool in_turn = c->lower || c->load->kind == SM_LOAD_QUEUE || groups <= 1;
    /* Chunks of a step: of a Poisson process those where there are any. */
    double some = come * looks / -expm1(-come * looks), most = fmax(1, budget / chunk);
    double with = in_turn ? groups : fmin(groups, some);
    double chunks = fmin(fmax(with, some), with * most), share = fmin(1, come / chunks);
    double shown = c->any || c->lower ? 1 / stages
                   : share > 0        ? -expm1(stages * log1p(-share)) / (share * stages)
                                      : 1;
    double longer = with_prompts_s(c, n, decode_s, chunks * chunk, with);
    double steps = prompt / (chunk * chunks) * shown;
    /* Of two least times the difference is no least: as much of it as leaves a sum of both. */
    if (c->any && software->mixed_steps) steps = fmin(steps, s->job.output / (n * yield));
    return longer * steps;
}

double load_token_s(load_steps *c, double n) {
    double tokens, decode = load_decode_s(c, n, &tokens), t = decode / tokens;
    if (c->load->no_prefill || c->e->apart) return t;
    return t + load_added_s(c, n, decode, tokens) * n / c->e->decode->job.output;
}

double load_service_s(load_steps *c) {
    const sm_serve *s = c->e->prefill;
    const sm_plan *plan = &c->e->prefill_plan;
    double prompts = fmax(1, floor(load_budget(c->software, plan, s) / new_tokens(s)));
    return prefill_each_s(c, prompts * load_groups(plan, s) * plan->pipeline);
}

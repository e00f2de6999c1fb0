/* A plan with a batch: time to first token, time per token, throughput, money.
 *
 *   tokens per second and chip = batch / (time per token * chips)
 *   usd per token              = usd per chip and second / tokens per second and chip
 *
 * ("How To Scale Your Model", inference chapter). With drafts a step gives a sequence
 *   1 + a + a^2 + .. + a^depth
 * tokens, a the rate of acceptance (Leviathan, Kalman, Matias, "Fast inference from transformers
 * via speculative decoding", 2023). */

#include "load_steps.h"

/* Longer prompts are prefilled in chunks of this, so no step holds more. */
static const double MOST_STEP_TOKENS = 8192;

double point_step_tokens(const sm_serve *s, const sm_degrees *d, double batch) {
    double prompt = smaller(s->job.prompt - s->job.prefix, MOST_STEP_TOKENS);
    return larger(prompt * d->replicas, batch);
}

double sm_serve_longest(const sm_serve_job *job) {
    return larger(job->prompt + job->output, job->context);
}

double point_context(const sm_serve *s) {
    return s->job.context > 0 ? s->job.context : s->job.prompt + s->job.output / 2;
}

sm_step_batch point_batch(double sequences, double queries, double past) {
    sm_step_batch b = {.groups = 1, .group = {{sequences, queries, past}}, .sampled = sequences};
    return b;
}

sm_step_batch point_prompt(const sm_serve *s) {
    return point_batch(1, s->job.prompt - s->job.prefix, s->job.prefix);
}

/* ---- pipelines ---- */

/* Stages work on groups of the batch at the same time: each group passes all stages in turn, and
 * as many groups are under way as there are stages. */
double point_group(const sm_plan *plan, double batch) {
    double each = batch / plan->pipeline;
    if (fmod(batch, 1) == 0) each = ceil(each);
    return larger(1, each);
}

/* ---- speculation ---- */

/* Leviathan et al. 2023, equation 1: with k drafted, each accepted with probability a. */
double point_tokens(const sm_serve *s, int depth) {
    double a = s->job.speculation.acceptance;
    return a < 1 ? (1 - pow(a, depth + 1)) / (1 - a) : depth + 1;
}

sm_step_batch point_drafted(const sm_serve *s, double sequences, int depth) {
    sm_step_batch b = point_batch(sequences, depth + 1, point_context(s));
    b.sampled = sequences * (depth + 1);
    return b;
}

/* The draft model under the nearest plan that can shard it. */
sm_status point_draft(sm_serve *s, const sm_plan *plan, double sequences, sm_step_price *price,
                      sm_error *err) {
    sm_plan p = *plan;
    sm_status status = SM_BAD_INPUT;
    sm_step_batch b = point_batch(sequences, 1, point_context(s));
    p.expert = p.fsdp = p.pipeline = 1;
    p.gathered = false;
    do {
        status = sm_serve_step(s->draft, &p, &b, price, err);
        p.tensor /= 2;
    } while (status == SM_BAD_INPUT && p.tensor >= 1);
    return status;
}

static void add_draft(const sm_step_price *draft, int depth, sm_step_price *to) {
    to->lower_s += depth * draft->lower_s;
    to->expected_s += depth * draft->expected_s;
    to->upper_s += depth * draft->upper_s;
    to->breakdown_s.weights += depth * draft->breakdown_s.weights;
    to->breakdown_s.kv += depth * draft->breakdown_s.kv;
    to->breakdown_s.compute += depth * draft->breakdown_s.compute;
    to->breakdown_s.scans += depth * draft->breakdown_s.scans;
    to->breakdown_s.network += depth * draft->breakdown_s.network;
    to->breakdown_s.other += depth * draft->breakdown_s.other;
    to->flops += depth * draft->flops;
}

static sm_status decode_at(sm_serve *s, const sm_plan *plan, double sequences, int depth,
                           decode_time *out, sm_error *err) {
    sm_step_price draft;
    sm_step_batch b = point_drafted(s, sequences, depth);
    out->depth = depth;
    out->tokens = point_tokens(s, depth);
    sm_status status = sm_serve_step(s, plan, &b, &out->step, err);
    if (status != SM_OK || depth == 0 || !s->draft) return status;
    status = point_draft(s, plan, sequences, &draft, err);
    if (status == SM_OK) add_draft(&draft, depth, &out->step);
    return status;
}

sm_status point_decode(sm_serve *s, const sm_plan *plan, double sequences, decode_time *out,
                       sm_error *err) {
    int depth = s->job.speculation.depth;
    decode_time one;
    if (depth >= 0) return decode_at(s, plan, sequences, depth, out, err);
    sm_status status = decode_at(s, plan, sequences, 0, out, err);
    for (int k = 1; status == SM_OK && k <= DEEPEST_DRAFT; k++) {
        status = decode_at(s, plan, sequences, k, &one, err);
        if (status == SM_OK &&
            one.step.expected_s * out->tokens < out->step.expected_s * one.tokens)
            *out = one;
    }
    return status;
}

/* ---- the point ---- */

/* In steady state as in load_solve.c, from the sequences that decode to the requests in flight,
 * whose first tokens are then simulated; so is the time per token where these are given. */
sm_status point_under_load(sm_serve *s, const sm_plan *plan, const point_loaded *p, point_load *out,
                           sm_error *err) {
    const decode_time *decode = p->decode;
    const double batch = p->batch, first_s = p->first_s, late_s = p->late_s;
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = s->job.in_flight};
    sm_engines one = sm_engines_of(s, plan, 1);
    one.kv_tokens = p->kv_tokens;
    load_steps c = load_steps_of(&one, &load, batch);
    double output = s->job.output, alone_s = decode->step.expected_s / decode->tokens;
    *out = (point_load){.tpot_s = alone_s,
                        .slowest_s = decode->step.upper_s / decode->tokens,
                        .first = {.mean_s = first_s,
                                  .steady_s = first_s,
                                  .median_s = first_s,
                                  .p90_s = first_s,
                                  .p99_s = first_s,
                                  .token_s = alone_s},
                        .in_flight = batch};
    out->request_s = alone_s * output / batch;
    if (s->job.alone) return SM_OK;
    double n = batch / c.n, given = s->job.in_flight;
    double added = load_added_s(&c, n, decode->step.expected_s, decode->tokens);
    out->tpot_s = alone_s + added * n / output;
    if (isinf(late_s)) { /* of steps in which nothing overlaps; of a loop given, in proportion */
        load_steps slow = c;
        slow.upper = true, slow.prompts = 0;
        out->slowest_s += load_added_s(&slow, n, decode->step.upper_s, decode->tokens) * n / output;
        if (slow.failed) c = slow;
    }
    double slower = larger(1, out->slowest_s / out->tpot_s);
    double request = out->tpot_s * output / batch;
    double room = given > 0 ? p->most_batch / c.n : INFINITY;
    out->first.mean_s = c.software->admission_s + first_s;
    out->in_flight = given > 0 ? given : batch + out->first.mean_s / request;
    bool simulated = late_s > 0;
    c.late_s = late_s;
    if (simulated) load_closed_first(&c, out->in_flight / c.n, room, &out->first);
    bool told = simulated && given > 0;
    if (told && out->first.token_s > 0) out->tpot_s = out->first.token_s;
    if (simulated && !(given > 0)) out->in_flight = batch + out->first.steady_s / request;
    out->slowest_s = out->tpot_s * slower;
    out->request_s = told ? out->first.request_s / c.n : out->tpot_s * output / batch;
    if (c.failed && err) *err = c.err;
    return c.failed ? c.err.status : SM_OK;
}

/* Software admits a request as late whatever overlaps; what waits for prefills waits longer where
 * nothing does. The waits of few requests, drawn, may come to less than one admission. */
static void fill_times(const sm_serve_job *job, const sm_step_price *prefill,
                       const decode_time *decode, const point_load *load, sm_serve_point *p) {
    const sm_step_price *whole = &decode->step;
    const double first[3] = {prefill->lower_s, prefill->expected_s, prefill->upper_s};
    const double each[3] = {whole->lower_s, whole->expected_s, whole->upper_s};
    const double upper = prefill->upper_s / prefill->expected_s,
                 admission_s = job->alone ? 0 : job->software->admission_s,
                 waits_s = larger(0, load->first.mean_s - first[1] - admission_s);
    for (int i = 0; i < 3; i++) {
        p->ttft_s[i] = p->ttft_alone_s[i] = first[i];
        p->tpot_s[i] = p->tpot_alone_s[i] = each[i] / decode->tokens;
    }
    p->ttft_s[1] = load->first.mean_s;
    p->ttft_median_s = load->first.median_s;
    p->ttft_p99_s = load->first.p99_s;
    p->tpot_s[1] = load->tpot_s;
    p->tpot_s[2] = load->slowest_s;
    p->ttft_s[2] = load->first.mean_s + first[2] - first[1] + waits_s * (upper - 1);
    p->in_flight = load->in_flight;
    p->tokens_per_s_per_chip = job->output / load->request_s / p->chips;
    p->prefill = *prefill;
    p->decode = *whole;
    p->tokens_per_step = decode->tokens;
    p->depth = decode->depth;
}

/* Where requests wait for room, as many run as the memory and the software let. */
static sm_status price_point(sm_serve *s, sm_serve_point *p, double late_s, sm_error *err) {
    double software = sm_software_most(&s->software, sm_plan_groups(&p->plan, &s->model));
    double most = smaller(larger(1, p->most_batch), software);
    decode_time decode;
    sm_step_price prefill;
    point_load load;
    sm_step_batch prompt = point_prompt(s);
    sm_status status = sm_serve_step(s, &p->plan, &prompt, &prefill, err);
    if (!status) status = point_decode(s, &p->plan, point_group(&p->plan, p->batch), &decode, err);
    const double kv_tokens = p->most_batch >= 2 ? p->most_batch * sm_serve_longest(&s->job) : 0;
    const point_loaded loaded = {p->batch, most, &decode, prefill.expected_s, late_s, kv_tokens};
    if (!status) status = point_under_load(s, &p->plan, &loaded, &load, err);
    if (!status) fill_times(&s->job, &prefill, &decode, &load, p);
    return status;
}

sm_status point_of(sm_serve *serve, const sm_plan *plan, double batch, double late_s,
                   sm_serve_point *point, sm_error *err) {
    holding f;
    const sm_serve_job *job = &serve->job;
    if (job->in_flight > 0) late_s = INFINITY; /* simulated is then the time per token too */
    memset(point, 0, sizeof *point);
    point->plan = *plan;
    sm_plan_settle(&point->plan, &serve->model);
    point->chips = sm_plan_chips(plan);
    point->batch = batch;
    if (!(batch >= 1) || !(batch <= 1e9))
        return sm_fail(err, SM_BAD_INPUT, "a batch must have 1 to 1e9 sequences, not %g", batch);
    sm_status status = holding_of(serve, &point->plan, sm_serve_longest(job), &f, err);
    if (status != SM_OK) return status;
    double tokens = point_step_tokens(serve, &f.d, point->batch);
    holding_memory(serve, &f, point->batch, tokens, &point->memory);
    point->most_batch = holding_most(serve, &f, tokens);
    status = price_point(serve, point, late_s, err);
    if (status != SM_OK) return status;
    point->fits = point->memory.total <= point->memory.capacity;
    double usd_per_s = serve->usd_per_chip_hour / 3600;
    point->tokens_per_s_per_chip_alone = point->batch / point->tpot_alone_s[1] / point->chips;
    point->usd_per_million_tokens = 1e6 * usd_per_s / point->tokens_per_s_per_chip;
    point->usd_per_million_tokens_alone = 1e6 * usd_per_s / point->tokens_per_s_per_chip_alone;
    return SM_OK;
}

sm_status sm_serve_point_of(sm_serve *serve, const sm_plan *plan, double batch,
                            sm_serve_point *point, sm_error *err) {
    return point_of(serve, plan, batch, INFINITY, point, err);
}

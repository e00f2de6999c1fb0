/* Continuous batching in closed form. Every token of n sequences takes t(n) (load_steps.c);
 * n/output requests end and begin for each token, so that a request takes  R = t output / n of an
 * engine's time n = in flight x t output / (first + t output)            (Little's law) with first
 * = the wait and the prefill before the first token. */

#include "load_steps.h"

enum { ROUNDS = 12 };
static const double SETTLED = 1e-3;

static double output_of(const load_steps *c) {
    return c->load->no_decode ? 1 : c->e->decode->job.output;
}

/* What does not fit at once runs in turns: each token takes as much longer. Between its tokens no
 * prefill comes: an engine may take its prompts in waves; what they cost shows in the time per
 * request all the same. */
static sm_load_times of_batch(load_steps *c, double most_running) {
    double all = c->load->requests / c->n;
    sm_load_times t = {.running = fmin(all, fmax(1, most_running))};
    if (!c->load->no_prefill) t.ttft_s = load_prefill_s(c, all);
    if (!c->load->no_decode) t.tpot_s = load_alone_s(c, t.running) * all / t.running;
    double tokens = c->load->no_prefill ? output_of(c) : output_of(c) - 1;
    t.latency_s = t.ttft_s + t.tpot_s * tokens;
    t.request_s = t.latency_s / c->load->requests;
    return t;
}

/* All that are in flight run at best; the time of a token is that of n which do. */
static sm_load_times closed_bound(load_steps *c, double most, double n) {
    double output = output_of(c);
    sm_load_times t = {.ttft_s = load_prefill_s(c, 1), .tpot_s = load_alone_s(c, n), .running = n};
    t.request_s = load_token_s(c, most) * output / most / c->n;
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* Sequences that decode and the time per token, of requests that wait `first` for their first token
 * (apart, and longer where prefill is the bottleneck). */
static void settle(load_steps *c, double in_flight, double most_running, double first,
                   sm_load_times *t) {
    double output = output_of(c), engines = c->n;
    double least = c->e->apart ? load_service_s(c) / c->prefill_n : 0;
    for (int i = 0; i < ROUNDS; i++) {
        t->tpot_s = load_token_s(c, t->running);
        t->request_s = fmax(t->tpot_s * output / t->running / engines, least);
        t->ttft_s = first;
        if (c->e->apart && t->request_s <= least) /* they wait for prefill */
            t->ttft_s = fmax(first, in_flight * engines * least - t->tpot_s * output);
        double share = t->tpot_s * output / (t->ttft_s + t->tpot_s * output);
        double next = fmax(1, fmin(in_flight * share, most_running));
        bool settled = fabs(next - t->running) <= SETTLED * t->running;
        t->running = i < 2 ? next : 0.5 * (t->running + next);
        if (settled) break;
    }
}

static void set_first(sm_load_times *t, const event_times *first) {
    t->ttft_s = first->mean_s;
    t->ttft_median_s = first->median_s;
    t->ttft_p90_s = first->p90_s;
    t->ttft_p99_s = first->p99_s;
}

/* So many requests of one engine in flight, simulated on steps of as many as decode where none
 * waits. */
static sm_load_times closed(load_steps *c, double in_flight, double most_running) {
    sm_load_times t = {.running = fmax(1, fmin(in_flight, most_running))};
    double alone = load_prefill_s(c, 1);
    if (c->lower) {
        settle(c, in_flight, most_running, fmax(alone, c->load->waited_s), &t);
        return closed_bound(c, fmax(1, fmin(in_flight, most_running)), t.running);
    }
    settle(c, in_flight, most_running, c->software->admission_s + alone, &t);
    event_times first = {0};
    load_closed_first(c, in_flight, most_running, &first);
    /* Who waits, waits for room, but before pools; of a benchmark that is told whole, its end
     * counts too. */
    bool full = t.running >= most_running && !c->e->apart && !(c->load->rounds >= 1);
    bool places = full && !(c->e->kv_tokens > 0); /* and not a cache */
    if (first.token_s > 0) t.tpot_s = first.token_s;
    double decoding_s = t.tpot_s * output_of(c);
    double running = in_flight * decoding_s / (first.steady_s + decoding_s);
    t.request_s = (places ? decoding_s / t.running : first.request_s) / c->n;
    if (!places) t.running = fmax(1, full ? fmin(running, most_running) : running);
    set_first(&t, &first);
    t.latency_s = t.ttft_s + t.tpot_s * (output_of(c) - 1);
    return t;
}

/* n = rate x t output, as long as an engine keeps up; of more than it can take first tokens are
 * those of nine tenths of that. */
static sm_load_times open(load_steps *c, double most_running) {
    static const double KEEPS_UP = 0.9;
    double rate = c->load->requests / c->n, output = output_of(c);
    sm_load_times t = {.ttft_s = load_prefill_s(c, 1), .running = 1};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        t.tpot_s = load_token_s(c, t.running);
        double next = fmax(1, fmin(most_running, rate * t.tpot_s * output));
        bool settled = fabs(next - t.running) <= SETTLED * t.running;
        t.running = 0.5 * (t.running + next);
        if (settled) break;
    }
    double busy = t.tpot_s * output / t.running;
    t.request_s = fmax(1 / rate, busy) / c->n;
    if (c->lower) {
        t.tpot_s = load_alone_s(c, t.running);
        t.ttft_s = fmax(t.ttft_s, c->load->waited_s);
    } else {
        double most = c->e->apart ? c->prefill_n / load_service_s(c) : INFINITY;
        if (t.running >= most_running && rate * t.tpot_s * output >= most_running)
            most = fmin(most, 1 / t.request_s);
        event_times first = {.mean_s = t.ttft_s};
        double taken = fmin(c->load->requests, KEEPS_UP * most);
        load_open_first(c, taken, t.running, most_running, &first);
        if (taken >= c->load->requests && first.token_s > 0) {
            t.tpot_s = first.token_s;
            t.tpot_p90_s = first.token_p90_s;
            t.running = fmin(most_running, rate * first.token_s * output); /* less than one, too */
        }
        set_first(&t, &first);
    }
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* As many as fit, one after the other. */
static sm_load_times queue(load_steps *c, double most_running) {
    sm_load_times t = {.ttft_s = load_prefill_s(c, 1), .running = fmax(1, most_running)};
    if (c->load->no_decode) {
        const sm_serve *s = c->e->prefill;
        double budget = load_budget(c->software, &c->e->prefill_plan, s);
        double each = fmax(1, budget / s->job.prompt);
        double prompts = each * load_groups(&c->e->prefill_plan, s);
        t.request_s = load_prefill_s(c, prompts) / prompts / c->prefill_n;
        t.latency_s = t.ttft_s;
        return t;
    }
    t.tpot_s = load_token_s(c, t.running);
    t.request_s = t.tpot_s * output_of(c) / t.running / c->n;
    if (c->lower) t.tpot_s = load_alone_s(c, 1); /* how many run is not stated */
    t.latency_s = t.ttft_s + t.tpot_s * (output_of(c) - 1);
    return t;
}

sm_status sm_serve_load(const sm_engines *engines, const sm_load *load, bool lower,
                        sm_load_times *times, sm_error *err) {
    bool all_there = load->kind == SM_LOAD_OPEN || load->kind == SM_LOAD_QUEUE;
    load_steps c = load_steps_of(engines, load, all_there ? INFINITY : load->requests);
    double copies = c.n / engines->n, most = engines->most_running;
    if (lower) most = fmax(engines->most_possible, most);
    most /= copies;
    c.lower = lower;
    switch (load->kind) {
    case SM_LOAD_BATCH: *times = of_batch(&c, most); break;
    case SM_LOAD_CLOSED: *times = closed(&c, load->requests / c.n, most); break;
    case SM_LOAD_OPEN: *times = open(&c, most); break;
    case SM_LOAD_QUEUE: *times = queue(&c, most); break;
    }
    times->running *= copies;
    bool simulated = load->kind == SM_LOAD_CLOSED || load->kind == SM_LOAD_OPEN;
    if (!simulated || lower)
        times->ttft_median_s = times->ttft_p90_s = times->ttft_p99_s = times->ttft_s;
    if (!(times->tpot_p90_s > 0)) times->tpot_p90_s = times->tpot_s;
    if (!c.failed) return SM_OK;
    if (err) *err = c.err;
    return c.err.status;
}

/* Continuous batching in closed form. Every token of n sequences takes t(n) (load_steps.c);
 * n/output requests end and begin for each token, so that a request takes  R = t output / n of an
 * engine's time n = in flight x t output / (first + t output)            (Little's law) with first
 * = the wait and the prefill before the first token. */
#include <math.h>

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
    double all = c->load->requests / c->e->n;
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
    t.request_s = load_token_s(c, most) * output / most / c->e->n;
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* So many requests of one engine in flight. */
static sm_load_times closed(load_steps *c, double in_flight, double most_running) {
    double output = output_of(c), n = fmax(1, fmin(in_flight, most_running));
    double engines = c->e->n, prefill = load_prefill_s(c, 1);
    double service = load_service_s(c), least = c->e->apart ? service / c->e->prefill_n : 0;
    sm_load_times t = {.ttft_s = prefill};
    for (int i = 0; i < ROUNDS; i++) {
        t.tpot_s = load_token_s(c, n);
        double request = fmax(t.tpot_s * output / n / engines, least);
        t.ttft_s = load_first_s(c, prefill, service, request, in_flight);
        if (c->e->apart && request <= least) /* prefill is the bottleneck: they wait for it */
            t.ttft_s = fmax(t.ttft_s, in_flight * engines * least - t.tpot_s * output);
        double share = t.tpot_s * output / (t.ttft_s + t.tpot_s * output);
        double next = fmax(1, fmin(in_flight * share, most_running));
        bool settled = fabs(next - n) <= SETTLED * n;
        n = i < 2 ? next : 0.5 * (n + next);
        if (settled) break;
    }
    if (c->lower) return closed_bound(c, fmax(1, fmin(in_flight, most_running)), n);
    t.running = n;
    t.request_s = fmax(t.tpot_s * output / n / engines, least);
    load_prompt prompt = {.alone_s = prefill, .added_s = service};
    double decode = load_decode_s(c, n, &prompt.yield);
    if (!c->e->apart) prompt.added_s = load_added_s(c, n, decode, prompt.yield);
    first_token first = {t.ttft_s, t.ttft_s, t.ttft_s};
    load_closed_first(c, in_flight, most_running, &prompt, &first);
    t.ttft_s = first.mean_s;
    t.ttft_median_s = first.median_s;
    t.ttft_p99_s = first.p99_s;
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* n = rate x t output, as long as an engine keeps up. */
static sm_load_times open(load_steps *c, double most_running) {
    double rate = c->load->requests / c->e->n, output = output_of(c);
    double prefill = load_prefill_s(c, 1);
    sm_load_times t = {.running = 1};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        t.tpot_s = load_token_s(c, t.running);
        double next = fmax(1, fmin(most_running, rate * t.tpot_s * output));
        bool settled = fabs(next - t.running) <= SETTLED * t.running;
        t.running = 0.5 * (t.running + next);
        if (settled) break;
    }
    double busy = t.tpot_s * output / t.running;
    t.request_s = fmax(1 / rate, busy) / c->e->n;
    t.ttft_s = load_first_s(c, prefill, load_service_s(c), t.request_s, 1);
    if (c->lower) t.tpot_s = load_alone_s(c, t.running);
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* As many as fit, one after the other. */
static sm_load_times queue(load_steps *c, double most_running) {
    sm_load_times t = {.ttft_s = load_prefill_s(c, 1), .running = fmax(1, most_running)};
    if (c->load->no_decode) {
        const sm_serve *s = c->e->prefill;
        double each = fmax(1, c->software->budget_tokens / s->job.prompt);
        double prompts = each * load_groups(s, &c->e->prefill_plan);
        t.request_s = load_prefill_s(c, prompts) / prompts / c->e->prefill_n;
        t.latency_s = t.ttft_s;
        return t;
    }
    t.tpot_s = load_token_s(c, t.running);
    t.request_s = t.tpot_s * output_of(c) / t.running / c->e->n;
    if (c->lower) t.tpot_s = load_alone_s(c, 1); /* how many run is not stated */
    t.latency_s = t.ttft_s + t.tpot_s * (output_of(c) - 1);
    return t;
}

sm_status sm_serve_load(const sm_engines *engines, const sm_load *load, bool lower,
                        sm_load_times *times, sm_error *err) {
    const sm_software *software = engines->decode->job.software;
    load_steps c = {.e = engines, .load = load, .software = software, .lower = lower};
    double most =
        lower ? fmax(engines->most_possible, engines->most_running) : engines->most_running;
    switch (load->kind) {
    case SM_LOAD_BATCH: *times = of_batch(&c, most); break;
    case SM_LOAD_CLOSED: *times = closed(&c, load->requests / engines->n, most); break;
    case SM_LOAD_OPEN: *times = open(&c, most); break;
    case SM_LOAD_QUEUE: *times = queue(&c, most); break;
    }
    if (load->kind != SM_LOAD_CLOSED || lower)
        times->ttft_median_s = times->ttft_p99_s = times->ttft_s;
    if (!c.failed) return SM_OK;
    if (err) *err = c.err;
    return c.err.status;
}

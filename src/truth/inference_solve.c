/* Continuous batching in closed form. With n sequences in decode a step takes D(n) and yields y
 * tokens of each; every request adds S(n) of prefill to the steps. In steady state n/output
 * requests end and begin for each token, so that
 *     time per token   t = D(n)/y + S(n) n / output            (n of one engine)
 *     a request takes  R = t output / n                        of an engine's time
 *     n = in flight x t output / (first + t output)            (Little's law)
 * with first = the wait and the prefill before the first token. */
#include <math.h>

#include "inference_parts.h"

enum { ROUNDS = 12 };
static const double SETTLED = 1e-3;

static double of_engines(const inference_clock *c) { return c->layout->decode.engines; }

/* Between two tokens when no prefill comes between: an engine may take its prompts in waves, so
 * this is the bound; what prefill costs shows in the time per request all the same. */
static double alone_s(inference_clock *c, double n) {
    return inference_decode_s(c, n) / inference_yield(c);
}

/* t at n sequences. */
static double token_s(inference_clock *c, double n) {
    double t = alone_s(c, n);
    if (!c->load->prefill || c->layout->apart) return t;
    return t + inference_added_s(c, n) * n / c->load->output;
}

/* What the prefill of one prompt takes of an engine whose ranks have a prompt each. */
static double service_s(inference_clock *c) {
    const sm_plan *plan = &c->layout->prefill.plan;
    double ranks = (double)plan->data * plan->expert;
    return inference_prefill_s(c, ranks) / ranks;
}

/* What a request waits before its own prefill: until it is admitted, for those that came meanwhile
 * (M/D/1) and, where a measurement begins with all requests at once, for half of them: of ten
 * rounds one in ten finds them there. request: seconds of the system between two requests. */
static double first_s(inference_clock *c, double prefill, double request, double in_flight) {
    double engines = c->layout->prefill.engines, service = service_s(c);
    double busy = fmin(0.9, service / (request * engines));
    double others = fmax(0, in_flight * of_engines(c) / engines - 1);
    if (c->lower) return fmax(prefill, c->load->waited_s);
    if (!isfinite(busy)) busy = 0;
    double meanwhile = 0.5 * busy / (1 - busy) * service;
    return c->engine->admission_s + prefill + meanwhile + 0.5 * c->burst * others * service;
}

/* What does not fit at once runs in turns: each token takes as much longer. */
static inference_times together(inference_clock *c) {
    double all = c->load->requests / of_engines(c);
    double running = fmin(all, fmax(1, c->most_running));
    inference_times t = {0, 0, 0, 0};
    if (c->load->prefill) t.ttft_s = inference_prefill_s(c, all);
    if (c->load->decode) t.tpot_s = alone_s(c, running) * all / running;
    double tokens = c->load->prefill ? c->load->output - 1 : c->load->output;
    t.latency_s = t.ttft_s + t.tpot_s * tokens;
    t.request_s = t.latency_s / c->load->requests;
    return t;
}

/* All that are in flight run at best; the time of a token is that of n which do. */
static inference_times bound_in_turn(inference_clock *c, double most, double n) {
    double output = c->load->output;
    inference_times t = {.ttft_s = inference_prefill_s(c, 1), .tpot_s = alone_s(c, n)};
    t.request_s = token_s(c, most) * output / most / of_engines(c);
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* Requests of one engine that are in decode when so many are in flight. */
static inference_times in_turn(inference_clock *c, double in_flight) {
    double output = c->load->output, n = fmax(1, fmin(in_flight, c->most_running));
    double prefill = inference_prefill_s(c, 1);
    double least = service_s(c) / c->layout->prefill.engines;
    inference_times t = {.ttft_s = prefill};
    for (int i = 0; i < ROUNDS; i++) {
        t.tpot_s = token_s(c, n);
        double request = t.tpot_s * output / n / of_engines(c);
        if (c->layout->apart) request = fmax(request, least);
        t.ttft_s = first_s(c, prefill, request, in_flight);
        if (c->layout->apart && request <= least) /* prefill is the bottleneck: they wait for it */
            t.ttft_s = fmax(t.ttft_s, in_flight * of_engines(c) * least - t.tpot_s * output);
        double share = t.tpot_s * output / (t.ttft_s + t.tpot_s * output);
        double next = fmax(1, fmin(in_flight * share, c->most_running));
        bool settled = fabs(next - n) <= SETTLED * n;
        n = i < 2 ? next : 0.5 * (n + next);
        if (settled) break;
    }
    t.request_s = t.tpot_s * output / n / of_engines(c);
    if (c->layout->apart) t.request_s = fmax(t.request_s, least);
    if (c->lower) return bound_in_turn(c, fmax(1, fmin(in_flight, c->most_running)), n);
    /* those that wait for room, by Little's law */
    double waiting = in_flight * of_engines(c) * t.request_s - t.tpot_s * output;
    if (in_flight > c->most_running) t.ttft_s = fmax(t.ttft_s, waiting);
    t.latency_s = t.ttft_s + t.tpot_s * (output - 1);
    return t;
}

/* n = rate x t output, as long as an engine keeps up. */
static inference_times at_rate(inference_clock *c) {
    double rate = c->load->requests / of_engines(c), n = 1;
    double prefill = inference_prefill_s(c, 1);
    inference_times t = {0, 0, 0, 0};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        t.tpot_s = token_s(c, n);
        double next = fmax(1, fmin(c->most_running, rate * t.tpot_s * c->load->output));
        bool settled = fabs(next - n) <= SETTLED * n;
        n = 0.5 * (n + next);
        if (settled) break;
    }
    double busy = t.tpot_s * c->load->output / n;
    t.request_s = fmax(1 / rate, busy) / of_engines(c);
    t.ttft_s = first_s(c, prefill, t.request_s, 1);
    if (c->lower) t.tpot_s = alone_s(c, n);
    t.latency_s = t.ttft_s + t.tpot_s * (c->load->output - 1);
    return t;
}

/* As many as fit, one after the other. */
static inference_times all(inference_clock *c) {
    double n = fmax(1, c->most_running);
    inference_times t = {.ttft_s = inference_prefill_s(c, 1)};
    if (!c->load->decode) {
        double prompts = fmax(1, c->engine->budget_tokens / c->load->prompt) * inference_ranks(c);
        t.request_s = inference_prefill_s(c, prompts) / prompts / c->layout->prefill.engines;
        t.latency_s = t.ttft_s;
        return t;
    }
    t.tpot_s = token_s(c, n);
    t.request_s = t.tpot_s * c->load->output / n / of_engines(c);
    if (c->lower) t.tpot_s = alone_s(c, 1); /* how many run is not stated */
    t.latency_s = t.ttft_s + t.tpot_s * (c->load->output - 1);
    return t;
}

inference_times inference_solve(inference_clock *c) {
    switch (c->load->arrival) {
    case ARRIVE_TOGETHER: return together(c);
    case ARRIVE_IN_TURN: return in_turn(c, c->load->requests / of_engines(c));
    case ARRIVE_AT_RATE: return at_rate(c);
    default: return all(c);
    }
}

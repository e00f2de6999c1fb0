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

static double of_engines(const inference_clock *c) { return c->layout->decode.engines; }

/* t at n sequences. */
static double token_s(inference_clock *c, double n) {
    double t = inference_decode_s(c, n) / inference_yield(c);
    if (!c->load->prefill || c->layout->apart) return t;
    return t + inference_added_s(c, n) * n / c->load->output;
}

/* The wait before a prefill: half a step, and those that come meanwhile (M/D/1). */
static double first_s(inference_clock *c, double prefill, double request) {
    double servers = c->layout->prefill.engines;
    double busy = fmin(0.95, prefill / (request * servers));
    if (c->lower || !isfinite(busy)) return prefill;
    return prefill + 0.5 * busy / (1 - busy) * prefill;
}

/* What does not fit at once runs in turns: each token takes as much longer. */
static inference_times together(inference_clock *c) {
    double all = c->load->requests / of_engines(c);
    double running = fmin(all, fmax(1, c->most_running));
    inference_times t = {0, 0, 0, 0};
    if (c->load->prefill) t.ttft_s = inference_prefill_s(c, all);
    if (c->load->decode) t.tpot_s = token_s(c, running) * all / running;
    if (c->load->decode && c->load->prefill) /* not interrupted by others' prefill */
        t.tpot_s = inference_decode_s(c, running) / inference_yield(c) * all / running;
    double tokens = c->load->prefill ? c->load->output - 1 : c->load->output;
    t.latency_s = t.ttft_s + t.tpot_s * tokens;
    t.request_s = t.latency_s / c->load->requests;
    return t;
}

/* Requests of one engine that are in decode when so many are in flight. */
static inference_times in_turn(inference_clock *c, double in_flight) {
    double output = c->load->output, n = fmax(1, fmin(in_flight, c->most_running));
    double prefill = inference_prefill_s(c, 1);
    inference_times t = {.ttft_s = prefill};
    for (int i = 0; i < ROUNDS; i++) {
        t.tpot_s = token_s(c, n);
        double request = t.tpot_s * output / n / of_engines(c);
        if (c->layout->apart) request = fmax(request, prefill / c->layout->prefill.engines);
        t.ttft_s = first_s(c, prefill, request);
        double share = t.tpot_s * output / (t.ttft_s + t.tpot_s * output);
        double next = fmax(1, fmin(in_flight * share, c->most_running));
        n = 0.5 * (n + next);
    }
    t.request_s = t.tpot_s * output / n / of_engines(c);
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
        n = 0.5 * (n + fmax(1, fmin(c->most_running, rate * t.tpot_s * c->load->output)));
    }
    double busy = t.tpot_s * c->load->output / n;
    t.request_s = fmax(1 / rate, busy) / of_engines(c);
    t.ttft_s = first_s(c, prefill, t.request_s);
    t.latency_s = t.ttft_s + t.tpot_s * (c->load->output - 1);
    return t;
}

/* As many as fit, one after the other. */
static inference_times all(inference_clock *c) {
    double n = fmax(1, c->most_running);
    inference_times t = {.ttft_s = inference_prefill_s(c, 1)};
    if (!c->load->decode) {
        double prompts = fmax(1, c->engine->budget / c->load->prompt);
        t.request_s = inference_prefill_s(c, prompts) / prompts / c->layout->prefill.engines;
        t.latency_s = t.ttft_s;
        return t;
    }
    t.tpot_s = token_s(c, n);
    t.request_s = t.tpot_s * c->load->output / n / of_engines(c);
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

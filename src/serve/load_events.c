/* Loads by events: what a request waits for is no sum of means, as prompts come in bunches and
 * share their steps. The engine's own simulation (simulate.h) takes a few requests of
 * each client of a closed loop, or some thousand that come at a rate, in steps that the closed form
 * has priced: D(n) between a few n, and what a prompt takes beside others. In a closed loop lengths
 * are drawn as benchmark tools draw them; at a rate, as `simulate` has them, all are alike. */
#include <math.h>
#include <stdlib.h>

#include "load_steps.h"
#include "scalemodel/search.h"
#include "scalemodel/simulate.h"

enum {
    PARTS = 8,          /* of the sequences that decode at most, where D is priced */
    OCTAVES = 12,       /* of chunks of prompts in a step */
    MOST_CLIENTS = 256, /* of a group of chips: beyond that each stands for several equal ones */
    ROUNDS = 10,        /* requests of each; the first are the burst, those that follow alike, */
    MOST_ROUNDS = 40,   /* of a benchmark that tells how many */
    LEAST_ALIKE = 256,  /* and so many at least, of as many benchmarks as that takes */
    COUNTED = 4000,     /* at a rate */
    MOST_FIRST = 8000,  /* until empty engines are as full as they get: those do not count */
    MOST_ENGINES = 64,  /* at a rate: of more these have their share of it */
    PLENTY_RUN = 1 << 20
};
static const double PLENTY_KV = 1e12; /* tokens: who runs at once is known already */

typedef struct events {
    load_steps *c;
    load_prompt prompt;
    double tokens;         /* of a prompt that are new */
    double chunk, longest; /* of them, what a step takes, of long ones at most */
    double each;           /* requests that a client stands for */
    double in_flight;
    double clients; /* of all engines; 0: they come at a rate */
    double rate;    /* a second, over so many engines */
    double engines, prefill_engines;
    double first, counted; /* requests: those that do not count, or are the burst, and the others */
    int runs, run;         /* of equal loads, drawn anew; the one of now */
    double most; /* sequences that an engine may decode at once, or as many as there are */
    double room; /* those that it has room for, in clients */
    double decode_s[PARTS + 1];
    double beside_s[OCTAVES + 1]; /* of 1, 2, 4 .. chunks in a step */
    double *first_s;              /* of all runs: of the first requests, then of the others */
    double seconds;               /* from the first request to the last token: a sum */
    double token_s;               /* of those that count, in a closed loop of all: a sum */
} events;

/* Of so many sequences, on the line between two that are priced. */
static double decode_s(events *e, double n) {
    double at = smaller(n / e->most, 1) * PARTS, tokens;
    int low = (int)smaller(at, PARTS - 1);
    for (int i = low; i <= low + 1; i++)
        if (e->decode_s[i] <= 0)
            e->decode_s[i] = load_decode_s(e->c, larger(1, e->most * i / PARTS), &tokens);
    return e->decode_s[low] + (at - low) * (e->decode_s[low + 1] - e->decode_s[low]);
}

/* The same of what so many chunks add. */
static double beside_s(events *e, double chunks) {
    int low = chunks > 1 ? (int)smaller(log2(chunks), OCTAVES - 1) : 0, high = low + (chunks > 1);
    for (int i = low; i <= high; i++)
        if (e->beside_s[i] <= 0) e->beside_s[i] = load_beside_s(e->c, &e->prompt, ldexp(1, i));
    if (chunks <= 1) return chunks * e->beside_s[0];
    double share = chunks / ldexp(1, low) - 1;
    return e->beside_s[low] + share * (e->beside_s[high] - e->beside_s[low]);
}

/* Prompts are as long as twice what their tokens attend to, or more than a step takes of one: two
 * of half the length are not one of all, where each is on a group of chips of its own. A step with
 * a prompt takes as long as the prompt alone at least. */
static double step_s(void *context, double n, double cached, double prefill, double attended) {
    events *e = context;
    (void)cached;
    double decode = n > 0 ? decode_s(e, n * e->each) : 0;
    if (prefill <= 0) return decode;
    double length = smaller(smaller(prefill, e->longest), larger(1, 2 * attended));
    double beside = beside_s(e, prefill / length * e->each) * length / e->chunk;
    return larger(e->prompt.alone_s * smaller(1, prefill * e->each / e->tokens), decode + beside);
}

static void served(void *context, const sm_request_served *r) {
    events *e = context;
    double number = (double)r->number, at = e->run * e->first + number;
    if (number >= e->first) at = e->runs * e->first + e->run * e->counted + number - e->first;
    e->first_s[(size_t)at] = r->first_token_s - r->arrival_s;
    if (r->output > 1 && (e->clients > 0 || (double)r->number >= e->first))
        e->token_s += (r->end_s - r->first_token_s) / (r->output - 1);
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

/* Of the burst its share of a benchmark that tells how many requests it has, else that of the
 * software's benchmarks; at a rate there is none. */
static void read_first(events *e, event_times *out) {
    size_t first = (size_t)(e->runs * e->first), others = (size_t)(e->runs * e->counted);
    size_t n = others > 0 ? others : first;
    double *counted = e->first_s + (others > 0 ? first : 0);
    out->mean_s = out->steady_s = mean_of(counted, n);
    if (e->clients > 0) {
        double told = (double)first / (double)(first + others);
        double share = e->c->load->rounds >= 1 ? told : e->c->software->burst;
        out->mean_s += share * (mean_of(e->first_s, first) - out->mean_s);
    }
    sm_sort_numbers(counted, n);
    out->median_s = counted[n / 2];
    out->p99_s = counted[(size_t)(0.99 * (double)n)];
    double all = e->runs * (e->clients > 0 ? e->first + e->counted : e->counted);
    out->token_s = e->token_s / all;
    out->request_s = e->clients > 0 ? e->seconds / all * e->clients / e->in_flight : 0;
}

/* Budgets and batches are of the requests that a client stands for. */
static void set_policy(const events *e, const sm_engine *engine, sm_simulation *o) {
    const sm_engines *engines = e->c->e;
    const sm_software *software = e->c->software;
    sm_simulation_defaults(o);
    sm_simulation_follow(o, software, engines->apart);
    o->engine = o->prefill_engine = engine;
    o->replicas = (int)e->engines;
    o->prefill_replicas = (int)e->prefill_engines;
    o->most_batch = e->room;
    double budget = software->budget_tokens * load_groups(&engines->prefill_plan, engines->prefill);
    double least = e->clients > 0 ? o->most_batch + 1 : 1;
    o->prefill_tokens = larger(least, floor(budget / e->each));
    o->chunk_tokens = larger(o->most_batch + 1, o->prefill_tokens);
    double gather = sm_simulation_gather(load_groups(&engines->plan, engines->decode));
    o->gather = larger(1, gather / e->each);
    o->concurrency = e->clients;
    o->sample_s = HUGE_VAL; /* no series is asked for */
    o->seed = (uint64_t)e->run;
}

static sm_status run(events *e, sm_error *err) {
    double output = e->c->e->decode->job.output,
           longest = e->clients > 0 ? 2 / (1 + SM_LOAD_SHORTEST) : 1;
    const sm_engine engine = {.context = e,
                              .step_s = step_s,
                              .kv_tokens = PLENTY_KV,
                              .kv_bytes_per_token = 1,
                              .tokens_per_step = e->prompt.yield,
                              .chips = 1};
    sm_synthetic draw = {.kind = SM_ARRIVALS_POISSON,
                         .rate_per_s = e->rate,
                         .requests = e->first + e->counted,
                         .lengths = {.prompt = larger(1, e->tokens * longest),
                                     .output = larger(1, output * longest)},
                         .least_share = e->clients > 0 ? SM_LOAD_SHORTEST : 0,
                         .seed = (uint64_t)e->run + 1};
    sm_arrivals arrivals = sm_synthetic_arrivals(&draw);
    const sm_watch watch = {.context = e, .served = served};
    sm_simulation o;
    set_policy(e, &engine, &o);
    sm_simulated *out = sm_malloc(sizeof *out);
    if (!out) return sm_fail_memory(err);
    sm_status status = sm_simulate(&o, &arrivals, &watch, out, err);
    e->seconds += out->seconds;
    sm_free(out);
    return status;
}

/* A prompt keeps one of the stages of a prefill worker busy at a time: the next comes as soon, and
 * its first token after all of them. */
static void simulate(events *e, event_times *out) {
    load_steps *c = e->c;
    double stages = c->e->apart ? c->e->prefill_plan.pipeline : 1;
    double later_s = e->prompt.alone_s * (1 - 1 / stages);
    if (c->failed) return;
    e->prompt.alone_s /= stages;
    size_t all = (size_t)(e->runs * (e->first + e->counted));
    e->first_s = sm_malloc(all * sizeof *e->first_s);
    sm_status status = e->first_s ? SM_OK : sm_fail_memory(&c->err);
    for (; !status && e->run < e->runs; e->run++) status = run(e, &c->err);
    c->failed = c->failed || status != SM_OK;
    for (size_t i = 0; !c->failed && i < all; i++) e->first_s[i] += later_s;
    if (!c->failed) read_first(e, out);
    sm_free(e->first_s);
}

void load_closed_first(load_steps *c, double in_flight, double most_running,
                       const load_prompt *prompt, event_times *out) {
    const sm_serve_job *job = &c->e->decode->job;
    double all = c->e->apart ? in_flight * c->n : in_flight;
    events e = {.c = c,
                .prompt = *prompt,
                .tokens = job->prompt - job->prefix,
                .chunk = load_chunk(c),
                .longest = load_most_chunk(c),
                .in_flight = all,
                .each = larger(1, all / MOST_CLIENTS / load_groups(&c->e->plan, c->e->decode)),
                .rate = 1, /* not looked at */
                .engines = c->e->apart ? c->n : 1,
                .runs = 1,
                .prefill_engines = c->prefill_n};
    e.clients = larger(1, floor(all / e.each + 0.5));
    e.first = e.clients;
    double rounds = c->load->rounds >= 1 ? c->load->rounds : ROUNDS;
    e.counted = floor(e.clients * (smaller(rounds, MOST_ROUNDS) - 1) + 0.5);
    e.runs = (int)ceil(LEAST_ALIKE / (e.clients * (ROUNDS - 1)));
    e.room = larger(1, smaller(e.clients, floor(most_running / e.each)));
    e.most = larger(1, smaller(larger(in_flight, e.room * e.each), most_running));
    simulate(&e, out);
}

void load_open_first(load_steps *c, double rate, double running, double most_running,
                     const load_prompt *prompt, event_times *out) {
    enum { FULLER = 4, ROOM = 16 }; /* than on average */
    const sm_serve_job *job = &c->e->decode->job;
    events e = {.c = c,
                .prompt = *prompt,
                .tokens = job->prompt - job->prefix,
                .chunk = load_chunk(c),
                .longest = load_most_chunk(c),
                .each = 1,
                .runs = 1,
                .counted = COUNTED,
                .room = larger(1, floor(smaller(most_running, FULLER * running + ROOM)))};
    /* Of a pool that prefills each worker has its share; those that decode let nobody wait. */
    double n = c->e->apart ? ceil(c->prefill_n) : c->n;
    double most = c->e->apart ? MOST_ENGINES : larger(1, floor(MOST_FIRST / (2 * running + 1)));
    double engines = smaller(n, smaller(most, MOST_ENGINES));
    e.engines = c->e->apart ? larger(1, floor(c->n * engines / n + 0.5)) : engines;
    e.prefill_engines = c->e->apart ? engines : 1;
    e.rate = rate * engines / (c->e->apart ? c->prefill_n : c->n);
    e.first =
        c->e->apart ? 0.25 * MOST_FIRST : smaller(MOST_FIRST, floor(2 * running * engines) + 1);
    if (c->e->apart) e.room = PLENTY_RUN;
    e.most = smaller(e.room, FULLER * running + ROOM);
    simulate(&e, out);
}

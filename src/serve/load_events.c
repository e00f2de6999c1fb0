/* The first token of a closed loop, by events: what a request waits for it is no sum of means, as
 * prompts come in bunches and share their steps. The engine's own simulation (simulate.h) takes a
 * few requests of each client, in steps that the closed form has priced: D(n) between a few n, and
 * what a prompt takes beside others. Lengths are drawn as benchmark tools draw them. */
#include <math.h>
#include <stdlib.h>

#include "load_steps.h"
#include "scalemodel/simulate.h"

enum {
    PARTS = 8,          /* of the sequences that decode at most, where D is priced */
    MOST_CLIENTS = 128, /* beyond that each stands for several equal ones */
    ROUNDS = 6          /* requests of each; the first are the burst, those that follow alike */
};
static const double SHORTEST = 0.8;   /* share of the longest prompt and output */
static const double PLENTY_KV = 1e12; /* tokens: who runs at once is known already */

typedef struct events {
    load_steps *c;
    const load_prompt *prompt;
    double tokens;  /* of a prompt that are new */
    double each;    /* requests that a client stands for */
    double clients; /* of all engines */
    double most;    /* sequences that an engine may decode at once, or as many as there are */
    double room;    /* those that it has room for, in clients */
    double decode_s[PARTS + 1];
    double *first_s; /* by request */
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

/* A step with a prompt takes as long as the prompt alone at least. */
static double step_s(void *context, double n, double cached, double prefill, double attended) {
    events *e = context;
    double prompts = prefill * e->each / e->tokens;
    (void)cached, (void)attended;
    double decode = n > 0 ? decode_s(e, n * e->each) : 0;
    if (prefill <= 0) return decode;
    return larger(e->prompt->alone_s * smaller(1, prompts), decode + e->prompt->added_s * prompts);
}

static void served(void *context, const sm_request_served *r) {
    events *e = context;
    e->first_s[r->number] = r->first_token_s - r->arrival_s;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

/* Of the burst as large a share as the software's benchmarks have of it. */
static void read_first(events *e, first_token *out) {
    size_t burst = (size_t)e->clients, n = burst * (ROUNDS - 1);
    double *later = e->first_s + burst, later_s = mean_of(later, n);
    double share = e->c->software->burst;
    out->mean_s = later_s + share * (mean_of(e->first_s, burst) - later_s);
    qsort(later, n, sizeof *later, by_size);
    out->median_s = later[n / 2];
    out->p99_s = later[(size_t)(0.99 * (double)n)];
}

/* Budgets and batches are of the requests that a client stands for. */
static void set_policy(const events *e, const sm_engine *engine, sm_simulation *o) {
    const sm_engines *engines = e->c->e;
    const sm_software *software = e->c->software;
    sm_simulation_defaults(o);
    sm_simulation_follow(o, software);
    if (engines->apart) o->policy = SM_POLICY_DISAGGREGATED;
    o->engine = o->prefill_engine = engine;
    o->replicas = engines->apart ? (int)engines->n : 1;
    o->prefill_replicas = (int)engines->prefill_n;
    o->most_batch = e->room;
    double budget = software->budget_tokens * load_groups(engines->prefill, &engines->prefill_plan);
    o->chunk_tokens = o->prefill_tokens = larger(o->most_batch + 1, floor(budget / e->each));
    o->concurrency = e->clients;
}

static sm_status run(events *e, sm_error *err) {
    double longest = 2 / (1 + SHORTEST), requests = e->clients * ROUNDS;
    const sm_engine engine = {.context = e,
                              .step_s = step_s,
                              .kv_tokens = PLENTY_KV,
                              .kv_bytes_per_token = 1,
                              .tokens_per_step = e->prompt->yield,
                              .chips = 1};
    sm_synthetic draw = {.kind = SM_ARRIVALS_UNIFORM,
                         .rate_per_s = 1,
                         .requests = requests,
                         .lengths = {.prompt = larger(1, e->tokens * longest),
                                     .output = larger(1, e->c->e->decode->job.output * longest)},
                         .least_share = SHORTEST,
                         .seed = 1};
    sm_arrivals arrivals = sm_synthetic_arrivals(&draw);
    const sm_watch watch = {.context = e, .served = served};
    sm_simulation o;
    set_policy(e, &engine, &o);
    sm_simulated *out = sm_malloc(sizeof *out);
    if (!out) return sm_fail_memory(err);
    sm_status status = sm_simulate(&o, &arrivals, &watch, out, err);
    sm_free(out);
    return status;
}

void load_closed_first(load_steps *c, double in_flight, double most_running,
                       const load_prompt *prompt, first_token *out) {
    const sm_serve_job *job = &c->e->decode->job;
    double all = c->e->apart ? in_flight * c->e->n : in_flight;
    events e = {.c = c,
                .prompt = prompt,
                .tokens = job->prompt - job->prefix,
                .each = larger(1, all / MOST_CLIENTS)};
    e.clients = larger(1, floor(all / e.each + 0.5));
    e.room = larger(1, smaller(e.clients, floor(most_running / e.each)));
    e.most = larger(1, smaller(larger(in_flight, e.room * e.each), most_running));
    if (c->failed) return;
    e.first_s = sm_malloc((size_t)e.clients * ROUNDS * sizeof *e.first_s);
    sm_status status = e.first_s ? run(&e, &c->err) : sm_fail_memory(&c->err);
    if (!c->failed) c->failed = status != SM_OK;
    if (!c->failed) read_first(&e, out);
    sm_free(e.first_s);
}

/* Loads by events: what a request waits for is no sum of means, as prompts come in bunches and
 * share their steps. The engine's own simulation (simulate.h) takes a few requests of
 * each client of a closed loop, or some thousand that come at a rate, in the steps that `simulate`
 * has of the same plan. In a closed loop lengths are drawn as benchmark tools draw them; at a rate,
 * as `simulate` has them, all are alike. */

#include "load_steps.h"
#include "scalemodel/search.h"
#include "scalemodel/simulate.h"

enum {
    MOST_CLIENTS = 256, /* of a group of chips: beyond that each stands for several equal ones */
    MOST_APART = 1024,  /* of a benchmark, in which who comes at once shares a step */
    MOST_ROUNDS = 40,   /* of a benchmark that tells how many */
    LEAST_ALIKE = 256,  /* that follow the burst, of as many benchmarks as that takes */
    MOST_COPIES = 8,    /* engines of a closed loop: more are as these */
    COUNTED = 4000,     /* at a rate */
    MOST_FIRST = 8000,  /* until empty engines are as full as they get: those do not count */
    MOST_ENGINES = 64,  /* at a rate: of more these have their share of it */
    PLENTY_RUN = 1 << 20
};
/* So many of those simulated keep to a limit, so that of others nine in ten do. */
static const double ROUNDING = 1e-9, NINE_IN_TEN = 0.9, IN_TIME = 0.93;
static const double PLENTY_KV = 1e12; /* tokens */

/* An engine of which each request stands for several, behind a prefix that all have cached. */
typedef struct side {
    sm_engine steps;
    double each, prefix;
} side;

typedef struct events {
    load_steps *c;
    double each; /* requests that a client stands for */
    double in_flight;
    double clients; /* of all engines; 0: they come at a rate */
    double rate;    /* a second, over so many engines */
    double engines, prefill_engines;
    double first, counted; /* requests: those that do not count, or are the burst, and the others */
    double behind, served; /* at a rate: that come behind them; of both, in this run */
    int runs, run;         /* of equal loads, drawn anew; the one of now, then how many were run */
    double room;           /* sequences that an engine decodes at most, in clients */
    double kv_tokens;      /* of its cache, in those of clients; plenty where room is known */
    double *first_s;       /* of all runs: of the first requests, then of the others */
    double *each_token_s;  /* at a rate, of those that count, as many as `tokens` */
    size_t tokens;
    double outputs; /* tokens of all requests */
    double end_s;   /* the last token of a run */
    double seconds; /* from the first request to that, in a closed loop: a sum */
    double token_s; /* of those that count, in a closed loop of all: a sum */
    sm_arrivals arrivals;
    double least_s;      /* of the mean first token in a closed loop, by those that were served */
    double most_token_s; /* that counts; 0: none */
    double late_first, late_tokens; /* at a rate, of those that count: later than the limits */
    bool late;                      /* that mean, or one in ten, is above the limit */
} events;

static double step_s(void *context, double n, double cached, double prefill, double attended) {
    const side *s = context;
    double sequences = n * s->each, each = n > 0 ? cached / n + s->prefix : 0;
    return s->steps.step_s(s->steps.context, sequences, sequences * each, prefill * s->each,
                           attended + s->prefix);
}

static double line_to(void *context, double each) {
    const side *s = context;
    return s->steps.line_to(s->steps.context, each + s->prefix) - s->prefix;
}

static double begin_s(void *context, double n) {
    const side *s = context;
    return s->steps.begin_s(s->steps.context, n * s->each);
}

static sm_status make_side(const events *e, sm_serve *serve, const sm_plan *plan, bool follows,
                           side *s, sm_engine *engine, sm_error *err) {
    *s = (side){.each = e->each, .prefix = serve->job.prefix};
    sm_status status = engine_steps(serve, plan, follows, &s->steps, err);
    *engine = s->steps;
    engine->context = s;
    engine->step_s = step_s;
    engine->begin_s = s->steps.begin_s ? begin_s : NULL;
    engine->line_to = line_to;
    engine->kv_tokens = e->kv_tokens;
    engine->kv_bytes_per_token = 1;
    return status;
}

static bool is_over(const events *e) { return e->served >= e->first + e->counted; }

/* One more at a rate, of which no more than so many may be later than a limit. */
static void note_late(events *e, double seconds, double most_s, double *late) {
    *late += most_s > 0 && seconds > most_s;
    e->late = e->late || *late >= e->counted - floor(IN_TIME * e->counted);
}

/* A simulation that is late ends here; none come where all that count are served. */
static int next_in_time(void *context, sm_request *request, sm_error *err) {
    events *e = context;
    if (is_over(e)) return 0;
    return e->late ? -1 : e->arrivals.next(e->arrivals.context, request, err);
}

static void served(void *context, const sm_request_served *r) {
    events *e = context;
    double number = (double)r->number, at = e->run * e->first + number;
    if (number >= e->first + e->counted) return; /* they keep the engines full */
    e->served += 1;
    if (number >= e->first) at = e->runs * e->first + e->run * e->counted + number - e->first;
    e->first_s[(size_t)at] = r->first_token_s - r->arrival_s;
    e->outputs += r->output;
    e->end_s = r->end_s;
    if (e->clients > 0) {
        /* above the limit with the first tokens of some it stays so with those of all */
        e->least_s += e->first_s[(size_t)at] / (e->runs * (e->first + e->counted));
        e->late = e->c->late_s > 0 && e->least_s > e->c->late_s * (1 + ROUNDING);
    } else if (number >= e->first)
        note_late(e, e->first_s[(size_t)at], e->c->load->most_ttft_s, &e->late_first);
    if (!(r->output > 1 && (e->clients > 0 || (double)r->number >= e->first))) return;
    double token_s = (r->end_s - r->first_token_s) / (r->output - 1);
    e->token_s += token_s;
    if (e->clients > 0) return;
    e->each_token_s[e->tokens++] = token_s;
    note_late(e, token_s, e->most_token_s, &e->late_tokens);
}

/* The number that such a share of them is below. */
static double at_share(double *x, size_t n, double share) {
    return sm_select_number(x, n, (size_t)(share * (double)n));
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static void read_first(events *e, event_times *out) {
    size_t first = (size_t)(e->runs * e->first), others = (size_t)(e->run * e->counted);
    size_t n = others > 0 ? others : first;
    double *counted = e->first_s + (others > 0 ? first : 0);
    out->mean_s = out->steady_s = mean_of(counted, n);
    if (e->clients > 0) out->mean_s = mean_of(e->first_s, first + others);
    out->median_s = at_share(counted, n, 0.5);
    out->p90_s = at_share(counted, n, NINE_IN_TEN);
    out->p99_s = at_share(counted, n, 0.99);
    if (e->tokens) out->token_p90_s = at_share(e->each_token_s, e->tokens, NINE_IN_TEN);
    double all = e->run * (e->clients > 0 ? e->first + e->counted : e->counted);
    out->token_s = e->token_s / all;
    double alike = e->outputs / e->c->e->decode->job.output; /* requests of the mean output */
    if (e->clients > 0)
        out->request_s = e->seconds / alike * e->engines * e->clients / e->in_flight;
}

/* Budgets and batches are of the requests that a client stands for. */
static void set_policy(const events *e, const sm_engine engine[2], sm_simulation *o) {
    const sm_engines *engines = e->c->e;
    const sm_software *software = e->c->software;
    sm_simulation_defaults(o);
    sm_simulation_follow(o, software, engines->apart);
    o->engine = &engine[0];
    o->prefill_engine = &engine[engines->apart];
    o->replicas = (int)e->engines;
    o->prefill_replicas = (int)e->prefill_engines;
    o->most_batch = e->room;
    o->prompt_tokens = load_budget(software, &engines->plan, engines->decode);
    const sm_plan *prefill = &engines->prefill_plan;
    double budget = sm_software_budget(software, load_groups(prefill, engines->prefill));
    if (!engines->apart) budget *= prefill->pipeline; /* else a stage takes one group at a time */
    double least = e->clients > 0 ? o->most_batch + 1 : 1;
    o->prefill_tokens = larger(least, floor(budget / e->each));
    o->chunk_tokens = larger(o->most_batch + 1, o->prefill_tokens);
    o->groups = floor(load_groups(prefill, engines->prefill) / e->each);
    o->concurrency = e->clients;
    o->sample_s = HUGE_VAL; /* no series is asked for */
    o->seed = (uint64_t)e->run;
}

/* Once. Of requests all alike those that begin together would end together, and so come together.
 */
static sm_status run(events *e, const sm_engine engine[2], sm_error *err) {
    const sm_serve_job *job = &e->c->e->decode->job;
    const sm_load *load = e->c->load;
    bool even = !(load->spread > 0);
    double shortest = load->shortest > 0 ? load->shortest : SM_LOAD_SHORTEST,
           longest = even ? 2 / (1 + shortest) : 1;
    sm_synthetic draw = {.kind = SM_ARRIVALS_POISSON,
                         .rate_per_s = e->rate,
                         .requests = e->first + e->counted + e->behind,
                         .lengths = {.prompt = larger(1, (job->prompt - job->prefix) * longest),
                                     .output = larger(1, job->output * longest),
                                     .prompt_cv = load->spread,
                                     .output_cv = load->spread},
                         .least_share = even ? shortest : 0,
                         .seed = (uint64_t)e->run + 1};
    e->arrivals = sm_synthetic_arrivals(&draw);
    const sm_arrivals arrivals = {.context = e, .next = next_in_time};
    const sm_watch watch = {.context = e, .served = served};
    sm_simulation o;
    set_policy(e, engine, &o);
    e->served = 0;
    sm_status status = sm_simulate(&o, &arrivals, &watch, NULL, err);
    e->seconds += e->end_s;
    return status;
}

/* A prompt keeps one of the stages of a prefill worker busy at a time: the next comes as soon. */
static void simulate(events *e, event_times *out) {
    load_steps *c = e->c;
    const sm_engines *engines = c->e;
    size_t all = (size_t)(e->runs * (e->first + e->counted));
    side sides[2];
    sm_engine engine[2];
    if (c->failed) return;
    e->first_s = sm_malloc(2 * all * sizeof *e->first_s);
    if (e->first_s) e->each_token_s = e->first_s + all;
    sm_status s = e->first_s ? SM_OK : sm_fail_memory(&c->err);
    if (!s) s = make_side(e, engines->decode, &engines->plan, false, sides, engine, &c->err);
    if (!s && engines->apart)
        s = make_side(e, engines->prefill, &engines->prefill_plan, true, sides + 1, engine + 1,
                      &c->err);
    for (; !s && e->run < e->runs; e->run++) s = run(e, engine, &c->err);
    c->failed = s != SM_OK && !e->late;
    if (e->late) out->mean_s = out->steady_s = out->p90_s = e->clients > 0 ? e->least_s : INFINITY;
    else if (!c->failed) read_first(e, out);
    sm_free(e->first_s);
}

void load_closed_first(load_steps *c, double in_flight, double most_running, event_times *out) {
    /* Of a point one engine is as the others; of a benchmark the last to end counts. */
    bool point = !(c->load->requests > 0);
    double copies = c->e->apart ? c->n : larger(1, smaller(floor(c->n), point ? 1 : MOST_COPIES));
    double all = in_flight * copies;
    double most = point ? MOST_CLIENTS : MOST_APART;
    events e = {.c = c,
                .in_flight = all,
                .kv_tokens = PLENTY_KV,
                .each = larger(1, (c->e->apart ? all : in_flight) / most /
                                      load_groups(&c->e->plan, c->e->decode)),
                .rate = 1, /* not looked at */
                .engines = copies,
                .prefill_engines = c->prefill_n};
    e.clients = larger(1, floor(all / e.each + 0.5));
    e.first = e.clients;
    double rounds = c->load->rounds >= 1 ? c->load->rounds : SM_LOAD_ROUNDS;
    e.counted = floor(e.clients * (smaller(rounds, MOST_ROUNDS) - 1) + 0.5);
    e.runs = (int)ceil(LEAST_ALIKE / (e.clients * (SM_LOAD_ROUNDS - 1)));
    /* Who waits for room: of a cache, who runs follows from how long each is by then. */
    double kv = c->load->spread > 0 ? 0 : c->e->kv_tokens * c->e->n / c->n;
    if (kv > 0 && in_flight > most_running) {
        most_running = sm_software_most(c->software, load_groups(&c->e->plan, c->e->decode));
        e.kv_tokens = kv / e.each;
    }
    e.room = larger(1, smaller(e.clients, floor(most_running / e.each)));
    simulate(&e, out);
}

/* Prompts, and what software takes to admit a request, are drawn: over few of them their means are
 * less by chance; prompts of few new tokens are laid out as drafts are, or not. In the burst with
 * which a load begins half of the shortest come before one. */
double load_first_least_s(const sm_serve *s, const sm_plan *plan, double batch, double alone_s,
                          double token_s) {
    static const double PROMPTS_DRAWN = 0.95, ADMISSION_DRAWN = 0.75;
    const sm_software *software = s->job.software;
    double shortest =
        2 * SM_LOAD_SHORTEST / (1 + SM_LOAD_SHORTEST) * (s->job.prompt - s->job.prefix) - 0.5;
    double first_s = ADMISSION_DRAWN * software->admission_s;
    if (shortest > MOST_VERIFIED) first_s += PROMPTS_DRAWN * alone_s;
    double prompts = batch / smaller(plan->data, batch) / plan->pipeline * plan->data;
    double burst_s = 0.5 * prompts * shortest * token_s;
    return first_s + larger(0, burst_s - first_s) / SM_LOAD_ROUNDS;
}

void load_open_first(load_steps *c, double rate, double running, double most_running,
                     event_times *out) {
    enum { FULLER = 4, ROOM = 16 }; /* than on average */
    events e = {.c = c, .runs = 1, .counted = COUNTED, .kv_tokens = PLENTY_KV};
    /* Of a pool that prefills each worker has its share. */
    double n = c->e->apart ? ceil(c->prefill_n) : c->n;
    double most = c->e->apart ? MOST_ENGINES : larger(1, floor(MOST_FIRST / (2 * running + 1)));
    double engines = smaller(n, smaller(most, MOST_ENGINES));
    e.engines = c->e->apart ? larger(1, floor(c->n * engines / n + 0.5)) : engines;
    e.prefill_engines = c->e->apart ? engines : 1;
    double all = running * e.engines;
    e.each = larger(1, 2 * all / MOST_FIRST);
    e.rate = rate * engines / (c->e->apart ? c->prefill_n : c->n) / e.each;
    e.first = larger(c->e->apart ? 0.25 * MOST_FIRST : 0, floor(2 * all / e.each) + 1);
    if (!c->e->apart) e.behind = floor(all / e.each);
    double room = c->e->apart ? PLENTY_RUN : FULLER * running + ROOM;
    e.room = larger(1, floor(smaller(most_running, room) / e.each));
    /* Of more than they can take the times per token are not asked for. */
    if (rate >= c->load->requests) e.most_token_s = c->load->most_tpot_s;
    simulate(&e, out);
}

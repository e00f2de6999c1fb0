/* simulate: requests through replicas of a serving engine. */
#include "answer.h"
#include "verbs.h"
#include "scalemodel/load.h"
#include <string.h>

/* The question, what it points to, and what else is asked. */
typedef struct simulating {
    sm_simulate_question question;
    sm_model model;
    sm_system system;
    sm_simulation simulation;
    sm_synthetic draw;
    const char *on, *arrivals, *csv, *plot, *timeline;
    cli_calibration_values constants;
    cli_model_values read_by;
} simulating;

enum { MOST_REPLICAS = 4096, PER_CLIENT = 10, MOST_RATE = 1000000000 };

static const char *const policies[] = {
#define X(id, name, help) name,
    SM_POLICIES(X)
#undef X
};
static const char *const preempts[] = {"recompute", "swap"};
static const char *const routes[] = {"least-loaded", "round-robin", "affinity"};
static const char *const arrivals[] = {"poisson", "gamma", "uniform", "replay"};

#define AT(member) offsetof(simulating, member)
#define ASK(member) AT(question.member)
#define SIMULATE(member) AT(simulation.member)

static const cli_option simulate_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips of one replica: h100-sxm:1x8, tpu-v5e:4x4, ..."},
    {"plan", 0, CLI_SOURCE, ASK(plan), "PLAN", .help = "how a replica is sharded: tensor=8",
     .default_says = "what serve finds best on all chips of --on"},
    {"trace", 0, CLI_INPUT, ASK(trace), "FILE",
     .help = "requests from a file: CSV or JSON lines, also gzip"},
    {"arrivals", 0, CLI_TEXT, AT(arrivals), "HOW",
     .help = "poisson:50/s, gamma:50/s:CV, uniform:50/s; with --trace the times are drawn and the "
             "lengths read",
     .default_says = "replay, with --trace"},
    {"qps", 0, CLI_RATE, AT(draw.rate_per_s), "RATE",
     .help = "requests a second, or 3000/min: as --arrivals poisson:RATE", .above = true,
     .highest = MOST_RATE},
    {"concurrency", 0, CLI_COUNT, SIMULATE(concurrency), "N",
     .help = "a closed loop, in place of --arrivals: so many clients, each with one request in "
             "flight",
     .lowest = 1, .highest = 1 << 20},
    {"think", 0, CLI_TIME, SIMULATE(think_s), "TIME",
     .help = "of a client between an answer and its next request", .default_says = "none"},
    {"requests", 0, CLI_COUNT, ASK(requests), "N", .help = "at most so many", .lowest = 1,
     .highest = 1e9, .default_says = "10000 drawn, ten for each client, all of a trace"},
    {"prompt", 0, CLI_COUNT, AT(draw.lengths.prompt), "TOKENS",
     .help = "mean prompt of drawn requests", .lowest = 1, .highest = SM_MAX_TOKENS,
     .by_default = "2048"},
    {"output", 0, CLI_COUNT, AT(draw.lengths.output), "TOKENS",
     .help = "mean output of drawn requests", .lowest = 1, .highest = SM_MAX_TOKENS,
     .by_default = "512"},
    {"prompt-cv", 0, CLI_NUMBER, AT(draw.lengths.prompt_cv), "CV",
     .help = "coefficient of variation of prompts: 0 all alike, else lognormal",
     .highest = SM_MAX_CV, .by_default = "0"},
    {"output-cv", 0, CLI_NUMBER, AT(draw.lengths.output_cv), "CV", .help = "the same of outputs",
     .highest = SM_MAX_CV, .by_default = "0"},
    {"range-ratio", 0, CLI_NUMBER, AT(draw.least_share), "SHARE",
     .help = "lengths are drawn evenly from this share of --prompt and --output to all of it, as "
             "benchmark tools do",
     .above = true, .highest = 1, .default_says = "all alike"},
    {"policy", 0, CLI_CHOICE, SIMULATE(policy), "NAME", .help = "how steps are filled",
     .words = {policies, SM_POLICY_COUNT},
     .default_says = "that of the software: chunked, or continuous where prefill goes first"},
    {"prefill-plan", 0, CLI_SOURCE, ASK(prefill_plan), "PLAN", .help = "of the prefill pool",
     .default_says = "that of --plan"},
    {"prefill-replicas", 0, CLI_INT, SIMULATE(prefill_replicas), "N", .help = "of the prefill pool",
     .lowest = 1, .highest = MOST_REPLICAS, .by_default = "1"},
    {"replicas", 0, CLI_INT, SIMULATE(replicas), "N",
     .help = "behind the router; those that decode when disaggregated", .lowest = 1,
     .highest = MOST_REPLICAS, .by_default = "1"},
    {"batch", 0, CLI_COUNT, SIMULATE(most_batch), "N", .help = "sequences at once in a replica",
     .lowest = 1, .highest = 1 << 20, .default_says = "that of the software, usually 1024"},
    {"chunk", 0, CLI_COUNT, SIMULATE(chunk_tokens), "TOKENS",
     .help = "tokens of a chunked step, decoding ones included", .lowest = 1,
     .highest = SM_MAX_TOKENS, .default_says = "that of the software, usually 8192"},
    {"prefill-tokens", 0, CLI_COUNT, SIMULATE(prefill_tokens), "TOKENS",
     .help = "most of other prefill steps", .lowest = 1, .highest = SM_MAX_TOKENS,
     .default_says = "that of the software, usually 8192"},
    {"page", 0, CLI_COUNT, SIMULATE(page_tokens), "TOKENS", .help = "of a page of the KV cache",
     .lowest = 1, .highest = 65536, .by_default = "16"},
    {"preempt", 0, CLI_CHOICE, SIMULATE(preempt), "HOW", .help = "when pages run out",
     .words = {preempts, 2}, .by_default = "recompute"},
    {"route", 0, CLI_CHOICE, SIMULATE(route), "HOW", .help = "which replica a request goes to",
     .words = {routes, 3}, .by_default = "least-loaded"},
    {"prefix-cache", 0, CLI_FLAG, SIMULATE(prefix_cache),
     .help = "keep prefixes and conversations for later prompts"},
    {"host-memory", 0, CLI_SIZE, ASK(host_bytes), "BYTES", .optional = true,
     .help = "of a replica, for swaps and the prefix cache",
     .default_says = "half of the hosts' with --preempt swap, else 0"},
    {"ttft", 0, CLI_TIME, SIMULATE(ttft_s), "TIME", .help = "the SLO: time to first token",
     .above = true},
    {"tpot", 0, CLI_TIME, SIMULATE(tpot_s), "TIME", .help = "the SLO: time per output token",
     .above = true},
    {"weights", 0, CLI_DTYPE, ASK(dtypes.weights), "DTYPE", .help = "of weights",
     .default_says = "as the checkpoint has them, bf16 unless it is quantised"},
    {"kv", 0, CLI_DTYPE, ASK(dtypes.kv), "DTYPE", .help = "of the KV cache", .by_default = "bf16"},
    {"compute", 0, CLI_DTYPE, ASK(dtypes.compute), "DTYPE", .help = "what matmuls compute in",
     .default_says = "fp8 and fp4 weights in their own type where the chip can, others in bf16"},
    {"seed", 0, CLI_WHOLE, AT(draw.seed), "N", .help = "of what is drawn", .by_default = "1"},
    {"find-max-qps", 0, CLI_FLAG, ASK(find_max_rate),
     .help = "the highest rate that meets the SLO"},
    {"within", 0, CLI_NUMBER, ASK(within), "SHARE", .help = "of requests that must meet it",
     .highest = 1, .by_default = "0.99"},
    {"csv", 0, CLI_OUTPUT, AT(csv), "FILE", .help = "write a row for each request"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE",
     .help = "write the queue, the batch and the memory over time as SVG"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE",
     .help = "write the steps of the replicas for Perfetto"},
    CLI_CALIBRATION_OPTIONS(simulating, constants),
    CLI_MODEL_OPTIONS(simulating, read_by),
    {.name = NULL},
};

/* ---- arrivals ---- */

/* poisson:50/s, gamma:50/s:2 */
static sm_status read_drawn(const sm_source *source, size_t name, sm_synthetic *draw,
                            sm_error *err) {
    sm_span all = {0, source->length};
    const char *rate = source->text + name + 1;
    if (name >= source->length)
        return sm_fail_at(err, source, all, "expected a rate, as in %.*s:50/s", (int)name,
                          source->text);
    size_t left = source->length - name - 1;
    const char *colon = memchr(rate, ':', left);
    size_t length = colon ? (size_t)(colon - rate) : left;
    const sm_span number = {name + 1, length};
    sm_status status = sm_quantity_parse(source, number, SM_Q_PER_S, &draw->rate_per_s, err);
    if (!status && !(draw->rate_per_s > 0.0 && draw->rate_per_s <= MOST_RATE))
        return sm_fail_at(err, source, number, "a rate lies above 0 and at most at 1e9/s");
    if (status || (!colon && draw->kind != SM_ARRIVALS_GAMMA)) return status;
    if (!colon || draw->kind != SM_ARRIVALS_GAMMA)
        return sm_fail_at(err, source, all,
                          "the gaps of gamma alone have a coefficient of variation, as in "
                          "gamma:50/s:2");
    sm_span cv = {name + 1 + length + 1, left - length - 1};
    status = sm_quantity_parse(source, cv, SM_Q_COUNT, &draw->cv, err);
    if (status || draw->cv <= SM_MAX_CV) return status;
    return sm_fail_at(err, source, cv, "a coefficient of variation is at most %.0f", SM_MAX_CV);
}

static sm_status read_arrivals(const cli_call *call, simulating *v, sm_error *err) {
    const char *trace = v->question.trace;
    bool closed = v->simulation.concurrency > 0.0, rate = v->draw.rate_per_s > 0.0;
    const char *also = v->arrivals ? "--arrivals" : rate ? "--qps" : NULL;
    if (also && (closed || (rate && v->arrivals)))
        return sm_fail(err, SM_USAGE, "%s says when requests come: leave out %s",
                       closed ? "--concurrency" : "--qps", also);
    if (v->simulation.think_s > 0.0 && !closed)
        return sm_fail(err, SM_USAGE, "--think is of the clients of --concurrency");
    if (rate) {
        v->draw.kind = SM_ARRIVALS_POISSON;
        v->question.drawn = &v->draw;
    }
    if (rate || (!v->arrivals && trace)) return SM_OK;
    if (closed) {
        v->draw.kind = SM_ARRIVALS_UNIFORM;
        v->draw.rate_per_s = 1.0; /* not looked at */
        v->question.drawn = &v->draw;
        if (!(v->question.requests > 0.0))
            v->question.requests = PER_CLIENT * v->simulation.concurrency;
        return SM_OK;
    }
    if (!v->arrivals)
        return sm_fail(err, SM_USAGE, "simulate needs --qps 50, --trace FILE or --concurrency 64");
    sm_source source = cli_source(call, &v->arrivals);
    sm_words words = {arrivals, 4};
    sm_span name = {0, strcspn(v->arrivals, ":")};
    int kind = sm_words_find(words, &source, name);
    if (kind < 0) return sm_words_fail(words, &source, name, "arrivals cannot be", err);
    bool replay = kind == 3;
    if (replay && !trace) return sm_fail(err, SM_USAGE, "--arrivals replay needs --trace FILE");
    if (replay) return SM_OK;
    v->question.drawn = &v->draw;
    v->draw.kind = (sm_arrival_kind)kind;
    return read_drawn(&source, name.length, &v->draw, err);
}

/* ---- the question ---- */

/* Steps as the software fills them, where nothing else is said. */
static void follow_software(const cli_call *call, simulating *v) {
    sm_simulation *s = &v->simulation, usual = *s;
    sm_simulation_follow(&usual, sm_software_of(v->constants.software));
    if (!cli_given(call, &s->policy)) s->policy = usual.policy;
    if (!cli_given(call, &s->most_batch)) s->most_batch = usual.most_batch;
    if (!cli_given(call, &s->chunk_tokens)) s->chunk_tokens = usual.chunk_tokens;
    if (!cli_given(call, &s->prefill_tokens)) s->prefill_tokens = usual.prefill_tokens;
    s->admission_s = usual.admission_s;
}

static sm_status check_together(const cli_call *call, const simulating *v, sm_error *err) {
    const sm_simulate_question *q = &v->question;
    const sm_simulation *s = &v->simulation;
    bool split = s->policy == SM_POLICY_DISAGGREGATED;
    if (!split && (q->prefill_plan.text || cli_given(call, &s->prefill_replicas)))
        return sm_fail(err, SM_USAGE,
                       "--prefill-plan and --prefill-replicas are of --policy "
                       "disaggregated");
    if (q->find_max_rate && !(s->ttft_s > 0.0) && !(s->tpot_s > 0.0))
        return sm_fail(err, SM_USAGE, "--find-max-qps needs an SLO: --ttft, --tpot or both");
    if (cli_given(call, &q->within) && !q->find_max_rate)
        return sm_fail(err, SM_USAGE, "--within is of --find-max-qps");
    return SM_OK;
}

static sm_status read_question(const cli_call *call, simulating *v, sm_error *err) {
    sm_simulate_question *q = &v->question;
    const sm_lengths *l = &v->draw.lengths;
    v->simulation.size = sizeof v->simulation;
    q->size = sizeof *q;
    q->model = &v->model;
    q->system = &v->system;
    q->simulation = &v->simulation;
    q->explain = call->common.explain;
    q->plot = v->plot != NULL;
    q->timeline = v->timeline != NULL;
    q->keep_engine = call->watch && call->watch->keep_engine;
    follow_software(call, v);
    sm_status status = check_together(call, v, err);
    if (!status) status = read_arrivals(call, v, err);
    bool lengths = cli_given(call, &l->prompt) || cli_given(call, &l->output) ||
                   cli_given(call, &l->prompt_cv) || cli_given(call, &l->output_cv);
    if (!status && q->trace && lengths)
        return sm_fail(err, SM_USAGE,
                       "the lengths are those of --trace: leave out --prompt, "
                       "--output and their --prompt-cv, --output-cv");
    if (!status) status = cli_read_model(call, &v->read_by, call->positional[0], &v->model, err);
    q->as_stored = !cli_given(call, &q->dtypes.weights) && v->model.stored.quantised;
    if (q->as_stored) q->dtypes.weights = v->model.stored.type;
    if (!status) status = cli_system(call, v->on, &v->system, err);
    if (!status && !cli_given(call, &q->dtypes.compute))
        q->dtypes.compute = sm_serve_usual_compute(&v->system.chip, q->dtypes.weights);
    q->software = v->constants.software;
    if (!status && (v->constants.calibration || v->constants.software))
        status = cli_calibration(call, &v->system.chip, &v->constants, &q->calibration, err);
    return status;
}

/* --csv: a row for each request, as it ends. */
static void put_served(void *context, const sm_request_served *s) {
    fprintf(context, "%llu,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f,%.0f,%d,%d\n",
            (unsigned long long)s->number, s->arrival_s, s->start_s, s->first_token_s, s->end_s,
            s->prompt, s->output, s->cached, s->replica, s->preemptions);
}

/* An answer with the rows of its requests. */
typedef struct answering {
    sm_simulate_question *question;
    sm_report *report;
} answering;

static sm_status write_rows(const void *context, FILE *rows, sm_error *err) {
    const answering *a = context;
    fputs("request,arrival_s,start_s,first_token_s,end_s,prompt_tokens,output_tokens,"
          "cached_tokens,replica,preemptions\n",
          rows);
    a->question->watch = &(sm_watch){rows, put_served, NULL};
    return sm_answer_simulate(a->question, a->report, err);
}

static sm_status run_simulate(const cli_call *call, sm_report *r, sm_error *err) {
    simulating *v = call->values;
    sm_status status = read_question(call, v, err);
    if (status) return status;
    status = v->csv ? cli_write(v->csv, write_rows, &(answering){&v->question, r}, err)
                    : sm_answer_simulate(&v->question, r, err);
    if (!status && r->tracks) status = cli_write_tracks(r->tracks, v->timeline, err);
    if (!status && r->chart) status = cli_write_chart(r->chart, v->plot, err);
    return status;
}

const cli_verb cli_simulate = {
    .name = "simulate",
    .summary = "requests through a serving engine: latency, goodput, rates",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = simulate_table,
    .values_bytes = sizeof(simulating),
    .plans = 1u << SM_PLAN_SERVING,
    .notes = "example: scalemodel simulate llama-3.1-70b --on h100-sxm:1x8 --plan tensor=8 \\\n"
             "           --arrivals poisson:4/s --ttft 1s --tpot 50ms\n",
    .run = run_simulate,
};

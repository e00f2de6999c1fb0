/* simulate: requests through replicas of a serving engine. */
#include "program.h"
#include "arrival_options.h"
#include <string.h>

/* The question, what it points to, and what else is asked. */
typedef struct simulating {
    sm_simulate_question question;
    sm_model model;
    sm_system system;
    sm_simulation simulation;
    arrival_values requests;
    cli_speculation_values speculate;
    cli_engine_values engine;
    const char *on, *csv, *plot, *timeline;
    cli_calibration_values constants;
    cli_model_values read_by;
} simulating;

enum { MOST_REPLICAS = 4096 };

static const char *const preempts[] = {"recompute", "swap"};
static const char *const routes[] = {"least-loaded", "round-robin", "affinity"};

#define AT(member) offsetof(simulating, member)
#define ASK(member) AT(question.member)
#define SIMULATE(member) AT(simulation.member)

static const cli_option simulate_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips of one replica: h100-sxm:1x8, tpu-v5e:4x4, ..."},
    {"plan", 0, CLI_SOURCE, ASK(plan), "PLAN", .help = "how a replica is sharded: tensor=8",
     .default_says = "what serve finds best on all chips of --on"},
    ARRIVAL_OPTIONS(simulating, requests),
    {"policy", 0, CLI_CHOICE, SIMULATE(policy), "NAME", .help = "how steps are filled",
     .words = {sm_policy_names, SM_POLICY_COUNT},
     .default_says = "that of the software: chunked, or continuous where prefill goes first"},
    {"prefill-plan", 0, CLI_SOURCE, ASK(prefill_plan), "PLAN", .help = "of the prefill pool",
     .default_says = "that of --plan"},
    {"prefill-replicas", 0, CLI_INT, SIMULATE(prefill_replicas), "N", .help = "of the prefill pool",
     .lowest = 1, .highest = MOST_REPLICAS, .by_default = "1"},
    {"replicas", 0, CLI_INT, SIMULATE(replicas), "N",
     .help = "behind the router; those that decode when disaggregated", .lowest = 1,
     .highest = MOST_REPLICAS, .by_default = "1"},
    {"batch", 0, CLI_COUNT, SIMULATE(most_batch), "N", .help = "sequences at once in a replica",
     .lowest = 1, .highest = 1 << 20,
     .default_says = "that of the software on the chip, usually 1024"},
    {"chunk", 0, CLI_COUNT, SIMULATE(chunk_tokens), "TOKENS",
     .help = "tokens of a chunked step, decoding ones included", .lowest = 1,
     .highest = SM_MAX_TOKENS,
     .default_says = "that of the software on the chip, usually 8192 a group of chips"},
    {"prefill-tokens", 0, CLI_COUNT, SIMULATE(prefill_tokens), "TOKENS",
     .help = "most of other prefill steps", .lowest = 1, .highest = SM_MAX_TOKENS,
     .default_says = "the same"},
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
    CLI_SPECULATION_OPTIONS(simulating, speculate),
    {"seed", 0, CLI_WHOLE, AT(requests.draw.seed), "N", .help = "of what is drawn",
     .by_default = "1"},
    {"find-max-qps", 0, CLI_FLAG, ASK(find_max_rate),
     .help = "the highest rate that meets the SLO"},
    {"within", 0, CLI_NUMBER, ASK(within), "SHARE", .help = "of requests that must meet it",
     .highest = 1, .by_default = "0.99"},
    {"csv", 0, CLI_OUTPUT, AT(csv), "FILE", .help = "write a row for each request"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .gets = CLI_CHART,
     .help = "write the queue, the batch and the memory over time as SVG"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE", .gets = CLI_TRACKS,
     .help = "write the steps of the replicas for Perfetto"},
    CLI_ENGINE_OPTIONS(simulating, engine),
    CLI_CALIBRATION_OPTIONS(simulating, constants),
    CLI_MODEL_OPTIONS(simulating, read_by),
    {.name = NULL},
};

/* ---- the question ---- */

/* Steps as the software fills them, where nothing else is said. */
static sm_status follow_software(const cli_call *call, simulating *v, sm_error *err) {
    const sm_software *software = sm_software_of(v->constants.software);
    sm_simulation *s = &v->simulation;
    const sm_simulation asked = *s;
    sm_status status = cli_engine(call, &v->engine, software->name, &software, err);
    v->question.engine = software;
    bool policy = cli_given(call, &s->policy);
    sm_simulation_follow(s, software, policy && asked.policy == SM_POLICY_DISAGGREGATED);
    if (policy) s->policy = asked.policy;
    if (cli_given(call, &s->most_batch)) s->most_batch = asked.most_batch;
    if (cli_given(call, &s->chunk_tokens)) s->chunk_tokens = asked.chunk_tokens;
    if (cli_given(call, &s->prefill_tokens)) s->prefill_tokens = asked.prefill_tokens;
    return status;
}

static sm_status check_together(const cli_call *call, const simulating *v, sm_error *err) {
    const sm_simulate_question *q = &v->question;
    const sm_simulation *s = &v->simulation;
    bool split = s->policy == SM_POLICY_DISAGGREGATED;
    if (!split && (q->prefill_plan.text || cli_given(call, &s->prefill_replicas)))
        return sm_fail(err, SM_USAGE,
                       "--prefill-plan and --prefill-replicas are of --policy "
                       "disaggregated");
    if (cli_given(call, &q->within) && !q->find_max_rate)
        return sm_fail(err, SM_USAGE, "--within is of --find-max-qps");
    return SM_OK;
}

static sm_status read_question(const cli_call *call, simulating *v, sm_error *err) {
    sm_simulate_question *q = &v->question;
    const arrival_values *a = &v->requests;
    v->simulation.size = sizeof v->simulation;
    q->size = sizeof *q;
    q->model = &v->model;
    q->system = &v->system;
    q->simulation = &v->simulation;
    q->explain = call->common.explain;
    q->plot = v->plot != NULL;
    q->timeline = v->timeline != NULL;
    q->keep_engine = call->watch && call->watch->keep_engine;
    sm_status status = follow_software(call, v, err);
    if (!status) status = arrivals_read(call, &v->requests, err);
    if (!status) status = check_together(call, v, err);
    q->trace = a->trace;
    q->requests = a->requests;
    q->drawn = a->drawn ? &a->draw : NULL;
    v->simulation.concurrency = a->concurrency;
    v->simulation.think_s = a->draw.think_s;
    v->simulation.classes = a->kind;
    v->simulation.n_classes = a->kinds;
    if (!status) status = cli_read_model(call, &v->read_by, call->positional[0], &v->model, err);
    q->as_stored = !cli_given(call, &q->dtypes.weights) && v->model.stored.quantised;
    if (q->as_stored) q->dtypes.weights = v->model.stored.type;
    if (!status) status = cli_speculation(call, &v->speculate, &v->read_by, &q->speculation, err);
    if (!status) status = cli_system(call, v->on, &v->system, err);
    if (!status && !cli_given(call, &q->dtypes.compute))
        q->dtypes.compute = sm_serve_usual_compute(&v->system.chip, q->dtypes.weights);
    q->software = v->constants.software;
    if (!status)
        status = cli_serving_constants(call, &v->system.chip, &v->constants, &q->calibration, err);
    return status;
}

/* An answer with the rows of its requests. */
typedef struct answering {
    sm_simulate_question *question;
    sm_report *report;
    FILE *rows;
} answering;

/* --csv: a row for each request, as it ends. */
static void put_served(void *context, const sm_request_served *s) {
    const answering *a = context;
    requests_row(a->rows, s, a->question->simulation, 0.0);
}

static sm_status write_rows(const void *context, FILE *rows, sm_error *err) {
    answering a = *(const answering *)context;
    a.rows = rows;
    requests_header(rows);
    a.question->watch = &(sm_watch){&a, put_served, NULL};
    return sm_answer_simulate(a.question, a.report, err);
}

static sm_status run_simulate(const cli_call *call, sm_report *r, sm_error *err) {
    simulating *v = call->values;
    sm_status status = read_question(call, v, err);
    if (status) return status;
    return v->csv ? cli_write(v->csv, write_rows, &(answering){&v->question, r, NULL}, err)
                  : sm_answer_simulate(&v->question, r, err);
}

const cli_verb cli_simulate = {
    .name = "simulate",
    .summary = "requests through a serving engine: latency, goodput, rates",
    .arguments = "MODEL",
    .options = simulate_table,
    .values_bytes = sizeof(simulating),
    .plans = 1u << SM_PLAN_SERVING,
    .notes = "example: scalemodel simulate llama-3.1-70b --on h100-sxm:1x8 --plan tensor=8 \\\n"
             "           --arrivals poisson:4/s --ttft 1s --tpot 50ms\n",
    .run = run_simulate,
};

/* simulate: requests through replicas of a serving engine. */
#include "program.h"
#include "arrival_options.h"

/* The question, what it points to, and what else is asked. */
typedef struct values {
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

#define SIMULATE(option, member) AT(option, simulation.member)

/* ---- the question ---- */

/* Steps as the software fills them, where nothing else is said. */
static sm_status follow_software(const cli_call *call, simulating *v, sm_error *err) {
    const sm_software *software = sm_software_of(v->constants.software);
    sm_simulation *s = &v->simulation;
    const sm_simulation asked = *s;
    sm_status status = cli_engine(call, &v->engine, &v->constants.software, &software, err);
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
    const sm_range *clients = &v->requests.concurrency;
    if (clients->last > clients->first && (v->csv || v->plot || v->timeline || q->find_max_rate ||
                                           q->explain || sm_range_points(clients) > SM_MAX_POINTS))
        return cli_refuse(call, clients, err,
                          "--csv, --plot, --timeline, --find-max-qps and --explain are of one "
                          "number of clients");
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
    v->simulation.concurrency = (double)a->concurrency.first;
    q->clients = a->concurrency;
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
    .about = &verbs_simulate,
    CLI_VALUES(
        AT("on", on), ASK("plan", plan), ARRIVAL_PLACES(requests), SIMULATE("policy", policy),
        ASK("prefill-plan", prefill_plan), SIMULATE("prefill-replicas", prefill_replicas),
        SIMULATE("replicas", replicas), SIMULATE("batch", most_batch),
        SIMULATE("chunk", chunk_tokens), SIMULATE("prefill-tokens", prefill_tokens),
        SIMULATE("page", page_tokens), SIMULATE("preempt", preempt), SIMULATE("route", route),
        SIMULATE("prefix-cache", prefix_cache), ASK("host-memory", host_bytes),
        SIMULATE("ttft", ttft_s), SIMULATE("tpot", tpot_s), ASK("weights", dtypes.weights),
        ASK("kv", dtypes.kv), ASK("compute", dtypes.compute), CLI_SPECULATION_PLACES(speculate),
        AT("seed", requests.draw.seed), ASK("find-max-qps", find_max_rate), ASK("within", within),
        AT("csv", csv), AT("plot", plot), AT("timeline", timeline), CLI_ENGINE_PLACES(engine),
        CLI_CALIBRATION_PLACES(constants), CLI_MODEL_PLACES(read_by), CLI_SOURCE_PLACES(read_by)),
    .plans = 1u << SM_PLAN_SERVING,
    .run = run_simulate,
};

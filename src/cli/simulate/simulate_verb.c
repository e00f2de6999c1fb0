/* simulate: requests through replicas of a serving engine. */
#include "simulate.h"
#include "scalemodel/page.h"
#include "verbs.h"
#include <math.h>

/* ---- the engines ---- */

/* Host memory is for those who ask for it: swaps, or a size. */
static void set_host(const cli_simulating *q, sm_engine *e) {
    bool swaps = q->options.preempt == SM_PREEMPT_SWAP;
    if (q->host_bytes >= 0.0) e->host_kv_tokens = q->host_bytes / e->kv_bytes_per_token;
    else if (!swaps) e->host_kv_tokens = 0.0;
}

static sm_status make_engine(cli_simulating *q, const sm_plan *plan, const char *option,
                             const char *text, sm_engine *engine, sm_error *err) {
    double mean = q->source.draw.lengths.prompt + q->source.draw.lengths.output;
    double step = fmax(q->options.policy == SM_POLICY_CHUNKED ? q->options.chunk_tokens
                                                              : q->options.prefill_tokens,
                       q->options.most_batch);
    sm_error inner = {.status = SM_OK};
    sm_status status = sm_serve_engine(q->serve, plan, mean, step, q->call->arena, engine, &inner);
    set_host(q, engine);
    if (!status) return SM_OK;
    *err = inner;
    if (inner.line > 0 || status != SM_BAD_INPUT) return status;
    sm_source source = sm_source_of(option, text);
    return sm_fail_at(err, &source, (sm_span){0, source.length}, "%s", inner.sentence);
}

static sm_status make_engines(cli_simulating *q, sm_error *err) {
    const cli_simulate_values *o = q->call->values;
    sm_status status = sm_serve_new(&q->job, &q->serve, err);
    if (status) return status;
    sm_serve_set_calibration(q->serve, q->calibration);
    status = make_engine(q, &q->plan, "--plan", o->plan, &q->engine, err);
    if (!status && q->options.policy == SM_POLICY_DISAGGREGATED)
        status = make_engine(q, &q->prefill_plan, o->prefill_plan ? "--prefill-plan" : "--plan",
                             o->prefill_plan ? o->prefill_plan : o->plan, &q->prefill_engine, err);
    q->options.engine = &q->engine;
    q->options.prefill_engine = &q->prefill_engine;
    return status;
}

/* ---- the simulation ---- */

static sm_status hunt_rate(cli_simulating *q, double *rate, sm_error *err) {
    sm_rated_arrivals arrivals = {&q->source, cli_source_begin};
    q->max_rate = sm_arena_alloc(q->call->arena, sizeof *q->max_rate);
    if (!q->max_rate) return sm_fail_memory(err);
    sm_status status = sm_simulate_max_rate(&q->options, &arrivals, q->within, q->max_rate, err);
    q->result = q->max_rate->at;
    *rate = q->max_rate->rate;
    return status;
}

static sm_status simulate_at(cli_simulating *q, double rate, sm_error *err) {
    cli_simulate_files files;
    sm_arrivals arrivals;
    sm_status status = cli_source_begin(&q->source, rate, &arrivals, err);
    if (!status) status = cli_simulate_files_begin(q, &files, err);
    if (status) return status;
    status = sm_simulate(&q->options, &arrivals, &files.watch, &q->result, err);
    return cli_simulate_files_end(&files, status, err);
}

static sm_status answer(cli_simulating *q, sm_report *r, sm_error *err) {
    double rate = 1.0;
    sm_status status = q->find_max_qps ? hunt_rate(q, &rate, err) : SM_OK;
    bool found = rate > 0.0;
    if (!status && found) status = simulate_at(q, rate, err);
    if (status) return status;
    cli_simulate_fields(r, q);
    cli_simulate_page(r, q);
    if (q->call->common.explain) r->why = cli_simulate_why(r, q);
    return found ? SM_OK : SM_NEGATIVE;
}

/* Not one sequence fits: an answer. */
static sm_status answer_nothing_fits(sm_report *r, const sm_error *why) {
    sm_put_bool(r, r->data, "fits", false);
    sm_put_text(r, r->data, "reason", why->sentence);
    sm_report_text(r, "Nothing can be simulated: %s.", why->sentence);
    return SM_NEGATIVE;
}

static sm_status run_simulate(const cli_call *call, sm_report *r, sm_error *err) {
    cli_simulating *q = sm_arena_alloc(call->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    sm_status status = cli_simulating_read(call, q, err);
    if (status) return status;
    sm_put_text(r, r->data, "command", "simulate");
    status = make_engines(q, err);
    if (status == SM_NEGATIVE) status = answer_nothing_fits(r, err);
    if (!status) status = cli_source_open(&q->source, err);
    if (!status) status = answer(q, r, err);
    cli_source_close(&q->source);
    sm_serve_free(q->serve);
    return status;
}

const cli_verb cli_simulate = {
    .name = "simulate",
    .summary = "requests through a serving engine: latency, goodput, rates",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = cli_simulate_options,
    .values_bytes = sizeof(cli_simulate_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes = "example: scalemodel simulate llama-3.1-70b --on h100-sxm:1x8 --plan tensor=8 \\\n"
             "           --arrivals poisson:4/s --ttft 1s --tpot 50ms\n",
    .run = run_simulate,
};

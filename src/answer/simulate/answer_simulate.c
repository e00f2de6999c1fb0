/* answer_simulate: requests through replicas of a serving engine. */
#include "simulate_asked.h"
#include <math.h>

enum { USUAL_PROMPT = 2048, USUAL_OUTPUT = 512, USUAL_REQUESTS = 10000 };

/* ---- the question ---- */

static sm_status read_plan(const sm_simulate_asked *q, const sm_source *source, sm_plan *plan,
                           const char **words, sm_error *err) {
    char shown[256];
    sm_status status = sm_serve_plan_parse(source, plan, err);
    if (status) return status;
    sm_plan_format(plan, q->in.system->torus_dims, shown, sizeof shown);
    *words = sm_textf(q->report, "%s", shown);
    return SM_OK;
}

static sm_status read_question(sm_simulate_asked *q, sm_error *err) {
    sm_simulate_question *in = &q->in;
    sm_request_source *s = &q->source;
    sm_simulation_defaults(&q->options);
    if (in->simulation) {
        sm_status status = sm_sized_take(&q->options, sizeof q->options, in->simulation, err);
        if (status) return status;
    }
    if (in->within <= 0.0) in->within = 0.99;
    s->drawn = in->drawn != NULL;
    if (in->drawn) s->draw = *in->drawn;
    if (!in->drawn && !in->trace)
        return sm_fail(err, SM_USAGE, "a simulation needs requests: of a trace, or drawn");
    if (!(s->draw.lengths.prompt > 0.0)) s->draw.lengths.prompt = USUAL_PROMPT;
    if (!(s->draw.lengths.output > 0.0)) s->draw.lengths.output = USUAL_OUTPUT;
    s->most = in->trace ? HUGE_VAL : USUAL_REQUESTS;
    if (in->requests > 0.0) s->most = in->requests;
    s->draw.requests = s->most;
    q->job = (sm_serve_job){.model = in->model,
                            .system = in->system,
                            .dtypes = in->dtypes,
                            .as_stored = in->as_stored,
                            .prompt = s->draw.lengths.prompt,
                            .output = s->draw.lengths.output,
                            .imbalance = 1.0,
                            .reserve = -1.0,
                            .usd_per_chip_hour = -1.0};
    if (!in->prefill_plan.text) in->prefill_plan = in->plan;
    sm_status status = read_plan(q, &in->plan, &q->plan, &q->plan_text, err);
    if (status) return status;
    return read_plan(q, &in->prefill_plan, &q->prefill_plan, &q->prefill_plan_text, err);
}

/* ---- where requests come from ---- */

static int next_request(void *context, sm_request *request, sm_error *err) {
    sm_request_source *s = context;
    if (s->given >= s->most) return 0;
    sm_request drawn = {.arrival_s = 0.0};
    int got = s->drawn ? s->of_draw.next(s->of_draw.context, &drawn, err) : 1;
    if (got == 1 && s->file) got = s->of_file.next(s->of_file.context, request, err);
    else *request = drawn;
    if (got != 1) return got;
    if (s->drawn) request->arrival_s = drawn.arrival_s;
    /* Gaps shrink as the rate grows; the first request comes when it comes. */
    if (s->given == 0.0) s->first_s = request->arrival_s;
    request->arrival_s = s->first_s + (request->arrival_s - s->first_s) / s->rate;
    s->given += 1.0;
    return 1;
}

/* From the beginning. */
static sm_status begin(void *source, double rate, sm_arrivals *arrivals, sm_error *err) {
    sm_request_source *s = source;
    bool again = s->given > 0.0;
    s->rate = rate;
    s->given = 0.0;
    s->of_draw = sm_synthetic_arrivals(&s->draw);
    *arrivals = (sm_arrivals){s, next_request};
    return s->file && again ? sm_request_file_rewind(s->file, err) : SM_OK;
}

/* ---- the engines ---- */

static sm_status make_engine(sm_simulate_asked *q, const sm_plan *plan, const sm_source *text,
                             sm_engine *engine, sm_error *err) {
    const sm_lengths *l = &q->source.draw.lengths;
    double step = fmax(q->options.policy == SM_POLICY_CHUNKED ? q->options.chunk_tokens
                                                              : q->options.prefill_tokens,
                       q->options.most_batch);
    sm_error inner = {.status = SM_OK};
    sm_status status = sm_serve_engine(q->serve, plan, l->prompt + l->output, step,
                                       q->report->arena, engine, &inner);
    /* Host memory is for those who ask for it: swaps, or a size. */
    if (q->in.host_bytes) engine->host_kv_tokens = *q->in.host_bytes / engine->kv_bytes_per_token;
    else if (q->options.preempt != SM_PREEMPT_SWAP) engine->host_kv_tokens = 0.0;
    if (status) *err = inner;
    return sm_question_blame(text, status, err);
}

static sm_status make_engines(sm_simulate_asked *q, sm_error *err) {
    sm_status status = sm_serve_new(&q->job, &q->serve, err);
    if (status) return status;
    sm_serve_set_calibration(q->serve, q->in.calibration);
    status = make_engine(q, &q->plan, &q->in.plan, &q->engine, err);
    if (!status && q->options.policy == SM_POLICY_DISAGGREGATED)
        status = make_engine(q, &q->prefill_plan, &q->in.prefill_plan, &q->prefill_engine, err);
    q->options.engine = &q->engine;
    q->options.prefill_engine = &q->prefill_engine;
    return status;
}

/* ---- the simulation ---- */

static sm_status find_rate(sm_simulate_asked *q, double *rate, sm_error *err) {
    sm_rated_arrivals arrivals = {&q->source, begin};
    q->max_rate = sm_arena_alloc(q->report->arena, sizeof *q->max_rate);
    if (!q->max_rate) return sm_fail_memory(err);
    sm_status status = sm_simulate_max_rate(&q->options, &arrivals, q->in.within, q->max_rate, err);
    q->result = q->max_rate->at;
    *rate = q->max_rate->rate;
    return status;
}

static sm_status simulate_at(sm_simulate_asked *q, double rate, sm_error *err) {
    sm_arrivals arrivals;
    sm_status status = begin(&q->source, rate, &arrivals, err);
    if (!status) status = sm_simulate_tracks_begin(q, err);
    if (!status) status = sm_simulate(&q->options, &arrivals, &q->watch, &q->result, err);
    if (!status) status = sm_simulate_tracks_end(q, err);
    if (!status && q->in.plot) status = sm_simulate_picture(q, err);
    return status;
}

/* What a simulation gives cannot be derived; what its goodput is made of can. */
static sm_why *explain(sm_report *r, const sm_simulated *s) {
    sm_why *why = sm_page_why(r, "goodput, requests per second",
                              "requests x share within the SLO / seconds", s->goodput_per_s, "");
    sm_page_given(r, why, "requests", s->requests, "");
    sm_page_leaf(r, why, "share within the SLO", s->within_slo, "", "simulated");
    sm_page_leaf(r, why, "first arrival to last token", s->seconds, "s", "simulated");
    return why;
}

static sm_status answer(sm_simulate_asked *q, sm_report *r, sm_error *err) {
    double rate = 1.0;
    sm_status status = q->in.find_max_rate ? find_rate(q, &rate, err) : SM_OK;
    bool found = rate > 0.0;
    if (!status && found) status = simulate_at(q, rate, err);
    if (status) return status;
    sm_simulate_data(r, q);
    sm_simulate_page(r, q);
    if (q->in.explain) r->why = explain(r, &q->result);
    return found ? SM_OK : SM_NEGATIVE;
}

sm_status sm_answer_simulate(const sm_simulate_question *question, sm_report *r, sm_error *err) {
    sm_simulate_asked *q = sm_arena_alloc(r->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->report = r;
    sm_status status = sm_sized_take(&q->in, sizeof q->in, question, err);
    bool there = q->in.model && q->in.system && q->in.plan.text;
    if (!status) status = sm_question_needs(there, "model, system and plan", err);
    if (!status) status = read_question(q, err);
    if (status) return status;
    sm_put_text(r, r->data, "command", "simulate");
    sm_request_source *s = &q->source;
    status = make_engines(q, err);
    /* Not one sequence fits: an answer. */
    if (status == SM_NEGATIVE) {
        sm_put_bool(r, r->data, "fits", false);
        sm_put_text(r, r->data, "reason", err->sentence);
        sm_report_text(r, "Nothing can be simulated: %s.", err->sentence);
        status = SM_NEGATIVE;
    }
    if (!status && q->in.trace) status = sm_request_file_open(q->in.trace, &s->file, err);
    if (!status && s->file) s->of_file = sm_request_arrivals(s->file);
    if (!status) status = answer(q, r, err);
    sm_request_file_close(s->file);
    sm_serve_free(q->serve);
    return status;
}

/* serve_data: the answer about serving as data, field by field of the published contract. */
#include "scalemodel/answer_words.h"
#include "serve_asked.h"

sm_evidence_near sm_serve_evidence(const sm_serve_asked *q, const sm_serve_point *p,
                                   sm_evidence_asked *asked) {
    const sm_serve_job *job = &q->job;
    sm_dtype weights = job->as_stored ? q->in.model->stored.type : job->dtypes.weights;
    *asked = sm_evidence_of_serving(
        &(sm_evidence_question){.model = q->in.model,
                                .chip = &q->in.system->chip,
                                .software = q->in.software,
                                .type = weights,
                                .plan = &p->plan},
        (double[]){p->chips, job->alone ? p->batch : p->in_flight, job->prompt, job->output});
    return sm_evidence_nearest(asked, q->in.calibration);
}

sm_ends sm_serve_interval(const sm_serve_asked *q, const sm_evidence_near *near, sm_regime regime,
                          double expected_s) {
    sm_ends ends = {NAN, NAN};
    sm_calibration_interval(q->used, &q->in.system->chip, regime, expected_s, &ends.low,
                            &ends.high);
    if (near->wider > 1.0 && expected_s > 0.0)
        sm_interval_widen(expected_s, near->wider, &ends.low, &ends.high);
    return ends;
}

static void put_time(sm_report *r, sm_data *object, const char *key, const double s[3],
                     const sm_serve_asked *q, const sm_evidence_near *near, sm_regime regime) {
    sm_data *time = sm_put_object(r, object, key);
    sm_put(r, time, "lower|expected|upper", s[0], s[1], s[2]);
    sm_ends ends = sm_serve_interval(q, near, regime, s[1]);
    sm_put(r, sm_put_array(r, time, "interval"), NULL, ends.low, ends.high);
}

static void put_step(sm_report *r, sm_data *object, const char *key, const sm_step_price *p) {
    sm_put(r, sm_put_object(r, object, key), "weights|kv|compute|scans|network|other",
           p->breakdown_s.weights, p->breakdown_s.kv, p->breakdown_s.compute, p->breakdown_s.scans,
           p->breakdown_s.network, p->breakdown_s.other);
}

static double positive(double value) { return value > 0.0 ? value : NAN; }

void sm_serve_point_data(sm_report *r, sm_data *object, const sm_serve_asked *q,
                         const sm_serve_point *p) {
    const sm_serve_memory *m = &p->memory;
    const sm_step_price *d = &p->decode;
    sm_evidence_asked asked;
    const sm_evidence_near near = sm_serve_evidence(q, p, &asked);
    sm_put(r, object, "chips|plan|batch|fits|most_batch", p->chips,
           sm_serve_plan_words(r, q->in.system, &p->plan), p->batch, p->fits, p->most_batch);
    put_time(r, object, "ttft_s", p->ttft_s, q, &near, SM_REGIME_prefill);
    put_time(r, object, "tpot_s", p->tpot_s, q, &near, SM_REGIME_decode);
    put_time(r, object, "ttft_alone_s", p->ttft_alone_s, q, &near, SM_REGIME_prefill);
    sm_put(r, object, "ttft_median_s|ttft_p99_s", p->ttft_median_s, p->ttft_p99_s);
    put_time(r, object, "tpot_alone_s", p->tpot_alone_s, q, &near, SM_REGIME_decode);
    sm_put(r, object,
           "in_flight|tokens_per_s_per_chip|tokens_per_s_per_chip_alone|"
           "usd_per_million_tokens|usd_per_million_tokens_alone",
           p->in_flight, p->tokens_per_s_per_chip, p->tokens_per_s_per_chip_alone,
           positive(p->usd_per_million_tokens), positive(p->usd_per_million_tokens_alone));
    sm_put(r, sm_put_object(r, object, "memory_bytes"),
           "params|kv|activations|buffers|total|capacity|free", m->params, m->kv, m->activations,
           m->buffers, m->total, m->capacity, m->capacity - m->total);
    sm_put(r, object, "bound", sm_serve_bound_words(r, q->in.system, d));
    put_step(r, object, "breakdown_s", d);
    put_step(r, object, "prefill_breakdown_s", &p->prefill);
    sm_put(r, sm_put_object(r, object, "lower_s"), "weights|kv|compute|network", d->bound_weights_s,
           d->bound_kv_s, d->bound_compute_s, d->bound_network_s);
    if (p->depth > 0)
        sm_put(r, object, "speculation_depth|tokens_per_step", p->depth, p->tokens_per_step);
}

void sm_serve_dtypes_data(sm_report *r, sm_data *object, const sm_serve_dtypes *d) {
    sm_put(r, object, "weights|kv|compute", sm_dtype_name(d->weights), sm_dtype_name(d->kv),
           sm_dtype_name(d->compute));
}

static void put_batches(sm_report *r, sm_data *object, const sm_serving_found *a) {
    const sm_listing list = sm_page_list(r, object, "batch_sweep", NULL,
                                         "batch|fits|tpot_s.lower|tpot_s.expected|"
                                         "tokens_per_s_per_chip|bound|prefill_s");
    for (int i = 0; i < a->batches; i++) {
        const sm_serve_point *p = &a->batch[i];
        sm_data *item = sm_list_row(&list, false, p->batch, p->fits, p->tpot_s[0], p->tpot_s[1],
                                    p->tokens_per_s_per_chip, sm_serve_bound_name(p->decode.bound),
                                    fmax(0, p->tpot_s[1] - p->tpot_alone_s[1]));
        put_step(r, item, "breakdown_s", &p->decode);
    }
}

static void put_detail(sm_report *r, const sm_serving_found *a) {
    const sm_serve_detail *d = a->detail;
    sm_data *object = sm_put_object(r, r->data, "best");
    sm_serve_point_data(r, object, a->q, &d->point);
    sm_serve_dtypes_data(r, object, &a->q->job.dtypes);
    sm_data *list = sm_put_array(r, object, "collectives");
    for (int i = 0; i < d->decode.collectives; i++) {
        const sm_plan_collective *c = &d->decode.collective[i];
        sm_put(r, sm_put_object(r, list, NULL),
               "op|array|axis|count|bytes_per_chip|time_s|algorithm", sm_collective_name(c->op),
               c->array, c->axis, c->count, c->bytes, c->time_s, c->algorithm ? c->algorithm : "");
    }
    sm_put(r, sm_put_object(r, object, "turning_points"),
           "kv_over_weights_context|kv_over_weights_batch|compute_over_weights_batch",
           positive(d->turn_kv_context), positive(d->turn_kv_batch),
           positive(d->turn_compute_batch));
    sm_put(r, object, "advice", d->advice);
    if (a->batch) put_batches(r, object, a);
}

void sm_serve_search_data(sm_report *r, const sm_serve_result *s) {
    sm_data *search = sm_put_object(r, r->data, "search");
    sm_put(r, search, "space|evaluated|pruned", s->space, s->evaluated, s->pruned);
    sm_put_timed(r, search, "seconds", s->seconds);
    sm_put(r, search, "least_chips", positive(s->least_chips));
}

void sm_serve_job_data(sm_report *r, const sm_serve_asked *q, const char *compute) {
    const sm_serve_job *job = &q->job;
    const sm_model *m = q->in.model;
    sm_params params = sm_model_params(m);
    sm_put(r, sm_put_object(r, r->data, "model"),
           "name|params|active_params|kv_bytes_per_token|max_seq", m->name, params.total,
           params.active, sm_model_kv_bytes_per_token(m, job->dtypes.kv), m->max_seq);
    sm_put(r, sm_put_object(r, r->data, "request"),
           "prompt|output|context|weights|weights_as_stored|kv|compute|most_ttft_s|most_tpot_s",
           job->prompt, job->output,
           job->context > 0 ? job->context : job->prompt + job->output / 2, q->dtype_words[0],
           q->job.as_stored, q->dtype_words[1], compute, positive(q->search.ttft_s),
           positive(q->search.tpot_s));
}

void sm_serve_fleet_data(sm_report *r, sm_data *object, const sm_serve_asked *q,
                         const sm_fleet *f) {
    const double asked = q->in.requests_per_s;
    sm_serve_point_data(r, sm_put_object(r, object, "replica"), q, &f->point);
    sm_put(r, object,
           "requests_per_s|replicas|chips|usd_per_hour|utilisation|requests_per_s_per_replica|"
           "ttft_s|tpot_s|ttft_p90_s|tpot_p90_s|running",
           asked > 0.0 ? asked : f->utilisation * f->requests_per_s_per_replica, f->replicas,
           f->chips, positive(f->usd_per_hour), f->utilisation, f->requests_per_s_per_replica,
           f->ttft_s, f->tpot_s, f->ttft_p90_s, f->tpot_p90_s, f->running);
    sm_put(r, object, "tokens_per_s_per_chip|usd_per_million_tokens", sm_serve_fleet_tokens(f),
           positive(sm_serve_fleet_cost(f)));
}

void sm_serve_data(sm_report *r, const sm_serving_found *a) {
    const sm_serve_result *s = a->result;
    const sm_serve_asked *q = a->q;
    const sm_system *system = q->in.system;
    sm_serve_job_data(r, q, q->dtype_words[2]);
    if (q->padding > 0) sm_padding_data(r, r->data, q->in.model, q->job.model, q->padding);
    sm_system_fields(r, r->data, system);
    if (q->used) sm_constants_data(r, r->data, q->used, &system->chip);
    if (s) sm_serve_search_data(r, s);
    if (a->longest >= 1.0)
        sm_put(r, sm_put_object(r, r->data, "room"),
               "kv_tokens|requests|max_concurrency|longest_request|memory_fraction", a->room,
               floor(a->best->most_batch), a->room / sm_serve_longest(&a->q->job), a->longest,
               a->best->memory.least_share);
    sm_data *list = sm_put_array(r, r->data, "frontier");
    r->records = list;
    for (size_t i = 0; s && i < s->n; i++) {
        sm_data *point = sm_put_object(r, list, NULL);
        sm_serve_point_data(r, point, a->q, &s->point[i]);
        sm_serve_dtypes_data(r, point, sm_serve_dtypes_of(a, i));
    }
    sm_data *shares = a->q->shares ? sm_put_array(r, r->data, "shares") : NULL;
    for (int i = 0; i < a->q->shares; i++) {
        sm_data *share = sm_put_object(r, shares, NULL);
        sm_put(r, share, "replicas", a->q->share[i].replicas);
        sm_serve_point_data(r, share, a->q, &a->q->share[i].point);
    }
    if (a->detail) put_detail(r, a);
    if (a->best) {
        sm_evidence_asked asked;
        const sm_evidence_near near = sm_serve_evidence(a->q, a->best, &asked);
        sm_evidence_data(r, r->data, &near);
    }
    if (a->pools) {
        const sm_disaggregated *p = a->pools;
        sm_data *object = sm_put_object(r, r->data, "disaggregated");
        sm_serve_asked from = *a->q; /* of the chips that prefill */
        if (from.in.prefill_system) from.in.system = from.in.prefill_system;
        if (from.in.prefill_calibration) from.used = from.in.prefill_calibration;
        sm_serve_point_data(r, sm_put_object(r, object, "prefill"), &from, &p->prefill);
        sm_put(r, object, "prefill_on|decode_on", from.in.system->text, a->q->in.system->text);
        sm_serve_point_data(r, sm_put_object(r, object, "decode"), a->q, &p->decode);
        sm_put(r, object,
               "prefill_batch|prefill_chips_per_decode_chip|kv_bytes|kv_transfer_s|"
               "tokens_per_s_per_chip|usd_per_million_tokens",
               p->prefill_batch, p->prefill_per_decode_chips, p->kv_bytes, p->kv_transfer_s,
               p->tokens_per_s_per_chip, positive(p->usd_per_million_tokens));
        sm_put(r, object,
               "prefill_workers|decode_workers|chips|requests_per_s|usd_per_hour|prefill_busy|"
               "decode_busy|ttft_s|tpot_s|ttft_p90_s|tpot_p90_s|running",
               p->prefill_workers, p->decode_workers, p->chips, p->requests_per_s,
               positive(p->usd_per_hour), p->prefill_busy, p->decode_busy, p->ttft_s, p->tpot_s,
               p->ttft_p90_s, p->tpot_p90_s, p->running);
    }
    const char *fleet = a->q->in.requests_per_s > 0.0 ? "fleet" : "at_random";
    if (a->fleet) sm_serve_fleet_data(r, sm_put_object(r, r->data, fleet), a->q, a->fleet);
    if (a->fewer) {
        sm_data *object = sm_put_object(r, r->data, "smaller_steps");
        sm_put(r, object, "budget_tokens", SM_FEWER_TOKENS);
        sm_serve_fleet_data(r, object, a->q, a->fewer);
    }
    if (a->reason) sm_put(r, r->data, "reason", a->reason);
}

/* serve_fields: the answer of `serve` as JSON, field by field of the published contract. */
#include "scalemodel/page.h"
#include "serve.h"
#include <math.h>

static void put_time(sm_report *r, sm_data *object, const char *key, const double s[3],
                     const cli_serving *q, sm_regime regime) {
    sm_data *time = sm_put_object(r, object, key);
    double low = NAN, high = NAN;
    sm_put(r, time, "lower", s[0]);
    sm_put(r, time, "expected", s[1]);
    sm_put(r, time, "upper", s[2]);
    sm_calibration_interval(q->used, &q->system.chip, regime, s[1], &low, &high);
    sm_data *interval = sm_put_array(r, time, "interval");
    sm_put(r, interval, NULL, low);
    sm_put(r, interval, NULL, high);
}

static void put_memory(sm_report *r, sm_data *object, const sm_serve_memory *m) {
    sm_data *memory = sm_put_object(r, object, "memory_bytes");
    sm_put(r, memory, "params", m->params);
    sm_put(r, memory, "kv", m->kv);
    sm_put(r, memory, "activations", m->activations);
    sm_put(r, memory, "buffers", m->buffers);
    sm_put(r, memory, "total", m->total);
    sm_put(r, memory, "capacity", m->capacity);
    sm_put(r, memory, "free", m->capacity - m->total);
}

static void put_step(sm_report *r, sm_data *object, const char *key, const sm_step_price *p) {
    sm_data *step = sm_put_object(r, object, key);
    sm_put(r, step, "weights", p->breakdown_s.weights);
    sm_put(r, step, "kv", p->breakdown_s.kv);
    sm_put(r, step, "compute", p->breakdown_s.compute);
    sm_put(r, step, "network", p->breakdown_s.network);
    sm_put(r, step, "other", p->breakdown_s.other);
}

static void put_lower(sm_report *r, sm_data *object, const sm_step_price *p) {
    sm_data *lower = sm_put_object(r, object, "lower_s");
    sm_put(r, lower, "weights", p->bound_weights_s);
    sm_put(r, lower, "kv", p->bound_kv_s);
    sm_put(r, lower, "compute", p->bound_compute_s);
    sm_put(r, lower, "network", p->bound_network_s);
}

static void put_money(sm_report *r, sm_data *object, const char *key, double usd) {
    sm_put(r, object, key, usd > 0.0 ? usd : NAN);
}

static void put_point(sm_report *r, sm_data *object, const cli_serving *q,
                      const sm_serve_point *p) {
    sm_put(r, object, "chips", p->chips);
    sm_put_text(r, object, "plan", cli_serve_plan_words(r, &q->system, &p->plan));
    sm_put(r, object, "batch", p->batch);
    sm_put_bool(r, object, "fits", p->fits);
    sm_put(r, object, "most_batch", p->most_batch);
    put_time(r, object, "ttft_s", p->ttft_s, q, SM_REGIME_prefill);
    put_time(r, object, "tpot_s", p->tpot_s, q, SM_REGIME_decode);
    sm_put(r, object, "tokens_per_s_per_chip", p->tokens_per_s_per_chip);
    sm_put(r, object, "tokens_per_s_per_chip_with_prefill", p->tokens_per_s_per_chip_with_prefill);
    put_money(r, object, "usd_per_million_tokens", p->usd_per_million_tokens);
    put_money(r, object, "usd_per_million_tokens_with_prefill",
              p->usd_per_million_tokens_with_prefill);
    put_memory(r, object, &p->memory);
    sm_put_text(r, object, "bound", cli_serve_bound(r, &q->system, &p->decode));
    put_step(r, object, "breakdown_s", &p->decode);
    put_step(r, object, "prefill_breakdown_s", &p->prefill);
    put_lower(r, object, &p->decode);
    if (p->depth <= 0) return;
    sm_put(r, object, "speculation_depth", p->depth);
    sm_put(r, object, "tokens_per_step", p->tokens_per_step);
}

static void put_dtypes(sm_report *r, sm_data *object, const sm_serve_dtypes *d) {
    sm_put_text(r, object, "weights", sm_dtype_name(d->weights));
    sm_put_text(r, object, "kv", sm_dtype_name(d->kv));
    sm_put_text(r, object, "compute", sm_dtype_name(d->compute));
}

static void put_detail(sm_report *r, const cli_served *a) {
    const sm_serve_detail *d = a->detail;
    sm_data *object = sm_put_object(r, r->data, "best");
    put_point(r, object, a->q, &d->point);
    put_dtypes(r, object, &a->q->job.dtypes);
    sm_data *list = sm_put_array(r, object, "collectives");
    for (int i = 0; i < d->collectives; i++) {
        const sm_serve_collective *c = &d->collective[i];
        sm_data *item = sm_put_object(r, list, NULL);
        sm_put_text(r, item, "op", sm_collective_name(c->op));
        sm_put_text(r, item, "array", c->array);
        sm_put_text(r, item, "axis", c->axis);
        sm_put(r, item, "count", c->count);
        sm_put(r, item, "bytes_per_chip", c->bytes);
        sm_put(r, item, "time_s", c->time_s);
        sm_put_text(r, item, "algorithm", c->algorithm ? c->algorithm : "");
    }
    sm_data *turn = sm_put_object(r, object, "turning_points");
    sm_put(r, turn, "kv_over_weights_context", d->turn_kv_context > 0 ? d->turn_kv_context : NAN);
    sm_put(r, turn, "kv_over_weights_batch", d->turn_kv_batch > 0 ? d->turn_kv_batch : NAN);
    sm_put(r, turn, "compute_over_weights_batch",
           d->turn_compute_batch > 0 ? d->turn_compute_batch : NAN);
    sm_put_text(r, object, "advice", d->advice);
    if (a->fullest) put_point(r, sm_put_object(r, object, "within_tpot"), a->q, a->fullest);
    if (a->sweep) cli_serve_sweep_fields(r, object, a);
}

static void put_pools(sm_report *r, const cli_served *a) {
    const sm_disaggregated *p = a->pools;
    sm_data *object = sm_put_object(r, r->data, "disaggregated");
    put_point(r, sm_put_object(r, object, "prefill"), a->q, &p->prefill);
    put_point(r, sm_put_object(r, object, "decode"), a->q, &p->decode);
    sm_put(r, object, "prefill_batch", p->prefill_batch);
    sm_put(r, object, "prefill_chips_per_decode_chip", p->prefill_per_decode_chips);
    sm_put(r, object, "kv_bytes", p->kv_bytes);
    sm_put(r, object, "kv_transfer_s", p->kv_transfer_s);
    sm_put(r, object, "tokens_per_s_per_chip", p->tokens_per_s_per_chip);
    put_money(r, object, "usd_per_million_tokens", p->usd_per_million_tokens);
}

static void put_fleet(sm_report *r, const cli_served *a) {
    const sm_fleet *f = a->fleet;
    sm_data *object = sm_put_object(r, r->data, "fleet");
    put_point(r, sm_put_object(r, object, "replica"), a->q, &f->point);
    sm_put(r, object, "requests_per_s", a->q->requests_per_s);
    sm_put(r, object, "replicas", f->replicas);
    sm_put(r, object, "chips", f->chips);
    put_money(r, object, "usd_per_hour", f->usd_per_hour);
    sm_put(r, object, "utilisation", f->utilisation);
    sm_put(r, object, "requests_per_s_per_replica", f->requests_per_s_per_replica);
}

static void put_job(sm_report *r, const cli_serving *q) {
    const sm_serve_job *job = &q->job;
    sm_params params = sm_model_params(&q->model);
    sm_data *model = sm_put_object(r, r->data, "model");
    sm_put_text(r, model, "name", q->model.name);
    sm_put(r, model, "params", params.total);
    sm_put(r, model, "active_params", params.active);
    sm_put(r, model, "kv_bytes_per_token", sm_model_kv_bytes_per_token(&q->model, job->dtypes.kv));
    sm_data *system = sm_put_object(r, r->data, "system");
    sm_put_text(r, system, "name", q->system.text);
    sm_put_text(r, system, "chip", q->system.chip.name);
    sm_put(r, system, "chips", q->system.chips);
    sm_data *asked = sm_put_object(r, r->data, "request");
    sm_put(r, asked, "prompt", job->prompt);
    sm_put(r, asked, "output", job->output);
    sm_put(r, asked, "context", job->context > 0 ? job->context : job->prompt + job->output / 2);
    sm_put_text(r, asked, "weights", q->dtype_words[0]);
    sm_put_text(r, asked, "kv", q->dtype_words[1]);
    sm_put_text(r, asked, "compute", q->dtype_words[2]);
}

static void put_search(sm_report *r, const sm_serve_result *s) {
    sm_data *fields = sm_put_object(r, r->data, "search");
    sm_put(r, fields, "space", s->space);
    sm_put(r, fields, "evaluated", s->evaluated);
    sm_put(r, fields, "pruned", s->pruned);
    sm_put(r, fields, "seconds", s->seconds);
    sm_put(r, fields, "least_chips", s->least_chips > 0 ? (double)s->least_chips : NAN);
}

void cli_serve_fields(sm_report *r, const cli_served *a) {
    put_job(r, a->q);
    if (a->result) put_search(r, a->result);
    sm_data *list = sm_put_array(r, r->data, "frontier");
    for (size_t i = 0; a->result && i < a->result->n; i++) {
        sm_data *point = sm_put_object(r, list, NULL);
        put_point(r, point, a->q, &a->result->point[i]);
        put_dtypes(r, point, cli_serve_dtypes(a, i));
    }
    if (a->detail) put_detail(r, a);
    if (a->pools) put_pools(r, a);
    if (a->fleet) put_fleet(r, a);
    if (a->reason) sm_put_text(r, r->data, "reason", a->reason);
}

/* serve_fields: the answer of `serve` as JSON, field by field of the published contract. */
#include "pages.h"
#include "serve.h"
#include <math.h>

static void put_time(sm_report *r, sm_data *object, const char *key, const double s[3],
                     const cli_serving *q, sm_regime regime) {
    sm_data *time = cli_object(r, object, key);
    double low = NAN, high = NAN;
    cli_put(r, time, "lower", s[0]);
    cli_put(r, time, "expected", s[1]);
    cli_put(r, time, "upper", s[2]);
    sm_calibration_interval(q->used, &q->system.chip, regime, s[1], &low, &high);
    sm_data *interval = cli_array(r, time, "interval");
    cli_put(r, interval, NULL, low);
    cli_put(r, interval, NULL, high);
}

static void put_memory(sm_report *r, sm_data *object, const sm_serve_memory *m) {
    sm_data *memory = cli_object(r, object, "memory_bytes");
    cli_put(r, memory, "params", m->params);
    cli_put(r, memory, "kv", m->kv);
    cli_put(r, memory, "activations", m->activations);
    cli_put(r, memory, "buffers", m->buffers);
    cli_put(r, memory, "total", m->total);
    cli_put(r, memory, "capacity", m->capacity);
    cli_put(r, memory, "free", m->capacity - m->total);
}

static void put_step(sm_report *r, sm_data *object, const char *key, const sm_step_price *p) {
    sm_data *step = cli_object(r, object, key);
    cli_put(r, step, "weights", p->breakdown_s.weights);
    cli_put(r, step, "kv", p->breakdown_s.kv);
    cli_put(r, step, "compute", p->breakdown_s.compute);
    cli_put(r, step, "network", p->breakdown_s.network);
    cli_put(r, step, "other", p->breakdown_s.other);
}

static void put_lower(sm_report *r, sm_data *object, const sm_step_price *p) {
    sm_data *lower = cli_object(r, object, "lower_s");
    cli_put(r, lower, "weights", p->bound_weights_s);
    cli_put(r, lower, "kv", p->bound_kv_s);
    cli_put(r, lower, "compute", p->bound_compute_s);
    cli_put(r, lower, "network", p->bound_network_s);
}

static void put_money(sm_report *r, sm_data *object, const char *key, double usd) {
    cli_put(r, object, key, usd > 0.0 ? usd : NAN);
}

static void put_point(sm_report *r, sm_data *object, const cli_serving *q,
                      const sm_serve_point *p) {
    cli_put(r, object, "chips", p->chips);
    cli_put_text(r, object, "plan", cli_serve_plan_words(r, &q->system, &p->plan));
    cli_put(r, object, "batch", p->batch);
    cli_put_bool(r, object, "fits", p->fits);
    cli_put(r, object, "most_batch", p->most_batch);
    put_time(r, object, "ttft_s", p->ttft_s, q, SM_REGIME_prefill);
    put_time(r, object, "tpot_s", p->tpot_s, q, SM_REGIME_decode);
    cli_put(r, object, "tokens_per_s_per_chip", p->tokens_per_s_per_chip);
    cli_put(r, object, "tokens_per_s_per_chip_with_prefill", p->tokens_per_s_per_chip_with_prefill);
    put_money(r, object, "usd_per_million_tokens", p->usd_per_million_tokens);
    put_money(r, object, "usd_per_million_tokens_with_prefill",
              p->usd_per_million_tokens_with_prefill);
    put_memory(r, object, &p->memory);
    cli_put_text(r, object, "bound", cli_serve_bound(r, &q->system, &p->decode));
    put_step(r, object, "breakdown_s", &p->decode);
    put_step(r, object, "prefill_breakdown_s", &p->prefill);
    put_lower(r, object, &p->decode);
    if (p->depth <= 0) return;
    cli_put(r, object, "speculation_depth", p->depth);
    cli_put(r, object, "tokens_per_step", p->tokens_per_step);
}

static void put_dtypes(sm_report *r, sm_data *object, const sm_serve_dtypes *d) {
    cli_put_text(r, object, "weights", sm_dtype_name(d->weights));
    cli_put_text(r, object, "kv", sm_dtype_name(d->kv));
    cli_put_text(r, object, "compute", sm_dtype_name(d->compute));
}

static void put_detail(sm_report *r, const cli_served *a) {
    const sm_serve_detail *d = a->detail;
    sm_data *object = cli_object(r, r->data, "best");
    put_point(r, object, a->q, &d->point);
    put_dtypes(r, object, &a->q->job.dtypes);
    sm_data *list = cli_array(r, object, "collectives");
    for (int i = 0; i < d->collectives; i++) {
        const sm_serve_collective *c = &d->collective[i];
        sm_data *item = cli_object(r, list, NULL);
        cli_put_text(r, item, "op", sm_collective_name(c->op));
        cli_put_text(r, item, "array", c->array);
        cli_put_text(r, item, "axis", c->axis);
        cli_put(r, item, "count", c->count);
        cli_put(r, item, "bytes_per_chip", c->bytes);
        cli_put(r, item, "time_s", c->time_s);
        cli_put_text(r, item, "algorithm", c->algorithm ? c->algorithm : "");
    }
    sm_data *turn = cli_object(r, object, "turning_points");
    cli_put(r, turn, "kv_over_weights_context", d->turn_kv_context > 0 ? d->turn_kv_context : NAN);
    cli_put(r, turn, "kv_over_weights_batch", d->turn_kv_batch > 0 ? d->turn_kv_batch : NAN);
    cli_put(r, turn, "compute_over_weights_batch",
            d->turn_compute_batch > 0 ? d->turn_compute_batch : NAN);
    cli_put_text(r, object, "advice", d->advice);
    if (a->fullest) put_point(r, cli_object(r, object, "within_tpot"), a->q, a->fullest);
    if (a->sweep) cli_serve_sweep_fields(r, object, a);
}

static void put_pools(sm_report *r, const cli_served *a) {
    const sm_disaggregated *p = a->pools;
    sm_data *object = cli_object(r, r->data, "disaggregated");
    put_point(r, cli_object(r, object, "prefill"), a->q, &p->prefill);
    put_point(r, cli_object(r, object, "decode"), a->q, &p->decode);
    cli_put(r, object, "prefill_batch", p->prefill_batch);
    cli_put(r, object, "prefill_chips_per_decode_chip", p->prefill_per_decode_chips);
    cli_put(r, object, "kv_bytes", p->kv_bytes);
    cli_put(r, object, "kv_transfer_s", p->kv_transfer_s);
    cli_put(r, object, "tokens_per_s_per_chip", p->tokens_per_s_per_chip);
    put_money(r, object, "usd_per_million_tokens", p->usd_per_million_tokens);
}

static void put_fleet(sm_report *r, const cli_served *a) {
    const sm_fleet *f = a->fleet;
    sm_data *object = cli_object(r, r->data, "fleet");
    put_point(r, cli_object(r, object, "replica"), a->q, &f->point);
    cli_put(r, object, "requests_per_s", a->q->requests_per_s);
    cli_put(r, object, "replicas", f->replicas);
    cli_put(r, object, "chips", f->chips);
    put_money(r, object, "usd_per_hour", f->usd_per_hour);
    cli_put(r, object, "utilisation", f->utilisation);
    cli_put(r, object, "requests_per_s_per_replica", f->requests_per_s_per_replica);
}

static void put_job(sm_report *r, const cli_serving *q) {
    const sm_serve_job *job = &q->job;
    sm_params params = sm_model_params(&q->model);
    sm_data *model = cli_object(r, r->data, "model");
    cli_put_text(r, model, "name", q->model.name);
    cli_put(r, model, "params", params.total);
    cli_put(r, model, "active_params", params.active);
    cli_put(r, model, "kv_bytes_per_token", sm_model_kv_bytes_per_token(&q->model, job->dtypes.kv));
    sm_data *system = cli_object(r, r->data, "system");
    cli_put_text(r, system, "name", q->system.text);
    cli_put_text(r, system, "chip", q->system.chip.name);
    cli_put(r, system, "chips", q->system.chips);
    sm_data *asked = cli_object(r, r->data, "request");
    cli_put(r, asked, "prompt", job->prompt);
    cli_put(r, asked, "output", job->output);
    cli_put(r, asked, "context", job->context > 0 ? job->context : job->prompt + job->output / 2);
    cli_put_text(r, asked, "weights", q->dtype_words[0]);
    cli_put_text(r, asked, "kv", q->dtype_words[1]);
    cli_put_text(r, asked, "compute", q->dtype_words[2]);
}

static void put_search(sm_report *r, const sm_serve_result *s) {
    sm_data *fields = cli_object(r, r->data, "search");
    cli_put(r, fields, "space", s->space);
    cli_put(r, fields, "evaluated", s->evaluated);
    cli_put(r, fields, "pruned", s->pruned);
    cli_put(r, fields, "seconds", s->seconds);
    cli_put(r, fields, "least_chips", s->least_chips > 0 ? (double)s->least_chips : NAN);
}

void cli_serve_fields(sm_report *r, const cli_served *a) {
    put_job(r, a->q);
    if (a->result) put_search(r, a->result);
    sm_data *list = cli_array(r, r->data, "frontier");
    for (size_t i = 0; a->result && i < a->result->n; i++) {
        sm_data *point = cli_object(r, list, NULL);
        put_point(r, point, a->q, &a->result->point[i]);
        put_dtypes(r, point, cli_serve_dtypes(a, i));
    }
    if (a->detail) put_detail(r, a);
    if (a->pools) put_pools(r, a);
    if (a->fleet) put_fleet(r, a);
    if (a->reason) cli_put_text(r, r->data, "reason", a->reason);
}

/* simulate_fields: the answer of `simulate` as JSON. */
#include "scalemodel/page.h"
#include "simulate.h"

static void put_percentiles(sm_report *r, const char *key, const sm_percentiles *p) {
    sm_data *object = sm_put_object(r, r->data, key);
    sm_put(r, object, "mean", p->mean);
    sm_put(r, object, "p50", p->p50);
    sm_put(r, object, "p90", p->p90);
    sm_put(r, object, "p99", p->p99);
    sm_put(r, object, "max", p->most);
}

static void put_question(sm_report *r, const cli_simulating *q) {
    const sm_simulation *o = &q->options;
    sm_data *model = sm_put_object(r, r->data, "model"),
            *system = sm_put_object(r, r->data, "system");
    sm_put_text(r, model, "name", q->model.name);
    sm_put_text(r, system, "on", q->system.text);
    sm_put(r, system, "chips_per_replica", q->engine.chips);
    sm_put_text(r, r->data, "plan", q->plan_text);
    sm_put_text(
        r, r->data, "policy",
        (const char *const[]){"static", "continuous", "chunked", "disaggregated"}[o->policy]);
    sm_put(r, r->data, "replicas", o->replicas);
    if (o->policy == SM_POLICY_DISAGGREGATED) {
        sm_put_text(r, r->data, "prefill_plan", q->prefill_plan_text);
        sm_put(r, r->data, "prefill_replicas", o->prefill_replicas);
    }
    sm_put_text(r, r->data, "arrivals", cli_arrivals_words(r, q));
    sm_put(r, r->data, "kv_tokens", q->engine.kv_tokens);
}

static void put_rates(sm_report *r, const sm_simulated *s) {
    sm_put(r, r->data, "requests", s->requests);
    sm_put(r, r->data, "finished", s->finished);
    sm_put(r, r->data, "refused", s->refused);
    sm_put(r, r->data, "seconds", s->seconds);
    sm_put(r, r->data, "requests_per_s", s->requests_per_s);
    sm_put(r, r->data, "output_tokens_per_s", s->output_tokens_per_s);
    sm_put(r, r->data, "output_tokens_per_s_per_chip", s->output_tokens_per_s_per_chip);
    sm_put(r, r->data, "goodput_per_s", s->goodput_per_s);
    sm_put(r, r->data, "within_slo", s->within_slo);
    sm_put(r, r->data, "utilisation", s->utilisation);
    sm_put(r, r->data, "mean_batch", s->mean_batch);
    sm_put(r, r->data, "mean_in_system", s->mean_in_system);
    sm_put(r, r->data, "preemptions", s->preemptions);
    sm_put(r, r->data, "steps", s->steps);
    sm_put(r, r->data, "prefix_hit_rate", s->prefix_hit_rate);
}

static void put_tokens(sm_report *r, const sm_simulated *s) {
    sm_data *tokens = sm_put_object(r, r->data, "tokens");
    sm_put(r, tokens, "prompt", s->prompt_tokens);
    sm_put(r, tokens, "cached", s->cached_tokens);
    sm_put(r, tokens, "recomputed", s->recomputed_tokens);
    sm_put(r, tokens, "prefilled", s->prefilled_tokens);
    sm_put(r, tokens, "output", s->output_tokens);
    sm_put(r, tokens, "decoded", s->decoded_tokens);
}

static void put_series(sm_report *r, const sm_simulated *s) {
    sm_data *list = sm_put_array(r, r->data, "series");
    for (int i = 0; i < s->samples; i++) {
        sm_data *item = sm_put_object(r, list, NULL);
        sm_put(r, item, "at_s", s->sample[i].at_s);
        sm_put(r, item, "waiting", s->sample[i].waiting);
        sm_put(r, item, "running", s->sample[i].running);
        sm_put(r, item, "kv_occupancy", s->sample[i].kv_occupancy);
        sm_put(r, item, "utilisation", s->sample[i].utilisation);
    }
}

void cli_simulate_fields(sm_report *r, const cli_simulating *q) {
    const sm_simulated *s = &q->result;
    put_question(r, q);
    sm_put_bool(r, r->data, "fits", true);
    if (q->max_rate) {
        bool found = q->max_rate->rate > 0.0;
        sm_put(r, r->data, "max_qps", found ? s->requests / s->arriving_s : 0.0);
        sm_put(r, r->data, "max_rate", q->max_rate->rate);
        sm_put_bool(r, r->data, "unbounded", q->max_rate->unbounded);
    }
    put_rates(r, s);
    put_percentiles(r, "ttft_s", &s->ttft_s);
    put_percentiles(r, "tpot_s", &s->tpot_s);
    put_percentiles(r, "e2e_s", &s->e2e_s);
    put_percentiles(r, "queue_s", &s->queue_s);
    put_tokens(r, s);
    put_series(r, s);
}

/* ---- --explain ---- */

/* What a simulation gives cannot be derived; what its goodput is made of can. */
sm_why *cli_simulate_why(sm_report *r, const cli_simulating *q) {
    const sm_simulated *s = &q->result;
    const char *from = "simulated";
    sm_why *why = sm_page_why(r, "goodput, requests per second",
                              "requests x share within the SLO / seconds", s->goodput_per_s, "");
    sm_page_leaf(r, why, "requests", s->requests, "", "given");
    sm_page_leaf(r, why, "share within the SLO", s->within_slo, "", from);
    sm_page_leaf(r, why, "first arrival to last token", s->seconds, "s", from);
    return why;
}

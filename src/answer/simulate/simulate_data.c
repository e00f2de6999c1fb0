/* simulate_data: the answer about a simulation as data. */
#include "simulate_asked.h"

static const char *const policies[] = {
#define X(id, name, help) name,
    SM_POLICIES(X)
#undef X
};

static void put_percentiles(sm_report *r, const char *key, const sm_percentiles *p) {
    sm_put_all(r, sm_put_object(r, r->data, key), "mean|p50|p90|p99|max", p->mean, p->p50, p->p90,
               p->p99, p->most);
}

static void put_question(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulation *o = &q->options;
    sm_data *model = sm_put_object(r, r->data, "model");
    sm_data *system = sm_put_object(r, r->data, "system");
    sm_put_text(r, model, "name", q->in.model->name);
    sm_put_text(r, system, "on", q->in.system->text);
    sm_put(r, system, "chips_per_replica", q->engine.chips);
    sm_put_text(r, r->data, "plan", q->plan_text);
    sm_put_text(r, r->data, "policy", policies[o->policy]);
    sm_put(r, r->data, "replicas", o->replicas);
    if (o->policy == SM_POLICY_DISAGGREGATED) {
        sm_put_text(r, r->data, "prefill_plan", q->prefill_plan_text);
        sm_put(r, r->data, "prefill_replicas", o->prefill_replicas);
    }
    sm_put_text(r, r->data, "arrivals", sm_simulate_arrivals_words(r, q));
    sm_put(r, r->data, "kv_tokens", q->engine.kv_tokens);
}

void sm_simulate_data(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulated *s = &q->result;
    put_question(r, q);
    sm_put_bool(r, r->data, "fits", true);
    if (q->max_rate) {
        bool found = q->max_rate->rate > 0.0;
        sm_put_all(r, r->data, "max_qps|max_rate", found ? s->requests / s->arriving_s : 0.0,
                   q->max_rate->rate);
        sm_put_bool(r, r->data, "unbounded", q->max_rate->unbounded);
    }
    sm_put_all(r, r->data,
               "requests|finished|refused|seconds|requests_per_s|output_tokens_per_s|"
               "output_tokens_per_s_per_chip|goodput_per_s|within_slo|utilisation|mean_batch|"
               "mean_in_system|preemptions|steps|prefix_hit_rate",
               s->requests, s->finished, s->refused, s->seconds, s->requests_per_s,
               s->output_tokens_per_s, s->output_tokens_per_s_per_chip, s->goodput_per_s,
               s->within_slo, s->utilisation, s->mean_batch, s->mean_in_system, s->preemptions,
               s->steps, s->prefix_hit_rate);
    put_percentiles(r, "ttft_s", &s->ttft_s);
    put_percentiles(r, "tpot_s", &s->tpot_s);
    put_percentiles(r, "e2e_s", &s->e2e_s);
    put_percentiles(r, "queue_s", &s->queue_s);
    sm_put_all(r, sm_put_object(r, r->data, "tokens"),
               "prompt|cached|recomputed|prefilled|output|decoded", s->prompt_tokens,
               s->cached_tokens, s->recomputed_tokens, s->prefilled_tokens, s->output_tokens,
               s->decoded_tokens);
    sm_data *list = sm_put_array(r, r->data, "series");
    for (int i = 0; i < s->samples; i++)
        sm_put_all(r, sm_put_object(r, list, NULL), "at_s|waiting|running|kv_occupancy|utilisation",
                   s->sample[i].at_s, s->sample[i].waiting, s->sample[i].running,
                   s->sample[i].kv_occupancy, s->sample[i].utilisation);
}

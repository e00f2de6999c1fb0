/* simulate_page: the answer about a simulation as a page. */
#include "simulate_asked.h"
#include <math.h>

static const char *const policies[] = {
#define X(id, name, help) name,
    SM_POLICIES(X)
#undef X
};

const char *sm_simulate_arrivals_words(sm_report *r, const sm_simulate_asked *q) {
    static const char *const kinds[] = {"poisson", "gamma", "uniform"};
    const sm_request_source *s = &q->source;
    const sm_synthetic *d = &s->draw;
    const char *drawn = "as they came";
    if (s->drawn && d->kind == SM_ARRIVALS_GAMMA)
        drawn =
            sm_textf(r, "gamma:%s/s:%s", sm_show_exact(r, d->rate_per_s), sm_show_exact(r, d->cv));
    else if (s->drawn)
        drawn = sm_textf(r, "%s:%s/s", kinds[d->kind], sm_show_exact(r, d->rate_per_s));
    return q->in.trace ? sm_textf(r, "%.120s, %s", q->in.trace, drawn) : drawn;
}

static void tell_rate(sm_report *r, const sm_simulate_asked *q) {
    const sm_max_rate *m = q->max_rate;
    if (!m) return;
    double share = 100.0 * q->in.within;
    if (m->rate <= 0.0)
        sm_report_text(r,
                       "No rate meets the SLO: at the lowest tried %.1f %% of requests do, and "
                       "%g %% must. TTFT p50 is then %s, TPOT p50 %s.",
                       100.0 * q->result.within_slo, share,
                       sm_show_seconds(r, q->result.ttft_s.p50),
                       sm_show_seconds(r, q->result.tpot_s.p50));
    else if (m->unbounded)
        sm_report_text(r, "The SLO is met at every rate tried, up to %s requests/s.",
                       sm_show_number(r, q->result.requests / q->result.arriving_s));
    else
        sm_report_text(r, "Highest rate at which %g %% of requests meet the SLO: %s requests/s.",
                       share, sm_show_number(r, q->result.requests / q->result.arriving_s));
}

static void put_row(sm_report *r, sm_table *t, const char *name, const sm_percentiles *p) {
    sm_page_row(r, t, name, sm_show_seconds(r, p->mean), sm_show_seconds(r, p->p50),
                sm_show_seconds(r, p->p90), sm_show_seconds(r, p->p99),
                sm_show_seconds(r, p->most));
}

static void tell_slo(sm_report *r, const sm_simulation *o, const sm_simulated *s) {
    if (o->ttft_s <= 0.0 && o->tpot_s <= 0.0) return;
    const char *ttft = o->ttft_s > 0.0 ? sm_textf(r, "TTFT %s", sm_show_seconds(r, o->ttft_s)) : "";
    const char *tpot = o->tpot_s > 0.0 ? sm_textf(r, "TPOT %s", sm_show_seconds(r, o->tpot_s)) : "";
    sm_report_text(r, "SLO %s%s%s: %s of requests within it, goodput %s requests/s", ttft,
                   ttft[0] && tpot[0] ? ", " : "", tpot, sm_show_percent(r, s->within_slo),
                   sm_show_number(r, s->goodput_per_s));
}

static void tell_rates(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulated *s = &q->result;
    sm_report_text(r, "%s requests in %s: %s requests/s, %s output tokens/s, %s of them per chip",
                   sm_show_exact(r, s->finished), sm_show_seconds(r, s->seconds),
                   sm_show_number(r, s->requests_per_s), sm_show_number(r, s->output_tokens_per_s),
                   sm_show_number(r, s->output_tokens_per_s_per_chip));
    if (s->refused > 0.0)
        sm_report_text(r, "%s requests were refused: they can never fit in the KV cache",
                       sm_show_exact(r, s->refused));
    tell_slo(r, &q->options, s);
    sm_report_text(r,
                   "engines busy %s of the time, %s sequences in a decode step, %s requests in "
                   "the system",
                   sm_show_percent(r, s->utilisation), sm_show_number(r, s->mean_batch),
                   sm_show_number(r, s->mean_in_system));
    if (s->preemptions > 0.0)
        sm_report_text(r, "%s preemptions, %s tokens computed again",
                       sm_show_exact(r, s->preemptions), sm_show_count(r, s->recomputed_tokens));
    if (q->options.prefix_cache)
        sm_report_text(r, "prefix cache: %s of the prompts' tokens found",
                       sm_show_percent(r, s->prefix_hit_rate));
}

/* The series in at most eight rows, each an average. */
static void tell_series(sm_report *r, const sm_simulated *s) {
    enum { ROWS = 8 };
    int group = (s->samples + ROWS - 1) / ROWS;
    if (group == 0) return;
    double begin = s->sample[s->samples - 1].at_s - s->seconds;
    sm_table *t = sm_page_table(r, "Over time", ">until|>waiting|>running|>KV cache|>busy");
    for (int i = 0; i < s->samples; i += group) {
        int n = s->samples - i < group ? s->samples - i : group;
        sm_sample sum = {.at_s = s->sample[i + n - 1].at_s - begin};
        for (int j = i; j < i + n; j++) {
            sum.waiting += s->sample[j].waiting / n;
            sum.running += s->sample[j].running / n;
            sum.kv_occupancy += s->sample[j].kv_occupancy / n;
            sum.utilisation += s->sample[j].utilisation / n;
        }
        sm_page_row(r, t, sm_show_seconds(r, sum.at_s), sm_show_number(r, sum.waiting),
                    sm_show_number(r, sum.running), sm_show_percent(r, sum.kv_occupancy),
                    sm_show_percent(r, sum.utilisation));
    }
    sm_report_table(r, t);
}

void sm_simulate_page(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulation *o = &q->options;
    const sm_lengths *l = &q->source.draw.lengths;
    sm_report_heading(r, "%s on %s", q->in.model->name, q->in.system->text);
    if (o->policy == SM_POLICY_DISAGGREGATED)
        sm_report_text(r, "disaggregated: %d x %s for prefill, %d x %s for decoding",
                       o->prefill_replicas, q->prefill_plan_text, o->replicas, q->plan_text);
    else
        sm_report_text(r, "%s batching, %d x %s, at most %.0f sequences each", policies[o->policy],
                       o->replicas, q->plan_text, o->most_batch);
    if (q->in.trace) sm_report_text(r, "requests: %s", sm_simulate_arrivals_words(r, q));
    else
        sm_report_text(r, "requests: %s, prompts of %s and outputs of %s tokens",
                       sm_simulate_arrivals_words(r, q), sm_show_exact(r, l->prompt),
                       sm_show_exact(r, l->output));
    sm_report_text(r, "KV cache of a replica: %s tokens of %s",
                   sm_show_count(r, q->engine.kv_tokens),
                   sm_show_bytes(r, q->engine.kv_bytes_per_token));
    tell_rate(r, q);
    tell_rates(r, q);
    sm_table *t = sm_page_table(r, "Latency", "<|>mean|>p50|>p90|>p99|>longest");
    put_row(r, t, "queue", &q->result.queue_s);
    put_row(r, t, "time to first token", &q->result.ttft_s);
    put_row(r, t, "time per output token", &q->result.tpot_s);
    put_row(r, t, "end to end", &q->result.e2e_s);
    sm_report_table(r, t);
    tell_series(r, &q->result);
}

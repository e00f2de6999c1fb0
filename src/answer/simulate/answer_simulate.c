/* answer_simulate: requests through replicas of a serving engine. */
#include "serve_asked.h"
#include "scalemodel/io.h"
#include <string.h>

typedef struct sm_simulate_asked {
    sm_engine engine; /* the first, for report->kept is its address */
    sm_simulate_question in;
    sm_software software;      /* with its defaults on the chip */
    bool own_tokens, own_most; /* those count for a step */
    sm_serve_job job;
    sm_plan plan, prefill_plan;
    const char *plan_text, *prefill_plan_text; /* as the library writes them */
    const char *chosen;                        /* why this plan, where none was given; else NULL */
    sm_serve *serve, *prefill_serve;           /* on as many chips as a replica has */
    sm_engine prefill_engine;
    sm_simulation options;
    sm_request_source *source;
    sm_synthetic draw;     /* its lengths are told, of a trace too */
    double padding;        /* share of the work, where job.model is padded for the plan */
    sm_max_rate *max_rate; /* NULL when not asked for */
    sm_simulated result;
    sm_report *report;
    sm_tracks *tracks; /* NULL: no timeline */
    sm_slice *slice;
    int room; /* of slices */
    sm_watch watch;
} sm_simulate_asked;

/* ---- page ---- */

/* "50/s", "20/s@8 h,2/s@16 h" */
static const char *rate_words(sm_report *r, const sm_synthetic *d) {
    if (d->spans == 0) return sm_textf(r, "%s/s", sm_show_exact(r, d->rate_per_s));
    const char *all = "";
    for (int i = 0; i < d->spans; i++)
        all = sm_textf(r, "%s%s%s/s@%s", all, i > 0 ? "," : "",
                       sm_show_exact(r, d->span[i].rate_per_s),
                       sm_show_seconds(r, d->span[i].seconds));
    return all;
}

/* "poisson:50/s", "trace.csv, as they came, 2/s" */
static const char *arrivals_words(sm_report *r, const sm_simulate_asked *q) {
    static const char *const kinds[] = {"poisson", "gamma", "uniform"};
    const sm_synthetic *d = &q->draw;
    bool is_drawn = q->in.drawn != NULL;
    const sm_simulated *s = &q->result;
    const char *drawn = "as they came";
    if (s->arriving_s > 0)
        drawn = sm_textf(r, "%s, %s/s", drawn, sm_show_number(r, s->requests / s->arriving_s));
    double clients = q->options.concurrency, most = (double)q->in.clients.last;
    bool turns = d->turns > 0.0, thinks = q->options.think_s > 0.0;
    if (clients > 0.0)
        drawn = sm_textf(r, "%s%s %s", sm_show_exact(r, clients),
                         most > clients ? sm_textf(r, " to %s", sm_show_exact(r, most)) : "",
                         turns || thinks ? "clients" : "in flight");
    else if (is_drawn)
        drawn = sm_textf(r, "%s:%s%s", kinds[d->kind], rate_words(r, d),
                         d->kind == SM_ARRIVALS_GAMMA ? sm_textf(r, ":%s", sm_show_exact(r, d->cv))
                                                      : "");
    if (turns)
        drawn = sm_textf(r, "%s, conversations of %s turns", drawn, sm_show_exact(r, d->turns));
    if (thinks) drawn = sm_textf(r, "%s that think %s", drawn, sm_show_seconds(r, d->think_s));
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
    sm_page_row(r, t, name, p->mean, p->p50, p->p90, p->p99, p->most);
}

static bool has_slo(const sm_simulation *o, bool *of_classes) {
    *of_classes = false;
    for (int i = 0; i < o->n_classes; i++)
        *of_classes |= o->classes[i].ttft_s > 0.0 || o->classes[i].tpot_s > 0.0;
    return *of_classes || o->ttft_s > 0.0 || o->tpot_s > 0.0;
}

static void tell_slo(sm_report *r, const sm_simulation *o, const sm_simulated *s) {
    bool of_classes;
    if (!has_slo(o, &of_classes)) return;
    const char *ttft = o->ttft_s > 0.0 ? sm_textf(r, "TTFT %s", sm_show_seconds(r, o->ttft_s)) : "";
    const char *tpot = o->tpot_s > 0.0 ? sm_textf(r, "TPOT %s", sm_show_seconds(r, o->tpot_s)) : "";
    bool both = ttft[0] && tpot[0], any = ttft[0] || tpot[0];
    sm_report_text(r, "SLO %s%s%s%s: %s of requests within it, goodput %s requests/s", ttft,
                   both ? ", " : "", tpot,
                   !of_classes ? ""
                   : any       ? ", or that of the class"
                               : "of the class",
                   sm_show_percent(r, s->within_slo), sm_show_number(r, s->goodput_per_s));
}

static void tell_rates(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulated *s = &q->result;
    sm_report_text(r, "%s requests in %s: %s requests/s, %s output tokens/s, %s of them per chip",
                   sm_show_exact(r, s->finished), sm_show_seconds(r, s->seconds),
                   sm_show_number(r, s->requests_per_s), sm_show_number(r, s->output_tokens_per_s),
                   sm_show_number(r, s->output_tokens_per_s_per_chip));
    if (s->overloaded)
        sm_report_text(r,
                       "Overloaded: %s requests/s come and %s are served; the queue grows as long "
                       "as they come, to %s, and the latencies below with it.",
                       sm_show_number(r, s->requests / s->arriving_s),
                       sm_show_number(r, s->requests_per_s), sm_show_count(r, s->waiting_at_last));
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
    bool again = q->draw.turns > 0.0 || q->draw.shared_prefix > 0.0;
    if (again && !q->options.prefix_cache)
        sm_report_text(r,
                       "no prefix cache: each prompt is computed whole; --prefix-cache keeps what "
                       "was computed before");
    if (q->options.prefix_cache)
        sm_report_text(r, "prefix cache: %s of the prompts' tokens found",
                       sm_show_percent(r, s->prefix_hit_rate));
}

static const char *const cache_sizes[] = {"HBM of all replicas", "HBM and host memory",
                                          "half of all found",   "80 % of all found",
                                          "90 % of all found",   "all that can be found"};

/* What a cache of another size would find: how much memory is worth having, and where. Of sizes
 * that are alike the last is told, of the memory at hand the first. */
static void show_cache(sm_report *r, const sm_simulate_asked *q) {
    const sm_cache_point *all = q->result.cache;
    if (!(all[SM_CACHE_ALL].found > 0.0)) return;
    sm_table *t = sm_page_table(r, "One prefix cache for all replicas, by its size",
                                "<as large as|>{n}tokens|>{B}bytes|>{%}finds, of the prompts");
    for (int k = 0; k < SM_CACHE_COUNT; k++) {
        if (k == SM_CACHE_HOST && all[k].tokens <= all[SM_CACHE_HBM].tokens) continue;
        if (k > SM_CACHE_HOST && k < SM_CACHE_ALL && all[k].tokens >= all[k + 1].tokens) continue;
        sm_page_row(r, t, cache_sizes[k], all[k].tokens,
                    all[k].tokens * q->engine.kv_bytes_per_token, all[k].found);
    }
}

/* The series in at most eight rows, each an average. */
static void tell_series(sm_report *r, const sm_simulated *s) {
    enum { ROWS = 8 };
    int group = (s->samples + ROWS - 1) / ROWS;
    if (group == 0) return;
    double begin = s->sample[s->samples - 1].at_s - s->seconds;
    sm_table *t =
        sm_page_table(r, "Over time", ">{s}until|>waiting|>running|>{%}KV cache|>{%}busy");
    for (int i = 0; i < s->samples; i += group) {
        int n = s->samples - i < group ? s->samples - i : group;
        sm_sample sum = {.at_s = s->sample[i + n - 1].at_s - begin};
        for (int j = i; j < i + n; j++) {
            sum.waiting += s->sample[j].waiting / n;
            sum.running += s->sample[j].running / n;
            sum.kv_occupancy += s->sample[j].kv_occupancy / n;
            sum.utilisation += s->sample[j].utilisation / n;
        }
        sm_page_row(r, t, sum.at_s, sum.waiting, sum.running, sum.kv_occupancy, sum.utilisation);
    }
}

/* Of one replica: requests in it on average. */
static sm_evidence_near evidence_of(const sm_simulate_asked *q, sm_evidence_asked *asked) {
    const sm_lengths *l = &q->draw.lengths;
    sm_dtype weights = q->job.as_stored ? q->in.model->stored.type : q->job.dtypes.weights;
    double in_flight =
        q->options.concurrency > 0.0 ? q->options.concurrency : q->result.mean_in_system;
    *asked = sm_evidence_of_serving(&(sm_evidence_question){.model = q->in.model,
                                                            .chip = &q->in.system->chip,
                                                            .software = q->in.software,
                                                            .type = weights,
                                                            .plan = &q->plan},
                                    (double[]){sm_plan_chips(&q->plan),
                                               in_flight * q->plan.data / q->options.replicas,
                                               q->job.prompt, l->output});
    return sm_evidence_nearest(asked, q->in.calibration);
}

/* ---- as benchmark tools tell it ---- */

/* A column of measured rows (docs/truth-data.md), in its unit. */
typedef struct told {
    const char *what, *column, *other; /* other: where a tool has that one instead */
    double mean, median, of_other;
} told;
enum { TOLD = 4 };
/* What a tool calls it, and its value in the tool's unit; NULL: it does not tell it. */
static const char *told_by(const told *t, size_t tool, double *value) {
    double times;
    const char *key = sm_truth_tool_key(tool, t->column, &times);
    *value = t->mean;
    if (key && (strstr(key, "median") || strstr(key, "p50"))) *value = t->median;
    if (!key && t->other) key = sm_truth_tool_key(tool, t->other, &times), *value = t->of_other;
    if (key) *value /= times;
    return key;
}

/* As data, as a table, or neither. */
static void tell_told(sm_report *r, const sm_simulated *s, sm_data *list, sm_table *t) {
    told all[TOLD];
    const char *name, *key;
    double value;
    all[0] = (told){"first token",        "measured.ttft_ms",  NULL,
                    1e3 * s->ttft_s.mean, 1e3 * s->ttft_s.p50, NAN};
    all[1] = (told){"per token",          "measured.tpot_ms",  NULL,
                    1e3 * s->tpot_s.mean, 1e3 * s->tpot_s.p50, NAN};
    all[2] = (told){"request",           "measured.latency_ms", NULL,
                    1e3 * s->e2e_s.mean, 1e3 * s->e2e_s.p50,    NAN};
    all[3] = (told){"tokens/s",
                    "measured.tokens_per_s",
                    "measured.tokens_per_s_per_chip",
                    s->output_tokens_per_s,
                    s->output_tokens_per_s,
                    s->output_tokens_per_s_per_chip};
    for (size_t tool = 0; (name = sm_truth_tool_name(tool)) != NULL; tool++) {
        sm_data *object = list ? sm_put_object(r, list, NULL) : NULL;
        if (object) sm_put(r, object, "tool", name);
        for (int i = 0; i < TOLD; i++) {
            if ((key = told_by(&all[i], tool, &value)) == NULL) continue;
            if (object) sm_put(r, object, key, value);
            if (t) sm_page_row(r, t, i ? "" : name, all[i].what, key, value);
        }
    }
}

/* Each class of requests by itself; the SLO is its own where it has one. */
static void show_classes(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulation *o = &q->options;
    if (o->n_classes == 0) return;
    bool all = o->ttft_s > 0.0 || o->tpot_s > 0.0;
    sm_table *t = sm_page_table(r, "By class",
                                "<class|>{=}priority|>{=}requests|>{s}TTFT p50|>{s}TTFT p99|"
                                ">{s}TPOT p50|>{s}TPOT p99|>{%}within SLO");
    for (int i = 0; i < o->n_classes; i++) {
        const sm_class_served *c = &q->result.of_class[i];
        bool limited = all || o->classes[i].ttft_s > 0.0 || o->classes[i].tpot_s > 0.0;
        sm_page_row(r, t, o->classes[i].name, o->classes[i].priority, c->finished, c->ttft_s.p50,
                    c->ttft_s.p99, c->tpot_s.p50, c->tpot_s.p99, limited ? c->within_slo : NAN);
    }
}

static void show_question(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulation *o = &q->options;
    const sm_lengths *l = &q->draw.lengths;
    sm_report_heading(r, "%s on %s", q->in.model->name, q->in.system->text);
    if (o->policy == SM_POLICY_DISAGGREGATED)
        sm_report_text(r, "disaggregated: %d x %s for prefill, %d x %s for decoding",
                       o->prefill_replicas / q->prefill_plan.data, q->prefill_plan_text,
                       o->replicas / q->plan.data, q->plan_text);
    else
        sm_report_text(r, "%s batching, %d x %s, at most %.0f sequences each",
                       sm_policy_names[o->policy], o->replicas / q->plan.data, q->plan_text,
                       o->most_batch);
    if (q->plan.data > 1)
        sm_report_text(r, "%d copies of the model, each an engine of its own", o->replicas);
    sm_engine_page(r, &q->software);
    sm_engine_limits_page(r, &q->software, &q->in.system->chip, q->own_tokens, q->own_most);
    sm_stand_in_page(r, q->in.software, &q->in.system->chip, sm_serve_calibration(q->serve));
    if (q->padding > 0) sm_padding_note(r, &q->plan, q->in.model, q->job.model, q->padding);
    if (q->in.trace) sm_report_text(r, "requests: %s", arrivals_words(r, q));
    else
        sm_report_text(
            r, "requests: %s, prompts of %s%s and outputs of %s tokens%s", arrivals_words(r, q),
            q->draw.turns > 0.0 ? "what went before and " : "", sm_show_exact(r, l->prompt),
            sm_show_exact(r, l->output),
            q->draw.shared_prefix > 0.0
                ? sm_textf(r, ", all behind the same %s", sm_show_exact(r, q->draw.shared_prefix))
                : "");
    if (q->chosen) sm_report_text(r, "plan: %s; --plan names another", q->chosen);
    sm_report_text(r, "KV cache of a replica: %s tokens of %s",
                   sm_show_count(r, q->engine.kv_tokens * q->plan.data),
                   sm_show_bytes(r, q->engine.kv_bytes_per_token));
    if (q->engine.tokens_per_step > 1.0)
        sm_report_text(r,
                       "speculation: a step gives a sequence %s tokens of its %d drafted and one",
                       sm_show_number(r, q->engine.tokens_per_step), q->engine.drafted);
}

static void show_evidence(sm_report *r, const sm_simulate_asked *q) {
    sm_evidence_asked asked;
    const sm_evidence_near near = evidence_of(q, &asked);
    sm_evidence_page(r, &asked, &near);
}

static void show_answer(sm_report *r, const sm_simulate_asked *q) {
    tell_rate(r, q);
    tell_rates(r, q);
    sm_table *t = sm_page_table(r, "Latency", "<|>{s}mean|>{s}p50|>{s}p90|>{s}p99|>{s}longest");
    put_row(r, t, "queue", &q->result.queue_s);
    put_row(r, t, "time to first token", &q->result.ttft_s);
    put_row(r, t, "time per output token", &q->result.tpot_s);
    put_row(r, t, "end to end", &q->result.e2e_s);
    show_classes(r, q);
    show_cache(r, q);
    show_evidence(r, q);
    if (q->options.concurrency > 0.0) { /* its clients are what such tools are */
        t = sm_page_table(r, "What benchmark tools call it", "<tool|<of|<is|>here");
        tell_told(r, &q->result, NULL, t);
        sm_report_text(r, "All of them count from when a client sends a request: a wait for a free "
                          "client is in none. The time per token is (request - first token) / "
                          "(tokens - 1): without the first.");
    }
    tell_series(r, &q->result);
}

enum { USUAL_PROMPT = 2048, USUAL_OUTPUT = 512, USUAL_REQUESTS = 10000, PER_CLIENT = 10 };

/* ---- data ---- */

static void put_percentiles(sm_report *r, sm_data *in, const char *key, const sm_percentiles *p) {
    sm_put(r, sm_put_object(r, in, key), "mean|p50|p90|p99|max", p->mean, p->p50, p->p90, p->p99,
           p->most);
}

static void put_question(sm_report *r, const sm_simulate_asked *q) {
    const sm_simulation *o = &q->options;
    int replicas = o->replicas / q->plan.data;
    int prefill_replicas = o->prefill_replicas / q->prefill_plan.data;
    sm_put(r, sm_put_object(r, r->data, "model"), "name", q->in.model->name);
    sm_put(r, sm_put_object(r, r->data, "system"), "on|chips_per_replica", q->in.system->text,
           sm_plan_chips(&q->plan));
    if (q->padding > 0) sm_padding_data(r, r->data, q->in.model, q->job.model, q->padding);
    sm_put(r, r->data, "plan|plan_chosen|policy|replicas", q->plan_text, q->chosen,
           sm_policy_names[o->policy], replicas);
    if (o->policy == SM_POLICY_DISAGGREGATED)
        sm_put(r, r->data, "prefill_plan|prefill_replicas", q->prefill_plan_text, prefill_replicas);
    sm_put(r, r->data, "software|most_batch|step_tokens", q->software.name, o->most_batch,
           o->policy == SM_POLICY_CHUNKED ? o->chunk_tokens : o->prefill_tokens);
    sm_put(r, r->data, "arrivals|kv_tokens|kv_bytes_per_token|speculation_depth|tokens_per_step",
           arrivals_words(r, q), q->engine.kv_tokens * q->plan.data, q->engine.kv_bytes_per_token,
           q->engine.drafted, q->engine.tokens_per_step);
    if (!q->in.trace)
        sm_put(r, r->data, "prompt|output", q->draw.lengths.prompt, q->draw.lengths.output);
    sm_put(r, sm_put_object(r, r->data, "slo"), "ttft_s|tpot_s|within",
           o->ttft_s > 0.0 ? o->ttft_s : NAN, o->tpot_s > 0.0 ? o->tpot_s : NAN,
           q->max_rate ? q->in.within : NAN);
    sm_constants_data(r, r->data, sm_serve_calibration(q->serve), &q->in.system->chip);
}

static void put_answer(sm_report *r, sm_data *in, const sm_simulate_asked *q) {
    const sm_simulated *s = &q->result;
    sm_evidence_asked asked;
    const sm_evidence_near near = evidence_of(q, &asked);
    sm_evidence_data(r, in, &near);
    sm_put(r, in, "fits", (bool)true);
    if (q->max_rate) {
        bool found = q->max_rate->rate > 0.0;
        sm_put(r, in, "max_qps|max_rate|unbounded", found ? s->requests / s->arriving_s : 0.0,
               q->max_rate->rate, q->max_rate->unbounded);
    }
    sm_put(r, in, "arriving_per_s|overloaded|waiting_at_last",
           s->arriving_s > 0.0 ? s->requests / s->arriving_s : NAN, s->overloaded,
           s->waiting_at_last);
    sm_put(r, in,
           "requests|finished|refused|seconds|requests_per_s|output_tokens_per_s|"
           "output_tokens_per_s_per_chip|goodput_per_s|within_slo|utilisation|mean_batch|"
           "mean_in_system|preemptions|steps|prefix_hit_rate",
           s->requests, s->finished, s->refused, s->seconds, s->requests_per_s,
           s->output_tokens_per_s, s->output_tokens_per_s_per_chip, s->goodput_per_s, s->within_slo,
           s->utilisation, s->mean_batch, s->mean_in_system, s->preemptions, s->steps,
           s->prefix_hit_rate);
    put_percentiles(r, in, "ttft_s", &s->ttft_s);
    put_percentiles(r, in, "tpot_s", &s->tpot_s);
    put_percentiles(r, in, "e2e_s", &s->e2e_s);
    put_percentiles(r, in, "queue_s", &s->queue_s);
    sm_data *classes = q->options.n_classes > 0 ? sm_put_array(r, in, "classes") : NULL;
    for (int i = 0; i < q->options.n_classes; i++) {
        const sm_class_served *c = &s->of_class[i];
        sm_data *object = sm_put_object(r, classes, NULL);
        sm_put(r, object, "class|priority|finished|within_slo", q->options.classes[i].name,
               q->options.classes[i].priority, c->finished, c->within_slo);
        put_percentiles(r, object, "ttft_s", &c->ttft_s);
        put_percentiles(r, object, "tpot_s", &c->tpot_s);
        put_percentiles(r, object, "e2e_s", &c->e2e_s);
    }
    tell_told(r, s, sm_put_array(r, in, "as_told_by"), NULL);
    sm_data *caches = s->cache[SM_CACHE_ALL].found > 0.0 ? sm_put_array(r, in, "caches") : NULL;
    for (int k = 0; caches && k < SM_CACHE_COUNT; k++)
        sm_put(r, sm_put_object(r, caches, NULL), "as_large_as|tokens|bytes|found", cache_sizes[k],
               s->cache[k].tokens, s->cache[k].tokens * q->engine.kv_bytes_per_token,
               s->cache[k].found);
    sm_put(r, sm_put_object(r, in, "tokens"), "prompt|cached|recomputed|prefilled|output|decoded",
           s->prompt_tokens, s->cached_tokens, s->recomputed_tokens, s->prefilled_tokens,
           s->output_tokens, s->decoded_tokens);
    sm_data *list = sm_put_array(r, in, "series");
    for (int i = 0; i < s->samples; i++)
        sm_put(r, sm_put_object(r, list, NULL), "at_s|waiting|running|kv_occupancy|utilisation",
               s->sample[i].at_s, s->sample[i].waiting, s->sample[i].running,
               s->sample[i].kv_occupancy, s->sample[i].utilisation);
}

/* A simulation over time: the steps of its replicas as a timeline, its queue,
 * batch and memory as a chart. */

#define MOST_SLICES 200000 /* what a viewer still opens */

/* ---- the timeline ---- */

static void note_served(void *context, const sm_request_served *served) {
    const sm_watch *theirs = ((sm_simulate_asked *)context)->in.watch;
    if (theirs && theirs->served) theirs->served(theirs->context, served);
}

static void note_step(void *context, int replica, double start_s, double seconds, double steps,
                      double decoding, double prefill) {
    sm_simulate_asked *q = context;
    const sm_watch *theirs = q->in.watch;
    if (theirs && theirs->step)
        theirs->step(theirs->context, replica, start_s, seconds, steps, decoding, prefill);
    if (!q->tracks || q->tracks->slices >= MOST_SLICES) return;
    sm_slice *more =
        sm_arena_grow(q->report->arena, q->slice, (int)q->tracks->slices, &q->room, sizeof *more);
    q->report->out_of_memory |= !more;
    if (!more) return;
    q->tracks->slice = q->slice = more;
    const char *kind = decoding > 0.0 ? prefill > 0.0 ? "mixed" : "decode" : "prefill", *name;
    if (prefill > 0.0 && decoding > 0.0)
        name = sm_textf(q->report, "decode %.0f, prefill %.0f", decoding, prefill);
    else if (prefill > 0.0) name = sm_textf(q->report, "prefill %.0f", prefill);
    else name = sm_textf(q->report, "decode %.0f, %.0f steps", decoding, steps);
    q->slice[q->tracks->slices++] = (sm_slice){replica, name, kind, start_s, seconds};
}

/* Steps as they are simulated become slices; q->watch tells them and the caller's watch. */
static sm_status begin_tracks(sm_simulate_asked *q, sm_error *err) {
    sm_report *r = q->report;
    const sm_simulation *o = &q->options;
    bool split = o->policy == SM_POLICY_DISAGGREGATED;
    q->watch = (sm_watch){q, note_served, note_step};
    if (!q->in.timeline) return SM_OK;
    int n = o->replicas + (split ? o->prefill_replicas : 0);
    const char **names = sm_arena_array(r->arena, (size_t)n, sizeof *names);
    q->tracks = sm_arena_alloc(r->arena, sizeof *q->tracks);
    if (!names || !q->tracks) return sm_fail_memory(err);
    for (int i = 0; i < n; i++)
        names[i] = i < o->replicas ? sm_textf(r, "replica %d", i)
                                   : sm_textf(r, "prefill %d", i - o->replicas);
    q->tracks->title = sm_textf(r, "%.90s on %.90s", q->in.model->name, q->in.system->text);
    q->tracks->n = n;
    q->tracks->track = names;
    return SM_OK;
}

static sm_status end_tracks(sm_simulate_asked *q, sm_error *err) {
    const sm_simulated *s = &q->result;
    if (!q->tracks) return SM_OK;
    sm_counter *c = sm_arena_array(q->report->arena, 3 * (size_t)s->samples + 1, sizeof *c);
    if (!c) return sm_fail_memory(err);
    q->tracks->counter = c;
    q->tracks->counters = 3 * (size_t)s->samples;
    for (int i = 0; i < s->samples; i++) {
        const sm_sample *at = &s->sample[i];
        *c++ = (sm_counter){"waiting", at->at_s, at->waiting};
        *c++ = (sm_counter){"running", at->at_s, at->running};
        *c++ = (sm_counter){"KV occupancy", at->at_s, at->kv_occupancy};
    }
    q->report->tracks = q->tracks;
    return SM_OK;
}

/* ---- the picture ---- */

/* The queue, the batch and the memory over time, into the report's chart. */
static void draw(sm_simulate_asked *q) {
    const sm_simulated *s = &q->result;
    size_t n = (size_t)s->samples;
    double places[SM_MAX_SAMPLES], value[4][SM_MAX_SAMPLES];
    double first = n > 0 ? s->sample[n - 1].at_s - s->seconds : 0.0;
    for (size_t i = 0; i < n; i++) {
        const sm_sample *at = &s->sample[i];
        places[i] = at->at_s - first;
        value[0][i] = at->waiting;
        value[1][i] = at->running;
        value[2][i] = at->kv_occupancy;
        value[3][i] = at->utilisation;
    }
    const sm_series series[] = {{"waiting", SM_MARK_LINE, n, places, value[0], NULL},
                                {"running", SM_MARK_LINE, n, places, value[1], NULL},
                                {"KV cache in use", SM_MARK_LINE, n, places, value[2], NULL},
                                {"engine busy", SM_MARK_LINE, n, places, value[3], NULL}};
    const sm_panel panel[] = {{"Requests", "time", "requests", "s", "", .n = 2, .series = series},
                              {"Shares", "time", "share", "s", "", .n = 2, .series = series + 2}};
    sm_report_chart(q->report, &(sm_chart){sm_textf(q->report, "%.60s on %.60s", q->in.model->name,
                                                    q->in.system->text),
                                           q->plan_text, 2, panel});
}

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

/* The best of what serve found is the plan of a replica. */
static sm_status take_best(void *context, sm_serve *serve, sm_serving_found *found, sm_error *err) {
    sm_simulate_asked *q = context;
    char text[256];
    (void)serve;
    if (!found->best)
        return sm_fail(err, SM_NEGATIVE, "%s", found->reason ? found->reason : "no plan fits");
    sm_plan_format(&found->best->plan, q->in.system->torus_dims, text, sizeof text);
    q->in.plan = sm_source_of("the plan", sm_textf(q->report, "%s", text));
    return SM_OK;
}

/* No plan was given: that which serve prefers for such requests on all chips of the replica. Where
 * none meets the SLO the simulation shows by how much the best misses it. */
static sm_status choose_plan(sm_simulate_asked *q, sm_error *err) {
    const sm_simulate_question *in = &q->in;
    const sm_simulation *o = &q->options;
    const bool limited = o->ttft_s > 0.0 || o->tpot_s > 0.0;
    sm_serve_question ask = {.size = sizeof ask,
                             .model = in->model,
                             .system = in->system,
                             .calibration = in->calibration,
                             .prompt = q->job.prompt,
                             .output = q->job.output,
                             .kv = {1, {in->dtypes.kv}},
                             .compute = {1, {in->dtypes.compute}},
                             .speculation = in->speculation,
                             .ttft_s = o->ttft_s,
                             .tpot_s = o->tpot_s,
                             .chips_least = in->system->chips,
                             .chips_most = in->system->chips,
                             .software = in->software,
                             .engine = in->engine};
    if (!in->as_stored) ask.weights = (sm_dtype_list){1, {in->dtypes.weights}};
    sm_status status = sm_serve_ask(&ask, NULL, q->report, take_best, q, err);
    const char *of = limited ? "within the SLO by serve" : "by serve";
    if (status == SM_NEGATIVE && limited) {
        ask.ttft_s = ask.tpot_s = 0.0;
        of = "by serve, which finds none within the SLO";
        status = sm_serve_ask(&ask, NULL, q->report, take_best, q, err);
    }
    q->chosen =
        sm_textf(q->report, "most tokens a chip %s, prompts of %s and outputs of %s tokens", of,
                 sm_show_exact(q->report, q->job.prompt), sm_show_exact(q->report, q->job.output));
    return status;
}

static sm_status read_question(sm_simulate_asked *q, sm_error *err) {
    sm_simulate_question *in = &q->in;
    sm_simulation_defaults(&q->options);
    q->software = in->engine ? *in->engine : *sm_software_of(in->software);
    sm_software_on(&q->software, &in->system->chip, in->model, in->speculation.depth != 0);
    sm_simulation_follow(&q->options, &q->software, false);
    if (in->simulation) {
        sm_status status = sm_sized_take(&q->options, sizeof q->options, in->simulation, err);
        if (status) return status;
    }
    bool of_classes;
    if (in->find_max_rate && !has_slo(&q->options, &of_classes))
        return sm_fail(err, SM_USAGE, "--find-max-qps needs an SLO: --ttft, --tpot or both");
    if (in->within <= 0.0) in->within = 0.99;
    if (in->drawn) q->draw = *in->drawn;
    if (q->draw.seed) q->options.seed = q->draw.seed;
    if (!in->drawn && !in->trace)
        return sm_fail(err, SM_USAGE, "a simulation needs requests: of a trace, or drawn");
    sm_status status =
        in->trace ? sm_request_trace_lengths(in->trace, USUAL_REQUESTS, &q->draw.lengths, err)
                  : SM_OK;
    if (status) return status;
    if (!(q->draw.lengths.prompt > 0.0)) q->draw.lengths.prompt = USUAL_PROMPT;
    if (!(q->draw.lengths.output > 0.0)) q->draw.lengths.output = USUAL_OUTPUT;
    q->job = (sm_serve_job){.size = sizeof(sm_serve_job),
                            .model = in->model,
                            .system = in->system,
                            .dtypes = in->dtypes,
                            .as_stored = in->as_stored,
                            .prompt = sm_synthetic_prompt(&q->draw),
                            .output = q->draw.lengths.output,
                            .speculation = in->speculation,
                            .software = &q->software,
                            .reserve = -1.0,
                            .usd_per_chip_hour = -1.0};
    status = sm_question_seen(in->model, "prompt", q->job.prompt, err);
    if (!status && !in->plan.text) status = choose_plan(q, err);
    if (!status && !in->prefill_plan.text) in->prefill_plan = in->plan;
    if (!status) status = read_plan(q, &in->plan, &q->plan, &q->plan_text, err);
    if (status) return status;
    return read_plan(q, &in->prefill_plan, &q->prefill_plan, &q->prefill_plan_text, err);
}

/* ---- the engines ---- */

/* On the part of the system that a replica takes, as in serve. */
static sm_status make_engine(sm_simulate_asked *q, const sm_plan *plan, const sm_source *text,
                             sm_serve **serve, sm_engine *engine, sm_error *err) {
    sm_system part;
    sm_serve_job job = q->job;
    const sm_simulation *o = &q->options;
    job.like = q->serve; /* of pools both have the same programs */
    double step = o->policy == SM_POLICY_CHUNKED ? o->chunk_tokens : o->prefill_tokens;
    sm_engine_use use = {.mean_tokens = q->job.prompt + q->draw.lengths.output,
                         .prefills = engine == &q->prefill_engine,
                         .to_chips = sm_plan_chips(&q->plan)};
    double chips = (double)o->prefill_replicas * sm_plan_chips(plan);
    if (chips + (double)o->replicas * use.to_chips <= job.system->chips) use.within = job.system;
    use.step_tokens = fmax(step / (use.prefills ? 1 : plan->pipeline), o->most_batch);
    if (sm_system_part(job.system, sm_plan_chips(plan), &part)) job.system = &part;
    sm_status status = sm_serve_new(&job, serve, err);
    if (status) return status;
    sm_serve_set_calibration(*serve, q->in.calibration);
    status = sm_serve_engine(*serve, plan, &use, q->report->arena, engine, err);
    /* Host memory is for those who ask for it: swaps, or a size. */
    if (q->in.host_bytes) engine->host_kv_tokens = *q->in.host_bytes / engine->kv_bytes_per_token;
    else if (q->options.preempt != SM_PREEMPT_SWAP) engine->host_kv_tokens = 0.0;
    return sm_question_blame(text, status, err);
}

/* Groups of chips of a copy with sequences of their own. */
static double groups_of(const sm_simulate_asked *q, const sm_plan *plan) {
    return fmax(1.0, sm_plan_groups(plan, q->in.model) / plan->data);
}

/* Each group of a pipeline has a step's budget, as in serve; one prompt that of its group. */
static void fill_limits(sm_simulate_asked *q) {
    sm_simulation *o = &q->options;
    const sm_plan *plan = &q->plan, *prefill = &q->prefill_plan;
    const double groups = groups_of(q, plan), both = groups * plan->pipeline,
                 budget = sm_software_budget(&q->software, groups) * plan->pipeline,
                 apart = sm_software_budget(&q->software, groups_of(q, prefill));
    const bool chunked = o->policy == SM_POLICY_CHUNKED;
    q->own_most = o->most_batch <= 0.0 && !q->software.most_given;
    q->own_tokens =
        (chunked ? o->chunk_tokens : o->prefill_tokens) <= 0.0 && !q->software.budget_given;
    if (o->most_batch <= 0.0) o->most_batch = sm_software_most(&q->software, groups);
    if (o->chunk_tokens <= 0.0) o->chunk_tokens = fmin(SM_MAX_TOKENS, budget);
    const bool pools = o->policy == SM_POLICY_DISAGGREGATED; /* a stage takes one at a time */
    if (o->prefill_tokens <= 0.0)
        o->prefill_tokens = fmin(SM_MAX_TOKENS, apart * (pools ? 1 : prefill->pipeline));
    if (o->prompt_tokens <= 0.0) o->prompt_tokens = fmax(1.0, o->chunk_tokens / both);
    o->groups = groups_of(q, prefill);
}

/* Copies of a model are engines of their own. */
static sm_status make_engines(sm_simulate_asked *q, sm_error *err) {
    sm_status status =
        sm_question_pad(q->report, &q->plan, &q->job.model, q->job.prompt, &q->padding, err);
    if (status) return status;
    fill_limits(q);
    status = make_engine(q, &q->plan, &q->in.plan, &q->serve, &q->engine, err);
    if (!status && q->options.policy == SM_POLICY_DISAGGREGATED)
        status = make_engine(q, &q->prefill_plan, &q->in.prefill_plan, &q->prefill_serve,
                             &q->prefill_engine, err);
    q->options.engine = &q->engine;
    q->options.prefill_engine = &q->prefill_engine;
    sm_simulation *o = &q->options;
    o->replicas = (int)fmin(INT32_MAX, (double)o->replicas * q->plan.data);
    o->prefill_replicas = (int)fmin(INT32_MAX, (double)o->prefill_replicas * q->prefill_plan.data);
    return status;
}

/* ---- the simulation ---- */

static sm_status find_rate(sm_simulate_asked *q, double *rate, sm_error *err) {
    sm_rated_arrivals arrivals = {q->source, sm_request_source_begin};
    q->max_rate = sm_arena_alloc(q->report->arena, sizeof *q->max_rate);
    if (!q->max_rate) return sm_fail_memory(err);
    sm_status status = sm_simulate_max_rate(&q->options, &arrivals, q->in.within, q->max_rate, err);
    q->result = q->max_rate->at;
    *rate = q->max_rate->rate;
    return status;
}

static sm_status simulate_at(sm_simulate_asked *q, double rate, sm_error *err) {
    sm_arrivals arrivals;
    sm_status status = sm_request_source_begin(q->source, rate, &arrivals, err);
    if (!status) status = begin_tracks(q, err);
    if (!status) status = sm_simulate(&q->options, &arrivals, &q->watch, &q->result, err);
    if (!status) status = end_tracks(q, err);
    if (!status && q->in.plot) draw(q);
    return status;
}

/* What a simulation gives cannot be derived; what its goodput is made of can. */
static sm_why *explain(sm_report *r, const sm_simulated *s) {
    sm_why *why = sm_page_why(r, NULL, "goodput, requests per second",
                              "requests x share within the SLO / seconds", s->goodput_per_s, "");
    sm_page_given(r, why, "requests", s->requests, "");
    sm_page_leaf(r, why, "share within the SLO", s->within_slo, "", "simulated");
    sm_page_leaf(r, why, "first arrival to last token", s->seconds, "s", "simulated");
    return why;
}

static sm_status open_source(sm_simulate_asked *q, sm_error *err) {
    const double clients = q->options.concurrency;
    double most = q->in.requests;
    if (!(most > 0.0))
        most = clients > 0.0 ? PER_CLIENT * clients * fmax(1.0, q->draw.turns)
               : q->in.trace ? HUGE_VAL
                             : USUAL_REQUESTS;
    sm_request_source_close(q->source); /* of the point before */
    return sm_request_source_open(q->in.trace, q->in.drawn ? &q->draw : NULL, most, &q->source,
                                  err);
}

static sm_status answer(sm_simulate_asked *q, sm_report *r, sm_error *err) {
    double rate = 1.0;
    sm_status status = open_source(q, err);
    if (!status && q->in.find_max_rate) status = find_rate(q, &rate, err);
    bool found = rate > 0.0;
    if (!status && found) status = simulate_at(q, rate, err);
    if (status) return status;
    put_question(r, q);
    put_answer(r, r->data, q);
    show_question(r, q);
    show_answer(r, q);
    if (q->in.explain) r->why = explain(r, &q->result);
    return found ? SM_OK : SM_NEGATIVE;
}

/* A closed loop of so many clients for each value of the range, of which it has several. */
static sm_status answer_points(sm_simulate_asked *q, sm_report *r, sm_error *err) {
    const sm_simulated *s = &q->result;
    bool of_classes, limited = has_slo(&q->options, &of_classes);
    put_question(r, q);
    show_question(r, q);
    sm_table *t = sm_page_table(r, "Operating points",
                                ">{=}in flight|>tokens/s|>a chip|>{s}TPOT p50|>{s}p99|"
                                ">{s}TTFT p50|>{s}p99|>{s}request p99|>{%}within SLO");
    sm_data *list = sm_put_array(r, r->data, "points");
    for (int i = 0; i < sm_range_points(&q->in.clients); i++) {
        q->options.concurrency = (double)sm_range_value(&q->in.clients, i);
        sm_status status = open_source(q, err);
        if (!status) status = simulate_at(q, 1.0, err);
        if (status) return status;
        sm_data *point = sm_put_object(r, list, NULL);
        sm_put(r, point, "concurrency", q->options.concurrency);
        put_answer(r, point, q);
        sm_page_row(r, t, q->options.concurrency, s->output_tokens_per_s,
                    s->output_tokens_per_s_per_chip, s->tpot_s.p50, s->tpot_s.p99, s->ttft_s.p50,
                    s->ttft_s.p99, s->e2e_s.p99, limited ? s->within_slo : NAN);
    }
    show_evidence(r, q);
    return SM_OK;
}

static void release(void *kept) {
    sm_serve_free(((sm_simulate_asked *)kept)->prefill_serve); /* like the other */
    sm_serve_free(((sm_simulate_asked *)kept)->serve);
}

sm_status sm_answer_simulate(const sm_simulate_question *question, sm_report *r, sm_error *err) {
    sm_simulate_asked *q = sm_arena_alloc(r->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->report = r;
    sm_status status = sm_sized_take(&q->in, sizeof q->in, question, err);
    bool there = q->in.model && q->in.system;
    if (!status) status = sm_question_needs(there, "a model and a system", err);
    if (status) return status;
    sm_put(r, r->data, "command", "simulate");
    status = read_question(q, err);
    if (!status) status = make_engines(q, err);
    /* Not one sequence fits: an answer. */
    if (status == SM_NEGATIVE) {
        sm_put(r, r->data, "fits|reason", (bool)false, err->sentence);
        sm_report_text(r, "Nothing can be simulated: %s.", err->sentence);
    }
    const bool several = q->in.clients.last > q->in.clients.first;
    if (!status) status = several ? answer_points(q, r, err) : answer(q, r, err);
    sm_request_source_close(q->source);
    if (!status && q->in.keep_engine) r->kept = q, r->release = release;
    else release(q);
    return status;
}

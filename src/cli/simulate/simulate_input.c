/* simulate_input: the options of `simulate`, and the question they ask. */
#include "scalemodel/page.h"
#include "simulate.h"
#include <math.h>
#include <string.h>

enum {
    USUAL_PROMPT = 2048,
    USUAL_OUTPUT = 512,
    USUAL_REQUESTS = 10000,
    MOST_REQUESTS = 1000000000,
    MOST_REPLICAS = 4096
};

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(cli_simulate_values, member), value, help }
#define FLAG(name, member, help)                                                                   \
    { name, 0, CLI_FLAG, offsetof(cli_simulate_values, member), NULL, help }

const cli_option cli_simulate_options[] = {
    TEXT("on", on, "SYSTEM", "the chips of one replica: h100-sxm:1x8, tpu-v5e:4x4, ..."),
    TEXT("plan", plan, "PLAN", "how a replica is sharded: tensor=8"),
    TEXT("trace", trace, "FILE", "requests from a file: CSV or JSON lines, also gzip"),
    TEXT("arrivals", arrivals, "HOW",
         "poisson:50/s, gamma:50/s:CV, uniform:50/s; with --trace the times are drawn and the "
         "lengths read; replay (as is with --trace)"),
    TEXT("requests", requests, "N", "at most so many (10000 drawn, all of a trace)"),
    TEXT("prompt", prompt, "TOKENS", "mean prompt of drawn requests (2048)"),
    TEXT("output", output, "TOKENS", "mean output of drawn requests (512)"),
    TEXT("prompt-cv", prompt_cv, "CV",
         "their coefficient of variation: 0 fixed (as is), else lognormal"),
    TEXT("output-cv", output_cv, "CV", "the same of outputs"),
    TEXT("policy", policy, "NAME", "static, continuous (as is), chunked or disaggregated"),
    TEXT("prefill-plan", prefill_plan, "PLAN", "of the prefill pool (as --plan)"),
    TEXT("prefill-replicas", prefill_replicas, "N", "of the prefill pool (1)"),
    TEXT("replicas", replicas, "N", "behind the router; those that decode when disaggregated (1)"),
    TEXT("batch", batch, "N", "sequences at once in a replica (256)"),
    TEXT("chunk", chunk, "TOKENS", "tokens of a chunked step, decoding ones included (512)"),
    TEXT("prefill-tokens", prefill_tokens, "TOKENS", "most of other prefill steps (8192)"),
    TEXT("page", page, "TOKENS", "of a page of the KV cache (16)"),
    TEXT("preempt", preempt, "HOW", "recompute (as is) or swap: when pages run out"),
    TEXT("route", route, "HOW", "least-loaded (as is), round-robin or affinity"),
    FLAG("prefix-cache", prefix_cache, "keep prefixes and conversations for later prompts"),
    TEXT("host-memory", host_memory, "BYTES",
         "of a replica, for swaps and the prefix cache (half of the hosts' with --preempt swap, "
         "else 0)"),
    TEXT("ttft", ttft, "TIME", "the SLO: time to first token"),
    TEXT("tpot", tpot, "TIME", "the SLO: time per output token"),
    TEXT("weights", weights, "DTYPE", "of weights (bf16)"),
    TEXT("kv", kv, "DTYPE", "of the KV cache (bf16)"),
    TEXT("compute", compute, "DTYPE", "what matmuls compute in (bf16)"),
    TEXT("seed", seed, "N", "of what is drawn (1)"),
    FLAG("find-max-qps", find_max_qps, "the highest rate that meets the SLO"),
    TEXT("within", within, "SHARE", "of requests that must meet it (0.99)"),
    TEXT("csv", csv, "FILE", "write a row for each request"),
    TEXT("plot", plot, "FILE", "write the queue, the batch and the memory over time as SVG"),
    TEXT("timeline", timeline, "FILE", "write the steps of the replicas for Perfetto"),
    CLI_CALIBRATION_OPTIONS(cli_simulate_values, constants),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- words ---- */

/* The index of a word among n; *into stays as it is when none is given. */
static sm_status read_word(const char *option, const char *text, const char *const *names, int n,
                           int *into, sm_error *err) {
    if (!text) return SM_OK;
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0) {
            *into = i;
            return SM_OK;
        }
    sm_source source = sm_source_of(option, text);
    const char *near = sm_nearest(text, source.length, names, (size_t)n);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "'%.40s' is none of the choices; did you mean %s?", text,
                      near ? near : names[0]);
}

static const char *const policy_names[] = {
#define X(id, name, help) name,
    SM_POLICIES(X)
#undef X
};
static const char *const preempt_names[] = {"recompute", "swap"};
static const char *const route_names[] = {"least-loaded", "round-robin", "affinity"};
static const char *const arrival_names[] = {"poisson", "gamma", "uniform", "replay"};

static sm_status read_share(const char *option, const char *text, double most, double *value,
                            sm_error *err) {
    sm_status status = cli_quantity(option, text, SM_Q_COUNT, value, err);
    if (status || !text || *value <= most) return status;
    sm_source source = sm_source_of(option, text);
    return sm_fail_at(err, &source, (sm_span){0, source.length}, "expected a number from 0 to %g",
                      most);
}

/* ---- arrivals ---- */

/* 50/s, 3000/min, 0.5/h, or a bare number a second. */
static sm_status read_rate(const sm_source *source, sm_span span, double *rate_per_s,
                           sm_error *err) {
    const char *text = source->text + span.offset;
    const char *slash = memchr(text, '/', span.length);
    size_t number = slash ? (size_t)(slash - text) : span.length;
    size_t unit = slash ? span.length - number - 1 : 0;
    double seconds = 1.0;
    if (slash && unit == 3 && memcmp(slash + 1, "min", 3) == 0) seconds = 60.0;
    else if (slash && unit == 1 && slash[1] == 'h') seconds = 3600.0;
    else if (slash && !(unit == 1 && slash[1] == 's'))
        return sm_fail_at(err, source, span, "expected a rate as in 50/s, 3000/min or 10/h");
    sm_status status =
        sm_quantity_parse(source, (sm_span){span.offset, number}, SM_Q_COUNT, rate_per_s, err);
    if (status) return status;
    *rate_per_s /= seconds;
    if (*rate_per_s > 0.0 && *rate_per_s <= 1e9) return SM_OK;
    return sm_fail_at(err, source, span, "a rate lies above 0 and at most at 1e9/s");
}

/* poisson:50/s, gamma:50/s:2 */
static sm_status read_drawn(const sm_source *source, size_t name, sm_synthetic *draw,
                            sm_error *err) {
    sm_span all = {0, source->length};
    const char *rate = source->text + name + 1;
    if (name >= source->length)
        return sm_fail_at(err, source, all, "expected a rate, as in %.*s:50/s", (int)name,
                          source->text);
    size_t left = source->length - name - 1;
    const char *colon = memchr(rate, ':', left);
    size_t length = colon ? (size_t)(colon - rate) : left;
    sm_status status = read_rate(source, (sm_span){name + 1, length}, &draw->rate_per_s, err);
    if (status || (!colon && draw->kind != SM_ARRIVALS_GAMMA)) return status;
    if (!colon || draw->kind != SM_ARRIVALS_GAMMA)
        return sm_fail_at(err, source, all,
                          "the gaps of gamma alone have a coefficient of variation, as in "
                          "gamma:50/s:2");
    sm_span cv = {name + 1 + length + 1, left - length - 1};
    status = sm_quantity_parse(source, cv, SM_Q_COUNT, &draw->cv, err);
    if (status || draw->cv <= SM_MAX_CV) return status;
    return sm_fail_at(err, source, cv, "a coefficient of variation is at most %.0f", SM_MAX_CV);
}

static sm_status read_arrivals(const char *text, cli_request_source *into, sm_error *err) {
    if (!text && into->path) return SM_OK;
    if (!text)
        return sm_fail(err, SM_USAGE, "simulate needs --trace FILE or --arrivals poisson:50/s");
    sm_source source = sm_source_of("--arrivals", text);
    size_t name = strcspn(text, ":");
    int kind = 0;
    char word[16] = "";
    if (name < sizeof word) memcpy(word, text, name);
    sm_status status =
        read_word("--arrivals", name < sizeof word ? word : text, arrival_names, 4, &kind, err);
    if (status) return status;
    if (kind == 3 && !into->path)
        return sm_fail(err, SM_USAGE, "--arrivals replay needs --trace FILE");
    if (kind == 3) return SM_OK;
    into->drawn = true;
    into->draw.kind = (sm_arrival_kind)kind;
    return read_drawn(&source, name, &into->draw, err);
}

static sm_status read_lengths(const cli_simulate_values *o, sm_lengths *l, sm_error *err) {
    int64_t prompt = USUAL_PROMPT, output = USUAL_OUTPUT, most = (int64_t)SM_MAX_TOKENS;
    sm_status status = cli_whole("--prompt", o->prompt, 1, most, &prompt, err);
    if (!status) status = cli_whole("--output", o->output, 1, most, &output, err);
    if (!status) status = read_share("--prompt-cv", o->prompt_cv, SM_MAX_CV, &l->prompt_cv, err);
    if (!status) status = read_share("--output-cv", o->output_cv, SM_MAX_CV, &l->output_cv, err);
    l->prompt = (double)prompt;
    l->output = (double)output;
    return status;
}

static sm_status read_source(const cli_simulate_values *o, cli_request_source *s, sm_error *err) {
    int64_t most = 0, seed = 1;
    s->path = o->trace;
    sm_status status = read_arrivals(o->arrivals, s, err);
    if (!status) status = cli_whole("--requests", o->requests, 1, MOST_REQUESTS, &most, err);
    if (!status) status = cli_whole("--seed", o->seed, 0, INT64_MAX, &seed, err);
    if (!status) status = read_lengths(o, &s->draw.lengths, err);
    bool lengths = o->prompt || o->output || o->prompt_cv || o->output_cv;
    if (!status && s->path && lengths)
        return sm_fail(err, SM_USAGE,
                       "the lengths are those of --trace: leave out --prompt, "
                       "--output and their --prompt-cv, --output-cv");
    s->draw.seed = (uint64_t)seed;
    s->most = most > 0 ? (double)most : s->path ? HUGE_VAL : USUAL_REQUESTS;
    s->draw.requests = s->most;
    s->rate = 1.0;
    return status;
}

/* ---- the engine ---- */

static sm_status read_job(const cli_simulate_values *o, cli_simulating *q, sm_error *err) {
    const cli_call *call = q->call;
    sm_serve_dtypes *d = &q->job.dtypes;
    *d = (sm_serve_dtypes){SM_BF16, SM_BF16, SM_BF16};
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (!status) status = cli_system(call, o->on, &q->system, err);
    if (!status) status = cli_need(call, "plan", o->plan, err);
    if (!status) status = cli_dtype("--weights", o->weights, &d->weights, err);
    if (!status) status = cli_dtype("--kv", o->kv, &d->kv, err);
    if (!status) status = cli_dtype("--compute", o->compute, &d->compute, err);
    if (!status && (o->constants.calibration || o->constants.software))
        status = cli_calibration(call, &q->system.chip, &o->constants, &q->calibration, err);
    q->job.model = &q->model;
    q->job.system = &q->system;
    q->job.imbalance = 1.0;
    q->job.reserve = q->job.usd_per_chip_hour = -1.0;
    q->job.prompt = q->source.draw.lengths.prompt;
    q->job.output = q->source.draw.lengths.output;
    return status;
}

static sm_status read_plan(const char *option, const char *text, cli_simulating *q, sm_plan *plan,
                           const char **words, sm_error *err) {
    char shown[256];
    sm_source source = sm_source_of(option, text);
    sm_status status = sm_serve_plan_parse(&source, plan, err);
    if (status) return status;
    sm_plan_format(plan, q->system.torus_dims, shown, sizeof shown);
    *words = sm_arena_copy(q->call->arena, shown, strlen(shown));
    return *words ? SM_OK : sm_fail_memory(err);
}

static sm_status read_plans(const cli_simulate_values *o, cli_simulating *q, sm_error *err) {
    sm_status status = read_plan("--plan", o->plan, q, &q->plan, &q->plan_text, err);
    const char *prefill = o->prefill_plan ? o->prefill_plan : o->plan;
    if (!status)
        status =
            read_plan("--prefill-plan", prefill, q, &q->prefill_plan, &q->prefill_plan_text, err);
    return status;
}

/* ---- policies ---- */

static sm_status read_counts(const cli_simulate_values *o, sm_simulation *s, sm_error *err) {
    const int64_t tokens = (int64_t)SM_MAX_TOKENS;
    int64_t replicas = 1, pool = 1, batch = (int64_t)s->most_batch, page = (int64_t)s->page_tokens;
    int64_t chunk = (int64_t)s->chunk_tokens, prefill = (int64_t)s->prefill_tokens;
    sm_status status = cli_whole("--replicas", o->replicas, 1, MOST_REPLICAS, &replicas, err);
    if (!status)
        status = cli_whole("--prefill-replicas", o->prefill_replicas, 1, MOST_REPLICAS, &pool, err);
    if (!status) status = cli_whole("--batch", o->batch, 1, 1 << 20, &batch, err);
    if (!status) status = cli_whole("--chunk", o->chunk, 1, tokens, &chunk, err);
    if (!status)
        status = cli_whole("--prefill-tokens", o->prefill_tokens, 1, tokens, &prefill, err);
    if (!status) status = cli_whole("--page", o->page, 1, 65536, &page, err);
    s->replicas = (int)replicas;
    s->prefill_replicas = (int)pool;
    s->most_batch = (double)batch;
    s->chunk_tokens = (double)chunk;
    s->prefill_tokens = (double)prefill;
    s->page_tokens = (double)page;
    return status;
}

static sm_status read_policy(const cli_simulate_values *o, cli_simulating *q, sm_error *err) {
    sm_simulation *s = &q->options;
    int policy = SM_POLICY_CONTINUOUS, preempt = 0, route = 0;
    sm_simulation_defaults(s);
    sm_status status =
        read_word("--policy", o->policy, policy_names, SM_POLICY_COUNT, &policy, err);
    if (!status) status = read_word("--preempt", o->preempt, preempt_names, 2, &preempt, err);
    if (!status) status = read_word("--route", o->route, route_names, 3, &route, err);
    if (!status) status = read_counts(o, s, err);
    if (!status) status = cli_quantity("--ttft", o->ttft, SM_Q_SECONDS, &s->ttft_s, err);
    if (!status) status = cli_quantity("--tpot", o->tpot, SM_Q_SECONDS, &s->tpot_s, err);
    q->host_bytes = -1.0;
    if (!status)
        status = cli_quantity("--host-memory", o->host_memory, SM_Q_BYTES, &q->host_bytes, err);
    s->policy = (sm_policy)policy;
    s->preempt = (sm_preempt)preempt;
    s->route = (sm_route)route;
    s->prefix_cache = o->prefix_cache;
    return status;
}

static sm_status check_together(const cli_simulate_values *o, cli_simulating *q, sm_error *err) {
    bool split = q->options.policy == SM_POLICY_DISAGGREGATED;
    if (!split && (o->prefill_plan || o->prefill_replicas))
        return sm_fail(err, SM_USAGE,
                       "--prefill-plan and --prefill-replicas are of --policy "
                       "disaggregated");
    if (o->find_max_qps && !o->ttft && !o->tpot)
        return sm_fail(err, SM_USAGE, "--find-max-qps needs an SLO: --ttft, --tpot or both");
    if (o->within && !o->find_max_qps)
        return sm_fail(err, SM_USAGE, "--within is of --find-max-qps");
    const char *const files[] = {o->csv, o->plot, o->timeline, o->trace};
    static const char *const names[] = {"csv", "plot", "timeline", "trace"};
    for (int i = 0; i < 4; i++)
        if (files[i] && !files[i][0])
            return sm_fail(err, SM_USAGE, "--%s needs the name of a file", names[i]);
    return SM_OK;
}

sm_status cli_simulating_read(const cli_call *call, cli_simulating *q, sm_error *err) {
    const cli_simulate_values *o = call->values;
    q->call = call;
    q->within = 0.99;
    q->find_max_qps = o->find_max_qps;
    q->csv = o->csv;
    q->plot = o->plot;
    q->timeline = o->timeline;
    sm_status status = read_policy(o, q, err);
    if (!status) status = check_together(o, q, err);
    if (!status) status = read_source(o, &q->source, err);
    if (!status) status = read_share("--within", o->within, 1.0, &q->within, err);
    if (!status) status = read_job(o, q, err);
    return status ? status : read_plans(o, q, err);
}

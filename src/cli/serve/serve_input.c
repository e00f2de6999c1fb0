/* serve_input: the options of `serve`, and the question they ask. */
#include "scalemodel/io.h"
#include "serve.h"
#include "sweep.h"
#include <math.h>
#include <string.h>

enum { USUAL_PROMPT = 2048, USUAL_OUTPUT = 512, MOST_USD = 1000000, MOST_DEPTH = 64 };
static const double most_tokens = 1e9, most_batch = 1e9;

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(cli_serve_values, member), value, help }
#define FLAG(name, member, help)                                                                   \
    { name, 0, CLI_FLAG, offsetof(cli_serve_values, member), NULL, help }

const cli_option cli_serve_options[] = {
    TEXT("on", on, "SYSTEM", "the chips there are: tpu-v5e:4x4, h100-sxm:8, ..."),
    TEXT("plan", plan, "PLAN", "keys to keep: tensor=8,expert=2,cache_by=batch"),
    TEXT("batch", batch, "N",
         "sequences that decode at once in a replica; with a whole plan, one point"),
    TEXT("prompt", prompt, "TOKENS", "of a request (2048)"),
    TEXT("output", output_tokens, "TOKENS", "that a request asks for (512)"),
    TEXT("context", context, "TOKENS",
         "cached tokens at which decoding is priced (prompt and half the output)"),
    TEXT("prefix", prefix, "TOKENS", "of the prompt that are in the cache already (0)"),
    TEXT("weights", weights, "DTYPE", "weights are stored in (bf16); int8,bf16 compares"),
    TEXT("kv", kv, "DTYPE", "keys and values are stored in (bf16), or a list"),
    TEXT("compute", compute, "DTYPE", "matmuls are computed in (bf16), or a list"),
    TEXT("ttft", ttft, "TIME", "limit to the time to first token: 1s"),
    TEXT("tpot", tpot, "TIME", "limit to the time per token: 30ms"),
    TEXT("qps", qps, "RATE", "requests a second: the fleet for them"),
    TEXT("chips", chips, "RANGE", "of a replica: 8 or 4..64 (1 to all)"),
    TEXT("speculate", speculate, "K:A",
         "K tokens are drafted and each accepted with probability A: 4:0.8; best:0.8"),
    TEXT("draft", draft, "MODEL", "that drafts them (none: n-grams or heads, for nothing)"),
    TEXT("imbalance", imbalance, "X", "tokens of the fullest expert chip over the mean (1)"),
    TEXT("reserve", reserve, "SHARE", "of the memory that stays free (0.1 on GPUs, 0 else)"),
    TEXT("price", price, "USD", "of a chip for an hour, in place of the catalogue's"),
    TEXT("top", top, "K", "points of the frontier to show; the JSON has all (12)"),
    TEXT("plot", plot, "FILE", "draw the frontier as SVG"),
    FLAG("eager", eager, "kernels are launched one by one, not replayed as a graph"),
    FLAG("bound", lower, "rank by the bound instead of the expected time"),
    FLAG("with-prefill", with_prefill, "throughput and cost count the prefill on the same chips"),
    FLAG("disaggregated", disaggregated, "prefill and decode in pools of their own"),
    CLI_CALIBRATION_OPTIONS(cli_serve_values, constants),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- values ---- */

static sm_status refuse(const char *option, const char *text, const char *sentence, double value,
                        sm_error *err) {
    sm_source source = sm_source_of(option, text);
    return sm_fail_at(err, &source, (sm_span){0, source.length}, sentence, value);
}

static sm_status read_tokens(const char *option, const char *text, double least, double *value,
                             sm_error *err) {
    if (!text) return SM_OK;
    sm_status status = cli_quantity(option, text, SM_Q_COUNT, value, err);
    if (status) return status;
    if (*value < least) return refuse(option, text, "expected at least %.0f token", least, err);
    if (*value > most_tokens)
        return refuse(option, text, "a sequence has at most %.0f tokens", most_tokens, err);
    return SM_OK;
}

/* A plain number such as 0.8, from a place in the text on. */
static sm_status read_number(const char *option, const char *text, size_t from, double lowest,
                             double highest, double *value, sm_error *err) {
    sm_source source = sm_source_of(option, text);
    sm_span span = {from, source.length - from};
    sm_quantity_kind kind = strcmp(option, "--price") == 0 ? SM_Q_USD : SM_Q_COUNT;
    sm_status status = sm_quantity_parse(&source, span, kind, value, err);
    if (status) return status;
    if (*value >= lowest && *value <= highest) return SM_OK;
    return sm_fail_at(err, &source, span, "expected a number from %g to %g", lowest, highest);
}

static sm_status read_limit(const char *option, const char *text, double *value, sm_error *err) {
    if (!text) return SM_OK;
    sm_status status = cli_quantity(option, text, SM_Q_SECONDS, value, err);
    if (status || *value > 0.0) return status;
    return refuse(option, text, "a limit of %.0f seconds cannot be met", 0.0, err);
}

static sm_status read_rate(const char *text, double *value, sm_error *err) {
    if (!text) return SM_OK;
    sm_status status = read_number("--qps", text, 0, 0.0, 1e9, value, err);
    if (status || *value > 0.0) return status;
    return refuse("--qps", text, "expected more than %.0f requests a second", 0.0, err);
}

/* ---- the job ---- */

static sm_status read_lengths(const cli_serve_values *o, sm_serve_job *job, sm_error *err) {
    job->prompt = USUAL_PROMPT;
    job->output = USUAL_OUTPUT;
    sm_status status = read_tokens("--prompt", o->prompt, 1, &job->prompt, err);
    if (!status) status = read_tokens("--output", o->output_tokens, 1, &job->output, err);
    if (!status) status = read_tokens("--context", o->context, 1, &job->context, err);
    if (!status) status = read_tokens("--prefix", o->prefix, 0, &job->prefix, err);
    if (status || job->prefix < job->prompt) return status;
    return refuse("--prefix", o->prefix, "the prompt has only %.0f tokens, and one must be new",
                  job->prompt, err);
}

static sm_status read_speculation(const cli_call *call, const cli_serve_values *o, cli_serving *q,
                                  sm_error *err) {
    if (!o->speculate && o->draft)
        return sm_fail(err, SM_USAGE, "--draft needs --speculate, as in --speculate 4:0.8");
    if (!o->speculate) return SM_OK;
    sm_speculation *s = &q->job.speculation;
    const char *colon = strchr(o->speculate, ':');
    sm_source source = sm_source_of("--speculate", o->speculate);
    if (!colon)
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "expected a depth and an acceptance, as in 4:0.8 or best:0.8");
    sm_span depth = {0, (size_t)(colon - o->speculate)};
    int64_t k = -1;
    sm_status status = SM_OK;
    if (depth.length != 4 || memcmp(o->speculate, "best", 4) != 0)
        status = sm_integer_parse(&source, depth, 1, MOST_DEPTH, &k, err);
    s->depth = (int)k;
    if (!status)
        status = read_number("--speculate", o->speculate, depth.length + 1, 0.0, 1.0,
                             &s->acceptance, err);
    if (status || !o->draft) return status;
    s->draft = &q->draft;
    return sm_io_model_load(o->draft, call->arena, &q->draft, err);
}

static sm_status read_shares(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    sm_serve_job *job = &q->job;
    job->imbalance = 1.0;
    job->reserve = job->usd_per_chip_hour = -1.0;
    q->price_known = o->price || sm_chip_usd_per_hour(&q->system.chip) > 0.0;
    sm_status status = SM_OK;
    if (o->imbalance)
        status = read_number("--imbalance", o->imbalance, 0, 1.0, 1e6, &job->imbalance, err);
    if (!status && o->reserve)
        status = read_number("--reserve", o->reserve, 0, 0.0, 0.95, &job->reserve, err);
    if (!status && o->price)
        status = read_number("--price", o->price, 0, 0.0, MOST_USD, &job->usd_per_chip_hour, err);
    return status;
}

static sm_status read_job(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    const cli_call *call = q->call;
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (!status) status = cli_system(call, o->on, &q->system, err);
    if (!status) status = read_lengths(o, &q->job, err);
    const char *const types[3] = {o->weights, o->kv, o->compute};
    if (!status) status = cli_serving_dtypes(types, q, err);
    if (!status) status = read_shares(o, q, err);
    if (!status) status = read_speculation(call, o, q, err);
    if (!status && (o->constants.calibration || o->constants.software))
        status = cli_calibration(call, &q->system.chip, &o->constants, &q->calibration, err);
    q->job.model = &q->model;
    q->job.system = &q->system;
    q->job.eager = o->eager;
    return status;
}

/* ---- the search ---- */

static sm_status read_chips(const char *text, cli_serving *q, sm_error *err) {
    if (!text) return SM_OK;
    sm_source source = sm_source_of("--chips", text);
    sm_span all = {0, source.length};
    cli_range range = {.first = 0};
    sm_status status = SM_OK;
    if (strstr(text, "..")) status = cli_range_parse(&source, all, &range, err);
    else {
        status = sm_integer_parse(&source, all, 1, 1 << 20, &range.first, err);
        range.last = range.first;
    }
    if (status) return status;
    if (range.last > q->system.chips)
        return sm_fail_at(err, &source, all, "%s has %d %s", q->system.text, q->system.chips,
                          q->system.chips == 1 ? "chip" : "chips");
    sm_serve_search_options *search = &q->search;
    search->chips_least = (int)range.first;
    search->chips_most = (int)range.last;
    return SM_OK;
}

static sm_status read_plan(const char *text, cli_serving *q, sm_error *err) {
    q->plan = sm_source_of("--plan", text ? text : "");
    if (!text) return SM_OK;
    sm_status status = sm_serve_plan_parse(&q->plan, &q->search.fixed, err);
    if (status) return status;
    int chips = sm_plan_chips(&q->search.fixed), most = q->search.chips_most;
    sm_span all = {0, q->plan.length};
    if (chips > q->system.chips)
        return sm_fail_at(err, &q->plan, all, "the plan takes %d chips and %s has %d", chips,
                          q->system.text, q->system.chips);
    if (most == 0 || chips <= most) return SM_OK;
    return sm_fail_at(err, &q->plan, all, "the plan takes %d chips and --chips allows %d", chips,
                      most);
}

static sm_status read_batch(const char *text, cli_serving *q, sm_error *err) {
    if (!text) return SM_OK;
    sm_status status = cli_quantity("--batch", text, SM_Q_COUNT, &q->search.batch, err);
    if (status) return status;
    double batch = q->search.batch;
    if (batch >= 1.0 && batch <= most_batch && floor(batch) == batch) return SM_OK;
    return refuse("--batch", text, "expected a whole number of sequences from 1 to %.0f",
                  most_batch, err);
}

static sm_status read_search(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    int64_t top = 12;
    sm_status status = read_chips(o->chips, q, err);
    if (!status) status = read_plan(o->plan, q, err);
    if (!status) status = read_batch(o->batch, q, err);
    if (!status) status = read_limit("--ttft", o->ttft, &q->search.ttft_s, err);
    if (!status) status = read_limit("--tpot", o->tpot, &q->search.tpot_s, err);
    if (!status) status = read_rate(o->qps, &q->requests_per_s, err);
    if (!status) status = cli_whole("--top", o->top, 1, 10000, &top, err);
    q->search.by_lower = o->lower;
    q->search.with_prefill = o->with_prefill;
    q->disaggregated = o->disaggregated;
    q->top = (int)top;
    q->plot = o->plot;
    return status;
}

/* Any degree given with a batch makes a whole plan: degrees not named are 1. */
static bool is_one_point(const cli_serving *q) {
    uint32_t degrees = (1u << SM_PLAN_DEGREES) - 1;
    return q->search.batch > 0.0 && (q->search.fixed.given & degrees) && q->requests_per_s <= 0.0 &&
           !q->disaggregated;
}

sm_status cli_serving_blame(const cli_serving *q, sm_status status, sm_error *err) {
    if (status != SM_BAD_INPUT || err->line > 0 || q->plan.length == 0) return status;
    char sentence[sizeof err->sentence];
    memcpy(sentence, err->sentence, sizeof sentence);
    return sm_fail_at(err, &q->plan, (sm_span){0, q->plan.length}, "%s", sentence);
}

sm_status cli_serving_read(const cli_call *call, cli_serving *q, sm_error *err) {
    const cli_serve_values *o = call->values;
    *q = (cli_serving){.call = call};
    sm_serve_search_defaults(&q->search);
    sm_status status = read_job(o, q, err);
    if (!status) status = read_search(o, q, err);
    if (!status && q->plot && !q->plot[0])
        status = sm_fail(err, SM_USAGE, "--plot needs the name of a file");
    q->one = !status && is_one_point(q);
    if (q->one && q->choices > 1)
        return sm_fail(err, SM_USAGE,
                       "a plan with a batch is one point, of one type each of weights, cache and "
                       "compute; without --batch they are compared");
    return status;
}

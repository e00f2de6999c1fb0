/* serve_input: the options of `serve`, and the question they ask. */
#include "scalemodel/io.h"
#include "serve.h"
#include <string.h>

enum { MOST_DEPTH = 64 };

#define AT(member) offsetof(cli_serve_values, member)

const cli_option cli_serve_options[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips there are: tpu-v5e:4x4, h100-sxm:8, ..."},
    {"plan", 0, CLI_TEXT, AT(plan), "PLAN",
     .help = "keys to keep: tensor=8,expert=2,cache_by=batch"},
    {"batch", 0, CLI_WHOLE, AT(batch), "N",
     .help = "sequences that decode at once in a replica; with a whole plan, one point",
     .lowest = 1, .highest = 1e9},
    {"prompt", 0, CLI_WHOLE, AT(prompt), "TOKENS", .help = "of a request", .lowest = 1,
     .highest = 1e9, .by_default = "2048"},
    {"output", 0, CLI_WHOLE, AT(output_tokens), "TOKENS", .help = "that a request asks for",
     .lowest = 1, .highest = 1e9, .by_default = "512"},
    {"context", 0, CLI_WHOLE, AT(context), "TOKENS",
     .help = "cached tokens at which decoding is priced", .lowest = 1, .highest = 1e9,
     .default_says = "prompt and half the output"},
    {"prefix", 0, CLI_WHOLE, AT(prefix), "TOKENS",
     .help = "of the prompt that are in the cache already", .highest = 1e9, .by_default = "0"},
    {"weights", 0, CLI_DTYPES, AT(weights), "DTYPE",
     .help = "weights are stored in; int8,bf16 compares", .by_default = "bf16"},
    {"kv", 0, CLI_DTYPES, AT(kv), "DTYPE", .help = "keys and values are stored in, or a list",
     .by_default = "bf16"},
    {"compute", 0, CLI_DTYPES, AT(compute), "DTYPE", .help = "matmuls are computed in, or a list",
     .by_default = "bf16"},
    {"ttft", 0, CLI_TIME, AT(ttft), "TIME", .help = "limit to the time to first token: 1s",
     .above = true},
    {"tpot", 0, CLI_TIME, AT(tpot), "TIME", .help = "limit to the time per token: 30ms",
     .above = true},
    {"qps", 0, CLI_NUMBER, AT(qps), "RATE", .help = "requests a second: the fleet for them",
     .above = true, .highest = 1e9},
    {"chips", 0, CLI_RANGE, AT(chips), "RANGE", .help = "of a replica: 8 or 4..64",
     .default_says = "1 to all"},
    {"speculate", 0, CLI_TEXT, AT(speculate), "K:A",
     .help =
         "K tokens are drafted and each accepted with probability A: 4:0.8; best:0.8 finds the K"},
    {"draft", 0, CLI_TEXT, AT(draft), "MODEL", .help = "that drafts them",
     .default_says = "n-grams or heads, at no cost"},
    {"imbalance", 0, CLI_NUMBER, AT(imbalance), "X",
     .help = "tokens of the fullest expert chip over the mean", .lowest = 1, .highest = 1e6,
     .by_default = "1"},
    {"reserve", 0, CLI_NUMBER, AT(reserve), "SHARE", .help = "of the memory that stays free",
     .highest = 0.95, .default_says = "0.1 on GPUs, 0 else"},
    {"price", 0, CLI_USD, AT(price), "USD", .help = "of a chip for an hour", .highest = 1e6,
     .default_says = "the catalogue's"},
    {"top", 0, CLI_WHOLE, AT(top), "K", .help = "points of the frontier to show; the JSON has all",
     .lowest = 1, .highest = 10000, .by_default = "12"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .help = "draw the frontier as SVG"},
    {"eager", 0, CLI_FLAG, AT(eager),
     .help = "kernels are launched one by one, not replayed as a graph"},
    {"bound", 0, CLI_FLAG, AT(lower), .help = "rank by the bound instead of the expected time"},
    {"with-prefill", 0, CLI_FLAG, AT(with_prefill),
     .help = "throughput and cost count the prefill on the same chips"},
    {"disaggregated", 0, CLI_FLAG, AT(disaggregated),
     .help = "prefill and decode in pools of their own"},
    CLI_CALIBRATION_OPTIONS(cli_serve_values, constants),
    {.name = NULL},
};

/* ---- the job ---- */

/* "4:0.8", "best:0.8" */
static sm_status read_speculation(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    if (!o->speculate && o->draft)
        return sm_fail(err, SM_USAGE, "--draft needs --speculate, as in --speculate 4:0.8");
    if (!o->speculate) return SM_OK;
    sm_speculation *s = &q->job.speculation;
    sm_source source = cli_source(q->call, &o->speculate);
    const char *colon = strchr(o->speculate, ':');
    if (!colon)
        return cli_refuse(q->call, &o->speculate, err,
                          "expected a depth and an acceptance, as in 4:0.8 or best:0.8");
    sm_span depth = {0, (size_t)(colon - o->speculate)};
    sm_span share = {depth.length + 1, source.length - depth.length - 1};
    bool best = depth.length == 4 && memcmp(o->speculate, "best", 4) == 0;
    int64_t k = -1;
    sm_status status = best ? SM_OK : sm_integer_parse(&source, depth, 1, MOST_DEPTH, &k, err);
    s->depth = (int)k;
    if (!status) status = sm_quantity_parse(&source, share, SM_Q_COUNT, &s->acceptance, err);
    if (!status && s->acceptance > 1.0)
        return sm_fail_at(err, &source, share, "expected a number from 0 to 1");
    if (status || !o->draft) return status;
    s->draft = &q->draft;
    return sm_io_model_load(o->draft, q->call->arena, &q->draft, err);
}

/* Every combination of the types asked for. */
static void read_dtypes(const cli_serve_values *o, cli_serving *q) {
    const cli_dtypes *const list[3] = {&o->weights, &o->kv, &o->compute};
    for (int i = 0; i < 3; i++) q->dtype_words[i] = cli_source(q->call, list[i]).text;
    for (int w = 0; w < o->weights.n; w++)
        for (int k = 0; k < o->kv.n; k++)
            for (int c = 0; c < o->compute.n; c++)
                q->choice[q->choices++] =
                    (sm_serve_dtypes){o->weights.type[w], o->kv.type[k], o->compute.type[c]};
    q->job.dtypes = q->choice[0];
}

static sm_status read_job(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    const cli_call *call = q->call;
    bool priced = cli_given(call, &o->price),
         constants = o->constants.calibration || o->constants.software;
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (!status) status = cli_system(call, o->on, &q->system, err);
    if (status) return status;
    q->price_known = priced || sm_chip_usd_per_hour(&q->system.chip) > 0.0;
    q->job = (sm_serve_job){.model = &q->model,
                            .system = &q->system,
                            .prompt = (double)o->prompt,
                            .output = (double)o->output_tokens,
                            .context = (double)o->context,
                            .prefix = (double)o->prefix,
                            .imbalance = o->imbalance,
                            .reserve = cli_given(call, &o->reserve) ? o->reserve : -1.0,
                            .usd_per_chip_hour = priced ? o->price : -1.0,
                            .eager = o->eager};
    read_dtypes(o, q);
    if (o->prefix >= o->prompt)
        return cli_refuse(call, &o->prefix, err,
                          "the prompt has only %.0f tokens, and one must be new", q->job.prompt);
    status = read_speculation(o, q, err);
    if (status || !constants) return status;
    return cli_calibration(call, &q->system.chip, &o->constants, &q->calibration, err);
}

/* ---- the search ---- */

static sm_status read_chips(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    int chips = q->system.chips;
    if (o->chips.last > chips)
        return cli_refuse(q->call, &o->chips, err, "%s has %d %s", q->system.text, chips,
                          chips == 1 ? "chip" : "chips");
    if (!cli_given(q->call, &o->chips)) return SM_OK;
    q->search.chips_least = (int)o->chips.first;
    q->search.chips_most = (int)o->chips.last;
    return SM_OK;
}

static sm_status read_plan(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    q->plan = cli_source(q->call, &o->plan);
    if (!o->plan) return SM_OK;
    sm_status status = sm_serve_plan_parse(&q->plan, &q->search.fixed, err);
    if (status) return status;
    int chips = sm_plan_chips(&q->search.fixed), most = q->search.chips_most;
    if (chips > q->system.chips)
        return cli_refuse(q->call, &o->plan, err, "the plan takes %d chips and %s has %d", chips,
                          q->system.text, q->system.chips);
    if (most == 0 || chips <= most) return SM_OK;
    return cli_refuse(q->call, &o->plan, err, "the plan takes %d chips and --chips allows %d",
                      chips, most);
}

static sm_status read_search(const cli_serve_values *o, cli_serving *q, sm_error *err) {
    q->search.batch = (double)o->batch;
    q->search.ttft_s = o->ttft;
    q->search.tpot_s = o->tpot;
    q->search.by_lower = o->lower;
    q->search.with_prefill = o->with_prefill;
    q->requests_per_s = o->qps;
    q->disaggregated = o->disaggregated;
    q->top = (int)o->top;
    q->plot = o->plot;
    sm_status status = read_chips(o, q, err);
    return status ? status : read_plan(o, q, err);
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
    q->one = !status && is_one_point(q);
    if (q->one && q->choices > 1)
        return sm_fail(err, SM_USAGE,
                       "a plan with a batch is one point, of one type each of weights, cache and "
                       "compute; without --batch they are compared");
    return status;
}

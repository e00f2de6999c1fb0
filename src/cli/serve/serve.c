/* serve: the frontier of latency, throughput and cost at which a model can be served, or one point
 * of it. */
#include "options.h"
#include "answer.h"
#include "verbs.h"
#include "scalemodel/io.h"
#include <string.h>

typedef struct serve_values {
    const char *on, *plan, *speculate, *draft, *plot;
    int64_t batch, prompt, output_tokens, context, prefix, top;
    sm_dtype_list weights, kv, compute;
    double ttft, tpot, qps, price, imbalance, reserve;
    sm_range chips;
    bool eager, lower, with_prefill, disaggregated;
    cli_calibration_values constants;
    cli_model_values read_by;
} serve_values;

/* The question with what it points to. */
typedef struct serving {
    sm_serve_question question;
    sm_model model, draft;
    sm_system system;
} serving;

enum { MOST_DEPTH = 64 };

#define AT(member) offsetof(serve_values, member)

static const cli_option serve_table[] = {
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
     .help = "weights are stored in; int8,bf16 compares",
     .default_says = "as the checkpoint has them, bf16 unless it is quantised"},
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
    CLI_CALIBRATION_OPTIONS(serve_values, constants),
    CLI_MODEL_OPTIONS(serve_values, read_by),
    {.name = NULL},
};

/* ---- the question ---- */

/* "4:0.8", "best:0.8" */
static sm_status read_speculation(const cli_call *call, serving *v, sm_error *err) {
    const serve_values *o = call->values;
    sm_speculation *s = &v->question.speculation;
    if (!o->speculate && o->draft)
        return sm_fail(err, SM_USAGE, "--draft needs --speculate, as in --speculate 4:0.8");
    if (!o->speculate) return SM_OK;
    sm_source source = cli_source(call, &o->speculate);
    const char *colon = strchr(o->speculate, ':');
    if (!colon)
        return cli_refuse(call, &o->speculate, err,
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
    s->draft = &v->draft;
    const cli_model_values read_by = {.families = o->read_by.families};
    return cli_read_model(call, &read_by, o->draft, &v->draft, err);
}

static sm_status read_rest(const cli_call *call, serving *v, sm_error *err) {
    const serve_values *o = call->values;
    sm_serve_question *q = &v->question;
    bool constants = o->constants.calibration || o->constants.software;
    int chips = v->system.chips;
    if (o->prefix >= o->prompt)
        return cli_refuse(call, &o->prefix, err,
                          "the prompt has only %.0f tokens, and one must be new", q->prompt);
    sm_status status = read_speculation(call, v, err);
    if (!status && constants)
        status = cli_calibration(call, &v->system.chip, &o->constants, &q->calibration, err);
    if (status) return status;
    if (o->chips.last > chips)
        return cli_refuse(call, &o->chips, err, "%s has %d %s", v->system.text, chips,
                          chips == 1 ? "chip" : "chips");
    q->chips_least = (int)o->chips.first;
    q->chips_most = (int)o->chips.last;
    return SM_OK;
}

static sm_status read_question(const cli_call *call, serving *v, sm_error *err) {
    const serve_values *o = call->values;
    v->question = (sm_serve_question){
        .size = sizeof v->question,
        .model = &v->model,
        .system = &v->system,
        .prompt = (double)o->prompt,
        .output = (double)o->output_tokens,
        .context = (double)o->context,
        .prefix = (double)o->prefix,
        .weights = o->weights,
        .kv = o->kv,
        .compute = o->compute,
        .imbalance = o->imbalance,
        .reserve = cli_given(call, &o->reserve) ? &o->reserve : NULL,
        .usd_per_chip_hour = cli_given(call, &o->price) ? &o->price : NULL,
        .eager = o->eager,
        .plan = cli_text(call, &o->plan),
        .batch = (double)o->batch,
        .ttft_s = o->ttft,
        .tpot_s = o->tpot,
        .by_lower = o->lower,
        .with_prefill = o->with_prefill,
        .disaggregated = o->disaggregated,
        .requests_per_s = o->qps,
        .top = (int)o->top,
        .explain = call->common.explain,
        .plot = o->plot != NULL,
    };
    sm_status status = cli_read_model(call, &o->read_by, call->positional[0], &v->model, err);
    if (!status) status = cli_system(call, o->on, &v->system, err);
    return status ? status : read_rest(call, v, err);
}

static sm_status run_serve(const cli_call *call, sm_report *r, sm_error *err) {
    const serve_values *o = call->values;
    serving *v = sm_arena_alloc(call->arena, sizeof *v);
    if (!v) return sm_fail_memory(err);
    sm_status status = read_question(call, v, err);
    if (status) return status;
    sm_status answer = sm_answer_serve(&v->question, r, err);
    if (answer <= SM_NEGATIVE && r->chart) status = cli_write_chart(r->chart, o->plot, err);
    return status ? status : answer;
}

const cli_verb cli_serve = {
    .name = "serve",
    .summary = "latency, throughput, memory and cost of serving a model",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = serve_table,
    .values_bytes = sizeof(serve_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes =
        "example: scalemodel serve llama-3.1-70b --on tpu-v5e:4x4 --weights int8 --kv int8 \\\n"
        "           --prompt 8192 --output 512 --tpot 30ms\n",
    .run = run_serve,
};

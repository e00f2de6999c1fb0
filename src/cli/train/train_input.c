/* train_input: the options of `train`, and the question they ask. */
#include "scalemodel/io.h"
#include "sweep.h"
#include "train.h"
#include <string.h>

enum { USUAL_SEQ = 4096, USUAL_TOP = 3, MOST_CHIPS = 1 << 20, MOST_USD = 1000000 };

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(cli_train_values, member), value, help }

const cli_option cli_train_options[] = {
    TEXT("on", on, "SYSTEM", "the chips: tpu-v5p:16x20x28, h100-sxm:128x8, ..."),
    TEXT("batch", batch, "TOKENS", "tokens of a global batch: 4M; rounded to whole sequences"),
    TEXT("seq", seq, "T",
         "tokens of a sequence (4096, or what the model was made for where that is less)"),
    TEXT("tokens", tokens, "N", "tokens of the whole run: 15T; gives its time and cost"),
    TEXT("plan", plan, "PLAN",
         "keys to keep: fsdp=64,tensor=8,recompute=full; a plan that uses every chip and says "
         "its microbatch is only priced"),
    TEXT("top", top, "K", "how many plans to show (3)"),
    TEXT("objective", objective, "WHAT", "what is best: time (as is), cost or memory"),
    TEXT("chips", chips, "RANGE",
         "64..16384: the best plan for each power of two, and what pays off"),
    TEXT("dtype", dtype, "DTYPE", "what matmuls with weights compute in (bf16), or fp8"),
    TEXT("optimizer", optimizer, "NAME",
         "adam, adam-no-master, adam-bf16, adam-8bit or sgd (adam)"),
    TEXT("price", price, "USD", "of a chip for an hour, in place of the catalogue's"),
    TEXT("max", most, "DEGREES", "limits to degrees: tensor=8,pipeline=16"),
    TEXT("threads", threads, "N", "threads that search; the answer is the same (all processors)"),
    TEXT("timeline", timeline, "FILE", "write the simulated step of the best plan for Perfetto"),
    CLI_CALIBRATION_OPTIONS(cli_train_values, constants),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- the job ---- */

static sm_status read_seq(const char *text, cli_training *q, sm_error *err) {
    int64_t T = USUAL_SEQ;
    if (q->model.max_seq > 0 && q->model.max_seq < USUAL_SEQ) T = q->model.max_seq;
    q->seq_given = text != NULL;
    sm_status status = cli_whole("--seq", text, 1, INT64_C(1000000000), &T, err);
    q->job.seq = (double)T;
    return status;
}

static sm_status read_batch(const cli_call *call, const char *text, cli_training *q,
                            sm_error *err) {
    sm_status status = cli_need(call, "batch", text, err);
    if (!status) status = cli_quantity("--batch", text, SM_Q_COUNT, &q->job.batch_tokens, err);
    if (status || q->job.batch_tokens >= q->job.seq) return status;
    sm_source source = sm_source_of("--batch", text);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "a batch counts tokens, and one sequence alone has %.0f", q->job.seq);
}

static sm_status read_price(const char *text, cli_training *q, sm_error *err) {
    q->job.usd_per_chip_hour = -1.0;
    q->price_given = text != NULL;
    q->price_known = text || sm_chip_usd_per_hour(&q->system.chip) > 0.0;
    sm_status status = cli_quantity("--price", text, SM_Q_USD, &q->job.usd_per_chip_hour, err);
    if (status || q->job.usd_per_chip_hour <= MOST_USD) return status;
    sm_source source = sm_source_of("--price", text);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "a chip costs at most %d dollars an hour", (int)MOST_USD);
}

static sm_status read_job(const cli_train_values *o, cli_training *q, sm_error *err) {
    const cli_call *call = q->call;
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (!status) status = cli_system(call, o->on, &q->system, err);
    if (!status) status = read_seq(o->seq, q, err);
    if (!status) status = read_batch(call, o->batch, q, err);
    if (!status) status = cli_quantity("--tokens", o->tokens, SM_Q_COUNT, &q->job.tokens, err);
    if (!status) status = read_price(o->price, q, err);
    if (!status)
        status = cli_calibration(call, &q->system.chip, &o->constants, &q->calibration, err);
    q->job.model = &q->model;
    q->job.system = &q->system;
    return status;
}

/* ---- the search ---- */

static sm_status read_objective(const char *text, sm_objective *objective, sm_error *err) {
    static const char *const names[] = {"time", "cost", "memory"};
    enum { NAMES = sizeof names / sizeof *names };
    *objective = SM_OBJECTIVE_TIME;
    if (!text) return SM_OK;
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i], text) == 0) {
            *objective = (sm_objective)i;
            return SM_OK;
        }
    sm_source source = sm_source_of("--objective", text);
    const char *near = sm_nearest(text, source.length, names, NAMES);
    return sm_fail_at(err, &source, (sm_span){0, source.length}, "'%.40s' is no objective; %s%s%s",
                      text, near ? "did you mean " : "they are time, cost and memory",
                      near ? near : "", near ? "?" : "");
}

static sm_status read_search(const cli_train_values *o, cli_training *q, sm_error *err) {
    int64_t top = USUAL_TOP, threads = 0;
    sm_status status = cli_whole("--top", o->top, 1, SM_MAX_TOP, &top, err);
    if (!status) status = cli_whole("--threads", o->threads, 1, 1024, &threads, err);
    if (!status) status = read_objective(o->objective, &q->search.objective, err);
    q->search.top = (int)top;
    q->search.threads = (int)threads;
    return status;
}

/* ---- --chips ---- */

/* The value after `chips` in a range without a step: the next power of two, at most the last. */
static int64_t next_power(int64_t chips, int64_t last) {
    int64_t power = 1;
    while (power <= chips) power *= 2;
    return power < last ? power : last;
}

static sm_status fill_chips(const sm_source *source, const cli_range *range, cli_training *q,
                            sm_error *err) {
    for (int64_t chips = range->first; chips <= range->last;) {
        if (q->points == CLI_MAX_SYSTEMS)
            return sm_fail_at(err, source, (sm_span){0, source->length},
                              "at most %d sizes of system; widen the step", CLI_MAX_SYSTEMS);
        q->chips[q->points++] = (int)chips;
        if (chips == range->last) break;
        chips = range->step ? chips + range->step : next_power(chips, range->last);
    }
    return SM_OK;
}

static sm_status read_chips(const char *text, cli_training *q, sm_error *err) {
    if (!text) return SM_OK;
    sm_source source = sm_source_of("--chips", text);
    sm_span all = {0, source.length};
    cli_range range = {.first = 0};
    if (!strstr(text, ".."))
        return sm_fail_at(err, &source, all, "expected a range of chips, as in 64..16384");
    sm_status status = cli_range_parse(&source, all, &range, err);
    if (status) return status;
    if (range.last > MOST_CHIPS)
        return sm_fail_at(err, &source, all, "a system has at most %d chips", (int)MOST_CHIPS);
    return fill_chips(&source, &range, q, err);
}

/* ---- the whole ---- */

static sm_status check_together(const cli_training *q, sm_error *err) {
    if (q->points && q->timeline)
        return sm_fail(err, SM_USAGE, "--timeline draws one plan, and --chips finds many");
    if (q->timeline && !q->timeline[0])
        return sm_fail(err, SM_USAGE, "--timeline needs the name of a file");
    if (q->points && q->call->common.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one plan, and --chips finds many");
    return SM_OK;
}

sm_status cli_training_read(const cli_call *call, cli_training *q, sm_error *err) {
    const cli_train_values *o = call->values;
    *q = (cli_training){.call = call, .timeline = o->timeline};
    sm_search_defaults(&q->search);
    sm_status status = read_job(o, q, err);
    if (!status) status = read_search(o, q, err);
    cli_plan_texts texts = {o->plan, o->dtype, o->optimizer, o->most};
    if (!status) status = cli_plan_read(&texts, q, err);
    if (!status) status = read_chips(o->chips, q, err);
    return status ? status : check_together(q, err);
}

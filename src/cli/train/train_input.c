/* train_input: the options of `train`, and the question they ask. */
#include "scalemodel/io.h"
#include "train.h"
#include <string.h>

enum { USUAL_SEQ = 4096, MOST_CHIPS = 1 << 20 };

static const char *const objectives[] = {"time", "cost", "memory"};

#define AT(member) offsetof(cli_train_values, member)

const cli_option cli_train_options[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips: tpu-v5p:16x20x28, h100-sxm:128x8, ..."},
    {"batch", 0, CLI_NUMBER, AT(batch), "TOKENS",
     .help = "tokens of a global batch: 4M; rounded to whole sequences", .required = true},
    {"seq", 0, CLI_WHOLE, AT(seq), "T", .help = "tokens of a sequence", .lowest = 1, .highest = 1e9,
     .default_says = "4096, or what the model was made for where that is less"},
    {"tokens", 0, CLI_NUMBER, AT(tokens), "N",
     .help = "tokens of the whole run: 15T; gives its time and cost"},
    {"plan", 0, CLI_TEXT, AT(plan), "PLAN",
     .help = "keys to keep: fsdp=64,tensor=8,recompute=full; a plan that uses every chip and says "
             "its microbatch is only priced"},
    {"top", 0, CLI_WHOLE, AT(top), "K", .help = "how many plans to show", .lowest = 1,
     .highest = SM_MAX_TOP, .by_default = "3"},
    {"objective", 0, CLI_CHOICE, AT(objective), "WHAT", .help = "what is best",
     .words = {objectives, 3}, .by_default = "time"},
    {"chips", 0, CLI_RANGE, AT(chips), "RANGE",
     .help = "64..16384: the best plan for each power of two, and what pays off",
     .highest = MOST_CHIPS},
    {"dtype", 0, CLI_TEXT, AT(dtype), "DTYPE",
     .help = "what matmuls with weights compute in: the plan's key", .default_says = "bf16"},
    {"optimizer", 0, CLI_TEXT, AT(optimizer), "NAME",
     .help = "adam, adam-no-master, adam-bf16, adam-8bit or sgd: the plan's key",
     .default_says = "adam"},
    {"price", 0, CLI_USD, AT(price), "USD", .help = "of a chip for an hour", .highest = 1e6,
     .default_says = "the catalogue's"},
    {"max", 0, CLI_TEXT, AT(most), "DEGREES", .help = "limits to degrees: tensor=8,pipeline=16"},
    {"threads", 0, CLI_WHOLE, AT(threads), "N",
     .help = "threads that search; the answer is the same", .lowest = 1, .highest = 1024,
     .default_says = "all processors"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE",
     .help = "write the simulated step of the best plan for Perfetto"},
    CLI_CALIBRATION_OPTIONS(cli_train_values, constants),
    {.name = NULL},
};

/* ---- the job ---- */

static sm_status read_job(const cli_train_values *o, cli_training *q, sm_error *err) {
    const cli_call *call = q->call;
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (!status) status = cli_system(call, o->on, &q->system, err);
    if (!status)
        status = cli_calibration(call, &q->system.chip, &o->constants, &q->calibration, err);
    if (status) return status;
    bool short_model = q->model.max_seq > 0 && q->model.max_seq < USUAL_SEQ;
    double usual = short_model ? q->model.max_seq : USUAL_SEQ;
    q->seq_given = cli_given(call, &o->seq);
    q->price_given = cli_given(call, &o->price);
    q->price_known = q->price_given || sm_chip_usd_per_hour(&q->system.chip) > 0.0;
    q->job = (sm_job){.model = &q->model,
                      .system = &q->system,
                      .batch_tokens = o->batch,
                      .seq = q->seq_given ? (double)o->seq : usual,
                      .tokens = o->tokens,
                      .usd_per_chip_hour = q->price_given ? o->price : -1.0};
    if (o->batch >= q->job.seq) return SM_OK;
    return cli_refuse(call, &o->batch, err,
                      "a batch counts tokens, and one sequence alone has %.0f", q->job.seq);
}

/* ---- --chips ---- */

/* The value after `chips` in a range without a step: the next power of two, at most the last. */
static int64_t next_power(int64_t chips, int64_t last) {
    int64_t power = 1;
    while (power <= chips) power *= 2;
    return power < last ? power : last;
}

static sm_status read_chips(const cli_train_values *o, cli_training *q, sm_error *err) {
    const sm_range *range = &o->chips;
    if (!cli_given(q->call, range)) return SM_OK;
    if (!strstr(cli_source(q->call, range).text, ".."))
        return cli_refuse(q->call, range, err, "expected a range of chips, as in 64..16384");
    for (int64_t chips = range->first; chips <= range->last;) {
        if (q->points == CLI_MAX_SYSTEMS)
            return cli_refuse(q->call, range, err, "at most %d sizes of system; widen the step",
                              CLI_MAX_SYSTEMS);
        q->chips[q->points++] = (int)chips;
        if (chips == range->last) break;
        chips = range->step ? chips + range->step : next_power(chips, range->last);
    }
    return SM_OK;
}

/* ---- the whole ---- */

static sm_status check_together(const cli_training *q, sm_error *err) {
    if (q->points && q->timeline)
        return sm_fail(err, SM_USAGE, "--timeline draws one plan, and --chips finds many");
    if (q->points && q->call->common.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one plan, and --chips finds many");
    return SM_OK;
}

sm_status cli_training_read(const cli_call *call, cli_training *q, sm_error *err) {
    const cli_train_values *o = call->values;
    *q = (cli_training){.call = call, .timeline = o->timeline};
    sm_search_defaults(&q->search);
    q->search.top = (int)o->top;
    q->search.threads = (int)o->threads;
    q->search.objective = o->objective;
    sm_status status = read_job(o, q, err);
    if (!status) status = cli_plan_read(o, q, err);
    if (!status) status = read_chips(o, q, err);
    return status ? status : check_together(q, err);
}

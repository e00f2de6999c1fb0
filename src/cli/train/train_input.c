/* train_input: the options of `train`, and the question they ask. */
#include "train.h"
#include "scalemodel/io.h"
#include <string.h>

enum { MOST_CHIPS = 1 << 20 };

static const char *const objectives[] = {"time", "cost", "memory"};
static const char *const methods[] = {"pretrain", "dpo", "grpo", "ppo"};

#define AT(member) offsetof(cli_train_values, member)

const cli_option cli_train_options[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips: tpu-v5p:16x20x28, h100-sxm:128x8, ...; several, with commas between, are "
             "compared"},
    {"batch", 0, CLI_TEXT, AT(batch), "BATCH",
     .help = "a global batch: tokens, 4M or 4Mi, rounded to sequences that divide, "
             "or 2048seqs; max, the most that --within allows",
     .default_says = "what --from says"},
    {"seq", 0, CLI_WHOLE, AT(seq), "T", .help = "tokens of a sequence", .lowest = 1, .highest = 1e9,
     .default_says = "4096, or what the model was made for where that is less"},
    {"tokens", 0, CLI_NUMBER, AT(tokens), "N",
     .help = "tokens of the whole run: 15T; gives its time and cost"},
    {"within", 0, CLI_TIME, AT(within), "TIME",
     .help = "with --tokens, the fewest chips whose run takes no longer: 30d; with --batch max, "
             "of a step: 10s",
     .above = true},
    {"budget", 0, CLI_USD, AT(budget), "USD",
     .help = "with --tokens, the fewest chips whose run costs no more", .above = true},
    {"failures", 0, CLI_NUMBER, AT(failures), "RATE",
     .help = "with --tokens, interruptions per chip and hour, 2e-5: days and dollars with them",
     .highest = 10, .default_says = "the chip's, where a source tells it; else a curve"},
    {"checkpoint", 0, CLI_TIME, AT(checkpoint), "TIME",
     .help = "with --tokens, how long a checkpoint stops the run: 30s",
     .default_says = "a chip's state over its link to the host"},
    {"interval", 0, CLI_TIME, AT(interval), "TIME", .help = "of work between checkpoints",
     .default_says = "the best", .above = true},
    {"restart", 0, CLI_TIME, AT(restart), "TIME", .help = "from an interruption to the next step",
     .default_says = "10min, as MegaScale's"},
    {"stragglers", 0, CLI_NUMBER, AT(stragglers), "SHARE",
     .help = "by which slow chips lengthen each step: 0.02", .highest = 100},
    {"repair", 0, CLI_TIME, AT(repair), "TIME",
     .help = "of a host that failed: how many spare hosts the run needs", .above = true},
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
     .help = "adam, adam-bf16, adam-8bit, muon, lion, adafactor, ...: the plan's key",
     .default_says = "adam"},
    {"price", 0, CLI_USD, AT(price), "USD", .help = "of a chip for an hour", .highest = 1e6,
     .default_says = "the catalogue's"},
    {"memory-margin", 0, CLI_NUMBER, AT(margin), "SHARE",
     .help = "of a chip's memory that stays free", .highest = 0.95,
     .default_says = "0.03: four of five measured peaks are within it of the predicted; "
                     "with --as-run 0"},
    {"max", 0, CLI_TEXT, AT(most), "DEGREES", .help = "limits to degrees: tensor=8,pipeline=16"},
    {"as-run", 0, CLI_FLAG, AT(as_run), NULL,
     .help =
         "price what 'run train' executes: one op after the other, in fp32 or the plan's dtype"},
    {"threads", 0, CLI_WHOLE, AT(threads), "N",
     .help = "threads that search; the answer is the same", .lowest = 1, .highest = 1024,
     .default_says = "all processors"},
    {"seconds", 0, CLI_NUMBER, AT(seconds), "N",
     .help = "stop searching then: the best so far, and what a better one can gain at most",
     .highest = 1e6, .default_says = "no limit"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE", .gets = CLI_TRACKS,
     .help = "write the simulated step of the best plan for Perfetto"},
    {"against", 0, CLI_TEXT, AT(against), "WHAT",
     .help = "another plan, fsdp=64,microbatch=1: where their steps differ; or a compiled module "
             "or a profile of such a step: what was predicted beside it"},
    {"what-if", 0, CLI_TEXT, AT(what_if), "CHANGES",
     .help = "the job on another machine too: link=2x,hbm=1.5x,domain=72"},
    {"why", 0, CLI_FLAG, AT(why), NULL,
     .help =
         "why the best plan has its degrees: twice and half of each, and what speaks against it"},
    {"sensitivity", 0, CLI_FLAG, AT(sensitivity), NULL,
     .help = "what more of each resource would bring: elasticities, break-even values"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .gets = CLI_CHART,
     .help = "draw the step's time with 10 % more and less of each resource as SVG"},
    {"method", 0, CLI_CHOICE, AT(method), "WHAT",
     .help =
         "what is learned from; all but the first add an iteration over the batch, phase by phase",
     .words = {methods, 4}, .by_default = "pretrain"},
    {"rollout", 0, CLI_TEXT, AT(rollout), "SYSTEM",
     .help = "with grpo and ppo, chips of the engines that generate",
     .default_says = "those that train"},
    {"prompt", 0, CLI_WHOLE, AT(prompt), "TOKENS",
     .help = "of a rollout, the rest of --seq is generated", .lowest = 1, .highest = 1e9,
     .default_says = "a quarter of --seq"},
    {"samples", 0, CLI_WHOLE, AT(samples), "N", .help = "rollouts of a prompt", .lowest = 1,
     .highest = 1e6, .default_says = "8 of grpo, 1 of ppo"},
    {"epochs", 0, CLI_WHOLE, AT(epochs), "N", .help = "over each batch of rollouts", .lowest = 1,
     .highest = 1000, .by_default = "1"},
    {"reward", 0, CLI_TEXT, AT(reward), "MODEL", .help = "that scores rollouts",
     .default_says = "a rule does, at no cost"},
    {"critic", 0, CLI_TEXT, AT(critic), "MODEL", .help = "of ppo",
     .default_says = "as large as MODEL"},
    {"no-reference", 0, CLI_FLAG, AT(no_reference), NULL,
     .help = "with --method, nothing is held against the model as it was"},
    CLI_CODEBASE_OPTION(cli_train_values, codebases),
    CLI_CALIBRATION_OPTIONS(cli_train_values, constants),
    CLI_MODEL_OPTIONS(cli_train_values, read_by),
    CLI_RECIPE_OPTIONS(cli_train_values, recipe),
    {.name = NULL},
};

/* ---- the question ---- */

/* The models and the chips of what comes after pretraining. */
static sm_status read_method(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    sm_train_question *q = &t->question;
    const cli_model_values read_by = {.families = o->read_by.families};
    bool asked = cli_given(call, &o->rollout) || cli_given(call, &o->prompt) ||
                 cli_given(call, &o->samples) || o->reward || o->critic || o->no_reference;
    if (o->method == SM_PREFER_NONE && asked)
        return sm_fail(err, SM_USAGE,
                       "rollouts, rewards and a reference are of --method dpo, grpo or ppo");
    q->method = o->method;
    q->prompt = cli_given(call, &o->prompt) ? (double)o->prompt : 0.0;
    q->samples = cli_given(call, &o->samples) ? (double)o->samples : 0.0;
    q->epochs = (double)o->epochs;
    q->no_reference = o->no_reference;
    sm_status status = SM_OK;
    if (o->rollout) status = cli_system(call, o->rollout, &t->rollout, err);
    if (!status && o->reward) status = cli_read_model(call, &read_by, o->reward, &t->reward, err);
    if (!status && o->critic) status = cli_read_model(call, &read_by, o->critic, &t->critic, err);
    if (status) return status;
    q->rollout = o->rollout ? &t->rollout : NULL;
    q->reward = o->reward ? &t->reward : NULL;
    q->critic = o->critic ? &t->critic : NULL;
    double seq = q->seq > 0.0 ? q->seq : sm_train_usual_seq(&t->model);
    if (q->method == SM_PREFER_NONE || q->prompt < seq) return SM_OK;
    return cli_refuse(call, &o->prompt, err, "a rollout has %.0f tokens, and one must be generated",
                      seq);
}

static sm_status read_chips(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    const sm_range *range = &o->chips;
    if (!cli_given(call, range)) return SM_OK;
    if (!strstr(cli_source(call, range).text, ".."))
        return cli_refuse(call, range, err, "expected a range of chips, as in 64..16384");
    for (int64_t chips = range->first; chips <= range->last;) {
        if (t->question.n_chips == SM_MAX_TRAIN_SIZES)
            return cli_refuse(call, range, err, "at most %d sizes of system; widen the step",
                              SM_MAX_TRAIN_SIZES);
        t->chips[t->question.n_chips++] = (int)chips;
        if (chips == range->last) break;
        int64_t power = 1;
        while (power <= chips) power *= 2;
        chips = range->step ? chips + range->step : power < range->last ? power : range->last;
    }
    return SM_OK;
}

static sm_status read_systems(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    int n;
    sm_status status = cli_systems(call, &o->on, t->systems, &n, err);
    if (status) return status;
    t->system = t->systems[0];
    t->question.systems = t->systems;
    t->question.n_systems = n > 1 ? n : 0;
    return SM_OK;
}

static sm_status read_job(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    if (!call->positionals)
        return sm_fail(err, SM_USAGE, "train needs MODEL, or --from with the recipe in use");
    sm_status status = cli_need(call, &o->batch, err);
    if (!status) status = cli_read_model(call, &o->read_by, call->positional[0], &t->model, err);
    return status ? status : read_systems(call, t, err);
}

static sm_status read_recipe(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    if (o->plan) return sm_fail(err, SM_USAGE, "--from and --plan both say a plan; give one");
    if (cli_given(call, &o->chips))
        return sm_fail(err, SM_USAGE, "--from prices one recipe, and --chips finds many plans");
    return cli_recipe(call, &o->recipe, &o->read_by, o->on, SM_PLAN_TRAINING, &t->recipe, &t->model,
                      &t->system, err);
}

/* What the recipe says of the job, where no option does. */
static sm_status take_recipe(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    sm_train_question *q = &t->question;
    const sm_recipe *recipe = &t->recipe;
    double seq = cli_given(call, &o->seq) ? (double)o->seq : recipe->seq;
    if (seq <= 0.0) seq = sm_train_usual_seq(&t->model);
    q->seq = seq;
    q->recipe = recipe;
    q->plan = sm_source_of("the recipe's plan", recipe->plan);
    if (cli_given(call, &o->batch)) return SM_OK;
    if (recipe->batch <= 0.0)
        return sm_fail(err, SM_USAGE, "the recipe does not say its batch: --batch does");
    const char *batch = sm_arena_printf(call->arena, "%.0fseqs", recipe->batch);
    q->batch = sm_source_of("the recipe's batch", batch);
    return batch ? SM_OK : sm_fail_memory(err);
}

/* What is asked of one plan cannot be asked where many are found. */
static sm_status check_one_plan(const cli_call *call, const cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    bool chips = cli_given(call, &o->chips),
         limited = o->tokens > 0.0 && (o->within > 0.0 || o->budget > 0.0);
    const char *many = chips                       ? "--chips finds many"
                       : t->question.n_systems > 0 ? "--on finds one of each system"
                       : limited                   ? "--within and --budget look at many sizes"
                                                   : NULL;
    const char *what = t->question.method      ? "--method is of"
                       : t->question.goodput   ? "--failures and --checkpoint are of"
                       : o->timeline           ? "--timeline draws"
                       : o->against            ? "--against compares"
                       : o->why                ? "--why is of"
                       : o->what_if            ? "--what-if changes the machine of"
                       : o->sensitivity        ? "--sensitivity is of"
                       : o->plot               ? "--plot draws"
                       : t->question.softwares ? "--software all prices"
                       : call->common.explain  ? "--explain derives"
                                               : NULL;
    if (many && what) return sm_fail(err, SM_USAGE, "%s one plan, and %s", what, many);
    if (chips && (limited || t->question.n_systems > 0))
        return sm_fail(err, SM_USAGE, "--chips compares sizes of one system, and %s",
                       t->question.n_systems > 0 ? "--on names several"
                                                 : "--within and --budget find one");
    if (o->tokens <= 0.0 && t->question.goodput)
        return sm_fail(err, SM_USAGE,
                       "--failures, --checkpoint and what goes with them need --tokens, the length "
                       "of the run");
    if (o->tokens <= 0.0 && o->budget > 0.0)
        return sm_fail(err, SM_USAGE, "--budget needs --tokens, the length of the run");
    return SM_OK;
}

static void read_goodput(const cli_call *call, sm_train_question *q) {
    const cli_train_values *o = call->values;
    q->failures = cli_given(call, &o->failures) ? &o->failures : NULL;
    q->checkpoint_s = cli_given(call, &o->checkpoint) ? &o->checkpoint : NULL;
    q->restart_s = cli_given(call, &o->restart) ? &o->restart : NULL;
    q->interval_s = o->interval;
    q->stragglers = o->stragglers;
    q->repair_s = o->repair;
    q->goodput = q->failures || q->checkpoint_s || q->restart_s || q->interval_s > 0.0 ||
                 cli_given(call, &o->stragglers) || q->repair_s > 0.0;
}

/* Of code bases of the caller's the first that says what it holds. */
static sm_status read_held(const cli_call *call, sm_train_question *q, sm_error *err) {
    const cli_train_values *o = call->values;
    const sm_codebase *list;
    size_t n;
    sm_status status = cli_codebases(call, &o->codebases, &list, &n, err);
    for (size_t i = 0; i < n && !status && !q->held; i++)
        if (list[i].memories > 0) q->held = &list[i].memory[list[i].memories - 1];
    return status;
}

/* A plan has keys with values; a file whose name has them too is reached as ./NAME. */
static bool is_plan(const char *text) { return strchr(text, '=') && !strchr(text, '/'); }

sm_status cli_training_read(const cli_call *call, cli_training *t, sm_error *err) {
    const cli_train_values *o = call->values;
    sm_train_question *q = &t->question;
    *q = SM_QUESTION(sm_train_question);
    q->model = &t->model;
    q->system = &t->system;
    q->batch = cli_text(call, &o->batch);
    q->seq = cli_given(call, &o->seq) ? (double)o->seq : 0.0;
    q->tokens = o->tokens;
    q->usd_per_chip_hour = cli_given(call, &o->price) ? &o->price : NULL;
    q->within_s = o->within;
    q->budget_usd = o->budget;
    q->memory_margin = cli_given(call, &o->margin) ? &o->margin : NULL;
    q->plan = cli_text(call, &o->plan);
    q->dtype = cli_text(call, &o->dtype);
    q->optimizer = cli_text(call, &o->optimizer);
    q->most = cli_text(call, &o->most);
    q->top = (int)o->top;
    q->objective = o->objective;
    q->threads = (int)o->threads;
    q->seconds = o->seconds;
    q->chips = t->chips;
    q->explain = call->common.explain;
    q->timeline = o->timeline != NULL;
    q->as_run = o->as_run;
    q->what_if = cli_text(call, &o->what_if);
    q->sensitivity = o->sensitivity || o->plot;
    q->why = o->why;
    read_goodput(call, q);
    cli_asked_frameworks asked = {.known = NULL};
    sm_status status = o->recipe.from ? read_recipe(call, t, err) : read_job(call, t, err);
    if (!status) status = cli_frameworks(call, &o->recipe, SM_PLAN_TRAINING, &asked, err);
    q->frameworks = asked.known;
    q->framework = asked.framework;
    q->emit = asked.emit;
    q->any_plan = cli_any_framework(&o->recipe);
    q->softwares = o->constants.software && strcmp(o->constants.software, "all") == 0;
    bool constants = o->constants.calibration || (o->constants.software && !q->softwares);
    int each = constants && q->n_systems > 0 ? q->n_systems : constants;
    for (int i = 0; i < each && !status; i++)
        status = cli_calibration(call, i ? &t->systems[i].chip : &t->system.chip, &o->constants,
                                 &t->calibrations[i], err);
    if (constants) q->calibration = t->calibrations[0];
    if (constants) q->calibrations = t->calibrations;
    if (!status && o->against && is_plan(o->against)) q->other = cli_source(call, &o->against);
    else if (!status && o->against)
        status = sm_io_read_packed(o->against, SM_IO_DATA_BYTES, call->arena, &q->against, err);
    if (!status && o->recipe.from) status = take_recipe(call, t, err);
    if (!status && o->recipe.from && !constants)
        q->calibration =
            cli_recipe_calibration(&t->recipe, &t->system, sm_calibration_of(&t->system.chip));
    if (!status) status = read_method(call, t, err);
    if (!status) status = read_held(call, q, err);
    if (!status) status = check_one_plan(call, t, err);
    return status ? status : read_chips(call, t, err);
}

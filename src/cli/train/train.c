/* train: the best plans to train a model on a system, or the price of one plan. */
#include "program.h"
#include "scalemodel/io.h"
#include "train_watch.h"
#include <string.h>

/* The question, what it points to, and what else is asked. */
typedef struct training {
    sm_train_question question;
    sm_model model, reward_model, critic_model;
    sm_system system;         /* the first of several */
    const sm_system *systems; /* all of them */
    sm_system rollout_system;
    const sm_calibration *calibrations[SM_MAX_COMPARED];
    int sizes[SM_MAX_TRAIN_SIZES];
    sm_recipe recipe;
    const char *on, *timeline, *plot, *against, *reward, *critic, *rollout;
    sm_range chips;
    cli_list codebases;
    cli_calibration_values constants;
    cli_model_values read_by;
    cli_recipe_values recipe_values;
} training;

enum { MOST_CHIPS = 1 << 20 };

static const char *const objectives[] = {"time", "cost", "memory"};
static const char *const methods[] = {"pretrain", "dpo", "grpo", "ppo"};

#define AT(member) offsetof(training, member)
#define ASK(member) AT(question.member)

static const cli_option train_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips: tpu-v5p:16x20x28, h100-sxm:128x8, ...; several, with commas between, are "
             "compared; all:8 is 8 of each chip"},
    {"batch", 0, CLI_SOURCE, ASK(batch), "BATCH",
     .help = "a global batch: tokens, 4M or 4Mi, rounded to sequences that divide, "
             "or 2048seqs; max, the most that --within allows",
     .default_says = "what --from says"},
    {"seq", 0, CLI_COUNT, ASK(seq), "T", .help = "tokens of a sequence", .lowest = 1,
     .highest = 1e9, .default_says = "4096, or what the model was made for where that is less"},
    {"tokens", 0, CLI_NUMBER, ASK(tokens), "N",
     .help = "tokens of the whole run: 15T; gives its time and cost"},
    {"within", 0, CLI_TIME, ASK(within_s), "TIME",
     .help = "with --tokens, the fewest chips whose run takes no longer: 30d; with --batch max, "
             "of a step: 10s",
     .above = true},
    {"budget", 0, CLI_USD, ASK(budget_usd), "USD",
     .help = "with --tokens, the fewest chips whose run costs no more", .above = true},
    {"failures", 0, CLI_NUMBER, ASK(failures), "RATE", .optional = true,
     .help = "with --tokens, interruptions per chip and hour, 2e-5: days and dollars with them",
     .highest = 10, .default_says = "the chip's, where a source tells it; else a curve"},
    {"checkpoint", 0, CLI_TIME, ASK(checkpoint_s), "TIME", .optional = true,
     .help = "with --tokens, how long a checkpoint stops the run: 30s",
     .default_says = "a chip's state over its link to the host"},
    {"interval", 0, CLI_TIME, ASK(interval_s), "TIME", .help = "of work between checkpoints",
     .default_says = "the best", .above = true},
    {"restart", 0, CLI_TIME, ASK(restart_s), "TIME", .optional = true,
     .help = "from an interruption to the next step", .default_says = "10min, as MegaScale's"},
    {"stragglers", 0, CLI_NUMBER, ASK(stragglers), "SHARE",
     .help = "by which slow chips lengthen each step: 0.02", .highest = 100},
    {"repair", 0, CLI_TIME, ASK(repair_s), "TIME",
     .help = "of a host that failed: how many spare hosts the run needs", .above = true},
    {"plan", 0, CLI_SOURCE, ASK(plan), "PLAN",
     .help = "keys to keep: fsdp=64,tensor=8,recompute=full; a plan that uses every chip and says "
             "its microbatch is only priced"},
    {"top", 0, CLI_INT, ASK(top), "K", .help = "how many plans to show", .lowest = 1,
     .highest = SM_MAX_TOP, .by_default = "3"},
    {"objective", 0, CLI_CHOICE, ASK(objective), "WHAT", .help = "what is best",
     .words = {objectives, 3}, .by_default = "time"},
    {"chips", 0, CLI_RANGE, AT(chips), "RANGE",
     .help = "64..16384: the best plan for each power of two, and what pays off",
     .highest = MOST_CHIPS},
    {"dtype", 0, CLI_SOURCE, ASK(dtype), "DTYPE",
     .help = "what matmuls with weights compute in: the plan's key", .default_says = "bf16"},
    {"optimizer", 0, CLI_SOURCE, ASK(optimizer), "NAME",
     .help = "adam, adam-bf16, adam-8bit, muon, lion, adafactor, ...: the plan's key",
     .default_says = "adam"},
    {"price", 0, CLI_USD, ASK(usd_per_chip_hour), "USD", .optional = true,
     .help = "of a chip for an hour", .highest = 1e6, .default_says = "the catalogue's"},
    {"memory-margin", 0, CLI_NUMBER, ASK(memory_margin), "SHARE", .optional = true,
     .help = "of a chip's memory that stays free", .highest = 0.95,
     .default_says = "0.03: four of five measured peaks are within it of the predicted; "
                     "with --as-run 0"},
    {"max", 0, CLI_SOURCE, ASK(most), "DEGREES", .help = "limits to degrees: tensor=8,pipeline=16"},
    {"as-run", 0, CLI_FLAG, ASK(as_run), NULL,
     .help =
         "price what 'run train' executes: one op after the other, in fp32 or the plan's dtype"},
    {"threads", 0, CLI_INT, ASK(threads), "N",
     .help = "threads that search; the answer is the same", .lowest = 1, .highest = 1024,
     .default_says = "all processors"},
    {"seconds", 0, CLI_NUMBER, ASK(seconds), "N",
     .help = "stop searching then: the best so far, and what a better one can gain at most",
     .highest = 1e6, .default_says = "no limit"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE", .gets = CLI_TRACKS,
     .help = "write the simulated step of the best plan for Perfetto"},
    {"against", 0, CLI_TEXT, AT(against), "WHAT",
     .help = "another plan, fsdp=64,microbatch=1: where their steps differ; or a compiled module "
             "or a profile of such a step: what was predicted beside it"},
    {"what-if", 0, CLI_SOURCE, ASK(what_if), "CHANGES",
     .help = "the job on another machine too: link=2x,hbm=1.5x,domain=72"},
    {"why", 0, CLI_FLAG, ASK(why), NULL,
     .help =
         "why the best plan has its degrees: twice and half of each, and what speaks against it"},
    {"sensitivity", 0, CLI_FLAG, ASK(sensitivity), NULL,
     .help = "what more of each resource would bring: elasticities, break-even values"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .gets = CLI_CHART,
     .help = "draw the step's time with 10 % more and less of each resource as SVG"},
    {"method", 0, CLI_CHOICE, ASK(method), "WHAT",
     .help =
         "what is learned from; all but the first add an iteration over the batch, phase by phase",
     .words = {methods, 4}, .by_default = "pretrain"},
    {"rollout", 0, CLI_TEXT, AT(rollout), "SYSTEM",
     .help = "with grpo and ppo, chips of the engines that generate",
     .default_says = "those that train"},
    {"prompt", 0, CLI_COUNT, ASK(prompt), "TOKENS",
     .help = "of a rollout, the rest of --seq is generated", .lowest = 1, .highest = 1e9,
     .default_says = "a quarter of --seq"},
    {"samples", 0, CLI_COUNT, ASK(samples), "N", .help = "rollouts of a prompt", .lowest = 1,
     .highest = 1e6, .default_says = "8 of grpo, 1 of ppo"},
    {"epochs", 0, CLI_COUNT, ASK(epochs), "N", .help = "over each batch of rollouts", .lowest = 1,
     .highest = 1000, .by_default = "1"},
    {"reward", 0, CLI_TEXT, AT(reward), "MODEL", .help = "that scores rollouts",
     .default_says = "a rule does, at no cost"},
    {"critic", 0, CLI_TEXT, AT(critic), "MODEL", .help = "of ppo",
     .default_says = "as large as MODEL"},
    {"no-reference", 0, CLI_FLAG, ASK(no_reference), NULL,
     .help = "with --method, nothing is held against the model as it was"},
    CLI_CODEBASE_OPTION(training, codebases),
    CLI_CALIBRATION_OPTIONS(training, constants),
    CLI_MODEL_OPTIONS(training, read_by),
    CLI_RECIPE_OPTIONS(training, recipe_values),
    {.name = NULL},
};

/* ---- the question ---- */

/* The models and the chips of what comes after pretraining. */
static sm_status read_method(const cli_call *call, training *t, sm_error *err) {
    sm_train_question *q = &t->question;
    const cli_model_values read_by = {.families = t->read_by.families};
    bool asked = t->rollout || q->prompt > 0.0 || q->samples > 0.0 || t->reward || t->critic ||
                 q->no_reference;
    if (q->method == SM_PREFER_NONE && asked)
        return sm_fail(err, SM_USAGE,
                       "rollouts, rewards and a reference are of --method dpo, grpo or ppo");
    sm_status status = SM_OK;
    if (t->rollout) status = cli_system(call, t->rollout, &t->rollout_system, err);
    if (!status && t->reward)
        status = cli_read_model(call, &read_by, t->reward, &t->reward_model, err);
    if (!status && t->critic)
        status = cli_read_model(call, &read_by, t->critic, &t->critic_model, err);
    if (status) return status;
    q->rollout = t->rollout ? &t->rollout_system : NULL;
    q->reward = t->reward ? &t->reward_model : NULL;
    q->critic = t->critic ? &t->critic_model : NULL;
    double seq = sm_train_seq(&t->model, q->seq);
    if (q->method == SM_PREFER_NONE || q->prompt < seq) return SM_OK;
    return cli_refuse(call, &q->prompt, err, "a rollout has %.0f tokens, and one must be generated",
                      seq);
}

static sm_status read_chips(const cli_call *call, training *t, sm_error *err) {
    const sm_range *range = &t->chips;
    t->question.chips = t->sizes;
    if (!cli_given(call, range)) return SM_OK;
    if (!strstr(cli_source(call, range).text, ".."))
        return cli_refuse(call, range, err, "expected a range of chips, as in 64..16384");
    for (int64_t chips = range->first; chips <= range->last;) {
        if (t->question.n_chips == SM_MAX_TRAIN_SIZES)
            return cli_refuse(call, range, err, "at most %d sizes of system; widen the step",
                              SM_MAX_TRAIN_SIZES);
        t->sizes[t->question.n_chips++] = (int)chips;
        if (chips == range->last) break;
        int64_t power = 1;
        while (power <= chips) power *= 2;
        chips = range->step ? chips + range->step : power < range->last ? power : range->last;
    }
    return SM_OK;
}

static sm_status read_job(const cli_call *call, training *t, sm_error *err) {
    sm_train_question *q = &t->question;
    int n;
    if (!call->positionals)
        return sm_fail(err, SM_USAGE, "train needs MODEL, or --from with the recipe in use");
    sm_status status = cli_need(call, &q->batch, err);
    if (!status) status = cli_read_model(call, &t->read_by, call->positional[0], &t->model, err);
    if (!status) status = cli_systems(call, &t->on, &t->systems, &n, err);
    if (status) return status;
    t->system = t->systems[0];
    q->systems = t->systems;
    q->n_systems = n > 1 ? n : 0;
    return SM_OK;
}

static sm_status read_recipe(const cli_call *call, training *t, sm_error *err) {
    if (cli_given(call, &t->chips))
        return sm_fail(err, SM_USAGE, "--from prices one recipe, and --chips finds many plans");
    return cli_recipe(call, &t->recipe_values, &t->read_by, t->on, SM_PLAN_TRAINING, &t->recipe,
                      &t->model, &t->system, err);
}

/* What the recipe says of the job, where no option does. */
static sm_status take_recipe(const cli_call *call, training *t, sm_error *err) {
    sm_train_question *q = &t->question;
    const sm_recipe *recipe = &t->recipe;
    q->seq = sm_train_seq(&t->model, q->seq > 0.0 ? q->seq : recipe->seq);
    q->recipe = recipe;
    sm_status status = cli_recipe_plan(call, recipe->plan, &q->plan, err);
    if (status || q->batch.text) return status;
    if (recipe->batch <= 0.0)
        return sm_fail(err, SM_USAGE, "the recipe does not say its batch: --batch does");
    const char *batch = sm_arena_printf(call->arena, "%.0fseqs", recipe->batch);
    q->batch = sm_source_of("the recipe's batch", batch);
    return batch ? SM_OK : sm_fail_memory(err);
}

/* What is asked of one plan cannot be asked where many are found. */
static sm_status check_one_plan(const cli_call *call, const training *t, sm_error *err) {
    const sm_train_question *q = &t->question;
    bool chips = cli_given(call, &t->chips), several = q->n_systems > 0,
         limited = q->tokens > 0.0 && (q->within_s > 0.0 || q->budget_usd > 0.0);
    const char *many = chips     ? "--chips finds many"
                       : several ? "--on finds one of each system"
                       : limited ? "--within and --budget look at many sizes"
                                 : NULL;
    const char *what = q->method              ? "--method is of"
                       : q->goodput           ? "--failures and --checkpoint are of"
                       : t->timeline          ? "--timeline draws"
                       : t->against           ? "--against compares"
                       : q->why               ? "--why is of"
                       : q->what_if.text      ? "--what-if changes the machine of"
                       : q->sensitivity       ? "--sensitivity is of"
                       : t->plot              ? "--plot draws"
                       : q->softwares         ? "--software all prices"
                       : call->common.explain ? "--explain derives"
                                              : NULL;
    if (many && what) return sm_fail(err, SM_USAGE, "%s one plan, and %s", what, many);
    if (chips && (limited || several))
        return sm_fail(err, SM_USAGE, "--chips compares sizes of one system, and %s",
                       several ? "--on names several" : "--within and --budget find one");
    if (q->tokens <= 0.0 && q->goodput)
        return sm_fail(err, SM_USAGE,
                       "--failures, --checkpoint and what goes with them need --tokens, the length "
                       "of the run");
    if (q->tokens <= 0.0 && q->budget_usd > 0.0)
        return sm_fail(err, SM_USAGE, "--budget needs --tokens, the length of the run");
    return SM_OK;
}

/* Of code bases of the caller's the first that says what it holds. */
static sm_status read_held(const cli_call *call, training *t, sm_error *err) {
    const sm_codebase *list;
    size_t n;
    sm_status status = cli_codebases(call, &t->codebases, &list, &n, err);
    for (size_t i = 0; i < n && !status && !t->question.held; i++)
        if (list[i].memories > 0) t->question.held = &list[i].memory[list[i].memories - 1];
    return status;
}

/* The constants of the software that runs the plan, on each system. */
static void take_framework(training *t, const sm_framework *framework) {
    sm_train_question *q = &t->question;
    if (!framework || q->as_run) return;
    for (int i = 0; i == 0 || i < q->n_systems; i++) {
        const sm_chip *chip = i ? &t->systems[i].chip : &t->system.chip;
        const cli_framework_use use = {framework, SM_EVIDENCE_TRAINING, &t->model, chip};
        t->calibrations[i] =
            cli_framework_calibration(&use, t->recipe.software, sm_calibration_of(chip));
    }
    q->calibration = t->calibrations[0];
    q->calibrations = t->calibrations;
}

/* A plan has keys with values; a file whose name has them too is reached as ./NAME. */
static bool is_plan(const char *text) { return strchr(text, '=') && !strchr(text, '/'); }

static sm_status read_question(const cli_call *call, training *t, sm_error *err) {
    sm_train_question *q = &t->question;
    const char *from = t->recipe_values.from, *software = t->constants.software;
    q->size = sizeof *q;
    q->model = &t->model;
    q->system = &t->system;
    q->explain = call->common.explain;
    q->timeline = t->timeline != NULL;
    q->goodput = q->failures || q->checkpoint_s || q->restart_s || q->interval_s > 0.0 ||
                 cli_given(call, &q->stragglers) || q->repair_s > 0.0;
    cli_asked_frameworks asked = {.known = NULL};
    sm_status status = from ? read_recipe(call, t, err) : read_job(call, t, err);
    if (!status) status = cli_frameworks(call, &t->recipe_values, SM_PLAN_TRAINING, &asked, err);
    q->frameworks = asked.known;
    q->framework = asked.framework;
    q->emit = asked.emit;
    q->any_plan = cli_any_framework(&t->recipe_values);
    q->softwares = software && strcmp(software, "all") == 0;
    bool constants = t->constants.calibration || (software && !q->softwares);
    int each = constants && q->n_systems > 0 ? q->n_systems : constants;
    for (int i = 0; i < each && !status; i++)
        status = cli_calibration(call, i ? &t->systems[i].chip : &t->system.chip, &t->constants,
                                 &t->calibrations[i], err);
    if (constants) q->calibration = t->calibrations[0];
    if (constants) q->calibrations = t->calibrations;
    if (!status && t->against && is_plan(t->against)) q->other = cli_source(call, &t->against);
    else if (!status && t->against)
        status = sm_io_read_packed(t->against, SM_IO_DATA_BYTES, call->arena, &q->against, err);
    if (!status && from) status = take_recipe(call, t, err);
    if (!status && !constants) take_framework(t, cli_framework_of(&t->recipe, &asked));
    if (!status) status = read_method(call, t, err);
    if (!status) status = read_held(call, t, err);
    if (!status) status = check_one_plan(call, t, err);
    q->sensitivity = q->sensitivity || t->plot;
    return status ? status : read_chips(call, t, err);
}

static sm_status run_train(const cli_call *call, sm_report *r, sm_error *err) {
    training *t = call->values;
    sm_status status = read_question(call, t, err);
    if (status) return status;
    cli_watch watch;
    cli_watch_begin(&watch, call, &t->question);
    sm_status answer = sm_answer_train(&t->question, r, err);
    cli_watch_end(&watch);
    return answer;
}

const cli_verb cli_train = {
    .name = "train",
    .summary = "the best plans to train a model on a system: time, memory, cost",
    .arguments = "[MODEL]",
    .options = train_table,
    .columns = "plan,step_time_s.expected,mfu,chips,step_time_s.lower,"
               "tokens_per_s_per_chip,memory_bytes.total,bound,train_time_s,cost_usd",
    .values_bytes = sizeof(training),
    .plans = 1u << SM_PLAN_TRAINING,
    .notes = "example: scalemodel train llama-3.1-70b --on tpu-v5p:16x20x28 --batch 4M \\\n"
             "           --seq 4096 --tokens 15T\n",
    .tells_progress = true,
    .run = run_train,
};

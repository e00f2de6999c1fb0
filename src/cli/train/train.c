/* train: the best plans to train a model on a system, or the price of one plan. */
#include "scalemodel/io.h"
#include "train_watch.h"
#include <math.h>

/* The question, what it points to, and what else is asked. */
typedef struct values {
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
    if (isnan(seq)) return sm_fail_memory(err);
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
    sm_range powers = *range; /* of two, behind the first size */
    if (!(range->step > 0.0) && range->last > range->first)
        powers.first = exp2(floor(log2(range->first)));
    const int sizes = sm_range_points(&powers);
    if (sizes > SM_MAX_TRAIN_SIZES)
        return cli_refuse(call, range, err, "at most %d sizes of system; widen the step",
                          SM_MAX_TRAIN_SIZES);
    for (int i = 0; i < sizes; i++)
        t->sizes[i] = (int)fmax(range->first, sm_range_value(&powers, i));
    t->question.n_chips = sizes;
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
    return cli_recipe(call, &t->recipe_values, &t->read_by, t->on, SM_PLAN_TRAINING,
                      &(cli_recipe_read){&t->recipe, &t->model, &t->system}, err);
}

/* What the recipe says of the job, where no option does. */
static sm_status take_recipe(const cli_call *call, training *t, sm_error *err) {
    sm_train_question *q = &t->question;
    const sm_recipe *recipe = &t->recipe;
    q->seq = sm_train_seq(&t->model, q->seq > 0.0 ? q->seq : recipe->seq);
    q->recipe = recipe;
    if (isnan(q->seq)) return sm_fail_memory(err);
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
                       : q->emit              ? "--emit writes"
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
static sm_status take_framework(const cli_call *call, training *t, const sm_framework *framework,
                                sm_error *err) {
    sm_train_question *q = &t->question;
    sm_status status = SM_OK;
    if (!framework || q->as_run) return SM_OK;
    for (int i = 0; !status && (i == 0 || i < q->n_systems); i++) {
        const sm_chip *chip = i ? &t->systems[i].chip : &t->system.chip;
        const sm_framework_job use = {framework, SM_EVIDENCE_TRAINING, &t->model, chip};
        status = sm_framework_calibration(&use, t->recipe.software, call->arena,
                                          &t->calibrations[i], err);
        if (!t->calibrations[i]) t->calibrations[i] = sm_calibration_of(chip);
    }
    q->calibration = t->calibrations[0];
    q->calibrations = t->calibrations;
    return status;
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
    if (!status && q->against.text && q->against.text[0] == '{')
        return sm_fail(err, SM_BAD_INPUT,
                       "%.200s is no compiled module: of a trace alone "
                       "'scalemodel profile' tells where the time goes",
                       t->against);
    if (!status && from) status = take_recipe(call, t, err);
    if (!status && !constants)
        status = take_framework(call, t, cli_framework_of(&t->recipe, &asked), err);
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
    .about = &verbs_train,
    CLI_VALUES(AT("on", on), ASK("batch", batch), ASK("seq", seq), ASK("tokens", tokens),
               ASK("within", within_s), ASK("budget", budget_usd), ASK("failures", failures),
               ASK("checkpoint", checkpoint_s), ASK("interval", interval_s),
               ASK("restart", restart_s), ASK("stragglers", stragglers), ASK("repair", repair_s),
               ASK("plan", plan), ASK("top", top), ASK("objective", objective), AT("chips", chips),
               ASK("dtype", dtype), ASK("optimizer", optimizer), ASK("price", usd_per_chip_hour),
               ASK("memory-margin", memory_margin), ASK("max", most), ASK("as-run", as_run),
               ASK("threads", threads), ASK("seconds", seconds), AT("timeline", timeline),
               AT("against", against), ASK("what-if", what_if), ASK("why", why),
               ASK("sensitivity", sensitivity), AT("plot", plot), ASK("method", method),
               AT("rollout", rollout), ASK("prompt", prompt), ASK("samples", samples),
               ASK("epochs", epochs), AT("reward", reward), AT("critic", critic),
               ASK("no-reference", no_reference), CLI_CODEBASE_PLACE(codebases),
               CLI_CALIBRATION_PLACES(constants), CLI_MODEL_PLACES(read_by),
               CLI_SOURCE_PLACES(read_by), CLI_RECIPE_PLACES(recipe_values)),
    .plans = 1u << SM_PLAN_TRAINING,
    .tells_progress = true,
    .run = run_train,
};

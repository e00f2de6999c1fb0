/* train_recipe: recipes of other frameworks in the answer about training: what one says, what would
 * be better in its framework, and the best plan as one. */
#include "runners.h"
#include "train_asked.h"

/* ---- plans that a framework can run ---- */

/* Types and kernels: no search chooses them. */
static const sm_plan_key unsearched[] = {SM_PLAN_DTYPE, SM_PLAN_OPTIMIZER, SM_PLAN_GRADIENT,
                                         SM_PLAN_ATTENTION};
enum { UNSEARCHED = sizeof unsearched / sizeof *unsearched };

/* What the search does not choose is as usual, or the first value that the framework has. */
static sm_status keep_key(sm_train_asked *q, sm_plan_key key, sm_error *err) {
    const sm_plan_key_row *row = sm_plan_key_row_of(key);
    for (int i = -1; i < row->words.n; i++) {
        char item[64];
        sm_plan plan = q->search.fixed;
        snprintf(item, sizeof item, "%s=%s", row->name, i < 0 ? "" : row->words.word[i]);
        sm_source source = sm_source_of(q->space.name, item);
        sm_status status = i < 0 ? SM_OK : sm_plan_change(&source, &plan, err);
        if (status) return status;
        if (!sm_plan_limits_have(&q->space.limits, &plan, 1ull << key)) continue;
        q->search.fixed = plan;
        return SM_OK;
    }
    return SM_OK;
}

sm_status sm_train_keep_unsearched(sm_train_asked *q, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; i < UNSEARCHED && !status; i++)
        if (!sm_plan_given(&q->search.fixed, unsearched[i]))
            status = keep_key(q, unsearched[i], err);
    return status;
}

static sm_runners runners_of(const sm_train_asked *q) {
    bool several = q->in.n_systems > 0 || q->in.n_chips > 0 || q->in.within_s > 0.0 ||
                   q->in.budget_usd > 0.0; /* each of which has a batch of its own */
    double sequences = q->batch.most || (q->batch.about && several) ? 0 : q->batch.sequences;
    return (sm_runners){.all = q->frameworks,
                        .job = {q->in.model, q->in.system, sequences},
                        .use = SM_PLAN_TRAINING,
                        .kept_to = q->in.framework,
                        .emit = q->in.emit,
                        .unsearched = UNSEARCHED,
                        .unsearch = unsearched};
}

bool sm_train_runs_in(const sm_train_asked *q, const sm_framework *framework) {
    const sm_runners all = runners_of(q);
    return sm_runners_run(&all, framework, &q->search.fixed);
}

static sm_status keep_to_one(sm_train_asked *q, sm_error *err) {
    const sm_plan *fixed = &q->search.fixed;
    const sm_runners one = runners_of(q);
    sm_status status = sm_runners_one(&one, q->report, fixed, &q->in.plan, &q->space, err);
    q->search.space = &q->space;
    q->kept_to = q->in.framework;
    return status ? status : sm_train_keep_unsearched(q, err);
}

sm_status sm_train_keep_to(sm_train_asked *q, sm_error *err) {
    sm_status status = SM_OK;
    sm_frameworks *shipped;
    q->frameworks = q->in.frameworks;
    q->all = q->search.space;
    for (int i = 0; !status && i < (q->in.n_systems > 0 ? q->in.n_systems : 1); i++) {
        sm_runners named = runners_of(q);
        if (q->in.n_systems > 0) named.job.system = &q->in.systems[i];
        status = sm_runners_named(&named, err);
    }
    if (status) return status;
    /* of a plan that a program cannot have, nothing is written */
    const sm_plan *fixed = &q->search.fixed;
    const sm_plan_job any = {q->in.model, q->in.system, 0};
    bool writes =
        q->in.emit && sm_framework_is_program(q->in.emit) && !q->in.any_plan && !q->in.as_run;
    if (!q->in.framework && writes && !sm_framework_refuses(q->in.emit, fixed, fixed->given, &any))
        q->in.framework = q->in.emit;
    if (q->in.framework) return keep_to_one(q, err);
    if (!q->frameworks) status = sm_frameworks_shipped(q->report->arena, &shipped, err);
    if (!status && !q->frameworks) q->frameworks = shipped;
    sm_padding padding;
    bool pads = !q->in.as_run && sm_plan_padding(&q->search.fixed, q->in.model, &padding);
    if (pads) q->job.padded_for = &q->search.fixed; /* which no framework does */
    if (status || pads || q->in.any_plan || q->in.as_run) return status;
    const sm_runners all = runners_of(q);
    return sm_runners_any(&all, q->report, fixed, &q->space, &q->search.space, &q->in_frameworks,
                          err);
}

/* ---- what would be better ---- */

static sm_status beside(void *context, sm_train *train, const sm_plans_shown *best, sm_error *err) {
    const sm_plans_shown *mine = context;
    sm_report *r = mine->q->report;
    const char *title = sm_framework_title(mine->q->in.recipe->framework);
    (void)train, (void)err;
    if (best->n == 0) {
        sm_report_text(r, "No plan that %s can run fits.", title);
        return SM_OK;
    }
    const sm_plan_shown *plan = &best->plan[0];
    double theirs = mine->n ? mine->plan[0].detail.price.expected_s : HUGE_VAL;
    double ours = plan->detail.price.expected_s;
    bool fits = mine->n && mine->plan[0].detail.price.fits;
    sm_put(r, sm_put_object(r, r->data, "best_in_framework"), "plan|expected_s", plan->text, ours);
    if (fits && ours >= 0.995 * theirs) {
        sm_report_text(r, "No plan that %s can run in this precision is quicker.", title);
        return SM_OK;
    }
    sm_report_heading(r, "The best plan for %s: %s a step%s", title, sm_show_seconds(r, ours),
                      !fits ? ", and it fits"
                            : sm_textf(r, ", %.1f %% less", 100.0 * (1.0 - ours / theirs)));
    sm_report_text(r, "%s", plan->text);
    sm_report_text(r, "--emit %s --plan '%s' writes its recipe.",
                   sm_framework_name(mine->q->in.recipe->framework), plan->text);
    return SM_OK;
}

/* The same model, batch and types; all else is free within what the framework runs. */
sm_status sm_train_recipe_best(const sm_plans_shown *plans, sm_error *err) {
    const sm_train_asked *q = plans->q;
    sm_train_question other = q->in;
    const sm_plan_job any = {q->in.model, q->in.system, 0};
    const char *text = "";
    uint64_t keys = 0;
    for (int i = 0; i < UNSEARCHED; i++) {
        char value[64];
        sm_plan_key_print(&q->search.fixed, unsearched[i], 0, value, sizeof value);
        text = sm_textf(q->report, "%s%s%s=%s", text, text[0] ? "," : "",
                        sm_plan_key_row_of(unsearched[i])->name, value);
        keys |= 1ull << unsearched[i];
    }
    if (sm_framework_refuses(q->in.recipe->framework, &q->search.fixed, keys, &any)) text = "";
    other.plan = sm_source_of("--from", text);
    other.framework = q->in.recipe->framework;
    other.recipe = NULL;
    other.top = 1;
    return sm_train_ask(&other, q->report, beside, (void *)plans, err);
}

/* ---- which frameworks run the best plan ---- */

/* The best plan of another space, where it has less than search->below. */
static sm_status look_beyond(const sm_train_asked *q, sm_train *train, sm_search_options *search,
                             double best, sm_plans_shown *plans, sm_error *err) {
    const sm_search_effort *effort;
    sm_found better;
    if (search->seconds > 0) { /* those of all searches */
        search->seconds = q->search.seconds - plans->effort.seconds;
        if (search->seconds <= 0) {
            plans->beyond_known = false;
            return SM_OK;
        }
    }
    sm_status status = sm_train_best(q, train, *search, &better, &effort, err);
    if (status > SM_NEGATIVE) return status;
    plans->effort.seconds += effort->seconds;
    plans->beyond_known = plans->beyond_known && effort->optimal;
    if (!better.plan) return SM_OK;
    search->below = sm_train_objective_of(q, better.price);
    plans->beyond = sm_train_plan_words(q->report, q->system, better.plan);
    plans->beyond_gain = 1 - search->below / best;
    plans->beyond_s = better.price->expected_s;
    return SM_OK;
}

/* Degrees that do not divide the experts, each on the model that is padded for it. */
static sm_status look_at_padded(const sm_train_asked *q, sm_search_options *search, double best,
                                sm_plans_shown *plans, sm_error *err) {
    sm_status status = SM_OK;
    if (sm_plan_given(&q->search.fixed, SM_PLAN_EXPERT)) return SM_OK;
    while (!status && sm_question_pads_next(&search->fixed, q->in.model, q->system->chips)) {
        sm_train *padded = NULL;
        sm_job job = q->job;
        job.padded_for = &search->fixed;
        status = sm_train_new(&job, &padded, err);
        if (!status) {
            sm_train_with_software(q, padded);
            const char *before = plans->beyond;
            status = look_beyond(q, padded, search, best, plans, err);
            if (plans->beyond != before) plans->beyond_pads = true;
        }
        sm_train_free(padded);
    }
    return status;
}

sm_status sm_train_beyond(const sm_train_asked *q, sm_train *train, sm_plans_shown *plans,
                          sm_error *err) {
    sm_search_options search = q->search;
    const double best = sm_train_objective_of(q, &plans->plan[0].detail.price);
    search.space = q->all;
    search.below = best * (1 - SM_WORTH_TELLING);
    plans->beyond_known = true;
    plans->beyond_gain = SM_WORTH_TELLING;
    if (q->in_frameworks) return look_beyond(q, train, &search, best, plans, err);
    return look_at_padded(q, &search, best, plans, err); /* only who takes any plan waits for it */
}

void sm_train_runners_page(sm_report *r, const sm_plans_shown *plans) {
    const sm_train_asked *q = plans->q;
    if (plans->n == 0 || q->in.framework || q->in.as_run) return;
    if (q->priced_only) sm_train_frameworks_page(r, q);
    if (q->priced_only || plans->padding > 0) return;
    sm_runners all = runners_of(q);
    all.job.sequences = plans->sequences;
    const char *titles = sm_runners_of(&all, r, plans->plan->plan);
    if (titles[0]) sm_report_text(r, "Frameworks that can run it: %s.", titles);
    else
        sm_report_text(r, "No framework known here runs this plan; --framework megatron-lm, "
                          "maxtext, ... keeps the search to what one runs.");
    sm_train_frameworks_page(r, q);
    if (!plans->beyond && (!plans->beyond_known || !q->in_frameworks)) return;
    sm_data *object = sm_put_object(r, r->data, "beyond_frameworks");
    if (!plans->beyond) {
        sm_put(r, object, "gains_at_most", plans->beyond_gain);
        sm_report_text(r, "Plans that none of them runs gain less than %.0f %%.",
                       100 * plans->beyond_gain);
        return;
    }
    sm_put(r, object, "best_plan|expected_s|gains", plans->beyond, plans->beyond_s,
           plans->beyond_gain);
    sm_report_text(r, "A plan that none of them runs gains %.1f %% (%s), %s a step: %s",
                   100 * plans->beyond_gain,
                   plans->beyond_pads ? "it pads the experts" : "--framework any",
                   sm_show_seconds(r, plans->beyond_s), plans->beyond);
}

/* ---- the best plan as a recipe ---- */

sm_status sm_train_emit(const sm_plans_shown *plans, sm_error *err) {
    const sm_train_asked *q = plans->q;
    sm_report *r = q->report;
    const sm_plan_shown *best = &plans->plan[0];
    const sm_price_of_plan *price = &best->detail.price;
    static const char *const methods[] = {NULL, "dpo", "grpo", "ppo"};
    const char *program = NULL;
    sm_status status =
        sm_framework_is_program(q->in.emit) ? sm_train_program(plans, &program, err) : SM_OK;
    const sm_system *on = sm_train_runs_on(r, q->system, best->plan);
    if (!status && !on) status = sm_fail_memory(err);
    if (status) return status;
    const sm_recipe_job job = {.model = q->in.model,
                               .program = program,
                               .system = on,
                               .plan = best->plan,
                               .batch = plans->sequences,
                               .seq = q->job.seq,
                               .software = q->in.calibration->software,
                               .method = methods[q->in.method],
                               .predicted = sm_textf(r, "%s a step, %s of memory a chip%s",
                                                     sm_show_seconds(r, price->expected_s),
                                                     sm_show_bytes(r, price->memory.total),
                                                     price->fits ? "" : ", which does not fit")};
    return sm_recipe_emit(r, q->in.emit, &job, 1, err);
}

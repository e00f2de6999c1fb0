/* train_recipe: recipes of other frameworks in the answer about training: what one says, what would
 * be better in its framework, and the best plan as one. */
#include "recipe_page.h"
#include "train_asked.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- plans that a framework can run ---- */

/* Types and kernels: no search chooses them. */
static const sm_plan_key unsearched[] = {SM_PLAN_DTYPE, SM_PLAN_OPTIMIZER, SM_PLAN_GRADIENT,
                                         SM_PLAN_ATTENTION};

/* What the search does not choose is as usual, or the first value that the framework has. */
static sm_status keep_key(sm_train_asked *q, sm_plan_key key, sm_error *err) {
    const sm_plan_key_row *row = sm_plan_key_row_of(key);
    for (int i = -1; i < row->words.n; i++) {
        char item[64];
        sm_plan plan = q->search.fixed;
        snprintf(item, sizeof item, "%s=%s", row->name, i < 0 ? "" : row->words.word[i]);
        sm_source source = sm_source_of(sm_framework_name(q->in.framework), item);
        sm_status status = i < 0 ? SM_OK : sm_plan_change(&source, &plan, err);
        if (status) return status;
        if (!sm_plan_limits_have(&q->space.limits, &plan, 1u << key)) continue;
        q->search.fixed = plan;
        return SM_OK;
    }
    return SM_OK;
}

sm_status sm_train_keep_to(sm_train_asked *q, sm_error *err) {
    const sm_plan *fixed = &q->search.fixed;
    const char *why = sm_framework_refuses(q->in.framework, fixed, fixed->given);
    sm_framework_space(q->in.framework, &q->space);
    q->search.space = &q->space;
    sm_status status = SM_OK;
    for (int i = 0; i < 4 && !why && !status; i++)
        if (!sm_plan_given(fixed, unsearched[i])) status = keep_key(q, unsearched[i], err);
    if (!why) return status;
    sm_error odd = {.status = SM_BAD_INPUT};
    const char *title = sm_framework_title(q->in.framework);
    bool key = !strchr(why, ' ');
    sm_fail(&odd, SM_BAD_INPUT, "%s cannot run this plan: %s%s", title,
            key ? "it has no such value of " : "", why);
    *err = odd;
    return sm_question_blame(&q->in.plan, SM_BAD_INPUT, err);
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
    sm_data *object = sm_put_object(r, r->data, "best_in_framework");
    sm_put_text(r, object, "plan", plan->text);
    sm_put(r, object, "expected_s", ours);
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
    const char *text = "";
    uint32_t keys = 0;
    for (int i = 0; i < 4; i++) {
        char value[64];
        sm_plan_key_print(&q->search.fixed, unsearched[i], 0, value, sizeof value);
        text = sm_textf(q->report, "%s%s%s=%s", text, text[0] ? "," : "",
                        sm_plan_key_row_of(unsearched[i])->name, value);
        keys |= 1u << unsearched[i];
    }
    if (sm_framework_refuses(q->in.recipe->framework, &q->search.fixed, keys)) text = "";
    other.plan = sm_source_of("--from", text);
    other.framework = q->in.recipe->framework;
    other.recipe = NULL;
    other.top = 1;
    return sm_train_ask(&other, q->report, beside, (void *)plans, err);
}

/* ---- which frameworks run the best plan ---- */

/* What no search chooses and nobody asked for is what the framework has. */
static bool runs(const sm_framework *framework, const sm_plan *plan, const sm_model *model) {
    sm_plan_space space = {.name = NULL};
    sm_plan_limits limits;
    uint32_t keys = sm_plan_keys_for(model);
    for (int i = 0; i < 4; i++)
        if (!sm_plan_given(plan, unsearched[i])) keys &= ~(1u << unsearched[i]);
    sm_framework_space(framework, &space);
    return sm_plan_space_of(&space, plan, &limits) && sm_plan_limits_have(&limits, plan, keys) &&
           !sm_framework_refuses(framework, plan, keys);
}

sm_status sm_train_runners_page(sm_report *r, const sm_plans_shown *plans, sm_error *err) {
    const sm_train_asked *q = plans->q;
    sm_frameworks *all;
    if (plans->n == 0 || q->priced_only || q->in.framework || q->in.as_run) return SM_OK;
    sm_status status = sm_frameworks_shipped(r->arena, &all, err);
    if (status) return status;
    sm_data *list = sm_put_array(r, r->data, "runs_in");
    const char *titles = "";
    for (int i = 0; i < all->n; i++) {
        const sm_framework *f = all->of[i];
        if (sm_framework_use(f) != SM_PLAN_TRAINING || !runs(f, plans->plan->plan, q->in.model))
            continue;
        sm_put_text(r, list, NULL, sm_framework_name(f));
        titles = sm_textf(r, "%s%s%s", titles, titles[0] ? ", " : "", sm_framework_title(f));
    }
    if (titles[0]) sm_report_text(r, "Frameworks that can run it: %s.", titles);
    else
        sm_report_text(r, "No framework known here runs this plan; --framework megatron-lm, "
                          "maxtext, ... keeps the search to what one runs.");
    return SM_OK;
}

/* ---- the best plan as a recipe ---- */

sm_status sm_train_emit(const sm_plans_shown *plans, sm_error *err) {
    const sm_train_asked *q = plans->q;
    sm_report *r = q->report;
    const sm_plan_shown *best = &plans->plan[0];
    const sm_price_of_plan *price = &best->detail.price;
    const sm_recipe_job job = {.model = q->in.model,
                               .system = q->system,
                               .plan = best->plan,
                               .batch = plans->sequences,
                               .seq = q->job.seq,
                               .predicted = sm_textf(r, "%s a step, %s of memory a chip%s",
                                                     sm_show_seconds(r, price->expected_s),
                                                     sm_show_bytes(r, price->memory.total),
                                                     price->fits ? "" : ", which does not fit")};
    return sm_recipe_emit(r, q->in.emit, &job, err);
}

/* recipe_page: a recipe of another framework in an answer: what it says, line by line; what is
 * emitted. */
#include "runners.h"

#include <string.h>

#include "scalemodel/io.h"

static void told_data(sm_report *r, sm_data *object, const sm_recipe *recipe, sm_recipe_told told,
                      const char *key) {
    sm_data *list = sm_put_array(r, object, key);
    for (int i = 0; i < recipe->notes; i++) {
        const sm_recipe_note *note = &recipe->note[i];
        if (note->told != told) continue;
        sm_data *item = sm_put_object(r, list, NULL);
        if (note->line) sm_put(r, item, "line", note->line);
        if (note->what[0]) sm_put(r, item, "setting", note->what);
        sm_put(r, item, "says", note->why);
    }
}

/* What is passed over for one reason stands together. */
static void passed_over(sm_report *r, const sm_recipe *recipe) {
    enum { MOST_LETTERS = 2000 };
    for (int i = 0; i < recipe->notes; i++) {
        const sm_recipe_note *first = &recipe->note[i];
        bool before = first->told != SM_TOLD_IGNORED;
        for (int k = 0; k < i && !before; k++)
            before = recipe->note[k].told == SM_TOLD_IGNORED &&
                     strcmp(recipe->note[k].why, first->why) == 0;
        if (before) continue;
        const char *all = "";
        for (int k = i; k < recipe->notes && strlen(all) < MOST_LETTERS; k++) {
            const sm_recipe_note *note = &recipe->note[k];
            if (note->told != SM_TOLD_IGNORED || strcmp(note->why, first->why) != 0) continue;
            all = sm_textf(r, "%s%s%s (line %d)", all, all[0] ? ", " : "", note->what, note->line);
        }
        sm_report_text(r, "Passed over, %s: %s.", first->why, all);
    }
}

void sm_recipe_page(sm_report *r, const sm_recipe *recipe) {
    sm_data *object = sm_put_object(r, r->data, "recipe");
    sm_put(r, object, "framework|version|model|batch_sequences|seq|plan",
           sm_framework_name(recipe->framework), sm_framework_version(recipe->framework),
           recipe->model ? recipe->model : recipe->named, recipe->batch, recipe->seq, recipe->plan);
    told_data(r, object, recipe, SM_TOLD_UNDERSTOOD, "understood");
    told_data(r, object, recipe, SM_TOLD_ASSUMED, "assumed");
    told_data(r, object, recipe, SM_TOLD_IGNORED, "passed_over");
    sm_report_heading(r, "A recipe of %s, read as of version %s",
                      sm_framework_title(recipe->framework),
                      sm_framework_version(recipe->framework));
    sm_table *table = sm_page_table(r, NULL, ">{=}line|<understood|<as");
    for (int i = 0; i < recipe->notes; i++) {
        const sm_recipe_note *note = &recipe->note[i];
        if (note->told == SM_TOLD_UNDERSTOOD)
            sm_page_row(r, table, note->line, note->what, note->why);
    }
    for (int i = 0; i < recipe->notes; i++)
        if (recipe->note[i].told == SM_TOLD_ASSUMED)
            sm_report_text(r, "Assumed: %s.", recipe->note[i].why);
    passed_over(r, recipe);
}

static double weights_of(const sm_model *model) {
    const sm_params p = sm_model_params(model);
    return p.total - p.embedding - p.unembedding;
}

/* Settings that spell a model out are read back: where they are another's, beside the vocabulary,
 * the recipe says so. */
static sm_status say_other_model(sm_report *r, const sm_framework *framework,
                                 const sm_recipe_job *job, const char **text, int *cannot,
                                 sm_error *err) {
    sm_source source = sm_source_of("the recipe", *text);
    sm_settings settings;
    sm_recipe recipe = {.config = NULL};
    sm_model model;
    sm_status status = sm_io_settings(&source, r->arena, &settings, err);
    if (!status)
        status = sm_recipe_read(NULL, framework, job->plan->use, &settings, (sm_recipe_chips){0},
                                &recipe, err);
    if (status || recipe.model || !recipe.config) return status == SM_INTERNAL ? status : SM_OK;
    if (**text == '{') return SM_OK; /* no place for a sentence */
    source = sm_source_of("the recipe's model", recipe.config);
    status = sm_model_parse(NULL, NULL, &source, r->arena, &model, err);
    if (status == SM_INTERNAL) return status;
    double here = weights_of(job->model), there = status ? 0 : weights_of(&model);
    if (fabs(there - here) <= 0.01 * here) return SM_OK;
    *text = sm_textf(
        r, "%s%s# - the model: these sizes make %s beside the vocabulary, it has %s parameters\n",
        *text, (*cannot)++ ? "" : "# What this framework cannot be told of the plan:\n",
        status ? "none that is known" : sm_show_count(r, there), sm_show_count(r, here));
    return SM_OK;
}

sm_status sm_recipe_emit(sm_report *r, const sm_framework *framework, const sm_recipe_job *job,
                         int n, sm_error *err) {
    const char *all = "";
    char why[256];
    int cannot = 0;
    for (int i = 0; i < n; i++) {
        char *written = NULL;
        int here = 0;
        if (sm_plan_refuse(job[i].plan, job[i].model, why, sizeof why))
            return sm_fail(err, SM_BAD_INPUT, "recipes are not written of padded models: %s", why);
        sm_status status = sm_recipe_write(framework, &job[i], r->arena, &written, &here, err);
        const char *text = written;
        if (!status && !job->program)
            status = say_other_model(r, framework, &job[i], &text, &here, err);
        if (status) return status;
        all = sm_textf(r, "%s%s%s", all, i ? "\n" : "", text);
        cannot += here;
    }
    sm_put(r, sm_put_object(r, r->data, "emitted"), "framework|text|cannot_be_told",
           sm_framework_name(framework), all, cannot);
    r->file = all;
    sm_report_lines(r, all);
    return SM_OK;
}

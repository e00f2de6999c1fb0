/* recipe_options: what `train` and `serve` ask of other frameworks. */
#include "options.h"
#include "scalemodel/io.h"

#include <math.h>
#include <string.h>

/* Those that are shipped, of the memo where there is one. */
static sm_status shipped(const cli_call *call, sm_frameworks **all, sm_error *err) {
    cli_memo *memo = call->memo;
    if (!memo) return sm_frameworks_shipped(call->arena, all, err);
    pthread_mutex_lock(&memo->lock);
    sm_status status =
        memo->frameworks ? SM_OK : sm_frameworks_shipped(memo->arena, &memo->frameworks, err);
    *all = memo->frameworks;
    if (status) memo->frameworks = NULL;
    pthread_mutex_unlock(&memo->lock);
    return status;
}

static sm_status find(const sm_frameworks *all, const char *option, const char *name,
                      sm_plan_use use, const sm_framework **out, sm_error *err) {
    const char *names[SM_MOST_FRAMEWORKS];
    int n = 0;
    *out = NULL;
    if (!name) return SM_OK;
    sm_source source = sm_source_of(option, name);
    for (int i = 0; i < all->n; i++)
        if (sm_framework_use(all->of[i]) == use) names[n++] = sm_framework_name(all->of[i]);
    *out = sm_framework_find(all, name, source.length);
    if (*out && sm_framework_use(*out) == use) return SM_OK;
    return sm_words_fail((sm_words){names, n}, &source, (sm_span){0, source.length},
                         use == SM_PLAN_SERVING ? "no framework that serves is called"
                                                : "no framework that trains is called",
                         err);
}

bool cli_any_framework(const cli_recipe_values *given) {
    return given->framework && strcmp(given->framework, "any") == 0;
}

sm_status cli_frameworks(const cli_call *call, const cli_recipe_values *given, sm_plan_use use,
                         cli_asked_frameworks *out, sm_error *err) {
    const char *name = cli_any_framework(given) ? NULL : given->framework;
    *out = (cli_asked_frameworks){.known = NULL};
    if (given->emit && call->common.csv)
        return sm_fail(err, SM_USAGE, "--emit prints a recipe, and --csv tables of plans");
    const bool own = given->frameworks.n > 0; /* which are added to those shipped */
    sm_status status = own ? sm_frameworks_shipped(call->arena, &out->known, err)
                           : shipped(call, &out->known, err);
    for (int i = 0; i < given->frameworks.n && !status; i++) {
        sm_source source;
        status = sm_io_read(given->frameworks.text[i], call->arena, &source, err);
        if (!status) status = sm_frameworks_read(out->known, &source, err);
    }
    if (!status) status = find(out->known, "--framework", name, use, &out->framework, err);
    return status ? status : find(out->known, "--emit", given->emit, use, &out->emit, err);
}

/* ---- a recipe ---- */

typedef struct reading {
    const cli_call *call;
    const sm_frameworks *all;
    const sm_framework *framework;
    sm_plan_use use;
    sm_settings settings;
} reading;

static sm_recipe_chips chips_of(const sm_system *s) {
    bool torus = s->torus_dims > 0;
    double node =
        s->levels > 0 && !torus ? fmin(s->level[0].size, sm_chip_host_sharers(&s->chip)) : 0;
    return (sm_recipe_chips){.chip = s->chip.name,
                             .chips = s->chips,
                             .node = node,
                             .slices = s->slices,
                             .devices = s->chip.devices};
}

/* The chips are those of --on; its shape, or all of it, may be left to the recipe, which then is
 * read once without them. */
static sm_status find_chips(const reading *x, const char *on, sm_system *system, sm_error *err) {
    sm_recipe first;
    const char *name = on;
    if (on && strchr(on, ':')) return cli_system(x->call, on, system, err);
    sm_status status = sm_recipe_read(x->all, x->framework, x->use, &x->settings,
                                      (sm_recipe_chips){0}, &first, err);
    if (status) return status;
    if (!on) name = first.system;
    else if (first.chips > 1) name = sm_arena_printf(x->call->arena, "%s:%.0f", on, first.chips);
    if (!name && !x->call->common.system_file)
        return sm_fail(
            err, SM_USAGE, "this recipe of %s does not say on which chips it runs%s: --on does",
            sm_framework_title(first.framework),
            first.chips > 1 ? sm_arena_printf(x->call->arena, " (%.0f of them)", first.chips) : "");
    return cli_system(x->call, name, system, err);
}

static sm_status find_model(const cli_call *call, const cli_model_values *read_by,
                            const sm_recipe *recipe, sm_model *model, sm_error *err) {
    const sm_library *library;
    const char *title = sm_framework_title(recipe->framework);
    if (call->positionals > 0)
        return cli_read_model(call, read_by, call->positional[0], model, err);
    if (recipe->model) return cli_read_model(call, read_by, recipe->model, model, err);
    if (!recipe->config && recipe->named)
        return sm_fail(err, SM_USAGE,
                       "the catalogue has no model that %s calls \"%.60s\": give MODEL, a name of "
                       "'scalemodel model' or a config.json",
                       title, recipe->named);
    sm_error why = {.sentence = ""}; /* of a text that no user sees */
    sm_status status = cli_library(call, read_by, &library, err);
    if (!status && recipe->config) {
        sm_source config = sm_source_of("the recipe's model", recipe->config);
        status = sm_model_parse(library, read_by->as, &config, call->arena, model, &why);
        if (status != SM_BAD_INPUT) *err = why;
    }
    if (recipe->config ? status != SM_BAD_INPUT : status != SM_OK) return status;
    return sm_fail(err, SM_USAGE,
                   "this recipe of %s does not say its model%s%.200s: give MODEL, a name of "
                   "'scalemodel model' or a config.json",
                   title, recipe->config ? ", as " : "", why.sentence);
}

sm_status cli_recipe(const cli_call *call, const cli_recipe_values *given,
                     const cli_model_values *read_by, const char *on, sm_plan_use use,
                     const cli_recipe_read *to, sm_error *err) {
    bool piped = strcmp(given->from, "-") == 0;
    sm_source *source = sm_arena_alloc(call->arena, sizeof *source);
    reading x = {.call = call, .use = use};
    cli_asked_frameworks asked;
    if (!source) return sm_fail_memory(err);
    sm_status status = cli_frameworks(call, given, use, &asked, err);
    x.all = asked.known;
    x.framework = asked.framework;
    if (!status)
        status = sm_io_read_most(piped ? "/dev/stdin" : given->from, SM_RECIPE_BYTES, call->arena,
                                 source, err);
    if (status) return status;
    if (piped) source->name = "standard input";
    status = sm_io_settings(source, call->arena, &x.settings, err);
    if (!status) status = find_chips(&x, on, to->system, err);
    if (!status)
        status = sm_recipe_read(x.all, x.framework, use, &x.settings, chips_of(to->system),
                                to->recipe, err);
    return status ? status : find_model(call, read_by, to->recipe, to->model, err);
}

const sm_framework *cli_framework_of(const sm_recipe *recipe, const cli_asked_frameworks *asked) {
    if (recipe->framework) return recipe->framework;
    return asked->framework ? asked->framework : asked->emit;
}

/* Does a plan of text give the key of this item, "tensor=8"? */
static bool gives(const char *plan, const char *item) {
    const size_t key = strcspn(item, "=") + 1;
    for (const char *at = plan; *(at += strspn(at, ", \t\n")); at += strcspn(at, ","))
        if (strncmp(at, item, key) == 0) return true;
    return false;
}

sm_status cli_recipe_plan(const cli_call *call, const char *plan, sm_source *changed,
                          sm_error *err) {
    const char *text = changed->text ? changed->text : "", *kept = "";
    for (const char *item = plan; kept && *item;) {
        const size_t n = strcspn(item, ",");
        if (!gives(text, item))
            kept = sm_arena_printf(call->arena, "%s%s%.*s", kept, kept[0] ? "," : "", (int)n, item);
        item += n + (item[n] != '\0');
    }
    if (kept && text[0])
        kept = sm_arena_printf(call->arena, "%s%s%s", kept, kept[0] ? "," : "", text);
    if (!kept) return sm_fail_memory(err);
    *changed = sm_source_of(text[0] ? "the recipe's plan with --plan" : "the recipe's plan", kept);
    return SM_OK;
}

/* runners: the frameworks that can run a plan. */
#include "runners.h"

#include <math.h>
#include <string.h>

/* The plans of a framework, in what is asked for. */
static void add_framework(const sm_runners *of, sm_plan_space *space, const sm_framework *f,
                          const sm_plan *given) {
    space->job = of->job;
    sm_framework_space(f, space);
    for (int i = 0; i < of->unsearched; i++)
        if (!sm_plan_given(given, of->unsearch[i]))
            space->limits.of[of->unsearch[i]] = (sm_plan_limit){.words = 0};
}

static bool is_runner(const sm_runners *of, const sm_framework *f) {
    return sm_framework_use(f) == of->use && sm_framework_runs_on(f, of->job.system);
}

static bool may_run(const sm_runners *of, const sm_framework *f, const sm_plan *given) {
    const char *name = sm_framework_name(f);
    return sm_framework_find(of->all, name, strlen(name)) == f && is_runner(of, f) &&
           !sm_framework_refuses(f, given, given->given, &of->job) &&
           (of->emit ? f == of->emit : !sm_framework_is_program(f));
}

sm_status sm_runners_any(const sm_runners *of, sm_report *r, const sm_plan *given,
                         const sm_plan_space *own, const sm_plan_space **searched, bool *kept,
                         sm_error *err) {
    const sm_plan_space *list = NULL;
    int n = 0;
    for (int i = of->all->n - 1; i >= 0; i--) {
        if (!may_run(of, of->all->of[i], given)) continue;
        if (n++ == SM_MOST_SPACES)
            return sm_fail(err, SM_BAD_INPUT,
                           "more than %d frameworks can run it; name one of them, or any",
                           SM_MOST_SPACES);
        sm_plan_space *space = sm_arena_alloc(r->arena, sizeof *space);
        if (!space) return sm_fail_memory(err);
        *space = *own;
        add_framework(of, space, of->all->of[i], given);
        space->next = list;
        list = space;
    }
    *kept = list != NULL;
    if (list) *searched = list;
    return SM_OK;
}

static sm_status named(const sm_runners *of, const sm_framework *f, const char *option,
                       sm_error *err) {
    const char *names[SM_MOST_FRAMEWORKS];
    char what[sizeof of->job.system->text + 48];
    int n = 0;
    if (!f || is_runner(of, f)) return SM_OK;
    for (int i = 0; of->all && i < of->all->n; i++)
        if (is_runner(of, of->all->of[i])) names[n++] = sm_framework_name(of->all->of[i]);
    sm_source source = sm_source_of(option, sm_framework_name(f));
    snprintf(what, sizeof what, "no framework that runs on %s is called", of->job.system->text);
    return sm_words_fail((sm_words){names, n}, &source, (sm_span){0, source.length}, what, err);
}

sm_status sm_runners_named(const sm_runners *of, sm_error *err) {
    sm_status status = named(of, of->kept_to, "--framework", err);
    return status ? status : named(of, of->emit, "--emit", err);
}

/* Why a framework cannot run what is given of a plan; NULL: it can. */
static const char *refusal(const sm_runners *of, sm_report *r, const sm_framework *f,
                           const sm_plan *given) {
    const sm_plan_job any = {of->job.model, of->job.system, 0};
    const char *why = sm_framework_refuses(f, given, given->given, &any);
    if (why) return strchr(why, ' ') ? why : sm_textf(r, "it has no such value of %s", why);
    if (!sm_framework_refuses(f, given, given->given, &of->job)) return NULL;
    double sequences = of->job.sequences, step = sm_plan_replicas(given) * given->microbatch;
    if (sm_plan_shares(given, sequences, SM_SHARE_WHOLE)) step *= given->pipeline;
    return sm_textf(r,
                    "a batch of %.0f sequences is no whole number of microbatches of %d on each of "
                    "%.0f replicas; nearest: --batch %.0fseqs",
                    sequences, given->microbatch, sm_plan_replicas(given),
                    step * fmax(1, round(sequences / step)));
}

sm_status sm_runners_one(const sm_runners *of, sm_report *r, const sm_plan *given,
                         const sm_source *text, sm_plan_space *space, sm_error *err) {
    const char *why = refusal(of, r, of->kept_to, given);
    space->job = of->job;
    sm_framework_space(of->kept_to, space);
    if (!why) return SM_OK;
    sm_fail(err, SM_BAD_INPUT, "%s cannot run this plan: %s", sm_framework_title(of->kept_to), why);
    return sm_question_blame(text, SM_BAD_INPUT, err);
}

/* What no search chooses and nobody asked for is what the framework has. */
static bool runs(const sm_runners *of, const sm_framework *f, uint64_t keys, const sm_plan *plan) {
    sm_plan_space space = {.job = of->job};
    sm_plan_limits limits;
    sm_framework_space(f, &space);
    return is_runner(of, f) && !sm_framework_is_program(f) &&
           sm_plan_space_of(&space, plan, &limits) && sm_plan_limits_have(&limits, plan, keys) &&
           !sm_framework_refuses(f, plan, keys, &of->job);
}

const char *sm_runners_of(const sm_runners *of, sm_report *r, const sm_plan *plan) {
    uint64_t keys = sm_plan_keys_for(plan, of->job.model);
    for (int i = 0; i < of->unsearched; i++)
        if (!sm_plan_given(plan, of->unsearch[i])) keys &= ~(1ull << of->unsearch[i]);
    sm_data *list = sm_put_array(r, r->data, "runs_in");
    const char *titles = "";
    for (int i = 0; i < of->all->n; i++) {
        const sm_framework *f = of->all->of[i];
        if (!runs(of, f, keys, plan)) continue;
        sm_put(r, list, NULL, sm_framework_name(f));
        titles = sm_textf(r, "%s%s%s", titles, titles[0] ? ", " : "", sm_framework_title(f));
    }
    return titles;
}

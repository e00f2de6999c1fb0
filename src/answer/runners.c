/* runners: the frameworks that can run a plan, and the constants that theirs have. */
#include "runners.h"

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
bool sm_runners_run(const sm_runners *of, const sm_framework *f, const sm_plan *plan) {
    sm_plan_space space = {.job = of->job};
    sm_plan_limits limits;
    uint64_t keys = sm_plan_keys_for(plan, of->job.model);
    for (int i = 0; i < of->unsearched; i++)
        if (!sm_plan_given(plan, of->unsearch[i])) keys &= ~(1ull << of->unsearch[i]);
    sm_framework_space(f, &space);
    return is_runner(of, f) && !sm_framework_is_program(f) &&
           sm_plan_space_of(&space, plan, &limits) && sm_plan_limits_have(&limits, plan, keys) &&
           !sm_framework_refuses(f, plan, keys, &of->job);
}

const char *sm_runners_of(const sm_runners *of, sm_report *r, const sm_plan *plan) {
    sm_data *list = sm_put_array(r, r->data, "runs_in");
    const char *titles = "";
    for (int i = 0; i < of->all->n; i++) {
        const sm_framework *f = of->all->of[i];
        if (!sm_runners_run(of, f, plan)) continue;
        sm_put(r, list, NULL, sm_framework_name(f));
        titles = sm_textf(r, "%s%s%s", titles, titles[0] ? ", " : "", sm_framework_title(f));
    }
    return titles;
}

/* ---- whose constants ---- */

/* The rows of a software that evidence has of a chip. */
static int rows_of(const sm_framework_job *of, const char *software) {
    int rows = 0;
    for (size_t i = 0; i < sm_evidence_count(); i++) {
        const sm_evidence *e = sm_evidence_at(i);
        if (e->use == of->use && strcmp(e->software, software) == 0 &&
            strcmp(e->chip, of->chip->name) == 0)
            rows += e->rows;
    }
    return rows;
}

/* How far off a framework's plans of this model are expected to be under the constants of one of
 * its versions, as evidence has it; none where the model itself was measured so. INFINITY: of other
 * models, there are too few rows to speak of this one. */
static double expected_error(const sm_framework_job *of, const char *software) {
    enum { FEW_ROWS = 8 };
    sm_evidence_near near = {.error = NAN};
    const sm_evidence_question q = {.use = of->use,
                                    .model = of->model,
                                    .chip = of->chip,
                                    .software = software,
                                    .type = SM_DTYPE_COUNT};
    if (!sm_evidence_find(&q, &near, 1) || !(near.error >= 0)) return INFINITY;
    if (near.same_model && near.same_chip && near.same_software) return 0;
    return rows_of(of, software) < FEW_ROWS ? INFINITY : near.error;
}

sm_status sm_codebase_calibration(const sm_chip *chip, const char *name, sm_arena *arena,
                                  const sm_calibration **out, sm_error *err) {
    const sm_codebase *of = sm_codebase_of(name, strlen(name));
    if (!of || of->memories == 0) return SM_OK;
    sm_calibration *c = sm_arena_alloc(arena, sizeof *c);
    if (!c) return sm_fail_memory(err);
    *c = *sm_calibration_of(chip);
    c->source = sm_arena_printf(arena,
                                "none are known of %s on this chip, so they are those of %s %s "
                                "beside what its code does; %s",
                                of->title, c->chip, c->software, c->source);
    c->software = of->name;
    *out = c;
    return c->source ? SM_OK : sm_fail_memory(err);
}

sm_status sm_framework_calibration(const sm_framework_job *of, const char *said, sm_arena *arena,
                                   const sm_calibration **out, sm_error *err) {
    const double nearer = 0.9; /* an older version is taken where it is nearer by a tenth */
    const sm_framework *f = of->framework;
    /* of training, what is known of the chip, or of its next relative, is nearer than a framework's
     * elsewhere */
    const char *nearest = sm_calibration_of(of->chip)->chip;
    const sm_calibration *own = said ? sm_calibration_for(of->chip, said) : NULL;
    sm_status status = SM_OK;
    if (said && !own) status = sm_codebase_calibration(of->chip, said, arena, &own, err);
    const char *rest = f && !own ? sm_framework_software(f) : "", *word;
    double least = INFINITY;
    for (size_t n; (n = sm_next_word(&rest, &word)) > 0;) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        const sm_calibration *one = sm_calibration_for(of->chip, name);
        bool far = one && !sm_calibration_is_own(one, of->chip) && strcmp(one->chip, nearest) != 0;
        if (far && of->use == SM_EVIDENCE_TRAINING) continue;
        double error = one ? expected_error(of, name) : INFINITY;
        if (!one || (own && !(error < nearer * least))) continue;
        own = one;
        least = error;
    }
    if (f && !own && !said)
        status = sm_codebase_calibration(of->chip, sm_framework_name(f), arena, &own, err);
    *out = own;
    return status;
}

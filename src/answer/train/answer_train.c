/* answer_train: the best plans to train a model on a system, or the price of one plan. */
#include "profile_asked.h"
#include "runners.h"
#include "train_asked.h"
#include <assert.h>

enum { USUAL_SEQ = 4096, USUAL_TOP = 3 };

double sm_train_seq(const sm_model *model, double asked) {
    double usual = model->max_seq > 0 && model->max_seq < USUAL_SEQ ? model->max_seq : USUAL_SEQ;
    return sm_model_forward_flops(model, asked > 0.0 ? asked : usual, model->causal).tokens;
}

static sm_status read_question(const sm_train_question *question, sm_train_asked *q,
                               sm_error *err) {
    sm_train_question *in = &q->in;
    sm_status status = sm_sized_take(in, sizeof *in, question, err);
    if (!status) status = sm_question_needs(in->model && in->system, "a model and a system", err);
    if (!status)
        status = sm_question_needs(in->batch_tokens > 0.0 || in->batch.text, "a batch", err);
    if (!status) status = sm_question_limit("top", in->top, SM_MAX_TOP, err);
    if (!status) status = sm_question_limit("n_systems", in->n_systems, SM_MAX_COMPARED, err);
    if (!status) status = sm_question_limit("n_chips", in->n_chips, SM_MAX_TRAIN_SIZES, err);
    if (!status && in->goodput && !(in->tokens > 0.0))
        status = sm_question_needs(false, "the tokens of a run, for its goodput", err);
    if (status) return status;
    assert(in->model && in->system);
    q->own_constants = in->calibration != NULL;
    if (!in->calibration) in->calibration = sm_calibration_of(&in->system->chip);
    q->system = in->system;
    q->price_known = in->usd_per_chip_hour || sm_chip_usd_per_hour(&in->system->chip) > 0.0;
    q->job = (sm_job){.size = sizeof(sm_job),
                      .model = in->model,
                      .system = in->system,
                      .seq = sm_train_seq(in->model, in->seq),
                      .tokens = in->tokens,
                      .usd_per_chip_hour = in->usd_per_chip_hour ? *in->usd_per_chip_hour : -1.0};
    sm_search_defaults(&q->search);
    q->search.top = in->top > 0 ? in->top : USUAL_TOP;
    q->search.threads = in->threads;
    q->search.seconds = in->seconds;
    q->search.objective = in->objective;
    q->search.stop = in->stop;
    q->search.progress = in->progress;
    q->search.context = in->context;
    status = isnan(q->job.seq) ? sm_fail_memory(err)
                               : sm_question_seen(in->model, "sequence", q->job.seq, err);
    if (!status) status = sm_train_batch_set(q, err);
    if (!status) status = sm_train_plan_read(q, err);
    if (!status && q->in.as_run) status = sm_program_runs(in->model, (int)q->job.seq, false, err);
    return status;
}

double sm_train_margin(const sm_train_asked *q) {
    if (q->in.memory_margin) return *q->in.memory_margin;
    return q->in.as_run ? 0.0 : SM_USUAL_MEMORY_MARGIN;
}

void sm_train_with_software(const sm_train_asked *q, sm_train *train) {
    sm_train_set_memory_margin(train, sm_train_margin(q));
    sm_train_set_calibration(train, q->in.calibration);
    if (q->in.as_run) {
        const sm_train_software software = sm_train_runtime_of(&q->search.fixed);
        sm_train_set_software(train, &software);
        return;
    }
    const sm_software_memory *known =
        sm_software_memory_of(q->in.calibration->software, &q->system->chip, 0);
    sm_train_set_software_memory(train, q->in.held ? q->in.held : known);
}

/* ---- finding plans ---- */

/* A plan given whole is a space of one. */
static sm_status price_one(sm_train_asked *q, sm_train *train, sm_plans_shown *plans,
                           sm_error *err) {
    sm_price_of_plan price;
    double begun = sm_clock_s();
    sm_status status = sm_train_price_in(q, train, err);
    if (!status) status = sm_train_price(train, &q->search.fixed, &price, err);
    if (status) return sm_question_blame(&q->in.plan, status, err);
    plans->n = 1;
    plans->plan[0].plan = &q->search.fixed;
    plans->effort = (sm_search_effort){
        .space = 1.0, .evaluated = 1.0, .optimal = true, .seconds = sm_clock_s() - begun};
    return SM_OK;
}

sm_status sm_train_reason(const sm_train_asked *q, sm_train *train, const sm_error *none,
                          const char **reason, sm_error *err) {
    *reason = sm_train_plan_impossible(q, train);
    if (!*reason) *reason = sm_arena_printf(q->report->arena, "%s", none->sentence);
    return *reason ? SM_OK : sm_fail_memory(err);
}

sm_status sm_train_best(const sm_train_asked *q, sm_train *train, sm_search_options search,
                        sm_found *best, const sm_search_effort **effort, sm_error *err) {
    const sm_search_result *found = NULL;
    sm_error none = {.status = SM_OK};
    search.top = 1;
    search.progress = NULL;
    sm_status status = sm_train_search(train, &search, q->report->arena, &found, &none);
    *best = status ? (sm_found){NULL, NULL} : sm_search_result_at(found, 0);
    if (effort) *effort = sm_search_result_effort(found);
    if (status > SM_NEGATIVE) *err = none;
    return status;
}

static sm_status search_all(sm_train_asked *q, sm_train *train, sm_plans_shown *plans,
                            sm_error *err) {
    sm_error none = {.status = SM_OK};
    const sm_search_result *found;
    sm_status status = sm_train_find(q, train, &found, &plans->effort, &none);
    if (status > SM_NEGATIVE) {
        *err = none;
        return sm_question_blame(&q->in.plan, status, err);
    }
    plans->n = sm_search_result_count(found);
    for (int i = 0; i < plans->n; i++) plans->plan[i].plan = sm_search_result_at(found, i).plan;
    if (plans->n > 0) return SM_OK;
    if (plans->effort.optimal) return sm_train_reason(q, train, &none, &plans->reason, err);
    plans->reason = "the search was stopped before it found a plan";
    return SM_OK;
}

static sm_status find_plans(sm_train_asked *q, sm_train *train, sm_plans_shown *plans,
                            sm_error *err) {
    sm_arena *arena = q->report->arena;
    plans->sequences = sm_train_sequences(train);
    plans->model = sm_train_padded(train, &plans->padding);
    plans->plan = sm_arena_array(arena, SM_MAX_TOP, sizeof *plans->plan);
    if (!plans->plan) return sm_fail_memory(err);
    sm_status status =
        q->priced_only ? price_one(q, train, plans, err) : search_all(q, train, plans, err);
    bool forbidden = plans->n == 0 && plans->effort.space > 0.0; /* by memory */
    if (!status && forbidden && plans->effort.optimal)
        status = sm_train_fit_find(q, train, NULL, &plans->fit, err);
    for (int i = 0; i < plans->n && !status; i++) {
        sm_plan_shown *shown = &plans->plan[i];
        shown->text = sm_train_plan_words(q->report, q->system, shown->plan);
        status = sm_train_detail(train, shown->plan, arena, &shown->detail, err);
        if (status) return sm_question_blame(&q->in.plan, status, err);
    }
    bool whole = q->in_frameworks || (q->in.any_plan && !q->in.as_run);
    if (!status && whole && plans->n > 0 && !q->priced_only)
        status = sm_train_beyond(q, train, plans, err);
    if (!status && q->priced_only && !plans->plan[0].detail.price.fits)
        status = sm_train_fit_find(q, train, &plans->plan[0], &plans->fit, err);
    return status;
}

/* Find the plans and hand them over. */
static sm_status with_plans(sm_train_asked *q, sm_train_use use, void *context, sm_error *err) {
    sm_train *train = NULL;
    sm_plans_shown plans = {.q = q};
    sm_status status = sm_train_new(&q->job, &train, err);
    if (!status) {
        sm_train_with_software(q, train);
        status = find_plans(q, train, &plans, err);
    }
    if (!status) status = use(context, train, &plans, err);
    sm_train_free(train);
    return status;
}

static sm_status ask(const sm_train_question *question, sm_report *r, sm_train_asked **out,
                     sm_error *err) {
    sm_train_asked *q = *out = sm_arena_alloc(r->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->report = r;
    return read_question(question, q, err);
}

sm_status sm_train_ask(const sm_train_question *question, sm_report *r, sm_train_use use,
                       void *context, sm_error *err) {
    sm_train_asked *q;
    sm_status status = ask(question, r, &q, err);
    return status ? status : with_plans(q, use, context, err);
}

static sm_status answer(void *context, sm_train *train, const sm_plans_shown *plans,
                        sm_error *err) {
    sm_report *r = context;
    const sm_train_asked *q = plans->q;
    sm_status status = SM_OK;
    bool emits = q->in.emit && plans->n > 0;
    sm_train_data(r, plans);
    if (q->in.recipe && !emits) sm_recipe_page(r, q->in.recipe);
    if (!emits) sm_train_page(r, plans);
    if (!emits) sm_train_runners_page(r, plans);
    if (!status && q->in.recipe && !emits) status = sm_train_recipe_best(plans, err);
    if (!status && emits) status = sm_train_emit(plans, err);
    if (status || plans->n == 0) return status ? status : SM_NEGATIVE;
    const sm_plan_shown *best = &plans->plan[0];
    if (q->in.timeline) status = sm_train_tracks(q, train, best, err);
    if (status || emits) return status || best->detail.price.fits ? status : SM_NEGATIVE;
    if (q->in.softwares) status = sm_train_softwares(r, q, train, best->plan, err);
    if (!status && q->in.why) status = sm_train_why(q, train, best, err);
    if (q->in.goodput) sm_train_goodput(r, q, &best->detail.price);
    if (!status && q->in.method) status = sm_train_preference(q, plans, err);
    if (q->in.explain) r->why = best->detail.why;
    if (!status && q->in.other.text) status = sm_train_against_plan(q, train, best, err);
    if (!status && q->in.what_if.text) status = sm_train_what_if(q, train, best, err);
    if (!status && q->in.sensitivity) status = sm_train_sensitivity(q, train, best, err);
    if (!status && q->in.against.text) {
        sm_profile_question found = SM_QUESTION(sm_profile_question);
        found.module = q->in.against;
        found.system = q->system;
        found.systems = 1;
        found.calibration = q->in.calibration;
        status = profile_against_plan(r, &found, best->text, &best->detail, err);
    }
    if (status) return status;
    return best->detail.price.fits ? SM_OK : SM_NEGATIVE;
}

sm_status sm_answer_train(const sm_train_question *question, sm_report *r, sm_error *err) {
    sm_train_asked *q;
    sm_status status = ask(question, r, &q, err);
    if (status) return status;
    sm_put(r, r->data, "command", "train");
    if (q->in.n_chips > 0) return sm_train_sizes(q, r, err);
    bool limited = q->job.tokens > 0.0 && (q->in.within_s > 0.0 || q->in.budget_usd > 0.0);
    if (q->in.n_systems > 0 || (limited && !q->batch.most)) return sm_train_compare(q, r, err);
    if (q->batch.most) status = sm_train_batch_most(q, err);
    if (status) return status;
    status = with_plans(q, answer, r, err);
    return status == SM_OK && q->batch.missed ? SM_NEGATIVE : status;
}

/* serve_recipe: engines in the answer about serving: the plans that they run, who runs the best
 * one, and the best point as a command. */

#include "runners.h"
#include "serve_asked.h"

static sm_runners runners_of(const sm_serve_asked *q) {
    return (sm_runners){.all = q->frameworks,
                        .job = {q->in.model, q->in.system, 0},
                        .use = SM_PLAN_SERVING,
                        .kept_to = q->in.framework,
                        .emit = q->in.emit};
}

sm_status sm_serve_keep_to(sm_serve_asked *q, sm_error *err) {
    sm_frameworks *shipped = NULL;
    if (!q->in.plan.text) q->in.plan = sm_source_of(q->in.plan.name, "");
    sm_status status =
        sm_plan_parse_limits(&q->in.plan, SM_PLAN_SERVING, &q->search.fixed, &q->space.limits, err);
    if (status) return status;
    if (sm_plan_limits_some(&q->space.limits)) q->search.space = &q->space;
    q->frameworks = q->in.frameworks;
    if (!q->frameworks) status = sm_frameworks_shipped(q->arena, &shipped, err);
    if (status) return status;
    if (!q->frameworks) q->frameworks = shipped;
    const sm_runners all = runners_of(q);
    status = sm_runners_named(&all, err);
    if (status) return status;
    if (!q->in.framework)
        status = sm_question_pad(q->report, &q->search.fixed, &q->job.model, q->job.prompt,
                                 &q->padding, err);
    if (status || q->padding > 0) return status; /* which no engine does */
    if (q->in.framework) {
        q->search.space = &q->space;
        return sm_runners_one(&all, q->report, &q->search.fixed, &q->in.plan, &q->space, err);
    }
    if (q->in.any_plan || q->in.recipe) return SM_OK; /* priced only, whoever runs it */
    return sm_runners_any(&all, q->report, &q->search.fixed, &q->space, &q->search.space,
                          &q->in_frameworks, err);
}

/* Tokens a chip of the first point of the frontier that is no quicker, or of the slowest. */
static double beside_frontier(const sm_serving_found *a, const sm_serve_point *than) {
    int k = !a->q->search.by_lower;
    double next = INFINITY, most = 0;
    for (size_t i = 0; i < a->of_best->n; i++) {
        const sm_serve_point *p = &a->of_best->point[i];
        most = fmax(most, sm_serve_throughput(a->q, p));
        if (p->tpot_s[k] >= than->tpot_s[k]) next = fmin(next, sm_serve_throughput(a->q, p));
    }
    return fmin(next, most);
}

/* Degrees that do not divide the experts, each on the model padded for it, as in training. */
sm_status sm_serve_beyond(sm_serving_found *a, sm_error *err) {
    const sm_serve_asked *q = a->q;
    sm_serve_search_options options = q->search;
    sm_serve_job job = q->job;
    job.like = NULL; /* of another model */
    if (!q->in.any_plan || sm_plan_given(&options.fixed, SM_PLAN_EXPERT)) return SM_OK;
    a->padded_gain = SM_WORTH_TELLING;
    while (sm_question_pads_next(&options.fixed, q->in.model, q->in.system->chips)) {
        sm_serve_result found = {.n = 0};
        double share;
        job.model = q->in.model;
        sm_status status =
            sm_question_pad(q->report, &options.fixed, &job.model, job.prompt, &share, err);
        if (!status)
            status = sm_serve_search(&job, q->in.calibration, &options, q->arena, &found, err);
        if (status > SM_NEGATIVE) return status;
        for (size_t i = 0; i < found.n; i++) {
            const sm_serve_point *p = &found.point[i];
            double gain = sm_serve_throughput(q, p) / beside_frontier(a, p) - 1;
            if (gain <= a->padded_gain) continue;
            a->padded_gain = gain;
            a->padded = p;
        }
    }
    return SM_OK;
}

void sm_serve_runners_page(sm_report *r, const sm_serving_found *a) {
    const sm_serve_asked *q = a->q;
    const sm_runners all = runners_of(q);
    if (!a->best || q->one || q->in.framework) return;
    const char *titles = sm_runners_of(&all, r, &a->best->plan);
    if (titles[0]) sm_report_text(r, "Engines that can run it: %s.", titles);
    else
        sm_report_text(r, "No engine known here runs this plan; --framework vllm, sglang, ... "
                          "keeps the search to what one runs.");
    const sm_serve_point *p = a->padded;
    if (!p) return;
    const char *plan = sm_serve_plan_words(r, q->in.system, &p->plan);
    sm_put(r, sm_put_object(r, r->data, "beyond_frameworks"), "best_plan|batch|tpot_s|gains", plan,
           p->batch, p->tpot_s[1], a->padded_gain);
    sm_report_text(r,
                   "A plan that pads the experts gains %.1f %% more tokens a chip within %s a "
                   "token, batch %s: %s",
                   100 * a->padded_gain, sm_show_seconds(r, p->tpot_s[1]),
                   sm_show_exact(r, p->batch), plan);
}

/* A point as a command of an engine. */
static sm_recipe_job job_of(const sm_serving_found *a, const sm_serve_point *p, double batch,
                            const char *predicted) {
    const sm_serve_asked *q = a->q;
    const double groups = sm_plan_groups(&p->plan, q->in.model);
    const sm_model *draft = p->depth > 0 ? q->job.speculation.draft : NULL;
    return (sm_recipe_job){.model = q->in.model,
                           .system = q->in.system,
                           .plan = &p->plan,
                           .batch = batch,
                           .seq = sm_serve_longest(&q->job),
                           .memory_share = p->memory.share < 1.0 ? p->memory.share : 0.0,
                           .step_tokens = q->software.budget_given
                                              ? sm_software_budget(&q->software, groups) / groups
                                              : 0.0,
                           .weights = sm_dtype_name(q->job.dtypes.weights),
                           .checkpoint = q->job.as_stored ? q->in.checkpoint : NULL,
                           .kv = sm_dtype_name(q->job.dtypes.kv),
                           .draft = draft ? draft->name : NULL,
                           .drafted = p->depth,
                           .eager = q->in.eager,
                           .predicted = predicted,
                           .software = q->used->software};
}

/* Workers of two pools, each with its role. */
static sm_status emit_pools(const sm_serving_found *a, const sm_disaggregated *d, sm_error *err) {
    const sm_serve_asked *q = a->q;
    sm_report *r = q->report;
    const char *predicted = sm_textf(
        r,
        "%s workers that prefill and %s that decode serve %s requests a second; first token "
        "after %s, %s a token",
        sm_show_exact(r, d->prefill_workers), sm_show_exact(r, d->decode_workers),
        sm_show_number(r, d->requests_per_s), sm_show_seconds(r, d->ttft_s),
        sm_show_seconds(r, d->tpot_s));
    if (d->decode_workers <= 0.0) /* they are too few for a worker of each pool */
        predicted = sm_textf(r, "%s prefill chips for each decode chip",
                             sm_show_number(r, d->prefill_per_decode_chips));
    sm_recipe_job pool[] = {job_of(a, &d->prefill, d->prefill_batch, predicted),
                            job_of(a, &d->decode, d->decode.batch, predicted)};
    if (q->in.prefill_system) pool[0].system = q->in.prefill_system;
    pool[0].role = "prefill";
    pool[1].role = "decode";
    return sm_recipe_emit(r, q->in.emit, pool, 2, err);
}

/* The best point, or the replica of a fleet, or pools. */
sm_status sm_serve_emit(const sm_serving_found *a, sm_error *err) {
    const sm_serve_asked *q = a->q;
    sm_report *r = q->report;
    const sm_fleet *f = q->in.requests_per_s > 0.0 ? a->fleet : NULL;
    const sm_serve_point *p = f ? &f->point : a->best;
    if (a->pools) return emit_pools(a, a->pools, err);
    const char *each =
        sm_textf(r, "%s a token, %s to the first", sm_show_seconds(r, f ? f->tpot_s : p->tpot_s[1]),
                 sm_show_seconds(r, f ? f->ttft_s : p->ttft_s[1]));
    const double replicas = f ? f->replicas : q->taken ? q->taken->replicas : 0;
    const char *load = sm_show_number(r, f ? q->in.requests_per_s : q->in.concurrency);
    load = f ? sm_textf(r, "serve %s requests a second", load)
             : sm_textf(r, "have %s requests in flight each", load);
    const char *predicted =
        replicas > 0
            ? sm_textf(r, "%s such replicas %s: %s", sm_show_exact(r, replicas), load, each)
            : sm_textf(r, "%s, %.0f tokens/s a chip", each, p->tokens_per_s_per_chip);
    const sm_recipe_job job = job_of(a, p, p->batch, predicted);
    sm_status status = sm_recipe_emit(r, q->in.emit, &job, 1, err);
    return status ? status : p->fits ? SM_OK : SM_NEGATIVE;
}

/* train: the best plans to train a model on a system, or the price of one plan. */
#include "train.h"
#include "scalemodel/page.h"
#include "verbs.h"
#include <string.h>

/* ---- finding plans ---- */

/* A plan given whole is a space of one. */
static sm_status price_one(const cli_training *q, sm_train *train, sm_search_result *result,
                           sm_error *err) {
    double begun = sm_clock_s();
    result->found[0].plan = q->search.fixed;
    sm_status status = sm_train_price(train, &q->search.fixed, &result->found[0].price, err);
    if (status) return cli_plan_blame(q, status, err);
    result->n = 1;
    result->space = result->evaluated = 1.0;
    result->optimal = true;
    result->seconds = sm_clock_s() - begun;
    return SM_OK;
}

/* Why a search found nothing; the sentence of the library when nothing more is known. */
static sm_status find_reason(const cli_training *q, sm_train *train, cli_plans *plans,
                             const sm_error *none, sm_error *err) {
    if (plans->search->n > 0) return SM_OK;
    if (plans->interrupted) plans->reason = "the search was stopped before it found a plan";
    else plans->reason = cli_plan_impossible(q, train);
    if (!plans->reason) plans->reason = sm_arena_printf(q->call->arena, "%s", none->sentence);
    return plans->reason ? SM_OK : sm_fail_memory(err);
}

static sm_status search_all(cli_training *q, sm_train *train, cli_plans *plans, sm_error *err) {
    cli_watch watch;
    cli_watch_begin(&watch, &q->search);
    sm_error none = {.status = SM_OK};
    sm_status status = sm_train_search(train, &q->search, plans->search, &none);
    plans->interrupted = cli_watch_end(&watch);
    if (status == SM_OK || status == SM_NEGATIVE) return find_reason(q, train, plans, &none, err);
    *err = none;
    return cli_plan_blame(q, status, err);
}

static sm_status describe(const cli_training *q, sm_train *train, sm_report *r, cli_plans *plans,
                          sm_error *err) {
    plans->n = plans->search->n;
    plans->plan = sm_arena_array(q->call->arena, SM_MAX_TOP, sizeof *plans->plan);
    if (!plans->plan) return sm_fail_memory(err);
    for (int i = 0; i < plans->n; i++) {
        cli_plan_shown *shown = &plans->plan[i];
        shown->plan = &plans->search->found[i].plan;
        shown->text = cli_plan_words(r, &q->system, shown->plan);
        sm_status status = sm_train_detail(train, shown->plan, r->arena, &shown->detail, err);
        if (status) return cli_plan_blame(q, status, err);
    }
    return SM_OK;
}

static sm_status find_plans(cli_training *q, sm_train *train, sm_report *r, cli_plans *plans,
                            sm_error *err) {
    plans->q = q;
    plans->sequences = sm_train_sequences(train);
    plans->search = sm_arena_alloc(q->call->arena, sizeof *plans->search);
    if (!plans->search) return sm_fail_memory(err);
    sm_status status =
        q->priced_only ? price_one(q, train, plans->search, err) : search_all(q, train, plans, err);
    return status ? status : describe(q, train, r, plans, err);
}

/* ---- the verb ---- */

static sm_status answer(cli_training *q, sm_train *train, sm_report *r, sm_error *err) {
    cli_plans plans = {.q = q};
    sm_status status = find_plans(q, train, r, &plans, err);
    if (status) return status;
    cli_train_fields(r, &plans);
    cli_train_page(r, &plans);
    if (plans.n == 0) return SM_NEGATIVE;
    if (q->timeline) status = cli_train_timeline(q, train, &plans.plan[0], err);
    if (status) return status;
    if (q->call->common.explain) r->why = plans.plan[0].detail.why;
    return plans.plan[0].detail.price.fits ? SM_OK : SM_NEGATIVE;
}

void cli_train_with_software(const cli_training *q, sm_train *train) {
    sm_train_set_calibration(train, q->calibration);
    if (q->calibration) sm_train_set_habits(train, sm_memory_habits_of(q->calibration->software));
}

static sm_status run_train(const cli_call *call, sm_report *r, sm_error *err) {
    cli_training *q = sm_arena_alloc(call->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    sm_status status = cli_training_read(call, q, err);
    if (status) return status;
    sm_put_text(r, r->data, "command", "train");
    if (q->points) return cli_train_sweep(q, r, err);
    sm_train *train = NULL;
    status = sm_train_new(&q->job, &train, err);
    if (!status) cli_train_with_software(q, train);
    if (!status) status = answer(q, train, r, err);
    sm_train_free(train);
    return status;
}

const cli_verb cli_train = {
    .name = "train",
    .summary = "the best plans to train a model on a system: time, memory, cost",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = cli_train_options,
    .values_bytes = sizeof(cli_train_values),
    .plans = 1u << SM_PLAN_TRAINING,
    .notes = "example: scalemodel train llama-3.1-70b --on tpu-v5p:16x20x28 --batch 4M \\\n"
             "           --seq 4096 --tokens 15T\n",
    .run = run_train,
};

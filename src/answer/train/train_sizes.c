/* train_sizes: the best plan on systems of many sizes, and the sizes that pay off. */
#include "train_asked.h"

/* ---- searching ---- */

static sm_status search_point(sm_train_sweep *w, sm_train_point *p, sm_train *train,
                              sm_error *err) {
    sm_report *r = w->q->report;
    const sm_search_result *result;
    sm_error none = {.status = SM_OK};
    sm_search_effort all, *effort = &all;
    sm_train_asked *here = sm_arena_alloc(r->arena, sizeof *here);
    sm_system *system = sm_arena_alloc(r->arena, sizeof *system);
    if (!here || !system) return sm_fail_memory(err);
    *here = *w->q; /* which comes to keep to one framework */
    *system = p->system;
    here->system = system;
    p->q = here;
    sm_status status = sm_train_find(here, train, &result, effort, &none);
    w->interrupted = w->q->in.stop && *w->q->in.stop;
    w->total.space += effort->space;
    w->total.evaluated += effort->evaluated;
    w->total.pruned += effort->pruned;
    w->total.seconds += effort->seconds;
    w->total.optimal = w->total.optimal && effort->optimal;
    w->total.gap = fmax(w->total.gap, effort->gap);
    w->found += sm_search_result_count(result);
    p->sequences = sm_train_sequences(train);
    w->sequences = w->sequences > 0 ? fmin(w->sequences, p->sequences) : p->sequences;
    w->most = fmax(w->most, p->sequences);
    p->found = status == SM_OK && sm_search_result_count(result) > 0;
    if (status > SM_NEGATIVE) {
        *err = none;
        return sm_question_blame(&w->q->in.plan, status, err);
    }
    if (!p->found && effort->optimal) return sm_train_reason(w->q, train, &none, &p->reason, err);
    p->reason = p->found ? "" : "stopped";
    if (!p->found) return SM_OK;
    p->best.plan = sm_search_result_at(result, 0).plan;
    p->best.text = sm_train_plan_words(r, &p->system, p->best.plan);
    return sm_train_detail(train, p->best.plan, r->arena, &p->best.detail, err);
}

sm_status sm_train_point_find(sm_train_sweep *w, int chips, sm_train_point *p, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_status status = SM_OK;
    p->system = *w->q->in.system;
    if (chips != p->system.chips)
        status = sm_system_resize(w->q->in.system, chips, &p->system, &none);
    if (status == SM_BAD_INPUT) {
        p->system.chips = chips;
        p->reason = sm_textf(w->q->report, "%s", none.sentence);
        return SM_OK;
    }
    sm_job job = w->q->job;
    job.system = &p->system;
    job.batch_tokens = sm_train_batch_on(&w->q->batch, job.seq, chips) * job.seq;
    sm_train *train = NULL;
    if (!status) status = sm_train_new(&job, &train, err);
    if (train) sm_train_with_software(w->q, train);
    if (!status) status = search_point(w, p, train, err);
    sm_train_free(train);
    return status;
}

/* ---- showing ---- */

static const char *why_dropped(const sm_train_point *p) {
    return p->found ? "fewer chips are as fast" : p->reason ? p->reason : "";
}

static void put_fields(sm_report *r, const sm_train_sweep *w, const bool *pays) {
    sm_train_job_data(r, w->q, w->sequences);
    sm_train_search_data(r, &w->total);
    sm_data *pareto = sm_put_array(r, r->data, "pareto");
    r->records = pareto;
    sm_data *dropped = sm_put_array(r, r->data, "dropped");
    for (int i = 0; i < w->q->in.n_chips; i++) {
        const sm_train_point *p = &w->point[i];
        if (pays[i]) {
            sm_data *object = sm_put_object(r, pareto, NULL);
            sm_system_fields(r, object, &p->system);
            sm_put(r, object, "sequences", p->sequences);
            sm_train_plan_data(r, object, p->q, &p->best);
        } else if (p->system.chips) {
            sm_put(r, sm_put_object(r, dropped, NULL), "chips|reason", p->system.chips,
                   why_dropped(p));
        }
    }
}

/* Tokens of a chip over those of the smallest system: 1 when chips add up. */
static const char *scaling(sm_report *r, const sm_train_point *first, const sm_train_point *p) {
    const sm_price_of_plan *a = &first->best.detail.price, *b = &p->best.detail.price;
    return sm_show_percent(r, b->tokens_per_s_per_chip / a->tokens_per_s_per_chip);
}

static void pareto_rows(sm_report *r, const sm_train_sweep *w, const bool *pays) {
    const sm_train_point *first = NULL;
    const char *run = w->q->job.tokens > 0.0 ? "" : "-";
    sm_table *numbers =
        sm_page_table(r, "The best plan for each number of chips that pays off",
                      sm_textf(r,
                               ">{=}chips|>{s}step|>scaling|>{%%}MFU|>{n}tok/s/chip|<bound|"
                               "%s>{s}run|%s>{$}cost|%s>{B}memory",
                               run, run, *run ? "" : "-"));
    sm_table *plans = sm_page_table(r, NULL, ">{=}chips|<plan");
    for (int i = 0; i < w->q->in.n_chips; i++) {
        const sm_train_point *p = &w->point[i];
        const sm_price_of_plan *price = &p->best.detail.price;
        if (!pays[i]) continue;
        if (!first) first = p;
        sm_page_row(r, numbers, price->chips, price->expected_s, scaling(r, first, p), price->mfu,
                    price->tokens_per_s_per_chip, sm_train_bound(r, &p->system, price),
                    price->train_time_s, w->q->price_known ? price->cost_usd : NAN,
                    price->memory.total);
        sm_page_row(r, plans, price->chips,
                    sm_textf(r, "%s%s", sm_train_in(r, p->q, "", ": "), p->best.text));
    }
}

sm_status sm_train_sizes(sm_train_asked *q, sm_report *r, sm_error *err) {
    sm_train_sweep w = {.q = q, .total = {.optimal = true}};
    bool pays[SM_MAX_TRAIN_SIZES] = {false};
    w.point = sm_arena_array(r->arena, (size_t)q->in.n_chips, sizeof *w.point);
    if (!w.point) return sm_fail_memory(err);
    q->search.top = 1;
    sm_status status = SM_OK;
    for (int i = 0; i < q->in.n_chips && !status && !w.interrupted; i++)
        status = sm_train_point_find(&w, q->in.chips[i], &w.point[i], err);
    if (status) return status;
    double x[SM_MAX_TRAIN_SIZES] = {0}, y[SM_MAX_TRAIN_SIZES] = {0};
    size_t order[SM_MAX_TRAIN_SIZES];
    int found[SM_MAX_TRAIN_SIZES];
    bool keep[SM_MAX_TRAIN_SIZES] = {false};
    int n = 0;
    for (int i = 0; i < q->in.n_chips; i++) {
        const sm_price_of_plan *price = &w.point[i].best.detail.price;
        if (!w.point[i].found) continue;
        x[n] = price->chips;
        y[n] = price->expected_s / w.point[i].sequences;
        found[n++] = i;
    }
    sm_pareto((size_t)n, x, y, order, keep);
    for (int i = 0; i < n; i++) pays[found[i]] = keep[i];
    put_fields(r, &w, pays);
    sm_train_job_page(r, w.q, w.sequences, w.most);
    pareto_rows(r, &w, pays);
    for (int i = 0; i < w.q->in.n_chips; i++) {
        const sm_train_point *p = &w.point[i];
        if (pays[i] || !p->system.chips) continue;
        sm_report_text(r, "%d chips: %s.", p->system.chips, why_dropped(p));
    }
    if (w.total.space > 0.0) sm_train_search_page(r, &w.total, w.found, sm_train_whose(q));
    bool any = false;
    for (int i = 0; i < q->in.n_chips; i++) any = any || pays[i];
    return any ? SM_OK : SM_NEGATIVE;
}

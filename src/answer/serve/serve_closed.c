/* serve_closed: the plan for so many requests in flight on the whole system, where none is given.
 * Replicas of each size that divides the chips get their shares of the requests. Of each size the
 * plans that a search finds at a batch of that share and at any batch are priced under their closed
 * loop, and the one of the most tokens per chip is taken: with so many in flight, that of the least
 * latency. */
#include "serve_asked.h"
#include <string.h>

enum { MOST_PLANS = 24 };
typedef struct plan_list {
    int n;
    sm_plan plan[MOST_PLANS];
    char text[MOST_PLANS][256];
} plan_list;

static void add_plan(plan_list *list, const sm_plan *plan) {
    char *text = list->text[list->n];
    if (list->n == MOST_PLANS) return;
    sm_plan_format(plan, 0, text, sizeof *list->text);
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->text[i], text) == 0) return;
    list->plan[list->n++] = *plan;
}

/* Plans of a replica of so many chips: the best at a batch of its share, and the frontier of all
 * batches; within the limits, else whatever they are. */
static sm_status find_plans(const sm_serve_asked *q, int chips, double share, plan_list *list,
                            sm_error *err) {
    sm_serve_search_options options = q->search;
    options.chips_least = options.chips_most = chips;
    options.closed_first = true;
    options.most_alone = false;
    list->n = 0;
    for (int try = 0; try < 4 && (try != 2 || list->n == 0); try++) {
        sm_serve_result r = {.n = 0};
        options.batch = try % 2 ? 0.0 : share;
        if (try >= 2) options.ttft_s = options.tpot_s = 0.0;
        sm_status status = sm_serve_search(&q->job, q->in.calibration, &options, q->arena, &r, err);
        if (status == SM_NEGATIVE) continue;
        if (status) return status;
        for (size_t i = 0; i < r.n; i++) add_plan(list, &r.point[i].plan);
    }
    return SM_OK;
}

/* A plan under its share. */
static sm_status under_load(const sm_serve_asked *q, const sm_plan *plan, double in_flight,
                            sm_serve_point *point, sm_error *err) {
    sm_serve *serve = NULL;
    sm_serve_asked *one = sm_arena_alloc(q->arena, sizeof *one);
    if (!one) return sm_fail_memory(err);
    *one = *q;
    one->in.concurrency = in_flight;
    one->search.fixed = *plan;
    sm_status status = sm_serve_open(one, sm_plan_chips(plan), &serve, err);
    if (!status) status = sm_serve_in_flight(one, serve, err);
    if (!status) status = sm_serve_point_of(serve, plan, one->search.batch, point, err);
    sm_serve_free(serve);
    return status;
}

static bool keeps_limits(const sm_serve_asked *q, const sm_serve_point *p) {
    const sm_serve_search_options *o = &q->search;
    return (o->tpot_s <= 0.0 || p->tpot_s[1] <= o->tpot_s) &&
           (o->ttft_s <= 0.0 || p->ttft_s[1] <= o->ttft_s);
}

static bool is_better(const sm_serve_asked *q, const sm_serve_point *p,
                      const sm_serve_point *best) {
    if (!best) return true;
    bool keeps = keeps_limits(q, p), kept = keeps_limits(q, best);
    if (keeps != kept) return keeps;
    return p->tokens_per_s_per_chip > best->tokens_per_s_per_chip;
}

/* Requests that do not divide leave some replicas one less: what all of them do. */
static sm_status count_all(const sm_serve_asked *q, struct sm_closed_share *share, sm_error *err) {
    sm_serve_point *p = &share->point, less = {0};
    double fewer = share->in_flight - q->in.concurrency / share->replicas; /* share of replicas */
    share->uneven = fewer > 0.0;
    if (!share->uneven) return SM_OK;
    sm_status status = under_load(q, &p->plan, share->in_flight - 1.0, &less, err);
    if (status) return status;
    double fullest = p->tokens_per_s_per_chip;
    p->tokens_per_s_per_chip += fewer * (less.tokens_per_s_per_chip - fullest);
    p->usd_per_million_tokens *= fullest / p->tokens_per_s_per_chip;
    return SM_OK;
}

/* The best of the plans of so many chips under its share; *found: there is one. */
static sm_status best_under_load(const sm_serve_asked *q, int chips, struct sm_closed_share *share,
                                 bool *found, sm_error *err) {
    plan_list list;
    sm_status status = find_plans(q, chips, share->in_flight, &list, err);
    *found = false;
    for (int i = 0; i < list.n && !status; i++) {
        sm_serve_point point = {0};
        status = under_load(q, &list.plan[i], share->in_flight, &point, err);
        if (status || !is_better(q, &point, *found ? &share->point : NULL)) continue;
        share->point = point;
        *found = true;
    }
    return status || !*found ? status : count_all(q, share, err);
}

sm_status sm_serve_closed(sm_serve_asked *q, sm_error *err) {
    const sm_system *whole = q->in.system;
    const double requests = q->requests = q->in.concurrency;
    int least = q->search.chips_least > 0 ? q->search.chips_least : 1;
    int most = q->search.chips_most > 0 ? q->search.chips_most : whole->chips;
    sm_system slice;
    for (int c = least; c <= most && q->shares < SM_MAX_SHARES; c++) {
        int replicas = whole->chips / c;
        if (whole->chips % c || replicas > requests) continue;
        if (!sm_system_part(whole, c, &slice)) continue;
        struct sm_closed_share *now = &q->share[q->shares];
        *now =
            (struct sm_closed_share){.replicas = replicas, .in_flight = ceil(requests / replicas)};
        bool found;
        sm_status status = best_under_load(q, c, now, &found, err);
        if (status) return status;
        if (!found) continue;
        if (is_better(q, &now->point, q->taken ? &q->taken->point : NULL)) q->taken = now;
        q->shares++;
    }
    if (!q->taken) return SM_OK; /* the search says why nothing fits */
    q->search.fixed = q->taken->point.plan;
    q->in.concurrency = q->taken->in_flight;
    q->one = true;
    return SM_OK;
}

/* serve_closed: the plan for so many requests in flight on the whole system, where none is given.
 * Replicas of each size that divides the chips get their shares of the requests; of each size the
 * plan with the most tokens at a batch of that share is priced under its closed loop, and the one
 * of the most tokens per chip is taken: with so many in flight, that of the least latency. */
#include "serve_asked.h"
#include <math.h>

/* The best of the plans of a replica of so many chips: at a batch of its share within the limits,
 * else at any batch, else whatever the limits. NULL: nothing fits. */
static sm_status best_of(const sm_serve_asked *q, int chips, double share,
                         const sm_serve_point **best, sm_error *err) {
    sm_serve_search_options options = q->search;
    options.chips_least = options.chips_most = chips;
    *best = NULL;
    for (int try = 0; try < 4 && !*best; try++) {
        sm_serve_result r = {.n = 0};
        options.batch = try % 2 ? 0.0 : share;
        if (try >= 2) options.ttft_s = options.tpot_s = 0.0;
        sm_status status = sm_serve_search(&q->job, q->in.calibration, &options, q->arena, &r, err);
        if (status == SM_NEGATIVE) continue;
        if (status) return status;
        for (size_t i = 0; i < r.n; i++)
            if (!*best || r.point[i].tokens_per_s_per_chip > (*best)->tokens_per_s_per_chip)
                *best = &r.point[i];
    }
    return SM_OK;
}

/* A plan under its share. */
static sm_status under_load(const sm_serve_asked *q, const sm_plan *plan,
                            struct sm_closed_share *share, sm_error *err) {
    sm_serve *serve = NULL;
    sm_serve_asked *one = sm_arena_alloc(q->arena, sizeof *one);
    if (!one) return sm_fail_memory(err);
    *one = *q;
    one->in.concurrency = share->in_flight;
    one->search.fixed = *plan;
    sm_status status = sm_serve_open(one, sm_plan_chips(plan), &serve, err);
    if (!status) status = sm_serve_in_flight(one, serve, err);
    if (!status) status = sm_serve_point_of(serve, plan, one->search.batch, &share->point, err);
    sm_serve_free(serve);
    return status;
}

static bool keeps_limits(const sm_serve_asked *q, const sm_serve_point *p) {
    const sm_serve_search_options *o = &q->search;
    return (o->tpot_s <= 0.0 || p->tpot_s[1] <= o->tpot_s) &&
           (o->ttft_s <= 0.0 || p->ttft_s[1] <= o->ttft_s);
}

static bool is_better(const sm_serve_asked *q, const sm_serve_point *p) {
    if (!q->taken) return true;
    bool keeps = keeps_limits(q, p), kept = keeps_limits(q, &q->taken->point);
    if (keeps != kept) return keeps;
    return p->tokens_per_s_per_chip > q->taken->point.tokens_per_s_per_chip;
}

sm_status sm_serve_closed(sm_serve_asked *q, sm_error *err) {
    const sm_system *whole = q->in.system;
    double requests = q->in.concurrency;
    int least = q->search.chips_least > 0 ? q->search.chips_least : 1;
    int most = q->search.chips_most > 0 ? q->search.chips_most : whole->chips;
    sm_system slice;
    for (int c = least; c <= most && q->shares < SM_MAX_SHARES; c++) {
        int replicas = whole->chips / c;
        if (whole->chips % c || replicas > requests) continue;
        if (sm_system_resize(whole, c, &slice, NULL)) continue;
        struct sm_closed_share *now = &q->share[q->shares];
        *now =
            (struct sm_closed_share){.replicas = replicas, .in_flight = ceil(requests / replicas)};
        const sm_serve_point *p;
        sm_status status = best_of(q, c, now->in_flight, &p, err);
        if (!status && !p) continue;
        if (!status) status = under_load(q, &p->plan, now, err);
        if (status) return status;
        if (is_better(q, &now->point)) q->taken = now;
        q->shares++;
    }
    if (!q->taken) return SM_OK; /* the search says why nothing fits */
    q->search.fixed = q->taken->point.plan;
    q->in.concurrency = q->taken->in_flight;
    q->one = true;
    return SM_OK;
}

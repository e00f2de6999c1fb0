/* serve_choices: the frontier over all combinations of types of weights, cache and compute. */
#include "serve_asked.h"

/* ---- searching ---- */

static sm_status search_choice(sm_serve_asked *q, int choice, sm_serving_found *a,
                               sm_serve_result *total, sm_error *err) {
    sm_arena *arena = q->arena;
    sm_serve_result *found = &a->of_choice[choice];
    sm_error none = {.status = SM_OK};
    q->job.dtypes = q->choice[choice];
    sm_status status = sm_serve_search(&q->job, q->in.calibration, &q->search, arena, found, &none);
    if (status == SM_NEGATIVE) {
        a->reason = sm_arena_printf(arena, "%s", none.sentence);
        if (!a->reason) return sm_fail_memory(err);
    } else if (status) {
        *err = none;
        return sm_question_blame(&q->in.plan, status, err);
    }
    total->space += found->space;
    total->evaluated += found->evaluated;
    total->pruned += found->pruned;
    total->seconds += found->seconds;
    if (found->least_chips > 0 &&
        (total->least_chips == 0 || found->least_chips < total->least_chips))
        total->least_chips = found->least_chips;
    total->n += found->n;
    return SM_OK;
}

double sm_serve_throughput(const sm_serve_asked *q, const sm_serve_point *p) {
    return q->search.by_lower ? p->batch / p->tpot_s[0] / p->chips : p->tokens_per_s_per_chip;
}

/* What no other choice beats, by what ranks; of equals the earlier choice. */
static sm_status keep_best(const sm_serve_asked *q, sm_serving_found *a, sm_serve_result *total,
                           sm_error *err) {
    sm_arena *arena = q->arena;
    size_t all = total->n, n = 0;
    double *x = sm_arena_array(arena, 2 * all, sizeof *x), *y = x ? x + all : NULL;
    size_t *order = sm_arena_array(arena, all, sizeof *order);
    bool *keep = sm_arena_array(arena, all, sizeof *keep);
    const sm_serve_point **from = sm_arena_array(arena, all, sizeof *from);
    int *of = sm_arena_array(arena, 2 * all, sizeof *of), *choice = of ? of + all : NULL;
    total->point = sm_arena_array(arena, all, sizeof *total->point);
    if (!x || !order || !keep || !from || !of || !total->point) return sm_fail_memory(err);
    for (int c = 0; c < q->choices; c++)
        for (size_t i = 0; i < a->of_choice[c].n; i++, n++) {
            from[n] = &a->of_choice[c].point[i];
            of[n] = c;
            x[n] = from[n]->tpot_s[q->search.by_lower ? 0 : 1];
            y[n] = -sm_serve_throughput(q, from[n]);
        }
    sm_pareto(all, x, y, order, keep);
    total->n = 0;
    for (size_t i = 0; i < all; i++) {
        if (!keep[order[i]] && q->choices > 1) continue;
        choice[total->n] = of[order[i]];
        total->point[total->n++] = *from[order[i]];
    }
    a->choice = choice;
    return SM_OK;
}

sm_status sm_serve_choices(sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    sm_serve_result *total = sm_arena_alloc(q->arena, sizeof *total);
    a->of_choice = sm_arena_array(q->arena, (size_t)q->choices, sizeof *a->of_choice);
    if (!total || !a->of_choice) return sm_fail_memory(err);
    *total = (sm_serve_result){.n = 0};
    a->result = total;
    sm_status status = SM_OK;
    for (int i = 0; i < q->choices && !status; i++) status = search_choice(q, i, a, total, err);
    if (status || total->n == 0) return status;
    a->reason = NULL;
    return keep_best(q, a, total, err);
}

const sm_serve_dtypes *sm_serve_dtypes_of(const sm_serving_found *a, size_t i) {
    return a->choice ? &a->q->choice[a->choice[i]] : &a->q->job.dtypes;
}

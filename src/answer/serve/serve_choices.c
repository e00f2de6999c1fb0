/* serve_choices: the frontier over all combinations of types of weights, cache and compute. */
#include "serve_asked.h"
#include <string.h>

/* ---- searching ---- */

/* Results of all choices, one after the other. */
typedef struct gathered {
    size_t n, room;
    sm_serve_point *point;
    int *choice; /* that each is of */
} gathered;

static bool make_room(gathered *g, size_t more, sm_arena *arena) {
    if (g->n + more <= g->room) return true;
    size_t room = 2 * g->room + more;
    sm_serve_point *point = sm_arena_array(arena, room, sizeof *point);
    int *choice = sm_arena_array(arena, room, sizeof *choice);
    if (!point || !choice) return false;
    if (g->n > 0) {
        memcpy(point, g->point, g->n * sizeof *point);
        memcpy(choice, g->choice, g->n * sizeof *choice);
    }
    *g = (gathered){g->n, room, point, choice};
    return true;
}

static sm_status search_choice(sm_serve_asked *q, int choice, gathered *g, sm_serving_found *a,
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
    if (!make_room(g, found->n, arena)) return sm_fail_memory(err);
    for (size_t i = 0; i < found->n; i++) {
        g->choice[g->n] = choice;
        g->point[g->n++] = found->point[i];
    }
    return SM_OK;
}

double sm_serve_throughput(const sm_serve_asked *q, const sm_serve_point *p) {
    return q->search.by_lower ? p->batch / p->tpot_s[0] / p->chips : p->tokens_per_s_per_chip;
}

/* What no other choice beats, by time; of equals the earlier choice. */
static sm_status keep_best(const sm_serve_asked *q, gathered *g, sm_serving_found *a,
                           sm_error *err) {
    sm_arena *arena = q->arena;
    double *x = sm_arena_array(arena, 2 * g->n + 1, sizeof *x), *y = x ? x + g->n : NULL;
    size_t *order = sm_arena_array(arena, g->n + 1, sizeof *order), n = 0;
    bool *keep = sm_arena_array(arena, g->n + 1, sizeof *keep);
    sm_serve_point *point = sm_arena_array(arena, g->n + 1, sizeof *point);
    int *choice = sm_arena_array(arena, g->n + 1, sizeof *choice);
    if (!x || !order || !keep || !point || !choice) return sm_fail_memory(err);
    for (size_t i = 0; i < g->n; i++) {
        x[i] = g->point[i].tpot_s[q->search.by_lower ? 0 : 1];
        y[i] = -sm_serve_throughput(q, &g->point[i]);
    }
    sm_pareto(g->n, x, y, order, keep);
    for (size_t i = 0; i < g->n; i++) {
        if (!keep[i]) continue;
        size_t at = n++;
        for (; at > 0 && point[at - 1].tpot_s[1] > g->point[i].tpot_s[1]; at--) {
            point[at] = point[at - 1];
            choice[at] = choice[at - 1];
        }
        point[at] = g->point[i];
        choice[at] = g->choice[i];
    }
    *g = (gathered){n, g->n + 1, point, choice};
    a->choice = g->choice;
    return SM_OK;
}

sm_status sm_serve_choices(sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    gathered g = {0};
    sm_serve_result *total = sm_arena_alloc(q->arena, sizeof *total);
    a->of_choice = sm_arena_array(q->arena, (size_t)q->choices, sizeof *a->of_choice);
    if (!total || !a->of_choice) return sm_fail_memory(err);
    *total = (sm_serve_result){.n = 0};
    a->result = total;
    sm_status status = SM_OK;
    for (int i = 0; i < q->choices && !status; i++) status = search_choice(q, i, &g, a, total, err);
    if (status || g.n == 0) return status;
    a->reason = NULL;
    a->choice = g.choice;
    if (q->choices > 1) status = keep_best(q, &g, a, err);
    total->n = g.n;
    total->point = g.point;
    return status;
}

const sm_serve_dtypes *sm_serve_dtypes_of(const sm_serving_found *a, size_t i) {
    return a->choice ? &a->q->choice[a->choice[i]] : &a->q->job.dtypes;
}

/* The Pareto set of a search as it grows: a point stays when no other is at least as quick per
 * token and gives at least as many tokens per second and chip. */
#include <math.h>
#include <string.h>

#include "scalemodel/search.h"
#include "serve_frontier.h"

bool frontier_beats(const frontier *f, double tpot_s, double per_chip) {
    for (size_t i = 0; i < f->n; i++)
        if (f->point[i].tpot_s <= tpot_s && f->point[i].per_chip >= per_chip) return true;
    return false;
}

static bool grow(frontier *f) {
    size_t room = f->room > 0 ? 2 * f->room : 256;
    if (f->n < f->room) return true;
    found *more = sm_realloc(f->point, room * sizeof *more);
    if (!more) {
        f->failed = true;
        return false;
    }
    f->point = more;
    f->room = room;
    return true;
}

void frontier_add(frontier *f, const found *p, bool brute) {
    size_t kept = 0;
    if (!brute && frontier_beats(f, p->tpot_s, p->per_chip)) return;
    for (size_t i = 0; !brute && i < f->n; i++) {
        if (p->tpot_s <= f->point[i].tpot_s && p->per_chip >= f->point[i].per_chip) continue;
        if (kept != i) f->point[kept] = f->point[i];
        kept++;
    }
    if (!brute) f->n = kept;
    if (grow(f)) f->point[f->n++] = *p;
}

/* sm_pareto makes the smaller of both axes the better. */
static void reduce(frontier *f, double *x, double *y, size_t *order, bool *keep, found *sorted) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        x[i] = f->point[i].tpot_s;
        y[i] = -f->point[i].per_chip;
    }
    sm_pareto(f->n, x, y, order, keep);
    for (size_t i = 0; i < f->n; i++)
        if (keep[order[i]]) sorted[n++] = f->point[order[i]];
    memcpy(f->point, sorted, n * sizeof *sorted);
    f->n = n;
}

sm_status frontier_reduce(frontier *f, sm_error *err) {
    size_t n = f->n;
    if (f->failed) return sm_fail_memory(err);
    if (n == 0) return SM_OK;
    sm_arena *arena = sm_arena_new();
    double *x = arena ? sm_arena_array(arena, n, sizeof *x) : NULL;
    double *y = arena ? sm_arena_array(arena, n, sizeof *y) : NULL;
    size_t *order = arena ? sm_arena_array(arena, n, sizeof *order) : NULL;
    bool *keep = arena ? sm_arena_array(arena, n, sizeof *keep) : NULL;
    found *sorted = arena ? sm_arena_array(arena, n, sizeof *sorted) : NULL;
    bool whole = x && y && order && keep && sorted;
    if (whole) reduce(f, x, y, order, keep, sorted);
    sm_arena_free(arena);
    return whole ? SM_OK : sm_fail_memory(err);
}

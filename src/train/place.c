/* Where the axes of a plan sit on the system, and what each of its collectives then costs. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "space.h"

static double ragged_of(const sm_train *t, const slot_key *key, const sm_group *g) {
    return key->ragged && !t->software.all_slots ? sm_ragged_part(&t->system, t->largest_top_k, g)
                                                 : 1; /* the runtime sends every slot */
}

void place_curves(const sm_train *t, const variant *v, placed *p) {
    sm_group joined[SM_AXES_MASKS];
    bool done[SM_AXES_MASKS] = {false};
    sm_curve_memo_reserve(&p->memo, v->slots + 1);
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        sm_group *g = &joined[axes];
        if (!done[axes]) *g = sm_group_join(&p->placement, axes);
        done[axes] = true;
        p->slot[i] = sm_curve_memo_get(&p->memo, v->key[i].op, g, ragged_of(t, &v->key[i], g));
    }
    sm_group pipe = sm_group_join(&p->placement, SM_BIT(SM_PLACED_PIPELINE));
    p->send = sm_curve_memo_get(&p->memo, SM_PERMUTE, &pipe, 1);
}

sm_axes axes_of_key(int key) {
    static const sm_axes axes[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_BIT(SM_AXIS_DATA),     [SM_PLAN_FSDP] = SM_BIT(SM_AXIS_FSDP),
        [SM_PLAN_TENSOR] = SM_AXES_TENSOR,         [SM_PLAN_CONTEXT] = SM_BIT(SM_AXIS_CONTEXT),
        [SM_PLAN_EXPERT] = SM_BIT(SM_AXIS_EXPERT), [SM_PLAN_PIPELINE] = SM_BIT(SM_PLACED_PIPELINE)};
    assert(key >= 0 && key < SM_PLAN_DEGREES);
    return axes[key];
}

/* ---- the least of several curves ---- */

static void add_least(sm_timed_curve *to, const sm_timed_line *line) {
    int kept = 0;
    for (int i = 0; i < to->n; i++)
        if (sm_line_never_less(line->line, to->line[i].line)) return;
    for (int i = 0; i < to->n; i++)
        if (!sm_line_never_less(to->line[i].line, line->line)) to->line[kept++] = to->line[i];
    to->n = kept;
    if (to->n < SM_MAX_TIMED_LINES) to->line[to->n++] = *line;
    else
        to->line[SM_MAX_TIMED_LINES - 1].line =
            sm_line_below(to->line[SM_MAX_TIMED_LINES - 1].line, line->line);
}

/* Make `to` no more than `one`, whatever the bytes. Levels that one placement keeps busy another
 * leaves idle, on a torus each of its dimensions; but the busiest of them is never less busy than
 * their average, which every placement has: it counts for all of them. */
static void lower_curve(const sm_train *t, const sm_timed_curve *one, bool first,
                        sm_timed_curve *to) {
    double busy[SM_MAX_LEVELS], sum = 0;
    int dims = t->system.torus_dims;
    memcpy(busy, one->busy, sizeof busy);
    for (int l = 0; l < dims; l++) sum += busy[l];
    for (int l = 0; l < dims; l++) busy[l] = sum / dims;
    if (first) to->n = 0;
    for (int i = 0; i < one->n; i++) add_least(to, &one->line[i]);
    for (int l = 0; l < SM_MAX_LEVELS; l++)
        to->busy[l] = first ? busy[l] : smaller(to->busy[l], busy[l]);
}

void place_least(const sm_train *t, const variant *v, bool first, placed *p) {
    const sm_timed_curve *last[MAX_SLOTS], *last_send = p->send;
    int used = p->memo.used;
    memcpy(last, p->slot, sizeof last);
    place_curves(t, v, p);
    bool all = first || p->memo.used < used; /* or emptied: its places have other curves now */
    for (int i = 0; i < v->slots; i++)
        if (all || p->slot[i] != last[i]) lower_curve(t, p->slot[i], first, &p->own[i]);
    if (all || p->send != last_send) lower_curve(t, p->send, first, &p->own[v->slots]);
}

void place_as_least(const variant *v, placed *p) {
    for (int i = 0; i < v->slots; i++) p->slot[i] = &p->own[i];
    p->send = &p->own[v->slots];
}

/* ---- the best of all placements ----
 * Which part of each level is best for a group depends on the rates and efficiencies of the levels,
 * on rings and lines, on reduction in switches and, for routed tokens, on the nodes that the group
 * spans: so all are tried, and the least of each counts. On switches a collective costs what the
 * members below each child cost, whichever they are; on a torus their distance counts, and joined
 * axes may have several parts of one dimension. */

typedef struct splits {
    const sm_train *t;
    const slot_key *slot;
    const sm_curve_memo *memo;
    sm_timed_curve *least;
    bool joined;
    int tried;
} splits;

static void add_split(splits *s, const sm_group *g) {
    sm_timed_curve one;
    sm_timed_curve_fill(s->memo, s->slot->op, g, ragged_of(s->t, s->slot, g), &one);
    lower_curve(s->t, &one, s->tried++ == 0, s->least);
}

/* From a level up, of which the members at hand take `used` chips: `left` members are still to be
 * placed. again: some of them on this level. */
static void try_splits(splits *s, int level, int used, int left, sm_group *g) {
    if (left == 1) add_split(s, g);
    if (left == 1 || level == s->t->system.levels) return;
    const sm_level *l = &s->t->system.level[level];
    bool torus = l->kind == SM_LEVEL_TORUS;
    int room = l->size / used;
    try_splits(s, level + 1, 1, left, g);
    for (int gap = used > 1 ? 2 : 1; gap <= (torus ? room / 2 : 1); gap++) {
        for (int n = 2; room % gap == 0 && n <= left && n <= room / gap; n++) {
            if (left % n || room / gap % n || g->parts == SM_MAX_PARTS) continue;
            bool last = !s->joined || !torus;
            g->part[g->parts++] = (sm_part){(uint8_t)level, n, used * gap};
            if (last) try_splits(s, level + 1, 1, left / n, g);
            else try_splits(s, level, used * gap * n, left / n, g);
            g->parts--;
        }
    }
}

static const sm_timed_curve *least_curve(const sm_train *t, const slot_key *slot, int members,
                                         bool joined, placed *p) {
    sm_group g = {.size = members};
    if (members == 1) return sm_curve_memo_get(&p->memo, slot->op, &g, 1);
    uint64_t what = (uint64_t)slot->op << 2 | (uint64_t)slot->ragged << 1 | joined;
    uint64_t key = sm_hash_mixed(0x9e3779b97f4a7c15ull, what << 32 ^ (unsigned)members) | 1;
    sm_timed_curve *at = sm_curve_memo_entry(&p->memo, key);
    if (at->key) return at;
    splits s = {t, slot, &p->memo, at, joined, 0};
    memset(at, 0, sizeof *at);
    try_splits(&s, 0, 1, members, &g);
    return sm_curve_memo_keep(&p->memo, at, key);
}

void place_hopeful(const sm_train *t, const variant *v, const sm_plan *plan, const sm_degrees *d,
                   placed *p) {
    const slot_key send = {SM_PERMUTE, 0, false};
    sm_curve_memo_reserve(&p->memo, v->slots + 1);
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        int members = (int)(1 / d->inverse[axes] + 0.5), spread = 0;
        for (int a = 0; a < SM_AXIS_COUNT; a++) spread += axes >> a & 1 && d->axis[a] > 1;
        p->slot[i] = least_curve(t, &v->key[i], members, spread > 1, p);
    }
    p->send = least_curve(t, &send, plan->pipeline, false, p);
}

/* Where the axes of a node can lie: every order of those that shard anything, and every order in
 * which the dimensions of a torus are filled. Orders that give the same groups are one placement.
 */

#include "search_space.h"

enum { ALL_AXES = (1 << SM_PLACED_AXES) - 1 };

/* Of what costs count: on a switch level it is one whichever chips are below a child. */
static uint64_t group_key(uint64_t h, const sm_system *system, const sm_group *g) {
    for (int i = 0; i < g->parts; i++) {
        const sm_part *q = &g->part[i];
        bool torus = system->level[q->level].kind == SM_LEVEL_TORUS;
        uint64_t word =
            (uint64_t)q->level << 52 ^ (uint64_t)q->size << 26 ^ (uint64_t)(torus ? q->stride : 0);
        h = sm_hash_mixed(h, word);
    }
    return h;
}

/* Of what lies where: of these axes. */
static uint64_t axes_key(const listed *at, sm_axes axes) {
    uint64_t h = sm_hash_mixed(SM_HASH_SEED, axes);
    for (int a = 0; a < SM_PLACED_AXES; a++)
        if (axes >> a & 1) h = sm_hash_mixed(h, at->key[a]);
    return h | 1;
}

static void forget_seen(lane_scratch *l) { memset(l->seen, 0, l->seen_room * sizeof *l->seen); }

static bool first_seen(lane_scratch *l, uint64_t key) {
    const size_t size = l->seen_room;
    for (size_t i = key % size, n = 0; n < size; i = (i + 1) % size, n++) {
        if (l->seen[i] == key) return false;
        if (l->seen[i] == 0) {
            l->seen[i] = key;
            return true;
        }
    }
    return true;
}

typedef struct listing {
    const sm_system *system;
    const sm_degrees *degrees;
    lane_scratch *l;
    sm_plan plan;
} listing;

/* The first `depth` axes of the plan's order alone. */
static bool place_first(const listing *x, int depth, listed *to) {
    to->axes = 0;
    for (int i = 0; i < depth; i++) to->axes = (sm_axes)(to->axes | axes_of_key(x->plan.order[i]));
    if (depth == SM_PLAN_DEGREES)
        return sm_plan_place(&x->plan, x->degrees, x->system, &to->placement);
    sm_degrees d = *x->degrees;
    sm_plan plan = x->plan;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (!(to->axes >> a & 1)) d.axis[a] = 1;
    if (!(to->axes >> SM_PLACED_PIPELINE & 1)) plan.pipeline = 1;
    return sm_plan_place(&plan, &d, x->system, &to->placement);
}

/* The next of the list, where there is one and it is not there already. */
static void add(listing *x, int depth) {
    lane_scratch *l = x->l;
    listed *to = &l->placement[l->placements];
    if (l->placements == l->placement_room || !place_first(x, depth, to)) return;
    for (int a = 0; a < SM_PLACED_AXES; a++)
        to->key[a] = group_key(SM_HASH_SEED, x->system, &to->placement.axis[a]);
    if (!first_seen(l, sm_hash_mixed(axes_key(to, ALL_AXES), to->axes) | 1)) return;
    memcpy(to->order, x->plan.order, sizeof to->order);
    memcpy(to->dims, x->plan.dims, sizeof to->dims);
    to->whole = depth == SM_PLAN_DEGREES;
    to->usual = memcmp(x->plan.order, l->usual, sizeof l->usual) == 0;
    to->depth = depth;
    to->first = -1;
    l->placements++;
}

static void move(uint8_t *order, int from, int to) {
    uint8_t chosen = order[from];
    if (from > to) memmove(&order[to + 1], &order[to], (size_t)(from - to));
    else memmove(&order[from], &order[from + 1], (size_t)(to - from));
    order[to] = chosen;
}

/* Permute the axes that shard anything; the others follow in their usual order. */
static void permute(listing *x, int at, int n) {
    if (at >= n - 1) {
        add(x, SM_PLAN_DEGREES); /* what is placed but for one is placed */
        return;
    }
    for (int i = at; i < n; i++) {
        move(x->plan.order, i, at);
        permute(x, at + 1, n);
        move(x->plan.order, at, i);
    }
}

/* Dimensions that are alike change places without a difference: those are filled in the order of
 * their numbers alone. */
static bool is_mirror(const sm_system *system, const uint8_t *dims) {
    for (int i = 0; i < system->torus_dims; i++)
        for (int k = i + 1; k < system->torus_dims; k++)
            if (dims[i] > dims[k] && dims_alike(system, dims[i], dims[k])) return true;
    return false;
}

/* Every order in which the torus dimensions can be filled, and in each every order of the axes. */
static void each_dims(const plan_search *h, listing *x, int axes) {
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int dims = x->system->torus_dims;
    bool given = h->options->fixed.given >> SM_PLAN_DIMS & 1;
    int n = given || dims < 2 ? 1 : dims == 2 ? 3 : 6;
    for (int i = 0; i < n; i++) {
        if (dims == 2 && i == 1) continue;
        if (!given && h->options->prune && is_mirror(x->system, orders[i])) continue;
        if (!given) memcpy(x->plan.dims, orders[i], 3);
        permute(x, 0, axes);
    }
}

static void start(const plan_search *h, const sm_plan *plan, lane_scratch *l) {
    sm_plan usual;
    int n = 0, rest = SM_PLAN_DEGREES;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) n += sm_plan_degree_of(plan, i) > 1;
    l->seen_room = 2 * MAX_DIMS_ORDERS; /* no tree of orders has as many */
    for (; n > 1; n--) l->seen_room *= (size_t)n;
    n = 0;
    l->placements = l->axes = 0;
    forget_seen(l);
    memcpy(l->usual, plan->order, sizeof l->usual);
    if (h->options->fixed.given >> SM_PLAN_ORDER & 1) return;
    sm_plan_defaults(&usual);
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (sm_plan_degree_of(plan, usual.order[i]) > 1) l->usual[n++] = usual.order[i];
    for (int i = SM_PLAN_DEGREES - 1; i >= 0; i--)
        if (sm_plan_degree_of(plan, usual.order[i]) == 1) l->usual[--rest] = usual.order[i];
    l->axes = n;
}

void placements_list(const plan_search *h, const sm_plan *plan, lane_scratch *l, listed *of) {
    const sm_system *system = &h->train->system;
    if (of->first >= 0) return;
    if (of->depth == 0) start(h, plan, l);
    listing x = {.system = system, .degrees = &l->p.d, .l = l, .plan = *plan};
    memcpy(x.plan.order, of->depth ? of->order : l->usual, sizeof x.plan.order);
    of->first = l->placements;
    if (!h->options->prune || system->torus_dims > 0) each_dims(h, &x, l->axes);
    else
        for (int i = of->depth; i < l->axes || i == of->depth; i++) {
            if (i < l->axes) move(x.plan.order, i, of->depth);
            add(&x, of->depth >= l->axes - 2 ? SM_PLAN_DEGREES : of->depth + 1);
            if (i < l->axes) move(x.plan.order, of->depth, i);
        }
    of->count = l->placements - of->first;
}

/* ---- the least of all placements, many of which have the same group of some axes ---- */

static int groups_of(const sm_train *t, lane_scratch *l, const slot_key *key) {
    int n = 0;
    forget_seen(l);
    for (int k = 0; k < l->placements; k++) {
        const listed *at = &l->placement[k];
        if (!first_seen(l, axes_key(at, key->axes))) continue;
        l->group[n] = place_group(t, &at->placement, l->p.at.copies, key->axes, key->part);
        n += first_seen(l, group_key(~SM_HASH_SEED, &t->system, &l->group[n]) | 1);
    }
    return n;
}

void placements_least(const sm_train *t, bool main_alone, lane_scratch *l) {
    placed *p = &l->p.at;
    const variant *v = l->p.v;
    if (p->leasts + v->slots + 1 > LEASTS) p->leasts = 0;
    for (int i = 0; i < (main_alone ? v->main_slots : v->slots + 1); i++) {
        const slot_key key = place_slot(v, i);
        int n = -1;
        for (int k = i; k <= v->slots; k++) {
            const slot_key other = place_slot(v, k);
            if (other.axes != key.axes || other.part != key.part || place_least_made(&other, p))
                continue;
            if (n < 0) n = groups_of(t, l, &key);
            place_least(t, &other, n, l->group, p);
        }
        *(i < v->slots ? &p->slot[i] : &p->send) = place_least_made(&key, p);
    }
}

/* Where the axes of a plan sit on the system, and what each of its collectives then costs. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "space.h"

static void make_room(const variant *v, placed *p) {
    /* twice: a prefix keeps hopeful curves while it adds its own */
    sm_curve_memo_reserve(&p->memo, 8 * v->slots + 1);
}

static double ragged_of(const sm_train *t, const slot_key *key, const sm_group *g) {
    return key->ragged && !t->software.all_slots ? sm_ragged_part(&t->system, t->largest_top_k, g)
                                                 : 1; /* the runtime sends every slot */
}

void place_curves(const sm_train *t, const variant *v, placed *p) {
    sm_group joined[SM_AXES_MASKS];
    bool done[SM_AXES_MASKS] = {false};
    make_room(v, p);
    p->signature = SM_HASH_SEED;
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        sm_group *g = &joined[axes];
        if (!done[axes]) *g = sm_group_join(&p->placement, axes);
        done[axes] = true;
        p->slot[i] = sm_curve_memo_get(&p->memo, v->key[i].op, g, ragged_of(t, &v->key[i], g));
        p->signature = sm_hash_mixed(p->signature, p->slot[i]->content);
    }
    sm_group pipe = sm_group_join(&p->placement, SM_BIT(SM_PLACED_PIPELINE));
    p->send = sm_curve_memo_get(&p->memo, SM_PERMUTE, &pipe, 1);
    p->signature = sm_hash_mixed(p->signature, p->send->content) | 1;
}

sm_axes axes_of_key(int key) {
    static const sm_axes axes[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_BIT(SM_AXIS_DATA),     [SM_PLAN_FSDP] = SM_BIT(SM_AXIS_FSDP),
        [SM_PLAN_TENSOR] = SM_AXES_TENSOR,         [SM_PLAN_CONTEXT] = SM_BIT(SM_AXIS_CONTEXT),
        [SM_PLAN_EXPERT] = SM_BIT(SM_AXIS_EXPERT), [SM_PLAN_PIPELINE] = SM_BIT(SM_PLACED_PIPELINE)};
    assert(key >= 0 && key < SM_PLAN_DEGREES);
    return axes[key];
}

/* Children of each level that a group may still be spread over. */
typedef struct room {
    int of[SM_MAX_LEVELS];
} room;

static room all_room(const sm_train *t) {
    room r = {{0}};
    for (int l = 0; l < t->system.levels; l++) r.of[l] = t->system.level[l].size;
    return r;
}

static const sm_timed_curve *least_curve(const sm_train *t, const slot_key *slot, int members,
                                         const room *r, placed *p);

static int members_of(const sm_degrees *d, sm_axes axes) {
    return (int)(1 / d->inverse[axes] + 0.5);
}

void place_prefix(const sm_train *t, const variant *v, const sm_plan *plan, int prefix,
                  const sm_degrees *d, placed *p) {
    sm_placement at;
    sm_axes inside = 0;
    place_hopeful(t, v, d, p);
    for (int i = 0; i < prefix; i++) inside = (sm_axes)(inside | axes_of_key(plan->order[i]));
    if (!sm_plan_place(plan, d, &t->system, &at)) return;
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        if (axes & ~inside) continue;
        sm_group g = sm_group_join(&at, axes);
        p->slot[i] = sm_curve_memo_get(&p->memo, v->key[i].op, &g, ragged_of(t, &v->key[i], &g));
    }
    if (t->system.torus_dims > 0)
        return; /* there what comes next may still find better factors later */
    room left = all_room(t);
    sm_group g = sm_group_join(&at, inside);
    for (int i = 0; i < g.parts; i++) left.of[g.part[i].level] /= g.part[i].size;
    for (int i = 0; i < v->slots; i++) {
        sm_axes own = v->key[i].axes;
        if (!(own & inside)) p->slot[i] = least_curve(t, &v->key[i], members_of(d, own), &left, p);
    }
}

/* Bytes per second that some chip of a group of n can take in at most. A dimension gives it two
 * links only as a whole ring with wraparound; a line has ends, and a strided ring shares its links.
 * Each dimension in use takes a factor of n. */
static double torus_injection(const sm_train *t, int n) {
    int lengths[3], rings = 0, dims = t->system.torus_dims, factors = 0;
    double in = 0, fastest = 0;
    for (int i = 0; i < dims; i++) {
        const sm_level *l = &t->system.level[i];
        int k = i; /* sorted by length, wrapped dimensions only */
        fastest = fmax(fastest, l->bytes_per_s_oneway);
        lengths[i] = l->wrap ? l->size : INT_MAX;
        for (; k > 0 && lengths[k - 1] > lengths[k]; k--) {
            int swap = lengths[k];
            lengths[k] = lengths[k - 1];
            lengths[k - 1] = swap;
        }
    }
    for (int left = n; rings < dims && lengths[rings] <= left; rings++) left /= lengths[rings];
    for (int left = n, f = 2; left > 1; f++)
        for (; left % f == 0; left /= f) factors++;
    int used = factors < dims ? factors : dims;
    in = fastest * (used + (rings < used ? rings : used));
    for (int l = dims; l < t->system.levels; l++) in += t->system.level[l].bytes_per_s_oneway;
    return in;
}

/* The least a byte of an all-to-all of n chips costs on a torus: what each sends travels at least
 * as far as if the others sat in the shells around it, and a chip has two links per dimension for
 * all that passes. */
static double torus_exchange(const sm_train *t, int n) {
    static const int shell[3][2] = {
        {2, 0}, {0, 4}, {2, 4}}; /* line: 2; plane: 4 r; space: 4 r^2 + 2 */
    int dims = t->system.torus_dims, left = n - 1;
    double hops = 0, fastest = 0;
    for (int i = 0; i < dims; i++) fastest = fmax(fastest, t->system.level[i].bytes_per_s_oneway);
    for (int r = 1; left > 0; r++) {
        int at = shell[dims - 1][0] + shell[dims - 1][1] * (dims == 3 ? r * r : r);
        int here = at < left ? at : left;
        hops += (double)here * r;
        left -= here;
    }
    return hops / ((double)n * n) / (2 * dims * fastest);
}

/* Tokens in slots are sent once to each group of experts; the fewest groups are what any placement
 * may have, one. */
static double ragged_least(const sm_train *t, double members) {
    sm_group all = {.parts = 1, .part = {{0, (int)members, 1}}, .size = (int)members};
    return t->system.torus_dims > 0 ? sm_ragged_part(&t->system, t->largest_top_k, &all)
                                    : 1 / fmax(1, t->largest_top_k);
}

/* ---- the best of all placements on switches ----
 * What a collective costs there depends on how many members of the group sit below each child of
 * each level alone. Which split is best depends on the rates and efficiencies of the levels, on
 * reduction in switches and, for routed tokens, on the nodes that the group spans; so all are tried
 * and the least of each counts. */

typedef struct splits {
    const sm_train *t;
    const slot_key *slot;
    const room *r;
    const sm_curve_memo *memo;
    sm_timed_curve *least;
    int tried;
} splits;

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

/* No level is kept busy that another split leaves idle. */
static void add_split(splits *s, const sm_group *g) {
    sm_timed_curve one, *least = s->least;
    sm_timed_curve_fill(s->memo, s->slot->op, g, ragged_of(s->t, s->slot, g), &one);
    if (s->tried++ == 0) {
        *least = one;
        return;
    }
    for (int i = 0; i < one.n; i++) add_least(least, &one.line[i]);
    for (int l = 0; l < SM_MAX_LEVELS; l++) least->busy[l] = fmin(least->busy[l], one.busy[l]);
}

/* From a level up: `left` members are still to be placed. */
static void try_splits(splits *s, int level, int left, sm_group *g) {
    if (left == 1) add_split(s, g);
    if (left == 1 || level == s->t->system.levels) return;
    try_splits(s, level + 1, left, g);
    for (int n = 2; n <= left && n <= s->r->of[level]; n++) {
        if (left % n || s->r->of[level] % n) continue;
        g->part[g->parts++] = (sm_part){(uint8_t)level, n, 1};
        try_splits(s, level + 1, left / n, g);
        g->parts--;
    }
}

static uint64_t splits_key(const slot_key *slot, int members, const room *r) {
    uint64_t what = (uint64_t)slot->op << 1 | (uint64_t)slot->ragged;
    uint64_t h = sm_hash_mixed(0x9e3779b97f4a7c15ull, what << 32 ^ (unsigned)members);
    for (int l = 0; l < SM_MAX_LEVELS; l++) h = sm_hash_mixed(h, (unsigned)r->of[l]);
    return h | 1;
}

static const sm_timed_curve *least_curve(const sm_train *t, const slot_key *slot, int members,
                                         const room *r, placed *p) {
    sm_group g = {.size = members};
    if (members == 1) return sm_curve_memo_get(&p->memo, slot->op, &g, 1);
    uint64_t key = splits_key(slot, members, r);
    sm_timed_curve *at = sm_curve_memo_entry(&p->memo, key);
    if (at->key) return at;
    splits s = {t, slot, r, &p->memo, at, 0};
    memset(at, 0, sizeof *at);
    try_splits(&s, 0, members, &g);
    return sm_curve_memo_keep(&p->memo, at, key);
}

static void hopeful_on_torus(const sm_train *t, const slot_key *slot, double members,
                             sm_timed_curve *own) {
    int size = (int)(members + 0.5);
    double in = torus_injection(t, size), part = (members - 1) / members;
    sm_collective op = slot->op;
    double times = op == SM_ALL_REDUCE ? 1 : op == SM_ALL_TO_ALL ? part / members : part;
    double least = times / in; /* all-reduce: in-network reduction included */
    if (op == SM_ALL_TO_ALL && t->system.levels == t->system.torus_dims)
        least = fmax(least, torus_exchange(t, size));
    if (slot->ragged) least *= ragged_least(t, members);
    own->n = members > 1;
    own->line[0] = (sm_timed_line){.line = {0, least}};
}

/* Curves no placement beats. Switches: the least of all splits over the levels. Tori: a chip can
 * take in what it must over all its links at once. */
void place_hopeful(const sm_train *t, const variant *v, const sm_degrees *d, placed *p) {
    room all = all_room(t);
    make_room(v, p);
    p->send = NULL;
    for (int i = 0; i < v->slots; i++) {
        const slot_key *slot = &v->key[i];
        if (t->system.torus_dims == 0) {
            p->slot[i] = least_curve(t, slot, members_of(d, slot->axes), &all, p);
            continue;
        }
        hopeful_on_torus(t, slot, 1 / d->inverse[slot->axes], &p->own[i]);
        p->slot[i] = &p->own[i];
    }
}

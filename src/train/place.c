/* Where the axes of a plan sit on the system, and what each of its collectives then costs. */
#include <assert.h>

#include "space.h"

static double ragged_of(const sm_train *t, const slot_key *key, const sm_group *g) {
    const int in_order = t->software_memory.experts_in_order ? (int)t->most_experts : 0;
    if (!key->ragged || t->software.all_slots || t->software_memory.copies_each) return 1;
    return sm_ragged_part(&t->system, t->largest_top_k, in_order, g);
}

/* On a switch level it counts how many members are below each child, not which. */
static sm_group group_of(const sm_train *t, const sm_placement *placement, sm_axes axes) {
    sm_group g = sm_group_join(placement, axes);
    int kept = 0;
    for (int i = 0; i < g.parts; i++) {
        bool torus = t->system.level[g.part[i].level].kind == SM_LEVEL_TORUS;
        if (!torus && kept > 0 && g.part[kept - 1].level == g.part[i].level) {
            g.part[kept - 1].size *= g.part[i].size;
            continue;
        }
        g.part[kept] = g.part[i];
        if (!torus) g.part[kept].stride = 1;
        kept++;
    }
    g.parts = kept;
    return g;
}

/* Of an axis the n chips that lie innermost, or those that lie that far apart. */
static void cut_axis(sm_group *g, int n, bool apart) {
    g->size = apart ? g->size / n : n;
    for (int i = 0; i < g->parts; i++) {
        sm_part *q = &g->part[i];
        int inner = sm_common_factor(n, q->size);
        n /= inner;
        if (apart) q->stride *= inner;
        q->size = apart ? q->size / inner : inner;
    }
    int kept = 0;
    for (int i = 0; i < g->parts; i++)
        if (g->part[i].size > 1) g->part[kept++] = g->part[i];
    g->parts = kept;
}

sm_group place_group(const sm_train *t, const sm_placement *at, int copies, sm_axes axes,
                     slot_part part) {
    if (part == ALL_COPIES || !(axes & SM_BIT(SM_AXIS_DATA))) return group_of(t, at, axes);
    sm_placement cut = *at;
    sm_group *data = &cut.axis[SM_AXIS_DATA];
    cut_axis(data, data->size / copies, part == ACROSS_COPIES);
    return group_of(t, &cut, axes);
}

/* Of weights that software broadcasts; no layer asks for one. */
static bool is_idle(const sm_train *t, const slot_key *key) {
    return key->op == SM_BROADCAST && !t->software_memory.broadcasts;
}

void place_curves(const sm_train *t, const variant *v, bool main_alone, placed *p) {
    sm_group joined[SM_AXES_MASKS];
    bool done[SM_AXES_MASKS] = {false};
    sm_curve_memo_reserve(&p->memo, v->slots + 1);
    for (int i = 0; i < (main_alone ? v->main_slots : v->slots); i++) {
        const sm_axes axes = v->key[i].axes;
        if (is_idle(t, &v->key[i])) continue;
        sm_group cut, *g = &joined[axes];
        bool whole = v->key[i].part == ALL_COPIES || (v->key[i].part == ONE_COPY && p->copies == 1);
        if (!whole) *(g = &cut) = place_group(t, &p->placement, p->copies, axes, v->key[i].part);
        else if (!done[axes]) *g = group_of(t, &p->placement, axes);
        done[axes] |= whole;
        p->slot[i] = sm_curve_memo_get(&p->memo, v->key[i].op, g, ragged_of(t, &v->key[i], g));
    }
    if (main_alone) return;
    sm_group pipe = group_of(t, &p->placement, SM_BIT(SM_PLACED_PIPELINE));
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
    sm_line *last = &to->line[to->n - 1].line; /* where all are taken, the highest below both */
    last->latency_s = smaller(last->latency_s, line->line.latency_s);
    last->s_per_byte = smaller(last->s_per_byte, line->line.s_per_byte);
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

slot_key place_slot(const variant *v, int i) {
    return i < v->slots ? v->key[i]
                        : (slot_key){SM_PERMUTE, SM_BIT(SM_PLACED_PIPELINE), false, ALL_COPIES};
}

const sm_timed_curve *place_least_made(const slot_key *key, const placed *p) {
    for (int i = 0; i < p->leasts; i++) {
        const slot_key *of = &p->least_of[i];
        if (of->op == key->op && of->axes == key->axes && of->ragged == key->ragged &&
            of->part == key->part)
            return &p->least[i];
    }
    return NULL;
}

void place_least(const sm_train *t, const slot_key *key, int n, const sm_group *of, placed *p) {
    assert(p->leasts < LEASTS);
    p->least_of[p->leasts] = *key;
    sm_timed_curve *to = &p->least[p->leasts++];
    for (int k = 0; k < n && !is_idle(t, key); k++) {
        sm_curve_memo_reserve(&p->memo, 1);
        const sm_timed_curve *one =
            sm_curve_memo_get(&p->memo, key->op, &of[k], ragged_of(t, key, &of[k]));
        lower_curve(t, one, k == 0, to);
    }
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
    const int *room; /* of each level */
    const sm_curve_memo *memo;
    sm_timed_curve *least;
    bool joined;
    int tried;
    unsigned alike; /* dimensions, to the one before each, a bit each */
} splits;

bool dims_alike(const sm_system *system, int a, int b) {
    const sm_level *x = &system->level[a], *y = &system->level[b];
    return x->kind == SM_LEVEL_TORUS && y->kind == SM_LEVEL_TORUS && x->size == y->size &&
           x->wrap == y->wrap && x->bytes_per_s_oneway == y->bytes_per_s_oneway &&
           x->hop_latency_s == y->hop_latency_s;
}

/* More members on a dimension than on the one before it, which is alike: they could change places.
 */
static bool is_mirrored(const splits *s, const sm_group *g) {
    int members[SM_MAX_LEVELS] = {1, 1, 1};
    for (int i = 0; i < g->parts && s->alike; i++) members[g->part[i].level] *= g->part[i].size;
    return (s->alike & 2 && members[1] > members[0]) || (s->alike & 4 && members[2] > members[1]);
}

static void add_split(splits *s, const sm_group *g) {
    sm_timed_curve one;
    sm_timed_curve_fill(s->memo, s->slot->op, g, ragged_of(s->t, s->slot, g), &one);
    lower_curve(s->t, &one, s->tried++ == 0, s->least);
}

/* From a level up, of which `used` of the room is taken by members at hand: `left` members are
 * still to be placed. */
static void try_splits(splits *s, int level, int used, int left, sm_group *g) {
    if ((used == 1 || left == 1) && is_mirrored(s, g)) return;
    if (left == 1) add_split(s, g);
    if (left == 1 || level == s->t->system.levels) return;
    bool torus = s->t->system.level[level].kind == SM_LEVEL_TORUS;
    int room = s->room[level] / used;
    try_splits(s, level + 1, 1, left, g);
    for (int gap = used > 1 ? 2 : 1; gap <= (torus ? room / 2 : 1); gap++) {
        const int most = room % gap ? 1 : sm_common_factor(left, room / gap);
        for (int n = 2; n <= most; n++) {
            if (most % n || g->parts == SM_MAX_PARTS) continue;
            bool last = !s->joined || !torus;
            g->part[g->parts++] = (sm_part){(uint8_t)level, n, used * gap};
            if (last) try_splits(s, level + 1, 1, left / n, g);
            else try_splits(s, level, used * gap * n, left / n, g);
            g->parts--;
        }
    }
}

/* The same of one axis, of which nothing is placed: torus dimensions in any order, then the levels
 * above, of each what divides both what others leave of it and what the axis still needs. */
static void try_fills(splits *s, unsigned passed, int left, sm_group *g) {
    const sm_system *system = &s->t->system;
    if (left == 1) add_split(s, g);
    for (int l = 0; l < system->levels && left > 1; l++) {
        const sm_level *level = &system->level[l];
        const bool torus = level->kind == SM_LEVEL_TORUS;
        if (passed >> l & 1 || g->parts == SM_MAX_PARTS) continue;
        if (l > 0 && s->alike >> l & 1 && !(passed >> (l - 1) & 1))
            continue; /* the one before first */
        for (int gap = 1; gap <= level->size / 2; gap++) {
            const int n = level->size % gap ? 1 : sm_common_factor(left, level->size / gap);
            if (n == 1) continue;
            const unsigned now = torus ? 1u << l : (2u << l) - 1;
            g->part[g->parts++] = (sm_part){(uint8_t)l, n, torus ? gap : 1};
            try_fills(s, passed | now, left / n, g);
            g->parts--;
        }
    }
}

/* The least curve of a group of which some members lie where `at` says and `left` times as many
 * anywhere in the room. */
static const sm_timed_curve *least_curve(splits *s, const sm_group *at, int left,
                                         sm_curve_memo *memo) {
    if (left == 1) return sm_curve_memo_get(memo, s->slot->op, at, ragged_of(s->t, s->slot, at));
    uint64_t what = (uint64_t)s->slot->op << 2 | (uint64_t)s->slot->ragged << 1 | s->joined;
    uint64_t key = sm_hash_mixed(0x9e3779b97f4a7c15ull, what << 32 ^ (unsigned)left);
    for (int l = 0; l < s->t->system.levels; l++) key = sm_hash_mixed(key, (unsigned)s->room[l]);
    for (int i = 0; i < at->parts; i++) {
        const sm_part *q = &at->part[i];
        key = sm_hash_mixed(key, (uint64_t)q->level << 56 ^ (uint64_t)q->size << 28 ^
                                     (uint64_t)q->stride);
    }
    bool there;
    s->least = sm_curve_memo_entry(memo, key | 1, &there);
    if (there) return s->least;
    sm_group all = *at;
    all.size *= left;
    s->tried = 0;
    memset(s->least, 0, sizeof *s->least);
    if (s->t->system.torus_dims > 0 && !s->joined) try_fills(s, 0, left, &all);
    else try_splits(s, 0, 1, left, &all);
    return sm_curve_memo_keep(memo, s->least, key | 1);
}

/* Children of each level that what is placed leaves. */
static void room_left(const sm_train *t, const sm_placement *at, sm_axes placed_axes, int *room) {
    for (int l = 0; l < t->system.levels; l++) room[l] = t->system.level[l].size;
    for (int a = 0; a < at->axes; a++)
        for (int i = 0; i < at->axis[a].parts && placed_axes >> a & 1; i++)
            room[at->axis[a].part[i].level] /= at->axis[a].part[i].size;
}

void place_hopeful(const sm_train *t, const variant *v, const sm_plan *plan, const sm_degrees *d,
                   sm_axes placed_axes, placed *p) {
    sm_curve_memo *memo = placed_axes ? &p->memo : &p->unplaced;
    static const sm_group none = {.size = 1};
    sm_group other;
    int room[SM_MAX_LEVELS];
    splits s = {.t = t, .room = room, .memo = memo};
    for (int l = 1; l < t->system.torus_dims; l++)
        if (dims_alike(&t->system, l - 1, l)) s.alike |= 1u << l;
    sm_curve_memo_reserve(memo, v->slots + 1);
    room_left(t, &p->placement, placed_axes, room);
    for (int i = 0; i <= v->slots; i++) {
        const slot_key slot = place_slot(v, i);
        if (is_idle(t, &slot)) continue;
        const sm_group *at = &none;
        double left = 1;
        int spread = 0;
        const sm_axes inside = (sm_axes)(slot.axes & placed_axes);
        if (inside) {
            other = place_group(t, &p->placement, p->copies, inside, slot.part);
            at = &other;
        }
        for (int a = 0; a < SM_PLACED_AXES; a++) {
            if (!((slot.axes & ~placed_axes) >> a & 1)) continue;
            double size = a < SM_AXIS_COUNT ? d->axis[a] : plan->pipeline;
            if (a == SM_AXIS_DATA && slot.part == ONE_COPY) size /= p->copies;
            if (a == SM_AXIS_DATA && slot.part == ACROSS_COPIES) size = p->copies;
            left *= size;
            spread += size > 1;
        }
        s.slot = &slot;
        s.joined = spread > 1;
        *(i < v->slots ? &p->slot[i] : &p->send) = least_curve(&s, at, (int)left, memo);
    }
}

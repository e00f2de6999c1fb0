/* Where the axes of a plan sit on the system, and what each of its collectives then costs. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "space.h"

bool place_axes(const sm_train *t, const sm_plan *plan, const degrees *d, sm_placement *placement) {
    int sizes[PLACED_AXES], order[PLACED_AXES], dims[SM_MAX_LEVELS], n = 0;
    static const uint8_t axis_of[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_AXIS_DATA,     [SM_PLAN_FSDP] = SM_AXIS_FSDP,
        [SM_PLAN_TENSOR] = SM_AXIS_TENSOR, [SM_PLAN_CONTEXT] = SM_AXIS_CONTEXT,
        [SM_PLAN_EXPERT] = SM_AXIS_EXPERT, [SM_PLAN_PIPELINE] = PIPE_AXIS};
    for (int a = 0; a < SM_AXIS_COUNT; a++) sizes[a] = (int)d->axis[a];
    sizes[PIPE_AXIS] = plan->pipeline;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        order[n++] = axis_of[plan->order[i]];
        if (plan->order[i] == SM_PLAN_TENSOR) order[n++] = SM_AXIS_TENSOR_Q;
    }
    for (int l = 0; l < t->system.levels; l++)
        dims[l] = l < t->system.torus_dims ? plan->dims[l] : l;
    return sm_placement_fill(&t->system, PLACED_AXES, sizes, order, dims, placement);
}

/* Another line is never slower: this one would never be chosen. */
static bool dominated(const fast_curve *c, const sm_timing *at) {
    for (int i = 0; i < c->n; i++)
        if (c->line[i].latency_s <= at->latency_s && c->line[i].s_per_byte <= at->s_per_byte)
            return true;
    return false;
}

static void add_fast(const sm_train *t, const sm_line *line, const sm_timing *at, fast_curve *to) {
    if (to->n == FAST_LINES || dominated(to, at)) return;
    fast_line *f = &to->line[to->n++];
    f->latency_s = at->latency_s;
    f->s_per_byte = at->s_per_byte;
    f->wire_per_byte = line->link_bytes_per_byte;
    f->algorithm = line->algorithm;
    f->level = line->level;
    for (int l = 0; l < t->system.levels; l++)
        f->busy[l] = line->level_s_per_byte[l] * at->excess /
                     sm_network_efficiency(&t->system, t->calibration, (uint8_t)l);
}

static void make_fast(const sm_train *t, const sm_curve *from, fast_curve *to) {
    sm_timing timed[SM_MAX_TIMINGS];
    to->n = 0;
    to->ideal_s_per_byte = from->ideal_s_per_byte;
    to->level = from->n ? from->line[0].level : 0;
    for (int i = 0; i < from->n; i++) {
        int n = sm_line_timings(&from->line[i], &t->system, t->calibration, timed);
        for (int k = 0; k < n; k++) add_fast(t, &from->line[i], &timed[k], to);
    }
}

double curve_seconds(const fast_curve *c, double bytes, const fast_line **line) {
    double best = 0;
    *line = NULL;
    if (bytes <= 0) return 0;
    for (int i = 0; i < c->n; i++) {
        double s = c->line[i].latency_s + bytes * c->line[i].s_per_byte;
        if (*line && s >= best) continue;
        best = s;
        *line = &c->line[i];
    }
    return best;
}

static uint64_t group_key(sm_collective op, const sm_group *g, double ragged) {
    uint64_t bits, h = 1469598103934665603ull ^ (uint64_t)op;
    memcpy(&bits, &ragged, sizeof bits);
    h = (h ^ bits) * 1099511628211ull;
    for (int i = 0; i < g->parts; i++) {
        uint64_t part = (uint64_t)g->part[i].level << 56 ^ (uint64_t)g->part[i].size << 28 ^
                        (uint64_t)g->part[i].stride;
        h = (h ^ part) * 1099511628211ull;
        h ^= h >> 29;
    }
    return h | 1;
}

bool placed_init(placed *p, sm_arena *arena) {
    p->memo = sm_arena_array(arena, CURVES, sizeof *p->memo);
    return p->memo != NULL;
}

static uint64_t content_of(const fast_curve *c) {
    uint64_t h = 1469598103934665603ull, word;
    for (int i = 0; i < c->n; i++) {
        const double *numbers[] = {&c->line[i].latency_s, &c->line[i].s_per_byte};
        for (int k = 0; k < 2; k++) {
            memcpy(&word, numbers[k], sizeof word);
            h = (h ^ word) * 1099511628211ull;
            h ^= h >> 29;
        }
        for (int l = 0; l < SM_MAX_LEVELS; l++) {
            memcpy(&word, &c->line[i].busy[l], sizeof word);
            h = (h ^ word) * 1099511628211ull;
            h ^= h >> 29;
        }
    }
    memcpy(&word, &c->ideal_s_per_byte, sizeof word);
    return (h ^ word) * 1099511628211ull;
}

static void fill_curve(const sm_train *t, sm_collective op, const sm_group *g, double ragged,
                       fast_curve *to) {
    memset(to, 0, sizeof *to);
    if (g->size > 1) {
        sm_curve curve = sm_collective_curve(&t->system, op, g, ragged);
        make_fast(t, &curve, to);
    }
    to->content = content_of(to);
}

/* The memo is emptied when it is three quarters full: what it returns never depends on its history.
 * It belongs to one job, so to one system. */
static const fast_curve *curve_for(const sm_train *t, sm_collective op, const sm_group *g,
                                   double ragged, placed *p) {
    uint64_t key = group_key(op, g, ragged);
    size_t at = key % CURVES;
    for (; p->memo[at].key; at = (at + 1) % CURVES)
        if (p->memo[at].key == key) return &p->memo[at];
    fill_curve(t, op, g, ragged, &p->memo[at]);
    p->memo[at].key = key;
    p->used++;
    return &p->memo[at];
}

void placed_forget(placed *p) {
    memset(p->memo, 0, CURVES * sizeof *p->memo);
    p->used = 0;
}

static void make_room(const variant *v, placed *p) {
    /* twice: a prefix keeps hopeful curves while it adds its own */
    if (p->used + 8 * v->slots + 1 >= CURVES * 3 / 4) placed_forget(p);
}

/* A token is sent once to each group of experts that hosts any of its k, and passed on inside: of k
 * copies, this part moves. A group is what sits below the outermost level that the collective
 * crosses (a node, as in DeepEP), or a chip. */
static double ragged_part(const sm_train *t, const sm_group *g) {
    double groups = 1, k = t->largest_top_k;
    bool scales_out = false;
    for (int i = 0; i < g->parts; i++) scales_out |= g->part[i].level > 0;
    for (int i = 0; i < g->parts; i++)
        if (t->system.torus_dims > 0 || !scales_out || g->part[i].level > 0)
            groups *= g->part[i].size;
    if (groups <= 1 || k <= 0) return 1;
    double part = sm_ragged_fraction(groups, k) * groups / k;
    return part < 1 ? part : 1;
}

static const fast_curve nowhere = {0}; /* a group of one */

static double ragged_of(const sm_train *t, const slot_key *key, const sm_group *g) {
    return key->ragged ? ragged_part(t, g) : 1;
}

void place_curves(const sm_train *t, const variant *v, placed *p) {
    sm_group joined[MASKS];
    uint64_t done = 0;
    make_room(v, p);
    p->signature = 1469598103934665603ull;
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        sm_group *g = &joined[axes];
        if (!(done >> axes & 1)) *g = sm_group_join(&p->placement, axes);
        done |= (uint64_t)1 << axes;
        p->slot[i] =
            g->size == 1 ? &nowhere : curve_for(t, v->key[i].op, g, ragged_of(t, &v->key[i], g), p);
        p->signature = (p->signature ^ p->slot[i]->content) * 1099511628211ull;
        p->signature ^= p->signature >> 31;
    }
    sm_group pipe = sm_group_join(&p->placement, SM_BIT(PIPE_AXIS));
    p->send = curve_for(t, SM_PERMUTE, &pipe, 1, p);
    p->signature = ((p->signature ^ p->send->content) * 1099511628211ull) | 1;
}

static sm_axes axes_of_key(int key) {
    static const sm_axes axes[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = SM_BIT(SM_AXIS_DATA),     [SM_PLAN_FSDP] = SM_BIT(SM_AXIS_FSDP),
        [SM_PLAN_TENSOR] = SM_AXES_TENSOR,         [SM_PLAN_CONTEXT] = SM_BIT(SM_AXIS_CONTEXT),
        [SM_PLAN_EXPERT] = SM_BIT(SM_AXIS_EXPERT), [SM_PLAN_PIPELINE] = SM_BIT(PIPE_AXIS)};
    return axes[key];
}

static void place_slots(const sm_train *t, const variant *v, const sm_placement *at, sm_axes inside,
                        sm_axes touching, placed *p) {
    for (int i = 0; i < v->slots; i++) {
        sm_axes axes = v->key[i].axes;
        if ((axes & ~inside) || !(axes & touching)) continue;
        sm_group g = sm_group_join(at, axes);
        p->slot[i] = g.size == 1 ? &nowhere
                                 : curve_for(t, v->key[i].op, &g, ragged_of(t, &v->key[i], &g), p);
    }
}

void place_prefix(const sm_train *t, const variant *v, const sm_plan *plan, int prefix, int axes,
                  const degrees *d, placed *p) {
    sm_plan order = *plan;
    sm_placement at;
    sm_axes inside = 0;
    place_hopeful(t, v, d, p);
    for (int i = 0; i < prefix; i++) inside = (sm_axes)(inside | axes_of_key(plan->order[i]));
    if (!place_axes(t, &order, d, &at)) return;
    place_slots(t, v, &at, inside, inside, p);
    if (t->system.torus_dims > 0)
        return; /* there what comes next may still find better factors later */
    for (int i = prefix; i < axes; i++) {
        sm_axes next = axes_of_key(plan->order[i]);
        memcpy(order.order, plan->order, sizeof order.order);
        order.order[prefix] = plan->order[i];
        order.order[i] = plan->order[prefix];
        if (place_axes(t, &order, d, &at)) place_slots(t, v, &at, next, next, p);
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
    return t->system.torus_dims > 0 ? ragged_part(t, &all) : 1 / fmax(1, t->largest_top_k);
}

/* Curves no placement beats. Switches: the members side by side, as deep inside as they fit. Tori:
 * a chip can take in what it must over all its links at once. */
void place_hopeful(const sm_train *t, const variant *v, const degrees *d, placed *p) {
    make_room(v, p);
    for (int i = 0; i < v->slots; i++) {
        double members = 1 / d->inverse[v->key[i].axes];
        int size = (int)(members + 0.5), order = 0;
        sm_placement inner;
        if (t->system.torus_dims == 0 &&
            sm_placement_fill(&t->system, 1, &size, &order, NULL, &inner)) {
            const sm_group *g = &inner.axis[0];
            p->slot[i] = curve_for(t, v->key[i].op, g, ragged_of(t, &v->key[i], g), p);
            continue;
        }
        double in = torus_injection(t, size), part = (members - 1) / members;
        sm_collective op = v->key[i].op;
        double times = op == SM_ALL_REDUCE ? 1 : op == SM_ALL_TO_ALL ? part / members : part;
        double least = times / in; /* all-reduce: in-network reduction included */
        if (op == SM_ALL_TO_ALL && t->system.levels == t->system.torus_dims)
            least = fmax(least, torus_exchange(t, size));
        if (v->key[i].ragged) least *= ragged_least(t, members);
        p->own[i] = (fast_curve){.n = members > 1};
        p->own[i].line[0].s_per_byte = p->own[i].ideal_s_per_byte = least;
        p->slot[i] = &p->own[i];
    }
    p->send = NULL;
}

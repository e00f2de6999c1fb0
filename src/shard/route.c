/* Resharding as a shortest path. A node is a layout of the array, an edge a collective, its length
 * the bytes that a chip receives (g chips in a group, V bytes on a chip before, B what one of them
 * sends another: V/g, padded up where a dimension does not divide):
 *
 *   nowhere -> dimension       slice            0
 *   {U}     -> dimension       reduce-scatter   B (g - 1)
 *   {U}     -> nowhere         all-reduce       2 V (1 - 1/g)
 *   dim     -> other dims      all-to-all       B (g - 1)
 *   dims    -> nowhere         all-gather       V (g - 1)
 *   any bijection of blocks    permute          V, or its pieces (sm_layout_pieces)
 *
 * In "I_XY" X is major, as in JAX's PartitionSpec(('X','Y')): chip (x,y) holds block x*|Y|+y. Axes
 * that leave a dimension must be its minor ones, or the blocks that a chip then holds would not lie
 * side by side, and those that come are minor. One all-to-all moves axes out of several dimensions
 * into several others.
 *
 * A permute changes which axes shard, not how finely, and one is enough: moves before it do the
 * same with other axes after it. So best-first searches (Hart, Nilsson, Raphael 1968) from both
 * ends meet, either in a layout or, for the price of a permute, in two that cut the array alike.
 * Both are guided by a bound that holds for any way to move blocks: the chip that holds least of
 * what it must have in the end receives the rest. */
#include "route_parts.h"
#include <string.h>

enum { MOST_NODES = 1536, BUCKETS = 1024, NONE = -1 };

typedef struct node {
    sm_layout at;
    double cost, ahead; /* so far; the bound of what is left */
    double local;       /* bytes on a chip */
    int16_t parent, next;
    uint8_t move; /* from the parent to here; backward: from here to the parent */
} node;

typedef struct front {
    bool backward;
    int n;
    int16_t bucket[BUCKETS];
    double open[MOST_NODES]; /* cost and what is ahead; infinite once a node is expanded */
    node node[MOST_NODES];
} front;

typedef struct search {
    const sm_journey *j;
    sm_axes idle;  /* replicated at both ends: they stay so */
    double finest; /* bytes of a block when every other axis shards */
    double best;   /* the length of the best route so far */
    int met[2];    /* its nodes where both sides meet; NONE: there is none */
    bool dropped;  /* there was no room for a node */
    bool both;     /* search from the end too */
    /* Of each set of axes: its chips, and of each dimension the length of the blocks that it cuts.
     */
    double chips[1 << SM_MAX_AXES], cut[SM_MAX_RANK][1 << SM_MAX_AXES];
    front side[2]; /* forward, backward */
} search;

/* ---- layouts ---- */

bool route_same(const sm_layout *a, const sm_layout *b) { return memcmp(a, b, sizeof *a) == 0; }

void route_list_axes(const sm_journey *j, const sm_layout *l, lists *out) {
    memset(out->n, 0, sizeof out->n);
    for (int a = 0; a < j->axes; a++)
        if (l->dim[a] >= 0) {
            out->n[l->dim[a]]++;
            out->axis[l->dim[a]][l->place[a]] = (uint8_t)a;
        }
}

double route_ways(const sm_journey *j, const sm_layout *l, int dim) {
    double n = 1;
    for (int a = 0; a < j->axes; a++)
        if (l->dim[a] == dim) n *= j->chips[a];
    return n;
}

static bool divides(const sm_journey *j, const sm_layout *l, int dim) {
    return fmod(j->size[dim], route_ways(j, l, dim)) == 0;
}

unsigned sm_journey_uneven(const sm_journey *j) {
    unsigned set = 0;
    for (int d = 0; d < j->rank; d++)
        if (!divides(j, &j->from, d) || !divides(j, &j->to, d)) set |= 1u << d;
    return set;
}

/* Without padding: of sizes that do not divide, parts of elements. */
static double even_box_bytes(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    double bytes = j->element_bytes, n = 1;
    for (int d = 0; d < j->rank; d++) bytes *= j->size[d];
    for (int i = 0; i < j->axes; i++) {
        if (a->dim[i] >= 0) n *= j->chips[i];
        if (b->dim[i] >= 0 && b->dim[i] != a->dim[i]) n *= j->chips[i];
    }
    return bytes / n;
}

double sm_journey_box_bytes(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    double bytes = j->element_bytes;
    if (!j->uneven) return even_box_bytes(j, a, b);
    for (int d = 0; d < j->rank; d++)
        bytes *= sm_cut(j->size[d], fmax(route_ways(j, a, d), route_ways(j, b, d)));
    return bytes;
}

double sm_journey_local_bytes(const sm_journey *j, const sm_layout *l) {
    return sm_journey_box_bytes(j, l, l);
}

bool sm_journey_padded(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    for (int d = 0; d < j->rank; d++) {
        bool moved = route_ways(j, a, d) != route_ways(j, b, d);
        if (moved && (!divides(j, a, d) || !divides(j, b, d))) return true;
    }
    return false;
}

void route_put(sm_layout *l, int axis, int dim, int place) {
    l->dim[axis] = (int8_t)dim;
    l->place[axis] = (int8_t)(dim >= 0 ? place : -1);
}

unsigned route_put_last(const sm_journey *j, sm_layout *l, int axis, int dim) {
    unsigned set = 1u << axis;
    int place = 0;
    for (int a = 0; a < j->axes; a++)
        if (l->dim[a] == dim) {
            place++;
            set |= 1u << a;
        }
    route_put(l, axis, dim, place);
    return set;
}

/* May an axis cut a dimension of so many elements, from blocks so long to shorter ones? It may
 * where they divide, or where either end pads the dimension and its blocks become shorter. */
bool route_may_cut(const sm_journey *j, int axis, int dim, double chips, double from, double to) {
    if (to * chips == j->size[dim]) return true;
    return (j->uneven >> dim & 1u) &&
           (to < from || j->from.dim[axis] == dim || j->to.dim[axis] == dim);
}

double sm_journey_permute_bytes(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    double bytes = j->element_bytes;
    if (!j->uneven) return even_box_bytes(j, a, a);
    for (int d = 0; d < j->rank; d++) {
        sm_pieces pieces;
        double received = 0;
        if (!sm_layout_pieces(j->chips, j->joined, a, b, d, j->size[d], &pieces)) return INFINITY;
        for (int i = 0; i < pieces.n; i++) received += pieces.width[i];
        bytes *= received;
    }
    return bytes;
}

/* The product of the chips of the axes that come after an axis in its dimension. */
static double weight(const sm_journey *j, const sm_layout *l, int axis) {
    double n = 1;
    for (int a = 0; a < j->axes; a++)
        if (l->dim[a] == l->dim[axis] && l->place[a] > l->place[axis]) n *= j->chips[a];
    return n;
}

sm_axes sm_layout_displaced(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    unsigned set = 0, cut = 0;
    for (int i = 0; i < j->axes; i++)
        if (a->dim[i] != b->dim[i] || (a->dim[i] >= 0 && weight(j, a, i) != weight(j, b, i)))
            set |= 1u << i;
    for (int d = 0; d < j->rank; d++) {
        sm_pieces pieces;
        if (!(j->uneven >> d & 1u)) continue;
        sm_layout_pieces(j->chips, j->joined, a, b, d, j->size[d], &pieces);
        if (pieces.n > 1) cut |= 1u << d;
    }
    for (int i = 0; i < j->axes; i++) /* pieces come from beside */
        if (a->dim[i] >= 0 && (cut >> a->dim[i] & 1u)) set |= 1u << i;
    return (sm_axes)set;
}

/* Of a padded dimension: are blocks of its first `kept` axes made of whole blocks of all? Not where
 * these end between joined ones, and all of them at once cut elsewhere. */
static bool ends_blocks(const sm_journey *j, const lists *l, int dim, int kept) {
    const uint8_t *axis = l->axis[dim];
    double outer = 1, joined = 1;
    for (int i = 0; i < kept; i++) outer *= j->chips[axis[i]];
    for (int i = kept; i < l->n[dim]; i++) {
        if (!(j->joined >> axis[i] & 1) || i == 0 || axis[i - 1] + 1 != axis[i]) break;
        joined *= j->chips[axis[i]];
    }
    return sm_cut(j->size[dim], outer) == joined * sm_cut(j->size[dim], outer * joined);
}

bool route_nests(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    lists before, after;
    if (!j->joined || !j->uneven) return true;
    route_list_axes(j, a, &before);
    route_list_axes(j, b, &after);
    for (int d = 0; d < j->rank; d++) {
        if (!(j->uneven >> d & 1u)) continue;
        if (before.n[d] > after.n[d] && !ends_blocks(j, &before, d, after.n[d])) return false;
        if (before.n[d] < after.n[d] && !ends_blocks(j, &after, d, before.n[d])) return false;
    }
    return true;
}

/* ---- the bound ---- */

/* What a chip holds of its last block, at worst: nothing where other axes cut a dimension first. */
static double overlap(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    lists from, to;
    route_list_axes(j, a, &from);
    route_list_axes(j, b, &to);
    for (int d = 0; d < j->rank; d++) {
        int i = 0;
        while (i < from.n[d] && i < to.n[d] && from.axis[d][i] == to.axis[d][i]) i++;
        if (i < from.n[d] && i < to.n[d]) return 0;
    }
    return even_box_bytes(j, a, b);
}

/* Parts of which each sum is made on the way. */
static double sums_between(const sm_journey *j, const sm_layout *a, const sm_layout *b) {
    double u = 1;
    for (int i = 0; i < j->axes; i++)
        if (a->dim[i] == SM_UNREDUCED && b->dim[i] != SM_UNREDUCED) u *= j->chips[i];
    return u;
}

/* Bytes that a chip must receive between two layouts. An element that u chips hold parts of, and r
 * have in the end, takes u - 1 receptions to be added up where one of those r has a part, else u,
 * and r - 1 more; a chip has its share of them, `finest` each. On average a box of the block that a
 * chip has in the end is of what it holds, at most. Padded moves have every block rounded up, so
 * that they take no less than these of parts of elements. */
static double bound(const sm_journey *j, double finest, const sm_layout *a, const sm_layout *b) {
    double u = sums_between(j, a, b), last = even_box_bytes(j, b, b);
    if (u > 1) return finest * (u - 1) + fmax(0, last - fmin(finest, even_box_bytes(j, a, b)));
    return last - overlap(j, a, b);
}

static sm_axes idle_axes(const sm_journey *j) {
    unsigned idle = 0;
    for (int a = 0; a < j->axes; a++)
        if (j->from.dim[a] == SM_REPLICATED && j->to.dim[a] == SM_REPLICATED) idle |= 1u << a;
    return (sm_axes)idle;
}

/* Do axes of different sizes move? */
static bool sizes_differ(const sm_journey *j, sm_axes idle) {
    int common = 0;
    for (int a = 0; a < j->axes; a++) {
        if (idle >> a & 1) continue;
        if (common != 0 && j->chips[a] != common) return true;
        common = j->chips[a];
    }
    return false;
}

static double finest_bytes(const sm_journey *j) {
    double bytes = j->element_bytes;
    for (int d = 0; d < j->rank; d++) bytes *= j->size[d];
    for (int a = 0; a < j->axes; a++)
        if (j->from.dim[a] >= 0 || j->to.dim[a] >= 0 || j->from.dim[a] != j->to.dim[a])
            bytes /= j->chips[a];
    return bytes;
}

/* ---- routes ---- */

/* The one dimension that gains axes; NONE when there is none or several do. */
static int gaining(const sm_journey *j, const sm_layout *before, const sm_layout *after) {
    int to = NONE, several = 0;
    for (int a = 0; a < j->axes; a++)
        if (after->dim[a] >= 0 && before->dim[a] != after->dim[a]) {
            several += to != NONE && to != after->dim[a];
            to = after->dim[a];
        }
    return several ? NONE : to;
}

/* Gathers in a row are one, and so are slices and scatters onto one dimension. */
static bool continues(const sm_journey *j, const sm_route *r, sm_move move,
                      const sm_layout *after) {
    int n = r->moves;
    if (n == 0 || r->move[n - 1] != move) return false;
    if (move == SM_MOVE_ALL_GATHER) return true;
    if (move != SM_MOVE_SLICE && move != SM_MOVE_REDUCE_SCATTER) return false;
    const sm_layout *last = &r->after[n - 1];
    return gaining(j, n > 1 ? &r->after[n - 2] : &j->from, last) == gaining(j, last, after);
}

bool route_add_move(const sm_journey *j, sm_route *r, sm_move move, const sm_layout *after) {
    int at = r->moves;
    if (continues(j, r, move, after)) at--;
    if (at == SM_MOST_MOVES) return false;
    r->move[at] = move;
    r->after[at] = *after;
    r->moves = at + 1;
    return true;
}

/* local: bytes on a chip before; box: what one sends another. */
static double move_bytes(const sm_journey *j, sm_move move, const sm_layout *before,
                         const sm_layout *after, double local, double box) {
    double chips = 1;
    for (int a = 0; a < j->axes; a++)
        if (before->dim[a] != after->dim[a]) chips *= j->chips[a];
    switch (move) {
    case SM_MOVE_SLICE: return 0;
    case SM_MOVE_ALL_REDUCE: return 2 * local * (1 - 1 / chips);
    case SM_MOVE_PERMUTE: return sm_journey_permute_bytes(j, before, after);
    default: return box * (chips - 1);
    }
}

static double route_bytes(const sm_journey *j, const sm_route *r) {
    double bytes = 0;
    for (int i = 0; i < r->moves; i++) {
        const sm_layout *before = i > 0 ? &r->after[i - 1] : &j->from, *after = &r->after[i];
        bytes += move_bytes(j, r->move[i], before, after, sm_journey_local_bytes(j, before),
                            sm_journey_box_bytes(j, before, after));
    }
    return bytes;
}

/* ---- nodes ---- */

static void cut_dimensions(search *s) {
    const sm_journey *j = s->j;
    unsigned set = 0;
    do {
        s->chips[set] = 1;
        for (int a = 0; a < j->axes; a++) s->chips[set] *= set >> a & 1 ? j->chips[a] : 1;
        for (int d = 0; d < j->rank; d++) s->cut[d][set] = sm_cut(j->size[d], s->chips[set]);
    } while (++set < 1u << j->axes);
}

/* The axes of each dimension. */
static void axes_of(const search *s, const sm_layout *l, unsigned *set) {
    memset(set, 0, SM_MAX_RANK * sizeof *set);
    for (int a = 0; a < s->j->axes; a++)
        if (l->dim[a] >= 0) set[l->dim[a]] |= 1u << a;
}

/* As append. */
static bool attach(const search *s, sm_layout *l, int axis, int dim) {
    unsigned set = route_put_last(s->j, l, axis, dim);
    return route_may_cut(s->j, axis, dim, s->chips[set], s->cut[dim][set & ~(1u << axis)],
                         s->cut[dim][set]);
}

/* A layout that cuts every dimension as `like` does and becomes *l when axes are gathered: then it
 * takes the place of *l. */
static bool refine(const search *s, sm_layout *l, const sm_layout *like) {
    const sm_journey *j = s->j;
    unsigned here[SM_MAX_RANK], there[SM_MAX_RANK];
    for (int a = 0; a < j->axes; a++)
        if ((l->dim[a] == SM_UNREDUCED) != (like->dim[a] == SM_UNREDUCED)) return false;
    axes_of(s, l, here);
    axes_of(s, like, there);
    for (int d = 0; d < j->rank; d++)
        if (s->chips[there[d]] < s->chips[here[d]]) return false;
    sm_layout fine = *l;
    for (int d = 0; d < j->rank; d++) {
        double more = s->chips[there[d]] / s->chips[here[d]];
        for (int a = 0; a < j->axes && more > 1; a++)
            if (fine.dim[a] == SM_REPLICATED && !(s->idle >> a & 1) &&
                fmod(more, j->chips[a]) == 0) {
                route_put_last(j, &fine, a, d);
                more /= j->chips[a];
            }
        if (more != 1) return false;
    }
    if (!route_nests(j, &fine, l)) return false;
    *l = fine;
    return true;
}

/* As sm_journey_box_bytes. */
static double box_bytes(const search *s, const sm_layout *a, const sm_layout *b) {
    unsigned before[SM_MAX_RANK], after[SM_MAX_RANK];
    double bytes = s->j->element_bytes;
    axes_of(s, a, before);
    axes_of(s, b, after);
    for (int d = 0; d < s->j->rank; d++) {
        double x = s->cut[d][before[d]], y = s->cut[d][after[d]];
        bytes *= x < y ? x : y;
    }
    return bytes;
}

/* Steps break ties: a collective costs as much as a millionth of the smallest block. */
static double toll(const search *s, sm_move move) {
    return s->finest * (move == SM_MOVE_SLICE ? 1e-7 : 1e-6);
}

static unsigned hash(const sm_layout *l) {
    return (unsigned)(sm_hash_bytes(l, sizeof *l) % BUCKETS);
}

/* Does the node end a route with one of the other side? */
static void meet(search *s, int side, int at) {
    const front *other = &s->side[!side];
    const node *mine = &s->side[side].node[at];
    for (int i = 0; i < other->n; i++) {
        const node *n = &other->node[i];
        double total = mine->cost + n->cost;
        if (total >= s->best) continue;
        if (!route_same(&mine->at, &n->at)) {
            const sm_layout *from = side == 0 ? &mine->at : &n->at;
            sm_layout to = side == 0 ? n->at : mine->at;
            const double least = (side == 0 ? n : mine)->local;
            total += toll(s, SM_MOVE_PERMUTE);
            if (total + least >= s->best || !refine(s, &to, from) || route_same(&to, from))
                continue;
            total += sm_journey_permute_bytes(s->j, from, &to);
            const sm_layout *last = side == 0 ? &n->at : &mine->at;
            if (!route_same(&to, last))
                total += toll(s, SM_MOVE_ALL_GATHER) + move_bytes(s->j, SM_MOVE_ALL_GATHER, &to,
                                                                  last, 0, box_bytes(s, &to, last));
            if (total >= s->best) continue;
        }
        s->best = total;
        s->met[side] = at;
        s->met[!side] = i;
    }
}

static int new_node(search *s, front *f, const sm_layout *l) {
    if (f->n == MOST_NODES) {
        s->dropped = true;
        return NONE;
    }
    int16_t *bucket = &f->bucket[hash(l)];
    f->node[f->n] = (node){.at = *l, .next = *bucket, .local = box_bytes(s, l, l)};
    *bucket = (int16_t)f->n;
    return f->n++;
}

/* Reach a layout by a move from the node `parent`. Gathers and scatters in a row are one. */
static void reach(search *s, int side, int parent, sm_move move, const sm_layout *l) {
    front *f = &s->side[side];
    const node *p = parent != NONE ? &f->node[parent] : NULL;
    int at = f->bucket[hash(l)];
    double cost = 0;
    while (at != NONE && !route_same(&f->node[at].at, l)) at = f->node[at].next;
    if (p) {
        const sm_layout *before = f->backward ? l : &p->at, *after = f->backward ? &p->at : l;
        if (!route_nests(s->j, before, after)) return;
        bool joins = p->parent != NONE && p->move == move && move != SM_MOVE_ALL_TO_ALL;
        cost = p->cost + (joins ? 0 : toll(s, move));
        if (at != NONE && f->node[at].cost <= cost) return;
        double local = f->backward ? box_bytes(s, l, l) : p->local;
        cost += move_bytes(s->j, move, before, after, local, box_bytes(s, before, after));
    }
    if (at != NONE && f->node[at].cost <= cost) return;
    double ahead = at != NONE    ? f->node[at].ahead
                   : f->backward ? bound(s->j, s->finest, &s->j->from, l)
                                 : bound(s->j, s->finest, l, &s->j->to);
    double total = cost + ahead + (ahead > 0 ? toll(s, SM_MOVE_ALL_GATHER) : 0);
    if (total >= s->best) return;
    if (at == NONE) at = new_node(s, f, l);
    if (at == NONE) return;
    node *n = &f->node[at];
    n->at = *l;
    n->cost = cost;
    n->ahead = ahead;
    n->parent = (int16_t)parent;
    n->move = (uint8_t)move;
    f->open[at] = total;
    meet(s, side, at);
}

/* ---- moves ---- */

/* A node that is being left, its axes listed. */
typedef struct leaving {
    search *s;
    int side, at;
    sm_layout layout;
    lists list;
    double local; /* bytes on a chip */
} leaving;

/* An axis comes to shard a dimension; where this is padded, with those that are joined to it too.
 */
static void come(const leaving *l, sm_move move, int axis) {
    const sm_journey *j = l->s->j;
    for (int d = 0; d < j->rank; d++) {
        sm_layout next = l->layout;
        for (int a = axis; a < j->axes && attach(l->s, &next, a, d);) {
            reach(l->s, l->side, l->at, move, &next);
            a++;
            if (!(j->joined >> a & 1) || !(j->uneven >> d & 1u) ||
                next.dim[a] != l->layout.dim[axis])
                break;
        }
    }
}

/* The minor axis of a dimension is gathered; seen from the end, what a slice ends. */
static void gather_or_unslice(const leaving *l, int dim) {
    bool backward = l->s->side[l->side].backward;
    int n = l->list.n[dim] - 1;
    sm_layout next = l->layout;
    for (route_put(&next, l->list.axis[dim][n], SM_REPLICATED, 0);
         !route_nests(l->s->j, &l->layout, &next);)
        route_put(&next, l->list.axis[dim][--n], SM_REPLICATED, 0);
    reach(l->s, l->side, l->at, backward ? SM_MOVE_SLICE : SM_MOVE_ALL_GATHER, &next);
}

/* Partial sums scatter over one axis, or are added over all that shall go. */
static void reduce(const leaving *l) {
    const sm_journey *j = l->s->j;
    sm_layout whole = l->layout;
    bool added = false;
    for (int a = 0; a < j->axes; a++) {
        if (l->layout.dim[a] != SM_UNREDUCED || j->to.dim[a] == SM_UNREDUCED) continue;
        come(l, SM_MOVE_REDUCE_SCATTER, a);
        route_put(&whole, a, SM_REPLICATED, 0);
        added = true;
    }
    if (added) reach(l->s, l->side, l->at, SM_MOVE_ALL_REDUCE, &whole);
}

/* ---- all-to-all: minor axes of some dimensions, in any order, to the others ---- */

typedef struct exchange {
    const leaving *l;
    const sm_layout *to; /* the layout that the search goes to, and its axes */
    lists goal;
    double rest; /* bytes ahead when a dimension is cut by other axes than there */
    double sums; /* of partial sums: bytes ahead whatever cuts the dimensions; rest is 0 then */
} exchange;

/* Do the first axes of a dimension differ from those at the goal? */
static bool strays(const exchange *e, int dim, int n, const uint8_t *axis) {
    int shared = n < e->goal.n[dim] ? n : e->goal.n[dim];
    return memcmp(axis, e->goal.axis[dim], (size_t)shared) != 0;
}

/* held: bytes that are in their last places, at most. */
static bool too_far(const exchange *e, double chips, double held) {
    const leaving *l = e->l;
    double cost = l->s->side[l->side].node[l->at].cost + l->local * (1 - 1 / chips);
    return cost + e->sums + fmax(0, e->rest - held) >= l->s->best;
}

/* The axes of `set` join dimension `dim` and those after it that lose none. */
static void arrive(const exchange *e, sm_axes set, unsigned losing, int dim, double chips,
                   double held, const sm_layout *layout) {
    const leaving *l = e->l;
    const sm_journey *j = l->s->j;
    if (set == 0) {
        reach(l->s, l->side, l->at, SM_MOVE_ALL_TO_ALL, layout);
        return;
    }
    for (; dim < j->rank; dim++) {
        if (losing >> dim & 1u) continue;
        for (int a = 0; a < j->axes; a++) {
            sm_layout next = *layout;
            if (!(set >> a & 1) || !attach(l->s, &next, a, dim)) continue;
            int place = next.place[a];
            bool stray = place < e->goal.n[dim] && e->goal.axis[dim][place] != a;
            bool elsewhere = e->to->dim[a] >= 0 && e->to->dim[a] != dim;
            double still = stray ? 0 : elsewhere ? held / j->chips[a] : held;
            if (!too_far(e, chips, still))
                arrive(e, (sm_axes)(set & ~(1u << a)), losing, dim, chips, still, &next);
        }
    }
}

/* Dimension `dim` and those after it lose some of their minor axes, or none. */
static void depart(const exchange *e, sm_axes set, unsigned losing, int dim, double chips,
                   const sm_layout *layout) {
    const leaving *l = e->l;
    const sm_journey *j = l->s->j;
    if (dim == j->rank) {
        if (set != 0 && !too_far(e, chips, e->rest))
            arrive(e, set, losing, 0, chips, e->rest, layout);
        return;
    }
    sm_layout next = *layout;
    int n = l->list.n[dim];
    if (!too_far(e, chips, strays(e, dim, n, l->list.axis[dim]) ? 0 : e->rest))
        depart(e, set, losing, dim + 1, chips, layout);
    while (n-- > 0) {
        int axis = l->list.axis[dim][n];
        route_put(&next, axis, SM_REPLICATED, 0);
        set = (sm_axes)(set | 1u << axis);
        chips *= j->chips[axis];
        if (!too_far(e, chips, strays(e, dim, n, l->list.axis[dim]) ? 0 : e->rest))
            depart(e, set, losing | 1u << dim, dim + 1, chips, &next);
    }
}

static void exchange_axes(const leaving *l) {
    const search *s = l->s;
    const sm_layout *goal = s->side[l->side].backward ? &s->j->from : &s->j->to;
    exchange e = {.l = l, .to = goal};
    route_list_axes(s->j, goal, &e.goal);
    const sm_layout *last = s->side[l->side].backward ? &l->layout : goal;
    e.rest = even_box_bytes(s->j, last, last);
    double u = sums_between(s->j, &s->j->from, &s->j->to);
    if (!s->side[l->side].backward) u = sums_between(s->j, &l->layout, &s->j->to);
    if (u > 1) {
        e.sums = s->finest * (u - 1) + fmax(0, e.rest - s->finest);
        e.rest = 0;
    }
    depart(&e, 0, 0, 0, 1, &l->layout);
}

/* Moves that increase what chips hold come last, so that equal routes keep arrays small. */
static void expand(search *s, int side, int at) {
    leaving l = {.s = s, .side = side, .at = at, .layout = s->side[side].node[at].at};
    const bool backward = s->side[side].backward;
    s->side[side].open[at] = INFINITY;
    route_list_axes(s->j, &l.layout, &l.list);
    l.local = s->side[side].node[at].local;
    for (int a = 0; a < s->j->axes; a++)
        if (l.layout.dim[a] == SM_REPLICATED && !(s->idle >> a & 1))
            come(&l, backward ? SM_MOVE_ALL_GATHER : SM_MOVE_SLICE, a);
    if (!backward) reduce(&l);
    exchange_axes(&l);
    for (int d = 0; d < s->j->rank; d++)
        if (l.list.n[d] > 0) gather_or_unslice(&l, d);
}

/* ---- the search ---- */

static int nearest(const search *s, int side) {
    const front *f = &s->side[side];
    double least = s->best;
    int best = NONE;
    for (int i = 0; i < f->n; i++)
        if (f->open[i] < least) least = f->open[best = i];
    return best;
}

static bool read_route(const search *s, sm_route *route) {
    const node *forward = s->side[0].node, *backward = s->side[1].node;
    int path[4 * SM_MOST_MOVES], n = 0;
    bool fits = true;
    for (int i = s->met[0]; forward[i].parent != NONE; i = forward[i].parent) {
        if (n == 4 * SM_MOST_MOVES) return false;
        path[n++] = i;
    }
    while (n-- > 0)
        fits &= route_add_move(s->j, route, (sm_move)forward[path[n]].move, &forward[path[n]].at);
    sm_layout last = backward[s->met[1]].at;
    if (!route_same(&forward[s->met[0]].at, &last)) {
        refine(s, &last, &forward[s->met[0]].at);
        fits &= route_add_move(s->j, route, SM_MOVE_PERMUTE, &last);
        if (!route_same(&last, &backward[s->met[1]].at))
            fits &= route_add_move(s->j, route, SM_MOVE_ALL_GATHER, &backward[s->met[1]].at);
    }
    for (int i = s->met[1]; backward[i].parent != NONE; i = backward[i].parent)
        fits &= route_add_move(s->j, route, (sm_move)backward[i].move,
                               &backward[backward[i].parent].at);
    return fits;
}

static void search_from_both_ends(search *s) {
    for (int side = 0; side < 2; side++) {
        s->side[side].backward = side == 1;
        s->side[side].n = 0;
        memset(s->side[side].bucket, NONE, sizeof s->side[side].bucket);
    }
    reach(s, 1, NONE, SM_MOVE_SLICE, &s->j->to);
    reach(s, 0, NONE, SM_MOVE_SLICE, &s->j->from);
    for (;;) {
        int f = nearest(s, 0), b = s->both ? nearest(s, 1) : NONE;
        if (f == NONE && b == NONE) return;
        bool forward = b == NONE || (f != NONE && s->side[0].open[f] <= s->side[1].open[b]);
        expand(s, forward ? 0 : 1, forward ? f : b);
    }
}

/* Finds a route that receives less than `below` bytes; route->least in any case. */
static bool search_route(const sm_journey *j, double finest, double below, sm_route *route) {
    search s; /* large, and filled only as far as it is used */
    s.j = j;
    s.idle = idle_axes(j);
    s.finest = finest;
    s.best = below;
    s.dropped = false;
    s.both = sizes_differ(j, s.idle) || (j->uneven && j->joined); /* whose blocks may not nest */
    s.met[0] = s.met[1] = NONE;
    cut_dimensions(&s);
    search_from_both_ends(&s);
    *route = (sm_route){.least = !s.dropped};
    if (s.met[0] == NONE || !read_route(&s, route)) return false;
    route->bytes = route_bytes(j, route);
    return true;
}

/* ---- parts of axes ---- */

/* The route of the whole axes, on their parts: what is found there may only receive less. *alike:
 * whole axes that move have one size, and parts of them gain nothing. */
static bool find_on_whole(const sm_journey *j, sm_route *route, bool *alike) {
    sm_lowering as = {.parts = j->axes};
    sm_journey whole = *j;
    whole.axes = whole.joined = 0;
    for (int p = 0; p < j->axes; p++) {
        if (!(j->joined >> p & 1)) whole.chips[whole.axes++] = 1;
        whole.chips[whole.axes - 1] *= j->chips[p];
        as.part[p].axis = (int8_t)(whole.axes - 1);
    }
    whole.from = route_join(j, &as, &j->from);
    whole.to = route_join(j, &as, &j->to);
    const sm_layout from = sm_lowering_layout(&as, &whole.from),
                    to = sm_lowering_layout(&as, &whole.to);
    if (!route_same(&from, &j->from) || !route_same(&to, &j->to)) return false;
    if (!sm_route_find(&whole, route)) return false;
    for (int i = 0; i < route->moves; i++)
        route->after[i] = sm_lowering_layout(&as, &route->after[i]);
    *alike = !sizes_differ(&whole, idle_axes(&whole));
    return true;
}

bool sm_route_find(const sm_journey *j, sm_route *route) {
    double finest = finest_bytes(j), bytes = bound(j, finest, &j->from, &j->to);
    double slack = finest * 1e-4;
    bool alike = false, whole = j->joined && !j->uneven && find_on_whole(j, route, &alike);
    bool found = whole || route_find_first(j, route) || route_find_through_whole(j, route);
    if (!whole) route->bytes = found ? route_bytes(j, route) : INFINITY, route->least = true;
    if (route->bytes > bytes + slack && !alike && !(found && j->any_order)) {
        sm_route other;
        bool better = search_route(j, finest, route->bytes - slack, &other);
        if (better) *route = other;
        route->least = other.least;
        found = found || better;
    }
    route->bounded = found && route->bytes <= bytes + slack;
    return found;
}

/* A first route: each axis goes where it belongs, the moves in the order that keeps blocks small;
 * where the axes that leave are not the minor ones, a permute comes first. */
#include "route_parts.h"

/* Make an axis the minor one of a dimension; false where it may not cut it. */
static bool append(const sm_journey *j, sm_layout *l, int axis, int dim) {
    route_put_last(j, l, axis, dim);
    double n = route_ways(j, l, dim), length = j->size[dim];
    return route_may_cut(j, axis, dim, n, sm_cut(length, n / j->chips[axis]), sm_cut(length, n));
}

typedef struct first_route {
    const sm_journey *j;
    sm_layout at;
    lists goal;
    sm_route *route;
    bool fits;
} first_route;

static void go(first_route *f, sm_move move, const sm_layout *to) {
    if (move == SM_MOVE_PERMUTE && isinf(sm_journey_permute_bytes(f->j, &f->at, to)))
        f->fits = false;
    if (move != SM_MOVE_PERMUTE && !route_nests(f->j, &f->at, to)) f->fits = false;
    f->at = *to;
    f->fits = route_add_move(f->j, f->route, move, to) && f->fits;
}

/* The axes at one place now that belong to another. */
static sm_axes moving(const first_route *f, int from, int to) {
    unsigned set = 0;
    for (int a = 0; a < f->j->axes; a++)
        if (f->at.dim[a] == from && f->j->to.dim[a] == to) set |= 1u << a;
    return (sm_axes)set;
}

/* The axes of a set become the minor ones of a dimension, as they are ordered at the goal. */
static bool join(const first_route *f, sm_layout *l, sm_axes set, int dim) {
    bool divides = true;
    for (int i = 0; i < f->goal.n[dim]; i++)
        if (set >> f->goal.axis[dim][i] & 1)
            divides = append(f->j, l, f->goal.axis[dim][i], dim) && divides;
    return divides;
}

static bool enter(first_route *f, int from, sm_move move) {
    for (int d = 0; d < f->j->rank; d++) {
        sm_layout next = f->at;
        sm_axes set = moving(f, from, d);
        if (set == 0 || !join(f, &next, set, d)) continue;
        go(f, move, &next);
        return true;
    }
    return false;
}

static bool add_up(first_route *f) {
    sm_layout next = f->at;
    sm_axes set = moving(f, SM_UNREDUCED, SM_REPLICATED);
    if (set == 0) return false;
    for (int a = 0; a < f->j->axes; a++)
        if (set >> a & 1) route_put(&next, a, SM_REPLICATED, 0);
    go(f, SM_MOVE_ALL_REDUCE, &next);
    return true;
}

/* Axes of a dimension in the order: those that stay, as at the goal; those to be gathered; those to
 * leave for other dimensions; and last, minor, those that leave now. */
static void leave_in_order(const first_route *f, const lists *list, int dim, sm_axes now,
                           sm_layout *l) {
    unsigned stay = 0, gathered = 0, later = 0;
    int place = 0;
    for (int i = 0; i < list->n[dim]; i++) {
        unsigned axis = 1u << list->axis[dim][i];
        int to = f->j->to.dim[list->axis[dim][i]];
        if (axis & now) continue;
        if (to == dim) stay |= axis;
        else if (to == SM_REPLICATED) gathered |= axis;
        else later |= axis;
    }
    for (int i = 0; i < f->goal.n[dim]; i++)
        if (stay >> f->goal.axis[dim][i] & 1) route_put(l, f->goal.axis[dim][i], dim, place++);
    const unsigned groups[] = {gathered, later, now};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < list->n[dim]; i++)
            if (groups[g] >> list->axis[dim][i] & 1) route_put(l, list->axis[dim][i], dim, place++);
}

/* Takes a set of axes out of *l, which is where the route is; a permute first makes them minor. */
static void leave(first_route *f, sm_axes set, sm_layout *l) {
    lists list;
    sm_layout ordered = f->at;
    route_list_axes(f->j, &f->at, &list);
    for (int d = 0; d < f->j->rank; d++) {
        int n = list.n[d]; /* are those of the set the minor ones? */
        while (n > 0 && (set >> list.axis[d][n - 1] & 1)) n--;
        while (n > 0 && !(set >> list.axis[d][n - 1] & 1)) n--;
        if (n > 0) leave_in_order(f, &list, d, set, &ordered);
    }
    if (!route_same(&ordered, &f->at)) go(f, SM_MOVE_PERMUTE, &ordered);
    *l = f->at;
    for (int a = 0; a < f->j->axes && a < SM_MAX_AXES; a++)
        if ((set >> a & 1) && l->dim[a] >= 0) route_put(l, a, SM_REPLICATED, 0);
}

/* Axes that change dimensions: all at once, where no dimension both loses and gains some. */
static bool exchange_all(first_route *f) {
    unsigned set = 0, losing = 0, gaining_dims = 0;
    for (int a = 0; a < f->j->axes; a++)
        if (f->at.dim[a] >= 0 && f->j->to.dim[a] >= 0 && f->at.dim[a] != f->j->to.dim[a]) {
            set |= 1u << a;
            losing |= 1u << f->at.dim[a];
            gaining_dims |= 1u << f->j->to.dim[a];
        }
    sm_layout room = f->at, next;
    bool divides = true;
    for (int d = 0; d < f->j->rank; d++) divides = join(f, &room, (sm_axes)set, d) && divides;
    if (set == 0 || (losing & gaining_dims) || !divides) return false;
    leave(f, (sm_axes)set, &next);
    for (int d = 0; d < f->j->rank; d++) join(f, &next, (sm_axes)set, d);
    go(f, SM_MOVE_ALL_TO_ALL, &next);
    return true;
}

static bool exchange_pair(first_route *f) {
    for (int from = 0; from < f->j->rank; from++)
        for (int to = 0; to < f->j->rank; to++) {
            sm_axes set = moving(f, from, to);
            sm_layout room = f->at, next;
            if (from == to || set == 0 || !join(f, &room, set, to)) continue;
            leave(f, set, &next);
            join(f, &next, set, to);
            go(f, SM_MOVE_ALL_TO_ALL, &next);
            return true;
        }
    return false;
}

static bool gather_set(first_route *f, sm_axes set) {
    sm_layout next;
    if (set == 0) return false;
    leave(f, set, &next);
    go(f, SM_MOVE_ALL_GATHER, &next);
    return true;
}

/* What is not wanted; or, where two dimensions would exchange axes and neither divides by its own
 * and the newcomers, one of them, to be sliced later. */
static bool gather_some(first_route *f) {
    unsigned set = 0;
    for (int d = 0; d < f->j->rank; d++) set |= moving(f, d, SM_REPLICATED);
    if (gather_set(f, (sm_axes)set)) return true;
    for (int from = 0; from < f->j->rank; from++)
        for (int to = 0; to < f->j->rank; to++)
            if (from != to && gather_set(f, moving(f, from, to))) return true;
    return false;
}

/* Ends: each move brings an axis nearer to its place, and a gathered axis is never gathered again.
 */
bool route_find_first(const sm_journey *j, sm_route *route) {
    first_route f = {.j = j, .at = j->from, .route = route, .fits = true};
    route_list_axes(j, &j->to, &f.goal);
    route->moves = 0;
    while (f.fits && (enter(&f, SM_REPLICATED, SM_MOVE_SLICE) ||
                      enter(&f, SM_UNREDUCED, SM_MOVE_REDUCE_SCATTER) || add_up(&f) ||
                      exchange_all(&f) || exchange_pair(&f) || gather_some(&f)))
        continue;
    bool arrived = true;
    for (int a = 0; a < j->axes; a++) arrived = arrived && f.at.dim[a] == j->to.dim[a];
    if (arrived && !route_same(&f.at, &j->to)) go(&f, SM_MOVE_PERMUTE, &j->to);
    return arrived && f.fits;
}

/* Where no blocks are the same ones the array can always be made whole. */
bool route_find_through_whole(const sm_journey *j, sm_route *route) {
    first_route f = {.j = j, .at = j->from, .route = route, .fits = true};
    route_list_axes(j, &j->to, &f.goal);
    route->moves = 0;
    sm_layout whole = f.at;
    for (int a = 0; a < j->axes; a++)
        if (whole.dim[a] == SM_UNREDUCED && j->to.dim[a] != SM_UNREDUCED)
            route_put(&whole, a, SM_REPLICATED, 0);
    if (!route_same(&whole, &f.at)) go(&f, SM_MOVE_ALL_REDUCE, &whole);
    for (int a = 0; a < j->axes; a++)
        if (whole.dim[a] >= 0) route_put(&whole, a, SM_REPLICATED, 0);
    if (!route_same(&whole, &f.at)) go(&f, SM_MOVE_ALL_GATHER, &whole);
    while (enter(&f, SM_REPLICATED, SM_MOVE_SLICE)) continue;
    return f.fits && route_same(&f.at, &j->to);
}

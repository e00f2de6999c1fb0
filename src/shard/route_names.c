/* Journeys that differ only in what their axes and dimensions are called have one name, so that
 * they are searched once and go alike: equal routes are not chosen by the order of names. */
#include "route_parts.h"
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0x9E3779B97F4A7C15u;
    return a ^ a >> 29;
}

/* What a layout says of an axis, whatever dimensions are called. */
static uint64_t place_of(const sm_layout *l, int axis, const uint64_t *dim) {
    int at = l->dim[axis];
    return at < 0 ? (uint64_t)(at + 8) : mix(dim[at], (uint64_t)l->place[axis] + 16);
}

/* A dimension is told by its size and the axes on it, an axis by its chips and the dimensions it is
 * on, and so on (colour refinement, Weisfeiler and Leman 1968). */
static void refine_names(const sm_journey *j, uint64_t *axis, uint64_t *dim) {
    for (int a = 0; a < j->axes; a++)
        axis[a] =
            mix(mix((uint64_t)j->chips[a], place_of(&j->from, a, dim)), place_of(&j->to, a, dim));
    for (int a = 0; a < j->axes; a++) /* a sum: of axes in any order */
        for (int side = 0; side < 2; side++) {
            const sm_layout *l = side ? &j->to : &j->from;
            if (l->dim[a] >= 0) dim[l->dim[a]] += mix(axis[a] + (uint64_t)side, 1);
        }
}

/* Places in the order of their colours; of one colour as they stood. */
static void order_by(const uint64_t *colour, int n, uint8_t *place) {
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && colour[i] < colour[place[at - 1]]; at--) place[at] = place[at - 1];
        place[at] = (uint8_t)i;
    }
}

static route_names find_names(const sm_journey *j) {
    enum { ROUNDS = 3 };
    route_names n;
    uint64_t axis[SM_MAX_AXES], dim[SM_MAX_RANK];
    for (int d = 0; d < j->rank; d++)
        dim[d] = mix(sm_hash_bytes(&j->size[d], sizeof j->size[d]), j->uneven >> d & 1u);
    for (int i = 0; i < ROUNDS; i++) refine_names(j, axis, dim);
    order_by(dim, j->rank, n.dim);
    for (int d = 0; d < j->rank; d++) dim[n.dim[d]] = (uint64_t)d; /* all told apart now */
    for (int a = 0; a < j->axes; a++)
        axis[a] =
            mix(mix((uint64_t)j->chips[a], place_of(&j->from, a, dim)), place_of(&j->to, a, dim));
    order_by(axis, j->axes, n.axis);
    return n;
}

/* A layout under those names, or back (`to_own`). */
static sm_layout renamed(const sm_layout *l, const route_names *n, int axes, int rank,
                         bool to_own) {
    sm_layout out = *l;
    for (int i = 0; i < axes; i++) {
        int from = to_own ? i : n->axis[i], to = to_own ? n->axis[i] : i, dim = l->dim[from];
        for (int d = 0; !to_own && dim >= 0 && d < rank; d++)
            if (n->dim[d] == l->dim[from]) dim = d;
        out.dim[to] = (int8_t)(to_own && dim >= 0 ? n->dim[dim] : dim);
        out.place[to] = l->place[from];
    }
    return out;
}

void route_rename(sm_journey *j, route_names *n) {
    sm_journey own;
    memcpy(&own, j, sizeof own);
    *n = find_names(j);
    for (int a = 0; a < j->axes; a++) j->chips[a] = own.chips[n->axis[a]];
    j->uneven = 0;
    for (int d = 0; d < j->rank; d++) {
        j->size[d] = own.size[n->dim[d]];
        j->uneven |= (own.uneven >> n->dim[d] & 1u) << d;
    }
    j->from = renamed(&own.from, n, j->axes, j->rank, false);
    j->to = renamed(&own.to, n, j->axes, j->rank, false);
}

void route_name_back(const sm_journey *j, const route_names *n, sm_route *route) {
    for (int i = 0; i < route->moves; i++)
        route->after[i] = renamed(&route->after[i], n, j->axes, j->rank, true);
}

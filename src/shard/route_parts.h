/* route_parts: layouts and moves, for the files of the search for a route. Private to src/shard. */
#pragma once
#include "route.h"

/* The axes of each dimension, major first. */
typedef struct lists {
    int n[SM_MAX_RANK];
    uint8_t axis[SM_MAX_RANK][SM_MAX_AXES];
} lists;
void route_list_axes(const sm_journey *j, const sm_layout *l, lists *out);
/* The parts that a dimension is cut into. */
double route_ways(const sm_journey *j, const sm_layout *l, int dim);
bool route_same(const sm_layout *a, const sm_layout *b);
void route_put(sm_layout *l, int axis, int dim, int place);
/* Make an axis the minor one of a dimension; the set of axes that it then has. */
unsigned route_put_last(const sm_journey *j, sm_layout *l, int axis, int dim);
/* May an axis cut a dimension into blocks so long, for so many chips, from longer ones? */
bool route_may_cut(const sm_journey *j, int axis, int dim, double chips, double from, double to);
/* Do dimensions that lose axes, or get some, have blocks within blocks? */
bool route_nests(const sm_journey *j, const sm_layout *a, const sm_layout *b);
/* False when the route is longer than any has to be. */
bool route_add_move(const sm_journey *j, sm_route *r, sm_move move, const sm_layout *after);

/* The straight route; where no blocks are the same ones, the one through the whole array. False
 * when there is none. */
bool route_find_first(const sm_journey *j, sm_route *route);
bool route_find_through_whole(const sm_journey *j, sm_route *route);

/* A layout of parts of axes, of which as->part says the axes, as one of those axes. */
sm_layout route_join(const sm_journey *j, const sm_lowering *as, const sm_layout *l);

/* The way of one array from a layout to another by collectives, of least bytes. */
#pragma once
#include "scalemodel/shard.h"

#include <math.h>

/* An array between two layouts. Axes of one chip are replicated in both. */
typedef struct sm_journey {
    int axes, rank;
    int chips[SM_MAX_AXES];   /* of each axis */
    double size[SM_MAX_RANK]; /* of each dimension, elements */
    double element_bytes;
    sm_layout from, to;
    bool any_order;  /* as sm_mesh.any_order */
    sm_axes joined;  /* as the axes of sm_mesh are */
    unsigned uneven; /* dimensions (bit) that either end pads: in no other does a route pad */
} sm_journey;

typedef enum sm_move {
    SM_MOVE_SLICE,
    SM_MOVE_REDUCE_SCATTER,
    SM_MOVE_ALL_REDUCE,
    SM_MOVE_ALL_TO_ALL,
    SM_MOVE_ALL_GATHER,
    SM_MOVE_PERMUTE
} sm_move;
enum { SM_MOST_MOVES = 20 };
/* Layouts one after the other, with the move that leads to each. */
typedef struct sm_route {
    int moves;
    sm_move move[SM_MOST_MOVES];
    sm_layout after[SM_MOST_MOVES];
    double bytes; /* that a chip receives */
    bool least;   /* no route receives less: it meets the bound, or the search was complete */
    bool bounded; /* bytes meets the bound that holds for any way to move blocks, parts of axes too
                   */
} sm_route;

/* The dimensions that either end pads, for sm_journey.uneven, once all else is there. */
unsigned sm_journey_uneven(const sm_journey *journey);
/* A route of least bytes, seldom in more steps than it must. False when there is none: {U_X} asked
 * for where no partial sum is. */
bool sm_route_find(const sm_journey *journey, sm_route *route);

/* As sm_route_find; routes may be NULL. Bytes between the journey's members must be 0. */
bool sm_routes_find(struct sm_routes *routes, const sm_journey *journey, sm_route *route);
/* Of one chip's part under a layout, padding included. */
double sm_journey_local_bytes(const sm_journey *journey, const sm_layout *layout);
/* What one chip sends another where axes come to dimensions or leave them: of each dimension the
 * shorter of the blocks before and after. */
double sm_journey_box_bytes(const sm_journey *journey, const sm_layout *a, const sm_layout *b);
/* What one chip receives in a permute from one layout to another, padding included; infinite where
 * blocks would come in too many pieces. */
double sm_journey_permute_bytes(const sm_journey *journey, const sm_layout *a, const sm_layout *b);
/* Is a dimension that is cut otherwise before than after longer in blocks than it is? */
bool sm_journey_padded(const sm_journey *journey, const sm_layout *a, const sm_layout *b);
/* The axes along which blocks change chips in a permute: those that do not keep their weight in the
 * number of the block of one dimension. */
sm_axes sm_layout_displaced(const sm_journey *journey, const sm_layout *a, const sm_layout *b);

/* cost: what a lowered einsum costs: its steps one after the other, and the variants in which one
 * collective runs as a ring overlapped with the einsum (a "collective matmul"). Pure functions, no
 * allocation. */
#ifndef SCALEMODEL_LOWERING_H
#define SCALEMODEL_LOWERING_H
#include "scalemodel/cost.h"
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN

typedef struct sm_lowering_input {
    const sm_system *system;
    const sm_mesh *mesh;
    const sm_placement *placement;
    const sm_einsum *einsum;
    const sm_calibration *calibration;
    sm_dtype compute; /* the type multiplied in */
} sm_lowering_input;

typedef struct sm_lowering_step_cost {
    double lower_s, expected_s, upper_s; /* of this step alone; 0 for a slice */
    double bytes_busiest_link;           /* collectives */
    const char *algorithm;               /* collectives; NULL otherwise */
    bool latency_bound;
} sm_lowering_step_cost;

typedef struct sm_lowering_cost {
    sm_lowering_step_cost step[SM_MAX_STEPS];
    int overlapped;          /* the collective that runs inside the einsum; -1: none */
    int chunks;              /* it is cut into; 1 when none is overlapped */
    double math_s, memory_s; /* of the einsum, at datasheet rates */
    double network_s;        /* lower bounds of the collectives, added */
    double lower_s;          /* max(math, memory, network): the book's bound */
    double expected_s;       /* steps in sequence, the overlapped pair as below */
    double upper_s;          /* nothing overlaps: the steps' upper bounds, added */
} sm_lowering_cost;

/* The matrix product that one chip makes under a lowering: batch x [m,k] x [k,n], in elements. */
sm_product_shape sm_lowering_product(const sm_lowering_input *input, const sm_lowering *lowering);

/* Price a lowering. overlapped: a step number that sm_lowering_overlaps named, or -1.
 * A collective matmul over n chips works on n chunks; while one is multiplied the next travels, so
 *   time = (n-1) x max(chunk matmul, chunk transfer) + chunk matmul
 * (Wang et al., "Overlap Communication with Dependent Computation via Decomposition", ASPLOS 2023).
 * A chunk reads again every array that does not carry the index that is cut. */
sm_lowering_cost sm_lowering_price(const sm_lowering_input *input, const sm_lowering *lowering,
                                   int overlapped);
/* Steps that can run inside the einsum: an all-gather of one dimension of an operand, its last step
 * before the einsum, and a reduce-scatter of the output, first after it. Fills at most SM_MAX_STEPS
 * step numbers and returns how many. */
int sm_lowering_overlaps(const sm_lowering *lowering, int *steps);

/* ---- every way to do a sharded einsum on a mesh, the cheapest first ---- */
enum { SM_MOST_ALTERNATIVES = 256 };
typedef struct sm_alternative {
    sm_lowering lowering;
    sm_lowering_cost cost; /* its `overlapped` tells which step runs inside the einsum */
} sm_alternative;
/* The cheapest alternatives seen, in order; the others are only counted. */
typedef struct sm_ranking {
    const sm_lowering_input *input;
    sm_arena *arena;
    int n;
    bool out_of_memory;
    sm_alternative *kept[SM_MOST_ALTERNATIVES];
} sm_ranking;
/* SM_NEGATIVE when there is no way at all. input and arena outlive the ranking. */
sm_status sm_rank_lowerings(const sm_lowering_input *input, sm_arena *arena, sm_ranking *found,
                            sm_error *err);
SM_DECLARATIONS_END
#endif

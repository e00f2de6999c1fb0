/* cost: what a lowered einsum costs: its steps one after the other, and the variants in which one
 * collective runs as a ring overlapped with the einsum (a "collective matmul"). Pure functions, no
 * allocation. */
#pragma once
#include "scalemodel/chain.h"
#include "scalemodel/cost.h"

SM_DECLARATIONS_BEGIN

typedef struct sm_lowering_input {
    const sm_system *system;
    const sm_mesh *mesh;
    const sm_placement *placement;
    const sm_einsum *einsum;
    const sm_calibration *calibration;
    sm_dtype compute; /* the type multiplied in */
    sm_local_work work;
    double vector_flops; /* of SM_LOCAL_VECTOR, for each combination of the indices */
    /* What a window reads of the chips before, of the first operand along an index; 0: nothing. */
    double edges;
    int along;
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
    double upper_s;          /* nothing overlaps: the steps' upper bounds, or the chunks', added */
} sm_lowering_cost;

/* The matrix product that one chip makes under a lowering: batch x [m,k] x [k,n], in elements. */
sm_product_shape sm_lowering_product(const sm_lowering_input *input, const sm_lowering *lowering);

/* Where the parts of axes sit that a lowering's steps are on: the minor part of an axis takes the
 * innermost of its chips. */
void sm_placement_split(const sm_placement *placement, const sm_lowering *lowering,
                        sm_placement *split);

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

/* ---- a chain: in which order products of many are made, and how what is made on the way is
 * sharded ----
 * A product of n operands is made in n - 1 products of two. Which ones, where each mesh axis goes
 * in each of them, and how every array of open sharding is sharded is chosen together, for the
 * least expected time: dynamic programming over the sets of operands (as opt_einsum and XLA's
 * callers do for FLOPs alone: Smith and Gray, "opt_einsum", JOSS 2018) and over the shardings of
 * the arrays that live from one line to the next. Axes of one dimension keep one order, that of the
 * mesh or of the arrays given. Products without a contraction are one kernel; of more than 4
 * operands no two are multiplied that share no index, unless it takes that. */
typedef struct sm_chain_input {
    const sm_system *system;
    const sm_mesh *mesh;
    const sm_placement *placement;
    const sm_calibration *calibration;
    sm_dtype compute;
    const sm_chain *chain;
} sm_chain_input;

/* One einsum of a chain, ready to run: its operands and result are values, by number: the arrays of
 * the chain, then what products of many make on the way. */
typedef struct sm_chain_step {
    int line;
    int operand[SM_MAX_OPERANDS], result;
    sm_local_work work;
    double vector_flops;
    double edges; /* as in sm_lowering_input; along is an index of the einsum */
    int along;
    sm_einsum einsum; /* in the shardings chosen */
    sm_alternative way;
} sm_chain_step;

typedef struct sm_chain_plan {
    int steps, values;
    sm_chain_step *step;
    double flops_per_chip, peak_bytes; /* peak: of the arrays alive at once; inputs always are */
    double math_s, memory_s, network_s;
    double lower_s; /* the largest of these three */
    double expected_s, upper_s;
    const char *order; /* "(A B) D"; of a chain of one line */
} sm_chain_plan;

/* The best plan of a chain. SM_NEGATIVE when nothing divides, SM_INTERNAL when out of memory. */
sm_status sm_chain_best(const sm_chain_input *input, sm_arena *arena, sm_chain_plan *plan,
                        sm_error *err);
/* The best plan of every order of a chain of one product of 3 to SM_CHAIN_MOST_ORDERED operands,
 * the cheapest first. *dear: other orders, which take over SM_CHAIN_DEAR times as long as the first
 * and are not priced. *plan is in the arena. As sm_chain_best. */
enum { SM_CHAIN_MOST_ORDERED = 6, SM_CHAIN_DEAR = 10 };
sm_status sm_chain_orders(const sm_chain_input *input, sm_arena *arena, sm_chain_plan **plan,
                          int *n, int *dear, sm_error *err);
/* The best plan with each sharding of an array that a line makes and leaves open, the cheapest
 * first; n: at most so many, then how many there are. shape[i]: the array as the i-th plan has it.
 * As sm_chain_best. */
sm_status sm_chain_shardings(const sm_chain_input *input, int array, sm_arena *arena,
                             sm_chain_plan **plan, sm_array **shape, int *n, sm_error *err);
SM_DECLARATIONS_END

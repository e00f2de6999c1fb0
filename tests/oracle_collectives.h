/* Collectives written down as messages from their definitions, with the books kept: who holds which
 * piece, and whose contributions a partial sum has. Every schedule is checked to leave each member
 * with what it should have. */
#pragma once
#include "oracle_network.h"

/* One stage of a hierarchical algorithm: members that differ only in this position exchange. */
typedef enum oracle_way {
    ORACLE_RING, /* both ways; the piece for the opposite member of an even ring goes half each way
                  */
    ORACLE_WHOLE_RING, /* both ways, whole pieces only (the opposite member of an even ring gets its
                          piece twice) */
    ORACLE_ONE_WAY,    /* one direction of a ring, n-1 steps */
    ORACLE_LINE,       /* both ways, no wrap */
    ORACLE_DIRECT,     /* everybody to everybody at once */
    ORACLE_DOUBLING    /* ceil(log2 n) steps, from the member 1, 2, 4, ... further on */
} oracle_way;
typedef struct oracle_stage {
    int level, step, n;
    oracle_way way;
} oracle_stage; /* step: ranks between neighbours */

/* The stages of a group, innermost first; the ways as the cost layer uses them. */
int oracle_stages_of(const sm_system *system, const sm_group *group, oracle_stage *stages);

/* All-gather of V = 1 byte over the stages in the order given. A block per round, or one block in
 * all (pipelined). */
oracle_schedule oracle_all_gather(const oracle_network *net, const oracle_stage *stages,
                                  int n_stages, bool pipelined);
/* The same messages backwards in time: a reduce-scatter. Checks the sums. */
oracle_schedule oracle_reduce_scatter(const oracle_network *net, const oracle_schedule *gather);
oracle_schedule oracle_all_to_all(const oracle_network *net); /* direct, one round */
oracle_schedule oracle_all_to_all_staged(const oracle_network *net, const oracle_stage *stages,
                                         int n_stages, int torus_dims);
oracle_schedule oracle_shift(const oracle_network *net);
oracle_schedule oracle_broadcast_chain(const oracle_network *net, const oracle_stage *stages,
                                       int n_stages, int torus_dims);
/* The messages of a broadcast backwards in time: a reduce to rank 0. Checks the sums. */
oracle_schedule oracle_reduce(const oracle_network *net, const oracle_schedule *broadcast);

/* The least, over mixtures of schedules with these busy times, of the busiest level's time. */
double oracle_best_mixture(const oracle_time *times, int n, const int *levels, int n_levels);

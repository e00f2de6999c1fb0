/* random_einsums: an oracle for ranks of any kind: random einsums of small whole numbers, lowered
 * in every way, run on the ranks and held against the product of the whole arrays; bytes counted
 * against bytes predicted. */
#pragma once
#include "scalemodel/run.h"

typedef struct random_einsums {
    int cases; /* a multiple of 10 */
    uint64_t seed;
    int ways; /* lowerings run; written by rank 0 */
} random_einsums;
/* The body of a rank; every rank makes the same choices, of meshes that the ranks fill. context: a
 * random_einsums. SM_NEGATIVE names the einsum that differs. */
sm_status random_einsums_run(sm_communicator *world, void *context, sm_error *err);

/* local_diagonal: what a rank has of the diagonal of an operand such as A[I,I]. */
#pragma once
#include "scalemodel/run.h"

typedef struct diagonal_of {
    const sm_rank_mesh *m;
    const sm_einsum *einsum;
    const sm_array *array;
    const sm_layout *layout; /* that the block has */
} diagonal_of;
/* *out: a new block without the dimensions that repeat an index, along the others as long as `in`;
 * zero where another rank has the element. label: the index of each dimension of it. SM_INTERNAL
 * when out of memory. */
sm_status local_diagonal(const diagonal_of *of, const sm_local_block *in, sm_local_block *out,
                         int8_t *label, sm_error *err);

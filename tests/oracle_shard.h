/* A slow and literal executor of lowerings: every chip of the mesh holds its block of every array
 * as integers, each step moves elements between the chips of a group one by one, and nothing is
 * read that the chip or its group does not hold. It knows the meaning of a layout (the chips along
 * X of I_XY take blocks of ceil(I/X), as far as there are elements, those along Y blocks of ceil of
 * that; the last mesh axis varies fastest) but nothing of how the library chooses steps. */
#pragma once
#include "scalemodel/shard.h"

/* The part of an array on one chip: lo[d] .. lo[d]+len[d]-1 of each dimension, row-major; padded to
 * room[d]. */
typedef struct oracle_block {
    int64_t lo[SM_MAX_RANK], len[SM_MAX_RANK], room[SM_MAX_RANK];
    int64_t *data;
} oracle_block;

typedef struct oracle_array {
    int rank, chips;
    int64_t size[SM_MAX_RANK];
    double bytes_per_element;
    sm_layout layout;
    oracle_block *chip;
} oracle_array;

typedef struct oracle_run {
    const sm_einsum *einsum; /* has_output */
    const sm_mesh *mesh;
    int64_t *dense[SM_MAX_OPERANDS]; /* the operands whole, owned by the caller */
    oracle_array in[SM_MAX_OPERANDS], out;
    char why[256]; /* what went wrong, "" while all is well */
} oracle_run;

/* Elements of an array whose indices have the sizes of the einsum. */
int64_t oracle_elements(const sm_array *array, const sm_einsum *einsum);
/* The einsum on whole arrays: the result, to be freed. */
int64_t *oracle_dense_einsum(const sm_einsum *einsum, int64_t *const *dense);
/* Execute the lowering from the operands' shards, check every step (what it reads, what it sends,
 * its bytes) and the final output on every chip against the whole einsum. false: run->why tells. */
bool oracle_execute(oracle_run *run, const sm_lowering *lowering);

/* chain: lines of sharded einsums over the same indices, of which a later one reads what an earlier
 * one made: "h[B,F] = x[B_X,D] w[D,F_Y]; y[B_X,D] = h[B,F] v[F_Y,D]". One einsum of many operands
 * is a chain of one line. */
#pragma once
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN

/* What a chip does with its parts of the operands of a line. The algebra of sharding is the same
 * for all of them. */
typedef enum sm_local_work {
    SM_LOCAL_PRODUCT, /* multiply and add, on the matrix unit */
    SM_LOCAL_VECTOR,  /* an expression, a sum, a maximum: `flops` for each combination of indices */
    SM_LOCAL_LOOKUP,  /* rows of the last operand by the numbers in the others; no FLOPs */
    SM_LOCAL_SCATTER, /* rows of the last operand added up by the numbers in the others */
    SM_LOCAL_NOTHING  /* a sharding that several lines read, made once */
} sm_local_work;

enum { SM_CHAIN_MOST_ARRAYS = 64, SM_CHAIN_MOST_LINES = 32, SM_CHAIN_MOST_NAME = 47 };

/* An array by what its dimensions are. `given`: its sharding is said, in the array; otherwise it is
 * open, and no dimension has axes. */
typedef struct sm_chain_array {
    sm_array array;    /* dimensions name indices of the chain */
    bool given, named; /* named: it stands in the text, and is not part of a norm or softmax */
    int line;          /* that makes it; -1: it comes in */
    int uses;          /* lines that read it */
} sm_chain_array;

typedef struct sm_chain_line {
    char name[SM_CHAIN_MOST_NAME + 1]; /* "softmax: max"; "" of a product */
    sm_local_work work;
    double flops;
    int operands, operand[SM_MAX_OPERANDS], result; /* arrays */
    int along; /* of a window (a convolution): the index of the first operand that it slides along
                */
    double edges; /* elements of it before a chip's own that it needs; 0: no window */
} sm_chain_line;

/* names.index: the indices with their sizes; nothing else of `names` is used. Lines are in an order
 * in which they can run. */
typedef struct sm_chain {
    sm_einsum names;
    int arrays, lines;
    sm_chain_array array[SM_CHAIN_MOST_ARRAYS];
    sm_chain_line line[SM_CHAIN_MOST_LINES];
} sm_chain;

/* Read lines in the notation of layers (docs/notation.md), "h[B,F] = x[B_X,D] w[D,F_Y]; y = ...":
 * products, expressions, norms, softmax, take, scatter, conv, sum, mean, cross_entropy. An array
 * that no line makes comes in, sharded as it is written; one that is made is sharded as it is
 * written, or, with no axes, as is cheapest. dims: "B=1024,D=4k,F=16k". SM_BAD_INPUT with the
 * place. */
sm_status sm_chain_read(const sm_source *text, const sm_source *dims, const sm_mesh *mesh,
                        sm_arena *arena, sm_chain *chain, sm_error *err);
/* Is an einsum better made in several steps: a product of more than two operands, or of a diagonal?
 */
bool sm_einsum_is_chain(const sm_einsum *einsum);
/* A chain of one line, the product of all operands; before it stand lines that take the diagonals
 * of operands such as A[I,I]. The output is open unless it was written. */
void sm_chain_of_einsum(const sm_einsum *einsum, sm_chain *chain);
/* The diagonal of an array such as A[I,I], by a new line before line `at`, which is the first that
 * reads it; all read that instead: as long as one dimension, it is moved for next to nothing. There
 * is room for a line and an array. */
void sm_chain_take_diagonal(sm_chain *chain, int array, int at);
/* An input, or an array of a given sharding, that several lines read is first brought where they
 * want it, once: a line of SM_LOCAL_NOTHING makes a copy of open sharding, which they read.
 * SM_BAD_INPUT when the chain gets too long. */
sm_status sm_chain_share_moves(sm_chain *chain, sm_error *err);
/* The einsum of some arrays of a chain, as they are sharded: indices are numbered anew, in the
 * order in which they are met; index[i] (room for SM_MAX_INDICES; NULL: not wanted) is what the
 * chain calls the i-th. */
void sm_chain_einsum(const sm_chain *chain, int operands, const sm_array *const *operand,
                     const sm_array *out, sm_einsum *einsum, int *index);
SM_DECLARATIONS_END

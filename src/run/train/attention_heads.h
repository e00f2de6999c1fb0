/* attention_heads: causal attention one head of one sequence at a time, as products of BLAS on rows
 * that stand apart. Where queries, keys and values have their sequences, heads and rows follows
 * from the dimensions the op gives them: q [B,T,K,G,H] with k [B,S,K,H] and v [B,S,K,J], or the two
 * products of latent attention, q [B,T,K,H] with k [B,S,K,H] and q2 [B,T,K,Y] with k2 [B,S,Y]. */
#pragma once

#include "train_parts.h"

enum {
    ATTENTION_Q,
    ATTENTION_KEYS,
    ATTENTION_VALUES,
    ATTENTION_OUT,
    ATTENTION_Q2,
    ATTENTION_KEYS2,
    ATTENTION_SINKS, /* a logit of each head, or nothing */
    ATTENTION_ARRAYS
};

/* Where a head of a block lies: its first row, and from row to row. */
typedef struct attention_rows {
    float *first;
    int apart;
} attention_rows;

/* What is done to scores, and which keys a query may see. */
typedef struct attention_mask {
    float scale, cap; /* cap 0: none */
    float slope;      /* of scores over distances, of this head (ALiBi) */
    long window, chunk;
    long first_query; /* its position, where chunks begin at 0 */
} attention_mask;

typedef struct attention_head {
    attention_rows x[ATTENTION_ARRAYS], d[ATTENTION_ARRAYS]; /* and their gradients */
    int queries, keys, size, size2, value_size;              /* size2 0: one product */
    long ahead; /* position of the first query less that of the first key */
    attention_mask mask;
    size_t row;      /* number of its first query among those of all heads */
    size_t sequence; /* of this rank */
    float *p, *dp;   /* room for queries x keys, each */
    float *capped;   /* the same, of scores over their cap; NULL without one */
} attention_head;

typedef struct attention_blocks {
    const sm_program *program;
    const sm_op *op;
    const sm_local_block *x[ATTENTION_ARRAYS], *d[ATTENTION_ARRAYS];
    long ahead;
    attention_mask mask;
    const size_t *heads; /* offsets of the queries */
    bool paged;          /* keys and values are pages, not sequences: heads point to their first */
    double alibi;
    size_t keys; /* those that are there: a cache has room for more */
    float *room; /* attention_room_count numbers */
} attention_blocks;

/* Which array the i-th input of the op is. */
int attention_array_of(const sm_program *program, const sm_op *op, int input);
/* The inputs of the op at work, and its mask. */
attention_blocks attention_blocks_of(const train_call *c);
size_t attention_room_count(const attention_blocks *b);
/* The queries of all heads on this rank. */
size_t attention_row_count(const attention_blocks *b);
void attention_each_head(const attention_blocks *b,
                         void (*visit)(const attention_head *head, void *context), void *context);
/* Some queries of a head at a time (SM_QUERIES_AT_ONCE), with the keys that any of them may see:
 * what the mask hides from all of them is not multiplied. p and dp have room for these; queries
 * that see no key are left out. */
void attention_each_panel(const attention_blocks *b,
                          void (*work)(const attention_head *panel, void *context), void *context);

/* Query i of the head may see keys [from, returned). */
size_t attention_seen(const attention_head *h, int query, size_t *from);
/* Adds to the scores of n keys, from key `from` on, the slope of a head times the distance. */
void attention_add_slope(const attention_head *h, int query, size_t from, size_t n, float *score);
/* p = scale q k', of both products, sloped and capped. */
void attention_scores(const attention_head *h);
/* From the probabilities p, adds to the gradients of q, k, v and sinks. dots: for each query the
 * sum of out x d out, which is that of p x dp over all keys; NULL: all keys are here. */
void attention_slopes(const attention_head *h, const float *dots);

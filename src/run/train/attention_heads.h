/* attention_heads: causal attention one head of one sequence at a time, as products of BLAS on rows
 * that stand apart: q [B,T,K,G,H], k [B,S,K,H], v [B,S,K,J], out [B,T,K,G,J]. */
#pragma once
#include "scalemodel/program.h"
#include "scalemodel/run.h"

enum { ATTENTION_Q, ATTENTION_KEYS, ATTENTION_VALUES, ATTENTION_OUT, ATTENTION_ARRAYS };

/* Where a head of a block lies: its first row, and from row to row. */
typedef struct attention_rows {
    float *first;
    int apart;
} attention_rows;

typedef struct attention_head {
    attention_rows x[ATTENTION_ARRAYS], d[ATTENTION_ARRAYS]; /* and their gradients */
    int queries, keys, size, value_size;
    long ahead;    /* position of the first query less that of the first key */
    size_t row;    /* number of its first query among those of all heads */
    float *p, *dp; /* room for queries x keys, each */
} attention_head;

typedef struct attention_blocks {
    const sm_local_block *x[ATTENTION_ARRAYS], *d[ATTENTION_ARRAYS];
    long ahead;
    size_t keys; /* those that are there: a cache has room for more */
    float *room; /* attention_room_count numbers */
} attention_blocks;

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

/* How many keys query i of the head may see. */
size_t attention_seen(const attention_head *h, int query);
/* p = q k' / sqrt(H). */
void attention_scores(const attention_head *h);
/* From the probabilities p, adds to the gradients of q, k and v. dots: for each query the sum of
 * out x d out, which is that of p x dp over all keys; NULL: all keys are here. */
void attention_slopes(const attention_head *h, const float *dots);

/* attention: the sizes of an attention, as a program, a compiled module, a trace and a price have
 * them. */
#pragma once
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

/* Fused: the newest that the chip has, which its calibration is of. Unfused: matmuls that write and
 * read the scores. Flash: FlashAttention 1 (2022) or 2 (2023), in the instructions of an A100. */
enum { SM_ATTENTION_FUSED, SM_ATTENTION_UNFUSED, SM_ATTENTION_FLASH_1, SM_ATTENTION_FLASH_2 };

/* One attention, of one chip. */
typedef struct sm_attention_shape {
    double batch;           /* sequences; it may count heads too (then heads and kv_heads are 1) */
    double q_len;           /* queries per sequence; 1: decode */
    double keys;            /* mean keys a query sees under the mask: (kv + 1)/2 if causal */
    double kv_len;          /* keys held per sequence */
    double heads, kv_heads; /* of queries, of keys */
    double head_size, v_head_size; /* of a query and key, of a value */
    sm_dtype dtype;                /* multiplied in; queries and output have at least 16 bits */
    double kv_bytes;               /* per element of a key or value */
    bool shared_kv;                /* the value is part of the key (absorbed MLA): read once */
    bool one_kernel;               /* no second kernel that plans the work or joins its parts */
    bool head_blocks;              /* a block per query head, even for one query: prefill kernels */
    bool persistent;               /* cores take one block after another: less to set up for each */
    int kernel;                    /* SM_ATTENTION_*; the softmax of an unfused one is not here */
    double block; /* not 0: of queries and of keys, done whole where the mask keeps any of it */
    double panel; /* not 0: so many queries at a time, each with the keys up to their end,
                     multiplied by BLAS; q_len: the last queries of the sequence. 1: each query
                     of each head reads its keys and values anew, from the chip's own memory */
} sm_attention_shape;
/* Keys that a query meets on average: T queries, the last of S positions. causal: a query meets its
 * own position and those before it, so that of more queries than positions the first meet none.
 * window, chunk: how many positions up to its own it meets, or the length of the chunks it stays
 * in; 0: to the start. */
double sm_keys_met(double T, double S, bool causal, double window, double chunk);
SM_DECLARATIONS_END

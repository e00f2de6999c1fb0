/* codebase: what is known of a code base of training beyond the constants of its calibration: what
 * it holds in memory, and which FLOPs it counts when it tells an MFU or FLOP/s. A file of
 * data/codebases each, and files of one's own; docs/codebases.md is their manual. */
#pragma once
#include "scalemodel/hw.h"
#include "scalemodel/model.h"

SM_DECLARATIONS_BEGIN

/* ---- memory ----
 * What a training software holds beside what the plan says, in bytes, and how it shares updated
 * weights out. */
#define SM_SOFTWARE_MEMORY_NUMBERS(X)                                                              \
    X(loss_bytes, "per token and word of the vocabulary, at the loss's backward pass")             \
    X(loss_sharded_bytes, "the same where tensor shards the vocabulary; 0: as much")               \
    X(norm_bytes, "kept more per element of a norm that runs as several kernels")                  \
    X(heads_bytes, "kept more per element of attention's result: copies in its layout")            \
    X(gradient_bytes, "per weight held: 16-bit gradients beside their fp32 sums")                  \
    X(shard_bytes, "per weight of the optimizer's shard: fp32 of a 16-bit gradient")               \
    X(narrow_bytes, "per gathered weight of experts: 8-bit copies kept over a step")               \
    X(sums_bytes, "per weight that fsdp gathers: sums, whole until a step's last microbatch")      \
    X(fragmentation, "share of the activations: reserved by the allocator, not in use")            \
    X(reserved_bytes, "workspaces and buckets of communication inside the allocator")              \
    X(outside_bytes, "context, libraries, communicators: outside the allocator")                   \
    X(adding_bytes, "moved per weight and microbatch to add its gradient to those before, by "     \
                    "kernels of their own; 0: matmuls add")                                        \
    X(mask_block, "queries and keys that attention does whole where its mask keeps any of them")   \
    X(tile_rows, "of a grouped matmul's tile, done once for each expert with rows in it; 0: none") \
    X(grouped_rate, "of the rate of matmuls, what grouped ones of experts reach; 0: all of it")    \
    X(narrow_rate, "of the rate of 8-bit matmuls, what its own reach with their scales; 0: all")
#define SM_SOFTWARE_MEMORY_FLAGS(X)                                                                \
    X(root_whole, "the embedding is gathered with the head, and both stay whole until the step "   \
                  "has passed backward through all layers")                                        \
    X(loss_whole, "logits are gathered over the tensor axis first")                                \
    X(gathered_kept, "norms' results are kept whole where tensor shards the sequence")             \
    X(gate_apart, "act(gate) is kept beside its product with up")                                  \
    X(gradients_new, "gradients are there from a step's first backward pass on, not before")       \
    X(shards_beside, "weights held whole are copies beside the optimizer's shards of them")        \
    X(inputs_held, "where fsdp has frozen weights, what enters layers and its gradient stay to "   \
                   "the end of a step")                                                            \
    X(moment_beside, "the optimizer's update makes an array as large as one of its moments")       \
    X(shards_single, "shards of fsdp are the optimizer's weights in fp32, without 16-bit ones")    \
    X(stages_keep, "stages have room for messages, and keep outputs, of all microbatches")         \
    X(weighted_early, "experts' products are weighted before their down projection")               \
    X(operands_narrow, "8-bit matmuls keep their inputs in 8 bits")                                \
    X(outside_counted, "the peak is what the card has in use, not what the allocator has")         \
    X(broadcasts, "each chip of ZeRO's shards broadcasts what it updated, one after the other, "   \
                  "before the next step begins, in place of a gather")                             \
    X(tensor_beside, "collectives of tensor run beside the matmuls that they feed or drain")       \
    X(experts_beside, "all-to-alls of routed tokens run beside another microbatch's work")         \
    X(experts_in_order, "a token's experts follow one another, as gates of benchmarks deal them")  \
    X(copies_each, "a token is sent to each of its experts, not once to a node that has several")  \
    X(masked, "experts of limited capacity have their tokens by products with masks of ones")      \
    X(exposed_end, "gradients are reduced once the last backward pass has ended, and weights "     \
                   "gathered before the next step begins: neither hides under a pass")             \
    X(gate_reduced, "where seq=off, gate and up each sum the gradient of their input over tensor") \
    X(runs_whole, "a layer under recompute=full is computed again to its end: its last matmul, "   \
                  "and what follows, too")                                                         \
    X(graphed, "a CUDA graph starts the kernels of a step, not the host")                          \
    X(flash_2, "attention on GPUs before Blackwell is FlashAttention 2, in an A100's "             \
               "instructions")                                                                     \
    X(keys_whole, "context gathers keys of all heads of queries, behind a part of attention")      \
    X(reduced_whole, "gradients are summed on every chip, also where zero=1 shards the state")     \
    X(reduced_wide, "what is summed so is summed in fp32, from 16 bits")
typedef struct sm_software_memory {
    const char *software; /* the name of the code base */
    int from;             /* the month it begins in; 0: always */
    const char *source;
    SM_SOFTWARE_MEMORY_NUMBERS(SM_NUMBER_MEMBER)
    SM_SOFTWARE_MEMORY_FLAGS(SM_FLAG_MEMBER)
} sm_software_memory;

/* ---- FLOPs ---- */

/* Which parameters a token meets, each for 2 FLOPs forward and 4 backward. */
#define SM_COUNTED_PARAMETERS(X)                                                                   \
    X(MATRICES, "matrices", "matrix products")                                                     \
    X(ALL, "all", "all parameters")                                                                \
    X(NO_HEAD, "no_head", "matrix products but the head")
/* Which pairs of a query and a key. */
#define SM_COUNTED_ATTENTION(X)                                                                    \
    X(NONE, "none", "no attention")                                                                \
    X(CAUSAL, "causal", "causal pairs")                                                            \
    X(FULL, "full", "all pairs")
/* Which part of the forward pass once more, as if activations were computed again. */
#define SM_COUNTED_AGAIN(X)                                                                        \
    X(NOTHING, "nothing", "")                                                                      \
    X(LAYERS, "layers", "layers once more")                                                        \
    X(FORWARD, "forward", "the forward pass once more")
/* Over which peak the share is taken. */
#define SM_COUNTED_PEAK(X)                                                                         \
    X(COMPUTE, "compute", "of what is computed in")                                                \
    X(BF16, "bf16", "of bf16, whatever is computed in")                                            \
    X(SPARSE, "sparse", "with 2:4 sparsity, twice the dense one")
#define X(id, word, what) SM_COUNTED_##id,
typedef enum sm_counted_parameters {
    SM_COUNTED_PARAMETERS(X) SM_COUNTED_PARAMETERS_N
} sm_counted_parameters;
typedef enum sm_counted_attention {
    SM_COUNTED_ATTENTION(X) SM_COUNTED_ATTENTION_N
} sm_counted_attention;
typedef enum sm_counted_again { SM_COUNTED_AGAIN(X) SM_COUNTED_AGAIN_N } sm_counted_again;
#undef X
#define X(id, word, what) SM_COUNTED_PEAK_##id,
typedef enum sm_counted_peak { SM_COUNTED_PEAK(X) SM_COUNTED_PEAK_N } sm_counted_peak;
#undef X
typedef struct sm_flops_count {
    int from;           /* the month it begins in; 0: always */
    const char *figure; /* what is told: "MFU", "HFU" */
    sm_counted_parameters parameters;
    sm_counted_attention attention;
    sm_counted_again again;
    sm_counted_peak peak;
    double peak_flops_per_s; /* of one chip, whatever the chip; 0: as peak says */
    bool all_windows;        /* layers that see a window are counted as if they saw all */
    const char *source;
} sm_flops_count;

typedef struct sm_codebase {
    const char *name, *title;
    const char *software; /* calibrations and rows of it by other names, between blanks */
    int memories, counts; /* each from its month on: oldest first */
    const sm_software_memory *memory;
    const sm_flops_count *count;
} sm_codebase;
/* All that are shipped, by name; i is below the count. */
size_t sm_codebase_count(void);
const sm_codebase *sm_codebase_at(size_t i);
/* The code base of this name, or that of the software of this name (`length` bytes); NULL if none.
 */
const sm_codebase *sm_codebase_of(const char *name, size_t length);
/* The same among n of the caller's. */
const sm_codebase *sm_codebase_among(const sm_codebase *list, size_t n, const char *name,
                                     size_t length);
/* Read a file {"name": .., "title": .., "memory": [..], "counts": [..]} into the arena.
 * SM_BAD_INPUT with the place. */
sm_status sm_codebase_parse(const sm_source *source, sm_arena *arena, sm_codebase *out,
                            sm_error *err);
/* Months since year 0, as `from` has them: of "2025-06", or "2025" for the last month of a year.
 * 0: no such month. */
int sm_month_of(const char *text, size_t length);

/* By the name of a calibration's software, as it was in that month (0: today). What is not listed
 * is MaxText's on chips of a torus, Megatron-Core's on others (NULL). */
const sm_software_memory *sm_software_memory_of(const char *software, const sm_chip *chip,
                                                int month);
/* What it held in that month, or in its first; it holds something. */
const sm_software_memory *sm_codebase_memory_in(const sm_codebase *codebase, int month);
/* How it counted in that month (0: today); NULL when it did not yet. */
const sm_flops_count *sm_codebase_count_in(const sm_codebase *codebase, int month);
/* Read the name of a count: of a code base of `own` (n of them) or of those shipped, "maxtext" or
 * "maxtext@2025-06", then *of is it; or the count itself, then *of is NULL: "causal", "full" or
 * "matmul_only", followed by +input_embedding, -output_head, +recompute (of layers) or
 * +recompute_all. SM_BAD_INPUT with the place and the nearest name. */
sm_status sm_flops_count_parse(const sm_source *source, sm_span span, const sm_codebase *own,
                               size_t n, sm_flops_count *out, const sm_codebase **of,
                               sm_error *err);
/* FLOPs of a training step per token by this count, in sequences of T tokens. NaN when out of
 * memory. */
double sm_flops_counted(const sm_flops_count *count, const sm_model *model, double T);
/* FLOP/s of a chip that the share is taken of, where matmuls compute in `dtype`; 0: it has none. */
double sm_flops_peak(const sm_flops_count *count, const sm_chip *chip, sm_dtype dtype);
/* What it counts, in words: "all pairs, layers once more"; into out, which is returned. */
char *sm_flops_count_words(const sm_flops_count *count, char *out, size_t size);

SM_DECLARATIONS_END

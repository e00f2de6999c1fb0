/* run_train: a small Transformer trained on real ranks by the planner's own program.
 * Every op is lowered as it was priced (sm_program_walk) and executed block by block, in single
 * precision. Any model whose lines have kernels: see docs/run-train.md. */
#pragma once
#include "scalemodel/run.h"
#include "scalemodel/step.h"

SM_DECLARATIONS_BEGIN

/* SGD has no state; the moments of Adam are stored in single precision, in bf16 or in 8 bits with a
 * scale for each 256 of a rank's numbers. */
#define SM_TRAIN_OPTIMIZERS(X)                                                                     \
    X(ADAM, "adam") X(ADAM_BF16, "adam-bf16") X(ADAM_8BIT, "adam-8bit") X(SGD, "sgd")
#define SM_TRAIN_ID(id, ...) SM_TRAIN_##id,
typedef enum sm_train_optimizer {
    SM_TRAIN_OPTIMIZERS(SM_TRAIN_ID) SM_TRAIN_OPTIMIZER_COUNT
} sm_train_optimizer;

/* Two answers to a prompt, each behind it, of which the first is preferred: bytes. */
typedef struct sm_train_pair {
    const unsigned char *text[2];
    size_t bytes[2], prompt; /* prompt: of both, at least one */
} sm_train_pair;

typedef struct sm_train_setup {
    const sm_model *model;
    int tokens;     /* of a sequence */
    int sequences;  /* of a global batch */
    int microbatch; /* sequences per replica and microbatch */
    int degree[SM_AXIS_COUNT];
    sm_rules rules;
    int zero; /* 0, 1 (optimizer state sharded), 2 (+ gradients); with fsdp of 2 or more what is
                 left over data is sharded as by 1 */
    int state_copies; /* of what is sharded so, over the data axis; 0 and 1 are one */
    sm_recompute recompute;
    const char *recompute_ops; /* ops of layers joined by '+', in place of the policy; NULL: none */
    sm_regather regather;      /* what the backward pass gathers again */
    /* The pipeline; stages 1 and chunks 0: everything on one stage, microbatch by microbatch. */
    int stages, chunks, copies; /* copies: 0 and 1 are one */
    const sm_train_chunk *chunk;
    const int *actions;                   /* of each stage */
    const sm_train_action *const *action; /* [stage][actions[stage]] */
    /* What arrays are stored in and travel in (of a generator its weights), and gradients of
     * weights: F32 or BF16; kernels work in single precision. Of weights in bf16 the optimizer
     * keeps a copy in single precision, or none (rounded): then an update is rounded at random to
     * one of the two nearest, so that its mean stays (Gupta et al., arXiv 1502.02551, section 3.1).
     */
    sm_element stored, gradients;
    bool rounded;
    /* Of a generator `stored` may be a scaled type: that of the matrices of products and of the
     * embedding, but for those whose products are in single precision (routers); what they add and
     * scale is in single precision. In 8 bits a scale is of 128 x 128 numbers, or (by_rows) of an
     * output; in 4 bits of 32 inputs of an output, and in a layer with experts only these are in 4
     * bits, its other matrices in bf16. ends_apart: embedding and head are in bf16, as
     * checkpoints of 8 bits have them. */
    bool by_rows, ends_apart;
    sm_train_optimizer optimizer;
    /* Kept in host memory while not in use: moments, what layers keep for their backward pass. */
    bool offload_optimizer, offload_activations;
    /* Clipping is by the global norm; the rate rises over `warmup` steps and falls to a
     * tenth along a cosine that ends at `steps`. */
    double rate, beta1, beta2, epsilon, clip; /* clip 0: none */
    int warmup, steps;
    uint64_t seed;             /* of the weights and the batches: neither depends on the plan */
    bool undrawn;              /* weights begin at 0: a checkpoint is read over them */
    const unsigned char *data; /* text as bytes, at least tokens + 2 of them */
    size_t data_bytes;
    int pictures; /* of a generator whose model sees: that a sequence may have; 0: as the config
                     says */
    /* In place of the text, preferences (DPO, Rafailov et al., arXiv 2305.18290, eq. 7): sequences
     * 2i and 2i + 1 of a batch are the answers to the next pair, padded behind, both in one
     * microbatch. Loss: the mean over pairs of -log sigmoid(beta (log p/p' of the first - that of
     * the second)), p' of sm_trainer_score_pairs. 0 pairs: text. */
    const sm_train_pair *pair;
    size_t pairs;
    double beta;
} sm_train_setup;
/* One stage, all degrees 1, Adam (3e-3; 0.9, 0.95, 1e-8), clip 1, warm-up 10 of 100 steps. */
void sm_train_setup_defaults(sm_train_setup *setup);
/* Can this model be run, and does the plan divide it? SM_BAD_INPUT with a sentence when not. */
sm_status sm_train_setup_check(const sm_train_setup *setup, sm_error *err);
/* Microbatches of a step: sequences / (microbatch x data x fsdp x expert). The setup must pass
 * sm_train_setup_check. */
int sm_train_setup_microbatches(const sm_train_setup *setup);
/* Ranks that the setup runs on: the product of its degrees and stages. */
int sm_train_setup_ranks(const sm_train_setup *setup);

/* The job on one rank. Every call is made by all ranks of world. The setup and what it points to
 * must outlive it. */
typedef struct sm_trainer sm_trainer;
/* Make the job on this rank, with weights drawn from the seed. SM_BAD_INPUT as
 * sm_train_setup_check, SM_INTERNAL when out of memory, or what the backend says. */
sm_status sm_trainer_new(sm_communicator *world, const sm_train_setup *setup, sm_trainer **out,
                         sm_error *err);
/* Free the job. NULL is fine. */
void sm_trainer_free(sm_trainer *t);

/* Where the time of a step goes on a rank. Waiting for others is in what is waited for. */
typedef enum sm_train_time {
    SM_TRAIN_TIME_MATMUL, /* and attention */
    SM_TRAIN_TIME_VECTOR, /* other ops */
    SM_TRAIN_TIME_AROUND, /* blocks about ops */
    SM_TRAIN_TIME_COLLECTIVE,
    SM_TRAIN_TIME_PIPELINE,
    SM_TRAIN_TIME_OPTIMIZER,
    SM_TRAIN_TIME_REST,
    SM_TRAIN_TIME_COUNT
} sm_train_time;

typedef struct sm_train_result {
    double loss;          /* mean over the tokens, or pairs, of the batch, in nats */
    double gradient_norm; /* before clipping */
    double rate;
    double seconds;
    /* V as in sm_step, by collective, of this rank in this step: what the partition says and what
     * went through the communicators. */
    double bytes_predicted[SM_COLLECTIVE_COUNT], bytes_counted[SM_COLLECTIVE_COUNT];
    double collective_s[SM_COLLECTIVE_COUNT];
    double time_s[SM_TRAIN_TIME_COUNT]; /* their sum is seconds */
} sm_train_result;
/* The stage of the pipeline that this rank works on, from 0. */
int sm_trainer_stage(const sm_trainer *t);
/* One step on batch number `step` (from 0). A loss that is no number is SM_BAD_INPUT. */
sm_status sm_trainer_step(sm_trainer *t, int step, sm_train_result *result, sm_error *err);
/* The probabilities of all answers under the weights as they are become those of the reference,
 * which before are 1. Errors as sm_trainer_gradients. */
sm_status sm_trainer_score_pairs(sm_trainer *t, sm_error *err);
/* Compute loss and gradients of batch number `step` alone: the weights stay. The status of the
 * backend, or SM_INTERNAL when out of memory. */
sm_status sm_trainer_gradients(sm_trainer *t, int step, sm_train_result *result, sm_error *err);

/* ---- times by op and by collective ----
 * Of this rank, over its layers and microbatches: of the last step, or (all) of every step since
 * the trainer was made or its times were forgotten. A row is of the forward op as the program names
 * it, or (moves) of a collective and the array that travels, "weights" where these are whole groups
 * at the end of a step. Outside of all ops, as vector ops of the forward phase: "hand over"
 * (waiting for the boundaries of the pipeline), "gradients as rows" (packed and added at the end of
 * a step), "loss and norm" (joined over all ranks: here the slowest is waited for), "optimizer". */
typedef struct sm_train_row {
    char name[24];
    int kind; /* sm_op_kind, or sm_collective */
    sm_phase phase;
    bool again;                      /* recomputed */
    bool weight, gradient, step_end; /* of a collective: of a weight, of the array's gradient */
    double seconds;                  /* of the kernels, or of the collective */
    double
        around_s; /* about kernels: new blocks, slices, copies before and after collectives, sums */
    double bytes; /* of a collective: V as in sm_step, summed over calls */
    double calls;
} sm_train_row;
enum { SM_MOST_TRAIN_ROWS = 256 };
/* Fill rows of ops, or of collectives, at most `room` of them. Returns how many. */
int sm_trainer_rows(const sm_trainer *t, bool moves, bool all, sm_train_row *row, int room);
/* Begin the sum of all steps anew; returns how many were in it. */
int sm_trainer_forget_times(sm_trainer *t);

/* ---- memory ----
 * Bytes of arrays that this rank has in use, and the most it ever had since sm_trainer_new or
 * sm_trainer_forget_memory: weights, gradients, moments, what is kept for the backward pass, and
 * everything else (buffers: gradients of activations, gathered arrays, messages, scratch). Exact;
 * tables, whose size does not depend on that of the arrays, are not in it. */
typedef struct sm_train_memory {
    double total;                          /* the most in use at once; host memory is not in it */
    double at_most[SM_TRAIN_MEMORY_COUNT]; /* at that moment */
    double most[SM_TRAIN_MEMORY_COUNT];    /* of each part for itself */
    double now[SM_TRAIN_MEMORY_COUNT];
} sm_train_memory;
/* What this rank has in use, in bytes. */
void sm_trainer_memory(const sm_trainer *t, sm_train_memory *out);
/* Forget the highest use so far: from now on it counts from what is in use. */
void sm_trainer_forget_memory(sm_trainer *t);

/* The most bytes of blocks under way in a ring (keys, values and their gradients of other ranks)
 * that attention has held at once on this rank; 0 without context_by ring. */
double sm_trainer_ring_bytes(const sm_trainer *t);

/* A weight as this rank holds it. layer: -1 the embedding, model->L the head. gradient: after
 * sm_trainer_gradients of a plan without data parallelism, whole. False: not on this rank. */
typedef struct sm_train_weight {
    const char *name;
    int rank;
    size_t size[SM_MAX_RANK], whole[SM_MAX_RANK], offset[SM_MAX_RANK];
    float *value, *gradient;
    int first; /* of tied weights: the layer that has it first, and its name there */
    const char *first_name;
} sm_train_weight;
/* The weight of a layer by its number, from 0 on. False behind the last, and of a layer that is not
 * on this rank. */
bool sm_trainer_weight(sm_trainer *t, int layer, int number, sm_train_weight *out);

/* ---- checkpoints: whole arrays, whatever the mesh ---- */
typedef enum sm_train_part { SM_TRAIN_VALUE, SM_TRAIN_FIRST, SM_TRAIN_SECOND } sm_train_part;
typedef struct sm_train_array {
    int layer;        /* as in sm_train_weight */
    const char *name; /* as its text calls it: wq, n1, ...; the trainer's own */
    bool norm;
    sm_train_part part; /* a weight, or a moment of Adam */
    sm_adapter adapter; /* A or B of an adapter: then array is the weight beside which it stands */
    int rank;
    size_t size[SM_MAX_RANK];
    /* The weight it is, or is a moment of: where a checkpoint has it (sm_model_weight_place). */
    const sm_text_lines *lines;
    int array;
    /* When loading: the part that this rank holds; cut: data, set by find, is that part alone. */
    size_t from[SM_MAX_RANK], count[SM_MAX_RANK];
    bool cut;
    float *data; /* row-major */
    /* scaled: where a number was stored with a scale, that is wanted too, 0 of others; scale: NULL
     * of none. */
    bool scaled;
    float *scale;
    int owner; /* the rank that gathers it */
} sm_train_array;
/* Told of one array: array->data is freed afterwards unless visit sets it to NULL. */
typedef sm_status (*sm_train_visit)(sm_train_array *array, void *context, sm_error *err);
/* Gather every array of the model, in order, on rank 0, where alone visit is called. The status of
 * visit, or of the backend. */
sm_status sm_trainer_save(sm_trainer *t, sm_train_visit visit, void *context, sm_error *err);
/* Save as sm_trainer_save does, dealt out: each array is gathered on one of the ranks that hold
 * parts of it, evenly by bytes, and visit is called there alone. Errors as sm_trainer_save. */
sm_status sm_trainer_save_dealt(sm_trainer *t, sm_train_visit visit, void *context, sm_error *err);
/* What sm_trainer_save_dealt (or, not dealt, sm_trainer_save) will gather where: visit is called
 * for every array, without data, on every rank alike. The status of visit, or SM_INTERNAL when out
 * of memory. */
sm_status sm_trainer_list(sm_trainer *t, bool dealt, sm_train_visit visit, void *context,
                          sm_error *err);
/* Load every array, on every rank: find fills array->data (array->size says how large) with what it
 * owns; it is only read. Without moments a new trainer keeps those of its beginning. The status of
 * find. */
sm_status sm_trainer_load(sm_trainer *t, bool moments, sm_train_visit find, void *context,
                          sm_error *err);
/* Updates of the optimizer so far, to be kept with the arrays. */
uint64_t sm_trainer_updates(const sm_trainer *t);
/* Set the updates of the optimizer so far, after sm_trainer_load. */
void sm_trainer_set_updates(sm_trainer *t, uint64_t updates);

/* ---- generating (run_generate.h) ---- */
typedef struct sm_generator sm_generator;
/* Give a generator its weights, as sm_trainer_load does; there are no moments. */
sm_status sm_generator_load(sm_generator *g, sm_train_visit find, void *context, sm_error *err);
SM_DECLARATIONS_END

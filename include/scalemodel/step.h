/* step: a training step interpreted, once for everybody. What a pass of a microbatch through a
 * layer does and in which order, what is fetched, moved, kept and dropped when, is decided here,
 * over actions that a caller plugs in: make an array, move it, compute, drop it. The runtime plugs
 * in memory, communicators and BLAS (run_train.h); the planner a counter of bytes, which gives the
 * memory of a step at its highest moment (train.h). */
#pragma once
#include "scalemodel/program.h"

SM_DECLARATIONS_BEGIN

/* What arrays are for. */
#define SM_TRAIN_MEMORIES(X)                                                                       \
    X(PARAMS, "weights")                                                                           \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer") X(ACTIVATIONS, "activations") X(BUFFERS, "buffers") X(HOST, "host")
#define SM_TRAIN_MEMORY_ID(id, ...) SM_TRAIN_MEMORY_##id,
typedef enum sm_train_memory_part {
    SM_TRAIN_MEMORIES(SM_TRAIN_MEMORY_ID) SM_TRAIN_MEMORY_COUNT
} sm_train_memory_part;
extern const char *const sm_train_memory_names[SM_TRAIN_MEMORY_COUNT];
/* ---- the tasks of a program on a mesh ----
 * They run one after the other: forward; or backward, first the ops that run again, then the
 * gradients, those of weights where they come, or (SPLIT) after all others. An array lives from the
 * task that makes it to the last one of its pass that reads it. */
typedef enum sm_pass_order { SM_PASS_FORWARD, SM_PASS_BACKWARD, SM_PASS_SPLIT } sm_pass_order;
enum { SM_PASS_ORDERS = SM_PASS_SPLIT + 1 };
typedef struct sm_last_use { /* an entry of the order */
    int task;
    sm_bits values, gradients;       /* of tensors (bit): nothing of the pass reads them later */
    uint32_t moved[SM_MAX_OPERANDS]; /* of an operand as a step (bit) of the lowering left it */
} sm_last_use;
typedef struct sm_task_list {
    sm_partition *partition;
    const sm_program *program; /* of the partition */
    sm_mesh mesh;
    size_t room;
    int tasks, forwards; /* the first `forwards` of them are forward tasks */
    sm_program_task *task;
    sm_bits kept; /* tensors (bit) held from the forward pass to the backward */
    const sm_step *arrives_by[SM_MAX_TENSORS]; /* by which move a tensor comes that the backward
                                                  pass finds as it arrived; NULL: by none */
    sm_bits again;                             /* ops (bit) that run again */
    sm_last_use *last[SM_PASS_ORDERS];
    int entries[SM_PASS_ORDERS];
    int weights[SM_PASS_ORDERS];     /* the first entry that a split backward leaves for later */
    sm_axes partial[SM_MAX_TENSORS]; /* of the gradient of a weight at the end of a microbatch */
} sm_task_list;
/* Partitions the program and walks it. size: of each dimension, for all sequences of a microbatch.
 * recompute: ops whose results are not kept; regather: what is gathered again and not kept as it
 * arrived. A program of serving has forward tasks alone and keeps its cache. On failure the list is
 * empty. SM_BAD_INPUT when a dimension does not divide over its axes, SM_INTERNAL when out of
 * memory. */
sm_status sm_task_list_new(const sm_program *program, const sm_mesh *mesh, const double *size,
                           sm_bits recompute, sm_regather regather, sm_task_list *out,
                           sm_error *err);
/* Free a list; it is empty then. */
void sm_task_list_free(sm_task_list *list);
/* The forward task that reads a tensor first, and as which operand; NULL: none does. */
const sm_program_task *sm_task_list_reader(const sm_task_list *list, int tensor, int *operand);
/* The array of that operand, as it is stored, and the einsum it is of; NULL: nothing reads it. */
const sm_array *sm_task_list_array(const sm_task_list *list, int tensor, const sm_einsum **einsum);
/* A tensor as a chip stores it, without data. Something must read it. */
sm_local_block sm_task_list_block(const sm_task_list *list, int tensor);

/* ---- layers ---- */
/* Weights of a layer whose gradients are reduced together at the end of a step, as one row. */
typedef struct sm_gradient_group {
    sm_axes partial, stored;
    int joined;         /* other stages hold these weights too: 1 and on, which (sm_stage.tie) */
    sm_element element; /* of the weights */
    size_t elements;    /* on this chip */
    size_t reduced;     /* of them whose gradient this chip sums: padded to equal parts */
    size_t chunk; /* of those this chip updates: all, or half where the peer updates the rest */
    sm_local_block sum; /* reduced gradient, from reducing to updating */
    void *state;        /* the optimizer's */
} sm_gradient_group;
typedef struct sm_step_layer {
    const sm_task_list *list;
    int number; /* in the model; -1: the embedding, L: the head, behind it what is between stacks */
    int piece;  /* of the architecture; -1: a layer's */
    int chunk;
    int reads;                    /* a loan (sm_stage.loan); -1: none */
    struct sm_step_layer *lender; /* who made that, where it is of this chunk and no stack's end */
    int makes, lends;             /* a loan, and as which tensor; -1, SM_MAX_BITS: none */
    sm_local_block weight[SM_MAX_TENSORS];
    sm_local_block gradient[SM_MAX_TENSORS]; /* the sum over the microbatches so far */
    int groups, group_of[SM_MAX_TENSORS];    /* -1: of none */
    sm_gradient_group group[SM_MAX_WEIGHT_CLASSES];
} sm_step_layer;

/* ---- actions ---- */
typedef struct sm_pass sm_pass;
/* What a layer holds of one microbatch. arrived: an operand as it came by all-to-all, which the
 * gradient of the weight it met reads again, the whole weight of a norm, or what is not gathered
 * again (sm_regather). */
typedef struct sm_pass_saved {
    int tensors;
    sm_local_block *value, *arrived; /* of each tensor of the program */
    sm_local_block log_sums; /* ring attention: log of the sum of e^score of each query and head */
    sm_pass *open;           /* a backward whose weight gradients are still to be made */
    bool away;               /* in host memory */
} sm_pass_saved;

/* An array as an op meets it. block NULL: ids, and what is named for its shape alone. */
typedef struct sm_operand {
    const sm_local_block *block;
    sm_layout layout;
} sm_operand;
typedef enum sm_call_kind {
    SM_CALL_FORWARD,         /* out from the operands */
    SM_CALL_INPUT_GRADIENT,  /* of the forward op's input `which`; attention: of all three inputs,
                                out[0..2], cleared */
    SM_CALL_WEIGHT_GRADIENT, /* of a weight */
    SM_CALL_APPEND,          /* new keys and values into the cache; out NULL */
    SM_CALL_LOSS_SLOPE,      /* out: the gradient of the loss itself, from in[0], the loss */
    SM_CALL_ADD,             /* out += in[0] */
    SM_CALL_LOSS,            /* of a microbatch is there: in[0]; of serving: logits, in saved */
    SM_CALL_GIVE,            /* out: what the first piece reads that is no words */
    SM_CALL_SELECT,          /* of serving: the residual stream out becomes the rows that the head
                                is wanted of */
    /* of a group of weights: between the blocks of a layer and a row of all their elements */
    SM_CALL_PACK_GRADIENTS, /* row out */
    SM_CALL_PACK_WEIGHTS,   /* row out */
    SM_CALL_UNPACK_WEIGHTS, /* row in[0] */
    SM_CALL_UPDATE,         /* weights out, by the sum of the group's gradients */
    SM_CALL_TAKE_PART       /* out: this chip's part of the row in[0] */
} sm_call_kind;
typedef struct sm_call {
    sm_call_kind kind;
    const sm_task_list *list;
    const sm_program_task *task; /* NULL: of none */
    const sm_op *op;
    sm_operand in[SM_MAX_OPERANDS];             /* after their moves */
    const sm_local_block *input[SM_MAX_INPUTS]; /* backward: the inputs of the forward op */
    int which;
    sm_local_block *out; /* made; only attention finds zeros in it */
    sm_layout made;      /* how out is laid out */
    sm_pass_saved *saved;
    bool ring;            /* attention: keys and values travel in a ring meanwhile */
    sm_step_layer *layer; /* of a task, of a group of weights, or of the loss */
    int group;
} sm_call;
typedef struct sm_move_call {
    int tensor;
    bool gradient;
    const sm_step *step;
    const sm_layout *before;
    const sm_local_block *block;
    /* of the whole array */
    const sm_mesh *mesh;
    const sm_einsum *einsum;
    const sm_array *array;
} sm_move_call;
/* A collective of rows of gradients or weights. Where the state of the optimizer is there several
 * times, ONE_COPY is the chips over these axes that share one of them, ACROSS_COPIES those along
 * the data axis that hold the same part of each. */
typedef enum sm_row_over { SM_OVER_AXES, SM_OVER_ONE_COPY, SM_OVER_ACROSS_COPIES } sm_row_over;
typedef struct sm_row_move {
    sm_collective op;
    sm_axes axes; /* 0: the stages that hold the same weights, */
    int joined;   /* these (sm_gradient_group) */
    sm_row_over over;
    sm_local_block *from, *to; /* all-reduce: to alone, in place */
} sm_row_move;
typedef struct sm_actions {
    void *context;
    int at[SM_MAX_AXES]; /* this chip's coordinates */
    /* What gradients of weights are summed and reduced in. */
    sm_element gradients;
    /* Memory for a block whose sizes are set (as a buffer). cleared: zeroed. */
    sm_status (*make)(void *context, sm_local_block *block, bool cleared, sm_error *err);
    /* *result: a new block, laid out as step->after. */
    sm_status (*move)(void *context, const sm_move_call *move, sm_local_block *result,
                      sm_error *err);
    sm_status (*compute)(void *context, sm_call *call, sm_error *err);
    void (*drop)(void *context, sm_local_block *block); /* data becomes NULL */
    /* From now on the array is for this. */
    void (*mark)(void *context, sm_local_block *block, sm_train_memory_part part);
    /* Around each task; again: it runs a second time. task NULL: the gradients of a layer, or
     * those that stages share, are reduced. NULL: nobody asks. */
    void (*begin_task)(void *context, const sm_task_list *list, const sm_program_task *task,
                       bool again);
    void (*end_task)(void *context);
    /* Of a whole step (sm_stage) alone. ---
     * A boundary for another stage, taken: it lives until it has arrived. backward: a gradient. */
    sm_status (*send)(void *context, int stage, int tag, bool backward, sm_local_block *block,
                      sm_error *err);
    /* Into a block that was made. */
    sm_status (*receive)(void *context, int stage, int tag, sm_local_block *block, sm_error *err);
    sm_status (*join_rows)(void *context, const sm_row_move *move, sm_error *err);
    /* Its data is there from now on: in host memory, or back. */
    sm_status (*carry)(void *context, sm_local_block *block, sm_train_memory_part part,
                       sm_error *err);
} sm_actions;

/* ---- one microbatch through one layer ---- */
/* Run the forward tasks of a layer, or (once) those of a step that decodes which run when a
 * sequence begins; saved receives what is kept. SM_INTERNAL when out of memory, or the status of an
 * action. */
sm_status sm_pass_forward(const sm_actions *actions, sm_step_layer *layer, sm_pass_saved *saved,
                          bool once, sm_error *err);
/* Run the backward tasks of a layer. stream: the gradient of the output, taken (none of the head,
 * whose loss begins it); receives that of the input. owed: the gradient of each loan, added to by
 * who reads it, and taken by the layer that made it. Unless `whole`, what the gradients of weights
 * need stays open in saved, for sm_pass_backward_weights. SM_INTERNAL when out of memory, or the
 * status of an action. */
sm_status sm_pass_backward(const sm_actions *actions, sm_step_layer *layer, sm_pass_saved *saved,
                           sm_local_block *stream, sm_local_block *owed, bool whole, sm_error *err);
/* Make the weight gradients that sm_pass_backward left open. SM_INTERNAL when none are open. */
sm_status sm_pass_backward_weights(sm_pass_saved *saved, sm_error *err);
/* Drops what is saved but for these tensors (bit), and, unless arrived is to stay, what arrived. */
void sm_pass_drop(const sm_actions *actions, sm_pass_saved *saved, sm_bits keep, bool keep_arrived);
/* A chunk of layers [first, last) on a pipeline stage, in model order: the first chunk also holds
 * the embedding, the last one the head. Two copies of the model (dualpipe): the second half of the
 * chunks is the model again, for the later half of the microbatches; both stages of a chunk sum its
 * gradients at the end of a step. */
typedef struct sm_train_chunk {
    int stage, first, last;
} sm_train_chunk;
/* A backward is whole or in two: the gradients of inputs, which the stage before waits for, and
 * later those of weights (zero-bubble schedules). Serving, a model of two stacks reads with the
 * first, once for a sequence, and the others make of it what they keep. */
typedef enum sm_train_act {
    SM_TRAIN_FORWARD,
    SM_TRAIN_BACKWARD,
    SM_TRAIN_BACKWARD_INPUT,
    SM_TRAIN_BACKWARD_WEIGHT,
    SM_TRAIN_READ
} sm_train_act;
/* What a stage does, in order. */
typedef struct sm_train_action {
    sm_train_act act;
    int chunk, microbatch;
} sm_train_action;

/* A weight that several parts of the model read: the piece whose it is, and which of its arrays. */
typedef struct sm_tie {
    int of, there;
} sm_tie;
enum { SM_MOST_TIES = 16 };

/* ---- a stage through a step ----
 * Microbatches pass the layers of a stage in the order of its pipeline; boundaries go from stage to
 * stage; then gradients are reduced, as rows, and weights updated. */
typedef struct sm_resident { /* of those that may be offloaded, one that is not */
    const sm_step_layer *layer;
    sm_pass_saved *saved;
} sm_resident;
enum { SM_RESIDENTS = 3 };  /* that stay under offload, the one at work among them */
typedef struct sm_message { /* a boundary that waits for its reader on the same stage */
    int tag;
    sm_local_block block;
} sm_message;
typedef struct sm_stage {
    const sm_actions *actions;
    int number;         /* of the stages */
    int chunks, copies; /* chunks 0: all on this stage, in one chunk; copies: 1 or 2 */
    const sm_train_chunk *chunk;
    int microbatches;
    int zero;         /* 0, 1 (optimizer state sharded), 2 (+ gradients, each microbatch) */
    int state_copies; /* of what ZeRO shards, over the data axis; 0 and 1 are one */
    bool offloads;    /* what layers keep for their backward pass */
    bool pools;       /* what is read ends before the last piece (sm_model_pools) */
    /* from here on set by sm_stage_new */
    const sm_model *model;
    const sm_task_list *list;
    int loans, ties; /* weights that stages share are of ties */
    sm_loan loan[SM_MOST_LOANS];
    sm_tie tie[SM_MOST_TIES];
    /* what came from other chunks, or a stack ended in: [chunk][loan][microbatch]; the gradient of
     * each loan, of the microbatch at hand */
    sm_local_block *lent, owed[SM_MOST_LOANS];
    int layers;            /* of this stage, */
    sm_step_layer *layer;  /* in model order */
    sm_pass_saved **saved; /* [layer * microbatches + microbatch]; NULL: nothing is */
    int microbatch;        /* at hand */
    bool updating;         /* the gradients will be used: ZeRO 2 reduces each microbatch's */
    int residents;         /* from the one used longest ago */
    sm_resident resident[SM_RESIDENTS];
    int messages, room;
    sm_message *message;
} sm_stage;
/* Adds its layers, in model order, to a stage that is otherwise set: list has one of each kind of
 * layer of the model, then those of the other pieces in their order. They have no weights yet.
 * SM_INTERNAL when out of memory. */
sm_status sm_stage_new(sm_stage *stage, const sm_model *model, const sm_task_list *list,
                       sm_error *err);
/* Free a stage: every array is dropped. */
void sm_stage_free(sm_stage *stage);
/* Find out which weights of a layer are reduced together. SM_INTERNAL when they are of more kinds
 * than SM_MAX_WEIGHT_CLASSES. */
sm_status sm_stage_group(const sm_stage *stage, sm_step_layer *layer, sm_error *err);
/* Run the forward and backward passes of a step. action: of this stage, n of them; NULL: microbatch
 * by microbatch. What a step before left of gradients is dropped. The status of an action, or
 * SM_INTERNAL when out of memory. */
sm_status sm_stage_run(sm_stage *stage, const sm_train_action *action, int n, sm_error *err);
/* Reduce the gradients that are still to be reduced: group->sum is this chip's chunk then. The
 * status of an action. */
sm_status sm_stage_reduce(sm_stage *stage, sm_error *err);
/* Update the weights of every group by its gradients, and gather them where chips update parts. The
 * status of an action. */
sm_status sm_stage_update(sm_stage *stage, sm_error *err);
/* Gather the chunks of a group's chips, of which this one's is mine, into a row (which mine may be,
 * where it is all). The status of an action. */
sm_status sm_stage_gather(const sm_stage *stage, const sm_step_layer *layer, int group,
                          sm_local_block *mine, sm_local_block *row, sm_error *err);

/* Does a loan, or (-1) the residual stream, pass from the chunk before to this one? read: of
 * serving, while a text is read. */
bool sm_stage_crosses(const sm_stage *stage, int chunk, int loan, bool read);
/* How many chunks one copy of the model is cut into. */
int sm_stage_model_chunks(const sm_stage *stage);
/* The number of the first part of the model that holds a tied weight, and as which tensor. */
int sm_stage_first_of(const sm_stage *stage, const sm_tensor *tied, int *as);
/* Has a stage the weight of a tie? Each that has updates its own. */
bool sm_stage_holds(const sm_stage *stage, int number, int tie);
/* The first layer of this stage that holds the weight of which this one is, and as which tensor. */
sm_step_layer *sm_stage_owner(const sm_stage *stage, sm_step_layer *layer, int tensor, int *as);
/* Is this weight a copy of one of another layer of this stage? */
bool sm_stage_is_copy(const sm_stage *stage, const sm_step_layer *layer, int tensor);
/* The layer of this number on this stage, or NULL. */
sm_step_layer *sm_stage_layer(const sm_stage *stage, int number);
/* Over how many chips of this stage the update of a group is cut. */
size_t sm_group_ways(const sm_stage *stage, const sm_step_layer *layer, int group);
/* Over how many of two stages, 2 or 1, the update of a group is cut. */
size_t sm_group_peers(const sm_stage *stage, const sm_gradient_group *group);
/* Copies of the optimizer's state of a group's weights over the data axis; 1 without ZeRO. */
size_t sm_group_copies(const sm_stage *stage, const sm_gradient_group *group);
/* Elements of a group's row, with room for all chips' parts. */
size_t sm_group_row(const sm_stage *stage, const sm_step_layer *layer, int group);
SM_DECLARATIONS_END

/* train_parts: what the files of the training runtime share. */
#ifndef SM_RUN_TRAIN_PARTS_H
#define SM_RUN_TRAIN_PARTS_H
#include "scalemodel/run_generate.h"
#include "scalemodel/run_train.h"

#include "layout.h"
#include "memory_account.h"

enum { TRAIN_AXES = SM_AXIS_COUNT + 1, TRAIN_PIPELINE = SM_AXIS_COUNT, TRAIN_SHARES = 8 };

/* A program with its tasks on the real mesh, shared by all layers of its kind. */
typedef struct train_piece {
    sm_program program;
    sm_partition *part; /* on the nominal mesh: what is predicted */
    int tasks, forwards, room;
    sm_program_task *task;
    float *turn;    /* rotary: [position][cosine, sine][half of a head] */
    uint64_t kept;  /* tensors held from forward to backward */
    uint64_t again; /* ops that run again */
    sm_last_use *last[SM_PASS_ORDERS];
    int entries[SM_PASS_ORDERS], weights[SM_PASS_ORDERS];
    sm_axes partial[SM_MAX_TENSORS]; /* of the gradient of a weight at the end of a microbatch */
} train_piece;

/* Weights of a layer whose gradients are reduced together at the end. */
/* A moment as it is stored (train_moments.c). */
typedef struct train_moment {
    void *code;
    float *scale; /* of each block, for codes of 8 bits */
} train_moment;
enum { TRAIN_MOMENT_BLOCK = 256 };
typedef struct train_codes { /* what codes of 8 bits stand for, beside their sign */
    float positive[256], half[128];
} train_codes;

typedef struct train_group {
    sm_axes partial, stored;
    bool joined;     /* the peer stage holds these weights too (train_peers.c) */
    size_t elements; /* on this rank */
    size_t reduced;  /* of them whose gradient this rank sums: padded to equal parts */
    size_t chunk;    /* of those this rank updates: all, or half where the peer updates the rest */
    float *sum;      /* reduced gradient, from reducing to updating */
    train_moment first, second;
} train_group;

enum { TRAIN_GROUPS = SM_MAX_WEIGHT_CLASSES };
typedef struct train_layer {
    const train_piece *piece;
    int number; /* -1: the embedding, L: the head */
    int chunk;
    sm_local_block weight[SM_MAX_TENSORS], gradient[SM_MAX_TENSORS];
    int groups, group_of[SM_MAX_TENSORS];
    train_group group[TRAIN_GROUPS];
} train_layer;

/* What a layer holds of one microbatch. arrived: an operand after its all-to-all, which the
 * gradient of the weight it met wants again. */
typedef struct train_pass train_pass;
typedef struct train_saved {
    sm_local_block value[SM_MAX_TENSORS], arrived[SM_MAX_TENSORS];
    sm_local_block log_sums; /* ring attention: log of the sum of e^score of each query */
    train_pass *open;        /* a backward whose weight gradients are still to be made */
    bool away;               /* in host memory */
} train_saved;
typedef struct train_resident { /* of those that may be offloaded, one that is not */
    const train_layer *layer;
    train_saved *saved;
} train_resident;
enum { TRAIN_RESIDENTS = 3 };

typedef struct train_message { /* a boundary under way */
    sm_request_handle handle;
    sm_local_block block;
    int tag;
    bool local; /* both chunks are on this stage */
} train_message;

/* Times by op and by collective (train_times.c). */
typedef sm_traffic train_traffic;
typedef struct train_took {
    uint32_t key;
    double seconds, around_s, bytes, calls;
} train_took;
enum { TRAIN_ROWS = 512 };
typedef struct train_times {
    int rows, at;
    train_took row[TRAIN_ROWS];
} train_times;
typedef enum train_outside {
    TRAIN_HAND_OVER,
    TRAIN_ROWS_OF_GRADIENTS,
    TRAIN_LOSS_AND_NORM,
    TRAIN_OPTIMIZER,
    TRAIN_OUTSIDE_COUNT
} train_outside;
/* What a pass of a generator brings to its sequences. */
typedef struct train_feed {
    const sm_generator_pass *pass;
    const size_t *cached; /* positions each sequence has already */
} train_feed;

struct sm_trainer {
    const sm_train_setup *setup;
    sm_communicator *world;
    sm_rank_mesh *mesh;
    sm_communicator *peer; /* of two: this stage and the one that holds the same weights, or NULL */
    int stage, microbatches;
    double size[SM_DIM_COUNT]; /* of all sequences of a microbatch */
    int pieces;
    train_piece piece[SM_MAX_LAYER_KINDS + 2]; /* kinds, then embedding, then head */
    int layers;
    train_layer *layer; /* of this stage, in model order */
    train_saved *saved; /* [layer * microbatches + microbatch] */
    int messages;
    train_message *message;
    int step, microbatch; /* at hand */
    bool updating;        /* the gradients of this batch will be used */
    uint64_t updates;     /* of the optimizer so far */
    train_codes codes;
    int residents; /* from the one used longest ago */
    train_resident resident[TRAIN_RESIDENTS];
    double loss; /* this rank's share of the sum over tokens */
    double time_s[SM_TRAIN_TIME_COUNT];
    memory_account memory;
    train_times ops, moves, all_ops, all_moves; /* of this step; of all since they were forgotten */
    int times_of;                               /* steps in the latter */
    const sm_program_task *busy;                /* the task at hand, NULL: none */
    const train_piece *busy_piece;
    bool busy_again;
    double busy_since_s, inside_s; /* inside: its kernels and collectives so far */
    double ring_bytes;             /* most of the blocks that ring attention has held */
    /* generating: the program is that of serving, for what is fed */
    bool serving;
    const train_feed *feed;
    size_t sampled; /* positions of a sequence whose scores are wanted */
};

/* An array as a kernel meets it: this rank's block and where it lies in the whole. */
typedef struct train_array {
    const sm_local_block *block;
    sm_layout layout;
    size_t offset[SM_MAX_RANK];
} train_array;
/* An op at work: operands after their moves. input: saved inputs of the forward op (backward). */
typedef struct train_call {
    sm_trainer *t;
    const train_layer *layer;
    train_saved *saved;
    const sm_program_task *task;
    const sm_op *op;
    train_array in[4];
    const sm_local_block *input[4];
    sm_local_block *out;
    size_t out_offset[SM_MAX_RANK];
    int which; /* backward: the input whose gradient is wanted */
} train_call;

/* ---- train_arrays.c ---- */
size_t train_local_size(const sm_trainer *t, double whole, const sm_layout *layout, int dim);
void train_offsets(const sm_trainer *t, const sm_layout *layout, const sm_local_block *b,
                   size_t *offset);
sm_status train_block_like(const sm_trainer *t, const sm_einsum *e, const sm_array *array,
                           const sm_layout *layout, sm_element element, sm_local_block *out,
                           sm_error *err);
/* The same, not cleared. */
sm_status train_raw_block_like(const sm_trainer *t, const sm_einsum *e, const sm_array *array,
                               const sm_layout *layout, sm_element element, sm_local_block *out,
                               sm_error *err);
sm_status train_block_copy(const sm_local_block *from, sm_local_block *to, sm_error *err);
/* to += from, or from itself when to is empty: from is empty afterwards. */
sm_status train_block_add(sm_local_block *to, sm_local_block *from, sm_error *err);
/* All steps of one array of a lowering, in place. */
sm_status train_block_move(sm_trainer *t, const sm_lowering *low, int array, sm_layout *layout,
                           sm_local_block *block, sm_error *err);
double train_degree(const sm_trainer *t, sm_axes axes);

/* ---- train_data.c ---- */
/* Byte at a position (0 .. tokens) of a sequence of the batch at hand. sequence: in the microbatch.
 */
int train_byte(const sm_trainer *t, size_t sequence, size_t position);
/* The place in its sequence of the first byte of a pass: 0 in training. */
size_t train_position(const sm_trainer *t, size_t sequence);

/* ---- kernels: out is of the right size and holds anything; that of attention is zeroed ---- */
/* The table of a piece that turns queries and keys. */
sm_status train_turns_new(sm_trainer *t, train_piece *p, sm_error *err);
sm_status train_forward_kernel(train_call *c, sm_error *err);
sm_status train_input_kernel(train_call *c, sm_error *err);
sm_status train_weight_kernel(train_call *c, sm_error *err);
sm_status train_attention_forward(train_call *c, sm_error *err);
sm_status train_attention_backward(train_call *c, sm_error *err);
void train_dispatch(train_call *c);
void train_dispatch_backward(train_call *c);
void train_combine(train_call *c);
void train_combine_backward(train_call *c);
sm_status train_loss_forward(train_call *c, sm_error *err);
void train_loss_backward(train_call *c);

/* ---- train_ring.c ---- */
/* The step of the keys of an attention that runs as a ring; NULL: this task does not. Its keys and
 * values come as they are stored, and their gradients arrive there. */
const sm_step *train_ring_step(const sm_trainer *t, const sm_op *op, const sm_program_task *task);
sm_status train_ring_forward(train_call *c, sm_error *err);
sm_status train_ring_backward(train_call *c, sm_error *err);

/* ---- train_setup.c ---- */
sm_status train_check_model(const sm_train_setup *s, sm_error *err);
/* The mesh and its groups. */
sm_status train_mesh_new(sm_trainer *t, sm_error *err);

/* ---- train_cache.c ---- */
/* New keys and values behind those already there. */
sm_status train_append(sm_trainer *t, const train_piece *p, const sm_program_task *task,
                       train_saved *saved, sm_error *err);

/* ---- generate_attention.c ---- */
sm_status generate_attention(train_call *c, sm_error *err);

/* ---- generate_bytes.c: of one pass ---- */
void generate_bytes_predicted(const sm_trainer *t, double *bytes);

/* ---- train_state.c ---- */
sm_status train_load_part(sm_trainer *t, sm_train_part part, sm_train_visit find, void *context,
                          sm_error *err);

/* ---- train_pieces.c ---- */
/* The array of an op that reads a tensor; NULL when none does. */
const sm_array *train_array_of(const train_piece *p, int tensor, const sm_einsum **einsum);
sm_status train_pieces_new(sm_trainer *t, sm_error *err);
void train_pieces_free(sm_trainer *t);

/* ---- train_weights.c ---- */
/* The forward task that reads a weight, and as which operand. */
const sm_program_task *train_reader(const train_piece *p, int tensor, int *operand);
sm_status train_layers_new(sm_trainer *t, sm_error *err);
void train_layers_free(sm_trainer *t);

/* ---- train_moments.c ---- */
void train_codes_new(train_codes *codes);
sm_status train_moment_new(const sm_trainer *t, size_t n, train_moment *m, sm_error *err);
void train_moment_free(train_moment *m);
/* Are they floats in the rank's own memory? Else they are read and written in parts that begin at
 * multiples of a block. */
bool train_moments_plain(const sm_train_setup *s);
void train_moment_read(const sm_trainer *t, const train_moment *m, bool second, size_t first,
                       size_t n, float *x);
void train_moment_write(const sm_trainer *t, train_moment *m, bool second, size_t first, size_t n,
                        const float *x);

/* ---- train_offload.c: around the forward pass of a layer, and before its backward pass ---- */
sm_status train_offload_begin(sm_trainer *t, const train_layer *layer, sm_error *err);
void train_offload_end(sm_trainer *t, const train_layer *layer, train_saved *saved);
sm_status train_offload_fetch(sm_trainer *t, const train_layer *layer, train_saved *saved,
                              sm_error *err);

/* ---- train_peers.c ---- */
/* The chunks of one copy of the model, and how many copies there are. */
int train_chunks_of_model(const sm_train_setup *s);
int train_copies(const sm_train_setup *s);
sm_status train_check_copies(const sm_train_setup *s, sm_error *err);
sm_status train_peer_new(sm_trainer *t, sm_error *err);
bool train_is_joined(const sm_trainer *t, const train_layer *layer, int tensor);
/* Of how many parts of a reduced gradient this rank updates one, and which. */
size_t train_peer_parts(const sm_trainer *t, const train_group *g);
size_t train_peer_part(const sm_trainer *t, const train_group *g);
/* The sums of a group, of both stages: its chunk afterwards. */
sm_status train_peer_sum(sm_trainer *t, train_group *g, sm_error *err);

/* ---- train_tied.c ---- */
/* The matrix of the embedding or of the head. */
int train_tied_weight(const train_piece *piece);
/* Is this weight the head's copy of the embedding? */
bool train_is_copy(const sm_trainer *t, const train_layer *layer, int tensor);
/* Are the two on different stages, so that each is updated where it is? */
bool train_tie_parted(const sm_train_setup *s);
/* A block of the copy, [D,V], to or from a row in the order of the embedding, [V,D]. */
void train_tie_out(const sm_local_block *copy, float *row);
void train_tie_in(const float *row, sm_local_block *copy);
void train_tie_weights(sm_trainer *t);
sm_status train_tie_gradients(sm_trainer *t, sm_error *err);

/* ---- train_optimizer.c ---- */
sm_status train_groups_new(sm_trainer *t, train_layer *layer, sm_error *err);
/* ZeRO 2: after each microbatch of a layer. */
sm_status train_reduce_layer(sm_trainer *t, train_layer *layer, sm_error *err);
sm_status train_reduce_rest(sm_trainer *t, sm_error *err);
double train_norm_share(const sm_trainer *t); /* sum of squares, shared out over replicas */
sm_status train_update(sm_trainer *t, double rate, double scale, sm_error *err);
bool train_reduces_each(const sm_trainer *t);
/* A moment of Adam of all weights of a layer, between blocks as the weights lie and the chunks of
 * their groups. Made by every rank that holds the layer. */
sm_status train_moments_out(sm_trainer *t, train_layer *layer, bool second, sm_local_block *block,
                            sm_error *err);
sm_status train_moments_in(sm_trainer *t, train_layer *layer, bool second,
                           const sm_local_block *block, sm_error *err);

/* ---- train_pass.c ---- */
sm_status train_forward(sm_trainer *t, train_layer *layer, train_saved *saved, sm_error *err);
/* gradient: of the output, consumed (empty for the head); receives that of the input. Unless
 * `whole`, it leaves open what the weight gradients need, which the second call takes up. */
sm_status train_backward(sm_trainer *t, train_layer *layer, train_saved *saved,
                         sm_local_block *gradient, bool whole, sm_error *err);
sm_status train_backward_weight(train_saved *saved, sm_error *err);
/* Tensors (bit) that stay; what arrived stays with the flag, which is no tensor's bit. */
#define TRAIN_KEEP_ARRIVED (1ull << 63)
void train_saved_free(train_saved *saved, uint64_t keep);

/* ---- train_times.c ---- */
void train_task_begins(sm_trainer *t, const train_piece *piece, const sm_program_task *task,
                       bool backward);
void train_task_ends(sm_trainer *t);
/* The kernel of the task at hand; inside_s: that of the trainer when it began. */
void train_kernel_took(sm_trainer *t, const sm_op *op, double begun_s, double inside_s);
/* An array that a kernel moved itself: seconds of waiting. */
void train_kernel_moved(sm_trainer *t, int tensor, bool gradient, sm_collective op, double bytes,
                        double seconds);
/* sm_local_block_step of an array of the task at hand, counted. */
sm_status train_move(sm_trainer *t, int tensor, bool gradient, const sm_step *step,
                     const sm_layout *before, const sm_local_block *block, sm_local_block *result,
                     sm_error *err);
void train_outside_took(sm_trainer *t, train_outside what, double seconds);
/* The same with its collectives since `before`, which are counted for themselves: returns what is
 * left. */
double train_step_end_took(sm_trainer *t, train_outside what, double begun_s,
                           const train_traffic *before);
void train_times_begin(sm_trainer *t);
void train_times_end(sm_trainer *t);

/* ---- train_bytes.c ---- */
/* What went through the groups of this rank so far, but for those over the pipeline. */
void train_traffic_now(const sm_trainer *t, train_traffic *out);
void train_bytes_predicted(const sm_trainer *t, double *bytes);
#endif

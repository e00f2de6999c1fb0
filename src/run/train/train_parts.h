/* train_parts: what the files of the training runtime share. */
#pragma once
#include "scalemodel/run_generate.h"
#include "memory_account.h"

#include <string.h>
#include <math.h>

/* What kernels do to rows of numbers, written so that compilers make vector operations of
 * it without being allowed to reorder sums themselves. */
/* y = exp(x - shift), within 2e-7 of itself; returns their sum. x - shift below -87.3 is taken as
 * that, above 87.3 as that; no number stays none. y may be x. */
float row_exponential(const float *x, float shift, size_t n, float *y);
/* Sums in sixteen parts. */
float row_sum(const float *x, size_t n);
float row_dot(const float *x, const float *y, size_t n);
/* The largest; -INFINITY of none. */
float row_most(const float *x, size_t n);
/* to += factor from */
void row_add(const float *from, float factor, size_t n, float *to);
/* Of probabilities p of a row: dp, their slopes, become scale p (dp - dot), those of its scores. */
void row_slope(const float *p, float dot, float scale, size_t n, float *dp);

enum { TRAIN_LISTS = SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE };
enum { TRAIN_AXES = SM_AXIS_COUNT + 1, TRAIN_PIPELINE = SM_AXIS_COUNT, TRAIN_SHARES = 8 };

/* A moment as it is stored (train_optimizer.c). */
typedef struct train_moment {
    void *code;
    float *scale; /* of each block, for codes of 8 bits */
} train_moment;
enum { TRAIN_MOMENT_BLOCK = 256 };
typedef struct train_codes { /* what codes of 8 bits stand for, beside their sign */
    float positive[256], half[128];
} train_codes;

/* Of a group of weights: the state of sm_gradient_group. */
typedef struct train_moments {
    train_moment first, second;
    float *weights; /* in single precision, where those of the layer are in less; NULL: none */
} train_moments;

typedef struct train_message { /* a boundary under way */
    sm_request_handle handle;
    sm_local_block block;
} train_message;
typedef struct train_adam {
    double rate, scale, beta1, beta2, epsilon, bias1, bias2;
} train_adam;

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
/* What running a model asks for beside its sizes (train_numbers.c): here, as a family or its config
 * calls it, and what it is where they say nothing. */
#define TRAIN_NUMBERS(X)                                                                           \
    X(bare_norm_epsilon, 0) /* of norms that read nothing else; 0: none of their own */            \
    X(norm_offset, 0)       /* added to the scale of a norm */                                     \
    X(norm_by_group, 0)     /* a norm with a scale of heads is one of each of them */              \
    X(l2_is_mean, 0)                                                                               \
    X(embedding_scale, 1)                                                                          \
    X(residual_scale, 1)                                                                           \
    X(logit_scale, 1)                                                                              \
    X(final_logit_softcapping, 0)                                                                  \
    X(score_scale, 0)            /* of attention; 0: 1 / sqrt of a query */                        \
    X(attn_logit_softcapping, 0) /* 0: none */                                                     \
    X(alibi_bias_max, 0)         /* of the slopes of scores over distances; 0: none */             \
    X(distance_most, 0)          /* those beyond share the last row of a table of distances */     \
    X(first_position, 0)         /* its row in a table of positions */                             \
    X(temper_scale, 0)           /* of queries: 1 + scale log(1 + (at + first) / each) */          \
    X(temper_first, 0)                                                                             \
    X(temper_each, 1)                                                                              \
    X(gate_limit, 0) /* 0: none */                                                                 \
    X(gate_slope, 1)                                                                               \
    X(step_least, 0) /* of a softplus: the steps of state spaces */                                \
    X(step_most, INFINITY)                                                                         \
    X(scan_scale, 1)     /* of what a scan gives */                                                \
    X(by_squares, 0)     /* a view of a picture: neighbours in a square come together */           \
    X(window_tiles, 0)   /* a window of a picture is a square of it */                             \
    X(seen_whole, 0)     /* rows of a picture see each other, also those behind */                 \
    X(norm_topk_prob, 1) /* of the shares of experts */                                            \
    X(routed_scaling_factor, 1)                                                                    \
    X(groups_by_two, 0)
typedef struct train_numbers {
    int kind; /* of the piece, in the architecture */
    double norm_epsilon, layer_norm_epsilon, rope_score_scale;
    bool shares_sigmoid; /* of experts */
    TRAIN_NUMBERS(SM_NUMBER_MEMBER)
} train_numbers;
typedef struct train_turns {       /* of rotary positions */
    float *table;                  /* [position][cosine, sine][half] */
    uint8_t *section;              /* of each pair; NULL: one, the place in the sequence */
    size_t positions, half, first; /* first: row of position 0 */
    size_t side;                   /* rows of a picture that all positions are of; 0: of words */
    bool interleaved;              /* neighbours turn, not halves */
} train_turns;
/* What a pass of a generator brings to its rows, and where their caches lie: position p of a row in
 * place p % page_tokens of the page of its table at p / page_tokens. */
typedef struct train_feed {
    const int32_t *token;   /* [rows, width]: one query each, unless read */
    const size_t *count;    /* [rows]: 1, or 0 of one that pads; words, of what is read */
    const size_t *position; /* [rows]: of the query */
    const size_t *slot;     /* [rows]: of its states, on its rank */
    const size_t *begun;    /* [rows, pictures]: where each does; SIZE_MAX: there is none */
    const float *given;     /* [rows, ...]: what is read that is no words; NULL: drawn */
    const int32_t *page;    /* [rows, table]: on its rank */
    size_t table, page_tokens, pages, slots; /* pages, slots: of a rank */
    size_t places;                           /* for what is read, of a rank */
    size_t width;                            /* words of a row */
    const size_t *read;                      /* [slots]: words of each that it has read */
    size_t first;                            /* row of this rank */
    const size_t *score;                     /* rows on their rank whose scores are wanted */
    size_t first_score;                      /* of this rank */
    float *scores;                           /* of all rows, for what is sampled */
} train_feed;
/* The row of a cache [pages, places of a page, ...] on a rank, whose places begin at first_place of
 * a page, that holds a position of row r of all; pages x places: it is on another rank. */
size_t train_cache_row(const train_feed *feed, size_t r, size_t position, size_t first_place,
                       size_t places);

/* Learning from pairs: of all answers what the reference says, -log p; of the sequences of the
 * microbatch at hand -log p, and of the batch what a token's counts in the loss. */
typedef struct train_pairs {
    double *reference, *nll, *weight;
    size_t first; /* sequence of this rank in the microbatch */
    bool scoring; /* for the reference */
} train_pairs;

struct sm_trainer {
    const sm_train_setup *setup;
    sm_communicator *world;
    sm_rank_mesh *mesh;
    double handed_bytes;                  /* to other stages, so far */
    sm_communicator *peers[SM_MOST_TIES]; /* of stages that hold the same weights, or NULL */
    /* Where the optimizer's state is there several times: over axes with data the ranks of one
     * copy, and over data those with the same part of each; NULL where it is not. */
    sm_communicator *one_copy[1 << SM_AXIS_COUNT], *across_copies;
    sm_program_extent extent; /* of all sequences of a microbatch */
    int lists;
    sm_task_list list[TRAIN_LISTS]; /* kinds, then the other pieces in their order */
    sm_arena *texts;
    const sm_text_lines *lines[TRAIN_LISTS]; /* of the lists */
    train_turns turns[TRAIN_LISTS];
    train_numbers numbers[TRAIN_LISTS];
    sm_actions actions;
    sm_stage stage; /* its layers, weights and what they hold */
    int messages;
    train_message *message;
    int step;         /* at hand */
    uint64_t updates; /* of the optimizer so far */
    train_adam adam;  /* of this step */
    train_codes codes;
    double loss; /* this rank's share of the sum over tokens, or pairs */
    train_pairs pairs;
    double time_s[SM_TRAIN_TIME_COUNT];
    memory_account memory;
    train_times ops, moves, all_ops, all_moves; /* of this step; of all since they were forgotten */
    int times_of;                               /* steps in the latter */
    const sm_program_task *busy;                /* the task at hand, NULL: none */
    const sm_task_list *busy_list;
    bool busy_again;
    double busy_since_s, inside_s; /* inside: its kernels and collectives so far */
    train_traffic rows_before;     /* when rows of gradients began to be reduced */
    double ring_bytes;             /* most of the blocks that ring attention has held */
    /* generating: the program is that of serving, for what is fed */
    bool serving;
    size_t source; /* positions that another stack reads first; 0: there is one stack */
    size_t ahead;  /* training: words that it alone reads */
    size_t seen;   /* rows of pictures that come before words: words from V on stand for them */
    size_t pictures, each, side; /* of so many, a picture's rows, and its rows and columns */
    bool reads;                  /* that stack is at work, or what is made of its text once */
    const train_feed *feed;
    double scored; /* rows of a pass whose scores are wanted */
};

/* An array as a kernel meets it: this rank's block and where it lies in the whole. */
typedef struct train_array {
    const sm_local_block *block;
    sm_layout layout;
    size_t offset[SM_MAX_RANK];
} train_array;
/* An op at work: an sm_call, with the places of its arrays. */
typedef struct train_call {
    sm_trainer *t;
    const sm_task_list *list;
    sm_pass_saved *saved;
    const sm_program_task *task;
    const sm_op *op;
    const sm_text_lines *lines;
    const sm_text_line *line; /* that the op is made from */
    const train_numbers *numbers;
    int layer; /* its number */
    bool ring;
    train_array in[SM_MAX_OPERANDS];
    const sm_local_block *input[SM_MAX_INPUTS];
    sm_local_block *out;
    size_t out_offset[SM_MAX_RANK];
    int which; /* backward: the input whose gradient is wanted */
} train_call;

/* ---- train_arrays.c ---- */
size_t train_local_size(const sm_trainer *t, double whole, const sm_layout *layout, int dim);
void train_offsets(const sm_trainer *t, const sm_layout *layout, const sm_local_block *b,
                   size_t *offset);
double train_degree(const sm_trainer *t, sm_axes axes);
/* Is the rank at these coordinates the first of those of its stage that hold the same block? */
bool train_is_first(const sm_layout *layout, const int *at);

/* ---- train_data.c ---- */
/* Word at a position of a sequence of the batch at hand. sequence: in the microbatch. */
int train_word(const sm_trainer *t, size_t sequence, size_t position);
/* The word that follows it, or, of a model that sees both ways, the one that a mask hides there;
 * -1: none is hidden. */
int train_target(const sm_trainer *t, size_t sequence, size_t position);
/* What is given beside words, or instead of them: numbers in [-1, 1) drawn as bytes are, or those
 * of the setup. */
void train_give(const sm_trainer *t, const sm_call *call);
/* Of the whole batch: tokens, or pairs. */
double train_targets(const sm_trainer *t);
/* The number of a sequence of the microbatch in its batch. */
size_t train_sequence(const sm_trainer *t, size_t sequence);
/* What -log p of a token of a sequence counts in the loss. */
double train_weight_of(const sm_trainer *t, size_t sequence);
/* Of an answer behind its prompt; target: -1 where nothing, or the prompt, is told. */
int train_pair_byte(const sm_trainer *t, size_t sequence, size_t position);
int train_pair_target(const sm_trainer *t, size_t sequence, size_t position);
sm_status train_pairs_new(sm_trainer *t, sm_error *err);
void train_pairs_free(sm_trainer *t);
/* Ranks that share the tokens and words of each sequence. */
sm_axes train_within_sequence(const sm_trainer *t);
/* -log p of the sequences at hand is all there on this rank and those that share them: the loss of
 * their pairs, and what their tokens count. */
sm_status train_pairs_told(sm_trainer *t, sm_error *err);
/* The place in its sequence of the first byte of a pass: 0 in training. */
size_t train_position(const sm_trainer *t, size_t sequence);

/* ---- kernels: out is of the right size and holds anything; that of attention is zeroed ---- */
static inline void train_clear(sm_local_block *b) {
    memset(b->data, 0, sm_local_block_count(b) * sizeof(float));
}
sm_status train_forward_kernel(train_call *c, sm_error *err);
sm_status train_gradient_kernel(train_call *c, sm_error *err);
sm_status train_attention_forward(train_call *c, sm_error *err);
sm_status train_attention_backward(train_call *c, sm_error *err);
/* A line of pointwise operators, norms and rotary positions; its gradient in one input. */
sm_status train_expression(train_call *c, sm_error *err);
sm_status train_expression_back(train_call *c, sm_error *err);
/* A kernel of lines that carry states along positions or chunks of them; its gradients. */
sm_status train_scan(train_call *c, sm_error *err);
sm_status train_scan_back(train_call *c, sm_error *err);
void train_choose(train_call *c);
void train_choose_back(train_call *c);
/* Arrays behind each other, rows left out, views, means; the gradient of input `which`. */
void train_rows(train_call *c);
void train_dispatch(train_call *c);
void train_dispatch_backward(train_call *c);
void train_combine(train_call *c);
void train_combine_backward(train_call *c);
sm_status train_loss_forward(train_call *c, sm_error *err);
void train_loss_backward(train_call *c);

/* ---- train_numbers.c ---- */
/* Of pieces of a kind of the architecture. */
void train_numbers_read(const sm_model *model, int kind, train_numbers *out);
/* The table of a program that turns queries and keys. */
sm_status train_turns_new(sm_trainer *t, int number, const sm_program *b, sm_error *err);
void train_turns_free(sm_trainer *t);

/* ---- train_ring.c ---- */
/* Keys and values come as they are stored, and their gradients arrive there. */
sm_status train_ring_forward(train_call *c, sm_error *err);
sm_status train_ring_backward(train_call *c, sm_error *err);

/* ---- train_setup.c ---- */
sm_status train_check_model(const sm_train_setup *s, bool serving, sm_error *err);
/* Parts that the sequences of a batch, or of a pass, are dealt out to. */
int train_batch_ways(const sm_train_setup *s);
/* The mesh and its groups. */
sm_status train_mesh_new(sm_trainer *t, sm_error *err);

/* ---- train_cache.c ---- */
/* New keys and values behind those already there. */
sm_status train_append(sm_trainer *t, const sm_call *c, sm_error *err);

/* ---- train_generate.c ---- */
sm_status generate_attention(train_call *c, sm_error *err);

/* ---- train_generate.c: calls of a stage that serves ---- */
sm_status generate_select(const sm_trainer *t, sm_local_block *stream, sm_error *err);
sm_status generate_scores(const sm_trainer *t, const sm_call *head, sm_error *err);

/* ---- train_state.c ---- */
sm_status train_load_part(sm_trainer *t, sm_train_part part, sm_train_visit find, void *context,
                          sm_error *err);

/* ---- train_programs.c ---- */
sm_status train_programs_new(sm_trainer *t, sm_error *err);
/* Those of the layers and of the embedding, which come before that of the head. */
sm_status train_layer_programs(sm_trainer *t, sm_error *err);
sm_status train_head_program(sm_trainer *t, sm_error *err);
void train_programs_free(sm_trainer *t);

/* ---- train_weights.c ---- */
/* What a weight of a program is stored in; of a scaled type also the numbers that share a scale.
 * number: of the program's list. */
sm_element train_weight_element(const sm_trainer *t, int number, const sm_program *b, int tensor,
                                size_t *box);
sm_status train_layers_new(sm_trainer *t, sm_error *err);
void train_layers_free(sm_trainer *t);

/* ---- train_optimizer.c ---- */
void train_codes_new(train_codes *codes);

/* ---- train_peers.c ---- */
int train_copies(const sm_train_setup *s); /* of the model */
/* The groups that state_copies asks for. Made by every rank at once. */
sm_status train_state_copies_new(sm_trainer *t, sm_error *err);
sm_status train_check_copies(const sm_train_setup *s, sm_error *err);
sm_status train_peers_new(sm_trainer *t, sm_error *err);

/* ---- train_tied.c ---- */
/* The head's copy becomes the embedding, where both are on this stage. */
void train_tie_weights(sm_trainer *t);

/* ---- train_optimizer.c ---- */
/* The groups of a layer, and what the optimizer keeps of each. */
sm_status train_moments_new(sm_trainer *t, sm_step_layer *layer, sm_error *err);
void train_moments_free(sm_step_layer *layer);
double train_norm_share(const sm_trainer *t); /* sum of squares, shared out over replicas */
sm_status train_update(sm_trainer *t, double rate, double scale, sm_error *err);
/* What a group's rows are packed from, unpacked to and updated by. */
void train_row_call(sm_trainer *t, const sm_call *c);
sm_status train_join_rows(void *context, const sm_row_move *m, sm_error *err);
/* The weights of a layer as the optimizer has them, or a moment of Adam of them, between blocks of
 * single precision as the weights lie and where they are kept. Made by every rank that holds the
 * layer. */
void train_stored_out(const sm_step_layer *layer,
                      sm_local_block *block); /* as the layer has them */
sm_status train_state_out(sm_trainer *t, sm_step_layer *layer, sm_train_part part,
                          sm_local_block *block, sm_error *err);
sm_status train_state_in(sm_trainer *t, sm_step_layer *layer, sm_train_part part,
                         const sm_local_block *block, sm_error *err);

/* ---- train_step.c ---- */
/* The block is taken, and lives until it has arrived. */
sm_status train_send(void *context, int stage, int tag, bool backward, sm_local_block *block,
                     sm_error *err);
sm_status train_receive(void *context, int stage, int tag, sm_local_block *block, sm_error *err);
/* The actions of a stage (NULL: all microbatches), and its messages to their end. */
sm_status train_run_stage(sm_trainer *t, const sm_train_action *action, int n, sm_error *err);
sm_status train_add_loss(sm_trainer *t, const sm_program *b, const sm_local_block *sums,
                         sm_error *err);

/* ---- train_actions.c ---- */
/* What the interpreter of a step (step.h) calls on this rank, and its stage. */
void train_actions_new(sm_trainer *t);

/* ---- train_times.c ---- */
void train_task_begins(sm_trainer *t, const sm_task_list *list, const sm_program_task *task,
                       bool again);
void train_task_ends(sm_trainer *t);
/* The kernel of the task at hand; inside_s: that of the trainer when it began. */
void train_kernel_took(sm_trainer *t, const sm_op *op, double begun_s, double inside_s);
/* An array that a kernel moved itself: seconds of waiting. */
void train_kernel_moved(sm_trainer *t, int tensor, bool gradient, sm_collective op, double bytes,
                        double seconds);
/* sm_local_block_step of an array of the task at hand, counted. */
sm_status train_move(void *context, const sm_move_call *move, sm_local_block *result,
                     sm_error *err);
void train_outside_took(sm_trainer *t, train_outside what, double seconds);
/* The same with its collectives since `before`, which are counted for themselves: returns what is
 * left. */
double train_step_end_took(sm_trainer *t, train_outside what, double begun_s,
                           const train_traffic *before);
void train_times_begin(sm_trainer *t);
void train_times_end(sm_trainer *t);

/* ---- train_bytes.c ---- */
/* What went through the groups of this rank so far, and from it to other stages. */
void train_traffic_now(const sm_trainer *t, train_traffic *out);
/* Bytes and seconds of each collective since then. */
void train_traffic_since(const sm_trainer *t, const train_traffic *then, double *bytes,
                         double *seconds);
void train_bytes_predicted(const sm_trainer *t, double *bytes);

/* Causal attention one head of one sequence at a time, as products of BLAS on rows
 * that stand apart. Where queries, keys and values have their sequences, heads and rows follows
 * from the dimensions the op gives them: q [B,T,K,G,H] with k [B,S,K,H] and v [B,S,K,J], or the two
 * products of latent attention, q [B,T,K,H] with k [B,S,K,H] and q2 [B,T,K,Y] with k2 [B,S,Y]. */
enum {
    ATTENTION_Q,
    ATTENTION_KEYS,
    ATTENTION_VALUES,
    ATTENTION_OUT,
    ATTENTION_Q2,
    ATTENTION_KEYS2,
    ATTENTION_SINKS,     /* a logit of each head, or nothing */
    ATTENTION_DISTANCES, /* a table of what scores gain, a row for some distances, or nothing */
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
    bool both;        /* also those behind it; a window is then half before, half behind */
    long window, chunk;
    long tile, side;     /* of a picture, of so many rows: keys in the query's square; 0: none */
    long first_query;    /* its position, where chunks begin at 0 */
    long pictures, each; /* so many, side by side one, whose rows see each other; rows of each */
    const size_t *begun; /* where each does; NULL: one behind the other */
} attention_mask;

typedef struct attention_head {
    attention_rows x[ATTENTION_ARRAYS], d[ATTENTION_ARRAYS]; /* and their gradients */
    int queries, keys, size, size2, value_size;              /* size2 0: one product */
    long ahead; /* position of the first query less that of the first key */
    attention_mask mask;
    const int16_t *bucket; /* row of each distance from -SM_RUN_DISTANCES on */
    size_t row;            /* number of its first query among those of all heads */
    size_t sequence;       /* of this rank */
    float *p, *dp;         /* room for queries x keys, each */
    float *capped;         /* the same, of scores over their cap; NULL without one */
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
    int16_t bucket[2 * SM_RUN_DISTANCES + 1];
    size_t keys;           /* those that are there: a cache has room for more */
    const size_t *lengths; /* of each sequence, of whose keys the rest pads; NULL: none does */
    int at_once;           /* queries of a panel */
    float *room;           /* attention_room_count numbers */
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
/* Some queries of a head at a time (at_once), with the keys that any of them may see:
 * what the mask hides from all of them is not multiplied. p and dp have room for these; queries
 * that see no key are left out. */
void attention_each_panel(const attention_blocks *b,
                          void (*work)(const attention_head *panel, void *context), void *context);

/* The end of the picture that a position is of, and of those right behind it; 0: of none. */
long attention_picture_end(const attention_mask *m, long position);
/* Query i of the head may see keys [from, returned). */
size_t attention_seen(const attention_head *h, int query, size_t *from);
/* Adds to the scores of n keys, from key `from` on, the slope of a head times the distance, and
 * what a table has for it. */
void attention_add_distances(const attention_head *h, int query, size_t from, size_t n,
                             float *score);
/* p = scale q k', of both products, sloped and capped. */
void attention_scores(const attention_head *h);
/* A block of keys joins those before it: out is the sum of exp(s - most) v over all of them, `sum`
 * without v, most the largest s; of each query. */
void attention_join(const attention_head *h, float *most, float *sum);
/* Row i of p becomes exp(s - most) of what it sees, else 0; returns the sum. */
float attention_exponentials(const attention_head *h, int i, float most);
/* From the probabilities p, adds to the gradients of q, k, v and sinks. dots: for each query the
 * sum of out x d out, which is that of p x dp over all keys; NULL: all keys are here. */
void attention_slopes(const attention_head *h, const float *dots);

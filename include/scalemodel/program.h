/* program: a Transformer as ordered ops over arrays with named dimensions. Forward ops are built
 * from the model, backward ops are derived from them, and the partition turns both, by the algebra
 * of shard, into local work and collectives whose sizes are products of dimensions divided by mesh
 * axes. Every parallelism is nothing but a sharding of this program. */
#pragma once
#include "scalemodel/attention.h"
#include "scalemodel/model.h"
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN

/* A dimension of a program: its letter, its size of one sequence, and its role, which alone says
 * which mesh axes may cut it. Slots of an expert scale with the sequences. In a program of serving
 * positions and keys are of one query and one key. */
typedef struct sm_program_dimension {
    char name[12];
    sm_dimension_role role;
    double size;
} sm_program_dimension;
typedef uint64_t sm_dimensions; /* a set of them: bit i = dim[i] of the program */
enum { SM_MAX_DIMENSIONS = 64 };

/* Mesh axes a program can be sharded over. A tensor degree beyond the KV heads is carried by a
 * second axis (tensor_q), which shards the query heads of each KV head, so that K and V are
 * replicated over it; what divides neither by a third (tensor_w), which shards widths and the
 * vocabulary alone, so that the work of heads is done on each of its chips: the algebra stays
 * exact. */
#define SM_PROGRAM_AXES(X)                                                                         \
    X(DATA, "data", "a")                                                                           \
    X(FSDP, "fsdp", "f")                                                                           \
    X(EXPERT, "expert", "e")                                                                       \
    X(CONTEXT, "context", "c")                                                                     \
    X(TENSOR_W, "tensor_w", "w") X(TENSOR, "tensor", "t") X(TENSOR_Q, "tensor_q", "q")
#define SM_AXIS_ID(id, ...) SM_AXIS_##id,
typedef enum sm_program_axis { SM_PROGRAM_AXES(SM_AXIS_ID) SM_AXIS_COUNT } sm_program_axis;
#define SM_BIT(axis) ((sm_axes)(1u << (axis)))
enum {
    SM_AXES_TENSOR = (1u << SM_AXIS_TENSOR) | (1u << SM_AXIS_TENSOR_Q) | (1u << SM_AXIS_TENSOR_W)
};

/* CACHE: keys and values held from one step of serving to the next; STATE: what a scan holds, of
 * fixed size. */
typedef enum sm_role {
    SM_ROLE_ACTIVATION,
    SM_ROLE_WEIGHT,
    SM_ROLE_IDS,
    SM_ROLE_CACHE,
    SM_ROLE_STATE
} sm_role;

/* y = x W + (x A) B: A, x A, B, what is added, and the sum. */
typedef enum sm_adapter {
    SM_ADAPTER_NONE,
    SM_ADAPTER_A,
    SM_ADAPTER_LOW,
    SM_ADAPTER_B,
    SM_ADAPTER_ADDED,
    SM_ADAPTER_SUM
} sm_adapter;

/* An array of the program. elements counts one sequence where the array has a B or C dimension
 * (then it scales with the number of sequences). at[i]: axes that shard dimension i where the array
 * is stored. */
typedef struct sm_tensor {
    char name[20];
    sm_role role;
    int rank;
    uint8_t dim[SM_MAX_RANK]; /* of the program's table */
    sm_axes at[SM_MAX_RANK];
    double elements;
    bool per_sequence;
    double bytes_per_element;
    int producer;       /* forward op that writes it, -1: an input or a weight */
    bool norm;          /* a weight without matmul work (norms, biases) */
    sm_adapter adapter; /* what of an adapter, */
    int beside;         /* and the tensor of the weight beside which that stands */
    bool fixed;         /* a weight that is not trained: no gradient reaches it */
    bool narrow;        /* a weight that is stored as sm_rules.stored says */
    bool tied;          /* a weight of an earlier piece */
    int of, there;      /* the piece whose array it is (architecture.h), -1: this one's; which */
    double share;       /* of a weight: see sm_weight_class */
    bool typed;         /* a cache in a type of its own, whatever that of the others */
    bool kept;          /* a cache or state that this piece itself holds from step to step */
    sm_axes unreduced;  /* stored as partial sums over these: added to others, then reduced once */
} sm_tensor;

typedef enum sm_op_kind {
    SM_OP_EINSUM,    /* matrix unit */
    SM_OP_ATTENTION, /* fused softmax(QK)V: in = q, k, v */
    SM_OP_VECTOR,    /* norms, activations, rotary, residuals, routing: bytes and vector FLOPs */
    SM_OP_GATHER,    /* embedding lookup: rows, no FLOPs */
    SM_OP_KERNEL     /* several lines as one: scans, indexers, products of three and more. FLOPs of
                        all, bytes of arguments, results and state; run again backward */
} sm_op_kind;

/* What a vector op or a gather computes, and which matrix products are special. Who executes or
 * prices an op goes by this and never by its name. */
typedef enum sm_function {
    SM_FUNCTION_NONE,     /* a matrix product, attention */
    SM_FUNCTION_ABSORBED, /* a matrix product of one token alone: into or out of the low rank of the
                             cache of latent attention */
    SM_FUNCTION_LOOKUP,   /* rows of a table */
    SM_FUNCTION_NORM,
    SM_FUNCTION_ROTATE, /* rotary positions; may norm first */
    SM_FUNCTION_JOIN,   /* parts of a head, side by side */
    SM_FUNCTION_GATE,   /* act(first input) times the second, where there is one */
    SM_FUNCTION_SOFTMAX,
    SM_FUNCTION_ADD,
    SM_FUNCTION_DISPATCH, /* tokens to the slots of their experts */
    SM_FUNCTION_COMBINE,  /* results of experts to their tokens, weighted */
    SM_FUNCTION_APPEND,   /* new keys and values to the cache */
    SM_FUNCTION_LOSS,     /* cross-entropy of logits */
    SM_FUNCTION_SAMPLE,   /* a draw from the softmax of logits */
    SM_FUNCTION_VIEW,     /* the same elements in another shape: no kernel */
    SM_FUNCTION_OTHER
} sm_function;

/* In what whoever executes a program holds an array of it. */
sm_element sm_tensor_element(const sm_tensor *tensor);
/* Ops or arrays of a program, a bit each: of arrays those that are no weights, which come first. */
__extension__ typedef unsigned __int128 sm_bits;
enum { SM_MAX_BITS = 8 * sizeof(sm_bits) };
static inline sm_bits sm_bit_of(int i) { return i < SM_MAX_BITS ? (sm_bits)1 << i : 0; }
enum { SM_MAX_LINE_ARRAYS = 512 };
enum { SM_MAX_TENSORS = 224, SM_MAX_OPS = 128, SM_MAX_INPUTS = 8, SM_MAX_WORK_TERMS = 11 };
/* What executes attention works on so many queries of a head at once, with the keys that they see:
 * the room it needs for scores. */
enum { SM_QUERIES_AT_ONCE = 128 };
/* So many rows at most src/run multiplies with a matrix as it lies, where BLAS would lay it out. */
enum { SM_FEW_ROWS = 8 };
/* What multiplies arrays of 16 bits in single precision has so much of each in it at once. */
enum { SM_PANEL_SIDE = 512, SM_PANEL = SM_PANEL_SIDE * SM_PANEL_SIDE };
typedef struct sm_op {
    char name[20];
    sm_op_kind kind;
    sm_function function;
    int inputs, in[SM_MAX_INPUTS], out;
    uint8_t as[SM_MAX_INPUTS][SM_MAX_RANK]; /* dimensions of each input as the op names them: keys
                                               where the array has positions */
    uint16_t reads;                         /* inputs its backward reads (bit i = in[i]) */
    bool reads_output;
    double flops_per_element; /* vector ops, per element of the output */
    double passes[2];         /* vector ops of several kernels: traffic of the output in units of
                                 the array, forward and backward; 0: one pass */
    double matrix_flops;      /* a kernel, of one sequence */
    double keys;              /* attention: keys a query meets on average under the mask */
    double window, chunk;     /* attention: the reach of its mask, 0: none */
    double query_size, value_size; /* attention: elements of a query, of a value */
    int values;       /* attention: the input that is V; pairs of inputs, queries and keys,
                         come first. One that is also a key is read once */
    int chosen;       /* attention: the input that says which keys to attend to, -1: none */
    bool scales;      /* vector ops: the first input times what is made of the others: of partial
                         sums, those of the product */
    int state;        /* a kernel: tensor it carries from step to step, -1: none */
    uint8_t in_place; /* vector ops: inputs (bit i) that are already where the output wants
                         them: neither read nor written */
    int line;         /* of the lines it was made from (architecture.h), the first of it */
    bool once;        /* of a step that decodes: it ran when the sequence began */
} sm_op;

/* What is trained of a layer's matrices when adapters are (sm_rules.lora). */
typedef enum sm_lora_targets {
    SM_LORA_ALL,       /* of attention, MLP and experts; not the router */
    SM_LORA_ATTENTION, /* those that make queries, keys and values, and the one behind attention */
    SM_LORA_MLP,       /* of MLP and experts */
    SM_LORA_QV         /* those that make queries and values (Hu et al., arXiv 2106.09685) */
} sm_lora_targets;
/* In what the matrices of layers are stored and gathered. nf4: 4 bits and constants of blocks of 64
 * that are quantised themselves, 0.127 bits (QLoRA, arXiv 2305.14314, section 3). int8 and nf4 are
 * unpacked to 16 bits before each product by a kernel of their own; fp8 is multiplied as it is. */
typedef enum sm_stored_as {
    SM_STORED_BF16,
    SM_STORED_FP8,
    SM_STORED_INT8,
    SM_STORED_NF4,
    SM_STORED_AS_COUNT
} sm_stored_as;
extern const double sm_stored_as_bytes[SM_STORED_AS_COUNT];

/* How the program is sharded: which dimension each axis takes, beyond what the axis names say. */
typedef enum sm_context_by { SM_CONTEXT_RING, SM_CONTEXT_GATHER, SM_CONTEXT_HEADS } sm_context_by;
/* What the tensor chips beyond the KV heads (tensor_q) hold of the cache: a copy each; other
 * sequences (queries and results move by all-to-all); other positions (partial softmaxes are
 * joined). */
typedef enum sm_cache_by { SM_CACHE_COPIES, SM_CACHE_BATCH, SM_CACHE_SEQUENCE } sm_cache_by;
typedef struct sm_rules {
    bool seq; /* residual stream sharded over tensor along T (sequence parallelism) */
    bool
        expert_tensor; /* tensor shards the width of each expert; otherwise it holds more experts */
    sm_context_by context_by;
    bool heads_copied;   /* tensor_w has chips; false: the program does not speak of it */
    bool weights_spread; /* weights are sharded over fsdp, the chips of a sequence and, those
                            outside experts, the chips of experts (as torch's FSDP2, MaxText) */
    bool table_gathered; /* tensor splits the tokens of a look-up, not the table's rows */
    int lora; /* rank of adapters beside matrices: y = x W + (x A) B, of which A and B alone are
                 trained (arXiv 2106.09685); 0: the weights themselves are */
    sm_lora_targets targets;
    sm_stored_as stored;
    int attention; /* SM_ATTENTION_*; unfused: probabilities are arrays in memory */
    int capacity;  /* slots of an expert in per cent of C, whoever wants them; 0: C = top_k/E T */
    bool norms_apart; /* norms as separate kernels: what lies between them is in memory, in fp32 */
    /* Of the software that executes the program; all false: mixed precision, fused kernels. */
    int width;        /* bytes of an element of every array, with sums of exponentials in double; 0:
                         as mixed precision has them */
    bool all_slots;   /* a slot of every expert for each token of a chip, so that none is dropped:
                         C = T */
    bool all_keys;    /* attention multiplies masked keys too */
    bool slow_exp;    /* exponentials are polynomials of the vector unit, with FLOPs of their own */
    bool each_weight; /* weights and their gradients travel array by array, not in buckets */
    bool each_line; /* every line is an op: biases, sinks and choices of experts do not ride along,
                       and a choice is the share of each expert, 0 of those not chosen */
    /* Of serving alone. decode: one query a sequence, so that context shards the cache and not the
     * queries. stationary: fsdp shards weights and the residual stream along D and nothing is
     * gathered (2D weight-stationary, Pope et al. 2022). absorbed: latent attention on the
     * compressed cache. */
    bool decode, stationary, absorbed;
    int read; /* positions that a pass reads at once, of a model that sees both ways; 0: a query */
    sm_cache_by cache_by;
} sm_rules;

/* The axes that shard weights, of experts or outside, beside those of tensor and experts: what they
 * shard is gathered where it is used, its gradients are reduced over them in every microbatch. */
static inline sm_axes sm_weight_shards(const sm_rules *rules, bool expert) {
    unsigned spread = SM_BIT(SM_AXIS_CONTEXT) | (expert ? 0u : SM_BIT(SM_AXIS_EXPERT));
    return (sm_axes)(SM_BIT(SM_AXIS_FSDP) | (rules->weights_spread ? spread : 0));
}

/* One piece of the model: a layer of one kind, or a piece outside of layers: the first is the
 * embedding (kind 0), those between stacks follow (kind 1, ...), the last is the head with its
 * loss. */
typedef enum sm_piece { SM_PIECE_LAYER, SM_PIECE_EMBEDDING, SM_PIECE_HEAD } sm_piece;
typedef struct sm_program {
    char name[24];
    int dims;
    sm_program_dimension dim[SM_MAX_DIMENSIONS];
    sm_dimensions of_role[SM_DIMENSION_ROLE_COUNT];
    sm_axes takes[SM_MAX_DIMENSIONS]; /* tensor axes that a dimension may take */
    double top_k;
    bool serving; /* of one query and one key, see sm_program_build_serving */
    sm_rules rules;
    int tensors, ops;
    int input, output; /* the residual stream in and out; -1 if none */
    int lent;          /* what an earlier stack or layer made, as this piece reads it; -1: none */
    bool still;        /* it has weights alone, which others read */
    double fixed;      /* elements of weights that no gradient reaches, whole on every chip */
    double rides;      /* of weights that only epilogues read, where no other weight has them */
    /* The tensor that each array of the lines is; -1: of none (inside a kernel, in an epilogue). */
    int16_t tensor_of[SM_MAX_LINE_ARRAYS];
    /* So many are set. */
    sm_tensor tensor[SM_MAX_TENSORS];
    sm_op op[SM_MAX_OPS];
} sm_program;
/* All axes in the order in which they cut a dimension, the major one first: SM_AXIS_COUNT of them.
 */
const uint8_t *sm_program_axis_order(const sm_program *program, int dim);
/* What a program is executed or priced for. Sequences are of all chips; queries and keys (positions
 * of a sequence; room of its cache) count in a program of serving alone: training has its own. */
typedef struct sm_program_extent {
    double sequences, queries, keys;
} sm_program_extent;
/* The size of every dimension of the program for that; size has room for SM_MAX_DIMENSIONS. */
void sm_program_sizes(const sm_program *program, const sm_program_extent *extent, double *size);
/* Build the program of a layer of one kind, of the embedding or of the head, from its lines
 * (architecture.h), for a sequence of T tokens. kind is ignored for the latter two.
 *
 * Partial sums over tensor are added before they are reduced, in training as in serving: parallel
 * branches, shared and routed experts make one all-reduce (seq: reduce-scatter) of the residual
 * stream, whatever top_k is; seq in training shares out the routed tokens, whose sums are then
 * reduced before they are combined. Backward the gradient of a sum is that of its terms, moved
 * once, and partial gradients of routed tokens are added to those of the stream. SM_BAD_INPUT
 * with the place where a text is wrong for these sizes; SM_INTERNAL on more ops or arrays than fit.
 */
sm_status sm_program_build(const sm_model *model, sm_piece piece, int kind, double T,
                           const sm_rules *rules, sm_program *program, sm_error *err);

/* Which of the model's lists of lines (lines_of) a piece is made from. */
int sm_program_at(const sm_model *model, sm_piece piece, int kind);
/* The lines of one of these lists, for sequences of T tokens; 0: as sm_program_build_serving has
 * them. Those of training are the same under all rules, for whoever builds a program under several.
 */
sm_status sm_program_lines(const sm_model *model, int at, double T, const sm_rules *rules,
                           sm_arena *arena, const sm_text_lines **out, sm_error *err);
sm_status sm_program_of_lines(const sm_text_lines *lines, const sm_rules *rules,
                              sm_program *program, sm_error *err);

/* The same sharding for programs as the runtime (run_train.h) executes them: single precision, all
 * slots, all keys, weights one by one, an op for every line. */
sm_rules sm_rules_of_runtime(sm_rules rules);

/* ---- what the runtime can run ---- */
enum { /* operators of a line and their arguments, experts, lines and states of a scan, distances
          that a table may tell apart */
       SM_RUN_TERMS = 24,
       SM_RUN_ARGUMENTS = 3,
       SM_RUN_EXPERTS = 1024,
       SM_RUN_LINES = 48,
       SM_RUN_DISTANCES = 256,
       SM_RUN_STATES = 4
};
/* Is it read at once and whole, since it sees both ways, and what it makes of each position told?
 */
bool sm_model_reads(const sm_model *model);
/* Does its last piece make one of all positions, which is left out of what is told? */
bool sm_model_pools(const sm_model *model);
/* An array that a stack ended in, or a layer made, and others than the next layer read: between the
 * stages of a pipeline it travels beside the residual stream. Parts of a model are numbered as in
 * sm_step_layer (step.h). */
typedef struct sm_loan {
    int of,
        there;    /* the piece whose array it is (architecture.h), which; -1: where a stack ended */
    int by, last; /* the part that made it, or begins the stack behind it, and its last reader */
    int list;     /* of a reader: a kind of layer, or behind these a piece outside of layers */
} sm_loan;
enum { SM_MOST_LOANS = 64 };
/* What a model lends; program: of each list. SM_INTERNAL when it is more than SM_MOST_LOANS. */
sm_status sm_program_loans(const sm_model *model, const sm_program *const *program, int *n,
                           sm_loan *loan, sm_error *err);
/* Does it travel from the stage before this layer to that of the layer? */
bool sm_loan_crosses(const sm_model *model, const sm_loan *loan, int layer);
/* The layer before which most of them cross; 0: none does. */
int sm_loans_widest(const sm_model *model, const sm_loan *loan, int n);
/* The list of a part; does it stand before this layer? */
int sm_model_list(const sm_model *model, int part);
bool sm_model_stands_before(const sm_model *model, int part, int layer);
/* The rules of serving that a pass of the runtime goes by: a query of each sequence, or so many
 * positions of a model that reads. */
sm_rules sm_rules_of_pass(const sm_model *model, int tokens);
/* SM_BAD_INPUT tells what the model has that cannot be run on sequences of so many tokens, whatever
 * the plan. serving: to generate, or, of a model without a head that chooses words, to be told what
 * it makes of each position. */
sm_status sm_program_runs(const sm_model *model, int tokens, bool serving, sm_error *err);
/* Of lines of serving: the positions of a stack that reads a text before another one writes, which
 * it works on all at once; 0: it has none of its own. The embedding, the first piece, reads too. */
size_t sm_program_source(const sm_text_lines *lines);
/* Is a line x = x + a, where x is what the piece passes on? */
bool sm_line_adds_to_stream(const sm_text_lines *lines, const sm_text_line *line);
/* The forward program of serving: of ONE query token (T = 1) against ONE cached key (S = 1), so
 * that one program stands for every length: sizes say by per_query and per_key what they grow with.
 * Slots of an expert: C = top_k / E of a token. The head is that of sampling: logits, no loss.
 *
 * Ops are the lines of the text in their order, of the phase asked for (prefill, decode; absorbed).
 * What writes the cache has the traffic of the new tokens alone. A layer that reads the cache of an
 * earlier one writes none. The head's sequences and queries are those of the positions that are
 * sampled.
 *
 * Sizes are of two-byte weights, cache and activations: scale bytes by role (sm_work.role,
 * sm_comm.role) to the dtypes of the job. Logits, router and statistics are 4 bytes. A cache in a
 * type of its own has the role of a state there: its bytes are those.
 *
 * Keys: per_key is set on the cache, on what is expanded from it, and on the FLOPs of attention.
 * FLOPs take the keys a query meets on average (sm_layer_keys of the mask), bytes the distinct keys
 * that the step's queries reach; a window bounds both.
 *
 * tensor and tensor_q: heads of keys and values fall on tensor, their groups of queries on
 * tensor_q, so that tensor divides the former and tensor_q is the rest. Where no group shares heads
 * they take both. With cache_by batch or sequence decode puts what the cache's own heads leave on
 * sequences or keys of attention; prefill leaves it on the heads, and what it gathers of the cache
 * is marked sm_comm.past. stationary: fsdp, too, holds the cache by cache_by; copies replicate it.
 * Prefill under stationary repeats attention on the chips of fsdp. decode replicates activations
 * over context; the new token is in the cache of one of its chips.
 *
 * Weight classes say what a chip stores, the unembedding too where it is tied to the embedding. */
sm_status sm_program_build_serving(const sm_model *model, sm_piece piece, int kind,
                                   const sm_rules *rules, sm_program *program, sm_error *err);

/* ---- the partitioned program: everything a product of sizes over axes ---- */
/* base / product of the degrees of mask, times the sequences of the whole mesh when per_sequence.
 * In a program of serving also times the queries of a sequence when per_query, and the keys when
 * per_key (training has them in base). */
typedef struct sm_size {
    double base;
    sm_axes mask;
    bool per_sequence, per_query, per_key;
} sm_size;

typedef enum sm_phase {
    SM_PHASE_FORWARD,
    SM_PHASE_BACKWARD_INPUT,
    SM_PHASE_BACKWARD_WEIGHT,
    SM_PHASE_COUNT
} sm_phase;
/* The name of a phase: forward, backward, backward-weight; "?" of none. Static text. */
const char *sm_phase_name(sm_phase phase);

typedef struct sm_work {
    const char *name; /* of the forward op */
    sm_op_kind kind;
    sm_function function; /* of the forward op */
    sm_phase phase;
    int op;      /* forward op it belongs to */
    bool norm;   /* of a norm with a scale */
    bool linear; /* multiplies by a weight: may run in a narrower dtype (fp8) */
    bool casts;  /* then the first to read an activation or gradient in that dtype: a norm
                    writes its result so of its own accord */
    sm_size batch, m, n, k; /* einsum: batch x [m,k] x [k,n] */
    sm_size flops;          /* matrix FLOPs (attention, einsum) or vector FLOPs */
    int terms;
    sm_size bytes[SM_MAX_WORK_TERMS]; /* what crosses HBM, in bytes */
    /* sm_role of each: serving scales weights and cache to their own dtypes. */
    uint8_t role[SM_MAX_WORK_TERMS];
    bool experts;     /* weights of routed experts: of E, only those some token chose are read */
    sm_size kv_heads; /* attention: KV heads on a chip */
    /* Attention: elements of a value; k is that of a query and of a key. */
    double value_size;
    sm_size vector_flops; /* a kernel: beside its matrix FLOPs */
    sm_size routed;       /* dispatch and combine: tokens that pass to experts or back */
} sm_work;

typedef enum sm_stream {
    SM_STREAM_BLOCKING,
    SM_STREAM_PREFETCH,
    SM_STREAM_DRAIN,
    SM_STREAM_RING
} sm_stream;
typedef struct sm_comm {
    const char *array;
    sm_collective op;
    sm_phase phase;
    sm_stream stream; /* blocking: on the path; prefetch: weights ahead of use; drain: gradients
                         behind; ring: under attention */
    sm_axes axes;
    sm_size bytes;       /* V as in shard.h */
    bool ragged;         /* an all-to-all of routed tokens */
    bool narrow;         /* feeds matmuls alone: travels in their dtype when that is 8 bits */
    bool gradient;       /* of a weight: bytes per element follow the gradient dtype */
    bool returns;        /* the gradient of the array travels, not the array */
    int forward_op;      /* the first forward op it serves */
    sm_bits forward_ops; /* all of them (bit): repeated when one of them is recomputed */
    bool repeated; /* of the backward pass: the forward pass made it too, and what it brought may
                      be kept in its place (sm_regather) */
    uint8_t role;  /* sm_role of the array */
    int arrays;    /* weights that travel together here, 1 otherwise */
    bool past;     /* cache that no axis of its tokens moves: every chip of the group has the new
                      keys already, so that only those cached before the step travel */
} sm_comm;

/* Weights that share a storage sharding and a gradient reduction. */
typedef struct sm_weight_class {
    double elements; /* global */
    double rows;     /* of these in tables of which rows are looked up, and nothing else read */
    int weights;     /* so many arrays, but for what it is joined with */
    sm_axes stored;  /* shards of the parameter: tensor, expert, fsdp */
    sm_axes partial; /* each microbatch leaves a partial gradient over these, fsdp not included */
    bool expert;
    double share; /* below 1 where layers share copies: that many of them for each layer */
    bool tied;    /* of an earlier piece: where a chip holds that piece too it is one weight, whose
                     gradients are added and reduced once */
    bool fixed;   /* no gradient reaches it: it is stored, gathered and nothing else */
    bool narrow;  /* stored as sm_rules.stored says, not in 16 bits */
} sm_weight_class;

typedef struct sm_kept_array {
    int tensor;
    sm_size bytes;
} sm_kept_array; /* an array kept for the backward pass */
enum { SM_MOST_KEPT = 2 * SM_MAX_TENSORS };

/* Of a class that layers share, what each of them keeps where the layers are cut into stages: a
 * stage has all that its layers use. 1 otherwise. */
static inline double sm_weight_share(const sm_weight_class *c, int stages) {
    double share = c->share * stages;
    return share < 1 ? share : 1;
}

enum { SM_MAX_WORK = 512, SM_MAX_COMM = 384, SM_MAX_WEIGHT_CLASSES = 16 };
/* The partition of a program, as a task list of a step (step.h) holds it. */
typedef struct sm_partition sm_partition;
/* How many comms it has: collectives of one array in one phase. */
int sm_partition_comms(const sm_partition *partition);
/* The i-th comm, 0 .. sm_partition_comms - 1. */
const sm_comm *sm_partition_comm(const sm_partition *partition, int i);
/* How many classes of weights it has. */
int sm_partition_weight_classes(const sm_partition *partition);
/* The i-th class of weights, 0 .. sm_partition_weight_classes - 1. */
const sm_weight_class *sm_partition_weight_class(const sm_partition *partition, int i);
/* Bytes of the residual stream that a piece hands on, or of what it reads of another stack or an
 * earlier layer: base 0, of nothing. */
sm_size sm_partition_handed(const sm_partition *partition, bool lent);

/* ---- walking the partition ----
 * What the partition adds up as sizes, a walk tells one task after the other, with real sizes on a
 * real mesh: both take the same road, so that what is executed is what was priced. */
typedef enum sm_task_kind {
    SM_TASK_FORWARD,         /* an op: result from its operands */
    SM_TASK_INPUT_GRADIENT,  /* a share of the gradient of one input of an op */
    SM_TASK_WEIGHT_GRADIENT, /* the gradient of a weight as it falls */
    SM_TASK_JOIN,            /* a share that is whole over `axes` is added to share `into`, which is
                                partial there: on their first chip alone */
    SM_TASK_HOME             /* a share, or the gradient of a weight, to where its tensor is stored:
                                one operand. What a weight's gradient is partial over beyond that
                                is reduced at the end of the step */
} sm_task_kind;
typedef struct sm_program_task {
    sm_task_kind kind;
    int op;       /* forward op it belongs to */
    int result;   /* tensor that is made, or whose gradient is */
    int share;    /* which partial sum of the gradient; those of equal number are added */
    int into;     /* join */
    sm_axes axes; /* join; home: over these it stays a partial sum, reduced later */
    int tensor[SM_MAX_OPERANDS];    /* of each operand of the einsum */
    bool gradient[SM_MAX_OPERANDS]; /* the operand is the gradient of that tensor, in its stored
                                       sharding */
    bool moves;       /* false: dispatch, combine of training: operands and result stay where they
                         are stored, the lowering is empty */
    sm_einsum einsum; /* arrays in their stored sharding; indices are named as dimensions */
    sm_lowering lowering;
    uint32_t ring;     /* steps of it (bit) that travel as a ring under attention: SM_STREAM_RING */
    uint32_t repeated; /* steps of it (bit) that repeat one of the forward pass: sm_comm.repeated */
} sm_program_task;
/* Anything but SM_OK stops the walk, which returns it. */
typedef sm_status (*sm_program_visit)(const sm_program_task *task, void *context, sm_error *err);
/* Forward ops in order, then their backward. The first axes of the mesh are those of
 * sm_program_axis; size: of each dimension (sm_program_sizes), for all sequences of a microbatch. A
 * program of serving has forward tasks alone. SM_BAD_INPUT when a dimension does not divide over
 * its axes. */
sm_status sm_program_walk(const sm_program *program, const sm_mesh *mesh, const double *size,
                          sm_program_visit visit, void *context, sm_error *err);

/* What the backward pass gathers again though the forward pass had gathered it: weights over fsdp,
 * activations that matmuls and attention read (over tensor with a sharded residual stream, keys and
 * values over context). The rest is kept as it arrived, from the forward pass of a microbatch to
 * its backward pass. A bit says what is kept. */
typedef enum sm_regather {
    SM_REGATHER_ALL,
    SM_REGATHER_WEIGHTS,     /* activations are kept */
    SM_REGATHER_ACTIVATIONS, /* weights are kept, as by FSDP2's reshard_after_forward=False */
    SM_REGATHER_NONE,
    SM_REGATHER_COUNT
} sm_regather;
enum { SM_KEEPS_ACTIVATIONS = SM_REGATHER_WEIGHTS, SM_KEEPS_WEIGHTS = SM_REGATHER_ACTIVATIONS };
extern const char *const sm_regather_names[SM_REGATHER_COUNT]; /* all weights activations none */
/* Is what this collective brings kept from the forward pass, so that it is not made? */
static inline bool sm_comm_is_spared(const sm_comm *c, sm_regather regather) {
    unsigned kept = c->role == SM_ROLE_WEIGHT ? SM_KEEPS_WEIGHTS : SM_KEEPS_ACTIVATIONS;
    return c->repeated && ((unsigned)regather & kept);
}

/* Is this collective of the forward pass made again for the ops (bit) that run again? Weights are
 * there then: the backward pass has them too. */
static inline bool sm_comm_runs_again(const sm_comm *c, sm_bits again) {
    bool streams = c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN;
    return c->phase == SM_PHASE_FORWARD && !streams && (again & c->forward_ops);
}

/* Recomputation: a set of forward ops whose results are not kept. `again` receives the ops that
 * really run again (those something needs), kept the arrays that must be stored. kept has room for
 * SM_MAX_TENSORS. */
typedef enum sm_recompute {
    SM_RECOMPUTE_NONE,
    SM_RECOMPUTE_SELECTIVE,
    SM_RECOMPUTE_MATMULS,
    SM_RECOMPUTE_ALTERNATE,
    SM_RECOMPUTE_FULL,
    SM_RECOMPUTE_COUNT
} sm_recompute;
extern const char *const sm_recompute_names[SM_RECOMPUTE_COUNT]; /* none selective save-matmuls
                                                                    save-alternate full */
/* The forward ops (bit) whose results a policy does not keep. selective: attention and what carries
 * scores (Korthikanti et al. 2022); save-matmuls: vector ops too; save-alternate: vector ops and
 * every second matmul, those of experts all (torchtitan's selective checkpoints of ops); full: all.
 */
sm_bits sm_recompute_set(const sm_program *program, sm_recompute policy);
/* The ops of the program that are named in "a+b+c"; names of no op are passed over. */
sm_bits sm_recompute_named(const sm_program *program, const char *names);
/* The first name that none of the programs has an op of, and its length; NULL when each has one. */
const char *sm_recompute_unknown(const sm_program *const *programs, int n, const char *names,
                                 size_t *length);
/* Close a set of ops that are not kept: *again receives those that run again, since the backward
 * pass needs their results; kept the arrays to be stored, at most SM_MOST_KEPT: activations, as
 * they are stored and, where regather keeps them, as they arrived; not weights. Returns how many.
 */
int sm_recompute_kept(const sm_partition *partition, sm_bits set, sm_regather regather,
                      sm_bits *again, sm_kept_array *kept);

/* The nominal mesh of the partition: one axis of size 2 for each program axis, so that --explain
 * can print shardings. */
const sm_mesh *sm_program_mesh(void);
SM_DECLARATIONS_END

/* plan: what training and serving share. A plan says how a model is spread over chips: degrees
 * whose product is the chips it uses, choices of what each degree shards, and where its axes lie.
 * Training adds a pipeline schedule and an optimizer (train.h), serving batches of sequences
 * (serve.h). One table has a row for each key: its text, its values, its meaning, what it shards,
 * and whose plans have it; reading, printing, help and documentation all come from that row. */
#pragma once
#include "scalemodel/cost.h"
#include "scalemodel/program.h"

SM_DECLARATIONS_BEGIN

/* ---- words of plans ---- */
/* name, bytes per parameter, of them a second copy of the weight in fp32, FLOPs of an update per
 * parameter and model width, help. Muon's 5 Newton-Schulz iterations on a momentum of m rows and at
 * least as many columns multiply it with its transpose, that with itself and the result with it:
 * 5 x 2 x (m + m + m) FLOPs an element at most (https://kellerjordan.github.io/posts/muon). */
#define SM_OPTIMIZERS(X)                                                                           \
    X(ADAM, "adam", 12.0, true, 0.0, "fp32 master weights and two fp32 moments")                   \
    X(ADAM_NO_MASTER, "adam-no-master", 8.0, false, 0.0, "two fp32 moments, weights in bf16")      \
    X(ADAM_BF16, "adam-bf16", 8.0, true, 0.0, "fp32 master weights and two bf16 moments")          \
    X(ADAM_PURE_BF16, "adam-pure-bf16", 4.0, false, 0.0, "two bf16 moments, weights in bf16")      \
    X(ADAM_8BIT, "adam-8bit", 6.0, true, 0.0, "fp32 master weights and two 8-bit moments")         \
    X(SGD, "sgd", 0.0, false, 0.0, "no state")                                                     \
    X(MUON, "muon", 8.0, true, 30.0, "fp32 master weights and one fp32 momentum")                  \
    X(LION, "lion", 8.0, true, 0.0, "fp32 master weights and one fp32 momentum")                   \
    X(ADAFACTOR, "adafactor", 4.0, true, 0.0, "fp32 master weights; moments of rows and columns")  \
    X(SGD_MOMENTUM, "sgd-momentum", 8.0, true, 0.0, "fp32 master weights and one fp32 momentum")
#define SM_OPTIMIZER_ID(id, ...) SM_OPTIMIZER_##id,
typedef enum sm_optimizer { SM_OPTIMIZERS(SM_OPTIMIZER_ID) SM_OPTIMIZER_COUNT } sm_optimizer;

#define SM_SCHEDULES(X)                                                                            \
    X(GPIPE, "gpipe", "all forwards, then all backwards")                                          \
    X(1F1B, "1f1b", "one forward, one backward (PipeDream-flush)")                                 \
    X(INTERLEAVED, "interleaved", "1F1B with v virtual stages per chip (Megatron)")                \
    X(ZB_H1, "zb-h1", "zero-bubble H1: weight gradients fill the cool-down, memory of 1F1B")       \
    X(ZB_V, "zb-v", "zero-bubble V: two chunks per chip in a V, memory of 1F1B")                   \
    X(DUALPIPE, "dualpipe", "bidirectional pipeline of DeepSeek-V3, parameters twice")
#define SM_SCHEDULE_ID(id, ...) SM_SCHEDULE_##id,
typedef enum sm_schedule { SM_SCHEDULES(SM_SCHEDULE_ID) SM_SCHEDULE_COUNT } sm_schedule;
extern const char *const sm_schedule_names[SM_SCHEDULE_COUNT];

enum {
    SM_OFFLOAD_NONE,
    SM_OFFLOAD_OPTIMIZER,
    SM_OFFLOAD_ACTIVATIONS,
    SM_OFFLOAD_BOTH,
    SM_OFFLOAD_COUNT
};
enum { SM_LOSS_WHOLE, SM_LOSS_CHUNKED };
enum { SM_MOST_LORA_RANK = 4096, SM_MOST_CAPACITY = 1000 };

/* ---- keys ---- */
/* key, name, meaning. Degrees first: their product is the number of chips used. The row of each
 * (values, what it shards, whose plans have it) is in src/plan/plan_keys.c. */
#define SM_PLAN_KEYS(X)                                                                            \
    X(DATA, "data", "groups of chips with sequences of their own and all weights")                 \
    X(FSDP, "fsdp", "chips that each weight is sharded over (training: along the batch, ZeRO-3)")  \
    X(TENSOR, "tensor", "tensor-parallel degree")                                                  \
    X(CONTEXT, "context", "chips that a sequence is split over")                                   \
    X(EXPERT, "expert", "expert-parallel degree; splits the batch outside the experts")            \
    X(PIPELINE, "pipeline", "pipeline stages")                                                     \
    X(VIRTUAL, "virtual", "chunks of layers per pipeline stage")                                   \
    X(MICROBATCH, "microbatch", "sequences per replica and microbatch")                            \
    X(ZERO, "zero",                                                                                \
      "ZeRO stage: 0, 1 (optimizer), 2 (+ gradients) or 3 (+ weights, that is fsdp)")              \
    X(STATE_COPIES, "state_copies", "copies that ZeRO keeps of the optimizer's state, over data")  \
    X(WEIGHTS_BY, "weights_by", "what fsdp does with weights: 2D stationary, or gathered")         \
    X(CACHE_BY, "cache_by", "what chips without KV heads of their own hold of the cache")          \
    X(SEQ, "seq", "residual stream sharded over tensor along the sequence")                        \
    X(EXPERT_TENSOR, "expert_tensor", "tensor shards each expert (on) or spreads experts (off)")   \
    X(CONTEXT_BY, "context_by", "how context-parallel attention sees all keys")                    \
    X(RECOMPUTE, "recompute", "what is computed again: a policy, or ops joined by +")              \
    X(REGATHER, "regather", "what the backward pass gathers again; the rest is kept as gathered")  \
    X(SCHEDULE, "schedule", "order of the pipeline's passes")                                      \
    X(OFFLOAD, "offload", "what is kept in host memory")                                           \
    X(DTYPE, "dtype", "what matmuls with weights compute in")                                      \
    X(OPTIMIZER, "optimizer", "whose state is kept")                                               \
    X(GRADIENT, "gradient", "gradients as accumulated and reduced")                                \
    X(ATTENTION, "attention", "the newest kernel, one of 2023 (flash-2) or 2022, or unfused")      \
    X(NORMS, "norms", "fused, or one kernel after another over arrays of fp32")                    \
    X(LOSS, "loss", "logits of a microbatch at once, or of an eighth of its tokens")               \
    X(EMBEDDING, "embedding", "chips of tensor look up their words' rows, or gather the table")    \
    X(LORA, "lora", "rank of adapters that are trained in place of the weights; 0: none")          \
    X(TARGETS, "targets", "matrices beside which there are adapters")                              \
    X(PARAMETERS, "parameters", "what matrices of layers are stored and gathered in")              \
    X(CAPACITY, "capacity",                                                                        \
      "slots of an expert in % of an even share, others dropped; 0: no limit")                     \
    X(ORDER, "order", "axes from the innermost, joined by .")                                      \
    X(DIMS, "dims", "order in which torus dimensions are filled, joined by .")                     \
    X(LAYOUT, "layout", "layers of each chunk of the pipeline, joined by .; 8*14: 14 times 8")
#define SM_PLAN_ID(id, ...) SM_PLAN_##id,
typedef enum sm_plan_key { SM_PLAN_KEYS(SM_PLAN_ID) SM_PLAN_KEY_COUNT } sm_plan_key;
enum {
    SM_PLAN_DEGREES = 6,
    SM_PLAN_OPS_TEXT = 160,
    SM_PLAN_LAYOUT_TEXT = 96,
    SM_PLAN_MOST_DEGREE = 1 << 20
};

/* Whose plan it is: which keys it has, and what a key that is left out means. */
typedef enum sm_plan_use { SM_PLAN_TRAINING, SM_PLAN_SERVING, SM_PLAN_USES } sm_plan_use;

typedef struct sm_plan {
    sm_plan_use use;
    uint64_t given; /* bit per key: fixed by the user; the search chooses the others */
    int data, fsdp, tensor, context, expert, pipeline; /* the degrees, at least 1 each */
    int virtual_stages, microbatch, zero, state_copies;
    bool gathered; /* serving: fsdp gathers weights for each layer; else 2D weight-stationary */
    bool seq, expert_tensor;
    sm_cache_by cache_by;
    sm_context_by context_by;
    sm_recompute recompute;
    sm_regather regather;
    sm_schedule schedule;
    int offload; /* SM_OFFLOAD_* */
    sm_dtype dtype;
    sm_optimizer optimizer;
    sm_dtype gradient;
    int attention;       /* SM_ATTENTION_* */
    bool norms_apart;    /* norms=separate */
    int loss;            /* SM_LOSS_WHOLE or _CHUNKED */
    bool table_gathered; /* embedding=gathered */
    int lora;            /* rank, 0: all weights are trained */
    sm_lora_targets targets;
    sm_stored_as parameters;
    int capacity;                   /* of experts, in per cent of an even share; 0: no limit */
    uint8_t order[SM_PLAN_DEGREES]; /* keys DATA..PIPELINE, innermost first */
    uint8_t dims[3];                /* torus dimensions in filling order */
    uint8_t dims_named;             /* so many of them stand in the plan's text */
    char recompute_ops[SM_PLAN_OPS_TEXT]; /* a set of ops joined by '+', "" when recompute is a
                                             named policy */
    char layout[SM_PLAN_LAYOUT_TEXT];     /* "7.8*14.6"; "": as evenly as they divide */
} sm_plan;

/* How the value of a key is written. */
typedef enum sm_plan_value {
    SM_PLAN_VALUE_INTEGER,   /* lowest .. highest */
    SM_PLAN_VALUE_WORD,      /* one of words: off and on of a switch, too */
    SM_PLAN_VALUE_DTYPE,     /* a data type that words names */
    SM_PLAN_VALUE_RECOMPUTE, /* one of words, or ops of the program joined by '+' */
    SM_PLAN_VALUE_ORDER,     /* some of words joined by '.'; the others follow as usual */
    SM_PLAN_VALUE_DIMS,      /* the same of the dimensions of a torus */
    SM_PLAN_VALUE_LAYOUT     /* numbers of layers joined by '.', each once or N*TIMES */
} sm_plan_value;

/* The row of a key, for whoever reads, prints, explains or documents plans. */
typedef struct sm_plan_key_row {
    const char *name, *meaning;
    const char *shards; /* which dimension of which arrays; "" where it shards nothing */
    unsigned uses;      /* bit per sm_plan_use */
    sm_plan_value value;
    int lowest, highest;     /* of integers */
    sm_words words;          /* of all others, in the order of their values; dims: none */
    int usual[SM_PLAN_USES]; /* what it means left out: an integer, an index into words (of the
                                enum for data types); order and dims: 0 */
} sm_plan_key_row;
/* The row of a key, 0 <= key < SM_PLAN_KEY_COUNT. */
const sm_plan_key_row *sm_plan_key_row_of(sm_plan_key key);
/* The values a key may have, as help prints them: "1..1048576", "off|on", "ring|gather|heads". In
 * out, 0-terminated; returns out. */
char *sm_plan_key_values(sm_plan_key key, char *out, size_t size);
/* The value of one key of a plan as its text has it ("8", "on", "tensor.data.fsdp..."); returns the
 * length it wants, like snprintf. */
size_t sm_plan_key_print(const sm_plan *plan, sm_plan_key key, int torus_dims, char *out,
                         size_t size);
/* The key that other software calls by this name (dp, tp, pp, ...): its number, -1 for none. */
int sm_plan_key_of_nickname(const char *name, size_t length);

/* ---- plans as text ---- */
/* Chunks of the pipeline that the layout of a plan gives; 0: it is empty. */
int sm_plan_layout_chunks(const char *layout);
/* The layers of each of so many chunks: as its layout has them, if it is of so many; else equal
 * shares of `layers`, and what is left over goes to the middle: the first chunk also holds the
 * embedding, the last one the head (LLaMA-3 405B took one layer off both, arXiv 2407.21783 section
 * 3.3.2). */
void sm_plan_layout_fill(const sm_plan *plan, int layers, int chunks, int *of);
/* The plan in which every key has its usual value. */
void sm_plan_defaults(sm_plan *plan);
/* Read a plan of training, "fsdp=2048,tensor=4,seq=on"; keys that are left out have their usual
 * value. SM_BAD_INPUT with the place when a key or value is unknown, and names the nearest valid
 * one. */
sm_status sm_plan_parse(const sm_source *source, sm_plan *plan, sm_error *err);
/* Give keys of a plan other values: "recompute=full,microbatch=1". Errors as sm_plan_parse. */
sm_status sm_plan_change(const sm_source *source, sm_plan *plan, sm_error *err);
/* The plan of serving in which every key has its usual value. */
void sm_serve_plan_defaults(sm_plan *plan);
/* Read a plan of serving, "tensor=8,expert=4". SM_BAD_INPUT as sm_plan_parse, and when it takes
 * more than SM_PLAN_MOST_DEGREE chips. */
sm_status sm_serve_plan_parse(const sm_source *source, sm_plan *plan, sm_error *err);
/* ---- sets of plans ---- */
enum { SM_PLAN_LISTED = 8 };
/* Values that one key may have. All zero: any. */
typedef struct sm_plan_limit {
    uint64_t words;                /* bit per value of a key of words, and of integers below 64 */
    int least, most;               /* of an integer; most 0: no bound */
    int n, listed[SM_PLAN_LISTED]; /* of an integer: it must be one of these; n 0: any */
} sm_plan_limit;
/* How a batch must divide over replicas: at all, into whole microbatches, or into as many of them
 * as the pipeline has stages, or a multiple of that. */
typedef enum sm_plan_share { SM_SHARE_ANY, SM_SHARE_WHOLE, SM_SHARE_ROUNDS } sm_plan_share;
typedef struct sm_plan_limits {
    sm_plan_limit of[SM_PLAN_KEY_COUNT];
    bool usual_order;    /* the axes lie in their usual order */
    bool equal_stages;   /* chunks of the pipeline have equally many layers */
    sm_plan_share share; /* of the batch */
} sm_plan_limits;
/* What plans are for; NULL, 0: not known. */
typedef struct sm_plan_job {
    const sm_model *model;
    const sm_system *system;
    double sequences; /* of a batch */
} sm_plan_job;
/* The plans that a search looks at: of this space, and of those after it. */
typedef struct sm_plan_space {
    const char *name; /* "Megatron-LM": what is said of it; NULL: nothing */
    sm_plan_limits limits;
    /* Asked as degrees become known (bit per key), the other keys as usual: it narrows the limits
     * by what depends on these alone, and not on those known before alone; false: no plan of such
     * degrees is in the space. NULL: the limits are all. */
    bool (*of_degrees)(const struct sm_plan_space *space, const sm_plan *plan, unsigned before,
                       unsigned known, sm_plan_limits *limits);
    const void *context; /* its own, as is the job */
    sm_plan_job job;
    const struct sm_plan_space *next; /* whose plans are looked at too; NULL: no others */
} sm_plan_space;
enum { SM_MOST_SPACES = 12 };
/* May the key have this value (a number; of words its place among them, of data types the type)? */
bool sm_plan_limit_allows(const sm_plan_limits *limits, sm_plan_key key, int value);
/* Do the limits leave any plan out? */
bool sm_plan_limits_some(const sm_plan_limits *limits);
/* Both: what one limit allows and the other too. */
void sm_plan_limit_both(sm_plan_limit *limit, const sm_plan_limit *other);
/* The keys (bit per key) that may mean something for a plan of this model: all but those of experts
 * where it has none, and of caches where every chip has KV heads of its own. */
uint64_t sm_plan_keys_for(const sm_plan *plan, const sm_model *model);
/* Is a plan within limits, in the keys (bit per key) that mean something under its degrees? */
bool sm_plan_limits_have(const sm_plan_limits *limits, const sm_plan *plan, uint64_t keys);
/* The limits of the plans of given degrees in one space; NULL: none. False: it has no such plans.
 */
bool sm_plan_space_of(const sm_plan_space *space, const sm_plan *plan, sm_plan_limits *out);
/* The same of some degrees, where the limits are those of the ones known before. */
bool sm_plan_space_narrow(const sm_plan_space *space, const sm_plan *plan, unsigned before,
                          unsigned known, sm_plan_limits *limits);
/* Where all spaces lay axes as usual, so does the plan from then on. SM_BAD_INPUT past
 * SM_MOST_SPACES of them. */
sm_status sm_plan_spaces_take(const sm_plan_space *spaces, sm_plan *plan, sm_error *err);
/* Read a plan with sets of values too, "schedule=1f1b|interleaved,tensor=1..8", whose keys are not
 * given but limited. Errors as sm_plan_parse, sm_serve_plan_parse. */
sm_status sm_plan_parse_limits(const sm_source *source, sm_plan_use use, sm_plan *plan,
                               sm_plan_limits *limits, sm_error *err);

/* The shortest text that says what matters about a plan of either kind; it reads back to the same
 * plan. torus_dims: of the system, so many of dims are printed. Returns the length it wants. */
size_t sm_plan_format(const sm_plan *plan, int torus_dims, char *out, size_t size);

/* The place of the degree of a key DATA..PIPELINE, to be set. */
int *sm_plan_degree(sm_plan *plan, int key);
/* The degree of a key DATA..PIPELINE. */
int sm_plan_degree_of(const sm_plan *plan, int key);
/* Chips that a plan takes: the product of its degrees, INT32_MAX beyond SM_PLAN_MOST_DEGREE. */
int sm_plan_chips(const sm_plan *plan);
/* Does a step of training gather weights that are shards? With fsdp, and by zero=3 without replicas
 * along data over the chips of experts and of a sequence. */
bool sm_plan_shards_weights(const sm_plan *plan);
/* Replicas of a batch: data x fsdp x expert. */
double sm_plan_replicas(const sm_plan *plan);
/* Does a batch of so many sequences divide over the replicas like that? */
bool sm_plan_shares(const sm_plan *plan, double sequences, sm_plan_share share);
/* Is this key fixed by the user? */
static inline bool sm_plan_given(const sm_plan *plan, sm_plan_key key) {
    return plan->given >> key & 1;
}

/* ---- a plan on a model ---- */
/* Kinds of layers that no layer uses are dropped, so that kind k is a kind in use. */
void sm_plan_keep_used_kinds(sm_model *model);

/* Degrees of the axes that programs are sharded over (program.h). tensor is split in three:
 * `tensor` takes what divides the KV heads of every layer, `tensor_q` of the rest what divides the
 * queries of each, `tensor_w` what is left: its chips do the work of heads more than once. */
enum { SM_AXES_MASKS = 1 << SM_AXIS_COUNT };
typedef struct sm_degrees {
    double axis[SM_AXIS_COUNT];
    double ways[SM_AXES_MASKS]; /* the product of the degrees of a mask of axes */
    sm_axes sequence_axes;      /* those whose chips have sequences of their own */
    double replicas;            /* groups of chips that have: the product of these */
    double sequences;           /* training: of one microbatch over the whole mesh */
} sm_degrees;
/* Fill degrees from a plan on a model, which must divide (sm_plan_refuse). */
void sm_degrees_set(sm_degrees *degrees, const sm_plan *plan, const sm_model *model);
/* Groups of chips with sequences of their own, of a plan of serving as it settles on the model. */
double sm_plan_groups(const sm_plan *plan, const sm_model *model);
/* Set `sequences` alone: microbatch x data x fsdp x expert. */
void sm_degrees_microbatch(sm_degrees *degrees, int microbatch);
/* A size on one chip but for the sequences, queries and keys that it grows with. */
static inline double sm_size_share(const sm_size *size, const sm_degrees *degrees) {
    return size->base / degrees->ways[size->mask];
}
/* A size on one chip, of so many sequences, queries and keys. */
static inline double sm_size_at(const sm_size *size, const sm_degrees *degrees,
                                const sm_program_extent *of) {
    double x = sm_size_share(size, degrees);
    if (size->per_sequence) x *= of->sequences;
    if (size->per_query) x *= of->queries;
    if (size->per_key) x *= of->keys;
    return x;
}

/* The sizes of a step, to hold against the range of the constants. */
static inline sm_step_sizes sm_step_sizes_of(const sm_model *m, double chips, double sequence) {
    sm_step_sizes of = {chips, sequence, (double)m->D, (double)m->L, sm_model_has_experts(m)};
    return of;
}

/* ---- what a row of a program's table of work costs ---- */
/* Its sizes on one chip: those that its kind is priced by. */
typedef struct sm_work_sizes {
    sm_product_shape product;            /* of an einsum */
    const sm_attention_shape *attention; /* of an attention, by whoever knows the sequences */
    double flops, vector_flops, bytes;
    double converting; /* of weights, as bytes that take as long; not part of bytes */
} sm_work_sizes;
/* The one price of an op, in training as in serving: einsums in `dtype`, a row of a backward pass
 * of attention backward. */
static inline sm_op_cost sm_work_cost(const sm_chip *chip, const sm_calibration *c,
                                      const sm_work *w, sm_dtype dtype, const sm_work_sizes *at) {
    switch (w->kind) {
    case SM_OP_EINSUM: return sm_matmul_cost(chip, c, dtype, at->product, at->bytes);
    case SM_OP_ATTENTION:
        return sm_attention_cost(chip, c, at->attention, w->phase != SM_PHASE_FORWARD);
    case SM_OP_KERNEL: return sm_kernel_cost(chip, c, at->flops, at->vector_flops, at->bytes);
    default: return sm_vector_cost(chip, c, at->flops, at->bytes);
    }
}
/* Bytes of an element of 16 bits that travels, over 2, under matmuls in `dtype`: what feeds them
 * alone (sm_comm.narrow) travels in it where that is less. */
static inline double sm_comm_narrowing(const sm_comm *comm, sm_dtype dtype) {
    double element = sm_dtype_bytes(dtype);
    return comm->narrow && element < 2 ? element / 2 : 1;
}

/* How many chips of a tensor group do the same work of attention and of states, because the heads
 * do not divide further: 1 where they do. */
int sm_plan_heads_times(const sm_plan *plan, const sm_model *model);
/* What sizes of the model must be multiples of for the tensor degree of a plan to divide widths
 * that it does not: widths, the vocabulary, and then heads and their queries too, which are copied
 * elsewhere. False where it divides all widths, or experts stand in the way, which are not padded.
 */
bool sm_plan_padding(const sm_plan *plan, const sm_model *model, sm_padding *padding);
/* The model padded so: *padded is *model where nothing is (*pads: is anything?), also where a text
 * ties such a size to another. What it is made of lives in the arena. SM_INTERNAL when out of
 * memory. */
sm_status sm_plan_pad(const sm_plan *plan, const sm_model *model, sm_arena *arena, sm_model *padded,
                      bool *pads, sm_error *err);
/* Why a plan cannot shard this model (widths, experts, layers do not divide); NULL when it
 * can. The sentence is in room. */
const char *sm_plan_refuse(const sm_plan *plan, const sm_model *model, char *room, size_t size);
/* Choices that mean nothing under the plan's degrees become their first word or off: one plan has
 * one form. */
void sm_plan_settle(sm_plan *plan, const sm_model *model);
/* What a plan gathers again at the least: all else that it gathers may be kept. regather itself is
 * not looked at. */
sm_regather sm_plan_least_regather(const sm_plan *plan);
/* Told of one plan; false stops. */
typedef bool (*sm_plan_visit)(void *context, sm_plan *plan);
/* Visit every combination of the choices that a search tries on the plan's degrees, in the order of
 * keys; those given in fixed keep its value. False when visit stopped it. */
bool sm_plan_each_choice(sm_plan *plan, const sm_plan *fixed, const sm_model *model,
                         sm_plan_visit visit, void *context);
/* How the choices of a plan shard a program; decode: of serving's decode steps. *code: a number
 * that these rules alone have. */
sm_rules sm_plan_rules(const sm_plan *plan, const sm_model *model, bool decode, uint64_t *code);

/* ---- a step, line by line ----
 * What a step of training, or of serving, is made of: rows by the lines of the texts that the
 * programs were made from (architecture.h), each with its share of the price. */
typedef enum sm_bound {
    SM_BOUND_COMPUTE,
    SM_BOUND_MEMORY,
    SM_BOUND_NETWORK,
    SM_BOUND_BUBBLE,
    SM_BOUND_LATENCY
} sm_bound;
/* "compute", "memory", "network", "bubble", "latency". Static text. */
const char *sm_bound_name(sm_bound bound);
/* A collective of one line. */
typedef struct sm_plan_collective {
    sm_collective op;
    char array[24]; /* as the program names it; "weights": several of a piece, in buckets */
    char axis[32];
    sm_axes axes; /* the same; 0: the pipeline */
    char phase[20];
    int piece, line;          /* the first line it serves; -1: of no line */
    bool returns;             /* the gradient of the array */
    int arrays;               /* so many travel together; 0: all weights, all experts of a piece */
    double count;             /* executions per step on the busiest stage */
    double bytes;             /* per chip and execution, V as in shard.h */
    double wire_bytes;        /* bytes a chip's busiest link carries per execution */
    double time_s, exposed_s; /* per step */
    const char *algorithm;
    int level;
    bool weight; /* a weight or its gradient */
} sm_plan_collective;
/* An op in one phase, over the layers and microbatches of the busiest stage: a step's share of the
 * price. again: recomputed. What the host needs to launch ops beyond their own time is a row
 * "launches", of neither FLOPs nor bytes, and of no line. Training: the rows add up to math and
 * memory of the breakdown, memory_s to the latter. Serving: with what shows of the collectives and
 * the overhead of the engine to the step. */
typedef struct sm_plan_op {
    char op[20]; /* as the program names it */
    sm_op_kind kind;
    sm_phase phase;
    bool again;
    int piece, line;
    int joined;              /* serving: so many ops that follow run in the same kernel */
    double count;            /* executions per step */
    double time_s, memory_s; /* expected; the part of it that is bound by memory */
    double launch_s;         /* serving: the part of it that is no work */
    double flops, bytes;     /* matrix FLOPs; through the chip's memory */
} sm_plan_op;
/* What bounds most of a row: compute, memory or latency. */
sm_bound sm_plan_op_bound(const sm_plan_op *op);
/* A kind of layer, the embedding or the head: its program as the plan shards it, which lives as
 * long as what priced the plan, and the kind of the architecture whose lines it is made from. */
typedef struct sm_plan_piece {
    const sm_program *program;
    int kind;
    double times; /* layers of the busiest stage */
} sm_plan_piece;
typedef struct sm_plan_lines {
    sm_degrees degrees;
    int pieces, ops, collectives;
    sm_plan_piece *piece;
    sm_plan_op *op;
    sm_plan_collective *collective;
} sm_plan_lines;
/* "expert,context": the axes that have more than one member, as keys of a plan; 0-terminated. */
void sm_plan_axes_text(sm_axes axes, const sm_degrees *degrees, char *out, size_t size);

/* ---- a plan on a system ---- */
/* A placement has the axes of programs and, after them, the pipeline. */
enum { SM_PLACED_PIPELINE = SM_AXIS_COUNT, SM_PLACED_AXES };
/* Why the dimensions that a plan names cannot be filled on this system; NULL when they can. The
 * sentence is in room. */
const char *sm_plan_refuse_dims(const sm_plan *plan, const sm_system *system, char *room,
                                size_t size);
/* Place the axes of a plan on a system, in the plan's order. False when they cannot be laid out so.
 */
bool sm_plan_place(const sm_plan *plan, const sm_degrees *degrees, const sm_system *system,
                   sm_placement *placement);
/* Tokens routed to top_k experts are sent once to each group of experts that hosts any of theirs,
 * and passed on inside: of top_k copies, this part moves. A group is what sits below the outermost
 * level that the collective crosses (a node, as in DeepEP), or a chip. in_order: so many experts,
 * of which a token's follow one another; 0: any. */
double sm_ragged_part(const sm_system *system, double top_k, int in_order, const sm_group *group);

/* What one collective costs on one group, under a calibration: the lines of its algorithms and
 * protocols, of which the lowest counts. */
typedef struct sm_timed_line {
    sm_line line;
    double wire_per_byte; /* bytes on the busiest link per byte of V */
    const char *algorithm;
    uint8_t level; /* that is busiest */
} sm_timed_line;
enum { SM_MAX_TIMED_LINES = SM_MAX_ALGORITHMS * SM_MAX_TIMINGS };
typedef struct sm_timed_curve {
    int n, serials;
    double ideal[SM_MAX_LEVELS]; /* seconds each level is busy at datasheet rates, per byte of V */
    double busy[SM_MAX_LEVELS];  /* the same at the rates of the calibration */
    sm_timed_line line[SM_MAX_TIMED_LINES];            /* none is never less than another */
    sm_line serial[SM_MAX_ALGORITHMS][SM_MAX_TIMINGS]; /* of algorithms `upper` is taken from */
    uint8_t serial_lines[SM_MAX_ALGORITHMS];
} sm_timed_curve;
/* Curves by group: they repeat from plan to plan. Emptied when it is three quarters full, so that
 * what it returns never depends on its history; its system and calibration must not change but by
 * sm_curve_memo_forget. */
typedef struct sm_curve_memo {
    const sm_system *system;
    const sm_calibration *calibration;
    uint64_t *key; /* of the group that each entry was made for, 0: none; apart, for they are looked
                      through */
    sm_timed_curve *entry;
    int entries, used;
    double peer_kernel; /* an all-reduce in a node: 1, may be one kernel, 2, and has barriers */
} sm_curve_memo;
/* Make an empty memo with room for so many entries, in the arena. False when out of memory. */
bool sm_curve_memo_init(sm_curve_memo *memo, const sm_system *system,
                        const sm_calibration *calibration, int entries, sm_arena *arena);
/* Empty the memo: its system or calibration changes. */
void sm_curve_memo_forget(sm_curve_memo *memo);
/* Make room for so many more curves before any that is held moves or goes. */
void sm_curve_memo_reserve(sm_curve_memo *memo, int curves);
/* The curve of a group (ragged: the fraction of an all-to-all's bytes that moves); of one chip it
 * has no lines. */
const sm_timed_curve *sm_curve_memo_get(sm_curve_memo *memo, sm_collective op,
                                        const sm_group *group, double ragged);
/* The entry of a key of the caller's own; where it is not there already it is to be filled and
 * kept. */
sm_timed_curve *sm_curve_memo_entry(const sm_curve_memo *memo, uint64_t key, bool *there);
/* Mark an entry of sm_curve_memo_entry as filled for this key, and return it. */
const sm_timed_curve *sm_curve_memo_keep(sm_curve_memo *memo, sm_timed_curve *entry, uint64_t key);
/* Work out the curve of a group under the memo's system and calibration, beside the memo. A group
 * of one chip has no lines. */
void sm_timed_curve_fill(const sm_curve_memo *memo, sm_collective op, const sm_group *group,
                         double ragged, sm_timed_curve *curve);
/* Seconds of the lowest line at this size; *line: that line, NULL when there is nothing to send. */
static inline double sm_timed_curve_s(const sm_timed_curve *curve, double bytes,
                                      const sm_timed_line **line) {
    double best = 0;
    *line = NULL;
    if (bytes <= 0) return 0;
    for (int i = 0; i < curve->n; i++) {
        double s = sm_line_at(curve->line[i].line, bytes);
        if (*line && s >= best) continue;
        best = s;
        *line = &curve->line[i];
    }
    return best;
}
/* Seconds when levels take turns, or one direction alone is used: never less than sm_timed_curve_s.
 */
double sm_timed_curve_upper_s(const sm_timed_curve *curve, double bytes);
SM_DECLARATIONS_END

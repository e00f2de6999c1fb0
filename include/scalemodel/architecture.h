/* architecture: a model worked out from a family and a config: its pieces in order, the kinds of
 * its layers, and the lines of each kind: texts inlined, options decided, dimensions with sizes.
 * Parameters, FLOPs, caches, shardings and prices all come from these lines. What texts and
 * families mean: docs/notation.md, "Texts". */
#pragma once
#include "scalemodel/notation.h"

SM_DECLARATIONS_BEGIN

/* ---- operators: what a line or a part of it does ----
 * Columns: name in texts ("" for what has none); least and most arguments; how the shape of the
 * result follows (UNION: of the arguments, repeating what is missing; FIRST: of the first; WRITTEN:
 * as written before the '='); vector FLOPs for each element of the result (IN: of the first
 * argument); linear or not; arguments that the backward pass reads (bit i), RESULT: the result.
 * Matrix FLOPs: a product does 2 for each combination of its sizes, attention two products,
 * inverse n x size / 3. */
enum { SM_READS_RESULT = 1 << 16, SM_OPERATOR_MOST_ARGUMENTS = 16 };
#define SM_OPERATORS(X)                                                                            \
    X(PRODUCT, "", 2, SM_OPERATOR_MOST_ARGUMENTS, WRITTEN, 0, 1, 0xffff)                           \
    X(EXPRESSION, "", 1, SM_OPERATOR_MOST_ARGUMENTS, UNION, 0, 1, 0)                               \
    X(ADD, "+", 2, 2, UNION, 1, 1, 0)                                                              \
    X(SUBTRACT, "-", 2, 2, UNION, 1, 1, 0)                                                         \
    X(MULTIPLY, "*", 2, 2, UNION, 1, 0, 3)                                                         \
    X(DIVIDE, "/", 2, 2, UNION, 1, 0, 3)                                                           \
    X(NEGATE, "-", 1, 1, UNION, 1, 1, 0)                                                           \
    X(SILU, "silu", 1, 1, UNION, 5, 0, 1)                                                          \
    X(GELU, "gelu", 1, 1, UNION, 5, 0, 1)                                                          \
    X(GELU_TANH, "gelu_tanh", 1, 1, UNION, 5, 0, 1)                                                \
    X(GELU_QUICK, "gelu_quick", 1, 1, UNION, 5, 0, 1)                                              \
    X(RELU, "relu", 1, 1, UNION, 1, 0, 1)                                                          \
    X(SIGMOID, "sigmoid", 1, 1, UNION, 4, 0, 1)                                                    \
    X(TANH, "tanh", 1, 1, UNION, 4, 0, 1)                                                          \
    X(EXP, "exp", 1, 1, UNION, 2, 0, 1)                                                            \
    X(SQRT, "sqrt", 1, 1, UNION, 1, 0, 1)                                                          \
    X(SOFTPLUS, "softplus", 1, 1, UNION, 4, 0, 1)                                                  \
    X(CAP, "softcap", 1, 1, UNION, 6, 0, 1)                                                        \
    X(SQUARE, "square", 1, 1, UNION, 1, 0, 1)                                                      \
    X(MASK, "mask", 1, 1, UNION, 1, 1, 0)                                                          \
    X(BELOW, "below", 1, 1, UNION, 1, 1, 0)                                                        \
    X(RMSNORM, "rmsnorm", 1, 3, FIRST, 5, 0, 3)                                                    \
    X(LAYERNORM, "layernorm", 1, 3, FIRST, 8, 0, 3)                                                \
    X(L2NORM, "l2norm", 1, 3, FIRST, 4, 0, 3)                                                      \
    X(SOFTMAX, "softmax", 1, 1, FIRST, 5, 0, SM_READS_RESULT)                                      \
    X(ROTARY, "rotary", 1, 1, FIRST, 3, 1, 0)                                                      \
    X(SINES, "sines", 1, 1, UNION, 1, 1, 0)                                                        \
    X(TEMPERED, "tempered", 1, 1, UNION, 1, 1, 0)                                                  \
    X(ATTENTION, "attention", 2, 2, WRITTEN, 0, 0, 0xffff | SM_READS_RESULT)                       \
    X(CACHE, "cache", 1, SM_OPERATOR_MOST_ARGUMENTS, WRITTEN, 0, 1, 0)                             \
    X(STATE, "state", 0, 0, WRITTEN, 0, 1, 0)                                                      \
    X(CARRY, "carry", 2, 2, FIRST, 2, 1, 1)                                                        \
    X(DECAYS, "decays", 0, 0, WRITTEN, 0, 1, 0)                                                    \
    X(CONV, "conv", 2, 3, FIRST, 0, 0, 3)                                                          \
    X(CUMSUM, "cumsum", 1, 1, FIRST, 1, 1, 0)                                                      \
    X(INVERSE, "inverse", 1, 1, FIRST, 0, 0, SM_READS_RESULT)                                      \
    X(TAKE, "take", 1, 2, WRITTEN, 0, 1, 2)                                                        \
    X(SCATTER, "scatter", 2, 3, FIRST, 0, 1, 0)                                                    \
    X(APPEND, "append", 2, SM_OPERATOR_MOST_ARGUMENTS, WRITTEN, 0, 1, 0)                           \
    X(PICK, "pick", 1, 2, WRITTEN, 0, 1, 0)                                                        \
    X(VIEW, "view", 1, 1, WRITTEN, 0, 1, 0)                                                        \
    X(SPLIT, "split", 1, 1, WRITTEN, 0, 1, 0)                                                      \
    X(CONCAT, "concat", 1, SM_OPERATOR_MOST_ARGUMENTS, WRITTEN, 0, 1, 0)                           \
    X(WINDOWS, "windows", 1, 1, WRITTEN, 0, 1, 0)                                                  \
    X(TOP, "top", 1, 2, WRITTEN, 0, 0, 1)                                                          \
    X(DISPATCH, "dispatch", 2, 2, WRITTEN, 0, 1, 2)                                                \
    X(COMBINE, "combine", 2, 2, WRITTEN, 0, 1, 3)                                                  \
    X(MEAN, "mean", 1, 1, WRITTEN, 0, 1, 0)                                                        \
    X(SUM, "sum", 1, 1, WRITTEN, 0, 1, 0)                                                          \
    X(CROSS_ENTROPY, "cross_entropy", 1, 2, WRITTEN, 0, 0, 1)                                      \
    X(SAMPLE, "sample", 1, 1, WRITTEN, 0, 0, 0)
#define SM_OPERATOR_ID(id, ...) SM_OPERATOR_##id,
typedef enum sm_operator { SM_OPERATORS(SM_OPERATOR_ID) SM_OPERATOR_COUNT } sm_operator;
typedef enum sm_operator_shape { SM_SHAPE_UNION, SM_SHAPE_FIRST, SM_SHAPE_WRITTEN } sm_shape_rule;
typedef struct sm_operator_row {
    const char *name;
    int least, most;
    sm_shape_rule shape;
    double flops; /* vector FLOPs for each element of the result */
    bool linear;
    uint32_t reads; /* arguments that the backward pass reads; SM_READS_RESULT */
} sm_operator_row;
/* The row of an operator. */
const sm_operator_row *sm_operator_at(sm_operator op);

/* ---- a model ---- */
typedef struct sm_architecture sm_architecture;

/* Work out the model of a config.json: its family by model_type, else by architectures, or `family`
 * where it is not NULL. The library must outlive the architecture; the config is copied. Immutable
 * after, shared by threads. SM_BAD_INPUT with the place, in the config where it can be there: no
 * such family, what is missing or no whole size, a key that no family names and that speaks of a
 * size; in the family where that is wrong. */
sm_status sm_architecture_new(const sm_library *library, const sm_source *config,
                              const char *family, sm_arena *arena, const sm_architecture **out,
                              sm_error *err);
/* Sizes rounded up to multiples, by the role of the dimension; 0 and 1 leave them as they are. */
typedef struct sm_padding {
    int multiple[SM_DIMENSION_ROLE_COUNT];
    /* 0: as the config says. */
    int source; /* positions, or pictures, that the first of two stacks reads */
    int picture_width, picture_height; /* pixels of each */
} sm_padding;
/* The same model with its sizes padded: what chips hold of it, and work on, when a role is dealt
 * out over as many of them as its multiple; or for texts of another length, or pictures of another
 * size. What is 0 stays as it was of the first, which must outlive it. SM_BAD_INPUT where a text
 * ties such a size to another, so that it cannot be padded; SM_INTERNAL when out of memory. */
sm_status sm_architecture_pad(const sm_architecture *a, const sm_padding *padding, sm_arena *arena,
                              const sm_architecture **out, sm_error *err);
/* The model_type as the config spells it ("" when it has none), and the first name of the family
 * that it is read by. */
const char *sm_architecture_type(const sm_architecture *a);
const char *sm_architecture_family(const sm_architecture *a);

/* A fact by its name, a key of the config or a default of the family: max_position_embeddings,
 * rope_theta, rms_norm_eps, tie_word_embeddings (1 is true), causal, ... False, and *value as it
 * was, when it is none, absent or no number. */
bool sm_architecture_number(const sm_architecture *a, const char *name, double *value);
/* The same of a word: hidden_act, note. NULL when there is none. */
const char *sm_architecture_word(const sm_architecture *a, const char *name);
/* The same of pieces of a kind: a tower has a config of its own. */
bool sm_architecture_number_of(const sm_architecture *a, int kind, const char *name, double *value);
const char *sm_architecture_word_of(const sm_architecture *a, int kind, const char *name);
/* The first name of the family that says what pieces of a kind are. */
const char *sm_architecture_family_of(const sm_architecture *a, int kind);

/* Pieces in the order of the model: the embedding, each layer, the head. */
typedef struct sm_model_piece {
    const char *name;  /* as piece.name calls it: "layer" */
    const char *stack; /* "" outside any */
    const char *text;  /* of which it is made: "block" */
    int layer;         /* from 0 in its `layers`; -1: no layer */
    int kind;          /* pieces of one kind have the same lines */
    bool apart;        /* counted beside the model: vision towers, draft layers */
} sm_model_piece;
int sm_architecture_pieces(const sm_architecture *a, const sm_model_piece **piece);
/* How many kinds there are: of equal text, sizes and options. Kinds are in the order in which they
 * are met. */
int sm_architecture_kinds(const sm_architecture *a);
/* The first piece of a kind, and how many there are. */
const sm_model_piece *sm_architecture_kind(const sm_architecture *a, int kind, int *count);

/* ---- the lines of a kind ---- */
typedef enum sm_text_phase { SM_TEXT_TRAIN, SM_TEXT_PREFILL, SM_TEXT_DECODE } sm_text_phase;
/* What lines are asked for. Of one sequence: B is 1. A stack may have a T and an S of its own. */
typedef struct sm_text_lines_of {
    int kind;
    sm_text_phase phase;
    bool absorbed;
    double T, S;     /* positions, and the keys they may attend to */
    bool each_token; /* T is 1 of a long sequence: of chunks of 256 positions it has 1/256 */
} sm_text_lines_of;

typedef struct sm_text_dim {
    char name[8];
    sm_dimension_role role;
    double size; /* of one sequence; whole, but of tokens it may be a mean */
} sm_text_dim;

typedef enum sm_text_role {
    SM_TEXT_ACTIVATION,
    SM_TEXT_WEIGHT,
    SM_TEXT_CACHE,
    SM_TEXT_STATE,
    SM_TEXT_IDS
} sm_text_role;

enum { SM_TEXT_MOST_RANK = 8, SM_TEXT_MOST_DIMS = 64 };
typedef struct sm_text_array {
    const char *name; /* "q", "q.2" where it is made again; of a weight with its scope "mixer.wq" */
    sm_text_role role;
    int rank;
    uint8_t dim[SM_TEXT_MOST_RANK];        /* in sm_text_lines.dim */
    const char *pinned[SM_TEXT_MOST_RANK]; /* mesh axes as written: "X"; NULL none */
    double elements;                       /* of one sequence */
    bool typed;                            /* written or stored as a type */
    sm_dtype type;                         /* if typed */
    int line;                              /* that makes it; -1: comes in, or a weight */
    int piece;     /* piece.name: the piece whose array this is, -1: of this one. A weight of
                      another piece is tied; a cache is read, not kept */
    int there;     /* its number among the arrays of that piece; -1: what the piece passes on */
    double shared; /* copies of this weight in the whole model (`shared M`); 0: one a layer */
    double share;  /* copies for each layer that uses it, at most 1 */
    bool norm;     /* a weight that a norm reads */
    double keeps;  /* CACHE: positions kept, the widest reach of its readers; 0: all of S */
    bool once;     /* CACHE: made when a sequence starts, of the keys of another stack */
} sm_text_array;

/* An array as a line mentions it: letters of equal size may stand for its own. */
typedef struct sm_mention {
    int array;
    uint8_t dim[SM_TEXT_MOST_RANK]; /* as many as the array has */
} sm_mention;

/* An expression in postfix order. Of an array operand is its place in sm_text_line.operand, of a
 * number `number`; an operator takes its last `arguments` values. */
typedef struct sm_term {
    enum { SM_TERM_ARRAY, SM_TERM_NUMBER, SM_TERM_OPERATOR } kind;
    sm_operator op;
    int arguments, operand;
    double number;
} sm_term;

/* One line: one kernel, unless it is part of one. */
typedef struct sm_text_line {
    const char *name; /* of its first result */
    sm_operator op;   /* EXPRESSION: see term */
    int results, operands;
    const sm_mention *result, *operand;
    int scores; /* ATTENTION: operands 2i and 2i + 1 make the i-th of so many products of scores;
                   then come the values, and what the attributes name */
    int terms;
    const sm_term *term;
    bool linear;         /* in each operand; partial sums may pass where sums are concerned */
    uint32_t reads;      /* operands (bit i) that the backward pass reads; SM_READS_RESULT */
    bool norm;           /* an expression with a norm: its last dim, or those of the scale, whole */
    double flops;        /* vector FLOPs for each element of the first result */
    double matrix_flops; /* of one sequence, causal means taken */
    double keys;         /* ATTENTION and causal products: keys a query meets on average */
    int kernel;          /* the kernel it is in, -1: none */
    int part;            /* the call of the piece's text that it is within, from 1; 0: none */
    /* attributes; 0 or -1 where there is none */
    bool causal, once, capped, weighed;
    double window, chunk, taps, groups, best, step;
    int along, first;          /* dims */
    int over, sinks, distance; /* operands */
    const sm_source *source;   /* where it is written */
    sm_span span;
} sm_text_line;

/* A kernel: lines [from, from + lines) work on arrays that never reach memory, but for its
 * arguments, results and states. */
typedef struct sm_text_kernel {
    const char *name; /* "scores" */
    int from, lines;
    int results, operands;
    const int *result, *operand; /* arrays */
} sm_text_kernel;

typedef struct sm_text_lines {
    const char *name; /* of the kind's first piece */
    int dims, arrays, lines, kernels;
    const sm_text_dim *dim;
    const sm_text_array *array;
    const sm_text_line *line;
    const sm_text_kernel *kernel;
    int input, output; /* the stream x: arrays, -1 where there is none */
} sm_text_lines;
/* The lines of one kind for a phase, in the arena. SM_BAD_INPUT with the place in the text where
 * that is wrong for these sizes and options. */
sm_status sm_architecture_lines(const sm_architecture *a, const sm_text_lines_of *of,
                                sm_arena *arena, const sm_text_lines **out, sm_error *err);

/* ---- counts, from the lines ---- */
/* Exact counts, to the parameter. Where a weight stands and what its dimensions are says which
 * component it belongs to; all of them add up to the total. */
typedef struct sm_counts {
    double total;
    double active;                 /* of experts only those a token uses */
    double embedding, unembedding; /* unembedding 0 when tied */
    double attention, mlp, experts, router, norm, other;
    double matmul_active; /* active parameters that do 2 FLOPs for each token in a product: no
                             lookup, norms or biases; the unembedding once also when tied */
    double apart;         /* beside all of these */
} sm_counts;
/* Counted when the architecture was made. */
const sm_counts *sm_architecture_counts(const sm_architecture *a);
/* Parameters of one piece of a kind. active: see sm_counts. */
double sm_architecture_kind_params(const sm_architecture *a, int kind, bool active);
/* The i-th group that is counted apart, by the name of its stack or piece; NULL beyond the last. */
const char *sm_architecture_apart(const sm_architecture *a, int i, double *params);

/* FLOPs of a forward pass per token in a sequence of T, pieces that are not apart. causal: only
 * pairs that masks and windows keep, else whole squares (T x window). matmul: products with
 * weights; attention: the others; total: both. tokens: of the sequence, T unless the model has its
 * own (patches of a picture, frames). */
typedef struct sm_forward {
    double matmul, attention, total, tokens;
} sm_forward;
sm_status sm_architecture_forward(const sm_architecture *a, double T, bool causal, sm_forward *out,
                                  sm_error *err);

/* ---- a model as a program ---- */
typedef struct sm_program_style {
    const char *name; /* of the family that is printed */
    sm_text_phase phase;
    bool absorbed;
    double T, S;
    /* What stands behind a line as a comment, in the arena: "" for nothing, NULL when out of
     * memory; what follows a line feed stands under it. line -1: of the kind's text as a whole;
     * inside: as a line of the text of a kernel, whose call is commented on by its first line. No
     * function: nothing behind any. */
    const char *(*comment)(void *with, int kind, const sm_text_lines *lines, int line, bool inside,
                           sm_arena *arena);
    /* The mesh axes that cut dimension i of an array where it is stored, as subscripts have them,
     * "X", "XY", "{fsdp,tensor}"; "" for none, NULL when out of memory. No function: those that the
     * text itself pins, and results have dimensions only where they must. */
    const char *(*axes)(void *with, int kind, const sm_text_lines *lines, int array, int i,
                        sm_arena *arena);
    int column; /* where comments begin, if they can; 0: the usual */
    void *with;
} sm_program_style;
/* Print each kind as a text with every `if` decided and every text that it calls in its place, the
 * sizes of its dimensions, and a family that puts the pieces in their order. What is printed reads
 * back: without any config the family is this model, with the same lines for this phase. Copies
 * that layers share (shared M) are printed as copies of their own. */
sm_status sm_architecture_format(const sm_architecture *a, const sm_program_style *style,
                                 sm_arena *arena, const char **out, sm_error *err);
SM_DECLARATIONS_END

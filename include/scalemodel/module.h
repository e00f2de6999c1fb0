/* module: a program as a compiler left it: XLA's HLO, as text or as protobuf. Computations of
 * instructions on arrays of one device, with explicit collectives, layouts and a schedule. Or as a
 * framework hands it to the compiler: StableHLO, on whole arrays with shardings (spmd.h).
 *
 * What an instruction computes, moves and communicates is worked out from it (module_work), how
 * often a computation runs from the loops that call it; what that costs on a machine is profile's
 * (profile.h). Format: XLA's hlo.proto and its text form. */
#pragma once
#include "scalemodel/attention.h"
#include "scalemodel/text.h"

SM_DECLARATIONS_BEGIN

/* ---- shapes ---- */
/* id, name in texts, number in protobuf, bits in memory. */
/* clang-format off */
#define SM_MODULE_ELEMENTS(X)                                                                      \
    X(PRED, "pred", 1, 8) X(S1, "s1", 30, 8) X(S2, "s2", 26, 8) X(S4, "s4", 21, 8)                 \
    X(S8, "s8", 2, 8) X(S16, "s16", 3, 16) X(S32, "s32", 4, 32) X(S64, "s64", 5, 64)               \
    X(U1, "u1", 31, 8) X(U2, "u2", 27, 8) X(U4, "u4", 22, 8) X(U8, "u8", 6, 8)                     \
    X(U16, "u16", 7, 16) X(U32, "u32", 8, 32) X(U64, "u64", 9, 64) X(F16, "f16", 10, 16)           \
    X(F32, "f32", 11, 32) X(F64, "f64", 12, 64) X(BF16, "bf16", 16, 16) X(C64, "c64", 15, 64)      \
    X(C128, "c128", 18, 128) X(F8E5M2, "f8e5m2", 19, 8) X(F8E4M3FN, "f8e4m3fn", 20, 8)             \
    X(F8E4M3B11FNUZ, "f8e4m3b11fnuz", 23, 8) X(F8E5M2FNUZ, "f8e5m2fnuz", 24, 8)                    \
    X(F8E4M3FNUZ, "f8e4m3fnuz", 25, 8) X(F8E4M3, "f8e4m3", 28, 8) X(F8E3M4, "f8e3m4", 29, 8)       \
    X(F4E2M1FN, "f4e2m1fn", 32, 8) X(F8E8M0FNU, "f8e8m0fnu", 33, 8) X(TUPLE, "(", 13, 0)           \
    X(OPAQUE, "opaque", 14, 0) X(TOKEN, "token", 17, 0)
/* clang-format on */
#define SM_HLO_ID(id, ...) SM_HLO_##id,
typedef enum sm_module_element {
    SM_MODULE_ELEMENTS(SM_HLO_ID) SM_HLO_ELEMENT_COUNT
} sm_module_element;
/* Bits of one element in memory; 0 of tuples and tokens. */
int sm_module_element_bits(sm_module_element element);
/* The name in texts ("bf16"). Static text. */
const char *sm_module_element_name(sm_module_element element);
/* The type in which a matrix unit multiplies it: fp32 of types without one. */
sm_dtype sm_module_dtype(sm_module_element element);

typedef struct sm_module_list {
    int n;
    const int64_t *at;
} sm_module_list;
enum { SM_MODULE_TILES = 4 };
typedef struct sm_module_shape {
    sm_module_element element;
    sm_module_list dim;   /* sizes */
    sm_module_list minor; /* dimensions from the one that varies fastest; n 0: as in C */
    int tiles;
    sm_module_list tile[SM_MODULE_TILES]; /* the outermost first */
    int element_bits;                     /* where elements are packed; 0: those of their type */
    int memory; /* space it lives in: 0 is HBM, 5 the host's; others are on the chip */
    int parts;  /* of a tuple */
    const struct sm_module_shape *part;
} sm_module_shape;
/* Read the shape that is the whole source: "bf16[8,128]{1,0:T(8,128)(2,1)}", dimensions in braces
 * from the minor one on, tiles of the minor dimensions, the second of which cuts the first. It
 * lives in the arena. SM_BAD_INPUT with the place: an unknown type, a size that is no number, a
 * layout that is no order of the dimensions. */
sm_status sm_module_shape_parse(const sm_source *source, sm_arena *arena,
                                const sm_module_shape **out, sm_error *err);
/* The sizes of an array's dimensions in whole tiles. Returns by how much later tiles make all of it
 * larger: 1 where they divide those before. */
double sm_module_padded(const sm_module_shape *shape, double *size);
/* Elements, without padding; of a tuple those of its parts. */
double sm_module_elements(const sm_module_shape *shape);
/* Bytes of its elements without padding, in whatever memory. */
double sm_module_data_bytes(const sm_module_shape *shape);
/* Bytes that it takes in memory space `memory`, tiles padded; -1: in all of them. */
double sm_module_bytes(const sm_module_shape *shape, int memory);

/* ---- instructions ---- */
/* What the cost of an opcode depends on. */
typedef enum sm_module_class {
    SM_CLASS_FREE,           /* names what is there: parameters, tuples, bitcasts */
    SM_CLASS_POINTWISE,      /* a vector FLOP an element of the result */
    SM_CLASS_TRANSCENDENTAL, /* exp, log, tanh, ...: the same, counted apart */
    SM_CLASS_REDUCE,         /* a FLOP for each element of the operand that is not in the result */
    SM_CLASS_MATMUL,         /* dot, convolution */
    SM_CLASS_MOVE,           /* copies, in another shape or order */
    SM_CLASS_SLICE,          /* reads as much as it writes */
    SM_CLASS_UPDATE,         /* writes a part of an array in place */
    SM_CLASS_SCATTER,
    SM_CLASS_SORT,
    SM_CLASS_COLLECTIVE,
    SM_CLASS_CALL,  /* fusion, call, while, conditional, async-start */
    SM_CLASS_DONE,  /* of what a -start began */
    SM_CLASS_CUSTOM /* a kernel that only its target knows; also opcodes that are not known */
} sm_module_class;
/* id, name, class. */
/* clang-format off */
#define SM_MODULE_OPCODES(X)                                                                       \
    X(PARAMETER, "parameter", FREE) X(CONSTANT, "constant", FREE) X(TUPLE, "tuple", FREE)          \
    X(GET_TUPLE_ELEMENT, "get-tuple-element", FREE) X(BITCAST, "bitcast", FREE)                    \
    X(OPT_BARRIER, "opt-barrier", FREE) X(AFTER_ALL, "after-all", FREE)                            \
    X(ADD_DEPENDENCY, "add-dependency", FREE) X(DOMAIN, "domain", FREE)                            \
    X(PARTITION_ID, "partition-id", FREE) X(REPLICA_ID, "replica-id", FREE)                        \
    X(GET_DIMENSION_SIZE, "get-dimension-size", FREE)                                              \
    X(SET_DIMENSION_SIZE, "set-dimension-size", FREE)                                              \
    X(ADD, "add", POINTWISE) X(SUBTRACT, "subtract", POINTWISE)                                    \
    X(MULTIPLY, "multiply", POINTWISE) X(DIVIDE, "divide", POINTWISE)                              \
    X(REMAINDER, "remainder", POINTWISE) X(MAXIMUM, "maximum", POINTWISE)                          \
    X(MINIMUM, "minimum", POINTWISE) X(NEGATE, "negate", POINTWISE) X(ABS, "abs", POINTWISE)       \
    X(SIGN, "sign", POINTWISE) X(AND, "and", POINTWISE) X(OR, "or", POINTWISE)                     \
    X(XOR, "xor", POINTWISE) X(NOT, "not", POINTWISE) X(COMPARE, "compare", POINTWISE)             \
    X(SELECT, "select", POINTWISE) X(CLAMP, "clamp", POINTWISE) X(CONVERT, "convert", POINTWISE)   \
    X(FLOOR, "floor", POINTWISE) X(CEIL, "ceil", POINTWISE)                                        \
    X(ROUND, "round-nearest-afz", POINTWISE) X(ROUND_EVEN, "round-nearest-even", POINTWISE)        \
    X(IS_FINITE, "is-finite", POINTWISE) X(SHIFT_LEFT, "shift-left", POINTWISE)                    \
    X(SHIFT_RIGHT, "shift-right-logical", POINTWISE)                                               \
    X(SHIFT_RIGHT_ARITHMETIC, "shift-right-arithmetic", POINTWISE)                                 \
    X(POPULATION_COUNT, "popcnt", POINTWISE) X(CLZ, "count-leading-zeros", POINTWISE)              \
    X(REAL, "real", POINTWISE) X(IMAG, "imag", POINTWISE) X(COMPLEX, "complex", POINTWISE)         \
    X(REDUCE_PRECISION, "reduce-precision", POINTWISE)                                             \
    X(STOCHASTIC_CONVERT, "stochastic-convert", POINTWISE) X(MAP, "map", POINTWISE)                \
    X(EXPONENTIAL, "exponential", TRANSCENDENTAL)                                                  \
    X(EXPONENTIAL_MINUS_ONE, "exponential-minus-one", TRANSCENDENTAL)                              \
    X(LOG, "log", TRANSCENDENTAL) X(LOG_PLUS_ONE, "log-plus-one", TRANSCENDENTAL)                  \
    X(LOGISTIC, "logistic", TRANSCENDENTAL) X(TANH, "tanh", TRANSCENDENTAL)                        \
    X(TAN, "tan", TRANSCENDENTAL) X(SINE, "sine", TRANSCENDENTAL)                                  \
    X(COSINE, "cosine", TRANSCENDENTAL) X(ATAN2, "atan2", TRANSCENDENTAL)                          \
    X(SQRT, "sqrt", TRANSCENDENTAL) X(RSQRT, "rsqrt", TRANSCENDENTAL)                              \
    X(CBRT, "cbrt", TRANSCENDENTAL) X(POWER, "power", TRANSCENDENTAL)                              \
    X(ERF, "erf", TRANSCENDENTAL) X(RNG, "rng", POINTWISE)                                         \
    X(RNG_BIT_GENERATOR, "rng-bit-generator", POINTWISE)                                           \
    X(RNG_STATE, "rng-get-and-update-state", FREE)                                                 \
    X(REDUCE, "reduce", REDUCE) X(REDUCE_WINDOW, "reduce-window", REDUCE)                          \
    X(SELECT_AND_SCATTER, "select-and-scatter", REDUCE) X(DOT, "dot", MATMUL)                      \
    X(SCALED_DOT, "scaled-dot", MATMUL) X(RAGGED_DOT, "ragged-dot", MATMUL)                        \
    X(CONVOLUTION, "convolution", MATMUL) X(COPY, "copy", MOVE) X(RESHAPE, "reshape", MOVE)        \
    X(DYNAMIC_RESHAPE, "dynamic-reshape", MOVE) X(TRANSPOSE, "transpose", MOVE)                    \
    X(BROADCAST, "broadcast", MOVE) X(CONCATENATE, "concatenate", MOVE) X(PAD, "pad", MOVE)        \
    X(REVERSE, "reverse", MOVE) X(IOTA, "iota", MOVE)                                              \
    X(BITCAST_CONVERT, "bitcast-convert", MOVE) X(COPY_START, "copy-start", MOVE)                  \
    X(SLICE, "slice", SLICE) X(DYNAMIC_SLICE, "dynamic-slice", SLICE) X(GATHER, "gather", SLICE)   \
    X(SLICE_START, "slice-start", SLICE) X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", UPDATE)   \
    X(SCATTER, "scatter", SCATTER) X(SORT, "sort", SORT) X(TOP_K, "topk", SORT)                    \
    X(FFT, "fft", CUSTOM) X(CHOLESKY, "cholesky", CUSTOM)                                          \
    X(TRIANGULAR_SOLVE, "triangular-solve", CUSTOM)                                                \
    X(ALL_GATHER, "all-gather", COLLECTIVE) X(ALL_GATHER_START, "all-gather-start", COLLECTIVE)    \
    X(ALL_REDUCE, "all-reduce", COLLECTIVE) X(ALL_REDUCE_START, "all-reduce-start", COLLECTIVE)    \
    X(REDUCE_SCATTER, "reduce-scatter", COLLECTIVE) X(ALL_TO_ALL, "all-to-all", COLLECTIVE)        \
    X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", COLLECTIVE)                                          \
    X(COLLECTIVE_PERMUTE, "collective-permute", COLLECTIVE)                                        \
    X(COLLECTIVE_PERMUTE_START, "collective-permute-start", COLLECTIVE)                            \
    X(COLLECTIVE_BROADCAST, "collective-broadcast", COLLECTIVE) X(SEND, "send", COLLECTIVE)        \
    X(RECV, "recv", FREE) X(FUSION, "fusion", CALL) X(CALL, "call", CALL) X(WHILE, "while", CALL)  \
    X(CONDITIONAL, "conditional", CALL) X(ASYNC_START, "async-start", CALL)                        \
    X(ASYNC_UPDATE, "async-update", FREE) X(ASYNC_DONE, "async-done", DONE)                        \
    X(ALL_GATHER_DONE, "all-gather-done", DONE) X(ALL_REDUCE_DONE, "all-reduce-done", DONE)        \
    X(COLLECTIVE_PERMUTE_DONE, "collective-permute-done", DONE) X(COPY_DONE, "copy-done", DONE)    \
    X(SLICE_DONE, "slice-done", DONE) X(SEND_DONE, "send-done", DONE)                              \
    X(RECV_DONE, "recv-done", DONE) X(INFEED, "infeed", CUSTOM) X(OUTFEED, "outfeed", CUSTOM)      \
    X(CUSTOM_CALL, "custom-call", CUSTOM)
/* clang-format on */
#define SM_OPCODE_ID(id, ...) SM_OPCODE_##id,
typedef enum sm_module_opcode {
    SM_MODULE_OPCODES(SM_OPCODE_ID) SM_OPCODE_OTHER, SM_OPCODE_COUNT
} sm_module_opcode;
/* The name of an opcode in HLO, "all-gather"; "" of SM_OPCODE_OTHER. Static text. */
const char *sm_module_opcode_name(sm_module_opcode opcode);
/* The class of an opcode; of what is not known SM_CLASS_CUSTOM. */
sm_module_class sm_module_class_of(sm_module_opcode opcode);

/* Devices that communicate with each other: groups of equal size, members one after the other. For
 * a permute `size` is 2: from, to. */
typedef struct sm_module_groups {
    int n, size;
    const int32_t *member;
} sm_module_groups;

typedef struct sm_module_convolution {
    sm_module_list window;       /* sizes */
    const char *labels;          /* "b01f_01io->b01f" */
    int64_t features, batches;   /* feature_group_count, batch_group_count */
    sm_module_list dilated_base; /* lhs_dilate, n 0: none */
    sm_module_list pad_low, pad_high, stride, dilated_window;
} sm_module_convolution;

/* How an array of a program that is not partitioned yet is asked to lie. */
typedef struct sm_module_sharding {
    int dims;
    const sm_module_list *dim; /* of each dimension the axes of the module's mesh that cut it, the
                                  major first */
    uint32_t open;             /* dimensions (bit) that may be cut further */
} sm_module_sharding;

typedef struct sm_instruction {
    const char *name;
    sm_module_opcode opcode;
    const char *opcode_name; /* as it is written */
    const sm_module_shape *shape;
    int operands;
    const int *operand; /* instructions of the same computation */
    int calls;
    const int *call; /* computations: of a while its condition and body, of a conditional its
                        branches; of what has to_apply, that */
    int64_t number;  /* of a parameter, an element of a tuple; of a scalar constant its value; of a
                        permute into another array the elements of its pieces, 0: not told */
    bool known;      /* number says the value of a constant */
    char direction;  /* compare: '<', '>', 'l' (<=), 'g' (>=), '=', '!'; 0: another */
    sm_module_list dimensions; /* of gather and scatter those of slices */
    sm_module_list lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
    const sm_module_convolution *convolution;
    sm_module_groups groups; /* n 0: all devices */
    int64_t channel;
    const char *target; /* custom-call: what is called; fusion: its kind; "" */
    /* What the configuration of a custom call says: of an attention the shape of its scores is in
     * `dimensions` (sequences, heads, queries, keys; and where it says so heads of keys, sizes of a
     * head of queries and of values), a product's in the lists above. */
    double estimated_flops, estimated_transcendentals;
    bool causal;    /* an attention in which queries do not meet later keys */
    int64_t window; /* of earlier keys that they meet; 0: all */
    sm_module_list
        in_place;  /* results (elements of the tuple; -1: the whole) that lie in operands */
    int64_t trips; /* of a loop, as the compiler knows them; -1: it does not */
    const sm_module_sharding *sharding; /* NULL: not asked for */
    const char *op_name, *file;         /* where the user's program made it; "" */
    int file_line;
    int frame; /* of the module's table of stack frames, 0: none */
    int line;  /* of the text */
} sm_instruction;

typedef struct sm_computation {
    const char *name;
    int n, root;
    const sm_instruction *instruction; /* in the order of the schedule where there is one */
} sm_computation;

/* An axis of the mesh that the program was written for, where the module names it. */
typedef struct sm_module_axis {
    const char *name;
    int size;
} sm_module_axis;

/* Bytes of a device's memory as the compiler assigned them; of what is neither argument nor result
 * temporaries, of constants none. */
typedef struct sm_module_assigned {
    bool known;
    double argument_bytes, result_bytes, temporary_bytes;
} sm_module_assigned;

typedef struct sm_module {
    const char *name;
    int computations, entry;
    const sm_computation *computation;
    bool whole;       /* not partitioned yet: arrays are those of all devices (spmd.h) */
    bool partitioned; /* by sm_module_partition, not by a compiler */
    bool scheduled;   /* instructions are in the order in which they run */
    int devices;      /* that the program runs on, at least 1 */
    int partitions, replicas;
    sm_module_list in_place; /* results (elements of the tuple) that lie in arguments */
    bool axes_of_shardings;  /* the module names no axes: they are what its shardings cut */
    int axes;
    const sm_module_axis *axis;  /* devices are its elements, the last axis fastest */
    sm_module_assigned assigned; /* of a HloProto, which has it beside the module */
} sm_module;

/* Read a module: its text (HLO, or StableHLO as MLIR), or a protobuf (HloModuleProto, HloProto),
 * told apart by their first bytes. Functions of StableHLO are read where they are called. Texts and
 * tables live in the arena. SM_BAD_INPUT with the place of what cannot be read, SM_INTERNAL when
 * out of memory. */
sm_status sm_module_parse(const sm_source *source, sm_arena *arena, const sm_module **out,
                          sm_error *err);

/* ---- what it does ---- */
/* FLOPs of the matrix unit (2 for each multiply and add of dot and convolution that is not of
 * padding), of the vector unit (1 for each element of a pointwise result), transcendental functions
 * apart; bytes that cross HBM, as a kernel that keeps nothing between instructions moves them. */
typedef struct sm_module_work {
    double matrix_flops, vector_flops, transcendentals;
    double bytes;        /* HBM, both ways */
    double onchip_bytes; /* of memory on the chip (TPU VMEM), where layouts say so */
    double host_bytes;   /* over PCIe */
    /* The largest of its matrix products, and what it multiplies in. */
    double batch, m, n, k;
    sm_dtype dtype;
    sm_attention_shape attention; /* whose products those are; heads 0: they are of none */
    bool backward;                /* that attention */
} sm_module_work;

/* How a computation is reached. */
typedef struct sm_module_runs {
    double times; /* in one run of the module: 0 where it is only part of a kernel */
    bool guessed; /* a loop on the way whose trips are not known counted once, or of the branches
                     of a conditional all were taken to be run */
} sm_module_runs;

/* A module worked out. */
typedef struct sm_module_analysis {
    const sm_module *module;
    const sm_module_work *inner; /* of each computation, once: FLOPs alone */
    const sm_module_runs *runs;  /* of each computation */
    const int *order;            /* of the computations: those that are called come first */
    /* Of each computation whether the result of each instruction is written to memory: all are,
     * but where the compiler has not fused yet: there, what only pointwise readers read is not.
     * NULL: the module is fused. */
    const bool *const *written;
} sm_module_analysis;
/* Work out a module; all lives in the arena. SM_BAD_INPUT when computations call each other in a
 * circle or an instruction does not fit its operands, SM_INTERNAL when out of memory. */
sm_status sm_module_analyse(const sm_module *module, sm_arena *arena,
                            const sm_module_analysis **out, sm_error *err);
/* Trips of a loop: as the compiler says, or as its condition compares an index that starts from a
 * constant and is stepped by one; -1 where neither. */
int64_t sm_module_trips(const sm_module *module, const sm_computation *in,
                        const sm_instruction *loop);
/* The work of one instruction with all that it calls: of a fusion the FLOPs inside, and the bytes
 * of its arguments that are really read, and of its results. Nothing of loops and calls, whose
 * computations are run themselves. */
sm_module_work sm_module_work_of(const sm_module_analysis *analysis, const sm_computation *in,
                                 const sm_instruction *instruction);
/* Is it the custom call by which a program that is not compiled yet asks for an array to be moved
 * to the host's memory; back to the device's? */
bool sm_module_moves_to_host(const sm_instruction *instruction);
bool sm_module_moves_to_device(const sm_instruction *instruction);
/* Is its work known, rather than that of a custom call that only its target knows? */
bool sm_module_is_understood(const sm_instruction *instruction);
/* Bytes of an instruction's result that its readers really read, each as a kernel of its own: less
 * than the result where all of them take slices. */
double sm_module_read_bytes(const sm_module *module, const sm_computation *in, int instruction);
SM_DECLARATIONS_END

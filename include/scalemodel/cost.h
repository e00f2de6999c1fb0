/* cost: what an operation costs on a chip and what a collective costs on a system. Pure functions,
 * no allocation. */
#pragma once
#include "scalemodel/attention.h"
#include "scalemodel/hw.h"
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN

/* ---- groups: where the members of a collective sit ----
 * A group is a list of parts, innermost first: `size` members at `stride` (in units of that level)
 * on `level`. The other chips of the system form further groups of the same kind that run AT THE
 * SAME TIME and share links. */
enum { SM_MAX_PARTS = 12 };
typedef struct sm_part {
    uint8_t level;
    int size, stride;
} sm_part;
typedef struct sm_group {
    int parts;
    sm_part part[SM_MAX_PARTS];
    int size;
} sm_group;

/* Where each mesh axis sits: parts per axis. used: product of the axes; idle: chips / used. */
typedef struct sm_placement {
    int axes;
    sm_group axis[SM_MAX_AXES];
    int used, idle; /* chips used; factor left idle */
} sm_placement;
/* Lay out axes of the given sizes in the given order (order[0] innermost) over the levels in
 * level_order (NULL: 0,1,2,...); each axis takes factors of what is left of the levels, whole
 * levels where sizes match. false when sizes do not factor. */
bool sm_placement_fill(const sm_system *system, int axes, const int *sizes, const int *order,
                       const int *level_order, sm_placement *placement);
/* The rule for a --mesh: an axis whose size equals a torus dimension takes it, in the order
 * written; the other axes take factors of what is left, the last axis fastest (as a row-major
 * reshape of the chips would), on switches the last axis innermost. Slices over the data-centre
 * network go to the first axes. "@LEVEL" counts the numbers of the SHAPE from 0 as they are
 * written: tpu-v5p:16x20x28 has 0 = the 16 .. 2 = the 28 (then 3 = the slices), h100-sxm:128x8 has
 * 0 = the 128 nodes (however many switch levels join them) and 1 = the 8 chips of a node. A mesh
 * smaller than the system is laid out and leaves placement->idle > 1. Errors: product larger than
 * the system, no factorisation, no such level. */
sm_status sm_placement_of_mesh(const sm_system *system, const sm_mesh *mesh,
                               const sm_source *source, sm_placement *placement, sm_error *err);
/* The group along a set of axes: their parts together, merged where contiguous. */
sm_group sm_group_join(const sm_placement *placement, sm_axes axes);

/* ---- collectives ----
 * One algorithm is a line: seconds = latency + bytes x seconds_per_byte; the best is the lowest
 * line at that size. `bytes` is as in sm_step: V of the whole (gathered / unreduced) array of one
 * group as one chip holds it when whole; for a permute what each chip sends.
 *
 * The network: neighbours on a torus dimension have a link each way; each child of a switch level
 * has a link up and a link down, shared by the chips below it. The innermost level of a switched
 * system has ports of its own; messages across higher levels pass all scale-out levels between.
 * All chips of the system are taken to run the collective in groups of the same shape. Two parts
 * of one torus dimension that do not touch run one after the other; their all-to-all, permute,
 * broadcast and reduce are bounded from above by the sum of their busiest links. */
enum { SM_MAX_ALGORITHMS = 8 };
typedef struct sm_algorithm {
    /* "bidirectional ring", "line", "mixed dimension orders", "direct", "hierarchical", ... */
    const char *name;
    /* Hops x hop latency + launch (the book's: no launch); per byte of V at the datasheet
     * bandwidth. */
    sm_line line;
    double link_bytes_per_byte; /* bytes on the busiest link per byte of V */
    uint8_t level;              /* the level that is busiest */
    /* Time each level is busy, per byte of V: streams for the timeline. */
    double level_s_per_byte[SM_MAX_LEVELS];
    /* The closed form of the book: V/W_bidirectional etc., floor(n/2) hops; never in `expected`. */
    bool book;
    /* Levels one after the other, or one direction only: what `upper` is taken from. */
    bool serial;
    /* What `expected` takes instead of the line's latency: the waits of the ring or tree that a
     * collective library runs, and in how many steps (0 on a torus: no protocols there). */
    double hops_s, steps;
    double fill_s;    /* bytes in flight before the links are full, over the slowest link */
    double excess;    /* bytes handled per byte on the wire: a member's own part */
    double start;     /* of collective_s, beyond the first */
    bool peer_kernel; /* one kernel reads the peers' memory (custom all-reduce); no library does */
    sm_collective op; /* and members, of the curve: a calibration may have measured just these */
    int members;
} sm_algorithm;
typedef struct sm_curve {
    sm_collective op;
    int n;
    sm_algorithm algorithm[SM_MAX_ALGORITHMS];
    int group;               /* members */
    double ideal_s_per_byte; /* the least */
} sm_curve;

/* ragged: fraction of an all-to-all's bytes that really move (top-k routing), 1 for dense. */
sm_curve sm_collective_curve(const sm_system *system, sm_collective op, const sm_group *group,
                             double ragged);
/* Of a step of a lowering on this mesh, whose axes are placed so: a permute by the links that its
 * blocks pass (of sm_collective_curve it is a shift by one), the others as above. */
sm_curve sm_step_curve(const sm_system *system, const sm_placement *placement, const sm_mesh *mesh,
                       const sm_step *step);
/* What a permute sends along some axes: pairs of devices of the whole mesh (at least one; the last
 * axis fastest; from, to), which pass no other axes; or, pair NULL, what each group does alike. */
typedef struct sm_messages {
    int pairs;
    const int32_t *pair;
    sm_permutation blocks;
} sm_messages;
sm_curve sm_permute_curve(const sm_system *system, const sm_placement *placement,
                          const sm_mesh *mesh, sm_axes axes, const sm_messages *messages);
/* Expected fraction of a top-k routed all-to-all over Z groups of experts: tokens are sent once per
 * group that hosts any of their k experts: (1-((Z-1)/Z)^k) (of Z equal parts). */
double sm_ragged_fraction(double experts_groups, double k);

typedef struct sm_collective_cost {
    double lower_s, expected_s, upper_s; /* lower: bandwidth alone at datasheet rates; expected:
                                            best algorithm with latency and efficiency */
    double latency_s;                    /* part of expected that is latency */
    double bytes_busiest_link;
    double efficiency; /* datasheet seconds per byte of the algorithm over the expected ones */
    const char *algorithm, *protocol; /* protocol: "" where there is none */
    uint8_t level;
    bool latency_bound;
} sm_collective_cost;

/* ---- calibration: fourteen physical constants per chip and software generation ----
 * id, low, high, unit, meaning. Every constant lies in [low, high]. */
#define SM_CONSTANTS(X)                                                                            \
    X(matmul_efficiency, 0.05, 1.0, "of peak", "large aligned 16-bit matmuls")                     \
    X(matmul_efficiency_fp8, 0.05, 1.0, "of peak", "the same in 8 bits and below")                 \
    X(matmul_half_k, 1.0, 4096.0, "steps", "contraction length at half of that")                   \
    X(attention_efficiency, 0.02, 1.0, "of peak", "fused attention forward, head size 128")        \
    X(attention_efficiency_backward, 0.02, 1.0, "of peak", "the same backward")                    \
    X(memory_efficiency, 0.05, 1.0, "of HBM", "streaming operations")                              \
    X(network_efficiency_inner, 0.02, 1.0, "of link", "collectives on a torus or in a node")       \
    X(network_efficiency_outer, 0.01, 1.0, "of link", "collectives across nodes or slices")        \
    X(launch_s, 1e-8, 1e-3, "s", "exposed per kernel")                                             \
    X(collective_s, 1e-8, 1e-2, "s", "start of a collective, before its hops")                     \
    X(overlap, 0.0, 1.0, "share", "of communication that may hide, what does")                     \
    X(step_overhead_s, 0.0, 100.0, "s", "per step: data, host gaps, logging")                      \
    X(routing_s, 0.0, 1e-4, "s", "per token and layer of experts: permute, count, pad")            \
    X(elementwise_bytes, 0.5, 20.0, "of the least", "moved by norms, activations, residuals")      \
    X(block_scale_s, 0.0, 1e-6, "s", "per element contracted with weights scaled in blocks")
#define SM_CONSTANT_ID(id, ...) SM_CONSTANT_##id,
typedef enum sm_constant { SM_CONSTANTS(SM_CONSTANT_ID) SM_CONSTANT_COUNT } sm_constant;

/* What an interval is learned for. */
#define SM_REGIMES(X)                                                                              \
    X(matmul, "matmul")                                                                            \
    X(attention, "attention")                                                                      \
    X(memory, "memory-bound op")                                                                   \
    X(collective, "collective")                                                                    \
    X(step, "training step")                                                                       \
    X(experts, "training step of experts")                                                         \
    X(peak, "peak memory")                                                                         \
    X(prefill, "prefill") X(decode, "decode") X(throughput, "serving throughput")
#define SM_REGIME_ID(id, ...) SM_REGIME_##id,
typedef enum sm_regime { SM_REGIMES(SM_REGIME_ID) SM_REGIME_COUNT } sm_regime;

/* A collective as measured on groups of so many ranks: takes the place of the algorithms there. */
typedef struct sm_collective_line {
    sm_collective op;
    int ranks;
    sm_line line; /* over V */
} sm_collective_line;

/* The software of constants that `measure` wrote: kernels and collectives timed one by one. */
#define SM_MEASURED_SOFTWARE "measured"
typedef struct sm_calibration {
    const char *chip;     /* as in the catalogue */
    const char *software; /* SM_MEASURED_SOFTWARE, "megatron-2023", "kernels" (single-operation
                             benchmarks), ... */
    const char *source;   /* what rows, what fit, when; or from which relative it is borrowed */
    const char *range;    /* where the fit is valid: shapes, chips, lengths; "" when borrowed */
    SM_CONSTANTS(SM_NUMBER_MEMBER)
    unsigned fitted; /* bit per constant: fitted, not borrowed */
    /* 80 % of held-out measurements lie in [expected x lowest, expected x highest]; 0: not
     * learned here. n: rows it was learned from. */
    struct {
        double lowest, highest;
        int n;
    } interval[SM_REGIME_COUNT];
    const sm_collective_line *line; /* NULL where none was measured, as on all shipped chips */
    int lines;
} sm_calibration;
/* The line that was measured for a collective on groups of so many ranks. NULL when none was. */
const sm_collective_line *sm_calibration_line(const sm_calibration *c, sm_collective op, int ranks);
/* The value of a constant, in its unit (sm_constant_of). */
double sm_calibration_get(const sm_calibration *c, sm_constant which);
/* Set a constant, in its unit. Its range is not checked. */
void sm_calibration_set(sm_calibration *c, sm_constant which, double value);
typedef struct sm_constant_info {
    const char *name, *unit, *meaning;
    double low, high;
} sm_constant_info;
/* Name, unit, meaning and range of a constant. */
const sm_constant_info *sm_constant_of(sm_constant which);
/* The name of a regime, "training step". Static text. */
const char *sm_regime_name(sm_regime regime);

/* How many calibrations are compiled in (from data/calibration/ *.txt), one or more per chip. */
size_t sm_calibration_count(void);
/* The i-th of them, from 0. NULL beyond the end. */
const sm_calibration *sm_calibration_at(size_t i);
/* Where a chip's constants come from. Its row names the calibrations that are its own and the
 * relatives whose constants stand in (sm_chip.calibration, sm_chip.constants_like). */
typedef enum sm_constants_origin {
    SM_CONSTANTS_OWN,
    SM_CONSTANTS_OF_RELATIVE,
    SM_CONSTANTS_OF_FABRIC /* none of the chip's or a relative's: of some chip on such a fabric */
} sm_constants_origin;
/* The calibration of software "default": the chip's own, its nearest relative's, or for want of
 * both that of its fabric ("tpu" for a torus, "h100" for switches, "cpu" for one chip alone). Never
 * NULL. */
const sm_calibration *sm_calibration_of(const sm_chip *chip);
/* The calibration of a software generation; NULL where neither the chip nor a relative has one. */
const sm_calibration *sm_calibration_for(const sm_chip *chip, const char *software);
/* The constants of single operations, where the chip or a relative has them ("kernels"); otherwise
 * the usual ones, which hold what a whole training step loses around its operations. Never NULL. */
const sm_calibration *sm_calibration_of_operations(const sm_chip *chip);
/* The software generations known for the chip or a relative, the usual one first; at most `room`
 * names are written. Returns how many. */
size_t sm_calibration_softwares(const sm_chip *chip, const char **names, size_t room);
/* The chip's own in a list, such as that of a file, of this software; software NULL: the first.
 * NULL when there is none. */
const sm_calibration *sm_calibration_among(const sm_calibration *list, size_t n,
                                           const sm_chip *chip, const char *software);
/* Whether a calibration is the chip's own, of a relative that its row names, or neither. */
sm_constants_origin sm_calibration_origin_of(const sm_calibration *c, const sm_chip *chip);
/* Is the calibration the chip's own? */
bool sm_calibration_is_own(const sm_calibration *c, const sm_chip *chip);
/* The same for kernels of a queue that is never empty, as a graph, a compiled program or a host
 * that is ahead keeps it: launch_s is at most the gap in which a grid drains and the next one
 * fills. */
sm_calibration sm_calibration_ahead(const sm_calibration *c);
/* The 80 % interval of an expected value; wider where the constants are borrowed. The rule is in
 * docs/calibration-file.md. */
void sm_calibration_interval(const sm_calibration *c, const sm_chip *chip, sm_regime regime,
                             double expected, double *low, double *high);
/* A size of a question under the name that ranges tell it by; 0: a kind of thing, which a range
 * names or does not. */
typedef struct sm_asked_size {
    const char *name;
    double value;
} sm_asked_size;
/* Which of n sizes lie beyond a range, "chips 8 to 256; sequence 4096; experts": their names,
 * written to out as "chips, experts"; "" where none does. A size that the range does not tell of
 * lies within it. */
void sm_range_outside(const char *range, const sm_asked_size *size, int n, char *out, size_t room);
/* A training step by the sizes that ranges are told in. */
#define SM_STEP_SIZES(X)                                                                           \
    X(chips, "chips") X(sequence, "sequence") X(d_model, "d_model") X(layers, "layers")
typedef struct sm_step_sizes {
    SM_STEP_SIZES(SM_NUMBER_MEMBER)
    bool experts; /* of a mixture of experts */
} sm_step_sizes;
/* What of a step lies beyond what the constants were fitted to, as their range tells it: "d_model,
 * experts", written to out; "" where nothing does or no range is told. */
void sm_calibration_outside(const sm_calibration *c, const sm_step_sizes *step, char *out,
                            size_t size);
/* Whose interval a step has: that of experts where one was learned. */
sm_regime sm_calibration_step_regime(const sm_calibration *c, bool experts);
/* Make an interval of something expected so many times as wide on the logarithm. */
void sm_interval_widen(double expected, double times, double *low, double *high);
/* Are all constants of a calibration those that are usual on the chip? */
bool sm_calibration_is_usual(const sm_calibration *c, const sm_chip *chip);
/* The text of a calibration file (docs/calibration-file.md); strings live in the arena.
 * SM_BAD_INPUT with the place when a line cannot be read or a constant lies outside its range,
 * SM_INTERNAL when out of memory. */
sm_status sm_calibration_parse(const sm_source *source, sm_arena *arena, sm_calibration **list,
                               size_t *n, sm_error *err);
/* Print a calibration as the text of a file, which sm_calibration_parse reads back. NULL when out
 * of memory. */
char *sm_calibration_format(const sm_calibration *c, sm_arena *arena);

/* The fraction of datasheet bandwidth a level reaches: inner (torus, node) or scale-out. */
double sm_network_efficiency(const sm_system *system, const sm_calibration *c, uint8_t level);
/* An algorithm as it runs: protocols trade latency for bandwidth, so one is timed up to three times
 * and the least time counts. */
enum { SM_MAX_TIMINGS = 3 };
typedef struct sm_timing {
    sm_line line;
    double excess; /* s_per_byte over that of the datasheet at the level's efficiency */
    const char *protocol;
} sm_timing;
/* Fill the timings of an algorithm under a calibration. Returns how many; 0 for the book's
 * algorithm and for peer kernels. */
int sm_algorithm_timings(const sm_algorithm *algorithm, const sm_system *system,
                         const sm_calibration *c, sm_timing timing[SM_MAX_TIMINGS]);
/* The timing of a peer kernel; barriers: 1 where every step has one before and one after it, 0
 * where flags travel with the data. */
sm_timing sm_peer_timing(const sm_algorithm *algorithm, const sm_system *system,
                         const sm_calibration *c, double barriers);
/* What a collective of V = `bytes` costs. lower: ideal_s_per_byte x bytes; expected: the least over
 * algorithms and protocols of latency + bytes x s_per_byte under the calibration; upper: the
 * longest of the serial ones, never below expected. "none" and zeros when the group is one chip. */
sm_collective_cost sm_curve_cost(const sm_curve *curve, const sm_system *system,
                                 const sm_calibration *c, double bytes);

/* ---- operations ---- */
typedef struct sm_op_cost {
    double math_s, memory_s, lower_s, expected_s, upper_s;
    double tile_efficiency;
} sm_op_cost;
/* A matrix product batch x [m,k] x [k,n]. */
typedef struct sm_product_shape {
    double batch, m, n, k;
} sm_product_shape;
/* A local matmul in `dtype` on one chip; bytes: what crosses HBM. expected: tile and wave
 * quantisation, K-loop length, efficiency, launch. A chip without that dtype computes in the
 * nearest wider one it has. */
sm_op_cost sm_matmul_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                          sm_product_shape shape, double bytes);
/* Seconds below which sm_matmul_cost's expectation cannot fall, whatever the shape: an admissible
 * bound for searches. start_s: of any product. */
typedef struct sm_matmul_floor {
    double start_s, s_per_flop, s_per_byte;
} sm_matmul_floor;
sm_matmul_floor sm_matmul_floor_of(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype);
/* Beyond its start, of what multiplying and memory take at these rates. */
double sm_matmul_overlapped_s(double math_s, double memory_s);
/* As sm_matmul_cost, on the vector unit where that takes less time: sums and products of a row or a
 * few, which fill next to nothing of a matrix unit's tiles, are compiled so. */
sm_op_cost sm_product_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                           sm_product_shape shape, double bytes);
/* The one price of attention: forward and backward, fused, unfused and in panels, in training and
 * in serving. FLOPs: 2 x batch x heads x q_len x keys x (head_size + v_head_size); backward 2.5
 * times that (five matmuls for two, scores computed again; unfused kept them: four). lower: FLOPs
 * at peak or bytes at HBM bandwidth; expected: tiles, cores left idle, softmax at small heads,
 * launch. Sizes that are not positive cost a launch. */
sm_op_cost sm_attention_cost(const sm_chip *chip, const sm_calibration *c,
                             const sm_attention_shape *shape, bool backward);
/* Seconds below which sm_attention_cost's expectation cannot fall, proportional to the batch: an
 * admissible bound for searches. */
double sm_attention_floor_s(const sm_chip *chip, const sm_calibration *c,
                            const sm_attention_shape *shape, bool backward);
/* The largest share of the peak that fused attention of any shape reaches. */
double sm_attention_best_efficiency(const sm_calibration *c);
/* A vector operation on one chip: FLOPs at the fp32 rate of the vector unit (of the matrix unit
 * where that is not known), `bytes` at HBM bandwidth. lower: the longer of the two, the roofline
 * (Williams, Waterman and Patterson 2009). expected: memory at memory_efficiency, and the launch.
 */
sm_op_cost sm_vector_cost(const sm_chip *chip, const sm_calibration *c, double flops, double bytes);
/* Several products and vector operations as one kernel, as a scan in chunks is: their inner arrays
 * stay on the chip, and a product waits for what the vector unit makes of the one before it: they
 * take turns. matrix_flops in bf16 at matmul_efficiency. */
sm_op_cost sm_kernel_cost(const sm_chip *chip, const sm_calibration *c, double matrix_flops,
                          double vector_flops, double bytes);
/* Falls back to a wider dtype (fp32 at last to bf16); 0 if there is none. used may be NULL. */
double sm_chip_peak(const sm_chip *chip, sm_dtype dtype, sm_dtype *used);
/* The dtype in which operands of these dtypes are multiplied: the wider one, unless given. */
sm_dtype sm_compute_dtype(const sm_dtype *operands, int n);

/* Roofline of an einsum on one chip: intensity and the critical size of one index. */
typedef enum sm_memory_level {
    SM_MEMORY_HBM,
    SM_MEMORY_ONCHIP,
    SM_MEMORY_HOST /* PCIe */
} sm_memory_level;
typedef struct sm_roofline {
    double flops, bytes, intensity, peak_flops_per_s, bytes_per_s;
    double math_s, memory_s, lower_s, expected_s, upper_s;
    bool compute_bound;
    bool vector; /* nothing is summed: the vector unit does the work, where its rate is known */
    sm_dtype compute;
    const sm_fact *bandwidth; /* the chip's, whose value bytes_per_s is */
} sm_roofline;
/* The roofline of an einsum on one chip under its constants of single operations: FLOPs, bytes of
 * its whole arrays, their intensity in FLOP/B, and times in seconds. *compute: the dtype it
 * multiplies in; NULL: that of sm_compute_dtype. SM_BAD_INPUT when the chip has no rate for the
 * dtype or the memory. */
sm_status sm_roofline_einsum(const sm_chip *chip, const sm_einsum *einsum, sm_memory_level level,
                             const sm_dtype *compute, sm_roofline *out, sm_error *err);
/* The same under constants that are not the chip's usual ones. Errors as sm_roofline_einsum. */
sm_status sm_roofline_under(const sm_chip *chip, const sm_calibration *calibration,
                            const sm_einsum *einsum, sm_memory_level level, const sm_dtype *compute,
                            sm_roofline *out, sm_error *err);
/* Size of index `name` at which math time equals memory time, others fixed; SM_NEGATIVE with a
 * sentence when there is none. */
sm_status sm_roofline_critical(const sm_chip *chip, const sm_einsum *einsum, sm_memory_level level,
                               const sm_dtype *compute, int index, double *size, sm_error *err);
SM_DECLARATIONS_END

/* shard: meshes, shardings, einsums in the book's notation, and the algebra: what must be
 * communicated. "The book" is "How To Scale Your Model", chapter 3. */
#pragma once
#include "scalemodel/text.h"
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

/* An axis of the mesh has at most 11 letters, an index or an array at most 15. */
enum {
    SM_MAX_AXES = 8,
    SM_MAX_RANK = 8,
    SM_MAX_OPERANDS = 10,
    SM_MAX_INDICES = 16,
    SM_MAX_STEPS = 24
};
typedef uint16_t sm_axes; /* a set of mesh axes: bit i = axis i */

/* ---- meshes ----
 * "X=4,Y=8" or "X=4@0,Y=8@1" (@LEVEL places explicitly; several levels: X=32@0.1). The last axis
 * varies fastest. */
typedef struct sm_mesh {
    int axes;
    struct {
        char name[12];
        int size;
        int placed; /* number of levels named, 0 = automatic */
        int level[4];
        sm_span span;
        bool joined; /* it and the axis before it are parts of one, X2 and X1: where it stands right
                        behind that in a dimension the two cut it at once, as X does */
    } axis[SM_MAX_AXES];
    /* The blocks of a dimension may be numbered in any order of its axes: each axis takes the
     * straight way, for no permute is a reason to go another. */
    bool any_order;
    /* The ways of arrays that were found on it, for a search asks for the same ones again; of one
     * thread. NULL: each is looked for. */
    struct sm_routes *routes;
} sm_mesh;
/* None yet. NULL when out of memory. */
struct sm_routes *sm_routes_new(void);
/* Free them. NULL is fine. */
void sm_routes_free(struct sm_routes *routes);
/* Read a mesh from its text, which is the whole source. SM_BAD_INPUT with the place: a name that is
 * not one or is used twice, a size or level that is no number, more axes than SM_MAX_AXES or chips
 * than 2^31. */
sm_status sm_mesh_parse(const sm_source *source, sm_mesh *mesh, sm_error *err);
/* Print a mesh so that it parses back to the same, 0-terminated within size bytes. Returns the
 * length it wants, like snprintf. */
size_t sm_mesh_format(const sm_mesh *mesh, char *out, size_t size);
/* The number of the axis of this name (`length` bytes); -1 if absent. */
int sm_mesh_find(const sm_mesh *mesh, const char *name, size_t length);
/* Chips along a set of axes: the product of their sizes, 1 of none. */
double sm_mesh_size(const sm_mesh *mesh, sm_axes axes);
/* Those of a set of axes that have more than one chip. */
sm_axes sm_mesh_real_axes(const sm_mesh *mesh, sm_axes axes);
/* Print a set of axes: "XY", or "fsdp,tensor" where a name has more than a letter. Returns the
 * length it wants. */
size_t sm_axes_format(const sm_mesh *mesh, sm_axes axes, char *out, size_t size);
/* Strides of device numbers at which axes end, in ascending order. */
enum { SM_MESH_MOST_CUTS = 128 };
typedef struct sm_mesh_cuts {
    int n;
    bool crossed; /* there were more, or some that the mesh has not */
    int64_t at[SM_MESH_MOST_CUTS];
} sm_mesh_cuts;
/* One more stride, from 1; what stands there already is passed over. */
void sm_mesh_cut(sm_mesh_cuts *cuts, int64_t at);
/* The mesh of so many devices with axes X, Y, ... between the cuts, the slowest first; one of a
 * single device has none. Those that no mesh with the ones before them has, and those beyond
 * SM_MAX_AXES axes, are taken out of `cuts`, which then are 1 and the end of each axis. */
void sm_mesh_of_cuts(sm_mesh_cuts *cuts, int64_t devices, sm_mesh *mesh);

/* ---- arrays and einsums ----
 * One dimension of an array: its index and the axes that shard it, major first ("I_XY": X then Y;
 * chip (x,y) holds block x*|Y|+y, as JAX's PartitionSpec(('X','Y')) has it). */
typedef struct sm_dim {
    int index;
    int n_axes;
    uint8_t axis[SM_MAX_AXES];
    sm_span span;
} sm_dim;
typedef struct sm_array {
    char name[16]; /* "" when unnamed */
    sm_dtype dtype;
    bool dtype_given;
    int rank;
    sm_dim dim[SM_MAX_RANK];
    sm_axes unreduced; /* {U_Z}: partial sums over these axes */
    sm_span span;
} sm_array;

/* An index of an einsum: a letter or word, or a size ("16384" is an index of that size). */
typedef struct sm_index {
    char name[16];
    double size; /* 0 = not known yet */
    bool literal;
    int repeats; /* 1 + the index that stands again, "A[I,I]": its second place in the operand has
                    an index of its own, of the same name and size; 0: none */
} sm_index;
typedef struct sm_einsum {
    int operands;
    sm_array in[SM_MAX_OPERANDS];
    sm_array out;
    bool has_output;         /* "->" was written, or sm_einsum_infer_output has run */
    bool out_sharding_given; /* "->" was written: the output is wanted as it stands there */
    int indices;
    sm_index index[SM_MAX_INDICES];
} sm_einsum;

/* Grammar: einsum = array {['*'] array} ['->' array]
 *          array  = [DTYPE] [NAME] '[' [dim {',' dim}] ']' ['{U_' axes '}']
 *          dim    = (NAME | NUMBER) ['_' axes]
 *          axes   = axis names run together, split by longest match ("XY"), or in braces with
 *                   commas ("{fsdp,tensor}")
 * Blanks stand anywhere; a middle dot is '*' and the arrow U+2192 is '->'. A lone word before '['
 * is a data type when it names one. Names tie dimensions together. Literal sizes are tied thus:
 * the first dimension of an operand is the last of the operand before it when both are literal and
 * equal; a literal of the output is the next one of that size that stands in one operand only;
 * operands that share no dimension but hold equal literals are an error that asks for names. A name
 * that stands twice in one operand reads its diagonal, A[I,I]; in the output it is an error.
 * mesh may be NULL (then an axis is an error that says there is no mesh). SM_BAD_INPUT with the
 * place names the unknown axis, the axis or index used twice, what was expected. */
sm_status sm_einsum_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *einsum,
                          sm_error *err);
/* Read one array, into holder->in[0]. SM_BAD_INPUT as sm_einsum_parse. */
sm_status sm_array_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *holder,
                         sm_error *err);
/* Set the sizes of named indices from "I=1024,J=4k", whole numbers from 1 to 1e18; "" sets none.
 * SM_BAD_INPUT with the place of an unknown index or of what is no size. */
sm_status sm_dims_parse(const sm_source *source, sm_einsum *einsum, sm_error *err);
/* Without "->": indices that stand once are kept, in order of appearance; shared ones, and those
 * that stand twice in one operand, are contracted. Sets has_output (the dtype of the first operand,
 * no sharding). SM_BAD_INPUT when it would have more than SM_MAX_RANK dimensions. */
sm_status sm_einsum_infer_output(sm_einsum *einsum, const sm_source *source, sm_error *err);
/* Check an einsum: sizes known, their product at most 1e18, each axis once per array; SM_BAD_INPUT
 * with the place when not. An axis in two operands is fine (the book's case 4): lowering gathers
 * one of them. source (the einsum's text, for places) may be NULL, here and in
 * sm_einsum_infer_output. */
sm_status sm_einsum_check(const sm_einsum *einsum, const sm_mesh *mesh, const sm_source *source,
                          sm_error *err);
/* Print one array: "bf16 A[I_X,J]". Returns the length it wants. */
size_t sm_array_format(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh,
                       char *out, size_t size);
/* Print an einsum so that it parses back to the same. Returns the length it wants. */
size_t sm_einsum_format(const sm_einsum *einsum, const sm_mesh *mesh, char *out, size_t size);

/* What the fullest of so many chips has of a size: ceil(size / ways). A size that does not divide
 * is padded to blocks of that length, as XLA does: the last chips have a shorter part, or none. */
double sm_cut(double size, double ways);
/* Into how many parts these axes and those it has cut a dimension; is it padded then? */
double sm_dim_ways(const sm_mesh *mesh, const sm_dim *dim, sm_axes more);
bool sm_dim_padded(const sm_einsum *einsum, const sm_mesh *mesh, const sm_dim *dim, sm_axes more);
/* Does an index stand among the array's dimensions? */
bool sm_array_has(const sm_array *array, int index);
/* The index that this one repeats in an operand of which the einsum reads the diagonal; -1 of all
 * others, also where the output keeps both, as that of a resharding does. */
int sm_index_repeats(const sm_einsum *einsum, int index);
/* Does the einsum read no more than the diagonal of an array? */
bool sm_array_is_diagonal(const sm_array *array, const sm_einsum *einsum);
/* Give an index its size, and those that repeat it. */
void sm_index_set_size(sm_einsum *einsum, int index, double size);
/* Elements of the whole array: the product of the sizes of its indices. */
double sm_array_elements(const sm_array *array, const sm_einsum *einsum);
/* Bytes of the part that one chip holds, padding included: each dimension cut by the axes that
 * shard it. Unreduced axes do not divide. */
double sm_array_local_bytes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh);
/* What the einsum reads of an array of these sizes, in elements: all, or the diagonal of the
 * dimensions that repeat an index, as long as the shortest of them. */
double sm_array_elements_read(const sm_array *array, const sm_einsum *einsum, const double *size);
/* 2 x product of all indices (batch, contracting and repeated ones once), as XLA counts a dot; 0
 * for a lone operand without contraction. */
double sm_einsum_flops(const sm_einsum *einsum);

/* ---- the algebra ----
 * The iteration space of an einsum is the product of its indices. Each mesh axis is assigned to at
 * most one index of that space (at[axis]: an index number, or SM_REPLICATED): the chips along the
 * axis split that index and each does its part. From the assignment everything else follows, for
 * each mesh axis on its own:
 *   an operand sharded on the axis at the assigned index: nothing; sharded elsewhere: all-gather,
 *   or all-to-all when the operand has the assigned index too (the axis moves from one dimension
 *   to the other); not sharded, but it has the assigned index: local slice, free;
 *   an unreduced operand: reduce-scatter onto the assigned dimension, or all-reduce;
 *   assigned to a contracted index: the product is a partial sum, {U_axis}; to an output index: the
 *   output is sharded there; assigned to the second place of an index, A[I_X,I_Y] -> C[I]: a chip
 *   has the part of the diagonal that its block holds, zeros else, a partial sum too: C[I_X] {U_Y};
 *   the output then moves to the wanted sharding: reduce-scatter, all-reduce, all-to-all,
 *   all-gather or local slice. */
#define SM_COLLECTIVES(X)                                                                          \
    X(ALL_GATHER, "all-gather")                                                                    \
    X(REDUCE_SCATTER, "reduce-scatter")                                                            \
    X(ALL_REDUCE, "all-reduce")                                                                    \
    X(ALL_TO_ALL, "all-to-all")                                                                    \
    X(PERMUTE, "permute")                                                                          \
    X(BROADCAST, "broadcast")                                                                      \
    X(REDUCE, "reduce")
#define SM_COLLECTIVE_ID(id, ...) SM_##id,
typedef enum sm_collective { SM_COLLECTIVES(SM_COLLECTIVE_ID) SM_COLLECTIVE_COUNT } sm_collective;
/* The name of a collective, "all-gather". Static text. */
const char *sm_collective_name(sm_collective op);
/* Find the collective of this name (`length` bytes). False, with *op untouched, when there is none.
 */
bool sm_collective_parse(const char *text, size_t length, sm_collective *op);
/* Whether it adds partial sums: before it the array is {U_axes}. */
bool sm_collective_reduces(sm_collective op);
extern const char *const sm_collective_names[SM_COLLECTIVE_COUNT];

/* Places of an axis that are no index or dimension.
 * SM_REPLICATED  the chips along the axis hold, or compute, the same.
 * SM_UNREDUCED   they hold partial sums (layouts only).
 * SM_ASSISTING   they compute the same, and help with each all-gather: the array is first sliced
 *                over the axis too, for free, then gathered over all, with the links of more axes
 *                (assignments only; question 2 of the chapter: [B_X,D] -> [B_XZ,D] -> [B,D]). */
enum { SM_REPLICATED = -1, SM_UNREDUCED = -2, SM_ASSISTING = -3 };

/* Which dimension of an array each mesh axis shards, and its place among the axes of that
 * dimension, 0 = major. */
typedef struct sm_layout {
    int8_t dim[SM_MAX_AXES], place[SM_MAX_AXES];
} sm_layout;
/* The layout that the dimensions and unreduced axes of an array describe. */
sm_layout sm_layout_of(const sm_array *array);

typedef enum sm_step_kind { SM_STEP_COLLECTIVE, SM_STEP_SLICE, SM_STEP_EINSUM } sm_step_kind;
typedef struct sm_step {
    sm_step_kind kind;
    sm_collective op;
    int array;    /* operand number, or -1 for the output */
    sm_axes axes; /* communicated over (all at once) */
    int from, to; /* index numbers: what loses and what gains the axes; -1 if none or several */
    /* bytes of the whole array of one group, local to a chip when gathered: for all-gather the
     * size AFTER, for reduce-scatter, all-reduce and reduce the size BEFORE, for all-to-all the
     * size a chip holds times the group size, for permute (blocks change chips, I_XY to I_YX or
     * I_X,J_Y to I_Y,J_X) the size a chip holds, or the sum of the pieces it gets; 0 for slice and
     * einsum. */
    double bytes;
    double flops;       /* of the local einsum */
    double local_bytes; /* bytes an einsum reads and writes on a chip */
    bool in_one; /* it cannot run in chunks inside the einsum: a dimension that loses or gains
                    the axes is longer in blocks than whole, or a diagonal is read */
    sm_layout before, after; /* of the array: as it is moved, and when the step is done (of the
                                output for an einsum, which has none before) */
} sm_step;

/* Bytes that each chip receives over the network in a step on a group of n chips: bytes (n-1)/n of
 * an all-gather or reduce-scatter, twice that of an all-reduce, bytes (n-1)/n^2 of an all-to-all,
 * all of a permute; 0 of a slice or an einsum. mesh: the one that the step's axes are of. */
double sm_step_wire_bytes(const sm_mesh *mesh, const sm_step *step);

/* Steps of one operand come before those of the next, all before the einsum, those of the output
 * after it. Each array takes a route of least bytes, seldom in more steps than it must
 * (src/shard/route.c): slices are free; axes that leave a dimension must be its minor ones, and
 * those that come are minor; one all-to-all may move several axes between several dimensions; a
 * permute changes which axes shard, not how finely: where a padded dimension is cut at other places
 * blocks come in pieces from several chips. Axes of size 1 make no steps. */
typedef struct sm_lowering {
    int8_t at[SM_MAX_AXES]; /* the assignment */
    sm_array out;           /* final output sharding */
    bool moves_only;        /* the output is the operand as it was moved: nothing to compute */
    double flops_per_chip;
    double wire_bytes; /* that each chip receives over the network, in all steps */
    /* Peak of live local arrays over the steps: the operands as stored throughout, the newest
     * version of each, both ends of the running step, the output. */
    double peak_bytes;
    /* The parts that axes are split into where that moves less: X=4 as 2 x 2, major first. 0: the
     * steps are on the mesh as it is. */
    int parts;
    struct {
        int8_t axis; /* of the mesh as it is */
        int size;
    } part[SM_MAX_AXES];
    int steps;
    sm_step step[SM_MAX_STEPS]; /* so many of them; axes and layouts are of sm_lowering_mesh */
} sm_lowering;
/* The mesh that the steps are on: `mesh`, or with the parts of its axes as axes, X1 and X2. Chips
 * keep their numbers. */
void sm_lowering_mesh(const sm_lowering *lowering, const sm_mesh *mesh, sm_mesh *split);
/* Split the axes of a mesh into primes, as far as SM_MAX_AXES parts go. False, with no parts, when
 * every axis stays whole. */
bool sm_lowering_split(sm_lowering *lowering, const sm_mesh *mesh);
/* An array of the mesh as it is, on the mesh that the steps are on. */
sm_array sm_lowering_array(const sm_lowering *lowering, const sm_array *array);
/* A layout of the mesh as it is, on the mesh that the steps are on. */
sm_layout sm_lowering_layout(const sm_lowering *lowering, const sm_layout *layout);
/* The axes of the mesh as it is that a step's axes are, or are parts of. */
sm_axes sm_lowering_axes(const sm_lowering *lowering, sm_axes axes);
/* Is it one array that keeps its indices? Then there is nothing to compute, only to move. */
bool sm_einsum_is_resharding(const sm_einsum *einsum);

/* Lower one assignment (at[] has mesh->axes entries). SM_BAD_INPUT when more than SM_MAX_STEPS
 * steps are needed, or when `want` cannot be reached: its indices differ, or it is {U_axis} where
 * no partial sum is. want == NULL leaves the output as it falls (unreduced axes are then
 * all-reduced unless keep_unreduced). */
sm_status sm_einsum_lower(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                          const sm_array *want, bool keep_unreduced, sm_lowering *lowering,
                          sm_error *err);

/* Every useful lowering of one assignment to the output as wanted: that of least bytes; where it
 * takes a detour, the straight one, for least bytes need not be least time; where steps on parts of
 * axes move less, that. Returns how many, 0 with the error of sm_einsum_lower. */
enum { SM_MOST_WAYS = 3 };
int sm_einsum_lower_ways(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                         const sm_array *want, sm_lowering *way, sm_error *err);

/* Told of one lowering; false stops. */
typedef bool (*sm_lowering_visit)(const sm_lowering *lowering, void *context);
/* Enumerate every useful lowering without duplicates, calling `each`: every axis assigned to every
 * index or none, axes that no array mentions also SM_ASSISTING; to the output as written
 * (out_sharding_given), else to any output, with partial sums all-reduced or scattered onto each
 * dimension that divides. Deterministic order; at most 4096 assignments and 4096 visits: beyond,
 * each axis keeps its likeliest indices. Left out as dominated: computing whole on every chip what
 * the output wants sliced. SM_NEGATIVE when there is none. */
sm_status sm_einsum_alternatives(const sm_einsum *einsum, const sm_mesh *mesh,
                                 sm_lowering_visit each, void *context, sm_error *err);

/* A lowering put together of the ways that its arrays take, each by itself. */
typedef struct sm_composition {
    const sm_einsum *einsum; /* operands as they are stored, the output as it is wanted */
    const sm_mesh *mesh;
    const int8_t *at; /* the assignment */
    /* Each operand in the local einsum, then the product, its partial sums included. */
    sm_array split[SM_MAX_OPERANDS + 1];
    /* Lowerings of lone arrays (sm_einsum_lower_ways) from there and to there: of an operand from
     * how it is stored, of the product to the output. On whole axes, or on their parts. */
    const sm_lowering *move[SM_MAX_OPERANDS + 1];
} sm_composition;
/* SM_BAD_INPUT when more than SM_MAX_STEPS steps are needed, SM_INTERNAL when a move does not lead
 * where it should. */
sm_status sm_einsum_compose(const sm_composition *c, sm_lowering *lowering, sm_error *err);

/* ---- ranges: "1..4096", "64..4096:64" by a step, "1..64*4" by a factor ---- */
enum { SM_MAX_RANGES = 4, SM_MAX_POINTS = 4096 };
typedef enum sm_range_form {
    SM_RANGE_WHOLE, /* whole numbers from 1; doubling where it does not say how, to the last value
                     */
    SM_RANGE_BYTES, /* "1kB..1GB", likewise */
    SM_RANGE_NUMBER /* any; a step of one where it does not say how */
} sm_range_form;
typedef struct sm_range {
    double first, last, step; /* step 0: doubling, the last value included */
    bool times;               /* step is a factor */
} sm_range;
/* Read a range, or one value, standing at span of the source. SM_BAD_INPUT with the place. */
sm_status sm_range_parse(const sm_source *source, sm_span span, sm_range_form form, sm_range *range,
                         sm_error *err);
/* How many values a range has, INT_MAX at most. */
int sm_range_points(const sm_range *range);
/* The value at a point, from 0. Beyond the last point of a doubling range it is the last value. */
double sm_range_value(const sm_range *range, int point);

typedef struct sm_size_range {
    sm_span name;
    sm_range values;
    int index; /* of the einsum that it sizes */
} sm_size_range;
/* Ranges vary like the digits of a clock: the last one fastest. One point and no range when every
 * size is fixed. */
typedef struct sm_size_sweep {
    int ranges;
    sm_size_range range[SM_MAX_RANGES];
    int points;
} sm_size_sweep;
/* As sm_dims_parse, with ranges too: the einsum then holds the sizes of the first point. A source
 * without text gives no sizes. SM_BAD_INPUT with the place, also of more than SM_MAX_RANGES ranges
 * or SM_MAX_POINTS points; SM_INTERNAL when out of memory. */
sm_status sm_size_sweep_parse(const sm_source *dims, sm_arena *arena, sm_einsum *einsum,
                              sm_size_sweep *sweep, sm_error *err);
/* Give the einsum the sizes of a point, 0 .. points - 1. */
void sm_size_sweep_point(const sm_size_sweep *sweep, int point, sm_einsum *einsum);
/* ---- the part of an array that one chip holds ---- */
/* Those of 8 bits and less are scaled: a block has a scale for each of its boxes, in single
 * precision, or of E2M1 a power of two in a byte (e8m0). Floats of 8 bits: e4m3 (Micikevicius et
 * al., arXiv 2209.05433); of 4: e2m1, two to a byte, the first in its lower half (OCP Microscaling
 * Formats, version 1.0). */
#define SM_ELEMENTS(X)                                                                             \
    X(F32, "f32", 32)                                                                              \
    X(F64, "f64", 64)                                                                              \
    X(S32, "s32", 32)                                                                              \
    X(S64, "s64", 64) X(BF16, "bf16", 16) X(S8, "s8", 8) X(E4M3, "e4m3", 8) X(E2M1, "e2m1", 4)
#define SM_ELEMENT_ID(id, ...) SM_ELEMENT_##id,
typedef enum sm_element { SM_ELEMENTS(SM_ELEMENT_ID) SM_ELEMENT_COUNT } sm_element;
/* Bytes of one element; 0 of none, and of half a byte. */
size_t sm_element_bytes(sm_element element);
/* Do blocks of it have scales? */
static inline bool sm_element_scaled(sm_element element) { return element >= SM_ELEMENT_S8; }
/* to[i] += from[i], count of them. Whole numbers wrap around, bf16 is rounded to the nearest. */
void sm_elements_add(void *to, const void *from, size_t count, sm_element element);
/* Elements first .. first + n - 1 of data, F32 or BF16 (the upper half of a float), as numbers of
 * single precision; and such numbers as these elements, to the nearest, ties to even. */
void sm_elements_read(sm_element element, const void *data, size_t first, size_t n, float *out);
void sm_elements_write(sm_element element, void *data, size_t first, size_t n, const float *from);

/* A chip's part of a sharded array, row-major. */
typedef struct sm_local_block {
    sm_element element;
    int rank;
    size_t size[SM_MAX_RANK];
    size_t whole[SM_MAX_RANK]; /* of the array; 0: its blocks make it up without padding */
    size_t box[SM_MAX_RANK];   /* of scaled elements: those that share a scale; divides the size */
    void *data; /* NULL: not there. Whoever makes it says what it is (the runtime: memory). Scales,
                   row-major, stand behind the elements (sm_local_block_scales) */
} sm_local_block;
/* Elements of the block: the product of its sizes. */
size_t sm_local_block_count(const sm_local_block *b);
/* Bytes of the block's elements with their scales. */
double sm_local_block_bytes(const sm_local_block *b);
/* Of a scaled block: bytes of an element with its part of a scale; where in data the first scale
 * is; bytes of a scale. */
double sm_scaled_element_bytes(sm_element element, int rank, const size_t *box);
size_t sm_local_block_scales(const sm_local_block *b);
size_t sm_scale_bytes(sm_element element);
/* The scale of a box; boxes are counted row-major. */
float sm_local_block_scale(const sm_local_block *b, size_t box);
/* Elements first .. first + n - 1 of a block of F32, BF16 or a scaled type as numbers of single
 * precision: what is stored times its scale, rounded once. */
void sm_local_block_read(const sm_local_block *b, size_t first, size_t n, float *out);
/* A few rows x [m,k] times a matrix [k,n], whose rows begin at elements first, first + lead, ... of
 * a block of F32, BF16 or a scaled type, or (turned) those of its transpose [n,k]; added to the
 * rows of y, which are `apart` apart. The matrix is converted once for all rows. */
typedef struct sm_few_rows {
    const float *x;
    float *y;
    size_t m, k, n, apart, first, lead;
    bool turned;
} sm_few_rows;
void sm_local_block_add_product(const sm_local_block *b, const sm_few_rows *f);
/* All elements of such a block from numbers of single precision, to the nearest, ties to even.
 * scale: of each number, that it was read with; where it is one over a box, the box keeps it. NULL,
 * or elsewhere: the scale that makes the largest number of the box the largest that is stored (of
 * E2M1: the power of two that has it within its largest binade, as OCP has it). */
void sm_local_block_write(sm_local_block *b, const float *from, const float *scale);
/* Into how many parts the axes of `among` cut a dimension of an array laid out so. */
size_t sm_layout_parts(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among);
/* Which of these parts the chip at the coordinates `at` (one of each axis) holds, the major axis
 * first. */
size_t sm_layout_part(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among,
                      const int *at);
/* Of an axis that is joined to the one before: does that stand right before it in its dimension? */
static inline bool sm_layout_joins(const sm_layout *layout, int axis) {
    int before = axis - 1;
    return layout->dim[before] == layout->dim[axis] &&
           layout->place[before] + 1 == layout->place[axis];
}
/* The same of a dimension of `length` elements: each axis cuts what those before it left into equal
 * blocks, of which the last are padded; joined ones cut at once. Blocks thus lie within those of
 * fewer axes, unless these end between joined ones. */
typedef struct sm_part_range {
    size_t offset, size; /* of the block; the offset may be the end of the dimension */
    size_t held;         /* elements that are there, the rest of `size` is padding */
} sm_part_range;
sm_part_range sm_layout_range(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among,
                              const int *at, size_t length);
/* The block of an array of an einsum under a layout, without data, padding included. */
sm_local_block sm_local_block_shape(const sm_mesh *mesh, const sm_einsum *einsum,
                                    const sm_array *array, const sm_layout *layout,
                                    sm_element element);
/* A permute along some axes: which chip gets whose block. */
typedef struct sm_permutation {
    int axes;
    int8_t axis[SM_MAX_AXES], class_after[SM_MAX_AXES]; /* as the layout after has them */
    int size[SM_MAX_AXES];
    int8_t class_of[SM_MAX_AXES]; /* before, by axis */
    int weight[SM_MAX_AXES];
} sm_permutation;
/* Both layouts cut each dimension into as many parts by these axes. */
void sm_permutation_of(const sm_mesh *mesh, sm_axes axes, const sm_layout *before,
                       const sm_layout *after, sm_permutation *p);
/* to: the chip whose block afterwards has the number of that of `at` before, and `shift` more in
 * each dimension (NULL: none); of several that hold the same block the one with the same number
 * among them. Coordinates along other axes are not touched. False, with no chip, beyond the last
 * block. */
bool sm_permutation_apply(const sm_permutation *p, const int *at, const int *shift, int *to);
/* The pieces in which the blocks of a dimension come when it is cut at other places into as many:
 * block k afterwards has at most `width` elements of what was block k + shift. One piece, the whole
 * block, where the places are the same. */
enum { SM_MOST_PIECES = 8 };
typedef struct sm_pieces {
    int n, shift[SM_MOST_PIECES];
    double width[SM_MOST_PIECES];
} sm_pieces;
/* chips: of each axis that a layout has; joined: as axes of a mesh are. False where there would be
 * more than SM_MOST_PIECES, or blocks are too many to be looked at. */
bool sm_layout_pieces(const int *chips, sm_axes joined, const sm_layout *before,
                      const sm_layout *after, int dim, double length, sm_pieces *pieces);
/* Are two layouts the same on every axis of more than one chip? */
bool sm_layout_same(const sm_mesh *mesh, const sm_layout *a, const sm_layout *b);

/* ---- XLA's shardings ---- */
/* So many devices at such a stride of their numbers, over which a dimension is cut; dim -1: over
 * which the array is replicated. */
typedef struct sm_xla_piece {
    int dim;
    int64_t size, stride;
} sm_xla_piece;
enum { SM_XLA_MOST_PIECES = 64 };
/* The tiles of an array, of each dimension the major piece first; devices 1: {replicated}. */
typedef struct sm_xla_tiles {
    int64_t devices;
    int pieces;
    sm_xla_piece piece[SM_XLA_MOST_PIECES];
} sm_xla_tiles;
/* Read "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", a part of a source, for an array
 * of `rank` dimensions. SM_BAD_INPUT with the place of what cannot be read, or is no mesh of
 * devices. */
sm_status sm_xla_tiles_read(const sm_source *source, sm_span text, int rank, sm_xla_tiles *out,
                            sm_error *err);
/* Cut a mesh where the pieces end; and then, once sm_mesh_of_cuts made the mesh, the numbers of the
 * axes that a piece covers, major first. Returns how many. */
void sm_xla_cut(sm_mesh_cuts *cuts, const sm_xla_tiles *tiles);
int sm_xla_axes(const sm_mesh_cuts *cuts, const sm_xla_piece *piece, int axis[SM_MAX_AXES]);
/* Two shardings of an array of `rank` dimensions, "{devices=[2,1,4]<=[8]}",
 * "{devices=[2,2]0,2,1,3}",
 * "{replicated}", on one mesh with axes X, Y, ...: *einsum is the change in the notation,
 * "A[I_X,J] -> A[I,J_X]". Both texts live in the arena. SM_BAD_INPUT with the place of what cannot
 * be read, or when the two cut the devices across each other; SM_INTERNAL when out of memory. */
sm_status sm_xla_resharding(const sm_source *from, const sm_source *to, int rank, sm_arena *arena,
                            sm_mesh *mesh, const char **einsum, sm_error *err);
SM_DECLARATIONS_END

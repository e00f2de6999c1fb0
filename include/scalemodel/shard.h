/* shard: meshes, shardings, einsums in the book's notation, and the algebra: what must be communicated. */
#ifndef SCALEMODEL_SHARD_H
#define SCALEMODEL_SHARD_H
#include "scalemodel/base.h"
#include "scalemodel/text.h"
#include "scalemodel/units.h"

/* An axis of the mesh has at most 11 letters, an index or an array at most 15. */
enum { SM_MAX_AXES = 8, SM_MAX_RANK = 8, SM_MAX_OPERANDS = 4, SM_MAX_INDICES = 16, SM_MAX_STEPS = 24 };
typedef uint16_t sm_axes;       /* a set of mesh axes: bit i = axis i */

/* "X=4,Y=8" or "X=4@0,Y=8@1" (@LEVEL places explicitly; several levels: X=32@0.1). The last axis varies fastest. */
typedef struct sm_mesh {
    int axes;
    struct { char name[12]; int size; int placed; int level[4]; sm_span span; } axis[SM_MAX_AXES]; /* placed: number of levels named, 0 = automatic */
} sm_mesh;
sm_status sm_mesh_parse(const sm_source *source, sm_mesh *mesh, sm_error *err);
size_t sm_mesh_format(const sm_mesh *mesh, char *out, size_t size);
int sm_mesh_find(const sm_mesh *mesh, const char *name, size_t length); /* -1 if absent */
double sm_mesh_size(const sm_mesh *mesh, sm_axes axes);                 /* product of the sizes */
size_t sm_axes_format(const sm_mesh *mesh, sm_axes axes, char *out, size_t size); /* "XY" (or "fsdp,tensor") */

/* One dimension of an array: its index letter and the axes that shard it, major first ("I_XY": X then Y). */
typedef struct sm_dim { int index; int n_axes; uint8_t axis[SM_MAX_AXES]; sm_span span; } sm_dim;
typedef struct sm_array {
    char name[16];              /* "" when unnamed */
    sm_dtype dtype; bool dtype_given;
    int rank; sm_dim dim[SM_MAX_RANK];
    sm_axes unreduced;          /* {U_Z}: partial sums over these axes */
    sm_span span;
} sm_array;

/* Indices of an einsum: a letter or word ("B", "D", "16384" becomes an anonymous index of that size). */
typedef struct sm_index { char name[16]; double size; /* 0 = not known yet */ bool literal; } sm_index;
typedef struct sm_einsum {
    int operands; sm_array in[SM_MAX_OPERANDS];
    sm_array out; bool has_output;        /* "A[..] B[..]" without "->": output indices are inferred by the matmul verb only */
    bool out_sharding_given;              /* some axis or {U_..} stands on the output, or "->" was written */
    int indices; sm_index index[SM_MAX_INDICES];
} sm_einsum;
/* Grammar: array = [DTYPE] [NAME] '[' dim {',' dim} ']' ['{U_' axes '}'];  dim = (NAME | NUMBER) ['_' axes]
 *          axes = letters that each name a mesh axis ("XY"), or {fsdp,tensor} in braces for long names.
 *          einsum = array {array} ['->' array].
 * mesh may be NULL (then any axis is an error that says there is no mesh). Literal sizes: "bf16[1024,4096]" gets indices;
 * in "bf16[B,D] int8[D,F] -> bf16[B,F]" names tie operands together. dims: "I=1024,J=4096" sets sizes (may be NULL).
 * Errors name the axis used twice, the unknown axis, the index with no size, the size that does not divide, ... */
sm_status sm_einsum_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *einsum, sm_error *err);
sm_status sm_array_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *holder, sm_error *err); /* one array, into in[0] */
sm_status sm_dims_parse(const sm_source *source, sm_einsum *einsum, sm_error *err);
/* Without "->": indices that stand in one operand are kept, in order of appearance; shared ones are contracted.
 * Sets has_output (the dtype of the first operand, no sharding). source may be NULL; it places the error. */
sm_status sm_einsum_infer_output(sm_einsum *einsum, const sm_source *source, sm_error *err);
sm_status sm_einsum_check(const sm_einsum *einsum, const sm_mesh *mesh, const sm_source *source, sm_error *err); /* sizes known, divisible, axes once per array */
size_t sm_array_format(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh, char *out, size_t size);
size_t sm_einsum_format(const sm_einsum *einsum, const sm_mesh *mesh, char *out, size_t size); /* parses back to the same */

double sm_array_elements(const sm_array *array, const sm_einsum *einsum);                    /* global */
double sm_array_local_bytes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh);
double sm_einsum_flops(const sm_einsum *einsum); /* 2 x product of all indices when there is a contraction or >1 operand (batch and
                                                    contracting indices once); 0 for a single operand without contraction */

/* ---- the algebra ----
 * The iteration space of an einsum is the product of its indices. Each mesh axis is assigned to at most one index of that
 * space (`at[axis]`, an index number, or SM_REPLICATED): the chips along the axis split that index and each does its part.
 * From the assignment everything else follows, for each mesh axis on its own:
 *   operand dim sharded on the axis and assigned there: nothing; sharded but assigned elsewhere: all-gather, or all-to-all
 *   when the operand has the assigned index too (the axis moves from one dim to the other); not sharded but assigned to one of its indices: local slice, free;
 *   an unreduced operand: reduce-scatter onto the assigned dim, or all-reduce;
 *   assigned to a contracted index: the product is a partial sum, {U_axis}; assigned to an output index: the output is sharded there;
 *   the output then moves to the wanted sharding: reduce-scatter, all-reduce, all-to-all, all-gather or local slice. */
#define SM_COLLECTIVES(X)                      \
    X(ALL_GATHER, "all-gather")                \
    X(REDUCE_SCATTER, "reduce-scatter")        \
    X(ALL_REDUCE, "all-reduce")                \
    X(ALL_TO_ALL, "all-to-all")                \
    X(PERMUTE, "permute")                      \
    X(BROADCAST, "broadcast")
typedef enum sm_collective {
#define X(id, name) SM_##id,
    SM_COLLECTIVES(X)
#undef X
    SM_COLLECTIVE_COUNT
} sm_collective;
const char *sm_collective_name(sm_collective op);
bool sm_collective_parse(const char *text, size_t length, sm_collective *op);
extern const char *const sm_collective_names[SM_COLLECTIVE_COUNT];

enum { SM_REPLICATED = -1 };
/* Which dimension of an array each mesh axis shards (SM_REPLICATED: none, SM_UNREDUCED: partial sums), and its place
 * among the axes of that dimension, 0 = major. */
enum { SM_UNREDUCED = -2 };
typedef struct sm_layout { int8_t dim[SM_MAX_AXES], place[SM_MAX_AXES]; } sm_layout;
sm_layout sm_layout_of(const sm_array *array);
typedef enum sm_step_kind { SM_STEP_COLLECTIVE, SM_STEP_SLICE, SM_STEP_EINSUM } sm_step_kind;
typedef struct sm_step {
    sm_step_kind kind;
    sm_collective op;
    int array;                  /* operand number, or -1 for the output */
    sm_axes axes;               /* communicated over (all at once) */
    int from, to;               /* index numbers for all-to-all / reduce-scatter target; -1 if none */
    /* bytes of the whole array of one group, local to a chip when gathered: for all-gather the size AFTER, for
     * reduce-scatter and all-reduce the size BEFORE, for all-to-all the size a chip holds times the group size,
     * for permute (the blocks of a dimension change chips: I_XY to I_YX) the size a chip holds; 0 for slice and einsum. */
    double bytes;
    double flops;               /* of the local einsum */
    double local_bytes;         /* bytes an einsum reads and writes on a chip */
    sm_layout after;            /* of the array (the output for an einsum) when the step is done */
} sm_step;
typedef struct sm_lowering {
    int8_t at[SM_MAX_AXES];     /* the assignment */
    sm_array out;               /* final output sharding */
    int steps; sm_step step[SM_MAX_STEPS];
    double flops_per_chip, peak_bytes; /* peak of live local arrays over the steps: the operands as stored throughout, the
                                          newest version of each, both ends of the running step, the output */
} sm_lowering;
/* Steps of one operand come before those of the next, all before the einsum, those of the output after it. On each array:
 * slices (free, and smaller after), reduce-scatter, all-reduce, all-to-all, all-gather, permute; axes that leave a
 * dimension must be its minor ones, so a permute of the (still small) blocks precedes where they are not. A slice or scatter
 * waits for a gather where the size only divides after it. Axes of size 1 make no steps. */

/* Lower one assignment (at[] has mesh->axes entries); SM_BAD_INPUT when an index does not divide by the axes assigned to it,
 * or want cannot be reached: its indices differ, it does not divide, or it is {U_axis} where no partial sum is.
 * want == NULL leaves the output as it falls (unreduced axes are then all-reduced unless keep_unreduced). */
sm_status sm_einsum_lower(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at, const sm_array *want,
                          bool keep_unreduced, sm_lowering *lowering, sm_error *err);
/* Enumerate every useful lowering to the output as written (out_sharding_given), else to any output (assignments of every axis to every index or none; with no wanted output also every
 * place for reduce-scatter of partial sums), without duplicates, calling `each`. Deterministic order; at most 4096 assignments and 4096 visits:
 * beyond, each axis keeps its likeliest indices. Left out as dominated: computing on every chip what the output wants sliced.
 * SM_NEGATIVE when there is none. */
typedef bool (*sm_lowering_visit)(const sm_lowering *lowering, void *context); /* false stops */
sm_status sm_einsum_alternatives(const sm_einsum *einsum, const sm_mesh *mesh, sm_lowering_visit each, void *context, sm_error *err);
#endif

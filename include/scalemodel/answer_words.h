/* answer_words: what answers about sharded einsums share with whoever runs them: a mesh laid on a
 * system, and the steps of a lowering in words. Texts live in the report's arena. */
#pragma once
#include "scalemodel/lowering.h"
#include "scalemodel/page.h"

SM_DECLARATIONS_BEGIN

typedef struct sm_placed_mesh {
    sm_system system;
    sm_mesh mesh;
    sm_placement placement;
} sm_placed_mesh;
/* A product on it, as lowerings take it; it points to its arguments. */
sm_lowering_input sm_placed_product(const sm_placed_mesh *m, const sm_einsum *einsum,
                                    const sm_calibration *calibration, sm_dtype compute);
/* Read a mesh, "X=4,Y=8@1", and place it on a system by the rule of sm_placement_of_mesh.
 * SM_BAD_INPUT with the place as sm_mesh_parse and sm_placement_of_mesh. */
sm_status sm_placed_mesh_read(const sm_system *system, const sm_source *mesh, sm_placed_mesh *m,
                              sm_error *err);
/* Where each axis sits and whether chips are left idle: as text, and as the fields system, mesh and
 * chips_used. */
void sm_placed_mesh_page(sm_report *r, const sm_placed_mesh *m);
/* Put the same into the report's data: the fields system, mesh and chips_used. */
void sm_placed_mesh_fields(sm_report *r, const sm_placed_mesh *m);
/* Put a system into an object as its field "system": name, chip, chips, and the sizes and names of
 * its levels, innermost first. */
void sm_system_fields(sm_report *r, sm_data *parent, const sm_system *system);
/* Put where a group sits into an object as its field "parts": of each the level (its number in the
 * system), the size, and the stride in places of that level. */
void sm_group_fields(sm_report *r, sm_data *object, const sm_group *group);
/* What a collective moves: an array, or bytes; sizes of either may range, and make points. */
typedef struct sm_collective_sizes {
    sm_source text; /* "bf16 A[E_Y,F]", "64MB", "1kB..1GB" */
    bool has_array;
    sm_einsum holder; /* the array is holder.in[0] */
    sm_size_sweep sweep;
    double bytes;   /* given directly: of the point at hand */
    sm_range range; /* of these */
    int points;
} sm_collective_sizes;
/* Read what a collective moves: an array with the sizes in dims, or bytes. SM_USAGE when dims are
 * given beside bytes, SM_BAD_INPUT with the place when either cannot be read, SM_INTERNAL when out
 * of memory. */
sm_status sm_collective_sizes_read(const sm_source *text, const sm_source *dims,
                                   const sm_mesh *mesh, sm_arena *arena, sm_collective_sizes *sizes,
                                   sm_error *err);
/* Move to a point, 0 .. points - 1. SM_BAD_INPUT as sm_einsum_check. */
sm_status sm_collective_sizes_at(sm_collective_sizes *sizes, int point, const sm_mesh *mesh,
                                 sm_error *err);
/* V of a collective on an array, as the cost model wants it: all-gather the size after, reductions
 * the size before, all-to-all what a chip holds times the members; permute and broadcast what a
 * chip holds. */
double sm_collective_array_bytes(sm_collective op, const sm_einsum *holder, const sm_mesh *mesh,
                                 const sm_group *group);
/* Read axes of a mesh by their names: "Y", "XY" or "fsdp,tensor". SM_BAD_INPUT with the place names
 * the unknown axis. */
sm_status sm_over_parse(const sm_mesh *mesh, const sm_source *over, sm_axes *axes, sm_error *err);
/* Axes as text, the other way round: "XY" or "fsdp,tensor". */
const char *sm_axes_words(sm_report *r, const sm_mesh *mesh, sm_axes axes);
/* An array in the notation: "bf16 A[I_X,J]", as sm_array_format. */
const char *sm_array_notation(sm_report *r, const sm_array *array, const sm_einsum *einsum,
                              const sm_mesh *mesh);
/* Where a group sits in the system: "ici0 4 (ring)", "nvlink 8", parts joined by " x "; "one chip".
 */
const char *sm_group_words(sm_report *r, const sm_system *system, const sm_group *group);

/* What answers say of padding, once each. */
typedef struct sm_padding_told {
    int n;
    sm_data *list; /* "padded" of the data; NULL: none yet */
    const char *sentence[SM_MAX_INDICES];
} sm_padding_told;
/* Tell each dimension that a lowering pads: "I of 10 over X is padded to 12: 4 blocks of 3, 17% of
 * them padding." What *told has is not told again. */
void sm_padding_page(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                     const sm_lowering *lowering, sm_padding_told *told);
/* The same of one array. */
void sm_padding_of_array(sm_report *r, const sm_einsum *einsum, const sm_array *array,
                         const sm_mesh *mesh, sm_padding_told *told);
/* The part of the FLOPs of all chips that padding takes, 0 to 1. */
double sm_padding_of(const sm_einsum *einsum, const sm_mesh *mesh, const sm_lowering *lowering);

/* What happens to one axis, as text: "X: both operands are sharded along the contracted J (case 3);
 * each chip sums its part of J: partial sums; reduce-scatter of C onto K." */
const char *sm_axis_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                          const sm_lowering *lowering, int axis);
/* What a step does: "all-gather", "einsum", "slice". */
const char *sm_step_op(const sm_step *step);
/* One step as text: "all-gather B over X", "einsum", "reduce-scatter C over X onto K". */
const char *sm_step_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                          const sm_lowering *lowering, int step);
/* What a step does to its array, in the notation: "A[I_X,J] -> A[I,J_X]"; of an einsum the arrays
 * that it meets. */
const char *sm_step_notation(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                             const sm_lowering *lowering, int step);
/* All steps as text: "all-gather B over X, einsum"; the one that is overlapped (-1: none) says so.
 */
const char *sm_lowering_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                              const sm_lowering *lowering, int overlapped);
/* How the expected time comes from the steps: "sum of the steps", or that of an overlapped one. */
const char *sm_cost_formula(sm_report *r, const sm_lowering_cost *cost);
/* The name of an operand (or of the output, -1): as written, otherwise "operand 1". */
const char *sm_array_words(sm_report *r, const sm_einsum *einsum, int array);
SM_DECLARATIONS_END

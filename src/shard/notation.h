/* What the parsers of meshes, arrays and dimensions share inside the layer. */
#pragma once
#include "scalemodel/shard.h"
#include "sink.h"

/* The axes after an underscore, in order: "XY" split by longest match, or "{fsdp,tensor}".
 * Appends to axis[], which has room for SM_MAX_AXES. */
sm_status sm_axes_parse(sm_cursor *c, const sm_mesh *mesh, int *n_axes, uint8_t *axis,
                        sm_error *err);
/* The inverse: a list of axes in order, in braces where the plain form would read back otherwise.
 */
void sm_axes_put(sm_sink *sink, const sm_mesh *mesh, int n_axes, const uint8_t *axis);

/* Do all the axes of the list have names of one letter? */
bool sm_axes_are_letters(const sm_mesh *mesh, int n_axes, const uint8_t *axis);

/* SM_BAD_INPUT at what stands under the cursor: "expected WHAT, found ...". */
sm_status sm_fail_expected(sm_error *err, const sm_cursor *c, const char *what);

/* No axis may stand twice in one array. */
sm_status sm_array_check_axes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh,
                              const sm_source *source, sm_error *err);
int sm_array_dim_of(const sm_array *array, int index); /* its dimension, -1 if none */
/* An index that has this name, -1 if none; of numbers that stand for one none has. */
int sm_index_named(const sm_einsum *einsum, const char *text, size_t length);
int sm_operands_with(const sm_einsum *einsum, int index); /* how many operands carry it */

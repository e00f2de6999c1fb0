/* element_types: what ranks multiply and move. */
#ifndef SCALEMODEL_RUNCLI_ELEMENT_TYPES_H
#define SCALEMODEL_RUNCLI_ELEMENT_TYPES_H
#include "scalemodel/run.h"
#include "scalemodel/text.h"

/* The type of all arrays of an einsum: that of --dtype (text, may be NULL), or the one they are
 * written with, or fp32. The arrays then have it. */
sm_status element_type_read(const char *text, sm_einsum *einsum, sm_dtype *dtype,
                            sm_element *element, sm_error *err);
bool element_is_whole(sm_element element);
double element_value(const sm_local_block *block, size_t i);
/* The largest difference of two blocks of one size; infinite where the sizes differ. */
double element_difference(const sm_local_block *a, const sm_local_block *b);
/* A number for each position of an array: whole ones from -5 to 5; fractions from -1/2 to 1/2 in
 * steps of 2^-24, exact in every float. array: its number, as a pointer. */
double element_whole_number(const size_t *position, int rank, void *array);
double element_fraction(const size_t *position, int rank, void *array);
#endif

/* element_types: what ranks multiply and move. */
#pragma once
#include "options.h"
#include "scalemodel/run.h"

/* What --dtype says: fp32, fp64 or int. */
typedef enum element_word { ELEMENT_FP32, ELEMENT_FP64, ELEMENT_INT, ELEMENT_WORDS } element_word;
extern const char *const element_words[ELEMENT_WORDS];
/* The type of all arrays of an einsum: that of --dtype, at *given, or the one they are written
 * with, or fp32. The arrays then have it. */
sm_status element_type_read(const cli_call *call, const element_word *given, sm_einsum *einsum,
                            sm_dtype *dtype, sm_element *element, sm_error *err);
bool element_is_whole(sm_element element);
double element_value(const sm_local_block *block, size_t i);
/* The largest difference of two blocks of one size; infinite where the sizes differ. */
double element_difference(const sm_local_block *a, const sm_local_block *b);
/* A number for each position of an array: whole ones from -5 to 5; fractions from -1/2 to 1/2 in
 * steps of 2^-24, exact in every float. array: its number, as a pointer. */
double element_whole_number(const size_t *position, int rank, void *array);
double element_fraction(const size_t *position, int rank, void *array);

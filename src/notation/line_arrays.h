/* line_arrays: dimensions and arrays of lines under way. Private to src/notation. */
#pragma once
#include "made.h"

/* An error where the text has the span. */
#define line_wrong(m, c, span, ...) sm_fail_at((m)->err, (c)->text->source, span, __VA_ARGS__)
/* The size of a dimension, in a text; none: it is not there. */
sm_status line_size(line_maker *m, const line_call *c, const char *dim, sm_span span, value *out);
/* The dimension by name, with a size. */
sm_status line_dim(line_maker *m, const line_call *c, const char *name, sm_span span, uint8_t *out);
sm_status line_dims_of(line_maker *m, const line_call *c, const tree *array, uint8_t *out);
/* A new array; its number, or -1 when out of memory. */
int line_new_array(line_maker *m, const line_call *c, const char *name, sm_text_role role, int rank,
                   const uint8_t *dim);
line_name *line_find_name(const line_call *c, const char *name);
bool line_bind(line_maker *m, line_call *c, const char *name, int array, const uint8_t *dim);
/* NAME or ARRAY: an array that the text has, of another piece, or a weight. */
sm_status line_mention(line_maker *m, line_call *c, const tree *t, const tree_attribute *attributes,
                       sm_mention *out);
/* Do all dimensions of an array exist? */
sm_status line_has_dims(line_maker *m, const line_call *c, const tree *array, bool *out);
bool line_same_sizes(const line_maker *m, int rank, const uint8_t *a, const uint8_t *b);
/* "q[B,T,K]" */
const char *line_shown(const line_maker *m, const char *name, int rank, const uint8_t *dim,
                       char *room, size_t size);
/* What a name of the piece is bound to, or NULL. "mixer.bias" before "bias". */
const value *line_binding(const line_maker *m, const char *label, const char *name);

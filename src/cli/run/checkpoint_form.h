/* checkpoint_form: an array of a model as tensors of a file, for who takes a checkpoint and who
 * writes one. */
#pragma once
#include "scalemodel/io.h"
#include "scalemodel/run_train.h"

enum { CHECKPOINT_NAME_BYTES = 256 };

/* One array as tensors of a file: one, or one of each expert. The array must outlive the form. */
typedef struct checkpoint_form {
    const sm_train_array *array;
    int number; /* of the places that the family has for it */
    sm_weight_place place;
    size_t slices, numbers; /* numbers of a slice, which is all of a tensor or a part of it */
} checkpoint_form;
/* number: of the places that the family has for it. SM_BAD_INPUT: it has none of that number. */
sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, int number,
                             checkpoint_form *f, sm_error *err);
/* name: CHECKPOINT_NAME_BYTES. */
void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name);
void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t);

/* Some of the elements of a slice: along each dimension of the array so many, from an element on.
 */
typedef struct checkpoint_walk {
    const checkpoint_form *f;
    size_t from[SM_MAX_RANK], count[SM_MAX_RANK], at[SM_MAX_RANK];
} checkpoint_walk;
/* From the first of these elements. */
checkpoint_walk checkpoint_walk_of(const checkpoint_form *f, const size_t *from,
                                   const size_t *count, size_t slice);
/* The element of the tensor where it is. */
size_t checkpoint_element(const checkpoint_walk *w);
/* To the next one; false behind the last. */
bool checkpoint_next(checkpoint_walk *w);

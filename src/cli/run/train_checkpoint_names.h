/* train_checkpoint_names: an array of the trainer as tensors of a checkpoint, under the names that
 * Llama and Mixtral have at Hugging Face. */
#ifndef SCALEMODEL_RUNCLI_TRAIN_CHECKPOINT_NAMES_H
#define SCALEMODEL_RUNCLI_TRAIN_CHECKPOINT_NAMES_H
#include "scalemodel/io.h"
#include "scalemodel/run_train.h"

enum { CHECKPOINT_NAME_BYTES = 128 };

/* Slices (experts; otherwise one) of rows x columns, each a tensor, transposed or not. */
typedef struct checkpoint_form {
    const struct known *k;
    const sm_train_array *array;
    const char *last; /* of the name */
    bool transposed;
    size_t slices, rows, columns;
} checkpoint_form;

/* The array must outlive the form. */
sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, checkpoint_form *f,
                             sm_error *err);
void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name);
void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t);
/* to[c][r] = from[r][c] */
void checkpoint_transpose(const float *from, size_t rows, size_t columns, float *to);
#endif

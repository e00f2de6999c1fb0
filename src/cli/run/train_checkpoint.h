/* train_checkpoint: a model and its optimizer as safetensors, under the names that its family has
 * at Hugging Face, so that other tools open it; the moments of Adam are called optimizer.first.NAME
 * and optimizer.second.NAME. One FILE that the first rank writes, or a FOLDER of versions of which
 * each rank writes its part: weights in files of their own with their index.
 */
#pragma once
#include "scalemodel/io.h"
#include "scalemodel/run_train.h"

typedef struct train_checkpoint_place {
    const char *path;   /* a folder where it ends in '/' or is one; otherwise a file */
    int keep;           /* versions of a folder that stay, at least 1 */
    const char *config; /* text of the model's config.json, kept beside the weights; NULL: none */
} train_checkpoint_place;

/* Before the work: can a checkpoint be written there? */
sm_status train_checkpoint_check(const train_checkpoint_place *place, sm_arena *arena,
                                 sm_error *err);
/* The same of the trainer's arrays: SM_BAD_INPUT where the family has no place for one of them. */
sm_status train_checkpoint_check_arrays(sm_trainer *t, sm_communicator *world,
                                        const sm_model *model, sm_error *err);
/* Made by every rank of world, of arrays that were checked. Replaces what was there at once, or
 * leaves it as it was: every rank returns the same error. */
sm_status train_checkpoint_write(sm_trainer *t, sm_communicator *world, const sm_model *model,
                                 const train_checkpoint_place *place, sm_error *err);
/* Into the blocks of this rank, and the number of updates. SM_BAD_INPUT names what is missing, of
 * another shape or damaged. */
sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err);
/* Has it tensors of this type, or of mxfp4 as gpt-oss packs them? */
bool train_checkpoint_stores(const sm_safetensors *file, sm_dtype type);
/* Has one of its tensors in 8 bits a scale for each row, not for blocks of it? */
bool train_checkpoint_scales_rows(const sm_safetensors *file);
/* The weights alone. */
sm_status train_checkpoint_take_weights(sm_generator *g, const sm_model *model,
                                        const sm_safetensors *file, const char *path,
                                        sm_error *err);

/* An array of a model as tensors of a file, for who takes a checkpoint and who
 * writes one. */
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

/* Of a part of the array (from, count: along each of its dimensions) the elements of a slice's
 * tensor from the first that lies in it to the last. */
size_t checkpoint_span(const checkpoint_form *f, const size_t *from, const size_t *count,
                       size_t *first);
/* How a slice of so many elements along each dimension (count: of the array's part) is copied from
 * its tensor; how far the slices of the part are apart, 0 where there is one. */
size_t checkpoint_dims_of(const checkpoint_form *f, const size_t *count, sm_copied *dim);

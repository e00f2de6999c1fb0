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

/* train_checkpoint: a trained model and its optimizer in one safetensors file, under the names that
 * Llama and Mixtral have at Hugging Face, so that other tools open it; the moments of Adam stand
 * beside the weights as optimizer.first.NAME and optimizer.second.NAME. */
#ifndef SCALEMODEL_RUNCLI_TRAIN_CHECKPOINT_H
#define SCALEMODEL_RUNCLI_TRAIN_CHECKPOINT_H
#include "scalemodel/io.h"
#include "scalemodel/run_train.h"

/* Made by every rank; the first one writes. Replaces the file at once or leaves it as it was. */
sm_status train_checkpoint_write(sm_trainer *t, const sm_model *model, const char *path,
                                 bool writes, sm_error *err);
/* Into the blocks of this rank, and the number of updates. SM_BAD_INPUT names what is missing or of
 * another shape. */
sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err);
/* The weights alone. */
sm_status train_checkpoint_take_weights(sm_generator *g, const sm_model *model,
                                        const sm_safetensors *file, const char *path,
                                        sm_error *err);
#endif

/* seen_pictures: what a model hears or sees, as reference classes take it, and where pictures stand
 * among the words of a prompt: for run generate and run serve. */
#pragma once
#include "scalemodel/io.h"
#include "scalemodel/model.h"
#include "scalemodel/program.h"

/* Of one text or picture. */
typedef struct seen_shape {
    size_t source;             /* positions that a first stack reads at once; 0: there is none */
    size_t places, width, row; /* width 0: it reads words; row: patches of a side */
    size_t square;             /* patches come square by square, so many a side */
    sm_picture_words words;    /* rows 0: it becomes none of a sequence */
    const char *model;
} seen_shape;

/* Of what the first piece of the model reads; the model must outlive it. */
sm_status seen_shape_of(const sm_model *model, sm_arena *arena, seen_shape *out, sm_error *err);
/* Texts or pictures that a file of one tensor has: of a sound [texts, channels, positions], of
 * pictures [pictures, colours, side, side] or their patches, [pictures x patches, numbers].
 * SM_BAD_INPUT when it is of another shape; name: of the file. */
sm_status seen_count(const seen_shape *shape, const sm_safetensors *file, const char *name,
                     size_t *texts, sm_error *err);
/* All of them, [texts, places, width], as the program reads them. */
sm_status seen_take(const seen_shape *shape, const sm_safetensors *file, float *to, sm_error *err);

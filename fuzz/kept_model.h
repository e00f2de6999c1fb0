/* A model of the catalogue, read once for all inputs. */
#pragma once
#include "scalemodel/io.h"
#include <stdlib.h>

static const sm_model *kept_model(void) {
    static sm_arena *kept;
    static sm_model model;
    sm_error err;
    if (!kept) {
        kept = sm_arena_new();
        if (!kept || sm_io_model_load("llama-3.1-8b", kept, &model, &err)) abort();
    }
    return &model;
}

/* Models of the tests: a config text, read as any other. What they hold lives in one arena as long
 * as the test program. */
#ifndef TESTS_MODEL_OF_H
#define TESTS_MODEL_OF_H
#include <stdio.h>
#include <stdlib.h>
#include "scalemodel/model.h"

static inline sm_arena *models_arena(void) {
    static sm_arena *arena;
    if (!arena) arena = sm_arena_new();
    return arena;
}

static inline sm_model model_of(const char *name, const char *config) {
    sm_model model;
    sm_error err = {0};
    sm_source source = sm_source_of(name, config);
    if (sm_model_parse(&source, models_arena(), &model, &err) == SM_OK) return model;
    fprintf(stderr, "%s\nin %s\n", err.sentence, config);
    abort();
}
#endif

/* Models of the tests: a config text, read as any other. What they hold lives in one arena as long
 * as the test program. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "scalemodel/model.h"

static inline sm_arena *models_arena(void) {
    static sm_arena *arena;
    if (!arena) arena = sm_arena_new();
    return arena;
}

/* family: NULL for the config's own. */
static inline sm_model model_as(const char *name, const char *config, const char *family) {
    sm_model model;
    sm_error err = {0};
    sm_source source = sm_source_of(name, config);
    if (sm_model_parse(NULL, family, &source, models_arena(), &model, &err) == SM_OK) return model;
    fprintf(stderr, "%s\nin %s\n", err.sentence, config);
    abort();
}

static inline sm_model model_of(const char *name, const char *config) {
    return model_as(name, config, NULL);
}

/* The same with other members: "\"vocab_size\": 300, \"num_hidden_layers\": 4". */
static inline sm_model model_with(const char *name, const char *config, const char *members) {
    char *object = sm_arena_printf(models_arena(), "{%s}", members);
    json_t *all = json_loads(config, 0, NULL), *more = json_loads(object, 0, NULL);
    if (!all || !more || json_object_update_recursive(all, more)) abort();
    char *text = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER);
    sm_model model = model_of(name, text);
    json_decref(all);
    json_decref(more);
    free(text);
    return model;
}

/* A model of the catalogue with other members. */
static inline sm_model catalogue_with(const char *name, const char *members) {
    return model_with(name, sm_catalogue_find(name, strlen(name))->config_json, members);
}

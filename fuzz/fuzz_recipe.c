/* Recipes from any bytes: shell words, YAML, TOML, JSON, as those of training and of serving. What
 * is read gives a plan that reads back. */
#include "scalemodel/io.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const sm_frameworks *all, sm_plan_use use, const sm_settings *settings) {
    sm_recipe recipe;
    sm_error err;
    sm_plan plan;
    const sm_recipe_chips chips = {"h100-sxm", 64, 8, 1, 1};
    if (sm_recipe_read(all, NULL, use, settings, chips, &recipe, &err) != SM_OK) return;
    if (!recipe.plan) abort();
    sm_source text = sm_source_of("plan", recipe.plan);
    if (use == SM_PLAN_TRAINING) sm_plan_parse(&text, &plan, &err);
    else sm_serve_plan_parse(&text, &plan, &err);
    for (int i = 0; i < recipe.notes; i++)
        if (!recipe.note[i].what || !recipe.note[i].why || recipe.note[i].line < 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sm_frameworks *all;
    static sm_arena *kept;
    sm_error err;
    if (!kept) kept = sm_arena_new();
    if (!all && sm_frameworks_shipped(kept, &all, &err) != SM_OK) abort();
    sm_arena *arena = sm_arena_new();
    sm_settings settings;
    char *text = sm_arena_copy(arena, (const char *)data, size);
    sm_source source = {"recipe", text, size};
    if (text && sm_io_settings(&source, arena, &settings, &err) == SM_OK) {
        for (int i = 0; i < settings.n; i++)
            if (settings.list[i].at.offset + settings.list[i].at.length > size + 1) abort();
        read_as(all, SM_PLAN_TRAINING, &settings);
        read_as(all, SM_PLAN_SERVING, &settings);
    }
    sm_arena_free(arena);
    return 0;
}

/* Frameworks from any bytes (docs/frameworks.md). What is read can be asked everything: which plans
 * it runs, what a recipe says by its table, and what it makes of a plan. */
#include "kept_model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char script[] =
    "N=2\ntorchrun --nnodes $N x.py --tp 4 --pp=2 --seq-length 4096 --global-batch-size 64 --bf16 "
    "--model llama3-8b --micro-batch-size 1 --name 'a b'\n";

static void ask_space(const sm_framework *framework, const sm_plan *plan, uint64_t keys,
                      const sm_plan_job *job) {
    sm_plan_space space = {.job = *job};
    sm_plan_limits limits = {.usual_order = false};
    sm_framework_space(framework, &space);
    if (!space.of_degrees) abort();
    space.of_degrees(&space, plan, 0, (1u << SM_PLAN_DEGREES) - 1, &limits);
    sm_framework_refuses(framework, plan, keys, job);
}

static void ask_recipe(const sm_frameworks *all, const sm_framework *framework, const char *text,
                       sm_arena *arena) {
    sm_error err;
    sm_settings settings;
    sm_recipe recipe;
    sm_source source = sm_source_of("recipe", text);
    const sm_recipe_chips chips = {"h100-sxm", 16, 8, 1, 1};
    if (sm_io_settings(&source, arena, &settings, &err) != SM_OK) return;
    if (sm_recipe_read(all, framework, sm_framework_use(framework), &settings, chips, &recipe,
                       &err) != SM_OK)
        return;
    if (!recipe.plan || recipe.framework != framework) abort();
    for (int i = 0; i < recipe.notes; i++)
        if (!recipe.note[i].what || !recipe.note[i].why || recipe.note[i].line < 0) abort();
}

/* Two plans of training, or one of serving, twice. */
static void ask_plan(const sm_frameworks *all, const sm_framework *framework, const sm_model *model,
                     sm_arena *arena) {
    static const char *const plans[] = {
        "tensor=4,pipeline=2,data=2,microbatch=1,recompute=full",
        "fsdp=16,microbatch=2,dtype=fp8,optimizer=adam-bf16,schedule=gpipe"};
    bool trains = sm_framework_use(framework) == SM_PLAN_TRAINING;
    for (int i = 0; i < 2; i++) {
        sm_error err;
        sm_plan plan;
        sm_system system;
        char *text = NULL;
        int cannot = 0;
        sm_source on = sm_source_of("system", "h100-sxm:2x8");
        sm_source given = sm_source_of("plan", trains ? plans[i] : "tensor=8,data=2");
        if (sm_system_parse(&on, NULL, 0, &system, &err)) abort();
        if ((trains ? sm_plan_parse : sm_serve_plan_parse)(&given, &plan, &err)) abort();
        sm_plan_settle(&plan, model);
        const sm_plan_job asked = {model, &system, 64};
        ask_space(framework, &plan, sm_plan_keys_for(&plan, model), &asked);
        const sm_recipe_job job = {.model = model,
                                   .system = &system,
                                   .plan = &plan,
                                   .batch = 64,
                                   .seq = 4096,
                                   .predicted = "1 s a step"};
        if (sm_recipe_write(framework, &job, arena, &text, &cannot, &err)) continue;
        if (!text || cannot < 0) abort();
        ask_recipe(all, framework, text, arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const sm_model *model = kept_model();
    sm_error err;
    sm_arena *arena = sm_arena_new();
    sm_frameworks *all;
    if (!arena || sm_frameworks_shipped(arena, &all, &err) != SM_OK) abort();
    char *text = sm_arena_copy(arena, (const char *)data, size);
    sm_source source = {"framework", text, size};
    if (text && sm_frameworks_read(all, &source, &err) == SM_OK) {
        const sm_framework *framework = all->of[all->n - 1];
        const char *name = sm_framework_name(framework);
        if (!name || !sm_framework_title(framework) || !sm_framework_version(framework) ||
            !sm_framework_software(framework))
            abort();
        sm_framework_find(all, name, strlen(name));
        ask_recipe(all, framework, script, arena);
        ask_plan(all, framework, model, arena);
    }
    sm_arena_free(arena);
    return 0;
}

/* The price of a decode step, of a point, and the frontiers of llama-3.1-405B over all slices of
 * TPU v5e up to 256 chips and of DeepSeek-V3 on up to 512 H100, on one core. */
#include <stdio.h>
#include <string.h>
#include "processor.h"
#include "scalemodel/serve.h"

static void fail(const sm_error *err) { fprintf(stderr, "bench_serve: %s\n", err->sentence); }

static bool read_inputs(const char *name, const char *chips, sm_arena *arena, sm_model *model,
                        sm_system *system, sm_error *err) {
    const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
    sm_source config = sm_source_of("config", entry->config_json);
    sm_source on = sm_source_of("on", chips);
    return sm_model_parse(NULL, NULL, &config, arena, model, err) == SM_OK &&
           sm_system_parse(&on, NULL, 0, system, err) == SM_OK;
}

static bool bench_point(const sm_serve_job *job, sm_error *err) {
    enum { TIMES = 2000 };
    sm_serve *serve;
    sm_plan plan;
    sm_step_batch batch = {1, {{32, 1, 1536}}, 32, 0};
    sm_step_price price;
    sm_serve_plan_defaults(&plan);
    plan.tensor = 16;
    plan.fsdp = 16;
    if (sm_serve_new(job, &serve, err) != SM_OK) return false;
    bool ok = sm_serve_step(serve, &plan, &batch, &price, err) == SM_OK;
    double start = processor_s();
    for (int i = 0; ok && i < TIMES; i++) ok = !sm_serve_step(serve, &plan, &batch, &price, err);
    printf("bench: serve_step %.3g us\n", (processor_s() - start) / TIMES * 1e6);
    sm_serve_free(serve);
    return ok;
}

static bool bench_search(const sm_serve_job *job, const char *name, sm_error *err) {
    sm_serve_search_options options;
    sm_serve_result result;
    sm_arena *arena = sm_arena_new();
    sm_serve_search_defaults(&options);
    double start = processor_s();
    bool ok = arena && sm_serve_search(job, NULL, &options, arena, &result, err) == SM_OK;
    if (ok) {
        printf("bench: %s_search %.3g s\n", name, processor_s() - start);
        printf("bench: %s_space %.0f candidates\n", name, result.space);
        printf("bench: %s_priced %.0f candidates\n", name, result.evaluated);
    }
    sm_arena_free(arena);
    return ok;
}

int main(void) {
    static sm_model model;
    static sm_system system;
    sm_arena *arena = sm_arena_new();
    sm_error err = {0};
    sm_serve_job job = {.size = sizeof(sm_serve_job),
                        .model = &model,
                        .system = &system,
                        .dtypes = {SM_BF16, SM_BF16, SM_BF16},
                        .prompt = 1024,
                        .output = 1024,
                        .imbalance = 1,
                        .reserve = -1,
                        .usd_per_chip_hour = -1};
    bool ok = arena &&
              read_inputs("llama-3.1-405b", "tpu-v5e:16x16", arena, &model, &system, &err) &&
              bench_point(&job, &err) && bench_search(&job, "serve", &err);
    job.dtypes = (sm_serve_dtypes){SM_FP8, SM_BF16, SM_FP8};
    ok = ok && read_inputs("deepseek-v3", "h100-sxm:64x8", arena, &model, &system, &err) &&
         bench_search(&job, "serve_experts", &err);
    if (!ok) fail(&err);
    sm_arena_free(arena);
    return ok ? 0 : 1;
}

/* Jobs of serving from the catalogues, for the tests of serve. */
#pragma once
#include "model_of.h"
#include "scalemodel/serve.h"
#include <string.h>

typedef struct serve_case {
    sm_model model;
    sm_system system;
    sm_serve_job job;
} serve_case;

static inline void serve_case_system(serve_case *c, const char *text) {
    sm_error err = {0};
    sm_source source = sm_source_of("on", text);
    if (sm_system_parse(&source, NULL, 0, &c->system, &err) != SM_OK) fail_msg("%s", err.sentence);
}

static inline void serve_case_model(sm_model *model, const char *name) {
    const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
    if (!entry) fail_msg("no model %s", name);
    *model = model_of(name, entry->config_json);
}

/* 16-bit everything, prompt and output of 1024 tokens each. */
static inline void serve_case_fill(serve_case *c, const char *model, const char *system) {
    memset(c, 0, sizeof *c);
    serve_case_model(&c->model, model);
    serve_case_system(c, system);
    c->job = (sm_serve_job){.size = sizeof(sm_serve_job),
                            .model = &c->model,
                            .system = &c->system,
                            .dtypes = {SM_BF16, SM_BF16, SM_BF16},
                            .prompt = 1024,
                            .output = 1024,
                            .imbalance = 1,
                            .reserve = -1,
                            .usd_per_chip_hour = -1};
}

static inline sm_serve *serve_case_new(const serve_case *c) {
    sm_error err = {0};
    sm_serve *serve = NULL;
    if (sm_serve_new(&c->job, &serve, &err) != SM_OK) fail_msg("%s", err.sentence);
    return serve;
}

static inline sm_plan serve_plan(const char *text) {
    sm_error err = {0};
    sm_plan plan;
    sm_source source = sm_source_of("plan", text);
    if (sm_serve_plan_parse(&source, &plan, &err) != SM_OK) fail_msg("%s", err.sentence);
    return plan;
}

static inline sm_serve_point serve_point(sm_serve *serve, const char *plan_text, double batch) {
    sm_error err = {0};
    sm_serve_point point;
    sm_plan plan = serve_plan(plan_text);
    if (sm_serve_point_of(serve, &plan, batch, &point, &err) != SM_OK)
        fail_msg("%s: %s", plan_text, err.sentence);
    return point;
}

/* Degrees drawn without the search's own enumeration: their product is the whole system. */
static inline void serve_draw_degrees(sm_rng *rng, int chips, sm_plan *plan) {
    static const int keys[] = {SM_PLAN_DATA, SM_PLAN_FSDP, SM_PLAN_TENSOR, SM_PLAN_CONTEXT,
                               SM_PLAN_EXPERT};
    for (int left = chips; left > 1; left /= 2)
        *sm_plan_degree(plan, keys[sm_rng_below(rng, 5)]) *= 2;
    plan->gathered = sm_rng_below(rng, 2) != 0;
    plan->cache_by = (sm_cache_by)sm_rng_below(rng, 3);
    plan->seq = sm_rng_below(rng, 2) != 0;
}

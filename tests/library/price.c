/* A user of the library, in C and in C++: what a token of a served model and a step of a training
 * take. */
#include <scalemodel/io.h>
#include <scalemodel/train.h>
#include <stdio.h>
#include <string.h>

static sm_status serve(const sm_model *model, const sm_system *system, sm_error *err) {
    sm_serve_job job;
    sm_serve *served = NULL;
    sm_plan plan;
    sm_serve_point point;
    memset(&job, 0, sizeof job);
    job.size = sizeof job;
    job.model = model;
    job.system = system;
    job.dtypes.weights = job.dtypes.kv = job.dtypes.compute = SM_BF16;
    job.prompt = 1024;
    job.output = 256;
    job.imbalance = 1;
    job.reserve = job.usd_per_chip_hour = -1;
    sm_serve_plan_defaults(&plan);
    plan.tensor = 8;
    sm_status status = sm_serve_new(&job, &served, err);
    if (!status) status = sm_serve_point_of(served, &plan, 16, &point, err);
    if (!status) printf("%.6g s per token\n", point.tpot_s[1]);
    sm_serve_free(served);
    return status;
}

static sm_status train(const sm_model *model, const sm_system *system, sm_error *err) {
    sm_job job;
    sm_train *trained = NULL;
    sm_plan plan;
    sm_price_of_plan price;
    memset(&job, 0, sizeof job);
    job.size = sizeof job;
    job.model = model;
    job.system = system;
    job.batch_tokens = 1e6;
    job.seq = 4096;
    job.usd_per_chip_hour = -1;
    sm_plan_defaults(&plan);
    plan.fsdp = 8;
    sm_status status = sm_train_new(&job, &trained, err);
    if (!status) status = sm_train_price(trained, &plan, &price, err);
    if (!status) printf("%.6g s per step\n", price.expected_s);
    sm_train_free(trained);
    return status;
}

int main(void) {
    sm_error err;
    sm_arena *arena = sm_arena_new();
    sm_model model;
    sm_system system;
    sm_source on = sm_source_of("system", "h100-sxm:8");
    sm_status status = sm_io_model_load("llama-3.1-8b", arena, &model, &err);
    if (!status) status = sm_system_parse(&on, NULL, 0, &system, &err);
    if (!status) status = serve(&model, &system, &err);
    if (!status) status = train(&model, &system, &err);
    if (status) fprintf(stderr, "%s\n", err.sentence);
    if (strcmp(sm_version(), SM_VERSION) != 0) status = SM_INTERNAL;
    sm_arena_free(arena);
    return (int)status;
}

/* The simulator on one core: requests a minute of processor time of llama-3.1-70b on eight H100,
 * some hundreds of tokens each, and two hours of 30,000 requests as bursty as the public Azure
 * traces. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "processor.h"
#include "scalemodel/io.h"
#include "scalemodel/simulate.h"

typedef struct question {
    const char *name;
    sm_synthetic drawn;
    sm_policy policy;
    int replicas;
} question;

static const question questions[] = {
    {"simulate_continuous",
     {.rate_per_s = 11, .requests = 2e6, .lengths = {400, 0.5, 200, 0.5}, .seed = 1},
     SM_POLICY_CONTINUOUS,
     1},
    {"simulate_chunked",
     {.rate_per_s = 11, .requests = 2e6, .lengths = {400, 0.5, 200, 0.5}, .seed = 1},
     SM_POLICY_CHUNKED,
     1},
    {"simulate_azure_like",
     {.kind = SM_ARRIVALS_GAMMA,
      .rate_per_s = 30000.0 / 7200,
      .cv = 2,
      .requests = 30000,
      .lengths = {1500, 1.2, 200, 1},
      .seed = 1},
     SM_POLICY_CONTINUOUS,
     1},
};

static bool ask(const question *q, const sm_engine *engine, sm_error *err) {
    sm_simulation options;
    sm_simulated out;
    sm_synthetic drawn = q->drawn;
    sm_arrivals arrivals = sm_synthetic_arrivals(&drawn);
    sm_simulation_defaults(&options);
    options.engine = engine;
    options.policy = q->policy;
    options.replicas = q->replicas;
    double start = processor_s();
    if (sm_simulate(&options, &arrivals, NULL, &out, err) != SM_OK) return false;
    double seconds = processor_s() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("bench: %s %.3g s\n", q->name, seconds);
    printf("bench: %s_rate %.3g requests/min\n", q->name, out.finished / seconds * 60);
    printf("bench: %s_utilisation %.3g share\n", q->name, out.utilisation);
    printf("bench: %s_peak %.3g MiB\n", q->name, (double)usage.ru_maxrss / 1024);
    return true;
}

static bool make_engine(sm_serve_job *job, sm_arena *arena, sm_serve **serve, sm_engine *engine,
                        sm_error *err) {
    sm_plan plan;
    sm_serve_plan_defaults(&plan);
    plan.tensor = 8;
    return sm_serve_new(job, serve, err) == SM_OK &&
           sm_serve_engine(*serve, &plan,
                           &(sm_engine_use){.mean_tokens = 1024, .step_tokens = 8192}, arena,
                           engine, err) == SM_OK;
}

int main(void) {
    static sm_model model;
    static sm_system system;
    sm_error err = {.status = SM_OK};
    sm_arena *arena = sm_arena_new();
    sm_source on = sm_source_of("on", "h100-sxm:1x8");
    sm_serve *serve = NULL;
    sm_engine engine;
    sm_serve_job job = {
        .size = sizeof(sm_serve_job), .model = &model, .system = &system, .imbalance = 1};
    job.dtypes = (sm_serve_dtypes){SM_BF16, SM_BF16, SM_BF16};
    job.prompt = job.output = 512;
    job.reserve = job.usd_per_chip_hour = -1;
    bool ok = arena && sm_io_model_load("llama-3.1-70b", arena, &model, &err) == SM_OK &&
              sm_system_parse(&on, NULL, 0, &system, &err) == SM_OK &&
              make_engine(&job, arena, &serve, &engine, &err);
    for (size_t i = 0; ok && i < sizeof questions / sizeof *questions; i++)
        ok = ask(&questions[i], &engine, &err);
    if (!ok) fprintf(stderr, "bench_simulate: %s\n", err.sentence);
    sm_serve_free(serve);
    sm_arena_free(arena);
    return ok ? 0 : 1;
}

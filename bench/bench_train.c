/* How fast plans are priced and searched, in processor time: "bench: NAME VALUE UNIT" lines, one
 * thread each. */
#include "processor.h"
#include "scalemodel/io.h"
#include "scalemodel/train.h"
#include "../tests/search_copy.h"
#include <stdio.h>
#include <string.h>

static sm_model model;
static sm_system cluster;
static sm_arena *arena; /* of the model, which its programs point into */

static void line(const char *name, double value, const char *unit) {
    printf("bench: %s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

/* A fixed amount of arithmetic, so that figures of different machines and hours can be compared. */
static void calibrate(void) {
    double start = processor_s(), x = 1;
    for (int i = 0; i < 50000000; i++) x = x * 1.0000001 + 1e-9;
    volatile double kept = x; /* so that the loop stays */
    (void)kept;
    line("calibration_loop", processor_s() - start, "s");
}

static sm_train *train_on(const char *name, const char *text, double batch, double seq) {
    sm_error err = {0};
    sm_source source = sm_source_of("system", text);
    sm_train *train = NULL;
    sm_job job = {sizeof(sm_job), &model, &cluster, batch, seq, 15e12, -1, NULL};
    sm_arena_free(arena);
    arena = sm_arena_new();
    if (sm_io_model_load(name, arena, &model, &err) || /* or the first that fails */
        sm_system_parse(&source, NULL, 0, &cluster, &err) || sm_train_new(&job, &train, &err))
        fprintf(stderr, "%s on %s: %s\n", name, text, err.sentence);
    return train;
}

static bool search(sm_train *train, const char *fixed, bool prune, search_copy *result) {
    sm_error err = {0};
    sm_search_options o;
    sm_source source = sm_source_of("--plan", fixed);
    sm_search_defaults(&o);
    o.threads = 1, o.top = 1, o.prune = prune;
    if (!train || sm_plan_parse(&source, &o.fixed, &err) ||
        search_copied(train, &o, result, &err)) {
        fprintf(stderr, "search: %s\n", err.sentence);
        return false;
    }
    return true;
}

/* Time and memory of every plan of the space that remains: nothing is ruled out by a bound. */
static void price_all(const char *name, const char *fixed) {
    static search_copy r;
    sm_train *train = train_on("llama-3.1-405b", "h100-sxm:2048x8", 16.0 * 1024 * 1024, 8192);
    double start = processor_s();
    if (search(train, fixed, false, &r)) line(name, r.evaluated / (processor_s() - start), "1/s");
    sm_train_free(train);
}

static void price_one(void) {
    enum { TIMES = 2000 };
    sm_error err = {0};
    sm_plan plan;
    sm_price_of_plan price;
    sm_source source = sm_source_of("--plan", "data=128,tensor=8,pipeline=16,schedule=interleaved,"
                                              "virtual=4,microbatch=1,recompute=selective");
    sm_train *train = train_on("llama-3.1-405b", "h100-sxm:2048x8", 16.0 * 1024 * 1024, 8192);
    if (!train || sm_plan_parse(&source, &plan, &err) ||
        sm_train_price(train, &plan, &price, &err)) {
        fprintf(stderr, "one plan: %s\n", err.sentence);
        return;
    }
    uint64_t before = sm_allocation_count();
    double start = processor_s();
    for (int i = 0; i < TIMES; i++) sm_train_price(train, &plan, &price, NULL);
    line("one_plan_us", (processor_s() - start) / TIMES * 1e6, "us");
    line("allocations_per_evaluation", (double)(sm_allocation_count() - before) / TIMES, "1");
    sm_train_free(train);
}

/* The plans of one mesh, given to be priced: every schedule, recomputation, ZeRO stage, offload and
 * microbatch. */
static void price_given(void) {
    enum { ROOM = 8192, TIMES = 20 };
    static sm_plan plans[ROOM];
    static sm_plan_outcome outcomes[ROOM];
    sm_error err = {0};
    size_t n = 0;
    sm_source source = sm_source_of("--plan", "data=128,tensor=8,pipeline=16");
    sm_train *train = train_on("llama-3.1-405b", "h100-sxm:2048x8", 16.0 * 1024 * 1024, 8192);
    sm_plan plan;
    if (!train || sm_plan_parse(&source, &plan, &err)) return;
    for (plan.microbatch = 1; plan.microbatch <= 4; plan.microbatch *= 2)
        for (int r = 0; r < SM_RECOMPUTE_COUNT; r++)
            for (int s = 0; s < SM_SCHEDULE_COUNT; s++)
                for (plan.virtual_stages = 1; plan.virtual_stages <= 4; plan.virtual_stages++)
                    for (plan.offload = 0; plan.offload < SM_OFFLOAD_COUNT; plan.offload++)
                        for (plan.zero = 0; plan.zero < 3 && n < ROOM; plan.zero++) {
                            if (plan.virtual_stages > 1 && s != SM_SCHEDULE_INTERLEAVED) continue;
                            plan.recompute = (sm_recompute)r;
                            plan.schedule = (sm_schedule)s;
                            plans[n++] = plan;
                        }
    sm_train_price_many(train, plans, n, outcomes, &err);
    double start = processor_s();
    for (int i = 0; i < TIMES; i++) sm_train_price_many(train, plans, n, outcomes, &err);
    line("price_many_per_s", (double)n * TIMES / (processor_s() - start), "1/s");
    start = processor_s();
    sm_price_of_plan price;
    for (size_t i = 0; i < n; i++) sm_train_price(train, &plans[i], &price, NULL);
    line("price_each_per_s", (double)n / (processor_s() - start), "1/s");
    sm_train_free(train);
}

/* Calculon's case (SC 2023): every plan of a space of 3.2 million, priced whole. */
static void grid(void) {
    static search_copy r;
    sm_train *train = train_on("gpt3-175b", "a100-80:8x8", 1536.0 * 2048, 2048);
    double start = processor_s();
    if (search(train, "offload=none", false, &r)) {
        line("grid_3p2M_s", processor_s() - start, "s");
        line("grid_3p2M_plans", r.evaluated, "1");
    }
    sm_train_free(train);
}

static void search_once(const char *name, const char *who, const char *where, double batch,
                        double seq) {
    static search_copy r;
    double start = processor_s();
    sm_train *train = train_on(who, where, batch, seq);
    if (search(train, "", true, &r)) line(name, processor_s() - start, "s");
    sm_train_free(train);
}

static void scaling(void) {
    static const int chips[] = {64, 256, 1024, 4096, 16384, 65536, 131072};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        char name[64], where[64];
        snprintf(name, sizeof name, "search_scaling_%d_s", chips[i]);
        snprintf(where, sizeof where, "h100-sxm:%d", chips[i]);
        search_once(name, "llama-3.1-70b", where, 16.0 * 1024 * 1024, 8192);
    }
}

int main(void) {
    calibrate();
    price_all("plan_evaluations_per_s", "tensor=8,context=1,recompute=none");
    price_all("plan_evaluations_16_stages_per_s", "tensor=8,context=1,pipeline=16");
    price_one();
    price_given();
    grid();
    search_once("search_405b_s", "llama-3.1-405b", "h100-sxm:2048x8", 16.0 * 1024 * 1024, 8192);
    search_once("search_deepseek_v3_s", "deepseek-v3", "h800:256x8", 15360.0 * 4096, 4096);
    scaling();
    calibrate();
    sm_arena_free(arena);
    return 0;
}

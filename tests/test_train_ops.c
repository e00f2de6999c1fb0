/* A plan's ops: their seconds are those of the price, their FLOPs those of the model. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "random_jobs.h"
#include "scalemodel/io.h"

static sm_plan_detail detail;
static sm_arena *arena;

static void tell(const char *model_name, const char *system, const char *words) {
    static sm_model model;
    sm_error err = {.status = SM_OK};
    sm_plan plan;
    sm_train *train = NULL;
    sm_system on = random_job_system(system);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &model,
                  .system = &on,
                  .batch_tokens = 32 * 4096,
                  .seq = 4096,
                  .usd_per_chip_hour = -1};
    sm_source source = sm_source_of("--plan", words);
    arena = sm_arena_new();
    if (sm_io_model_load(model_name, arena, &model, &err) || sm_train_new(&job, &train, &err) ||
        sm_plan_parse(&source, &plan, &err) || sm_train_detail(train, &plan, arena, &detail, &err))
        fail_msg("%s: %s", words, err.sentence);
    sm_train_free(train);
}

static const sm_plan_op *op(const char *name, sm_phase phase, bool again) {
    for (int i = 0; i < detail.lines.ops; i++) {
        const sm_plan_op *o = &detail.lines.op[i];
        if (strcmp(o->op, name) == 0 && o->phase == phase && o->again == again) return o;
    }
    return NULL;
}

/* 0 where they are the price's, else a comment. */
static int sums_differ(const char *what) {
    const sm_breakdown *b = &detail.price.breakdown;
    double time_s = 0, memory_s = 0, within = 1e-9 * detail.price.expected_s;
    for (int i = 0; i < detail.lines.ops; i++) {
        const sm_plan_op *o = &detail.lines.op[i];
        time_s += o->time_s;
        memory_s += o->memory_s;
        if (!(o->count > 0 && o->time_s > 0 && o->memory_s <= o->time_s * (1 + 1e-9))) return 1;
    }
    if (fabs(memory_s - b->memory) <= within && fabs(time_s - b->math - b->memory) <= within)
        return 0;
    print_message("%s: ops %g s, %g by memory; price %g and %g\n", what, time_s, memory_s,
                  b->math + b->memory, b->memory);
    return 1;
}

/* Llama 3.1 8B: q_proj is 2 x tokens x 4096 x 4096 in each of 32 layers, as are its two gradients;
 * the head 2 x tokens x 4096 x 128256. Eight chips share 32 sequences. */
static void flops_are_the_models(void **state) {
    double tokens = 32 * 4096 / 8.0, projection = 32 * 2 * tokens * 4096 * 4096;
    tell("llama-3.1-8b", "h100-sxm:1x8", "fsdp=8,microbatch=1,recompute=full");
    const sm_plan_op *q = op("q", SM_PHASE_FORWARD, false);
    assert_true(q && q->flops == projection && q->count == 4 * 32);
    q = op("q", SM_PHASE_FORWARD, true);
    assert_true(q && q->flops == projection && q->count == 4 * 32);
    q = op("q", SM_PHASE_BACKWARD_INPUT, false);
    assert_true(q && q->flops == projection && q->kind == SM_OP_EINSUM);
    q = op("q", SM_PHASE_BACKWARD_WEIGHT, false);
    assert_true(q && q->flops == projection && sm_plan_op_bound(q) == SM_BOUND_COMPUTE);
    q = op("l", SM_PHASE_FORWARD, false);
    assert_true(q && q->flops == 2 * tokens * 4096 * 128256 && q->count == 4);
    assert_null(op("l", SM_PHASE_FORWARD, true));
    q = op("h", SM_PHASE_FORWARD, false);
    assert_true(q && sm_plan_op_bound(q) == SM_BOUND_MEMORY);
    assert_int_equal(sums_differ("fsdp=8"), 0);
    sm_arena_free(arena);
    tell("llama-3.1-8b", "h100-sxm:1x8", "fsdp=8,microbatch=1");
    assert_null(op("q", SM_PHASE_FORWARD, true));
    sm_arena_free(arena);
}

/* In 8 bits: projections of q and of attention's result (a) are of one size, but what the latter
 * reads is cast first, 2 bytes read and two copies of 1 written, where q's norm has done so. Every
 * gradient is cast. The head stays in 16 bits. */
static void narrow_products_are_cast_for(void **state) {
    static const char *const in[2] = {"fsdp=8,microbatch=1", "fsdp=8,microbatch=1,dtype=fp8"};
    double head[2], cast[2], back[2];
    for (int i = 0; i < 2; i++) {
        tell("llama-3.1-8b", "h100-sxm:1x8", in[i]);
        const sm_plan_op *q = op("q", SM_PHASE_FORWARD, false),
                         *a = op("a", SM_PHASE_FORWARD, false),
                         *q_back = op("q", SM_PHASE_BACKWARD_INPUT, false);
        assert_true(q && a && q_back && op("l", SM_PHASE_FORWARD, false));
        head[i] = op("l", SM_PHASE_FORWARD, false)->time_s;
        cast[i] = a->time_s - q->time_s;
        back[i] = q_back->time_s - q->time_s;
        assert_int_equal(sums_differ(in[i]), 0);
        sm_arena_free(arena);
    }
    const sm_chip *h100 = sm_chip_find("h100-sxm", 8);
    double read = 32 * 4096 / 8.0 * 32 * 4096; /* elements: tokens, layers, width */
    double want =
        4 * read / (h100->memory_bytes_per_s.value * sm_calibration_of(h100)->memory_efficiency);
    assert_true(fabs(cast[0]) <= 1e-12 && fabs(cast[1] - want) <= 1e-9 * want);
    assert_true(fabs(back[1] - want) <= 0.05 * want && back[0] < 0.1 * want);
    assert_true(fabs(head[1] - head[0]) <= 1e-12);
}

/* All stages hold the same layers but the first and the last; the busiest is told of. */
static void a_stage_tells_of_its_own(void **state) {
    tell("llama-3.1-8b", "h100-sxm:1x8", "pipeline=8,microbatch=1");
    assert_int_equal(detail.stage, 7);
    assert_non_null(op("l", SM_PHASE_FORWARD, false));
    assert_null(op("x", SM_PHASE_FORWARD, false));
    const sm_plan_op *q = op("q", SM_PHASE_FORWARD, false);
    assert_true(q && q->count == 4 * 32);
    assert_int_equal(sums_differ("pipeline=8"), 0);
    sm_arena_free(arena);
}

/* A chip so fast that ops wait for the host: that is a row of its own. */
static void waiting_for_the_host_is_a_row(void **state) {
    sm_model model;
    sm_train *train = NULL;
    sm_error err = {.status = SM_OK};
    sm_plan plan;
    sm_system on = random_job_system("h100-sxm:1");
    arena = sm_arena_new();
    assert_int_equal(sm_io_model_load("llama-3.2-1b", arena, &model, &err), SM_OK);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &model,
                  .system = &on,
                  .batch_tokens = 16,
                  .seq = 16,
                  .usd_per_chip_hour = -1};
    sm_plan_defaults(&plan);
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    assert_int_equal(sm_train_detail(train, &plan, arena, &detail, &err), SM_OK);
    sm_train_free(train);
    const sm_plan_op *launches = op("launches", SM_PHASE_FORWARD, false);
    assert_true(launches && sm_plan_op_bound(launches) == SM_BOUND_LATENCY);
    assert_true(launches->flops == 0 && launches->memory_s == 0);
    assert_int_equal(sums_differ("16 tokens"), 0);
    sm_arena_free(arena);
}

/* Of 16 tokens on each chip at a millisecond a launch the step is what the host launches: the
 * collectives of 16 layers too, two gathers or sums either way, and of a ring the attention of its
 * other parts. A graph starts all of it at once. */
static void the_host_launches_collectives_too(void **state) {
    static const char *const words[] = {"data=4", "tensor=4,seq=off", "context=4",
                                        "tensor=4,seq=on"};
    double s[4], graphed = 0;
    sm_model model;
    sm_error err = {.status = SM_OK};
    sm_system on = random_job_system("h100-sxm:4");
    sm_software_memory held = *sm_software_memory_of("megatron-core", NULL, 0);
    arena = sm_arena_new();
    assert_int_equal(sm_io_model_load("llama-3.2-1b", arena, &model, &err), SM_OK);
    for (int i = 0; i < 4; i++) {
        sm_train *train = NULL;
        sm_plan plan;
        sm_job job = {.size = sizeof(sm_job),
                      .model = &model,
                      .system = &on,
                      .batch_tokens = 64,
                      .seq = 16,
                      .usd_per_chip_hour = -1};
        sm_source source = sm_source_of("--plan", words[i]);
        assert_int_equal(sm_plan_parse(&source, &plan, &err), SM_OK);
        assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
        plan.microbatch = i == 0 ? 1 : 4;
        sm_calibration c = *sm_train_calibration(train);
        c.launch_s = 1e-3;
        sm_train_set_calibration(train, &c);
        sm_train_set_software_memory(train, &held);
        assert_int_equal(sm_train_detail(train, &plan, arena, &detail, &err), SM_OK);
        s[i] = detail.price.expected_s;
        held.graphed = true;
        sm_train_set_software_memory(train, &held);
        assert_int_equal(sm_train_detail(train, &plan, arena, &detail, &err), SM_OK);
        graphed = fmax(graphed, detail.price.expected_s);
        held.graphed = false;
        sm_train_free(train);
    }
    print_message("%g %g %g %g s, graphed %g\n", s[0], s[1], s[2], s[3], graphed);
    assert_true(s[1] - s[0] > 16 * 4 * 1e-3 && s[1] - s[0] < 16 * 5 * 1e-3);
    assert_true(s[2] - s[0] > 16 * 9 * 2 * 1e-3 && s[3] - s[1] > 16 * 2e-3);
    assert_true(graphed < 0.2 * s[0]);
    sm_arena_free(arena);
}

/* Whatever the job and the plan. */
static void ops_add_up_to_the_price(void **state) {
    sm_rng rng = {11};
    int told = 0, failed = 0;
    for (int i = 0; i < 400; i++) {
        random_job r;
        sm_train *train = NULL;
        sm_plan plan;
        char words[400];
        sm_error err = {.status = SM_OK};
        random_job_fill(&r, &rng);
        if (sm_train_new(&r.job, &train, &err)) continue;
        arena = sm_arena_new();
        for (int k = 0; k < 4; k++) {
            random_plan(&r, &rng, &plan);
            if (sm_train_detail(train, &plan, arena, &detail, &err)) continue;
            sm_plan_format(&plan, 0, words, sizeof words);
            failed += sums_differ(words);
            told++;
        }
        sm_arena_free(arena);
        sm_train_free(train);
    }
    print_message("%d plans\n", told);
    assert_true(told > 300);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flops_are_the_models),
                                       cmocka_unit_test(a_stage_tells_of_its_own),
                                       cmocka_unit_test(narrow_products_are_cast_for),
                                       cmocka_unit_test(waiting_for_the_host_is_a_row),
                                       cmocka_unit_test(the_host_launches_collectives_too),
                                       cmocka_unit_test(ops_add_up_to_the_price)};
    return cmocka_run_group_tests_name("train_ops", tests, NULL, NULL);
}

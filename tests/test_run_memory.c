/* Memory of training on ranks: the most that any rank has in use, counted, against what the planner
 * predicts for the same plan as it is run. */
#include <math.h>
#include <pthread.h>
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory_account.h"
#include "scalemodel/hw.h"
#include "scalemodel/train.h"
#include "train_plans.h"

/* Large enough that arrays outweigh single rows, and that weights and activations both matter. */
enum { TOKENS = 32, WIDTH = 32, LAYERS = 4, MOST_RANKS = 64 };
static const double tolerance = 0.10;

static sm_model large_model(train_kind kind, const sm_train_setup *s) {
    bool one = s->degree[SM_AXIS_TENSOR] == 1 && s->degree[SM_AXIS_TENSOR_Q] > 1;
    char members[128];
    snprintf(members, sizeof members,
             "\"hidden_size\": %d, \"%s\": %d, \"num_key_value_heads\": %d", WIDTH,
             kind == TRAIN_EXPERTS ? "moe_intermediate_size" : "intermediate_size",
             kind == TRAIN_EXPERTS ? WIDTH : 2 * WIDTH, one ? 1 : 2);
    return train_model_with(kind, LAYERS, members);
}

/* The plan of the planner, whose rules the setup takes over. */
static sm_plan plan_of(const train_plan *of, sm_train_setup *s) {
    sm_plan p;
    sm_plan_defaults(&p);
    p.data = s->degree[SM_AXIS_DATA], p.fsdp = s->degree[SM_AXIS_FSDP];
    p.expert = s->degree[SM_AXIS_EXPERT], p.context = s->degree[SM_AXIS_CONTEXT];
    p.tensor = s->degree[SM_AXIS_TENSOR] * s->degree[SM_AXIS_TENSOR_Q];
    p.seq = s->rules.seq, p.expert_tensor = s->rules.expert_tensor;
    p.context_by = s->rules.context_by;
    p.recompute = s->recompute;
    p.regather = s->regather;
    p.zero = s->zero, p.microbatch = s->microbatch;
    p.state_copies = s->state_copies > 1 ? s->state_copies : 1;
    p.dtype = s->stored ? SM_BF16 : SM_FP32;
    p.gradient = s->gradients ? SM_BF16 : SM_FP32;
    p.optimizer = s->rounded ? SM_OPTIMIZER_ADAM_NO_MASTER : SM_OPTIMIZER_ADAM;
    if (s->recompute_ops) snprintf(p.recompute_ops, sizeof p.recompute_ops, "%s", s->recompute_ops);
    if (of->stages) {
        p.pipeline = of->stages;
        p.schedule = of->schedule;
        p.virtual_stages = of->chunks_per_stage;
    }
    p.offload = s->offload_optimizer && s->offload_activations ? SM_OFFLOAD_BOTH
                : s->offload_optimizer                         ? SM_OFFLOAD_OPTIMIZER
                : s->offload_activations                       ? SM_OFFLOAD_ACTIVATIONS
                                                               : SM_OFFLOAD_NONE;
    s->rules.weights_spread = sm_plan_shards_weights(&p);
    return p;
}

static sm_memory predicted(const sm_model *model, const sm_plan *plan) {
    sm_error err = {.status = SM_OK};
    sm_system system;
    sm_train *train;
    sm_price_of_plan price;
    sm_source name = sm_source_of("--on", "cpu-host:8");
    assert_int_equal(sm_system_parse(&name, NULL, 0, &system, &err), SM_OK);
    system.chip.pcie_bytes_per_s_oneway.value = 1e10; /* or nothing may be offloaded */
    sm_job job = {.size = sizeof(sm_job),
                  .model = model,
                  .system = &system,
                  .batch_tokens = TRAIN_SEQUENCES * TOKENS,
                  .seq = TOKENS,
                  .usd_per_chip_hour = -1};
    if (sm_train_new(&job, &train, &err)) fail_msg("%s", err.sentence);
    const sm_train_software software = sm_train_runtime_of(plan);
    sm_train_set_software(train, &software);
    if (sm_train_price(train, plan, &price, &err)) fail_msg("%s", err.sentence);
    sm_train_free(train);
    return price.memory;
}

typedef struct measured {
    const sm_train_setup *setup;
    sm_train_memory rank[MOST_RANKS];
} measured;

/* After the step weights and moments are left, as before it. */
static sm_status measure(sm_communicator *world, void *context, sm_error *err) {
    measured *m = context;
    sm_trainer *t = NULL;
    sm_train_memory before, *after = &m->rank[world->rank];
    sm_status status = sm_trainer_new(world, m->setup, &t, err);
    if (!status) sm_trainer_forget_memory(t);
    if (!status) sm_trainer_memory(t, &before);
    sm_train_result r;
    if (!status) status = sm_trainer_step(t, 0, &r, err);
    if (!status) sm_trainer_memory(t, after);
    for (int i = 0; !status && i < SM_TRAIN_MEMORY_COUNT; i++)
        if (fabs(after->now[i] - before.now[i]) > 0.5)
            status = sm_fail(err, SM_INTERNAL, "%s: %.0f bytes are left", sm_train_memory_names[i],
                             after->now[i] - before.now[i]);
    sm_trainer_free(t);
    return status;
}

static const sm_train_memory *worst(const measured *m) {
    const sm_train_memory *most = &m->rank[0];
    for (int i = 1; i < sm_train_setup_ranks(m->setup); i++)
        if (m->rank[i].total > most->total) most = &m->rank[i];
    return most;
}

/* The most that any rank ever had in host memory. */
static double host_of(const measured *m) {
    double most = 0;
    for (int i = 0; i < sm_train_setup_ranks(m->setup); i++)
        most = fmax(most, m->rank[i].most[SM_TRAIN_MEMORY_HOST]);
    return most;
}

static void show(const train_plan *of, const sm_memory *told, const sm_train_memory *seen) {
    const double pair[][2] = {{told->total, seen->total},
                              {told->params, seen->at_most[SM_TRAIN_MEMORY_PARAMS]},
                              {told->gradients, seen->at_most[SM_TRAIN_MEMORY_GRADIENTS]},
                              {told->optimizer, seen->at_most[SM_TRAIN_MEMORY_OPTIMIZER]},
                              {told->activations, seen->at_most[SM_TRAIN_MEMORY_ACTIVATIONS]},
                              {told->buffers, seen->at_most[SM_TRAIN_MEMORY_BUFFERS]},
                              {told->host, seen->most[SM_TRAIN_MEMORY_HOST]}};
    print_message("%s, %d x %s:", of->words, of->stages, sm_schedule_names[of->schedule]);
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        print_message(" %.0f|%.0f", pair[i][0] / 1e3, pair[i][1] / 1e3);
    print_message(" kB\n");
}

static void lay(const train_plan *of, train_kind kind, train_job *job, sm_plan *plan) {
    job->model = train_model(kind, LAYERS);
    job->setup = train_setup_of(&job->model);
    job->setup.tokens = TOKENS;
    train_words_read(of->words, &job->setup);
    job->model = large_model(kind, &job->setup);
    *plan = plan_of(of, &job->setup);
    if (of->stages)
        assert_true(train_line_lay(of->schedule, of->stages, of->chunks_per_stage, &job->setup,
                                   &job->line));
}

/* Predicted over counted. */
static double ratio_of(const train_plan *of, train_kind kind) {
    static train_job job;
    static measured m;
    sm_error err = {.status = SM_OK};
    sm_plan plan;
    lay(of, kind, &job, &plan);
    if (kind == TRAIN_DENSE && plan.expert > 1) return 1; /* no plan of the planner */
    sm_memory told = predicted(&job.model, &plan);
    memset(&m, 0, sizeof m);
    m.setup = &job.setup;
    assert_true(sm_train_setup_ranks(&job.setup) <= MOST_RANKS);
    if (sm_run_threads(sm_train_setup_ranks(&job.setup), measure, &m, &err))
        fail_msg("%s: %s", of->words, err.sentence);
    double ratio = told.total / worst(&m)->total, host = host_of(&m);
    assert_true(fabs(told.host - host) <= tolerance * told.host + 64);
    if (fabs(ratio - 1) > tolerance) show(of, &told, worst(&m));
    return ratio;
}

static void every_plan(train_kind kind) {
    int wrong = 0;
    double furthest[2] = {0, 0};
    for (size_t i = TRAIN_FIRST; i < train_plan_count; i += TRAIN_EVERY) {
        double apart = fabs(ratio_of(&train_plans[i], kind) - 1);
        wrong += apart > tolerance;
        bool piped = train_plans[i].stages > 0;
        furthest[piped] = fmax(furthest[piped], apart);
    }
    print_message("at most %.2f %% apart, with pipelines %.2f %%\n", 100 * furthest[0],
                  100 * furthest[1]);
    assert_int_equal(wrong, 0);
}

static void dense_memory_is_as_predicted(void **state) { every_plan(TRAIN_DENSE); }

static void expert_memory_is_as_predicted(void **state) { every_plan(TRAIN_EXPERTS); }

/* ---- the account ---- */

static void expect(const memory_account *a, double buffers, double host, double most) {
    assert_true(atomic_load(&a->in_use[SM_TRAIN_MEMORY_BUFFERS]) == (long long)buffers);
    assert_true(atomic_load(&a->in_use[SM_TRAIN_MEMORY_HOST]) == (long long)host);
    assert_true(fabs(a->total - most) < 0.5);
}

static void *free_block(void *block) {
    memory_free(block);
    return NULL;
}

/* To the byte; what another thread frees, or has no account, included. */
static void every_byte_is_accounted_for(void **state) {
    static memory_account a, other;
    pthread_t thread;
    void *nobody = memory_new(7);
    memory_scope before = memory_enter(&a, SM_TRAIN_MEMORY_BUFFERS);
    char *one = memory_new(1000), *two = memory_new_cleared(500);
    assert_non_null(one);
    for (int i = 0; i < 500; i++) assert_int_equal(two[i], 0);
    expect(&a, 1500, 0, 1500);
    memory_mark(two, SM_TRAIN_MEMORY_HOST);
    expect(&a, 1000, 500, 1500);
    memory_free(nobody);
    assert_int_equal(pthread_create(&thread, NULL, free_block, one), 0);
    pthread_join(thread, NULL);
    expect(&a, 0, 500, 1500);
    memory_scope inner = memory_enter(&other, SM_TRAIN_MEMORY_PARAMS);
    void *three = memory_new(30);
    memory_restore(inner);
    memory_free(two); /* of the first account still */
    memory_free(three);
    expect(&a, 0, 0, 1500);
    assert_true(fabs(other.most[SM_TRAIN_MEMORY_PARAMS] - 30) < 0.5);
    memory_begin(&a);
    expect(&a, 0, 0, 0);
    memory_free(NULL);
    memory_mark(NULL, SM_TRAIN_MEMORY_HOST);
    assert_null(memory_new(SIZE_MAX - 8));
    memory_restore(before);
    memory_free(memory_new(100));
    expect(&a, 0, 0, 0);
}

/* The highest moment, and each part for itself. */
static void the_highest_moment_is_kept(void **state) {
    static memory_account a;
    memory_scope before = memory_enter(&a, SM_TRAIN_MEMORY_ACTIVATIONS);
    void *kept = memory_new(300);
    memory_for(SM_TRAIN_MEMORY_BUFFERS);
    memory_free(memory_new(700));
    memory_free(kept);
    memory_free(memory_new(900));
    memory_restore(before);
    assert_true(fabs(a.total - 1000) < 0.5);
    assert_true(fabs(a.at_most[SM_TRAIN_MEMORY_BUFFERS] - 700) < 0.5);
    assert_true(fabs(a.at_most[SM_TRAIN_MEMORY_ACTIVATIONS] - 300) < 0.5);
    assert_true(fabs(a.most[SM_TRAIN_MEMORY_BUFFERS] - 900) < 0.5);
}

/* Ranks are threads already. */
static void hold_blas_to_one_thread(char **argv) {
    if (getenv("OPENBLAS_NUM_THREADS")) return;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    (void)argc;
    hold_blas_to_one_thread(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_accounted_for),
        cmocka_unit_test(the_highest_moment_is_kept),
        cmocka_unit_test(dense_memory_is_as_predicted),
        cmocka_unit_test(expert_memory_is_as_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

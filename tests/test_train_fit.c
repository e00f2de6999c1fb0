/* What fits the world: host memory that the chips of a host share, a margin that stays free, and
 * batches rounded to sequences that divide. */
#include "unit.h"

#include "catalogue.h"
#include "train_asked.h"
#include <math.h>

#define near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

static sm_train *train_of(sm_arena *arena, const char *name, const char *on, double sequences) {
    static sm_model model;
    static sm_system system;
    sm_error err = {.status = SM_OK};
    sm_train *train = NULL;
    sm_source text = sm_source_of("--on", on);
    catalogue_load(name, arena, &model);
    assert_int_equal(sm_system_parse(&text, NULL, 0, &system, &err), SM_OK);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &model,
                  .system = &system,
                  .batch_tokens = sequences * 4096,
                  .seq = 4096,
                  .usd_per_chip_hour = -1};
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    return train;
}

static sm_price_of_plan price_of(sm_train *train, const char *words) {
    sm_price_of_plan price;
    sm_plan plan;
    sm_error err = {.status = SM_OK};
    sm_source text = sm_source_of("plan", words);
    assert_int_equal(sm_plan_parse(&text, &plan, &err), SM_OK);
    assert_int_equal(sm_train_price(train, &plan, &price, &err), SM_OK);
    return price;
}

/* The state of 70e9 weights, 12 bytes each, is 847 GB: beyond one eighth of 2 TB, within an eighth
 * of it once it is sharded over eight chips. */
static void offload_takes_a_share_of_the_host(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_train *train = train_of(arena, "llama-3.1-70b", "h100-sxm:8x8", 1024);
    sm_train_set_memory_margin(train, -1e3); /* chips are large enough for anything */
    sm_price_of_plan whole = price_of(train, "data=64,zero=0,microbatch=1,offload=optimizer");
    near(whole.memory.host, 12 * 70.55e9, 1e9);
    near(whole.memory.host_capacity, 0x1p41 / 8, 1);
    assert_false(whole.fits);
    sm_price_of_plan shared = price_of(train, "fsdp=64,microbatch=1,offload=optimizer");
    assert_true(shared.fits);
    sm_train_free(train);
    sm_arena_free(arena);
}

/* Eight chips copy through a memory of 563 GB/s: 35 GB/s each way each, less than the 63 of PCIe.
 */
static void chips_share_the_memory_of_their_host(void **state) {
    sm_chip chip = *sm_chip_find("h100-sxm", 8);
    near(sm_chip_host_bytes_per_s_oneway(&chip), 563.2e9 / 16, 1);
    chip.host_bytes_per_s.value = 0;
    near(sm_chip_host_bytes_per_s_oneway(&chip), 63e9, 1);
    chip.chips_per_host = 0;
    near(sm_chip_host_bytes(&chip), 0x1p41, 1);
}

static void a_margin_stays_free(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_train *train = train_of(arena, "llama-3.1-8b", "h100-sxm:8", 256);
    sm_price_of_plan p = price_of(train, "fsdp=8,microbatch=1,recompute=none");
    assert_true(p.fits);
    double free = 1 - p.memory.total / p.memory.capacity;
    sm_train_set_memory_margin(train, free + 1e-9);
    assert_false(price_of(train, "fsdp=8,microbatch=1,recompute=none").fits);
    sm_train_set_memory_margin(train, free - 1e-9);
    assert_true(price_of(train, "fsdp=8,microbatch=1,recompute=none").fits);
    sm_train_free(train);
    sm_arena_free(arena);
}

/* No plan that a search finds takes more of the chip or of the host than there is. */
static void plans_found_fit_chip_and_host(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_train *train = train_of(arena, "llama-3.1-70b", "h100-sxm:8", 64);
    sm_search_options options;
    const sm_search_result *found;
    sm_error err = {.status = SM_OK};
    sm_train_set_memory_margin(train, SM_USUAL_MEMORY_MARGIN);
    sm_search_defaults(&options);
    options.top = 16;
    assert_int_equal(sm_train_search(train, &options, arena, &found, &err), SM_OK);
    for (int i = 0; i < sm_search_result_count(found); i++) {
        const sm_memory *m = &sm_search_result_at(found, i).price->memory;
        assert_true(m->total <= m->capacity * (1 - SM_USUAL_MEMORY_MARGIN));
        assert_true(m->host <= m->host_capacity);
    }
    sm_train_free(train);
    sm_arena_free(arena);
}

static void batches_divide(void **state) {
    static const double cases[][4] = {
        {4e6, 4096, 1024, 1},        {4e6, 8192, 512, 64},     {16e6, 8192, 2048, 512},
        {3.2e6, 2048, 1536, 8},      {63e6, 4096, 15360, 1},   {15360 * 4096., 4096, 15360, 7},
        {977 * 4096., 4096, 977, 8}, {100e3, 4096, 24, 2},     {1000, 4096, 1, 24},
        {4096, 4096, 1, 3},          {7000, 4096, 2, 6},       {4e6, 4096, 960, 96},
        {4e6, 4096, 980, 8960},      {16e6, 4096, 3920, 8960}, {100e3, 4096, 25, 35},
        {4e6, 4096, 990, 1155}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_system system = {.chips = (int)cases[i][3]};
        sm_train_asked q = {.in = {.batch_tokens = cases[i][0], .system = &system},
                            .job.seq = cases[i][1]};
        assert_int_equal(sm_train_batch_set(&q, NULL), SM_OK);
        near(q.batch.sequences, cases[i][2], 0);
        near(q.job.batch_tokens, cases[i][2] * cases[i][1], 0);
    }
}

static void keys_of_a_plan_change(void **state) {
    sm_plan plan;
    sm_error err = {.status = SM_OK};
    sm_source text = sm_source_of("plan", "fsdp=8,microbatch=4,recompute=q+k");
    sm_source change = sm_source_of("change", "recompute=full,microbatch=1");
    sm_source wrong = sm_source_of("change", "microbatch=none");
    assert_int_equal(sm_plan_parse(&text, &plan, &err), SM_OK);
    assert_int_equal(sm_plan_change(&change, &plan, &err), SM_OK);
    assert_int_equal(plan.microbatch, 1);
    assert_int_equal(plan.recompute, SM_RECOMPUTE_FULL);
    assert_string_equal(plan.recompute_ops, "");
    assert_int_equal(plan.fsdp, 8);
    assert_true(sm_plan_given(&plan, SM_PLAN_FSDP));
    assert_int_equal(sm_plan_change(&wrong, &plan, &err), SM_BAD_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offload_takes_a_share_of_the_host),
        cmocka_unit_test(chips_share_the_memory_of_their_host),
        cmocka_unit_test(a_margin_stays_free),
        cmocka_unit_test(plans_found_fit_chip_and_host),
        cmocka_unit_test(batches_divide),
        cmocka_unit_test(keys_of_a_plan_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

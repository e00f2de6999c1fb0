/* A model padded for degrees that do not divide its widths or its experts is priced as the model
 * whose config has the larger sizes; its padding is no work of the model's own. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model_of.h"
#include "scalemodel/train.h"

typedef struct padded_case {
    const char *model, *larger; /* members of its config as they are padded */
    int tensor;
} padded_case;

static const padded_case cases[] = {
    {"llama-3.1-8b",
     "\"head_dim\": 128, \"num_attention_heads\": 36, \"num_key_value_heads\": 9, "
     "\"intermediate_size\": 14337",
     3},
    {"llama-3.1-8b",
     "\"head_dim\": 128, \"num_attention_heads\": 40, \"num_key_value_heads\": 10, "
     "\"intermediate_size\": 14340, \"vocab_size\": 128260",
     5},
    /* each KV head on three chips, which share six queries */
    {"llama-3.1-8b", "\"head_dim\": 128, \"num_attention_heads\": 48, \"intermediate_size\": 14352",
     24},
    {"gemma-2-9b",
     "\"num_attention_heads\": 20, \"num_key_value_heads\": 10, \"intermediate_size\": 14340", 5},
};
enum { CASES = sizeof cases / sizeof *cases };

static sm_system system_of(int chips) {
    sm_system system;
    sm_error err = {0};
    char text[32];
    snprintf(text, sizeof text, "h100-sxm:%d", chips);
    sm_source source = sm_source_of("", text);
    if (sm_system_parse(&source, NULL, 0, &system, &err)) fail_msg("%s", err.sentence);
    return system;
}

static sm_train *train_of(const sm_model *model, const sm_system *system, const sm_plan *plan) {
    const sm_job job = {.size = sizeof(sm_job),
                        .model = model,
                        .system = system,
                        .batch_tokens = 16 * 1920,
                        .seq = 1920,
                        .usd_per_chip_hour = -1,
                        .padded_for = plan};
    sm_train *train;
    sm_error err = {0};
    if (sm_train_new(&job, &train, &err)) fail_msg("%s", err.sentence);
    return train;
}

static sm_plan plan_of(const sm_model *model, const char *text) {
    sm_plan plan;
    sm_error err = {0};
    sm_source source = sm_source_of("plan", text);
    if (sm_plan_parse(&source, &plan, &err)) fail_msg("%s", err.sentence);
    (void)model;
    return plan;
}

static void compare(const padded_case *c, const sm_model *model, const sm_model *larger,
                    const char *keys) {
    char text[128];
    snprintf(text, sizeof text, "tensor=%d,microbatch=2,%s", c->tensor, keys);
    sm_plan plan = plan_of(model, text);
    sm_system system = system_of(c->tensor == 24 ? 24 : c->tensor);
    sm_train *padded = train_of(model, &system, &plan), *made = train_of(larger, &system, NULL),
             *plain = train_of(model, &system, NULL);
    sm_price_of_plan a, b, refused;
    double share, none;
    sm_error err = {0};
    if (sm_train_price(padded, &plan, &a, &err)) fail_msg("%s: %s", text, err.sentence);
    if (sm_train_price(made, &plan, &b, &err)) fail_msg("%s: %s", text, err.sentence);
    assert_int_equal(sm_train_price(plain, &plan, &refused, &err), SM_BAD_INPUT);
    assert_true(a.lower_s == b.lower_s && a.expected_s == b.expected_s && a.upper_s == b.upper_s);
    assert_true(a.memory.total == b.memory.total);
    double own = sm_model_train_flops(model, 1920, true),
           all = sm_model_train_flops(larger, 1920, true);
    sm_train_padded(padded, &share);
    sm_train_padded(made, &none);
    assert_true(fabs(share - (1 - own / all)) < 1e-12 && none == 0);
    assert_true(fabs(a.mfu / b.mfu - own / all) < 1e-9 && fabs(a.hfu / b.hfu - 1) < 1e-9);
    sm_train_free(padded);
    sm_train_free(made);
    sm_train_free(plain);
}

static void a_padded_model_is_the_larger_one(void **state) {
    for (int i = 0; i < CASES; i++) {
        sm_model model = catalogue_with(cases[i].model, ""),
                 larger = catalogue_with(cases[i].model, cases[i].larger);
        compare(&cases[i], &model, &larger, "seq=off");
        compare(&cases[i], &model, &larger, "seq=on,recompute=full,zero=1");
    }
}

static bool pads(const char *name, const char *text) {
    sm_model model = catalogue_with(name, "");
    sm_plan plan = plan_of(&model, text);
    sm_padding padding;
    return sm_plan_padding(&plan, &model, &padding);
}

/* Of experts the fullest chip has one more, of as many tokens each: 8 over 6 chips are as 12 of
 * which a token takes 3 for 2, but for the router, which has none more. */
static void padded_experts_have_no_tokens_more(void **state) {
    const double near = 0.005;
    sm_model model = catalogue_with("mixtral-8x7b", ""),
             larger = catalogue_with("mixtral-8x7b", "\"num_local_experts\": 12, "
                                                     "\"num_experts_per_tok\": 3");
    sm_plan plan = plan_of(&model, "expert=6,microbatch=2,zero=0");
    sm_system system = system_of(6);
    sm_train *padded = train_of(&model, &system, &plan), *made = train_of(&larger, &system, NULL);
    sm_price_of_plan a, b;
    double share;
    sm_error err = {0};
    if (sm_train_price(padded, &plan, &a, &err)) fail_msg("%s", err.sentence);
    if (sm_train_price(made, &plan, &b, &err)) fail_msg("%s", err.sentence);
    assert_true(fabs(a.lower_s / b.lower_s - 1) < near && fabs(a.upper_s / b.upper_s - 1) < near);
    assert_true(fabs(a.expected_s / b.expected_s - 1) < near);
    assert_true(fabs(a.memory.total / b.memory.total - 1) < near);
    const sm_model *has = sm_train_padded(padded, &share);
    assert_true(has->kind[0].E == 8 && has->kind[0].E_held == 12);
    double own = sm_model_train_flops(&model, 1920, true),
           all = sm_model_train_flops(&larger, 1920, true);
    assert_true(fabs(share - (1 - own / all)) < near);
    sm_train_free(padded);
    sm_train_free(made);
}

/* Heads alone are copied; states go from token to token; no chip is without an expert. */
static void padding_is_for_widths_and_experts(void **state) {
    assert_true(pads("llama-3.1-8b", "tensor=3"));
    assert_false(pads("llama-3.1-8b", "tensor=7"));
    assert_false(pads("llama-3.1-8b", "data=3"));
    assert_true(pads("mixtral-8x7b", "tensor=3"));
    assert_true(pads("mixtral-8x7b", "expert=3"));
    assert_true(pads("mixtral-8x7b", "expert=5,tensor=3,expert_tensor=on"));
    assert_true(pads("mixtral-8x7b", "expert=3,tensor=2,expert_tensor=off"));
    assert_false(pads("mixtral-8x7b", "expert=5,tensor=2,expert_tensor=off"));
    assert_false(pads("mixtral-8x7b", "expert=4,tensor=2"));
    assert_false(pads("mixtral-8x7b", "expert=16"));
}

/* What serving holds along the residual stream cuts widths by fsdp too, which engines do not. */
static void plans_of_serving_pad_alike(void **state) {
    sm_model model = catalogue_with("llama-3.1-8b", ""), padded;
    sm_arena *arena = sm_arena_new();
    sm_error err = {0};
    sm_plan plan;
    bool pads;
    sm_source text = sm_source_of("plan", "tensor=3");
    assert_int_equal(sm_serve_plan_parse(&text, &plan, &err), SM_OK);
    assert_int_equal(sm_plan_pad(&plan, &model, arena, &padded, &pads, &err), SM_OK);
    assert_true(pads && padded.kind[0].N == 36 && padded.kind[0].K == 9);
    assert_true(padded.kind[0].F == 14337 && padded.V == model.V);
    assert_true(sm_model_kv_bytes_per_token(&padded, SM_BF16) == 32 * 2 * 9 * 128 * 2.0);
    text = sm_source_of("plan", "tensor=3,fsdp=5");
    assert_int_equal(sm_serve_plan_parse(&text, &plan, &err), SM_OK);
    assert_int_equal(sm_plan_pad(&plan, &model, arena, &padded, &pads, &err), SM_OK);
    assert_true(pads && padded.kind[0].F == 14340);
    text = sm_source_of("plan", "tensor=4");
    assert_int_equal(sm_serve_plan_parse(&text, &plan, &err), SM_OK);
    assert_int_equal(sm_plan_pad(&plan, &model, arena, &padded, &pads, &err), SM_OK);
    assert_true(!pads && padded.kind[0].F == model.kind[0].F);
    sm_arena_free(arena);
}

static void memory_may_run_out(void **state) {
    sm_model model = catalogue_with("llama-3.1-8b", "");
    sm_plan plan = plan_of(&model, "tensor=3");
    sm_padding padding;
    assert_true(sm_plan_padding(&plan, &model, &padding));
    for (uint64_t n = 1, failed = 1; failed; n++) {
        sm_arena *arena = sm_arena_new();
        sm_model padded;
        sm_error err = {0};
        sm_allocation_fail_at(n);
        uint64_t before = sm_allocation_count();
        sm_status status = sm_model_pad(&model, &padding, arena, &padded, &err);
        failed = sm_allocation_count() - before >= n;
        sm_allocation_fail_at(0);
        assert_int_equal(status, failed ? SM_INTERNAL : SM_OK);
        if (!failed) assert_int_equal(padded.kind[0].F, 14337);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_padded_model_is_the_larger_one),
        cmocka_unit_test(padded_experts_have_no_tokens_more),
        cmocka_unit_test(padding_is_for_widths_and_experts),
        cmocka_unit_test(plans_of_serving_pad_alike),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

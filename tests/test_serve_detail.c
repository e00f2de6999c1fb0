/* What a point says about itself: collectives, where it turns, its derivation, advice. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include "failing_alloc.h"
#include "scalemodel/load.h"
#include "serve_cases.h"

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.9g where %.9g was expected", value, expected);
}

static sm_serve_detail detailed(sm_serve *serve, const char *text, double batch, sm_arena *arena) {
    sm_error err = {0};
    sm_serve_detail d = {.encoder_positions = 0};
    sm_serve_point p;
    sm_plan plan = serve_plan(text);
    if (sm_serve_point_of(serve, &plan, batch, &p, &err) != SM_OK ||
        sm_serve_detail_of(serve, &p, arena, &d, &err) != SM_OK)
        fail_msg("%s", err.sentence);
    return d;
}

/* The critical batch of How To Scale Your Model, inference: peak FLOP/s over bytes per second times
 * the bytes of a weight over 2: 240 in 16 bits, 120 with int8 weights. */
static void compute_overtakes_weights_at_the_critical_batch(void **state) {
    serve_case c;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-2-13b", "tpu-v5e:2x4");
    sm_serve *serve = serve_case_new(&c);
    close_to(detailed(serve, "tensor=8", 1, arena).turn_compute_batch, 197e12 / 819e9, 0.02);
    sm_serve_free(serve);
    c.job.dtypes.weights = SM_INT8;
    serve = serve_case_new(&c);
    close_to(detailed(serve, "tensor=8", 1, arena).turn_compute_batch, 197e12 / 819e9 / 2, 0.02);
    sm_serve_free(serve);
    sm_arena_free(arena);
}

/* Products of weights with a scale for each block take so much more for each element that they
 * contract: of a layer of llama-3.1-8b 4096 to queries, keys and values, 4096 heads, 4096 to the
 * MLP, its 14336; the unembedding has no scales. */
static void scales_of_blocks_cost_what_they_contract(void **state) {
    static const double contracted = 32 * (4096 + 4096 + 4096 + 14336);
    double s[3][2];
    for (int i = 0; i < 3; i++) {
        serve_case c;
        serve_case_fill(&c, "llama-3.1-8b", "mi300x:1");
        if (i == 1)
            c.model = catalogue_with("llama-3.1-8b", "\"quantization_config\": {\"quant_method\": "
                                                     "\"fp8\", \"weight_block_size\": [128, 128]}");
        assert_int_equal(c.model.stored.blocks, i == 1);
        c.job.dtypes.weights = c.job.dtypes.compute = SM_FP8;
        c.job.blocks = i == 2;
        sm_serve *serve = serve_case_new(&c);
        for (int k = 0; k < 2; k++) {
            sm_calibration constants = *sm_calibration_for(&c.system.chip, "serving");
            constants.block_scale_s = k * 1e-8;
            sm_serve_set_calibration(serve, &constants);
            s[i][k] = serve_point(serve, "tensor=1", 8).tpot_alone_s[1];
        }
        sm_serve_free(serve);
    }
    close_to(s[0][1], s[0][0], 1e-12);
    close_to(s[1][1] - s[1][0], contracted * 1e-8, 1e-6);
    close_to(s[2][1] - s[2][0], contracted * 1e-8, 1e-6);
}

/* The cache takes as long as the weights where it has as many bytes. */
static void the_cache_overtakes_the_weights(void **state) {
    serve_case c;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-2-13b", "tpu-v5e:2x4");
    c.job.context = 4096;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_detail d = detailed(serve, "tensor=8", 4, arena);
    double weights = sm_model_params(&c.model).total * 2;
    close_to(d.turn_kv_context, weights / 4 / 819200, 1e-3);
    close_to(d.turn_kv_batch, weights / 4096 / 819200, 1e-3);
    sm_serve_free(serve);
    sm_arena_free(arena);
}

static void collectives_add_up(void **state) {
    serve_case c;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:8");
    sm_serve *serve = serve_case_new(&c);
    sm_serve_detail d = detailed(serve, "tensor=8", 16, arena);
    double time_s = 0;
    bool joined = false;
    for (int i = 0; i < d.decode.collectives; i++) {
        const sm_plan_collective *k = &d.decode.collective[i];
        assert_string_equal(k->axis, "tensor");
        assert_true(k->time_s > 0 && k->bytes > 0 && k->algorithm);
        time_s += k->time_s;
        if (strcmp(k->array, "a") != 0) continue;
        joined = true; /* one all-reduce of [16, D] a layer */
        assert_int_equal(k->op, SM_ALL_REDUCE);
        close_to(k->count, 80, 0);
        close_to(k->bytes, 16.0 * 8192 * 2, 0);
    }
    assert_true(joined);
    close_to(time_s, d.point.decode.breakdown_s.network, 1e-9);
    sm_serve_free(serve);
    sm_arena_free(arena);
}

/* ---- derivations ---- */

static const sm_why *child(const sm_why *w, const char *label) {
    for (const sm_why *c = w->first; c; c = c->next)
        if (strcmp(c->label, label) == 0) return c;
    fail_msg("no \"%s\" below \"%s\"", label, w->label);
    return NULL;
}

static double sum_of(const sm_why *w) {
    double sum = 0;
    for (const sm_why *c = w->first; c; c = c->next)
        if (strcmp(c->label, "lower bound") != 0) sum += c->value;
    return sum;
}

static void check_nodes(const sm_why *w) {
    assert_true(w->label && w->label[0] && isfinite(w->value) && w->value >= 0);
    if (!w->first) assert_non_null(w->source);
    for (const sm_why *c = w->first; c; c = c->next) check_nodes(c);
}

static void derivations_give_the_same_numbers(void **state) {
    static const char *const plans[] = {"tensor=8", "tensor=4,pipeline=2", "tensor=8,seq=on"};
    serve_case c;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:8");
    sm_serve *serve = serve_case_new(&c);
    for (int i = 0; i < 3; i++) {
        sm_serve_detail d = detailed(serve, plans[i], 16, arena);
        check_nodes(d.why);
        close_to(d.why->value, d.point.tpot_s[1], 1e-12);
        const sm_why *decode = child(d.why, "decode step");
        close_to(decode->value, d.point.decode.expected_s, 1e-12);
        close_to(sum_of(decode), decode->value, 1e-9);
        close_to(child(decode, "lower bound")->value, d.point.tpot_s[0], 1e-12);
        double between = child(d.why, "prefills between two tokens")->value;
        close_to(d.why->value, decode->value + between, 1e-9);
        const sm_why *first = child(d.why, "time to first token");
        close_to(first->value, d.point.ttft_s[1], 1e-12);
        close_to(sum_of(first), first->value, 1e-9);
        close_to(child(first, "prefill of one prompt")->value, d.point.ttft_alone_s[1], 1e-9);
        close_to(child(d.why, "memory of the fullest chip")->value, d.point.memory.total, 1e-12);
    }
    sm_serve_free(serve);
    sm_arena_free(arena);
}

/* ---- advice ---- */

static void advice_names_a_change_and_its_effect(void **state) {
    serve_case c;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:8");
    sm_serve *serve = serve_case_new(&c);
    const char *one = detailed(serve, "tensor=8", 1, arena).advice;
    assert_non_null(strstr(one, " a token, "));
    assert_non_null(strstr(one, " tokens/s/chip"));
    sm_serve_free(serve);
    /* 140 GB do not fit on 80 GB: whatever is advised makes it fit */
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:1");
    serve = serve_case_new(&c);
    sm_serve_detail d = detailed(serve, "tensor=1", 1, arena);
    assert_false(d.point.fits);
    assert_non_null(strstr(d.advice, ", and it fits"));
    sm_serve_free(serve);
    sm_arena_free(arena);
}

/* The effect that advice states is that of a priced point. */
static void advice_is_computed(void **state) {
    serve_case c;
    char after[32], rate[32];
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    c.job.context = 60000;
    c.job.dtypes.weights = SM_INT4; /* nothing left but the cache, the batch and the chips */
    sm_serve *serve = serve_case_new(&c);
    const char *advice = detailed(serve, "tensor=1", 8, arena).advice;
    c.job.dtypes.kv = SM_FP8;
    sm_serve *narrow = serve_case_new(&c);
    sm_serve_point p = serve_point(narrow, "tensor=1", 8);
    sm_format_seconds(after, sizeof after, p.tpot_s[1]);
    sm_format_count(rate, sizeof rate, p.tokens_per_s_per_chip);
    if (strncmp(advice, "the KV cache in fp8: ", 21) == 0) {
        assert_non_null(strstr(advice, after));
        assert_non_null(strstr(advice, rate));
    }
    assert_true(advice[0] != '\0');
    sm_serve_free(serve);
    sm_serve_free(narrow);
    sm_arena_free(arena);
}

static void every_allocation_may_fail(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_plan plan = serve_plan("");
    sm_serve *serve = NULL; /* test_serve_price refuses what it allocates */
    assert_int_equal(sm_serve_new(&c.job, &serve, NULL), SM_OK);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err = {0};
        sm_serve_detail d;
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_serve_point p;
        sm_status s = sm_serve_point_of(serve, &plan, 1, &p, &err);
        if (!s) s = sm_serve_detail_of(serve, &p, arena, &d, &err);
        assert_true(s == SM_OK || (s == SM_INTERNAL && err.sentence[0]));
        if (!failing_alloc_refused(&loop)) assert_int_equal(s, SM_OK);
        sm_arena_free(arena);
    }
    sm_serve_free(serve);
}

/* An engine with the least share that a batch needs holds that batch and no sequence more, whatever
 * its share is of. */
static void least_share_is_the_edge(void **state) {
    static const char *const engines[] = {"vllm-2025", "vllm-0.21", "sglang-2025", "trtllm-1"};
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        serve_case c;
        sm_error err = {0};
        sm_serve_memory m;
        sm_serve_room room;
        sm_software engine = *sm_software_of(engines[i]);
        sm_plan plan = serve_plan("tensor=2");
        serve_case_fill(&c, "qwen3-30b-a3b", "h100-sxm:2");
        c.job.reserve = -1;
        c.job.software = &engine;
        for (double more = -0.5; more < 1; more++) {
            sm_serve *serve = serve_case_new(&c);
            assert_int_equal(sm_serve_memory_of(serve, &plan, 40 + more, 4096, 1, &m, &err), SM_OK);
            sm_serve_free(serve);
            engine.memory_share = m.least_share;
            serve = serve_case_new(&c);
            assert_int_equal(sm_serve_room_of(serve, &plan, 4096, 1, &room, &err), SM_OK);
            assert_int_equal((int)room.most, more < 0 ? 39 : 40);
            close_to(room.kv_tokens, (40 + more) * 4096, 1e-6);
            sm_serve_free(serve);
        }
    }
}

/* What TensorRT-LLM 0.8 prints of a 7B in int8 on an A100 whose steps take 4096 tokens of one
 * sequence, and what lets Llama 70B in fp8 on one H100 measure what it does under 0.17: as many
 * prompts of 5000 as its tokens a second need at once, of steps that may draw for 2048. */
static void tensorrt_llm_leaves_what_it_prints(void **state) {
    serve_case c;
    sm_serve_room room;
    const sm_plan plan = serve_plan("tensor=1");
    sm_software engine = *sm_software_of("trtllm-2024");
    engine.budget_tokens = 4096, engine.most_running = 1;
    engine.budget_given = engine.most_given = true;
    serve_case_fill(&c, "llama-2-7b", "a100-80:1");
    c.job.dtypes = (sm_serve_dtypes){SM_INT8, SM_FP16, SM_BF16};
    c.job.reserve = -1;
    c.job.software = &engine;
    sm_serve *serve = serve_case_new(&c);
    assert_int_equal(sm_serve_room_of(serve, &plan, 4097, 4096, &room, NULL), SM_OK);
    close_to(room.kv_tokens, 132608, 0.01);
    sm_serve_free(serve);
    serve_case_fill(&c, "llama-3.1-70b", "h100-sxm:1");
    c.job.dtypes = (sm_serve_dtypes){SM_FP8, SM_FP8, SM_FP8};
    c.job.reserve = -1;
    c.job.software = sm_software_of("trtllm-0.17");
    serve = serve_case_new(&c);
    assert_int_equal(sm_serve_room_of(serve, &plan, 5500, 8192, &room, NULL), SM_OK);
    assert_true(room.most >= 8);
    sm_serve_free(serve);
}

/* Seconds of a decode step on a core, as src/run multiplies. */
static double decoded_as_run(double batch, bool as_run) {
    serve_case c;
    serve_case_fill(&c, "qwen3-0.6b", "cpu-host:1");
    c.job.dtypes = (sm_serve_dtypes){SM_FP32, SM_FP32, SM_FP32};
    c.job.prompt = c.job.output = 8; /* little attention, which differs, too */
    c.job.reserve = 0;
    c.job.query_by_query = as_run;
    c.system.chip.flops_per_s[SM_FP32].value = 1e11;
    c.system.chip.memory_bytes_per_s.value = 4e10;
    c.system.chip.onchip_bytes_per_s.value = 1e11;
    c.system.chip.tile_m = 16; /* that a library pads rows to */
    sm_serve *serve = serve_case_new(&c);
    double seconds = serve_point(serve, "tensor=1", batch).decode.expected_s;
    sm_serve_free(serve);
    return seconds;
}

/* A few rows read each matrix once from memory, and once more for each row but one from the chip's
 * own: each takes as much longer; more than eight go through the product that pads. */
static void few_rows_are_read_for_each(void **state) {
    double one = decoded_as_run(1, true), two = decoded_as_run(2, true), five, eight;
    five = decoded_as_run(5, true), eight = decoded_as_run(8, true);
    assert_true(one < 0.9 * decoded_as_run(1, false));
    assert_true(two > 1.2 * one && two < 1.6 * one);
    assert_true(fabs((five - two) / (3 * (two - one)) - 1) < 0.1);
    assert_true(fabs((eight - five) / (five - two) - 1) < 0.1);
    assert_true(decoded_as_run(9, true) > 0.9 * decoded_as_run(9, false));
}

/* Nothing but first tokens and what follows from them tells points in closed form from others; each
 * by itself is what the search would have simulated. */
static void first_tokens_may_wait(void **state) {
    serve_case c;
    sm_error err = {0};
    sm_serve_search_options o;
    sm_serve_result whole, quick;
    (void)state;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:2");
    sm_serve_search_defaults(&o);
    o.ttft_s = 0.3;
    sm_arena *arena = sm_arena_new();
    assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &whole, &err), SM_OK);
    o.closed_first = true;
    assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &quick, &err), SM_OK);
    assert_true(whole.n > 1 && quick.n == whole.n);
    assert_true(quick.evaluated >= whole.evaluated && quick.evaluated <= whole.evaluated);
    int earlier = 0;
    for (size_t i = 0; i < whole.n; i++) {
        const sm_serve_point *a = &whole.point[i], *b = &quick.point[i];
        sm_serve *worker;
        sm_serve_point own;
        sm_system part;
        sm_serve_job job = c.job;
        if (sm_system_part(&c.system, a->chips, &part)) job.system = &part;
        assert_int_equal(sm_serve_new(&job, &worker, &err), SM_OK);
        assert_memory_equal(a->tpot_s, b->tpot_s, sizeof a->tpot_s / 3 * 2);
        assert_true(a->batch == b->batch && a->tokens_per_s_per_chip == b->tokens_per_s_per_chip);
        earlier += b->ttft_s[1] < a->ttft_s[1];
        assert_int_equal(sm_serve_point_of(worker, &b->plan, b->batch, &own, &err), SM_OK);
        assert_memory_equal(own.ttft_s, a->ttft_s, sizeof own.ttft_s);
        assert_true(own.in_flight == a->in_flight);
        sm_serve_free(worker);
    }
    assert_true(earlier > 0);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_overtakes_weights_at_the_critical_batch),
        cmocka_unit_test(scales_of_blocks_cost_what_they_contract),
        cmocka_unit_test(the_cache_overtakes_the_weights),
        cmocka_unit_test(collectives_add_up),
        cmocka_unit_test(derivations_give_the_same_numbers),
        cmocka_unit_test(advice_names_a_change_and_its_effect),
        cmocka_unit_test(advice_is_computed),
        cmocka_unit_test(least_share_is_the_edge),
        cmocka_unit_test(tensorrt_llm_leaves_what_it_prints),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(few_rows_are_read_for_each),
        cmocka_unit_test(first_tokens_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

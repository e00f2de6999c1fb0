/* Results of benchmark tools as rows: the same benchmark told by each of them is the same row, and
 * the same prediction. */
#include "scalemodel/io.h"
#include "scalemodel/truth.h"
#include "unit.h"
#include <math.h>
#include <string.h>

static sm_arena *arena;
static int set_up(void **state) { return (*state = arena = sm_arena_new()) ? 0 : 1; }
static int tear_down(void **state) {
    (void)state;
    sm_arena_free(arena);
    return 0;
}

static sm_truth read(const char *text) {
    sm_truth truth;
    sm_error err = {0};
    sm_source source = sm_source_of("result", text);
    if (sm_truth_parse(&source, arena, &truth, &err)) fail_msg("%s", err.sentence);
    assert_int_equal(truth.kind, SM_TRUTH_INFERENCE);
    return truth;
}

/* qwen3-32b on four H100, 64 in flight, 1024 tokens in and out. */
#define FACTS                                                                                      \
    "\"chip\": \"h100-sxm\", \"chips\": 4, \"parallel.tp\": 4, \"software\": \"vllm-0.12\""
static const char vllm[] =
    "{" FACTS ", \"model_id\": \"Qwen/Qwen3-32B\", \"request_rate\": \"inf\", \"max_concurrency\": "
    "64, \"completed\": 10, \"total_input_tokens\": 10240, \"total_output_tokens\": 10240, "
    "\"output_throughput\": 3550.0, \"mean_ttft_ms\": 250, \"median_ttft_ms\": 92, "
    "\"mean_tpot_ms\": 17.5, \"mean_e2el_ms\": 18000}\n";
static const char aiperf[] =
    "{\n" FACTS ",\n\"input_config\": {\"endpoint\": {\"model_names\": [\"qwen3-32b\"]}, "
    "\"loadgen\": {\"concurrency\": 64}},\n\"input_sequence_length\": {\"avg\": 1024},\n"
    "\"output_sequence_length\": {\"avg\": 1024},\n\"time_to_first_token\": {\"unit\": \"s\", "
    "\"avg\": 0.25, \"p50\": 0.092},\n\"inter_token_latency\": {\"unit\": \"ms\", \"avg\": 17.5},\n"
    "\"request_latency\": {\"unit\": \"ms\", \"avg\": 18000},\n"
    "\"output_token_throughput\": {\"avg\": 3550},\n\"request_throughput\": {\"avg\": 3.4}}\n";
static const char csv[] =
    "model.name,chip,chips,parallel.tp,software,concurrency,input_len,output_len,measured.ttft_ms,"
    "measured.ttft_is,measured.tpot_ms,measured.latency_ms,measured.tokens_per_s,tokens_counted\n"
    "Qwen3-32B-Instruct-FP8,h100-sxm,4,4,vllm-0.12,64,1024,1024,92,median,17.5,18000,3550,output\n";

static void test_alike(void **state) {
    const char *const texts[] = {vllm, aiperf, csv};
    double expected[3][4];
    for (int i = 0; i < 3; i++) {
        sm_truth truth = read(texts[i]);
        const sm_inference_row *r = &truth.row[0].of.inference;
        sm_truth_case *c;
        sm_prediction p;
        sm_error err = {0};
        assert_int_equal(truth.n, 1);
        assert_string_equal(r->ttft_is, "median");
        assert_true(fabs(r->ttft_s - 0.092) < 1e-12 && fabs(r->tpot_s - 0.0175) < 1e-12);
        assert_true(fabs(r->input_len - 1024) < 1e-9 && fabs(r->concurrency - 64) < 1e-9);
        assert_int_equal(sm_truth_case_new(&truth.row[0], &c, &err), SM_OK);
        sm_truth_predict(c, NULL, &p);
        assert_null(p.unknown);
        assert_int_equal(p.parts, 4);
        assert_int_equal(sm_truth_case_model(c)->D, 5120);
        for (int k = 0; k < 4; k++) expected[i][k] = p.part[k].expected_s;
        assert_memory_equal(expected[i], expected[0], sizeof expected[0]);
        sm_truth_case_free(c);
    }
}

/* Of one node and of pools; what of a list is no row is an error at its place. */
static void test_inferencex(void **state) {
    sm_truth truth =
        read("[{\"hw\": \"h200-nb\", \"conc\": 4, \"model\": \"deepseek-ai/DeepSeek-R1\", "
             "\"tp\": 8, \"ep\": 8, \"dp_attention\": \"true\", \"isl\": 1024, "
             "\"osl\": 512, \"precision\": \"fp8\", \"output_tput_per_gpu\": 34.5, "
             "\"median_ttft\": 0.1},\n {\"hw\": \"gb200\", \"conc\": 1229, \"model\": "
             "\"deepseek-ai/DeepSeek-R1\", \"disagg\": true, \"num_prefill_gpu\": 40, "
             "\"num_decode_gpu\": 16, \"decode_tp\": 16, \"decode_ep\": 16, "
             "\"output_tput_per_gpu\": 621, \"mean_tpot\": 0.027}]");
    const sm_inference_row *one = &truth.row[0].of.inference, *pools = &truth.row[1].of.inference;
    assert_int_equal(truth.n, 2);
    assert_string_equal(truth.row[0].chip, "h200");
    assert_int_equal(one->chips, 8);
    assert_int_equal(one->attention_dp, 8);
    assert_string_equal(one->len_sampling, "uniform[0.8L,L]");
    assert_true(fabs(one->ttft_s - 0.1) < 1e-12);
    assert_int_equal(pools->disagg, SM_YES);
    assert_int_equal(pools->chips, 56);
    assert_int_equal(pools->decode.gpus, 16);
    assert_int_equal(truth.row[1].line, 2);
    assert_true(fabs(pools->tpot_s - 0.027) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alike, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_inferencex, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

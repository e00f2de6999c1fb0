/* Rows of inference: what is read, in both forms; what is compared; what is suspected; the rows
 * that the project ships. */
#include "unit.h"
#include "scalemodel/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parsed {
    sm_arena *arena;
    sm_truth truth;
    sm_status status;
    sm_error err;
} parsed;

static parsed parse(const char *text) {
    parsed p = {.arena = sm_arena_new()};
    sm_source source = {"rows", text, strlen(text)};
    p.status = sm_truth_parse(&source, p.arena, &p.truth, &p.err);
    return p;
}

static parsed parse_good(const char *text) {
    parsed p = parse(text);
    if (p.status != SM_OK) fail_msg("%d:%d: %s", p.err.line, p.err.column, p.err.sentence);
    return p;
}

static void done(parsed *p) { sm_arena_free(p->arena); }

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* ---- what is read ---- */

static const char as_json[] =
    "{\"id\":\"x1\",\"source\":\"InferenceX\",\"model\":{\"name\":\"DeepSeek-R1\",\"layers\":61,"
    "\"d_model\":7168,\"heads\":128,\"kv_heads\":null,\"d_head\":null,\"d_ff\":18432,"
    "\"vocab\":129280,\"gated_mlp\":true,\"moe\":{\"experts\":256,\"top_k\":8,"
    "\"d_ff_expert\":2048,\"shared_experts\":1,\"first_dense_layers\":3},\"mla\":{"
    "\"q_lora\":1536,\"kv_lora\":512,\"rope_dim\":64,\"nope_dim\":128,\"v_dim\":128}},"
    "\"chip\":\"b200_sxm\",\"chips\":16,\"parallel\":{\"tp\":1,\"pp\":1,\"ep\":8,\"dp\":8},"
    "\"weight_dtype\":\"nvfp4\",\"kv_dtype\":null,\"compute_dtype\":null,\"batch\":null,"
    "\"concurrency\":64,\"input_len\":1024,\"output_len\":8192,\"phase\":\"e2e\",\"measured\":{"
    "\"ttft_ms\":500.5,\"tpot_ms\":20,\"tokens_per_s\":3000,\"tokens_per_s_per_chip\":187.5,"
    "\"mfu\":null,\"latency_ms\":150000},\"tokens_counted\":\"output\",\"framework\":\"trt 1.0\","
    "\"spec_decode\":\"none\",\"reliability\":\"B\",\"notes\":\"\","
    "\"len_sampling\":\"uniform[0.8L,L]\",\"disagg\":true,\"date\":null,\"little_ratio\":0.98,"
    "\"disagg_layout\":{\"prefill\":{\"workers\":1,\"tp\":8,\"ep\":1,\"dp_attention\":false,"
    "\"gpus\":8},\"decode\":{\"workers\":1,\"tp\":8,\"ep\":8,\"dp_attention\":true,\"gpus\":8}}}\n";

static const char as_csv[] =
    "source,id,model.name,model.layers,model.d_model,model.heads,model.kv_heads,model.d_ff,"
    "model.vocab,model.gated_mlp,model.moe.experts,model.moe.top_k,model.moe.d_ff_expert,"
    "model.moe.shared_experts,model.moe.first_dense_layers,model.mla.q_lora,model.mla.kv_lora,"
    "model.mla.rope_dim,model.mla.nope_dim,model.mla.v_dim,chip,chips,parallel.tp,parallel.pp,"
    "parallel.ep,parallel.dp,weight_dtype,concurrency,input_len,output_len,phase,"
    "measured.ttft_ms,measured.tpot_ms,measured.tokens_per_s,measured.tokens_per_s_per_chip,"
    "measured.latency_ms,tokens_counted,framework,spec_decode,reliability,len_sampling,disagg,"
    "little_ratio,disagg_layout.prefill.workers,disagg_layout.prefill.tp,"
    "disagg_layout.prefill.ep,disagg_layout.prefill.dp_attention,disagg_layout.prefill.gpus,"
    "disagg_layout.decode.workers,disagg_layout.decode.tp,disagg_layout.decode.ep,"
    "disagg_layout.decode.dp_attention,disagg_layout.decode.gpus\n"
    "InferenceX,x1,DeepSeek-R1,61,7168,128,,18432,129280,true,256,8,2048,1,3,1536,512,64,128,128,"
    "b200_sxm,16,1,1,8,8,nvfp4,64,1024,8192,e2e,500.5,20,3000,187.5,150000,output,trt 1.0,none,B,"
    "\"uniform[0.8L,L]\",true,0.98,1,8,1,false,8,1,8,8,true,8\n";

static void check_model(const sm_inference_row *r) {
    assert_string_equal(r->model.name, "DeepSeek-R1");
    assert_int_equal(r->model.layers, 61);
    assert_int_equal(r->model.heads, 128);
    assert_int_equal(r->model.kv_heads, 0);
    assert_int_equal(r->model.gated_mlp, SM_YES);
    assert_int_equal(r->model.parallel_block, SM_UNSTATED);
    assert_int_equal(r->model.experts, 256);
    assert_int_equal(r->model.first_dense_layers, 3);
    assert_int_equal(r->model.kv_lora, 512);
    assert_int_equal(r->model.v_dim, 128);
}

static void check_row(const sm_truth_row *row) {
    const sm_inference_row *r = &row->of.inference;
    assert_string_equal(row->id, "x1");
    assert_string_equal(row->source, "InferenceX");
    check_model(r);
    assert_int_equal(r->ep, 8);
    assert_string_equal(r->weight_dtype, "nvfp4");
    assert_string_equal(r->kv_dtype, "");
    assert_true(isnan(r->batch));
    assert_near(r->concurrency, 64);
    assert_near(r->ttft_s, 0.5005);
    assert_near(r->latency_s, 150);
    assert_int_equal(r->disagg, SM_YES);
    assert_int_equal(r->prefill.tp, 8);
    assert_int_equal(r->prefill.dp_attention, SM_NO);
    assert_int_equal(r->decode.dp_attention, SM_YES);
    assert_string_equal(r->len_sampling, "uniform[0.8L,L]");
    assert_near(row->measured_s, 0.020);
}

static void both_forms_are_one(void **state) {
    const char *const texts[] = {as_json, as_csv};
    for (int i = 0; i < 2; i++) {
        parsed p = parse_good(texts[i]);
        assert_int_equal(p.truth.kind, SM_TRUTH_INFERENCE);
        assert_int_equal(p.truth.n, 1);
        assert_int_equal(p.truth.warnings, 0);
        check_row(p.truth.row);
        done(&p);
    }
}

static void sections_are_objects(void **state) {
    static const char *const sections[] = {"model", "parallel", "measured", "disagg_layout"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        char text[200], sentence[100];
        snprintf(text, sizeof text, "{\"input_len\":1,\"output_len\":1,\"%s\":3}", sections[i]);
        parsed p = parse(text);
        assert_int_equal(p.status, SM_BAD_INPUT);
        snprintf(sentence, sizeof sentence, "%s: expected an object {...}", sections[i]);
        assert_string_equal(p.err.sentence, sentence);
        done(&p);
    }
}

/* ---- what is compared ---- */

#define HEAD                                                                                       \
    "chip,chips,input_len,output_len,measured.tpot_ms,measured.tokens_per_s,"                      \
    "measured.tokens_per_s_per_chip,measured.latency_ms,measured.ttft_ms,concurrency\n"

static void first_stated_is_compared(void **state) {
    parsed p = parse_good(HEAD "h100_sxm,4,9,9,12.5,100,25,9000,800,2\n"
                               "h100_sxm,4,9,9,,100,25,9000,800,2\n"
                               "h100_sxm,4,9,9,,,25,9000,800,2\n"
                               "h100_sxm,4,9,9,,,,9000,800,2\n"
                               "h100_sxm,4,9,9,,,,,800,2\n"
                               "h100_sxm,4,9,9,,,,,,2\n"
                               "h100_sxm,4,9,9,12.5,100,25,9000,800,\n");
    /* the last: all requests are there at once, so throughput first */
    static const sm_served primary[] = {SM_SERVED_TPOT,    SM_SERVED_TOKEN, SM_SERVED_TOKEN,
                                        SM_SERVED_LATENCY, SM_SERVED_TTFT,  SM_SERVED_COUNT,
                                        SM_SERVED_TOKEN};
    static const double seconds[] = {0.0125, 0.01, 0.01, 9, 0.8, NAN, 0.01};
    assert_int_equal(p.truth.n, 7);
    for (size_t i = 0; i < 7; i++) {
        const sm_truth_row *r = &p.truth.row[i];
        assert_int_equal(sm_inference_primary(&r->of.inference), primary[i]);
        if (!isnan(seconds[i])) assert_near(r->measured_s, seconds[i]);
        else assert_true(isnan(r->measured_s));
    }
    done(&p);
}

static void quantities_have_names_and_regimes(void **state) {
    assert_string_equal(sm_served_name(SM_SERVED_TPOT), "tpot_s");
    assert_string_equal(sm_served_name(SM_SERVED_TOKEN), "token_s");
    assert_string_equal(sm_served_name(SM_SERVED_LATENCY), "latency_s");
    assert_string_equal(sm_served_name(SM_SERVED_TTFT), "ttft_s");
    assert_string_equal(sm_served_name(SM_SERVED_COUNT), "?");
    assert_int_equal(sm_served_regime(SM_SERVED_TPOT), SM_REGIME_decode);
    assert_int_equal(sm_served_regime(SM_SERVED_TOKEN), SM_REGIME_throughput);
    assert_int_equal(sm_served_regime(SM_SERVED_TTFT), SM_REGIME_prefill);
}

/* ---- what is refused ---- */

static void refuses(const char *row, const char *sentence) {
    char text[400];
    snprintf(text, sizeof text, HEAD "%s\n", row);
    parsed p = parse(text);
    assert_int_equal(p.status, SM_BAD_INPUT);
    assert_string_equal(p.err.sentence, sentence);
    assert_int_equal(p.err.line, 2);
    done(&p);
}

static void refuses_values(void **state) {
    refuses("h100,4,0,9,,,,,,", "input_len: expected a number above 0, found \"0\"");
    refuses("h100,4,9,x,,,,,,", "output_len: expected a number, found \"x\"");
    refuses("h100,4.5,9,9,,,,,,", "chips: expected a whole number, found \"4.5\"");
    refuses("h100,4,9,9,-1,,,,,",
            "measured.tpot_ms: expected a number of at least 0, found \"-1\"");
    refuses("h100,4,9,9,,nan,,,,", "measured.tokens_per_s: expected a number, found \"nan\"");
}

/* ---- what is suspected ---- */

#define MODEL                                                                                      \
    "chip,chips,input_len,output_len,measured.tpot_ms,measured.tokens_per_s,"                      \
    "measured.tokens_per_s_per_chip,measured.latency_ms,parallel.tp,parallel.pp,model.layers,"     \
    "model.d_model,model.heads,model.kv_heads,model.d_head,model.d_ff\n"
#define LLAMA_70B "80,8192,64,8,128,28672\n"

static void warns(const char *row, const char *text) {
    char file[800];
    snprintf(file, sizeof file, MODEL "%s" LLAMA_70B, row);
    parsed p = parse_good(file);
    if (!text && p.truth.warnings) fail_msg("%s", p.truth.warning[0].text);
    if (text) {
        assert_int_equal(p.truth.warnings, 1);
        assert_string_equal(p.truth.warning[0].text, text);
    }
    done(&p);
}

static void suspects_units(void **state) {
    warns("a100_sxm_80gb,8,512,128,25,,,,8,1,", NULL);
    warns("a100_sxm_80gb,8,512,128,0.025,,,,8,1,",
          "tpot_ms says 25 us a token, but a100-80 needs 2.1 ms at its datasheet's rates; is it in "
          "seconds?");
    warns("a100_sxm_80gb,8,512,128,25000,,,,8,1,",
          "tpot_ms says 25 s a token, 11915 times what a100-80 needs; is it in microseconds?");
    warns("a100_sxm_80gb,8,512,128,,2000000,,,8,1,",
          "tokens_per_s says 500 ns a token, but a100-80 needs 13.7 us at its datasheet's rates; "
          "does it count the input?");
}

static void suspects_contradictions(void **state) {
    warns("a100_sxm_80gb,8,512,128,,900,112.5,,8,1,", NULL);
    warns("a100_sxm_80gb,8,512,128,,900,900,,8,1,",
          "tokens_per_s says 900, but tokens_per_s_per_chip gives 7200");
    warns("a100_sxm_80gb,8,512,128,,,,,16,2,", "tp 16 x pp 2 is 32, but there are 8 chips");
    warns("trainium1,8,512,128,,,,,16,1,", NULL); /* two cores a chip */
    warns("a100_sxm_80gb,8,512,1000,50,,,20000,8,1,",
          "latency_ms says 20 s, but tpot_ms over the output gives 50 s");
}

/* ---- the rows of the project ---- */

static void shipped_rows_are_whole(void **state) {
    parsed p = {.arena = sm_arena_new()};
    p.status = sm_truth_read("data/truth/inference.csv", p.arena, &p.truth, &p.err);
    if (p.status != SM_OK) fail_msg("%d: %s", p.err.line, p.err.sentence);
    assert_int_equal(p.truth.kind, SM_TRUTH_INFERENCE);
    assert_int_equal(p.truth.n, 3009);
    size_t primary[SM_SERVED_COUNT] = {0}, known = 0;
    for (size_t i = 0; i < p.truth.n; i++) {
        const sm_truth_row *r = &p.truth.row[i];
        known += sm_truth_chip(r->chip) != NULL;
        assert_true(r->source[0] && r->of.inference.chips > 0 && r->measured_s > 0);
        primary[sm_inference_primary(&r->of.inference)]++;
    }
    assert_true(known >= 2716);
    assert_int_equal(primary[SM_SERVED_TPOT], 1510);
    assert_int_equal(primary[SM_SERVED_TOKEN], 1162);
    assert_int_equal(primary[SM_SERVED_LATENCY] + primary[SM_SERVED_TTFT], 337);
    assert_int_equal(p.truth.warnings, 0);
    done(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_are_one),
        cmocka_unit_test(sections_are_objects),
        cmocka_unit_test(first_stated_is_compared),
        cmocka_unit_test(quantities_have_names_and_regimes),
        cmocka_unit_test(refuses_values),
        cmocka_unit_test(suspects_units),
        cmocka_unit_test(suspects_contradictions),
        cmocka_unit_test(shipped_rows_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

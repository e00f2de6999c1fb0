/* Quantised checkpoints: bytes computed by hand from what the libraries write, published sizes, and
 * names of modules in lists. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "model_of.h"
#include "stored.h"

/* Two layers of width 256, 4 heads of 64, MLP 512, vocabulary 1000: in each layer 4 matrices of 256
 * x 256, 3 of 256 x 512; 5 norms of 256. */
#define SMALL                                                                                      \
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_hidden_layers\": 2, "                 \
    "\"num_attention_heads\": 4, \"intermediate_size\": 512, \"vocab_size\": 1000}"
enum { SQUARE = 256 * 256, WIDE = 256 * 512, TABLE = 256 * 1000, NORMS = 5 * 256 };
static const double linear = 2.0 * (4 * SQUARE + 3 * WIDE);
static const double left = 2.0 * (2 * TABLE + NORMS); /* both tables and the norms in 16 bits */

static sm_model with(const char *config) {
    return model_with("small", SMALL,
                      sm_arena_printf(models_arena(), "\"quantization_config\": %s", config));
}

static void takes(const char *config, double bytes) {
    sm_model m = with(config);
    if (m.stored.bytes != bytes) fail_msg("%s: %.1f, not %.1f", config, m.stored.bytes, bytes);
    assert_true(m.stored.quantised);
}

static void without_quantisation_the_dtype_says(void **state) {
    sm_model m = model_of("small", SMALL);
    double params = sm_model_params(&m).total;
    assert_true(m.stored.bytes == 2 * params && !m.stored.quantised && m.stored.type == SM_BF16);
    m = model_with("small", SMALL, "\"torch_dtype\": \"float32\"");
    assert_true(m.stored.bytes == 4 * params && m.stored.type == SM_FP32);
    assert_true(m.kind[0].other_bytes == 4);
    m = model_with("small", SMALL, "\"dtype\": \"float16\", \"quantization_config\": null");
    assert_true(m.stored.bytes == 2 * params && m.stored.type == SM_FP16);
    m = with("{\"quant_method\": \"hqq\"}");
    assert_true(m.stored.bytes == 2 * params && !m.stored.quantised);
    assert_string_equal(m.stored.method, "hqq");
}

/* DeepSeek's blocks of 128 x 128 with a scale of 4 bytes; one scale a matrix; modules left alone.
 */
static void fp8(void **state) {
    double blocks = 2.0 * (4 * 4 + 3 * 8);
    takes("{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}",
          linear + 4 * blocks + left);
    takes("{\"quant_method\": \"fp8\", \"weight_block_size\": [96, 100]}",
          linear + 4 * 2.0 * (4 * 9 + 2 * 6 * 3 + 3 * 6) + left); /* blocks that are cut count */
    takes("{\"quant_method\": \"fp8\", \"weight_block_size\": null, "
          "\"activation_scheme\": \"static\"}",
          linear + 14 * 8 + left);
    takes("{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128], "
          "\"modules_to_not_convert\": [\"lm_head\", \"model.layers.1.self_attn\", "
          "\"model.layers.0.mlp.down_proj\"]}",
          linear + 4 * blocks + left + (4.0 * SQUARE + WIDE) - 4.0 * (4 * 4 + 8));
    takes("{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128], "
          "\"modules_to_not_convert\": [\"gate\"]}", /* which names no head */
          linear + 4 * blocks + left - TABLE + 4 * 8 * 2);
    takes("{\"quant_method\": \"fbgemm_fp8\"}", linear + 4 * 2 * (4 * 256 + 2 * 512 + 256) + left);
}

/* Four bits, and for each group of 128 inputs a scale of 2 bytes and 4 bits of zero point. */
static void groups_of_inputs(void **state) {
    double groups = linear / 128;
    takes("{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128, \"zero_point\": true}",
          linear / 2 + groups * 2.5 + left);
    takes("{\"quant_method\": \"awq\", \"w_bit\": 4, \"q_group_size\": 64}",
          linear / 2 + 2 * groups * 2.5 + left);
    double inputs = 2.0 * (6 * 256 + 512), rows = 2.0 * (4 * 256 + 2 * 512 + 256);
    takes("{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 128}",
          linear / 2 + groups * 2.5 + 4 * inputs + left);
    takes("{\"quant_method\": \"gptq\", \"bits\": 8, \"group_size\": -1}",
          linear + 3 * rows + 4 * inputs + left);
    takes("{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}",
          linear / 2 + 4 * linear / 64 + 14 * 64 + left);
    takes("{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, "
          "\"bnb_4bit_use_double_quant\": true}",
          linear / 2 + (1 + 4.0 / 256) * linear / 64 + 14 * (64 + 1024) + left);
    takes("{\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true}",
          linear + 4 * 2 * (4 * 256 + 2 * 512 + 256) + left);
}

#define GROUP(weights, more)                                                                       \
    "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"targets\": "   \
    "[\"Linear\"], \"weights\": {" weights "}" more "}}, \"ignore\": [\"lm_head\"]"

static void compressed_tensors(void **state) {
    double rows = 2.0 * (4 * 256 + 2 * 512 + 256), groups = linear / 128;
    takes(GROUP("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"channel\"", "") "}",
          linear + 2 * rows + left);
    takes(GROUP("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\"",
                ", \"input_activations\": {\"dynamic\": false}") "}",
          linear + 14 * (2 + 2) + left);
    takes(GROUP("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"block\", "
                "\"block_structure\": [128, 128], \"scale_dtype\": \"torch.float32\"",
                "") "}",
          linear + 4 * 2.0 * (4 * 4 + 3 * 8) + left);
    takes(GROUP("\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", "
                "\"group_size\": 128, \"symmetric\": false, \"actorder\": \"group\"",
                ", \"format\": \"pack-quantized\"") "}",
          linear / 2 + groups * 2.5 + 4 * 2.0 * (6 * 256 + 512) + 14 * 16 + left);
    takes(GROUP("\"num_bits\": 4, \"type\": \"float\", \"strategy\": \"group\", "
                "\"group_size\": 32, \"scale_dtype\": \"torch.uint8\"",
                "") "}",
          linear / 2 + linear / 32 + left);
    /* without the list the head is a matrix as the others are */
    takes("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"targets\": "
          "[\"Linear\"], \"weights\": {\"num_bits\": 8, \"strategy\": \"channel\"}}}}",
          linear + 2 * rows + left - TABLE + 2 * 1000);
    /* one group names what it is for, the other takes the rest */
    takes("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {"
          "\"a\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4, \"type\": \"int\", "
          "\"strategy\": \"channel\"}}, \"b\": {\"targets\": [\"re:.*self_attn.*\"], "
          "\"weights\": {\"num_bits\": 8, \"strategy\": \"channel\"}}}, "
          "\"ignore\": [\"re:.*lm_head$\"]}",
          linear - 2.0 * 3 * WIDE / 2 + 2 * rows + left);
}

static void modelopt_and_quark(void **state) {
    takes("{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"ignore\": [\"lm_head\"]}",
          linear / 2 + linear / 16 + 14 * 8 + left);
    takes("{\"quantization\": {\"quant_algo\": \"FP8\", \"exclude_modules\": [\"lm_head\"]}}",
          linear + 14 * 8 + left);
    takes("{\"quant_method\": \"modelopt\", \"config_groups\": {\"group_0\": {\"targets\": "
          "[\"Linear\"], \"weights\": {\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16}, "
          "\"input_activations\": {\"dynamic\": false}}}, \"ignore\": [\"lm_head\", "
          "\"model.layers.0*\"]}",
          linear / 4 + linear / 32 + 7 * 8 + linear + left);
    takes("{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\", "
          "\"quantized_layers\": {\"model.layers.0.mlp\": {\"quant_algo\": \"W4A16_AWQ\", "
          "\"group_size\": 64}, \"model.layers.1.self_attn.q_proj\": {\"quant_algo\": \"FP8\"}}}",
          2 * linear - 2.0 * (3 * WIDE + SQUARE) + 3 * WIDE * (0.5 + 2.0 / 64) +
              2.0 * (256 + 256 + 512) + SQUARE + 8 + left);
    takes("{\"quant_method\": \"quark\", \"global_quant_config\": {\"weight\": {\"dtype\": "
          "\"fp8_e4m3\", \"qscheme\": \"per_tensor\"}}, \"exclude\": [\"lm_head\"]}",
          linear + 14 * 4 + left);
    takes("{\"quant_method\": \"quark\", \"global_quant_config\": {\"weight\": {\"dtype\": "
          "\"fp4\", \"qscheme\": \"per_group\", \"group_size\": 32, \"scale_format\": \"e8m0\"}}, "
          "\"layer_quant_config\": {\"*self_attn*\": {\"weight\": {\"dtype\": \"int8\", "
          "\"qscheme\": \"per_channel\"}}}, \"exclude\": [\"lm_head\"]}",
          2.0 * (3 * WIDE * (0.5 + 1.0 / 32) + 4 * (SQUARE + 2 * 256)) + left);
}

/* The bytes that the index of the published checkpoint gives as its total_size. */
static void published_sizes(void **state) {
    assert_true(catalogue_with("gpt-oss-20b", "").stored.bytes == 13761264768);
    assert_true(catalogue_with("gpt-oss-120b", "").stored.bytes == 65248815744);
    sm_model m = catalogue_with("gpt-oss-120b", "");
    assert_true(m.stored.type == SM_MXFP4 && m.stored.head == 2);
    assert_true(m.kind[0].expert_bytes == 4.25 / 8 && m.kind[0].other_bytes == 2);
    /* meta-llama/Llama-3.1-8B in AWQ of four bits and groups of 128: files of 5.73 GB */
    m = catalogue_with("llama-3.1-8b", "\"quantization_config\": {\"quant_method\": \"awq\", "
                                       "\"bits\": 4, \"group_size\": 128}");
    double matrices = 32.0 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336.0 * 4096);
    assert_true(m.stored.bytes == matrices * (0.5 + 2.5 / 128) + 2 * (2 * 128256.0 + 65) * 4096);
}

/* DeepSeek-V3: fp8 but for embedding, head, router and norms, a scale for each 128 x 128. */
static void deepseek_v3(void **state) {
    sm_model m = catalogue_with("deepseek-v3", "");
    double D = 7168, attention = 0, scales = 0;
    const double shapes[][2] = {{1536, D}, {24576, 1536}, {576, D}, {32768, 512}, {D, 16384}};
    for (size_t i = 0; i < 5; i++) {
        attention += shapes[i][0] * shapes[i][1];
        scales += ceil(shapes[i][0] / 128) * ceil(shapes[i][1] / 128);
    }
    double expert = 3 * 2048 * D, expert_scales = expert / 16384;
    double fp8 = 61 * attention + 3 * 3 * 18432 * D + 58 * 257 * expert;
    double all = 61 * scales + 3 * 3 * 18432 * D / 16384 + 58 * 257 * expert_scales;
    double total = sm_model_params(&m).total;
    double choosing = 58 * 256; /* biases of the choice, in fp32 */
    assert_true(m.stored.bytes == fp8 + 4 * all + 2 * (total - fp8 + choosing));
    assert_true(m.stored.type == SM_FP8);
    /* With the layer that predicts, and copies of embedding and head, what the hub counts in the
     * files: F8_E4M3 680571043840, BF16 3918786560, F32 41555600. */
    double predicting = attention + 257 * expert, norms = 5 * D + 1536 + 512;
    double again = 2 * (129280 * D + D * D) + 256 * D + norms;
    assert_true(fp8 + predicting == 680571043840);
    assert_true(total - choosing - fp8 + again == 3918786560);
    assert_true(all + scales + 257 * expert_scales + choosing + 256 == 41555600);
}

/* DeepSeek-V4: routed experts in four bits with a byte for each 32; the model whose experts are of
 * eight bits is another checkpoint. */
static void deepseek_v4(void **state) {
    sm_model m = catalogue_with("deepseek-v4-pro", "");
    assert_true(m.stored.type == SM_MXFP4 && m.kind[0].expert_bytes == 4.25 / 8);
    assert_true(m.kind[0].other_bytes > 1 && m.kind[0].other_bytes < 1.1);
    double routed = 61 * 384.0 * 3 * 3072 * 7168, total = sm_model_params(&m).total;
    assert_true(m.stored.bytes > routed * 4.25 / 8 + (total - routed) &&
                m.stored.bytes < routed * 4.25 / 8 + 1.2 * (total - routed));
    m = catalogue_with("deepseek-v4-pro", "\"expert_dtype\": \"fp8\"");
    assert_true(m.stored.type == SM_FP8 && m.kind[0].expert_bytes == 1 + 4.0 / 16384);
    /* 159609485896 bytes by the index of the published checkpoint, without the layer that predicts:
     * its matrices in fp8 (two that join words and states beside), their scales, experts in four
     * bits, router and norms in 16, hyper-connections, sinks and the bias of the choice in 32. */
    const double D = 4096, wide = D * 256 + 4 * D + 1024 + 512 + D;
    const double fp8 =
        D * 1024 + 1024 * 32768. + D * 512 + 8 * 1024 * D + 8192 * D + 3 * D * 2048 + 2 * D * D;
    const double fp32 = 2 * (4 * D * 24 + 24 + 3) + 4 * D * 4 + 4 + 1 + 64 + 256;
    const double predicting =
        fp8 * (1 + 1. / 16384) + 256 * 3 * D * 2048 * 4.25 / 8 + 2 * wide + 4 * fp32;
    assert_true(catalogue_with("deepseek-v4-flash", "").stored.bytes == 159609485896 - predicting);
}

static void names_of_modules(void **state) {
    static const struct {
        pattern_syntax syntax;
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        {PATTERN_MODULES, "lm_head", "lm_head", true},
        {PATTERN_MODULES, "gate", "layers.3.mlp.gate_proj", false},
        {PATTERN_MODULES, "gate", "layers.3.mlp.gate", true},
        {PATTERN_MODULES, "model.layers.*.self_attn", "layers.12.self_attn.q_proj", true},
        {PATTERN_MODULES, "model.layers.1", "layers.12.self_attn.q_proj", false},
        {PATTERN_MODULES, "model.language_model.layers.1", "layers.1.mlp.up_proj", true},
        {PATTERN_STARS, "model.layers.0*", "layers.0.mlp.up_proj", true},
        {PATTERN_STARS, "model.layers.1.*", "layers.10.mlp.up_proj", false},
        {PATTERN_STARS, "*.mlp.shared_expert.*", "layers.1.mlp.shared_expert.up_proj", true},
        {PATTERN_STARS, "*mlp*down?proj", "layers.1.mlp.down_proj", true},
        {PATTERN_STARS, "*mlp*down", "layers.1.mlp.down_proj", false},
        {PATTERN_EXACT, "re:.*lm_head.*", "lm_head", true},
        {PATTERN_EXACT, "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.0.mlp.up_proj", true},
        {PATTERN_EXACT, "re:.*mlp\\.(gate|up)_proj.*", "layers.0.mlp.experts.0.up_proj", false},
        {PATTERN_EXACT, "re:model\\.layers\\.\\d+\\.mlp", "layers.17.mlp.up_proj", true},
        {PATTERN_EXACT, "re:^model.layers.[0-2]$", "layers.1.mlp.up_proj", false},
        {PATTERN_EXACT, "re:layers.[^0].self_?attn", "layers.1.self_attn.q_proj", true},
        {PATTERN_EXACT, "re:a|layers.1+.mlp", "layers.11.mlp.up_proj", true},
        {PATTERN_EXACT, "re:(", "layers.1", false},
        {PATTERN_EXACT, "re:[", "layers.1", false},
        {PATTERN_EXACT, "re:layers\\.(1|2)+\\.(?:mlp|self_attn)", "layers.12.mlp", true},
        {PATTERN_EXACT, "re:layers\\.\\w*?_proj$", "layers.up_proj", true},
        {PATTERN_EXACT, "re:layers.(?!2)", "layers.1", false},
        {PATTERN_EXACT, "re:(a)\\1", "aa", false},
        {PATTERN_EXACT, "re:a{2}", "aa", false},
        {PATTERN_EXACT, "layers.*", "layers.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long steps = 1000;
        if (pattern_matches(rows[i].syntax, rows[i].pattern, rows[i].name, &steps) !=
            rows[i].matches)
            fail_msg("%s in %s", rows[i].pattern, rows[i].name);
    }
    long steps = 200; /* a list that would take ages is given up */
    assert_false(
        pattern_matches(PATTERN_EXACT, "re:.*.*.*.*.*.*.*.*.*x", "layers.1.self_attn.q", &steps));
    assert_true(pattern_matches(PATTERN_EXACT, "re:.*", "layers.1", &steps));
    assert_true(pattern_matches(PATTERN_EXACT, "re:.*", "layers.1", &steps));
    assert_false(pattern_matches(PATTERN_EXACT, "re:.*", "layers.1", &steps));
}

static void refuse(const char *config, const char *sentence) {
    sm_model m;
    sm_error err = {0};
    char *text = sm_arena_printf(models_arena(), "%.*s, \"quantization_config\": %s}",
                                 (int)strlen(SMALL) - 1, SMALL, config);
    sm_source source = sm_source_of("config.json", text);
    assert_int_equal(sm_model_parse(NULL, NULL, &source, models_arena(), &m, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    assert_true(err.line == 1 && err.column > (int)strlen(SMALL) && err.span >= 1);
}

static void what_is_no_such_value_is_refused(void **state) {
    refuse("4", "expected an object with \"quant_method\", found a number");
    refuse("{\"quant_method\": \"awq\", \"bits\": \"four\"}",
           "bits must be a whole number from 1 to 16");
    refuse("{\"quant_method\": \"gptq\", \"group_size\": 0}",
           "group_size must be a whole number from 1 to 16777216");
    refuse("{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [1]}",
           "modules_to_not_convert must be a list of texts");
    refuse("{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP5\"}",
           "a quant_algo that is not understood; the nearest known one is NVFP4");
    refuse("{\"quant_method\": \"fp8\", \"expert_dtype\": \"fp6\"}",
           "an expert_dtype that is not understood; fp4 or fp8");
    refuse("{\"quant_method\": \"modelopt\"}", "quant_algo is missing");
    refuse("{\"quant_method\": \"compressed-tensors\", \"config_groups\": []}",
           "expected an object of groups, found a list");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_quantisation_the_dtype_says),
        cmocka_unit_test(fp8),
        cmocka_unit_test(groups_of_inputs),
        cmocka_unit_test(compressed_tensors),
        cmocka_unit_test(modelopt_and_quark),
        cmocka_unit_test(published_sizes),
        cmocka_unit_test(deepseek_v3),
        cmocka_unit_test(deepseek_v4),
        cmocka_unit_test(names_of_modules),
        cmocka_unit_test(what_is_no_such_value_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

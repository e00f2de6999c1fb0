/* Hugging Face configs: what every family understands, what it refuses and in which words. The
 * totals of small configs were counted on the modules that transformers 5.23 builds from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalogue.h"
#include "failing_alloc.h"
#include "sanitized.h"
#include "hf_counted.h"
#include "scalemodel/io.h"

/* JSON written plainly in C. */
#define JSON(...) #__VA_ARGS__

/* The model is good until the next one is read. */
static sm_status parse_source(sm_source source, sm_model *m, sm_error *err) {
    static sm_arena *arena;
    sm_arena_free(arena);
    arena = sm_arena_new();
    memset(err, 0, sizeof *err);
    if (!arena) return sm_fail_memory(err);
    return sm_model_parse(NULL, NULL, &source, arena, m, err);
}

static sm_status parse_text(const char *text, sm_model *m, sm_error *err) {
    return parse_source(sm_source_of("config.json", text), m, err);
}

static sm_model read_good(const char *text) { return model_of("config.json", text); }

static double total(const char *text) {
    sm_model m = read_good(text);
    return sm_model_params(&m).total;
}

static const char *last_place(const char *text, const char *piece) {
    const char *at = NULL;
    for (const char *p = strstr(text, piece); p; p = strstr(p + 1, piece)) at = p;
    return at;
}

/* The text is refused with this sentence, underlining the last such piece of it. */
static void refuse(const char *text, const char *piece, const char *sentence) {
    static sm_model m;
    sm_error err;
    assert_int_equal(parse_text(text, &m, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    const char *at = last_place(text, piece);
    assert_non_null(at);
    assert_int_equal(err.line, 1);
    assert_int_equal(err.column, 1 + (int)(at - text));
    assert_int_equal(err.span, piece[0] == '{' ? 1 : (int)strlen(piece)); /* objects: the brace */
    assert_string_equal(err.source, "config.json");
}

/* ---- a small LLaMA with further fields spliced in ---- */

#define LLAMA(more)                                                                                \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 4, \"intermediate_size\": 96, \"vocab_size\": 100" more "}"

static double llama_layer(double q, double kv) {
    return 2 * 64 * (q + kv) + 3.0 * 64 * 96 + 2 * 64;
}

static void llama_defaults(void **state) {
    (void)state;
    sm_model m = read_good(LLAMA(""));
    assert_int_equal(m.kind[0].K, 4);
    assert_int_equal(m.kind[0].H, 16);
    assert_int_equal(m.kinds, 1);
    assert_false(m.tied);
    assert_true(m.causal);
    assert_string_equal(m.family, "llama");
    assert_string_equal(m.name, "config");
    assert_string_equal(m.note, "");
    assert_true(sm_model_params(&m).total == 2 * llama_layer(64, 64) + 64 + 2 * 6400);
}

static void llama_fields_change_the_count(void **state) {
    (void)state;
    double base = total(LLAMA(""));
    assert_true(total(LLAMA(", \"tie_word_embeddings\": true")) == base - 6400);
    assert_true(total(LLAMA(", \"num_key_value_heads\": 2")) == base - 2 * 2 * 64 * 32);
    assert_true(total(LLAMA(", \"head_dim\": 32")) == base + 2 * 4 * 64 * 64);
    assert_true(total(LLAMA(", \"attention_bias\": true")) == base + 2 * 4 * 64);
    assert_true(total(LLAMA(", \"mlp_bias\": true")) == base + 2 * (2 * 96 + 64));
    assert_true(total(LLAMA(", \"head_dim\": null")) == base);
    assert_true(total(LLAMA(", \"hidden_act\": \"gelu\"")) == base); /* still gated */
}

static void harmless_fields_are_passed_over(void **state) {
    (void)state;
    static const char *const more[] = {
        ", \"rope_theta\": 500000.0",
        ", \"rope_scaling\": {\"factor\": 8.0, \"type\": \"linear\"}",
        ", \"torch_dtype\": \"bfloat16\"",
        ", \"bos_token_id\": [1, 2]",
        ", \"use_cache\": true",
        ", \"initializer_range\": 0.02",
        ", \"pretraining_tp\": 2",
        ", \"attention_dropout\": 0.1",
        ", \"_name_or_path\": \"x\"",
        ", \"transformers_version\": \"4.43.0\"",
        ", \"rms_norm_eps\": 1e-05",
        ", \"auto_map\": {\"AutoModel\": \"m.M\"}",
        ", \"a_new_flag\": true",
        ", \"num_experts\": null",
        ", \"num_experts\": 0",
        ", \"use_moe\": false",
        ", \"moe_layers\": []",
        ", \"pruned_heads\": {}",
        ", \"is_encoder_decoder\": false",
        ", \"max_sequence_length\": 2048",
        ", \"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}",
    };
    double base = total(LLAMA(""));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s%s}", (int)(strlen(LLAMA("")) - 1), LLAMA(""), more[i]);
        assert_true(total(text) == base);
    }
}

static void weighty_fields_are_not_passed_over(void **state) {
    (void)state;
    static const char *const keys[] = {
        "num_experts",      "use_moe",
        "mamba_d_state",    "ssm_cfg",
        "conv_kernel",      "lora_rank",
        "n_routed_experts", "moe_intermediate_size",
        "sliding_window",   "layer_types",
        "num_mtp_layers",   "cross_attention_layers",
        "kv_lora_rank",     "qk_layernorm",
        "expansion_ratio",  "embedding_size",
        "num_loops",        "adapter_dim",
        "head_size",        "mlp_multiplier",
        "d_conv",           "ffn_dim_multiplier",
        "share_layers",     "n_embd",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[1024], piece[64], start[160];
        sm_model m;
        sm_error err;
        snprintf(piece, sizeof piece, "\"%s\"", keys[i]);
        snprintf(text, sizeof text, "%.*s, %s: 8}", (int)(strlen(LLAMA("")) - 1), LLAMA(""), piece);
        assert_int_equal(parse_text(text, &m, &err), SM_BAD_INPUT);
        snprintf(start, sizeof start,
                 "%s may change the size or the work of a llama model and is not understood",
                 keys[i]);
        if (strncmp(err.sentence, start, strlen(start)) != 0) fail_msg("%s", err.sentence);
        assert_int_equal(err.column, 1 + (int)(strstr(text, piece) - text));
        assert_int_equal(err.span, (int)strlen(piece));
    }
}

static void a_typing_error_gets_its_neighbour(void **state) {
    (void)state;
    refuse(LLAMA(", \"num_key_value_head\": 2"), "\"num_key_value_head\"",
           "num_key_value_head may change the size or the work of a llama model and is not "
           "understood; the nearest known field is num_key_value_heads");
}

/* ---- wrong values, each with its place ---- */

static void sizes_have_bounds(void **state) {
    (void)state;
    assert_true(total(LLAMA(", \"head_dim\": 16.0")) == total(LLAMA("")));
}

/* The span of what is missing is the brace of the object that lacks it. */
static void what_is_missing_is_named(void **state) {
    (void)state;
    sm_model m;
    sm_error err;
    assert_int_equal(parse_text("\n {\"model_type\": \"llama\", \"hidden_size\": 64}", &m, &err),
                     SM_BAD_INPUT);
    assert_string_equal(err.sentence, "num_hidden_layers is missing: a llama model has it");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 2);
    assert_int_equal(err.span, 1);
}

#define MIXTRAL(more)                                                                              \
    "{\"model_type\": \"mixtral\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "                \
    "\"num_attention_heads\": 8, \"intermediate_size\": 96, \"vocab_size\": 100, "                 \
    "\"num_local_experts\": 4" more "}"

static void values_are_checked(void **state) {
    (void)state;
    refuse(
        LLAMA(", \"head_dim\": 16.5"), "16.5",
        "H = head_dim or D / num_attention_heads would be 16.5, and a size is a whole number up to "
        "1073741824");
    refuse(
        LLAMA(", \"hidden_act\": \"swiglu\""), "\"swiglu\"",
        "\"swiglu\" is not understood as an activation; expected one such as \"silu\", \"gelu\" or "
        "\"relu2\"");
    refuse(LLAMA(", \"pruned_heads\": {\"0\": [1]}"), "\"pruned_heads\"",
           "pruned_heads may change the size or the work of a llama model and is not understood");
    refuse(MIXTRAL(", \"num_experts_per_tok\": 5"), "{",
           "a token goes to 5 experts, and a layer has 4");
}

static void model_types_are_checked(void **state) {
    (void)state;
    refuse(JSON({"model_type" : "qwen4"}), "\"qwen4\"",
           "model_type \"qwen4\" is not understood; the nearest known one is \"qwen2\"");
    refuse(JSON({"model_type" : 7}), "7", "model_type must be a text");
    refuse(JSON({"vocab_size" : 7}), "{",
           "this is not a Hugging Face model config: model_type is missing");
    refuse("[]", "[]", "a model config is a JSON object");
    refuse("7", "7", "a model config is a JSON object");
}

/* Remote code has types of its own over known architectures. */
static void architectures_stand_in_for_types(void **state) {
    (void)state;
    sm_model m = read_good(JSON({
        "architectures" : ["LlamaForCausalLM"],
        "hidden_size" : 64,
        "num_hidden_layers" : 2,
        "num_attention_heads" : 4,
        "intermediate_size" : 96,
        "vocab_size" : 100
    }));
    assert_string_equal(m.family, "llama");
    assert_string_equal(m.note, "");
    assert_true(sm_model_params(&m).total == total(LLAMA("")));
    m = read_good(JSON({
        "architectures" : ["LlamaForCausalLM"],
        "model_type" : "lama-of-mine",
        "hidden_size" : 64,
        "num_hidden_layers" : 2,
        "num_attention_heads" : 4,
        "intermediate_size" : 96,
        "vocab_size" : 100
    }));
    assert_string_equal(m.note, "model_type \"lama-of-mine\" is not known: read as a llama model, "
                                "as the rest of the config says");
}

/* A type that nobody knows around one that is known: that one is read, and it is said. */
static void a_wrapper_of_any_type_is_read_by_what_it_wraps(void **state) {
    (void)state;
    const char *wrapped[] = {JSON({
                                 "model_type" : "sees_and_hears",
                                 "architectures" : ["SeesAndHearsForConditionalGeneration"],
                                 "mystery_layers" : 7,
                                 "eye_config" : {"model_type" : "an_eye", "num_hidden_layers" : 9},
                                 "text_config" : {
                                     "model_type" : "llama",
                                     "hidden_size" : 64,
                                     "num_hidden_layers" : 2,
                                     "num_attention_heads" : 4,
                                     "intermediate_size" : 96,
                                     "vocab_size" : 100
                                 }
                             }),
                             JSON({
                                 "model_type" : "sees_and_hears",
                                 "llm_config" : {
                                     "model_type" : "llama",
                                     "hidden_size" : 64,
                                     "num_hidden_layers" : 2,
                                     "num_attention_heads" : 4,
                                     "intermediate_size" : 96,
                                     "vocab_size" : 100
                                 }
                             })};
    for (int i = 0; i < 2; i++) {
        sm_model m = read_good(wrapped[i]);
        assert_true(sm_model_params(&m).total == total(LLAMA("")));
        assert_non_null(strstr(m.note, "counts the language model alone"));
        assert_non_null(strstr(m.note, "\"sees_and_hears\" is not known: read as a llama model"));
    }
    /* what is wrapped must be known */
    refuse("{\"model_type\": \"sees_and_hears\", \"text_config\": {\"model_type\": \"a_tongue\"}}",
           "\"a_tongue\"",
           "model_type \"a_tongue\" is not understood; known are those such as \"llama\", "
           "\"qwen3_moe\" or \"gpt2\"");
}

/* Heads that do not divide the width, where the reference class rounds down. */
static void heads_of_a_rounded_width_are_said(void **state) {
    (void)state;
    sm_model m = read_good(JSON({
        "model_type" : "qwen3_moe",
        "hidden_size" : 64,
        "num_hidden_layers" : 2,
        "num_attention_heads" : 6,
        "num_key_value_heads" : 2,
        "moe_intermediate_size" : 32,
        "num_experts" : 4,
        "num_experts_per_tok" : 2,
        "intermediate_size" : 96,
        "vocab_size" : 100
    }));
    assert_true(m.kind[0].H == 10);
    assert_non_null(strstr(m.note, "rounded down"));
}

static void two_spellings_must_agree(void **state) {
    (void)state;
    assert_true(total(MIXTRAL(", \"num_experts\": 4")) == total(MIXTRAL("")));
}

/* ---- local attention ---- */

static int windowed_layers(const char *text) {
    sm_model m = read_good(text);
    int n = 0;
    for (int i = 0; i < m.L; i++)
        n += m.kind[m.layer[i]].window > 0 || m.kind[m.layer[i]].chunk > 0;
    return n;
}

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"num_hidden_layers\": 6, \"num_attention_heads\": 8, "                  \
    "\"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 100"
#define OF(type, more) "{\"model_type\": \"" type "\", " SIZES more "}"

static void windows_follow_the_family(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int windowed;
    } rows[] = {
        {OF("mistral", ""), 6},                           /* absent: 4096 */
        {OF("mistral", ", \"sliding_window\": null"), 0}, /* null: none */
        {OF("mistral", ", \"sliding_window\": 128"), 6},
        {OF("qwen2", ", \"sliding_window\": 128"), 0}, /* off by default */
        {OF("qwen2", ", \"sliding_window\": 128, \"use_sliding_window\": true, "
                     "\"max_window_layers\": 4"),
         2}, /* the layers after the first four */
        {OF("gemma2", ", \"sliding_window\": 128"), 3},
        {OF("gemma3_text", ", \"sliding_window\": 128"), 5},
        {OF("gemma3_text", ", \"sliding_window\": 128, \"sliding_window_pattern\": 3"), 4},
        {OF("gemma3_text",
            ", \"sliding_window\": 128, \"layer_types\": [\"full_attention\", "
            "\"sliding_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
            "\"full_attention\"]"),
         1},
        {OF("phi3", ", \"sliding_window\": 2047"), 6},
        {OF("olmo3", ""), 5}, /* every fourth layer is full */
        {OF("llama4_text", ", \"attention_chunk_size\": 256, \"no_rope_layers\": []"), 5},
        {OF("llama4_text", ", \"attention_chunk_size\": null"), 0},
        {OF("llama4_text", ", \"no_rope_layers\": [0, 0, 1, 0, 0, 0]"), 1},
        {OF("llama", ""), 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (windowed_layers(rows[i].text) != rows[i].windowed)
            fail_msg("%d windowed layers: %s", windowed_layers(rows[i].text), rows[i].text);
}

static void layer_lists_are_checked(void **state) {
    (void)state;
    refuse(OF("gemma2", ", \"layer_types\": 3"), "3", "layer_types must be a list of texts");
    refuse(OF("gemma2", ", \"layer_types\": [\"full_attention\", 7]"), "[\"full_attention\", 7]",
           "layer_types must be a list of texts");
    refuse(OF("gemma2", ", \"layer_types\": [\"full_attention\"]"), "[\"full_attention\"]",
           "the list has 1 entries, and the 2. is needed");
    refuse(OF("gemma2", ", \"layer_types\": [\"full_attention\", \"ful_attention\"]"),
           "\"ful_attention\"",
           "layer_types \"ful_attention\" of a layer is not understood; the nearest known one is "
           "\"full_attention\"");
    refuse(OF("gemma2", ", \"layer_types\": \"full_attention\""), "\"full_attention\"",
           "layer_types \"f\" of a layer is not understood");
    read_good(OF("gemma2", ", \"layer_types\": null"));
}

/* ---- sparse layers ---- */

static int sparse_layers(const char *text) {
    sm_model m = read_good(text);
    int n = 0;
    for (int i = 0; i < m.L; i++) n += m.kind[m.layer[i]].E > 0;
    return n;
}

#define QWEN3_MOE(more)                                                                            \
    OF("qwen3_moe", ", \"num_experts\": 8, \"num_experts_per_tok\": 2, "                           \
                    "\"moe_intermediate_size\": 32" more)
#define DEEPSEEK(more)                                                                             \
    OF("deepseek_v3", ", \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "                    \
                      "\"moe_intermediate_size\": 32, \"n_shared_experts\": 1, "                   \
                      "\"kv_lora_rank\": 16, \"q_lora_rank\": 24, \"qk_rope_head_dim\": 4, "       \
                      "\"qk_nope_head_dim\": 8, \"v_head_dim\": 8" more)

static void sparse_layers_follow_the_family(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int sparse;
    } rows[] = {
        {QWEN3_MOE(""), 6},
        {QWEN3_MOE(", \"decoder_sparse_step\": 2"), 3},
        {QWEN3_MOE(", \"mlp_only_layers\": [0, 5]"), 4},
        {DEEPSEEK(", \"first_k_dense_replace\": 2"), 4},
        {DEEPSEEK(", \"moe_layer_freq\": 2"), 1}, /* from the third on, as in the reference */
        {DEEPSEEK(", \"moe_layer_freq\": null"), 3},
        {OF("deepseek_v2", ", \"n_routed_experts\": null"), 0},
        {OF("llama4_text", ", \"num_local_experts\": 4, \"interleave_moe_layer_step\": 2"), 3},
        {OF("llama4_text", ", \"num_local_experts\": 4, \"moe_layers\": [1]"), 1},
        {OF("mixtral", ", \"num_local_experts\": 4"), 6},
        {OF("llama", ""), 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sparse_layers(rows[i].text) != rows[i].sparse)
            fail_msg("%d sparse layers: %s", sparse_layers(rows[i].text), rows[i].text);
}

/* MiniMax-M2: norms over all heads of Q and K, a correction bias of the router, experts as wide as
 * intermediate_size; of what it calls linear attention nothing is understood. */
static void minimax_m2_is_counted(void **state) {
    (void)state;
#define MINIMAX(more)                                                                              \
    OF("minimax_m2", ", \"head_dim\": 16, \"num_local_experts\": 4, "                              \
                     "\"num_experts_per_tok\": 2" more)
    double attention = 2 * 64 * 128 + 2 * 64 * 32, experts = 4 * 3.0 * 64 * 96 + 4 * 64 + 4;
    double layer = attention + (128 + 32) + experts + 2 * 64;
    assert_true(total(MINIMAX("")) == 6 * layer + 64 + 2 * 6400);
    assert_true(total(MINIMAX(", \"use_qk_norm\": false")) == total(MINIMAX("")) - 6 * (128 + 32));
    assert_true(total(MINIMAX(", \"attn_type_list\": [1, 1, 1, 1, 1, 1], \"num_mtp_modules\": 3, "
                              "\"qk_norm_type\": \"per_layer\", "
                              "\"shared_intermediate_size\": 0")) == total(MINIMAX("")));
}

/* Granite: a llama whose multipliers change no size. */
static void granite_is_a_llama(void **state) {
    (void)state;
    assert_true(total(OF("granite", "")) == total(OF("llama", "")));
}

#define MPT(more)                                                                                  \
    "{\"model_type\": \"mpt\", \"d_model\": 64, \"n_layers\": 2, \"n_heads\": 4, "                 \
    "\"vocab_size\": 100" more "}"

static void experts_are_checked(void **state) {
    (void)state;
    refuse(MIXTRAL(", \"n_routed_experts\": 8"), "\"n_routed_experts\"",
           "n_routed_experts may change the size or the work of a mixtral model and is not "
           "understood");
    refuse(OF("deepseek_v3", ", \"kv_lora_rank\": null"), "null",
           "R = kv_lora_rank is none, and mla needs it");
    refuse(OF("qwen3_moe", ", \"decoder_sparse_step\": \"1\""), "\"1\"",
           "decoder_sparse_step must be a number");
    /* as the reference has it, a step of none is a step of one */
    assert_true(total(OF("qwen3_moe", ", \"decoder_sparse_step\": null")) ==
                total(OF("qwen3_moe", ", \"decoder_sparse_step\": 1")));
    refuse(LLAMA(", \"mlp_bias\": \"yes\""), "\"yes\"", "mlp_bias must be true or false");
    refuse(LLAMA(", \"add_cross_attention\": true"), "\"add_cross_attention\"",
           "add_cross_attention may change the size or the work of a llama model and is not "
           "understood");
}

/* Members of objects that a family reads are looked at as keys are. */
static void nested_keys_are_checked(void **state) {
    (void)state;
    refuse(MPT(", \"attn_config\": {\"kv_heads\": 2}"), "\"kv_heads\"",
           "kv_heads may change the size or the work of a mpt model and is not understood; the "
           "nearest known field is kv_n_heads");
    refuse(MPT(", \"attn_config\": {\"sliding_window_size\": 7}"), "\"sliding_window_size\"",
           "sliding_window_size may change the size or the work of a mpt model and is not "
           "understood");
    read_good(MPT(", \"attn_config\": {\"kv_heads\": 0, \"clip_qkv\": 8, \"softmax_scale\": 1}"));
}

/* ---- small configs of every family, counted on the modules of transformers ---- */

static void counts_agree_with_transformers(void **state) {
    (void)state;
    enum { ROWS = sizeof hf_counted / sizeof *hf_counted };
    int wrong = 0;
    for (int i = 0; i < ROWS; i++) {
        double ours = total(hf_counted[i].config);
        if (ours == hf_counted[i].params) continue;
        print_error("%.0f, counted %.0f: %s\n", ours, hf_counted[i].params, hf_counted[i].config);
        wrong++;
    }
    assert_true(ROWS >= 100);
    assert_int_equal(wrong, 0);
}

/* MPT's own modules take expansion_ratio and no_bias; those of transformers do not. */
static void mpt_reads_its_own_fields(void **state) {
    (void)state;
    double base = 2 * (4 * 64 * 64 + 8 * 64 * 64 + 2 * 64) + 64 + 6400;
    assert_true(total(MPT("")) == base);
    assert_true(total(MPT(", \"expansion_ratio\": 2")) == base - 2 * 4 * 64 * 64);
    assert_true(total(MPT(", \"no_bias\": false")) == base + 2 * (4 * 64 + 5 * 64 + 2 * 64) + 64);
    assert_true(total(MPT(", \"attn_config\": {\"attn_type\": \"multiquery_attention\"}")) ==
                base - 2 * 2 * 64 * 48);
    assert_true(total(MPT(", \"attn_config\": {\"alibi\": false}, \"max_seq_len\": 50")) ==
                base + 50 * 64);
}

/* Layers with sizes of their own, K and V from earlier layers, and an embedding for each layer. */
static void gemma_4_overrides_layers(void **state) {
    (void)state;
#define GEMMA4(more)                                                                               \
    OF("gemma4_text", ", \"hidden_size_per_layer_input\": 0, "                                     \
                      "\"head_dim\": 8, \"sliding_window\": 4" more)
    double all_global = total(GEMMA4(", \"global_head_dim\": 16"));
    double listed = total(GEMMA4(", \"per_layer_config\": {\"05\": {\"head_dim\": 16}}"));
    assert_true(listed == all_global);
    sm_model m = read_good(GEMMA4(", \"num_kv_shared_layers\": 2, \"use_double_wide_mlp\": true, "
                                  "\"sliding_window_pattern\": 3"));
    assert_int_equal(m.kind[m.layer[3]].F, 96);
    assert_int_equal(m.kind[m.layer[4]].F, 192);
    assert_true(m.kind[m.layer[5]].cached == 0);
    assert_int_equal(m.kind[m.layer[5]].H, 512);
    assert_true(sm_model_kv_bytes_per_token(&m, SM_INT8) == 3 * 2 * 2 * 8 + 2 * 2 * 512);
}

/* ---- wrappers, notes, names ---- */

static void the_text_model_of_a_wrapper_is_read(void **state) {
    (void)state;
    static const char text[] = JSON({
        "model_type" : "gemma3_text",
        "hidden_size" : 64,
        "num_hidden_layers" : 2,
        "num_attention_heads" : 4,
        "num_key_value_heads" : 2,
        "intermediate_size" : 96,
        "vocab_size" : 100
    });
    char *wrapped = sm_arena_printf(models_arena(),
                                    "{\"model_type\": \"gemma3\", \"text_config\": "
                                    "%s, \"dtype\": \"float32\"}",
                                    text);
    sm_model m = model_of("wrapped", wrapped);
    assert_true(m.tied && m.stored.type == SM_FP32);
    assert_true(sm_model_params(&m).total == total(text));
}

static void what_is_left_out_is_noted(void **state) {
    (void)state;
    int layers = read_good(DEEPSEEK("")).L;
    double apart, model = total(DEEPSEEK(""));
    sm_model m = read_good(DEEPSEEK(", \"num_nextn_predict_layers\": 1"));
    assert_string_equal(m.note, "predicting (75.6k parameters) is counted apart");
    assert_string_equal(sm_architecture_apart(m.architecture, 0, &apart), "predicting");
    assert_null(sm_architecture_apart(m.architecture, 1, &apart));
    assert_true(sm_model_params(&m).total == model && m.L == layers);
    m = read_good(DEEPSEEK(", \"num_nextn_predict_layers\": 1, \"multi_token_prediction\": true"));
    assert_null(sm_architecture_apart(m.architecture, 0, &(double){0}));
    assert_true(sm_model_params(&m).total == model + apart && m.L == layers + 1);
    assert_true(sm_layer_params(&m, &m.kind[m.layer[layers]], false) == apart);
    m = read_good(DEEPSEEK(", \"quantization_config\": {\"quant_method\": \"fp8\"}"));
    assert_true(m.stored.quantised && m.stored.type == SM_FP8);
    m = read_good(LLAMA(", \"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}"));
    assert_true(m.stored.quantised && m.stored.type == SM_INT4);
}

static void models_are_named_after_their_files(void **state) {
    (void)state;
    static const struct {
        const char *path, *name;
    } rows[] = {
        {"a/b/llama-3.1-8b/config.json", "llama-3.1-8b"},
        {"tiny.json", "tiny"},
        {"/x/y.json", "y"},
        {"config.json", "config"},
        {"/config.json", "config"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sm_source source = sm_source_of(rows[i].path, LLAMA(""));
        sm_model m;
        sm_error err;
        assert_int_equal(parse_source(source, &m, &err), SM_OK);
        assert_string_equal(m.name, rows[i].name);
    }
}

/* ---- loading ---- */

static void unknown_names_get_their_neighbour(void **state) {
    (void)state;
    sm_model m;
    sm_error err;
    assert_int_equal(sm_io_model_load("llama-3.1-7b", NULL, &m, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "there is no model of this name in the catalogue; the "
                                      "nearest is llama-3.1-8b");
    assert_string_equal(err.source, "model");
    assert_int_equal(err.span, 12);
    assert_int_equal(sm_io_model_load("no such thing", NULL, &m, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "there is no model of this name in the catalogue; a path "
                                      "of a config.json contains '/' or ends in .json");
    assert_int_equal(sm_io_model_load("", NULL, &m, &err), SM_BAD_INPUT);
    sm_arena *arena = sm_arena_new();
    assert_int_equal(sm_io_model_load("/no/such/config.json", arena, &m, &err), SM_IO);
    sm_arena_free(arena);
}

/* data/models/NAME/config.json is what the name stands for. Few files are read under a sanitizer,
 * where damaged_texts_end_well reads all of them as texts. */
static void config_files_are_the_catalogue(void **state) {
    static const char *const begins[] = {"t5", "mt5", "umt5", "whisper", "m2m_100"};
    (void)state;
    FOR_CATALOGUE(i) {
        if (SANITIZED && i % 8) continue;
        const char *name = sm_catalogue_at(i)->name;
        char path[128];
        static sm_model file, entry;
        sm_error err;
        sm_arena *arena = sm_arena_new();
        snprintf(path, sizeof path, "data/models/%s/config.json", name);
        if (sm_io_model_load(path, arena, &file, &err) != SM_OK) fail_msg("%s", err.sentence);
        catalogue_load(name, arena, &entry);
        assert_true(sm_model_params(&file).total == sm_model_params(&entry).total);
        assert_true(sm_model_forward_flops(&file, 4096, true).total ==
                    sm_model_forward_flops(&entry, 4096, true).total);
        assert_string_equal(file.name, entry.name);
        double word; /* these are generated from, and begin with it (run generate) */
        for (size_t k = 0; k < sizeof begins / sizeof *begins; k++)
            if (strcmp(file.family, begins[k]) == 0)
                assert_true(
                    sm_architecture_number(file.architecture, "decoder_start_token_id", &word));
        sm_arena_free(arena);
    }
}

/* ---- hostile input ---- */

/* Every prefix of a good text is an error with a place, and never more. */
static void truncated_texts_are_errors(void **state) {
    (void)state;
    const char *text = sm_catalogue_find("deepseek-v3", 11)->config_json;
    static sm_model m;
    sm_error err;
    for (size_t n = 0; n < strlen(text); n++) {
        sm_source source = {"cut.json", text, n};
        assert_int_equal(parse_source(source, &m, &err), SM_BAD_INPUT);
        assert_true(err.line >= 1 && err.column >= 1 && err.span >= 1);
    }
}

/* Any byte changed: an answer or an error with a place. Under a sanitizer others than without. */
static void damaged_texts_end_well(void **state) {
    (void)state;
    static const char bytes[] = "{}[]\",:-+.eE019 nt\\u\x80\xff\n";
    sm_rng rng = {SANITIZED ? 7 : 8};
    FOR_CATALOGUE(i) {
        char text[8192];
        size_t n = strlen(sm_catalogue_at(i)->config_json);
        assert_true(n < sizeof text);
        for (int turn = 0; turn < 12; turn++) {
            memcpy(text, sm_catalogue_at(i)->config_json, n);
            for (uint64_t k = 0; k <= sm_rng_below(&rng, 3); k++)
                text[sm_rng_below(&rng, n)] = bytes[sm_rng_below(&rng, sizeof bytes)];
            sm_source source = {"damaged.json", text, n};
            static sm_model m;
            sm_error err;
            sm_status status = parse_source(source, &m, &err);
            assert_true(status == SM_OK || status == SM_BAD_INPUT);
            if (status) assert_true(err.line >= 1 && err.span >= 1 && err.sentence[0] != 0);
        }
    }
}

static bool same_type(const char *a, const char *b) {
    static const char key[] = "\"model_type\"";
    const char *x = strstr(a, key), *y = strstr(b, key);
    size_t n = x ? strcspn(x, ",}") : 0;
    return x && y && strcspn(y, ",}") == n && strncmp(x, y, n) == 0;
}

/* Has an earlier config of this type, one of `alike`, the member whose colon is here? */
static bool said_before(size_t i, const bool *alike, const char *colon) {
    const char *from = colon - 1;
    char key[128];
    while (from > sm_catalogue_at(i)->config_json + 1 && from[-1] != '"') from--;
    snprintf(key, sizeof key, "\"%.*s:", (int)(colon - from), from);
    for (size_t j = 0; j < i; j++)
        if (alike[j] && strstr(sm_catalogue_at(j)->config_json, key)) return true;
    return false;
}

/* Every member of a config of every type at extremes: no overflow (the sanitizers watch). Types
 * have most members in common, and take turns with the extremes; fourteen models are read under a
 * sanitizer, the next fourteen without. */
static void extreme_numbers_end_well(void **state) {
    (void)state;
    static const char *const extremes[] = {
        "0",     "1",   "3",    "-1", "268435456", "1e9",  "2147483648",
        "1e308", "0.5", "null", "[]", "{}",        "true", "[0, 1, 268435456]"};
    const size_t n_extremes = sizeof extremes / sizeof *extremes;
    bool alike[2048];
    assert_true(sm_catalogue_count() <= sizeof alike);
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const char *text = sm_catalogue_at(i)->config_json, *with = extremes[i % n_extremes];
        if (i / n_extremes % 2 != !SANITIZED) continue;
        for (size_t j = 0; j < i; j++) alike[j] = same_type(text, sm_catalogue_at(j)->config_json);
        for (const char *at = strchr(text, ':'); at; at = strchr(at + 1, ':')) {
            size_t value = strcspn(at, ",}");
            if (said_before(i, alike, at)) continue;
            char changed[8192];
            int n = snprintf(changed, sizeof changed, "%.*s: %s%s", (int)(at - text), text, with,
                             at + value);
            assert_true(n < (int)sizeof changed);
            sm_source source = {"extreme.json", changed, (size_t)n};
            static sm_model m;
            sm_error err;
            sm_status status = parse_source(source, &m, &err);
            assert_true(status == SM_OK || status == SM_BAD_INPUT);
            if (status == SM_OK) sm_model_forward_flops(&m, 1e6, true);
        }
    }
}

static void long_and_strange_keys_are_shown_safely(void **state) {
    (void)state;
    char text[4096];
    sm_model m;
    sm_error err;
    int n = snprintf(text, sizeof text, "{\"model_type\": \"llama\", \"num_\\n\\u001b");
    memset(text + n, 'x', 2000);
    memcpy(text + n + 2000, "\": 1}", 6);
    assert_int_equal(parse_text(text, &m, &err), SM_BAD_INPUT);
    assert_memory_equal(err.sentence, "num_", 4);
    for (const char *c = err.sentence; *c; c++) assert_true((unsigned char)*c >= ' ');
    assert_true(strlen(err.sentence) < 200);
    memset(text, '[', 4000);
    text[4000] = 0;
    assert_int_equal(parse_text(text, &m, &err), SM_BAD_INPUT);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const char *text = JSON({
        "model_type" : "gemma3",
        "tie_word_embeddings" : true,
        "text_config" : {
            "model_type" : "gemma3_text",
            "hidden_size" : 64,
            "num_hidden_layers" : 6,
            "num_attention_heads" : 8,
            "num_key_value_heads" : 2,
            "intermediate_size" : 96,
            "vocab_size" : 100,
            "layer_types" : []
        }
    });
    static sm_model m;
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err;
        sm_status status = parse_text(text, &m, &err);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        else assert_int_equal(status, SM_INTERNAL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_defaults),
        cmocka_unit_test(llama_fields_change_the_count),
        cmocka_unit_test(harmless_fields_are_passed_over),
        cmocka_unit_test(weighty_fields_are_not_passed_over),
        cmocka_unit_test(a_typing_error_gets_its_neighbour),
        cmocka_unit_test(sizes_have_bounds),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(model_types_are_checked),
        cmocka_unit_test(architectures_stand_in_for_types),
        cmocka_unit_test(a_wrapper_of_any_type_is_read_by_what_it_wraps),
        cmocka_unit_test(heads_of_a_rounded_width_are_said),
        cmocka_unit_test(two_spellings_must_agree),
        cmocka_unit_test(windows_follow_the_family),
        cmocka_unit_test(sparse_layers_follow_the_family),
        cmocka_unit_test(minimax_m2_is_counted),
        cmocka_unit_test(granite_is_a_llama),
        cmocka_unit_test(layer_lists_are_checked),
        cmocka_unit_test(experts_are_checked),
        cmocka_unit_test(nested_keys_are_checked),
        cmocka_unit_test(counts_agree_with_transformers),
        cmocka_unit_test(mpt_reads_its_own_fields),
        cmocka_unit_test(gemma_4_overrides_layers),
        cmocka_unit_test(the_text_model_of_a_wrapper_is_read),
        cmocka_unit_test(what_is_left_out_is_noted),
        cmocka_unit_test(models_are_named_after_their_files),
        cmocka_unit_test(unknown_names_get_their_neighbour),
        cmocka_unit_test(config_files_are_the_catalogue),
        cmocka_unit_test(truncated_texts_are_errors),
        cmocka_unit_test(damaged_texts_end_well),
        cmocka_unit_test(extreme_numbers_end_well),
        cmocka_unit_test(long_and_strange_keys_are_shown_safely),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("hf_config", tests, NULL, NULL);
}

/* Families of the LLaMA line: RMS norm, rotary positions, gated MLP, dense layers. Defaults are
 * those that the Hugging Face transformers library takes when a config is silent
 * (configuration_<family>.py). */
#include "hf_family.h"

const hf_rule hf_rules_core[] = {
    {"hidden_size", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"num_hidden_layers", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"num_attention_heads", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"intermediate_size", HF_FF, HF_SIZE, HF_REQUIRED},
    {"vocab_size", HF_VOCAB, HF_SIZE, HF_REQUIRED},
    {"max_position_embeddings", HF_MAX_SEQ, HF_SIZE, HF_NONE},
    {"hidden_act", HF_ACTIVATION, HF_NAME, HF_NONE},
    {"is_encoder_decoder", HF_UNUSED, HF_OFF, HF_NONE},
    {"add_cross_attention", HF_UNUSED, HF_OFF, HF_NONE},
    {"pruned_heads", HF_UNUSED, HF_OFF, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
const hf_rule hf_rules_gqa[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, HF_NONE},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
const hf_rule hf_rules_untied[] = {
    {"tie_word_embeddings", HF_TIED, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
const hf_rule hf_rules_tied[] = {
    {"tie_word_embeddings", HF_TIED, HF_FLAG, true},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
const hf_rule hf_rules_no_bias[] = {
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {"mlp_bias", HF_MLP_BIAS, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

static const hf_rule mistral[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 8},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, HF_NONE},
    {"sliding_window", HF_WINDOW, HF_COUNT, 4096},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule qwen[] = {
    {"sliding_window", HF_WINDOW, HF_COUNT, 4096},
    {"use_sliding_window", HF_WINDOW_ON, HF_FLAG, false},
    {"max_window_layers", HF_WINDOW_FROM, HF_COUNT, 28},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule qwen3[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 32},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 128},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule phi3[] = {
    {"sliding_window", HF_WINDOW, HF_COUNT, HF_NONE},
    {"attention_bias", HF_UNUSED, HF_OFF, HF_NONE},
    {"mlp_bias", HF_UNUSED, HF_OFF, HF_NONE},
    {"lm_head_bias", HF_UNUSED, HF_OFF, HF_NONE},
    {"full_attn_mod", HF_UNUSED, HF_ANY, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule olmo[] = {
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule olmo3[] = {
    {"sliding_window", HF_WINDOW, HF_COUNT, 4096},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {"sliding_window_pattern", HF_WINDOW_EVERY, HF_SIZE, 4},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

bool hf_in_all(const hf_config *c, int layer) {
    (void)c, (void)layer;
    return true;
}

bool hf_in_even(const hf_config *c, int layer) {
    (void)c;
    return layer % 2 == 0;
}

bool hf_in_all_but_every(const hf_config *c, int layer) {
    int every = hf_number(c, HF_WINDOW_EVERY);
    return every <= 0 || (layer + 1) % every != 0;
}

/* Qwen: the first max_window_layers layers see everything. */
static bool after_first(const hf_config *c, int layer) {
    return hf_number(c, HF_WINDOW_ON) && layer >= hf_number(c, HF_WINDOW_FROM);
}

void hf_adapt_qk_norm(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    (void)c, (void)layer, (void)local, (void)sparse;
    k->qk_norm = true;
    k->qk_norm_q = k->qk_norm_k = k->H;
}

void hf_adapt_wide_qk_norm(const hf_config *c, int layer, bool local, bool sparse,
                           sm_layer_kind *k) {
    (void)c, (void)layer, (void)local, (void)sparse;
    k->qk_norm = true;
    k->qk_norm_q = k->N * k->H;
    k->qk_norm_k = k->K * k->H;
}

const hf_family hf_llama_like[HF_LLAMA_LIKE] = {
    {.name = "llama",
     .model_types = "llama",
     .architectures = "LlamaForCausalLM LLaMAForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, hf_rules_no_bias},
     .norms = 2,
     .final_norm = true},
    {.name = "granite",
     .model_types = "granite",
     .architectures = "GraniteForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, hf_rules_no_bias},
     .norms = 2,
     .final_norm = true},
    {.name = "mistral",
     .model_types = "mistral ministral",
     .architectures = "MistralForCausalLM",
     .rules = {hf_rules_core, mistral, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .local = hf_in_all},
    {.name = "qwen2",
     .model_types = "qwen2",
     .architectures = "Qwen2ForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, qwen},
     .norms = 2,
     .final_norm = true,
     .qkv_bias = true,
     .local = after_first},
    {.name = "qwen3",
     .model_types = "qwen3",
     .architectures = "Qwen3ForCausalLM",
     .rules = {hf_rules_core, qwen3, hf_rules_untied, qwen},
     .norms = 2,
     .final_norm = true,
     .local = after_first,
     .adapt = hf_adapt_qk_norm},
    {.name = "phi3",
     .model_types = "phi3",
     .architectures = "Phi3ForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, phi3},
     .norms = 2,
     .final_norm = true,
     .local = hf_in_all},
    {.name = "olmo",
     .model_types = "olmo",
     .architectures = "OlmoForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, olmo},
     .norm = SM_NORM_LAYER_NO_AFFINE,
     .norms = 2,
     .final_norm = true},
    {.name = "olmo2",
     .model_types = "olmo2",
     .architectures = "Olmo2ForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, olmo},
     .norms = 2,
     .final_norm = true,
     .adapt = hf_adapt_wide_qk_norm},
    {.name = "olmo3",
     .model_types = "olmo3",
     .architectures = "Olmo3ForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, olmo, olmo3},
     .norms = 2,
     .final_norm = true,
     .local = hf_in_all_but_every,
     .adapt = hf_adapt_wide_qk_norm},
};

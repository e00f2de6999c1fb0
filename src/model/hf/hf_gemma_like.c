/* Gemma, generations 1 to 4: tied embeddings, a head size apart from width / heads, and from the
 * second on four norms per layer and alternating local attention. Defaults as in transformers. */
#include "hf_family.h"
#include <stdio.h>

static const hf_rule gemma[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 16},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 256},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {"hidden_activation", HF_ACTIVATION, HF_NAME, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule windowed[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 4},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 256},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {"hidden_activation", HF_ACTIVATION, HF_NAME, HF_NONE},
    {"sliding_window", HF_WINDOW, HF_COUNT, 4096},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {"sliding_window_pattern", HF_WINDOW_EVERY, HF_SIZE, 6},
    {"_sliding_window_pattern", HF_WINDOW_EVERY, HF_SIZE, 6},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
/* Multimodal Gemma 3 checkpoints write only what differs from these. */
static const hf_rule gemma3_sizes[] = {
    {"num_attention_heads", HF_HEADS, HF_SIZE, 8},
    {"vocab_size", HF_VOCAB, HF_SIZE, 262208},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule gemma4[] = {
    {"global_head_dim", HF_GLOBAL_HEAD_DIM, HF_SIZE, 512},
    {"num_global_key_value_heads", HF_GLOBAL_KV_HEADS, HF_SIZE, HF_NONE},
    {"attention_k_eq_v", HF_K_EQUALS_V, HF_FLAG, false},
    {"num_kv_shared_layers", HF_KV_SHARED, HF_COUNT, 0},
    {"use_double_wide_mlp", HF_WIDE_MLP, HF_FLAG, false},
    {"hidden_size_per_layer_input", HF_PER_LAYER_INPUT, HF_COUNT, 256},
    {"vocab_size_per_layer_input", HF_PER_LAYER_VOCAB, HF_SIZE, 262144},
    {"per_layer_config", HF_PER_LAYER, HF_OVERRIDES, HF_NONE},
    {"enable_moe_block", HF_MOE_ON, HF_FLAG, false},
    {"num_experts", HF_EXPERTS, HF_SIZE, HF_NONE},
    {"top_k_experts", HF_TOP_K, HF_SIZE, HF_NONE},
    {"moe_intermediate_size", HF_EXPERT_FF, HF_SIZE, HF_NONE},
    {"expert_intermediate_size", HF_EXPERT_FF, HF_SIZE, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

static bool moe_is_on(const hf_config *c, int layer) {
    (void)layer;
    return hf_number(c, HF_MOE_ON) != 0;
}

/* The size of a single layer, where per_layer_config gives one: {"05": {"head_dim": 512}}. */
static int override(const hf_config *c, int layer, const char *key, int otherwise) {
    char name[16];
    snprintf(name, sizeof name, "%02d", layer);
    const json_value *size = json_get(json_get(c->value[HF_PER_LAYER].json, name), key);
    return size ? (int)json_number(size) : otherwise;
}

/* Beside the experts runs the dense MLP, with three more norms; the router scales its D inputs and
 * E outputs. Each layer has one more parameter, a scale of its output. */
static void adapt_gemma4(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    k->kv_shared = layer >= hf_number(c, HF_LAYERS) - hf_number(c, HF_KV_SHARED);
    bool shares = !local && hf_number(c, HF_K_EQUALS_V), listed = hf_given(c, HF_PER_LAYER);
    if (!local && !listed) k->H = hf_number(c, HF_GLOBAL_HEAD_DIM);
    if (shares && !listed && hf_number(c, HF_GLOBAL_KV_HEADS) > 0)
        k->K = hf_number(c, HF_GLOBAL_KV_HEADS);
    k->H = k->V_head = override(c, layer, "head_dim", k->H);
    k->K = override(c, layer, "num_key_value_heads", k->K);
    k->k_equals_v = shares;
    k->qk_norm = true;
    k->qk_norm_q = k->H;
    k->qk_norm_k = k->kv_shared ? 0 : k->H;
    k->F = hf_number(c, HF_FF) * (k->kv_shared && hf_number(c, HF_WIDE_MLP) ? 2 : 1);
    k->extra_params = 1;
    if (sparse) {
        k->norms += 3;
        k->extra_params += (long)hf_number(c, HF_WIDTH) + k->E;
    }
}

static void finish_gemma4(const hf_config *c, sm_model *m) {
    m->kv_shared_layers = hf_number(c, HF_KV_SHARED);
    m->per_layer_D = hf_number(c, HF_PER_LAYER_INPUT);
    m->per_layer_V = m->per_layer_D > 0 ? hf_number(c, HF_PER_LAYER_VOCAB) : 0;
}

static sm_status refuse_gemma4(const hf_config *c) {
    if (hf_number(c, HF_MOE_ON) && hf_number(c, HF_EXPERTS) == 0)
        return hf_fail(c, "enable_moe_block", false,
                       "enable_moe_block is true, but num_experts is missing");
    if (hf_number(c, HF_KV_SHARED) >= hf_number(c, HF_LAYERS))
        return hf_fail(c, "num_kv_shared_layers", false,
                       "num_kv_shared_layers is %d, but there are %d layers",
                       hf_number(c, HF_KV_SHARED), hf_number(c, HF_LAYERS));
    return SM_OK;
}

const hf_family hf_gemma_like[HF_GEMMA_LIKE] = {
    {.name = "gemma",
     .model_types = "gemma",
     .architectures = "GemmaForCausalLM",
     .rules = {gemma, hf_rules_core, hf_rules_tied},
     .norms = 2,
     .final_norm = true},
    {.name = "gemma2",
     .model_types = "gemma2",
     .architectures = "Gemma2ForCausalLM",
     .rules = {windowed, hf_rules_core, hf_rules_tied},
     .norms = 4,
     .final_norm = true,
     .local = hf_in_even},
    {.name = "gemma3",
     .model_types = "gemma3 gemma3_text",
     .architectures = "Gemma3ForCausalLM Gemma3ForConditionalGeneration",
     .rules = {gemma3_sizes, windowed, hf_rules_core, hf_rules_tied},
     .norms = 4,
     .final_norm = true,
     .local = hf_in_all_but_every,
     .adapt = hf_adapt_qk_norm},
    {.name = "gemma4",
     .model_types = "gemma4 gemma4_text",
     .architectures = "Gemma4ForCausalLM Gemma4ForConditionalGeneration",
     .rules = {gemma4, windowed, hf_rules_core, hf_rules_tied},
     .norms = 4,
     .final_norm = true,
     .local = hf_in_all_but_every,
     .sparse = moe_is_on,
     .adapt = adapt_gemma4,
     .finish = finish_gemma4,
     .refuse = refuse_gemma4},
};

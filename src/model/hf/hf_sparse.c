/* Families with mixtures of experts: which layers have them, how wide they are, who shares.
 * Defaults as in transformers. */
#include "hf_family.h"

const hf_rule hf_rules_experts[] = {
    {"num_experts", HF_EXPERTS, HF_SIZE, HF_REQUIRED},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, HF_REQUIRED},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, HF_REQUIRED},
    {"experts_per_token", HF_TOP_K, HF_SIZE, HF_REQUIRED},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule mixtral[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 8},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, HF_NONE},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, 8},
    {"num_experts", HF_EXPERTS, HF_SIZE, 8},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, 2},
    {"sliding_window", HF_WINDOW, HF_COUNT, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule qwen_moe[] = {
    {"moe_intermediate_size", HF_EXPERT_FF, HF_SIZE, HF_REQUIRED},
    {"decoder_sparse_step", HF_MOE_EVERY, HF_SIZE, 1},
    {"mlp_only_layers", HF_DENSE_LAYERS, HF_NUMBERS, HF_NONE},
    {"sliding_window", HF_WINDOW, HF_COUNT, 4096},
    {"use_sliding_window", HF_WINDOW_ON, HF_FLAG, false},
    {"max_window_layers", HF_WINDOW_FROM, HF_COUNT, 28},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule qwen2_moe[] = {
    {"shared_expert_intermediate_size", HF_SHARED_FF, HF_COUNT, 5632},
    {"qkv_bias", HF_QKV_BIAS, HF_FLAG, true},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule qwen3_moe[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 4},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, HF_NONE},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
/* kv heads and head_dim mean nothing under latent attention. */
static const hf_rule deepseek[] = {
    {"q_lora_rank", HF_Q_RANK, HF_SIZE, 1536},
    {"kv_lora_rank", HF_KV_RANK, HF_SIZE, 512},
    {"qk_rope_head_dim", HF_ROPE_DIM, HF_COUNT, 64},
    {"qk_nope_head_dim", HF_NOPE_DIM, HF_COUNT, 128},
    {"v_head_dim", HF_V_HEAD_DIM, HF_SIZE, 128},
    {"num_key_value_heads", HF_UNUSED, HF_ANY, 0},
    {"head_dim", HF_UNUSED, HF_ANY, 0},
    {"qk_head_dim", HF_UNUSED, HF_ANY, 0},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {"n_routed_experts", HF_EXPERTS, HF_SIZE, HF_NONE},
    {"num_experts", HF_EXPERTS, HF_SIZE, HF_NONE},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, HF_NONE},
    {"n_shared_experts", HF_SHARED_EXPERTS, HF_COUNT, HF_NONE},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, HF_NONE},
    {"moe_intermediate_size", HF_EXPERT_FF, HF_SIZE, HF_NONE},
    {"first_k_dense_replace", HF_MOE_FROM, HF_COUNT, 0},
    {"moe_layer_freq", HF_MOE_EVERY, HF_SIZE, 1},
    {"mlp_bias", HF_UNUSED, HF_OFF, HF_NONE},
    {"num_nextn_predict_layers", HF_MTP_LAYERS, HF_COUNT, 0},
    {"num_mtp_layers", HF_MTP_LAYERS, HF_COUNT, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule gpt_oss[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 8},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 64},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, true},
    {"sliding_window", HF_WINDOW, HF_COUNT, 128},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule llama4[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 8},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 128},
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {"intermediate_size_mlp", HF_DENSE_FF, HF_SIZE, 16384},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, 16},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, 1},
    {"interleave_moe_layer_step", HF_MOE_EVERY, HF_SIZE, 1},
    {"moe_layers", HF_MOE_LAYERS, HF_NUMBERS, HF_NONE},
    {"attention_chunk_size", HF_CHUNK, HF_SIZE, 8192},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {"no_rope_layers", HF_NO_ROPE_LAYERS, HF_NUMBERS, HF_NONE},
    {"no_rope_layer_interval", HF_WINDOW_EVERY, HF_SIZE, 4},
    {"use_qk_norm", HF_QK_NORM, HF_FLAG, true},
    {"for_llm_compressor", HF_UNUSED, HF_ANY, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule mimo[] = {
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 192},
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 4},
    {"v_head_dim", HF_V_HEAD_DIM, HF_SIZE, 128},
    {"swa_num_attention_heads", HF_LOCAL_HEADS, HF_SIZE, HF_NONE},
    {"swa_num_key_value_heads", HF_LOCAL_KV_HEADS, HF_SIZE, HF_NONE},
    {"swa_head_dim", HF_LOCAL_HEAD_DIM, HF_SIZE, HF_NONE},
    {"swa_v_head_dim", HF_LOCAL_V_HEAD_DIM, HF_SIZE, HF_NONE},
    {"sliding_window", HF_WINDOW, HF_COUNT, 128},
    {"sliding_window_size", HF_WINDOW, HF_COUNT, 128},
    {"attention_chunk_size", HF_UNUSED, HF_ANY, 0},
    {"hybrid_layer_pattern", HF_LOCAL_PATTERN, HF_NUMBERS, HF_NONE},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {"add_swa_attention_sink_bias", HF_LOCAL_SINKS, HF_FLAG, true},
    {"add_full_attention_sink_bias", HF_GLOBAL_SINKS, HF_FLAG, false},
    {"attention_bias", HF_QKV_BIAS, HF_FLAG, false},
    {"moe_layer_freq", HF_MOE_PATTERN, HF_NUMBERS, HF_NONE},
    {"mlp_layer_types", HF_MLP_TYPES, HF_WORDS, HF_NONE},
    {"n_routed_experts", HF_EXPERTS, HF_SIZE, 256},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, 256},
    {"n_shared_experts", HF_SHARED_EXPERTS, HF_COUNT, HF_NONE},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, 8},
    {"moe_intermediate_size", HF_EXPERT_FF, HF_SIZE, 2048},
    {"num_nextn_predict_layers", HF_MTP_LAYERS, HF_COUNT, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
/* Layers of linear attention (MiniMax-M1) and shared experts are understood only as absent. */
static const hf_rule minimax_m2[] = {
    {"num_key_value_heads", HF_KV_HEADS, HF_SIZE, 8},
    {"head_dim", HF_HEAD_DIM, HF_SIZE, 128},
    {"num_local_experts", HF_EXPERTS, HF_SIZE, 256},
    {"num_experts_per_tok", HF_TOP_K, HF_SIZE, 8},
    {"attn_type_list", HF_FULL_PATTERN, HF_NUMBERS, HF_NONE},
    {"use_qk_norm", HF_QK_NORM, HF_FLAG, true},
    {"qk_norm_type", HF_UNUSED, HF_ANY, 0},
    {"use_routing_bias", HF_UNUSED, HF_ANY, 0},
    {"shared_intermediate_size", HF_UNUSED, HF_OFF, HF_NONE},
    {"num_mtp_modules", HF_MTP_LAYERS, HF_COUNT, 0},
    {"mtp_transformer_layers", HF_UNUSED, HF_ANY, 0},
    {"use_mtp", HF_UNUSED, HF_ANY, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule olmoe[] = {
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, false},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

/* Every decoder_sparse_step-th layer, except those listed as MLP only. */
static bool qwen_sparse(const hf_config *c, int layer) {
    return (layer + 1) % hf_every(c, HF_MOE_EVERY) == 0 && !hf_lists(c, HF_DENSE_LAYERS, layer);
}

static bool qwen2_moe_local(const hf_config *c, int layer) {
    return hf_number(c, HF_WINDOW_ON) && layer % 2 == 0 && layer < hf_number(c, HF_WINDOW_FROM);
}

static bool qwen3_moe_local(const hf_config *c, int layer) {
    (void)layer;
    return hf_number(c, HF_WINDOW_ON) != 0;
}

static bool deepseek_sparse(const hf_config *c, int layer) {
    return layer >= hf_number(c, HF_MOE_FROM) && layer % hf_every(c, HF_MOE_EVERY) == 0;
}

static bool llama4_sparse(const hf_config *c, int layer) {
    if (hf_given(c, HF_MOE_LAYERS)) return hf_lists(c, HF_MOE_LAYERS, layer);
    return (layer + 1) % hf_every(c, HF_MOE_EVERY) == 0;
}

/* Layers with rotary positions attend within a chunk; 1 marks them in no_rope_layers, in spite of
 * its name. */
static bool llama4_local(const hf_config *c, int layer) {
    if (hf_given_by_layer(c, HF_NO_ROPE_LAYERS))
        return hf_listed_number(c, HF_NO_ROPE_LAYERS, layer) != 0;
    return hf_in_all_but_every(c, layer);
}

static bool mimo_local(const hf_config *c, int layer) {
    if (hf_given_by_layer(c, HF_LOCAL_PATTERN))
        return hf_listed_number(c, HF_LOCAL_PATTERN, layer) != 0;
    return layer != 0 && (layer + 1) % 6 != 0;
}

static bool mimo_sparse(const hf_config *c, int layer) {
    return hf_given_by_layer(c, HF_MOE_PATTERN) ? hf_listed_number(c, HF_MOE_PATTERN, layer) != 0
                                                : layer > 0;
}

static void adapt_qwen2_moe(const hf_config *c, int layer, bool local, bool sparse,
                            sm_layer_kind *k) {
    (void)layer, (void)local;
    k->F_shared = sparse ? hf_number(c, HF_SHARED_FF) : 0;
    k->E_shared = k->F_shared > 0;
    k->shared_gate = k->F_shared > 0;
}

void hf_adapt_latent(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    (void)layer, (void)local, (void)sparse;
    k->attention = SM_ATTENTION_MLA;
    k->q_rank = hf_number(c, HF_Q_RANK);
    k->kv_rank = hf_number(c, HF_KV_RANK);
    k->rope_H = hf_number(c, HF_ROPE_DIM);
    k->nope_H = hf_number(c, HF_NOPE_DIM);
    k->V_head = hf_number(c, HF_V_HEAD_DIM);
    k->K = k->N;
    k->H = k->rope_H + k->nope_H;
}

static void adapt_gpt_oss(const hf_config *c, int layer, bool local, bool sparse,
                          sm_layer_kind *k) {
    (void)c, (void)layer, (void)local, (void)sparse;
    k->has_sinks = true;
}

/* The shared expert is as wide as the routed ones; the norm of Q and K has no weights. */
static void adapt_llama4(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    (void)layer;
    k->E_shared = sparse;
    k->F_shared = sparse ? k->F_expert : 0;
    k->qk_norm = local && hf_number(c, HF_QK_NORM);
}

/* Local layers have twice the KV heads unless the config says otherwise. */
static void adapt_mimo(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    (void)layer, (void)sparse;
    k->has_sinks = hf_number(c, local ? HF_LOCAL_SINKS : HF_GLOBAL_SINKS) != 0;
    if (!local) return;
    if (hf_number(c, HF_LOCAL_HEADS) > 0) k->N = hf_number(c, HF_LOCAL_HEADS);
    k->K = hf_given(c, HF_LOCAL_KV_HEADS) ? hf_number(c, HF_LOCAL_KV_HEADS) : 2 * k->K;
    if (hf_number(c, HF_LOCAL_HEAD_DIM) > 0) k->H = hf_number(c, HF_LOCAL_HEAD_DIM);
    if (hf_number(c, HF_LOCAL_V_HEAD_DIM) > 0) k->V_head = hf_number(c, HF_LOCAL_V_HEAD_DIM);
}

static void adapt_minimax_m2(const hf_config *c, int layer, bool local, bool sparse,
                             sm_layer_kind *k) {
    if (hf_number(c, HF_QK_NORM)) hf_adapt_wide_qk_norm(c, layer, local, sparse, k);
}

/* 1 is a layer of full attention. */
static sm_status refuse_minimax_m2(const hf_config *c) {
    if (hf_given_by_layer(c, HF_FULL_PATTERN) && hf_lists(c, HF_FULL_PATTERN, 0))
        return hf_fail(c, "attn_type_list", false,
                       "attn_type_list has layers of linear attention, which are not understood");
    return SM_OK;
}

static sm_status refuse_deepseek(const hf_config *c) {
    if (hf_number(c, HF_EXPERTS) > 0 && hf_number(c, HF_EXPERT_FF) == 0)
        return hf_fail(c, "moe_intermediate_size", false, "moe_intermediate_size is missing");
    if (hf_number(c, HF_KV_RANK) == 0)
        return hf_fail(c, "kv_lora_rank", false,
                       "kv_lora_rank must be a whole number of at least 1");
    return SM_OK;
}

const hf_family hf_sparse[HF_SPARSE] = {
    {.name = "mixtral",
     .model_types = "mixtral",
     .rope_theta = 1e6,
     .norm_epsilon = 1e-5,
     .architectures = "MixtralForCausalLM",
     .rules = {mixtral, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .local = hf_in_all,
     .sparse = hf_in_all},
    {.name = "qwen2_moe",
     .model_types = "qwen2_moe",
     .architectures = "Qwen2MoeForCausalLM",
     .rules = {qwen2_moe, qwen_moe, hf_rules_experts, hf_rules_core, hf_rules_gqa, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .shared_gate = true,
     .local = qwen2_moe_local,
     .sparse = qwen_sparse,
     .adapt = adapt_qwen2_moe},
    {.name = "qwen3_moe",
     .model_types = "qwen3_moe",
     .architectures = "Qwen3MoeForCausalLM",
     .rules = {qwen3_moe, qwen_moe, hf_rules_experts, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .local = qwen3_moe_local,
     .sparse = qwen_sparse,
     .adapt = hf_adapt_qk_norm},
    {.name = "deepseek_v2",
     .model_types = "deepseek_v2",
     .architectures = "DeepseekV2ForCausalLM",
     .rules = {deepseek, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .active_omits_embedding = true,
     .sparse = deepseek_sparse,
     .adapt = hf_adapt_latent,
     .refuse = refuse_deepseek},
    {.name = "deepseek_v3",
     .model_types = "deepseek_v3 kimi_k2",
     .architectures = "DeepseekV3ForCausalLM",
     .rules = {deepseek, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .router_bias = true,
     .active_omits_embedding = true,
     .sparse = deepseek_sparse,
     .adapt = hf_adapt_latent,
     .refuse = refuse_deepseek},
    {.name = "gpt_oss",
     .model_types = "gpt_oss",
     .architectures = "GptOssForCausalLM",
     .rules = {gpt_oss, hf_rules_experts, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .router_bias = true,
     .expert_bias = true,
     .active_omits_embedding = true,
     .local = hf_in_even,
     .sparse = hf_in_all,
     .adapt = adapt_gpt_oss},
    {.name = "llama4",
     .model_types = "llama4 llama4_text",
     .architectures = "Llama4ForCausalLM Llama4ForConditionalGeneration",
     .rules = {llama4, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .local = llama4_local,
     .sparse = llama4_sparse,
     .adapt = adapt_llama4},
    {.name = "mimo_v2_flash",
     .model_types = "mimo_v2_flash",
     .architectures = "MiMoV2FlashForCausalLM",
     .rules = {mimo, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .router_bias = true,
     .local = mimo_local,
     .sparse = mimo_sparse,
     .adapt = adapt_mimo},
    {.name = "minimax_m2",
     .model_types = "minimax_m2",
     .rope_theta = 5e6,
     .architectures = "MiniMaxM2ForCausalLM",
     .rules = {minimax_m2, hf_rules_core, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .router_bias = true,
     .active_omits_embedding = true,
     .sparse = hf_in_all,
     .adapt = adapt_minimax_m2,
     .refuse = refuse_minimax_m2},
    {.name = "olmoe",
     .model_types = "olmoe",
     .architectures = "OlmoeForCausalLM",
     .rules = {olmoe, hf_rules_experts, hf_rules_core, hf_rules_gqa, hf_rules_untied},
     .norms = 2,
     .final_norm = true,
     .sparse = hf_in_all,
     .adapt = hf_adapt_wide_qk_norm},
};

/* The family "transformer": any Transformer of the usual parts, its options said in keys of their
 * own. Measured rows and models that exist in nobody's library are written in it. */
#include "hf_family.h"

static const hf_rule plain[] = {
    {"intermediate_size", HF_FF, HF_SIZE, HF_NONE},
    {"gated_mlp", HF_GATED, HF_FLAG, true},
    {"layer_norm", HF_LAYER_NORM, HF_FLAG, false},
    {"norms_per_layer", HF_NORMS, HF_SIZE, 2},
    {"final_norm", HF_FINAL_NORM, HF_FLAG, true},
    {"causal", HF_CAUSAL, HF_FLAG, true},
    {"use_parallel_residual", HF_PARALLEL, HF_FLAG, false},
    {"qkv_bias", HF_QKV_BIAS, HF_FLAG, false},
    {"q_lora_rank", HF_Q_RANK, HF_SIZE, HF_NONE},
    {"kv_lora_rank", HF_KV_RANK, HF_SIZE, HF_NONE},
    {"qk_nope_head_dim", HF_NOPE_DIM, HF_COUNT, 0},
    {"qk_rope_head_dim", HF_ROPE_DIM, HF_COUNT, 0},
    {"v_head_dim", HF_V_HEAD_DIM, HF_SIZE, HF_NONE},
    {"sliding_window", HF_WINDOW, HF_COUNT, HF_NONE},
    {"attention_chunk_size", HF_CHUNK, HF_SIZE, HF_NONE},
    {"layer_types", HF_LAYER_TYPES, HF_WORDS, HF_NONE},
    {"num_experts", HF_EXPERTS, HF_COUNT, HF_NONE},
    {"num_experts_per_tok", HF_TOP_K, HF_COUNT, HF_NONE},
    {"moe_intermediate_size", HF_EXPERT_FF, HF_SIZE, HF_NONE},
    {"n_shared_experts", HF_SHARED_EXPERTS, HF_COUNT, HF_NONE},
    {"shared_expert_intermediate_size", HF_SHARED_FF, HF_SIZE, HF_NONE},
    {"mlp_layer_types", HF_MLP_TYPES, HF_WORDS, HF_NONE},
    {"num_nextn_predict_layers", HF_MTP_LAYERS, HF_COUNT, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

static void adapt_plain(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    k->mlp = hf_number(c, HF_GATED) ? SM_MLP_GATED : SM_MLP_PLAIN;
    k->norms = hf_number(c, HF_NORMS);
    k->parallel = hf_number(c, HF_PARALLEL) != 0;
    if (k->parallel && k->norms > 1) k->norms--; /* both halves read one */
    if (hf_number(c, HF_KV_RANK) > 0) hf_adapt_latent(c, layer, local, sparse, k);
}

/* A module of multi-token prediction, which other families leave out: one more layer, its joining
 * projection 2D -> D, and the head once more, carried as width of the layer's dense part (same
 * FLOPs). */
static void add_predictors(const hf_config *c, sm_model *m) {
    int modules = hf_number(c, HF_MTP_LAYERS);
    if (modules <= 0 || m->L + modules > SM_MAX_LAYERS || m->kinds == SM_MAX_LAYER_KINDS) return;
    sm_layer_kind *kind = &m->kind[m->kinds];
    *kind = m->kind[m->layer[m->L - 1]];
    int more = (m->V + 2 * m->D) / (kind->mlp == SM_MLP_GATED ? 3 : 2);
    kind->F += more - more % 128;
    for (int i = 0; i < modules; i++) m->layer[m->L++] = (uint8_t)m->kinds;
    m->kinds++;
    m->note = "";
}

static void finish_plain(const hf_config *c, sm_model *m) {
    if (hf_number(c, HF_LAYER_NORM)) m->norm = SM_NORM_LAYER;
    m->final_norm = hf_number(c, HF_FINAL_NORM) != 0;
    m->causal = hf_number(c, HF_CAUSAL) != 0;
    add_predictors(c, m);
}

const hf_family hf_plain[HF_PLAIN] = {
    {.name = "transformer",
     .model_types = "transformer",
     .architectures = "",
     .rules = {plain, hf_rules_core, hf_rules_gqa, hf_rules_untied, hf_rules_no_bias},
     .norm_bias = true,
     .local = hf_in_all,
     .sparse = hf_in_all,
     .adapt = adapt_plain,
     .finish = finish_plain},
};

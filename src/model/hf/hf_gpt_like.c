/* Families of the GPT line: LayerNorm, a plain MLP of two matrices, biases, learned or other
 * positions. Defaults as in transformers. */
#include "hf_family.h"
#include <string.h>

static const hf_rule gpt2[] = {
    {"n_embd", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"hidden_size", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"n_layer", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"num_hidden_layers", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"n_head", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"num_attention_heads", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"n_inner", HF_FF, HF_SIZE, HF_NONE},
    {"vocab_size", HF_VOCAB, HF_SIZE, HF_REQUIRED},
    {"n_positions", HF_MAX_SEQ, HF_SIZE, HF_REQUIRED},
    {"max_position_embeddings", HF_MAX_SEQ, HF_SIZE, HF_REQUIRED},
    {"activation_function", HF_ACTIVATION, HF_NAME, HF_NONE},
    {"scale_attn_by_inverse_layer_idx", HF_UNUSED, HF_ANY, 0},
    {"is_encoder_decoder", HF_UNUSED, HF_OFF, HF_NONE},
    {"add_cross_attention", HF_UNUSED, HF_OFF, HF_NONE},
    {"pruned_heads", HF_UNUSED, HF_OFF, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule gpt_neox[] = {
    {"attention_bias", HF_ATTENTION_BIAS, HF_FLAG, true},
    {"use_parallel_residual", HF_PARALLEL, HF_FLAG, true},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule falcon[] = {
    {"hidden_size", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"n_embed", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"num_hidden_layers", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"n_layer", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"num_attention_heads", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"n_head", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"num_kv_heads", HF_KV_HEADS, HF_SIZE, HF_NONE},
    {"n_head_kv", HF_KV_HEADS, HF_SIZE, HF_NONE},
    {"ffn_hidden_size", HF_FF, HF_SIZE, HF_NONE},
    {"vocab_size", HF_VOCAB, HF_SIZE, HF_REQUIRED},
    {"max_position_embeddings", HF_MAX_SEQ, HF_SIZE, 2048},
    {"multi_query", HF_MULTI_QUERY, HF_FLAG, true},
    {"new_decoder_architecture", HF_NEW_DECODER, HF_FLAG, false},
    {"parallel_attn", HF_PARALLEL, HF_FLAG, true},
    {"num_ln_in_parallel_attn", HF_PARALLEL_NORMS, HF_SIZE, HF_NONE},
    {"bias", HF_BIASED, HF_FLAG, false},
    {"alibi", HF_UNUSED, HF_ANY, 0},
    {"activation", HF_ACTIVATION, HF_NAME, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule opt[] = {
    {"ffn_dim", HF_FF, HF_SIZE, HF_REQUIRED},
    {"max_position_embeddings", HF_MAX_SEQ, HF_SIZE, 2048},
    {"word_embed_proj_dim", HF_EMBED_DIM, HF_SIZE, HF_NONE},
    {"do_layer_norm_before", HF_NORM_FIRST, HF_FLAG, true},
    {"_remove_final_layer_norm", HF_NO_FINAL_NORM, HF_FLAG, false},
    {"layer_norm_elementwise_affine", HF_NORM_AFFINE, HF_FLAG, true},
    {"enable_bias", HF_BIASED, HF_FLAG, true},
    {"activation_function", HF_ACTIVATION, HF_NAME, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule bloom[] = {
    {"hidden_size", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"n_embed", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"n_layer", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"num_hidden_layers", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"n_head", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"num_attention_heads", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"vocab_size", HF_VOCAB, HF_SIZE, HF_REQUIRED},
    {"seq_length", HF_MAX_SEQ, HF_SIZE, HF_NONE},
    {"n_inner", HF_FF, HF_SIZE, HF_NONE},
    {"attention_softmax_in_fp32", HF_UNUSED, HF_ANY, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule mpt[] = {
    {"d_model", HF_WIDTH, HF_SIZE, HF_REQUIRED},
    {"n_layers", HF_LAYERS, HF_SIZE, HF_REQUIRED},
    {"n_heads", HF_HEADS, HF_SIZE, HF_REQUIRED},
    {"expansion_ratio", HF_EXPANSION, HF_SIZE, 4},
    {"vocab_size", HF_VOCAB, HF_SIZE, HF_REQUIRED},
    {"max_seq_len", HF_MAX_SEQ, HF_SIZE, 2048},
    {"no_bias", HF_UNBIASED, HF_FLAG, true},
    {"learned_pos_emb", HF_LEARNED_POSITIONS, HF_FLAG, true},
    {"attn_config", HF_NESTED, HF_OBJECT, 0},
    {"alibi", HF_ALIBI, HF_FLAG, true},
    {"attn_type", HF_ATTENTION_TYPE, HF_TEXT, HF_NONE},
    {"kv_n_heads", HF_KV_HEADS, HF_SIZE, HF_NONE},
    {"qk_ln", HF_UNUSED, HF_OFF, HF_NONE},
    {"qk_gn", HF_UNUSED, HF_OFF, HF_NONE},
    {"sliding_window_size", HF_UNUSED, HF_ANY, 0},
    {"embedding_fraction", HF_UNUSED, HF_ANY, 0},
    {"norm_type", HF_UNUSED, HF_ANY, 0},
    {"emb_init_std", HF_UNUSED, HF_ANY, 0},
    {"ffn_config", HF_UNUSED, HF_OFF, HF_NONE},
    {NULL, HF_UNUSED, HF_ANY, 0},
};
static const hf_rule nemotron[] = {
    {"norm_eps", HF_UNUSED, HF_ANY, 0},
    {NULL, HF_UNUSED, HF_ANY, 0},
};

/* Without a width of its own the MLP is four times as wide as the model. */
static void adapt_fourfold(const hf_config *c, int layer, bool local, bool sparse,
                           sm_layer_kind *k) {
    (void)layer, (void)local, (void)sparse;
    k->F = k->F > 0 ? k->F : 4 * hf_number(c, HF_WIDTH);
}

static void finish_gpt2(const hf_config *c, sm_model *m) {
    m->positions = hf_number(c, HF_MAX_SEQ);
}

/* GPT-J: no biases in the attention, biases in the MLP and in the unembedding. */
static void adapt_gptj(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    adapt_fourfold(c, layer, local, sparse, k);
    k->mlp_bias = true;
}

static void adapt_gpt_neox(const hf_config *c, int layer, bool local, bool sparse,
                           sm_layer_kind *k) {
    (void)layer, (void)local, (void)sparse;
    k->parallel = hf_number(c, HF_PARALLEL) != 0;
    k->mlp_bias = true;
}

static void adapt_falcon(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    bool modern = hf_number(c, HF_NEW_DECODER) != 0, single = hf_number(c, HF_MULTI_QUERY) != 0;
    adapt_fourfold(c, layer, local, sparse, k);
    k->K = modern ? k->K : single ? 1 : k->N;
    k->parallel = modern || hf_number(c, HF_PARALLEL);
    int norms = hf_number(c, HF_PARALLEL_NORMS);
    /* One norm feeds attention and MLP of the parallel block, unless each has its own, as usual in
     * the new architecture; blocks in sequence have two. */
    bool two = norms == 0 ? modern : norms == 2;
    k->norms = two || !hf_number(c, HF_PARALLEL) ? 2 : 1;
    k->qkv_bias = k->o_bias = k->mlp_bias = hf_number(c, HF_BIASED) != 0;
}

static void adapt_opt(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    (void)layer, (void)local, (void)sparse;
    k->qkv_bias = k->o_bias = k->mlp_bias = hf_number(c, HF_BIASED) != 0;
}

/* The position table has two rows before the first position (padding, as fairseq has it). */
static void finish_opt(const hf_config *c, sm_model *m) {
    m->positions = hf_number(c, HF_MAX_SEQ) + 2;
    m->final_norm = hf_number(c, HF_NORM_FIRST) && !hf_number(c, HF_NO_FINAL_NORM);
    if (!hf_number(c, HF_NORM_AFFINE)) m->norm = SM_NORM_LAYER_NO_AFFINE;
}

static void adapt_mpt(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *k) {
    const char *type = json_text(c->value[HF_ATTENTION_TYPE].json);
    (void)layer, (void)local, (void)sparse;
    k->F = hf_number(c, HF_EXPANSION) * hf_number(c, HF_WIDTH);
    k->qkv_bias = k->o_bias = k->mlp_bias = !hf_number(c, HF_UNBIASED);
    if (type && strcmp(type, "multiquery_attention") == 0) k->K = 1;
}

static void finish_mpt(const hf_config *c, sm_model *m) {
    m->norm_bias = !hf_number(c, HF_UNBIASED);
    if (!hf_number(c, HF_ALIBI) && hf_number(c, HF_LEARNED_POSITIONS))
        m->positions = hf_number(c, HF_MAX_SEQ);
}

static sm_status refuse_attention_type(const hf_config *c, const char *type) {
    static const char *const known[] = {"multihead_attention", "multiquery_attention",
                                        "grouped_query_attention"};
    char shown[48];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(type, known[i]) == 0) return SM_OK;
    return hf_fail(c, "attn_config.attn_type", false,
                   "attn_type \"%s\" is not understood; expected one of %s, %s or %s",
                   hf_shown(type, shown, sizeof shown), known[0], known[1], known[2]);
}

static sm_status refuse_mpt(const hf_config *c) {
    const char *type = json_text(c->value[HF_ATTENTION_TYPE].json);
    if ((double)hf_number(c, HF_EXPANSION) * hf_number(c, HF_WIDTH) > HF_LARGEST)
        return hf_fail(c, "expansion_ratio", false, "expansion_ratio is %d: the MLP is too wide",
                       hf_number(c, HF_EXPANSION));
    return type ? refuse_attention_type(c, type) : SM_OK;
}

const hf_family hf_gpt_like[HF_GPT_LIKE] = {
    {.name = "gpt2",
     .model_types = "gpt2",
     .architectures = "GPT2LMHeadModel GPT2Model",
     .rules = {gpt2, hf_rules_tied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 2,
     .final_norm = true,
     .all_biases = true,
     .adapt = adapt_fourfold,
     .finish = finish_gpt2},
    {.name = "gptj",
     .model_types = "gptj",
     .architectures = "GPTJForCausalLM",
     .rules = {gpt2, hf_rules_untied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 1,
     .final_norm = true,
     .parallel = true,
     .lm_head_bias = true,
     .adapt = adapt_gptj},
    {.name = "gpt_neox",
     .model_types = "gpt_neox",
     .architectures = "GPTNeoXForCausalLM",
     .rules = {hf_rules_core, gpt_neox, hf_rules_untied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 2,
     .final_norm = true,
     .adapt = adapt_gpt_neox},
    {.name = "falcon",
     .model_types = "falcon",
     .architectures = "FalconForCausalLM",
     .rules = {falcon, hf_rules_tied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 1,
     .final_norm = true,
     .adapt = adapt_falcon},
    {.name = "opt",
     .model_types = "opt",
     .architectures = "OPTForCausalLM OPTModel",
     .rules = {opt, hf_rules_core, hf_rules_tied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 2,
     .adapt = adapt_opt,
     .finish = finish_opt},
    {.name = "bloom",
     .model_types = "bloom",
     .architectures = "BloomForCausalLM BloomModel",
     .rules = {bloom, hf_rules_tied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 2,
     .final_norm = true,
     .embed_norm = true,
     .all_biases = true,
     .adapt = adapt_fourfold},
    {.name = "mpt",
     .model_types = "mpt",
     .architectures = "MPTForCausalLM MptForCausalLM",
     .rules = {mpt, hf_rules_tied},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norms = 2,
     .final_norm = true,
     .adapt = adapt_mpt,
     .finish = finish_mpt,
     .refuse = refuse_mpt},
    {.name = "nemotron",
     .model_types = "nemotron",
     .architectures = "NemotronForCausalLM",
     .rules = {hf_rules_core, hf_rules_gqa, hf_rules_untied, hf_rules_no_bias, nemotron},
     .mlp = SM_MLP_PLAIN,
     .norm = SM_NORM_LAYER,
     .norm_bias = true,
     .norms = 2,
     .final_norm = true},
};

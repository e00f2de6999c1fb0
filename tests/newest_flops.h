/* FLOPs of 64 tokens that torch 2.15's counter has of small models of transformers 5.24's classes,
 * as scripts/reference-totals.py --flops 64 makes them: every pair of an attention, convolutions of
 * one channel left out. solved: triangles, which it takes for nothing, by their inverse (n^3 / 3)
 * and its products (2 n^2 for each column). less: what a class does beside its model (below
 * nothing), or without a product, as `repeated` of the script has it from sizes of modules. */
#pragma once
/* A table. */
/* clang-format off */

static const struct {
    double counted, solved, less;
    const char *config;
} newest_flops[] = {
    {633470976, 0, -159383552,
     "{\"architectures\":[\"FalconH1ForCausalLM\"],\"attention_bias\":true,\"hidden_size\""
     ":256,\"intermediate_size\":64,\"mamba_chunk_size\":16,\"max_position_embeddings\":"
     "128,\"mlp_bias\":true,\"model_type\":\"falcon_h1\",\"num_attention_heads\":8,\"num_hi"
     "dden_layers\":2,\"projectors_bias\":true,\"tie_word_embeddings\":true,\"vocab_size"
     "\":100}"},
    {4629823488, 0, -83886080,
     "{\"architectures\":[\"NemotronHForCausalLM\"],\"attention_bias\":true,\"chunk_size\""
     ":16,\"head_dim\":16,\"hidden_size\":768,\"intermediate_size\":96,\"layers_block_typ"
     "e\":[\"linear_attention\",\"moe\",\"full_attention\",\"mlp\"],\"mamba_proj_bias\":true,"
     "\"max_position_embeddings\":64,\"model_type\":\"nemotron_h\",\"moe_intermediate_siz"
     "e\":48,\"n_group\":2,\"n_shared_experts\":2,\"num_attention_heads\":12,\"num_key_val"
     "ue_heads\":4,\"residual_in_fp32\":true,\"sliding_window\":128,\"tie_word_embedding"
     "s\":true,\"use_bias\":true,\"vocab_size\":257}"},
    {47333376, 4063232, 0,
     "{\"architectures\":[\"OlmoHybridForCausalLM\"],\"attention_bias\":true,\"hidden_siz"
     "e\":96,\"intermediate_size\":64,\"layer_types\":[\"linear_attention\",\"linear_atten"
     "tion\",\"full_attention\"],\"linear_key_head_dim\":24,\"linear_num_key_heads\":3,\"l"
     "inear_num_value_heads\":3,\"linear_value_head_dim\":48,\"max_position_embeddings"
     "\":128,\"model_type\":\"olmo_hybrid\",\"num_attention_heads\":3,\"num_hidden_layers\""
     ":3,\"num_key_value_heads\":3,\"pad_token_id\":0,\"tie_word_embeddings\":true,\"voca"
     "b_size\":1000}"},
    {3442507776, 279620267, -67108864,
     "{\"architectures\":[\"Qwen3_5ForCausalLM\"],\"head_dim\":32,\"hidden_size\":256,\"int"
     "ermediate_size\":96,\"layer_types\":[\"linear_attention\",\"linear_attention\",\"lin"
     "ear_attention\",\"full_attention\",\"linear_attention\"],\"max_position_embeddings"
     "\":64,\"model_type\":\"qwen3_5_text\",\"num_attention_heads\":4,\"num_hidden_layers\""
     ":5,\"vocab_size\":257}"},
    {3699113984, 419430400, -100663296,
     "{\"architectures\":[\"Qwen3_5MoeForCausalLM\"],\"attention_bias\":true,\"head_dim\":"
     "32,\"hidden_size\":128,\"layer_types\":[\"linear_attention\",\"linear_attention\",\"l"
     "inear_attention\",\"full_attention\",\"linear_attention\",\"linear_attention\",\"lin"
     "ear_attention\",\"full_attention\"],\"model_type\":\"qwen3_5_moe_text\",\"moe_interm"
     "ediate_size\":16,\"num_attention_heads\":2,\"num_experts_per_tok\":1,\"num_hidden_"
     "layers\":8,\"vocab_size\":1000}"},
    {2677358592, 209715200, -50331648,
     "{\"architectures\":[\"Qwen3NextForCausalLM\"],\"hidden_size\":192,\"intermediate_si"
     "ze\":130,\"layer_types\":[\"linear_attention\",\"full_attention\",\"linear_attention"
     "\",\"full_attention\",\"linear_attention\"],\"max_position_embeddings\":128,\"model_"
     "type\":\"qwen3_next\",\"moe_intermediate_size\":48,\"num_attention_heads\":6,\"num_e"
     "xperts\":8,\"num_experts_per_tok\":2,\"num_hidden_layers\":5,\"vocab_size\":257}"},
    {48431104, 0, 0,
     "{\"architectures\":[\"MiniMaxForCausalLM\"],\"block_size\":32,\"hidden_size\":128,\"i"
     "ntermediate_size\":130,\"layer_types\":[\"full_attention\",\"linear_attention\"],\"m"
     "ax_position_embeddings\":64,\"model_type\":\"minimax\",\"num_attention_heads\":4,\"n"
     "um_hidden_layers\":2,\"num_key_value_heads\":2,\"sliding_window\":128,\"vocab_size"
     "\":100}"},
    {472236032, 0, -16384,
     "{\"architectures\":[\"ZayaForCausalLM\"],\"attention_bias\":true,\"head_dim\":8,\"hid"
     "den_size\":256,\"layer_types\":[\"hybrid\",\"hybrid\"],\"model_type\":\"zaya\",\"num_att"
     "ention_heads\":4,\"num_hidden_layers\":2,\"num_key_value_heads\":4,\"sliding_windo"
     "w\":128,\"vocab_size\":257}"},
    {95854592, 0, 122880,
     "{\"architectures\":[\"HYV4ForCausalLM\"],\"hidden_size\":48,\"index_topk\":64,\"index"
     "er_types\":[\"full\",\"full\"],\"intermediate_size\":64,\"kv_lora_rank\":16,\"layer_ty"
     "pes\":[\"indexed_attention\",\"indexed_attention\"],\"max_position_embeddings\":64,"
     "\"mlp_layer_types\":[\"dense\",\"sparse\"],\"model_type\":\"hy_v4\",\"moe_intermediate_"
     "size\":48,\"n_group\":2,\"n_routed_experts\":8,\"n_shared_experts\":2,\"num_attentio"
     "n_heads\":3,\"num_hidden_layers\":2,\"num_key_value_heads\":3,\"pad_token_id\":0,\"q"
     "_lora_rank\":16,\"qk_head_dim\":72,\"qk_nope_head_dim\":8,\"vocab_size\":100}"},
    {388636672, 0, -272891904,
     "{\"architectures\":[\"GraniteMoeHybridForCausalLM\"],\"hidden_size\":64,\"intermedi"
     "ate_size\":130,\"layer_types\":[\"linear_attention\",\"full_attention\",\"linear_att"
     "ention\",\"full_attention\",\"linear_attention\",\"full_attention\",\"linear_attenti"
     "on\",\"full_attention\"],\"mamba_chunk_size\":16,\"mamba_conv_bias\":false,\"mamba_d"
     "_head\":1,\"max_position_embeddings\":128,\"model_type\":\"granitemoehybrid\",\"num_"
     "attention_heads\":1,\"num_experts_per_tok\":1,\"num_hidden_layers\":8,\"num_key_va"
     "lue_heads\":1,\"shared_intermediate_size\":24,\"tie_word_embeddings\":true,\"vocab"
     "_size\":257}"},
    {128483328, 0, 0,
     "{\"architectures\":[\"JambaForCausalLM\"],\"hidden_size\":128,\"intermediate_size\":"
     "130,\"mamba_dt_rank\":8,\"max_position_embeddings\":128,\"model_type\":\"jamba\",\"nu"
     "m_attention_heads\":2,\"num_experts\":8,\"num_hidden_layers\":5,\"num_key_value_he"
     "ads\":1,\"use_mambapy\":true,\"vocab_size\":1000}"},
    {2867511296, 0, 279620267,
     "{\"architectures\":[\"KimiLinearForCausalLM\"],\"attention_bias\":true,\"head_dim\":"
     "null,\"hidden_size\":128,\"intermediate_size\":130,\"kv_lora_rank\":24,\"layer_type"
     "s\":[\"linear_attention\",\"linear_attention\",\"linear_attention\",\"linear_attenti"
     "on\",\"full_attention\"],\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\","
     "\"sparse\"],\"model_type\":\"kimi_linear\",\"moe_intermediate_size\":16,\"num_attenti"
     "on_heads\":4,\"num_experts\":8,\"num_experts_per_token\":2,\"num_hidden_layers\":5,"
     "\"num_key_value_heads\":4,\"pad_token_id\":0,\"q_lora_rank\":24,\"qk_head_dim\":136,"
     "\"qk_rope_head_dim\":8,\"tie_word_embeddings\":true,\"v_head_dim\":8,\"vocab_size\":"
     "257}"},
    {308150272, 0, -212336640,
     "{\"architectures\":[\"Llama4ForCausalLM\"],\"attention_bias\":true,\"attention_chun"
     "k_size\":128,\"attn_temperature_tuning\":false,\"hidden_size\":128,\"intermediate_"
     "size\":96,\"layer_types\":[\"chunked_attention\",\"chunked_attention\",\"chunked_att"
     "ention\"],\"max_position_embeddings\":64,\"model_type\":\"llama4_text\",\"moe_layers"
     "\":[0,1,2],\"no_rope_layers\":[1,1,1],\"num_attention_heads\":2,\"num_hidden_layer"
     "s\":3,\"num_key_value_heads\":1,\"tie_word_embeddings\":true,\"vocab_size\":1000}"},
    {229924864, 0, 0,
     "{\"architectures\":[\"DeepseekV32ForCausalLM\"],\"head_dim\":8,\"hidden_size\":64,\"i"
     "ntermediate_size\":130,\"layer_types\":[\"indexed_attention\",\"indexed_attention\""
     "],\"max_position_embeddings\":64,\"mlp_layer_types\":[\"dense\",\"dense\"],\"model_ty"
     "pe\":\"deepseek_v32\",\"moe_intermediate_size\":48,\"n_shared_experts\":2,\"norm_top"
     "k_prob\":false,\"num_attention_heads\":1,\"num_experts_per_tok\":2,\"num_hidden_la"
     "yers\":2,\"num_key_value_heads\":1,\"q_lora_rank\":24,\"qk_head_dim\":136,\"qk_rope_"
     "head_dim\":8,\"tie_word_embeddings\":true,\"topk_group\":1,\"v_head_dim\":24,\"vocab"
     "_size\":257}"},
    {388464640, 0, 0,
     "{\"architectures\":[\"GlmMoeDsaForCausalLM\"],\"attention_bias\":true,\"first_k_den"
     "se_replace\":0,\"head_dim\":8,\"hidden_size\":128,\"indexer_types\":[\"full\",\"full\","
     "\"full\",\"full\",\"full\"],\"intermediate_size\":64,\"layer_types\":[\"indexed_attenti"
     "on\",\"indexed_attention\",\"indexed_attention\",\"indexed_attention\",\"indexed_att"
     "ention\"],\"max_position_embeddings\":128,\"mlp_layer_types\":[\"sparse\",\"sparse\","
     "\"sparse\",\"sparse\",\"sparse\"],\"model_type\":\"glm_moe_dsa\",\"moe_intermediate_siz"
     "e\":48,\"n_shared_experts\":2,\"num_attention_heads\":2,\"num_experts_per_tok\":2,\""
     "num_hidden_layers\":5,\"num_key_value_heads\":2,\"q_lora_rank\":24,\"qk_head_dim\":"
     "16,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":8,\"v_head_dim\":8,\"vocab_size\":100"
     "0}"},
    {20119552, 0, 0,
     "{\"architectures\":[\"MiniMaxM3VLForCausalLM\"],\"head_dim\":32,\"hidden_size\":32,\""
     "intermediate_size\":130,\"layer_types\":[\"full_attention\",\"full_attention\",\"ful"
     "l_attention\"],\"max_position_embeddings\":128,\"mlp_layer_types\":[\"sparse\",\"spa"
     "rse\",\"sparse\"],\"model_type\":\"minimax_m3_vl_text\",\"num_attention_heads\":2,\"nu"
     "m_experts_per_tok\":2,\"num_hidden_layers\":3,\"num_key_value_heads\":1,\"num_loca"
     "l_experts\":4,\"shared_intermediate_size\":24,\"tie_word_embeddings\":true,\"vocab"
     "_size\":1000}"},
    {15482880, 0, 0,
     "{\"architectures\":[\"MiMoV2FlashForCausalLM\"],\"attention_bias\":true,\"head_dim\""
     ":16,\"hidden_size\":64,\"intermediate_size\":130,\"layer_types\":[\"full_attention\""
     ",\"sliding_attention\",\"sliding_attention\"],\"max_position_embeddings\":64,\"mlp_"
     "layer_types\":[\"dense\",\"sparse\",\"sparse\"],\"model_type\":\"mimo_v2_flash\",\"moe_i"
     "ntermediate_size\":48,\"n_group\":2,\"n_routed_experts\":4,\"norm_topk_prob\":false"
     ",\"num_attention_heads\":4,\"num_experts_per_tok\":2,\"num_hidden_layers\":3,\"num_"
     "key_value_heads\":2,\"sliding_window\":128,\"tie_word_embeddings\":true,\"v_head_d"
     "im\":8,\"vocab_size\":100}"},
    {12599296, 0, 0,
     "{\"architectures\":[\"Lfm2ForCausalLM\"],\"conv_bias\":true,\"full_attn_idxs\":[0,1,"
     "2],\"hidden_size\":32,\"intermediate_size\":96,\"layer_types\":[\"full_attention\",\""
     "full_attention\",\"full_attention\"],\"model_type\":\"lfm2\",\"num_attention_heads\":"
     "2,\"num_hidden_layers\":3,\"num_key_value_heads\":1,\"vocab_size\":100}"},
    {187588608, 0, 0,
     "{\"architectures\":[\"Lfm3ForCausalLM\"],\"attention_bias\":true,\"conv_bias\":true,"
     "\"head_dim\":16,\"hidden_size\":192,\"intermediate_size\":96,\"layer_types\":[\"conv\""
     ",\"conv\",\"full_attention\",\"conv\",\"sliding_attention\",\"conv\",\"full_attention\","
     "\"conv\"],\"model_type\":\"lfm3\",\"num_attention_heads\":3,\"num_hidden_layers\":8,\"n"
     "um_key_value_heads\":1,\"pad_token_id\":0,\"sliding_window\":128,\"vocab_size\":100"
     "0}"},
    {397492224, 0, 0,
     "{\"architectures\":[\"AXK2ForCausalLM\"],\"head_dim\":8,\"hidden_size\":64,\"intermed"
     "iate_size\":130,\"kv_lora_rank\":24,\"layer_types\":[\"indexed_attention\",\"indexed"
     "_attention\",\"indexed_attention\",\"indexed_attention\",\"indexed_attention\",\"ind"
     "exed_attention\",\"indexed_attention\",\"indexed_attention\"],\"max_position_embed"
     "dings\":128,\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\",\"sparse\",\"s"
     "parse\",\"sparse\",\"sparse\"],\"model_type\":\"axk2\",\"n_group\":2,\"num_attention_hea"
     "ds\":2,\"num_experts_per_tok\":1,\"num_hidden_layers\":8,\"num_key_value_heads\":2,"
     "\"q_lora_rank\":24,\"qk_head_dim\":16,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":8,"
     "\"topk_group\":1,\"v_head_dim\":8,\"vocab_size\":100}"},
    {1263083520, 0, 0,
     "{\"architectures\":[\"InklingForCausalLM\"],\"chain_hidden_post_norm\":true,\"head_"
     "dim\":16,\"hidden_size\":96,\"intermediate_size\":96,\"layer_types\":[\"hybrid_slidi"
     "ng\",\"hybrid_sliding\",\"hybrid_sliding\"],\"mlp_layer_types\":[\"sparse\",\"sparse\","
     "\"sparse\"],\"model_type\":\"inkling_text\",\"moe_intermediate_size\":48,\"n_routed_e"
     "xperts\":4,\"num_attention_heads\":3,\"num_experts_per_tok\":1,\"num_hidden_layers"
     "\":3,\"num_key_value_heads\":1,\"shared_expert_sink\":false,\"sliding_window_size\""
     ":128,\"vocab_size\":100}"},
    {13713408, 0, 0,
     "{\"architectures\":[\"LagunaForCausalLM\"],\"attention_bias\":true,\"head_dim\":8,\"h"
     "idden_size\":128,\"intermediate_size\":64,\"layer_types\":[\"full_attention\",\"full"
     "_attention\"],\"max_position_embeddings\":64,\"mlp_layer_types\":[\"dense\",\"sparse"
     "\"],\"model_type\":\"laguna\",\"moe_intermediate_size\":16,\"num_attention_heads\":2,"
     "\"num_attention_heads_per_layer\":[2,2],\"num_experts\":8,\"num_experts_per_tok\":"
     "2,\"num_hidden_layers\":2,\"num_key_value_heads\":2,\"shared_expert_intermediate_"
     "size\":40,\"sliding_window\":128,\"tie_word_embeddings\":true,\"vocab_size\":257}"},
};

/* Small configs of families whose layers are not plain attention, and what the reference library's
 * classes have with them: every parameter, tied ones once, and the correction biases and tables of
 * routers that checkpoints hold. Made with transformers 5.23; GLA and RWKV-6 and 7 with
 * flash-linear-attention 0.6. */
#ifndef SCALEMODEL_TESTS_FAMILY_TOTALS_H
#define SCALEMODEL_TESTS_FAMILY_TOTALS_H

static const struct family_total {
    double total;
    const char *config;
} family_totals[] = {
    {2442464, "{\"hidden_size\":384,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
              "\"num_key_value_heads\":2,\"vocab_size\":100,\"intermediate_size\":96,"
              "\"tie_word_embeddings\":false,\"head_dim\":32,\"mamba_n_heads\":4,"
              "\"mamba_n_groups\":2,\"mamba_d_state\":16,\"mamba_conv_bias\":false,"
              "\"attention_bias\":true,\"mlp_bias\":false,\"mamba_proj_bias\":true,"
              "\"attn_layer_indices\":[1],\"architectures\":[\"BambaForCausalLM\"],"
              "\"model_type\":\"bamba\"}"},
    {24235, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":203,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":2,\"architectures\":[\"BertForMaskedLM\"],"
            "\"model_type\":\"bert\"}"},
    {25357, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":203,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":2,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"BertForPreTraining\"],\"model_type\":\"bert\"}"},
    {59939, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":2,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"BertForSequenceClassification\"],\"model_type\":\"bert\"}"},
    {51587, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":32,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":1,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"BertForTokenClassification\"],\"model_type\":\"bert\"}"},
    {25824, "{\"hidden_size\":32,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
            "\"intermediate_size\":32,\"vocab_size\":101,\"max_position_embeddings\":64,"
            "\"type_vocab_size\":1,\"architectures\":[\"BertModel\"],\"model_type\":\"bert\"}"},
    {39073, "{\"text_config\":{\"hidden_size\":32,\"num_hidden_layers\":3,"
            "\"num_attention_heads\":2,\"intermediate_size\":32,\"vocab_size\":101,"
            "\"max_position_embeddings\":64},\"vision_config\":{\"hidden_size\":32,"
            "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":32,"
            "\"image_size\":32,\"patch_size\":8},\"projection_dim\":16,"
            "\"architectures\":[\"CLIPModel\"],\"model_type\":\"clip\"}"},
    {55456, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"architectures\":[\"CLIPTextModel\"],\"model_type\":\"clip_text_model\"}"},
    {14352, "{\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"architectures\":[\"CLIPVisionModel\"],\"model_type\":\"clip_vision_model\"}"},
    {67040, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":2,\"vocab_size\":100,\"intermediate_size\":96,"
            "\"tie_word_embeddings\":true,\"kv_lora_rank\":24,\"qk_rope_head_dim\":8,"
            "\"qk_nope_head_dim\":16,\"v_head_dim\":24,\"n_routed_experts\":8,"
            "\"num_experts_per_tok\":2,\"n_shared_experts\":2,\"moe_intermediate_size\":48,"
            "\"index_n_heads\":2,\"index_head_dim\":16,\"n_group\":2,\"topk_group\":1,"
            "\"attention_bias\":false,\"q_lora_rank\":24,"
            "\"architectures\":[\"DeepseekV32ForCausalLM\"],\"model_type\":\"deepseek_v32\"}"},
    {140299, "{\"vocab_size\":257,\"hidden_size\":32,\"moe_intermediate_size\":16,"
             "\"num_hidden_layers\":5,\"num_attention_heads\":2,\"head_dim\":32,"
             "\"q_lora_rank\":24,\"o_groups\":1,\"o_lora_rank\":8,\"n_routed_experts\":4,"
             "\"num_experts_per_tok\":2,\"index_n_heads\":2,\"index_head_dim\":8,\"hc_mult\":4,"
             "\"tie_word_embeddings\":false,\"architectures\":[\"DeepseekV4ForCausalLM\"],"
             "\"model_type\":\"deepseek_v4\"}"},
    {5753584, "{\"hidden_size\":768,\"num_hidden_layers\":5,\"num_attention_heads\":12,"
              "\"num_key_value_heads\":4,\"vocab_size\":257,\"intermediate_size\":64,"
              "\"tie_word_embeddings\":true,\"head_dim\":32,\"mamba_n_heads\":4,"
              "\"mamba_d_head\":16,\"mamba_d_ssm\":64,\"mamba_n_groups\":1,\"mamba_d_state\":16,"
              "\"mamba_rms_norm\":false,\"mamba_conv_bias\":false,\"attention_bias\":false,"
              "\"mlp_bias\":false,\"projectors_bias\":false,\"mamba_proj_bias\":true,"
              "\"architectures\":[\"FalconH1ForCausalLM\"],\"model_type\":\"falcon_h1\"}"},
    {35968, "{\"hidden_size\":32,\"num_hidden_layers\":3,\"state_size\":16,\"expand\":2,"
            "\"conv_kernel\":3,\"use_bias\":false,\"use_conv_bias\":false,\"vocab_size\":101,"
            "\"tie_word_embeddings\":false,\"architectures\":[\"FalconMambaForCausalLM\"],"
            "\"model_type\":\"falcon_mamba\"}"},
    {325408, "{\"text_config\":{\"hidden_size\":128,\"num_hidden_layers\":8,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":257,"
             "\"intermediate_size\":64,\"head_dim\":8,\"model_type\":\"gemma3_text\"},"
             "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":2,\"intermediate_size\":48,\"image_size\":64,"
             "\"patch_size\":8,\"model_type\":\"siglip_vision_model\",\"vision_use_head\":true},"
             "\"tie_word_embeddings\":true,\"mm_tokens_per_image\":16,"
             "\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\"}"},
    {8279656, "{\"hidden_size\":512,\"num_hidden_layers\":12,\"num_attention_heads\":8,"
              "\"num_key_value_heads\":4,\"vocab_size\":100,\"intermediate_size\":96,"
              "\"tie_word_embeddings\":true,\"head_dim\":32,\"altup_num_inputs\":4,"
              "\"laurel_rank\":16,\"hidden_size_per_layer_input\":8,"
              "\"vocab_size_per_layer_input\":101,\"num_kv_shared_layers\":2,\"sliding_window\":16,"
              "\"attention_bias\":false,\"architectures\":[\"Gemma3nForCausalLM\"],"
              "\"model_type\":\"gemma3n_text\"}"},
    {87072, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_heads\":4,\"vocab_size\":101,"
            "\"num_kv_heads\":2,\"expand_k\":1,\"use_short_conv\":true,\"intermediate_size\":96,"
            "\"architectures\":[\"GLAForCausalLM\"],\"model_type\":\"gla\"}"},
    {141024, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_heads\":4,\"vocab_size\":101,"
             "\"tie_word_embeddings\":true,\"architectures\":[\"GLAForCausalLM\"],"
             "\"model_type\":\"gla\"}"},
    {1153744, "{\"text_config\":{\"hidden_size\":256,\"num_hidden_layers\":3,"
              "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":257,"
              "\"intermediate_size\":64,\"attention_bias\":true,\"model_type\":\"glm4v_text\"},"
              "\"vision_config\":{\"hidden_size\":64,\"depth\":2,\"num_heads\":2,"
              "\"out_hidden_size\":48,\"intermediate_size\":40,\"image_size\":56},"
              "\"tie_word_embeddings\":true,\"architectures\":[\"Glm4vForConditionalGeneration\"],"
              "\"model_type\":\"glm4v\"}"},
    {2129132, "{\"text_config\":{\"hidden_size\":384,\"num_hidden_layers\":8,"
              "\"num_attention_heads\":12,\"num_key_value_heads\":4,\"vocab_size\":257,"
              "\"intermediate_size\":96,\"head_dim\":8,\"attention_bias\":false,"
              "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,"
              "\"n_group\":1,\"topk_group\":1,\"first_k_dense_replace\":1,"
              "\"model_type\":\"glm4v_moe_text\"},\"vision_config\":{\"hidden_size\":64,"
              "\"depth\":2,\"num_heads\":2,\"out_hidden_size\":48,\"intermediate_size\":40,"
              "\"image_size\":56},\"tie_word_embeddings\":true,"
              "\"architectures\":[\"Glm4vMoeForConditionalGeneration\"],"
              "\"model_type\":\"glm4v_moe\"}"},
    {1938408, "{\"hidden_size\":384,\"num_hidden_layers\":8,\"num_attention_heads\":6,"
              "\"num_key_value_heads\":6,\"vocab_size\":100,\"intermediate_size\":64,"
              "\"tie_word_embeddings\":true,\"kv_lora_rank\":24,\"qk_rope_head_dim\":8,"
              "\"qk_nope_head_dim\":8,\"v_head_dim\":24,\"n_routed_experts\":8,"
              "\"num_experts_per_tok\":2,\"n_shared_experts\":2,\"moe_intermediate_size\":16,"
              "\"index_n_heads\":2,\"index_head_dim\":16,\"n_group\":2,\"topk_group\":1,"
              "\"attention_bias\":true,\"q_lora_rank\":24,"
              "\"architectures\":[\"GlmMoeDsaForCausalLM\"],\"model_type\":\"glm_moe_dsa\"}"},
    {605316, "{\"hidden_size\":128,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":4,\"vocab_size\":257,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":false,\"mamba_n_heads\":4,\"mamba_n_groups\":1,"
             "\"mamba_d_state\":16,\"mamba_conv_bias\":true,\"attention_bias\":true,"
             "\"mamba_proj_bias\":false,\"num_local_experts\":0,\"shared_intermediate_size\":48,"
             "\"layer_types\":[\"mamba\",\"attention\",\"attention\",\"mamba\",\"mamba\"],"
             "\"architectures\":[\"GraniteMoeHybridForCausalLM\"],"
             "\"model_type\":\"granitemoehybrid\"}"},
    {420816, "{\"text_config\":{\"hidden_size\":128,\"num_hidden_layers\":5,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"vocab_size\":100,"
             "\"intermediate_size\":96,\"head_dim\":32,\"model_type\":\"llama\"},"
             "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":2,\"intermediate_size\":48,\"image_size\":32,"
             "\"patch_size\":8},\"tie_word_embeddings\":false,\"scale_factor\":2,"
             "\"architectures\":[\"Idefics3ForConditionalGeneration\"],"
             "\"model_type\":\"idefics3\"}"},
    {470896, "{\"text_config\":{\"hidden_size\":192,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"vocab_size\":100,"
             "\"intermediate_size\":96,\"model_type\":\"qwen2\"},"
             "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":1,"
             "\"num_attention_heads\":4,\"intermediate_size\":48,\"image_size\":[32,32],"
             "\"patch_size\":[8,8],\"attention_bias\":true,\"use_qk_norm\":false},"
             "\"tie_word_embeddings\":false,"
             "\"architectures\":[\"InternVLForConditionalGeneration\"],"
             "\"model_type\":\"internvl\"}"},
    {477464, "{\"hidden_size\":128,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":2,\"vocab_size\":100,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":true,\"num_experts\":4,\"attn_layer_period\":2,"
             "\"attn_layer_offset\":0,\"expert_layer_period\":2,\"expert_layer_offset\":1,"
             "\"mamba_d_state\":8,\"mamba_conv_bias\":true,\"mamba_proj_bias\":true,"
             "\"architectures\":[\"JambaForCausalLM\"],\"model_type\":\"jamba\"}"},
    {89487, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":2,\"vocab_size\":257,\"intermediate_size\":64,"
            "\"tie_word_embeddings\":false,\"pad_token_id\":0,\"bos_token_id\":1,"
            "\"eos_token_id\":2,\"kv_lora_rank\":16,\"qk_rope_head_dim\":8,"
            "\"qk_nope_head_dim\":16,\"v_head_dim\":24,\"num_experts\":4,"
            "\"num_experts_per_token\":2,\"moe_intermediate_size\":16,\"num_shared_experts\":2,"
            "\"q_lora_rank\":24,\"attention_bias\":true,\"first_k_dense_replace\":1,"
            "\"linear_attn_config\":{\"head_dim\":16,\"num_heads\":3,"
            "\"short_conv_kernel_size\":3,\"full_attn_layers\":[2],\"kda_layers\":[1]},"
            "\"architectures\":[\"KimiLinearForCausalLM\"],\"model_type\":\"kimi_linear\"}"},
    {963008, "{\"hidden_size\":256,\"num_hidden_layers\":3,\"num_attention_heads\":8,"
             "\"num_key_value_heads\":4,\"vocab_size\":100,\"intermediate_size\":150,"
             "\"tie_word_embeddings\":true,\"conv_bias\":false,\"conv_L_cache\":4,"
             "\"block_auto_adjust_ff_dim\":false,\"block_multiple_of\":32,"
             "\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\"],"
             "\"architectures\":[\"Lfm2ForCausalLM\"],\"model_type\":\"lfm2\"}"},
    {692032, "{\"hidden_size\":256,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
             "\"num_key_value_heads\":4,\"vocab_size\":257,\"intermediate_size\":64,"
             "\"tie_word_embeddings\":false,\"conv_bias\":true,\"conv_L_cache\":3,"
             "\"num_dense_layers\":2,\"num_experts\":4,\"num_experts_per_tok\":2,"
             "\"moe_intermediate_size\":16,\"use_expert_bias\":false,\"layer_types\":[\"conv\","
             "\"full_attention\"],\"architectures\":[\"Lfm2MoeForCausalLM\"],"
             "\"model_type\":\"lfm2_moe\"}"},
    {147040, "{\"text_config\":{\"hidden_size\":96,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":3,\"num_key_value_heads\":1,\"vocab_size\":100,"
             "\"intermediate_size\":64,\"head_dim\":8,\"model_type\":\"llama\"},"
             "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":1,"
             "\"num_attention_heads\":4,\"intermediate_size\":48,\"image_size\":32,"
             "\"patch_size\":8,\"model_type\":\"pixtral\"},\"tie_word_embeddings\":false,"
             "\"multimodal_projector_bias\":false,"
             "\"architectures\":[\"LlavaForConditionalGeneration\"],\"model_type\":\"llava\"}"},
    {658080, "{\"text_config\":{\"hidden_size\":128,\"num_hidden_layers\":8,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":100,"
             "\"intermediate_size\":96,\"head_dim\":32,\"model_type\":\"llama\"},"
             "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":4,\"intermediate_size\":32,\"image_size\":64,"
             "\"patch_size\":16,\"model_type\":\"clip_vision_model\"},"
             "\"tie_word_embeddings\":false,"
             "\"architectures\":[\"LlavaNextForConditionalGeneration\"],"
             "\"model_type\":\"llava_next\"}"},
    {173632, "{\"text_config\":{\"hidden_size\":64,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":100,"
             "\"intermediate_size\":64,\"head_dim\":32,\"model_type\":\"qwen2\"},"
             "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":4,\"intermediate_size\":48,\"image_size\":64,"
             "\"patch_size\":8,\"model_type\":\"siglip_vision_model\"},"
             "\"tie_word_embeddings\":true,"
             "\"architectures\":[\"LlavaOnevisionForConditionalGeneration\"],"
             "\"model_type\":\"llava_onevision\"}"},
    {65792, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"state_size\":8,\"expand\":2,"
            "\"conv_kernel\":4,\"use_bias\":false,\"use_conv_bias\":true,\"vocab_size\":101,"
            "\"tie_word_embeddings\":true,\"architectures\":[\"MambaForCausalLM\"],"
            "\"model_type\":\"mamba\"}"},
    {22656, "{\"hidden_size\":32,\"num_heads\":4,\"head_dim\":16,\"n_groups\":1,"
            "\"state_size\":16,\"num_hidden_layers\":2,\"conv_kernel\":4,\"use_conv_bias\":true,"
            "\"use_bias\":true,\"vocab_size\":101,\"tie_word_embeddings\":false,"
            "\"architectures\":[\"Mamba2ForCausalLM\"],\"model_type\":\"mamba2\"}"},
    {746880, "{\"hidden_size\":192,\"num_hidden_layers\":2,\"num_attention_heads\":6,"
             "\"num_key_value_heads\":2,\"vocab_size\":100,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":true,\"num_local_experts\":4,"
             "\"architectures\":[\"MiniMaxForCausalLM\"],\"model_type\":\"minimax\"}"},
    {655072, "{\"hidden_size\":64,\"num_hidden_layers\":8,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":1,\"vocab_size\":100,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":false,\"head_dim\":8,\"num_local_experts\":4,"
             "\"num_experts_per_tok\":2,\"dense_intermediate_size\":48,"
             "\"shared_intermediate_size\":16,\"index_n_heads\":2,\"index_head_dim\":16,"
             "\"architectures\":[\"MiniMaxM3VLForCausalLM\"],"
             "\"model_type\":\"minimax_m3_vl_text\"}"},
    {1385088, "{\"text_config\":{\"hidden_size\":192,\"num_hidden_layers\":8,"
              "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"vocab_size\":257,"
              "\"intermediate_size\":96,\"head_dim\":32,\"model_type\":\"mistral\"},"
              "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":1,"
              "\"num_attention_heads\":4,\"intermediate_size\":48,\"image_size\":32,"
              "\"patch_size\":8,\"model_type\":\"pixtral\"},\"tie_word_embeddings\":true,"
              "\"multimodal_projector_bias\":false,"
              "\"architectures\":[\"Mistral3ForConditionalGeneration\"],"
              "\"model_type\":\"mistral3\"}"},
    {63040, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":32,\"vocab_size\":203,\"max_position_embeddings\":40,"
            "\"norm_bias\":false,\"mlp_bias\":false,\"attention_bias\":true,"
            "\"classifier_bias\":false,\"decoder_bias\":false,\"pad_token_id\":0,"
            "\"cls_token_id\":1,\"sep_token_id\":2,\"bos_token_id\":1,\"eos_token_id\":2,"
            "\"architectures\":[\"ModernBertForMaskedLM\"],\"model_type\":\"modernbert\"}"},
    {85762, "{\"hidden_size\":64,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
            "\"intermediate_size\":32,\"vocab_size\":203,\"max_position_embeddings\":40,"
            "\"norm_bias\":false,\"mlp_bias\":true,\"attention_bias\":false,"
            "\"classifier_bias\":true,\"decoder_bias\":true,\"pad_token_id\":0,"
            "\"cls_token_id\":1,\"sep_token_id\":2,\"bos_token_id\":1,\"eos_token_id\":2,"
            "\"architectures\":[\"ModernBertForSequenceClassification\"],"
            "\"model_type\":\"modernbert\"}"},
    {84640, "{\"hidden_size\":64,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"norm_bias\":true,\"mlp_bias\":true,\"attention_bias\":false,"
            "\"classifier_bias\":false,\"decoder_bias\":false,\"pad_token_id\":0,"
            "\"cls_token_id\":1,\"sep_token_id\":2,\"bos_token_id\":1,\"eos_token_id\":2,"
            "\"architectures\":[\"ModernBertModel\"],\"model_type\":\"modernbert\"}"},
    {79712, "{\"d_model\":32,\"d_kv\":8,\"d_ff\":96,\"num_heads\":2,\"num_layers\":2,"
            "\"num_decoder_layers\":4,\"feed_forward_proj\":\"gated-gelu\",\"vocab_size\":101,"
            "\"tie_word_embeddings\":false,\"architectures\":[\"MT5ForConditionalGeneration\"],"
            "\"model_type\":\"mt5\"}"},
    {85912, "{\"hidden_size\":64,\"num_hidden_layers\":5,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":257,\"intermediate_size\":64,"
            "\"tie_word_embeddings\":true,\"head_dim\":16,\"mamba_num_heads\":4,"
            "\"mamba_head_dim\":16,\"n_groups\":1,\"ssm_state_size\":16,\"use_conv_bias\":false,"
            "\"attention_bias\":false,\"mlp_bias\":false,\"use_bias\":false,"
            "\"mamba_proj_bias\":true,\"n_routed_experts\":4,\"moe_intermediate_size\":24,"
            "\"moe_shared_expert_intermediate_size\":40,\"moe_latent_size\":12,"
            "\"layers_block_type\":[\"mamba\",\"mlp\",\"attention\",\"mamba\",\"mlp\"],"
            "\"architectures\":[\"NemotronHForCausalLM\"],\"model_type\":\"nemotron_h\"}"},
    {70960, "{\"text_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"vocab_size\":257,"
            "\"intermediate_size\":96,\"head_dim\":32,\"model_type\":\"gemma\"},"
            "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":3,"
            "\"num_attention_heads\":2,\"intermediate_size\":32,\"image_size\":32,"
            "\"patch_size\":8,\"model_type\":\"siglip_vision_model\",\"vision_use_head\":false},"
            "\"tie_word_embeddings\":false,\"projection_dim\":48,"
            "\"architectures\":[\"PaliGemmaForConditionalGeneration\"],"
            "\"model_type\":\"paligemma\"}"},
    {1791376, "{\"text_config\":{\"hidden_size\":256,\"num_hidden_layers\":5,"
              "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":100,"
              "\"intermediate_size\":64,\"model_type\":\"qwen2_5_vl_text\"},"
              "\"vision_config\":{\"hidden_size\":64,\"depth\":2,\"num_heads\":2,"
              "\"out_hidden_size\":48,\"intermediate_size\":40},\"tie_word_embeddings\":true,"
              "\"architectures\":[\"Qwen2_5_VLForConditionalGeneration\"],"
              "\"model_type\":\"qwen2_5_vl\"}"},
    {323904, "{\"text_config\":{\"hidden_size\":128,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":257,"
             "\"intermediate_size\":64,\"model_type\":\"qwen2\"},\"tie_word_embeddings\":false,"
             "\"audio_config\":{\"d_model\":32,\"encoder_layers\":2,\"encoder_attention_heads\":2,"
             "\"encoder_ffn_dim\":128,\"num_mel_bins\":16,\"max_source_positions\":30},"
             "\"architectures\":[\"Qwen2AudioForConditionalGeneration\"],"
             "\"model_type\":\"qwen2_audio\"}"},
    {4643504,
     "{\"text_config\":{\"hidden_size\":512,\"num_hidden_layers\":5,"
     "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"vocab_size\":257,"
     "\"intermediate_size\":64,\"model_type\":\"qwen2_vl_text\"},"
     "\"vision_config\":{\"embed_dim\":32,\"depth\":2,\"num_heads\":2,\"hidden_size\":48,"
     "\"mlp_ratio\":2,\"patch_size\":14},\"tie_word_embeddings\":true,"
     "\"architectures\":[\"Qwen2VLForConditionalGeneration\"],\"model_type\":\"qwen2_vl\"}"},
    {458980, "{\"text_config\":{\"hidden_size\":256,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"vocab_size\":100,"
             "\"intermediate_size\":96,\"tie_word_embeddings\":false,\"head_dim\":8,"
             "\"linear_num_key_heads\":1,\"linear_num_value_heads\":1,\"linear_key_head_dim\":8,"
             "\"linear_value_head_dim\":16,\"linear_conv_kernel_dim\":4,\"attention_bias\":false,"
             "\"model_type\":\"qwen3_5_text\"},\"vision_config\":{\"hidden_size\":64,\"depth\":2,"
             "\"num_heads\":2,\"out_hidden_size\":48,\"intermediate_size\":40,"
             "\"num_position_embeddings\":64},\"tie_word_embeddings\":false,"
             "\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\"}"},
    {2597740, "{\"hidden_size\":384,\"num_hidden_layers\":8,\"num_attention_heads\":12,"
              "\"num_key_value_heads\":4,\"vocab_size\":257,\"intermediate_size\":64,"
              "\"tie_word_embeddings\":false,\"head_dim\":8,\"linear_num_key_heads\":1,"
              "\"linear_num_value_heads\":1,\"linear_key_head_dim\":16,"
              "\"linear_value_head_dim\":16,\"linear_conv_kernel_dim\":3,\"attention_bias\":true,"
              "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":48,"
              "\"shared_expert_intermediate_size\":16,"
              "\"architectures\":[\"Qwen3_5MoeForCausalLM\"],\"model_type\":\"qwen3_5_moe_text\"}"},
    {147070, "{\"hidden_size\":128,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":4,\"vocab_size\":100,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":true,\"head_dim\":8,\"linear_num_key_heads\":1,"
             "\"linear_num_value_heads\":1,\"linear_key_head_dim\":16,\"linear_value_head_dim\":8,"
             "\"linear_conv_kernel_dim\":4,\"attention_bias\":true,"
             "\"architectures\":[\"Qwen3_5ForCausalLM\"],\"model_type\":\"qwen3_5_text\"}"},
    {544112, "{\"hidden_size\":128,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":2,\"vocab_size\":257,\"intermediate_size\":96,"
             "\"tie_word_embeddings\":false,\"head_dim\":16,\"linear_num_key_heads\":2,"
             "\"linear_num_value_heads\":2,\"linear_key_head_dim\":16,"
             "\"linear_value_head_dim\":16,\"linear_conv_kernel_dim\":3,\"attention_bias\":false,"
             "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":48,"
             "\"shared_expert_intermediate_size\":16,\"decoder_sparse_step\":1,"
             "\"mlp_only_layers\":[1],\"architectures\":[\"Qwen3NextForCausalLM\"],"
             "\"model_type\":\"qwen3_next\"}"},
    {678672,
     "{\"text_config\":{\"hidden_size\":256,\"num_hidden_layers\":3,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":100,"
     "\"intermediate_size\":96,\"head_dim\":32,\"model_type\":\"qwen3_vl_text\"},"
     "\"vision_config\":{\"hidden_size\":32,\"depth\":2,\"num_heads\":2,"
     "\"out_hidden_size\":48,\"intermediate_size\":40,\"num_position_embeddings\":16,"
     "\"deepstack_visual_indexes\":[0]},\"tie_word_embeddings\":false,"
     "\"architectures\":[\"Qwen3VLForConditionalGeneration\"],\"model_type\":\"qwen3_vl\"}"},
    {197984, "{\"text_config\":{\"hidden_size\":64,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":257,"
             "\"intermediate_size\":96,\"head_dim\":32,\"num_experts\":4,"
             "\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,"
             "\"model_type\":\"qwen3_vl_moe_text\"},\"vision_config\":{\"hidden_size\":32,"
             "\"depth\":2,\"num_heads\":2,\"out_hidden_size\":48,\"intermediate_size\":40,"
             "\"num_position_embeddings\":64,\"deepstack_visual_indexes\":[]},"
             "\"tie_word_embeddings\":true,"
             "\"architectures\":[\"Qwen3VLMoeForConditionalGeneration\"],"
             "\"model_type\":\"qwen3_vl_moe\"}"},
    {162656, "{\"hidden_size\":64,\"num_hidden_layers\":3,\"vocab_size\":101,"
             "\"attention_hidden_size\":48,\"architectures\":[\"RwkvForCausalLM\"],"
             "\"model_type\":\"rwkv\"}"},
    {468480, "{\"hidden_size\":128,\"num_hidden_layers\":2,\"num_heads\":4,\"vocab_size\":101,"
             "\"proj_low_rank_dim\":8,\"architectures\":[\"RWKV6ForCausalLM\"],"
             "\"model_type\":\"rwkv6\"}"},
    {748288, "{\"hidden_size\":128,\"num_hidden_layers\":3,\"head_dim\":32,\"vocab_size\":101,"
             "\"decay_low_rank_dim\":16,\"a_low_rank_dim\":8,"
             "\"architectures\":[\"RWKV7ForCausalLM\"],\"model_type\":\"rwkv7\"}"},
    {57026, "{\"text_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":32,\"vocab_size\":101,"
            "\"max_position_embeddings\":64,\"projection_size\":32},"
            "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":1,"
            "\"num_attention_heads\":2,\"intermediate_size\":32,\"image_size\":32,"
            "\"patch_size\":16},\"architectures\":[\"SiglipModel\"],\"model_type\":\"siglip\"}"},
    {57024, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":32,\"vocab_size\":101,\"max_position_embeddings\":64,"
            "\"architectures\":[\"SiglipTextModel\"],\"model_type\":\"siglip_text_model\"}"},
    {95840, "{\"hidden_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":16,"
            "\"vision_use_head\":true,\"architectures\":[\"SiglipVisionModel\"],"
            "\"model_type\":\"siglip_vision_model\"}"},
    {15808, "{\"d_model\":32,\"d_kv\":8,\"d_ff\":32,\"num_heads\":4,\"num_layers\":2,"
            "\"num_decoder_layers\":2,\"feed_forward_proj\":\"relu\",\"vocab_size\":101,"
            "\"tie_word_embeddings\":false,\"architectures\":[\"T5EncoderModel\"],"
            "\"model_type\":\"t5\"}"},
    {97600, "{\"d_model\":64,\"d_kv\":8,\"d_ff\":96,\"num_heads\":2,\"num_layers\":3,"
            "\"num_decoder_layers\":2,\"feed_forward_proj\":\"relu\",\"vocab_size\":101,"
            "\"tie_word_embeddings\":true,\"architectures\":[\"T5ForConditionalGeneration\"],"
            "\"model_type\":\"t5\"}"},
    {98272, "{\"d_model\":32,\"d_kv\":16,\"d_ff\":32,\"num_heads\":4,\"num_layers\":2,"
            "\"num_decoder_layers\":4,\"feed_forward_proj\":\"relu\",\"vocab_size\":101,"
            "\"tie_word_embeddings\":false,\"architectures\":[\"T5Model\"],\"model_type\":\"t5\"}"},
    {34560, "{\"d_model\":32,\"d_kv\":16,\"d_ff\":32,\"num_heads\":4,\"num_layers\":3,"
            "\"num_decoder_layers\":2,\"feed_forward_proj\":\"relu\",\"vocab_size\":101,"
            "\"tie_word_embeddings\":true,\"architectures\":[\"UMT5EncoderModel\"],"
            "\"model_type\":\"umt5\"}"},
    {227328, "{\"d_model\":64,\"d_kv\":16,\"d_ff\":96,\"num_heads\":2,\"num_layers\":3,"
             "\"num_decoder_layers\":4,\"feed_forward_proj\":\"gated-gelu\",\"vocab_size\":101,"
             "\"tie_word_embeddings\":true,\"architectures\":[\"UMT5ForConditionalGeneration\"],"
             "\"model_type\":\"umt5\"}"},
    {86290, "{\"hidden_size\":64,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"image_size\":64,\"patch_size\":8,\"qkv_bias\":true,"
            "\"architectures\":[\"ViTForImageClassification\"],\"model_type\":\"vit\"}"},
    {48816, "{\"hidden_size\":32,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":64,\"patch_size\":16,\"qkv_bias\":true,"
            "\"architectures\":[\"ViTModel\"],\"model_type\":\"vit\"}"},
    {1956208,
     "{\"d_model\":32,\"encoder_layers\":1,\"decoder_layers\":2,"
     "\"encoder_attention_heads\":4,\"decoder_attention_heads\":4,\"encoder_ffn_dim\":48,"
     "\"decoder_ffn_dim\":32,\"vocab_size\":60000,\"num_mel_bins\":16,"
     "\"max_source_positions\":60,\"max_target_positions\":20,"
     "\"architectures\":[\"WhisperForConditionalGeneration\"],\"model_type\":\"whisper\"}"},
    {59909, "{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"intermediate_size\":48,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":1,\"id2label\":{\"0\":\"a\"},"
            "\"architectures\":[\"XLMRobertaForMaskedLM\"],\"model_type\":\"xlm-roberta\"}"},
    {28353, "{\"hidden_size\":32,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
            "\"intermediate_size\":32,\"vocab_size\":203,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":1,\"id2label\":{\"0\":\"a\"},"
            "\"architectures\":[\"XLMRobertaForSequenceClassification\"],"
            "\"model_type\":\"xlm-roberta\"}"},
    {18592, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":32,\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"type_vocab_size\":1,\"id2label\":{\"0\":\"a\"},"
            "\"architectures\":[\"XLMRobertaModel\"],\"model_type\":\"xlm-roberta\"}"},
    {193824, "{\"hidden_size\":32,\"num_hidden_layers\":20,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":1,\"intermediate_size\":48,\"n_mamba_heads\":1,"
             "\"mamba_d_state\":8,\"mamba_conv_bias\":true,\"mamba_proj_bias\":true,"
             "\"vocab_size\":101,\"tie_word_embeddings\":true,\"attn_layer_period\":6,"
             "\"attn_layer_offset\":0,\"architectures\":[\"ZambaForCausalLM\"],"
             "\"model_type\":\"zamba\"}"},
    {156032, "{\"hidden_size\":32,\"num_attention_heads\":2,\"num_key_value_heads\":2,"
             "\"intermediate_size\":48,\"mamba_d_state\":8,\"mamba_ngroups\":2,"
             "\"n_mamba_heads\":4,\"num_mem_blocks\":1,\"use_shared_attention_adapter\":true,"
             "\"use_mem_rope\":false,\"adapter_rank\":8,\"vocab_size\":101,"
             "\"add_bias_linear\":true,\"use_conv_bias\":false,\"tie_word_embeddings\":true,"
             "\"num_hidden_layers\":14,\"layers_block_type\":[\"mamba\",\"mamba\",\"mamba\","
             "\"hybrid\",\"mamba\",\"mamba\",\"hybrid\",\"mamba\",\"mamba\",\"hybrid\",\"mamba\","
             "\"mamba\",\"hybrid\",\"mamba\"],\"architectures\":[\"Zamba2ForCausalLM\"],"
             "\"model_type\":\"zamba2\"}"},
};

#endif

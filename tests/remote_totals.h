/* The same of decoders whose classes are published beside their checkpoints: HunYuan, Klear,
 * TeleChat 3, Ling 2.0 linear, Phi-3-small and Youtu as mlx-lm 0.32 makes them, Ling 2.5 as its own
 * class does, Phi-4-mini-flash by the size of its checkpoint (7,706,608,640 bytes: exponents of
 * scans and shares of differential attention in fp32, all else in bf16), Step-3, Spark 2.5 and
 * Nanbeige by the shapes in SGLang's classes, openPangu Pro MoE 2 and Jais by those in vLLM's,
 * Time-MoE as its own class does, Wan by the modules of its repository; xLSTM with biases by
 * transformers 5.24. */
#pragma once
#include "family_totals.h"

static const struct family_total remote_totals[] = {
    {522592, "{\"architectures\":[\"HunYuanForCausalLM\"],\"attention_bias\":false,\"cla_share_f"
             "actor\":2,\"hidden_size\":64,\"intermediate_size\":96,\"max_position_embeddings\":"
             "128,\"mlp_bias\":false,\"model_type\":\"hunyuan\",\"moe_topk\":2,\"num_attention_h"
             "eads\":4,\"num_experts\":4,\"num_hidden_layers\":5,\"num_key_value_heads\":2,\"num"
             "_shared_expert\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"alpha\":1000.0,\"fac"
             "tor\":1.0,\"type\":\"dynamic\"},\"rope_theta\":10000.0,\"tie_word_embeddings\":tru"
             "e,\"use_cla\":true,\"use_mixed_mlp_moe\":true,\"use_qk_norm\":true,\"vocab_size\":"
             "100}"},
    {242552, "{\"architectures\":[\"KlearMoeForCausalLM\"],\"attention_bias\":false,\"decoder_sp"
             "arse_step\":1,\"hidden_size\":64,\"intermediate_size\":96,\"max_position_embedding"
             "s\":128,\"mlp_bias\":false,\"mlp_only_layers\":[1],\"model_type\":\"Klear\",\"moe_"
             "intermediate_size\":32,\"n_shared_experts\":2,\"norm_topk_prob\":true,\"num_attent"
             "ion_heads\":4,\"num_experts\":4,\"num_experts_per_tok\":2,\"num_hidden_layers\":5,"
             "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"tie_word"
             "_embeddings\":false,\"vocab_size\":100}"},
    {167104, "{\"architectures\":[\"TeleChat3ForCausalLM\"],\"attention_bias\":false,\"hidden_si"
             "ze\":64,\"intermediate_size\":96,\"max_position_embeddings\":128,\"mlp_bias\":fals"
             "e,\"model_type\":\"telechat3\",\"num_attention_heads\":4,\"num_hidden_layers\":5,"
             "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"tie_word"
             "_embeddings\":false,\"vocab_size\":100}"},
    {333312, "{\"architectures\":[\"BailingMoeLinearV2ForCausalLM\"],\"attention_bias\":false,\""
             "first_k_dense_replace\":1,\"group_norm_size\":2,\"head_dim\":16,\"hidden_size\":64"
             ",\"intermediate_size\":96,\"layer_group_size\":2,\"max_position_embeddings\":128,"
             "\"mlp_bias\":false,\"model_type\":\"bailing_moe_linear\",\"moe_intermediate_size\""
             ":32,\"moe_router_enable_expert_bias\":true,\"n_group\":2,\"norm_topk_prob\":true,"
             "\"num_attention_heads\":4,\"num_experts\":8,\"num_experts_per_tok\":2,\"num_hidden"
             "_layers\":5,\"num_key_value_heads\":2,\"num_shared_experts\":1,\"rms_norm_eps\":1e"
             "-05,\"rope_theta\":10000.0,\"score_function\":\"sigmoid\",\"tie_word_embeddings\":"
             "false,\"topk_group\":1,\"use_qk_norm\":true,\"vocab_size\":100}"},
    {403072, "{\"architectures\":[\"BailingMoeLinearV2ForCausalLM\"],\"attention_bias\":false,\""
             "first_k_dense_replace\":0,\"group_norm_size\":1,\"head_dim\":16,\"hidden_size\":64"
             ",\"intermediate_size\":96,\"layer_group_size\":4,\"max_position_embeddings\":128,"
             "\"mlp_bias\":false,\"model_type\":\"bailing_moe_linear\",\"moe_intermediate_size\""
             ":32,\"n_group\":1,\"norm_topk_prob\":true,\"num_attention_heads\":4,\"num_experts"
             "\":8,\"num_experts_per_tok\":2,\"num_hidden_layers\":5,\"num_key_value_heads\":2,"
             "\"num_shared_experts\":2,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"tie_word_"
             "embeddings\":true,\"topk_group\":1,\"use_qk_norm\":false,\"vocab_size\":100}"},
    {100800, "{\"architectures\":[\"Phi3SmallForCausalLM\"],\"dense_attention_every_n_layers\":2"
             ",\"ff_intermediate_size\":96,\"gegelu_limit\":20.0,\"hidden_size\":64,\"layer_norm"
             "_epsilon\":1e-05,\"model_type\":\"phi3small\",\"num_attention_heads\":4,\"num_hidd"
             "en_layers\":3,\"num_key_value_heads\":2,\"tie_word_embeddings\":true,\"vocab_size"
             "\":100}"},
    {72368, "{\"architectures\":[\"YoutuLLMForCausalLM\"],\"hidden_size\":64,\"intermediate_size"
            "\":96,\"kv_lora_rank\":24,\"model_type\":\"youtu_llm\",\"num_attention_heads\":4,\""
            "num_hidden_layers\":2,\"num_key_value_heads\":4,\"q_lora_rank\":32,\"qk_nope_head_d"
            "im\":16,\"qk_rope_head_dim\":8,\"v_head_dim\":16,\"vocab_size\":100}"},
    {3852562944, "{\"architectures\":[\"Phi4FlashForCausalLM\"],\"embd_pdrop\":0.0,\"hidden_act"
                 "\":\"silu\",\"hidden_size\":2560,\"intermediate_size\":10240,\"layer_norm_eps"
                 "\":1e-05,\"lm_head_bias\":false,\"max_position_embeddings\":262144,\"mb_per_la"
                 "yer\":2,\"mlp_bias\":false,\"model_type\":\"phi4flash\",\"num_attention_heads"
                 "\":40,\"num_hidden_layers\":32,\"num_key_value_heads\":20,\"resid_pdrop\":0.0,"
                 "\"sliding_window\":512,\"tie_word_embeddings\":true,\"vocab_size\":200064}"},
    {17267695104, "{\"architectures\":[\"BailingMoeV2_5ForCausalLM\"],\"first_k_dense_replace\":"
                  "1,\"group_norm_size\":4,\"head_dim\":128,\"hidden_size\":2048,\"intermediate_"
                  "size\":5120,\"kv_lora_rank\":512,\"layer_group_size\":5,\"model_type\":\"bail"
                  "ing_moe_v2_5\",\"moe_intermediate_size\":512,\"moe_router_enable_expert_bias"
                  "\":true,\"n_group\":8,\"num_attention_heads\":16,\"num_experts\":256,\"num_ex"
                  "perts_per_tok\":8,\"num_hidden_layers\":20,\"num_key_value_heads\":4,\"num_ne"
                  "xtn_predict_layers\":1,\"num_shared_experts\":1,\"partial_rotary_factor\":0.5"
                  ",\"qk_head_dim\":192,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"tie_w"
                  "ord_embeddings\":false,\"topk_group\":4,\"use_bias\":false,\"use_qk_norm\":tr"
                  "ue,\"use_qkv_bias\":false,\"v_head_dim\":128,\"vocab_size\":157184}"},
    {316294538240, "{\"architectures\":[\"Step3TextForCausalLM\"],\"head_dim\":256,\"hidden_size"
                   "\":7168,\"intermediate_size\":18432,\"max_seq_len\":65536,\"model_type\":\"s"
                   "tep3_text\",\"moe_intermediate_size\":5120,\"moe_layers_enum\":\"4,5,6,7,8,9"
                   ",10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,"
                   "35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59\""
                   ",\"moe_num_experts\":48,\"moe_top_k\":3,\"norm_expert_weight\":false,\"num_a"
                   "ttention_groups\":1,\"num_attention_heads\":64,\"num_hidden_layers\":61,\"rm"
                   "s_norm_eps\":1e-05,\"rope_theta\":500000,\"share_expert_dim\":5120,\"share_q"
                   "_dim\":2048,\"vocab_size\":128815}"},
    {1711851520, "{\"architectures\":[\"Spark2_5ForCausalLM\"],\"head_dim\":256,\"headwise_attn_"
                 "output_gate\":true,\"hidden_size\":2048,\"intermediate_size\":6656,\"layer_typ"
                 "es\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full"
                 "_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\""
                 ",\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_atte"
                 "ntion\",\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"slidi"
                 "ng_attention\",\"full_attention\",\"sliding_attention\",\"sliding_attention\","
                 "\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"sliding_atten"
                 "tion\",\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"slidin"
                 "g_attention\",\"sliding_attention\",\"full_attention\"],\"max_position_embeddi"
                 "ngs\":8192,\"model_type\":\"spark2_5\",\"num_attention_heads\":8,\"num_hidden_"
                 "layers\":28,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"sliding_window"
                 "\":512,\"tie_word_embeddings\":true,\"vocab_size\":133120}"},
    {3685358592, "{\"architectures\":[\"NanbeigeForCausalLM\"],\"attention_bias\":false,\"head_d"
                 "im\":64,\"hidden_act\":\"silu\",\"hidden_size\":3072,\"intermediate_size\":107"
                 "52,\"max_position_embeddings\":4096,\"model_type\":\"nanbeige\",\"num_attentio"
                 "n_heads\":48,\"num_hidden_layers\":22,\"num_key_value_heads\":8,\"num_loops\":"
                 "2,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_theta\":50000.0,\"skip_lo"
                 "op_final_norm\":false,\"tie_word_embeddings\":false,\"vocab_size\":166144}"},
    {401044, "{\"add_out_norm\":true,\"architectures\":[\"xLSTMForCausalLM\"],\"autocast_kernel_"
             "dtype\":\"bfloat16\",\"chunk_size\":64,\"chunkwise_kernel\":\"chunkwise--native_au"
             "tograd\",\"embedding_dim\":64,\"eps\":1e-06,\"ffn_proj_factor\":2.667,\"ffn_round_"
             "up_to_multiple_of\":64,\"gate_soft_cap\":15.0,\"hidden_size\":64,\"inference_state"
             "_dtype\":\"float32\",\"max_inference_chunksize\":16384,\"mode\":\"inference\",\"mo"
             "del_type\":\"xlstm\",\"norm_eps\":1e-06,\"norm_reduction_force_float32\":true,\"nu"
             "m_blocks\":5,\"num_heads\":2,\"num_hidden_layers\":5,\"output_logit_soft_cap\":30."
             "0,\"qk_dim_factor\":0.5,\"return_last_states\":true,\"sequence_kernel\":\"native_s"
             "equence__native\",\"step_kernel\":\"native\",\"tie_word_embeddings\":false,\"use_b"
             "ias\":true,\"v_dim_factor\":1.0,\"vocab_size\":1000,\"weight_mode\":\"single\"}"},
    /* by flash-linear-attention 0.6 */
    {446144, "{\"allow_neg_eigval\":true,\"architectures\":[\"DeltaNetForCausalLM\"],"
             "\"attn\":{\"layers\":[1],\"num_heads\":2,\"num_kv_heads\":1,\"qkv_bias\":true,"
             "\"rope_theta\":10000.0,\"window_size\":null},\"expand_v\":2,\"hidden_ratio\":2,"
             "\"hidden_size\":128,\"model_type\":\"delta_net\",\"num_heads\":4,"
             "\"num_hidden_layers\":2,\"use_gate\":true,\"vocab_size\":257}"},
    {336390, "{\"architectures\":[\"ForgettingTransformerForCausalLM\"],\"hidden_ratio\":2,"
             "\"hidden_size\":128,\"intermediate_size\":96,"
             "\"model_type\":\"forgetting_transformer\",\"num_heads\":2,\"num_hidden_layers\":3,"
             "\"num_kv_heads\":2,\"qk_norm\":true,\"qkv_bias\":true,\"vocab_size\":100}"},
    {1382192, "{\"allow_neg_eigval\":true,\"architectures\":[\"GatedDeltaNetForCausalLM\"],"
              "\"attn\":{\"layers\":[1],\"num_heads\":2,\"num_kv_heads\":1,\"qkv_bias\":false,"
              "\"rope_theta\":10000.0,\"window_size\":16},\"expand_v\":1,\"head_dim\":32,"
              "\"hidden_ratio\":2,\"hidden_size\":256,\"model_type\":\"gated_deltanet\","
              "\"num_heads\":4,\"num_hidden_layers\":2,\"num_v_heads\":8,"
              "\"use_short_conv\":false,\"vocab_size\":257}"},
    {726272, "{\"architectures\":[\"HGRNForCausalLM\"],\"attn\":{\"layers\":[1],\"num_heads\":2,"
             "\"num_kv_heads\":1,\"qkv_bias\":true,\"rope_theta\":10000.0,\"window_size\":16},"
             "\"hidden_size\":256,\"intermediate_size\":130,\"model_type\":\"hgrn\","
             "\"num_heads\":4,\"num_hidden_layers\":2,\"tie_word_embeddings\":true,"
             "\"use_lower_bound\":false,\"vocab_size\":257}"},
    {321536, "{\"architectures\":[\"HGRN2ForCausalLM\"],\"attn\":{\"layers\":[1],"
             "\"num_heads\":2,\"num_kv_heads\":2,\"qkv_bias\":true,\"rope_theta\":10000.0,"
             "\"window_size\":16},\"expand_ratio\":16,\"hidden_size\":128,"
             "\"intermediate_size\":96,\"model_type\":\"hgrn2\",\"num_heads\":8,"
             "\"num_hidden_layers\":3,\"tie_word_embeddings\":true,\"use_lower_bound\":false,"
             "\"vocab_size\":100}"},
    {245268, "{\"allow_neg_eigval\":true,\"architectures\":[\"KDAForCausalLM\"],"
             "\"attn\":{\"layers\":[1],\"num_heads\":2,\"num_kv_heads\":2,\"qkv_bias\":false,"
             "\"rope_theta\":10000.0,\"window_size\":null},\"head_dim\":16,\"hidden_ratio\":2,"
             "\"hidden_size\":128,\"intermediate_size\":96,\"model_type\":\"kda\","
             "\"num_heads\":4,\"num_hidden_layers\":2,\"use_short_conv\":false,"
             "\"vocab_size\":257}"},
    {128832, "{\"architectures\":[\"LinearAttentionForCausalLM\"],\"attn\":{\"layers\":[1],"
             "\"num_heads\":2,\"num_kv_heads\":1,\"qkv_bias\":true,\"rope_theta\":10000.0,"
             "\"window_size\":null},\"expand_k\":0.5,\"feature_map\":\"identity\","
             "\"hidden_ratio\":2,\"hidden_size\":64,\"intermediate_size\":130,"
             "\"model_type\":\"linear_attn\",\"num_heads\":2,\"num_hidden_layers\":3,"
             "\"tie_feature_map_qk\":true,\"tie_word_embeddings\":true,\"vocab_size\":257}"},
    {203744, "{\"architectures\":[\"MoBAForCausalLM\"],\"hidden_size\":64,"
             "\"model_type\":\"moba\",\"num_heads\":2,\"num_hidden_layers\":3,"
             "\"num_kv_heads\":1,\"qk_norm\":true,\"tie_word_embeddings\":true,"
             "\"use_output_gate\":true,\"vocab_size\":100}"},
    {84032, "{\"architectures\":[\"NSAForCausalLM\"],\"head_dim\":16,\"hidden_ratio\":2,"
            "\"hidden_size\":64,\"intermediate_size\":130,\"model_type\":\"nsa\","
            "\"num_heads\":2,\"num_hidden_layers\":2,\"num_kv_heads\":2,\"qkv_bias\":true,"
            "\"tie_word_embeddings\":true,\"vocab_size\":257}"},
    {517792, "{\"architectures\":[\"RetNetForCausalLM\"],\"attn\":{\"layers\":[1],"
             "\"num_heads\":2,\"num_kv_heads\":1,\"qkv_bias\":false,\"rope_theta\":10000.0,"
             "\"window_size\":null},\"expand_k\":0.5,\"expand_v\":1,\"hidden_ratio\":4,"
             "\"hidden_size\":128,\"model_type\":\"retnet\",\"num_heads\":4,"
             "\"num_hidden_layers\":2,\"use_output_gate\":false,\"vocab_size\":100}"},
    {239232, "{\"architectures\":[\"StickBreakingAttentionForCausalLM\"],\"hidden_ratio\":2,"
             "\"hidden_size\":128,\"intermediate_size\":96,"
             "\"model_type\":\"stickbreaking_attn\",\"num_heads\":4,\"num_hidden_layers\":2,"
             "\"qk_norm\":true,\"qkv_bias\":true,\"tie_word_embeddings\":true,"
             "\"vocab_size\":257}"},
    {133824, "{\"architectures\":[\"ABCForCausalLM\"],\"attn\":{\"layers\":[1],\"num_heads\":2,"
             "\"num_kv_heads\":1,\"qkv_bias\":true,\"rope_theta\":10000.0,\"window_size\":null},"
             "\"hidden_ratio\":2,\"hidden_size\":64,\"intermediate_size\":96,"
             "\"model_type\":\"abc\",\"num_heads\":2,\"num_hidden_layers\":3,"
             "\"tie_word_embeddings\":true,\"use_rope\":false,\"vocab_size\":257}"},
    /* by mlx-lm 0.32 */
    {95176, "{\"model_type\":\"iquestloopcoder\",\"hidden_size\":64,\"num_hidden_layers\":2,"
            "\"intermediate_size\":96,\"num_attention_heads\":4,\"rms_norm_eps\":1e-06,"
            "\"vocab_size\":257,\"head_dim\":16,\"num_key_value_heads\":2,"
            "\"attention_bias\":true,\"tie_word_embeddings\":false,\"loop_num\":2,"
            "\"loop_window_size\":16}"},
    {845312, "{\"model_type\":\"plamo\",\"hidden_size\":256,\"num_hidden_layers\":3,"
             "\"intermediate_size\":96,\"num_attention_heads\":16,\"rms_norm_eps\":1e-06,"
             "\"vocab_size\":257,\"n_shared_head\":4}"},
    /* whose unembedding: what a wrapper and its language model say of it, or leave out */
    {57264, "{\"text_config\":{\"model_type\":\"qwen2\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":101,\"tie_word_embeddings\":false},"
            "\"vision_config\":{\"hidden_size\":32,\"intermediate_size\":40,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"image_size\":[28,28],"
            "\"patch_size\":[14,14],\"model_type\":\"internvl_vision\"},"
            "\"architectures\":[\"InternVLForConditionalGeneration\"],"
            "\"model_type\":\"internvl\"}"},
    {59776, "{\"text_config\":{\"model_type\":\"mistral\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":101,\"head_dim\":16,"
            "\"tie_word_embeddings\":false},\"vision_config\":{\"hidden_size\":32,"
            "\"intermediate_size\":40,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"image_size\":28,\"patch_size\":14,\"model_type\":\"pixtral\",\"head_dim\":16},"
            "\"architectures\":[\"Mistral3ForConditionalGeneration\"],"
            "\"model_type\":\"mistral3\"}"},
    {53968, "{\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":101,\"tie_word_embeddings\":true},"
            "\"vision_config\":{\"hidden_size\":32,\"intermediate_size\":40,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"image_size\":28,"
            "\"patch_size\":14,\"model_type\":\"clip_vision_model\"},"
            "\"tie_word_embeddings\":false,"
            "\"architectures\":[\"LlavaForConditionalGeneration\"],\"model_type\":\"llava\"}"},
    {57232, "{\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":101,\"tie_word_embeddings\":true},"
            "\"vision_config\":{\"hidden_size\":32,\"intermediate_size\":40,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"image_size\":28,"
            "\"patch_size\":14,\"model_type\":\"clip_vision_model\"},"
            "\"architectures\":[\"LlavaNextForConditionalGeneration\"],"
            "\"model_type\":\"llava_next\"}"},
    {59088, "{\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"vocab_size\":101,\"tie_word_embeddings\":true},"
            "\"vision_config\":{\"hidden_size\":32,\"intermediate_size\":40,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"image_size\":28,"
            "\"patch_size\":14,\"model_type\":\"idefics3_vision\"},"
            "\"architectures\":[\"Idefics3ForConditionalGeneration\"],"
            "\"model_type\":\"idefics3\"}"},
    {59768, "{\"projection_dim\":32,\"text_config\":{\"model_type\":\"gemma\","
            "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":101,"
            "\"head_dim\":16,\"tie_word_embeddings\":false},"
            "\"vision_config\":{\"hidden_size\":32,\"intermediate_size\":40,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"image_size\":28,"
            "\"patch_size\":14,\"model_type\":\"siglip_vision_model\"},"
            "\"architectures\":[\"PaliGemmaForConditionalGeneration\"],"
            "\"model_type\":\"paligemma\"}"},
    {141856, "{\"architectures\":[\"PanguProMoEV2ForCausalLM\"],\"attention_bias\":true,\"first_k"
             "_dense_replace\":1,\"hidden_size\":64,\"intermediate_size\":96,\"max_position_embed"
             "dings\":128,\"model_type\":\"openpangu_v2\",\"moe_intermediate_size\":32,\"n_routed"
             "_experts\":4,\"n_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\""
             ":4,\"num_experts_per_tok\":2,\"num_hidden_layers\":3,\"num_key_value_heads\":2,\"pa"
             "ram_sink_number\":4,\"param_sink_with_value\":true,\"qk_nope_dim\":16,\"qk_rope_dim"
             "\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"routed_scaling_factor\":2.5,\""
             "router_enable_expert_bias\":true,\"sandwich_norm\":true,\"tie_word_embeddings\":fal"
             "se,\"v_channels\":16,\"vocab_size\":100}"},
    {113344, "{\"activation_function\":\"swiglu\",\"architectures\":[\"JAISLMHeadModel\"],\"model"
             "_type\":\"jais\",\"n_embd\":64,\"n_head\":4,\"n_inner\":96,\"n_layer\":3,\"n_positi"
             "ons\":128,\"position_embedding_type\":\"alibi\",\"scale_qk_dot_by_d\":true,\"tie_wo"
             "rd_embeddings\":true,\"vocab_size\":101,\"width_scale\":0.111}"},
    {148560, "{\"model_type\":\"time_moe\",\"architectures\":[\"TimeMoeForPrediction\"],\"input_s"
             "ize\":1,\"hidden_size\":48,\"intermediate_size\":96,\"horizon_lengths\":[1,8,32],\""
             "num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"hidden_"
             "act\":\"silu\",\"num_experts_per_tok\":2,\"num_experts\":4,\"max_position_embedding"
             "s\":64,\"use_dense\":false,\"apply_aux_loss\":true}"},
    {2292544, "{\"_class_name\":\"WanTransformer3DModel\",\"_diffusers_version\":\"0.33.0.dev0\","
              "\"added_kv_proj_dim\":null,\"attention_head_dim\":64,\"cross_attn_norm\":true,\"ep"
              "s\":1e-06,\"ffn_dim\":512,\"freq_dim\":64,\"image_dim\":null,\"in_channels\":16,\""
              "num_attention_heads\":4,\"num_layers\":2,\"out_channels\":16,\"patch_size\":[1,2,2"
              "],\"qk_norm\":\"rms_norm_across_heads\",\"rope_max_seq_len\":768,\"text_dim\":512,"
              "\"architectures\":[\"WanTransformer3DModel\"],\"model_type\":\"wan\"}"},
};

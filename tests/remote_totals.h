/* The same of decoders whose classes are published beside their checkpoints: HunYuan, Klear,
 * TeleChat 3, Ling 2.0 linear, Phi-3-small and Youtu as mlx-lm 0.32 makes them, Ling 2.5 as its own
 * class does, Phi-4-mini-flash by the size of its checkpoint (7,706,608,640 bytes: exponents of
 * scans and shares of differential attention in fp32, all else in bf16), Step-3, Spark 2.5 and
 * Nanbeige by the shapes in SGLang's classes; xLSTM with biases by transformers 5.24. */
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
};

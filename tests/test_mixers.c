/* Shipped families whose layers are not plain attention, against the reference library: totals of
 * small models, matrix FLOPs of a layer as torch counts them, states and caches as its cache
 * objects have them; and every line of every kind is found in each phase. */
#include "unit.h"
#include "scalemodel/architecture.h"

#include "kept_bytes.h"
#include "model_of.h"
#include "newest_flops.h"
#include "small_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct made {
    sm_arena *arena;
    const sm_architecture *a;
    sm_error err;
} made;

static void failed(const made *m, const char *config) {
    fail_msg("%s:%d:%d: %s\n%s", m->err.source, m->err.line, m->err.column, m->err.sentence,
             config);
}

static made of(const char *config) {
    made m = {.arena = sm_arena_new()};
    sm_source source = sm_source_of("config", config);
    if (sm_architecture_new(sm_library_shipped(), &source, NULL, m.arena, &m.a, &m.err))
        failed(&m, config);
    return m;
}

static void totals_are_the_reference_classes(void **state) {
    for (size_t i = 0; i < TOTALS; i++) {
        const struct family_total *wanted = total_at(i);
        made m = of(wanted->config);
        const sm_counts *counts = sm_architecture_counts(m.a);
        if (counts->total + counts->apart != wanted->total)
            fail_msg("%.0f, and %.0f apart, where the class has %.0f: %s", counts->total,
                     counts->apart, wanted->total, wanted->config);
        sm_arena_free(m.arena);
    }
}

static const sm_text_lines *lines_of(made *m, int kind, sm_text_phase phase, const char *config) {
    const sm_text_lines *lines;
    const double T = phase == SM_TEXT_DECODE ? 1 : 256;
    const sm_text_lines_of wanted = {kind, phase, phase == SM_TEXT_DECODE, T, 256, false};
    if (sm_architecture_lines(m->a, &wanted, m->arena, &lines, &m->err)) failed(m, config);
    return lines;
}

/* One text holds a layer's forms: each phase finds its lines, and the same weights. */
static void every_phase_finds_its_lines(void **state) {
    for (size_t i = 0; i < TOTALS; i++) {
        const char *config = total_at(i)->config;
        made m = of(config);
        for (int kind = 0; kind < sm_architecture_kinds(m.a); kind++)
            for (int phase = SM_TEXT_TRAIN; phase <= SM_TEXT_DECODE; phase++) {
                const sm_text_lines *lines = lines_of(&m, kind, (sm_text_phase)phase, config);
                double weights = 0;
                for (int a = 0; a < lines->arrays; a++)
                    if (lines->array[a].role == SM_TEXT_WEIGHT && lines->array[a].piece < 0 &&
                        lines->array[a].shared == 0)
                        weights += lines->array[a].elements;
                if (weights > sm_architecture_kind_params(m.a, kind, false))
                    fail_msg("phase %d of %s has weights of its own: %s", phase, lines->name,
                             config);
            }
        sm_arena_free(m.arena);
    }
}

/* ---- FLOPs, states and caches ---- */

/* Matrix FLOPs of one layer of 256 positions as torch.utils.flop_counter counts those of the
 * reference class, and by how much the text has more (less where negative):
 * - Mamba 2: the class takes C·Bᵀ for each head rather than each group, and carries states between
 *   chunks by a product;
 * - the delta rules: the class solves a triangle where the text multiplies by its inverse, and
 * takes Q·Kᵀ for each head of values. state: bytes of what the class's cache holds of fixed size,
 * scans in fp32, inputs of convolutions in bf16 and of one tap less (the newest is the position
 * itself); per_token: elements that it holds for each position. */
static const struct mixer {
    const char *config, *text;
    double matrix, more, state, per_token;
} mixers[] = {
    {"{\"model_type\":\"mamba\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"state_size\":16,\"layer_norm_epsilon\":1e-5}",
     "half_block", 16252928, 0, 2 * (128 * 16 * 4 + 128 * 3 * 2), 0},
    {"{\"model_type\":\"mamba2\",\"vocab_size\":96,\"hidden_size\":64,\"num_heads\":8,"
     "\"head_dim\":16,\"n_groups\":2,\"state_size\":16,\"num_hidden_layers\":2,"
     "\"chunk_size\":32}",
     "half_block", 21565440, -1572864 - 331776, 2 * (8 * 16 * 16 * 4 + 192 * 3 * 2), 0},
    {"{\"model_type\":\"qwen3_next\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
     "\"intermediate_size\":96,\"head_dim\":16,\"linear_num_key_heads\":2,"
     "\"linear_num_value_heads\":4,\"linear_key_head_dim\":16,\"linear_value_head_dim\":8,"
     "\"num_experts\":0,\"layer_types\":[\"linear_attention\",\"full_attention\"]}",
     "block", 20971520, 1048576 + 2097152 - 1048576, 4 * 16 * 8 * 4 + 96 * 3 * 2, 64},
    {"{\"model_type\":\"kimi_linear\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
     "\"intermediate_size\":96,\"kv_lora_rank\":16,\"qk_rope_head_dim\":8,"
     "\"qk_nope_head_dim\":16,\"v_head_dim\":16,\"num_experts\":4,"
     "\"num_experts_per_token\":2,\"moe_intermediate_size\":16,\"linear_head_dim\":16,"
     "\"linear_num_heads\":4,\"first_k_dense_replace\":2,"
     "\"layer_types\":[\"linear_attention\",\"full_attention\"]}",
     "block", 27918336, 2097152 + 2097152, 4 * 16 * 16 * 4 + 192 * 3 * 2, 16 + 8},
    {"{\"model_type\":\"lfm2\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
     "\"layer_types\":[\"conv\",\"full_attention\"]}",
     "block", 33554432, 0, 64 * 2 * 2, 64},
    {"{\"model_type\":\"jamba\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
     "\"num_experts\":1,\"attn_layer_period\":2,\"attn_layer_offset\":1}",
     "block", 25690112, 0, 128 * 16 * 4 + 128 * 3 * 2, 64},
    {"{\"model_type\":\"rwkv\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"layer_norm_epsilon\":1e-5}",
     "ln_block", 27262976, 0, 2 * (3 * 64 * 4 + 2 * 64 * 2), 0},
    {"{\"model_type\":\"deepseek_v32\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
     "\"intermediate_size\":96,\"kv_lora_rank\":16,\"qk_rope_head_dim\":8,"
     "\"qk_nope_head_dim\":16,\"v_head_dim\":16,\"q_lora_rank\":24,\"index_n_heads\":2,"
     "\"index_head_dim\":16,\"index_topk\":64,\"n_routed_experts\":8,\"n_group\":2,"
     "\"topk_group\":1}",
     NULL, 0, 0, 0, 2 * (16 + 8 + 16)},
    /* a layer of entries of 8 positions and one of overlapping entries of 4, their states when no
     * more fits: as after 31 positions */
    {"{\"model_type\":\"deepseek_v4\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":1,"
     "\"head_dim\":8,\"q_lora_rank\":16,\"o_lora_rank\":16,\"o_groups\":2,"
     "\"sliding_window\":4,\"index_n_heads\":2,\"index_head_dim\":128,"
     "\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":16,"
     "\"compress_rates\":{\"compressed_sparse_attention\":4,"
     "\"heavily_compressed_attention\":8},\"mlp_layer_types\":[\"moe\",\"moe\"],"
     "\"layer_types\":[\"heavily_compressed_attention\",\"compressed_sparse_attention\"]}",
     NULL, 0, 0, 2 * 2 * 7 * 8 + 2 * 2 * (3 * 2 + 4) * (8 + 128), 2 * 8 + 1 + 2 + 32},
    {"{\"model_type\":\"falcon_h1\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
     "\"intermediate_size\":96,\"head_dim\":16,\"mamba_n_heads\":8,\"mamba_d_head\":16,"
     "\"mamba_d_ssm\":128,\"mamba_d_state\":16,\"mamba_n_groups\":2,"
     "\"mamba_chunk_size\":32}",
     NULL, 0, 0, 2 * (8 * 16 * 16 * 4 + 192 * 3 * 2), 2 * 64},
};

/* Of the first kind of this text that attends to nothing. */
static double matrix_of(made *m, const struct mixer *mixer) {
    for (int kind = 0; kind < sm_architecture_kinds(m->a); kind++) {
        if (strcmp(sm_architecture_kind(m->a, kind, &(int){0})->text, mixer->text) != 0) continue;
        const sm_text_lines *lines = lines_of(m, kind, SM_TEXT_TRAIN, mixer->config);
        double sum = 0;
        bool attends = false;
        for (int i = 0; i < lines->lines; i++) {
            attends |= lines->line[i].op == SM_OPERATOR_ATTENTION;
            if (lines->line[i].op != SM_OPERATOR_INVERSE) sum += lines->line[i].matrix_flops;
        }
        if (!attends) return sum;
    }
    fail_msg("no layer without attention: %s", mixer->config);
    return 0;
}

static void mixers_work_and_keep_as_the_reference(void **state) {
    for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++) {
        made m = of(mixers[i].config);
        sm_model model = model_of("mixer", mixers[i].config);
        double fixed = sm_model_state_bytes(&model, SM_INT8);
        double token = sm_model_kv_bytes_per_token(&model, SM_INT8);
        if (fixed != mixers[i].state || token != mixers[i].per_token)
            fail_msg("state %.0f for %.0f, %.0f a token for %.0f: %s", fixed, mixers[i].state,
                     token, mixers[i].per_token, mixers[i].config);
        double matrix = mixers[i].text ? matrix_of(&m, &mixers[i]) : 0;
        if (matrix != mixers[i].matrix + mixers[i].more)
            fail_msg("%.0f matrix FLOPs for %.0f and %.0f more: %s", matrix, mixers[i].matrix,
                     mixers[i].more, mixers[i].config);
        sm_arena_free(m.arena);
    }
}

/* Caches, windows of them, states, inputs of convolutions, keys of a source. */
static void sequences_keep_what_the_classes_hold(void **state) {
    for (size_t i = 0; i < sizeof kept_bytes / sizeof *kept_bytes; i++) {
        sm_model model = model_of("kept", kept_bytes[i].config);
        double fixed = sm_model_state_bytes(&model, SM_BF16);
        double after = fixed + sm_model_kv_bytes(&model, 24, SM_BF16);
        double twice = fixed + sm_model_kv_bytes(&model, 48, SM_BF16);
        if (after != kept_bytes[i].after || twice != kept_bytes[i].after_twice)
            fail_msg("%.0f bytes and %.0f where the class has %.0f and %.0f: %s", after, twice,
                     kept_bytes[i].after, kept_bytes[i].after_twice, kept_bytes[i].config);
    }
}

/* FLOPs of a picture, of a second of sound or of 64 words on either side, which torch 2.15's
 * counter counted of transformers 5.24's classes (scripts/reference-totals.py --flops 64). */
static const struct {
    double flops;
    const char *config;
} works[] = {
    {156175360, "{\"architectures\":[\"ViTModel\"],\"attention_probs_dropout_prob\":0.0,"
                "\"encoder_stride\":16,\"hidden_act\":\"gelu\",\"hidden_dropout_prob\":0.0,"
                "\"hidden_size\":128,\"image_size\":224,\"initializer_range\":0.02,"
                "\"intermediate_size\":130,\"layer_norm_eps\":1e-12,\"model_type\":\"vit\","
                "\"num_attention_heads\":4,\"num_channels\":3,\"num_hidden_layers\":2,"
                "\"patch_size\":16,\"pooler_act\":\"tanh\",\"pooler_output_size\":128,"
                "\"qkv_bias\":true}"},
    {58812416, "{\"architectures\":[\"DeiTModel\"],\"attention_probs_dropout_prob\":0.0,"
               "\"encoder_stride\":16,\"hidden_act\":\"gelu\",\"hidden_dropout_prob\":0.0,"
               "\"hidden_size\":64,\"image_size\":224,\"initializer_range\":0.02,"
               "\"intermediate_size\":64,\"layer_norm_eps\":1e-12,\"model_type\":\"deit\","
               "\"num_attention_heads\":2,\"num_channels\":3,\"num_hidden_layers\":2,"
               "\"patch_size\":16,\"pooler_act\":\"tanh\",\"pooler_output_size\":64,"
               "\"qkv_bias\":true}"},
    {2282625024, "{\"apply_layernorm\":true,\"architectures\":[\"Dinov2Model\"],"
                 "\"attention_probs_dropout_prob\":0.0,\"drop_path_rate\":0.0,"
                 "\"hidden_act\":\"gelu\",\"hidden_dropout_prob\":0.0,\"hidden_size\":192,"
                 "\"image_size\":224,\"initializer_range\":0.02,\"layer_norm_eps\":1e-06,"
                 "\"layerscale_value\":1.0,\"mlp_ratio\":4,\"model_type\":\"dinov2\","
                 "\"num_attention_heads\":12,\"num_channels\":3,\"num_hidden_layers\":8,"
                 "\"out_features\":[\"stage8\"],\"out_indices\":[8],\"patch_size\":14,"
                 "\"qkv_bias\":true,\"reshape_hidden_states\":false,\"stage_names\":[\"stem\","
                 "\"stage1\",\"stage2\",\"stage3\",\"stage4\",\"stage5\",\"stage6\",\"stage7\","
                 "\"stage8\"],\"use_mask_token\":false,\"use_swiglu_ffn\":true}"},
    {37597696, "{\"add_fpn\":false,\"architectures\":[\"BeitModel\"],"
               "\"attention_probs_dropout_prob\":0.0,\"auxiliary_channels\":256,"
               "\"auxiliary_concat_input\":false,\"auxiliary_loss_weight\":0.4,"
               "\"auxiliary_num_convs\":1,\"drop_path_rate\":0.1,\"hidden_act\":\"gelu\","
               "\"hidden_dropout_prob\":0.0,\"hidden_size\":16,\"image_size\":224,"
               "\"initializer_range\":0.02,\"intermediate_size\":96,\"layer_norm_eps\":1e-12,"
               "\"layer_scale_init_value\":0.1,\"model_type\":\"beit\","
               "\"num_attention_heads\":1,\"num_channels\":3,\"num_hidden_layers\":8,"
               "\"out_features\":[\"stage8\"],\"out_indices\":[8],\"patch_size\":16,"
               "\"pool_scales\":[1,2,3,6],\"reshape_hidden_states\":false,"
               "\"semantic_loss_ignore_index\":255,\"stage_names\":[\"stem\",\"stage1\","
               "\"stage2\",\"stage3\",\"stage4\",\"stage5\",\"stage6\",\"stage7\",\"stage8\"],"
               "\"use_absolute_position_embeddings\":false,\"use_auxiliary_head\":true,"
               "\"use_mask_token\":false,\"use_mean_pooling\":true,"
               "\"use_relative_position_bias\":true,\"use_shared_relative_position_bias\":false,"
               "\"vocab_size\":1000}"},
    {17230080, "{\"architectures\":[\"SiglipVisionModel\"],\"attention_dropout\":0.0,"
               "\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_size\":16,\"image_size\":224,"
               "\"intermediate_size\":96,\"layer_norm_eps\":1e-06,"
               "\"model_type\":\"siglip_vision_model\",\"num_attention_heads\":1,"
               "\"num_channels\":3,\"num_hidden_layers\":3,\"patch_size\":16,"
               "\"vision_use_head\":true}"},
    {120864768, "{\"architectures\":[\"CLIPVisionModel\"],\"attention_dropout\":0.0,"
                "\"hidden_act\":\"quick_gelu\",\"hidden_size\":128,\"image_size\":224,"
                "\"initializer_factor\":1.0,\"initializer_range\":0.02,\"intermediate_size\":96,"
                "\"layer_norm_eps\":1e-05,\"model_type\":\"clip_vision_model\","
                "\"num_attention_heads\":4,\"num_channels\":3,\"num_hidden_layers\":8,"
                "\"patch_size\":32,\"projection_dim\":512}"},
    {61415424, "{\"architectures\":[\"IJepaModel\"],\"attention_probs_dropout_prob\":0.0,"
               "\"hidden_act\":\"gelu\",\"hidden_dropout_prob\":0.0,\"hidden_size\":64,"
               "\"image_size\":224,\"initializer_range\":0.02,\"intermediate_size\":96,"
               "\"layer_norm_eps\":1e-12,\"model_type\":\"ijepa\",\"num_attention_heads\":2,"
               "\"num_channels\":3,\"num_hidden_layers\":2,\"patch_size\":16,"
               "\"pooler_act\":\"tanh\",\"pooler_output_size\":64,\"qkv_bias\":true}"},
    {214946304, "{\"apply_layernorm\":true,\"architectures\":[\"DINOv3ViTModel\"],"
                "\"attention_dropout\":0.0,\"drop_path_rate\":0.0,\"hidden_act\":\"gelu\","
                "\"hidden_size\":128,\"image_size\":224,\"initializer_range\":0.02,"
                "\"intermediate_size\":130,\"key_bias\":true,\"layer_norm_eps\":1e-05,"
                "\"layerscale_value\":1.0,\"mlp_bias\":false,\"model_type\":\"dinov3_vit\","
                "\"num_attention_heads\":2,\"num_channels\":3,\"num_hidden_layers\":3,"
                "\"num_register_tokens\":0,\"out_features\":[\"stage3\"],\"out_indices\":[3],"
                "\"patch_size\":16,\"pos_embed_jitter\":null,\"pos_embed_rescale\":2.0,"
                "\"pos_embed_shift\":null,\"proj_bias\":false,\"query_bias\":false,"
                "\"reshape_hidden_states\":true,\"rope_theta\":100.0,\"stage_names\":[\"stem\","
                "\"stage1\",\"stage2\",\"stage3\"],\"use_gated_mlp\":false,\"value_bias\":true}"},
    {1772296704,
     "{\"architectures\":[\"Data2VecVisionModel\"],"
     "\"attention_probs_dropout_prob\":0.0,\"auxiliary_channels\":256,"
     "\"auxiliary_concat_input\":true,\"auxiliary_loss_weight\":0.4,"
     "\"auxiliary_num_convs\":1,\"drop_path_rate\":0.1,\"hidden_act\":\"gelu\","
     "\"hidden_dropout_prob\":0.0,\"hidden_size\":384,\"image_size\":224,"
     "\"initializer_range\":0.02,\"intermediate_size\":130,\"layer_norm_eps\":1e-12,"
     "\"layer_scale_init_value\":0.1,\"model_type\":\"data2vec-vision\","
     "\"num_attention_heads\":12,\"num_channels\":3,\"num_hidden_layers\":5,"
     "\"out_indices\":[3,5,7,11],\"patch_size\":16,\"pool_scales\":[1,2,3,6],"
     "\"semantic_loss_ignore_index\":255,\"use_absolute_position_embeddings\":true,"
     "\"use_auxiliary_head\":true,\"use_mask_token\":false,\"use_mean_pooling\":true,"
     "\"use_relative_position_bias\":false,\"use_shared_relative_position_bias\":true}"},
    {5888514048, "{\"max_source_samples\":16000,\"activation_dropout\":0.1,"
                 "\"adapter_attn_dim\":null,\"adapter_kernel_size\":3,\"adapter_stride\":2,"
                 "\"add_adapter\":false,\"apply_spec_augment\":true,"
                 "\"architectures\":[\"Wav2Vec2Model\"],\"attention_dropout\":0.1,"
                 "\"bos_token_id\":1,\"classifier_proj_size\":256,\"codevector_dim\":256,"
                 "\"contrastive_logits_temperature\":0.1,\"conv_bias\":false,\"conv_dim\":[512,"
                 "512,512,512,512,512,512],\"conv_kernel\":[10,3,3,3,3,2,2],\"conv_stride\":[5,2,"
                 "2,2,2,2,2],\"ctc_loss_reduction\":\"sum\",\"ctc_zero_infinity\":false,"
                 "\"diversity_loss_weight\":0.1,\"do_stable_layer_norm\":false,\"eos_token_id\":2,"
                 "\"feat_extract_activation\":\"gelu\",\"feat_extract_norm\":\"group\","
                 "\"feat_proj_dropout\":0.0,\"feat_quantizer_dropout\":0.0,\"final_dropout\":0.1,"
                 "\"hidden_act\":\"gelu\",\"hidden_dropout\":0.1,\"hidden_size\":512,"
                 "\"initializer_range\":0.02,\"intermediate_size\":96,\"layer_norm_eps\":1e-05,"
                 "\"layerdrop\":0.1,\"mask_feature_length\":10,\"mask_feature_min_masks\":0,"
                 "\"mask_feature_prob\":0.0,\"mask_time_length\":10,\"mask_time_min_masks\":2,"
                 "\"mask_time_prob\":0.05,\"model_type\":\"wav2vec2\",\"num_adapter_layers\":3,"
                 "\"num_attention_heads\":8,\"num_codevector_groups\":2,"
                 "\"num_codevectors_per_group\":320,\"num_conv_pos_embedding_groups\":16,"
                 "\"num_conv_pos_embeddings\":15,\"num_feat_extract_layers\":7,"
                 "\"num_hidden_layers\":8,\"num_negatives\":100,\"output_hidden_size\":512,"
                 "\"pad_token_id\":0,\"proj_codevector_dim\":256,\"tdnn_dilation\":[1,2,3,1,1],"
                 "\"tdnn_dim\":[512,512,512,512,1500],\"tdnn_kernel\":[5,3,3,1,1],"
                 "\"use_weighted_layer_sum\":false,\"vocab_size\":257,\"xvector_output_dim\":512}"},
    {5290942976, "{\"max_source_samples\":16000,\"activation_dropout\":0.1,"
                 "\"adapter_kernel_size\":3,\"adapter_stride\":2,\"add_adapter\":false,"
                 "\"apply_spec_augment\":true,\"architectures\":[\"WavLMModel\"],"
                 "\"attention_dropout\":0.1,\"bos_token_id\":1,\"classifier_proj_size\":256,"
                 "\"codevector_dim\":256,\"contrastive_logits_temperature\":0.1,"
                 "\"conv_bias\":false,\"conv_dim\":[512,512,512,512,512,512,512],"
                 "\"conv_kernel\":[10,3,3,3,3,2,2],\"conv_stride\":[5,2,2,2,2,2,2],"
                 "\"ctc_loss_reduction\":\"mean\",\"ctc_zero_infinity\":false,"
                 "\"diversity_loss_weight\":0.1,\"do_stable_layer_norm\":false,\"eos_token_id\":2,"
                 "\"feat_extract_activation\":\"gelu\",\"feat_extract_norm\":\"group\","
                 "\"feat_proj_dropout\":0.0,\"final_dropout\":0.1,\"hidden_act\":\"gelu\","
                 "\"hidden_dropout\":0.1,\"hidden_size\":384,\"initializer_range\":0.02,"
                 "\"intermediate_size\":130,\"layer_norm_eps\":1e-05,\"layerdrop\":0.1,"
                 "\"mask_feature_length\":10,\"mask_feature_prob\":0.0,\"mask_time_length\":10,"
                 "\"mask_time_min_masks\":2,\"mask_time_prob\":0.05,\"max_bucket_distance\":800,"
                 "\"model_type\":\"wavlm\",\"num_adapter_layers\":3,\"num_attention_heads\":12,"
                 "\"num_buckets\":320,\"num_codevector_groups\":2,"
                 "\"num_codevectors_per_group\":320,\"num_conv_pos_embedding_groups\":16,"
                 "\"num_conv_pos_embeddings\":15,\"num_ctc_classes\":80,"
                 "\"num_feat_extract_layers\":7,\"num_hidden_layers\":5,\"num_negatives\":100,"
                 "\"output_hidden_size\":384,\"pad_token_id\":0,\"proj_codevector_dim\":256,"
                 "\"tdnn_dilation\":[1,2,3,1,1],\"tdnn_dim\":[512,512,512,512,1500],"
                 "\"tdnn_kernel\":[5,3,3,1,1],\"use_weighted_layer_sum\":true,\"vocab_size\":1000,"
                 "\"xvector_output_dim\":512}"},
    {6474469376, "{\"max_source_samples\":16000,\"activation_dropout\":0.1,"
                 "\"adapter_kernel_size\":3,\"adapter_stride\":2,\"add_adapter\":false,"
                 "\"architectures\":[\"Data2VecAudioModel\"],\"attention_dropout\":0.1,"
                 "\"bos_token_id\":1,\"classifier_proj_size\":256,\"conv_bias\":true,"
                 "\"conv_dim\":[512,512,512,512,512,512,512],\"conv_kernel\":[10,3,3,3,3,2,2],"
                 "\"conv_pos_kernel_size\":19,\"conv_stride\":[5,2,2,2,2,2,2],"
                 "\"ctc_loss_reduction\":\"sum\",\"ctc_zero_infinity\":false,\"eos_token_id\":2,"
                 "\"feat_extract_activation\":\"gelu\",\"feat_proj_dropout\":0.0,"
                 "\"final_dropout\":0.1,\"hidden_act\":\"gelu\",\"hidden_dropout\":0.1,"
                 "\"hidden_size\":768,\"initializer_range\":0.02,\"intermediate_size\":96,"
                 "\"layer_norm_eps\":1e-05,\"layerdrop\":0.1,\"mask_feature_length\":10,"
                 "\"mask_feature_min_masks\":0,\"mask_feature_prob\":0.0,\"mask_time_length\":10,"
                 "\"mask_time_min_masks\":2,\"mask_time_prob\":0.05,"
                 "\"model_type\":\"data2vec-audio\",\"num_adapter_layers\":3,"
                 "\"num_attention_heads\":12,\"num_conv_pos_embedding_groups\":16,"
                 "\"num_conv_pos_embeddings\":15,\"num_feat_extract_layers\":7,"
                 "\"num_hidden_layers\":2,\"output_hidden_size\":768,\"pad_token_id\":0,"
                 "\"tdnn_dilation\":[1,2,3,1,1],\"tdnn_dim\":[512,512,512,512,1500],"
                 "\"tdnn_kernel\":[5,3,3,1,1],\"use_weighted_layer_sum\":false,\"vocab_size\":100,"
                 "\"xvector_output_dim\":512}"},
    {577634304, "{\"source\":64,\"architectures\":[\"T5ForConditionalGeneration\"],"
                "\"classifier_dropout\":0.0,\"d_ff\":96,\"d_kv\":64,\"d_model\":384,"
                "\"dense_act_fn\":\"relu\",\"dropout_rate\":0.1,\"eos_token_id\":1,"
                "\"feed_forward_proj\":\"relu\",\"initializer_factor\":1.0,\"is_decoder\":false,"
                "\"is_encoder_decoder\":true,\"is_gated_act\":false,\"layer_norm_epsilon\":1e-06,"
                "\"model_type\":\"t5\",\"num_decoder_layers\":2,\"num_heads\":6,\"num_layers\":2,"
                "\"pad_token_id\":0,\"relative_attention_max_distance\":128,"
                "\"relative_attention_num_buckets\":32,\"scale_decoder_outputs\":false,"
                "\"tie_word_embeddings\":true,\"use_cache\":true,\"vocab_size\":1000}"},
};

static double worked(const char *config) {
    made m = of(config);
    sm_forward f;
    if (sm_architecture_forward(m.a, 64, false, &f, &m.err)) failed(&m, config);
    sm_arena_free(m.arena);
    return (f.matmul + f.attention) * f.tokens;
}

static void towers_work_as_the_reference(void **state) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        double counted = worked(works[i].config);
        if (!(fabs(counted / works[i].flops - 1) < 1e-9))
            fail_msg("%.0f FLOPs for %.0f: %s", counted, works[i].flops, works[i].config);
    }
}

static void newest_mixers_work_as_the_reference(void **state) {
    for (size_t i = 0; i < sizeof newest_flops / sizeof *newest_flops; i++) {
        double wanted = newest_flops[i].counted + newest_flops[i].solved + newest_flops[i].less;
        double has = worked(newest_flops[i].config);
        if (!(fabs(has / wanted - 1) < 1e-9))
            fail_msg("%.0f FLOPs for %.0f: %s", has, wanted, newest_flops[i].config);
    }
}

/* The word that writing begins with where a config is silent, as transformers 5.24's classes do. */
static void writing_begins_as_in_the_classes(void **state) {
    static const struct {
        const char *type;
        double word;
    } begins[] = {{"bart", 2},    {"mbart", 0},      {"plbart", 0},           {"mvp", 2},
                  {"pegasus", 0}, {"blenderbot", 1}, {"blenderbot-small", 1}, {"marian", 58100},
                  {"led", 2},     {"m2m_100", 2},    {"bigbird_pegasus", 2},  {"prophetnet", 0},
                  {"mt5", 0},     {"umt5", 0}};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const char *type = begins[i].type;
        char config[256];
        double word = -1;
        snprintf(config, sizeof config,
                 "{\"model_type\":\"%s\",\"vocab_size\":96,\"d_model\":192%s}", type,
                 strstr(type, "t5") ? ",\"d_kv\":4,\"d_ff\":24,\"num_layers\":2,\"num_heads\":4"
                                    : "");
        made m = of(config);
        assert_true(sm_architecture_number(m.a, "decoder_start_token_id", &word));
        assert_true(word == begins[i].word);
        sm_arena_free(m.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_the_reference_classes),
        cmocka_unit_test(writing_begins_as_in_the_classes),
        cmocka_unit_test(every_phase_finds_its_lines),
        cmocka_unit_test(mixers_work_and_keep_as_the_reference),
        cmocka_unit_test(sequences_keep_what_the_classes_hold),
        cmocka_unit_test(towers_work_as_the_reference),
        cmocka_unit_test(newest_mixers_work_as_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

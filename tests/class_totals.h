/* The same of models by what their class makes of the last layer, and of encoders whose layers are
 * not BERT's or ViT's; of those that write sound without its codec; made with transformers 5.24. */
#pragma once
#include "family_totals.h"

static const struct family_total class_totals[] = {
    {19714, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"bert\","
            "\"pad_token_id\":0,\"architectures\":[\"BertForQuestionAnswering\"]}"},
    {20737, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"bert\","
            "\"pad_token_id\":0,\"architectures\":[\"BertForMultipleChoice\"]}"},
    {20770, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"bert\","
            "\"pad_token_id\":0,\"architectures\":[\"BertForNextSentencePrediction\"]}"},
    {12151, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"albert\","
            "\"pad_token_id\":0,\"embedding_size\":16,"
            "\"architectures\":[\"AlbertForPreTraining\"]}"},
    {17905, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"electra\","
            "\"pad_token_id\":0,\"embedding_size\":16,\"summary_use_proj\":false,"
            "\"architectures\":[\"ElectraForMultipleChoice\"]}"},
    {19683, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"deberta-v2\","
            "\"pad_token_id\":0,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"DebertaV2ForTokenClassification\"]}"},
    {21991, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"megatron-bert\","
            "\"pad_token_id\":0,\"architectures\":[\"MegatronBertForPreTraining\"]}"},
    {21922, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"modernbert\","
            "\"pad_token_id\":0,"
            "\"architectures\":[\"ModernBertForQuestionAnswering\"]}"},
    {21889, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"modernbert\","
            "\"pad_token_id\":0,\"architectures\":[\"ModernBertForMultipleChoice\"]}"},
    {21952, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"modernbert-decoder\","
            "\"pad_token_id\":0,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"ModernBertDecoderForSequenceClassification\"]}"},
    {24643, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"layoutlm\","
            "\"pad_token_id\":0,\"max_2d_position_embeddings\":30,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"LayoutLMForSequenceClassification\"]}"},
    {28570, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"layoutlmv3\","
            "\"pad_token_id\":0,\"max_2d_position_embeddings\":30,"
            "\"coordinate_size\":6,\"shape_size\":4,\"input_size\":32,"
            "\"patch_size\":8,\"architectures\":[\"LayoutLMv3ForQuestionAnswering\"]}"},
    {21024, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"nomic_bert\","
            "\"pad_token_id\":0,\"architectures\":[\"NomicBertModel\"]}"},
    {21955, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"eurobert\","
            "\"pad_token_id\":0,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"EuroBertForSequenceClassification\"]}"},
    {20899, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"eurobert\","
            "\"pad_token_id\":0,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"EuroBertForTokenClassification\"]}"},
    {30050, "{\"model_type\":\"xlm\",\"emb_dim\":32,\"n_layers\":2,\"n_heads\":2,"
            "\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"architectures\":[\"XLMForSequenceClassification\"]}"},
    {30053, "{\"model_type\":\"xlm\",\"emb_dim\":32,\"n_layers\":2,\"n_heads\":2,"
            "\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"architectures\":[\"XLMForMultipleChoice\"]}"},
    {20450, "{\"model_type\":\"xlnet\",\"d_model\":32,\"n_layer\":2,\"n_head\":2,"
            "\"d_inner\":48,\"vocab_size\":101,"
            "\"architectures\":[\"XLNetForTokenClassification\"]}"},
    {21473, "{\"model_type\":\"xlnet\",\"d_model\":32,\"n_layer\":2,\"n_head\":2,"
            "\"d_inner\":48,\"vocab_size\":101,"
            "\"architectures\":[\"XLNetForMultipleChoice\"]}"},
    {23440, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"vit\",\"encoder_stride\":4,"
            "\"architectures\":[\"ViTForMaskedImageModeling\"]}"},
    {23504, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"deit\",\"encoder_stride\":4,"
            "\"architectures\":[\"DeiTForMaskedImageModeling\"]}"},
    {104019, "{\"model_type\":\"swin\",\"image_size\":32,\"patch_size\":2,"
             "\"embed_dim\":8,\"depths\":[1,1,2,1],\"num_heads\":[1,2,2,4],"
             "\"window_size\":4,\"encoder_stride\":8,"
             "\"architectures\":[\"SwinForMaskedImageModeling\"]}"},
    {21955, "{\"model_type\":\"clip\",\"vision_config\":{\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8},"
            "\"text_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40},\"projection_dim\":16,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"CLIPForImageClassification\"]}"},
    {29331, "{\"model_type\":\"siglip\",\"vision_config\":{\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8},"
            "\"text_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40},\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"SiglipForImageClassification\"]}"},
    {16953, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"conv_dim\":[8,8,8],\"conv_kernel\":[10,3,2],"
            "\"conv_stride\":[5,2,2],\"num_conv_pos_embeddings\":4,"
            "\"num_conv_pos_embedding_groups\":4,\"vocab_size\":20,"
            "\"model_type\":\"wav2vec2\",\"use_weighted_layer_sum\":true,"
            "\"architectures\":[\"Wav2Vec2ForAudioFrameClassification\"]}"},
    {19316, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"conv_dim\":[8,8,8],\"conv_kernel\":[10,3,2],"
            "\"conv_stride\":[5,2,2],\"num_conv_pos_embeddings\":4,"
            "\"num_conv_pos_embedding_groups\":4,\"vocab_size\":20,"
            "\"model_type\":\"wavlm\",\"tdnn_dim\":[12,10],\"tdnn_kernel\":[3,1],"
            "\"tdnn_dilation\":[1,1],\"xvector_output_dim\":14,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"WavLMForXVector\"]}"},
    {12515, "{\"model_type\":\"whisper\",\"d_model\":32,\"encoder_layers\":1,"
            "\"decoder_layers\":1,\"encoder_attention_heads\":2,"
            "\"decoder_attention_heads\":2,\"encoder_ffn_dim\":48,"
            "\"decoder_ffn_dim\":40,\"vocab_size\":101,\"num_mel_bins\":8,"
            "\"max_source_positions\":20,\"max_target_positions\":10,"
            "\"classifier_proj_size\":12,\"pad_token_id\":0,\"id2label\":{\"0\":\"a\","
            "\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"WhisperForAudioClassification\"]}"},
    {17891, "{\"d_model\":32,\"d_kv\":16,\"d_ff\":48,\"num_layers\":2,"
            "\"num_decoder_layers\":1,\"num_heads\":2,\"vocab_size\":101,"
            "\"model_type\":\"t5\",\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"T5ForTokenClassification\"]}"},
    {30403, "{\"d_model\":32,\"d_kv\":16,\"d_ff\":48,\"num_layers\":2,"
            "\"num_decoder_layers\":1,\"num_heads\":2,\"vocab_size\":101,"
            "\"model_type\":\"t5\",\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"T5ForSequenceClassification\"]}"},
    {33922, "{\"d_model\":32,\"d_kv\":16,\"d_ff\":48,\"num_layers\":2,"
            "\"num_decoder_layers\":1,\"num_heads\":2,\"vocab_size\":101,"
            "\"model_type\":\"mt5\",\"architectures\":[\"MT5ForQuestionAnswering\"]}"},
    {25979, "{\"d_model\":32,\"encoder_layers\":1,\"decoder_layers\":1,"
            "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2,"
            "\"encoder_ffn_dim\":48,\"decoder_ffn_dim\":40,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"bart\","
            "\"architectures\":[\"BartForSequenceClassification\"]}"},
    {24890, "{\"d_model\":32,\"encoder_layers\":1,\"decoder_layers\":1,"
            "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2,"
            "\"encoder_ffn_dim\":48,\"decoder_ffn_dim\":40,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"bart\","
            "\"architectures\":[\"BartForQuestionAnswering\"]}"},
    {20899, "{\"model_type\":\"llama\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,\"vocab_size\":101,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"LlamaForTokenClassification\"]}"},
    {20866, "{\"model_type\":\"llama\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,\"vocab_size\":101,"
            "\"architectures\":[\"LlamaForQuestionAnswering\"]}"},
    {30083, "{\"model_type\":\"gpt2\",\"n_embd\":32,\"n_layer\":2,\"n_head\":2,"
            "\"n_positions\":40,\"vocab_size\":101,\"id2label\":{\"0\":\"a\","
            "\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"GPT2ForTokenClassification\"]}"},
    {29920, "{\"model_type\":\"openai-gpt\",\"n_embd\":32,\"n_layer\":2,\"n_head\":2,"
            "\"n_positions\":40,\"vocab_size\":101,"
            "\"architectures\":[\"OpenAIGPTModel\"]}"},
    {18400, "{\"model_type\":\"ctrl\",\"n_embd\":32,\"n_layer\":2,\"n_head\":2,"
            "\"n_positions\":40,\"dff\":48,\"vocab_size\":101,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"CTRLForSequenceClassification\"]}"},
    {19090, "{\"model_type\":\"opt\",\"hidden_size\":32,\"word_embed_proj_dim\":16,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"ffn_dim\":48,"
            "\"vocab_size\":101,\"max_position_embeddings\":40,\"pad_token_id\":1,"
            "\"architectures\":[\"OPTForQuestionAnswering\"]}"},
    {48336, "{\"model_type\":\"moonshine\",\"hidden_size\":32,"
            "\"intermediate_size\":48,\"encoder_num_hidden_layers\":1,"
            "\"decoder_num_hidden_layers\":1,\"encoder_num_attention_heads\":2,"
            "\"decoder_num_attention_heads\":2,\"vocab_size\":101,"
            "\"tie_word_embeddings\":false,\"architectures\":[\"MoonshineModel\"]}"},
    {15520, "{\"model_type\":\"nanochat\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"num_key_value_heads\":1,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"architectures\":[\"NanoChatModel\"]}"},
    {30688, "{\"model_type\":\"rwkv\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"vocab_size\":101,\"architectures\":[\"RwkvModel\"]}"},
    {19044, "{\"model_type\":\"deepseek_v3\",\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":2,\"intermediate_size\":48,"
            "\"moe_intermediate_size\":16,\"n_routed_experts\":4,"
            "\"num_experts_per_tok\":2,\"n_group\":1,\"topk_group\":1,"
            "\"q_lora_rank\":8,\"kv_lora_rank\":8,\"qk_rope_head_dim\":4,"
            "\"qk_nope_head_dim\":8,\"v_head_dim\":8,\"first_k_dense_replace\":1,"
            "\"vocab_size\":101,\"num_nextn_predict_layers\":1,"
            "\"architectures\":[\"DeepseekV3Model\"]}"},
    {44768, "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\","
            "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101},"
            "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,\"image_size\":32,"
            "\"patch_size\":8,\"model_type\":\"clip_vision_model\","
            "\"projection_dim\":16},\"architectures\":[\"LlavaModel\"]}"},
    {41856, "{\"model_type\":\"gemma3\","
            "\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"head_dim\":16,\"intermediate_size\":48,"
            "\"vocab_size\":101},\"vision_config\":{\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"siglip_vision_model\",\"vision_use_head\":false},"
            "\"mm_tokens_per_image\":4,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"Gemma3ForSequenceClassification\"]}"},
    {25467, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"lilt\","
            "\"pad_token_id\":0,\"max_2d_position_embeddings\":30,"
            "\"channel_shrink_ratio\":2,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"LiltForTokenClassification\"]}"},
    {29192, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"markuplm\","
            "\"pad_token_id\":0,\"max_depth\":5,\"xpath_unit_hidden_size\":4,"
            "\"max_xpath_tag_unit_embeddings\":20,"
            "\"max_xpath_subs_unit_embeddings\":30,\"tag_pad_id\":2,\"subs_pad_id\":3,"
            "\"architectures\":[\"MarkupLMModel\"]}"},
    {31639, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"visual_bert\","
            "\"pad_token_id\":0,\"visual_embedding_dim\":24,"
            "\"bypass_transformer\":true,"
            "\"architectures\":[\"VisualBertForPreTraining\"]}"},
    {20953, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"nystromformer\","
            "\"pad_token_id\":0,\"conv_kernel_size\":5,"
            "\"architectures\":[\"NystromformerForMaskedLM\"]}"},
    {20781, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"yoso\","
            "\"pad_token_id\":0,\"conv_window\":3,"
            "\"architectures\":[\"YosoForMultipleChoice\"]}"},
    {20835, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"mra\",\"pad_token_id\":0,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"MraForSequenceClassification\"]}"},
    {14663, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"intermediate_size\":48,"
            "\"vocab_size\":101,\"max_position_embeddings\":40,"
            "\"model_type\":\"fnet\",\"pad_token_id\":0,"
            "\"architectures\":[\"FNetForPreTraining\"]}"},
    {17771, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"convbert\","
            "\"pad_token_id\":0,\"embedding_size\":16,\"conv_kernel_size\":3,"
            "\"architectures\":[\"ConvBertForMaskedLM\"]}"},
    {13635, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"squeezebert\","
            "\"pad_token_id\":0,\"q_groups\":2,\"v_groups\":1,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},\"embedding_size\":32,"
            "\"architectures\":[\"SqueezeBertForSequenceClassification\"]}"},
    {33463, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"mobilebert\","
            "\"pad_token_id\":0,\"embedding_size\":16,\"intra_bottleneck_size\":24,"
            "\"true_hidden_size\":24,\"num_feedforward_networks\":3,"
            "\"architectures\":[\"MobileBertForPreTraining\"]}"},
    {25475, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"mobilebert\","
            "\"pad_token_id\":0,\"embedding_size\":32,\"intra_bottleneck_size\":16,"
            "\"key_query_shared_bottleneck\":false,\"use_bottleneck_attention\":true,"
            "\"true_hidden_size\":16,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"MobileBertForTokenClassification\"]}"},
    {28202, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"luke\","
            "\"pad_token_id\":0,\"entity_vocab_size\":30,\"entity_emb_size\":12,"
            "\"architectures\":[\"LukeForQuestionAnswering\"]}"},
    {45313, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"max_position_embeddings\":40,"
            "\"model_type\":\"canine\",\"pad_token_id\":0,\"num_hash_functions\":4,"
            "\"num_hash_buckets\":50,\"downsampling_rate\":2,"
            "\"architectures\":[\"CanineForMultipleChoice\"]}"},
    {25509, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"esmc\","
            "\"pad_token_id\":0,\"head_dim\":16,"
            "\"architectures\":[\"EsmcForMaskedLM\"]}"},
    {22211, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"model_type\":\"esmc\","
            "\"pad_token_id\":0,\"head_dim\":16,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"EsmcForSequenceClassification\"]}"},
    {20474, "{\"model_type\":\"cpmant\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"dim_head\":8,\"dim_ff\":48,"
            "\"vocab_size\":101,\"prompt_types\":3,\"prompt_length\":4,"
            "\"segment_types\":3,\"position_bias_num_buckets\":20,"
            "\"architectures\":[\"CpmAntForCausalLM\"]}"},
    {33024, "{\"model_type\":\"imagegpt\",\"n_embd\":32,\"n_layer\":2,\"n_head\":2,"
            "\"n_positions\":40,\"vocab_size\":101,"
            "\"architectures\":[\"ImageGPTForCausalImageModeling\"]}"},
    {29920, "{\"model_type\":\"imagegpt\",\"n_embd\":32,\"n_layer\":2,\"n_head\":2,"
            "\"n_positions\":40,\"vocab_size\":101,\"id2label\":{\"0\":\"a\","
            "\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"ImageGPTForImageClassification\"]}"},
    {29171, "{\"model_type\":\"openai_privacy_filter\",\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"num_key_value_heads\":2,\"head_dim\":8,\"intermediate_size\":24,"
            "\"num_local_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":101,"
            "\"pad_token_id\":0,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"OpenAIPrivacyFilterForTokenClassification\"]}"},
    {104134, "{\"model_type\":\"swinv2\",\"image_size\":32,\"patch_size\":2,"
             "\"embed_dim\":8,\"depths\":[1,1,2,1],\"num_heads\":[1,2,2,4],"
             "\"window_size\":4,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
             "\"architectures\":[\"Swinv2ForImageClassification\"]}"},
    {15071, "{\"model_type\":\"convnext\",\"hidden_sizes\":[8,12,16,20],\"depths\":[1,"
            "2,1,1],\"image_size\":32,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"ConvNextForImageClassification\"]}"},
    {15484, "{\"model_type\":\"convnextv2\",\"hidden_sizes\":[8,12,16,20],"
            "\"depths\":[1,2,1,1],\"image_size\":32,"
            "\"architectures\":[\"ConvNextV2Model\"]}"},
    {15008, "{\"model_type\":\"dinov3_convnext\",\"hidden_sizes\":[8,12,16,20],"
            "\"depths\":[1,2,1,1],\"image_size\":32,"
            "\"architectures\":[\"DINOv3ConvNextModel\"]}"},
    {29735, "{\"model_type\":\"segformer\",\"hidden_sizes\":[8,12,16,20],"
            "\"depths\":[1,2,1,1],\"num_attention_heads\":[1,2,2,4],\"mlp_ratios\":[2,"
            "4,2,3],\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"SegformerForImageClassification\"]}"},
    {36367, "{\"model_type\":\"segformer\",\"hidden_sizes\":[8,12,16,20],"
            "\"depths\":[1,2,1,1],\"num_attention_heads\":[1,2,2,4],"
            "\"decoder_hidden_size\":24,\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"SegformerForSemanticSegmentation\"]}"},
    {32352, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"pixio\",\"n_cls_tokens\":3,"
            "\"architectures\":[\"PixioModel\"]}"},
    {22880, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"dpt\",\"pooler_output_size\":32,"
            "\"architectures\":[\"DPTModel\"]}"},
    {21320, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"mlcd_vision_model\","
            "\"architectures\":[\"MLCDVisionModel\"]}"},
    {32707, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":32,\"patch_size\":8,"
            "\"model_type\":\"timesformer\",\"num_frames\":3,"
            "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},"
            "\"architectures\":[\"TimesformerForVideoClassification\"]}"},
    {37232, "{\"model_type\":\"vjepa2\",\"crop_size\":32,\"patch_size\":8,"
            "\"frames_per_clip\":4,\"hidden_size\":32,\"num_attention_heads\":2,"
            "\"num_hidden_layers\":2,\"mlp_ratio\":2,\"pred_hidden_size\":24,"
            "\"pred_num_attention_heads\":2,\"pred_num_hidden_layers\":1,"
            "\"pred_num_mask_tokens\":3,\"pred_mlp_ratio\":3,"
            "\"architectures\":[\"VJEPA2Model\"]}"},
    {21824, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"image_size\":[32,32],\"patch_size\":[8,8],"
            "\"model_type\":\"internvl_vision\",\"use_qk_norm\":true,"
            "\"architectures\":[\"InternVLVisionModel\"]}"},
    {22704, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"image_size\":32,\"patch_size\":8,\"model_type\":\"sam_vision_model\","
            "\"window_size\":2,\"global_attn_indexes\":[1],\"output_channels\":12,"
            "\"mlp_dim\":40,\"architectures\":[\"SamVisionModel\"]}"},
    {17408, "{\"model_type\":\"moshi\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
            "\"ffn_dim\":48,\"vocab_size\":101,\"num_codebooks\":3,"
            "\"architectures\":[\"MoshiForCausalLM\"]}"},
    {14176, "{\"model_type\":\"moshi\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
            "\"ffn_dim\":48,\"vocab_size\":101,\"num_codebooks\":3,"
            "\"architectures\":[\"MoshiModel\"]}"},
    {16096, "{\"model_type\":\"kyutai_speech_to_text\",\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"num_key_value_heads\":2,\"head_dim\":8,\"ffn_dim\":48,"
            "\"vocab_size\":101,\"num_codebooks\":3,\"codebook_vocab_size\":20,"
            "\"audio_bos_token_id\":19,\"audio_pad_token_id\":161,"
            "\"architectures\":[\"KyutaiSpeechToTextModel\"]}"},
    {37088, "{\"model_type\":\"prophetnet\",\"hidden_size\":32,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"num_encoder_layers\":1,"
            "\"num_decoder_layers\":2,\"encoder_ffn_dim\":48,\"decoder_ffn_dim\":40,"
            "\"num_encoder_attention_heads\":2,\"num_decoder_attention_heads\":2,"
            "\"num_buckets\":8,"
            "\"architectures\":[\"ProphetNetForConditionalGeneration\"]}"},
    {37088, "{\"model_type\":\"prophetnet\",\"hidden_size\":32,\"vocab_size\":101,"
            "\"max_position_embeddings\":40,\"num_encoder_layers\":1,"
            "\"num_decoder_layers\":2,\"encoder_ffn_dim\":48,\"decoder_ffn_dim\":40,"
            "\"num_encoder_attention_heads\":2,\"num_decoder_attention_heads\":2,"
            "\"num_buckets\":8,\"architectures\":[\"ProphetNetModel\"]}"},
    {14784, "{\"model_type\":\"reformer\",\"hidden_size\":32,"
            "\"attention_head_size\":8,\"num_attention_heads\":2,"
            "\"attn_layers\":[\"local\",\"lsh\"],\"feed_forward_size\":48,"
            "\"vocab_size\":101,\"axial_pos_embds\":false,"
            "\"max_position_embeddings\":40,\"architectures\":[\"ReformerModel\"]}"},
    {32872, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"conv_dim\":[8,8,8],\"conv_kernel\":[10,3,2],"
            "\"conv_stride\":[5,2,2],\"num_conv_pos_embeddings\":4,"
            "\"num_conv_pos_embedding_groups\":4,\"vocab_size\":20,"
            "\"model_type\":\"wav2vec2-conformer\",\"conv_depthwise_kernel_size\":3,"
            "\"architectures\":[\"Wav2Vec2ConformerForCTC\"]}"},
    {47320, "{\"model_type\":\"wav2vec2-bert\",\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":20,"
            "\"feature_projection_input_dim\":10,\"conv_depthwise_kernel_size\":3,"
            "\"add_adapter\":true,\"output_hidden_size\":24,"
            "\"use_intermediate_ffn_before_adapter\":true,"
            "\"architectures\":[\"Wav2Vec2BertForCTC\"]}"},
    {28215, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"conv_dim\":[8,8,8],\"conv_kernel\":[10,3,2],"
            "\"conv_stride\":[5,2,2],\"num_conv_pos_embeddings\":4,"
            "\"num_conv_pos_embedding_groups\":4,\"vocab_size\":20,"
            "\"model_type\":\"sew\",\"id2label\":{\"0\":\"a\",\"1\":\"b\","
            "\"2\":\"c\"},\"architectures\":[\"SEWForSequenceClassification\"]}"},
    {23604, "{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"conv_dim\":[8,8,8],\"conv_kernel\":[10,3,2],"
            "\"conv_stride\":[5,2,2],\"num_conv_pos_embeddings\":4,"
            "\"num_conv_pos_embedding_groups\":4,\"vocab_size\":20,"
            "\"model_type\":\"sew-d\",\"position_buckets\":6,\"share_att_key\":false,"
            "\"pos_att_type\":[\"c2p\",\"p2c\"],\"architectures\":[\"SEWDModel\"]}"},
    {33728, "{\"model_type\":\"musicgen\",\"text_encoder\":{\"model_type\":\"t5\","
            "\"d_model\":24,\"d_kv\":8,\"d_ff\":40,\"num_layers\":1,\"num_heads\":2,"
            "\"vocab_size\":101},\"decoder\":{\"vocab_size\":20,\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"ffn_dim\":48,\"num_attention_heads\":2,"
            "\"num_codebooks\":3,\"max_position_embeddings\":40},"
            "\"architectures\":[\"MusicgenForConditionalGeneration\"]}"},
    {25632, "{\"model_type\":\"musicgen_melody\","
            "\"text_encoder\":{\"model_type\":\"t5\",\"d_model\":24,\"d_kv\":8,"
            "\"d_ff\":40,\"num_layers\":1,\"num_heads\":2,\"vocab_size\":101},"
            "\"decoder\":{\"vocab_size\":20,\"hidden_size\":32,"
            "\"num_hidden_layers\":2,\"ffn_dim\":48,\"num_attention_heads\":2,"
            "\"num_codebooks\":3,\"max_position_embeddings\":40},\"num_chroma\":6,"
            "\"architectures\":[\"MusicgenMelodyForConditionalGeneration\"]}"},
    {51200, "{\"model_type\":\"moshi\",\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
            "\"ffn_dim\":48,\"vocab_size\":101,\"num_codebooks\":3,"
            "\"audio_vocab_size\":20,\"depth_decoder_config\":{\"vocab_size\":101,"
            "\"hidden_size\":24,\"input_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"audio_vocab_size\":20,\"ffn_dim\":40,"
            "\"num_codebooks\":3,\"head_dim\":12},"
            "\"architectures\":[\"MoshiForConditionalGeneration\"]}"},
    {29536, "{\"model_type\":\"csm\",\"num_codebooks\":4,\"vocab_size\":23,"
            "\"text_vocab_size\":101,\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
            "\"intermediate_size\":48,\"depth_decoder_config\":{\"num_codebooks\":4,"
            "\"backbone_hidden_size\":32,\"vocab_size\":23,\"hidden_size\":24,"
            "\"num_hidden_layers\":1,\"num_attention_heads\":2,"
            "\"num_key_value_heads\":1,\"head_dim\":12,\"intermediate_size\":40,"
            "\"model_type\":\"csm_depth_decoder_model\"},"
            "\"architectures\":[\"CsmForConditionalGeneration\"]}"},
    {113301, "{\"model_type\":\"clap\","
             "\"text_config\":{\"model_type\":\"clap_text_model\",\"hidden_size\":32,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
             "\"intermediate_size\":48,\"vocab_size\":101,"
             "\"max_position_embeddings\":40,\"projection_dim\":12},"
             "\"audio_config\":{\"model_type\":\"clap_audio_model\",\"spec_size\":32,"
             "\"patch_size\":4,\"patch_embeds_hidden_size\":8,\"depths\":[1,1,2,1],"
             "\"num_attention_heads\":[1,2,2,4],\"window_size\":2,\"num_mel_bins\":8,"
             "\"hidden_size\":64,\"projection_dim\":12},\"projection_dim\":12,"
             "\"architectures\":[\"ClapModel\"]}"},
    {17040, "{\"model_type\":\"bark\",\"semantic_config\":{\"block_size\":20,"
            "\"input_vocab_size\":30,\"output_vocab_size\":26,\"num_layers\":1,"
            "\"num_heads\":2,\"hidden_size\":16,\"model_type\":\"semantic\"},"
            "\"coarse_acoustics_config\":{\"block_size\":20,\"input_vocab_size\":30,"
            "\"output_vocab_size\":26,\"num_layers\":2,\"num_heads\":2,"
            "\"hidden_size\":16,\"model_type\":\"coarse_acoustics\",\"bias\":false},"
            "\"fine_acoustics_config\":{\"block_size\":20,\"input_vocab_size\":30,"
            "\"output_vocab_size\":30,\"num_layers\":1,\"num_heads\":2,"
            "\"hidden_size\":16,\"model_type\":\"fine_acoustics\","
            "\"n_codes_total\":3},\"architectures\":[\"BarkModel\"]}"},
    {124624, "{\"model_type\":\"blt\",\"vocab_size\":101,"
             "\"encoder_hash_byte_group_size\":[3,4],"
             "\"encoder_hash_byte_group_vocab\":30,\"cross_attn_k\":2,"
             "\"patcher_config\":{\"vocab_size\":101,\"hidden_size\":16,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":2,\"intermediate_size\":48,"
             "\"model_type\":\"blt_patcher\",\"head_dim\":8},"
             "\"encoder_config\":{\"vocab_size\":101,\"hidden_size\":32,"
             "\"num_hidden_layers\":1,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":1,\"intermediate_size\":48,"
             "\"model_type\":\"blt_local_encoder\",\"hidden_size_global\":64,"
             "\"cross_attn_k\":2},\"decoder_config\":{\"vocab_size\":101,"
             "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":2,\"intermediate_size\":40,"
             "\"model_type\":\"blt_local_decoder\",\"hidden_size_global\":64,"
             "\"cross_attn_all_layers\":true,\"cross_attn_k\":2},"
             "\"global_config\":{\"vocab_size\":101,\"hidden_size\":64,"
             "\"num_hidden_layers\":3,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":2,\"intermediate_size\":48,"
             "\"model_type\":\"blt_global_transformer\"},"
             "\"architectures\":[\"BltForCausalLM\"]}"},
    /* of files that come with code of their own, counted by hand */
    {20992, "{\"model_type\":\"nomic_bert\",\"architectures\":[\"NomicBertModel\"],"
            "\"n_embd\":32,\"n_layer\":2,\"n_head\":2,\"n_inner\":48,"
            "\"vocab_size\":100,\"fused_bias_fc\":true}"},
    {22368, "{\"model_type\":\"bert\",\"architectures\":[\"JinaBertModel\"],"
            "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
            "\"intermediate_size\":48,\"vocab_size\":100,"
            "\"feed_forward_type\":\"geglu\",\"position_embedding_type\":\"alibi\"}"},
};

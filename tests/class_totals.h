/* The same of models by what their class makes of the last layer; made with transformers 5.24. */
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
};

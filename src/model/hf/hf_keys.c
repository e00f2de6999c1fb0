/* Which keys of a config.json may be passed over. A key that is not understood stops the reading
 * when its name speaks of a size or of work, unless it stands in the list of keys known to change
 * neither. */
#include "hf_field.h"
#include <ctype.h>
#include <string.h>

/* Keys that change neither the number of parameters nor the FLOPs; a star at either end stands for
 * anything. */
static const char *const harmless[] = {
    /* identity and serialisation */
    "_*",
    "architectures",
    "auto_map",
    "model_type",
    "name",
    "torch_dtype",
    "dtype",
    "torchscript",
    "transformers_version",
    "use_cache",
    "use_bfloat16",
    "unsloth_*",
    "*_version",
    "custom_pipelines",
    /* tokens */
    "*_token_id",
    "*_token_ids",
    "*_token_index",
    "*_token",
    "bad_words_ids",
    "tokenizer_*",
    "mm_tokens_per_image",
    "vision_soft_tokens_per_image",
    "boi_*",
    "eoi_*",
    "eoa_*",
    "suppress_tokens",
    /* initial values and regularisation of the training run */
    "initializer_*",
    "init_*",
    "*_init",
    "*_std",
    "*dropout*",
    "*_pdrop",
    "layerdrop",
    "*aux_loss*",
    "*_loss_coef",
    "*_loss_weight",
    "z_loss*",
    "gradient_checkpointing",
    "label_smoothing",
    /* numerics of norms, activations, attention and logits */
    "*_eps",
    "*_epsilon",
    "*epsilon",
    "*softcapping",
    "*softcap",
    "embedding_multiplier",
    "attention_multiplier",
    "residual_multiplier",
    "logit_scal*",
    "logits_scal*",
    "*_scaling",
    "*_logit*",
    "query_pre_attn_scalar",
    "scale_attn*",
    "scale_attention*",
    "scale_embedding",
    "reorder_and_upcast_attn",
    "attention_softmax_in_fp32",
    "attn_temperature_tuning",
    "attn_scale",
    "floor_scale",
    "attention_value_scale",
    "clip_qkv",
    "softmax_scale",
    "swiglu_limit",
    "swiglu_alpha",
    "apply_residual_connection_post_layernorm",
    "slow_but_exact",
    "masked_softmax_fusion",
    "bias_dropout_fusion",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "attn_impl",
    "attn_uses_sequence_id",
    "alibi_bias_max",
    "prefix_lm",
    /* rotary and other positions without parameters */
    "rope_*",
    "*_rope_theta",
    "rotary*",
    "partial_rotary_factor",
    "position_embedding_type",
    "rope_scaling",
    "rope_parameters",
    "original_max_position_embeddings",
    "initial_context_length",
    "no_rope_layer_interval",
    "swa_rope_*",
    "use_mrope",
    /* how experts are chosen */
    "n_group",
    "topk_group",
    "topk_method",
    "norm_topk_prob",
    "scoring_func",
    "seq_aux",
    "ep_size",
    "*routed_scaling_factor",
    "norm_expert_weight",
    "router_jitter_noise",
    "output_router_logits",
    "moe_router_*",
    "expert_selection_fn",
    "use_bidirectional_attention",
    "return_bias",
    /* how a checkpoint was cut or stored */
    "pretraining_tp",
    "tp_size",
    "quantization_config",
    "compression_config",
    "attn_implementation",
    "cache_implementation",
    "use_flash_attn*",
    "use_dynamic_ntk",
    "use_logn_attn",
    "use_parallel_embedding",
    "sequence_parallel*",
    "interpolate_factor",
    /* generation and task heads that pretraining does not have */
    "output_*",
    "return_*",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "max_length",
    "max_new_tokens",
    "max_sequence_length",
    "model_max_length",
    "min_length",
    "length_penalty",
    "repetition_penalty",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "temperature",
    "top_p",
    "top_k",
    "typical_p",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "summary_*",
    "task_specific_params",
    "finetuning_task",
    "chunk_size_feed_forward",
    "classifier_*",
    "tie_encoder_decoder",
    "is_decoder",
    "forced_*",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    "begin_suppress_tokens",
    "prefix",
    "decoder_start_token_id",
    "sep_token_id",
    "gradient_clipping",
    "seq_length",
    "training_*",
    "n_ctx",
    "offset_alibi",
    /* other parts of a multimodal checkpoint: named in the note */
    "vision_*",
    "audio_*",
    "*_image_*",
    "image_*",
    "video_*",
    "multi_modal_projector_*",
    "projector_*",
};

/* Parts of words that speak of a size, a shape or of work. */
static const char *const weighty[] = {
    "num_",    "n_",           "_size",   "size_",    "dim",    "rank",     "head",
    "layer",   "expert",       "hidden",  "width",    "window", "mlp",      "ffn",
    "vocab",   "intermediate", "block",   "ratio",    "factor", "moe",      "ssm",
    "mamba",   "conv",         "lora",    "state",    "chunk",  "attn",     "attention",
    "embed",   "kernel",       "depth",   "channel",  "sparse", "topk",     "top_k",
    "bias",    "norm",         "tie",     "adapter",  "gate",   "mtp",      "nextn",
    "cross",   "share",        "kv",      "group",    "stride", "inner",    "recurrent",
    "memory",  "position",     "predict", "compress", "index",  "parallel", "glu",
    "encoder", "max_",         "repeat",  "loop",     "d_",     "freq",     "interleav",
    "pattern", "step",         "multi",
};

static bool matches(const char *pattern, const char *key) {
    size_t n = strlen(pattern), length = strlen(key);
    bool open_start = pattern[0] == '*', open_end = n > 1 && pattern[n - 1] == '*';
    const char *core = pattern + (open_start ? 1 : 0);
    size_t core_length = n - (open_start ? 1 : 0) - (open_end ? 1 : 0);
    if (core_length > length) return false;
    if (open_start && open_end) {
        for (size_t i = 0; i + core_length <= length; i++)
            if (memcmp(key + i, core, core_length) == 0) return true;
        return false;
    }
    if (open_start) return memcmp(key + length - core_length, core, core_length) == 0;
    return memcmp(key, core, core_length) == 0 && (open_end || length == core_length);
}

bool hf_key_is_known_harmless(const char *key) {
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (matches(harmless[i], key)) return true;
    return false;
}

/* "d_model" speaks of a size, "add_model" does not: a part that ends in '_' with a single letter or
 * "n_" must start a word. */
static bool holds(const char *key, const char *part) {
    const char *at = strstr(key, part);
    bool must_start =
        strcmp(part, "n_") == 0 || strcmp(part, "d_") == 0 || strcmp(part, "tie") == 0;
    while (at && must_start && at != key && at[-1] != '_') at = strstr(at + 1, part);
    return at != NULL;
}

bool hf_key_matters(const char *key) {
    if (hf_key_is_known_harmless(key)) return false;
    for (size_t i = 0; i < sizeof weighty / sizeof *weighty; i++)
        if (holds(key, weighty[i])) return true;
    return false;
}

const char *hf_shown(const char *key, char *out, size_t size) {
    size_t n = 0;
    for (; key[n] && n + 1 < size; n++) out[n] = iscntrl((unsigned char)key[n]) ? '?' : key[n];
    out[n] = 0;
    return out;
}

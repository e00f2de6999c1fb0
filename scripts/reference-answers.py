#!/usr/bin/env python3
"""Small random models of the reference classes (transformers), and what they answer.

Each model has a few thousand weights that follow from their names alone, so that only the answers
need to be kept: tests/reference/NAME.json has the config, names and shapes of the checkpoint's
tensors, tokens, logits of the last position, a greedy text, and the slope of the loss along a
direction that follows from the names as well. --folder DIR also writes the
checkpoints themselves, for `scalemodel run generate DIR/NAME`.

    scripts/reference-answers.py tests/reference [NAME ...] [--folder DIR] [--rwkv DIR]

Needs torch, transformers, safetensors and numpy, for GLA and RWKV-6 and 7 flash-linear-attention,
and for RWKV-5 and the other form of RWKV-6 (--rwkv) a checkout of BBuf/RWKV-World-HF-Tokenizer.
Versions are noted in the files.
"""
import argparse
import importlib
import json
import pathlib
import shutil
import sys
import tempfile
import zlib
from unittest import mock

import numpy
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import (AutoConfig, AutoModel, AutoModelForCausalLM,
                          AutoModelForImageTextToText, AutoModelForMaskedLM,
                          AutoModelForSeq2SeqLM, AutoModelForSequenceClassification,
                          AutoModelForSpeechSeq2Seq, AutoModelForTokenClassification)

TOKENS = 21
GREEDY = 12
MEL = 6  # channels of a spectrum of 2 * SOURCE frames
SOURCE, BEHIND = 8, 8  # tokens that an encoder reads, and those that a decoder is trained on
SHORTER = 5  # tokens of another text, beside which it is padded
KEPT = 64  # logits
CONSTANT = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")  # made by the class anew
TRAINED = 19  # tokens of the sequence whose loss is differentiated
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=24, vocab_size=256, max_position_embeddings=64,
             pad_token_id=None, bos_token_id=None, eos_token_id=None)
HEAD = dict(SIZES, head_dim=8)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=8)
LATENT = dict(HEAD, **EXPERTS, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8,
              qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=4, n_group=2,
              topk_group=1, first_k_dense_replace=1, n_shared_experts=1)
LATENT.pop("head_dim")
FALCON = {k: v for k, v in SIZES.items() if k not in ("intermediate_size", "num_key_value_heads")}
ENDS = dict(pad_token_id=None, bos_token_id=None, eos_token_id=None)
GPT = dict(n_embd=16, n_layer=2, n_head=4, n_positions=64, vocab_size=256, **ENDS)
OPT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=24,
           max_position_embeddings=64, vocab_size=256, **ENDS)
LFM = dict(SIZES, conv_L_cache=4, block_multiple_of=8, layer_types=[
    "conv", "full_attention", "conv"], num_hidden_layers=3, pad_token_id=0)
MAMBA = dict(hidden_size=16, num_hidden_layers=2, vocab_size=256, state_size=4, conv_kernel=4, **ENDS)
HYBRID = dict(SIZES, mamba_d_state=4, mamba_d_conv=4, mamba_expand=2, mamba_n_heads=4,
              mamba_d_head=8, mamba_chunk_size=8)
DELTA = dict(HEAD, **EXPERTS, num_experts=4, layer_types=[
    "linear_attention", "full_attention"], linear_conv_kernel_dim=4,
             linear_key_head_dim=4, linear_value_head_dim=6, linear_num_key_heads=2,
             linear_num_value_heads=4, shared_expert_intermediate_size=12)
SIX = dict(num_hidden_layers=6)
GLA = dict(hidden_size=16, num_hidden_layers=2, intermediate_size=24, vocab_size=256,
           fuse_norm=False, fuse_swiglu=False, fuse_cross_entropy=False, use_cache=False, **ENDS)
WORLD = dict(hidden_size=16, attention_hidden_size=16, head_size=4, num_hidden_layers=2,
             vocab_size=256, context_length=64, head_size_divisor=8, use_cache=False)
XLSTM = dict(hidden_size=16, num_heads=2, num_hidden_layers=2, vocab_size=256, qk_dim_factor=0.5,
             ffn_proj_factor=1.5, ffn_round_up_to_multiple_of=4, autocast_kernel_dtype="float32",
             use_cache=False, **ENDS)


def rope(**more):
    return dict(rope_parameters=dict(rope_theta=10000.0, **more))


MODELS = {
    "llama": ("llama", dict(HEAD, attention_bias=True, mlp_bias=True)),
    "llama3": ("llama", dict(HEAD, **rope(rope_type="llama3", factor=4.0, low_freq_factor=1.0,
                                          high_freq_factor=4.0,
                                          original_max_position_embeddings=16))),
    "llama-yarn": ("llama", dict(HEAD, **rope(rope_type="yarn", factor=4.0,
                                              original_max_position_embeddings=16))),
    "llama-linear": ("llama", dict(HEAD, **rope(rope_type="linear", factor=4.0))),
    "llama-tied": ("llama", dict(HEAD, tie_word_embeddings=True)),
    "mistral": ("mistral", dict(HEAD, sliding_window=7)),
    "ministral3": ("ministral3", dict(HEAD, sliding_window=None, **rope(
        rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0, beta_slow=1.0,
        llama_4_scaling_beta=0.5, original_max_position_embeddings=8))),
    "llama4": ("llama4_text", dict(HEAD, num_hidden_layers=4, intermediate_size_mlp=28,
                                   num_local_experts=4, num_experts_per_tok=1,
                                   interleave_moe_layer_step=2, attention_chunk_size=7,
                                   floor_scale=5, attn_scale=0.5)),
    "llama4-two": ("llama4_text", dict(HEAD, intermediate_size_mlp=28, num_local_experts=4,
                                       num_experts_per_tok=2, attention_chunk_size=16,
                                       no_rope_layers=[1, 0], use_qk_norm=False, floor_scale=5)),
    "mixtral": ("mixtral", dict(SIZES, num_local_experts=4)),
    "qwen2": ("qwen2", SIZES),
    "qwen3": ("qwen3", HEAD),
    "qwen2_moe": ("qwen2_moe", dict(SIZES, **EXPERTS, num_experts=4,
                                    shared_expert_intermediate_size=12)),
    "qwen3_moe": ("qwen3_moe", dict(HEAD, **EXPERTS, num_experts=4, norm_topk_prob=True)),
    "olmoe": ("olmoe", dict(SIZES, num_experts=4, num_experts_per_tok=2)),
    "gemma": ("gemma", HEAD),
    "gemma2": ("gemma2", dict(HEAD, sliding_window=7, query_pre_attn_scalar=6)),
    "gemma3": ("gemma3_text", dict(HEAD, **SIX, sliding_window=7, query_pre_attn_scalar=6)),
    "gpt_oss": ("gpt_oss", dict(HEAD, num_local_experts=4, num_experts_per_tok=2,
                                sliding_window=7)),
    "deepseek_v2": ("deepseek_v2", dict(LATENT, topk_method="group_limited_greedy")),
    "deepseek_v2-lite": ("deepseek_v2", dict(LATENT, q_lora_rank=None, topk_method="greedy")),
    "deepseek_v3": ("deepseek_v3", LATENT),
    "deepseek_v3-yarn": ("deepseek_v3", dict(LATENT, **rope(
        rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=1.0,
        original_max_position_embeddings=16))),
    "glm4_moe": ("glm4_moe", dict(HEAD, **EXPERTS, n_routed_experts=4, n_shared_experts=1,
                                  first_k_dense_replace=1, n_group=2, topk_group=1,
                                  use_qk_norm=True)),
    "glm": ("glm", dict(HEAD)),
    "glm4": ("glm4", dict(HEAD)),
    "phi": ("phi", SIZES),
    "phi3": ("phi3", SIZES),
    "phi3-longrope": ("phi3", dict(SIZES, original_max_position_embeddings=16, **rope(
        rope_type="longrope", short_factor=[1.0, 1.25], long_factor=[1.5, 3.0],
        original_max_position_embeddings=16))),
    "olmo": ("olmo", SIZES),
    "olmo2": ("olmo2", SIZES),
    "olmo3": ("olmo3", dict(SIZES, num_hidden_layers=4, sliding_window=7)),
    "cohere": ("cohere", dict(SIZES, use_qk_norm=True)),
    "cohere2": ("cohere2", dict(HEAD, num_hidden_layers=4, sliding_window=7)),
    "gpt_neox": ("gpt_neox", dict(FALCON, intermediate_size=24, **rope(
        rope_type="default", partial_rotary_factor=0.5))),
    "falcon": ("falcon", dict(FALCON, new_decoder_architecture=False)),
    "falcon-new": ("falcon", dict(FALCON, num_kv_heads=2, new_decoder_architecture=True)),
    "starcoder2": ("starcoder2", SIZES),
    "stablelm": ("stablelm", dict(SIZES, use_qkv_bias=True, **rope(
        rope_type="default", partial_rotary_factor=0.5))),
    "granite": ("granite", dict(SIZES, embedding_multiplier=3.0, residual_multiplier=0.5,
                                logits_scaling=4.0, attention_multiplier=0.3)),
    "granitemoe": ("granitemoe", dict(SIZES, num_local_experts=4, num_experts_per_tok=2)),
    "ernie4_5": ("ernie4_5", HEAD),
    "exaone4": ("exaone4", dict(HEAD, num_hidden_layers=4, sliding_window=7)),
    "smollm3": ("smollm3", dict(SIZES, num_hidden_layers=4)),
    "seed_oss": ("seed_oss", HEAD),
    "nemotron": ("nemotron", SIZES),
    "arcee": ("arcee", SIZES),
    "gpt2": ("gpt2", GPT),
    "gpt_bigcode": ("gpt_bigcode", GPT),
    "gptj": ("gptj", dict(GPT, rotary_dim=2)),
    "gpt_neo": ("gpt_neo", dict(hidden_size=16, num_layers=2, num_heads=4, vocab_size=256,
                                max_position_embeddings=64, attention_types=[
                                    [["global", "local"], 1]], window_size=7)),
    "openai-gpt": ("openai-gpt", GPT),
    "opt": ("opt", OPT),
    "opt-projected": ("opt", dict(OPT, word_embed_proj_dim=8, do_layer_norm_before=False)),
    "biogpt": ("biogpt", dict(FALCON, intermediate_size=24)),
    "lfm2": ("lfm2", dict(LFM, conv_bias=False)),
    "lfm2-biased": ("lfm2", dict(LFM, conv_bias=True, num_hidden_layers=3)),
    "lfm2_moe": ("lfm2_moe", dict({k: v for k, v in LFM.items() if k != "block_multiple_of"},
                                  **EXPERTS, num_experts=4, num_dense_layers=1)),
    "mamba": ("mamba", dict(MAMBA, time_step_rank=4)),
    "falcon_mamba": ("falcon_mamba", dict(MAMBA, time_step_rank=4, mixer_rms_eps=1e-3)),
    "minicpm3": ("minicpm3", dict(
        {k: v for k, v in HEAD.items() if k != "head_dim"}, num_key_value_heads=4, q_lora_rank=8,
        kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=6, scale_emb=3,
        dim_model_base=8)),
    "mamba2": ("mamba2", dict(MAMBA, num_heads=4, head_dim=8, n_groups=2, chunk_size=8)),
    "mamba2_limits": ("mamba2", dict(MAMBA, num_heads=4, head_dim=8, n_groups=2, chunk_size=8,
                                     time_step_limit=(0.65, 0.72))),
    "jamba": ("jamba", dict(SIZES, num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1,
                            expert_layer_period=2, expert_layer_offset=1, num_experts=4,
                            num_experts_per_tok=2, mamba_d_state=4, mamba_d_conv=4,
                            mamba_dt_rank=3, use_mamba_kernels=False)),
    "bamba": ("bamba", dict(HYBRID, num_hidden_layers=3, mamba_n_groups=2,
                            attn_layer_indices=[1])),
    "falcon_h1": ("falcon_h1", dict(HYBRID, mamba_d_ssm=32, mamba_n_groups=2)),
    "granitemoehybrid": ("granitemoehybrid", dict(
        HYBRID, mamba_n_groups=2, num_local_experts=4, num_experts_per_tok=2,
        shared_intermediate_size=12, layer_types=["mamba", "attention"])),
    "nemotron_h": ("nemotron_h", dict(
        HEAD, **EXPERTS, layers_block_type=["mamba", "moe", "attention", "mlp"],
        n_routed_experts=4, moe_shared_expert_intermediate_size=12, n_groups=2,
        ssm_state_size=4, conv_kernel=4, mamba_num_heads=4, mamba_head_dim=8, chunk_size=8,
        num_hidden_layers=4)),
    "qwen3_next": ("qwen3_next", DELTA),
    "qwen3_5": ("qwen3_5_text", DELTA),
    "qwen3_5_moe": ("qwen3_5_moe_text", DELTA),
    "bloom": ("bloom", dict(hidden_size=24, n_layer=2, n_head=6, vocab_size=256)),
    "rwkv": ("rwkv", dict(hidden_size=16, num_hidden_layers=2, vocab_size=256, context_length=64,
                          attention_hidden_size=16, intermediate_size=24, use_cache=False, **ENDS)),
    "minimax": ("minimax", dict(SIZES, num_hidden_layers=3, num_local_experts=4, block_size=8,
                                layer_types=["linear_attention", "full_attention",
                                             "linear_attention"])),
    "xglm": ("xglm", dict(d_model=16, num_layers=2, attention_heads=4, ffn_dim=24, vocab_size=256,
                          max_position_embeddings=64, **ENDS)),
    "recurrent_gemma": ("recurrent_gemma", dict(HEAD, num_hidden_layers=3, lru_width=16,
                                                attention_window_size=7)),
    "olmo_hybrid": ("olmo_hybrid", dict(
        SIZES, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2,
        linear_num_value_heads=2, linear_key_head_dim=4, linear_value_head_dim=4,
        linear_conv_kernel_dim=4)),
    "kimi_linear": ("kimi_linear", dict(
        {k: v for k, v in LATENT.items()
         if k not in ("q_lora_rank", "first_k_dense_replace", "n_routed_experts")},
        num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"],
        mlp_layer_types=["dense", "sparse", "sparse"], num_local_experts=4, linear_head_dim=4,
        linear_num_heads=2, linear_conv_kernel_dim=4)),
    "gla": ("gla", dict(GLA, num_heads=4, expand_k=0.5)),
    "gla-short": ("gla", dict(GLA, num_heads=4, num_kv_heads=2, expand_k=1, use_short_conv=True)),
    "gla-bare": ("gla", dict(GLA, num_heads=2, expand_k=1, use_output_gate=False)),
    "rwkv5": ("rwkv5", WORLD),
    "rwkv6": ("rwkv6", dict(hidden_size=16, num_heads=2, expand_k=0.5, num_hidden_layers=2,
                            intermediate_size=24, vocab_size=256, proj_low_rank_dim=6,
                            gate_low_rank_dim=10, fuse_norm=False, use_cache=False,
                            fuse_cross_entropy=False, **ENDS)),
    "rwkv6-world": ("rwkv6", WORLD),
    "xlstm": ("xlstm", XLSTM),
    "xlstm-fused": ("xlstm", dict(XLSTM, use_bias=True, weight_mode="fused")),
    "mpt": ("mpt", dict(d_model=24, n_layers=2, n_heads=6, max_seq_len=64, vocab_size=256)),
    "rwkv7": ("rwkv7", dict(hidden_size=16, head_dim=4, num_hidden_layers=3, intermediate_size=24,
                            vocab_size=256, decay_low_rank_dim=6, gate_low_rank_dim=10,
                            a_low_rank_dim=2, v_low_rank_dim=8, fuse_norm=False, use_cache=False,
                            fuse_cross_entropy=False, use_l2warp=False, **ENDS)),
}

# Options that change numbers alone, off their usual values.
for name, told, options in (
        ("gpt2", "unscaled", dict(scale_attn_weights=False)), ("biogpt", "eps", dict(layer_norm_eps=1e-3)),
        ("minicpm3", "eps", dict(rms_norm_eps=1e-3)), ("gpt_oss", "limit", dict(swiglu_limit=2.0, hidden_act="gelu")),
        ("jamba", "biased", dict(mamba_proj_bias=True, hidden_act="gelu")),
        ("bamba", "relu", dict(mamba_proj_bias=True, hidden_act="relu")),
        ("falcon_h1", "normed", dict(mamba_rms_norm=True, hidden_act="relu")),
        ("qwen3_next", "eps", dict(rms_norm_eps=1e-3, hidden_act="gelu"))):
    MODELS[f"{name}-{told}"] = (MODELS[name][0], dict(MODELS[name][1], **options))

# No text follows from these: their losses and gradients are compared.
WIDE = dict({k: v for k, v in SIZES.items() if k != "num_key_value_heads"}, vocab_size=260,
            pad_token_id=0)
BART = dict(d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20,
            max_position_embeddings=SOURCE, vocab_size=256, pad_token_id=0, bos_token_id=None,
            eos_token_id=None, decoder_start_token_id=0)
T5 = dict(d_model=16, d_kv=4, d_ff=24, num_layers=2, num_decoder_layers=2, num_heads=4,
          n_positions=SOURCE, source=SOURCE, vocab_size=256, relative_attention_num_buckets=8,
          relative_attention_max_distance=16, decoder_start_token_id=0)
MASKED = {
    "bert": ("bert", WIDE),
    "roberta": ("roberta", dict(WIDE, pad_token_id=1)),
    "distilbert": ("distilbert", dict(dim=16, n_layers=2, n_heads=4, hidden_dim=24, vocab_size=260,
                                      max_position_embeddings=64)),
    "electra": ("electra", dict(WIDE, embedding_size=8)),
    "modernbert": ("modernbert", dict(WIDE, num_hidden_layers=4, local_attention=6)),
}
SEQ2SEQ = {
    "t5": ("t5", T5),
    "mt5": ("mt5", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "umt5": ("umt5", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "bart": ("bart", BART),
    "mbart": ("mbart", dict(BART, scale_embedding=True)),
    "blenderbot": ("blenderbot", BART),
    "plbart": ("plbart", BART),
    "mvp": ("mvp", BART),
    "m2m_100": ("m2m_100", dict(BART, pad_token_id=1, scale_embedding=True)),
    "whisper": ("whisper", dict(
        d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20, num_mel_bins=MEL,
        max_source_positions=SOURCE, max_target_positions=64, vocab_size=256, pad_token_id=0,
        bos_token_id=None, eos_token_id=None, decoder_start_token_id=0)),
}

# Pictures of PATCHES x PATCHES patches stand before the words.
SIDE, PATCH, PATCHES = 8, 2, 4
EYE = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
           image_size=SIDE, patch_size=PATCH)
CLIP, SIGLIP = dict(EYE, model_type="clip_vision_model"), dict(EYE, model_type="siglip_vision_model")
LLAMA = dict(SIZES, model_type="llama")
PICTURE = 255  # the word that stands for a row of what was seen
# Qwen's towers: so many patches a side, of two frames, come square by square.
WIDE_SIDE = 8
QWEN = dict(depth=2, num_heads=2, in_channels=3, patch_size=PATCH, temporal_patch_size=2, spatial_merge_size=2,
            image_patches=WIDE_SIDE**2)
TURNS = dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1]))
BESIDE = dict(image_token_id=PICTURE, video_token_id=254, vision_start_token_id=253, vision_end_token_id=252)
SEEING = {
    "llava": ("llava", dict(vision_config=CLIP, text_config=LLAMA, image_token_index=PICTURE,
                            image_seq_length=PATCHES * PATCHES)),
    "internvl": ("internvl", dict(
        vision_config=dict(EYE, model_type="internvl_vision", image_size=[SIDE, SIDE],
                           patch_size=[PATCH, PATCH]),
        text_config=dict(SIZES, model_type="qwen2"), image_token_id=PICTURE,
        image_seq_length=PATCHES * PATCHES // 4)),
    "idefics3": ("idefics3", dict(vision_config=EYE, text_config=LLAMA, image_token_id=PICTURE,
                                  pad_token_id=0)),
    "gemma3": ("gemma3", dict(vision_config=dict(SIGLIP, vision_use_head=False), mm_tokens_per_image=4,
                              text_config=dict(HEAD, model_type="gemma3_text", sliding_window=3,
                                               num_hidden_layers=3, layer_types=[
                                                   "sliding_attention", "full_attention",
                                                   "sliding_attention"]),
                              image_token_id=PICTURE)),
    "mistral3": ("mistral3", dict(vision_config=dict(EYE, model_type="pixtral", num_attention_heads=2),
                                  text_config=dict(HEAD, model_type="mistral", sliding_window=None),
                                  spatial_merge_size=2, image_token_id=PICTURE)),
    "qwen2_vl": ("qwen2_vl", dict(
        BESIDE, vision_config=dict(QWEN, embed_dim=16, mlp_ratio=2, hidden_size=32),
        text_config=dict(SIZES, **TURNS, hidden_size=32))),
    "qwen2_5_vl": ("qwen2_5_vl", dict(
        BESIDE, vision_config=dict(QWEN, hidden_size=16, intermediate_size=20, out_hidden_size=32,
                                   window_size=12, fullatt_block_indexes=[1]),
        text_config=dict(SIZES, **TURNS, hidden_size=32))),
    "qwen3_vl": ("qwen3_vl", dict(
        BESIDE, vision_config=dict(QWEN, hidden_size=16, intermediate_size=20, out_hidden_size=16,
                                   num_position_embeddings=WIDE_SIDE**2, deepstack_visual_indexes=[]),
        text_config=dict(HEAD, rope_parameters=dict(TURNS["rope_parameters"], mrope_interleaved=True)))),
    "qwen3_vl_deep": ("qwen3_vl", dict(
        BESIDE, vision_config=dict(QWEN, depth=4, hidden_size=16, intermediate_size=20, out_hidden_size=16,
                                   num_position_embeddings=WIDE_SIDE**2, deepstack_visual_indexes=[0, 2, 3]),
        text_config=dict(HEAD, num_hidden_layers=4, rope_parameters=dict(
            TURNS["rope_parameters"], mrope_interleaved=True)))),
    "qwen3_5": ("qwen3_5", dict(
        BESIDE, vision_config=dict(QWEN, hidden_size=16, intermediate_size=20, out_hidden_size=16,
                                   num_position_embeddings=WIDE_SIDE**2),
        text_config=dict({k: v for k, v in DELTA.items() if k not in EXPERTS and "expert" not in k},
                         head_dim=16, rope_parameters=dict(
            TURNS["rope_parameters"], mrope_interleaved=True, partial_rotary_factor=0.5)))),
    "llava-siglip": ("llava", dict(vision_config=dict(SIGLIP, vision_use_head=False),
                                   text_config=dict(HEAD, model_type="qwen3"),
                                   image_token_index=PICTURE, vision_feature_layer=-1,
                                   vision_feature_select_strategy="full")),
}

# Two pictures in a prompt; Qwen's are four patches a side.
for name in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl_deep", "gemma3", "mistral3", "internvl"):
    kind, sizes = SEEING[name]
    eye = dict(sizes["vision_config"])
    eye.update({key: 16 for key in ("image_patches", "num_position_embeddings") if key in eye})
    SEEING[name + "-two"] = (kind, dict(sizes, pictures=2, vision_config=eye))

# What these make of each token, or patch, is told.
TOLD = {
    "vit-patches": ("vit", EYE, AutoModel),
    "siglip-patches": ("siglip_vision_model", EYE, AutoModel),
    "clip-patches": ("clip_vision_model", EYE, AutoModel),
    "qwen3-states": ("qwen3", HEAD, AutoModel),
    "mistral-states": ("mistral", dict(HEAD, sliding_window=7), AutoModel),
    "qwen2-scores": ("qwen2", dict(SIZES, num_labels=3), AutoModelForSequenceClassification),
    "mixtral-marks": ("mixtral", dict(SIZES, num_local_experts=4, num_labels=3),
                      AutoModelForTokenClassification),
    "bert-states": ("bert", WIDE, AutoModel),
    "bert-marks": ("bert", dict(WIDE, num_labels=3), AutoModelForTokenClassification),
    "xlm-roberta-states": ("xlm-roberta", dict(WIDE, pad_token_id=1), AutoModel),
    "distilbert-states": ("distilbert", MASKED["distilbert"][1], AutoModel),
    "electra-states": ("electra", MASKED["electra"][1], AutoModel),
    "modernbert-states": ("modernbert", MASKED["modernbert"][1], AutoModel),
}


class Random:
    """The generator of numbers that training draws batches from."""

    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        return z ^ z >> 31

    def below(self, n):
        return self.next() % n  # what is thrown away for fairness is too rare to meet


def first_batch(tokens):
    """The number of the first batch, seed 0, that begins with the first token."""
    seed = Random(0).next()
    return next(s for s in range(64) if Random(seed ^ s << 32).below(TOKENS - tokens) == 0)


def heard(step, sequence):
    """The spectrum of a sequence of a batch, as it is drawn: [1, channels, frames]."""
    state = Random(0).next() ^ (step << 32 | sequence)
    return torch.tensor([[[(Random(state + at * MEL + k + 1 & 0xFFFFFFFFFFFFFFFF).next() >> 40)
                           / 2**23 - 1 for at in range(2 * SOURCE)] for k in range(MEL)]],
                        dtype=torch.float32)


def seen(step, sequence):
    """Pixels of a picture, drawn patch by patch in the same way: [1, colours, SIDE, SIDE]."""
    state, width = Random(0).next() ^ (step << 32 | sequence), 3 * PATCH * PATCH
    drawn = [(Random(state + at + 1 & 0xFFFFFFFFFFFFFFFF).next() >> 40) / 2**23 - 1
             for at in range(PATCHES * PATCHES * width)]
    patches = torch.tensor(drawn, dtype=torch.float32).reshape(PATCHES, PATCHES, 3, PATCH, PATCH)
    return patches.permute(2, 0, 3, 1, 4).reshape(1, 3, SIDE, SIDE)


def seen_in_squares(step, sequence, side):
    """The same for Qwen: patches, [patches, numbers], four neighbours behind each other."""
    state, width = Random(0).next() ^ (step << 32 | sequence), 6 * PATCH * PATCH
    drawn = [(Random(state + at + 1 & 0xFFFFFFFFFFFFFFFF).next() >> 40) / 2**23 - 1
             for at in range(side * side * width)]
    patches = torch.tensor(drawn, dtype=torch.float32)
    return patches.reshape(side // 2, 2, side // 2, 2, width).transpose(1, 2).reshape(-1, width)


def hidden(tokens):
    """The places hidden in that batch."""
    seed = Random(0).next()
    step = first_batch(tokens)
    parts = max(1, (tokens * 15 + 50) // 100)
    for part in range(parts):
        begin, end = part * tokens // parts, (part + 1) * tokens // parts
        draws = Random((seed ^ step << 32) + part + 1 & 0xFFFFFFFFFFFFFFFF)
        yield begin + draws.below(end - begin)


def numbers(name, shape):
    """Of element i: a hash of i and the name, in [-0.3, 0.3); one more for scales of norms."""
    count = int(numpy.prod(shape))
    x = numpy.arange(count, dtype=numpy.uint64) * 2654435761 + zlib.crc32(name.encode())
    x &= 0xFFFFFFFF
    for shift in (16, 15):
        x ^= x >> shift
        x = x * 0x45D9F3B & 0xFFFFFFFF
    x ^= x >> 16
    value = (x.astype(numpy.float64) / 2**32 - 0.5) * 0.6
    if len(shape) == 1 and name.endswith("weight"):
        value += 1
    return torch.tensor(value.astype(numpy.float32).reshape(shape))


def plain(config):
    return {k: v for k, v in config.items() if k not in ("transformers_version", "dtype")}


def slope_along(model, direction):
    along = dict(weights_of(direction))
    return round(sum((value.grad.double() * along[key].detach().double()).sum().item()
                     for key, value in weights_of(model) if value.grad is not None), 6)


def weights_of(model):
    """BART's bias of the logits, which is a buffer to the class, among them."""
    yield from model.named_parameters()
    yield from ((k, v) for k, v in model.named_buffers() if k == "final_logits_bias")


def trained_alone(model, ids, masked):
    """The loss of a model that no text follows from, differentiated."""
    if masked:
        places = list(hidden(TRAINED))
        read = [256 if i in places else ids[i] for i in range(TRAINED)]
        logits = model(torch.tensor([read])).logits[0][places]
        wanted = [ids[i] for i in places]
    else:
        listens = model.main_input_name == "input_features"
        at = 1 if listens else SOURCE  # of words
        read = dict(input_features=heard(first_batch(BEHIND), 0)) if listens else dict(
            input_ids=torch.tensor([ids[:SOURCE]]))
        wanted = ids[at:at + BEHIND]
        logits = model(**read, decoder_input_ids=torch.tensor([ids[at - 1:at - 1 + BEHIND]])).logits[0]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(wanted))
    loss.backward()
    return dict(trained=round(loss.item(), 6), tokens=TRAINED if masked else BEHIND,
                source=0 if masked else at)


def written_behind(model, ids):
    """The best words behind the one that texts begin with, and the scores of the last, once SOURCE
    tokens were read, and once SHORTER."""
    told = []
    for i, n in enumerate((SOURCE, SHORTER)):
        read = dict(input_ids=torch.tensor([ids[:n]]))
        if model.main_input_name == "input_features":
            n, read = SOURCE, dict(input_features=heard(0, i))
        text = [model.config.decoder_start_token_id]
        with torch.no_grad():
            for _ in range(BEHIND):
                logits = model(**read, decoder_input_ids=torch.tensor([text])).logits[0, -1]
                text.append(int(logits.argmax()))
        told.append(dict(read=n, text=text,
                         logits=[float(f"{x:.6f}") for x in logits[:KEPT].tolist()]))
    return told


def told_of(model, ids):
    """Numbers of the first and the last of TOKENS tokens, and of SHORTER; grades are of each, too."""
    told = []
    sees = model.main_input_name == "pixel_values"
    for i, n in enumerate((TOKENS, SHORTER)):
        with torch.no_grad():
            body = model.base_model if hasattr(model, "score") else model
            out = body(**dict(pixel_values=seen(0, i))) if sees else body(torch.tensor([ids[:n]]))
            rows = out.logits[0] if "logits" in out else out.last_hidden_state[0]
            rows = model.score(rows) if hasattr(model, "score") else rows
        n = len(rows) if sees else n
        told.append(dict(read=n, rows=[[float(f"{x:.6f}") for x in row.tolist()]
                                       for row in (rows[0], rows[-1])]))
    return told


def told_of_a_picture(model, words, direction):
    """Loss, logits, greedy text and slope of words behind pictures; their rows are not told."""
    config = model.config
    qwen, pictures = config.model_type.startswith("qwen"), getattr(config, "pictures", 1)
    side = round(config.vision_config.image_patches**0.5) if qwen else SIDE
    each = side**2 // 4 if qwen else PATCHES * PATCHES // (1 if config.model_type == "llava" else 4) + (getattr(config, "vision_feature_select_strategy", "") == "full" and
                                config.vision_config.model_type == "clip_vision_model")
    rows = pictures * each
    ids = [PICTURE] * rows + words[:TOKENS - rows]

    def behind(step, text):
        pixels = torch.cat([seen_in_squares(step, k, side) if qwen else seen(step, k) for k in range(pictures)])
        pixels = pixels[None] if config.model_type == "idefics3" else pixels  # of several pictures
        read = torch.tensor([text])
        marked = dict(image_grid_thw=torch.tensor([[1, side, side]] * pictures),
                      mm_token_type_ids=(read == PICTURE).int()) if qwen else dict(
                          token_type_ids=(read == PICTURE).long()) if config.model_type == "gemma3" else (
            dict(image_sizes=[[SIDE, SIDE]]) if config.model_type == "mistral3" else {})
        return model(input_ids=read, pixel_values=pixels, **marked).logits[0]

    with torch.no_grad():
        logits = behind(0, ids).double()
        text, amid = list(ids), words[:3]
        for k in range(pictures):
            amid += [PICTURE] * each + words[3 + 3 * k:6 + 3 * k]
        written = len(amid)
        for _ in range(GREEDY):
            text.append(int(behind(0, text)[-1].argmax()))
            amid.append(int(behind(0, amid)[-1].argmax()))
    wanted = torch.tensor(ids[rows:])
    loss = torch.nn.functional.cross_entropy(logits[rows - 1:-1], wanted)
    step = first_batch(TRAINED - rows)
    part = behind(step, ids[:TRAINED])
    trained = torch.nn.functional.cross_entropy(
        part[rows - 1:], torch.tensor(ids[rows:TRAINED + 1]))
    trained.backward()
    return dict(ids=ids, seen=rows, loss=round(float(loss), 6), trained=round(trained.item(), 6),
                slope=slope_along(model, direction),
                logits=[float(f"{x:.6f}") for x in logits[-1, :KEPT].tolist()],
                greedy=text[TOKENS:], amid=amid[:written], amid_greedy=amid[written:])


def read_fla():
    """Classes of flash-linear-attention, whose kernels for GPUs are replaced by the plain functions
    that it holds them against itself."""
    import fla.layers.gla
    import fla.layers.rwkv6
    import fla.layers.rwkv7
    import fla.models.gla
    import fla.models.rwkv6
    import fla.models.rwkv7
    import fla.modules.mlp
    from fla.modules.token_shift import token_shift_ref
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence
    from fla.ops.gla.naive import naive_recurrent_gla
    from fla.ops.rwkv6.recurrent_naive import naive_recurrent_rwkv6
    from fla.ops.rwkv7.fused_addcmul import torch_addcmul_rwkv7
    from fla.ops.rwkv7.fused_k_update import k_update_ref
    from fla.ops.rwkv7.gate_output_correction import gate_output_correction_ref

    def chunk(r, w, k, v, a, b, scale, **_):
        q, w, k, v, a, b = (x.transpose(1, 2) for x in (r, w, k, v, a, b))
        made, state = dplr_recurrence(q * (scale * q.shape[-1]**0.5), k, v, a, b, w)
        return made.transpose(1, 2), state

    def recurrent(r, w, k, v, kk, a, **more):
        return chunk(r, w, k, v, -kk, kk * a, **more)

    def shift(x, cu_seqlens=None, cache=None, output_cache=False):
        return (token_shift_ref(x), x[:, -1:]) if output_cache else token_shift_ref(x)

    def gla(q, k, v, gk, **_):
        return naive_recurrent_gla(q, k, v, gk)

    def rwkv6(r, k, v, w, u, scale, **_):
        made, state = naive_recurrent_rwkv6(*(x.transpose(1, 2) for x in (r, k, v, w)), u, scale)
        return made.transpose(1, 2), state

    def convolve(self, x, **_):
        made = torch.nn.Conv1d.forward(self, x.transpose(1, 2))[..., :x.shape[1]]
        return torch.nn.functional.silu(made.transpose(1, 2)), None

    def group_norm(self, x):
        shape = x.shape
        made = torch.nn.functional.group_norm(x.reshape(-1, shape[-1]), self.num_groups, self.weight,
                                              self.bias, self.eps)
        return made.reshape(shape)

    layer, model = fla.layers.rwkv7, fla.models.rwkv7.modeling_rwkv7
    layer.token_shift = model.token_shift = shift
    layer.fused_addcmul_rwkv7, layer.fused_k_rwkv7 = torch_addcmul_rwkv7, k_update_ref
    layer.gate_output_correction = gate_output_correction_ref
    layer.chunk_rwkv7, layer.fused_mul_recurrent_rwkv7 = chunk, recurrent
    plain = dict(sqrelu=lambda x: torch.relu(x)**2, swish=torch.nn.functional.silu)
    model.ACT2FN = plain
    layer, model = fla.layers.rwkv6, fla.models.rwkv6.modeling_rwkv6
    layer.token_shift = model.token_shift = shift
    layer.fused_recurrent_rwkv6, layer.ACT2FN, model.ACT2FN = rwkv6, plain, plain
    layer.GroupNorm.forward = group_norm
    layer = fla.layers.gla
    layer.fused_recurrent_gla, layer.ACT2FN = gla, plain
    layer.ShortConvolution.forward = convolve
    layer.RMSNorm.forward = lambda self, x: torch.nn.functional.rms_norm(
        x, x.shape[-1:], self.weight, self.eps)
    fla.modules.mlp.swiglu = lambda x, y: torch.nn.functional.silu(x) * y


def read_world(kind, folder):
    """A class of the authors' checkpoints; what its recurrence keeps passes gradients on here."""
    if folder is None:
        raise ValueError("--rwkv DIR says where its class is")
    sys.modules.setdefault("flash_rwkv", mock.MagicMock())
    sys.modules.setdefault("pkg_resources", mock.MagicMock(
        parse_version=lambda x: 0, DistributionNotFound=KeyError,
        get_distribution=lambda x: mock.MagicMock(parsed_version=0)))
    sys.modules.setdefault("fla.ops.rwkv6.recurrent_fuse", mock.MagicMock())
    world = pathlib.Path(tempfile.mkdtemp()) / f"{kind}_world"
    shutil.copytree(pathlib.Path(folder) / f"{kind}_model", world)
    text = (world / f"modeling_{kind}.py").read_text()
    text = text.replace("with torch.no_grad():", "if True:", 1).replace(
        "    out = torch.zeros_like(key)", "    state = state.clone()\n    out = torch.zeros_like(key)", 1)
    (world / f"modeling_{kind}.py").write_text(text)
    sys.path.append(str(world.parent))
    config, module = (importlib.import_module(f"{kind}_world.{part}_{kind}")
                      for part in ("configuration", "modeling"))
    config, model = (getattr(at, f"{kind.capitalize()}{what}")
                     for at, what in ((config, "Config"), (module, "ForCausalLM")))
    model._tied_weights_keys = {}  # a list, when it was written
    model.__base__._init_weights = mock.Mock()  # gives decays another shape
    AutoConfig.register(kind, config, exist_ok=True)
    AutoModelForCausalLM.register(config, model, exist_ok=True)


def answer(name, folder, authors):
    kind, sizes, *given = (MODELS | MASKED | SEQ2SEQ | SEEING | TOLD)[name]
    world, fla = sizes is WORLD, kind in ("gla", "rwkv6", "rwkv7") and sizes is not WORLD
    if world:
        read_world(kind, authors)
    elif fla:
        read_fla()
    elif kind == "xlstm":  # whose fused weights its own beginning does not fit
        transformers.models.xlstm.modeling_xlstm.xLSTMPreTrainedModel._init_weights = mock.Mock()
    auto = (given[0] if given else AutoModelForMaskedLM if name in MASKED else
            AutoModelForSpeechSeq2Seq if kind == "whisper" else
            AutoModelForSeq2SeqLM if name in SEQ2SEQ else
            AutoModelForImageTextToText if name in SEEING else AutoModelForCausalLM)
    config = AutoConfig.for_model(kind, **sizes)
    with tempfile.TemporaryDirectory() as drawn:
        auto.from_config(config).save_pretrained(drawn)
        with safe_open(f"{drawn}/model.safetensors", "pt") as file:
            shapes = {key: list(file.get_slice(key).get_shape()) for key in sorted(file.keys())
                      if not key.endswith(CONSTANT)}
        weights = {key: numbers(key, shape) for key, shape in shapes.items()}
        at = pathlib.Path(folder or drawn) / name
        at.mkdir(parents=True, exist_ok=True)
        save_file(weights, at / "model.safetensors", metadata={"format": "pt"})
        config.architectures = [type(auto.from_config(config)).__name__]
        config.save_pretrained(at)
        model = auto.from_pretrained(at, dtype=torch.float32,
                                                     attn_implementation="eager").eval()
        written = json.loads((at / "config.json").read_text())
        towards = pathlib.Path(drawn) / "towards"
        towards.mkdir()
        save_file({key: numbers("direction." + key, shape) for key, shape in shapes.items()},
                  towards / "model.safetensors", metadata={"format": "pt"})
        config.save_pretrained(towards)
        direction = auto.from_pretrained(towards, dtype=torch.float32)
    ids = [(37 * i + 11) % 251 for i in range(TOKENS)]
    if given:
        return dict(name=name, made_by=f"transformers {transformers.__version__}",
                    config=plain(written),
                    tensors=[dict(name=k, shape=s) for k, s in shapes.items()], ids=ids,
                    told=told_of(model, ids))
    for key, value in weights_of(model):
        value.requires_grad_(True)
    if name in SEEING:
        return dict(name=name, made_by=f"transformers {transformers.__version__}",
                    config=plain(written),
                    tensors=[dict(name=k, shape=s) for k, s in shapes.items()],
                    **told_of_a_picture(model, ids, direction))
    if auto is not AutoModelForCausalLM:
        told = trained_alone(model, ids, name in MASKED)
        told["slope"] = slope_along(model, direction)
        if name in SEQ2SEQ:
            told["written"] = written_behind(model, ids)
        return dict(name=name, made_by=f"transformers {transformers.__version__}",
                    config=plain(written),
                    tensors=[dict(name=k, shape=s) for k, s in shapes.items()], ids=ids, **told)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
        text = list(ids)
        for _ in range(GREEDY):
            text.append(int(model(torch.tensor([text])).logits[0, -1].argmax()))
    loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]))
    part = model(torch.tensor([ids[:TRAINED]])).logits[0]
    trained = torch.nn.functional.cross_entropy(part, torch.tensor(ids[1:TRAINED + 1]))
    trained.backward()
    by = f"transformers {transformers.__version__}" + (
        f", flash-linear-attention {sys.modules['fla'].__version__}" if fla else
        ", BBuf/RWKV-World-HF-Tokenizer" if world else "")
    return dict(name=name, made_by=by, config=plain(written),
                tensors=[dict(name=k, shape=s) for k, s in shapes.items()], ids=ids,
                loss=round(float(loss), 6), trained=round(trained.item(), 6),
                slope=slope_along(model, direction),
                logits=[float(f"{x:.6f}") for x in logits[-1, :KEPT].tolist()], greedy=text[TOKENS:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("to", type=pathlib.Path)
    parser.add_argument("name", nargs="*")
    parser.add_argument("--folder")
    parser.add_argument("--rwkv")
    args = parser.parse_args()
    for folder in ("told", "seen"):
        (args.to / folder).mkdir(parents=True, exist_ok=True)
    transformers.logging.set_verbosity_error()
    for name in args.name or MODELS | MASKED | SEQ2SEQ | SEEING | TOLD:
        try:
            told = answer(name, args.folder, args.rwkv)
        except Exception as why:  # a model that this version cannot make
            print(f"{name}: {type(why).__name__}: {str(why)[:200]}")
            continue
        to = args.to / ("told" if name in TOLD else "seen" if name in SEEING else ".")
        (to / f"{name}.json").write_text(json.dumps(told, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

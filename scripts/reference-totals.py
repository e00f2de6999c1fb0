#!/usr/bin/env python3
"""Exact parameter totals from the reference library (Hugging Face transformers, any 5.x, and torch).

Not part of the suite: it needs both packages, and models are made without memory (device "meta").
It writes what scripts/check-families.py compares with, so that families of next year are checked.

  reference-totals.py CONFIG.json ...              name, model_type, total and active of real configs
  reference-totals.py --random 20 --out DIR TYPE ...   small random configs of each model_type: DIR/*.json
                                                   and DIR/MANIFEST.csv; --seed N for others;
                                                   --list prints the types that have a causal model;
                                                   --flops T: also the FLOPs of a forward pass of T tokens
                                                   (of either side), a picture or a second of sound, by torch's
                                                   counter, on the CPU; --kept T: also the bytes that are kept
                                                   between steps after T tokens and after 2 T, in bf16
  reference-totals.py --defaults --out DIR [TYPE ...]   the config that each class of model_type has when nothing
                                                   is said (all types by default): as the library writes it, and
                                                   with every key; kind: causal, seq2seq, multimodal, masked, base
  reference-totals.py --ties --out DIR [TYPE ...]   wrappers as --defaults has them, but for tie_word_embeddings,
                                                   left out, true and false in the wrapper and in its language
                                                   model; the latter with two layers where that can be said

A total counts the weights of a checkpoint: parameters (a tied one once), and correction biases of
routers, scalars of layers and of towers, tables that name experts and frozen norms, which the library keeps as buffers. Active: of the experts only those that a token takes.
"""
import argparse
import csv
import json
import logging
import pathlib
import random
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import torch  # noqa: E402
from torch.utils.flop_counter import conv_flop_count, FlopCounterMode  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

CAUSAL = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
# The class whose parameters are counted, first map first: BART has a class that is its decoder alone,
# too, and BERT one that is causal.
KINDS = {
    "seq2seq": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "speech": modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    "multimodal": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    "causal": CAUSAL,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "base": modeling_auto.MODEL_MAPPING_NAMES,
}
COLUMNS = ["name", "model_type", "exact_total", "exact_active", "kind", "tokens", "exact_flops", "exact_kept", "exact_kept_twice"]
CHOSEN = ["num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k", "top_k_experts"]


PARALLEL = ("input_linear.weight", "output_linear.weight")  # GraniteMoE's and JetMoE's names of experts
EXPERTS = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"]


def class_of(kind):
    """The kind of model and the class that stand for a type, in the order of KINDS."""
    for name, known in KINDS.items():
        found = known.get(kind)
        if found:
            return name, found if isinstance(found, str) else found[0]
    raise ValueError("no model of this type")


def classes_of(kind):
    """Every class that some auto class makes of a type."""
    maps = [value for name, value in vars(modeling_auto).items() if name.startswith("MODEL_") and name.endswith("_NAMES")]
    found = []
    for known in maps:
        names = known.get(kind, [])
        found += [names] if isinstance(names, str) else names
    return list(dict.fromkeys(found))


def model_of(config):
    """The class that the file names, else that of its type, without memory."""
    names = [n for n in config.architectures or [] if hasattr(transformers, n)]
    name = names[0] if names else class_of(config.model_type)[1]
    with torch.device("meta"):
        return getattr(transformers, name)._from_config(config)


def weights(model):
    yield from model.named_parameters()
    kept = set(model.state_dict())
    for name, buffer in model.named_buffers():
        mask = buffer.dim() == 4  # Bark's, which is called bias
        frozen = name.rpartition(".")[0] + ".running_mean" in kept and name.endswith("weight")
        if name in kept and (frozen or name.endswith(("bias", "scalar", "tid2eid", "std_scale"))) and not mask:
            yield name, buffer


def first(config, keys):
    for key in keys:
        value = getattr(config, key, None)
        if isinstance(value, (list, tuple)):
            value = value[0] if value else None
        if value:
            return int(value)
    return 0


def count(config):
    """Total and active parameters; active is None without experts."""
    total, idle, chosen = 0, 0, first(config.get_text_config(decoder=True), CHOSEN)
    for name, weight in weights(model_of(config)):
        total += weight.numel()
        inside = name.split(".experts.")[1].split(".") if ".experts." in name else ["0"]
        stacked = not any(part.isdigit() for part in inside) and "router" not in inside and weight.dim() > 1
        if chosen and (stacked or name.endswith(PARALLEL) and weight.dim() == 3):
            idle += weight.numel() // weight.shape[0] * (weight.shape[0] - chosen)
    return total, total - idle if idle else None


def inputs(config, model, tokens):
    """What the class reads: words, a picture, or a second of sound."""
    if model.main_input_name == "pixel_values":
        sides = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
        return {"pixel_values": torch.zeros(1, config.num_channels, *sides)}
    if model.main_input_name == "input_values":
        return {"input_values": torch.zeros(1, 16000)}
    ids = torch.randint(3, min(60, config.get_text_config().vocab_size - 1), (1, tokens))
    return {"input_ids": ids, **({"decoder_input_ids": ids} if config.is_encoder_decoder else {})}


def products(x, weight, bias, stride, padding, dilation, transposed, *more, out_shape=None, **said):
    """Of a convolution along words: one of a channel by itself is no product."""
    return conv_flop_count(x, weight, out_shape, transposed) if all(taps == 1 for taps in weight[2:]) or weight[1] > 1 else 0


def by_inverse():
    """A triangle solved for some columns, as kernels do it: by its inverse, made once, and a product. torch counts none of it."""
    inverted = set()

    def count(triangle, columns, *more, out_val=None, **said):
        matrices, n = triangle.numel() // triangle.shape[-1] ** 2, triangle.shape[-1]
        first = 0 if triangle.data_ptr() in inverted else n**3 / 3
        inverted.add(triangle.data_ptr())
        return matrices * (first + 2 * n * n * columns.shape[-1])

    count._get_raw = True
    return count


def repeated(model, tokens):
    """FLOPs that a class does beside what its model takes: Mamba 2 takes scores for each head where a group has one, and
    carries states by a matrix from every chunk to every later one; delta rules take Q K' for each head of values; Zaya projects a row of zeros; Llama 4 gives every token to every expert; XLNet
    multiplies twice the distances that it keeps. Less than none is what it does pointwise where torch sees no product:
    hyper-connections add up streams, xLSTM norms, and Kimi's delta rule multiplies and inverts row by row."""
    more = 0
    for part in model.modules():
        name = type(part).__name__
        if hasattr(part, "ssm_state_size") and hasattr(part, "n_groups") and hasattr(part, "chunk_size"):
            chunks, heads, size = -(-tokens // part.chunk_size), part.num_heads, part.ssm_state_size
            more += 2 * chunks * part.chunk_size**2 * size * (heads - part.n_groups)
            more += 2 * (chunks + 1) ** 2 * heads * part.head_dim * size
        elif hasattr(part, "num_v_heads") and hasattr(part, "head_k_dim"):
            more += 2 * -(-tokens // 64) * 64**2 * part.head_k_dim * (part.num_v_heads - part.num_k_heads)
        elif hasattr(part, "b_proj") and hasattr(part, "qkv_dim"):
            more -= -(-tokens // 64) * part.num_heads * (64**3 / 3 + 4 * 64**2 * part.head_dim)
        elif hasattr(part, "v_proj_delayed"):
            more += 2 * part.v_proj_delayed.weight.numel()
        elif name == "Llama4TextMoe":
            more += 6 * tokens * part.experts.hidden_size * part.experts.expert_dim * (part.num_experts - part.top_k)
        elif name == "XLNetRelativeAttention":
            more += 2 * tokens * part.n_head * part.d_head * (part.d_model + tokens)
        elif name == "xLSTMLayer" and hasattr(part, "mlstm_backend"):
            more -= 2 * tokens * part.num_heads * part.config.chunk_size
        elif hasattr(part, "hc_mult") and "Hyper" in name:
            more -= 2 * tokens * (part.fn if hasattr(part, "fn") else part.hc_fn).shape[-1]
    return more


def flops(config, tokens):
    """Of a forward pass by torch's counter, every pair of an attention taken, as `full` has them, without what is `repeated`.
    Convolutions of each channel along words are left out; triangles are solved `by_inverse`."""
    config._attn_implementation = config._experts_implementation = "eager"
    model = getattr(transformers, config.architectures[0])(config).float().eval()
    own = {torch.ops.aten.linalg_solve_triangular: by_inverse()}
    if model.main_input_name == "input_ids":
        own[torch.ops.aten.convolution] = products
    with torch.enable_grad(), FlopCounterMode(display=False, custom_mapping=own) as counter:
        model(**inputs(config, model, tokens))
    return counter.get_total_flops() - repeated(model, tokens)


def bytes_in(value, seen, newest, name=""):
    """Bytes that a cache holds, in whatever objects. As an engine keeps them: the inputs of a convolution but for the
    newest (1), which a step makes itself and Zaya's cache has not (0); all keys of a window, of which the class drops one; keys of an indexer in fp8."""
    if id(value) in seen or isinstance(value, (str, type)):
        return 0
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.dim() < 2:
            return 0
        held = value[..., newest:] if name == "conv_states" else value
        return held.numel() * (1 if name == "indexer_keys" else held.element_size())
    members = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, (list, tuple)) else None
    inside = members is not None
    members = members if inside else getattr(value, "__dict__", {})
    total = sum(bytes_in(member, seen, newest, name if inside else key) for key, member in members.items())
    window, keys = getattr(value, "sliding_window", None), getattr(value, "keys", None)
    if getattr(value, "is_sliding", False) and isinstance(keys, torch.Tensor) and keys.shape[-2] == window - 1 > 0:
        total += sum(held[..., 0, :].numel() * held.element_size() for held in (value.keys, value.values))
    return total


def kept(config, model, tokens, times):
    """Bytes of what a step leaves for the next: caches and states, whatever the class calls them. A source stays as it is."""
    given = inputs(config, model, tokens)
    words = "decoder_input_ids" if "decoder_input_ids" in given else "input_ids"
    given[words] = given[words].repeat(1, times)
    with torch.no_grad():
        out = model(**given, use_cache=True)
    names = ("past_key_values", "cache_params", "state", "rwkv_state", "mems", "cache")
    found = next((out[n] for n in names if n in out and out[n] is not None), None)
    if found is None:
        raise ValueError("no cache")
    return bytes_in(found, set(), 0 if any(hasattr(part, "conv_qk_depthwise") for part in model.modules()) else 1)


def kept_after(config, tokens):
    config._attn_implementation = config._experts_implementation = "eager"
    model = getattr(transformers, config.architectures[0])(config).to(torch.bfloat16).eval()
    return [kept(config, model, tokens, times) for times in (1, 2)]


# What a small random config takes, key by key, where its class has the key.
def sizes(pick):
    kv, group, head = pick(1, 2, 4), pick(1, 2, 3), pick(8, 16, 32)
    heads, layers, experts = kv * group, pick(2, 3, 5, 8), pick(4, 8)
    width = heads * pick(16, 32, 64)
    rank = pick(16, 24)
    core = {
        ("hidden_size", "n_embd", "d_model"): width,
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers"): layers,
        ("num_attention_heads", "n_head", "n_heads", "num_heads"): heads,
        ("vocab_size",): pick(100, 257, 1000),
        ("intermediate_size", "ffn_dim", "d_ff"): pick(64, 96, 130),
    }
    rest = {
        ("num_key_value_heads", "num_kv_heads"): kv,
        ("head_dim",): pick(head, head, None),
        ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"): experts,
        ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts"): pick(1, 2),
        ("moe_intermediate_size",): pick(16, 48),
        ("shared_expert_intermediate_size", "shared_intermediate_size"): pick(24, 40),
        ("intermediate_size_mlp",): pick(48, 80),
        ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"): pick(1, 2),
        ("first_k_dense_replace", "num_dense_layers"): pick(0, 1, 2),
        ("q_lora_rank",): rank,
        ("kv_lora_rank",): rank,
        ("qk_rope_head_dim",): 8,
        ("qk_nope_head_dim",): pick(8, 16),
        ("v_head_dim",): pick(8, 24),
        ("n_group", "num_expert_group"): pick(1, 2),
        ("topk_group",): 1,
        ("sliding_window",): pick(4, 16),
        ("max_position_embeddings", "n_positions", "max_seq_len"): pick(64, 128),
        ("decoder_sparse_step", "interleave_moe_layer_step"): pick(1, 2),
        ("mlp_only_layers",): pick([], [0]),
        ("word_embed_proj_dim",): pick(width, 24),
        ("hidden_size_per_layer_input",): pick(0, 8, 12),
        ("num_kv_shared_layers",): 0,
        ("num_conv_pos_embeddings",): 15,  # of an even number one result more is made and dropped
        ("global_head_dim",): pick(16, 32),
        ("mamba_chunk_size", "chunk_size"): pick(16, 32),
    }
    return core, rest


LARGEST_RUN = 1e8  # parameters of a model that is run: some classes have sizes that no random config names
PASSIVE = ("use_cache", "is_", "output_", "return_", "add_cross_attention", "tie_encoder", "tf_", "torchscript")


# Types whose class runs no model of its states alone: layers by turns.
BOTH = {"qwen3_next": ("linear_attention", "full_attention"), "granitemoehybrid": ("mamba", "attention")}


def random_config(kind, pick, tokens=None):
    """With tokens: nothing stands outside of windows, which eager attention works out too."""
    usual = transformers.AutoConfig.for_model(kind).to_dict()
    core, rest = sizes(pick)
    if tokens:
        rest[("sliding_window", "sliding_window_size", "local_attention", "attention_chunk_size")] = 2 * tokens
        del rest[("sliding_window",)]
    given = {k: v for keys, v in core.items() for k in keys if k in usual}
    for keys, value in rest.items():
        if pick(True, True, True, False) or "num_conv_pos_embeddings" in keys or "local_attention" in keys:
            given.update({k: value for k in keys if k in usual})
    for key, value in usual.items():
        if isinstance(value, bool) and not key.startswith(PASSIVE) and pick(True, False, False):
            given[key] = not value
    if kind == "gpt_neo":  # the pattern of its layers must have as many as there are
        given["num_layers"] *= 2
        given["attention_types"] = [[["global", "local"], given["num_layers"] // 2]]
    if kind == "dbrx":  # its sizes stand in two objects
        given["attn_config"] = {"kv_n_heads": rest[("num_key_value_heads", "num_kv_heads")]}
        experts = {"moe_num_experts": 4, "moe_top_k": pick(1, 2)}
        given["ffn_config"] = {"ffn_hidden_size": pick(48, 64), **experts}
    if "kv_lora_rank" in usual or kind == "deepseek_v4":  # latents are of all heads, or one
        given["num_key_value_heads"] = given["num_attention_heads"] if "kv_lora_rank" in usual else 1
    if "index_topk" in usual:  # of fewer tokens some classes cannot choose
        given["index_topk"] = tokens or 8
    if kind == "deepseek_v4":
        given["o_groups"] = 1 if given["num_attention_heads"] % 2 else 2
    if kind == "mamba2":
        given.update(num_heads=8, head_dim=given["hidden_size"] // 4, expand=2)
    if kind == "bamba":
        given["attn_layer_indices"] = [1]
    if kind == "minimax":
        given["block_size"] = pick(16, 32)
    if kind in BOTH:
        given["layer_types"] = [BOTH[kind][i % 2] for i in range(given["num_hidden_layers"])]
    if usual.get("pad_token_id"):
        given["pad_token_id"] = 0
    config = transformers.AutoConfig.for_model(kind, **given)
    config.architectures = [class_of(kind)[1]]
    if getattr(config, "num_attention_heads", 0) % (getattr(config, "num_key_value_heads", None) or 1):
        raise ValueError("key heads must divide heads")
    if first(config, CHOSEN) > (first(config, EXPERTS) or 1 << 20):
        raise ValueError("a token takes more experts than there are")
    return config


def write_random(kinds, n, seed, folder, tokens, keeps):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind in kinds:
        pick = random.Random(f"{seed} {kind}")
        made, why = 0, ""
        for _ in range(8 * n):
            if made == n:
                break
            try:
                config = random_config(kind, lambda *all: pick.choice(all), tokens)
                total, active = count(config)
                if (tokens or keeps) and total > LARGEST_RUN:
                    raise ValueError("too large to run")
                work = flops(config, tokens) if tokens else None
                after = kept_after(config, keeps) if keeps else []
            except Exception as error:  # the class refuses some combinations
                why = f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"
                continue
            made += 1
            name = f"{kind}-{made:02d}"
            # every key, or only those that differ from the defaults of the class
            text = config.to_json_string(use_diff=made % 2 == 0)
            if tokens and hasattr(config, "conv_dim"):  # a second of sound
                text = text.replace("{", '{\n  "max_source_samples": 16000,', 1)
            if (tokens or keeps) and config.is_encoder_decoder:  # the encoder reads as many as the decoder writes
                text = text.replace("{", f'{{\n  "source": {tokens or keeps},', 1)
            (folder / f"{name}.json").write_text(text)
            rows.append([name, kind, total, active or "", "random", tokens or keeps or "", work or "", *after])
        print(f"{kind}: {made} configs{'' if made == n else '; ' + why}", file=sys.stderr)
    with open(folder / "MANIFEST.csv", "w", newline="") as f:
        csv.writer(f).writerows([COLUMNS] + rows)


def write_defaults(kinds, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind in kinds or sorted(transformers.CONFIG_MAPPING):
        try:
            group, name = class_of(kind)
            config = transformers.AutoConfig.for_model(kind)
            config.architectures = [name]
            total, active = count(config)
        except Exception as error:
            why = str(error).splitlines()[0][:150] if str(error) else ""
            print(f"{kind}: {type(error).__name__}: {why}", file=sys.stderr)
            continue
        for ending, short in (("", False), ("-short", True)):
            (folder / f"{kind}{ending}.json").write_text(config.to_json_string(use_diff=short))
            rows.append([f"{kind}{ending}", kind, total, active or "", group])
    with open(folder / "MANIFEST.csv", "w", newline="") as f:
        csv.writer(f).writerows([COLUMNS] + rows)


def small_config(kind, pick):
    """Random and small where that makes a model, else as its class has it."""
    for _ in range(8):
        try:
            config = random_config(kind, pick)
            model_of(config)
            return config
        except Exception:  # the class refuses some combinations
            pass
    return transformers.AutoConfig.for_model(kind)


def write_classes(kinds, seed, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind in kinds or sorted(transformers.CONFIG_MAPPING):
        pick = random.Random(f"{seed} {kind}")
        try:
            classes = classes_of(kind)
            text = small_config(kind, lambda *all: pick.choice(all)).to_json_string(use_diff=False)
        except Exception as error:
            print(f"{kind}: {type(error).__name__}", file=sys.stderr)
            continue
        for name in classes:
            fields = json.loads(text) | {"architectures": [name]}
            try:
                total, _ = count(transformers.AutoConfig.for_model(**fields))
            except Exception as error:
                print(f"{name}: {type(error).__name__}", file=sys.stderr)
                continue
            (folder / f"{kind}-{name}.json").write_text(json.dumps(fields, indent=2))
            ending = name[name.index("For"):] if "For" in name else "Model"
            rows.append([f"{kind}-{name}", kind, total, "", ending])
    with open(folder / "MANIFEST.csv", "w", newline="") as f:
        csv.writer(f).writerows([COLUMNS] + rows)


WITHIN = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")


def wrappers(kinds):
    """Each type that keeps a language model under a key, with that key, what kind it is, and its usual config."""
    for kind in kinds or sorted(transformers.CONFIG_MAPPING):
        try:
            group, name = class_of(kind)
            fields = json.loads(transformers.AutoConfig.for_model(kind).to_json_string(use_diff=False))
        except Exception:  # parts have no class of their own
            continue
        key = next((k for k in WITHIN if isinstance(fields.get(k), dict)), None)
        if not key or group in ("masked", "base"):
            continue
        layers = fields[key].get("num_hidden_layers")
        if isinstance(layers, int) and not any(isinstance(v, list) and len(v) == layers for v in fields[key].values()):
            fields[key]["num_hidden_layers"] = min(layers, 2)
        yield kind, key, group, fields | {"architectures": [name]}


def write_ties(kinds, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind, key, group, usual in wrappers(kinds):
        for outer in (None, True, False):
            for inner in (None, True, False):
                fields = json.loads(json.dumps(usual))
                for of, ties in ((fields, outer), (fields[key], inner)):
                    of.pop("tie_word_embeddings", None)
                    of.update({} if ties is None else {"tie_word_embeddings": ties})
                name = f"{kind}-{outer}-{inner}".lower()
                try:
                    total, _ = count(transformers.AutoConfig.for_model(**json.loads(json.dumps(fields))))
                except Exception as error:
                    print(f"{name}: {type(error).__name__}", file=sys.stderr)
                    continue
                (folder / f"{name}.json").write_text(json.dumps(fields, indent=2))
                rows.append([name, kind, total, "", group])
    with open(folder / "MANIFEST.csv", "w", newline="") as f:
        csv.writer(f).writerows([COLUMNS] + rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, metavar="N", help="so many random configs of each type")
    parser.add_argument("--defaults", action="store_true", help="the default config of each type")
    parser.add_argument("--classes", action="store_true", help="a config of each type by each of its classes")
    parser.add_argument("--ties", action="store_true", help="wrappers by who says that the unembedding is the embedding")
    parser.add_argument("--flops", type=int, metavar="T", help="with --random: FLOPs of so many tokens")
    parser.add_argument("--kept", type=int, metavar="T", help="with --random: bytes kept after T and 2 T tokens")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out", type=pathlib.Path, help="the folder for random configs")
    parser.add_argument("--list", action="store_true", help="model types that have a causal model")
    parser.add_argument("names", nargs="*", help="config.json files; with --random, model types")
    args = parser.parse_args()
    if args.list:
        print("\n".join(CAUSAL))
    elif args.defaults:
        write_defaults(args.names, args.out or parser.error("--defaults needs --out"))
    elif args.ties:
        write_ties(args.names, args.out or parser.error("--ties needs --out"))
    elif args.classes:
        write_classes(args.names, args.seed, args.out or parser.error("--classes needs --out"))
    elif args.random:
        write_random(args.names, args.random, args.seed, args.out or parser.error("--random needs --out"), args.flops, args.kept)
    else:
        table = csv.writer(sys.stdout)
        table.writerow(COLUMNS)
        for name in args.names:
            fields = json.loads(pathlib.Path(name).read_text())
            config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
            total, active = count(config)
            table.writerow([pathlib.Path(name).stem, config.model_type, total, active or "", ""])


if __name__ == "__main__":
    main()

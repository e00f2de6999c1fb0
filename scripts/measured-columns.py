#!/usr/bin/env python3
"""Gives the measured rows of data/truth the columns that the library reads in place of prose.

Sources say in titles and notes which software ran, how the plan differs from what its degrees say,
how fast the network is, which layers attend to a window. Here that prose is read, once, into columns:

  all kinds   software
  operations  kernel: the library whose kernel it was, where that is not the software's own;
              quantises (gemm): quantising the activations is in the time; in_network (collectives):
              false where the source rules in-network reduction out
  training    plan, hardware.pods, hardware.node_bits_per_s, model.window, model.chunk,
              model.global_every, model.moe_every, model.not_modelled
  inference   model.chunk, model.global_every, parallel.attention_dp, parallel.fsdp,
              parallel.weights_by, measured.ttft_is, cached_len

A file that has the columns keeps what stands in them; cells that are empty are filled where the rules
tell something, so that running it again changes nothing. Rows of new sources: run it, read the diff.

usage: scripts/measured-columns.py [FILE.csv...]   (default: data/truth/*.csv)
"""
import csv
import glob
import io
import itertools
import math
import os
import re
import sys

# ---- software ----

# Words of a title, and the generation they mean; the first that matches.
TRAINING = [
    ("scalemodel run", "scalemodel-run"), ("Megatron-LM functional tests", "megatron-lm-ci"), ("vTrain", "vtrain-megatron"), ("Hagemann", "aleph-alpha"),
    ("BLOOM", "megatron-deepspeed"), ("Megatron-Turing", "megatron-deepspeed"),
    ("Narayanan", "megatron-lm-v2"), ("Korthikanti", "megatron-lm-v2"),
    ("Megatron-LM README", "megatron-lm-v2"), ("NeMo-Megatron launcher", "megatron-nemo-2022"),
    ("llm-foundry", "llm-foundry"), ("DGX Cloud", "dgx-cloud"),
    ("NeMo-Framework-Launcher", "nemo-2024"), ("NeMo 24", "nemo-2024"),
    ("Megatron-Core", "nemo-2024"), ("NeMo performance summary", "megatron-bridge"),
    ("NeMo long-sequence", "nemo-2024"), ("Megatron-Bridge", "megatron-bridge"),
    ("Megatron-LM dev", "megatron-bridge"), ("SimuMax", "megatron-core-2025"),
    ("AutoModel", "automodel"), ("MLPerf", "mlperf"), ("MaxText README", "maxtext-2023"),
    ("MaxText A3", "maxtext-2023"), ("tpu-recipes", "maxtext-2025"),
    ("gpu-recipes", "maxtext-2025"), ("MaxText", "maxtext-2025"), ("AXLearn", "axlearn"),
    ("torchtitan", "torchtitan"), ("fms-fsdp", "torchtitan"), ("FSDP blog", "torchtitan"),
    ("InternEvo", "internevo"), ("Neuron", "neuron"), ("nanotron", "nanotron"),
    ("MegaScale", "megascale"), ("JAX-Toolbox", "jax-toolbox"), ("Primus", "primus"),
    ("ml-engineering: when", "deepspeed"), ("Levanter", "levanter"), ("KempnerForge", "kempnerforge"),
]

# Generations of one code base that differ more than the chips do: fused norms (their steps are 3 to
# 30 % quicker), the first flash attention, XLA beside PyTorch, releases of two years, whether
# kernels are started by CUDA graphs or by the host, one after the other, and whether tokens travel
# to experts beside another microbatch's work.
VARIANTS = [
    ("aleph-alpha", "RMS kernel", "aleph-alpha-rms"),
    ("aleph-alpha", "flash_attentionv1", "aleph-alpha-flash1"),
    ("megatron-lm-v2", "DeepSpeed ZeRO-3", "deepspeed"),
    ("dgx-cloud", "paxml", "jax-toolbox"), ("dgx-cloud", "maxtext", "dgx-cloud-xla"),
    ("megatron-bridge", "release 25", "megatron-bridge-25"),
    ("megatron-bridge", "EP comm overlap true; CUDA graph none", "megatron-bridge-overlap-host"),
    # The container of 26.02 has no DeepEP (docs/releases/known-issues.md), and up to 26.04 the recipes of
    # Qwen3 235B on B200 and B300 name the all-to-all dispatcher (scripts/performance/configs/qwen at v0.3.1,
    # v0.4.0 and, of B200, v0.4.2).
    ("megatron-bridge", "release 26.02; MoE dispatcher deepep; MoE a2a", "megatron-core-alltoall"),
    ("megatron-bridge", "release 26.02; MoE a2a overlap on", "megatron-core-alltoall"),
    ("megatron-bridge", "alltoall dispatcher", "megatron-core-alltoall"),
    ("megatron-bridge", "26.02-pretrain-qwen3-235b-a22b-b200", "megatron-core-alltoall"),
    ("megatron-bridge", "26.02.01-pretrain-qwen3-235b-a22b-b300", "megatron-core-alltoall"),
    ("megatron-bridge", "26.04-pretrain-qwen3-235b-a22b-b300", "megatron-core-alltoall"),
    ("megatron-bridge", "26.04.01-pretrain-qwen3-235b-a22b-b200", "megatron-core-alltoall"),
    ("megatron-bridge", "overlap_moe_expert_parallel_comm", "megatron-bridge-overlap-host"),
    ("megatron-bridge", "NCCL all-to-all", "megatron-core-alltoall"),
    ("megatron-bridge", "cuda_graph full_iteration/[]; MoE dispatcher hybridep; MoE a2a", "megatron-bridge-overlap-graphed"),
    ("megatron-bridge", "full CG; HybridEP; EP overlap", "megatron-bridge-overlap-graphed"),
    ("megatron-bridge", "release 26.08", "megatron-bridge-overlap-graphed"),
    ("megatron-bridge", "a2a overlap on", "megatron-bridge-overlap"),
    ("megatron-bridge", "EP comm overlap true", "megatron-bridge-overlap"),
    ("megatron-bridge", "EP overlap on", "megatron-bridge-overlap"),
    ("megatron-bridge", "EP overlap, TE", "megatron-bridge-overlap"),
    ("megatron-bridge", "cuda_graph none/[]", "megatron-bridge"),
    ("megatron-bridge", "cuda_graph", "megatron-bridge-graphs"),
    ("megatron-bridge", "CUDA graph transformer_engine", "megatron-bridge-graphs"),
    ("megatron-bridge", "TE CUDA graphs", "megatron-bridge-graphs"),
    ("megatron-bridge", " CG;", "megatron-bridge-graphs"),
    ("mlperf", "mlperf-lora-v51", "mlperf-graphs"),  # MCORE_CUDA_GRAPH=1
    ("mlperf", "full CUDA graph 1", "mlperf-graphs"), ("mlperf", "full CUDA graph,", "mlperf-graphs"),
    ("mlperf", "layers by CUDA graphs", "mlperf-graphs"),
    ("mlperf", "CUDA graphs of layers", "mlperf-graphs"),
    ("maxtext-2025", "bf16-nemo", "nemo-2024"),  # one of Google's GPU recipes
]

# Words of the framework and of the source, in any case; the first row whose words are all there.
SERVING = [
    ("", "splitwise", "vllm-2023"), ("megatron", "", "megatron-lm-2022"),
    ("fastertransformer", "", "fastertransformer"), ("gpt-fast", "", "gpt-fast"),
    ("neuron", "", "neuronx"),
    ("trtllm 1.2", "", "trtllm-1.2"), ("trtllm-serve 1.2", "", "trtllm-1.2"),
    ("nvcr.io", "", "trtllm-2025"), ("tensorrt-llm 0.5", "", "trtllm-0.5"),
    ("tensorrt-llm 0.6", "", "trtllm-0.5"), ("tensorrt-llm 0.1", "", "trtllm-0.17"),
    ("tensorrt-llm 1", "", "trtllm-1"), ("tensorrt-llm ~1", "", "trtllm-1"),
    ("tensorrt-llm", "LLM-Inference-Bench", "trtllm-2024"), ("tensorrt-llm", "", "trtllm-0.17"),
    ("sglang-jax", "", "sglang-jax"), ("tpu-inference", "", "vllm-tpu"),
    ("vllm-tpu", "", "vllm-tpu"), ("vllm-gaudi", "", "vllm-2025"),
    ("vllm", "LLM-Inference-Bench", "vllm-2024"), ("vllm", "MLPerf", "vllm-2024"),
    ("deepspeed", "", "deepspeed-2024"), ("sambaflow", "", "sambaflow"),
    ("jetstream", "", "jetstream"), ("google internal", "", "pathways-2022"), ("atom", "", "atom"),
    ("sglang", "", "sglang-2025"), ("deepseek", "", "sglang-2025"), ("rtp-llm", "", "sglang-2025"),
    ("trt", "", "trtllm-2025"), ("vllm 0.12", "", "vllm-0.12"), ("vllm", "", "vllm-2025"),
]
# Engines that doubled their speed from one winter to the next, by the day of the measurement.
TURNS = [("trtllm-2025", "2026-01-20", "trtllm-1.2"), ("trtllm-2025", "2025-09-01", "trtllm-1.1"),
         ("sglang-2025", "2026-05-17", "sglang-0.5.12"),
         ("sglang-2025", "2025-12-17", "sglang-2026"), ("vllm-2025", "2025-12-17", "vllm-2026")]


def title_of(row):
    return row.get("source.title") or row.get("source", "")


def training_software(row):
    software = next((name for words, name in TRAINING if words in title_of(row)), "")
    said = (row.get("attention_kernel", ""), row.get("notes", ""), row.get("id", ""))
    for generation, words, variant in VARIANTS:
        if software == generation and any(words in text for text in said):
            return variant
    return software


def serving_software(row):
    framework, source = row.get("framework", "").lower(), title_of(row).lower()
    for words, of_source, name in SERVING:
        if words in framework and of_source.lower() in source:
            for generation, day, later in TURNS:
                if name == generation and row.get("date", "") >= day:
                    return later
            return name
    return ""


# Software that runs single operations: words of the source, and the name; the first that matches.
OPERATIONS = [("llmservingsim", "llmservingsim"), ("llmcompass", "llmcompass"), ("aiter:", "aiter"),
              ("infersim", "infersim"), ("all_reduce_bench", "all_reduce_bench"),
              ("aic:sglang", "sglang"), ("aic:trtllm", "trtllm"), ("aic:vllm-0.14", "vllm-0.14"),
              ("aic:vllm", "vllm")]


def operation_columns(row):
    source, chip = row.get("source", ""), row.get("chip", "")
    software = next((name for words, name in OPERATIONS if words in source), "")
    out, kernel = {"software": software}, ""
    if "dtype" in row and "m" in row and "act-quant" in source:
        out["quantises"] = "true"
    if "vllm_default" in source:
        kernel = "vllm_default"
    elif "custom all-reduce" in source:
        kernel = "custom"
    elif "deepgemm" in source:
        kernel = "deepgemm"
    elif software == "trtllm" and row.get("dtype") == "fp8_block" and chip.startswith(("h", "gh")):
        kernel = "deepgemm"  # which TensorRT-LLM calls on Hopper
    elif software != "trtllm" and "trtllm" in source:
        kernel = "trtllm"
    elif software == "sglang" and " flashinfer" in source:
        kernel = "flashinfer"
    out["kernel"] = kernel
    if "NVLS off" in source or "algo Ring" in source:
        out["in_network"] = "false"
    return out


# ---- the architecture ----


def number(row, key):
    text = row.get(key, "")
    return int(float(text)) if text else 0


def number_before(text, words):
    found = re.search(r"(\d*)" + re.escape(words), text)
    return int(found.group(1) or 0) if found else 0


def set_training_model(row, out):
    """Windows and chunks of local layers; every which layer is global, or a mixture of experts."""
    notes = row.get("model.notes", "")
    window, chunk, every = number_before(notes, "-token sliding"), 0, 2
    if not window:
        window = number_before(notes, "-token window")
        every = 6
    if not window and "chunked attention 8192" in notes:
        chunk, every = 8192, 4
    if window or chunk:
        out["model.window"], out["model.chunk"] = window or "", chunk or ""
        out["model.global_every"] = every
    if "every 2nd layer" in notes and number(row, "model.n_experts") > 0:
        out["model.moe_every"] = 2
    if "Mamba" in notes:
        nano = "Nano" in row.get("model.name", "")
        out["model.not_modelled"] = ("a hybrid whose mixtures run again whole" if nano
                                     else "predicting steps (MTP) of a hybrid")


# ---- the machine ----


def node_bits_per_s(row):
    """Of "8x 400 Gb/s InfiniBand per node", "1600 Gbps RoCE per node", "400 Gb/s RDMA per GPU"."""
    text = row.get("hardware.inter_node_network", "")
    text = text[max(text.find("Compute:"), 0):]
    count, at = 1.0, 0
    number_at = re.compile(r"(?<![A-Za-z0-9-])\d+(\.\d*)?([eE][+-]?\d+)?")
    while True:
        found = number_at.search(text, at)
        if not found:
            return 0
        value, at = float(found.group(0)), found.start() + 1
        rest = text[found.end():]
        if rest.startswith("x"):
            count, at = value, found.end() + 1
            continue
        rest = rest.lstrip(" ")
        if not rest.startswith(("GB/s", "Gb/s", "Gbps")):
            continue
        bits = value * count * 1e9 * (8 if rest.startswith("GB/s") else 1)
        chips = number(row, "hardware.chips_per_node") or 8
        return bits * chips if "per GPU" in text else bits


def slices_of(row):
    found = re.search(r"(\d+) (?:pod|slice)\(s\)", row.get("notes", ""))
    return int(found.group(1)) if found else 1


def set_training_system(row, out):
    if slices_of(row) > 1:
        out["hardware.pods"] = slices_of(row)
    bits = node_bits_per_s(row)
    if bits:
        out["hardware.node_bits_per_s"] = "%.12g" % bits


# ---- the plan of a training row ----


def number_after(text, words):
    found = re.search(re.escape(words) + r"\s*([+-]?\d+)", text)
    return int(found.group(1)) if found else 0


class Model:
    """What of the architecture a plan depends on."""

    def __init__(self, row):
        experts, first = number(row, "model.n_experts"), number(row, "model.n_dense_layers")
        alternate = experts > 0 and "every 2nd layer" in row.get("model.notes", "")
        layers = number(row, "model.layers")
        mtp = number(row, "model.n_mtp_layers")
        last_is_dense = (layers - 1) % 2 == 0 if alternate else layers - 1 < first
        self.experts = experts > 0
        self.moe = self.experts and not last_is_dense
        self.begins_moe = experts > 0 and not first > 0 and not alternate
        self.gated = row.get("model.gated", "").lower() not in ("false", "no", "0")
        self.dense_width = 0 if self.begins_moe else number(row, "model.d_ff")
        self.mla = number(row, "model.mla.kv_lora_rank") > 0
        self.q_rank = number(row, "model.mla.q_lora_rank")
        self.shared = number(row, "model.shared_experts") > 0
        self.layers = layers + (mtp if mtp > 0 and layers + mtp <= 1024 else 0)


def mlp_lines(m, down=False):
    """Lines of the MLP that every token takes: g u m y, beside experts sg su sm sy."""
    lines = (["g"] if m.gated else []) + ["u", "m"] + (["y"] if down else [])
    return lines if not m.moe else ["s" + line for line in lines] if m.shared else []


def megatron_modules(detail, m):
    """recompute_modules of Megatron-Core."""
    ops = []
    if "layernorm" in detail:
        ops += ["h", "h.2"]
    if "moe_act" in detail and m.moe:
        ops += ["m"]
    if "mla_up_proj" in detail and m.mla:
        ops += (["qn", "qr"] if m.q_rank else []) + ["qr.2", "kn", "v"]
    if "mlp" in detail and m.dense_width > 0:
        ops += mlp_lines(m)
    if "core_attn" in detail:
        ops += ["o"]
    moe = any(words in detail for words in ("moe,", ": moe", ",moe"))
    if moe and "moe_act" not in detail and m.moe:
        ops += ["z", "g", "u", "m"]
    return ops


def keep_named(detail, m):
    """Policies of XLA name what is kept: everything else runs again, experts too (MaxText's moe.py names
    their products as an MLP's)."""
    def says(*words):
        return any(w in detail for w in words)
    down = not says("mlpwo too", "mlpwo=device", "mlpwo=offload")
    ops = ["h"]
    if m.mla:
        ops += (["qd", "qn", "qr"] if m.q_rank else []) + ["c", "r", "c.2", "qr.2", "r.2", "kn", "v", "o"]
    else:
        if not says("qkv", "query_proj=device", "query_proj=offload", "q/k/v"):
            ops += ["q", "k", "v"]
        ops += ["q.2", "k.2"] + ([] if says("context=device", "context=offload") else ["o"])
    if not says("out proj", "out_proj=device", "out_proj=offload"):
        ops += ["a"]
    ops += ["x.2", "h.2"]
    if m.experts:
        ops += ["p", "z", "g", "u", "m"] + (["o.2"] if down else [])
    return ops + ([] if m.begins_moe and not m.shared else mlp_lines(m, down))


def recompute(row, m):
    kind, detail = row.get("recompute", ""), row.get("recompute_detail", "")
    def says(*words):
        return any(w in detail for w in words)
    if kind == "full":
        return "full"
    if "num-layers 0" in detail or kind in ("", "none"):
        return "none"
    # torchtitan's per-op policy keeps attention and every second matmul of a layer: q, v, gate, down
    if ("torchtitan" in title_of(row) and "2nd layer;" not in detail
            and says("per-op", "default AC")):
        ops = ["h", "k", "q.2", "k.2", "a", "x.2", "h.2"]
        return "+".join(ops + ([] if m.begins_moe else [l for l in mlp_lines(m) if not l.endswith("g")]))
    if says("minimal", "DOT_ONLY", "save_dot", "per-op", "default AC", "2nd layer",
            "selective layer"):
        return "save-matmuls"
    if "modules" in detail:
        return "+".join(megatron_modules(detail, m)) or "none"
    if says("custom", "offload"):
        return "+".join(keep_named(detail, m)) or "none"
    return "selective" if kind == "selective" else "none"


def offloaded(row, notes):
    """XLA's policies say where each kept value lives. The layers' inputs are the most of them: the few
    that a row keeps on the chip beside inputs in host memory (keys and values) count as there too."""
    detail = row.get("recompute_detail", "")
    if "decoder_layer_input=offload" in detail or "offloaded to host" in detail:
        return "activations"
    return "optimizer" if "CPU AdamW offload" in notes else "none"


def chunks(row, layers):
    """Where a source counts embedding and head as layers of the pipeline's split (NeMo does), a model
    two layers short of all chunks has them: the chunks here hold layers alone."""
    said = number(row, "vp") or number_after(row.get("notes", ""), "README say ")
    count, stages = max(said, 1), max(number(row, "pp"), 1)
    counted = layers < stages * count <= layers + 2
    return layers // stages if counted and layers >= stages else count


def expert_split(row, ep, tensor):
    """Whether tensor splits each expert: as the row says, else where experts are fewer than its ranks;
    recipes of before that choice follow Megatron's default, which splits."""
    notes = row.get("notes", "")
    said = number_after(notes, "ETP=")
    before = "DGX Cloud" in title_of(row) and "ETP=" not in notes
    return tensor > 1 and (said > 1 or before or ep < tensor)


def unfused(row, m):
    """Sources of before 2023 that do not name a fused kernel had none; "fused" alone is Megatron's
    softmax between two matmuls."""
    year, title = number(row, "year"), title_of(row)
    softmax = row.get("attention_kernel", "") == "fused" and "Hagemann" in title
    not_flash = row.get("flash_attention", "").lower() in ("false", "no", "0")
    old = 0 < year < 2023
    return ((not_flash or old or softmax or "vTrain" in title) and number(row, "cp") <= 1
            and not m.mla)


def attention_of(row, m):
    """Kernels before those that a chip's calibration is of: FlashAttention 1, in Triton too, and 2, which
    PyTorch has until 2.9 and which issues an A100's instructions on every later GPU."""
    kernel, software = row.get("attention_kernel", ""), row.get("software", "")
    if unfused(row, m):
        return "unfused"
    if software in ("llm-foundry", "aleph-alpha-flash1"):
        return "flash-1"
    return "flash-2" if software in ("torchtitan", "nanotron") or "attention2" in kernel else "fused"


def yes(row, key):
    return row.get(key, "").lower() in ("true", "yes", "1")


ALL_NARROW = ("automodel", "kempnerforge")  # weights, moments and gradients are in 16 bits whole


def narrow_gradients(row):
    """Whether gradients are kept and reduced in 16 bits. Aleph Alpha's code base keeps them so, and its file
    in data/codebases says that it reduces them in fp32; InternEvo's HybridZeroOptimizer; FSDP under PURE; Megatron in fp16,
    which accumulates in fp32 only where it is asked to (arguments.py); NVIDIA's performance recipes
    (grad_sync_dtype of NeMo, grad_reduce_in_fp32=False of Megatron-Bridge's scripts/performance), and what it
    submits to MLPerf (the same in its configurations); and code bases whose models are in 16 bits whole."""
    title, software, precision = title_of(row), row.get("software", ""), row.get("precision", "")
    megatron = software.startswith(("megatron-lm", "vtrain", "deepspeed")) and precision == "FP16 (mixed)"
    nvidia = ((software in ("dgx-cloud", "nemo-2024") and "gpu-recipes" not in title)
              or "Megatron-Bridge performance summary" in title or "NeMo performance summary" in title
              or "MLPerf" in title and not row.get("hardware.chip", "").startswith(("MI3", "TPU"))
              or software in ALL_NARROW)
    return ("Hagemann" in title or "InternEvo" in title or "fp16 grads" in precision or megatron
            or nvidia or "mixed-precision mode PURE" in row.get("notes", ""))


def degrees(row, plan):
    """tensor, context, pipeline, microbatch; returns the replicas, or 0 where they do not divide."""
    chips, devices = number(row, "hardware.chips"), number(row, "hardware.devices")
    devices = devices or chips
    each = devices // chips if chips else 0
    tensor, context, pipeline = (max(number(row, k), 1) for k in ("tp", "cp", "pp"))
    ranks = tensor * context * pipeline
    if not each or ranks > devices or devices % ranks:
        return 0
    replicas = devices // ranks
    microbatch = float(row.get("microbatch") or 0)
    if microbatch <= 0:
        microbatch = float(row.get("per_device_batch_size") or 0) * tensor * context
    if each > 1:  # two ranks of one chip: as one chip with what both hold
        if tensor % each == 0:
            tensor //= each
        elif replicas % each == 0:
            replicas, microbatch = replicas // each, microbatch * each
        else:
            return 0
    plan.update(tensor=tensor, context=context, pipeline=pipeline,
                microbatch=max(1, math.floor(microbatch + 0.5)))
    return replicas


def plan_of(row):
    """In the words of train --plan; "" where the row does not state enough."""
    m, plan = Model(row), {}
    stated = all(float(row.get(k) or 0) >= 1 for k in ("seq_len", "global_batch_sequences"))
    sizes = float(row.get("microbatch") or 0) > 0 or float(row.get("per_device_batch_size") or 0) > 0
    if not stated or not sizes or row.get("task") == "lora" or m.layers <= 0:
        return ""
    replicas = degrees(row, plan)
    if not replicas:
        return ""
    notes, title, year = row.get("notes", ""), title_of(row), number(row, "year")
    tensor = plan["tensor"]
    # Megatron shards the residual stream wherever it shards tensors since 2023, MaxText too
    seq = yes(row, "sp") or (row.get("sp", "") == "" and year >= 2023) or "MaxText" in title
    ep = max(number(row, "ep"), 1) if m.moe else 1
    split = m.moe and expert_split(row, ep, tensor)
    expert = math.gcd(ep if split else -(-ep // tensor), replicas)
    rest = replicas // expert
    zero = int(row["zero_stage"]) if row.get("zero_stage", "") != "" else 1
    fsdp = 1
    if (yes(row, "fsdp") or zero == 3) and zero != 2:
        groups = [number_after(notes, w) for w in ("FSDP group ", "FSDP spans ", "; FSDP ")]
        # MaxText's dcn_data_parallelism of -1: what is not said to be of FSDP is data over slices
        inside = rest // slices_of(row) if rest % slices_of(row) == 0 else rest
        fsdp = next((n for n in groups if n > 1 and rest % n == 0), inside)
        fsdp = 1 if keeps_gathered(row) else fsdp
        # FSDP2 shards over context and over experts, too; what shards gradients alone is nearest, where a row
        # says that experts take all chips and FSDP the other weights
        outside = "FSDP shards weights outside experts" in notes
        kept = "reshard_after_forward false" in notes  # AutoModel's experts: gathered weights stay, shards beside them
        torch = row.get("software", "") == "torchtitan" and not keeps_gathered(row)
        inside = kept or torch and plan["context"] > 1
        if fsdp == 1 and (outside or not inside):
            zero = 2 if outside else 1
    # the optimizer's state lies over FSDP's shards, or over a group that the row names
    group = next((n for n in (number_after(notes, w) for w in ("sharding group of ", "zero1 group "))
                  if n > 0 and (rest // fsdp) % n == 0), 0)
    copies = rest // fsdp if fsdp > 1 else rest // group if group else 1
    virtual = chunks(row, m.layers)
    schedule = "interleaved" if virtual > 1 and plan["pipeline"] > 1 else "1f1b"
    virtual = virtual if schedule == "interleaved" else 1
    if "dualpipe" in row.get("schedule", ""):
        schedule = "dualpipe"
    elif "zero-bubble" in row.get("schedule", ""):
        schedule = "zb-h1"
    precision = row.get("precision_class", "")
    dtype = next((d for words, d in (("nvfp4", "fp4"), ("fp8", "fp8"), ("int8", "int8"))
                  if words in precision), "bf16")
    keys = [("data", rest // fsdp, 1), ("fsdp", fsdp, 1), ("tensor", tensor, 1),
            ("context", plan["context"], 1), ("expert", expert, 1),
            ("pipeline", plan["pipeline"], 1), ("virtual", virtual, 1),
            ("microbatch", plan["microbatch"], 1), ("zero", zero, None),
            ("state_copies", copies, 1),
            ("seq", "on" if tensor > 1 and seq else "off", None),
            ("expert_tensor", "on" if split else "off", "off"),
            ("recompute", recompute(row, m), "none"),
            ("regather", "activations" if "reshard_after_forward false" in notes and fsdp == 1 else "", ""),
            ("schedule", schedule, "1f1b"),
            ("offload", offloaded(row, notes), "none"),
            ("dtype", dtype, "bf16"),
            ("optimizer", "adam-pure-bf16" if row.get("software", "") in ALL_NARROW else "adam", "adam"),
            ("gradient", "bf16" if narrow_gradients(row) else "fp32", "fp32"),
            ("attention", attention_of(row, m), "fused"),
            # Aleph Alpha's code base has a kernel for norms where the row says so
            ("norms", "separate" if row.get("software", "") in ("aleph-alpha", "aleph-alpha-flash1")
             or "eager" in row.get("id", "") else "fused", "fused"),
            ("capacity", capacity(notes), 0),
            ("layout", equal_stages(row, m, plan["pipeline"]), "even")]
    return ",".join(f"{k}={v}" for k, v, usual in keys if v != usual)


def equal_stages(row, m, stages):
    """nanotron's stages take layers until they pass their share of the parameters of layers and head
    (models/base.py, build_model): the last ones have fewer layers."""
    if row.get("software", "") != "nanotron" or stages == 1:
        return "even"
    width, of_layers = number(row, "model.d_model"), [0] * stages
    layer, head = 4 * width * width + 3 * number(row, "model.d_ff") * width, number(row, "model.vocab") * width
    stage = 0
    for n in range(1, m.layers + 1):
        of_layers[stage] += 1
        stage += stages * n * layer > (m.layers * layer + head) * (stage + 1)
    runs = [(k, len(list(same))) for k, same in itertools.groupby(of_layers)]
    return ".".join(f"{k}*{times}" if times > 1 else str(k) for k, times in runs)


def capacity(notes):
    """Slots of an expert in per cent of an even share, where tokens are dropped."""
    factor = re.search(r"capacity_factor=([0-9.]+)", notes)
    return round(100 * float(factor.group(1))) if factor else 0


def keeps_gathered(row):
    """Whether FSDP2 under PyTorch's pipelines has weights gathered once a step and gradients reduced at its
    end, which is ZeRO-1: reshard_after_forward off (torchtitan's parallelize_llama.py with a pipeline, yaml
    files of Automodel), and until the last microbatch no resharding, no reduction (pipelining/stage.py)."""
    says = "torchtitan" in title_of(row) or "reshard_after_forward: false" in row.get("notes", "")
    return says and (number(row, "pp") > 1 or row.get("software", "") == "automodel")


# ---- files ----

TRAINING_COLUMNS = ["software", "plan", "hardware.pods", "hardware.node_bits_per_s", "model.window",
                    "model.chunk", "model.global_every", "model.moe_every", "model.not_modelled"]
OPERATION_COLUMNS = ["software", "kernel", "quantises", "in_network"]
SERVING_COLUMNS = ["software", "model.chunk", "model.global_every", "parallel.attention_dp",
                   "parallel.fsdp", "parallel.weights_by", "measured.ttft_is", "cached_len"]


def training_columns(row):
    software = training_software(row)
    out = {"software": software, "plan": plan_of({**row, "software": software})}
    set_training_model(row, out)
    set_training_system(row, out)
    return out


def serving_columns(row):
    out = {"software": serving_software(row)}
    notes, chips, framework = row.get("notes", ""), number(row, "chips"), row.get("framework", "")
    # three of four layers of Llama 4 attend within chunks
    if "Llama-4" in row.get("model.name", ""):
        out["model.chunk"], out["model.global_every"] = 8192, 4
    # attention of TensorRT-LLM 1.0's own table is data-parallel over the ranks of tp
    if "enable_dp_attention" in notes:
        out["parallel.attention_dp"] = number(row, "parallel.tp") or ""
    elif "attention DP" in notes or "enable_attention_dp" in notes:
        if not number(row, "parallel.dp") and not number(row, "parallel.ep"):
            out["parallel.attention_dp"] = number(row, "parallel.tp") or ""
    # Pope et al. 2022 shard their weights in two dimensions
    if ("2D" in notes or "gathered" in notes) and not number(row, "parallel.tp") and chips % 4 == 0:
        out["parallel.fsdp"] = 4
        out["parallel.weights_by"] = "gathered" if "gathered" in notes else "stationary"
    # InferenceX shows medians or means
    if notes == "medians":
        out["measured.ttft_is"] = "median"
    # of this campaign first tokens and times per token are those of requests that all begin at once
    if framework.startswith("sglang 0.5.1."):
        out["measured.ttft_is"] = "burst"
    # AIPerf repeats its 100 prompts: new to the engine are those that two for each client, before the
    # ten that count, have not shown it
    if framework.startswith("vllm 0.12") and row.get("chip") == "h200_sxm":
        clients = number(row, "concurrency")
        new = min(1.0, max(0.0, 100 - 2 * clients) / (10 * clients))
        out["cached_len"] = round(number(row, "input_len") * (1 - new)) or ""
    # prompts that come again are cached in whole pages of 16 tokens, but for the last token
    if "prompts sent again and again" in notes:
        out["cached_len"] = int((number(row, "input_len") - 1) // 16 * 16)
    return out


def convert(path):
    with open(path, newline="") as f:
        text = f.read()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    header, body = rows[0], rows[1:]
    if "hardware.chip" in header:
        columns, of = TRAINING_COLUMNS, training_columns
    elif "input_len" in header:
        columns, of = SERVING_COLUMNS, serving_columns
    else:
        columns, of = OPERATION_COLUMNS, operation_columns
    said = [of(dict(zip(header, row))) for row in body]
    new = [c for c in columns if c not in header and any(s.get(c, "") != "" for s in said)]
    header += new
    for row, columns_of in zip(body, said):
        row += [""] * len(new)
        for i, name in enumerate(header):
            if name in columns and row[i] == "":
                row[i] = str(columns_of.get(name, ""))
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    if out.getvalue() != text:
        with open(path, "w", newline="") as f:
            f.write(out.getvalue())
        print(path)


if __name__ == "__main__":
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(__doc__)
    for file in sys.argv[1:] or sorted(glob.glob(os.path.join(root, "data/truth/*.csv"))):
        convert(file)

#!/usr/bin/env python3
"""Iteration times of Megatron-LM's functional tests as measured rows: data/truth/training_ci.csv.

Each test of tests/functional_tests has its arguments (model_config.yaml) and, for each platform, what it gave
(golden_values_ENVIRONMENT_PLATFORM.json): the time of every iteration. Recipes in tests/test_utils/recipes say how
many nodes and GPUs it runs on. These are small models on one or a few nodes, most of them bound by the host: no set to
score steps of large runs by, and the best there is for what launches cost. Figures and arguments alone are taken.

Tests that train something else than a GPT, or with arguments that change the work and are not read here, are left out
and counted by the argument. Of iterations the median after the first fifth is taken, which leaves out those that save.

usage: scripts/megatron-golden.py REPOSITORY [COMMIT]      a git directory of NVIDIA/Megatron-LM
"""
import collections
import csv
import json
import os
import re
import statistics
import subprocess
import sys

TESTS = "tests/functional_tests/test_cases/"
RECIPES = "tests/test_utils/recipes/"
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "truth", "training_ci.csv")
CHIPS = {"dgx_a100": ("A100-SXM4-80GB", 8), "dgx_h100": ("H100-SXM-80GB", 8), "dgx_gb200": ("GB200", 4)}
# Columns that measured-columns.py writes.
PROSE = {"software", "plan", "hardware.pods", "hardware.node_bits_per_s", "model.window", "model.chunk", "model.global_every",
         "model.moe_every", "model.not_modelled"}
# Arguments that make another model, another work or another schedule than the columns can say.
OTHER = re.compile(
    r"mamba|hybrid|multi-latent|mtp|moe-latent|experimental|retro|vision|image|heterogeneous|num-layers-in-(first|last)|"
    r"decoder-(first|last)|pipeline-model-parallel-layout|account-for|hierarchical-context|fine-grained|offload|fim|"
    r"moe-layer-freq|moe-shared|moe-use-upcycling|window|distill|lora|frozen|freeze|export|rerun|fsdp|"
    r"step-batch-size|rampup|train-samples|num-distributed-optimizer-instances|use-megatron-fsdp|"
    r"moe-expert-capacity|cuda-graph|^optimizer$|muon|^inference|^finetune$|^sft$|^perform-rl|tp-comm-overlap|overlap-moe")


def git(repository, *words):
    done = subprocess.run(["git", "-C", repository, *words], capture_output=True, text=True, check=False)
    return done.stdout


def arguments(text):
    """--name: value of MODEL_ARGS; YAML of one level, which is all that these files are."""
    found, on = {}, False
    for line in text.splitlines():
        if re.match(r"^\S", line):
            on = line.startswith("MODEL_ARGS:")
        match = re.match(r"^\s+(--[\w-]+):\s*(.*?)\s*(#.*)?$", line)
        if on and match:
            found[match.group(1)[2:]] = match.group(2).strip("\"'")
    return found


def machines(repository, commit):
    """GPUs of each test by platform, as its recipe has them."""
    found = {}
    for path in git(repository, "ls-tree", "-r", "--name-only", commit, RECIPES).split():
        text = git(repository, "show", f"{commit}:{path}")
        nodes, gpus = re.search(r"^  nodes: (\d+)", text, re.M), re.search(r"^  gpus: (\d+)", text, re.M)
        if not (nodes and gpus):
            continue
        folder = os.path.dirname(path).rsplit("/", 1)[-1]
        for name in re.findall(r"test_case: \[([^\]]*)\]", text):
            for one in re.split(r"[,\s]+", name.strip()):
                found[(folder, one)] = (int(nodes.group(1)), int(gpus.group(1)))
    return found


def number(args, name, usual=0):
    try:
        return int(float(args.get(name, usual)))
    except ValueError:
        return usual


def is_on(args, name):
    return args.get(name, "false").lower() == "true"


def refused(args):
    for name, value in args.items():
        if OTHER.search(name) and value.lower() not in ("false", "none"):
            return name
    ours = number(args, "tensor-model-parallel-size", 1)
    if number(args, "expert-tensor-parallel-size", ours) != ours:
        return "expert-tensor-parallel-size"
    needed = ("num-layers", "hidden-size", "num-attention-heads", "seq-length", "micro-batch-size", "global-batch-size")
    return next((f"no {name}" for name in needed if number(args, name) == 0), None)


def precision(args):
    if args.get("fp8-format"):
        return "FP8", "mxfp8" if args.get("fp8-recipe") == "mxfp8" else "fp8"
    return ("FP16", "fp16") if is_on(args, "fp16") else ("BF16", "bf16") if is_on(args, "bf16") else (None, None)


def vocabulary(args, tp):
    size = number(args, "vocab-size", 50257 if "merge-file" in args else 0)
    unit = 128 * tp
    return (size + unit - 1) // unit * unit if size else 0


def row_of(name, platform, environment, args, machine, times, commit):
    tp, pp = number(args, "tensor-model-parallel-size", 1), number(args, "pipeline-model-parallel-size", 1)
    cp, ep = number(args, "context-parallel-size", 1), number(args, "expert-model-parallel-size", 1)
    nodes, gpus = machine
    chips, layers = nodes * gpus, number(args, "num-layers")
    dp = chips // (tp * pp * cp)
    chip, per_node = CHIPS[platform]
    shown, kind = precision(args)
    chunk = number(args, "num-layers-per-virtual-pipeline-stage")
    vp = layers // pp // chunk if chunk else number(args, "num-virtual-stages-per-pipeline-rank", 1)
    experts, hidden = number(args, "num-experts"), number(args, "hidden-size")
    heads = number(args, "num-attention-heads")
    wide = number(args, "ffn-hidden-size", 4 * hidden)
    size = vocabulary(args, tp)
    if dp < 1 or dp * tp * pp * cp != chips or not kind or not size:
        return None
    again = args.get("recompute-granularity", "none")
    return {
        "id": f"mlm-ci-{name}-{platform.replace('dgx_', '')}-{environment}", "source.title": "Megatron-LM functional tests (golden values)",
        "source.key": "megatron-lm-golden", "year": 2026, "task": "pretrain", "quality": "C",
        "flags": "ci_test", "model.name": f"GPT h{hidden} L{layers}", "model.layers": layers, "model.d_model": hidden,
        "model.d_ff": "" if experts else wide, "model.n_heads": heads,
        "model.n_kv_heads": number(args, "num-query-groups", heads) if is_on(args, "group-query-attention") else heads,
        "model.d_head": number(args, "kv-channels", hidden // heads), "model.vocab": size,
        "model.n_experts": experts or "", "model.experts_per_token": number(args, "moe-router-topk", 2) if experts else "",
        "model.d_ff_expert": number(args, "moe-ffn-hidden-size", wide) if experts else "",
        "model.gated": str(is_on(args, "swiglu")).lower(),
        "model.tied": str(not is_on(args, "untie-embeddings-and-output-weights")).lower(),
        "hardware.chip": chip, "hardware.chips": chips, "hardware.devices": chips, "hardware.chips_per_node": per_node,
        "precision": shown, "precision_class": kind, "seq_len": number(args, "seq-length"),
        "global_batch_sequences": number(args, "global-batch-size"), "microbatch": number(args, "micro-batch-size"),
        "tp": tp, "cp": cp, "pp": pp, "vp": vp, "ep": ep, "dp": dp,
        "sp": str(is_on(args, "sequence-parallel")).lower(), "fsdp": "false",
        "zero_stage": 1 if is_on(args, "use-distributed-optimizer") else 0,
        "recompute": again if again in ("full", "selective") else "none",
        "attention_kernel": args.get("attention-backend", "TransformerEngine"), "flash_attention": "true",
        "notes": f"{'deterministic; ' if is_on(args, 'deterministic-mode') else ''}at {commit[:9]}",
        "measured.step_time_s": f"{statistics.median(times):.5g}",
    }


def main():
    repository = sys.argv[1]
    commit = git(repository, "rev-parse", sys.argv[2] if len(sys.argv) > 2 else "HEAD").strip()
    known = machines(repository, commit)
    left, rows = collections.Counter(), []
    with open(os.path.join(os.path.dirname(OUT), "training.csv"), newline="", encoding="utf-8") as file:
        header = [name for name in next(csv.reader(file)) if name not in PROSE]
    for path in git(repository, "ls-tree", "-r", "--name-only", commit, TESTS).split():
        match = re.match(rf"^{TESTS}(gpt|moe)/([^/]+)/golden_values_(dev|lts)_(dgx_\w+?)\.json$", path)
        if not match or match.group(4) not in CHIPS or match.group(3) != "dev":
            continue
        _, name, environment, platform = match.groups()
        args = arguments(git(repository, "show", f"{commit}:{os.path.dirname(path)}/model_config.yaml"))
        why = refused(args)
        if "_1node" in name and platform == "dgx_gb200":
            why = "on one GB200 node: 5 to 17 times as long as on two, by a host that is told nowhere"
        folder = "gb200" if platform == "dgx_gb200" else "h100"
        machine = known.get((folder, name))
        values = json.loads(git(repository, "show", f"{commit}:{path}") or "{}").get("iteration-time") or {}
        times = [v for v in list(values.get("values", {}).values()) if isinstance(v, (int, float)) and v > 0]
        times = times[len(times) // 5:]
        if why or not machine or len(times) < 5:
            left[why or ("no recipe" if not machine else "no times")] += 1
            continue
        row = row_of(name, platform, environment, args, machine, times, commit)
        if row:
            rows.append(row)
        else:
            left["degrees, precision or vocabulary not told"] += 1
    if not rows:
        sys.exit(f"{repository}: no measured test in it; {os.path.normpath(OUT)} stays as it is")
    with open(OUT, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["id"]))
    subprocess.run([sys.executable, os.path.join(os.path.dirname(OUT), "..", "..", "scripts", "measured-columns.py"), OUT], check=True)
    print(f"{len(rows)} rows; left out:", ", ".join(f"{n} {why}" for why, n in left.most_common()))


if __name__ == "__main__":
    main()

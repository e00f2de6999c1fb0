#!/usr/bin/env python3
"""Try the recipes of a folder: how many are read, priced, come back from what is emitted, and how far the
price is from a published time. Outside the test suite: the folder is the user's.

  recipes-against.py FOLDER [--scalemodel PROGRAM] [--table] [--failures]

FOLDER holds MANIFEST.csv (file, framework, model, hardware, chips, batch, sequence, measured), the files it names, and
args.json, a list of launches as {"id", "args": {key: value}}, which the manifest names as args.json#ID. What the
manifest says of the chips becomes --on where the recipe does not say it, and the model's name MODEL."""
import argparse
import collections
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys

SERVING = {"vllm", "sglang", "tensorrt-llm", "vllm-tpu", "dynamo"}
CHIPS = [(r"gb300|a4x-?max", "gb300-nvl72"), (r"gb200|a4x", "gb200-nvl72"), (r"b300", "b300"), (r"b200|a4\b", "b200"),
         (r"h200|a3ultra", "h200"), (r"h100-96", "h100-96"), (r"h100|a3mega", "h100-sxm"), (r"v5p", "tpu-v5p"),
         (r"v6e|trillium", "tpu-v6e"), (r"tpu7x|ironwood", "tpu-v7")]
MODELS = [(r"405b", "llama-3.1-405b"), (r"llama-?3.*70b", "llama-3.1-70b"), (r"llama-?3.*8b", "llama-3.1-8b"), (r"llama-?2.*7b", "llama-2-7b"),
          (r"llama-?2.*70b", "llama-2-70b"), (r"mixtral.*8x22", "mixtral-8x22b"), (r"mixtral.*8x7", "mixtral-8x7b"), (r"deepseek.*(v3|r1)", "deepseek-v3"),
          (r"gpt.oss.120", "gpt-oss-120b"), (r"qwen3.*235", "qwen3-235b-a22b"), (r"qwen3.*30b", "qwen3-30b-a3b"), (r"qwen3.*32b", "qwen3-32b"),
          (r"qwen3.*4b", "qwen3-4b"), (r"kimi.*k2", "kimi-k2"), (r"gpt3.*175|175b", "gpt3-175b"), (r"gemma4.26", "gemma-4-26b-a4b"),
          (r"maverick|17b.?x?128", "llama-4-maverick"), (r"scout|17b.?x?16", "llama-4-scout"), (r"nemotron.4.15", "nemotron-4-15b")]


def match(table, text):
    return next((name for pattern, name in table if re.search(pattern, text, re.I)), None)


def launch(row, args):
    """A list of arguments as the command it came from."""
    words = []
    precision = {"MXFP8": "fp8_mx", "FP8": "fp8_cs", "FP8-CS": "fp8_cs", "FP8_CS": "fp8_cs", "FP8-SC": "fp8_sc", "NVFP4": "nvfp4", "BF16": "bf16"}
    for key, value in args.items():
        if key == "precision": # a column of the published table, not a flag
            key, value = "--compute_dtype", precision.get(str(value).upper().split()[0], "bf16")
        if value is None:
            continue
        value = "" if value is True else str(value)
        if key.startswith("-"):
            quote = '"' if "${" in value else "'"
            words += [key, quote + value + quote] if value else [key]
        else:
            words.append(f"{key}='{value}'")
    if row["framework"] == "maxtext":
        return "python3 -m MaxText.train base.yml " + " ".join(words)
    bare = all(not w.startswith("-") for w in words)
    return ("\n" if bare else "launch ") + ("\n" if bare else " ").join(words) + "\n"


def titan(row, args):
    """The tables of torchtitan's benchmarks say degrees in words."""
    cell = " ".join([args["caption"]] + args["row"])
    degree = lambda name: next(iter(re.findall(rf"{name} ?(\d+)", cell)), "1")
    length = next(iter(re.findall(r"\b(\d{5,6})\b", " ".join(args["row"]))), "8192")
    schedule = "Interleaved1F1B" if "nterleaved" in " ".join(args["row"]) else "1F1B"
    lines = ["[model]", 'name = "llama3"', f'flavor = "{args["model"]}"', "[training]", f'local_batch_size = {args["local_batch"]}',
             f"seq_len = {length}", f'global_batch_size = {args.get("global_batch", -1)}', "[parallelism]",
             f'tensor_parallel_degree = {degree("TP")}', f'pipeline_parallel_degree = {degree("PP")}',
             f'context_parallel_degree = {degree("CP")}', f'pipeline_parallel_schedule = "{schedule}"',
             "[activation_checkpoint]", f'mode = "{args.get("ac", "full")}"', 'selective_ac_option = "op"']
    if "loat8" in " ".join(args["row"]) + ("" if len(args["row"]) > 1 and "FSDP" == args["row"][0] else args["caption"]):
        lines.insert(3, 'converters = ["float8"]')
    stages = int(args.get("pp", 1)) # of December 2024: as many microbatches as stages, unless told
    lines.insert(lines.index("[activation_checkpoint]"), f'pipeline_parallel_microbatch_size = {max(1, int(args["local_batch"]) // stages)}')
    if "compile" in cell and args["row"] != ["FSDP"]:
        lines += ["[compile]", "enable = true"]
    return "\n".join(lines) + "\n"


def command(program, row, text, emit=None, as_json=True):
    verb = "serve" if row["framework"] in SERVING else "train"
    chip = match(CHIPS, row["hardware"]) or "h100-sxm"
    words = [program, verb, "--from", "-"]
    chips = re.findall(r"\d+", row["chips"] or "")
    count = int(chips[0]) if chips else 0
    shape = re.search(r"\d+x\d+x\d+", row["hardware"])
    if shape and chip.startswith("tpu"):
        count = shape[0]
    if chip.endswith("nvl72") and count and count > 72:
        count = f"{count // 64}x64" # of each domain of 72 the launches use 64
    words += ["--on", f"{chip}:{count}" if count else chip]
    words += ["--emit", emit] if emit else []
    return words + (["--json"] if as_json else []), text


def run(words, text, model):
    """With the model that the recipe says, or else the manifest's."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60)
    if "MODEL" in done.stderr and "the recipe's model" not in done.stderr:
        if not model and "does not say its model" in done.stderr and not words[1] == "serve":
            model = "llama-3.1-8b" if "DeepSpeed" in done.stderr else None # whose files say nothing of the model
        if not model:
            return done
        done = subprocess.run(words[:2] + [model] + words[2:], input=text, capture_output=True, text=True, timeout=60)
    if "does not say its batch" in done.stderr or "not say which chips" in done.stderr:
        done = subprocess.run(words[:2] + ([model] if model else []) + ["--batch", "256seqs"] + words[2:], input=text,
                              capture_output=True, text=True, timeout=60)
    return done


def measured_seconds(row, recipe):
    """Of a step: said, or from tokens per second and chip."""
    said = re.search(r"([\d.]+) s\b", row["measured"])
    if not re.match(r"\d+$", row["chips"] or ""):
        return None # on chips that are not said
    if said:
        return float(said[1])
    rate = re.search(r"([\d,.]+) tok/s/(GPU|chip)", row["measured"])
    chips = re.findall(r"\d+", row["chips"] or "")
    if not rate or not chips or not recipe.get("batch_sequences"):
        return None
    return recipe["batch_sequences"] * recipe["seq"] / (float(rate[1].replace(",", "")) * int(chips[0]))


def try_one(options, row, text):
    model = match(MODELS, row["model"] + " " + row["path"])
    words, text = command(options.scalemodel, row, text)
    try:
        done = run(words, text, model)
    except subprocess.TimeoutExpired:
        return {"error": "the best plan beside it took more than a minute"}
    if done.returncode > 1:
        return {"error": done.stderr.strip().splitlines()[0] if done.stderr else f"exit {done.returncode}"}
    answer = json.loads(done.stdout)
    recipe = answer.get("recipe", {})
    plans = answer.get("plans") or answer.get("points") or []
    best = plans[0] if plans else answer
    seconds = (best.get("step_time_s") or {}).get("expected") if isinstance(best.get("step_time_s"), dict) else None
    out = {"recipe": recipe, "fits": done.returncode == 0, "seconds": seconds}
    if options.emit:
        words, text = command(options.scalemodel, row, text, emit=recipe["framework"], as_json=False)
        emitted = run(words, text, model)
        if emitted.returncode <= 1:
            words, _ = command(options.scalemodel, row, "")
            again = run(words, emitted.stdout, model)
            plan = lambda done: [p["plan"] for p in json.loads(done.stdout).get("plans", [])]
            out["round"] = again.returncode <= 1 and plan(again) == plan(done)
            out["told"] = "cannot be told" in emitted.stdout
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scalemodel", default="build/scalemodel")
    parser.add_argument("--emit", action="store_true", help="emit each recipe again and read that")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--table", action="store_true", help="each recipe with a published time")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    launches = {item["id"]: item for item in json.loads((options.folder / "args.json").read_text())}
    tried, read, fits, back, errors = (collections.Counter() for _ in range(5))
    ratios = collections.defaultdict(list)
    for row in csv.DictReader((options.folder / "MANIFEST.csv").open()):
        framework = row["framework"]
        if options.only not in framework:
            continue
        tried[framework] += 1
        name, _, number = row["file"].partition("#")
        if number:
            args = launches[number]["args"]
            text = titan(row, args) if framework == "torchtitan" else launch(row, args)
        else:
            text = (options.folder / name).read_text()
        result = try_one(options, row, text)
        if "error" in result:
            errors[framework, result["error"][:110]] += 1
            continue
        read[framework] += 1
        fits[framework] += result["fits"]
        back[framework] += bool(result.get("round"))
        measured = measured_seconds(row, result["recipe"])
        if measured and result["seconds"]:
            ratios[framework].append(result["seconds"] / measured)
            if options.table:
                print(f'{framework} | {row["model"]} | {row["hardware"]} {row["chips"]} | {result["recipe"]["plan"]} | '
                      f'{measured:.2f} s | {result["seconds"]:.2f} s | {result["seconds"] / measured:.2f}')
    print(f'{"framework":20} tried  read  fits  back  timed  predicted/measured: median (least..most)')
    for framework in tried:
        r = ratios[framework]
        told = f"{statistics.median(r):.2f} ({min(r):.2f}..{max(r):.2f})" if r else ""
        print(f"{framework:20} {tried[framework]:5} {read[framework]:5} {fits[framework]:5} {back[framework]:5} {len(r):6}  {told}")
    print(f'{"all":20} {sum(tried.values()):5} {sum(read.values()):5} {sum(fits.values()):5} {sum(back.values()):5}')
    if options.failures:
        for (framework, error), n in errors.most_common():
            print(f"{n:4} {framework}: {error}", file=sys.stderr)


main()

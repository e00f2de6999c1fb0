#!/bin/sh
# The figures of docs/run.md and docs/run-serve.md that need a machine which does nothing else, in one go: a dozen
# architectures trained on two ranks, each step beside its prediction, and requests served beside their simulation.
#
#   scripts/figures-when-idle.sh [FOLDER]     FOLDER: of what is measured, for another look (default: a new one)
#
# Prints both tables and the load before, between and after. Each architecture is trained twice, half the study apart, and the
# lesser median step counts. PROGRAM: build/scalemodel; STEPS (15); RUNS (3) of each policy; QUICK=1: measure --quick.
set -eu
root="$(cd "$(dirname "$0")/.." && pwd)"
PROGRAM="${PROGRAM:-$root/build/scalemodel}"
export PROGRAM
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder/serve"
cat "$root"/docs/*.md >"$folder/text"
load() { echo "load $1: $(cut -d' ' -f1-3 /proc/loadavg)"; }

load before
"$PROGRAM" measure --ranks 2 --with threads ${QUICK:+--quick} -o "$folder/machine.json" >"$folder/measured.txt"
python3 - "$root" "$folder" "${STEPS:-15}" <<'END'
import json, os, statistics, subprocess, sys
root, folder, steps = sys.argv[1:]
wide = dict(hidden_size=256, intermediate_size=704, num_hidden_layers=4, vocab_size=512, max_position_embeddings=1024)
heads = dict(num_attention_heads=8, num_key_value_heads=4)
experts = dict(num_local_experts=8, moe_intermediate_size=256)
# What of the small reference models is made large enough to be measured.
of = {"llama": dict(wide, **heads, head_dim=32), "mistral": dict(wide, **heads, head_dim=32, sliding_window=64),
      "gemma2": dict(wide, **heads, head_dim=32, sliding_window=64), "qwen3": dict(wide, **heads, head_dim=32),
      "starcoder2": dict(wide, **heads), "phi": dict(wide, **heads), "glm4": dict(wide, **heads, head_dim=32),
      "mixtral": dict(wide, **heads, num_local_experts=8),
      "llama4": dict(wide, **heads, head_dim=32, num_local_experts=8, intermediate_size_mlp=704),
      "deepseek_v3": dict(wide, num_attention_heads=8, num_key_value_heads=8, q_lora_rank=96, kv_lora_rank=64, qk_nope_head_dim=32,
                          qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=8, moe_intermediate_size=256),
      "qwen3_next": dict(wide, **heads, head_dim=32, num_experts=8, moe_intermediate_size=256, shared_expert_intermediate_size=256,
                         linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=4, linear_num_value_heads=8,
                         layer_types=["linear_attention", "full_attention"] * 2),
      "mamba2": dict(hidden_size=256, num_hidden_layers=4, vocab_size=512, state_size=32, num_heads=8, head_dim=64, chunk_size=64)}
lists = ("layer_types", "no_rope_layers", "moe_layers", "mlp_layer_types")
found = {}
for turn in range(2):
    for name, sizes in of.items():
        config = json.load(open(f"{root}/tests/reference/{name}.json"))["config"]
        config = {k: v for k, v in config.items() if k not in lists} | sizes
        json.dump(config, open(f"{folder}/{name}.json", "w"))
        ran = subprocess.run([os.environ["PROGRAM"], "run", "train", f"{folder}/{name}.json", "--data", f"{folder}/text", "--seq", "128",
                              "--batch", "1024", "--steps", steps, "--with", "threads", "--plan", "data=2,zero=1,microbatch=2", "--system",
                              f"{folder}/machine.json", "--calibration", f"{folder}/machine.txt", "--json"], capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{name}: {ran.stderr}")
        open(f"{folder}/{name}.{turn}.answer.json", "w").write(ran.stdout)
        step = json.loads(ran.stdout)["step_s"]
        found[name] = step["predicted"], min(step["measured"], found.get(name, (0, 1e9))[1])
off = {name: abs(predicted / measured - 1) for name, (predicted, measured) in found.items()}
print("| architecture | step, predicted | measured | ratio |\n|---|---|---|---|")
for name, (predicted, measured) in found.items():
    print(f"| {name} | {1e3 * predicted:.3g} ms | {1e3 * measured:.3g} ms | {predicted / measured:.2f} |")
print(f"\n{len(off)} architectures: the median step is {100 * statistics.median(off.values()):.1f} % off, the worst {100 * max(off.values()):.1f} %")
END
load between
"$root/scripts/serve-against-simulation.sh" "$folder/serve"
load after

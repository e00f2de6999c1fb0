#!/bin/sh
# docs/run-serve.md, "Simulated and measured": the same requests served and simulated under each policy, on a machine that
# does nothing else, with `measure` just before.
#
#   scripts/serve-against-simulation.sh [FOLDER]      FOLDER: of what is measured, for another look (default: a new one)
#
# Prints the table's rows, each the run of RUNS (default 3) with the middle median of time per token; PROGRAM: build/scalemodel; QUICK=1: measure --quick.
set -eu
program="${PROGRAM:-$(cd "$(dirname "$0")/.." && pwd)/build/scalemodel}"
runs="${RUNS:-3}"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
cd "$folder"
cat >llama.json <<'END'
{"model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 8,
 "num_key_value_heads": 4, "vocab_size": 512, "max_position_embeddings": 4096, "tie_word_embeddings": false}
END
"$program" measure --with self ${QUICK:+--quick} -o machine.json >measured.txt
[ -s machine.txt ] || { echo "measure wrote no machine.txt beside machine.json" >&2 && exit 1; }
"$program" run train llama.json --data llama.json --seq 64 --steps 1 --with self --checkpoint llama.safetensors >trained.txt
for policy in chunked continuous static; do
    for run in $(seq "$runs"); do
        "$program" run serve llama.json --checkpoint llama.safetensors --with self --policy "$policy" --qps 9 --requests 60 \
            --prompt 120 --prompt-cv 0.5 --output 30 --output-cv 0.5 --batch 8 --longest 1024 \
            --system machine.json --calibration machine.txt --json >"$policy.$run.json"
    done
done
python3 - "$runs" <<'END'
import json, sys
def beside(one, key, at="p50", unit=1e3):
    s, m = (one["latency"][key][side][at] * unit for side in ("simulated", "measured"))
    return f"{s:.3g} \\| {m:.3g} ms \\| {s / m:.2f}"
def step(one, kinds):
    k = next((one["steps"][k] for k in kinds if k in one["steps"]), None)
    return "-" if not k else f"{1e3 * k['predicted_s']:.3g} \\| {1e3 * k['measured_s']:.3g} ms \\| {k['predicted_s'] / k['measured_s']:.2f}"
print("| `--policy` | first token, median | p90 | time per token, median | p90 | decode step | prompts |\n|---|---|---|---|---|---|---|")
for policy in ("chunked", "continuous", "static"):
    runs = [json.load(open(f"{policy}.{i + 1}.json")) for i in range(int(sys.argv[1]))]
    one = sorted(runs, key=lambda r: r["latency"]["tpot_s"]["measured"]["p50"])[len(runs) // 2]
    print(f"| `{policy}` | {beside(one, 'ttft_s')} | {beside(one, 'ttft_s', 'p90')} | {beside(one, 'tpot_s')} | "
          f"{beside(one, 'tpot_s', 'p90')} | {step(one, ['decode'])} | {step(one, ['prefill', 'mixed'])} |")
END

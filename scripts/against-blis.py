#!/usr/bin/env python3
"""What `scalemodel simulate` and five other simulators say of the runs of vLLM that BLIS was compared on, beside what was measured.

usage: against-blis.py PROGRAM ANSWERS.csv ROWS.csv [--all]

PROGRAM is build/scalemodel. ANSWERS.csv is tests/reference/blis.csv: of each run the figure (of a whole request and of its first token the
mean, the 90th and the 99th percentile, ms), what was measured and what each simulator had said (inference-sim/sim-to-real-accuracy-validation,
results_iter36 and results_trainval, where BLIS was fitted to them). ROWS.csv has the runs' questions, by their id (data/truth/inference.csv).
Printed are medians of the errors, in %: of the simulator / of scalemodel on the same runs; --all prints each run. The runs send a few prompts again and again at a constant rate, so that nearly all of each is cached.
"""
import csv
import json
import statistics
import subprocess
import sys

FIGURES = {f"{of}_{kind}": (of + "_s", kind) for of in ("e2e", "ttft") for kind in ("mean", "p90", "p99")}
MINUTES = 10


def simulated(program, row):
    """Of each figure what simulate says, in ms."""
    rate, prompt, cached = float(row["request_rate_per_s"]), round(float(row["input_len"])), int(row["cached_len"])
    engine = dict(setting.split("=") for setting in row["engine"].split(","))
    command = [program, "simulate", row["model.name"], "--on", f"h100-sxm:{row['chips']}", "--plan", f"tensor={row['parallel.tp']}",
               "--prompt", str(prompt - cached), "--shared-prefix", str(cached), "--prefix-cache", "--output", row["output_len"],
               "--arrivals", f"uniform:{rate:g}/s", "--requests", str(round(rate * 60 * MINUTES)), "--software", row["software"],
               "--batch", engine["most_running"], "--chunk", engine["budget_tokens"], "--weights", row["weight_dtype"], "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {figure: 1e3 * answer[of][kind] for figure, (of, kind) in FIGURES.items()}


def main(program, answers_path, rows_path, every):
    with open(rows_path, newline="") as table:
        rows = {row["id"]: row for row in csv.DictReader(table)}
    with open(answers_path, newline="") as table:
        answers = list(csv.DictReader(table))
    simulators = [name for name in answers[0] if name not in ("id", "figure", "measured")]
    ours = {row: simulated(program, rows[row]) for row in {answer["id"] for answer in answers}}
    errors = {}
    for answer in answers:
        figure, measured = answer["figure"], float(answer["measured"])
        own = ours[answer["id"]][figure] / measured - 1
        errors.setdefault((figure, "scalemodel"), []).append((own, own))
        for name in simulators:
            if answer[name]:
                errors.setdefault((figure, name), []).append((float(answer[name]) / measured - 1, own))
        if every:
            print(answer["id"], figure, answer["measured"], f"{ours[answer['id']][figure]:.4g}", f"{own:+.1%}")
    print("| simulator | runs | " + " | ".join(f"{'request' if f[0] == 'e' else 'first token'}, {f.split('_')[1]}" for f in FIGURES) + " |")
    print("|---|---:|" + "---:|" * len(FIGURES))
    for name in ["scalemodel", *simulators]:
        found = [errors.get((figure, name)) for figure in FIGURES]
        medians = ["–" if not e else " / ".join(f"{100 * statistics.median(map(abs, side)):.1f}" for side in zip(*e)) for e in found]
        if name == "scalemodel":
            medians = [m.split(" / ")[0] for m in medians]
        print(f"| {name} | {max(len(e or []) for e in found)} | " + " | ".join(medians) + " |")


if __name__ == "__main__":
    if len(sys.argv) == 4 or sys.argv[4:] == ["--all"]:
        main(*sys.argv[1:4], len(sys.argv) == 5)
    else:
        sys.exit(__doc__)

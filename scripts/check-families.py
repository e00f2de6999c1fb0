#!/usr/bin/env python3
"""How many real configs are read, and how many of those exactly.

  check-families.py DIR [MANIFEST.csv] [--kind published] [--all]

DIR holds NAME.json or NAME/config.json; the manifest (DIR/MANIFEST.csv) names them in a column `name`
and gives `exact_total` (with towers and heads of several tokens, or without), `exact_active`, FLOPs of
`tokens`, and bytes kept after so many and twice as many, empty where nobody knows; columns `kind` and `model_type`
are shown where they are there. scripts/reference-totals.py writes one. Prints a line for each file
that is refused or differs (in part: where a note says what is left out, or more) (--all: for every file), then a table. Exits 1 when one differs.
Not part of the suite: the configs of others are not in this repository. SCALEMODEL: the command.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys

OUTCOMES = ["exact", "in part", "wrong total", "wrong active", "wrong FLOPs", "wrong cache", "refused", "no total known", "failed"]


def answer_of(command, path, row):
    """The command's answer to one config, or its error."""
    answers = []
    for times in (1, 2) if row.get("exact_kept_twice") else (1,):
        length = ["--seq", str(times * int(row["tokens"]))] if row.get("tokens") else []
        done = subprocess.run([command, "model", str(path), "--json"] + length, capture_output=True, text=True)
        answers.append(json.loads(done.stdout) if done.returncode == 0 else None)
    if all(answers):
        answers[0]["kept"] = [a["kv_bytes_per_sequence"] + a["state_bytes_per_sequence"] for a in answers]
        return answers[0], None
    error = done.stderr.strip().split("\n")[0]
    return None, error if done.returncode == 3 else f"exit status {done.returncode}: {error}"


def totals(answer):
    """With each choice of what is counted apart: a class may have towers and no predicting layers."""
    sums = {answer["params"]}
    for params in answer["apart"].values():
        sums |= {s + params for s in sums}
    return sums


def judge(row, answer, error):
    if answer is None:
        return "failed" if error.startswith("exit status") else "refused"
    if not row.get("exact_total"):
        return "no total known"
    if float(row["exact_total"]) not in totals(answer):
        said = any(words in answer["note"] for words in ("left out", "alone", "which the class has not"))
        return "in part" if said else "wrong total"
    if row.get("exact_active"): # with the embedding, which some publishers leave out, or without
        embedding = answer["components"]["embedding"]
        over = float(row["exact_active"]) - answer["active_params"]
        if not totals(answer) & {answer["params"] + over, answer["params"] + over - embedding}:
            return "in part" if "active" in answer["note"] else "wrong active"
    if row.get("exact_flops"):
        counted = answer["forward_flops_per_token_full"] * answer["seq"]
        if abs(counted / float(row["exact_flops"]) - 1) > 1e-9:
            return "wrong FLOPs"
    if row.get("exact_kept") and answer["kept"] != kept_of(row):
        return "wrong cache"
    return "exact"


def kept_of(row):
    return [float(row["exact_kept"]), float(row["exact_kept_twice"])]


def find(folder, name):
    flat = folder / f"{name}.json"
    return flat if flat.exists() else folder / name / "config.json"


def show(row, outcome, answer, error):
    said = error
    if answer is not None:
        with_apart = [f", {answer['params_with_apart']:.0f} with what is beside,"] if answer["apart"] else []
        said = f"{answer['params']:.0f}{''.join(with_apart)} of {row.get('exact_total') or '?'}"
        if outcome == "wrong active":
            said += f", active {answer['active_params']:.0f} of {row['exact_active']}"
        if outcome == "wrong FLOPs":
            said += f", {answer['forward_flops_per_token_full'] * answer['seq']:.0f} FLOPs of {row['exact_flops']}"
        if outcome == "wrong cache":
            said += f", keeps {answer['kept']} of {kept_of(row)}"
    print(f"{outcome:12} {row.get('model_type', ''):20} {row['name']}: {said}")


def table(counts):
    used = [o for o in OUTCOMES if any(c[o] for c in counts.values())]
    print("\n" + " ".join([f"{'':12}"] + [f"{o:>14}" for o in used]))
    for kind, c in sorted(counts.items()):
        print(" ".join([f"{kind:12}"] + [f"{c[o]:14}" for o in used]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("manifest", type=pathlib.Path, nargs="?")
    parser.add_argument("--kind", help="rows of this kind alone")
    parser.add_argument("--all", action="store_true", help="a line for every file")
    given = parser.parse_args()
    command = os.environ.get("SCALEMODEL", "build/scalemodel")
    with open(given.manifest or given.dir / "MANIFEST.csv", newline="") as file:
        rows = [r for r in csv.DictReader(file) if given.kind in (None, r.get("kind"))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda r: answer_of(command, find(given.dir, r["name"]), r), rows))
    counts = collections.defaultdict(collections.Counter)
    for row, (answer, error) in zip(rows, answers):
        outcome = judge(row, answer, error)
        counts[row.get("kind") or "all"][outcome] += 1
        if given.all or outcome not in ("exact", "no total known"):
            show(row, outcome, answer, error)
    table(counts)
    sys.exit(any(c[o] for c in counts.values() for o in OUTCOMES if o.startswith(("wrong", "fail"))))


main()

#!/usr/bin/env python3
"""Peak memory and fits-or-not of training rows whose memory had no part in what is known of their software.

What a code base keeps is read from its code; what its allocator reserves (fragmentation, reserved_bytes,
outside_bytes) was fitted to measured peaks and to runs that ran out of memory. Those three are left out here:

  source       they are the means of the other code bases', so that no row of the source had a part in them; code bases
               that are told to hold what another one does (Megatron-Core) count once
  model        reserved_bytes is refitted to the other models of the code base (the median of what is left over),
               fragmentation to the verdicts on the other models and sequence lengths where runs out of memory are told
  hidden       nothing is known of the software: all of them are priced as Megatron-Core

usage: scripts/held-out-memory.py [PROGRAM]      writes data/calibration/held-out-memory.csv
"""
import csv
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/scalemodel"
FILES = ["data/truth/training.csv", "data/truth/training_oom.csv"]
FITTED = ["fragmentation", "reserved_bytes", "outside_bytes"]
FALLBACK = "megatron-core"
MOST_FILES = 16  # that the program takes
GRID = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]


def bases():
    found = {}
    for path in sorted(glob.glob("data/codebases/*.json")):
        with open(path, encoding="utf-8") as file:
            base = json.load(file)
        if base.get("memory"):
            found[base["name"]] = base
    return found


def truth():
    rows = {}
    for path in FILES:
        with open(path, newline="", encoding="utf-8") as file:
            rows.update((row["id"], row) for row in csv.DictReader(file))
    return rows


def validated(variants):
    """Rows by id, where the code bases are as these variants say."""
    if len(variants) > MOST_FILES:  # a row hangs on its own code base alone
        found, later = validated(variants[:MOST_FILES]), variants[MOST_FILES:]
        named = {name for base in later for name in [base["name"], *base.get("software", "").split()]}
        mine = {name for name, row in truth().items() if row["software"] in named}
        found.update((name, row) for name, row in validated(later).items() if name in mine)
        return found
    with tempfile.TemporaryDirectory() as place:
        options = []
        for i, base in enumerate(variants):
            path = os.path.join(place, f"{i}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({key: value for key, value in base.items() if key != "counts"}, file)
            options += ["--codebases", path]
        done = subprocess.run([PROGRAM, "validate", "--json", *options, *FILES], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return {row["id"]: row for row in json.loads(done.stdout)["rows"]}


def changed(base, **values):
    memory = [{**{k: v for k, v in entry.items() if k not in values}, **{k: v for k, v in values.items() if v}}
              for entry in base["memory"]]
    return {**base, "memory": memory}


def of_base(row, known):
    name = row["software"]
    for base in known.values():
        if name == base["name"] or name in base.get("software", "").split():
            return base["name"]
    return FALLBACK


def is_counted(row):
    return row["task"] in ("", "pretrain")


def peaks(rows, answers):
    """(id, predicted, measured) of the rows that print a peak and are priced."""
    for name, row in rows.items():
        answer = answers.get(name)
        if not answer or not is_counted(row) or not answer.get("measured_memory_bytes"):
            continue
        total = (answer.get("memory_bytes") or {}).get("total")
        if total:
            yield name, total, answer["measured_memory_bytes"]


def told(name, pairs, how, out):
    errors = [predicted / measured - 1 for predicted, measured in pairs]
    size = sorted(abs(e) for e in errors)
    out.append([name, len(size), f"{statistics.median(size):.4f}", f"{size[int(0.9 * (len(size) - 1))]:.4f}",
                f"{max(0, -min(errors)):.4f}", "", how])


def is_out(row):
    return "OOM" in row["flags"].split()


def twins(rows):
    """Rows of sources that tell what ran out of memory beside what ran."""
    sources = {row["source.title"] for row in rows.values() if is_out(row)}
    return {name for name, row in rows.items() if row["source.title"] in sources and is_counted(row)}


def right(name, rows, answers):
    answer = answers.get(name)
    if not answer or answer.get("fits") is None:
        return None
    return answer["fits"] != is_out(rows[name])


def verdicts(label, judged, how, out):
    known = [one for one in judged if one is not None]
    out.append([label, len(known), "", "", "", f"{sum(known) / len(known):.4f}", how])


def left_over(rows, answers, base_of):
    """Predictions with reserved_bytes refitted to the other models of the code base."""
    found = list(peaks(rows, answers))
    for name, predicted, measured in found:
        others = [m - p for other, p, m in found
                  if base_of[other] == base_of[name] and rows[other]["model.name"] != rows[name]["model.name"]]
        if others:
            yield predicted + statistics.median(others), measured


def job(row):
    """Of sources with one model its sequence lengths are told apart."""
    return row["model.name"], row["seq_len"]


def by_other_models(rows, by_share, base_of, names):
    """Verdicts by the fragmentation that is right most often on the other jobs of the code base."""
    judged = []
    for name in names:
        others = [other for other in names if base_of[other] == base_of[name]
                  and job(rows[other]) != job(rows[name])]
        if not others:
            continue
        score = {share: sum(bool(right(o, rows, by_share[share])) for o in others) for share in GRID}
        most = [share for share in GRID if score[share] == max(score.values())]
        judged.append(right(name, rows, by_share[most[len(most) // 2]]))
    return judged


def main():
    known, rows = bases(), truth()
    measured = {of_base(row, known) for row in rows.values()}
    known = {name: base for name, base in known.items() if name in measured or name == FALLBACK}
    base_of = {name: of_base(row, known) for name, row in rows.items()}
    own = validated([])
    names = sorted(twins(rows))
    out = []
    told("peak-own", [(p, m) for _, p, m in peaks(rows, own)], "in sample", out)
    verdicts("verdicts-own", [right(n, rows, own) for n in names], "in sample", out)
    means = []
    for name, base in known.items():
        others = {tuple(other["memory"][-1].get(key, 0) for key in FITTED) for k, other in known.items() if k != name}
        means.append(changed(base, **dict(zip(FITTED, map(statistics.mean, zip(*sorted(others)))))))
    answers = validated(means)
    how = "the allocator of the other code bases"
    told("peak-source", [(p, m) for _, p, m in peaks(rows, answers)], how, out)
    verdicts("verdicts-source", [right(n, rows, answers) for n in names], how, out)
    told("peak-model", list(left_over(rows, own, base_of)), "reserved bytes by the other models", out)
    by_share = {share: validated([changed(base, fragmentation=share) for base in known.values()]) for share in GRID}
    verdicts("verdicts-model", by_other_models(rows, by_share, base_of, names),
             "fragmentation by the other models and sequence lengths", out)
    plain = known[FALLBACK]["memory"]
    answers = validated([{**base, "memory": plain} for base in known.values()])
    told("peak-hidden", [(p, m) for _, p, m in peaks(rows, answers)], "all as Megatron-Core", out)
    verdicts("verdicts-hidden", [right(n, rows, answers) for n in names], "all as Megatron-Core", out)
    with open("data/calibration/held-out-memory.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "n", "median", "p90", "worst_under", "right", "how"])
        writer.writerows(out)
    for line in out:
        print(*line)


if __name__ == "__main__":
    main()

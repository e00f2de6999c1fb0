#!/usr/bin/env python3
"""AIConfigurator's answers for the measured rows of serving that it can be asked about, beside the measurement.

usage: against-aiconfigurator.py ask ROWS.csv >ANSWERS.csv          needs `pip install aiconfigurator`
       against-aiconfigurator.py compare ANSWERS.csv VALIDATE.json [LEFT_OUT.tsv]

ROWS.csv is data/truth/inference.csv or a file like it. Asked are closed loops on one pool of chips that AIConfigurator has kernels of, without
drafts, by its estimate of an engine that is kept full (mode agg). VALIDATE.json is what `scalemodel validate --json ROWS.csv` prints, LEFT_OUT.tsv
what build/fit-serving -r writes. ANSWERS.csv: id, ttft_ms, tpot_ms, tokens_per_s, why (of what could not be answered).
"""
import csv
import json
import statistics
import sys

SYSTEMS = {"a100_sxm_80gb": "a100_sxm", "h100_sxm": "h100_sxm", "h200_sxm": "h200_sxm", "b200_sxm": "b200_sxm",
           "b300_sxm": "b300_sxm", "gb200": "gb200", "gb300": "gb300", "l40s": "l40s", "rtx_pro_6000_server": "rtx_pro_6000_server"}
MODELS = {"meta-llama/Llama-3.1-8B": "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
          "meta-llama/Llama-3.3-70B": "meta-llama/Meta-Llama-3.1-70B", "meta-llama/Llama-3.1-405B": "meta-llama/Meta-Llama-3.1-405B"}
TYPES = {"fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "bf16": "bfloat16", "fp16": "bfloat16"}


def number(row, key, default=0):
    return float(row.get(key) or default)


def question(row):
    """The arguments of an estimate, or None."""
    framework = row["framework"].lower()
    backend = next((b for b in ("trtllm", "sglang", "vllm") if framework.startswith(b[:3])), None)
    if row["disagg"] == "true" or row["spec_decode"] not in ("", "none") or not row["concurrency"]:
        return None
    if row["chip"] not in SYSTEMS or backend is None or row["phase"] != "e2e":
        return None
    tp, dp, ep = (int(number(row, f"parallel.{k}", 1)) for k in ("tp", "dp", "ep"))
    asked = dict(model_path=MODELS.get(row["model.name"], row["model.name"]), system_name=SYSTEMS[row["chip"]], backend_name=backend,
                 isl=round(number(row, "input_len")), osl=round(number(row, "output_len")),
                 batch_size=max(1, round(number(row, "concurrency") / dp)), tp_size=tp, attention_dp_size=dp,
                 pp_size=int(number(row, "parallel.pp", 1)))
    if row["model.moe.experts"]:
        asked.update(moe_ep_size=ep, moe_tp_size=tp * dp // ep)
    kind = TYPES.get(row["weight_dtype"])
    if kind and "gpt-oss" not in row["model.name"]:
        dense = "fp8_block" if kind == "nvfp4" and "DeepSeek" in row["model.name"] else kind
        asked.update(gemm_quant_mode=dense, moe_quant_mode=kind)
    if row["kv_dtype"] == "fp8":
        asked.update(kvcache_quant_mode="fp8")
    return asked


def ask(path):
    from aiconfigurator.cli.api import cli_estimate
    out = csv.writer(sys.stdout)
    out.writerow(["id", "ttft_ms", "tpot_ms", "tokens_per_s", "why"])
    with open(path, newline="") as rows:
        for row in csv.DictReader(rows):
            asked = question(row)
            if asked is None:
                continue
            try:
                answer = cli_estimate(mode="agg", **asked)
                out.writerow([row["id"], f"{answer.ttft:.5g}", f"{answer.tpot:.5g}", f"{answer.tokens_per_second:.5g}", ""])
            except Exception as error:  # whatever it refuses: kept, with its reason
                out.writerow([row["id"], "", "", "", " ".join(str(error).split())[:120]])
            sys.stdout.flush()


def errors_of(path, answers):
    """Of each row and quantity: what AIConfigurator and scalemodel say, over what was measured, less one."""
    figures = {"tpot_s": lambda a: float(a["tpot_ms"]) / 1e3, "ttft_s": lambda a: float(a["ttft_ms"]) / 1e3,
               "token_s": lambda a: 1 / float(a["tokens_per_s"])}
    for row in json.load(open(path))["rows"]:
        answer = answers.get(row["id"])
        if not answer or not answer["tpot_ms"]:
            continue
        for part in row["parts"]:
            if part["quantity"] in figures:
                yield row["id"], part["quantity"], figures[part["quantity"]](answer) / part["measured"] - 1, part["error"]


def left_out_of(path):
    """Of each row and quantity the errors where its configuration, and where all of its source, had no part in the fit."""
    if path is None:
        return {}
    with open(path, newline="") as table:
        rows = csv.DictReader(table, delimiter="\t")
        return {(r["id"], r["quantity"]): (float(r["own_configuration"]), float(r["own_source"])) for r in rows}


def compare(answers_path, validate_path, left_out_path=None):
    with open(answers_path, newline="") as table:
        answers = {a["id"]: a for a in csv.DictReader(table)}
    print(f"{len(answers)} rows asked, {sum(not a['tpot_ms'] for a in answers.values())} refused by AIConfigurator")
    found, left_out = list(errors_of(validate_path, answers)), left_out_of(left_out_path)
    for quantity, name in (("tpot_s", "time per token"), ("token_s", "throughput"), ("ttft_s", "first token")):
        rows = [(theirs, ours, *left_out.get((row, quantity), ())) for row, q, theirs, ours in found if q == quantity]
        rows = [r for r in rows if not left_out or len(r) == 4]
        if rows:
            medians = [statistics.median(abs(e) for e in column) for column in zip(*rows)]
            words = ("AIConfigurator", "scalemodel in sample", "configuration left out", "source left out")
            print(f"{name}: {len(rows)} rows, " + ", ".join(f"{w} {m:.1%}" for w, m in zip(words, medians)))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "ask":
        ask(sys.argv[2])
    elif len(sys.argv) in (4, 5) and sys.argv[1] == "compare":
        compare(*sys.argv[2:])
    else:
        sys.exit(__doc__)

"""The three forms of an answer say the same: each time, size, rate and price of a page is one of the
numbers of --json rounded to the digits that are printed, and each number of the CSV is one of them
to the last digit. Figures that a page works out of others (shares, rows that stand for several) are left out by the
words beside them. Figures with a name are those of the field of that name (NAMED); of a sentence that says where
figures are from (TOLD) every number is in --json, in words perhaps.

usage: forms.py PROGRAM [CASES SEED]: so many questions drawn, of which what has a name is looked at"""

import csv
import io
import json
import math
import random
import re
import shlex
import subprocess
import sys

QUESTIONS = """
train llama-3.1-8b --on h100-sxm:8 --batch 65536 --seq 4096 --tokens 1T
train mixtral-8x7b --on tpu-v5p:2x2x4 --batch 128seqs --seq 2048 --objective memory
serve llama-3.1-8b --on h100-sxm:8 --plan tensor=8 --batch 33 --prompt 3000 --output 100
serve qwen3-30b-a3b --on b200:8 --weights int8 --prompt 512 --output 700
simulate llama-3.1-8b --on h100-sxm:2 --plan tensor=2 --qps 3 --requests 300 --ttft 300ms --tpot 20ms
matmul 'A[I_X,J] B[J,K_Y] -> C[I_X,K]' --mesh X=2,Y=4 --dims I=1000,J=4096,K=16384 --on h100-sxm:8
collective all-to-all 'A[E_Y,F]' --over Y --dims E=4096,F=1000 --mesh Y=8 --on tpu-v5e:2x4
sweep --over plan.tensor=1..4*2 {form} train llama-3.1-8b --on h100-sxm:8 --batch 65536 --seq 2048
validate inputs/measured-gemm.csv
"""
NAMED_QUESTIONS = """
serve llama-3.1-8b --on h100-sxm:8 --qps 20 --ttft 1s --tpot 30ms
serve gemma-2-9b --on l40s:8 --prompt 512 --output 64 --weights int8 --concurrency 100
simulate qwen3-8b --on h100-sxm:2 --plan tensor=2 --qps 4 --requests 100 --ttft 1s --tpot 50ms --find-max-qps
train llama-3.2-1b --on tpu-v5e:4x4 --batch 256k --seq 2048 --tokens 100B --objective cost
roofline 'bf16[B,D] int8[D,F] -> bf16[B,F]' --on tpu-v5e --dims B=128,D=4096,F=4096
mfu --from 'maxtext@2025-06 46 %' llama-3.1-70b tpu-v5p:8x8x8
model deepseek-v3 --seq 8192
train llama-3.1-70b --on h100-sxm:16,tpu-v5e:4x4x2slices --batch 1M --seq 8192
train llama-3.1-8b --on tpu-v6e:2x4 --batch 4M --seq 8192 --what-if hbm=2
serve deepseek-v2-lite --on h200:8,b200:8 --prompt 4096 --output 100
simulate gemma-2-9b --on l4:4 --qps 20 --requests 200 --prompt 1000
support mixtral-8x7b h100-sxm:8
matmul 'A[I_XY,J] B[J,K] -> C[I,K_Y]' --mesh X=2,Y=4 --dims I=131,J=4096,K=500 --on mi300x:8
"""
# Of a verb: what stands on a page, # for each figure, and its fields; of a product or a quotient: two.
OF_PLAN = "plans.0."
STEP = OF_PLAN + "step_time_s."
PARTS = {"math": "math", "memory": "memory", "network": "network_exposed", "bubble": "bubble",
         "optimizer": "optimizer", "other": "other"}
LATENCIES = {"queue": "queue_s", "time to first token": "ttft_s", "time per output token": "tpot_s", "end to end": "e2e_s"}
NAMED = {
    "train": [
        (r"^Best plan: # a step, bound by", STEP + "expected"),
        (r"^lower bound  +#", STEP + "lower"), (r"^expected  +#", STEP + "expected"), (r"^upper bound  +#", STEP + "upper"),
        (r"^80 % interval  +# to #,", STEP + "interval.0", STEP + "interval.1"),
        (r"^MFU  +#  +# of", OF_PLAN + "mfu", OF_PLAN + "model_flops_per_s_per_chip"), (r"^HFU  +#", OF_PLAN + "hfu"),
        (r"^tokens/s  +#  +# per chip", (OF_PLAN + "tokens_per_s_per_chip", "*", OF_PLAN + "chips"), OF_PLAN + "tokens_per_s_per_chip"),
        *[(rf"^{name}  +#  +#  \w", OF_PLAN + "breakdown_s." + key, (OF_PLAN + "breakdown_s." + key, "/", STEP + "expected"))
          for name, key in PARTS.items()],
        (r"^Memory of a chip.*: # of # \(#\)", OF_PLAN + "memory_bytes.total", OF_PLAN + "memory_bytes.capacity",
         (OF_PLAN + "memory_bytes.total", "/", OF_PLAN + "memory_bytes.capacity")),
        *[(rf"^  {name} +#", OF_PLAN + "memory_bytes." + key) for name, key in
          [("weights", "params"), ("gradients", "gradients"), ("optimizer", "optimizer"), ("activations", "activations"), ("buffers", "buffers")]],
        (r"^run of \S+ tokens  +#", OF_PLAN + "train_time_s"), (r"^cost  +#", OF_PLAN + "cost_usd"),
        (r"A batch is # sequences of # tokens: # tokens", "batch.sequences", "batch.seq", "batch.tokens"),
        *[(rf"^{kind} plan  +#  +\S+ %  +#", f"what_if.{kind}_plan_step_time_s".replace("best_plan", "best"), f"what_if.{kind}_plan_mfu".replace("best_plan", "best"))
          for kind in ("same", "best")],
        *[(rf"^{name}  +#  +#  +\S+  +#  +#", *[f"systems.{i}.{key}" for key in ("step_time_s.expected", "mfu", "run.time_s", "run.cost_usd")])
          for i, name in enumerate(["h100-sxm:2x8", "tpu-v5e:4x4x2slices"])],
    ],
    "serve": [
        (r"^Time per token # \(80 %: # to #, constants", "best.tpot_s.expected", "best.tpot_s.interval.0", "best.tpot_s.interval.1"),
        (r"constants of .*\), bound # by", "best.tpot_s.lower"), (r"First token after # \(bound #\)", "best.ttft_s.expected", "best.ttft_s.lower"),
        (r"later half of them within #, 99 % within #\.", "best.ttft_median_s", "best.ttft_p99_s"),
        (r"batch # \(# fit\): ", "best.batch", "best.most_batch"), (r"So with # requests in flight", "best.in_flight"),
        (r"Alone, a decode step takes # a token, a prefill #; # tokens/s per chip",
         "best.tpot_alone_s.expected", "best.ttft_alone_s.expected", "best.tokens_per_s_per_chip_alone"),
        (r"^Memory of the fullest chip: # of # \(#\)", "best.memory_bytes.total", "best.memory_bytes.capacity",
         ("best.memory_bytes.total", "/", "best.memory_bytes.capacity")),
        *[(rf"^  {name} +#", "best.memory_bytes." + key) for name, key in
          [("params", "params"), ("KV cache", "kv"), ("activations", "activations"), ("buffers", "buffers")]],
        (r"A batch of # may hold up to # tokens each", "best.batch", "room.longest_request"),
        (r"^# replicas? of # chips?, # chips? in all, # an hour",
         "fleet.replicas", "fleet.replica.chips", "fleet.chips", "fleet.usd_per_hour"),
        (r"Each takes at most # requests a second, of which # come", "fleet.requests_per_s_per_replica", "fleet.utilisation"),
        (r"At that rate # sequences decode at once, of a batch of #: # per token, first token after #, for nine requests in ten within # and #:",
         *[("fleet.", "at_random.", key) for key in ("running", "replica.batch", "tpot_s", "ttft_s", "tpot_p90_s", "ttft_p90_s")]),
        (r"was made for sequences of # tokens", "model.max_seq"), (r" as the weights from a context of # tokens", "best.turning_points.kv_over_weights_context"),
    ],
    "simulate": [
        (r"^# requests in #: # requests/s, # output tokens/s", "finished", "seconds", "requests_per_s", "output_tokens_per_s"),
        (r"meet the SLO: # requests/s", "max_qps"), (r": # of requests within it, goodput # requests", "within_slo", "goodput_per_s"),
        (r"engines busy # of the time, # sequences in a decode step, # requests", "utilisation", "mean_batch", "mean_in_system"),
        *[(rf"^{name}  +" + "  +".join("#" * 5) + "$", *[f"{key}.{kind}" for kind in ("mean", "p50", "p90", "p99", "max")])
          for name, key in LATENCIES.items()],
    ],
    "collective": [(rf"^{name}  +#", key) for name, key in [
        ("lower bound", "time_s.lower"), ("expected", "time_s.expected"), ("of it latency", "latency_s"), ("busiest link", "bytes_busiest_link")]],
    "roofline": [(r"^math  +#  +at # (?:in|on)", "time_s.math", "peak_flops_per_s"), (r"^memory  +#  +at # from", "time_s.memory", "bytes_per_s"),
                 *[(rf"^{name}  +#", key) for name, key in [
                     ("lower bound", "time_s.lower"), ("expected", "time_s.expected"), ("upper bound", "time_s.upper"),
                     ("FLOPs", "flops"), ("bytes", "bytes"), ("intensity", "intensity")]]],
    "mfu": [(r"^step  +#", "step_time_s"), (r"^tokens/s  +#  +# of a chip", "tokens_per_s", "tokens_per_s_per_chip")],
    "model": [(r"^total  +#  +#", "params", "params"), (r"^causal  +#  +#", "forward_flops_per_token", "train_flops_per_token")],
}
AMOUNT = r"(-?\$?\d[\d.]*(?:e[+-]?\d+)?(?:[kMBT](?!\w))?(?: (?:[num]?s|min|h|d|%|[kMGTPE]?(?:B/s|B|FLOP/s))(?![\w/]))?)"
TOLD = re.compile("^Constants|^Nearest measured|^KV cache of a replica|is padded to|^Overloaded|^SLO |^requests: |"
                  "^Attention does as many|^Requests of |was made for")
WORKED_OUT = re.compile(
    "search took|^Constants|[Nn]earest measured|would save|would help|a token, | of chips |^And |"
    "; in hardware|, forward|, backward|, recompute|step end|step start|over (tensor|context|data)|"
    " an hour|requests: |SLO |tokens of |^This is |indistinguishable"
)
LEFT_OUT = ("Over time",)  # tables of means of what --json has one by one
PREFIX = {"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIME = {"min": 60, "h": 3600, "d": 86400}
FIGURE = re.compile(r"(?<![\w.,:=*@/-])(\$?)(\d+(?:\.\d+)?)(?:([kMB])(?= )| (min|h|d|[numkMGTP]?(?:B|s))(?![\w/]))?")


def figures(page):
    """Amounts with a unit, half of their last digit, and where they stand."""
    told = True
    for line in page.splitlines():
        if line.startswith(LEFT_OUT):
            told = False
        elif not line:
            told = True
        if not told or WORKED_OUT.search(line):
            continue
        for dollar, number, many, unit in FIGURE.findall(line):
            if unit or dollar:
                scale = TIME.get(unit) or PREFIX[unit[:-1]] * (1e9 if many == "B" else PREFIX[many])
                digits = len(number.partition(".")[2])
                yield float(number) * scale, 0.5000001 * 10**-digits * scale, line


def flowed(page):
    """The page with the lines of its paragraphs as one."""
    lines = []
    for line in page.splitlines():
        goes_on = lines and line[:1].strip() and len(lines[-1]) > 50 and not re.search("  |[═─]", lines[-1] + line)
        if goes_on:
            lines[-1] += " " + line
        else:
            lines.append(line)
    return lines


def amount(text):
    """What is meant, and half of the last of its digits (a page shows three, without zeros behind)."""
    number, many, unit = re.fullmatch(r"-?\$?([\d.]+(?:e[+-]?\d+)?)([kMBT]?) ?(.*)", text).groups()
    scale = {"": 1, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[many]
    if unit:
        scale *= 0.01 if unit == "%" else TIME.get(unit) or {"E": 1e18, **PREFIX}[re.sub("(B/s|B|FLOP/s|s)$", "", unit)]
    digits, _, power = number.partition("e")
    half = 0.5 * 10 ** (int(power or 0) - len(digits.partition(".")[2]))
    if float(digits) and (len(digits) < 3 or "." in digits) and unit != "%":
        half = min(half, 0.005 * 10 ** math.floor(math.log10(float(number))))
    return float(number) * scale * (-1 if text[0] == "-" else 1), half * scale * 1.000001


def field(data, name):
    for key in name.split("."):
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def wanted(data, name):
    if isinstance(name, str):
        return field(data, name)
    first, how, second = name
    if how in "*/":
        return field(data, first) * field(data, second) ** (1 if how == "*" else -1)
    return field(data, (first if first[:-1] in data else how) + second)


def named(verb, page, data):
    """(the text of each figure with a name, what its field says, the line)."""
    lines = flowed(page)
    for pattern, *names in NAMED.get(verb, []):
        found = next(filter(None, (re.search(pattern.replace("#", AMOUNT), line) for line in lines)), None)
        if found:
            yield from ((text, wanted(data, name), found.string) for text, name in zip(found.groups(), names))


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {n for item in value for n in numbers(item)}
    if isinstance(value, str):  # advice, and sizes in sentences
        return {float(n) for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", value)}
    return {float(value)} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


def ask(program, question, form):
    words = question.replace("{form}", form) if "{form}" in question else question + " " + form
    done = subprocess.run([program, *shlex.split(words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def differences(program, question):
    (status, page), (other, data), (third, table) = (ask(program, question, f) for f in ("", "--json", "--csv"))
    if not status == other == third == 0:
        yield f"statuses {status}, {other}, {third}"
        return
    have = numbers(json.loads(data))
    for value, half, line in figures(page):
        if not any(abs(n - value) <= half for n in have):
            yield f"the page has {value:g}, --json has no such number: {line}"
    for row in csv.reader(io.StringIO(table)):
        for cell in row:
            if re.fullmatch(r"-?\d[\d.e+-]*", cell) and float(cell) not in have:
                yield f"the CSV has {cell}, --json has no such number"


def named_differences(program, question):
    """How many figures with a name a page has, and which differ."""
    (status, page), (other, data) = (ask(program, question, form) for form in ("", "--json"))
    if status != other:
        return 1, [f"statuses {status} and {other}"]
    if status:
        return 0, []
    data = json.loads(data)
    told = list(named(question.split()[0], page, data))
    have = numbers(data)
    for line in (said for line in flowed(page) for said in re.split(r"(?<=[.]) (?=[A-Z])", line) if TOLD.search(said)):
        for text in re.findall(r"(?<![\w.:@/=-])" + AMOUNT + r"(?![\w:]|\.\d)", line):
            value, half = amount(text)
            near = [n for n in have for n in ((n, n / 100, 1 - n) if "%" in text else (n,)) if abs(n - value) <= half]
            told.append((text, near[0] if near else None, line))
    return len(told), [f"the page has {text}, its field {value!r}: {line}" for text, value, line in told
                       if value is None or abs(amount(text)[0] - value) > amount(text)[1]]


def drawn(draw):
    """A question that nobody asked."""
    some = lambda share, *words: list(words) if draw.random() < share else []  # noqa: E731
    one = draw.choice
    on = one("h100-sxm:8 h100-sxm:4x8 a100-80:8 tpu-v5e:4x4 tpu-v5p:2x2x4 tpu-v6e:4x8 h200:8 b200:8 mi300x:8 l4:8 "
             "l40s:8 gb200-nvl72:72 tpu-v5e:4x4x2slices trn2:16 h100-sxm:1 rtx-4090:4 v100:8".split())
    model = one("llama-3.2-1b llama-3.1-8b qwen3-8b gemma-2-9b mixtral-8x7b deepseek-v2-lite qwen3-30b-a3b gpt-oss-20b "
                "qwen3-0.6b llama-3.1-70b deepseek-v3 glm-4.5-air gpt2-xl".split())
    verb = one(["train", "train", "serve", "serve", "simulate", "collective", "roofline", "mfu", "model"])
    sizes = ["--prompt", one(["100", "2048", "8000"]), "--output", one(["16", "512", "2000"])]
    limits = some(0.4, "--ttft", "1s") + some(0.4, "--tpot", "50ms")
    if verb == "train":
        return [verb, model, "--on", on, "--batch", one(["256k", "1M", "100seqs"]), "--seq", one(["1024", "8192"]),
                *some(0.3, "--tokens", one(["1T", "15T"])), *some(0.3, "--objective", one(["cost", "memory"])),
                *some(0.2, "--dtype", "fp8"), *some(0.2, "--as-run"), *some(0.2, "--framework", "any"),
                *some(0.3, "--plan", one(["lora=16", "zero=3", "tensor=2", "fsdp=4", "recompute=full", "pipeline=2"]))]
    if verb == "serve":
        return [verb, model, "--on", on, *sizes, *limits, *some(0.2, "--weights", "int8"), *some(0.1, "--speculate", "4:0.8"),
                *one([[], [], ["--qps", one(["3", "100"])], ["--concurrency", "50"], ["--decode-only"], ["--disaggregated"],
                      ["--plan", one(["tensor=2", "pipeline=2"]), "--batch", one(["1", "33"])]])]
    if verb == "simulate":
        return [verb, model, "--on", one(["h100-sxm:8", "tpu-v5e:4x4"]), *sizes, "--requests", one(["50", "200"]),
                *one([["--qps", one(["1", "20"])], ["--concurrency", one(["1", "16"])]]), *limits,
                *some(0.3, "--prompt-cv", "0.5"), *some(0.2, "--replicas", "2")]
    if verb == "collective":
        return [verb, one("all-gather reduce-scatter all-reduce all-to-all permute broadcast".split()),
                one(["64MB", "1kB", "3GB"]), "--on", on]
    if verb == "roofline":
        einsum = one(["bf16[B,D] int8[D,F] -> bf16[B,F]", "fp32 A[B,D] fp32 B[D,F] -> fp32 C[B,F]", "A[B,D] -> C[B]"])
        return [verb, einsum, "--on", on.split(":")[0], "--dims", f"B={one([1, 128, 4096])},D=4096,F=300"]
    if verb == "mfu":
        return [verb, model, on, "--from", one(["maxtext@2025-06 46 %", "3.2 s", "causal 420 TFLOP/s"])]
    return [verb, model, "--seq", one(["100", "4096", "100000"])]


def look_at_drawn(program, cases, seed):
    figures_told = wrong = 0
    for case in range(cases):
        question = shlex.join(drawn(random.Random(seed * 1000003 + case)))
        told, found = named_differences(program, question)
        figures_told += told
        wrong += len(found)
        for line in found:
            print(f"{question}\n    {line}")
    print(f"{cases} questions, {figures_told} figures with a name, {wrong} differ")
    return wrong > 0


def main():
    program = sys.argv[1]
    if len(sys.argv) > 3:
        return look_at_drawn(program, int(sys.argv[2]), int(sys.argv[3]))
    asked = QUESTIONS.strip().splitlines()
    by_name = NAMED_QUESTIONS.strip().splitlines()
    bad = 0
    for number, question in enumerate(asked + by_name, 1):
        if number > len(asked):
            told, found = named_differences(program, question)
            found += [] if told else ["no figure of it has a name"]
        else:
            found = list(differences(program, question))
        if question.startswith("simulate"):  # its CSV has a row for each request, in a file
            found = [f for f in found if not f.startswith("statuses")]
        bad += bool(found)
        forms = "page, --json and CSV agree" if number <= len(asked) else "figures are those of their fields"
        print(f"{'not ' * bool(found)}ok {number} - {question.split()[0]}: {forms}")
        for line in found:
            print("#", line)
    print(f"1..{len(asked + by_name)}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

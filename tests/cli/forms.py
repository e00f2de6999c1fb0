"""The three forms of an answer say the same: each time, size, rate and price of a page is one of the
numbers of --json rounded to the digits that are printed, and each number of the CSV is one of them
to the last digit. Figures that a page works out of others (shares, rows that stand for several,
what is said of constants and of measured rows) are left out by the words beside them."""

import csv
import io
import json
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


def main():
    asked = QUESTIONS.strip().splitlines()
    bad = 0
    for number, question in enumerate(asked, 1):
        found = list(differences(sys.argv[1], question))
        if question.startswith("simulate"):  # its CSV has a row for each request, in a file
            found = [f for f in found if not f.startswith("statuses")]
        bad += bool(found)
        print(f"{'not ' * bool(found)}ok {number} - {question.split()[0]}: page, --json and CSV agree")
        for line in found:
            print("#", line)
    print(f"1..{len(asked)}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

#!/bin/sh
# What must hold of every answer of `train`, whatever the numbers are: parts sum to their whole,
# bounds are in order, the fields of the contract are there, options do what they say.
root="$(cd "$(dirname "$0")/../.." && pwd)"
program="${SCALEMODEL:-$root/build/scalemodel}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
export LC_ALL=C
tests=0
failures=0

flat() { awk -f "$root/tests/cli/flatten.awk"; }
train() { "$program" train "$@" --json | flat >"$place/answer"; }

# is NAME AWK-PROGRAM: the program reads the answer into v[path] and sets `good`.
is() {
    tests=$((tests + 1))
    if awk -v good=0 '
        function near(a, b) { return a - b < 1e-6 * b && b - a < 1e-6 * b }
        { path = $1; sub(/^[^ ]* /, ""); v[path] = /^[-0-9]/ ? $0 + 0 : $0 }
        END { '"$2"'; exit !good }' "$place/answer"; then
        echo "ok $tests - $1"
    else
        echo "not ok $tests - $1"
        failures=1
        sed -n 's/^/# /; 1,12p' "$place/answer"
    fi
}

# Everything that holds of one plan.
hold() {
    is "$1: the command is named" 'good = v["command"] == "\"train\""'
    is "$1: bounds in order" 'p = "plans.0.step_time_s."
        good = v[p "lower"] > 0 && v[p "lower"] + 0 <= v[p "expected"] + 0 &&
               v[p "expected"] + 0 <= v[p "upper"] + 0'
    is "$1: the 80 % interval is above the lower bound, and holds the expected time here" '
        p = "plans.0.step_time_s."
        good = v[p "interval.count"] == 2 && v[p "lower"] <= v[p "interval.0"] &&
               v[p "interval.0"] < v[p "expected"] && v[p "expected"] < v[p "interval.1"]'
    is "$1: the breakdown sums to the expected time" 'p = "plans.0.breakdown_s."
        sum = v[p "math"] + v[p "memory"] + v[p "network_exposed"] + v[p "bubble"]
        sum += v[p "optimizer"] + v[p "other"]
        good = near(sum, v["plans.0.step_time_s.expected"])'
    is "$1: no part of the breakdown is negative" 'p = "plans.0.breakdown_s."
        good = p "math" in v && v[p "math"] >= 0 && v[p "memory"] >= 0 && v[p "network_exposed"] >= 0 && v[p "bubble"] >= 0 &&
               v[p "optimizer"] >= 0 && v[p "other"] >= 0'
    is "$1: memory sums to its total" 'p = "plans.0.memory_bytes."
        sum = v[p "params"] + v[p "gradients"] + v[p "optimizer"]
        good = near(sum + v[p "activations"] + v[p "buffers"], v[p "total"])'
    is "$1: fits says what memory says" 'p = "plans.0.memory_bytes."
        good = (v[p "total"] + 0 <= v[p "capacity"] + 0) == (v["plans.0.fits"] == "true")'
    is "$1: MFU is model FLOPs over peak, HFU no less" '
        rate = v["model.train_flops_per_token"] * v["plans.0.tokens_per_s_per_chip"]
        good = near(rate, v["plans.0.model_flops_per_s_per_chip"]) && v["plans.0.mfu"] + 0 < 1 &&
               v["plans.0.hfu"] >= v["plans.0.mfu"] * 0.999'
    is "$1: tokens per second times the step is the batch" '
        good = near(v["plans.0.tokens_per_s_per_chip"] * v["plans.0.chips"] * v["plans.0.step_time_s.expected"],
                    v["batch.tokens"])'
    is "$1: the mesh multiplies to the chips" 'n = 1
        for (i = 0; i < v["plans.0.mesh.count"]; i++) n *= v["plans.0.mesh." i ".size"]
        good = n == v["plans.0.chips"]'
    is "$1: collectives take time, and no more of it shows than there is" '
        good = "plans.0.collectives.count" in v
        for (i = 0; i < v["plans.0.collectives.count"]; i++) {
            p = "plans.0.collectives." i "."
            if (!(v[p "time_s"] > 0 && v[p "count"] > 0 && v[p "bytes_per_chip"] > 0)) good = 0
            if (v[p "exposed_s"] < 0 || v[p "exposed_s"] > v[p "time_s"] * 1.000001) good = 0
        }'
    is "$1: the bound is one of the words" '
        good = v["plans.0.bound"] ~ /^"(compute|memory|bubble|latency|network:[a-z0-9]+)"$/'
    is "$1: counts of the search add up" '
        good = near(v["search.evaluated"] + v["search.pruned"], v["search.space"]) && v["search.optimal"] == "true"'
}

train llama-3.1-8b --on h100-sxm:8 --batch 1M --top 3
hold "8b on a node"
is "plans come best first, and differ" '
    good = v["plans.count"] == 3 && v["plans.0.step_time_s.expected"] + 0 <= v["plans.1.step_time_s.expected"] + 0 &&
           v["plans.1.step_time_s.expected"] + 0 <= v["plans.2.step_time_s.expected"] + 0 &&
           v["plans.0.plan"] != v["plans.1.plan"] && v["plans.1.plan"] != v["plans.2.plan"]'
train llama-3.1-8b --on tpu-v5e:4x4 --batch 1M --tokens 1T --top 1
hold "8b on a torus"
is "the run is whole steps" '
    steps = 1e12 / v["batch.tokens"]; steps = int(steps) + (steps > int(steps))
    good = near(v["plans.0.train_time_s"], steps * v["plans.0.step_time_s.expected"])'
is "the cost is chips, hours and a price" '
    good = v["plans.0.cost_usd"] / (v["plans.0.train_time_s"] / 3600 * v["plans.0.chips"]) > 0.1'
train mixtral-8x7b --on h100-sxm:4x8 --batch 2M --seq 8192 --top 1
hold "mixtral on four nodes"
train llama-3.1-8b --on h100-sxm:4x8 --batch 2M --plan tensor=4,pipeline=8,schedule=1f1b,microbatch=4
hold "a pipeline"
train deepseek-v3 --on h800:2x8 --batch 1M --dtype fp8 --plan expert=8,pipeline=2,microbatch=1
hold "deepseek that does not fit"
is "it does not fit" 'good = v["plans.0.fits"] == "false"'

train llama-3.1-8b --on h100-sxm:8 --batch 1M --top 1
fast="$(sed -n 's/^plans.0.memory_bytes.total //p' "$place/answer")"
: "${fast:=0}"
train llama-3.1-8b --on h100-sxm:8 --batch 1M --top 1 --objective memory
is "with memory as the objective the best plan needs less" '
    good = v["plans.0.memory_bytes.total"] > 0 && v["plans.0.memory_bytes.total"] + 0 < '"$fast"
is "with memory as the objective no plan within 10 % of its memory is told apart" '
    good = v["plans.0.indistinguishable_from_best"] == "true"'

# What is said of each plan is what the intervals say.
train llama-3.1-8b --on h100-sxm:8 --batch 64k --top 40
is "plans are indistinguishable where their intervals overlap that of the best" '
    good = v["plans.count"] == 40 && v["plans.39.indistinguishable_from_best"] == "false"
    for (i = 0; i < v["plans.count"]; i++) {
        p = "plans." i "."
        overlap = v[p "step_time_s.interval.0"] <= v["plans.0.step_time_s.interval.1"]
        if ((v[p "indistinguishable_from_best"] == "true") != overlap) good = 0
    }'
train llama-3.1-8b --on l4:8 --batch 64k
is "constants of a relative are called borrowed" '
    good = v["calibration.borrowed"] == "true" && v["calibration.chip"] == "\"l40s\""'
wide="$(awk '/plans.0.step_time_s.interval/ { x[n++] = $2 } END { print x[1] / x[0] }' "$place/answer")"
train llama-3.1-8b --on a100-80:8 --batch 1M --top 1
is "and their interval is wider than that of the chip itself" '
    p = "plans.0.step_time_s.interval."
    good = v["calibration.borrowed"] == "false" && v[p 1] / v[p 0] < '"${wide:-0}"
train llama-3.1-8b --on h100-sxm:8 --batch 64seqs --seq 16384 --top 1 --software megatron-bridge
named="$(awk '/plans.0.step_time_s.interval/ { x[n++] = $2 } END { print x[1] / x[0] }' "$place/answer")"
train llama-3.1-8b --on h100-sxm:8 --batch 64seqs --seq 16384 --top 1
is "constants that are of no such steps have a wider interval where they were chosen" '
    p = "plans.0.step_time_s."
    good = v["calibration.software"] == "\"megatron-bridge\"" && v[p "beyond_constants"] ~ "sequence" &&
        v[p "interval.1"] / v[p "interval.0"] > 1.05 * '"${named:-9}"
train llama-3.1-8b --on h100-sxm --batch 1M --chips 4..16
is "each size that pays off has more chips and a shorter step" '
    good = v["pareto.count"] >= 2
    for (i = 1; i < v["pareto.count"]; i++) {
        p = "pareto." i "."; q = "pareto." (i - 1) "."
        if (v[p "chips"] + 0 <= v[q "chips"] + 0) good = 0
        if (v[p "step_time_s.expected"] + 0 >= v[q "step_time_s.expected"] + 0) good = 0
    }'

# The trace: on each track, slices follow one another.
"$program" train llama-3.1-8b --on h100-sxm:2x8 --batch 1048576 --timeline "$place/trace" \
    --plan tensor=2,pipeline=8,schedule=interleaved,virtual=2,microbatch=1 >/dev/null
flat <"$place/trace" >"$place/answer"
is "slices of a stage do not overlap" '
    good = v["traceEvents.count"] > 1000
    for (i = 0; i < v["traceEvents.count"]; i++) {
        p = "traceEvents." i "."
        if (v[p "ph"] != "\"X\"") continue
        if (v[p "ts"] < end[v[p "tid"]] - 0.0015) good = 0
        end[v[p "tid"]] = v[p "ts"] + v[p "dur"]
    }'

echo "1..$tests"
[ "$failures" -eq 0 ]

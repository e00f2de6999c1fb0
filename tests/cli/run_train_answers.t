#!/bin/sh
# What must hold of every answer of `run train`, whatever the times are: the rows are those of the
# step, predicted and measured, every op that is priced was run, and the bytes are equal.
root="$(cd "$(dirname "$0")/../.." && pwd)"
program="${SCALEMODEL:-$root/build/scalemodel}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
export LC_ALL=C
tests=0
failures=0

train() {
    (cd "$root/tests/cli" && "$program" run train "inputs/$1" --data "$root/README.md" --seq 32 --steps 3 \
        --with threads --plan "$2" --json) | awk -f "$root/tests/cli/flatten.awk" >"$place/answer"
}

# is NAME AWK-PROGRAM: the program reads the answer into v[path] and sets `good`.
is() {
    tests=$((tests + 1))
    if awk -v good=0 '
        function near(a, b) { return b > 0 && (a - b) ^ 2 <= (1e-6 * b) ^ 2 }
        function sum(rows, field,    n, s) {
            for (n = 0; (rows "." n "." field) in v; n++) s += v[rows "." n "." field]
            return s
        }
        { path = $1; sub(/^[^ ]* /, ""); v[path] = /^[-0-9]/ ? $0 + 0 : $0 }
        END { '"$2"'; exit !good }' "$place/answer"; then
        echo "ok $tests - $1"
    else
        echo "not ok $tests - $1"
        failures=1
        sed -n 's/^/# /; 1,40p' "$place/answer"
    fi
}

hold() {
    train "$1" "$2"
    is "$1 $2: rows add up to the step" 'good = near(sum("gap.rows", "time_s.predicted"), v["step_s.predicted"]) &&
        near(sum("gap.rows", "time_s.measured"), v["gap.time_s.measured"]) &&
        near(sum("gap.rows", "share"), 1)'
    is "$1 $2: parts add up to the step" 'good = near(sum("parts", "time_s.measured"), v["gap.time_s.measured"]) &&
        near(sum("parts", "time_s.predicted"), v["step_s.predicted"])'
    is "$1 $2: ops add up to their part" 'good = near(sum("ops", "time_s.predicted"), v["parts.0.time_s.predicted"]) &&
        near(sum("ops", "time_s.measured"), v["parts.0.time_s.measured"]) &&
        near(sum("op_kinds", "time_s.predicted"), v["parts.0.time_s.predicted"]) &&
        near(sum("op_kinds", "time_s.measured"), v["parts.0.time_s.measured"])'
    is "$1 $2: what is priced was run" '
        for (n = 0; ("ops." n ".op") in v; n++) {
            p = "ops." n "."
            if (v[p "calls_predicted"] > 0 && v[p "calls"] == 0 && v[p "op"] !~ /launches/) {
                idle++
                print "# " v[p "op"] " " v[p "pass"]
            }
            if (v[p "slowest_rank_s"] < v[p "time_s.measured"] * 0.999999) idle++
        }
        good = !idle && n > 20'
    is "$1 $2: the bytes are those predicted" 'good = v["bytes_equal"] == "true"'
}

hold tiny-llama.json microbatch=2,recompute=full
hold tiny-llama.json data=2,tensor=2,seq=on,microbatch=2,zero=2
hold tiny-llama.json fsdp=2,context=2,microbatch=1
hold tiny-llama.json pipeline=2,schedule=zb-h1,microbatch=1
hold tiny-experts.json expert=2,tensor=2,expert_tensor=on,microbatch=1
echo "1..$tests"
exit $failures

#!/bin/sh
# `validate`: its errors and forms, and what must hold of its figures whatever the constants are.
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/validate.golden"

inputs="$root/tests/cli/inputs"
flat() { awk -f "$root/tests/cli/flatten.awk"; }
validate() { "$program" validate "$@" --json >"$place/json" && flat <"$place/json" >"$place/answer"; }

# is NAME AWK-PROGRAM: the program reads the answer into v[path] and sets `good`.
is() {
    tests=$((tests + 1))
    if awk -v good=0 '
        function near(a, b) { return a - b < 1e-9 && b - a < 1e-9 }
        function abs(x) { return x < 0 ? -x : x }
        { path = $1; sub(/^[^ ]* /, ""); v[path] = $0 ~ /^[-+.0-9eE]+$/ ? $0 + 0 : $0 }
        END { '"$2"'; exit !good }' "$place/answer"; then
        echo "ok $tests - $1"
    else
        echo "not ok $tests - $1"
        failures=$((failures + 1))
        sed -n 's/^/# /; 1,12p' "$place/answer"
    fi
}

# Of every row that is predicted.
hold() {
    is "$1: the command is named" 'good = v["command"] == "\"validate\""'
    is "$1: lower, expected and upper in order, expected in its interval" 'good = v["rows.count"] > 0
        for (i = 0; i < v["rows.count"]; i++) {
            p = "rows." i "."
            if (v[p "expected"] == "null") continue
            if (!(v[p "lower"] > 0 && v[p "lower"] + 0 <= v[p "expected"] + 0 &&
                  v[p "expected"] + 0 <= v[p "upper"] + 0 &&
                  v[p "interval.0"] + 0 <= v[p "expected"] + 0 && v[p "expected"] + 0 <= v[p "interval.1"] + 0))
                good = 0
        }'
    is "$1: the error is expected over measured less one" 'good = 1
        for (i = 0; i < v["rows.count"]; i++) {
            p = "rows." i "."
            if (v[p "error"] == "null") { if (v[p "expected"] != "null" && v[p "measured"] != "null") good = 0 }
            else if (!near(v[p "error"], v[p "expected"] / v[p "measured"] - 1)) good = 0
        }'
    is "$1: the summary is of the rows that are not apart" '
        for (i = 0; i < v["rows.count"]; i++) {
            p = "rows." i "."
            if ((p "unknown" in v) || (p "apart" in v)) continue
            n++; sum += abs(v[p "error"]); covered += v[p "measured"] + 0 >= v[p "interval.0"] + 0 && v[p "measured"] + 0 <= v[p "interval.1"] + 0
            below += v[p "measured"] + 0 < v[p "lower"] + 0
        }
        good = v["summary.n"] + 0 == n && n > 0 && near(v["summary.mean"], sum / n) && near(v["summary.coverage"], covered / n) &&
               v["summary.below_lower"] == below + 0 && v["below_lower.count"] == below + 0 &&
               v["summary.kept_apart"] == v["rows.count"] - n'
    is "$1: groups share out the rows" 'good = 1
        split("kind chip source model parallelism", names, " ")
        for (k in names) {
            n = 0
            for (i = 0; i < v["by." names[k] ".count"]; i++) n += v["by." names[k] "." i ".n"]
            if (n != v["summary.n"]) good = 0
        }'
    is "$1: the worst come first" 'good = v["worst.count"] > 0
        for (i = 1; i < v["worst.count"]; i++) {
            p = "worst." i - 1 "."; q = "worst." i "."
            if (abs(log(v[p "expected"] / v[p "measured"])) < abs(log(v[q "expected"] / v[q "measured"]))) good = 0
        }'
}

validate "$inputs/measured-gemm.csv"
hold matmuls
is 'matmuls: rows are named by the number of their line' '
    good = v["rows.count"] == 5 && v["rows.0.id"] == 2 && v["rows.4.id"] == 6'
is 'matmuls: a row faster than its chip is listed' 'good = v["below_lower.count"] == 1 && v["below_lower.0.id"] == 5'
is 'matmuls: a row that cannot be predicted is answered all the same' '
    good = v["rows.4.expected"] == "null" && ("rows.4.unknown" in v) && v["rows.4.measured"] + 0 > 0'
is 'matmuls: the calibration is named' 'good = v["rows.0.calibration"] ~ /^"[^\/]+\/[^\/]+"$/'
is 'matmuls: nothing is said of memory' 'good = !("rows.0.fits" in v) && !("memory.n" in v) && !("verdicts.right" in v)'

validate "$inputs/measured-training.jsonl"
hold training
is 'training: rows keep their ids and their order' '
    good = v["rows.count"] == 12 && v["rows.0.id"] == "\"tp2\"" && v["rows.11.id"] == "\"tuned\""'
is 'training: what ran out of memory has a verdict and no time' '
    good = v["rows.8.measured"] == "null" && v["rows.8.error"] == "null" && v["rows.8.fits"] == "false" &&
           v["rows.8.expected"] + 0 > 0'
is 'training: repeated and fine-tuning rows are answered and kept apart' '
    good = v["rows.10.expected"] == v["rows.0.expected"] && ("rows.10.apart" in v) && (("rows.11.apart" in v) || ("rows.11.unknown" in v)) && v["summary.n"] == 8'
is 'training: memory sums to its total' 'p = "rows.0.memory_bytes."
    sum = v[p "params"] + v[p "gradients"] + v[p "optimizer"] + v[p "activations"] + v[p "buffers"]
    good = abs(sum / v[p "total"] - 1) < 1e-6'
is 'training: eight layouts make a sweep' '
    good = v["layouts.count"] == 1 && v["layouts.0.layouts"] == 8 && v["ranking.sweeps"] == 1 &&
           v["layouts.0.kendall_tau"] + 0 <= 1 && v["layouts.0.time_lost"] + 0 >= 0'
is 'training: the time lost is that of our best layout' 'best = 1e9
    for (i = 0; i < 8; i++) {
        p = "rows." i "."
        if (v[p "measured"] + 0 < best) best = v[p "measured"] + 0
        if (i == 0 || v[p "expected"] + 0 < v[choice "expected"] + 0) choice = p
    }
    good = near(v["layouts.0.time_lost"], v[choice "measured"] / best - 1)'
is 'training: verdicts count out-of-memory rows and rows that ran' '
    good = v["verdicts.out_of_memory_refused"] + v["verdicts.out_of_memory_passed"] == 2 &&
           v["verdicts.ran_passed"] + v["verdicts.ran_refused"] == 9'
is 'training: those that ran beside them are counted by their source' '
    good = v["verdicts.twins_passed"] + v["verdicts.twins_refused"] == 9 &&
           near(v["verdicts.twins_right"] * 11, v["verdicts.out_of_memory_refused"] + v["verdicts.twins_passed"])'
is 'training: peak memory is compared where it is stated' '
    good = v["memory.n"] == 1 && near(v["rows.0.measured_memory_bytes"], 70 * 1024 ^ 3)'

validate "$inputs/measured-training.jsonl" --all
is '--all counts repeated rows, and fine-tuning where it can be predicted' '
    good = v["summary.n"] + 0 >= 9'
validate "$inputs/measured-training.jsonl" --summary
is '--summary leaves the rows out' 'good = !("rows.count" in v) && v["summary.n"] == 8'
validate "$inputs/measured-gemm.csv" --chip a100-80
is '--chip keeps one chip' 'good = v["rows.count"] == 1 && v["rows.0.id"] == 4'
validate "$inputs/measured-gemm.csv" --source 'TWO, n'
is '--source looks for words in any case' 'good = v["rows.count"] == 1 && v["rows.0.id"] == 4'
validate "$inputs/measured-training.jsonl" --quality B 2>/dev/null
is '--quality that no row has answers nothing' 'good = v["rows.count"] == 1'
validate "$inputs/measured-gemm.csv" "$inputs/measured-training.jsonl" --worst 3
hold 'two files'
is 'two files: rows say which they are of' 'good = v["rows.count"] == 17 && v["rows.5.file"] ~ /measured-training/'
is '--worst says how many' 'good = v["worst.count"] == 3'
validate "$inputs/measured-gemm.csv" --by precision,software
is '--by groups by what it names' 'good = v["by.precision.count"] == 1 && v["by.software.count"] == 1 && !("by.chip.count" in v)'
validate "$inputs/measured-training.jsonl" --explain --worst 1
is '--explain shows measured, expected and lower side by side' '
    good = v["explain.inputs.0.inputs.0.label"] == "\"measured\"" &&
           v["explain.inputs.0.inputs.count"] >= 3 && v["explain.inputs.0.inputs.2.label"] == "\"lower\""'

"$program" validate "$inputs/measured-gemm.csv" --plot "$place/plot.svg" >"$place/page"
tests=$((tests + 1))
if grep -q '</svg>' "$place/plot.svg" && grep -q '>h100-sxm<' "$place/plot.svg"; then
    echo "ok $tests - --plot draws the chips"
else
    echo "not ok $tests - --plot draws the chips"
    failures=$((failures + 1))
fi

# The project's own measurements, found without being named.
validate --summary
is 'the measurements of the project are found and predicted' '
    good = v["summary.rows"] + 0 > 9000 && v["summary.predicted"] + 0 > 0.9 * v["summary.rows"]'
validate "$root/data/truth/kv_room_new.csv" --summary
is "what engines print of the cache, as kept apart" 'good = v["kv_room.n"] == 27 && v["kv_room.median"] <= 0.05 &&
    v["kv_room.p90"] <= 0.15 && v["kv_room.within_a_tenth"] >= 0.9'
finish_tests

#!/bin/sh
# What XLA made of programs that `train --emit jax` wrote (recorded by scripts/emitted-jax.py: config, plan, collective,
# members of a group, bytes, 1 where XLA does otherwise): `train` predicts the same, and writes such a program still.
root="$(cd "$(dirname "$0")/../.." && pwd)"
program="${SCALEMODEL:-$root/build/scalemodel}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
export LC_ALL=C
tests=0
failures=0
recorded="$root/tests/emitted_jax.txt"

cut -d' ' -f1,2 "$recorded" | uniq >"$place/plans"
while read -r config plan; do
    tests=$((tests + 1))
    job="$root/tests/cli/inputs/jax/$config.json --on tpu-v5e:2x4 --batch 16seqs --seq 128 --plan $plan"
    # shellcheck disable=SC2086
    "$program" train $job --emit jax >"$place/program" 2>&1 || echo "is not written: $(cat "$place/program")" >"$place/wrong"
    # shellcheck disable=SC2086
    "$program" train $job --framework jax --json | awk -f "$root/tests/cli/flatten.awk" >"$place/answer"
    awk -v config="$config" -v plan="$plan" '
        FNR == NR { if ($1 == config && $2 == plan) { made[$3 " " $4] = $5; other[$3 " " $4] = $6 }; next }
        { path = $1; sub(/^[^ ]* /, ""); gsub(/"/, ""); v[path] = $0 }
        END {
            for (i = 0; i < v["plans.0.mesh.count"] + 0; i++)
                size[v["plans.0.mesh." i ".axis"]] = v["plans.0.mesh." i ".size"]
            for (i = 0; i < v["plans.0.collectives.count"] + 0; i++) {
                p = "plans.0.collectives." i "."
                members = 1
                n = split(v[p "axis"], axes, ",")
                for (k = 1; k <= n; k++) members *= size[axes[k]]
                predicted[v[p "op"] " " members] += v[p "count"] * v[p "bytes_per_chip"]
            }
            for (key in predicted)
                if (predicted[key] >= 16000 && !(key in made)) print key ": was not recorded"
            for (key in made) {
                off = made[key] - predicted[key]
                if ((off > 0.005 * predicted[key] || -off > 0.005 * predicted[key]) != other[key])
                    printf "%s: %.0f bytes compiled, %.0f predicted\n", key, made[key], predicted[key]
            }
        }' "$recorded" "$place/answer" >>"$place/wrong"
    if [ -s "$place/wrong" ]; then
        echo "not ok $tests - $config under $plan"
        sed 's/^/# /' "$place/wrong"
        failures=1
    else
        echo "ok $tests - $config under $plan"
    fi
    : >"$place/wrong"
done <"$place/plans"
echo "1..$tests"
[ "$tests" -gt 0 ] && [ "$failures" -eq 0 ]

#!/bin/sh
# design: what it prints; the machines that it calls best are those, by their own numbers; steps are
# the differences of machines; threads change nothing.
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/design.golden"
cd "$place/work" || exit 1

check "one thread answers" "scalemodel design inputs/design/chip.json --threads 1 --json >one.json"
check "three give the same" "scalemodel design inputs/design/chip.json --threads 3 --json | cmp - one.json"
check "its table is CSV" "scalemodel design inputs/design/chip.json --csv >one.csv && [ \$(wc -l <one.csv) -eq 19 ]"
check "its picture is SVG" "scalemodel design inputs/design/chip.json --plot one.svg && grep -q '</svg>' one.svg"

# The columns of the table of machines, by name: usd watts tokens pareto within why.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { print $at["usd_per_hour"], $at["watts"], $at["tokens_per_s"], $at["pareto"], $at["within_bounds"] }' one.csv >rows
check "a machine is best where no other within bounds does as much for as little" "awk '
    { usd[NR] = \$1; watts[NR] = \$2; rate[NR] = \$3; best[NR] = \$4; within[NR] = \$5 }
    END {
        for (i = 1; i <= NR; i++) {
            beaten = within[i] != \"true\"
            for (k = 1; k <= NR; k++)
                if (k != i && within[k] == \"true\" && usd[k] <= usd[i] && watts[k] <= watts[i] && rate[k] >= rate[i] &&
                    (usd[k] < usd[i] || watts[k] < watts[i] || rate[k] > rate[i])) beaten = 1
            if (beaten == (best[i] == \"true\")) exit 1
            n += best[i] == \"true\"
        }
        exit !(NR == 18 && n > 1 && n < NR)
    }' rows"
check "bounds leave some out" "grep -q 'false\$' rows && grep -q 'true\$' rows"

# The mix by hand: shares of 1 and 3 of two rates.
alone() { scalemodel sweep --csv --over on=h100-sxm:2x8 --columns tokens_per_s_per_chip "$@" | awk -F, 'NR == 2 { print $3 }'; }
alone train llama-3.2-1b --batch 256k >rates
alone serve llama-3.1-8b --batch 64 >>rates
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["on"] == "h100-sxm:2x8" && $at["hbm"] == 1 && $at["link"] == 1 { print $at["tokens_per_s"] }' one.csv >>rates
check "work takes turns" "awk '{ rate[NR] = \$1 }
    END { want = 16 * 4 / (1 / rate[1] + 3 / rate[2]); got = rate[3]
          exit !(NR == 3 && got > want * (1 - 1e-9) && got < want * (1 + 1e-9)) }' rates"
finish_tests

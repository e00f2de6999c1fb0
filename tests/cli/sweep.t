#!/bin/sh
# sweep: what it prints; rows in a file are the same bytes whatever the threads, whether it was
# killed, or ran into a limit and went on.
. "$(dirname "$0")/runner.sh"
run_file "$root/tests/cli/sweep.golden"
cd "$place/work" || exit 1

# asked THREADS FILE [BATCH]: 63 prices of one plan, drawn as a picture beside FILE
asked() {
    scalemodel sweep --threads "$1" --plot "$2.svg" --over what-if.hbm=1..2:0.05 --over batch="${3:-64k}..256k*2" -o "$2" \
        train llama-3.2-1b --on h100-sxm:2 --seq 1024 --plan data=2,microbatch=1
}

check "one thread writes every row" "asked 1 one.csv && [ \$(wc -l <one.csv) -eq 64 ]"
check "nothing but its picture is left beside it" "[ \$(ls one.csv* | wc -l) -eq 2 ]"
check "three threads write the same bytes" "asked 3 three.csv && cmp one.csv three.csv"
check "a file that may grow no further ends it" "! (ulimit -f 4; asked 1 cut.csv)"
check "its rows so far stay" "[ -s cut.csv ] && [ -s cut.csv.sweep ] && ! cmp -s one.csv cut.csv"
check "another sweep does not go on there, and says why" \
    "! asked 1 cut.csv 128k 2>said && grep -qF 'remove cut.csv.sweep to begin' said"
check "the same sweep goes on, to the same bytes" \
    "asked 2 cut.csv | grep -q 'were there already' && cmp one.csv cut.csv"
check "its picture has the rows of before too" \
    "cmp one.csv.svg cut.csv.svg && [ \$(grep -c '<circle' one.csv.svg) -eq 126 ]"
check "its mark is gone" "! [ -e cut.csv.sweep ]"

"$program" sweep --threads 1 --over what-if.hbm=1..2:0.05 --over batch=64k..256k*2 -o killed.csv \
    train llama-3.2-1b --on h100-sxm:2 --seq 1024 --plan data=2,microbatch=1 >"$place/out" 2>&1 &
writer=$!
while kill -0 $writer 2>"$place/err" && ! [ -s killed.csv.sweep ]; do :; done
kill -9 $writer 2>"$place/err"
wait $writer 2>"$place/err"
check "a killed sweep goes on, to the same bytes" "asked 2 killed.csv && cmp one.csv killed.csv"
finish_tests

#!/bin/sh
# measure: its files read back as chip, constants and picture; the answer has the same structure
# each time; hostile values are refused. Nothing here looks at how long anything took.
. "$(dirname "$0")/runner.sh"
cd "$place/work" || exit 1

refuses() { # refuses STATUS SENTENCE ARGUMENT...
    wanted="$1" sentence="$2"
    shift 2
    scalemodel measure "$@" >"$place/said" 2>"$place/sentence" </dev/null
    status=$?
    check "measure $* is refused" \
        "[ $status -eq $wanted ] && grep -qF -- '$sentence' '$place/sentence' && ! [ -s '$place/said' ]"
}

if ! [ -x "$(dirname "$program")/scalemodel-run" ]; then
    echo "ok 1 - measure # skip built without BLAS"
    echo "1..1"
    exit 0
fi

# ---- files ----
check "two ranks are measured" "scalemodel measure --quick --with threads --ranks 2 --name lab \
    -o machine.json --plot machine.svg --json --debug >answer.json"
check "the chip reads back" \
    "scalemodel chip lab --system machine.json | grep -q 'fp64 peak, dense'"
check "it is listed" "scalemodel chip --system machine.json | grep -q '^lab .*2'"
check "its constants read back" "scalemodel chip lab --calibration --system machine.json"
check "a product is priced on them" "scalemodel matmul 'A[I_X,J] B[J,K] -> C[I,K]' --mesh X=2 \
    --dims I=64,J=64,K=64 --on lab:2 --system machine.json --calibration machine.txt"
check "a collective is priced on them" "scalemodel collective all-gather 1MB --on lab:2 \
    --system machine.json --calibration machine.txt"
check "a product runs against them" "scalemodel run matmul 'A[I_X,J] B[J,K] -> C[I_X,K]' \
    --mesh X=2 --dims I=64,J=64,K=64 --with threads --system machine.json --calibration machine.txt"
check "more ranks than were measured are refused" \
    "! scalemodel matmul 'A[I_X,J] B[J,K]' --mesh X=4096 --dims I=4096,J=1,K=1 --on lab:4096 \
    --system machine.json --calibration machine.txt"
check "what was measured is listed" \
    "grep -q '^fitted = .*matmul_efficiency .*network_efficiency_inner' machine.txt"
check "the date and the libraries are told" \
    "grep -q '^source = measured [0-9-]* on .*, 2 ranks (threads), ' machine.txt"
check "quartiles stand in the sources" "grep -q 'median .*, quartiles .* to ' machine.json"
check "the picture is one" "grep -q '^<svg' machine.svg && tail -n 1 machine.svg | grep -q '</svg>'"
check "the picture shows the roofs" "grep -q 'fp64 roof' machine.svg"

# ---- the answer ----
keys() { sed -e 's/: .*//' -e 's/^ *[]}],*$//' "$1"; }
check "the answer has every timing" "grep -c '\"median\"' answer.json | grep -qx 54"
keys answer.json >one
check "one rank has no network" "scalemodel measure --quick --with self --constants one.txt \
    -o one.json && ! grep -q network_efficiency_inner.*collective_s one.txt && \
    grep -q '\"fabric\": \"none\"' one.json"

for mpi in openmpi mpich; do
    [ -x "$(dirname "$program")/scalemodel-run-$mpi" ] || continue
    check "ranks of $mpi are measured" "scalemodel measure --quick --ranks 2 --with $mpi --name lab --json \
        -o $mpi.json >again.json && grep -q $mpi $mpi.txt && scalemodel chip --system $mpi.json"
    keys again.json >other
    check "the answer of $mpi has the same structure" "cmp one other"
done

# ---- what is refused ----
refuses 3 "--ranks:1:1: " --ranks x
refuses 3 "--ranks" --ranks 0
refuses 3 "--ranks" --ranks -1
refuses 3 "--ranks" --ranks 1000000000000
refuses 3 "with cannot be \"pigeons\"; expected openmpi, mpich, threads, self or cuda" --with pigeons
refuses 3 "a name has 1 to 40 letters" --name "a b"
refuses 3 "a name has 1 to 40 letters" --name ""
refuses 3 "a name has 1 to 40 letters" --name "x]"
refuses 3 "a name has 1 to 40 letters" --name "$(printf '%041d' 0)"
refuses 3 "and --with self is one" --with self --ranks 2
refuses 2 "--output needs the name of a file" -o ""
refuses 2 "--plot needs the name of a file" --plot ""
refuses 2 "--constants needs the name of a file" --constants ""
refuses 2 "measure takes no argument, and" surplus
refuses 4 "nowhere/machine.json" --quick --with self -o nowhere/machine.json
finish_tests

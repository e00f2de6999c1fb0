#!/bin/sh
# Plans on real ranks: the golden answers on threads, then the same from each MPI that was there to
# build with, and random einsums on processes. Times are masked: each as T.
. "$(dirname "$0")/runner.sh"
. "$(dirname "$0")/ranks.sh"
folder="$(dirname "$program")"
[ -x "$folder/scalemodel-run" ] || { echo "1..0 # no BLAS" && exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Numbers that differ from run to run, or with the calibration.
mask() {
    sed -e 's/"\(predicted\|measured\|apart_s\|hidden\)": -\{0,1\}[0-9.e+-]*/"\1": T/g'
}
run_file "$root/tests/cli/run.golden"

matmul() { # matmul BACKEND: all ways of a sharded product of whole numbers
    scalemodel run matmul 'A[I_X,J] B[J_X,K] -> C[I,K_X]' --mesh X=2 --dims I=32,J=16,K=24 \
        --dtype int --all --repeats 1 --with "$1" --json 2>"$place/err" |
        awk -f "$root/tests/cli/flatten.awk" | grep -v 'backend\|order\|axes\|fastest' |
        sed 's/\(predicted\|measured\|apart_s\|hidden\) .*/\1 T/' >"$place/$1"
    grep -q 'equal true' "$place/$1"
}

found() {
    victim="$(rank_of "$launcher" "$folder/scalemodel-run-$1")"
    [ -n "$victim" ]
}

# What runs at length on MPI: its first rank that is there, or nothing.
begin() { # begin BACKEND
    "$program" run matmul 'A[I_X,J] B[J,K] -> C[I_X,K]' --mesh X=2 --dims I=1024,J=1024,K=1024 \
        --repeats 10000 --with "$1" >"$place/out" 2>"$place/err" &
    launcher=$!
    victim=
    until_true found "$1"
}

# A rank that is killed ends all of them, with one sentence and no word of mpirun's.
killed() {
    begin "$1" || return 1
    sleep 1
    kill -9 "$victim"
    wait "$launcher"
    [ $? -eq 5 ] && [ ! -s "$place/out" ] && [ "$(wc -l <"$place/err")" -eq 1 ] &&
        grep -q '^scalemodel: a rank was killed' "$place/err"
}

# A process that is no more, or that nobody has waited for yet.
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# A signal to the command ends the ranks, and then it in the same way: 128 + 15, not an answer.
stopped() {
    begin "$1" || return 1
    kill -TERM "$launcher"
    wait "$launcher" 2>"$place/said"
    [ $? -eq 143 ] && [ ! -s "$place/out" ] && [ ! -s "$place/err" ] && until_true gone "$victim"
}

matmul threads
for mpi in openmpi mpich; do
    [ -x "$folder/scalemodel-run-$mpi" ] || continue
    matmul "$mpi" && cmp "$place/threads" "$place/$mpi" >"$place/out"
    say "all ways of a product on $mpi as on threads"
    killed "$mpi"
    say "a rank of $mpi is killed"
    stopped "$mpi"
    say "a command with ranks of $mpi is stopped"
    crowd="$([ "$mpi" = openmpi ] && echo --oversubscribe)"
    for load in "2 60" "4 20" "8 10"; do
        ranks="${load% *}"
        "mpirun.$mpi" $crowd -n "$ranks" "$folder/tests/ranks-$mpi" "${load#* }" 1 \
            >"$place/out" 2>"$place/err" </dev/null && grep -q "equal on $ranks ranks" "$place/out"
        say "random einsums on $ranks ranks of $mpi"
    done
done
finish_tests

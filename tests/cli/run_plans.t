#!/bin/sh
# Every fourth of the plans of tests/train_plans.h on processes of the MPIs that were there to build with, each
# plan on one of them: losses as on one rank, bytes as predicted; and of plans drawn for each family. All run on threads in test_run_train, and here
# with PLANS=all.
. "$(dirname "$0")/runner.sh"
cd "$root" || exit 1
folder="$(dirname "$program")"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export SCALEMODEL_SHARED_CORES=1 # with the suite's other jobs; run.t is without

every=0
for mpi in openmpi mpich; do [ -x "$folder/tests/train-$mpi" ] && every=$((every + 1)); done
[ "${PLANS:-}" = all ] || every=$((4 * every))

# Plans of so many ranks, as "N of N plans ...".
plans_equal() { # plans_equal MPI RANKS FIRST
    crowd="$([ "$1" = openmpi ] && echo --oversubscribe)"
    "mpirun.$1" $crowd -n "$2" "$folder/tests/train-$1" "$every" "$3" \
        >"$place/out" 2>"$place/err" </dev/null &&
        grep -q "^\([1-9][0-9]*\) of \1 plans as on one rank, on $2 ranks of $1$" "$place/out"
}

first=0
for mpi in openmpi mpich; do
    [ -x "$folder/tests/train-$mpi" ] || continue
    for ranks in 1 2 4 8; do
        plans_equal "$mpi" "$ranks" "$first"
        equal=$?
        tests=$((tests + 1))
        if [ "$equal" -eq 0 ]; then
            echo "ok $tests - $(sed 's/ as on .*//' "$place/out") on $ranks ranks of $mpi"
            continue
        fi
        failures=$((failures + 1))
        echo "not ok $tests - plans on $ranks ranks of $mpi"
        sed 's/^/# /' "$place/out" "$place/err" | head -n 20
    done
    first=$((first + 1))
done
finish_tests

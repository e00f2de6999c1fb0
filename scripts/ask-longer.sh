#!/bin/sh
# Ask the random tests for longer than the suite has: other jobs, machines and plans for each seed,
# one round after the other, for so many seconds (an hour unless told) or until one fails.
#   scripts/ask-longer.sh [SECONDS [FIRST SEED]]      BUILD=build
#   TESTS="test_route test_algebra" scripts/ask-longer.sh 600      only these
# test_train_search, test_serve_search: no plan, drawn without the search, beats what it calls best
# (time, cost, memory), and brute force gives the same. test_train_price, test_serve_sanity: a better
# machine never makes a plan slower by any of its three times. test_route: reshardings on meshes to
# 2x2x4 take the least bytes, by brute force. test_algebra, test_run_lowering: lowerings, chip by chip
# and on ranks, give the whole product and move the bytes predicted. test_chain: every order and
# sharding of a chain costs what it does by itself, or more than the best. test_scheduler: engines.
end=$(($(date +%s) + ${1:-3600})) seed=${2:-1} rounds=0
while [ "$(date +%s)" -lt "$end" ]; do
    for test in ${TESTS:-test_train_price test_train_search test_serve_sanity test_better_machine test_serve_search test_route test_algebra \
        test_run_lowering test_chain test_scheduler}; do
        if ! SEED=$seed "${BUILD:-build}/tests/$test" >/dev/null 2>"${TMPDIR:-/tmp}/ask-longer.$$"; then
            echo "SEED=$seed $test:"
            grep -E 'ERROR|LINE|FAILED' "${TMPDIR:-/tmp}/ask-longer.$$"
            exit 1
        fi
    done
    rounds=$((rounds + 1)) seed=$((seed + 1))
done
rm -f "${TMPDIR:-/tmp}/ask-longer.$$"
echo "$rounds rounds, to seed $((seed - 1)): nothing found"

#!/bin/sh
# run sweep: the rows of a sweep, to the byte, whatever asks: threads or the ranks of either MPI, as many as there
# are; what one sweep has left another goes on with; an error is told once.
. "$(dirname "$0")/runner.sh"
cd "$place/work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SCALEMODEL_SHARED_CORES=1

# asked FILE WORD...: 63 prices of one plan, of which a third are refused
asked() {
    file="$1"
    shift
    scalemodel "$@" --over what-if.hbm=1..2:0.05 --over batch=64k,1,256k -o "$file" \
        train llama-3.2-1b --on h100-sxm:2 --seq 1024 --plan data=2,microbatch=1
}

check "one process writes every row" "asked one.csv sweep --threads 1 && [ \$(wc -l <one.csv) -eq 64 ]"
check "a third are refused" "[ \$(grep -c ',refused,' one.csv) -eq 21 ]"
for backend in threads openmpi mpich; do
    [ "$backend" = threads ] || [ -x "$(dirname "$program")/scalemodel-run-$backend" ] || continue
    for ranks in 1 2 5; do
        check "$ranks ranks of $backend write the same bytes, and nothing is left beside them" \
            "asked $backend$ranks.csv run sweep --with $backend --ranks $ranks && cmp one.csv $backend$ranks.csv &&
                [ \$(ls $backend$ranks.csv* | wc -l) -eq 1 ]"
    done
    head -n 20 one.csv >"cut$backend.csv"
    check "$backend: what is no sweep of its own is not gone on with" \
        "asked cut$backend.csv run sweep --with $backend --ranks 2 && cmp one.csv cut$backend.csv"
    check "$backend: a column that no answer has is told, once" \
        "! asked none.csv run sweep --with $backend --ranks 3 --columns nosuch 2>said &&
            [ \$(grep -c 'answers with no such key' said) -eq 1 ]"
    check "$backend: without values it is no sweep" \
        "! scalemodel run sweep --with $backend --ranks 3 train llama-3.2-1b 2>said && grep -q 'takes values from --over' said"
    rm -f none.csv*
    "$program" run sweep --with "$backend" --ranks 3 --over what-if.hbm=1..2:0.05 --over batch=64k,1,256k -o "$backend.csv" \
        train llama-3.2-1b --on h100-sxm:2 --seq 1024 --plan data=2,microbatch=1 >"$place/out" 2>&1 &
    writer=$!
    while kill -0 $writer 2>"$place/err" && ! [ -s "$backend.csv.sweep" ]; do :; done
    kill -9 $writer 2>"$place/err"
    wait $writer 2>"$place/err"
    check "$backend: what was killed goes on, to the same bytes, on ranks or on threads" \
        "until asked $backend.csv sweep 2>said || ! grep -q 'is being written by another' said; do :; done; cmp one.csv $backend.csv"
done
check "as JSON it has the same rows" \
    "scalemodel sweep --over batch=64k,128k train llama-3.2-1b --on h100-sxm:2 --json >one.json &&
        scalemodel run sweep --ranks 2 --over batch=64k,128k train llama-3.2-1b --on h100-sxm:2 --json >two.json && cmp one.json two.json"
finish_tests

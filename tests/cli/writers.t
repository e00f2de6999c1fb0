#!/bin/sh
# Two writers of one place, writers without a parent, and what is left where a writer is ended.
. "$(dirname "$0")/runner.sh"
. "$(dirname "$0")/ranks.sh"
folder="$(dirname "$program")"
work="$place/work"
cd "$work" || exit 1

# An answer keeps the links of a file, and goes to what a link without a target names.
echo old >one && ln one other && ln -s fresh dangling
"$program" chip h100-sxm -o one >"$place/out" 2>"$place/err" && cmp -s one other && [ -s one ] &&
    "$program" chip h100-sxm -o dangling >>"$place/out" 2>>"$place/err" && cmp -s one fresh && [ -L dangling ]
say "links are kept"

both_in() { # both_in CSV OUTPUT: one file under two names
    "$program" simulate llama-3.1-8b --on h100-sxm --plan tensor=1 --arrivals poisson:4/s --csv "$1" -o "$2" \
        >"$place/out" 2>"$place/err"
    [ $? -eq 2 ] && grep -q -- "--output and --csv both write $1" "$place/err"
}
both_in x x && both_in ./x x && [ ! -e x ] && ln -s one alias && both_in alias one && both_in other one
say "two answers in one file are refused"

# In 512-byte blocks; the signal that comes with it is no reason to die.
(ulimit -f 1 && exec "$program" model llama-3.1-8b --explain -o limited) >"$place/out" 2>"$place/err"
[ $? -eq 4 ] && grep -q 'cannot write limited: File too large' "$place/err" && [ ! -e limited ]
say "a limit of file sizes is an I/O error"
[ -z "$(ls ./*.tmp 2>/dev/null)" ]
say "no temporary file is left"

[ -x "$folder/scalemodel-run" ] || { finish_tests; exit; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
train() { # train OPTION...: the same training in every call
    exec "$program" run train inputs/tiny-llama.json --data data/models/llama-3.1-8b/config.json \
        --seq 32 --rate 1e-4 "$@"
}

for n in 1 2 3 4 5 6; do
    (train --steps 1 --with self --record rows.jsonl) >"$place/out.$n" 2>"$place/err.$n" &
done
wait
cat "$place"/err.? >"$place/err"
[ "$(wc -l <rows.jsonl)" -eq 6 ] && "$program" validate rows.jsonl >"$place/out" 2>>"$place/err" && [ ! -e rows.jsonl.lock ]
say "six writers of rows"

# one CHECKPOINT LOCK: a second training is refused with the first one's process and host, and what
# a killed one leaves is taken over.
one() {
    (train --steps 1000000 --with self --checkpoint "$1") >"$place/first" 2>&1 &
    first=$!
    until_true grep -q process "$2" 2>/dev/null && refused "$@"
    told=$?
    kill -9 "$first"
    wait "$first" 2>"$place/first"
    [ $told -eq 0 ] && [ -e "$2" ] && (train --steps 1 --with self --checkpoint "$1") >"$place/out" 2>"$place/err" &&
        [ ! -e "$2" ]
}
refused() {
    (train --steps 1 --with self --checkpoint "$1") >"$place/out" 2>"$place/err"
    [ $? -eq 4 ] && grep -q "$1 is being written by another: process [0-9]* on $(uname -n), which holds .*$2" "$place/err"
}
one ck.safetensors ck.safetensors.lock
say "a file of checkpoints has one writer"
one ck/ ck/lock
say "a folder of checkpoints has one writer"

# Is no process of this program left?
none_of() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" = "$1" ] &&
            [ "$(readlink "$process/cwd" 2>/dev/null)" = "$work" ] && return 1
    done
    return 0
}
for mpi in openmpi mpich; do
    [ -x "$folder/scalemodel-run-$mpi" ] || continue
    (train --steps 1000000 --with "$mpi" --plan data=2 --checkpoint "$mpi/" --every 1) >"$place/out" 2>"$place/err" &
    launcher=$!
    until_true [ -e "$mpi/latest" ] && ! none_of "$folder/scalemodel-run-$mpi"
    started=$?
    kill -9 "$launcher"
    wait "$launcher" 2>/dev/null
    until_true none_of "$folder/scalemodel-run-$mpi" && [ $started -eq 0 ]
    say "ranks of $mpi end with the process that started them"
done
finish_tests

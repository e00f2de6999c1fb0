#!/bin/sh
# Checkpoints of trainings on the command line; and a rank that is killed between two of them: all
# end with one sentence, and the last checkpoint is gone on from under another plan. With --failures
# ranks are killed and started anew within one command, whose answer is that of a whole training.
. "$(dirname "$0")/runner.sh"
. "$(dirname "$0")/ranks.sh"
folder="$(dirname "$program")"
[ -x "$folder/scalemodel-run" ] || { echo "1..0 # no BLAS" && exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export SCALEMODEL_SHARED_CORES=1 # with the suite's other jobs; run.t is without
run_file "$root/tests/cli/checkpoint.golden"

data=data/models/llama-3.1-8b/config.json
train() { # train OPTION...: the same training in every call
    (cd "$place/work" && exec "$program" run train inputs/tiny-llama.json \
        --data "$data" --seq 32 --steps 5000 --rate 1e-4 "$@")
}

latest() { sed -n 's/^step-0*//p' "$place/work/$1/latest" 2>/dev/null; }

written() { [ -n "$(latest "$1")" ]; }

# Kill a rank of a training that writes a checkpoint after every step.
killed() { # killed BACKEND
    train --with "$1" --plan data=2,zero=1 --checkpoint "$1/" --every 1 \
        >"$place/out" 2>"$place/err" &
    launcher=$!
    until_true written "$1"
    victim="$(rank_of "$launcher" "$folder/scalemodel-run-$1")"
    [ -n "$victim" ] || return 1
    kill -9 "$victim"
    wait "$launcher"
    [ $? -eq 5 ] && [ ! -s "$place/out" ] && [ "$(wc -l <"$place/err")" -eq 1 ] &&
        grep -q '^scalemodel: a rank was killed' "$place/err"
}

# What is left is whole, and goes on as the training that was never stopped.
resumed() { # resumed BACKEND
    made="$(latest "$1")"
    [ -n "$made" ] || return 1
    until=$((made + 2))
    train --with threads --plan fsdp=2,microbatch=2 --resume "$1" --until "$until" \
        --checkpoint "$1" --curve "$1.csv" >"$place/out" 2>"$place/err" || return 1
    train --with threads --until "$until" --curve whole.csv >"$place/out" 2>"$place/err" || return 1
    [ "$(ls "$place/work/$1" | wc -l)" -eq 2 ] && [ "$(latest "$1")" -eq "$until" ] &&
        awk -F, 'NR == FNR { a[$1] = $2; next }
            FNR > 1 { d = a[$1] - $2; if (d * d > 1e-6) bad = 1; n++ }
            END { exit bad || n != 2 }' "$place/work/whole.csv" "$place/work/$1.csv"
}

# The draws of this seed: one failure early, then none for as long as a test may take.
interrupted() { # interrupted BACKEND
    train --with "$1" --plan data=2,zero=1 --until 60 --seed 3806 --failures 33 --every 2 \
        --checkpoint "failing-$1/" --curve "failing-$1.csv" --json >"$place/out" 2>"$place/err" ||
        return 1
    grep -q '"loss_apart": 0,*$' "$place/out" && [ ! -s "$place/err" ] &&
        ! grep -q '"interruptions": {.*"measured": 0}' "$place/out" &&
        awk -F, 'NR == FNR { a[$1] = $2; next }
            FNR > 1 { d = a[$1] - $2; if (d * d > 1e-8) bad = 1; n++ }
            END { exit bad || n != 60 }' "$place/work/seeded.csv" "$place/work/failing-$1.csv"
}

train --with threads --until 60 --seed 3806 --curve seeded.csv >"$place/out" 2>"$place/err"
interrupted threads
say "ranks that are threads fail and are started anew"

for mpi in openmpi mpich; do
    [ -x "$folder/scalemodel-run-$mpi" ] || continue
    killed "$mpi"
    say "a rank of $mpi is killed while it trains"
    resumed "$mpi"
    say "what it left is gone on from"
    interrupted "$mpi"
    say "a rank of $mpi fails, and all are started anew"
    # each process reads another text there
    data=/proc/self/status
    train --with "$mpi" --plan data=2 >"$place/out" 2>"$place/err"
    told=$?
    data=data/models/llama-3.1-8b/config.json
    [ "$told" -eq 3 ] && grep -q '/proc/self/status changed while the ranks read it' "$place/err"
    say "ranks of $mpi that have read different texts"
done
finish_tests

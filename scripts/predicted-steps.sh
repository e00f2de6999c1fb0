#!/bin/sh
# How well steps of trainings are predicted on this machine: measures it on two ranks, trains two
# dense models and one with experts under many plans, each beside its prediction, and says how far
# off the median step is and how often the order of two plans of one model is predicted right, of
# the pairs that differ by more than 20 %. Neither models nor plans are those that `measure` fits
# its constants to.
# Every plan is run twice, half the study apart, and the lesser of the two median steps counts.
# usage: scripts/predicted-steps.sh BUILD [threads|openmpi|mpich] [STEPS] [keep]
# keep: the machine was measured by an earlier run, whose files are there.
# The files it makes stay in BUILD/predicted-steps: machine.json, machine.txt, one JSON a plan and
# model, and all runs as rows.csv. Nothing else should run on the machine.
set -eu
build=${1:?usage: scripts/predicted-steps.sh BUILD [threads|openmpi|mpich] [STEPS] [keep]}
with=${2:-threads}
steps=${3:-15}
kept=${4:-}
program=$build/scalemodel
place=$build/predicted-steps
mkdir -p "$place"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---- models: WIDTH LAYERS HEADS KV_HEADS MLP EXPERTS ----
model() {
    family=llama class=LlamaForCausalLM experts=
    if [ "$6" -gt 0 ]; then
        family=mixtral class=MixtralForCausalLM
        experts="\"num_local_experts\": $6, \"num_experts_per_tok\": 2,"
    fi
    cat <<JSON
{"architectures": ["$class"], "model_type": "$family", "hidden_size": $1, "num_hidden_layers": $2,
 "num_attention_heads": $3, "num_key_value_heads": $4, "intermediate_size": $5, $experts
 "vocab_size": 256, "max_position_embeddings": 4096, "hidden_act": "silu",
 "tie_word_embeddings": false}
JSON
}
model 128 4 4 2 352 0 >"$place/small.json"
model 256 4 8 4 704 0 >"$place/large.json"
model 128 4 4 2 224 4 >"$place/experts.json"
cat docs/*.md >"$place/text"

plans_of_any="data=2,zero=0,microbatch=1
data=2,zero=0,microbatch=4
data=2,zero=1,microbatch=2
data=2,zero=2,microbatch=2
data=2,zero=1,microbatch=1,recompute=full
data=2,zero=0,microbatch=2,recompute=save-matmuls
fsdp=2,microbatch=1
fsdp=2,microbatch=4
fsdp=2,microbatch=2,recompute=selective
tensor=2,microbatch=2
tensor=2,seq=on,microbatch=1
tensor=2,seq=on,microbatch=4
tensor=2,seq=on,microbatch=2,recompute=full
context=2,context_by=ring,microbatch=2
context=2,context_by=gather,microbatch=2
context=2,context_by=heads,microbatch=2
pipeline=2,schedule=gpipe,microbatch=1
pipeline=2,schedule=1f1b,microbatch=1
pipeline=2,schedule=1f1b,microbatch=2
pipeline=2,schedule=interleaved,virtual=2,microbatch=1
pipeline=2,schedule=zb-h1,microbatch=1
pipeline=2,schedule=zb-v,microbatch=1"
plans_of_experts="data=2,zero=1,microbatch=2
data=2,zero=0,microbatch=1
fsdp=2,microbatch=2
expert=2,microbatch=1
expert=2,microbatch=4
expert=2,microbatch=2,recompute=full
tensor=2,seq=on,expert_tensor=on,microbatch=2
tensor=2,expert_tensor=off,microbatch=2
context=2,context_by=gather,microbatch=2
pipeline=2,schedule=1f1b,microbatch=1"

# ---- measuring ----
echo "load before: $(cat /proc/loadavg 2>/dev/null || uptime)"
if [ -z "$kept" ]; then
    "$program" measure --ranks 2 --with "$with" -o "$place/machine.json" >"$place/measure.out"
fi

# ---- one run: MODEL NUMBER PLAN ----
field() { # predicted or measured of step_s
    sed -n '/"step_s":/,/}/s/.*"'"$1"'": *\([-0-9.e+]*\).*/\1/p' "$2" | head -n 1
}
rows=$place/rows.csv
echo "model,plan,predicted_s,measured_s" >"$rows"
run() {
    out=$place/$1-$2.json
    if ! "$program" run train "$place/$1.json" --data "$place/text" --seq 128 --batch 1024 \
        --steps "$steps" --with "$with" --plan "$3" --system "$place/machine.json" \
        --calibration "$place/machine.txt" --json >"$out" 2>"$out.err"; then
        echo "$1 $3 did not run: $(head -n 1 "$out.err")"
        return
    fi
    echo "$1,$3,$(field predicted "$out"),$(field measured "$out")" |
        awk -F, '{ for (i = 2; i < NF - 1; i++) plan = plan (i > 2 ? "," : "") $i
                   print $1 ",\"" plan "\"," $(NF - 1) "," $NF }' >>"$rows"
}
all() {
    number=0
    for plan in $2; do
        number=$((number + 1))
        run "$1" "$number" "$plan"
    done
}
for round in 1 2; do
    all small "$plans_of_any"
    all large "$plans_of_any"
    all experts "$plans_of_experts"
    echo "load after round $round: $(cat /proc/loadavg 2>/dev/null || uptime)"
done

# ---- the answer ----
awk -F'"' 'NR > 1 {
    split($1, a, ","); split($3, b, ",")
    key = a[1] SUBSEP $2
    if (!(key in at)) {
        at[key] = ++n
        model[n] = a[1]; plan[n] = $2; p[n] = b[2]; m[n] = b[3]
    } else if (b[3] < m[at[key]]) m[at[key]] = b[3]
}
END {
    for (i = 1; i <= n; i++) {
        ratio = p[i] / m[i]
        off[i] = ratio > 1 ? ratio - 1 : 1 - ratio
        printf "%-8s %-54s %9.2f ms %9.2f ms %6.2f\n", model[i], plan[i], 1e3 * p[i],
            1e3 * m[i], ratio
    }
    for (i = 2; i <= n; i++)
        for (k = i; k > 1 && off[k] < off[k - 1]; k--) {
            t = off[k]
            off[k] = off[k - 1]
            off[k - 1] = t
        }
    for (i = 1; i <= n; i++)
        for (k = 1; k < i; k++) {
            if (model[i] != model[k]) continue
            r = m[i] / m[k]
            if (r < 1.2 && r > 1 / 1.2) continue
            pairs++
            right += (p[i] > p[k]) == (m[i] > m[k])
        }
    median = n % 2 ? off[(n + 1) / 2] : (off[n / 2] + off[n / 2 + 1]) / 2
    for (i = 1; i <= n; i++) within += off[i] <= 0.15
    printf "%d plans: predicted step time off by %.1f %% in the median", n, 100 * median
    printf ", %d of them by 15 %% or less\n", within
    if (pairs)
        printf "%d pairs differ by more than 20 %%: %.1f %% in the right order\n", pairs,
            100 * right / pairs
}' "$rows"

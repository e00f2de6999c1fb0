#!/bin/sh
# How far predictions are from the measurements in data/truth: docs/accuracy.md and its picture.
# Ends with one line a set: "validate: SET n=.. median=.. p90=..", errors as fractions.
# usage: scripts/accuracy.sh            SCALEMODEL=build/scalemodel OUT=docs
#
# Errors on rows that had no part in the fit come from data/calibration/held-out.csv, which
# `make held-out` writes: set,n,median,p90,mean,coverage,how, and those of serving from
# data/calibration/held-out-serving.csv; those of memory from held-out-memory.csv. A set they do not
# hold shows none.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
program="${SCALEMODEL:-build/scalemodel}"
asked="${AS_ASKED:-build/as-asked}"
truth=data/truth
out="${OUT:-docs}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
held="$place/held"
cat data/calibration/held-out.csv data/calibration/held-out-serving.csv >"$held" 2>/dev/null || :

# ---- the answers, one file of "path value" lines a set ----
answer() { # answer SET OPTION... FILE...
    set_name="$1"
    shift
    "$program" validate --json --summary --by kind,chip,source,model,parallelism,precision "$@" >"$place/json"
    awk -f tests/cli/flatten.awk "$place/json" >"$place/$set_name"
}
answer vtrain-single --source vTrain "$truth/training_small.csv"
answer vtrain-multi --source vTrain "$truth/training.csv"
answer quality-a --quality A "$truth/training.csv"
answer training "$truth/training.csv"
answer new "$truth/training_new.csv"
answer new-default --software default "$truth/training_new.csv"
answer tuned --all "$truth/training_tuned.csv"
answer verdicts "$truth/training.csv" "$truth/training_oom.csv"
answer gemm "$truth/gemm.csv"
answer attention "$truth/attention.csv"
answer collectives "$truth/collectives.csv"
answer memops "$truth/memops.csv"
answer inference "$truth/inference.csv"
answer hidden --software serving "$truth/inference.csv"
answer served-new "$truth/inference_new.csv"
answer served-new-hidden --software serving "$truth/inference_new.csv"
answer room "$truth/kv_room.csv"
answer room-new "$truth/kv_room_new.csv"
answer all --data "$truth" --plot "$out/accuracy.svg"

# ---- picking figures ----
value() { awk -v path="$2" '$1 == path { print $2; found = 1; exit } END { if (!found) print "null" }' "$place/$1"; }
percent() {
    awk -v x="$1" 'BEGIN { if (x == "null" || x == "") print "–"; else printf "%.1f %%", 100 * x }'
}
plain() { awk -v x="$1" 'BEGIN { if (x == "null" || x == "") print "–"; else printf "%.2f", x }'; }
held_out() { # held_out SET COLUMN
    awk -F, -v name="$1" -v column="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $1 == name && column in at { print $(at[column]); found = 1; exit }
    END { if (!found) print "null" }' "$held"
}
# reached VALUE below|above|within GOAL [GOAL2]: yes, no, or a dash for what is not known
reached() {
    awk -v x="$1" -v how="$2" -v goal="$3" -v most="${4:-0}" 'BEGIN {
        if (x == "null" || x == "") print "–"
        else if (how == "below") print (x <= goal ? "yes" : "**no**")
        else if (how == "above") print (x >= goal ? "yes" : "**no**")
        else print (x >= goal && x <= most ? "yes" : "**no**")
    }'
}

# goal WHAT MEASURE GOAL SET IN-SAMPLE HELD-OUT JUDGE...: judged on what was held out, where it is
goal_row() {
    what="$1" measure="$2" wanted="$3" form="$4" inside="$5" outside="$6"
    shift 6
    if [ "$outside" != null ]; then verdict="$(reached "$outside" "$@")"
    else verdict="$(reached "$inside" "$@") (in sample)"; fi
    echo "| $what | $measure | $wanted | $("$form" "$inside") | $("$form" "$outside") | $verdict |"
}
error_goal() { # error_goal WHAT SET median|mean|p90 LIMIT
    goal_row "$1" "$3" "≤ $(awk -v x="$4" 'BEGIN { printf "%g %%", 100 * x }')" percent \
        "$(value "$2" "summary.$3")" "$(held_out "$2" "$3")" below "$4"
}

serving_goal() { # serving_goal WHAT QUANTITY HELD-OUT-SET LIMIT
    goal_row "$1" median "≤ $(awk -v x="$4" 'BEGIN { printf "%g %%", 100 * x }')" percent \
        "$(value inference "summary.by_quantity.$2.median")" "$(held_out "$3" median)" below "$4"
}

# Of a layout's own software with the source left out; the name has a comma of its own.
held_tau() { # held_tau COLUMN
    awk -F, -v column="$1" '/^"own software, source/ { print $column }' data/calibration/held-out-steps.csv
}
goals() {
    echo '| data | measure | goal | in sample | held out | reached |'
    echo '|---|---|---|---:|---:|---|'
    error_goal 'single-node A100 iterations (vTrain)' vtrain-single mean 0.08
    error_goal 'multi-node A100 iterations (vTrain)' vtrain-multi mean 0.08
    error_goal 'pretraining rows of quality A' quality-a median 0.06
    error_goal 'pretraining rows of quality A' quality-a p90 0.18
    goal_row 'sweeps of 8 and more layouts' 'median Kendall tau' '≥ 0.85' plain \
        "$(value training ranking.median_kendall_tau)" "$(held_tau 12)" above 0.85
    goal_row 'the same, pairs measured more than 3.7 % apart' 'median Kendall tau' '≥ 0.85' plain \
        "$(value training ranking.median_kendall_tau_apart)" "$(held_tau 13)" above 0.85
    goal_row 'sweeps of 8 and more layouts' 'mean time lost by our best' '≤ 3 %' percent \
        "$(value training ranking.mean_time_lost)" null below 0.03
    goal_row 'fits or not' 'right verdicts, sources that report both' '≥ 95 %' percent \
        "$(value verdicts verdicts.twins_right)" "$(held_memory verdicts-source 6)" above 0.95
    error_goal 'matmuls, all chips' gemm median 0.08
    error_goal 'attention' attention median 0.12
    error_goal 'collectives' collectives median 0.15
    serving_goal 'serving: time per token' tpot_s inference-configuration-tpot 0.09
    serving_goal 'serving: throughput' token_s inference-configuration-throughput 0.10
    serving_goal 'serving: time to first token' ttft_s inference-configuration-ttft 0.18
    for name in tpot throughput ttft; do
        goal_row "serving, software hidden: $name" median \
            "$(case $name in tpot) echo '≤ 14 %' ;; throughput) echo '≤ 16 %' ;; *) echo '≤ 25 %' ;; esac)" percent \
            null "$(held_out "inference-hidden-software-$name" median)" below \
            "$(case $name in tpot) echo 0.14 ;; throughput) echo 0.16 ;; *) echo 0.25 ;; esac)"
    done
    error_goal 'serving, all rows' inference p90 0.30
    goal_row 'peak training memory' median '≤ 4 %' percent \
        "$(value training memory.median)" "$(held_memory peak-model 3)" below 0.04
    goal_row 'peak training memory' 'worst under-prediction' '≤ 10 %' percent \
        "$(value training memory.worst_under)" "$(held_memory peak-model 5)" below 0.10
    goal_row '80 % intervals, quality A' coverage '75 to 85 %' percent \
        "$(value quality-a summary.coverage)" "$(held_out quality-a coverage)" within 0.75 0.85
    goal_row 'rows measured below the bound' rows 0 plain_count \
        "$(value all summary.below_lower)" null below 0
}
held_memory() { # held_memory SET COLUMN: 3 median, 4 p90, 5 worst_under, 6 right
    awk -F, -v name="$1" -v column="$2" '$1 == name { print $column; found = 1 } END { if (!found) print "null" }' \
        data/calibration/held-out-memory.csv
}
plain_count() { [ "$1" = null ] && echo "–" || echo "$1"; }

# ---- tables ----
sets() {
    echo '| set | rows | median | mean | p90 | bias | in interval | below lower | held out: median | p90 | how held out |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|'
    for name in vtrain-single vtrain-multi quality-a training gemm attention collectives memops inference all; do
        echo "| $name | $(value $name summary.n) | $(percent "$(value $name summary.median)") |" \
            "$(percent "$(value $name summary.mean)") | $(percent "$(value $name summary.p90)") |" \
            "$(percent "$(value $name summary.bias)") | $(percent "$(value $name summary.coverage)") |" \
            "$(value $name summary.below_lower) | $(percent "$(held_out $name median)") |" \
            "$(percent "$(held_out $name p90)") | $(held_out $name how | sed 's/^null$//') |"
    done
}

groups() { # groups SET DIMENSION HEAD
    echo "| $3 | rows | median | mean | p90 | bias | in interval | below lower |"
    echo '|---|---:|---:|---:|---:|---:|---:|---:|'
    awk -v prefix="by.$2." '
    function percent(x) { return x == "null" || x == "" ? "–" : sprintf("%.1f %%", 100 * x) }
    function show() {
        if (name == "") return
        printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", name, f["n"], percent(f["median"]), \
            percent(f["mean"]), percent(f["p90"]), percent(f["bias"]), percent(f["coverage"]), f["below_lower"]
    }
    index($1, prefix) == 1 && $1 !~ /\.count$/ {
        field = $1
        sub(/^.*\./, "", field)
        text = substr($0, length($1) + 2)
        if (field == "name") { show(); name = substr(text, 2, length(text) - 2); gsub(/\|/, "\\|", name) }
        else f[field] = text
    }
    END { show() }' "$place/$1"
}

apart() {
    echo '| rows | kept apart because |'
    echo '|---:|---|'
    awk '/^kept_apart\.[0-9]+\./ {
        text = substr($0, length($1) + 2)
        if ($1 ~ /because$/) why = substr(text, 2, length(text) - 2)
        else print "| " text " | " why " |"
    }' "$place/all"
}

layouts() {
    echo '| model | chips | sequence | layouts | Kendall tau | time lost |'
    echo '|---|---|---:|---:|---:|---:|'
    awk '/^layouts\.[0-9]+\./ {
        field = $1
        sub(/^.*\./, "", field)
        f[field] = substr($0, length($1) + 2)
        if (field == "time_lost")
            printf "| %s | %s x %s | %s | %s | %s | %.1f %% |\n", substr(f["model"], 2, length(f["model"]) - 2), \
                f["chips"], substr(f["chip"], 2, length(f["chip"]) - 2), f["seq"], f["layouts"], \
                f["kendall_tau"] == "null" ? "–" : sprintf("%.2f", f["kendall_tau"]), 100 * f["time_lost"]
    }' "$place/training"
}

memory() {
    echo '| source | rows | median | p90 | bias | worst under-prediction |'
    echo '|---|---:|---:|---:|---:|---:|'
    echo "| all | $(value training memory.n) | $(percent "$(value training memory.median)") |" \
        "$(percent "$(value training memory.p90)") | $(percent "$(value training memory.bias)") |" \
        "$(percent "$(value training memory.worst_under)") |"
    awk '/^memory\.by_source\.[0-9]+\./ {
        field = $1
        sub(/^.*\./, "", field)
        f[field] = substr($0, length($1) + 2)
        if (field == "worst_under")
            printf "| %s | %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", substr(f["source"], 2, length(f["source"]) - 2), \
                f["n"], 100 * f["median"], 100 * f["p90"], 100 * f["bias"], 100 * f["worst_under"]
    }' "$place/training"
}

room() { # what engines print of the cache, and what is said of it
    echo '| rows | n | median | p90 | bias | within 10 % | most too small |'
    echo '|---|---:|---:|---:|---:|---:|---:|'
    for set_name in room room-new; do
        text='facts of the engines taken from these'
        [ $set_name = room ] || text='kept apart, by source'
        echo "| $text | $(value $set_name kv_room.n) | $(percent "$(value $set_name kv_room.median)") |" \
            "$(percent "$(value $set_name kv_room.p90)") | $(percent "$(value $set_name kv_room.bias)") |" \
            "$(percent "$(value $set_name kv_room.within_a_tenth)") | $(percent "$(value $set_name kv_room.worst_under)") |"
    done
}

new_rows() { # of training_new.csv, which no fit has seen
    printf '\nRows that came after the fit (`training_new.csv`), with the constants as they ship. Plans and facts of code bases were corrected after\n'
    printf 'the first predictions of torchtitan and Automodel (15.4 %% in the median), from what their code does; the constants were not. Those of\n'
    printf 'MLPerf 5.0 and 4.1 (405B and GPT-3 on 64 to 8192 GPUs) and of Marin (Levanter, of which no fit has a row) were predicted once: 4.3,\n'
    printf '10.5 and 10.6 %% by default, 3.5, 5.9 and 10.6 %% with their software. So were torchtitan in June 2025 (8B and 70B, tensor parallelism vanilla\n'
    printf 'and asynchronous: bf16 and tensorwise fp8 -13 to +8 %% by default, rowwise fp8, a path that its authors call slow, -29 to -36 %%) and MLPerf 6.0:\n'
    printf '405B in FP4 on 2048 GB300 +1.3 %%; DeepSeek-V3 in MXFP8 with real routing on 256 and 512 GB300 +5.7 and +3.6 %%, on 512, 2048, 4096 and 8192 GB200\n'
    printf '+16, 0, -10 and -27 %%, with its software +1.9 and -0.1 %%, -19, -30, -36 and -47 %%. Then: MLPerf 5.1 (8B and 405B on 8 to 512 B200 and GB200) 4.6 %%\n'
    printf 'in the median by default, one recipe of Qwen3 235B on 256 H100 in five layouts 9.3 %%, KempnerForge (7B to 70B on 1 to 32 H200, a code base unknown here)\n'
    printf '10.6 %%, and its peaks of memory 57 %% under. Since then its code was read: peaks are 5 %% off, times 14 %%, too quick with tensor parallelism (queries,\n'
    printf 'keys, values, gate and up each gather their input there).\n'
    printf 'DeepSeek-V3 of MLPerf 6.0 takes 158 ms a microbatch on GB300, as Megatron-Bridge does in sample, and 121 on GB200, and beside that 0.9 and 1.5 to 1.9 s a\n'
    printf 'step whatever the number of microbatches, where Megatron-Bridge takes 0.2: an evaluation precedes each of these steps. That is not priced.\n'
    printf 'Then 44 rows of four sources: Lambda (torchtitan: GPT-OSS and Qwen3 30B on 8 B200 and 64 GB300), recipes on TPU7x (MaxText: Llama 3.1 70B, DeepSeek-V3, GPT-OSS) and\n'
    printf 'on GPUs (NeMo, MaxText), NeMo 24.12. Predicted once they were 12.1 %% off by default and 12.5 with their software (66 %% in the interval): 17 of dense models 3.7 and 3.9 %%,\n'
    printf '27 of mixtures of experts 16.9, all too quick, and ten that ran were refused for memory. What they shared was then read: torch._grouped_mm, of which a row of the fit\n'
    printf 'says what it loses beside Transformer Engine, and a loss by eighths. Since then they are 6.5 and 5.9 %% off (the mixtures 10.4), 84 %% in the interval, and all of them fit. What is left: four steps of\n'
    printf 'PyTorch without its compiler (-29 to -54 %%), DeepSeek-V3 on TPU7x (-14 %% in bf16, -21 in fp8; Llama and GPT-OSS there are 1 to 6 %% off) and Qwen3 30B (-13 %%).\n'
    printf 'Last, 44 rows that people printed beside their work, tuned by nobody for such a table: pull requests, issues and pages of torchao, torchtitan, NousResearch, swiss-ai,\n'
    printf 'torchprime, Primus and Marin. Predicted once, and nothing was changed for them: **25.4 %% off by default, 24.3 with their software, 52 %% at the 90th percentile, 27 and 32 %% in the\n'
    printf 'interval**, nearly all too quick. Llama 3 8B in bf16 on 8 H100 -4 %% with its software (-15 by default), Marin on TPU v5p 6, NousResearch on 8 to 128 B200 12; GH200 -22 to -25\n'
    printf '(a model of 0.6B -74), PyTorch/XLA on v6e -13 to -29, eager PyTorch -20 to -30, rowwise fp8 -20, 8 MI300X (no training row has one) -40 to -53, B200 of a limited\n'
    printf 'power -38 to -63; mixtures on MI355X and 8 B200 +34 to +45. The figures above are of vendors and of papers, who show what their best plans reach.\n'
    printf 'Put into the fit, these rows made others worse and hardly helped one another ([0028](decisions/0028-facts-of-a-kernel-and-of-overlap.md)); they teach the intervals, and those of MI300X and GH200\n'
    printf 'the constants of these chips, of which they are no test any more.\n'
    printf 'Then 34 rows more, predicted once: IBM%ss FSDP on A100 and H100, Transformer Engine on MI300X, H100 and H200 (issues of its ROCm port), verification runs of Megatron-Bridge, nanochat, torchtitan:\n' "'"
    printf '**31.1 %% off by default, 26.5 with their software, 68 %% at the 90th percentile, 35 and 29 %% in the interval.** Qwen3 8B on 16 H100 -1, Qwen3 30B -2, mixtures in 8 bits +5 and +56, GPT-OSS 120B -61, models of sparse\n'
    printf 'attention (GLM-5.2, DeepSeek-V4-Flash) -65 to -82. IBM%ss were 22 %% too slow: its code reduces gradients in 16 bits, as the plans say now (-11 to +24).\n' "'"
    printf 'At last 17 rows of what no row before was of, hybrids of Mamba and attention and tuned sparse attention, whose models the catalogue has by now: predicted once **10.9 %% off by default, 6.5 with their\n'
    printf 'software, 19 %% at the 90th percentile, 88 and 94 %% in the interval**. Nemotron-H 56B in fp8 on 32 to 2048 H100 -8 to -12 (-3 to -8 with its software), GPT-OSS 120B in MXFP8 on GB200 and GB300 +2 to +5 (0 to\n'
    printf '+2), Nemotron 3 Nano in MXFP8 on three Blackwells -14 to -17 (-16 to -21), three of AutoModel on H100 +10, +14 and -22 (+12, +13, -18), DeepSeek-V4-Flash +9 on GB200 and -22 on GB300 (-1 and -25), of which its\n'
    printf 'predicting step, not priced, is 6. So tuned sparse attention is not what misses: of GLM-5.2 the card of its run says that nothing was tuned and timings are sanity checks (deterministic kernels, routing as it\n'
    printf 'comes from 100 steps of training), and GPT-OSS 120B, run so, takes 3 times as long as NVIDIA%ss own figure on the same chips. Nemotron 3 Super and Ultra (-17 to -45) stay apart: their two predicting steps are not modelled.\n' "'"
    printf 'Then 20 rows of Qwen3 mixtures: 13 on H800 (Megatron as XTuner and others ran it; no fit has a row of the chip) and seven of NVIDIA%ss recipes measured anew in July 2026. Predicted once **19.4 %% off, 55 %% in the interval**: the former\n' "'"
    printf 'at -15 to -53 %% with a rank of layouts that was worse than none (tau -0.11), the latter +19.5 to -18, 1.9 %% in the median. The constants of H800 were estimates of before the first fit (a launch in 3 us, where H100 needs 83); with those of H100,\n'
    printf 'whose silicon it is, the 20 are 12.1 %% off, all 13 of H800 -38 to +9. What is left there: pipelines of eight stages in one chunk (-30 and -35 %%), experts over four nodes without DeepEP (-38), tensor=4 (-24); the ranks stay wrong (tau 0.06).\n'
    printf 'Since then a copy of a token goes to each of its experts where Megatron%ss own all-to-alls send them (`copies_each`): one layout with and without DeepEP was -15 and -38 %% off, and is -15 twice. The 20 are 14.5 %% off now (12.1), at the 90th\n' "'"
    printf 'percentile 20.9 (30.9), H800 -30 to +21, tau 0.16: steps inside a node were slow enough before.\n'
    printf 'Then 15 rows: GPT-3 5B under NeMo 22.08 on 8 to 256 A100 (six) and the first grid of nanotron, a model of 1B on 8 H100 in nine layouts. Predicted once, the former were -0.1 to -4.9 and +4.5 %% off by default\n'
    printf '(with the constants of Megatron-LM of that time, which they had then, -2 to -10), the latter **34.9 %% by default and 17.9 with their software, 44 %% in the interval, tau 0.33**: +18 and -17 to -10 %% without pipelines, -6 and +1 with two\n'
    printf 'stages, -32 to -52 with four and eight. What misses is the head, whatever the layout: a stage that holds it alone takes 111 ms for 16,384 tokens, of which its products would be 17. Its 50,257 words are no multiple of 8, nor are any rank%ss share of them,\n' "'"
    printf 'and such products have no rows that matrix units can load whole; since then it is, by what Netflix measured of another head, a third of the rate (mean error 25.5 -> 21.7 %% with their software, seven of nine nearer, tensor=8 +14 -> +19). Their peaks (9.5 %% off in the median, -22 %% with tensor=8) said nothing new: until July 2024 nanotron kept gathered inputs, as its code says (3.3 %% now, and no test any more).\n'
    printf 'At last 18 rows that AWS measured over EFA: Megatron-Bridge of June 2026 with all-to-alls of NCCL and no CUDA graphs (Qwen3 235B on 32 B300, Qwen3 30B on 64 H100, DeepSeek-V3 and Kimi-K2 on 256 B300), and Qwen3 8B on\n'
    printf '16 H200 and 16 B300. Predicted once, **the dense ones were -5.9 and -2.8 %% off with their software, the mixtures -30 to -57** (two +6 and +14): a layer takes the host 15 to 23 ms at microbatches of 1, of which 7 are priced. What DeepEP\n'
    printf 'took over EFA, from half as long to three times, is of that network and left out. Then releases 26.02 to 26.04 of Megatron-Bridge were read: where they name the all-to-all dispatcher, or their container lacks DeepEP, seven rows of the fit have its\n'
    printf 'code base now, and 21 of 26.06 and later one of full CUDA graphs. Fitted so, Qwen3 30B on H100 is -2 to -9 %% off where it was -42 to -56, the mixtures on B300 -2 to -61, and XTuner on H800 28 %% too slow (5 too quick before).\n\n'
    echo '| constants | rows | median | 90th percentile | bias | in the interval | peaks: rows | median | bias |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|'
    echo "| own software | $(value new summary.n) | $(percent "$(value new summary.median)") | $(percent "$(value new summary.p90)") |" \
        "$(percent "$(value new summary.bias)") | $(percent "$(value new summary.coverage)") | $(value new memory.n) |" \
        "$(percent "$(value new memory.median)") | $(percent "$(value new memory.bias)") |"
    echo "| default | $(value new-default summary.n) | $(percent "$(value new-default summary.median)") | $(percent "$(value new-default summary.p90)") |" \
        "$(percent "$(value new-default summary.bias)") | $(percent "$(value new-default summary.coverage)") | – | – | – |"
    "$asked" "$truth/training_new.csv" | awk '{ printf "| of the framework that runs it best | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% | – | – | – |\n", $1, 100 * $2, 100 * $3, 100 * $4, 100 * $5 }'
    printf '\nThe last line is what `train` prints of a plan where neither --framework nor --software is given: the frameworks that can run it are asked one\n'
    printf 'by one, each by constants of its own where the chip has them, and the one whose interval ends first is believed.\n'
    printf '\nBy source, default constants:\n\n'
    groups new-default source source
}

tuned_rows() { # of training_tuned.csv
    printf '\nFine-tuning under the trainers that TRL, Axolotl and LLaMA-Factory run on (`training_tuned.csv`: A100 alone), of which no fit has a row. Predicted once, by the chip%ss usual\n' "'"
    printf 'constants and Megatron-Core%ss memory: TRL 6.0 %% off in the median (94 %% in the interval), Accelerate 3.0, Qwen%ss table 17.8 (52 %%), peaks 16 and 19 %%, of adapters 25 to 45 %% under. Constants of\n' "'" "'"
    printf 'another software in their place (llm-foundry 10.4 %%, DeepSpeed 47.5, torchtitan 6.2, InternEvo 9.3, Megatron-DeepSpeed 6.7 of TRL; 20.4, 40.9, 19.8, 19.3 and 17.2 of Qwen%ss table) were no better on both, so that\n' "'"
    printf 'the usual ones stay, beside what the code of Transformers is now known to do (`data/codebases`). What misses: sequences of 256 and 512 tokens, where the host is quicker (adapters +30 to +105 %%) or, under\n'
    printf 'DeepSpeed, slower (-30 to -50 %%) than the usual one; PowerLM 3B with adapters over two GPUs (-20 to -38 %%).\n'
    printf 'Peaks were 10.3 %% off, adapters under FSDP %s under with a chunked loss. They said what is priced since: an update makes one array as large as a moment beside them (full fine-tuning peaks there,\n' '25 to 43 %'
    printf 'whatever the microbatch: 37 steps within 9 %%, most within 1), FSDP has no 16-bit shards beside the fp32 ones, and frozen layers hold what entered them and its gradient to the end of a step (adapters with a chunked\n'
    printf 'loss 7 to 19 %% under now). IBM%ss fused kernels are a code base of their own, of which the loss was read. In sample, therefore; Qwen%ss table, which taught none of it, is still 2 to 26 %% under.\n\n' "'" "'"
    groups tuned source source
    printf '\nPeaks: %s rows, median %s, 90th percentile %s, bias %s.\n' "$(value tuned memory.n)" "$(percent "$(value tuned memory.median)")" \
        "$(percent "$(value tuned memory.p90)")" "$(percent "$(value tuned memory.bias)")"
}

new_served() { # of inference_new.csv, which no fit has seen
    printf '\nRows of serving that came after the fit (`inference_new.csv`: engines as somebody else launched them, mostly models, versions and\n'
    printf 'loads that no fit has), with the constants as they ship. Half of them send all requests at once or lengths of chats,\n'
    printf 'which end before any steady state; of closed loops of five rounds and more (170) the medians are 24, 23 and 38 %%. Predicted once they were\n'
    printf '43.0, 25.5 and 51.5 %% off; then what engines take by default on a chip was read from their sources, and what rows of DeepSeek-V4 and GLM-5.2\n'
    printf 'had left out of their launches (limits of all ranks, lengths that are alike, the share of memory), and\n'
    printf 'that launches of gpustack leave it at its default (time per token 30.9 to 32.0 %%, first tokens 43.6 to 41.1 %%).\n'
    printf 'Rows of MI300X among them told what weights scaled in blocks cost there ([0030](decisions/0030-scales-of-blocks.md)), and are no test of that any more. gpustack%ss\n' "'"
    printf 'runs of vLLM 0.10 and 0.11 with all prompts at once begin 1 to 17 s late, which nothing here prices: with answers of 4 tokens the mean\n'
    printf 'first token comes at 0.63 to 0.83 of the whole time, where one after the other makes it half (other engines: 0.54 to 0.58).\n\n'
    echo '| software | time per token: rows | median | bias | in the interval | throughput: rows | median | bias | in the interval | first token: rows | median | bias | in the interval |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
    for set_name in served-new served-new-hidden; do
        printf '| %s |' "$([ $set_name = served-new ] && echo known || echo hidden)"
        for quantity in tpot_s token_s ttft_s; do
            at="summary.by_quantity.$quantity"
            printf ' %s |' "$(value $set_name $at.n)"
            for field in median bias coverage; do printf ' %s |' "$(percent "$(value $set_name $at.$field)")"; done
        done
        echo
    done
    printf '\nBy source, time per token or what there is in its place:\n\n'
    groups served-new source source
}

held_memory_table() {
    echo '| left out | peaks | median | p90 | worst under-prediction | fits or not: rows | right |'
    echo '|---|---:|---:|---:|---:|---:|---:|'
    for name in own source model hidden; do
        case $name in
        own) text='nothing: in sample' ;;
        source) text='the source: the allocator is that of the other code bases' ;;
        model) text='the model: reserved bytes by the others; verdicts: fragmentation by other models and lengths' ;;
        *) text='the software: all as Megatron-Core' ;;
        esac
        echo "| $text | $(held_memory peak-$name 2) | $(percent "$(held_memory peak-$name 3)") |" \
            "$(percent "$(held_memory peak-$name 4)") | $(percent "$(held_memory peak-$name 5)") |" \
            "$(held_memory verdicts-$name 2) | $(percent "$(held_memory verdicts-$name 6)") |"
    done
}

served() { # of held-out-serving.csv: what rows of serving state, by what had no part in the fit
    echo '| left out of the fit | software | time per token | p90 | in the interval | throughput | p90 | in the interval | first token | p90 | in the interval |'
    echo '|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
    for known in known hidden; do
        while read -r name text; do
            printf '| %s | %s |' "$text" "$known"
            for quantity in tpot throughput ttft; do
                set_name="inference-$([ $known = known ] || echo hidden-)$name-$quantity"
                for field in median p90 coverage; do
                    printf ' %s |' "$(percent "$(held_out "$set_name" $field)")"
                done
            done
            echo
        done <<'END'
in_sample nothing
configuration the configuration
layout the layout, of every software and length
model the model, on every chip
chip the chip
software the software
source the source
experts the chip's models with experts, or without
size the chip's models within a factor of 8 of its size
END
    done
}

below() {
    awk '/^below_lower\.[0-9]+\.(id|file|measured|lower|error) / || /^below_lower\.[0-9]+\.(id|file|measured|lower|error)$/ {
        field = $1
        sub(/^.*\./, "", field)
        f[field] = substr($0, length($1) + 2)
        gsub(/"/, "", f[field])
        sub(/^.*\//, "", f["file"])
        if (field == "error") { n[f["file"]]++; if (f["lower"] / f["measured"] > worst[f["file"]]) worst[f["file"]] = f["lower"] / f["measured"] }
    }
    END {
        for (file in n) printf "| %s | %d | %.2f |\n", file, n[file], worst[file]
    }' "$place/all" | sort >"$place/below"
    if [ ! -s "$place/below" ]; then echo 'None.' && return; fi
    echo '| file | rows | the bound over the measurement, at most |'
    echo '|---|---:|---:|'
    cat "$place/below"
}

calibrations() {
    echo '| chip | software | what the constants come from |'
    echo '|---|---|---|'
    cat data/calibration/*.txt | awk '
    function show() { if (chip != "") printf "| %s | %s | %s |\n", chip, software, source }
    /^\[/ { show(); gsub(/[][]/, ""); chip = $1; software = $2; source = ""; on = 0; next }
    /^source *=/ { sub(/^source *= */, ""); source = $0; on = 1; next }
    on && /^[ \t]/ { sub(/^[ \t]+/, ""); source = source " " $0; next }
    { on = 0 }
    END { show() }' | sed 's/\([^ ]\)|\([^ ]\)/\1\\|\2/g'
}

steps_table() { # of held-out-steps.csv, whose last line is of all rows
    echo '| constants | rows | median | over cells | 90th percentile | in the interval | within | beyond | experts: median | in the interval |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
    awk -F, 'function p(x) { return x == "nan" ? "–" : sprintf("%.1f %%", 100 * x) }
    NR > 1 && /^"/ {
        gsub(/"/, "")
        printf "| %s,%s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, p($4), p($5), p($6), p($7), p($8), p($9), p($10), p($14)
    }' data/calibration/held-out-steps.csv
}

# ---- the page ----
page() {
    cat <<'END'
# Accuracy

Predictions against public measurements, as `make validate` finds them. This page is written by `scripts/accuracy.sh`;
`scalemodel validate` gives the same figures for any file, and `--explain` why a row is predicted so.

![Predicted against measured time of every row](accuracy.svg)

## Method

- The error of a row is expected / measured - 1, of seconds. Median, mean and 90th percentile are of its absolute value;
  the bias is the median with its sign: negative where predictions are too fast.
- Step times are compared, never printed utilisations: sources count FLOPs in ways that differ by a third.
- "In the interval": the share of measurements inside the 80 % interval of their prediction.
- "Below lower": measured faster than the bound from datasheet rates alone, which no honest measurement can be.
- The statistics leave out rows that repeat another, fine-tuning, rows that ran out of memory (they are verdicts), and
  rows whose source does not state a fact that the time depends on. These are counted below; none is guessed.
- In sample: all rows, with the constants that ship, which were fitted to these rows. Held out, from
  `data/calibration/held-out.csv`, `held-out-steps.csv` and `held-out-serving.csv` as `make held-out` writes them: the one fit of all training rows
  (`docs/calibration-file.md`) is done again without a source, or without a tenth of the models (widths within a source), and
  predicts those; of operations, chip by chip, all sources but one. A dash: no such figure is known, and the verdict then
  rests on the rows of the fit. Rows of serving: the constants that ship are judged, so that the same constants give the same figures each
  time. A configuration (source, chip, software, model, layout and lengths) is left out with a twelfth of the others, by the step that the rows
  that stay would take from there, less the step that all rows would take: on prices with edges and jumps no fit makes that one nothing.
- Honest sources differ by 10 to 20 % for one kernel on one chip. One training configuration varies by 3.7 % in the
  median, 8.8 % at the 90th percentile, between releases of one software (Megatron-Bridge 25.09 to 26.08).

## Training: what you get

END
    steps_table
    cat <<'END'

- The first line is what `train` answers with `--software default`, about a code base that the fit has never seen; the second
  is the row's own software, as known from its other sources and chips. Over cells: each source on each chip once.
- Within and beyond: rows within the sizes that the other sources have of the chip, and rows beyond them in chips, sequence,
  width, depth or experts. Both have the same interval, which holds as many of the rows beyond as of those within (1.3 times as wide until strangers taught it);
  1.2 times as wide on the logarithm where `train` chooses among frameworks.
- Either line prices a row with what its code base is known to do (`data/codebases`: what runs beside what, tiles, masks) and with its plan, the kernel
  of attention too; the constants alone differ. Intervals are learned from rows of quality A and B, and from those that came after the fit, of dense
  models and of mixtures of experts apart (0.91 to 1.41 and 0.88 to 1.53 of what is expected, by default). They leave out 14 % of the steps below and 6 above: between equal tails lay 89 % of
  quality A, which is vendors and papers, and 73 % of what came after the fit, whose steps take longer than told, some of them half as long again.
END
    awk -F, 'function p(x) { return sprintf("%.1f %%", 100 * x) }
    /^all large/ { printf "- Intervals of all rows of quality A and B, each with its source left out, and of those that came after the fit: by default %s are inside (%s within, %s beyond), with their software %s (%s, %s).\n", p($4), p($5), p($6), p($7), p($8), p($9) }' \
        data/calibration/held-out-steps.csv
    cat <<'END'
- Rows of quality A; Megatron-Bridge is one source of all its releases and chips.
- Three rows of one's own: each code base with six rows on a chip, first as the fit without its source predicts it, then with one factor
  more, the median of what three other rows of it are off by, drawn once for each row and believed as far as code bases differ more than
  rows of one do (three quarters). Rows of the same models help: `scalemodel calibrate rows.csv --chip CHIP --software mine`.
  Rows of other models alone do not: what a code base is off by changes from model to model as much as from one code base to another, so
  measure the model that is asked about.
- Rows that came after the fit and that nothing was fitted to: the last lines of this section.
- The peer: one FLOP/s for a chip in 16 bits and one in fewer, the median of what all other sources reach on it: what a rule such as "40 %
  MFU" is worth on these rows.
END
    new_rows
    tuned_rows
    printf '\n## Goals\n\n'
    goals
    cat <<'END'

Where training falls short, and why:

- The tail of quality A, with the source left out, is 8-bit steps on TPU v7 (-17 to -28 %: no other source has any on a TPU), Llama 4 Maverick on
  TPU v5p (-26 %), torchtitan's ring attention of December 2024 over 4 and 8 ranks of one node (-28 and -30 %), GPT-OSS (heads of 64 and a width of 2880),
  DeepSpeed's ZeRO-3 of 2021, Qwen3 30B, and code bases with fewer than ten rows on a chip.
- Layouts: a layout measured several times counts once, at the geometric mean. Of those measured more than 3.7 % apart (what two
  releases of one software differ by) `validate` gives the figure too: three quarters of the pairs that are ordered wrongly there are vTrain's, whose
  steps on 256 and 512 GPUs jump by a third between microbatches of 2, 3 and 4, a fifth Hagemann et al.'s, whose runs of one layout differ by 5 to 10 %.
  What noise leaves to be had: the same sweeps ranked against themselves with 2.6 % of noise on each layout (50 draws, normal) have a median tau of 0.87,
  with 3.7 % one of 0.82. The sweeps furthest below that are BLOOM's of eight layouts (0.5: microbatch 1 takes 43 % longer than 2, at its second iteration) and
  vTrain's on 512 and 256 GPUs (0.54 and 0.62).
  InternEvo's groups of the optimizer are a plan key (`state_copies`); its broadcasts among 1024 ranks still take 1.5 s longer than priced.
  A sweep is of one model with one number of heads: BLOOM's tries 64, 96 and 128 under one name, and heads of 108 take 40 % longer.
  vTrain's multi-node rows of tensor degree 2 take up to 37 % longer than those of 1 and 4 let expect.
- ZeRO-3 of 2021 (Narayanan et al., table 2) is +8 % at 640 GPUs, -20 % at 1,120 and -57 % at 2,240, in sample: NCCL's gathers were then rings over
  all ranks, whose latency grows with them (2,239 steps of some 12 us for each weight would be what is missing); gathers are priced as hierarchical.
- Small models that the host cannot feed: Megatron-LM's functional tests (`training_ci.csv`, 168 rows, of which a sixth is in the fit, and in the
  set of all rows alone) are off by 15 % in the median with their own constants, by 41 % (too quick; 44 before collectives were launched by the host too) with the default ones, whose software is anyone's, by 22 on H100, 35 on GB200 and 59 on A100:
  what a host needs for an operation differs between code bases by a factor of ten.
- Peaks: with the source left out nanotron's are up to 18.5 % under, whose allocator holds up to 38 % of the activations again, and those of BLOOM's cards, where
  context and communicators are 4 GB (18.2 %); torchtitan's pipelines are 11 to 26 % under (what is reserved on the last stage), which no row of the fit shows.
- vTrain: residuals follow the shape of matmuls and the size of all-reduces (tensor 2, 8 MB: -15 % and +14 % at two
  widths): tiles of kernels and thresholds of protocols that fourteen constants do not hold.
END
    printf '\n## Sets\n\n'
    sets
    printf '\n## Pretraining rows of quality A\n\nBy source:\n\n'
    groups quality-a source source
    printf '\nBy chip:\n\n'
    groups quality-a chip chip
    printf '\nBy parallelism:\n\n'
    groups quality-a parallelism parallelism
    printf '\nBy precision:\n\n'
    groups quality-a precision precision
    printf '\n## Single operations by chip\n'
    for name in gemm attention collectives memops; do
        printf '\n### %s\n\n' "$name"
        groups "$name" chip chip
    done
    printf '\n## Layouts\n\nSweeps of one model on one machine in one source, sequence length and precision, ranked by time a sequence.\n'
    printf 'Time lost: how much slower than the best measured layout the one is that we think best.\n\n'
    layouts
    cat <<'END'

## Serving

What `serve` prints for a benchmark, by the same functions: `serve MODEL --on SYSTEM --plan PLAN --concurrency N --software NAME`, or a
static batch, a rate, a queue. Hidden: the engine and the constants that `serve` takes without `--software`, the chip's usual ones.
Intervals of rows left out are those that `serve` would print with neither rows nor constants of what is left out. One software and
configuration measured again differs by 4.7 % in the time per token and 9.5 % in the first token; the time to the first token follows
from how a benchmark begins and what the scheduler does with the opening burst more than from the prefill.

END
    served
    new_served
    printf '\n## Fits or not\n\n'
    echo '| reported | said not to fit | said to fit |'
    echo '|---|---:|---:|'
    echo "| ran out of memory | $(value verdicts verdicts.out_of_memory_refused) | $(value verdicts verdicts.out_of_memory_passed) |"
    echo "| ran | $(value verdicts verdicts.ran_refused) | $(value verdicts verdicts.ran_passed) |"
    echo "| of them, from sources that report both | $(value verdicts verdicts.twins_refused) | $(value verdicts verdicts.twins_passed) |"
    printf '\n## Peak memory\n\n'
    memory
    printf '\nWithout what was fitted to it:\n\n'
    held_memory_table
    cat <<'END'

What a code base keeps (logits, copies, norms' inputs) is read from its code. What its allocator reserves was fitted to peaks and to runs
that ran out of memory; it is left out here by `scripts/held-out-memory.py`: taken from the other code bases (no row of the source had a
part), or fitted to the other models of the same one. Hidden: nothing is known of the software, as where `train` has no `--software`.
END
    printf '\n## Room of the cache\n\n'
    room
    cat <<'END'

Tokens of KV cache as `serve` and `simulate` have them against what vLLM 0.2 to 0.22, SGLang and TensorRT-LLM print when they start, with the options of the
launch as they are stated (`kv_room.csv`, `kv_room_new.csv`). The worst of those kept apart: vLLM of December 2023 kept 13 GiB of each of four A100 for
communication (+48 %); prompts that are not chunked and run kernel by kernel (+12 %); vision towers and what they profile are not modelled (+9 %); weights in int4 whose
attention is in 16 bits (+8 %). vLLM pads groups of local layers, which is not modelled either (gemma-3-27b, +21 %).
END
    printf '\n## Below the bound\n\n'
    below
    printf '\n## Kept apart\n\n'
    apart
    cat <<'END'

## What was fitted on what

At most fourteen constants a chip and software generation, each with a meaning; `scalemodel chip NAME --calibration`
prints them.

END
    calibrations
    cat <<'END'

## The same rows, predicted by others

| tool | data | its error | where stated |
|---|---|---|---|
| Calculon | step times of Korthikanti et al. (MLSys 2023), table 5: 8 points | 3.65 % mean, 8.87 % at most | Isaev et al., "Calculon: a methodology and tool for high-level codesign of systems and large language models", SC 2023, and its own validation run again |
| Calculon | memory of the same: parameters and optimizer; activations | 8.49 % mean; 2.08 % mean, 8.74 % at most | the same |
| Calculon | 1,440 single-node A100 iterations (vTrain) | 39 % mean | a run of the tool on these rows, not a publication of its authors |
| Calculon | 109 multi-node A100 iterations, 64 to 512 GPUs (vTrain) | 15 % mean | the same |
| vTrain | its 1,440 single-node iterations | about 8.4 % mean | Bang et al., "vTrain: a simulation framework for evaluating cost-effective and compute-optimal large language model training", MICRO 2024; not re-read |
| vTrain | its 109 multi-node iterations | about 14.7 % mean | the same |
| SimuMax | its 43 B200 steps | -13.5 to +0.1 % | SimuMax release v1.2 (MooreThreads/SimuMax), with kernel efficiencies measured on the same machine |
| SimuMax | peak memory of the same | -1.4 to -0.1 % | the same |
| llm-analysis | GPU hours of published runs | -5.6 to +9.5 % | its documentation (cli99/llm-analysis) |
| Primus projection | four runs on AMD GPUs | -9.2 to +7.2 % | AMD Primus documentation |
| AIConfigurator 0.12 | closed loops of serving on NVIDIA chips, without drafts: 634 rows, of which it refuses 39 | time per token 11.0 %, first token 48.9 %, throughput (139 rows) 13.3 %, medians | `scripts/against-aiconfigurator.py`, which asked it for an engine that is kept full; its answers are in `tests/reference/aiconfigurator.csv` |

vTrain profiles the GPU it predicts; SimuMax measures its kernels. Ours on the same rows: vTrain single-node
END
    echo "$(percent "$(value vtrain-single summary.mean)") mean of $(value vtrain-single summary.n) rows, multi-node $(percent "$(value vtrain-multi summary.mean)") mean of $(value vtrain-multi summary.n)" \
        "(in sample; held out: $(percent "$(held_out vtrain-single mean)") and $(percent "$(held_out vtrain-multi mean)"))."
    "$program" validate --json data/truth/inference.csv >"$place/serving.json"
    echo
    echo "AIConfigurator measures the kernels of each engine on each chip and fits nothing to whole engines. The same rows here, in sample:"
    python3 scripts/against-aiconfigurator.py compare tests/reference/aiconfigurator.csv "$place/serving.json" |
        sed -n 's/, AIConfigurator.*scalemodel in sample / /; s/^\([a-z ]*: \)/- \1/p'
    cat <<'END'

With the configuration of a row left out of the fit they are 7.4, 18.4 and 10.0 % off (time per token, first token, throughput), with all of its source left
out 12.1, 25.6 and 19.2 %: nearly all are of two sources, AIConfigurator's own samples and InferenceX. So who asks about an engine that no one here has measured
gets times per token as good from either, better throughputs from measured kernels, and about one that was measured the better from here; a first token is more than a lone prefill.
Of the 139 throughputs 32 are of B300 under SGLang (in sample 10.7 % off here, 10.8 % there; 22.8 % while 0.5.10 of April 2026 and 0.5.12 of May shared constants).

BLIS's authors ran vLLM 0.15.1 on H100 at constant rates of 1 to 20 requests a second, ten models from 7B to 141B, and asked six simulators about
it (inference-sim/sim-to-real-accuracy-validation). `scripts/against-blis.py` asks `simulate` the same, percentiles too; below, each simulator's median
error in percent / that of scalemodel on the same runs. Asked once before any constant had seen these runs, it was 4.0, 4.2 and 9.3 % off
in whole requests (mean, p90, p99) and 19.2, 17.5 and 25.1 % in first tokens. What they showed (an engine that schedules a step ahead
takes a request up a step later, and has less else to do before it) is priced since, and they are rows of the fit now
([0035](decisions/0035-cached-runs-are-rows-of-the-fit.md)): the figures are in sample, as those of BLIS are. Left out are
their loads whose rate is not published (A100 and L40S all), and one that no engine could keep up with.
BLIS was fitted to 13 of them (an earlier fit is what was published of those); AIConfigurator and LLM-Optimizer know of no cached prompts, which these are.

END
    python3 scripts/against-blis.py "$program" tests/reference/blis.csv data/truth/inference.csv
}
page >"$place/page"
mkdir -p "$out"
cp "$place/page" "$out/accuracy.md"

line() { # line SET NAME PATH: what a machine reads
    echo "validate: $2 n=$(value "$1" "$3.n") median=$(short "$(value "$1" "$3.median")") p90=$(short "$(value "$1" "$3.p90")")"
}
short() { awk -v x="$1" 'BEGIN { if (x == "null") print x; else printf "%.4f", x }'; }
for name in vtrain-single vtrain-multi quality-a training gemm attention collectives memops; do
    line "$name" "$name" summary
done
line training memory memory

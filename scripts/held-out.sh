#!/bin/sh
# Errors on rows that had no part in the fit: data/calibration/held-out.csv, from `calibrate` alone.
# usage: scripts/held-out.sh            SCALEMODEL=build/scalemodel
#        WRITE=1 scripts/held-out.sh    the training calibrations are written anew too
#
# Training steps: every chip and software of data/calibration/training-*.txt is fitted from the
# constants of single operations; in turn the models of one width (of one width only: the layouts)
# are predicted by a fit to the others. Operations: chip by chip, in turn each source (of one source
# only: shapes to the octave) is predicted by a fit to the others, from the shipped constants.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
program="${SCALEMODEL:-build/scalemodel}"
truth=data/truth
calibrations=data/calibration
write="${WRITE:-}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
mkdir "$place/text"

# The fitted rows of an answer: "LABEL id held_out held_out_by_source covered", one a line.
fitted() {
    awk -v label="$1" '
    /"fitted": \[/ { on = 1 }
    /"outliers": \[/ { on = 0 }
    !on { next }
    { gsub(/^ *"|,$/, "") }
    /^id": / { id = substr($0, 7, length($0) - 7) }
    /^held_out": / { held = $2 }
    /^held_out_by_source": / { source = $2; if (held == "null") print label "\t" id "\t" held "\t" source "\tfalse" }
    /^covered": / { print label "\t" id "\t" held "\t" source "\t" $2 }'
}

# ---- training steps ----
calibrate() { # calibrate START CHIP SOFTWARE: 0 or 1 when answered
    "$program" calibrate "$truth/training.csv" "$truth/training_small.csv" --chip "$2" --software "$3" \
        --start "$1" --json -o "$place/text/$3.$2" >"$place/json" 2>"$place/errors" && return 0
    [ $? -le 1 ]
}
# The constants that no row of the fit had a part in: of single operations; on TPUs that were not
# benchmarked, or whose benchmarks are of slow attention kernels, of the chip that stands in.
start_of() { # start_of CHIP
    case "$1" in
    tpu-v4 | tpu-v6e | tpu-v7) echo default ;;
    *) echo kernels ;;
    esac
}
fit_training() { # what these constants do not lead to is fitted from the chip's usual ones, uncounted
    if calibrate "$(start_of "$1")" "$1" "$2" && [ -s "$place/text/$2.$1" ]; then
        fitted "$1 $2" <"$place/json" >>"$place/training"
    else
        calibrate default "$1" "$2" || { cat "$place/errors" >&2 && exit 2; }
    fi
}
sed -n 's/^\[\(.*\) \(.*\)\]$/\1 \2/p' "$calibrations"/training-*.txt >"$place/pairs"
: >"$place/training"
while read -r chip software; do fit_training "$chip" "$software"; done <"$place/pairs"

# Quality of each row, by its id; rows of the small set are on one node.
for name in training training_small; do
    awk -F, -v name="$name" 'NR > 1 { gsub(/"[^"]*"/, "text"); print $1 "\t" $6 "\t" name }' "$truth/$name.csv"
done >"$place/quality"

# ---- operations ----
chips_of() { # chips with rows of their own in a file
    "$program" validate --json --summary "$1" | awk -f tests/cli/flatten.awk |
        awk '/^by\.chip\.[0-9]+\.name / { gsub(/"/, ""); print $2 }'
}
fit_operations() { # fit_operations SET CONSTANTS
    : >"$place/$1"
    for chip in $(chips_of "$truth/$1.csv"); do
        "$program" calibrate "$truth/$1.csv" --chip "$chip" --software kernels --fit "$2" --json \
            >"$place/json" && status=0 || status=$?
        [ "$status" -le 1 ] || exit "$status"
        fitted "$chip" <"$place/json" >>"$place/$1"
    done
}
fit_operations gemm matmul_efficiency,matmul_efficiency_fp8,matmul_half_k,memory_efficiency,launch_s
fit_operations attention attention_efficiency
fit_operations collectives network_efficiency_inner,network_efficiency_outer,collective_s
fit_operations memops memory_efficiency,launch_s

# ---- the table ----
# figures SET HOW: of lines "error covered", error signed, covered 1, 0 or - (not known)
figures() {
    awk '{ e = $1 < 0 ? -$1 : $1; printf "%.17g %s\n", e, $2 }' | sort -g | awk -v name="$1" -v how="$2" '
    function quantile(q,    at, i) {
        at = q * (n - 1) + 1
        i = int(at)
        return i < n ? e[i] + (at - i) * (e[i + 1] - e[i]) : e[n]
    }
    { e[++n] = $1; sum += $1; if ($2 != "-") { known++; in_it += $2 } }
    END {
        if (n == 0) exit
        printf "%s,%d,%.4f,%.4f,%.4f,%s,%s\n", name, n, quantile(0.5), quantile(0.9), sum / n, \
            known ? sprintf("%.4f", in_it / known) : "", how
    }'
}
training_rows() { # training_rows CONDITION of label, quality and set
    awk -F'\t' -v want="$1" '
    NR == FNR { quality[$1] = $2; file[$1] = $3; next }
    $3 == "null" { next }
    {
        vtrain = $1 ~ /vtrain/
        many = file[$2] == "training"
        keep = $1 == want || (want == "training" && many)
        keep = keep || (want == "quality-a" && many && quality[$2] == "A")
        keep = keep || (want == "vtrain-single" && vtrain && !many)
        keep = keep || (want == "vtrain-multi" && vtrain && many)
        if (keep) print $3, ($5 == "true")
    }' "$place/quality" "$place/training"
}
operation_rows() {
    awk -F'\t' '$4 != "null" { print $4, "-"; next } $3 != "null" { print $3, ($5 == "true") }' "$place/$1"
}
{
    echo 'set,n,median,p90,mean,coverage,how'
    training_rows vtrain-single | figures vtrain-single 'hidden size'
    training_rows vtrain-multi | figures vtrain-multi 'hidden size'
    training_rows quality-a | figures quality-a 'width of the model (layout where there is one width)'
    training_rows training | figures training 'width of the model (layout where there is one width)'
    for name in gemm attention collectives memops; do
        operation_rows $name | figures $name 'source within a chip (shape where there is one source)'
    done
    while read -r chip software; do
        training_rows "$chip $software" | figures "$software $chip" 'width or layout'
    done <"$place/pairs"
} >"$place/held-out.csv"
cp "$place/held-out.csv" "$calibrations/held-out.csv"
head -n 9 "$calibrations/held-out.csv"

# ---- the calibration files ----
[ -n "$write" ] || exit 0
# A release with few rows starts from what the other releases of its code base say, and TPUs from
# what is usual on them (what is held out above does not: they measured the same models).
FEW=9
while read -r chip software; do
    rows=$(awk -F'\t' -v want="$chip $software" '$1 == want { n++ } END { print n + 0 }' "$place/training")
    case "$software $chip" in
    *tpu-v5*) calibrate default "$chip" "$software" ;;
    megatron-bridge-*) [ "$rows" -ge "$FEW" ] || calibrate megatron-bridge "$chip" "$software" ;;
    esac
done <"$place/pairs"
# What no row can be fitted to any more stays as it was.
kept() { # kept CHIP SOFTWARE
    awk -v head="[$1 $2]" '/^\[/ { on = $0 == head } on' "$calibrations/training-$2.txt"
}
# Nor does a fit replace it that has few rows and misses the half of them by more than a tenth.
misses() { # misses CHIP SOFTWARE ROWS
    [ -s "$place/text/$2.$1" ] && [ "$3" -lt "$FEW" ] && tr -s '\n ' ' ' <"$place/text/$2.$1" |
        awk '{ bad = match($0, /, in sample [0-9.]+ %/) && substr($0, RSTART + 12) + 0 > 10 } END { exit !bad }'
}
while read -r chip software; do
    rows=$(awk -F'\t' -v want="$chip $software" '$1 == want { n++ } END { print n + 0 }' "$place/training")
    ! misses "$chip" "$software" "$rows" || : >"$place/text/$software.$chip"
    [ -s "$place/text/$software.$chip" ] || kept "$chip" "$software" | sed '$ { /^$/ d; }' >"$place/text/$software.$chip"
done <"$place/pairs"
for software in $(cut -d' ' -f2 "$place/pairs" | sort -u); do
    {
        echo "# Training steps of $software. See docs/calibration-file.md."
        for file in "$place/text/$software".*; do
            [ -s "$file" ] || continue
            echo
            cat "$file"
        done
    } >"$place/file"
    grep -q '^\[' "$place/file" && cp "$place/file" "$calibrations/training-$software.txt"
done

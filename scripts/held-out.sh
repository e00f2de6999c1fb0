#!/bin/sh
# Errors on rows that had no part in the fit: data/calibration/held-out.csv, from `calibrate` alone.
# usage: scripts/held-out.sh            SCALEMODEL=build/scalemodel FITS=build
#        WRITE=1 scripts/held-out.sh    the constants of training and serving are written anew too
# Needs LAPACK (libopenblas-dev), which solves the fit of serving.
#
# Training steps: one fit of all chips and software, of which each source is left out in turn, then
# each tenth of the models; held-out-steps.csv has what that gives for the constants of a row's own
# software and for the usual ones of the chip. Operations: chip by chip, in turn each source (of one
# source only: shapes to the octave) is predicted by a fit to the others, from the shipped constants.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
program="${SCALEMODEL:-build/scalemodel}" fits="${FITS:-build}"
truth=data/truth
calibrations=data/calibration
write="${WRITE:-}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT

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
# One hierarchical fit of all chips and software (scripts/fit-steps.c); each source left out in turn,
# and each tenth of the models.
"$fits/fit-steps" ${write:+-o "$calibrations"} -m data/evidence/training.tsv -r "$place/steps" \
    -a "$truth/training_new.csv" "$truth/training.csv" \
    "$truth/training_small.csv" "$truth/training_ci.csv" >"$place/table"
cp "$place/table" "$calibrations/held-out-steps.csv"

# ---- memory of training ----
python3 scripts/held-out-memory.py "$program" >/dev/null

# ---- serving ----
# What ships is judged; where it is to be written it is fitted first, from what ships.
export OPENBLAS_NUM_THREADS=1
"$fits/fit-serving" ${write:+-f shipped -c "$calibrations" -e data/engines} -m data/evidence/serving.tsv \
    "$truth/inference.csv" >"$place/serving"
cp "$place/serving" "$calibrations/held-out-serving.csv"

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
training_rows() { # training_rows CONDITION: of rows by chip, software, quality and size
    awk -F'\t' -v OFMT=%.17g "NR > 1 && ($1) { print \$9, \"-\" }" "$place/steps"
}
operation_rows() {
    awk -F'\t' '$4 != "null" { print $4, "-"; next } $3 != "null" { print $3, ($5 == "true") }' "$place/$1"
}
{
    echo 'set,n,median,p90,mean,coverage,how'
    training_rows '$3 ~ /vtrain/ && !$5' | figures vtrain-single 'model (width within a source)'
    training_rows '$3 ~ /vtrain/ && $5' | figures vtrain-multi 'model (width within a source)'
    training_rows '$4 == "A" && $5' | figures quality-a 'model (width within a source)'
    training_rows '$5' | figures training 'model (width within a source)'
    for name in gemm attention collectives memops; do
        operation_rows $name | figures $name 'source within a chip (shape where there is one source)'
    done
    awk -F'\t' 'NR > 1 { print $2, $3 }' "$place/steps" | sort -u | while read -r chip software; do
        training_rows "\$2 == \"$chip\" && \$3 == \"$software\"" |
            figures "$software $chip" 'model (width within a source)'
    done
} >"$place/held-out.csv"
cp "$place/held-out.csv" "$calibrations/held-out.csv"
head -n 9 "$calibrations/held-out.csv"

# ---- the lines that make held-out ends with ----
cat "$place/table" "$place/serving"
"$program" validate --json "$truth/training.csv" "$truth/training_oom.csv" |
    awk -f tests/cli/flatten.awk | awk '
    $1 == "verdicts.right" { printf "fits or not, all rows,%.4f\n", $2 }
    $1 == "verdicts.twins_right" { printf "fits or not, sources that report both,%.4f\n", $2 }
    $1 == "memory.median" { printf "peak memory: median,%.4f\n", $2 }
    $1 == "memory.worst_under" { printf "peak memory: worst under-prediction,%.4f\n", $2 }'

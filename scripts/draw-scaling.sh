#!/bin/sh
# Draw docs/scaling.svg from the program's own answers: the utilisation of the best plan, and of the
# best plan without tensor and pipeline parallelism, against the number of chips.
# usage: scripts/draw-scaling.sh > docs/scaling.svg        SCALEMODEL=build/scalemodel
set -eu
cd "$(dirname "$0")/.."
program="${SCALEMODEL:-build/scalemodel}"

answer() { # answer NAME OPTION...: lines "NAME chips mfu lower expected upper tensor"
    name="$1"
    shift
    "$program" train llama-3.1-70b --on tpu-v5p --batch 4M --seq 4096 --chips 64..16384 --csv "$@" |
        awk -F, -v name="$name" '
        {   # commas of a quoted cell part keys of a plan
            n = split($0, part, "\"")
            for (i = 2; i <= n; i += 2) gsub(/,/, ";", part[i])
            line = part[1]
            for (i = 2; i <= n; i++) line = line part[i]
            $0 = line
        }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            tensor = 1
            if (match($at["plan"], /(^|;)tensor=[0-9]+/))
                tensor = substr($at["plan"], RSTART, RLENGTH)
            sub(/.*=/, "", tensor)
            print name, $at["chips"], $at["mfu"], $at["step_time_s.lower"],
                $at["step_time_s.expected"], $at["step_time_s.upper"], tensor
        }'
}

{
    answer best
    answer fsdp --plan tensor=1,pipeline=1
} | awk '
function log2(x) { return log(x) / log(2) }
function x_of(chips) { return 85 + (log2(chips) - 6) * 74 }
function y_of(share) { return 340 - share * 280 }
function text(x, y, anchor, fill, size, words) {
    printf "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">%s</text>\n", \
        x, y, anchor, fill, size, words
}
function curve(name, colour, n, i, path) {
    n = count[name]
    for (i = 1; i <= n; i++)
        path = path sprintf("%s%.1f,%.1f", i > 1 ? " " : "", x_of(chips[name, i]), y_of(mfu[name, i]))
    printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" points=\"%s\"/>\n", colour, path
    for (i = 1; i <= n; i++)
        printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", \
            x_of(chips[name, i]), y_of(mfu[name, i]), colour
}
# From the bound to the time without overlap: utilisation is inverse to time.
function band(name, colour, n, i, path) {
    n = count[name]
    for (i = 1; i <= n; i++)
        path = path sprintf("%.1f,%.1f ", x_of(chips[name, i]), y_of(mfu[name, i] * expected[name, i] / lower[name, i]))
    for (i = n; i >= 1; i--)
        path = path sprintf("%.1f,%.1f ", x_of(chips[name, i]), y_of(mfu[name, i] * expected[name, i] / upper[name, i]))
    printf "<polygon fill=\"%s\" fill-opacity=\"0.13\" points=\"%s\"/>\n", colour, path
}
{
    i = ++count[$1]
    chips[$1, i] = $2; mfu[$1, i] = $3
    lower[$1, i] = $4; expected[$1, i] = $5; upper[$1, i] = $6; tensor[$1, i] = $7
}
END {
    if (!count["best"] || !count["fsdp"]) { print "draw-scaling: no answer" > "/dev/stderr"; exit 1 }
    blue = "#1a5fb4"; red = "#c64600"; ink = "#222222"; grey = "#666666"
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"430\" viewBox=\"0 0 760 430\"" \
          " font-family=\"Helvetica, Arial, sans-serif\">"
    print "<rect width=\"760\" height=\"430\" fill=\"#ffffff\"/>"
    text(70, 28, "start", ink, 16, "LLaMA 3.1 70B, batches of 4M tokens, on TPU v5p")
    text(70, 47, "start", grey, 12, "model FLOPs over the peak (MFU), as expected; the band reaches from no overlap to the lower bound")
    for (i = 0; i <= 5; i++) {
        y = y_of(i / 5)
        printf "<line x1=\"70\" x2=\"690\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n", y, y
        text(62, y + 4, "end", grey, 12, i * 20 " %")
    }
    for (i = 6; i <= 14; i++) text(x_of(2 ^ i), 360, "middle", grey, 12, 2 ^ i)
    text(380, 382, "middle", grey, 12, "chips")
    band("best", blue); curve("fsdp", red); curve("best", blue)
    for (i = 1; i <= count["best"]; i++)
        text(x_of(chips["best", i]), y_of(mfu["best", i]) - 10, "middle", blue, 11, "t=" tensor["best", i])
    print "<rect x=\"70\" y=\"400\" width=\"14\" height=\"4\" fill=\"" blue "\"/>"
    text(90, 406, "start", ink, 12, "best plan that a framework runs (t: tensor-parallel degree)")
    print "<rect x=\"476\" y=\"400\" width=\"14\" height=\"4\" fill=\"" red "\"/>"
    text(496, 406, "start", ink, 12, "best without tensor or pipeline")
    print "</svg>"
}'

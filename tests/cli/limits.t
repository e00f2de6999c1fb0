#!/bin/sh
# Inputs without an end: each is refused at the limit that docs/decisions/0013-limits.md tells.
. "$(dirname "$0")/runner.sh"
cd "$place/work" || exit 1

refused() { # refused NAME SENTENCE COMMAND...: bad input or I/O, in a few seconds of processor time
    name=$1 sentence=$2
    shift 2
    (ulimit -t 30 && exec "$@") >"$place/out" 2>"$place/err"
    status=$?
    tests=$((tests + 1))
    if [ "$status" -ge 3 ] && [ "$status" -le 4 ] && grep -q -- "$sentence" "$place/err"; then
        echo "ok $tests - $name"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $name"
        sed 's/^/# /' "$place/err" | cut -c1-300
    fi
}

simulate() { # simulate NAME SENTENCE TRACE
    refused "$1" "$2" "$program" simulate llama-3.1-8b --on h100-sxm --plan tensor=1 --trace "$3"
}
header="timestamp,input_length,output_length"
ln -s /dev/zero zero.json
refused "a config without an end" "zero.json: it is larger than 16 MiB" "$program" model ./zero.json
refused "chips without an end" "zero.json: it is larger than 16 MiB" "$program" chip lab --system zero.json
refused "constants without an end" "zero.json: it is larger than 16 MiB" \
    "$program" train llama-3.2-1b --on h100-sxm:1 --batch 4096 --calibration zero.json

echo "$header" >header.csv
simulate "a trace of no request" "header.csv:1:1: there are no requests below the header" header.csv
{ echo "$header" && head -c 40000000 /dev/zero | tr '\0' '\n'; } | gzip >blank.csv.gz
simulate "a trace of blank lines" "blank.csv.gz:.*16 MiB of blank lines and comments" blank.csv.gz
{ echo "$header" && yes 0,10,1 | head -c 200000000; } | gzip >bomb.csv.gz
simulate "gzip data that becomes far more" "becomes more than 250 times as large" bomb.csv.gz
refused "a module of gzip data that becomes far more" "becomes more than 250 times as large" \
    "$program" profile bomb.csv.gz
{ printf '{"traceEvents":[' && yes '{"a":1},' | head -c 200000000; } | gzip >bomb.json.gz
refused "a trace of gzip data that becomes far more" "becomes more than 250 times as large" \
    "$program" profile bomb.json.gz
mkdir round && for link in a b c d e; do ln -s . "round/$link"; done
refused "a folder that links to itself" "over 131072 files and folders" "$program" profile round
{ echo "$header" && head -c 5000000 /dev/zero | tr '\0' 1; } >wide.csv
simulate "a line of a trace" "a line has at most 4194304 bytes" wide.csv

# Each limit of the table is that of the code, one of them where several files have one of that name.
table=$root/docs/decisions/0013-limits.md
said() { # said NUMBER: as the table writes it
    echo "$1" | awk '{
        split("TiB 1099511627776 GiB 1073741824 MiB 1048576", unit)
        for (i = 1; i < 6; i += 2) if ($1 >= unit[i + 1] && $1 % unit[i + 1] == 0) print $1 / unit[i + 1] " " unit[i]
        if ($1 == 1000000000) print "1e9"
        text = $1
        while (match(text, /[0-9][0-9][0-9][0-9]($|,)/)) text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
        print text
    }'
}
grep '^| .* `' "$table" | while IFS='|' read -r _ _ most names _; do
    for name in $(echo "$names" | grep -o '[A-Z][A-Z_]*[A-Z]'); do
        told=no
        for value in $(grep -rhoE "\\b$name (= )?[0-9][0-9 <e]*" "$root/src" "$root/include" | sed "s/$name *=* *//; s/1e9/1000000000/; s/ //g" | sort -u); do
            for word in $(said $(($value)) | tr ' ' '_'); do
                case " $(echo "$most" | sed 's/[;:,] / /g; s/\([0-9]\) \([GMT]iB\)/\1_\2/g') " in *" $word "*) told=yes ;; esac
            done
        done
        [ $told = yes ] || echo "$name"
    done
done >"$place/untrue"
tests=$((tests + 1))
if [ ! -s "$place/untrue" ] && [ "$(grep -c '^| .* `' "$table")" -gt 20 ]; then echo "ok $tests - the table of limits"; else
    failures=$((failures + 1))
    echo "not ok $tests - the table of limits"
    sed 's/^/# /' "$place/untrue"
fi

# On a terminal an answer that takes long says so.
if command -v script >/dev/null; then
    script -qec "exec $program simulate llama-3.1-8b --on h100-sxm --plan tensor=1 \
        --arrivals poisson:9/s --requests 1000000000" typescript >"$place/out" 2>"$place/err" </dev/null &
    session=$!
    tests=$((tests + 1))
    until_true grep -q 'simulate: [0-9]* s so far' "$place/out"
    if grep -q 'simulate: [0-9]* s so far' "$place/out"; then echo "ok $tests - a long answer on a terminal"; else
        failures=$((failures + 1))
        echo "not ok $tests - a long answer on a terminal"
    fi
    kill "$session" 2>/dev/null
    wait "$session" 2>/dev/null
    # and an error keeps to 80 columns; in a file it is one line.
    script -qec "exec $program serve llama-3.1-8b --on h100-sxm --concurrency 32k2" typescript </dev/null |
        tr -d '\r' >"$place/out"
    printf '%s\n' "--concurrency:1:3: unknown unit 'k2': expected one of k, M, B (or G), T, P, E," \
        "    Ki, Mi" "  32k2" "    ^~" >"$place/expected"
    tests=$((tests + 1))
    if cmp -s "$place/expected" "$place/out"; then echo "ok $tests - a long error on a terminal"; else
        failures=$((failures + 1))
        echo "not ok $tests - a long error on a terminal"
        sed 's/^/# /' "$place/out"
    fi
fi
finish_tests

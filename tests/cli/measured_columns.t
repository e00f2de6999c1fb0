#!/bin/sh
# The columns of data/truth that stand for prose are what scripts/measured-columns.py makes of it: with
# them taken away it makes the same files again, and of these files nothing else.
root="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
command -v python3 >/dev/null || {
    echo "1..0 # SKIP no python3"
    exit 0
}
failures=0
check() { # check NUMBER NAME: every file of $place is that of the project
    for file in "$place"/*.csv; do
        cmp -s "$file" "$root/data/truth/${file##*/}" || {
            echo "not ok $1 - $2: ${file##*/}"
            failures=1
            return
        }
    done
    echo "ok $1 - $2"
}
cp "$root"/data/truth/*.csv "$place"
rm "$place"/*_new.csv "$place/kv_room.csv" "$place/training_tuned.csv" # whose sources say all of it
python3 "$root/scripts/measured-columns.py" "$place"/*.csv
check 1 "a file with the columns stays as it is"
python3 - "$place"/*.csv <<'END'
import csv, sys
made = {"software", "kernel", "quantises", "in_network", "plan", "hardware.pods", "hardware.node_bits_per_s", "model.window", "model.chunk",
        "model.global_every", "model.moe_every", "model.not_modelled", "parallel.attention_dp",
        "parallel.fsdp", "parallel.weights_by", "measured.ttft_is", "cached_len"}
for path in sys.argv[1:]:
    with open(path, newline="") as f:
        rows = list(csv.reader(f))
    keep = [i for i, name in enumerate(rows[0]) if name not in made]
    with open(path, "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([row[i] for i in keep] for row in rows)
END
python3 "$root/scripts/measured-columns.py" "$place"/*.csv >/dev/null
check 2 "a file without them gets the same"
echo 1..2
exit $failures

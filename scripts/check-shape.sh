#!/bin/sh
# The shape of the sources: no line over 100 columns, no file over 800 lines. Exits 1 on any break.
set -eu
cd "$(dirname "$0")/.."
find src include tests fuzz bench -name '*.[ch]' | LC_ALL=C sort | LC_ALL=C xargs awk '
{
    columns = $0
    gsub(/[\200-\277]/, "", columns)
    if (length(columns) > 100) { print FILENAME ":" FNR ": " length(columns) " columns"; broken = 1 }
}
FNR == 801 { print FILENAME ": more than 800 lines"; broken = 1 }
END { if (!broken) print "shape: no line over 100 columns, no file over 800 lines"; exit broken }'

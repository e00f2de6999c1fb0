#!/bin/sh
# The symbols files of the packages for Debian: every name that the libraries export, with the version that had it first. A name that
# is no longer exported breaks programs that are linked with it: status 1. New ones are told, and make the package's build fail.
# usage: BUILD=build scripts/symbols.sh [--write]      --write: the files anew
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}"
export LC_ALL=C
version="$(sed -n 's/^.define SM_VERSION "\(.*\)"/\1/p' include/scalemodel/base.h)"
made="$(mktemp)" told="$(mktemp)"
trap 'rm -f "$made" "$told"' EXIT
lost=0
for library in libscalemodel libscalemodel-run; do
    file="debian/${library}0.symbols"
    {
        echo "$library.so.${version%%.*} ${library}0 #MINVER#"
        nm -D --defined-only "$BUILD/$library.so" | awk -v version="$version" '
            NR == FNR { had[$1] = $2; next }
            { name = $3 "@Base"; print " " name, (name in had ? had[name] : version) }' "$file" - | sort
    } >"$made"
    if [ "${1:-}" = --write ]; then
        cp "$made" "$file"
        continue
    fi
    diff "$file" "$made" | sed -n "s|^<  *|$file: no longer exported: |p;s|^>  *|$file: not in it: |p" >"$told"
    cat "$told"
    grep -q 'no longer exported' "$told" && lost=1
done
[ "$lost" -eq 0 ] || echo "is it meant? scripts/symbols.sh --write, a line of NEWS.md and, after 1.0, another soname"
exit "$lost"

#!/bin/sh
# Build the fuzz targets with libFuzzer and the sanitizers, and run each for FUZZ_SECONDS.
# New inputs that reach new code gather in BUILD/fuzz/found/TARGET; a crash is left in
# BUILD/fuzz and ends the run with status 1.
# usage: FUZZ_SECONDS=600 scripts/fuzz.sh fuzz_NAME...
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}/fuzz"
FLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
unset MAKEFLAGS MFLAGS MAKELEVEL
${MAKE:-make} -s --no-print-directory -j2 BUILD="$BUILD" CC=clang CFLAGS="$FLAGS" \
    "$BUILD/obj/cli.a" "$BUILD/obj/core.a" $(printf "$BUILD/obj/fuzz/%s.o " "$@")
for target in "$@"; do
    clang $FLAGS -fsanitize=fuzzer,address,undefined -o "$BUILD/$target" \
        "$BUILD/obj/fuzz/$target.o" "$BUILD/obj/cli.a" "$BUILD/obj/core.a" -lyaml -lz -lzstd -llzma -lsqlite3 -lm -pthread
done
for target in "$@"; do
    mkdir -p "$BUILD/found/$target"
    dictionary="" corpora=""
    for corpus in "fuzz/corpus/$target" "fuzz/corpus/${target#fuzz_}"; do
        [ -d "$corpus" ] && corpora="$corpora $corpus"
    done
    [ -f "fuzz/$target.dict" ] && dictionary="-dict=fuzz/$target.dict"
    echo "fuzz: $target for ${FUZZ_SECONDS:-600} s"
    "$BUILD/$target" -max_total_time="${FUZZ_SECONDS:-600}" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$BUILD/$target-" -print_final_stats=1 -verbosity=0 $dictionary \
        "$BUILD/found/$target" $corpora 2>&1 | tee "$BUILD/$target.log"
    if ls "$BUILD/$target-"* >/dev/null 2>&1; then
        echo "fuzz: $target crashed; the input is in $BUILD" >&2
        exit 1
    fi
done
echo "fuzz: $# targets ran clean"

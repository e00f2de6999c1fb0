#!/bin/sh
# Build for arm64 by Debian's cross compiler and run the unit tests under qemu-user. Installs what is
# missing from Debian's own arm64 packages. Without MPI, whose launchers are not emulated: ranks are
# threads here. What starts the command line from a shell runs too, but for ranks and searches that
# take long in emulation.
# usage: BUILD=build scripts/arm64.sh
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}/arm64"
JOBS="${JOBS:-2}"
export CMOCKA_MESSAGE_OUTPUT=TAP OPENBLAS_NUM_THREADS=1

scripts/setup.sh arm64

# -fno-ivopts: qemu 7.2 goes wrong where a loop adds half an address to half an address (one of ten
# lines, correct as assembly, gives 0 there at -O1 and -O2, and the right result without).
unset MAKEFLAGS MFLAGS MAKELEVEL
${MAKE:-make} -k -j"$JOBS" -s --no-print-directory BUILD="$BUILD" CC=aarch64-linux-gnu-gcc HOSTCC=gcc \
    MPIS= CFLAGS="${CFLAGS:--O1 -fno-math-errno -fno-trapping-math -fno-ivopts}" test-programs

logs="$BUILD/tests.log"
mkdir -p "$logs"
for program in "$BUILD"/tests/test_*; do
    case "$program" in
    # Replaces itself by a copy of itself to measure memory, which the emulator's own hides; kills
    # processes in the middle of a write; searches, and measures for seconds: minutes each. Starts the
    # command, which the host cannot.
    */test_answer | */test_run_memory | */test_checkpoint_kill | */test_train_search | */test_train_sanity | */test_measure) continue ;;
    esac
    echo "$program"
done | xargs -P "$JOBS" -I '{}' sh -c 'log="$1/$(basename "$2")"
    timeout 1200 qemu-aarch64 "$2" >"$log" 2>&1 </dev/null; echo $? >"$log.status"' sh "$logs" '{}'

passed=0 failed=0
for status in "$logs"/*.status; do
    log="${status%.status}"
    good=$(grep -c '^ok' "$log") || true
    bad=$(grep '^not ok' "$log" | grep -vc '# SKIP') || true
    [ "$(cat "$status")" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    passed=$((passed + good)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] || { echo "FAILED $(basename "$log")" && grep -v '^ok' "$log" | tail -n 20; }
done
for arguments in 'chip h100-sxm' 'train llama-3.1-8b --on h100-sxm:8 --batch 1M --seq 4096 --plan fsdp=8' \
    'serve llama-3.1-8b --on h100-sxm:8 --plan tensor=8 --batch 16' \
    'roofline A[B,D]W[D,F] --on tpu-v5e --dims D=8192,F=8192,B=64'; do
    # The same text as on this machine, where that is built.
    # shellcheck disable=SC2086 # words of a command
    qemu-aarch64 "$BUILD/scalemodel" $arguments >"$logs/cli" 2>&1 || true
    [ -x "$BUILD/../scalemodel" ] || continue
    # shellcheck disable=SC2086
    if "$BUILD/../scalemodel" $arguments 2>&1 | cmp -s - "$logs/cli"; then passed=$((passed + 1))
    else failed=$((failed + 1)) && echo "FAILED scalemodel $arguments" && head -n 5 "$logs/cli"; fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

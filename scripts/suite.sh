#!/bin/sh
# The test suite. Builds each variant given, runs everything that belongs to it, three jobs at a
# time, and ends with the line "N passed, M failed"; exits 1 when anything failed.
# usage: BUILD=build scripts/suite.sh VARIANT...     VARIANT: gcc, asan, clang; or check
#
# gcc is what users build. asan runs the same once more, built by the second compiler, clang, with its warnings as
# errors, under AddressSanitizer and UndefinedBehaviorSanitizer: what differs from gcc in the numbers alone is left
# out there (tests/sanitized.h), and so are MPI, which leaks, and what is_spared names. clang is the second
# compiler without sanitizers, which finds nothing that the two do not: `make test` leaves it out.
# check is gcc without what takes long: for who edits. For the first variant every test case counts; for the others,
# which run the same cases again, each program counts as one. A program that crashes, hangs, or does not build is a
# failure. BUILD/suite/VARIANT.NAME.log.time has the processor time of each.
set -u
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}"
MAKE="${MAKE:-make}"
JOBS="${JOBS:-3}" # on two cores: some jobs wait for ranks and for disks
TIME_LIMIT="${TIME_LIMIT:-600}" # seconds for one program: one that hangs, not one on a busy machine

# Of the children so far, user and system, in seconds. (A pipe would ask for those of a shell of its own.)
processor_time() { # processor_time FILE
    times >"$1.raw"
    sed -n '2s/[ms]/ /gp' "$1.raw" | awk '{ printf "%.1f\n", 60 * $1 + $2 + 60 * $3 + $4 }' >"$1"
    rm "$1.raw"
}

# One job: suite.sh --job LOG COMMAND... leaves its output in LOG and its status in LOG.status.
if [ "${1:-}" = --job ]; then
    log="$2"
    shift 2
    timeout "$TIME_LIMIT" "$@" >"$log" 2>&1 </dev/null
    echo $? >"$log.status"
    processor_time "$log.time"
    exit 0
fi

unset MAKEFLAGS MFLAGS MAKELEVEL
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1
# Memory that one case gives back the next takes: a third of the searches' time was the system's, which took
# it and gave it again.
export MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_TOP_PAD_=4000000 MALLOC_MMAP_THRESHOLD_=33554432
# Ranks are cores, as scalemodel-run tells BLAS too: its own threads would turn in circles beside them.
export OPENBLAS_NUM_THREADS=1
logs="$BUILD/suite"
rm -rf "$logs"
mkdir -p "$logs"
jobs="$logs/jobs" # lines: VARIANT NAME COMMAND
: >"$jobs"

program_folder() { case "$1" in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

# The corpus of fuzz/fuzz_X.c lies in fuzz/corpus/fuzz_X or fuzz/corpus/X.
corpus_of() {
    for corpus in "fuzz/corpus/$1" "fuzz/corpus/${1#fuzz_}"; do
        [ -d "$corpus" ] && echo "$corpus"
    done
}

# Examples of the documents, long sessions, and what is installed, which the first variant runs as users would: what
# they reach is under a sanitizer, and built by clang, in the unit tests and in the other goldens.
is_spared() {
    case "$1 $2" in
    "asan readme" | "asan pages" | "asan library") return 0 ;;
    # Every failed allocation of every verb: a sanitizer sees more, so that once is enough.
    "gcc test_out_of_memory") case " $variants " in *" asan "*) return 0 ;; *) return 1 ;; esac ;;
    # All shipped constants in all questions: numbers, not memory; and all measured rows.
    "asan test_shipped_constants" | "asan validate") return 0 ;;
    # Whole sweeps and searches, and limits of processor time: of what users run.
    "asan design" | "asan compare" | "asan sweep" | "asan train_answers" | "asan limits") return 0 ;;
    # What test_run_train, test_checkpoint*, test_measure and test_out_of_memory run there too, in one process.
    "asan run_train" | "asan run_plans" | "asan run_train_answers" | "asan checkpoint" | "asan measure") return 0 ;;
    "clang readme" | "clang pages" | "clang library" | "clang run" | "clang measure" | "clang run_train") return 0 ;;
    "clang train_answers" | "clang validate" | "clang checkpoint" | "clang run_train_answers") return 0 ;;
    *) return 1 ;;
    esac
}

# What check leaves out: what takes long, and what the others cover as well.
is_long() {
    case "$1" in
    test_train_search | test_train_sanity | test_run_* | test_ring_attention | test_checkpoint*) return 0 ;;
    cli_run* | cli_measure | cli_checkpoint | cli_validate | cli_train_answers) return 0 ;;
    cli_pages | cli_readme | cli_library | fuzz_*) return 0 ;;
    *) return 1 ;;
    esac
}

folder_of() { [ "$1" = gcc ] || [ "$1" = check ] && echo "$BUILD" || echo "$BUILD/$1"; }

check_programs() {
    for file in tests/test_*.c; do
        is_long "$(basename "$file" .c)" || echo "$(folder_of check)/tests/$(basename "$file" .c)"
    done
}

build() {
    # AddressSanitizer sees the sizes of objects better, and null pointers as well; alignment, a quarter of the
    # build, and stacks used after a return, a quarter of the time, are left to `make fuzz`.
    sanitize="-fsanitize=address,undefined -fno-sanitize=object-size,alignment,null -fno-sanitize-recover=all"
    sanitize="$sanitize -fsanitize-address-use-after-return=never"
    case "$1" in
    gcc | check) set -- "$1" gcc ;; # the Makefile's own flags: what users run is what is tested
    asan) set -- asan clang "CFLAGS=-O1 -g1 $sanitize" TEST_CFLAGS=-O0 COLD_CFLAGS=-O0 LDFLAGS=-fuse-ld=gold ;;
    clang) set -- clang clang CFLAGS=-O1 ;;
    *)
        echo "suite: no variant $1: expected gcc, asan or clang" >&2
        exit 2
        ;;
    esac
    echo "suite: building with $2${3:+ ${3#CFLAGS=}}"
    targets=test-programs
    [ "$1" != check ] || targets="all $(check_programs)"
    variant="$1" compiler="$2"
    shift 2
    # The tables of what is shipped are made once, for the first variant.
    # shellcheck disable=SC2086 # a list of words
    (
        $MAKE -k -j"$JOBS" -s --no-print-directory BUILD="$(folder_of "$variant")" CC="$compiler" \
            HOST_BUILD="$(folder_of "$first")" "$@" $targets >"$logs/$variant.build.log" 2>&1
        echo $? >"$logs/$variant.build.status"
        processor_time "$logs/$variant.build.log.time"
    )
}

list_jobs() {
    folder="$(folder_of "$1")"
    for file in tests/test_*.c; do
        name="$(basename "$file" .c)"
        is_spared "$1" "$name" && continue
        [ -f "$file" ] && echo "$1 $name $folder/tests/$name" >>"$jobs"
    done
    for file in fuzz/fuzz_*.c; do
        name="$(basename "$file" .c)"
        [ -f "$file" ] && echo "$1 $name $folder/replay/$name" $(corpus_of "$name") >>"$jobs"
    done
    for file in tests/cli/*.t; do
        name="cli_$(basename "$file" .t)"
        is_spared "$1" "$(basename "$file" .t)" && continue
        [ -f "$file" ] && echo "$1 $name env SCALEMODEL=$(program_folder "$folder")/scalemodel sh $file" >>"$jobs"
    done
    [ "$1" != check ] || drop_long
}

drop_long() {
    while read -r variant name command; do
        is_long "$name" || echo "$variant $name $command"
    done <"$jobs" >"$jobs.short"
    mv "$jobs.short" "$jobs"
}

passed=0
failed=0
note() { # note VARIANT NAME PASSED FAILED LOG
    passed=$((passed + $3))
    failed=$((failed + $4))
    if [ "$4" -eq 0 ]; then
        printf 'ok      %-5s %-28s %4s  %6s s\n' "$1" "$2" "$3" "$(cat "$5.time" 2>/dev/null || echo -)"
        return
    fi
    printf 'FAILED  %-5s %-28s %s passed, %s failed\n' "$1" "$2" "$3" "$4"
    [ -f "$5" ] && grep -v '^ok' "$5" | tail -n 40 | sed 's/^/    | /'
}

read_log() { # read_log VARIANT NAME: count the cases of one finished job
    log="$logs/$1.$2.log"
    status="$(cat "$log.status" 2>/dev/null || echo 255)"
    good=$(grep -c '^ok' "$log" 2>/dev/null)
    bad=$(grep '^not ok' "$log" 2>/dev/null | grep -vc '# SKIP')
    if [ "$bad" -eq 0 ]; then
        # A bad status that no case explains, or no case at all, is a failure of its own; but a
        # plan of none ("1..0") says that there was nothing to test.
        if grep -q '^1\.\.0' "$log" && [ "$status" -eq 0 ]; then
            note "$1" "$2" 0 0 "$log"
            return
        fi
        if [ "$good" -eq 0 ] || { [ "$status" -ne 0 ] && ! grep -q '# SKIP' "$log"; }; then
            bad=1
            echo "exit status $status after $good cases" >>"$log"
        fi
    fi
    if [ "$1" != "$first" ]; then
        [ "$bad" -eq 0 ] && good=1 || { good=0 && bad=1; }
    fi
    note "$1" "$2" "$good" "$bad" "$log"
}

first="$1" variants="$*"
for variant in "$@"; do
    build "$variant"
    list_jobs "$variant"
done
sed "s|^\([^ ]*\) \([^ ]*\) |$logs/\1.\2.log |" "$jobs" |
    xargs -P "$JOBS" -L 1 "$0" --job

for variant in "$@"; do
    log="$logs/$variant.build.log"
    if [ "$(cat "$logs/$variant.build.status")" -eq 0 ]; then note "$variant" build 1 0 "$log"
    else note "$variant" build 0 1 "$log"; fi
done
for check in layers shape; do
    if scripts/check-$check.sh >"$logs/$check.log" 2>&1; then note - $check 1 0 "$logs/$check.log"
    else note - $check 0 1 "$logs/$check.log"; fi
done
while read -r variant name command; do read_log "$variant" "$name"; done <"$jobs"

cat "$logs"/*.time | awk '{ sum += $1 } END { printf "suite: %.0f s of processor time\n", sum }'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

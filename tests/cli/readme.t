#!/bin/sh
# The README is true: its commands give what it says (`make demo` runs what the Makefile would run,
# with the program under test), and its C program compiles without a warning and finds a plan.
. "$(dirname "$0")/runner.sh"
make() {
    [ "$*" = demo ] || return 1
    env -u MAKEFLAGS make -n --no-print-directory -C "$root" BUILD=build demo |
        sed -n '/^build\/scalemodel train/,$p' | tee "$place/demo"
    (cd "$root" && sed "s|^build/scalemodel|\"$program\"|" "$place/demo" | sh)
}
run_file "$root/README.md"

# The C program, linked against the library beside the program under test.
sed -n '/^```c$/,/^```$/p' "$root/README.md" | grep -v '^```' >"$place/example.c"
library="$(dirname "$program")/libscalemodel.a"
sanitize=
if nm "$library" 2>/dev/null | grep -q __asan_init; then sanitize=-fsanitize=address,undefined; fi
tests=$((tests + 1))
if gcc -std=c11 -Wall -Wextra -Werror $sanitize -I"$root/include" -o "$place/example" \
    "$place/example.c" "$library" -lyaml -lz -lzstd -llzma -lsqlite3 -lm -pthread 2>"$place/err" &&
    "$place/example" 2>&1 | tee "$place/out" | grep -q '^[0-9.]* s: [a-z]*=[0-9]'; then
    echo "ok $tests - the C program"
else
    failures=1
    echo "not ok $tests - the C program"
    cat "$place/err" "$place/out" | sed 's/^/# /'
fi
finish_tests

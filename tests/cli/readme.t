#!/bin/sh
# The commands of the README give what it says. Here `make demo` runs what the Makefile would run,
# with the program under test.
. "$(dirname "$0")/runner.sh"
make() {
    [ "$*" = demo ] || return 1
    env -u MAKEFLAGS make -n --no-print-directory -C "$root" BUILD=build demo |
        sed -n '/^build\/scalemodel train/,$p' | tee "$place/demo"
    (cd "$root" && sed "s|^build/scalemodel|\"$program\"|" "$place/demo" | sh)
}
run_file "$root/README.md"
finish_tests

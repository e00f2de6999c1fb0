#!/bin/sh
# Install what is missing, and only that, on a Debian machine.
# usage: scripts/setup.sh build|test|page|fuzz|lint|deb|arm64
#   build: a C compiler, make, zlib, zstd, xz, sqlite3, libyaml      test: also cmocka, jansson, BLAS, both MPIs, clang (a second compiler), g++ and pytest
#   lint: also clang-format and clang-tidy      arm64: also the cross compiler, its libraries and qemu
set -eu
purpose="${1:-build}"
missing=""

want_command() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
want_header() {
    # Without a compiler the header cannot be looked up: ask for the package, apt keeps what is there.
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" |
        ${CC:-cc} -E -x c - >/dev/null 2>&1 || missing="$missing $2"
}

want_package() {
    dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $1"
}

want_sanitizers() {
    printf 'int main(void) { return 0; }\n' | clang -fsanitize=address,undefined -x c -o /dev/null - 2>/dev/null ||
        missing="$missing libclang-rt-dev"
}

want_command "${CC:-cc}" gcc
want_command gcc gcc
want_command make make
printf '#include <stdio.h>\n' | gcc -E -x c - >/dev/null 2>&1 || missing="$missing libc6-dev"
want_header zlib.h zlib1g-dev
want_header zstd.h libzstd-dev
want_header lzma.h liblzma-dev
want_header sqlite3.h libsqlite3-dev
want_header yaml.h libyaml-dev
case "$purpose" in
build) ;;
test)
    want_header microhttpd.h libmicrohttpd-dev
    want_header cmocka.h libcmocka-dev
    want_header jansson.h libjansson-dev # the oracle of our reader of JSON
    want_header cblas.h libopenblas-dev
    want_command mpicc.openmpi libopenmpi-dev
    want_command mpirun.openmpi openmpi-bin
    want_command mpicc.mpich libmpich-dev
    want_command mpirun.mpich mpich
    want_command clang clang
    want_sanitizers
    want_command g++ g++
    want_command pkg-config pkgconf
    /usr/bin/python3 -c 'import pytest' 2>/dev/null || missing="$missing python3-pytest"
    ;;
fuzz)
    want_command clang clang
    want_sanitizers
    ;;
page)
    want_header microhttpd.h libmicrohttpd-dev
    want_command emcc emscripten
    want_command node nodejs
    want_command chromium chromium
    ;;
deb)
    want_command dh debhelper
    want_command lintian lintian
    want_header cblas.h libopenblas-dev
    ;;
arm64)
    for package in gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; do want_package "$package"; done
    for package in libjansson-dev zlib1g-dev libyaml-dev libzstd-dev liblzma-dev libsqlite3-dev libcmocka-dev libopenblas-dev; do
        want_package "$package:arm64"
    done
    ;;
lint)
    want_command clang clang
    want_command clang-format clang-format
    want_command clang-tidy clang-tidy
    ;;
*)
    echo "usage: scripts/setup.sh build|test|page|fuzz|lint|deb|arm64" >&2
    exit 2
    ;;
esac
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: please install what these Debian packages hold:$missing" >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: as root, run: apt-get install$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi
echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
case "$missing" in *:arm64*) $as_root dpkg --add-architecture arm64 ;; esac
$as_root apt-get update -q >&2 || echo "setup: apt-get update failed, trying with the old lists" >&2
# shellcheck disable=SC2086 # a list of words
$as_root apt-get install -y -q --no-install-recommends $missing >&2

#!/bin/sh
# The libraries as their users meet them: they export what the public headers declare and nothing
# else, no name of a user's own program comes between them, and what `make install` puts down
# compiles and links in C and in C++, shared and static.
root="$(cd "$(dirname "$0")/../.." && pwd)"
folder="$(dirname "${SCALEMODEL:-$root/build/scalemodel}")"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
tests=0
failures=0

check() { # check NAME COMMAND...: which says what is wrong, and fails then
    tests=$((tests + 1))
    name="$1"
    shift
    if "$@" >"$place/said" 2>&1; then
        echo "ok $tests - $name"
    else
        echo "not ok $tests - $name"
        failures=1
        head -n 12 "$place/said" | sed 's/^/# /'
    fi
}
same_lines() { diff "$1" "$2"; }

libraries="$(cd "$folder" && ls libscalemodel*.so | sed 's/\.so$//')"
# Functions and constants of the headers: a name before a parenthesis, or of what is extern.
sed -e '/^#include/d' "$root"/include/scalemodel/*.h | gcc -E -P -x c - | grep -v '^#' | tr '\n' ' ' |
    sed -e 's/[;{}]/&\n/g' >"$place/statements"
sed -nE 's/.*static inline .*\b(sm_[a-z0-9_]+) *\(.*/\1/p' "$place/statements" >"$place/inline"
sed -nE -e 's/.*extern .*\b(sm_[a-z0-9_]+) *[[;].*/\1/p' \
    -e '/typedef/d' -e 's/^[^(]*\b(sm_[a-z0-9_]+) *\([^*].*;/\1/p' "$place/statements" |
    sort -u | grep -vxFf "$place/inline" >"$place/declared"
for library in $libraries; do
    nm -D --defined-only "$folder/$library.so" | awk '{ print $NF }' | sort >"$place/$library"
    nm -g --defined-only "$folder/$library.a" | awk 'NF == 3 { print $3 }' | sort >"$place/archive"
    check "$library: the archive has the names of the shared library" \
        same_lines "$place/$library" "$place/archive"
done
# What needs a toolkit that is not there (CUDA, an MPI) is declared and not built.
sort "$place"/libscalemodel* | sort -u >"$place/exported"
grep -vxE 'sm_measure_gpus|sm_run_.*|sm_.*measure.*' "$place/declared" >"$place/always"
check "nothing is exported that no header declares" \
    sh -c "comm -23 '$place/exported' '$place/declared' | tee /dev/stderr | grep -q . && exit 1; exit 0"
check "all that the headers declare is exported" \
    sh -c "comm -13 '$place/exported' '$place/always' | tee /dev/stderr | grep -q . && exit 1; exit 0"
if [ -e "$folder/libscalemodel-run.so" ]; then
    check "nothing that the packages' symbols files have is lost" env BUILD="$folder" "$root/scripts/symbols.sh"
fi

# A program with functions of its own by each private name of ours.
nm -g --defined-only "$folder/obj/core.a" | awk 'NF == 3 { print $3 }' | sort -u |
    comm -23 - "$place/exported" >"$place/private"
sed 's/.*/double &(void); double &(void) { return 1e9; }/' "$place/private" >"$place/hostile.c"
check "there are private names" test "$(wc -l <"$place/private")" -gt 100

DESTDIR="$place/root"
check "installs" env -u MAKEFLAGS make -C "$root" -s --no-print-directory -o all BUILD="$folder" \
    DESTDIR="$DESTDIR" PREFIX=/opt install-here
export PKG_CONFIG_PATH="$DESTDIR/opt/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$DESTDIR"
export LD_LIBRARY_PATH="$DESTDIR/opt/lib"

build() { # build COMPILER PACKAGE STATIC OUT FLAG... SOURCE...
    compiler="$1" package="$2" static="$3" out="$4"
    shift 4
    # shellcheck disable=SC2046,SC2086 # lists of words
    $compiler -Wall -Wextra -Werror -pedantic $(pkg-config --cflags "$package") -o "$out" "$@" \
        $(pkg-config $static --libs "$package")
}
gives() { # gives FILE COMMAND...
    file="$1"
    shift
    "$@" | diff "$file" -
}
users() { # users KIND STATIC: of what is installed now
    check "a user in C, $1" build "gcc -std=c11" scalemodel "$2" "$place/c-$1" "$root/tests/library/price.c"
    [ -f "$place/price" ] || "$place/c-$1" >"$place/price"
    check "a user in C, $1, runs" gives "$place/price" "$place/c-$1"
    check "a user in C++, $1" build "g++ -std=c++17 -x c++" scalemodel "$2" "$place/c++-$1" \
        "$place/every.cc" "$root/tests/library/price.c"
    check "a user in C++, $1, runs" gives "$place/price" "$place/c++-$1"
    check "a user with our private names, $1" build "gcc -std=c11 -fno-builtin" scalemodel "$2" \
        "$place/hostile-$1" "$root/tests/library/price.c" "$place/hostile.c"
    check "a user with our private names, $1, has the same times" gives "$place/price" "$place/hostile-$1"
    for package in $ranks; do
        mpi="${package#scalemodel-run}" flag=-DUSER_OF_THREADS start=
        [ -z "$mpi" ] || flag=-DUSER_OF_MPI start="mpirun.${mpi#-} -n 4"
        [ "$mpi" != -openmpi ] || start="$start --oversubscribe"
        for compiler in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
            check "ranks: $package, ${compiler%% *}, $1" build "$compiler" "$package" "$2" "$place/ranks" \
                "$flag" "$root/tests/library/ranks.c"
            # shellcheck disable=SC2086 # a command and its options
            check "ranks: $package, ${compiler%% *}, $1, run" gives "$place/sum" $start "$place/ranks"
        done
    done
}
for header in "$DESTDIR"/opt/include/scalemodel/*.h; do
    echo "#include <scalemodel/$(basename "$header")>"
done >"$place/every.cc"
echo '24, a line within 0' >"$place/sum"
ranks="$(cd "$PKG_CONFIG_PATH" && ls scalemodel-run*.pc 2>/dev/null | sed 's/\.pc$//')"
users shared ""
rm "$DESTDIR"/opt/lib/*.so*
users static --static
check "uninstalls" env -u MAKEFLAGS make -C "$root" -s --no-print-directory BUILD="$folder" \
    DESTDIR="$DESTDIR" PREFIX=/opt uninstall
check "nothing is left" sh -c "! find '$DESTDIR' ! -type d | grep ."
echo "1..$tests"
exit $failures

#!/bin/sh
# The page for browsers: the library compiled by emscripten, and the files of web/ beside it, a folder that any
# file server serves and that opens from disk. Needs emscripten and apt-get, with whose sources of zlib, libyaml and libzstd it is built.
# usage: BUILD=build scripts/build-page.sh      leaves BUILD/page
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}"
MAKE="${MAKE:-make}"
mkdir -p "$BUILD/wasm/sources"
work="$(cd "$BUILD/wasm" && pwd)"
# Debian's emscripten looks for its JavaScript beside Debian's node, and knows no fetch of newer ones.
export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}" EMCC_CFLAGS="${EMCC_CFLAGS:-}"

# The sources of a Debian package, by lists of our own: those of the system may be without sources.
fetch_source() { # fetch_source PACKAGE
    [ -z "$(find "$work/sources" -maxdepth 1 -type d -name "$1-source")" ] || return 0
    mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    if [ -f /etc/apt/sources.list.d/debian.sources ]; then
        sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/apt/parts/src.sources"
    else
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$work/apt/parts/src.list"
    fi
    set -- "$1" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/apt/parts" \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -q
    package="$1"
    shift
    apt-get "$@" update >"$work/apt.log" 2>&1
    (cd "$work/sources" && apt-get "$@" source --download-only "$package" >>"$work/apt.log" 2>&1 &&
        mkdir -p "$package-source" && tar -xf "$(ls "$package"_*.orig.tar.* | head -n 1)" -C "$package-source" --strip-components 1)
}

# build_library NAME PACKAGE FOLDER FLAGS FILES: libNAME.a of files of a Debian package's sources
build_library() {
    name="$1" package="$2" folder="$3" flags="$4" files="$5"
    [ -f "$work/lib$name.a" ] && return 0
    fetch_source "$package"
    (cd "$work/sources/$package-source/$folder" && mkdir -p "$work/objects/$name" &&
        for file in $files; do
            # shellcheck disable=SC2086 # lists of words
            emcc -O2 $flags -c "$file" -o "$work/objects/$name/$(basename "$file" .c).o" || exit 1
        done && emar rcs "$work/lib$name.a" "$work/objects/$name"/*.o)
}

build_libraries() {
    build_library z zlib . "-include unistd.h" "adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c zutil.c
        gzclose.c gzlib.c gzread.c gzwrite.c"
    build_library yaml libyaml src '-I../include -DYAML_VERSION_STRING="0.2" -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=0' \
        "api.c reader.c scanner.c parser.c loader.c writer.c emitter.c dumper.c"
    build_library zstd libzstd lib -DZSTD_DISABLE_ASM "common/debug.c common/entropy_common.c common/error_private.c
        common/fse_decompress.c common/pool.c common/threading.c common/xxhash.c common/zstd_common.c decompress/huf_decompress.c
        decompress/zstd_ddict.c decompress/zstd_decompress.c decompress/zstd_decompress_block.c"
}

command -v emcc >/dev/null || { echo "build-page: emcc is not there: apt-get install emscripten" >&2 && exit 1; }
build_libraries
[ -f "$work/scalemodel.wasm" ] || rm -f "$work/scalemodel.js"
"$MAKE" --no-print-directory -s -j2 CC=emcc HOSTCC="${HOSTCC:-gcc}" BUILD="$work" HOST_BUILD="$BUILD" PIC= THREADS= WARN=-Wall \
    CFLAGS="-O3 -mbulk-memory -mnontrapping-fptoint -msign-ext -fno-math-errno -fno-trapping-math -I$work/sources/zlib-source -I$work/sources/libyaml-source/include -I$work/sources/libzstd-source/lib" PAGE_LIBS="$work/libz.a $work/libyaml.a $work/libzstd.a" "$work/scalemodel.js"
mkdir -p "$BUILD/page"
python3 scripts/book-pages.py --learn >"$BUILD/page/learn.js"
printf '"use strict"; const WASM = "%s";\n' "$(gzip -9 -n <"$work/scalemodel.wasm" | base64 -w 0)" >"$BUILD/page/wasm.js"
cp web/*.html web/*.css web/*.js "$work/scalemodel.js" "$BUILD/page/"
# The verbs and their options, so that the forms stand before the library is there.
node scripts/page-library.js "$BUILD/page" >"$BUILD/page/verbs.js"
echo "page: $BUILD/page/index.html, $(cat "$BUILD"/page/* | wc -c) bytes, $(cat "$BUILD"/page/* | gzip -9 | wc -c) compressed"

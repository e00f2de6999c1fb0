#!/bin/sh
# The packages for Debian, built from the tarball of `make dist`, with the page that `make page` left: lintian finds nothing, the installed copy passes the golden
# tests, and with --twice a second build, in another folder, gives the same bytes. Needs debhelper and lintian.
# usage: BUILD=build scripts/deb.sh [--twice]      leaves BUILD/deb/*.deb
set -eu
cd "$(dirname "$0")/.."
BUILD="$(mkdir -p "${BUILD:-build}" && cd "${BUILD:-build}" && pwd)"
tarball="$(ls -t "$BUILD"/scalemodel-*.tar.gz | head -n 1)"
export PAGE="$BUILD/page" LC_ALL=C DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=2 noautodbgsym}"

build_in() { # build_in FOLDER: FOLDER/*.deb
    rm -rf "$1" && mkdir -p "$1/source"
    tar -xzf "$tarball" -C "$1/source" --strip-components 1
    (cd "$1/source" && dpkg-buildpackage -b -us -uc) >"$1/log" 2>&1 || { tail -n 30 "$1/log" && exit 1; }
}

build_in "$BUILD/deb"
lintian --fail-on warning,error --suppress-tags initial-upload-closes-no-bugs "$BUILD"/deb/*.changes
echo "lintian: nothing found"
if [ "${1:-}" = --twice ]; then
    build_in "$BUILD/deb-again/elsewhere"
    for package in "$BUILD"/deb/*.deb; do cmp "$package" "$BUILD/deb-again/elsewhere/${package##*/}"; done
    echo "reproducible: two builds, the same bytes"
fi
for package in "$BUILD"/deb/*.deb; do dpkg-deb -x "$package" "$BUILD/deb/installed"; done
failed=0
python3 - "$BUILD/deb/installed" "$BUILD/page" <<'END'
import pathlib, re, subprocess, sys, urllib.request
server = subprocess.Popen([sys.argv[1] + "/usr/bin/scalemodel", "page", "--port", "0"], stdout=subprocess.PIPE, text=True)
address = re.search(r"http:\S+", server.stdout.readline())[0]
for file in pathlib.Path(sys.argv[2]).iterdir():
    assert urllib.request.urlopen(address + file.name).read() == file.read_bytes(), file.name
server.terminate()
print("scalemodel page: the installed copy serves the page")
END
for golden in "$BUILD"/deb/source/tests/cli/*.t; do
    name="$(basename "$golden" .t)"
    case "$name" in layers | library | measure | python | readme | run* | checkpoint) continue ;; esac # of a build, or of MPI
    SCALEMODEL="$BUILD/deb/installed/usr/bin/scalemodel" sh "$golden" >"$BUILD/deb/$name.log" 2>&1 ||
        { failed=1 && echo "FAILED $name" && grep -A 20 '^not ok' "$BUILD/deb/$name.log" | head -n 40; }
done
[ "$failed" -eq 0 ] && echo "golden tests: the installed copy passes" && ls -l "$BUILD"/deb/*.deb
exit "$failed"

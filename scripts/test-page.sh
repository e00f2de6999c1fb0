#!/bin/sh
# The page against the program: by node, then in Chromium. Needs node, Chromium and, for playwright-core and axe-core,
# the network; says so and passes where there is none.
# usage: BUILD=build scripts/test-page.sh      PICTURES: a folder for screenshots
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}"
page="$(cd "$BUILD/page" && pwd)" program="$(cd "$BUILD" && pwd)/scalemodel"
node web/tests/against_program.js "$page" "$program"
tools="$(cd "$BUILD" && pwd)/page-tools"
mkdir -p "$tools"
[ -d "$tools/node_modules/axe-core" ] || npm install --silent --no-fund --no-audit --prefix "$tools" playwright-core axe-core || {
    echo "test-page: the browser is left out, there is no network to install playwright-core and axe-core from"
    exit 0
}
chromium="$(command -v chromium || command -v chromium-browser)"
NODE_PATH="$tools/node_modules" node web/tests/in_browser.js "$page" "$program" "$chromium" ${PICTURES:+"$PICTURES"}

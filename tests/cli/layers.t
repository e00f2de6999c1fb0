#!/bin/sh
# The layer check can fail: each kind of break, put into a small tree, is found and named. And what
# only `make held-out` builds calls nothing that is gone.
root="$(cd "$(dirname "$0")/../.." && pwd)"
tree="$(mktemp -d)"
trap 'rm -rf "$tree"' EXIT
tests=0
failures=0

check() { # check NAME EXPECTED-OUTPUT: of the check over the tree
    tests=$((tests + 1))
    actual="$("$root/scripts/check-layers.sh" "$tree" 2>&1)"
    status=$?
    expected_status=1
    [ -n "$2" ] || expected_status=0
    if [ "$actual" = "$2" ] && [ "$status" -eq "$expected_status" ]; then
        echo "ok $tests - $1"
    else
        echo "not ok $tests - $1"
        failures=1
        printf '# expected (%s): %s\n# found (%s): %s\n' "$expected_status" "$2" "$status" "$actual"
    fi
}

write() { # write FILE LINE...
    mkdir -p "$tree/$(dirname "$1")"
    file="$tree/$1"
    shift
    printf '%s\n' "$@" >"$file"
}

mkdir -p "$tree/docs"
grep -v '^lend' "$root/docs/layers.txt" >"$tree/docs/layers.txt" # the headers are not there
write include/scalemodel/base.h '#include <stddef.h>'
write include/scalemodel/hw.h '#include "scalemodel/units.h"'
write src/hw/chip.c '#include <stdio.h>' '#include "chip.h"' '#include "scalemodel/text.h"'
write src/hw/chip.h '#include "scalemodel/hw.h"'
write src/io/json.c '#include <zlib.h>' '#include "scalemodel/train.h"'
write src/cli/main.c '#include "scalemodel/train.h"' '#include "scalemodel/render.h"'
write src/cli/run/main_run.c '#include "pages.h"' '#include "scalemodel/train.h"'
write src/cli/pages.h '#include "scalemodel/report.h"'
check "a tree in order" ""

write src/hw/bad.c '' '#include "scalemodel/cost.h"'
check "an include that climbs" \
    "src/hw/bad.c:2: layer hw may not include scalemodel/cost.h (layer cost)"
write src/hw/bad.c '#  include "scalemodel/model.h" /* a sibling */'
check "a sibling" "src/hw/bad.c:1: layer hw may not include scalemodel/model.h (layer model)"
write src/hw/bad.c '#include <zlib.h>'
check "zlib outside io" \
    "src/hw/bad.c:1: <zlib.h> is not of the C library; layer hw may not use it"
write src/hw/bad.c '#include "scalemodel/nothing.h"'
check "a header of no layer" \
    "src/hw/bad.c:1: scalemodel/nothing.h belongs to no layer of docs/layers.txt"
write src/hw/bad.c '#include "json.h"'
check "a private header of another folder" 'src/hw/bad.c:1: "json.h" is not in src/hw'
write src/hw/bad.c '#include "../io/json.h"'
check "a path out of the folder" 'src/hw/bad.c:1: "../io/json.h" reaches out of its folder'
rm "$tree/src/hw/bad.c"

write src/cli/bad.c '#include "chip.h"'
check "a private header in the command line" 'src/cli/bad.c:1: "chip.h" is not in src/cli'
rm "$tree/src/cli/bad.c"
write src/cli/run/main.c '#include <stdio.h>'
check "two files of one name" 'src/cli/run/main.c: its name is that of src/cli/main.c'
rm "$tree/src/cli/run/main.c"

write src/extra/new.c '#include <stdio.h>'
check "a folder of no layer" 'src/extra/new.c:1: layer "extra" is not in docs/layers.txt'
rm -r "$tree/src/extra"

write include/scalemodel/base.h '#include "scalemodel/text.h"'
check "a public header that climbs" \
    "include/scalemodel/base.h:1: layer base may not include scalemodel/text.h (layer text)"
write include/scalemodel/base.h '#include "arena.h"'
check "a public header that includes a private one" \
    'include/scalemodel/base.h:1: a public header includes the private "arena.h"'

write docs/layers.txt 'base | base | |' 'hw | hw | base |' 'cost | cost | base hw |' 'model | model | base |' \
    'lend hw chip.h to cost'
rm -r "$tree/src" "$tree/include"
write include/scalemodel/base.h '#include <stddef.h>'
write src/hw/chip.h '#include "scalemodel/hw.h"'
write src/cost/cost.c '#include "chip.h"'
check "a private header that is lent" ""
write src/model/bad.c '#include "chip.h"'
check "one that is not" 'src/model/bad.c:1: "chip.h" is not in src/model'
rm "$tree/src/model/bad.c"
write docs/layers.txt 'base | base | |' 'hw | hw | base |' 'cost | cost | base hw |' 'lend hw none.h to cost' \
    'lend cost cost.h to hw'
check "one that is not there" 'docs/layers.txt: hw has no none.h for cost
docs/layers.txt: cost has no cost.h for hw
src/cost/cost.c:1: "chip.h" is not in src/cost'

tests=$((tests + 1))
if said="$(cd "$root" && ${CC:-cc} -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -Iinclude -fsyntax-only \
    scripts/fit-serving.c scripts/fit-steps.c scripts/hierarchy.c scripts/evidence.c 2>&1)"; then
    echo "ok $tests - the fits call what there is"
else
    echo "not ok $tests - the fits call what there is"
    failures=1
    echo "$said" | sed 's/^/# /'
fi

echo "1..$tests"
exit $failures

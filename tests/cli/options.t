#!/bin/sh
# Every option that help shows stands in the man page of its verb, or in that of the program.
. "$(dirname "$0")/runner.sh"
verbs="$(scalemodel help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^help$')"
for verb in $verbs; do
    page="$root/man/scalemodel-$verb.1"
    for option in $(scalemodel help "$verb" | sed -n 's/^  \(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
        tests=$((tests + 1))
        if grep -qs "Fl -$option\b" "$page" "$root/man/scalemodel.1"; then
            echo "ok $tests - $verb --$option"
        else
            failures=$((failures + 1))
            echo "not ok $tests - $verb --$option is in no man page"
        fi
    done
done
[ "$tests" -gt 0 ] || { echo "not ok 1 - help lists no verb" && failures=1; }
finish_tests

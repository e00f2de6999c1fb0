#!/bin/sh
# Man pages against the tables of options, both ways: every option of a verb stands in its page with
# its default, every option of a page is one of the verb's; the lists that pages take from help are
# those that help prints (UPDATE=1 writes them anew).
. "$(dirname "$0")/runner.sh"

check() { # NAME STATUS
    tests=$((tests + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $tests - $1"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $1"
    fi
}

# Options of help, one in a line: "--seq|default 4096" or "--seq|".
options_of() {
    scalemodel help "$1" | awk '
    function flush() { if (name) print name "|" standard; name = "" }
    /^options:$/ { inside = 1; next }
    inside && /^$/ { exit }
    inside && /^  -/ {
        flush()
        standard = text = ""
        match($0, /--?[a-z][a-z-]*/)
        name = substr($0, RSTART, RLENGTH)
        if (match($0, /, --[a-z-]*/)) name = substr($0, RSTART + 2, RLENGTH - 2)
    }
    inside {
        sub(/^ */, "")
        text = text " " $0
        if (match(text, /default [^ ();:]+\)/)) standard = substr(text, RSTART + 8, RLENGTH - 9)
    }
    END { flush() }'
}

# The item of an option in a page, from its .It to the next.
item_of() { awk -v name="$2" '
    /^\.It / { inside = 0; for (i = 2; i <= NF; i++) if ($i == "Fl" && $(i + 1) == name) inside = 1 }
    /^\.El/ { inside = 0 }
    inside' "$1"; }

common="--json --csv --explain --output -o --system --help"
verbs="$(scalemodel help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^help$' | grep -v '^run$')"
for verb in $verbs; do
    page="$root/man/scalemodel-$verb.1"
    options_of "$verb" >"$place/options"
    while IFS='|' read -r option standard; do
        case " $common " in
        *" $option "*) [ -n "$(item_of "$root/man/scalemodel.1" "${option#-}")" ] ;;
        *) [ -n "$(item_of "$page" "${option#-}")" ] ;;
        esac
        check "$verb $option is in its man page" $?
        [ -z "$standard" ] || { item_of "$page" "${option#-}" | grep -qwF -- "$standard"; }
        check "$verb $option has the default $standard there" $?
    done <"$place/options"
    for option in $(sed -n '/^\.It Fl/p' "$page" | tr ' ' '\n' | sed -n '/^Fl$/{n;p;}'); do
        grep -q "^-$option|" "$place/options" || scalemodel help "$verb" | grep -q "^  -$option[, ]"
        check "-$option of the page of $verb is an option" $?
    done
done

# help NAME, or run help VERB of "run VERB".
list_of() {
    case "$1" in
    'run '*) scalemodel run help "${1#run }" ;;
    *) scalemodel help "$1" ;;
    esac | "$root/scripts/man-list.sh"
}

for page in "$root"/man/*.1; do
    sed -n 's/^\.\\" list: //p' "$page" | while IFS= read -r name; do
        list_of "$name" >"$place/list"
        awk -v name="$name" -v list="$place/list" '
        $0 == ".\\\" list: " name { print; getline; print; while ((getline line < list) > 0) print line; skip = 1; next }
        $0 == ".El" { skip = 0 }
        !skip' "$page" >"$place/page"
        if cmp -s "$page" "$place/page"; then echo "ok $name"; else echo "not ok $name"; fi
        [ -z "${UPDATE:-}" ] || cat "$place/page" >"$page"
    done >"$place/lists"
    while read -r word name; do
        [ "$word" = ok ]
        check "$(basename "$page") has the list of help ${name#ok }" $?
    done <"$place/lists"
done
[ "$tests" -gt 0 ] || { echo "not ok 1 - help lists no verb" && failures=1; }
finish_tests

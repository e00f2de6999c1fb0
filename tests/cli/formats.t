#!/bin/sh
# Tables of data/formats become C: what a row says is what the array holds, and a file that says
# what no column is, or nothing where a word must stand, breaks the build at its place.
embed="$(dirname "${SCALEMODEL:-build/scalemodel}")/host/embed"
[ -x "$embed" ] || {
    echo "1..0 # SKIP no $embed: this program was built elsewhere"
    exit 0
}
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
tests=0
failures=0
# check NAME FILE EXPECTED: the second line on of what is printed, or the complaint.
check() {
    tests=$((tests + 1))
    printf '%s\n' "$2" >"$place/x.json"
    "$embed" formats "$place/x.json" >"$place/out" 2>"$place/complaint"
    found="$(cat "$place/out")"
    [ -s "$place/complaint" ] && found="$(sed "s:$place/::" "$place/complaint")"
    case $found in
    *"$3"*) echo "ok $tests - $1" ;;
    *)
        failures=$((failures + 1))
        echo "not ok $tests - $1"
        printf '%s\n' "$found" | sed 's/^/# /'
        ;;
    esac
}
table() { # ROWS
    printf '{"header": "h.h", "ops": {"row": "op", "columns": ["name", "does:DO_", "at@place", "of#n", "list", "is"], "rows": [%s]}}' "$1"
}
check "texts, words, members, other tables, lists, truths" \
    "$(table '["a::b", "sit-down", "x.y", "kin", [1, 2.5], true]')" \
    '{.name = "a::b", .does = DO_SIT_DOWN, .at = offsetof(place, x.y), .of = x_kin, .n = sizeof x_kin / sizeof *x_kin, .list = {1.0, 2.5, }, .is = true, },'
check "how many rows there are" "$(table '["a"], ["b"]')" 'const size_t x_ops_count = 2;'
check "a row by the names of its columns" "$(table '{"is": true, "name": "a"}')" '{.name = "a", .is = true, },'
check "null says nothing" "$(table '["a", null, null, null, null, true]')" '{.name = "a", .is = true, },'
check "a key that is no column" "$(table '{"name": "a", "iz": true}')" 'x.json:1:'
check "more values than columns" "$(table '["a", "b", "c", "d", [], true, 1]')" 'this row says more than its columns are'
check "a number for a word" "$(table '["a", 3]')" 'expected a word'
check "a table without rows" "$(table '')" 'expected "row", "columns" and "rows"'
check "a file without its header" '{"ops": {}}' 'expected "header"'

# Verbs: what help says of them, with lists of options that several have.
printf '%s' '{"columns": ["name", "kind:CLI_", "words*", "highest="], "both": [{"name": "a", "kind": "int", "highest": "MOST"}]}' >"$place/options.json"
verb() { # NAME OPTIONS EXPECTED
    tests=$((tests + 1))
    printf '{"summary": "s", "notes": ["one", "two"], "options": [%s]}\n' "$2" >"$place/run-it.json"
    found="$("$embed" verbs "$place/options.json" "$place/run-it.json" 2>&1 | tr '\n' ' ')"
    case $found in
    *"$3"*) echo "ok $tests - $1" ;;
    *) failures=$((failures + 1)) && echo "not ok $tests - $1" && printf '# %s\n' "$found" ;;
    esac
}
verb "a verb, and a list of options" '"both"' \
    '{.name = "a", .kind = CLI_INT, .highest = MOST, },     {.name = NULL}, }; const cli_about verbs_run_it = { .options = run_it_options, .name = "run it", .summary = "s",'
verb "lines of notes" '' '.notes = """one""\n" "two""\n" };'
verb "words, and a bound" '{"name": "b", "words": ["x", "y"], "highest": 5}' \
    '{.name = "b", .words = {(const char *const[]){"x", "y", }, 2}, .highest = 5.0, },'
verb "words of C" '{"name": "b", "words": "names[COUNT]"}' '.words = {names, COUNT}'
verb "a list that there is not" '"neither"' 'options.json has no such list'
verb "a key that is no column" '{"name": "b", "least": 1}' 'this row says more than its columns are'
echo "1..$tests"
exit "$failures"

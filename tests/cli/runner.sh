# Runs the commands written in a file and compares what they print with what the file says. TAP on
# standard output; sourced by tests/cli/*.t.
#
# A golden file holds commands and, below each, everything it gave:
#     $ scalemodel chip tpu-v5        the command, run by sh in a folder of its own
#     | a line of standard output
#     ! a line of standard error
#     = 3                             the exit status, when it is not 0
# Any other line is a comment. A page (man/*.1 between .Bd and .Ed, *.md between ```console and ```)
# holds "$ command" and below it what a terminal shows, standard output and error together. There a
# line [...] stands for any lines, and what a search took, in seconds and in plans priced, is not
# compared.
#
# UPDATE=1 writes what the commands really gave into the file; then read the diff.

root="$(cd "$(dirname "$0")/../.." && pwd)"
program="${SCALEMODEL:-$root/build/scalemodel}"
case "$program" in /*) ;; *) program="$PWD/$program" ;; esac
[ -x "$program" ] || { echo "not ok 1 - $program is not built" && exit 1; }
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
mkdir "$place/work"
ln -s "$root/tests/cli/inputs" "$place/work/inputs"
ln -s "$root/data" "$place/work/data"
ln -s "$root/man" "$place/work/man"
ln -s "$root/docs" "$place/work/docs"
export LC_ALL=C
tests=0
failures=0
newline='
'

scalemodel() { "$program" "$@"; }

until_true() { # until_true COMMAND...: as soon as it is, within two minutes: machines are slow under load
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || return 1
        sleep 0.2
    done
}

check() { # check NAME COMMAND: the command succeeds
    tests=$((tests + 1))
    if eval "$2" >"$place/out" 2>"$place/err" </dev/null; then
        echo "ok $tests - $1"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $1"
        sed 's/^/# /' "$place/out" "$place/err"
    fi
}

# Run $command in the work folder; leave what it gave in $place/actual, in the form of the file.
run_command() {
    (cd "$place/work" && eval "$command") >"$place/out" 2>"$place/err" </dev/null
    status=$?
    if [ "$kind" = golden ]; then
        [ ! -s "$place/out" ] || sed -e 's/^/| /' -e 's/^| $/|/' "$place/out"
        [ ! -s "$place/err" ] || sed -e 's/^/! /' -e 's/^! $/!/' "$place/err"
        [ "$status" -eq 0 ] || echo "= $status"
    elif [ "$kind" = man ]; then
        cat "$place/out" "$place/err" | sed -e 's/\\/\\e/g' -e "s/^\\([.']\\)/\\\\\\&\\1/"
    else
        cat "$place/out" "$place/err"
    fi >"$place/actual"
}

# The seconds of a search differ from run to run, the plans it prices whenever a bound is improved.
without_effort() {
    sed -e 's/^The search took [0-9.]* [um]*s\.$/The search took some time./' \
        -e 's/ plans: [0-9.]*[kMB]* priced, / plans: some priced, /' "$1"
}

# Is what was given what was expected? In a page the parts between lines [...] must follow one another.
as_expected() {
    cmp -s "$place/expected" "$place/actual" && return 0
    [ "$kind" = markdown ] || return 1
    without_effort "$place/expected" >"$place/pattern"
    without_effort "$place/actual" >"$place/given"
    awk '
    function matches(i, p,    k) { # pattern from p on against the lines from i on
        for (; p <= parts && pattern[p] != "[...]"; p++)
            if (i > lines || line[i++] != pattern[p]) return 0
        if (p > parts) return i > lines
        for (k = i; k <= lines + 1; k++) if (matches(k, p + 1)) return 1
        return 0
    }
    NR == FNR { pattern[++parts] = $0; next }
    { line[++lines] = $0 }
    END { exit !matches(1, 1) }' "$place/pattern" "$place/given"
}

finish_command() {
    [ -n "$command" ] || return 0
    [ "$kind" = man ] && command="$(printf '%s\n' "$command" | sed -e 's/\\e/\\/g' -e 's/\\&//g')"
    run_command
    if as_expected; then same=expected; else same=actual; fi
    [ -z "${UPDATE:-}" ] || cat "$place/$same" >>"$place/updated"
    tests=$((tests + 1))
    case "$command" in # a process less for most, of which there are thousands
    *[#"$newline"]*) name="$(printf '%s' "$command" | tr '\n#' '  ')" ;;
    *) name="$command" ;;
    esac
    if [ "$same" = expected ]; then
        echo "ok $tests - $name"
    elif [ -n "${UPDATE:-}" ]; then
        echo "ok $tests - $name # updated"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $name"
        diff "$place/expected" "$place/actual" | head -n 30 | sed 's/^/# /'
    fi
    command=
    : >"$place/expected"
}

keep_line() { [ -z "${UPDATE:-}" ] || printf '%s\n' "$line" >>"$place/updated"; }

golden_line() {
    case "$line" in
    '$ '*)
        finish_command
        command="${line#??}"
        keep_line
        ;;
    '|'* | '!'* | '= '*) printf '%s\n' "$line" >>"$place/expected" ;;
    '> '*)
        command="$command
${line#??}"
        keep_line
        ;;
    *)
        finish_command
        keep_line
        ;;
    esac
}

# In a page a command goes on in the next line after a backslash.
page_line() {
    case "$line" in
    '.Bd '* | '```console') inside=yes ;;
    '.Ed' | '```') finish_command && inside= ;;
    '$ '*) [ -z "$inside" ] || { finish_command && command="${line#??}" && goes_on; } ;;
    *) if [ -n "$inside" ]; then page_text && return; fi ;;
    esac
    keep_line
}

goes_on() { case "$line" in *\\ | *\\e) more=yes ;; *) more= ;; esac; }

# True when the line is output, which the update writes anew; lines above any command stay.
page_text() {
    [ -n "$command" ] || return 1
    if [ -n "$more" ]; then
        command="$command
$line"
        goes_on
        return 1
    fi
    printf '%s\n' "$line" >>"$place/expected"
}

# run_file FILE: kind by its name.
run_file() {
    case "$1" in *.golden) kind=golden ;; *.1) kind=man ;; *) kind=markdown ;; esac
    command= inside= more=
    : >"$place/expected"
    : >"$place/updated"
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "$kind" = golden ]; then golden_line; else page_line; fi
    done <"$1"
    finish_command
    if [ -n "${UPDATE:-}" ] && ! cmp -s "$1" "$place/updated"; then cat "$place/updated" >"$1"; fi
}

finish_tests() {
    echo "1..$tests"
    [ "$failures" -eq 0 ]
}

# Ranks that are processes; sourced by tests/cli/*.t after runner.sh.

say() { # say NAME, after a test
    said=$?
    tests=$((tests + 1))
    if [ "$said" -eq 0 ]; then echo "ok $tests - $1"; else
        failures=$((failures + 1))
        echo "not ok $tests - $1"
        sed 's/^/# /' "$place/out" "$place/err" | head -n 20
    fi
}

# A process of this program below this one.
rank_of() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" = "$2" ] || continue
        parent="${process#/proc/}"
        while [ "${parent:-1}" -gt 1 ] && [ "$parent" != "$1" ]; do
            parent="$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$parent/status" 2>/dev/null)"
        done
        [ "$parent" = "$1" ] && echo "${process#/proc/}" && return
    done
}

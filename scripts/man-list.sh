#!/bin/sh
# What help prints of options or of keys of a plan, on standard input, as the items of a list in
# mdoc. The man pages hold such lists between lines '.\" list: NAME' and '.\" end of list', NAME
# being what `scalemodel help NAME` tells of; tests/cli/options.t holds them equal.
awk '
function flush(    part, name) {
    if (head == "") return
    if (split(head, part, "=") == 2) list = list sprintf(".It Cm %s Ns = Ns Li %s\n", part[1], part[2])
    else {
        sub(/^-[a-z], /, "", head)
        name = head
        sub(/ .*/, "", name)
        sub(/^--/, "-", name)
        sub(/^[^ ]* */, "", head)
        if (head != "") name = name " Ar " (length(head) > 1 ? tolower(head) : head)
        list = list ".It Fl " name "\n"
    }
    sub(/^\047/, "\\\\(aq", text)
    first = text ~ /^[a-z0-9]*=/ ? substr(text, 1, 1) : toupper(substr(text, 1, 1))
    list = list first substr(text, 2) ".\n"
    head = ""
}
/^options:$/ { inside = 1; next }
/^keys:$/ { inside = 1; list = ""; next } # of a plan: they are the list, whatever came before
!inside { next }
/^$/ || /^  --json/ {
    flush()
    inside = 0
    next
}
/^  [-a-z]/ {
    flush()
    head = substr($0, 3)
    text = ""
    if (match(head, /   */)) {
        text = substr(head, RSTART + RLENGTH)
        head = substr(head, 1, RSTART - 1)
    }
    next
}
{
    sub(/^ */, "")
    if (text == "" && head ~ /[|]$/) { # words of a key on a line more
        head = head $0
        next
    }
    text = text (text == "" ? "" : " ") $0
}
END {
    flush()
    printf "%s", list
}'

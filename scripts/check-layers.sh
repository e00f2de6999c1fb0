#!/bin/sh
# Hold every #include against docs/layers.txt: no include climbs, outside libraries stay in the
# layer that names them, private headers stay in their folder. Prints each break; exits 1 on any.
# usage: scripts/check-layers.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"

find src -name '*.[ch]' | LC_ALL=C sort | awk -F/ '
$NF in first { print $0 ": its name is that of " first[$NF]; broken = 1; next }
{ first[$NF] = $0 }
END { exit broken }' && named=0 || named=1
find src include -name '*.[ch]' | LC_ALL=C sort | xargs grep -HnE '^[[:space:]]*#[[:space:]]*include' |
LC_ALL=C awk '
function fail(text) { print place ": " text; broken = 1 }
function words(text, set, at, n, parts) {
    n = split(text, parts, " ")
    for (at = 1; at <= n; at++) set[parts[at]] = 1
}
BEGIN {
    words("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal " \
          "stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath " \
          "threads time uchar wchar wctype dirent fcntl pthread sched strings unistd sys/mman sys/prctl sys/stat " \
          "sys/types sys/wait sys/resource sys/time sys/socket netinet/in arpa/inet", libc)
    while (("find src -name \"*.h\"" | getline line) > 0) {
        n = split(line, path, "/")
        inside[path[2], path[n]] = 1
    }
    while ((getline line < "docs/layers.txt") > 0) {
        if (line ~ /^[ \t]*(#|$)/) continue
        if (line ~ /^lend /) {
            n = split(line, field, " ")
            for (i = 5; i <= n; i++)
                if (((field[2], field[3]) in inside) && lends(field[i], field[2])) lent[field[i], field[3]] = 1
                else { print "docs/layers.txt: " field[2] " has no " field[3] " for " field[i]; broken = 1 }
            continue
        }
        n = split(line, field, "|")
        layer = field[1]; gsub(/[ \t]/, "", layer)
        known[layer] = 1
        split("", set); words(field[2], set)
        for (h in set) { owner[h] = layer; may[layer, h] = 1; headers[layer] = headers[layer] " " h }
        split("", set); words(field[3], set)
        for (l in set) {
            if (l == "*") { every[layer] = 1; continue }
            if (!(l in known)) { print "docs/layers.txt: " layer " may include " l ", which is not below it"; broken = 1 }
            m = split(headers[l], list, " ")
            for (i = 1; i <= m; i++) may[layer, list[i]] = 1
        }
        split("", set); words(n >= 4 ? field[4] : "", set)
        for (l in set) library[layer, l] = 1
    }
}
function lends(to, from,    m, i, list) { # may `to` include the public headers of `from`?
    m = split(headers[from], list, " ")
    for (i = 1; i <= m; i++) if (!(to in every) && !((to, list[i]) in may)) return 0
    return m > 0
}
function is_private(name, layer) { # in the folder of the layer or in one of those within it
    return ((layer, name) in inside) || ((layer, name) in lent)
}
{
    split($0, part, ":"); file = part[1]; place = file ":" part[2]
    what = $0; sub(/^[^#]*#[ \t]*include[ \t]*/, "", what)
    name = what; sub(/^[<"]/, "", name); sub(/[>"].*$/, "", name)
    n = split(file, path, "/")
    if (path[1] == "include") { base = path[n]; sub(/\.h$/, "", base); layer = owner[base] }
    else layer = path[2]
    if (!(layer in known)) { fail("layer \"" layer "\" is not in docs/layers.txt"); next }
    if (what ~ /^</) {
        sub(/\.h$/, "", name)
        if (!(name in libc) && !((layer, name) in library))
            fail("<" name ".h> is not of the C library; layer " layer " may not use it")
    } else if (name ~ /^scalemodel\//) {
        sub(/^scalemodel\//, "", name); sub(/\.h$/, "", name)
        if (!(name in owner)) fail("scalemodel/" name ".h belongs to no layer of docs/layers.txt")
        else if (!(layer in every) && !((layer, name) in may))
            fail("layer " layer " may not include scalemodel/" name ".h (layer " owner[name] ")")
    } else if (name ~ /\// ) fail("\"" name "\" reaches out of its folder")
    else if (path[1] == "include") fail("a public header includes the private \"" name "\"")
    else if (!is_private(name, path[2]))
        fail("\"" name "\" is not in " path[1] "/" path[2])
}
END { exit broken }'
[ "$named" -eq 0 ]

# JSON on standard input as lines "path value": plans.0.step_time_s.expected 12.6
# Strings keep their quotes. Enough for what this program writes; not a checker of JSON.
BEGIN { RS = "\001" } # all of it is one record
{ text = $0 }
function skip() { while (substr(text, at, 1) ~ /[ \n,:]/) at++ }
function string(    from) {
    from = at++
    while (substr(text, at, 1) != "\"") at += substr(text, at, 1) == "\\" ? 2 : 1
    at++
    return substr(text, from, at - from)
}
function value(path,    n, key, c, sub_path) {
    skip()
    c = substr(text, at, 1)
    if (c == "{" || c == "[") {
        at++
        skip()
        for (n = 0; substr(text, at, 1) !~ /[]}]/; n++) {
            key = n
            if (c == "{") { key = string(); key = substr(key, 2, length(key) - 2) }
            sub_path = path == "" ? key : path "." key
            value(sub_path)
            skip()
        }
        at++
        if (c == "[") print path ".count", n
        return
    }
    if (c == "\"") { print path, string(); return }
    match(substr(text, at, 64), /^[-+.0-9a-zA-Z]+/) # of the whole rest each time is quadratic
    print path, substr(text, at, RLENGTH)
    at += RLENGTH
}
END { at = 1; value("") }

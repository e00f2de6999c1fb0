# The calibrations of data/calibration/*.txt as a C table. Reads include/scalemodel/cost.h first, for
# the names and the ranges of the constants. A wrong key, a value out of range, a missing constant
# or a calibration given twice ends with a message and status 1.
# usage: awk -f scripts/calibration_table.awk include/scalemodel/cost.h data/calibration/*.txt

function fail(text) {
    print place() ": " text > "/dev/stderr"
    failed = 1
    exit 1
}
function place() { return section_file ? section_file ":" section_line : FILENAME ":" FNR }
function trimmed(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
function quoted(text) { gsub(/\\/, "&&", text); gsub(/"/, "\\\\&", text); return "\"" text "\"" }
function is_number(text) { return text ~ /^([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$/ }

# ---- cost.h: X(name, low, high, "unit", "meaning") and X(name, "words") ----

function constant_of(line, part) {
    if (!match(line, /X\([a-z_0-9]+, [-0-9.e]+, [-0-9.e]+,/)) return
    split(substr(line, RSTART + 2, RLENGTH - 3), part, ", ")
    constant[++constants] = part[1]
    low[part[1]] = part[2]
    high[part[1]] = part[3]
}
function regimes_of(line) {
    while (match(line, /X\([a-z]+, "/)) {
        regime[substr(line, RSTART + 2, RLENGTH - 5)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
}
FILENAME ~ /\.h$/ {
    if (/^#define SM_[A-Z]+\(X\)/) reading = $2
    if (reading == "SM_CONSTANTS(X)") constant_of($0)
    if (reading == "SM_REGIMES(X)") regimes_of($0)
    if (!/\\$/) reading = ""
    next
}

# ---- a section ----

function begin(heading, part) {
    if (heading !~ /^\[[A-Za-z0-9._-]+ +[A-Za-z0-9._-]+\]$/)
        fail("expected a heading such as [h100 megatron], found " heading)
    split(substr(heading, 2, length(heading) - 2), part, " ")
    if ((part[1], part[2]) in known) fail(heading " is given twice")
    known[part[1], part[2]] = 1
    split("", value)
    text["source"] = text["range"] = fitted = intervals = ""
    open = heading
    chip = part[1]
    software = part[2]
    opened_file = FILENAME
    opened_line = FNR
}
function finish(   i, name) {
    if (!open) return
    section_file = opened_file
    section_line = opened_line
    if (text["source"] == "") fail(open " has no source")
    printf "    {.chip = %s, .software = %s,\n", quoted(chip), quoted(software)
    printf "     .source = %s,\n     .range = %s,\n", quoted(text["source"]), quoted(text["range"])
    for (i = 1; i <= constants; i++) {
        name = constant[i]
        if (!(name in value)) fail(open " has no " name)
        printf "     .%s = %s,\n", name, value[name]
    }
    if (intervals != "") printf "     .interval = {%s},\n", intervals
    printf "     .fitted = 0u%s},\n", fitted
    open = section_file = ""
}

# ---- its lines ----

function set_number(key, given) {
    if (!is_number(given)) fail(key " wants a number, found '" given "'")
    if (given + 0 < low[key] + 0 || given + 0 > high[key] + 0)
        fail(key " = " given " is not from " low[key] " to " high[key])
    value[key] = given + 0 == int(given + 0) && given !~ /[.eE]/ ? given ".0" : given
}
function set_fitted(given,   n, i, name) {
    sub(/[ \t]*#.*$/, "", given)
    n = split(given, name, /[ \t]+/)
    for (i = 1; i <= n; i++) {
        if (!(name[i] in low)) fail("fitted: '" name[i] "' is no constant")
        fitted = fitted " | 1u << SM_CONSTANT_" name[i]
    }
}
function set_interval(key, given,   part) {
    if (!(key in regime)) fail("interval." key ": there is no such regime")
    if (split(given, part, /[ \t]+/) != 3 || !is_number(part[1]) || !is_number(part[2]) ||
        part[3] !~ /^[0-9]+$/ || part[1] <= 0 || part[2] + 0 < part[1] + 0 || part[3] + 0 < 1)
        fail("interval." key " wants the lowest, the highest and the number of rows")
    intervals = intervals (intervals == "" ? "" : ", ") "[SM_REGIME_" key "] = {" \
        part[1] ", " part[2] ", " part[3] "}"
}
function set(key, given) {
    if (!open) fail("'" key "' stands before any [chip software]")
    if (seen[open, key]++) fail(key " is given twice in " open)
    if (key == "source" || key == "range") { text[key] = given; return }
    sub(/[ \t]*#.*$/, "", given)
    if (key in low) set_number(key, given)
    else if (key == "fitted") set_fitted(given)
    else if (key ~ /^interval\./) set_interval(substr(key, 10), given)
    else fail("there is no key '" key "'; the constants are those of SM_CONSTANTS in cost.h")
}

BEGIN {
    print "/* Made from data/calibration by scripts/calibration_table.awk. */"
    print "#include \"calibration_table.h\"\n"
    print "const sm_calibration sm_shipped_calibrations[] = {"
}
FNR == 1 { last = "" }
/^[ \t]*(#|$)/ { next }
/^[ \t]/ {
    if (last == "fitted") { set_fitted(trimmed($0)); next }
    if (last != "source" && last != "range")
        fail("a line that begins with a blank goes on with source, range or fitted")
    text[last] = text[last] (text[last] == "" ? "" : " ") trimmed($0)
    next
}
/^\[/ { finish(); begin(trimmed($0)); last = ""; next }
{
    at = index($0, "=")
    if (!at) fail("expected 'key = value'")
    last = trimmed(substr($0, 1, at - 1))
    set(last, trimmed(substr($0, at + 1)))
}
END {
    if (!failed) finish()
    if (failed) exit 1
    print "};"
    print "const size_t sm_shipped_calibration_count ="
    print "    sizeof sm_shipped_calibrations / sizeof sm_shipped_calibrations[0];"
}

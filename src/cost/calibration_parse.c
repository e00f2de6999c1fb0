/* The text of calibration files: [chip software] headings, "key = value" lines, text that goes on
 * in lines that begin with a blank, comments from "#". docs/calibration-file.md describes it. */
#include "calibration_table.h"
#include <assert.h>
#include <string.h>

enum { KEY_SOURCE, KEY_RANGE, KEY_BASE, KEY_FITTED, WORD_KEYS };
enum { FIRST_INTERVAL = WORD_KEYS + SM_CONSTANT_COUNT, KEYS = FIRST_INTERVAL + SM_REGIME_COUNT };
enum { MOST_CALIBRATIONS = 1000, MOST_TEXT = 4000, SHOWN = 40 /* of a bad word in an error */ };

static const char *const keys[KEYS] = {"source", "range", "base", "fitted",
                                       SM_CONSTANTS(SM_ID_OF)
#define X(id, name) "interval." #id,
                                           SM_REGIMES(X)
#undef X
};
static const char *const *const constant_names = keys + WORD_KEYS;

typedef struct reader {
    const sm_source *source;
    sm_arena *arena;
    sm_error *err;
    sm_calibration *list;
    size_t n, headings; /* read; room in the list */
    /* the section being read */
    sm_span heading;
    uint64_t seen;              /* bit per key */
    const sm_calibration *base; /* gives the constants that are not written */
    const char **text;          /* what a line that begins with a blank goes on with, or NULL */
    bool fitted;                /* it goes on with the names of fitted constants */
    char words[MOST_TEXT + 1];  /* of that text so far */
    size_t words_length;
} reader;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static sm_span trim(const sm_source *source, sm_span s) {
    return sm_source_trim(source, s.offset, s.offset + s.length);
}

/* The first word of the rest, and the rest after it. */
static sm_span next_word(const sm_source *source, sm_span *rest) {
    const char *text = source->text;
    *rest = trim(source, *rest);
    sm_span word = {rest->offset, 0};
    while (word.length < rest->length && !is_blank(text[word.offset + word.length])) word.length++;
    rest->offset += word.length;
    rest->length -= word.length;
    return word;
}

/* "'lauch_s' is no constant; did you mean launch_s?" */
static sm_status fail_name(const reader *r, sm_span word, const char *what, sm_words names,
                           const char *otherwise) {
    const char *text = r->source->text + word.offset;
    const char *near = sm_nearest(text, word.length, names.word, (size_t)names.n);
    int shown = word.length < SHOWN ? (int)word.length : SHOWN;
    return sm_fail_at(r->err, r->source, word, "'%.*s' is no %s%s%s%s", shown, text, what,
                      near ? "; did you mean " : otherwise, near ? near : "", near ? "?" : "");
}

/* ---- values ---- */

static sm_status read_number(const reader *r, sm_span value, int constant) {
    const sm_constant_info *info = sm_constant_of((sm_constant)constant);
    bool seconds = strcmp(info->unit, "s") == 0;
    double number = 0.0;
    sm_status status =
        sm_quantity_parse(r->source, value, seconds ? SM_Q_SECONDS : SM_Q_COUNT, &number, r->err);
    if (status) return status;
    if (number < info->low || number > info->high)
        return sm_fail_at(r->err, r->source, value, "%s lies from %g to %g%s", info->name,
                          info->low, info->high, seconds ? " s" : "");
    sm_calibration_set(&r->list[r->n - 1], (sm_constant)constant, number);
    return SM_OK;
}

static sm_status read_interval(const reader *r, sm_span value, int regime) {
    sm_calibration *c = &r->list[r->n - 1];
    double lowest = 0.0, highest = 0.0;
    int64_t rows = 0;
    sm_span rest = value, first = next_word(r->source, &rest), second = next_word(r->source, &rest);
    rest = trim(r->source, rest);
    if (rest.length == 0)
        return sm_fail_at(r->err, r->source, value,
                          "expected the lowest and highest measured / expected and the number of "
                          "rows, as in 0.91 1.12 138");
    sm_status status = sm_quantity_parse(r->source, first, SM_Q_COUNT, &lowest, r->err);
    if (!status) status = sm_quantity_parse(r->source, second, SM_Q_COUNT, &highest, r->err);
    if (!status) status = sm_integer_parse(r->source, rest, 1, 1000000000, &rows, r->err);
    if (status) return status;
    if (!(lowest > 0.0) || highest < lowest)
        return sm_fail_at(r->err, r->source, value,
                          "an interval runs from a lowest above 0 to a highest not below it");
    c->interval[regime].lowest = lowest;
    c->interval[regime].highest = highest;
    c->interval[regime].n = (int)rows;
    return SM_OK;
}

static sm_status read_fitted(const reader *r, sm_span value) {
    const sm_words names = {constant_names, SM_CONSTANT_COUNT};
    for (sm_span rest = trim(r->source, value); rest.length > 0; rest = trim(r->source, rest)) {
        sm_span word = next_word(r->source, &rest);
        int i = sm_words_find(names, r->source, word);
        if (i < 0) return fail_name(r, word, "constant", names, "");
        r->list[r->n - 1].fitted |= 1u << i;
    }
    return SM_OK;
}

static sm_status read_base(reader *r, sm_span value) {
    const char *text = r->source->text;
    sm_span rest = value, chip = next_word(r->source, &rest),
            software = next_word(r->source, &rest);
    const char *name = sm_arena_copy(r->arena, text + chip.offset, chip.length);
    const char *kind = sm_arena_copy(r->arena, text + software.offset, software.length);
    if (!name || !kind) return sm_fail_memory(r->err);
    if (chip.length > 0 && trim(r->source, rest).length == 0)
        r->base = sm_calibration_find(name, *kind ? kind : NULL);
    if (r->base) return SM_OK;
    return sm_fail_at(r->err, r->source, value,
                      "expected a chip and a software that 'chip NAME --calibration' lists, as in "
                      "h100 default");
}

/* Nothing that must not reach a terminal. */
static sm_status check_text(const reader *r, sm_span value) {
    const char *text = r->source->text;
    for (size_t at = value.offset, end = at + value.length; at < end;) {
        uint32_t code = ' ';
        size_t bytes = text[at] == '\t' ? 1 : sm_utf8_decode(text + at, end - at, &code);
        if (bytes == 0 || sm_utf8_width(code) < 0)
            return sm_fail_at(r->err, r->source, (sm_span){at, 1},
                              "expected text, found a control character or malformed UTF-8");
        at += bytes;
    }
    return SM_OK;
}

/* Words are joined by single blanks. */
static sm_status read_text(reader *r, sm_span value) {
    const char *text = r->source->text;
    value = trim(r->source, value);
    if (r->words_length + value.length + 1 > MOST_TEXT)
        return sm_fail_at(r->err, r->source, value, "a text has at most %d bytes", MOST_TEXT);
    for (sm_span rest = value; rest.length > 0; rest = trim(r->source, rest)) {
        sm_span word = next_word(r->source, &rest);
        if (r->words_length > 0) r->words[r->words_length++] = ' ';
        memcpy(r->words + r->words_length, text + word.offset, word.length);
        r->words_length += word.length;
    }
    return check_text(r, value);
}

static sm_status end_text(reader *r) {
    if (!r->text) return SM_OK;
    *r->text = sm_arena_copy(r->arena, r->words, r->words_length);
    r->words_length = 0;
    if (!*r->text) return sm_fail_memory(r->err);
    r->text = NULL;
    return SM_OK;
}

/* ---- measured collectives, "line.all-reduce.2 = 1.1e-4 3.8e-11" ----
 * seconds = latency_s + bytes s_per_byte on groups of so many ranks, in place of the algorithms of
 * collective_curve.c. On ranks of one memory a collective is what its library copies and adds
 * there, of which no wire and no protocol tell. */

static const char prefix[] = "line.";
enum { PREFIX = sizeof prefix - 1, MOST_LINES = 128, MOST_RANKS = 1000000 };

/* The collective and the ranks that a key names. */
static sm_status read_key(const reader *r, sm_span key, sm_collective_line *line) {
    const char *name = r->source->text + key.offset + PREFIX;
    const char *dot = memchr(name, '.', key.length - PREFIX);
    int64_t ranks = 0;
    if (!dot || !sm_collective_parse(name, (size_t)(dot - name), &line->op))
        return sm_fail_at(r->err, r->source, key,
                          "expected line.COLLECTIVE.RANKS, as in line.all-reduce.2");
    sm_span number = {(size_t)(dot + 1 - r->source->text),
                      key.length - PREFIX - (size_t)(dot + 1 - name)};
    sm_status status = sm_integer_parse(r->source, number, 2, MOST_RANKS, &ranks, r->err);
    line->ranks = (int)ranks;
    return status;
}

static sm_status read_measured(const reader *r, sm_span key, sm_span value) {
    sm_calibration *c = &r->list[r->n - 1];
    sm_collective_line line = {.ranks = 0};
    sm_span rest = value, first = next_word(r->source, &rest);
    sm_status status = read_key(r, key, &line);
    if (status) return status;
    rest = trim(r->source, rest);
    if (rest.length == 0)
        return sm_fail_at(r->err, r->source, value,
                          "expected seconds of latency and seconds per byte, as in 2e-5 4e-11");
    status = sm_quantity_parse(r->source, first, SM_Q_SECONDS, &line.line.latency_s, r->err);
    if (!status)
        status = sm_quantity_parse(r->source, rest, SM_Q_COUNT, &line.line.s_per_byte, r->err);
    if (status) return status;
    if (line.line.latency_s > 1.0 || line.line.s_per_byte > 1.0)
        return sm_fail_at(r->err, r->source, value, "both lie from 0 to 1 s");
    if (sm_calibration_line(c, line.op, line.ranks))
        return sm_fail_at(r->err, r->source, key, "%s of %d ranks is given twice",
                          sm_collective_name(line.op), line.ranks);
    if (c->lines == MOST_LINES)
        return sm_fail_at(r->err, r->source, key, "a calibration has at most %d lines", MOST_LINES);
    sm_collective_line *more = sm_arena_array(r->arena, (size_t)c->lines + 1, sizeof *more);
    if (!more) return sm_fail_memory(r->err);
    if (c->lines) memcpy(more, c->line, (size_t)c->lines * sizeof *more);
    more[c->lines++] = line;
    c->line = more;
    return SM_OK;
}

/* ---- lines ---- */

static sm_span without_comment(const sm_source *source, sm_span value) {
    const char *comment = memchr(source->text + value.offset, '#', value.length);
    if (comment) value.length = (size_t)(comment - source->text) - value.offset;
    return trim(source, value);
}

static sm_status read_value(reader *r, int key, sm_span value) {
    sm_calibration *c = &r->list[r->n - 1];
    r->fitted = key == KEY_FITTED;
    r->text = key == KEY_SOURCE ? &c->source : key == KEY_RANGE ? &c->range : NULL;
    if (r->text) return read_text(r, value);
    value = without_comment(r->source, value);
    if (key == KEY_BASE) return read_base(r, value);
    if (key == KEY_FITTED) return read_fitted(r, value);
    assert(key < KEYS);
    if (key < FIRST_INTERVAL) return read_number(r, value, key - WORD_KEYS);
    return read_interval(r, value, key - FIRST_INTERVAL);
}

static sm_status read_pair(reader *r, sm_span line) {
    const char *text = r->source->text, *start = text + line.offset;
    const char *equals = memchr(start, '=', line.length);
    if (!equals)
        return sm_fail_at(r->err, r->source, line,
                          "expected key = value, or a heading such as [h100 my-cluster]");
    sm_span name = trim(r->source, (sm_span){line.offset, (size_t)(equals - start)});
    sm_span value = {(size_t)(equals + 1 - text), line.length - (size_t)(equals + 1 - start)};
    const sm_words all = {keys, KEYS};
    if (r->n > 0 && name.length > PREFIX && memcmp(text + name.offset, prefix, PREFIX) == 0) {
        sm_status ended = end_text(r);
        r->fitted = false;
        return ended ? ended : read_measured(r, name, without_comment(r->source, value));
    }
    int key = sm_words_find(all, r->source, name);
    if (key < 0)
        return fail_name(r, name, "key of a calibration", all,
                         ": they are source, range, base, fitted, interval.REGIME and the "
                         "constants of 'chip NAME --calibration'");
    if (r->n == 0)
        return sm_fail_at(r->err, r->source, name,
                          "expected a heading such as [h100 my-cluster] before the first key");
    if (r->seen >> key & 1)
        return sm_fail_at(r->err, r->source, name, "%s is given twice", keys[key]);
    r->seen |= UINT64_C(1) << key;
    sm_status status = end_text(r);
    return status ? status : read_value(r, key, value);
}

/* Constants that are not written come from the base; without one they are missing. */
static sm_status end_section(reader *r) {
    sm_status status = end_text(r);
    if (status) return status;
    for (int i = 0; r->n > 0 && i < SM_CONSTANT_COUNT; i++) {
        if (r->seen >> (WORD_KEYS + i) & 1) continue;
        if (!r->base && i >= SM_CONSTANT_routing_s) continue; /* files of before them */
        if (!r->base)
            return sm_fail_at(r->err, r->source, r->heading,
                              "this calibration has no %s; write it, or base = CHIP SOFTWARE to "
                              "take what is not written from a shipped calibration",
                              constant_names[i]);
        sm_calibration_set(&r->list[r->n - 1], (sm_constant)i,
                           sm_calibration_get(r->base, (sm_constant)i));
    }
    return SM_OK;
}

static bool is_name(const char *text, sm_span s) {
    for (size_t i = 0; i < s.length; i++) {
        char c = text[s.offset + i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && !memchr("._-", c, 3)) return false;
    }
    return s.length > 0;
}

static sm_status read_heading(reader *r, sm_span line) {
    const char *text = r->source->text;
    sm_status status = end_section(r);
    if (status) return status;
    sm_span rest = {line.offset + 1, line.length - 2};
    bool closed = line.length > 2 && text[line.offset + line.length - 1] == ']';
    sm_span chip = {0, 0}, software = {0, 0};
    if (closed) chip = next_word(r->source, &rest), software = next_word(r->source, &rest);
    if (!closed || !is_name(text, chip) || !is_name(text, software) ||
        trim(r->source, rest).length > 0)
        return sm_fail_at(r->err, r->source, line,
                          "a heading names a chip and a software, as in [h100 my-cluster]");
    if (r->n == MOST_CALIBRATIONS)
        return sm_fail_at(r->err, r->source, line, "a file holds at most %d calibrations",
                          MOST_CALIBRATIONS);
    assert(r->n < r->headings);
    sm_calibration *c = &r->list[r->n++];
    c->chip = sm_arena_copy(r->arena, text + chip.offset, chip.length);
    c->software = sm_arena_copy(r->arena, text + software.offset, software.length);
    c->source = c->range = "";
    c->elementwise_bytes = 1.0;
    if (!c->chip || !c->software) return sm_fail_memory(r->err);
    r->heading = line;
    r->seen = 0;
    r->base = NULL;
    r->fitted = false;
    for (size_t i = 0; i + 1 < r->n; i++)
        if (strcmp(r->list[i].chip, c->chip) == 0 && strcmp(r->list[i].software, c->software) == 0)
            return sm_fail_at(r->err, r->source, r->heading, "[%.40s %.40s] is given twice",
                              c->chip, c->software);
    return SM_OK;
}

static sm_status read_line(reader *r, sm_span line) {
    const char *text = r->source->text;
    bool indented = line.length > 0 && is_blank(text[line.offset]);
    line = trim(r->source, line);
    if (line.length == 0 || text[line.offset] == '#') return SM_OK;
    if (indented && r->text) return read_text(r, line);
    if (indented && r->fitted) return read_fitted(r, without_comment(r->source, line));
    if (indented)
        return sm_fail_at(r->err, r->source, line,
                          "a line that begins with a blank goes on with source, range or fitted; "
                          "this one follows none of them");
    return text[line.offset] == '[' ? read_heading(r, line) : read_pair(r, line);
}

/* ---- the file ---- */

static sm_span line_at(const sm_source *source, size_t at) {
    const char *end = memchr(source->text + at, '\n', source->length - at);
    return (sm_span){at, end ? (size_t)(end - source->text) - at : source->length - at};
}

sm_status sm_calibration_parse(const sm_source *source, sm_arena *arena, sm_calibration **list,
                               size_t *n, sm_error *err) {
    reader r = {.source = source, .arena = arena, .err = err};
    for (size_t at = 0; at < source->length && r.headings < MOST_CALIBRATIONS;
         at += line_at(source, at).length + 1)
        r.headings += source->text[at] == '[';
    r.list = sm_arena_array(arena, r.headings ? r.headings : 1, sizeof *r.list);
    if (!r.list) return sm_fail_memory(err);
    for (size_t at = 0; at < source->length;) {
        sm_span line = line_at(source, at);
        sm_status status = read_line(&r, line);
        if (status) return status;
        at += line.length + 1;
    }
    sm_status status = end_section(&r);
    if (status) return status;
    if (r.n == 0)
        return sm_fail_at(err, source, (sm_span){0, 0},
                          "expected a heading such as [h100 my-cluster], found no calibration");
    *list = r.list;
    *n = r.n;
    return SM_OK;
}

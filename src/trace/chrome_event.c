/* One event: its fields and those of its args that are understood. Times are decimal microseconds
 * of up to 2^63 ns, more than a double has digits for: they are read digit by digit. */
#include "traces_format.h"

#include <ctype.h>
#include <stdlib.h>

/* Most words differ in their first letter. */
static bool same(const char *text, size_t length, const char *word) {
    return length > 0 && *text == *word && strlen(word) == length && !memcmp(text, word, length);
}

bool chrome_is(const json_raw *key, const char *word) { return same(key->text, key->length, word); }

/* ---- numbers ---- */

enum { MOST_DIGITS = 18 };

/* Without a number nan, which profilers write bare: 0. */
static double real_of(const json_raw *raw) {
    char text[48];
    size_t n = raw->length < sizeof text - 1 ? raw->length : sizeof text - 1;
    memcpy(text, raw->text, n);
    text[n] = 0;
    double value = strtod(text, NULL);
    return isfinite(value) ? value : 0;
}

static int64_t within(double value) { return value > -9e18 && value < 9e18 ? (int64_t)value : 0; }

/* Microseconds, as ns and the ps beyond. */
static void time_of(const json_raw *raw, int64_t *ns, int64_t *ps) {
    size_t i = raw->length > 0 && *raw->text == '-', digits = 0;
    int64_t whole = 0, part = 0, unit = 100000;
    bool minus = i > 0;
    for (; i < raw->length && isdigit((unsigned char)raw->text[i]) && digits < MOST_DIGITS;
         i++, digits++)
        whole = 10 * whole + (raw->text[i] - '0');
    if (i < raw->length && raw->text[i] == '.')
        for (i++; i < raw->length && isdigit((unsigned char)raw->text[i]); i++, unit /= 10)
            part += unit * (raw->text[i] - '0');
    if (i < raw->length || whole > INT64_MAX / 1000 - 1) { /* an exponent, or no number */
        double ps_in_all = real_of(raw) * 1e6;
        *ns = within(floor(ps_in_all / 1e3));
        *ps = within(ps_in_all - (double)*ns * 1e3);
        return;
    }
    *ns = whole * 1000 + part / 1000;
    *ps = part % 1000;
    if (minus) *ns = -*ns, *ps = -*ps;
}

int64_t chrome_whole(const json_raw *raw) {
    size_t end = raw->length, begin;
    int64_t value = 0;
    if (raw->kind == IS_NUMBER) {
        for (begin = 0; begin < end && raw->text[begin] != '.' && raw->text[begin] != 'e'; begin++)
            ;
        if (begin < end) return within(real_of(raw));
    }
    if (end > 2 && raw->text[0] == '0' && raw->text[1] == 'x')
        return within((double)strtoull(raw->text + 2, NULL, 16));
    for (begin = end; begin > 0 && isdigit((unsigned char)raw->text[begin - 1]); begin--)
        ;
    if (raw->kind == IS_TEXT && begin == end) /* a name */
        return (int64_t)(sm_hash_bytes(raw->text, raw->length) >> 2);
    bool minus = begin > 0 && raw->text[begin - 1] == '-';
    for (size_t i = begin; i < end && i < begin + MOST_DIGITS; i++)
        value = 10 * value + (raw->text[i] - '0');
    return minus ? -value : value;
}

/* ---- texts ---- */

static int32_t name_of(json_lexer *l, trace_build *b, const json_raw *raw) {
    if (!raw->escapes) return trace_name(b, raw->text, raw->length);
    char *plain = sm_malloc(raw->length);
    if (!plain) return json_lexer_fail_memory(l), -1;
    int32_t name = trace_name(b, plain, json_raw_decode(raw, plain));
    sm_free(plain);
    return name;
}

chrome_category chrome_category_of(const char *text, size_t length) {
    for (size_t i = 0; i < traces_categories_count; i++)
        if (same(text, length, traces_categories[i].name)) return traces_categories[i].category;
    return length ? CHROME_UNKNOWN : CHROME_NONE;
}

/* ---- args ---- */

int chrome_arg_of(const char *key, size_t length) {
    for (size_t i = 0; i < traces_numbers_count; i++)
        if (same(key, length, traces_numbers[i].name)) return (int)traces_numbers[i].number;
    for (size_t i = 0; i < traces_texts_count; i++)
        if (same(key, length, traces_texts[i].name))
            return CHROME_NUMBERS + (int)traces_texts[i].text;
    return -1;
}

static bool read_args(json_lexer *l, trace_build *b, chrome_event *e) {
    json_raw raw;
    if (json_next(l) != '{') return json_stream_skip(l);
    json_take(l, '{');
    while (json_stream_more(l, '}')) {
        if (!json_stream_key(l, &raw)) return false;
        int is = chrome_arg_of(raw.text, raw.length);
        /* Values of other ops are many, and nothing here reads them. */
        if (is == CHROME_NUMBERS + CHROME_VALUES && e->name >= 0 &&
            !strstr(b->names.text[e->name], "attention"))
            is = -1;
        if (is < 0) {
            if (!json_stream_skip(l)) return false;
            continue;
        }
        if (!json_stream_value(l, &raw)) return false;
        if (is >= CHROME_NUMBERS) e->text[is - CHROME_NUMBERS] = name_of(l, b, &raw);
        else if (raw.kind == IS_NUMBER || raw.kind == IS_TEXT) {
            e->number[is] = chrome_whole(&raw);
            e->has[is] = true;
        }
    }
    return !l->status;
}

/* ---- the event ---- */

static bool read_field(json_lexer *l, trace_build *b, chrome_event *e, const json_raw *key) {
    static const char *const known[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur"};
    int64_t ns = 0, ps = 0;
    int field = 0;
    json_raw raw;
    while (field < 7 && !chrome_is(key, known[field])) field++;
    if (field == 7 && chrome_is(key, "args")) return read_args(l, b, e);
    if (!json_stream_scalar(l, &raw)) return false;
    if (raw.kind != IS_NUMBER && raw.kind != IS_TEXT) return true;
    switch (field) {
    case 0: e->phase = raw.length == 1 ? *raw.text : 0; break;
    case 1: e->category = chrome_category_of(raw.text, raw.length); break;
    case 2: e->name = name_of(l, b, &raw); break;
    case 3: e->process = chrome_whole(&raw); break;
    case 4: e->thread = chrome_whole(&raw); break;
    case 5:
        time_of(&raw, &e->start_ns, &e->start_ps);
        e->timed = true;
        break;
    case 6:
        time_of(&raw, &ns, &ps);
        e->duration_ps = ns > 0 || ps > 0 ? (ns < INT64_MAX / 4000 - 1 ? ns * 1000 + ps : 0) : 0;
        break;
    default: break;
    }
    return true;
}

void chrome_event_clear(chrome_event *e) {
    *e = (chrome_event){.name = -1};
    for (int i = 0; i < CHROME_TEXTS; i++) e->text[i] = -1;
}

bool chrome_event_read(json_lexer *l, trace_build *b, chrome_event *e) {
    json_raw key;
    chrome_event_clear(e);
    while (json_stream_more(l, '}'))
        if (!json_stream_key(l, &key) || !read_field(l, b, e, &key)) return false;
    return !l->status && !b->status;
}

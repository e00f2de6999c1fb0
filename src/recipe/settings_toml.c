/* TOML 1.0 as configurations use it: tables, dotted keys, strings of the four kinds, numbers,
 * booleans, arrays over several lines, inline tables. Dates and numbers stay texts. */

#include "framework.h"

enum { MOST_NESTING = 32, MOST_KEY = 512, MOST_LIST = 1000 };

typedef struct toml {
    sm_settings *out;
    sm_error *err;
    sm_cursor at;
    int depth;
} toml;

static sm_status fail(const toml *t, const char *expected) {
    size_t length = t->out->source.length;
    sm_span here = {t->at.at < length || length == 0 ? t->at.at : length - 1, 1};
    return sm_fail_at(t->err, &t->out->source, here, "expected %s", expected);
}

/* Blanks on the line; and over lines, with comments. */
static void blanks(toml *t, bool lines) {
    for (;;) {
        int c = sm_cursor_peek(&t->at);
        if (c == '#')
            while (c >= 0 && c != '\n') {
                t->at.at++;
                c = sm_cursor_peek(&t->at);
            }
        if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) t->at.at++;
        else return;
    }
}

static bool is_bare(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static bool closes(const sm_source *s, size_t at, char quote, bool three) {
    if (s->text[at] != quote) return false;
    return !three || (at + 2 < s->length && s->text[at + 1] == quote && s->text[at + 2] == quote);
}

/* The text between quotes, of one or of three; of an escape in a basic string what follows it. */
static sm_status read_string(toml *t, const char **out) {
    const sm_source *s = &t->out->source;
    const char *text = s->text, quote = text[t->at.at];
    bool three = t->at.at + 2 < s->length && closes(s, t->at.at, quote, true);
    size_t signs = three ? 3 : 1, from = t->at.at + signs, end = from, n = 0;
    for (; end < s->length && !closes(s, end, quote, three); end++) {
        if (text[end] == '\n' && !three) return fail(t, "the string to be closed on its line");
        if (text[end] == '\\' && quote == '"' && end + 1 < s->length) end++;
    }
    if (end >= s->length) return fail(t, "the string to be closed");
    char *copy = sm_arena_alloc(t->out->arena, end - from + 1);
    if (!copy) return sm_fail_memory(t->err);
    for (size_t i = from; i < end; i++) {
        if (text[i] == '\\' && quote == '"' && i + 1 < end) i++;
        if (text[i] != '\0') copy[n++] = text[i];
    }
    t->at.at = end + signs;
    *out = copy;
    return SM_OK;
}

/* a.b."c d" */
static sm_status read_key(toml *t, const char *before, const char **out) {
    const char *all = before;
    for (;;) {
        const char *part = NULL;
        blanks(t, false);
        int c = sm_cursor_peek(&t->at);
        size_t from = t->at.at;
        if (c == '"' || c == '\'') {
            sm_status status = read_string(t, &part);
            if (status) return status;
        } else {
            while (is_bare(sm_cursor_peek(&t->at))) t->at.at++;
            if (t->at.at == from) return fail(t, "a key, as in seq_len = 4096");
            part = sm_arena_copy(t->out->arena, t->out->source.text + from, t->at.at - from);
        }
        all = part ? sm_arena_printf(t->out->arena, "%s%s%s", all, all[0] ? "." : "", part) : NULL;
        if (!all) return sm_fail_memory(t->err);
        if (strlen(all) > MOST_KEY) return fail(t, "a shorter key");
        blanks(t, false);
        if (sm_cursor_peek(&t->at) != '.') break;
        t->at.at++;
    }
    *out = all;
    return SM_OK;
}

static sm_status read_pair(toml *t, const char *before);
static sm_status read_value(toml *t, const char *key, const char **out);

/* Up to the bracket that closes: the values of an array, joined by blanks in *out, or the pairs of
 * a table. */
static sm_status read_items(toml *t, char close, const char *key, const char **out) {
    const char *all = "", *item = NULL;
    t->at.at++;
    for (blanks(t, true); sm_cursor_peek(&t->at) != close; blanks(t, true)) {
        sm_status status = close == '}' ? read_pair(t, key) : read_value(t, key, &item);
        if (status) return status;
        if (item && strlen(all) < MOST_LIST)
            all = sm_arena_printf(t->out->arena, "%s%s%s", all, all[0] ? " " : "", item);
        if (!all) return sm_fail_memory(t->err);
        blanks(t, true);
        if (sm_cursor_peek(&t->at) == ',') t->at.at++;
        else if (sm_cursor_peek(&t->at) != close)
            return fail(t, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    t->at.at++;
    if (close == ']') *out = all;
    return SM_OK;
}

/* A number, true, a date: up to what ends it; underscores between digits go. */
static sm_status read_plain(toml *t, const char **out) {
    const sm_source *s = &t->out->source;
    size_t from = t->at.at, n = 0;
    while (t->at.at < s->length && !strchr(" \t\r\n,]}#", s->text[t->at.at])) t->at.at++;
    if (t->at.at == from) return fail(t, "a value");
    char *copy = sm_arena_alloc(t->out->arena, t->at.at - from + 1);
    if (!copy) return sm_fail_memory(t->err);
    for (size_t i = from; i < t->at.at; i++)
        if (s->text[i] != '_') copy[n++] = s->text[i];
    *out = copy;
    return SM_OK;
}

/* *out: "" of an inline table, whose settings are added. */
static sm_status read_value(toml *t, const char *key, const char **out) {
    int c = sm_cursor_peek(&t->at);
    sm_status status;
    *out = "";
    if (t->depth == MOST_NESTING) return fail(t, "a value nested less deeply");
    t->depth++;
    if (c == '"' || c == '\'') status = read_string(t, out);
    else if (c == '[') status = read_items(t, ']', key, out);
    else if (c == '{') status = read_items(t, '}', key, out);
    else status = read_plain(t, out);
    t->depth--;
    return status;
}

static sm_status read_pair(toml *t, const char *before) {
    const char *key, *value;
    blanks(t, false);
    size_t from = t->at.at;
    sm_status status = read_key(t, before, &key);
    if (status) return status;
    size_t length = t->at.at - from;
    if (sm_cursor_peek(&t->at) != '=') return fail(t, "'=' after the key");
    t->at.at++;
    blanks(t, false);
    bool table = sm_cursor_peek(&t->at) == '{';
    status = read_value(t, key, &value);
    if (status || table) return status;
    return sm_settings_add(t->out, &(sm_setting){.key = key, .value = value, .at = {from, length}},
                           t->err);
}

/* [table] or [[one of several]] */
static sm_status read_table(toml *t, const char **table) {
    int signs = 0;
    for (; sm_cursor_peek(&t->at) == '[' && signs < 2; signs++) t->at.at++;
    sm_status status = read_key(t, "", table);
    for (; signs > 0 && !status; signs--)
        if (sm_cursor_peek(&t->at) == ']') t->at.at++;
        else status = fail(t, "']'");
    return status;
}

sm_status settings_read_toml(sm_settings *settings, sm_error *err) {
    toml t = {.out = settings, .err = err, .at = {&settings->source, 0}};
    const char *table = "";
    sm_status status = SM_OK;
    for (blanks(&t, true); !status && sm_cursor_peek(&t.at) >= 0; blanks(&t, true)) {
        bool heads = sm_cursor_peek(&t.at) == '[';
        status = heads ? read_table(&t, &table) : read_pair(&t, table);
        blanks(&t, false);
        int c = sm_cursor_peek(&t.at);
        if (!status && c >= 0 && c != '\n') status = fail(&t, "the line to end here");
    }
    return status;
}

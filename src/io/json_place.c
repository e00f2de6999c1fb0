#include "json_place.h"

#include <stdio.h>
#include <string.h>

/* A reader of the text; at never passes length. */
typedef struct scan {
    const char *text;
    size_t length, at;
} scan;

static int next_byte(const scan *s) {
    return s->at < s->length ? (unsigned char)s->text[s->at] : -1;
}

static bool is_blank(int byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void skip_blanks(scan *s) {
    while (is_blank(next_byte(s))) s->at++;
}

static bool accept(scan *s, char byte) {
    skip_blanks(s);
    if (next_byte(s) != byte) return false;
    s->at++;
    return true;
}

static void skip_string(scan *s) {
    s->at++; /* the opening quote */
    while (s->at < s->length && s->text[s->at] != '"')
        s->at += s->text[s->at] == '\\' && s->at + 1 < s->length ? 2 : 1;
    if (s->at < s->length) s->at++;
}

static void skip_scalar(scan *s) {
    int byte = next_byte(s);
    while (byte >= 0 && !is_blank(byte) && !strchr(",:]}[{\"", byte)) {
        s->at++;
        byte = next_byte(s);
    }
}

/* Objects and arrays by counting brackets, so that depth costs nothing. */
static void skip_container(scan *s) {
    size_t depth = 0;
    do {
        int byte = next_byte(s);
        if (byte < 0) return;
        if (byte == '"') {
            skip_string(s);
            continue;
        }
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        s->at++;
    } while (depth > 0);
}

static void skip_value(scan *s) {
    skip_blanks(s);
    int byte = next_byte(s);
    if (byte == '"') skip_string(s);
    else if (byte == '{' || byte == '[') skip_container(s);
    else skip_scalar(s);
}

/* One step of a path: a key, or an index when key is NULL. */
typedef struct step {
    const char *key;
    size_t key_length, index;
} step;

static step take_step(const char **path) {
    const char *p = *path;
    step out = {NULL, 0, 0};
    if (*p == '.') p++;
    if (*p == '[') {
        for (p++; *p >= '0' && *p <= '9'; p++) out.index = out.index * 10 + (size_t)(*p - '0');
        *path = *p == ']' ? p + 1 : p;
        return out;
    }
    out.key = p;
    out.key_length = strcspn(p, ".[");
    *path = p + out.key_length;
    return out;
}

/* Move from the object at s to the value of key; *key_span is then the key with its quotes. */
static bool enter_key(scan *s, const step *wanted, sm_span *key_span) {
    if (!accept(s, '{')) return false;
    for (skip_blanks(s); next_byte(s) == '"'; skip_blanks(s)) {
        size_t start = s->at;
        skip_string(s);
        *key_span = (sm_span){start, s->at - start};
        bool same = key_span->length == wanted->key_length + 2 &&
                    memcmp(s->text + start + 1, wanted->key, wanted->key_length) == 0;
        if (!accept(s, ':')) return false;
        skip_blanks(s);
        if (same) return true;
        skip_value(s);
        if (!accept(s, ',')) return false;
    }
    return false;
}

static bool enter_index(scan *s, size_t index) {
    if (!accept(s, '[')) return false;
    for (size_t i = 0; i < index; i++) {
        skip_value(s);
        if (!accept(s, ',')) return false;
    }
    skip_blanks(s);
    return next_byte(s) >= 0 && next_byte(s) != ']';
}

sm_span sm_json_place(const sm_source *source, const char *path, bool of_key) {
    const sm_span absent = {0, 0};
    scan s = {source->text, source->length, 0};
    sm_span key = absent;
    skip_blanks(&s);
    while (*path) {
        const char *before = path;
        step next = take_step(&path);
        if (path == before ||
            !(next.key ? enter_key(&s, &next, &key) : enter_index(&s, next.index)))
            return absent;
        if (!next.key) key = absent;
    }
    if (of_key && key.length > 0) return key;
    size_t start = s.at;
    skip_value(&s);
    return (sm_span){start, s.at - start};
}

/* Cut the last step off path. */
static void climb(char *path) {
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '.' && path[n - 1] != '[') n--;
    path[n > 0 ? n - 1 : 0] = 0;
}

sm_span sm_json_nearest_place(const sm_source *s, const char *path, bool of_key) {
    char outer[512];
    sm_span span = sm_json_place(s, path, of_key);
    if (span.length > 0) return span;
    snprintf(outer, sizeof outer, "%s", path);
    while (span.length == 0 && outer[0]) {
        climb(outer);
        span = sm_json_place(s, outer, false);
    }
    if (span.length > 1) span.length = 1;
    return span;
}

sm_status sm_json_fail(sm_error *err, const sm_source *s, const char *path, bool of_key,
                       const char *format, ...) {
    char sentence[640];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    sm_span span = sm_json_nearest_place(s, path, of_key);
    if (span.length > 1 && s->text[span.offset] == '{') span.length = 1;
    return sm_fail_at(err, s, span, "%s", sentence);
}

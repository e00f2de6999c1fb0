/* JSON of any length through a window: values one after the other. What is passed over need not be
 * valid within, since profilers write bare nan and control characters. */
#include <string.h>

#include "json_lexer.h"

enum { WINDOW = 1 << 20, MOST_TOKEN = 1 << 28 };

void json_stream_begin(json_lexer *l, const json_document *in, const sm_bytes *bytes) {
    *l = (json_lexer){.in = in, .text = "", .bytes = *bytes, .kept = SIZE_MAX};
}

void json_stream_end(json_lexer *l) {
    sm_free(l->buffer);
    *l = (json_lexer){.in = l->in, .text = "", .status = l->status, .kept = SIZE_MAX};
}

uint64_t json_stream_at(const json_lexer *l) { return l->before + l->at; }

static bool widen(json_lexer *l) {
    size_t room = l->room ? 2 * l->room : WINDOW;
    if (room > MOST_TOKEN)
        return json_lexer_fail(l, (sm_span){l->at, 1}, "a value is longer than 256 MiB");
    char *buffer = sm_realloc(l->buffer, room);
    if (!buffer) return json_lexer_fail_memory(l);
    l->text = l->buffer = buffer;
    l->room = room;
    return true;
}

/* More bytes behind those that wait, which move to the front: false at the end. */
static bool more(json_lexer *l) {
    if (!l->bytes.read || l->ended || l->status) return false;
    size_t from = l->kept < l->at ? l->kept : l->at;
    if (from > 0) {
        memmove(l->buffer, l->buffer + from, l->length - from);
        l->before += from;
        l->length -= from;
        l->at -= from;
        if (l->kept != SIZE_MAX) l->kept = 0;
    }
    if (l->length == l->room && !widen(l)) return false;
    size_t got = 0;
    sm_status status = l->bytes.read(l->bytes.context, l->buffer + l->length, l->room - l->length,
                                     &got, l->in->err);
    l->length += got;
    l->ended = got == 0;
    if (status && !l->status) l->status = status;
    return got > 0 && !l->status;
}

char json_next(json_lexer *l) {
    do {
        while (l->at < l->length) {
            char c = l->text[l->at];
            if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
            l->at++;
        }
    } while (more(l));
    return '\0';
}

/* Bytes of the text that begins here up to its closing quote, 0 when it has none. */
static size_t text_here(json_lexer *l, bool *escapes) {
    size_t looked = 1;
    *escapes = false;
    for (;;) {
        const char *at = l->text + l->at, *quote = NULL;
        size_t length = l->length - l->at;
        while (looked < length && (quote = memchr(at + looked, '"', length - looked))) {
            size_t end = (size_t)(quote - at), slashes = 0;
            while (end - slashes > 1 && at[end - slashes - 1] == '\\') slashes++;
            if (slashes % 2 == 0) {
                *escapes = memchr(at + 1, '\\', end - 1) != NULL;
                return end;
            }
            looked = end + 1;
        }
        if (!quote) looked = length > looked ? length : looked;
        if (!more(l)) return 0;
    }
}

/* Bytes of the number or word that begins here. */
static size_t word_here(json_lexer *l) {
    size_t n = 0;
    for (;;) {
        while (l->at + n < l->length && (unsigned char)l->text[l->at + n] > ' ' &&
               !strchr(",}]:", l->text[l->at + n]))
            n++;
        if (l->at + n < l->length || !more(l)) return n;
    }
}

static bool text_token(json_lexer *l, json_raw *raw) {
    size_t n = text_here(l, &raw->escapes);
    if (n == 0) return json_lexer_fail_token(l, "a text does not end");
    raw->kind = IS_TEXT;
    raw->text = l->text + l->at + 1;
    raw->length = n - 1;
    l->at += n + 1;
    return true;
}

/* ---- passing over ---- */

static const bool marks[256] = {
    ['"'] = true, ['{'] = true, ['['] = true, ['}'] = true, [']'] = true};

/* The list or object that begins here. */
static bool pass_over(json_lexer *l) {
    size_t depth = 0;
    bool escapes;
    do {
        while (l->at < l->length && !marks[(unsigned char)l->text[l->at]]) l->at++;
        if (l->at == l->length) {
            if (!more(l)) return json_lexer_fail_token(l, "a list or an object does not end");
        } else if (l->text[l->at] == '"') {
            size_t n = text_here(l, &escapes);
            if (n == 0) return json_lexer_fail_token(l, "a text does not end");
            l->at += n + 1;
        } else {
            depth += l->text[l->at] == '{' || l->text[l->at] == '[' ? 1u : (size_t)-1;
            l->at++;
        }
    } while (depth > 0);
    return true;
}

/* ---- values ---- */

bool json_stream_scalar(json_lexer *l, json_raw *raw) {
    char c = json_next(l);
    *raw = (json_raw){.kind = IS_NULL, .text = ""};
    if (c == '"') return text_token(l, raw);
    if (c == '{' || c == '[') {
        raw->kind = c == '{' ? IS_OBJECT : IS_LIST;
        return pass_over(l);
    }
    size_t n = c ? word_here(l) : 0;
    if (n == 0) return json_lexer_fail_token(l, "value expected");
    raw->text = l->text + l->at;
    raw->length = n;
    bool digit = (*raw->text >= '0' && *raw->text <= '9') || (*raw->text == '-' && n > 1);
    raw->kind = digit ? IS_NUMBER : *raw->text == 't' || *raw->text == 'f' ? IS_BOOL : IS_NULL;
    l->at += n;
    return true;
}

bool json_stream_value(json_lexer *l, json_raw *raw) {
    json_next(l);
    l->kept = l->at;
    bool done = json_stream_scalar(l, raw);
    if (done && (raw->kind == IS_LIST || raw->kind == IS_OBJECT)) {
        raw->text = l->text + l->kept;
        raw->length = l->at - l->kept;
    }
    l->kept = SIZE_MAX;
    return done;
}

bool json_stream_skip(json_lexer *l) {
    json_raw raw;
    return json_stream_scalar(l, &raw);
}

bool json_stream_more(json_lexer *l, char close) {
    json_take(l, ',');
    if (l->status || json_take(l, close)) return false;
    if (json_next(l) && !l->status) return true;
    return json_lexer_fail_token(l, close == '}' ? "'}' expected" : "']' expected");
}

bool json_stream_key(json_lexer *l, json_raw *key) {
    if (json_next(l) != '"') return json_lexer_fail_token(l, "string or '}' expected");
    l->kept = l->at; /* more may come before the colon */
    bool done = text_token(l, key);
    if (done && !json_take(l, ':')) done = json_lexer_fail_token(l, "':' expected");
    key->text = l->text + l->kept + 1;
    l->kept = SIZE_MAX;
    return done;
}

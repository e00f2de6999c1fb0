/* Tokens of JSON: words, texts with their escapes, numbers. */
#include "json_lexer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SHOWN = 20 }; /* bytes of a token that an error repeats */

/* ---- errors ---- */

bool json_lexer_fail(json_lexer *l, sm_span span, const char *sentence) {
    if (l->status) return false;
    if (!l->bytes.read) l->status = json_fail_at(l->in, span, "%s", sentence);
    else
        l->status = sm_fail(l->in->err, SM_BAD_INPUT, "%s: byte %llu: %s", l->in->source->name,
                            (unsigned long long)(l->before + span.offset), sentence);
    return false;
}

bool json_lexer_fail_memory(json_lexer *l) {
    if (!l->status) l->status = sm_fail_memory(l->in->err);
    return false;
}

/* The token that begins here: a string to its end, a mark, or all up to the next mark or blank; at
 * the end of the text its last byte. */
sm_span json_token_here(const json_lexer *l) {
    enum { LONGEST = 80 };
    size_t end = l->at + 1;
    if (l->at >= l->length) return (sm_span){l->length ? l->length - 1 : 0, l->length > 0};
    if (l->text[l->at] == '"')
        while (end < l->length && end - l->at < LONGEST && l->text[end - 1] != '\n' &&
               (end == l->at + 1 || l->text[end - 1] != '"'))
            end++;
    else if (!strchr("{}[]:,", l->text[l->at]))
        while (end < l->length && end - l->at < LONGEST && l->text[end] > ' ' &&
               !strchr("{}[]:,\"", l->text[end]))
            end++;
    return (sm_span){l->at, end - l->at};
}

bool json_lexer_fail_token(json_lexer *l, const char *what) {
    char sentence[128];
    sm_span token = json_token_here(l);
    int n = snprintf(sentence, sizeof sentence, "this is not valid JSON: %s", what);
    if (l->at >= l->length)
        snprintf(sentence + n, sizeof sentence - (size_t)n, " near end of file");
    else if (token.length <= LONGEST_SHOWN)
        snprintf(sentence + n, sizeof sentence - (size_t)n, " near '%.*s'", (int)token.length,
                 l->text + token.offset);
    return json_lexer_fail(l, token, sentence);
}

/* ---- tokens ---- */

bool json_take(json_lexer *l, char mark) {
    if (json_next(l) != mark) return false;
    l->at++;
    return true;
}

bool json_take_word(json_lexer *l, const char *word) {
    size_t n = strlen(word);
    if (l->length - l->at < n || memcmp(l->text + l->at, word, n) != 0) return false;
    if (l->at + n < l->length && l->text[l->at + n] > ' ' && !strchr(",]}:", l->text[l->at + n]))
        return false;
    l->at += n;
    return true;
}

/* ---- texts ---- */

static int hex(const char *digits, size_t n) {
    int code = 0;
    for (size_t i = 0; i < 4; i++) {
        static const char all[] = "0123456789abcdef0123456789ABCDEF";
        const char *found = i < n && digits[i] ? strchr(all, digits[i]) : NULL;
        if (!found) return -1;
        code = 16 * code + (int)((found - all) % 16);
    }
    return code;
}

static size_t put_utf8(char *to, uint32_t code) {
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(lead[n] | code);
    return n;
}

/* The escape at l->at, behind its backslash. False where it is none, which NULL bytes are too. */
static bool take_escape(json_lexer *l, char **to) {
    static const char named[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *at = l->text + l->at;
    size_t left = l->length - l->at;
    const char *found = left && *at ? strchr(named, *at) : NULL;
    if (found) {
        *(*to)++ = means[found - named];
        l->at++;
        return true;
    }
    if (left < 5 || *at != 'u') return false;
    int code = hex(at + 1, left - 1);
    l->at += 5;
    if (code >= 0xD800 && code < 0xDC00) { /* the first half of a pair */
        bool pair = left >= 11 && at[5] == '\\' && at[6] == 'u';
        int low = pair ? hex(at + 7, left - 7) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        l->at += 6;
    }
    if (code <= 0 || (code >= 0xDC00 && code <= 0xDFFF)) return false;
    *to += put_utf8(*to, (uint32_t)code);
    return true;
}

/* Characters up to the closing quote into `to`, which has room for as many bytes as the text. */
static bool take_characters(json_lexer *l, size_t begin, char *to, uint32_t *length) {
    char *start = to;
    while (l->at < l->length && l->text[l->at] != '"') {
        uint32_t code;
        size_t n = sm_utf8_decode(l->text + l->at, l->length - l->at, &code), at = l->at;
        const char *wrong = n == 0 ? "this is not valid JSON: a byte is no UTF-8"
                            : code < ' '
                                ? "this is not valid JSON: a line break or another control "
                                  "character within a text"
                                : NULL;
        if (wrong) return json_lexer_fail(l, (sm_span){at, 1}, wrong);
        if (l->text[l->at] != '\\') {
            memcpy(to, l->text + l->at, n);
            to += n;
            l->at += n;
            continue;
        }
        l->at++;
        if (take_escape(l, &to)) continue;
        bool zero = l->length - at >= 6 && memcmp(l->text + at, "\\u0000", 6) == 0;
        l->at = begin;
        if (zero)
            return json_lexer_fail(l, json_token_here(l),
                                   "a text may not hold the character \\u0000");
        return json_lexer_fail(l, (sm_span){at, 2},
                               "this is not valid JSON: there is no such escape");
    }
    if (l->at >= l->length) return json_lexer_fail_token(l, "a text does not end");
    l->at++;
    *length = (uint32_t)(to - start);
    return true;
}

const char *json_take_text(json_lexer *l, uint32_t *length) {
    size_t begin = l->at++, end = l->at;
    while (end < l->length && l->text[end] != '"') end += l->text[end] == '\\' ? 2 : 1;
    if (end > l->length) end = l->length;
    char *text = sm_arena_alloc(l->in->arena, end - l->at + 1);
    if (!text) return json_lexer_fail_memory(l), NULL;
    if (!take_characters(l, begin, text, length)) return NULL;
    return text;
}

size_t json_raw_decode(const json_raw *raw, char *to) {
    json_lexer l = {.text = raw->text, .length = raw->length};
    char *start = to;
    while (l.at < l.length) {
        if (l.text[l.at] != '\\') {
            *to++ = l.text[l.at++];
            continue;
        }
        size_t at = l.at++;
        if (take_escape(&l, &to)) continue;
        l.at = at + 1;
        *to++ = '\\';
    }
    return (size_t)(to - start);
}

/* ---- numbers ---- */

static size_t digits(const json_lexer *l, size_t at) {
    size_t n = 0;
    while (at + n < l->length && l->text[at + n] >= '0' && l->text[at + n] <= '9') n++;
    return n;
}

/* The correctly rounded double of digits before and after the point and of what follows them. No
 * decimal point is handed to strtod, so no locale can matter. */
static bool read_double(json_lexer *l, sm_span span, size_t point, size_t fraction, double *value) {
    char small[80], *text = small;
    size_t end = point ? point + 1 + fraction : 0, exponent = span.offset + span.length, n = 0;
    long power = 0;
    if (span.length > sizeof small - 24) text = sm_arena_alloc(l->in->arena, span.length + 24);
    if (!text) return json_lexer_fail_memory(l);
    for (size_t i = span.offset; i < span.offset + span.length; i++) {
        char c = l->text[i];
        if (c == 'e' || c == 'E') {
            exponent = i;
            break;
        }
        if (c != '.') text[n++] = c;
    }
    if (exponent < span.offset + span.length) { /* of at most 9 digits: more is 0 or too large */
        size_t i = exponent + 1;
        bool minus = l->text[i] == '-';
        if (minus || l->text[i] == '+') i++;
        for (; i < span.offset + span.length; i++)
            if (power < 100000000) power = 10 * power + (l->text[i] - '0');
        if (minus) power = -power;
    }
    power -= end ? (long)fraction : 0;
    snprintf(text + n, 24, "e%ld", power);
    *value = strtod(text, NULL);
    return isfinite(*value) || json_lexer_fail(l, span, "this number is too large");
}

static bool take_integer(json_lexer *l, json_value *v, sm_span span) {
    bool minus = l->text[span.offset] == '-';
    uint64_t most = (uint64_t)INT64_MAX + minus, value = 0;
    for (size_t i = span.offset + minus; i < span.offset + span.length; i++) {
        uint64_t digit = (uint64_t)(l->text[i] - '0');
        if (value > (most - digit) / 10)
            return json_lexer_fail(l, span, "this number is too large");
        value = 10 * value + digit;
    }
    v->whole = true;
    v->integer = minus ? (int64_t)-value : (int64_t)value;
    v->number = (double)v->integer;
    return true;
}

bool json_take_number(json_lexer *l, json_value *v) {
    size_t begin = l->at, at = begin + (l->text[begin] == '-'), point = 0, fraction = 0;
    v->kind = IS_NUMBER;
    if (l->in->python && json_take_word(l, "NaN")) return v->number = NAN, true;
    if (l->in->python && json_take_word(l, "Infinity")) return v->number = INFINITY, true;
    if (l->in->python && json_take_word(l, "-Infinity")) return v->number = -INFINITY, true;
    size_t n = digits(l, at);
    bool good = n > 0 && (n == 1 || l->text[at] != '0'), real = false;
    at += n;
    if (good && at < l->length && l->text[at] == '.') {
        point = at;
        fraction = digits(l, at + 1);
        good = fraction > 0;
        real = true;
        at += 1 + fraction;
    }
    if (good && at < l->length && (l->text[at] == 'e' || l->text[at] == 'E')) {
        at++;
        if (at < l->length && (l->text[at] == '+' || l->text[at] == '-')) at++;
        n = digits(l, at);
        good = n > 0;
        real = true;
        at += n;
    }
    sm_span span = {begin, at - begin};
    if (good && at < l->length) good = strchr(" \t\n\r,]}", l->text[at]) != NULL;
    if (!good) return json_lexer_fail_token(l, "invalid token");
    l->at = at;
    return real ? read_double(l, span, point, fraction, &v->number) : take_integer(l, v, span);
}

/* JSON text (RFC 8259) as values with places: one pass, by recursive descent. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_tree.h"

enum {
    MOST_DEPTH = 2048,
    LONGEST_SHOWN = 20, /* bytes of a token that an error repeats */
    FEW = 16            /* keys that are compared each with each */
};

/* The values of lists and objects that are not closed yet wait on a stack; closed, they stand
 * together in the arena. */
typedef struct parser {
    const json_document *in;
    const char *text;
    size_t length, at; /* at never passes length */
    json_value *waiting;
    size_t n, room;
    int depth;
    sm_status status;
} parser;

/* ---- errors ---- */

static bool fail_at(parser *p, sm_span span, const char *sentence) {
    p->status = json_fail_at(p->in, span, "%s", sentence);
    return false;
}

static bool fail_memory(parser *p) {
    p->status = sm_fail_memory(p->in->err);
    return false;
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* The token that begins here: a string to its end, a mark, or all up to the next mark or blank; at
 * the end of the text its last byte. */
static sm_span token_here(const parser *p) {
    enum { LONGEST = 80 };
    size_t end = p->at + 1;
    if (p->at >= p->length) return (sm_span){p->length ? p->length - 1 : 0, p->length > 0};
    if (p->text[p->at] == '"')
        while (end < p->length && end - p->at < LONGEST && p->text[end - 1] != '\n' &&
               (end == p->at + 1 || p->text[end - 1] != '"'))
            end++;
    else if (!strchr("{}[]:,", p->text[p->at]))
        while (end < p->length && end - p->at < LONGEST && p->text[end] > ' ' &&
               !strchr("{}[]:,\"", p->text[end]))
            end++;
    return (sm_span){p->at, end - p->at};
}

static bool fail_token(parser *p, const char *what) {
    char sentence[128];
    sm_span token = token_here(p);
    int n = snprintf(sentence, sizeof sentence, "this is not valid JSON: %s", what);
    if (p->at >= p->length)
        snprintf(sentence + n, sizeof sentence - (size_t)n, " near end of file");
    else if (token.length <= LONGEST_SHOWN)
        snprintf(sentence + n, sizeof sentence - (size_t)n, " near '%.*s'", (int)token.length,
                 p->text + token.offset);
    return fail_at(p, token, sentence);
}

/* ---- tokens ---- */

static char next(parser *p) {
    while (p->at < p->length && is_blank(p->text[p->at])) p->at++;
    return p->at < p->length ? p->text[p->at] : '\0';
}

static bool take(parser *p, char mark) {
    if (next(p) != mark) return false;
    p->at++;
    return true;
}

/* The word, and not only a longer one's beginning. */
static bool take_word(parser *p, const char *word) {
    size_t n = strlen(word);
    if (p->length - p->at < n || memcmp(p->text + p->at, word, n) != 0) return false;
    if (p->at + n < p->length && p->text[p->at + n] > ' ' && !strchr(",]}:", p->text[p->at + n]))
        return false;
    p->at += n;
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

/* The escape at p->at, behind its backslash. False where it is none, which NULL bytes are too. */
static bool take_escape(parser *p, char **to) {
    static const char named[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *at = p->text + p->at;
    size_t left = p->length - p->at;
    const char *found = left && *at ? strchr(named, *at) : NULL;
    if (found) {
        *(*to)++ = means[found - named];
        p->at++;
        return true;
    }
    if (left < 5 || *at != 'u') return false;
    int code = hex(at + 1, left - 1);
    p->at += 5;
    if (code >= 0xD800 && code < 0xDC00) { /* the first half of a pair */
        bool pair = left >= 11 && at[5] == '\\' && at[6] == 'u';
        int low = pair ? hex(at + 7, left - 7) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p->at += 6;
    }
    if (code <= 0 || (code >= 0xDC00 && code <= 0xDFFF)) return false;
    *to += put_utf8(*to, (uint32_t)code);
    return true;
}

/* Characters up to the closing quote into `to`, which has room for as many bytes as the text. */
static bool take_characters(parser *p, size_t begin, char *to, uint32_t *length) {
    char *start = to;
    while (p->at < p->length && p->text[p->at] != '"') {
        uint32_t code;
        size_t n = sm_utf8_decode(p->text + p->at, p->length - p->at, &code), at = p->at;
        const char *wrong = n == 0 ? "this is not valid JSON: a byte is no UTF-8"
                            : code < ' '
                                ? "this is not valid JSON: a line break or another control "
                                  "character within a text"
                                : NULL;
        if (wrong) return fail_at(p, (sm_span){at, 1}, wrong);
        if (p->text[p->at] != '\\') {
            memcpy(to, p->text + p->at, n);
            to += n;
            p->at += n;
            continue;
        }
        p->at++;
        if (take_escape(p, &to)) continue;
        bool zero = p->length - at >= 6 && memcmp(p->text + at, "\\u0000", 6) == 0;
        p->at = begin;
        if (zero) return fail_at(p, token_here(p), "a text may not hold the character \\u0000");
        return fail_at(p, (sm_span){at, 2}, "this is not valid JSON: there is no such escape");
    }
    if (p->at >= p->length) return fail_token(p, "a text does not end");
    p->at++;
    *length = (uint32_t)(to - start);
    return true;
}

static const char *take_string(parser *p, uint32_t *at, uint32_t *span, uint32_t *length) {
    size_t begin = p->at++, end = p->at;
    while (end < p->length && p->text[end] != '"') end += p->text[end] == '\\' ? 2 : 1;
    if (end > p->length) end = p->length;
    char *text = sm_arena_alloc(p->in->arena, end - p->at + 1);
    if (!text) return fail_memory(p), NULL;
    if (!take_characters(p, begin, text, length)) return NULL;
    *at = (uint32_t)begin;
    *span = (uint32_t)(p->at - begin);
    return text;
}

/* ---- numbers ---- */

static size_t digits(const parser *p, size_t at) {
    size_t n = 0;
    while (at + n < p->length && p->text[at + n] >= '0' && p->text[at + n] <= '9') n++;
    return n;
}

/* The correctly rounded double of digits before and after the point and of what follows them. No
 * decimal point is handed to strtod, so no locale can matter. */
static bool read_double(parser *p, sm_span span, size_t point, size_t fraction, double *value) {
    char small[80], *text = small;
    size_t end = point ? point + 1 + fraction : 0, exponent = span.offset + span.length, n = 0;
    long power = 0;
    if (span.length > sizeof small - 24) text = sm_arena_alloc(p->in->arena, span.length + 24);
    if (!text) return fail_memory(p);
    for (size_t i = span.offset; i < span.offset + span.length; i++) {
        char c = p->text[i];
        if (c == 'e' || c == 'E') {
            exponent = i;
            break;
        }
        if (c != '.') text[n++] = c;
    }
    if (exponent < span.offset + span.length) { /* of at most 9 digits: more is 0 or too large */
        size_t i = exponent + 1;
        bool minus = p->text[i] == '-';
        if (minus || p->text[i] == '+') i++;
        for (; i < span.offset + span.length; i++)
            if (power < 100000000) power = 10 * power + (p->text[i] - '0');
        if (minus) power = -power;
    }
    power -= end ? (long)fraction : 0;
    snprintf(text + n, 24, "e%ld", power);
    *value = strtod(text, NULL);
    return isfinite(*value) || fail_at(p, span, "this number is too large");
}

static bool take_integer(parser *p, json_value *v, sm_span span) {
    bool minus = p->text[span.offset] == '-';
    uint64_t most = (uint64_t)INT64_MAX + minus, value = 0;
    for (size_t i = span.offset + minus; i < span.offset + span.length; i++) {
        uint64_t digit = (uint64_t)(p->text[i] - '0');
        if (value > (most - digit) / 10) return fail_at(p, span, "this number is too large");
        value = 10 * value + digit;
    }
    v->whole = true;
    v->integer = minus ? (int64_t)-value : (int64_t)value;
    v->number = (double)v->integer;
    return true;
}

static bool take_number(parser *p, json_value *v) {
    size_t begin = p->at, at = begin + (p->text[begin] == '-'), point = 0, fraction = 0;
    v->kind = IS_NUMBER;
    if (p->in->python && take_word(p, "NaN")) return v->number = NAN, true;
    if (p->in->python && take_word(p, "Infinity")) return v->number = INFINITY, true;
    if (p->in->python && take_word(p, "-Infinity")) return v->number = -INFINITY, true;
    size_t n = digits(p, at);
    bool good = n > 0 && (n == 1 || p->text[at] != '0'), real = false;
    at += n;
    if (good && at < p->length && p->text[at] == '.') {
        point = at;
        fraction = digits(p, at + 1);
        good = fraction > 0;
        real = true;
        at += 1 + fraction;
    }
    if (good && at < p->length && (p->text[at] == 'e' || p->text[at] == 'E')) {
        at++;
        if (at < p->length && (p->text[at] == '+' || p->text[at] == '-')) at++;
        n = digits(p, at);
        good = n > 0;
        real = true;
        at += n;
    }
    sm_span span = {begin, at - begin};
    if (good && at < p->length) good = is_blank(p->text[at]) || strchr(",]}", p->text[at]);
    if (!good) return fail_token(p, "invalid token");
    p->at = at;
    return real ? read_double(p, span, point, fraction, &v->number) : take_integer(p, v, span);
}

/* ---- lists and objects ---- */

static int by_key(const void *a, const void *b) {
    const json_value *const *x = a, *const *y = b;
    int order = strcmp((*x)->key, (*y)->key);
    return order ? order : ((*x)->key_at > (*y)->key_at) - ((*x)->key_at < (*y)->key_at);
}

static bool fail_twice(parser *p, const json_value *v) {
    return fail_at(p, (sm_span){v->key_at, v->key_length}, "this key is given twice");
}

static bool check_keys(parser *p, const json_value *item, size_t n) {
    if (n <= FEW) {
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(item[i].key, item[k].key) == 0) return fail_twice(p, &item[i]);
        return true;
    }
    const json_value **sorted = sm_malloc(n * sizeof *sorted), *twice = NULL;
    if (!sorted) return fail_memory(p);
    for (size_t i = 0; i < n; i++) sorted[i] = &item[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0 &&
            (!twice || sorted[i]->key_at < twice->key_at))
            twice = sorted[i];
    sm_free(sorted);
    return !twice || fail_twice(p, twice);
}

static bool wait(parser *p, const json_value *v) {
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 64;
        json_value *more = sm_realloc(p->waiting, room * sizeof *more);
        if (!more) return fail_memory(p);
        p->waiting = more;
        p->room = room;
    }
    p->waiting[p->n++] = *v;
    return true;
}

static bool take_value(parser *p, json_value *v);

static bool take_key(parser *p, json_value *v) {
    uint32_t length;
    if (next(p) != '"') return fail_token(p, "string or '}' expected");
    v->key = take_string(p, &v->key_at, &v->key_length, &length);
    if (!v->key) return false;
    return take(p, ':') || fail_token(p, "':' expected");
}

/* From behind the opening bracket on. */
static bool take_items(parser *p, json_value *v, bool object) {
    size_t first = p->n, n;
    char close = object ? '}' : ']';
    bool more = next(p) != close;
    for (; more; more = take(p, ',')) {
        json_value item = {.in = p->in};
        if (object && !take_key(p, &item)) return false;
        if (!take_value(p, &item) || !wait(p, &item)) return false;
    }
    if (!take(p, close)) return fail_token(p, object ? "'}' expected" : "']' expected");
    n = p->n - first;
    json_value *items = sm_arena_array(p->in->arena, n, sizeof *items);
    if (!items) return fail_memory(p);
    if (n) memcpy(items, p->waiting + first, n * sizeof *items);
    p->n = first;
    v->kind = object ? IS_OBJECT : IS_LIST;
    v->n = (uint32_t)n;
    v->item = items;
    return !object || check_keys(p, items, n);
}

static bool take_word_value(parser *p, json_value *v) {
    static const char *const words[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++)
        if (take_word(p, words[i])) {
            v->kind = i ? IS_BOOL : IS_NULL;
            if (i) v->truth = i == 2;
            return true;
        }
    return fail_token(p, "invalid token");
}

static bool take_value(parser *p, json_value *v) {
    char begins = next(p);
    bool done;
    v->at = (uint32_t)p->at;
    if (begins == '{' || begins == '[') {
        if (++p->depth > MOST_DEPTH)
            return fail_at(p, token_here(p), "lists and objects are nested too deep");
        p->at++;
        done = take_items(p, v, begins == '{');
        p->depth--;
    } else if (begins == '"') {
        v->kind = IS_TEXT;
        v->text = take_string(p, &v->at, &v->length, &v->n);
        done = v->text != NULL;
    } else if (begins && strchr("-0123456789NI", begins)) done = take_number(p, v);
    else if (begins && !strchr("}],:", begins)) done = take_word_value(p, v);
    else done = fail_token(p, "value expected");
    v->length = (uint32_t)(p->at - v->at);
    return done;
}

/* ---- the document ---- */

sm_status json_parse(const json_document *in, const json_value **root) {
    const sm_source *s = in->source;
    parser p = {.in = in, .text = s->text ? s->text : "", .length = s->text ? s->length : 0};
    char sentence[96];
    *root = NULL;
    if (s->length > JSON_MOST_BYTES) {
        snprintf(sentence, sizeof sentence, "the document has %zu bytes; at most %d are read",
                 s->length, JSON_MOST_BYTES);
        fail_at(&p, (sm_span){0, 0}, sentence);
        return p.status;
    }
    const char *zero = memchr(p.text, 0, p.length);
    if (zero) {
        fail_at(&p, (sm_span){(size_t)(zero - p.text), 1}, "this is not valid JSON: a byte is 0");
        return p.status;
    }
    json_value *value = sm_arena_alloc(in->arena, sizeof *value);
    if (value) *value = (json_value){.in = in};
    bool done = value ? take_value(&p, value) : fail_memory(&p);
    if (done && (next(&p), p.at < p.length)) done = fail_token(&p, "end of file expected");
    sm_free(p.waiting);
    if (done) *root = value;
    return done ? SM_OK : p.status;
}

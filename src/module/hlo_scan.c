#include "hlo_reader.h"

bool hlo_fail(hlo_reader *r, sm_span span, const char *format, ...) {
    if (r->status) return false;
    va_list args;
    va_start(args, format);
    r->status = sm_vfail_at(r->err, r->source, span, format, args);
    va_end(args);
    return false;
}

bool hlo_fail_here(hlo_reader *r, const char *sentence) {
    return hlo_fail(r, (sm_span){r->at, 1}, "%s", sentence);
}

bool hlo_no_memory(hlo_reader *r) {
    if (!r->status) r->status = sm_fail_memory(r->err);
    return false;
}

static int byte_at(const hlo_reader *r, size_t at) {
    return at < r->source->length ? (unsigned char)r->source->text[at] : -1;
}

/* Past a comment that begins here; to the end of the text when it has no end. */
static void skip_comment(hlo_reader *r) {
    for (r->at += 2; byte_at(r, r->at) >= 0; r->at++) {
        if (byte_at(r, r->at) == '\n') r->line++;
        if (byte_at(r, r->at) != '*' || byte_at(r, r->at + 1) != '/') continue;
        r->at += 2;
        return;
    }
}

int hlo_next(hlo_reader *r) {
    if (r->status) return -1;
    for (;; r->at++) {
        int byte = byte_at(r, r->at);
        if (byte == '/' && byte_at(r, r->at + 1) == '*') {
            skip_comment(r);
            r->at--;
        } else if (byte == '\n') {
            r->line++;
        } else if (byte != ' ' && byte != '\t' && byte != '\r') {
            return byte;
        }
    }
}

bool hlo_accept(hlo_reader *r, char byte) {
    if (hlo_next(r) != byte) return false;
    r->at++;
    return true;
}

bool hlo_expect(hlo_reader *r, char byte, const char *where) {
    if (hlo_accept(r, byte)) return true;
    return hlo_fail(r, (sm_span){r->at, 1}, "expected '%c' %s", byte, where);
}

static bool is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

sm_span hlo_name(hlo_reader *r) {
    if (hlo_next(r) == '%') r->at++;
    size_t from = r->at;
    while (is_letter(byte_at(r, r->at))) r->at++;
    return (sm_span){from, r->at - from};
}

bool hlo_is(const hlo_reader *r, sm_span span, const char *word) {
    return strlen(word) == span.length && !memcmp(r->source->text + span.offset, word, span.length);
}

const char *hlo_copy(hlo_reader *r, sm_span span) {
    const char *copy = sm_arena_copy(r->arena, r->source->text + span.offset, span.length);
    if (!copy) hlo_no_memory(r);
    return copy ? copy : "";
}

const char *hlo_unescaped(hlo_reader *r, sm_span span) {
    char *copy = sm_arena_copy(r->arena, r->source->text + span.offset, span.length);
    if (!copy) return hlo_no_memory(r), "";
    char *to = copy;
    for (const char *at = copy; *at; *to++ = *at++)
        if (*at == '\\' && at[1]) at++;
    *to = '\0';
    return copy;
}

bool hlo_number(hlo_reader *r, int64_t *value) {
    hlo_next(r);
    size_t at = r->at;
    bool negative = byte_at(r, at) == '-';
    at += negative;
    size_t digits = at;
    uint64_t number = 0;
    for (; byte_at(r, at) >= '0' && byte_at(r, at) <= '9'; at++) {
        if (number > (uint64_t)INT64_MAX / 10 - 1)
            return hlo_fail(r, (sm_span){digits, at - digits}, "a number is too large");
        number = number * 10 + (uint64_t)(byte_at(r, at) - '0');
    }
    if (at == digits) return false;
    r->at = at;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

bool hlo_quoted(hlo_reader *r, sm_span *span) {
    if (hlo_next(r) != '"') return false;
    size_t from = ++r->at;
    while (byte_at(r, r->at) != '"') {
        if (byte_at(r, r->at) < 0) return hlo_fail(r, (sm_span){from - 1, 1}, "a quote has no end");
        if (byte_at(r, r->at) == '\n') r->line++;
        r->at += byte_at(r, r->at) == '\\' && byte_at(r, r->at + 1) >= 0 ? 2 : 1;
    }
    *span = (sm_span){from, r->at++ - from};
    return true;
}

/* Past one byte, or past quotes; depth counts the brackets that are open. */
static void skip_step(hlo_reader *r, int *depth) {
    sm_span quoted;
    int c = byte_at(r, r->at);
    if (c == '"') {
        hlo_quoted(r, &quoted);
        return;
    }
    *depth += c == '{' || c == '(' || c == '[';
    *depth -= c == '}' || c == ')' || c == ']';
    if (c == '\n') r->line++;
    r->at++;
}

sm_span hlo_skip_value(hlo_reader *r) {
    hlo_next(r);
    size_t from = r->at;
    int depth = 0;
    for (int c; !r->status && (c = byte_at(r, r->at)) >= 0; skip_step(r, &depth))
        if (depth == 0 && (c == ',' || c == '}' || c == ')' || c == '\n')) break;
    if (depth) hlo_fail(r, (sm_span){from, 1}, "a bracket has no end");
    return (sm_span){from, r->status ? 0 : r->at - from};
}

void hlo_skip_brackets(hlo_reader *r) {
    size_t from = r->at;
    int depth = 0;
    do skip_step(r, &depth);
    while (!r->status && depth > 0 && byte_at(r, r->at) >= 0);
    if (depth) hlo_fail(r, (sm_span){from, 1}, "a bracket has no end");
}

void *hlo_push(hlo_reader *r, hlo_list *list, size_t bytes) {
    void *larger = sm_grow(list->item, list->n, &list->room, bytes);
    if (!larger) {
        hlo_no_memory(r);
        return NULL;
    }
    list->item = larger;
    return memset((char *)larger + list->n++ * bytes, 0, bytes);
}

bool hlo_keep_numbers(hlo_reader *r, sm_module_list *out) {
    *out = (sm_module_list){0};
    if (r->numbers.n == 0) return true;
    int64_t *copy = sm_arena_array(r->arena, r->numbers.n, sizeof *copy);
    if (!copy) return hlo_no_memory(r);
    memcpy(copy, r->numbers.item, r->numbers.n * sizeof *copy);
    *out = (sm_module_list){(int)r->numbers.n, copy};
    return true;
}

bool hlo_numbers(hlo_reader *r, char between, char end, sm_module_list *out) {
    r->numbers.n = 0;
    while (!hlo_accept(r, end)) {
        if (r->numbers.n && !hlo_expect(r, between, "between numbers")) return false;
        int64_t value = 0, *number;
        if (!hlo_number(r, &value))
            return hlo_fail(r, (sm_span){r->at, 1}, "expected a number or '%c'", end);
        if (r->numbers.n >= HLO_MOST_DEVICES)
            return hlo_fail(r, (sm_span){r->at, 1}, "a list has more than %d numbers",
                            HLO_MOST_DEVICES);
        if (!(number = hlo_push(r, &r->numbers, sizeof *number))) return false;
        *number = value;
    }
    return hlo_keep_numbers(r, out);
}

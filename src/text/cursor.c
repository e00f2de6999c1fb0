/* A cursor over a source for the small hand-written grammars. */
#include "scalemodel/text.h"

#include <string.h>

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int sm_cursor_peek(const sm_cursor *c) {
    return c->at < c->source->length ? (unsigned char)c->source->text[c->at] : -1;
}

void sm_cursor_blanks(sm_cursor *c) {
    int byte = sm_cursor_peek(c);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        c->at++;
        byte = sm_cursor_peek(c);
    }
}

bool sm_cursor_end(sm_cursor *c) {
    sm_cursor_blanks(c);
    return c->at >= c->source->length;
}

bool sm_cursor_accept(sm_cursor *c, char byte) {
    sm_cursor_blanks(c);
    if (sm_cursor_peek(c) != (unsigned char)byte) return false;
    c->at++;
    return true;
}

bool sm_cursor_accept_word(sm_cursor *c, const char *word) {
    sm_cursor_blanks(c);
    size_t n = strlen(word);
    if (c->at > c->source->length || n > c->source->length - c->at) return false;
    if (memcmp(c->source->text + c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

sm_span sm_cursor_name(sm_cursor *c) {
    sm_span span = {c->at, 0};
    if (!is_letter(sm_cursor_peek(c))) return span;
    while (is_letter(sm_cursor_peek(c)) || is_digit(sm_cursor_peek(c))) c->at++;
    span.length = c->at - span.offset;
    return span;
}

sm_span sm_cursor_digits(sm_cursor *c) {
    sm_span span = {c->at, 0};
    while (is_digit(sm_cursor_peek(c))) c->at++;
    span.length = c->at - span.offset;
    return span;
}

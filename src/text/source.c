/* Errors that point into a text: line, column, and the line itself cut around the span. */
#include "scalemodel/text.h"
#include "sink.h"
#include <ctype.h>

#define EXCERPT_COLUMNS 72 /* of the line shown at most: with its cuts, 80 */
#define COLUMNS_BEFORE 30  /* of them before the span when the line is long */
#define CUT "..."

sm_source sm_source_of(const char *name, const char *text) {
    return (sm_source){name != NULL ? name : "", text != NULL ? text : "",
                       text != NULL ? strlen(text) : 0};
}

static int clamp_to_int(size_t n) { return n < INT32_MAX ? (int)n : INT32_MAX; }

/* Terminal columns of the next character and its bytes, as sm_utf8_clean will write it. */
static int step(const char *text, size_t length, size_t *bytes) {
    uint32_t code = 0;
    size_t n = sm_utf8_decode(text, length, &code);
    *bytes = n > 0 ? n : 1;
    int width = n > 0 ? sm_utf8_width(code) : 1;
    return width < 0 ? 1 : width;
}

/* Columns of the longest prefix within `columns` columns and `room` bytes; *bytes is its length. */
static int measure(const char *text, size_t length, int columns, size_t room, size_t *bytes) {
    int used = 0;
    size_t at = 0, n = 0;
    while (at < length) {
        int width = step(text + at, length - at, &n);
        if (used + width > columns || at + n > room) break;
        used += width;
        at += n;
    }
    *bytes = at;
    return used;
}

/* Where to begin showing the line: at its start when it fits, else a little left of the span. */
static size_t cut_before(const char *line, size_t length, size_t offset, size_t room) {
    size_t fitting = 0;
    measure(line, length, EXCERPT_COLUMNS, room, &fitting);
    if (fitting == length || offset <= COLUMNS_BEFORE) return 0;
    size_t start = offset - COLUMNS_BEFORE;
    while (start < offset && (((unsigned char)line[start] & 0xC0) == 0x80)) start++;
    return start;
}

static void fill_excerpt(sm_error *err, const char *line, size_t length, sm_span span) {
    size_t room = sizeof err->excerpt - 2 * sizeof CUT;
    size_t start = cut_before(line, length, span.offset, room);
    size_t before = 0, under = 0, shown = 0, head = start > 0 ? strlen(CUT) : 0;
    const char *from = line + start;
    int indent = measure(from, span.offset - start, EXCERPT_COLUMNS, room, &before);
    int width =
        measure(from + before, span.length, EXCERPT_COLUMNS - indent, room - before, &under);
    measure(from, length - start, EXCERPT_COLUMNS, room, &shown);
    memcpy(err->excerpt, CUT, head);
    size_t end = head + sm_utf8_clean(err->excerpt + head, room + 1, from, shown);
    if (start + shown < length) memcpy(err->excerpt + end, CUT, sizeof CUT);
    err->excerpt_column = (int)head + indent + 1;
    err->span = width > 0 ? width : 1;
}

static void fill_place(sm_error *err, const sm_source *source, sm_span span) {
    size_t at = span.offset < source->length ? span.offset : source->length;
    /* The line that holds `at`: found with memchr, so that a line of 100 MB costs milliseconds. */
    size_t start = at;
    while (start > 0 && source->text[start - 1] != '\n') start--;
    size_t left = source->length - at;
    const char *newline = left > 0 ? memchr(source->text + at, '\n', left) : NULL;
    size_t end = newline != NULL ? (size_t)(newline - source->text) : source->length;
    if (end > start && source->text[end - 1] == '\r') end--;
    sm_span line = (sm_span){start, end > start ? end - start : 0};
    if (at > line.offset + line.length) at = line.offset + line.length; /* on the \r of \r\n */
    sm_span within = {at - line.offset, span.length};
    if (within.length > line.length - within.offset) within.length = line.length - within.offset;
    size_t lines = 1;
    for (size_t i = 0; i < line.offset; i++) lines += source->text[i] == '\n';
    err->line = clamp_to_int(lines);
    /* Columns count characters: every byte that does not continue a UTF-8 sequence. */
    size_t characters = 0;
    for (size_t i = 0; i < within.offset; i++)
        characters += ((unsigned char)(source->text + line.offset)[i] & 0xC0) != 0x80;
    err->column = clamp_to_int(characters);
    if (err->column < INT32_MAX) err->column++;
    fill_excerpt(err, source->text + line.offset, line.length, within);
}

sm_status sm_vfail_at(sm_error *err, const sm_source *source, sm_span span, const char *format,
                      va_list args) {
    if (err == NULL) return SM_BAD_INPUT;
    char sentence[2 * sizeof err->sentence]; /* apart: an argument may point into *err */
    if (vsnprintf(sentence, sizeof sentence, format, args) < 0) sentence[0] = '\0';
    memset(err, 0, sizeof *err);
    err->status = SM_BAD_INPUT;
    sm_utf8_clean(err->sentence, sizeof err->sentence, sentence, strlen(sentence));
    if (source == NULL) return SM_BAD_INPUT;
    if (source->name != NULL)
        sm_utf8_clean(err->source, sizeof err->source, source->name, strlen(source->name));
    fill_place(err, source, span);
    return SM_BAD_INPUT;
}

sm_status sm_fail_at(sm_error *err, const sm_source *source, sm_span span, const char *format,
                     ...) {
    va_list args;
    va_start(args, format);
    sm_status status = sm_vfail_at(err, source, span, format, args);
    va_end(args);
    return status;
}

size_t sm_error_format(const sm_error *err, char *out, size_t size) {
    sm_sink to = sm_sink_into(out, size);
    if (err->source[0] != '\0') sm_sink_put(&to, "%s:", err->source);
    if (err->line > 0) sm_sink_put(&to, "%d:%d:", err->line, err->column);
    sm_sink_put(&to, "%s%s", to.wanted > 0 ? " " : "", err->sentence);
    if (err->line <= 0 || err->excerpt[0] == '\0') return to.wanted;
    sm_sink_put(&to, "\n  %s\n  %*s", err->excerpt, err->excerpt_column, "^");
    for (int i = 1; i < err->span; i++) sm_sink_put(&to, "~");
    return to.wanted;
}

/* A cursor over a source for the small hand-written grammars. */

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
    while (is_letter(sm_cursor_peek(c)) || isdigit(sm_cursor_peek(c))) c->at++;
    span.length = c->at - span.offset;
    return span;
}

sm_span sm_cursor_digits(sm_cursor *c) {
    sm_span span = {c->at, 0};
    while (isdigit(sm_cursor_peek(c))) c->at++;
    span.length = c->at - span.offset;
    return span;
}

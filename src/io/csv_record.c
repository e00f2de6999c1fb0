/* A record of CSV. */
#include "csv_record.h"

#include <assert.h>

static bool at_line_end(const sm_source *s, size_t at) {
    return at >= s->length || s->text[at] == '\n' ||
           (s->text[at] == '\r' && (at + 1 >= s->length || s->text[at + 1] == '\n'));
}

static bool is_blank(const sm_source *s, size_t at) {
    return at < s->length && (s->text[at] == ' ' || s->text[at] == '\t');
}

static bool is_quote(const sm_source *s, size_t at) { return at < s->length && s->text[at] == '"'; }

static bool refuse(csv_record *r, size_t at, const char *sentence) {
    r->wrong = (sm_span){at, 1};
    snprintf(r->sentence, sizeof r->sentence, "%s", sentence);
    return false;
}

/* *at: of the opening quote; then behind the blanks that follow the closing one. */
static bool take_quoted(const sm_source *s, size_t *at, csv_record *r) {
    size_t start = *at, i = start + 1;
    while (i < s->length && (!is_quote(s, i) || is_quote(s, i + 1))) i += is_quote(s, i) ? 2 : 1;
    if (i >= s->length) return refuse(r, start, "this quote is never closed");
    r->cell[r->n++] = (sm_span){start, i + 1 - start};
    for (i++; is_blank(s, i);) i++;
    *at = i;
    if (at_line_end(s, i) || s->text[i] == ',') return true;
    return refuse(r, i, "expected a comma or the end of the line after the closing quote");
}

bool csv_read(const sm_source *s, size_t *begin, int columns, csv_record *r) {
    size_t at = *begin;
    r->n = 0;
    for (;; at++) { /* past the comma */
        while (is_blank(s, at)) at++;
        if (r->n == CSV_MOST_CELLS) return refuse(r, at, "a row has at most 256 cells");
        if (is_quote(s, at)) {
            if (!take_quoted(s, &at, r)) return false;
        } else {
            size_t start = at;
            while (!at_line_end(s, at) && s->text[at] != ',') at++;
            size_t end = at;
            while (end > start && is_blank(s, end - 1)) end--;
            r->cell[r->n++] = (sm_span){start, end - start};
        }
        if (at_line_end(s, at)) break;
    }
    r->whole = (sm_span){*begin, at - *begin};
    at += at < s->length && s->text[at] == '\r';
    *begin = at + (at < s->length);
    assert(*begin <= s->length);
    if (columns == 0 || r->n == columns) return true;
    r->wrong = r->whole;
    snprintf(r->sentence, sizeof r->sentence,
             "this row has %d cells, but the header names %d columns", r->n, columns);
    return false;
}

sm_span csv_inside(const sm_source *s, sm_span cell) {
    bool quoted = cell.length >= 2 && s->text[cell.offset] == '"';
    return quoted ? (sm_span){cell.offset + 1, cell.length - 2} : cell;
}

char *csv_copy(const sm_source *s, sm_span cell, sm_arena *arena) {
    sm_span inside = csv_inside(s, cell);
    char *copy = sm_arena_copy(arena, s->text + inside.offset, inside.length);
    if (!copy || inside.length == cell.length) return copy;
    size_t n = 0;
    for (size_t i = 0; i < inside.length; i++) {
        copy[n++] = copy[i];
        i += copy[i] == '"'; /* of two, the second */
    }
    copy[n] = 0;
    return copy;
}

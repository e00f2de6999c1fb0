/* The usual line of JSON, read in one pass: a flat object of plain texts, decimal numbers and lists
 * of digits. Anything else is left to the full reader, which also words the errors. */
#include "request_row.h"

#include <string.h>

typedef struct scan {
    const char *text;
    size_t length, at;
} scan;

static void skip_blanks(scan *s) {
    while (s->at < s->length && (s->text[s->at] == ' ' || s->text[s->at] == '\t')) s->at++;
}

static bool take(scan *s, char byte) {
    skip_blanks(s);
    if (s->at >= s->length || s->text[s->at] != byte) return false;
    s->at++;
    return true;
}

static bool take_text(scan *s, sm_span *span) {
    if (!take(s, '"')) return false;
    size_t start = s->at;
    for (; s->at < s->length && s->text[s->at] != '"'; s->at++) {
        unsigned char byte = (unsigned char)s->text[s->at];
        if (byte < 0x20 || byte >= 0x7F || byte == '\\') return false;
    }
    *span = (sm_span){start, s->at - start};
    return take(s, '"');
}

/* JSON has no leading zeros and no bare points. */
static bool take_number(scan *s, sm_span *span, double *value) {
    skip_blanks(s);
    size_t start = s->at;
    while (s->at < s->length && strchr("0123456789.", s->text[s->at]) && s->text[s->at]) s->at++;
    size_t n = s->at - start;
    const char *text = s->text + start;
    if (n == 0 || n > 16 || text[0] == '.' || text[n - 1] == '.') return false;
    if (n > 1 && text[0] == '0' && text[1] != '.') return false;
    *span = (sm_span){start, n};
    return request_number(text, n, value);
}

static bool take_value(scan *s, const request_name *name, request_row *row) {
    request_cell other, *to = name ? &row->cell[name->field] : &other;
    if (name && to->kind != CELL_ABSENT) return false;
    *to = (request_cell){CELL_IS_TEXT, {0, 0}, 0.0, name ? name->unit_s : 0.0};
    if (name && name->field == REQUEST_BLOCKS) {
        to->kind = CELL_IS_LIST;
        /* At most what there is room for: the full reader widens it. */
        sm_span span;
        double id = 0.0;
        int n = 0;
        if (!take(s, '[')) return false;
        if (take(s, ']')) return true;
        do {
            if (n == row->block_room || !take_number(s, &span, &id)) return false;
            bool exact = span.length < 16 && !memchr(s->text + span.offset, '.', span.length);
            if (!exact) return false;
            row->block[n++] = (uint64_t)id;
        } while (take(s, ','));
        row->blocks = n;
        return take(s, ']');
    }
    skip_blanks(s);
    if (s->at < s->length && s->text[s->at] == '"') return take_text(s, &to->text);
    to->kind = CELL_IS_NUMBER;
    return take_number(s, &to->text, &to->number);
}

bool request_flat_read(const sm_source *line, request_row *row) {
    scan s = {line->text, line->length, 0};
    sm_span key;
    if (!take(&s, '{')) return false;
    do {
        if (!take_text(&s, &key) || !take(&s, ':')) return false;
        const request_name *name = request_name_of(s.text + key.offset, key.length);
        if (!take_value(&s, name, row)) return false;
    } while (take(&s, ','));
    if (!take(&s, '}')) return false;
    skip_blanks(&s);
    return s.at == s.length;
}

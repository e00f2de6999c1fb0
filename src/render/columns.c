/* Text measured in terminal columns. */
#include "columns.h"

#include <assert.h>
#include <errno.h>

/* Columns of the character at text, its bytes in *bytes, and whether it can be shown as it is. */
static int measure(const char *text, size_t length, size_t *bytes, bool *shown) {
    uint32_t code = 0;
    size_t n = sm_utf8_decode(text, length, &code);
    int width = n > 0 ? sm_utf8_width(code) : -1;
    *bytes = n > 0 ? n : 1;
    *shown = width >= 0;
    return width >= 0 ? width : 1;
}

int sm_columns_of(const char *text, size_t length) {
    int columns = 0;
    bool shown;
    for (size_t at = 0, n = 0; at < length; at += n)
        columns += measure(text + at, length - at, &n, &shown);
    return columns;
}

void sm_print_text(FILE *out, const char *text, size_t length) {
    for (size_t at = 0, n = 0; at < length; at += n) {
        bool shown = false;
        measure(text + at, length - at, &n, &shown);
        if (shown) fwrite(text + at, 1, n, out);
        else fputc(text[at] == '\t' || text[at] == '\n' ? ' ' : '?', out);
    }
}

void sm_print_repeated(FILE *out, const char *glyph, int times) {
    for (int i = 0; i < times; i++) fputs(glyph, out);
}

/* Bytes up to and with the last of the characters in `stops`; 0 when there is none. */
static size_t last_of(const char *text, size_t length, const char *stops) {
    while (length > 0 && strchr(stops, text[length - 1]) == NULL) length--;
    return length;
}

size_t sm_next_line(const char *text, size_t length, int columns, size_t *next) {
    size_t fits = 0;
    bool shown;
    for (int used = 0; fits < length && text[fits] != '\n';) {
        size_t n = 0;
        used += measure(text + fits, length - fits, &n, &shown);
        if (used > columns && fits > 0) break; /* at least one character */
        fits += n;
    }
    assert(fits <= length);
    *next = fits;
    if (fits == length) return fits;
    if (text[fits] == '\n' || text[fits] == ' ') {
        *next = fits + 1;
        return fits;
    }
    size_t blank = last_of(text, fits, " "), stop = last_of(text, fits, ",;/");
    if (stop == 0) stop = last_of(text, fits, "=-.");
    if (blank > 1) return (*next = blank) - 1;
    if (stop > 0) return *next = stop;
    return fits;
}

void sm_print_wrapped(FILE *out, const char *text, int width, const char *first, const char *rest) {
    const char *lead = first;
    size_t length = strlen(text), at = 0;
    do {
        int columns = width - sm_columns_of(lead, strlen(lead));
        size_t next = 0, n = sm_next_line(text + at, length - at, columns, &next);
        fputs(lead, out);
        sm_print_text(out, text + at, n);
        fputc('\n', out);
        at += next;
        lead = rest;
    } while (at < length);
}

sm_status sm_finish_stream(FILE *out, sm_error *err) {
    if (fflush(out) == 0 && !ferror(out)) return SM_OK;
    if (errno == ENOMEM) return sm_fail_memory(err); /* a stream into memory */
    return sm_fail(err, SM_IO, "cannot write the answer: %s", strerror(errno));
}

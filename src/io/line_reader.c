#include "file_parts.h"

enum { FIRST_ROOM = 1 << 16 };

static sm_status begin(line_reader *r, sm_status status, sm_error *err) {
    if (status) return status;
    r->buffer = sm_malloc(FIRST_ROOM);
    r->room = FIRST_ROOM;
    return r->buffer ? SM_OK : sm_fail_memory(err);
}

sm_status line_reader_open(line_reader *r, const char *path, sm_error *err) {
    *r = (line_reader){.name = path};
    return begin(r, packed_open(path, false, &r->file, err), err);
}

sm_status line_reader_of(line_reader *r, const sm_source *source, sm_error *err) {
    *r = (line_reader){.name = source->name};
    return begin(r, packed_of(source, &r->file, err), err);
}

void line_reader_close(line_reader *r) {
    packed_close(r->file);
    sm_free(r->buffer);
    *r = (line_reader){.file = NULL};
}

/* ---- bytes ---- */

/* More bytes behind those that wait: they move to the front, and a line longer than the buffer
 * widens it. */
static sm_status fill(line_reader *r, sm_error *err) {
    if (r->begin > 0) memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    if (r->end == r->room) {
        sm_source line = {r->name, r->buffer, r->end};
        r->line++;
        if (r->room >= LINE_MOST_BYTES)
            return line_fail(r, &line, (sm_span){0, 1}, err, "a line has at most %d bytes",
                             LINE_MOST_BYTES);
        r->line--;
        char *wider = sm_realloc(r->buffer, 2 * r->room);
        if (!wider) return sm_fail_memory(err);
        r->buffer = wider;
        r->room *= 2;
    }
    size_t got = 0;
    const sm_bytes bytes = packed_bytes(r->file);
    sm_status status = bytes.read(bytes.context, r->buffer + r->end, r->room - r->end, &got, err);
    r->end += got;
    r->at_end = got == 0;
    return status;
}

/* ---- lines ---- */

static sm_status take_line(line_reader *r, sm_source *line, bool *more, sm_error *err) {
    size_t looked = 0;
    for (;;) {
        char *start = r->buffer + r->begin;
        size_t length = r->end - r->begin;
        char *newline = length > looked ? memchr(start + looked, '\n', length - looked) : NULL;
        *more = newline || length > 0;
        if (newline || r->at_end) {
            size_t taken = newline ? (size_t)(newline - start) : length;
            *line = (sm_source){r->name, start, taken};
            r->begin += taken + (newline ? 1 : 0);
            if (r->line < INT32_MAX) r->line += *more;
            return SM_OK;
        }
        looked = length;
        sm_status status = fill(r, err);
        if (status) return status;
    }
}

sm_status line_reader_next(line_reader *r, sm_source *line, bool *more, sm_error *err) {
    sm_span said;
    size_t blank = 0;
    do {
        sm_status status = take_line(r, line, more, err);
        if (status || !*more) return status;
        blank += line->length + 1;
        if (blank > LINE_MOST_BLANK + line->length)
            return line_fail(r, line, (sm_span){0, 0}, err,
                             "%d MiB of blank lines and comments stand here one after the other",
                             LINE_MOST_BLANK >> 20);
        if (r->line == 1 && line->length >= 3 && memcmp(line->text, "\xEF\xBB\xBF", 3) == 0) {
            line->text += 3; /* a byte order mark */
            line->length -= 3;
        }
        if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
        said = sm_source_trim(line, 0, line->length);
    } while (said.length == 0 || line->text[said.offset] == '#');
    return SM_OK;
}

sm_status line_fail(const line_reader *r, const sm_source *line, sm_span span, sm_error *err,
                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    sm_status status = sm_vfail_at(err, line, span, format, args);
    va_end(args);
    if (err) err->line = r->line;
    return status;
}

#include "line_reader.h"
#include "system_error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { FIRST_ROOM = 1 << 16 };

static sm_status begin(line_reader *r, sm_error *err) {
    r->buffer = sm_malloc(FIRST_ROOM);
    r->room = FIRST_ROOM;
    return r->buffer ? SM_OK : sm_fail_memory(err);
}

sm_status line_reader_open(line_reader *r, const char *path, sm_error *err) {
    struct stat is;
    *r = (line_reader){.name = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return sm_fail_system(err, "open", path, errno);
    bool folder = fstat(file, &is) == 0 && S_ISDIR(is.st_mode);
    if (folder) errno = EISDIR;
    r->file = folder ? NULL : gzdopen(file, "rb");
    if (!r->file) {
        sm_status status = sm_fail_system(err, "read", path, errno ? errno : ENOMEM);
        close(file);
        return status;
    }
    gzbuffer(r->file, FIRST_ROOM);
    return begin(r, err);
}

sm_status line_reader_of(line_reader *r, const sm_source *source, sm_error *err) {
    *r = (line_reader){.name = source->name, .memory = source->text};
    r->memory_length = source->length;
    return begin(r, err);
}

void line_reader_close(line_reader *r) {
    if (r->file) gzclose_r(r->file);
    sm_free(r->buffer);
    *r = (line_reader){.file = NULL};
}

sm_status line_reader_rewind(line_reader *r, sm_error *err) {
    if (r->file && gzrewind(r->file) != 0)
        return sm_fail(err, SM_IO, "cannot read %s a second time", r->name);
    r->memory_at = r->begin = r->end = 0;
    r->unpacked = 0;
    r->at_end = false;
    r->line = 0;
    return SM_OK;
}

/* ---- bytes ---- */

static sm_status fail_read(const line_reader *r, sm_error *err) {
    int code = Z_OK;
    gzerror(r->file, &code);
    if (code == Z_ERRNO) return sm_fail_system(err, "read", r->name, errno);
    if (code == Z_MEM_ERROR) return sm_fail_memory(err);
    return sm_fail(err, SM_BAD_INPUT, "%s: the gzip data is damaged or cut short after line %d",
                   r->name, r->line);
}

static sm_status read_bytes(line_reader *r, char *to, size_t most, size_t *got, sm_error *err) {
    if (r->file) {
        int n = gzread(r->file, to, (unsigned)most);
        int code = Z_OK;
        *got = n > 0 ? (size_t)n : 0;
        if (n == 0) gzerror(r->file, &code); /* a stream cut short ends without a word */
        if (n < 0 || code == Z_BUF_ERROR) return fail_read(r, err);
        r->unpacked += *got;
        bool bomb = r->unpacked > LINE_FREE_BYTES && !gzdirect(r->file) &&
                    r->unpacked > LINE_MOST_RATIO * (uint64_t)gzoffset(r->file);
        if (!bomb) return SM_OK;
        return sm_fail(err, SM_BAD_INPUT,
                       "%s: its gzip data becomes more than %d times as large after line %d: a "
                       "file that is meant so is read once it is unpacked",
                       r->name, LINE_MOST_RATIO, r->line);
    }
    size_t left = r->memory_length - r->memory_at;
    *got = left < most ? left : most;
    if (*got) memcpy(to, r->memory + r->memory_at, *got);
    r->memory_at += *got;
    return SM_OK;
}

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
    sm_status status = read_bytes(r, r->buffer + r->end, r->room - r->end, &got, err);
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

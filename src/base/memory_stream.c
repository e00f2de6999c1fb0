/* A stream into memory. That of the C library (open_memstream) loses what it has no memory for and
 * says nothing; here a write fails as one to a full disk does. */
#define _GNU_SOURCE /* fopencookie */
#include "scalemodel/base.h"

#include <errno.h>
#include <string.h>

enum { FIRST_ROOM = 1 << 12 };

static ssize_t take(void *cookie, const char *bytes, size_t n) {
    sm_memory_stream *m = cookie;
    size_t room = m->room ? m->room : FIRST_ROOM;
    while (room - m->length <= n) room *= 2; /* a byte stays for the terminating 0 */
    char *text = m->failed || room == m->room ? m->text : sm_realloc(m->text, room);
    if (m->failed || !text) {
        m->failed = true;
        errno = ENOMEM;
        return 0;
    }
    memcpy(text + m->length, bytes, n);
    m->text = text;
    m->room = room;
    m->length += n;
    return (ssize_t)n;
}

FILE *sm_memory_stream_open(sm_memory_stream *m) {
    static const cookie_io_functions_t calls = {.write = take};
    *m = (sm_memory_stream){.text = NULL};
    FILE *out = fopencookie(m, "w", calls);
    if (out) setvbuf(out, m->buffer, _IOFBF, sizeof m->buffer);
    return out;
}

sm_status sm_memory_stream_close(sm_memory_stream *m, FILE *out, sm_status status, sm_error *err) {
    bool whole = fclose(out) == 0 && !m->failed;
    if (whole && !m->text) whole = take(m, "", 0) == 0 && m->text;
    if (whole && !status) {
        m->text[m->length] = '\0';
        return SM_OK;
    }
    sm_free(m->text);
    *m = (sm_memory_stream){.text = NULL};
    return status ? status : sm_fail_memory(err);
}

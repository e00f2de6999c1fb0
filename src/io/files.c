/* Whole files in, whole files out. */
#include "scalemodel/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replacement.h"
#include "system_error.h"

enum { FIRST_BYTES = 1 << 14 };

/* ---- read ---- */

typedef struct content {
    char *bytes;
    size_t length, room, most;
} content;

static sm_status fail_larger(const content *c, const char *path, sm_error *err) {
    return sm_fail(err, SM_IO, "cannot read %s: it is larger than %zu MiB", path, c->most >> 20);
}

static sm_status grow(content *c, const char *path, sm_error *err) {
    size_t room = c->room ? 2 * c->room : FIRST_BYTES;
    if (c->length > c->most) return fail_larger(c, path, err);
    char *bytes = sm_realloc(c->bytes, room);
    if (!bytes) return sm_fail_memory(err);
    c->bytes = bytes;
    c->room = room;
    return SM_OK;
}

static sm_status read_all(int file, const char *path, content *c, sm_error *err) {
    for (;;) {
        sm_status status = c->length == c->room ? grow(c, path, err) : SM_OK;
        if (status != SM_OK) return status;
        ssize_t n = read(file, c->bytes + c->length, c->room - c->length);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sm_fail_system(err, "read", path, errno);
        c->length += (size_t)n;
    }
    return c->length <= c->most ? SM_OK : fail_larger(c, path, err);
}

sm_status sm_io_read_most(const char *path, size_t most, sm_arena *arena, sm_source *source,
                          sm_error *err) {
    struct stat is;
    content c = {.most = most};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return sm_fail_system(err, "open", path, errno);
    bool large = fstat(file, &is) == 0 && S_ISREG(is.st_mode) && (uintmax_t)is.st_size > most;
    sm_status status = large ? fail_larger(&c, path, err) : read_all(file, path, &c, err);
    close(file);
    if (status == SM_OK) {
        source->name = sm_arena_copy(arena, path, strlen(path));
        source->text = sm_arena_copy(arena, c.bytes, c.length);
        source->length = c.length;
        if (!source->name || !source->text) status = sm_fail_memory(err);
    }
    sm_free(c.bytes);
    return status;
}

sm_status sm_io_read(const char *path, sm_arena *arena, sm_source *source, sm_error *err) {
    return sm_io_read_most(path, SM_IO_TEXT_BYTES, arena, source, err);
}

/* ---- write ---- */

sm_status sm_io_write(const char *path, const char *text, size_t length, sm_error *err) {
    replacement *r;
    sm_status status = replacement_begin(path, &r, err);
    if (status) return status;
    return replacement_end(r, write_bytes(replacement_file(r), text, length), err);
}

sm_status sm_io_write_check(const char *path, sm_error *err) {
    struct stat is;
    replacement *r;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode)) return SM_OK;
    sm_status status = replacement_begin(path, &r, err);
    if (!status) replacement_abandon(r);
    return status;
}

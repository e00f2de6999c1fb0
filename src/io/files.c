/* Whole files in, whole files out. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "scalemodel/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 30, FIRST_BYTES = 1 << 14, TRIES = 100 };

static sm_status fail_system(sm_error *err, const char *verb, const char *path, int reason) {
    char text[128] = "";
    if (strerror_r(reason, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", reason);
    return sm_fail(err, SM_IO, "cannot %s %s: %s", verb, path, text);
}

/* ---- read ---- */

typedef struct content {
    char *bytes;
    size_t length, room;
} content;

static sm_status grow(content *c, const char *path, sm_error *err) {
    size_t room = c->room ? 2 * c->room : FIRST_BYTES;
    if (c->length > MOST_BYTES)
        return sm_fail(err, SM_IO, "cannot read %s: it is larger than 1 GiB", path);
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
        if (n < 0) return fail_system(err, "read", path, errno);
        c->length += (size_t)n;
    }
    if (c->length <= MOST_BYTES) return SM_OK;
    return sm_fail(err, SM_IO, "cannot read %s: it is larger than 1 GiB", path);
}

sm_status sm_io_read(const char *path, sm_arena *arena, sm_source *source, sm_error *err) {
    content c = {NULL, 0, 0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail_system(err, "open", path, errno);
    sm_status status = read_all(file, path, &c, err);
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

/* ---- write ---- */

static int write_bytes(int file, const char *text, size_t length) {
    while (length > 0) {
        ssize_t n = write(file, text, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

/* Devices and pipes cannot be replaced: written in place. */
static sm_status write_in_place(const char *path, const char *text, size_t length, sm_error *err) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return fail_system(err, "open", path, errno);
    int reason = write_bytes(file, text, length);
    if (close(file) != 0 && reason == 0) reason = errno;
    return reason == 0 ? SM_OK : fail_system(err, "write", path, reason);
}

/* A new file beside path; its name in temporary. -1 with errno on failure. */
static int create_beside(const char *path, char *temporary, size_t size) {
    for (int i = 0; i < TRIES; i++) {
        int n = snprintf(temporary, size, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        if (n < 0 || (size_t)n >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

/* Everything that must reach the disk before the name may point to it: 0 or errno. */
static int fill_and_close(int file, const char *text, size_t length, const struct stat *old) {
    int reason = write_bytes(file, text, length);
    if (reason == 0 && old && fchmod(file, old->st_mode & 07777) != 0) reason = errno;
    if (reason == 0 && fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP) reason = errno;
    if (close(file) != 0 && reason == 0) reason = errno;
    return reason;
}

static sm_status replace(const char *path, const char *text, size_t length, const struct stat *old,
                         sm_error *err) {
    char temporary[PATH_MAX + 64];
    int file = create_beside(path, temporary, sizeof temporary);
    if (file < 0) return fail_system(err, "create a file beside", path, errno);
    int reason = fill_and_close(file, text, length, old);
    if (reason == 0 && rename(temporary, path) != 0) reason = errno;
    if (reason == 0) return SM_OK;
    unlink(temporary);
    return fail_system(err, "write", path, reason);
}

sm_status sm_io_write(const char *path, const char *text, size_t length, sm_error *err) {
    char target[PATH_MAX];
    struct stat old;
    if (stat(path, &old) != 0) return replace(path, text, length, NULL, err);
    if (S_ISDIR(old.st_mode)) return fail_system(err, "write", path, EISDIR);
    if (!S_ISREG(old.st_mode)) return write_in_place(path, text, length, err);
    /* a symbolic link is kept: its target is replaced */
    if (!realpath(path, target)) return fail_system(err, "resolve", path, errno);
    return replace(target, text, length, &old, err);
}

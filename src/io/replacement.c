/* Files that are replaced at once. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system_error.h"

enum { TRIES = 100 };

struct replacement {
    const char *path;
    int file;
    bool in_place;   /* a device or pipe cannot be replaced */
    bool keeps_mode; /* that of the file it replaces */
    mode_t mode;
    char target[PATH_MAX], temporary[PATH_MAX + 64];
};

sm_status sm_fail_system(sm_error *err, const char *verb, const char *path, int reason) {
    char text[128] = "";
    if (reason == ENOMEM) return sm_fail_memory(err);
    if (strerror_r(reason, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", reason);
    return sm_fail(err, SM_IO, "cannot %s %s: %s", verb, path, text);
}

int write_bytes(int file, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t n = write(file, at, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

/* A new file beside the target. -1 with errno on failure. */
static int create_beside(replacement *r) {
    for (int i = 0; i < TRIES; i++) {
        int n = snprintf(r->temporary, sizeof r->temporary, "%s.%ld-%d.tmp", r->target,
                         (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof r->temporary) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int file = open(r->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

/* A symbolic link is kept: its target is replaced. */
static sm_status find_target(replacement *r, sm_error *err) {
    struct stat old;
    if (stat(r->path, &old) != 0) {
        size_t length = strlen(r->path);
        if (length >= sizeof r->target)
            return sm_fail_system(err, "create a file beside", r->path, ENAMETOOLONG);
        memcpy(r->target, r->path, length + 1);
        return SM_OK;
    }
    if (S_ISDIR(old.st_mode)) return sm_fail_system(err, "write", r->path, EISDIR);
    if (!S_ISREG(old.st_mode)) {
        r->in_place = true;
        r->file = open(r->path, O_WRONLY | O_CLOEXEC);
        return r->file < 0 ? sm_fail_system(err, "open", r->path, errno) : SM_OK;
    }
    r->keeps_mode = true;
    r->mode = old.st_mode & 07777;
    return realpath(r->path, r->target) ? SM_OK : sm_fail_system(err, "resolve", r->path, errno);
}

sm_status replacement_begin(const char *path, replacement **out, sm_error *err) {
    replacement *r = sm_calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return sm_fail_memory(err);
    r->path = path;
    sm_status status = find_target(r, err);
    if (!status && !r->in_place) {
        r->file = create_beside(r);
        if (r->file < 0) status = sm_fail_system(err, "create a file beside", path, errno);
    }
    if (status) sm_free(r);
    else *out = r;
    return status;
}

int replacement_file(const replacement *r) { return r->file; }

/* Everything must reach the disk before the name may point to it: 0 or errno. */
static int settle(const replacement *r) {
    if (r->keeps_mode && fchmod(r->file, r->mode) != 0) return errno;
    if (fsync(r->file) != 0 && errno != EINVAL && errno != ENOTSUP) return errno;
    return 0;
}

sm_status replacement_end(replacement *r, int reason, sm_error *err) {
    if (reason == 0 && !r->in_place) reason = settle(r);
    if (close(r->file) != 0 && reason == 0) reason = errno;
    if (reason == 0 && !r->in_place && rename(r->temporary, r->target) != 0) reason = errno;
    if (reason != 0 && !r->in_place) unlink(r->temporary);
    sm_status status = reason ? sm_fail_system(err, "write", r->path, reason) : SM_OK;
    sm_free(r);
    return status;
}

void replacement_abandon(replacement *r) {
    if (!r) return;
    close(r->file);
    if (!r->in_place) unlink(r->temporary);
    sm_free(r);
}

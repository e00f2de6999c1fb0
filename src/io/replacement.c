/* Files that are replaced at once. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "file_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 };

struct replacement {
    const char *path;
    int file;
    bool in_place;   /* a device or pipe cannot be replaced */
    bool copied;     /* a file of several names keeps them */
    bool unnamed;    /* until it takes the place: whatever ends us leaves nothing behind */
    bool keeps_mode; /* that of the file it replaces */
    mode_t mode;
    char target[PATH_MAX], temporary[PATH_MAX + 64];
};

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

/* 0 and a name under which there is a file beside the target, made by `make`, which is tried again
 * where it says EEXIST; or -1 with errno. */
static int name_beside(replacement *r, int (*make)(const replacement *)) {
    for (int i = 0; i < TRIES; i++) {
        int n = snprintf(r->temporary, sizeof r->temporary, "%s.%ld-%d.tmp", r->target,
                         (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof r->temporary) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int made = make(r);
        if (made >= 0 || errno != EEXIST) return made;
    }
    return -1;
}

static int make_named(const replacement *r) {
    return open(r->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int give_name(const replacement *r) {
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", r->file);
    return linkat(AT_FDCWD, open_file, AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW);
}

/* Of a link that points to nothing, what it points to. */
static sm_status follow(replacement *r, sm_error *err) {
    enum { MOST_LINKS = 40 };
    char to[PATH_MAX];
    size_t length = strlen(r->path);
    if (length >= sizeof r->target)
        return sm_fail_system(err, "create a file beside", r->path, ENAMETOOLONG);
    memcpy(r->target, r->path, length + 1);
    for (int i = 0; i < MOST_LINKS; i++) {
        ssize_t n = readlink(r->target, to, sizeof to - 1);
        if (n < 0) return SM_OK;
        char *slash = to[0] == '/' ? NULL : strrchr(r->target, '/');
        size_t kept = slash ? (size_t)(slash - r->target) + 1 : 0;
        if (kept + (size_t)n >= sizeof r->target)
            return sm_fail_system(err, "create a file beside", r->path, ENAMETOOLONG);
        memcpy(r->target + kept, to, (size_t)n);
        r->target[kept + (size_t)n] = '\0';
    }
    return sm_fail_system(err, "resolve", r->path, ELOOP);
}

/* A symbolic link is kept: its target is replaced. */
static sm_status find_target(replacement *r, sm_error *err) {
    struct stat old;
    if (stat(r->path, &old) != 0) return follow(r, err);
    if (S_ISDIR(old.st_mode)) return sm_fail_system(err, "write", r->path, EISDIR);
    if (!S_ISREG(old.st_mode)) {
        r->in_place = true;
        r->file = open(r->path, O_WRONLY | O_CLOEXEC);
        return r->file < 0 ? sm_fail_system(err, "open", r->path, errno) : SM_OK;
    }
    r->copied = old.st_nlink > 1;
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
        /* A new file beside the target, without a name where the system can do that. */
        char folder[PATH_MAX];
        memcpy(folder, r->target, sizeof folder);
        char *slash = strrchr(folder, '/');
        if (slash) slash[slash == folder] = '\0';
        int file = access("/proc/self/fd", X_OK) == 0
                       ? open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666)
                       : -1;
        r->unnamed = file >= 0;
        r->file = file >= 0 ? file : name_beside(r, make_named);
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

/* What was written becomes the content of the target, for which there is room before any of it is
 * lost. */
static int copy_over(const replacement *r) {
    char bytes[1 << 16];
    off_t length = lseek(r->file, 0, SEEK_END);
    int to = open(r->target, O_WRONLY | O_CLOEXEC);
    int reason = to < 0 || length < 0 ? errno : 0;
    if (!reason && length > 0) reason = posix_fallocate(to, 0, length);
    for (off_t at = 0; !reason && at < length;) {
        ssize_t n = pread(r->file, bytes, sizeof bytes, at);
        if (n < 0 && errno == EINTR) continue;
        reason = n < 0 ? errno : n == 0 ? EIO : write_bytes(to, bytes, (size_t)n);
        at += n > 0 ? n : 0;
    }
    if (!reason && (ftruncate(to, length) != 0 || fsync(to) != 0)) reason = errno;
    if (to >= 0 && close(to) != 0 && !reason) reason = errno;
    return reason;
}

static int take_place(replacement *r) {
    int reason = settle(r);
    if (reason || r->copied) return reason ? reason : copy_over(r);
    if (r->unnamed && name_beside(r, give_name) != 0) return errno;
    r->unnamed = false;
    return rename(r->temporary, r->target) != 0 ? errno : 0;
}

sm_status replacement_end(replacement *r, int reason, sm_error *err) {
    if (reason == 0 && !r->in_place) reason = take_place(r);
    if ((reason != 0 || r->copied) && !r->in_place && !r->unnamed) unlink(r->temporary);
    if (close(r->file) != 0 && reason == 0) reason = errno;
    sm_status status = reason ? sm_fail_system(err, "write", r->path, reason) : SM_OK;
    sm_free(r);
    return status;
}

void replacement_abandon(replacement *r) {
    if (!r) return;
    close(r->file);
    if (!r->in_place && !r->unnamed) unlink(r->temporary);
    sm_free(r);
}

/* Who writes to a place: a file beside it, or in it where it is a folder, that its writer holds
 * locked and that says who he is. The system lets go of the lock however he ends, so that what a
 * killed one leaves behind is taken over by the next. */
#define _GNU_SOURCE /* F_OFD_SETLK: the lock of an open file, not of a process */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_parts.h"
#include "scalemodel/io.h"

struct sm_file_lock {
    int file;
    char made[PATH_MAX];      /* the folder, where it was not there; else "" */
    char path[PATH_MAX + 16]; /* of the lock */
};

/* The folder of a place that ends in '/' is made, so that the lock has where to lie. */
static sm_status name_lock(sm_file_lock *l, const char *place, sm_error *err) {
    struct stat of;
    char real[PATH_MAX];
    size_t length = strlen(place);
    if (length == 0 || length >= sizeof real)
        return sm_fail_system(err, "lock", place, length ? ENAMETOOLONG : ENOENT);
    bool folder = place[length - 1] == '/';
    if (folder && mkdir(place, 0777) == 0) memcpy(l->made, place, length + 1);
    bool there = realpath(place, real) != NULL;
    if (!there) memcpy(real, place, length + 1);
    folder = folder || (there && stat(real, &of) == 0 && S_ISDIR(of.st_mode));
    snprintf(l->path, sizeof l->path, "%s%s", real, folder ? "/lock" : ".lock");
    return SM_OK;
}

static sm_status fail_taken(const sm_file_lock *l, const char *place, sm_error *err) {
    char who[128] = "";
    ssize_t n = pread(l->file, who, sizeof who - 1, 0);
    who[n > 0 ? strcspn(who, "\n") : 0] = '\0';
    return sm_fail(err, SM_IO, "%.200s is being written by another: %s, which holds %.200s", place,
                   who[0] ? who : "a process that has just begun", l->path);
}

/* The lock of a file that has been removed meanwhile is nobody's. */
static bool is_still_there(const sm_file_lock *l) {
    struct stat open_file, named;
    return fstat(l->file, &open_file) == 0 && stat(l->path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

static sm_status take(sm_file_lock *l, const char *place, bool wait, sm_error *err) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    do {
        if (l->file >= 0) close(l->file);
        l->file = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (l->file < 0) return sm_fail_system(err, "make", l->path, errno);
        while (fcntl(l->file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &all) != 0) {
            if (errno == EAGAIN || errno == EACCES) return fail_taken(l, place, err);
            /* a file system without locks: the file alone says who writes */
            if (errno == ENOLCK || errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP) break;
            if (errno != EINTR) return sm_fail_system(err, "lock", l->path, errno);
        }
    } while (!is_still_there(l));
    return SM_OK;
}

static int sign(const sm_file_lock *l) {
    char host[65] = "", who[128];
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    int n = snprintf(who, sizeof who, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(l->file, 0) != 0) return errno;
    return write_bytes(l->file, who, (size_t)n);
}

sm_status sm_io_lock(const char *place, bool wait, sm_file_lock **out, sm_error *err) {
    *out = NULL;
    sm_file_lock *l = sm_calloc(1, sizeof *l);
    if (!l) return sm_fail_memory(err);
    l->file = -1;
    sm_status status = name_lock(l, place, err);
    if (!status) status = take(l, place, wait, err);
    int reason = status ? 0 : sign(l);
    if (reason) status = sm_fail_system(err, "write", l->path, reason);
    if (!status) {
        *out = l;
        return SM_OK;
    }
    if (l->file >= 0) close(l->file);
    if (l->made[0]) rmdir(l->made);
    sm_free(l);
    return status;
}

void sm_io_unlock(sm_file_lock *l) {
    if (!l) return;
    unlink(l->path);
    close(l->file);
    if (l->made[0]) rmdir(l->made); /* nothing was written into it */
    sm_free(l);
}

/* Versions of a checkpoint: written beside each other, one of them named by `latest`. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors_front.h"
#include "file_parts.h"

#define UNFINISHED ".tmp"
typedef char path_text[PATH_MAX];

static sm_status join(path_text out, const char *folder, const char *name, const char *end,
                      sm_error *err) {
    int n = snprintf(out, sizeof(path_text), "%s/%s%s", folder, name, end);
    return n > 0 && n < PATH_MAX ? SM_OK : sm_fail_system(err, "make", folder, ENAMETOOLONG);
}

/* Names reach the disk with their folder. */
static sm_status settle_folder(const char *path, sm_error *err) {
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return sm_fail_system(err, "open", path, errno);
    int reason = fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    close(file);
    return reason ? sm_fail_system(err, "write", path, reason) : SM_OK;
}

/* ---- removing ---- */

/* Only what a checkpoint is made of: anything else in the folder is not ours to remove. */
static bool is_part(const char *name) {
    static const char *const begin[] = {"model-", "model.safetensors", "optimizer-",
                                        "optimizer.safetensors", "config.json"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0) return true;
    return false;
}

/* A folder in which something else lies stays. */
static sm_status remove_version(const char *path, sm_error *err) {
    DIR *dir = opendir(path);
    if (!dir) return errno == ENOENT ? SM_OK : sm_fail_system(err, "open", path, errno);
    path_text file;
    sm_status status = SM_OK;
    for (struct dirent *e = readdir(dir); !status && e; e = readdir(dir)) {
        if (!is_part(e->d_name)) continue;
        status = join(file, path, e->d_name, "", err);
        if (!status && unlink(file) != 0 && errno != ENOENT)
            status = sm_fail_system(err, "remove", file, errno);
    }
    closedir(dir);
    if (!status && rmdir(path) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        status = sm_fail_system(err, "remove", path, errno);
    return status;
}

/* First out of sight, so that no half of it is taken for a whole. */
static sm_status retire_version(const char *folder, const char *name, sm_error *err) {
    path_text path, hidden;
    sm_status status = join(path, folder, name, "", err);
    if (!status) status = join(hidden, folder, name, UNFINISHED, err);
    if (!status && rename(path, hidden) != 0)
        return errno == ENOENT ? SM_OK : sm_fail_system(err, "remove", path, errno);
    return status ? status : remove_version(hidden, err);
}

/* ---- names ---- */

/* step-NUMBER or step-NUMBER-AGAIN, and the rest of the name. */
static bool read_name(const char *name, unsigned long long *steps, unsigned long long *again,
                      const char **rest) {
    char *end;
    *again = 1;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return false;
    *steps = strtoull(name + 5, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') *again = strtoull(end + 1, &end, 10);
    *rest = end;
    return true;
}

/* ---- beginning ---- */

static sm_status remove_unfinished_one(const char *folder, const char *name, sm_error *err) {
    unsigned long long steps, again;
    const char *rest;
    path_text path;
    size_t n = strlen(name), end = strlen(UNFINISHED);
    sm_status status = join(path, folder, name, "", err);
    if (status || n <= end || strcmp(name + n - end, UNFINISHED) != 0) return status;
    if (strncmp(name, CHECKPOINT_LATEST ".", sizeof CHECKPOINT_LATEST) == 0) {
        if (unlink(path) != 0 && errno != ENOENT) return sm_fail_system(err, "remove", path, errno);
        return SM_OK;
    }
    bool ours = read_name(name, &steps, &again, &rest) && strcmp(rest, UNFINISHED) == 0;
    return ours ? remove_version(path, err) : SM_OK;
}

static sm_status remove_unfinished(const char *folder, sm_error *err) {
    sm_status status = SM_OK;
    DIR *dir = opendir(folder);
    if (!dir) return sm_fail_system(err, "open", folder, errno);
    for (struct dirent *e = readdir(dir); !status && e; e = readdir(dir))
        status = remove_unfinished_one(folder, e->d_name, err);
    closedir(dir);
    return status;
}

static sm_status make_folder(const char *path, bool may_exist, sm_error *err) {
    struct stat of;
    if (mkdir(path, 0777) == 0) return SM_OK;
    int reason = errno;
    if (may_exist && reason == EEXIST) {
        if (stat(path, &of) == 0 && S_ISDIR(of.st_mode)) return SM_OK;
        reason = ENOTDIR;
    }
    return sm_fail_system(err, "make the folder", path, reason);
}

sm_status sm_io_checkpoint_begin(const char *folder, uint64_t steps, char name[SM_CHECKPOINT_NAME],
                                 sm_error *err) {
    char latest[SM_CHECKPOINT_NAME];
    path_text path;
    sm_status status = make_folder(folder, true, err);
    if (!status) status = remove_unfinished(folder, err);
    if (!status) status = read_latest(folder, latest, err);
    if (status) return status;
    snprintf(name, SM_CHECKPOINT_NAME, "step-%06llu", (unsigned long long)steps);
    if (strcmp(name, latest) == 0) /* the same steps made again */
        snprintf(name, SM_CHECKPOINT_NAME, "step-%06llu-2", (unsigned long long)steps);
    status = join(path, folder, name, UNFINISHED, err);
    return status ? status : make_folder(path, false, err);
}

/* ---- ending ---- */

typedef struct version {
    unsigned long long steps, again;
    bool latest;
    char name[SM_CHECKPOINT_NAME];
} version;

/* The newest first; what latest names before all. */
SM_ORDER(by_age, version, SM_DESCENDING(latest) SM_DESCENDING(steps) SM_DESCENDING(again))

/* Has it an index? What has none is none of ours. */
static bool is_whole(const char *folder, const char *name) {
    path_text path;
    if (join(path, folder, name, "/model.safetensors.index.json", NULL)) return false;
    return access(path, F_OK) == 0;
}

static bool read_version(const char *name, const char *latest, version *v) {
    const char *rest;
    size_t n = strlen(name);
    if (n >= SM_CHECKPOINT_NAME || !read_name(name, &v->steps, &v->again, &rest) || *rest)
        return false;
    v->latest = strcmp(name, latest) == 0;
    memcpy(v->name, name, n + 1);
    return true;
}

static sm_status list_versions(const char *folder, const char *latest, version **list, size_t *n,
                               sm_error *err) {
    size_t room = 0;
    sm_status status = SM_OK;
    DIR *dir = opendir(folder);
    if (!dir) return sm_fail_system(err, "open", folder, errno);
    for (struct dirent *e = readdir(dir); !status && e; e = readdir(dir)) {
        version *more = sm_grow(*list, *n, &room, sizeof *more);
        if (more) *list = more;
        else status = sm_fail_memory(err);
        if (!status && read_version(e->d_name, latest, &(*list)[*n]) && is_whole(folder, e->d_name))
            ++*n;
    }
    closedir(dir);
    return status;
}

static sm_status publish(const char *folder, const char *name, sm_error *err) {
    path_text from, to, latest;
    char line[SM_CHECKPOINT_NAME + 1];
    int n = snprintf(line, sizeof line, "%s\n", name);
    sm_status status = join(from, folder, name, UNFINISHED, err);
    if (!status) status = join(to, folder, name, "", err);
    if (!status) status = join(latest, folder, CHECKPOINT_LATEST, "", err);
    if (!status) status = settle_folder(from, err);
    if (!status) status = remove_version(to, err); /* of an earlier training; not the latest */
    if (!status && rename(from, to) != 0) status = sm_fail_system(err, "rename", from, errno);
    if (!status) status = settle_folder(folder, err);
    if (!status) status = sm_io_write(latest, line, (size_t)n, err);
    return status ? status : settle_folder(folder, err);
}

sm_status sm_io_checkpoint_end(const char *folder, const char *name, int keep, sm_error *err) {
    sm_status status = publish(folder, name, err);
    if (status) return status;
    version *list = NULL;
    size_t n = 0;
    status = list_versions(folder, name, &list, &n, err);
    if (!status && n) qsort(list, n, sizeof *list, by_age);
    for (size_t i = (size_t)keep; !status && i < n; i++)
        status = retire_version(folder, list[i].name, err);
    sm_free(list);
    return status;
}

void sm_io_checkpoint_abandon(const char *folder, const char *name) {
    char latest[SM_CHECKPOINT_NAME] = "";
    path_text path;
    if (!join(path, folder, name, UNFINISHED, NULL)) remove_version(path, NULL);
    bool published = read_latest(folder, latest, NULL) || strcmp(latest, name) == 0;
    if (!published) retire_version(folder, name, NULL);
}

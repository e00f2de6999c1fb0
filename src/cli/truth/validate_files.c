/* validate_files: where the measurements are: a folder of truth files, given or belonging to this
 * program. */
#include "program.h"
#include "validate.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 256 };

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Beside the program as built (build/ in the project) or installed (bin/ beside share/); otherwise
 * in the current folder. */
static const char *own_folder(sm_arena *arena) {
    static const char *const places[] = {"../data/truth", "../share/scalemodel/truth"};
    char path[CLI_PATH_ROOM];
    for (int i = 0; i < 2; i++)
        if (cli_beside(places[i], path) && is_folder(path))
            return sm_arena_copy(arena, path, strlen(path));
    return is_folder("data/truth") ? "data/truth" : NULL;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sm_status list_folder(DIR *open_folder, const char *folder, sm_arena *arena,
                             const char **files, size_t *n, sm_error *err) {
    for (struct dirent *entry; (entry = readdir(open_folder));) {
        if (!ends_in(entry->d_name, ".csv") && !ends_in(entry->d_name, ".jsonl")) continue;
        if (*n == MOST_FILES)
            return sm_fail(err, SM_USAGE, "%s holds more than %d files of measurements", folder,
                           MOST_FILES);
        files[*n] = sm_arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (!files[(*n)++]) return sm_fail_memory(err);
    }
    qsort(files, *n, sizeof *files, by_name);
    return *n ? SM_OK : sm_fail(err, SM_IO, "%s holds no *.csv or *.jsonl", folder);
}

sm_status cli_truth_files(const cli_call *call, const char *folder, const char ***files, size_t *n,
                          sm_error *err) {
    *n = 0;
    if (!folder) folder = own_folder(call->arena);
    if (!folder)
        return sm_fail(err, SM_IO,
                       "there is no data/truth beside this program or here; name a "
                       "file of measurements, or its folder with --data");
    *files = sm_arena_array(call->arena, MOST_FILES, sizeof **files);
    if (!*files) return sm_fail_memory(err);
    DIR *open_folder = opendir(folder);
    if (!open_folder)
        return sm_fail(err, SM_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    sm_status status = list_folder(open_folder, folder, call->arena, *files, n, err);
    closedir(open_folder);
    return status;
}

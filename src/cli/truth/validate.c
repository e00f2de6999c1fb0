/* validate: measured rows against what is predicted for them. */
#include "program.h"
#include "named.h"
#include "scalemodel/io.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct values {
    sm_validate_question question;
    const char *data, *plot;
    unsigned quality;
    cli_calibration_values constants;
    cli_list codebases;
    cli_choices by; /* of sm_validate_groups */
    cli_list columns;
    bool summary;
} validate_values;

/* Where the measurements are: a folder of truth files, given or belonging to this
 * program. */

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

static sm_status list_folder(DIR *open_folder, const char *folder, sm_arena *arena,
                             const char **files, size_t *n, sm_error *err) {
    for (struct dirent *entry; (entry = readdir(open_folder));) {
        if (!ends_with(entry->d_name, ".csv") && !ends_with(entry->d_name, ".jsonl")) continue;
        if (*n == MOST_FILES)
            return sm_fail(err, SM_USAGE, "%s holds more than %d files of measurements", folder,
                           MOST_FILES);
        files[*n] = sm_arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (!files[(*n)++]) return sm_fail_memory(err);
    }
    qsort(files, *n, sizeof *files, sm_compare_texts);
    return *n ? SM_OK : sm_fail(err, SM_IO, "%s holds no *.csv or *.jsonl", folder);
}

/* The *.csv and *.jsonl of the folder of measurements: --data, or the one that belongs to this
 * program. */
static sm_status list_files(const cli_call *call, const char *folder, const char ***files,
                            size_t *n, sm_error *err) {
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

static const char *const qualities[3] = {"A", "B", "C"};

static sm_status find_files(const cli_call *call, sm_validate_question *q, sm_error *err) {
    const validate_values *o = call->values;
    const char **found = NULL;
    q->file = call->positional;
    q->files = (size_t)call->positionals;
    if (q->files && o->data)
        return sm_fail(err, SM_USAGE, "--data names a folder to validate in place of files");
    if (q->files) return SM_OK;
    sm_status status = list_files(call, o->data, &found, &q->files, err);
    q->file = found;
    return status;
}

static sm_status read_constants(const cli_call *call, sm_validate_question *q, sm_error *err) {
    const validate_values *o = call->values;
    sm_source source;
    sm_calibration *list = NULL;
    q->software = cli_text(call, &o->constants.software);
    if (!o->constants.calibration) return SM_OK;
    sm_status status = sm_io_read(o->constants.calibration, call->arena, &source, err);
    if (!status) status = sm_calibration_parse(&source, call->arena, &list, &q->n_constants, err);
    q->constants = list;
    return status;
}

static sm_status run_validate(const cli_call *call, sm_report *r, sm_error *err) {
    validate_values *o = call->values;
    sm_chip *own = NULL;
    sm_validate_question *q = &o->question;
    q->size = sizeof *q;
    q->quality = cli_given(call, &o->quality) ? qualities[o->quality] : NULL;
    q->n_by = cli_given(call, &o->by) ? o->by.n : 0;
    q->by = o->by.word;
    if (q->worst == 0) q->worst = -1;
    q->rows = (call->common.json || call->common.csv) && !o->summary;
    q->explain = call->common.explain;
    q->plot = o->plot != NULL;
    q->n_given = (size_t)o->columns.n;
    q->given = cli_columns(call, &o->columns);
    if (!q->given) return sm_fail_memory(err);
    sm_status status = read_constants(call, q, err);
    if (!status) status = cli_system_file(call, &own, &q->n_own, err);
    q->own = own;
    if (!status) status = cli_codebases(call, &o->codebases, &q->codebases, &q->n_codebases, err);
    if (!status) status = find_files(call, q, err);
    return status ? status : sm_answer_validate(q, r, err);
}

const cli_verb cli_validate = {
    .about = &verbs_validate,
    CLI_VALUES(AT("data", data), AT("set", columns), AT("chip", question.chip),
               AT("source", question.source), AT("kind", question.kind), AT("quality", quality),
               AT("all", question.all), AT("by", by), AT("worst", question.worst),
               AT("summary", summary), AT("plot", plot), CLI_CODEBASE_PLACE(codebases),
               CLI_CALIBRATION_PLACES(constants)),
    .run = run_validate,
};

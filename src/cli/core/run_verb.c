/* run, measure, page: BLAS, MPI and the server of the page stay out of this program. The verb hands
 * its command line to scalemodel-run or scalemodel-page, which lie beside it where the libraries
 * were there to build them with. */
#include "program.h"
#include <errno.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 1024 };

/* The arguments of `run` begin with a verb of the other program; else this verb is one of its. */
static sm_status pass_on(const cli_verb *verb, int argc, char **argv, sm_error *err) {
    static char siblings[][16] = {"scalemodel-run", "scalemodel-page"};
    static const char *const needs[] = {"BLAS is installed (libopenblas-dev)",
                                        "libmicrohttpd is installed (libmicrohttpd-dev)"};
    const int which = verb == &cli_page;
    char *sibling = siblings[which], path[CLI_PATH_ROOM], *all[MOST_ARGUMENTS] = {sibling},
         word[16];
    int n = 1;
    if (argc > MOST_ARGUMENTS - 3)
        return sm_fail(err, SM_USAGE, "at most %d arguments", MOST_ARGUMENTS - 3);
    if (!cli_beside(sibling, path))
        return sm_fail(err, SM_IO, "cannot tell the folder of this program");
    snprintf(word, sizeof word, "%s", verb->about->name);
    if (verb != &cli_run) all[n++] = word;
    for (int i = 0; i < argc; i++) all[n++] = argv[i];
    execv(path, all);
    if (errno == ENOENT)
        return sm_fail(err, SM_IO, "%s is not there: it is built where %s", path, needs[which]);
    return sm_fail(err, SM_IO, "cannot start %s: %s", path, strerror(errno));
}

const cli_verb cli_run = {.about = &verbs_run, .pass_on = pass_on};
const cli_verb cli_measure = {.about = &verbs_measure, .pass_on = pass_on};
const cli_verb cli_page = {.about = &verbs_page, .pass_on = pass_on};

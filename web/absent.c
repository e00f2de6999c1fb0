/* absent: what a page in a browser cannot do: start other programs, and read SQLite. */
#include "nsys.h"
#include "program.h"

sm_status nsys_read_sqlite(trace_build *b, const sm_source *whole) {
    return b->status = sm_fail(b->err, SM_BAD_INPUT,
                               "%s: SQLite is read by the program alone; here, export the kernels "
                               "as CSV: nsys stats --report cuda_gpu_trace --format csv",
                               whole->name);
}

static sm_status refuse(const cli_verb *verb, int argc, char **argv, sm_error *err) {
    (void)argc;
    (void)argv;
    return sm_fail(err, SM_USAGE, "'%s' starts other programs: only the program does it",
                   verb->about->name);
}

const cli_verb cli_run = {.about = &verbs_run, .pass_on = refuse};
const cli_verb cli_measure = {.about = &verbs_measure, .pass_on = refuse};
const cli_verb cli_page = {.about = &verbs_page, .pass_on = refuse};

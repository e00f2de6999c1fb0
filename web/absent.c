/* absent: what a page in a browser cannot do: start other programs. */
#include "verbs.h"

static sm_status refuse(const cli_verb *verb, int argc, char **argv, sm_error *err) {
    (void)argc;
    (void)argv;
    return sm_fail(err, SM_USAGE, "'%s' starts other programs: only the program does it",
                   verb->name);
}

static const cli_option none[] = {{.name = NULL}};
const cli_verb cli_run = {.name = "run", .summary = "", .arguments = "", .options = none,
                          .pass_on = refuse};
const cli_verb cli_measure = {.name = "measure", .summary = "", .arguments = "", .options = none,
                              .pass_on = refuse};

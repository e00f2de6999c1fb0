/* program: a command line of verbs: scalemodel, and the programs beside it that run on ranks. */
#pragma once
#include "options.h"

typedef struct cli_program {
    const char *name; /* as usage shows it: "scalemodel", "scalemodel run" */
    const char *summary;
    const cli_verb *const *verb; /* in the order help shows them */
    int verbs;
    bool (*speaks)(void); /* of many processes, whether this one answers; NULL: it does */
} cli_program;

/* The verb of this name; NULL, with the nearest one in the sentence, when there is none. */
const cli_verb *cli_find_verb(const cli_program *program, const char *name, sm_error *err);

/* "matmul" of the verb "run matmul": what is typed after the program. */
const char *cli_verb_word(const cli_verb *verb);

enum { CLI_PATH_ROOM = 4096 };
/* The path of what lies under this name beside the program itself, "scalemodel-run" or
 * "../data/truth"; false where the system does not tell, or the path is too long. */
bool cli_beside(const char *name, char path[CLI_PATH_ROOM]);

/* Returns the exit status. */
int cli_main(const cli_program *program, int argc, char **argv);

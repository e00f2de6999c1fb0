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

/* ---- of a command line, for shells ---- */
/* `completion SHELL` prints the script of a shell, which calls `completion -- WORD...`: what the
 * last of these words of a command line may become, one a line, with a tab and its meaning.
 * SM_USAGE when no such shell is known. */
sm_status cli_completion(const cli_program *program, int words, char **word, sm_error *err);

/* ---- the verbs and their options as data ---- */
/* version; verbs: name, summary, arguments, least, most, options; common: the options of every
 * verb. An option has name, kind, help, and where they hold value, least, most, above, required,
 * words, default. SM_INTERNAL when out of memory. */
sm_status cli_describe(const cli_program *program, sm_report *report, sm_error *err);

/* ---- one per subcommand, each in the file of its name; and all of them ---- */
extern const cli_verb cli_chip, cli_model, cli_plan, cli_mfu, cli_roofline, cli_matmul,
    cli_collective, cli_train, cli_serve, cli_simulate, cli_validate, cli_calibrate, cli_profile,
    cli_reshard, cli_sweep, cli_design, cli_support, cli_run, cli_measure, cli_page;
extern const cli_program cli_scalemodel;
extern const char *const calibrate_constants[SM_CONSTANT_COUNT];

/* How reports, charts and timelines leave the program. */
/* What writes an answer, drawn whole before anything of it leaves the program. */
typedef sm_status cli_writer(const void *context, FILE *out, sm_error *err);
/* To the file, or to standard output (path NULL). SM_IO when the destination refuses. */
sm_status cli_write(const char *path, cli_writer *write, const void *context, sm_error *err);
/* Text, JSON or CSV as the common options ask. Nothing is written unless all of it could be
 * rendered. SM_IO when the destination refuses, a closed standard output or pipe included. */
sm_status cli_answer(const cli_common *common, const sm_report *report, sm_error *err);
/* Write text to standard output and flush it. A closed pipe is SM_IO without a sentence. */
sm_status cli_write_stdout(const char *text, size_t length, sm_error *err);
/* Show an error on standard error; one without a sentence shows nothing. */
void cli_show_error(const sm_error *err);
/* The verb's answer, and the pictures of it (SVG, a timeline for Perfetto, a page of HTML) in the
 * files that its options name. SM_IO when one cannot be written. */
sm_status cli_ask(const cli_call *call, sm_report *report, sm_error *err);

/* options: what a command line may hold, as tables. Parsing, help and the nearest valid name all
 * come from the same rows, so they cannot disagree. */
#ifndef SCALEMODEL_CLI_OPTIONS_H
#define SCALEMODEL_CLI_OPTIONS_H
#include "scalemodel/base.h"
#include "scalemodel/cost.h"
#include "scalemodel/hw.h"
#include "scalemodel/report.h"
#include "scalemodel/text.h"
#include <stdio.h>

enum { CLI_MAX_LIST = 16, CLI_MAX_POSITIONALS = 4 };

typedef enum cli_kind {
    CLI_FLAG, /* a bool: the option takes no value */
    CLI_TEXT, /* a const char *: NULL when not given */
    CLI_LIST  /* a cli_list: the option may be given several times */
} cli_kind;
typedef struct cli_list {
    int n;
    const char *text[CLI_MAX_LIST];
} cli_list;

/* One option: where its value goes (offset in the verb's own struct), and what help says of it. */
typedef struct cli_option {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;      /* the one-letter form, 0 if none */
    cli_kind kind;
    size_t offset;
    const char *value; /* name of the value in help: "FILE"; NULL for a flag */
    const char *help;
} cli_option;

/* The options that every verb takes. */
typedef struct cli_common {
    bool json, csv, explain, help;
    const char *output, *system_file;
} cli_common;
extern const cli_option cli_common_options[];

typedef struct cli_verb cli_verb;

/* One parsed command line. */
typedef struct cli_call {
    const cli_verb *verb;
    cli_common common;
    void *values; /* the verb's own struct, zero where an option was not given */
    int positionals;
    const char *positional[CLI_MAX_POSITIONALS];
    char **argv;     /* what followed the verb, NULL at its end */
    sm_arena *arena; /* lives as long as the call */
} cli_call;

struct cli_verb {
    const char *name, *summary;
    const char *arguments;     /* as shown in the usage: "OP ARRAY" */
    int least, most;           /* how many positionals */
    const cli_option *options; /* ends with a NULL name */
    size_t values_bytes;       /* size of the struct the offsets point into */
    bool without_system;       /* no chip matters: there is no --system */
    const char *notes;         /* shown below the options in help, NULL if none */
    /* Fill the report. SM_OK and SM_NEGATIVE show it; anything else shows the error. */
    sm_status (*run)(const cli_call *call, sm_report *report, sm_error *err);
    /* Instead of run: the rest of the command line as it is, for another program. */
    sm_status (*pass_on)(int argc, char **argv, sm_error *err);
};

/* Parse what follows the verb. SM_USAGE with one sentence when it is not a valid command line. */
sm_status cli_parse(const cli_verb *verb, int argc, char **argv, cli_call *call, sm_error *err);
/* Print the help of a verb, made from its tables. */
void cli_help_verb(const cli_verb *verb, FILE *out);

/* Values of options. The option's name ("--seq") is the source of errors; text NULL leaves *value
 * as it is. */
sm_status cli_quantity(const char *option, const char *text, sm_quantity_kind kind, double *value,
                       sm_error *err);
sm_status cli_whole(const char *option, const char *text, int64_t lowest, int64_t highest,
                    int64_t *value, sm_error *err);
sm_status cli_dtype(const char *option, const char *text, sm_dtype *value, sm_error *err);
/* SM_USAGE when a required option is missing. */
sm_status cli_need(const cli_call *call, const char *option, const char *text, sm_error *err);
/* The system named by --on, with the chips of --system FILE known too. NULL is a usage error unless
 * the file holds exactly one chip, which is then meant. */
sm_status cli_system(const cli_call *call, const char *on, sm_system *system, sm_error *err);
/* --calibration FILE and --software NAME of a verb: which constants turn bounds into expected
 * times.
 */
typedef struct cli_calibration_values {
    const char *calibration, *software;
} cli_calibration_values;
#define CLI_CALIBRATION_OPTIONS(values, member)                                                    \
    {"calibration", 0,                                                                             \
     CLI_TEXT,      offsetof(values, member.calibration),                                          \
     "FILE",        "take the constants of expected times from FILE (docs/calibration-file.md)"},  \
    {                                                                                              \
        "software", 0, CLI_TEXT, offsetof(values, member.software), "NAME",                        \
            "the software generation whose constants apply: 'chip NAME --calibration' lists them"  \
    }
sm_status cli_calibration(const cli_call *call, const sm_chip *chip,
                          const cli_calibration_values *given, const sm_calibration **out,
                          sm_error *err);
/* The same for single operations: constants measured on those, where the chip or a relative has
 * them. The constants of training software hold what a whole step loses around its operations. */
sm_status cli_operation_calibration(const cli_call *call, const sm_chip *chip,
                                    const cli_calibration_values *given, const sm_calibration **out,
                                    sm_error *err);
/* The chips of --system FILE; none when the option is not given. */
sm_status cli_system_file(const cli_call *call, sm_chip **chips, size_t *n, sm_error *err);
#endif

/* command: a command line answered inside a program: the words that one would type in, the answer
 * out as text, JSON, CSV or SVG. For who binds the library to another language: the options, their
 * checks and their errors are those of the program, and so is every figure.
 *
 *     const char *words[] = {"roofline", "A[1024,4096] B[4096,4096] -> C[1024,4096]", "--on",
 * "h100-sxm"}; sm_command *answer = sm_command_ask(4, words, NULL); if (sm_command_status(answer)
 * <= SM_NEGATIVE) puts(sm_command_text(answer, SM_FORM_JSON, 0)); sm_command_free(answer);
 *
 * Nothing is printed, no signal is caught, and calls may run at the same time, each with an answer
 * of its own. Files that an option names are read and written. */
#pragma once
#include "scalemodel/serve.h"

SM_DECLARATIONS_BEGIN

typedef struct sm_command sm_command;

/* What a caller wants to hear of a search while it runs, and how it stops one. */
typedef struct sm_command_watch {
    size_t size;              /* sizeof(sm_command_watch) */
    const volatile int *stop; /* becomes not 0: the best so far is the answer; NULL: never */
    /* How much of the search is done, 0 to 1, and the best so far in the unit of the objective
     * (seconds, USD or bytes; 0: none yet). NULL: nobody listens. */
    void (*progress)(double fraction, double best, void *context);
    void *context;
    int keep_engine; /* of `simulate`: for sm_command_step_time */
} sm_command_watch;

/* Answer a command line whose first word is the verb. watch may be NULL. The options --json, --csv
 * and --output are taken and without effect: sm_command_text has every form. `run` and `measure`
 * start other programs and are SM_USAGE here. NULL when out of memory. */
sm_command *sm_command_ask(int words, const char *const *word, const sm_command_watch *watch);
/* The verbs with their arguments and options (kind, help, bounds, words, default), as an answer.
 * NULL when out of memory. */
sm_command *sm_command_describe(void);
/* Free an answer and its texts. NULL is fine. */
void sm_command_free(sm_command *command);

/* SM_OK; SM_NEGATIVE: answered, and the answer is no (does not fit, no plan); else there is an
 * error and no answer. SM_INTERNAL when NULL. */
sm_status sm_command_status(const sm_command *command);

/* Seconds that the engine of `simulate` takes for one step of n >= 1 sequences: sm_serve_step_time,
 * for simulators of others. Of an answer whose watch had keep_engine; not for two threads with one
 * answer at a time. SM_USAGE of another answer; *seconds is 0 where there is an error, which then
 * is the answer's SM_FORM_ERROR. */
sm_status sm_command_step_time(sm_command *command, const sm_sequence_step *sequences, size_t n,
                               double *seconds);

typedef enum sm_form {
    SM_FORM_TEXT,       /* the page */
    SM_FORM_JSON,       /* as --json prints it */
    SM_FORM_CSV,        /* as --csv prints it */
    SM_FORM_CHART,      /* the picture that --plot asked for, SVG */
    SM_FORM_TIMELINE,   /* what --timeline asked for, JSON for Perfetto */
    SM_FORM_ERROR,      /* as the program shows it, with the place underlined */
    SM_FORM_ERROR_JSON, /* its parts: status, sentence, source, line, column, span, excerpt */
    SM_FORM_COUNT
} sm_form;
/* The answer in a form; the page in `width` columns (0: 80). It ends with a 0 and lives as long as
 * the answer. NULL when there is none in that form, or out of memory. Not for two threads with one
 * answer at a time. */
const char *sm_command_text(sm_command *command, sm_form form, int width);
SM_DECLARATIONS_END

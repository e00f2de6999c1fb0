/* calibrate: what the parts of the `calibrate` verb share: the rows, the fit, and the names that
 * the result goes by. */
#ifndef SCALEMODEL_CLI_CALIBRATE_H
#define SCALEMODEL_CLI_CALIBRATE_H
#include "options.h"
#include "scalemodel/truth.h"

typedef struct cli_calibrate_values {
    const char *chip, *software, *start, *output;
    cli_choices fit; /* constants */
    bool all;
} cli_calibrate_values;

typedef struct cli_fitting {
    const cli_call *call;
    const sm_chip *chip;
    const char *software;        /* the result's */
    const sm_calibration *start; /* the prior */
    unsigned free;               /* constants to fit */
    size_t read, of_chip, apart; /* rows of the files; of the chip; of those left out */
    size_t n;
    sm_truth_case **ready; /* those to fit to */
    const char *files;     /* their names, joined */
    sm_fit fit;
    const char *reason; /* why nothing could be fitted, or NULL */
} cli_fitting;

/* Read the options and the rows (calibrate_input.c). The cases are freed by the caller, also after
 * an error. */
sm_status cli_fitting_read(const cli_call *call, cli_fitting *q, sm_error *err);
void cli_fitting_free(cli_fitting *q);

/* The text of the file, with what it was fitted to (calibrate_text.c); NULL: out of memory. */
char *cli_fitting_text(cli_fitting *q);

/* The answer (calibrate_page.c). */
void cli_fitting_page(sm_report *r, const cli_fitting *q);
#endif

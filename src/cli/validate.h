/* validate: what the parts of the `validate` verb share: measured rows, each with what is predicted
 * for it. */
#ifndef SCALEMODEL_CLI_VALIDATE_H
#define SCALEMODEL_CLI_VALIDATE_H
#include "options.h"
#include "scalemodel/truth.h"

typedef struct cli_validate_values {
    const char *data, *chip, *source, *kind, *quality; /* which rows */
    const char *software, *calibration;                /* under which constants */
    const char *by, *worst, *plot;
    bool all, summary;
} cli_validate_values;

typedef struct cli_checked {
    const sm_truth_row *row;
    const char *file, *chip; /* chip: of the catalogue, as printed when it is not in there */
    sm_prediction p;
    const char *apart; /* why it is not in the statistics, NULL when it is */
} cli_checked;

typedef struct cli_validation {
    const cli_call *call;
    const cli_validate_values *values;
    size_t files;
    const char *title; /* the one file, or how many */
    size_t n;
    cli_checked *row; /* as asked for, in the order of the files */
    size_t compared;
    size_t *index;        /* of the rows that are compared */
    sm_comparison *pairs; /* room for n, as below: */
    double *scratch;
} cli_validation;

/* ---- reading and predicting (validate_input.c, validate_files.c, validate_override.c) ---- */
sm_status cli_validation_read(const cli_call *call, cli_validation *v, sm_error *err);
/* The *.csv and *.jsonl of the folder of measurements: --data, or the one that belongs to this
 * program. */
sm_status cli_truth_files(const cli_call *call, const char *folder, const char ***files, size_t *n,
                          sm_error *err);
/* The constants that --software or --calibration ask for; NULL for the shipped ones of the row. */
typedef struct cli_override {
    const char *software;
    const sm_calibration *list; /* of the file */
    size_t n;
} cli_override;
sm_status cli_override_read(const cli_call *call, cli_override *override, sm_error *err);
const sm_calibration *cli_override_for(const cli_override *override, const sm_truth_row *row);

/* Of the rows that these indices name. */
sm_error_stats cli_stats_of(const cli_validation *v, const size_t *index, size_t n);

/* ---- the answer ---- */
sm_status cli_validate_check_by(const char *by, sm_error *err); /* of --by */
void cli_validate_rows(sm_report *r, const cli_validation *v);  /* JSON: all that is known of each */
void cli_validate_table(sm_report *r, const cli_validation *v); /* CSV: the same in columns */
void cli_validate_stats(sm_report *r, const cli_validation *v); /* what they come to */
#endif

/* validate: what the parts of the `validate` verb share. */
#ifndef SCALEMODEL_CLI_VALIDATE_H
#define SCALEMODEL_CLI_VALIDATE_H
#include "options.h"

typedef struct cli_validate_values {
    const char *data, *chip, *source; /* which rows */
    sm_truth_kind kind;
    unsigned quality;
    cli_calibration_values constants; /* under which constants */
    cli_choices by;                   /* of sm_validate_groups */
    int64_t worst;
    const char *plot;
    bool all, summary;
} cli_validate_values;

/* The *.csv and *.jsonl of the folder of measurements: --data, or the one that belongs to this
 * program (validate_files.c). */
sm_status cli_truth_files(const cli_call *call, const char *folder, const char ***files, size_t *n,
                          sm_error *err);
#endif

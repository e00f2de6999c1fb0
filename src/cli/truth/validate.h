/* validate: what the parts of the `validate` verb share: measured rows, each with what is predicted
 * for it. */
#ifndef SCALEMODEL_CLI_VALIDATE_H
#define SCALEMODEL_CLI_VALIDATE_H
#include "options.h"
#include "scalemodel/truth.h"

typedef struct cli_validate_values {
    const char *data, *chip, *source; /* which rows */
    sm_truth_kind kind;
    unsigned quality;                 /* of cli_qualities */
    cli_calibration_values constants; /* under which constants */
    cli_choices by;                   /* of cli_validate_groups */
    int64_t worst;
    const char *plot;
    bool all, summary;
} cli_validate_values;

extern const char *const cli_qualities[3];

typedef struct cli_checked {
    const sm_truth_row *row;
    const sm_truth *truth; /* the file */
    const char *chip;      /* of the catalogue, as printed when it is not in there */
    sm_prediction p;
    const char *apart; /* why it is not in the statistics, NULL when it is */
} cli_checked;

/* The constants that --software or --calibration ask for; NULL for the shipped ones of the row. */
typedef struct cli_override {
    const char *software;
    const sm_calibration *list; /* of the file */
    size_t n;
} cli_override;

typedef struct cli_validation {
    const cli_call *call;
    const cli_validate_values *values;
    cli_override override;
    sm_chip *chip; /* of --system */
    size_t chips;
    size_t files;
    sm_truth *truth;
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
sm_status cli_override_read(const cli_call *call, cli_override *override, sm_error *err);
const sm_calibration *cli_override_for(const cli_override *override, const sm_truth_row *row);

/* Of the rows that these indices name. */
sm_error_stats cli_stats_of(const cli_validation *v, const size_t *index, size_t n);

/* A row under the key of its group. Sorted by key, then as in the files. */
typedef struct cli_member {
    const char *key;
    size_t at;
} cli_member;
void cli_members_sort(cli_member *m, size_t n);
/* Where the run of equal keys that begins at `from` ends. */
size_t cli_members_run(const cli_member *m, size_t n, size_t from);

/* ---- the answer ---- */
enum { CLI_VALIDATE_GROUPS = 8 };
extern const char *const cli_validate_groups[CLI_VALIDATE_GROUPS]; /* of --by */
void cli_validate_rows(sm_report *r, const cli_validation *v);     /* JSON: each with all we know */
void cli_validate_table(sm_report *r, const cli_validation *v);    /* CSV: the same in columns */
void cli_validate_stats(sm_report *r, const cli_validation *v);    /* what they come to */
/* Sweeps of layouts: how well we rank them. */
void cli_validate_layouts(sm_report *r, const cli_validation *v);
/* What fits and what does not; peak memory. */
void cli_validate_memory(sm_report *r, const cli_validation *v);
/* Rows that look wrong, as reading them noticed. */
void cli_validate_suspects(sm_report *r, const cli_validation *v);
/* Rows measured below the bound, and the `most` worst; with --explain the derivation of these. */
sm_status cli_validate_worst(sm_report *r, const cli_validation *v, size_t most, sm_error *err);
/* The file of --plot. */
sm_status cli_validate_plot(const cli_validation *v, const char *path, sm_error *err);

/* Rows of inference: all figures of a row, and their statistics by quantity. */
void cli_put_parts(sm_report *r, sm_data *object, const cli_checked *c);
void cli_put_by_quantity(sm_report *r, const cli_validation *v, sm_data *summary);

void cli_put_error_stats(sm_report *r, sm_data *object, const sm_error_stats *s);
const char *cli_signed_percent(sm_report *r, double fraction); /* +12.3 % */
/* Its id, or FILE:LINE where rows of several files would be confused. */
const char *cli_row_name(sm_report *r, const cli_validation *v, const cli_checked *c);
void cli_put_row_id(sm_report *r, sm_data *object, const cli_validation *v, const cli_checked *c);
#endif

/* validated: what the parts of the answer about measured rows share: the rows, each with what is
 * predicted for it. */
#pragma once
#include <string.h>

#include "question.h"
#include "scalemodel/io.h"

typedef struct sm_checked {
    const sm_truth_row *row;
    const sm_truth *truth; /* the file */
    const char *chip;      /* of the catalogue, as printed when it is not in there */
    sm_prediction p;
    const char *apart; /* why it is not in the statistics, NULL when it is */
} sm_checked;

typedef struct sm_validation {
    sm_validate_question in;
    sm_arena *arena; /* the report's */
    sm_truth *truth;
    sm_truth_cases *cases; /* while rows are predicted */
    const char *title;     /* the one file, or how many */
    size_t n;
    sm_checked *row; /* as asked for, in the order of the files */
    size_t compared;
    size_t *index;        /* of the rows that are compared */
    sm_comparison *pairs; /* room for n, as below: */
    double *scratch;
} sm_validation;

/* Read the rows that are asked for and predict each (validate_predict.c). */
sm_status sm_validation_read(sm_validation *v, sm_error *err);
/* The constants that the question asks for; NULL for the shipped ones of the row
 * (validate_override.c). */
sm_status sm_override_check(const sm_validation *v, sm_error *err);
const sm_calibration *sm_override_for(const sm_validation *v, const sm_truth_row *row);

/* Of a row of training: is it of fine-tuning, not of training from scratch? */
static inline bool sm_row_tunes(const sm_truth_row *row) {
    return row->of.training.task[0] && strcmp(row->of.training.task, "pretrain") != 0;
}
/* Why a row is no step of pretraining of its own, as statistics and fits want it; NULL: it is, or
 * is not of training. all: repeated rows and fine-tuning count. */
const char *sm_row_apart(const sm_truth_row *row, bool all);

/* Of the rows that these indices name. */
sm_error_stats sm_stats_of(const sm_validation *v, const size_t *index, size_t n);

/* A row under the key of its group. Sorted by key, then as in the files. */
typedef struct sm_member {
    const char *key;
    size_t at;
} sm_member;
void sm_members_sort(sm_member *m, size_t n);
/* Where the run of equal keys that begins at `from` ends. */
size_t sm_members_run(const sm_member *m, size_t n, size_t from);

/* ---- the answer ---- */
void sm_validate_rows(sm_report *r, const sm_validation *v);  /* each with all we know */
void sm_validate_stats(sm_report *r, const sm_validation *v); /* what they come to */
/* Sweeps of layouts: how well we rank them. */
void sm_validate_layouts(sm_report *r, const sm_validation *v);
/* What fits and what does not; peak memory. */
void sm_validate_memory(sm_report *r, const sm_validation *v);
/* Rows that look wrong, as reading them noticed. */
void sm_validate_suspects(sm_report *r, const sm_validation *v);
/* Rows measured below the bound, and the `most` worst; when explained the derivation of these. */
sm_status sm_validate_worst(sm_report *r, const sm_validation *v, size_t most, sm_error *err);
/* Predicted against measured, into the report's chart (validate_picture.c). */
sm_status sm_validate_picture(sm_report *r, const sm_validation *v, sm_error *err);

/* Rows of inference: all figures of a row, and their statistics by quantity. */
void sm_put_parts(sm_report *r, sm_data *object, const sm_checked *c);
void sm_put_by_quantity(sm_report *r, const sm_validation *v, sm_data *summary);

void sm_put_error_stats(sm_report *r, sm_data *object, const sm_error_stats *s);
/* Its id, or FILE:LINE where rows of several files would be confused. */
const char *sm_row_name(sm_report *r, const sm_validation *v, const sm_checked *c);
void sm_put_row_id(sm_report *r, sm_data *object, const sm_validation *v, const sm_checked *c);

/* Measured rows of a file, or of a profile. Private to src/answer/truth. */
/* Read a file of measured rows; or, where it is none, a profile (of any form that `profile` reads),
 * of which each product of matrices and each collective with a known size becomes a row: the mean
 * time of a product's calls, the shortest run of a collective, which has no waiting in it. The rows
 * are of mixed kinds. Chip: whose they are where the profile names none of the catalogue's. Errors
 * as sm_truth_read. */
sm_status calibrate_read(const char *path, const sm_chip *chip, const sm_truth_given *given,
                         sm_arena *arena, sm_truth *out, sm_error *err);

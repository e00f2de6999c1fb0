/* truth_schema: the columns and keys of the files of measured rows, one list per kind, and the row
 * under reading that they are laid into. Private to src/io; docs/truth-data.md is its manual. */
#pragma once
#include "scalemodel/truth.h"

/* What a value may be, and what stands for "not stated". */
typedef enum truth_type {
    TRUTH_TEXT,   /* const char *; "" */
    TRUTH_LABEL,  /* as text; an object in its place is passed over */
    TRUTH_WORDS,  /* const char *: a list of texts, joined by one space; "" */
    TRUTH_NUMBER, /* double, at least 0; NAN */
    TRUTH_TIME,   /* double, above 0; NAN */
    TRUTH_SIZE,   /* double, a whole number from 1; NAN */
    TRUTH_COUNT,  /* int, at least 0; 0 */
    TRUTH_STAGE,  /* int, at least 0; -1 */
    TRUTH_FLAG    /* sm_stated; SM_UNSTATED */
} truth_type;

/* A row and the printed figures it is made from. */
typedef struct truth_draft {
    sm_truth_row row;
    const char *label; /* a source that is a plain text */
    double time_us, time_from_tokens_s, time_from_flops_s, peak_gib, peak_gb;
    double ttft_ms, tpot_ms, latency_ms;
} truth_draft;

typedef struct truth_field {
    const char *key; /* of a nested JSON object with dots, as in "model.layers" */
    truth_type type;
    size_t offset; /* in truth_draft */
} truth_field;

enum { TRUTH_MAX_SIGNS = 3 };

typedef struct truth_schema {
    sm_truth_kind kind;
    const char *sign[TRUTH_MAX_SIGNS + 1]; /* keys that tell the kind; NULL ends */
    const char *needed;                    /* one more that a CSV header must name, or NULL */
    const truth_field *field;
    size_t n;
} truth_schema;

enum { TRUTH_MAX_FIELDS = 96 };

/* In the order in which a file is tried against them. */
extern const truth_schema truth_schemas[SM_TRUTH_KIND_COUNT];

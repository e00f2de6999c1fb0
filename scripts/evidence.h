/* What was measured, by architecture, chip and software: data/evidence, which the library has in it
 * (scalemodel/evidence.h). Each line is of rows that a fit had, with the medians of their errors
 * where they were left out of it. */
#pragma once
#include "hierarchy.h"

enum { MEASURED_SIZES = 4 };
typedef struct measured_row {
    const char *name; /* of the model, as its source prints it */
    const sm_model *model;
    const sm_chip *chip;
    const char *software;
    const char *type;            /* of weights, or of training: as its source prints it */
    double size[MEASURED_SIZES]; /* NAN: not stated */
    /* log expected / measured: of a token or a step, then of the first token; under the row's own
     * software, then as if it were not known. NAN: not stated */
    double own[2], usual[2];
} measured_row;

/* Write the n rows; sizes: what their sizes are called. */
void evidence_write(hierarchy *h, const char *path, const char *const sizes[MEASURED_SIZES],
                    const measured_row *row, size_t n);

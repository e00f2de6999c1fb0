/* What was measured, by architecture, chip and software: data/evidence, which the library has in it
 * (scalemodel/evidence.h). Each line is of rows that a fit had, with the medians of their errors
 * where they were left out of it. */
#pragma once
#include "hierarchy.h"
#include "scalemodel/evidence.h"

enum { MEASURED_SIZES = 4 };
typedef struct measured_row {
    const char *name; /* of the model, as its source prints it */
    const sm_model *model;
    const sm_chip *chip;
    const char *software;
    const char *type;            /* of weights, or of training: as its source prints it */
    double size[MEASURED_SIZES]; /* NAN: not stated */
    const sm_plan *plan;         /* of serving */
    /* log expected / measured: of a token or a step, then of the first token; under the row's own
     * software, then as if it were not known. NAN: not stated */
    double own[2], usual[2];
} measured_row;

/* What rows are off by more where something was left out of the fit besides: of their medians m,
 * and c without, sqrt(m^2 - c^2); 0 where they are no worse. Both have n of |expected / measured -
 * 1|, in any order, which they lose. */
double evidence_excess(double *m, double *c, size_t n);
/* Of weights or of training, as a source prints it. */
sm_dtype evidence_type(const char *printed);
/* What n rows say, in lines of the arena; *lines: how many. */
sm_evidence *evidence_lines(hierarchy *h, sm_arena *arena, sm_evidence_use use,
                            const char *const sizes[MEASURED_SIZES], const measured_row *row,
                            size_t n, size_t *lines);
/* Write the n rows, under what sets questions apart from them: [0] with their software known, [1]
 * as if it were not; sizes: what their sizes are called. */
void evidence_write(hierarchy *h, const char *path, const sm_evidence_apart apart[2],
                    const char *const sizes[MEASURED_SIZES], const measured_row *row, size_t n);

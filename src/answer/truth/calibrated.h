/* calibrated: what the parts of the answer about a fit share: the rows, the fit, and the names that
 * the result goes by. */
#ifndef SM_ANSWER_CALIBRATED_H
#define SM_ANSWER_CALIBRATED_H
#include "question.h"

typedef struct sm_fitting {
    sm_calibrate_question in;
    sm_arena *arena;             /* the report's */
    size_t read, of_chip, apart; /* rows of the files; of the chip; of those left out */
    size_t n;
    sm_ready_row *ready; /* those to fit to */
    sm_truth_cases *cases;
    const char *files; /* their names, joined */
    sm_fit fit;
    const char *reason; /* why nothing could be fitted, or NULL */
} sm_fitting;

/* The rows to fit to (calibrate_rows.c). The cases are freed by the caller, also after an error. */
sm_status sm_fitting_rows(sm_fitting *q, sm_error *err);
void sm_fitting_free(sm_fitting *q);
/* The text of the file, with what it was fitted to (calibrate_text.c); NULL: out of memory. */
char *sm_fitting_text(sm_fitting *q);
void sm_fitting_page(sm_report *r, const sm_fitting *q);
#endif

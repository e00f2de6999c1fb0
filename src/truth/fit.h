/* fit: private to the fit of a calibration.
 *
 * Each constant v is fitted as a number u on the whole line: log v, or the logit of a fraction.
 * The robust fit of search.h minimises the soft loss of r = log(expected / measured). s_k is the
 * spread of the rows of kind k. Kinds that contradict one another would each hold on to where it
 * fits best; so all have one spread, in which training steps count the most, until the constants
 * have settled. */
#ifndef SM_TRUTH_FIT_H
#define SM_TRUTH_FIT_H
#include "scalemodel/search.h"
#include "scalemodel/truth.h"

typedef struct fit_row {
    sm_truth_case *c;
    const sm_truth_row *row;
    double log_measured;
    int model, source; /* group of the cross-validation */
} fit_row;

typedef struct fit_weighed {
    double size, weight;
} fit_weighed;

typedef struct fit_problem {
    size_t n;
    fit_row *row;
    int models, sources; /* groups */
    const sm_calibration *start;
    int p; /* constants that are free */
    sm_constant free[SM_CONSTANT_COUNT];
    double u0[SM_MAX_PARAMETERS], precision[SM_CONSTANT_COUNT]; /* 1 / sigma^2, 0: no prior */
    bool unfelt[SM_CONSTANT_COUNT]; /* no row depends on it: its derivatives are known to be 0 */
    double *weight;                 /* how many independent rows each row counts as */
    double *room, *scratch;         /* of the robust fit; n */
    fit_weighed *weighed;           /* n */
    bool mixed;                     /* steps beside operations */
    bool *out_of_memory;            /* a row could not be predicted for want of it */
} fit_problem;

typedef struct fit_solution {
    double u[SM_MAX_PARAMETERS];
    double deviation[SM_MAX_PARAMETERS];   /* of u, posterior */
    double sensitivity[SM_MAX_PARAMETERS]; /* root mean square of d log expected / d u */
    double spread[SM_TRUTH_KIND_COUNT];    /* s_k */
    size_t outliers;                       /* rows beyond FIT_OUTLIER spreads */
} fit_solution;

#define FIT_OUTLIER 3.0

/* ---- constants on the whole line: fit_line.c ---- */
double fit_to_line(sm_constant which, double value);
double fit_from_line(sm_constant which, double u); /* within the range of the constant */
double fit_prior_deviation(sm_constant which, double u0);
/* d log value / d u: turns a deviation of u into a relative one of the value. */
double fit_relative(sm_constant which, double u);

/* ---- rows, their weights and groups: fit_rows.c ---- */
sm_status fit_rows_of(const sm_ready_row *rows, size_t n, const sm_calibration *start,
                      sm_arena *arena, fit_problem *f, sm_error *err);

/* ---- the solver: fit_solve.c ---- */
/* Uses the rows that are not of this group. Starts at solution->u, and with FIT_NO_GROUP on the far
 * sides of the hills too; the deviations are filled then. */
typedef enum fit_group { FIT_NO_GROUP, FIT_BY_MODEL, FIT_BY_SOURCE } fit_group;
bool fit_is_held_out(const fit_row *row, fit_group by, int group);
void fit_solve(const fit_problem *f, fit_group by, int group, fit_solution *solution);
/* log(expected / measured) of every row that `group` holds out under these constants. */
double fit_residual(const fit_problem *f, size_t row, const sm_calibration *c);
sm_calibration fit_calibration(const fit_problem *f, const double *u);

/* ---- what to measure next: fit_advice.c ---- */
void fit_advise(const fit_problem *f, const fit_solution *s, char *out, size_t size);
#endif

/* search: exact best-first branch and bound over any set of nodes, Pareto sets, and the robust fit
 * of parameters to rows. Knows nothing of plans. */
#pragma once
#include "scalemodel/base.h"

SM_DECLARATIONS_BEGIN

/* Nodes are expanded in the order of their bounds, in batches whose sizes do not depend on the
 * number of threads; the threshold a node sees is the one of its batch's start. So results and
 * counts are the same whatever the thread count. */
typedef struct sm_branching {
    void *context;
    size_t nodes;
    double threshold;    /* to start with; HUGE_VAL for none */
    const double *bound; /* admissible: no plan of node i is better (smaller) than bound[i] */
    /* A tighter bound of a node, HUGE_VAL where it has nothing below the threshold: asked for each
     * whose bound is below the threshold, before any is looked into. NULL: bounds are as
     * tight as they get. */
    double (*refine)(void *context, int lane, size_t node, double threshold);
    /* Called in node order after each batch of refined nodes; returns the new threshold. NULL: it
     * stays. */
    double (*refined)(void *context, size_t node);
    /* Look into a node; `lane` (0 .. threads-1) owns scratch; `place` (0 .. SM_BATCH-1) receives
     * the result. */
    void (*expand)(void *context, int lane, int place, size_t node, double threshold);
    /* Called in node order after each batch; returns the new threshold (nodes whose bound reaches
     * it are not expanded). */
    double (*merge)(void *context, int place, size_t node);
    const volatile int *stop; /* may be NULL */
    double until_s;           /* stop at this time of sm_clock_s; 0: never */
    void (*progress)(double fraction, void *context);
    void *progress_context;
} sm_branching;
enum { SM_BATCH = 64, SM_MAX_LANES = 64 };

typedef struct sm_branching_result {
    size_t expanded;
    bool finished;
    double bound; /* nothing that was not looked into is better; HUGE_VAL: there is nothing */
} sm_branching_result;
/* Run the search. threads: 0 = one per processor. A thread that cannot start leaves its work to the
 * others. SM_INTERNAL when out of memory. */
sm_status sm_search_best_first(const sm_branching *b, int threads, sm_branching_result *result,
                               sm_error *err);
/* Whether the flag is raised (may be NULL) or the time of sm_clock_s come (0: never). */
bool sm_search_stopped(const volatile int *stop, double until_s);
/* The number of threads that a wish of so many gives: at most SM_MAX_LANES; 0 wishes for one per
 * processor. */
int sm_search_threads(int wanted);

/* Points of which no other is at least as good in both and better in one (smaller is better).
 * keep[i] says whether i stays; of equal points the first stays. O(n log n), no allocation beyond
 * `order` (n entries, caller's). */
void sm_pareto(size_t n, const double *x, const double *y, size_t *order, bool *keep);

/* From the least to the largest, in place; none is NAN. */
void sm_sort_numbers(double *values, size_t n);
/* The number that would come there, from 0, were they sorted; 0 <= which < n. Reorders them. */
double sm_select_number(double *values, size_t n, size_t which);
/* The q-quantile, 0 <= q <= 1, by linear interpolation between order statistics (type 7 of Hyndman
 * and Fan, The American Statistician 50 (1996) 361); NAN of none. Sorts the values in place. */
double sm_quantile(double *values, size_t n, double q);
/* The same of values that each stand for so many; the list is put in their order. */
typedef struct sm_counted {
    double value, count;
} sm_counted;
double sm_quantile_counted(sm_counted *list, size_t n, double q);

/* ---- robust fits ----
 * Parameters u on the whole line that minimise, for residuals r of rows,
 *     sum_i w_i rho(r_i(u) / s_i) + sum_j rho(sqrt(precision_j) (u_j - u0_j)),
 *     rho(z) = sqrt(1 + z^2) - 1,
 * least squares near the start and near the rows, linear far from them (the soft L1 loss; P.
 * Charbonnier et al., IEEE Trans. Image Process. 6 (1997) 298): rows that do not fit pull no harder
 * than others. Solved by reweighted Levenberg-Marquardt steps with a numeric Jacobian, kept up by
 * Broyden's rank-one updates (Math. Comp. 19 (1965) 577). Deterministic, no allocation. */
/* The loss rho(z) = sqrt(1 + z^2) - 1 of a residual of z spreads. */
double sm_soft_loss(double z);
/* The weight rho'(z) / z = 1 / sqrt(1 + z^2) of a squared residual, under which it pulls as rho
 * does. */
double sm_soft_weight(double z);
enum { SM_MAX_PARAMETERS = 16 };
typedef struct sm_robust_fit {
    void *context;
    /* The residual of every row under u; NAN: the row has no say. */
    void (*residuals)(void *context, const double *u, double *residual);
    /* The spread s_i of every row by these residuals; settled: the parameters no longer move much.
     */
    void (*spreads)(void *context, const double *residual, bool settled, double *spread);
    bool settled; /* from the start on */
    size_t rows;
    const double *weight; /* w_i */
    int parameters;
    double u0[SM_MAX_PARAMETERS], precision[SM_MAX_PARAMETERS]; /* 0: no prior */
    double low[SM_MAX_PARAMETERS], high[SM_MAX_PARAMETERS];     /* u stays within */
    bool unfelt[SM_MAX_PARAMETERS]; /* no row depends on it: its derivatives are known to be 0 */
    double *room;                   /* the caller's, of sm_robust_room(rows) numbers */
} sm_robust_fit;
/* How many numbers of room a fit to so many rows needs. */
size_t sm_robust_room(size_t rows);
/* Take at most `rounds` steps from u, which has SM_MAX_PARAMETERS places and receives the result.
 */
void sm_robust_descend(const sm_robust_fit *f, int rounds, double *u);
/* The objective at u with one spread for all rows, so that two solutions compare. */
double sm_robust_merit(const sm_robust_fit *f, double spread, const double *u);
/* The residuals at u and their settled spreads: where sm_robust_descend has come to. */
void sm_robust_at(const sm_robust_fit *f, const double *u, double *residual, double *spread);
/* Standard deviations of u from the inverse of the normal equations, and the root mean square of
 * dr/du of each parameter. */
void sm_robust_deviations(const sm_robust_fit *f, const double *u, double *deviation,
                          double *sensitivity);
SM_DECLARATIONS_END

/* search: exact best-first branch and bound over any set of nodes, and Pareto sets. Knows nothing
 * of plans. */
#ifndef SCALEMODEL_SEARCH_H
#define SCALEMODEL_SEARCH_H
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
    /* Look into a node; `lane` (0 .. threads-1) owns scratch; `place` (0 .. SM_BATCH-1) receives
     * the result. */
    void (*expand)(void *context, int lane, int place, size_t node, double threshold);
    /* Called in node order after each batch; returns the new threshold (nodes whose bound reaches
     * it are not expanded). */
    double (*merge)(void *context, int place, size_t node);
    const volatile int *stop; /* may be NULL */
    void (*progress)(double fraction, void *context);
    void *progress_context;
} sm_branching;
enum { SM_BATCH = 64, SM_MAX_LANES = 64 };

typedef struct sm_branching_result {
    size_t expanded;
    bool finished;
} sm_branching_result;
/* threads: 0 = one per processor. SM_INTERNAL when out of memory; a thread that cannot start leaves
 * its work to the others. */
sm_status sm_search_best_first(const sm_branching *b, int threads, sm_branching_result *result,
                               sm_error *err);
int sm_search_threads(int wanted);

/* Points of which no other is at least as good in both and better in one (smaller is better).
 * keep[i] says whether i stays; of equal points the first stays. O(n log n), no allocation beyond
 * `order` (n entries, caller's). */
void sm_pareto(size_t n, const double *x, const double *y, size_t *order, bool *keep);
SM_DECLARATIONS_END
#endif

/* Every allocation may fail: run a piece of code with its first allocation refused, then its
 * second, and so on until it is refused none.
 *
 *   FOR_EACH_FAILING_ALLOCATION(loop) {
 *       sm_report *r = sm_report_new();               // the code under test, from scratch
 *       if (r == NULL) continue;                      // it said so: good
 *       ...
 *       if (!failing_alloc_refused(&loop)) assert_true(complete(r)); // none refused: must succeed
 *       sm_report_free(r);
 *   }
 *
 * Under AddressSanitizer the same loop finds what is leaked on the way out. `continue` is fine in
 * the body; `break` and `return` must be preceded by sm_allocation_fail_at(0). A body that has run
 * more than FAILING_ALLOC_MOST times is taken to be endless and fails the test. */
#pragma once
#include "scalemodel/base.h"

typedef struct failing_alloc {
    uint64_t n;        /* the allocation to refuse in this turn */
    uint64_t start;    /* allocations made before this turn */
    uint64_t refusals; /* turns in which one was refused */
    bool over;
} failing_alloc;

enum { FAILING_ALLOC_MOST = 100000 };

static inline failing_alloc failing_alloc_begin(void) {
    failing_alloc loop = {.n = 1, .start = sm_allocation_count()};
    sm_allocation_fail_at(loop.n);
    return loop;
}

/* Has the allocation of this turn been refused by now? */
static inline bool failing_alloc_refused(const failing_alloc *loop) {
    return sm_allocation_count() - loop->start >= loop->n;
}

static inline void failing_alloc_next(failing_alloc *loop) {
    loop->over = !failing_alloc_refused(loop);
    if (!loop->over) loop->refusals++;
    assert_true(loop->refusals < FAILING_ALLOC_MOST);
    loop->start = sm_allocation_count();
    sm_allocation_fail_at(loop->over ? 0 : ++loop->n);
}

#define FOR_EACH_FAILING_ALLOCATION(loop)                                                          \
    for (failing_alloc loop = failing_alloc_begin(); !loop.over; failing_alloc_next(&loop))

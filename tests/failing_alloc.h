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
 * more than FAILING_ALLOC_MOST times is taken to be endless and fails the test.
 *
 * Under a sanitizer, where a turn takes ten times as long and there are more of them (each piece of
 * an arena is a block), the first FAILING_ALLOC_ALL are refused one by one and the later ones ever
 * further apart, by a twenty-fifth: those are mostly of loops, in the same lines for the next item.
 * FAILING_ALLOC=all in the environment looks at all. */
#pragma once
#include <stdlib.h>
#include "sanitized.h"
#include "scalemodel/base.h"

typedef struct failing_alloc {
    uint64_t n;        /* the allocation to refuse in this turn */
    uint64_t start;    /* allocations made before this turn */
    uint64_t refusals; /* turns in which one was refused */
    bool over;
} failing_alloc;

enum { FAILING_ALLOC_MOST = 100000, FAILING_ALLOC_ALL = 200 };

static inline uint64_t failing_alloc_step(uint64_t n) {
    bool all = !SANITIZED || n < FAILING_ALLOC_ALL || getenv("FAILING_ALLOC");
    return all ? 1 : n / 25;
}

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
    if (!loop->over) loop->n += failing_alloc_step(loop->n);
    sm_allocation_fail_at(loop->over ? 0 : loop->n);
}

#define FOR_EACH_FAILING_ALLOCATION(loop)                                                          \
    for (failing_alloc loop = failing_alloc_begin(); !loop.over; failing_alloc_next(&loop))

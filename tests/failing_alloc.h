/* Every allocation may fail: run a piece of code with none refused, then once for each place that
 * allocates, with its first allocation refused, and once more with its last.
 *
 *   FOR_EACH_FAILING_ALLOCATION(loop) {
 *       sm_report *r = sm_report_new();               // the code under test, from scratch
 *       if (r == NULL) continue;                      // it said so: good
 *       ...
 *       if (!failing_alloc_refused(&loop)) assert_true(complete(r)); // none refused: must succeed
 *       sm_report_free(r);
 *   }
 *
 * A place is a whole stack of calls: the turns between its first and its last are those of a loop,
 * in the same lines for the next item. FAILING_ALLOC=all in the environment refuses them too.
 * Under a sanitizer, where a turn takes long and each block of an arena counts, the first
 * FAILING_ALLOC_ALL are refused one by one and the later ones ever further apart. Under
 * AddressSanitizer the same loop finds what is leaked on the way out. `continue` is fine in the
 * body; `break` and `return` must be preceded by failing_alloc_end(). */
#pragma once
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "sanitized.h"
#include "scalemodel/base.h"

enum { FAILING_ALLOC_PLACES = 1 << 16, FAILING_ALLOC_DEPTH = 48, FAILING_ALLOC_ALL = 100 };

typedef struct failing_alloc {
    uint64_t
        n; /* the allocation to refuse in this turn; 0 in the first, which notes where they are */
    uint64_t start; /* allocations made before this turn */
    size_t at;      /* its place in what is to be refused */
    bool over;
} failing_alloc;

static struct {
    pthread_mutex_t lock;
    uint64_t start;
    struct {
        uint64_t stack, first, last;
    } place[FAILING_ALLOC_PLACES];
    uint64_t refused[2 * FAILING_ALLOC_PLACES]; /* in order */
    size_t places, n;
} failing_allocs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void failing_alloc_note(uint64_t number) {
    void *frames[FAILING_ALLOC_DEPTH];
    int depth = backtrace(frames, FAILING_ALLOC_DEPTH);
    uint64_t stack = getenv("FAILING_ALLOC") ? number : 1469598103934665603U;
    for (int i = 0; i < depth; i++) stack = (stack ^ (uintptr_t)frames[i]) * 1099511628211U;
    pthread_mutex_lock(&failing_allocs.lock);
    size_t i = (stack >> 20) % FAILING_ALLOC_PLACES;
    while (failing_allocs.place[i].first && failing_allocs.place[i].stack != stack)
        i = (i + 1) % FAILING_ALLOC_PLACES;
    if (!failing_allocs.place[i].first) {
        assert_true(++failing_allocs.places < FAILING_ALLOC_PLACES);
        failing_allocs.place[i].stack = stack;
        failing_allocs.place[i].first = number - failing_allocs.start;
    }
    failing_allocs.place[i].last = number - failing_allocs.start;
    pthread_mutex_unlock(&failing_allocs.lock);
}

static inline int failing_alloc_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline failing_alloc failing_alloc_begin(void) {
    failing_alloc loop = {.start = sm_allocation_count()};
    memset(failing_allocs.place, 0, sizeof failing_allocs.place);
    failing_allocs.places = 0;
    failing_allocs.start = loop.start;
    sm_allocation_watch(failing_alloc_note);
    return loop;
}

/* Of what was noted in the first turn: what the others refuse. */
static inline void failing_alloc_choose(void) {
    sm_allocation_watch(NULL);
    failing_allocs.n = 0;
    for (size_t i = 0; i < FAILING_ALLOC_PLACES; i++) {
        uint64_t first = failing_allocs.place[i].first, last = failing_allocs.place[i].last;
        if (first) failing_allocs.refused[failing_allocs.n++] = first;
        if (last != first) failing_allocs.refused[failing_allocs.n++] = last;
    }
    qsort(failing_allocs.refused, failing_allocs.n, sizeof(uint64_t), failing_alloc_order);
}

static inline void failing_alloc_end(void) {
    sm_allocation_watch(NULL);
    sm_allocation_fail_at(0);
}

/* Has the allocation of this turn been refused by now? */
static inline bool failing_alloc_refused(const failing_alloc *loop) {
    return loop->n && sm_allocation_count() - loop->start >= loop->n;
}

static inline void failing_alloc_next(failing_alloc *loop) {
    if (!loop->n) failing_alloc_choose();
    loop->over = loop->at >= failing_allocs.n;
    loop->n = loop->over ? 0 : failing_allocs.refused[loop->at];
    bool all = !SANITIZED || loop->at < FAILING_ALLOC_ALL || getenv("FAILING_ALLOC");
    loop->at += all ? 1 : loop->at / 12;
    loop->start = sm_allocation_count();
    sm_allocation_fail_at(loop->n);
}

#define FOR_EACH_FAILING_ALLOCATION(loop)                                                          \
    for (failing_alloc loop = failing_alloc_begin(); !loop.over; failing_alloc_next(&loop))

/* Best-first branch and bound with deterministic batches (Land and Doig, 1960; Lawler and Wood,
 * 1966). Bounds are refined first, in the order of the nodes, of which neighbours share what they
 * work out; then nodes come in the order of their bounds. One whose bound is not below the
 * threshold is pruned. The threshold moves only between batches, so the answer does not depend on
 * threads. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "scalemodel/search.h"

typedef struct batch {
    const sm_branching *b;
    const size_t *node;
    double *bound; /* refined, NULL: nodes are expanded */
    int size;
    double threshold;
    atomic_int next;
} batch;

typedef struct lane {
    batch *work;
    int number;
    pthread_t thread;
    bool started;
} lane;

int sm_search_threads(int wanted) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    long n = wanted > 0 ? wanted : online > 0 ? online : 1;
    return n > SM_MAX_LANES ? SM_MAX_LANES : (int)n;
}

static void *run_lane(void *argument) {
    lane *l = argument;
    const sm_branching *b = l->work->b;
    for (;;) {
        int i = atomic_fetch_add(&l->work->next, 1);
        if (i >= l->work->size) return NULL;
        size_t node = l->work->node[i];
        double threshold = l->work->threshold;
        if (l->work->bound) l->work->bound[i] = b->refine(b->context, l->number, node, threshold);
        else b->expand(b->context, l->number, i, node, threshold);
    }
}

static void run_batch(batch *work, int threads) {
    lane lanes[SM_MAX_LANES];
    int n = threads < work->size ? threads : work->size;
    atomic_store(&work->next, 0);
    lanes[0] = (lane){.work = work};
    for (int i = 1; i < n; i++) lanes[i] = (lane){.work = work, .number = i};
    for (int i = 1; i < n; i++)
        lanes[i].started = pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0;
    run_lane(&lanes[0]);
    for (int i = 1; i < n; i++)
        if (lanes[i].started) pthread_join(lanes[i].thread, NULL);
}

typedef struct entry {
    double bound;
    size_t node;
} entry;

SM_ORDER(by_bound, entry, SM_ASCENDING(bound) SM_ASCENDING(node))

bool sm_search_stopped(const volatile int *stop, double until_s) {
    return (stop && *stop) || (until_s > 0 && sm_clock_s() >= until_s);
}

static bool stopped(const sm_branching *b) { return sm_search_stopped(b->stop, b->until_s); }

static void tell(const sm_branching *b, double fraction) {
    if (b->progress) b->progress(fraction, b->progress_context);
}

/* Keep the entries that stay below the threshold. When stopped the others keep their bounds. */
static void refine_all(const sm_branching *b, entry *order, size_t *nodes, int threads,
                       double *threshold) {
    size_t n = *nodes, kept = 0, node[SM_BATCH];
    double bound[SM_BATCH];
    *nodes = 0;
    for (size_t at = 0; at < n;) {
        batch work = {.b = b, .node = node, .bound = bound, .threshold = *threshold};
        for (; at < n && work.size < SM_BATCH; at++)
            if (order[at].bound < *threshold) node[work.size++] = order[at].node;
        bool run = !stopped(b);
        if (run) run_batch(&work, threads);
        for (int i = 0; i < work.size; i++) {
            if (!run) bound[i] = b->bound[node[i]];
            else if (b->refined) *threshold = b->refined(b->context, node[i]);
            if (bound[i] < *threshold) order[kept++] = (entry){bound[i], node[i]};
        }
        *nodes = kept;
        tell(b, 0.9 * (double)at / (double)n);
    }
}

/* Batches grow from one node to SM_BATCH: the first nodes set the threshold that spares the rest.
 */
static void run_all(const sm_branching *b, const entry *order, size_t nodes, int threads,
                    double threshold, sm_branching_result *result) {
    size_t at = 0, node[SM_BATCH];
    int size = 1;
    while (at < nodes && order[at].bound < threshold && !stopped(b)) {
        int n = 0;
        while (n < size && at < nodes && order[at].bound < threshold) node[n++] = order[at++].node;
        batch work = {.b = b, .node = node, .size = n, .threshold = threshold};
        run_batch(&work, threads);
        for (int i = 0; i < n; i++) threshold = b->merge(b->context, i, node[i]);
        result->expanded += (size_t)n;
        if (size < SM_BATCH) size *= 2;
        tell(b, (b->refine ? 0.9 : 0) + (b->refine ? 0.1 : 1) * (double)at / (double)nodes);
    }
    result->finished = at >= nodes || order[at].bound >= threshold;
    result->bound = at < nodes ? order[at].bound : HUGE_VAL;
}

sm_status sm_search_best_first(const sm_branching *b, int threads, sm_branching_result *result,
                               sm_error *err) {
    *result = (sm_branching_result){0, true, HUGE_VAL};
    if (b->nodes == 0) return SM_OK;
    entry *order = sm_calloc(b->nodes, sizeof *order);
    if (!order) return sm_fail_memory(err);
    for (size_t i = 0; i < b->nodes; i++) order[i] = (entry){b->bound[i], i};
    size_t n = b->nodes;
    threads = sm_search_threads(threads);
    double threshold = b->threshold;
    if (b->refine) refine_all(b, order, &n, threads, &threshold);
    qsort(order, n, sizeof *order, by_bound);
    run_all(b, order, n, threads, threshold, result);
    sm_free(order);
    return SM_OK;
}

/* Best-first branch and bound with deterministic batches (Land and Doig, 1960; Lawler and Wood,
 * 1966). Nodes come in the order of their bounds, first the cheap one, then the refined one. One
 * whose bound is not below the threshold is pruned. The threshold moves only between batches, so
 * the answer does not depend on threads. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "scalemodel/search.h"

typedef struct entry {
    double bound;
    size_t node;
    bool refined;
} entry;

typedef struct batch {
    const sm_branching *b;
    entry entry[SM_BATCH];
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
        entry *e = &l->work->entry[i];
        if (e->refined) b->expand(b->context, l->number, i, e->node, l->work->threshold);
        else e->bound = b->refine(b->context, l->number, e->node, l->work->threshold);
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

/* ---- the queue: a heap by bounds ---- */

typedef struct queue {
    entry *at;
    size_t n;
} queue;

static bool before(const entry *x, const entry *y) {
    return x->bound != y->bound ? x->bound < y->bound : x->node < y->node;
}

static void push(queue *q, entry e) {
    size_t at = q->n++;
    for (; at > 0 && before(&e, &q->at[(at - 1) / 2]); at = (at - 1) / 2)
        q->at[at] = q->at[(at - 1) / 2];
    q->at[at] = e;
}

static entry pop(queue *q) {
    entry first = q->at[0], last = q->at[--q->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < q->n; at = child) {
        if (child + 1 < q->n && before(&q->at[child + 1], &q->at[child])) child++;
        if (!before(&q->at[child], &last)) break;
        q->at[at] = q->at[child];
    }
    q->at[at] = last;
    return first;
}

/* ---- running ---- */

/* The first nodes of the queue, all refined or none. */
static void take_batch(queue *q, batch *work, int size) {
    bool refined = q->at[0].refined;
    work->size = 0;
    while (work->size < size && q->n > 0 && q->at[0].bound < work->threshold &&
           q->at[0].refined == refined)
        work->entry[work->size++] = pop(q);
}

/* Batches that are expanded grow from one node to SM_BATCH: the first nodes set the threshold that
 * spares the rest. */
static void run_all(const sm_branching *b, queue *q, int threads, sm_branching_result *result) {
    int size = 1;
    batch work = {.b = b, .threshold = b->threshold};
    while (q->n > 0 && q->at[0].bound < work.threshold && !(b->stop && *b->stop)) {
        bool refined = q->at[0].refined;
        take_batch(q, &work, refined ? size : SM_BATCH);
        run_batch(&work, threads);
        for (int i = 0; i < work.size; i++) {
            entry *e = &work.entry[i];
            e->refined = true;
            if (!refined && e->bound < HUGE_VAL) push(q, *e);
        }
        if (!refined) continue;
        double threshold = work.threshold;
        for (int i = 0; i < work.size; i++) threshold = b->merge(b->context, i, work.entry[i].node);
        work.threshold = threshold;
        result->expanded += (size_t)work.size;
        if (size < SM_BATCH) size *= 2;
        if (b->progress) b->progress(1 - (double)q->n / (double)b->nodes, b->progress_context);
    }
    result->finished = q->n == 0 || q->at[0].bound >= work.threshold;
}

sm_status sm_search_best_first(const sm_branching *b, int threads, sm_branching_result *result,
                               sm_error *err) {
    *result = (sm_branching_result){0, true};
    if (b->nodes == 0) return SM_OK;
    queue q = {sm_calloc(b->nodes, sizeof *q.at), 0};
    if (!q.at) return sm_fail_memory(err);
    for (size_t i = 0; i < b->nodes; i++) push(&q, (entry){b->bound[i], i, !b->refine});
    run_all(b, &q, sm_search_threads(threads), result);
    sm_free(q.at);
    return SM_OK;
}

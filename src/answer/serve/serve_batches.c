/* serve_batches: the best plan at other batches: where decode turns from weights to cache to
 * compute. */
#include "serve_asked.h"
#include <assert.h>

static void add_batch(double *batch, int *n, double value) {
    if (*n < SM_MAX_BATCHES && value >= 1.0 && (*n == 0 || value > batch[*n - 1]))
        batch[(*n)++] = value;
}

/* Powers of two, the batch itself and what fills the memory, in order. */
static int batches_of(const sm_serve_point *p, double *batch) {
    int n = 0;
    double most = fmax(p->fits ? floor(p->most_batch) : 0.0, p->batch);
    for (double b = 1.0; b < most && n < SM_MAX_BATCHES - 2; b *= 2.0) {
        if (p->batch < b) add_batch(batch, &n, p->batch);
        add_batch(batch, &n, b);
    }
    add_batch(batch, &n, p->batch);
    add_batch(batch, &n, most);
    return n;
}

/* Of those asked for in flight there is one batch; the others are of what keeps them full. */
static sm_status price_batches(sm_serve *serve, sm_serving_found *a, sm_error *err) {
    double batch[SM_MAX_BATCHES];
    int n = batches_of(a->best, batch);
    sm_status status = SM_OK;
    assert(n <= SM_MAX_BATCHES);
    /* A batch at which the plan is impossible (a pipeline wants a sequence for each stage), or
     * which is beyond the one asked for and does not fit, is left out. */
    for (int i = 0; i < n; i++) {
        sm_serve_point *p = &a->batch[a->batches];
        sm_error refused = {.status = SM_OK};
        *p = *a->best;
        if (batch[i] != a->best->batch)
            status = sm_serve_point_of(serve, &a->best->plan, batch[i], p, &refused);
        if (!status && !p->fits && batch[i] > a->best->batch)
            status = sm_serve_point_of(serve, &a->best->plan, floor(p->most_batch), p, &refused);
        if (!status && (p->fits || p->batch <= a->best->batch)) a->batches++;
        if (status && status != SM_BAD_INPUT && status != SM_NEGATIVE) {
            *err = refused;
            return status;
        }
    }
    return SM_OK;
}

sm_status sm_serve_batches(sm_serving_found *a, sm_error *err) {
    sm_serve *serve = NULL;
    sm_serve_asked *any = sm_arena_alloc(a->q->arena, sizeof *any);
    a->batch = sm_arena_array(a->q->arena, SM_MAX_BATCHES, sizeof *a->batch);
    if (!any || !a->batch) return sm_fail_memory(err);
    *any = *a->q;
    any->in.concurrency = 0.0;
    sm_status status = sm_serve_open(any, a->best->chips, &serve, err);
    if (!status) status = price_batches(serve, a, err);
    sm_serve_free(serve);
    return status;
}

sm_status sm_serve_find_room(sm_serve *serve, sm_serving_found *a, sm_error *err) {
    const sm_serve_point *p = a->best;
    double low = 0.0, high = SM_MAX_TOKENS;
    double step = fmax(p->batch, fmin(a->q->job.prompt, 8192.0));
    sm_serve_room room;
    while (high - low >= 1.0) {
        double middle = ceil(0.5 * (low + high));
        sm_status status = sm_serve_room_of(serve, &p->plan, middle, step, &room, err);
        if (status) return status;
        if (room.most >= p->batch) low = middle;
        else high = middle - 1.0;
    }
    a->longest = low;
    sm_status status =
        sm_serve_room_of(serve, &p->plan, sm_serve_longest(&a->q->job), step, &room, err);
    a->room = floor(room.kv_tokens);
    return status;
}

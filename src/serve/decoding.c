/* The decoding sequences of a replica. When each ends and needs pages is kept against the number of
 * decode steps so far, which is the same for all: so k steps change none of it. */
#include "simulation.h"
#include <string.h>

/* Slots of sequences, and lists of them. */

sm_status sim_pool_take(sim_pool *pool, const sm_request *request, int *slot, sm_error *err) {
    int i = pool->free;
    if (i != SIM_NONE) pool->free = pool->slot[i].next;
    else {
        sim_sequence *slots = sm_grow(pool->slot, (size_t)pool->n, &pool->room, sizeof *slots);
        if (!slots || pool->n == INT32_MAX) return sm_fail_memory(err);
        pool->slot = slots;
        i = pool->n++;
    }
    sim_sequence *q = &pool->slot[i];
    *q = (sim_sequence){.arrival_s = request->arrival_s, .next = SIM_NONE, .previous = SIM_NONE};
    q->turn = SIM_NONE;
    q->think_s = request->think_s;
    q->prompt = (int64_t)request->prompt;
    q->output = (int64_t)request->output;
    q->prefix = request->prefix;
    q->conversation = request->conversation;
    q->shared_prefix = (int64_t)request->shared_prefix;
    *slot = i;
    if (request->blocks <= 0 || !request->block || request->block_tokens < 1.0) return SM_OK;
    size_t bytes = (size_t)request->blocks * sizeof *q->block;
    q->block = sm_malloc(bytes);
    if (!q->block) return sm_fail_memory(err);
    memcpy(q->block, request->block, bytes);
    q->block_room = (size_t)(q->blocks = request->blocks);
    q->block_tokens = (int64_t)request->block_tokens;
    return SM_OK;
}

void sim_pool_give(sim_pool *pool, int slot) {
    sm_free(pool->slot[slot].block);
    sm_free(pool->slot[slot].place);
    pool->slot[slot].block = NULL;
    pool->slot[slot].place = NULL;
    pool->slot[slot].next = pool->free;
    pool->free = slot;
}

void sim_pool_end(sim_pool *pool) {
    for (int i = 0; i < pool->n; i++) {
        sm_free(pool->slot[i].block);
        sm_free(pool->slot[i].place);
    }
    sm_free(pool->slot);
}

/* One follows the other; SIM_NONE: the ends. */
static void link_slots(sim_pool *pool, sim_list *list, int one, int other) {
    *(one != SIM_NONE ? &pool->slot[one].next : &list->first) = other;
    *(other != SIM_NONE ? &pool->slot[other].previous : &list->last) = one;
}

void sim_list_append(sim_pool *pool, sim_list *list, int slot) {
    link_slots(pool, list, list->last, slot);
    link_slots(pool, list, slot, SIM_NONE);
    list->n++;
}

void sim_list_prepend(sim_pool *pool, sim_list *list, int slot) {
    link_slots(pool, list, slot, list->first);
    link_slots(pool, list, SIM_NONE, slot);
    list->n++;
}

void sim_list_remove(sim_pool *pool, sim_list *list, int slot) {
    sim_sequence *q = &pool->slot[slot];
    link_slots(pool, list, q->previous, q->next);
    q->next = q->previous = SIM_NONE;
    list->n--;
}

/* ---- a heap by (finish, number) ---- */

static bool ends_before(const sim_ending *x, const sim_ending *y) {
    return (x->finish < y->finish) | ((x->finish == y->finish) & (x->number < y->number));
}

static void sift_up(sim_replica *r, int at, sim_ending q) {
    for (; at > 0 && ends_before(&q, &r->ending[(at - 1) / 2]); at = (at - 1) / 2)
        r->ending[at] = r->ending[(at - 1) / 2];
    r->ending[at] = q;
}

/* Those below come up into the gap; the last, which mostly belongs at the bottom, goes where that
 * leaves it. */
static void heap_remove(sim_replica *r, int at) {
    const int n = --r->decoding;
    assert(at >= 0 && at <= n);
    if (at == n) return;
    for (int child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && ends_before(&r->ending[child + 1], &r->ending[child]);
        r->ending[at] = r->ending[child];
        at = child;
    }
    sift_up(r, at, r->ending[n]);
}

/* ---- joining and leaving ---- */

sm_status sim_join(sim_simulation *s, sim_replica *r, int slot) {
    sim_ending *heap = sm_grow(r->ending, (size_t)r->decoding, &r->ending_room, sizeof *heap);
    if (!heap) return sm_fail_memory(s->err);
    r->ending = heap;
    sim_sequence *q = &s->pool.slot[slot];
    q->decoding = true;
    q->joined = r->counter;
    q->finish =
        r->counter + (int64_t)ceil((double)(q->output - q->done) / r->engine->tokens_per_step);
    r->cached += (double)q->length;
    if (s->options->policy != SM_POLICY_STATIC) {
        /* The step at which it needs another page: the slack of the last page, in steps. */
        double slack = (double)((q->shared + q->own) * s->page - q->length);
        int64_t steps = (int64_t)floor(slack / r->engine->tokens_per_step);
        if (steps < 0) steps = 0;
        q->first_page = q->joined + (steps < r->page_steps ? steps : r->page_steps - 1);
        r->crossing[q->first_page % r->page_steps]++;
    }
    sift_up(r, r->decoding++, (sim_ending){q->finish, q->number, slot});
    return SM_OK;
}

static double grown(const sim_replica *r, const sim_sequence *q) {
    return (double)(r->counter - q->joined) * r->engine->tokens_per_step;
}

/* A static batch is reserved whole, and an ended sequence goes on costing its place in the step. */
void sim_leave(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    assert(q->decoding);
    int at = 0; /* mostly the first */
    while (r->ending[at].slot != slot) at++;
    heap_remove(r, at);
    int64_t tokens = (int64_t)floor(grown(r, q) + 0.5), left = q->output - q->done;
    q->decoding = false;
    if (s->options->policy != SM_POLICY_STATIC) {
        r->cached -= (double)q->length + grown(r, q);
        if (r->decoding == 0) r->cached = 0.0;
        r->crossing[q->first_page % r->page_steps]--;
        int64_t past = r->counter - q->first_page;
        q->own += past <= 0 ? 0 : 1 + (past - 1) / r->page_steps;
    }
    if (tokens > left) tokens = left;
    q->length += tokens;
    q->done += tokens;
    s->totals.decoded += (double)tokens;
}

/* ---- pages ---- */

int64_t sim_growth(const sim_replica *r, int64_t steps) {
    int64_t cycles = steps / r->page_steps, rest = steps % r->page_steps;
    int64_t pages = cycles * r->decoding, at = r->counter % r->page_steps;
    for (int64_t i = 0; i < rest; i++) {
        pages += r->crossing[at];
        at = at + 1 < r->page_steps ? at + 1 : 0;
    }
    return pages;
}

int64_t sim_steps_within(const sim_replica *r, int64_t pages, int64_t steps) {
    if (r->decoding == 0) return steps;
    int64_t cycles = pages > 0 ? pages / r->decoding : 0;
    if (steps / r->page_steps < cycles) return steps;
    int64_t left = pages - cycles * r->decoding, at = r->counter % r->page_steps;
    int64_t within = cycles * r->page_steps;
    for (int64_t i = 0; i < r->page_steps && within < steps; i++, within++) {
        left -= r->crossing[at];
        if (left < 0) break;
        at = at + 1 < r->page_steps ? at + 1 : 0;
    }
    return within < steps ? within : steps;
}

void sim_decoded(sim_simulation *s, sim_replica *r, int64_t steps) {
    bool is_static = s->options->policy == SM_POLICY_STATIC;
    if (!is_static) r->used += sim_growth(r, steps);
    r->cached += r->run.path.cached_growth * (double)steps;
    r->counter += steps;
}

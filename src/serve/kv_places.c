/* Where pages lie: an engine that runs needs to know which pages a sequence has, a simulation only
 * how many. A node of the prefix cache is then one page; equal pages of two sequences become one as
 * soon as both are whole (Kwon et al., arXiv 2309.06180, section 4.3). */
#include "simulation.h"

static void give_place(void *context, int32_t place) {
    sim_replica *r = context;
    assert(r->spares < r->capacity);
    r->spare[r->spares++] = place;
}

/* All of them, the first on top. */
sm_status sim_places_begin(sim_simulation *s, sim_replica *r) {
    if (r->capacity > INT32_MAX)
        return sm_fail(s->err, SM_BAD_INPUT, "a cache of %g pages is too large to run",
                       (double)r->capacity);
    r->spare = sm_calloc((size_t)r->capacity + 1, sizeof *r->spare);
    r->seat = sm_calloc((size_t)s->most_batch + 1, sizeof *r->seat);
    if (!r->spare || !r->seat) return sm_fail_memory(s->err);
    for (int64_t i = r->capacity; i-- > 0;) r->spare[r->spares++] = (int32_t)i;
    for (int64_t i = s->most_batch; i-- > 0;) r->seat[r->seats++] = (int)i;
    r->tree.given = give_place;
    r->tree.context = r;
    return SM_OK;
}

void sim_places_end(sim_replica *r) {
    sm_free(r->spare);
    sm_free(r->seat);
}

/* Cached prefixes make way for what is written now. */
static int32_t take_place(sim_replica *r) {
    if (r->spares == 0) sim_radix_evict(&r->tree, 1);
    assert(r->spares > 0);
    return r->spare[--r->spares];
}

sm_status sim_places_take(sim_simulation *s, sim_replica *r, sim_sequence *q) {
    if (!r->spare) return SM_OK;
    if (!q->place) {
        int64_t most = sim_pages_of(s, q->prompt + q->output);
        q->place = sm_calloc((size_t)most + 1, sizeof *q->place);
        if (!q->place) return sm_fail_memory(s->err);
    }
    for (int i = q->pinned; i > 0; i = r->tree.node[i].parent)
        if (r->tree.node[i].start < q->shared)
            q->place[r->tree.node[i].start] = r->tree.node[i].place;
    q->places = q->shared;
    while (q->places < q->shared + q->own) q->place[q->places++] = take_place(r);
    assert(r->seats > 0);
    q->seat = r->seat[--r->seats];
    return SM_OK;
}

void sim_places_grow(sim_simulation *s, sim_replica *r, sim_sequence *q, int64_t position) {
    while (q->places <= position / s->page) q->place[q->places++] = take_place(r);
}

void sim_places_keep(sim_replica *r, sim_sequence *q, int node) {
    if (!r->spare) return;
    for (int i = node; i > 0; i = r->tree.node[i].parent) {
        sim_node *n = &r->tree.node[i];
        if (n->start < q->shared || n->place == q->place[n->start]) continue;
        if (n->place == SIM_NONE) n->place = q->place[n->start];
        else {
            give_place(r, q->place[n->start]);
            q->place[n->start] = n->place;
        }
    }
}

void sim_places_give(sim_replica *r, sim_sequence *q) {
    if (!r->spare || q->places == 0) return;
    while (q->places > q->shared) give_place(r, q->place[--q->places]);
    q->places = 0;
    r->seat[r->seats++] = q->seat;
}

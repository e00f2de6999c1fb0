/* The prefix cache: a radix tree over runs of pages (Zheng et al., "SGLang", 2024, RadixAttention),
 * evicted by last use.
 *
 * Invariants. What may go is listed by last use; a path is touched from its end to its beginning,
 * so what follows a node is always older than the node, and the oldest is the end of a branch.
 * Pinned nodes are in no list. Of a node the first `hot` pages are in HBM and `cold` more in host
 * memory; nothing that begins behind the hot pages of a node is hot. */
#include "radix.h"

#include <string.h>

enum { ROOT = 0, NONE = -1, FIRST_NODES = 64, FIRST_BUCKETS = 128 };

/* ---- the lists of what may go ---- */

static void unlist(sim_radix *t, sim_tier tier, int i) {
    const int newer = t->node[i].use[tier].newer, older = t->node[i].use[tier].older;
    if (older != NONE) t->node[older].use[tier].newer = newer;
    else if (t->oldest[tier] == i) t->oldest[tier] = newer;
    else return; /* not listed */
    if (newer != NONE) t->node[newer].use[tier].older = older;
    else t->newest[tier] = older;
    t->node[i].use[tier].newer = t->node[i].use[tier].older = NONE;
}

static void list_newest(sim_radix *t, sim_tier tier, int i) {
    const int older = t->newest[tier];
    t->node[i].use[tier].older = older;
    if (older != NONE) t->node[older].use[tier].newer = i;
    else t->oldest[tier] = i;
    t->newest[tier] = i;
}

/* The node was used: of what may go from HBM it is the last. */
static void touch(sim_radix *t, int i) {
    unlist(t, SIM_HOT, i);
    if (i != ROOT && t->node[i].hot > 0 && t->node[i].pins == 0) list_newest(t, SIM_HOT, i);
}

/* ---- nodes by parent, label and start ---- */

static int bucket_of(const sim_radix *t, int parent, uint64_t label, int64_t start) {
    uint64_t seed = label ^ ((uint64_t)(unsigned)parent << 40) ^ ((uint64_t)start << 20);
    sm_rng mix = {seed};
    assert((t->buckets & (t->buckets - 1)) == 0);
    return (int)(sm_rng_next(&mix) & (uint64_t)(t->buckets - 1));
}

static int find(const sim_radix *t, int parent, uint64_t label, int64_t start) {
    int i = t->bucket[bucket_of(t, parent, label, start)];
    for (; i != NONE; i = t->node[i].chain) {
        const sim_node *n = &t->node[i];
        if (n->parent == parent && n->label == label && n->start == start) return i;
    }
    return NONE;
}

static void link_bucket(sim_radix *t, int i) {
    const sim_node *n = &t->node[i];
    int *head = &t->bucket[bucket_of(t, n->parent, n->label, n->start)];
    t->node[i].chain = *head;
    *head = i;
}

static void unlink_bucket(sim_radix *t, int i) {
    const sim_node *n = &t->node[i];
    int *at = &t->bucket[bucket_of(t, n->parent, n->label, n->start)];
    while (*at != i) at = &t->node[*at].chain;
    *at = n->chain;
}

static sm_status grow_buckets(sim_radix *t, sm_error *err) {
    int buckets = 2 * t->buckets;
    int *bucket = sm_malloc((size_t)buckets * sizeof *bucket);
    if (!bucket) return sm_fail_memory(err);
    memset(bucket, 0xFF, (size_t)buckets * sizeof *bucket);
    for (int i = t->free; i != NONE; i = t->node[i].chain) t->node[i].start = -1;
    sm_free(t->bucket);
    t->bucket = bucket;
    t->buckets = buckets;
    for (int i = 1; i < t->nodes; i++)
        if (t->node[i].start >= 0) link_bucket(t, i);
    return SM_OK;
}

static sm_status grow_nodes(sim_radix *t, sm_error *err) {
    if (t->room >= INT32_MAX / 4) return sm_fail_memory(err);
    int room = 2 * t->room;
    sim_node *node = sm_realloc(t->node, (size_t)room * sizeof *node);
    if (!node) return sm_fail_memory(err);
    t->node = node;
    t->room = room;
    return t->room > t->buckets ? grow_buckets(t, err) : SM_OK;
}

static sim_node fresh_node(uint64_t label, int64_t start, int parent, int sibling) {
    return (sim_node){label, start,   0,    0,    parent,
                      NONE,  sibling, NONE, NONE, {{NONE, NONE}, {NONE, NONE}},
                      0,     NONE};
}

static sm_status add_node(sim_radix *t, int parent, uint64_t label, int64_t start, int *out,
                          sm_error *err) {
    sm_status status = t->free == NONE && t->nodes == t->room ? grow_nodes(t, err) : SM_OK;
    if (status) return status;
    int i = t->free;
    if (i != NONE) t->free = t->node[i].chain;
    else i = t->nodes++;
    int sibling = t->node[parent].first_child;
    t->node[i] = fresh_node(label, start, parent, sibling);
    if (sibling != NONE) t->node[sibling].previous = i;
    t->node[parent].first_child = i;
    link_bucket(t, i);
    *out = i;
    return SM_OK;
}

/* A node without pages, pins and children. */
static void remove_node(sim_radix *t, int i) {
    sim_node *n = &t->node[i];
    assert(i != ROOT && n->pins == 0 && n->hot == 0 && n->first_child == NONE);
    unlist(t, SIM_HOT, i);
    unlist(t, SIM_COLD, i);
    unlink_bucket(t, i);
    if (n->previous != NONE) t->node[n->previous].next = n->next;
    else t->node[n->parent].first_child = n->next;
    if (n->next != NONE) t->node[n->next].previous = n->previous;
    n->start = -1;
    n->chain = t->free;
    t->free = i;
}

/* ---- host memory ---- */

static void forget_cold(sim_radix *t, int i) {
    t->cold -= t->node[i].cold;
    t->node[i].cold = 0;
    unlist(t, SIM_COLD, i);
}

/* Node i and all that follows it: none of it is hot. */
static void drop_branch(sim_radix *t, int i) {
    for (int at = i, parent = ROOT;; at = parent) {
        while (t->node[at].first_child != NONE) at = t->node[at].first_child;
        parent = t->node[at].parent;
        forget_cold(t, at);
        remove_node(t, at);
        if (at == i) return;
    }
}

/* The host pages of node i go for good, with what lies behind them. */
static void drop_cold(sim_radix *t, int i) {
    int64_t end = t->node[i].start + t->node[i].hot;
    for (int child = t->node[i].first_child, next = NONE; child != NONE; child = next) {
        next = t->node[child].next;
        if (t->node[child].start > end) drop_branch(t, child);
    }
    forget_cold(t, i);
    if (t->node[i].hot == 0 && t->node[i].pins == 0) remove_node(t, i);
}

/* Room for so many pages in host memory, leaving node `kept` alone; false when there is none. */
static bool make_cold_room(sim_radix *t, int64_t pages, int kept) {
    if (pages > t->cold_most) return false;
    while (t->cold + pages > t->cold_most) {
        int i = t->oldest[SIM_COLD];
        if (i == kept && i != NONE) i = t->node[i].use[SIM_COLD].newer;
        if (i == NONE) return false;
        drop_cold(t, i);
    }
    return true;
}

void sim_radix_set_host(sim_radix *t, int64_t host_pages) {
    t->cold_most = host_pages > 0 ? host_pages : 0;
    while (t->cold > t->cold_most && t->oldest[SIM_COLD] != NONE) drop_cold(t, t->oldest[SIM_COLD]);
}

/* ---- the tree ---- */

sm_status sim_radix_begin(sim_radix *t, int64_t host_pages, sm_error *err) {
    *t = (sim_radix){.room = FIRST_NODES, .free = NONE, .buckets = FIRST_BUCKETS};
    for (int tier = 0; tier < SIM_TIERS; tier++) t->oldest[tier] = t->newest[tier] = NONE;
    t->cold_most = host_pages > 0 ? host_pages : 0;
    t->node = sm_malloc(FIRST_NODES * sizeof *t->node);
    t->bucket = sm_malloc(FIRST_BUCKETS * sizeof *t->bucket);
    if (!t->node || !t->bucket) return sm_fail_memory(err);
    memset(t->bucket, 0xFF, FIRST_BUCKETS * sizeof *t->bucket);
    t->node[ROOT] = fresh_node(0, 0, NONE, NONE);
    t->nodes = 1;
    return SM_OK;
}

void sim_radix_end(sim_radix *t) {
    sm_free(t->node);
    sm_free(t->bucket);
    *t = (sim_radix){.free = NONE};
}

int64_t sim_radix_match(const sim_radix *t, const sim_run_list *runs, int *node, int64_t *cold) {
    int64_t at = 0;
    *node = ROOT;
    *cold = 0;
    for (int i = 0; i < runs->n; i++) {
        if (runs->end[i] <= at) continue;
        int found = find(t, *node, runs->label[i], at);
        if (found == NONE) break;
        const sim_node *n = &t->node[found];
        int64_t wanted = runs->end[i] - at, held = n->hot + n->cold;
        int64_t used = wanted < held ? wanted : held;
        *cold += used > n->hot ? used - n->hot : 0;
        *node = found;
        at += used;
        if (used < wanted) break;
    }
    return at;
}

void sim_radix_pin(sim_radix *t, int node) {
    for (int i = node; i > ROOT; i = t->node[i].parent) {
        unlist(t, SIM_HOT, i);
        if (t->node[i].pins++ == 0) t->pinned += t->node[i].hot;
    }
}

void sim_radix_unpin(sim_radix *t, int node) {
    for (int i = node; i > ROOT; i = t->node[i].parent) {
        assert(t->node[i].pins > 0);
        if (--t->node[i].pins == 0) t->pinned -= t->node[i].hot;
        touch(t, i);
    }
}

static void add_hot(sim_radix *t, int i, int64_t pages) {
    t->node[i].hot += pages;
    t->hot += pages;
    if (t->node[i].pins > 0) t->pinned += pages;
}

/* Host pages of node i up to page `pages` of the prompt become hot. */
static int64_t warm_node(sim_radix *t, int i, int64_t pages) {
    sim_node *n = &t->node[i];
    int64_t wanted = pages - n->start - n->hot;
    int64_t come = wanted < n->cold ? wanted : n->cold;
    if (come <= 0) return 0;
    n->cold -= come;
    t->cold -= come;
    add_hot(t, i, come);
    if (n->cold == 0) unlist(t, SIM_COLD, i);
    return come;
}

int64_t sim_radix_warm(sim_radix *t, int node, int64_t pages) {
    int64_t come = 0;
    for (int i = node; i > ROOT; i = t->node[i].parent) {
        come += warm_node(t, i, pages);
        pages = t->node[i].start;
    }
    return come;
}

/* The pages of a node grow up to `wanted`; what host memory held of them is now in HBM. */
static int64_t extend(sim_radix *t, int i, int64_t wanted) {
    sim_node *n = &t->node[i];
    int64_t added = wanted - n->hot;
    if (added <= 0) return 0;
    warm_node(t, i, n->start + wanted);
    if (wanted > n->hot) add_hot(t, i, wanted - n->hot);
    return added;
}

sm_status sim_radix_insert(sim_radix *t, const sim_run_list *runs, int64_t *added, int *node,
                           sm_error *err) {
    int64_t at = 0;
    *added = 0;
    *node = ROOT;
    for (int i = 0; i < runs->n; i++) {
        if (runs->end[i] <= at) continue;
        int found = find(t, *node, runs->label[i], at);
        sm_status status = SM_OK;
        if (found == NONE) status = add_node(t, *node, runs->label[i], at, &found, err);
        if (status) return status;
        *added += extend(t, found, runs->end[i] - at);
        *node = found;
        at = runs->end[i];
    }
    for (int i = *node; i > ROOT; i = t->node[i].parent)
        if (t->node[i].pins == 0) touch(t, i);
    return SM_OK;
}

/* The last pages of a node that nothing hot follows go to host memory, or for good. */
static int64_t evict_from(sim_radix *t, int i, int64_t most) {
    sim_node *n = &t->node[i];
    int64_t pages = n->hot < most ? n->hot : most;
    if (t->given && n->place != NONE) {
        assert(n->hot == 1 && pages == 1);
        t->given(t->context, n->place);
        n->place = NONE;
    }
    n->hot -= pages;
    t->hot -= pages;
    assert(n->hot >= 0 && t->hot >= 0 && n->pins == 0);
    if (n->hot == 0) unlist(t, SIM_HOT, i);
    if (make_cold_room(t, pages, i)) {
        n->cold += pages;
        t->cold += pages;
        unlist(t, SIM_COLD, i);
        if (n->cold != 0) list_newest(t, SIM_COLD, i);
    } else {
        drop_cold(t, i);
    }
    return pages;
}

int64_t sim_radix_evict(sim_radix *t, int64_t pages) {
    int64_t given = 0;
    while (given < pages && t->oldest[SIM_HOT] != NONE)
        given += evict_from(t, t->oldest[SIM_HOT], pages - given);
    return given;
}

/* Pages of the KV cache: who holds them, who must give them back. */
#include "simulation.h"

#define WATERMARK 100 /* one page in so many stays free for those that decode */

int64_t sim_pages_of(const sim_simulation *s, int64_t tokens) {
    return (tokens + s->page - 1) / s->page;
}

int64_t sim_available(const sim_replica *r) { return r->capacity - r->used - r->tree.pinned; }

/* ---- prompts as runs ---- */

/* Ids of prefixes, conversations and blocks count apart: a salt for each. */
static uint64_t salted(uint64_t id, uint64_t salt) {
    sm_rng mix = {id ^ (salt << 56)};
    return sm_rng_next(&mix);
}
enum { OF_PREFIX = 1, OF_CONVERSATION = 2, OF_BLOCK = 3 };

static sm_status reserve_runs(sim_simulation *s, int n) {
    if (n <= s->label_room) return SM_OK;
    uint64_t *label = sm_realloc(s->label, (size_t)n * sizeof *label);
    if (label) s->label = label;
    int64_t *end = label ? sm_realloc(s->end, (size_t)n * sizeof *end) : NULL;
    if (end) s->end = end;
    if (!end) return sm_fail_memory(s->err);
    s->label_room = n;
    return SM_OK;
}

static void add_run(sim_simulation *s, sim_run_list *runs, uint64_t label, int64_t tokens,
                    int64_t most_pages) {
    int64_t end = tokens / s->page;
    if (end > most_pages) end = most_pages;
    if (end <= (runs->n > 0 ? s->end[runs->n - 1] : 0)) return;
    s->label[runs->n] = label;
    s->end[runs->n++] = end;
}

/* What the first `tokens` tokens of a sequence are known by. */
static sm_status runs_of(sim_simulation *s, const sim_sequence *q, int64_t tokens,
                         bool conversation, sim_run_list *runs) {
    *runs = (sim_run_list){.n = 0};
    if (q->blocks == 0 && q->prefix == 0 && q->conversation == 0) return SM_OK;
    sm_status status = reserve_runs(s, q->blocks + 2);
    if (status) return status;
    int64_t most = tokens / s->page;
    for (int i = 0; i < q->blocks; i++)
        add_run(s, runs, salted(q->block[i], OF_BLOCK), (i + 1) * q->block_tokens, most);
    if (q->blocks == 0 && q->prefix != 0)
        add_run(s, runs, salted(q->prefix, OF_PREFIX), q->shared_prefix, most);
    if (q->blocks == 0 && q->conversation != 0 && conversation)
        add_run(s, runs, salted(q->conversation, OF_CONVERSATION), tokens, most);
    runs->label = s->label;
    runs->end = s->end;
    return SM_OK;
}

static bool caches(const sim_simulation *s, const sim_replica *r) {
    return s->options->prefix_cache && r->role != SIM_DECODE_POOL;
}

/* ---- admission ---- */

/* Tokens of cache that a sequence needs before it runs, and the pages it is given for them. */
static int64_t wanted_tokens(const sim_simulation *s, const sim_sequence *q) {
    if (s->options->policy == SM_POLICY_STATIC) return q->prompt + q->output - 1;
    return q->ready ? q->length : q->prompt + q->done;
}

static int64_t reserve_of(const sim_simulation *s, const sim_replica *r) {
    bool grows = s->options->policy != SM_POLICY_STATIC && r->role != SIM_PREFILL_POOL;
    return grows && r->running.n > 0 ? (r->capacity + WATERMARK - 1) / WATERMARK : 0;
}

bool sim_has_room(const sim_simulation *s, const sim_replica *r, int slot) {
    int64_t pages = sim_pages_of(s, wanted_tokens(s, &s->pool.slot[slot]));
    return s->options->prefix_cache || sim_available(r) - pages >= reserve_of(s, r);
}

static double host_seconds(const sim_simulation *s, const sim_replica *r, int64_t pages) {
    double bytes = (double)(pages * s->page) * r->engine->kv_bytes_per_token;
    return r->engine->host_bytes_per_s > 0.0 ? bytes / r->engine->host_bytes_per_s : 0.0;
}

/* At least one token of the prompt must be computed, to give the first of the output. */
static sm_status match(sim_simulation *s, sim_replica *r, const sim_sequence *q, int64_t *pages,
                       int64_t *cold, int *node) {
    sim_run_list runs;
    *pages = *cold = *node = 0;
    if (!caches(s, r) || q->ready) return SM_OK;
    sm_status status = runs_of(s, q, q->prompt + q->done - 1, true, &runs);
    if (status == SM_OK && runs.n > 0) *pages = sim_radix_match(&r->tree, &runs, node, cold);
    return status;
}

static bool admit_with(sim_simulation *s, sim_replica *r, sim_sequence *q, int64_t shared,
                       int64_t cold, int node) {
    int64_t own = sim_pages_of(s, wanted_tokens(s, q)) - shared;
    sim_radix_pin(&r->tree, node);
    if (sim_available(r) - own - cold < reserve_of(s, r)) {
        sim_radix_unpin(&r->tree, node);
        return false;
    }
    q->pinned = node;
    q->shared = shared;
    q->own = own;
    sim_radix_warm(&r->tree, q->pinned, shared);
    q->target = q->prompt + q->done;
    if (!q->ready) q->length = shared * s->page;
    if (!q->started) q->cached = shared * s->page;
    if (q->swapped > 0) {
        r->delay_s += host_seconds(s, r, q->swapped);
        r->swapped -= q->swapped;
        q->swapped = 0;
        sim_radix_set_host(&r->tree, r->host - r->swapped);
    }
    if (cold > 0) r->delay_s += host_seconds(s, r, cold);
    r->used += q->own;
    /* Cached prefixes make way for what the sequences hold. */
    int64_t over = r->used + r->tree.hot - r->capacity;
    if (over > 0) sim_radix_evict(&r->tree, over);
    return true;
}

/* A cached run may be longer than what is used of it, and all of it stays: when not even one
 * sequence fits beside that, it is given up. */
int sim_admit(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    int64_t shared = 0, cold = 0;
    int node = 0;
    if (match(s, r, q, &shared, &cold, &node)) return -1;
    bool in = admit_with(s, r, q, shared, cold, node) ||
              (r->running.n == 0 && shared > 0 && admit_with(s, r, q, 0, 0, 0));
    return !in ? 0 : sim_places_take(s, r, q) ? -1 : 1;
}

void sim_release(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_places_give(r, q);
    sim_radix_unpin(&r->tree, q->pinned);
    r->used -= q->own;
    q->own = q->shared = 0;
    q->pinned = 0;
}

/* ---- what stays in the prefix cache ---- */

static sm_status keep(sim_simulation *s, sim_replica *r, sim_sequence *q,
                      const sim_run_list *runs) {
    int64_t added = 0, end = runs->end[runs->n - 1];
    int node = 0;
    sm_status status = sim_radix_insert(&r->tree, runs, &added, &node, s->err);
    if (status || end <= q->shared) return status;
    sim_places_keep(r, q, node);
    sim_radix_pin(&r->tree, node);
    sim_radix_unpin(&r->tree, q->pinned);
    q->pinned = node;
    r->used -= end - q->shared;
    q->own -= end - q->shared;
    q->shared = end;
    return SM_OK;
}

sm_status sim_keep_prompt(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_run_list runs;
    if (!caches(s, r)) return SM_OK;
    /* What goes on elsewhere leaves its prompt here: the answer is computed with the next one. */
    bool leaves = r->role == SIM_PREFILL_POOL;
    sm_status status = runs_of(s, q, q->prompt, leaves, &runs);
    if (!status && s->curve && leaves) status = sim_curve_use(s->curve, &runs, false, s->err);
    return status || runs.n == 0 ? status : keep(s, r, q, &runs);
}

sm_status sim_note_prompt(sim_simulation *s, const sim_sequence *q) {
    sim_run_list runs;
    if (!s->curve) return SM_OK;
    sm_status status = runs_of(s, q, q->prompt - 1, true, &runs);
    return status ? status : sim_curve_use(s->curve, &runs, true, s->err);
}

sm_status sim_keep_exchange(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_run_list runs;
    if (!caches(s, r) || q->conversation == 0 || q->blocks > 0) return SM_OK;
    sm_status status = runs_of(s, q, q->length, true, &runs);
    if (!status && s->curve) status = sim_curve_use(s->curve, &runs, false, s->err);
    return status || runs.n == 0 ? status : keep(s, r, q, &runs);
}

sm_status sim_keep_pages(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_run_list runs;
    if (!caches(s, r) || q->blocks == 0) return SM_OK;
    sm_status status = runs_of(s, q, q->length, false, &runs);
    return status || runs.n == 0 ? status : keep(s, r, q, &runs);
}

int64_t sim_cached_pages(sim_simulation *s, sim_replica *r, const sim_sequence *q) {
    int64_t pages = 0, cold = 0;
    int node = 0;
    return match(s, r, q, &pages, &cold, &node) ? 0 : pages;
}

/* ---- preemption ---- */

/* To host memory: all its pages, so that it can come back whatever became of the prefix cache. */
static bool swap_out(sim_simulation *s, sim_replica *r, sim_sequence *q) {
    int64_t pages = sim_pages_of(s, q->length);
    if (r->swapped + pages > r->host) return false;
    r->swapped += pages;
    q->swapped = pages;
    q->ready = true;
    r->delay_s += host_seconds(s, r, pages);
    sim_radix_set_host(&r->tree, r->host - r->swapped);
    return true;
}

void sim_forget_due(sim_replica *r, int slot) {
    int at = 0;
    while (at < r->dues && r->due[(r->due_first + at) % r->due_room] != slot) at++;
    if (at == r->dues) return;
    for (; at > 0; at--)
        r->due[(r->due_first + at) % r->due_room] = r->due[(r->due_first + at - 1) % r->due_room];
    r->due_first = (r->due_first + 1) % r->due_room;
    r->dues--;
}

void sim_preempt_youngest(sim_simulation *s, sim_replica *r) {
    int slot = r->running.last;
    for (int i = slot; s->ranks > 1 && i != SIM_NONE; i = s->pool.slot[i].previous)
        if (s->rank[s->pool.slot[i].kind] > s->rank[s->pool.slot[slot].kind]) slot = i;
    sim_sequence *q = &s->pool.slot[slot];
    bool swap =
        s->options->preempt == SM_PREEMPT_SWAP && q->decoding && r->engine->host_bytes_per_s > 0.0;
    if (q->decoding) sim_leave(s, r, slot);
    else sim_forget_due(r, slot);
    if (!swap || !swap_out(s, r, q)) q->length = 0;
    sim_release(s, r, slot);
    sim_list_remove(&s->pool, &r->running, slot);
    sim_list_prepend(&s->pool, sim_waiting(s, r, q), slot);
    sim_count_group(r, q, 0, 1);
    q->preemptions++;
    s->totals.preemptions += 1.0;
    s->totals.running -= 1.0;
    s->totals.waiting += 1.0;
}

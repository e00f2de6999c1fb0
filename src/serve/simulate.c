/* The simulation of a fleet: arrivals, ends of runs and transfers in the order of their times.
 * Steps of continuous batching (Yu et al., "Orca", 2022) between two such events are one run, whose
 * time is summed in closed form. */
#include "simulation.h"
#include "scalemodel/load.h"

#include <string.h>

enum { MOST_REPLICAS = 4096, MOST_PAGE = 65536, MOST_BATCH = 1 << 20 };
#define MOST_PAGES 4e15 /* sums of pages stay exact */
#define MOST_SECONDS 1e15

void sm_simulation_defaults_sized(sm_simulation *simulation, size_t size) {
    const sm_simulation all = {.size = size,
                               .policy = SM_POLICY_CONTINUOUS,
                               .replicas = 1,
                               .prefill_replicas = 1,
                               .most_batch = 256.0,
                               .chunk_tokens = 512.0,
                               .prefill_tokens = 8192.0,
                               .page_tokens = 16.0};
    sm_sized_give(simulation, size, &all, sizeof all);
}

void sm_simulation_follow(sm_simulation *simulation, const sm_software *software, bool apart) {
    simulation->policy = apart                   ? SM_POLICY_DISAGGREGATED
                         : software->mixed_steps ? SM_POLICY_CHUNKED
                                                 : SM_POLICY_CONTINUOUS;
    simulation->most_batch = simulation->prompt_tokens = 0.0;
    simulation->chunk_tokens = simulation->prefill_tokens = 0.0;
    simulation->admission_s = software->admission_s + (apart ? software->handover_s : 0.0);
    simulation->look_steps = software->look_steps;
    simulation->gather_steps = software->gather_steps;
    simulation->schedules_ahead = software->schedules_ahead;
}

/* ---- the heap of replicas by the end of their run ---- */

static bool is_sooner(sim_event a, sim_event b) {
    return (a.end_s < b.end_s) | ((a.end_s == b.end_s) & (a.replica < b.replica));
}

static void put_event(sim_simulation *s, int at, sim_event event) {
    s->event[at] = event;
    s->replica[event.replica].event_at = at;
}

void sim_event_changed(sim_simulation *s, const sim_replica *r) {
    int at = r->event_at;
    const sim_event self = {r->run.end_s, s->event[at].replica};
    for (; at > 0 && is_sooner(self, s->event[(at - 1) / 2]); at = (at - 1) / 2)
        put_event(s, at, s->event[(at - 1) / 2]);
    for (int child = 2 * at + 1; child < s->replicas; child = 2 * at + 1) {
        child += child + 1 < s->replicas && is_sooner(s->event[child + 1], s->event[child]);
        if (!is_sooner(s->event[child], self)) break;
        put_event(s, at, s->event[child]);
        at = child;
    }
    put_event(s, at, self);
}

/* ---- into a replica ---- */

/* More that wait at a replica are packed. */
enum { MOST_WAITING = 512 };

sim_list *sim_waiting(const sim_simulation *s, sim_replica *r, const sim_sequence *q) {
    return &r->waiting[s->rank[q->kind]];
}

int sim_first_waiting(const sim_simulation *s, const sim_replica *r) {
    for (int rank = 0; rank < s->ranks; rank++)
        if (r->waiting[rank].first != SIM_NONE) return r->waiting[rank].first;
    return SIM_NONE;
}

/* A sequence that waits at a replica: an idle one begins, a running one may let it in after the
 * step of now, unless others wait before it. */
static sm_status queue_at(sim_simulation *s, int replica, int slot) {
    sim_replica *r = &s->replica[replica];
    if (r->group && sim_first_waiting(s, r) == SIM_NONE) r->looked = SIM_NONE;
    sim_list_append(&s->pool, sim_waiting(s, r, &s->pool.slot[slot]), slot);
    s->pool.slot[slot].replica = replica;
    sim_join_group(s, r, &s->pool.slot[slot]);
    s->load[replica]++;
    s->totals.waiting += 1.0;
    if (s->live) return SM_OK;
    if (isinf(r->run.end_s)) return sim_plan(s, r);
    bool first = sim_first_waiting(s, r) == slot || sim_gathers(s, r) == 0;
    if (first && s->options->policy != SM_POLICY_STATIC &&
        (r->group || (r->running.n < s->most_batch && sim_has_room(s, r, slot))))
        sim_shorten(s, r);
    return SM_OK;
}

/* ---- what comes later: caches on their way to the decode pool, turns that are thought of: a heap
 * by time and slot ---- */

static bool comes_before(const sim_later *a, const sim_later *b) {
    return a->at_s != b->at_s ? a->at_s < b->at_s : a->slot < b->slot;
}

static sm_status add_later(sim_simulation *s, sim_later one) {
    sim_later *heap = sm_grow(s->later, (size_t)s->laters, &s->later_room, sizeof *heap);
    if (!heap) return sm_fail_memory(s->err);
    s->later = heap;
    int at = s->laters++;
    for (; at > 0 && comes_before(&one, &s->later[(at - 1) / 2]); at = (at - 1) / 2)
        s->later[at] = s->later[(at - 1) / 2];
    s->later[at] = one;
    return SM_OK;
}

static int take_later(sim_simulation *s) {
    assert(s->laters > 0);
    int slot = s->later[0].slot, at = 0, n = --s->laters;
    sim_later last = s->later[n];
    for (int child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && comes_before(&s->later[child + 1], &s->later[child])) child++;
        if (!comes_before(&s->later[child], &last)) break;
        s->later[at] = s->later[child];
        at = child;
    }
    if (n > 0) s->later[at] = last;
    return slot;
}

/* The cache of a prompt goes over the replica's link, one after the other; until it has arrived its
 * pages stay. */
sm_status sim_send(sim_simulation *s, sim_replica *r, int slot) {
    const sim_sequence *q = &s->pool.slot[slot];
    const sm_engine *e = r->engine;
    double bytes = (double)q->length * e->kv_bytes_per_token;
    double seconds = e->transfer_bytes_per_s > 0.0 ? bytes / e->transfer_bytes_per_s : 0.0;
    r->link_free_s = fmax(r->link_free_s, s->totals.now_s) + seconds;
    sim_list_remove(&s->pool, &r->running, slot);
    return add_later(s, (sim_later){r->link_free_s + e->transfer_latency_s, slot});
}

static sm_status land(sim_simulation *s, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    int sender = q->replica;
    sim_replica *r = &s->replica[sender];
    sim_release(s, r, slot);
    s->load[sender]--;
    s->totals.running -= 1.0;
    q->ready = true;
    sm_status status = isinf(r->run.end_s) ? sim_plan(s, r) : SM_OK;
    return status ? status : queue_at(s, sim_route_decode(s), slot);
}

/* ---- arrivals ---- */

static sm_status check_request(const sim_simulation *s, const sm_request *q, sm_error *err) {
    double number = s->read;
    bool timed = !q->follows;
    if (!timed && number == 0.0)
        return sm_fail(err, SM_BAD_INPUT, "the first request follows no other");
    if (!timed && !(q->think_s >= 0.0 && q->think_s <= MOST_SECONDS))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f is sent %g s after the turn before it",
                       number, q->think_s);
    if (timed && !(q->arrival_s >= -MOST_SECONDS && q->arrival_s <= MOST_SECONDS))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f arrives at %g s, which is no time", number,
                       q->arrival_s);
    if (timed && s->options->concurrency <= 0.0 && number > 0.0 && q->arrival_s < s->read_s)
        return sm_fail(err, SM_BAD_INPUT, "request %.0f arrives before the one ahead of it",
                       number);
    if (!(q->prompt >= 1.0 && q->prompt <= SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f has a prompt of %g tokens: 1 to %.0f are",
                       number, q->prompt, SM_MAX_TOKENS);
    if (!(q->output >= 1.0 && q->output <= SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f has an output of %g tokens: 1 to %.0f are",
                       number, q->output, SM_MAX_TOKENS);
    if (!(q->shared_prefix >= 0.0 && q->shared_prefix <= q->prompt))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f shares a prefix longer than its prompt",
                       number);
    return SM_OK;
}

/* The class of this name. */
static sm_status find_class(const sim_simulation *s, const char *name, int *kind) {
    const sm_simulation *o = s->options;
    const char *known[SM_MOST_CLASSES];
    *kind = 0;
    if (!name || o->n_classes == 0) return SM_OK;
    for (; *kind < o->n_classes; ++*kind)
        if (strcmp(o->classes[*kind].name, name) == 0) return SM_OK;
    for (int i = 0; i < o->n_classes; i++) known[i] = o->classes[i].name;
    const char *near = sm_nearest(name, strlen(name), known, (size_t)o->n_classes);
    return sm_fail(s->err, SM_BAD_INPUT, "request %.0f is of class '%.60s', which is not given%s%s",
                   s->read, name, near ? "; the nearest is " : "", near ? near : "");
}

sm_status sim_take(sim_simulation *s, const sm_request *request, int *slot) {
    int kind;
    sm_status status = check_request(s, request, s->err);
    if (!status) status = find_class(s, request->kind, &kind);
    if (!status) status = sim_pool_take(&s->pool, request, slot, s->err);
    if (status) return status;
    s->pool.slot[*slot].kind = kind;
    s->read += 1.0;
    if (!request->follows) s->read_s = request->arrival_s;
    return SM_OK;
}

static sm_status read_one(sim_simulation *s, int *slot, bool *follows) {
    sm_request request = {.arrival_s = HUGE_VAL};
    *slot = SIM_NONE;
    int got = s->all_read ? 0 : s->arrivals->next(s->arrivals->context, &request, s->err);
    if (got < 0) return s->err && s->err->status ? s->err->status : SM_BAD_INPUT;
    s->all_read = got == 0;
    *follows = request.follows;
    return got > 0 ? sim_take(s, &request, slot) : SM_OK;
}

/* The next request with the turns that follow it; one more is read, to know where they end. */
static sm_status fetch(sim_simulation *s, int *slot) {
    bool follows = false;
    sm_status status = SM_OK;
    if (s->read == 0.0) status = read_one(s, &s->ahead, &follows);
    *slot = s->ahead;
    for (int last = *slot; !status && last != SIM_NONE;) {
        status = read_one(s, &s->ahead, &follows);
        if (status || s->ahead == SIM_NONE || !follows) break;
        s->pool.slot[last].turn = s->ahead;
        last = s->ahead;
    }
    return status;
}

/* Below 1, evenly: of each 16 draws one falls into each sixteenth, in an order that is drawn, so
 * that a few requests have the mean of many. */
static double draw_share(sim_simulation *s) {
    enum { PARTS = 16 };
    uint64_t i = s->drawn++ % PARTS;
    if (i == 0) s->order = sm_rng_next(&s->rng);
    uint64_t part = (i * (s->order | 1) + (s->order >> 32)) % PARTS;
    return ((double)part + sm_rng_unit(&s->rng)) / PARTS;
}

/* From a client. What the software takes to parse and schedule it is drawn, exponentially: were it
 * always the same, a request would come back as long after the end of a step, and those that end
 * together would do so for good (docs/decisions/0024). */
static sm_status send(sim_simulation *s, int slot, double sent_s) {
    double taken_s = -s->options->admission_s * log1p(-draw_share(s));
    s->pool.slot[slot].arrival_s = sent_s;
    return add_later(s, (sim_later){sent_s + taken_s, slot});
}

/* A client of a closed loop sends its next request, if there is one. */
static sm_status send_next(sim_simulation *s, double sent_s) {
    int slot = SIM_NONE;
    sm_status status = s->options->concurrency > 0.0 ? fetch(s, &slot) : SM_OK;
    return status || slot == SIM_NONE ? status : send(s, slot, sent_s);
}

sm_status sim_client_goes_on(sim_simulation *s, const sim_sequence *q) {
    double now_s = s->totals.now_s;
    if (q->turn == SIM_NONE) return send_next(s, now_s + s->options->think_s);
    return send(s, q->turn, now_s + s->pool.slot[q->turn].think_s);
}

static void count_request(sim_totals *t, const sim_sequence *q) {
    t->requests += 1.0;
    if (t->of_class) t->of_class[q->kind].requests += 1.0;
}

/* With it go the turns that would have followed. */
static sm_status refuse(sim_simulation *s, int slot) {
    while (slot != SIM_NONE) {
        const sim_sequence *q = &s->pool.slot[slot];
        int next = q->turn;
        count_request(&s->totals, q);
        s->totals.refused += 1.0;
        sim_pool_give(&s->pool, slot);
        slot = next;
    }
    return send_next(s, s->totals.now_s + s->options->think_s);
}

/* Into the backlog of its rank. */
static sm_status pack(sim_simulation *s, sim_replica *r, int slot) {
    const sim_sequence *q = &s->pool.slot[slot];
    const sim_packed packed = {q->number,
                               {.arrival_s = q->arrival_s,
                                .prompt = (double)q->prompt,
                                .output = (double)q->output,
                                .conversation = q->conversation,
                                .shared_prefix = (double)q->shared_prefix,
                                .prefix = q->prefix,
                                .block = q->block,
                                .blocks = q->blocks,
                                .block_tokens = (double)q->block_tokens},
                               q->kind,
                               q->turn};
    s->load[r - s->replica]++;
    s->totals.waiting += 1.0;
    sm_status status = sim_backlog_put(&r->backlog[s->rank[q->kind]], &packed, s->err);
    sim_pool_give(&s->pool, slot);
    return status;
}

sm_status sim_arrive(sim_simulation *s, int slot, double sent_s, bool *fits) {
    sim_totals *t = &s->totals;
    sim_sequence *q = &s->pool.slot[slot];
    q->number = (uint64_t)t->requests;
    q->arrival_s = sent_s;
    q->queued_s = t->now_s;
    q->sent = true;
    if (t->requests == 0.0 || sent_s > t->last_arrival_s) t->last_arrival_s = sent_s;
    /* not too long for the memory of a replica even when alone */
    *fits = sim_pages_of(s, q->prompt + q->output - 1) <= s->replica[0].capacity &&
            sim_pages_of(s, q->prompt) <= s->replica[s->first_entry].capacity;
    if (!*fits) return refuse(s, slot);
    count_request(t, q);
    t->area.in_system += t->now_s - sent_s;
    t->in_system += 1.0;
    int replica = sim_route(s, q), rank = s->rank[q->kind];
    sim_replica *r = &s->replica[replica];
    if (!s->live && (r->backlog[rank].n > 0 || r->waiting[rank].n >= MOST_WAITING))
        return pack(s, r, slot);
    return queue_at(s, replica, slot);
}

sm_status sim_refill(sim_simulation *s, sim_replica *r, int rank) {
    sim_packed packed;
    int slot;
    if (r->backlog[rank].n == 0) return SM_OK;
    sim_backlog_take(&r->backlog[rank], &packed);
    sm_status status = sim_pool_take(&s->pool, &packed.request, &slot, s->err);
    if (status) return status;
    sim_sequence *q = &s->pool.slot[slot];
    q->number = packed.number;
    q->kind = packed.kind;
    q->turn = packed.turn;
    q->queued_s = fmin(q->arrival_s + s->options->admission_s, s->totals.now_s);
    q->sent = true;
    q->replica = (int)(r - s->replica);
    sim_join_group(s, r, q);
    sim_list_append(&s->pool, &r->waiting[rank], slot);
    return SM_OK;
}

/* ---- the loop: of events at one time arrivals come first, then transfers and turns ---- */

static sm_status come(sim_simulation *s) {
    int slot = take_later(s);
    const sim_sequence *q = &s->pool.slot[slot];
    bool fits;
    return q->sent ? land(s, slot) : sim_arrive(s, slot, q->arrival_s, &fits);
}

/* In an open loop, which takes requests as they come. */
static sm_status arrive(sim_simulation *s, int *slot) {
    sim_totals *t = &s->totals;
    double sent_s = s->pool.slot[*slot].arrival_s;
    bool fits;
    if (t->requests == 0.0) t->now_s = t->first_s = t->sample_at_s = sent_s;
    sim_advance(t, sent_s + s->options->admission_s);
    sm_status status = sim_arrive(s, *slot, sent_s, &fits);
    return status ? status : fetch(s, slot);
}

static sm_status run_all(sim_simulation *s) {
    int slot = SIM_NONE;
    sm_status status = SM_OK;
    if (s->options->concurrency <= 0.0) status = fetch(s, &slot);
    for (double i = 1.0; !status && i <= s->options->concurrency; i += 1.0)
        status = send_next(s, 0.0); /* all clients at once */
    while (status == SM_OK) {
        double later_s = s->laters > 0 ? s->later[0].at_s : HUGE_VAL;
        double run_s = s->event[0].end_s, other_s = later_s < run_s ? later_s : run_s;
        double queue_s =
            slot == SIM_NONE ? HUGE_VAL : s->pool.slot[slot].arrival_s + s->options->admission_s;
        if (isinf(queue_s) && isinf(other_s)) break;
        if (queue_s <= other_s) {
            status = arrive(s, &slot);
            continue;
        }
        sim_advance(&s->totals, other_s);
        status = later_s <= run_s ? come(s) : sim_complete(s, &s->replica[s->event[0].replica]);
    }
    if (status == SM_OK && s->totals.in_system > 0.0)
        return sm_fail(s->err, SM_INTERNAL, "%.0f requests can neither run nor end",
                       s->totals.in_system);
    return status;
}

/* ---- setting up ---- */

static bool is_within(double value, double least, double most) {
    return value >= least && value <= most;
}

static sm_status check_engine(const sm_engine *e, const char *name, sm_error *err) {
    if (!e || !e->step_s) return sm_fail(err, SM_BAD_INPUT, "there is no %s engine", name);
    if (!(e->kv_tokens >= 1.0))
        return sm_fail(err, SM_BAD_INPUT, "the %s engine has no memory for a single token", name);
    if (!is_within(e->tokens_per_step, 1.0, 1000.0))
        return sm_fail(err, SM_BAD_INPUT, "a step gives a sequence 1 to 1000 tokens");
    return SM_OK;
}

static sm_status check_classes(const sm_simulation *o, sm_error *err) {
    if (o->n_classes < 0 || o->n_classes > SM_MOST_CLASSES)
        return sm_fail(err, SM_BAD_INPUT, "requests are of at most %d classes", SM_MOST_CLASSES);
    for (int i = 0; i < o->n_classes; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(o->classes[i].name, o->classes[j].name) == 0)
                return sm_fail(err, SM_BAD_INPUT, "two classes are called '%.60s'",
                               o->classes[i].name);
    return SM_OK;
}

static sm_status check_options(const sm_simulation *o, sm_error *err) {
    sm_status status = check_engine(o->engine, "", err);
    if (!status && o->policy == SM_POLICY_DISAGGREGATED)
        status = check_engine(o->prefill_engine, "prefill", err);
    if (status) return status;
    if (o->replicas < 1 || o->replicas > MOST_REPLICAS)
        return sm_fail(err, SM_BAD_INPUT, "a fleet has 1 to %d replicas", MOST_REPLICAS);
    if (o->policy == SM_POLICY_DISAGGREGATED &&
        (o->prefill_replicas < 1 || o->prefill_replicas > MOST_REPLICAS))
        return sm_fail(err, SM_BAD_INPUT, "a prefill pool has 1 to %d replicas", MOST_REPLICAS);
    if (!is_within(o->most_batch, 1.0, MOST_BATCH))
        return sm_fail(err, SM_BAD_INPUT, "a batch has 1 to %d sequences", MOST_BATCH);
    if (o->concurrency != 0.0 && !is_within(o->concurrency, 1.0, MOST_BATCH))
        return sm_fail(err, SM_BAD_INPUT, "a closed loop has 1 to %d clients", MOST_BATCH);
    if (!is_within(o->think_s, 0.0, MOST_SECONDS) || !is_within(o->admission_s, 0.0, MOST_SECONDS))
        return sm_fail(err, SM_BAD_INPUT, "a time of %g s to think and %g s to be admitted",
                       o->think_s, o->admission_s);
    if (!is_within(o->look_steps, 0.0, MOST_BATCH) ||
        !is_within(o->gather_steps, 0.0, MOST_BATCH) || !is_within(o->groups, 0.0, MOST_BATCH))
        return sm_fail(err, SM_BAD_INPUT, "requests wait for 0 to %d steps or others", MOST_BATCH);
    if (!is_within(o->page_tokens, 1.0, MOST_PAGE))
        return sm_fail(err, SM_BAD_INPUT, "a page has 1 to %d tokens", MOST_PAGE);
    if (!is_within(o->chunk_tokens, 1.0, SM_MAX_TOKENS) ||
        !is_within(o->prefill_tokens, 1.0, SM_MAX_TOKENS) ||
        (o->prompt_tokens != 0.0 && !is_within(o->prompt_tokens, 1.0, SM_MAX_TOKENS)))
        return sm_fail(err, SM_BAD_INPUT, "a step takes 1 to %.0f tokens", SM_MAX_TOKENS);
    return check_classes(o, err);
}

static int64_t whole_pages(double tokens, int64_t page) {
    double pages = floor(tokens / (double)page);
    return pages >= MOST_PAGES ? (int64_t)MOST_PAGES : pages > 0.0 ? (int64_t)pages : 0;
}

static sm_status begin_replica(sim_simulation *s, int i) {
    const sm_simulation *o = s->options;
    sim_replica *r = &s->replica[i];
    bool split = o->policy == SM_POLICY_DISAGGREGATED;
    r->role = !split ? SIM_WHOLE : i < o->replicas ? SIM_DECODE_POOL : SIM_PREFILL_POOL;
    r->engine = r->role == SIM_PREFILL_POOL ? o->prefill_engine : o->engine;
    r->capacity = whole_pages(r->engine->kv_tokens, s->page);
    r->host = whole_pages(r->engine->host_kv_tokens, s->page);
    r->running = (sim_list){SIM_NONE, SIM_NONE, 0};
    for (int rank = 0; rank < s->ranks; rank++) r->waiting[rank] = r->running;
    r->run.end_s = HUGE_VAL;
    r->event_at = i;
    s->event[i] = (sim_event){HUGE_VAL, i};
    r->page_steps = (int64_t)fmax(1.0, floor((double)s->page / r->engine->tokens_per_step));
    r->crossing = sm_calloc((size_t)r->page_steps, sizeof *r->crossing);
    bool gathers = o->gather_steps >= 1.0 && o->groups >= 1.0 && !split;
    if (gathers) r->group = sm_calloc((size_t)o->groups, sizeof *r->group);
    if (!r->crossing || (gathers && !r->group)) return sm_fail_memory(s->err);
    sm_status status = sim_radix_begin(&r->tree, r->host, s->err);
    return status || !s->live ? status : sim_places_begin(s, r);
}

/* A class has as many ranks before it as classes of smaller priorities: ranks of no class stay
 * empty. */
static void rank_classes(sim_simulation *s) {
    const sm_simulation *o = s->options;
    s->ranks = 1;
    for (int i = 0; i < o->n_classes; i++) {
        for (int j = 0; j < o->n_classes; j++)
            s->rank[i] += o->classes[j].priority < o->classes[i].priority;
        if (s->rank[i] + 1 > s->ranks) s->ranks = s->rank[i] + 1;
    }
}

static sm_status begin(sim_simulation *s, bool told) {
    const sm_simulation *o = s->options;
    s->ahead = SIM_NONE;
    rank_classes(s);
    bool split = o->policy == SM_POLICY_DISAGGREGATED;
    s->replicas = o->replicas + (split ? o->prefill_replicas : 0);
    s->first_entry = split ? o->replicas : 0;
    s->entries = split ? o->prefill_replicas : o->replicas;
    s->page = (int64_t)o->page_tokens;
    s->most_batch = (int64_t)o->most_batch;
    int64_t chunk = (int64_t)o->chunk_tokens;
    if (o->policy == SM_POLICY_CHUNKED && s->most_batch >= chunk)
        s->most_batch = chunk > 1 ? chunk - 1 : 1; /* a chunk has room for prefill */
    s->pool.free = SIM_NONE;
    if (o->prefix_cache && !s->live) {
        s->curve = sm_calloc(1, sizeof *s->curve);
        if (!s->curve) return sm_fail_memory(s->err);
    }
    s->replica = sm_calloc((size_t)s->replicas, sizeof *s->replica);
    s->load = sm_calloc((size_t)s->replicas, sizeof *s->load);
    s->event = sm_calloc((size_t)s->replicas, sizeof *s->event);
    if (!s->replica || !s->load || !s->event) return sm_fail_memory(s->err);
    sm_status status = SM_OK;
    for (int i = 0; i < s->replicas && !status; i++) status = begin_replica(s, i);
    return status ? status : sim_totals_begin(s, told);
}

void sim_free(sim_simulation *s) {
    for (int i = 0; s->replica && i < s->replicas; i++) {
        sim_replica *r = &s->replica[i];
        sm_free(r->ending);
        sm_free(r->due);
        sm_free(r->part);
        sm_free(r->crossing);
        sm_free(r->group);
        sim_radix_end(&r->tree);
        for (int rank = 0; rank < s->ranks; rank++) sim_backlog_end_all(&r->backlog[rank]);
        sim_places_end(r);
    }
    sim_pool_end(&s->pool);
    sm_free(s->replica);
    sm_free(s->load);
    sm_free(s->event);
    sm_free(s->later);
    if (s->curve) sim_curve_end(s->curve);
    sm_free(s->curve);
    sm_free(s->totals.times);
    sm_free(s->totals.of_class);
    sm_free(s->label);
    sm_free(s->end);
    sm_free(s);
}

sm_status sim_new(const sm_simulation *simulation, sm_simulation *own, const sm_watch *watch,
                  bool live, bool told, sim_simulation **out, sm_error *err) {
    static const sm_watch nobody = {NULL, NULL, NULL};
    sm_status status = sm_sized_take(own, sizeof *own, simulation, err);
    if (!status) status = check_options(own, err);
    if (status) return status;
    sim_simulation *s = sm_calloc(1, sizeof *s);
    if (!s) return sm_fail_memory(err);
    s->options = own;
    s->watch = watch ? watch : &nobody;
    s->err = err;
    s->live = live;
    s->rng.state = own->seed;
    status = begin(s, told);
    if (status) sim_free(s);
    else *out = s;
    return status;
}

sm_status sm_simulate(const sm_simulation *simulation, const sm_arrivals *arrivals,
                      const sm_watch *watch, sm_simulated *out, sm_error *err) {
    sm_simulation own;
    sim_simulation *s = NULL;
    if (out) memset(out, 0, sizeof *out);
    sm_status status = sim_new(simulation, &own, watch, false, out, &s, err);
    if (status) return status;
    s->arrivals = arrivals;
    status = run_all(s);
    if (!status && out) sim_totals_read(s, out);
    sim_free(s);
    return status;
}

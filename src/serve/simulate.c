/* The simulation of a fleet: arrivals, ends of runs and transfers in the order of their times.
 * Steps of continuous batching (Yu et al., "Orca", 2022) between two such events are one run, whose
 * time is summed in closed form. */
#include "simulation.h"
#include "scalemodel/load.h"

#include <assert.h>
#include <math.h>
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

void sm_simulation_follow(sm_simulation *simulation, const sm_software *software) {
    simulation->policy = software->mixed_steps ? SM_POLICY_CHUNKED : SM_POLICY_CONTINUOUS;
    simulation->most_batch = software->most_running;
    simulation->chunk_tokens = simulation->prefill_tokens = software->budget_tokens;
    simulation->admission_s = software->admission_s;
}

/* ---- the heap of replicas by the end of their run ---- */

static bool is_sooner(const sim_simulation *s, int a, int b) {
    double x = s->replica[a].run.end_s, y = s->replica[b].run.end_s;
    return x != y ? x < y : a < b;
}

static void put_event(sim_simulation *s, int at, int replica) {
    s->event[at] = replica;
    s->replica[replica].event_at = at;
}

void sim_event_changed(sim_simulation *s, const sim_replica *r) {
    int at = r->event_at, self = s->event[at];
    while (at > 0 && is_sooner(s, self, s->event[(at - 1) / 2])) {
        put_event(s, at, s->event[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (int child = 2 * at + 1; child < s->replicas; child = 2 * at + 1) {
        if (child + 1 < s->replicas && is_sooner(s, s->event[child + 1], s->event[child])) child++;
        if (!is_sooner(s, s->event[child], self)) break;
        put_event(s, at, s->event[child]);
        at = child;
    }
    put_event(s, at, self);
}

/* ---- into a replica ---- */

/* More that wait at a replica are packed. */
enum { MOST_WAITING = 512 };

/* A sequence that waits at a replica: an idle one begins, a running one may let it in after the
 * step of now, unless others wait before it. */
static sm_status queue_at(sim_simulation *s, int replica, int slot) {
    sim_replica *r = &s->replica[replica];
    sim_list_append(&s->pool, &r->waiting, slot);
    s->pool.slot[slot].replica = replica;
    s->load[replica]++;
    s->totals.waiting += 1.0;
    if (s->live) return SM_OK;
    if (isinf(r->run.end_s)) return sim_plan(s, r);
    bool first = r->waiting.n == 1 && r->running.n < s->most_batch;
    if (first && s->options->policy != SM_POLICY_STATIC && sim_has_room(s, r, slot))
        sim_shorten(s, r);
    return SM_OK;
}

/* ---- transfers from the prefill to the decode pool: a heap by time and slot ---- */

static bool lands_before(const sim_transfer *a, const sim_transfer *b) {
    return a->at_s != b->at_s ? a->at_s < b->at_s : a->slot < b->slot;
}

static sm_status add_transfer(sim_simulation *s, sim_transfer one) {
    void *heap = s->transfer;
    sm_status status =
        sim_reserve(&heap, s->transfers, &s->transfer_room, sizeof *s->transfer, s->err);
    s->transfer = heap;
    if (status) return status;
    int at = s->transfers++;
    for (; at > 0 && lands_before(&one, &s->transfer[(at - 1) / 2]); at = (at - 1) / 2)
        s->transfer[at] = s->transfer[(at - 1) / 2];
    s->transfer[at] = one;
    return SM_OK;
}

static int take_transfer(sim_simulation *s) {
    assert(s->transfers > 0);
    int slot = s->transfer[0].slot, at = 0, n = --s->transfers;
    sim_transfer last = s->transfer[n];
    for (int child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && lands_before(&s->transfer[child + 1], &s->transfer[child])) child++;
        if (!lands_before(&s->transfer[child], &last)) break;
        s->transfer[at] = s->transfer[child];
        at = child;
    }
    if (n > 0) s->transfer[at] = last;
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
    return add_transfer(s, (sim_transfer){r->link_free_s + e->transfer_latency_s, slot});
}

static sm_status land(sim_simulation *s) {
    int slot = take_transfer(s);
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

/* Clients think equally long: who ends first sends first. */
void sim_client_is_free(sim_simulation *s) {
    int64_t all = (int64_t)s->options->concurrency;
    if (!s->client) return;
    assert(s->clients < all);
    s->client[(s->first_client + s->clients++) % all] = s->totals.now_s + s->options->think_s;
}

static double take_client(sim_simulation *s) {
    double at_s = s->client[s->first_client];
    s->first_client = (s->first_client + 1) % (int64_t)s->options->concurrency;
    s->clients--;
    return at_s;
}

/* When the next request is in the queue. */
static double queued_s(const sim_simulation *s, const sm_request *request, bool more) {
    double at_s = !more            ? HUGE_VAL
                  : !s->client     ? request->arrival_s
                  : s->clients > 0 ? s->client[s->first_client]
                                   : HUGE_VAL;
    return at_s + s->options->admission_s;
}

sm_status sim_check_request(const sim_simulation *s, const sm_request *q, sm_error *err) {
    double number = s->totals.requests;
    if (!(q->arrival_s >= -MOST_SECONDS && q->arrival_s <= MOST_SECONDS))
        return sm_fail(err, SM_BAD_INPUT, "request %.0f arrives at %g s, which is no time", number,
                       q->arrival_s);
    if (!s->client && number > 0.0 && q->arrival_s < s->totals.last_arrival_s)
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

/* Too long for the memory of a replica even when alone. */
static bool can_never_fit(const sim_simulation *s, const sm_request *q) {
    int64_t pages = sim_pages_of(s, (int64_t)q->prompt + (int64_t)q->output - 1);
    if (pages > s->replica[0].capacity) return true;
    const sim_replica *entry = &s->replica[s->first_entry];
    return sim_pages_of(s, (int64_t)q->prompt) > entry->capacity;
}

sm_status sim_arrive(sim_simulation *s, const sm_request *request, double sent_s, int *slot) {
    sim_totals *t = &s->totals;
    uint64_t number = (uint64_t)t->requests;
    *slot = SIM_NONE;
    t->last_arrival_s = sent_s;
    t->requests += 1.0;
    if (can_never_fit(s, request)) {
        t->refused += 1.0;
        sim_client_is_free(s);
        return SM_OK;
    }
    t->area.in_system += t->now_s - sent_s;
    t->in_system += 1.0;
    int replica = sim_route(s, request);
    sim_replica *r = &s->replica[replica];
    sm_request sent = *request;
    sent.arrival_s = sent_s;
    if (!s->live && (r->backlog.n > 0 || r->waiting.n >= MOST_WAITING)) {
        s->load[replica]++;
        t->waiting += 1.0;
        return sim_backlog_put(&r->backlog, number, &sent, s->err);
    }
    sm_status status = sim_pool_take(&s->pool, &sent, number, slot, s->err);
    return status ? status : queue_at(s, replica, *slot);
}

sm_status sim_refill(sim_simulation *s, sim_replica *r) {
    sm_request request;
    uint64_t number;
    int slot;
    if (r->backlog.n == 0) return SM_OK;
    sim_backlog_take(&r->backlog, &number, &request);
    sm_status status = sim_pool_take(&s->pool, &request, number, &slot, s->err);
    if (status) return status;
    s->pool.slot[slot].replica = (int)(r - s->replica);
    sim_list_append(&s->pool, &r->waiting, slot);
    return SM_OK;
}

static sm_status arrive(sim_simulation *s, const sm_request *request) {
    sim_totals *t = &s->totals;
    double sent_s = s->client ? take_client(s) : request->arrival_s;
    int slot;
    if (t->requests == 0.0) t->now_s = t->first_s = t->sample_at_s = sent_s;
    sim_advance(t, sent_s + s->options->admission_s);
    return sim_arrive(s, request, sent_s, &slot);
}

static sm_status fetch(sim_simulation *s, sm_request *request, bool *more) {
    *request = (sm_request){.arrival_s = HUGE_VAL};
    int got = *more ? s->arrivals->next(s->arrivals->context, request, s->err) : 0;
    *more = got > 0;
    if (got < 0) return s->err && s->err->status ? s->err->status : SM_BAD_INPUT;
    if (got == 0) request->arrival_s = HUGE_VAL;
    return got > 0 ? sim_check_request(s, request, s->err) : SM_OK;
}

/* ---- the loop: of events at one time arrivals come first, then transfers ---- */

static sm_status run_all(sim_simulation *s) {
    sm_request request;
    bool more = true;
    sm_status status = fetch(s, &request, &more);
    while (status == SM_OK) {
        double transfer_s = s->transfers > 0 ? s->transfer[0].at_s : HUGE_VAL;
        double run_s = s->replica[s->event[0]].run.end_s;
        double other_s = fmin(transfer_s, run_s), queue_s = queued_s(s, &request, more);
        if (isinf(queue_s) && isinf(other_s)) break;
        if (queue_s > other_s) {
            sim_advance(&s->totals, fmin(transfer_s, run_s));
            status = transfer_s <= run_s ? land(s) : sim_complete(s, &s->replica[s->event[0]]);
        } else {
            status = arrive(s, &request);
            if (!status) status = fetch(s, &request, &more);
        }
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
    if (!is_within(o->page_tokens, 1.0, MOST_PAGE))
        return sm_fail(err, SM_BAD_INPUT, "a page has 1 to %d tokens", MOST_PAGE);
    if (!is_within(o->chunk_tokens, 1.0, SM_MAX_TOKENS) ||
        !is_within(o->prefill_tokens, 1.0, SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "a step takes 1 to %.0f tokens", SM_MAX_TOKENS);
    return SM_OK;
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
    r->waiting = r->running = (sim_list){SIM_NONE, SIM_NONE, 0};
    r->run.end_s = HUGE_VAL;
    r->event_at = s->event[i] = i;
    r->page_steps = (int64_t)fmax(1.0, floor((double)s->page / r->engine->tokens_per_step));
    r->crossing = sm_calloc((size_t)r->page_steps, sizeof *r->crossing);
    if (!r->crossing) return sm_fail_memory(s->err);
    sm_status status = sim_radix_begin(&r->tree, r->host, s->err);
    return status || !s->live ? status : sim_places_begin(s, r);
}

static sm_status begin(sim_simulation *s) {
    const sm_simulation *o = s->options;
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
    s->replica = sm_calloc((size_t)s->replicas, sizeof *s->replica);
    s->load = sm_calloc((size_t)s->replicas, sizeof *s->load);
    s->event = sm_calloc((size_t)s->replicas, sizeof *s->event);
    if (!s->replica || !s->load || !s->event) return sm_fail_memory(s->err);
    s->clients = (int64_t)o->concurrency; /* all may send at once, at 0 */
    if (s->clients > 0) s->client = sm_calloc((size_t)s->clients, sizeof *s->client);
    if (s->clients > 0 && !s->client) return sm_fail_memory(s->err);
    sm_status status = SM_OK;
    for (int i = 0; i < s->replicas && !status; i++) status = begin_replica(s, i);
    if (!status) sim_totals_begin(s);
    return status;
}

void sim_free(sim_simulation *s) {
    for (int i = 0; s->replica && i < s->replicas; i++) {
        sim_replica *r = &s->replica[i];
        sm_free(r->ending);
        sm_free(r->due);
        sm_free(r->part);
        sm_free(r->crossing);
        sim_radix_end(&r->tree);
        sim_backlog_end_all(&r->backlog);
        sim_places_end(r);
    }
    sim_pool_end(&s->pool);
    sm_free(s->replica);
    sm_free(s->load);
    sm_free(s->event);
    sm_free(s->transfer);
    sm_free(s->client);
    sm_free(s->label);
    sm_free(s->end);
    sm_free(s);
}

sm_status sim_new(const sm_simulation *simulation, sm_simulation *own, const sm_watch *watch,
                  bool live, sim_simulation **out, sm_error *err) {
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
    status = begin(s);
    if (status) sim_free(s);
    else *out = s;
    return status;
}

sm_status sm_simulate(const sm_simulation *simulation, const sm_arrivals *arrivals,
                      const sm_watch *watch, sm_simulated *out, sm_error *err) {
    sm_simulation own;
    sim_simulation *s = NULL;
    memset(out, 0, sizeof *out);
    sm_status status = sim_new(simulation, &own, watch, false, &s, err);
    if (status) return status;
    s->arrivals = arrivals;
    status = run_all(s);
    if (!status) sim_totals_read(s, out);
    sim_free(s);
    return status;
}

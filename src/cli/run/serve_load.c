/* serve_load: one thread for all clients. A request counts from when it should have been sent, so
 * that an engine that holds its clients up is not spared their wait (coordinated omission). */
#include "serve_engine.h"

#include <time.h>

/* ---- lists of requests ---- */

static sm_status add(serve_load_list *list, int *room, const sm_request *q, sm_arena *arena,
                     sm_error *err) {
    sm_request *all = sm_arena_grow(arena, list->request, (int)list->n, room, sizeof *all);
    if (!all) return sm_fail_memory(err);
    list->request = all;
    sm_request *to = &list->request[list->n++];
    *to = *q;
    to->kind = q->kind ? sm_arena_copy(arena, q->kind, strlen(q->kind)) : NULL;
    if (q->kind && !to->kind) return sm_fail_memory(err);
    if (q->blocks <= 0) return SM_OK;
    uint64_t *block = sm_arena_array(arena, (size_t)q->blocks, sizeof *block);
    if (!block) return sm_fail_memory(err);
    memcpy(block, q->block, (size_t)q->blocks * sizeof *block);
    to->block = block;
    return SM_OK;
}

sm_status serve_load_read(const sm_arrivals *arrivals, double most_tokens, sm_arena *arena,
                          serve_load_list *list, sm_error *err) {
    int room = 0;
    sm_status status = SM_OK;
    sm_request q;
    bool left_out = false; /* and with it the turns that follow */
    *list = (serve_load_list){.n = 0};
    while (!status) {
        q = (sm_request){.arrival_s = 0.0};
        int got = arrivals->next(arrivals->context, &q, err);
        if (got < 0) return err && err->status ? err->status : SM_BAD_INPUT;
        if (got == 0) break;
        if (list->n == SERVE_LOAD_MOST)
            return sm_fail(err, SM_BAD_INPUT, "more than %d requests are not sent in one run",
                           SERVE_LOAD_MOST);
        left_out = (left_out && q.follows) || q.prompt + q.output > most_tokens;
        if (left_out) list->refused++;
        else status = add(list, &room, &q, arena, err);
    }
    if (!status && !list->n)
        return sm_fail(err, SM_BAD_INPUT, "no request goes into %.0f tokens", most_tokens);
    return status;
}

static int next_again(void *context, sm_request *request, sm_error *err) {
    serve_load_cursor *c = context;
    (void)err;
    if (c->at == c->list->n) return 0;
    *request = c->list->request[c->at++];
    return 1;
}

sm_arrivals serve_load_again(serve_load_cursor *cursor) {
    return (sm_arrivals){cursor, next_again};
}

/* ---- clients ---- */

typedef struct client {
    struct serve_load *load;
    serve_request *q; /* NULL: none yet, or it is done with */
    size_t number;    /* of the request */
    bool ended;       /* under the desk's lock */
} client;

typedef struct load_turn {
    double at_s;
    size_t number;
} load_turn;

struct serve_load {
    sm_arena *arena; /* of all this */
    serve_load_job job;
    pthread_t thread;
    pthread_cond_t stirred; /* with the desk's lock */
    client *client;         /* of each request */
    size_t *order;          /* the requests in the order in which they were sent */
    size_t sent, flying, first_flying;
    size_t next;     /* the first request that no other comes before and that is not sent */
    load_turn *turn; /* those that are thought of */
    size_t turns, given_up;
    double begun_s, dropped;
    bool failed;    /* out of memory */
    size_t *last;   /* by conversation: the number behind its latest request; 0: none */
    size_t buckets; /* a power of two */
    double *free_s; /* closed loop: when clients may send again */
    size_t frees;
};

static void tell(void *context) {
    client *c = context;
    if (c->q && c->q->end == SERVE_GOES_ON) return;
    c->ended = true;
    pthread_cond_signal(&c->load->stirred);
}

static int32_t word_of(const serve_load *l, uint64_t id, uint64_t place) {
    sm_rng rng = {sm_hash_mixed(sm_hash_mixed(SM_HASH_SEED, id), place)};
    return (int32_t)sm_rng_below(&rng, l->job.words);
}

/* Where a conversation's latest request is kept. */
static size_t *last_of(serve_load *l, uint64_t conversation) {
    sm_rng rng = {conversation};
    for (size_t at = sm_rng_next(&rng) & (l->buckets - 1);; at = (at + 1) & (l->buckets - 1))
        if (!l->last[at] || l->job.list->request[l->last[at] - 1].conversation == conversation)
            return &l->last[at];
}

/* What the trace says is equal is, and nothing else: blocks, a shared prefix, the exchange so far.
 */
static void fill_prompt(serve_load *l, size_t number, int32_t *token, size_t n) {
    enum { OF_BLOCK = 1, OF_PREFIX = 2, OF_NONE = 3 };
    const sm_request *r = &l->job.list->request[number];
    size_t blocks = r->blocks > 0 ? (size_t)r->blocks : 0;
    for (size_t i = 0; i < n; i++) {
        size_t each = blocks ? (size_t)r->block_tokens : 1;
        if (i / each < blocks) token[i] = word_of(l, 4 * r->block[i / each] + OF_BLOCK, i % each);
        else if (r->prefix && (double)i < r->shared_prefix)
            token[i] = word_of(l, 4 * r->prefix + OF_PREFIX, i);
        else token[i] = word_of(l, 4 * (uint64_t)number + OF_NONE, i);
    }
    if (!r->conversation || blocks) return;
    size_t *last = last_of(l, r->conversation);
    const serve_request *before = *last ? l->client[*last - 1].q : NULL;
    size_t same = before ? before->prompt + before->made : 0;
    if (before) memcpy(token, before->token, (same < n ? same : n) * sizeof *token);
}

/* The one before it in its conversation is let go. */
static void remember(serve_load *l, size_t number) {
    uint64_t conversation = l->job.list->request[number].conversation;
    if (!conversation) return;
    size_t *last = last_of(l, conversation);
    client *before = *last ? &l->client[*last - 1] : NULL;
    *last = number + 1;
    if (!before || !before->q || !before->ended) return;
    serve_desk_leave(l->job.desk, before->q);
    before->q = NULL;
}

static bool has_turn(const serve_load *l, size_t number) {
    return number + 1 < l->job.list->n && l->job.list->request[number + 1].follows;
}

/* A request has ended, or was not taken: its next turn is thought of, or there will be none. */
static void go_on(serve_load *l, size_t number, double end_s, bool taken) {
    if (taken && has_turn(l, number)) {
        double at_s = end_s + l->job.list->request[number + 1].think_s;
        l->turn[l->turns++] = (load_turn){at_s, number + 1};
        return;
    }
    for (; has_turn(l, number); number++) {
        l->given_up++;
        l->dropped++;
    }
    if (l->job.concurrency > 0) l->free_s[l->frees++] = end_s + l->job.think_s;
}

/* false: nothing more can be sent. */
static bool send_one(serve_load *l, size_t number, double at_s) {
    const sm_request *r = &l->job.list->request[number];
    size_t n = (size_t)r->prompt, most = (size_t)r->output;
    serve_request *q = NULL;
    int32_t *token = sm_calloc(n, sizeof *token);
    client *c = &l->client[number];
    if (token) fill_prompt(l, number, token, n);
    sm_status status = token ? serve_request_new(token, n, most, &q, NULL) : SM_INTERNAL;
    sm_free(token);
    l->failed = status != SM_OK;
    if (status) return false;
    q->words = l->job.words;
    q->kind = r->kind;
    q->temperature = l->job.temperature;
    q->seed = number;
    q->tell = tell;
    q->context = c;
    *c = (client){.load = l, .q = q, .number = number};
    serve_put put = serve_desk_put(l->job.desk, q, at_s);
    if (put != SERVE_TAKEN) {
        c->q = NULL;
        serve_request_free(q);
    }
    if (put == SERVE_CLOSED) return false;
    if (put == SERVE_TAKEN) {
        l->flying++;
        remember(l, number);
    } else {
        l->dropped++;
        go_on(l, number, at_s, false);
    }
    l->order[l->sent++] = number;
    return true;
}

/* Those that have ended; of a conversation the latest stays, since the next begins with it. */
static void let_go(serve_load *l) {
    for (size_t i = l->first_flying; i < l->sent; i++) {
        size_t number = l->order[i];
        client *c = &l->client[number];
        pthread_mutex_lock(&l->job.desk->lock);
        bool ended = c->q && c->ended && c->number != SIZE_MAX;
        double end_s = ended ? c->q->end_s : 0;
        pthread_mutex_unlock(&l->job.desk->lock);
        if (!ended) continue;
        l->flying--;
        go_on(l, number, end_s, true);
        uint64_t conversation = l->job.list->request[number].conversation;
        bool stays = conversation && *last_of(l, conversation) == number + 1;
        c->number = SIZE_MAX; /* counted */
        if (stays) continue;
        serve_desk_leave(l->job.desk, c->q);
        c->q = NULL;
    }
    for (; l->first_flying < l->sent; l->first_flying++) {
        const client *c = &l->client[l->order[l->first_flying]];
        if (c->q && c->number != SIZE_MAX) return;
    }
}

/* When the next that follows none is due; 0: when another has ended. */
static double first_due_s(serve_load *l) {
    const serve_load_list *list = l->job.list;
    while (l->next < list->n && list->request[l->next].follows) l->next++;
    if (l->next == list->n) return 0;
    if (l->job.concurrency > 0) {
        double soonest = 0;
        for (size_t i = 0; i < l->frees; i++)
            if (i == 0 || l->free_s[i] < soonest) soonest = l->free_s[i];
        return soonest;
    }
    return l->begun_s + list->request[l->next].arrival_s - list->request[0].arrival_s;
}

/* The same of all; *turn: which of the turns it is, SIZE_MAX: none. */
static double due_s(serve_load *l, size_t *turn) {
    double soonest = first_due_s(l);
    *turn = SIZE_MAX;
    for (size_t i = 0; i < l->turns; i++)
        if (soonest <= 0 || l->turn[i].at_s < soonest) {
            soonest = l->turn[i].at_s;
            *turn = i;
        }
    return soonest;
}

static void take_free(serve_load *l, double at_s) {
    for (size_t i = 0; l->job.concurrency > 0 && i < l->frees; i++)
        if (l->free_s[i] == at_s) {
            l->free_s[i] = l->free_s[--l->frees];
            return;
        }
}

/* The request that is due. */
static size_t take(serve_load *l, double at_s, size_t turn) {
    if (turn == SIZE_MAX) {
        take_free(l, at_s);
        return l->next++;
    }
    size_t number = l->turn[turn].number;
    l->turn[turn] = l->turn[--l->turns];
    return number;
}

/* Until then, or until a request has ended. */
static void wait_until(serve_load *l, double at_s) {
    serve_desk *desk = l->job.desk;
    double left_s = at_s > 0 ? at_s - sm_clock_s() : 3600;
    struct timespec then;
    if (left_s <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &then);
    double nanoseconds = (double)then.tv_nsec + (left_s - (double)(time_t)left_s) * 1e9;
    then.tv_sec += (time_t)left_s + (nanoseconds >= 1e9);
    then.tv_nsec = (long)(nanoseconds >= 1e9 ? nanoseconds - 1e9 : nanoseconds);
    pthread_mutex_lock(&desk->lock);
    bool ended = false;
    for (size_t i = l->first_flying; i < l->sent; i++) {
        const client *c = &l->client[l->order[i]];
        ended = ended || (c->q && c->ended && c->number != SIZE_MAX);
    }
    if (!ended && !(desk->aborted && !l->flying))
        pthread_cond_timedwait(&l->stirred, &desk->lock, &then);
    pthread_mutex_unlock(&desk->lock);
}

static void *ask_all(void *context) {
    serve_load *l = context;
    size_t n = l->job.list->n;
    bool goes_on = true;
    l->begun_s = sm_clock_s();
    while (l->frees < (size_t)l->job.concurrency) l->free_s[l->frees++] = l->begun_s;
    while ((goes_on && l->sent + l->given_up < n) || l->flying) {
        let_go(l);
        size_t turn;
        bool more = goes_on && l->sent + l->given_up < n;
        double at_s = more ? due_s(l, &turn) : 0;
        if (more && at_s > 0 && at_s <= sm_clock_s()) {
            goes_on = send_one(l, take(l, at_s, turn), at_s);
        } else if (more || l->flying) {
            wait_until(l, at_s);
        }
    }
    serve_desk_close(l->job.desk, false);
    return NULL;
}

/* ---- begin and end ---- */

static void free_load(serve_load *l) {
    for (size_t i = 0; l->client && l->order && i < l->sent; i++)
        if (l->client[l->order[i]].q) serve_desk_leave(l->job.desk, l->client[l->order[i]].q);
    sm_arena_free(l->arena);
}

sm_status serve_load_begin(const serve_load_job *job, serve_load **out, sm_error *err) {
    pthread_condattr_t attributes;
    size_t n = job->list->n;
    *out = NULL;
    sm_arena *arena = sm_arena_new();
    serve_load *l = sm_arena_alloc(arena, sizeof *l);
    if (!l) {
        sm_arena_free(arena);
        return sm_fail_memory(err);
    }
    l->arena = arena;
    l->job = *job;
    l->buckets = 2;
    while (l->buckets < 2 * n) l->buckets *= 2;
    l->client = sm_arena_array(arena, n, sizeof *l->client);
    l->order = sm_arena_array(arena, n, sizeof *l->order);
    l->turn = sm_arena_array(arena, n, sizeof *l->turn);
    l->last = sm_arena_array(arena, l->buckets, sizeof *l->last);
    l->free_s = sm_arena_array(arena, (size_t)job->concurrency + 1, sizeof *l->free_s);
    bool ready = l->client && l->order && l->turn && l->last && l->free_s &&
                 pthread_condattr_init(&attributes) == 0;
    if (ready) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        ready = pthread_cond_init(&l->stirred, &attributes) == 0;
        pthread_condattr_destroy(&attributes);
    }
    if (ready && pthread_create(&l->thread, NULL, ask_all, l) != 0) {
        pthread_cond_destroy(&l->stirred);
        ready = false;
    }
    if (!ready) {
        free_load(l);
        return sm_fail_memory(err);
    }
    *out = l;
    return SM_OK;
}

sm_status serve_load_end(serve_load *load, double *dropped, sm_error *err) {
    if (!load) return SM_OK;
    pthread_join(load->thread, NULL);
    *dropped = load->dropped;
    bool failed = load->failed;
    pthread_cond_destroy(&load->stirred);
    free_load(load);
    return failed ? sm_fail_memory(err) : SM_OK;
}

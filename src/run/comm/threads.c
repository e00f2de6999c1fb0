/* Ranks as threads of one process. A group shares one place where each rank shows its buffer; a
 * collective is: show, wait for all, copy or add from the others, wait for all. Sends and receives
 * meet in a list of the group. A rank that fails or ends early wakes all that wait for it. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "memory_account.h"

typedef struct world {
    pthread_mutex_t lock; /* of everything below, and of all groups */
    int ranks;
    bool *ended; /* of each rank */
    bool broken;
    sm_status status; /* of the first that broke it */
    char sentence[200];
    struct group *groups; /* all there are */
} world;

typedef struct message {
    int from, to, tag;
    size_t bytes;
    const void *data;
    bool copying, taken; /* by the receiver */
    struct message *next;
} message;

typedef struct group {
    world *world;
    pthread_cond_t changed; /* what its own ranks wait for: those of other groups sleep on */
    int size, users;        /* ranks that hold it */
    int arrived;            /* at the barrier */
    atomic_int turn;        /* of the barrier: read without the lock too */
    int reading;            /* ranks that look at what others show */
    const void **shown;
    int *rank;           /* of each member, in the world */
    struct group **made; /* of a split: the group of each rank */
    message *first;      /* sends that wait, in order */
    struct group *next;
} group;

typedef struct member {
    sm_communicator c; /* first: freed as one */
    group *group;
} member;

static group *group_of(const sm_communicator *c) {
    return ((const member *)(const void *)c)->group;
}

/* ---- waiting ---- */

static sm_status broken(const world *w, sm_error *err) {
    return sm_fail(err, w->status, "%s", w->sentence);
}

static void wake_all(const world *w) {
    for (group *g = w->groups; g; g = g->next) pthread_cond_broadcast(&g->changed);
}

static void break_world(world *w, sm_status status, const char *sentence) {
    if (!w->broken) {
        snprintf(w->sentence, sizeof w->sentence, "%.199s", sentence);
        w->status = status;
    }
    w->broken = true;
    wake_all(w);
}

static const char left_alone[] = "a rank has ended while others wait for it";

static bool one_has_ended(const group *g) {
    for (int i = 0; i < g->size; i++)
        if (g->world->ended[g->rank[i]]) return true;
    return false;
}

/* A rank that waits lets the others go on a few times before it sleeps: of small messages they are
 * there by then, and to be woken takes several times as long. */
enum { YIELDS = 20 };

static bool turned(group *g, int turn) {
    for (int i = 0; i < YIELDS; i++) {
        if (atomic_load(&g->turn) != turn) return true;
        sched_yield();
    }
    return false;
}

/* Called with the lock held, which it gives back. The last to arrive starts the next turn, in which
 * `readers` look at what is shown. Ranks that have ended never arrive, and none in a broken world:
 * who has left it may have freed what it showed. */
static sm_status arrive(group *g, int readers, sm_error *err) {
    world *w = g->world;
    int turn = atomic_load(&g->turn);
    bool last = !w->broken && ++g->arrived == g->size;
    if (last) {
        g->arrived = 0;
        g->reading = readers;
        atomic_store(&g->turn, turn + 1);
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (last || turned(g, turn)) return SM_OK;
    pthread_mutex_lock(&w->lock);
    while (atomic_load(&g->turn) == turn && !w->broken) {
        if (one_has_ended(g)) break_world(w, SM_INTERNAL, left_alone);
        else pthread_cond_wait(&g->changed, &w->lock);
    }
    bool leaves = atomic_load(&g->turn) == turn;
    /* what a rank has shown may not go away while another looks at it */
    while (leaves && g->reading) pthread_cond_wait(&g->changed, &w->lock);
    sm_status status = leaves ? broken(w, err) : SM_OK;
    pthread_mutex_unlock(&w->lock);
    return status;
}

static sm_status meet(group *g, sm_error *err) {
    if (g->size == 1) return SM_OK;
    pthread_mutex_lock(&g->world->lock);
    return arrive(g, 0, err);
}

/* Show this rank's buffer and begin to look at those of the others; part() must follow. */
static sm_status show(sm_communicator *c, const void *data, sm_error *err) {
    group *g = group_of(c);
    g->shown[c->rank] = data;
    if (g->size == 1) return SM_OK;
    pthread_mutex_lock(&g->world->lock);
    return arrive(g, g->size, err);
}

/* Done with looking: wait for all. */
static sm_status part(group *g, sm_error *err) {
    if (g->size == 1) return SM_OK;
    pthread_mutex_lock(&g->world->lock);
    g->reading--;
    if (g->world->broken) pthread_cond_broadcast(&g->changed);
    return arrive(g, 0, err);
}

/* ---- collectives ---- */

static void *at(void *base, size_t offset) { return (char *)base + offset; }
static const void *in(const void *base, size_t offset) { return (const char *)base + offset; }

/* `bytes` of what each rank shows, from `offset` on. */
static void copy_from_each(const group *g, size_t offset, size_t bytes, void *recv) {
    for (int i = 0; i < g->size; i++)
        memcpy(at(recv, (size_t)i * bytes), in(g->shown[i], offset), bytes);
}

/* Always added in order of rank. */
static void add_all(const group *g, size_t offset, size_t count, sm_element element, void *to) {
    memcpy(to, in(g->shown[0], offset), count * sm_element_bytes(element));
    for (int i = 1; i < g->size; i++) sm_elements_add(to, in(g->shown[i], offset), count, element);
}

/* Each rank adds its share, then all copy all shares. Little is one share, which each adds for
 * itself: it waits for the others half as often. */
enum { LITTLE = 16384 };
static sm_status all_reduce(sm_communicator *c, void *in_place, size_t count, sm_element element,
                            sm_error *err) {
    group *g = group_of(c);
    size_t width = sm_element_bytes(element), n = count * width > LITTLE ? (size_t)c->size : 1;
    size_t own = n > 1 ? (size_t)c->rank : 0, from = count * own / n, to = count * (own + 1) / n;
    void *mine = memory_new((to - from) * width + 1);
    if (!mine) return sm_fail_memory(err);
    sm_status status = show(c, in_place, err);
    if (!status && to > from) add_all(g, from * width, to - from, element, mine);
    if (!status) status = part(g, err);
    if (!status && n > 1) status = show(c, mine, err);
    for (size_t i = 0; !status && i < n; i++) {
        size_t first = count * i / n, bytes = (count * (i + 1) / n - first) * width;
        if (bytes) memcpy(at(in_place, first * width), n > 1 ? g->shown[i] : mine, bytes);
    }
    if (!status && n > 1) status = part(g, err);
    memory_free(mine);
    return status;
}

static sm_status collective(sm_communicator *c, const sm_run_call *r, sm_error *err) {
    const group *g = group_of(c);
    size_t bytes = r->n * sm_element_bytes(r->element), own = (size_t)c->rank * bytes;
    if (r->op == SM_ALL_REDUCE) return all_reduce(c, r->recv, r->n, r->element, err);
    sm_status status = show(c, r->send, err);
    if (status) return status;
    bool root = c->rank == r->root, scatters = r->op == SM_REDUCE_SCATTER;
    if (bytes && r->op == SM_ALL_GATHER) copy_from_each(g, 0, bytes, r->recv);
    if (bytes && r->op == SM_ALL_TO_ALL) copy_from_each(g, own, bytes, r->recv);
    if (bytes && r->op == SM_BROADCAST && !root) memcpy(r->recv, g->shown[r->root], bytes);
    if (bytes && (scatters || (r->op == SM_REDUCE && root)))
        add_all(g, scatters ? own : 0, r->n, r->element, r->recv);
    return part(group_of(c), err);
}

static sm_status barrier(sm_communicator *c, sm_error *err) { return meet(group_of(c), err); }

/* ---- sends and receives ---- */

enum { MESSAGE, BUFFER, BYTES, FROM_TAG };

static sm_status start_send(sm_communicator *c, const void *send, size_t bytes, int to, int tag,
                            sm_request_handle *handle, sm_error *err) {
    group *g = group_of(c);
    assert(to >= 0 && to < c->size);
    message *m = sm_calloc(1, sizeof *m);
    if (!m) return sm_fail_memory(err);
    *m = (message){.from = c->rank, .to = to, .tag = tag, .bytes = bytes, .data = send};
    pthread_mutex_lock(&g->world->lock);
    message **last = &g->first;
    while (*last) last = &(*last)->next;
    *last = m;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->world->lock);
    handle->state[MESSAGE] = m;
    return SM_OK;
}

static sm_status start_receive(sm_communicator *c, void *recv, size_t bytes, int from, int tag,
                               sm_request_handle *handle, sm_error *err) {
    (void)c;
    (void)err;
    assert(from >= 0 && from < c->size && tag >= 0 && tag < 1 << 16);
    handle->state[MESSAGE] = NULL;
    handle->state[BUFFER] = recv;
    handle->state[BYTES] = (void *)(uintptr_t)bytes;
    handle->state[FROM_TAG] = (void *)((uintptr_t)from << 16 | (uintptr_t)tag);
    return SM_OK;
}

static message *find(group *g, int from, int to, int tag) {
    for (message *m = g->first; m; m = m->next)
        if (m->from == from && m->to == to && m->tag == tag && !m->copying && !m->taken) return m;
    return NULL;
}

/* Without the lock, so that others go on; the sender waits. */
static void copy_message(world *w, message *m, void *to) {
    m->copying = true;
    pthread_mutex_unlock(&w->lock);
    if (m->bytes) memcpy(to, m->data, m->bytes);
    pthread_mutex_lock(&w->lock);
    m->copying = false;
}

/* What has come is taken while its receiver computes, so that no sender waits for that. A message
 * of another size is left for the wait, which names it. */
static const message arrived = {.taken = true};

static void poke(sm_communicator *c, sm_request_handle *h) {
    group *g = group_of(c);
    world *w = g->world;
    uintptr_t key = (uintptr_t)h->state[FROM_TAG];
    if (h->state[MESSAGE]) return; /* a send, or a receive that is done */
    pthread_mutex_lock(&w->lock);
    message *m = find(g, (int)(key >> 16), c->rank, (int)(key & 0xffff));
    if (m && m->bytes == (uintptr_t)h->state[BYTES]) {
        copy_message(w, m, h->state[BUFFER]);
        m->taken = true;
        h->state[MESSAGE] = (void *)(uintptr_t)&arrived;
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&w->lock);
}

static sm_status wait_receive(sm_communicator *c, sm_request_handle *h, sm_error *err) {
    group *g = group_of(c);
    world *w = g->world;
    uintptr_t key = (uintptr_t)h->state[FROM_TAG];
    size_t bytes = (uintptr_t)h->state[BYTES];
    sm_status status = SM_OK;
    message *m;
    pthread_mutex_lock(&w->lock);
    while (!(m = find(g, (int)(key >> 16), c->rank, (int)(key & 0xffff))) && !w->broken) {
        if (w->ended[g->rank[key >> 16]]) break_world(w, SM_INTERNAL, left_alone);
        else pthread_cond_wait(&g->changed, &w->lock);
    }
    if (!m) status = broken(w, err);
    else if (m->bytes != bytes)
        status = sm_fail(err, SM_INTERNAL, "rank %d sends %zu bytes and rank %d expects %zu",
                         m->from, m->bytes, c->rank, bytes);
    else copy_message(w, m, h->state[BUFFER]);
    if (m) m->taken = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static void unlink_message(group *g, message *m) {
    message **at_link = &g->first;
    while (*at_link && *at_link != m) at_link = &(*at_link)->next;
    if (*at_link) *at_link = m->next;
    sm_free(m);
}

static sm_status wait_send(sm_communicator *c, message *m, sm_error *err) {
    group *g = group_of(c);
    world *w = g->world;
    pthread_mutex_lock(&w->lock);
    while (!m->taken && (m->copying || !w->broken)) {
        if (!m->copying && w->ended[g->rank[m->to]]) break_world(w, SM_INTERNAL, left_alone);
        else pthread_cond_wait(&g->changed, &w->lock);
    }
    sm_status status = m->taken ? SM_OK : broken(w, err);
    unlink_message(g, m);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static void cancel(sm_communicator *c, sm_request_handle *handle) {
    group *g = group_of(c);
    message *m = handle->state[MESSAGE];
    if (!m || m == &arrived) return;
    pthread_mutex_lock(&g->world->lock);
    while (m->copying) pthread_cond_wait(&g->changed, &g->world->lock);
    unlink_message(g, m);
    pthread_mutex_unlock(&g->world->lock);
}

static bool is_done(sm_communicator *c, sm_request_handle *handle) {
    world *w = group_of(c)->world;
    const message *m = handle->state[MESSAGE];
    const int from = (int)((uintptr_t)handle->state[FROM_TAG] >> 16);
    pthread_mutex_lock(&w->lock); /* what will never come need not be waited for */
    bool done = m ? m->taken : w->broken || w->ended[group_of(c)->rank[from]];
    pthread_mutex_unlock(&w->lock);
    return done;
}

static sm_status wait_for(sm_communicator *c, sm_request_handle *handle, sm_error *err) {
    message *m = handle->state[MESSAGE];
    if (m == &arrived) return SM_OK;
    return m ? wait_send(c, m, err) : wait_receive(c, handle, err);
}

/* ---- groups ---- */

static void free_group(group *g) {
    while (g->first) unlink_message(g, g->first);
    pthread_cond_destroy(&g->changed);
    sm_free(g->shown);
    sm_free(g->made);
    sm_free(g->rank);
    sm_free(g);
}

static void release(group *g) {
    world *w = g->world;
    pthread_mutex_lock(&w->lock);
    bool last = --g->users == 0;
    group **link = &w->groups;
    while (last && *link != g) link = &(*link)->next;
    if (last) *link = g->next;
    pthread_mutex_unlock(&w->lock);
    if (last) free_group(g);
}

static void free_member(sm_communicator *c) {
    release(group_of(c));
    sm_free(c);
}

static group *new_group(world *w, int size) {
    group *g = sm_calloc(1, sizeof *g);
    if (!g) return NULL;
    assert(size >= 1 && size <= w->ranks);
    *g = (group){.world = w, .size = size, .users = size};
    pthread_cond_init(&g->changed, NULL);
    g->shown = sm_calloc((size_t)size, sizeof *g->shown);
    g->made = sm_calloc((size_t)size, sizeof *g->made);
    g->rank = sm_calloc((size_t)size, sizeof *g->rank);
    if (!g->shown || !g->made || !g->rank) {
        free_group(g);
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    g->next = w->groups;
    w->groups = g;
    pthread_mutex_unlock(&w->lock);
    return g;
}

static void abort_all(sm_communicator *c, const char *sentence) {
    world *w = group_of(c)->world;
    pthread_mutex_lock(&w->lock);
    break_world(w, SM_INTERNAL, sentence);
    pthread_mutex_unlock(&w->lock);
}

static sm_status split(sm_communicator *c, int colour, int key, sm_communicator **out,
                       sm_error *err);
#define BACKEND(label, ends)                                                                       \
    {                                                                                              \
        .name = label, .collective = collective, .start_send = start_send,                         \
        .start_receive = start_receive, .wait = wait_for, .poke = poke, .cancel = cancel,          \
        .done = is_done, .barrier = barrier, .split = split, .free = ends, .abort = abort_all      \
    }
static const sm_backend threads_backend = BACKEND("threads", free_member),
                        self_backend = BACKEND("self", free_member);

static sm_communicator *new_member(const sm_backend *backend, group *g, int rank, bool debug) {
    member *m = sm_calloc(1, sizeof *m);
    if (!m) return NULL;
    m->c = (sm_communicator){.backend = backend, .rank = rank, .size = g->size, .debug = debug};
    m->group = g;
    m->c.state = g;
    return &m->c;
}

typedef struct place {
    int colour, key;
} place;

/* Its number among those of its colour. */
static int rank_among(const place *all, int n, int who) {
    int rank = 0;
    for (int i = 0; i < n; i++) {
        bool before = all[i].key < all[who].key || (all[i].key == all[who].key && i < who);
        rank += all[i].colour == all[who].colour && i != who && before;
    }
    return rank;
}

static sm_status split(sm_communicator *c, int colour, int key, sm_communicator **out,
                       sm_error *err) {
    group *g = group_of(c);
    place mine = {colour, key};
    place *all = sm_calloc((size_t)c->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    const sm_run_call gather = {SM_ALL_GATHER, &mine, all, sizeof mine, SM_ELEMENT_S8, 0};
    sm_status status = collective(c, &gather, err);
    int first = 0; /* of this colour */
    while (!status && all[first].colour != colour) first++;
    int rank = status ? 0 : rank_among(all, c->size, c->rank);
    /* Made by the lowest rank of a colour, for all of it. */
    if (!status && first == c->rank) {
        int size = 0;
        for (int i = 0; i < g->size; i++) size += all[i].colour == all[first].colour;
        group *made = new_group(g->world, size);
        for (int i = 0; made && i < g->size; i++)
            if (all[i].colour == all[first].colour)
                made->rank[rank_among(all, g->size, i)] = g->rank[i];
        g->made[first] = made;
    }
    sm_free(all);
    if (!status) status = meet(g, err);
    if (status) return status;
    group *made = g->made[first];
    bool alone = g->world->ranks == 1;
    const sm_backend *backend = alone ? &self_backend : &threads_backend;
    *out = made ? new_member(backend, made, rank, c->debug) : NULL;
    status = meet(g, err);
    if (!*out) return sm_fail_memory(err);
    if (!status) return SM_OK;
    free_member(*out);
    *out = NULL;
    return status;
}

/* ---- starting ---- */

typedef struct start {
    pthread_t thread;
    sm_communicator *c;
    world *world;
    sm_rank_body body;
    void *context;
    sm_status status;
    sm_error error;
} start;

static void *run_rank(void *argument) {
    start *s = argument;
    s->status = s->body(s->c, s->context, &s->error);
    pthread_mutex_lock(&s->world->lock);
    s->world->ended[s->c->rank] = true;
    if (s->status)
        break_world(s->world, s->status,
                    s->error.sentence[0] ? s->error.sentence : "a rank has failed");
    wake_all(s->world);
    pthread_mutex_unlock(&s->world->lock);
    return NULL;
}

/* The error of the rank that failed first: the one whose sentence the world kept. */
static sm_status first_error(const start *all, int n, const world *w, sm_error *err) {
    const start *found = NULL;
    for (int i = 0; i < n; i++) {
        if (!all[i].status) continue;
        bool first = strncmp(all[i].error.sentence, w->sentence, sizeof w->sentence - 1) == 0;
        if (!found || first) found = &all[i];
        if (first) break;
    }
    if (!found) return SM_OK;
    if (err) *err = found->error;
    return found->status;
}

static sm_status run_group(world *w, const sm_backend *backend, int ranks, sm_rank_body body,
                           void *context, sm_error *err) {
    start *all = sm_calloc((size_t)ranks, sizeof *all);
    group *g = all ? new_group(w, ranks) : NULL;
    bool ready = g != NULL;
    for (int i = 0; ready && i < ranks; i++) {
        g->rank[i] = i;
        all[i] = (start){.world = w, .body = body, .context = context};
        all[i].c = new_member(backend, g, i, false);
        ready = all[i].c != NULL;
    }
    int started = 0;
    while (ready && started < ranks &&
           pthread_create(&all[started].thread, NULL, run_rank, &all[started]) == 0)
        started++;
    if (ready && started < ranks) {
        pthread_mutex_lock(&w->lock);
        break_world(w, SM_IO, "the system refused to start a thread");
        pthread_mutex_unlock(&w->lock);
    }
    for (int i = 0; i < started; i++) pthread_join(all[i].thread, NULL);
    sm_status status = !ready ? sm_fail_memory(err) : first_error(all, ranks, w, err);
    if (ready && started < ranks && !status) status = sm_fail(err, SM_IO, "%s", w->sentence);
    for (int i = 0; all && i < ranks; i++) sm_free(all[i].c);
    while (w->groups) { /* those that some rank never took hold of, because it failed */
        group *left = w->groups;
        w->groups = left->next;
        free_group(left);
    }
    sm_free(all);
    return status;
}

sm_status sm_run_threads(int ranks, sm_rank_body body, void *context, sm_error *err) {
    if (ranks < 1) return sm_fail(err, SM_BAD_INPUT, "expected at least one rank");
    world w = {.ranks = ranks, .ended = sm_calloc((size_t)ranks, sizeof *w.ended)};
    if (!w.ended) return sm_fail_memory(err);
    pthread_mutex_init(&w.lock, NULL);
    sm_status status = run_group(&w, &threads_backend, ranks, body, context, err);
    pthread_mutex_destroy(&w.lock);
    sm_free(w.ended);
    return status;
}

/* ---- one process ---- */

typedef struct alone {
    member m; /* first */
    world world;
    bool ended;
} alone;

static void free_alone(sm_communicator *c) {
    alone *a = (alone *)(void *)c;
    group *g = a->m.group;
    release(g);
    pthread_mutex_destroy(&a->world.lock);
    sm_free(a);
}

sm_status sm_communicator_self(sm_communicator **out, sm_error *err) {
    static const sm_backend root = BACKEND("self", free_alone);
    alone *a = sm_calloc(1, sizeof *a);
    if (!a) return sm_fail_memory(err);
    pthread_mutex_init(&a->world.lock, NULL);
    a->world.ranks = 1;
    a->world.ended = &a->ended;
    a->m.group = new_group(&a->world, 1);
    if (!a->m.group) {
        sm_free(a);
        return sm_fail_memory(err);
    }
    a->m.c = (sm_communicator){.backend = &root, .rank = 0, .size = 1, .state = a->m.group};
    *out = &a->m.c;
    return SM_OK;
}

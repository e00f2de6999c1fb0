/* simulation: the state of a simulated fleet. Sequences live in slots that are used again, so that
 * memory follows what is in the system and not the length of the trace. Private to src/serve. */
#pragma once
#include "backlog.h"
#include "percentiles.h"
#include "prefix_curve.h"

enum { SIM_NONE = -1 };

/* Many steps of an engine at once: within a run the tokens of the caches grow by the same number
 * each step, so that the seconds of k steps are a sum over a line. */
typedef struct sim_path {
    const sm_engine *engine;
    double n, cached, cached_growth;           /* a step */
    double prefill, attended, attended_growth; /* a step */
    double first_s;                            /* of the first step; not known: 0 */
    double begin_s;                            /* that it takes longer, of those that begin in it */
} sim_path;

/* ---- sequences (decoding.c) ---- */
typedef struct sim_sequence {
    uint64_t number;
    double arrival_s, queued_s, start_s, first_token_s;
    int64_t prompt, output;
    int64_t done;        /* tokens of the output so far */
    int64_t length;      /* tokens in its cache; of a decoding one: at `joined` */
    int64_t target;      /* tokens that its prefill brings to the cache */
    int64_t cached;      /* of the prompt, found in the prefix cache when it first started */
    int64_t prefilled;   /* tokens that went through prefill for it */
    int64_t shared, own; /* pages: of the prefix cache, and its own; at `joined` when decoding */
    int64_t joined, finish, first_page; /* decode steps of the replica: when it joined, when it will
                                           have ended, when it first needs another page */
    int pinned;                         /* node of the prefix cache */
    int next, previous;                 /* in the list that it is in */
    int replica, preemptions;
    bool started, decoding;
    bool ready;      /* its cache needs no prefill: transferred, or swapped out */
    int64_t swapped; /* pages in host memory */
    uint64_t prefix, conversation;
    int64_t shared_prefix, block_tokens;
    uint64_t *block; /* a copy */
    int blocks;
    size_t block_room;
    int32_t *place; /* of its pages in memory, in order, where they have places */
    int64_t places;
    int seat;       /* among the running of its replica */
    bool sent;      /* by its client */
    int kind;       /* its class */
    int group;      /* of chips, that it is on */
    int turn;       /* of its conversation: that which follows it, SIM_NONE: none */
    double think_s; /* of a turn that follows: from the end of the one before to this */
} sim_sequence;

typedef struct sim_list { /* of slots */
    int first, last, n;
} sim_list;
typedef struct sim_pool {
    sim_sequence *slot;
    int n, free;
    size_t room;
} sim_pool;
/* A slot for a request. Its number, class and next turn are the caller's to fill. */
sm_status sim_pool_take(sim_pool *pool, const sm_request *request, int *slot, sm_error *err);
void sim_pool_give(sim_pool *pool, int slot);
void sim_pool_end(sim_pool *pool);
void sim_list_append(sim_pool *pool, sim_list *list, int slot);
void sim_list_prepend(sim_pool *pool, sim_list *list, int slot);
void sim_list_remove(sim_pool *pool, sim_list *list, int slot);

/* ---- replicas ---- */
typedef enum sim_role { SIM_WHOLE, SIM_PREFILL_POOL, SIM_DECODE_POOL } sim_role;
typedef struct sim_part { /* of a prompt that a step takes */
    int slot;
    int64_t tokens;
} sim_part;
typedef struct sim_ending { /* a decoding sequence, by what orders them */
    int64_t finish;
    uint64_t number;
    int slot;
} sim_ending;
typedef struct sim_run {
    double start_s, delay_s;      /* delay: swaps and loads from the host before the first step */
    double steps, seconds, end_s; /* seconds: of all as planned; end: HUGE_VAL when idle */
    sim_path path;
    bool may_shorten; /* an arrival may want to come in before its end */
} sim_run;
typedef struct sim_group {
    int requests, waiting; /* on it, and those of them that wait */
    int64_t taken;         /* tokens of its prompts that went in now */
} sim_group;
typedef struct sim_replica {
    const sm_engine *engine;
    sim_role role;
    int64_t capacity, used; /* pages; used: the sequences' own */
    int64_t host, swapped;  /* pages of host memory, and those that swapped sequences hold */
    sim_radix tree;
    sim_list waiting[SM_MOST_CLASSES]; /* by rank: who is first of the first that is not empty goes
                                          in next */
    sim_list running;
    sim_backlog backlog[SM_MOST_CLASSES]; /* they wait behind `waiting`, which then is not short */
    sim_ending *ending;                   /* heap of the decoding by (finish, number) */
    int decoding;
    size_t ending_room, part_room;
    int *due; /* ring of those whose prefill is not done: chunked */
    int due_first, dues, due_room;
    sim_part *part;
    int parts;
    int64_t counter;   /* decode steps so far */
    int64_t looked;    /* of these, when new requests were last looked for, */
    double looked_s;   /* and that moment: later ones are not known */
    sim_group *group;  /* of chips, that wait for one another; NULL: none does */
    int64_t held;      /* decode steps until those that wait are looked at again; 0: who has room */
    double cached;     /* tokens of the decoding */
    int64_t *crossing; /* decoding sequences that need a page at step i modulo page_steps */
    int64_t page_steps;
    int64_t padded; /* static: the size of the batch, the ended included; their tokens: */
    double delay_s; /* to be paid by the next run */
    double link_free_s;
    sim_run run;
    int event_at; /* in the heap of events */
    int64_t kv_seen;
    int32_t *spare; /* places of pages, and seats, that nobody has; NULL: pages are only counted */
    int64_t spares;
    int *seat;
    int64_t seats;
} sim_replica;

typedef struct sim_event { /* a run of a replica ends; idle: HUGE_VAL */
    double end_s;
    int replica;
} sim_event;
typedef struct sim_later { /* a cache arrives, or a turn is sent */
    double at_s;
    int slot;
} sim_later;

/* ---- what is counted (simulate_totals.c) ---- */
typedef struct sim_areas { /* integrals over time */
    double in_system, waiting, running, busy, kv;
} sim_areas;
typedef struct sim_totals {
    double now_s, first_s, last_arrival_s, last_s;
    double requests, finished, refused, prompt, output, cached, hit_prompts, recomputed;
    double prefilled, decoded, preemptions, steps, decode_steps, batch_sum, within;
    double in_system, waiting, running, busy; /* now */
    double kv, kv_capacity;                   /* pages */
    sim_areas area, sampled;
    double sample_s, sample_at_s;
    int samples;
    sm_sample sample[SM_MAX_SAMPLES];
    struct sim_times {
        sim_histogram ttft, tpot, e2e, queue;
    } * times; /* NULL: nobody asks for them */
    struct sim_of_class {
        double requests, finished, within;
        sim_histogram ttft, tpot, e2e;
    } * of_class; /* NULL: all are alike */
} sim_totals;

typedef struct sim_simulation {
    const sm_simulation *options;
    const sm_watch *watch;
    const sm_arrivals *arrivals;
    sm_error *err;
    bool live; /* time is the caller's (scheduler.c): nothing begins by itself */
    sim_pool pool;
    sim_replica *replica;
    int replicas, entries; /* all; those that take arrivals: the first, or the prefill pool */
    int first_entry;
    int *load;        /* requests in each replica */
    sim_event *event; /* heap by (end, replica) */
    sim_later *later; /* heap by time */
    int laters;
    size_t later_room;
    int next_entry;                   /* round robin */
    int ranks, rank[SM_MOST_CLASSES]; /* of classes: equal where their priorities are */
    double read, read_s;              /* requests that were, and when the last of them comes */
    bool all_read;
    int ahead;  /* the first request that was read and not yet taken, SIM_NONE: none, or the end */
    sm_rng rng; /* of how long requests of clients take to the queue: */
    uint64_t drawn, order;
    int64_t page, most_batch;
    uint64_t *label; /* scratch for the runs of one prompt */
    int64_t *end;
    int label_room;
    sim_curve *curve; /* NULL: prompts are not cached, or pages have places */
    sim_totals totals;
} sim_simulation;

/* ---- sequences that decode (decoding.c) ---- */
sm_status sim_join(sim_simulation *s, sim_replica *r, int slot);
void sim_leave(sim_simulation *s, sim_replica *r, int slot); /* its length and pages as they are */
int64_t sim_growth(const sim_replica *r, int64_t steps);     /* pages that so many steps take */
/* The most steps that take at most so many pages, up to `steps`. */
int64_t sim_steps_within(const sim_replica *r, int64_t pages, int64_t steps);
void sim_decoded(sim_simulation *s, sim_replica *r, int64_t steps);

/* ---- memory (kv_memory.c) ---- */
int64_t sim_pages_of(const sim_simulation *s, int64_t tokens);
int64_t sim_available(const sim_replica *r); /* pages, cached prefixes given up */
/* Take pages for a waiting sequence: 1 done, 0 there are none, -1 an error. */
int sim_admit(sim_simulation *s, sim_replica *r, int slot);
void sim_release(sim_simulation *s, sim_replica *r, int slot);
/* What a prefill, an ended exchange leave in the prefix cache. */
sm_status sim_keep_prompt(sim_simulation *s, sim_replica *r, int slot);
sm_status sim_keep_exchange(sim_simulation *s, sim_replica *r, int slot);
int64_t sim_cached_pages(sim_simulation *s, sim_replica *r, const sim_sequence *q);
/* The youngest of those that are of the least priority. */
void sim_preempt_youngest(sim_simulation *s, sim_replica *r);
/* Not yet prefilled: out of the ring of those that are due. */
void sim_forget_due(sim_replica *r, int slot);
/* What a cache of any size would find of a prompt that begins. */
sm_status sim_note_prompt(sim_simulation *s, const sim_sequence *q);
/* A live exchange: all whole pages of its blocks. */
sm_status sim_keep_pages(sim_simulation *s, sim_replica *r, int slot);
bool sim_has_room(const sim_simulation *s, const sim_replica *r, int slot);

/* ---- places of pages in memory (kv_places.c); nothing where pages are only counted ---- */
sm_status sim_places_begin(sim_simulation *s, sim_replica *r);
void sim_places_end(sim_replica *r);
/* After admission: those of the cached prefix, and new ones behind it. */
sm_status sim_places_take(sim_simulation *s, sim_replica *r, sim_sequence *q);
/* Room for a token at this position. */
void sim_places_grow(sim_simulation *s, sim_replica *r, sim_sequence *q, int64_t position);
/* Pages [shared, ...) of q up to node are the prefix cache's. */
void sim_places_keep(sim_replica *r, sim_sequence *q, int node);
void sim_places_give(sim_replica *r, sim_sequence *q);

/* ---- runs (simulate_policy.c, simulate_run.c) ---- */
/* What the replica does next. */
sm_status sim_plan(sim_simulation *s, sim_replica *r);
/* A run has ended: tokens out, sequences end. */
sm_status sim_complete(sim_simulation *s, sim_replica *r);
sm_status sim_start_run(sim_simulation *s, sim_replica *r, int64_t steps);
int sim_gathers(const sim_simulation *s, const sim_replica *r);
void sim_join_group(const sim_simulation *s, sim_replica *r, sim_sequence *q);
void sim_count_group(sim_replica *r, const sim_sequence *q, int requests, int waiting);
void sim_shorten(sim_simulation *s, sim_replica *r);
/* When the step before now began; now where nothing decodes. */
double sim_last_step_s(const sim_simulation *s, const sim_replica *r);
/* A request ends before its output is whole, between two steps. */
sm_status sim_end_early(sim_simulation *s, int slot);

/* ---- events (simulate.c) ---- */
/* Options read, replicas made; the end frees all. told: the totals. */
sm_status sim_new(const sm_simulation *simulation, sm_simulation *own, const sm_watch *watch,
                  bool live, bool told, sim_simulation **out, sm_error *err);
void sim_free(sim_simulation *s);
/* A request into a slot, looked through first. */
sm_status sim_take(sim_simulation *s, const sm_request *request, int *slot);
/* The request of a slot goes to a replica, at the time of now, sent before. The slot is given back
 * when it can never fit, and where it waits behind many. */
sm_status sim_arrive(sim_simulation *s, int slot, double sent_s, bool *fits);
/* The request of a client has ended: its next turn is thought of, or the client is free. */
sm_status sim_client_goes_on(sim_simulation *s, const sim_sequence *q);
sim_list *sim_waiting(const sim_simulation *s, sim_replica *r, const sim_sequence *q);
int sim_first_waiting(const sim_simulation *s, const sim_replica *r); /* SIM_NONE: nobody */
void sim_event_changed(sim_simulation *s, const sim_replica *r);
sm_status sim_send(sim_simulation *s, sim_replica *r, int slot);
/* ---- routing (simulate_run.c) ---- */
/* One of a rank's backlog comes after those of it that wait, if there is any. */
sm_status sim_refill(sim_simulation *s, sim_replica *r, int rank);
int sim_route(sim_simulation *s, const sim_sequence *q);
int sim_route_decode(const sim_simulation *s);

sm_status sim_totals_begin(sim_simulation *s, bool told);
void sim_advance(sim_totals *t, double now_s);
void sim_count_kv(sim_simulation *s, sim_replica *r);
sm_status sim_count_served(sim_simulation *s, const sim_sequence *q);
void sim_totals_read(sim_simulation *s, sm_simulated *out);

/* serve_desk: what clients and the engine hand each other: requests one way, their tokens the
 * other. The queue is bounded: who comes when it is full is told so. Every function may be called
 * on any thread. */
#pragma once
#include "scalemodel/io.h"
#include <pthread.h>

typedef enum serve_end {
    SERVE_GOES_ON,
    SERVE_LENGTH,   /* all tokens it asked for */
    SERVE_STOP,     /* a stop */
    SERVE_ABANDONED /* the engine ended before it */
} serve_end;

typedef struct serve_request serve_request;
struct serve_request {
    /* asked: constant once it is on the desk */
    int32_t *token;             /* the prompt, then room for `most` tokens */
    size_t prompt, most, words; /* words: the first so many may be chosen */
    const char *kind;           /* its class (sm_request_class), NULL: the first */
    double temperature;
    uint64_t seed;
    int stops;
    char stop[SM_COMPLETION_STOPS][SM_COMPLETION_STOP_BYTES];
    size_t stop_bytes[SM_COMPLETION_STOPS], stop_words, longest_stop;
    int32_t stop_word[SM_COMPLETION_STOP_WORDS];
    /* told of each token and of the end, while the desk is locked; NULL: nobody waits */
    void (*tell)(void *context);
    void *context;
    /* under the lock of the desk */
    size_t made;  /* tokens behind the prompt */
    size_t shown; /* of them, those that no stop can take back */
    serve_end end;
    bool gone; /* the client is */
    double arrival_s, first_s, end_s;
    /* of the engine */
    uint64_t number, hash;
    size_t pages;  /* whose ids the scheduler knows */
    size_t hidden; /* tokens of the stop that ended it */
    serve_request *next;
};

typedef struct serve_desk {
    pthread_mutex_t lock;
    pthread_cond_t come;
    serve_request *first, *last; /* not yet taken */
    int open, most_open;         /* requests that have not ended */
    bool closed;                 /* nothing more is taken in */
    bool aborted;                /* what there is ends now */
    bool stirred;                /* something for the engine to look at */
} serve_desk;

sm_status serve_desk_begin(serve_desk *desk, int most_open, sm_error *err);
void serve_desk_finish(serve_desk *desk);

/* A request with this prompt. SM_INTERNAL when out of memory. */
sm_status serve_request_new(const int32_t *prompt, size_t n, size_t most, serve_request **out,
                            sm_error *err);
void serve_request_free(serve_request *q);

typedef enum serve_put { SERVE_TAKEN, SERVE_FULL, SERVE_CLOSED } serve_put;
/* Hand it to the engine, as of arrival_s (below 0: now). Unless it is taken it stays the caller's.
 */
serve_put serve_desk_put(serve_desk *desk, serve_request *q, double arrival_s);
/* The client lets go: the request is freed when the engine has done with it. */
void serve_desk_leave(serve_desk *desk, serve_request *q);
/* Nothing more is taken in; with `now`, what there is ends. */
void serve_desk_close(serve_desk *desk, bool now);

/* ---- the engine ---- */
/* All that came since, in order, as a list by `next`. */
serve_request *serve_desk_take(serve_desk *desk);
/* Wait until something comes, a client goes or the desk closes. */
void serve_desk_wait(serve_desk *desk);
/* A token more; end: the last. */
void serve_desk_give(serve_desk *desk, serve_request *q, int32_t token, double now_s);
/* The engine has done with it; end: why. It is freed where the client has let go. */
void serve_desk_end(serve_desk *desk, serve_request *q, serve_end end, double now_s);
bool serve_desk_is_gone(serve_desk *desk, const serve_request *q);
/* closed, and aborted. */
bool serve_desk_is_closed(serve_desk *desk, bool *aborted);

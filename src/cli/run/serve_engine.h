/* serve_engine: an engine on ranks. The first rank takes requests from the desk and plans each step
 * by the scheduler of the simulation (scheduler.h); all ranks then take it, over one cache in
 * pages. */
#pragma once
#include "scalemodel/io.h"
#include "scalemodel/run_generate.h"
#include "scalemodel/scheduler.h"
#include "seen_pictures.h"
#include <pthread.h>
#include <string.h>

/* What clients and the engine hand each other: requests one way, their tokens the
 * other. The queue is bounded: who comes when it is full is told so. Every function may be called
 * on any thread. */
typedef enum serve_end {
    SERVE_GOES_ON,
    SERVE_LENGTH,   /* all tokens it asked for */
    SERVE_STOP,     /* a stop */
    SERVE_ABANDONED /* the engine ended before it */
} serve_end;

typedef struct serve_picture {
    size_t begun; /* word of the prompt */
    uint64_t hash;
} serve_picture;
typedef struct serve_request serve_request;
struct serve_request {
    /* asked: constant once it is on the desk */
    int32_t *token;             /* the prompt, then room for `most` tokens */
    size_t prompt, most, words; /* words: the first so many may be chosen */
    const char *kind;           /* its class (sm_request_class), NULL: the first */
    size_t pictures, numbers;   /* numbers: of each */
    float *given;               /* [pictures, numbers] */
    serve_picture *picture;
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
    uint64_t seen; /* pictures (bit) that its seat has */
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
/* Room for what its pictures are given, [pictures, numbers], which then is filled. */
sm_status serve_request_look(serve_request *q, size_t pictures, size_t numbers, sm_error *err);

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

/* Steps by what is in them. */
typedef enum serve_step_kind {
    SERVE_STEP_DECODE,
    SERVE_STEP_PREFILL,
    SERVE_STEP_MIXED,
    SERVE_STEPS
} serve_step_kind;
typedef struct serve_steps {
    double n, expected_s, measured_s;
} serve_steps;

typedef struct serve_engine_job {
    const sm_train_setup *setup;  /* as sm_generator_new wants it */
    sm_generator_pages pages;     /* page_tokens is that of the simulation */
    const sm_simulation *options; /* its engine: what steps are expected to take, and kv_tokens */
    serve_desk *desk;
    /* Weights into the generator, on every rank. */
    sm_status (*load)(sm_generator *g, void *context, sm_error *err);
    /* On the first rank, before its first step: whoever hands in requests begins. */
    sm_status (*open)(void *context, sm_error *err);
    /* What a step is expected to take longer in which each group sees n pictures. */
    double (*look_s)(void *context, double n);
    void *context;
    const sm_watch *watch; /* NULL: nobody */
} serve_engine_job;

typedef struct serve_engine_result { /* of the first rank */
    sm_simulated counted;            /* as of a simulation, by the clock of this machine */
    serve_steps steps[SERVE_STEPS];
    double weight_bytes; /* on the rank that holds most */
    double model_s;      /* of all steps, in the model; the rest is planning and drawing */
    double bytes_predicted[SM_COLLECTIVE_COUNT], bytes_counted[SM_COLLECTIVE_COUNT];
    double bytes_apart;                 /* |predicted - counted|, of all ranks and steps */
    double stopped, abandoned, begun_s; /* begun_s: on the clock of arrivals */
} serve_engine_result;

/* Made by every rank of world: until the desk is closed and empty. result is filled on the first.
 */
sm_status serve_engine_run(const serve_engine_job *job, sm_communicator *world,
                           serve_engine_result *result, sm_error *err);

/* Clients of an engine in its own process, who ask what a trace or a draw says, when it
 * says so. Their texts are drawn so that what the trace calls equal is equal. */
typedef struct serve_load_list {
    sm_request *request;
    size_t n, refused; /* refused: too long for the engine, and left out */
} serve_load_list;
enum { SERVE_LOAD_MOST = 1000000 };
/* All requests, and their blocks, into the arena; longer ones than most_tokens are left out. */
sm_status serve_load_read(const sm_arrivals *arrivals, double most_tokens, sm_arena *arena,
                          serve_load_list *list, sm_error *err);
/* The list once more, from the beginning. *at: where it is. */
typedef struct serve_load_cursor {
    const serve_load_list *list;
    size_t at;
} serve_load_cursor;
sm_arrivals serve_load_again(serve_load_cursor *cursor);

typedef struct serve_load_job {
    const serve_load_list *list;
    serve_desk *desk;
    double concurrency, think_s; /* concurrency 0: as they arrive */
    size_t words;                /* of the vocabulary */
    double temperature;
} serve_load_job;
typedef struct serve_load serve_load;
/* Begin to ask, on a thread of its own, which closes the desk when all have been answered. */
sm_status serve_load_begin(const serve_load_job *job, serve_load **out, sm_error *err);
/* Wait for it, and free it. *dropped: requests that found the queue full. SM_INTERNAL when it ran
 * out of memory and asked no more. NULL is fine. */
sm_status serve_load_end(serve_load *load, double *dropped, sm_error *err);

/* The face of an engine towards clients, after OpenAI's completions API. */
typedef struct serve_http serve_http;
typedef struct serve_http_job {
    const char *address; /* "127.0.0.1" */
    int port;            /* 0: a free one */
    serve_desk *desk;
    sm_completion_limits limits;
    size_t words;            /* of a vocabulary, that may be chosen after numbers */
    const seen_shape *shape; /* of what is seen, where limits.pictures are more than none */
    double patience_s;       /* with a client, over a request and over an answer that is whole */
} serve_http_job;

/* Listen; *port: where. SM_IO when it cannot, or when this program was made without libmicrohttpd.
 */
sm_status serve_http_begin(const serve_http_job *job, serve_http **out, int *port, sm_error *err);
/* To be called now and then: whoever takes longer than the patience is cut off. NULL is fine. */
void serve_http_hurry(serve_http *http);
/* What was answered. */
typedef struct serve_http_counts {
    double taken, full, refused; /* full: told to come again; refused: for what they asked */
} serve_http_counts;
/* Answers that are still being sent get some seconds, then nobody listens. */
serve_http_counts serve_http_end(serve_http *http);

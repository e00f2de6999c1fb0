/* serve_load: clients of an engine in its own process, who ask what a trace or a draw says, when it
 * says so. Their texts are drawn so that what the trace calls equal is equal. */
#pragma once
#include "serve_desk.h"

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

/* serve_http: the face of an engine towards clients, after OpenAI's completions API. */
#pragma once
#include "serve_desk.h"

typedef struct serve_http serve_http;
typedef struct serve_http_job {
    const char *address; /* "127.0.0.1" */
    int port;            /* 0: a free one */
    serve_desk *desk;
    sm_completion_limits limits;
    size_t words; /* of a vocabulary, that may be chosen after numbers */
} serve_http_job;

/* Listen; *port: where. SM_IO when it cannot, or when this program was made without libmicrohttpd.
 */
sm_status serve_http_begin(const serve_http_job *job, serve_http **out, int *port, sm_error *err);
/* What was answered. */
typedef struct serve_http_counts {
    double taken, full, refused; /* full: told to come again; refused: for what they asked */
} serve_http_counts;
/* Answers that are still being sent get some seconds, then nobody listens. */
serve_http_counts serve_http_end(serve_http *http);

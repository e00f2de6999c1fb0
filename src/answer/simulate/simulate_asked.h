/* simulate_asked: what the parts of the answer about a simulation share. */
#ifndef SM_ANSWER_SIMULATE_ASKED_H
#define SM_ANSWER_SIMULATE_ASKED_H
#include "question.h"
#include "scalemodel/io.h"

/* Requests of a trace, drawn ones, or those of a trace at drawn times; at `rate` times their own
 * rate. */
typedef struct sm_request_source {
    sm_request_file *file; /* NULL: drawn */
    bool drawn;            /* arrivals are drawn */
    sm_synthetic draw;
    sm_arrivals of_file, of_draw;
    double rate, most; /* most: requests */
    double given, first_s;
} sm_request_source;

typedef struct sm_simulate_asked {
    sm_simulate_question in;
    sm_serve_job job;
    sm_plan plan, prefill_plan;
    const char *plan_text, *prefill_plan_text; /* as the library writes them */
    sm_serve *serve;
    sm_engine engine, prefill_engine;
    sm_simulation options;
    sm_request_source source;
    sm_max_rate *max_rate; /* NULL when not asked for */
    sm_simulated result;
    sm_report *report;
    sm_tracks *tracks; /* NULL: no timeline */
    sm_slice *slice;
    size_t room; /* of slices */
    sm_watch watch;
} sm_simulate_asked;

void sm_simulate_page(sm_report *r, const sm_simulate_asked *q);
void sm_simulate_data(sm_report *r, const sm_simulate_asked *q);
/* The queue, the batch and the memory over time, into the report's chart. */
sm_status sm_simulate_picture(sm_simulate_asked *q, sm_error *err);
/* Steps as they are simulated become slices; q->watch tells them and the caller's watch. */
sm_status sm_simulate_tracks_begin(sm_simulate_asked *q, sm_error *err);
sm_status sm_simulate_tracks_end(sm_simulate_asked *q, sm_error *err);
/* "poisson:50/s", "trace.csv, as they came" */
const char *sm_simulate_arrivals_words(sm_report *r, const sm_simulate_asked *q);
#endif

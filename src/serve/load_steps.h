/* load_steps: seconds of the steps of engines under a load. Private to src/serve. */
#pragma once
#include "serve_space.h"

typedef struct load_steps {
    const sm_engines *e;
    const sm_load *load;
    const sm_software *software;
    double n, prefill_n;    /* engines: copies of a model (data) are engines of their own, of which
                               those without a request do not count */
    bool lower, upper;      /* bounds, or steps in which nothing overlaps, not what is expected */
    struct placements *any; /* what steps of prompts alone and beside decoding (`floor`: two) take
                               at least, in place of the plan's order: what is added is then the
                               least that any placement adds */
    step_floor *floor;
    double prompts, prefill_s; /* the last prefill that was priced; none: 0 */
    double late_s; /* simulated first tokens of a closed loop that are later on average for certain
                      are not simulated on: mean_s is then some time above it; 0: all are */
    bool failed;
    sm_error err; /* why, where it failed: from then on all times are NaN */
} load_steps;
/* So many requests, or any number at a rate (INFINITY), over all engines. */
load_steps load_steps_of(const sm_engines *engines, const sm_load *load, double requests);
/* n prompts at once, in an engine that prefills. */
double load_prefill_s(load_steps *c, double n);
/* Groups of chips of an engine with sequences of their own. */
double load_groups(const sm_plan *plan, const sm_serve *s);
/* Tokens of prefill that a step of one of them takes. */
double load_budget(const sm_software *software, const sm_plan *plan, const sm_serve *s);
/* What the prompt of a request adds to the steps, of n sequences that decode in decode_s and get
 * `tokens` each, beside those prompts that come on average. */
double load_added_s(load_steps *c, double n, double decode_s, double tokens);
/* Between two tokens of n sequences; alone: when no prefill comes between. */
double load_token_s(load_steps *c, double n);
double load_alone_s(load_steps *c, double n);
/* What the prefill of one prompt takes of an engine all of whose groups of chips and stages have
 * as many prompts as a step takes. */
double load_service_s(load_steps *c);
/* The times of tokens in a closed loop of so many requests for each engine, of which so many decode
 * at most: simulated, as a benchmark of ten requests of each client. */
void load_closed_first(load_steps *c, double in_flight, double most_running, event_times *out);
/* What a first token of these takes at least on average, where so many decode, a prefill alone
 * takes alone_s, and each token of prompts token_s in any step. */
double load_first_least_s(const sm_serve *s, const sm_plan *plan, double batch, double alone_s,
                          double token_s);
/* The same of requests that come at a rate, so many a second over all engines, each of which
 * decodes so many at once on average and at most. */
void load_open_first(load_steps *c, double rate, double running, double most_running,
                     event_times *out);

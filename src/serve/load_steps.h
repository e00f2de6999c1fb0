/* load_steps: seconds of the steps of engines under a load. Private to src/serve. */
#pragma once
#include "scalemodel/load.h"
#include "serve_space.h"

typedef struct load_steps {
    const sm_engines *e;
    const sm_load *load;
    const sm_software *software;
    bool lower;             /* bounds in place of what is expected */
    struct placements *any; /* each collective where it costs least, in place of the plan's order:
                               what is added is then the least that any placement adds */
    double prompts, prefill_s; /* the last prefill that was priced; none: 0 */
    bool failed;
    sm_error err; /* why, where it failed: from then on all times are NaN */
} load_steps;
/* n prompts at once, in an engine that prefills. */
double load_prefill_s(load_steps *c, double n);
/* A step of n sequences in decode, and the tokens that it gives each of them. */
double load_decode_s(load_steps *c, double n, double *tokens);
/* What the prompt of a request takes: by itself; and added to steps, of which `running` sequences
 * decode in decode_s each, beside those prompts that come on average. */
typedef struct load_prompt {
    double alone_s, added_s;
    double yield; /* tokens that a decode step gives each sequence */
    double running, decode_s;
    double shown; /* share of it that is not hidden behind other stages of a pipeline */
} load_prompt;
/* Without what it takes alone. */
load_prompt load_prompt_of(load_steps *c, double n, double decode_s, double tokens);
/* What so many prompts add to the step that they share, each on a group of chips of its own while
 * there are any. */
double load_beside_s(load_steps *c, const load_prompt *prompt, double prompts);
/* Between two tokens of n sequences; alone: when no prefill comes between. */
double load_token_s(load_steps *c, double n);
double load_alone_s(load_steps *c, double n);
/* What the prefill of one prompt takes of an engine all of whose groups of chips and stages have
 * prompts. */
double load_service_s(load_steps *c);
/* The times to the first token in a closed loop of so many requests for each engine, of which so
 * many decode at most: simulated. */
void load_closed_first(load_steps *c, double in_flight, double most_running,
                       const load_prompt *prompt, first_token *out);
/* The same of requests that come at a rate, so many a second over all engines, each of which
 * decodes so many at once on average and at most; and the mean time of their other tokens, 0 where
 * they have none. */
void load_open_first(load_steps *c, double rate, double running, double most_running,
                     const load_prompt *prompt, first_token *out, double *token_s);

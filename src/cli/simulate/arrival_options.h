/* arrival_options: which requests come, and when, for those who simulate an engine and those who
 * run one. */
#pragma once
#include "options.h"

enum { ARRIVALS_MOST_RATE = 1000000000 };

typedef struct arrival_values {
    const char *trace, *arrivals;
    sm_synthetic draw;
    double requests;      /* at most so many; 0: not said */
    sm_range concurrency; /* of clients; first 0: not said */
    cli_list classes;
    sm_request_class kind[SM_MOST_CLASSES]; /* what classes say: arrivals_read fills it in */
    int kinds;
    bool drawn; /* times are, and without a trace the lengths: arrivals_read fills it in */
} arrival_values;
#define ARRIVAL_PLACES(member)                                                                     \
    AT("trace", member.trace), AT("arrivals", member.arrivals), AT("qps", member.draw.rate_per_s), \
        AT("concurrency", member.concurrency), AT("turns", member.draw.turns),                     \
        AT("turns-cv", member.draw.turns_cv), AT("think", member.draw.think_s),                    \
        AT("think-cv", member.draw.think_cv), AT("shared-prefix", member.draw.shared_prefix),      \
        AT("class", member.classes), AT("requests", member.requests),                              \
        AT("prompt", member.draw.lengths.prompt), AT("output", member.draw.lengths.output),        \
        AT("prompt-cv", member.draw.lengths.prompt_cv),                                            \
        AT("output-cv", member.draw.lengths.output_cv), AT("range-ratio", member.draw.least_share)

/* --csv: the header and the row of a request; its times count from from_s. */
void requests_header(FILE *rows);
void requests_row(FILE *rows, const sm_request_served *served, const sm_simulation *options,
                  double from_s);
/* Were any requests asked for? */
bool arrivals_asked(const arrival_values *v);
/* Read them into draw, drawn and requests. SM_USAGE for what does not go together, SM_BAD_INPUT
 * with the place of what is no rate. */
sm_status arrivals_read(const cli_call *call, arrival_values *v, sm_error *err);

/* simulate_source: where the requests of a simulation come from. */
#include "simulate.h"

sm_status cli_source_open(cli_request_source *s, sm_error *err) {
    if (!s->path) return SM_OK;
    sm_status status = sm_request_file_open(s->path, &s->file, err);
    if (!status) s->of_file = sm_request_arrivals(s->file);
    return status;
}

void cli_source_close(cli_request_source *s) {
    sm_request_file_close(s->file);
    s->file = NULL;
}

/* Gaps shrink as the rate grows; the first request comes when it comes. */
static double at_rate(cli_request_source *s, double arrival_s) {
    if (s->given == 0.0) s->first_s = arrival_s;
    return s->first_s + (arrival_s - s->first_s) / s->rate;
}

static int next_request(void *context, sm_request *request, sm_error *err) {
    cli_request_source *s = context;
    if (s->given >= s->most) return 0;
    sm_request drawn = {.arrival_s = 0.0};
    int got = s->drawn ? s->of_draw.next(s->of_draw.context, &drawn, err) : 1;
    if (got == 1 && s->file) got = s->of_file.next(s->of_file.context, request, err);
    else *request = drawn;
    if (got != 1) return got;
    if (s->drawn) request->arrival_s = drawn.arrival_s;
    request->arrival_s = at_rate(s, request->arrival_s);
    s->given += 1.0;
    return 1;
}

sm_status cli_source_begin(void *source, double rate, sm_arrivals *arrivals, sm_error *err) {
    cli_request_source *s = source;
    bool again = s->given > 0.0;
    s->rate = rate;
    s->given = 0.0;
    s->of_draw = sm_synthetic_arrivals(&s->draw);
    *arrivals = (sm_arrivals){s, next_request};
    return s->file && again ? sm_request_file_rewind(s->file, err) : SM_OK;
}

/* Where the requests of an engine come from: a trace, drawn ones, or those of a trace at drawn
 * times. */
#include "scalemodel/io.h"

#include <sys/stat.h>

struct sm_request_source {
    sm_request_file *file; /* NULL: drawn */
    bool drawn;            /* arrivals are drawn */
    sm_synthetic draw;
    sm_arrivals of_file, of_draw;
    double rate, given, first_s, most; /* most: requests */
};

sm_status sm_request_source_open(const char *trace, const sm_synthetic *drawn, double most,
                                 sm_request_source **out, sm_error *err) {
    *out = NULL;
    if (!drawn && !trace)
        return sm_fail(err, SM_USAGE, "requests are needed: of a trace, or drawn");
    sm_request_source *s = sm_calloc(1, sizeof *s);
    if (!s) return sm_fail_memory(err);
    s->drawn = drawn != NULL;
    s->most = most;
    if (drawn) s->draw = *drawn;
    s->draw.requests = most;
    sm_status status = trace ? sm_request_file_open(trace, &s->file, err) : SM_OK;
    if (s->file) s->of_file = sm_request_arrivals(s->file);
    if (status) sm_request_source_close(s);
    else *out = s;
    return status;
}

static int next_request(void *context, sm_request *request, sm_error *err) {
    sm_request_source *s = context;
    if (s->given >= s->most) return 0;
    sm_request drawn = {.arrival_s = 0.0};
    int got = s->file ? s->of_file.next(s->of_file.context, request, err) : 1;
    bool draws = s->drawn && !(s->file && request->follows);
    if (got == 1 && draws) got = s->of_draw.next(s->of_draw.context, &drawn, err);
    if (got != 1) return got;
    if (!s->file) *request = drawn;
    else if (draws) request->arrival_s = drawn.arrival_s;
    s->given += 1.0;
    if (request->follows) return 1; /* when those before it have ended */
    /* Gaps shrink as the rate grows; the first request comes when it comes. */
    if (s->given == 1.0) s->first_s = request->arrival_s;
    request->arrival_s = s->first_s + (request->arrival_s - s->first_s) / s->rate;
    return 1;
}

sm_status sm_request_source_begin(void *source, double rate, sm_arrivals *arrivals, sm_error *err) {
    sm_request_source *s = source;
    bool again = s->given > 0.0;
    s->rate = rate;
    s->given = 0.0;
    s->of_draw = sm_synthetic_arrivals(&s->draw);
    *arrivals = (sm_arrivals){s, next_request};
    return s->file && again ? sm_request_file_rewind(s->file, err) : SM_OK;
}

void sm_request_source_close(sm_request_source *s) {
    if (!s) return;
    sm_request_file_close(s->file);
    sm_free(s);
}

sm_status sm_request_trace_lengths(const char *trace, double most, sm_lengths *lengths,
                                   sm_error *err) {
    struct stat is;
    sm_request_file *file = NULL;
    sm_request r;
    double n = 0.0, prompt = 0.0, output = 0.0;
    int got = 0;
    bool told = lengths->prompt > 0.0 && lengths->output > 0.0;
    if (told || (stat(trace, &is) == 0 && !S_ISREG(is.st_mode))) return SM_OK;
    sm_status status = sm_request_file_open(trace, &file, err);
    if (status) return status;
    const sm_arrivals of = sm_request_arrivals(file);
    for (; n < most && (got = of.next(of.context, &r, err)) == 1; n += 1.0) {
        prompt += r.prompt;
        output += r.output;
    }
    sm_request_file_close(file);
    if (got < 0) return err->status;
    if (n > 0.0 && !(lengths->prompt > 0.0)) lengths->prompt = prompt / n;
    if (n > 0.0 && !(lengths->output > 0.0)) lengths->output = output / n;
    return SM_OK;
}

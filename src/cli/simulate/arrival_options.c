/* arrival_options: poisson:50/s, a trace, a closed loop of clients. */
#include "arrival_options.h"
#include <string.h>

enum { PER_CLIENT = 10 };

static const char *const arrivals[] = {"poisson", "gamma", "uniform", "replay"};

/* poisson:50/s, gamma:50/s:2 */
static sm_status read_drawn(const sm_source *source, size_t name, sm_synthetic *draw,
                            sm_error *err) {
    sm_span all = {0, source->length};
    const char *rate = source->text + name + 1;
    if (name >= source->length)
        return sm_fail_at(err, source, all, "expected a rate, as in %.*s:50/s", (int)name,
                          source->text);
    size_t left = source->length - name - 1;
    const char *colon = memchr(rate, ':', left);
    size_t length = colon ? (size_t)(colon - rate) : left;
    const sm_span number = {name + 1, length};
    sm_status status = sm_quantity_parse(source, number, SM_Q_PER_S, &draw->rate_per_s, err);
    if (!status && !(draw->rate_per_s > 0.0 && draw->rate_per_s <= ARRIVALS_MOST_RATE))
        return sm_fail_at(err, source, number, "a rate lies above 0 and at most at 1e9/s");
    if (status || (!colon && draw->kind != SM_ARRIVALS_GAMMA)) return status;
    if (!colon || draw->kind != SM_ARRIVALS_GAMMA)
        return sm_fail_at(err, source, all,
                          "the gaps of gamma alone have a coefficient of variation, as in "
                          "gamma:50/s:2");
    sm_span cv = {name + 1 + length + 1, left - length - 1};
    status = sm_quantity_parse(source, cv, SM_Q_COUNT, &draw->cv, err);
    if (status || draw->cv <= SM_MAX_CV) return status;
    return sm_fail_at(err, source, cv, "a coefficient of variation is at most %.0f", SM_MAX_CV);
}

static sm_status read_kind(const cli_call *call, arrival_values *v, sm_error *err) {
    const char *trace = v->trace;
    bool closed = v->concurrency > 0.0, rate = v->draw.rate_per_s > 0.0;
    const char *also = v->arrivals ? "--arrivals" : rate ? "--qps" : NULL;
    if (also && (closed || (rate && v->arrivals)))
        return sm_fail(err, SM_USAGE, "%s says when requests come: leave out %s",
                       closed ? "--concurrency" : "--qps", also);
    if (v->think_s > 0.0 && !closed)
        return sm_fail(err, SM_USAGE, "--think is of the clients of --concurrency");
    if (rate) {
        v->draw.kind = SM_ARRIVALS_POISSON;
        v->drawn = true;
    }
    if (rate || (!v->arrivals && trace)) return SM_OK;
    if (closed) {
        v->draw.kind = SM_ARRIVALS_UNIFORM;
        v->draw.rate_per_s = 1.0; /* not looked at */
        v->drawn = true;
        if (!(v->requests > 0.0)) v->requests = PER_CLIENT * v->concurrency;
        return SM_OK;
    }
    if (!v->arrivals)
        return sm_fail(err, SM_USAGE, "%s needs --qps 50, --trace FILE or --concurrency 64",
                       call->verb->name);
    sm_source source = cli_source(call, &v->arrivals);
    sm_words words = {arrivals, 4};
    sm_span name = {0, strcspn(v->arrivals, ":")};
    int kind = sm_words_find(words, &source, name);
    if (kind < 0) return sm_words_fail(words, &source, name, "arrivals cannot be", err);
    bool replay = kind == 3;
    if (replay && !trace) return sm_fail(err, SM_USAGE, "--arrivals replay needs --trace FILE");
    if (replay) return SM_OK;
    v->drawn = true;
    v->draw.kind = (sm_arrival_kind)kind;
    return read_drawn(&source, name.length, &v->draw, err);
}

bool arrivals_asked(const arrival_values *v) {
    return v->trace || v->arrivals || v->draw.rate_per_s > 0.0 || v->concurrency > 0.0;
}

sm_status arrivals_read(const cli_call *call, arrival_values *v, sm_error *err) {
    const sm_lengths *l = &v->draw.lengths;
    sm_status status = read_kind(call, v, err);
    bool lengths = cli_given(call, &l->prompt) || cli_given(call, &l->output) ||
                   cli_given(call, &l->prompt_cv) || cli_given(call, &l->output_cv);
    if (!status && v->trace && lengths)
        return sm_fail(err, SM_USAGE,
                       "the lengths are those of --trace: leave out --prompt, "
                       "--output and their --prompt-cv, --output-cv");
    return status;
}

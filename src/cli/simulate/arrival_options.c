/* arrival_options: poisson:50/s, a trace, a closed loop of clients. */
#include "arrival_options.h"

static const char *const arrivals[] = {"poisson", "gamma", "uniform", "replay"};

static sm_status read_rate(const sm_source *source, sm_span at, double *rate, sm_error *err) {
    sm_status status = sm_quantity_parse(source, at, SM_Q_PER_S, rate, err);
    if (status || (*rate >= 0.0 && *rate <= ARRIVALS_MOST_RATE)) return status;
    return sm_fail_at(err, source, at, "a rate lies above 0 and at most at 1e9/s");
}

/* 20/s@8h,2/s@16h */
static sm_status read_spans(const sm_source *source, sm_span all, sm_synthetic *draw,
                            sm_error *err) {
    sm_status status = SM_OK;
    for (size_t at = all.offset; !status && at <= all.offset + all.length;) {
        sm_span part = sm_next_part(source, all, ',', &at);
        size_t half = part.offset;
        sm_span rate = sm_next_part(source, part, '@', &half);
        bool timed = half <= part.offset + part.length;
        sm_span time = {half, timed ? part.offset + part.length - half : 0};
        sm_rate_span *span = &draw->span[draw->spans];
        if (!timed)
            return sm_fail_at(err, source, part,
                              "a rate that changes says for how long, as in "
                              "20/s@8h");
        if (draw->spans == SM_MOST_SPANS)
            return sm_fail_at(err, source, part, "a rate has at most %d spans", SM_MOST_SPANS);
        status = read_rate(source, rate, &span->rate_per_s, err);
        if (!status) status = cli_time_read(source, time, &span->seconds, err);
        if (!status && !(span->seconds > 0.0))
            return sm_fail_at(err, source, time, "a span of rates takes a time above 0");
        draw->spans++;
    }
    if (!status && !(sm_synthetic_rate(draw) > 0.0))
        return sm_fail_at(err, source, all, "at these rates no request ever comes");
    return status;
}

/* poisson:50/s, gamma:50/s:2, uniform:20/s@8h,2/s@16h */
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
    bool changes = memchr(rate, '@', length) || memchr(rate, ',', length);
    sm_status status = changes ? read_spans(source, number, draw, err)
                               : read_rate(source, number, &draw->rate_per_s, err);
    if (!status && !(sm_synthetic_rate(draw) > 0.0))
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

/* ---- classes ---- */

static const char *const class_keys[] = {"share", "priority", "ttft", "tpot"};

static sm_status read_class_key(const sm_source *source, sm_span part, sm_request_class *of,
                                sm_error *err) {
    const sm_words words = {class_keys, 4};
    size_t at = part.offset, end = part.offset + part.length;
    sm_span key = sm_next_part(source, part, '=', &at);
    int which = sm_words_find(words, source, key);
    if (which < 0) return sm_words_fail(words, source, key, "a class has no key", err);
    if (at > end) return sm_fail_at(err, source, part, "expected a value, as in %s", "ttft=500ms");
    const sm_span value = {at, end - at};
    int64_t number = 0;
    if (which >= 2)
        return cli_time_read(source, value, which == 2 ? &of->ttft_s : &of->tpot_s, err);
    if (which == 0) return sm_quantity_parse(source, value, SM_Q_COUNT, &of->share, err);
    sm_status status = sm_integer_parse(source, value, 0, 1000000, &number, err);
    of->priority = (int)number;
    return status;
}

/* chat:share=0.8,priority=0,ttft=500ms */
static sm_status read_class(const cli_call *call, const char *text, sm_request_class *of,
                            sm_error *err) {
    const sm_source source = sm_source_of("--class", text);
    const sm_span all = {0, source.length};
    size_t at = 0;
    sm_span name = sm_next_part(&source, all, ':', &at);
    sm_status status = cli_name_check(&source, name, err);
    if (status) return status;
    char *copy = sm_arena_alloc(call->arena, name.length + 1);
    if (!copy) return sm_fail_memory(err);
    memcpy(copy, text + name.offset, name.length);
    *of = (sm_request_class){.name = copy, .share = 1.0};
    const sm_span keys = {at, at <= source.length ? source.length - at : 0};
    for (size_t next = at; !status && next <= source.length;)
        status = read_class_key(&source, sm_next_part(&source, keys, ',', &next), of, err);
    return status;
}

static sm_status read_classes(const cli_call *call, arrival_values *v, sm_error *err) {
    sm_status status = SM_OK;
    if (v->classes.n > SM_MOST_CLASSES)
        return sm_fail(err, SM_USAGE, "at most %d times --class", SM_MOST_CLASSES);
    for (v->kinds = 0; !status && v->kinds < v->classes.n; v->kinds++)
        status = read_class(call, v->classes.text[v->kinds], &v->kind[v->kinds], err);
    v->draw.classes = v->kind;
    v->draw.n_classes = v->kinds;
    return status;
}

static sm_status read_kind(const cli_call *call, arrival_values *v, sm_error *err) {
    const char *trace = v->trace;
    bool closed = v->concurrency.first > 0, rate = v->draw.rate_per_s > 0.0;
    const char *also = v->arrivals ? "--arrivals" : rate ? "--qps" : NULL;
    if (also && (closed || (rate && v->arrivals)))
        return sm_fail(err, SM_USAGE, "%s says when requests come: leave out %s",
                       closed ? "--concurrency" : "--qps", also);
    if (v->draw.think_s > 0.0 && !closed && !(v->draw.turns > 0.0))
        return sm_fail(err, SM_USAGE, "--think is of the clients of --concurrency, or of --turns");
    if (rate) {
        v->draw.kind = SM_ARRIVALS_POISSON;
        v->drawn = true;
    }
    if (rate || (!v->arrivals && trace)) return SM_OK;
    if (closed) {
        v->draw.kind = SM_ARRIVALS_UNIFORM;
        v->draw.rate_per_s = 1.0; /* not looked at */
        v->drawn = true;
        return SM_OK;
    }
    if (!v->arrivals)
        return sm_fail(err, SM_USAGE, "%s needs --qps 50, --trace FILE or --concurrency 64",
                       call->verb->about->name);
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

void requests_header(FILE *rows) {
    fputs("request,arrival_s,start_s,first_token_s,end_s,prompt_tokens,output_tokens,"
          "cached_tokens,replica,preemptions,class\n",
          rows);
}

void requests_row(FILE *rows, const sm_request_served *s, const sm_simulation *o, double from_s) {
    fprintf(rows, "%llu,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f,%.0f,%d,%d,%s\n",
            (unsigned long long)s->number, s->arrival_s - from_s, s->start_s - from_s,
            s->first_token_s - from_s, s->end_s - from_s, s->prompt, s->output, s->cached,
            s->replica, s->preemptions, o->n_classes > 0 ? o->classes[s->kind].name : "");
}

bool arrivals_asked(const arrival_values *v) {
    return v->trace || v->arrivals || v->draw.rate_per_s > 0.0 || v->concurrency.first > 0;
}

sm_status arrivals_read(const cli_call *call, arrival_values *v, sm_error *err) {
    const sm_lengths *l = &v->draw.lengths;
    sm_status status = read_kind(call, v, err);
    bool turns = v->draw.turns > 0.0 || v->draw.shared_prefix > 0.0;
    if (!status) status = read_classes(call, v, err);
    if (!status && v->trace && turns)
        return sm_fail(err, SM_USAGE,
                       "turns and prefixes are those of --trace: leave out --turns and "
                       "--shared-prefix");
    if (!status && !(v->draw.turns > 0.0) &&
        (cli_given(call, &v->draw.turns_cv) || cli_given(call, &v->draw.think_cv)))
        return sm_fail(err, SM_USAGE, "--turns-cv and --think-cv are of --turns");
    bool lengths = cli_given(call, &l->prompt) || cli_given(call, &l->output) ||
                   cli_given(call, &l->prompt_cv) || cli_given(call, &l->output_cv);
    if (!status && v->trace && lengths)
        return sm_fail(err, SM_USAGE,
                       "the lengths are those of --trace: leave out --prompt, "
                       "--output and their --prompt-cv, --output-cv");
    return status;
}

/* train_batch: the sequences of a global batch, from what a person says of it: tokens ("4M",
 * "4Mi"), or sequences ("2048seqs"). */
#include "train_asked.h"
#include <math.h>
#include <string.h>

/* Of the tokens asked for, a batch may have so much more or less. 2^20 is 4.9 % more than 1e6. */
static const double NEARLY = 0.05;

/* The number of sequences within 5 % of the tokens that the largest power of two divides, and of
 * these the nearest: what real runs take for "4M tokens" (1024 of 4096), since it divides over
 * replicas and microbatches. A whole number stays as it is. */
double sm_train_usual_sequences(double tokens, double seq) {
    double n = tokens / seq, whole = round(n);
    double least = ceil(n * (1.0 - NEARLY)), most = floor(n * (1.0 + NEARLY));
    if (n < 1.0) return 1.0;
    if (fabs(n - whole) < 1e-9 * n || most < least) return whole;
    for (double power = exp2(floor(log2(most))); power > 1.0; power /= 2.0) {
        double below = floor(n / power) * power, above = below + power;
        bool low = below >= least && below > 0.0, high = above <= most;
        if (low && (!high || n - below <= above - n)) return below;
        if (high) return above;
    }
    return whole;
}

/* The number alone of "2048seqs" or "2048 sequences"; *counted: it is of sequences. */
static sm_span number_of(const sm_source *text, sm_span all, bool *counted) {
    static const char *const words[] = {"seqs", "sequences", "seq", "tokens"};
    *counted = false;
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(words[i]);
        if (all.length <= n) continue;
        if (memcmp(text->text + all.offset + all.length - n, words[i], n) != 0) continue;
        *counted = i < 3;
        all.length -= n;
        break;
    }
    return all;
}

sm_status sm_train_batch_read(const sm_source *text, sm_span span, double seq, sm_batch *batch,
                              sm_error *err) {
    bool counted;
    double value = 0.0;
    sm_span number = number_of(text, span, &counted);
    *batch =
        (sm_batch){.most = number.length == 3 && memcmp(text->text + number.offset, "max", 3) == 0};
    if (batch->most) {
        batch->sequences = 1.0;
        batch->asked_tokens = seq;
        return SM_OK;
    }
    sm_status status = sm_quantity_parse(text, number, SM_Q_COUNT, &value, err);
    if (status) return status;
    if (counted && (value < 1.0 || value != floor(value)))
        return sm_fail_at(err, text, span, "expected a whole number of sequences, as in 2048seqs");
    batch->asked_tokens = counted ? value * seq : value;
    if (batch->asked_tokens < seq)
        return sm_fail_at(err, text, span, "a batch counts tokens, and one sequence alone has %.0f",
                          seq);
    batch->sequences = counted ? value : sm_train_usual_sequences(value, seq);
    return SM_OK;
}

sm_status sm_train_batch_set(sm_train_asked *q, sm_error *err) {
    const sm_source *text = &q->in.batch;
    double tokens = q->in.batch_tokens, seq = q->job.seq;
    sm_batch batch = {.asked_tokens = tokens, .sequences = sm_train_usual_sequences(tokens, seq)};
    sm_status status = SM_OK;
    if (text->text)
        status = sm_train_batch_read(text, (sm_span){0, text->length}, seq, &batch, err);
    if (status) return status;
    if (batch.most && q->in.within_s <= 0.0)
        return sm_fail_at(err, text, (sm_span){0, text->length},
                          "any batch fits, microbatch by microbatch: the most is what a step of "
                          "some length holds, as in --within 10s");
    q->batch = batch;
    q->job.batch_tokens = batch.sequences * seq;
    return SM_OK;
}

/* ---- the most that a step holds ---- */

/* The step of the best plan for so many sequences; infinite where none fits. */
static sm_status step_of(sm_train_asked *q, sm_train *train, double sequences, double *seconds,
                         sm_error *err) {
    sm_search_options search = q->search;
    const sm_search_result *found;
    sm_error none = {.status = SM_OK};
    sm_job job = q->job;
    job.batch_tokens = sequences * job.seq;
    search.top = 1;
    search.progress = NULL;
    *seconds = HUGE_VAL;
    sm_status status = sm_train_change(train, &job, err);
    if (status) return status;
    sm_train_with_software(q, train);
    status = sm_train_search(train, &search, q->report->arena, &found, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (status) return status > SM_NEGATIVE ? status : SM_OK;
    *seconds = sm_search_result_at(found, 0).price->expected_s;
    return SM_OK;
}

/* Powers of two up to the first that takes too long, then eighths of the last that did not. */
sm_status sm_train_batch_most(sm_train_asked *q, sm_error *err) {
    enum { MOST_DOUBLINGS = 24 };
    sm_train *train = NULL;
    double most = 0.0, seconds = 0.0;
    sm_status status = sm_train_new(&q->job, &train, err);
    for (int i = 0; i < MOST_DOUBLINGS && !status; i++) {
        status = step_of(q, train, exp2(i), &seconds, err);
        if (!status && seconds > q->in.within_s && most > 0.0) break;
        if (!status && seconds <= q->in.within_s) most = exp2(i);
    }
    for (double part = most / 2.0; part >= most / 8.0 && part >= 1.0 && !status; part /= 2.0) {
        status = step_of(q, train, most + part, &seconds, err);
        if (!status && seconds <= q->in.within_s) most += part;
    }
    sm_train_free(train);
    if (status) return status;
    q->batch.sequences = fmax(most, 1.0);
    q->batch.missed = most <= 0.0;
    q->batch.asked_tokens = q->job.batch_tokens = q->batch.sequences * q->job.seq;
    return SM_OK;
}

void sm_train_batch_page(sm_report *r, const sm_train_asked *q, double sequences) {
    double seq = q->job.seq, tokens = sequences * seq, asked = q->batch.asked_tokens;
    const char *seqs =
        sm_textf(r, "A batch is %s sequence%s of %s tokens", sm_show_exact(r, sequences),
                 sequences == 1.0 ? "" : "s", sm_show_exact(r, seq));
    const char *why = q->in.seq > 0.0 ? "" : " (the length taken when --seq is not given)";
    double nearest = fmax(1.0, round(asked / seq));
    if (q->batch.missed)
        sm_report_text(r, "%s%s: not one has a step of %s.", seqs, why,
                       sm_show_seconds(r, q->in.within_s));
    else if (q->batch.most)
        sm_report_text(r, "%s%s: the most, to an eighth, whose step takes no longer than %s.", seqs,
                       why, sm_show_seconds(r, q->in.within_s));
    else if (tokens == asked) sm_report_text(r, "%s%s.", seqs, why);
    else if (sequences == nearest)
        sm_report_text(r, "%s%s: %s tokens, the whole sequences nearest to the %s asked for.", seqs,
                       why, sm_show_exact(r, tokens), sm_show_exact(r, asked));
    else
        sm_report_text(
            r,
            "%s%s: %s tokens, %.1f %% %s than the %s asked for, so that powers of two divide "
            "them; --batch %.0fseqs takes the nearest.",
            seqs, why, sm_show_exact(r, tokens), 100.0 * fabs(tokens / asked - 1.0),
            tokens > asked ? "more" : "less", sm_show_exact(r, asked), nearest);
}

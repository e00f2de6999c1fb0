/* train_batch: the sequences of a global batch, from what a person says of it: tokens ("4M",
 * "4Mi"), or sequences ("2048seqs"). */
#include "train_asked.h"
#include <ctype.h>

/* Of the tokens asked for, a batch may have so much more or less. 2^20 is 4.9 % more than 1e6. */
static const double NEARLY = 0.05;

/* Of the multiples of `unit` from least to most the one that the largest power of two divides, and
 * of those the nearest to n; 0: none. */
static double roundest(double unit, double n, double least, double most) {
    if (most < unit) return 0;
    for (double power = exp2(floor(log2(most / unit))); power >= 1.0; power /= 2.0) {
        double step = power * unit, below = floor(n / step) * step, above = below + step;
        bool low = below >= least && below > 0.0, high = above <= most;
        if (low && (!high || n - below <= above - n)) return below;
        if (high) return above;
    }
    return 0;
}

/* Of the numbers within 5 % of n one that many of the chips can share: replicas are a divisor of
 * the chips, and what no replica takes of their odd factors little else does: heads, widths and
 * positions are powers of two more often than not. 0: none. */
static double shared_by(double n, double chips) {
    double least = ceil(n * (1.0 - NEARLY)), most = floor(n * (1.0 + NEARLY));
    double odd = sm_odd_part(chips), found = 0;
    for (double part = 1.0; part <= odd && found == 0; part += 2.0) /* odd / part: largest first */
        if (fmod(odd, part) == 0) found = roundest(odd / part, n, least, most);
    return found;
}

static bool is_whole(double n) { return fabs(n - round(n)) < 1e-9 * n; }

/* About n sequences: within 5 % a multiple of the chips' odd factors (as many as there can be), and
 * of those the one that the largest power of two divides (4e6 tokens of 4096 are 1024 sequences on
 * 64 chips, 960 on 96; never 977). */
static double sequences_near(double n, double chips) {
    double whole = fmax(1.0, round(n)), shared;
    if (n < 1.0 || (is_whole(n) && fmod(whole, chips) == 0)) return whole;
    shared = shared_by(n, chips);
    return shared > 0 ? shared : whole;
}

double sm_train_batch_on(const sm_batch *batch, double seq, double chips) {
    return batch->about ? sequences_near(batch->asked_tokens / seq, chips) : batch->sequences;
}

static const char *const words[] = {"seqs", "sequences", "seq", "tokens", "tok"};
enum { WORDS = sizeof words / sizeof *words };

/* The number alone of "2048seqs" or "2048 sequences"; *counted: it is of sequences. */
static sm_span number_of(const sm_source *text, sm_span all, bool *counted) {
    *counted = false;
    for (int i = 0; i < WORDS; i++) {
        size_t n = strlen(words[i]);
        if (all.length <= n) continue;
        if (memcmp(text->text + all.offset + all.length - n, words[i], n) != 0) continue;
        *counted = i < 3;
        all.length -= n;
        break;
    }
    return all;
}

/* A word at the end that is longer than any unit is meant to be one of these. */
static sm_status refuse_word(const sm_source *text, sm_span number, sm_error *err) {
    enum { LONGEST_UNIT = 2 };
    const char *at = text->text + number.offset;
    size_t begin = number.length;
    while (begin > 0 && isalpha((unsigned char)at[begin - 1])) begin--;
    const sm_span word = {number.offset + begin, number.length - begin};
    if (word.length <= LONGEST_UNIT) return SM_OK;
    const char *near = sm_nearest(at + begin, word.length, words, WORDS);
    if (!near) return SM_OK;
    return sm_fail_at(err, text, word, "unknown word '%.*s' of a batch; did you mean '%s'?",
                      (int)word.length, at + begin, near);
}

/* A batch as text, of sequences of so many tokens. */
static sm_status read_batch(const sm_source *text, double seq, sm_batch *batch, sm_error *err) {
    const sm_span span = {0, text->length};
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
    sm_status status = counted ? SM_OK : refuse_word(text, number, err);
    if (!status) status = sm_quantity_parse(text, number, SM_Q_COUNT, &value, err);
    if (status) return status;
    if (counted && (value < 1.0 || value != floor(value)))
        return sm_fail_at(err, text, span, "expected a whole number of sequences, as in 2048seqs");
    batch->asked_tokens = counted ? value * seq : value;
    if (batch->asked_tokens < seq)
        return sm_fail_at(err, text, span, "a batch counts tokens, and one sequence alone has %.0f",
                          seq);
    if (batch->asked_tokens / seq > SM_MOST_SEQUENCES)
        return sm_fail_at(err, text, span, "a batch has at most %.0e sequences of %.0f tokens",
                          SM_MOST_SEQUENCES, seq);
    /* "512k" tokens are about so many, "512Ki" and "524288" just these */
    char last = text->text[number.offset + number.length - 1];
    batch->sequences = round(batch->asked_tokens / seq);
    batch->about =
        !counted && (!is_whole(value / seq) || !((last >= '0' && last <= '9') || last == 'i'));
    return SM_OK;
}

sm_status sm_batch_sequences(const sm_source *text, double seq, double chips, double *sequences,
                             sm_error *err) {
    sm_batch batch;
    sm_status status = read_batch(text, seq, &batch, err);
    if (!status && batch.most)
        status = sm_fail_at(err, text, (sm_span){0, text->length},
                            "expected tokens, 4096, or sequences, 8seqs");
    if (!status) *sequences = sm_train_batch_on(&batch, seq, chips);
    return status;
}

sm_status sm_train_batch_set(sm_train_asked *q, sm_error *err) {
    const sm_source *text = &q->in.batch;
    double tokens = q->in.batch_tokens, seq = q->job.seq;
    sm_batch batch = {
        .asked_tokens = tokens, .sequences = round(tokens / seq), .about = !is_whole(tokens / seq)};
    sm_status status = SM_OK;
    if (text->text) status = read_batch(text, seq, &batch, err);
    if (status) return status;
    if (batch.most && q->in.within_s <= 0.0)
        return sm_fail_at(err, text, (sm_span){0, text->length},
                          "any batch fits, microbatch by microbatch: the most is what a step of "
                          "some length holds, as in --within 10s");
    q->batch = batch;
    q->batch.sequences = sm_train_batch_on(&batch, seq, q->in.system->chips);
    q->job.batch_tokens = q->batch.sequences * seq;
    return SM_OK;
}

/* ---- the most that a step holds ---- */

/* The step of the best plan for so many sequences; infinite where none fits. */
static sm_status step_of(const sm_train_asked *q, sm_train *train, double sequences,
                         double *seconds, sm_error *err) {
    const sm_search_result *found;
    sm_search_effort effort;
    sm_error none = {.status = SM_OK};
    sm_train_asked here = *q; /* which comes to keep to one framework */
    sm_job job = q->job;
    job.batch_tokens = sequences * job.seq;
    *seconds = HUGE_VAL;
    sm_status status = sm_train_change(train, &job, err);
    if (status) return status;
    sm_train_with_software(q, train);
    here.search.top = 1;
    here.search.progress = NULL;
    status = sm_train_find(&here, train, &found, &effort, &none);
    if (!status) *seconds = sm_search_result_at(found, 0).price->expected_s;
    if (status > SM_NEGATIVE) *err = none;
    return status == SM_NEGATIVE ? SM_OK : status;
}

/* Of the multiples of `unit`: powers of two up to the first that takes too long, then eighths of
 * the last that did not; 0: none. */
static sm_status most_of(sm_train_asked *q, sm_train *train, double unit, double *most,
                         sm_error *err) {
    enum { MOST_DOUBLINGS = 24 };
    double seconds = 0.0;
    sm_status status = SM_OK;
    *most = 0.0;
    for (int i = 0; i < MOST_DOUBLINGS && !status; i++) {
        status = step_of(q, train, unit * exp2(i), &seconds, err);
        if (!status && seconds > q->in.within_s && (*most > 0.0 || unit > 1.0)) break;
        if (!status && seconds <= q->in.within_s) *most = unit * exp2(i);
    }
    for (double part = *most / 2.0; part >= *most / 8.0 && part >= unit && !status; part /= 2.0) {
        status = step_of(q, train, *most + part, &seconds, err);
        if (!status && seconds <= q->in.within_s) *most += part;
    }
    return status;
}

sm_status sm_train_batch_most(sm_train_asked *q, sm_error *err) {
    sm_train *train = NULL;
    double most = 0.0, odd = sm_odd_part(q->in.system->chips);
    sm_status status = sm_train_new(&q->job, &train, err);
    if (!status) status = most_of(q, train, odd, &most, err);
    if (!status && most <= 0.0 && odd > 1.0) status = most_of(q, train, 1.0, &most, err);
    sm_train_free(train);
    if (status) return status;
    q->batch.sequences = fmax(most, 1.0);
    q->batch.missed = most <= 0.0;
    q->batch.asked_tokens = q->job.batch_tokens = q->batch.sequences * q->job.seq;
    return SM_OK;
}

/* A batch as it was given, that few replicas can share. */
static void sharing_note(sm_report *r, const sm_train_asked *q, double sequences) {
    const int chips = q->system->chips;
    double other = sequences < 1e9 ? shared_by(sequences, chips) : 0;
    bool limited = (q->in_frameworks || q->in.framework) && !q->batch.most && !q->priced_only;
    if (!limited || other <= 0) return;
    int odd = (int)sm_odd_part(chips), now = (int)sequences, then = (int)other;
    int more = sm_common_factor(then, odd) - sm_common_factor(now, odd);
    if (more == 0) more = sm_common_factor(then, chips) - sm_common_factor(now, chips);
    if (more <= 0) return;
    sm_put(r, r->data, "batch_shared_by_more", other);
    sm_report_text(
        r,
        "Frameworks give every replica whole microbatches: --batch %.0fseqs, %.1f %% %s, "
        "can be shared by more of the %d chips.",
        other, 100.0 * fabs(other / sequences - 1.0), other > sequences ? "more" : "less", chips);
}

void sm_train_batch_page(sm_report *r, const sm_train_asked *q, double sequences, double most) {
    double seq = q->job.seq, tokens = sequences * seq, asked = q->batch.asked_tokens;
    const char *seqs =
        sm_textf(r, "A batch is %s sequence%s of %s tokens", sm_show_exact(r, sequences),
                 sequences == 1.0 ? "" : "s", sm_show_exact(r, seq));
    const char *why = q->in.seq <= 0.0   ? " (the length taken when --seq is not given)"
                      : q->in.seq == seq ? ""
                                         : " (the model's own, whatever --seq says)";
    double nearest = fmax(1.0, round(asked / seq));
    if (most > sequences)
        sm_report_text(r,
                       "A batch is %s to %s sequences of %s tokens%s, about the %s tokens asked "
                       "for, as each system's chips can share it.",
                       sm_show_exact(r, sequences), sm_show_exact(r, most), sm_show_exact(r, seq),
                       why, sm_show_exact(r, asked));
    else if (q->batch.missed)
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
            "%s%s: %s tokens, %.1f %% %s than the %s asked for, to divide among the chips; --batch "
            "%.0fseqs takes the nearest.",
            seqs, why, sm_show_exact(r, tokens), 100.0 * fabs(tokens / asked - 1.0),
            tokens > asked ? "more" : "less", sm_show_exact(r, asked), nearest);
    sm_thousands_note(r, q->in.model, seq);
    sharing_note(r, q, sequences);
}

/* Texts behind prompts: the prompts in one pass, then token by token, or as a draft proposes.
 * Drafts are verified by speculative sampling (Leviathan et al., arXiv 2211.17192, algorithm 1;
 * Chen et al., arXiv 2302.01318): what is written has the distribution of the model alone. */
#include "scalemodel/run_generate.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Words from scores, and speculative sampling: a word drafted from q is kept with probability
 * min(1, p/q); else one is drawn from max(0, p - q), so that the word follows p in either case
 * (Leviathan et al., arXiv 2211.17192, section 2.3). */

size_t sm_draw_best(const float *scores, size_t words) {
    size_t best = 0;
    assert(words > 0);
    for (size_t w = 1; w < words; w++)
        if (scores[w] > scores[best]) best = w;
    return best;
}

void sm_draw_distribution(const float *scores, size_t words, double temperature, double *p) {
    assert(temperature > 0);
    double most = (double)scores[sm_draw_best(scores, words)], sum = 0;
    for (size_t w = 0; w < words; w++) sum += p[w] = exp(((double)scores[w] - most) / temperature);
    for (size_t w = 0; w < words; w++) p[w] /= sum;
}

/* What rounding leaves at the end goes to the last word that can be drawn. */
size_t sm_draw_word(const double *p, size_t words, double u) {
    size_t last = 0;
    for (size_t w = 0; w < words; w++) {
        if (!(p[w] > 0)) continue;
        u -= p[w];
        last = w;
        if (u < 0) break;
    }
    return last;
}

/* One word from max(0, p - q). Where rounding leaves nothing of it, p and q are the same. */
static size_t draw_rest(const double *p, const double *q, size_t words, double u) {
    double sum = 0;
    size_t last = words;
    for (size_t w = 0; w < words; w++) sum += fmax(0, p[w] - q[w]);
    if (!(sum > 0)) return sm_draw_word(p, words, u);
    u *= sum;
    for (size_t w = 0; w < words; w++) {
        if (!(p[w] > q[w])) continue;
        u -= p[w] - q[w];
        last = w;
        if (u < 0) break;
    }
    return last;
}

size_t sm_draw_speculative(const double *p, const double *q, size_t words, size_t drafted,
                           double u_keep, double u_word, bool *kept) {
    *kept = u_keep * q[drafted] < p[drafted];
    return *kept ? drafted : draw_rest(p, q, words, u_word);
}

/* What a pass made of a sequence: drafted tokens that stay, and the one behind them. */
typedef struct verdict {
    size_t kept;
    int32_t next;
} verdict;

typedef struct writer {
    const sm_generate_job *job;
    int32_t *const *text;
    sm_generate_result *result;
    sm_generator_part own;
    size_t sequences, vocabulary; /* of the generators */
    size_t queries;               /* rooms are made for */
    size_t *length, *end;         /* of each text: now, and when it is whole */
    size_t *count, *drafted;
    int32_t *fed, *token; /* [sequences, queries], [sequences] */
    verdict *verdict;
    float *scores; /* [sequences, depth + 1, vocabulary] */
    double *p, *q; /* p of a word, and the draft's [sequences, depth, words] */
} writer;

/* ---- draws: numbers that follow from the seed, the sequence and the place ---- */

typedef enum purpose { DRAW, DRAFT, KEEP } purpose;

static double unit_of(uint64_t seed, size_t sequence, size_t place, purpose why) {
    sm_rng rng = {seed};
    rng.state = sm_rng_next(&rng) + sequence;
    rng.state = sm_rng_next(&rng) + 3 * place + (size_t)why;
    return sm_rng_unit(&rng);
}

double sm_draw_unit(uint64_t seed, size_t sequence, size_t place) {
    return unit_of(seed, sequence, place, DRAW);
}

/* The best word, or one drawn; p: room for what it is drawn from. */
static int32_t choose(const writer *w, size_t sequence, size_t place, purpose why,
                      const float *scores, double *p) {
    size_t words = w->job->words;
    if (!(w->job->temperature > 0)) return (int32_t)sm_draw_best(scores, words);
    sm_draw_distribution(scores, words, w->job->temperature, p);
    return (int32_t)sm_draw_word(p, words, unit_of(w->job->seed, sequence, place, why));
}

/* ---- passes ---- */

static void add(sm_generate_phase *phase, const sm_generator_result *r, double *apart) {
    phase->passes++;
    phase->seconds += r->seconds;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        phase->sum.bytes_predicted[i] += r->bytes_predicted[i];
        phase->sum.bytes_counted[i] += r->bytes_counted[i];
        phase->sum.collective_s[i] += r->collective_s[i];
        *apart += fabs(r->bytes_predicted[i] - r->bytes_counted[i]);
    }
}

/* The next count[i] tokens of each text that the generator has not seen. */
static sm_status feed(writer *w, sm_generator *g, size_t queries, bool each,
                      sm_generate_phase *phase, sm_error *err) {
    sm_generator_pass pass = {queries, w->fed, w->count, each};
    sm_generator_result r;
    memset(w->fed, 0, w->sequences * queries * sizeof *w->fed);
    for (size_t i = 0; i < w->sequences; i++)
        if (w->count[i])
            memcpy(w->fed + i * queries, w->text[i] + sm_generator_cached(g, i),
                   w->count[i] * sizeof *w->fed);
    sm_status status = sm_generator_feed(g, &pass, w->scores, &r, err);
    if (!status) add(phase, &r, &w->result->bytes_apart);
    return status;
}

static bool is_text(const writer *w, size_t sequence) { return sequence < w->job->sequences; }

/* Half of the pass that prompts are fed in. */
static sm_status read_sources(writer *w, sm_error *err) {
    const sm_generator_size size = sm_generator_size_of(w->job->target);
    const size_t source = size.source, each = size.pictures, rows = w->sequences * each;
    sm_generator_result r;
    if (!source) return SM_OK;
    int32_t *token = sm_calloc(rows * source, sizeof *token);
    size_t *number = sm_calloc(2 * rows, sizeof *number), *place = number + rows;
    sm_status status = token && number ? SM_OK : sm_fail_memory(err);
    const size_t own = rows / sm_generator_groups(w->job->target); /* of a group */
    for (size_t k = 0; !status && k < rows; k++) {
        const size_t i = k / each,
                     read = is_text(w, i) && w->job->read ? w->job->read[i] : !size.rows;
        number[k] = !size.listens ? read : !size.rows || k % each < read ? source : 0;
        place[k] = k % own;
        if (!size.listens && is_text(w, i) && read <= source)
            memcpy(token + k * source, w->job->source[i], read * sizeof *token);
    }
    const sm_generator_source all = {own, size.listens ? NULL : token, w->job->given, number,
                                     place};
    if (!status) status = sm_generator_read(w->job->target, &all, &r, err);
    if (!status) add(&w->result->prefill, &r, &w->result->bytes_apart);
    w->result->prefill.passes = 0;
    sm_free(token);
    sm_free(number);
    return status;
}

static sm_status feed_prompts(writer *w, sm_generator *g, sm_generate_phase *phase, sm_error *err) {
    size_t most = 0;
    for (size_t i = 0; i < w->job->sequences; i++) {
        w->count[i] = w->job->prompt[i];
        if (w->count[i] > most) most = w->count[i];
    }
    return feed(w, g, most, false, phase, err);
}

static size_t own_end(const writer *w) { return w->own.first + w->own.n; }

/* ---- drafting ---- */

static double *draft_p(const writer *w, size_t sequence, size_t step) {
    return w->q + (sequence * (size_t)w->job->depth + step) * w->job->words;
}

/* One token follows in any case: no more are drafted than leave room for it. */
static sm_status draft(writer *w, sm_error *err) {
    size_t steps = 0;
    sm_status status = SM_OK;
    for (size_t i = 0; i < w->job->sequences; i++) {
        size_t left = w->end[i] - w->length[i];
        w->drafted[i] = left == 0 ? 0 : left - 1;
        if (w->drafted[i] > (size_t)w->job->depth) w->drafted[i] = (size_t)w->job->depth;
        if (w->drafted[i] > steps) steps = w->drafted[i];
    }
    for (size_t k = 0; !status && k < steps; k++) {
        /* The draft first reads what it has not seen, then its own tokens. */
        size_t most = 0;
        for (size_t i = 0; i < w->job->sequences; i++) {
            size_t seen = sm_generator_cached(w->job->draft, i);
            w->count[i] = k < w->drafted[i] ? w->length[i] + k - seen : 0;
            if (w->count[i] > most) most = w->count[i];
        }
        status = feed(w, w->job->draft, most, false, &w->result->draft, err);
        for (size_t i = w->own.first; !status && i < own_end(w); i++)
            if (is_text(w, i) && w->count[i])
                w->token[i] = choose(w, i, w->length[i] + k, DRAFT, w->scores + i * w->vocabulary,
                                     draft_p(w, i, k));
        if (!status) status = sm_generator_share(w->job->draft, w->token, sizeof *w->token, err);
        for (size_t i = 0; !status && i < w->job->sequences; i++)
            if (w->count[i]) w->text[i][w->length[i] + k] = w->token[i];
    }
    return status;
}

/* ---- verifying ---- */

static bool keeps(const writer *w, size_t sequence, size_t step, const float *scores,
                  int32_t *next) {
    size_t place = w->length[sequence] + step, words = w->job->words;
    int32_t proposed = w->text[sequence][place];
    bool kept;
    if (!(w->job->temperature > 0)) {
        *next = (int32_t)sm_draw_best(scores, words);
        return *next == proposed;
    }
    sm_draw_distribution(scores, words, w->job->temperature, w->p);
    *next = (int32_t)sm_draw_speculative(w->p, draft_p(w, sequence, step), words, (size_t)proposed,
                                         unit_of(w->job->seed, sequence, place, KEEP),
                                         unit_of(w->job->seed, sequence, place, DRAW), &kept);
    return kept;
}

static verdict judge(const writer *w, size_t sequence, size_t rows) {
    const float *scores = w->scores + sequence * rows * w->vocabulary;
    verdict v = {0, 0};
    for (; v.kept < w->drafted[sequence]; v.kept++, scores += w->vocabulary)
        if (!keeps(w, sequence, v.kept, scores, &v.next)) return v;
    v.next = choose(w, sequence, w->length[sequence] + v.kept, DRAW, scores, w->p);
    return v;
}

/* What the scores of a pass make of each text that it fed: what was drafted and stays, and a token
 * behind it. rows: of scores of each. */
static sm_status settle(writer *w, size_t rows, sm_error *err) {
    for (size_t i = w->own.first; i < own_end(w); i++)
        if (is_text(w, i) && w->count[i]) w->verdict[i] = judge(w, i, rows);
    sm_status status = sm_generator_share(w->job->target, w->verdict, sizeof *w->verdict, err);
    for (size_t i = 0; !status && i < w->job->sequences; i++)
        if (w->count[i]) {
            size_t *length = &w->length[i];
            w->result->drafted += (double)w->drafted[i];
            w->result->accepted += (double)w->verdict[i].kept;
            assert(w->verdict[i].kept <= w->drafted[i] && *length + w->verdict[i].kept < w->end[i]);
            *length += w->verdict[i].kept;
            w->text[i][(*length)++] = w->verdict[i].next;
            sm_generator_rewind(w->job->target, i, *length - 1);
            if (w->job->draft) sm_generator_rewind(w->job->draft, i, *length - 1);
        }
    return status;
}

static sm_status verify(writer *w, sm_error *err) {
    size_t rows = w->job->draft ? (size_t)w->job->depth + 1 : 1;
    for (size_t i = 0; i < w->job->sequences; i++)
        w->count[i] = w->length[i] < w->end[i] ? w->drafted[i] + 1 : 0;
    sm_status status = feed(w, w->job->target, rows, true, &w->result->decode, err);
    return status ? status : settle(w, rows, err);
}

static bool done(const writer *w) {
    for (size_t i = 0; i < w->job->sequences; i++)
        if (w->length[i] < w->end[i]) return false;
    return true;
}

/* ---- texts ---- */

static sm_status write_texts(writer *w, sm_error *err) {
    const sm_generate_job *job = w->job;
    for (size_t i = 0; i < job->sequences; i++) {
        w->length[i] = job->prompt[i];
        w->end[i] = job->prompt[i] + job->tokens;
    }
    sm_status status = read_sources(w, err);
    if (!status && job->draft) status = feed_prompts(w, job->draft, &w->result->draft_prefill, err);
    if (!status) status = feed_prompts(w, job->target, &w->result->prefill, err);
    double begun_s = sm_clock_s();
    if (!status) status = settle(w, 1, err);
    while (!status && !done(w)) {
        if (job->draft) status = draft(w, err);
        if (!status) status = verify(w, err);
    }
    w->result->seconds = sm_clock_s() - begun_s;
    return status;
}

sm_status sm_generate_states(const sm_generate_job *job, int32_t *const *text, float *states,
                             sm_generate_result *result, sm_error *err) {
    const sm_generator_size size = sm_generator_size_of(job->target);
    size_t queries = size.source, n = size.sequences;
    *result = (sm_generate_result){.seconds = 0};
    for (size_t i = 0; !size.source && i < job->sequences; i++)
        if (job->prompt[i] > queries) queries = job->prompt[i];
    int32_t *token = sm_calloc(n * queries, sizeof *token);
    size_t *count = sm_calloc(n, sizeof *count);
    sm_generator_result r;
    sm_status status = token && count ? SM_OK : sm_fail_memory(err);
    for (size_t i = 0; !status && i < n; i++) {
        count[i] = size.listens ? queries : i < job->sequences ? job->prompt[i] : 1;
        if (!size.listens && i < job->sequences)
            memcpy(token + i * queries, text[i], count[i] * sizeof *token);
    }
    const sm_generator_pass pass = {queries, token, count, true};
    if (!status) status = sm_generator_states(job->target, &pass, job->given, states, &r, err);
    if (!status) add(&result->prefill, &r, &result->bytes_apart);
    sm_free(token);
    sm_free(count);
    return status;
}

static sm_status check(const sm_generate_job *job, sm_error *err) {
    sm_generator_size target = sm_generator_size_of(job->target);
    if (job->sequences < 1 || job->sequences > target.sequences || job->tokens < 1)
        return sm_fail(err, SM_BAD_INPUT, "%zu texts of %zu more tokens are none, or too many",
                       job->sequences, job->tokens);
    for (size_t i = 0; i < job->sequences; i++)
        if (job->prompt[i] < 1 || job->prompt[i] + job->tokens > target.room)
            return sm_fail(err, SM_BAD_INPUT,
                           "a prompt of %zu tokens and %zu more do not go into "
                           "a cache of %zu",
                           job->prompt[i], job->tokens, target.room);
    if (target.source && !target.listens && !job->source)
        return sm_fail(err, SM_BAD_INPUT, "there is no text to be read first");
    if (!job->draft) return SM_OK;
    sm_generator_size draft = sm_generator_size_of(job->draft);
    sm_generator_part a = sm_generator_own(job->target), b = sm_generator_own(job->draft);
    if (job->depth < 1) return sm_fail(err, SM_BAD_INPUT, "a draft proposes at least one token");
    if (draft.source || target.source)
        return sm_fail(err, SM_BAD_INPUT,
                       "nothing is drafted for a model that reads one text and writes another, or "
                       "by it");
    if (draft.scans || target.scans)
        return sm_fail(err, SM_BAD_INPUT,
                       "the state of a scan cannot go back, so that nothing is drafted for a model "
                       "with one, or by it");
    if (draft.vocabulary != target.vocabulary)
        return sm_fail(err, SM_BAD_INPUT,
                       "the draft has a vocabulary of %zu words and the model one of %zu",
                       draft.vocabulary, target.vocabulary);
    if (draft.sequences != target.sequences || draft.room < target.room || a.first != b.first ||
        a.n != b.n)
        return sm_fail(err, SM_BAD_INPUT, "the draft holds other sequences than the model");
    return SM_OK;
}

sm_status sm_generate(const sm_generate_job *job, int32_t *const *text, sm_generate_result *result,
                      sm_error *err) {
    *result = (sm_generate_result){.seconds = 0};
    sm_status status = check(job, err);
    if (status) return status;
    sm_generator_size size = sm_generator_size_of(job->target);
    writer w = {.job = job,
                .text = text,
                .result = result,
                .own = sm_generator_own(job->target),
                .sequences = size.sequences,
                .vocabulary = size.vocabulary,
                .queries = size.room};
    size_t n = w.sequences, depth = w.job->draft ? (size_t)w.job->depth : 0;
    sm_arena *arena = sm_arena_new();
    w.length = sm_arena_array(arena, n, sizeof *w.length);
    w.end = sm_arena_array(arena, n, sizeof *w.end);
    w.count = sm_arena_array(arena, n, sizeof *w.count);
    w.drafted = sm_arena_array(arena, n, sizeof *w.drafted);
    w.token = sm_arena_array(arena, n, sizeof *w.token);
    w.verdict = sm_arena_array(arena, n, sizeof *w.verdict);
    w.fed = sm_arena_array(arena, n * w.queries, sizeof *w.fed);
    w.scores = sm_arena_array(arena, n * (depth + 1) * w.vocabulary, sizeof *w.scores);
    w.p = sm_arena_array(arena, w.job->words, sizeof *w.p);
    w.q = sm_arena_array(arena, n * depth * w.job->words + 1, sizeof *w.q);
    bool all = w.length && w.end && w.count && w.drafted && w.token && w.verdict && w.fed &&
               w.scores && w.p && w.q;
    status = all ? SM_OK : sm_fail_memory(err);
    if (!status) status = write_texts(&w, err);
    sm_arena_free(arena);
    return status;
}

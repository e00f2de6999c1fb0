/* answer_mfu: a told MFU, FLOP/s, tokens/s or time of a step as seconds, and in the count of every
 * code base (codebase.h). */
#include "question.h"
#include <string.h>

enum { WORDS_ROOM = 160 };

typedef struct asked_mfu {
    sm_mfu_question in;
    double batch; /* tokens of a step */
    sm_flops_count count;
    const sm_codebase *of; /* whose count the figure is; NULL: told without one */
    const char *figure;    /* as told */
    double tokens_per_s;   /* of a chip */
} asked_mfu;

static const char *month(sm_report *r, int from) {
    return sm_textf(r, "%d-%02d", (from - 1) / 12, (from - 1) % 12 + 1);
}

/* ---- the figure ---- */

typedef enum figure_kind { SHARE, FLOPS_PER_S, TOKENS_PER_S, STEP } figure_kind;

static bool ends_with(const sm_source *s, sm_span *span, const char *tail) {
    size_t n = strlen(tail);
    if (span->length < n || memcmp(s->text + span->offset + span->length - n, tail, n) != 0)
        return false;
    *span = sm_source_trim(s, span->offset, span->offset + span->length - n);
    return true;
}

/* "46 %", "0.46", "420 TFLOP/s", "3.2k tokens/s", "3.2 s". */
static sm_status read_number(const sm_source *s, sm_span span, figure_kind *kind, double *value,
                             sm_error *err) {
    sm_span number = span;
    *kind = SHARE;
    if (ends_with(s, &number, "%")) {
        sm_status status = sm_quantity_parse(s, number, SM_Q_COUNT, value, err);
        *value /= 100;
        return status;
    }
    if (ends_with(s, &number, "tokens/s")) {
        *kind = TOKENS_PER_S;
        return sm_quantity_parse(s, number, SM_Q_COUNT, value, err);
    }
    if (ends_with(s, &number, "/s") || ends_with(s, &number, "FLOPS")) {
        *kind = FLOPS_PER_S;
        return sm_quantity_parse(s, span, SM_Q_FLOPS_PER_S, value, err);
    }
    if (ends_with(s, &number, "s") || ends_with(s, &number, "min")) {
        *kind = STEP;
        return sm_quantity_parse(s, span, SM_Q_SECONDS, value, err);
    }
    return sm_quantity_parse(s, span, SM_Q_COUNT, value, err);
}

static sm_status read_figure(const sm_source *s, sm_span span, figure_kind *kind, double *value,
                             sm_error *err) {
    if (read_number(s, span, kind, value, NULL) == SM_OK) return SM_OK;
    return sm_fail_at(
        err, s, span,
        "expected a figure: 46 %%, 420 TFLOP/s or 3.2k tokens/s of a chip, 3.2 s a step");
}

static sm_status no_count(const sm_source *s, sm_span span, sm_error *err) {
    return sm_fail_at(err, s, span,
                      "expected whose count it is and the figure: 'maxtext@2025-06 46 %%', "
                      "'causal 420 TFLOP/s', '3.2k tokens/s' of a chip or '3.2 s'");
}

/* Tokens/s of a chip, from the figure. */
static sm_status take_figure(asked_mfu *q, sm_span figure, sm_error *err) {
    const sm_source *s = &q->in.from;
    const sm_chip *chip = &q->in.system->chip;
    figure_kind kind;
    double value, flops = sm_flops_counted(&q->count, q->in.model, q->in.seq);
    double peak = sm_flops_peak(&q->count, chip, q->in.dtype);
    sm_status status = read_figure(s, figure, &kind, &value, err);
    if (!status && isnan(flops)) status = sm_fail_memory(err);
    if (status) return status;
    if (!(value > 0)) return sm_fail_at(err, s, figure, "expected a figure above 0");
    if (kind == SHARE && !(peak > 0))
        return sm_fail_at(err, s, figure, "%s has no peak with sparsity", chip->name);
    q->tokens_per_s = kind == SHARE         ? value * peak / flops
                      : kind == FLOPS_PER_S ? value / flops
                      : kind == STEP        ? q->batch / value / q->in.system->chips
                                            : value;
    return SM_OK;
}

/* "COUNT FIGURE", or a figure that nobody counts. */
static sm_status read_from(asked_mfu *q, sm_report *r, sm_error *err) {
    const sm_source *s = &q->in.from;
    sm_span all = sm_source_trim(s, 0, s->length);
    const char *text = s->text + all.offset;
    size_t word = 0;
    while (word < all.length && text[word] != ' ' && text[word] != '\t') word++;
    bool counted = all.length > 0 && !(text[0] >= '0' && text[0] <= '9') && text[0] != '.';
    sm_span name = {all.offset, word};
    sm_span figure = counted ? sm_source_trim(s, all.offset + word, all.offset + all.length) : all;
    figure_kind kind = SHARE;
    double value;
    if (figure.length == 0) return no_count(s, all, err);
    if (counted) {
        sm_status status = sm_flops_count_parse(s, name, q->in.codebases, q->in.n_codebases,
                                                &q->count, &q->of, err);
        if (status) return status;
    } else {
        sm_status status = read_figure(s, figure, &kind, &value, err);
        if (status) return status;
        if (kind == SHARE || kind == FLOPS_PER_S) return no_count(s, all, err);
    }
    q->figure = sm_textf(r, "%.*s", (int)figure.length, s->text + figure.offset);
    return take_figure(q, figure, err);
}

/* ---- the table ---- */

typedef struct told {
    double flops, peak, flops_per_s;
} told;

static told tell(sm_report *r, const asked_mfu *q, const sm_flops_count *c) {
    double flops = sm_flops_counted(c, q->in.model, q->in.seq);
    r->out_of_memory |= isnan(flops);
    return (told){flops, sm_flops_peak(c, &q->in.system->chip, q->in.dtype),
                  flops * q->tokens_per_s};
}

static double share_of(const told *t) { return t->peak > 0 ? t->flops_per_s / t->peak : NAN; }

static void put_count(sm_report *r, sm_data *object, const asked_mfu *q, const sm_flops_count *c,
                      const told *t) {
    static const char *const of[] = {SM_COUNTED_PARAMETERS(SM_NAME_OF)};
    static const char *const pairs[] = {SM_COUNTED_ATTENTION(SM_NAME_OF)};
    static const char *const again[] = {SM_COUNTED_AGAIN(SM_NAME_OF)};
    static const char *const peaks[] = {SM_COUNTED_PEAK(SM_NAME_OF)};
    sm_put(r, object,
           "figure|parameters|attention|all_windows|again|peak|peak_flops_per_s|flops_per_token",
           c->figure, of[c->parameters], pairs[c->attention], c->all_windows, again[c->again],
           c->peak_flops_per_s > 0 ? "fixed" : peaks[c->peak], t->peak, t->flops);
    if (q->figure)
        sm_put(r, object, "flops_per_s_per_chip|utilisation", t->flops_per_s, share_of(t));
    sm_put(r, object, "source", c->source);
}

static const char *name_of(sm_report *r, const sm_codebase *base, const sm_flops_count *c) {
    return base->counts > 1 ? sm_textf(r, "%s@%s", base->name, month(r, c->from)) : base->name;
}

/* Those of the question, then those that are shipped; NULL behind them. */
static const sm_codebase *base_at(const asked_mfu *q, size_t i) {
    if (i < q->in.n_codebases) return &q->in.codebases[i];
    i -= q->in.n_codebases;
    return i < sm_codebase_count() ? sm_codebase_at(i) : NULL;
}

static void every_count(sm_report *r, const asked_mfu *q) {
    const char *as_told = q->figure ? "" : "-";
    sm_table *table = sm_page_table(
        r,
        q->figure ? "The same speed in every count"
                  : "FLOPs of training on a token, in every count",
        sm_textf(r, "<count|%s>{%%}share|%s>FLOP/s|>{n}FLOPs/token|%s>{FLOP/s}peak|<as|<counts",
                 as_told, as_told, q->figure ? "-" : ""));
    sm_table *sources = sm_page_table(r, "Where each says so", "<count|<source");
    sm_data *list = sm_put_array(r, r->data, "counts");
    const sm_codebase *base;
    for (size_t i = 0; (base = base_at(q, i)) != NULL; i++)
        for (int k = 0; k < base->counts; k++) {
            const sm_flops_count *c = &base->count[k];
            char words[WORDS_ROOM];
            told t = tell(r, q, c);
            const char *name = name_of(r, base, c), *since = month(r, c->from);
            sm_data *object = sm_put_object(r, list, NULL);
            sm_put(r, object, "codebase|title|since", base->name, base->title, since);
            put_count(r, object, q, c, &t);
            sm_flops_count_words(c, words, sizeof words);
            sm_page_row(r, table, name, share_of(&t), sm_show_rate(r, t.flops_per_s, ""), t.flops,
                        t.peak > 0 ? t.peak : NAN, c->figure, words);
        }
    sm_report_text(r, "A month says since when; %s.%s",
                   "'NAME@2025-06' is how it counted then, without a month how it counts today",
                   q->in.explain ? "" : " --explain names the source of each.");
    for (size_t i = 0; q->in.explain && (base = base_at(q, i)) != NULL; i++)
        for (int k = 0; k < base->counts; k++)
            sm_page_row(r, sources, name_of(r, base, &base->count[k]), base->count[k].source);
}

/* ---- the page ---- */

static const char *whose(sm_report *r, const asked_mfu *q) {
    char words[WORDS_ROOM];
    if (!q->of && !q->count.source) return "";
    sm_flops_count_words(&q->count, words, sizeof words);
    if (!q->of) return sm_textf(r, " (%s)", words);
    return sm_textf(r, " as %s counts since %s (%s)", q->of->title, month(r, q->count.from), words);
}

/* The count that no step can beat: what must be multiplied, over the dense peak. */
static double least_share(sm_report *r, const asked_mfu *q) {
    sm_flops_count own = {.attention = SM_COUNTED_CAUSAL};
    told t = tell(r, q, &own);
    return t.flops_per_s / t.peak;
}

static void speed(sm_report *r, const asked_mfu *q) {
    const sm_system *system = q->in.system;
    double sequences = q->batch / q->in.seq, all = q->tokens_per_s * system->chips;
    sm_table *table = sm_page_table(r, NULL, "<in seconds|>|<");
    sm_page_row(r, table, "step", sm_show_seconds(r, q->batch / all),
                sm_textf(r, "of %s sequences of %s tokens on %s chip%s",
                         sm_show_number(r, sequences), sm_show_exact(r, q->in.seq),
                         sm_show_exact(r, system->chips), system->chips == 1 ? "" : "s"));
    sm_page_row(r, table, "tokens/s", sm_show_count(r, all),
                sm_textf(r, "%s of a chip", sm_show_count(r, q->tokens_per_s)));
    sm_put(r, r->data, "step_time_s|tokens_per_s|tokens_per_s_per_chip", q->batch / all, all,
           q->tokens_per_s);
}

static void explain(sm_report *r, const asked_mfu *q) {
    told t = tell(r, q, &q->count);
    double all = q->tokens_per_s * q->in.system->chips;
    r->why =
        sm_page_why(r, NULL, "step", "tokens / (tokens/s of a chip x chips)", q->batch / all, "s");
    sm_page_given(r, r->why, "tokens of a step", q->batch, "tokens");
    sm_page_given(r, r->why, "chips", q->in.system->chips, "");
    sm_page_leaf(r, r->why, "tokens/s of a chip", q->tokens_per_s, "tokens/s",
                 q->count.source ? "FLOP/s of a chip / FLOPs a token" : "given");
    if (!q->count.source) return;
    sm_page_leaf(r, r->why, "FLOPs a token", t.flops, "FLOP", q->count.source);
    sm_page_leaf(r, r->why, "peak", t.peak, "FLOP/s", "of the chip, as this count takes it");
}

static sm_status defaults(asked_mfu *q, sm_error *err) {
    sm_status status = sm_question_needs(q->in.model && q->in.system, "a model and a system", err);
    if (!status) status = sm_question_limit("seq", q->in.seq, 1e9, err);
    if (status) return status;
    double chips = q->in.system->chips, sequences = chips;
    q->in.seq = sm_train_seq(q->in.model, q->in.seq);
    if (isnan(q->in.seq)) return sm_fail_memory(err);
    if (q->in.batch.text)
        status = sm_batch_sequences(&q->in.batch, q->in.seq, chips, &sequences, err);
    q->batch = sequences * q->in.seq;
    return status;
}

sm_status sm_answer_mfu(const sm_mfu_question *question, sm_report *r, sm_error *err) {
    asked_mfu q = {.tokens_per_s = NAN};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (!status) status = defaults(&q, err);
    if (!status && q.in.from.text) status = read_from(&q, r, err);
    if (status) return status;
    const sm_chip *chip = &q.in.system->chip;
    if (q.figure)
        sm_report_heading(r, "%s on %s: %s%s", q.in.model->name, q.in.system->text, q.figure,
                          whose(r, &q));
    else sm_report_heading(r, "%s on %s: what counts as FLOPs", q.in.model->name, chip->name);
    sm_put(r, r->data, "command|model|system|dtype|seq|batch_tokens|chips", "mfu", q.in.model->name,
           q.in.system->text, sm_dtype_name(q.in.dtype), q.in.seq, q.batch, q.in.system->chips);
    sm_thousands_note(r, q.in.model, q.in.seq);
    sm_units_note(r, chip, q.in.dtype);
    if (q.figure) speed(r, &q);
    bool possible = !q.figure || least_share(r, &q) <= 1;
    if (!possible)
        sm_report_text(
            r,
            "No chip of this kind is that quick: it would be %s of the dense peak in %s, "
            "by the products alone that every step has.",
            sm_show_percent(r, least_share(r, &q)), sm_dtype_name(q.in.dtype));
    every_count(r, &q);
    if (q.figure) sm_put(r, r->data, "possible", possible);
    if (q.in.explain && q.figure) explain(r, &q);
    return possible ? SM_OK : SM_NEGATIVE;
}

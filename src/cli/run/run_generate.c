/* run generate: texts from a checkpoint of run train, on ranks that share sequences, heads,
 * experts, positions and layers as a plan of serving says: the prompts in one pass, then byte by
 * byte, or as a draft model proposes. */
#include "seen_pictures.h"
#include "serving_model.h"
#include <stdlib.h>

enum { GENERATION_MOST_TOKENS = 1 << 20 }; /* of a prompt, and generated */

typedef struct run_generate_values {
    ranks_values ranks;
    cli_list prompt, ids;
    const char *checkpoint, *prompts, *features, *plan, *draft, *draft_checkpoint;
    int64_t tokens, seed, speculate;
    double temperature;
    int weights;
    prediction_values predicted;
    cli_model_values read_by;
} run_generate_values;

typedef struct generation_price {      /* seconds of a pass */
    double pass_s[2], draft_pass_s[2]; /* of a prompt, of what is written; of the draft's */
} generation_price;

/* What a call's values are. */
typedef struct values {
    run_generate_values given;
    const cli_call *call;
    serving_model target, draft;
    bool drafts;
    sm_plan plan;
    size_t prompts;
    const int32_t **prompt;
    size_t *prompt_tokens;
    bool numbers;           /* prompts are numbers of words, not bytes */
    size_t longest, tokens; /* longest: of the prompts */
    /* Of a model that reads one text and writes another: the prompts, which it reads, while what it
     * writes begins with a word of its config; NULL of others. */
    const int32_t **source;
    size_t *read;
    seen_shape shape;   /* of what it hears or sees, */
    const float *hears; /* which is this */
    size_t pictures;    /* of a prompt, at most */
    bool tells;         /* it chooses no words: what it makes of each token is told */
    float *states;      /* [sequences, each_most, width] */
    size_t each_most, width;
    int depth;
    sm_system system;
    generation_price price;
    sm_serve *serve; /* prices the model */
    /* answers, written by rank 0 */
    int32_t **text, *words; /* of each prompt, with what follows; all of them */
    sm_generate_result result;
    double bytes_apart; /* over all ranks and passes */
    double held;        /* bytes of weights on the rank that has most */
} generation;

/* What `run generate` is asked: prompts, models, and the plan of serving they run under. */

enum { MOST_PROMPTS = 1024, BYTES = 256 };

static sm_status read_numbers(generation *g, sm_error *err) {
    bool speculates = cli_given(g->call, &g->given.speculate);
    g->tokens = (size_t)g->given.tokens;
    g->depth = (int)g->given.speculate;
    g->drafts = g->given.draft != NULL;
    g->pictures = 1;
    if (!g->drafts && (speculates || g->given.draft_checkpoint))
        return sm_fail(err, SM_USAGE, "%s needs --draft MODEL",
                       speculates ? "--speculate" : "--draft-checkpoint");
    return g->drafts ? cli_need(g->call, &g->given.draft_checkpoint, err) : SM_OK;
}

/* ---- prompts ---- */

static sm_status add_prompt(generation *g, const int32_t *token, size_t n, sm_error *err) {
    if ((n < 1 && !g->shape.width) || n > GENERATION_MOST_TOKENS)
        return sm_fail(err, SM_BAD_INPUT, "a prompt has from 1 to %d %s", GENERATION_MOST_TOKENS,
                       g->numbers ? "tokens" : "bytes");
    if (g->prompts == MOST_PROMPTS)
        return sm_fail(err, SM_BAD_INPUT, "there are more than %d prompts", MOST_PROMPTS);
    if (n > g->longest) g->longest = n;
    g->prompt[g->prompts] = token;
    g->prompt_tokens[g->prompts++] = n;
    return SM_OK;
}

static sm_status add_bytes(generation *g, const char *text, size_t bytes, sm_error *err) {
    int32_t *token = sm_arena_array(g->call->arena, bytes + 1, sizeof *token);
    if (!token) return sm_fail_memory(err);
    for (size_t i = 0; i < bytes; i++) token[i] = (unsigned char)text[i];
    return add_prompt(g, token, bytes, err);
}

/* "11,48,85": numbers of words, between commas or spaces. */
static sm_status add_numbers(generation *g, const char *text, sm_error *err) {
    const sm_source source = sm_source_of("--ids", text);
    int32_t *token = sm_arena_array(g->call->arena, source.length + 1, sizeof *token);
    size_t n = 0;
    if (!token) return sm_fail_memory(err);
    for (const char *at = text + strspn(text, ", "); *at; at += strspn(at, ", ")) {
        char *end;
        long number = strtol(at, &end, 10);
        bool whole = end > at && (*end == 0 || strchr(", ", *end));
        if (!whole || *at == '+' || *at == '-' || number > INT32_MAX)
            return sm_fail_at(err, &source, (sm_span){(size_t)(at - text), strcspn(at, ", ")},
                              "the numbers of words are whole, with commas between them");
        token[n++] = (int32_t)number;
        at = end;
    }
    return add_prompt(g, token, n, err);
}

/* One on each line that is not empty. */
static sm_status read_lines(generation *g, const char *path, sm_error *err) {
    sm_source source;
    sm_status status = sm_io_read(path, g->call->arena, &source, err);
    for (size_t at = 0; !status && at < source.length;) {
        const char *line = source.text + at, *end = memchr(line, '\n', source.length - at);
        size_t bytes = end ? (size_t)(end - line) : source.length - at;
        if (bytes) status = add_bytes(g, line, bytes, err);
        at += bytes + 1;
    }
    return status;
}

static sm_status read_prompts(generation *g, sm_error *err) {
    g->prompt = sm_arena_array(g->call->arena, MOST_PROMPTS, sizeof *g->prompt);
    g->prompt_tokens = sm_arena_array(g->call->arena, MOST_PROMPTS, sizeof *g->prompt_tokens);
    if (!g->prompt || !g->prompt_tokens) return sm_fail_memory(err);
    sm_status status = SM_OK;
    g->numbers = g->given.ids.n > 0;
    if (g->numbers && (g->given.prompt.n || g->given.prompts))
        return sm_fail(err, SM_USAGE, "prompts are texts or, with --ids, numbers of words");
    for (int i = 0; !status && i < g->given.ids.n; i++)
        status = add_numbers(g, g->given.ids.text[i], err);
    for (int i = 0; !status && i < g->given.prompt.n; i++)
        status = add_bytes(g, g->given.prompt.text[i], strlen(g->given.prompt.text[i]), err);
    if (!status && g->given.prompts) status = read_lines(g, g->given.prompts, err);
    if (!status && g->prompts == 0 && !g->given.features)
        status = g->given.prompts
                     ? sm_fail(err, SM_BAD_INPUT, "%.200s holds no prompt", g->given.prompts)
                     : sm_fail(err, SM_USAGE,
                               "run generate needs --prompt TEXT, --prompts FILE or --ids LIST");
    return status;
}

/* Texts that pad hear and see nothing. */
static sm_status take_features(generation *g, const sm_train_setup *setup, sm_error *err) {
    const size_t one = g->shape.places * g->shape.width, each = g->pictures;
    sm_safetensors file;
    size_t texts = 0, at = 0, most = 0;
    sm_status status = sm_io_safetensors_read(g->given.features, g->call->arena, &file, err);
    if (!status) status = seen_count(&g->shape, &file, g->given.features, &texts, err);
    for (size_t i = 0; i < g->prompts; i++) most += g->read ? g->read[i] : 1;
    if (!status && texts != most)
        return sm_fail(err, SM_BAD_INPUT, "%.200s is about %zu texts, and there are %zu",
                       g->given.features, texts, most);
    float *told = sm_arena_array(g->call->arena, texts * one + 1, sizeof *told);
    float *given =
        sm_arena_array(g->call->arena, (size_t)setup->sequences * each * one, sizeof *given);
    if (!told || !given) return sm_fail_memory(err);
    if (!status) status = seen_take(&g->shape, &file, told, err);
    for (size_t i = 0; !status && i < g->prompts; i++) {
        const size_t n = g->read ? g->read[i] : 1;
        memcpy(given + i * each * one, told + at * one, n * one * sizeof *given);
        at += n;
    }
    g->hears = given;
    return status;
}

/* ---- pictures among words ---- */

/* Of so many pictures as many are of a prompt as it says, once for each or for each row; else all
 * prompts have as many. */
static sm_status deal_pictures(generation *g, size_t texts, sm_error *err) {
    const sm_picture_words *p = &g->shape.words;
    size_t *said = sm_arena_array(g->call->arena, g->prompts, sizeof *said), all = 0;
    if (!said) return sm_fail_memory(err);
    for (size_t i = 0; i < g->prompts; i++) {
        for (size_t k = 0; g->numbers && k < g->prompt_tokens[i]; k++)
            said[i] += g->prompt[i][k] == p->word;
        all += said[i];
    }
    g->read = said;
    g->pictures = 1;
    for (size_t i = 0; i < g->prompts; i++) {
        if (all == texts * p->rows) said[i] /= p->rows;
        else if (all != texts) said[i] = texts / g->prompts;
        if (said[i] > g->pictures) g->pictures = said[i];
    }
    return SM_OK;
}

static sm_status place_pictures(generation *g, sm_error *err) {
    sm_picture_words words = g->shape.words;
    sm_status status = SM_OK;
    int32_t *placed = NULL;
    if (!g->numbers) words.word = -1;
    for (size_t i = 0; !status && i < g->prompts; i++) {
        status = sm_pictures_place(&words, g->read[i], g->prompt[i], &g->prompt_tokens[i],
                                   g->call->arena, &placed, err);
        g->prompt[i] = placed;
        if (g->prompt_tokens[i] > g->longest) g->longest = g->prompt_tokens[i];
    }
    return status;
}

/* A picture alone is its own prompt: the rows that stand for it, or, told of, its patches. */
static sm_status look(generation *g, serving_model *model, sm_error *err) {
    const sm_model own = model->model;
    const size_t rows = g->shape.words.rows, prompts = g->prompts;
    const bool told = sm_model_reads(&own);
    size_t texts = prompts;
    sm_safetensors file;
    sm_status status = SM_OK;
    if (!texts || (g->given.features && rows)) {
        status = sm_io_safetensors_read(g->given.features, g->call->arena, &file, err);
        if (!status) status = seen_count(&g->shape, &file, g->given.features, &texts, err);
    }
    if (!status && (told || (rows && !prompts))) {
        const size_t n = told ? g->shape.places : 0;
        int32_t *alone = sm_arena_array(g->call->arena, n + 1, sizeof *alone);
        if (!alone) return sm_fail_memory(err);
        g->longest = g->prompts = 0;
        for (size_t i = 0; !status && i < texts; i++) status = add_prompt(g, alone, n, err);
    }
    if (!status && rows) status = deal_pictures(g, texts, err);
    if (!status && rows) status = place_pictures(g, err);
    const sm_padding to = {.source = (int)g->pictures};
    if (status || !rows) return status;
    return sm_model_pad(&own, &to, g->call->arena, &model->model, err);
}

/* A model of two stacks reads the prompts, all padded to the longest; what it writes begins with a
 * word of its config. */
static sm_status take_sources(generation *g, serving_model *m, sm_error *err) {
    sm_arena *arena = g->call->arena;
    const sm_model own = m->model;
    double word = -1;
    sm_status status = seen_shape_of(&m->model, arena, &g->shape, err);
    if (status || !g->shape.source) return status;
    if (g->shape.width) return look(g, m, err); /* the prompts are what it writes behind */
    if (sm_model_reads(&own)) return SM_OK;
    if (!sm_architecture_number(own.architecture, "decoder_start_token_id", &word))
        return sm_fail(err, SM_BAD_INPUT,
                       "what %s writes begins with decoder_start_token_id, which its config lacks",
                       own.name);
    g->source = g->prompt;
    g->read = g->prompt_tokens;
    g->prompt = sm_arena_array(arena, g->prompts, sizeof *g->prompt);
    g->prompt_tokens = sm_arena_array(arena, g->prompts, sizeof *g->prompt_tokens);
    int32_t *first = sm_arena_alloc(arena, sizeof *first);
    if (!first || !g->prompt || !g->prompt_tokens) return sm_fail_memory(err);
    *first = (int32_t)word;
    for (size_t i = 0; i < g->prompts; i++) {
        g->prompt[i] = first;
        g->prompt_tokens[i] = 1;
    }
    const size_t most = g->longest > 1 ? g->longest : 2;
    const sm_padding to = {.source = serving_rounded_up(most, g->plan.context)};
    return sm_model_pad(&own, &to, arena, &m->model, err);
}

/* Does it end in numbers of each token, and no choice of words? Then nothing is written. */
static sm_status find_end(generation *g, const serving_model *m, sm_error *err) {
    const sm_text_lines *head;
    const sm_rules rules = sm_rules_of_pass(&m->model, 1);
    sm_status status = sm_program_lines(&m->model, sm_program_at(&m->model, SM_PIECE_HEAD, 0), 0,
                                        &rules, g->call->arena, &head, err);
    if (status) return status;
    g->tells = head->lines && head->line[head->lines - 1].op != SM_OPERATOR_SAMPLE;
    const char *odd = !g->tells                                   ? NULL
                      : g->drafts                                 ? "--draft"
                      : cli_given(g->call, &g->given.tokens)      ? "--tokens"
                      : cli_given(g->call, &g->given.temperature) ? "--temperature"
                                                                  : NULL;
    if (g->tells) g->tokens = 0;
    if (g->tells && sm_model_stacked(&m->model))
        return sm_fail(err, SM_BAD_INPUT,
                       "%s has two stacks and no head that chooses words, which cannot be run",
                       m->model.name);
    return odd ? sm_fail(err, SM_BAD_INPUT,
                         "%s writes no text behind what it reads, and %s asks for one",
                         m->model.name, odd)
               : SM_OK;
}

static sm_status read_model(generation *g, const cli_model_values *by, const char *name,
                            const char *checkpoint, serving_model *m, sm_error *err) {
    sm_status status = serving_model_read(g->call, by, name, checkpoint, m, err);
    if (!status && m == &g->target) status = find_end(g, m, err);
    if (!status && m == &g->target) status = take_sources(g, m, err);
    if (!status && g->prompts == 0)
        status = sm_fail(err, SM_USAGE,
                         "run generate needs --prompt TEXT, --prompts FILE or --ids LIST");
    size_t fed = g->source ? 1 : g->longest;
    if (g->tells && fed < 2) fed = 2; /* positions are more than one */
    if (!status)
        status = serving_model_lay_out(g->call, &g->plan, fed + g->tokens, g->prompts, m, err);
    if (!status && g->given.features && !g->shape.width)
        status =
            sm_fail(err, SM_BAD_INPUT, "%s reads words alone: --features has nothing to tell it",
                    g->target.model.name);
    if (g->shape.words.rows && m == &g->target) m->setup.pictures = (int)g->pictures;
    if (!status && g->given.features && m == &g->target) status = take_features(g, &m->setup, err);
    return status ? status : serving_model_weights(g->call, g->given.weights, m, err);
}

static sm_status read_question(generation *g, sm_error *err) {
    const sm_model *target = &g->target.model, *draft = &g->draft.model;
    sm_status status = read_numbers(g, err);
    if (!status) status = read_prompts(g, err);
    if (!status) status = serving_plan_read(g->call, &g->given.plan, &g->plan, err);
    cli_model_values *by = &g->given.read_by, drafted_by = {.families = by->families};
    by->sees = drafted_by.sees = g->given.features != NULL;
    if (!status)
        status = read_model(g, by, g->call->positional[0], g->given.checkpoint, &g->target, err);
    if (!status && g->drafts)
        status =
            read_model(g, &drafted_by, g->given.draft, g->given.draft_checkpoint, &g->draft, err);
    if (!status && g->drafts && draft->V != target->V)
        return sm_fail(err, SM_BAD_INPUT,
                       "the draft %s has a vocabulary of %d words and %s one of %d", draft->name,
                       draft->V, target->name, target->V);
    bool narrow = !g->numbers && target->V < BYTES && !(g->tells && g->shape.width);
    if (!status && narrow)
        status = sm_fail(err, SM_BAD_INPUT,
                         "a vocabulary of %d words cannot hold the 256 bytes: --ids takes words",
                         target->V);
    return status;
}

/* What generating is predicted to take: the price of serving, for the passes that are made. */

/* Every sequence puts so many queries to a cache of so many tokens. */
static sm_status price_pass(const generation *g, sm_serve *serve, double queries, double past,
                            double sampled, double *seconds, sm_error *err) {
    double n = g->target.setup.sequences;
    sm_step_batch batch = {.groups = 1,
                           .group = {{.sequences = n, .queries = queries, .past = past}},
                           .sampled = n * sampled};
    sm_step_price price;
    sm_status status = sm_serve_step(serve, &g->plan, &batch, &price, err);
    if (!status) *seconds = price.expected_s;
    return status;
}

/* A prompt's pass, padded to the longest, and one of `queries` bytes at the mean length of a text.
 * constants: NULL for the usual ones of serving; *price is freed by the caller. */
static sm_status price_model(const generation *g, const serving_model *model,
                             const sm_calibration *constants, double queries, double seconds[2],
                             sm_serve **price, sm_error *err) {
    double prompt = 0, tokens = g->tells ? 1 : (double)g->tokens;
    for (size_t i = 0; i < g->prompts; i++) prompt += (double)g->prompt_tokens[i];
    prompt /= (double)g->prompts;
    sm_status status = serving_price_new(model, &g->system, prompt, tokens, constants, price, err);
    if (!status)
        status = price_pass(g, *price, g->source ? 1 : (double)g->longest, 0, 1, &seconds[0], err);
    if (!status)
        status = price_pass(g, *price, queries, prompt + tokens / 2, queries, &seconds[1], err);
    return status;
}

static sm_status predict(generation *g, sm_error *err) {
    const sm_calibration *constants = NULL;
    generation_price *p = &g->price;
    double queries = g->drafts ? g->depth + 1 : 1;
    sm_status status =
        prediction_system(g->call, &g->given.predicted, sm_train_setup_ranks(&g->target.setup),
                          &g->system, &constants, err);
    if (!status) status = price_model(g, &g->target, constants, queries, p->pass_s, &g->serve, err);
    if (status || !g->drafts) return status;
    sm_serve *draft = NULL;
    status = price_model(g, &g->draft, constants, 1, p->draft_pass_s, &draft, err);
    sm_serve_free(draft);
    return status;
}

/* The page of `run generate`: texts, passes predicted and measured, bytes predicted and counted. */

/* ---- texts ---- */

/* Bytes as they are, numbers of words with spaces between them. */
static const char *shown(sm_report *r, const generation *g, const int32_t *token, size_t n) {
    size_t room = 12 * n + 1, at = 0;
    char *text = sm_report_room(r, room, 1), *raw = sm_report_room(r, n + 1, 1);
    if (!text || !raw) return NULL;
    size_t bytes = 0; /* rows of a picture are no text */
    for (size_t i = 0; i < n; i++)
        if (token[i] < g->target.model.V) raw[bytes++] = (char)token[i];
    if (!g->numbers) sm_utf8_clean(text, room, raw, bytes);
    for (size_t i = 0; g->numbers && i < n; i++)
        if (token[i] < g->target.model.V)
            at += (size_t)snprintf(text + at, room - at, "%s%d", at ? " " : "", token[i]);
    return text;
}

/* Of each token all numbers are data; of the last of each prompt the first are shown. */
static void show_states(sm_report *r, const generation *g) {
    enum { SHOWN = 6 };
    sm_data *list = sm_put_array(r, r->data, "states");
    for (size_t i = 0; i < g->prompts; i++) {
        sm_data *text = sm_put_array(r, list, NULL);
        const float *row = g->states + i * g->each_most * g->width;
        for (size_t k = 0; k < g->prompt_tokens[i]; k++, row += g->width) {
            sm_data *one = sm_put_array(r, text, NULL);
            for (size_t w = 0; w < g->width; w++) sm_put(r, one, NULL, (double)row[w]);
        }
        char line[SHOWN * 16 + 8] = "";
        for (size_t w = 0, at = 0; w < g->width && w < SHOWN; w++)
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%.6g", w ? " " : "",
                                   (double)row[w - g->width]);
        sm_report_text(r, "%s%s", line, g->width > SHOWN ? " ..." : "");
    }
}

static void show_texts(sm_report *r, const generation *g) {
    sm_data *list = sm_put_array(r, r->data, "texts");
    for (size_t i = 0; i < g->prompts; i++) {
        size_t n = g->prompt_tokens[i] + g->tokens, from = g->source ? 1 : 0;
        const char *text = shown(r, g, g->text[i] + from, n - from);
        if (!text) return;
        sm_data *one = sm_put_object(r, list, NULL);
        if (!g->numbers) sm_put(r, one, "text", text);
        sm_data *made = sm_put_array(r, one, g->numbers ? "tokens" : "bytes");
        for (size_t k = g->prompt_tokens[i]; k < n; k++) sm_put(r, made, NULL, g->text[i][k]);
        sm_report_text(r, "%s", text);
    }
}

/* ---- passes ---- */

typedef struct row {
    const char *key, *name;
    const sm_generate_phase *phase;
    double predicted_s; /* of a pass */
} row;
enum { ROWS = 4 };

static int rows_of(const generation *g, row *rows) {
    const sm_generate_result *s = &g->result;
    const row all[ROWS] = {
        {"prefill", "prompts", &s->prefill, g->price.pass_s[0]},
        {"decode", g->drafts ? "bytes that are verified" : "a byte of each text", &s->decode,
         g->price.pass_s[1]},
        {"draft_prefill", "draft: prompts", &s->draft_prefill, g->price.draft_pass_s[0]},
        {"draft", "draft: a byte of each text", &s->draft, g->price.draft_pass_s[1]}};
    int n = 0;
    for (int i = 0; i < ROWS; i++)
        if (all[i].phase->passes > 0) rows[n++] = all[i];
    return n;
}

static void show_passes(sm_report *r, const generation *g) {
    row rows[ROWS];
    int n = rows_of(g, rows);
    sm_table *table = sm_page_table(r, "A pass on the first rank",
                                    "<|>{=}passes|>{s}predicted|>{s}measured|>ratio");
    for (int i = 0; i < n; i++) {
        sm_data *one = sm_put_object(r, r->data, rows[i].key);
        double measured_s = rows[i].phase->seconds / rows[i].phase->passes;
        sm_put(r, one, "passes", rows[i].phase->passes);
        if (g->serve) sm_put(r, one, "predicted_s", rows[i].predicted_s);
        sm_put(r, one, "measured_s", measured_s);
        sm_page_row(r, table, rows[i].name, rows[i].phase->passes,
                    g->serve ? rows[i].predicted_s : NAN, measured_s,
                    g->serve ? prediction_ratio(r, rows[i].predicted_s, measured_s) : "-");
    }
}

/* After the first byte, which comes with the prompts. */
static void show_rate(sm_report *r, const generation *g) {
    double bytes = (double)g->prompts * (double)(g->tokens - 1), seconds = g->result.seconds;
    double predicted_s = g->price.pass_s[1] * g->result.decode.passes +
                         g->price.draft_pass_s[1] * g->result.draft.passes;
    if (g->tokens < 2) return;
    sm_put(r, sm_put_object(r, r->data, "tokens_per_s"), "predicted|measured", bytes / predicted_s,
           bytes / seconds);
    sm_report_text(r, "%s after the prompts; predicted for %s: %s.",
                   sm_show_rate(r, bytes / seconds, "tokens/s"), g->system.text,
                   sm_show_rate(r, bytes / predicted_s, "tokens/s"));
}

static void show_speculation(sm_report *r, const generation *g) {
    const sm_generate_result *s = &g->result;
    if (!g->drafts || !(s->decode.passes > 0)) return;
    double rate = s->drafted > 0 ? s->accepted / s->drafted : 0;
    double each = (double)g->prompts * (double)(g->tokens - 1) / s->decode.passes;
    sm_put(r, sm_put_object(r, r->data, "speculation"),
           "draft|depth|drafted|accepted|acceptance|tokens_per_pass", g->draft.model.name, g->depth,
           s->drafted, s->accepted, rate, each);
    sm_report_text(r,
                   "%s proposed %s bytes, of which %s stayed (%s): %s bytes for each pass of %s.",
                   g->draft.model.name, sm_show_exact(r, s->drafted), sm_show_exact(r, s->accepted),
                   sm_show_percent(r, rate), sm_show_number(r, each), g->target.model.name);
}

/* ---- collectives ---- */

static void show_row(const row *w, const sm_listing *list) {
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        const sm_generator_result *s = &w->phase->sum;
        double predicted = s->bytes_predicted[k], counted = s->bytes_counted[k];
        if (!(predicted > 0 || counted > 0)) continue;
        sm_list_row(list, true, w->key, w->name, sm_collective_name((sm_collective)k), predicted,
                    counted, s->collective_s[k]);
    }
}

/* ---- all of it ---- */

static sm_status show(sm_report *r, const generation *g, sm_error *err) {
    char plan[256];
    int ranks = sm_train_setup_ranks(&g->target.setup);
    sm_plan_format(&g->plan, 0, plan, sizeof plan);
    sm_put(r, r->data, "command|model|plan|backend|ranks", "run generate", g->target.model.name,
           plan, ranks_backend(), ranks);
    if (g->tells) show_states(r, g);
    else show_texts(r, g);
    if (g->tells)
        sm_report_text(r,
                       "%s on %d rank%s (%s): %zu number%s of each token of %zu prompt%s; of the "
                       "last ones above, of all with --json.",
                       g->target.model.name, ranks, ranks == 1 ? "" : "s", ranks_backend(),
                       g->width, g->width == 1 ? "" : "s", g->prompts, g->prompts == 1 ? "" : "s");
    else
        sm_report_text(
            r, "%s on %d rank%s (%s): %zu text%s, %zu %s each after prompts of up to %zu.",
            g->target.model.name, ranks, ranks == 1 ? "" : "s", ranks_backend(), g->prompts,
            g->prompts == 1 ? "" : "s", g->tokens, g->numbers ? "tokens" : "bytes", g->longest);
    show_passes(r, g);
    show_speculation(r, g);
    row rows[ROWS];
    int n = rows_of(g, rows);
    const sm_listing list = sm_page_list(
        r, r->data, "collectives", "Collectives of all passes on the first rank",
        "phase|<|op<|bytes_predicted>{=}predicted|bytes_counted>{=}counted|measured_s>{s}measured");
    for (int i = 0; i < n; i++) show_row(&rows[i], &list);
    prediction_say_bytes(r, "pass", g->bytes_apart);
    show_rate(r, g);
    sm_status status = SM_OK;
    if (g->serve) status = serving_show_weights(r, &g->target, g->held, g->serve, &g->plan, err);
    if (g->serve) prediction_say_placeholder(r, &g->system);
    return status ? status : g->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}

/* ---- running ---- */

/* Of a rank: rank 0 hands its own on. */
typedef struct written {
    int32_t **text, *words;
    float *states;
    sm_generate_result result;
} written;

static sm_status texts_new(const generation *g, written *w, sm_error *err) {
    size_t tokens = 0;
    for (size_t i = 0; i < g->prompts; i++) tokens += g->prompt_tokens[i] + g->tokens;
    w->words = sm_calloc(tokens, sizeof *w->words);
    w->text = sm_calloc(g->prompts, sizeof *w->text);
    if (!w->words || !w->text) return sm_fail_memory(err);
    int32_t *at = w->words;
    for (size_t i = 0; i < g->prompts; i++) {
        w->text[i] = at;
        memcpy(at, g->prompt[i], g->prompt_tokens[i] * sizeof *at);
        at += g->prompt_tokens[i] + g->tokens;
    }
    return SM_OK;
}

static sm_status write_texts(generation *g, sm_communicator *world, sm_generator *target,
                             sm_generator *draft, written *w, sm_error *err) {
    const sm_generate_job job = {.target = target,
                                 .draft = draft,
                                 .depth = g->depth,
                                 .sequences = g->prompts,
                                 .words = g->numbers ? (size_t)g->target.model.V : BYTES,
                                 .prompt = g->prompt_tokens,
                                 .source = g->source,
                                 .read = g->read,
                                 .given = g->hears,
                                 .tokens = g->tokens,
                                 .temperature = g->given.temperature,
                                 .seed = (uint64_t)g->given.seed};
    const sm_generator_size size = sm_generator_size_of(target);
    size_t most = size.source ? size.source : g->longest;
    if (g->tells &&
        !(w->states = sm_calloc(size.sequences * most * size.vocabulary, sizeof *w->states)))
        return sm_fail_memory(err);
    sm_status status = g->tells ? sm_generate_states(&job, w->text, w->states, &w->result, err)
                                : sm_generate(&job, w->text, &w->result, err);
    double apart = w->result.bytes_apart;
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (status || world->rank) return status;
    g->bytes_apart = apart;
    g->each_most = most;
    g->width = size.vocabulary;
    g->result = w->result;
    g->text = w->text;
    g->words = w->words;
    g->states = w->states;
    *w = (written){.text = NULL};
    return SM_OK;
}

static sm_status generate_rank(sm_communicator *world, void *context, sm_error *err) {
    generation *g = context;
    sm_generator *target = NULL, *draft = NULL;
    written w = {.text = NULL};
    double held;
    sm_status status = texts_new(g, &w, err);
    if (!status) status = serving_model_open(world, &g->target, &target, err);
    if (!status) status = sm_generator_weight_bytes(target, &held, err);
    if (!status && !world->rank) g->held = held;
    if (!status && g->drafts) status = serving_model_open(world, &g->draft, &draft, err);
    if (!status) status = write_texts(g, world, target, draft, &w, err);
    sm_generator_free(draft);
    sm_generator_free(target);
    sm_free(w.states);
    sm_free(w.words);
    sm_free(w.text);
    return status;
}

static sm_status run_generate(const cli_call *call, sm_report *r, sm_error *err) {
    generation *g = call->values;
    g->call = call;
    sm_status status = read_question(g, err);
    bool priced = !status && !sm_model_reads(&g->target.model); /* serving writes */
    if (priced) status = predict(g, err);
    if (!status)
        status = ranks_run(call, &g->given.ranks, sm_train_setup_ranks(&g->target.setup),
                           generate_rank, g, err);
    if (!status && ranks_speak()) status = show(r, g, err);
    sm_free(g->states);
    sm_free(g->words);
    sm_free(g->text);
    sm_serve_free(g->serve);
    return status;
}

const cli_verb run_generate_verb = {
    .about = &verbs_run_generate,
    CLI_VALUES(GIVEN("checkpoint", checkpoint), GIVEN("prompt", prompt), GIVEN("prompts", prompts),
               GIVEN("ids", ids), GIVEN("features", features), GIVEN("tokens", tokens),
               GIVEN("plan", plan), SERVING_WEIGHTS_PLACE(given.weights),
               GIVEN("temperature", temperature), GIVEN("seed", seed), GIVEN("draft", draft),
               GIVEN("draft-checkpoint", draft_checkpoint), GIVEN("speculate", speculate),
               RANKS_PLACES(given.ranks), PREDICTION_PLACES(given.predicted),
               CLI_MODEL_PLACES(given.read_by)),
    .plans = 1u << SM_PLAN_SERVING,
    .run = run_generate,
};

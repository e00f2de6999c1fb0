/* run generate: text from a checkpoint of run train, on ranks that share the heads and the cache of
 * keys and values: the prompt in one pass, then byte by byte. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "ranks.h"
#include "run_verbs.h"
#include "train_checkpoint.h"
#include "train_setup_of_plan.h"

typedef struct run_generate_values {
    ranks_values ranks;
    const char *checkpoint, *prompt, *tokens, *plan, *temperature, *seed;
} run_generate_values;

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(run_generate_values, member), value, help }

static const cli_option run_generate_table[] = {
    TEXT("checkpoint", checkpoint, "FILE", "the weights, as run train writes them"),
    TEXT("prompt", prompt, "TEXT", "what to go on from"),
    TEXT("tokens", tokens, "N", "bytes to generate (64)"),
    TEXT("plan", plan, "PLAN", "tensor=2: ranks that share the heads (one rank)"),
    TEXT("temperature", temperature, "X", "draw from the scores over X; 0 takes the best (0)"),
    TEXT("seed", seed, "N", "of the draws (1)"),
    RANKS_OPTIONS(run_generate_values, ranks),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { BYTES = 256, USUAL_TOKENS = 64, MOST_TOKENS = 1 << 20 };

typedef struct question {
    const cli_call *call;
    sm_model model;
    sm_train_setup setup;
    sm_safetensors file;
    const char *prompt;
    int64_t tokens, seed;
    double temperature;
    unsigned char *text; /* of rank 0: prompt and what follows */
    double prompt_s, rest_s;
} question;

/* ---- reading ---- */

static sm_status read_temperature(const char *text, double *value, sm_error *err) {
    char *end;
    if (!text) return SM_OK;
    *value = strtod(text, &end);
    sm_source source = sm_source_of("--temperature", text);
    if (*end || end == text || !(*value >= 0 && *value <= 100))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "a temperature lies between 0 and 100");
    return SM_OK;
}

static sm_status read_numbers(question *q, sm_error *err) {
    const run_generate_values *given = q->call->values;
    q->tokens = USUAL_TOKENS;
    q->seed = 1;
    sm_status status = cli_need(q->call, "checkpoint", given->checkpoint, err);
    if (!status) status = cli_need(q->call, "prompt", given->prompt, err);
    if (!status) status = cli_whole("--tokens", given->tokens, 1, MOST_TOKENS, &q->tokens, err);
    if (!status) status = cli_whole("--seed", given->seed, 0, INT64_MAX, &q->seed, err);
    if (!status) status = read_temperature(given->temperature, &q->temperature, err);
    if (!status && (!*given->prompt || strlen(given->prompt) > MOST_TOKENS))
        status = sm_fail(err, SM_BAD_INPUT, "a prompt has from 1 to %d bytes", MOST_TOKENS);
    q->prompt = given->prompt;
    return status;
}

static sm_status read_plan(question *q, sm_error *err) {
    const run_generate_values *given = q->call->values;
    sm_plan plan;
    sm_source source = sm_source_of("--plan", given->plan ? given->plan : "");
    sm_status status = sm_plan_parse(&source, &plan, err);
    if (status) return status;
    for (int k = 0; k < q->model.kinds; k++)
        if (q->model.kind[k].N % plan.tensor)
            return sm_fail(err, SM_BAD_INPUT, "tensor=%d does not divide the %d query heads",
                           plan.tensor, q->model.kind[k].N);
    if (plan.data > 1 || plan.fsdp > 1 || plan.context > 1 || plan.expert > 1 || plan.pipeline > 1)
        return sm_fail(err, SM_BAD_INPUT, "one sequence is split over tensor alone");
    sm_train_setup_defaults(&q->setup);
    q->setup.model = &q->model;
    q->setup.tokens = (int)(strlen(q->prompt) + (size_t)q->tokens);
    train_degrees_of_plan(&plan, &q->setup);
    q->setup.rules = (sm_rules){.seq = false};
    q->setup.stages = plan.pipeline;
    return SM_OK;
}

static sm_status read_question(question *q, sm_error *err) {
    const run_generate_values *given = q->call->values;
    sm_status status = sm_io_model_load(q->call->positional[0], q->call->arena, &q->model, err);
    if (!status) status = read_numbers(q, err);
    if (!status) status = read_plan(q, err);
    if (!status) status = sm_io_safetensors_read(given->checkpoint, q->call->arena, &q->file, err);
    if (status) return status;
    q->text = sm_arena_alloc(q->call->arena, (size_t)q->setup.tokens + 1);
    return q->text ? SM_OK : sm_fail_memory(err);
}

/* ---- choosing a byte ---- */

static int best_of(const float *scores) {
    int best = 0;
    for (int i = 1; i < BYTES; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

static int drawn_from(const float *scores, double temperature, sm_rng *rng) {
    double most = (double)scores[best_of(scores)], total = 0;
    for (int i = 0; i < BYTES; i++) total += exp(((double)scores[i] - most) / temperature);
    double left = sm_rng_unit(rng) * total;
    for (int i = 0; i < BYTES; i++) {
        left -= exp(((double)scores[i] - most) / temperature);
        if (left < 0) return i;
    }
    return best_of(scores);
}

/* The first rank chooses for all. */
static sm_status choose(const question *q, sm_communicator *world, const float *scores, sm_rng *rng,
                        unsigned char *byte, sm_error *err) {
    int chosen = q->temperature > 0 ? drawn_from(scores, q->temperature, rng) : best_of(scores);
    *byte = (unsigned char)chosen;
    return world->size > 1 ? sm_run_broadcast(world, byte, 1, 0, err) : SM_OK;
}

/* ---- running ---- */

static sm_status generate(question *q, sm_communicator *world, sm_generator *g, float *scores,
                          unsigned char *text, sm_error *err) {
    size_t at = strlen(q->prompt);
    sm_rng rng = {(uint64_t)q->seed};
    double begun_s = sm_clock_s();
    memcpy(text, q->prompt, at);
    sm_status status = sm_generator_feed(g, text, at, scores, err);
    double fed_s = sm_clock_s();
    for (int64_t i = 0; !status && i < q->tokens; i++) {
        status = choose(q, world, scores, &rng, &text[at], err);
        if (!status && i + 1 < q->tokens) status = sm_generator_feed(g, &text[at], 1, scores, err);
        at++;
    }
    if (status || world->rank) return status;
    memcpy(q->text, text, at);
    q->prompt_s = fed_s - begun_s;
    q->rest_s = sm_clock_s() - fed_s;
    return SM_OK;
}

static sm_status generate_rank(sm_communicator *world, void *context, sm_error *err) {
    question *q = context;
    const run_generate_values *given = q->call->values;
    sm_generator *g = NULL;
    float *scores = sm_calloc((size_t)q->model.V + BYTES, sizeof *scores);
    unsigned char *text = sm_calloc((size_t)q->setup.tokens + 1, 1);
    sm_status status = scores && text ? SM_OK : sm_fail_memory(err);
    if (!status) status = sm_generator_new(world, &q->setup, &g, err);
    if (!status)
        status = train_checkpoint_take_weights(g, &q->model, &q->file, given->checkpoint, err);
    if (!status) status = generate(q, world, g, scores, text, err);
    sm_generator_free(g);
    sm_free(scores);
    sm_free(text);
    return status;
}

/* ---- the answer ---- */

static sm_status show(sm_report *r, const question *q, sm_error *err) {
    size_t n = (size_t)q->setup.tokens, room = 4 * n + 1;
    char *clean = sm_arena_alloc(r->arena, room);
    if (!clean) return sm_fail_memory(err);
    sm_utf8_clean(clean, room, (const char *)q->text, n);
    cli_put_text(r, r->data, "command", "run generate");
    cli_put_text(r, r->data, "model", q->model.name);
    cli_put_text(r, r->data, "backend", ranks_backend());
    cli_put(r, r->data, "ranks", sm_train_setup_ranks(&q->setup));
    cli_put_text(r, r->data, "text", clean);
    sm_data *bytes = cli_array(r, r->data, "bytes");
    for (size_t i = strlen(q->prompt); i < n && bytes; i++)
        r->out_of_memory |= !sm_data_push(bytes, sm_data_number(r->arena, q->text[i]));
    cli_put(r, r->data, "prompt_s", q->prompt_s);
    cli_put(r, r->data, "per_byte_s", q->rest_s / (double)q->tokens);
    sm_report_text(r, "%s", clean);
    sm_report_text(r, "%zu bytes read in %s, then %s a byte on %d ranks (%s).", strlen(q->prompt),
                   cli_seconds(r, q->prompt_s), cli_seconds(r, q->rest_s / (double)q->tokens),
                   sm_train_setup_ranks(&q->setup), ranks_backend());
    return SM_OK;
}

static sm_status run_generate(const cli_call *call, sm_report *r, sm_error *err) {
    const run_generate_values *given = call->values;
    question *q = sm_arena_alloc(call->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->call = call;
    sm_status status = read_question(q, err);
    if (!status)
        status =
            ranks_run(call, &given->ranks, sm_train_setup_ranks(&q->setup), generate_rank, q, err);
    if (status || !ranks_speak()) return status;
    return show(r, q, err);
}

const cli_verb run_generate_verb = {
    .name = "run generate",
    .summary = "text from a checkpoint of run train, on ranks that share the cache",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = run_generate_table,
    .values_bytes = sizeof(run_generate_values),
    .without_system = true,
    .notes = "example: scalemodel run generate tiny.json --checkpoint tiny.safetensors \\\n"
             "           --prompt 'The ' --plan tensor=2\n",
    .run = run_generate,
};

/* run generate: texts from a checkpoint of run train, on ranks that share sequences, heads,
 * experts, positions and layers as a plan of serving says: the prompts in one pass, then byte by
 * byte, or as a draft model proposes. */
#include <string.h>

#include "generation.h"
#include "run_verbs.h"
#include "train_checkpoint.h"

#define AT(member) offsetof(run_generate_values, member)

static const cli_option run_generate_table[] = {
    {"checkpoint", 0, CLI_INPUT, AT(checkpoint), "FILE",
     .help = "the weights, as run train writes them", .required = true},
    {"prompt", 0, CLI_LIST, AT(prompt), "TEXT",
     .help = "what to go on from; may be given several times"},
    {"prompts", 0, CLI_INPUT, AT(prompts), "FILE", .help = "a prompt on each line"},
    {"tokens", 0, CLI_WHOLE, AT(tokens), "N", .help = "bytes to generate behind each", .lowest = 1,
     .highest = GENERATION_MOST_TOKENS, .by_default = "64"},
    {"plan", 0, CLI_TEXT, AT(plan), "PLAN", .help = "data=2,tensor=2,...: a rank for each chip",
     .default_says = "one rank"},
    {"temperature", 0, CLI_NUMBER, AT(temperature), "X",
     .help = "draw from the scores over X; 0 takes the best", .highest = 100, .by_default = "0"},
    {"seed", 0, CLI_WHOLE, AT(seed), "N", .help = "of the draws", .by_default = "1"},
    {"draft", 0, CLI_TEXT, AT(draft), "MODEL", .help = "a smaller model that proposes bytes"},
    {"draft-checkpoint", 0, CLI_INPUT, AT(draft_checkpoint), "FILE", .help = "its weights"},
    {"speculate", 0, CLI_WHOLE, AT(speculate), "K", .help = "bytes proposed for each pass of MODEL",
     .lowest = 1, .highest = 64, .by_default = "4"},
    RANKS_OPTIONS(run_generate_values, ranks, RANKS_CUDA),
    PREDICTION_OPTIONS(run_generate_values, predicted),
    {.name = NULL},
};

enum { BYTES = 256 };

/* ---- running ---- */

/* Texts of a rank: rank 0 hands its own on. */
typedef struct texts {
    unsigned char *room, **text;
} texts;

static sm_status texts_new(const generation *g, texts *t, sm_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < g->prompts; i++) bytes += g->prompt_bytes[i] + g->tokens;
    t->room = sm_calloc(bytes, 1);
    t->text = sm_calloc(g->prompts, sizeof *t->text);
    if (!t->room || !t->text) return sm_fail_memory(err);
    unsigned char *at = t->room;
    for (size_t i = 0; i < g->prompts; i++) {
        t->text[i] = at;
        memcpy(at, g->prompt[i], g->prompt_bytes[i]);
        at += g->prompt_bytes[i] + g->tokens;
    }
    return SM_OK;
}

static sm_status open_model(sm_communicator *world, const generation_model *m, sm_generator **out,
                            sm_error *err) {
    sm_status status = sm_generator_new(world, &m->setup, out, err);
    return status ? status : train_checkpoint_take_weights(*out, &m->model, &m->file, m->path, err);
}

static sm_status write_texts(generation *g, sm_communicator *world, sm_generator *target,
                             sm_generator *draft, const texts *t, sm_error *err) {
    sm_generate_result result;
    const sm_generate_job job = {.target = target,
                                 .draft = draft,
                                 .depth = g->depth,
                                 .sequences = g->prompts,
                                 .words = BYTES,
                                 .prompt_bytes = g->prompt_bytes,
                                 .tokens = g->tokens,
                                 .temperature = g->temperature,
                                 .seed = (uint64_t)g->seed};
    sm_status status = sm_generate(&job, t->text, &result, err);
    double apart = result.bytes_apart;
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (status || world->rank) return status;
    for (size_t i = 0; i < g->prompts; i++)
        memcpy(g->text[i], t->text[i], g->prompt_bytes[i] + g->tokens);
    g->result = result;
    g->bytes_apart = apart;
    return SM_OK;
}

static sm_status generate_rank(sm_communicator *world, void *context, sm_error *err) {
    generation *g = context;
    sm_generator *target = NULL, *draft = NULL;
    texts t = {NULL, NULL};
    sm_status status = texts_new(g, &t, err);
    if (!status) status = open_model(world, &g->target, &target, err);
    if (!status && g->drafts) status = open_model(world, &g->draft, &draft, err);
    if (!status) status = write_texts(g, world, target, draft, &t, err);
    sm_generator_free(draft);
    sm_generator_free(target);
    sm_free(t.room);
    sm_free(t.text);
    return status;
}

static sm_status run_generate(const cli_call *call, sm_report *r, sm_error *err) {
    const run_generate_values *given = call->values;
    generation *g = sm_arena_alloc(call->arena, sizeof *g);
    if (!g) return sm_fail_memory(err);
    g->call = call;
    sm_status status = generation_read(g, err);
    if (!status) status = generation_predict(g, err);
    if (!status)
        status = ranks_run(call, &given->ranks, sm_train_setup_ranks(&g->target.setup),
                           generate_rank, g, err);
    if (status || !ranks_speak()) return status;
    return generation_show(r, g);
}

const cli_verb run_generate_verb = {
    .name = "run generate",
    .summary = "texts from a checkpoint, on ranks that share the cache",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = run_generate_table,
    .values_bytes = sizeof(run_generate_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes = "example: scalemodel run generate tiny.json --checkpoint tiny.safetensors \\\n"
             "           --prompt 'The ' --prompt 'A ' --plan data=2,tensor=2\n",
    .run = run_generate,
};

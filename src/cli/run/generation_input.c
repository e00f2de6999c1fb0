/* What `run generate` is asked: prompts, models, and the plan of serving they run under. */
#include <stdlib.h>
#include <string.h>

#include "generation.h"
#include "train_setup_of_plan.h"

enum { MOST_PROMPTS = 1024, MOST_RANKS = 4096 };

static sm_status read_numbers(generation *g, sm_error *err) {
    const run_generate_values *o = g->call->values;
    bool speculates = cli_given(g->call, &o->speculate);
    g->tokens = (size_t)o->tokens;
    g->depth = (int)o->speculate;
    g->seed = o->seed;
    g->temperature = o->temperature;
    g->drafts = o->draft != NULL;
    if (!g->drafts && (speculates || o->draft_checkpoint))
        return sm_fail(err, SM_USAGE, "%s needs --draft MODEL",
                       speculates ? "--speculate" : "--draft-checkpoint");
    return g->drafts ? cli_need(g->call, &o->draft_checkpoint, err) : SM_OK;
}

/* ---- prompts ---- */

static sm_status add_prompt(generation *g, const char *text, size_t bytes, sm_error *err) {
    if (bytes < 1 || bytes > GENERATION_MOST_TOKENS)
        return sm_fail(err, SM_BAD_INPUT, "a prompt has from 1 to %d bytes",
                       GENERATION_MOST_TOKENS);
    if (g->prompts == MOST_PROMPTS)
        return sm_fail(err, SM_BAD_INPUT, "there are more than %d prompts", MOST_PROMPTS);
    if (bytes > g->longest) g->longest = bytes;
    g->prompt[g->prompts] = text;
    g->prompt_bytes[g->prompts++] = bytes;
    return SM_OK;
}

/* One on each line that is not empty. */
static sm_status read_lines(generation *g, const char *path, sm_error *err) {
    sm_source source;
    sm_status status = sm_io_read(path, g->call->arena, &source, err);
    for (size_t at = 0; !status && at < source.length;) {
        const char *line = source.text + at, *end = memchr(line, '\n', source.length - at);
        size_t bytes = end ? (size_t)(end - line) : source.length - at;
        if (bytes) status = add_prompt(g, line, bytes, err);
        at += bytes + 1;
    }
    return status;
}

static sm_status read_prompts(generation *g, sm_error *err) {
    const run_generate_values *given = g->call->values;
    g->prompt = sm_arena_array(g->call->arena, MOST_PROMPTS, sizeof *g->prompt);
    g->prompt_bytes = sm_arena_array(g->call->arena, MOST_PROMPTS, sizeof *g->prompt_bytes);
    if (!g->prompt || !g->prompt_bytes) return sm_fail_memory(err);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < given->prompt.n; i++)
        status = add_prompt(g, given->prompt.text[i], strlen(given->prompt.text[i]), err);
    if (!status && given->prompts) status = read_lines(g, given->prompts, err);
    if (!status && g->prompts == 0)
        status = given->prompts
                     ? sm_fail(err, SM_BAD_INPUT, "%.200s holds no prompt", given->prompts)
                     : sm_fail(err, SM_USAGE, "run generate needs --prompt TEXT or --prompts FILE");
    return status;
}

/* ---- the plan ---- */

static sm_status read_plan(generation *g, sm_error *err) {
    const run_generate_values *o = g->call->values;
    sm_plan *p = &g->plan;
    sm_source source = cli_source(g->call, &o->plan);
    sm_serve_plan_defaults(p);
    sm_status status = o->plan ? sm_serve_plan_parse(&source, p, err) : SM_OK;
    if (status) return status;
    bool cache = sm_plan_given(p, SM_PLAN_CACHE_BY) && p->cache_by != SM_CACHE_COPIES;
    bool weights = sm_plan_given(p, SM_PLAN_WEIGHTS_BY) && !p->gathered && p->fsdp > 1;
    const char *odd = p->seq    ? "seq=on"
                      : cache   ? "a cache by batch or sequence"
                      : weights ? "weights_by=stationary"
                                : NULL;
    if (odd) return sm_fail(err, SM_BAD_INPUT, "%s of the plan cannot be run", odd);
    if (sm_plan_chips(p) > MOST_RANKS)
        return sm_fail(err, SM_BAD_INPUT, "%d ranks are asked for, and at most %d can run",
                       sm_plan_chips(p), MOST_RANKS);
    p->gathered = p->fsdp > 1;
    p->cache_by = SM_CACHE_COPIES;
    p->given |= 1u << SM_PLAN_CACHE_BY | 1u << SM_PLAN_WEIGHTS_BY;
    return SM_OK;
}

static int rounded_up(size_t n, int to) {
    size_t parts = (n + (size_t)to - 1) / (size_t)to;
    return (int)parts * to;
}

static sm_status lay_out(const generation *g, generation_model *m, sm_error *err) {
    const sm_plan *p = &g->plan;
    const sm_plan like = {.data = p->data,
                          .fsdp = p->fsdp,
                          .tensor = p->tensor,
                          .context = p->context,
                          .expert = p->expert,
                          .pipeline = p->pipeline,
                          .virtual_stages = 1,
                          .microbatch = 1,
                          .expert_tensor = p->expert_tensor};
    for (int k = 0; k < m->model.kinds; k++)
        if (m->model.kind[k].N % p->tensor)
            return sm_fail(err, SM_BAD_INPUT, "tensor=%d does not divide the %d query heads of %s",
                           p->tensor, m->model.kind[k].N, m->model.name);
    sm_train_setup_defaults(&m->setup);
    m->setup.model = &m->model;
    m->setup.tokens = rounded_up(g->longest + g->tokens, p->context);
    m->setup.sequences = rounded_up(g->prompts, p->data * p->fsdp * p->expert);
    train_degrees_of_plan(&like, &m->setup);
    if (p->pipeline < 2) return SM_OK;
    return train_stages_of_plan(&like, g->call->arena, &m->setup, err);
}

/* ---- models ---- */

static sm_status read_model(const generation *g, const char *model, const char *checkpoint,
                            generation_model *m, sm_error *err) {
    m->path = checkpoint;
    sm_status status = sm_io_model_load(model, g->call->arena, &m->model, err);
    if (!status) status = lay_out(g, m, err);
    if (!status) status = sm_io_safetensors_read(checkpoint, g->call->arena, &m->file, err);
    return status;
}

sm_status generation_read(generation *g, sm_error *err) {
    const run_generate_values *o = g->call->values;
    const sm_model *target = &g->target.model, *draft = &g->draft.model;
    sm_status status = read_numbers(g, err);
    if (!status) status = read_prompts(g, err);
    if (!status) status = read_plan(g, err);
    if (!status) status = read_model(g, g->call->positional[0], o->checkpoint, &g->target, err);
    if (!status && g->drafts) status = read_model(g, o->draft, o->draft_checkpoint, &g->draft, err);
    if (!status && g->drafts && draft->V != target->V)
        return sm_fail(err, SM_BAD_INPUT,
                       "the draft %s has a vocabulary of %d words and %s one of %d", draft->name,
                       draft->V, target->name, target->V);
    if (status) return status;
    g->text = sm_arena_array(g->call->arena, g->prompts, sizeof *g->text);
    for (size_t i = 0; g->text && i < g->prompts; i++) {
        g->text[i] = sm_arena_alloc(g->call->arena, g->prompt_bytes[i] + g->tokens + 1);
        if (!g->text[i]) return sm_fail_memory(err);
    }
    return g->text ? SM_OK : sm_fail_memory(err);
}

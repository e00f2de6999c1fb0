/* What can be run, and a training job on one rank. */

#include "train_parts.h"

void sm_train_setup_defaults(sm_train_setup *s) {
    *s = (sm_train_setup){.microbatch = 1,
                          .stages = 1,
                          .rate = 3e-3,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .epsilon = 1e-8,
                          .clip = 1,
                          .warmup = 10,
                          .steps = 100};
    for (int a = 0; a < SM_AXIS_COUNT; a++) s->degree[a] = 1;
}

int train_batch_ways(const sm_train_setup *s) {
    return s->degree[SM_AXIS_DATA] * s->degree[SM_AXIS_FSDP] * s->degree[SM_AXIS_EXPERT];
}

int sm_train_setup_microbatches(const sm_train_setup *s) {
    return s->sequences / (s->microbatch * train_batch_ways(s));
}

int sm_train_setup_ranks(const sm_train_setup *s) {
    int ranks = s->stages;
    for (int a = 0; a < SM_AXIS_COUNT; a++) ranks *= s->degree[a];
    return ranks;
}

/* ---- what can be run ---- */

/* A dimension that a norm sums over is whole on each rank. */
static sm_status check_norms(const sm_train_setup *s, const sm_text_lines *l, sm_error *err) {
    int tensor =
        s->degree[SM_AXIS_TENSOR] * s->degree[SM_AXIS_TENSOR_Q] * s->degree[SM_AXIS_TENSOR_W];
    double by_group = 0;
    sm_architecture_number(s->model->architecture, "norm_by_group", &by_group);
    for (int i = 0; i < l->lines && tensor > 1; i++) {
        const sm_text_line *line = &l->line[i];
        for (int k = 0; line->norm && k < line->operands; k++) {
            const sm_text_array *w = &l->array[line->operand[k].array];
            for (int d = 0; w->norm && d < w->rank; d++) {
                sm_dimension_role role = l->dim[w->dim[d]].role;
                bool each = by_group > 0 &&
                            (role == SM_DIMENSION_HEADS ||
                             (role == SM_DIMENSION_GROUP && s->degree[SM_AXIS_TENSOR_Q] == 1));
                if (!each && role != SM_DIMENSION_WHOLE && role != SM_DIMENSION_MODEL)
                    return sm_fail(err, SM_BAD_INPUT,
                                   "%s has a norm over %s, which tensor would cut: it runs on any "
                                   "other axes",
                                   s->model->name, l->dim[w->dim[d]].name);
            }
        }
    }
    return SM_OK;
}

/* Served, a convolution and a scan go on from what is kept. */
static sm_status check_context(const sm_train_setup *s, const sm_text_lines *l, bool serving,
                               sm_error *err) {
    bool cut = s->degree[SM_AXIS_CONTEXT] > 1;
    bool ring = cut && s->rules.context_by == SM_CONTEXT_RING;
    int attends = 0; /* of a ring the sums of one attention are kept */
    for (int i = 0; cut && i < l->lines; i++) {
        const sm_text_line *line = &l->line[i];
        bool goes_on = line->op == SM_OPERATOR_CONV || line->kernel >= 0;
        if (line->op == SM_OPERATOR_WINDOWS || (goes_on && !serving))
            return sm_fail(err, SM_BAD_INPUT,
                           "%s has a %s along positions, which context would cut", s->model->name,
                           line->kernel < 0 ? "convolution" : "scan");
        if (serving) continue;
        attends += line->op == SM_OPERATOR_ATTENTION;
        const char *odd = line->op != SM_OPERATOR_ATTENTION ? NULL
                          : attends > 1                     ? "two attentions in a layer"
                          : line->scores > 1                ? "scores of two products"
                                                            : NULL;
        if (ring && odd)
            return sm_fail(err, SM_BAD_INPUT,
                           "%s has %s, which do not run in a ring: context_by=gather does",
                           s->model->name, odd);
    }
    return SM_OK;
}

/* What a plan cuts that is run whole. */
static sm_status check_lines(const sm_train_setup *s, sm_piece piece, int kind, bool serving,
                             sm_arena *arena, sm_error *err) {
    const sm_text_lines *l;
    const sm_rules rules = sm_rules_of_pass(s->model, s->tokens);
    sm_status status = sm_program_lines(s->model, sm_program_at(s->model, piece, kind),
                                        serving ? 0 : s->tokens, &rules, arena, &l, err);
    if (!status) status = check_context(s, l, serving, err);
    return status ? status : check_norms(s, l, err);
}

sm_status train_check_model(const sm_train_setup *s, bool serving, sm_error *err) {
    sm_arena *arena = sm_arena_new();
    sm_status status = arena ? SM_OK : sm_fail_memory(err);
    if (!status) status = sm_program_runs(s->model, s->tokens, serving, err);
    for (int k = 0; !status && k < s->model->kinds; k++)
        status = check_lines(s, SM_PIECE_LAYER, k, serving, arena, err);
    for (int i = 0; !status && i < s->model->outside - 1; i++)
        status = check_lines(s, SM_PIECE_EMBEDDING, i, serving, arena, err);
    if (!status) status = check_lines(s, SM_PIECE_HEAD, 0, serving, arena, err);
    sm_arena_free(arena);
    if (status) return status;
    int words = s->model->causal ? 256 : 257;
    if (s->model->V < words && !serving)
        return sm_fail(err, SM_BAD_INPUT, "a vocabulary of %d words cannot hold the 256 bytes%s",
                       s->model->V, words > 256 ? " and what hides them" : "");
    return SM_OK;
}

static sm_status check_pairs(const sm_train_setup *s, sm_error *err) {
    if (!s->model->causal || sm_model_stacked(s->model))
        return sm_fail(err, SM_BAD_INPUT, "pairs are learned by a decoder, which %s is not",
                       s->model->name);
    if (s->microbatch % 2)
        return sm_fail(err, SM_BAD_INPUT,
                       "a microbatch of %d sequences would part a pair: it needs an even number",
                       s->microbatch);
    for (size_t i = 0; i < s->pairs; i++)
        for (int k = 0; k < 2; k++)
            if (s->pair[i].prompt < 1 || s->pair[i].bytes[k] <= s->pair[i].prompt ||
                s->pair[i].bytes[k] > (size_t)s->tokens + 1)
                return sm_fail(err, SM_BAD_INPUT,
                               "pair %zu has a text of %zu bytes behind a prompt of %zu: sequences "
                               "of %d hold %d, the prompt's first among them",
                               i + 1, s->pair[i].bytes[k] - s->pair[i].prompt, s->pair[i].prompt,
                               s->tokens, s->tokens + 1);
    return SM_OK;
}

static sm_status check_batch(const sm_train_setup *s, sm_error *err) {
    if (s->tokens < 1 || s->sequences < 1 || s->microbatch < 1)
        return sm_fail(err, SM_BAD_INPUT, "a batch needs at least one sequence of one token");
    if (s->microbatch > s->sequences || s->sequences % (train_batch_ways(s) * s->microbatch))
        return sm_fail(err, SM_BAD_INPUT,
                       "a batch of %d sequences does not divide into microbatches of %d on %d "
                       "replicas",
                       s->sequences, s->microbatch, train_batch_ways(s));
    if (s->pairs) return check_pairs(s, err);
    if (s->data_bytes < (size_t)s->tokens + 2)
        return sm_fail(err, SM_BAD_INPUT, "%zu bytes of text are too few for sequences of %d",
                       s->data_bytes, s->tokens);
    return SM_OK;
}

static sm_status check_ranks(const sm_train_setup *s, sm_error *err) {
    enum { MOST_RANKS = 4096 };
    double ranks = s->stages;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (s->degree[a] < 1)
            return sm_fail(err, SM_BAD_INPUT, "a degree of %d is none", s->degree[a]);
        ranks *= s->degree[a];
    }
    if (ranks < 1 || ranks > MOST_RANKS)
        return sm_fail(err, SM_BAD_INPUT, "%.0f ranks are asked for, and at most %d can run", ranks,
                       MOST_RANKS);
    if ((double)s->microbatch * ranks > 1e9)
        return sm_fail(err, SM_BAD_INPUT, "a microbatch of %d sequences is too large",
                       s->microbatch);
    return SM_OK;
}

/* Of a pipeline laid out for another batch, or for other chunks, nothing would be there. */
static sm_status check_actions(const sm_train_setup *s, sm_error *err) {
    const int microbatches = sm_train_setup_microbatches(s);
    for (int stage = 0; s->action && stage < s->stages; stage++)
        for (int i = 0; i < s->actions[stage]; i++) {
            const sm_train_action *a = &s->action[stage][i];
            if (a->microbatch < 0 || a->microbatch >= microbatches || a->chunk < 0 ||
                a->chunk >= s->chunks)
                return sm_fail(err, SM_BAD_INPUT,
                               "stage %d is to work on microbatch %d of %d and chunk %d of %d",
                               stage, a->microbatch, microbatches, a->chunk, s->chunks);
        }
    return SM_OK;
}

sm_status sm_train_setup_check(const sm_train_setup *s, sm_error *err) {
    sm_status status = check_ranks(s, err);
    if (status) return status;
    if (s->state_copies < 0 || (s->state_copies > 1 && s->degree[SM_AXIS_DATA] % s->state_copies))
        return sm_fail(err, SM_BAD_INPUT,
                       "%d copies of the optimizer's state do not divide data=%d", s->state_copies,
                       s->degree[SM_AXIS_DATA]);
    if (s->rules.attention == SM_ATTENTION_UNFUSED || s->rules.decode || s->rules.stationary)
        return sm_fail(err, SM_BAD_INPUT, "unfused attention and rules of serving cannot be run");
    for (int i = 0; i < 2; i++) {
        sm_element held = i ? s->gradients : s->stored;
        if (held != SM_ELEMENT_F32 && held != SM_ELEMENT_BF16)
            return sm_fail(err, SM_BAD_INPUT, "arrays of %zu bytes an element cannot be run",
                           sm_element_bytes(held));
    }
    if ((int)s->optimizer < 0 || s->optimizer >= SM_TRAIN_OPTIMIZER_COUNT)
        return sm_fail(err, SM_BAD_INPUT, "there is no optimizer of number %d", (int)s->optimizer);
    if (s->stages > 1 && s->chunks < s->stages)
        return sm_fail(err, SM_BAD_INPUT, "%d chunks of layers are too few for %d stages",
                       s->chunks, s->stages);
    if (sm_model_stacked(s->model) && s->rules.seq)
        return sm_fail(err, SM_BAD_INPUT, "%s has several stacks, which run with seq=off",
                       s->model->name);
    status = train_check_model(s, false, err);
    if (!status) status = check_batch(s, err);
    if (!status && s->stages > 1) status = check_actions(s, err);
    return status ? status : train_check_copies(s, err);
}

/* ---- a job on one rank ---- */

sm_status train_mesh_new(sm_trainer *t, sm_error *err) {
    sm_mesh mesh = *sm_program_mesh();
    for (int a = 0; a < SM_AXIS_COUNT; a++) mesh.axis[a].size = t->setup->degree[a];
    mesh.axes = TRAIN_AXES;
    mesh.axis[TRAIN_PIPELINE].size = t->setup->stages;
    memcpy(mesh.axis[TRAIN_PIPELINE].name, "pipeline", sizeof "pipeline");
    sm_status status = sm_rank_mesh_new(t->world, &mesh, &t->mesh, err);
    if (status) return status;
    /* All groups at once: making one takes every rank, and stages do not work in step. */
    unsigned matter = sm_mesh_real_axes(&t->mesh->mesh, (1u << TRAIN_AXES) - 1);
    for (unsigned axes = 1; axes < 1u << TRAIN_AXES; axes++)
        if ((axes & ~matter) == 0 && !sm_rank_mesh_over(t->mesh, (sm_axes)axes, err))
            return err && err->status ? err->status : SM_INTERNAL;
    return SM_OK;
}

static sm_status begin(sm_trainer *t, sm_error *err) {
    sm_status status = train_mesh_new(t, err);
    if (status) return status;
    train_actions_new(t);
    status = train_state_copies_new(t, err);
    if (status) return status;
    t->extent.sequences = (double)t->setup->microbatch * train_batch_ways(t->setup);
    status = train_pairs_new(t, err);
    if (!status) status = train_programs_new(t, err);
    return status ? status : train_layers_new(t, err);
}

sm_status sm_trainer_new(sm_communicator *world, const sm_train_setup *setup, sm_trainer **out,
                         sm_error *err) {
    sm_status status = sm_train_setup_check(setup, err);
    if (status) return status;
    sm_trainer *t = sm_calloc(1, sizeof *t);
    if (!t) return sm_fail_memory(err);
    t->setup = setup;
    t->world = world;
    train_codes_new(&t->codes);
    memory_scope before = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    status = begin(t, err);
    memory_restore(before);
    if (status) sm_trainer_free(t);
    else *out = t;
    return status;
}

void sm_trainer_free(sm_trainer *t) {
    if (!t) return;
    train_layers_free(t);
    train_programs_free(t);
    train_turns_free(t);
    train_pairs_free(t);
    sm_arena_free(t->texts);
    for (int i = 0; i < SM_MOST_TIES; i++) sm_communicator_free(t->peers[i]);
    for (int axes = 0; axes < 1 << SM_AXIS_COUNT; axes++) sm_communicator_free(t->one_copy[axes]);
    sm_communicator_free(t->across_copies);
    sm_rank_mesh_free(t->mesh);
    sm_free(t);
}

void sm_trainer_memory(const sm_trainer *t, sm_train_memory *out) {
    const memory_account *a = &t->memory;
    *out = (sm_train_memory){.total = a->total};
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        out->at_most[i] = a->at_most[i];
        out->most[i] = a->most[i];
        out->now[i] = (double)atomic_load(&a->in_use[i]);
    }
}

void sm_trainer_forget_memory(sm_trainer *t) { memory_begin(&t->memory); }

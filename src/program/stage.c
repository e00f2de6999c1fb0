/* A stage through the passes of a step: what runs when, what goes to other stages, and what waits
 * in host memory between a layer's passes. */
#include <assert.h>
#include <string.h>

#include "program_parts.h"

sm_status stage_call(const sm_stage *s, sm_call *call, sm_error *err) {
    if (call->layer) call->list = call->layer->list;
    return s->actions->compute(s->actions->context, call, err);
}

static void add_layer(sm_stage *s, const sm_task_list *list, int number, int piece, int chunk) {
    s->layer[s->layers++] = (sm_step_layer){.list = list,
                                            .number = number,
                                            .piece = piece,
                                            .chunk = chunk,
                                            .reads = -1,
                                            .makes = -1,
                                            .lends = SM_MAX_BITS};
}

/* What a layer makes for others, what it reads of others, and who of its chunk made that. */
static void link_loans(sm_stage *s, sm_step_layer *layer) {
    const sm_program *b = layer->list->program;
    const sm_tensor *read = b->lent < 0 ? NULL : &b->tensor[b->lent];
    for (int i = 0; i < s->loans; i++) {
        const sm_loan *loan = &s->loan[i];
        if (loan->by == layer->number) layer->makes = i;
        if (loan->by == layer->number && loan->there >= 0) layer->lends = b->tensor_of[loan->there];
        if (!read || read->of != loan->of || read->there != loan->there) continue;
        layer->reads = i;
        for (sm_step_layer *l = s->layer; loan->there >= 0 && l < layer; l++)
            if (l->number == loan->by && l->chunk == layer->chunk) layer->lender = l;
    }
}

/* The pieces that stand before layer `at` but for embedding and head. */
static void add_between(sm_stage *s, const sm_model *model, const sm_task_list *list, int at,
                        int chunk) {
    for (int i = 1; i < model->outside - 1; i++)
        if (model->out[i].before == at && !list[model->kinds + i].program->still)
            add_layer(s, &list[model->kinds + i], model->L + i, model->out[i].piece, chunk);
}

static void add_chunk(sm_stage *s, const sm_model *model, const sm_task_list *list, int chunk,
                      const sm_train_chunk *c) {
    int chunks = sm_stage_model_chunks(s), head = model->outside - 1;
    if (chunk % chunks == 0) add_layer(s, &list[model->kinds], -1, model->out[0].piece, chunk);
    for (int l = c->first; l < c->last; l++) {
        add_between(s, model, list, l, chunk);
        add_layer(s, &list[model->layer[l]], l, -1, chunk);
    }
    if (chunk % chunks < chunks - 1) return;
    add_between(s, model, list, model->L, chunk);
    add_layer(s, &list[model->kinds + head], model->L, model->out[head].piece, chunk);
}

static size_t slots(const sm_stage *s) {
    return (size_t)(s->chunks + 1) * (size_t)(s->loans + 1) * (size_t)s->microbatches;
}

/* Where a chunk has a loan that it did not make itself. */
static sm_local_block *slot_of(const sm_stage *s, int chunk, int loan) {
    return &s->lent[(chunk * s->loans + loan) * s->microbatches + s->microbatch];
}

sm_status sm_stage_new(sm_stage *s, const sm_model *model, const sm_task_list *list,
                       sm_error *err) {
    const sm_train_chunk all = {s->number, 0, model->L}, *chunk = s->chunks ? s->chunk : &all;
    const sm_program *program[SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE];
    int chunks = sm_stage_model_chunks(s);
    size_t most = (size_t)(model->L + model->outside) * (size_t)s->copies;
    s->model = model;
    s->list = list;
    for (int i = 0; i < model->kinds + model->outside; i++) program[i] = list[i].program;
    sm_status status = sm_program_loans(model, program, &s->loans, s->loan, err);
    if (!status) status = stage_ties(s, err);
    if (status) return status;
    s->room = 2 * (s->chunks + 1) * s->microbatches * (1 + s->loans);
    s->layer = sm_calloc(most, sizeof *s->layer);
    s->saved = sm_calloc(most * (size_t)s->microbatches, sizeof *s->saved);
    s->message = sm_calloc((size_t)s->room, sizeof *s->message);
    s->lent = sm_calloc(slots(s), sizeof *s->lent);
    if (!s->layer || !s->saved || !s->message || !s->lent) return sm_fail_memory(err);
    for (int i = 0; i < chunks * s->copies; i++) { /* in model order, whichever copy has it */
        int c = i % s->copies * chunks + i / s->copies;
        if (chunk[c].stage == s->number) add_chunk(s, model, list, c, &chunk[c]);
    }
    for (int i = 0; i < s->layers; i++) link_loans(s, &s->layer[i]);
    return SM_OK;
}

static void forget_gradients(sm_stage *s) {
    for (int i = 0; i < s->layers; i++) {
        for (int k = 0; k < SM_MAX_TENSORS; k++) stage_drop(s, &s->layer[i].gradient[k]);
        for (int g = 0; g < s->layer[i].groups; g++) stage_drop(s, &s->layer[i].group[g].sum);
    }
}

static void drop_saved(sm_stage *s, sm_pass_saved **saved) {
    if (*saved) sm_pass_drop(s->actions, *saved, 0, false);
    sm_free(*saved);
    *saved = NULL;
}

void sm_stage_free(sm_stage *s) {
    if (s->layer) forget_gradients(s);
    for (int i = 0; s->saved && i < s->layers * s->microbatches; i++) drop_saved(s, &s->saved[i]);
    for (int i = 0; s->layer && i < s->layers; i++)
        for (int k = 0; k < SM_MAX_TENSORS; k++) stage_drop(s, &s->layer[i].weight[k]);
    sm_free(s->layer);
    sm_free(s->saved);
    sm_free(s->message);
    sm_free(s->lent);
    s->layer = NULL;
    s->saved = NULL;
    s->message = NULL;
    s->lent = NULL;
    s->layers = 0;
}

/* ---- what the model has where ---- */

int sm_stage_model_chunks(const sm_stage *s) { return s->chunks ? s->chunks / s->copies : 1; }

static int stage_of(const sm_stage *s, int chunk) {
    return s->chunks ? s->chunk[chunk].stage : s->number;
}

static bool begins_model(const sm_stage *s, int chunk) {
    return chunk % sm_stage_model_chunks(s) == 0;
}

static bool ends_model(const sm_stage *s, int chunk) { return begins_model(s, chunk + 1); }

/* The layers of a chunk: [*first, *end) of this stage's. */
static void layers_of(const sm_stage *s, int chunk, int *first, int *end) {
    *first = 0;
    while (*first < s->layers && s->layer[*first].chunk != chunk) ++*first;
    *end = *first;
    while (*end < s->layers && s->layer[*end].chunk == chunk) ++*end;
}

static sm_pass_saved **saved_of(const sm_stage *s, const sm_step_layer *layer) {
    return &s->saved[(layer - s->layer) * s->microbatches + s->microbatch];
}

/* Those of a layer that begins, or has a cache already; NULL: out of memory. */
static sm_pass_saved *saved_for(const sm_stage *s, const sm_step_layer *layer) {
    sm_pass_saved **slot = saved_of(s, layer), *saved = *slot;
    size_t n = (size_t)layer->list->program->tensors;
    if (saved) return saved;
    *slot = saved = sm_calloc(1, sizeof *saved + 2 * n * sizeof *saved->value);
    if (!saved) return NULL;
    saved->tensors = (int)n;
    saved->value = (sm_local_block *)(void *)(saved + 1);
    saved->arrived = saved->value + n;
    return saved;
}

/* ---- boundaries between chunks ---- */

/* Of what passes between a chunk and the one before. loan: -1, the residual stream. */
static int tag_of(const sm_stage *s, bool backward, int chunk, int loan) {
    int sort = 2 * (loan + 1) + backward;
    return (sort * s->chunks + chunk) * s->microbatches + s->microbatch;
}

/* Is a loan made by what a stack reads, before another one writes? */
static bool is_read(const sm_stage *s, const sm_loan *loan) {
    const sm_program *by = s->list[sm_model_list(s->model, loan->by)].program;
    return by->serving && (loan->there < 0 || !by->rules.decode);
}

/* What reads a text has a stream, and what writes begins another behind it. */
bool sm_stage_crosses(const sm_stage *s, int chunk, int loan, bool read) {
    const int layer = s->chunk[chunk].first;
    bool reads = false;
    for (int i = 0; i < s->loans; i++) {
        const sm_loan *l = &s->loan[i];
        if (i == loan) return sm_loan_crosses(s->model, l, layer) && is_read(s, l) == read;
        reads |= l->there < 0 && is_read(s, l) && !sm_model_stands_before(s->model, l->by, layer);
    }
    return reads == read;
}

/* As which tensor of which list it is read: the stream by the first part of the chunk or, where
 * that begins another stack, by who reads what this one ended in. */
static sm_local_block read_as(const sm_stage *s, int chunk, int loan) {
    const sm_model *m = s->model;
    int part = s->chunk[chunk].first;
    for (int k = m->outside - 2; loan < 0 && k > 0; k--)
        if (m->out[k].before == s->chunk[chunk].first && !s->list[m->kinds + k].program->still)
            part = m->L + k;
    const sm_task_list *list = &s->list[sm_model_list(m, part)];
    if (loan < 0 && list->program->input >= 0)
        return sm_task_list_block(list, list->program->input);
    for (int i = 0; loan < 0; i++)
        if (s->loan[i].by == part) loan = i;
    list = &s->list[s->loan[loan].list];
    return sm_task_list_block(list, list->program->lent);
}

static void take_local(sm_stage *s, int tag, sm_local_block *block) {
    int i = 0;
    while (i < s->messages && s->message[i].tag != tag) i++; /* from a chunk that ran before */
    assert(i < s->messages);
    *block = s->message[i].block;
    s->message[i] = s->message[--s->messages];
}

/* What comes from the chunk before or, gradients, from the next. read: while a text is. */
static sm_status take_over(sm_stage *s, int chunk, bool backward, bool read, sm_local_block *stream,
                           sm_error *err) {
    const sm_actions *a = s->actions;
    const int at = chunk + backward;
    sm_status status = SM_OK;
    if (backward ? ends_model(s, chunk) : begins_model(s, chunk)) return SM_OK;
    for (int i = -1; !status && i < s->loans; i++) {
        sm_local_block *to = i < 0 ? stream : backward ? &s->owed[i] : slot_of(s, chunk, i);
        int stage = stage_of(s, backward ? at : at - 1), tag = tag_of(s, backward, at, i);
        if (!sm_stage_crosses(s, at, i, read)) continue;
        if (stage == s->number) take_local(s, tag, to);
        else {
            *to = read_as(s, at, i);
            status = a->make(a->context, to, false, err);
            if (!status) status = a->receive(a->context, stage, tag, to, err);
        }
        if (!status && i >= 0 && !backward) a->mark(a->context, to, SM_TRAIN_MEMORY_ACTIVATIONS);
    }
    return status;
}

/* What comes from another part, as it is read here. Sizes that a family or its config gives one
 * part of a model may not be those of the next. */
static sm_status check_read(const sm_local_block *from, const sm_local_block *like, sm_error *err) {
    size_t made = sm_local_block_count(from), read = sm_local_block_count(like);
    if (made == read) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT,
                   "a part of the model reads %zu numbers of a rank where the part before it makes "
                   "%zu: their sizes do not fit",
                   read, made);
}

/* A loan of a chunk, which is still read there, for the next one. */
static sm_status copy_loan(const sm_stage *s, int chunk, int loan, sm_local_block *copy,
                           sm_error *err) {
    const sm_local_block *own = slot_of(s, chunk, loan);
    for (sm_step_layer *l = s->layer; l < s->layer + s->layers; l++)
        if (l->chunk == chunk && l->makes == loan && l->lends < SM_MAX_BITS)
            own = &(*saved_of(s, l))->value[l->lends];
    sm_call call = {.kind = SM_CALL_ADD, .in = {{.block = own}}, .out = copy};
    *copy = read_as(s, chunk + 1, loan);
    sm_status status = check_read(own, copy, err);
    if (!status) status = s->actions->make(s->actions->context, copy, true, err);
    return status ? status : stage_call(s, &call, err);
}

/* What goes to the next chunk or, gradients, to the one before; a message within a stage waits for
 * its reader. */
static sm_status hand_over(sm_stage *s, int chunk, bool backward, bool read, sm_local_block *stream,
                           sm_error *err) {
    const sm_actions *a = s->actions;
    const int at = chunk + !backward;
    sm_status status = SM_OK;
    if (backward ? begins_model(s, chunk) : ends_model(s, chunk)) return SM_OK;
    for (int i = -1; !status && i < s->loans; i++) {
        sm_local_block copy = {.data = NULL}, *block = i < 0 ? stream : &copy;
        int stage = stage_of(s, backward ? at - 1 : at), tag = tag_of(s, backward, at, i);
        if (!sm_stage_crosses(s, at, i, read)) continue;
        if (i >= 0 && backward) stage_drop(s, slot_of(s, chunk, i)), block = &s->owed[i];
        else if (i >= 0) status = copy_loan(s, chunk, i, &copy, err);
        if (!status && stage != s->number)
            status = a->send(a->context, stage, tag, backward, block, err);
        else if (!status) {
            assert(s->messages < s->room);
            s->message[s->messages++] = (sm_message){tag, *block};
            block->data = NULL;
        }
        stage_drop(s, &copy);
    }
    return status;
}

/* ---- activations in host memory ----
 * Of the layers and microbatches between their passes those used last stay; the rest is carried out
 * and in again when its turn comes. */

static bool offloads(const sm_stage *s, const sm_step_layer *layer) {
    return s->offloads && layer->number >= 0 && layer->number < s->model->L;
}

/* Weights of norms that were gathered stay. */
static sm_status carry(const sm_stage *s, const sm_resident *r, sm_train_memory_part to,
                       sm_error *err) {
    const sm_program *b = r->layer->list->program;
    const sm_actions *a = s->actions;
    sm_pass_saved *saved = r->saved;
    sm_status status = SM_OK;
    if (saved->log_sums.data) status = a->carry(a->context, &saved->log_sums, to, err);
    for (int i = 0; !status && i < b->tensors; i++) {
        if (b->tensor[i].role == SM_ROLE_WEIGHT) continue;
        if (saved->value[i].data) status = a->carry(a->context, &saved->value[i], to, err);
        if (!status && saved->arrived[i].data)
            status = a->carry(a->context, &saved->arrived[i], to, err);
    }
    return status;
}

static void forget_resident(sm_stage *s, int i) {
    s->residents--;
    memmove(&s->resident[i], &s->resident[i + 1], (size_t)(s->residents - i) * sizeof *s->resident);
}

/* Room for one more beside those that stay. */
static sm_status make_room(sm_stage *s, sm_error *err) {
    if (s->residents < SM_RESIDENTS) return SM_OK;
    sm_resident oldest = s->resident[0];
    forget_resident(s, 0);
    oldest.saved->away = true;
    return carry(s, &oldest, SM_TRAIN_MEMORY_HOST, err);
}

/* Before the backward pass. */
static sm_status bring_back(sm_stage *s, const sm_step_layer *layer, sm_pass_saved *saved,
                            sm_error *err) {
    if (!offloads(s, layer)) return SM_OK;
    for (int i = 0; i < s->residents; i++)
        if (s->resident[i].saved == saved) {
            forget_resident(s, i);
            return SM_OK;
        }
    sm_status status = make_room(s, err);
    if (status || !saved->away) return status;
    saved->away = false;
    return carry(s, &(sm_resident){layer, saved}, SM_TRAIN_MEMORY_ACTIVATIONS, err);
}

/* ---- passes of a chunk ---- */

static void mark(const sm_stage *s, sm_local_block *block, sm_train_memory_part part) {
    s->actions->mark(s->actions->context, block, part);
}

/* The loss, or what is made of each position. */
static sm_status tell(const sm_stage *s, sm_step_layer *layer, sm_pass_saved *saved,
                      const sm_local_block *made, sm_error *err) {
    return stage_call(
        s,
        &(sm_call){.kind = SM_CALL_LOSS, .layer = layer, .saved = saved, .in = {{.block = made}}},
        err);
}

static sm_status give(const sm_stage *s, sm_step_layer *layer, sm_local_block *stream,
                      sm_error *err) {
    *stream = sm_task_list_block(layer->list, layer->list->program->input);
    sm_status status = s->actions->make(s->actions->context, stream, false, err);
    sm_call call = {.kind = SM_CALL_GIVE, .layer = layer, .out = stream};
    return status ? status : stage_call(s, &call, err);
}

/* Is the layer of a stack that reads a text before another one is written? */
static bool reads(const sm_step_layer *layer) {
    const sm_program *b = layer->list->program;
    return b->serving && !b->rules.decode;
}

/* Does a layer that writes keep what such a stack lends it? */
static bool borrows_once(const sm_stage *s, const sm_step_layer *layer) {
    return layer->reads >= 0 && !reads(layer) && is_read(s, &s->loan[layer->reads]);
}

/* What another stack or layer made is there while the layer works, and is never its own. */
static sm_status borrow(const sm_stage *s, const sm_step_layer *layer, sm_pass_saved *saved,
                        sm_error *err) {
    int lent = layer->list->program->lent;
    const sm_step_layer *by = layer->lender;
    if (lent < 0) return SM_OK;
    const sm_local_block *from =
        by ? &(*saved_of(s, by))->value[by->lends] : slot_of(s, layer->chunk, layer->reads);
    saved->value[lent] = sm_task_list_block(layer->list, lent);
    sm_status status = check_read(from, &saved->value[lent], err);
    saved->value[lent].data = status ? NULL : from->data;
    return status;
}

/* Another stack begins with this layer. */
static void end_stack(const sm_stage *s, const sm_step_layer *layer, sm_local_block *stream) {
    sm_local_block *to = slot_of(s, layer->chunk, layer->makes);
    assert(layer->makes >= 0 && s->loan[layer->makes].there < 0);
    *to = *stream;
    stream->data = NULL;
    mark(s, to, SM_TRAIN_MEMORY_ACTIVATIONS);
}

/* The input is kept by the layer that reads it, the output goes on as the stream. */
static sm_status layer_forward(sm_stage *s, sm_step_layer *layer, sm_local_block *stream,
                               sm_error *err) {
    const sm_program *b = layer->list->program;
    sm_pass_saved *saved = saved_for(s, layer);
    if (!saved) return sm_fail_memory(err);
    const bool scored = b->rules.decode && layer->number == s->model->L;
    sm_call rows = {.kind = SM_CALL_SELECT, .layer = layer, .out = stream};
    sm_status status = scored ? stage_call(s, &rows, err) : SM_OK;
    if (b->input < 0 && stream->data) end_stack(s, layer, stream);
    if (!status && (!b->serving || !borrows_once(s, layer))) status = borrow(s, layer, saved, err);
    if (!status && b->input >= 0 && !stream->data) status = give(s, layer, stream, err);
    if (!status && b->input >= 0) {
        const sm_local_block like = sm_task_list_block(layer->list, b->input);
        status = check_read(stream, &like, err);
    }
    if (b->input >= 0) {
        saved->value[b->input] = *stream;
        mark(s, &saved->value[b->input], SM_TRAIN_MEMORY_ACTIVATIONS);
        stream->data = NULL;
    }
    if (!status && offloads(s, layer)) status = make_room(s, err);
    if (!status) status = sm_pass_forward(s->actions, layer, saved, false, err);
    if (b->lent >= 0) saved->value[b->lent].data = NULL;
    if (!status && b->output < 0)
        status = tell(s, layer, saved, &saved->value[b->op[b->ops - 1].out], err);
    else if (!status && scored) status = tell(s, layer, saved, &saved->value[b->output], err);
    if (!status && b->output >= 0) {
        assert(!(layer->list->kept >> b->output & 1));
        *stream = saved->value[b->output];
        saved->value[b->output].data = NULL;
        mark(s, stream, SM_TRAIN_MEMORY_BUFFERS);
    }
    sm_pass_drop(s->actions, saved, layer->list->kept | sm_bit_of(layer->lends), !b->serving);
    if (status || !offloads(s, layer)) return status;
    assert(s->residents < SM_RESIDENTS); /* make_room saw to it */
    s->resident[s->residents++] = (sm_resident){layer, saved};
    return status;
}

static sm_status forward(sm_stage *s, int chunk, sm_error *err) {
    int first, end;
    sm_local_block stream = {.data = NULL};
    sm_status status = take_over(s, chunk, false, false, &stream, err);
    layers_of(s, chunk, &first, &end);
    for (int i = first; !status && i < end; i++)
        if (!reads(&s->layer[i])) status = layer_forward(s, &s->layer[i], &stream, err);
    if (!status) status = hand_over(s, chunk, false, false, &stream, err);
    stage_drop(s, &stream);
    return status;
}

/* What a layer keeps of what another stack has read. */
static sm_status keep_lent(const sm_stage *s, sm_step_layer *layer, sm_error *err) {
    sm_pass_saved *saved = saved_for(s, layer);
    if (!saved) return sm_fail_memory(err);
    sm_status status = borrow(s, layer, saved, err);
    if (!status) status = sm_pass_forward(s->actions, layer, saved, true, err);
    saved->value[layer->list->program->lent].data = NULL;
    sm_pass_drop(s->actions, saved, layer->list->kept, false);
    return status;
}

static sm_status read_source(sm_stage *s, int chunk, sm_error *err) {
    sm_local_block stream = {.data = NULL};
    sm_status status = take_over(s, chunk, false, true, &stream, err);
    int last = s->layers - 1 - s->pools;
    for (int i = 0; !status && i <= last; i++)
        if (reads(&s->layer[i])) status = layer_forward(s, &s->layer[i], &stream, err);
    if (!status && ends_model(s, chunk) && reads(&s->layer[s->layers - 1]))
        status = tell(s, &s->layer[last], NULL, &stream, err);
    for (int i = 0; !status && stream.data && i < s->layers; i++)
        if (s->layer[i].makes >= 0 && s->loan[s->layer[i].makes].there < 0)
            end_stack(s, &s->layer[i], &stream);
    if (!status) status = hand_over(s, chunk, false, true, &stream, err);
    for (int i = 0; !status && i < s->layers; i++)
        if (borrows_once(s, &s->layer[i])) status = keep_lent(s, &s->layer[i], err);
    stage_drop(s, &stream);
    return status;
}

static sm_status layer_weights(sm_stage *s, sm_step_layer *layer, sm_error *err) {
    sm_pass_saved **saved = saved_of(s, layer);
    assert(*saved);
    sm_status status = sm_pass_backward_weights(*saved, err);
    drop_saved(s, saved);
    if (!status && s->zero == 2 && s->updating) status = stage_reduce_layer(s, layer, err);
    return status;
}

static sm_status layer_backward(sm_stage *s, sm_step_layer *layer, sm_local_block *stream,
                                bool whole, sm_error *err) {
    sm_pass_saved *saved = *saved_of(s, layer);
    assert(saved);
    int lent = layer->list->program->lent;
    sm_status status = bring_back(s, layer, saved, err);
    if (!status) status = borrow(s, layer, saved, err);
    if (!status) /* what is lent is there now alone */
        status =
            sm_pass_backward(s->actions, layer, saved, stream, s->owed, whole || lent >= 0, err);
    if (lent >= 0) saved->value[lent].data = NULL;
    if (!status && layer->makes >= 0 &&
        s->loan[layer->makes].there < 0) { /* its stack began here */
        stage_drop(s, slot_of(s, layer->chunk, layer->makes));
        *stream = s->owed[layer->makes];
        s->owed[layer->makes].data = NULL;
    }
    return status || !whole ? status : layer_weights(s, layer, err);
}

/* whole: the gradients of a layer's weights follow those of its input at once. */
static sm_status backward(sm_stage *s, int chunk, bool whole, sm_error *err) {
    int first, end;
    sm_local_block stream = {.data = NULL};
    sm_status status = take_over(s, chunk, true, false, &stream, err);
    layers_of(s, chunk, &first, &end);
    for (int i = end - 1; !status && i >= first; i--)
        status = layer_backward(s, &s->layer[i], &stream, whole, err);
    if (!status) status = hand_over(s, chunk, true, false, &stream, err);
    stage_drop(s, &stream);
    return status;
}

static sm_status weights(sm_stage *s, int chunk, sm_error *err) {
    int first, end;
    sm_status status = SM_OK;
    layers_of(s, chunk, &first, &end);
    for (int i = end - 1; !status && i >= first; i--) status = layer_weights(s, &s->layer[i], err);
    return status;
}

static sm_status act(sm_stage *s, const sm_train_action *a, sm_error *err) {
    s->microbatch = a->microbatch;
    switch (a->act) {
    case SM_TRAIN_FORWARD: return forward(s, a->chunk, err);
    case SM_TRAIN_BACKWARD: return backward(s, a->chunk, true, err);
    case SM_TRAIN_BACKWARD_INPUT: return backward(s, a->chunk, false, err);
    case SM_TRAIN_BACKWARD_WEIGHT: return weights(s, a->chunk, err);
    case SM_TRAIN_READ: return read_source(s, a->chunk, err);
    }
    return sm_fail(err, SM_INTERNAL, "an unknown action of a pipeline");
}

sm_status sm_stage_run(sm_stage *s, const sm_train_action *action, int n, sm_error *err) {
    sm_status status = SM_OK;
    forget_gradients(s);
    s->residents = 0;
    for (int i = 0; !status && i < n; i++) status = act(s, &action[i], err);
    for (int m = 0; !status && !action && m < s->microbatches; m++) {
        status = act(s, &(sm_train_action){SM_TRAIN_FORWARD, 0, m}, err);
        if (!status) status = act(s, &(sm_train_action){SM_TRAIN_BACKWARD, 0, m}, err);
    }
    for (int i = 0; i < s->messages; i++) stage_drop(s, &s->message[i].block);
    s->messages = 0;
    for (size_t i = 0; i < slots(s); i++) stage_drop(s, &s->lent[i]);
    for (int i = 0; i < s->loans; i++) stage_drop(s, &s->owed[i]);
    return status;
}

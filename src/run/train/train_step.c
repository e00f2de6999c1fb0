/* A step: the actions of this rank's stage in their order, boundaries handed between stages, then
 * the optimizer. */
#include <math.h>
#include <string.h>

#include "train_parts.h"

static int chunks_of(const sm_trainer *t) { return t->setup->chunks ? t->setup->chunks : 1; }

static bool begins_model(const sm_trainer *t, int chunk) {
    return chunk % train_chunks_of_model(t->setup) == 0;
}

static bool ends_model(const sm_trainer *t, int chunk) { return begins_model(t, chunk + 1); }

static int stage_of(const sm_trainer *t, int chunk) {
    return t->setup->chunks ? t->setup->chunk[chunk].stage : 0;
}

/* ---- boundaries between chunks ---- */

static int tag_of(const sm_trainer *t, bool forward, int chunk) {
    return ((forward ? 0 : chunks_of(t)) + chunk) * t->microbatches + t->microbatch;
}

static sm_communicator *pipeline(const sm_trainer *t) { return t->mesh->over[1 << TRAIN_PIPELINE]; }

/* The block of the residual stream on this rank, as the layer that begins a chunk reads it. */
static sm_status boundary_block(const sm_trainer *t, const train_piece *p, sm_local_block *out,
                                sm_error *err) {
    const sm_einsum *einsum;
    const sm_array *array = train_array_of(p, p->program.input, &einsum);
    if (!array) return sm_fail(err, SM_INTERNAL, "nothing reads the residual stream");
    sm_layout layout = sm_layout_of(array);
    return train_block_like(t, einsum, array, &layout, SM_ELEMENT_F32, out, err);
}

static size_t bytes_of(const sm_local_block *b) {
    return sm_local_block_count(b) * sm_element_bytes(b->element);
}

/* The blocks of messages that have arrived are not read any more. */
static sm_status free_arrived(sm_trainer *t, sm_error *err) {
    sm_communicator *c = pipeline(t);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < t->messages; i++) {
        train_message *m = &t->message[i];
        if (m->local || !m->block.data || !c->backend->done(c, &m->handle)) continue;
        status = c->backend->wait(c, &m->handle, err);
        sm_local_block_free(&m->block);
    }
    return status;
}

/* Takes the block; it lives until the message has arrived. A message within a stage waits for its
 * reader. */
static sm_status hand_over(sm_trainer *t, int to_stage, int tag, sm_local_block *block,
                           sm_error *err) {
    sm_communicator *c = pipeline(t);
    bool local = to_stage == t->stage;
    sm_status status = local ? SM_OK : free_arrived(t, err);
    train_message *m = &t->message[t->messages++];
    *m = (train_message){.block = *block, .tag = tag, .local = local};
    block->data = NULL;
    if (local || status) return status;
    return c->backend->start_send(c, m->block.data, bytes_of(&m->block), to_stage, tag, &m->handle,
                                  err);
}

static sm_status take_local(sm_trainer *t, int tag, sm_local_block *block, sm_error *err) {
    for (int i = 0; i < t->messages; i++) {
        train_message *m = &t->message[i];
        if (!m->local || m->tag != tag || !m->block.data) continue;
        *block = m->block;
        m->block.data = NULL;
        return SM_OK;
    }
    return sm_fail(err, SM_INTERNAL, "a chunk of layers runs before the one that feeds it");
}

static sm_status receive(sm_trainer *t, int from_stage, int tag, sm_local_block *block,
                         sm_error *err) {
    sm_communicator *c = pipeline(t);
    sm_request_handle handle = {{NULL}};
    double begun_s = sm_clock_s();
    sm_status status =
        c->backend->start_receive(c, block->data, bytes_of(block), from_stage, tag, &handle, err);
    if (!status) status = c->backend->wait(c, &handle, err);
    double waited_s = sm_clock_s() - begun_s;
    t->time_s[SM_TRAIN_TIME_PIPELINE] += waited_s;
    train_outside_took(t, TRAIN_HAND_OVER, waited_s);
    return status;
}

static sm_status take_over(sm_trainer *t, const train_layer *layer, int from_stage, int tag,
                           sm_local_block *block, sm_error *err) {
    if (from_stage == t->stage) return take_local(t, tag, block, err);
    sm_status status = boundary_block(t, layer->piece, block, err);
    if (!status) status = receive(t, from_stage, tag, block, err);
    return status ? status : free_arrived(t, err);
}

/* Every send is waited for, or memory that is still read would be freed. */
static sm_status end_messages(sm_trainer *t, sm_status so_far, sm_error *err) {
    sm_status status = so_far;
    for (int i = 0; i < t->messages; i++) {
        train_message *m = &t->message[i];
        if (!status && !m->local && m->block.data)
            status = pipeline(t)->backend->wait(pipeline(t), &m->handle, err);
        sm_local_block_free(&m->block);
    }
    t->messages = 0;
    return status;
}

/* ---- actions ---- */

static train_saved *saved_of(const sm_trainer *t, const train_layer *layer) {
    size_t number = (size_t)(layer - t->layer);
    return &t->saved[number * (size_t)t->microbatches + (size_t)t->microbatch];
}

/* The layers of a chunk: [*first, *end) of this stage's. */
static void layers_of(const sm_trainer *t, int chunk, int *first, int *end) {
    *first = 0;
    while (*first < t->layers && t->layer[*first].chunk != chunk) ++*first;
    *end = *first;
    while (*end < t->layers && t->layer[*end].chunk == chunk) ++*end;
}

/* log S of each token, counted once though several ranks may hold it. */
static void add_loss(sm_trainer *t, const train_layer *layer, const train_saved *saved) {
    const sm_program *b = &layer->piece->program;
    const sm_tensor *loss = &b->tensor[b->op[b->ops - 1].out];
    const sm_local_block *sums = &saved->value[b->op[b->ops - 1].out];
    double copies = train_degree(t, (1u << SM_AXIS_COUNT) - 1), total = 0;
    for (int d = 0; d < loss->rank; d++) copies /= train_degree(t, loss->at[d]);
    for (size_t i = 0; i < sm_local_block_count(sums); i++)
        total += log(((const double *)sums->data)[i]);
    t->loss += total / copies;
}

/* The output of a layer becomes the input of the next; both keep it only where both want it. */
static sm_status pass_on(const train_layer *layer, train_saved *saved, sm_local_block *stream,
                         sm_error *err) {
    sm_local_block *out = &saved->value[layer->piece->program.output];
    if (layer->piece->kept >> layer->piece->program.output & 1)
        return train_block_copy(out, stream, err);
    *stream = *out;
    out->data = NULL;
    memory_mark(stream->data, SM_TRAIN_MEMORY_BUFFERS);
    return SM_OK;
}

static sm_status layer_forward(sm_trainer *t, train_layer *layer, sm_local_block *stream,
                               sm_error *err) {
    const sm_program *b = &layer->piece->program;
    train_saved *saved = saved_of(t, layer);
    if (b->input >= 0) {
        saved->value[b->input] = *stream;
        memory_mark(stream->data, SM_TRAIN_MEMORY_ACTIVATIONS);
        stream->data = NULL;
    }
    sm_status status = train_offload_begin(t, layer, err);
    if (!status) status = train_forward(t, layer, saved, err);
    if (!status && b->output >= 0) status = pass_on(layer, saved, stream, err);
    if (!status && b->output < 0) add_loss(t, layer, saved);
    train_saved_free(saved, layer->piece->kept | TRAIN_KEEP_ARRIVED);
    if (!status) train_offload_end(t, layer, saved);
    return status;
}

static sm_status forward(sm_trainer *t, int chunk, sm_error *err) {
    int first, end;
    sm_local_block stream = {.data = NULL};
    sm_status status = SM_OK;
    layers_of(t, chunk, &first, &end);
    if (!begins_model(t, chunk))
        status = take_over(t, &t->layer[first], stage_of(t, chunk - 1), tag_of(t, true, chunk),
                           &stream, err);
    for (int i = first; !status && i < end; i++)
        status = layer_forward(t, &t->layer[i], &stream, err);
    if (!status && !ends_model(t, chunk))
        status = hand_over(t, stage_of(t, chunk + 1), tag_of(t, true, chunk + 1), &stream, err);
    sm_local_block_free(&stream);
    return status;
}

static sm_status layer_backward(sm_trainer *t, train_layer *layer, sm_local_block *stream,
                                bool whole, sm_error *err) {
    train_saved *saved = saved_of(t, layer);
    sm_status status = train_offload_fetch(t, layer, saved, err);
    return status ? status : train_backward(t, layer, saved, stream, whole, err);
}

static sm_status layer_weights(sm_trainer *t, train_layer *layer, sm_error *err) {
    train_saved *saved = saved_of(t, layer);
    if (!saved->open) return sm_fail(err, SM_INTERNAL, "weight gradients before their inputs'");
    sm_status status = train_backward_weight(saved, err);
    train_saved_free(saved, 0);
    if (!status && train_reduces_each(t) && t->updating) status = train_reduce_layer(t, layer, err);
    return status;
}

/* whole: the gradients of a layer's weights follow those of its input at once. */
static sm_status backward(sm_trainer *t, int chunk, bool whole, sm_error *err) {
    int first, end;
    sm_local_block stream = {.data = NULL};
    sm_status status = SM_OK;
    layers_of(t, chunk, &first, &end);
    if (!ends_model(t, chunk))
        status = take_over(t, &t->layer[end - 1], stage_of(t, chunk + 1), tag_of(t, false, chunk),
                           &stream, err);
    for (int i = end - 1; !status && i >= first; i--) {
        status = layer_backward(t, &t->layer[i], &stream, whole, err);
        if (!status && whole) status = layer_weights(t, &t->layer[i], err);
    }
    if (!status && !begins_model(t, chunk))
        status = hand_over(t, stage_of(t, chunk - 1), tag_of(t, false, chunk - 1), &stream, err);
    sm_local_block_free(&stream);
    return status;
}

static sm_status weights(sm_trainer *t, int chunk, sm_error *err) {
    int first, end;
    sm_status status = SM_OK;
    layers_of(t, chunk, &first, &end);
    for (int i = end - 1; !status && i >= first; i--) status = layer_weights(t, &t->layer[i], err);
    return status;
}

static sm_status act(sm_trainer *t, const sm_train_action *a, sm_error *err) {
    t->microbatch = a->microbatch;
    switch (a->act) {
    case SM_TRAIN_FORWARD: return forward(t, a->chunk, err);
    case SM_TRAIN_BACKWARD: return backward(t, a->chunk, true, err);
    case SM_TRAIN_BACKWARD_INPUT: return backward(t, a->chunk, false, err);
    case SM_TRAIN_BACKWARD_WEIGHT: return weights(t, a->chunk, err);
    }
    return sm_fail(err, SM_INTERNAL, "an unknown action of a pipeline");
}

static sm_status run_stage(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    const sm_train_setup *s = t->setup;
    for (int i = 0; !status && s->chunks && i < s->actions[t->stage]; i++)
        status = act(t, &s->action[t->stage][i], err);
    for (int m = 0; !status && !s->chunks && m < t->microbatches; m++) {
        status = act(t, &(sm_train_action){SM_TRAIN_FORWARD, 0, m}, err);
        if (!status) status = act(t, &(sm_train_action){SM_TRAIN_BACKWARD, 0, m}, err);
    }
    return end_messages(t, status, err);
}

/* ---- steps ---- */

/* Linear warm-up, then a cosine from the rate to a tenth of it. */
static double rate_of(const sm_train_setup *s, int step) {
    if (step < s->warmup) return s->rate * (step + 1) / s->warmup;
    if (step >= s->steps) return s->rate / 10;
    double part = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->rate * (0.55 + 0.45 * cos(3.14159265358979323846 * part));
}

static void free_sum(train_group *g) {
    memory_free(g->sum);
    g->sum = NULL;
}

static void forget_gradients(sm_trainer *t) {
    for (int i = 0; i < t->layers; i++) {
        for (int k = 0; k < SM_MAX_TENSORS; k++) sm_local_block_free(&t->layer[i].gradient[k]);
        for (int g = 0; g < t->layer[i].groups; g++) free_sum(&t->layer[i].group[g]);
    }
}

static sm_status run_batch(sm_trainer *t, int step, bool updating, sm_error *err) {
    t->step = step;
    t->loss = 0;
    t->residents = 0;
    memset(t->time_s, 0, sizeof t->time_s);
    train_times_begin(t);
    t->updating = updating;
    forget_gradients(t);
    return run_stage(t, err);
}

static sm_status sum_over_ranks(sm_trainer *t, double *values, size_t n, sm_error *err) {
    return sm_run_all_reduce(t->world, values, n, SM_ELEMENT_F64, err);
}

static double tokens_of(const sm_trainer *t) {
    return (double)t->setup->sequences * t->setup->tokens;
}

static sm_status update(sm_trainer *t, double rate, double scale, sm_error *err) {
    train_traffic before;
    double begun_s = sm_clock_s();
    train_traffic_now(t, &before);
    sm_status status = train_update(t, rate, scale, err);
    t->time_s[SM_TRAIN_TIME_OPTIMIZER] += train_step_end_took(t, TRAIN_OPTIMIZER, begun_s, &before);
    return status;
}

static sm_status learn(sm_trainer *t, sm_train_result *result, sm_error *err) {
    sm_status status = train_reduce_rest(t, err);
    if (status) return status;
    double begun_s = sm_clock_s(), sums[2] = {t->loss, train_norm_share(t)};
    status = sum_over_ranks(t, sums, 2, err);
    train_outside_took(t, TRAIN_LOSS_AND_NORM, sm_clock_s() - begun_s);
    if (status) return status;
    result->loss = sums[0] / tokens_of(t);
    result->gradient_norm = sqrt(sums[1]);
    if (!isfinite(result->loss) || !isfinite(result->gradient_norm))
        return sm_fail(err, SM_BAD_INPUT, "training diverged in step %d: the loss is no number",
                       t->step);
    result->rate = rate_of(t->setup, t->step);
    double clip = t->setup->clip, scale = 1;
    if (clip > 0 && result->gradient_norm > clip) scale = clip / result->gradient_norm;
    return update(t, result->rate, scale, err);
}

const char *const sm_train_time_names[SM_TRAIN_TIME_COUNT] = {
#define X(id, name) name,
    SM_TRAIN_TIMES(X)
#undef X
};

/* What was not measured is the rest. */
static void account(sm_trainer *t, const train_traffic *before, sm_train_result *r) {
    double total = 0;
    train_traffic now;
    train_traffic_now(t, &now);
    train_times_end(t);
    train_bytes_predicted(t, r->bytes_predicted);
    memcpy(r->time_s, t->time_s, sizeof r->time_s);
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        r->bytes_counted[i] = now.bytes[i] - before->bytes[i];
        r->collective_s[i] = now.seconds[i] - before->seconds[i];
        r->time_s[SM_TRAIN_TIME_COLLECTIVE] += r->collective_s[i];
    }
    for (int i = 0; i < SM_TRAIN_TIME_REST; i++) total += r->time_s[i];
    r->time_s[SM_TRAIN_TIME_REST] = r->seconds - total;
}

int sm_trainer_stage(const sm_trainer *t) { return t->stage; }

sm_status sm_trainer_step(sm_trainer *t, int step, sm_train_result *result, sm_error *err) {
    double begun_s = sm_clock_s();
    train_traffic before;
    memset(result, 0, sizeof *result);
    train_traffic_now(t, &before);
    memory_scope scope = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    sm_status status = run_batch(t, step, true, err);
    if (!status) status = learn(t, result, err);
    memory_restore(scope);
    result->seconds = sm_clock_s() - begun_s;
    account(t, &before, result);
    return status;
}

sm_status sm_trainer_gradients(sm_trainer *t, int step, sm_train_result *result, sm_error *err) {
    memset(result, 0, sizeof *result);
    memory_scope scope = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    sm_status status = run_batch(t, step, false, err);
    double loss = t->loss;
    if (!status) status = sum_over_ranks(t, &loss, 1, err);
    memory_restore(scope);
    result->loss = loss / tokens_of(t);
    return status;
}

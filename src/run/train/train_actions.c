/* What the interpreter of a step calls on a rank: memory that is accounted, moves over
 * communicators, kernels, timed. */

#include "train_parts.h"
#include "einsum_parts.h"

static sm_status make(void *context, sm_local_block *b, bool cleared, sm_error *err) {
    (void)context;
    const sm_local_block like = *b;
    return (cleared ? sm_local_block_new : local_block_raw)(like.element, like.rank, like.size, b,
                                                            err);
}

static void drop(void *context, sm_local_block *block) {
    (void)context;
    sm_local_block_free(block);
}

static void mark(void *context, sm_local_block *block, sm_train_memory_part part) {
    (void)context;
    memory_mark(block->data, part);
}

/* ---- kernels ---- */

/* Kernels work in single precision: what is stored otherwise comes to them, and goes from them, as
 * a copy. Products read their operands in panels (local_einsum.c), look-ups rows of their table,
 * rings the block at hand. */
enum { MOST_COPIES = SM_MAX_OPERANDS + SM_MAX_INPUTS };
typedef struct copies {
    int n, outs;
    sm_local_block in[MOST_COPIES], out[SM_MAX_INPUTS];
} copies;

static bool is_packed(const sm_local_block *b) {
    return b && b->element != SM_ELEMENT_F32 && b->element != SM_ELEMENT_F64;
}

static sm_status widen(const sm_local_block **b, copies *w, sm_error *err) {
    if (!is_packed(*b) || !(*b)->data) return SM_OK;
    assert(w->n < MOST_COPIES);
    sm_local_block *wide = &w->in[w->n];
    sm_status status = local_block_raw(SM_ELEMENT_F32, (*b)->rank, (*b)->size, wide, err);
    if (status) return status;
    sm_local_block_read(*b, 0, sm_local_block_count(wide), wide->data);
    w->n++;
    *b = wide;
    return SM_OK;
}

static bool reads_packed(const train_call *k, int operand, bool forward) {
    bool keys = operand == ATTENTION_KEYS || operand == ATTENTION_VALUES;
    return k->op->kind == SM_OP_EINSUM || (k->op->kind == SM_OP_GATHER && forward) ||
           (k->ring && keys);
}

static sm_status widen_all(train_call *k, copies *w, bool forward, sm_error *err) {
    bool several = k->op->kind == SM_OP_ATTENTION || k->op->kind == SM_OP_KERNEL, packed = false;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < SM_MAX_OPERANDS; i++)
        if (!reads_packed(k, i, forward)) status = widen(&k->in[i].block, w, err);
    bool reads = k->op->kind != SM_OP_EINSUM && k->op->kind != SM_OP_GATHER;
    for (int i = 0; !status && reads && i < k->op->inputs; i++)
        status = widen(&k->input[i], w, err);
    w->outs = several && !forward ? k->op->inputs : 1;
    for (int i = 0; i < w->outs; i++) packed = packed || is_packed(&k->out[i]);
    if (!packed) w->outs = 0;
    for (int i = 0; !status && i < w->outs; i++) {
        w->out[i] = k->out[i];
        if (is_packed(&k->out[i]))
            status = (several ? sm_local_block_new : local_block_raw)(
                SM_ELEMENT_F32, k->out[i].rank, k->out[i].size, &w->out[i], err);
    }
    if (packed) k->out = w->out;
    return status;
}

static sm_status timed(sm_trainer *t, const sm_call *c, sm_error *err) {
    const bool forward = c->kind == SM_CALL_FORWARD;
    assert(c->op);
    train_call k = {.t = t,
                    .list = c->list,
                    .saved = c->saved,
                    .task = c->task,
                    .op = c->op,
                    .lines = t->lines[c->list - t->list],
                    .numbers = &t->numbers[c->list - t->list],
                    .layer = c->layer ? c->layer->number : 0,
                    .ring = c->ring,
                    .out = c->out,
                    .which = c->which};
    k.line = &k.lines->line[c->op->line];
    for (int i = 0; i < SM_MAX_INPUTS; i++) k.input[i] = c->input[i];
    for (int i = 0; i < SM_MAX_OPERANDS; i++) {
        k.in[i] = (train_array){.block = c->in[i].block, .layout = c->in[i].layout};
        if (c->in[i].block) train_offsets(t, &c->in[i].layout, c->in[i].block, k.in[i].offset);
    }
    train_offsets(t, &c->made, c->out, k.out_offset);

    double begun_s = sm_clock_s(), inside_s = t->inside_s;
    copies w = {.n = 0};
    sm_status status = widen_all(&k, &w, forward, err);
    if (!status) status = forward ? train_forward_kernel(&k, err) : train_gradient_kernel(&k, err);
    for (int i = 0; i < w.n; i++) sm_local_block_free(&w.in[i]);
    for (int i = 0; i < w.outs; i++) {
        if (w.out[i].data == c->out[i].data) continue;
        if (!status)
            sm_elements_write(c->out[i].element, c->out[i].data, 0,
                              sm_local_block_count(&c->out[i]), w.out[i].data);
        sm_local_block_free(&w.out[i]);
    }
    train_kernel_took(t, c->op, begun_s, inside_s);
    return status;
}

/* The loss has log S of each token; its slope 1/S starts the backward pass. */
static void slope_of_loss(const sm_trainer *t, const sm_call *c) {
    double *slope = c->out->data;
    const double *sum = c->in[0].block->data;
    size_t tokens = c->out->size[1];
    for (size_t i = 0; i < sm_local_block_count(c->out); i++)
        slope[i] = sum[i] > 0 ? train_weight_of(t, t->pairs.first + i / tokens) / sum[i] : 0;
}

static sm_status compute(void *context, sm_call *c, sm_error *err) {
    sm_trainer *t = context;
    switch (c->kind) {
    case SM_CALL_FORWARD:
    case SM_CALL_INPUT_GRADIENT:
    case SM_CALL_WEIGHT_GRADIENT: return timed(t, c, err);
    case SM_CALL_APPEND: return train_append(t, c, err);
    case SM_CALL_ADD:
        assert(c->out->element == c->in[0].block->element);
        sm_elements_add(c->out->data, c->in[0].block->data, sm_local_block_count(c->out),
                        c->out->element);
        return SM_OK;
    case SM_CALL_LOSS_SLOPE: slope_of_loss(t, c); return SM_OK;
    case SM_CALL_GIVE: train_give(t, c); return SM_OK;
    case SM_CALL_SELECT: return generate_select(t, c->out, err);
    case SM_CALL_LOSS:
        if (t->serving) return generate_scores(t, c, err);
        return train_add_loss(t, c->list->program, c->in[0].block, err);
    default: train_row_call(t, c); return SM_OK;
    }
}

/* ---- tasks, and rows of gradients ---- */

static void begin_task(void *context, const sm_task_list *list, const sm_program_task *task,
                       bool again) {
    sm_trainer *t = context;
    if (task) {
        train_task_begins(t, list, task, again);
        return;
    }
    train_traffic_now(t, &t->rows_before);
    t->busy_since_s = sm_clock_s();
}

static void end_task(void *context) {
    sm_trainer *t = context;
    if (t->busy) train_task_ends(t);
    else train_step_end_took(t, TRAIN_ROWS_OF_GRADIENTS, t->busy_since_s, &t->rows_before);
}

/* ---- a stage ---- */

/* Without a device host memory is the same memory under another account. */
static sm_status carry(void *context, sm_local_block *b, sm_train_memory_part to, sm_error *err) {
    (void)context;
    sm_local_block there;
    memory_scope before = memory_for(to);
    sm_status status = local_block_raw(b->element, b->rank, b->size, &there, err);
    memory_restore(before);
    if (status) return status;
    memcpy(there.data, b->data, sm_local_block_count(b) * sm_element_bytes(b->element));
    sm_local_block_free(b);
    *b = there;
    return SM_OK;
}

void train_actions_new(sm_trainer *t) {
    const sm_train_setup *s = t->setup;
    t->actions = (sm_actions){.context = t,
                              .gradients = s->gradients,
                              .make = make,
                              .move = train_move,
                              .compute = compute,
                              .drop = drop,
                              .mark = mark,
                              .begin_task = begin_task,
                              .end_task = end_task,
                              .send = train_send,
                              .receive = train_receive,
                              .join_rows = train_join_rows,
                              .carry = carry};
    memcpy(t->actions.at, t->mesh->at, sizeof t->actions.at);
    t->stage = (sm_stage){.actions = &t->actions,
                          .number = t->mesh->at[TRAIN_PIPELINE],
                          .chunks = s->chunks,
                          .copies = train_copies(s),
                          .chunk = s->chunk,
                          .microbatches = t->serving ? 1 : sm_train_setup_microbatches(s),
                          .zero = s->zero,
                          .state_copies = s->state_copies,
                          .offloads = s->offload_activations,
                          .pools = t->serving && sm_model_pools(s->model)};
}

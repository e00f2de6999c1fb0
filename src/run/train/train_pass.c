/* One pass of one microbatch through one layer: the tasks of its program, forward or backward. */
#include <string.h>

#include "train_parts.h"

/* An operand on its way, after one step: others that go the same way take it from here. */
typedef struct moved {
    sm_move what;
    bool borrowed;
    sm_local_block block;
} moved;

enum { MOST_MOVED = 160, GRADIENTS_OF_ATTENTION = 3 };
struct train_pass {
    sm_trainer *t;
    const train_piece *piece;
    train_layer *layer;
    train_saved *saved;
    bool backward;
    sm_pass_order order;
    int at;                              /* the next entry of the order */
    sm_local_block home[SM_MAX_TENSORS]; /* gradients where their tensors are stored */
    sm_local_block share[SM_MAX_TENSORS][TRAIN_SHARES];
    sm_layout fell[SM_MAX_TENSORS][TRAIN_SHARES]; /* how a share is laid out */
    sm_local_block weight_share;
    sm_local_block attention[GRADIENTS_OF_ATTENTION];
    int moves;
    moved move[MOST_MOVED];
};
typedef train_pass pass;

static const sm_op *op_of(const pass *p, const sm_program_task *task) {
    return &p->piece->program.op[task->op];
}

static const sm_tensor *tensor_of(const pass *p, int tensor) {
    return &p->piece->program.tensor[tensor];
}

/* ---- operands ---- */

static bool same_layout(const pass *p, const sm_layout *a, const sm_layout *b) {
    return sm_layout_same(&p->t->mesh->mesh, a, b);
}

static moved *find(pass *p, const sm_move *like) {
    for (int i = 0; i < p->moves; i++)
        if (sm_move_same(&p->piece->program, &p->t->mesh->mesh, &p->move[i].what, like))
            return &p->move[i];
    return NULL;
}

static sm_local_block *source(pass *p, const sm_program_task *task, int operand) {
    int tensor = task->tensor[operand];
    if (task->gradient[operand]) return &p->home[tensor];
    if (tensor_of(p, tensor)->role == SM_ROLE_WEIGHT) return &p->layer->weight[tensor];
    return &p->saved->value[tensor];
}

/* Ops that run again keep nothing from their first run. */
static int stays_after(const pass *p, const sm_program_task *task, int operand) {
    bool weight = tensor_of(p, task->tensor[operand])->role == SM_ROLE_WEIGHT;
    bool once = weight || p->backward || !(p->piece->again >> task->op & 1);
    return once ? sm_operand_stays(&p->piece->program, task, operand) : -1;
}

/* The step after which an operand is taken from what stayed; -1: it is taken from the start. */
static int resumes_after(const pass *p, const sm_program_task *task, int operand) {
    if (!p->saved->arrived[task->tensor[operand]].data) return -1;
    return sm_operand_resumes(&p->piece->program, task, operand);
}

static sm_status take_step(pass *p, const sm_step *step, const sm_move *like,
                           const sm_layout *before, const sm_local_block **block, sm_error *err) {
    const moved *done = find(p, like);
    if (!done) {
        moved *fresh = &p->move[p->moves];
        if (p->moves == MOST_MOVED)
            return sm_fail(err, SM_INTERNAL, "a layer moves more than %d arrays", MOST_MOVED);
        *fresh = (moved){.what = *like};
        sm_status status = train_move(p->t, like->tensor, like->gradient, step, before, *block,
                                      &fresh->block, err);
        if (status) return status;
        p->moves++;
        done = fresh;
    }
    *block = &done->block;
    return SM_OK;
}

/* Of two ops that receive it, one in the forward pass and one that runs again, the first keeps it.
 */
static void keep_arrived(pass *p, const sm_move *like) {
    moved *m = find(p, like);
    bool weight = tensor_of(p, like->tensor)->role == SM_ROLE_WEIGHT;
    if (p->saved->arrived[like->tensor].data) return;
    p->saved->arrived[like->tensor] = m->block;
    if (!weight) memory_mark(m->block.data, SM_TRAIN_MEMORY_ACTIVATIONS);
    m->borrowed = true;
}

/* Steps (bit) that attention makes itself, as a ring. */
static uint32_t made_in_ring(const pass *p, const sm_program_task *task) {
    return train_ring_step(p->t, op_of(p, task), task) ? task->ring : 0;
}

/* The steps of an operand from number `first` on. */
static sm_status take_steps(pass *p, const sm_program_task *task, int operand, int first,
                            train_array *out, sm_error *err) {
    int stays = stays_after(p, task, operand);
    for (int i = first; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if (step->array != operand || step->kind == SM_STEP_EINSUM) continue;
        if (made_in_ring(p, task) >> i & 1u) continue;
        sm_move like = sm_move_of(task, operand, i);
        sm_status status = take_step(p, step, &like, &out->layout, &out->block, err);
        if (status) return status;
        out->layout = step->after;
        if (i == stays) keep_arrived(p, &like);
    }
    return SM_OK;
}

static sm_status fetch(pass *p, const sm_program_task *task, int operand, train_array *out,
                       sm_error *err) {
    int tensor = task->tensor[operand];
    *out = (train_array){.layout = sm_layout_of(&task->einsum.in[operand])};
    if (tensor_of(p, tensor)->role == SM_ROLE_IDS ||
        sm_operand_is_shape(&p->piece->program, task, operand))
        return SM_OK;
    int resumes = resumes_after(p, task, operand);
    out->block = resumes < 0 ? source(p, task, operand) : &p->saved->arrived[tensor];
    if (resumes >= 0) out->layout = task->lowering.step[resumes].after;
    if (!out->block->data)
        return sm_fail(err, SM_INTERNAL, "%s of %s is not there", tensor_of(p, tensor)->name,
                       op_of(p, task)->name);
    sm_status status = take_steps(p, task, operand, resumes + 1, out, err);
    if (!status) train_offsets(p->t, &out->layout, out->block, out->offset);
    return status;
}

/* ---- results ---- */

static sm_layout made_as(const sm_program_task *task) {
    for (int i = 0; i < task->lowering.steps; i++)
        if (task->lowering.step[i].kind == SM_STEP_EINSUM) return task->lowering.step[i].after;
    return sm_layout_of(&task->einsum.out);
}

/* The gradient of what travels in a ring arrives where that set out. */
static void set_home(const pass *p, const sm_program_task *task, const train_array *in,
                     sm_layout *made) {
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if (!(made_in_ring(p, task) >> i & 1u) || task->tensor[step->array] != task->result)
            continue;
        for (int a = 0; a < SM_AXIS_COUNT; a++) {
            if (!(step->axes >> a & 1u)) continue;
            made->dim[a] = in[step->array].layout.dim[a];
            made->place[a] = in[step->array].layout.place[a];
        }
    }
}

static sm_element element_of(const pass *p, int tensor) {
    return strcmp(tensor_of(p, tensor)->name, "loss") == 0 ? SM_ELEMENT_F64 : SM_ELEMENT_F32;
}

static sm_status prepare(pass *p, const sm_program_task *task, train_call *c, sm_layout *layout,
                         sm_local_block *out, sm_error *err) {
    sm_status status = SM_OK;
    *c = (train_call){.t = p->t,
                      .layer = p->layer,
                      .saved = p->saved,
                      .task = task,
                      .op = op_of(p, task),
                      .out = out};
    *layout = made_as(task);
    out->data = NULL;
    for (int i = 0; !status && i < task->einsum.operands; i++)
        status = fetch(p, task, i, &c->in[i], err);
    set_home(p, task, c->in, layout);
    bool clears = c->op->kind == SM_OP_ATTENTION; /* the other kernels do themselves */
    if (!status)
        status = (clears ? train_block_like : train_raw_block_like)(
            p->t, &task->einsum, &task->einsum.out, layout, element_of(p, task->result), out, err);
    if (!status) train_offsets(p->t, layout, out, c->out_offset);
    return status;
}

/* ---- kernels, timed ---- */

static sm_status timed(train_call *c, sm_status (*kernel)(train_call *c, sm_error *err),
                       sm_error *err) {
    double begun_s = sm_clock_s(), inside_s = c->t->inside_s;
    sm_status status = kernel(c, err);
    train_kernel_took(c->t, c->op, begun_s, inside_s);
    return status;
}

/* ---- forward ---- */

static sm_status forward(pass *p, const sm_program_task *task, sm_error *err) {
    const char *name = op_of(p, task)->name;
    if (p->t->serving && strcmp(name, "append") == 0)
        return train_append(p->t, p->piece, task, p->saved, err);
    if (p->t->serving && strcmp(name, "sample") == 0) return SM_OK; /* whoever feeds does */
    train_call c;
    sm_layout layout;
    sm_local_block out;
    sm_status status = prepare(p, task, &c, &layout, &out, err);
    if (!status) status = timed(&c, train_forward_kernel, err);
    bool anew = !p->backward && (p->piece->again >> task->op & 1); /* its sums are, too */
    if (anew && c.op->kind == SM_OP_ATTENTION) sm_local_block_free(&p->saved->log_sums);
    if (!status) status = train_block_move(p->t, &task->lowering, -1, &layout, &out, err);
    if (status) {
        sm_local_block_free(&out);
        return status;
    }
    sm_local_block_free(&p->saved->value[task->result]);
    p->saved->value[task->result] = out;
    memory_mark(out.data, SM_TRAIN_MEMORY_ACTIVATIONS);
    return SM_OK;
}

/* ---- gradients ---- */

static sm_status add_share(pass *p, const sm_program_task *task, const sm_layout *layout,
                           sm_local_block *block, sm_error *err) {
    sm_local_block *to = &p->share[task->result][task->share];
    sm_layout *fell = &p->fell[task->result][task->share];
    if (to->data && !same_layout(p, fell, layout))
        return sm_fail(err, SM_INTERNAL, "parts of the gradient of %s lie differently",
                       tensor_of(p, task->result)->name);
    *fell = *layout;
    return train_block_add(to, block, err);
}

/* The forward op's inputs as the kernels of its backward want them. */
static void give_inputs(const pass *p, train_call *c) {
    for (int i = 0; i < c->op->inputs; i++) {
        int tensor = c->op->in[i];
        const sm_local_block *arrived = &p->saved->arrived[tensor];
        bool weight = tensor_of(p, tensor)->role == SM_ROLE_WEIGHT;
        c->input[i] = !weight         ? &p->saved->value[tensor]
                      : arrived->data ? arrived
                                      : &p->layer->weight[tensor];
        if (c->task->result == tensor) c->which = i;
    }
}

/* All three gradients are made at once, with the first; the others wait. */
static sm_status attention(pass *p, train_call *c, sm_local_block *out, sm_error *err) {
    sm_status status = SM_OK;
    if (c->which > 0) {
        sm_local_block *ready = &p->attention[c->which];
        if (sm_local_block_count(ready) != sm_local_block_count(out))
            return sm_fail(err, SM_INTERNAL, "a gradient of attention lies otherwise than wanted");
        sm_local_block_free(out);
        *out = *ready;
        ready->data = NULL;
        return SM_OK;
    }
    for (int i = 0; !status && i < GRADIENTS_OF_ATTENTION; i++)
        status = sm_local_block_new(SM_ELEMENT_F32, c->in[i].block->rank, c->in[i].block->size,
                                    &p->attention[i], err);
    train_call all = *c;
    all.out = p->attention;
    if (!status) status = timed(&all, train_attention_backward, err);
    if (status) return status;
    sm_local_block_free(out);
    *out = p->attention[0];
    p->attention[0].data = NULL;
    return SM_OK;
}

static sm_status check_inputs(const train_call *c, sm_error *err) {
    size_t out = sm_local_block_count(c->out), in = sm_local_block_count(c->in[0].block);
    if (c->op->kind != SM_OP_VECTOR || !c->task->moves) return SM_OK;
    for (int i = 0; i < c->op->inputs; i++)
        if ((c->op->reads >> i & 1) && !c->input[i]->data)
            return sm_fail(err, SM_INTERNAL, "%s was not kept for its backward", c->op->name);
    if (strcmp(c->op->name, "loss") == 0) in *= c->out->size[c->out->rank - 1];
    return in == out
               ? SM_OK
               : sm_fail(err, SM_INTERNAL, "the gradient of %s has a wrong size", c->op->name);
}

static sm_status input_gradient(pass *p, const sm_program_task *task, sm_error *err) {
    train_call c;
    sm_layout layout;
    sm_local_block out;
    sm_status status = prepare(p, task, &c, &layout, &out, err);
    give_inputs(p, &c);
    if (!status) status = check_inputs(&c, err);
    if (!status && c.op->kind == SM_OP_ATTENTION) status = attention(p, &c, &out, err);
    else if (!status) status = timed(&c, train_input_kernel, err);
    if (!status) status = add_share(p, task, &layout, &out, err);
    if (status) sm_local_block_free(&out);
    return status;
}

static sm_status weight_gradient(pass *p, const sm_program_task *task, sm_error *err) {
    train_call c;
    sm_layout layout;
    sm_status status = prepare(p, task, &c, &layout, &p->weight_share, err);
    give_inputs(p, &c);
    if (!status) status = timed(&c, train_weight_kernel, err);
    p->fell[task->result][0] = layout;
    return status;
}

/* A whole sum joins a partial one on the first rank of the axes it is whole over. */
static sm_status join(pass *p, const sm_program_task *task, sm_error *err) {
    sm_local_block *from = &p->share[task->result][task->share];
    bool first = true;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if ((task->axes >> a & 1) && p->t->mesh->at[a] > 0) first = false;
    if (first) return train_block_add(&p->share[task->result][task->into], from, err);
    sm_local_block_free(from);
    return SM_OK;
}

/* Steps home that a ring has made already. */
static sm_lowering still_to_do(const sm_program_task *task, const sm_layout *fell,
                               sm_layout *stored) {
    sm_lowering low = task->lowering;
    low.steps = 0;
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        bool done = task->ring >> i & 1u;
        for (int a = 0; a < SM_AXIS_COUNT; a++)
            if ((step->axes >> a & 1u) && fell->dim[a] == SM_UNREDUCED) done = false;
        if (!done) low.step[low.steps++] = *step;
        for (int a = 0; done && a < SM_AXIS_COUNT; a++) {
            if (!(step->axes >> a & 1u)) continue;
            stored->dim[a] = step->after.dim[a];
            stored->place[a] = step->after.place[a];
        }
    }
    return low;
}

static sm_status home(pass *p, const sm_program_task *task, sm_error *err) {
    bool weight = tensor_of(p, task->result)->role == SM_ROLE_WEIGHT;
    int share = weight ? 0 : task->share;
    sm_local_block *from = weight ? &p->weight_share : &p->share[task->result][share];
    sm_local_block *to = weight ? &p->layer->gradient[task->result] : &p->home[task->result];
    sm_layout layout = sm_layout_of(&task->einsum.in[0]);
    sm_layout fell = p->fell[task->result][share];
    for (int a = 0; a < SM_AXIS_COUNT; a++) /* what waits for the end of the step */
        if (weight && fell.dim[a] == SM_UNREDUCED && layout.dim[a] != SM_UNREDUCED)
            fell.dim[a] = layout.dim[a];
    sm_lowering low = still_to_do(task, &fell, &layout);
    if (!same_layout(p, &fell, &layout))
        return sm_fail(err, SM_INTERNAL, "the gradient of %s does not lie as it was priced",
                       tensor_of(p, task->result)->name);
    sm_status status = train_block_move(p->t, &low, 0, &layout, from, err);
    if (!status) status = train_block_move(p->t, &low, -1, &layout, from, err);
    if (!status) status = train_block_add(to, from, err);
    if (weight) memory_mark(to->data, SM_TRAIN_MEMORY_GRADIENTS);
    return status;
}

static sm_status run_task(pass *p, const sm_program_task *task, sm_error *err) {
    switch (task->kind) {
    case SM_TASK_FORWARD: return forward(p, task, err);
    case SM_TASK_INPUT_GRADIENT: return input_gradient(p, task, err);
    case SM_TASK_WEIGHT_GRADIENT: return weight_gradient(p, task, err);
    case SM_TASK_JOIN: return join(p, task, err);
    case SM_TASK_HOME: return home(p, task, err);
    }
    return sm_fail(err, SM_INTERNAL, "an unknown task");
}

static sm_status run(pass *p, const sm_program_task *task, sm_error *err) {
    train_task_begins(p->t, p->piece, task, p->backward);
    sm_status status = run_task(p, task, err);
    train_task_ends(p->t);
    return status;
}

/* ---- passes ---- */

/* What nothing reads any more. */
static void release_moved(pass *p, const sm_last_use *last) {
    const sm_program_task *task = &p->piece->task[last->task];
    for (int i = 0; i < SM_MAX_OPERANDS; i++)
        for (int k = 0; last->moved[i] >> k; k++) {
            if (!(last->moved[i] >> k & 1)) continue;
            sm_move like = sm_move_of(task, i, k);
            moved *m = find(p, &like);
            if (!m) continue;
            if (!m->borrowed) sm_local_block_free(&m->block);
            *m = p->move[--p->moves];
        }
}

static void release(pass *p, const sm_last_use *last) {
    const sm_program *b = &p->piece->program;
    uint64_t stay = p->backward ? 0 : p->piece->kept | (b->output >= 0 ? 1ull << b->output : 0);
    release_moved(p, last);
    for (int i = 0; i < b->tensors; i++) {
        if (last->values >> i & 1 & ~(stay >> i)) sm_local_block_free(&p->saved->value[i]);
        bool activation = b->tensor[i].role == SM_ROLE_ACTIVATION;
        if (p->backward && activation && (last->values >> i & 1))
            sm_local_block_free(&p->saved->arrived[i]);
        if ((last->gradients >> i & 1) && i != b->input) sm_local_block_free(&p->home[i]);
    }
}

/* The entries of the order up to number `end`. */
static sm_status run_until(pass *p, int end, sm_error *err) {
    sm_status status = SM_OK;
    for (; !status && p->at < end; p->at++) {
        const sm_last_use *last = &p->piece->last[p->order][p->at];
        status = run(p, &p->piece->task[last->task], err);
        if (!p->t->serving) release(p, last);
    }
    return status;
}

static pass *begin(sm_trainer *t, train_layer *layer, train_saved *saved, sm_pass_order order) {
    pass *p = sm_calloc(1, sizeof *p);
    if (p) {
        p->t = t;
        p->piece = layer->piece;
        p->layer = layer;
        p->saved = saved;
        p->order = order;
        p->backward = order != SM_PASS_FORWARD;
    }
    return p;
}

static void end(pass *p) {
    for (int i = 0; i < p->moves; i++)
        if (!p->move[i].borrowed) sm_local_block_free(&p->move[i].block);
    for (int i = 0; i < SM_MAX_TENSORS; i++) {
        sm_local_block_free(&p->home[i]);
        for (int k = 0; k < TRAIN_SHARES; k++) sm_local_block_free(&p->share[i][k]);
    }
    for (int i = 0; i < GRADIENTS_OF_ATTENTION; i++) sm_local_block_free(&p->attention[i]);
    sm_local_block_free(&p->weight_share);
    sm_free(p);
}

void train_saved_free(train_saved *saved, uint64_t keep) {
    if (!keep && saved->open) end(saved->open);
    if (!keep) saved->open = NULL;
    for (int i = 0; i < SM_MAX_TENSORS; i++) {
        if (!(keep >> i & 1)) sm_local_block_free(&saved->value[i]);
        if (!(keep & TRAIN_KEEP_ARRIVED)) sm_local_block_free(&saved->arrived[i]);
    }
    if (!(keep & TRAIN_KEEP_ARRIVED)) sm_local_block_free(&saved->log_sums);
}

sm_status train_forward(sm_trainer *t, train_layer *layer, train_saved *saved, sm_error *err) {
    pass *p = begin(t, layer, saved, SM_PASS_FORWARD);
    if (!p) return sm_fail_memory(err);
    sm_status status = run_until(p, p->piece->forwards, err);
    end(p);
    return status;
}

/* The loss is the sum over tokens of log S; its slope 1/S starts the backward pass. */
static sm_status slope_of_loss(pass *p, sm_error *err) {
    const sm_program *b = &p->piece->program;
    int loss = b->op[b->ops - 1].out;
    sm_status status = train_block_copy(&p->saved->value[loss], &p->home[loss], err);
    if (status) return status;
    double tokens = (double)p->t->setup->sequences * p->t->setup->tokens, *x = p->home[loss].data;
    for (size_t i = 0; i < sm_local_block_count(&p->home[loss]); i++) x[i] = 1 / (x[i] * tokens);
    return SM_OK;
}

sm_status train_backward(sm_trainer *t, train_layer *layer, train_saved *saved,
                         sm_local_block *gradient, bool whole, sm_error *err) {
    pass *p = begin(t, layer, saved, whole ? SM_PASS_BACKWARD : SM_PASS_SPLIT);
    if (!p) return sm_fail_memory(err);
    saved->open = p;
    const sm_program *b = &p->piece->program;
    sm_status status = SM_OK;
    if (b->output >= 0) {
        p->home[b->output] = *gradient;
        gradient->data = NULL;
    } else status = slope_of_loss(p, err);
    if (!status) status = run_until(p, p->piece->weights[p->order], err);
    if (!status && b->input >= 0) {
        *gradient = p->home[b->input];
        p->home[b->input].data = NULL;
    }
    return status;
}

sm_status train_backward_weight(train_saved *saved, sm_error *err) {
    pass *p = saved->open;
    return run_until(p, p->piece->entries[p->order], err);
}

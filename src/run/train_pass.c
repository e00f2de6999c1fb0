/* One pass of one microbatch through one layer: the tasks of its program, forward or backward. */
#include <string.h>

#include "train_parts.h"

/* An operand on its way, after one step: others that go the same way take it from here. */
typedef struct moved {
    int tensor;
    bool gradient, forward, borrowed;
    sm_layout after;
    sm_local_block block;
} moved;

enum { MOST_MOVED = 160, GRADIENTS_OF_ATTENTION = 3 };
struct train_pass {
    sm_trainer *t;
    const train_piece *piece;
    train_layer *layer;
    train_saved *saved;
    bool backward;
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

static bool counts(const sm_mesh *mesh, int axis) { return mesh->axis[axis].size > 1; }

/* Axes of more than one rank that stand before this one on its dimension. */
static int before(const sm_mesh *mesh, const sm_layout *l, int axis) {
    int n = 0;
    for (int i = 0; i < mesh->axes; i++)
        n += counts(mesh, i) && l->dim[i] == l->dim[axis] && l->place[i] < l->place[axis];
    return n;
}

static bool same_layout(const pass *p, const sm_layout *a, const sm_layout *b) {
    const sm_mesh *mesh = &p->t->mesh->mesh;
    for (int i = 0; i < mesh->axes; i++) {
        if (!counts(mesh, i)) continue;
        if (a->dim[i] != b->dim[i]) return false;
        if (a->dim[i] >= 0 && before(mesh, a, i) != before(mesh, b, i)) return false;
    }
    return true;
}

/* Weights are gathered once in a pass; activations once for the ops that run again and once for the
 * gradients. */
static moved *find(pass *p, const moved *like) {
    bool weight = tensor_of(p, like->tensor)->role == SM_ROLE_WEIGHT;
    for (int i = 0; i < p->moves; i++) {
        moved *m = &p->move[i];
        if (m->tensor == like->tensor && m->gradient == like->gradient &&
            (weight || m->forward == like->forward) && same_layout(p, &m->after, &like->after))
            return m;
    }
    return NULL;
}

static sm_local_block *source(pass *p, const sm_program_task *task, int operand) {
    int tensor = task->tensor[operand];
    if (task->gradient[operand]) return &p->home[tensor];
    if (tensor_of(p, tensor)->role == SM_ROLE_WEIGHT) return &p->layer->weight[tensor];
    return &p->saved->value[tensor];
}

/* The number of the last all-to-all on an operand, or of the last step of any kind when
 * `any`; -1: none. */
static int last_step(const sm_lowering *low, int array, bool any) {
    int last = -1;
    for (int i = 0; i < low->steps; i++) {
        const sm_step *s = &low->step[i];
        if (s->array != array || s->kind == SM_STEP_EINSUM) continue;
        if (any || (s->kind == SM_STEP_COLLECTIVE && s->op == SM_ALL_TO_ALL)) last = i;
    }
    return last;
}

/* What stays as it arrived from forward to backward, by the step after which it does: the whole of
 * a norm's weight, and the tokens an expert received (they are no larger than the slots they came
 * from). -1: nothing. */
static int stays_after(const pass *p, const sm_program_task *task, int operand) {
    const sm_tensor *t = tensor_of(p, task->tensor[operand]);
    if (task->kind != SM_TASK_FORWARD) return -1;
    if (t->role == SM_ROLE_WEIGHT) return t->norm ? last_step(&task->lowering, operand, true) : -1;
    bool once = p->backward || !(p->piece->again >> task->op & 1);
    bool einsum = op_of(p, task)->kind == SM_OP_EINSUM;
    return once && einsum ? last_step(&task->lowering, operand, false) : -1;
}

/* The step after which an operand is taken from what stayed; -1: it is taken from the start. */
static int resumes_after(const pass *p, const sm_program_task *task, int operand) {
    const sm_tensor *t = tensor_of(p, task->tensor[operand]);
    if (task->gradient[operand] || !p->saved->arrived[task->tensor[operand]].data) return -1;
    if (t->role == SM_ROLE_WEIGHT) return t->norm ? last_step(&task->lowering, operand, true) : -1;
    return task->kind == SM_TASK_WEIGHT_GRADIENT ? last_step(&task->lowering, operand, false) : -1;
}

static sm_status take_step(pass *p, const sm_step *step, moved *like, const sm_layout *before,
                           const sm_local_block **block, sm_error *err) {
    like->after = step->after;
    const moved *done = find(p, like);
    if (!done) {
        if (p->moves == MOST_MOVED)
            return sm_fail(err, SM_INTERNAL, "a layer moves more than %d arrays", MOST_MOVED);
        sm_status status =
            train_move(p->t, like->tensor, like->gradient, step, before, *block, &like->block, err);
        if (status) return status;
        p->move[p->moves] = *like;
        done = &p->move[p->moves++];
    }
    *block = &done->block;
    return SM_OK;
}

static void keep_arrived(pass *p, const moved *like) {
    moved *m = find(p, like);
    bool weight = tensor_of(p, like->tensor)->role == SM_ROLE_WEIGHT;
    if (!m->borrowed) p->saved->arrived[like->tensor] = m->block;
    if (!weight) memory_mark(m->block.data, SM_TRAIN_MEMORY_ACTIVATIONS);
    m->borrowed = true;
}

/* The steps of an operand from number `first` on. */
static sm_status take_steps(pass *p, const sm_program_task *task, int operand, int first,
                            train_array *out, sm_error *err) {
    moved like = {.tensor = task->tensor[operand],
                  .gradient = task->gradient[operand],
                  .forward = task->kind == SM_TASK_FORWARD};
    int stays = stays_after(p, task, operand);
    for (int i = first; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if (step->array != operand || step->kind == SM_STEP_EINSUM) continue;
        sm_status status = take_step(p, step, &like, &out->layout, &out->block, err);
        if (status) return status;
        out->layout = step->after;
        if (i == stays) keep_arrived(p, &like);
    }
    return SM_OK;
}

/* The gradient of a vector op names its input for the shape; kernels read what they need of it. */
static bool only_shapes(const pass *p, const sm_program_task *task, int operand) {
    return task->kind == SM_TASK_INPUT_GRADIENT && op_of(p, task)->kind == SM_OP_VECTOR &&
           !task->gradient[operand];
}

static sm_status fetch(pass *p, const sm_program_task *task, int operand, train_array *out,
                       sm_error *err) {
    int tensor = task->tensor[operand];
    *out = (train_array){.layout = sm_layout_of(&task->einsum.in[operand])};
    if (tensor_of(p, tensor)->role == SM_ROLE_IDS || only_shapes(p, task, operand)) return SM_OK;
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

static sm_element element_of(const pass *p, int tensor) {
    return strcmp(tensor_of(p, tensor)->name, "loss") == 0 ? SM_ELEMENT_F64 : SM_ELEMENT_F32;
}

static sm_status prepare(pass *p, const sm_program_task *task, train_call *c, sm_layout *layout,
                         sm_local_block *out, sm_error *err) {
    sm_status status = SM_OK;
    *c = (train_call){.t = p->t, .layer = p->layer, .task = task, .op = op_of(p, task), .out = out};
    *layout = made_as(task);
    out->data = NULL;
    for (int i = 0; !status && i < task->einsum.operands; i++)
        status = fetch(p, task, i, &c->in[i], err);
    if (!status)
        status = train_block_like(p->t, &task->einsum, &task->einsum.out, layout,
                                  element_of(p, task->result), out, err);
    if (!status) train_offsets(p->t, layout, out, c->out_offset);
    return status;
}

/* ---- kernels, timed ---- */

static sm_status timed(train_call *c, sm_status (*kernel)(train_call *c, sm_error *err),
                       sm_error *err) {
    train_traffic before;
    if (c->op->kind == SM_OP_ATTENTION) train_traffic_now(c->t, &before);
    double begun_s = sm_clock_s();
    sm_status status = kernel(c, err);
    train_kernel_took(c->t, c->op, begun_s, &before);
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
    if (!same_layout(p, &fell, &layout))
        return sm_fail(err, SM_INTERNAL, "the gradient of %s does not lie as it was priced",
                       tensor_of(p, task->result)->name);
    sm_status status = train_block_move(p->t, &task->lowering, 0, &layout, from, err);
    if (!status) status = train_block_move(p->t, &task->lowering, -1, &layout, from, err);
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

static pass *begin(sm_trainer *t, train_layer *layer, train_saved *saved, bool backward) {
    pass *p = sm_calloc(1, sizeof *p);
    if (p) {
        p->t = t;
        p->piece = layer->piece;
        p->layer = layer;
        p->saved = saved;
        p->backward = backward;
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
}

sm_status train_forward(sm_trainer *t, train_layer *layer, train_saved *saved, sm_error *err) {
    pass *p = begin(t, layer, saved, false);
    if (!p) return sm_fail_memory(err);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < p->piece->forwards; i++)
        status = run(p, &p->piece->task[i], err);
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

static bool of_weights(const pass *p, const sm_program_task *task) {
    return task->kind == SM_TASK_WEIGHT_GRADIENT ||
           (task->kind == SM_TASK_HOME && tensor_of(p, task->result)->role == SM_ROLE_WEIGHT);
}

/* Ops that run again, then the gradients of activations. */
static sm_status backward_tasks(pass *p, sm_error *err) {
    const train_piece *piece = p->piece;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < piece->forwards; i++)
        if (piece->again >> piece->task[i].op & 1) status = run(p, &piece->task[i], err);
    for (int i = piece->forwards; !status && i < piece->tasks; i++)
        if (!of_weights(p, &piece->task[i])) status = run(p, &piece->task[i], err);
    return status;
}

sm_status train_backward_input(sm_trainer *t, train_layer *layer, train_saved *saved,
                               sm_local_block *gradient, sm_error *err) {
    pass *p = begin(t, layer, saved, true);
    if (!p) return sm_fail_memory(err);
    saved->open = p;
    const sm_program *b = &p->piece->program;
    sm_status status = SM_OK;
    if (b->output >= 0) {
        p->home[b->output] = *gradient;
        gradient->data = NULL;
    } else status = slope_of_loss(p, err);
    if (!status) status = backward_tasks(p, err);
    if (!status && b->input >= 0) {
        *gradient = p->home[b->input];
        p->home[b->input].data = NULL;
    }
    return status;
}

sm_status train_backward_weight(train_saved *saved, sm_error *err) {
    pass *p = saved->open;
    const train_piece *piece = p->piece;
    sm_status status = SM_OK;
    for (int i = piece->forwards; !status && i < piece->tasks; i++)
        if (of_weights(p, &piece->task[i])) status = run(p, &piece->task[i], err);
    return status;
}

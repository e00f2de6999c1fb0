/* One microbatch through one layer: its tasks, forward or backward, over the actions of whoever
 * executes or counts them. */
#include <assert.h>
#include <string.h>

#include "program_parts.h"

/* An operand on its way, after one step: others that go the same way take it from here. */
typedef struct moved {
    task_move what;
    bool borrowed; /* what arrived, and stays in `saved` */
    sm_local_block block;
} moved;

enum { MOST_SHARES = 8 };
struct sm_pass {
    const sm_actions *actions;
    const sm_task_list *list;
    sm_step_layer *layer;
    sm_pass_saved *saved;
    bool backward, once;
    sm_pass_order order;
    int at; /* the next entry of the order */
    sm_local_block weight_share;
    sm_local_block together[SM_MAX_INPUTS]; /* gradients made at once */
    int moves, room;
    moved *move; /* behind this */
    struct {
        sm_local_block home; /* where the tensor is stored */
        sm_local_block share[MOST_SHARES];
        sm_layout fell[MOST_SHARES]; /* how a share is laid out */
    } slope[];                       /* of each tensor, in a backward pass */
};
typedef sm_pass pass;

static const sm_op *op_of(const pass *p, const sm_program_task *task) {
    return &p->list->program->op[task->op];
}

static const sm_tensor *tensor_of(const pass *p, int tensor) {
    return &p->list->program->tensor[tensor];
}

static bool is_weight(const pass *p, int tensor) {
    return tensor_of(p, tensor)->role == SM_ROLE_WEIGHT;
}

static void mark(const pass *p, sm_local_block *block, sm_train_memory_part part) {
    p->actions->mark(p->actions->context, block, part);
}

static void drop(const pass *p, sm_local_block *block) { action_drop(p->actions, block); }

static sm_status make(const pass *p, sm_local_block *block, bool cleared, sm_error *err) {
    return p->actions->make(p->actions->context, block, cleared, err);
}

static sm_status compute(const pass *p, sm_call *call, sm_error *err) {
    call->list = p->list;
    call->saved = p->saved;
    return p->actions->compute(p->actions->context, call, err);
}

/* to += from, or from itself when to is empty: from is empty afterwards. */
static sm_status add(const pass *p, sm_local_block *to, sm_local_block *from, sm_error *err) {
    if (!to->data) {
        *to = *from;
        from->data = NULL;
        return SM_OK;
    }
    assert(sm_local_block_count(to) == sm_local_block_count(from));
    sm_call call = {.kind = SM_CALL_ADD, .in = {{.block = from}}, .out = to};
    sm_status status = compute(p, &call, err);
    drop(p, from);
    return status;
}

/* ---- operands ---- */

static moved *find(pass *p, const task_move *like) {
    for (int i = 0; i < p->moves; i++)
        if (task_move_same(p->list, &p->move[i].what, like)) return &p->move[i];
    return NULL;
}

static const sm_local_block *source(const pass *p, const sm_program_task *task, int operand) {
    int tensor = task->tensor[operand];
    if (task->gradient[operand]) return &p->slope[tensor].home;
    return is_weight(p, tensor) ? &p->layer->weight[tensor] : &p->saved->value[tensor];
}

/* The operand `out` after step k of the task's lowering. */
static sm_status take_step(pass *p, const sm_program_task *task, int operand, int k,
                           sm_operand *out, sm_error *err) {
    task_move like = task_move_of(task, operand, k);
    moved *done = find(p, &like);
    if (!done) {
        assert(p->moves < p->room);
        done = &p->move[p->moves];
        *done = (moved){.what = like};
        sm_move_call call = {.tensor = like.tensor,
                             .gradient = like.gradient,
                             .step = &task->lowering.step[k],
                             .before = &out->layout,
                             .block = out->block,
                             .mesh = &p->list->mesh,
                             .einsum = &task->einsum,
                             .array = &task->einsum.in[operand]};
        sm_status status = p->actions->move(p->actions->context, &call, &done->block, err);
        if (status) return status;
        p->moves++;
    }
    out->block = &done->block;
    out->layout = like.after;
    return SM_OK;
}

/* Of two ops that receive it, one in the forward pass and one that runs again, the first keeps it.
 */
static void keep_arrived(pass *p, const task_move *like) {
    moved *m = find(p, like);
    if (p->saved->arrived[like->tensor].data) return;
    if (!is_weight(p, like->tensor)) mark(p, &m->block, SM_TRAIN_MEMORY_ACTIVATIONS);
    p->saved->arrived[like->tensor] = m->block;
    m->borrowed = true;
}

/* Steps (bit) that attention makes itself, as a ring. */
static uint32_t made_in_ring(const pass *p, const sm_program_task *task) {
    bool attends = op_of(p, task)->kind == SM_OP_ATTENTION;
    return attends && !p->list->program->serving ? task->ring : 0;
}

static sm_status fetch(pass *p, const sm_program_task *task, int operand, sm_operand *out,
                       sm_error *err) {
    /* Ops that run again keep nothing from their first run. */
    bool once =
        is_weight(p, task->tensor[operand]) || p->backward || !(p->list->again >> task->op & 1);
    int tensor = task->tensor[operand], resumes = -1,
        stays = once ? task_operand_stays(p->list, task, operand) : -1;
    *out = (sm_operand){.layout = sm_layout_of(&task->einsum.in[operand])};
    if (tensor_of(p, tensor)->role == SM_ROLE_IDS || task_operand_is_shape(p->list, task, operand))
        return SM_OK;
    if (p->saved->arrived[tensor].data) resumes = task_operand_resumes(p->list, task, operand);
    out->block = resumes < 0 ? source(p, task, operand) : &p->saved->arrived[tensor];
    if (resumes >= 0) out->layout = task->lowering.step[resumes].after;
    if (!out->block->data)
        return sm_fail(err, SM_INTERNAL, "%s of %s is not there", tensor_of(p, tensor)->name,
                       op_of(p, task)->name);
    for (int k = resumes + 1; k < task->lowering.steps; k++) {
        const sm_step *step = &task->lowering.step[k];
        if (step->array != operand || step->kind == SM_STEP_EINSUM ||
            made_in_ring(p, task) >> k & 1u)
            continue;
        sm_status status = take_step(p, task, operand, k, out, err);
        if (status) return status;
        task_move like = task_move_of(task, operand, k);
        if (k == stays) keep_arrived(p, &like);
    }
    return SM_OK;
}

/* ---- results ---- */

static sm_layout made_as(const sm_program_task *task) {
    for (int i = 0; i < task->lowering.steps; i++)
        if (task->lowering.step[i].kind == SM_STEP_EINSUM) return task->lowering.step[i].after;
    return sm_layout_of(&task->einsum.out);
}

static void take_axes(sm_layout *to, const sm_layout *from, sm_axes axes) {
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (!(axes >> a & 1u)) continue;
        to->dim[a] = from->dim[a];
        to->place[a] = from->place[a];
    }
}

/* Operands to hand, and room for the result. */
static sm_status prepare(pass *p, const sm_program_task *task, sm_call_kind kind, sm_call *c,
                         sm_local_block *out, sm_error *err) {
    sm_status status = SM_OK;
    *c = (sm_call){.kind = kind,
                   .task = task,
                   .op = op_of(p, task),
                   .out = out,
                   .made = made_as(task),
                   .layer = p->layer};
    c->ring = made_in_ring(p, task) != 0;
    for (int i = 0; !status && i < task->einsum.operands; i++)
        status = fetch(p, task, i, &c->in[i], err);
    /* The gradient of what travels in a ring arrives where that set out. */
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if ((made_in_ring(p, task) >> i & 1u) && task->tensor[step->array] == task->result)
            take_axes(&c->made, &c->in[step->array].layout, step->axes);
    }
    if (kind != SM_CALL_FORWARD) {
        /* The forward op's inputs as its backward reads them. */
        for (int i = 0; i < c->op->inputs; i++) {
            int tensor = c->op->in[i];
            const sm_local_block *arrived = &p->saved->arrived[tensor];
            c->input[i] = !is_weight(p, tensor) ? &p->saved->value[tensor]
                          : arrived->data       ? arrived
                                                : &p->layer->weight[tensor];
            if (c->task->result == tensor) c->which = i;
        }
    }
    *out = sm_local_block_shape(&p->list->mesh, &task->einsum, &task->einsum.out, &c->made,
                                kind == SM_CALL_WEIGHT_GRADIENT
                                    ? p->actions->gradients
                                    : sm_tensor_element(tensor_of(p, task->result)));
    return status ? status : make(p, out, c->op->kind == SM_OP_ATTENTION, err);
}

/* All steps of one array of a task's lowering, in place, but for those in `done` (bit). */
static sm_status move_all(const pass *p, const sm_program_task *task, int array, uint32_t done,
                          sm_layout *layout, sm_local_block *block, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        sm_local_block after;
        if (step->array != array || step->kind == SM_STEP_EINSUM || (done >> i & 1u)) continue;
        sm_move_call call = {.tensor = task->result,
                             .gradient = task->kind != SM_TASK_FORWARD,
                             .step = step,
                             .before = layout,
                             .block = block,
                             .mesh = &p->list->mesh,
                             .einsum = &task->einsum,
                             .array = array < 0 ? &task->einsum.out : &task->einsum.in[array]};
        status = p->actions->move(p->actions->context, &call, &after, err);
        if (status) return status;
        drop(p, block);
        *block = after;
        *layout = step->after;
    }
    return status;
}

/* ---- forward ---- */

static sm_status forward(pass *p, const sm_program_task *task, sm_error *err) {
    const sm_op *op = op_of(p, task);
    sm_call c = {.kind = SM_CALL_APPEND, .task = task, .op = op};
    if (op->function == SM_FUNCTION_APPEND) return compute(p, &c, err);
    if (op->function == SM_FUNCTION_SAMPLE) return SM_OK; /* whoever feeds does */
    sm_local_block out;
    sm_status status = prepare(p, task, SM_CALL_FORWARD, &c, &out, err);
    /* One number for each query of each head: kept for the backward pass of a ring. */
    if (!status && c.ring) {
        const sm_local_block *q = c.in[0].block;
        assert(q);
        sm_local_block *sums = &p->saved->log_sums;
        drop(p, sums);
        *sums = (sm_local_block){.element = SM_ELEMENT_F32,
                                 .rank = 1,
                                 .size = {sm_local_block_count(q) / q->size[q->rank - 1]}};
        status = make(p, sums, false, err);
        if (!status) mark(p, sums, SM_TRAIN_MEMORY_ACTIVATIONS);
    }
    if (!status) status = compute(p, &c, err);
    bool anew = !p->backward && (p->list->again >> task->op & 1); /* its sums are, too */
    if (anew && op->kind == SM_OP_ATTENTION) drop(p, &p->saved->log_sums);
    if (!status) status = move_all(p, task, -1, 0, &c.made, &out, err);
    if (status) {
        drop(p, &out);
        return status;
    }
    drop(p, &p->saved->value[task->result]);
    p->saved->value[task->result] = out;
    mark(p, &p->saved->value[task->result], SM_TRAIN_MEMORY_ACTIVATIONS);
    return SM_OK;
}

/* ---- gradients ---- */

static sm_status add_share(pass *p, const sm_call *c, sm_local_block *block, sm_error *err) {
    sm_local_block *to = &p->slope[c->task->result].share[c->task->share];
    sm_layout *fell = &p->slope[c->task->result].fell[c->task->share];
    assert(c->task->share < MOST_SHARES);
    assert(!to->data || sm_layout_same(&p->list->mesh, fell, &c->made));
    *fell = c->made;
    return add(p, to, block, err);
}

/* Attention and scans make the gradients of all their inputs at once. */
static bool makes_all(const sm_op *op) {
    return op->kind == SM_OP_ATTENTION || op->kind == SM_OP_KERNEL;
}

/* They are made with the first; the others wait. */
static sm_status gradients_at_once(pass *p, sm_call *c, sm_local_block *out, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && c->which == 0 && i < c->op->inputs; i++) {
        assert(c->in[i].block);
        p->together[i] = *c->in[i].block;
        p->together[i].data = NULL;
        if (is_weight(p, c->op->in[i])) p->together[i].element = p->actions->gradients;
        status = make(p, &p->together[i], true, err);
    }
    c->out = p->together;
    if (!status && c->which == 0) status = compute(p, c, err);
    if (status) return status;
    sm_local_block *ready = &p->together[c->which];
    assert(sm_local_block_count(ready) == sm_local_block_count(out));
    drop(p, out);
    *out = *ready;
    ready->data = NULL;
    return SM_OK;
}

static sm_status input_gradient(pass *p, const sm_program_task *task, sm_error *err) {
    sm_call c;
    sm_local_block out;
    sm_status status = prepare(p, task, SM_CALL_INPUT_GRADIENT, &c, &out, err);
    if (!status && makes_all(c.op)) status = gradients_at_once(p, &c, &out, err);
    else if (!status) status = compute(p, &c, err);
    if (!status) status = add_share(p, &c, &out, err);
    if (status) drop(p, &out);
    return status;
}

static sm_status weight_gradient(pass *p, const sm_program_task *task, sm_error *err) {
    sm_call c;
    sm_status status = prepare(p, task, SM_CALL_WEIGHT_GRADIENT, &c, &p->weight_share, err);
    p->slope[task->result].fell[0] = c.made;
    if (status) return status;
    return makes_all(c.op) ? gradients_at_once(p, &c, &p->weight_share, err) : compute(p, &c, err);
}

/* A whole sum joins a partial one on the first chip of the axes it is whole over. */
static sm_status join(pass *p, const sm_program_task *task, sm_error *err) {
    sm_local_block *from = &p->slope[task->result].share[task->share];
    sm_local_block *into = &p->slope[task->result].share[task->into];
    bool first = true;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if ((task->axes >> a & 1) && p->actions->at[a] > 0) first = false;
    if (first) return add(p, into, from, err);
    drop(p, from);
    return SM_OK;
}

/* Steps home (bit) that a ring has made already. */
static uint32_t done_in_ring(const sm_program_task *task, const sm_layout *fell,
                             sm_layout *stored) {
    uint32_t steps = 0;
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        bool done = task->ring >> i & 1u;
        for (int a = 0; a < SM_AXIS_COUNT; a++)
            if ((step->axes >> a & 1u) && fell->dim[a] == SM_UNREDUCED) done = false;
        if (!done) continue;
        steps |= 1u << i;
        take_axes(stored, &step->after, step->axes);
    }
    return steps;
}

static sm_status home(pass *p, const sm_program_task *task, sm_error *err) {
    bool weight = is_weight(p, task->result);
    int share = weight ? 0 : task->share;
    sm_local_block *from = weight ? &p->weight_share : &p->slope[task->result].share[share];
    sm_local_block *to = weight ? &p->layer->gradient[task->result] : &p->slope[task->result].home;
    sm_layout layout = sm_layout_of(&task->einsum.in[0]);
    sm_layout fell = p->slope[task->result].fell[share];
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if ((task->axes >> a & 1u) && fell.dim[a] == SM_UNREDUCED) fell.dim[a] = layout.dim[a];
    uint32_t done = done_in_ring(task, &fell, &layout);
    assert(sm_layout_same(&p->list->mesh, &fell, &layout)); /* it lies as it was priced */
    sm_status status = move_all(p, task, 0, done, &layout, from, err);
    if (!status) status = move_all(p, task, -1, done, &layout, from, err);
    if (!status) status = add(p, to, from, err);
    if (weight) mark(p, to, SM_TRAIN_MEMORY_GRADIENTS);
    return status;
}

static sm_status (*const run_task[])(pass *, const sm_program_task *,
                                     sm_error *) = {[SM_TASK_FORWARD] = forward,
                                                    [SM_TASK_INPUT_GRADIENT] = input_gradient,
                                                    [SM_TASK_WEIGHT_GRADIENT] = weight_gradient,
                                                    [SM_TASK_JOIN] = join,
                                                    [SM_TASK_HOME] = home};

/* ---- what nothing reads any more ---- */

static void release(pass *p, const sm_last_use *last) {
    const sm_program *b = p->list->program;
    sm_bits stay = p->backward ? 0 : p->list->kept | (b->output >= 0 ? sm_bit_of(b->output) : 0);
    if (b->lent >= 0) stay |= sm_bit_of(b->lent);
    if (!p->backward) stay |= sm_bit_of(p->layer->lends);
    for (int i = 0; i < SM_MAX_OPERANDS; i++)
        for (int k = 0; last->moved[i] >> k; k++) {
            if (!(last->moved[i] >> k & 1)) continue;
            task_move like = task_move_of(&p->list->task[last->task], i, k);
            moved *m = find(p, &like);
            if (!m) continue;
            if (!m->borrowed) drop(p, &m->block);
            *m = p->move[--p->moves];
        }
    for (int i = 0; i < b->tensors; i++) {
        if (!((last->values | last->gradients) & sm_bit_of(i))) continue;
        if (last->values & ~stay & sm_bit_of(i)) drop(p, &p->saved->value[i]);
        if (p->backward && !b->tensor[i].norm && (last->values & sm_bit_of(i)))
            drop(p, &p->saved->arrived[i]);
        if (p->backward && (last->gradients & sm_bit_of(i)) && i != b->input && i != b->lent)
            drop(p, &p->slope[i].home);
    }
}

/* ---- passes ---- */

/* The entries of the order up to number `end`. */
static sm_status run_until(pass *p, int end, sm_error *err) {
    const sm_actions *a = p->actions;
    sm_status status = SM_OK;
    for (; !status && p->at < end; p->at++) {
        const sm_last_use *last = &p->list->last[p->order][p->at];
        const sm_program_task *task = &p->list->task[last->task];
        if (op_of(p, task)->once != p->once) continue;
        bool again = p->backward && task->kind == SM_TASK_FORWARD;
        if (a->begin_task) a->begin_task(a->context, p->list, task, again);
        status = run_task[task->kind](p, task, err);
        if (a->end_task) a->end_task(a->context);
        if (!p->list->program->serving) release(p, last);
    }
    return status;
}

static pass *begin(const sm_actions *actions, sm_step_layer *layer, sm_pass_saved *saved,
                   sm_pass_order order) {
    const sm_task_list *list = layer->list;
    int room = 0;
    for (int i = 0; i < list->tasks; i++) room += list->task[i].lowering.steps;
    int slopes = order == SM_PASS_FORWARD ? 0 : list->program->tensors;
    size_t before = sizeof(pass) + (size_t)slopes * sizeof((pass *)NULL)->slope[0];
    pass *p = sm_malloc(before + 2 * (size_t)room * sizeof(moved));
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    for (int i = 0; i < slopes; i++) { /* none is there; the rest of it says nothing then */
        p->slope[i].home.data = NULL;
        for (int k = 0; k < MOST_SHARES; k++) p->slope[i].share[k].data = NULL;
    }
    p->move = (moved *)(void *)((char *)p + before);
    p->actions = actions;
    p->list = list;
    p->layer = layer;
    p->saved = saved;
    p->order = order;
    p->backward = order != SM_PASS_FORWARD;
    p->room = 2 * room; /* an op that runs again moves its operands twice */
    return p;
}

static void end(pass *p) {
    for (int i = 0; i < p->moves; i++)
        if (!p->move[i].borrowed) drop(p, &p->move[i].block);
    for (int i = 0; p->backward && i < p->list->program->tensors; i++) {
        drop(p, &p->slope[i].home);
        for (int k = 0; k < MOST_SHARES; k++) drop(p, &p->slope[i].share[k]);
    }
    for (int i = 0; i < SM_MAX_INPUTS; i++) drop(p, &p->together[i]);
    drop(p, &p->weight_share);
    sm_free(p);
}

void sm_pass_drop(const sm_actions *actions, sm_pass_saved *saved, sm_bits keep,
                  bool keep_arrived) {
    bool all = !keep && !keep_arrived;
    if (all && saved->open) end(saved->open);
    if (all) saved->open = NULL;
    for (int i = 0; i < saved->tensors; i++) {
        if (!(keep & sm_bit_of(i))) action_drop(actions, &saved->value[i]);
        if (!keep_arrived) action_drop(actions, &saved->arrived[i]);
    }
    if (!keep_arrived) action_drop(actions, &saved->log_sums);
}

sm_status sm_pass_forward(const sm_actions *actions, sm_step_layer *layer, sm_pass_saved *saved,
                          bool once, sm_error *err) {
    pass *p = begin(actions, layer, saved, SM_PASS_FORWARD);
    if (!p) return sm_fail_memory(err);
    p->once = once;
    sm_status status = run_until(p, layer->list->forwards, err);
    end(p);
    return status;
}

static sm_status slope_of_loss(pass *p, sm_error *err) {
    const sm_program *b = p->list->program;
    int loss = b->op[b->ops - 1].out;
    sm_call c = {.kind = SM_CALL_LOSS_SLOPE,
                 .in = {{.block = &p->saved->value[loss]}},
                 .out = &p->slope[loss].home};
    p->slope[loss].home = p->saved->value[loss];
    p->slope[loss].home.data = NULL;
    sm_status status = make(p, &p->slope[loss].home, false, err);
    return status ? status : compute(p, &c, err);
}

/* From a reader, to which pictures of a sequence may be rows behind each other. */
static void take_slope(pass *p, int tensor, sm_local_block *from) {
    sm_local_block *home = &p->slope[tensor].home;
    const sm_local_block *made = &p->saved->value[tensor];
    *home = *from;
    if (from->rank == made->rank) memcpy(home->size, made->size, sizeof home->size);
    from->data = NULL;
}

sm_status sm_pass_backward(const sm_actions *actions, sm_step_layer *layer, sm_pass_saved *saved,
                           sm_local_block *stream, sm_local_block *owed, bool whole,
                           sm_error *err) {
    pass *p = begin(actions, layer, saved, whole ? SM_PASS_BACKWARD : SM_PASS_SPLIT);
    if (!p) return sm_fail_memory(err);
    saved->open = p;
    const sm_program *b = p->list->program;
    sm_status status = SM_OK;
    if (layer->lends < SM_MAX_BITS) take_slope(p, layer->lends, &owed[layer->makes]);
    if (b->output >= 0) take_slope(p, b->output, stream);
    else status = slope_of_loss(p, err);
    if (!status) status = run_until(p, p->list->weights[p->order], err);
    if (!status && b->input >= 0) {
        *stream = p->slope[b->input].home;
        p->slope[b->input].home.data = NULL;
    }
    if (!status && b->lent >= 0) status = add(p, &owed[layer->reads], &p->slope[b->lent].home, err);
    return status;
}

sm_status sm_pass_backward_weights(sm_pass_saved *saved, sm_error *err) {
    pass *p = saved->open;
    assert(p);
    return run_until(p, p->list->entries[p->order], err);
}

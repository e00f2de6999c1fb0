/* The memory of a step that is executed task by task (step.h), by a counter of bytes in place of
 * arrays: the most that any stage has in use at once. */
#include <assert.h>
#include <math.h>

#include "space.h"

/* Blocks have no memory: their data says what they are for. */
typedef struct counter {
    char use[SM_TRAIN_MEMORY_COUNT];
    double in_use[SM_TRAIN_MEMORY_COUNT], at_most[SM_TRAIN_MEMORY_COUNT], most, host;
    double sent[2]; /* the last message forward and backward that went out */
} counter;

static void add(counter *c, sm_train_memory_part part, double bytes) {
    assert(part < SM_TRAIN_MEMORY_COUNT);
    c->in_use[part] += bytes;
    c->host = fmax(c->host, c->in_use[SM_TRAIN_MEMORY_HOST]);
    double total = -c->in_use[SM_TRAIN_MEMORY_HOST];
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) total += c->in_use[i];
    if (total <= c->most) return;
    c->most = total;
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) c->at_most[i] = c->in_use[i];
}

/* Of scratch that is gone at once. */
static void touch(counter *c, double bytes) {
    add(c, SM_TRAIN_MEMORY_BUFFERS, bytes);
    add(c, SM_TRAIN_MEMORY_BUFFERS, -bytes);
}

static void make_as(counter *c, sm_local_block *block, sm_train_memory_part part) {
    block->data = &c->use[part];
    add(c, part, sm_local_block_bytes(block));
}

static sm_train_memory_part use_of(const counter *c, const sm_local_block *block) {
    return (sm_train_memory_part)((const char *)block->data - c->use);
}

/* ---- actions ---- */

static sm_status make(void *context, sm_local_block *block, bool cleared, sm_error *err) {
    (void)cleared, (void)err;
    make_as(context, block, SM_TRAIN_MEMORY_BUFFERS);
    return SM_OK;
}

static void drop(void *context, sm_local_block *block) {
    add(context, use_of(context, block), -sm_local_block_bytes(block));
    block->data = NULL;
}

static void mark(void *context, sm_local_block *block, sm_train_memory_part part) {
    counter *c = context;
    c->in_use[use_of(c, block)] -= sm_local_block_bytes(block);
    make_as(c, block, part);
}

static sm_status carry(void *context, sm_local_block *block, sm_train_memory_part part,
                       sm_error *err) {
    (void)err;
    mark(context, block, part);
    return SM_OK;
}

static sm_local_block shape(const sm_move_call *m, const sm_layout *layout) {
    return sm_local_block_shape(m->mesh, m->einsum, m->array, layout, m->block->element);
}

/* Do the boxes of the chips lie in a row in memory? Not where there is more than one element before
 * the dimension that the step cuts or joins: then they are packed. */
static bool in_a_row(const sm_local_block *was, const sm_local_block *is) {
    bool longer = false;
    for (int d = 0; d < was->rank; d++) {
        if (was->size[d] != is->size[d] && longer) return false;
        longer = longer || was->size[d] > 1 || is->size[d] > 1;
    }
    return true;
}

/* What a step needs beside the array before and after it. */
static double packing(const sm_step *step, const sm_local_block *was, const sm_local_block *is) {
    if (step->kind != SM_STEP_COLLECTIVE) return 0;
    if (step->op == SM_ALL_TO_ALL) return 2 * sm_local_block_bytes(was);
    bool packs = step->op == SM_ALL_GATHER || step->op == SM_REDUCE_SCATTER;
    if (!packs || in_a_row(was, is)) return 0;
    return fmax(sm_local_block_bytes(was), sm_local_block_bytes(is));
}

static sm_status move(void *context, const sm_move_call *m, sm_local_block *result, sm_error *err) {
    sm_local_block was = shape(m, m->before);
    *result = shape(m, &m->step->after);
    touch(context, sm_local_block_bytes(result) + packing(m->step, &was, result));
    return make(context, result, false, err);
}

static sm_status join_rows(void *context, const sm_row_move *m, sm_error *err) {
    (void)context, (void)m, (void)err;
    return SM_OK;
}

/* A message lives until it has arrived, which is told when the next one leaves. */
static sm_status send(void *context, int stage, int tag, bool backward, sm_local_block *block,
                      sm_error *err) {
    counter *c = context;
    (void)stage, (void)tag, (void)err;
    add(c, SM_TRAIN_MEMORY_BUFFERS, -c->sent[backward]);
    c->sent[backward] = sm_local_block_bytes(block);
    block->data = NULL;
    return SM_OK;
}

static sm_status receive(void *context, int stage, int tag, sm_local_block *block, sm_error *err) {
    (void)context, (void)stage, (void)tag, (void)block, (void)err;
    return SM_OK;
}

/* ---- what kernels have for themselves: attention alone has much ---- */

enum { POSITIONS = 1, Q = 0, KEYS = 1, VALUES = 2, SINGLE_BYTES = 4 };

static double operand_bytes(const sm_call *c, int operand) {
    return sm_local_block_bytes(c->in[operand].block);
}

/* The probabilities of some queries of one head and, backward, their gradient; the rows of a head,
 * brought together, and those of its gradients. */
static double scores(const sm_call *c) {
    double queries = (double)c->in[Q].block->size[POSITIONS];
    double keys = (double)c->in[KEYS].block->size[POSITIONS];
    return 2 * SINGLE_BYTES *
           (fmin(queries, SM_QUERIES_AT_ONCE) * keys +
            (c->op->query_size + c->op->value_size) * (queries + keys));
}

/* Blocks of other chips: two of keys and of values, of their gradients three; and a number for each
 * query beside those that stay. */
static double ring_room(const sm_call *c) {
    const sm_lowering *low = &c->task->lowering;
    int k = 0;
    while (k < low->steps && !(c->task->ring >> k & 1)) k++;
    double n = c->ring && k < low->steps ? sm_mesh_size(&c->list->mesh, low->step[k].axes) : 1;
    double pair = operand_bytes(c, KEYS) + operand_bytes(c, VALUES);
    if (n <= 1) return 0;
    return pair * ((n > 2 ? 2 : 1) + (c->kind == SM_CALL_INPUT_GRADIENT ? 3 : 0)) +
           sm_local_block_bytes(&c->saved->log_sums);
}

/* Kernels work in single precision, on copies of what is stored otherwise. Products read their
 * operands in panels, look-ups row by row; of a ring it is the block at hand, and what it adds to
 * the gradients of others. What a kernel does not read is there as a shape alone. */
static double copy_of(const sm_local_block *b, double most) {
    if (!b || !b->data || b->element != SM_ELEMENT_BF16) return 0;
    return SINGLE_BYTES * fmin((double)sm_local_block_count(b), most);
}

static double copies(const sm_call *c) {
    bool product = c->op->kind == SM_OP_EINSUM, rows = c->op->kind == SM_OP_GATHER;
    bool back = c->kind != SM_CALL_FORWARD;
    bool at_once = c->op->kind == SM_OP_ATTENTION || c->op->kind == SM_OP_KERNEL;
    double bytes = 0;
    for (int i = 0; i < SM_MAX_OPERANDS; i++)
        bytes += copy_of(c->in[i].block, product ? SM_PANEL : rows && !back ? 0 : INFINITY);
    for (int i = 0; !product && !rows && i < c->op->inputs; i++)
        bytes += copy_of(c->input[i], INFINITY);
    for (int i = 0; i < (at_once && back ? c->op->inputs : 1); i++)
        bytes += copy_of(&c->out[i], INFINITY);
    if (c->ring && back)
        bytes += copy_of(c->in[KEYS].block, INFINITY) + copy_of(c->in[VALUES].block, INFINITY) +
                 copy_of(&c->saved->value[c->op->out], INFINITY);
    return bytes;
}

static sm_status compute(void *context, sm_call *call, sm_error *err) {
    (void)err;
    if (call->op && call->op->kind == SM_OP_ATTENTION)
        touch(context, scores(call) + ring_room(call) + copies(call));
    else if (call->op && call->out) touch(context, copies(call));
    return SM_OK;
}

/* ---- a stage ---- */

typedef struct step_job {
    const sm_train *t;
    const sm_plan *plan;
    sm_task_list list[MAX_PIECES];
    sm_train_line line;
} step_job;

static sm_status run_stage(const step_job *j, sm_stage *s, counter *c, sm_error *err) {
    int at = s->number;
    bool away = j->plan->offload == SM_OFFLOAD_OPTIMIZER || j->plan->offload == SM_OFFLOAD_BOTH;
    double state = state_bytes(j->t, j->plan);
    sm_status status = sm_stage_new(s, &j->t->model, j->list, err);
    for (int i = 0; !status && i < s->layers; i++) {
        sm_step_layer *layer = &s->layer[i];
        for (int k = 0; k < layer->list->program->tensors; k++) {
            if (layer->list->program->tensor[k].role != SM_ROLE_WEIGHT) continue;
            layer->weight[k] = sm_task_list_block(layer->list, k);
            make_as(c, &layer->weight[k], SM_TRAIN_MEMORY_PARAMS);
        }
        status = sm_stage_group(s, layer, err);
        for (int g = 0; g < layer->groups; g++)
            add(c, away ? SM_TRAIN_MEMORY_HOST : SM_TRAIN_MEMORY_OPTIMIZER,
                (double)layer->group[g].chunk * state);
    }
    if (!status && s->chunks)
        status = sm_stage_run(s, j->line.action[at], j->line.actions[at], err);
    else if (!status) status = sm_stage_run(s, NULL, 0, err);
    add(c, SM_TRAIN_MEMORY_BUFFERS, -c->sent[0] - c->sent[1]);
    if (!status) status = sm_stage_reduce(s, err);
    return status ? status : sm_stage_update(s, err);
}

static void take_worse(const counter *c, int stage, sm_memory *m) {
    const double *most = c->at_most;
    m->host = fmax(m->host, c->host);
    if (c->most <= m->total) return;
    *m = (sm_memory){.params = most[SM_TRAIN_MEMORY_PARAMS],
                     .gradients = most[SM_TRAIN_MEMORY_GRADIENTS],
                     .optimizer = most[SM_TRAIN_MEMORY_OPTIMIZER],
                     .activations = most[SM_TRAIN_MEMORY_ACTIVATIONS],
                     .buffers = most[SM_TRAIN_MEMORY_BUFFERS],
                     .total = c->most,
                     .capacity = m->capacity,
                     .host = m->host,
                     .host_capacity = m->host_capacity,
                     .stage = stage};
}

static sm_status one_stage(const step_job *j, int stage, sm_memory *memory, sm_error *err) {
    counter c = {.most = 0};
    bool half = j->plan->gradient == SM_BF16;
    sm_actions actions = {.context = &c,
                          .gradients = half ? SM_ELEMENT_BF16 : SM_ELEMENT_F32,
                          .make = make,
                          .move = move,
                          .compute = compute,
                          .drop = drop,
                          .mark = mark,
                          .send = send,
                          .receive = receive,
                          .join_rows = join_rows,
                          .carry = carry};
    int offload = j->plan->offload;
    sm_stage s = {.actions = &actions,
                  .number = stage,
                  .chunks = j->line.chunks,
                  .copies = j->line.copies,
                  .chunk = j->line.chunk,
                  .microbatches = microbatches_of(j->t, j->plan),
                  .zero = j->plan->zero,
                  .state_copies = j->plan->state_copies,
                  .offloads = offload == SM_OFFLOAD_ACTIVATIONS || offload == SM_OFFLOAD_BOTH,
                  .updating = true};
    sm_status status = run_stage(j, &s, &c, err);
    if (!status) take_worse(&c, stage, memory);
    sm_stage_free(&s);
    return status;
}

/* ---- a plan ---- */

static sm_status list_tasks(const pieces *p, int index, int set, sm_regather regather,
                            sm_task_list *out, sm_error *err) {
    const piece *what = &p->v->piece[index];
    const sm_program *b = &what->part.program;
    double size[SM_MAX_DIMENSIONS];
    sm_mesh mesh = *sm_program_mesh();
    for (int a = 0; a < SM_AXIS_COUNT; a++) mesh.axis[a].size = (int)p->d.axis[a];
    sm_program_sizes(b, &(sm_program_extent){.sequences = p->d.sequences}, size);
    return sm_task_list_new(b, &mesh, size, what->set[set].again, regather, out, err);
}

sm_status step_memory(const sm_train *t, const sm_plan *plan, const pieces *p, sm_memory *memory,
                      sm_error *err) {
    sm_arena *arena = sm_arena_new();
    step_job *j = sm_calloc(1, sizeof *j);
    sm_status status = arena && j ? SM_OK : sm_fail_memory(err);
    if (j) *j = (step_job){.t = t, .plan = plan};
    if (!status)
        status = sm_train_line_of(plan, t->model.L, microbatches_of(t, plan), arena, &j->line, err);
    for (int i = 0; !status && i < p->v->pieces; i++)
        status = list_tasks(p, i, i < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE, plan->regather,
                            &j->list[i], err);
    if (!status) memory->total = -1, memory->host = 0;
    for (int stage = 0; !status && stage < plan->pipeline; stage++)
        status = one_stage(j, stage, memory, err);
    for (int i = 0; j && i < p->v->pieces; i++) sm_task_list_free(&j->list[i]);
    sm_free(j);
    sm_arena_free(arena);
    return status;
}

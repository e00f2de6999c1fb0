/* The programs of a training run and their tasks on its mesh. */
#include <string.h>

#include "train_parts.h"

/* ---- tasks ---- */

static sm_status keep_task(const sm_program_task *task, void *context, sm_error *err) {
    train_piece *p = context;
    if (p->tasks == p->room) {
        int room = p->room ? 2 * p->room : 64;
        sm_program_task *more = sm_realloc(p->task, (size_t)room * sizeof *more);
        if (!more) return sm_fail_memory(err);
        p->task = more;
        p->room = room;
    }
    p->task[p->tasks++] = *task;
    if (task->kind == SM_TASK_FORWARD) p->forwards = p->tasks;
    if (task->kind == SM_TASK_WEIGHT_GRADIENT)
        p->partial[task->result] = task->lowering.out.unreduced;
    if (task->kind == SM_TASK_HOME && p->program.tensor[task->result].role == SM_ROLE_WEIGHT)
        p->partial[task->result] &= (sm_axes)~task->einsum.in[0].unreduced;
    return SM_OK;
}

static void sizes_of(const sm_trainer *t, const sm_program *b, double *size) {
    memcpy(size, b->size, sizeof b->size);
    size[SM_DIM_B] = t->size[SM_DIM_B];
    size[SM_DIM_C] *= t->size[SM_DIM_B];
    if (!t->serving) return;
    size[SM_DIM_T] = b->output < 0 ? (double)t->sampled : t->size[SM_DIM_T];
    size[SM_DIM_S] = t->size[SM_DIM_S];
    size[SM_DIM_C] *= size[SM_DIM_T];
}

static uint64_t run_again(const sm_train_setup *s, const sm_program *b, sm_piece piece) {
    if (piece != SM_PIECE_LAYER) return 0;
    return s->recompute_ops ? sm_recompute_named(b, s->recompute_ops)
                            : sm_recompute_set(b, s->recompute);
}

static void recompute(train_piece *p, uint64_t set) {
    sm_kept kept[SM_MAX_TENSORS];
    int n = sm_recompute_kept(p->part, set, &p->again, kept);
    for (int i = 0; i < n; i++) p->kept |= 1ull << kept[i].tensor;
    if (p->program.output < 0) p->kept |= 1ull << p->program.op[p->program.ops - 1].out;
}

static void keep_cache(train_piece *p) {
    for (int i = 0; i < p->program.tensors; i++)
        if (p->program.tensor[i].role == SM_ROLE_CACHE) p->kept |= 1ull << i;
}

const sm_array *train_array_of(const train_piece *p, int tensor, const sm_einsum **einsum) {
    for (int i = 0; i < p->forwards; i++)
        for (int k = 0; k < p->task[i].einsum.operands; k++)
            if (p->task[i].tensor[k] == tensor) {
                *einsum = &p->task[i].einsum;
                return &p->task[i].einsum.in[k];
            }
    return NULL;
}

static sm_status find_last_uses(sm_trainer *t, train_piece *p, sm_error *err) {
    for (int o = 0; o < SM_PASS_ORDERS; o++) {
        p->last[o] = sm_calloc(2 * (size_t)p->tasks + 1, sizeof *p->last[o]);
        p->entries[o] = !p->last[o] ? -1
                                    : sm_program_last_uses(&p->program, &t->mesh->mesh, p->task,
                                                           p->tasks, p->again, (sm_pass_order)o,
                                                           p->last[o], &p->weights[o]);
        if (p->entries[o] < 0) return sm_fail_memory(err);
    }
    p->kept &= ~sm_program_arrives(&p->program, p->task, p->tasks, p->again);
    return SM_OK;
}

static sm_status new_piece(sm_trainer *t, sm_piece piece, int kind, sm_error *err) {
    const sm_train_setup *s = t->setup;
    train_piece *p = &t->piece[t->pieces++];
    double size[SM_DIM_COUNT];
    sm_status status =
        t->serving
            ? sm_program_build_serving(s->model, piece, kind, &s->rules, &p->program, err)
            : sm_program_build(s->model, piece, kind, s->tokens, &s->rules, &p->program, err);
    if (status) return status;
    sm_program_as_run(&p->program);
    p->part = sm_malloc(sizeof *p->part);
    if (!p->part) return sm_fail_memory(err);
    if (t->serving) status = sm_program_partition_forward(&p->program, p->part, err);
    else status = sm_program_partition(&p->program, p->part, err);
    status = status ? status : train_turns_new(t, p, err);
    sizes_of(t, &p->program, size);
    if (!status) status = sm_program_walk(&p->program, &t->mesh->mesh, size, keep_task, p, err);
    if (!status && t->serving) keep_cache(p);
    else if (!status) recompute(p, run_again(s, &p->program, piece));
    return status ? status : find_last_uses(t, p, err);
}

/* Every op to run again is one of some layer. */
static sm_status check_names(const sm_trainer *t, sm_error *err) {
    const sm_program *program[SM_MAX_LAYER_KINDS];
    size_t n;
    int kinds = t->setup->model->kinds;
    if (!t->setup->recompute_ops) return SM_OK;
    for (int k = 0; k < kinds; k++) program[k] = &t->piece[k].program;
    const char *odd = sm_recompute_unknown(program, kinds, t->setup->recompute_ops, &n);
    if (!odd) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "recompute names \"%.*s\", which no layer has", (int)n, odd);
}

sm_status train_pieces_new(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    for (int k = 0; !status && k < t->setup->model->kinds; k++)
        status = new_piece(t, SM_PIECE_LAYER, k, err);
    if (!status) status = new_piece(t, SM_PIECE_EMBEDDING, 0, err);
    if (!status) status = new_piece(t, SM_PIECE_HEAD, 0, err);
    return status ? status : check_names(t, err);
}

void train_pieces_free(sm_trainer *t) {
    for (int i = 0; i < t->pieces; i++) {
        for (int o = 0; o < SM_PASS_ORDERS; o++) sm_free(t->piece[i].last[o]);
        sm_free(t->piece[i].task);
        sm_free(t->piece[i].turn);
        sm_free(t->piece[i].part);
        t->piece[i] = (train_piece){.tasks = 0};
    }
    t->pieces = 0;
}

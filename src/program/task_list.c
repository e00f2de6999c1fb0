/* The tasks of a program on a mesh, with what lives between them. */
#include <assert.h>

#include "partition.h"
#include "program_parts.h"

const char *const sm_train_memory_names[SM_TRAIN_MEMORY_COUNT] = {SM_TRAIN_MEMORIES(SM_NAME_OF)};

static sm_status keep_task(const sm_program_task *task, void *context, sm_error *err) {
    sm_task_list *l = context;
    sm_program_task *more = sm_grow(l->task, (size_t)l->tasks, &l->room, sizeof *more);
    if (!more) return sm_fail_memory(err);
    l->task = more;
    l->task[l->tasks++] = *task;
    if (task->kind == SM_TASK_FORWARD) l->forwards = l->tasks;
    if (task->kind == SM_TASK_WEIGHT_GRADIENT)
        l->partial[task->result] = task->lowering.out.unreduced;
    if (task->kind == SM_TASK_HOME && l->program->tensor[task->result].role == SM_ROLE_WEIGHT)
        l->partial[task->result] &= (sm_axes)~task->einsum.in[0].unreduced;
    return SM_OK;
}

static sm_status partition(const sm_program *program, sm_task_list *l, sm_error *err) {
    l->partition = sm_malloc(sizeof *l->partition);
    if (!l->partition) return sm_fail_memory(err);
    l->program = &l->partition->program;
    return program->serving ? sm_program_partition_forward(program, NULL, l->partition, err)
                            : sm_program_partition(program, NULL, l->partition, err);
}

sm_status sm_task_list_new(const sm_program *program, const sm_mesh *mesh, const double *size,
                           sm_bits recompute, sm_regather regather, sm_task_list *out,
                           sm_error *err) {
    *out = (sm_task_list){.mesh = *mesh};
    sm_status status = partition(program, out, err);
    if (!status) status = sm_program_walk(out->program, mesh, size, keep_task, out, err);
    if (!status) {
        /* The loss stays for its own gradient. */
        const sm_program *b = out->program;
        sm_kept_array kept[SM_MOST_KEPT];
        int n = b->serving ? 0
                           : sm_recompute_kept(out->partition, recompute, SM_REGATHER_ALL,
                                               &out->again, kept);
        task_list_keep_arrivals(out, regather);
        for (int i = 0; i < n; i++) out->kept |= sm_bit_of(kept[i].tensor);
        if (!b->serving && b->output < 0) out->kept |= sm_bit_of(b->op[b->ops - 1].out);
        for (int i = 0; i < b->tensors; i++)
            if (b->tensor[i].role == SM_ROLE_CACHE ||
                (b->serving && b->tensor[i].role == SM_ROLE_STATE))
                out->kept |= sm_bit_of(i);
        out->kept &= ~task_list_arrives(out);
    }
    if (!status) status = task_list_last_uses(out, err);
    if (status) sm_task_list_free(out);
    return status;
}

void sm_task_list_free(sm_task_list *l) {
    for (int o = 0; o < SM_PASS_ORDERS; o++) sm_free(l->last[o]);
    sm_free(l->task);
    sm_free(l->partition);
    *l = (sm_task_list){.tasks = 0};
}

const sm_program_task *sm_task_list_reader(const sm_task_list *l, int tensor, int *operand) {
    for (int i = 0; i < l->forwards; i++)
        for (int k = 0; k < l->task[i].einsum.operands; k++)
            if (l->task[i].tensor[k] == tensor) {
                *operand = k;
                return &l->task[i];
            }
    return NULL;
}

const sm_array *sm_task_list_array(const sm_task_list *l, int tensor, const sm_einsum **einsum) {
    int operand = 0;
    const sm_program_task *task = sm_task_list_reader(l, tensor, &operand);
    if (!task) return NULL;
    *einsum = &task->einsum;
    return &task->einsum.in[operand];
}

sm_element sm_tensor_element(const sm_tensor *t) {
    if (t->bytes_per_element == (double)sm_element_bytes(SM_ELEMENT_BF16)) return SM_ELEMENT_BF16;
    return t->bytes_per_element > (double)sm_element_bytes(SM_ELEMENT_F32) ? SM_ELEMENT_F64
                                                                           : SM_ELEMENT_F32;
}

sm_local_block sm_task_list_block(const sm_task_list *l, int tensor) {
    const sm_einsum *einsum;
    const sm_array *array = sm_task_list_array(l, tensor, &einsum);
    assert(array);
    sm_layout layout = sm_layout_of(array);
    return sm_local_block_shape(&l->mesh, einsum, array, &layout,
                                sm_tensor_element(&l->program->tensor[tensor]));
}

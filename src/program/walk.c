/* The partition told task by task, with real sizes on a real mesh. */
#include "partition_parts.h"

void part_task_arrays(job *j, int n, const term *in, const term *out, const sm_lowering *low) {
    sm_program_task *t = j->task;
    if (!t) return;
    *t = (sm_program_task){.moves = low != NULL};
    part_einsum(j, n, in, out, &t->einsum);
    for (int i = 0; i < n; i++) {
        t->tensor[i] = in[i].tensor;
        t->gradient[i] = in[i].gradient;
    }
    if (low) t->lowering = *low;
}

void part_task_ring(job *j, int step) {
    _Static_assert(SM_MAX_STEPS <= 32, "a bit for each step");
    if (j->task) j->task->ring |= 1u << step;
}

static bool tell(job *j, const sm_op *op, sm_task_kind kind) {
    sm_program_task *t = j->task;
    t->kind = kind;
    t->op = (int)(op - j->b->op);
    sm_status status = j->visit(t, j->context, j->err);
    if (status && j->err) j->err->status = status;
    return status == SM_OK;
}

bool part_task_forward(job *j, const sm_op *op) {
    if (!j->task) return true;
    j->task->result = op->out;
    return tell(j, op, SM_TASK_FORWARD);
}

bool part_task_gradient(job *j, const sm_op *op, sm_task_kind kind, int tensor, int number) {
    if (!j->task) return true;
    if (number < 0) {
        sm_fail(j->err, SM_INTERNAL, "a gradient of %s has more than %d parts",
                j->b->tensor[tensor].name, MAX_PARTS);
        return false;
    }
    j->task->result = tensor;
    j->task->share = number;
    return tell(j, op, kind);
}

bool part_task_join(job *j, const sm_op *op, int tensor, const share *from, const share *into) {
    if (!j->task) return true;
    *j->task = (sm_program_task){.result = tensor,
                                 .share = from->number,
                                 .into = into->number,
                                 .axes = (sm_axes)(into->unreduced & ~from->unreduced)};
    return tell(j, op, SM_TASK_JOIN);
}

sm_status sm_program_walk(const sm_program *program, const sm_mesh *mesh, const double *size,
                          sm_program_visit visit, void *context, sm_error *err) {
    sm_error own = {.status = SM_OK};
    sm_partition *part = sm_calloc(1, sizeof *part);
    sm_program_task *task = sm_calloc(1, sizeof *task);
    job j = {.out = part,
             .b = program,
             .err = err ? err : &own,
             .mesh = mesh,
             .size = size,
             .visit = visit,
             .context = context,
             .task = task};
    sm_status status = part && task ? SM_OK : sm_fail_memory(err);
    bool whole = !status && part_forward(&j) && (program->serving || part_backward_ops(&j));
    if (!status && !whole) status = j.err->status ? j.err->status : SM_INTERNAL;
    sm_free(task);
    sm_free(part);
    return status;
}

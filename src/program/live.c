/* How long arrays live when the tasks of a list run one after the other: from the task that makes
 * an array to the last one that reads it. The interpreter drops by this table. */
#include "program_parts.h"

/* ---- what stays as it arrived ---- */

static bool moves(const sm_step *s, int operand) {
    return s->array == operand && s->kind != SM_STEP_EINSUM;
}

/* The number of the last all-to-all on an operand, or of the last step of any kind when `any`; -1:
 * none. */
static int last_step(const sm_lowering *low, int operand, bool any) {
    int last = -1;
    for (int i = 0; i < low->steps; i++) {
        const sm_step *s = &low->step[i];
        bool exchange = s->kind == SM_STEP_COLLECTIVE && s->op == SM_ALL_TO_ALL;
        if (moves(s, operand) && (any || exchange)) last = i;
    }
    return last;
}

/* The step of a lowering that leaves an operand as `by` does; -1: none. */
static int same_step(const sm_task_list *l, const sm_lowering *low, int operand,
                     const sm_step *by) {
    for (int i = low->steps - 1; i >= 0; i--)
        if (moves(&low->step[i], operand) &&
            sm_layout_same(&l->mesh, &low->step[i].after, &by->after))
            return i;
    return -1;
}

/* Of a task the last such step tells. */
void task_list_keep_arrivals(sm_task_list *l, sm_regather regather) {
    for (int i = l->forwards; i < l->tasks; i++) {
        const sm_program_task *t = &l->task[i];
        for (int k = t->lowering.steps - 1; k >= 0; k--) {
            const sm_step *s = &t->lowering.step[k];
            if (!(t->repeated >> k & 1)) continue;
            int tensor = t->tensor[s->array];
            bool weight = l->program->tensor[tensor].role == SM_ROLE_WEIGHT;
            unsigned kept = weight ? SM_KEEPS_WEIGHTS : SM_KEEPS_ACTIVATIONS;
            if (((unsigned)regather & kept) && !l->arrives_by[tensor]) l->arrives_by[tensor] = s;
        }
    }
}

int task_operand_stays(const sm_task_list *l, const sm_program_task *task, int operand) {
    int tensor = task->tensor[operand];
    const sm_tensor *t = &l->program->tensor[tensor];
    if (task->kind != SM_TASK_FORWARD) return -1;
    if (t->norm) return last_step(&task->lowering, operand, true);
    if (l->arrives_by[tensor]) return same_step(l, &task->lowering, operand, l->arrives_by[tensor]);
    bool product = l->program->op[task->op].kind == SM_OP_EINSUM && t->role != SM_ROLE_WEIGHT;
    return product ? last_step(&task->lowering, operand, false) : -1;
}

/* An activation that an op needs to run again comes again. */
int task_operand_resumes(const sm_task_list *l, const sm_program_task *task, int operand) {
    int tensor = task->tensor[operand];
    const sm_tensor *t = &l->program->tensor[tensor];
    bool weight = t->role == SM_ROLE_WEIGHT;
    if (task->gradient[operand]) return -1;
    if (t->norm) return last_step(&task->lowering, operand, true);
    if (l->arrives_by[tensor] && (weight || task->kind != SM_TASK_FORWARD))
        return same_step(l, &task->lowering, operand, l->arrives_by[tensor]);
    return !weight && task->kind == SM_TASK_WEIGHT_GRADIENT
               ? last_step(&task->lowering, operand, false)
               : -1;
}

bool task_operand_is_shape(const sm_task_list *l, const sm_program_task *task, int operand) {
    bool slope = task->kind == SM_TASK_INPUT_GRADIENT || task->kind == SM_TASK_WEIGHT_GRADIENT;
    return slope && l->program->op[task->op].kind == SM_OP_VECTOR && !task->gradient[operand];
}

/* ---- the order of a pass ---- */

static bool of_weight(const sm_task_list *l, int task) {
    const sm_program_task *t = &l->task[task];
    return t->kind == SM_TASK_WEIGHT_GRADIENT ||
           (t->kind == SM_TASK_HOME && l->program->tensor[t->result].role == SM_ROLE_WEIGHT);
}

/* Entries of the order, into the list. */
static void order_tasks(sm_task_list *l, sm_pass_order order) {
    sm_last_use *out = l->last[order];
    int n = 0;
    for (int i = 0; i < l->forwards; i++)
        if (order == SM_PASS_FORWARD || (l->again >> l->task[i].op & 1))
            out[n++] = (sm_last_use){.task = i};
    l->weights[order] = n;
    for (int late = 0; order != SM_PASS_FORWARD && late < 2; late++) {
        for (int i = l->forwards; i < l->tasks; i++)
            if (late == (order == SM_PASS_SPLIT && of_weight(l, i)))
                out[n++] = (sm_last_use){.task = i};
        if (!late) l->weights[order] = n;
    }
    l->entries[order] = n;
}

/* ---- last uses ---- */

bool task_move_same(const sm_task_list *l, const task_move *x, const task_move *y) {
    bool weight = l->program->tensor[x->tensor].role == SM_ROLE_WEIGHT;
    return x->tensor == y->tensor && x->gradient == y->gradient &&
           (weight || x->forward == y->forward) && sm_layout_same(&l->mesh, &x->after, &y->after);
}

task_move task_move_of(const sm_program_task *task, int operand, int step) {
    return (task_move){.tensor = task->tensor[operand],
                       .gradient = task->gradient[operand],
                       .forward = task->kind == SM_TASK_FORWARD,
                       .after = task->lowering.step[step].after};
}

/* What the entries after the one at hand read or make. */
typedef struct seen {
    sm_bits values, gradients;
    int moves;
    task_move *move;
} seen;

static bool is_new(seen *s, const sm_task_list *l, task_move move) {
    for (int i = 0; i < s->moves; i++)
        if (task_move_same(l, &s->move[i], &move)) return false;
    s->move[s->moves++] = move;
    return true;
}

/* What a task reads or makes, as bits of tensors. */
static void touched(const sm_task_list *l, const sm_program_task *t, sm_bits *values,
                    sm_bits *gradients) {
    const sm_op *op = &l->program->op[t->op];
    *values = *gradients = 0;
    bool backward = t->kind == SM_TASK_INPUT_GRADIENT || t->kind == SM_TASK_WEIGHT_GRADIENT;
    if (t->kind == SM_TASK_FORWARD) *values |= sm_bit_of(t->result);
    if (t->kind == SM_TASK_HOME) *gradients |= sm_bit_of(t->result);
    if (t->kind == SM_TASK_HOME || t->kind == SM_TASK_JOIN) return;
    for (int i = 0; i < t->einsum.operands; i++)
        if (!task_operand_is_shape(l, t, i))
            *(t->gradient[i] ? gradients : values) |= sm_bit_of(t->tensor[i]);
    bool own = op->kind == SM_OP_VECTOR || op->kind == SM_OP_GATHER; /* not operands alone */
    for (int i = 0; backward && own && i < op->inputs; i++)
        if (op->reads >> i & 1) *values |= sm_bit_of(op->in[i]);
    if (backward && op->reads_output) *values |= sm_bit_of(op->out);
}

static void last_use(const sm_task_list *l, seen *s, sm_last_use *out) {
    const sm_program_task *t = &l->task[out->task];
    sm_bits values, gradients;
    touched(l, t, &values, &gradients);
    out->values = values & ~s->values;
    out->gradients = gradients & ~s->gradients;
    s->values |= values;
    s->gradients |= gradients;
    if (t->kind == SM_TASK_HOME || t->kind == SM_TASK_JOIN) return;
    for (int i = 0; i < t->einsum.operands; i++)
        for (int k = 0; k < t->lowering.steps; k++)
            if (moves(&t->lowering.step[k], i) && is_new(s, l, task_move_of(t, i, k)))
                out->moved[i] |= 1u << k;
}

sm_status task_list_last_uses(sm_task_list *l, sm_error *err) {
    size_t room = 1;
    for (int i = 0; i < l->tasks; i++) room += 2 * (size_t)l->task[i].lowering.steps;
    seen s = {.move = sm_calloc(room, sizeof *s.move)};
    for (int o = 0; o < SM_PASS_ORDERS; o++)
        l->last[o] = sm_calloc(2 * (size_t)l->tasks + 1, sizeof *l->last[o]);
    bool there =
        s.move && l->last[SM_PASS_FORWARD] && l->last[SM_PASS_BACKWARD] && l->last[SM_PASS_SPLIT];
    for (int o = 0; there && o < SM_PASS_ORDERS; o++) {
        order_tasks(l, (sm_pass_order)o);
        s.values = s.gradients = 0;
        s.moves = 0;
        for (int i = l->entries[o] - 1; i >= 0; i--) last_use(l, &s, &l->last[o][i]);
    }
    sm_free(s.move);
    return there ? SM_OK : sm_fail_memory(err);
}

sm_bits task_list_arrives(const sm_task_list *l) {
    sm_bits arrives = 0, read = 0;
    for (int i = 0; i < l->tasks; i++) {
        const sm_program_task *t = &l->task[i];
        sm_bits values, gradients, resumed = 0;
        bool once = t->kind == SM_TASK_FORWARD && !(l->again >> t->op & 1);
        for (int k = 0; k < t->einsum.operands; k++) {
            if (once && task_operand_stays(l, t, k) >= 0) arrives |= sm_bit_of(t->tensor[k]);
            if (task_operand_resumes(l, t, k) >= 0) resumed |= sm_bit_of(t->tensor[k]);
        }
        if (once) continue;
        touched(l, t, &values, &gradients);
        if (t->kind == SM_TASK_FORWARD) values &= ~(sm_bit_of(t->result));
        read |= values & ~resumed;
    }
    return arrives & ~read;
}

/* How long arrays live when the tasks of a piece run one after the other: from the task that makes
 * an array to the last one that reads it. What executes the tasks frees by this table, and what
 * predicts its memory adds up by it. */
#include <string.h>

#include "scalemodel/step.h"

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

int sm_operand_stays(const sm_program *b, const sm_program_task *task, int operand) {
    const sm_tensor *t = &b->tensor[task->tensor[operand]];
    if (task->kind != SM_TASK_FORWARD) return -1;
    if (t->role == SM_ROLE_WEIGHT) return t->norm ? last_step(&task->lowering, operand, true) : -1;
    return b->op[task->op].kind == SM_OP_EINSUM ? last_step(&task->lowering, operand, false) : -1;
}

int sm_operand_resumes(const sm_program *b, const sm_program_task *task, int operand) {
    const sm_tensor *t = &b->tensor[task->tensor[operand]];
    if (task->gradient[operand]) return -1;
    if (t->role == SM_ROLE_WEIGHT) return t->norm ? last_step(&task->lowering, operand, true) : -1;
    return task->kind == SM_TASK_WEIGHT_GRADIENT ? last_step(&task->lowering, operand, false) : -1;
}

bool sm_operand_is_shape(const sm_program *b, const sm_program_task *task, int operand) {
    return task->kind == SM_TASK_INPUT_GRADIENT && b->op[task->op].kind == SM_OP_VECTOR &&
           !task->gradient[operand];
}

/* ---- the order of a pass ---- */

static bool of_weight(const sm_program *b, const sm_program_task *t) {
    return t->kind == SM_TASK_WEIGHT_GRADIENT ||
           (t->kind == SM_TASK_HOME && b->tensor[t->result].role == SM_ROLE_WEIGHT);
}

static int add_tasks(const sm_program_task *task, int from, int to, const sm_program *b, int which,
                     sm_last_use *out, int n) {
    enum { ALL = 2 };
    for (int i = from; i < to; i++)
        if (which == ALL || of_weight(b, &task[i]) == which) out[n++] = (sm_last_use){.task = i};
    return n;
}

static int order_of(const sm_program *b, const sm_program_task *task, int tasks, int forwards,
                    uint64_t again, sm_pass_order order, sm_last_use *out, int *weights) {
    int n = 0;
    for (int i = 0; i < forwards; i++)
        if (order == SM_PASS_FORWARD || (again >> task[i].op & 1))
            out[n++] = (sm_last_use){.task = i};
    *weights = n;
    if (order == SM_PASS_FORWARD) return n;
    if (order == SM_PASS_BACKWARD) {
        *weights = add_tasks(task, forwards, tasks, b, 2, out, n);
        return *weights;
    }
    *weights = add_tasks(task, forwards, tasks, b, 0, out, n);
    return add_tasks(task, forwards, tasks, b, 1, out, *weights);
}

/* ---- last uses ---- */

bool sm_move_same(const sm_program *b, const sm_mesh *mesh, const sm_move *x, const sm_move *y) {
    bool weight = b->tensor[x->tensor].role == SM_ROLE_WEIGHT;
    return x->tensor == y->tensor && x->gradient == y->gradient &&
           (weight || x->forward == y->forward) && sm_layout_same(mesh, &x->after, &y->after);
}

sm_move sm_move_of(const sm_program_task *task, int operand, int step) {
    return (sm_move){.tensor = task->tensor[operand],
                     .gradient = task->gradient[operand],
                     .forward = task->kind == SM_TASK_FORWARD,
                     .after = task->lowering.step[step].after};
}

typedef struct seen {
    uint64_t values, gradients;
    int moves, room;
    sm_move *move;
} seen;

static bool is_new(seen *s, const sm_program *b, const sm_mesh *mesh, sm_move move) {
    for (int i = 0; i < s->moves; i++)
        if (sm_move_same(b, mesh, &s->move[i], &move)) return false;
    if (s->moves < s->room) s->move[s->moves++] = move;
    return true;
}

/* What a task reads or makes, as bits of tensors. */
static void touched(const sm_program *b, const sm_program_task *t, uint64_t *values,
                    uint64_t *gradients) {
    const sm_op *op = &b->op[t->op];
    *values = *gradients = 0;
    bool backward = t->kind == SM_TASK_INPUT_GRADIENT || t->kind == SM_TASK_WEIGHT_GRADIENT;
    if (t->kind == SM_TASK_FORWARD) *values |= 1ull << t->result;
    if (t->kind == SM_TASK_HOME) *gradients |= 1ull << t->result;
    if (t->kind == SM_TASK_HOME || t->kind == SM_TASK_JOIN) return;
    for (int i = 0; i < t->einsum.operands; i++)
        if (!sm_operand_is_shape(b, t, i))
            *(t->gradient[i] ? gradients : values) |= 1ull << t->tensor[i];
    bool own = op->kind == SM_OP_VECTOR || op->kind == SM_OP_GATHER; /* not operands alone */
    for (int i = 0; backward && own && i < op->inputs; i++)
        if (op->reads >> i & 1) *values |= 1ull << op->in[i];
    if (backward && op->reads_output) *values |= 1ull << op->out;
}

static void last_use(const sm_program *b, const sm_mesh *mesh, const sm_program_task *t, seen *s,
                     sm_last_use *out) {
    uint64_t values, gradients;
    touched(b, t, &values, &gradients);
    out->values = values & ~s->values;
    out->gradients = gradients & ~s->gradients;
    s->values |= values;
    s->gradients |= gradients;
    if (t->kind == SM_TASK_HOME || t->kind == SM_TASK_JOIN) return;
    for (int i = 0; i < t->einsum.operands; i++)
        for (int k = 0; k < t->lowering.steps; k++)
            if (moves(&t->lowering.step[k], i) && is_new(s, b, mesh, sm_move_of(t, i, k)))
                out->moved[i] |= 1u << k;
}

int sm_program_last_uses(const sm_program *b, const sm_mesh *mesh, const sm_program_task *task,
                         int tasks, uint64_t again, sm_pass_order order, sm_last_use *out,
                         int *weights) {
    seen s = {.room = 0};
    int forwards = 0;
    while (forwards < tasks && task[forwards].kind == SM_TASK_FORWARD) forwards++;
    int n = order_of(b, task, tasks, forwards, again, order, out, weights);
    for (int i = 0; i < n; i++) s.room += task[out[i].task].lowering.steps;
    s.move = sm_calloc((size_t)s.room + 1, sizeof *s.move);
    if (!s.move) return -1;
    for (int i = n - 1; i >= 0; i--) last_use(b, mesh, &task[out[i].task], &s, &out[i]);
    sm_free(s.move);
    return n;
}

uint64_t sm_program_arrives(const sm_program *b, const sm_program_task *task, int tasks,
                            uint64_t again) {
    uint64_t arrives = 0, read = 0;
    for (int i = 0; i < tasks; i++) {
        const sm_program_task *t = &task[i];
        uint64_t values, gradients, resumed = 0;
        bool once = t->kind == SM_TASK_FORWARD && !(again >> t->op & 1);
        for (int k = 0; k < t->einsum.operands; k++) {
            if (once && sm_operand_stays(b, t, k) >= 0) arrives |= 1ull << t->tensor[k];
            if (sm_operand_resumes(b, t, k) >= 0) resumed |= 1ull << t->tensor[k];
        }
        if (t->kind == SM_TASK_FORWARD && once) continue;
        touched(b, t, &values, &gradients);
        if (t->kind == SM_TASK_FORWARD) values &= ~(1ull << t->result);
        read |= values & ~resumed;
    }
    return arrives & ~read;
}

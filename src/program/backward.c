/* The backward pass, derived from the forward ops: for C = A B
 *   dA = dC B^T,   dB = A^T dC
 * ("How To Scale Your Model", training chapter): two matmuls of the forward one's FLOPs. A gradient
 * that several ops feed is summed before it is reduced where the partial sums are alike. */
#include "partition_parts.h"
#include "program_parts.h"

#include <assert.h>

/* Its number. */
static int add_share(job *j, int tensor, const sm_axes *at, sm_axes unreduced) {
    shares *s = &j->gradient[tensor];
    int rank = j->b->tensor[tensor].rank;
    assert(s->n >= 0 && s->n <= MAX_PARTS);
    for (int i = 0; i < s->n; i++) /* equal partial sums are added before they are reduced */
        if (s->part[i].unreduced == unreduced &&
            memcmp(s->part[i].at, at, (size_t)rank * sizeof *at) == 0)
            return s->part[i].number;
    if (s->n == MAX_PARTS) return -1;
    memcpy(s->part[s->n].at, at, (size_t)rank * sizeof *at);
    s->part[s->n].number = s->made++;
    s->part[s->n++].unreduced = unreduced;
    return s->made - 1;
}

static void lowered_at(const sm_lowering *low, sm_axes *at) {
    memset(at, 0, SM_MAX_RANK * sizeof *at);
    for (int d = 0; d < low->out.rank; d++)
        for (int i = 0; i < low->out.dim[d].n_axes; i++)
            at[d] = (sm_axes)(at[d] | SM_BIT(low->out.dim[d].axis[i]));
}

/* Move a gradient from where it fell to where its tensor is stored; left: what stays partial. */
static bool move_home(job *j, const sm_op *op, int tensor, const share *from, sm_axes left,
                      sm_phase phase) {
    const sm_tensor *t = &j->b->tensor[tensor];
    int at[SM_AXIS_COUNT];
    sm_lowering low;
    term in = part_gradient(j->b, tensor), out = in;
    in.unreduced = (sm_axes)(from->unreduced & ~left);
    memcpy(in.at, from->at, sizeof in.at);
    part_assign_home(t, at);
    if (!part_lower(j, 1, &in, &out, at, false, &low)) return false;
    part_emit(j, op, (traveller){0, tensor, true, part_mask(from->at, t->rank)}, &low, phase);
    if (j->task) j->task->axes = left;
    return part_task_gradient(j, op, SM_TASK_HOME, tensor, from->number);
}

static traveller travels(const job *j, int operand, const term *t) {
    return (traveller){operand, t->tensor, t->gradient,
                       part_mask(t->at, j->b->tensor[t->tensor].rank)};
}

/* The gradient of a weight: fsdp, and an axis whose shards were gathered, reduce every microbatch
 * onto the shards; what else is partial waits for the step's end. */
static bool weight_gradient(job *j, const sm_op *op, int n, const term *in, int tensor,
                            const int *at) {
    sm_lowering low;
    share from = {.number = 0};
    term out = part_stored(j->b, tensor);
    memset(out.at, 0, sizeof out.at);
    if (j->b->tensor[tensor].fixed) return true;
    if (!part_lower(j, n, in, &out, at, true, &low)) return false;
    for (int i = 0; i < n; i++)
        if (in[i].gradient || op->kind != SM_OP_VECTOR) /* else there for its shape */
            part_emit(j, op, travels(j, i, &in[i]), &low, SM_PHASE_BACKWARD_WEIGHT);
    if (!part_task_gradient(j, op, SM_TASK_WEIGHT_GRADIENT, tensor, 0)) return false;
    lowered_at(&low, from.at);
    from.unreduced = low.out.unreduced;
    sm_axes shards = sm_weight_shards(&j->b->rules, part_of_experts(j->b, tensor));
    unsigned waits = ~(unsigned)(shards | part_stored_mask(j->b, tensor));
    j->partial[tensor] = (sm_axes)(j->partial[tensor] | (from.unreduced & waits));
    return move_home(j, op, tensor, &from, (sm_axes)waits, SM_PHASE_BACKWARD_WEIGHT);
}

static bool input_gradient(job *j, const sm_op *op, int n, const term *in, int operands_emitted,
                           const term *out, const int *at) {
    sm_lowering low;
    sm_axes home[SM_MAX_RANK];
    if (!part_lower(j, n, in, out, at, true, &low)) return false;
    for (int i = 0; i < operands_emitted; i++)
        part_emit(j, op, travels(j, i, &in[i]), &low, SM_PHASE_BACKWARD_INPUT);
    lowered_at(&low, home);
    int number = add_share(j, out->tensor, home, low.out.unreduced);
    return part_task_gradient(j, op, SM_TASK_INPUT_GRADIENT, out->tensor, number);
}

static term bare(const sm_program *b, const sm_op *op, int i) {
    term t = part_operand(b, op, i);
    memset(t.at, 0, sizeof t.at);
    return t;
}

static bool backward_operand(job *j, const sm_op *op, int i, const term *pair, const int *at) {
    const sm_tensor *t = &j->b->tensor[op->in[i]];
    term d = bare(j->b, op, i);
    sm_phase phase = t->role == SM_ROLE_WEIGHT ? SM_PHASE_BACKWARD_WEIGHT : SM_PHASE_BACKWARD_INPUT;
    if (t->role == SM_ROLE_IDS) return true;
    if (t->role == SM_ROLE_WEIGHT ? !weight_gradient(j, op, 2, pair, op->in[i], at)
                                  : !input_gradient(j, op, 2, pair, 2, &d, at))
        return false;
    if (t->fixed) return true;
    if (op->kind == SM_OP_EINSUM) part_einsum_work(j, op, pair, &d, at, phase);
    else part_vector_work(j, op, phase);
    return true;
}

static bool backward_einsum(job *j, const sm_op *op, const int *at) {
    term dc = part_gradient(j->b, op->out);
    term left[2] = {dc, part_operand(j->b, op, 1)}, right[2] = {part_operand(j->b, op, 0), dc};
    return backward_operand(j, op, 0, left, at) && backward_operand(j, op, 1, right, at);
}

/* Attention and kernels: everything they read serves the gradient of each input. */
static bool backward_whole(job *j, const sm_op *op, const int *at) {
    term in[SM_MAX_OPERANDS] = {{0}};
    int n = op->inputs + 1;
    for (int i = 0; i < n; i++) in[i] = part_operand(j->b, op, i);
    in[op->inputs] = part_gradient(j->b, op->out);
    for (int i = 0; i < op->inputs; i++) {
        term out = bare(j->b, op, i);
        bool weight = j->b->tensor[op->in[i]].role == SM_ROLE_WEIGHT;
        if (weight && !weight_gradient(j, op, n, in, op->in[i], at)) return false;
        if (!weight && i != op->chosen && !input_gradient(j, op, n, in, n, &out, at)) return false;
    }
    return true;
}

/* Between positions and slots every chip passes on what its experts have of its tokens: a partial
 * sum over the axes that share out the experts or their products. Which experts are chosen has no
 * slope, so that the scores have one only of the side where their shares weigh the rows. */
static bool backward_crossing(job *j, const sm_op *op) {
    bool combines = op->function == SM_FUNCTION_COMBINE;
    for (int i = 0; i < (op->reads & 1u ? op->inputs : 1); i++) {
        term pair[2] = {part_gradient(j->b, op->out), part_operand(j->b, op, 0)};
        term out = part_stored(j->b, op->in[i]);
        share to = {.unreduced = combines ? 0 : j->left};
        if (!combines || i > 0)
            to.unreduced |= part_sums_over(j->b, combines ? op->in[0] : op->out);
        out.unreduced = to.unreduced;
        part_task_arrays(j, 2, pair, &out, NULL);
        int number = add_share(j, op->in[i], out.at, to.unreduced);
        if (!part_task_gradient(j, op, SM_TASK_INPUT_GRADIENT, op->in[i], number)) return false;
    }
    return true;
}

static bool backward_inputs(job *j, const sm_op *op, const int *at) {
    for (int i = 0; i < op->inputs; i++) {
        const sm_tensor *t = &j->b->tensor[op->in[i]];
        term pair[2] = {part_gradient(j->b, op->out), part_operand(j->b, op, i)};
        term out = bare(j->b, op, i);
        bool weight = t->role == SM_ROLE_WEIGHT;
        /* taps of a convolution are no dimension of its result */
        bool beyond = (program_dims(t) & ~program_dims(&j->b->tensor[op->out])) != 0;
        if (weight && !weight_gradient(j, op, 1 + beyond, pair, op->in[i], at)) return false;
        /* the gradient of a term of a sum is that of the sum */
        bool is_term = op->function == SM_FUNCTION_ADD && j->b->tensor[op->in[i]].unreduced;
        if (weight || is_term) continue;
        if (!input_gradient(j, op, 2, pair, 1, &out, at)) return false;
    }
    return true;
}

static bool backward_vector(job *j, const sm_op *op, const int *at) {
    bool done = part_crosses(j->b, op) ? backward_crossing(j, op) : backward_inputs(j, op, at);
    if (done) part_vector_work(j, op, SM_PHASE_BACKWARD_INPUT);
    return done;
}

/* A sum that is whole over an axis joins one that is partial there: all but one chip of the axis
 * count it as zero. */
static bool joins(const job *j, int tensor, const share *a, const share *b) {
    int rank = j->b->tensor[tensor].rank;
    return (a->unreduced & ~b->unreduced) == 0 && a->unreduced != b->unreduced &&
           memcmp(a->at, b->at, (size_t)rank * sizeof *a->at) == 0;
}

static bool join_shares(job *j, const sm_op *op, int tensor, shares *s) {
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n; k++)
            if (joins(j, tensor, &s->part[i], &s->part[k])) {
                if (!part_task_join(j, op, tensor, &s->part[i], &s->part[k])) return false;
                s->part[i--] = s->part[--s->n];
                break;
            }
    return true;
}

/* Partial sums of slots are passed on as they are: they are added to those of their tokens, which
 * are fewer, and reduced with them. */
static sm_axes stays_partial(const job *j, const sm_op *op, const shares *s) {
    bool passes = op->function == SM_FUNCTION_DISPATCH && program_tokens_whole(j->b);
    unsigned axes = passes && s->n > 0 ? SM_AXES_TENSOR : 0;
    for (int i = 0; i < s->n; i++) axes &= s->part[i].unreduced;
    return (sm_axes)axes;
}

bool part_flush(job *j, const sm_op *op, int tensor) {
    shares *s = &j->gradient[tensor];
    if (!join_shares(j, op, tensor, s)) return false;
    j->left = tensor == op->out ? stays_partial(j, op, s) : 0;
    for (int i = 0; i < s->n; i++)
        if (!move_home(j, op, tensor, &s->part[i], j->left, SM_PHASE_BACKWARD_INPUT)) return false;
    return true;
}

bool part_backward(job *j, const sm_op *op) {
    int at[SM_AXIS_COUNT];
    part_assign(j->b, op, at);
    if (!part_flush(j, op, op->out)) return false;
    switch (op->kind) {
    case SM_OP_ATTENTION:
        if (!backward_whole(j, op, at)) return false;
        part_attention_work(j, op, at, SM_PHASE_BACKWARD_INPUT);
        return true;
    case SM_OP_KERNEL:
        if (!backward_whole(j, op, at)) return false;
        part_kernel_work(j, op, at, SM_PHASE_BACKWARD_INPUT);
        return true;
    case SM_OP_VECTOR: return backward_vector(j, op, at);
    default: return backward_einsum(j, op, at);
    }
}

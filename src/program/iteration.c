/* The iteration space of each op: which dimension each axis splits while it runs. No parallelism is
 * written anywhere else: what must move follows from here and from where arrays are stored. */
#include "partition_parts.h"
#include "program_parts.h"

static uint32_t dims_of(const sm_program *b, const sm_op *op) {
    uint32_t set = 0;
    for (int i = 0; i <= op->inputs; i++) {
        const sm_tensor *t = &b->tensor[i < op->inputs ? op->in[i] : op->out];
        for (int d = 0; d < t->rank; d++) set |= 1u << t->dim[d];
    }
    if (op->kind == SM_OP_ATTENTION) set |= 1u << SM_DIM_S;
    return set;
}

/* The chips that hold no heads of their own do the part of attention whose cache they hold; only
 * in decode, where that moves less than the cache. */
static int attention_dim(const sm_program *b, uint32_t dims, int axis) {
    int dim = program_tensor_dim(b, dims, axis);
    bool headless = dim != SM_DIM_K && b->serving && b->rules.decode;
    return headless && b->rules.cache_by != SM_CACHE_COPIES ? program_cache_dim(b, dims) : dim;
}

static int context_dim(const sm_program *b, const sm_op *op, uint32_t dims, int tokens) {
    if (b->serving && b->rules.decode) return dims >> SM_DIM_S & 1u ? SM_DIM_S : -1;
    if (op->kind == SM_OP_ATTENTION && b->rules.context_by == SM_CONTEXT_HEADS) return SM_DIM_K;
    return tokens;
}

/* Where the output is stored, there it is made. */
void part_assign_home(const sm_tensor *out, int *at) {
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        at[a] = -1;
        for (int d = 0; d < out->rank; d++)
            if (out->at[d] & SM_BIT(a)) at[a] = out->dim[d];
    }
}

bool part_appends(const sm_program *b, const sm_op *op) {
    return b->tensor[op->out].role == SM_ROLE_CACHE;
}

void part_assign(const sm_program *b, const sm_op *op, int *at) {
    if (part_appends(b, op)) {
        part_assign_home(&b->tensor[op->out], at);
        return;
    }
    uint32_t dims = dims_of(b, op);
    bool slots = dims >> SM_DIM_C & 1u, experts = slots && (dims >> SM_DIM_I & 1u);
    int tokens = slots ? SM_DIM_C : dims >> SM_DIM_T & 1u ? SM_DIM_T : SM_DIM_S;
    at[SM_AXIS_DATA] = at[SM_AXIS_FSDP] = slots ? SM_DIM_C : SM_DIM_B;
    if (b->serving && b->rules.stationary) at[SM_AXIS_FSDP] = program_stationary_dim(b, dims);
    at[SM_AXIS_EXPERT] = experts ? SM_DIM_E : slots ? SM_DIM_C : SM_DIM_B;
    at[SM_AXIS_CONTEXT] = context_dim(b, op, dims, tokens);
    for (int axis = SM_AXIS_TENSOR; axis <= SM_AXIS_TENSOR_Q; axis++) {
        at[axis] = op->kind == SM_OP_ATTENTION ? attention_dim(b, dims, axis)
                                               : program_tensor_dim(b, dims, axis);
        bool heads = dims >> SM_DIM_K & 1u;
        if (at[axis] < 0 && b->rules.seq && !heads) at[axis] = tokens;
    }
}

sm_axes part_axes_on(const int *at, int dim) {
    sm_axes axes = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] == dim) axes = (sm_axes)(axes | SM_BIT(a));
    return axes;
}

/* Dispatch and combine pass between positions [B,T] and slots [E,C] on the same chip. */
bool part_crosses(const sm_program *b, const sm_op *op) {
    uint32_t dims = dims_of(b, op);
    return (dims >> SM_DIM_C & 1u) && (dims >> SM_DIM_T & 1u);
}

/* The iteration space of each op: which dimension each axis splits while it runs. No parallelism is
 * written anywhere else: what must move follows from here and from where arrays are stored. */
#include "program_parts.h"

static sm_dimensions dims_of(const sm_program *b, const sm_op *op) {
    sm_dimensions set = program_dims(&b->tensor[op->out]);
    for (int i = 0; i < op->inputs; i++)
        for (int d = 0; d < b->tensor[op->in[i]].rank; d++) set |= 1ull << op->as[i][d];
    return set;
}

/* The chips that hold no heads of their own do the part of attention whose cache they hold; only
 * in decode, where that moves less than the cache. */
static int cached_dim(const sm_program *b, const sm_op *op, int axis) {
    for (int i = 0; i < op->inputs; i++) {
        const sm_tensor *t = &b->tensor[op->in[i]];
        for (int d = 0; d < t->rank && t->role == SM_ROLE_CACHE; d++)
            if (t->at[d] >> axis & 1u) return op->as[i][d];
    }
    return -1;
}

static int tensor_dim(const sm_program *b, const sm_op *op, sm_dimensions dims, int axis) {
    bool reads_cache = op->kind == SM_OP_ATTENTION || op->kind == SM_OP_KERNEL;
    if (reads_cache && b->serving && b->rules.decode) {
        int dim = cached_dim(b, op, axis);
        if (dim >= 0) return dim;
    }
    return program_tensor_dim(b, dims, axis);
}

static int context_dim(const sm_program *b, const sm_op *op, sm_dimensions dims) {
    if (b->serving && b->rules.decode) return program_first(b, dims, SM_DIMENSION_KEYS);
    bool scans = op->kind == SM_OP_KERNEL && op->state >= 0;
    if ((op->kind == SM_OP_ATTENTION || scans) && b->rules.context_by == SM_CONTEXT_HEADS) {
        bool heads = program_has(b, dims, SM_DIMENSION_HEADS); /* else channels of a state */
        return program_first(b, dims, heads ? SM_DIMENSION_HEADS : SM_DIMENSION_WIDTH);
    }
    return program_tokens(b, dims);
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
    sm_dimensions dims = dims_of(b, op);
    int tokens = program_tokens(b, dims), sequences = program_sequences(b, dims);
    bool experts = program_experts_own(b, dims);
    at[SM_AXIS_DATA] = at[SM_AXIS_FSDP] = sequences;
    if (b->serving && b->rules.stationary) at[SM_AXIS_FSDP] = program_stationary_dim(b, dims);
    at[SM_AXIS_EXPERT] = experts ? program_first(b, dims, SM_DIMENSION_EXPERTS) : sequences;
    at[SM_AXIS_CONTEXT] = context_dim(b, op, dims);
    at[SM_AXIS_TENSOR_W] = -1;
    for (int axis = program_first_tensor(b); axis <= SM_AXIS_TENSOR_Q; axis++) {
        bool whole = op->kind == SM_OP_GATHER && b->rules.table_gathered;
        at[axis] = whole ? -1 : tensor_dim(b, op, dims, axis);
        bool along = b->rules.seq && op->state < 0; /* what goes along positions needs them all */
        if (at[axis] < 0 && along && (whole || !program_carries_tensor(b, dims))) at[axis] = tokens;
    }
}

sm_axes part_axes_on(const int *at, int dim) {
    sm_axes axes = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] == dim) axes = (sm_axes)(axes | SM_BIT(a));
    return axes;
}

sm_axes part_axes_of(const sm_program *b, const int *at, sm_dimension_role role) {
    sm_axes axes = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] >= 0 && b->dim[at[a]].role == role) axes = (sm_axes)(axes | SM_BIT(a));
    return axes;
}

/* Dispatch and combine pass between positions [B,T] and slots [E,C] on the same chip. */
bool part_crosses(const sm_program *b, const sm_op *op) {
    sm_dimensions dims = dims_of(b, op);
    return program_has(b, dims, SM_DIMENSION_SLOTS) && program_has(b, dims, SM_DIMENSION_POSITIONS);
}

bool part_of_experts(const sm_program *b, int tensor) {
    return program_has(b, program_dims(&b->tensor[tensor]), SM_DIMENSION_EXPERTS);
}

/* Where arrays are stored: which of their dimensions each axis shards. Activations, weights and the
 * cache of keys and values follow from the roles of dimensions and from the rules alone. */
#include "partition_parts.h"
#include "program_parts.h"

#include <assert.h>

static bool decodes(const sm_program *b) { return b->serving && b->rules.decode; }

static bool stationary(const sm_program *b) { return b->serving && b->rules.stationary; }

sm_dimensions program_dims(const sm_tensor *t) {
    assert(t->rank >= 0 && t->rank <= SM_MAX_RANK);
    sm_dimensions set = 0;
    for (int i = 0; i < t->rank; i++) set |= 1ull << t->dim[i];
    return set;
}

int program_first(const sm_program *b, sm_dimensions dims, sm_dimension_role role) {
    sm_dimensions of = dims & b->of_role[role];
    if (!of) return -1;
    int first = 0;
    while (!(of >> first & 1u)) first++;
    return first;
}

int program_tokens(const sm_program *b, sm_dimensions dims) {
    static const sm_dimension_role order[] = {SM_DIMENSION_SLOTS, SM_DIMENSION_POSITIONS};
    for (int i = 0; i < 2; i++)
        if (program_has(b, dims, order[i])) return program_first(b, dims, order[i]);
    return program_first(b, dims, SM_DIMENSION_KEYS);
}

int program_sequences(const sm_program *b, sm_dimensions dims) {
    bool slots = program_has(b, dims, SM_DIMENSION_SLOTS);
    return program_first(b, dims, slots ? SM_DIMENSION_SLOTS : SM_DIMENSION_SEQUENCES);
}

bool program_experts_own(const sm_program *b, sm_dimensions dims) {
    return program_has(b, dims, SM_DIMENSION_EXPERTS) && program_has(b, dims, SM_DIMENSION_WIDTH);
}

int program_first_tensor(const sm_program *b) {
    return b->rules.heads_copied ? SM_AXIS_TENSOR_W : SM_AXIS_TENSOR;
}

/* The dimension that carries a tensor axis in an array or an iteration space; -1 when nothing does.
 * An axis goes to the first of them that takes it. */
int program_tensor_dim(const sm_program *b, sm_dimensions dims, int axis) {
    static const sm_dimension_role order[] = {SM_DIMENSION_WIDTH, SM_DIMENSION_HEADS,
                                              SM_DIMENSION_GROUP, SM_DIMENSION_VOCABULARY};
    bool own = program_experts_own(b, dims);
    if (own && !b->rules.expert_tensor) return program_first(b, dims, SM_DIMENSION_EXPERTS);
    if (!own && program_has(b, dims, SM_DIMENSION_EXPERTS)) return -1;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (sm_dimensions left = dims & b->of_role[order[i]]; left; left &= left - 1) {
            int dim = program_first(b, left, order[i]);
            if (b->takes[dim] >> axis & 1u) return dim;
        }
    return -1;
}

bool program_carries_tensor(const sm_program *b, sm_dimensions dims) {
    return (dims & (b->of_role[SM_DIMENSION_WIDTH] | b->of_role[SM_DIMENSION_HEADS] |
                    b->of_role[SM_DIMENSION_GROUP] | b->of_role[SM_DIMENSION_VOCABULARY])) != 0;
}

/* What the chips that hold no heads of their own take of the cache. */
static int program_cache_dim(const sm_program *b, sm_dimensions dims) {
    if (b->rules.cache_by == SM_CACHE_BATCH) return program_first(b, dims, SM_DIMENSION_SEQUENCES);
    if (b->rules.cache_by == SM_CACHE_SEQUENCE) return program_first(b, dims, SM_DIMENSION_KEYS);
    return -1;
}

/* 2D weight-stationary: fsdp splits the width, the hidden width (each matmul contracts over one of
 * the two), and around attention what cache_by says. */
int program_stationary_dim(const sm_program *b, sm_dimensions dims) {
    static const sm_dimension_role split[] = {SM_DIMENSION_MODEL, SM_DIMENSION_WIDTH,
                                              SM_DIMENSION_VOCABULARY};

    for (size_t i = 0; i < sizeof split / sizeof split[0]; i++)
        if (program_has(b, dims, split[i])) return program_first(b, dims, split[i]);
    bool attends =
        program_has(b, dims, SM_DIMENSION_HEADS) || program_has(b, dims, SM_DIMENSION_KEYS);
    return decodes(b) && attends ? program_cache_dim(b, dims) : -1;
}

static void shard_dim(sm_tensor *t, int dim, unsigned axes) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == dim) t->at[i] = (sm_axes)(t->at[i] | axes);
}

/* Routed tokens are whole on every chip of a tensor group, so that its chips add up one sum for
 * each token and not one for each of its experts; seq shards them in training only. */
bool program_tokens_whole(const sm_program *b) { return b->serving || !b->rules.seq; }

static void store_tensor_axes(const sm_program *b, sm_tensor *t, sm_dimensions dims) {
    bool slots = program_has(b, dims, SM_DIMENSION_SLOTS);
    for (int axis = program_first_tensor(b); axis <= SM_AXIS_TENSOR_Q; axis++) {
        int dim = program_tensor_dim(b, dims, axis);
        if (dim >= 0) shard_dim(t, dim, SM_BIT(axis));
        else if (program_tokens_whole(b) && slots)
            shard_dim(t, b->rules.expert_tensor ? -1 : program_first(b, dims, SM_DIMENSION_EXPERTS),
                      SM_BIT(axis));
        else if (t->role == SM_ROLE_ACTIVATION && b->rules.seq && !program_carries_tensor(b, dims))
            shard_dim(t, program_tokens(b, dims), SM_BIT(axis));
    }
}

/* fsdp takes the model's width of a weight; in one without, the longest dimension that no other
 * axis cuts. */
static int free_side(const sm_program *b, const sm_tensor *t, sm_dimensions dims) {
    int longest = program_first(b, dims, SM_DIMENSION_MODEL);
    if (longest >= 0) return longest;
    for (int i = 0; i < t->rank; i++)
        if (b->dim[t->dim[i]].role == SM_DIMENSION_WHOLE && b->dim[t->dim[i]].size > 1 &&
            (longest < 0 || b->dim[t->dim[i]].size > b->dim[longest].size))
            longest = t->dim[i];
    return longest;
}

static void store_weight(const sm_program *b, sm_tensor *t, sm_dimensions dims) {
    int experts = program_first(b, dims, SM_DIMENSION_EXPERTS);
    shard_dim(t, stationary(b) ? program_first(b, dims, SM_DIMENSION_MODEL) : free_side(b, t, dims),
              sm_weight_shards(&b->rules, experts >= 0));
    shard_dim(t, experts, SM_BIT(SM_AXIS_EXPERT));
    store_tensor_axes(b, t, dims);
}

static unsigned batch_axes(const sm_program *b) {
    return SM_BIT(SM_AXIS_DATA) | (stationary(b) ? 0u : SM_BIT(SM_AXIS_FSDP));
}

static void store_cache(const sm_program *b, sm_tensor *t, sm_dimensions dims) {
    shard_dim(t, program_first(b, dims, SM_DIMENSION_SEQUENCES),
              batch_axes(b) | SM_BIT(SM_AXIS_EXPERT));
    shard_dim(t, program_first(b, dims, SM_DIMENSION_KEYS), SM_BIT(SM_AXIS_CONTEXT));
    unsigned headless = 0;
    for (int axis = program_first_tensor(b); axis <= SM_AXIS_TENSOR_Q; axis++) {
        int dim = program_tensor_dim(b, dims, axis);
        if (dim >= 0) shard_dim(t, dim, SM_BIT(axis));
        else headless |= SM_BIT(axis);
    }
    if (stationary(b)) headless |= SM_BIT(SM_AXIS_FSDP);
    shard_dim(t, program_cache_dim(b, dims), headless);
}

/* Activations: batch axes on sequences, context on positions, tensor on heads, widths and
 * vocabulary (or on positions when nothing else can carry it and the residual stream is sharded),
 * expert on experts in the experts' own arrays. Slots stand for sequences and positions; keys
 * expanded from a cache for positions. */
static void store_activation(const sm_program *b, sm_tensor *t, sm_dimensions dims) {
    int tokens = program_tokens(b, dims), sequences = program_sequences(b, dims);
    bool own = program_experts_own(b, dims);
    shard_dim(t, sequences, batch_axes(b));
    if (tokens >= 0 && (!decodes(b) || (b->of_role[SM_DIMENSION_KEYS] >> tokens & 1u)))
        shard_dim(t, tokens, SM_BIT(SM_AXIS_CONTEXT));
    shard_dim(t, own ? program_first(b, dims, SM_DIMENSION_EXPERTS) : sequences,
              SM_BIT(SM_AXIS_EXPERT));
    if (t->role != SM_ROLE_ACTIVATION) return;
    if (stationary(b)) shard_dim(t, program_stationary_dim(b, dims), SM_BIT(SM_AXIS_FSDP));
    store_tensor_axes(b, t, dims);
}

static void program_store(const sm_program *b, sm_tensor *t) {
    sm_dimensions dims = program_dims(t);
    if (t->role == SM_ROLE_WEIGHT) store_weight(b, t, dims);
    else if (t->role == SM_ROLE_CACHE || t->role == SM_ROLE_STATE) store_cache(b, t, dims);
    else store_activation(b, t, dims);
}

/* ---- a whole program ---- */

sm_axes program_experts_over(const sm_program *b, const sm_tensor *t) {
    unsigned axes = 0;
    for (int i = 0; i < t->rank; i++)
        if (b->dim[t->dim[i]].role == SM_DIMENSION_EXPERTS) axes |= t->at[i];
    return (sm_axes)(axes & SM_AXES_TENSOR);
}

/* The tensor axes over which an op leaves partial sums; partial: those of the arrays so far. */
static sm_axes leaves_partial(const sm_program *b, const sm_op *op, const sm_axes *partial) {
    sm_dimensions out = program_dims(&b->tensor[op->out]), all = out;
    unsigned axes = 0;
    if (op->function == SM_FUNCTION_COMBINE && program_tokens_whole(b)) {
        const sm_tensor *made = &b->tensor[op->in[0]]; /* by experts, on the chips that hold them */
        return (sm_axes)(partial[op->in[0]] | program_experts_over(b, made));
    }
    if (op->kind != SM_OP_EINSUM) return 0;
    for (int i = 0; i < op->inputs; i++) all |= program_dims(&b->tensor[op->in[i]]);
    for (int axis = program_first_tensor(b); axis <= SM_AXIS_TENSOR_Q; axis++) {
        int dim = program_tensor_dim(b, all, axis);
        if (dim >= 0 && !(out >> dim & 1u)) axes |= SM_BIT(axis);
    }
    return (sm_axes)axes;
}

static int readers(const sm_program *b, int tensor) {
    int n = b->output == tensor;
    for (int i = 0; i < b->ops; i++)
        for (int k = 0; k < b->op[i].inputs; k++) n += b->op[i].in[k] == tensor;
    return n;
}

/* What scales it leaves what it scales partial too. */
static void leave_partial(sm_program *b, int tensor, sm_axes axes) {
    sm_tensor *t = &b->tensor[tensor];
    t->unreduced = axes;
    for (int i = 0; i < t->rank; i++) t->at[i] = (sm_axes)(t->at[i] & ~axes);
    const sm_op *maker = t->producer >= 0 ? &b->op[t->producer] : NULL;
    if (maker && maker->scales) leave_partial(b, maker->in[0], axes);
}

/* Partial sums times a factor that is whole on every chip are partial sums of the product. Served:
 * a step of training wants the factor's gradient. */
static sm_axes scaled_partial(const sm_program *b, const sm_op *op, sm_axes first) {
    if (!b->serving || !op->scales || readers(b, op->in[0]) != 1) return 0;
    for (int k = 1; k < op->inputs; k++)
        if (b->tensor[op->in[k]].unreduced || (part_stored_mask(b, op->in[k]) & first)) return 0;
    return first;
}

/* Partial sums that are added are added first and reduced once; what experts make is weighted and
 * added where it falls. */
static void leave_sums_partial(sm_program *b) {
    sm_axes partial[SM_MAX_TENSORS] = {0};
    for (int i = 0; i < b->ops; i++) {
        const sm_op *op = &b->op[i];
        sm_axes first = op->inputs ? partial[op->in[0]] : 0;
        bool adds = op->function == SM_FUNCTION_ADD && first;
        for (int k = 0; k < op->inputs && adds; k++)
            adds = partial[op->in[k]] == first && readers(b, op->in[k]) == 1;
        partial[op->out] = adds         ? first
                           : op->scales ? scaled_partial(b, op, first)
                                        : leaves_partial(b, op, partial);
        for (int k = 0; k < op->inputs && adds; k++) leave_partial(b, op->in[k], first);
        bool weighs = op->function == SM_FUNCTION_COMBINE && program_tokens_whole(b);
        if (weighs && first) leave_partial(b, op->in[0], first);
    }
}

void program_settle(sm_program *b) {
    /* Heads that queries share leave part of the tensor axes to their groups, and both what divides
     * neither to widths. */
    bool groups = b->of_role[SM_DIMENSION_GROUP] != 0;
    for (int d = 0; d < b->dims; d++) {
        sm_dimension_role role = b->dim[d].role;
        unsigned takes = SM_AXES_TENSOR;
        if (role == SM_DIMENSION_HEADS || role == SM_DIMENSION_GROUP)
            takes = SM_BIT(SM_AXIS_TENSOR) | SM_BIT(SM_AXIS_TENSOR_Q);
        if (groups && role == SM_DIMENSION_HEADS) takes = SM_BIT(SM_AXIS_TENSOR);
        b->takes[d] = (sm_axes)takes;
    }
    for (int i = 0; i < b->tensors; i++) program_store(b, &b->tensor[i]);
    /* The loss of a token stays whole where the words of its scores are shared out: each of those
     * chips needs it for the gradient. */
    for (int i = 0; i < b->ops; i++) {
        sm_tensor *t = &b->tensor[b->op[i].out];
        for (int d = 0; d < t->rank && b->op[i].function == SM_FUNCTION_LOSS; d++)
            t->at[d] = (sm_axes)(t->at[d] & ~SM_AXES_TENSOR);
    }
    leave_sums_partial(b);
}

/* Where arrays are stored: which of their dimensions each axis shards. Activations, weights and the
 * cache of keys and values follow from names of dimensions and from the rules alone. */
#include "program_parts.h"

#include <assert.h>

enum { TENSOR_AXES = SM_AXES_TENSOR };

static bool has(uint32_t dims, int dim) { return dims >> dim & 1u; }

static bool decodes(const sm_program *b) { return b->serving && b->rules.decode; }

static bool stationary(const sm_program *b) { return b->serving && b->rules.stationary; }

uint32_t program_dims(const sm_tensor *t) {
    assert(t->rank >= 0 && t->rank <= 6);
    uint32_t set = 0;
    for (int i = 0; i < t->rank; i++) set |= 1u << t->dim[i];
    return set;
}

/* The dimension that carries a tensor axis in an array or an iteration space; -1 when nothing does.
 */
int program_tensor_dim(const sm_program *b, uint32_t dims, int axis) {
    static const int wide[] = {SM_DIM_F, SM_DIM_V};

    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (has(dims, wide[i])) return wide[i];
    /* The dimension of heads a tensor axis shards. K and V are replicated over tensor_q; latent
     * attention has one cache for all heads, so both axes fall on the same heads. */
    if (has(dims, SM_DIM_K)) {
        bool latent = b->serving && b->size[SM_DIM_L] > 0;
        bool absorbed = latent && b->rules.absorbed;
        if (latent && !absorbed) return SM_DIM_K;
        if (axis == SM_AXIS_TENSOR && !absorbed) return SM_DIM_K;
        return has(dims, SM_DIM_G) ? SM_DIM_G : -1;
    }
    if (has(dims, SM_DIM_E) && has(dims, SM_DIM_I))
        return b->rules.expert_tensor ? SM_DIM_I : SM_DIM_E;
    return -1;
}

/* What the chips that hold no heads of their own take of the cache. */
int program_cache_dim(const sm_program *b, uint32_t dims) {
    if (b->rules.cache_by == SM_CACHE_BATCH) return SM_DIM_B;
    if (b->rules.cache_by == SM_CACHE_SEQUENCE && has(dims, SM_DIM_S)) return SM_DIM_S;
    return -1;
}

/* 2D weight-stationary: fsdp splits the width, the hidden width (each matmul contracts over one of
 * the two), and around attention what cache_by says. */
int program_stationary_dim(const sm_program *b, uint32_t dims) {
    static const int split[] = {SM_DIM_D, SM_DIM_F, SM_DIM_I, SM_DIM_V};

    for (size_t i = 0; i < sizeof split / sizeof split[0]; i++)
        if (has(dims, split[i])) return split[i];
    if (!decodes(b) || !(has(dims, SM_DIM_K) || has(dims, SM_DIM_S))) return -1;
    return program_cache_dim(b, dims);
}

static void shard_dim(sm_tensor *t, int dim, unsigned axes) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == dim) t->at[i] = (sm_axes)(t->at[i] | axes);
}

/* Routed tokens of serving are whole on every chip of a tensor group, so that its chips add up one
 * sum for each token and not one for each of its experts; seq shards them in training only. */
static void store_tensor_axes(const sm_program *b, sm_tensor *t, uint32_t dims) {
    bool slots = has(dims, SM_DIM_C);
    for (int axis = SM_AXIS_TENSOR; axis <= SM_AXIS_TENSOR_Q; axis++) {
        int dim = program_tensor_dim(b, dims, axis);
        if (dim >= 0) shard_dim(t, dim, SM_BIT(axis));
        else if (b->serving && slots)
            shard_dim(t, b->rules.expert_tensor ? -1 : SM_DIM_E, SM_BIT(axis));
        else if (t->role == SM_ROLE_ACTIVATION && b->rules.seq && !has(dims, SM_DIM_K))
            shard_dim(t, slots ? SM_DIM_C : SM_DIM_T, SM_BIT(axis));
    }
}

/* Weights put fsdp on their widest free side. */
static void store_weight(const sm_program *b, sm_tensor *t, uint32_t dims) {
    static const int free_side[] = {SM_DIM_D, SM_DIM_Q, SM_DIM_R};
    unsigned shards =
        SM_BIT(SM_AXIS_FSDP) | (b->rules.weights_over_context ? SM_BIT(SM_AXIS_CONTEXT) : 0u);
    if (stationary(b)) shard_dim(t, SM_DIM_D, SM_BIT(SM_AXIS_FSDP));
    for (int i = 0; !stationary(b) && i < 3; i++)
        if (has(dims, free_side[i])) {
            shard_dim(t, free_side[i], shards);
            break;
        }
    if (has(dims, SM_DIM_E) && has(dims, SM_DIM_I)) shard_dim(t, SM_DIM_E, SM_BIT(SM_AXIS_EXPERT));
    store_tensor_axes(b, t, dims);
}

static unsigned batch_axes(const sm_program *b) {
    return SM_BIT(SM_AXIS_DATA) | (stationary(b) ? 0u : SM_BIT(SM_AXIS_FSDP));
}

static void store_cache(const sm_program *b, sm_tensor *t, uint32_t dims) {
    shard_dim(t, SM_DIM_B, batch_axes(b) | SM_BIT(SM_AXIS_EXPERT));
    shard_dim(t, SM_DIM_S, SM_BIT(SM_AXIS_CONTEXT));
    unsigned headless = TENSOR_AXES;
    if (has(dims, SM_DIM_K)) {
        shard_dim(t, SM_DIM_K, SM_BIT(SM_AXIS_TENSOR));
        headless = SM_BIT(SM_AXIS_TENSOR_Q);
    }
    if (stationary(b)) headless |= SM_BIT(SM_AXIS_FSDP);
    shard_dim(t, program_cache_dim(b, dims), headless);
}

/* Activations: batch axes on B, context on T, tensor on heads, widths and vocabulary (or on T when
 * nothing else can carry it and the residual stream is sharded), expert on E of the experts' own
 * arrays. Slots have C for B and T; keys expanded from a cache have S for T. */
static void store_activation(const sm_program *b, sm_tensor *t, uint32_t dims) {
    bool experts_own = has(dims, SM_DIM_E) && has(dims, SM_DIM_I);
    bool slots = has(dims, SM_DIM_C);
    int tokens = slots ? SM_DIM_C : has(dims, SM_DIM_T) ? SM_DIM_T : SM_DIM_S;
    int sequences = slots ? SM_DIM_C : SM_DIM_B;
    shard_dim(t, sequences, batch_axes(b));
    if (!decodes(b) || tokens == SM_DIM_S) shard_dim(t, tokens, SM_BIT(SM_AXIS_CONTEXT));
    shard_dim(t, experts_own ? SM_DIM_E : sequences, SM_BIT(SM_AXIS_EXPERT));
    if (t->role != SM_ROLE_ACTIVATION) return;
    if (stationary(b)) shard_dim(t, program_stationary_dim(b, dims), SM_BIT(SM_AXIS_FSDP));
    store_tensor_axes(b, t, dims);
}

void program_store(const sm_program *b, sm_tensor *t) {
    uint32_t dims = program_dims(t);
    if (t->role == SM_ROLE_WEIGHT) store_weight(b, t, dims);
    else if (t->role == SM_ROLE_CACHE) store_cache(b, t, dims);
    else store_activation(b, t, dims);
}

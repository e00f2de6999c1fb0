/* The partition: each op of the program, forward and backward, goes through the algebra of shard
 * with symbolic sizes; what comes out is local work and collectives. No parallelism is written
 * here: only which dimension an axis splits. */
#include "scalemodel/program.h"

#include <string.h>

#include "program_parts.h"

enum { NOMINAL = 1 << 12, MAX_PARTS = 8 };

const sm_mesh *sm_program_mesh(void) {
    static const sm_mesh mesh = {SM_AXIS_COUNT,
                                 {
#define X(id, name, letter) {name, 2, 0, {0}, {0, 0}},
                                     SM_PROGRAM_AXES(X)
#undef X
                                 }};
    return &mesh;
}

/* A gradient on its way back to one tensor: partial sums that later contributions may still join.
 */
typedef struct share {
    sm_axes at[6];
    sm_axes unreduced;
} share;
typedef struct shares {
    int n;
    share part[MAX_PARTS];
} shares;
typedef struct moved {
    int tensor;
    sm_axes from, axes;
    sm_phase phase;
    bool gradient;
} moved;

typedef struct job {
    sm_partition *out;
    const sm_program *b;
    sm_error *err;
    shares gradient[SM_MAX_TENSORS];
    int moves;
    moved done[SM_MAX_COMM]; /* gathers already made in a phase are shared */
} job;

/* ---- the dimension each axis splits in an op's iteration space ---- */

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

static void assign_tensor(const sm_program *b, const sm_op *op, uint32_t dims, int tokens,
                          int *at) {
    for (int axis = SM_AXIS_TENSOR; axis <= SM_AXIS_TENSOR_Q; axis++) {
        at[axis] = op->kind == SM_OP_ATTENTION ? attention_dim(b, dims, axis)
                                               : program_tensor_dim(b, dims, axis);
        bool heads = dims >> SM_DIM_K & 1u;
        if (at[axis] < 0 && b->rules.seq && !heads) at[axis] = tokens;
    }
}

/* Where the output is stored, there it is made. */
static void assign_home(const sm_tensor *out, int *at) {
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        at[a] = -1;
        for (int d = 0; d < out->rank; d++)
            if (out->at[d] & SM_BIT(a)) at[a] = out->dim[d];
    }
}

static bool appends(const sm_program *b, const sm_op *op) {
    return b->tensor[op->out].role == SM_ROLE_CACHE;
}

static void assign(const sm_program *b, const sm_op *op, int *at) {
    if (appends(b, op)) {
        assign_home(&b->tensor[op->out], at);
        return;
    }
    uint32_t dims = dims_of(b, op);
    bool slots = dims >> SM_DIM_C & 1u, experts = slots && (dims >> SM_DIM_I & 1u);
    int tokens = slots ? SM_DIM_C : dims >> SM_DIM_T & 1u ? SM_DIM_T : SM_DIM_S;
    at[SM_AXIS_DATA] = at[SM_AXIS_FSDP] = slots ? SM_DIM_C : SM_DIM_B;
    if (b->serving && b->rules.stationary) at[SM_AXIS_FSDP] = program_stationary_dim(b, dims);
    at[SM_AXIS_EXPERT] = experts ? SM_DIM_E : slots ? SM_DIM_C : SM_DIM_B;
    at[SM_AXIS_CONTEXT] = context_dim(b, op, dims, tokens);
    assign_tensor(b, op, dims, tokens, at);
}

static sm_axes axes_on(const int *at, int dim) {
    sm_axes axes = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] == dim) axes = (sm_axes)(axes | SM_BIT(a));
    return axes;
}

/* ---- einsums over the nominal mesh ---- */

typedef struct term {
    int tensor;
    bool keys;
    sm_axes at[6];
    sm_axes unreduced;
} term; /* keys: T read as S */

static term stored(const sm_program *b, int tensor, bool keys) {
    term t = {tensor, keys, {0}, 0};
    memcpy(t.at, b->tensor[tensor].at, sizeof t.at);
    return t;
}

static int index_of(sm_einsum *e, int dim) {
    static const char *const names[] = {
#define X(id, name, help) name,
        SM_DIMENSIONS(X)
#undef X
    };
    for (int i = 0; i < e->indices; i++)
        if (strcmp(e->index[i].name, names[dim]) == 0) return i;
    sm_index *index = &e->index[e->indices];
    *index = (sm_index){.size = NOMINAL};
    memcpy(index->name, names[dim], strlen(names[dim]) + 1);
    return e->indices++;
}

/* Axes that move between dimensions are the minor ones, so that no block has to change chips first.
 */
static const uint8_t major_first[SM_AXIS_COUNT] = {
    SM_AXIS_DATA, SM_AXIS_FSDP, SM_AXIS_CONTEXT, SM_AXIS_EXPERT, SM_AXIS_TENSOR, SM_AXIS_TENSOR_Q};

/* Serving: fsdp splits a hidden width that tensor has split already, and experts are dealt out
 * over tensor first, so that the axis which moves is the minor one there too. */
static const uint8_t *axis_order(const sm_program *b, int dim) {
    static const uint8_t fsdp_last[SM_AXIS_COUNT] = {SM_AXIS_DATA,     SM_AXIS_CONTEXT,
                                                     SM_AXIS_EXPERT,   SM_AXIS_TENSOR,
                                                     SM_AXIS_TENSOR_Q, SM_AXIS_FSDP};
    static const uint8_t expert_last[SM_AXIS_COUNT] = {SM_AXIS_DATA,     SM_AXIS_FSDP,
                                                       SM_AXIS_CONTEXT,  SM_AXIS_TENSOR,
                                                       SM_AXIS_TENSOR_Q, SM_AXIS_EXPERT};
    if (!b->serving) return major_first;
    if (dim == SM_DIM_E) return expert_last;
    return dim == SM_DIM_F || dim == SM_DIM_I || dim == SM_DIM_V ? fsdp_last : major_first;
}

static void fill_array(sm_einsum *e, sm_array *array, const sm_program *b, const term *t) {
    const sm_tensor *tensor = &b->tensor[t->tensor];
    array->rank = tensor->rank;
    array->unreduced = t->unreduced;
    for (int d = 0; d < tensor->rank; d++) {
        int dim = t->keys && tensor->dim[d] == SM_DIM_T ? SM_DIM_S : tensor->dim[d];
        sm_dim *to = &array->dim[d];
        const uint8_t *order = axis_order(b, dim);
        to->index = index_of(e, dim);
        for (int i = 0; i < SM_AXIS_COUNT; i++)
            if (t->at[d] & SM_BIT(order[i])) to->axis[to->n_axes++] = order[i];
    }
}

static void make_einsum(const sm_program *b, int n, const term *in, const term *out, sm_einsum *e) {
    memset(e, 0, sizeof *e);
    e->operands = n;
    for (int i = 0; i < n; i++) fill_array(e, &e->in[i], b, &in[i]);
    fill_array(e, &e->out, b, out);
    e->has_output = e->out_sharding_given = true;
}

static void to_indices(sm_einsum *e, const int *dims, int8_t *at) {
    for (int a = 0; a < SM_MAX_AXES; a++) at[a] = SM_REPLICATED;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (dims[a] < 0) continue;
        int before = e->indices, index = index_of(e, dims[a]);
        if (e->indices > before) e->indices = before; /* the op does not have that dimension */
        else at[a] = (int8_t)index;
    }
}

/* ---- emitting ---- */

/* What a size grows with. Training has queries and keys in its sizes. */
static void grow(const sm_program *b, sm_size *s, uint32_t dims) {
    enum { SEQUENCES = 1 << SM_DIM_B | 1 << SM_DIM_C, QUERIES = 1 << SM_DIM_T | 1 << SM_DIM_C };
    s->per_sequence = dims & SEQUENCES;
    s->per_query = b->serving && dims & QUERIES;
    s->per_key = b->serving && dims >> SM_DIM_S & 1u;
}

static sm_size size_of(const sm_program *b, int tensor, sm_axes mask, double bytes_per_element) {
    const sm_tensor *t = &b->tensor[tensor];
    sm_size s = {.base = t->elements * bytes_per_element, .mask = mask};
    grow(b, &s, program_dims(t));
    return s;
}

static sm_axes mask_of(const sm_axes *at, int rank) {
    sm_axes mask = 0;
    for (int d = 0; d < rank; d++) mask = (sm_axes)(mask | at[d]);
    return mask;
}

static sm_axes stored_mask(const sm_program *b, int tensor) {
    return mask_of(b->tensor[tensor].at, b->tensor[tensor].rank);
}

static bool already(job *j, moved move) {
    for (int i = 0; i < j->moves; i++) {
        const moved *m = &j->done[i];
        if (m->tensor == move.tensor && m->from == move.from && m->axes == move.axes &&
            m->phase == move.phase && m->gradient == move.gradient)
            return true;
    }
    if (j->moves < SM_MAX_COMM) j->done[j->moves++] = move;
    return false;
}

/* Weights of one piece that move alike travel together, as every framework buckets them. */
static bool bucketed(sm_partition *p, const sm_comm *c) {
    if (c->stream != SM_STREAM_PREFETCH && c->stream != SM_STREAM_DRAIN) return false;
    for (int i = 0; i < p->comms && i < SM_MAX_COMM; i++) {
        sm_comm *to = &p->comm[i];
        if (to->op != c->op || to->axes != c->axes || to->phase != c->phase ||
            to->stream != c->stream || to->gradient != c->gradient ||
            to->bytes.mask != c->bytes.mask || to->bytes.per_sequence || c->bytes.per_sequence)
            continue;
        to->bytes.base += c->bytes.base;
        to->array = "weights";
        return true;
    }
    return false;
}

static sm_stream stream_of(const job *j, const sm_tensor *t, bool gradient, sm_axes axes,
                           sm_phase phase) {
    if (t->role == SM_ROLE_WEIGHT) return gradient ? SM_STREAM_DRAIN : SM_STREAM_PREFETCH;
    /* only keys, values and their gradients travel over context alone */
    bool decodes = j->b->serving && j->b->rules.decode;
    if (axes == SM_BIT(SM_AXIS_CONTEXT) && j->b->rules.context_by == SM_CONTEXT_RING && !decodes)
        return SM_STREAM_RING;
    if (phase == SM_PHASE_BACKWARD_WEIGHT && !gradient) return SM_STREAM_PREFETCH;
    return SM_STREAM_BLOCKING;
}

/* Partial softmaxes are joined by their maximum and their sum, two fp32 for each head and query. */
static double joined_bytes(const job *j, const sm_op *op, int tensor, const sm_step *step) {
    enum { STATISTICS_BYTES = 8 };
    const sm_tensor *t = &j->b->tensor[tensor];
    bool reduced = step->op == SM_ALL_REDUCE || step->op == SM_REDUCE_SCATTER;
    if (!j->b->serving || op->kind != SM_OP_ATTENTION || tensor != op->out || !reduced) return 0;
    return t->elements / j->b->size[t->dim[t->rank - 1]] * STATISTICS_BYTES;
}

static void emit(job *j, const sm_op *op, int tensor, bool gradient, const sm_step *step,
                 sm_axes before, sm_phase phase) {
    sm_partition *p = j->out;
    const sm_tensor *t = &j->b->tensor[tensor];
    bool weight_gradient = gradient && t->role == SM_ROLE_WEIGHT;
    sm_comm c = {.array = t->name,
                 .op = step->op,
                 .phase = phase,
                 .axes = step->axes,
                 .stream = stream_of(j, t, gradient, step->axes, phase),
                 .gradient = weight_gradient,
                 .forward_op = (int)(op - j->b->op),
                 .role = (uint8_t)t->role};
    c.bytes = size_of(j->b, tensor, (sm_axes)(before & ~step->axes),
                      weight_gradient ? 1 : t->bytes_per_element);
    c.bytes.base += joined_bytes(j, op, tensor, step);
    c.past = t->role == SM_ROLE_CACHE && !(step->axes & SM_BIT(SM_AXIS_CONTEXT));
    c.ragged = step->op == SM_ALL_TO_ALL && t->per_sequence && t->dim[0] == SM_DIM_E;
    c.narrow = phase == SM_PHASE_FORWARD && op->kind == SM_OP_EINSUM && tensor != op->out &&
               t->role == SM_ROLE_ACTIVATION;
    if (bucketed(p, &c)) return;
    if (p->comms < SM_MAX_COMM) p->comm[p->comms] = c;
    p->comms++;
}

/* Walk the steps of a lowering and emit the collectives of one array; mask: what shards it before.
 */
static void emit_array(job *j, const sm_op *op, int array, int tensor, bool gradient, sm_axes mask,
                       const sm_lowering *low, sm_phase phase) {
    for (int i = 0; i < low->steps; i++) {
        const sm_step *s = &low->step[i];
        if (s->array != array || s->kind == SM_STEP_EINSUM) continue;
        sm_axes before = mask;
        if (s->kind == SM_STEP_SLICE || s->op == SM_REDUCE_SCATTER)
            mask = (sm_axes)(mask | s->axes);
        else if (s->op == SM_ALL_GATHER) mask = (sm_axes)(mask & ~s->axes);
        if (s->kind == SM_STEP_SLICE || s->op == SM_PERMUTE) continue;
        /* what arrived by all-to-all is kept as it arrived: it is no larger */
        if (phase == SM_PHASE_BACKWARD_WEIGHT && !gradient && s->op == SM_ALL_TO_ALL) continue;
        moved move = {tensor, before, s->axes,
                      phase == SM_PHASE_FORWARD ? phase : SM_PHASE_BACKWARD_INPUT, gradient};
        if (array >= 0 && already(j, move)) continue;
        emit(j, op, tensor, gradient, s, before, phase);
    }
}

/* ---- local work ---- */

static sm_size product(const sm_program *b, uint32_t dims, const int *at) {
    sm_size s = {.base = 1};
    for (int d = 0; d < SM_DIM_COUNT; d++) {
        if (!(dims >> d & 1u)) continue;
        s.base *= b->size[d];
        s.mask = (sm_axes)(s.mask | axes_on(at, d));
    }
    grow(b, &s, dims);
    return s;
}

static uint32_t tensor_dims(const sm_program *b, const term *t) {
    uint32_t set = 0;
    const sm_tensor *tensor = &b->tensor[t->tensor];
    for (int d = 0; d < tensor->rank; d++)
        set |= 1u << (t->keys && tensor->dim[d] == SM_DIM_T ? SM_DIM_S : tensor->dim[d]);
    return set;
}

static sm_size traffic(const sm_program *b, const term *t, const int *at) {
    sm_size s = product(b, tensor_dims(b, t), at);
    s.base = b->tensor[t->tensor].elements * b->tensor[t->tensor].bytes_per_element;
    return s;
}

static sm_work *new_work(job *j, const sm_op *op, sm_op_kind kind, sm_phase phase) {
    sm_partition *p = j->out;
    int at = p->works < SM_MAX_WORK ? p->works++ : SM_MAX_WORK - 1;
    sm_work *w = &p->work[at];
    *w = (sm_work){.name = op->name, .kind = kind, .phase = phase, .op = (int)(op - j->b->op)};
    return w;
}

static void add_bytes(sm_work *w, sm_size bytes, sm_role role) {
    if (w->terms == 6) return;
    w->role[w->terms] = (uint8_t)role;
    w->bytes[w->terms++] = bytes;
}

static void einsum_work(job *j, const sm_op *op, const term *in, const term *out, const int *at,
                        sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_EINSUM, phase);
    uint32_t a = tensor_dims(j->b, &in[0]), b = tensor_dims(j->b, &in[1]);
    uint32_t c = tensor_dims(j->b, out);
    w->batch = product(j->b, a & b & c, at);
    w->m = product(j->b, a & ~b & c, at);
    w->n = product(j->b, b & ~a & c, at);
    w->k = product(j->b, a & b & ~c, at);
    w->flops = product(j->b, a | b | c, at);
    w->flops.base *= 2;
    w->linear = true;
    const sm_tensor *tensor = j->b->tensor;
    for (int i = 0; i < 2; i++) add_bytes(w, traffic(j->b, &in[i], at), tensor[in[i].tensor].role);
    add_bytes(w, traffic(j->b, out, at), tensor[out->tensor].role);
    w->experts =
        tensor[in[1].tensor].role == SM_ROLE_WEIGHT && tensor[in[1].tensor].dim[0] == SM_DIM_E;
}

/* ---- lowering ---- */

static bool lower(job *j, int n, const term *in, const term *out, const int *at, bool keep,
                  sm_lowering *low) {
    sm_einsum e;
    int8_t index[SM_MAX_AXES];
    make_einsum(j->b, n, in, out, &e);
    to_indices(&e, at, index);
    sm_status s =
        sm_einsum_lower(&e, sm_program_mesh(), index, keep ? NULL : &e.out, keep, low, j->err);
    if (s && j->err) j->err->status = SM_INTERNAL; /* our own program is never the user's fault */
    return s == SM_OK;
}

/* Dispatch and combine pass between positions [B,T] and slots [E,C] on the same chip. */
static bool crosses(const sm_program *b, const sm_op *op) {
    uint32_t dims = dims_of(b, op);
    return (dims >> SM_DIM_C & 1u) && (dims >> SM_DIM_T & 1u);
}

static sm_axes out_mask(const sm_program *b, const term *out, const int *at) {
    uint32_t dims = tensor_dims(b, out);
    sm_axes mask = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] >= 0 && dims >> at[a] & 1u) mask = (sm_axes)(mask | SM_BIT(a));
    return mask;
}

/* ---- forward ---- */

static double last_size(const sm_program *b, int tensor) {
    const sm_tensor *t = &b->tensor[tensor];
    return b->size[t->dim[t->rank - 1]];
}

static void attention_work(job *j, const sm_op *op, const int *at, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_ATTENTION, phase);
    uint32_t rows = 1u << SM_DIM_B | 1u << SM_DIM_T | 1u << SM_DIM_K | 1u << SM_DIM_G;
    /* forward: QK and PV; backward: dV, dP, dS->dQ, dS->dK and QK once more */
    double matmuls = phase == SM_PHASE_FORWARD ? 1 : 2.5;
    double query_size = last_size(j->b, op->in[0]), value_size = last_size(j->b, op->out);
    w->flops = product(j->b, rows, at);
    w->flops.base *= 2 * op->keys * (query_size + value_size) * matmuls;
    w->m = product(j->b, 1u << SM_DIM_T, at);
    w->k = (sm_size){.base = query_size};
    w->n = (sm_size){.base = op->keys};
    w->batch = product(j->b, rows & ~(1u << SM_DIM_T), at);
    w->kv_heads = product(j->b, 1u << SM_DIM_K, at);
    if (j->b->serving) { /* keys are a size like the others there, and may be shared out */
        sm_axes split = axes_on(at, SM_DIM_S);
        w->n.mask = split;
        w->flops.mask = (sm_axes)(w->flops.mask | split);
        w->n.per_key = w->flops.per_key = true;
    }
    for (int i = 0; i <= op->inputs; i++) {
        term t = stored(j->b, i < op->inputs ? op->in[i] : op->out, i > 0 && i < op->inputs);
        sm_size bytes = traffic(j->b, &t, at);
        if (phase != SM_PHASE_FORWARD) bytes.base *= 2; /* the array and its gradient */
        add_bytes(w, bytes, j->b->tensor[t.tensor].role);
    }
}

static sm_size stored_size(const sm_program *b, int tensor, double bytes_per_element) {
    return size_of(b, tensor, stored_mask(b, tensor), bytes_per_element);
}

/* What a vector op reads; *left: of the output's elements, those that are not in place already. */
static void vector_reads(job *j, const sm_op *op, sm_work *w, double *left) {
    double passes = w->phase == SM_PHASE_FORWARD ? 0 : 1;
    for (int i = 0; i < op->inputs; i++) {
        const sm_tensor *t = &j->b->tensor[op->in[i]];
        if (t->role != SM_ROLE_ACTIVATION && t->role != SM_ROLE_CACHE) continue;
        if (op->in_place >> i & 1) {
            *left -= t->elements;
            continue;
        }
        double reads = 1 + passes * (op->reads >> i & 1);
        add_bytes(w, stored_size(j->b, op->in[i], t->bytes_per_element * reads), t->role);
    }
}

static void vector_work(job *j, const sm_op *op, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_VECTOR, phase);
    const sm_tensor *out = &j->b->tensor[op->out];
    double passes = phase == SM_PHASE_FORWARD ? 1 : 2, left = out->elements;
    w->flops = stored_size(j->b, op->out, op->flops_per_element * passes);
    vector_reads(j, op, w, &left);
    double over = op->passes[phase != SM_PHASE_FORWARD];
    if (over <= 0) over = left / out->elements;
    add_bytes(w, stored_size(j->b, op->out, out->bytes_per_element * over), out->role);
    if (op->kind == SM_OP_GATHER) /* rows read and written */
        add_bytes(w, stored_size(j->b, op->out, out->bytes_per_element), SM_ROLE_WEIGHT);
}

/* Only the new tokens are written; the one of a decode step on whichever chip holds the end of its
 * sequence. */
static void append_work(job *j, const sm_op *op, const int *at) {
    sm_work *w = new_work(j, op, SM_OP_VECTOR, SM_PHASE_FORWARD);
    const sm_tensor *out = &j->b->tensor[op->out];
    for (int i = 0; i < op->inputs; i++) {
        sm_size s = product(j->b, program_dims(&j->b->tensor[op->in[i]]), at);
        if (!j->b->rules.decode) s.mask = (sm_axes)(s.mask | axes_on(at, SM_DIM_S));
        s.base *= j->b->tensor[op->in[i]].bytes_per_element;
        add_bytes(w, s, SM_ROLE_ACTIVATION);
        s.base *= out->bytes_per_element / j->b->tensor[op->in[i]].bytes_per_element;
        add_bytes(w, s, SM_ROLE_CACHE);
        double flops = w->flops.base + s.base / out->bytes_per_element * op->flops_per_element;
        w->flops = s;
        w->flops.base = flops;
    }
}

/* ---- routed tokens in serving: dispatch and combine ---- */

/* Moves one array, as it stands, to where it is wanted. */
static bool settle(job *j, const sm_op *op, term from, term to, int array) {
    int at[SM_AXIS_COUNT];
    sm_lowering low;
    sm_tensor wanted = j->b->tensor[to.tensor];
    memcpy(wanted.at, to.at, sizeof wanted.at);
    assign_home(&wanted, at);
    if (!lower(j, 1, &from, &to, at, false, &low)) return false;
    /* its only operand is array 0 of the lowering */
    sm_axes mask = mask_of(from.at, wanted.rank);
    for (int i = 0; i < low.steps; i++)
        if (low.step[i].kind == SM_STEP_COLLECTIVE) low.step[i].array = array;
    emit_array(j, op, array, from.tensor, false, mask, &low, SM_PHASE_FORWARD);
    return true;
}

static void drop_axes(term *t, unsigned axes) {
    for (int d = 0; d < 6; d++) t->at[d] = (sm_axes)(t->at[d] & ~axes);
}

/* Every chip of a tensor group takes from all the group's tokens those of its experts; what its
 * experts make of them is a part of each token's sum. */
static bool forward_crossing(job *j, const sm_op *op) {
    bool combines = j->b->tensor[op->out].dim[0] != SM_DIM_E;
    term out = stored(j->b, op->out, false);
    if (combines) {
        term part = out;
        drop_axes(&part, SM_AXES_TENSOR);
        part.unreduced = SM_AXES_TENSOR;
        return settle(j, op, part, out, -1);
    }
    for (int i = 0; i < op->inputs; i++) {
        term from = stored(j->b, op->in[i], false), to = from;
        drop_axes(&to, SM_AXES_TENSOR);
        if (!settle(j, op, from, to, i)) return false;
    }
    return true;
}

static bool forward_comms(job *j, const sm_op *op, const term *in, const term *out, const int *at) {
    sm_lowering low;
    if (crosses(j->b, op)) return !j->b->serving || forward_crossing(j, op);
    if (!lower(j, op->inputs, in, out, at, false, &low)) return false;
    for (int i = 0; i < op->inputs; i++)
        if (j->b->tensor[op->in[i]].role != SM_ROLE_IDS)
            emit_array(j, op, i, op->in[i], false, stored_mask(j->b, op->in[i]), &low,
                       SM_PHASE_FORWARD);
    emit_array(j, op, -1, op->out, false, out_mask(j->b, out, at), &low, SM_PHASE_FORWARD);
    return true;
}

static bool forward_op(job *j, const sm_op *op) {
    int at[SM_AXIS_COUNT];
    term in[4] = {{0}}, out = stored(j->b, op->out, false);
    bool append = appends(j->b, op);
    assign(j->b, op, at);
    if (j->b->serving && op->kind == SM_OP_EINSUM && j->b->tensor[op->out].dim[0] == SM_DIM_E)
        out.unreduced = axes_on(at, SM_DIM_I) & SM_AXES_TENSOR & ~stored_mask(j->b, op->out);
    for (int i = 0; i < op->inputs; i++)
        in[i] = stored(j->b, op->in[i], append || (op->kind == SM_OP_ATTENTION && i > 0));
    if (!forward_comms(j, op, in, &out, at)) return false;
    if (op->kind == SM_OP_EINSUM) einsum_work(j, op, in, &out, at, SM_PHASE_FORWARD);
    else if (op->kind == SM_OP_ATTENTION) attention_work(j, op, at, SM_PHASE_FORWARD);
    else if (append) append_work(j, op, at);
    else vector_work(j, op, SM_PHASE_FORWARD);
    return true;
}

/* ---- backward: dA = dC B, dB = A dC, derived from the forward op ---- */

static void add_share(job *j, int tensor, const sm_axes *at, sm_axes unreduced) {
    shares *s = &j->gradient[tensor];
    int rank = j->b->tensor[tensor].rank;
    for (int i = 0; i < s->n; i++) /* equal partial sums are added before they are reduced */
        if (s->part[i].unreduced == unreduced &&
            memcmp(s->part[i].at, at, (size_t)rank * sizeof *at) == 0)
            return;
    if (s->n == MAX_PARTS) return;
    memcpy(s->part[s->n].at, at, (size_t)rank * sizeof *at);
    s->part[s->n++].unreduced = unreduced;
}

static void lowered_at(const sm_lowering *low, sm_axes *at) {
    memset(at, 0, 6 * sizeof *at);
    for (int d = 0; d < low->out.rank; d++)
        for (int i = 0; i < low->out.dim[d].n_axes; i++)
            at[d] = (sm_axes)(at[d] | SM_BIT(low->out.dim[d].axis[i]));
}

/* Move a gradient from where it fell to where its tensor is stored; only: reduce just these axes.
 */
static bool move_home(job *j, const sm_op *op, int tensor, const share *from, sm_axes only,
                      sm_phase phase) {
    const sm_tensor *t = &j->b->tensor[tensor];
    int at[SM_AXIS_COUNT];
    sm_lowering low;
    term in = {tensor, false, {0}, (sm_axes)(from->unreduced & only)};
    term out = stored(j->b, tensor, false);
    memcpy(in.at, from->at, sizeof in.at);
    assign_home(t, at);
    if (!lower(j, 1, &in, &out, at, false, &low)) return false;
    emit_array(j, op, 0, tensor, true, mask_of(from->at, t->rank), &low, phase);
    return true;
}

static void record_weight(job *j, int tensor, sm_axes partial) {
    sm_partition *p = j->out;
    const sm_tensor *t = &j->b->tensor[tensor];
    sm_weight_class c = {t->elements, stored_mask(j->b, tensor), partial, t->dim[0] == SM_DIM_E};
    for (int i = 0; i < p->classes; i++)
        if (p->weight[i].stored == c.stored && p->weight[i].partial == c.partial &&
            p->weight[i].expert == c.expert) {
            p->weight[i].elements += c.elements;
            return;
        }
    if (p->classes < SM_MAX_WEIGHT_CLASSES) p->weight[p->classes++] = c;
}

static sm_axes weight_shards(const sm_program *b) {
    return (sm_axes)(SM_BIT(SM_AXIS_FSDP) |
                     (b->rules.weights_over_context ? SM_BIT(SM_AXIS_CONTEXT) : 0));
}

/* The gradient of a weight: fsdp reduces every microbatch onto the shards; what else is partial
 * waits for the step's end. */
static bool weight_gradient(job *j, const sm_op *op, int n, const term *in, int tensor,
                            const int *at) {
    sm_lowering low;
    share from = {{0}, 0};
    term out = stored(j->b, tensor, false);
    memset(out.at, 0, sizeof out.at);
    if (!lower(j, n, in, &out, at, true, &low)) return false;
    for (int i = 0; i < n; i++)
        emit_array(j, op, i, in[i].tensor, in[i].tensor == op->out, stored_mask(j->b, in[i].tensor),
                   &low, SM_PHASE_BACKWARD_WEIGHT);
    lowered_at(&low, from.at);
    from.unreduced = low.out.unreduced;
    record_weight(j, tensor, (sm_axes)(from.unreduced & ~weight_shards(j->b)));
    return move_home(j, op, tensor, &from, weight_shards(j->b), SM_PHASE_BACKWARD_WEIGHT);
}

static bool input_gradient(job *j, const sm_op *op, int n, const term *in, int operands_emitted,
                           const term *out, const int *at) {
    sm_lowering low;
    sm_axes home[6];
    if (!lower(j, n, in, out, at, true, &low)) return false;
    for (int i = 0; i < operands_emitted; i++)
        emit_array(j, op, i, in[i].tensor, in[i].tensor == op->out, stored_mask(j->b, in[i].tensor),
                   &low, SM_PHASE_BACKWARD_INPUT);
    lowered_at(&low, home);
    add_share(j, out->tensor, home, low.out.unreduced);
    return true;
}

static term bare(const sm_program *b, int tensor, bool keys) {
    term t = stored(b, tensor, keys);
    memset(t.at, 0, sizeof t.at);
    return t;
}

static bool backward_einsum(job *j, const sm_op *op, const int *at) {
    term dc = stored(j->b, op->out, false), x = stored(j->b, op->in[0], false);
    term w = stored(j->b, op->in[1], false);
    if (j->b->tensor[op->in[0]].role == SM_ROLE_ACTIVATION) {
        term pair[2] = {dc, w}, dx = bare(j->b, op->in[0], false);
        if (!input_gradient(j, op, 2, pair, 2, &dx, at)) return false;
        einsum_work(j, op, pair, &dx, at, SM_PHASE_BACKWARD_INPUT);
    }
    term pair[2] = {x, dc}, dw = bare(j->b, op->in[1], false);
    if (!weight_gradient(j, op, 2, pair, op->in[1], at)) return false;
    if (op->kind == SM_OP_EINSUM) einsum_work(j, op, pair, &dw, at, SM_PHASE_BACKWARD_WEIGHT);
    else vector_work(j, op, SM_PHASE_BACKWARD_WEIGHT);
    return true;
}

static bool backward_attention(job *j, const sm_op *op, const int *at) {
    term in[4] = {{0}};
    for (int i = 0; i < 3; i++) in[i] = stored(j->b, op->in[i], i > 0);
    in[3] = stored(j->b, op->out, false);
    for (int i = 0; i < 3; i++) {
        term out = bare(j->b, op->in[i], i > 0);
        if (!input_gradient(j, op, 4, in, 4, &out, at)) return false;
    }
    attention_work(j, op, at, SM_PHASE_BACKWARD_INPUT);
    return true;
}

static bool backward_vector(job *j, const sm_op *op, const int *at) {
    bool local = crosses(j->b, op);
    for (int i = 0; i < op->inputs; i++) {
        const sm_tensor *t = &j->b->tensor[op->in[i]];
        term pair[2] = {stored(j->b, op->out, false), stored(j->b, op->in[i], false)};
        if (t->role == SM_ROLE_WEIGHT) {
            if (!weight_gradient(j, op, 1, pair, op->in[i], at)) return false;
        } else if (local) {
            add_share(j, op->in[i], t->at, 0);
        } else {
            term out = bare(j->b, op->in[i], false);
            if (!input_gradient(j, op, 2, pair, 1, &out, at)) return false;
        }
    }
    vector_work(j, op, SM_PHASE_BACKWARD_INPUT);
    return true;
}

/* A sum that is whole over an axis joins one that is partial there: all but one chip of the axis
 * count it as zero. */
static bool joins(const job *j, int tensor, const share *a, const share *b) {
    int rank = j->b->tensor[tensor].rank;
    return (a->unreduced & ~b->unreduced) == 0 && a->unreduced != b->unreduced &&
           memcmp(a->at, b->at, (size_t)rank * sizeof *a->at) == 0;
}

static void join_shares(const job *j, int tensor, shares *s) {
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n; k++)
            if (joins(j, tensor, &s->part[i], &s->part[k])) {
                s->part[i--] = s->part[--s->n];
                break;
            }
}

static bool flush(job *j, const sm_op *op, int tensor) {
    shares *s = &j->gradient[tensor];
    join_shares(j, tensor, s);
    for (int i = 0; i < s->n; i++)
        if (!move_home(j, op, tensor, &s->part[i], 0xffff, SM_PHASE_BACKWARD_INPUT)) return false;
    return true;
}

static bool backward_op(job *j, const sm_op *op) {
    int at[SM_AXIS_COUNT];
    assign(j->b, op, at);
    if (!flush(j, op, op->out)) return false;
    switch (op->kind) {
    case SM_OP_ATTENTION: return backward_attention(j, op, at);
    case SM_OP_VECTOR: return backward_vector(j, op, at);
    default: return backward_einsum(j, op, at);
    }
}

static uint64_t tensors_read(const sm_program *b) {
    uint64_t read = 0;
    for (int i = 0; i < b->ops; i++) {
        const sm_op *op = &b->op[i];
        for (int k = 0; k < op->inputs; k++)
            if ((op->reads >> k & 1) && b->tensor[op->in[k]].role == SM_ROLE_ACTIVATION)
                read |= 1ull << op->in[k];
        if (op->reads_output) read |= 1ull << op->out;
    }
    return read;
}

static sm_status finish(const job *j, sm_error *err) {
    sm_partition *out = j->out;
    const sm_program *program = j->b;
    if (out->comms > SM_MAX_COMM || out->works > SM_MAX_WORK)
        return sm_fail(err, SM_INTERNAL, "a layer of this model makes more than %d collectives",
                       SM_MAX_COMM);
    out->ops_gather = program->op[0].kind == SM_OP_GATHER;
    int edge = program->output >= 0 ? program->output : program->input;
    out->boundary = stored_size(program, edge, program->tensor[edge].bytes_per_element);
    return SM_OK;
}

static job start(const sm_program *program, sm_partition *out, sm_error *err) {
    memset(out, 0, sizeof *out);
    out->program = *program;
    return (job){.out = out, .b = &out->program, .err = err};
}

static bool forward(job *j) {
    for (int i = 0; i < j->b->ops; i++)
        if (!forward_op(j, &j->b->op[i])) return false;
    return true;
}

static sm_status failed(const sm_error *err) {
    return err && err->status ? err->status : SM_INTERNAL;
}

sm_status sm_program_partition(const sm_program *program, sm_partition *out, sm_error *err) {
    job j = start(program, out, err);
    bool ok = forward(&j);
    for (int i = program->ops - 1; ok && i >= 0; i--) ok = backward_op(&j, &j.b->op[i]);
    if (ok && program->input >= 0 && program->ops) ok = flush(&j, &j.b->op[0], program->input);
    if (!ok) return failed(err);
    out->needed = tensors_read(j.b);
    return finish(&j, err);
}

sm_status sm_program_partition_forward(const sm_program *program, sm_partition *out,
                                       sm_error *err) {
    job j = start(program, out, err);
    if (!forward(&j)) return failed(err);
    for (int i = 0; i < program->tensors; i++) {
        const sm_tensor *t = &program->tensor[i];
        if (t->role == SM_ROLE_WEIGHT) record_weight(&j, i, 0);
        if (t->role != SM_ROLE_CACHE || t->producer < 0) continue;
        double held = out->cache.base;
        out->cache = stored_size(j.b, i, t->bytes_per_element);
        out->cache.base += held;
    }
    return finish(&j, err);
}

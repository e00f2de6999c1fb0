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

static void assign(const sm_program *b, const sm_op *op, int *at) {
    uint32_t dims = dims_of(b, op);
    bool slots = dims >> SM_DIM_C & 1u, experts = slots && (dims >> SM_DIM_I & 1u);
    int tokens = slots ? SM_DIM_C : SM_DIM_T;
    at[SM_AXIS_DATA] = at[SM_AXIS_FSDP] = slots ? SM_DIM_C : SM_DIM_B;
    at[SM_AXIS_EXPERT] = experts ? SM_DIM_E : slots ? SM_DIM_C : SM_DIM_B;
    at[SM_AXIS_CONTEXT] = tokens;
    if (op->kind == SM_OP_ATTENTION && b->rules.context_by == SM_CONTEXT_HEADS)
        at[SM_AXIS_CONTEXT] = SM_DIM_K;
    for (int axis = SM_AXIS_TENSOR; axis <= SM_AXIS_TENSOR_Q; axis++) {
        at[axis] = program_tensor_dim(&b->rules, dims, axis);
        bool heads = dims >> SM_DIM_K & 1u;
        if (at[axis] < 0 && b->rules.seq && !heads) at[axis] = tokens;
    }
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

static void fill_array(sm_einsum *e, sm_array *array, const sm_program *b, const term *t) {
    const sm_tensor *tensor = &b->tensor[t->tensor];
    array->rank = tensor->rank;
    array->unreduced = t->unreduced;
    for (int d = 0; d < tensor->rank; d++) {
        int dim = t->keys && tensor->dim[d] == SM_DIM_T ? SM_DIM_S : tensor->dim[d];
        sm_dim *to = &array->dim[d];
        to->index = index_of(e, dim);
        for (int i = 0; i < SM_AXIS_COUNT; i++)
            if (t->at[d] & SM_BIT(major_first[i])) to->axis[to->n_axes++] = major_first[i];
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

static sm_size size_of(const sm_program *b, int tensor, sm_axes mask, double bytes_per_element) {
    const sm_tensor *t = &b->tensor[tensor];
    return (sm_size){.base = t->elements * bytes_per_element,
                     .mask = mask,
                     .per_sequence = t->per_sequence};
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
    if (axes == SM_BIT(SM_AXIS_CONTEXT) && j->b->rules.context_by == SM_CONTEXT_RING)
        return SM_STREAM_RING;
    if (phase == SM_PHASE_BACKWARD_WEIGHT && !gradient) return SM_STREAM_PREFETCH;
    return SM_STREAM_BLOCKING;
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
                 .forward_op = (int)(op - j->b->op)};
    c.bytes = size_of(j->b, tensor, (sm_axes)(before & ~step->axes),
                      weight_gradient ? 1 : t->bytes_per_element);
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
        if (d == SM_DIM_B || d == SM_DIM_C) s.per_sequence = true;
    }
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

static void add_bytes(sm_work *w, sm_size bytes) {
    if (w->terms < 6) w->bytes[w->terms++] = bytes;
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
    for (int i = 0; i < 2; i++) add_bytes(w, traffic(j->b, &in[i], at));
    add_bytes(w, traffic(j->b, out, at));
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

static void attention_work(job *j, const sm_op *op, const int *at, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_ATTENTION, phase);
    const double *size = j->b->size;
    uint32_t rows = 1u << SM_DIM_B | 1u << SM_DIM_T | 1u << SM_DIM_K | 1u << SM_DIM_G;
    /* forward: QK and PV; backward: dV, dP, dS->dQ, dS->dK and QK once more */
    double matmuls = phase == SM_PHASE_FORWARD ? 1 : 2.5;
    w->flops = product(j->b, rows, at);
    w->flops.base *= 2 * op->keys * (size[SM_DIM_H] + size[SM_DIM_J]) * matmuls;
    w->m = product(j->b, 1u << SM_DIM_T, at);
    w->k = (sm_size){.base = size[SM_DIM_H]};
    w->n = (sm_size){.base = op->keys};
    w->batch = product(j->b, rows & ~(1u << SM_DIM_T), at);
    for (int i = 0; i <= op->inputs; i++) {
        term t = stored(j->b, i < op->inputs ? op->in[i] : op->out, i > 0 && i < op->inputs);
        sm_size bytes = traffic(j->b, &t, at);
        if (phase != SM_PHASE_FORWARD) bytes.base *= 2; /* the array and its gradient */
        add_bytes(w, bytes);
    }
}

static void vector_work(job *j, const sm_op *op, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_VECTOR, phase);
    const sm_tensor *out = &j->b->tensor[op->out];
    double passes = phase == SM_PHASE_FORWARD ? 1 : 2;
    w->flops = size_of(j->b, op->out, stored_mask(j->b, op->out), op->flops_per_element * passes);
    for (int i = 0; i < op->inputs; i++) {
        const sm_tensor *t = &j->b->tensor[op->in[i]];
        if (t->role != SM_ROLE_ACTIVATION) continue;
        double reads = phase == SM_PHASE_FORWARD ? 1 : 1 + (op->reads >> i & 1);
        add_bytes(w, size_of(j->b, op->in[i], stored_mask(j->b, op->in[i]),
                             t->bytes_per_element * reads));
    }
    double over = op->passes[phase != SM_PHASE_FORWARD];
    if (over <= 0) over = 1;
    add_bytes(w, size_of(j->b, op->out, stored_mask(j->b, op->out), out->bytes_per_element * over));
    if (op->kind == SM_OP_GATHER) /* rows read and written */
        add_bytes(w, size_of(j->b, op->out, stored_mask(j->b, op->out), out->bytes_per_element));
}

static bool forward_op(job *j, const sm_op *op) {
    int at[SM_AXIS_COUNT];
    sm_lowering low;
    term in[4] = {{0}}, out = stored(j->b, op->out, false);
    assign(j->b, op, at);
    for (int i = 0; i < op->inputs; i++)
        in[i] = stored(j->b, op->in[i], op->kind == SM_OP_ATTENTION && i > 0);
    if (!crosses(j->b, op)) {
        if (!lower(j, op->inputs, in, &out, at, false, &low)) return false;
        for (int i = 0; i < op->inputs; i++)
            if (j->b->tensor[op->in[i]].role != SM_ROLE_IDS)
                emit_array(j, op, i, op->in[i], false, stored_mask(j->b, op->in[i]), &low,
                           SM_PHASE_FORWARD);
        emit_array(j, op, -1, op->out, false, out_mask(j->b, &out, at), &low, SM_PHASE_FORWARD);
    }
    if (op->kind == SM_OP_EINSUM) einsum_work(j, op, in, &out, at, SM_PHASE_FORWARD);
    else if (op->kind == SM_OP_ATTENTION) attention_work(j, op, at, SM_PHASE_FORWARD);
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
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        at[a] = -1;
        for (int d = 0; d < t->rank; d++)
            if (t->at[d] & SM_BIT(a)) at[a] = t->dim[d];
    }
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

sm_status sm_program_partition(const sm_program *program, sm_partition *out, sm_error *err) {
    job j = {.out = out, .err = err};
    memset(out, 0, sizeof *out);
    out->program = *program;
    j.b = &out->program;
    bool ok = true;
    for (int i = 0; ok && i < program->ops; i++) ok = forward_op(&j, &j.b->op[i]);
    for (int i = program->ops - 1; ok && i >= 0; i--) ok = backward_op(&j, &j.b->op[i]);
    if (ok && program->input >= 0 && program->ops) ok = flush(&j, &j.b->op[0], program->input);
    if (!ok) return err && err->status ? err->status : SM_INTERNAL;
    if (out->comms > SM_MAX_COMM || out->works > SM_MAX_WORK)
        return sm_fail(err, SM_INTERNAL, "a layer of this model makes more than %d collectives",
                       SM_MAX_COMM);
    out->ops_gather = j.b->op[0].kind == SM_OP_GATHER;
    out->needed = tensors_read(j.b);
    int edge = program->output >= 0 ? program->output : program->input;
    out->boundary = size_of(j.b, edge, stored_mask(j.b, edge), j.b->tensor[edge].bytes_per_element);
    return SM_OK;
}

/* Collectives: an op over the nominal mesh goes through the algebra of shard, and the steps on each
 * of its arrays become collectives with symbolic sizes. */
#include "partition_parts.h"

enum { NOMINAL = 1 << 12 };

const sm_mesh *sm_program_mesh(void) {
    static const sm_mesh mesh = {SM_AXIS_COUNT,
                                 {
#define X(id, name, letter) {name, 2, 0, {0}, {0, 0}, false},
                                     SM_PROGRAM_AXES(X)
#undef X
                                 },
                                 .any_order = true};
    return &mesh;
}

static int index_of(const job *j, sm_einsum *e, int dim) {
    const char *name = j->b->dim[dim].name;
    for (int i = 0; i < e->indices; i++)
        if (strcmp(e->index[i].name, name) == 0) return i;
    sm_index *index = &e->index[e->indices];
    *index = (sm_index){.size = j->size ? j->size[dim] : NOMINAL};
    memcpy(index->name, name, strlen(name) + 1);
    return e->indices++;
}

/* Axes that move between dimensions are the minor ones, so that no block has to change chips first:
 * what heads leave of a sum is scattered over the tensor chips that they divide, within the part of
 * each of those that copy them. */
enum {
    D = SM_AXIS_DATA,
    F = SM_AXIS_FSDP,
    C = SM_AXIS_CONTEXT,
    E = SM_AXIS_EXPERT,
    W = SM_AXIS_TENSOR_W,
    T = SM_AXIS_TENSOR,
    Q = SM_AXIS_TENSOR_Q
};
static const uint8_t major_first[SM_AXIS_COUNT] = {D, F, C, E, W, T, Q};

/* Experts are dealt out over tensor first. Context comes to heads and leaves them
 * (context_by=heads). Serving: stationary weights have fsdp come and go on
 * sequences, keys and hidden widths. Again the axis that moves is the minor one. */
const uint8_t *sm_program_axis_order(const sm_program *b, int dim) {
    static const uint8_t stationary[SM_AXIS_COUNT] = {D, C, E, F, W, T, Q},
                         wide[SM_AXIS_COUNT] = {D, C, E, W, T, Q, F},
                         experts[SM_AXIS_COUNT] = {D, F, C, W, T, Q, E},
                         heads[SM_AXIS_COUNT] = {D, F, E, W, T, Q, C};
    /* slots may lie in any order, and those of an expert leave by the expert axis */
    switch (b->dim[dim].role) {
    case SM_DIMENSION_EXPERTS: return experts;
    case SM_DIMENSION_HEADS:
        if (!b->serving) return heads;
        break;
    case SM_DIMENSION_SLOTS:
        if (!b->serving) return experts;
        break;
    case SM_DIMENSION_WIDTH:
    case SM_DIMENSION_VOCABULARY:
        if (b->serving) return wide;
        break;
    default: break;
    }
    return b->serving && b->rules.stationary ? stationary : major_first;
}

static void fill_array(const job *j, sm_einsum *e, sm_array *array, const term *t) {
    const sm_program *b = j->b;
    const sm_tensor *tensor = &b->tensor[t->tensor];
    array->rank = tensor->rank;
    array->unreduced = t->unreduced;
    for (int d = 0; d < tensor->rank; d++) {
        int dim = t->dim[d];
        sm_dim *to = &array->dim[d];
        const uint8_t *order = sm_program_axis_order(b, dim);
        to->index = index_of(j, e, dim);
        for (int i = 0; i < SM_AXIS_COUNT; i++)
            if (t->at[d] & SM_BIT(order[i])) to->axis[to->n_axes++] = order[i];
    }
}

void part_einsum(const job *j, int n, const term *in, const term *out, sm_einsum *e) {
    memset(e, 0, sizeof *e);
    e->operands = n;
    for (int i = 0; i < n; i++) fill_array(j, e, &e->in[i], &in[i]);
    fill_array(j, e, &e->out, out);
    e->has_output = e->out_sharding_given = true;
}

static void to_indices(const job *j, sm_einsum *e, const int *dims, int8_t *at) {
    for (int a = 0; a < SM_MAX_AXES; a++) at[a] = SM_REPLICATED;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (dims[a] < 0) continue;
        int before = e->indices, index = index_of(j, e, dims[a]);
        if (e->indices > before) e->indices = before; /* the op does not have that dimension */
        else at[a] = (int8_t)index;
    }
}

/* Plans are priced and run with whole shares: a step does not pad its arrays. */
static sm_status check_shares(const sm_einsum *e, const sm_mesh *mesh, sm_error *err) {
    for (int o = 0; o <= e->operands; o++) {
        const sm_array *array = o < e->operands ? &e->in[o] : &e->out;
        for (int d = 0; d < array->rank; d++) {
            const sm_index *index = &e->index[array->dim[d].index];
            sm_axes axes = 0;
            char over[64];
            if (!sm_dim_padded(e, mesh, &array->dim[d], 0)) continue;
            for (int i = 0; i < array->dim[d].n_axes; i++)
                axes = (sm_axes)(axes | 1u << array->dim[d].axis[i]);
            axes = sm_mesh_real_axes(mesh, axes);
            sm_axes_format(mesh, axes, over, sizeof over);
            return sm_fail(err, SM_BAD_INPUT, "%s=%.0f does not divide over the %.0f chips of %s",
                           index->name, index->size, sm_mesh_size(mesh, axes), over);
        }
    }
    return SM_OK;
}

/* A lowering over the nominal mesh, with all that it depends on as bytes, by which it is found.
 * Both take no more room than what they have: programs of one model have thousands. */
typedef struct known_lowering {
    struct known_lowering *next;
    size_t key_bytes, low_bytes;
    unsigned char key_and_low[];
} known_lowering;

/* Arrays are cleared before they are filled: what lies between their members is the same. */
static size_t put(unsigned char *key, size_t n, const void *of, size_t bytes) {
    memcpy(key + n, of, bytes);
    return n + bytes;
}

static sm_status lower_on(job *j, const sm_mesh *mesh, const sm_einsum *e, const int8_t *at,
                          bool keep, sm_lowering *low) {
    sm_status s = check_shares(e, mesh, j->err);
    return s ? s : sm_einsum_lower(e, mesh, at, keep ? NULL : &e->out, keep, low, j->err);
}

/* Over the nominal mesh, unless the same has been done. */
static sm_status lower_once(job *j, const sm_einsum *e, const int8_t *at, bool keep,
                            sm_lowering *low) {
    if (!j->known) return lower_on(j, sm_program_mesh(), e, at, keep, low);
    unsigned char key[sizeof(sm_einsum) + SM_MAX_AXES + sizeof keep];
    size_t n = put(key, 0, &keep, sizeof keep);
    n = put(key, n, at, SM_MAX_AXES);
    n = put(key, n, e->in, (size_t)e->operands * sizeof *e->in);
    n = put(key, n, &e->out, sizeof e->out);
    n = put(key, n, e->index, (size_t)e->indices * sizeof *e->index);
    known_lowering **first = &j->known->known[sm_hash_bytes(key, n) % SM_KNOWN_LOWERINGS],
                   *k = *first;
    while (k && !(k->key_bytes == n && memcmp(k->key_and_low, key, n) == 0)) k = k->next;
    if (k) {
        memcpy(low, k->key_and_low + n, k->low_bytes);
        return SM_OK;
    }
    sm_status s = lower_on(j, sm_program_mesh(), e, at, keep, low);
    if (s) return s;
    const size_t low_bytes = offsetof(sm_lowering, step) + (size_t)low->steps * sizeof *low->step;
    k = sm_arena_alloc(j->known->arena, sizeof *k + n + low_bytes);
    if (!k) return sm_fail_memory(j->err);
    k->next = *first;
    k->key_bytes = n;
    k->low_bytes = low_bytes;
    memcpy(k->key_and_low, key, n);
    memcpy(k->key_and_low + n, low, low_bytes);
    *first = k;
    return SM_OK;
}

bool part_lower(job *j, int n, const term *in, const term *out, const int *at, bool keep,
                sm_lowering *low) {
    sm_einsum e;
    int8_t index[SM_MAX_AXES];
    sm_mesh real;
    part_einsum(j, n, in, out, &e);
    to_indices(j, &e, at, index);
    if (j->mesh) real = *j->mesh, real.any_order = true;
    sm_status s =
        j->mesh ? lower_on(j, &real, &e, index, keep, low) : lower_once(j, &e, index, keep, low);
    /* our own program is never the user's fault; sizes that do not divide are */
    if (s == SM_BAD_INPUT && j->err && !j->mesh) j->err->status = SM_INTERNAL;
    if (!s) part_task_arrays(j, n, in, out, low);
    return s == SM_OK;
}

static moved *find_move(job *j, const moved *move, sm_phase phase) {
    for (int i = 0; i < j->moves && i < SM_MAX_COMM; i++) {
        moved *m = &j->done[i];
        if (m->tensor == move->tensor && m->from == move->from && m->axes == move->axes &&
            m->phase == phase && m->gradient == move->gradient)
            return m;
    }
    return NULL;
}

/* Then it serves this op too. */
static bool already(job *j, moved move) {
    sm_partition *p = j->out;
    moved *m = find_move(j, &move, move.phase);
    if (m) {
        bool own = m->comm >= 0 && m->comm < p->comms && m->comm < SM_MAX_COMM;
        if (own) p->comm[m->comm].forward_ops |= move.ops;
        m->ops |= move.ops;
        return true;
    }
    if (j->moves < SM_MAX_COMM) j->done[j->moves] = move;
    j->moves++;
    return false;
}

/* Did the forward pass make this move of the backward pass, so that what it brought may be kept? A
 * ring keeps nothing on its way. */
static bool repeats(job *j, const moved *move, sm_stream stream) {
    bool backward = move->phase != SM_PHASE_FORWARD && !move->gradient;
    const moved *before =
        backward && stream != SM_STREAM_RING ? find_move(j, move, SM_PHASE_FORWARD) : NULL;
    if (!before) return false;
    j->out->arrived[move->tensor] = (sm_axes)(j->out->arrived[move->tensor] | move->axes);
    j->out->receivers[move->tensor] |= before->ops;
    return true;
}

/* Inputs of attention that are queries and keys, in pairs; values may be one of the keys. */
static int scored(const sm_op *op) {
    if (op->kind != SM_OP_ATTENTION) return 0;
    return op->values % 2 == 0 ? op->values : op->inputs - (op->chosen >= 0);
}

/* Whether arrays are parts of one query, or of one key: they lie side by side for the kernel that
 * attends, whose scores are sums of pairs, a part of each. */
static bool beside(const sm_program *b, int tensor, const char *other) {
    for (int o = 0; o < b->ops; o++) {
        const sm_op *op = &b->op[o];
        int end = scored(op), part = 0;
        while (part < end && op->in[part] != tensor) part++;
        for (int i = part & 1; i < end && part < end; i += 2)
            if (i != part && other == b->tensor[op->in[i]].name) return true;
    }
    return false;
}

/* Weights of one piece that move alike travel together, as every framework buckets them; so do the
 * parts of a query. */
static bool bucketed(const job *j, int tensor, const sm_comm *c) {
    sm_partition *p = j->out;
    if (j->b->rules.each_weight) return false;
    bool weights = c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN;
    for (int i = 0; i < p->comms && i < SM_MAX_COMM; i++) {
        sm_comm *to = &p->comm[i];
        if (to->op != c->op || to->axes != c->axes || to->phase != c->phase ||
            to->stream != c->stream || to->gradient != c->gradient || to->repeated != c->repeated ||
            to->bytes.mask != c->bytes.mask)
            continue;
        if (weights ? to->bytes.per_sequence || c->bytes.per_sequence
                    : !beside(j->b, tensor, to->array))
            continue;
        to->bytes.base += c->bytes.base;
        if (!weights) {
            to->forward_ops |= c->forward_ops;
            return true;
        }
        to->arrays++;
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
    return t->elements / op->value_size * STATISTICS_BYTES;
}

static void emit(job *j, const sm_op *op, const traveller *what, const sm_step *step,
                 sm_axes before, sm_phase phase, bool repeated) {
    sm_partition *p = j->out;
    int tensor = what->tensor;
    const sm_tensor *t = &j->b->tensor[tensor];
    bool gradient = what->gradient, weight_gradient = gradient && t->role == SM_ROLE_WEIGHT;
    sm_comm c = {.array = t->name,
                 .op = step->op,
                 .phase = phase,
                 .axes = step->axes,
                 .stream = stream_of(j, t, gradient, step->axes, phase),
                 .gradient = weight_gradient,
                 .returns = gradient,
                 .forward_op = (int)(op - j->b->op),
                 .forward_ops = sm_bit_of((int)(op - j->b->op)),
                 .repeated = repeated,
                 .arrays = 1,
                 .role = (uint8_t)part_role(t)};
    c.bytes = part_size(j->b, tensor, (sm_axes)(before & ~step->axes),
                        weight_gradient ? 1 : t->bytes_per_element);
    c.bytes.base += joined_bytes(j, op, tensor, step);
    c.past = t->role == SM_ROLE_CACHE && step->op == SM_ALL_GATHER &&
             !(step->axes & SM_BIT(SM_AXIS_CONTEXT));
    c.ragged = step->op == SM_ALL_TO_ALL && t->per_sequence && part_of_experts(j->b, tensor) &&
               !j->b->rules.capacity; /* slots travel, full or not */
    c.narrow = phase == SM_PHASE_FORWARD && op->kind == SM_OP_EINSUM && tensor != op->out &&
               t->role == SM_ROLE_ACTIVATION;
    if (bucketed(j, tensor, &c)) return;
    if (p->comms < SM_MAX_COMM) p->comm[p->comms] = c;
    p->comms++;
}

/* Over the chips of a sequence both new and old keys travel, over others the old alone. */
static bool gathers_new_and_past(const job *j, int tensor, const sm_step *step) {
    return j->b->tensor[tensor].role == SM_ROLE_CACHE && step->op == SM_ALL_GATHER &&
           (step->axes & SM_BIT(SM_AXIS_CONTEXT)) && step->axes != SM_BIT(SM_AXIS_CONTEXT);
}

void part_emit(job *j, const sm_op *op, traveller what, const sm_lowering *low, sm_phase phase) {
    bool operand = what.array >= 0, arrives = false;
    const sm_tensor *t = &j->b->tensor[what.tensor];
    for (int i = 0; i < low->steps; i++) {
        const sm_step *s = &low->step[i];
        if (s->array != what.array || s->kind == SM_STEP_EINSUM) continue;
        sm_axes before = what.mask;
        if (s->kind == SM_STEP_SLICE || s->op == SM_REDUCE_SCATTER)
            what.mask = (sm_axes)(what.mask | s->axes);
        else if (s->op == SM_ALL_GATHER) what.mask = (sm_axes)(what.mask & ~s->axes);
        if (s->kind == SM_STEP_SLICE || s->op == SM_PERMUTE) continue;
        /* what arrived by all-to-all is kept as it arrived: it is no larger */
        if (phase == SM_PHASE_BACKWARD_WEIGHT && !what.gradient && s->op == SM_ALL_TO_ALL) continue;
        sm_stream stream = stream_of(j, t, what.gradient, s->axes, phase);
        if (operand && stream == SM_STREAM_RING) part_task_ring(j, i);
        moved move = {what.tensor,
                      before,
                      s->axes,
                      phase == SM_PHASE_FORWARD ? phase : SM_PHASE_BACKWARD_INPUT,
                      what.gradient,
                      t->role == SM_ROLE_WEIGHT ? -1 : j->out->comms,
                      sm_bit_of((int)(op - j->b->op))};
        bool repeated = operand && repeats(j, &move, stream);
        if (repeated && j->task) j->task->repeated |= 1u << i;
        arrives |= repeated;
        if (operand && already(j, move)) continue;
        sm_step rest = *s;
        if (gathers_new_and_past(j, what.tensor, s)) {
            sm_step past = *s;
            past.axes = (sm_axes)(s->axes & ~SM_BIT(SM_AXIS_CONTEXT));
            rest.axes = SM_BIT(SM_AXIS_CONTEXT);
            emit(j, op, &what, &past, before, phase, repeated);
            before = (sm_axes)(before & ~past.axes);
        }
        emit(j, op, &what, &rest, before, phase, repeated);
        /* The softmax of scores that are shared out: chips agree on the largest first, then add up
         * the exponentials, and the target's score, which one of them has: one fp32 a token each
         * (Megatron-LM's vocabulary-parallel cross-entropy; XLA does the same). The runtime's sums
         * are in double and need no largest. */
        bool agrees = op->function == SM_FUNCTION_LOSS && s->op == SM_ALL_REDUCE;
        for (int more = 0; more < 2 && agrees && !j->b->rules.width; more++)
            emit(j, op, &what, &rest, before, phase, repeated);
    }
    if (operand && !what.gradient && phase != SM_PHASE_FORWARD && !arrives)
        j->out->as_stored |= sm_bit_of(what.tensor);
}

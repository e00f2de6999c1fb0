/* The work of an op on one chip: FLOPs and the bytes that cross its memory.
 *   matmul [M,K] [K,N]:  2 M N K FLOPs, M K + K N + M N elements
 * ("How To Scale Your Model", chapters 1 and 4); attention is two such products over queries and
 * keys, whose scores stay on the chip (Dao et al., "FlashAttention", 2022). */
#include <assert.h>

#include "partition_parts.h"
#include "program_parts.h"

_Static_assert((int)SM_MAX_OPS <= (int)SM_MAX_BITS, "a set has a bit for each op");
_Static_assert(4 * SM_MAX_OPS <= SM_MAX_WORK,
               "an op works forward and on two gradients at most, or forward and on one, with "
               "weights unpacked for each");
_Static_assert(
    SM_MAX_WORK_TERMS >= SM_MAX_INPUTS + 3,
    "inputs, the result, and rows it is made of; or the state, and what kernels pass on");

static const double UNPACKED_BYTES = 2;

static sm_work *new_work(job *j, const sm_op *op, sm_op_kind kind, sm_phase phase) {
    sm_partition *p = j->out;
    assert(p->works < SM_MAX_WORK);
    sm_work *w = &p->work[p->works++];
    *w = (sm_work){.name = op->name,
                   .kind = kind,
                   .function = op->function,
                   .phase = phase,
                   .op = (int)(op - j->b->op)};
    return w;
}

static void add_bytes(sm_work *w, sm_size bytes, sm_role role) {
    assert(w->terms < SM_MAX_WORK_TERMS);
    w->role[w->terms] = (uint8_t)role;
    w->bytes[w->terms++] = bytes;
}

/* What a kernel reads and writes of its inputs and its result; their dimensions. */
static sm_dimensions add_arrays(job *j, const sm_op *op, const int *at, sm_work *w) {
    sm_dimensions dims = 0;
    for (int i = 0; i <= op->inputs; i++) {
        term t = part_operand(j->b, op, i);
        sm_size bytes = part_traffic(j->b, &t, at);
        if (w->phase != SM_PHASE_FORWARD) bytes.base *= 2; /* the array and its gradient */
        add_bytes(w, bytes, part_role(&j->b->tensor[t.tensor]));
        dims |= part_dims(j->b, &t);
    }
    return dims;
}

/* A matrix in 8 or 4 bits becomes one in 16, which the product reads. */
static bool is_packed(const job *j, const term *t) {
    bool packed = j->b->rules.stored == SM_STORED_INT8 || j->b->rules.stored == SM_STORED_NF4;
    return packed && !t->gradient && j->b->tensor[t->tensor].narrow;
}

static void unpack(job *j, const sm_op *op, const term *t, const int *at, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_VECTOR, phase);
    sm_size stored = part_traffic(j->b, t, at);
    w->flops = stored;
    w->flops.base = j->b->tensor[t->tensor].elements;
    add_bytes(w, stored, SM_ROLE_WEIGHT);
    stored.base = UNPACKED_BYTES * j->b->tensor[t->tensor].elements;
    add_bytes(w, stored, SM_ROLE_WEIGHT);
}

/* Backward every product has a gradient of its own. */
static bool casts(const sm_program *b, const sm_op *op, sm_phase phase) {
    int weight = b->tensor[op->in[0]].role == SM_ROLE_WEIGHT, read = op->in[weight];
    if (phase != SM_PHASE_FORWARD) return phase == SM_PHASE_BACKWARD_INPUT;
    const int made_by = b->tensor[read].producer;
    const sm_op *norm = made_by >= 0 ? &b->op[made_by] : op;
    if (norm->kind == SM_OP_VECTOR && norm->inputs == 2 && b->tensor[norm->in[1]].norm)
        return false;
    for (const sm_op *before = b->op; before < op; before++)
        if (before->kind == SM_OP_EINSUM && (before->in[0] == read || before->in[1] == read))
            return false;
    return true;
}

void part_einsum_work(job *j, const sm_op *op, const term *in, const term *out, const int *at,
                      sm_phase phase) {
    for (int i = 0; i < 2; i++)
        if (is_packed(j, &in[i])) unpack(j, op, &in[i], at, phase);
    sm_work *w = new_work(j, op, SM_OP_EINSUM, phase);
    sm_dimensions a = part_dims(j->b, &in[0]), b = part_dims(j->b, &in[1]);
    sm_dimensions c = part_dims(j->b, out);
    w->batch = part_product(j->b, a & b & c, at);
    w->m = part_product(j->b, a & ~b & c, at);
    w->n = part_product(j->b, b & ~a & c, at);
    w->k = part_product(j->b, a & b & ~c, at);
    w->flops = part_product(j->b, a | b | c, at);
    w->flops.base *= 2;
    const sm_tensor *tensor = j->b->tensor;
    w->linear =
        tensor[op->in[0]].role == SM_ROLE_WEIGHT || tensor[op->in[1]].role == SM_ROLE_WEIGHT;
    w->casts = casts(j->b, op, phase);
    for (int i = 0; i < 2; i++) {
        sm_size read = part_traffic(j->b, &in[i], at);
        if (is_packed(j, &in[i])) read.base = UNPACKED_BYTES * tensor[in[i].tensor].elements;
        add_bytes(w, read, part_role(&tensor[in[i].tensor]));
    }
    add_bytes(w, part_traffic(j->b, out, at), part_role(&tensor[out->tensor]));
    int weight = phase == SM_PHASE_BACKWARD_WEIGHT ? out->tensor : in[1].tensor;
    w->experts = tensor[weight].role == SM_ROLE_WEIGHT && part_of_experts(j->b, weight);
}

void part_attention_work(job *j, const sm_op *op, const int *at, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_ATTENTION, phase);
    const sm_dimensions *of = j->b->of_role, query = program_dims(&j->b->tensor[op->out]);
    sm_dimensions positions = query & of[SM_DIMENSION_POSITIONS];
    sm_dimensions heads = query & of[SM_DIMENSION_HEADS];
    sm_dimensions rows =
        (query & (of[SM_DIMENSION_SEQUENCES] | of[SM_DIMENSION_GROUP])) | positions | heads;
    /* forward: QK and PV; backward: dV, dP, dS->dQ, dS->dK, and fused QK once more */
    bool kept = j->b->rules.attention == SM_ATTENTION_UNFUSED;
    double matmuls = phase == SM_PHASE_FORWARD ? 1 : kept ? 2 : 2.5;
    w->flops = part_product(j->b, rows, at);
    w->flops.base *= 2 * op->keys * (op->query_size + op->value_size) * matmuls;
    w->m = part_product(j->b, positions, at);
    w->k = (sm_size){.base = op->query_size};
    w->value_size = op->value_size;
    w->n = (sm_size){.base = op->keys};
    w->batch = part_product(j->b, rows & ~positions, at);
    sm_dimensions keys = program_dims(&j->b->tensor[op->in[1]]);
    w->kv_heads = part_product(j->b, heads & keys, at);
    if (j->b->serving) { /* keys are a size like the others there, and may be shared out */
        sm_axes split = part_axes_of(j->b, at, SM_DIMENSION_KEYS);
        w->n.mask = split;
        w->flops.mask = (sm_axes)(w->flops.mask | split);
        w->n.per_key = w->flops.per_key = true;
    }
    add_arrays(j, op, at, w);
}

/* Lines that are one kernel: backward it runs again, and each of its products becomes two. */
void part_kernel_work(job *j, const sm_op *op, const int *at, sm_phase phase) {
    sm_work *w = new_work(j, op, SM_OP_KERNEL, phase);
    double times = phase == SM_PHASE_FORWARD ? 1 : 3;
    sm_dimensions dims = add_arrays(j, op, at, w);
    if (op->state >= 0) {
        const sm_tensor *state = &j->b->tensor[op->state];
        sm_size bytes = part_stored_size(j->b, op->state, 2 * state->bytes_per_element);
        add_bytes(w, bytes, SM_ROLE_STATE);
        dims |= program_dims(state);
    }
    w->flops = w->vector_flops = part_product(j->b, dims, at);
    w->flops.base = op->matrix_flops * times;
    w->vector_flops.base = op->flops_per_element * j->b->tensor[op->out].elements * times;
    w->passes = op->passed_bytes > 0;
    sm_size passed = w->flops;
    passed.base = op->passed_bytes * times;
    if (w->passes) add_bytes(w, passed, SM_ROLE_ACTIVATION);
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
        add_bytes(w, part_stored_size(j->b, op->in[i], t->bytes_per_element * reads), part_role(t));
    }
}

/* Tokens of [B,T,D], which dispatch reads and combine writes. */
static sm_size routed_tokens(const job *j, const sm_op *op) {
    bool dispatch = op->function == SM_FUNCTION_DISPATCH;
    if (!dispatch && op->function != SM_FUNCTION_COMBINE) return (sm_size){.base = 0};
    int tensor = dispatch ? op->in[0] : op->out;
    const sm_dimensions *of = j->b->of_role;
    sm_dimensions dims =
        program_dims(&j->b->tensor[tensor]) &
        (of[SM_DIMENSION_SEQUENCES] | of[SM_DIMENSION_GROUP] | of[SM_DIMENSION_POSITIONS]);
    sm_size s = part_stored_size(j->b, tensor, 1);
    s.base = 1;
    for (int d = 0; d < j->b->dims; d++)
        if (dims >> d & 1u) s.base *= j->b->dim[d].size;
    return s;
}

void part_vector_work(job *j, const sm_op *op, sm_phase phase) {
    if (op->function == SM_FUNCTION_VIEW) return;
    sm_work *w = new_work(j, op, SM_OP_VECTOR, phase);
    const sm_tensor *out = &j->b->tensor[op->out];
    w->norm = op->inputs == 2 && j->b->tensor[op->in[1]].norm;
    double passes = phase == SM_PHASE_FORWARD ? 1 : 2, left = out->elements;
    /* the loss is whole on chips that share out its scores */
    w->flops = part_stored_size(j->b, op->function == SM_FUNCTION_LOSS ? op->in[0] : op->out, 1);
    w->flops.base = op->flops_per_element * out->elements * passes;
    w->routed = routed_tokens(j, op);
    vector_reads(j, op, w, &left);
    double over = op->passes[phase != SM_PHASE_FORWARD];
    if (over <= 0) over = left / out->elements;
    add_bytes(w, part_stored_size(j->b, op->out, out->bytes_per_element * over), part_role(out));
    if (op->function == SM_FUNCTION_LOOKUP) /* rows read and written */
        add_bytes(w, part_stored_size(j->b, op->out, out->bytes_per_element), SM_ROLE_WEIGHT);
}

/* Only the new tokens are written; the one of a decode step on whichever chip holds the end of its
 * sequence. */
void part_append_work(job *j, const sm_op *op, const int *at) {
    sm_work *w = new_work(j, op, SM_OP_VECTOR, SM_PHASE_FORWARD);
    const sm_tensor *out = &j->b->tensor[op->out];
    for (int i = 0; i < op->inputs; i++) {
        sm_size s = part_product(j->b, program_dims(&j->b->tensor[op->in[i]]), at);
        if (!j->b->rules.decode)
            s.mask = (sm_axes)(s.mask | part_axes_of(j->b, at, SM_DIMENSION_KEYS));
        s.base *= j->b->tensor[op->in[i]].bytes_per_element;
        add_bytes(w, s, SM_ROLE_ACTIVATION);
        s.base *= out->bytes_per_element / j->b->tensor[op->in[i]].bytes_per_element;
        add_bytes(w, s, part_role(out));
        double flops = w->flops.base + s.base / out->bytes_per_element * op->flops_per_element;
        w->flops = s;
        w->flops.base = flops;
    }
}

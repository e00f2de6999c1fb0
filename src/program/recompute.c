/* Recomputation: which results are kept for the backward pass, and which ops run again (Chen et
 * al., "Training deep nets with sublinear memory cost", 2016). An op runs again when the backward
 * pass reads its result, directly or through another that runs again, and the result is not kept.
 */
#include "partition.h"
#include "program_parts.h"

const char *const sm_recompute_names[SM_RECOMPUTE_COUNT] = {"none", "selective", "save-matmuls",
                                                            "save-alternate", "full"};

const char *const sm_regather_names[SM_REGATHER_COUNT] = {"all", "weights", "activations", "none"};

static bool carries_scores(const sm_program *program, const sm_op *op) {
    const sm_dimensions dims = program_dims(&program->tensor[op->out]);
    return program_has(program, dims, SM_DIMENSION_POSITIONS) &&
           program_has(program, dims, SM_DIMENSION_KEYS);
}

/* A matmul whose weights are of experts: PyTorch runs these as one grouped kernel. */
static bool is_grouped(const sm_program *program, const sm_op *op) {
    for (int k = 0; k < op->inputs; k++) {
        const sm_tensor *in = &program->tensor[op->in[k]];
        if (in->role == SM_ROLE_WEIGHT &&
            program_has(program, program_dims(in), SM_DIMENSION_EXPERTS))
            return true;
    }
    return false;
}

sm_bits sm_recompute_set(const sm_program *program, sm_recompute policy) {
    sm_bits set = 0;
    int matmuls = 0;
    for (int i = 0; i < program->ops; i++) {
        const sm_op *op = &program->op[i];
        const bool core = op->kind == SM_OP_ATTENTION || carries_scores(program, op),
                   vector = op->kind == SM_OP_VECTOR,
                   second =
                       op->kind == SM_OP_EINSUM && (is_grouped(program, op) || ++matmuls % 2 == 0);
        const bool in[SM_RECOMPUTE_COUNT] = {[SM_RECOMPUTE_SELECTIVE] = core,
                                             [SM_RECOMPUTE_MATMULS] = core || vector,
                                             [SM_RECOMPUTE_ALTERNATE] = vector || second,
                                             [SM_RECOMPUTE_FULL] = true};
        if (in[policy]) set |= sm_bit_of(i);
    }
    return set;
}

static sm_bits ops_named(const sm_program *program, const char *name, size_t n) {
    sm_bits set = 0;
    for (int i = 0; i < program->ops; i++)
        if (strlen(program->op[i].name) == n && strncmp(program->op[i].name, name, n) == 0)
            set |= sm_bit_of(i);
    return set;
}

static const char *next_name(const char *name, size_t n) { return name + n + (name[n] == '+'); }

sm_bits sm_recompute_named(const sm_program *program, const char *names) {
    sm_bits set = 0;
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, "+");
        set |= ops_named(program, at, n);
        at = next_name(at, n);
    }
    return set;
}

const char *sm_recompute_unknown(const sm_program *const *programs, int n, const char *names,
                                 size_t *length) {
    for (const char *at = names; *at; at = next_name(at, *length)) {
        sm_bits found = 0;
        *length = strcspn(at, "+");
        for (int i = 0; i < n; i++) found |= ops_named(programs[i], at, *length);
        if (!found) return at;
    }
    return NULL;
}

static sm_size kept_size(const sm_tensor *t, sm_axes arrived) {
    sm_size s = {.base = t->elements * t->bytes_per_element, .per_sequence = t->per_sequence};
    for (int d = 0; d < t->rank; d++) s.mask = (sm_axes)(s.mask | (t->at[d] & ~arrived));
    return s;
}

/* Ops that run again and read the tensor as it is stored: those that gather it do so again. */
static bool read_again(const sm_program *b, int tensor, sm_bits again) {
    for (int i = 0; i < b->ops; i++)
        for (int k = 0; k < b->op[i].inputs && (again >> i & 1); k++)
            if (b->op[i].in[k] == tensor) return true;
    return false;
}

/* What the op makes: a kernel may have several results. */
static sm_bits results_of(const sm_program *b, int op) {
    sm_bits made = sm_bit_of(b->op[op].out);
    for (int t = 0; t < b->tensors && b->op[op].kind == SM_OP_KERNEL; t++)
        if (b->tensor[t].producer == op) made |= sm_bit_of(t);
    return made;
}

int sm_recompute_kept(const sm_partition *partition, sm_bits set, sm_regather regather,
                      sm_bits *again, sm_kept_array *kept) {
    const sm_program *b = &partition->program;
    sm_bits wanted = partition->needed;
    *again = 0;
    /* ops come in order, so one pass from the last to the first closes the set */
    for (int i = b->ops - 1; i >= 0; i--) {
        const sm_op *op = &b->op[i];
        const sm_bits made = results_of(b, i);
        if (!(set >> i & 1) || !(wanted & made)) continue;
        *again |= sm_bit_of(i);
        wanted &= ~made;
        for (int k = 0; k < op->inputs; k++)
            if (b->tensor[op->in[k]].role == SM_ROLE_ACTIVATION) wanted |= sm_bit_of(op->in[k]);
    }
    int n = 0;
    for (int t = 0; t < b->tensors; t++) {
        if (!(wanted & sm_bit_of(t)) || t == b->lent) continue; /* kept by whom it is of */
        /* what runs again has its operands brought again */
        bool arrives = (regather & SM_KEEPS_ACTIVATIONS) && (partition->receivers[t] & ~*again);
        if (arrives)
            kept[n++] = (sm_kept_array){t, kept_size(&b->tensor[t], partition->arrived[t])};
        if (!arrives || (partition->as_stored & sm_bit_of(t)) || read_again(b, t, *again))
            kept[n++] = (sm_kept_array){t, kept_size(&b->tensor[t], 0)};
    }
    return n;
}

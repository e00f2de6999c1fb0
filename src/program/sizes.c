/* Sizes as products of dimensions over the degrees of axes. */
#include "partition_parts.h"

#include "program_parts.h"

term part_stored(const sm_program *b, int tensor) {
    term t = {tensor, b->tensor[tensor].dim, {0}, b->tensor[tensor].unreduced, false};
    memcpy(t.at, b->tensor[tensor].at, sizeof t.at);
    return t;
}

term part_operand(const sm_program *b, const sm_op *op, int i) {
    term t = part_stored(b, i < op->inputs ? op->in[i] : op->out);
    if (i < op->inputs) t.dim = op->as[i];
    return t;
}

sm_axes part_sums_over(const sm_program *b, int tensor) {
    return (sm_axes)(b->tensor[tensor].unreduced | program_experts_over(b, &b->tensor[tensor]));
}

static int sum_of(const sm_program *b, int tensor) {
    for (int i = 0; i < b->ops; i++)
        for (int k = 0; k < b->op[i].inputs; k++)
            if (b->op[i].in[k] == tensor && b->op[i].function == SM_FUNCTION_ADD)
                return b->op[i].out;
    return -1;
}

term part_gradient(const sm_program *b, int tensor) {
    int sum = b->tensor[tensor].unreduced ? sum_of(b, tensor) : -1;
    if (sum >= 0) return part_gradient(b, sum);
    term t = part_stored(b, tensor);
    t.unreduced = 0;
    t.gradient = true;
    return t;
}

/* A program of serving is of one query and one key, or a part of one where several are made one:
 * what has more has a number of its own. */
static bool grows(const sm_program *b, int dim) { return b->serving && b->dim[dim].size <= 1; }

/* What a size grows with. Training has queries and keys in its sizes. */
static void grow(const sm_program *b, sm_size *s, sm_dimensions dims) {
    bool slots = program_has(b, dims, SM_DIMENSION_SLOTS);
    s->per_sequence = slots || program_has(b, dims, SM_DIMENSION_SEQUENCES);
    s->per_query = b->serving && slots;
    for (int d = 0; d < b->dims; d++) {
        if (!(dims >> d & 1u) || !grows(b, d)) continue;
        s->per_query |= b->dim[d].role == SM_DIMENSION_POSITIONS;
        s->per_key |= b->dim[d].role == SM_DIMENSION_KEYS;
    }
}

sm_size part_size(const sm_program *b, int tensor, sm_axes mask, double bytes_per_element) {
    const sm_tensor *t = &b->tensor[tensor];
    sm_size s = {.base = t->elements * bytes_per_element, .mask = mask};
    grow(b, &s, program_dims(t));
    return s;
}

sm_axes part_mask(const sm_axes *at, int rank) {
    sm_axes mask = 0;
    for (int d = 0; d < rank; d++) mask = (sm_axes)(mask | at[d]);
    return mask;
}

sm_axes part_stored_mask(const sm_program *b, int tensor) {
    return part_mask(b->tensor[tensor].at, b->tensor[tensor].rank);
}

sm_size part_stored_size(const sm_program *b, int tensor, double bytes_per_element) {
    return part_size(b, tensor, part_stored_mask(b, tensor), bytes_per_element);
}

sm_size part_product(const sm_program *b, sm_dimensions dims, const int *at) {
    sm_size s = {.base = 1};
    for (int d = 0; d < b->dims; d++) {
        if (!(dims >> d & 1u)) continue;
        s.base *= b->dim[d].size;
        s.mask = (sm_axes)(s.mask | part_axes_on(at, d));
    }
    grow(b, &s, dims);
    return s;
}

sm_dimensions part_dims(const sm_program *b, const term *t) {
    sm_dimensions set = 0;
    for (int d = 0; d < b->tensor[t->tensor].rank; d++) set |= 1ull << t->dim[d];
    return set;
}

sm_size part_traffic(const sm_program *b, const term *t, const int *at) {
    sm_size s = part_product(b, part_dims(b, t), at);
    s.base = b->tensor[t->tensor].elements * b->tensor[t->tensor].bytes_per_element;
    return s;
}

void sm_program_sizes(const sm_program *b, const sm_program_extent *extent, double *size) {
    for (int d = 0; d < b->dims; d++) {
        size[d] = b->dim[d].size;
        switch (b->dim[d].role) {
        case SM_DIMENSION_SEQUENCES: size[d] *= extent->sequences; break;
        case SM_DIMENSION_POSITIONS: size[d] *= grows(b, d) ? extent->queries : 1; break;
        case SM_DIMENSION_KEYS: size[d] *= grows(b, d) ? extent->keys : 1; break;
        case SM_DIMENSION_SLOTS:
            size[d] *= extent->sequences * (b->serving ? extent->queries : 1);
            break;
        default: break;
        }
    }
}

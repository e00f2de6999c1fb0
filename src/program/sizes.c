/* Sizes as products of dimensions over the degrees of axes. */
#include "partition_parts.h"
#include <string.h>

#include "program_parts.h"

term part_stored(const sm_program *b, int tensor, bool keys) {
    term t = {tensor, keys, {0}, b->tensor[tensor].unreduced};
    memcpy(t.at, b->tensor[tensor].at, sizeof t.at);
    return t;
}

/* What a size grows with. Training has queries and keys in its sizes. */
static void grow(const sm_program *b, sm_size *s, uint32_t dims) {
    enum { SEQUENCES = 1 << SM_DIM_B | 1 << SM_DIM_C, QUERIES = 1 << SM_DIM_T | 1 << SM_DIM_C };
    s->per_sequence = dims & SEQUENCES;
    s->per_query = b->serving && dims & QUERIES;
    s->per_key = b->serving && dims >> SM_DIM_S & 1u;
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

sm_size part_product(const sm_program *b, uint32_t dims, const int *at) {
    sm_size s = {.base = 1};
    for (int d = 0; d < SM_DIM_COUNT; d++) {
        if (!(dims >> d & 1u)) continue;
        s.base *= b->size[d];
        s.mask = (sm_axes)(s.mask | part_axes_on(at, d));
    }
    grow(b, &s, dims);
    return s;
}

uint32_t part_dims(const sm_program *b, const term *t) {
    uint32_t set = 0;
    const sm_tensor *tensor = &b->tensor[t->tensor];
    for (int d = 0; d < tensor->rank; d++)
        set |= 1u << (t->keys && tensor->dim[d] == SM_DIM_T ? SM_DIM_S : tensor->dim[d]);
    return set;
}

sm_size part_traffic(const sm_program *b, const term *t, const int *at) {
    sm_size s = part_product(b, part_dims(b, t), at);
    s.base = b->tensor[t->tensor].elements * b->tensor[t->tensor].bytes_per_element;
    return s;
}

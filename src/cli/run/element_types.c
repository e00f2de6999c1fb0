/* element_types: fp32, fp64, whole numbers of 32 bits. */
#include "execution.h"

const char *const element_words[ELEMENT_WORDS] = {"fp32", "fp64", "int"};

sm_status element_type_read(const cli_call *call, const element_word *given, sm_einsum *einsum,
                            sm_dtype *dtype, sm_element *element, sm_error *err) {
    static const sm_dtype dtypes[] = {SM_FP32, SM_FP64, SM_INT32};
    static const sm_element elements[] = {SM_ELEMENT_F32, SM_ELEMENT_F64, SM_ELEMENT_S32};
    const sm_array *first = &einsum->in[0];
    int word = cli_given(call, given) ? (int)*given : first->dtype_given ? 0 : ELEMENT_FP32;
    if (!cli_given(call, given) && first->dtype_given)
        while (word < ELEMENT_WORDS && dtypes[word] != first->dtype) word++;
    if (word == ELEMENT_WORDS) {
        sm_source source = sm_source_of("the arrays", sm_dtype_name(first->dtype));
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "ranks hold fp32, fp64 or int, and '%s' is none of them", source.text);
    }
    *dtype = dtypes[word];
    *element = elements[word];
    for (int o = 0; o < einsum->operands; o++) einsum->in[o].dtype = *dtype;
    einsum->in[0].dtype = einsum->out.dtype = *dtype;
    return SM_OK;
}

bool element_is_whole(sm_element element) {
    return element == SM_ELEMENT_S32 || element == SM_ELEMENT_S64;
}

/* ---- values ---- */

double element_value(const sm_local_block *b, size_t i) {
    switch (b->element) {
    case SM_ELEMENT_F32: return ((const float *)b->data)[i];
    case SM_ELEMENT_F64: return ((const double *)b->data)[i];
    case SM_ELEMENT_S32: return ((const int32_t *)b->data)[i];
    default: return (double)((const int64_t *)b->data)[i];
    }
}

double element_difference(const sm_local_block *a, const sm_local_block *b) {
    size_t count = sm_local_block_count(a);
    double most = 0.0;
    if (count != sm_local_block_count(b)) return INFINITY;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs(element_value(a, i) - element_value(b, i));
        if (isnan(difference)) return difference;
        most = fmax(most, difference);
    }
    return most;
}

static uint64_t hash_of(const size_t *position, int rank, const void *array) {
    uint64_t hash = (uint64_t)(uintptr_t)array + 1;
    for (int d = 0; d < rank; d++) {
        hash = (hash ^ position[d]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

double element_whole_number(const size_t *position, int rank, void *array) {
    return (double)(hash_of(position, rank, array) % 11) - 5.0;
}

double element_fraction(const size_t *position, int rank, void *array) {
    return (double)(hash_of(position, rank, array) >> 40) / 16777216.0 - 0.5;
}

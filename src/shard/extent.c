/* How large arrays and products are: elements, bytes on one chip, floating-point operations. A
 * product takes 2 FLOPs for each combination of its indices: [I,J] [J,K] takes 2 I J K ("How To
 * Scale Your Model", chapter 4). */
#include "scalemodel/shard.h"

double sm_array_elements(const sm_array *array, const sm_einsum *einsum) {
    double elements = 1;
    for (int d = 0; d < array->rank; d++) elements *= einsum->index[array->dim[d].index].size;
    return elements;
}

/* A chip holds 1/n of the elements, n the product of the axes that shard; unreduced axes do not. */
double sm_array_local_bytes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh) {
    double ways = 1;
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            ways *= mesh->axis[array->dim[d].axis[i]].size;
    return sm_array_elements(array, einsum) * sm_dtype_bytes(array->dtype) / ways;
}

/* FLOPs = 2 x product of the sizes of all indices, batch and contracting indices once: the
 * convention of the dot in XLA and of the book's chapter 4 ("2 x the product of all dimensions"). A
 * lone operand without a contraction is a copy and costs none. */
double sm_einsum_flops(const sm_einsum *einsum) {
    bool contracts = false;
    double product = 2;
    for (int i = 0; i < einsum->indices; i++) {
        bool kept = false;
        for (int d = 0; d < einsum->out.rank; d++) kept = kept || einsum->out.dim[d].index == i;
        contracts = contracts || (einsum->has_output && !kept);
        product *= einsum->index[i].size;
    }
    return einsum->operands > 1 || contracts ? product : 0;
}

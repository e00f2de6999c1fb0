/* How large arrays and products are: elements, bytes on one chip, floating-point operations. A
 * product takes 2 FLOPs for each combination of its indices: [I,J] [J,K] takes 2 I J K ("How To
 * Scale Your Model", chapter 4). */
#include "scalemodel/shard.h"
#include <math.h>

int sm_index_repeats(const sm_einsum *einsum, int index) {
    int first = einsum->index[index].repeats - 1;
    return first >= 0 && !sm_array_has(&einsum->out, index) ? first : -1;
}

bool sm_array_is_diagonal(const sm_array *array, const sm_einsum *einsum) {
    for (int d = 0; d < array->rank; d++)
        if (sm_index_repeats(einsum, array->dim[d].index) >= 0) return true;
    return false;
}

void sm_index_set_size(sm_einsum *einsum, int index, double size) {
    for (int i = 0; i < einsum->indices; i++)
        if (i == index || einsum->index[i].repeats == index + 1) einsum->index[i].size = size;
}

double sm_array_elements_read(const sm_array *array, const sm_einsum *einsum, const double *size) {
    double elements = 1;
    for (int d = 0; d < array->rank; d++) {
        int index = array->dim[d].index;
        double length = size[d];
        if (sm_index_repeats(einsum, index) >= 0) continue;
        for (int k = 0; k < array->rank; k++)
            if (sm_index_repeats(einsum, array->dim[k].index) == index)
                length = fmin(length, size[k]);
        elements *= length;
    }
    return elements;
}

double sm_array_elements(const sm_array *array, const sm_einsum *einsum) {
    double elements = 1;
    for (int d = 0; d < array->rank; d++) elements *= einsum->index[array->dim[d].index].size;
    return elements;
}

double sm_cut(double size, double ways) { return ceil(size / ways); }

double sm_dim_ways(const sm_mesh *mesh, const sm_dim *dim, sm_axes more) {
    unsigned set = more;
    for (int i = 0; i < dim->n_axes; i++) set |= 1u << dim->axis[i];
    return sm_mesh_size(mesh, (sm_axes)set);
}

bool sm_dim_padded(const sm_einsum *einsum, const sm_mesh *mesh, const sm_dim *dim, sm_axes more) {
    return fmod(einsum->index[dim->index].size, sm_dim_ways(mesh, dim, more)) != 0;
}

/* ceil(ceil(n / a) / b) = ceil(n / (a b)): axis by axis or at once, a chip holds as much. */
double sm_array_local_bytes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh) {
    double elements = 1;
    for (int d = 0; d < array->rank; d++)
        elements *=
            sm_cut(einsum->index[array->dim[d].index].size, sm_dim_ways(mesh, &array->dim[d], 0));
    return elements * sm_dtype_bytes(array->dtype);
}

/* FLOPs = 2 x product of the sizes of all indices, batch, contracting and repeated ones once: the
 * convention of the dot in XLA and of the book's chapter 4 ("2 x the product of all dimensions"). A
 * lone operand without a contraction is a copy and costs none. */
double sm_einsum_flops(const sm_einsum *einsum) {
    bool contracts = false;
    double product = 2;
    for (int i = 0; i < einsum->indices; i++) {
        bool kept = false;
        if (sm_index_repeats(einsum, i) >= 0) continue;
        for (int d = 0; d < einsum->out.rank; d++) kept = kept || einsum->out.dim[d].index == i;
        contracts = contracts || (einsum->has_output && !kept);
        product *= einsum->index[i].size;
    }
    return einsum->operands > 1 || contracts ? product : 0;
}

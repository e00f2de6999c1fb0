/* The diagonal of a block: of A[I_X,I_Y] a chip has what rows and columns of its block meet on, and
 * zeros along the rest of its rows. */
#include "einsum_parts.h"

/* One dimension of the block: where it is of the whole array, and the dimension of the result that
 * it goes along with. */
typedef struct side {
    size_t offset, held, step;
    int along;
} side;

/* Where in the block an element of the diagonal is; false: another chip has it. */
static bool place_of(const side *sides, int rank, const size_t *along_offset, const size_t *at,
                     size_t *place) {
    *place = 0;
    for (int d = 0; d < rank; d++) {
        size_t whole = along_offset[sides[d].along] + at[sides[d].along];
        if (whole < sides[d].offset || whole - sides[d].offset >= sides[d].held) return false;
        *place += (whole - sides[d].offset) * sides[d].step;
    }
    return true;
}

sm_status local_diagonal(const diagonal_of *of, const sm_local_block *in, sm_local_block *out,
                         int8_t *label, sm_error *err) {
    side sides[SM_MAX_RANK];
    size_t size[SM_MAX_RANK], offset[SM_MAX_RANK], at[SM_MAX_RANK] = {0}, place;
    size_t width = sm_element_bytes(in->element);
    int rank = 0;
    const sm_mesh *mesh = &of->m->mesh;
    sm_axes all = (sm_axes)((1u << mesh->axes) - 1);
    size_t step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        size_t whole = (size_t)of->einsum->index[of->array->dim[d].index].size;
        sm_part_range r = sm_layout_range(mesh, of->layout, d, all, of->m->at, whole);
        sides[d] = (side){.offset = r.offset, .held = r.held, .step = step};
        step *= in->size[d];
    }
    for (int d = 0; d < in->rank; d++) {
        if (sm_index_repeats(of->einsum, of->array->dim[d].index) >= 0) continue;
        label[rank] = (int8_t)of->array->dim[d].index;
        offset[rank] = sides[d].offset;
        size[rank++] = in->size[d];
    }
    for (int d = 0; d < in->rank; d++) {
        int index = of->array->dim[d].index, first = sm_index_repeats(of->einsum, index);
        for (int k = 0; k < rank; k++)
            if (label[k] == (first >= 0 ? first : index)) sides[d].along = k;
    }
    sm_status status = sm_local_block_new(in->element, rank, size, out, err);
    if (status) return status;
    for (size_t i = 0, n = sm_local_block_count(out); i < n; i++) {
        if (place_of(sides, in->rank, offset, at, &place))
            memcpy((char *)out->data + i * width, (const char *)in->data + place * width, width);
        for (int k = rank - 1; k >= 0 && ++at[k] == size[k]; k--) at[k] = 0;
    }
    return SM_OK;
}

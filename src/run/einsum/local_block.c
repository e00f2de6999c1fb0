/* The block of a sharded array that one rank holds. */

#include "einsum_parts.h"
#include "memory_account.h"

static sm_status make(sm_element element, int rank, const size_t *size, void *(*room)(size_t),
                      sm_local_block *out, sm_error *err) {
    assert(rank >= 0 && rank <= SM_MAX_RANK);
    *out = (sm_local_block){.element = element, .rank = rank};
    for (int d = 0; d < rank; d++) out->size[d] = size[d];
    out->data = room((sm_local_block_count(out) + 1) * sm_element_bytes(element));
    return out->data ? SM_OK : sm_fail_memory(err);
}

static size_t local_block_room(const sm_local_block *b) {
    size_t scales = 1;
    if (!sm_element_scaled(b->element))
        return sm_local_block_count(b) * sm_element_bytes(b->element);
    for (int d = 0; d < b->rank; d++) scales *= b->size[d] / b->box[d];
    return sm_local_block_scales(b) + scales * sm_scale_bytes(b->element);
}

sm_status local_block_scaled(sm_element element, int rank, const size_t *size, const size_t *box,
                             sm_local_block *out, sm_error *err) {
    assert(rank > 0 && rank <= SM_MAX_RANK && sm_element_scaled(element));
    *out = (sm_local_block){.element = element, .rank = rank};
    for (int d = 0; d < rank; d++) {
        assert(box[d] > 0 && size[d] % box[d] == 0);
        out->size[d] = size[d];
        out->box[d] = box[d];
    }
    out->data = memory_new_cleared(local_block_room(out));
    return out->data ? SM_OK : sm_fail_memory(err);
}

sm_status local_block_raw(sm_element element, int rank, const size_t *size, sm_local_block *out,
                          sm_error *err) {
    return make(element, rank, size, memory_new, out, err);
}

sm_status sm_local_block_new(sm_element element, int rank, const size_t *size, sm_local_block *out,
                             sm_error *err) {
    return make(element, rank, size, memory_new_cleared, out, err);
}

void sm_local_block_free(sm_local_block *b) {
    memory_free(b->data);
    b->data = NULL;
}

/* ---- filling ---- */

typedef struct placed_filling {
    const sm_rank_mesh *m;
    sm_layout layout;
    size_t offset[SM_MAX_RANK], held[SM_MAX_RANK];
    sm_filling fill;
} placed_filling;

static void put(sm_local_block *b, size_t i, double value) {
    float single = (float)value;
    switch (b->element) {
    case SM_ELEMENT_F32: ((float *)b->data)[i] = single; break;
    case SM_ELEMENT_F64: ((double *)b->data)[i] = value; break;
    case SM_ELEMENT_S32: ((int32_t *)b->data)[i] = (int32_t)value; break;
    case SM_ELEMENT_S64: ((int64_t *)b->data)[i] = (int64_t)value; break;
    case SM_ELEMENT_BF16: sm_elements_write(b->element, b->data, i, 1, &single); break;
    default: break; /* scaled ones are written whole */
    }
}

static void fill_block(const placed_filling *f, sm_local_block *b) {
    size_t count = sm_local_block_count(b), position[SM_MAX_RANK];
    for (size_t i = 0; i < count; i++) {
        size_t left = i;
        bool there = true;
        for (int d = b->rank - 1; d >= 0; d--) {
            there = there && left % b->size[d] < f->held[d];
            position[d] = f->offset[d] + left % b->size[d];
            left /= b->size[d];
        }
        if (there) put(b, i, f->fill.fill(position, b->rank, f->fill.context));
    }
}

sm_status sm_local_block_of(const sm_rank_mesh *m, const sm_einsum *einsum, const sm_array *array,
                            sm_element element, const sm_filling *filling, sm_local_block *out,
                            sm_error *err) {
    placed_filling f = {.m = m, .layout = sm_layout_of(array), .fill = *filling};
    sm_axes all = (sm_axes)((1u << m->mesh.axes) - 1);
    size_t size[SM_MAX_RANK], whole[SM_MAX_RANK];
    for (int d = 0; d < array->rank; d++) {
        whole[d] = (size_t)einsum->index[array->dim[d].index].size;
        sm_part_range r = sm_layout_range(&m->mesh, &f.layout, d, all, m->at, whole[d]);
        size[d] = r.size;
        f.offset[d] = r.offset;
        f.held[d] = r.held;
    }
    sm_status status = sm_local_block_new(element, array->rank, size, out, err);
    memcpy(out->whole, whole, (size_t)array->rank * sizeof *whole);
    bool holds_zero = false; /* a partial sum is whole on the first rank of its axis */
    for (int a = 0; a < m->mesh.axes; a++)
        holds_zero = holds_zero || (f.layout.dim[a] == SM_UNREDUCED && m->at[a] > 0);
    if (!status && !holds_zero && filling->fill) fill_block(&f, out);
    return status;
}

/* The part of a sharded array that one chip holds. */
#include <assert.h>

#include "scalemodel/shard.h"

static size_t bits_of(sm_element element) {
    static const size_t bits[SM_ELEMENT_COUNT] = {SM_ELEMENTS(SM_THIRD_OF)};
    return element < SM_ELEMENT_COUNT ? bits[element] : 0;
}

size_t sm_element_bytes(sm_element element) { return bits_of(element) / 8; }

size_t sm_local_block_count(const sm_local_block *b) {
    size_t count = 1;
    for (int d = 0; d < b->rank; d++) count *= b->size[d];
    return count;
}

double sm_local_block_bytes(const sm_local_block *b) {
    double each = sm_element_scaled(b->element)
                      ? sm_scaled_element_bytes(b->element, b->rank, b->box)
                      : (double)sm_element_bytes(b->element);
    return (double)sm_local_block_count(b) * each;
}

size_t sm_scale_bytes(sm_element element) { return element == SM_ELEMENT_E2M1 ? 1 : sizeof(float); }

double sm_scaled_element_bytes(sm_element element, int rank, const size_t *box) {
    double elements = 1;
    for (int d = 0; d < rank; d++) elements *= (double)box[d];
    return (double)bits_of(element) / 8 + (double)sm_scale_bytes(element) / elements;
}

/* Where single precision may lie. */
size_t sm_local_block_scales(const sm_local_block *b) {
    size_t bytes = (sm_local_block_count(b) * bits_of(b->element) + 7) / 8;
    return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

size_t sm_layout_parts(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among) {
    size_t parts = 1;
    for (int a = 0; a < mesh->axes; a++)
        if ((among >> a & 1u) && layout->dim[a] == dim) parts *= (size_t)mesh->axis[a].size;
    return parts;
}

size_t sm_layout_part(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among,
                      const int *at) {
    size_t parts = sm_layout_parts(mesh, layout, dim, among);
    return sm_layout_range(mesh, layout, dim, among, at, parts).offset;
}

sm_part_range sm_layout_range(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among,
                              const int *at, size_t length) {
    sm_part_range r = {0, length, length}, outer = r; /* outer: where the joined ones cut */
    size_t ways = 1, part = 0;
    for (int place = 0; place < mesh->axes; place++)
        for (int a = 0; a < mesh->axes; a++) {
            if (!(among >> a & 1u) || layout->dim[a] != dim || layout->place[a] != place) continue;
            bool joins =
                mesh->axis[a].joined && sm_layout_joins(layout, a) && (among >> (a - 1) & 1u);
            if (!joins) outer = r, ways = 1, part = 0;
            ways *= (size_t)mesh->axis[a].size;
            part = part * (size_t)mesh->axis[a].size + (size_t)at[a];
            size_t size = (outer.size + ways - 1) / ways, before = size * part;
            size_t left = outer.held > before ? outer.held - before : 0;
            r = (sm_part_range){outer.offset + before, size, left < size ? left : size};
        }
    return r;
}

sm_local_block sm_local_block_shape(const sm_mesh *mesh, const sm_einsum *einsum,
                                    const sm_array *array, const sm_layout *layout,
                                    sm_element element) {
    sm_local_block b = {.element = element, .rank = array->rank};
    assert(array->rank <= SM_MAX_RANK);
    for (int d = 0; d < array->rank; d++) {
        double whole = einsum->index[array->dim[d].index].size;
        b.whole[d] = (size_t)whole;
        b.size[d] = (size_t)sm_cut(whole, (double)sm_layout_parts(mesh, layout, d, (sm_axes)~0u));
    }
    return b;
}

/* Axes of more than one chip that stand before this one on its dimension. */
static int before(const sm_mesh *mesh, const sm_layout *l, int axis) {
    int n = 0;
    for (int i = 0; i < mesh->axes; i++)
        n += mesh->axis[i].size > 1 && l->dim[i] == l->dim[axis] && l->place[i] < l->place[axis];
    return n;
}

bool sm_layout_same(const sm_mesh *mesh, const sm_layout *a, const sm_layout *b) {
    for (int i = 0; i < mesh->axes; i++) {
        if (mesh->axis[i].size <= 1) continue;
        if (a->dim[i] != b->dim[i]) return false;
        if (a->dim[i] >= 0 && before(mesh, a, i) != before(mesh, b, i)) return false;
    }
    return true;
}

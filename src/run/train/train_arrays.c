/* Blocks of the training runtime: sizes and places under a layout, moves, sums. */
#include <string.h>

#include "local_block.h"
#include "train_parts.h"

static sm_axes every_axis(const sm_trainer *t) { return (sm_axes)((1u << t->mesh->mesh.axes) - 1); }

double train_degree(const sm_trainer *t, sm_axes axes) {
    return sm_mesh_size(&t->mesh->mesh, axes);
}

size_t train_local_size(const sm_trainer *t, double whole, const sm_layout *layout, int dim) {
    return (size_t)whole / parts_of(&t->mesh->mesh, layout, dim, every_axis(t));
}

void train_offsets(const sm_trainer *t, const sm_layout *layout, const sm_local_block *b,
                   size_t *offset) {
    for (int d = 0; d < b->rank; d++)
        offset[d] = b->size[d] * part_of(&t->mesh->mesh, layout, d, every_axis(t), t->mesh->at);
}

static void sizes_like(const sm_trainer *t, const sm_einsum *e, const sm_array *array,
                       const sm_layout *layout, size_t *size) {
    for (int d = 0; d < array->rank; d++)
        size[d] = train_local_size(t, e->index[array->dim[d].index].size, layout, d);
}

sm_status train_block_like(const sm_trainer *t, const sm_einsum *e, const sm_array *array,
                           const sm_layout *layout, sm_element element, sm_local_block *out,
                           sm_error *err) {
    size_t size[SM_MAX_RANK];
    sizes_like(t, e, array, layout, size);
    return sm_local_block_new(element, array->rank, size, out, err);
}

sm_status train_raw_block_like(const sm_trainer *t, const sm_einsum *e, const sm_array *array,
                               const sm_layout *layout, sm_element element, sm_local_block *out,
                               sm_error *err) {
    size_t size[SM_MAX_RANK];
    sizes_like(t, e, array, layout, size);
    return local_block_raw(element, array->rank, size, out, err);
}

sm_status train_block_copy(const sm_local_block *from, sm_local_block *to, sm_error *err) {
    sm_status status = local_block_raw(from->element, from->rank, from->size, to, err);
    if (!status)
        memcpy(to->data, from->data, sm_local_block_count(from) * sm_element_bytes(from->element));
    return status;
}

sm_status train_block_add(sm_local_block *to, sm_local_block *from, sm_error *err) {
    if (!to->data) {
        *to = *from;
        from->data = NULL;
        return SM_OK;
    }
    size_t n = sm_local_block_count(to);
    sm_status status = n == sm_local_block_count(from) && to->element == SM_ELEMENT_F32
                           ? SM_OK
                           : sm_fail(err, SM_INTERNAL, "two parts of a gradient differ in size");
    float *x = to->data;
    const float *y = from->data;
    for (size_t i = 0; !status && i < n; i++) x[i] += y[i];
    sm_local_block_free(from);
    return status;
}

sm_status train_block_move(sm_trainer *t, const sm_lowering *low, int array, sm_layout *layout,
                           sm_local_block *block, sm_error *err) {
    for (int i = 0; i < low->steps; i++) {
        const sm_step *step = &low->step[i];
        sm_local_block moved;
        if (step->array != array || step->kind == SM_STEP_EINSUM) continue;
        int tensor = t->busy ? t->busy->result : -1;
        bool gradient = t->busy && t->busy->kind != SM_TASK_FORWARD;
        sm_status status = train_move(t, tensor, gradient, step, layout, block, &moved, err);
        if (status) return status;
        sm_local_block_free(block);
        *block = moved;
        *layout = step->after;
    }
    return SM_OK;
}

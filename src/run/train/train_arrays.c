/* Blocks of the training runtime: sizes and places under a layout, moves, sums. */
#include <string.h>

#include "local_block.h"
#include "train_parts.h"

static sm_axes every_axis(const sm_trainer *t) { return (sm_axes)((1u << t->mesh->mesh.axes) - 1); }

double train_degree(const sm_trainer *t, sm_axes axes) {
    return sm_mesh_size(&t->mesh->mesh, axes);
}

size_t train_local_size(const sm_trainer *t, double whole, const sm_layout *layout, int dim) {
    return (size_t)whole / sm_layout_parts(&t->mesh->mesh, layout, dim, every_axis(t));
}

void train_offsets(const sm_trainer *t, const sm_layout *layout, const sm_local_block *b,
                   size_t *offset) {
    for (int d = 0; d < b->rank; d++)
        offset[d] =
            b->size[d] * sm_layout_part(&t->mesh->mesh, layout, d, every_axis(t), t->mesh->at);
}

/* Which chip gets whose block in a permute. Chips are numbered, class by class, by the axes that a
 * layout has there: a class is a dimension of the array, the copies of a block, or partial sums.
 * The chip that has a number before the permute sends to the one that has it afterwards. */
#include "scalemodel/shard.h"

enum { COPIES = SM_MAX_RANK, SUMS };

static int class_of(const sm_layout *layout, int axis) {
    int dim = layout->dim[axis];
    return dim >= 0 ? dim : dim == SM_REPLICATED ? COPIES : SUMS;
}

/* The axes of a class, the minor one first. */
static int axes_in(const sm_mesh *mesh, sm_axes axes, const sm_layout *layout, int class,
                   int8_t *list) {
    int n = 0;
    for (int a = mesh->axes - 1; a >= 0; a--) {
        if (!(axes >> a & 1u) || class_of(layout, a) != class) continue;
        int at = n++;
        for (; class < COPIES && at > 0 && layout->place[list[at - 1]] < layout->place[a]; at--)
            list[at] = list[at - 1];
        list[at] = (int8_t)a;
    }
    return n;
}

void sm_permutation_of(const sm_mesh *mesh, sm_axes axes, const sm_layout *before,
                       const sm_layout *after, sm_permutation *p) {
    *p = (sm_permutation){.axes = 0};
    for (int k = 0; k <= SUMS; k++) {
        int8_t list[SM_MAX_AXES];
        int weight = 1, n = axes_in(mesh, axes, before, k, list);
        for (int i = 0; i < n; i++) {
            p->class_of[list[i]] = (int8_t)k;
            p->weight[list[i]] = weight;
            weight *= mesh->axis[list[i]].size;
        }
        n = axes_in(mesh, axes, after, k, list);
        for (int i = 0; i < n; i++) {
            p->axis[p->axes] = list[i];
            p->size[p->axes] = mesh->axis[list[i]].size;
            p->class_after[p->axes++] = (int8_t)k;
        }
    }
}

void sm_permutation_apply(const sm_permutation *p, const int *at, int *to) {
    int block[SUMS + 1] = {0};
    for (int i = 0; i < p->axes; i++)
        block[p->class_of[p->axis[i]]] += p->weight[p->axis[i]] * at[p->axis[i]];
    for (int i = 0; i < p->axes; i++) {
        int *rest = &block[p->class_after[i]];
        to[p->axis[i]] = *rest % p->size[i];
        *rest /= p->size[i];
    }
}

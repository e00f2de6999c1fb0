/* Which chip gets whose block in a permute, or which piece of it. Chips are numbered, class by
 * class, by the axes that a layout has there: a class is a dimension of the array, the copies of a
 * block, or partial sums. The chip that has a number before the permute sends to the one that has
 * it afterwards. */
#include "scalemodel/shard.h"
#include <math.h>

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

bool sm_permutation_apply(const sm_permutation *p, const int *at, const int *shift, int *to) {
    int block[SUMS + 1] = {0};
    bool beyond = false;
    for (int i = 0; i < p->axes; i++)
        block[p->class_of[p->axis[i]]] += p->weight[p->axis[i]] * at[p->axis[i]];
    for (int d = 0; shift && d < COPIES; d++) beyond |= (block[d] += shift[d]) < 0;
    for (int i = 0; !beyond && i < p->axes; i++) {
        int *rest = &block[p->class_after[i]];
        to[p->axis[i]] = *rest % p->size[i];
        *rest /= p->size[i];
    }
    for (int d = 0; d < COPIES; d++) beyond |= block[d] != 0;
    return !beyond;
}

/* ---- pieces ---- */

/* How a dimension is cut: into so many parts of such a size each time, major first. */
typedef struct cuts {
    int axes, parts, chips[SM_MAX_AXES];
    double length, size[SM_MAX_AXES];
} cuts;

static cuts cuts_of(const int *chips, sm_axes joined, const sm_layout *l, int dim, double length) {
    cuts c = {.parts = 1, .length = length};
    int at[SM_MAX_AXES], n = 0;
    for (int a = 0; a < SM_MAX_AXES; a++)
        if (l->dim[a] == dim) at[(int)l->place[a]] = a, n++;
    for (int i = 0; i < n; i++) {
        int a = at[i];
        if (chips[a] == 1) continue;
        if (!(joined >> a & 1) || !sm_layout_joins(l, a)) c.chips[c.axes++] = 1;
        c.chips[c.axes - 1] *= chips[a];
        c.parts *= chips[a];
    }
    for (int i = 0; i < c.axes; i++) c.size[i] = sm_cut(i ? c.size[i - 1] : length, c.chips[i]);
    return c;
}

/* Where a block begins, and where what it holds of the dimension ends. */
static double begin_of(const cuts *c, int block, double *end) {
    double begin = 0, last = c->length;
    for (int i = 0, below = c->parts; i < c->axes; i++, block %= below) {
        below /= c->chips[i];
        int part = block / below;
        begin += c->size[i] * part;
        last = last < begin + c->size[i] ? last : begin + c->size[i];
    }
    *end = last;
    return begin;
}

static bool add_piece(sm_pieces *pieces, int shift, double width) {
    int i = 0;
    while (i < pieces->n && pieces->shift[i] != shift) i++;
    if (i == SM_MOST_PIECES) return false;
    if (i == pieces->n) pieces->width[pieces->n++] = 0;
    pieces->shift[i] = shift;
    pieces->width[i] = fmax(pieces->width[i], width);
    return true;
}

/* Blocks that hold something follow each other, so that the first old one that reaches into a new
 * one is none before that of the block before it; those between that hold nothing end none. */
bool sm_layout_pieces(const int *chips, sm_axes joined, const sm_layout *before,
                      const sm_layout *after, int dim, double length, sm_pieces *pieces) {
    enum { MOST_BLOCKS = 8192 };
    const cuts old = cuts_of(chips, joined, before, dim, length),
               fresh = cuts_of(chips, joined, after, dim, length);
    bool alike = old.axes == fresh.axes;
    for (int i = 0; alike && i < old.axes; i++) alike = old.chips[i] == fresh.chips[i];
    *pieces = (sm_pieces){1, {0}, {sm_cut(length, old.parts)}};
    if (alike || fmod(length, old.parts) == 0) return true;
    pieces->n = 0;
    bool few = old.parts <= MOST_BLOCKS;
    for (int k = 0, first = 0; few && k < fresh.parts; k++) {
        double begin, end, from, to;
        begin = begin_of(&fresh, k, &end);
        for (int i = first; end > begin && few && i < old.parts; i++) {
            from = begin_of(&old, i, &to);
            if (to <= from) continue;
            if (from >= end) break;
            if (to <= begin) first = i;
            else few = add_piece(pieces, i - k, fmin(to, end) - fmax(from, begin));
        }
    }
    return few;
}

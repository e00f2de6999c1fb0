/* Resharding as steps of a lowering: the route of least bytes, move by move. */
#include "reshard.h"
#include <string.h>

/* ---- where axes stand ---- */

int sm_axis_place(const sm_array *array, int axis) {
    if (array->unreduced >> axis & 1) return SM_UNREDUCED;
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            if (array->dim[d].axis[i] == axis) return d;
    return SM_REPLICATED;
}

sm_layout sm_layout_of(const sm_array *array) {
    sm_layout layout;
    memset(&layout, SM_REPLICATED, sizeof layout);
    for (int a = 0; a < SM_MAX_AXES; a++)
        if (array->unreduced >> a & 1) layout.dim[a] = SM_UNREDUCED;
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++) {
            layout.dim[array->dim[d].axis[i]] = (int8_t)d;
            layout.place[array->dim[d].axis[i]] = (int8_t)i;
        }
    return layout;
}

void sm_dim_append(sm_dim *dim, int axis) { dim->axis[dim->n_axes++] = (uint8_t)axis; }

/* ---- steps ---- */

void sm_lowering_append(sm_lowering *lowering, const sm_step *step, double live_bytes, bool *full) {
    if (lowering->steps == SM_MAX_STEPS) {
        *full = true;
        return;
    }
    lowering->step[lowering->steps++] = *step;
    if (live_bytes > lowering->peak_bytes) lowering->peak_bytes = live_bytes;
}

/* A move from one layout to the next. */
typedef struct leg {
    sm_reshard *r;
    const sm_journey *j;
    const sm_array *array;
    sm_layout before;
} leg;

/* The index of the one dimension that these axes shard; -1 when there is none or several. */
static int index_of(const leg *l, const sm_layout *layout, sm_axes axes) {
    int dim = -1;
    for (int a = 0; a < l->j->axes; a++) {
        if (!(axes >> a & 1) || layout->dim[a] < 0) continue;
        if (dim >= 0 && dim != layout->dim[a]) return -1;
        dim = layout->dim[a];
    }
    return dim >= 0 ? l->array->dim[dim].index : -1;
}

static sm_axes moved_axes(const sm_journey *j, const sm_layout *before, const sm_layout *after) {
    unsigned set = 0;
    for (int a = 0; a < j->axes; a++)
        if (before->dim[a] != after->dim[a]) set |= 1u << a;
    return (sm_axes)set;
}

/* Record a move. While it runs its input (the stored array or the newest version) and its result
 * are both live. */
static void emit(leg *l, sm_move move, const sm_layout *after) {
    static const sm_collective ops[] = {
        [SM_MOVE_SLICE] = SM_COLLECTIVE_COUNT, [SM_MOVE_REDUCE_SCATTER] = SM_REDUCE_SCATTER,
        [SM_MOVE_ALL_REDUCE] = SM_ALL_REDUCE,  [SM_MOVE_ALL_TO_ALL] = SM_ALL_TO_ALL,
        [SM_MOVE_ALL_GATHER] = SM_ALL_GATHER,  [SM_MOVE_PERMUTE] = SM_PERMUTE};
    sm_reshard *r = l->r;
    double held = sm_journey_local_bytes(l->j, &l->before),
           fresh = sm_journey_local_bytes(l->j, after);
    bool slice = move == SM_MOVE_SLICE, permute = move == SM_MOVE_PERMUTE;
    sm_axes axes = permute ? sm_layout_displaced(l->j, &l->before, after)
                           : moved_axes(l->j, &l->before, after);
    double chips = sm_mesh_size(r->mesh, axes), box = sm_journey_box_bytes(l->j, &l->before, after);
    const sm_step step = {.kind = slice ? SM_STEP_SLICE : SM_STEP_COLLECTIVE,
                          .op = ops[move],
                          .array = r->array,
                          .axes = axes,
                          .from = slice || permute ? -1 : index_of(l, &l->before, axes),
                          .to = permute ? -1 : index_of(l, after, axes),
                          .bytes = move == SM_MOVE_SLICE        ? 0
                                   : move == SM_MOVE_ALL_REDUCE ? held
                                   : permute ? sm_journey_permute_bytes(l->j, &l->before, after)
                                   : move == SM_MOVE_ALL_TO_ALL ? box * chips * chips
                                                                : box * chips,
                          .in_one = sm_journey_padded(l->j, &l->before, after) ||
                                    sm_array_is_diagonal(l->array, r->einsum),
                          .before = l->before,
                          .after = *after};
    sm_lowering_append(r->lowering, &step,
                       r->other_bytes + r->stored_bytes + r->version_bytes + fresh, &r->full);
    r->version_bytes = fresh;
    l->before = *after;
}

static bool assists(const leg *l, int axis) {
    return l->before.dim[axis] == SM_REPLICATED && l->j->chips[axis] > 1 &&
           (l->r->assisting >> axis & 1);
}

/* Idle axes that assist slice one of the dimensions that will be gathered, to be gathered with it.
 */
static void slice_to_assist(leg *l, const sm_layout *after) {
    const sm_journey *j = l->j;
    for (int d = 0; d < j->rank; d++) {
        sm_layout next = l->before;
        int places = 0, assisting = 0;
        bool gathered = false;
        double ways = 1;
        for (int a = 0; a < j->axes; a++) {
            bool here = l->before.dim[a] == d;
            bool idle = assists(l, a);
            gathered = gathered || (here && after->dim[a] != d);
            places += here;
            assisting += idle;
            if (here || idle) ways *= j->chips[a];
        }
        if (!gathered || !assisting || fmod(j->size[d], ways) != 0) continue;
        for (int a = 0; a < j->axes; a++)
            if (assists(l, a)) {
                next.dim[a] = (int8_t)d;
                next.place[a] = (int8_t)places++;
            }
        emit(l, SM_MOVE_SLICE, &next);
        return;
    }
}

/* ---- the journey ---- */

/* Axes of one chip shard nothing. */
static sm_layout real_layout(const sm_mesh *mesh, const sm_array *array) {
    sm_array real = *array;
    real.unreduced = sm_mesh_real_axes(mesh, array->unreduced);
    for (int d = 0; d < real.rank; d++) {
        sm_dim *dim = &real.dim[d];
        dim->n_axes = 0;
        for (int i = 0; i < array->dim[d].n_axes; i++)
            if (mesh->axis[array->dim[d].axis[i]].size > 1)
                sm_dim_append(dim, array->dim[d].axis[i]);
    }
    return sm_layout_of(&real);
}

static sm_move move_of(const sm_step *step) {
    if (step->kind == SM_STEP_SLICE) return SM_MOVE_SLICE;
    switch (step->op) {
    case SM_REDUCE_SCATTER: return SM_MOVE_REDUCE_SCATTER;
    case SM_ALL_REDUCE: return SM_MOVE_ALL_REDUCE;
    case SM_ALL_TO_ALL: return SM_MOVE_ALL_TO_ALL;
    case SM_PERMUTE: return SM_MOVE_PERMUTE;
    default: return SM_MOVE_ALL_GATHER;
    }
}

/* Sums that nobody adds on the way are not in the layouts of the move. */
static bool follow(leg *l, const sm_lowering *move) {
    for (int s = 0; s < move->steps; s++) {
        const sm_step *step = &move->step[s];
        sm_layout after =
            move->parts > 0 ? step->after : sm_lowering_layout(l->r->as, &step->after);
        for (int a = 0; a < l->j->axes; a++)
            if (l->j->from.dim[a] == SM_UNREDUCED && l->j->to.dim[a] == SM_UNREDUCED)
                after.dim[a] = SM_UNREDUCED;
        if (step->kind != SM_STEP_EINSUM) emit(l, move_of(step), &after);
    }
    return sm_layout_same(l->r->mesh, &l->before, &l->j->to);
}

bool sm_reshard_run(sm_reshard *r, const sm_array *from, const sm_array *to) {
    sm_journey j;
    memset(&j, 0, sizeof j);
    j.axes = r->mesh->axes;
    j.rank = from->rank;
    j.element_bytes = sm_dtype_bytes(from->dtype);
    j.from = real_layout(r->mesh, from);
    j.to = real_layout(r->mesh, to);
    j.any_order = r->mesh->any_order;
    for (int a = 0; a < j.axes; a++) {
        j.chips[a] = r->mesh->axis[a].size;
        if (r->mesh->axis[a].joined) j.joined |= (sm_axes)(1u << a);
    }
    for (int d = 0; d < j.rank; d++) j.size[d] = r->einsum->index[from->dim[d].index].size;
    j.uneven = sm_journey_uneven(&j);
    leg l = {r, &j, from, j.from};
    sm_route route;
    if (r->move) return follow(&l, r->move);
    if (!sm_routes_find(r->mesh->routes, &j, &route)) return false;
    for (int i = 0; i < route.moves; i++) {
        if (route.move[i] == SM_MOVE_ALL_GATHER) slice_to_assist(&l, &route.after[i]);
        emit(&l, route.move[i], &route.after[i]);
    }
    r->bounded = r->bounded && route.bounded;
    return true;
}

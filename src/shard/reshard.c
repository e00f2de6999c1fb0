/* Resharding as a small machine: look at where each axis is and where it should be, make the first
 * move that is possible in the order of what keeps arrays small, and repeat.
 *
 *   nowhere -> dimension     slice            (free)
 *   {U}     -> dimension     reduce-scatter
 *   {U}     -> nowhere       all-reduce
 *   dim     -> other dim     all-to-all
 *   dim     -> nowhere       all-gather
 *   order within a dimension permute
 *
 * In "I_XY" X is major, as in JAX's PartitionSpec(('X','Y')): chip (x,y) holds block x*|Y|+y. Axes
 * that leave must be the minor ones, or the blocks that a chip then holds would not lie side by
 * side; where they are major the blocks first change chips, a permute of what is still the smaller
 * array. */
#include "reshard.h"
#include <math.h>
#include <string.h>

typedef struct move {
    sm_reshard *r;
    sm_array *state;
    const sm_array *target;
} move;

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

static sm_axes set_of(const sm_dim *dim) {
    unsigned set = 0;
    for (int i = 0; i < dim->n_axes; i++) set |= 1u << dim->axis[i];
    return (sm_axes)set;
}

/* The axes of an array that stand at a place: a dimension, SM_REPLICATED or SM_UNREDUCED. */
static sm_axes set_at(const sm_array *array, int place, int axes) {
    if (place >= 0) return set_of(&array->dim[place]);
    if (place == SM_UNREDUCED) return array->unreduced;
    unsigned idle = ((1u << axes) - 1) & ~(unsigned)array->unreduced;
    for (int d = 0; d < array->rank; d++) idle &= ~(unsigned)set_of(&array->dim[d]);
    return (sm_axes)idle;
}

static sm_axes moving(const move *m, int from, int to) {
    int axes = m->r->mesh->axes;
    return (sm_axes)(set_at(m->state, from, axes) & set_at(m->target, to, axes));
}

static bool holds(sm_axes set, int axis) { return set >> axis & 1; }

bool sm_axes_divide(const sm_einsum *einsum, const sm_mesh *mesh, const sm_dim *dim, sm_axes more) {
    double ways = sm_mesh_size(mesh, (sm_axes)(set_of(dim) | more));
    return fmod(einsum->index[dim->index].size, ways) == 0;
}

/* ---- changing the lists of axes ---- */

void sm_dim_append(sm_dim *dim, int axis) { dim->axis[dim->n_axes++] = (uint8_t)axis; }

static void remove_axes(sm_dim *dim, sm_axes set) {
    int n = 0;
    for (int i = 0; i < dim->n_axes; i++)
        if (!holds(set, dim->axis[i])) dim->axis[n++] = dim->axis[i];
    dim->n_axes = n;
}

/* New axes become minor, among themselves in the order that the target has them. */
static void append_axes(sm_dim *dim, const sm_dim *target, sm_axes set) {
    for (int i = 0; i < target->n_axes; i++)
        if (holds(set, target->axis[i])) sm_dim_append(dim, target->axis[i]);
}

/* ---- emitting steps ---- */

void sm_lowering_append(sm_lowering *lowering, const sm_step *step, double live_bytes, bool *full) {
    if (lowering->steps == SM_MAX_STEPS) {
        *full = true;
        return;
    }
    lowering->step[lowering->steps++] = *step;
    if (live_bytes > lowering->peak_bytes) lowering->peak_bytes = live_bytes;
}

static double local_bytes(const move *m) {
    return sm_array_local_bytes(m->state, m->r->einsum, m->r->mesh);
}

/* The state has made the move: record it, unless it moved nothing. While the step runs its input
 * (the stored array or the newest version) and its result are both live. */
static void emit(const move *m, sm_step step) {
    sm_reshard *r = m->r;
    step.axes = sm_mesh_real_axes(r->mesh, step.axes);
    if (step.axes == 0) return;
    step.array = r->array;
    step.after = sm_layout_of(m->state);
    double fresh = local_bytes(m);
    double live = r->other_bytes + r->stored_bytes + r->version_bytes + fresh;
    sm_lowering_append(r->lowering, &step, live, &r->full);
    r->version_bytes = fresh;
}

static sm_step collective(sm_collective op, sm_axes axes, int from, int to, double bytes) {
    return (sm_step){
        .kind = SM_STEP_COLLECTIVE, .op = op, .axes = axes, .from = from, .to = to, .bytes = bytes};
}

/* ---- permute ---- */

/* Axes of a dimension in the order: those that stay, as the target has them; those to be gathered;
 * those to leave for other dimensions; and last, minor, those that leave now. */
static void leaving_order(const move *m, int d, sm_axes now, sm_dim *ideal) {
    const sm_dim *dim = &m->state->dim[d];
    sm_axes stay = (sm_axes)(set_of(dim) & set_of(&m->target->dim[d]));
    sm_axes gather = (sm_axes)(moving(m, d, SM_REPLICATED) & ~now);
    sm_axes later = (sm_axes)(set_of(dim) & ~(stay | gather | now));
    const sm_axes group[] = {gather, later, now};
    *ideal = *dim;
    ideal->n_axes = 0;
    append_axes(ideal, &m->target->dim[d], stay);
    for (int g = 0; g < 3; g++) append_axes(ideal, dim, group[g]);
}

/* The axes of a list that have more than one chip; returns how many. */
static int real_list(const sm_mesh *mesh, const sm_dim *dim, uint8_t *axis) {
    int n = 0;
    for (int i = 0; i < dim->n_axes; i++)
        if (mesh->axis[dim->axis[i]].size > 1) axis[n++] = dim->axis[i];
    return n;
}

/* The axes along which blocks change chips when one order becomes the other: all from the first
 * difference to the last, for in between the digits of a block's number mix where sizes differ. */
static sm_axes displaced(const sm_mesh *mesh, const sm_dim *a, const sm_dim *b) {
    uint8_t before[SM_MAX_AXES] = {0}, after[SM_MAX_AXES] = {0};
    int n = real_list(mesh, a, before), first = 0, last = n - 1;
    real_list(mesh, b, after);
    while (first < n && before[first] == after[first]) first++;
    while (last > first && before[last] == after[last]) last--;
    unsigned set = 0;
    for (int i = first; i < n && i <= last; i++) set |= 1u << before[i];
    return (sm_axes)set;
}

static sm_axes reorder(const move *m, int d, const sm_dim *order) {
    sm_axes set = displaced(m->r->mesh, &m->state->dim[d], order);
    m->state->dim[d] = *order;
    return set;
}

static bool is_minor(const sm_mesh *mesh, const sm_dim *dim, sm_axes set) {
    bool seen = false;
    for (int i = 0; i < dim->n_axes; i++) {
        if (mesh->axis[dim->axis[i]].size == 1) continue;
        bool in = holds(set, dim->axis[i]);
        if (seen && !in) return false;
        seen = in;
    }
    return true;
}

/* Make the axes of `set` the minor ones of every dimension, by one permute where they are not. */
static void make_minor(const move *m, sm_axes set) {
    sm_axes changed = 0;
    for (int d = 0; d < m->state->rank; d++) {
        sm_dim order;
        if (is_minor(m->r->mesh, &m->state->dim[d], (sm_axes)(set & set_of(&m->state->dim[d]))))
            continue;
        leaving_order(m, d, set, &order);
        changed |= reorder(m, d, &order);
    }
    if (changed != 0) emit(m, collective(SM_PERMUTE, changed, -1, -1, local_bytes(m)));
}

/* ---- the moves; each returns whether it changed the state ---- */

static void emit_slice(const move *m, sm_axes set, int d) {
    emit(m, (sm_step){.kind = SM_STEP_SLICE,
                      .op = SM_COLLECTIVE_COUNT,
                      .axes = set,
                      .from = -1,
                      .to = m->state->dim[d].index});
}

static bool slice(const move *m) {
    for (int d = 0; d < m->state->rank; d++) {
        sm_axes set = moving(m, SM_REPLICATED, d);
        if (set == 0 || !sm_axes_divide(m->r->einsum, m->r->mesh, &m->state->dim[d], set)) continue;
        append_axes(&m->state->dim[d], &m->target->dim[d], set);
        emit_slice(m, set, d);
        return true;
    }
    return false;
}

static bool reduce_scatter(const move *m) {
    for (int d = 0; d < m->state->rank; d++) {
        sm_axes set = moving(m, SM_UNREDUCED, d);
        if (set == 0 || !sm_axes_divide(m->r->einsum, m->r->mesh, &m->state->dim[d], set)) continue;
        double before = local_bytes(m);
        m->state->unreduced &= (sm_axes)~set;
        append_axes(&m->state->dim[d], &m->target->dim[d], set);
        emit(m, collective(SM_REDUCE_SCATTER, set, -1, m->state->dim[d].index, before));
        return true;
    }
    return false;
}

static bool all_reduce(const move *m) {
    sm_axes set = moving(m, SM_UNREDUCED, SM_REPLICATED);
    if (set == 0) return false;
    m->state->unreduced &= (sm_axes)~set;
    emit(m, collective(SM_ALL_REDUCE, set, -1, -1, local_bytes(m)));
    return true;
}

static bool exchange(const move *m, int from, int to) {
    sm_dim *source = &m->state->dim[from], *sink = &m->state->dim[to];
    sm_axes set = moving(m, from, to);
    if (from == to || set == 0 || !sm_axes_divide(m->r->einsum, m->r->mesh, sink, set))
        return false;
    make_minor(m, set);
    double bytes = local_bytes(m) * sm_mesh_size(m->r->mesh, set);
    remove_axes(source, set);
    append_axes(sink, &m->target->dim[to], set);
    emit(m, collective(SM_ALL_TO_ALL, set, source->index, sink->index, bytes));
    return true;
}

static bool all_to_all(const move *m) {
    for (int from = 0; from < m->state->rank; from++)
        for (int to = 0; to < m->state->rank; to++)
            if (exchange(m, from, to)) return true;
    return false;
}

static bool gather(const move *m, sm_axes set) {
    if (set == 0) return false;
    make_minor(m, set);
    int from = -1, touched = 0;
    for (int d = 0; d < m->state->rank; d++)
        if ((set_of(&m->state->dim[d]) & set) != 0) {
            from = m->state->dim[d].index;
            touched++;
            remove_axes(&m->state->dim[d], set);
        }
    emit(m, collective(SM_ALL_GATHER, set, touched == 1 ? from : -1, -1, local_bytes(m)));
    return true;
}

/* Idle axes that assist slice one of the dimensions that will be gathered, to be gathered with it.
 */
static sm_axes slice_to_assist(const move *m) {
    sm_axes idle = (sm_axes)(moving(m, SM_REPLICATED, SM_REPLICATED) & m->r->assisting);
    for (int d = 0; d < m->state->rank; d++) {
        sm_dim *dim = &m->state->dim[d];
        if (idle == 0 || moving(m, d, SM_REPLICATED) == 0 ||
            !sm_axes_divide(m->r->einsum, m->r->mesh, dim, idle))
            continue;
        for (int a = 0; a < m->r->mesh->axes; a++)
            if (holds(idle, a)) sm_dim_append(dim, a);
        emit_slice(m, idle, d);
        return idle;
    }
    return 0;
}

static bool all_gather(const move *m) {
    unsigned set = 0;
    for (int d = 0; d < m->state->rank; d++) set |= moving(m, d, SM_REPLICATED);
    if (set != 0) set |= slice_to_assist(m);
    return gather(m, (sm_axes)set);
}

/* Two dimensions that would exchange axes, neither of them divisible by its own and the newcomers:
 * gather one, and slice it later. */
static bool break_deadlock(const move *m) {
    for (int from = 0; from < m->state->rank; from++)
        for (int to = 0; to < m->state->rank; to++)
            if (from != to && gather(m, moving(m, from, to))) return true;
    return false;
}

static bool permute(const move *m) {
    sm_axes changed = 0;
    for (int d = 0; d < m->state->rank; d++) changed |= reorder(m, d, &m->target->dim[d]);
    if (changed != 0) emit(m, collective(SM_PERMUTE, changed, -1, -1, local_bytes(m)));
    return false;
}

/* Ends: each move brings an axis nearer to its place, and a gathered axis is never gathered again.
 */
void sm_reshard_run(sm_reshard *r, sm_array *state, const sm_array *target) {
    const move m = {r, state, target};
    while (slice(&m) || reduce_scatter(&m) || all_reduce(&m) || all_to_all(&m) || all_gather(&m) ||
           break_deadlock(&m) || permute(&m))
        continue;
}

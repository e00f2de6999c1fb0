/* lowering_cost: the steps of a lowered einsum in sequence, or with one collective inside the
 * einsum. */
#include "lowering_local.h"
#include <assert.h>

static double local_size(const sm_lowering_input *input, const sm_lowering *lowering, int index) {
    double ways = 1;
    for (int a = 0; a < input->mesh->axes; a++)
        if (lowering->at[a] == index) ways *= input->mesh->axis[a].size;
    return sm_cut(input->einsum->index[index].size, ways);
}

/* Kept in the output and in one side only: rows or columns; in both: batch; not kept: contracted.
 */
static sm_product_shape shape_of(const sm_lowering_input *input, const sm_lowering *lowering,
                                 int cut, double chunks) {
    const sm_einsum *einsum = input->einsum;
    sm_product_shape shape = {1.0, 1.0, 1.0, 1.0};
    for (int i = 0; i < einsum->indices; i++) {
        double size = local_size(input, lowering, i) / (i == cut ? chunks : 1.0);
        if (sm_index_repeats(einsum, i) >= 0) continue;
        bool first = sm_array_has(&einsum->in[0], i), later = false;
        for (int o = 1; o < einsum->operands; o++) later = later || sm_array_has(&einsum->in[o], i);
        if (!sm_array_has(&einsum->out, i)) shape.k *= size;
        else if (first && later) shape.batch *= size;
        else if (first) shape.m *= size;
        else shape.n *= size;
    }
    return shape;
}

sm_product_shape sm_lowering_product(const sm_lowering_input *input, const sm_lowering *lowering) {
    return shape_of(input, lowering, -1, 1.0);
}

static double array_bytes(const sm_lowering_input *input, const sm_lowering *lowering,
                          const sm_array *array, int cut, double chunks) {
    double size[SM_MAX_RANK];
    for (int d = 0; d < array->rank; d++) {
        int index = array->dim[d].index;
        size[d] = local_size(input, lowering, index) / (index == cut ? chunks : 1.0);
    }
    return sm_array_elements_read(array, input->einsum, size) * sm_dtype_bytes(array->dtype);
}

double lowering_chunk_bytes(const sm_lowering_input *input, const sm_lowering *lowering, int cut,
                            double chunks) {
    double bytes = array_bytes(input, lowering, &input->einsum->out, cut, chunks);
    for (int o = 0; o < input->einsum->operands; o++)
        bytes += array_bytes(input, lowering, &input->einsum->in[o], cut, chunks);
    return bytes;
}

double lowering_local_work(const sm_lowering_input *input, const sm_lowering *lowering,
                           double flops, double *bytes, int cut, double chunks) {
    const sm_einsum *e = input->einsum;
    if (input->work == SM_LOCAL_PRODUCT) return flops;
    sm_product_shape s = shape_of(input, lowering, cut, chunks);
    if (input->work == SM_LOCAL_VECTOR) return input->vector_flops * s.batch * s.m * s.n * s.k;
    /* the rows found are read, not the table */
    if (input->work == SM_LOCAL_LOOKUP)
        *bytes += array_bytes(input, lowering, &e->out, cut, chunks) -
                  array_bytes(input, lowering, &e->in[e->operands - 1], cut, chunks);
    /* the rows that change are read and written, not all */
    if (input->work == SM_LOCAL_SCATTER)
        *bytes += 2 * array_bytes(input, lowering, &e->in[e->operands - 1], cut, chunks) -
                  array_bytes(input, lowering, &e->out, cut, chunks);
    if (input->work == SM_LOCAL_NOTHING) *bytes = 0.0;
    return 0.0;
}

sm_op_cost lowering_local_cost(const sm_lowering_input *input, const sm_lowering *lowering,
                               double flops, double bytes, int cut, double chunks) {
    const sm_chip *chip = &input->system->chip;
    sm_product_shape s = shape_of(input, lowering, cut, chunks);
    bool elementwise = s.k <= 1.0; /* nothing is summed: the vector unit does it */
    bool moved = lowering->moves_only && input->work == SM_LOCAL_PRODUCT;
    flops = lowering_local_work(input, lowering, flops, &bytes, cut, chunks);
    if (moved || input->work == SM_LOCAL_NOTHING) return (sm_op_cost){.lower_s = 0.0};
    if (flops <= 0.0 || elementwise || input->work != SM_LOCAL_PRODUCT)
        return sm_vector_cost(chip, input->calibration, flops, bytes);
    return sm_product_cost(chip, input->calibration, input->compute, s, bytes);
}

/* ---- which collectives can run inside the einsum ---- */

static int einsum_step(const sm_lowering *lowering) {
    for (int s = 0; s < lowering->steps; s++)
        if (lowering->step[s].kind == SM_STEP_EINSUM) return s;
    return -1;
}

static bool is_collective(const sm_step *step, sm_collective op) {
    return step->kind == SM_STEP_COLLECTIVE && step->op == op;
}

/* The index that a collective matmul is cut along; -1 when the step is none, moves several, or
 * cannot run in chunks. */
static int cut_index(const sm_step *step) {
    if (step->in_one) return -1;
    if (is_collective(step, SM_ALL_GATHER) && step->array >= 0) return step->from;
    if (is_collective(step, SM_REDUCE_SCATTER) && step->array < 0) return step->to;
    return -1;
}

int sm_lowering_overlaps(const sm_lowering *lowering, int *steps) {
    int n = 0, middle = einsum_step(lowering);
    if (middle < 0 || lowering->step[middle].flops <= 0.0) return 0;
    for (int s = 0; s < middle; s++)
        if (is_collective(&lowering->step[s], SM_ALL_GATHER) &&
            cut_index(&lowering->step[s]) >= 0 &&
            (s + 1 == middle || lowering->step[s + 1].array != lowering->step[s].array))
            steps[n++] = s;
    if (middle + 1 < lowering->steps &&
        is_collective(&lowering->step[middle + 1], SM_REDUCE_SCATTER) &&
        cut_index(&lowering->step[middle + 1]) >= 0)
        steps[n++] = middle + 1;
    return n;
}

/* ---- windows ---- */

static bool find_edges(const sm_lowering_input *input, const sm_lowering *lowering, sm_step *step) {
    const sm_array *array = &input->einsum->in[0];
    unsigned axes = 0;
    for (int a = 0; a < input->mesh->axes; a++)
        if (lowering->at[a] == input->along && input->mesh->axis[a].size > 1) axes |= 1u << a;
    if (input->edges <= 0 || axes == 0) return false;
    double here = local_size(input, lowering, input->along);
    double others = fmax(input->einsum->index[input->along].size - here, 0.0);
    *step = (sm_step){.kind = SM_STEP_COLLECTIVE,
                      .op = SM_PERMUTE,
                      .axes = (sm_axes)axes,
                      .from = input->along,
                      .to = input->along,
                      .bytes = array_bytes(input, lowering, array, -1, 1.0) / here *
                               fmin(input->edges, others)};
    return true;
}

bool lowering_add_edges(const sm_lowering_input *input, sm_lowering *lowering) {
    sm_step step;
    int at = einsum_step(lowering);
    if (!find_edges(input, lowering, &step)) return true;
    if (lowering->parts > 0 || at < 0 || lowering->steps == SM_MAX_STEPS) return false;
    step.after = sm_layout_of(&input->einsum->in[0]);
    for (int s = 0; s < at; s++)
        if (lowering->step[s].array == 0) step.after = lowering->step[s].after;
    step.before = step.after; /* a shift, and every block stays */
    memmove(&lowering->step[at + 1], &lowering->step[at],
            (size_t)(lowering->steps++ - at) * sizeof step);
    lowering->step[at] = step;
    lowering->wire_bytes += step.bytes;
    return true;
}

/* ---- the price ---- */

/* Take `size` of the innermost chips that are left of an axis. */
static sm_group take_innermost(sm_group *left, int size) {
    sm_group taken = {.size = size};
    for (int i = 0; i < left->parts && size > 1; i++) {
        sm_part *from = &left->part[i];
        int n = sm_common_factor(size, from->size);
        if (n == 1) continue;
        taken.part[taken.parts++] = (sm_part){from->level, n, from->stride};
        from->size /= n;
        from->stride *= n;
        size /= n;
    }
    return taken;
}

void sm_placement_split(const sm_placement *placement, const sm_lowering *lowering,
                        sm_placement *split) {
    *split = *placement;
    if (lowering->parts == 0) return;
    sm_placement left = *placement;
    split->axes = lowering->parts;
    for (int p = lowering->parts - 1; p >= 0; p--) /* minor parts come last */
        split->axis[p] = take_innermost(&left.axis[lowering->part[p].axis], lowering->part[p].size);
}

static sm_lowering_step_cost collective_cost(const sm_lowering_input *input,
                                             const sm_placement *placement, const sm_mesh *mesh,
                                             const sm_step *step) {
    sm_curve curve = sm_step_curve(input->system, placement, mesh, step);
    sm_collective_cost cost = sm_curve_cost(&curve, input->system, input->calibration, step->bytes);
    return (sm_lowering_step_cost){cost.lower_s,   cost.expected_s,
                                   cost.upper_s,   cost.bytes_busiest_link,
                                   cost.algorithm, cost.latency_bound};
}

double lowering_edges_s(const sm_lowering_input *input, const sm_lowering *lowering) {
    sm_step step;
    if (!find_edges(input, lowering, &step)) return 0.0;
    return collective_cost(input, input->placement, input->mesh, &step).expected_s;
}

static sm_op_cost chunk_cost(const sm_lowering_input *input, const sm_lowering *lowering,
                             double flops, const lowering_ring *ring) {
    double bytes = lowering_chunk_bytes(input, lowering, ring->cut, ring->chunks);
    return lowering_local_cost(input, lowering, flops / ring->chunks, bytes, ring->cut,
                               ring->chunks);
}

double lowering_overlapped_s(const sm_lowering_input *input, const sm_lowering *lowering,
                             double flops, const lowering_ring *ring) {
    sm_op_cost chunk = chunk_cost(input, lowering, flops, ring);
    double transfer_s = ring->transfer_s / fmax(ring->chunks - 1.0, 1.0);
    return (ring->chunks - 1.0) * fmax(chunk.expected_s, transfer_s) + chunk.expected_s;
}

static void price_step(const sm_lowering_input *input, const sm_lowering *lowering,
                       const sm_placement *placement, const sm_mesh *mesh, int s,
                       sm_lowering_cost *cost) {
    const sm_step *step = &lowering->step[s];
    if (step->kind == SM_STEP_COLLECTIVE) {
        cost->step[s] = collective_cost(input, placement, mesh, step);
        cost->network_s += cost->step[s].lower_s;
    } else if (step->kind == SM_STEP_EINSUM) {
        sm_op_cost op =
            lowering_local_cost(input, lowering, step->flops, step->local_bytes, -1, 1.0);
        cost->step[s].lower_s = op.lower_s;
        cost->step[s].expected_s = op.expected_s;
        cost->math_s += op.math_s;
        cost->memory_s += op.memory_s;
        cost->step[s].upper_s = op.upper_s;
    }
}

sm_lowering_cost sm_lowering_price(const sm_lowering_input *input, const sm_lowering *lowering,
                                   int overlapped) {
    sm_lowering_cost cost = {.overlapped = overlapped, .chunks = 1};
    sm_placement placement;
    sm_mesh mesh;
    sm_placement_split(input->placement, lowering, &placement);
    sm_lowering_mesh(lowering, input->mesh, &mesh);
    for (int s = 0; s < lowering->steps; s++)
        price_step(input, lowering, &placement, &mesh, s, &cost);
    for (int s = 0; s < lowering->steps; s++) cost.upper_s += cost.step[s].upper_s;
    int middle = einsum_step(lowering);
    assert(overlapped < lowering->steps && lowering->steps <= SM_MAX_STEPS);
    for (int s = 0; s < lowering->steps; s++)
        if (overlapped < 0 || (s != overlapped && s != middle))
            cost.expected_s += cost.step[s].expected_s;
    if (overlapped >= 0) {
        cost.chunks = (int)sm_mesh_size(&mesh, lowering->step[overlapped].axes);
        /* The einsum in chunks, a collective inside it; at worst every chunk waits for its part. */
        const lowering_ring ring = {cut_index(&lowering->step[cost.overlapped]), cost.chunks,
                                    cost.step[cost.overlapped].expected_s};
        double flops = lowering->step[middle].flops, whole_s = cost.step[middle].upper_s;
        double chunks_s = ring.chunks * chunk_cost(input, lowering, flops, &ring).upper_s;
        cost.expected_s += lowering_overlapped_s(input, lowering, flops, &ring);
        cost.upper_s += fmax(chunks_s - whole_s, 0.0);
    }
    cost.lower_s = fmax(cost.network_s, fmax(cost.math_s, cost.memory_s));
    return cost;
}

/* A lowering on real ranks: its steps one after the other. */

#include "einsum_parts.h"
#include "memory_account.h"

typedef struct running {
    sm_rank_mesh *m;
    const sm_einsum *einsum;
    const sm_lowering *lowering;
    sm_local_block array[SM_MAX_OPERANDS + 1]; /* the newest of each operand, then the output */
    bool own[SM_MAX_OPERANDS + 1];             /* ours to free; else the caller's */
    sm_layout layout[SM_MAX_OPERANDS + 1];
    int overlapped, directions;
    double waiting_s, ring_bytes; /* of the ring */
} running;

static int place_of(const running *r, int array) { return array < 0 ? r->einsum->operands : array; }

static void renew(running *r, int at, const sm_local_block *fresh) {
    if (r->own[at]) sm_local_block_free(&r->array[at]);
    r->array[at] = *fresh;
    r->own[at] = true;
}

static sm_status move(running *r, const sm_step *step, sm_error *err) {
    int at = place_of(r, step->array);
    sm_local_block fresh;
    sm_status status = sm_local_block_step(r->m, step, &r->layout[at], &r->array[at], &fresh, err);
    if (status) return status;
    renew(r, at, &fresh);
    r->layout[at] = step->after;
    return SM_OK;
}

/* The size of each dimension of the local product: that of an operand with the same index. */
static bool out_size(const running *r, const int8_t (*label)[SM_MAX_RANK], size_t *size) {
    const sm_array *out = &r->einsum->out;
    for (int d = 0; d < out->rank; d++) {
        bool found = false;
        for (int i = 0; i < r->einsum->operands; i++)
            for (int k = 0; k < r->array[i].rank; k++) {
                if (label[i][k] != out->dim[d].index) continue;
                size[d] = r->array[i].size[k];
                found = true;
            }
        if (!found) return false;
    }
    return true;
}

/* The indices of an operand's dimensions; one of which the diagonal is read is replaced by that. */
static sm_status read_operand(running *r, int i, int8_t *label, sm_error *err) {
    const sm_array *array = &r->einsum->in[i];
    const diagonal_of of = {r->m, r->einsum, array, &r->layout[i]};
    sm_local_block diagonal;
    for (int d = 0; d < array->rank; d++) label[d] = (int8_t)array->dim[d].index;
    if (!sm_array_is_diagonal(array, r->einsum)) return SM_OK;
    sm_status status = local_diagonal(&of, &r->array[i], &diagonal, label, err);
    if (!status) renew(r, i, &diagonal);
    return status;
}

/* A group that cannot be made ends the run: others would wait for it. */
static sm_status traffic_of(const running *r, const sm_step *step, double *bytes, sm_error *err) {
    *bytes = 0.0;
    if (step->kind != SM_STEP_COLLECTIVE) return SM_OK;
    const sm_communicator *group = sm_rank_mesh_over(r->m, step->axes, err);
    if (!group) return err ? err->status : SM_INTERNAL;
    *bytes = group->traffic.bytes[step->op];
    return SM_OK;
}

static sm_status multiply_in_ring(running *r, ring_job *job, sm_local_block *out, sm_error *err) {
    job->step = &r->lowering->step[r->overlapped];
    job->before = &r->layout[place_of(r, job->step->array)];
    double before, after;
    sm_status status = traffic_of(r, job->step, &before, err);
    if (!status) status = ring_run(job, out, &r->waiting_s, err);
    if (!status) status = traffic_of(r, job->step, &after, err);
    if (!status) r->ring_bytes = after - before;
    return status;
}

/* What a ring changes of the local product: a gathered index is longer, a scattered one shorter. */
static void sizes_in_ring(const running *r, const ring_job *job, size_t *size) {
    const sm_step *step = &r->lowering->step[r->overlapped];
    size_t parts = (size_t)sm_mesh_size(&r->m->mesh, step->axes);
    for (int d = 0; d < r->einsum->out.rank; d++) {
        if (step->array < 0 && job->out_label[d] == step->to) size[d] /= parts;
        for (int k = 0; step->array >= 0 && k < r->einsum->in[step->array].rank; k++)
            if (job->out_label[d] == step->from && job->label[step->array][k] == step->from)
                size[d] = r->array[step->array].size[k] * parts;
    }
}

/* A lone array that was moved is the output as it is. */
static bool hand_over(running *r, const sm_step *step) {
    int out = r->einsum->operands;
    if (!r->lowering->moves_only || !r->own[0]) return false;
    r->array[out] = r->array[0];
    r->own[out] = true;
    r->own[0] = false;
    r->layout[out] = step->after;
    return true;
}

static sm_status multiply(running *r, const sm_step *step, sm_error *err) {
    if (hand_over(r, step)) return SM_OK;
    ring_job job = {.m = r->m, .einsum = r->einsum, .directions = r->directions, .array = r->array};
    size_t size[SM_MAX_RANK];
    sm_local_block out;
    const int8_t(*label)[SM_MAX_RANK] = (const int8_t(*)[SM_MAX_RANK])job.label;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < r->einsum->operands; i++)
        status = read_operand(r, i, job.label[i], err);
    if (status) return status;
    for (int d = 0; d < r->einsum->out.rank; d++)
        job.out_label[d] = (int8_t)r->einsum->out.dim[d].index;
    if (!out_size(r, label, size))
        return sm_fail(err, SM_BAD_INPUT, "an index of the output is in no operand");
    if (r->overlapped >= 0) sizes_in_ring(r, &job, size);
    sm_element element = r->array[0].element;
    status = local_block_raw(element, r->einsum->out.rank, size, &out, err);
    if (status) return status;
    status = r->overlapped < 0
                 ? sm_local_einsum(r->einsum->operands, r->array, label, job.out_label, &out, err)
                 : multiply_in_ring(r, &job, &out, err);
    int at = r->einsum->operands;
    for (int d = 0; d < out.rank; d++)
        out.whole[d] = (size_t)r->einsum->index[r->einsum->out.dim[d].index].size;
    renew(r, at, &out);
    r->layout[at] = step->after;
    assert(r->overlapped < 0 || job.step);
    if (r->overlapped >= 0 && job.step->array < 0) r->layout[at] = job.step->after;
    return status;
}

static sm_status run_step(running *r, int number, sm_run_step *all, sm_error *err) {
    const sm_step *step = &r->lowering->step[number];
    assert(number < SM_MAX_STEPS && step->array < r->einsum->operands);
    double before, after, begun_s = sm_clock_s();
    sm_status status = traffic_of(r, step, &before, err);
    if (status || number == r->overlapped) return status; /* with the einsum */
    status = step->kind == SM_STEP_EINSUM ? multiply(r, step, err) : move(r, step, err);
    if (!status) status = traffic_of(r, step, &after, err);
    if (status) return status;
    sm_run_step *out = &all[number];
    out->seconds = sm_clock_s() - begun_s;
    out->bytes_counted = after - before;
    if (step->kind != SM_STEP_EINSUM || r->overlapped < 0) return SM_OK;
    out->seconds -= r->waiting_s;
    all[r->overlapped] = (sm_run_step){.bytes_counted = r->ring_bytes, .seconds = r->waiting_s};
    return SM_OK;
}

/* Only a step that moves one index can run inside the einsum. */
static bool can_overlap(const sm_lowering *lowering, int s) {
    if (s >= lowering->steps) return false;
    const sm_step *step = &lowering->step[s];
    bool gathers = step->op == SM_ALL_GATHER && step->array >= 0 && step->from >= 0;
    bool scatters = step->op == SM_REDUCE_SCATTER && step->array < 0 && step->to >= 0;
    return step->kind == SM_STEP_COLLECTIVE && !step->in_one && (gathers || scatters);
}

sm_status sm_run_lowering(sm_rank_mesh *m, const sm_einsum *einsum, const sm_lowering *lowering,
                          const sm_run_way *way, const sm_local_block *in, sm_run_result *out,
                          sm_error *err) {
    if (way->overlapped >= 0 && !can_overlap(lowering, way->overlapped))
        return sm_fail(err, SM_BAD_INPUT, "step %d cannot run inside the einsum",
                       way->overlapped + 1);
    sm_einsum on_parts = *einsum; /* of the axes that the steps are on */
    sm_mesh mesh;
    sm_lowering_mesh(lowering, &m->mesh, &mesh);
    m = rank_mesh_like(m, &mesh, err);
    if (!m) return err ? err->status : SM_INTERNAL;
    for (int i = 0; i < einsum->operands; i++)
        on_parts.in[i] = sm_lowering_array(lowering, &einsum->in[i]);
    running r = {.m = m,
                 .einsum = &on_parts,
                 .lowering = lowering,
                 .overlapped = way->overlapped,
                 .directions = way->directions};
    sm_status status = SM_OK;
    double begun_s = sm_clock_s();
    memset(out, 0, sizeof *out);
    for (int i = 0; i < r.einsum->operands; i++) {
        r.array[i] = in[i];
        r.layout[i] = sm_layout_of(&r.einsum->in[i]);
    }
    for (int i = 0; !status && i < lowering->steps; i++) status = run_step(&r, i, out->step, err);
    out->seconds = sm_clock_s() - begun_s;
    for (int i = 0; i < einsum->operands; i++)
        if (r.own[i]) sm_local_block_free(&r.array[i]);
    if (status) sm_local_block_free(&r.array[einsum->operands]);
    else out->out = r.array[einsum->operands];
    return status;
}

/* exchange: one collective on each rank, timed and held against what must come out. Arrays hold
 * whole numbers, so that sums are exact in every type. */
#include <assert.h>
#include "exchange.h"

#include <string.h>

#include "element_types.h"
#include "over_ranks.h"
#include "scalemodel/measure.h"

typedef struct worker {
    exchange_job *job;
    sm_rank_mesh *m;
    sm_communicator *group;
    sm_local_block block;
} worker;

static sm_status fill(const worker *w, const sm_rank_mesh *m, const sm_array *array,
                      sm_local_block *out, sm_error *err) {
    return sm_local_block_of(m, w->job->einsum, array, w->job->element,
                             &(sm_filling){element_whole_number, NULL}, out, err);
}

/* ---- what ranks begin with ---- */

/* The n members hold 1 - (0 + 1 + ... + n-1), 1, 2, ... n-1 times the array: once, together. */
static sm_status fill_partial_sums(worker *w, sm_error *err) {
    sm_array whole = w->job->einsum->in[0];
    int n = w->group->size, rank = w->group->rank, by = rank ? rank : 1 - n * (n - 1) / 2;
    sm_local_block *b = &w->block;
    whole.unreduced = 0;
    sm_status status = fill(w, w->m, &whole, b, err);
    size_t count = status ? 0 : sm_local_block_count(b);
    for (size_t i = 0; i < count; i++) switch (b->element) {
        case SM_ELEMENT_F32: ((float *)b->data)[i] *= (float)by; break;
        case SM_ELEMENT_F64: ((double *)b->data)[i] *= by; break;
        case SM_ELEMENT_S32: ((int32_t *)b->data)[i] *= by; break;
        default: ((int64_t *)b->data)[i] *= by; break;
        }
    return status;
}

/* ---- the collective ---- */

/* A permute sends each block to the next rank, a broadcast that of the first to all; of a reduce
 * the first has the sum, the others what they had. */
static sm_status run_once(worker *w, sm_local_block *out, sm_error *err) {
    const sm_local_block *b = &w->block;
    sm_layout before = sm_layout_of(&w->job->einsum->in[0]);
    sm_collective op = w->job->step.op;
    int n = w->group->size, rank = w->group->rank;
    size_t bytes = sm_local_block_count(b) * sm_element_bytes(b->element);
    if (op != SM_PERMUTE && op != SM_BROADCAST && op != SM_REDUCE)
        return sm_local_block_step(w->m, &w->job->step, &before, b, out, err);
    sm_status status = sm_local_block_new(b->element, b->rank, b->size, out, err);
    if (status) return status;
    if (op == SM_PERMUTE)
        return sm_run_permute(w->group, b->data, (rank + 1) % n, out->data, (rank + n - 1) % n,
                              bytes, err);
    memcpy(out->data, b->data, bytes);
    if (op == SM_REDUCE)
        return sm_run_reduce(w->group, b->data, sm_local_block_count(b), b->element, out->data, 0,
                             err);
    return sm_run_broadcast(w->group, out->data, bytes, 0, err);
}

/* ---- what must come out ---- */

/* What the member of the group began with; the last axis of the collective varies fastest. */
static sm_status block_of(const worker *w, int member, sm_local_block *wanted, sm_error *err) {
    sm_rank_mesh there = *w->m;
    for (int a = there.mesh.axes - 1; a >= 0; a--) {
        if (!(w->job->step.axes >> a & 1u)) continue;
        there.at[a] = member % there.mesh.axis[a].size;
        member /= there.mesh.axis[a].size;
    }
    return fill(w, &there, &w->job->einsum->in[0], wanted, err);
}

static sm_status compare(const worker *w, const sm_local_block *got, double *error, sm_error *err) {
    sm_local_block wanted = {.rank = 0};
    int n = w->group->size, before = (w->group->rank + n - 1) % n;
    sm_collective op = w->job->step.op;
    if (op == SM_REDUCE && w->group->rank > 0) {
        *error = element_difference(&w->block, got);
        return SM_OK;
    }
    sm_status status = op == SM_PERMUTE     ? block_of(w, before, &wanted, err)
                       : op == SM_BROADCAST ? block_of(w, 0, &wanted, err)
                                            : fill(w, w->m, &w->job->after, &wanted, err);
    if (!status) *error = element_difference(&wanted, got);
    sm_local_block_free(&wanted);
    return status;
}

/* ---- often ---- */

static sm_status run_often(worker *w, double *times, double *error, double *bytes, sm_error *err) {
    sm_communicator *world = w->m->world;
    double *counted = &w->group->traffic.bytes[w->job->step.op];
    sm_status status = SM_OK;
    for (int i = -w->job->warmups; !status && i < w->job->repeats; i++) {
        sm_local_block out = {.rank = 0};
        double before = *counted;
        status = sm_run_barrier(world, err);
        double begun_s = sm_clock_s();
        if (!status) status = run_once(w, &out, err);
        double seconds = sm_clock_s() - begun_s;
        if (!status) status = largest_over_ranks(world, &seconds, 1, err);
        *bytes = *counted - before;
        if (i >= 0) times[i] = seconds;
        if (!status && i == w->job->repeats - 1) status = compare(w, &out, error, err);
        sm_local_block_free(&out);
    }
    return status;
}

sm_status exchange_body(sm_communicator *world, void *context, sm_error *err) {
    exchange_job *job = context;
    worker w = {.job = job};
    bool reduces = sm_collective_reduces(job->step.op);
    double error = 0.0, bytes = 0.0, *times = sm_calloc((size_t)job->repeats, sizeof *times);
    sm_status status = times ? sm_rank_mesh_new(world, job->mesh, &w.m, err) : sm_fail_memory(err);
    if (!status) w.group = sm_rank_mesh_over(w.m, job->step.axes, err);
    if (!status && !w.group) status = err ? err->status : SM_INTERNAL;
    assert(status || w.group);
    if (!status)
        status = reduces ? fill_partial_sums(&w, err)
                         : fill(&w, w.m, &job->einsum->in[0], &w.block, err);
    if (!status) status = run_often(&w, times, &error, &bytes, err);
    double number[3] = {error, bytes, -bytes}; /* of a rank that counted other bytes, its number */
    if (!status) status = largest_over_ranks(world, number, 3, err);
    if (!status && world->rank == 0) {
        job->max_error = number[0];
        job->bytes = number[1] > job->step.bytes ? number[1] : -number[2];
        job->seconds = sm_spread_of(times, job->repeats).median;
    }
    sm_local_block_free(&w.block);
    sm_rank_mesh_free(w.m);
    sm_free(times);
    return status;
}

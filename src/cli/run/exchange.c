/* exchange: on each rank. Arrays hold whole numbers, so that sums are exact in every type. */
#include "exchange.h"

#include <string.h>

#include "element_types.h"
#include "over_ranks.h"

typedef struct worker {
    exchange_job *job;
    sm_rank_mesh *m;
    sm_communicator *group;
    sm_local_block block;
} worker;

static sm_status fill(const worker *w, const sm_rank_mesh *m, const sm_array *array,
                      sm_local_block *out, sm_error *err) {
    return sm_local_block_of(m, w->job->einsum, array, w->job->element, element_whole_number, NULL,
                             out, err);
}

/* ---- partial sums ---- */

static void scale(sm_local_block *b, int by) {
    size_t count = sm_local_block_count(b);
    for (size_t i = 0; i < count; i++) switch (b->element) {
        case SM_ELEMENT_F32: ((float *)b->data)[i] *= (float)by; break;
        case SM_ELEMENT_F64: ((double *)b->data)[i] *= by; break;
        case SM_ELEMENT_S32: ((int32_t *)b->data)[i] *= by; break;
        default: ((int64_t *)b->data)[i] *= by; break;
        }
}

/* The n members hold 1 - (0 + 1 + ... + n-1), 1, 2, ... n-1 times the array: once, together. */
static sm_status fill_partial_sums(worker *w, sm_error *err) {
    sm_array whole = w->job->einsum->in[0];
    int n = w->group->size, rank = w->group->rank;
    whole.unreduced = 0;
    sm_status status = fill(w, w->m, &whole, &w->block, err);
    if (!status) scale(&w->block, rank ? rank : 1 - n * (n - 1) / 2);
    return status;
}

static bool reduces(const exchange_job *job) {
    return job->step.op == SM_ALL_REDUCE || job->step.op == SM_REDUCE_SCATTER;
}

/* ---- the collective ---- */

static sm_status copy_of(const sm_local_block *b, sm_local_block *copy, sm_error *err) {
    sm_status status = sm_local_block_new(b->element, b->rank, b->size, copy, err);
    if (!status)
        memcpy(copy->data, b->data, sm_local_block_count(b) * sm_element_bytes(b->element));
    return status;
}

static sm_status shift(worker *w, sm_local_block *out, sm_error *err) {
    int n = w->group->size, rank = w->group->rank;
    size_t bytes = sm_local_block_count(&w->block) * sm_element_bytes(w->block.element);
    sm_status status = sm_local_block_new(w->block.element, w->block.rank, w->block.size, out, err);
    if (status) return status;
    return sm_run_permute(w->group, w->block.data, (rank + 1) % n, out->data, (rank + n - 1) % n,
                          bytes, err);
}

static sm_status broadcast(worker *w, sm_local_block *out, sm_error *err) {
    sm_status status = copy_of(&w->block, out, err);
    if (status) return status;
    size_t bytes = sm_local_block_count(out) * sm_element_bytes(out->element);
    return sm_run_broadcast(w->group, out->data, bytes, 0, err);
}

static sm_status run_once(worker *w, sm_local_block *out, sm_error *err) {
    sm_layout before = sm_layout_of(&w->job->einsum->in[0]);
    if (w->job->step.op == SM_PERMUTE) return shift(w, out, err);
    if (w->job->step.op == SM_BROADCAST) return broadcast(w, out, err);
    return sm_local_block_step(w->m, &w->job->step, &before, &w->block, out, err);
}

/* ---- what must come out ---- */

/* What the member of the group at these coordinates began with. */
static sm_status block_of(const worker *w, const int *at, sm_local_block *wanted, sm_error *err) {
    sm_rank_mesh there = *w->m;
    memcpy(there.at, at, sizeof there.at);
    return fill(w, &there, &w->job->einsum->in[0], wanted, err);
}

/* Coordinates of a member: the last axis of the collective varies fastest. */
static void member_at(const worker *w, int member, int *at) {
    memcpy(at, w->m->at, sizeof w->m->at);
    for (int a = w->m->mesh.axes - 1; a >= 0; a--) {
        if (!(w->job->step.axes >> a & 1u)) continue;
        at[a] = member % w->m->mesh.axis[a].size;
        member /= w->m->mesh.axis[a].size;
    }
}

static sm_status wanted_of(const worker *w, sm_local_block *wanted, sm_error *err) {
    int at[SM_MAX_AXES], n = w->group->size;
    bool shifts = w->job->step.op == SM_PERMUTE;
    if (!shifts && w->job->step.op != SM_BROADCAST)
        return fill(w, w->m, &w->job->after, wanted, err);
    member_at(w, shifts ? (w->group->rank + n - 1) % n : 0, at);
    return block_of(w, at, wanted, err);
}

static sm_status compare(const worker *w, const sm_local_block *got, double *error, sm_error *err) {
    sm_local_block wanted = {.rank = 0};
    sm_status status = wanted_of(w, &wanted, err);
    if (!status) *error = element_difference(&wanted, got);
    sm_local_block_free(&wanted);
    return status;
}

/* ---- often ---- */

static sm_status run_timed(worker *w, sm_local_block *out, double *seconds, sm_error *err) {
    sm_status status = sm_run_barrier(w->m->world, err);
    double begun_s = sm_clock_s();
    if (!status) status = run_once(w, out, err);
    *seconds = sm_clock_s() - begun_s;
    return status ? status : largest_over_ranks(w->m->world, seconds, 1, err);
}

static sm_status run_often(worker *w, double *times, double *error, double *bytes, sm_error *err) {
    sm_status status = SM_OK;
    double unused, before;
    for (int i = -w->job->warmups; !status && i < w->job->repeats; i++) {
        sm_local_block out = {.rank = 0};
        before = w->group->traffic.bytes[w->job->step.op];
        status = run_timed(w, &out, i < 0 ? &unused : &times[i], err);
        *bytes = w->group->traffic.bytes[w->job->step.op] - before;
        if (!status && i == w->job->repeats - 1) status = compare(w, &out, error, err);
        sm_local_block_free(&out);
    }
    return status;
}

/* Of a rank that counted other bytes than were predicted, its number. */
static sm_status put_together(worker *w, double *times, double error, double bytes, sm_error *err) {
    exchange_job *job = w->job;
    double number[3] = {error, bytes, -bytes};
    sm_status status = largest_over_ranks(w->m->world, number, 3, err);
    if (status || w->m->world->rank != 0) return status;
    job->max_error = number[0];
    job->bytes = number[1] > job->step.bytes ? number[1] : -number[2];
    job->seconds = median_of(times, job->repeats);
    return SM_OK;
}

sm_status exchange_body(sm_communicator *world, void *context, sm_error *err) {
    exchange_job *job = context;
    worker w = {.job = job};
    double error = 0.0, bytes = 0.0, *times = sm_calloc((size_t)job->repeats, sizeof *times);
    sm_status status = times ? sm_rank_mesh_new(world, job->mesh, &w.m, err) : sm_fail_memory(err);
    if (!status) w.group = sm_rank_mesh_over(w.m, job->step.axes, err);
    if (!status && !w.group) status = err ? err->status : SM_INTERNAL;
    if (!status)
        status = reduces(job) ? fill_partial_sums(&w, err)
                              : fill(&w, w.m, &job->einsum->in[0], &w.block, err);
    if (!status) status = run_often(&w, times, &error, &bytes, err);
    if (!status) status = put_together(&w, times, error, bytes, err);
    sm_local_block_free(&w.block);
    sm_rank_mesh_free(w.m);
    sm_free(times);
    return status;
}

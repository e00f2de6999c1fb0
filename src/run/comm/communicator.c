/* Communicators: every call is counted, and in debug mode compared over the group before it is
 * made, so that ranks that disagree get an error instead of a deadlock. */
#include <math.h>
#include <string.h>

#include "scalemodel/run.h"

/* ---- what ranks must agree on ---- */

enum { BARRIER = SM_COLLECTIVE_COUNT, RING };
typedef struct call {
    int32_t op, element;
    uint64_t bytes;
    int64_t root;
    int32_t to, from; /* a permute or a step of a ring; -1: none */
} call;

static const char *name_of(const call *c) {
    return c->op == BARRIER ? "barrier"
           : c->op == RING  ? "a step of a ring"
                            : sm_collective_name((sm_collective)c->op);
}

static bool passes_on(const call *c) { return c->op == SM_PERMUTE || c->op == RING; }

static bool is_rank(int rank, int n) { return rank >= -1 && rank < n; }

static unsigned long long bytes_of(const call *c) { return (unsigned long long)c->bytes; }

/* Does the rank that this one sends to expect that, or the one that it expects bytes from send? */
static sm_status check_pair(const call *all, int rank, bool sends, sm_error *err) {
    const call *own = &all[rank];
    int to = sends ? own->to : own->from;
    const call *other = &all[to];
    int back = sends ? other->from : other->to;
    char does[64] = "nothing";
    if (back == rank && (!sends || other->bytes == own->bytes)) return SM_OK;
    if (back >= 0 && sends) snprintf(does, sizeof does, "%llu from rank %d", bytes_of(other), back);
    else if (back >= 0) snprintf(does, sizeof does, "to rank %d", back);
    return sm_fail(err, SM_INTERNAL,
                   "ranks disagree in %s: rank %d %s %llu bytes %s rank %d, which %s %s",
                   name_of(other), rank, sends ? "sends" : "expects", bytes_of(own),
                   sends ? "to" : "from", to, sends ? "expects" : "sends", does);
}

static sm_status check_pairs(const call *all, int n, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; i < n; i++)
        if (!is_rank(all[i].to, n) || !is_rank(all[i].from, n))
            return sm_fail(err, SM_INTERNAL, "in %s rank %d names rank %d, and there are %d ranks",
                           name_of(&all[i]), i, is_rank(all[i].to, n) ? all[i].from : all[i].to, n);
    for (int i = 0; !status && i < n; i++) {
        if (all[i].to >= 0) status = check_pair(all, i, true, err);
        if (!status && all[i].from >= 0) status = check_pair(all, i, false, err);
    }
    return status;
}

/* What passes on may differ from rank to rank, as long as the two ends agree. */
static sm_status check_calls(const call *all, int n, sm_error *err) {
    for (int i = 1; i < n; i++)
        if (all[i].op != all[0].op ||
            (!passes_on(&all[0]) && memcmp(&all[i], &all[0], sizeof *all) != 0))
            return sm_fail(err, SM_INTERNAL,
                           "ranks disagree: rank 0 calls %s of %llu bytes, rank %d %s of %llu",
                           name_of(&all[0]), bytes_of(&all[0]), i, name_of(&all[i]),
                           bytes_of(&all[i]));
    return passes_on(&all[0]) ? check_pairs(all, n, err) : SM_OK;
}

static sm_status compare(sm_communicator *c, const call *mine, sm_error *err) {
    if (!c->debug || c->size < 2) return SM_OK;
    call *all = sm_calloc((size_t)c->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    const sm_run_call gather = {SM_ALL_GATHER, mine, all, sizeof *mine, SM_ELEMENT_S8, 0};
    sm_status status = c->backend->collective(c, &gather, err);
    if (!status) status = check_calls(all, c->size, err);
    sm_free(all);
    return status;
}

/* ---- counting ---- */

static void count(sm_communicator *c, sm_collective op, double bytes, double begun_s) {
    c->traffic.calls[op] += 1;
    c->traffic.bytes[op] += bytes;
    c->traffic.seconds[op] += sm_clock_s() - begun_s;
}

sm_status sm_run_collective(sm_communicator *c, const sm_run_call *r, sm_error *err) {
    size_t bytes = r->n * sm_element_bytes(r->element);
    call mine = {(int32_t)r->op, (int32_t)r->element, bytes, r->root, 0, 0};
    bool parted = r->op == SM_ALL_GATHER || r->op == SM_REDUCE_SCATTER || r->op == SM_ALL_TO_ALL;
    double parts = (parted ? c->size : 1.0) * (r->op == SM_ALL_TO_ALL ? c->size : 1.0);
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->collective(c, r, err);
    if (!status) count(c, r->op, (double)bytes * parts, begun_s);
    return status;
}

sm_status sm_run_all_gather(sm_communicator *c, const void *send, size_t bytes, void *recv,
                            sm_error *err) {
    return sm_run_collective(c, &(sm_run_call){SM_ALL_GATHER, send, recv, bytes, SM_ELEMENT_S8, 0},
                             err);
}

sm_status sm_run_all_reduce(sm_communicator *c, void *in_place, size_t n, sm_element element,
                            sm_error *err) {
    const sm_run_call all = {SM_ALL_REDUCE, in_place, in_place, n, element, 0};
    return sm_run_collective(c, &all, err);
}

sm_status sm_run_largest(sm_communicator *c, double *number, int n, sm_error *err) {
    size_t ranks = (size_t)c->size, count = (size_t)n;
    double *all = sm_calloc(ranks * count, sizeof *all);
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(c, number, count * sizeof *number, all, err);
    for (size_t i = 0; !status && i < ranks * count; i++) {
        double *most = &number[i % count];
        if (!isnan(*most) && !(all[i] <= *most)) *most = all[i];
    }
    sm_free(all);
    return status;
}

sm_status sm_run_broadcast(sm_communicator *c, void *in_place, size_t bytes, int root,
                           sm_error *err) {
    const sm_run_call told = {SM_BROADCAST, in_place, in_place, bytes, SM_ELEMENT_S8, root};
    return sm_run_collective(c, &told, err);
}

sm_status sm_run_permute(sm_communicator *c, const void *send, int to, void *recv, int from,
                         size_t bytes, sm_error *err) {
    enum { TAG = 1 };
    call mine = {.op = SM_PERMUTE, .bytes = bytes, .to = to, .from = from};
    sm_request_handle receiving = {{NULL}}, sending = {{NULL}};
    sm_status status = compare(c, &mine, err), other = SM_OK;
    double begun_s = sm_clock_s();
    if (!status && from >= 0)
        status = c->backend->start_receive(c, recv, bytes, from, TAG, &receiving, err);
    if (!status && to >= 0) status = c->backend->start_send(c, send, bytes, to, TAG, &sending, err);
    if (!status && from >= 0) status = c->backend->wait(c, &receiving, err);
    if (!status && to >= 0) other = c->backend->wait(c, &sending, err);
    if (!status && !other) count(c, SM_PERMUTE, (double)bytes, begun_s);
    return status ? status : other;
}

sm_status sm_run_check_ring(sm_communicator *c, int to, int from, size_t bytes, sm_error *err) {
    call mine = {.op = RING, .bytes = bytes, .to = to, .from = from};
    return compare(c, &mine, err);
}

sm_status sm_run_barrier(sm_communicator *c, sm_error *err) {
    call mine = {.op = BARRIER};
    sm_status status = compare(c, &mine, err);
    return status ? status : c->backend->barrier(c, err);
}

void sm_communicator_free(sm_communicator *c) {
    if (c) c->backend->free(c);
}

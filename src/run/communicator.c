/* Communicators: every call is counted, and in debug mode compared over the group before it is
 * made, so that ranks that disagree get an error instead of a deadlock. */
#include <string.h>

#include "scalemodel/run.h"

size_t sm_element_bytes(sm_element element) {
    static const size_t bytes[] = {
#define X(id, name, n) n,
        SM_ELEMENTS(X)
#undef X
    };
    return bytes[element];
}

/* ---- what ranks must agree on ---- */

enum { BARRIER = SM_COLLECTIVE_COUNT };
typedef struct call {
    int32_t op, element;
    uint64_t bytes;
    int64_t root;
} call;

static const char *name_of(const call *c) {
    return c->op == BARRIER ? "barrier" : sm_collective_name((sm_collective)c->op);
}

static sm_status compare(sm_communicator *c, const call *mine, sm_error *err) {
    if (!c->debug || c->size < 2) return SM_OK;
    call *all = sm_calloc((size_t)c->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    sm_status status = c->backend->all_gather(c, mine, sizeof *mine, all, err);
    for (int i = 1; !status && i < c->size; i++)
        if (memcmp(&all[i], &all[0], sizeof *all) != 0)
            status = sm_fail(err, SM_INTERNAL,
                             "ranks disagree: rank 0 calls %s of %llu bytes, rank %d %s of %llu",
                             name_of(&all[0]), (unsigned long long)all[0].bytes, i,
                             name_of(&all[i]), (unsigned long long)all[i].bytes);
    sm_free(all);
    return status;
}

/* ---- counting ---- */

static void count(sm_communicator *c, sm_collective op, double bytes, double begun_s) {
    c->traffic.calls[op] += 1;
    c->traffic.bytes[op] += bytes;
    c->traffic.seconds[op] += sm_clock_s() - begun_s;
}

sm_status sm_run_all_gather(sm_communicator *c, const void *send, size_t bytes, void *recv,
                            sm_error *err) {
    call mine = {.op = SM_ALL_GATHER, .bytes = bytes};
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->all_gather(c, send, bytes, recv, err);
    if (!status) count(c, SM_ALL_GATHER, (double)bytes * c->size, begun_s);
    return status;
}

sm_status sm_run_reduce_scatter(sm_communicator *c, const void *send, size_t n, sm_element element,
                                void *recv, sm_error *err) {
    size_t bytes = n * sm_element_bytes(element);
    call mine = {.op = SM_REDUCE_SCATTER, .bytes = bytes, .element = (int32_t)element};
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->reduce_scatter(c, send, n, element, recv, err);
    if (!status) count(c, SM_REDUCE_SCATTER, (double)bytes * c->size, begun_s);
    return status;
}

sm_status sm_run_all_reduce(sm_communicator *c, void *in_place, size_t n, sm_element element,
                            sm_error *err) {
    size_t bytes = n * sm_element_bytes(element);
    call mine = {.op = SM_ALL_REDUCE, .bytes = bytes, .element = (int32_t)element};
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->all_reduce(c, in_place, n, element, err);
    if (!status) count(c, SM_ALL_REDUCE, (double)bytes, begun_s);
    return status;
}

sm_status sm_run_all_to_all(sm_communicator *c, const void *send, size_t bytes, void *recv,
                            sm_error *err) {
    call mine = {.op = SM_ALL_TO_ALL, .bytes = bytes};
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->all_to_all(c, send, bytes, recv, err);
    if (!status) count(c, SM_ALL_TO_ALL, (double)bytes * c->size * c->size, begun_s);
    return status;
}

sm_status sm_run_broadcast(sm_communicator *c, void *in_place, size_t bytes, int root,
                           sm_error *err) {
    call mine = {.op = SM_BROADCAST, .bytes = bytes, .root = root};
    sm_status status = compare(c, &mine, err);
    double begun_s = sm_clock_s();
    if (!status) status = c->backend->broadcast(c, in_place, bytes, root, err);
    if (!status) count(c, SM_BROADCAST, (double)bytes, begun_s);
    return status;
}

sm_status sm_run_permute(sm_communicator *c, const void *send, int to, void *recv, int from,
                         size_t bytes, sm_error *err) {
    enum { TAG = 1 };
    sm_request_handle receiving = {{NULL}}, sending = {{NULL}};
    double begun_s = sm_clock_s();
    sm_status status = SM_OK, other = SM_OK;
    if (from >= 0) status = c->backend->start_receive(c, recv, bytes, from, TAG, &receiving, err);
    if (!status && to >= 0) status = c->backend->start_send(c, send, bytes, to, TAG, &sending, err);
    if (!status && from >= 0) status = c->backend->wait(c, &receiving, err);
    if (!status && to >= 0) other = c->backend->wait(c, &sending, err);
    if (!status && !other) count(c, SM_PERMUTE, (double)bytes, begun_s);
    return status ? status : other;
}

sm_status sm_run_barrier(sm_communicator *c, sm_error *err) {
    call mine = {.op = BARRIER};
    sm_status status = compare(c, &mine, err);
    return status ? status : c->backend->barrier(c, err);
}

void sm_communicator_free(sm_communicator *c) {
    if (c) c->backend->free(c);
}

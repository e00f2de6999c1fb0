/* Transfers between the neighbours of a ring: started, helped along, waited for, counted. */
#include "einsum_parts.h"

ring_transfer ring_transfer_of(sm_communicator *group, int direction, int tag) {
    int n = group->size, rank = group->rank;
    return (ring_transfer){.group = group,
                           .to = (rank - direction + n) % n,
                           .from = (rank + direction + n) % n,
                           .tag = tag};
}

sm_status ring_start_receive(ring_transfer *t, sm_local_block *to, sm_error *err) {
    size_t bytes = (size_t)sm_local_block_bytes(to);
    sm_status status = sm_run_check_ring(t->group, t->to, t->from, bytes, err);
    if (!status)
        status = t->group->backend->start_receive(t->group, to->data, bytes, t->from, t->tag,
                                                  &t->receiving, err);
    t->receives = !status;
    return status;
}

sm_status ring_start_send(ring_transfer *t, const sm_local_block *from, sm_error *err) {
    size_t bytes = (size_t)sm_local_block_bytes(from);
    sm_status status = sm_run_check_ring(t->group, t->to, t->from, bytes, err);
    if (!status)
        status = t->group->backend->start_send(t->group, from->data, bytes, t->to, t->tag,
                                               &t->sending, err);
    t->sends = !status;
    if (!status) t->sent_bytes += (double)bytes;
    return status;
}

static sm_status wait_for(ring_transfer *t, sm_request_handle *handle, bool *started,
                          sm_error *err) {
    if (!*started) return SM_OK;
    double begun_s = sm_clock_s();
    *started = false;
    sm_status status = t->group->backend->wait(t->group, handle, err);
    t->waiting_s += sm_clock_s() - begun_s;
    return status;
}

sm_status ring_end_receive(ring_transfer *t, sm_error *err) {
    return wait_for(t, &t->receiving, &t->receives, err);
}

sm_status ring_end_send(ring_transfer *t, sm_error *err) {
    return wait_for(t, &t->sending, &t->sends, err);
}

void ring_close(ring_transfer *t, bool failed) {
    const sm_backend *b = t->group->backend;
    if (!failed) ring_end_send(t, NULL);
    else if (t->sends && b->cancel) b->cancel(t->group, &t->sending);
    t->sends = false;
}

void ring_poke(ring_transfer *t) {
    if (!t->group->backend->poke) return;
    if (t->receives) t->group->backend->poke(t->group, &t->receiving);
    if (t->sends) t->group->backend->poke(t->group, &t->sending);
}

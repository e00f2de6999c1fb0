/* ring_transfer: blocks that pass round a ring of ranks: one to the next rank, one from the rank
 * before, while both compute. */
#pragma once
#include "scalemodel/run.h"

typedef struct ring_transfer {
    sm_communicator *group;
    int to, from, tag;
    sm_request_handle receiving, sending;
    bool receives, sends; /* started and not waited for */
    double sent_bytes, waiting_s;
} ring_transfer;

/* direction: what this rank sends goes to the rank that many places before it: +1 or -1. */
ring_transfer ring_transfer_of(sm_communicator *group, int direction, int tag);
/* The block must stay until the transfer has ended. */
sm_status ring_start_receive(ring_transfer *t, sm_local_block *to, sm_error *err);
sm_status ring_start_send(ring_transfer *t, const sm_local_block *from, sm_error *err);
/* Wait; nothing happens when none was started. */
sm_status ring_end_receive(ring_transfer *t, sm_error *err);
sm_status ring_end_send(ring_transfer *t, sm_error *err);
/* Give the transport a chance to make progress. */
void ring_poke(ring_transfer *t);

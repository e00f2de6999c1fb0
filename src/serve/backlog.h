/* backlog: requests that wait behind many others, packed: some six to twenty bytes each, in place
 * of a whole sequence. First in, first out. Private to src/serve. */
#pragma once
#include "scalemodel/simulate.h"

typedef struct sim_backlog_part sim_backlog_part;
typedef struct sim_packed {
    uint64_t number;
    sm_request request;
    int kind, turn; /* its class, and the slot of the turn that follows it; -1: none */
} sim_packed;
typedef struct sim_backlog_end { /* what the next record is told against */
    uint64_t number, arrival;
} sim_backlog_end;
typedef struct sim_backlog {
    int64_t n;
    sim_backlog_part *first, *last; /* read from, written to */
    sim_backlog_end read, written;
    uint64_t *block; /* of the request that was taken last */
    int block_room;
} sim_backlog;
/* Numbers do not decrease. SM_INTERNAL when out of memory. */
sm_status sim_backlog_put(sim_backlog *b, const sim_packed *packed, sm_error *err);
/* The first of them; n is above 0. Its blocks stay valid until the next is taken. */
void sim_backlog_take(sim_backlog *b, sim_packed *packed);
void sim_backlog_end_all(sim_backlog *b);

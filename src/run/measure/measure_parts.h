/* measure_parts: what is measured, file by file. Private to src/run. */
#pragma once
#include "scalemodel/measure.h"

/* One call that is timed, and what it leaves behind that is undone untimed (NULL: nothing). */
typedef struct timed_call {
    sm_status (*call)(void *state, sm_error *err);
    void (*undo)(void *state);
    void *state;
    double times;  /* how often one call does what is measured: seconds are divided by it */
    bool together; /* ranks wait for each other in it */
} timed_call;
/* Over all ranks: each call begins after a barrier and lasts as long as on the slowest rank. The
 * spread is the same on every rank. */
sm_status measure_repeatedly(sm_communicator *world, const sm_measure_job *job,
                             const timed_call *timed, sm_spread *out, sm_error *err);

sm_status measure_matmuls(sm_communicator *world, const sm_measure_job *job, sm_error *err);
sm_status measure_streams(sm_communicator *world, const sm_measure_job *job, sm_error *err);
sm_status measure_sends(sm_communicator *world, const sm_measure_job *job, sm_error *err);
sm_status measure_trainings(sm_communicator *world, const sm_measure_job *job, sm_error *err);
sm_status measure_collectives(sm_communicator *world, const sm_measure_job *job, sm_error *err);

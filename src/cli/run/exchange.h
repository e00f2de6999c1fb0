/* exchange: one collective on the block of an array, timed, counted and held against what each rank
 * must then have. */
#ifndef SCALEMODEL_RUNCLI_EXCHANGE_H
#define SCALEMODEL_RUNCLI_EXCHANGE_H
#include "scalemodel/run.h"

typedef struct exchange_job {
    const sm_mesh *mesh;
    const sm_einsum *einsum; /* the array is in[0] */
    sm_array after; /* as it is afterwards, of a reduce on the first member; a permute and a
                       broadcast do not look at it */
    sm_step step;
    sm_element element;
    int warmups, repeats;
    /* answers, written by rank 0 */
    double max_error, bytes, seconds; /* bytes counted; median of the slowest rank's time */
} exchange_job;
sm_status exchange_body(sm_communicator *world, void *job, sm_error *err);
#endif

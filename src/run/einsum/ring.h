/* ring: an all-gather or reduce-scatter that runs inside the local product, as a ring: while one
 * chunk is multiplied the next travels ("collective matmul": Wang et al., "Overlap Communication
 * with Dependent Computation via Decomposition", ASPLOS 2023). */
#pragma once
#include "scalemodel/run.h"

typedef struct ring_job {
    sm_rank_mesh *m;
    const sm_einsum *einsum;
    const sm_step *step;                        /* the collective */
    const sm_layout *before;                    /* of its array */
    int directions;                             /* 1, or 2: half of each chunk goes each way */
    const sm_local_block *array;                /* the operands: one of them not gathered yet */
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK]; /* index number of each dimension */
    int8_t out_label[SM_MAX_RANK];
} ring_job;

/* out: made by the caller, all zero: for a gather of the size of the whole product, for a
 * reduction of that of this rank's part. *waiting_s: spent waiting for transfers. */
sm_status ring_run(const ring_job *job, sm_local_block *out, double *waiting_s, sm_error *err);

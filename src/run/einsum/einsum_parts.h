/* einsum_parts: what the parts of a sharded product on ranks share. Private to src/run. */
#pragma once
#include "scalemodel/run.h"

#include <string.h>

/* Copying a box of a row-major array into a box of another. */
typedef struct box_side {
    void *data;
    const size_t *size;   /* of the array */
    const size_t *offset; /* of the box in it */
} box_side;
/* box: sizes of what is copied. */
void box_copy(const box_side *to, const box_side *from, int rank, const size_t *box, size_t width);

/* Making blocks. */
/* As sm_local_block_new, for a block whose every element is written next: it is not cleared. */
sm_status local_block_raw(sm_element element, int rank, const size_t *size, sm_local_block *out,
                          sm_error *err);
/* A block of scaled elements, all 0, with a scale for each box. */
sm_status local_block_scaled(sm_element element, int rank, const size_t *size, const size_t *box,
                             sm_local_block *out, sm_error *err);

/* What a rank has of the diagonal of an operand such as A[I,I]. */
typedef struct diagonal_of {
    const sm_rank_mesh *m;
    const sm_einsum *einsum;
    const sm_array *array;
    const sm_layout *layout; /* that the block has */
} diagonal_of;
/* *out: a new block without the dimensions that repeat an index, along the others as long as `in`;
 * zero where another rank has the element. label: the index of each dimension of it. SM_INTERNAL
 * when out of memory. */
sm_status local_diagonal(const diagonal_of *of, const sm_local_block *in, sm_local_block *out,
                         int8_t *label, sm_error *err);

/* Products of a rank's own blocks. */
/* sm_local_einsum, or its sum with what `out` holds (plus). */
sm_status local_einsum(int operands, const sm_local_block *in, const int8_t (*label)[SM_MAX_RANK],
                       const int8_t *out_labels, bool plus, sm_local_block *out, sm_error *err);
/* The same of two operands that may be parts of arrays, used where they lie: the whole array is
 * `whole` long along `dim` (-1: it is no part). in[i].size: of the part; in[i].data: its first
 * element. */
typedef struct local_part {
    int dim;
    size_t whole;
} local_part;
sm_status local_einsum_of_parts(const sm_local_block *in, const local_part *part,
                                const int8_t (*label)[SM_MAX_RANK], const int8_t *out_labels,
                                bool plus, sm_local_block *out, sm_error *err);

/* Blocks that pass round a ring of ranks: one to the next rank, one from the rank
 * before, while both compute. */
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
/* Before the blocks go: wait for what was sent, or take it back on a rank that has failed, for
 * which the others may wait. */
void ring_close(ring_transfer *t, bool failed);
/* Give the transport a chance to make progress. */
void ring_poke(ring_transfer *t);

/* An all-gather or reduce-scatter that runs inside the local product, as a ring: while one
 * chunk is multiplied the next travels ("collective matmul": Wang et al., "Overlap Communication
 * with Dependent Computation via Decomposition", ASPLOS 2023). */
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

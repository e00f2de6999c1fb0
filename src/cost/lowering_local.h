/* lowering_local: what a chip does by itself under a lowering. Private to src/cost. */
#pragma once
#include "scalemodel/lowering.h"

#include <math.h>
#include <string.h>

/* The local einsum, or a chunk of it: index `cut` (-1: none) in `chunks` parts. */
sm_op_cost lowering_local_cost(const sm_lowering_input *input, const sm_lowering *lowering,
                               double flops, double bytes, int cut, double chunks);
/* FLOPs of what a chip does by itself: those given, of a product; and its bytes where they are not
 * those of its arrays. */
double lowering_local_work(const sm_lowering_input *input, const sm_lowering *lowering,
                           double flops, double *bytes, int cut, double chunks);
/* What a chunk reads and writes: arrays with the cut index in part, the others whole. */
double lowering_chunk_bytes(const sm_lowering_input *input, const sm_lowering *lowering, int cut,
                            double chunks);
/* What a window reads of the chips before, as a step ahead of the einsum; nothing where there is
 * none. False: that cannot be said, of axes in parts or for want of room. And what it takes. */
bool lowering_add_edges(const sm_lowering_input *input, sm_lowering *lowering);
double lowering_edges_s(const sm_lowering_input *input, const sm_lowering *lowering);
/* A collective that runs inside the einsum, whose index `cut` it brings in so many chunks. */
typedef struct lowering_ring {
    int cut;
    double chunks, transfer_s;
} lowering_ring;
/* (n-1) x max(chunk matmul, chunk transfer) + chunk matmul, the transfers being the collective in
 * n-1 parts. */
double lowering_overlapped_s(const sm_lowering_input *input, const sm_lowering *lowering,
                             double flops, const lowering_ring *ring);

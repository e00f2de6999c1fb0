/* What a partition is made of, for the layers that price it (docs/layers.txt lends it to them):
 * they hold partitions in structures of their own. */
#pragma once
#include "scalemodel/program.h"

#include <string.h>

struct sm_partition {
    sm_program program; /* what it was made from: names point into it */
    int works, comms, classes;
    sm_bits needed;    /* tensors (bit) the backward ops read */
    sm_bits as_stored; /* of them, those that some op does not take as they arrived */
    /* What the backward pass gathers again (sm_comm.repeated): over which axes, and which forward
     * ops (bit) had gathered it. */
    sm_axes arrived[SM_MAX_TENSORS];
    sm_bits receivers[SM_MAX_TENSORS];
    sm_size boundary; /* bytes of the residual stream handed to the next piece */
    sm_size lent;     /* and of what it reads of another stack or an earlier layer */
    sm_size cache;    /* forward alone: bytes of the cache this piece keeps; base 0: none */
    sm_size state;    /* the same of its states */
    /* So many of these are set. */
    sm_weight_class weight[SM_MAX_WEIGHT_CLASSES];
    sm_comm comm[SM_MAX_COMM];
    sm_work work[SM_MAX_WORK];
};
/* Lowerings of einsums that partitions needed, of which programs of one model share most: kept in
 * the arena for the next. Zeroed but for the arena it has none. */
enum { SM_KNOWN_LOWERINGS = 1024 };
typedef struct sm_lowerings {
    sm_arena *arena;
    struct known_lowering *known[SM_KNOWN_LOWERINGS];
} sm_lowerings;
/* Of the whole step of training, which a program of serving does not have (SM_INTERNAL); of the
 * forward pass alone, with the weights that a chip stores (their `partial` is 0). known: of other
 * programs, or NULL. */
sm_status sm_program_partition(const sm_program *program, sm_lowerings *known, sm_partition *out,
                               sm_error *err);
sm_status sm_program_partition_forward(const sm_program *program, sm_lowerings *known,
                                       sm_partition *out, sm_error *err);

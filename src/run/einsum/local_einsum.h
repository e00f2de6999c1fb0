/* local_einsum: products of a rank's own blocks. */
#pragma once
#include "scalemodel/run.h"

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

/* local_block: making blocks. */
#pragma once
#include "scalemodel/run.h"

/* As sm_local_block_new, for a block whose every element is written next: it is not cleared. */
sm_status local_block_raw(sm_element element, int rank, const size_t *size, sm_local_block *out,
                          sm_error *err);
/* The bytes that a block's data has. */
size_t local_block_room(const sm_local_block *b);
/* A block of scaled elements, all 0, with a scale for each box. */
sm_status local_block_scaled(sm_element element, int rank, const size_t *size, const size_t *box,
                             sm_local_block *out, sm_error *err);

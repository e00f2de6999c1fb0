/* local_block: making blocks. */
#pragma once
#include "scalemodel/run.h"

/* As sm_local_block_new, for a block whose every element is written next: it is not cleared. */
sm_status local_block_raw(sm_element element, int rank, const size_t *size, sm_local_block *out,
                          sm_error *err);

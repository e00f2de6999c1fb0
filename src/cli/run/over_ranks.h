/* over_ranks: what the ranks found, put together. */
#pragma once
#include "scalemodel/run.h"

/* The largest of each of n numbers over the ranks; NaN where a rank has one. Collective. */
sm_status largest_over_ranks(sm_communicator *world, double *number, int n, sm_error *err);
/* Has every rank the same number? Collective. */
sm_status same_over_ranks(sm_communicator *world, uint64_t number, bool *same, sm_error *err);

/* nsys: what Nsight Systems exports. Private to src/io. */
#pragma once
#include "trace_build.h"

/* `nsys export --type sqlite`. SM_BAD_INPUT when it is damaged or holds no events of CUDA. */
sm_status nsys_read_sqlite(trace_build *b, const sm_source *whole);
/* Is this the beginning of a table of `nsys stats`? */
bool nsys_is_csv(const sm_source *first);
/* `nsys stats --report cuda_gpu_trace --format csv`. SM_BAD_INPUT of a report that has no times of
 * events, and with the line where a row cannot be read. */
sm_status nsys_read_csv(trace_build *b, const sm_source *whole);

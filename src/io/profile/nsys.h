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

/* The files in an archive that lies in memory. Private to src/io. */
/* Is this the beginning of an archive (POSIX or GNU)? */
bool tar_is(const sm_source *first);
/* The next file from byte *at on, which moves: its path, in the arena, and its bytes, in place.
 * *more is false after the last. SM_BAD_INPUT when the archive is damaged or cut short. */
sm_status tar_next(const sm_source *archive, size_t *at, sm_arena *arena, sm_source *file,
                   bool *more, sm_error *err);

/* tar: the files in an archive that lies in memory. Private to src/io. */
#pragma once
#include "scalemodel/text.h"

/* Is this the beginning of an archive (POSIX or GNU)? */
bool tar_is(const sm_source *first);
/* The next file from byte *at on, which moves: its path, in the arena, and its bytes, in place.
 * *more is false after the last. SM_BAD_INPUT when the archive is damaged or cut short. */
sm_status tar_next(const sm_source *archive, size_t *at, sm_arena *arena, sm_source *file,
                   bool *more, sm_error *err);

/* calibration_line: collectives whose time was measured on groups of one size. */
#pragma once
#include "scalemodel/cost.h"

/* Does a key name a line? */
bool calibration_is_line(const sm_source *source, sm_span key);
/* "line.all-reduce.2" and "1.1e-4 3.8e-11": added to c, in room of the arena. */
sm_status calibration_read_line(const sm_source *source, sm_span key, sm_span value,
                                sm_arena *arena, sm_calibration *c, sm_error *err);

/* system_error: what the operating system refused, as one sentence. Private to src/io. */
#pragma once
#include "scalemodel/base.h"

/* "cannot VERB PATH: reason"; reason: an errno. SM_IO. */
sm_status sm_fail_system(sm_error *err, const char *verb, const char *path, int reason);

/* What the operating system refused, as one sentence. */
#include "file_parts.h"

#include <errno.h>

sm_status sm_fail_system(sm_error *err, const char *verb, const char *path, int reason) {
    char text[128] = "";
    if (reason == ENOMEM) return sm_fail_memory(err);
    if (strerror_r(reason, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", reason);
    return sm_fail(err, SM_IO, "cannot %s %s: %s", verb, path, text);
}

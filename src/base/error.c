/* Errors without a place. Those that point into a text are in text/source.c. */
#include "scalemodel/base.h"

#include <string.h>

sm_status sm_fail(sm_error *err, sm_status status, const char *format, ...) {
    if (err == NULL) return status;
    char sentence[2 * sizeof err->sentence]; /* apart: an argument may point into *err */
    va_list args;
    va_start(args, format);
    if (vsnprintf(sentence, sizeof sentence, format, args) < 0) sentence[0] = '\0';
    va_end(args);
    memset(err, 0, sizeof *err);
    err->status = status;
    sm_utf8_clean(err->sentence, sizeof err->sentence, sentence, strlen(sentence));
    return status;
}

sm_status sm_fail_memory(sm_error *err) { return sm_fail(err, SM_INTERNAL, "out of memory"); }

sm_status sm_fail_limit(sm_error *err, const char *what, int wanted, int most) {
    return sm_fail(err, SM_INTERNAL, "%s: %d; the most is %d", what, wanted, most);
}

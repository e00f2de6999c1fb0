/* A text sink: bounded, with the contract of snprintf, where it counts what it would have written;
 * or in an arena, where it grows. */
#pragma once
#include "scalemodel/base.h"

#include <string.h>

typedef struct sm_sink {
    char *out;     /* 0-terminated after every put while size > 0 */
    size_t size;   /* of out, the terminating 0 included */
    size_t wanted; /* characters put so far, kept or not; of one that grows fewer take some back */
    sm_arena *arena; /* that it grows in */
    bool full;       /* no memory was left to */
} sm_sink;

sm_sink sm_sink_into(char *out, size_t size);
void sm_sink_put(sm_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

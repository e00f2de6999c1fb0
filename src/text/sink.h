/* A bounded text sink with the contract of snprintf: it counts what it would have written. */
#pragma once
#include <stddef.h>

typedef struct sm_sink {
    char *out;     /* 0-terminated after every put while size > 0 */
    size_t size;   /* of out, the terminating 0 included */
    size_t wanted; /* characters put so far, kept or not */
} sm_sink;

sm_sink sm_sink_into(char *out, size_t size);
void sm_sink_put(sm_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

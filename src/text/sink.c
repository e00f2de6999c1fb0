#include "sink.h"
#include <stdarg.h>
#include <stdio.h>

sm_sink sm_sink_into(char *out, size_t size) {
    if (size > 0) out[0] = '\0';
    return (sm_sink){out, size, 0};
}

void sm_sink_put(sm_sink *sink, const char *format, ...) {
    size_t left = sink->wanted < sink->size ? sink->size - sink->wanted : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(left > 0 ? sink->out + sink->wanted : NULL, left, format, args);
    va_end(args);
    if (n > 0) sink->wanted += (size_t)n;
}

#include "sink.h"

sm_sink sm_sink_into(char *out, size_t size) {
    if (size > 0) out[0] = '\0';
    return (sm_sink){.out = out, .size = size};
}

/* Room for so many more and the terminating 0. */
static bool grow(sm_sink *sink, size_t more) {
    size_t size = 2 * (sink->wanted + more) + 4096;
    char *out = sm_arena_alloc(sink->arena, size);
    if (out && sink->wanted) memcpy(out, sink->out, sink->wanted);
    if (out) *sink = (sm_sink){out, size, sink->wanted, sink->arena, sink->full};
    else sink->full = true;
    return out;
}

void sm_sink_put(sm_sink *sink, const char *format, ...) {
    va_list args;
    size_t left;
    int n;
    do {
        left = sink->wanted < sink->size ? sink->size - sink->wanted : 0;
        va_start(args, format);
        n = vsnprintf(left > 0 ? sink->out + sink->wanted : NULL, left, format, args);
        va_end(args);
    } while (sink->arena && n >= 0 && (size_t)n >= left && grow(sink, (size_t)n));
    if (n > 0) sink->wanted += (size_t)n;
}

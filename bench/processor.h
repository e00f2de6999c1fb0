/* Seconds of this processor so far, of all threads. */
#pragma once
#include <time.h>

static inline double processor_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

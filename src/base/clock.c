/* Monotonic time, for durations only. */
#include "scalemodel/base.h"

#include <time.h>

double sm_clock_s(void) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

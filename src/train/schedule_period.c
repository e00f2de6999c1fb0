/* Finding the period of a max-plus linear map. */
#include "schedule_period.h"
#include <float.h>
#include <stdbool.h>

/* Rounding, relative to the time reached, that two shifts may differ by. */
#define SHIFT_TOLERANCE (4.0 * DBL_EPSILON)

/* Is now the snapshot shifted by one number? Then *shift_s is it. */
static bool shifted(const sm_snapshot *s, const double *now, double *shift_s) {
    double shift = now[s->count - 1] - s->state[s->count - 1];
    double tolerance = SHIFT_TOLERANCE * now[s->count - 1];
    for (int k = 0; k < s->count; k++) {
        double off = now[k] - s->state[k] - shift;
        if (!(off <= tolerance && off >= -tolerance)) /* also when it is no number */
            return false;
    }
    *shift_s = shift;
    return true;
}

int sm_periods_to_skip(sm_snapshot *s, const double *now, int left, int *length, double *shift_s) {
    if (s->age >= 0) {
        s->age++;
        if (s->age <= left && shifted(s, now, shift_s)) {
            *length = s->age;
            s->age = -1;
            return left / *length;
        }
    }
    if (s->age < 0 || s->age == s->limit) {
        for (int k = 0; k < s->count; k++) s->state[k] = now[k];
        s->limit = s->age < 0 ? 1 : 2 * s->limit;
        s->age = 0;
    }
    return 0;
}

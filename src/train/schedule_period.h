/* Inside src/train: skipping the waves of a pipeline that only repeat. The times after a wave are
 * maxima of sums of the times before it, a max-plus linear map. Once a state is an earlier one
 * shifted by a constant, all later ones are too, and the waves in between need not be run (Baccelli
 * et al., Synchronization and Linearity, 1992, section 3.7). Such a map never widens a difference,
 * so shifts equal within e leave an error below e per period skipped. */
#pragma once

/* A past state to compare with; it moves forward in doubling steps (Brent's cycle search). */
typedef struct sm_snapshot {
    double *state; /* room for count numbers */
    int count;
    int age, limit; /* periods since it was taken, and when to take the next; start with age = -1 */
} sm_snapshot;

/* The state now, one period after the last call. How many times may the *length periods since the
 * snapshot, *shift_s long together, be skipped of the periods left? 0: not known to repeat. */
int sm_periods_to_skip(sm_snapshot *s, const double *now, int left, int *length, double *shift_s);

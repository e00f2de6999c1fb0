/* profile_made: a profile while it is made. Private to src/profile. */
#pragma once
#include "scalemodel/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What runs when in one run of a computation: a kernel, a collective, or another computation so
 * often. */
typedef struct profile_record {
    int op, collective, call; /* two of them -1 */
    double times, start_s, seconds;
} profile_record;
typedef struct sm_profile_schedule {
    int records, room;
    profile_record *record;
    int *first, *n; /* of each computation */
} sm_profile_schedule;

typedef struct profile_made {
    sm_profile p;
    sm_profile_schedule schedule;
    const sm_module_analysis *analysis;
    sm_placement placement;
    sm_calibration ahead; /* what p.calibration is */
    sm_arena *arena;
    sm_profile_op *op;
    sm_profile_collective *collective;
    int op_room, collective_room;
} profile_made;

/* ---- mesh ---- */
/* The mesh of the devices, and where its axes lie on the system. */
sm_status profile_mesh(profile_made *made, const sm_mesh *asked, sm_error *err);
/* The axes that groups communicate over, 0 when they are no set of axes; and where they sit. */
sm_axes profile_axes_of(const profile_made *made, const sm_instruction *it);
sm_group profile_group_of(const profile_made *made, sm_axes axes, int members);
sm_curve profile_permute_curve(const profile_made *made, const sm_module_groups *pairs);

/* ---- prices ---- */
/* Seconds at a rate that may not be known. */
static inline double at_rate(double amount, double per_s) {
    return amount > 0 && per_s > 0 ? amount / per_s : 0;
}
void profile_price_op(const profile_made *made, sm_profile_op *op);
void profile_price_collective(const profile_made *made, const sm_computation *in,
                              sm_profile_collective *c);

/* ---- time and memory ---- */
/* Price everything that runs and lay it over each other. */
sm_status profile_timeline(profile_made *made, sm_error *err);
sm_status profile_memory(profile_made *made, sm_error *err);
/* Lay a trace beside the prices. */
void profile_measure(profile_made *made, const sm_trace_program *measured);
sm_status profile_findings(profile_made *made, sm_error *err);

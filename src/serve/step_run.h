/* step_run: many steps of an engine at once. Within a run the tokens of the caches grow by the same
 * number each step, so the seconds of k steps are a sum over a line. Private to src/serve. */
#pragma once
#include "scalemodel/simulate.h"

typedef struct sim_path {
    const sm_engine *engine;
    double n, cached, cached_growth;           /* a step */
    double prefill, attended, attended_growth; /* a step */
} sim_path;
/* Seconds of the first k steps: exact where step_s is linear between the ends of a piece, pieces
 * being halved until their middle lies within 1e-7 of the line. NaN when a step has no price. */
double sim_path_seconds(const sim_path *path, double k);
/* The least number of steps in 1..most that take at least `seconds`; most when none does. *taken:
 * the seconds of so many. */
double sim_path_steps(const sim_path *path, double most, double seconds, double *taken);

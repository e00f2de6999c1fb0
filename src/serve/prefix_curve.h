/* prefix_curve: what a cache of any size would find of the prompts, in one pass: how much else was
 * used since a piece of a prompt was used last (Mattson et al., "Evaluation techniques for storage
 * hierarchies", 1970). A cache that gives up what was used longest ago finds a piece exactly when
 * that is less than its size. Private to src/serve. */
#pragma once
#include "radix.h"
#include "scalemodel/simulate.h"

#include <math.h>

enum { SIM_CURVE_BINS = 8 * 50 }; /* eight an octave, of pages */
typedef struct sim_curve {
    sm_numbers at; /* the latest use of a piece, by what it is and follows */
    uint64_t *key; /* by use, in the order of time: the piece, its pages, and sums of these */
    int32_t *pages;
    int64_t *sum; /* Fenwick's tree (1994) */
    int32_t uses, room;
    double found[SIM_CURVE_BINS], asked; /* pages */
} sim_curve;
/* A prompt or an exchange uses its pages; counts: what it would have found of them. */
sm_status sim_curve_use(sim_curve *c, const sim_run_list *runs, bool counts, sm_error *err);
/* Pages that a cache of so many pages would have found. */
double sim_curve_found(const sim_curve *c, double pages);
void sim_curve_end(sim_curve *c);

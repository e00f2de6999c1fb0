/* measured_training: the short trainings that `measure` runs, and the constants that follow from
 * them: what ops, attention and steps take in the training runtime. */
#pragma once
#include "measuring.h"

/* A training that is measured: a plan of all ranks. */
typedef struct measured_run {
    sm_model model;
    sm_plan plan;
    sm_train_setup setup;
    bool has_moves; /* between the ops, not at the end of a step alone */
    sm_train *train;
    double predicted_s; /* a step, under the constants found */
} measured_run;
enum { MOST_RUNS = SM_MOST_MEASURED_TRAININGS };

/* q->run and q->runs, for ranks of this machine; *setups: those of the job. */
sm_status measured_runs(measuring *q, int ranks, bool quick, sm_train_setup **setups,
                        sm_error *err);
/* q->line as the collectives of q->calibration. */
sm_status measured_lines(measuring *q, sm_error *err);
/* Fits launch_s, matmul_efficiency, matmul_half_k, both attention efficiencies, overlap and
 * step_overhead_s of q->calibration to q->found->training, and takes the waiting of ranks for each
 * other into its measured collectives. Nothing where nothing was trained. */
sm_status measured_training_fit(measuring *q, const sm_system *system, sm_error *err);

/* goodput: how long a run takes that failures interrupt: checkpoints, restarts, work done again. */
#pragma once
#include "scalemodel/base.h"

SM_DECLARATIONS_BEGIN

/* Times in seconds. Interruptions come at random, all the time: one in mtbf_s on average. */
typedef struct sm_goodput_job {
    double run_s, step_s; /* the run if nothing happened, and a step of it */
    double mtbf_s;        /* of all chips together; INFINITY: none fails */
    double checkpoint_s;  /* that a checkpoint stops the run for */
    double restart_s;     /* from an interruption to the first new step */
    double interval_s;    /* of work between checkpoints; 0: the best */
} sm_goodput_job;
/* Expected values. total_s is run_s, checkpoint_s, restart_s and lost_s together; INFINITY where
 * interruptions leave no time for a step between checkpoints. */
typedef struct sm_goodput {
    double interval_s; /* whole steps */
    double total_s, checkpoint_s, restart_s, lost_s;
    double interruptions;
} sm_goodput;
/* Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps" (Future
 * Generation Computer Systems 22, 2006), equation 20: segments of interval + checkpoint that an
 * interruption begins anew, after a restart that may be interrupted itself:
 *   total = M exp(R / M) (exp((interval + checkpoint) / M) - 1) x run / interval. */
sm_goodput sm_goodput_of(const sm_goodput_job *job);
/* The interval of work for which that is least: where (1 - t / M) exp(t / M) = exp(-C / M); for
 * C << M it is Young's sqrt(2 C M) (Communications of the ACM 17, 1974). */
double sm_goodput_best_interval(double mtbf_s, double checkpoint_s);
/* The fewest spares of which more are in repair with a probability of at most `risk`: the number in
 * repair is Poisson distributed around interruptions x repair time. */
double sm_goodput_spares(double mean_in_repair, double risk);

/* What happened to a run, in order: a step can begin, at first and after failures; steps went on; a
 * checkpoint is written, which took so many seconds; a failure undoes what is since the last. */
typedef enum sm_run_change {
    SM_RUN_BEGINS,
    SM_RUN_GOES_ON,
    SM_RUN_SAVED,
    SM_RUN_FAILS
} sm_run_change;
typedef struct sm_run_event {
    sm_run_change what;
    double at_s, seconds;
} sm_run_event;
typedef struct sm_goodput_seen {
    sm_goodput took;                /* but for interval_s; the rest of total_s is work that lasts */
    double checkpoint_s, restart_s; /* of one, mean; of restarts, those that a step followed */
} sm_goodput_seen;
/* From the first event to the last. */
sm_goodput_seen sm_goodput_of_events(const sm_run_event *event, size_t n);
SM_DECLARATIONS_END

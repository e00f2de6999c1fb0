/* train_failures: a training with a rank killed now and then, at times drawn as a Poisson process
 * has them (which sm_goodput_of assumes), and begun anew from its last checkpoint each time. Each
 * attempt is a program of its own, which the environment tells when it fails and where to note what
 * it has done; the last one answers for all. */
#pragma once
#include "run_train.h"

typedef struct train_note {
    sm_run_event event;   /* times of sm_clock_s, which all processes of a machine share */
    double loss, seconds; /* of a step */
    int32_t steps;        /* made so far */
} train_note;

/* Attempt after attempt until one ends by itself: its status. */
sm_status train_failures_run(const train_run *q, sm_error *err);

/* Is this an attempt? Then the kernel kills the process of the rank that is to fail at its time,
 * whatever it does. */
sm_status train_attempt_read(train_run *q, sm_error *err);
/* Called by every rank, done by the first. */
sm_status train_attempt_note(train_run *q, int rank, train_note note, sm_error *err);
/* All steps are made: no rank is killed any more. */
void train_attempt_end(train_run *q, int rank);

/* Before the report of an attempt that came to the end: puts the losses and times of the steps of
 * all others into q. */
sm_status train_attempts_join(train_run *q, sm_error *err);
void train_failures_report(sm_report *r, const train_run *q);

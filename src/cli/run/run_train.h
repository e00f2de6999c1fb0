/* run_train: a run of training as the files of the verb share it: what was asked, what the planner
 * predicts, what was measured. */
#pragma once
#include <time.h>
#include "prediction.h"
#include "scalemodel/goodput.h"
#include "train_checkpoint.h"
#include "train_tally.h"

typedef struct run_train_values {
    ranks_values ranks;
    const char *plan, *data, *curve, *plot, *checkpoint, *resume, *record;
    int64_t seq, steps, until, seed, every, keep;
    bool fresh;
    double batch, rate, failures;
    prediction_values predicted;
    cli_model_values read_by;
} run_train_values;

/* Of a run with failures (train_failures.h). */
typedef struct train_attempt {
    FILE *notes; /* of all attempts; NULL: this is none */
    bool sealed; /* one before has left a checkpoint */
    bool armed;
    timer_t timer;
    sm_goodput_seen seen;
    double apart; /* most that the loss of a step made again differs by */
} train_attempt;

/* What a call's values are. */
typedef struct train_run {
    run_train_values given;
    const cli_call *call;
    sm_model model;
    sm_plan plan;
    sm_system system;
    sm_train_setup setup;
    sm_plan_detail detail;
    int64_t every; /* steps between checkpoints, 0: only at the end */
    int first;     /* step to begin with: those before are in the checkpoint */
    int end;       /* of the steps, this run takes [first, end) */
    train_checkpoint_place kept;
    const char *from;    /* where the first weights are; NULL: they are drawn */
    const char *goes_on; /* the same, or the checkpoint of an attempt before */
    train_attempt attempt;
    sm_safetensors resumed;
    /* answers, written by rank 0 */
    double *number, *loss, *seconds; /* of each step */
    sm_train_result last;
    train_times times;
    train_memory memory;
    double bytes_apart; /* |predicted - counted|, over all ranks and steps */
    double shown_s;
} train_run;
double train_run_tokens(const train_run *q); /* of a batch */

/* The whole answer, and the files of --curve and --plot; SM_NEGATIVE when bytes were not as
 * predicted. */
sm_status train_report(sm_report *r, train_run *q, sm_error *err);

/* run_train: a run of training as the files of the verb share it: what was asked, what the planner
 * predicts, what was measured. */
#pragma once
#include "prediction.h"
#include "scalemodel/goodput.h"
#include "train_checkpoint.h"

#include <stdlib.h>

/* Where the time of training steps went, from every rank, beside where the planner
 * sees it go. What is measured is the mean, over the steps but the first and over the ranks of one
 * stage: the one the price tells of. */
/* Of one rank, summed over steps. */
typedef struct train_tally {
    int steps;
    double step_s, time_s[SM_TRAIN_TIME_COUNT], collective_s[SM_COLLECTIVE_COUNT];
} train_tally;
void train_tally_add(train_tally *tally, const sm_train_result *r);

/* Which way an op runs; gradients of inputs and of weights are one. */
typedef enum train_way { TRAIN_FORWARD, TRAIN_AGAIN, TRAIN_BACKWARD, TRAIN_STEP_END } train_way;
const char *train_way_name(train_way way);

/* An op, or a collective on an array; the bytes are those of a rank, V as in sm_step. */
typedef struct train_row {
    char name[24]; /* of the op, or the array */
    int kind;      /* sm_op_kind, or sm_collective */
    train_way way;
    double predicted_s, measured_s, predicted_calls, calls, flops, bytes;
    double exposed_s; /* predicted: what other work does not hide */
    double around_s; /* of measured: blocks and copies about the kernels, which a launch pays for */
    double most_s;   /* measured of the rank that took longest */
    sm_bound bound;  /* predicted */
} train_row;
enum { TRAIN_MOST_ROWS = 256 };
typedef struct train_rows {
    int n;
    train_row row[TRAIN_MOST_ROWS];
} train_rows;

typedef struct train_times {
    int stages, stage; /* how many there are; the one told of */
    int busiest;       /* the stage whose ops took longest */
    int ranks;         /* of the stage */
    double step_s;     /* mean */
    double time_s[SM_TRAIN_TIME_COUNT], collective_s[SM_COLLECTIVE_COUNT];
    double gradients_s; /* rows of gradients packed and added at the end of the step */
    double joining_s;   /* loss and norm joined over all ranks */
    train_rows ops, moves;
} train_times;
/* Made by every rank; rank 0 alone fills *out, which holds nothing before. */
sm_status train_tally_gather(sm_communicator *world, sm_trainer *t, const train_tally *tally,
                             int stage, train_times *out, sm_error *err);
/* Rows of the prediction, to be called once the measured ones are there. */
void train_times_predict(const sm_plan_detail *detail, train_times *out);

/* ---- memory ---- */
typedef struct train_memory {
    int rank;             /* the one that had most */
    sm_train_memory most; /* of it */
    double process_bytes; /* resident, of the largest process that is one rank; 0: not known */
} train_memory;
/* Called by every rank; rank 0 fills out. */
sm_status train_memory_gather(sm_communicator *world, const sm_trainer *t, train_memory *out,
                              sm_error *err);

/* ---- what explains the gap ---- */
typedef struct train_gap {
    char name[64];
    double predicted_s, measured_s;
} train_gap;
enum { TRAIN_MOST_GAPS = 2 * TRAIN_MOST_ROWS + 16 };
/* Everything a step is made of, predicted and measured, by the size of the difference, largest
 * first; both columns add up to their step. Returns how many. */
int train_gaps(const train_times *times, const sm_price_of_plan *price, train_gap *gap);

typedef struct run_train_values {
    ranks_values ranks;
    const char *plan, *data, *curve, *plot, *checkpoint, *resume, *record;
    int64_t seq, steps, until, seed, every, keep;
    int method; /* 0: of text; 1: of pairs */
    double beta;
    bool fresh;
    sm_source batch;
    double rate, failures;
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
typedef struct values {
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
    double scored_s;    /* all pairs by the reference */
    double shown_s;
} train_run;
double train_run_tokens(const train_run *q); /* of a batch */

/* The pairs of a file, a line each, into the setup. SM_BAD_INPUT with the place of what is wrong.
 */
sm_status train_pairs_read(train_run *q, const sm_source *file, sm_error *err);
/* The whole answer, and the files of --curve and --plot; SM_NEGATIVE when bytes were not as
 * predicted. */
sm_status train_report(sm_report *r, train_run *q, sm_error *err);

/* A training with a rank killed now and then, at times drawn as a Poisson process
 * has them (which sm_goodput_of assumes), and begun anew from its last checkpoint each time. Each
 * attempt is a program of its own, which the environment tells when it fails and where to note what
 * it has done; the last one answers for all. */
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

/* What a plan of the planner means for the training runtime. */
/* Degrees, rules and the order of work of each stage into *setup, whose model, tokens and sequences
 * are set. The plan becomes one of single precision (sm_train_plan_as_run). SM_BAD_INPUT when the
 * plan asks for what the runtime does not do. */
sm_status train_setup_of_plan(sm_plan *plan, sm_arena *arena, sm_train_setup *setup, sm_error *err);
/* The layers of the model dealt out to the stages of a pipeline. */
sm_status train_stages_of_plan(const sm_plan *plan, sm_arena *arena, sm_train_setup *setup,
                               sm_error *err);
/* Degrees and rules alone. */
void train_degrees_of_plan(const sm_plan *plan, sm_train_setup *setup);

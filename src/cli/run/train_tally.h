/* train_tally: where the time of training steps went, from every rank, beside where the planner
 * sees it go. What is measured is the mean, over the steps but the first and over the ranks of one
 * stage: the one the price tells of. */
#pragma once
#include "scalemodel/run_train.h"
#include "scalemodel/train.h"

/* Of one rank, summed over steps. */
typedef struct train_tally {
    int steps;
    double step_s, time_s[SM_TRAIN_TIME_COUNT], collective_s[SM_COLLECTIVE_COUNT];
} train_tally;
void train_tally_add(train_tally *tally, const sm_train_result *r);

/* Which way an op runs; gradients of inputs and of weights are one. */
typedef enum train_way { TRAIN_FORWARD, TRAIN_AGAIN, TRAIN_BACKWARD, TRAIN_STEP_END } train_way;
const char *train_way_name(train_way way);

typedef struct train_op_row {
    char op[24];
    sm_op_kind kind;
    train_way way;
    double predicted_s, measured_s;
    double around_s; /* of measured: blocks and copies about the kernels, which a launch pays for */
    double most_s;   /* measured of the rank that took longest */
    double predicted_calls, calls, flops, bytes;
    sm_bound bound; /* predicted */
} train_op_row;

/* A collective on an array. The bytes are those of a rank, V as in sm_step. */
typedef struct train_move_row {
    sm_collective op;
    char array[24];
    train_way way;
    double predicted_s, exposed_s; /* exposed: what other work does not hide */
    double measured_s, predicted_calls, calls, bytes;
} train_move_row;

enum { TRAIN_MOST_ROWS = 256 };
typedef struct train_times {
    int stages, stage; /* how many there are; the one told of */
    int busiest;       /* the stage whose ops took longest */
    int ranks;         /* of the stage */
    double step_s;     /* mean */
    double time_s[SM_TRAIN_TIME_COUNT], collective_s[SM_COLLECTIVE_COUNT];
    double gradients_s; /* rows of gradients packed and added at the end of the step */
    double joining_s;   /* loss and norm joined over all ranks */
    int ops, moves;
    train_op_row op[TRAIN_MOST_ROWS];
    train_move_row move[TRAIN_MOST_ROWS];
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

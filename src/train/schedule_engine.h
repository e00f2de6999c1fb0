/* Inside src/train: running the ops of a schedule one by one, in the order of each stage. */
#pragma once
#include "schedule_order.h"

/* What an op code means on a stage. A row counts the ops of one kind on one lane and keeps when
 * they ended; op j of a row needs op j of its source row. */
typedef struct sm_action {
    double duration_s;
    int row, source; /* source: -1 for none */
    int also;        /* a second row that counts it: a whole backward is a weight gradient too */
} sm_action;

/* Lanes are numbered by chunk; the second direction of dualpipe follows behind the first. Each has
 * three rows. */
typedef struct sm_engine {
    const sm_pipeline *pipeline;
    int p, local_lanes, m; /* stages, lanes of a stage, microbatches of a lane */
    int chunks, lanes;     /* of the model; dualpipe feeds each chunk by two lanes */
    double *end_s;         /* [row * m + j] */
    double *idle_s;        /* of each stage: the end of its last op */
    sm_action *actions;    /* [stage * 4 * local_lanes + code] */
    sm_op_list *orders;    /* of each stage */
    sm_op_code *code;      /* room for the orders */
    int *done;             /* of each row: its ops so far; one row more takes what nobody asks */
    int *next;             /* of each stage: its next op */
    sm_slot *slots;        /* NULL when none are wanted */
    int *first_slot;       /* of each stage */
} sm_engine;

enum { SM_ROW_FORWARD, SM_ROW_BACKWARD, SM_ROW_WEIGHT, SM_ROWS };

/* Bytes for a run of so many microbatches. */
size_t sm_engine_bytes(const sm_pipeline *p, int microbatches);
/* An engine before its first op, in the caller's scratch. */
sm_engine sm_engine_start(const sm_pipeline *p, int microbatches, void *scratch, sm_slot *slots);
/* Run every stage up to, not including, op stop[i] of its order. */
void sm_engine_run(sm_engine *e, const int *stop);
/* Run all that is left; when the last op ends. */
double sm_engine_finish(sm_engine *e);

static inline int sm_lane_of(const sm_pipeline *p, int stage, int local) {
    bool folds = p->schedule == SM_SCHEDULE_ZB_V || p->schedule == SM_SCHEDULE_DUALPIPE;
    return folds && local == 1 ? 2 * p->stages - 1 - stage : local * p->stages + stage;
}

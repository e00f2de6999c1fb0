/* Inside src/train: the order in which a stage executes its ops, and the durations an op takes. */
#ifndef SCALEMODEL_TRAIN_SCHEDULE_ORDER_H
#define SCALEMODEL_TRAIN_SCHEDULE_ORDER_H
#include "scalemodel/schedule.h"

/* One op of a stage: its kind and the lane it works on. A lane is one chunk fed from one end of the
 * pipeline; every schedule passes the microbatches of a lane in order, so the microbatch is the
 * count of earlier ops of the same kind and lane. Lanes of a stage are numbered in the order its
 * schedule speaks of them ("local"). */
typedef uint16_t sm_op_code;
#define SM_OP(kind, local) ((sm_op_code)((unsigned)(local) << 2 | (unsigned)(kind)))
#define SM_OP_KIND(code) ((sm_slot_kind)((code) & 3u))
#define SM_OP_LOCAL(code) ((int)((code) >> 2))

/* Where ops go: into code[] (room for 3 x lanes x microbatches of a lane), or, with code NULL,
 * into the count of activations held on two lanes and its first peak. */
typedef struct sm_op_list {
    sm_op_code *code;
    int count;
    int held[2], peak[2];
} sm_op_list;

/* Append the whole order of one stage of a possible schedule. With list->code NULL only schedules
 * of two lanes make sense. */
void sm_schedule_order(sm_schedule schedule, int p, int v, int m, int stage, sm_op_list *list);

int sm_schedule_chunks(sm_schedule schedule, int p, int v);      /* chunks of the model */
int sm_schedule_lanes(sm_schedule schedule, int v);              /* lanes of one stage */
int sm_schedule_lane_microbatches(sm_schedule schedule, int m);  /* microbatches of one lane */
bool sm_schedule_splits(sm_schedule schedule);                   /* weight gradients apart? */

/* Durations of an op on chunk c, the exposed send folded into the op that receives it. */
double sm_op_forward_s(const sm_pipeline *p, int chunk);
double sm_op_backward_input_s(const sm_pipeline *p, int chunk);

/* All work of a stage, and the part of it that is weight gradients. */
double sm_stage_work_s(const sm_pipeline *p, int stage);
double sm_stage_weight_s(const sm_pipeline *p, int stage);

/* The total with the busiest stage beside it. */
sm_pipeline_time sm_pipeline_timed(const sm_pipeline *p, double total_s);

/* The quick simulations of the schedules whose steps form waves across the stages.
 * scratch: room for SM_WAVE_DOUBLES(p, v) doubles. */
#define SM_WAVE_DOUBLES(p, v) (6 * ((size_t)(p) + 2) + 4 * (size_t)(p) * (size_t)(v))
double sm_wave_1f1b(const sm_pipeline *p, double *scratch);        /* 1f1b and zb-h1 */
double sm_wave_interleaved(const sm_pipeline *p, double *scratch);

/* The same for zb-v and dualpipe; scratch: SM_STEADY_BYTES(p) and an engine. */
#define SM_STEADY_BYTES(p) (13 * sizeof(double) * (size_t)(p))
double sm_two_lanes_s(const sm_pipeline *p, void *scratch);

double sm_gpipe_s(const sm_pipeline *p); /* closed, exact */
#endif

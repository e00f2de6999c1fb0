/* Inside src/train: the order in which a stage executes its ops, and the durations an op takes. */
#pragma once
#include "scalemodel/schedule.h"

enum { SM_STAGES_MAX = 1024 };
static inline int smaller(int a, int b) { return a < b ? a : b; }
static inline int larger(int a, int b) { return a > b ? a : b; }
static inline double later(double a, double b) { return a > b ? a : b; }

/* One op of a stage: its kind and the lane it works on. A lane is one chunk fed from one end of the
 * pipeline; every schedule passes the microbatches of a lane in order, so the microbatch is the
 * count of earlier ops of the same kind and lane. Lanes of a stage are numbered in the order its
 * schedule speaks of them ("local"). */
typedef uint16_t sm_op_code;
#define SM_OP(kind, local) ((sm_op_code)((unsigned)(local) << 2 | (unsigned)(kind)))
#define SM_OP_KIND(code) ((sm_slot_kind)((code)&3u))

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

/* Chunks of the model. */
static inline int sm_schedule_chunks(sm_schedule schedule, int p, int v) {
    return schedule == SM_SCHEDULE_DUALPIPE ? p : p * v;
}

/* Are weight gradients ops of their own? */
static inline bool sm_schedule_splits(sm_schedule schedule) {
    return schedule == SM_SCHEDULE_ZB_H1 || schedule == SM_SCHEDULE_ZB_V ||
           schedule == SM_SCHEDULE_DUALPIPE;
}

/* Does a chunk hand its output to another stage? Not where a V turns. */
static inline bool sm_chunk_sends(const sm_pipeline *p, int chunk) {
    return p->stages > 1 && !(p->schedule == SM_SCHEDULE_ZB_V && chunk == p->stages - 1);
}

/* Durations of an op on chunk c, the exposed send folded into the op that receives it. */
static inline double sm_op_forward_s(const sm_pipeline *p, int chunk) {
    bool received = chunk > 0 && sm_chunk_sends(p, chunk - 1);
    return p->chunk[chunk].forward + (received ? p->send_s : 0);
}

static inline double sm_op_backward_input_s(const sm_pipeline *p, int chunk) {
    bool received = chunk < sm_schedule_chunks(p->schedule, p->stages, p->chunks_per_stage) - 1 &&
                    sm_chunk_sends(p, chunk);
    return p->chunk[chunk].backward_input + (received ? p->send_s : 0);
}

/* All work of a stage, and the part of it that is weight gradients. */
double sm_stage_work_s(const sm_pipeline *p, int stage);
double sm_stage_weight_s(const sm_pipeline *p, int stage);

/* The quick simulations of the schedules whose steps form waves across the stages.
 * scratch: room for SM_WAVE_DOUBLES(p, v) doubles. */
#define SM_WAVE_DOUBLES(p, v) (6 * ((size_t)(p) + 2) + 4 * (size_t)(p) * (size_t)(v))
double sm_wave_1f1b(const sm_pipeline *p, double *scratch); /* 1f1b and zb-h1 */
double sm_wave_interleaved(const sm_pipeline *p, double *scratch);

/* The same for zb-v and dualpipe; scratch: SM_STEADY_BYTES(p) and an engine. */
#define SM_STEADY_BYTES(p) (13 * sizeof(double) * (size_t)(p))
double sm_two_lanes_s(const sm_pipeline *p, void *scratch);

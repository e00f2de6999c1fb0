/* train: pipeline schedules. One microbatch passes p*v chunks forward and backward; a schedule
 * fixes the order in which each of the p stages executes its ops. Time comes from an exact
 * simulation; closed forms where they equal it. */
#pragma once
#include "scalemodel/plan.h"

SM_DECLARATIONS_BEGIN

/* Times of one microbatch on one chunk. backward_input + backward_weight is the whole backward;
 * schedules that do not split run them back to back (input first). */
typedef struct sm_chunk_time {
    double forward, backward_input, backward_weight;
} sm_chunk_time;

typedef struct sm_pipeline {
    sm_schedule schedule;
    int stages, chunks_per_stage, microbatches; /* p, v, m. zb-v and dualpipe: v = 2 */
    const sm_chunk_time *chunk; /* [p*v] ([p] for dualpipe) in model order: chunk 0 holds the
                                 * embedding, the last one the loss */
    double send_s; /* exposed time of handing an activation to the next stage (added to the
                    * receiver's op) */
} sm_pipeline;

/* Which stage holds chunk c: interleaved c % p; zb-v: c < p ? c : 2p-1-c; dualpipe: c, and
 * chunk c of the p is on stage p-1-c too. */
int sm_schedule_stage(sm_schedule schedule, int stages, int chunks_per_stage, int chunk);
/* Is the combination possible (interleaved: m a multiple of p, v >= 2; dualpipe: p even, m even and
 * m >= 2p; ...)? *why: the reason against it, or NULL. */
bool sm_schedule_possible(sm_schedule schedule, int stages, int chunks_per_stage, int microbatches,
                          const char **why);

typedef enum sm_slot_kind {
    SM_SLOT_FORWARD,
    SM_SLOT_BACKWARD,
    SM_SLOT_BACKWARD_INPUT,
    SM_SLOT_BACKWARD_WEIGHT
} sm_slot_kind;
typedef struct sm_slot {
    int stage, chunk, microbatch;
    sm_slot_kind kind;
    double start_s, end_s;
} sm_slot;

typedef struct sm_pipeline_time {
    double total_s;   /* first op starts at 0, last op ends */
    double busiest_s; /* work and exposed sends of the busiest stage: total - this = bubble */
    int busiest_stage;
} sm_pipeline_time;

/* Bytes of scratch that a simulation of this pipeline needs, with slots or without. */
size_t sm_pipeline_scratch(const sm_pipeline *p, bool slots);
/* How many slots a simulation fills: one for each op of each stage. A dualpipe splits some
 * backwards. */
size_t sm_pipeline_slots(const sm_pipeline *p);
/* Simulate the step exactly, op by op, in the units of the chunks' times (seconds). scratch:
 * sm_pipeline_scratch() bytes, 16-aligned, the caller's. slots: NULL, or room for
 * sm_pipeline_slots() entries, filled in stage order, then time order. Never allocates, never fails
 * on a possible schedule. A stage runs one op at a time: the forward and backward that dualpipe
 * overlaps take the sum of their times here. Without slots the part of a long step that only
 * repeats is not run again, so that m costs no more than a few p. */
sm_pipeline_time sm_pipeline_simulate(const sm_pipeline *p, void *scratch, sm_slot *slots);
/* Its total alone, without slots. */
double sm_pipeline_simulated_s(const sm_pipeline *p, void *scratch);
/* A total with the busiest stage beside it. */
sm_pipeline_time sm_pipeline_timed(const sm_pipeline *p, double total_s);
/* A lower bound from sums alone: max over stages of (fill + m x work + drain). Admissible for every
 * schedule. */
double sm_pipeline_bound(const sm_pipeline *p);

/* Activations alive at the peak on a stage, in microbatch-chunks (of one chunk each): forward done,
 * backward not finished. held[c] for each chunk c of the stage in model order (v values): the count
 * for each at the stage's (first) peak of the total. Where weight gradients are ops of their own,
 * the backward is finished when they are. The order of ops alone decides, so the counts hold for
 * any times. */
void sm_schedule_in_flight(sm_schedule schedule, int stages, int chunks_per_stage, int microbatches,
                           int stage, int *held);
SM_DECLARATIONS_END

/* What a pipeline schedule is: names, where chunks live, which combinations exist, what is held. */
#include "schedule_order.h"

/* Far beyond any machine; they keep every index inside an int. */
enum { STAGES_MAX = SM_STAGES_MAX, CHUNKS_MAX = 512, MICROBATCHES_MAX = 1 << 20 };

int sm_schedule_stage(sm_schedule schedule, int stages, int chunks_per_stage, int chunk) {
    (void)chunks_per_stage;
    if (schedule == SM_SCHEDULE_ZB_V) return chunk < stages ? chunk : 2 * stages - 1 - chunk;
    return chunk % stages;
}

static const char *refusal_of(sm_schedule schedule, int p, int v, int m) {
    if (p < 1 || v < 1 || m < 1)
        return "stages, chunks per stage and microbatches must be at least 1";
    if (p > STAGES_MAX) return "a pipeline has at most 1024 stages";
    if (v > CHUNKS_MAX) return "a stage has at most 512 chunks";
    if (m > MICROBATCHES_MAX) return "a step has at most 1048576 microbatches";
    switch (schedule) {
    case SM_SCHEDULE_GPIPE:
    case SM_SCHEDULE_1F1B:
    case SM_SCHEDULE_ZB_H1: return v == 1 ? NULL : "this schedule holds 1 chunk per stage";
    case SM_SCHEDULE_INTERLEAVED:
        if (v < 2) return "interleaved needs at least 2 chunks per stage";
        return m % p == 0 ? NULL : "interleaved needs a multiple of the stages as microbatches";
    case SM_SCHEDULE_ZB_V: return v == 2 ? NULL : "zb-v holds 2 chunks per stage";
    case SM_SCHEDULE_DUALPIPE:
        if (v != 2) return "dualpipe holds 2 chunks per stage";
        if (p % 2 != 0) return "dualpipe needs an even number of stages";
        if (m % 2 != 0) return "dualpipe needs an even number of microbatches, half from each end";
        return m < 2 * p ? "dualpipe needs at least 2 microbatches per stage" : NULL;
    case SM_SCHEDULE_COUNT:
    default: return "no such schedule";
    }
}

bool sm_schedule_possible(sm_schedule schedule, int stages, int chunks_per_stage, int microbatches,
                          const char **why) {
    const char *refusal = refusal_of(schedule, stages, chunks_per_stage, microbatches);
    if (why) *why = refusal;
    return !refusal;
}

/* Megatron's warm-up of 2(p-i-1) + (v-1)p forwards and one more before the first backward; the
 * forwards visit the chunks in turn, p microbatches each. */
static void interleaved_in_flight(int p, int v, int m, int stage, int *held) {
    int forwards = smaller(2 * (p - stage - 1) + (v - 1) * p + 1, m * v);
    int rounds = forwards / (p * v), rest = forwards % (p * v);
    for (int c = 0; c < v; c++) {
        int last = rest - c * p;
        held[c] = rounds * p + (last < 0 ? 0 : smaller(last, p));
    }
}

/* Chunk i goes down the stages and comes back up: 2p are held from the first backward on, which
 * comes after 2(p-i) - 1 forwards of the way down and i of each way. Of fewer microbatches the
 * order has gaps, and is walked. */
static void zb_v_in_flight(int p, int m, int stage, int *held) {
    sm_op_list list = {0};
    held[0] = 2 * p - 1 - stage;
    held[1] = stage + 1;
    if (m >= 2 * p - 1) return;
    sm_schedule_order(SM_SCHEDULE_ZB_V, p, 2, m, stage, &list);
    held[0] = list.peak[0];
    held[1] = list.peak[1];
}

/* DeepSeek-V3's table: p + 1 for each stage. Of 2p microbatches at least, the lane that enters near
 * the stage is ahead by what is still on its way to the middle and back. */
static void dualpipe_in_flight(int p, int stage, int *held) {
    int rank = stage < p / 2 ? stage : p - 1 - stage;
    held[0] = p - rank;
    held[1] = rank + 1;
}

void sm_schedule_in_flight(sm_schedule schedule, int stages, int chunks_per_stage, int microbatches,
                           int stage, int *held) {
    switch (schedule) {
    case SM_SCHEDULE_GPIPE: held[0] = microbatches; break;
    case SM_SCHEDULE_1F1B: held[0] = smaller(stages - stage, microbatches); break;
    case SM_SCHEDULE_ZB_H1: /* p - i wait for their backward and i for their weight gradient */
        held[0] = smaller(stages, microbatches);
        break;
    case SM_SCHEDULE_INTERLEAVED:
        interleaved_in_flight(stages, chunks_per_stage, microbatches, stage, held);
        break;
    case SM_SCHEDULE_ZB_V: zb_v_in_flight(stages, microbatches, stage, held); break;
    case SM_SCHEDULE_DUALPIPE: dualpipe_in_flight(stages, stage, held); break;
    case SM_SCHEDULE_COUNT:
    default: break;
    }
}

/* The order of ops on one stage, for each schedule. */
#include "schedule_order.h"
#include <assert.h>

enum {
    F = SM_SLOT_FORWARD,
    B = SM_SLOT_BACKWARD,
    I = SM_SLOT_BACKWARD_INPUT,
    W = SM_SLOT_BACKWARD_WEIGHT
};

/* An activation lives from its forward to the end of its whole backward: without room for the codes
 * the list counts those that are held. */
static inline void put(sm_op_list *list, int kind, int local) {
    if (list->code) list->code[list->count++] = SM_OP(kind, local);
    else if (kind != I) {
        assert(local == 0 || local == 1);
        list->held[local] += kind == F ? 1 : -1;
        if (list->held[0] + list->held[1] > list->peak[0] + list->peak[1]) {
            list->peak[0] = list->held[0];
            list->peak[1] = list->held[1];
        }
    }
}

static void repeat(sm_op_list *list, int times, int kind, int local) {
    for (int k = 0; k < times; k++) put(list, kind, local);
}

/* PipeDream-flush, Narayanan et al. 2020 (arXiv 2006.09503). Split, ZB-H1, Qi et al. 2023 (arXiv
 * 2401.10241): stage i delays its weight gradients by i microbatches, so that every stage holds p
 * activations. */
static void one_f_one_b_order(int p, int m, int stage, bool split, sm_op_list *list) {
    int warm = smaller(p - 1 - stage, m);
    repeat(list, warm, F, 0);
    for (int j = 0; j < m; j++) {
        if (warm + j < m) put(list, F, 0);
        put(list, split ? I : B, 0);
        if (split && j >= stage) put(list, W, 0);
    }
    if (split) repeat(list, smaller(stage, m), W, 0);
}

/* Interleaved 1F1B, Narayanan et al. 2021 (arXiv 2104.04473): forwards take p microbatches of
 * chunk 0, p of chunk 1, ..., then the next p microbatches; backwards the same from the last
 * chunk; 2(p-i-1) + (v-1)p forwards go first. */
static void interleaved_order(int p, int v, int m, int stage, sm_op_list *list) {
    int n = m * v, warm = smaller(2 * (p - 1 - stage) + (v - 1) * p, n);
    for (int k = -warm; k < n; k++) {
        int forward = k + warm;
        if (forward < n) put(list, F, forward / p % v);
        if (k >= 0) put(list, B, v - 1 - k / p % v);
    }
}

/* A stage of zb-v: ops beyond the last microbatch are left out, the order of the rest stays. */
typedef struct v_state {
    sm_op_list *list;
    int m;
    int forward[2], input[2], weight[2];
} v_state;

static void v_put(v_state *s, int *count, int kind, int local) {
    if (*count < s->m) put(s->list, kind, local);
    ++*count;
}

static void v_forward(v_state *s, int local) { v_put(s, &s->forward[local], F, local); }
static void v_input(v_state *s, int local) { v_put(s, &s->input[local], I, local); }
static void v_weight(v_state *s, int local) { v_put(s, &s->weight[local], W, local); }

static void v_backward(v_state *s, int local) {
    v_input(s, local);
    v_weight(s, local);
}

/* V-ZB, Qi et al. 2024 (arXiv 2405.15362): chunk i goes down the stages, chunk 2p-1-i comes back
 * up; 2p activations of half a stage each are held at most, the memory of 1F1B. */
static void zb_v_order(int p, int m, int stage, sm_op_list *list) {
    int n = m < 2 * p - 1 ? 2 * p - 1 : m; /* fewer leave gaps in the same order */
    v_state s = {.list = list, .m = m};
    for (int k = 0; k < 2 * (p - stage) - 1; k++) v_forward(&s, 0);
    for (int k = 0; k < stage; k++) {
        v_forward(&s, 1);
        v_forward(&s, 0);
    }
    for (int k = 0; k < p - stage; k++) {
        v_forward(&s, 1);
        v_backward(&s, 1);
    }
    while (s.forward[1] < s.forward[0] || s.forward[0] < n) {
        if (s.forward[0] < n) v_forward(&s, 0);
        v_backward(&s, 0);
        v_forward(&s, 1);
        v_backward(&s, 1);
    }
    for (int k = 0; k < stage; k++) {
        v_input(&s, 0);
        v_input(&s, 1);
    }
    for (int k = 0; k < p - stage; k++) {
        v_input(&s, 0);
        v_weight(&s, 0);
    }
    for (int local = 1; local >= 0; local--)
        while (s.weight[local] < s.input[local]) v_weight(&s, local);
}

/* The last backwards of dualpipe: the nearer half of the stage's final ones are split, and their
 * weight gradients, oldest first, fill the waits of the drain. */
static void dualpipe_drain(int half, int near, int near_lane, int far_lane, sm_op_list *list) {
    int rank = half - 1 - near, whole = rank + 1;
    int lanes[2] = {far_lane, near_lane};
    for (int k = 0; k < 2 * (rank + 1); k++) put(list, k < whole ? B : I, lanes[k % 2]);
    for (int k = 0; k < half; k++) {
        put(list, W, k <= rank ? lanes[(whole + k) % 2] : near_lane);
        if (k < near) put(list, I, near_lane);
    }
}

/* DualPipe, DeepSeek-V3 (arXiv 2412.19437), with the counts of the eight steps of the published
 * schedule. The near lane enters from this stage's end of the pipeline. Lane 0 enters at 0. */
static void dualpipe_order(int p, int m, int stage, sm_op_list *list) {
    int half = p / 2, far_lane = stage < half, near_lane = !far_lane;
    int rank = stage < half ? stage : p - 1 - stage, near = half - rank - 1;
    repeat(list, 2 * near, F, near_lane);
    for (int k = 0; k <= rank; k++) {
        put(list, F, near_lane);
        put(list, F, far_lane);
    }
    for (int k = 0; k < near; k++) {
        put(list, I, far_lane);
        put(list, W, far_lane);
        put(list, F, far_lane);
    }
    for (int k = 0; k < m / 2 - p + rank + 1; k++) {
        put(list, F, near_lane);
        put(list, B, far_lane);
        put(list, F, far_lane);
        put(list, B, near_lane);
    }
    for (int k = 0; k < near; k++) {
        put(list, B, far_lane);
        put(list, F, far_lane);
        put(list, B, near_lane);
    }
    dualpipe_drain(half, near, near_lane, far_lane, list);
}

void sm_schedule_order(sm_schedule schedule, int p, int v, int m, int stage, sm_op_list *list) {
    assert(v >= 1 && m >= 1 && stage >= 0 && stage < p);
    switch (schedule) {
    case SM_SCHEDULE_GPIPE: /* Huang et al. 2018 (arXiv 1811.06965) */
        repeat(list, m, F, 0);
        repeat(list, m, B, 0);
        break;
    case SM_SCHEDULE_1F1B: one_f_one_b_order(p, m, stage, false, list); break;
    case SM_SCHEDULE_INTERLEAVED: interleaved_order(p, v, m, stage, list); break;
    case SM_SCHEDULE_ZB_H1: one_f_one_b_order(p, m, stage, true, list); break;
    case SM_SCHEDULE_ZB_V: zb_v_order(p, m, stage, list); break;
    case SM_SCHEDULE_DUALPIPE: dualpipe_order(p, m, stage, list); break;
    case SM_SCHEDULE_COUNT:
    default: break;
    }
}

/* Running the ops of a schedule one by one. */
#include "schedule_engine.h"
#include <assert.h>

/* --- The engine's memory, cut from the caller's scratch: widest types first. */
static size_t order_room(const sm_engine *e) { return 3 * (size_t)e->local_lanes * (size_t)e->m; }

static sm_engine sized(const sm_pipeline *p, int microbatches) {
    const bool both_ways = p->schedule == SM_SCHEDULE_DUALPIPE;
    sm_engine e = {.pipeline = p, .p = p->stages};
    e.m = both_ways ? microbatches / 2 : microbatches; /* of a lane */
    e.local_lanes = both_ways ? 2 : p->chunks_per_stage;
    e.lanes = e.local_lanes * e.p;
    e.chunks = sm_schedule_chunks(p->schedule, p->stages, p->chunks_per_stage);
    return e;
}

size_t sm_engine_bytes(const sm_pipeline *p, int microbatches) {
    sm_engine e = sized(p, microbatches);
    size_t rows = SM_ROWS * (size_t)e.lanes, stages = (size_t)e.p;
    return (rows * (size_t)e.m + stages) * sizeof(double) +
           4 * (size_t)e.lanes * sizeof(sm_action) + stages * sizeof(sm_op_list) +
           (rows + 1 + 2 * stages) * sizeof(int) + stages * order_room(&e) * sizeof(sm_op_code);
}

/* A forward comes from the chunk before, a backward from the chunk behind. Where the model ends a
 * backward follows the forward of its own stage, which the order puts before it. */
static void set_actions(const sm_engine *e, int lane, sm_action *action) {
    const sm_pipeline *p = e->pipeline;
    int chunk = lane % e->chunks, row = lane * SM_ROWS, nobody = e->lanes * SM_ROWS;
    int behind = chunk == e->chunks - 1 ? -1 : row + SM_ROWS + SM_ROW_BACKWARD;
    double input_s = sm_op_backward_input_s(p, chunk), weight_s = p->chunk[chunk].backward_weight;
    action[SM_SLOT_FORWARD] =
        (sm_action){sm_op_forward_s(p, chunk), row, chunk == 0 ? -1 : row - SM_ROWS, nobody};
    action[SM_SLOT_BACKWARD] =
        (sm_action){input_s + weight_s, row + SM_ROW_BACKWARD, behind, row + SM_ROW_WEIGHT};
    action[SM_SLOT_BACKWARD_INPUT] = (sm_action){input_s, row + SM_ROW_BACKWARD, behind, nobody};
    action[SM_SLOT_BACKWARD_WEIGHT] = (sm_action){weight_s, row + SM_ROW_WEIGHT, -1, nobody};
}

sm_engine sm_engine_start(const sm_pipeline *p, int microbatches, void *scratch, sm_slot *slots) {
    sm_engine e = sized(p, microbatches);
    int slot = 0;
    size_t rows = SM_ROWS * (size_t)e.lanes, stages = (size_t)e.p;
    e.end_s = scratch;
    e.idle_s = e.end_s + rows * (size_t)e.m;
    e.actions = (sm_action *)(void *)(e.idle_s + stages);
    e.orders = (sm_op_list *)(void *)(e.actions + 4 * (size_t)e.lanes);
    e.done = (int *)(void *)(e.orders + stages);
    e.next = e.done + rows + 1;
    e.first_slot = e.next + stages;
    e.code = (sm_op_code *)(void *)(e.first_slot + stages);
    e.slots = slots;
    for (int row = 0; row <= SM_ROWS * e.lanes; row++) e.done[row] = 0;
    for (int i = 0; i < e.p; i++) {
        e.orders[i] = (sm_op_list){.code = e.code + (size_t)i * order_room(&e)};
        sm_schedule_order(p->schedule, e.p, p->chunks_per_stage, microbatches, i, &e.orders[i]);
        for (int local = 0; local < e.local_lanes; local++)
            set_actions(&e, sm_lane_of(p, i, local), e.actions + 4 * (i * e.local_lanes + local));
        e.idle_s[i] = 0;
        e.next[i] = 0;
        e.first_slot[i] = slot;
        slot += e.orders[i].count;
        assert((size_t)e.orders[i].count <= order_room(&e));
    }
    return e;
}

/* --- Running. */
static void record(const sm_engine *e, int stage, int next, int j, double start_s, double end_s) {
    sm_op_code code = e->orders[stage].code[next];
    const sm_action *a = &e->actions[4 * stage * e->local_lanes + code];
    int lane = a->row / SM_ROWS;
    e->slots[e->first_slot[stage] + next] = (sm_slot){.stage = stage,
                                                      .chunk = lane % e->chunks,
                                                      .kind = SM_OP_KIND(code),
                                                      .microbatch = lane < e->chunks ? j : e->m + j,
                                                      .start_s = start_s,
                                                      .end_s = end_s};
}

/* Run a stage until an op's input is missing. Did it move? */
static bool run_stage(sm_engine *e, int stage, int stop) {
    const sm_op_code *code = e->orders[stage].code;
    const sm_action *actions = e->actions + 4 * stage * e->local_lanes;
    int *done = e->done, start = e->next[stage], next = start;
    size_t m = (size_t)e->m;
    bool slots = e->slots;
    double idle_s = e->idle_s[stage], *end_s = e->end_s;
    for (; next < stop; next++) {
        const sm_action *a = &actions[code[next]];
        int j = done[a->row];
        double start_s = 0;
        if (a->source >= 0) {
            if (done[a->source] <= j) break;
            start_s = end_s[(size_t)a->source * m + (size_t)j];
        }
        start_s = later(start_s, idle_s);
        idle_s = start_s + a->duration_s;
        end_s[(size_t)a->row * m + (size_t)j] = idle_s;
        done[a->row] = j + 1;
        done[a->also]++;
        if (slots) record(e, stage, next, j, start_s, idle_s);
    }
    e->next[stage] = next;
    e->idle_s[stage] = idle_s;
    return next > start;
}

/* Sweeps down the stages favour forwards, sweeps up backwards. */
void sm_engine_run(sm_engine *e, const int *stop) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < e->p; i++)
            moved |= run_stage(e, i, stop ? stop[i] : e->orders[i].count);
        for (int i = e->p - 1; i >= 0; i--)
            moved |= run_stage(e, i, stop ? stop[i] : e->orders[i].count);
    }
}

double sm_engine_finish(sm_engine *e) {
    double total_s = 0;
    sm_engine_run(e, NULL);
    for (int i = 0; i < e->p; i++) total_s = later(total_s, e->idle_s[i]);
    return total_s;
}

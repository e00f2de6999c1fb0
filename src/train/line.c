/* A plan's pipeline as its stages execute it. */
#include "space.h"

/* dualpipe: the chunks once more, from the other end of the stages. */
static sm_status deal_layers(const sm_plan *p, int layers, sm_arena *arena, sm_train_line *out,
                             sm_error *err) {
    int once = chunk_count(p), first = 0, *of;
    sm_train_chunk *chunk = sm_arena_array(arena, (size_t)out->chunks, sizeof *chunk);
    of = sm_arena_array(arena, (size_t)once, sizeof *of);
    if (!chunk || !of) return sm_fail_memory(err);
    sm_plan_layout_fill(p, layers, once, of);
    for (int c = 0; c < once; c++) {
        int n = of[c];
        int stage = sm_schedule_stage(p->schedule, p->pipeline, p->virtual_stages, c);
        if (n < 1)
            return sm_fail(err, SM_BAD_INPUT, "%d layers are too few for %d chunks of a pipeline",
                           layers, once);
        chunk[c] = (sm_train_chunk){stage, first, first + n};
        if (out->copies > 1)
            chunk[once + c] = (sm_train_chunk){p->pipeline - 1 - stage, first, first + n};
        first += n;
    }
    out->chunk = chunk;
    return SM_OK;
}

/* Slots come in the order of stages, then of time. Under dualpipe the later half of the
 * microbatches passes the second copy of the model. */
static sm_status order_actions(const sm_pipeline *p, const sm_slot *slot, sm_arena *arena,
                               sm_train_line *out, sm_error *err) {
    static const sm_train_act act[] = {[SM_SLOT_FORWARD] = SM_TRAIN_FORWARD,
                                       [SM_SLOT_BACKWARD] = SM_TRAIN_BACKWARD,
                                       [SM_SLOT_BACKWARD_INPUT] = SM_TRAIN_BACKWARD_INPUT,
                                       [SM_SLOT_BACKWARD_WEIGHT] = SM_TRAIN_BACKWARD_WEIGHT};
    size_t ranks = (size_t)p->stages, slots = sm_pipeline_slots(p);
    sm_train_action *all = sm_arena_array(arena, slots, sizeof *all);
    const sm_train_action **of = sm_arena_array(arena, ranks, sizeof *of);
    int *count = sm_arena_array(arena, ranks, sizeof *count);
    if (!all || !of || !count) return sm_fail_memory(err);
    for (size_t i = slots; i-- > 0;) {
        bool second = out->copies > 1 && slot[i].microbatch >= p->microbatches / 2;
        all[i] = (sm_train_action){
            act[slot[i].kind], slot[i].chunk + (second ? out->chunks / 2 : 0), slot[i].microbatch};
        of[slot[i].stage] = &all[i];
        count[slot[i].stage]++;
    }
    out->actions = count;
    out->action = of;
    return SM_OK;
}

static sm_status order_stages(const sm_plan *p, int microbatches, sm_arena *arena,
                              sm_train_line *out, sm_error *err) {
    sm_chunk_time *time = sm_arena_array(arena, (size_t)out->chunks, sizeof *time);
    int per_stage = out->chunks / p->pipeline;
    const char *why = "";
    if (!time) return sm_fail_memory(err);
    for (int c = 0; c < out->chunks; c++) time[c] = (sm_chunk_time){1, 1, 1};
    if (!sm_schedule_possible(p->schedule, p->pipeline, per_stage, microbatches, &why))
        return sm_fail(err, SM_BAD_INPUT, "this pipeline is not possible: %s", why);
    sm_pipeline line = {p->schedule, p->pipeline, per_stage, microbatches, time, 0};
    void *scratch = sm_arena_alloc(arena, sm_pipeline_scratch(&line, true));
    sm_slot *slot = sm_arena_array(arena, sm_pipeline_slots(&line), sizeof *slot);
    if (!scratch || !slot) return sm_fail_memory(err);
    sm_pipeline_simulate(&line, scratch, slot);
    return order_actions(&line, slot, arena, out, err);
}

sm_status sm_train_line_of(const sm_plan *plan, int layers, int microbatches, sm_arena *arena,
                           sm_train_line *out, sm_error *err) {
    *out = (sm_train_line){.stages = 1, .copies = 1};
    if (plan->pipeline == 1) return SM_OK;
    out->stages = plan->pipeline;
    out->copies = plan->schedule == SM_SCHEDULE_DUALPIPE ? 2 : 1;
    out->chunks = chunk_count(plan) * out->copies;
    sm_status status = deal_layers(plan, layers, arena, out, err);
    return status ? status : order_stages(plan, microbatches, arena, out, err);
}

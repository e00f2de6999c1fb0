/* The simulated step as slots in time. */

#include "space.h"

sm_status sm_train_timeline(sm_train *train, const sm_plan *plan, sm_arena *arena,
                            sm_timeline *timeline, sm_error *err) {
    sm_plan p = *plan;
    memset(timeline, 0, sizeof *timeline);
    sm_status status = price_prepare(train, &p, err);
    if (status) return status;
    stages *s = train->one_stages;
    stages_chunks(train, &p, train->one, EXPECTED, s);
    size_t slots = sm_pipeline_slots(&s->pipeline);
    if (slots > 4000000)
        return sm_fail(err, SM_BAD_INPUT,
                       "a timeline of %zu slots is more than 4 million: show fewer microbatches",
                       slots);
    timeline->slot = sm_arena_array(arena, slots, sizeof *timeline->slot);
    void *scratch = sm_arena_alloc(arena, sm_pipeline_scratch(&s->pipeline, true));
    if (!timeline->slot || !scratch) return sm_fail_memory(err);
    sm_pipeline_time time = sm_pipeline_simulate(&s->pipeline, scratch, timeline->slot);
    step_end end = step_end_of(train, &p, train->one, s);
    double step_s = step_close(train, &p, time.total_s, &end);
    timeline->stages = p.pipeline;
    timeline->slots = (int)slots;
    timeline->reduce_s = end.reduce_s + end.tie_s;
    timeline->optimizer_start_s = time.total_s + timeline->reduce_s;
    timeline->optimizer_s = end.update_s;
    timeline->end_s = step_s;
    return SM_OK;
}

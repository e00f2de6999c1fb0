/* train_tracks: the simulated step of a plan as a timeline: a track for each pipeline stage. */
#include "train_asked.h"

static const char *const letters[] = {"F", "B", "Bi", "Bw"};
static const char *const categories[] = {"forward", "backward", "backward of inputs",
                                         "backward of weights"};

sm_status sm_train_tracks(const sm_train_asked *q, sm_train *train, const sm_plan *plan,
                          sm_error *err) {
    sm_report *r = q->report;
    sm_timeline t = {0};
    sm_status status = sm_train_timeline(train, plan, r->arena, &t, err);
    if (status) return status;
    sm_tracks *tracks = sm_arena_alloc(r->arena, sizeof *tracks);
    sm_slice *slice =
        sm_arena_array(r->arena, (size_t)t.slots + 3 * (size_t)t.stages, sizeof *slice);
    const char **names = sm_arena_array(r->arena, (size_t)t.stages, sizeof *names);
    if (!tracks || !slice || !names) return sm_fail_memory(err);
    for (int stage = 0; stage < t.stages; stage++) names[stage] = sm_textf(r, "stage %d", stage);
    *tracks = (sm_tracks){
        .title = sm_textf(r, "a step of %.90s on %.90s", q->in.model->name, q->system->text),
        .n = t.stages,
        .track = names,
        .slice = slice};
    for (int i = 0; i < t.slots; i++) {
        const sm_slot *slot = &t.slot[i];
        const char *chunk = plan->virtual_stages > 1 ? sm_textf(r, ", chunk %d", slot->chunk) : "";
        slice[tracks->slices++] =
            (sm_slice){.track = slot->stage,
                       .name = sm_textf(r, "%s %d%s", letters[slot->kind], slot->microbatch, chunk),
                       .category = categories[slot->kind],
                       .start_s = slot->start_s,
                       .seconds = slot->end_s - slot->start_s};
    }
    /* What follows the last microbatch, on every stage the time of the slowest. */
    double updated = t.optimizer_start_s + t.optimizer_s;
    const sm_slice end[] = {
        {0, "reduction of gradients", "end of the step", t.optimizer_start_s - t.reduce_s,
         t.reduce_s},
        {0, "optimizer", "end of the step", t.optimizer_start_s, updated - t.optimizer_start_s},
        {0, "gathering of weights, host", "end of the step", updated, t.end_s - updated}};
    for (int stage = 0; stage < t.stages; stage++)
        for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
            if (!(end[i].start_s + end[i].seconds > end[i].start_s)) continue;
            slice[tracks->slices] = end[i];
            slice[tracks->slices++].track = stage;
        }
    r->tracks = tracks;
    return SM_OK;
}

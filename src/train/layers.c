/* Which layers each chunk of the pipeline holds. */

#include "space.h"

int chunk_count(const sm_plan *plan) {
    if (plan->schedule == SM_SCHEDULE_DUALPIPE) return plan->pipeline;
    return plan->pipeline * plan->virtual_stages;
}

const char *layout_refuse(const sm_train *t, const sm_plan *plan, char *room, size_t size) {
    int of[MAX_CHUNKS], chunks = chunk_count(plan), sum = 0;
    if (!plan->layout[0]) return NULL;
    int said = sm_plan_layout_chunks(plan->layout);
    sm_plan_layout_fill(plan, t->model.L, said < MAX_CHUNKS ? said : MAX_CHUNKS, of);
    for (int c = 0; c < said && c < MAX_CHUNKS; c++) sum += of[c];
    if (sum != t->model.L)
        return snprintf(room, size, "layout adds up to %d layers, and the model has %d", sum,
                        t->model.L),
               room;
    if (said != chunks)
        return snprintf(room, size, "layout is of %d chunks, and pipeline=%d x virtual=%d has %d",
                        said, plan->pipeline, chunks / plan->pipeline, chunks),
               room;
    return NULL;
}

void chunk_layout_fill(const sm_train *t, const sm_plan *plan, chunk_layout *layout) {
    int chunks = chunk_count(plan), of[MAX_CHUNKS];
    sm_plan_layout_fill(plan, t->model.L, chunks, of);
    memcpy(layout->given, plan->layout, sizeof layout->given);
    layout->chunks = chunks;
    memset(layout->kind, 0, (size_t)chunks * sizeof *layout->kind);
    uint16_t sum[SM_MAX_LAYER_KINDS] = {0};
    for (int c = 0, at = 0; c < chunks; c++) {
        memcpy(layout->before[c], sum, sizeof sum);
        for (int n = of[c]; n > 0; n--, at++) {
            layout->kind[c][t->model.layer[at]]++;
            sum[t->model.layer[at]]++;
        }
    }
}

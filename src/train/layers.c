/* Which layers each chunk of the pipeline holds. */
#include <string.h>

#include "space.h"

int chunk_count(const sm_plan *plan) {
    if (plan->schedule == SM_SCHEDULE_DUALPIPE) return plan->pipeline;
    return plan->pipeline * plan->virtual_stages;
}

/* Layers of chunk c: equal shares, and what is left over goes to the middle: the first chunk also
 * holds the embedding, the last one the head (LLaMA-3 405B took one layer off both, arXiv
 * 2407.21783 section 3.3.2). */
int layers_of_chunk(int layers, int chunks, int c) {
    int base = layers / chunks, extra = layers % chunks;
    int rank = c == chunks - 1 ? chunks - 1 : c == 0 ? chunks - 2 : c - 1; /* middle, first, last */
    if (chunks == 1) rank = 0;
    return base + (rank < extra ? 1 : 0);
}

void chunk_layout_fill(const sm_train *t, int chunks, chunk_layout *layout) {
    layout->chunks = chunks;
    memset(layout->kind, 0, (size_t)chunks * sizeof *layout->kind);
    uint16_t sum[SM_MAX_LAYER_KINDS] = {0};
    for (int c = 0, at = 0; c < chunks; c++) {
        memcpy(layout->before[c], sum, sizeof sum);
        for (int n = layers_of_chunk(t->model.L, chunks, c); n > 0; n--, at++) {
            layout->kind[c][t->model.layer[at]]++;
            sum[t->model.layer[at]]++;
        }
    }
}

/* Bytes of a pass of a generator on this rank, as the partition of the program predicts them. */
#include "train_parts.h"

static double size_of(const sm_trainer *t, const sm_program *b, const sm_size *s) {
    double queries = b->output < 0 ? (double)t->sampled : t->size[SM_DIM_T];
    double bytes = s->base / train_degree(t, s->mask);
    if (s->per_sequence) bytes *= t->size[SM_DIM_B];
    if (s->per_query) bytes *= queries;
    if (s->per_key) bytes *= t->size[SM_DIM_S];
    return bytes;
}

void generate_bytes_predicted(const sm_trainer *t, double *bytes) {
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) bytes[i] = 0;
    for (int i = 0; i < t->stage.layers; i++) {
        const sm_partition *p = t->stage.layer[i].list->partition;
        for (int k = 0; k < p->comms; k++)
            if (train_degree(t, p->comm[k].axes) > 1)
                bytes[p->comm[k].op] += size_of(t, &p->program, &p->comm[k].bytes);
    }
}

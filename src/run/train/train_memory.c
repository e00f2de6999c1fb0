/* What a training job on one rank has in use, and what it had in use at most. */
#include "train_parts.h"

const char *const sm_train_memory_names[SM_TRAIN_MEMORY_COUNT] = {
#define X(id, name) name,
    SM_TRAIN_MEMORIES(X)
#undef X
};

void sm_trainer_memory(const sm_trainer *t, sm_train_memory *out) {
    const memory_account *a = &t->memory;
    *out = (sm_train_memory){.total = a->total};
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        out->at_most[i] = a->at_most[i];
        out->most[i] = a->most[i];
        out->now[i] = (double)atomic_load(&a->in_use[i]);
    }
}

void sm_trainer_forget_memory(sm_trainer *t) { memory_begin(&t->memory); }

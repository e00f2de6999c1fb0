/* The cache of keys and values on a rank: blocks with room for every position, filled in order. */
#include <string.h>

#include "train_parts.h"

static int tensor_named(const sm_program *b, const char *name) {
    for (int i = 0; i < b->tensors; i++)
        if (strcmp(b->tensor[i].name, name) == 0) return i;
    return -1;
}

typedef struct cache {
    sm_local_block *block; /* [B,S,...] */
    size_t offset[SM_MAX_RANK];
} cache;

static sm_status make_room(const sm_trainer *t, const train_piece *p, int tensor, cache *c,
                           sm_error *err) {
    const sm_einsum *einsum;
    const sm_array *array = train_array_of(p, tensor, &einsum);
    sm_status status = SM_OK;
    if (!array) return sm_fail(err, SM_INTERNAL, "nothing reads the cache");
    sm_layout layout = sm_layout_of(array);
    if (!c->block->data)
        status = train_block_like(t, einsum, array, &layout, SM_ELEMENT_F32, c->block, err);
    if (!status) train_offsets(t, &layout, c->block, c->offset);
    return status;
}

/* Rows [B,T,...] behind those cached of each sequence, where this rank has their positions. */
static void copy_behind(const train_feed *feed, const sm_local_block *from, const cache *c) {
    size_t queries = from->size[1], positions = c->block->size[1];
    size_t row = sm_local_block_count(from) / (from->size[0] * queries);
    const float *x = from->data;
    float *y = c->block->data;
    for (size_t s = 0; s < from->size[0]; s++) {
        size_t sequence = c->offset[0] + s;
        for (size_t q = 0; q < feed->pass->count[sequence]; q++) {
            size_t position = feed->cached[sequence] + q;
            if (position < c->offset[1] || position >= c->offset[1] + positions) continue;
            memcpy(y + (s * positions + position - c->offset[1]) * row, x + (s * queries + q) * row,
                   row * sizeof *y);
        }
    }
}

sm_status train_append(sm_trainer *t, const train_piece *p, const sm_program_task *task,
                       train_saved *saved, sm_error *err) {
    static const char *const names[] = {"k_cache", "v_cache"};
    const sm_op *op = &p->program.op[task->op];
    for (int i = 0; i < 2; i++) {
        int tensor = tensor_named(&p->program, names[i]);
        if (tensor < 0) return sm_fail(err, SM_INTERNAL, "the program has no %s", names[i]);
        cache c = {.block = &saved->value[tensor]};
        sm_status status = make_room(t, p, tensor, &c, err);
        if (status) return status;
        copy_behind(t->feed, &saved->value[op->in[i]], &c);
    }
    return SM_OK;
}

/* The cache of keys and values on a rank: blocks with room for every position, filled in order. */
#include <string.h>

#include "train_parts.h"

typedef struct cache {
    sm_local_block *block; /* [B,S,...] */
    size_t offset[SM_MAX_RANK];
} cache;

static sm_status make_room(const sm_trainer *t, const sm_task_list *l, int tensor, cache *c,
                           sm_error *err) {
    const sm_einsum *einsum;
    const sm_array *array = sm_task_list_array(l, tensor, &einsum);
    if (!array) return sm_fail(err, SM_INTERNAL, "nothing reads the cache");
    sm_layout layout = sm_layout_of(array);
    sm_local_block like = sm_task_list_block(l, tensor);
    sm_status status = SM_OK;
    if (!c->block->data)
        status = sm_local_block_new(like.element, like.rank, like.size, c->block, err);
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

/* Of the arrays of the cache that the op writes, each in turn takes one of its inputs. */
sm_status train_append(sm_trainer *t, const sm_call *call, sm_error *err) {
    const sm_program *b = call->list->program;
    sm_status status = SM_OK;
    int input = 0;
    for (int i = 0; !status && i < b->tensors; i++) {
        if (b->tensor[i].role != SM_ROLE_CACHE || b->tensor[i].producer != call->task->op) continue;
        cache c = {.block = &call->saved->value[i]};
        status = make_room(t, call->list, i, &c, err);
        if (!status) copy_behind(t->feed, &call->saved->value[call->op->in[input++]], &c);
    }
    return status;
}

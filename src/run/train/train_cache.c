/* The cache of keys and values on a rank: pages with room for some positions of a sequence each
 * (Kwon et al., arXiv 2309.06180), one for all of them where nothing else is said. Ranks of context
 * hold a part of the places of every page. */

#include "train_parts.h"

typedef struct cache {
    sm_local_block *block; /* [pages, places, ...] */
    size_t offset[SM_MAX_RANK];
} cache;

static sm_status make_room(const sm_trainer *t, const sm_task_list *l, int tensor, cache *c,
                           sm_error *err) {
    const sm_einsum *einsum;
    const sm_array *array = sm_task_list_array(l, tensor, &einsum);
    assert(array); /* something reads the cache */
    sm_layout layout = sm_layout_of(array);
    sm_local_block like = sm_task_list_block(l, tensor);
    sm_status status = SM_OK;
    bool once = l->program->op[l->program->tensor[tensor].producer].once;
    like.size[0] = once ? t->feed->places : t->feed->pages;
    if (!c->block->data) {
        status = sm_local_block_new(like.element, like.rank, like.size, c->block, err);
        /* All of it is touched now: no later pass waits for the system's pages. */
        if (!status) memset(c->block->data, 0, (size_t)sm_local_block_bytes(c->block));
    }
    if (!status) train_offsets(t, &layout, c->block, c->offset);
    return status;
}

size_t train_cache_row(const train_feed *feed, size_t r, size_t position, size_t first_place,
                       size_t places) {
    size_t at = position / feed->page_tokens, place = position % feed->page_tokens - first_place;
    if (at >= feed->table || place >= places) return feed->pages * places;
    return (size_t)feed->page[r * feed->table + at] * places + place;
}

/* Rows [B,1,...] behind those cached of each sequence, where this rank has their positions; what
 * sequences keep of all that was read lies in its place as it was made. */
static void copy_behind(const train_feed *feed, const sm_local_block *from, const cache *c,
                        bool once) {
    size_t places = c->block->size[1], row = sm_local_block_count(from) / from->size[0];
    size_t room = once ? feed->places : feed->pages * places;
    const float *x = from->data;
    float *y = c->block->data;
    for (size_t s = 0; s < from->size[0]; s++) {
        size_t r = feed->first + s;
        size_t to = once ? feed->slot[r]
                         : train_cache_row(feed, r, feed->position[r], c->offset[1], places);
        if (feed->count[r] && to < room) memcpy(y + to * row, x + s * row, row * sizeof *y);
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
        const sm_local_block *from = &call->saved->value[call->op->in[input++]];
        if (!status) copy_behind(t->feed, from, &c, call->op->once);
    }
    return status;
}

/* The cache of keys and values on a rank: blocks with room for every position, filled in order. */
#include <string.h>

#include "train_parts.h"

static int tensor_named(const sm_program *b, const char *name) {
    for (int i = 0; i < b->tensors; i++)
        if (strcmp(b->tensor[i].name, name) == 0) return i;
    return -1;
}

static sm_status make_room(const sm_trainer *t, const train_piece *p, int tensor,
                           sm_local_block *cache, sm_error *err) {
    const sm_einsum *einsum;
    const sm_array *array = train_array_of(p, tensor, &einsum);
    if (cache->data) return SM_OK;
    if (!array) return sm_fail(err, SM_INTERNAL, "nothing reads the cache");
    sm_layout layout = sm_layout_of(array);
    return train_block_like(t, einsum, array, &layout, SM_ELEMENT_F32, cache, err);
}

/* Rows [B,T,...] behind the first `position` of [B,S,...]. */
static void copy_behind(const sm_local_block *from, size_t position, sm_local_block *cache) {
    size_t row = sm_local_block_count(from) / (from->size[0] * from->size[1]);
    const float *x = from->data;
    float *y = cache->data;
    for (size_t s = 0; s < from->size[0]; s++)
        memcpy(y + (s * cache->size[1] + position) * row, x + s * from->size[1] * row,
               from->size[1] * row * sizeof *y);
}

sm_status train_append(sm_trainer *t, const train_piece *p, const sm_program_task *task,
                       train_saved *saved, sm_error *err) {
    static const char *const names[] = {"k_cache", "v_cache"};
    const sm_op *op = &p->program.op[task->op];
    for (int i = 0; i < 2; i++) {
        int tensor = tensor_named(&p->program, names[i]);
        if (tensor < 0) return sm_fail(err, SM_INTERNAL, "the program has no %s", names[i]);
        sm_status status = make_room(t, p, tensor, &saved->value[tensor], err);
        if (status) return status;
        copy_behind(&saved->value[op->in[i]], t->position, &saved->value[tensor]);
    }
    return SM_OK;
}

/* Slots of sequences, and lists of them. */
#include "simulation.h"

#include <string.h>

sm_status sim_reserve(void **array, int n, int *room, size_t bytes, sm_error *err) {
    if (n < *room) return SM_OK;
    if (*room >= INT32_MAX / 4) return sm_fail_memory(err);
    int wider = *room > 0 ? 2 * *room : 16;
    void *grown = sm_realloc(*array, (size_t)wider * bytes);
    if (!grown) return sm_fail_memory(err);
    *array = grown;
    *room = wider;
    return SM_OK;
}

sm_status sim_pool_take(sim_pool *pool, const sm_request *request, int *slot, sm_error *err) {
    int i = pool->free;
    if (i != SIM_NONE) pool->free = pool->slot[i].next;
    else {
        void *slots = pool->slot;
        sm_status status = sim_reserve(&slots, pool->n, &pool->room, sizeof *pool->slot, err);
        pool->slot = slots;
        if (status) return status;
        i = pool->n++;
    }
    sim_sequence *q = &pool->slot[i];
    *q = (sim_sequence){.arrival_s = request->arrival_s, .next = SIM_NONE, .previous = SIM_NONE};
    q->prompt = (int64_t)request->prompt;
    q->output = (int64_t)request->output;
    q->prefix = request->prefix;
    q->conversation = request->conversation;
    q->shared_prefix = (int64_t)request->shared_prefix;
    *slot = i;
    if (request->blocks <= 0 || !request->block || request->block_tokens < 1.0) return SM_OK;
    size_t bytes = (size_t)request->blocks * sizeof *q->block;
    q->block = sm_malloc(bytes);
    if (!q->block) return sm_fail_memory(err);
    memcpy(q->block, request->block, bytes);
    q->blocks = request->blocks;
    q->block_tokens = (int64_t)request->block_tokens;
    return SM_OK;
}

void sim_pool_give(sim_pool *pool, int slot) {
    sm_free(pool->slot[slot].block);
    pool->slot[slot].block = NULL;
    pool->slot[slot].next = pool->free;
    pool->free = slot;
}

void sim_pool_end(sim_pool *pool) {
    for (int i = 0; i < pool->n; i++) sm_free(pool->slot[i].block);
    sm_free(pool->slot);
}

void sim_list_append(sim_pool *pool, sim_list *list, int slot) {
    pool->slot[slot].next = SIM_NONE;
    pool->slot[slot].previous = list->last;
    if (list->last != SIM_NONE) pool->slot[list->last].next = slot;
    else list->first = slot;
    list->last = slot;
    list->n++;
}

void sim_list_prepend(sim_pool *pool, sim_list *list, int slot) {
    pool->slot[slot].previous = SIM_NONE;
    pool->slot[slot].next = list->first;
    if (list->first != SIM_NONE) pool->slot[list->first].previous = slot;
    else list->last = slot;
    list->first = slot;
    list->n++;
}

void sim_list_remove(sim_pool *pool, sim_list *list, int slot) {
    sim_sequence *q = &pool->slot[slot];
    if (q->previous != SIM_NONE) pool->slot[q->previous].next = q->next;
    else list->first = q->next;
    if (q->next != SIM_NONE) pool->slot[q->next].previous = q->previous;
    else list->last = q->previous;
    q->next = q->previous = SIM_NONE;
    list->n--;
}

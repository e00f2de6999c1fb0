/* What layers keep for their backward passes, in host memory meanwhile: of the layers and
 * microbatches between their passes the three used last stay, the one at work among them; the rest
 * is copied out and copied in again when its turn comes. Without a device host memory is the same
 * memory under another account. */
#include <string.h>

#include "train_parts.h"

static sm_status move_block(sm_local_block *b, sm_train_memory_part to, sm_error *err) {
    if (!b->data) return SM_OK;
    size_t bytes = sm_local_block_count(b) * sm_element_bytes(b->element);
    memory_scope before = memory_for(to);
    void *there = memory_new(bytes + 1);
    memory_restore(before);
    if (!there) return sm_fail_memory(err);
    memcpy(there, b->data, bytes);
    memory_free(b->data);
    b->data = there;
    return SM_OK;
}

/* Weights of norms that were gathered stay. */
static sm_status move_saved(train_saved *saved, const sm_program *b, sm_train_memory_part to,
                            sm_error *err) {
    sm_status status = move_block(&saved->log_sums, to, err);
    for (int i = 0; !status && i < b->tensors; i++) {
        if (b->tensor[i].role == SM_ROLE_WEIGHT) continue;
        status = move_block(&saved->value[i], to, err);
        if (!status) status = move_block(&saved->arrived[i], to, err);
    }
    return status;
}

static bool offloads(const sm_trainer *t, const train_layer *layer) {
    return t->setup->offload_activations && layer->number >= 0 &&
           layer->number < t->setup->model->L;
}

static void forget(sm_trainer *t, int i) {
    t->residents--;
    memmove(&t->resident[i], &t->resident[i + 1], (size_t)(t->residents - i) * sizeof *t->resident);
}

/* Room for one more beside those that stay. */
static sm_status make_room(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    while (!status && t->residents == TRAIN_RESIDENTS) {
        train_resident oldest = t->resident[0];
        forget(t, 0);
        status = move_saved(oldest.saved, &oldest.layer->piece->program, SM_TRAIN_MEMORY_HOST, err);
        oldest.saved->away = true;
    }
    return status;
}

sm_status train_offload_begin(sm_trainer *t, const train_layer *layer, sm_error *err) {
    return offloads(t, layer) ? make_room(t, err) : SM_OK;
}

void train_offload_end(sm_trainer *t, const train_layer *layer, train_saved *saved) {
    if (offloads(t, layer)) t->resident[t->residents++] = (train_resident){layer, saved};
}

sm_status train_offload_fetch(sm_trainer *t, const train_layer *layer, train_saved *saved,
                              sm_error *err) {
    if (!offloads(t, layer)) return SM_OK;
    for (int i = 0; i < t->residents; i++)
        if (t->resident[i].saved == saved) {
            forget(t, i);
            return SM_OK;
        }
    sm_status status = make_room(t, err);
    if (status || !saved->away) return status;
    saved->away = false;
    return move_saved(saved, &layer->piece->program, SM_TRAIN_MEMORY_ACTIVATIONS, err);
}

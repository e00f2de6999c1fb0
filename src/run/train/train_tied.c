/* An unembedding tied to the embedding: one weight. The head holds a copy, which the optimizer
 * never sees; its gradient is added to that of the embedding before it is reduced. Both are sharded
 * alike, so that no rank needs another's block. Where a pipeline parts them each stage has its own
 * weight and moments, and the same sum of both gradients (train_peers.c), so that both stay equal.
 */
#include <assert.h>
#include <string.h>

#include "train_parts.h"

void train_tie_weights(sm_trainer *t) {
    sm_step_layer *embedding = sm_stage_layer(&t->stage, -1);
    sm_step_layer *head = sm_stage_layer(&t->stage, t->setup->model->L);
    if (!t->setup->model->tied || !embedding || !head) return;
    const sm_local_block *from = &embedding->weight[sm_task_list_matrix(embedding->list)];
    sm_local_block *to = &head->weight[sm_task_list_matrix(head->list)];
    assert(sm_local_block_count(from) == sm_local_block_count(to));
    memcpy(to->data, from->data, sm_local_block_count(to) * sizeof(float));
}

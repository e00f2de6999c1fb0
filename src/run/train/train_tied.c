/* An unembedding tied to the embedding: one weight [V,D] that the head reads as [D,V]. The head
 * holds a transposed copy, which the optimizer never sees; its gradient is added to that of the
 * embedding before it is reduced. Both are sharded alike, so that no rank needs another's block.
 * Where a pipeline parts them each stage has its own weight and moments, and the same sum of both
 * gradients (train_peers.c), so that both stay equal. */
#include "train_parts.h"

/* y[c][r] = or += x[r][c] */
static void turn(const float *x, size_t rows, size_t columns, bool adds, float *y) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            y[c * rows + r] = x[r * columns + c] + (adds ? y[c * rows + r] : 0);
}

static void transpose(const sm_local_block *from, bool adds, sm_local_block *to) {
    turn(from->data, from->size[0], from->size[1], adds, to->data);
}

void train_tie_out(const sm_local_block *copy, float *row) {
    turn(copy->data, copy->size[0], copy->size[1], false, row);
}

void train_tie_in(const float *row, sm_local_block *copy) {
    turn(row, copy->size[1], copy->size[0], false, copy->data);
}

void train_tie_add(const sm_local_block *copy, sm_local_block *sum) { transpose(copy, true, sum); }

void train_tie_weights(sm_trainer *t) {
    sm_step_layer *embedding = sm_stage_layer(&t->stage, -1);
    sm_step_layer *head = sm_stage_layer(&t->stage, t->setup->model->L);
    if (!t->setup->model->tied || !embedding || !head) return;
    transpose(&embedding->weight[sm_task_list_matrix(embedding->list)], false,
              &head->weight[sm_task_list_matrix(head->list)]);
}

/* An unembedding tied to the embedding: one weight [V,D] that the head reads as [D,V]. The head
 * holds a transposed copy, which the optimizer never sees; its gradient is added to that of the
 * embedding before it is reduced. Both are sharded alike, so that no rank needs another's block.
 * Where a pipeline parts them each stage has its own weight and moments, and the same sum of both
 * gradients (train_peers.c), so that both stay equal. */
#include "train_parts.h"

static int weight_of(const train_layer *layer) { return train_tied_weight(layer->piece); }

int train_tied_weight(const train_piece *piece) {
    const sm_program *b = &piece->program;
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].role == SM_ROLE_WEIGHT && !b->tensor[i].norm) return i;
    return 0;
}

bool train_is_copy(const sm_trainer *t, const train_layer *layer, int tensor) {
    return t->setup->model->tied && layer->number == t->setup->model->L &&
           tensor == weight_of(layer);
}

bool train_tie_parted(const sm_train_setup *s) {
    return s->model->tied && s->chunks && s->chunk[0].stage != s->chunk[s->chunks - 1].stage;
}

static train_layer *numbered(const sm_trainer *t, int number) {
    for (int i = 0; i < t->layers; i++)
        if (t->layer[i].number == number) return &t->layer[i];
    return NULL;
}

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

void train_tie_weights(sm_trainer *t) {
    train_layer *embedding = numbered(t, -1), *head = numbered(t, t->setup->model->L);
    if (!t->setup->model->tied || !embedding || !head) return;
    transpose(&embedding->weight[weight_of(embedding)], false, &head->weight[weight_of(head)]);
}

sm_status train_tie_gradients(sm_trainer *t, sm_error *err) {
    train_layer *embedding = numbered(t, -1), *head = numbered(t, t->setup->model->L);
    if (!t->setup->model->tied || !embedding || !head) return SM_OK;
    int from = weight_of(head), to = weight_of(embedding);
    sm_local_block *sum = &embedding->gradient[to];
    const sm_local_block *like = &embedding->weight[to];
    if (!head->gradient[from].data) return SM_OK;
    if (!sum->data) {
        sm_status status = sm_local_block_new(SM_ELEMENT_F32, like->rank, like->size, sum, err);
        if (status) return status;
    }
    transpose(&head->gradient[from], true, sum);
    sm_local_block_free(&head->gradient[from]);
    return SM_OK;
}

/* Causal attention with grouped queries where all keys are at hand: stored whole, or gathered. The
 * backward pass computes the probabilities again. */
#include <cblas.h>

#include "attention_heads.h"
#include "row_math.h"
#include "train_parts.h"

enum { Q = ATTENTION_Q, KEYS = ATTENTION_KEYS, VALUES = ATTENTION_VALUES, OUT = ATTENTION_OUT };

/* p = softmax of the scores each query may see. */
static void probabilities(const attention_head *h) {
    attention_scores(h);
    for (int i = 0; i < h->queries; i++) {
        float *row = h->p + (size_t)i * (size_t)h->keys;
        size_t seen = attention_seen(h, i), keys = (size_t)h->keys;
        row_exponential(row, row_most(row, seen), seen, row);
        float share = 1.0F / row_sum(row, seen);
        for (size_t s = 0; s < seen; s++) row[s] *= share;
        for (size_t s = seen; s < keys; s++) row[s] = 0;
    }
}

static void forward(const attention_head *h, void *context) {
    (void)context;
    probabilities(h);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, h->value_size, h->keys, 1.0F,
                h->p, h->keys, h->x[VALUES].first, h->x[VALUES].apart, 0.0F, h->x[OUT].first,
                h->x[OUT].apart);
}

static void backward(const attention_head *h, void *context) {
    (void)context;
    probabilities(h);
    attention_slopes(h, NULL);
}

static attention_blocks blocks_of(const train_call *c) {
    attention_blocks b = {.ahead = (long)c->in[Q].offset[1] - (long)c->in[KEYS].offset[1],
                          .keys = c->in[KEYS].block->size[1]};
    for (int i = 0; i < 3; i++) b.x[i] = c->in[i].block;
    return b;
}

static sm_status each_panel(attention_blocks *b,
                            void (*work)(const attention_head *panel, void *context),
                            sm_error *err) {
    b->room = memory_new(attention_room_count(b) * sizeof *b->room + 1);
    if (!b->room) return sm_fail_memory(err);
    attention_each_panel(b, work, NULL);
    memory_free(b->room);
    return SM_OK;
}

sm_status train_attention_forward(train_call *c, sm_error *err) {
    if (c->ring) return train_ring_forward(c, err);
    attention_blocks b = blocks_of(c);
    b.x[OUT] = c->out;
    return each_panel(&b, forward, err);
}

/* out: three blocks, of the gradients of q, k and v, zeroed. The fourth operand is that of out. */
sm_status train_attention_backward(train_call *c, sm_error *err) {
    if (c->ring) return train_ring_backward(c, err);
    attention_blocks b = blocks_of(c);
    for (int i = 0; i < 3; i++) b.d[i] = &c->out[i];
    b.d[OUT] = c->in[OUT].block;
    return each_panel(&b, backward, err);
}

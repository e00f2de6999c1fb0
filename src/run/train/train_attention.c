/* Causal attention where all keys are at hand: stored whole, or gathered. The backward pass
 * computes the probabilities again. */
#include <cblas.h>
#include <math.h>

#include "train_parts.h"

enum { VALUES = ATTENTION_VALUES, OUT = ATTENTION_OUT, SINKS = ATTENTION_SINKS };

/* p = softmax of the scores each query may see. */
static void probabilities(const attention_head *h) {
    const float *sink = h->x[SINKS].first;
    attention_scores(h);
    for (int i = 0; i < h->queries; i++) {
        float *row = h->p + (size_t)i * (size_t)h->keys;
        size_t from, seen = attention_seen(h, i, &from), keys = (size_t)h->keys;
        float most = row_most(row + from, seen - from);
        if (sink && *sink > most) most = *sink;
        row_exponential(row + from, most, seen - from, row + from);
        float sum = row_sum(row + from, seen - from);
        if (sink) sum += expf(*sink - most);
        for (size_t s = from; s < seen; s++) row[s] /= sum;
        for (size_t s = 0; s < from; s++) row[s] = 0;
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
    attention_blocks b = attention_blocks_of(c);
    b.x[OUT] = c->out;
    if (c->t->serving) b.lengths = c->t->feed->count + c->in[ATTENTION_Q].offset[0];
    return each_panel(&b, forward, err);
}

/* out: a block for each input, of its gradient, zeroed. The operand behind them is that of out. */
sm_status train_attention_backward(train_call *c, sm_error *err) {
    if (c->ring) return train_ring_backward(c, err);
    attention_blocks b = attention_blocks_of(c);
    for (int i = 0; i < c->op->inputs; i++)
        b.d[attention_array_of(b.program, c->op, i)] = &c->out[i];
    b.d[OUT] = c->in[c->op->inputs].block;
    return each_panel(&b, backward, err);
}

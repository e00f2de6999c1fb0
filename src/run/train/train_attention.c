/* Causal attention where all keys are at hand: stored whole, or gathered. The backward pass
 * computes the probabilities again. */
#include <cblas.h>

#include "train_parts.h"

enum { OUT = ATTENTION_OUT, SINKS = ATTENTION_SINKS };
/* Forward the scores of a block of keys need no other room: twice the queries fit into it. */
enum { BLOCK_QUERIES = 2 * SM_QUERIES_AT_ONCE, BLOCK_KEYS = 512 };

/* The keys block by block, so that scores stay in the cache. */
static void forward(const attention_head *h, void *context) {
    static const int keyed[] = {ATTENTION_KEYS, ATTENTION_KEYS2, ATTENTION_VALUES};
    const float *sink = h->x[SINKS].first;
    const attention_rows *out = &h->x[OUT];
    float most[BLOCK_QUERIES], sum[BLOCK_QUERIES];
    attention_head block = *h;
    (void)context;
    block.capped = NULL;
    for (int i = 0; i < h->queries; i++) {
        most[i] = sink ? *sink : -INFINITY;
        sum[i] = sink != NULL;
        memset(out->first + (size_t)i * (size_t)out->apart, 0, (size_t)h->value_size * sizeof *sum);
    }
    for (int at = 0; at < h->keys; at += BLOCK_KEYS) {
        block.keys = h->keys - at < BLOCK_KEYS ? h->keys - at : BLOCK_KEYS;
        block.ahead = h->ahead - at;
        for (int k = 0; k < 3; k++) {
            attention_rows *x = &block.x[keyed[k]];
            if (x->first) x->first = h->x[keyed[k]].first + (long)at * x->apart;
        }
        attention_join(&block, most, sum);
    }
    for (int i = 0; i < h->queries; i++)
        cblas_sscal(h->value_size, sum[i] > 0 ? 1 / sum[i] : 0,
                    out->first + (size_t)i * (size_t)out->apart, 1);
}

/* p = softmax of the scores each query may see. */
static void backward(const attention_head *h, void *context) {
    const float *sink = h->x[SINKS].first;
    (void)context;
    attention_scores(h);
    for (int i = 0; i < h->queries; i++) {
        float *row = h->p + (size_t)i * (size_t)h->keys;
        size_t from, seen = attention_seen(h, i, &from);
        float most = row_most(row + from, seen - from);
        if (sink && *sink > most) most = *sink;
        float sum = attention_exponentials(h, i, most);
        if (sink) sum += expf(*sink - most);
        cblas_sscal(h->keys, sum > 0 ? 1 / sum : 0, row, 1);
    }
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
    b.at_once = BLOCK_QUERIES;
    if (c->t->serving && !c->t->pictures)
        b.lengths = c->t->feed->count + c->in[ATTENTION_Q].offset[0];
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

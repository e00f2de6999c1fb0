/* Routed experts on local blocks. The slots of an expert on a chip are the chip's own tokens: row n
 * of [E,C,D] is token n where it chose the expert and zero elsewhere, so that nothing is ever
 * dropped and routing needs no sorting. Shares are the softmax over the k chosen scores. */
#include <math.h>
#include <string.h>

#include "row_math.h"
#include "train_parts.h"

typedef struct routing {
    size_t tokens, experts, width;
    size_t first, own; /* experts whose slots are at hand */
    int k;
    const float *scores; /* [tokens, experts] */
} routing;

static routing routing_of(const train_call *c, const sm_local_block *scores, size_t width) {
    size_t experts = scores->size[scores->rank - 1];
    return (routing){.tokens = sm_local_block_count(scores) / experts,
                     .experts = experts,
                     .width = width,
                     .own = experts,
                     .k = (int)c->list->program->top_k,
                     .scores = scores->data};
}

/* share[e] of each chosen expert, 0 of the others; of equal scores the first wins. */
static void choose(const routing *r, size_t token, float *share) {
    const float *score = r->scores + token * r->experts;
    float sum = 0, most = 0;
    memset(share, 0, r->experts * sizeof *share);
    for (int i = 0; i < r->k; i++) {
        size_t best = r->experts;
        for (size_t e = 0; e < r->experts; e++)
            if (share[e] == 0 && (best == r->experts || score[e] > score[best])) best = e;
        if (i == 0) most = score[best];
        sum += share[best] = fmaxf(expf(score[best] - most), 1e-30F);
    }
    for (size_t e = 0; e < r->experts; e++) share[e] /= sum;
}

enum { MOST_EXPERTS = 512 };

void train_dispatch(train_call *c) {
    const sm_local_block *x = c->in[0].block;
    routing r = routing_of(c, c->in[1].block, x->size[2]);
    r.first = c->out_offset[0];
    r.own = c->out->size[0];
    float share[MOST_EXPERTS], *slots = c->out->data;
    const float *from = x->data;
    memset(slots, 0, sm_local_block_count(c->out) * sizeof *slots);
    for (size_t n = 0; n < r.tokens; n++) {
        choose(&r, n, share);
        for (size_t e = 0; e < r.own; e++)
            if (share[r.first + e] > 0)
                memcpy(slots + (e * r.tokens + n) * r.width, from + n * r.width,
                       r.width * sizeof *slots);
    }
}

void train_dispatch_backward(train_call *c) {
    float share[MOST_EXPERTS], *dx = c->out->data;
    memset(dx, 0, sm_local_block_count(c->out) * sizeof *dx);
    routing r = routing_of(c, c->input[1], c->out->size[2]);
    r.first = c->in[0].offset[0];
    r.own = c->in[0].block->size[0];
    const float *slots = c->in[0].block->data;
    for (size_t n = 0; n < r.tokens; n++) {
        choose(&r, n, share);
        for (size_t e = 0; e < r.own; e++)
            if (share[r.first + e] > 0)
                row_add(slots + (e * r.tokens + n) * r.width, 1, r.width, dx + n * r.width);
    }
}

void train_combine(train_call *c) {
    routing r = routing_of(c, c->in[1].block, c->out->size[2]);
    r.first = c->in[0].offset[0];
    r.own = c->in[0].block->size[0];
    float share[MOST_EXPERTS], *out = c->out->data;
    const float *y = c->in[0].block->data;
    memset(out, 0, sm_local_block_count(c->out) * sizeof *out);
    for (size_t n = 0; n < r.tokens; n++) {
        choose(&r, n, share);
        for (size_t e = 0; e < r.own; e++)
            if (share[r.first + e] > 0)
                row_add(y + (e * r.tokens + n) * r.width, share[r.first + e], r.width,
                        out + n * r.width);
    }
}

/* d share[e] = dm . y[e]; d score = share (d share - sum of share d share): linear in y, so that of
 * a part of the experts, or of partial sums of what they made, it is a part of the whole. */
static void score_gradient(const routing *r, size_t n, const float *share, const float *dm,
                           const float *y, float *dscore) {
    float mean = 0;
    memset(dscore, 0, r->experts * sizeof *dscore);
    for (size_t e = 0; e < r->own; e++) {
        const float *from = y + (e * r->tokens + n) * r->width;
        size_t at = r->first + e;
        if (share[at] > 0) dscore[at] = row_dot(dm + n * r->width, from, r->width);
        mean += share[at] * dscore[at];
    }
    for (size_t e = 0; e < r->experts; e++) dscore[e] = share[e] * (dscore[e] - mean);
}

/* Gradient of what experts made. */
static void slots_gradient(const routing *r, size_t n, const float *share, const float *dm,
                           float *dy) {
    for (size_t e = 0; e < r->own; e++)
        for (size_t d = 0; share[r->first + e] > 0 && d < r->width; d++)
            dy[(e * r->tokens + n) * r->width + d] = share[r->first + e] * dm[n * r->width + d];
}

void train_combine_backward(train_call *c) {
    const sm_local_block *dm = c->in[0].block, *made = c->input[0];
    routing r = routing_of(c, c->input[1], dm->size[2]);
    size_t offset[SM_MAX_RANK];
    train_offsets(c->t, &c->in[1].layout, made, offset);
    r.first = offset[0];
    r.own = made->size[0];
    float share[MOST_EXPERTS], *out = c->out->data;
    memset(out, 0, sm_local_block_count(c->out) * sizeof *out);
    for (size_t n = 0; n < r.tokens; n++) {
        choose(&r, n, share);
        if (c->which == 1) score_gradient(&r, n, share, dm->data, made->data, out + n * r.experts);
        else slots_gradient(&r, n, share, dm->data, out);
    }
}

/* Causal attention with grouped queries on local blocks: q [B,T,K,G,H], k [B,S,K,H], v [B,S,K,J].
 * One head of one sequence at a time is three matrix products of BLAS on rows that stand apart; the
 * backward pass computes the probabilities again. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "train_parts.h"

enum { Q, KEYS, VALUES, OUT };

/* Where a head of a block lies: its first row, and from row to row. */
typedef struct rows {
    float *first;
    int apart;
} rows;

typedef struct head {
    rows x[4], d[4]; /* q, k, v, out and their gradients */
    int queries, keys, size, value_size;
    long ahead; /* position of the first query less that of the first key */
    float *p, *dp;
} head;

static rows rows_of(const sm_local_block *b, size_t sequence, size_t of_head) {
    size_t heads = 1, width = b->size[b->rank - 1];
    for (int d = 2; d < b->rank - 1; d++) heads *= b->size[d];
    float *data = b->data;
    return (rows){data ? data + (sequence * b->size[1] * heads + of_head) * width : NULL,
                  (int)(heads * width)};
}

/* p = softmax of the scores each query may see. */
static void probabilities(const head *h) {
    float scale = 1.0F / sqrtf((float)h->size);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys, h->size, scale,
                h->x[Q].first, h->x[Q].apart, h->x[KEYS].first, h->x[KEYS].apart, 0.0F, h->p,
                h->keys);
    for (int i = 0; i < h->queries; i++) {
        float *row = h->p + (size_t)i * (size_t)h->keys, most = -INFINITY, sum = 0;
        long seen = i + h->ahead + 1;
        if (seen > h->keys) seen = h->keys;
        for (long s = 0; s < seen; s++) most = row[s] > most ? row[s] : most;
        for (long s = 0; s < seen; s++) sum += row[s] = expf(row[s] - most);
        for (long s = 0; s < h->keys; s++) row[s] = s < seen ? row[s] / sum : 0;
    }
}

static void forward(const head *h) {
    probabilities(h);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, h->value_size, h->keys, 1.0F,
                h->p, h->keys, h->x[VALUES].first, h->x[VALUES].apart, 0.0F, h->x[OUT].first,
                h->x[OUT].apart);
}

/* dV += P' dO; dP = dO V'; dS = P (dP - sum of P dP) scale; dQ = dS K; dK += dS' Q. */
static void backward(const head *h) {
    float scale = 1.0F / sqrtf((float)h->size);
    const rows *d = h->d, *x = h->x;
    probabilities(h);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, h->value_size, h->queries, 1.0F,
                h->p, h->keys, d[OUT].first, d[OUT].apart, 1.0F, d[VALUES].first, d[VALUES].apart);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys, h->value_size, 1.0F,
                d[OUT].first, d[OUT].apart, x[VALUES].first, x[VALUES].apart, 0.0F, h->dp, h->keys);
    for (int i = 0; i < h->queries; i++) {
        float *p = h->p + (size_t)i * (size_t)h->keys, *dp = h->dp + (size_t)i * (size_t)h->keys;
        float sum = 0;
        for (int s = 0; s < h->keys; s++) sum += p[s] * dp[s];
        for (int s = 0; s < h->keys; s++) dp[s] = p[s] * (dp[s] - sum) * scale;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, h->size, h->keys, 1.0F,
                h->dp, h->keys, x[KEYS].first, x[KEYS].apart, 0.0F, d[Q].first, d[Q].apart);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, h->size, h->queries, 1.0F, h->dp,
                h->keys, x[Q].first, x[Q].apart, 1.0F, d[KEYS].first, d[KEYS].apart);
}

typedef struct blocks {
    const sm_local_block *x[4], *d[4];
    long ahead;
    size_t keys; /* those that are there: a cache has room for more */
} blocks;

static head head_at(const blocks *b, size_t sequence, size_t key_head, size_t group) {
    size_t groups = b->x[Q]->size[3], query_head = key_head * groups + group;
    head h = {.queries = (int)b->x[Q]->size[1],
              .keys = (int)b->keys,
              .size = (int)b->x[Q]->size[4],
              .value_size = (int)b->x[VALUES]->size[3],
              .ahead = b->ahead};
    for (int i = 0; i < 4; i++) {
        size_t at = i == Q || i == OUT ? query_head : key_head;
        if (b->x[i]) h.x[i] = rows_of(b->x[i], sequence, at);
        if (b->d[i]) h.d[i] = rows_of(b->d[i], sequence, at);
    }
    return h;
}

static sm_status each_head(const blocks *b, void (*run)(const head *), sm_error *err) {
    const size_t *q = b->x[Q]->size;
    size_t scores = q[1] * b->keys;
    float *room = memory_new(2 * scores * sizeof *room + 1);
    if (!room) return sm_fail_memory(err);
    for (size_t s = 0; s < q[0]; s++)
        for (size_t k = 0; k < q[2]; k++)
            for (size_t g = 0; g < q[3]; g++) {
                head h = head_at(b, s, k, g);
                h.p = room;
                h.dp = room + scores;
                run(&h);
            }
    memory_free(room);
    return SM_OK;
}

static blocks blocks_of(const train_call *c) {
    size_t first = c->t->position + c->in[Q].offset[1];
    blocks b = {.ahead = (long)first - (long)c->in[KEYS].offset[1],
                .keys = c->in[KEYS].block->size[1]};
    for (int i = 0; i < 3; i++) b.x[i] = c->in[i].block;
    if (c->t->serving) b.keys = first + b.x[Q]->size[1];
    return b;
}

sm_status train_attention_forward(train_call *c, sm_error *err) {
    blocks b = blocks_of(c);
    b.x[OUT] = c->out;
    return each_head(&b, forward, err);
}

/* out: three blocks, of the gradients of q, k and v, zeroed. The fourth operand is that of out. */
sm_status train_attention_backward(train_call *c, sm_error *err) {
    blocks b = blocks_of(c);
    for (int i = 0; i < 3; i++) b.d[i] = &c->out[i];
    b.d[OUT] = c->in[OUT].block;
    return each_head(&b, backward, err);
}

/* One head of one sequence at a time. Forward: P = softmax(Q K^T / sqrt(H)), O = P V (Vaswani et
 * al., arXiv 1706.03762, eq. 1). Backward: dV = P^T dO, dP = dO V^T, dS = P (dP - rowsum(dO O)), dQ
 * = dS K / sqrt(H), dK = dS^T Q / sqrt(H) (Dao et al., FlashAttention, arXiv 2205.14135, appendix
 * B). */
#include "attention_heads.h"

#include <cblas.h>
#include <math.h>

#include "row_math.h"

enum { Q = ATTENTION_Q, KEYS = ATTENTION_KEYS, VALUES = ATTENTION_VALUES, OUT = ATTENTION_OUT };

static attention_rows rows_of(const sm_local_block *b, size_t sequence, size_t of_head) {
    size_t heads = 1, width = b->size[b->rank - 1];
    for (int d = 2; d < b->rank - 1; d++) heads *= b->size[d];
    float *data = b->data;
    return (attention_rows){data ? data + (sequence * b->size[1] * heads + of_head) * width : NULL,
                            (int)(heads * width)};
}

static attention_head head_at(const attention_blocks *b, size_t sequence, size_t key_head,
                              size_t group) {
    const size_t *q = b->x[Q]->size;
    size_t query_head = key_head * q[3] + group;
    attention_head h = {.queries = (int)q[1],
                        .keys = (int)b->keys,
                        .size = (int)q[4],
                        .value_size = (int)b->x[VALUES]->size[3],
                        .ahead = b->ahead,
                        .row = (sequence * q[2] * q[3] + query_head) * q[1]};
    for (int i = 0; i < ATTENTION_ARRAYS; i++) {
        size_t at = i == Q || i == OUT ? query_head : key_head;
        if (b->x[i]) h.x[i] = rows_of(b->x[i], sequence, at);
        if (b->d[i]) h.d[i] = rows_of(b->d[i], sequence, at);
    }
    return h;
}

enum { AT_ONCE = SM_QUERIES_AT_ONCE };

size_t attention_room_count(const attention_blocks *b) {
    size_t queries = b->x[Q]->size[1];
    return 2 * (queries < AT_ONCE ? queries : AT_ONCE) * b->keys;
}

size_t attention_row_count(const attention_blocks *b) {
    const size_t *q = b->x[Q]->size;
    return q[0] * q[1] * q[2] * q[3];
}

void attention_each_head(const attention_blocks *b,
                         void (*visit)(const attention_head *head, void *context), void *context) {
    const size_t *q = b->x[Q]->size;
    for (size_t s = 0; s < q[0]; s++)
        for (size_t k = 0; k < q[2]; k++)
            for (size_t g = 0; g < q[3]; g++) {
                attention_head h = head_at(b, s, k, g);
                visit(&h, context);
            }
}

static float *row_at(const attention_rows *r, int row) {
    return r->first ? r->first + (size_t)row * (size_t)r->apart : NULL;
}

/* Some queries of a head with the keys that they may see. */
static attention_head panel_of(const attention_head *h, int first, float *room) {
    attention_head panel = *h;
    panel.queries = h->queries - first < AT_ONCE ? h->queries - first : AT_ONCE;
    panel.ahead = h->ahead + first;
    panel.row = h->row + (size_t)first;
    panel.keys = (int)attention_seen(&panel, panel.queries - 1);
    for (int i = Q; i < ATTENTION_ARRAYS; i += OUT - Q) {
        panel.x[i].first = row_at(&h->x[i], first);
        panel.d[i].first = row_at(&h->d[i], first);
    }
    panel.p = room;
    panel.dp = room + (size_t)panel.queries * (size_t)panel.keys;
    return panel;
}

typedef struct working {
    float *room;
    void (*work)(const attention_head *panel, void *context);
    void *context;
} working;

static void each_panel(const attention_head *h, void *context) {
    const working *w = context;
    for (int first = 0; first < h->queries; first += AT_ONCE) {
        attention_head panel = panel_of(h, first, w->room);
        if (panel.keys > 0) w->work(&panel, w->context);
    }
}

void attention_each_panel(const attention_blocks *b,
                          void (*work)(const attention_head *panel, void *context), void *context) {
    working w = {b->room, work, context};
    attention_each_head(b, each_panel, &w);
}

size_t attention_seen(const attention_head *h, int query) {
    long seen = query + h->ahead + 1;
    return seen < 0 ? 0 : (size_t)(seen > h->keys ? h->keys : seen);
}

void attention_scores(const attention_head *h) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys, h->size,
                1.0F / sqrtf((float)h->size), h->x[Q].first, h->x[Q].apart, h->x[KEYS].first,
                h->x[KEYS].apart, 0.0F, h->p, h->keys);
}

/* dV += P' dO; dP = dO V'; dQ += dS K; dK += dS' Q. */
void attention_slopes(const attention_head *h, const float *dots) {
    const attention_rows *d = h->d, *x = h->x;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, h->value_size, h->queries, 1.0F,
                h->p, h->keys, d[OUT].first, d[OUT].apart, 1.0F, d[VALUES].first, d[VALUES].apart);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys, h->value_size, 1.0F,
                d[OUT].first, d[OUT].apart, x[VALUES].first, x[VALUES].apart, 0.0F, h->dp, h->keys);
    /* dp becomes dS = P (dP - sum of P dP) / sqrt(H). */
    float scale = 1.0F / sqrtf((float)h->size);
    size_t keys = (size_t)h->keys;
    for (int i = 0; i < h->queries; i++) {
        const float *p = h->p + (size_t)i * keys;
        float *dp = h->dp + (size_t)i * keys, sum = dots ? dots[i] : row_dot(p, dp, keys);
        for (size_t s = 0; s < keys; s++) dp[s] = p[s] * (dp[s] - sum) * scale;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, h->size, h->keys, 1.0F,
                h->dp, h->keys, x[KEYS].first, x[KEYS].apart, 1.0F, d[Q].first, d[Q].apart);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, h->size, h->queries, 1.0F, h->dp,
                h->keys, x[Q].first, x[Q].apart, 1.0F, d[KEYS].first, d[KEYS].apart);
}

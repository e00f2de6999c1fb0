/* Attention of new queries on a cache: q [B,T,K,G,H] on k [B,S,K,H] and v [B,S,K,J] of which each
 * sequence has filled a part. One query of one head at a time, so that a query's numbers do not
 * depend on how many come with it. Ranks of context hold other positions each: the sums of their
 * softmaxes are added first (8 bytes for each query and head), then their shares of the result. */
#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "train_parts.h"

enum { Q, KEYS, VALUES };

/* exp of more than this leaves double precision's range when summed. */
static const double MOST_SCORE = 690;

typedef struct attending {
    train_call *c;
    size_t groups, key_heads, queries, size, value_size, room;
    double *sum;  /* of exp(score) over this rank's keys, then over all; [B,T,K,G] */
    float *most;  /* the largest score of this rank's keys, which `out` is scaled by */
    float *score; /* of one query */
} attending;

static const float *head_of(const attending *a, int operand, size_t sequence, size_t key_head) {
    const sm_local_block *b = a->c->in[operand].block;
    return (const float *)b->data + (sequence * a->room * a->key_heads + key_head) * b->size[3];
}

/* Keys on this rank that a query may see. */
static size_t keys_seen(const attending *a, size_t sequence, size_t query) {
    const train_feed *feed = a->c->t->feed;
    size_t global = a->c->in[Q].offset[0] + sequence, first = a->c->in[KEYS].offset[1];
    if (query >= feed->pass->count[global]) return 0;
    size_t seen = feed->cached[global] + query + 1;
    if (seen <= first) return 0;
    return seen - first < a->room ? seen - first : a->room;
}

/* out = sum of exp(score - most) v over the keys of this rank. */
static void attend(const attending *a, size_t sequence, size_t query, size_t head) {
    size_t heads = a->key_heads * a->groups, key_head = head / a->groups;
    size_t row = (sequence * a->queries + query) * heads + head;
    size_t keys = keys_seen(a, sequence, query);
    const float *q = (const float *)a->c->in[Q].block->data + row * a->size;
    float *out = (float *)a->c->out->data + row * a->value_size;
    if (keys == 0) return;
    cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)keys, (int)a->size, 1.0F / sqrtf((float)a->size),
                head_of(a, KEYS, sequence, key_head), (int)(a->key_heads * a->size), q, 1, 0.0F,
                a->score, 1);
    /* Scores to exp(score - most): their largest and their sum. */
    float most = a->score[0], sum = 0;
    for (size_t s = 1; s < keys; s++) most = a->score[s] > most ? a->score[s] : most;
    for (size_t s = 0; s < keys; s++) sum += a->score[s] = expf(a->score[s] - most);
    a->most[row] = most;
    a->sum[row] = (double)sum;
    cblas_sgemv(CblasRowMajor, CblasTrans, (int)keys, (int)a->value_size, 1.0F,
                head_of(a, VALUES, sequence, key_head), (int)(a->key_heads * a->value_size),
                a->score, 1, 0.0F, out, 1);
}

static size_t rows_of(const attending *a) {
    return a->c->out->size[0] * a->queries * a->key_heads * a->groups;
}

/* Sums over the positions of all ranks: they share no largest score, so that it is taken back. */
static sm_status join_sums(attending *a, sm_error *err) {
    size_t rows = rows_of(a);
    for (size_t i = 0; i < rows; i++) {
        if (!(fabs((double)a->most[i]) < MOST_SCORE))
            return sm_fail(err, SM_BAD_INPUT, "a score of attention reached %g",
                           (double)a->most[i]);
        a->sum[i] *= exp((double)a->most[i]);
    }
    sm_communicator *over = sm_rank_mesh_over(a->c->t->mesh, SM_BIT(SM_AXIS_CONTEXT), err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    return sm_run_all_reduce(over, a->sum, rows, SM_ELEMENT_F64, err);
}

static sm_status run(attending *a, sm_error *err) {
    bool joined = train_degree(a->c->t, SM_BIT(SM_AXIS_CONTEXT)) > 1;
    for (size_t s = 0; s < a->c->out->size[0]; s++)
        for (size_t t = 0; t < a->queries; t++)
            for (size_t h = 0; h < a->key_heads * a->groups; h++) attend(a, s, t, h);
    sm_status status = joined ? join_sums(a, err) : SM_OK;
    float *out = a->c->out->data;
    for (size_t i = 0; !status && i < rows_of(a); i++, out += a->value_size) {
        if (!(a->sum[i] > 0)) continue;
        double part = joined ? exp((double)a->most[i]) : 1;
        for (size_t d = 0; d < a->value_size; d++) out[d] *= (float)(part / a->sum[i]);
    }
    return status;
}

sm_status generate_attention(train_call *c, sm_error *err) {
    const size_t *q = c->in[Q].block->size, *keys = c->in[KEYS].block->size;
    attending a = {.c = c,
                   .groups = q[3],
                   .key_heads = q[2],
                   .queries = q[1],
                   .size = q[4],
                   .value_size = c->in[VALUES].block->size[3],
                   .room = keys[1]};
    size_t rows = rows_of(&a);
    assert(a.size > 0 && a.groups * a.key_heads > 0);
    a.sum = sm_calloc(rows + 1, sizeof *a.sum);
    a.most = sm_calloc(rows + 1, sizeof *a.most);
    a.score = sm_calloc(a.room + 1, sizeof *a.score);
    sm_status status = a.sum && a.most && a.score ? run(&a, err) : sm_fail_memory(err);
    sm_free(a.sum);
    sm_free(a.most);
    sm_free(a.score);
    return status;
}

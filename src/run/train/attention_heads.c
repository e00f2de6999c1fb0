/* One head of one sequence at a time. Forward: P = softmax(scale Q K^T), O = P V (Vaswani et al.,
 * arXiv 1706.03762, eq. 1). Backward: dV = P^T dO, dP = dO V^T, dS = P (dP - rowsum(dO O)), dQ =
 * scale dS K, dK = scale dS^T Q (Dao et al., FlashAttention, arXiv 2205.14135, appendix B). Scores
 * may be sums of two products (latent attention, DeepSeek-V2, arXiv 2405.04434, eq. 17) and be
 * capped, cap tanh(s / cap) (Gemma 2, arXiv 2408.00118, section 2); a sink is one more logit of a
 * head, of no value (gpt-oss). A table of distances (T5, arXiv 1910.10683, section 2.1) adds the
 * number of its head in the row of how far a key lies. With ALiBi (Press et al., arXiv 2108.12409,
 * section 3) head h of n adds -m_h (i - j) to its scores. */
#include "train_parts.h"

#include <cblas.h>
#include <stdlib.h>

enum { Q = ATTENTION_Q, KEYS = ATTENTION_KEYS, VALUES = ATTENTION_VALUES, OUT = ATTENTION_OUT };
enum { Q2 = ATTENTION_Q2, KEYS2 = ATTENTION_KEYS2, SINKS = ATTENTION_SINKS };
enum { DISTANCES = ATTENTION_DISTANCES, FAR = SM_RUN_DISTANCES };

/* ---- which input is what ---- */

int attention_array_of(const sm_program *b, const sm_op *op, int input) {
    static const int scored[] = {Q, KEYS, Q2, KEYS2};
    if (input == op->values) return VALUES;
    const sm_tensor *t = &b->tensor[op->in[input]];
    if (t->role == SM_ROLE_WEIGHT)
        return b->dim[t->dim[0]].role == SM_DIMENSION_HEADS ? SINKS : DISTANCES;
    return scored[input < 4 ? input : 3];
}

static const uint8_t *dims_of(const attention_blocks *b, int array) {
    if (array == OUT) return b->program->tensor[b->op->out].dim;
    for (int i = 0; i < b->op->inputs; i++)
        if (attention_array_of(b->program, b->op, i) == array) return b->op->as[i];
    if (array == KEYS) return b->op->as[b->op->values]; /* latents are keys and values */
    return b->program->tensor[b->op->out].dim;
}

/* Half of the rows tell near distances apart, the others grow with them; where keys may lie on both
 * sides, each has half of all. */
static void find_buckets(attention_blocks *b, double most) {
    int rows = (int)b->x[DISTANCES]->size[0] / (b->mask.both ? 2 : 1), near = rows / 2;
    for (int d = -FAR; d <= FAR; d++) {
        int far = b->mask.both ? abs(d) : d < 0 ? -d : 0, row = far;
        if (far >= near && near > 0 && most > near)
            row = near + (int)(logf((float)far / (float)near) / (float)log(most / near) *
                               (float)(rows - near));
        if (row > rows - 1) row = rows - 1;
        b->bucket[d + FAR] = (int16_t)(row + (b->mask.both && d > 0 ? rows : 0));
    }
}

attention_blocks attention_blocks_of(const train_call *c) {
    const train_numbers *n = c->numbers;
    const sm_op *op = c->op;
    attention_blocks b = {.program = c->list->program, .op = op};
    for (int i = 0; i < op->inputs; i++) b.x[attention_array_of(b.program, op, i)] = c->in[i].block;
    double query = op->query_size;
    if (!b.x[KEYS]) { /* latents: what queries of all heads would be scaled by */
        b.x[KEYS] = b.x[VALUES];
        query = c->t->setup->model->kind[c->list - c->t->list].H;
    }
    assert(b.x[KEYS]);
    b.ahead = (long)c->in[Q].offset[1] - (long)c->in[KEYS].offset[1];
    b.keys = b.x[KEYS]->size[1];
    b.mask =
        (attention_mask){.scale = (float)(n->score_scale > 0 ? n->score_scale : 1 / sqrt(query)),
                         .cap = (float)n->attn_logit_softcapping,
                         .both = !c->line->causal,
                         .window = (long)op->window,
                         .chunk = (long)op->chunk,
                         .pictures = n->seen_whole > 0 && c->t->seen ? (long)c->t->pictures : 0,
                         .each = (long)c->t->each,
                         .first_query = (long)c->in[Q].offset[1]};
    if (n->window_tiles > 0 && b.mask.window > 0) {
        b.mask.side = (long)c->t->turns[c->list - c->t->list].side;
        b.mask.tile = (long)(sqrt((double)b.mask.window) + 0.5);
        b.mask.window = 0;
    }
    b.mask.scale *= (float)n->rope_score_scale;
    b.alibi = n->alibi_bias_max;
    b.at_once = SM_QUERIES_AT_ONCE;
    b.heads = c->in[Q].offset;
    if (b.x[DISTANCES]) find_buckets(&b, n->distance_most);
    return b;
}

/* ---- heads ---- */

typedef struct lie { /* of an array, along the dimensions of the result */
    size_t along[SM_MAX_RANK];
    size_t apart;
} lie;

static bool has_role(const sm_program *b, int dim, sm_dimension_role role) {
    return b->of_role[role] >> dim & 1u;
}

static bool is_rows(const attention_blocks *b, int dim) {
    return has_role(b->program, dim, SM_DIMENSION_POSITIONS) ||
           has_role(b->program, dim, SM_DIMENSION_KEYS);
}

static lie lie_of(const attention_blocks *b, int array, const sm_local_block *x) {
    const sm_tensor *out = &b->program->tensor[b->op->out];
    const uint8_t *dim = dims_of(b, array);
    lie l = {.apart = 1};
    size_t stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (is_rows(b, dim[d]) || (array == DISTANCES && d == 0)) l.apart = stride;
        for (int o = 0; o < out->rank; o++)
            if (out->dim[o] == dim[d] && !is_rows(b, dim[d])) l.along[o] = stride;
        stride *= x->size[d];
    }
    return l;
}

/* The sizes of the result that count heads: neither its rows nor its last. */
static int heads_of(const attention_blocks *b, size_t *size) {
    const sm_tensor *out = &b->program->tensor[b->op->out];
    for (int d = 0; d < out->rank; d++) {
        bool counts = d < out->rank - 1 && !is_rows(b, out->dim[d]);
        size[d] = 1;
        const uint8_t *dim = dims_of(b, Q);
        for (int i = 0; counts && i < b->x[Q]->rank; i++)
            if (dim[i] == out->dim[d]) size[d] = b->x[Q]->size[i];
    }
    return out->rank;
}

/* How the arrays of an op lie, and their gradients. */
typedef struct lies {
    lie x[ATTENTION_ARRAYS], d[ATTENTION_ARRAYS];
} lies;

static attention_rows rows_of(const attention_blocks *b, const lie *how, int array,
                              const sm_local_block *x, const size_t *at) {
    if (!x) return (attention_rows){NULL, 0};
    float *first = x->data;
    int rank = b->program->tensor[b->op->out].rank;
    bool pages = b->paged && (array == KEYS || array == KEYS2 || array == VALUES);
    for (int d = pages ? 1 : 0; d < rank && first; d++) first += at[d] * how->along[d];
    return (attention_rows){first, (int)how->apart};
}

/* m = 2^(-b h / p) of head h = 1 .. p, the largest power of two <= n; the others have those of odd
 * h among 2p heads. */
static float slope_of(const attention_blocks *b, const size_t *at) {
    const sm_tensor *out = &b->program->tensor[b->op->out];
    const uint8_t *dim = dims_of(b, Q);
    double head = 0, heads = 1, power = 1;
    if (!(b->alibi > 0)) return 0;
    for (int d = 0; d < out->rank; d++) {
        if (!has_role(b->program, out->dim[d], SM_DIMENSION_HEADS) &&
            !has_role(b->program, out->dim[d], SM_DIMENSION_GROUP))
            continue;
        double size = b->program->dim[out->dim[d]].size, first = (double)at[d];
        for (int i = 0; i < b->x[Q]->rank; i++)
            if (dim[i] == out->dim[d]) first += (double)b->heads[i];
        head = head * size + first;
        heads *= size;
    }
    while (2 * power <= heads) power *= 2;
    double steps = head < power ? (head + 1) / power : (2 * (head - power) + 1) / (2 * power);
    return (float)pow(2, -b->alibi * steps);
}

static int last_size(const sm_local_block *x) { return x ? (int)x->size[x->rank - 1] : 0; }

static attention_head head_at(const attention_blocks *b, const lies *l, const size_t *at,
                              size_t number) {
    attention_head h = {.queries = (int)b->x[Q]->size[1],
                        .keys = (int)(b->lengths ? b->lengths[at[0]] : b->keys),
                        .size = last_size(b->x[Q]),
                        .size2 = last_size(b->x[Q2]),
                        .value_size = last_size(b->x[VALUES]),
                        .ahead = b->ahead,
                        .mask = b->mask,
                        .bucket = b->bucket,
                        .row = number * b->x[Q]->size[1],
                        .sequence = at[0]};
    h.mask.slope = slope_of(b, at);
    for (int i = 0; i < ATTENTION_ARRAYS; i++) {
        h.x[i] = rows_of(b, &l->x[i], i, b->x[i], at);
        h.d[i] = rows_of(b, &l->d[i], i, b->d[i], at);
    }
    return h;
}

void attention_each_head(const attention_blocks *b,
                         void (*visit)(const attention_head *head, void *context), void *context) {
    size_t size[SM_MAX_RANK], at[SM_MAX_RANK] = {0}, number = 0;
    int rank = heads_of(b, size), d = 0;
    lies l;
    for (int i = 0; i < ATTENTION_ARRAYS; i++) {
        if (b->x[i]) l.x[i] = lie_of(b, i, b->x[i]);
        if (b->d[i]) l.d[i] = lie_of(b, i, b->d[i]);
    }
    while (d >= 0) {
        attention_head h = head_at(b, &l, at, number++);
        visit(&h, context);
        for (d = rank - 1; d >= 0 && ++at[d] == size[d]; d--) at[d] = 0;
    }
}

size_t attention_room_count(const attention_blocks *b) {
    size_t queries = b->x[Q]->size[1];
    size_t most = queries < SM_QUERIES_AT_ONCE ? queries : SM_QUERIES_AT_ONCE;
    size_t wide = (size_t)(b->op->query_size + b->op->value_size);
    return (b->mask.cap > 0 ? 3 : 2) * most * b->keys + 2 * wide * (queries + b->keys);
}

size_t attention_row_count(const attention_blocks *b) {
    size_t size[SM_MAX_RANK], rows = b->x[Q]->size[1];
    int rank = heads_of(b, size);
    for (int d = 0; d < rank; d++) rows *= size[d];
    return rows;
}

/* ---- panels ---- */

long attention_picture_end(const attention_mask *m, long position) {
    size_t end = 0, at = (size_t)position, each = (size_t)m->each;
    for (size_t k = 0; k < (size_t)m->pictures; k++) {
        const size_t begun = m->begun ? m->begun[k] : k * each;
        if ((at >= begun && at - begun < each) || (end > 0 && begun == end)) end = begun + each;
    }
    return (long)end;
}

size_t attention_seen(const attention_head *h, int query, size_t *from) {
    const attention_mask *m = &h->mask;
    long at = query + h->ahead, end = m->both ? h->keys : at + 1, begin = 0;
    if (m->window > 0) begin = m->both ? at - m->window / 2 : end - m->window;
    if (m->window > 0 && m->both && at + m->window / 2 < end) end = at + m->window / 2 + 1;
    const long here = m->first_query + query;
    if (m->tile > 0) { /* its rows; their other columns are hidden later */
        const long rows = m->tile * m->side;
        begin = here / rows * rows - here + at;
        end = begin + rows;
    }
    if (m->chunk > 0) begin = at - here % m->chunk;
    const long picture_end = attention_picture_end(m, here);
    if (picture_end - here + at > end) end = picture_end - here + at;
    end = end < 0 ? 0 : end > h->keys ? h->keys : end;
    *from = (size_t)(begin < 0 ? 0 : begin > end ? end : begin);
    return (size_t)end;
}

static void skip_rows(attention_rows *r, long rows) {
    if (r->first) r->first += rows * r->apart;
}

/* Some queries of a head with the keys that they may see. */
static attention_head panel_of(const attention_head *h, int first, int most, float *room) {
    static const int queried[] = {Q, Q2, OUT}, keyed[] = {KEYS, KEYS2, VALUES};
    attention_head panel = *h;
    size_t from, later;
    panel.queries = h->queries - first < most ? h->queries - first : most;
    panel.keys = (int)attention_seen(h, first + panel.queries - 1, &later);
    attention_seen(h, first, &from);
    if ((int)from > panel.keys) from = (size_t)panel.keys;
    panel.keys -= (int)from;
    panel.ahead = h->ahead + first - (long)from;
    panel.mask.first_query += first;
    panel.row = h->row + (size_t)first;
    for (int i = 0; i < 3; i++) {
        skip_rows(&panel.x[queried[i]], first);
        skip_rows(&panel.d[queried[i]], first);
        skip_rows(&panel.x[keyed[i]], (long)from);
        skip_rows(&panel.d[keyed[i]], (long)from);
    }
    size_t scores = (size_t)panel.queries * (size_t)panel.keys;
    panel.p = room;
    panel.dp = room + scores;
    panel.capped = panel.mask.cap > 0 ? room + 2 * scores : NULL;
    return panel;
}

typedef struct working {
    float *room;
    int at_once;
    void (*work)(const attention_head *panel, void *context);
    void *context;
} working;

static void copy_rows(attention_rows from, attention_rows to, long rows, int size) {
    for (long i = 0; from.first != to.first && i < rows; i++)
        memcpy(to.first + i * to.apart, from.first + i * from.apart, (size_t)size * sizeof(float));
}

/* Rows of other heads between those of one make each of them a page of its own, which every panel
 * reads again: they are brought together once, and what is written goes back. */
static void each_panel(const attention_head *h, void *context) {
    static const int array[] = {Q, Q2, OUT, KEYS, KEYS2, VALUES};
    const int size[] = {h->size, h->size2, h->value_size, h->size, h->size2, h->value_size};
    const long rows[] = {h->queries, h->queries, h->queries, h->keys, h->keys, h->keys};
    const working *w = context;
    attention_head own = *h;
    float *room = w->room;
    for (int i = 0; i < 12; i++) {
        const int k = i % 6;
        attention_rows *r = i < 6 ? &own.x[array[k]] : &own.d[array[k]], there = *r;
        if (!r->first || r->apart == size[k]) continue;
        *r = (attention_rows){room, size[k]};
        copy_rows(there, *r, rows[k], size[k]);
        room += rows[k] * size[k];
    }
    for (int first = 0; first < h->queries; first += w->at_once) {
        attention_head panel = panel_of(&own, first, w->at_once, room);
        if (panel.keys > 0) w->work(&panel, w->context);
    }
    for (int k = 0; k < 6; k++) copy_rows(own.d[array[k]], h->d[array[k]], rows[k], size[k]);
    copy_rows(own.x[OUT], h->x[OUT], h->queries, h->value_size);
}

void attention_each_panel(const attention_blocks *b,
                          void (*work)(const attention_head *panel, void *context), void *context) {
    working w = {b->room, b->at_once, work, context};
    attention_each_head(b, each_panel, &w);
}

/* ---- scores and slopes ---- */

/* The number of a table of distances, or its gradient, for a key of a query. */
static float *told(const attention_head *h, attention_rows table, int query, size_t key) {
    long d = (long)key - (query + h->ahead);
    d = d < -FAR ? -FAR : d > FAR ? FAR : d;
    return table.first + h->bucket[d + FAR] * table.apart;
}

void attention_add_distances(const attention_head *h, int query, size_t from, size_t n,
                             float *score) {
    const float slope = h->mask.slope;
    long apart = (long)from - (query + h->ahead);
    for (size_t s = 0; slope > 0 && s < n; s++) score[s] -= slope * fabsf((float)(apart + (long)s));
    for (size_t s = 0; h->x[DISTANCES].first && s < n; s++)
        score[s] += *told(h, h->x[DISTANCES], query, from + s);
}

/* Keys in the rows of the query's square, but not in its columns: so low that they are nothing
 * beside any that is seen. */
static void hide_columns(const attention_head *h, int query, float *score) {
    const attention_mask *m = &h->mask;
    const long here = m->first_query + query, first = here - (query + h->ahead);
    for (long s = 0; s < h->keys; s++)
        if ((first + s) % m->side / m->tile != here % m->side / m->tile) score[s] = -1e30F;
}

void attention_scores(const attention_head *h) {
    for (int pair = 0; pair < (h->size2 ? 2 : 1); pair++) {
        const attention_rows *q = &h->x[pair ? Q2 : Q], *k = &h->x[pair ? KEYS2 : KEYS];
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys,
                    pair ? h->size2 : h->size, h->mask.scale, q->first, q->apart, k->first,
                    k->apart, (float)pair, h->p, h->keys);
    }
    size_t keys = (size_t)h->keys, n = (size_t)h->queries * keys;
    for (int i = 0; i < h->queries; i++) {
        float *score = h->p + (size_t)i * keys;
        attention_add_distances(h, i, 0, keys, score);
        if (h->mask.tile > 0) hide_columns(h, i, score);
    }
    for (size_t i = 0; h->mask.cap > 0 && i < n; i++) {
        float t = tanhf(h->p[i] / h->mask.cap);
        if (h->capped) h->capped[i] = t;
        h->p[i] = h->mask.cap * t;
    }
}

float attention_exponentials(const attention_head *h, int i, float most) {
    float *p = h->p + (size_t)i * (size_t)h->keys;
    size_t from, seen = attention_seen(h, i, &from), keys = (size_t)h->keys;
    memset(p, 0, from * sizeof *p);
    memset(p + seen, 0, (keys - seen) * sizeof *p);
    return row_exponential(p + from, most, seen - from, p + from);
}

void attention_join(const attention_head *h, float *most, float *sum) {
    const attention_rows *out = &h->x[OUT];
    attention_scores(h);
    for (int i = 0; i < h->queries; i++) {
        size_t from, seen = attention_seen(h, i, &from);
        float before = most[i];
        float now = row_most(h->p + (size_t)i * (size_t)h->keys + from, seen - from);
        if (now > before) {
            most[i] = now;
            sum[i] *= expf(before - now);
            cblas_sscal(h->value_size, expf(before - now),
                        out->first + (size_t)i * (size_t)out->apart, 1);
        }
        sum[i] += attention_exponentials(h, i, most[i]);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, h->value_size, h->keys, 1.0F,
                h->p, h->keys, h->x[VALUES].first, h->x[VALUES].apart, 1.0F, out->first,
                out->apart);
}

/* d Q += dS K; d K += dS' Q. */
static void scores_back(const attention_head *h, int q, int k, int size) {
    const attention_rows *d = h->d, *x = h->x;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->queries, size, h->keys, 1.0F, h->dp,
                h->keys, x[k].first, x[k].apart, 1.0F, d[q].first, d[q].apart);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, size, h->queries, 1.0F, h->dp,
                h->keys, x[q].first, x[q].apart, 1.0F, d[k].first, d[k].apart);
}

/* dV += P' dO; dP = dO V'. */
void attention_slopes(const attention_head *h, const float *dots) {
    const attention_rows *d = h->d, *x = h->x;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->keys, h->value_size, h->queries, 1.0F,
                h->p, h->keys, d[OUT].first, d[OUT].apart, 1.0F, d[VALUES].first, d[VALUES].apart);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->queries, h->keys, h->value_size, 1.0F,
                d[OUT].first, d[OUT].apart, x[VALUES].first, x[VALUES].apart, 0.0F, h->dp, h->keys);
    /* dp becomes dS = scale P (dP - sum of P dP), and what the cap leaves of it. */
    size_t keys = (size_t)h->keys;
    for (int i = 0; i < h->queries; i++) {
        const float *p = h->p + (size_t)i * keys;
        float *dp = h->dp + (size_t)i * keys, sum = dots ? dots[i] : row_dot(p, dp, keys);
        /* a sink has what the keys leave of a query's share, and no value; dots: not all keys */
        if (d[SINKS].first && !dots) *d[SINKS].first -= (1 - row_sum(p, keys)) * sum;
        row_slope(p, sum, h->mask.scale, keys, dp);
        for (size_t s = 0; d[DISTANCES].first && s < keys; s++)
            *told(h, d[DISTANCES], i, s) += dp[s] / h->mask.scale;
        const float *t = h->capped ? h->capped + (size_t)i * keys : NULL;
        for (size_t s = 0; t && s < keys; s++) dp[s] *= 1 - t[s] * t[s];
    }
    scores_back(h, Q, KEYS, h->size);
    if (h->size2) scores_back(h, Q2, KEYS2, h->size2);
}

/* Attention of new queries on a cache: q [B,1,...] on k and v [pages, places, ...], of which a row
 * has those of its table. Queries of one head that follow each other in a sequence are multiplied
 * together. Ranks of context hold
 * other places of each page: the sums of their softmaxes are added first (8 bytes for each query
 * and head), then their shares of the result. */
#include <cblas.h>

#include "train_parts.h"

/* exp of more than this leaves double precision's range when summed. */
static const double MOST_SCORE = 690;

typedef struct attending {
    train_call *c;
    attention_blocks at;
    bool joined;
    size_t first_place, places; /* of a page, on this rank */
    const int32_t *page;        /* [rows, table] */
    size_t table, page_tokens;
    const size_t *read; /* of each slot: keys of a text that was read, all of which are seen */
    size_t *follow;     /* of each row of this rank: queries from its own on that follow each other;
                           0: it follows that of the row before, or pads */
    size_t apart;       /* from a query to the next of its head, in sum and most */
    double *sum;  /* of exp(score) over this rank's keys, then over all; of each query and head */
    float *most;  /* the largest score of this rank's keys, which `out` is scaled by */
    float *score; /* of the queries together */
    float *laid;  /* keys or values of a head */
} attending;

/* Is the query of row r the next of the sequence of the row before? Its pages begin as those do. */
static bool follows(const train_feed *feed, size_t r) {
    const int32_t *page = feed->page + r * feed->table;
    size_t pages = feed->position[r - 1] / feed->page_tokens + 1;
    return feed->count[r] == 1 && feed->count[r - 1] == 1 &&
           feed->position[r] == feed->position[r - 1] + 1 &&
           memcmp(page, page - feed->table, pages * sizeof *page) == 0;
}

static void see_what_follows(attending *a, size_t rows) {
    const train_feed *feed = a->c->t->feed;
    size_t head = 0; /* the row whose queries go on */
    for (size_t s = 0; s < rows; s++) {
        size_t r = feed->first + s;
        a->follow[s] = feed->count[r];
        if (s == 0 || a->follow[head] == SM_QUERIES_AT_ONCE || !follows(feed, r)) head = s;
        else a->follow[s] = 0, a->follow[head]++;
    }
}

/* Keys [at, at + n) of a sequence lie one behind the other from a row of the cache. */
typedef struct key_run {
    size_t at, n, row;
} key_run;

/* The next run of keys on this rank, up to `end`; false: there is none. Neighbouring pages are one.
 */
static bool next_run(const attending *a, size_t r, size_t end, key_run *run) {
    const int32_t *page = a->page + r * a->table;
    const size_t page_tokens = a->page_tokens;
    size_t at = run->at + run->n;
    for (; at < end; at = (at / page_tokens + 1) * page_tokens) {
        size_t i = at / page_tokens, start = i * page_tokens + a->first_place;
        size_t last = start + a->places;
        if (at < start) at = start;
        if (at >= end || at >= last) continue;
        *run = (key_run){at, 0, (size_t)page[i] * a->places + at - start};
        for (; a->places == page_tokens && last < end && page[i + 1] == page[i] + 1; i++)
            last += a->places;
        run->n = (last < end ? last : end) - at;
        return true;
    }
    return false;
}

/* Keys [from, end) of a sequence that are on this rank. */
static size_t keys_here(const attending *a, size_t r, size_t from, size_t end) {
    size_t keys = 0;
    if (a->places == a->page_tokens) return end - from;
    for (key_run run = {.at = from}; next_run(a, r, end, &run);) keys += run.n;
    return keys;
}

/* Queries together, and the row of scores of each. */
typedef struct query_rows {
    const attention_head *h;
    size_t row;        /* of the feed, that of the last query: it has the pages of all */
    size_t n, from;    /* they see no key before */
    size_t end, width; /* nor from here on; keys on this rank */
} query_rows;

/* y = scale x m + factor y, x and y rows of queries; m: rows of the cache, or what they are
 * transposed. */
typedef struct row_product {
    int columns, sum;
    float scale, factor;
    bool transposed;
} row_product;

static void multiply_rows(const query_rows *q, row_product p, attention_rows x, attention_rows m,
                          attention_rows y) {
    CBLAS_TRANSPOSE t = p.transposed ? CblasTrans : CblasNoTrans;
    if (q->n > 1)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, t, (int)q->n, p.columns, p.sum, p.scale, x.first,
                    x.apart, m.first, m.apart, p.factor, y.first, y.apart);
    else
        cblas_sgemv(CblasRowMajor, p.transposed ? CblasNoTrans : CblasTrans,
                    p.transposed ? p.columns : p.sum, p.transposed ? p.sum : p.columns, p.scale,
                    m.first, m.apart, x.first, 1, p.factor, y.first, 1);
}

static attention_rows rows_from(attention_rows x, size_t row) {
    return (attention_rows){x.first + (long)row * x.apart, x.apart};
}

/* The next keys to multiply with, or values, and how many they are: a run for one query; what runs
 * of pages hold, laid together, for several. at: the place of the first among all those. */
typedef struct key_rows {
    key_run run;
    size_t at, n;
    attention_rows x;
} key_rows;

static bool next_rows(const attending *a, const query_rows *q, attention_rows x, int width,
                      key_rows *next) {
    next->at += next->n;
    if (!next_run(a, q->row, q->end, &next->run)) return false;
    next->n = next->run.n;
    next->x = rows_from(x, next->run.row);
    if (q->n == 1 || next->n == q->width) return true;
    float *to = a->laid;
    do {
        attention_rows from = rows_from(x, next->run.row);
        for (size_t i = 0; i < next->run.n; i++, to += width)
            memcpy(to, from.first + (long)i * from.apart, (size_t)width * sizeof *to);
    } while (next_run(a, q->row, q->end, &next->run));
    next->n = q->width;
    next->x = (attention_rows){a->laid, width};
    return true;
}

static void score(attending *a, const query_rows *q) {
    static const int queried[] = {ATTENTION_Q, ATTENTION_Q2};
    static const int keyed[] = {ATTENTION_KEYS, ATTENTION_KEYS2};
    const attention_head *h = q->h;
    size_t scores = q->n * q->width, at = 0;
    for (int i = 0; i < 2; i++) {
        int size = i ? h->size2 : h->size;
        key_rows k = {.run = {.at = q->from}};
        while (h->x[keyed[i]].first && next_rows(a, q, h->x[keyed[i]], size, &k))
            multiply_rows(q, (row_product){(int)k.n, size, h->mask.scale, i ? 1.0F : 0.0F, true},
                          h->x[queried[i]], k.x, (attention_rows){a->score + k.at, (int)q->width});
    }
    for (key_run run = {.at = q->from}; next_run(a, q->row, q->end, &run); at += run.n)
        for (size_t i = 0; i < q->n; i++)
            attention_add_distances(h, (int)i, run.at, run.n, a->score + i * q->width + at);
    for (size_t s = 0; h->mask.cap > 0 && s < scores; s++)
        a->score[s] = h->mask.cap * tanhf(a->score[s] / h->mask.cap);
}

/* Scores of a query to exp(score - most): their largest and their sum. */
static void exponentials(attending *a, const query_rows *q, size_t query) {
    const attention_head *h = q->h;
    const float *sink = a->joined ? NULL : h->x[ATTENTION_SINKS].first;
    size_t from, end = attention_seen(h, (int)query, &from), row = h->row + query * a->apart;
    size_t first = keys_here(a, q->row, q->from, from), n = keys_here(a, q->row, from, end);
    float *p = a->score + query * q->width;
    memset(p, 0, first * sizeof *p);
    memset(p + first + n, 0, (q->width - first - n) * sizeof *p);
    if (n == 0) return;
    float most = row_most(p + first, n);
    if (sink && *sink > most) most = *sink;
    float sum = row_exponential(p + first, most, n, p + first);
    a->most[row] = most;
    a->sum[row] = (double)(sink ? sum + expf(*sink - most) : sum);
}

/* out = sum of exp(score - most) v over the keys of this rank. */
static void attend(attending *a, const attention_head *h, size_t row) {
    query_rows q = {.h = h, .row = row, .n = (size_t)h->queries};
    size_t later;
    q.end = attention_seen(h, h->queries - 1, &later);
    attention_seen(h, 0, &q.from);
    q.width = keys_here(a, row, q.from, q.end);
    if (q.width == 0) return;
    score(a, &q);
    for (size_t i = 0; i < q.n; i++) exponentials(a, &q, i);
    key_rows v = {.run = {.at = q.from}};
    while (next_rows(a, &q, h->x[ATTENTION_VALUES], h->value_size, &v))
        multiply_rows(&q, (row_product){h->value_size, (int)v.n, 1.0F, v.at ? 1.0F : 0.0F, false},
                      (attention_rows){a->score + v.at, (int)q.width}, v.x, h->x[ATTENTION_OUT]);
}

/* The queries of a head from a row's on, as far as they follow each other. */
static void attend_all(const attention_head *first, void *context) {
    attending *a = context;
    const train_feed *feed = a->c->t->feed;
    size_t r = feed->first + first->sequence, n = a->follow[first->sequence];
    attention_head h = *first;
    h.queries = (int)n;
    h.mask.first_query = h.ahead = (long)feed->position[r];
    h.keys = a->read ? (int)a->read[feed->slot[r]] : (int)h.ahead + h.queries;
    h.mask.begun = feed->begun + r * (size_t)h.mask.pictures;
    const long all_of_it = attention_picture_end(&h.mask, h.ahead + h.queries - 1);
    if (h.keys < all_of_it) h.keys = (int)all_of_it;
    if (n) attend(a, &h, r + n - 1);
}

/* out over the sum of its row. */
static void divide(const attention_head *h, void *context) {
    attending *a = context;
    const train_feed *feed = a->c->t->feed;
    const float *sink = h->x[ATTENTION_SINKS].first;
    if (!feed->count[feed->first + h->sequence]) return;
    double sum = a->sum[h->row], part = a->joined ? exp((double)a->most[h->row]) : 1;
    if (a->joined && sink) sum += exp((double)*sink);
    float *out = h->x[ATTENTION_OUT].first;
    for (int j = 0; sum > 0 && j < h->value_size; j++) out[j] *= (float)(part / sum);
}

/* Sums over the positions of all ranks: they share no largest score, so that it is taken back. */
static sm_status join_sums(attending *a, size_t rows, sm_error *err) {
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

/* Where the keys are: in pages of the sequence, or, of a text that was read, in its slot. */
static sm_status find_pages(attending *a, size_t rows, sm_arena *arena, sm_error *err) {
    const sm_trainer *t = a->c->t;
    const train_feed *feed = t->feed;
    const sm_program *b = a->c->list->program;
    const sm_tensor *values = &b->tensor[a->c->op->in[a->c->op->values]];
    a->page = feed->page;
    a->table = feed->table;
    a->page_tokens = a->places * (size_t)train_degree(t, SM_BIT(SM_AXIS_CONTEXT));
    if (!b->op[values->producer].once) return SM_OK;
    int32_t *page = sm_arena_array(arena, feed->first + rows, sizeof *page);
    if (!page) return sm_fail_memory(err);
    for (size_t r = feed->first; r < feed->first + rows; r++) page[r] = (int32_t)feed->slot[r];
    a->page = page;
    a->table = 1;
    a->read = feed->read;
    return SM_OK;
}

sm_status generate_attention(train_call *c, sm_error *err) {
    attending a = {.c = c,
                   .at = attention_blocks_of(c),
                   .joined = train_degree(c->t, SM_BIT(SM_AXIS_CONTEXT)) > 1,
                   .first_place = c->in[ATTENTION_KEYS].offset[1],
                   .places = c->in[ATTENTION_KEYS].block->size[1]};
    a.at.paged = true;
    a.at.x[ATTENTION_OUT] = c->out;
    size_t fed = a.at.x[ATTENTION_Q]->size[0], rows = attention_row_count(&a.at);
    size_t together = fed < SM_QUERIES_AT_ONCE ? fed : SM_QUERIES_AT_ONCE;
    a.apart = rows / fed;
    sm_arena *arena = sm_arena_new();
    a.follow = sm_arena_array(arena, fed + 1, sizeof *a.follow);
    a.sum = sm_arena_array(arena, rows + 1, sizeof *a.sum);
    a.most = sm_arena_array(arena, rows + 1, sizeof *a.most);
    sm_status status = find_pages(&a, fed, arena, err);
    size_t keys = a.table * a.page_tokens, wide = 1;
    for (int i = 0; i < ATTENTION_ARRAYS; i++) {
        const sm_local_block *x = a.at.x[i];
        if (x && x->rank && x->size[x->rank - 1] > wide) wide = x->size[x->rank - 1];
    }
    a.score = sm_malloc((together * keys + 1) * sizeof *a.score);
    a.laid = sm_malloc((keys * wide + 1) * sizeof *a.laid);
    if (!status && !(a.follow && a.sum && a.most && a.score && a.laid))
        status = sm_fail_memory(err);
    if (!status) see_what_follows(&a, fed);
    if (!status) attention_each_head(&a.at, attend_all, &a);
    if (!status && a.joined) status = join_sums(&a, rows, err);
    if (!status) attention_each_head(&a.at, divide, &a);
    sm_arena_free(arena);
    sm_free(a.laid);
    sm_free(a.score);
    return status;
}

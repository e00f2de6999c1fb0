/* Generating: tokens through the program of serving, forward, for several sequences at once. */
#include "attention_heads.h"
#include "train_parts.h"
#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

/* Attention of new queries on a cache: q [B,T,...] on k [B,S,...] and v [B,S,...] of which each
 * sequence has filled a part. One query of one head at a time, so that a query's numbers do not
 * depend on how many come with it. Ranks of context hold other positions each: the sums of their
 * softmaxes are added first (8 bytes for each query and head), then their shares of the result. */

/* exp of more than this leaves double precision's range when summed. */
static const double MOST_SCORE = 690;

typedef struct attending {
    train_call *c;
    attention_blocks at;
    bool joined;
    size_t first_key; /* of this rank */
    double *sum;      /* of exp(score) over this rank's keys, then over all; of each row */
    float *most;      /* the largest score of this rank's keys, which `out` is scaled by */
    float *score;     /* of one query */
} attending;

/* Keys on this rank that a query may see: the head as one of its queries. */
static bool query_of(const attending *a, const attention_head *all, int query,
                     attention_head *one) {
    const train_feed *feed = a->c->t->feed;
    size_t global = a->c->in[ATTENTION_Q].offset[0] + all->sequence;
    if ((size_t)query >= feed->pass->count[global]) return false;
    *one = *all;
    one->queries = 1;
    one->mask.first_query = (long)feed->cached[global] + query;
    one->ahead = one->mask.first_query - (long)a->first_key;
    static const int queried[] = {ATTENTION_Q, ATTENTION_Q2, ATTENTION_OUT};
    for (int i = 0; i < 3; i++) {
        attention_rows *x = &one->x[queried[i]];
        if (x->first) x->first += (long)query * x->apart;
    }
    one->row = all->row + (size_t)query;
    return true;
}

/* out = sum of exp(score - most) v over the keys of this rank. */
static void attend(attending *a, const attention_head *h) {
    static const int queried[] = {ATTENTION_Q, ATTENTION_Q2};
    static const int keyed[] = {ATTENTION_KEYS, ATTENTION_KEYS2};
    const float *sink = a->joined ? NULL : h->x[ATTENTION_SINKS].first;
    size_t from, end = attention_seen(h, 0, &from), keys = end - from;
    for (int i = 0; i < 2 && keys; i++) {
        const attention_rows *k = &h->x[keyed[i]];
        if (!k->first) continue;
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)keys, i ? h->size2 : h->size, h->mask.scale,
                    k->first + (long)from * k->apart, k->apart, h->x[queried[i]].first, 1,
                    i ? 1.0F : 0.0F, a->score, 1);
    }
    if (keys == 0) return;
    attention_add_slope(h, 0, from, keys, a->score);
    for (size_t s = 0; h->mask.cap > 0 && s < keys; s++)
        a->score[s] = h->mask.cap * tanhf(a->score[s] / h->mask.cap);
    /* Scores to exp(score - most): their largest and their sum. */
    float most = a->score[0], sum = 0;
    for (size_t s = 1; s < keys; s++) most = a->score[s] > most ? a->score[s] : most;
    if (sink && *sink > most) most = *sink;
    for (size_t s = 0; s < keys; s++) sum += a->score[s] = expf(a->score[s] - most);
    a->most[h->row] = most;
    a->sum[h->row] = (double)(sink ? sum + expf(*sink - most) : sum);
    const attention_rows *v = &h->x[ATTENTION_VALUES];
    cblas_sgemv(CblasRowMajor, CblasTrans, (int)keys, h->value_size, 1.0F,
                v->first + (long)from * v->apart, v->apart, a->score, 1, 0.0F,
                h->x[ATTENTION_OUT].first, 1);
}

static void attend_all(const attention_head *h, void *context) {
    attending *a = context;
    attention_head one;
    for (int i = 0; i < h->queries; i++)
        if (query_of(a, h, i, &one)) attend(a, &one);
}

/* out over the sum of its row. */
static void divide(const attention_head *h, void *context) {
    attending *a = context;
    for (int i = 0; i < h->queries; i++) {
        attention_head one;
        if (!query_of(a, h, i, &one)) continue;
        const float *sink = h->x[ATTENTION_SINKS].first;
        double sum = a->sum[one.row], part = a->joined ? exp((double)a->most[one.row]) : 1;
        if (a->joined && sink) sum += exp((double)*sink);
        float *out = one.x[ATTENTION_OUT].first;
        for (int j = 0; sum > 0 && j < h->value_size; j++) out[j] *= (float)(part / sum);
    }
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

sm_status generate_attention(train_call *c, sm_error *err) {
    attending a = {.c = c,
                   .at = attention_blocks_of(c),
                   .joined = train_degree(c->t, SM_BIT(SM_AXIS_CONTEXT)) > 1,
                   .first_key = c->in[ATTENTION_KEYS].offset[1]};
    a.at.x[ATTENTION_OUT] = c->out;
    size_t rows = attention_row_count(&a.at);
    a.sum = sm_calloc(rows + 1, sizeof *a.sum);
    a.most = sm_calloc(rows + 1, sizeof *a.most);
    a.score = sm_calloc(a.at.keys + 1, sizeof *a.score);
    sm_status status = a.sum && a.most && a.score ? SM_OK : sm_fail_memory(err);
    if (!status) attention_each_head(&a.at, attend_all, &a);
    if (!status && a.joined) status = join_sums(&a, rows, err);
    if (!status) attention_each_head(&a.at, divide, &a);
    sm_free(a.sum);
    sm_free(a.most);
    sm_free(a.score);
    return status;
}

/* Programs and tasks of passes of one size. */
typedef struct piece_set {
    size_t queries, sampled;
    int lists;
    sm_task_list list[SM_MAX_LAYER_KINDS + 2];
} piece_set;

enum { SETS = 4 };
struct sm_generator {
    sm_trainer t; /* of which only the forward half is used */
    sm_train_setup setup;
    train_feed feed;
    size_t *cached;
    piece_set *set; /* [SETS]: those of the passes made lately */
    int next_set;
    sm_generator_part own, *part; /* part: of every rank */
};

/* ---- what can be generated from ---- */

static sm_status check(const sm_train_setup *s, sm_error *err) {
    sm_status status = train_check_model(s, true, err);
    if (status) return status;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (s->degree[a] < 1)
            return sm_fail(err, SM_BAD_INPUT, "a degree of %d is none", s->degree[a]);
    if (s->stages > 1 && s->chunks != s->stages)
        return sm_fail(err, SM_BAD_INPUT, "%d stages generate with one chunk of layers each",
                       s->stages);
    if (s->stages > 1 && s->model->tied)
        return sm_fail(err, SM_BAD_INPUT,
                       "an unembedding tied to the embedding needs both on one "
                       "stage of the pipeline");
    int ways = s->degree[SM_AXIS_DATA] * s->degree[SM_AXIS_FSDP] * s->degree[SM_AXIS_EXPERT];
    if (s->sequences < 1 || s->sequences % ways)
        return sm_fail(err, SM_BAD_INPUT, "%d sequences do not divide over %d ranks", s->sequences,
                       ways);
    if (s->tokens < 1 || s->tokens % s->degree[SM_AXIS_CONTEXT])
        return sm_fail(err, SM_BAD_INPUT, "a cache of %d positions does not divide over %d ranks",
                       s->tokens, s->degree[SM_AXIS_CONTEXT]);
    return SM_OK;
}

/* ---- programs ---- */

static void take_set(sm_trainer *t, const piece_set *set) {
    memcpy(t->list, set->list, sizeof t->list);
    t->lists = set->lists;
    t->extent.queries = (double)set->queries;
    t->sampled = set->sampled;
}

static void drop_set(sm_trainer *t, piece_set *set) {
    take_set(t, set);
    train_programs_free(t);
    *set = (piece_set){.lists = 0};
}

static sm_status use_set(sm_generator *g, size_t queries, size_t sampled, sm_error *err) {
    for (int i = 0; i < SETS; i++) {
        const piece_set *set = &g->set[i];
        if (!set->lists || set->queries != queries || set->sampled != sampled) continue;
        take_set(&g->t, set);
        return SM_OK;
    }
    sm_trainer *t = &g->t;
    piece_set *set = &g->set[g->next_set];
    g->next_set = (g->next_set + 1) % SETS;
    drop_set(t, set);
    t->extent.queries = (double)queries;
    t->sampled = sampled;
    sm_status status = train_programs_new(t, err);
    set->queries = queries;
    set->sampled = sampled;
    set->lists = t->lists;
    memcpy(set->list, t->list, sizeof set->list);
    if (status) drop_set(t, set);
    return status;
}

/* ---- begin and end ---- */

/* The sequences of this rank, and those of all others. */
static sm_status deal_sequences(sm_generator *g, sm_error *err) {
    sm_trainer *t = &g->t;
    const sm_task_list *head = &t->list[t->setup->model->kinds + 1];
    const sm_einsum *einsum;
    const sm_array *scores =
        sm_task_list_array(head, head->program->op[head->program->ops - 1].in[0], &einsum);
    if (!scores) return sm_fail(err, SM_INTERNAL, "nothing reads the scores");
    sm_layout layout = sm_layout_of(scores);
    sm_local_block block = {.rank = 1};
    size_t offset[SM_MAX_RANK];
    block.size[0] = train_local_size(t, t->extent.sequences, &layout, 0);
    train_offsets(t, &layout, &block, offset);
    if (t->stage.number == t->setup->stages - 1)
        g->own = (sm_generator_part){offset[0], block.size[0]};
    g->part = sm_calloc((size_t)t->world->size, sizeof *g->part);
    if (!g->part) return sm_fail_memory(err);
    return sm_run_all_gather(t->world, &g->own, sizeof g->own, g->part, err);
}

static sm_status begin(sm_generator *g, sm_error *err) {
    sm_trainer *t = &g->t;
    g->cached = sm_calloc((size_t)t->setup->sequences, sizeof *g->cached);
    g->set = sm_calloc(SETS, sizeof *g->set);
    if (!g->cached || !g->set) return sm_fail_memory(err);
    sm_status status = train_mesh_new(t, err);
    if (status) return status;
    train_actions_new(t);
    status = use_set(g, 1, 1, err);
    if (!status) status = train_layers_new(t, err);
    return status ? status : deal_sequences(g, err);
}

sm_status sm_generator_new(sm_communicator *world, const sm_train_setup *setup, sm_generator **out,
                           sm_error *err) {
    sm_status status = check(setup, err);
    if (status) return status;
    sm_generator *g = sm_calloc(1, sizeof *g);
    if (!g) return sm_fail_memory(err);
    g->setup = *setup;
    /* one road for prompts and single bytes: the cache lies over context, queries are on all */
    g->setup.rules = (sm_rules){.expert_tensor = setup->rules.expert_tensor, .decode = true};
    g->t = (sm_trainer){
        .setup = &g->setup,
        .world = world,
        .serving = true,
        .feed = &g->feed,
    };
    g->t.extent.sequences = setup->sequences;
    g->t.extent.keys = setup->tokens;
    status = begin(g, err);
    if (status) sm_generator_free(g);
    else *out = g;
    return status;
}

void sm_generator_free(sm_generator *g) {
    if (!g) return;
    train_layers_free(&g->t);
    for (int i = 0; g->set && i < SETS; i++) drop_set(&g->t, &g->set[i]);
    train_turns_free(&g->t);
    sm_arena_free(g->t.texts);
    sm_rank_mesh_free(g->t.mesh);
    sm_free(g->set);
    sm_free(g->cached);
    sm_free(g->part);
    sm_free(g);
}

sm_status sm_generator_load(sm_generator *g, sm_train_visit find, void *context, sm_error *err) {
    return train_load_part(&g->t, SM_TRAIN_VALUE, find, context, err);
}

/* ---- what a stage asks for about its head ---- */

/* The rows whose scores are wanted: all, or the last one meant of each sequence. */
sm_status generate_select(const sm_trainer *t, sm_local_block *stream, sm_error *err) {
    const train_feed *feed = t->feed;
    size_t queries = stream->size[1], width = stream->size[2];
    sm_local_block rows;
    if (t->sampled == queries) return SM_OK;
    sm_status status =
        sm_local_block_new(SM_ELEMENT_F32, 3, (size_t[]){stream->size[0], 1, width}, &rows, err);
    if (status) return status;
    for (size_t s = 0; s < stream->size[0]; s++) {
        size_t count = feed->pass->count[feed->first + s], at = count ? count - 1 : 0;
        memcpy((float *)rows.data + s * width,
               (const float *)stream->data + (s * queries + at) * width, width * sizeof(float));
    }
    sm_local_block_free(stream);
    *stream = rows;
    return SM_OK;
}

/* What the op that samples moves: the scores of this rank's words among zeros, summed over the
 * ranks of the vocabulary, which is exact. */
sm_status generate_scores(const sm_trainer *t, const sm_call *head, sm_error *err) {
    const sm_program *b = head->list->program;
    const sm_einsum *einsum;
    int tensor = b->op[b->ops - 1].in[0];
    const sm_local_block *logits = &head->saved->value[tensor];
    sm_layout layout = sm_layout_of(sm_task_list_array(head->list, tensor, &einsum));
    size_t offset[SM_MAX_RANK], words = logits->size[2], all = (size_t)t->setup->model->V;
    size_t rows = logits->size[0] * logits->size[1];
    train_offsets(t, &layout, logits, offset);
    float *to = t->feed->scores + t->feed->first * t->sampled * all;
    memset(to, 0, rows * all * sizeof *to);
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * all + offset[2], (const float *)logits->data + i * words,
               words * sizeof *to);
    if (train_degree(t, SM_AXES_TENSOR) <= 1) return SM_OK;
    sm_communicator *over = sm_rank_mesh_over(t->mesh, SM_AXES_TENSOR, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    return sm_run_all_reduce(over, to, rows * all, SM_ELEMENT_F32, err);
}

/* ---- passes ---- */

static sm_status check_pass(const sm_generator *g, const sm_generator_pass *pass, sm_error *err) {
    size_t most = 0;
    for (int i = 0; i < g->setup.sequences; i++) {
        size_t n = pass->count[i], room = (size_t)g->setup.tokens;
        if (n > pass->queries || g->cached[i] + n > room)
            return sm_fail(err, SM_BAD_INPUT,
                           "the cache has room for %zu tokens, and %zu come after %zu", room, n,
                           g->cached[i]);
        for (size_t q = 0; q < n; q++) {
            int32_t token = pass->token[(size_t)i * pass->queries + q];
            if (token < 0 || token >= g->setup.model->V)
                return sm_fail(err, SM_BAD_INPUT,
                               "there is no token %d in a vocabulary of %d words", token,
                               g->setup.model->V);
        }
        if (n > most) most = n;
    }
    return most ? SM_OK : sm_fail(err, SM_BAD_INPUT, "a pass brings at least one token");
}

sm_status sm_generator_feed(sm_generator *g, const sm_generator_pass *pass, float *scores,
                            sm_generator_result *result, sm_error *err) {
    train_traffic before;
    double begun_s = sm_clock_s();
    sm_status status = check_pass(g, pass, err);
    if (!status) status = use_set(g, pass->queries, pass->each ? pass->queries : 1, err);
    if (status) return status;
    g->feed = (train_feed){pass, g->cached, g->own.first, scores};
    train_traffic_now(&g->t, &before);
    status =
        train_run_stage(&g->t, &(sm_train_action){SM_TRAIN_FORWARD, g->t.stage.number, 0}, 1, err);
    for (int i = 0; !status && i < g->setup.sequences; i++) g->cached[i] += pass->count[i];
    if (!status && result) {
        train_traffic now;
        result->seconds = sm_clock_s() - begun_s;
        train_traffic_now(&g->t, &now);
        train_bytes_predicted(&g->t, result->bytes_predicted);
        for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
            result->bytes_counted[i] = now.bytes[i] - before.bytes[i];
            result->collective_s[i] = now.seconds[i] - before.seconds[i];
        }
    }
    return status;
}

static bool scans(const sm_trainer *t) {
    for (int i = 0; i < t->lists; i++)
        if (t->lines[i]->kernels) return true;
    return false;
}

sm_generator_size sm_generator_size_of(const sm_generator *g) {
    return (sm_generator_size){(size_t)g->setup.sequences, (size_t)g->setup.tokens,
                               (size_t)g->setup.model->V, scans(&g->t)};
}

size_t sm_generator_cached(const sm_generator *g, size_t sequence) { return g->cached[sequence]; }

void sm_generator_rewind(sm_generator *g, size_t sequence, size_t cached) {
    if (cached < g->cached[sequence]) g->cached[sequence] = cached;
}

/* ---- sharing ---- */

sm_generator_part sm_generator_own(const sm_generator *g) { return g->own; }

sm_status sm_generator_share(sm_generator *g, void *records, size_t bytes, sm_error *err) {
    sm_communicator *world = g->t.world;
    size_t most = 0, ranks = (size_t)world->size;
    if (ranks == 1) return SM_OK;
    for (size_t i = 0; i < ranks; i++)
        if (g->part[i].n > most) most = g->part[i].n;
    assert(g->own.n <= most);
    size_t block = most * bytes;
    char *room = sm_calloc(ranks + 1, block);
    if (!room) return sm_fail_memory(err);
    memcpy(room, (char *)records + g->own.first * bytes, g->own.n * bytes);
    sm_status status = sm_run_all_gather(world, room, block, room + block, err);
    for (size_t i = ranks; !status && i-- > 0;) /* of ranks with the same sequences the first */
        memcpy((char *)records + g->part[i].first * bytes, room + (i + 1) * block,
               g->part[i].n * bytes);
    sm_free(room);
    return status;
}

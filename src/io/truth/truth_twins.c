/* Rows that speak of one configuration: equal in all that is stated but the measurement. Sorted by
 * a text of those facts they lie side by side. */
#include "truth_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONTRADICTORY 2.0 /* times; honest sources differ by a fifth */

typedef struct twin {
    const char *key;
    const sm_truth_row *row;
} twin;

static char *key_of_training(const sm_truth_row *row, sm_arena *arena) {
    const sm_training_row *t = &row->of.training;
    const char *model = sm_arena_printf(
        arena, "%s|%d,%d,%d,%d,%d,%d,%d|%d,%d,%d,%d,%d|%d,%d|%d,%d,%d", t->model.name,
        t->model.layers, t->model.d_model, t->model.d_ff, t->model.n_heads, t->model.n_kv_heads,
        t->model.d_head, t->model.vocab, t->model.n_experts, t->model.experts_per_token,
        t->model.d_ff_expert, t->model.shared_experts, t->model.n_dense_layers, t->model.gated,
        t->model.tied, t->model.q_rank, t->model.kv_rank, t->model.n_mtp_layers);
    const char *plan = sm_arena_printf(
        arena, "%d,%d|%s|%g,%g,%g,%g|%d,%d,%d,%d,%d,%d,%d,%d,%d|%s|%s|%s|%s|%s", t->chips,
        t->devices, t->precision_class, t->seq_len, t->global_batch_sequences, t->microbatch,
        t->per_device_batch_size, t->tp, t->cp, t->pp, t->vp, t->ep, t->dp, t->sp, t->fsdp,
        t->zero_stage, t->recompute, t->attention_kernel, t->schedule, t->task, t->plan);
    return model && plan ? sm_arena_printf(arena, "%s|%s|%s|%s|%s", row->chip, model, plan,
                                           t->recompute_detail, t->inter_node_network)
                         : NULL;
}

/* All that is stated about the configuration; NULL: out of memory. Of a collective the source too,
 * which names the library: NCCL and an all-reduce of a serving engine differ by more. */
static char *key_of(const sm_truth_row *row, sm_arena *arena) {
    const sm_gemm_row *g = &row->of.gemm;
    const sm_attention_row *a = &row->of.attention;
    const sm_collective_row *c = &row->of.collective;
    const sm_memop_row *m = &row->of.memop;
    switch (row->kind) {
    case SM_TRUTH_GEMM:
        return sm_arena_printf(arena, "%s|%s|%g,%g,%g", row->chip, g->dtype, g->m, g->n, g->k);
    case SM_TRUTH_ATTENTION:
        return sm_arena_printf(arena, "%s|%s|%s|%g,%g,%g|%d,%d,%d", row->chip, a->phase, a->dtype,
                               a->batch, a->q_len, a->kv_len, a->n_heads, a->n_kv_heads, a->d_head);
    case SM_TRUTH_COLLECTIVE:
        return sm_arena_printf(arena, "%s|%s|%d,%d,%.15g|%s", row->chip, c->op, c->ranks, c->nodes,
                               c->bytes, row->source);
    case SM_TRUTH_MEMOP:
        return sm_arena_printf(arena, "%s|%s|%s|%g,%g,%.15g", row->chip, m->op, m->dtype, m->rows,
                               m->cols, m->bytes);
    case SM_TRUTH_TRAINING: return key_of_training(row, arena);
    case SM_TRUTH_INFERENCE:
    case SM_TRUTH_KIND_COUNT: break;
    }
    return sm_arena_copy(arena, "", 0);
}

static int by_key(const void *a, const void *b) {
    const twin *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->row->line > y->row->line) - (x->row->line < y->row->line);
}

/* twin[0..n) are of one configuration: the fastest and the slowest speak for it. */
static void suspect_group(truth_warnings *w, const twin *t, size_t n) {
    const sm_truth_row *fast = NULL, *slow = NULL;
    char slowest[24], fastest[24];
    for (size_t i = 0; i < n; i++) {
        const sm_truth_row *row = t[i].row;
        if (isnan(row->measured_s)) continue;
        if (!fast || row->measured_s < fast->measured_s) fast = row;
        if (!slow || row->measured_s > slow->measured_s) slow = row;
    }
    if (!fast || !(slow->measured_s > CONTRADICTORY * fast->measured_s)) return;
    truth_warn(w, slow, "%s here, but %s in line %d for the same configuration",
               sm_format_seconds(slowest, sizeof slowest, slow->measured_s),
               sm_format_seconds(fastest, sizeof fastest, fast->measured_s), fast->line);
}

static void suspect_id(truth_warnings *w, const twin *t, size_t n) {
    for (size_t i = 1; i < n; i++)
        truth_warn(w, t[i].row, "the id \"%.80s\" is also that of line %d", t[i].row->id,
                   t[0].row->line);
}

static void for_groups(truth_warnings *w, twin *t, size_t n,
                       void (*suspect)(truth_warnings *w, const twin *t, size_t n)) {
    qsort(t, n, sizeof *t, by_key);
    for (size_t start = 0, end; start < n; start = end) {
        for (end = start + 1; end < n && strcmp(t[start].key, t[end].key) == 0;) end++;
        if (end - start > 1) suspect(w, t + start, end - start);
    }
}

/* The key of each row, those of one configuration once. */
static void find_keys(truth_warnings *w, const sm_truth_row *row, twin *t, size_t n,
                      sm_texts *texts, sm_arena *kept) {
    for (size_t i = 0; i < n && !w->refused; i++) {
        sm_arena *arena = sm_arena_new();
        const char *key = arena ? key_of(&row[i], arena) : NULL;
        t[i] = (twin){key ? sm_texts_keep(texts, kept, key) : NULL, &row[i]};
        w->refused = !t[i].key;
        sm_arena_free(arena);
    }
}

void truth_suspect_twins(truth_warnings *w, const sm_truth_row *row, size_t n) {
    if (n == 0 || w->refused) return;
    twin *t = sm_calloc(n, sizeof *t);
    sm_arena *kept = sm_arena_new();
    sm_texts texts = {.n = 0};
    w->refused = !t || !kept;
    for (size_t i = 0; i < n && !w->refused; i++) t[i] = (twin){row[i].id, &row[i]};
    if (!w->refused) for_groups(w, t, n, suspect_id);
    if (row[0].kind != SM_TRUTH_INFERENCE) {
        find_keys(w, row, t, w->refused ? 0 : n, &texts, kept);
        if (!w->refused) for_groups(w, t, n, suspect_group);
    }
    sm_texts_free(&texts);
    sm_arena_free(kept);
    sm_free(t);
}

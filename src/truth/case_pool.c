/* Cases that rows share. What a case costs is its model, its system and the programs of its plan;
 * rows that differ only in what they are called and in what was measured have one. Rows are
 * compared as bytes: equal texts of a file have one address (truth_row.c). */
#include <string.h>

#include "truth_parts.h"

typedef struct entry {
    sm_truth_row *key; /* the case's own row, and what it is found by */
    sm_truth_case *c;
} entry;

struct sm_truth_cases {
    bool bounds;
    row_models *models;
    sm_arena *arena; /* keys */
    entry *entry;
    int n, room;
    sm_numbers places; /* of entries by the hash of their keys */
};

void sm_inference_figures(sm_inference_row *row, double *figure[SM_SERVED_FIGURES]) {
    double *const all[SM_SERVED_FIGURES] = {&row->ttft_s, &row->tpot_s, &row->latency_s,
                                            &row->tokens_per_s, &row->tokens_per_s_per_chip};
    memcpy(figure, all, sizeof all);
}

/* Rows that state different figures are not alike. */
static void unmeasure_served(sm_inference_row *row) {
    double *figure[SM_SERVED_FIGURES];
    sm_inference_figures(row, figure);
    for (int i = 0; i < SM_SERVED_FIGURES; i++) *figure[i] = *figure[i] > 0;
    row->mfu = row->total_tokens_per_s_per_chip = row->little_ratio = 0;
    row->date = row->notes = NULL;
}

void sm_truth_row_unmeasure(sm_truth_row *row) {
    row->id = NULL;
    row->line = row->alike = 0;
    row->measured_s = 0.0;
    if (row->kind == SM_TRUTH_INFERENCE) unmeasure_served(&row->of.inference);
    if (row->kind == SM_TRUTH_COLLECTIVE) row->of.collective.busbw_GBps = 0.0;
    if (row->kind != SM_TRUTH_TRAINING) return;
    sm_training_row *t = &row->of.training;
    t->tokens_per_s_per_chip = t->model_tflops_per_chip = t->hw_tflops_per_chip = 0.0;
    t->mfu = t->hfu = t->step_time_s = t->peak_memory_bytes = t->derived_step_time_s = 0.0;
    t->oom = false;
    t->flops_counted = NULL;
}

/* ---- the cases ---- */

sm_truth_cases *sm_truth_cases_new(bool bounds) {
    sm_truth_cases *p = sm_calloc(1, sizeof *p);
    if (!p) return NULL;
    p->bounds = bounds;
    p->models = row_models_new();
    p->arena = sm_arena_new();
    if (p->models && p->arena) return p;
    sm_truth_cases_free(p);
    return NULL;
}

void sm_truth_cases_free(sm_truth_cases *p) {
    if (!p) return;
    for (int i = 0; i < p->n; i++) sm_truth_case_free(p->entry[i].c);
    row_models_free(p->models);
    sm_arena_free(p->arena);
    sm_numbers_free(&p->places);
    sm_free(p);
}

sm_status sm_truth_cases_get(sm_truth_cases *p, const sm_truth_row *row, sm_truth_case **out,
                             sm_error *err) {
    sm_truth_row key;
    /* What a row of inference states is part of its bound. */
    bool alone = p->bounds && row->kind == SM_TRUTH_INFERENCE;
    *out = NULL;
    memcpy(&key, row, sizeof key);
    if (!alone) sm_truth_row_unmeasure(&key); /* without what does not bear on the prediction */
    int32_t *at;
    uint64_t hash = alone ? sm_hash_bytes(&p->n, sizeof p->n) : sm_hash_bytes(&key, sizeof key);
    for (; (at = sm_numbers_at(&p->places, hash)); hash++) {
        if (*at < 0) break;
        /* Byte for byte: rows apart in padding alone share nothing, and are predicted alike. */
        const void *known = p->entry[*at].key, *own = &key;
        if (alone || memcmp(known, own, sizeof key) != 0) continue;
        *out = p->entry[*at].c;
        return SM_OK;
    }
    entry *list = sm_arena_grow(p->arena, p->entry, p->n, &p->room, sizeof *list);
    sm_truth_row *kept = sm_arena_alloc(p->arena, sizeof *kept);
    if (!at || !list || !kept) return sm_fail_memory(err);
    p->entry = list;
    memcpy(kept, &key, sizeof *kept);
    sm_status status = truth_case_new(kept, p->models, p->bounds, out, err);
    if (status) return status;
    list[p->n] = (entry){kept, *out};
    *at = p->n++;
    return SM_OK;
}

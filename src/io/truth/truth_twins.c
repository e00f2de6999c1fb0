/* Rows that speak of one configuration: equal in the columns that data/formats/rows.json says make
 * one. Of a collective that is the source too, which names the library: NCCL and an all-reduce of a
 * serving engine differ by more. Sorted by a text of those facts they lie side by side. */
#include "truth_form.h"

#include <stdlib.h>

#define CONTRADICTORY 2.0 /* times; honest sources differ by a fifth */

typedef struct twin {
    const char *key;
    const sm_truth_row *row;
} twin;

SM_ORDER(by_key, twin, SM_BY_TEXT(key) SM_ASCENDING(row->line))

/* twin[0..n) are of one configuration: the fastest and the slowest speak for it. */
static void suspect_group(truth_warnings *w, const twin *t, size_t n) {
    const sm_truth_row *fast = NULL, *slow = NULL;
    for (size_t i = 0; i < n; i++) {
        const sm_truth_row *row = t[i].row;
        if (isnan(row->measured_s)) continue;
        if (!fast || row->measured_s < fast->measured_s) fast = row;
        if (!slow || row->measured_s > slow->measured_s) slow = row;
    }
    if (!fast || !(slow->measured_s > CONTRADICTORY * fast->measured_s)) return;
    truth_warn(w, slow, "%s here, but %s in line %d for the same configuration",
               sm_show_seconds(&w->r, slow->measured_s), sm_show_seconds(&w->r, fast->measured_s),
               fast->line);
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
    for (size_t i = 0; i < n && !w->r.out_of_memory; i++) {
        sm_arena *arena = sm_arena_new();
        char *key;
        size_t length;
        bool made = arena && !truth_row_line(&row[i], true, arena, &key, &length, NULL);
        t[i] = (twin){made ? sm_texts_keep(texts, kept, key) : NULL, &row[i]};
        w->r.out_of_memory = !t[i].key;
        sm_arena_free(arena);
    }
}

void truth_suspect_twins(truth_warnings *w, const sm_truth_row *row, size_t n) {
    if (n == 0 || w->r.out_of_memory) return;
    twin *t = sm_calloc(n, sizeof *t);
    sm_arena *kept = sm_arena_new();
    sm_texts texts = {.n = 0};
    w->r.out_of_memory = !t || !kept;
    for (size_t i = 0; i < n && !w->r.out_of_memory; i++) t[i] = (twin){row[i].id, &row[i]};
    if (!w->r.out_of_memory) for_groups(w, t, n, suspect_id);
    if (row[0].kind != SM_TRUTH_INFERENCE) {
        find_keys(w, row, t, w->r.out_of_memory ? 0 : n, &texts, kept);
        if (!w->r.out_of_memory) for_groups(w, t, n, suspect_group);
    }
    sm_texts_free(&texts);
    sm_arena_free(kept);
    sm_free(t);
}

/* Rows of one configuration that was measured again and again: at most SM_TRUTH_MOST_ALIKE are
 * kept. When there are as many they are put in the order of their times, and of two neighbours one
 * stands for both: what is kept are quantiles of what was measured. */
#include "truth_form.h"

#include <stdlib.h>

SM_ORDER(by_time, sm_truth_row, SM_ASCENDING(measured_s) SM_ASCENDING(line))

/* The mean of logarithms. */
static double between(double a, double x, double b, double y) {
    return exp((a * log(x) + b * log(y)) / (a + b));
}

/* All that a row of inference states is compared, and its first tokens say how long requests wait.
 */
static void fold_served(sm_inference_row *into, double a, const sm_inference_row *other, double b) {
    sm_inference_row from = *other;
    double *figure[SM_SERVED_FIGURES], *second[SM_SERVED_FIGURES];
    sm_inference_figures(into, figure);
    sm_inference_figures(&from, second);
    for (int i = 0; i < SM_SERVED_FIGURES; i++)
        if (*figure[i] > 0) *figure[i] = between(a, *figure[i], b, *second[i]);
}

/* Half of the rows stand for all of them. */
static void halve(truth_rows *rows, truth_group *g) {
    sm_truth_row sorted[SM_TRUTH_MOST_ALIKE];
    for (int i = 0; i < g->n; i++) sorted[i] = rows->row[g->place[i]];
    qsort(sorted, (size_t)g->n, sizeof *sorted, by_time);
    g->n /= 2;
    for (int i = 0; i < g->n; i++) {
        sm_truth_row *into = &sorted[2 * i];
        const sm_truth_row *other = &sorted[2 * i + 1];
        double a = 1.0 + into->alike, b = 1.0 + other->alike;
        into->measured_s = between(a, into->measured_s, b, other->measured_s);
        if (into->kind == SM_TRUTH_INFERENCE)
            fold_served(&into->of.inference, a, &other->of.inference, b);
        into->alike += 1 + other->alike;
        rows->row[g->place[i]] = sorted[2 * i];
        rows->row[g->place[g->n + i]].alike = FOLDED;
    }
}

/* The group of a row's configuration, of no rows where it is new. NULL: out of memory. */
static truth_group *group_of(const truth_file *f, truth_rows *rows, const sm_truth_row *row) {
    sm_truth_row key, other;
    int32_t *at;
    memcpy(&key, row, sizeof key);
    sm_truth_row_unmeasure(&key);
    for (uint64_t hash = sm_hash_bytes(&key, sizeof key);
         (at = sm_numbers_at(&rows->places, hash)) && *at >= 0; hash++) {
        memcpy(&other, &rows->row[rows->group[*at].first], sizeof other);
        sm_truth_row_unmeasure(&other);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): rows are copied as bytes */
        if (memcmp(&key, &other, sizeof key) == 0) return &rows->group[*at];
    }
    truth_group *list =
        sm_arena_grow(f->arena, rows->group, rows->groups, &rows->group_room, sizeof *list);
    if (!at || !list) return NULL;
    rows->group = list;
    *at = rows->groups++;
    list[*at] = (truth_group){.first = (uint32_t)rows->n};
    return &list[*at];
}

sm_status truth_fold(const truth_file *f, truth_rows *rows, const sm_truth_row *row, size_t *at,
                     const char **id) {
    truth_group *g = group_of(f, rows, row);
    *at = rows->n;
    if (!g) return sm_fail_memory(f->err);
    if (g->n == 1 && !g->place) {
        g->place = sm_arena_array(f->arena, SM_TRUTH_MOST_ALIKE, sizeof *g->place);
        if (!g->place) return sm_fail_memory(f->err);
        g->place[0] = g->first;
        for (int i = 1; i < SM_TRUTH_MOST_ALIKE; i++) g->place[i] = UINT32_MAX;
    }
    if (g->n == SM_TRUTH_MOST_ALIKE) halve(rows, g);
    if (g->place && g->place[g->n] != UINT32_MAX) {
        *at = g->place[g->n];
        *id = rows->row[g->first].id;
    } else if (g->place) g->place[g->n] = (uint32_t)rows->n;
    g->n++;
    return SM_OK;
}

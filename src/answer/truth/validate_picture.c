/* validate_picture: predicted against measured as a picture. */
#include "validated.h"
#include <stdlib.h>

enum { MOST_COLOURS = 9 };
static const char others[] = "other chips";

typedef struct chips {
    size_t n;
    sm_series *series; /* bound first, then chips by their rows */
    double *measured, *lower, *expected;
} chips;

SM_ORDER(by_size, sm_series,
         SM_BY_KEY(x->name == others, y->name == others) SM_DESCENDING(n) SM_BY_TEXT(name))

static sm_member *members_by_chip(const sm_validation *v) {
    sm_member *m = sm_arena_array(v->arena, v->compared + 1, sizeof *m);
    sm_series *size = sm_arena_array(v->arena, v->compared + 1, sizeof *size);
    if (!m || !size) return NULL;
    for (size_t i = 0; i < v->compared; i++)
        m[i] = (sm_member){v->row[v->index[i]].chip, v->index[i]};
    sm_members_sort(m, v->compared);
    /* Chips with few rows share a colour. */
    size_t n = 0;
    for (size_t i = 0, j; i < v->compared; i = j) {
        j = sm_members_run(m, v->compared, i);
        size[n++] = (sm_series){.name = m[i].key, .n = j - i};
    }
    qsort(size, n, sizeof *size, by_size);
    for (size_t i = 0; i < v->compared; i++)
        for (size_t k = MOST_COLOURS; k < n; k++)
            if (strcmp(m[i].key, size[k].name) == 0) m[i].key = others;
    sm_members_sort(m, v->compared);
    return m;
}

static const char *subtitle_of(sm_report *r, const sm_validation *v) {
    sm_error_stats s = sm_stats_of(v, v->index, v->compared);
    return sm_textf(r,
                    "%zu rows: |error| %s in the median, %s at the 90th percentile; dashed lines "
                    "10 %% off",
                    s.n, sm_show_percent(r, s.median), sm_show_percent(r, s.p90));
}

sm_status sm_validate_picture(sm_report *r, const sm_validation *v, sm_error *err) {
    sm_arena *arena = v->arena;
    size_t room = v->compared + 1;
    chips c = {.series = sm_arena_array(arena, room + 1, sizeof(sm_series)),
               .measured = sm_arena_array(arena, room, sizeof(double)),
               .lower = sm_arena_array(arena, room, sizeof(double)),
               .expected = sm_arena_array(arena, room, sizeof(double))};
    sm_member *m = members_by_chip(v);
    const char *subtitle = v->compared ? subtitle_of(r, v) : "no row to compare";
    if (!m || !c.series || !c.measured || !c.lower || !c.expected) return sm_fail_memory(err);
    for (size_t i = 0; i < v->compared; i++) {
        const sm_checked *row = &v->row[m[i].at];
        c.measured[i] = row->row->measured_s;
        c.lower[i] = row->p.lower_s;
        c.expected[i] = row->p.expected_s;
    }
    c.series[c.n++] =
        (sm_series){"lower bound", SM_MARK_DASH, v->compared, c.measured, c.lower, NULL};
    for (size_t i = 0, j; i < v->compared; i = j) {
        j = sm_members_run(m, v->compared, i);
        c.series[c.n++] =
            (sm_series){m[i].key, SM_MARK_DOT, j - i, c.measured + i, c.expected + i, NULL};
    }
    qsort(c.series + 1, c.n - 1, sizeof *c.series, by_size);
    const sm_panel panel = {.x_label = "measured",
                            .y_label = "expected",
                            .x_unit = "s",
                            .y_unit = "s",
                            .x_scale = SM_SCALE_LOG,
                            .y_scale = SM_SCALE_LOG,
                            .n = c.n,
                            .series = c.series,
                            .diagonal = true,
                            .band = 0.1};
    sm_report_chart(r, &(sm_chart){"Predicted against measured time", subtitle, 1, &panel});
    return SM_OK;
}

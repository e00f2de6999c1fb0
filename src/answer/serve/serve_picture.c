/* serve_picture: the frontier, where the time of a token goes, and the best plan over its batches,
 * as one chart. */
#include "serve_asked.h"
#include <string.h>

enum { PARTS = 5, PANELS = 3, COLUMNS = 3 + PARTS };
static const char *const part_names[PARTS] = {"weights", "KV cache", "compute", "network", "other"};

/* The columns of a chart, one value per point: batch, time per token, throughput, parts. */
typedef struct columns {
    size_t n;
    double *value[COLUMNS];
} columns;

static bool fill_columns(const sm_serve_asked *q, const sm_serve_point *point, size_t n,
                         columns *c) {
    double *all = sm_arena_array(q->arena, COLUMNS * (n + 1), sizeof *all);
    if (!all) return false;
    c->n = n;
    for (size_t k = 0; k < COLUMNS; k++) c->value[k] = all + k * (n + 1);
    for (size_t i = 0; i < n; i++) {
        const sm_serve_point *p = &point[i];
        const double row[COLUMNS] = {p->batch,
                                     p->tpot_s[1],
                                     sm_serve_throughput(q, p),
                                     p->decode.breakdown_s.weights,
                                     p->decode.breakdown_s.kv,
                                     p->decode.breakdown_s.compute,
                                     p->decode.breakdown_s.network,
                                     p->decode.breakdown_s.scans + p->decode.breakdown_s.other};
        for (size_t k = 0; k < COLUMNS; k++) c->value[k][i] = row[k];
    }
    return true;
}

/* The lower panels are of the best plan alone, so that their batches can be compared. */
sm_status sm_serve_picture(const sm_serving_found *a, sm_error *err) {
    const sm_serve_asked *q = a->q;
    columns front, best;
    char plan[256];
    sm_plan_format(&a->best->plan, q->in.system->torus_dims, plan, sizeof plan);
    struct picture {
        sm_chart chart;
        sm_panel panel[PANELS];
        sm_series frontier, part[PARTS], rate;
    } *p = sm_arena_alloc(q->arena, sizeof *p);
    if (!p || !fill_columns(q, a->result->point, a->result->n, &front) ||
        !fill_columns(q, a->batch, (size_t)a->batches, &best))
        return sm_fail_memory(err);
    p->frontier =
        (sm_series){"frontier", SM_MARK_LINE_DOTS, front.n, front.value[1], front.value[2], NULL};
    for (size_t i = 0; i < PARTS; i++)
        p->part[i] = (sm_series){part_names[i], SM_MARK_LINE,      best.n,
                                 best.value[0], best.value[3 + i], NULL};
    p->rate =
        (sm_series){"tokens/s/chip", SM_MARK_LINE, best.n, best.value[0], best.value[2], NULL};
    const sm_panel panel[PANELS] = {
        {"Frontier", "time per token", "tokens/s per chip", "s", "", SM_SCALE_LOG, SM_SCALE_LOG,
         false, 1, &p->frontier, false, 0.0, NULL},
        {"Time per token of the best plan", "batch", "time per token", "", "s", SM_SCALE_LOG,
         SM_SCALE_LINEAR, true, PARTS, p->part, false, 0.0, NULL},
        {"Throughput of the best plan", "batch", "tokens/s per chip", "", "", SM_SCALE_LOG,
         SM_SCALE_LINEAR, false, 1, &p->rate, false, 0.0, NULL}};
    memcpy(p->panel, panel, sizeof panel);
    p->chart = (sm_chart){sm_textf(q->report, "%s on %s", q->in.model->name, q->in.system->text),
                          sm_textf(q->report, "best plan: %s", plan), PANELS, p->panel};
    q->report->chart = &p->chart;
    return SM_OK;
}

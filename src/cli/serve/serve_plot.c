/* serve_plot: the frontier, where the time of a token goes, and the best plan over its batches, as
 * one picture. */
#include "picture.h"
#include "serve.h"
#include <stdlib.h>

enum { PARTS = 5, PANELS = 3 };
static const char *const part_names[PARTS] = {"weights", "KV cache", "compute", "network", "other"};

/* The columns of a chart, one value per point. */
typedef struct columns {
    size_t n;
    double *batch, *tpot, *throughput;
    double *part[PARTS];
} columns;

static bool make_columns(sm_arena *arena, size_t n, columns *c) {
    double *all = sm_arena_array(arena, (3 + PARTS) * (n + 1), sizeof *all);
    if (!all) return false;
    *c = (columns){.n = n, .batch = all, .tpot = all + (n + 1), .throughput = all + 2 * (n + 1)};
    for (size_t i = 0; i < PARTS; i++) c->part[i] = all + (3 + i) * (n + 1);
    return true;
}

static void fill_columns(const cli_serving *q, const sm_serve_point *point, columns *c) {
    for (size_t i = 0; i < c->n; i++) {
        const sm_serve_point *p = &point[i];
        c->batch[i] = p->batch;
        c->tpot[i] = p->tpot_s[1];
        c->throughput[i] = cli_serve_throughput(q, p);
        c->part[0][i] = p->decode.breakdown_s.weights;
        c->part[1][i] = p->decode.breakdown_s.kv;
        c->part[2][i] = p->decode.breakdown_s.compute;
        c->part[3][i] = p->decode.breakdown_s.network;
        c->part[4][i] = p->decode.breakdown_s.other;
    }
}

static sm_status draw_panels(const cli_served *a, const columns *front, const columns *sweep,
                             const char *subtitle, sm_error *err) {
    sm_series speed[] = {{"frontier", true, front->n, front->tpot, front->throughput}};
    sm_series parts[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = (sm_series){part_names[i], false, sweep->n, sweep->batch, sweep->part[i]};
    sm_series rate[] = {{"tokens/s/chip", true, sweep->n, sweep->batch, sweep->throughput}};
    sm_panel panel[PANELS] = {{"Frontier", "time per token", "tokens/s per chip", "s", "",
                               SM_SCALE_LOG, SM_SCALE_LOG, false, 1, speed},
                              {"Time per token of the best plan", "batch", "time per token", "",
                               "s", SM_SCALE_LOG, SM_SCALE_LINEAR, true, PARTS, parts},
                              {"Throughput of the best plan", "batch", "tokens/s per chip", "", "",
                               SM_SCALE_LOG, SM_SCALE_LINEAR, false, 1, rate}};
    const char *title =
        sm_arena_printf(a->q->call->arena, "%s on %s", a->q->model.name, a->q->system.text);
    if (!title) return sm_fail_memory(err);
    sm_chart chart = {title, subtitle, PANELS, panel};
    return cli_write_chart(&chart, a->q->plot, err);
}

/* The lower panels are of the best plan alone, so that their batches can be compared. */
sm_status cli_serve_plot(const cli_served *a, sm_error *err) {
    sm_arena *arena = a->q->call->arena;
    columns front, sweep;
    char plan[256];
    sm_plan_format(&a->best->plan, a->q->system.torus_dims, plan, sizeof plan);
    const char *subtitle = sm_arena_printf(arena, "best plan: %s", plan);
    if (!subtitle || !make_columns(arena, a->result->n, &front) ||
        !make_columns(arena, (size_t)a->sweeps, &sweep))
        return sm_fail_memory(err);
    fill_columns(a->q, a->result->point, &front);
    fill_columns(a->q, a->sweep, &sweep);
    return draw_panels(a, &front, &sweep, subtitle, err);
}

/* serve: the frontier of latency, throughput and cost at which a model can be served, or one point
 * of it. */
#include "serve.h"
#include "scalemodel/page.h"
#include "verbs.h"
#include <string.h>

/* ---- one point ---- */

/* The job on as many chips as a replica has, as the search prices it. */
static sm_status open_slice(cli_serving *q, int chips, sm_serve **serve, sm_error *err) {
    if (chips == q->system.chips || sm_system_resize(&q->system, chips, &q->slice, NULL) != SM_OK)
        q->slice = q->system;
    sm_serve_job job = q->job;
    job.system = &q->slice;
    sm_status status = sm_serve_new(&job, serve, err);
    if (status) return cli_serving_blame(q, status, err);
    if (q->calibration) sm_serve_set_calibration(*serve, q->calibration);
    q->used = sm_serve_calibration(*serve);
    return SM_OK;
}

static sm_status price_one(const cli_serving *q, sm_serve *serve, cli_served *a, sm_error *err) {
    sm_arena *arena = q->call->arena;
    sm_serve_detail *detail = sm_arena_alloc(arena, sizeof *detail);
    sm_serve_result *result = sm_arena_alloc(arena, sizeof *result);
    if (!detail || !result) return sm_fail_memory(err);
    sm_status status =
        sm_serve_detail_of(serve, &q->search.fixed, q->search.batch, arena, detail, err);
    if (status) return cli_serving_blame(q, status, err);
    *result = (sm_serve_result){.n = 1, .point = &detail->point, .space = 1, .evaluated = 1};
    a->detail = detail;
    a->best = &detail->point;
    a->result = result;
    return SM_OK;
}

/* ---- the frontier ---- */

/* The cheapest point; without a price that of the most tokens per chip. */
static void choose(cli_serving *q, cli_served *a) {
    double most = -1.0;
    for (size_t i = 0; i < a->result->n; i++) {
        double now = cli_serve_throughput(q, &a->result->point[i]);
        if (now <= most) continue;
        most = now;
        a->best = &a->result->point[i];
        q->job.dtypes = *cli_serve_dtypes(a, i);
    }
}

static sm_status detail_best(const cli_serving *q, sm_serve *serve, cli_served *a, sm_error *err) {
    sm_serve_detail *detail = sm_arena_alloc(q->call->arena, sizeof *detail);
    if (!detail) return sm_fail_memory(err);
    a->detail = detail;
    return sm_serve_detail_of(serve, &a->best->plan, a->best->batch, q->call->arena, detail, err);
}

static sm_status find_pools(const cli_serving *q, cli_served *a, sm_error *err) {
    if (!q->disaggregated || a->reason) return SM_OK;
    sm_disaggregated *pools = sm_arena_alloc(q->call->arena, sizeof *pools);
    if (!pools) return sm_fail_memory(err);
    a->pools = pools;
    return sm_serve_disaggregate(&q->job, q->calibration, &q->search, pools, err);
}

static sm_status find_fleet(const cli_serving *q, cli_served *a, sm_error *err) {
    if (q->requests_per_s <= 0.0 || a->reason) return SM_OK;
    sm_fleet *fleet = sm_arena_alloc(q->call->arena, sizeof *fleet);
    if (!fleet) return sm_fail_memory(err);
    a->fleet = fleet;
    return sm_serve_fleet(&q->job, q->calibration, &q->search, q->requests_per_s, fleet, err);
}

/* ---- the verb ---- */

/* One point may miss limits that the search would have kept to. */
static sm_status check_limits(const cli_serving *q, cli_served *a, sm_error *err) {
    const sm_serve_point *p = a->best;
    if (!p) return SM_OK;
    const struct {
        const char *what;
        double limit_s, time_s;
    } check[2] = {{"a token takes", q->search.tpot_s, p->tpot_s[1]},
                  {"the first token takes", q->search.ttft_s, p->ttft_s[1]}};
    for (int i = 0; i < 2 && !a->reason; i++) {
        char limit[32], time[32];
        if (check[i].limit_s <= 0.0 || check[i].time_s <= check[i].limit_s) continue;
        sm_format_seconds(limit, sizeof limit, check[i].limit_s);
        sm_format_seconds(time, sizeof time, check[i].time_s);
        a->reason = sm_arena_printf(q->call->arena, "%s %s, %.2g times the limit of %s",
                                    check[i].what, time, check[i].time_s / check[i].limit_s, limit);
        if (!a->reason) return sm_fail_memory(err);
    }
    return SM_OK;
}

static sm_status find_point(cli_serving *q, sm_serve **serve, cli_served *a, sm_error *err) {
    if (q->one) {
        sm_status status = open_slice(q, sm_plan_chips(&q->search.fixed), serve, err);
        if (!status) status = price_one(q, *serve, a, err);
        return status ? status : check_limits(q, a, err);
    }
    sm_status status = cli_serve_frontier(q, a, err);
    if (!status) choose(q, a);
    if (status || !a->best) return status;
    status = open_slice(q, a->best->chips, serve, err);
    return status ? status : detail_best(q, *serve, a, err);
}

static sm_status answer(cli_serving *q, sm_serve **serve, sm_report *r, sm_error *err) {
    cli_served a = {.q = q};
    sm_status status = find_point(q, serve, &a, err);
    if (!status) status = find_pools(q, &a, err);
    if (!status) status = find_fleet(q, &a, err);
    if (!status && a.best) status = cli_serve_fill(*serve, &a, err);
    if (!status && a.best && (q->one || q->plot)) status = cli_serve_sweep(*serve, &a, err);
    if (status) return status;
    cli_serve_fields(r, &a);
    cli_serve_page(r, &a);
    if (q->call->common.explain && a.detail) r->why = a.detail->why;
    if (q->plot && a.best) status = cli_serve_plot(&a, err);
    if (status) return status;
    return a.best && a.best->fits && !a.reason ? SM_OK : SM_NEGATIVE;
}

static sm_status run_serve(const cli_call *call, sm_report *r, sm_error *err) {
    cli_serving *q = sm_arena_alloc(call->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    sm_status status = cli_serving_read(call, q, err);
    if (status) return status;
    sm_put_text(r, r->data, "command", "serve");
    sm_serve *serve = NULL;
    status = answer(q, &serve, r, err);
    sm_serve_free(serve);
    return status;
}

const cli_verb cli_serve = {
    .name = "serve",
    .summary = "latency, throughput, memory and cost of serving a model",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = cli_serve_options,
    .values_bytes = sizeof(cli_serve_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes =
        "example: scalemodel serve llama-3.1-70b --on tpu-v5e:4x4 --weights int8 --kv int8 \\\n"
        "           --prompt 8192 --output 512 --tpot 30ms\n",
    .run = run_serve,
};

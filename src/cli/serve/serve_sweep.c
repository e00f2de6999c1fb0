/* serve_sweep: the best plan at other batches: where decode turns from weights to cache to compute,
 * and how many sequences it takes within the limit per token. */
#include "scalemodel/page.h"
#include "serve.h"
#include <math.h>

static void add_batch(double *batch, int *n, double value) {
    if (*n < CLI_MAX_SWEEP && value >= 1.0 && (*n == 0 || value > batch[*n - 1]))
        batch[(*n)++] = value;
}

/* Powers of two, the batch itself and what fills the memory, in order. */
static int batches_of(const sm_serve_point *p, double *batch) {
    int n = 0;
    double most = fmax(p->fits ? floor(p->most_batch) : 0.0, p->batch);
    for (double b = 1.0; b < most && n < CLI_MAX_SWEEP - 2; b *= 2.0) {
        if (p->batch < b) add_batch(batch, &n, p->batch);
        add_batch(batch, &n, b);
    }
    add_batch(batch, &n, p->batch);
    add_batch(batch, &n, most);
    return n;
}

/* A batch at which the plan is impossible (a pipeline wants a sequence for each stage), or which is
 * beyond the one asked for and does not fit, is left out. */
static sm_status add_point(sm_serve *serve, cli_served *a, double batch, sm_error *err) {
    sm_serve_point *p = &a->sweep[a->sweeps];
    sm_error refused = {.status = SM_OK};
    sm_status status = sm_serve_point_of(serve, &a->best->plan, batch, p, &refused);
    if (status == SM_OK && !p->fits && batch > a->best->batch)
        status = sm_serve_point_of(serve, &a->best->plan, floor(p->most_batch), p, &refused);
    if (status == SM_OK && (p->fits || p->batch <= a->best->batch)) a->sweeps++;
    if (status == SM_OK || status == SM_BAD_INPUT || status == SM_NEGATIVE) return SM_OK;
    *err = refused;
    return status;
}

sm_status cli_serve_sweep(sm_serve *serve, cli_served *a, sm_error *err) {
    double batch[CLI_MAX_SWEEP];
    a->sweep = sm_arena_array(a->q->call->arena, CLI_MAX_SWEEP, sizeof *a->sweep);
    if (!a->sweep) return sm_fail_memory(err);
    int n = batches_of(a->best, batch);
    sm_status status = SM_OK;
    for (int i = 0; i < n && !status; i++) status = add_point(serve, a, batch[i], err);
    return status;
}

void cli_serve_sweep_page(sm_report *r, const cli_served *a) {
    sm_table *t =
        sm_page_table(r, "This plan at other batches",
                      ">batch|>token|>bound|>weights|>KV|>compute|>network|>other|>tok/s/chip");
    for (int i = 0; i < a->sweeps; i++) {
        const sm_serve_point *p = &a->sweep[i];
        sm_page_row(r, t, sm_show_exact(r, p->batch), sm_show_seconds(r, p->tpot_s[1]),
                    sm_show_seconds(r, p->tpot_s[0]),
                    sm_show_seconds(r, p->decode.breakdown_s.weights),
                    sm_show_seconds(r, p->decode.breakdown_s.kv),
                    sm_show_seconds(r, p->decode.breakdown_s.compute),
                    sm_show_seconds(r, p->decode.breakdown_s.network),
                    sm_show_seconds(r, p->decode.breakdown_s.other),
                    sm_show_number(r, p->tokens_per_s_per_chip));
    }
    sm_report_table(r, t);
}

void cli_serve_sweep_fields(sm_report *r, sm_data *object, const cli_served *a) {
    sm_data *list = sm_put_array(r, object, "batch_sweep");
    for (int i = 0; i < a->sweeps; i++) {
        const sm_serve_point *p = &a->sweep[i];
        sm_data *item = sm_put_object(r, list, NULL);
        sm_put(r, item, "batch", p->batch);
        sm_put_bool(r, item, "fits", p->fits);
        sm_data *time = sm_put_object(r, item, "tpot_s");
        sm_put(r, time, "lower", p->tpot_s[0]);
        sm_put(r, time, "expected", p->tpot_s[1]);
        sm_put(r, item, "tokens_per_s_per_chip", p->tokens_per_s_per_chip);
        sm_put_text(r, item, "bound", sm_serve_bound_name(p->decode.bound));
    }
}

/* ---- the largest batch within the limit per token ---- */

static bool is_within(sm_serve *serve, const cli_served *a, double batch, sm_serve_point *point) {
    sm_error refused = {.status = SM_OK};
    const cli_serving *q = a->q;
    if (sm_serve_point_of(serve, &a->best->plan, batch, point, &refused) != SM_OK) return false;
    return point->fits && point->tpot_s[q->search.by_lower ? 0 : 1] <= q->search.tpot_s;
}

/* The search takes powers of two; between the best one and the next the limit is bisected. */
sm_status cli_serve_fill(sm_serve *serve, cli_served *a, sm_error *err) {
    const cli_serving *q = a->q;
    if (q->one || q->search.tpot_s <= 0.0 || q->search.batch > 0.0) return SM_OK;
    sm_serve_point *fullest = sm_arena_alloc(q->call->arena, sizeof *fullest), point;
    if (!fullest) return sm_fail_memory(err);
    double low = a->best->batch, high = floor(a->best->most_batch) + 1.0;
    while (high - low > 1.0) {
        double middle = floor((low + high) / 2.0);
        if (is_within(serve, a, middle, &point)) {
            *fullest = point;
            low = middle;
        } else high = middle;
    }
    bool more =
        low > a->best->batch && cli_serve_throughput(q, fullest) > cli_serve_throughput(q, a->best);
    if (more) a->fullest = fullest;
    return SM_OK;
}

void cli_serve_fill_page(sm_report *r, const cli_served *a) {
    if (!a->fullest) return;
    sm_report_text(r, "Up to a batch of %s stays within %s a token: %s tokens/s per chip.",
                   sm_show_exact(r, a->fullest->batch), sm_show_seconds(r, a->q->search.tpot_s),
                   sm_show_number(r, cli_serve_throughput(a->q, a->fullest)));
}

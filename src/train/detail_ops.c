/* The ops of a plan's busiest stage, each with its share of the price. */
#include <stdio.h>
#include <string.h>

#include "detail.h"

typedef struct rows {
    const sm_train *t;
    const sm_plan *plan;
    const pieces *p;
    sm_plan_detail *out;
} rows;

/* The row of an op in a phase: layers of other kinds have it too. */
static sm_plan_op *row_of(rows *r, const char *op, sm_op_kind kind, sm_phase phase, bool again) {
    sm_plan_op *row = r->out->op;
    int i = 0;
    while (i < r->out->ops && !(strcmp(row[i].op, op) == 0 && row[i].kind == kind &&
                                row[i].phase == phase && row[i].again == again))
        i++;
    if (i == r->out->ops) {
        row[i] = (sm_plan_op){.kind = kind, .phase = phase, .again = again};
        snprintf(row[i].op, sizeof row[i].op, "%s", op);
        r->out->ops++;
    }
    return &row[i];
}

static double add_work(rows *r, const sm_work *w, bool again, double times) {
    priced c = piece_work_price(r->t, r->p->v, w, &r->p->d, r->plan->dtype);
    sm_plan_op *row = row_of(r, w->name, w->kind, w->phase, again);
    row->count += times;
    row->time_s += c.expected * times;
    row->memory_s += c.memory_bound ? c.expected * times : 0;
    row->flops += c.flops * times;
    row->bytes += c.bytes * times;
    return c.expected;
}

/* Where a pass waits for the host, it takes longer than its ops. */
static void add_launches(rows *r, double pass_s, double ops_s, double times) {
    double more_s = pass_s - ops_s;
    if (!(more_s > 1e-12 * pass_s)) return; /* sums of the same terms in another order */
    sm_plan_op *row = row_of(r, "launches", SM_OP_VECTOR, SM_PHASE_FORWARD, false);
    row->count += times;
    row->time_s += more_s * times;
}

static void add_piece(rows *r, int index, int set, double times) {
    const piece *one = &r->p->v->piece[index];
    const piece_time *time = &r->p->time[index];
    double ops_s[SM_PHASE_COUNT] = {0}, again_s = 0;
    for (int i = 0; i < one->part.works; i++) {
        const sm_work *w = &one->part.work[i];
        ops_s[w->phase] += add_work(r, w, false, times);
        if (w->phase == SM_PHASE_FORWARD && (one->set[set].again >> w->op & 1))
            again_s += add_work(r, w, true, times);
    }
    add_launches(r, time->forward, ops_s[SM_PHASE_FORWARD], times);
    add_launches(r, time->backward_input, ops_s[SM_PHASE_BACKWARD_INPUT], times);
    add_launches(r, time->backward_weight, ops_s[SM_PHASE_BACKWARD_WEIGHT], times);
    add_launches(r, time->again[set], again_s, times);
}

static size_t most_rows(const variant *v) {
    size_t n = 1;
    for (int i = 0; i < v->pieces; i++) n += 2 * (size_t)v->piece[i].part.works;
    return n;
}

bool list_ops(const sm_train *t, const sm_plan *plan, const pieces *p, const stages *s,
              sm_arena *arena, sm_plan_detail *detail) {
    rows r = {t, plan, p, detail};
    double microbatches = microbatches_of(t, plan);
    detail->ops = 0;
    detail->op = sm_arena_array(arena, most_rows(p->v), sizeof *detail->op);
    if (!detail->op) return false;
    for (int i = 0; i < p->v->pieces; i++) {
        double n = stage_holds(t, plan, s, detail->stage, i);
        int set = i < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
        if (n > 0) add_piece(&r, i, set, n * microbatches);
    }
    return true;
}

sm_bound sm_plan_op_bound(const sm_plan_op *op) {
    if (!(op->bytes > 0)) return SM_BOUND_LATENCY;
    return op->memory_s > op->time_s / 2 ? SM_BOUND_MEMORY : SM_BOUND_COMPUTE;
}

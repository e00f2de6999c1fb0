/* The ops of a plan's busiest stage, each with its share of the price. */

#include "detail.h"

typedef struct rows {
    const sm_train *t;
    const sm_plan *plan;
    const pieces *p;
    sm_plan_detail *out;
} rows;

/* The row of an op in a phase. */
static sm_plan_op *row_of(rows *r, const sm_plan_op *like) {
    sm_plan_op *row = r->out->lines.op;
    int *n = &r->out->lines.ops, i = 0;
    while (i < *n && !(strcmp(row[i].op, like->op) == 0 && row[i].piece == like->piece &&
                       row[i].kind == like->kind && row[i].phase == like->phase &&
                       row[i].again == like->again))
        i++;
    if (i == *n) row[(*n)++] = *like;
    return &row[i];
}

static double add_work(rows *r, int index, const sm_work *w, bool again, double times) {
    priced c = piece_work_price(r->t, r->p->v, w, &r->p->d, r->plan->dtype);
    sm_plan_op like = {.kind = w->kind,
                       .phase = w->phase,
                       .again = again,
                       .piece = index,
                       .line = r->p->v->piece[index].part.program.op[w->op].line};
    snprintf(like.op, sizeof like.op, "%s", w->name);
    sm_plan_op *row = row_of(r, &like);
    row->count += times;
    row->time_s += c.expected * times;
    row->memory_s += c.memory_bound ? c.expected * times : 0;
    row->flops += c.flops * times;
    row->bytes += c.bytes * times;
    return c.expected;
}

/* Where a pass waits for the host, it takes longer than its ops. */
static void add_launches(rows *r, sm_phase phase, bool again, double pass_s, double ops_s,
                         double times) {
    double more_s = pass_s - ops_s;
    if (!(more_s > 1e-12 * pass_s)) return; /* sums of the same terms in another order */
    sm_plan_op *row = row_of(r, &(sm_plan_op){.op = "launches",
                                              .kind = SM_OP_VECTOR,
                                              .phase = phase,
                                              .again = again,
                                              .piece = -1,
                                              .line = -1});
    row->count += times;
    row->time_s += more_s * times;
}

static void add_piece(rows *r, int index, int set, double times) {
    const piece *one = &r->p->v->piece[index];
    const piece_time *time = &r->p->time[index];
    double ops_s[SM_PHASE_COUNT] = {0}, again_s = 0;
    for (int i = 0; i < one->part.works; i++) {
        const sm_work *w = &one->part.work[i];
        ops_s[w->phase] += add_work(r, index, w, false, times);
        if (w->phase == SM_PHASE_FORWARD && (piece_again(r->t, one, set) >> w->op & 1))
            again_s += add_work(r, index, w, true, times);
    }
    const double pass_s[] = {time->forward, time->backward_input, time->backward_weight};
    for (int i = 0; i < SM_PHASE_COUNT; i++)
        add_launches(r, (sm_phase)i, false, pass_s[i], ops_s[i], times);
    add_launches(r, SM_PHASE_FORWARD, true, time->again[set], again_s, times);
}

static size_t most_rows(const variant *v) {
    size_t n = SM_PHASE_COUNT + 1; /* launches of each pass */
    for (int i = 0; i < v->pieces; i++) n += 2 * (size_t)v->piece[i].part.works;
    return n;
}

bool list_ops(const sm_train *t, const sm_plan *plan, const pieces *p, const stages *s,
              sm_arena *arena, sm_plan_detail *detail) {
    rows r = {t, plan, p, detail};
    double microbatches = microbatches_of(t, plan);
    sm_plan_lines *lines = &detail->lines;
    lines->ops = 0;
    lines->pieces = p->v->pieces;
    lines->degrees = p->d;
    lines->op = sm_arena_array(arena, most_rows(p->v), sizeof *lines->op);
    lines->piece = sm_arena_array(arena, (size_t)p->v->pieces, sizeof *lines->piece);
    if (!lines->op || !lines->piece) return false;
    for (int i = 0; i < p->v->pieces; i++) {
        double n = stage_holds(t, plan, s, detail->stage, i);
        lines->piece[i] = (sm_plan_piece){&p->v->piece[i].part.program, t->model.lines_of[i], n};
        int set = i < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
        if (n > 0) add_piece(&r, i, set, n * microbatches);
    }
    return true;
}

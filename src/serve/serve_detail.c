/* Everything a person may ask of one point: its collectives, where it turns, why, what would help.
 */

#include "serve_space.h"

/* ---- a step, line by line ---- */

typedef struct list {
    const step *x;
    sm_plan_lines *to;
} list;

static void add_collective(list *l, const sm_plan_collective *c, const comm_price *p,
                           double exposed_s) {
    for (int i = 0; i < l->to->collectives; i++) {
        sm_plan_collective *to = &l->to->collective[i];
        if (to->op != c->op || to->piece != c->piece || to->line != c->line ||
            strcmp(to->array, c->array) != 0 || strcmp(to->axis, c->axis) != 0 ||
            fabs(to->bytes - p->bytes) > 1e-9 * p->bytes)
            continue;
        to->count += c->count;
        to->time_s += c->count * p->expected;
        to->exposed_s += exposed_s;
        return;
    }
    sm_plan_collective *to = &l->to->collective[l->to->collectives++];
    *to = *c;
    to->bytes = p->bytes;
    to->time_s = c->count * p->expected;
    to->exposed_s = exposed_s;
    to->algorithm = p->algorithm;
    to->level = p->level;
    snprintf(to->phase, sizeof to->phase, "forward");
}

static void list_comms(list *l, int index) {
    const sm_partition *part = &l->x->v->piece[index].part;
    double shows[SM_STREAM_RING + 1], passes = piece_passes(l->x, index, true);
    piece_shows(l->x, index, shows);
    for (int i = 0; i < part->comms; i++) {
        const sm_comm *c = &part->comm[i];
        comm_price p = comm_price_of(l->x, index, c);
        if (p.expected <= 0) continue;
        sm_plan_collective row = {.op = c->op,
                                  .axes = c->axes,
                                  .piece = index,
                                  .arrays = c->arrays,
                                  .line = part->program.op[c->forward_op].line,
                                  .weight = c->role == SM_ROLE_WEIGHT,
                                  .count = piece_passes(l->x, index, false)};
        snprintf(row.array, sizeof row.array, "%s", c->array);
        sm_plan_axes_text(c->axes, &l->x->d, row.axis, sizeof row.axis);
        add_collective(l, &row, &p, passes * p.expected * shows[c->stream]);
    }
}

static void list_sends(list *l) {
    double times = l->x->plan->pipeline - 1;
    if (times <= 0) return;
    comm_price p = send_price(l->x);
    sm_plan_collective row = {.op = SM_PERMUTE, .piece = -1, .line = -1, .count = times};
    snprintf(row.array, sizeof row.array, "x");
    snprintf(row.axis, sizeof row.axis, "pipeline");
    add_collective(l, &row, &p, times * p.expected);
}

static void list_ops(list *l, int index) {
    const piece *p = &l->x->v->piece[index];
    double passes = piece_passes(l->x, index, true);
    for (int i = 0; i < p->ops; i++) {
        const sm_work *w = &p->part.work[p->op[i].first];
        op_price price = op_price_of(l->x, index, &p->op[i]);
        sm_plan_op *row = &l->to->op[l->to->ops++];
        *row = (sm_plan_op){.kind = w->kind,
                            .phase = SM_PHASE_FORWARD,
                            .piece = index,
                            .line = p->part.program.op[w->op].line,
                            .joined = p->op[i].n - 1,
                            .count = passes,
                            .time_s = passes * price.expected,
                            .memory_s = price.memory_bound ? passes * price.expected : 0,
                            .launch_s = passes * price.launch,
                            .flops = passes * price.flops,
                            .bytes = passes * price.bytes};
        snprintf(row->op, sizeof row->op, "%s", w->name);
    }
}

/* Launched one by one, kernels may wait for the host. */
static void list_launches(list *l) {
    sm_step_price price;
    double listed_s = l->x->s->calibration->step_overhead_s + step_host_s(l->x);
    step_price(l->x, &price);
    for (int i = 0; i < l->to->ops; i++) listed_s += l->to->op[i].time_s;
    for (int i = 0; i < l->to->collectives; i++) listed_s += l->to->collective[i].exposed_s;
    if (!l->x->s->job.eager || !(price.expected_s > listed_s * (1 + 1e-12))) return;
    l->to->op[l->to->ops++] = (sm_plan_op){.op = "launches",
                                           .kind = SM_OP_VECTOR,
                                           .piece = -1,
                                           .line = -1,
                                           .count = 1,
                                           .time_s = price.expected_s - listed_s,
                                           .launch_s = price.expected_s - listed_s};
}

static sm_status list_step(const step *x, sm_arena *arena, sm_plan_lines *to, sm_error *err) {
    size_t comms = 1, ops = 1;
    list l = {x, to};
    for (int i = 0; i < x->v->pieces; i++) {
        comms += (size_t)x->v->piece[i].part.comms;
        ops += (size_t)x->v->piece[i].ops;
    }
    to->pieces = x->v->pieces;
    to->degrees = x->d;
    to->piece = sm_arena_array(arena, (size_t)to->pieces, sizeof *to->piece);
    to->op = sm_arena_array(arena, ops, sizeof *to->op);
    to->collective = sm_arena_array(arena, comms, sizeof *to->collective);
    if (!to->piece || !to->op || !to->collective) return sm_fail_memory(err);
    for (int i = 0; i < x->v->pieces; i++) {
        double passes = step_has(x, i) ? piece_passes(x, i, true) : 0;
        to->piece[i] =
            (sm_plan_piece){&x->v->piece[i].part.program, x->s->model.lines_of[i], passes};
        if (passes <= 0) continue;
        list_comms(&l, i);
        list_ops(&l, i);
    }
    list_sends(&l);
    list_launches(&l);
    return SM_OK;
}

/* ---- where it turns ---- */

/* Seconds of the bound for a batch at a context: of the cache, the matmuls, the weights. */
typedef struct balance {
    double kv, compute, weights;
} balance;

static sm_status weigh(sm_serve *s, const sm_plan *plan, double batch, double context, balance *out,
                       sm_error *err) {
    step x;
    piece_price t;
    sm_step_batch b = point_batch(larger(1, batch / plan->pipeline), 1, context);
    sm_status status = step_prepare(s, plan, &b, &x, err);
    if (status != SM_OK) return status;
    step_totals(&x, &t);
    out->kv = t.kv_bytes / s->system.chip.memory_bytes_per_s.value;
    out->weights = t.weight_bytes / s->system.chip.memory_bytes_per_s.value;
    out->compute = t.linear_flops / sm_chip_peak(&s->system.chip, s->job.dtypes.compute, NULL);
    return SM_OK;
}

typedef enum turn { TURN_CONTEXT, TURN_KV, TURN_COMPUTE } turn;

static sm_status turned(sm_serve *s, const sm_plan *plan, turn which, double batch, double at,
                        bool *yes, sm_error *err) {
    balance b = {0};
    sm_status status = which == TURN_CONTEXT ? weigh(s, plan, batch, at, &b, err)
                                             : weigh(s, plan, at, point_context(s), &b, err);
    *yes = (which == TURN_COMPUTE ? b.compute : b.kv) >= b.weights;
    return status;
}

/* The least batch or context from which on the first part is the longer: it only grows, relative to
 * the weights. 0 when it never is, up to 1e9. */
static sm_status find_turn(sm_serve *s, const sm_plan *plan, turn which, double batch, double *at,
                           sm_error *err) {
    double low = 1, high = 1e9;
    bool yes = false;
    *at = 0;
    sm_status status = turned(s, plan, which, batch, high, &yes, err);
    if (status != SM_OK || !yes) return status;
    status = turned(s, plan, which, batch, low, &yes, err);
    if (yes) high = low;
    while (status == SM_OK && high > low * 1.0001) {
        double middle = sqrt(low * high);
        status = turned(s, plan, which, batch, middle, &yes, err);
        if (yes) high = middle;
        else low = middle;
    }
    *at = high;
    return status;
}

static sm_status detail_turns(sm_serve *s, const sm_plan *plan, double batch, sm_serve_detail *d,
                              sm_error *err) {
    sm_status status = find_turn(s, plan, TURN_CONTEXT, batch, &d->turn_kv_context, err);
    if (status == SM_OK) status = find_turn(s, plan, TURN_KV, batch, &d->turn_kv_batch, err);
    if (status == SM_OK)
        status = find_turn(s, plan, TURN_COMPUTE, batch, &d->turn_compute_batch, err);
    return status;
}

/* ---- the whole ---- */

sm_status sm_serve_detail_of(sm_serve *serve, const sm_serve_point *point, sm_arena *arena,
                             sm_serve_detail *detail, sm_error *err) {
    step x;
    *detail = (sm_serve_detail){.point = *point};
    const sm_serve_point *p = &detail->point;
    sm_status status = point_step(serve, p, false, &x, err);
    if (status == SM_OK) status = list_step(&x, arena, &detail->prefill, err);
    for (int i = 0; status == SM_OK && i < x.v->pieces; i++)
        for (int k = 0; k < x.v->piece[i].ops && x.v->piece[i].encodes; k++)
            if (x.v->piece[i].op[k].positions > detail->encoder_positions)
                detail->encoder_positions = x.v->piece[i].op[k].positions;
    if (status == SM_OK) status = point_step(serve, p, true, &x, err);
    if (status == SM_OK) status = list_step(&x, arena, &detail->decode, err);
    if (status == SM_OK) status = detail_turns(serve, &p->plan, p->batch, detail, err);
    if (status != SM_OK) return status;
    detail->why = explain_point(serve, p, arena, err);
    if (!detail->why) return sm_fail_memory(err);
    return advise_point(serve, p, detail->advice, sizeof detail->advice, err);
}

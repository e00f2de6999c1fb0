/* Everything a person may ask of one point: its collectives, where it turns, why, what would help.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "serve_space.h"

/* ---- the collectives of a decode step ---- */

/* Axes of one member are no part of a group; tensor_q is tensor beyond the KV heads. */
static void axis_text(const step *x, sm_axes axes, char *out, size_t size) {
    static const uint8_t shown[] = {SM_AXIS_DATA, SM_AXIS_FSDP, SM_AXIS_EXPERT, SM_AXIS_CONTEXT,
                                    SM_AXIS_TENSOR};
    size_t at = 0;
    bool tensor_q = axes & SM_BIT(SM_AXIS_TENSOR_Q) && x->d.axis[SM_AXIS_TENSOR_Q] > 1;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof shown && at < size; i++) {
        int a = shown[i];
        bool in = axes & SM_BIT(a) && x->d.axis[a] > 1;
        if (!in && !(a == SM_AXIS_TENSOR && tensor_q)) continue;
        int n =
            snprintf(out + at, size - at, "%s%s", at ? "," : "", sm_program_mesh()->axis[a].name);
        at += n > 0 ? (size_t)n : 0;
    }
}

static void add_line(sm_serve_detail *d, sm_collective op, const char *array, const char *axis,
                     double count, const comm_price *c) {
    for (int i = 0; i < d->collectives; i++) {
        sm_serve_collective *to = &d->collective[i];
        if (to->op != op || strcmp(to->array, array) != 0 || strcmp(to->axis, axis) != 0 ||
            fabs(to->bytes - c->bytes) > 1e-9 * c->bytes)
            continue;
        to->count += count;
        to->time_s += count * c->expected;
        return;
    }
    sm_serve_collective *to = &d->collective[d->collectives++];
    *to = (sm_serve_collective){.op = op,
                                .count = count,
                                .bytes = c->bytes,
                                .time_s = count * c->expected,
                                .algorithm = c->algorithm};
    snprintf(to->array, sizeof to->array, "%s", array);
    snprintf(to->axis, sizeof to->axis, "%s", axis);
}

static void list_piece(const step *x, int index, sm_serve_detail *d) {
    const sm_partition *part = &x->v->piece[index].part;
    char axis[32];
    for (int i = 0; i < part->comms; i++) {
        comm_price c = comm_price_of(x, index, &part->comm[i]);
        if (c.expected <= 0) continue;
        axis_text(x, part->comm[i].axes, axis, sizeof axis);
        add_line(d, part->comm[i].op, part->comm[i].array, axis, piece_passes(x, index, false), &c);
    }
}

static sm_status list_collectives(const step *x, sm_arena *arena, sm_serve_detail *d,
                                  sm_error *err) {
    size_t most = 1;
    for (int i = 0; i < x->v->pieces; i++) most += (size_t)x->v->piece[i].part.comms;
    d->collective = sm_arena_array(arena, most, sizeof *d->collective);
    if (!d->collective) return sm_fail_memory(err);
    for (int i = 0; i < x->v->pieces; i++) list_piece(x, i, d);
    if (x->plan->pipeline > 1) {
        comm_price c = send_price(x);
        add_line(d, SM_PERMUTE, "x", "pipeline", x->plan->pipeline - 1, &c);
    }
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

sm_status detail_turns(sm_serve *s, const sm_plan *plan, double batch, sm_serve_detail *d,
                       sm_error *err) {
    sm_status status = find_turn(s, plan, TURN_CONTEXT, batch, &d->turn_kv_context, err);
    if (status == SM_OK) status = find_turn(s, plan, TURN_KV, batch, &d->turn_kv_batch, err);
    if (status == SM_OK)
        status = find_turn(s, plan, TURN_COMPUTE, batch, &d->turn_compute_batch, err);
    return status;
}

/* ---- the whole ---- */

sm_status sm_serve_detail_of(sm_serve *serve, const sm_plan *plan, double batch, sm_arena *arena,
                             sm_serve_detail *detail, sm_error *err) {
    step x;
    memset(detail, 0, sizeof *detail);
    sm_serve_point *p = &detail->point;
    sm_status status = sm_serve_point_of(serve, plan, batch, p, err);
    if (status != SM_OK) return status;
    sm_step_batch b = point_batch(point_group(&p->plan, batch), p->depth + 1, point_context(serve));
    b.sampled *= p->depth + 1;
    status = step_prepare(serve, &p->plan, &b, &x, err);
    if (status == SM_OK) status = list_collectives(&x, arena, detail, err);
    if (status == SM_OK) status = detail_turns(serve, &p->plan, batch, detail, err);
    if (status != SM_OK) return status;
    detail->why = explain_point(serve, p, arena, err);
    if (!detail->why) return sm_fail_memory(err);
    return advise_point(serve, p, detail->advice, sizeof detail->advice, err);
}

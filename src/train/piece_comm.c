/* The collectives of a piece, priced on the placement of the plan. */
#include <string.h>

#include "space.h"

static void add_stream(const sm_train *t, const sm_timed_curve *curve, double bytes, double *busy) {
    for (int l = 0; l < t->system.levels; l++) busy[l] += bytes * curve->busy[l];
}

/* It travels beside the work of its piece. */
static bool streams(const sm_comm *c) {
    return c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN;
}

static void add_comm(const sm_train *t, const piece *p, const sm_comm *c,
                     const sm_timed_curve *curve, double bytes, piece_comm *out) {
    const sm_timed_line *line;
    double s = sm_timed_curve_s(curve, bytes, &line);
    if (!line) return;
    int way = c->phase != SM_PHASE_FORWARD;
    add_stream(t, curve, bytes, out->all[way]);
    if (streams(c)) {
        out->serial[way] += s;
        add_stream(t, curve, bytes, out->busy[way]);
        return;
    }
    if (c->stream == SM_STREAM_RING) out->ring[way] += s;
    else if (c->ragged) out->exchange[way] += s;
    else out->blocking[way] += s;
    out->latency += line->line.latency_s;
    for (int set = 1; way == 0 && set < MAX_SETS; set++) { /* set 0 recomputes nothing */
        if (!(p->set[set].again & c->forward_ops)) continue;
        if (c->stream == SM_STREAM_RING) out->again_ring[set] += s;
        else if (c->ragged) out->again_exchange[set] += s;
        else out->again_blocking[set] += s;
        add_stream(t, curve, bytes, out->again_all[set]);
    }
}

/* ZeRO-2 reduces the gradients of every microbatch at once; that of a tied embedding with its
 * copy's. */
static bool reduces(const sm_train *t, const sm_weight_class *c, int index, const sm_plan *plan) {
    return !c->fixed && !(c->tied && index == head_piece(t) && plan->pipeline == 1);
}

static double zero2_bytes(const sm_weight_class *c, const sm_degrees *d, const sm_plan *plan) {
    return c->elements * d->inverse[c->stored] * gradient_bytes(plan);
}

static void add_zero2(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                      const placed *at, const sm_plan *plan, piece_comm *out) {
    const sm_partition *part = &v->piece[index].part;
    for (int i = 0; i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        const sm_timed_curve *curve = at->slot[v->weight[index][i].reduce_scatter];
        double bytes = zero2_bytes(c, d, plan);
        const sm_timed_line *line;
        double s = sm_timed_curve_s(curve, bytes, &line);
        if (!line || !reduces(t, c, index, plan)) continue;
        add_stream(t, curve, bytes, out->all[1]);
        if (t->software.one_by_one) {
            out->blocking[1] += s;
            continue;
        }
        out->serial[1] += s;
        add_stream(t, curve, bytes, out->busy[1]);
    }
}

double comm_bytes(const sm_comm *c, const sm_degrees *d, const sm_plan *plan) {
    double bytes = size_at(&c->bytes, d), element = sm_dtype_bytes(plan->dtype);
    if (c->gradient) return bytes * gradient_bytes(plan);
    return c->narrow && element < 2 ? bytes * (element / 2) : bytes;
}

void piece_comm_compute(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                        const placed *at, const sm_plan *plan, piece_comm *out) {
    const piece *p = &v->piece[index];
    memset(out, 0, sizeof *out);
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = at->slot[p->slot[i]];
        if (curve->n == 0) continue; /* the axes have one member */
        double bytes = comm_bytes(c, d, plan);
        add_comm(t, p, c, curve, bytes, out);
    }
    if (plan->zero == 2) add_zero2(t, v, index, d, at, plan, out);
}

/* Of one microbatch: what is recomputed asks for its collectives again. */
void piece_ideal_compute(const sm_train *t, const variant *v, int index, int set,
                         const sm_degrees *d, const placed *at, const sm_plan *plan,
                         double *ideal) {
    const piece *p = &v->piece[index];
    for (int l = 0; l < SM_MAX_LEVELS; l++) ideal[l] = 0;
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = at->slot[p->slot[i]];
        bool again = c->phase == SM_PHASE_FORWARD && !streams(c) && set > 0 &&
                     p->set[set].again & c->forward_ops;
        double bytes = curve->n > 0 ? comm_bytes(c, d, plan) * (again ? 2 : 1) : 0;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
    for (int i = 0; plan->zero == 2 && i < p->part.classes; i++) {
        const sm_timed_curve *curve = at->slot[v->weight[index][i].reduce_scatter];
        double bytes = zero2_bytes(&p->part.weight[i], d, plan);
        if (!reduces(t, &p->part.weight[i], index, plan)) continue;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
}

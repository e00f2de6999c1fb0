/* The collectives of a piece, priced on the placement of the plan. */
#include <string.h>

#include "space.h"

static void add_stream(const sm_train *t, const sm_timed_line *line, double bytes, double *busy) {
    for (int l = 0; l < t->system.levels; l++) busy[l] += bytes * line->busy[l];
}

static void add_comm(const sm_train *t, const piece *p, const sm_comm *c,
                     const sm_timed_curve *curve, double bytes, piece_comm *out) {
    const sm_timed_line *line;
    double s = sm_timed_curve_s(curve, bytes, &line);
    if (!line) return;
    int way = c->phase != SM_PHASE_FORWARD;
    bool streams = c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN;
    out->ideal[way][curve->level] += bytes * curve->ideal_s_per_byte;
    add_stream(t, line, bytes, out->all[way]);
    if (streams) {
        out->serial[way] += s;
        add_stream(t, line, bytes, out->busy[way]);
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
        out->again_ideal[set][curve->level] += bytes * curve->ideal_s_per_byte;
        add_stream(t, line, bytes, out->again_all[set]);
    }
}

/* ZeRO-2 reduces the gradients of every microbatch at once. */
static void add_zero2(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                      const placed *at, double gradient, piece_comm *out) {
    const sm_partition *part = &v->piece[index].part;
    for (int i = 0; i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        const sm_timed_curve *curve = at->slot[v->weight[index][i].reduce_scatter];
        double bytes = c->elements * d->inverse[c->stored] * gradient;
        const sm_timed_line *line;
        double s = sm_timed_curve_s(curve, bytes, &line);
        if (!line) continue;
        out->ideal[1][curve->level] += bytes * curve->ideal_s_per_byte;
        add_stream(t, line, bytes, out->all[1]);
        if (t->software.one_by_one) {
            out->blocking[1] += s;
            continue;
        }
        out->serial[1] += s;
        add_stream(t, line, bytes, out->busy[1]);
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
    double gradient = gradient_bytes(plan);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = at->slot[p->slot[i]];
        if (curve->n == 0) continue; /* the axes have one member */
        double bytes = comm_bytes(c, d, plan);
        add_comm(t, p, c, curve, bytes, out);
    }
    if (plan->zero == 2) add_zero2(t, v, index, d, at, gradient, out);
}

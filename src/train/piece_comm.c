/* The collectives of a piece, priced on the placement of the plan. */
#include <stddef.h>
#include <string.h>

#include "space.h"

static void add_stream(const sm_train *t, const sm_timed_curve *curve, double bytes, double *busy) {
    for (int l = 0; l < t->system.levels; l++) busy[l] += bytes * curve->busy[l];
}

/* The sums that a collective belongs to. */
static comm_sums *sums_of(piece_comm *c, const sm_comm *comm) {
    if (comm->repeated) return comm->role == SM_ROLE_WEIGHT ? &c->weights : &c->activations;
    return &c->way[comm->phase != SM_PHASE_FORWARD];
}

static void add_comm(const sm_train *t, const sm_comm *c, const sm_timed_curve *curve, double bytes,
                     const sm_timed_line *line, double s, comm_sums *to) {
    add_stream(t, curve, bytes, to->all);
    if (c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN) { /* beside the work */
        to->serial += s;
        add_stream(t, curve, bytes, to->busy);
        return;
    }
    if (c->stream == SM_STREAM_RING) to->ring += s;
    else if (c->ragged) to->exchange += s;
    else to->blocking += s;
    to->latency += line->line.latency_s;
}

/* ZeRO-2 reduces the gradients of every microbatch at once; that of a tied embedding with its
 * copy's. */
static bool reduces(const sm_train *t, const sm_weight_class *c, int index, const sm_plan *plan) {
    return !c->fixed && !(c->tied && (index != head_piece(t) || plan->pipeline == 1));
}

static double zero2_bytes(const sm_weight_class *c, const sm_degrees *d, const sm_plan *plan) {
    return c->elements * sm_weight_share(c, plan->pipeline) / d->ways[c->stored] *
           gradient_bytes(plan);
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
        add_stream(t, curve, bytes, out->way[1].all);
        if (t->software.one_by_one) {
            out->way[1].blocking += s;
            continue;
        }
        out->way[1].serial += s;
        add_stream(t, curve, bytes, out->way[1].busy);
    }
}

double comm_bytes(const sm_train *t, int index, const sm_comm *c, const sm_degrees *d,
                  const sm_plan *plan) {
    const sm_layer_kind *kind = index < t->kinds ? &t->model.kind[index] : NULL;
    bool whole = kind && c->stream == SM_STREAM_RING && t->software_memory.keys_whole;
    double bytes = size_at(&c->bytes, d) *
                   (c->gradient ? gradient_bytes(plan) : sm_comm_narrowing(c, plan->dtype));
    return whole && kind->K > 0 ? bytes * kind->N / kind->K : bytes;
}

int comm_times(const sm_train *t, const sm_program *b, const sm_comm *c) {
    if (!t->software_memory.gate_reduced || !c->returns || c->op != SM_ALL_REDUCE) return 1;
    const int read = b->op[c->forward_op].out;
    for (const sm_op *op = b->op; op < b->op + b->ops; op++) {
        const int up = op->function == SM_FUNCTION_GATE && op->inputs > 1 ? op->in[1] : -1;
        const int of = up < 0 ? -1 : b->tensor[up].producer;
        if (of >= 0 && (b->op[of].in[0] == read || b->op[of].in[1] == read)) return 2;
    }
    return 1;
}

void piece_comm_compute(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                        const placed *at, const sm_plan *plan, piece_comm *out) {
    const piece *p = &v->piece[index];
    memset(out, 0, offsetof(piece_comm, again));
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = at->slot[p->slot[i]];
        if (curve->n == 0) continue; /* the axes have one member */
        const sm_timed_line *line;
        double bytes = comm_bytes(t, index, c, d, plan), s = sm_timed_curve_s(curve, bytes, &line);
        if (!line) continue;
        for (int n = comm_times(t, &p->part.program, c); n > 0; n--)
            add_comm(t, c, curve, bytes, line, s, sums_of(out, c));
    }
    if (plan->zero == 2) add_zero2(t, v, index, d, at, plan, out);
}

void piece_comm_again(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                      const placed *at, const sm_plan *plan, piece_comm *out) {
    const piece *p = &v->piece[index];
    memset(out->again, 0, sizeof out->again);
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = at->slot[p->slot[i]];
        const sm_timed_line *line = NULL;
        double bytes = 0, s = 0;
        for (int set = 1; set < MAX_SETS && curve->n > 0; set++) { /* set 0 recomputes nothing */
            if (!sm_comm_runs_again(c, piece_again(t, p, set))) continue;
            if (!line)
                bytes = comm_bytes(t, index, c, d, plan), s = sm_timed_curve_s(curve, bytes, &line);
            if (!line) break;
            add_comm(t, c, curve, bytes, line, s, &out->again[set]);
        }
    }
}

/* What a direction adds up, at most four. Returns how many. */
static int parts_of(const sm_train *t, const piece_comm *c, int way, int set, const sm_plan *plan,
                    const comm_sums *part[4]) {
    int n = 0;
    part[n++] = &c->way[way];
    if (way == 0) return n;
    if (set > 0) part[n++] = &c->again[set];
    if (!(plan->regather & SM_KEEPS_WEIGHTS)) part[n++] = &c->weights;
    if (!(kept_gathered(t, plan) & SM_KEEPS_ACTIVATIONS)) part[n++] = &c->activations;
    return n;
}

comm_way piece_comm_way(const sm_train *t, const piece_comm *c, int way, int set,
                        const sm_plan *plan) {
    const comm_sums *part[4];
    int n = parts_of(t, c, way, set, plan, part);
    comm_way to = {0};
    for (int i = 0; i < n; i++) {
        to.blocking += part[i]->blocking;
        to.exchange += part[i]->exchange;
        to.ring += part[i]->ring;
        to.serial += part[i]->serial;
        to.latency += part[i]->latency;
    }
    for (int l = 0; l < t->system.levels; l++) {
        double busy = 0, all = 0;
        for (int i = 0; i < n; i++) busy += part[i]->busy[l], all += part[i]->all[l];
        to.busy = larger(to.busy, busy);
        to.all = larger(to.all, all);
    }
    return to;
}

double piece_comm_busy(const sm_train *t, const piece_comm *c, int level, int set,
                       const sm_plan *plan) {
    const comm_sums *part[4];
    int n = parts_of(t, c, 1, set, plan, part);
    double busy = c->way[0].all[level];
    for (int i = 0; i < n; i++) busy += part[i]->all[level];
    return busy;
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
        if (sm_comm_is_spared(c, kept_gathered(t, plan))) continue;
        bool again = sm_comm_runs_again(c, piece_again(t, p, set));
        double bytes = curve->n > 0 ? comm_bytes(t, index, c, d, plan) * (again ? 2 : 1) : 0;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
    for (int i = 0; plan->zero == 2 && i < p->part.classes; i++) {
        const sm_timed_curve *curve = at->slot[v->weight[index][i].reduce_scatter];
        double bytes = zero2_bytes(&p->part.weight[i], d, plan);
        if (!reduces(t, &p->part.weight[i], index, plan)) continue;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
}

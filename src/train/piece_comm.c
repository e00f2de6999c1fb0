/* The collectives of a piece, priced on the placement of the plan. */

#include "space.h"

/* Zeros where nothing is sent. */
static void time_comm(const sm_train *t, const sm_timed_curve *curve, double bytes, comm_time *to) {
    const sm_timed_line *line;
    to->s = sm_timed_curve_s(curve, bytes, &line);
    to->latency = line ? line->line.latency_s : 0;
    for (int l = 0; l < t->system.levels; l++) to->busy[l] = line ? bytes * curve->busy[l] : 0;
}

static void add_comm(const sm_train *t, const comm_time *of, comm_kind kind, comm_sums *to) {
    const int levels = t->system.levels;
    to->s[kind] += of->s;
    for (int l = 0; l < levels; l++) to->all[l] += of->busy[l];
    if (kind != STREAM) to->latency += of->latency;
    else
        for (int l = 0; l < levels; l++) to->busy[l] += of->busy[l];
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

static void add_zero2(const sm_train *t, int index, const sm_plan *plan, pieces *p) {
    const sm_partition *part = &p->v->piece[index].part;
    const comm_kind kind = t->software.one_by_one ? BLOCKING : STREAM;
    for (int i = 0; i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        const sm_timed_curve *curve = p->at.slot[p->v->weight[index][i].reduce_scatter];
        comm_time time;
        if (!reduces(t, c, index, plan)) continue;
        time_comm(t, curve, zero2_bytes(c, &p->d, plan), &time);
        time.latency = 0; /* it is a stream */
        add_comm(t, &time, kind, &p->comm[index].sum[SUM_BACKWARD]);
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

void piece_comm_compute(const sm_train *t, int index, const sm_plan *plan, pieces *p) {
    const piece *of = &p->v->piece[index];
    comm_sums *sum = p->comm[index].sum;
    if (of->sends_as_main && plan->zero != 2 && !t->software_memory.gate_reduced) {
        memcpy(sum, p->comm[t->main_kind].sum, COMM_SUMS * sizeof *sum);
        return;
    }
    memset(sum, 0, COMM_SUMS * sizeof *sum);
    for (int i = 0; i < of->part.comms; i++) {
        const sent *c = &of->sent[i];
        const sm_comm *comm = &of->part.comm[i];
        const sm_timed_curve *curve = p->at.slot[c->slot];
        if (c->like == index * SM_MAX_COMM + i) {
            double bytes = curve->n > 0 ? comm_bytes(t, index, comm, &p->d, plan) : 0;
            time_comm(t, curve, bytes, &p->sent[c->like]);
        }
        if (curve->n == 0) continue; /* the axes have one member */
        for (int n = comm_times(t, &of->part.program, comm); n > 0; n--)
            add_comm(t, &p->sent[c->like], (comm_kind)c->kind, &sum[c->sum]);
    }
    if (plan->zero == 2) add_zero2(t, index, plan, p);
}

void piece_comm_again(const sm_train *t, int index, pieces *p) {
    const piece *of = &p->v->piece[index];
    comm_sums *again = p->comm[index].again;
    memset(again, 0, MAX_SETS * sizeof *again);
    for (int i = 0; i < of->part.comms; i++) {
        const sent *c = &of->sent[i];
        if (!c->may_run_again || p->at.slot[c->slot]->n == 0) continue;
        for (int set = 1; set < MAX_SETS; set++) /* set 0 recomputes nothing */
            if (sm_comm_runs_again(&of->part.comm[i], piece_again(t, of, set)))
                add_comm(t, &p->sent[c->like], (comm_kind)c->kind, &again[set]);
    }
}

/* What a direction adds up, at most four. Returns how many. */
static int parts_of(const sm_train *t, const piece_comm *c, int way, int set, const sm_plan *plan,
                    const comm_sums *part[4]) {
    int n = 0;
    part[n++] = &c->sum[way];
    if (way == 0) return n;
    if (set > 0) part[n++] = &c->again[set];
    if (!(plan->regather & SM_KEEPS_WEIGHTS)) part[n++] = &c->sum[SUM_WEIGHTS];
    if (!(kept_gathered(t, plan) & SM_KEEPS_ACTIVATIONS)) part[n++] = &c->sum[SUM_ACTIVATIONS];
    return n;
}

comm_way piece_comm_way(const sm_train *t, const piece_comm *c, int way, int set,
                        const sm_plan *plan) {
    const comm_sums *part[4];
    int n = parts_of(t, c, way, set, plan, part);
    comm_way to = {0};
    for (int i = 0; i < n; i++) {
        to.blocking += part[i]->s[BLOCKING];
        to.exchange += part[i]->s[EXCHANGE];
        to.ring += part[i]->s[RING];
        to.serial += part[i]->s[STREAM];
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
    double busy = c->sum[SUM_FORWARD].all[level];
    for (int i = 0; i < n; i++) busy += part[i]->all[level];
    return busy;
}

/* Of one microbatch: what is recomputed asks for its collectives again. */
void piece_ideal_compute(const sm_train *t, int index, int set, const sm_plan *plan, pieces *all) {
    const piece *p = &all->v->piece[index];
    const sm_degrees *d = &all->d;
    double *ideal = all->ideal[index];
    for (int l = 0; l < SM_MAX_LEVELS; l++) ideal[l] = 0;
    for (int i = 0; i < p->part.comms; i++) {
        const sm_comm *c = &p->part.comm[i];
        const sm_timed_curve *curve = all->at.slot[p->sent[i].slot];
        if (sm_comm_is_spared(c, kept_gathered(t, plan))) continue;
        bool again = sm_comm_runs_again(c, piece_again(t, p, set));
        double bytes = curve->n > 0 ? comm_bytes(t, index, c, d, plan) * (again ? 2 : 1) : 0;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
    for (int i = 0; plan->zero == 2 && i < p->part.classes; i++) {
        const sm_timed_curve *curve = all->at.slot[all->v->weight[index][i].reduce_scatter];
        double bytes = zero2_bytes(&p->part.weight[i], d, plan);
        if (!reduces(t, &p->part.weight[i], index, plan)) continue;
        for (int l = 0; l < t->system.levels; l++) ideal[l] += bytes * curve->ideal[l];
    }
}

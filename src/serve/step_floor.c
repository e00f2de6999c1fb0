/* What a decode step takes at least, whatever the placement. A search has some twenty batches of
 * each sharding, on many placements each: most are ruled out by this, which asks nothing of the
 * sharding again. */
#include "serve_space.h"

static double rate_of(const step *x) { return x->s->system.chip.memory_bytes_per_s.value; }

/* Whether two ops take as long: kinds of layers often differ in what does not attend alone. */
static bool attends_as(const step *x, const struct least_attend *a, int index, const fused *f) {
    const sm_layer_kind *j = &x->s->model.kind[a->index], *k = &x->s->model.kind[index];
    const sm_work *v = &x->v->piece[a->index].part.work[a->op->first];
    const sm_work *w = &x->v->piece[index].part.work[f->first];
    const sm_size *one[] = {&v->batch, &v->m, &v->n, &v->kv_heads};
    const sm_size *other[] = {&w->batch, &w->m, &w->n, &w->kv_heads};
    for (int i = 0; i < 4; i++)
        if (one[i]->mask != other[i]->mask || one[i]->base < other[i]->base ||
            one[i]->base > other[i]->base || one[i]->per_sequence != other[i]->per_sequence ||
            one[i]->per_query != other[i]->per_query || one[i]->per_key != other[i]->per_key)
            return false;
    return j->attention == k->attention && j->window == k->window && j->chunk == k->chunk &&
           j->H == k->H && j->V_head == k->V_head && j->kv_rank == k->kv_rank &&
           j->rope_H == k->rope_H && a->op->keys == f->keys;
}

static void add_attention(const step *x, int index, const fused *f, double passes,
                          step_least *out) {
    double exact = piece_passes(x, index, false);
    for (int i = 0; i < out->attends; i++) {
        struct least_attend *a = &out->attend[i];
        if (!attends_as(x, a, index, f)) continue;
        a->times += passes;
        a->exact += exact;
        return;
    }
    if (out->attends < MAX_LEAST)
        out->attend[out->attends++] = (struct least_attend){index, f, passes, exact};
}

static void add_ops(const step *x, int index, double passes, step_least *out) {
    const piece *p = &x->v->piece[index];
    for (int i = 0; i < p->ops; i++) {
        const fused *f = &p->op[i];
        if (is_encoding(f)) continue; /* nothing begins in a decode step */
        if (p->part.work[f->first].kind == SM_OP_ATTENTION) {
            add_attention(x, index, f, passes, out);
            continue;
        }
        out->fixed_s += passes * x->s->kernel.launch_s;
        out->kernels += passes;
    }
}

/* Of an embedding only rows are read. */
static void add_weights(const step *x, int index, double passes, step_least *out) {
    const sm_partition *part = &x->v->piece[index].part;
    for (int i = 0; reads_weights(x, index) && i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        double bytes = class_read(x, c) * 2 * weight_scale(x->s, index, c->expert);
        if (c->expert) {
            out->expert_bytes[index] += bytes;
            continue;
        }
        out->weight_bytes += piece_passes(x, index, false) * bytes;
        if (!is_before_head(x->s, index)) out->fixed_s += passes * bytes / rate_of(x);
    }
}

static void add_comm(placements *any, int index, const sm_comm *c, double scale, double times,
                     step_least *out) {
    if (out->comms == MAX_LEAST || !(times > 0)) return;
    const comm_floor *floor =
        c ? placements_floor(any, c->op, c->axes, c->ragged)
          : placements_floor(any, SM_PERMUTE, SM_BIT(SM_PLACED_PIPELINE), false);
    if (floor->n > 0) out->comm[out->comms++] = (struct least_comm){index, c, floor, scale, times};
}

void step_least_of(const step *x, placements *any, step_least *out) {
    const sm_serve *s = x->s;
    out->fixed_s = out->kernels = out->weight_bytes = 0;
    out->attends = out->comms = 0;
    for (int i = 0; i < x->v->pieces; i++) {
        const piece *p = &x->v->piece[i];
        double passes = piece_passes(x, i, true);
        out->expert_bytes[i] = 0;
        add_ops(x, i, passes, out);
        add_weights(x, i, passes, out);
        for (int k = 0; k < p->part.comms && !p->encodes; k++) {
            const sm_comm *c = &p->part.comm[k];
            bool hides = c->stream != SM_STREAM_BLOCKING;
            double more = c->ragged && !c->bytes.per_key ? s->job.imbalance : 1;
            add_comm(any, i, c, more * bytes_sent(x, i, c, 1),
                     passes * (hides ? 1 - s->calibration->overlap : 1), out);
        }
    }
    add_comm(any, 0, NULL, 1, x->plan->pipeline - 1, out);
}

static double comm_s(const step *x, const struct least_comm *c) {
    const sm_size *size = c->of ? &c->of->bytes : &x->v->piece[0].part.boundary;
    const sm_layer_kind *kind = c->index < x->s->kinds ? &x->s->model.kind[c->index] : NULL;
    sm_program_extent n = size->per_key                  ? group_counts(x, kind, &x->group[0])
                          : c->index == head_piece(x->s) ? x->sampled
                                                         : x->tokens;
    return c->times * floor_s(c->floor, c->scale * sm_size_at(size, &x->d, &n));
}

double step_least_s(const step_least *f, const step *x, bool lower) {
    const sm_serve *s = x->s;
    double path = f->fixed_s, kernels = f->kernels, weight_bytes = f->weight_bytes;
    double W = rate_of(x), kv_bytes = 0, attention_flops = 0;
    for (int i = 0; i < s->kinds; i++) {
        if (!(f->expert_bytes[i] > 0)) continue;
        double bytes = f->expert_bytes[i] * experts_share(x, i);
        path += piece_passes(x, i, true) * bytes / W;
        weight_bytes += piece_passes(x, i, false) * bytes;
    }
    for (int i = 0; i < f->attends; i++) {
        const struct least_attend *a = &f->attend[i];
        op_price op = op_price_of(x, a->index, a->op);
        path += a->times * op.expected;
        kernels += a->times * op.kernels;
        kv_bytes += a->exact * op.kv_bytes;
        attention_flops += a->exact * op.flops;
    }
    if (lower) {
        double C = sm_chip_peak(&s->system.chip, s->job.dtypes.compute, NULL);
        return larger(kv_bytes / W, attention_flops / C) + weight_bytes / W;
    }
    for (int i = 0; i < f->comms; i++) path += comm_s(x, &f->comm[i]);
    double host = s->job.eager ? kernels * s->calibration->launch_s : 0;
    return larger(path, host) + s->calibration->step_overhead_s + step_host_s(x);
}

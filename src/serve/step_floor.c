/* What a step takes at least, whatever the placement. A search has some twenty batches of each
 * sharding, on many placements each: most are ruled out by this, which asks nothing of the sharding
 * again. */
#include "serve_space.h"

static double rate_of(const step *x) { return x->s->system.chip.memory_bytes_per_s.value; }

static least_tokens tokens_of(const step *x, int index, step_part of, const op_floor *op) {
    if (op->mean > 0) return LEAST_ROUTED;
    if (of != STEP_WHOLE) return of == STEP_PROMPTS ? LEAST_PROMPTS : LEAST_DECODING;
    return index == head_piece(x->s) ? LEAST_SAMPLED : LEAST_TOKENS;
}

static void add_ops(const step *x, int index, double passes, step_least *out) {
    step_op op[STEP_OPS];
    int n = step_ops(x, index, op);
    for (int i = 0; i < n; i++) {
        op_floor floor;
        if (is_encoding(op[i].f)) continue; /* begins once, if at all */
        const variant *v = op[i].of == STEP_PROMPTS ? x->prefill : x->v;
        const sm_work *w = &v->piece[index].part.work[op[i].f->first];
        if (w->kind == SM_OP_ATTENTION) {
            if (out->attends < MAX_LEAST)
                out->attend[out->attends++] = (struct least_attend){
                    index, op[i].f, op[i].of, passes, piece_passes(x, index, false)};
            continue;
        }
        op_least(x, index, w, op[i].f, &floor);
        least_tokens of = tokens_of(x, index, op[i].of, &floor);
        out->fixed_s += passes * floor.start_s;
        out->kernels += passes;
        if (!floor.is_matmul) out->each_s[of] += passes * floor.math_s;
        else if (out->products < MAX_LEAST)
            out->product[out->products++] = (struct least_product){index, of, passes, floor};
    }
}

/* Of an embedding only rows are read. */
static void add_weights(const step *x, int index, double passes, step_least *out) {
    const sm_partition *part = &x->v->piece[index].part;
    for (int i = 0; reads_weights(x, index) && i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        double bytes = class_read(x, index, c) * 2 * weight_scale(x->s, index, c->expert);
        if (c->expert) {
            out->expert_bytes[index] += bytes;
            continue;
        }
        out->weight_bytes += piece_passes(x, index, false) * bytes;
        if (!is_before_head(x->s, index)) out->read_s += passes * bytes / rate_of(x);
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
    bool slices = s->system.torus_dims > 0 && !x->v->rules.decode;
    out->fixed_s = out->kernels = out->weight_bytes = out->read_s = 0;
    out->attends = out->products = out->comms = 0;
    for (int i = 0; i < LEAST_COUNTS; i++) out->each_s[i] = 0;
    for (int i = 0; i < x->v->pieces; i++) {
        const piece *p = &x->v->piece[i];
        double passes = piece_passes(x, i, true);
        out->expert_bytes[i] = 0;
        if (!step_has(x, i)) continue;
        add_ops(x, i, passes, out);
        add_weights(x, i, passes, out);
        for (int k = 0; k < p->part.comms && !p->encodes; k++) {
            const sm_comm *c = &p->part.comm[k];
            bool hides = slices || c->stream != SM_STREAM_BLOCKING;
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
    const sm_program_extent *n = c->index == head_piece(x->s) ? &x->sampled : &x->tokens;
    double seconds = 0;
    if (!size->per_key) return c->times * floor_s(c->floor, c->scale * sm_size_at(size, &x->d, n));
    for (int g = 0; g < x->groups; g++) {
        sm_program_extent group = group_counts(x, kind, &x->group[g]);
        seconds += floor_s(c->floor, c->scale * sm_size_at(size, &x->d, &group));
    }
    return c->times * seconds;
}

/* Of a mixed step, of one or the other. */
static double tokens_in(const step *x, bool decoding) {
    return x->prefill ? step_part_tokens(x, decoding ? STEP_DECODING : STEP_PROMPTS) : 0;
}

static double products_s(const step_least *f, const step *x) {
    const double tokens[LEAST_COUNTS] = {[LEAST_TOKENS] = x->tokens.sequences,
                                         [LEAST_SAMPLED] = x->sampled.sequences,
                                         [LEAST_ROUTED] = x->routed.sequences,
                                         [LEAST_DECODING] = tokens_in(x, true),
                                         [LEAST_PROMPTS] = tokens_in(x, false)};
    double seconds = 0, rows = 0, reached = 0;
    int kind = -1;
    for (int i = 0; i < LEAST_COUNTS; i++) seconds += f->each_s[i] * tokens[i];
    for (int i = 0; i < f->products; i++) {
        const struct least_product *p = &f->product[i];
        double n = tokens[p->of], share = 1;
        if (p->op.mean > 0) { /* what goes up and comes down meets the same experts */
            bool same = kind == p->index && !(rows < p->op.mean * n) && !(rows > p->op.mean * n);
            if (!same) reached = reached_share(x, &x->s->model.kind[p->index], p->op.mean * n);
            kind = p->index;
            rows = p->op.mean * n;
            share = reached;
        }
        seconds += p->times * sm_matmul_overlapped_s(p->op.math_s * n,
                                                     p->op.bytes_s * n + p->op.weights_s * share);
    }
    return seconds;
}

/* Parts of a mixed step are made when one attends by itself. */
static double attention_s(const step_least *f, const step *x, double *kernels, double *kv_bytes,
                          double *flops) {
    step_part made = STEP_WHOLE;
    step part;
    double seconds = 0;
    for (int i = 0; i < f->attends; i++) {
        const struct least_attend *a = &f->attend[i];
        bool whole = a->of == STEP_WHOLE;
        if (!whole && made != a->of) part = step_part_of(x, made = a->of);
        op_price op = op_price_of(whole ? x : &part, a->index, a->op);
        seconds += a->times * op.expected;
        *kernels += a->times * op.kernels;
        *kv_bytes += a->exact * op.kv_bytes;
        *flops += a->exact * op.flops;
    }
    return seconds;
}

/* Bytes of experts that some token reaches, of all stages or of the fullest. */
static double expert_bytes(const step_least *f, const step *x, bool fullest_stage) {
    double bytes = 0;
    for (int i = 0; i < x->s->kinds; i++)
        if (f->expert_bytes[i] > 0)
            bytes += piece_passes(x, i, fullest_stage) * f->expert_bytes[i] * experts_share(x, i);
    return bytes;
}

double step_least_s(const step_least *f, const step *x, least_kind kind) {
    const sm_serve *s = x->s;
    double kernels = f->kernels, kv_bytes = 0, flops = 0, W = rate_of(x);
    double path = attention_s(f, x, &kernels, &kv_bytes, &flops);
    if (kind == LEAST_BOUND) {
        double C = sm_chip_peak(&s->system.chip, s->job.dtypes.compute, NULL);
        return larger(kv_bytes / W, flops / C) + (f->weight_bytes + expert_bytes(f, x, false)) / W;
    }
    if (kind == LEAST_EXPECTED) path += f->fixed_s + products_s(f, x);
    else path += f->kernels * s->kernel.launch_s + f->read_s + expert_bytes(f, x, true) / W;
    for (int i = 0; i < f->comms; i++) path += comm_s(x, &f->comm[i]);
    double host = s->job.eager ? kernels * s->calibration->launch_s : 0;
    return larger(path, host) + s->calibration->step_overhead_s + step_host_s(x);
}

sm_status step_floor_s(step_floor *f, sm_serve *s, const sm_plan *plan, const sm_step_batch *batch,
                       placements *any, least_kind kind, sm_error *err) {
    if (!f->made || f->decoding != step_decoding(batch)) {
        const bool gathered = f->plan.gathered;
        const variant *v = f->x.v, *prefill = f->x.prefill;
        bool same = f->number == any->number;
        f->decoding = step_decoding(batch);
        f->plan = *plan;
        sm_plan_settle(&f->plan, &s->model);
        f->number = 0;
        sm_status status = step_unplaced(s, &f->plan, batch, &f->x, err);
        if (status != SM_OK) return status;
        /* Choices of degrees often differ in caches alone, which prompts have none of. */
        same = same && f->plan.gathered == gathered && v == f->x.v && prefill == f->x.prefill;
        if (!same) step_least_of(&f->x, any, &f->least);
        f->number = any->number;
        f->made = true;
    } else {
        step_resize(&f->x, batch);
    }
    f->seconds = step_least_s(&f->least, &f->x, kind);
    return SM_OK;
}

sm_status step_token_s(step_floor *f, sm_serve *s, const sm_plan *plan, double decoding,
                       placements *any, double *seconds, sm_error *err) {
    const double many = 1 << 20; /* of each group of chips, so that all have as many */
    const double prompts = many * sm_plan_groups(plan, &s->model);
    sm_step_batch b = point_batch(prompts, s->job.prompt - s->job.prefix, 0);
    double tokens = prompts * b.group[0].queries + decoding;
    b.sampled = 1;
    if (decoding > 0) b.group[b.groups++] = b.group[0], b.group[0] = (sm_attend){decoding, 1, 1};
    sm_status status = step_floor_s(f, s, plan, &b, any, LEAST_BOUND, err);
    if (status) return status;
    *seconds = products_s(&f->least, &f->x);
    for (int i = 0; i < f->least.comms; i++) {
        const struct least_comm *c = &f->least.comm[i];
        if (!c->of || !c->of->bytes.per_key) *seconds += comm_s(&f->x, c);
    }
    *seconds /= tokens;
    return SM_OK;
}

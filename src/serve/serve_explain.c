/* The derivation of a point: the functions that priced it, with their inputs and sources. */
#include "scalemodel/page.h"
#include "serve_space.h"

typedef struct teller {
    const step *x;
    sm_report r; /* of which the arena alone is used, and whether memory ran out */
} teller;

/* ---- ops and collectives of a piece ---- */

static const char *op_label(teller *t, const sm_work *w, int n) {
    const char *label = w->name;
    for (int i = 1; i < n; i++) label = sm_textf(&t->r, "%s + %s", label, w[i].name);
    return label;
}

static void tell_op(teller *t, sm_why *to, int index, const fused *f) {
    static const char *const formulas[] = {
        [OP_MATMUL] = "FLOPs / (peak x efficiency) beside bytes / (HBM x efficiency), + start",
        [OP_ATTENTION] = "max(FLOPs / (peak x efficiency), bytes / (HBM x efficiency)) + start",
        [OP_VECTOR] = "max(vector FLOPs / vector peak, bytes / (HBM x efficiency)) + start"};
    op_price p = op_price_of(t->x, index, f);
    const sm_work *w = &t->x->v->piece[index].part.work[f->first];
    sm_why *op = sm_page_why(&t->r, to, op_label(t, w, f->n), formulas[p.class], p.expected, "s");
    if (p.flops > 0) sm_page_leaf(&t->r, op, "FLOPs", p.flops, "FLOP", "the partitioned program");
    sm_page_leaf(&t->r, op, p.class == OP_ATTENTION ? "cache read" : "bytes through HBM", p.bytes,
                 "B", "the partitioned program");
}

static void tell_comm(teller *t, sm_why *to, int index, const sm_comm *c) {
    comm_price p = comm_price_of(t->x, index, c);
    if (p.expected <= 0) return;
    const char *label = sm_textf(&t->r, "%s of %s", sm_collective_name(c->op), c->array);
    sm_why *w =
        sm_page_why(&t->r, to, label, "latency + bytes x seconds per byte", p.expected, "s");
    sm_page_leaf(&t->r, w, "bytes", p.bytes, "B", "the partitioned program");
    sm_page_leaf(&t->r, w,
                 sm_textf(&t->r, "at datasheet bandwidth, %s on %s", p.algorithm ? p.algorithm : "",
                          t->x->s->system.level[p.level].name),
                 p.ideal[p.level], "s", "topology");
}

static void tell_piece(teller *t, sm_why *to, int index) {
    const piece *p = &t->x->v->piece[index];
    piece_price price;
    piece_price_of(t->x, index, &price);
    double one =
        price.weights + price.kv + price.compute + price.scans + price.other + price.network;
    double n = piece_passes(t->x, index, true);
    const char *passes = sm_textf(&t->r, "%.6g x (ops + what shows of its collectives)", n);
    sm_why *w = sm_page_why(&t->r, to, p->part.program.name, passes, n * one, "s");
    for (int i = 0; i < p->ops; i++) tell_op(t, w, index, &p->op[i]);
    for (int i = 0; i < p->part.comms; i++) tell_comm(t, w, index, &p->part.comm[i]);
}

/* ---- a step ---- */

static void tell_lower(teller *t, sm_why *to, const sm_step_price *p) {
    const sm_chip *chip = &t->x->s->system.chip;
    sm_dtype used;
    double peak = sm_chip_peak(chip, t->x->s->job.dtypes.compute, &used);
    sm_why *w = sm_page_why(&t->r, to, "lower bound",
                            "max(cache + max(weights, matmul FLOPs), network), at datasheet rates",
                            p->lower_s, "s");
    sm_page_leaf(&t->r, w, "reading the weights", p->bound_weights_s, "s",
                 "bytes of a chip / HBM bandwidth");
    sm_page_leaf(&t->r, w, "reading the cache", p->bound_kv_s, "s",
                 "bytes of a chip / HBM bandwidth");
    sm_page_leaf(&t->r, w, "FLOPs", p->bound_compute_s, "s", "FLOPs of a chip / peak");
    sm_page_leaf(&t->r, w, "network", p->bound_network_s, "s",
                 "bytes of the busiest level / its bandwidth");
    sm_page_leaf(&t->r, w, "HBM bandwidth", chip->memory_bytes_per_s.value, "B/s",
                 chip->memory_bytes_per_s.source);
    sm_page_leaf(&t->r, w, "peak", peak, "FLOP/s", chip->flops_per_s[used].source);
}

static void tell_step(teller *t, sm_why *to, const char *label, const sm_step_price *price) {
    const step *x = t->x;
    sm_step_price own;
    step_price(x, &own);
    sm_why *w =
        sm_page_why(&t->r, to, label, "pieces + sends between stages + overhead of the engine",
                    own.expected_s, "s");
    for (int i = 0; i < x->v->pieces; i++)
        if (i != head_piece(x->s) || x->sampled.sequences > 0) tell_piece(t, w, i);
    if (x->plan->pipeline > 1)
        sm_page_leaf(&t->r, w, "sends between stages",
                     (x->plan->pipeline - 1) * send_price(x).expected, "s",
                     "topology and calibration");
    sm_page_leaf(&t->r, w, "overhead of the engine", x->s->calibration->step_overhead_s, "s",
                 x->s->calibration->source);
    if (step_host_s(x) > 0)
        sm_page_leaf(&t->r, w, "sequences on the host", step_host_s(x), "s",
                     "sequences of a rank that decode x host_s_per_sequence of the engine");
    tell_lower(t, w, price);
}

static void tell_memory(teller *t, sm_why *to, const sm_serve_memory *m) {
    sm_why *w = sm_page_why(&t->r, to, "memory of the fullest chip",
                            "params + cache + activations + buffers", m->total, "B");
    sm_page_leaf(&t->r, w, "params", m->params, "B",
                 "weights in their dtype over the axes that shard them");
    sm_page_leaf(&t->r, w, "cache", m->kv, "B", "sequences at full length, windows bounded");
    sm_page_leaf(&t->r, w, "activations", m->activations, "B",
                 "the largest op of a step, and logits");
    sm_page_leaf(&t->r, w, "buffers", m->buffers, "B", "gathered weights");
    sm_page_leaf(&t->r, w, "capacity", m->capacity, "B",
                 sm_chip_memory(&t->x->s->system.chip)->source);
}

static void tell_first(teller *t, sm_why *to, const sm_serve_point *p) {
    const sm_serve_job *job = &t->x->s->job;
    sm_why *w =
        sm_page_why(&t->r, to, "time to first token",
                    "admission + requests before + prefill of one prompt", p->ttft_s[1], "s");
    double admission = job->alone ? 0 : job->software->admission_s;
    sm_page_leaf(&t->r, w, "admission", admission, "s", job->software->title);
    sm_page_leaf(&t->r, w, "prefills of requests before it",
                 p->ttft_s[1] - p->ttft_alone_s[1] - admission, "s",
                 "simulated: prompts that come together share steps; a tenth are an opening burst");
    tell_step(t, w, "prefill of one prompt", &p->prefill);
}

sm_status point_step(sm_serve *s, const sm_serve_point *p, bool decode, step *x, sm_error *err) {
    sm_step_batch b = point_batch(1, s->job.prompt - s->job.prefix, s->job.prefix);
    if (decode) {
        b = point_batch(point_group(&p->plan, p->batch), p->depth + 1, point_context(s));
        b.sampled *= p->depth + 1;
    }
    return step_prepare(s, &p->plan, &b, x, err);
}

sm_why *explain_point(sm_serve *s, const sm_serve_point *p, sm_arena *arena, sm_error *err) {
    step x;
    teller t = {&x, {.arena = arena}};
    if (point_step(s, p, true, &x, err)) return NULL;
    bool drafts = p->depth > 0;
    sm_why *root = sm_page_why(&t.r, NULL, "time per token",
                               drafts ? "step / tokens of a step + prefills between"
                                      : "step + prefills between",
                               p->tpot_s[1], "s");
    tell_step(&t, root, drafts ? "step that verifies" : "decode step", &p->decode);
    if (drafts)
        sm_page_leaf(&t.r, root, "tokens of a step", p->tokens_per_step, "",
                     "(1 - a^(k+1)) / (1 - a), Leviathan et al. 2023");
    if (!s->job.alone)
        sm_page_leaf(&t.r, root, "prefills between two tokens", p->tpot_s[1] - p->tpot_alone_s[1],
                     "s", "what the prefill of a request adds to the steps x sequences / output");
    tell_memory(&t, root, &p->memory);
    if (point_step(s, p, false, &x, err)) return NULL;
    tell_first(&t, root, p);
    return t.r.out_of_memory ? NULL : root;
}

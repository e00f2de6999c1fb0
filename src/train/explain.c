/* The derivation of a plan's price: the same functions that priced it, with their inputs and
 * sources. */
#include "detail.h"
#include "scalemodel/page.h"

typedef struct teller {
    const sm_train *t;
    const sm_plan *plan;
    const pieces *p;
    stages *s;
    sm_report r; /* of which the arena alone is used, and whether memory ran out */
} teller;

/* ---- ops and collectives of a piece ---- */

static void tell_op(teller *x, sm_why *to, const sm_work *w) {
    static const char *const formulas[] = {
        "max(FLOPs / (peak x efficiency of the shape), bytes / (HBM x efficiency)) + launch",
        "max(FLOPs / (peak x attention efficiency), bytes / (HBM x efficiency)) + launch",
        "max(vector FLOPs / vector peak, bytes / (HBM x efficiency)) + launch",
        "bytes / (HBM x efficiency) + launch",
        "max(FLOPs / (peak x efficiency) + vector FLOPs / peak, bytes / its rate) + launch"};
    static const char cast[] = "max(FLOPs / (peak x efficiency of the shape), bytes / (HBM x "
                               "efficiency)) + launch + casts";
    _Static_assert(sizeof formulas / sizeof *formulas == SM_OP_KERNEL + 1, "one of each kind");
    priced p = piece_work_price(x->t, x->p->v, w, &x->p->d, x->plan->dtype);
    bool casts = w->casts && w->linear && sm_dtype_bytes(x->plan->dtype) <= 1;
    sm_why *op = sm_page_why(&x->r, to, w->name, casts ? cast : formulas[w->kind], p.expected, "s");
    if (p.flops > 0) sm_page_leaf(&x->r, op, "FLOPs", p.flops, "FLOP", "the partitioned program");
    sm_page_leaf(&x->r, op, "bytes through HBM", p.bytes, "B", "the partitioned program");
}

static void tell_comm(teller *x, sm_why *to, int index, const sm_comm *c,
                      const sm_timed_curve *curve) {
    const sm_timed_line *line;
    double bytes = comm_bytes(x->t, index, c, &x->p->d, x->plan);
    double s = sm_timed_curve_s(curve, bytes, &line);
    if (!line) return;
    static const char *const streams[] = {"on the path", "prefetched", "behind the backward pass",
                                          "under attention"};
    const char *label = sm_textf(&x->r, "%s of %s", sm_collective_name(c->op), c->array);
    const char *name = sm_textf(&x->r, "%s, %s", label, streams[c->stream]);
    sm_why *w = sm_page_why(&x->r, to, name, "latency + bytes x seconds per byte", s, "s");
    sm_page_leaf(&x->r, w, "bytes", bytes, "B", "the partitioned program");
    sm_page_leaf(&x->r, w,
                 sm_textf(&x->r, "seconds per byte, %s on %s", line->algorithm,
                          x->t->system.level[line->level].name),
                 line->line.s_per_byte, "s/B", "topology and calibration");
    sm_page_leaf(&x->r, w, "latency", line->line.latency_s, "s", "topology");
}

static void tell_way(teller *x, sm_why *to, int index, int way) {
    const piece *one = &x->p->v->piece[index];
    const piece_pass *q = &x->p->pass[index];
    double s = way ? q->expected.backward_input + q->expected.backward_weight : q->expected.forward;
    const char *label =
        sm_textf(&x->r, "%s, %s", one->part.program.name, way ? "backward" : "forward");
    sm_why *w = sm_page_why(&x->r, to, label,
                            "ops + collectives on the path + streams that outlast the ops", s, "s");
    int set = index < x->t->kinds ? set_of(x->plan) : SM_RECOMPUTE_NONE;
    sm_bits again = piece_again(x->t, one, set);
    for (int i = 0; i < one->part.works; i++) {
        const sm_work *work = &one->part.work[i];
        bool backward = work->phase != SM_PHASE_FORWARD;
        if (backward == (way == 1)) tell_op(x, w, work);
        else if (way == 1 && (again >> work->op & 1)) tell_op(x, w, work); /* recomputed */
    }
    for (int i = 0; i < one->part.comms; i++)
        if ((one->part.comm[i].phase != SM_PHASE_FORWARD) == (way == 1) &&
            !sm_comm_is_spared(&one->part.comm[i], kept_gathered(x->t, x->plan)))
            for (int n = comm_times(x->t, &one->part.program, &one->part.comm[i]); n > 0; n--)
                tell_comm(x, w, index, &one->part.comm[i], x->p->at.slot[one->sent[i].slot]);
}

/* ---- the step ---- */

static void tell_pipeline(teller *x, sm_why *to) {
    stages_chunks(x->t, x->plan, x->p, EXPECTED, x->s);
    sm_pipeline_time time = stages_run(x->s);
    const char *label = x->plan->pipeline > 1 ? sm_textf(&x->r, "pipeline, schedule %s",
                                                         sm_schedule_names[x->plan->schedule])
                                              : "microbatches, one after the other";
    sm_why *w =
        sm_page_why(&x->r, to, label,
                    x->plan->pipeline > 1 ? "the schedule simulated op by op over its chunks"
                                          : "microbatches x (forward + backward)",
                    time.total_s, "s");
    sm_page_leaf(&x->r, w, "microbatches", microbatches_of(x->t, x->plan), "",
                 "batch / (replicas x microbatch)");
    if (x->plan->pipeline > 1) {
        sm_page_leaf(&x->r, w, "stages", x->plan->pipeline, "", "the plan");
        sm_page_leaf(&x->r, w, "busiest stage at work", time.busiest_s, "s", "the schedule");
        sm_page_leaf(&x->r, w, "handing an activation on", x->p->send_s, "s",
                     "topology and calibration");
    }
    for (int i = 0; i < x->p->v->pieces; i++)
        for (int way = 0; way < 2; way++) tell_way(x, w, i, way);
}

static void tell_step(teller *x, sm_why *to, const sm_price_of_plan *price) {
    sm_why *w = sm_page_why(
        &x->r, to, "step time, expected",
        "pipeline + what the end of the step shows of reduction, gathering, update + overhead",
        price->expected_s, "s");
    tell_pipeline(x, w);
    step_end e = step_end_of(x->t, x->plan, x->p, x->s);
    step_close(x->t, x->plan, stages_run(x->s).total_s, &e);
    sm_page_leaf(&x->r, w, "gradient reduction shown", e.reduce_s, "s",
                 "streams beside the last backward pass");
    sm_page_leaf(&x->r, w, "weight gathering shown", e.gather_s, "s",
                 "streams beside the first forward pass");
    sm_page_leaf(&x->r, w, "optimizer update", e.update_s, "s",
                 "bytes of state / memory bandwidth");
    if (e.tie_s > 0)
        sm_page_leaf(&x->r, w,
                     e.share_sends > 0 ? "weights that stages share"
                                       : "tied embedding, first and last stage",
                     e.tie_s, "s", "topology");
    sm_page_leaf(&x->r, w, "step overhead", e.other_s, "s", x->t->calibration->source);
}

static void tell_lower(teller *x, sm_why *to, const sm_price_of_plan *p) {
    sm_why *w =
        sm_page_why(&x->r, to, "step time, lower bound",
                    "max(pipeline at peak FLOP/s, HBM, each network level)", p->lower_s, "s");
    sm_why *math = sm_page_why(&x->r, w, "matrix FLOPs of the busiest stage", "FLOPs / peak",
                               p->bound_math_s, "s");
    sm_dtype used;
    double peak = sm_chip_peak(&x->t->system.chip, x->plan->dtype, &used);
    sm_page_leaf(&x->r, math, "peak", peak, "FLOP/s", x->t->system.chip.flops_per_s[used].source);
    sm_why *memory =
        sm_page_why(&x->r, w, "weights through HBM", "bytes / bandwidth", p->bound_memory_s, "s");
    sm_page_leaf(&x->r, memory, "memory bandwidth", x->t->system.chip.memory_bytes_per_s.value,
                 "B/s", x->t->system.chip.memory_bytes_per_s.source);
    for (int l = 0; l < x->t->system.levels; l++)
        if (p->bound_network_s[l] > 0)
            sm_page_leaf(&x->r, w, sm_textf(&x->r, "network %s", x->t->system.level[l].name),
                         p->bound_network_s[l], "s",
                         "bytes of its collectives / datasheet bandwidth");
}

static void tell_memory(teller *x, sm_why *to, const sm_memory *m) {
    sm_why *w =
        sm_page_why(&x->r, to, "memory of the fullest stage",
                    "params + gradients + optimizer + activations + buffers", m->total, "B");
    sm_page_leaf(&x->r, w, "stage", m->stage, "", "the fullest of all");
    sm_page_leaf(&x->r, w, "params", m->params, "B",
                 x->t->weight_bytes > 2 ? "4 bytes each over tensor, expert, fsdp and stage"
                                        : "2 bytes each over tensor, expert, fsdp and stage");
    sm_page_leaf(&x->r, w, "gradients", m->gradients, "B", "as params, in the gradient dtype");
    sm_page_leaf(&x->r, w, "optimizer", m->optimizer, "B",
                 "state of the optimizer over its shards");
    sm_page_leaf(&x->r, w, "activations", m->activations, "B",
                 x->t->software.one_by_one
                     ? "arrays that live at the highest moment of the step"
                     : "arrays the backward pass reads, times microbatches in flight");
    sm_page_leaf(&x->r, w, "buffers", m->buffers, "B",
                 x->t->software.one_by_one
                     ? "gathered arrays, gradients of activations, messages, scratch"
                     : "gathered weights, gradient of logits, workspaces, fragmentation");
    sm_page_leaf(&x->r, w, "capacity", m->capacity, "B",
                 "the chip's memory less what context and communicators hold");
}

sm_why *explain_plan(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                     const sm_price_of_plan *price, sm_arena *arena) {
    teller x = {t, plan, p, s, {.arena = arena}};
    sm_why *root = sm_page_why(&x.r, NULL, "plan", NULL, price->expected_s, "s");
    tell_step(&x, root, price);
    tell_lower(&x, root, price);
    tell_memory(&x, root, &price->memory);
    return x.r.out_of_memory ? NULL : root;
}

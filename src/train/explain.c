/* The derivation of a plan's price: the same functions that priced it, with their inputs and
 * sources. */
#include <stdio.h>
#include <string.h>

#include "detail.h"

typedef struct teller {
    const sm_train *t;
    const sm_plan *plan;
    const pieces *p;
    stages *s;
    sm_arena *arena;
    bool failed;
} teller;

static sm_why *node(teller *x, const char *label, const char *formula, double value,
                    const char *unit) {
    sm_why *w = sm_why_node(x->arena, label, formula, value, unit);
    if (!w) x->failed = true;
    return w;
}

static void leaf(teller *x, sm_why *to, const char *label, double value, const char *unit,
                 const char *source) {
    sm_why *w = sm_why_leaf(x->arena, label, value, unit, source);
    if (!w) x->failed = true;
    sm_why_add(to, w);
}

static const char *text(teller *x, const char *format, const char *a, const char *b) {
    const char *s = sm_arena_printf(x->arena, format, a, b);
    if (!s) x->failed = true;
    return s ? s : "";
}

/* ---- ops and collectives of a piece ---- */

static void tell_op(teller *x, sm_why *to, const sm_work *w) {
    static const char *const formulas[] = {
        "max(FLOPs / (peak x efficiency of the shape), bytes / (HBM x efficiency)) + launch",
        "max(FLOPs / (peak x attention efficiency), bytes / (HBM x efficiency)) + launch",
        "max(vector FLOPs / vector peak, bytes / (HBM x efficiency)) + launch",
        "bytes / (HBM x efficiency) + launch",
        "max(FLOPs / (peak x efficiency) + vector FLOPs / peak, bytes / its rate) + launch"};
    _Static_assert(sizeof formulas / sizeof *formulas == SM_OP_KERNEL + 1, "one of each kind");
    priced p = piece_work_price(x->t, x->p->v, w, &x->p->d, x->plan->dtype);
    sm_why *op = node(x, w->name, formulas[w->kind], p.expected, "s");
    if (p.flops > 0) leaf(x, op, "FLOPs", p.flops, "FLOP", "the partitioned program");
    leaf(x, op, "bytes through HBM", p.bytes, "B", "the partitioned program");
    sm_why_add(to, op);
}

static void tell_comm(teller *x, sm_why *to, const sm_comm *c, const sm_timed_curve *curve) {
    const sm_timed_line *line;
    double bytes = comm_bytes(c, &x->p->d, x->plan);
    double s = sm_timed_curve_s(curve, bytes, &line);
    if (!line) return;
    static const char *const streams[] = {"on the path", "prefetched", "behind the backward pass",
                                          "under attention"};
    const char *label = text(x, "%s of %s", sm_collective_name(c->op), c->array);
    const char *name = text(x, "%s, %s", label, streams[c->stream]);
    sm_why *w = node(x, name, "latency + bytes x seconds per byte", s, "s");
    leaf(x, w, "bytes", bytes, "B", "the partitioned program");
    leaf(x, w,
         text(x, "seconds per byte, %s on %s", line->algorithm,
              x->t->system.level[line->level].name),
         line->line.s_per_byte, "s/B", "topology and calibration");
    leaf(x, w, "latency", line->line.latency_s, "s", "topology");
    sm_why_add(to, w);
}

static void tell_way(teller *x, sm_why *to, int index, int way) {
    const piece *one = &x->p->v->piece[index];
    const piece_pass *q = &x->p->pass[index];
    double s = way ? q->expected.backward_input + q->expected.backward_weight : q->expected.forward;
    const char *label = text(x, "%s, %s", one->part.program.name, way ? "backward" : "forward");
    sm_why *w =
        node(x, label, "ops + collectives on the path + streams that outlast the ops", s, "s");
    uint64_t again = one->set[index < x->t->kinds ? set_of(x->plan) : SM_RECOMPUTE_NONE].again;
    for (int i = 0; i < one->part.works; i++) {
        const sm_work *work = &one->part.work[i];
        bool backward = work->phase != SM_PHASE_FORWARD;
        if (backward == (way == 1)) tell_op(x, w, work);
        else if (way == 1 && (again >> work->op & 1)) tell_op(x, w, work); /* recomputed */
    }
    for (int i = 0; i < one->part.comms; i++)
        if ((one->part.comm[i].phase != SM_PHASE_FORWARD) == (way == 1) &&
            !sm_comm_is_spared(&one->part.comm[i], x->plan->regather))
            tell_comm(x, w, &one->part.comm[i], x->p->at.slot[one->slot[i]]);
    sm_why_add(to, w);
}

/* ---- the step ---- */

static sm_why *tell_pipeline(teller *x) {
    stages_chunks(x->t, x->plan, x->p, EXPECTED, x->s);
    sm_pipeline_time time = stages_run(x->plan, x->s, true);
    const char *label = x->plan->pipeline > 1 ? text(x, "pipeline, schedule %s%s",
                                                     sm_schedule_names[x->plan->schedule], "")
                                              : "microbatches, one after the other";
    sm_why *w = node(x, label,
                     x->plan->pipeline > 1 ? "the schedule simulated op by op over its chunks"
                                           : "microbatches x (forward + backward)",
                     time.total_s, "s");
    leaf(x, w, "microbatches", microbatches_of(x->t, x->plan), "",
         "batch / (replicas x microbatch)");
    if (x->plan->pipeline > 1) {
        leaf(x, w, "stages", x->plan->pipeline, "", "the plan");
        leaf(x, w, "busiest stage at work", time.busiest_s, "s", "the schedule");
        leaf(x, w, "handing an activation on", x->p->send_s, "s", "topology and calibration");
    }
    for (int i = 0; i < x->p->v->pieces; i++)
        for (int way = 0; way < 2; way++) tell_way(x, w, i, way);
    return w;
}

static sm_why *tell_step(teller *x, const sm_price_of_plan *price) {
    sm_why *w =
        node(x, "step time, expected",
             "pipeline + what the end of the step shows of reduction, gathering, update + overhead",
             price->expected_s, "s");
    sm_why_add(w, tell_pipeline(x));
    step_end e = step_end_of(x->t, x->plan, x->p, x->s);
    step_close(x->t, x->plan, stages_run(x->plan, x->s, true).total_s, &e);
    leaf(x, w, "gradient reduction shown", e.reduce_s, "s",
         "streams beside the last backward pass");
    leaf(x, w, "weight gathering shown", e.gather_s, "s", "streams beside the first forward pass");
    leaf(x, w, "optimizer update", e.update_s, "s", "bytes of state / memory bandwidth");
    if (e.tie_s > 0)
        leaf(x, w,
             e.share_sends > 0 ? "weights that stages share"
                               : "tied embedding, first and last stage",
             e.tie_s, "s", "topology");
    leaf(x, w, "step overhead", e.other_s, "s", x->t->calibration->source);
    return w;
}

static sm_why *tell_lower(teller *x, const sm_price_of_plan *p) {
    sm_why *w = node(x, "step time, lower bound",
                     "max(pipeline at peak FLOP/s, HBM, each network level)", p->lower_s, "s");
    sm_why *math =
        node(x, "matrix FLOPs of the busiest stage", "FLOPs / peak", p->bound_math_s, "s");
    sm_dtype used;
    double peak = sm_chip_peak(&x->t->system.chip, x->plan->dtype, &used);
    leaf(x, math, "peak", peak, "FLOP/s", x->t->system.chip.flops_per_s[used].source);
    sm_why_add(w, math);
    sm_why *memory = node(x, "weights through HBM", "bytes / bandwidth", p->bound_memory_s, "s");
    leaf(x, memory, "memory bandwidth", x->t->system.chip.memory_bytes_per_s.value, "B/s",
         x->t->system.chip.memory_bytes_per_s.source);
    sm_why_add(w, memory);
    for (int l = 0; l < x->t->system.levels; l++)
        if (p->bound_network_s[l] > 0)
            leaf(x, w, text(x, "network %s%s", x->t->system.level[l].name, ""),
                 p->bound_network_s[l], "s", "bytes of its collectives / datasheet bandwidth");
    return w;
}

static sm_why *tell_memory(teller *x, const sm_memory *m) {
    sm_why *w = node(x, "memory of the fullest stage",
                     "params + gradients + optimizer + activations + buffers", m->total, "B");
    leaf(x, w, "stage", m->stage, "", "the fullest of all");
    leaf(x, w, "params", m->params, "B",
         x->t->software.single ? "4 bytes each over tensor, expert, fsdp and stage"
                               : "2 bytes each over tensor, expert, fsdp and stage");
    leaf(x, w, "gradients", m->gradients, "B", "as params, in the gradient dtype");
    leaf(x, w, "optimizer", m->optimizer, "B", "state of the optimizer over its shards");
    leaf(x, w, "activations", m->activations, "B",
         x->t->software.one_by_one
             ? "arrays that live at the highest moment of the step"
             : "arrays the backward pass reads, times microbatches in flight");
    leaf(x, w, "buffers", m->buffers, "B",
         x->t->software.one_by_one
             ? "gathered arrays, gradients of activations, messages, scratch"
             : "gathered weights, gradient of logits, workspaces, fragmentation");
    leaf(x, w, "capacity", m->capacity, "B",
         "the chip's memory less what context and communicators hold");
    return w;
}

sm_why *explain_plan(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                     const sm_price_of_plan *price, sm_arena *arena) {
    teller x = {t, plan, p, s, arena, false};
    sm_why *root = node(&x, "plan", NULL, price->expected_s, "s");
    sm_why_add(root, tell_step(&x, price));
    sm_why_add(root, tell_lower(&x, price));
    sm_why_add(root, tell_memory(&x, &price->memory));
    return x.failed ? NULL : root;
}

/* One microbatch through one piece: streams laid over each other. Of compute C and a stream S that
 * runs beside it, min(C, S) is hidden to the calibrated part o: C + S - o min(C, S). With o = 1
 * this is max(C, S), the book's bound for collectives that overlap ("How To Scale Your Model",
 * chapter on training). */
#include <assert.h>

#include "detail.h"

/* Work beside a stream: what overlaps still costs something, the cores and the memory traffic of
 * the collective. */
static double overlapped(const sm_train *t, double compute, double stream) {
    double hidden = stream < compute ? stream : compute;
    return compute + stream - hidden * t->calibration->overlap;
}

static double backward_of(const piece_time *time, int set, bool split) {
    return split ? time->backward_input + time->again[set]
                 : time->backward_input + time->backward_weight + time->again[set];
}

/* What a collective adds to the compute that it may run beside, and to idle time: of that it takes
 * what it needs. */
static double exposed(const sm_train *t, bool beside, double comm, double compute, double *idle) {
    if (!beside) return comm;
    double lent = smaller(*idle, larger(0, comm - compute));
    *idle -= lent;
    return overlapped(t, compute + lent, comm) - (compute + lent);
}

/* Seconds of one direction, with those of attention and of waiting for the host in them. */
typedef struct under {
    double compute, attention, idle;
} under;

/* Gathers and reductions are on the path of the activations: on a torus the compiler runs them as
 * collective matmuls, a ring step under each slice of the product (the book, chapter on sharding);
 * so do Transformer Engine's user buffers, where a code base has them and attention is not latent.
 * All-to-alls of routed tokens hide under the dual pipeline alone, where the microbatch of the
 * other direction computes meanwhile (DeepSeek-V3, arXiv 2412.19437 section 3.2.1). Keys travel
 * around the ring while attention works on those at hand. Each hides under compute of its own, so
 * that a quicker chip is never slower, and what is left of it while the chip waits for the host. */
static void expose(const sm_train *t, const sm_plan *plan, under u, const comm_way *c, int way,
                   piece_exposed *out) {
    const sm_software_memory *is = &t->software_memory;
    bool buffers = is->tensor_beside && t->model.kind[0].attention != SM_ATTENTION_MLA;
    bool beside = t->system.torus_dims > 0 || buffers;
    bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE || is->experts_beside;
    double matmuls = larger(0, u.compute - u.attention - u.idle);
    double keys = is->keys_whole ? u.attention / plan->context : u.attention;
    out->blocking[way] = exposed(t, beside, c->blocking, matmuls, &u.idle);
    out->exchange[way] = exposed(t, dual, c->exchange, larger(0, matmuls - c->blocking), &u.idle);
    out->ring[way] = exposed(t, true, c->ring, keys, &u.idle);
}

/* split: weight gradients are put off, and are no part of the backward pass that hides. */
static piece_exposed exposed_of(const sm_train *t, const piece_time *time, const comm_way comm[2],
                                int set, const sm_plan *plan, bool split) {
    piece_exposed e;
    const double weights_idle = split ? 0 : time->idle[SM_PHASE_BACKWARD_WEIGHT];
    const under forward = {time->forward, time->ring[0], time->idle[SM_PHASE_FORWARD]},
                back = {backward_of(time, set, split), time->ring[1],
                        time->idle[SM_PHASE_BACKWARD_INPUT] + weights_idle};
    expose(t, plan, forward, &comm[0], 0, &e);
    expose(t, plan, back, &comm[1], 1, &e);
    return e;
}

piece_exposed piece_exposed_of(const sm_train *t, const piece_time *time, const piece_comm *comm,
                               int set, const sm_plan *plan) {
    const comm_way sums[2] = {piece_comm_way(t, comm, 0, set, plan),
                              piece_comm_way(t, comm, 1, set, plan)};
    return exposed_of(t, time, sums, set, plan, false);
}

/* One direction: work, its exposed collectives, and streams beside both; no level is busy for
 * longer. */
static double pass_of(const sm_train *t, double compute, const piece_exposed *e, int way,
                      const comm_way *comm, double offload_s) {
    double path = compute + e->blocking[way] + e->exchange[way] + e->ring[way];
    double s = overlapped(t, path, larger(comm->busy, offload_s));
    return larger(s, comm->all);
}

void piece_pass_compute(const sm_train *t, const piece_time *time, const comm_way sums[2], int set,
                        const sm_plan *plan, double offload_s, piece_pass *out) {
    assert(set >= 0 && set < MAX_SETS);
    /* Weight gradients that are put off are plain work; what is exposed belongs to the chain of
     * input gradients. Both halves only shrink on a better machine. */
    bool split = plan->schedule >= SM_SCHEDULE_ZB_H1;
    double chain = backward_of(time, set, split);
    piece_exposed e = exposed_of(t, time, sums, set, plan, split);
    out->expected.forward = pass_of(t, time->forward, &e, 0, &sums[0], offload_s);
    out->expected.backward_input = pass_of(t, chain, &e, 1, &sums[1], offload_s);
    out->expected.backward_weight = split ? time->backward_weight : 0;
}

static double serial_s(const comm_way *c) {
    return c->blocking + c->exchange + c->ring + c->serial;
}

void piece_pass_parts(const sm_train *t, const piece_time *time, const piece_comm *comm, int set,
                      const sm_plan *plan, double offload_s, piece_pass *out) {
    const pass *all = &out->expected;
    const comm_way sums[2] = {piece_comm_way(t, comm, 0, set, plan),
                              piece_comm_way(t, comm, 1, set, plan)};
    out->compute = time->forward + backward_of(time, set, false);
    out->memory = time->memory[0] + time->memory[1] + time->again_memory[set];
    out->exposed = all->forward + (all->backward_input + all->backward_weight) - out->compute;
    out->latency = sums[0].latency + sums[1].latency;
    out->serial.forward = time->forward + serial_s(&sums[0]) + offload_s;
    bool split = all->backward_weight > 0;
    double chain = backward_of(time, set, split);
    out->serial.backward_weight = all->backward_weight;
    out->serial.backward_input = chain + serial_s(&sums[1]) + offload_s;
    out->math.forward = time->math[0];
    out->math.backward_weight = 0;
    out->math.backward_input = time->math[1] + time->math_again[set];
}

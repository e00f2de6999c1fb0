/* One microbatch through one piece: streams laid over each other. */
#include "detail.h"

static double larger(double a, double b) { return a > b ? a : b; }

/* Work beside a stream: what overlaps still costs something, the cores and the memory traffic of
 * the collective. */
static double overlapped(const sm_train *t, double compute, double stream) {
    double hidden = stream < compute ? stream : compute;
    return compute + stream - hidden * t->calibration->overlap;
}

/* Gathers and reductions on the path of the activations. On a torus the compiler runs them as
 * collective matmuls, a ring step under each slice of the product (the book, chapter on sharding);
 * on switched systems they show. */
static double exposed_blocking(const sm_train *t, double comm, double compute) {
    return t->system.torus_dims > 0 ? overlapped(t, compute, comm) - compute : comm;
}

/* All-to-alls of routed tokens show too, but under the dual pipeline, where the microbatch of the
 * other direction computes meanwhile (DeepSeek-V3, arXiv 2412.19437 section 3.2.1). */
static double exposed_exchange(const sm_train *t, const sm_plan *plan, double comm,
                               double compute) {
    bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE;
    return dual ? overlapped(t, compute, comm) - compute : comm;
}

/* Keys travel around the ring while attention works on those at hand. */
static double exposed_ring(const sm_train *t, double comm, double attention) {
    return overlapped(t, attention, comm) - attention;
}

static double busiest(const sm_train *t, const double *busy, double scale) {
    double most = 0;
    for (int l = 0; l < t->system.levels; l++) most = larger(most, busy[l] * scale);
    return most;
}

piece_exposed piece_exposed_of(const sm_train *t, const piece_time *time, const piece_comm *comm,
                               int set, const sm_plan *plan) {
    double backward = time->backward_input + time->backward_weight + time->again[set];
    return (piece_exposed){
        {exposed_blocking(t, comm->blocking[0], time->forward),
         exposed_blocking(t, comm->blocking[1] + comm->again_blocking[set], backward)},
        {exposed_exchange(t, plan, comm->exchange[0], time->forward),
         exposed_exchange(t, plan, comm->exchange[1] + comm->again_exchange[set], backward)},
        {exposed_ring(t, comm->ring[0], time->ring_forward),
         exposed_ring(t, comm->ring[1] + comm->again_ring[set], time->ring_backward)}};
}

void piece_pass_compute(const sm_train *t, const piece_time *time, const piece_comm *comm, int set,
                        const sm_plan *plan, double offload_s, piece_pass *out) {
    double again = time->again[set];
    double backward = time->backward_input + time->backward_weight + again;
    piece_exposed e = piece_exposed_of(t, time, comm, set, plan);
    double x_forward = e.blocking[0] + e.exchange[0] + e.ring[0];
    double x_backward = e.blocking[1] + e.exchange[1] + e.ring[1];
    double forward_all =
        overlapped(t, time->forward + x_forward, larger(busiest(t, comm->busy[0], 1), offload_s));
    double backward_all =
        overlapped(t, backward + x_backward, larger(busiest(t, comm->busy[1], 1), offload_s));
    out->expected.forward = forward_all;
    out->expected.backward_weight = time->backward_weight;
    out->expected.backward_input = backward_all - time->backward_weight;
    out->compute = time->forward + backward;
    out->memory = time->forward_memory + time->backward_memory + time->again_memory[set];
    out->exposed = forward_all + backward_all - out->compute;
    out->serial.forward = time->forward + comm->blocking[0] + comm->exchange[0] + comm->ring[0] +
                          comm->serial[0] + offload_s;
    out->serial.backward_weight = time->backward_weight;
    out->serial.backward_input = time->backward_input + again + comm->blocking[1] +
                                 comm->exchange[1] + comm->ring[1] + comm->again_blocking[set] +
                                 comm->again_exchange[set] + comm->again_ring[set] +
                                 comm->serial[1] + offload_s;
    out->math.forward = time->math[0];
    out->math.backward_weight = 0;
    out->math.backward_input = time->math[1] + time->math_again[set];
}

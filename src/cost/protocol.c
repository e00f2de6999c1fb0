/* From an algorithm at datasheet rates to the time a collective library takes.
 *
 * Across switches a library (NCCL, RCCL) chooses between protocols. LL sends a flag with every four
 * bytes, so half of what crosses the link is data, and needs no other synchronisation: a step costs
 * one hop. Simple moves whole chunks and fences between them: it starts later and its steps wait
 * longer, but it reaches the full rate once enough bytes are in flight. (NCCL, src/graph/tuning.cc,
 * tables of latencies and bandwidths per protocol.)
 *
 *     seconds = collective_s start + (hops + steps x handling collective_s) wait
 *             + bytes x (s_per_byte / efficiency) excess / rate  [+ fill]
 *
 * start, wait, rate and fill belong to the protocol, hops, steps and excess to the algorithm. Two
 * constants per chip remain: collective_s and network_efficiency. The figures below are one robust
 * fit to 584 NCCL timings of A100, H100, H200, B200, B300, GB200 and GB300 nodes (aiconfigurator,
 * systems data, NCCL 2.27 and 2.29, 2 to 8 ranks, 512 B to 512 MiB): median error 5 %. */
#include "group_links.h"

/* What a chip does in every step besides the hop, as a share of its start of a collective. */
static const double HANDLING = 0.059;

typedef struct protocol {
    const char *name;
    double start, wait, rate, fill;
} protocol;
/* Simple twice: while the pipeline fills, chunks grow with the message. */
static const protocol protocols[SM_MAX_TIMINGS] = {{"LL", 1.0, 1.0, 0.41, 0.0},
                                                   {"Simple, filling", 2.06, 1.97, 0.868, 0.0},
                                                   {"Simple", 2.06, 1.97, 1.0, 1.0}};

/* At the efficiency of each level: the one that is busiest by the data sheet is not always the one
 * that is slowest in fact. Levels one after the other take at most what they would at the least
 * efficiency of all. */
static double slowest_s_per_byte(const sm_algorithm *a, const sm_system *system,
                                 const sm_calibration *c) {
    double slowest = 0.0, least = 1.0;
    for (int l = 0; l < system->levels; l++) {
        double efficiency = sm_network_efficiency(system, c, (uint8_t)l);
        slowest = fmax(slowest, a->level_s_per_byte[l] / efficiency);
        if (a->level_s_per_byte[l] > 0.0) least = fmin(least, efficiency);
    }
    return a->serial ? a->line.s_per_byte / least : slowest;
}

static void time_algorithm(const sm_algorithm *a, const protocol *p, double slowest_s_per_byte,
                           const sm_calibration *c, sm_timing *timing) {
    double waits = a->hops_s + a->steps * HANDLING * c->collective_s;
    timing->protocol = p->name;
    timing->excess = a->excess / p->rate;
    timing->line.s_per_byte = slowest_s_per_byte * timing->excess;
    timing->line.latency_s =
        c->collective_s * (p->start + a->start) + p->wait * waits + p->fill * a->fill_s;
}

int sm_algorithm_timings(const sm_algorithm *a, const sm_system *system, const sm_calibration *c,
                         sm_timing timing[SM_MAX_TIMINGS]) {
    static const protocol plain = {"", 1.0, 1.0, 1.0, 0.0};
    if (a->book || a->peer_kernel) return 0;
    const sm_collective_line *measured = sm_calibration_line(c, a->op, a->members);
    if (measured) {
        /* busy are the links as long as the bytes take */
        double ideal = a->line.s_per_byte / sm_network_efficiency(system, c, a->level);
        *timing = (sm_timing){.line = measured->line,
                              .excess = ideal > 0.0 ? measured->line.s_per_byte / ideal : 1.0,
                              .protocol = "measured"};
        return 1;
    }
    double slowest = slowest_s_per_byte(a, system, c);
    bool library = a->steps > 0.0;
    int n = library ? SM_MAX_TIMINGS : 1;
    for (int i = 0; i < n; i++)
        time_algorithm(a, library ? &protocols[i] : &plain, slowest, c, &timing[i]);
    return n;
}

/* A kernel that reads its peers' memory starts in this part of a library's collective, and its
 * barriers cost this part of that again; its loads take this much longer than copies. From 392
 * timings of custom all-reduces of TensorRT-LLM and vLLM on the same nodes: median error 6 %. */
static const double PEER_START = 0.46, BARRIER = 0.54, PEER_EXCESS = 1.7;

sm_timing sm_peer_timing(const sm_algorithm *a, const sm_system *system, const sm_calibration *c,
                         double barriers) {
    double start = PEER_START * c->collective_s * a->steps * (1.0 + BARRIER * barriers);
    double efficiency = sm_network_efficiency(system, c, a->level);
    return (sm_timing){.line = {.latency_s = start + a->hops_s,
                                .s_per_byte = a->line.s_per_byte * PEER_EXCESS / efficiency},
                       .excess = PEER_EXCESS,
                       .protocol = "one kernel"};
}

/* A ring passes n - 1 members. Beyond eight, where rings grow long, trees: 7/3 steps per doubling,
 * so that eight cost the same either way (estimate: measured up to eight). */
double sm_library_steps(double n) {
    if (n <= 8.0) return n - 1.0;
    return 7.0 + 7.0 / 3.0 * log2(n / 8.0);
}

/* The time of a measured collective: the best algorithm on a system of the row's chips, run by the
 * software the row names. */
#include "measured_format.h"
#include "truth_parts.h"

/* What a benchmark's name for an operation means here. */
static const measured_collective *operation_of(const sm_collective_row *row) {
    return NAMED(measured_collectives, row->op);
}

/* The shape of a torus as the system's name ends with it ("tpu7x_2x2x1"), or nodes x chips. */
static void shape_of(const sm_truth_row *row, const sm_chip *chip, char *text, size_t size) {
    const sm_collective_row *c = &row->of.collective;
    const char *shape = strrchr(row->chip, '_');
    if (chip->fabric == SM_FABRIC_TORUS && shape)
        snprintf(text, size, "%s:%s", chip->name, shape + 1);
    else if (c->nodes > 1)
        snprintf(text, size, "%s:%dx%d", chip->name, c->nodes, c->ranks / c->nodes);
    else snprintf(text, size, "%s:%d", chip->name, c->ranks);
}

static const char *what_is_missing(const sm_truth_row *row) {
    const sm_collective_row *c = &row->of.collective;
    if (!(c->bytes > 0.0)) return "bytes: the source prints a bandwidth only";
    if (!operation_of(c)) return "this operation";
    if (c->ranks < 2) return "ranks";
    if (c->nodes > 1 && strstr(row->chip, "_multi")) return "the network between the nodes";
    if (strcmp(c->op, "send_recv") == 0 && strstr(row->chip, "pairwise"))
        return "whether the two ranks are a bridged pair";
    return NULL;
}

/* A source that rules in-network reduction out. */
static void without_reduction(const sm_truth_row *row, sm_curve *curve) {
    if (row->of.collective.in_network != SM_NO) return;
    int kept = 0;
    for (int i = 0; i < curve->n; i++)
        if (strcmp(curve->algorithm[i].name, "in-network reduction") != 0)
            curve->algorithm[kept++] = curve->algorithm[i];
    curve->n = kept;
}

/* Low-latency dispatch and combine are kernels that send and then receive: two starts. Inside a
 * node cores store to peers, in small messages; between nodes the adapters move the bytes. */
static double expert_exchange_s(const sm_curve *curve, const sm_system *system,
                                const sm_calibration *c, double bytes) {
    static const double PHASES = 2.0, STORES = 1.4;
    sm_timing timing[SM_MAX_TIMINGS];
    if (sm_algorithm_timings(&curve->algorithm[0], system, c, timing) == 0) return INFINITY;
    const sm_algorithm *a = &curve->algorithm[0];
    double plain = bytes * timing[0].line.s_per_byte / timing[0].excess;
    double hop_s = a->line.latency_s - system->chip.launch_latency_s.value;
    if (a->level > 0) return PHASES * timing[0].line.latency_s + plain;
    return PHASES * (c->collective_s + hop_s) + plain * STORES;
}

/* A call of PyTorch that is timed from the host, not as part of a graph. */
static double host_s(const sm_truth_row *row) {
    return truth_in(row, "all_reduce_bench") ? 20e-6 : 0;
}

/* Inference engines replace the library's all-reduce by a kernel of their own where it is faster:
 * TensorRT-LLM's needs no barrier, vLLM's has one before and one after. */
static double expected_s(const sm_truth_row *row, const sm_curve *curve, const sm_system *system,
                         const sm_calibration *c, double bytes, double library) {
    if (operation_of(&row->of.collective)->expert)
        return expert_exchange_s(curve, system, c, bytes);
    double barriers = truth_in(row, "trtllm") ? 0 : 1, least = library;
    for (int i = 0; i < curve->n && truth_by(row, "custom"); i++) {
        const sm_algorithm *a = &curve->algorithm[i];
        if (a->peer_kernel)
            least = fmin(least, sm_line_at(sm_peer_timing(a, system, c, barriers).line, bytes));
    }
    return least;
}

static void predict(const sm_truth_row *row, const sm_system *system, const sm_group *group,
                    const sm_calibration *c, sm_prediction *out) {
    const measured_collective *o = operation_of(&row->of.collective);
    double bytes = row->of.collective.bytes * (o->per_rank ? group->size : 1.0);
    sm_curve curve = sm_collective_curve(system, o->op, group, 1.0);
    without_reduction(row, &curve);
    sm_collective_cost cost = sm_curve_cost(&curve, system, c, bytes);
    out->lower_s = cost.lower_s;
    out->expected_s = expected_s(row, &curve, system, c, bytes, cost.expected_s + host_s(row));
    out->upper_s = o->expert ? out->expected_s : cost.upper_s + host_s(row);
}

void sm_predict_collective(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                           sm_prediction *out) {
    char text[160];
    sm_system system;
    sm_placement placement;
    /* ranks of a TPU7x are its cores, two to a chip */
    bool cores = chip->fabric == SM_FABRIC_TORUS && strcmp(chip->name, "tpu-v7") == 0;
    int members = row->of.collective.ranks, order = 0;
    if (cores && members % 2 == 0) members /= 2;
    out->regime = SM_REGIME_collective;
    out->unknown = what_is_missing(row);
    if (out->unknown) return;
    shape_of(row, chip, text, sizeof text);
    if (!truth_system_called(text, chip, &system) || system.chips < members)
        out->unknown = "a system of this shape";
    else if (!sm_placement_fill(&system, 1, &members, &order, NULL, &placement))
        out->unknown = "how the ranks lie on the system";
    else predict(row, &system, &placement.axis[0], c, out);
}

/* The curve of a collective: its algorithms as lines over bytes, and what they cost at one size. */
#include "group_links.h"

static sm_curve curve_over(const sm_group_links *links, int size, sm_collective op, double ragged,
                           const sm_permute_load *load) {
    sm_curve curve;
    curve.op = op;
    curve.n = 0;
    curve.group = (int)links->n;
    curve.ideal_s_per_byte = 0.0;
    if (links->torus_parts + links->switch_parts > 0) {
        switch (curve.op) { /* no default: the compiler tells of a collective without a price */
        case SM_ALL_GATHER:
        case SM_REDUCE_SCATTER: sm_curve_gather(&curve, links); break;
        case SM_ALL_REDUCE: sm_curve_all_reduce(&curve, links); break;
        case SM_ALL_TO_ALL: sm_curve_all_to_all(&curve, links, ragged); break;
        case SM_PERMUTE: sm_curve_permute(&curve, links, load); break;
        case SM_BROADCAST: sm_curve_broadcast(&curve, links, "in-network multicast"); break;
        case SM_REDUCE: sm_curve_broadcast(&curve, links, "in-network reduction"); break;
        case SM_COLLECTIVE_COUNT: break;
        }
    } else if (size > 1) /* a group that lies on no link exchanges nothing, and never for nothing */
        curve.algorithm[curve.n++] = (sm_algorithm){
            .name = "no link", .line = {INFINITY, 0.0}, .hops_s = INFINITY, .excess = 1.0};
    for (int i = 0; i < curve.n; i++) {
        curve.algorithm[i].op = op;
        curve.algorithm[i].members = curve.group;
    }
    return curve;
}

sm_curve sm_collective_curve(const sm_system *system, sm_collective op, const sm_group *group,
                             double ragged) {
    sm_group_links links;
    sm_group_links_of(system, group, &links);
    return curve_over(&links, group->size, op, ragged, NULL);
}

sm_curve sm_step_curve(const sm_system *system, const sm_placement *placement, const sm_mesh *mesh,
                       const sm_step *step) {
    sm_messages messages = {.pair = NULL};
    sm_group group = sm_group_join(placement, step->axes);
    if (step->op != SM_PERMUTE || sm_layout_same(mesh, &step->before, &step->after))
        return sm_collective_curve(system, step->op, &group, 1.0);
    sm_permutation_of(mesh, step->axes, &step->before, &step->after, &messages.blocks);
    return sm_permute_curve(system, placement, mesh, step->axes, &messages);
}

sm_curve sm_permute_curve(const sm_system *system, const sm_placement *placement,
                          const sm_mesh *mesh, sm_axes axes, const sm_messages *messages) {
    sm_group_links links;
    sm_permute_load load;
    sm_group group = sm_group_join(placement, axes);
    sm_group_links_of(system, &group, &links);
    sm_permute_load_of(placement, mesh, axes, messages, &links, &load);
    return curve_over(&links, group.size, SM_PERMUTE, 1.0, &load);
}

double sm_ragged_fraction(double experts_groups, double k) {
    if (experts_groups <= 1.0) return 1.0;
    return 1.0 - pow((experts_groups - 1.0) / experts_groups, k);
}

/* Tori and the innermost switch level are the inner network, everything above is scale-out. */
double sm_network_efficiency(const sm_system *system, const sm_calibration *c, uint8_t level) {
    bool inner = system->level[level].kind == SM_LEVEL_TORUS || sm_level_scales_up(system, level);
    return !inner ? c->network_efficiency_outer : c->network_efficiency_inner;
}

typedef struct choice {
    const sm_algorithm *algorithm; /* NULL: it does not run */
    sm_timing timing;
    double seconds;
} choice;

/* The protocol that takes least at this size. */
static choice best_protocol(const sm_algorithm *algorithm, const sm_system *system,
                            const sm_calibration *c, double bytes) {
    sm_timing timing[SM_MAX_TIMINGS];
    choice best = {.algorithm = NULL};
    int n = sm_algorithm_timings(algorithm, system, c, timing);
    for (int i = 0; i < n; i++) {
        double s = sm_line_at(timing[i].line, bytes);
        if (!best.algorithm || s < best.seconds) best = (choice){algorithm, timing[i], s};
    }
    return best;
}

/* The algorithm that takes least at this size; none when there is nothing to send. */
static choice best_algorithm(const sm_curve *curve, const sm_system *system,
                             const sm_calibration *c, double bytes) {
    choice best = {.algorithm = NULL};
    for (int i = 0; i < curve->n; i++) {
        choice one = best_protocol(&curve->algorithm[i], system, c, bytes);
        if (one.algorithm && (!best.algorithm || one.seconds < best.seconds)) best = one;
    }
    return best;
}

sm_collective_cost sm_curve_cost(const sm_curve *curve, const sm_system *system,
                                 const sm_calibration *c, double bytes) {
    sm_collective_cost cost = {.algorithm = "none", .protocol = "", .efficiency = 1.0};
    choice best = best_algorithm(curve, system, c, bytes);
    if (!best.algorithm) return cost;
    cost.lower_s = bytes * curve->ideal_s_per_byte;
    cost.expected_s = cost.upper_s = best.seconds;
    for (int i = 0; i < curve->n; i++)
        if (curve->algorithm[i].serial)
            cost.upper_s =
                fmax(cost.upper_s, best_protocol(&curve->algorithm[i], system, c, bytes).seconds);
    cost.latency_s = best.timing.line.latency_s;
    cost.bytes_busiest_link = bytes * best.algorithm->link_bytes_per_byte;
    cost.efficiency = sm_network_efficiency(system, c, best.algorithm->level) / best.timing.excess;
    cost.algorithm = best.algorithm->name;
    cost.protocol = best.timing.protocol;
    cost.level = best.algorithm->level;
    cost.latency_bound = 2.0 * cost.latency_s > cost.expected_s;
    return cost;
}

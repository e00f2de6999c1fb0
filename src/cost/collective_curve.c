/* The curve of a collective: its algorithms as lines over bytes, and what they cost at one size. */
#include "footprint.h"
#include <math.h>

static void add_lines(sm_curve *curve, const sm_footprint *fp, sm_collective op, double ragged) {
    if (op == SM_ALL_REDUCE) sm_curve_all_reduce(curve, fp);
    else if (op == SM_ALL_TO_ALL) sm_curve_all_to_all(curve, fp, ragged);
    else if (op == SM_PERMUTE) sm_curve_permute(curve, fp);
    else if (op == SM_BROADCAST) sm_curve_broadcast(curve, fp);
    else sm_curve_gather(curve, fp);
}

sm_curve sm_collective_curve(const sm_system *system, sm_collective op, const sm_group *group,
                             double ragged) {
    sm_curve curve;
    sm_footprint fp;
    sm_footprint_of(system, group, &fp);
    curve.op = op;
    curve.n = 0;
    curve.group = (int)fp.n;
    curve.ideal_s_per_byte = 0.0;
    if (fp.torus_parts + fp.switch_parts > 0) add_lines(&curve, &fp, op, ragged);
    return curve;
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

static double line_s(const sm_line *line, const sm_system *system, const sm_calibration *c,
                     double bytes) {
    return line->latency_s +
           bytes * line->s_per_byte / sm_network_efficiency(system, c, line->level);
}

/* The index of the lowest line at this size, -1 when there is nothing to send. */
static int best_line(const sm_curve *curve, const sm_system *system, const sm_calibration *c,
                     double bytes, double *seconds) {
    int best = -1;
    *seconds = 0.0;
    for (int i = 0; i < curve->n; i++) {
        if (curve->line[i].book) continue;
        double s = line_s(&curve->line[i], system, c, bytes);
        if (best < 0 || s < *seconds) {
            best = i;
            *seconds = s;
        }
    }
    return best;
}

double sm_curve_expected_s(const sm_curve *curve, const sm_system *system, const sm_calibration *c,
                           double bytes) {
    double seconds;
    best_line(curve, system, c, bytes, &seconds);
    return seconds;
}

sm_collective_cost sm_curve_cost(const sm_curve *curve, const sm_system *system,
                                 const sm_calibration *c, double bytes) {
    sm_collective_cost cost = {.algorithm = "none"};
    int best = best_line(curve, system, c, bytes, &cost.expected_s);
    if (best < 0) return cost;
    const sm_line *line = &curve->line[best];
    cost.lower_s = bytes * curve->ideal_s_per_byte;
    cost.upper_s = cost.expected_s;
    for (int i = 0; i < curve->n; i++)
        if (curve->line[i].serial)
            cost.upper_s = fmax(cost.upper_s, line_s(&curve->line[i], system, c, bytes));
    cost.latency_s = line->latency_s;
    cost.bytes_busiest_link = bytes * line->link_bytes_per_byte;
    cost.algorithm = line->algorithm;
    cost.level = line->level;
    cost.latency_bound = 2.0 * line->latency_s > cost.expected_s;
    return cost;
}

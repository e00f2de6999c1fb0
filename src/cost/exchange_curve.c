/* All-to-all, permute and broadcast. V is 1 in the formulas: everything is per byte of V. */
#include "footprint.h"
#include <math.h>

/* Messages over the busiest link of one part when every member sends one to every other by the
 * shortest way. Ring: n^2/8 (the message to the opposite member of an even ring goes half each
 * way), (n^2-1)/8 when n is odd. Line: the middle link separates floor(n/2) senders from ceil(n/2)
 * receivers. */
static double pairs_on_link(const sm_torus_part *t) {
    double n = t->n;
    if (t->ring) return floor(n * n / 4.0) / 2.0;
    return floor(n / 2.0) * ceil(n / 2.0);
}

static double torus_crossings(const sm_footprint *fp, int part) {
    const sm_torus_part *t = &fp->torus[part];
    return fp->torus_members / t->n * pairs_on_link(t) * t->stride;
}

/* Each member holds V/n and sends V/n^2 to each other member. Dimension-ordered routes: every pair
 * of positions of a part carries the messages of the torus_members/n chips on either side, V
 * max(A,B,C)/(4 N W_bidirectional) for a torus AxBxC of N chips. The link of a switch child carries
 * m (n - m) messages per group, m = members below it. */
static void all_to_all_busy(const sm_footprint *fp, double *busy) {
    double message = 1.0 / (fp->n * fp->n);
    for (int i = 0; i < fp->torus_parts; i++) {
        const sm_torus_part *t = &fp->torus[i];
        busy[t->level] += message * torus_crossings(fp, i) / t->link_bytes_per_s;
    }
    for (int i = 0; i < fp->switch_parts; i++) {
        const sm_switch_part *w = &fp->sw[i];
        double others = w->scale_up ? w->n - 1.0 : fp->n - w->members_below;
        busy[w->level] = message * w->members_below * others * w->groups / w->link_bytes_per_s;
    }
}

static double farthest_s(const sm_torus_part *t) {
    return (t->ring ? t->n / 2 : t->n - 1) * t->stride * t->hop_s;
}

static double all_to_all_latency_s(const sm_footprint *fp) {
    double torus = 0.0, switched = 0.0;
    for (int i = 0; i < fp->torus_parts; i++) torus += farthest_s(&fp->torus[i]);
    for (int i = 0; i < fp->switch_parts; i++)
        if (fp->sw[i].n > 1) switched = fmax(switched, fp->sw[i].hop_s);
    return fmax(torus, switched);
}

/* One part after the other: along the torus parts within a slice, then for each switch level the
 * messages that turn round there, over the busiest of the links they pass. */
static double all_to_all_serial(const sm_footprint *fp, double *latency_s) {
    double message = 1.0 / (fp->n * fp->n), sum = 0.0;
    *latency_s = 0.0;
    for (int i = 0; i < fp->torus_parts; i++) {
        sum += message * torus_crossings(fp, i) / fp->torus[i].link_bytes_per_s;
        *latency_s += farthest_s(&fp->torus[i]);
    }
    for (int i = 0; i < fp->switch_parts; i++) {
        const sm_switch_part *w = &fp->sw[i];
        double slowest = 0.0, turn = w->members_below * (w->n - 1.0);
        for (int j = sm_first_passed(fp, i); j <= i; j++) {
            const sm_switch_part *passed = &fp->sw[j];
            double chips_below = passed->members_below * passed->groups;
            slowest = fmax(slowest, chips_below / passed->link_bytes_per_s);
        }
        sum += message * turn * slowest;
        *latency_s += w->n > 1 ? w->hop_s : 0.0;
    }
    return sum;
}

/* A library sends and receives in turn: the messages of a node wait for half as many steps as a
 * ring has, those between nodes for one hop and one more per doubling. A member's own n-th is
 * copied (fit: src/cost/protocol.c). */
static void by_messages(sm_algorithm *a, const sm_footprint *fp) {
    double steps = 0.5 * (sm_library_steps(fp->n) + 1.0), hops = 0.0;
    for (int i = 0; i < fp->switch_parts; i++) {
        const sm_switch_part *w = &fp->sw[i];
        if (w->n > 1) hops += (w->scale_up ? steps : 1.0 + log2(w->n)) * w->hop_s;
    }
    sm_algorithm_by_library(a, fp, steps, hops, 1.0 + 0.69 / (fp->n - 1.0));
}

void sm_curve_all_to_all(sm_curve *curve, const sm_footprint *fp, double ragged) {
    double busy[SM_MAX_LEVELS] = {0};
    all_to_all_busy(fp, busy);
    for (int l = 0; l < SM_MAX_LEVELS; l++) busy[l] *= ragged;
    double latency = all_to_all_latency_s(fp);
    sm_algorithm *a = sm_curve_add(curve, fp, "direct", latency, busy, 0.0);
    by_messages(a, fp);
    curve->ideal_s_per_byte = a->line.s_per_byte;
    if (fp->torus_parts + fp->switch_parts > 1) {
        double serial_latency, serial = ragged * all_to_all_serial(fp, &serial_latency);
        by_messages(
            sm_curve_add(curve, fp, "one level after the other", serial_latency, busy, serial), fp);
    }
    sm_curve_add_book(curve, fp, latency, busy);
}

/* A shift by one: member r sends V to r+1 (the last to the first), parts innermost first. The last
 * of a line goes back the whole way, on links of the other direction. */
static double permute_latency_s(const sm_footprint *fp) {
    double back = 0.0, worst = 0.0;
    for (int i = 0; i < fp->torus_parts; i++) {
        const sm_torus_part *t = &fp->torus[i];
        double step = t->stride * t->hop_s;
        worst = fmax(worst, back + step);
        back += t->ring ? step : (t->n - 1) * step;
    }
    if (!fp->switch_parts) return fmax(worst, back);
    for (int i = 0; i < fp->switch_parts; i++)
        if (fp->sw[i].n > 1) worst = fmax(worst, fp->sw[i].hop_s);
    return worst;
}

void sm_curve_permute(sm_curve *curve, const sm_footprint *fp) {
    double busy[SM_MAX_LEVELS] = {0};
    for (int i = 0; i < fp->torus_parts; i++) {
        const sm_torus_part *t = &fp->torus[i];
        busy[t->level] += t->stride / t->link_bytes_per_s;
    }
    for (int i = 0; i < fp->switch_parts; i++)
        busy[fp->sw[i].level] = fp->sw[i].groups / fp->sw[i].link_bytes_per_s;
    sm_algorithm *a = sm_curve_add(curve, fp, "shift by one", permute_latency_s(fp), busy, 0.0);
    /* a lone sender and its receiver agree once and then stream (vidur, A100 and H100 nodes) */
    if (fp->torus_parts == 0) a->start = 0.4;
    curve->ideal_s_per_byte = a->line.s_per_byte;
    sm_curve_add_book(curve, fp, permute_latency_s(fp), busy);
}

/* Pipelined broadcast. Torus: along one dimension after the other, half of V each way round a ring.
 * Switches: a chain through all children in order, so that each link carries V once in and once out
 * per group. */
static void broadcast_busy(const sm_footprint *fp, double *busy) {
    for (int i = 0; i < fp->torus_parts; i++)
        busy[fp->torus[i].level] += 1.0 / fp->torus[i].rate_bytes_per_s;
    for (int i = 0; i < fp->switch_parts; i++)
        busy[fp->sw[i].level] = fp->sw[i].groups / fp->sw[i].link_bytes_per_s;
}

static double torus_walk_s(const sm_footprint *fp) {
    double s = 0.0;
    for (int i = 0; i < fp->torus_parts; i++)
        s += (fp->torus[i].n - 1) * fp->torus[i].stride * fp->torus[i].hop_s;
    return s;
}

/* Links of each level that the chain over the scale-out children passes, then the walk inside the
 * last one. */
static double chain_latency_s(const sm_footprint *fp) {
    double s = torus_walk_s(fp);
    for (int i = 0; i < fp->switch_parts; i++) {
        const sm_switch_part *w = &fp->sw[i];
        double units = w->scale_up ? 1.0 : fp->n / (w->members_below * w->n);
        s += (w->n - 1) * units * w->hop_s;
    }
    return s;
}

/* Binomial trees, outermost level first, all of V in every step and for every group that shares a
 * link. */
static void add_binomial(sm_curve *curve, const sm_footprint *fp) {
    double busy[SM_MAX_LEVELS] = {0}, latency = torus_walk_s(fp), sum = 0.0;
    for (int i = 0; i < fp->torus_parts; i++) {
        double part = 1.0 / fp->torus[i].rate_bytes_per_s;
        busy[fp->torus[i].level] += part;
        sum += part;
    }
    for (int i = 0; i < fp->switch_parts; i++) {
        double slowest = 0.0, steps = ceil(log2(fp->sw[i].n));
        for (int j = sm_first_passed(fp, i); j <= i; j++)
            slowest = fmax(slowest, fp->sw[j].groups / fp->sw[j].link_bytes_per_s);
        busy[fp->sw[i].level] = steps * slowest;
        sum += steps * slowest;
        latency += steps * fp->sw[i].hop_s;
    }
    sm_algorithm *a = sm_curve_add(curve, fp, "binomial tree", latency, busy, sum);
    sm_algorithm_by_library(a, fp, ceil(log2(fp->n)), latency, 1.0);
}

static bool switches_multicast(const sm_footprint *fp) {
    for (int i = 0; i < fp->switch_parts; i++)
        if (!fp->sw[i].in_network) return false;
    return fp->switch_parts > 0;
}

static void add_multicast(sm_curve *curve, const sm_footprint *fp, const double *busy) {
    const sm_switch_part *top = &fp->sw[fp->switch_parts - 1];
    double latency = torus_walk_s(fp) + top->hop_s;
    if (fp->switch_parts > 1 && fp->sw[0].scale_up) latency += fp->sw[0].hop_s;
    sm_curve_add(curve, fp, "in-network multicast", latency, busy, 0.0);
}

/* Every member must receive V: at the sum of its rates on a torus, over its child's link at each
 * switch level. */
static double broadcast_ideal(const sm_footprint *fp) {
    double rate = 0.0, least = 0.0;
    for (int i = 0; i < fp->torus_parts; i++) rate += fp->torus[i].rate_bytes_per_s;
    if (rate > 0.0) least = 1.0 / rate;
    for (int i = 0; i < fp->switch_parts; i++)
        if (fp->sw[i].n > 1) least = fmax(least, fp->sw[i].groups / fp->sw[i].link_bytes_per_s);
    return least;
}

void sm_curve_broadcast(sm_curve *curve, const sm_footprint *fp) {
    double busy[SM_MAX_LEVELS] = {0};
    broadcast_busy(fp, busy);
    curve->ideal_s_per_byte = broadcast_ideal(fp);
    sm_algorithm *chain =
        sm_curve_add(curve, fp, "pipelined chain", chain_latency_s(fp), busy, 0.0);
    sm_algorithm_by_library(chain, fp, sm_library_steps(fp->n), chain_latency_s(fp), 1.0);
    if (switches_multicast(fp)) add_multicast(curve, fp, busy);
    if (fp->switch_parts) add_binomial(curve, fp);
    sm_curve_add_book(curve, fp, chain_latency_s(fp), busy);
}

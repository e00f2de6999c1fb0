/* All-to-all, permute, broadcast and reduce. V is 1 in the formulas: everything is per byte of V.
 *
 * An all-to-all on a ring takes V/8 / W, W one way of a link: half of all messages cross a cut of
 * two links, a quarter of the time of an all-gather ("How To Scale Your Model", chapter on
 * sharding). Through switches each chip sends V/n^2 to each member beyond its level (its chapter on
 * GPUs). */
#include "group_links.h"
#include <assert.h>

/* Messages over the busiest link of one part when every member sends one to every other by the
 * shortest way. Ring: n^2/8 (the message to the opposite member of an even ring goes half each
 * way), (n^2-1)/8 when n is odd. Line: the middle link separates floor(n/2) senders from ceil(n/2)
 * receivers. */
static double torus_crossings(const sm_group_links *links, int part) {
    const sm_torus_part *t = &links->torus[part];
    double n = t->n;
    double pairs = t->ring ? floor(n * n / 4.0) / 2.0 : floor(n / 2.0) * ceil(n / 2.0);
    return links->torus_members / t->n * pairs * t->stride;
}

static double farthest_s(const sm_torus_part *t) {
    return (t->ring ? t->n / 2 : t->n - 1) * t->stride * t->hop_s;
}

/* One part after the other: along the torus parts within a slice, then for each switch level the
 * messages that turn round there, over the busiest of the links they pass. */
static double all_to_all_serial(const sm_group_links *links, double *latency_s) {
    double message = 1.0 / (links->n * links->n), sum = 0.0;
    *latency_s = 0.0;
    for (int i = 0; i < links->torus_parts; i++) {
        sum += message * torus_crossings(links, i) / links->torus[i].link_bytes_per_s;
        *latency_s += farthest_s(&links->torus[i]);
    }
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        double slowest = 0.0, turn = w->members_below * (w->n - 1.0);
        for (int j = sm_first_passed(links, i); j <= i; j++) {
            const sm_switch_part *passed = &links->sw[j];
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
static void by_messages(sm_algorithm *a, const sm_group_links *links) {
    double steps = 0.5 * (sm_library_steps(links->n) + 1.0), hops = 0.0;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        if (w->n > 1) hops += (w->scale_up ? steps : 1.0 + log2(w->n)) * w->hop_s;
    }
    sm_algorithm_by_library(a, links, steps, hops, 1.0 + 0.69 / (links->n - 1.0));
}

void sm_curve_all_to_all(sm_curve *curve, const sm_group_links *links, double ragged) {
    double busy[SM_MAX_LEVELS] = {0};
    /* Each member holds V/n and sends V/n^2 to each other member. Dimension-ordered routes: every
     * pair of positions of a part carries the messages of the torus_members/n chips on either side,
     * V max(A,B,C)/(4 N W_bidirectional) for a torus AxBxC of N chips. The link of a switch child
     * carries m (n - m) messages per group, m = members below it. */
    double message = 1.0 / (links->n * links->n);
    for (int i = 0; i < links->torus_parts; i++) {
        const sm_torus_part *t = &links->torus[i];
        busy[t->level] += message * torus_crossings(links, i) / t->link_bytes_per_s;
    }
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        double others = w->scale_up ? w->n - 1.0 : links->n - w->members_below;
        busy[w->level] = message * w->members_below * others * w->groups / w->link_bytes_per_s;
    }
    for (int l = 0; l < SM_MAX_LEVELS; l++) busy[l] *= ragged;
    assert(ragged > 0.0);
    double torus = 0.0, switched = 0.0;
    for (int i = 0; i < links->torus_parts; i++) torus += farthest_s(&links->torus[i]);
    for (int i = 0; i < links->switch_parts; i++)
        if (links->sw[i].n > 1) switched = fmax(switched, links->sw[i].hop_s);
    double latency = fmax(torus, switched);
    sm_algorithm *a = sm_curve_add(curve, links, "direct", latency, busy, 0.0);
    by_messages(a, links);
    curve->ideal_s_per_byte = a->line.s_per_byte;
    if (links->torus_parts + links->switch_parts > 1) {
        double serial_latency, serial = ragged * all_to_all_serial(links, &serial_latency);
        by_messages(
            sm_curve_add(curve, links, "one level after the other", serial_latency, busy, serial),
            links);
    }
    sm_curve_add_book(curve, links, latency, busy);
}

/* A shift by one: member r sends V to r+1 (the last to the first), the quickest part of a torus
 * innermost. The last of a line goes back the whole way, on links of the other direction. */
static double shift_latency_s(const sm_group_links *links) {
    double back = 0.0, worst = 0.0;
    for (int i = 0; i < links->torus_parts; i++) {
        const sm_torus_part *t = &links->torus[i];
        double step = t->stride * t->hop_s;
        worst = fmax(worst, back + step);
        back += t->ring ? step : (t->n - 1) * step;
    }
    return links->switch_parts > 0 ? worst : fmax(worst, back);
}

static double permute_latency_s(const sm_group_links *links, const sm_permute_load *load) {
    double s = load ? 0.0 : shift_latency_s(links);
    for (int i = 0; i < links->torus_parts && load; i++)
        s += load->hops[i] * links->torus[i].stride * links->torus[i].hop_s;
    for (int i = 0; i < links->switch_parts; i++)
        if (links->sw[i].n > 1) s = fmax(s, links->sw[i].hop_s);
    return s;
}

void sm_curve_permute(sm_curve *curve, const sm_group_links *links, const sm_permute_load *load) {
    double busy[SM_MAX_LEVELS] = {0}, latency = permute_latency_s(links, load), serial = 0.0;
    for (int i = 0; i < links->torus_parts; i++) {
        const sm_torus_part *t = &links->torus[i];
        double link_s = t->stride / t->link_bytes_per_s;
        busy[t->level] += (load ? load->torus[i] : 1.0) * link_s;
        serial += (load ? load->fixed[i] : 1.0) * link_s;
    }
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        busy[w->level] = (load ? load->sw[i] : 1.0) * w->groups / w->peer_bytes_per_s;
        serial += busy[w->level];
    }
    sm_algorithm *a =
        sm_curve_add(curve, links, load ? "direct" : "shift by one", latency, busy, 0.0);
    /* a lone sender and its receiver agree once and then stream (vidur, A100 and H100 nodes) */
    if (links->torus_parts == 0) a->start = 0.4;
    curve->ideal_s_per_byte = a->line.s_per_byte;
    if (load && links->torus_parts + links->switch_parts > 1)
        sm_curve_add(curve, links, "one level after the other", latency, busy, serial)->start =
            a->start;
    sm_curve_add_book(curve, links, latency, busy);
}

static double torus_walk_s(const sm_group_links *links) {
    double s = 0.0;
    for (int i = 0; i < links->torus_parts; i++)
        s += (links->torus[i].n - 1) * links->torus[i].stride * links->torus[i].hop_s;
    return s;
}

/* Links of each level that the chain over the scale-out children passes, then the walk inside the
 * last one. */
static double chain_latency_s(const sm_group_links *links) {
    double s = torus_walk_s(links);
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        double units = w->scale_up ? 1.0 : links->n / (w->members_below * w->n);
        s += (w->n - 1) * units * w->hop_s;
    }
    return s;
}

static void add_in_network(sm_curve *curve, const sm_group_links *links, const char *name,
                           const double *busy) {
    for (int i = 0; i < links->switch_parts; i++)
        if (!links->sw[i].in_network) return;
    if (!links->switch_parts) return;
    const sm_switch_part *top = &links->sw[links->switch_parts - 1];
    double latency = torus_walk_s(links) + top->hop_s;
    if (links->switch_parts > 1 && links->sw[0].scale_up) latency += links->sw[0].hop_s;
    sm_curve_add(curve, links, name, latency, busy, 0.0);
}

/* Pipelined broadcast. Torus: along one dimension after the other, half of V each way round a ring.
 * Switches: a chain through all children in order, so that each link carries V once in and once out
 * per group. */
void sm_curve_broadcast(sm_curve *curve, const sm_group_links *links, const char *by_switches) {
    /* Every member must receive V: at the sum of its rates on a torus, over its child's link at
     * each switch level. */
    double busy[SM_MAX_LEVELS] = {0}, rate = 0.0, least = 0.0;
    for (int i = 0; i < links->torus_parts; i++) {
        busy[links->torus[i].level] += 1.0 / links->torus[i].rate_bytes_per_s;
        rate += links->torus[i].rate_bytes_per_s;
    }
    if (rate > 0.0) least = 1.0 / rate;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        busy[w->level] = w->groups / w->link_bytes_per_s;
        if (w->n > 1) least = fmax(least, busy[w->level]);
    }
    curve->ideal_s_per_byte = least;
    sm_algorithm *chain =
        sm_curve_add(curve, links, "pipelined chain", chain_latency_s(links), busy, 0.0);
    /* Libraries have no tree of broadcasts between nodes: one ring through all. */
    double steps = 0.0, hops_s = 0.0;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        double parts = links->n / (w->members_below * w->n);
        double passed = parts * (w->scale_up ? sm_library_steps(w->n) : w->n - 1.0);
        steps += passed;
        hops_s += passed * w->hop_s;
    }
    sm_algorithm_by_library(chain, links, steps, hops_s, 1.0);
    add_in_network(curve, links, by_switches, busy);
    sm_curve_add_book(curve, links, chain_latency_s(links), busy);
}

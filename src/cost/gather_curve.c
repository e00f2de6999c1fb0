/* All-gather, reduce-scatter (its mirror image in time) and all-reduce.
 *
 * V: bytes of the whole array; n: members; n_S: members over the parts S; R: rate of receiving.
 *
 * Torus (after the sharding chapter of "How To Scale Your Model"). On one part each member must
 * receive V(n-1)/n at the rate R: 2W on a ring, W on a line. Over several parts the data is split;
 * each piece gathers over the dimensions in an order of its own and all pieces run at once. The
 * loads that such mixtures reach form the base polytope of S -> V(n_S-1)/n, so the best one takes
 *
 *     max over sets S of parts of  V(n_S-1)/n / (sum of R over S).
 *
 * Where the set of all parts decides, as it does for up to three parts of equal rate, that is the
 * bound V(n-1)/n / (sum of R) itself.
 *
 * Switches (after its GPU chapter). A chip receives V(D-1)/D over the scale-up level; the link of
 * a child of a scale-out level carries V(1-1/M) for each group that shares it, M: children of this
 * level that hold members of the group, in the whole system. */
#include "group_links.h"

/* Seconds per byte of V of the best mixture of orders over the torus parts. */
static double mixed_orders(const sm_group_links *links) {
    double worst = 0.0;
    for (unsigned set = 1; set < 1u << links->torus_parts; set++) {
        double members = 1.0, rate = 0.0;
        for (int i = 0; i < links->torus_parts; i++)
            if (set >> i & 1u) {
                members *= links->torus[i].n;
                rate += links->torus[i].rate_bytes_per_s;
            }
        worst = fmax(worst, (members - 1.0) / links->torus_members / rate);
    }
    return worst;
}

/* One order for all the data, part after part: the slowest first, on the smallest pieces, which
 * takes least (of two neighbours with n and m members the quicker one first takes (n-1)(m-1) times
 * the difference of 1/R more). Adds to busy and returns the sum. */
static double one_order(const sm_group_links *links, double *busy) {
    double gathered = 1.0 / links->torus_members, sum = 0.0;
    for (int i = links->torus_parts - 1; i >= 0; i--) {
        const sm_torus_part *t = &links->torus[i];
        double part = gathered * (t->n - 1) / t->rate_bytes_per_s;
        busy[t->level] += part;
        sum += part;
        gathered *= t->n;
    }
    return sum;
}

static double torus_rate(const sm_group_links *links) {
    double rate = 0.0;
    unsigned seen = 0; /* one dimension counts once, at its best */
    for (int i = 0; i < links->torus_parts; i++) {
        const sm_torus_part *t = &links->torus[i];
        if (!(seen >> t->level & 1)) rate += t->rate_bytes_per_s;
        seen |= 1u << t->level;
    }
    return rate;
}

/* A ring's farthest member is floor(n/2) steps away, a line's n-1; a step passes `stride` links. */
static double torus_latency_s(const sm_group_links *links) {
    double s = 0.0;
    for (int i = 0; i < links->torus_parts; i++) {
        const sm_torus_part *t = &links->torus[i];
        s += (t->ring ? t->n / 2 : t->n - 1) * t->stride * t->hop_s;
    }
    return s;
}

/* Scale-up peers map each other's memory and answer in one step; scale-out doubles the data held in
 * ceil(log2 n) steps. */
static double switch_latency_s(const sm_group_links *links) {
    double s = 0.0;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        if (w->n > 1) s += (w->scale_up ? 1.0 : ceil(log2(w->n))) * w->hop_s;
    }
    return s;
}

/* The stage of one switch level by itself: V/m (1 - 1/D) from each of the chips below a child's
 * link, m = members below a child of the stage, over the busiest of the links it passes. */
static double switch_stage(const sm_group_links *links, int stage) {
    const sm_switch_part *w = &links->sw[stage];
    double slowest = 0.0, from_chip = (1.0 - 1.0 / w->n) / w->members_below;
    for (int i = sm_first_passed(links, stage); i <= stage; i++) {
        double chips_below = links->sw[i].groups * links->sw[i].members_below;
        slowest = fmax(slowest, chips_below / links->sw[i].link_bytes_per_s);
    }
    return from_chip * slowest;
}

static double switch_busy(const sm_group_links *links, const sm_switch_part *w) {
    if (w->scale_up) return (1.0 - 1.0 / w->n) / w->link_bytes_per_s;
    return w->groups * (1.0 - w->members_below / links->n) / w->link_bytes_per_s;
}

/* Busy times of the pipelined gather, times `passes` (2 for an all-reduce). Two parts of one
 * dimension would slow each other, so those run one after the other. */
static void gather_busy(const sm_group_links *links, double passes, double *busy) {
    double ordered[SM_MAX_LEVELS] = {0};
    double torus = links->shared_dimension ? one_order(links, ordered) : mixed_orders(links);
    for (int i = 0; i < links->torus_parts; i++) busy[links->torus[i].level] = passes * torus;
    for (int i = 0; i < links->switch_parts; i++)
        busy[links->sw[i].level] = passes * switch_busy(links, &links->sw[i]);
}

static const char *gather_name(const sm_group_links *links) {
    if (links->torus_parts && links->switch_parts) return "hierarchical";
    if (links->torus_parts > 1)
        return links->shared_dimension ? "dimension by dimension, pipelined"
                                       : "mixed dimension orders";
    if (links->torus_parts) return links->torus[0].ring ? "bidirectional ring" : "line";
    if (links->switch_parts > 1) return "hierarchical";
    return links->sw[0].scale_up ? "direct" : "recursive doubling";
}

static bool within_node(const sm_group_links *links) {
    return links->torus_parts == 0 && links->switch_parts == 1 && links->sw[0].scale_up;
}

/* A library's ring or tree: the members of a node one after the other, nodes by doubling. A member
 * also copies (gather) or adds (all-reduce) its own n-th: as long as this part of sending it would
 * take (src/cost/protocol.c tells the fit). */
static void by_ring(sm_algorithm *a, const sm_group_links *links, double passes) {
    double own = passes > 1.0 ? 0.19 : 0.48, hops_s = 0.0;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        hops_s += (w->scale_up ? sm_library_steps(w->n) : ceil(log2(w->n))) * w->hop_s;
    }
    sm_algorithm_by_library(a, links, passes * sm_library_steps(links->n), passes * hops_s,
                            1.0 + own / (links->n - 1.0));
}

/* Between peers that read one another's memory it may be one kernel; a library has none such. */
static void by_peer_kernel(sm_algorithm *a, const sm_group_links *links, double steps) {
    a->peer_kernel = true;
    a->steps = steps;
    bool peers = within_node(links) && links->n <= links->system->chip.peer_chips;
    a->hops_s = peers ? steps * links->sw[0].hop_s : INFINITY;
}

static void add_best(sm_curve *curve, const sm_group_links *links, double passes) {
    double busy[SM_MAX_LEVELS] = {0};
    gather_busy(links, passes, busy);
    double latency = passes * (torus_latency_s(links) + switch_latency_s(links));
    sm_algorithm *a = sm_curve_add(curve, links, gather_name(links), latency, busy, 0.0);
    if (within_node(links)) by_peer_kernel(a, links, passes);
    else by_ring(a, links, passes);
}

/* One part alone has nothing to overlap; the plain algorithm is then the ring in one direction. */
static void add_one_way(sm_curve *curve, const sm_group_links *links, double passes) {
    double busy[SM_MAX_LEVELS] = {0}, hops, one_way;
    if (links->torus_parts) {
        const sm_torus_part *t = &links->torus[0];
        if (!t->ring) return;
        one_way = (1.0 - 1.0 / t->n) * t->stride / t->link_bytes_per_s;
        busy[t->level] = passes * one_way;
        hops = t->stride * t->hop_s;
    } else {
        const sm_switch_part *w = &links->sw[0];
        one_way = switch_busy(links, w);
        busy[w->level] = passes * one_way;
        hops = w->hop_s;
    }
    sm_algorithm *a = sm_curve_add(curve, links, "one-way ring", passes * (links->n - 1.0) * hops,
                                   busy, passes * one_way);
    by_ring(a, links, passes);
}

static void add_serial(sm_curve *curve, const sm_group_links *links, double passes) {
    if (links->torus_parts + links->switch_parts == 1) {
        add_one_way(curve, links, passes);
        return;
    }
    double busy[SM_MAX_LEVELS] = {0};
    double sum = one_order(links, busy);
    for (int i = 0; i < links->switch_parts; i++) {
        busy[links->sw[i].level] = switch_busy(links, &links->sw[i]);
        sum += switch_stage(links, i);
    }
    for (int l = 0; l < SM_MAX_LEVELS; l++) busy[l] *= passes;
    double latency = passes * (torus_latency_s(links) + switch_latency_s(links));
    by_ring(sm_curve_add(curve, links, "one level after the other", latency, busy, passes * sum),
            links, passes);
}

/* The book on tori: floor(n/2) steps of a whole shard each way, which is V/(2W) for even n; V / sum
 * of the bidirectional rates over several rings; a line's V(n-1)/n / W. */
static double book_torus(const sm_group_links *links) {
    const sm_torus_part *t = links->torus;
    bool ring = false;
    for (int i = 0; i < links->torus_parts; i++) ring = ring || t[i].ring;
    if (links->torus_parts == 1 && ring)
        return floor(t->n / 2.0) / t->n * t->stride / t->link_bytes_per_s;
    return (ring ? 1.0 : 1.0 - 1.0 / links->torus_members) / torus_rate(links);
}

/* The book on trees: V (D_i - 1)/(D_i W_i) for each of the groups that share a child's link. It
 * says nothing of levels that the group only passes through; those carry what passes. */
static double book_switch(const sm_group_links *links, const sm_switch_part *w) {
    if (w->n == 1) return switch_busy(links, w);
    return w->groups * (1.0 - 1.0 / w->n) / w->link_bytes_per_s;
}

static void add_book(sm_curve *curve, const sm_group_links *links, double passes) {
    double busy[SM_MAX_LEVELS] = {0};
    double torus = links->torus_parts ? book_torus(links) : 0.0;
    for (int i = 0; i < links->torus_parts; i++) busy[links->torus[i].level] = passes * torus;
    for (int i = 0; i < links->switch_parts; i++)
        busy[links->sw[i].level] = passes * book_switch(links, &links->sw[i]);
    double latency = passes * (torus_latency_s(links) + switch_latency_s(links));
    sm_curve_add_book(curve, links, latency, busy);
}

/* The least time per byte: V(n-1)/n / sum of the rates on the torus, the book's max over switch
 * levels. In-network reduction halves what a level must carry of an all-reduce: V out and V in at
 * once. */
static double gather_ideal(const sm_group_links *links, bool all_reduce) {
    double passes = all_reduce ? 2.0 : 1.0, least = 0.0;
    if (links->torus_parts) least = passes * (1.0 - 1.0 / links->torus_members) / torus_rate(links);
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        double busy = passes * book_switch(links, w);
        if (all_reduce && w->in_network) busy = fmin(busy, w->groups / w->link_bytes_per_s);
        least = fmax(least, busy);
    }
    return least;
}

void sm_curve_gather(sm_curve *curve, const sm_group_links *links) {
    curve->ideal_s_per_byte = gather_ideal(links, false);
    add_best(curve, links, 1.0);
    add_serial(curve, links, 1.0);
    add_book(curve, links, 1.0);
}

static bool scale_out_reduces(const sm_group_links *links) {
    bool any = false;
    for (int i = 0; i < links->switch_parts; i++) {
        if (!links->sw[i].scale_up && !links->sw[i].in_network) return false;
        any = any || !links->sw[i].scale_up;
    }
    return any;
}

/* In-network reduction. Scale-up: for each of its D slices a chip sends the others' or, of its own,
 * receives the sum and spreads it again: V each way. Scale-out switches sum up the tree and send
 * the result down: the link of a child carries V once each way for each of the groups that share
 * it. */
static void add_in_network(sm_curve *curve, const sm_group_links *links) {
    const sm_switch_part *up = links->switch_parts && links->sw[0].scale_up ? links->sw : NULL;
    bool inner = up && up->in_network, outer = scale_out_reduces(links);
    if (!inner && !outer) return;
    double busy[SM_MAX_LEVELS] = {0}, latency = 2.0 * torus_latency_s(links);
    gather_busy(links, 2.0, busy);
    if (inner) busy[0] = 1.0 / up->link_bytes_per_s;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        if (w->scale_up) latency += (links->switch_parts == 1 ? 1.0 : 2.0) * w->hop_s;
        else if (!outer) latency += 2.0 * ceil(log2(w->n)) * w->hop_s;
        else busy[w->level] = w->groups / w->link_bytes_per_s;
    }
    if (outer) latency += links->sw[links->switch_parts - 1].hop_s;
    sm_algorithm *a = sm_curve_add(curve, links, "in-network reduction", latency, busy, 0.0);
    if (links->torus_parts > 0) return;
    /* The members' own slices pass the switch too, and reading through it reaches 0.8 of what
     * copies reach, after a start of many chunks (fit: src/cost/protocol.c). */
    a->start = 12.9;
    a->excess = (1.0 + 1.0 / links->n) / 0.8;
}

void sm_curve_all_reduce(sm_curve *curve, const sm_group_links *links) {
    curve->ideal_s_per_byte = gather_ideal(links, true);
    add_best(curve, links, 2.0);
    add_in_network(curve, links);
    /* For small arrays: gather everybody's V and add up locally; half the steps for n/2 times the
     * bytes. */
    double busy[SM_MAX_LEVELS] = {0};
    gather_busy(links, links->n, busy);
    double latency = torus_latency_s(links) + switch_latency_s(links);
    sm_algorithm *a = sm_curve_add(curve, links, "gather and add", latency, busy, 0.0);
    if (links->torus_parts == 0) by_peer_kernel(a, links, 1.0);
    add_serial(curve, links, 2.0);
    add_book(curve, links, 2.0);
}

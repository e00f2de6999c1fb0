/* Closed forms of collectives against the message-by-message oracle, on every torus up to 64 chips
 * in one to three dimensions with every wraparound, every switch tree up to 64 chips and three
 * levels, and slices of tori on switches. */
#include "unit.h"
#include "oracle_collectives.h"
#include "sanitized.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#if SANITIZED
enum { MOST_CHIPS = 36 }; /* a sanitizer takes its time */
#else
enum { MOST_CHIPS = 64 };
#endif

/* ---- systems made by hand: rates and latencies that no two levels share ---- */

static void add_level(sm_system *system, sm_level_kind kind, int size, bool wrap, double rate) {
    sm_level *level = &system->level[system->levels++];
    *level = (sm_level){.kind = kind, .size = size, .wrap = wrap, .bytes_per_s_oneway = rate};
    level->hop_latency_s = 1e-6 * (1.0 + 0.25 * system->levels);
    system->chips *= size;
}

static sm_system torus_of(const int *shape, int dims, unsigned wraps) {
    sm_system system = {
        .chips = 1, .slices = 1, .torus_dims = dims, .chip.fabric = SM_FABRIC_TORUS};
    for (int d = 0; d < dims; d++)
        add_level(&system, SM_LEVEL_TORUS, shape[d], wraps >> d & 1u, 45e9);
    return system;
}

static const double tree_rate[][3] = {
    {450e9, 400e9, 12.8e12}, /* as of DGX H100 */
    {900e9, 130e9, 200e9},   /* a thin top */
    {100e9, 900e9, 9e12},    /* a slow node */
};

static sm_system tree_of(const int *sizes, int levels, int rates) {
    sm_system system = {.chips = 1, .slices = 1, .chip.fabric = SM_FABRIC_SWITCH};
    for (int l = 0; l < levels; l++)
        add_level(&system, SM_LEVEL_SWITCH, sizes[l], false, tree_rate[rates][l]);
    return system;
}

/* ---- one group on one system ---- */

typedef struct fixture {
    const sm_system *system;
    sm_group group;
    oracle_network *net;
    oracle_stage stages[SM_MAX_PARTS];
    int n_stages, torus_stages;
    bool shared, strided;
    oracle_time serial, piped; /* gathers: round by round, and pipelined in the first order */
    double best_s_per_byte;    /* of the pipelined gather, in the best mixture of orders */
} fixture;

static fixture fixture_of(const sm_system *system, const sm_group *group) {
    fixture f = {.system = system, .group = *group, .net = oracle_network_new(system, group)};
    f.n_stages = oracle_stages_of(system, group, f.stages);
    for (int i = 0; i < f.n_stages; i++) f.torus_stages += f.stages[i].level < system->torus_dims;
    for (int i = 1; i < f.torus_stages; i++)
        f.shared = f.shared || f.stages[i].level == f.stages[i - 1].level;
    for (int p = 0; p < group->parts; p++) f.strided = f.strided || group->part[p].stride > 1;
    return f;
}

static void describe(const fixture *f, char *out, size_t size) {
    int at = snprintf(out, size, "levels");
    for (int l = 0; l < f->system->levels; l++)
        at += snprintf(out + at, size - (size_t)at, " %s%d%s",
                       f->system->level[l].kind == SM_LEVEL_TORUS ? "t" : "s",
                       f->system->level[l].size, f->system->level[l].wrap ? "w" : "");
    at += snprintf(out + at, size - (size_t)at, "; parts");
    for (int p = 0; p < f->group.parts; p++)
        at += snprintf(out + at, size - (size_t)at, " %d@%d/%d", f->group.part[p].size,
                       f->group.part[p].level, f->group.part[p].stride);
}

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

static void expect_close(const fixture *f, const char *what, double closed, double simulated) {
    char text[300];
    if (close_to(closed, simulated)) return;
    describe(f, text, sizeof text);
    fail_msg("%s: closed form %.12g, simulated %.12g on %s", what, closed, simulated, text);
}

static void expect_at_most(const fixture *f, const char *what, double less, double more) {
    if (less <= more * (1.0 + 1e-9)) return;
    expect_close(f, what, less, more);
}

typedef sm_line cost;

static void expect_line(const fixture *f, const sm_algorithm *line, cost simulated) {
    char what[100];
    snprintf(what, sizeof what, "latency of %s", line->name);
    expect_close(f, what, line->line.latency_s, simulated.latency_s);
    snprintf(what, sizeof what, "time per byte of %s", line->name);
    expect_close(f, what, line->line.s_per_byte, simulated.s_per_byte);
}

static void expect_levels(const fixture *f, const sm_algorithm *line, const oracle_time *time,
                          double passes) {
    for (int l = 0; l < f->system->levels; l++)
        expect_close(f, "busy time of a level", line->level_s_per_byte[l],
                     passes * time->level_s[l]);
    expect_close(f, "bytes on the busiest link of the busiest level", line->link_bytes_per_byte,
                 passes * time->level_s[line->level] *
                     f->system->level[line->level].bytes_per_s_oneway);
}

static const sm_algorithm *line_named(const sm_curve *curve, const char *name) {
    for (int i = 0; i < curve->n; i++)
        if (strcmp(curve->algorithm[i].name, name) == 0) return &curve->algorithm[i];
    return NULL;
}

/* ---- all-gather and reduce-scatter ---- */

/* Deliver the gather over these stages, and its mirror image, which must take the same time. */
static oracle_time gather(const fixture *f, const oracle_stage *stages, bool pipelined,
                          bool mirror) {
    oracle_schedule s = oracle_all_gather(f->net, stages, f->n_stages, pipelined);
    oracle_time time = oracle_deliver(f->net, &s);
    if (mirror) {
        oracle_schedule back = oracle_reduce_scatter(f->net, &s);
        oracle_time reduced = oracle_deliver(f->net, &back);
        expect_close(f, "reduce-scatter", time.transfer_s, reduced.transfer_s);
        expect_close(f, "latency of the reduce-scatter", time.latency_s, reduced.latency_s);
        oracle_schedule_free(&back);
    }
    oracle_schedule_free(&s);
    return time;
}

/* Outermost stages first; the torus stages in the order of the permutation. */
static void arrange(const fixture *f, const int *permutation, oracle_stage *out) {
    int n = 0;
    for (int i = f->n_stages - 1; i >= f->torus_stages; i--) out[n++] = f->stages[i];
    for (int i = 0; i < f->torus_stages; i++) out[n++] = f->stages[permutation[i]];
}

static double rate(const fixture *f, int stage) {
    return (f->stages[stage].way == ORACLE_RING ? 2.0 : 1.0) *
           f->system->level[f->stages[stage].level].bytes_per_s_oneway /
           f->group.part[stage].stride;
}

/* The torus stages, the quickest first, and among equals the smallest. */
static void by_rate(const fixture *f, int *order) {
    for (int i = 0; i < f->torus_stages; i++) {
        int at = i;
        for (; at > 0; at--) {
            double before = rate(f, order[at - 1]), own = rate(f, i);
            if (before != own ? before > own : f->stages[order[at - 1]].n <= f->stages[i].n) break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static void arrange_slowest_first(const fixture *f, oracle_stage *out) {
    int order[SM_MAX_PARTS], slowest_first[SM_MAX_PARTS], n = f->torus_stages;
    by_rate(f, order);
    for (int i = 0; i < n; i++) slowest_first[i] = order[n - 1 - i];
    arrange(f, slowest_first, out);
}

static oracle_time serial_gather(const fixture *f) {
    oracle_stage stages[SM_MAX_PARTS];
    arrange_slowest_first(f, stages);
    return gather(f, stages, false, true);
}

/* The torus parts alone, one after the other: every chip gathers V over them. */
static double serial_torus_s(const fixture *f) {
    sm_group torus = {.size = 1};
    for (int p = 0; p < f->torus_stages; p++) torus.part[torus.parts++] = f->group.part[p];
    fixture alone = fixture_of(f->system, &torus);
    oracle_time time = serial_gather(&alone);
    oracle_network_free(alone.net);
    return time.transfer_s;
}

/* Every order of the torus stages, pipelined, and the best mixture of them. */
static void mix_gathers(fixture *f) {
    static const int permutation[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int orders[] = {1, 1, 2, 6};
    oracle_time times[6] = {{0}};
    int levels[3], n = f->shared ? 1 : orders[f->torus_stages];
    for (int i = 0; i < n; i++) {
        oracle_stage stages[SM_MAX_PARTS];
        if (f->shared) arrange_slowest_first(f, stages);
        else arrange(f, permutation[i], stages);
        times[i] = gather(f, stages, true, i == 0);
    }
    f->piped = times[0];
    for (int i = 0; i < f->torus_stages && !f->shared; i++) levels[i] = f->stages[i].level;
    if (f->shared) f->best_s_per_byte = serial_torus_s(f);
    else if (f->torus_stages > 0)
        f->best_s_per_byte = oracle_best_mixture(times, n, levels, f->torus_stages);
    for (int l = f->system->torus_dims; l < f->system->levels; l++)
        f->best_s_per_byte = fmax(f->best_s_per_byte, times[0].level_s[l]);
}

static void gather_once(fixture *f) {
    mix_gathers(f);
    f->serial = serial_gather(f);
}

static cost best_gather(const fixture *f) { return (cost){f->piped.latency_s, f->best_s_per_byte}; }

static cost times_passes(cost c, double passes) {
    return (cost){passes * c.latency_s, passes * c.s_per_byte};
}

static cost cost_of(oracle_time time) { return (cost){time.latency_s, time.transfer_s}; }

static void check_best(const fixture *f, const sm_algorithm *line, double passes) {
    if (f->n_stages == 1) /* round by round, nothing pipelined: the same */
        expect_close(f, "rounds one by one", f->best_s_per_byte, f->serial.transfer_s);
    expect_line(f, line, times_passes(best_gather(f), passes));
    if (f->torus_stages <= 1) expect_levels(f, line, &f->piped, passes);
}

static void check_one_way(const fixture *f, const sm_algorithm *line, double passes) {
    oracle_stage stage = f->stages[0];
    stage.way = ORACLE_ONE_WAY;
    expect_line(f, line, times_passes(cost_of(gather(f, &stage, false, true)), passes));
}

/* Over one ring the book passes whole shards, floor(n/2) steps each way; its other forms are bounds
 * or equal to ours. */
static void check_book(const fixture *f, const sm_curve *curve, double passes) {
    const sm_algorithm *book = &curve->algorithm[curve->n - 1];
    assert_true(book->book);
    oracle_stage stage = f->stages[0];
    if (f->n_stages == 1) {
        stage.way = stage.way == ORACLE_RING ? ORACLE_WHOLE_RING : stage.way;
        expect_line(f, book, times_passes(cost_of(gather(f, &stage, false, false)), passes));
    }
    expect_at_most(f, "the bound below the book", curve->ideal_s_per_byte, book->line.s_per_byte);
}

static int scale_out_levels(const fixture *f) {
    int top = 0, first = f->system->torus_dims > 0 ? f->system->torus_dims : 1;
    for (int i = 0; i < f->n_stages; i++)
        if (f->stages[i].level >= first) top = f->stages[i].level - first + 1;
    return top;
}

static void check_bound(const fixture *f, const sm_curve *curve) {
    double cut = oracle_gather_cut(f->net);
    if (!f->strided) expect_at_most(f, "the bound below the cut", curve->ideal_s_per_byte, cut);
    if (!f->strided && scale_out_levels(f) <= 1)
        expect_close(f, "the bound is the cut", curve->ideal_s_per_byte, cut);
    for (int i = 0; i < curve->n; i++)
        if (!curve->algorithm[i].book)
            expect_at_most(f, "the bound below an algorithm", curve->ideal_s_per_byte,
                           curve->algorithm[i].line.s_per_byte);
}

static void check_gather(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_ALL_GATHER, &f->group, 1.0);
    sm_curve back = sm_collective_curve(f->system, SM_REDUCE_SCATTER, &f->group, 1.0);
    assert_int_equal(curve.n, back.n);
    assert_memory_equal(&curve.algorithm[0].level_s_per_byte, &back.algorithm[0].level_s_per_byte,
                        sizeof curve.algorithm[0].level_s_per_byte);
    check_best(f, &curve.algorithm[0], 1.0);
    for (int i = 1; i < curve.n - 1; i++) {
        if (strcmp(curve.algorithm[i].name, "one-way ring") == 0)
            check_one_way(f, &curve.algorithm[i], 1.0);
        else expect_line(f, &curve.algorithm[i], cost_of(f->serial));
    }
    check_book(f, &curve, 1.0);
    check_bound(f, &curve);
}

/* ---- all-reduce: a reduce-scatter and an all-gather, or sums inside the switches ---- */

/* Each chip of a node sends its share of the others' slices and of its own sum, and receives as
 * much. */
static double node_sum_bytes(int n) {
    double up = 0.0;
    for (int slice = 0; slice < n; slice++)
        up += 1.0 / n; /* of another chip's slice to be summed, or of its own sum to be spread */
    return up;
}

/* The torus part of the best gather, of the group without its switch parts. */
static cost torus_gather(const fixture *f) {
    sm_group torus = {.size = 1};
    for (int p = 0; p < f->torus_stages; p++) torus.part[torus.parts++] = f->group.part[p];
    fixture alone = fixture_of(f->system, &torus);
    mix_gathers(&alone);
    oracle_network_free(alone.net);
    return best_gather(&alone);
}

static void check_in_network(const fixture *f, const sm_algorithm *line) {
    oracle_time sums = {0};
    int top = f->stages[f->n_stages - 1].level,
        first = f->system->torus_dims > 0 ? f->system->torus_dims : 1;
    bool node = f->torus_stages == 0 && f->stages[0].level == 0;
    if (node && f->n_stages == 1) {
        oracle_sum_in_switches(f->net, 0, 0, 1.0, &sums);
        expect_line(f, line, cost_of(sums));
        return;
    }
    double inner = 1.0;
    cost inside = {0.0, 0.0};
    for (int i = 0; i < f->n_stages; i++)
        if (f->stages[i].level < first) inner *= f->stages[i].n;
    oracle_sum_in_switches(f->net, first, top, 1.0 / inner, &sums);
    if (node)
        inside = (cost){2.0 * f->system->level[0].hop_latency_s,
                        node_sum_bytes(f->stages[0].n) / f->system->level[0].bytes_per_s_oneway};
    else if (f->torus_stages > 0) inside = times_passes(torus_gather(f), 2.0);
    for (int l = first; l <= top; l++) inside.s_per_byte = fmax(inside.s_per_byte, sums.level_s[l]);
    expect_line(f, line, (cost){inside.latency_s + sums.latency_s, inside.s_per_byte});
}

static void check_all_reduce(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_ALL_REDUCE, &f->group, 1.0);
    cost best = best_gather(f);
    int n = oracle_members(f->net);
    expect_line(f, &curve.algorithm[0], times_passes(best, 2.0));
    const sm_algorithm *add = line_named(&curve, "gather and add");
    expect_line(f, add, (cost){best.latency_s, n * best.s_per_byte});
    const sm_algorithm *serial = line_named(&curve, "one level after the other");
    if (serial) expect_line(f, serial, times_passes(cost_of(f->serial), 2.0));
    const sm_algorithm *one_way = line_named(&curve, "one-way ring");
    if (one_way) check_one_way(f, one_way, 2.0);
    check_book(f, &curve, 2.0);
    for (int i = 0; i < curve.n; i++)
        expect_at_most(f, "the bound below an all-reduce", curve.ideal_s_per_byte,
                       curve.algorithm[i].line.s_per_byte);
}

static void check_in_network_all_reduce(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_ALL_REDUCE, &f->group, 1.0);
    const sm_algorithm *line = line_named(&curve, "in-network reduction");
    if (f->torus_stages == f->n_stages) {
        assert_null(line);
        return;
    }
    assert_non_null(line);
    check_in_network(f, line);
    expect_at_most(f, "the bound below in-network", curve.ideal_s_per_byte, line->line.s_per_byte);
}

/* ---- all-to-all, permute, broadcast, reduce ---- */

static cost delivered(const fixture *f, oracle_schedule s, oracle_time *time) {
    *time = oracle_deliver(f->net, &s);
    oracle_schedule_free(&s);
    return cost_of(*time);
}

static void check_all_to_all(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_ALL_TO_ALL, &f->group, 1.0);
    oracle_time time;
    cost direct = delivered(f, oracle_all_to_all(f->net), &time);
    if (f->shared) { /* parts of one dimension: the closed form adds their busiest links, which need
                        not be the same */
        expect_at_most(f, "all-to-all", direct.s_per_byte, curve.algorithm[0].line.s_per_byte);
        return;
    }
    expect_line(f, &curve.algorithm[0], direct);
    expect_levels(f, &curve.algorithm[0], &time, 1.0);
    expect_close(f, "bound of the all-to-all", curve.ideal_s_per_byte, direct.s_per_byte);
    const sm_algorithm *serial = line_named(&curve, "one level after the other");
    int dims = f->system->torus_dims;
    if (serial)
        expect_line(
            f, serial,
            delivered(f, oracle_all_to_all_staged(f->net, f->stages, f->n_stages, dims), &time));
    sm_curve ragged = sm_collective_curve(f->system, SM_ALL_TO_ALL, &f->group, 0.375);
    expect_close(f, "ragged all-to-all", ragged.algorithm[0].line.s_per_byte,
                 0.375 * direct.s_per_byte);
}

static void check_permute(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_PERMUTE, &f->group, 1.0);
    oracle_time time;
    int order[SM_MAX_PARTS];
    sm_group ranked = f->group;
    by_rate(f, order);
    for (int i = 0; i < f->torus_stages; i++) ranked.part[i] = f->group.part[order[i]];
    fixture by_ranks = fixture_of(f->system, &ranked);
    cost shift = delivered(&by_ranks, oracle_shift(by_ranks.net), &time);
    oracle_network_free(by_ranks.net);
    if (f->shared)
        expect_at_most(f, "permute", shift.s_per_byte, curve.algorithm[0].line.s_per_byte);
    else expect_line(f, &curve.algorithm[0], shift);
}

static void check_broadcast(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_BROADCAST, &f->group, 1.0);
    oracle_time time;
    int dims = f->system->torus_dims;
    cost chain = delivered(f, oracle_broadcast_chain(f->net, f->stages, f->n_stages, dims), &time);
    if (f->shared) {
        expect_at_most(f, "broadcast", chain.s_per_byte, curve.algorithm[0].line.s_per_byte);
        return;
    }
    expect_line(f, &curve.algorithm[0], chain);
    expect_at_most(f, "bound of the broadcast", curve.ideal_s_per_byte,
                   curve.algorithm[0].line.s_per_byte);
}

static cost backwards(const fixture *f, oracle_schedule broadcast) {
    oracle_time time;
    cost reduce = delivered(f, oracle_reduce(f->net, &broadcast), &time);
    oracle_schedule_free(&broadcast);
    return reduce;
}

static void check_reduce(const fixture *f) {
    sm_curve curve = sm_collective_curve(f->system, SM_REDUCE, &f->group, 1.0);
    sm_curve out = sm_collective_curve(f->system, SM_BROADCAST, &f->group, 1.0);
    int dims = f->system->torus_dims;
    cost chain = backwards(f, oracle_broadcast_chain(f->net, f->stages, f->n_stages, dims));
    assert_int_equal(curve.n, out.n);
    for (int i = 0; i < curve.n; i++) expect_line(f, &curve.algorithm[i], out.algorithm[i].line);
    if (f->shared) {
        expect_at_most(f, "reduce", chain.s_per_byte, curve.algorithm[0].line.s_per_byte);
        return;
    }
    expect_line(f, &curve.algorithm[0], chain);
}

static void check_all(const sm_system *system, const sm_group *group) {
    fixture f = fixture_of(system, group);
    gather_once(&f);
    check_gather(&f);
    check_all_reduce(&f);
    check_all_to_all(&f);
    check_permute(&f);
    check_broadcast(&f);
    check_reduce(&f);
    oracle_network_free(f.net);
}

/* ---- every placement ---- */

typedef void (*group_check)(const sm_system *, const sm_group *);
static long groups_checked;

/* Every part (size, stride) of each level from `level` on, size x stride dividing the level. */
static void every_group(const sm_system *system, int level, sm_group *group, group_check check) {
    if (level == system->levels) {
        if (group->size > 1) {
            check(system, group);
            groups_checked++;
        }
        return;
    }
    every_group(system, level + 1, group, check);
    int size = system->level[level].size;
    for (int n = 2; n <= size; n++)
        for (int stride = 1; n * stride <= size; stride++) {
            if (size % (n * stride) != 0) continue;
            group->part[group->parts++] = (sm_part){(uint8_t)level, n, stride};
            group->size *= n;
            every_group(system, level + 1, group, check);
            group->size /= n;
            group->parts--;
        }
}

static void every_placement(const sm_system *system, group_check check) {
    sm_group group = {.size = 1};
    every_group(system, 0, &group, check);
}

static void test_every_line_and_ring(void **state) {
    for (int n = 2; n <= 64; n++)
        for (unsigned wrap = 0; wrap < 2; wrap++) {
            sm_system system = torus_of(&n, 1, wrap);
            every_placement(&system, check_all);
        }
}

static void test_every_torus_of_two_dimensions(void **state) {
    for (int a = 2; a <= 32; a++)
        for (int b = a; a * b <= MOST_CHIPS; b++)
            for (unsigned wraps = 0; wraps < 4; wraps++) {
                sm_system system = torus_of((int[]){a, b}, 2, wraps);
                every_placement(&system, check_all);
            }
}

static void test_every_torus_of_three_dimensions(void **state) {
    for (int a = 2; a <= 4; a++)
        for (int b = a; a * b * b <= 64; b++)
            for (int c = b; a * b * c <= MOST_CHIPS; c++)
                for (unsigned wraps = 0; wraps < 8; wraps++) {
                    sm_system system = torus_of((int[]){a, b, c}, 3, wraps);
                    every_placement(&system, check_all);
                }
}

static void each_tree(int levels, int rates, unsigned in_network, group_check check) {
    for (int a = 2; a <= MOST_CHIPS; a++)
        for (int b = levels > 1 ? 2 : 1; a * b <= MOST_CHIPS && (levels > 1 || b == 1); b++)
            for (int c = levels > 2 ? 2 : 1; a * b * c <= MOST_CHIPS; c++) {
                if (levels < 3 && c > 1) break;
                sm_system system = tree_of((int[]){a, b, c}, levels, rates);
                for (int l = 0; l < levels; l++)
                    system.level[l].in_network_reduction = in_network >> l & 1u;
                every_placement(&system, check);
            }
}

static void test_every_switch(void **state) { each_tree(1, 0, 0, check_all); }

static void test_every_tree_of_two_levels(void **state) {
    each_tree(2, 0, 0, check_all);
    each_tree(2, 2, 0, check_all);
}

static void test_every_tree_of_three_levels(void **state) {
    each_tree(3, 0, 0, check_all);
    each_tree(3, 1, 0, check_all);
}

static void check_only_in_network(const sm_system *system, const sm_group *group) {
    fixture f = fixture_of(system, group);
    check_in_network_all_reduce(&f);
    oracle_network_free(f.net);
}

static void test_reduction_inside_switches(void **state) {
    for (int levels = 1; levels <= 3; levels++) each_tree(levels, 0, ~0u, check_only_in_network);
}

static void test_slices_of_tori_on_switches(void **state) {
    static const int shapes[][4] = {{4, 4, 2, 2}, {4, 2, 2, 2}, {2, 8, 2, 1},
                                    {8, 1, 4, 2}, {3, 4, 3, 1}, {4, 4, 4, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (unsigned wraps = 0; wraps < 4; wraps++) {
            const int *s = shapes[i];
            sm_system system = torus_of(s, s[1] > 1 ? 2 : 1, wraps);
            add_level(&system, SM_LEVEL_SWITCH, s[2], false, 30e9);
            if (s[3] > 1) add_level(&system, SM_LEVEL_SWITCH, s[3], false, 40e9);
            every_placement(&system, check_all);
            for (int l = system.torus_dims; l < system.levels; l++)
                system.level[l].in_network_reduction = true;
            every_placement(&system, check_only_in_network);
        }
}

/* Two parts of one dimension that do not touch: 2 at stride 1 and 2 at stride 4 or 8. */
static void test_parts_that_share_a_dimension(void **state) {
    for (unsigned wraps = 0; wraps < 4; wraps++)
        for (int other = 1; other <= 3; other++) {
            sm_system system = torus_of((int[]){16, 3}, 2, wraps);
            add_level(&system, SM_LEVEL_SWITCH, 2, false, 100e9);
            sm_group group = {
                .parts = 2, .part = {{0, 2, 1}, {0, 2, other == 1 ? 4 : 8}}, .size = 4};
            check_all(&system, &group);
            group.part[group.parts++] = (sm_part){1, 3, 1};
            group.size *= 3;
            check_all(&system, &group);
            group.part[group.parts++] = (sm_part){2, 2, 1};
            group.size *= 2;
            check_all(&system, &group);
        }
}

/* Members that no part places exchange nothing in no time at all: never for nothing. */
static void test_a_group_on_no_link_takes_for_ever(void **state) {
    sm_system system = torus_of((int[]){4, 8}, 2, 0);
    const sm_calibration *constants = sm_calibration_of(&system.chip);
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        sm_collective op = (sm_collective)i;
        sm_curve curve = sm_collective_curve(&system, op, &(sm_group){.size = 4}, 1);
        assert_true(isinf(sm_curve_cost(&curve, &system, constants, 1e6).expected_s));
        curve = sm_collective_curve(&system, op, &(sm_group){.size = 1}, 1);
        assert_int_equal(curve.n, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_on_no_link_takes_for_ever),
        cmocka_unit_test(test_every_line_and_ring),
        cmocka_unit_test(test_every_torus_of_two_dimensions),
        cmocka_unit_test(test_every_torus_of_three_dimensions),
        cmocka_unit_test(test_every_switch),
        cmocka_unit_test(test_every_tree_of_two_levels),
        cmocka_unit_test(test_every_tree_of_three_levels),
        cmocka_unit_test(test_reduction_inside_switches),
        cmocka_unit_test(test_slices_of_tori_on_switches),
        cmocka_unit_test(test_parts_that_share_a_dimension),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("# %ld groups\n", groups_checked);
    return failed;
}

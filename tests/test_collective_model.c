/* What collectives and memory-bound operations are expected to take: the protocols of a library,
 * kernels of engines, and what the rows of measurements say about them. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measured_by.h"
#include "scalemodel/truth.h"

static sm_system system_of(const char *text) {
    sm_system system;
    sm_error err;
    sm_source source = sm_source_of("system", text);
    if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    return system;
}

static sm_group group_of(const sm_system *system, int size) {
    sm_placement placement;
    int order = 0;
    assert_true(sm_placement_fill(system, 1, &size, &order, NULL, &placement));
    return placement.axis[0];
}

static sm_curve curve_of(const sm_system *system, sm_collective op, int size) {
    sm_group group = group_of(system, size);
    return sm_collective_curve(system, op, &group, 1.0);
}

/* The constants fitted to an H100 node. */
static sm_calibration h100_constants(void) {
    sm_calibration c = *sm_calibration_at(0);
    c.collective_s = 4.9e-6;
    c.launch_s = 1.4e-6;
    c.network_efficiency_inner = 0.826;
    c.network_efficiency_outer = 0.9;
    c.memory_efficiency = 0.97;
    return c;
}

static void assert_near(double got, double want, double share) {
    if (!(fabs(got - want) <= share * fabs(want))) fail_msg("%.9g is not near %.9g", got, want);
}

/* ---- a full mesh ---- */

/* By hand: a group of n has n - 1 of a chip's seven links, whatever it exchanges; a permute one. */
static void a_few_of_a_mesh_have_few_links(void **state) {
    sm_system mesh = system_of("mi300x:8"), switched = mesh;
    switched.level[0].mesh = 0;
    sm_calibration c = h100_constants();
    const double bytes = 4e9, link = 448e9 / 7;
    for (int n = 2; n <= 8; n *= 2)
        for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) {
            double links = op == SM_PERMUTE ? 1 : n - 1;
            sm_curve on_mesh = curve_of(&mesh, (sm_collective)op, n),
                     on_switch = curve_of(&switched, (sm_collective)op, n);
            sm_collective_cost cost = sm_curve_cost(&on_mesh, &mesh, &c, bytes);
            sm_collective_cost by_switch = sm_curve_cost(&on_switch, &switched, &c, bytes);
            assert_near(cost.lower_s, by_switch.lower_s * 7 / links, 1e-9);
            assert_near(cost.bytes_busiest_link, by_switch.bytes_busiest_link, 1e-9);
            assert_true(cost.expected_s >= cost.lower_s);
            if (op == SM_ALL_GATHER) assert_near(cost.lower_s, bytes / n / link, 1e-9);
            if (op == SM_ALL_TO_ALL) assert_near(cost.lower_s, bytes / n / n / link, 1e-9);
            if (op == SM_PERMUTE) assert_near(cost.lower_s, bytes / link, 1e-9);
        }
    sm_system nodes = system_of("mi300x:4x8");
    sm_curve inside = curve_of(&mesh, SM_ALL_GATHER, 2),
             across = curve_of(&nodes, SM_ALL_GATHER, 2);
    assert_near(across.ideal_s_per_byte, inside.ideal_s_per_byte, 1e-9);
}

/* ---- protocols ---- */

/* By hand: two members, one step: start 4.9 us, hop 0.6 us, handling 0.059 of a start. */
static void a_small_message_goes_by_ll(void **state) {
    sm_system system = system_of("h100-sxm:8");
    sm_calibration c = h100_constants();
    sm_curve curve = curve_of(&system, SM_ALL_GATHER, 2);
    sm_collective_cost cost = sm_curve_cost(&curve, &system, &c, 1024);
    assert_string_equal(cost.protocol, "LL");
    assert_string_equal(cost.algorithm, "one-way ring");
    assert_near(cost.latency_s, 4.9e-6 + 0.6e-6 + 0.059 * 4.9e-6, 1e-9);
    double wire = 1024 * 0.5 / 450e9 * (1 + 0.48) / 0.41 / 0.826;
    assert_near(cost.expected_s, cost.latency_s + wire, 1e-9);
    assert_true(cost.latency_bound);
    assert_near(cost.efficiency, 0.826 * 0.41 / 1.48, 1e-9);
}

static void a_large_message_goes_by_simple(void **state) {
    sm_system system = system_of("h100-sxm:8");
    sm_calibration c = h100_constants();
    sm_curve curve = curve_of(&system, SM_ALL_GATHER, 8);
    sm_collective_cost cost = sm_curve_cost(&curve, &system, &c, 1e9);
    assert_string_equal(cost.protocol, "Simple");
    assert_near(cost.expected_s - cost.latency_s, 1e9 * 7 / 8 / 450e9 * (1 + 0.48 / 7) / 0.826,
                1e-9);
    assert_false(cost.latency_bound);
    cost = sm_curve_cost(&curve, &system, &c, 8e6);
    assert_string_equal(cost.protocol, "Simple, filling");
}

/* There is no tree for it: a small one goes round all 64, over 56 links within nodes and 7 between.
 */
static void a_broadcast_is_a_ring_of_all(void **state) {
    sm_system system = system_of("h100-sxm:8x8");
    sm_curve curve = curve_of(&system, SM_BROADCAST, 64);
    const sm_algorithm *ring = NULL;
    for (int i = 0; i < curve.n; i++)
        if (strcmp(curve.algorithm[i].name, "pipelined chain") == 0) ring = &curve.algorithm[i];
    assert_non_null(ring);
    assert_near(ring->steps, 63, 1e-9);
    assert_near(ring->hops_s, 56 * 0.6e-6 + 7 * 2.7e-6, 1e-9);
}

/* Timings of 8 GPUs by NCCL (aiconfigurator systems data, h100_sxm, NCCL 2.29.2), microseconds. */
static void measured_times_come_back(void **state) {
    static const struct {
        sm_collective op;
        int ranks;
        double bytes, us;
    } rows[] = {{SM_ALL_GATHER, 8, 8192, 10.6},          {SM_ALL_GATHER, 8, 524288, 15.4},
                {SM_ALL_GATHER, 8, 268435456, 728.8},    {SM_ALL_REDUCE, 8, 8192, 16.0},
                {SM_ALL_REDUCE, 8, 67108864, 324.5},     {SM_ALL_REDUCE, 8, 536870912, 2111.1},
                {SM_ALL_REDUCE, 2, 1024, 5.8},           {SM_ALL_REDUCE, 2, 16777216, 82.2},
                {SM_REDUCE_SCATTER, 4, 536870912, 1300}, {SM_REDUCE_SCATTER, 4, 32768, 8.0}};
    sm_system system = system_of("h100-sxm:8");
    sm_calibration c = h100_constants();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_curve curve = curve_of(&system, rows[i].op, rows[i].ranks);
        assert_near(sm_curve_cost(&curve, &system, &c, rows[i].bytes).expected_s, rows[i].us * 1e-6,
                    0.25);
    }
}

static void tori_have_no_protocols(void **state) {
    sm_system system = system_of("tpu-v5p:4x4x4");
    sm_calibration c = h100_constants();
    sm_curve curve = curve_of(&system, SM_ALL_GATHER, 4);
    sm_timing timing[SM_MAX_TIMINGS];
    assert_int_equal(sm_algorithm_timings(&curve.algorithm[0], &system, &c, timing), 1);
    assert_string_equal(timing[0].protocol, "");
    /* half of a ring of four, 1 us a hop */
    assert_near(timing[0].line.latency_s, 4.9e-6 + 2e-6, 1e-9);
    assert_near(timing[0].line.s_per_byte, curve.algorithm[0].line.s_per_byte / 0.826, 1e-9);
}

static void the_book_and_peer_kernels_are_not_the_librarys(void **state) {
    sm_system system = system_of("h100-sxm:8");
    sm_calibration c = h100_constants();
    sm_curve curve = curve_of(&system, SM_ALL_REDUCE, 8);
    sm_timing timing[SM_MAX_TIMINGS];
    int kernels = 0, books = 0;
    for (int i = 0; i < curve.n; i++) {
        int n = sm_algorithm_timings(&curve.algorithm[i], &system, &c, timing);
        kernels += curve.algorithm[i].peer_kernel;
        books += curve.algorithm[i].book;
        assert_int_equal(n == 0, curve.algorithm[i].peer_kernel || curve.algorithm[i].book);
    }
    assert_int_equal(kernels, 2);
    assert_int_equal(books, 1);
}

/* The quicker of those that read their peers' memory. */
static double peer_s(const sm_curve *curve, const sm_system *system, double barriers,
                     double bytes) {
    sm_calibration c = h100_constants();
    double least = INFINITY;
    for (int i = 0; i < curve->n; i++) {
        const sm_algorithm *a = &curve->algorithm[i];
        if (a->peer_kernel)
            least = fmin(least, sm_line_at(sm_peer_timing(a, system, &c, barriers).line, bytes));
    }
    return least;
}

/* Kernels win where starting matters, the library where bytes do; barriers cost. */
static void a_peer_kernel_is_quick_to_start(void **state) {
    sm_system system = system_of("h100-sxm:8");
    sm_calibration c = h100_constants();
    sm_curve curve = curve_of(&system, SM_ALL_REDUCE, 8);
    double small = sm_curve_cost(&curve, &system, &c, 4096).expected_s;
    double large = sm_curve_cost(&curve, &system, &c, 1e9).expected_s;
    assert_true(2.0 * peer_s(&curve, &system, 0, 4096) < small);
    assert_true(peer_s(&curve, &system, 0, 1e9) > large);
    assert_true(peer_s(&curve, &system, 1, 4096) > peer_s(&curve, &system, 0, 4096));
    sm_system tpu = system_of("tpu-v5e:4x4");
    sm_curve none = curve_of(&tpu, SM_ALL_REDUCE, 4);
    assert_true(isinf(peer_s(&none, &tpu, 0, 4096)));
}

/* Two cards of a mesh of eight share one of seven links (MI300X: 48 GB/s measured, 64 a link). */
static void a_pair_of_a_mesh_has_one_link(void **state) {
    sm_system system = system_of("mi300x:8"), pair = system_of("mi300x:2");
    sm_calibration c = h100_constants();
    sm_curve two = curve_of(&pair, SM_ALL_REDUCE, 2), eight = curve_of(&system, SM_ALL_REDUCE, 8);
    double slow = 1e9 / sm_curve_cost(&two, &pair, &c, 1e9).expected_s;
    assert_true(slow < 64e9 && slow > 40e9);
    assert_true(1e9 / sm_curve_cost(&eight, &system, &c, 1e9).expected_s * 7 / 4 > 4.0 * slow);
}

/* ---- properties over the catalogue ---- */

static const char *const systems[] = {"h100-sxm:4x8", "h100-sxm:64x8", "gb200-nvl72:2x72",
                                      "a100-80:2x8",  "mi300x:4x8",    "l40s:2x8",
                                      "h100-pcie:4",  "tpu-v5p:4x4x4", "tpu-v5e:4x4x2slices",
                                      "h800:8x8",     "v100:2x8",      "trn2:4x4"};
static const sm_collective ops[] = {SM_ALL_GATHER, SM_REDUCE_SCATTER, SM_ALL_REDUCE, SM_ALL_TO_ALL,
                                    SM_PERMUTE,    SM_BROADCAST,      SM_REDUCE};

typedef void (*check)(const sm_system *system, const sm_curve *curve, const sm_calibration *c);

static void for_each_curve(check one) {
    sm_calibration c = h100_constants();
    for (size_t s = 0; s < sizeof systems / sizeof systems[0]; s++) {
        sm_system system = system_of(systems[s]);
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
            for (int n = 2; n <= system.chips; n *= 2) {
                if (system.chips % n != 0) continue;
                sm_curve curve = curve_of(&system, ops[o], n);
                one(&system, &curve, &c);
            }
    }
}

/* More bytes never take less time, and never more than in proportion. */
static void grows_and_is_concave(const sm_system *system, const sm_curve *curve,
                                 const sm_calibration *c) {
    double before = 0.0, bytes_before = 0.0;
    for (double bytes = 64; bytes < 1e12; bytes *= 3) {
        sm_collective_cost cost = sm_curve_cost(curve, system, c, bytes);
        assert_true(cost.expected_s == sm_curve_cost(curve, system, c, bytes).expected_s);
        assert_true(cost.lower_s <= cost.expected_s && cost.expected_s <= cost.upper_s);
        assert_true(cost.latency_s <= cost.expected_s);
        assert_true(cost.expected_s >= before);
        if (bytes_before > 0.0)
            assert_true(cost.expected_s <= before * bytes / bytes_before * (1 + 1e-12));
        before = cost.expected_s;
        bytes_before = bytes;
    }
}

static void better_constants_help(const sm_system *system, const sm_curve *curve,
                                  const sm_calibration *c) {
    sm_calibration better[3] = {*c, *c, *c};
    better[0].collective_s *= 0.8;
    better[1].network_efficiency_inner *= 1.1;
    better[2].network_efficiency_outer *= 1.1;
    for (double bytes = 64; bytes < 1e12; bytes *= 10)
        for (int i = 0; i < 3; i++)
            assert_true(sm_curve_cost(curve, system, &better[i], bytes).expected_s <=
                        sm_curve_cost(curve, system, c, bytes).expected_s);
}

static void expected_times_grow_with_bytes(void **state) { for_each_curve(grows_and_is_concave); }

static void better_constants_are_never_slower(void **state) {
    for_each_curve(better_constants_help);
}

static void faster_links_are_never_slower(void **state) {
    sm_calibration c = h100_constants();
    for (size_t s = 0; s < sizeof systems / sizeof systems[0]; s++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            sm_system system = system_of(systems[s]), better = system;
            for (int l = 0; l < better.levels; l++) {
                better.level[l].bytes_per_s_oneway *= 1.3;
                better.level[l].hop_latency_s *= 0.7;
            }
            sm_curve curve = curve_of(&system, ops[o], system.chips);
            sm_curve fast = curve_of(&better, ops[o], system.chips);
            for (double bytes = 64; bytes < 1e12; bytes *= 10)
                assert_true(sm_curve_cost(&fast, &better, &c, bytes).expected_s <=
                            sm_curve_cost(&curve, &system, &c, bytes).expected_s);
        }
}

/* The planner takes members side by side for the best that a placement can do on switches: so it is
 * as long as the network between nodes reaches no greater part of its rate than that inside. */
static void expect_no_faster(const sm_system *system, const sm_calibration *c,
                             const sm_curve *inner, const sm_curve *outer) {
    for (double bytes = 64; bytes < 1e12; bytes *= 10) {
        double in = sm_curve_cost(inner, system, c, bytes).expected_s;
        double out = sm_curve_cost(outer, system, c, bytes).expected_s;
        if (!(in <= out * (1 + 1e-9)))
            fail_msg("%s: %s of %d, %g bytes: %g s, %g s spread", system->text,
                     sm_collective_name(inner->op), inner->group, bytes, in, out);
    }
}

/* `below` members side by side, then strangers, then the other members. */
static void side_by_side_is_best(const sm_system *system, const sm_calibration *c, int n,
                                 sm_collective op) {
    sm_curve inner = curve_of(system, op, n);
    for (int below = 1; below < n; below *= 2)
        for (int strangers = 2; strangers * n <= system->chips; strangers *= 2) {
            int sizes[3] = {below, strangers, n / below}, order[3] = {0, 1, 2};
            sm_placement placement;
            if (!sm_placement_fill(system, 3, sizes, order, NULL, &placement)) continue;
            sm_group group = sm_group_join(&placement, SM_BIT(0) | SM_BIT(2));
            sm_curve outer = sm_collective_curve(system, op, &group, 1.0);
            expect_no_faster(system, c, &inner, &outer);
        }
}

static void no_placement_beats_members_side_by_side(void **state) {
    static const char *const switched[] = {"h100-sxm:16x8", "gb200-nvl72:4x72", "a100-80:8x8",
                                           "v100:4x8"};
    static const sm_collective gathers[] = {SM_ALL_GATHER, SM_ALL_REDUCE, SM_ALL_TO_ALL,
                                            SM_PERMUTE};
    sm_calibration c = h100_constants();
    c.network_efficiency_outer = c.network_efficiency_inner;
    for (size_t s = 0; s < sizeof switched / sizeof switched[0]; s++)
        for (size_t o = 0; o < sizeof gathers / sizeof gathers[0]; o++) {
            sm_system system = system_of(switched[s]);
            for (int n = 2; n < system.chips; n *= 2)
                if (system.chips % n == 0) side_by_side_is_best(&system, &c, n, gathers[o]);
        }
}

/* ---- rows ---- */

static sm_truth_row collective_row(const char *system, const char *op, int ranks, int nodes,
                                   double bytes, const char *source) {
    sm_truth_row row = {
        .kind = SM_TRUTH_COLLECTIVE, .id = "2", .line = 2, .chip = system, .measured_s = 1e-5};
    row.of.collective = (sm_collective_row){
        .op = op, .ranks = ranks, .nodes = nodes, .bytes = bytes, .busbw_GBps = NAN};
    measured_by(&row, source);
    return row;
}

static sm_prediction predict(const sm_truth_row *row) {
    sm_calibration c = h100_constants();
    sm_prediction out = {.unknown = NULL};
    const sm_chip *chip = sm_truth_chip(row->chip);
    assert_non_null(chip);
    if (row->kind == SM_TRUTH_MEMOP) sm_predict_memop(row, chip, &c, &out);
    else sm_predict_collective(row, chip, &c, &out);
    return out;
}

static double expected_of(const char *system, const char *op, int ranks, int nodes, double bytes,
                          const char *source) {
    sm_truth_row row = collective_row(system, op, ranks, nodes, bytes, source);
    sm_prediction p = predict(&row);
    if (p.unknown) fail_msg("unknown: %s", p.unknown);
    assert_int_equal(p.regime, SM_REGIME_collective);
    assert_true(p.lower_s <= p.expected_s && p.expected_s <= p.upper_s);
    return p.expected_s;
}

static void assert_unknown(const char *system, const char *op, int ranks, int nodes, double bytes,
                           const char *why) {
    sm_truth_row row = collective_row(system, op, ranks, nodes, bytes, "nccl");
    sm_prediction p = predict(&row);
    assert_non_null(p.unknown);
    assert_string_equal(p.unknown, why);
}

static void what_a_row_leaves_open_is_said(void **state) {
    assert_unknown("h100_sxm_node", "all_reduce", 8, 1, 0,
                   "bytes: the source prints a bandwidth only");
    assert_unknown("h100_sxm_node", "all_reduce", 8, 1, NAN,
                   "bytes: the source prints a bandwidth only");
    assert_unknown("h100_sxm_node", "gather_scatter", 8, 1, 1e6, "this operation");
    assert_unknown("h100_sxm_node", "all_reduce", 1, 1, 1e6, "ranks");
    assert_unknown("h100_sxm_node", "all_reduce", -8, 1, 1e6, "ranks");
    assert_unknown("h100_sxm_node(dgx)_multi", "send_recv", 2, 2, 1e6,
                   "the network between the nodes");
    assert_unknown("a40_pairwise_nvlink", "send_recv", 2, 1, 1e6,
                   "whether the two ranks are a bridged pair");
    assert_unknown("h100_sxm_node", "all_reduce", 7, 9, 1e6, "a system of this shape");
    assert_unknown("h100_sxm_node", "all_reduce", 2147483647, 1, 1e6, "a system of this shape");
}

static void an_all_to_all_counts_the_buffer_of_a_rank(void **state) {
    double s = expected_of("h100_sxm_node", "all_to_all", 8, 1, 536870912, "nccl");
    assert_near(s, 1490e-6, 0.15); /* measured */
    assert_true(s > 536870912 * 7.0 / 8 / 450e9);
}

static void the_source_names_the_software(void **state) {
    const char *library = "nccl", *trtllm = "trtllm custom", *vllm = "vllm custom";
    double nccl = expected_of("h100_sxm_node", "all_reduce", 8, 1, 8192, library);
    double lamport = expected_of("h100_sxm_node", "all_reduce", 8, 1, 8192, trtllm);
    double barriers = expected_of("h100_sxm_node", "all_reduce", 8, 1, 8192, vllm);
    assert_true(lamport < barriers && barriers < nccl);
    assert_near(lamport, 3.5e-6, 0.3);
    assert_near(expected_of("h100_sxm_node", "all_reduce", 8, 1, 1e9, vllm),
                expected_of("h100_sxm_node", "all_reduce", 8, 1, 1e9, library), 1e-12);
    double bench = expected_of("h100_sxm_node", "all_reduce", 8, 1, 8192, "all_reduce_bench");
    assert_near(bench - nccl, 20e-6, 1e-9);
}

static void a_source_may_rule_in_network_reduction_out(void **state) {
    double nvls = expected_of("h200_sxm_node", "all_reduce", 7, 1, 8589934592.0, "nccl");
    double ring = expected_of("h200_sxm_node", "all_reduce", 7, 1, 8589934592.0, "nccl - switches");
    assert_true(ring > 1.1 * nvls);
    assert_near(nvls, 32012e-6, 0.1); /* stas00, both */
    assert_near(ring, 40267e-6, 0.1);
}

/* Two starts, and bytes that cross the node's link at the rate of its adapters. */
static void expert_dispatch_has_two_phases(void **state) {
    double inside = expected_of("h200_sxm_node", "deepep_ll_dispatch", 8, 1, 59264, "DeepEP LL");
    assert_true(inside > 2 * 4.9e-6 && inside < 13e-6);
    double outside =
        expected_of("h200_sxm_cluster", "deepep_ll_dispatch", 16, 2, 15098145, "DeepEP LL");
    assert_near(outside, 183e-6, 0.15); /* measured */
}

/* Ranks of a TPU7x are cores: four are two chips, on one link. */
static void ranks_of_a_tpu7x_are_cores(void **state) {
    sm_truth_row row = collective_row("tpu7x_2x2x1", "all_gather", 4, 1, 1e9, "microbenchmarks");
    sm_prediction p = predict(&row);
    assert_null(p.unknown);
    assert_near(p.lower_s, 0.5e9 / 100e9, 1e-9);
}

/* ---- memory-bound operations ---- */

static sm_truth_row memop_row(const char *chip, const char *op, double rows, double cols,
                              double bytes, const char *source) {
    sm_truth_row row = {
        .kind = SM_TRUTH_MEMOP, .id = "2", .line = 2, .chip = chip, .measured_s = 1e-5};
    row.of.memop = (sm_memop_row){op, "fp16", rows, cols, bytes};
    measured_by(&row, source);
    return row;
}

static sm_prediction memop(const char *chip, const char *op, double rows, double cols, double bytes,
                           const char *source) {
    sm_truth_row row = memop_row(chip, op, rows, cols, bytes, source);
    sm_prediction p = predict(&row);
    assert_int_equal(p.regime, SM_REGIME_memory);
    if (!p.unknown) assert_true(p.lower_s <= p.expected_s && p.expected_s <= p.upper_s);
    return p;
}

static void copies_run_at_the_rate_of_memory(void **state) {
    sm_prediction p = memop("tpu7x_core", "hbm_copy", 1, 1, 1e9, "microbenchmarks");
    double rate = sm_truth_chip("tpu7x_core")->memory_bytes_per_s.value;
    assert_near(p.expected_s, 1.4e-6 + 1e9 / (rate * 0.97), 1e-9);
    assert_near(p.lower_s, 1e9 / rate, 1e-12);
}

/* 20 MB stay in the 50 MB of an H100 and come faster than from HBM; twice 50 MB cannot. */
static void bytes_that_stay_on_chip_are_quicker(void **state) {
    sm_prediction kept = memop("h100_sxm", "residual_add", 400, 8192, 20e6, "vidur");
    sm_prediction large = memop("h100_sxm", "residual_add", 4000, 8192, 200e6, "vidur");
    assert_true(kept.expected_s < 1.4e-6 + 20e6 / 3350e9);
    assert_true(kept.lower_s < 20e6 / 3350e9);
    assert_near(large.lower_s, 150e6 / 3350e9, 1e-9);
    assert_near(large.expected_s, 1.4e-6 + 200e6 / (3350e9 * 0.97), 1e-9);
}

/* One row to a block, two blocks to a core: 264 rows are a wave of an H100, 265 are two. */
static void rows_run_in_waves(void **state) {
    double one = memop("h100_sxm", "rmsnorm", 264, 8192, 264 * 32768.0, "vidur").expected_s;
    double two = memop("h100_sxm", "rmsnorm", 265, 8192, 265 * 32768.0, "vidur").expected_s;
    assert_near(one, 1.4e-6 + 16 * 547 / 1830e6, 1e-9);
    assert_near(two - 1.4e-6, 2 * (one - 1.4e-6), 1e-9);
    assert_near(one, 6e-6, 0.1); /* measured */
    assert_near(two, 11e-6, 0.1);
}

static void one_source_carries_the_host(void **state) {
    double framework = memop("a100_sxm_80gb", "gelu", 1, 1024, 4096, "llmcompass").expected_s;
    double kernel = memop("a100_sxm_80gb", "gelu", 1, 1024, 4096, "vidur").expected_s;
    assert_near(framework - kernel, 45e-6, 1e-9);
    double amd = memop("mi210", "gelu", 1, 1024, 4096, "llmcompass").expected_s;
    assert_near(amd, 22.4e-6, 0.01);
}

static void odd_rows_have_an_answer(void **state) {
    static const double odd[] = {0, -1, NAN, INFINITY, 1e300, 1};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
            sm_truth_row row = memop_row("h100_sxm", "silu_mul", odd[i], odd[k], 1e6, "");
            sm_prediction p = predict(&row);
            assert_null(p.unknown);
            assert_true(p.expected_s >= p.lower_s);
        }
    sm_prediction p = memop("h100_sxm", "no such operation", 1, 1, 1e6, "");
    assert_null(p.unknown);
    p = memop("h100_sxm", "gelu", 1, 1, NAN, "");
    assert_string_equal(p.unknown, "bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_of_a_mesh_have_few_links),
        cmocka_unit_test(a_small_message_goes_by_ll),
        cmocka_unit_test(a_large_message_goes_by_simple),
        cmocka_unit_test(a_broadcast_is_a_ring_of_all),
        cmocka_unit_test(measured_times_come_back),
        cmocka_unit_test(tori_have_no_protocols),
        cmocka_unit_test(the_book_and_peer_kernels_are_not_the_librarys),
        cmocka_unit_test(a_peer_kernel_is_quick_to_start),
        cmocka_unit_test(a_pair_of_a_mesh_has_one_link),
        cmocka_unit_test(expected_times_grow_with_bytes),
        cmocka_unit_test(better_constants_are_never_slower),
        cmocka_unit_test(faster_links_are_never_slower),
        cmocka_unit_test(no_placement_beats_members_side_by_side),
        cmocka_unit_test(what_a_row_leaves_open_is_said),
        cmocka_unit_test(an_all_to_all_counts_the_buffer_of_a_rank),
        cmocka_unit_test(the_source_names_the_software),
        cmocka_unit_test(a_source_may_rule_in_network_reduction_out),
        cmocka_unit_test(expert_dispatch_has_two_phases),
        cmocka_unit_test(ranks_of_a_tpu7x_are_cores),
        cmocka_unit_test(copies_run_at_the_rate_of_memory),
        cmocka_unit_test(bytes_that_stay_on_chip_are_quicker),
        cmocka_unit_test(rows_run_in_waves),
        cmocka_unit_test(one_source_carries_the_host),
        cmocka_unit_test(odd_rows_have_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

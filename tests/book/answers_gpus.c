/* "How to Think About GPUs": part 12 and its questions: chips, nodes, fat trees, collectives. Its
 * rooflines of training are in answers_gpus_training.c. */
#include "answers_gpus.h"
#include "instruments.h"
#include <math.h>

#define MATMUL "fp16[B,D] fp16[D,F] -> fp16[B,F]"

static double peak(const sm_chip *chip) { return sm_chip_peak(chip, SM_BF16, NULL); }

static sm_chip h100(void) {
    sm_chip chip = book_chip("h100-sxm");
    book_give(&chip.flops_per_s[SM_BF16], 990e12);
    return chip;
}

/* ---- chips ---- */

static double per_tensor_core(const sm_chip *chip, double clock_hz) {
    return peak(chip) / (chip->cores * chip->matrix_units_per_core * clock_hz);
}

static void tensor_core(book_item *item) {
    sm_chip chip = h100();
    book_is(item, "FLOPs per cycle", per_tensor_core(&chip, 1.76e9), 1065.34);
    book_is(item, "at 1.83 GHz", per_tensor_core(&chip, chip.clock_hz.value), 1024.59);
}

static void tensor_core_b200(book_item *item) {
    sm_chip chip = book_chip("b200");
    book_is(item, "FLOPs per cycle", per_tensor_core(&chip, 1.86e9), 2043.37);
}

/* Four partitions of 16,384 registers; a warp is 32 threads of up to 256. */
static void registers(book_item *item) {
    double bytes = book_local_bytes("fp32[4,16384]", "X=1", "");
    book_exactly(item, "bytes", bytes, 262144);
    book_exactly(item, "warps", bytes / book_local_bytes("fp32[32,256]", "X=1", ""), 8);
}

static void l2(book_item *item) {
    sm_chip chip = h100();
    sm_roofline cache = book_roofline_of(&chip, MATMUL, "B=8,D=8,F=8", SM_MEMORY_ONCHIP);
    sm_roofline hbm = book_roofline_of(&chip, MATMUL, "B=8,D=8,F=8", SM_MEMORY_HBM);
    book_is(item, "ratio", cache.bytes_per_s / hbm.bytes_per_s, 1.64179);
}

/* Lanes of a vector unit: its peak counts a multiply and an add per lane and cycle. The vector peak
 * of H100 is at the boost clock of 1.98 GHz. */
static double h100_lanes(void) {
    sm_chip chip = h100();
    double lanes = chip.vector_flops_per_s.value / (2 * 1.98e9);
    double schedulers = chip.cores * chip.matrix_units_per_core;
    return round(lanes / schedulers) * schedulers; /* the peak is rounded to 67e12 */
}

static double b200_lanes(void) {
    sm_chip old = h100(), chip = book_chip("b200");
    double per_scheduler = h100_lanes() / (old.cores * old.matrix_units_per_core);
    return per_scheduler * chip.cores * chip.matrix_units_per_core;
}

static double v5p_lanes(void) {
    sm_chip chip = book_chip("tpu-v5p");
    return chip.vector_flops_per_s.value / chip.clock_hz.value; /* no multiply-add counted twice */
}

static void independent_units(book_item *item) {
    sm_chip chip = h100(), tpu = book_chip("tpu-v5p");
    book_exactly(item, "schedulers of H100", chip.cores * chip.matrix_units_per_core, 528);
    book_exactly(item, "lanes of H100", h100_lanes(), 16896);
    book_exactly(item, "slots of v5p", v5p_lanes() / (tpu.tile_m * tpu.tile_n), 8);
}

static void q1_1(book_item *item) {
    book_exactly(item, "lanes of H100", h100_lanes(), 16896);
    book_exactly(item, "lanes of B200", b200_lanes(), 18944);
    book_exactly(item, "lanes of v5p", v5p_lanes(), 8192);
}

static void q1_2(book_item *item) {
    sm_chip chip = h100();
    double boost = chip.vector_flops_per_s.value / 2; /* no multiply-adds */
    book_is(item, "at 1.59 GHz", boost * 1.59 / 1.98, 2.68646e13);
    book_is(item, "at 1.98 GHz", boost, 3.34541e13);
    book_is(item, "tensor cores against it", peak(&chip) / boost, 29.5928);
}

static double ridge(const char *name, const char *einsum, double bf16, double fp8) {
    sm_chip chip = book_chip(name);
    book_give(&chip.flops_per_s[SM_BF16], bf16);
    book_give(&chip.flops_per_s[SM_FP8], fp8);
    sm_roofline r = book_roofline_of(&chip, einsum, "B=8,D=8,F=8", SM_MEMORY_HBM);
    return r.peak_flops_per_s / r.bytes_per_s;
}

static void q1_3(book_item *item) {
    static const char bf16[] = "bf16[B,D] bf16[D,F] -> bf16[B,F]";
    static const char fp8[] = "fp8[B,D] fp8[D,F] -> fp8[B,F]";
    book_is(item, "H100", ridge("h100-sxm", bf16, 990e12, 1980e12), 295.522);
    book_is(item, "B200", ridge("b200", bf16, 2250e12, 4500e12), 281.25);
    book_is(item, "H100 fp8", ridge("h100-sxm", fp8, 990e12, 1980e12), 591.045);
    book_is(item, "B200 fp8", ridge("b200", fp8, 2250e12, 4500e12), 562.5);
}

static sm_roofline on_b200(const char *dims) {
    sm_chip chip = book_chip("b200");
    book_give(&chip.flops_per_s[SM_FP16], 2.3e15);
    return book_roofline_of(&chip, MATMUL, dims, SM_MEMORY_HBM);
}

static void q1_4a(book_item *item) {
    sm_roofline r = on_b200("B=64,D=4096,F=8192");
    book_exactly(item, "bytes", r.bytes, 68681728);
    book_is(item, "seconds", r.lower_s, 8.58522e-06);
}

static void q1_4b(book_item *item) {
    sm_roofline r = on_b200("B=512,D=4096,F=8192");
    book_is(item, "math", r.math_s, 1.4939e-05);
    book_is(item, "memory", r.memory_s, 9.96147e-06);
    book_is(item, "seconds", r.lower_s, 1.4939e-05);
}

static void q1_5(book_item *item) {
    sm_chip chip = h100();
    book_exactly(item, "bytes", chip.shared_bytes.value, 34603008);
}

static void q1_6(book_item *item) {
    sm_chip chip = book_chip("b200");
    book_is(item, "clock", chip.vector_flops_per_s.value / (2 * b200_lanes()), 2.11149e9);
}

static double vector_add_s(const char *dims) {
    sm_chip chip = h100();
    return book_roofline_of(&chip, "fp32[N] fp32[N] -> fp32[N]", dims, SM_MEMORY_HBM).memory_s;
}

static void q1_7(book_item *item) {
    sm_chip chip = h100();
    sm_op_cost c = sm_vector_cost(&chip, sm_calibration_of(&chip), 1e12, 1e12);
    book_is(item, "N=65536", vector_add_s("N=65536"), 2.34756e-07);
    book_is(item, "N=2^30", vector_add_s("N=1073741824"), 0.00384624);
    book_is(item, "critical intensity without multiply-adds", c.memory_s / c.math_s / 2, 10);
}

/* ---- nodes and fat trees ---- */

enum { NODE = 0, LEAF = 1, SPINE = 2 };

/* Links above a level: what its children send at once. */
static double level_bytes_per_s(const sm_system *system, int level) {
    return system->level[level].size * system->level[level].bytes_per_s_oneway;
}

static void nvlink(book_item *item) {
    enum { PORTS = 18 }; /* of NVLink 4 on the chip */
    double egress = h100().tree[NODE].child_bytes_per_s_oneway.value, port = egress / PORTS;
    book_is(item, "egress", egress, 450e9);
    book_is(item, "4 switches of 64 ports", 4 * 64 * port, 6.4e12);
}

static void q2_1(book_item *item) {
    sm_system node = book_system("h100-sxm:1x8");
    book_is(item, "bytes/s", level_bytes_per_s(&node, NODE), 3.6e12);
}

/* Half of the chips send to the other half, and receive as much. */
static void q2_2(book_item *item) {
    sm_system node = book_system("h100-sxm:1x8");
    book_is(item, "bytes/s", 2 * level_bytes_per_s(&node, NODE) / 2, 3.6e12);
}

static double node_gather_s(const char *array, const char *dims) {
    sm_system node = book_system("h100-sxm:1x8");
    return book_local_bytes(array, "X=8", dims) * book_s_per_byte(&node, SM_ALL_GATHER, "X=8", "X");
}

/* "Approximately B/W": a node so large that a chip's own part does not count. */
static double large_node_gather_s(const char *array, const char *dims) {
    sm_system node = book_gpu_limit("h100-sxm", NODE);
    return book_local_bytes(array, "X=8", dims) *
           book_s_per_byte(&node, SM_ALL_GATHER, "X=8192", "X");
}

static void q2_3(book_item *item) {
    const char *dims = "E=4096,F=65536";
    book_exactly(item, "bytes", book_local_bytes("bf16[E,F]", "X=8", dims), 536870912);
    book_is(item, "seconds", node_gather_s("bf16[E,F]", dims), 0.00104392);
    book_is(item, "approximately", large_node_gather_s("bf16[E,F]", dims), 0.00119305);
}

/* Switches of 64 ports, as many as the bytes/s of a level need: half of a leaf's ports go up. */
static double leaf_switches(const sm_system *system, double switch_bytes_per_s) {
    return 2 * level_bytes_per_s(system, LEAF) / switch_bytes_per_s;
}

static void superpod(book_item *item) {
    sm_system pod = book_system("h100-sxm:128x8");
    double nodes = (double)pod.chips / pod.level[NODE].size;
    double ports = 64 * pod.chip.dcn_bytes_per_s_oneway.value; /* a port is one chip's 400 Gb/s */
    double leaves = leaf_switches(&pod, ports) * pod.level[SPINE].size;
    double spines = level_bytes_per_s(&pod, SPINE) / ports;
    book_is(item, "switches of a leaf group", leaf_switches(&pod, ports), 8);
    book_is(item, "spine switches", spines, 16);
    book_is(item, "all, with 4 in a node", 4 * nodes + leaves + spines, 560);
}

static void gb200_egress(book_item *item) {
    sm_chip chip = book_chip("gb200-nvl72"), old = h100();
    double egress = chip.tree[LEAF].child_bytes_per_s_oneway.value;
    book_is(item, "GB/s", egress / 1e9, 3600);
    book_is(item, "against H100", egress / old.tree[LEAF].child_bytes_per_s_oneway.value, 9);
}

static void v5p_egress(book_item *item) {
    sm_chip chip = book_chip("tpu-v5p");
    book_is(item, "bytes/s", chip.links_per_chip * chip.link_bytes_per_s_oneway.value, 540e9);
}

static void q3_1(book_item *item) {
    sm_system pod = book_system("h100-sxm:128x8");
    double nodes = (double)pod.chips / pod.level[NODE].size;
    book_is(item, "node", pod.level[LEAF].bytes_per_s_oneway / 1e9, 400);
    book_is(item, "leaf group", level_bytes_per_s(&pod, LEAF) / 1e12, 12.8);
    book_is(item, "leaf group to spine", pod.level[SPINE].bytes_per_s_oneway / 1e12, 12.8);
    book_is(item, "spine", level_bytes_per_s(&pod, SPINE) / 1e12, 51.2);
    book_is(item, "spine per node", level_bytes_per_s(&pod, SPINE) / nodes / 1e9, 400);
}

static void q3_2(book_item *item) {
    sm_system two = book_system("h100-sxm:256x8"), four = book_system("h100-sxm:512x8");
    double ports = 64 * two.chip.dcn_bytes_per_s_oneway.value;
    book_exactly(item, "leaf groups of 2048", two.level[SPINE].size, 8);
    book_is(item, "spine switches of 2048", level_bytes_per_s(&two, SPINE) / ports, 32);
    book_is(item, "up and down of a leaf",
            level_bytes_per_s(&two, LEAF) / two.level[SPINE].bytes_per_s_oneway, 1);
    double up = level_bytes_per_s(&four, SPINE + 1);
    book_is(item, "core switches of 4096", up / ports, 64);
    book_is(item, "its spine switches, as many ports down as up", 2 * up / ports, 128);
}

static void spine_appendix(book_item *item) {
    sm_system pod = book_system("h100-sxm:128x8");
    book_is(item, "TB/s", level_bytes_per_s(&pod, SPINE) / 1e12, 51.2);
}

static void coherent_link(book_item *item) {
    sm_chip gb200 = book_chip("gb200-nvl72");
    double of_a_grace = 2 * gb200.pcie_bytes_per_s_oneway.value; /* two GPUs share it */
    book_is(item, "bytes/s", of_a_grace, 450e9);
}

/* ---- collectives ---- */

static void quiz_1(book_item *item) {
    book_is(item, "approximately", large_node_gather_s("bf16[E,F]", "E=1024,F=16384"), 7.45654e-05);
    book_is(item, "seconds", node_gather_s("bf16[E,F]", "E=1024,F=16384"), 6.52447e-05);
}

static double exchange_factor(void) {
    sm_system node = book_system("h100-sxm:1x8");
    return book_s_per_byte(&node, SM_ALL_TO_ALL, "X=8", "X") * node.level[NODE].bytes_per_s_oneway;
}

static void exchange(book_item *item) {
    sm_system large = book_gpu_limit("h100-sxm", NODE);
    double s = book_s_per_byte(&large, SM_ALL_TO_ALL, "X=8192", "X");
    book_is(item, "N=8", exchange_factor(), 0.109375);
    book_is(item, "approximately, x N / 8", s * large.level[NODE].bytes_per_s_oneway * 8192 / 8,
            0.125);
}

static sm_group node_group(const sm_system *node) {
    sm_placement placement;
    sm_mesh mesh = book_mesh("X=8");
    sm_source source = sm_source_of("mesh", "X=8");
    if (sm_placement_of_mesh(node, &mesh, &source, &placement, NULL) != SM_OK) return (sm_group){0};
    return sm_group_join(&placement, 1);
}

static double ragged_s(double part) {
    sm_system node = book_system("h100-sxm:1x8");
    sm_group group = node_group(&node);
    sm_curve curve = sm_collective_curve(&node, SM_ALL_TO_ALL, &group, part);
    return curve.ideal_s_per_byte;
}

static void quiz_2(book_item *item) {
    book_is(item, "half of the blocks", ragged_s(0.5) / ragged_s(1), 0.5);
}

static void ragged(book_item *item) {
    double others = exchange_factor() * 8; /* (Z-1)/Z */
    book_is(item, "expected part, Z=8 and k=4", sm_ragged_fraction(8, 4) * others, 0.362091);
    book_is(item, "k/Z", ragged_s(0.5) / ragged_s(1) * others, 0.4375);
}

static void reduction_gain(book_item *item) {
    sm_system node = book_system("h100-sxm:1x8");
    sm_curve curve = book_curve(&node, SM_ALL_REDUCE, "X=8", "X");
    double plain = book_line(&curve, NULL).line.s_per_byte;
    book_is(item, "in theory", plain / book_line(&curve, "in-network reduction").line.s_per_byte,
            1.75);
}

static void array_58MB(book_item *item) {
    book_exactly(item, "bytes", book_local_bytes("bf16[8192,3584]", "X=1", ""), 58720256);
}

/* Bytes/s of an all-gather at one level of a system, in 1e9. */
static double level_rate(const sm_system *system, const char *mesh, int level) {
    sm_curve curve = book_curve(system, SM_ALL_GATHER, mesh, "X");
    return 1e-9 / book_line(&curve, NULL).level_s_per_byte[level];
}

static void tree(book_item *item) {
    sm_system pod = book_system("h100-sxm:128x8");
    book_is(item, "node", level_rate(&pod, "X=1024", NODE), 514.286);
    book_is(item, "leaf", level_rate(&pod, "X=1024", LEAF), 412.903);
    book_is(item, "spine", level_rate(&pod, "X=1024", SPINE), 17066.7);
}

static void exchange_2_nodes(book_item *item) {
    sm_system one = book_system("h100-sxm:1x8"), two = book_system("h100-sxm:2x8");
    double ratio = book_s_per_byte(&two, SM_ALL_TO_ALL, "X=16", "X") /
                   book_s_per_byte(&one, SM_ALL_TO_ALL, "X=8", "X");
    book_is(item, "ratio", ratio, 2.57143);
}

#define QUIZ_3 "D=8192,F=32768"

/* Many members: the first-order cost B/W that the answer uses beyond Y=8. */
static double inner_axis_s(const char *mesh, const char *dims_mesh) {
    sm_system large = book_gpu_limit("h100-sxm", LEAF);
    return book_local_bytes("bf16[D,F_Y]", dims_mesh, QUIZ_3) *
           book_s_per_byte(&large, SM_ALL_GATHER, mesh, "X");
}

static void quiz_3(book_item *item) {
    sm_system unit = book_system("h100-sxm:32x8");
    double bytes = book_local_bytes("bf16[D,F_Y]", "X=32,Y=8", QUIZ_3);
    double s = book_s_per_byte(&unit, SM_ALL_GATHER, "X=32,Y=8", "X");
    book_is(item, "Y=8", bytes * s, 0.00130023);
    book_is(item, "Y=16", inner_axis_s("X=4096,Y=16", "Y=16"), 0.000671089);
    book_is(item, "Y=64", inner_axis_s("X=1024,Y=64", "Y=64"), 0.000167772);
}

/* A node takes in what the others hold, B in all with its own, and its switch hands B to each of N
 * chips: B/450e9. The leaf carries B(M-1)/M in and out of each of M nodes. */
static void q4_1(book_item *item) {
    sm_system unit = book_system("h100-sxm:32x8");
    sm_curve curve = book_curve(&unit, SM_ALL_GATHER, "X=256", "X");
    sm_algorithm line = book_line(&curve, NULL);
    double leaf = line.level_s_per_byte[LEAF] * unit.level[LEAF].bytes_per_s_oneway;
    double node = line.level_s_per_byte[NODE] * unit.level[NODE].bytes_per_s_oneway;
    book_is(item, "into a node, its own part with it", leaf + 1.0 / 32, 1);
    book_is(item, "out of its switch, each chip's own part with it", (node + 1.0 / 8) * 8, 8);
    book_is(item, "leaf", line.level_s_per_byte[LEAF], 31.0 / (32 * 400e9));
}

static void q4_2(book_item *item) {
    sm_system node = book_system("h100-sxm:1x8");
    sm_curve curve = book_curve(&node, SM_ALL_REDUCE, "X=8", "X");
    book_is(item, "s per byte", book_line(&curve, "in-network reduction").line.s_per_byte,
            1 / 450e9);
}

static void q4_3(book_item *item) {
    const char *dims = "D=8192,F=32768";
    sm_system node = book_system("h100-sxm:1x8"), unit = book_system("h100-sxm:32x8");
    sm_curve curve = book_curve(&node, SM_ALL_REDUCE, "X=4,Y=2", "X");
    double bytes = book_local_bytes("bf16[D,F_Y]", "X=4,Y=2", dims);
    book_is(item, "in a node", bytes * book_line(&curve, "in-network reduction").line.s_per_byte,
            2.0 * 8192 * 32768 / (2 * 450e9));
    unit.level[LEAF].in_network_reduction = true;
    curve = book_curve(&unit, SM_ALL_REDUCE, "X=128,Y=2", "X");
    bytes = book_local_bytes("bf16[D,F_Y]", "X=128,Y=2", dims);
    double carried = bytes * book_line(&curve, "in-network reduction").level_s_per_byte[LEAF] *
                     unit.level[LEAF].bytes_per_s_oneway;
    book_is(item, "beyond it, all of B", carried, 2.0 * 8192 * 32768);
}

static void q4_4(book_item *item) {
    sm_system pod = book_system("h100-sxm:128x8");
    pod.level[SPINE].in_network_reduction = pod.level[LEAF].in_network_reduction = true;
    sm_curve curve = book_curve(&pod, SM_ALL_REDUCE, "X=4,Y=256", "X");
    double share = 1.0 / 256; /* each of 256 chips of a unit reduces its part of F */
    book_is(item, "bytes/s",
            1 / (share * book_line(&curve, "in-network reduction").line.s_per_byte), 1.28e13);
}

static void q4_5(book_item *item) {
    sm_system two = book_system("h100-sxm:2x8");
    book_is(item, "node", level_rate(&two, "X=16", NODE), 514.286);
    book_is(item, "scale-out", level_rate(&two, "X=16", LEAF), 800);
}

static void summary(book_item *item) {
    sm_system node = book_gpu_limit("h100-sxm", NODE), leaf = book_gpu_limit("h100-sxm", LEAF);
    sm_system pod = book_system("h100-sxm:128x8");
    book_is(item, "node", level_rate(&node, "X=8192", NODE), 450);
    book_is(item, "leaf", level_rate(&leaf, "X=65536", LEAF), 400);
    book_is(item, "spine per node",
            pod.level[SPINE].bytes_per_s_oneway / pod.level[LEAF].size / 1e9, 400);
}

static const book_answer answers[] = {{"gpu.tc", tensor_core, 0},
                                      {"gpu.tc.b200", tensor_core_b200, 0},
                                      {"gpu.regs", registers, 0},
                                      {"gpu.l2ratio", l2, 0},
                                      {"gpu.vs.tpu.alus", independent_units, 0},
                                      {"gpu.q1.1", q1_1, 0},
                                      {"gpu.q1.2", q1_2, 0},
                                      {"gpu.q1.3", q1_3, 0},
                                      {"gpu.q1.4a", q1_4a, 0},
                                      {"gpu.q1.4b", q1_4b, 0},
                                      {"gpu.q1.5", q1_5, 0},
                                      {"gpu.q1.6", q1_6, 0},
                                      {"gpu.q1.7", q1_7, 0},
                                      {"gpu.nvl.bw", nvlink, 0},
                                      {"gpu.q2.1", q2_1, 0},
                                      {"gpu.q2.2", q2_2, 0},
                                      {"gpu.q2.3", q2_3, 0},
                                      {"gpu.superpod", superpod, 0},
                                      {"gpu.gb200.egress", gb200_egress, 0},
                                      {"gpu.v5p.egress", v5p_egress, 0},
                                      {"gpu.q3.1", q3_1, 0},
                                      {"gpu.q3.2", q3_2, 0},
                                      {"gpu.pq1", quiz_1, 0},
                                      {"gpu.a2a", exchange, 0},
                                      {"gpu.pq2", quiz_2, 0},
                                      {"gpu.ragged", ragged, 0},
                                      {"gpu.ar.emp", reduction_gain, 0},
                                      {"gpu.ar.58MB", array_58MB, 0},
                                      {"gpu.tree", tree, 0},
                                      {"gpu.a2a.2node", exchange_2_nodes, 0},
                                      {"gpu.pq3", quiz_3, 0},
                                      {"gpu.q4.1", q4_1, 0},
                                      {"gpu.q4.2", q4_2, 0},
                                      {"gpu.q4.3", q4_3, 0},
                                      {"gpu.q4.4", q4_4, 0},
                                      {"gpu.q4.5", q4_5, 0},
                                      {"gpu.dp", gpu_data, 0},
                                      {"gpu.dp.llama", gpu_data_llama, 0},
                                      {"gpu.dp.ds", gpu_data_deepseek, 0},
                                      {"gpu.dp.moe", gpu_data_experts, 0},
                                      {"gpu.dp.2", gpu_data_2_nodes, 0},
                                      {"gpu.tp", gpu_tensor, 0},
                                      {"gpu.ep", gpu_experts, 0},
                                      {"gpu.pp", gpu_pipeline, 0},
                                      {"gpu.ex.ds", gpu_deepseek, 0},
                                      {"gpu.ex.ll", gpu_llama, 0},
                                      {"gpu.q5.1", gpu_b200, 0},
                                      {"gpu.q5.1.nvl72", gpu_nvl72, 0},
                                      {"gpu.q5.2.1", gpu_70b_memory, 0},
                                      {"gpu.q5.2.2", gpu_70b_days, 0},
                                      {"gpu.q5.2.3", gpu_70b_tensor, 0},
                                      {"gpu.q5.2.3a", gpu_70b_per_gpu, 0},
                                      {"gpu.q5.2.3b", gpu_70b_tokens, 0},
                                      {"gpu.q5.2.3c", gpu_70b_pipeline, 0},
                                      {"gpu.q5.3", gpu_megatron, 0},
                                      {"gpu.appA", gpu_gb200_gain, 0},
                                      {"gpu.c2c", coherent_link, 0},
                                      {"gpu.appB.spine", spine_appendix, 0},
                                      {"gpu.table.summary", summary, 0}};

const book_chapter book_gpus = {"12-gpus", answers, (int)(sizeof answers / sizeof *answers)};

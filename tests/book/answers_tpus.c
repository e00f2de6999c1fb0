/* "How to Think About TPUs": the numbers of part 2, its questions, and its 2026 revision. */
#include "book.h"
#include "instruments.h"
#include <math.h>

static double peak(const sm_chip *chip) { return sm_chip_peak(chip, SM_BF16, NULL); }

static double units(const sm_chip *chip) { return chip->cores * chip->matrix_units_per_core; }

/* Memory bandwidth beside PCIe, and the like: what two levels of one chip deliver. */
static double bytes_per_s(const sm_chip *chip, sm_memory_level level) {
    return book_roofline_of(chip, "bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=8,D=8,F=8", level)
        .bytes_per_s;
}

static void mxu(book_item *item) {
    sm_chip chip = book_chip("tpu-v5e");
    book_is(item, "FLOP/s of a matrix unit", peak(&chip) / units(&chip), 4.9152e13);
    book_is(item, "FLOP/s of the chip", peak(&chip), 1.96608e14);
}

static void v5p_core(book_item *item) {
    sm_chip chip = book_chip("tpu-v5p");
    sm_system pod = book_system("tpu-v5p:8960");
    book_is(item, "FLOP/s of a core", peak(&chip) / chip.cores, 2.295e14);
    book_is(item, "FLOP/s of a chip", peak(&chip), 4.59e14);
    book_is(item, "FLOP/s of a pod", pod.chips * peak(&pod.chip), 4.11264e18);
}

static void multiply_adds(book_item *item) {
    sm_chip chip = book_chip("tpu-v5e");
    double per_multiply_add = book_flops("A[I] B[I] -> C[]", "I=1000") / 1000;
    book_is(item, "multiply-adds/s", peak(&chip) / per_multiply_add, 9.85e13);
    book_is(item, "FLOP/s", peak(&chip), 1.97e14);
}

static void vmem(book_item *item) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.memory_bytes_per_s, 8.2e11);
    book_give(&chip.onchip_bytes_per_s, 22 * 8.2e11);
    double critical = book_critical(&chip, "bf16[B,D] bf16[D,F] -> bf16[B,F]", "D=1e8,F=1e8,B=1",
                                    "B", SM_MEMORY_ONCHIP);
    book_is(item, "intensity", critical, 10.9091);
}

static void pcie(book_item *item) {
    sm_chip chip = book_chip("tpu-v4");
    book_give(&chip.pcie_bytes_per_s_oneway, 1.6e10);
    book_give(&chip.memory_bytes_per_s, 1.2e12);
    book_is(item, "ratio", bytes_per_s(&chip, SM_MEMORY_HBM) / bytes_per_s(&chip, SM_MEMORY_HOST),
            75);
}

static double memory_to_link(double memory) {
    sm_chip chip = book_chip("tpu-v5p");
    book_give(&chip.memory_bytes_per_s, memory);
    sm_system row = book_system_of(&chip, "tpu-v5p:4x4x4");
    double s_per_byte = book_curve(&row, SM_PERMUTE, "X=4,Y=4,Z=4", "X").ideal_s_per_byte;
    return bytes_per_s(&chip, SM_MEMORY_HBM) * s_per_byte;
}

static void axis_ratio(book_item *item) {
    book_is(item, "ratio with 2.5e12", memory_to_link(2.5e12), 27.7778);
    book_is(item, "ratio with 2.8e12", memory_to_link(2.8e12), 31.1111);
}

static double load_200B(const char *name, double memory) {
    sm_chip chip = book_chip(name);
    book_give(&chip.memory_bytes_per_s, memory);
    return book_read_s(&chip, book_local_bytes("bf16[P_X]", "X=32", "P=2e11"));
}

static void q1(book_item *item) {
    book_is(item, "seconds", load_200B("tpu-v4", 1.23e12), 0.0101626);
    book_is(item, "seconds with 1.2e12", load_200B("tpu-v4", 1.2e12), 0.0104167);
}

static void q1_2026(book_item *item) {
    book_is(item, "seconds", load_200B("tpu-v6e", 1.6e12), 0.0078125);
}

static void q2_v5e(book_item *item) {
    sm_system pod = book_system("tpu-v5e:16x16");
    book_give(&pod.chip.memory_bytes, 16e9);
    book_exactly(item, "hosts", (double)pod.chips / pod.chip.chips_per_host, 32);
    book_exactly(item, "cores", (double)pod.chips * pod.chip.cores, 256);
    book_is(item, "FLOP/s", pod.chips * peak(&pod.chip), 5.0432e16);
    book_exactly(item, "HBM", pod.chips * pod.chip.memory_bytes.value, 4.096e12);
    book_give(&pod.chip.flops_per_s[SM_BF16], 2e14);
    book_is(item, "FLOP/s with 2e14", pod.chips * peak(&pod.chip), 5.12e16);
}

static void q2_v5p(book_item *item) {
    sm_system pod = book_system("tpu-v5p:16x20x28");
    book_give(&pod.chip.memory_bytes, 96e9);
    book_exactly(item, "hosts", (double)pod.chips / pod.chip.chips_per_host, 2240);
    book_exactly(item, "cores", (double)pod.chips * pod.chip.cores, 17920);
    book_is(item, "FLOP/s", pod.chips * peak(&pod.chip), 4.11264e18);
    book_exactly(item, "HBM", pod.chips * pod.chip.memory_bytes.value, 8.6016e14);
}

/* Weights [D,4D] come from host memory: D is taken large, so that they are most of the bytes. */
static double pcie_batch(double link) {
    sm_chip chip = book_chip("tpu-v6e");
    book_give(&chip.flops_per_s[SM_BF16], 9.2e14);
    book_give(&chip.pcie_bytes_per_s_oneway, link);
    return book_critical(&chip, "bf16[B,D] bf16[D,F] -> bf16[B,F]", "D=1e9,F=4e9,B=1", "B",
                         SM_MEMORY_HOST);
}

static void q3(book_item *item) { book_is(item, "B", pcie_batch(1.5e10), 61333.3); }

static void q3_2026(book_item *item) {
    book_is(item, "B", pcie_batch(1.6e10), 57500);
    book_is(item, "B with 3.2e10", pcie_batch(3.2e10), 28750);
}

#define Q4 "int8[F,D] int8[B,D] -> int8[B,F]"
#define Q4_DIMS "F=16384,D=4096,B=1"

static double q4_batch(double memory, sm_memory_level level) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_INT8], 3.94e14);
    book_give(level == SM_MEMORY_HBM ? &chip.memory_bytes_per_s : &chip.onchip_bytes_per_s, memory);
    return book_critical(&chip, Q4, Q4_DIMS, "B", level);
}

static void q4_1(book_item *item) {
    book_is(item, "B", q4_batch(8.1e11, SM_MEMORY_HBM), 262.709);
    book_exactly(item, "FLOPs for B=1", book_flops(Q4, Q4_DIMS), 134217728);
}

static void q4_1_2026(book_item *item) {
    book_is(item, "B", q4_batch(8.2e11, SM_MEMORY_HBM), 259.251);
}

static void q4_2(book_item *item) {
    book_is(item, "B", q4_batch(1.78e13, SM_MEMORY_ONCHIP), 11.1049);
}

/* From one corner to the far one, which is where a broadcast of the same array ends: both ports
 * send, six hops. */
static void q5(book_item *item) {
    sm_system slice = book_system("tpu-v5e:4x4");
    double bytes = book_local_bytes("bf16[8,128,8192]", "X=1", "");
    sm_curve curve = book_curve(&slice, SM_BROADCAST, "X=4,Y=4", "XY");
    double hops_s = book_line(&curve, NULL).line.latency_s, send_s = bytes * curve.ideal_s_per_byte;
    book_exactly(item, "bytes", bytes, 16777216);
    book_is(item, "transfer", send_s, 0.000186414);
    book_is(item, "hops", hops_s / slice.chip.hop_latency_s.value, 6);
    book_is(item, "first byte and transfer", hops_s + send_s, 0.000192414);
}

/* int8[131072,131072] on a v5e 4x4; the book takes its 16 GiB as 16e9. */
typedef struct stages {
    double pcie_s, ici_s, hbm_s, math_s;
} stages;

static stages gather(const char *dims, double pcie_link) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.pcie_bytes_per_s_oneway, pcie_link);
    book_give(&chip.memory_bytes_per_s, 8.1e11);
    book_give(&chip.flops_per_s[SM_BF16], 1.97e14);
    sm_system slice = book_system_of(&chip, "tpu-v5e:4x4");
    double whole = book_local_bytes("int8[R,C]", "X=4,Y=4", dims);
    double shard = book_local_bytes("int8[R_XY,C]", "X=4,Y=4", dims);
    sm_curve curve = book_curve(&slice, SM_ALL_GATHER, "X=4,Y=4", "XY");
    double math_s = book_roofline_of(&chip, "bf16[B,R] int8[R,C] -> bf16[B,C]",
                                     "B=8,R=131072,C=131072", SM_MEMORY_HBM)
                        .math_s;
    return (stages){shard / bytes_per_s(&chip, SM_MEMORY_HOST), whole * curve.ideal_s_per_byte,
                    book_read_s(&chip, whole), math_s};
}

#define EXACT "R=131072,C=131072"
#define ROUNDED "R=128000,C=125000" /* 16e9 bytes */
static stages exact(void) { return gather(EXACT, 1.5e10); }
static stages rounded(void) { return gather(ROUNDED, 1.5e10); }

static void q6_pcie(book_item *item) {
    book_is(item, "seconds for 16e9 bytes", rounded().pcie_s, 0.0666667);
    book_is(item, "seconds", exact().pcie_s, 0.0715828);
    book_is(item, "seconds with 1.6e10", gather(ROUNDED, 1.6e10).pcie_s, 0.0625);
}

static void q6_ici(book_item *item) {
    book_is(item, "seconds for 16e9 bytes", rounded().ici_s, 0.166667);
    book_is(item, "seconds", exact().ici_s, 0.178957);
}

static void q6_hbm(book_item *item) {
    book_is(item, "seconds for 16e9 bytes", rounded().hbm_s, 0.0197531);
    book_is(item, "seconds", exact().hbm_s, 0.0212097);
}

static void q6_flops(book_item *item) {
    book_exactly(item, "FLOPs", book_flops("bf16[B,R] int8[R,C] -> bf16[B,C]", "B=8," EXACT),
                 274877906944.0);
    book_is(item, "seconds", exact().math_s, 0.00139532);
}

static void q6_total(book_item *item) {
    stages s = rounded();
    book_is(item, "longest", fmax(fmax(s.pcie_s, s.ici_s), fmax(s.hbm_s, s.math_s)), 0.1667);
    book_is(item, "sum", s.pcie_s + s.ici_s + s.hbm_s + s.math_s, 0.254486);
}

static void vregs(book_item *item) {
    book_exactly(item, "bytes", book_local_bytes("fp32[64,8,128]", "X=1", ""), 262144);
}

static void vpu(book_item *item) {
    sm_chip chip = book_chip("tpu-v5p");
    book_is(item, "FLOP/s", chip.vector_flops_per_s.value, 1.4336e13);
    book_is(item, "matrix units against it", peak(&chip) / chip.vector_flops_per_s.value, 32.0173);
}

static void vpu_7x(book_item *item) {
    sm_chip chip = book_chip("tpu-v7");
    double packed = sm_dtype_bytes(SM_FP32) / sm_dtype_bytes(SM_BF16); /* two in a lane */
    double core = chip.vector_flops_per_s.value / chip.cores;
    book_is(item, "fp32 FLOP/s of a core", core, 9.0112e12);
    book_is(item, "bf16 FLOP/s of a core", core * packed, 1.80224e13);
    book_is(item, "matrix FLOP/s of a core", peak(&chip) / chip.cores, 1.15343e15);
}

static void mxu_7x(book_item *item) {
    sm_chip chip = book_chip("tpu-v7");
    double pod = 1;
    for (int i = 0; i < chip.torus_axes; i++) pod *= chip.pod_shape[i];
    book_is(item, "FLOP/s of a unit", peak(&chip) / units(&chip), 5.76717e14);
    book_is(item, "FLOP/s of a chip", peak(&chip), 2.30687e15);
    book_is(item, "FLOP/s of a pod", pod * peak(&chip), 2.12613e19);
}

static void bandwidths_7x(book_item *item) {
    sm_chip chip = book_chip("tpu-v7");
    book_is(item, "HBM", chip.memory_bytes_per_s.value, 7.38e12);
    book_is(item, "link, both ways", 2 * chip.link_bytes_per_s_oneway.value, 2e11);
    book_is(item, "data-centre network", chip.dcn_bytes_per_s_oneway.value, 1.25e10);
}

static void dcn(book_item *item) {
    book_is(item, "v5p", book_chip("tpu-v5p").dcn_bytes_per_s_oneway.value, 6.25e9);
    book_is(item, "v5e", book_chip("tpu-v5e").dcn_bytes_per_s_oneway.value, 3.125e9);
    book_is(item, "v6e", book_chip("tpu-v6e").dcn_bytes_per_s_oneway.value, 1.25e10);
}

static const book_answer answers[] = {{"tpu.mxu.flops", mxu, 0},
                                      {"tpu.v5p.core_chip", v5p_core, 0},
                                      {"tpu.takeaway.macs", multiply_adds, 0},
                                      {"tpu.vmem.ratio", vmem, 0},
                                      {"tpu.pcie.ratio", pcie, 0},
                                      {"tpu.v5p.axis_ratio", axis_ratio, 0},
                                      {"tpu.q1", q1, 0},
                                      {"tpu.q1.2026", q1_2026, 0},
                                      {"tpu.q2.v5e", q2_v5e, 0},
                                      {"tpu.q2.v5p", q2_v5p, 0},
                                      {"tpu.q3", q3, 0},
                                      {"tpu.q3.2026", q3_2026, 0},
                                      {"tpu.q4.1", q4_1, 0},
                                      {"tpu.q4.1.2026", q4_1_2026, 0},
                                      {"tpu.q4.2", q4_2, 0},
                                      {"tpu.q5", q5, 0},
                                      {"tpu.q6.pcie", q6_pcie, 0},
                                      {"tpu.q6.ici", q6_ici, 0},
                                      {"tpu.q6.hbm", q6_hbm, 0},
                                      {"tpu.q6.flops", q6_flops, 0},
                                      {"tpu.q6.total", q6_total, 0},
                                      {"tpu.vreg", vregs, 0},
                                      {"tpu.vpu.quiz", vpu, 0},
                                      {"tpu.vpu.quiz.7x", vpu_7x, 0},
                                      {"tpu.7x.mxu", mxu_7x, 0},
                                      {"tpu.7x.bw", bandwidths_7x, 0},
                                      {"tpu.dcn.per_chip", dcn, 0}};

const book_chapter book_tpus = {"02-tpus", answers, (int)(sizeof answers / sizeof *answers)};

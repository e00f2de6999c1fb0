/* "All About Rooflines": the numbers of part 1 and its questions. */
#include "book.h"
#include "instruments.h"

#define MATMUL "bf16[B,D] bf16[D,F] -> bf16[B,F]"
/* B far below D and F, where the critical batch tends to C/W */
#define WIDE "D=1e8,F=1e8,B=1"

static sm_chip v5e(double flops_per_s, double memory_bytes_per_s) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], flops_per_s);
    book_give(&chip.memory_bytes_per_s, memory_bytes_per_s);
    return chip;
}

static double time_of_1e12(const char *name, double flops_per_s) {
    sm_chip chip = book_chip(name);
    book_give(&chip.flops_per_s[SM_BF16], flops_per_s);
    return book_roofline_of(&chip, MATMUL, "B=5000,D=10000,F=10000", SM_MEMORY_HBM).math_s;
}

static void h100_time(book_item *item) {
    book_is(item, "seconds", time_of_1e12("h100-sxm", 9.89e14), 0.00101112);
}

static void v6e_time(book_item *item) {
    book_is(item, "seconds", time_of_1e12("tpu-v6e", 9.1e14), 0.0010989);
    book_is(item, "seconds with 9.2e14", time_of_1e12("tpu-v6e", 9.2e14), 0.00108696);
}

/* upper <= 2 lower, with equality where math and memory take equally long */
static void bounds(book_item *item) {
    sm_chip chip = v5e(197e12, 8.2e11);
    sm_calibration ideal = {.chip = "ideal",
                            .matmul_efficiency = 1,
                            .matmul_efficiency_fp8 = 1,
                            .memory_efficiency = 1};
    double flops = 2 * 1024.0 * 1024 * 1024, balanced = flops / 197e12 * 8.2e11;
    for (double bytes = balanced / 64; bytes < balanced * 65; bytes *= 8) {
        sm_op_cost c =
            sm_matmul_cost(&chip, &ideal, SM_BF16, (sm_product_shape){1, 1024, 1024, 1024}, bytes);
        book_holds(item, "the upper bound is at most twice the lower", c.upper_s <= 2 * c.lower_s);
        book_is(item, "upper", c.upper_s, c.math_s + c.memory_s);
        book_is(item, "lower", c.lower_s, c.math_s > c.memory_s ? c.math_s : c.memory_s);
    }
    sm_op_cost c =
        sm_matmul_cost(&chip, &ideal, SM_BF16, (sm_product_shape){1, 1024, 1024, 1024}, balanced);
    book_is(item, "ratio where both are equal", c.upper_s / c.lower_s, 2);
}

static double ridge(const sm_chip *chip) {
    sm_roofline r = book_roofline_of(chip, MATMUL, "B=8,D=8,F=8", SM_MEMORY_HBM);
    return r.peak_flops_per_s / r.bytes_per_s;
}

static void v5e_intensity(book_item *item) {
    sm_chip first = v5e(197e12, 8.2e11), second = v5e(197e12, 8.1e11);
    book_is(item, "intensity", ridge(&first), 240.244);
    book_is(item, "intensity with 8.1e11", ridge(&second), 243.21);
}

static double intensity(const char *einsum, const char *dims) {
    sm_chip chip = book_chip("tpu-v5e");
    return book_roofline_of(&chip, einsum, dims, SM_MEMORY_HBM).intensity;
}

static void dot_intensity(book_item *item) {
    book_is(item, "limit", intensity("bf16[N] bf16[N] -> bf16[]", "N=1e9"), 0.5);
    book_is(item, "N=128", intensity("bf16[N] bf16[N] -> bf16[]", "N=128"), 0.496109);
}

static void vpu_intensity(book_item *item) {
    sm_chip chip = book_chip("tpu-v5p");
    book_give(&chip.vector_flops_per_s, 7e12);
    book_give(&chip.memory_bytes_per_s, 2.8e12);
    sm_op_cost c = sm_vector_cost(&chip, sm_calibration_of(&chip), 1e12, 1e12);
    book_is(item, "intensity", c.memory_s / c.math_s, 2.5);
}

static void matmul_intensity(book_item *item) {
    book_is(item, "B=128, D=F=8192", intensity(MATMUL, "B=128,D=8192,F=8192"), 124.121);
    book_is(item, "limit", intensity(MATMUL, "B=128,D=1e8,F=1e8"), 128);
}

static void matmul_critical(book_item *item) {
    sm_chip chip = v5e(197e12, 8.2e11);
    book_is(item, "B", book_critical(&chip, MATMUL, WIDE, "B", SM_MEMORY_HBM), 240.244);
}

static void tokens(book_item *item) {
    double one = book_local_bytes("int8[S,T]", "X=128", "S=512,T=4096");
    double shard = book_local_bytes("int8[S_X,T]", "X=128", "S=512,T=4096");
    book_exactly(item, "global tokens", one, 2097152);
    book_exactly(item, "tokens of a device", shard, 16384);
}

/* One output tile stays in place while the contraction streams past: bk is as long as you like. */
static void tiled(book_item *item) {
    double got = intensity("bf16[M,K] bf16[K,N] -> bf16[M,N]", "M=512,N=512,K=1e9");
    book_is(item, "bm=bn=512", got, 256);
}

/* Each of two chips holds half of D; the partial sums [B,F] are exchanged. */
static void two_chips(book_item *item) {
    sm_chip chip = v5e(197e12, 8.2e11);
    book_give(&chip.link_bytes_per_s_oneway, 4.5e10);
    sm_system pair = book_system_of(&chip, "tpu-v5e:2x1");
    sm_curve curve = book_curve(&pair, SM_ALL_REDUCE, "X=2", "X");
    sm_lowering low =
        book_lowering("A[B,D_X] W[D_X,F] -> C[B,F]", "B=64,D=1024,F=4096", "X=2", "D");
    double network_s = book_step_bytes(&low, SM_ALL_REDUCE) * curve.ideal_s_per_byte;
    double math_s = low.flops_per_chip / sm_chip_peak(&chip, SM_BF16, NULL);
    double one_way = book_curve(&pair, SM_PERMUTE, "X=2", "X").ideal_s_per_byte;
    book_is(item, "C/W", sm_chip_peak(&chip, SM_BF16, NULL) * one_way, 4377.78);
    book_is(item, "D", 1024 * network_s / math_s, 8755.56); /* math time is linear in D */
}

#define INT8 "int8[B,D] int8[D,F] -> int8[B,F]"

static void q1(book_item *item) {
    sm_chip chip = v5e(197e12, 8.1e11);
    book_give(&chip.flops_per_s[SM_INT8], 394e12);
    sm_roofline r = book_roofline_of(&chip, INT8, "B=8,D=16,F=32", SM_MEMORY_HBM);
    book_exactly(item, "bytes", r.bytes, 8 * 16 + 16 * 32 + 8 * 32);
    book_exactly(item, "operations", r.flops, 2 * 8 * 16 * 32);
    book_is(item, "intensity of the chip", r.peak_flops_per_s / r.bytes_per_s, 486.42);
    book_is(item, "intensity at B=64", intensity(INT8, "B=64,D=1e8,F=1e8"), 128);
    book_is(item, "B", book_critical(&chip, INT8, WIDE, "B", SM_MEMORY_HBM), 243.21);
}

#define MIXED "bf16[B,D] int8[D,F] -> bf16[B,F]"

static void q2(book_item *item) {
    sm_chip chip = v5e(197e12, 8.2e11);
    book_is(item, "B", book_critical(&chip, MIXED, WIDE, "B", SM_MEMORY_HBM), 120.122);
}

static void q3(book_item *item) {
    sm_chip chip = v5e(197e12, 8.2e11);
    double wide = book_critical(&chip, MIXED, "D=4096,F=4096,B=1", "B", SM_MEMORY_HBM);
    double narrow = book_critical(&chip, MIXED, "D=1024,F=1024,B=1", "B", SM_MEMORY_HBM);
    book_is(item, "B at 4096", wide, 136.086);
    book_is(item, "B at 1024", narrow, 226.315);
}

static void q4(book_item *item) {
    double got = intensity("int8[B,D] int8[B,D,F] -> int8[B,F]", "B=8,D=4096,F=4096");
    book_is(item, "intensity", got, 1.99902);
    got = intensity("int8[B,D] int8[B,D,F] -> int8[B,F]", "B=512,D=4096,F=4096");
    book_is(item, "intensity at B=512", got, 1.99902);
}

/* The data sheet counts sparse FLOPs: half of 1979e12. */
static void p5(book_item *item) {
    sm_chip chip = book_chip("h100-sxm");
    book_give(&chip.memory_bytes_per_s, 3.35e12);
    book_give(&chip.flops_per_s[SM_BF16], 1979e12 / 2);
    book_is(item, "B", book_critical(&chip, MATMUL, WIDE, "B", SM_MEMORY_HBM), 295.373);
    book_give(&chip.flops_per_s[SM_BF16], 1e15);
    book_is(item, "B with 1e15", book_critical(&chip, MATMUL, WIDE, "B", SM_MEMORY_HBM), 298.507);
}

static const book_answer answers[] = {{"roof.intro.h100_time", h100_time, 0},
                                      {"roof.intro.v6e_time", v6e_time, 0},
                                      {"roof.bounds", bounds, 0},
                                      {"roof.v5e.intensity", v5e_intensity, 0},
                                      {"roof.dot.intensity", dot_intensity, 0},
                                      {"roof.vpu.intensity", vpu_intensity, 0},
                                      {"roof.matmul.intensity", matmul_intensity, 0},
                                      {"roof.matmul.Bcrit", matmul_critical, 0},
                                      {"roof.note.tokens", tokens, 0},
                                      {"roof.tiled", tiled, 0},
                                      {"roof.2chip.D", two_chips, 0},
                                      {"roof.q1", q1, 0},
                                      {"roof.q2", q2, 0},
                                      {"roof.q3", q3, 0},
                                      {"roof.q4", q4, 0},
                                      {"roof.p5", p5, 0}};

const book_chapter book_roofline = {"01-rooflines", answers,
                                    (int)(sizeof answers / sizeof *answers)};

/* "Sharded Matrices and How to Multiply Them": part 3 and its questions. */
#include "book.h"
#include "instruments.h"
#include <stdio.h>

#define CUBE "X=4,Y=4,Z=4"

static double peak(const sm_chip *chip) { return sm_chip_peak(chip, SM_BF16, NULL); }

static void fp32_quiz(book_item *item) {
    sm_chip chip = book_chip("h100-sxm");
    book_give(&chip.memory_bytes_per_s, 3.4e12);
    double bytes = book_local_bytes("fp32 A[I_XY,J]", "X=8,Y=2", "I=1024,J=4096");
    book_exactly(item, "bytes", bytes, 1048576);
    book_is(item, "seconds", book_read_s(&chip, bytes), 3.08405e-07);
    double megabyte = book_local_bytes("fp32 A[I_XY,J]", "X=8,Y=2", "I=1000,J=4000");
    book_is(item, "seconds for 1e6 bytes", book_read_s(&chip, megabyte), 2.94118e-07);
}

static void int8_quiz(book_item *item) {
    sm_mesh mesh = book_mesh("X=2,Y=8,Z=2");
    double bytes = book_local_bytes("int8 A[I_XY,J]", "X=2,Y=8,Z=2", "I=128,J=2048");
    book_exactly(item, "bytes of a device", bytes, 16384);
    book_exactly(item, "bytes of all", bytes * sm_mesh_size(&mesh, 7), 524288);
}

static void gather_formula(book_item *item) {
    sm_system v5p = book_system("tpu-v5p:4x8x16");
    for (int i = 0; i < v5p.levels; i++) v5p.level[i].bytes_per_s_oneway = 4.5e10;
    static const char *const axes[] = {"X", "Y", "Z"};
    for (int i = 0; i < 3; i++)
        book_is(item, "V=34e6, W=9e10",
                34e6 * book_s_per_byte(&v5p, SM_ALL_GATHER, "X=4,Y=8,Z=16", axes[i]), 0.000377778);
}

/* A hop takes as long to start as to send this much. */
static void latency_threshold(book_item *item) {
    sm_system slice = book_system("tpu-v5e:16x16");
    sm_curve curve = book_curve(&slice, SM_PERMUTE, "X=16,Y=16", "X");
    sm_algorithm hop = book_line(&curve, NULL);
    book_is(item, "bytes", hop.line.latency_s / hop.line.s_per_byte, 45000);
}

static void gather_measured(book_item *item) {
    book_exactly(item, "bytes of a device", book_local_bytes("int8[E_X]", "X=16", "E=10M"), 625000);
}

static void gather_quiz(book_item *item) {
    sm_system slice = book_system("tpu-v5e:8x4");
    double bytes = book_local_bytes("bf16[E,F]", "X=8,Y=4", "E=2048,F=8192");
    book_exactly(item, "bytes", bytes, 33554432);
    book_is(item, "line", bytes * book_s_per_byte(&slice, SM_ALL_GATHER, "X=8,Y=4", "Y"),
            0.000559241);
    slice.level[1].wrap = true;
    book_is(item, "ring", bytes * book_s_per_byte(&slice, SM_ALL_GATHER, "X=8,Y=4", "Y"),
            0.000372827);
}

static void small_gather_quiz(book_item *item) {
    sm_system slice = book_system("tpu-v5e:8x4");
    double shard = book_local_bytes("bf16[E_Y,F]", "X=8,Y=4", "E=256,F=256");
    sm_curve hop = book_curve(&slice, SM_PERMUTE, "X=8,Y=4", "Y");
    sm_curve gather = book_curve(&slice, SM_ALL_GATHER, "X=8,Y=4", "Y");
    book_is(item, "bandwidth of a hop", shard * hop.ideal_s_per_byte, 7.28178e-07);
    book_is(item, "three hops", book_line(&gather, NULL).line.latency_s, 3e-6);
}

static double against_gather(sm_collective op, const char *axes) {
    sm_system cube = book_system("tpu-v4:4x4x4");
    return book_s_per_byte(&cube, op, CUBE, axes) /
           book_s_per_byte(&cube, SM_ALL_GATHER, CUBE, axes);
}

static void reduce_cost(book_item *item) {
    book_is(item, "all-reduce against all-gather", against_gather(SM_ALL_REDUCE, "X"), 2);
}

static void exchange_cost(book_item *item) {
    book_is(item, "all-to-all against all-gather", against_gather(SM_ALL_TO_ALL, "X"), 0.25);
    /* V max(A,B,C) / (4 N W_bidirectional) on a torus AxBxC of N chips */
    sm_system torus = book_system("tpu-v4:4x8x16");
    double got = book_s_per_byte(&torus, SM_ALL_TO_ALL, "X=4,Y=8,Z=16", "XYZ");
    double ring = book_s_per_byte(&torus, SM_ALL_GATHER, "X=4,Y=8,Z=16", "Z");
    book_is(item, "of a torus 4x8x16", got / ring, 16.0 / (4 * 512));
}

static void table(book_item *item) {
    static const char *const axes[] = {"X", "XY", "XYZ"};
    sm_system cube = book_system("tpu-v4:4x4x4");
    for (int i = 0; i < 3; i++) {
        book_is(item, "reduce-scatter", against_gather(SM_REDUCE_SCATTER, axes[i]), 1);
        book_is(item, "all-reduce", against_gather(SM_ALL_REDUCE, axes[i]), 2);
        book_is(item, "all-gather over more axes",
                book_s_per_byte(&cube, SM_ALL_GATHER, CUBE, "X") /
                    book_s_per_byte(&cube, SM_ALL_GATHER, CUBE, axes[i]),
                i + 1);
    }
    book_is(item, "all-to-all", against_gather(SM_ALL_TO_ALL, "X"), 0.25);
}

static void q1(book_item *item) {
    sm_mesh mesh = book_mesh("X=4,Y=8,Z=2");
    const char *dims = "I=64,J=32,K=16";
    double whole = book_local_bytes("A[I,J,K]", "X=4,Y=8,Z=2", dims);
    double shard = book_local_bytes("A[I_X,J,K]", "X=4,Y=8,Z=2", dims);
    book_exactly(item, "copies", shard * sm_mesh_size(&mesh, 7) / whole, 16);
}

#define Q2 "B=1024,D=4096"

/* The time of a collective over some axes of v4 4x4x4 on an array that is V when whole. */
static double cube_s(sm_collective op, const char *axes, const char *array) {
    sm_system cube = book_system("tpu-v4:4x4x4");
    return book_local_bytes(array, CUBE, Q2) * book_s_per_byte(&cube, op, CUBE, axes);
}

static void q2_1(book_item *item) {
    book_is(item, "seconds", cube_s(SM_ALL_GATHER, "X", "bf16[B,D_Y]"), 2.33017e-05);
}

static void q2_2(book_item *item) {
    sm_system cube = book_system("tpu-v4:4x4x4");
    sm_curve curve = book_curve(&cube, SM_ALL_GATHER, CUBE, "XY");
    book_is(item, "seconds", cube_s(SM_ALL_GATHER, "XY", "bf16[B,D]"), 4.66034e-05);
    book_is(item, "latency", book_line(&curve, NULL).line.latency_s, 4e-6);
}

static void q2_3(book_item *item) {
    book_is(item, "seconds", cube_s(SM_ALL_REDUCE, "Z", "bf16[B_X,D_Y]"), 1.16508e-05);
}

static void q2_fun(book_item *item) {
    book_is(item, "over XZ", cube_s(SM_ALL_GATHER, "XZ", "bf16[B,D_Y]"), 1.16508e-05);
    book_is(item, "over XYZ", cube_s(SM_ALL_GATHER, "XYZ", "bf16[B,D]"), 3.10689e-05);
}

static void q3(book_item *item) {
    sm_system cube = book_system("tpu-v4:4x4x4");
    sm_curve curve = book_curve(&cube, SM_ALL_GATHER, CUBE, "X");
    book_exactly(item, "bytes", book_local_bytes("bf16[I]", CUBE, "I=128"), 256);
    book_exactly(item, "bytes of a device", book_local_bytes("bf16[I_X]", CUBE, "I=128"), 64);
    book_is(item, "seconds", book_line(&curve, NULL).line.latency_s, 2e-6);
}

/* X[B,D] Y[D_X,F]: gather the weights, or multiply the shards and all-reduce the result. */
typedef struct strategy {
    double math_s, network_s;
} strategy;

static strategy q4_strategy(const char *at, const char *dims, sm_collective op) {
    sm_system cube = book_system("tpu-v5p:4x4x4");
    sm_lowering low = book_lowering("A[B,D] W[D_X,F] -> C[B,F]", dims, "X=4", at);
    double s = book_s_per_byte(&cube, op, CUBE, "X");
    return (strategy){low.flops_per_chip / peak(&cube.chip), book_step_bytes(&low, op) * s};
}

static void q4(book_item *item) {
    const char *dims = "B=512,D=8192,F=4096";
    strategy gathered = q4_strategy("-", dims, SM_ALL_GATHER);
    strategy reduced = q4_strategy("D", dims, SM_ALL_REDUCE);
    /* both are linear: math in B, and math in 1/X */
    book_is(item, "alpha", 512 * gathered.network_s / gathered.math_s, 2550);
    book_is(item, "most X that is compute-bound", 4 * reduced.math_s / reduced.network_s, 1.60627);
    strategy even = q4_strategy("D", "B=512,D=1024,F=4096", SM_ALL_REDUCE);
    strategy other = q4_strategy("-", "B=512,D=1024,F=4096", SM_ALL_GATHER);
    book_is(item, "network of both at D=2B", even.network_s / other.network_s, 1);
    /* large B: the gather is compute-bound with 2BDF/C, the reduction takes 4BF/W */
    reduced = q4_strategy("D", "B=16k,D=5100,F=4000", SM_ALL_REDUCE);
    gathered = q4_strategy("-", "B=16k,D=5100,F=4000", SM_ALL_GATHER);
    book_is(item, "math of one, network of the other at D=5100",
            gathered.math_s / reduced.network_s, 1);
}

#define Q5 "I=8192,J=8192,K=8192"

static void q5(book_item *item) {
    sm_system cube = book_system("tpu-v5p:4x4x4");
    double gather_s = book_s_per_byte(&cube, SM_ALL_GATHER, CUBE, "XYZ");
    double reduce_s = book_s_per_byte(&cube, SM_ALL_REDUCE, CUBE, "XYZ");
    sm_lowering rows = book_lowering("A[I_XYZ,J] B[J,K] -> C[I_XYZ,K]", Q5, CUBE, "III");
    sm_lowering sums = book_lowering("A[I,J_XYZ] B[J_XYZ,K] -> C[I,K]", Q5, CUBE, "JJJ");
    sm_lowering whole = book_lowering("A[I,J] B[J,K] -> C[I,K]", Q5, CUBE, "---");
    double result = book_local_bytes("C[I,K]", CUBE, "I=8192,K=8192"), C = peak(&cube.chip);
    double comm_s = result * gather_s, alone_s = whole.flops_per_chip / C;
    book_is(item, "math", rows.flops_per_chip / C, 3.74289e-05);
    book_is(item, "gathering the output", comm_s, 0.000248551);
    book_is(item, "reducing it", book_step_bytes(&sums, SM_ALL_REDUCE) * reduce_s, 0.000497103);
    book_is(item, "every chip alone", alone_s, 0.00239545);
    book_is(item, "J below which alone is best", 8192 * comm_s / alone_s, 850);
    book_is(item, "J above which it is compute-bound", 8192 * comm_s * C / rows.flops_per_chip,
            54400);
    sm_curve curve = book_curve(&cube, SM_ALL_GATHER, CUBE, "XYZ");
    book_is(item, "latency", book_line(&curve, NULL).line.latency_s, 6e-6);
    sm_system older = book_system("tpu-v4:4x4x4");
    double older_s = result * book_s_per_byte(&older, SM_ALL_GATHER, CUBE, "XYZ");
    book_is(item, "J on v4", 8192 * older_s * peak(&older.chip) / whole.flops_per_chip, 1018.52);
}

/* v5e 4x4 has no wraparound links; the book's formulas are those of rings. */
static sm_system square(bool ring) {
    sm_system slice = book_system("tpu-v5e:4x4");
    book_give(&slice.chip.flops_per_s[SM_BF16], 197e12);
    for (int i = 0; i < 2; i++) slice.level[i].wrap = ring;
    return slice;
}

#define Q6 "I=1024,J=4096,K=2048"

static void q6_a(book_item *item) {
    double IK = 1024.0 * 2048, J = 4096;
    sm_system line = square(false), ring = square(true);
    sm_lowering low = book_lowering("A[I_X,J_Y] B[J_Y,K] -> C[I_X,K]", Q6, "X=4,Y=4", "IJ");
    double bytes = book_step_bytes(&low, SM_ALL_REDUCE);
    double math_s = low.flops_per_chip / peak(&line.chip);
    double line_s = bytes * book_s_per_byte(&line, SM_ALL_REDUCE, "X=4,Y=4", "Y");
    double ring_s = bytes * book_s_per_byte(&ring, SM_ALL_REDUCE, "X=4,Y=4", "Y");
    book_is(item, "math / IJK", math_s / (IK * J), 6.34518e-16);
    book_is(item, "network / IK on lines", line_s / IK, 1.66667e-11);
    book_is(item, "network / IK on rings", ring_s / IK, 1.11111e-11);
    book_is(item, "critical J on lines", J * line_s / math_s, 26266.7);
    book_is(item, "critical J on rings", J * ring_s / math_s, 17511.1);
}

static void q6_b(book_item *item) {
    double JK = 4096.0 * 2048, I = 1024;
    sm_system line = square(false), ring = square(true);
    sm_lowering low = book_lowering("A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", Q6, "X=4,Y=4", "IK");
    double bytes = book_step_bytes(&low, SM_ALL_GATHER);
    double math_s = low.flops_per_chip / peak(&line.chip);
    double line_s = bytes * book_s_per_byte(&line, SM_ALL_GATHER, "X=4,Y=4", "X");
    double ring_s = bytes * book_s_per_byte(&ring, SM_ALL_GATHER, "X=4,Y=4", "X");
    book_is(item, "network / JK on lines", line_s / JK, 8.33333e-12);
    book_is(item, "network / JK on rings", ring_s / JK, 5.55556e-12);
    book_is(item, "critical I on lines", I * line_s / math_s, 13133.3);
    book_is(item, "critical I on rings", I * ring_s / math_s, 8755.56);
}

static void q6_c(book_item *item) {
    sm_lowering low = book_lowering("A[I_X,J] B[J,K_Y] -> C[I_X,K_Y]", Q6, "X=4,Y=4", "IK");
    book_exactly(item, "steps besides the einsum", low.steps - 1, 0);
    double whole = book_flops("A[I,J] B[J,K] -> C[I,K]", Q6);
    book_is(item, "FLOPs of a chip", low.flops_per_chip, whole / 16);
}

#define Q7 "B=128,D=8192,F=32768"
#define SQUARE2 "X=2,Y=2"

static void q7(book_item *item) {
    sm_system line = book_system("tpu-v5e:2x2"), ring;
    book_give(&line.chip.flops_per_s[SM_BF16], 197e12);
    book_give(&line.chip.memory_bytes_per_s, 8.2e11);
    ring = line;
    ring.level[0].wrap = ring.level[1].wrap = true;
    double matrix = book_local_bytes("bf16 W[D,F_XY]", SQUARE2, "D=8192,F=32768");
    sm_lowering in = book_lowering("A[B,D_XY] W[D,F_XY] -> H[B,F_XY]", Q7, SQUARE2, "FF");
    sm_lowering out = book_lowering("H[B,F_XY] W[F_XY,D] -> O[B,D_XY]", Q7, SQUARE2, "FF");
    double gathered = book_step_bytes(&in, SM_ALL_GATHER);
    double scattered = book_step_bytes(&out, SM_REDUCE_SCATTER);
    double line_s = book_s_per_byte(&line, SM_ALL_GATHER, SQUARE2, "XY");
    double ring_s = book_s_per_byte(&ring, SM_ALL_GATHER, SQUARE2, "XY");
    book_is(item, "weights of a chip", 2 * matrix, 268435000);
    book_is(item, "math", (in.flops_per_chip + out.flops_per_chip) / peak(&line.chip), 0.000174415);
    book_is(item, "reading weights", book_read_s(&line.chip, 2 * matrix), 0.00032736);
    book_is(item, "gather on lines", gathered * line_s, 1.74763e-05);
    book_is(item, "both on lines", (gathered + scattered) * line_s, 3.49525e-05);
    book_is(item, "both on rings", (gathered + scattered) * ring_s, 2.33017e-05);
    double weights = 2 * book_local_bytes("bf16 W[D,F]", SQUARE2, "D=8192,F=32768");
    book_is(item, "gathering weights instead", weights * line_s, 0.00894785);
}

static void q9_3(book_item *item) {
    const char *dims = "N=256,M=4096,K=1024";
    sm_lowering first = book_lowering("A[N,M_X] B[M,K_X] -> C[N,K_X]", dims, "X=4", "K");
    sm_lowering second = book_lowering("A[N,M_X] B[M_X,K] -> C[N,K_X]", dims, "X=4", "M");
    double scattered = book_step_bytes(&second, SM_REDUCE_SCATTER);
    book_is(item, "M/K", book_step_bytes(&first, SM_ALL_GATHER) / scattered, 4);
}

/* Scalars over one link of a ring of D chips for an array of NxN; a byte each. */
static double on_link(sm_collective op, const char *algorithm, int chips) {
    char mesh[32];
    sm_system torus = book_system("tpu-v4:4x4x4");
    torus.level[0].size = chips;
    torus.chips = chips * 16;
    snprintf(mesh, sizeof mesh, "X=%d,Y=4,Z=4", chips);
    sm_curve curve = book_curve(&torus, op, mesh, "X");
    return 8 * 8 * book_line(&curve, algorithm).link_bytes_per_byte;
}

static void q10_1(book_item *item) {
    book_is(item, "N=8, D=4", on_link(SM_ALL_GATHER, "one-way ring", 4), 48);
}

/* An all-to-all in one direction is D-1 shifts by one, of the blocks (a D^2-th each) that are not
 * home yet: D-1 of them at first, one at last. */
static double one_way_exchange(int chips) {
    double shift = on_link(SM_PERMUTE, NULL, chips), sum = 0;
    for (int blocks = chips - 1; blocks > 0; blocks--) sum += shift * blocks / chips / chips;
    return sum;
}

static void q10_2(book_item *item) { book_is(item, "N=8, D=4", one_way_exchange(4), 24); }

static void q10_3_6(book_item *item) {
    double one_way = on_link(SM_ALL_GATHER, "one-way ring", 4);
    double both_ways = on_link(SM_ALL_GATHER, "bidirectional ring", 4);
    book_is(item, "one way: all-to-all / all-gather", one_way_exchange(4) / one_way, 0.5);
    book_is(item, "gain of both ways: all-gather", one_way / both_ways, 2);
    /* D^2/8 against D(D-1)/2 of D^2: the limit of many chips is meant */
    double far = one_way_exchange(1024) / on_link(SM_ALL_TO_ALL, NULL, 1024);
    book_is(item, "gain of both ways: all-to-all", far, 4);
    book_is(item, "both ways: all-to-all / all-gather", against_gather(SM_ALL_TO_ALL, "X"), 0.25);
}

static const book_answer answers[] = {{"shard.quiz.fp32", fp32_quiz, 0},
                                      {"shard.quiz.int8", int8_quiz, 0},
                                      {"shard.ag.formula", gather_formula, 0},
                                      {"shard.latency.threshold", latency_threshold, 0},
                                      {"shard.ag.empirical", gather_measured, 0},
                                      {"shard.quiz.ag1", gather_quiz, 0},
                                      {"shard.quiz.ag2", small_gather_quiz, 0},
                                      {"shard.ar.cost", reduce_cost, 0},
                                      {"shard.a2a.cost", exchange_cost, 0},
                                      {"shard.table", table, 0},
                                      {"shard.q1", q1, 0},
                                      {"shard.q2.1", q2_1, 0},
                                      {"shard.q2.2", q2_2, 0},
                                      {"shard.q2.3", q2_3, 0},
                                      {"shard.q2.fun", q2_fun, 0},
                                      {"shard.q3", q3, 0},
                                      {"shard.q4", q4, 0},
                                      {"shard.q5", q5, 0},
                                      {"shard.q6.a", q6_a, 0},
                                      {"shard.q6.b", q6_b, 0},
                                      {"shard.q6.c", q6_c, 0},
                                      {"shard.q7", q7, 0},
                                      {"shard.q9.3", q9_3, 0},
                                      {"shard.q10.1", q10_1, 0},
                                      {"shard.q10.2", q10_2, 0},
                                      {"shard.q10.3-6", q10_3_6, 0}};

const book_chapter book_sharding = {"03-sharding", answers,
                                    (int)(sizeof answers / sizeof *answers)};

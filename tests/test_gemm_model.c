/* The cost of a matmul against the formula written out slowly, against properties that the search
 * relies on, and against measurements; measured rows and what is predicted for them. */
#include "unit.h"
#include "measured_by.h"
#include "scalemodel/cost.h"
#include "scalemodel/truth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sm_chip *chip_of(const char *name) {
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    if (!chip) fail_msg("no chip %s", name);
    return chip;
}

static const sm_calibration *kernels_of(const sm_chip *chip) {
    const sm_calibration *c = sm_calibration_for(chip, "kernels");
    if (!c) fail_msg("no kernels of %s", chip->name);
    return c;
}

static double bytes_16(double batch, double m, double n, double k) {
    return 2.0 * batch * (m * k + k * n + m * n);
}

static sm_op_cost matmul(const sm_chip *chip, sm_dtype dtype, double m, double n, double k) {
    return sm_matmul_cost(chip, kernels_of(chip), dtype, (sm_product_shape){1, m, n, k},
                          bytes_16(1, m, n, k));
}

static void expect_near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance * fabs(want))) fail_msg("%.17g is not %.17g", got, want);
}

/* ---- the oracle: seconds of every tile shape, with libm and no shortcuts ---- */

typedef struct oracle {
    const sm_chip *chip;
    const sm_calibration *c;
    double batch, m, n, k, bytes, flops_per_s, half_flops_per_s;
    bool narrow;
    double least_cycles; /* of a core, per element of the contraction */
} oracle;

static double clock_of(const oracle *o) {
    return o->chip->clock_hz.value > 0 ? o->chip->clock_hz.value : 1.8e9;
}

static double oracle_tile_s(const oracle *o, double tile_m, double tile_n) {
    double cores = o->chip->cores, tile = o->chip->tile_m;
    double tiles = o->batch * ceil(o->m / tile_m) * ceil(o->n / tile_n), parts = 1;
    for (double p = 2; !o->narrow && p * tiles <= cores && o->k / p >= 768; p++) parts = p;
    double waves = tiles * parts / cores;
    if (waves > 1) waves = 0.4 * waves + 0.6 * ceil(waves);
    else waves = 1;
    double load = 1 + 4 * fmax(0, 1 / tile_m + 1 / tile_n - 1 / tile - 1 / (2 * tile));
    double step_s = 2 * tile_m * tile_n * load / (o->flops_per_s / cores);
    step_s = fmax(step_s, o->least_cycles / clock_of(o));
    double fill_s = o->c->matmul_half_k * 2 * tile * tile / (o->half_flops_per_s / cores);
    double joining_s = parts > 1 ? 1500 * sqrt(parts) / clock_of(o) : 0;
    return waves * (step_s * o->k / parts + fill_s) + joining_s;
}

static double oracle_expected_s(const oracle *o) {
    double tile = o->chip->tile_m, math_s = INFINITY;
    const double shapes[][2] = {{2 * tile, tile},
                                {tile, 2 * tile},
                                {tile, tile},
                                {tile / 2, tile / 2},
                                {tile / 4, tile / 4}};
    double halves = o->batch * ceil(2 * o->m / tile) * ceil(2 * o->n / tile);
    for (size_t i = 0; i < (halves < o->chip->cores ? 5 : 4); i++)
        math_s = fmin(math_s, oracle_tile_s(o, shapes[i][0], shapes[i][1]));
    double flat = tile / 8;
    while (flat < o->m) flat += tile / 8;
    if (!o->narrow && flat <= tile / 2) math_s = fmin(math_s, oracle_tile_s(o, flat, tile));
    double stream = o->chip->memory_bytes_per_s.value * o->c->memory_efficiency;
    double memory_s = o->bytes / stream + o->bytes / (o->chip->cores * clock_of(o) * 90);
    double written_s = 0.25 * 2 * o->batch * o->m * o->n / stream;
    return pow(pow(math_s, 4) + pow(memory_s, 4), 0.25) + written_s + o->c->launch_s +
           1800 / clock_of(o);
}

static oracle oracle_of(const sm_chip *chip, sm_dtype dtype, double batch, double m, double n,
                        double k, double bytes) {
    const sm_calibration *c = kernels_of(chip);
    sm_dtype used;
    double peak = sm_chip_peak(chip, dtype, &used), fp8 = sm_chip_peak(chip, SM_FP8, NULL);
    bool narrow = sm_dtype_bytes(used) <= 1.0, fp4 = used == SM_FP4 || used == SM_MXFP4;
    double efficiency = narrow ? c->matmul_efficiency_fp8 : c->matmul_efficiency;
    if (fp4) efficiency *= fmin(1.0, 2 * fp8 / peak) * (used == SM_FP4 ? 0.8 : 1.0);
    double half = sm_chip_peak(chip, SM_BF16, NULL) * c->matmul_efficiency;
    oracle o = {chip, c, batch, m, n, k, bytes, peak * efficiency, peak * efficiency, narrow, 0};
    if (narrow) {
        o.half_flops_per_s = half;
        o.least_cycles = fp4 ? 1.6 : 1.2;
    }
    return o;
}

static double random_size(sm_rng *rng, double log_largest) {
    return floor(exp(log_largest * sm_rng_unit(rng)));
}

static void the_formula_written_out(void **state) {
    static const char *const chips[] = {"a100-80", "h100-sxm", "b300", "mi355x", "l40s", "h20"};
    static const sm_dtype dtypes[] = {SM_BF16, SM_FP16, SM_FP8, SM_INT8, SM_FP4, SM_MXFP4};
    sm_rng rng = {20261121};
    for (int i = 0; i < 30000; i++) {
        const sm_chip *chip = chip_of(chips[sm_rng_below(&rng, 6)]);
        sm_dtype dtype = dtypes[sm_rng_below(&rng, 6)];
        double batch = (double)(1 + sm_rng_below(&rng, 4)), m = random_size(&rng, 10.0);
        double n = random_size(&rng, 11.0), k = random_size(&rng, 11.0);
        double bytes = bytes_16(batch, m, n, k);
        oracle o = oracle_of(chip, dtype, batch, m, n, k, bytes);
        sm_op_cost got =
            sm_matmul_cost(chip, o.c, dtype, (sm_product_shape){batch, m, n, k}, bytes);
        expect_near(got.expected_s, oracle_expected_s(&o), 1e-9);
    }
}

/* ---- properties ---- */

static void bounds_are_ordered(void **state) {
    sm_rng rng = {3};
    for (int i = 0; i < 30000; i++) {
        const sm_chip *chip = sm_chip_at(sm_rng_below(&rng, sm_chip_count()));
        const sm_calibration *c = sm_calibration_of(chip);
        sm_dtype dtype = (sm_dtype)sm_rng_below(&rng, SM_DTYPE_COUNT);
        if (!(sm_chip_peak(chip, dtype, NULL) > 0.0)) continue;
        double m = random_size(&rng, 14.0), n = random_size(&rng, 14.0),
               k = random_size(&rng, 14.0);
        sm_op_cost cost =
            sm_matmul_cost(chip, c, dtype, (sm_product_shape){1, m, n, k}, bytes_16(1, m, n, k));
        assert_true(cost.lower_s > 0.0 && cost.lower_s <= cost.expected_s);
        assert_true(cost.expected_s <= cost.upper_s * (1 + 1e-12) && isfinite(cost.upper_s));
        assert_true(cost.tile_efficiency > 0.0 && cost.tile_efficiency <= 1.0);
    }
}

/* A better machine is never slower: the bounds of the search over plans rely on it. */
static void better_hardware_is_never_slower(void **state) {
    sm_rng rng = {5};
    for (int i = 0; i < 20000; i++) {
        const sm_chip *chip = sm_chip_at(sm_rng_below(&rng, sm_chip_count()));
        const sm_calibration *c = sm_calibration_of(chip);
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0.0)) continue;
        sm_dtype dtype = sm_rng_below(&rng, 2) ? SM_BF16 : SM_FP8;
        double m = random_size(&rng, 11.0), n = random_size(&rng, 11.0),
               k = random_size(&rng, 11.0);
        double bytes = bytes_16(1, m, n, k), more = 1.0 + sm_rng_unit(&rng);
        double before =
            sm_matmul_cost(chip, c, dtype, (sm_product_shape){1, m, n, k}, bytes).expected_s;
        sm_chip faster = *chip;
        for (int d = 0; d < SM_DTYPE_COUNT; d++) faster.flops_per_s[d].value *= more;
        double math =
            sm_matmul_cost(&faster, c, dtype, (sm_product_shape){1, m, n, k}, bytes).expected_s;
        faster = *chip;
        faster.memory_bytes_per_s.value *= more;
        double memory =
            sm_matmul_cost(&faster, c, dtype, (sm_product_shape){1, m, n, k}, bytes).expected_s;
        sm_calibration better = *c;
        better.matmul_efficiency = fmin(1.0, more * c->matmul_efficiency);
        better.matmul_efficiency_fp8 = fmin(1.0, more * c->matmul_efficiency_fp8);
        better.matmul_half_k = c->matmul_half_k / more;
        double software =
            sm_matmul_cost(chip, &better, dtype, (sm_product_shape){1, m, n, k}, bytes).expected_s;
        assert_true(math <= before * (1 + 1e-12) && memory <= before * (1 + 1e-12));
        assert_true(software <= before * (1 + 1e-12));
    }
}

static void more_work_is_never_quicker(void **state) {
    sm_rng rng = {7};
    const sm_chip *chip = chip_of("h100-sxm");
    for (int i = 0; i < 20000; i++) {
        double m = random_size(&rng, 11.0), n = random_size(&rng, 11.0),
               k = random_size(&rng, 11.0);
        double whole = matmul(chip, SM_FP8, m, n, k).expected_s * (1 - 1e-12);
        assert_true(matmul(chip, SM_FP8, m + 1, n, k).expected_s >= whole);
        assert_true(matmul(chip, SM_FP8, m, n + 1, k).expected_s >= whole);
        assert_true(matmul(chip, SM_FP8, m, n, k + 1).expected_s >= whole);
    }
}

static void only_16_bits_split_the_contraction(void **state) {
    const sm_chip *chip = chip_of("h100-sxm");
    double fp8 = matmul(chip, SM_FP8, 64, 64, 65536).expected_s;
    double bf16 = matmul(chip, SM_BF16, 64, 64, 65536).expected_s;
    assert_true(fp8 > 2.0 * bf16); /* one core walks 65,536 against 85 that walk 768 */
    /* no part is shorter than 768: the first split costs more than it saves */
    double one = matmul(chip, SM_BF16, 64, 64, 1535).expected_s;
    double two = matmul(chip, SM_BF16, 64, 64, 1536).expected_s;
    assert_true(two > one + 0.5e-6 && two < one + 1500 * sqrt(2) / 1.83e9);
}

/* However few rows and columns, a core takes 1.2 cycles per element in 8 bits. */
static void narrow_formats_walk_at_a_least_pace(void **state) {
    const sm_chip *chip = chip_of("h100-sxm");
    double shorter = matmul(chip, SM_FP8, 1, 32, 32768).expected_s;
    double longer = matmul(chip, SM_FP8, 1, 32, 65536).expected_s;
    expect_near(longer - shorter, 32768 * 1.2 / chip->clock_hz.value, 0.02);
}

static void fp4_gains_at_most_its_share_over_fp8(void **state) {
    const sm_chip *chip = chip_of("b300"); /* 15e15 in fp4, 4.5e15 in fp8 */
    double fp8 = matmul(chip, SM_FP8, 16384, 16384, 16384).expected_s;
    expect_near(fp8 / matmul(chip, SM_FP4, 16384, 16384, 16384).expected_s, 1.6, 0.03);
    expect_near(fp8 / matmul(chip, SM_MXFP4, 16384, 16384, 16384).expected_s, 2.0, 0.03);
}

/* ---- measurements ---- */

static void measured_matmuls(void **state) {
    /* ai-dynamo/aiconfigurator (TensorRT-LLM, SGLang) and ROCm/aiter, public tables of matmuls */
    static const struct {
        const char *chip;
        sm_dtype dtype;
        double m, n, k, measured_s;
    } rows[] = {
        {"h100-sxm", SM_BF16, 3584, 8192, 3584, 274.8e-6},
        {"h100-sxm", SM_BF16, 2, 65536, 16384, 745.5e-6},
        {"h100-sxm", SM_BF16, 16384, 16384, 1024, 751.9e-6},
        {"h100-sxm", SM_BF16, 1, 128, 128, 2.8e-6},
        {"b300", SM_BF16, 4096, 16384, 6144, 542e-6},
        {"l40s", SM_BF16, 3, 7168, 51200, 1020.2e-6},
        {"rtx-pro-6000", SM_BF16, 4097, 16384, 5120, 1788.7e-6},
        {"mi355x", SM_BF16, 16384, 16384, 2048, 791.7e-6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_op_cost c =
            matmul(chip_of(rows[i].chip), rows[i].dtype, rows[i].m, rows[i].n, rows[i].k);
        double error = c.expected_s / rows[i].measured_s - 1.0;
        if (fabs(error) > 0.2) fail_msg("row %zu: %.3g off by %.3g", i, c.expected_s, error);
        assert_true(rows[i].measured_s >= c.lower_s);
    }
}

/* ---- measured rows ---- */

static sm_prediction predict(const char *chip, const char *dtype, double m, double n, double k,
                             const char *source) {
    sm_truth_row row = {.kind = SM_TRUTH_GEMM, .of.gemm = {.dtype = dtype, .m = m, .n = n, .k = k}};
    measured_by(&row, source);
    sm_prediction out;
    sm_predict_gemm(&row, chip_of(chip), kernels_of(chip_of(chip)), &out);
    return out;
}

/* A decode step reads the weights once: the lower bound counts the bytes of each format. */
static void bytes_of_the_formats(void **state) {
    static const struct {
        const char *dtype;
        double a, b;
    } formats[] = {
        {"bf16", 2, 2},
        {"fp16", 2, 2},
        {"fp8", 1, 1},
        {"int8", 1, 1},
        {"bf16_w8", 2, 1},
        {"bf16_w4", 2, 0.5},
        {"nvfp4", 0.5625, 0.5625},
        {"mxfp4", 0.53125, 0.53125},
        {"fp8_block", 1.03125, 1.000244140625},
    };
    double m = 1, n = 8192, k = 4096;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        sm_prediction p = predict("b200", formats[i].dtype, m, n, k, "");
        double bytes = m * k * formats[i].a + k * n * formats[i].b + 2 * m * n;
        assert_null(p.unknown);
        expect_near(p.lower_s, bytes / 8e12, 1e-12);
        assert_true(p.regime == SM_REGIME_matmul && p.lower_s < p.expected_s);
    }
}

/* Few rows need no more multiplications than 16 do: weights of 4 bits decode at the pace of memory
 * (A100, ai-dynamo/aiconfigurator, TensorRT-LLM 1.0). */
static void few_rows_go_through_flat_tiles(void **state) {
    expect_near(predict("a100-80", "bf16_w4", 2, 10240, 65536, "").expected_s, 223.2e-6, 0.2);
    expect_near(predict("a100-80", "bf16_w4", 1, 65536, 16384, "").expected_s, 333.8e-6, 0.2);
    const sm_chip *chip = chip_of("rtx-3090");
    double before = 0.0;
    for (int m = 1; m <= 80; m++) {
        double now = matmul(chip, SM_BF16, m, 51200, 5120).expected_s;
        assert_true(now >= before);
        before = now;
    }
}

static void what_cannot_be_predicted_says_why(void **state) {
    assert_string_equal(predict("b200", "fp12", 1, 1, 1, "").unknown,
                        "the number format is not one of those known");
    assert_string_equal(predict("b200", NULL, 1, 1, 1, "").unknown,
                        "the number format is not one of those known");
    assert_string_equal(predict("b200", "bf16", 0, 1, 1, "").unknown, "m, n or k");
    assert_string_equal(predict("b200", "bf16", 1, NAN, 1, "").unknown, "m, n or k");
    assert_string_equal(predict("b200", "bf16", 1, 1, INFINITY, NULL).unknown, "m, n or k");
    assert_null(predict("b200", "bf16", 1e12, 1e12, 1e12, NULL).unknown);
    sm_truth_row row = {
        .kind = SM_TRUTH_GEMM, .source = "", .of.gemm = {.dtype = "bf16", .m = 1, .n = 1, .k = 1}};
    sm_chip bare = {.name = "bare"};
    sm_prediction out;
    sm_predict_gemm(&row, &bare, kernels_of(chip_of("b200")), &out);
    assert_string_equal(out.unknown, "the chip's memory bandwidth");
    bare.memory_bytes_per_s.value = 1e12;
    sm_predict_gemm(&row, &bare, kernels_of(chip_of("b200")), &out);
    assert_string_equal(out.unknown, "the chip's peak in this number format");
}

static double act_quant(const char *chip, const char *dtype, const char *source, double m) {
    return predict(chip, dtype, m, 128, 128, source).expected_s -
           predict(chip, dtype, m, 128, 128, "").expected_s;
}

static void quantisation_is_timed_where_the_source_says_so(void **state) {
    double start_s = kernels_of(chip_of("h100-sxm"))->launch_s + 1800 / 1.83e9;
    expect_near(act_quant("h100-sxm", "fp8", "trtllm - quantises", 1), 4.2 * start_s, 0.01);
    expect_near(act_quant("h100-sxm", "fp8", "vllm - quantises", 1), 1.25 * start_s, 0.01);
    assert_true(act_quant("arc-pro-b60", "fp8", "vllm vllm_default quantises", 1) < 30e-6);
    assert_true(act_quant("h100-sxm", "fp8", "vllm - quantises", 16384) > 100e-6);
    assert_true(act_quant("h100-sxm", "fp8", "vllm", 16384) == 0.0);
    /* chips with fp4 pack the scales of DeepGEMM first */
    const char *packs = "sglang deepgemm quantises";
    assert_true(act_quant("b200", "fp8_block", packs, 1) >
                3 * act_quant("h100-sxm", "fp8_block", packs, 1));
}

static void kernels_of_a_source(void **state) {
    double other = predict("h800", "fp8_block", 8192, 8192, 8192, "aiter").expected_s;
    double deep = predict("h800", "fp8_block", 8192, 8192, 8192, "infersim deepgemm").expected_s;
    expect_near(deep / other, 0.65, 0.02);
    const char *trt = "trtllm deepgemm quantises";
    expect_near(predict("h100-sxm", "fp8_block", 8192, 8192, 8192, trt).expected_s /
                    predict("h100-sxm", "fp8_block", 8192, 8192, 8192, "- deepgemm").expected_s,
                1.0, 0.15); /* DeepGEMM, after the activations are quantised */
    double laid_out = predict("tpu-v6e", "bf16", 8, 4096, 14336, "llmservingsim").expected_s;
    expect_near(laid_out / predict("tpu-v6e", "bf16", 8, 4096, 14336, "").expected_s, 2.0, 0.02);
    expect_near(predict("tpu-v6e", "bf16", 600, 4096, 14336, "llmservingsim").expected_s,
                predict("tpu-v6e", "bf16", 600, 4096, 14336, "").expected_s, 0);
    expect_near(predict("arc-pro-b60", "bf16", 1, 64, 64, "vllm vllm_default").expected_s, 30e-6,
                0);
    assert_true(predict("arc-pro-b60", "bf16", 4096, 4096, 4096, "vllm vllm_default").expected_s >
                1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formula_written_out),
        cmocka_unit_test(bounds_are_ordered),
        cmocka_unit_test(better_hardware_is_never_slower),
        cmocka_unit_test(more_work_is_never_quicker),
        cmocka_unit_test(only_16_bits_split_the_contraction),
        cmocka_unit_test(narrow_formats_walk_at_a_least_pace),
        cmocka_unit_test(fp4_gains_at_most_its_share_over_fp8),
        cmocka_unit_test(measured_matmuls),
        cmocka_unit_test(bytes_of_the_formats),
        cmocka_unit_test(few_rows_go_through_flat_tiles),
        cmocka_unit_test(what_cannot_be_predicted_says_why),
        cmocka_unit_test(quantisation_is_timed_where_the_source_says_so),
        cmocka_unit_test(kernels_of_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

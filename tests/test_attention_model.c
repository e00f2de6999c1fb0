/* Attention: its bound, what tiles, idle cores, head sizes, caches and formats do to it, the old
 * separate kernels, and the rows of measurements that it predicts. */
#include "unit.h"
#include "measured_by.h"
#include "scalemodel/cost.h"
#include "scalemodel/truth.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.10g, expected %.10g", got, want);
}

static void expect_at_most(double a, double b) {
    if (!(a <= b * (1 + 1e-12))) fail_msg("%.10g is more than %.10g", a, b);
}

static const sm_chip *chip_of(const char *name) {
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    if (!chip) fail_msg("no chip %s", name);
    return chip;
}

static sm_calibration constants(void) {
    return (sm_calibration){.chip = "any",
                            .software = "test",
                            .source = "made up",
                            .range = "",
                            .matmul_efficiency = 0.8,
                            .matmul_efficiency_fp8 = 0.7,
                            .matmul_half_k = 128,
                            .attention_efficiency = 0.6,
                            .attention_efficiency_backward = 0.5,
                            .memory_efficiency = 0.9,
                            .launch_s = 2e-6};
}

/* Causal prefill of q tokens: a query sees (q + 1) / 2 keys on average. */
static sm_attention_shape prefill(double batch, double q, double heads, double kv_heads,
                                  double head_size) {
    return (sm_attention_shape){.batch = batch,
                                .q_len = q,
                                .keys = (q + 1) / 2,
                                .kv_len = q,
                                .heads = heads,
                                .kv_heads = kv_heads,
                                .head_size = head_size,
                                .v_head_size = head_size,
                                .dtype = SM_BF16,
                                .kv_bytes = 2};
}

static sm_attention_shape decode(double batch, double kv, double heads, double kv_heads,
                                 double head_size) {
    sm_attention_shape s = prefill(batch, 1, heads, kv_heads, head_size);
    s.keys = s.kv_len = kv;
    return s;
}

/* DeepSeek's absorbed decode: one key of 512 + 64 for all heads, its first 512 the value. */
static sm_attention_shape decode_mla(double batch, double kv, double heads) {
    sm_attention_shape s = decode(batch, kv, heads, 1, 576);
    s.v_head_size = 512;
    s.shared_kv = true;
    return s;
}

static sm_op_cost cost_on(const char *chip, const sm_attention_shape *s) {
    sm_calibration c = constants();
    return sm_attention_cost(chip_of(chip), &c, s, false);
}

static double expected_on(const char *chip, sm_attention_shape s) {
    return cost_on(chip, &s).expected_s;
}

static double flops_per_s(const char *chip, sm_attention_shape s) {
    sm_op_cost cost = cost_on(chip, &s);
    return cost.math_s / cost.expected_s;
}

/* ---- the bound ---- */

static void the_bound_counts_every_multiplication_and_byte(void **state) {
    const sm_chip *chip = chip_of("h100-sxm");
    int q = 5, kv = 9, heads = 6, kv_heads = 2, batch = 3;
    double flops = 0, bytes = 0;
    for (int b = 0; b < batch; b++) {
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < q; i++) {
                for (int k = 0; k <= kv - q + i; k++) flops += 2 * 16 + 2 * 8;
                bytes += 2 * 16 + 2 * 8;
            }
        bytes += kv * kv_heads * (16 + 8) * 1.0;
    }
    sm_attention_shape s = prefill(batch, q, heads, kv_heads, 16);
    s.kv_len = kv;
    s.keys = kv - (q - 1) / 2.0;
    s.v_head_size = 8;
    s.kv_bytes = 1;
    sm_op_cost cost = cost_on("h100-sxm", &s);
    expect_near(cost.math_s, flops / chip->flops_per_s[SM_BF16].value, 1e-12);
    expect_near(cost.memory_s, bytes / chip->memory_bytes_per_s.value, 1e-12);
    expect_near(cost.lower_s, fmax(cost.math_s, cost.memory_s), 1e-12);
}

static void backward_is_five_matmuls_for_two(void **state) {
    sm_calibration c = constants();
    sm_attention_shape s = prefill(2, 4096, 32, 8, 128);
    sm_op_cost forward = sm_attention_cost(chip_of("h100-sxm"), &c, &s, false);
    sm_op_cost backward = sm_attention_cost(chip_of("h100-sxm"), &c, &s, true);
    expect_near(backward.math_s, 2.5 * forward.math_s, 1e-12);
    expect_near(backward.memory_s, 2 * forward.memory_s, 1e-12);
    double fixed = forward.expected_s - 2.5 * forward.expected_s * 0.6 / 0.5;
    assert_true(fixed < 0);
    expect_near(backward.expected_s, 2.5 * forward.expected_s * 0.6 / 0.5, 0.1);
}

static double random_up_to(uint32_t *seed, double most) {
    *seed = *seed * 1664525u + 1013904223u;
    return floor(exp(log(most + 1) * (*seed >> 8) / 16777216.0));
}

static sm_attention_shape random_shape(uint32_t *seed) {
    double kv_heads = fmax(1, random_up_to(seed, 32)), kv = fmax(1, random_up_to(seed, 200000));
    double q = random_up_to(seed, 3) < 1.5 ? 1 : fmax(1, fmin(kv, random_up_to(seed, 20000)));
    sm_attention_shape s = prefill(fmax(1, random_up_to(seed, 300)), q, kv_heads, kv_heads, 64);
    s.heads *= fmax(1, random_up_to(seed, 32));
    s.kv_len = kv;
    s.keys = random_up_to(seed, 3) < 2 ? kv - (q - 1) / 2 : kv;
    s.head_size = s.v_head_size = 32 * fmax(1, random_up_to(seed, 16));
    s.dtype = random_up_to(seed, 3) < 2 ? SM_BF16 : SM_FP8;
    s.kv_bytes = random_up_to(seed, 3) < 2 ? 2 : 1;
    s.shared_kv = random_up_to(seed, 9) < 2;
    s.one_kernel = random_up_to(seed, 3) < 2;
    s.persistent = random_up_to(seed, 3) < 2;
    s.head_blocks = random_up_to(seed, 9) < 2;
    s.kernel = (int)random_up_to(seed, 3);
    return s;
}

static void every_cost_is_ordered_on_every_chip(void **state) {
    uint32_t seed = 1;
    sm_calibration c = constants();
    for (int i = 0; i < 20000; i++) {
        const sm_chip *chip = sm_chip_at((size_t)i % sm_chip_count());
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0)) continue;
        sm_attention_shape s = random_shape(&seed);
        sm_op_cost cost = sm_attention_cost(chip, &c, &s, i % 3 == 0);
        if (!(cost.lower_s > 0 && cost.lower_s <= cost.expected_s &&
              cost.expected_s <= cost.upper_s && isfinite(cost.upper_s)))
            fail_msg("%s: %g %g %g", chip->name, cost.lower_s, cost.expected_s, cost.upper_s);
        assert_true(cost.tile_efficiency > 0 && cost.tile_efficiency <= 1);
        assert_true(cost.expected_s >= c.launch_s);
    }
}

static void nothing_to_do_costs_a_launch(void **state) {
    sm_attention_shape none[] = {{0},
                                 prefill(0, 9, 1, 1, 64),
                                 prefill(1, -3, 1, 1, 64),
                                 prefill(1, 9, 0, 1, 64),
                                 prefill(1, NAN, 1, 1, 64)};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        sm_op_cost cost = cost_on("h100-sxm", &none[i]);
        assert_true(cost.lower_s >= 0 && cost.lower_s <= 0);
        expect_near(cost.expected_s, 2e-6, 1e-12);
    }
}

/* ---- better hardware, better constants ---- */

static sm_chip scaled(const sm_chip *chip, int what) {
    sm_chip better = *chip;
    if (what == 0)
        for (int d = 0; d < SM_DTYPE_COUNT; d++) better.flops_per_s[d].value *= 1.3;
    if (what == 1) better.memory_bytes_per_s.value *= 1.3;
    if (what == 2 && better.clock_hz.value > 0) better.clock_hz.value *= 1.3;
    return better;
}

static void better_hardware_is_never_slower(void **state) {
    uint32_t seed = 7;
    sm_calibration c = constants();
    for (int i = 0; i < 12000; i++) {
        const sm_chip *chip = sm_chip_at((size_t)i % sm_chip_count());
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0)) continue;
        sm_attention_shape s = random_shape(&seed);
        s.kernel = SM_ATTENTION_FUSED;
        sm_chip better = scaled(chip, i % 3);
        expect_at_most(sm_attention_cost(&better, &c, &s, false).expected_s,
                       sm_attention_cost(chip, &c, &s, false).expected_s);
    }
}

static void better_constants_are_never_slower(void **state) {
    uint32_t seed = 9;
    for (int i = 0; i < 5000; i++) {
        sm_calibration c = constants(), better = c;
        better.attention_efficiency = 0.7;
        better.memory_efficiency = 0.95;
        better.launch_s = 1e-6;
        better.matmul_efficiency = 0.9;
        sm_attention_shape s = random_shape(&seed);
        s.dtype = SM_BF16;
        expect_at_most(sm_attention_cost(chip_of("b200"), &better, &s, false).expected_s,
                       sm_attention_cost(chip_of("b200"), &c, &s, false).expected_s);
    }
}

/* ---- prefill ---- */

static void long_sequences_reach_the_calibrated_rate(void **state) {
    expect_near(flops_per_s("h100-sxm", prefill(4, 32768, 32, 8, 128)), 0.6, 0.04);
    expect_near(flops_per_s("a100-80", prefill(4, 32768, 32, 8, 128)), 0.6, 0.04);
}

static void short_sequences_lose_to_tiles_and_fixed_costs(void **state) {
    double before = 0;
    for (double q = 128; q <= 32768; q *= 2) { /* the same tokens each time */
        double rate = flops_per_s("h100-sxm", prefill(65536 / q, q, 32, 8, 128));
        assert_true(rate > before);
        before = rate;
    }
    assert_true(flops_per_s("h100-sxm", prefill(512, 128, 32, 8, 128)) < 0.15);
}

static void small_heads_are_bound_by_exponentials(void **state) {
    const char *const chips[] = {"a100-80", "h100-sxm", "b200"};
    double before = 1;
    for (int i = 0; i < 3; i++) { /* matmuls grow faster than exponentials from chip to chip */
        double rate64 = flops_per_s(chips[i], prefill(4, 16384, 64, 8, 64));
        double rate128 = flops_per_s(chips[i], prefill(4, 16384, 32, 8, 128));
        double rate256 = flops_per_s(chips[i], prefill(4, 16384, 16, 8, 256));
        assert_true(rate64 < rate128 && rate128 < rate256);
        assert_true(rate64 / rate128 < before);
        before = rate64 / rate128;
    }
    assert_true(before < 0.8);
}

static void eight_bits_gain_less_than_twice(void **state) {
    sm_attention_shape s = prefill(4, 16384, 32, 8, 128), narrow = s;
    narrow.dtype = SM_FP8;
    narrow.kv_bytes = 1;
    double gain = expected_on("h100-sxm", s) / expected_on("h100-sxm", narrow);
    assert_true(gain > 1.2 && gain < 1.8);
}

static void one_head_leaves_cores_idle(void **state) {
    double one = expected_on("h100-sxm", prefill(1, 4096, 1, 1, 128));
    double two = expected_on("h100-sxm", prefill(1, 4096, 2, 2, 128));
    double many = expected_on("h100-sxm", prefill(1, 4096, 64, 64, 128));
    assert_true(two < 1.2 * one);
    assert_true(many > 8 * one && many < 40 * one);
}

static void heads_may_be_counted_with_the_batch(void **state) {
    sm_attention_shape s = prefill(3, 2048, 16, 16, 128), folded = prefill(48, 2048, 1, 1, 128);
    expect_near(expected_on("h100-sxm", folded), expected_on("h100-sxm", s), 1e-12);
}

static void a_mask_saves_what_it_hides(void **state) {
    sm_attention_shape causal = prefill(4, 16384, 32, 8, 128), full = causal, window = causal;
    full.keys = 16384;
    window.keys = 1024;
    double t = expected_on("h100-sxm", causal);
    expect_near(expected_on("h100-sxm", full), 2 * t, 0.05);
    assert_true(expected_on("h100-sxm", window) < 0.2 * t);
}

/* ---- decode ---- */

static void a_long_cache_streams(void **state) {
    sm_attention_shape s = decode(64, 16384, 32, 32, 128);
    sm_op_cost cost = cost_on("h100-sxm", &s);
    assert_true(cost.memory_s > 50 * cost.math_s);
    expect_near(cost.expected_s, cost.memory_s / (0.9 * 0.95), 0.03);
}

static void a_cache_is_split_over_the_cores(void **state) {
    double one = expected_on("h100-sxm", decode(1, 65536, 8, 1, 128));
    double eight = expected_on("h100-sxm", decode(8, 8192, 8, 1, 128));
    expect_near(one, eight, 0.1);
    sm_attention_shape tiny = decode(1, 128, 8, 1, 128);
    sm_op_cost cost = cost_on("h100-sxm", &tiny);
    assert_true(cost.expected_s > 20 * cost.memory_s); /* a floor of microseconds */
    assert_true(cost.expected_s > 5e-6 && cost.expected_s < 20e-6);
}

static void queries_of_one_key_head_share_its_tile(void **state) {
    double one = expected_on("h100-sxm", decode(32, 8192, 8, 8, 128));
    expect_near(expected_on("h100-sxm", decode(32, 8192, 64, 8, 128)), one, 0.02);
    assert_true(expected_on("h100-sxm", decode(32, 8192, 64, 64, 128)) > 6 * one);
}

static void absorbed_mla_is_bound_by_its_matmuls(void **state) {
    sm_attention_shape all = decode_mla(128, 8192, 128), few = decode_mla(128, 8192, 16);
    sm_op_cost wide = cost_on("h20", &all), narrow = cost_on("h20", &few);
    assert_true(wide.math_s > wide.memory_s && narrow.memory_s > narrow.math_s);
    assert_true(wide.expected_s > 2 * narrow.expected_s);
    expect_near(wide.memory_s, 128 * (8192 * 576 + 128 * (576 + 512)) * 2 / 4000e9, 1e-12);
}

static void an_eight_bit_cache_is_converted(void **state) {
    sm_attention_shape s = decode(64, 16384, 8, 8, 128), narrow = s, native = s;
    narrow.kv_bytes = native.kv_bytes = 1;
    native.dtype = SM_FP8;
    double wide_s = expected_on("h200", s), narrow_s = expected_on("h200", narrow);
    double native_s = expected_on("h200", native);
    assert_true(native_s < 0.55 * wide_s);
    assert_true(narrow_s > 1.15 * native_s && narrow_s < wide_s);
}

static void a_systolic_array_pads_the_group_to_its_tile(void **state) {
    double four = expected_on("tpu-v6e", decode(64, 2048, 32, 8, 128));
    double hundred = expected_on("tpu-v6e", decode(64, 2048, 128 * 8, 8, 128));
    assert_true(hundred < 1.3 * four);
}

/* ---- how kernels differ ---- */

static void kernels_differ_in_what_they_set_up(void **state) {
    sm_attention_shape s = decode(512, 64, 64, 8, 128), one = s, stays = s, apart = s;
    one.one_kernel = stays.persistent = apart.head_blocks = true;
    double t = expected_on("h100-sxm", s);
    assert_true(expected_on("h100-sxm", one) < t - 3e-6);
    assert_true(expected_on("h100-sxm", stays) < 0.8 * t);
    assert_true(expected_on("h100-sxm", apart) > 2 * t);
}

/* ---- unfused ---- */

/* The softmax between them is an op of its own (SM_OP_VECTOR). */
static void unfused_is_its_matmuls(void **state) {
    const sm_chip *chip = chip_of("a100-80");
    sm_calibration c = constants();
    sm_attention_shape s = prefill(2, 2048, 16, 16, 128);
    s.kernel = SM_ATTENTION_UNFUSED;
    double scores = 2.0 * 16 * 2048 * 2048;
    double bytes = 2 * (scores + 2 * 2.0 * 16 * 2048 * 128);
    double qk = sm_matmul_cost(chip, &c, SM_BF16, (sm_product_shape){32, 2048, 2048, 128}, bytes)
                    .expected_s;
    double pv = sm_matmul_cost(chip, &c, SM_BF16, (sm_product_shape){32, 2048, 128, 2048}, bytes)
                    .expected_s;
    sm_op_cost forward = sm_attention_cost(chip, &c, &s, false);
    sm_op_cost backward = sm_attention_cost(chip, &c, &s, true);
    expect_near(forward.expected_s, qk + pv, 1e-9);
    expect_near(backward.expected_s, 2 * (qk + pv), 1e-9);
    expect_near(backward.math_s, 2 * forward.math_s, 1e-12); /* the scores were kept */
}

/* Heads of 108 begin at 8 of 16 bytes: the scores are worth 4 x 2048 x 2048 x 108 FLOPs a head to
 * the vector units, at what matmuls reach of their peak. Fused kernels pad them. */
static void unaligned_heads_leave_the_matrix_units(void **state) {
    const sm_chip *chip = chip_of("a100-80");
    sm_calibration c = constants();
    sm_attention_shape s = prefill(2, 2048, 16, 16, 108), aligned = prefill(2, 2048, 16, 16, 112);
    double fused = expected_on("a100-80", s) / expected_on("a100-80", aligned);
    assert_true(fused > 0.9 && fused < 1.1);
    s.kernel = aligned.kernel = SM_ATTENTION_UNFUSED;
    double flops = 4.0 * 32 * 2048 * 2048 * 108;
    double by_vectors = flops / (chip->vector_flops_per_s.value * c.matmul_efficiency);
    expect_near(sm_attention_cost(chip, &c, &s, false).expected_s, by_vectors, 1e-9);
    expect_near(sm_attention_cost(chip, &c, &s, true).expected_s, 2 * by_vectors, 1e-9);
    assert_true(by_vectors > 4 * sm_attention_cost(chip, &c, &aligned, false).expected_s);
}

static void fusing_pays_more_the_longer_the_sequence(void **state) {
    double before = 0;
    for (double q = 1024; q <= 16384; q *= 2) {
        sm_attention_shape s = prefill(1, q, 32, 32, 128), apart = s;
        apart.kernel = SM_ATTENTION_UNFUSED;
        double gain = expected_on("a100-80", apart) / expected_on("a100-80", s);
        assert_true(gain > before);
        before = gain;
    }
    assert_true(before > 2);
}

/* Of long sequences only the products count: 2576 of an H100's 4096 FLOPs a cycle and core, all of
 * an A100's 2049. */
static void older_kernels_have_an_a100s_instructions(void **state) {
    sm_attention_shape s = prefill(1, 32768, 32, 32, 128), first = s, second = s;
    first.kernel = SM_ATTENTION_FLASH_1, second.kernel = SM_ATTENTION_FLASH_2;
    expect_near(expected_on("a100-80", second), expected_on("a100-80", s), 1e-12);
    expect_near(expected_on("h100-sxm", second), 4096 / 2576.0 * expected_on("h100-sxm", s), 0.01);
    expect_near(expected_on("a100-80", first), expected_on("a100-80", s) / 0.6, 0.01);
    expect_near(expected_on("h100-sxm", first), expected_on("h100-sxm", second) / 0.6, 0.01);
}

/* ---- panels, as src/run multiplies ---- */

/* 128 queries at a time meet the keys up to their end: of 2048, (128 + 256 + ... + 2048) / 16 =
 * 1088 on average; of the second half, 1024 + (128 + ... + 1024) / 8 = 1600. */
static void a_panel_meets_the_keys_up_to_its_end(void **state) {
    const sm_chip *chip = chip_of("cpu-host");
    sm_calibration c = constants();
    sm_attention_shape s = prefill(1, 2048, 8, 8, 128), half = s;
    s.panel = half.panel = 128;
    half.q_len = 1024;
    double peak = sm_chip_peak(chip, SM_BF16, NULL), flops = 2.0 * 8 * 2048 * 1088 * 256;
    sm_op_cost whole = sm_attention_cost(chip, &c, &s, false);
    sm_op_cost last = sm_attention_cost(chip, &c, &half, false);
    sm_op_cost back = sm_attention_cost(chip, &c, &s, true);
    double contraction = 128 / (128 + c.matmul_half_k), launch = c.launch_s;
    expect_near(whole.math_s, flops / peak, 1e-12);
    expect_near(whole.expected_s - launch, flops / peak / (c.attention_efficiency * contraction),
                1e-9);
    expect_near(last.math_s / whole.math_s, 0.5 * 1600 / 1088, 1e-12);
    expect_near(back.math_s, 2.5 * whole.math_s, 1e-12);
}

/* One query of a head at a time reads every key and value for one product, from the chip's own
 * memory: heads and queries share nothing. */
static void a_query_by_itself_reads_its_keys(void **state) {
    const sm_chip *chip = chip_of("cpu-host");
    sm_calibration c = constants();
    sm_attention_shape s = prefill(4, 1, 64, 1, 64), more;
    s.panel = 1;
    s.keys = s.kv_len = 1000;
    s.kv_bytes = 4;
    more = s;
    more.keys = more.kv_len = 3000;
    double read = 4.0 * 64 * 1000 * (s.head_size + s.v_head_size) * 4;
    double seconds = read / (chip->onchip_bytes_per_s.value * c.memory_efficiency);
    assert_true(chip->onchip_bytes_per_s.value > 0);
    sm_op_cost one = sm_attention_cost(chip, &c, &s, false);
    expect_near(one.expected_s - c.launch_s, seconds, 1e-9);
    expect_near(sm_attention_cost(chip, &c, &more, false).expected_s - c.launch_s, 3 * seconds,
                1e-9);
    more.kv_heads = 64; /* then the memory that all share is the slower */
    assert_true(sm_attention_cost(chip, &c, &more, false).expected_s > 4 * seconds);
}

/* ---- the floor ---- */

static void no_shape_is_quicker_than_its_floor(void **state) {
    uint32_t seed = 3;
    sm_calibration c = constants();
    for (int i = 0; i < 20000; i++) {
        const sm_chip *chip = sm_chip_at((size_t)i % sm_chip_count());
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0)) continue;
        bool backward = i % 3 == 0;
        c.attention_efficiency = c.attention_efficiency_backward = 0.1 + 0.9 * (i % 7) / 6;
        sm_attention_shape s = random_shape(&seed), twice = s;
        if (i % 5 == 0) s.panel = twice.panel = 128, s.kernel = twice.kernel = SM_ATTENTION_FUSED;
        if (s.panel > 0) s.q_len = fmin(s.q_len, s.kv_len), twice.q_len = s.q_len;
        twice.batch *= 2;
        double floor_s = sm_attention_floor_s(chip, &c, &s, backward);
        sm_op_cost cost = sm_attention_cost(chip, &c, &s, backward);
        double best = s.kernel == SM_ATTENTION_UNFUSED ? c.matmul_efficiency
                                                       : sm_attention_best_efficiency(&c);
        expect_at_most(floor_s, cost.expected_s);
        expect_at_most(cost.lower_s, cost.expected_s * (1 + 1e-12));
        expect_near(sm_attention_floor_s(chip, &c, &twice, backward), 2 * floor_s, 1e-12);
        expect_at_most(cost.math_s / best, floor_s * (1 + 1e-12));
    }
}

/* ---- measured rows ---- */

static sm_truth_row row_of(const char *chip, const char *phase, double batch, double q, double kv,
                           int heads, int kv_heads, int head_size, const char *dtype,
                           const char *source) {
    sm_truth_row row = {.kind = SM_TRUTH_ATTENTION, .chip = chip, .id = "2"};
    measured_by(&row, source);
    row.of.attention = (sm_attention_row){phase, dtype, batch, q, kv, heads, kv_heads, head_size};
    return row;
}

static sm_prediction predict(const sm_truth_row *row) {
    sm_prediction out;
    const sm_chip *chip = chip_of(row->chip);
    const sm_calibration *c = sm_calibration_for(chip, "kernels");
    assert_non_null(c);
    sm_predict_attention(row, chip, c, &out);
    return out;
}

static double predicted(sm_truth_row row) {
    sm_prediction p = predict(&row);
    assert_null(p.unknown);
    assert_true(p.lower_s > 0 && p.lower_s <= p.expected_s && p.expected_s <= p.upper_s);
    return p.expected_s;
}

#define TRT "trtllm"
#define SGLANG "sglang"

/* Rows of ai-dynamo/aiconfigurator and InferSim: measured microseconds. Two honest sources of one
 * kernel differ by up to a fifth. */
static void measured_kernels_are_met(void **state) {
    const struct {
        sm_truth_row row;
        double us;
    } known[] = {
        {row_of("h100-sxm", "prefill", 1, 16384, 16384, 64, 2, 128, "bf16", TRT), 8320.3},
        {row_of("h100-sxm", "prefill", 2, 16384, 16384, 24, 24, 128, "bf16", SGLANG), 5709.4},
        {row_of("h100-sxm", "decode", 128, 1, 512, 64, 64, 128, "bf16", SGLANG), 701.9},
        {row_of("h100-sxm", "decode", 2, 1, 65536, 48, 1, 64, "bf16", "vllm"), 27.8},
        {row_of("h800", "prefill_mla", 1, 16384, 16384, 128, 128, 192, "bf16", "infersim"),
         17774.5},
        {row_of("h20", "prefill", 1, 32768, 32768, 32, 4, 128, "bf16", "infersim"), 63031.2},
        {row_of("h20", "decode_mla", 256, 1, 1024, 128, 1, 576, "bf16", "infersim"), 633.7},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        expect_near(predicted(known[i].row) * 1e6, known[i].us, 0.25);
}

static void what_cannot_be_predicted_says_why(void **state) {
    const struct {
        sm_truth_row row;
        const char *why;
    } wrong[] = {
        {row_of("h100-sxm", "training", 1, 9, 9, 1, 1, 64, "bf16", ""),
         "the phase is not one of those known"},
        {row_of("h100-sxm", "prefill", 1, 9, 9, 1, 1, 64, "fp6", ""),
         "the number format is not one of those known"},
        {row_of("h100-sxm", "prefill", NAN, 9, 9, 1, 1, 64, "bf16", ""), "batch, q_len or kv_len"},
        {row_of("h100-sxm", "prefill", 1, 9, 0, 1, 1, 64, "bf16", ""), "batch, q_len or kv_len"},
        {row_of("h100-sxm", "prefill", 1, 9, 8, 1, 1, 64, "bf16", ""),
         "kv_len counts the queries too: it is below q_len"},
        {row_of("h100-sxm", "decode", 1, 1, 8, 0, 1, 64, "bf16", ""), "heads or head size"},
        {row_of("h100-sxm", NULL, 1, 1, 8, 1, 1, 64, "bf16", NULL),
         "the phase is not one of those known"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_string_equal(predict(&wrong[i].row).unknown, wrong[i].why);
}

/* The masks: causal, full, and causal over a cache. */
static void phases_have_their_masks(void **state) {
    const sm_chip *chip = chip_of("h100-sxm");
    const struct {
        const char *phase;
        double q, kv, keys;
    } masks[] = {{"prefill", 4096, 4096, 2048.5},
                 {"prefill_noncausal", 4096, 4096, 4096},
                 {"prefill_cached", 1024, 8192, 8192 - 511.5}};
    for (size_t i = 0; i < 3; i++) {
        sm_truth_row row = row_of("h100-sxm", masks[i].phase, 8, masks[i].q, masks[i].kv, 32, 8,
                                  128, "bf16", "paper");
        double flops = 2 * 8 * 32 * masks[i].q * masks[i].keys * 256;
        expect_near(predict(&row).lower_s, flops / chip->flops_per_s[SM_BF16].value, 1e-12);
    }
}

static void sources_time_different_things(void **state) {
    const char *h = "h100-sxm", *fa3 = "sglang";
    double plain = predicted(row_of(h, "prefill", 8, 512, 512, 32, 8, 128, "bf16", "paper"));
    expect_near(predicted(row_of(h, "prefill", 8, 512, 512, 32, 8, 128, "bf16", "infersim")),
                plain + 4.8e-6, 1e-12);
    assert_true(predicted(row_of(h, "prefill", 8, 512, 512, 32, 8, 128, "bf16", TRT)) >
                plain + 5e-6); /* RoPE and the append to the cache */
    double cache8 = predicted(row_of(h, "decode", 8, 1, 512, 32, 8, 128, "bf16_kvfp8", "paper"));
    assert_true(predicted(row_of(h, "decode", 8, 1, 512, 32, 8, 128, "bf16_kvfp8", fa3)) >
                cache8 + 2e-6); /* queries are quantised */
    assert_true(predicted(row_of("a100-80", "decode_mla", 1, 1, 64, 16, 1, 576, "bf16",
                                 "vllm-0.14")) > 300e-6);
}

/* A benchmark that repeats one call may read from the cache: bytes beyond it bound, no others. */
static void a_cache_lowers_the_bound(void **state) {
    const sm_chip *chip = chip_of("l40s");
    sm_truth_row small = row_of("l40s", "decode", 4, 1, 1024, 8, 8, 128, "bf16", "paper");
    sm_truth_row large = row_of("l40s", "decode", 256, 1, 16384, 8, 8, 128, "bf16", "paper");
    double bytes = 256.0 * (16384.0 * 8 * 256 + 8 * 256) * 2;
    expect_near(predict(&large).lower_s,
                (bytes - chip->onchip_bytes.value) / chip->memory_bytes_per_s.value, 1e-9);
    assert_true(predict(&small).lower_s < 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_counts_every_multiplication_and_byte),
        cmocka_unit_test(backward_is_five_matmuls_for_two),
        cmocka_unit_test(every_cost_is_ordered_on_every_chip),
        cmocka_unit_test(nothing_to_do_costs_a_launch),
        cmocka_unit_test(better_hardware_is_never_slower),
        cmocka_unit_test(better_constants_are_never_slower),
        cmocka_unit_test(long_sequences_reach_the_calibrated_rate),
        cmocka_unit_test(short_sequences_lose_to_tiles_and_fixed_costs),
        cmocka_unit_test(small_heads_are_bound_by_exponentials),
        cmocka_unit_test(eight_bits_gain_less_than_twice),
        cmocka_unit_test(one_head_leaves_cores_idle),
        cmocka_unit_test(heads_may_be_counted_with_the_batch),
        cmocka_unit_test(a_mask_saves_what_it_hides),
        cmocka_unit_test(a_long_cache_streams),
        cmocka_unit_test(a_cache_is_split_over_the_cores),
        cmocka_unit_test(queries_of_one_key_head_share_its_tile),
        cmocka_unit_test(absorbed_mla_is_bound_by_its_matmuls),
        cmocka_unit_test(an_eight_bit_cache_is_converted),
        cmocka_unit_test(a_systolic_array_pads_the_group_to_its_tile),
        cmocka_unit_test(kernels_differ_in_what_they_set_up),
        cmocka_unit_test(unfused_is_its_matmuls),
        cmocka_unit_test(older_kernels_have_an_a100s_instructions),
        cmocka_unit_test(unaligned_heads_leave_the_matrix_units),
        cmocka_unit_test(fusing_pays_more_the_longer_the_sequence),
        cmocka_unit_test(a_panel_meets_the_keys_up_to_its_end),
        cmocka_unit_test(a_query_by_itself_reads_its_keys),
        cmocka_unit_test(no_shape_is_quicker_than_its_floor),
        cmocka_unit_test(measured_kernels_are_met),
        cmocka_unit_test(what_cannot_be_predicted_says_why),
        cmocka_unit_test(phases_have_their_masks),
        cmocka_unit_test(sources_time_different_things),
        cmocka_unit_test(a_cache_lowers_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

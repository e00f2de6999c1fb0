/* Rooflines and critical sizes, op costs, calibration, and the curves at the book's numbers. */
#include "unit.h"
#include "scalemodel/cost.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.10g, expected %.10g", got, want);
}

static const sm_chip *chip_of(const char *name) {
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    if (!chip) fail_msg("no chip %s", name);
    return chip;
}

/* The v5e of the book: 1.97e14 bf16, 3.94e14 int8, 8.2e11 B/s. */
static sm_chip book_v5e(void) {
    sm_chip chip = *chip_of("tpu-v5e");
    chip.flops_per_s[SM_BF16].value = 1.97e14;
    chip.flops_per_s[SM_INT8].value = 3.94e14;
    chip.memory_bytes_per_s.value = 8.2e11;
    return chip;
}

static sm_einsum einsum_of(const char *text, const char *dims) {
    sm_einsum einsum;
    sm_error err = {0};
    sm_source source = sm_source_of("einsum", text), sizes = sm_source_of("--dims", dims);
    if (sm_einsum_parse(&source, NULL, &einsum, &err) != SM_OK ||
        (dims[0] && sm_dims_parse(&sizes, &einsum, &err) != SM_OK))
        fail_msg("%s: %s", text, err.sentence);
    return einsum;
}

static int index_named(const sm_einsum *einsum, const char *name) {
    for (int i = 0; i < einsum->indices; i++)
        if (strcmp(einsum->index[i].name, name) == 0) return i;
    return -1;
}

static sm_roofline roofline_of(const sm_chip *chip, const char *text, const char *dims) {
    sm_einsum einsum = einsum_of(text, dims);
    sm_roofline roofline;
    sm_error err = {0};
    if (sm_roofline_einsum(chip, &einsum, SM_MEMORY_HBM, NULL, &roofline, &err) != SM_OK)
        fail_msg("%s", err.sentence);
    return roofline;
}

static double critical_of(const sm_chip *chip, const char *text, const char *dims,
                          const char *index) {
    sm_einsum einsum = einsum_of(text, dims);
    double size;
    sm_error err = {0};
    if (sm_roofline_critical(chip, &einsum, SM_MEMORY_HBM, NULL, index_named(&einsum, index), &size,
                             &err) != SM_OK)
        fail_msg("%s", err.sentence);
    return size;
}

/* ---- rooflines ---- */

static void test_bytes_and_flops_of_a_matmul(void **state) {
    sm_chip chip = book_v5e();
    sm_roofline r = roofline_of(&chip, "bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=128,D=8192,F=8192");
    expect_near(r.flops, 2.0 * 128 * 8192 * 8192, 0);
    expect_near(r.bytes, 2.0 * (128 * 8192 + 8192.0 * 8192 + 128 * 8192), 0);
    expect_near(r.intensity, 124.121, 1e-5);
    assert_false(r.compute_bound);
    expect_near(r.lower_s, r.bytes / 8.2e11, 1e-12);
    assert_true(r.lower_s <= r.expected_s && r.expected_s <= r.upper_s);
}

static void test_operands_keep_their_own_dtypes(void **state) {
    sm_chip chip = book_v5e();
    sm_roofline r = roofline_of(&chip, "bf16[B,D] int8[D,F] -> bf16[B,F]", "B=10,D=100,F=1000");
    assert_int_equal(r.compute, SM_BF16);
    expect_near(r.bytes, 2.0 * 10 * 100 + 100 * 1000 + 2.0 * 10 * 1000, 0);
    expect_near(r.peak_flops_per_s, 1.97e14, 0);
    sm_roofline int8 = roofline_of(&chip, "int8[B,D] int8[D,F] -> int8[B,F]", "B=10,D=100,F=1000");
    assert_int_equal(int8.compute, SM_INT8);
    expect_near(int8.peak_flops_per_s, 3.94e14, 0);
}

static void test_book_critical_batches(void **state) {
    sm_chip chip = book_v5e();
    const char *mixed = "bf16[B,D] int8[D,F] -> bf16[B,F]";
    expect_near(critical_of(&chip, mixed, "B=1,D=4096,F=4096", "B"), 136.086, 1e-5);
    expect_near(critical_of(&chip, mixed, "B=1,D=1024,F=1024", "B"), 226.315, 1e-5);
    /* B = D/(2 D W/C - 4), the worked form */
    double d = 4096.0, w = 8.2e11, c = 1.97e14;
    expect_near(critical_of(&chip, mixed, "B=1,D=4096,F=4096", "B"), d / (2.0 * d * w / c - 4.0),
                1e-12);
    double large = critical_of(&chip, "bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=1,D=1e9,F=1e9", "B");
    expect_near(large, c / w, 1e-5); /* 240 */
}

/* At the critical size both times are equal; below it memory rules, above it math. */
static void test_critical_size_turns_the_bound(void **state) {
    static const char *const texts[] = {"bf16[B,D] bf16[D,F] -> bf16[B,F]",
                                        "int8[B,D] int8[D,F] -> bf16[B,F]",
                                        "fp8[E,B,D] bf16[E,D,F] -> bf16[E,B,F]"};
    const sm_chip *chip = chip_of("h100-sxm");
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        sm_einsum einsum =
            einsum_of(texts[t], t == 2 ? "E=4,B=7,D=5120,F=6144" : "B=7,D=5120,F=6144");
        int index = index_named(&einsum, "B");
        double size;
        sm_roofline at, below, above;
        assert_int_equal(
            sm_roofline_critical(chip, &einsum, SM_MEMORY_HBM, NULL, index, &size, NULL), SM_OK);
        einsum.index[index].size = size;
        assert_int_equal(sm_roofline_einsum(chip, &einsum, SM_MEMORY_HBM, NULL, &at, NULL), SM_OK);
        expect_near(at.math_s, at.memory_s, 1e-9);
        einsum.index[index].size = 0.99 * size;
        assert_int_equal(sm_roofline_einsum(chip, &einsum, SM_MEMORY_HBM, NULL, &below, NULL),
                         SM_OK);
        einsum.index[index].size = 1.01 * size;
        assert_int_equal(sm_roofline_einsum(chip, &einsum, SM_MEMORY_HBM, NULL, &above, NULL),
                         SM_OK);
        assert_false(below.compute_bound);
        assert_true(above.compute_bound);
    }
}

static void test_no_critical_size(void **state) {
    sm_chip chip = book_v5e();
    sm_error err = {0};
    double size;
    sm_einsum per_batch = einsum_of("int8[B,D] int8[B,D,F] -> int8[B,F]", "B=8,D=4096,F=4096");
    assert_int_equal(sm_roofline_critical(&chip, &per_batch, SM_MEMORY_HBM, NULL,
                                          index_named(&per_batch, "B"), &size, &err),
                     SM_NEGATIVE);
    assert_string_equal(err.sentence,
                        "no size of B makes this compute-bound: the intensity stays below 1.999 "
                        "FLOPs/byte and tpu-v5e needs 480.5");
    sm_einsum thin = einsum_of("bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=8,D=16,F=4096");
    assert_int_equal(sm_roofline_critical(&chip, &thin, SM_MEMORY_HBM, NULL,
                                          index_named(&thin, "B"), &size, NULL),
                     SM_NEGATIVE);
    assert_int_equal(sm_roofline_critical(&chip, &thin, SM_MEMORY_HBM, NULL, 99, &size, &err),
                     SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the einsum has no index number 99");
}

static void test_memory_levels(void **state) {
    sm_chip chip = book_v5e();
    sm_einsum einsum = einsum_of("bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=64,D=4096,F=4096");
    sm_roofline hbm, onchip, host;
    sm_error err = {0};
    chip.onchip_bytes_per_s.value = 22.0 * 8.2e11;
    chip.pcie_bytes_per_s_oneway.value = 1.6e10;
    assert_int_equal(sm_roofline_einsum(&chip, &einsum, SM_MEMORY_HBM, NULL, &hbm, NULL), SM_OK);
    assert_int_equal(sm_roofline_einsum(&chip, &einsum, SM_MEMORY_ONCHIP, NULL, &onchip, NULL),
                     SM_OK);
    assert_int_equal(sm_roofline_einsum(&chip, &einsum, SM_MEMORY_HOST, NULL, &host, NULL), SM_OK);
    expect_near(onchip.memory_s * 22.0, hbm.memory_s, 1e-12);
    expect_near(host.memory_s, hbm.bytes / 1.6e10, 1e-12);
    chip.onchip_bytes_per_s.value = 0.0;
    assert_int_equal(sm_roofline_einsum(&chip, &einsum, SM_MEMORY_ONCHIP, NULL, &onchip, &err),
                     SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the on-chip bandwidth of tpu-v5e is not known");
}

/* ---- peaks and dtypes ---- */

/* As in a sharded einsum: nothing is summed over one element. Critical sizes are of real sums. */
static void test_a_sum_of_one_is_for_the_vector_unit(void **state) {
    (void)state;
    const sm_chip *chip = chip_of("h100-sxm");
    const char *text = "bf16[B,D] bf16[D,F] -> bf16[B,F]";
    sm_roofline one = roofline_of(chip, text, "B=64,D=1,F=4096");
    sm_op_cost cost =
        sm_vector_cost(chip, sm_calibration_of_operations(chip), one.flops, one.bytes);
    assert_true(one.vector && !roofline_of(chip, text, "B=64,D=2,F=4096").vector);
    expect_near(one.math_s, one.flops / chip->vector_flops_per_s.value, 1e-12);
    expect_near(one.expected_s, cost.expected_s, 1e-12);
    expect_near(critical_of(chip, text, "B=2048,D=2,F=2048", "D"),
                critical_of(chip, text, "B=2048,D=64,F=2048", "D"), 1e-12);
}

static void test_missing_dtypes_use_a_wider_one(void **state) {
    sm_chip chip = {.name = "test"};
    sm_dtype used;
    sm_error err = {0};
    sm_roofline r;
    sm_einsum einsum = einsum_of("fp8[B,D] fp8[D,F] -> fp8[B,F]", "B=1,D=2,F=3");
    assert_true(sm_chip_peak(&chip, SM_BF16, &used) == 0.0);
    chip.memory_bytes_per_s.value = 1e12;
    assert_int_equal(sm_roofline_einsum(&chip, &einsum, SM_MEMORY_HBM, NULL, &r, &err),
                     SM_BAD_INPUT);
    assert_string_equal(err.sentence, "test has no known peak for fp8 or a wider dtype");
    chip.flops_per_s[SM_FP32].value = 1e12;
    expect_near(sm_chip_peak(&chip, SM_MXFP4, &used), 1e12, 0);
    assert_int_equal(used, SM_FP32);
    chip.flops_per_s[SM_BF16].value = 2e12;
    expect_near(sm_chip_peak(&chip, SM_FP8, &used), 2e12, 0);
    assert_int_equal(used, SM_BF16);
    expect_near(sm_chip_peak(&chip, SM_INT4, &used), 2e12, 0);
    expect_near(sm_chip_peak(&chip, SM_FP64, NULL), 2e12, 0);
}

static void test_the_widest_operand_decides(void **state) {
    assert_int_equal(sm_compute_dtype((sm_dtype[]){SM_INT8, SM_BF16}, 2), SM_BF16);
    assert_int_equal(sm_compute_dtype((sm_dtype[]){SM_BF16, SM_INT8}, 2), SM_BF16);
    assert_int_equal(sm_compute_dtype((sm_dtype[]){SM_INT8, SM_FP8}, 2), SM_FP8);
    assert_int_equal(sm_compute_dtype((sm_dtype[]){SM_INT4, SM_INT8}, 2), SM_INT8);
    assert_int_equal(sm_compute_dtype((sm_dtype[]){SM_BF16, SM_FP32, SM_FP8}, 3), SM_FP32);
}

/* ---- matmuls ---- */

static sm_op_cost matmul(const sm_chip *chip, double batch, double m, double n, double k) {
    double bytes = 2.0 * batch * (m * k + k * n + m * n);
    return sm_matmul_cost(chip, sm_calibration_of(chip), SM_BF16,
                          (sm_product_shape){batch, m, n, k}, bytes);
}

static void test_systolic_tiles_are_padded(void **state) {
    const sm_chip *chip = chip_of("tpu-v5e");
    double half_k = sm_calibration_of(chip)->matmul_half_k;
    double full = matmul(chip, 1, 4096, 4096, 4096).tile_efficiency;
    expect_near(full, 4096.0 / (4096.0 + half_k), 1e-12);
    expect_near(matmul(chip, 1, 4096, 64, 4096).tile_efficiency, full / 2.0, 1e-12);
    expect_near(matmul(chip, 1, 1, 4096, 4096).tile_efficiency, full / 8.0, 1e-12);
    expect_near(matmul(chip, 1, 4096, 129, 4096).tile_efficiency, full * 129.0 / 256.0, 1e-12);
}

/* Whole tiles of the contraction, and the pipeline filled once: less never takes longer. */
static void test_short_contractions_take_a_tile(void **state) {
    static const char *const systolic[] = {"tpu-v5e", "tpu-v6e", "trn2"};
    for (size_t i = 0; i < sizeof systolic / sizeof *systolic; i++) {
        const sm_chip *chip = chip_of(systolic[i]);
        double half_k = sm_calibration_of(chip)->matmul_half_k, tile = chip->tile_k;
        for (double k = 1.0; k <= tile; k *= 2.0)
            expect_near(matmul(chip, 1, 4096, 4096, k).tile_efficiency, k / (tile + half_k), 1e-12);
        expect_near(matmul(chip, 1, 4096, 4096, tile + 1.0).tile_efficiency,
                    (tile + 1.0) / (2.0 * tile + half_k), 1e-12);
        double whole = matmul(chip, 1, 4096, 4096, tile).expected_s;
        assert_true(matmul(chip, 1, 4096, 4096, 1).expected_s <= whole);
    }
}

/* 132 SMs: 132 of the largest tiles fill one wave, 133 do not. */
static void test_waves_of_tiles(void **state) {
    sm_chip chip = *chip_of("h100-sxm");
    chip.tile_m = chip.tile_n = 128;
    chip.cores = 132;
    sm_op_cost one = matmul(&chip, 1, 256.0 * 12, 128.0 * 11, 8192);
    sm_op_cost more = matmul(&chip, 1, 256.0 * 12 + 1, 128.0 * 11, 8192);
    assert_true(more.tile_efficiency < 0.9 * one.tile_efficiency);
    assert_true(more.expected_s > 1.1 * one.expected_s);
    assert_true(matmul(&chip, 1, 16384, 16384, 8192).tile_efficiency > 0.9);
}

static void test_small_outputs_split_the_contraction(void **state) {
    sm_chip chip = *chip_of("h100-sxm");
    double split = matmul(&chip, 1, 128, 128, 65536).tile_efficiency;
    double short_k = matmul(&chip, 1, 128, 128, 512).tile_efficiency;
    assert_true(split > 0.3); /* of 132 cores; adding up the parts takes its time */
    assert_true(short_k < 0.1);
}

static void test_matmul_costs_are_ordered(void **state) {
    sm_rng rng = {7};
    for (int i = 0; i < 20000; i++) {
        const sm_chip *chip = sm_chip_at((size_t)sm_rng_below(&rng, sm_chip_count()));
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0.0 && chip->memory_bytes_per_s.value > 0.0))
            continue; /* a machine still to be measured */
        double batch = (double)(1 + sm_rng_below(&rng, 8)), m = exp(12.0 * sm_rng_unit(&rng));
        double n = exp(12.0 * sm_rng_unit(&rng)), k = exp(12.0 * sm_rng_unit(&rng));
        sm_op_cost c = matmul(chip, batch, m, n, k);
        assert_true(isfinite(c.upper_s) && c.math_s >= 0.0 && c.memory_s >= 0.0);
        assert_true(c.tile_efficiency > 0.0 && c.tile_efficiency <= 1.0);
        assert_true(c.lower_s <= c.expected_s && c.expected_s <= c.upper_s);
        assert_true(c.lower_s == fmax(c.math_s, c.memory_s));
        sm_op_cost v = sm_vector_cost(chip, sm_calibration_of(chip), m * n, 2.0 * m * n);
        assert_true(v.lower_s <= v.expected_s && v.expected_s <= v.upper_s);
    }
}

static void test_empty_work_costs_a_launch(void **state) {
    const sm_chip *chip = chip_of("h100-sxm");
    const sm_calibration *c = sm_calibration_of(chip);
    sm_op_cost none = sm_matmul_cost(chip, c, SM_BF16, (sm_product_shape){1, 0, 128, 128}, 0);
    assert_true(none.lower_s == 0.0);
    expect_near(none.expected_s, c->launch_s, 0);
    expect_near(sm_vector_cost(chip, c, 0, 0).expected_s, c->launch_s, 0);
}

static void test_b200_memory_bound_matmul_of_the_book(void **state) {
    sm_chip chip = *chip_of("b200");
    chip.memory_bytes_per_s.value = 8e12;
    sm_roofline r = roofline_of(&chip, "fp16[B,D] fp16[D,F] -> fp16[B,F]", "B=64,D=4096,F=8192");
    expect_near(r.bytes, 68681728, 0);
    expect_near(r.lower_s, 8.58522e-6, 1e-5);
    assert_true(r.expected_s > 9e-6 && r.expected_s < 60e-6); /* 10 to 12 us are measured */
}

/* ---- calibration ---- */

static void test_every_chip_has_a_calibration(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_calibration *c = sm_calibration_of(sm_chip_at(i));
        assert_non_null(c);
        assert_true(strlen(c->source) > 20);
        const double fractions[] = {c->matmul_efficiency,        c->matmul_efficiency_fp8,
                                    c->attention_efficiency,     c->attention_efficiency_backward,
                                    c->memory_efficiency,        c->network_efficiency_inner,
                                    c->network_efficiency_outer, c->overlap};
        for (size_t f = 0; f < sizeof fractions / sizeof fractions[0]; f++)
            assert_true(fractions[f] > 0.05 && fractions[f] <= 1.0);
        assert_true(c->launch_s > 0.0 && c->launch_s < 1e-4 && c->step_overhead_s < 0.1 &&
                    c->matmul_half_k >= 0.0);
    }
}

static void test_calibrations_are_found_by_name_or_relative(void **state) {
    const sm_chip relative = {.name = "mine", .constants_like = "rtx-a5000 b200"};
    const sm_chip named = {.name = "mine", .calibration = "h100"};
    assert_string_equal(sm_calibration_of(chip_of("h100-sxm"))->chip, "h100");
    assert_string_equal(sm_calibration_of(chip_of("tpu-v5p"))->chip, "tpu-v5p");
    assert_string_equal(sm_calibration_of(chip_of("b100"))->chip, "b200");
    assert_string_equal(sm_calibration_of(&relative)->chip, "b200");
    assert_string_equal(sm_calibration_for(&relative, "trtllm-1")->chip, "b200");
    assert_null(sm_calibration_for(&relative, "nemo-2024"));
    assert_string_equal(sm_calibration_of(&named)->chip, "h100");
    assert_string_equal(sm_calibration_for(&named, "nemo-2024")->chip, "h100");
}

/* A name that only begins as another does says nothing. */
static void test_without_a_relative_the_fabric_decides(void **state) {
    static const struct {
        sm_fabric fabric;
        const char *chip;
    } fabrics[] = {{SM_FABRIC_TORUS, "tpu"}, {SM_FABRIC_SWITCH, "h100"}, {SM_FABRIC_NONE, "cpu"}};
    for (size_t i = 0; i < sizeof fabrics / sizeof fabrics[0]; i++) {
        const sm_chip mine = {.name = "b200-mine", .fabric = fabrics[i].fabric};
        assert_string_equal(sm_calibration_of(&mine)->chip, fabrics[i].chip);
        assert_int_equal(sm_calibration_origin_of(sm_calibration_of(&mine), &mine),
                         SM_CONSTANTS_OF_FABRIC);
        assert_null(sm_calibration_for(&mine, "default"));
    }
}

static void test_whose_constants_they_are(void **state) {
    static const struct {
        const char *chip, *software;
        sm_constants_origin origin;
    } cases[] = {
        {"h100-pcie", "default", SM_CONSTANTS_OWN},
        {"tpu-v7-core", "default", SM_CONSTANTS_OWN},
        {"tpu-v6e", "maxtext-2023", SM_CONSTANTS_OF_RELATIVE},
        {"h20", "default", SM_CONSTANTS_OF_RELATIVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sm_chip *chip = chip_of(cases[i].chip);
        const sm_calibration *c = sm_calibration_for(chip, cases[i].software);
        assert_int_equal(sm_calibration_origin_of(c, chip), cases[i].origin);
        assert_int_equal(sm_calibration_is_own(c, chip), cases[i].origin == SM_CONSTANTS_OWN);
    }
    const sm_chip *gaudi = chip_of("gaudi3");
    assert_int_equal(sm_calibration_origin_of(sm_calibration_of(gaudi), gaudi),
                     SM_CONSTANTS_OF_FABRIC);
}

/* Each word of a row of the catalogue is a calibration that is shipped. */
static void test_the_words_of_the_rows_are_calibrations(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        const char *lists[] = {chip->calibration, chip->constants_like};
        for (int l = 0; l < 2; l++) {
            char words[256] = "";
            if (lists[l]) strncpy(words, lists[l], sizeof words - 1);
            for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
                bool known = false;
                for (size_t c = 0; c < sm_calibration_count(); c++)
                    known = known || strcmp(sm_calibration_at(c)->chip, word) == 0;
                if (!known) fail_msg("%s: there is no calibration %s", chip->name, word);
            }
        }
    }
}

/* ---- collectives at the book's numbers ---- */

static sm_curve curve_of(const char *system_text, sm_system *system, sm_collective op,
                         const char *mesh_text, const char *axes) {
    sm_error err = {0};
    sm_source source = sm_source_of("system", system_text),
              mesh_source = sm_source_of("--mesh", mesh_text);
    sm_mesh mesh;
    sm_placement placement;
    if (sm_system_parse(&source, NULL, 0, system, &err) != SM_OK ||
        sm_mesh_parse(&mesh_source, &mesh, &err) != SM_OK ||
        sm_placement_of_mesh(system, &mesh, &mesh_source, &placement, &err) != SM_OK)
        fail_msg("%s", err.sentence);
    sm_axes set = 0;
    for (const char *a = axes; *a; a++) set |= (sm_axes)(1u << sm_mesh_find(&mesh, a, 1));
    sm_group group = sm_group_join(&placement, set);
    return sm_collective_curve(system, op, &group, 1.0);
}

static const sm_algorithm *book_line(const sm_curve *curve) {
    for (int i = 0; i < curve->n; i++)
        if (curve->algorithm[i].book) return &curve->algorithm[i];
    fail_msg("no line of the book");
    return NULL;
}

static double book_bandwidth_s(const char *system_text, double link, sm_collective op,
                               const char *mesh, const char *axes, double bytes) {
    sm_system system;
    sm_curve curve = curve_of(system_text, &system, op, mesh, axes);
    return bytes * book_line(&curve)->line.s_per_byte * system.level[0].bytes_per_s_oneway / link;
}

static void test_book_sharding_chapter(void **state) {
    const char *v4 = "tpu-v4:4x4x4", *mesh = "X=4,Y=4,Z=4";
    double array = 2.0 * 1024 * 4096;
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_GATHER, mesh, "X", array / 4), 2.33017e-5, 1e-5);
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_GATHER, mesh, "XY", array), 4.66034e-5, 1e-5);
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_REDUCE, mesh, "Z", array / 16), 1.16508e-5, 1e-5);
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_GATHER, mesh, "XZ", array / 4), 1.16508e-5, 1e-5);
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_GATHER, mesh, "XYZ", array), 3.10689e-5, 1e-5);
    /* all-to-all over a ring: a quarter of the all-gather */
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_TO_ALL, mesh, "X", 1.0), 0.25 / 90e9, 1e-12);
    expect_near(book_bandwidth_s(v4, 45e9, SM_ALL_TO_ALL, mesh, "XY", 1.0),
                4.0 / (4.0 * 16.0 * 90e9), 1e-12);
    /* no wraparound on v5e 8x4 */
    expect_near(book_bandwidth_s("tpu-v5e:8x4", 45e9, SM_ALL_GATHER, "X=8,Y=4", "Y", 33554432),
                5.59241e-4, 1e-5);
}

static void test_book_latencies(void **state) {
    sm_system system;
    sm_curve ring = curve_of("tpu-v4:4x4x4", &system, SM_ALL_GATHER, "X=4,Y=4,Z=4", "X");
    expect_near(book_line(&ring)->line.latency_s, 2.0 * system.level[0].hop_latency_s, 1e-12);
    sm_curve line = curve_of("tpu-v5e:8x4", &system, SM_ALL_GATHER, "X=8,Y=4", "Y");
    expect_near(book_line(&line)->line.latency_s, 3.0 * system.level[0].hop_latency_s, 1e-12);
    sm_collective_cost small =
        sm_curve_cost(&line, &system, sm_calibration_of(&system.chip), 131072);
    assert_true(small.latency_bound);
    sm_collective_cost large = sm_curve_cost(&line, &system, sm_calibration_of(&system.chip), 1e8);
    assert_false(large.latency_bound);
}

static void test_book_gpu_chapter(void **state) {
    sm_system system;
    sm_curve node = curve_of("h100-sxm:1x8", &system, SM_ALL_GATHER, "X=8", "X");
    expect_near(536870912.0 * node.ideal_s_per_byte, 1.04392e-3, 1e-5);
    expect_near(33554432.0 * node.ideal_s_per_byte, 6.52447e-5, 1e-5);
    sm_curve all = curve_of("h100-sxm:128x8", &system, SM_ALL_GATHER, "X=1024", "X");
    expect_near(1.0 / all.ideal_s_per_byte, 412.903e9, 1e-5);
    sm_curve exchange = curve_of("h100-sxm:1x8", &system, SM_ALL_TO_ALL, "X=8", "X");
    expect_near(exchange.ideal_s_per_byte, 7.0 / 64.0 / 450e9, 1e-12);
    sm_curve two = curve_of("h100-sxm:2x8", &system, SM_ALL_TO_ALL, "X=16", "X");
    expect_near(two.ideal_s_per_byte, 1.0 / 4.0 / 400e9, 1e-12);
    expect_near(two.ideal_s_per_byte / exchange.ideal_s_per_byte, 2.57143, 1e-5);
}

/* V max_i (D_i - 1)/(D_i W_i max(1, Y/S_{i-1})) of the whole array over an inner axis Y, for a fat
 * tree of 8 x 32. */
static double inner_axis_form(int y, double bytes) {
    const double degree[] = {8, 32}, rate[] = {450e9, 400e9}, below[] = {1, 8};
    double worst = 0.0;
    for (int i = 0; i < 2; i++) {
        double members = fmax(1.0, degree[i] / fmax(1.0, y / below[i])); /* of X at this level */
        if (members > 1.0)
            worst = fmax(worst, (members - 1.0) / (members * rate[i] * fmax(1.0, y / below[i])));
    }
    return bytes * worst;
}

static void test_inner_axis_widens_the_tree(void **state) {
    for (int y = 1; y <= 64; y *= 2) {
        sm_system system;
        char mesh[40];
        snprintf(mesh, sizeof mesh, "X=%d,Y=%d", 256 / y, y);
        sm_curve curve = curve_of("h100-sxm:32x8", &system, SM_ALL_GATHER, mesh, "X");
        double bytes = 2.0 * 8192 * 32768;
        expect_near(bytes / y * curve.ideal_s_per_byte, inner_axis_form(y, bytes), 1e-12);
    }
    expect_near(inner_axis_form(1, 2.0 * 8192 * 32768), 0.00130023, 1e-5);
}

static void test_in_network_reduction_sends_v_once(void **state) {
    sm_system system;
    curve_of("h100-sxm:1x8", &system, SM_ALL_REDUCE, "X=8", "X");
    sm_group group = {.parts = 1, .part = {{0, 8, 1}}, .size = 8};
    system.level[0].in_network_reduction = false;
    sm_curve plain = sm_collective_curve(&system, SM_ALL_REDUCE, &group, 1.0);
    system.level[0].in_network_reduction = true;
    sm_curve sharp = sm_collective_curve(&system, SM_ALL_REDUCE, &group, 1.0);
    expect_near(sharp.ideal_s_per_byte, 1.0 / 450e9, 1e-12);
    expect_near(plain.ideal_s_per_byte / sharp.ideal_s_per_byte, 1.75, 1e-12);
    sm_collective_cost cost = sm_curve_cost(&sharp, &system, sm_calibration_of(&system.chip), 1e9);
    assert_string_equal(cost.algorithm, "in-network reduction");
    expect_near(cost.bytes_busiest_link, 1e9, 1e-12);
}

static void test_ragged_fraction(void **state) {
    expect_near(sm_ragged_fraction(8, 4) * 7.0 / 8.0, 0.362091, 1e-5);
    expect_near(sm_ragged_fraction(1, 4), 1.0, 0);
    expect_near(sm_ragged_fraction(4, 1), 0.25, 1e-12);
}

/* Whatever the group: lower <= expected <= upper, expected grows with the bytes, and the quick way
 * agrees. */
static void test_costs_of_a_curve_are_ordered(void **state) {
    static const char *const systems[] = {"tpu-v5p:8x8x8", "tpu-v5e:16x16x4slices", "h100-sxm:64x8",
                                          "gb200-nvl72:8x64"};
    for (size_t s = 0; s < sizeof systems / sizeof systems[0]; s++)
        for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
            for (int n = 2; n <= 64; n *= 2) {
                sm_system system;
                char mesh[20];
                snprintf(mesh, sizeof mesh, "X=%d,Y=8", n);
                sm_curve curve = curve_of(systems[s], &system, (sm_collective)op, mesh, "X");
                const sm_calibration *c = sm_calibration_of(&system.chip);
                double last = 0.0;
                assert_int_equal(curve.group, n);
                for (double bytes = 1.0; bytes < 1e12; bytes *= 10.0) {
                    sm_collective_cost cost = sm_curve_cost(&curve, &system, c, bytes);
                    assert_true(cost.lower_s <= cost.expected_s && cost.expected_s <= cost.upper_s);
                    assert_true(cost.expected_s >= last && cost.latency_s <= cost.expected_s);
                    assert_true(cost.expected_s ==
                                sm_curve_cost(&curve, &system, c, bytes).expected_s);
                    last = cost.expected_s;
                }
            }
}

static void test_a_group_of_one_costs_nothing(void **state) {
    sm_system system;
    sm_curve curve = curve_of("tpu-v5e:4x4", &system, SM_ALL_REDUCE, "X=4,Y=1", "Y");
    sm_collective_cost cost = sm_curve_cost(&curve, &system, sm_calibration_of(&system.chip), 1e9);
    assert_int_equal(curve.n, 0);
    assert_true(cost.expected_s == 0.0 && cost.upper_s == 0.0);
    assert_string_equal(cost.algorithm, "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_flops_of_a_matmul),
        cmocka_unit_test(test_operands_keep_their_own_dtypes),
        cmocka_unit_test(test_book_critical_batches),
        cmocka_unit_test(test_critical_size_turns_the_bound),
        cmocka_unit_test(test_no_critical_size),
        cmocka_unit_test(test_memory_levels),
        cmocka_unit_test(test_a_sum_of_one_is_for_the_vector_unit),
        cmocka_unit_test(test_missing_dtypes_use_a_wider_one),
        cmocka_unit_test(test_the_widest_operand_decides),
        cmocka_unit_test(test_systolic_tiles_are_padded),
        cmocka_unit_test(test_short_contractions_take_a_tile),
        cmocka_unit_test(test_waves_of_tiles),
        cmocka_unit_test(test_small_outputs_split_the_contraction),
        cmocka_unit_test(test_matmul_costs_are_ordered),
        cmocka_unit_test(test_empty_work_costs_a_launch),
        cmocka_unit_test(test_b200_memory_bound_matmul_of_the_book),
        cmocka_unit_test(test_every_chip_has_a_calibration),
        cmocka_unit_test(test_calibrations_are_found_by_name_or_relative),
        cmocka_unit_test(test_without_a_relative_the_fabric_decides),
        cmocka_unit_test(test_whose_constants_they_are),
        cmocka_unit_test(test_the_words_of_the_rows_are_calibrations),
        cmocka_unit_test(test_book_sharding_chapter),
        cmocka_unit_test(test_book_latencies),
        cmocka_unit_test(test_book_gpu_chapter),
        cmocka_unit_test(test_inner_axis_widens_the_tree),
        cmocka_unit_test(test_in_network_reduction_sends_v_once),
        cmocka_unit_test(test_ragged_fraction),
        cmocka_unit_test(test_costs_of_a_curve_are_ordered),
        cmocka_unit_test(test_a_group_of_one_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The catalogue against a linter, systems against public tables, brute force and each other. */
#include "unit.h"
#include "scalemodel/hw.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sm_chip *chip_of(const char *name) {
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    if (!chip) fail_msg("no chip %s", name);
    return chip;
}

static sm_system system_of(const char *text) {
    sm_source source = sm_source_of("--on", text);
    sm_system system;
    sm_error err = {0};
    if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    return system;
}

static void assert_near(double a, double b) {
    if (!(a > b * (1 - 1e-9) && a < b * (1 + 1e-9))) fail_msg("%.17g is not %.17g", a, b);
}

/* ---- the catalogue ---- */

static void finds_names_and_aliases(void **state) {
    static const struct {
        const char *word, *name;
    } words[] = {
        {"tpu-v2", "tpu-v2"},
        {"tpu-v3", "tpu-v3"},
        {"tpu-v4", "tpu-v4"},
        {"tpu-v5e", "tpu-v5e"},
        {"tpu-v5p", "tpu-v5p"},
        {"tpu-v6e", "tpu-v6e"},
        {"tpu-v7", "tpu-v7"},
        {"v100", "v100"},
        {"a100-40", "a100-40"},
        {"a100-80", "a100-80"},
        {"h100-sxm", "h100-sxm"},
        {"h100-pcie", "h100-pcie"},
        {"h800", "h800"},
        {"h200", "h200"},
        {"b200", "b200"},
        {"b300", "b300"},
        {"gb200-nvl72", "gb200-nvl72"},
        {"gb300-nvl72", "gb300-nvl72"},
        {"mi250x", "mi250x"},
        {"mi300x", "mi300x"},
        {"mi355x", "mi355x"},
        {"trn2", "trn2"},
        {"cpu-host", "cpu-host"},
        {"h100", "h100-sxm"},
        {"H100-SXM", "h100-sxm"},
        {"a100", "a100-80"},
        {"h800-sxm", "h800"},
        {"h200-sxm", "h200"},
        {"v5p", "tpu-v5p"},
        {"tpu_v5p", "tpu-v5p"},
        {"tpu-v7x", "tpu-v7"},
        {"ironwood", "tpu-v7"},
        {"trillium", "tpu-v6e"},
        {"mi300", "mi300x"},
        {"trainium2", "trn2"},
        {"gb200", "gb200-nvl72"},
        {"gb300", "gb300-nvl72"},
        {"h100_sxm", "h100-sxm"},
        {"tpu-v4p", "tpu-v4"},
        {"b200-sxm", "b200"},
        {"a100_pcie", "a100-pcie"},
        {"a6000", "rtx-a6000"},
        {"rtx4090", "rtx-4090"},
        {"tpu7x_core", "tpu-v7-core"},
        {"rtx_pro_6000_server", "rtx-pro-6000"},
        {"mi250x-gcd", "mi250x-gcd"},
        {"arc_pro_b60", "arc-pro-b60"},
        {"h100_96", "h100-96"},
        {"gh200_144gb", "gh200-144"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_string_equal(chip_of(words[i].word)->name, words[i].name);
    assert_null(sm_chip_find("h100 ", 5));
    assert_null(sm_chip_find("", 0));
    assert_null(sm_chip_find("h10", 3));
    assert_null(sm_chip_find("h100 h100_sxm", 13));
    assert_null(sm_chip_at(sm_chip_count()));
    assert_true(sm_chip_count() >= 50);
}

/* No word means two chips: every name and alias finds its own chip. */
static void names_are_unique(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        char words[256];
        assert_ptr_equal(sm_chip_find(chip->name, strlen(chip->name)), chip);
        assert_true(strlen(chip->aliases) < sizeof words && strlen(chip->name) <= 40);
        strcpy(words, chip->aliases);
        for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
            assert_ptr_equal(sm_chip_find(word, strlen(word)), chip);
        for (const char *c = chip->name; *c; c++) assert_false(*c >= 'A' && *c <= 'Z');
    }
}

static void lint_fact(const sm_chip *chip, const char *what, sm_fact f, double low, double high) {
    if (f.value == 0) {
        if (f.source) fail_msg("%s: %s has a source and no value", chip->name, what);
        return;
    }
    if (!f.source || strlen(f.source) < 8) fail_msg("%s: %s has no source", chip->name, what);
    if (f.source[0] == '/' || strstr(f.source, "/work"))
        fail_msg("%s: %s: a source is a public document", chip->name, what);
    if (f.value < low || f.value > high)
        fail_msg("%s: %s is %g, expected %g to %g", chip->name, what, f.value, low, high);
}

static void facts_have_sources_and_plausible_units(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        for (int d = 0; d < SM_DTYPE_COUNT; d++)
            lint_fact(c, sm_dtype_names[d], c->flops_per_s[d], 4e11, 1e17);
        lint_fact(c, "vector_flops_per_s", c->vector_flops_per_s, 5e11, 1e15);
        lint_fact(c, "memory_bytes", c->memory_bytes, 8e9, 1e12);
        lint_fact(c, "memory_bytes_per_s", c->memory_bytes_per_s, 1e10, 5e13);
        lint_fact(c, "onchip_bytes", c->onchip_bytes, 4e6, 1e9);
        lint_fact(c, "onchip_bytes_per_s", c->onchip_bytes_per_s, 1e11, 1e15);
        lint_fact(c, "shared_bytes", c->shared_bytes, 1e6, 1e8);
        lint_fact(c, "clock_hz", c->clock_hz, 5e8, 4e9);
        lint_fact(c, "link", c->link_bytes_per_s_oneway, 1e9, 2e12);
        lint_fact(c, "hop_latency_s", c->hop_latency_s, 1e-7, 1e-4);
        lint_fact(c, "host_bytes", c->host_bytes, 1e10, 1e13);
        lint_fact(c, "host_bytes_per_s", c->host_bytes_per_s, 1e11, 5e12);
        lint_fact(c, "pcie", c->pcie_bytes_per_s_oneway, 1e10, 1e12);
        lint_fact(c, "dcn", c->dcn_bytes_per_s_oneway, 1e9, 1e12);
        lint_fact(c, "dcn_latency_s", c->dcn_latency_s, 1e-6, 1e-3);
        lint_fact(c, "launch_latency_s", c->launch_latency_s, 1e-8, 1e-4);
        lint_fact(c, "tdp_w", c->tdp_w, 50, 3000);
        lint_fact(c, "interruptions", c->interruptions_per_chip_hour, 1e-7, 1e-3);
    }
}

static void every_chip_has_what_pricing_needs(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        assert_true(c->title && c->title[0] && c->vendor && c->vendor[0] && c->aliases);
        assert_non_null(c->conflicts);
        assert_true(c->memory_bytes.value > 0 && c->memory_bytes_per_s.value > 0);
        assert_true(c->tile_m > 0 && c->tile_n > 0 && c->tile_k > 0);
        assert_true(c->cores > 0 && c->matrix_units_per_core > 0);
        assert_true(c->chips_per_host > 0 && c->links_per_chip > 0);
        assert_true(c->launch_latency_s.value > 0);
        bool peak = false;
        for (int d = 0; d < SM_DTYPE_COUNT; d++) peak = peak || c->flops_per_s[d].value > 0;
        assert_true(peak);
    }
}

static bool is_gpu(const sm_chip *c) {
    return strcmp(c->vendor, "NVIDIA") == 0 && strncmp(c->name, "cpu", 3) != 0;
}

static void ratios_between_types(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        double bf16 = c->flops_per_s[SM_BF16].value, fp8 = c->flops_per_s[SM_FP8].value;
        double fp32 = c->flops_per_s[SM_FP32].value, int4 = c->flops_per_s[SM_INT4].value;
        if (bf16 > 0 && strncmp(c->name, "cpu", 3) != 0) {
            /* H20, cut in FLOPs and not in memory, has 37; all others lie above 50 */
            double ridge = bf16 / c->memory_bytes_per_s.value;
            double least = strcmp(c->name, "h20") == 0 ? 30 : 50;
            if (ridge < least || ridge > 2000) fail_msg("%s: ridge %g", c->name, ridge);
        }
        if (is_gpu(c) && fp8 > 0 && strncmp(c->name, "rubin", 5) != 0)
            assert_true(fp8 / bf16 > 1.98 && fp8 / bf16 < 2.03); /* datasheets round */
        if (bf16 > 0 && c->flops_per_s[SM_FP16].value > 0)
            assert_near(c->flops_per_s[SM_FP16].value, bf16);
        if (fp32 > 0 && bf16 > 0) assert_true(fp32 <= bf16);
        if (int4 > 0) assert_true(int4 / c->flops_per_s[SM_INT8].value > 1.99);
        if (c->flops_per_s[SM_MXFP4].value > 0)
            assert_near(c->flops_per_s[SM_MXFP4].value, c->flops_per_s[SM_FP4].value);
    }
}

/* 2 x tile x units x clock reproduces the peak of TPUs and of NVIDIA's datasheets. */
static void peaks_follow_from_the_units(void **state) {
    static const struct {
        const char *name;
        double per_unit_cycle;
    } units[] = {
        {"tpu-v2", 2.0 * 128 * 128},
        {"tpu-v3", 2.0 * 128 * 128},
        {"tpu-v4", 2.0 * 128 * 128},
        {"tpu-v5e", 2.0 * 128 * 128},
        {"tpu-v5p", 2.0 * 128 * 128},
        {"tpu-v6e", 4.0 * 256 * 256},
        {"tpu-v7", 4.0 * 256 * 256},
        {"a100-80", 512},
        {"h100-sxm", 1024},
        {"h200", 1024},
        {"rtx-a6000", 256},
        {"rtx-3090", 128},
        {"rtx-4090", 128},
        {"rtx-pro-6000", 256},
        {"a10", 256},
        {"a10g", 128},
        {"a30", 512},
        {"l40", 128},
        {"rtx-6000-ada", 256},
        {"rtx-5090", 128},
        {"gb10", 256},
        {"mi300a", 512},
        {"rtx-a4000", 256},
        {"rtx-a4500", 256},
        {"mi308x", 512},
        {"mi350x", 1024},
        {"tpu-v7-core", 4.0 * 256 * 256},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const sm_chip *c = chip_of(units[i].name);
        double peak =
            units[i].per_unit_cycle * c->cores * c->matrix_units_per_core * c->clock_hz.value;
        double ratio = peak / c->flops_per_s[SM_BF16].value;
        if (ratio < 0.98 || ratio > 1.02) fail_msg("%s: %g of the peak", c->name, ratio);
    }
}

/* A die that software sees as a device is half of its package. */
static void halves_are_halves(void **state) {
    static const char *const pairs[][2] = {{"tpu-v7-core", "tpu-v7"}, {"mi250x-gcd", "mi250x"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const sm_chip *half = chip_of(pairs[i][0]), *whole = chip_of(pairs[i][1]);
        for (int d = 0; d < SM_DTYPE_COUNT; d++)
            assert_true(2 * half->flops_per_s[d].value == whole->flops_per_s[d].value);
        assert_near(2 * half->memory_bytes.value, whole->memory_bytes.value);
        assert_near(2 * half->memory_bytes_per_s.value, whole->memory_bytes_per_s.value);
        assert_near(2 * half->onchip_bytes.value, whole->onchip_bytes.value);
        assert_int_equal(2 * half->cores, whole->cores);
    }
}

static void trees_do_not_widen_upwards(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        if (c->fabric != SM_FABRIC_SWITCH) continue;
        assert_in_range(c->tree_levels, 1, SM_MAX_TREE);
        for (int l = 0; l < c->tree_levels; l++) {
            const sm_tree_level *t = &c->tree[l];
            assert_true(t->name[0] && strlen(t->name) < 16 && t->degree >= 2);
            lint_fact(c, t->name, t->child_bytes_per_s_oneway, 1e9, 2e15);
            lint_fact(c, "latency of a level", t->hop_latency_s, 1e-7, 1e-4);
            assert_true(t->child_bytes_per_s_oneway.value > 0 && t->hop_latency_s.value > 0);
            assert_true(t->in_network_reduction == (t->in_network_source != NULL));
            if (l == 0) continue;
            double below = t[-1].degree * t[-1].child_bytes_per_s_oneway.value;
            if (t->child_bytes_per_s_oneway.value > below * 1.001)
                fail_msg("%s: %s sends faster than what is below it", c->name, t->name);
        }
        assert_true(c->link_bytes_per_s_oneway.value == 0 && c->torus_axes == 0);
    }
}

static void tori_are_whole(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        if (c->fabric != SM_FABRIC_TORUS) continue;
        assert_in_range(c->torus_axes, 2, 3);
        assert_true(c->link_bytes_per_s_oneway.value > 0);
        assert_int_equal(c->links_per_chip, 2 * c->torus_axes);
        assert_true(c->hop_latency_s.value > 0 && c->dcn_bytes_per_s_oneway.value > 0);
        assert_true(c->dcn_latency_s.value > 0 && c->tree_levels == 0);
        for (int a = 0; a < c->torus_axes; a++) assert_true(c->pod_shape[a] > 1);
    }
}

static void prices_have_provider_and_date(void **state) {
    int priced = 0;
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *c = sm_chip_at(i);
        assert_in_range(c->prices, 0, SM_MAX_PRICES);
        for (int p = 0; p < c->prices; p++) {
            assert_true(c->price[p].usd_per_chip_hour > 0.1 && c->price[p].usd_per_chip_hour < 50);
            assert_true(c->price[p].provider && c->price[p].provider[0]);
            assert_true(c->price[p].date && strncmp(c->price[p].date, "202", 3) == 0);
            assert_true(c->price[p].source && strlen(c->price[p].source) > 8);
        }
        priced += c->prices > 0;
    }
    assert_true(priced >= 8);
    assert_near(sm_chip_usd_per_hour(chip_of("tpu-v5p")), 4.20);
    assert_near(sm_chip_usd_per_hour(chip_of("tpu-v5e")), 1.20);
    assert_near(sm_chip_usd_per_hour(chip_of("h100-sxm")), 2.95);
    assert_true(sm_chip_usd_per_hour(chip_of("cpu-host")) == 0);
}

static void figures_of_the_book(void **state) {
    assert_near(chip_of("tpu-v5e")->link_bytes_per_s_oneway.value, 4.5e10);
    assert_near(chip_of("tpu-v5p")->link_bytes_per_s_oneway.value, 9e10);
    assert_near(chip_of("tpu-v6e")->link_bytes_per_s_oneway.value, 9e10);
    assert_near(chip_of("tpu-v4")->link_bytes_per_s_oneway.value, 4.5e10);
    assert_near(chip_of("h100-sxm")->tree[0].child_bytes_per_s_oneway.value, 450e9);
    assert_near(chip_of("h100-sxm")->tree[1].child_bytes_per_s_oneway.value, 400e9);
    assert_near(chip_of("h100-sxm")->tree[2].child_bytes_per_s_oneway.value, 12.8e12);
    assert_near(chip_of("b200")->tree[0].child_bytes_per_s_oneway.value, 900e9);
    assert_near(chip_of("gb200-nvl72")->tree[1].child_bytes_per_s_oneway.value, 3600e9);
    assert_near(chip_of("h800")->tree[0].child_bytes_per_s_oneway.value, 200e9);
    assert_near(chip_of("a100-80")->tree[1].child_bytes_per_s_oneway.value, 200e9);
    assert_true(chip_of("h100-sxm")->tree[0].in_network_reduction);
    assert_false(chip_of("a100-80")->tree[0].in_network_reduction);
    assert_true(chip_of("a100-pcie")->peer_chips == 2 && chip_of("l40s")->peer_chips == 0);
    assert_false(chip_of("h800")->tree[0].in_network_reduction);
    assert_near(chip_of("tpu-v5p")->vector_flops_per_s.value, 1.4336e13);
}

/* ---- wraparound and slices ---- */

static void wraparound_rules(void **state) {
    static const struct {
        const char *chip;
        int shape[3], dims;
        const char *wraps;
    } rows[] = {
        {"tpu-v5e", {4, 4}, 2, "--"},       {"tpu-v5e", {8, 16}, 2, "-w"},
        {"tpu-v5e", {16, 16}, 2, "ww"},     {"tpu-v5e", {16, 2}, 2, "w-"},
        {"tpu-v6e", {8, 8}, 2, "--"},       {"tpu-v6e", {16, 16}, 2, "ww"},
        {"tpu-v5p", {2, 2, 1}, 3, "---"},   {"tpu-v5p", {2, 2, 2}, 3, "---"},
        {"tpu-v5p", {2, 2, 4}, 3, "---"},   {"tpu-v5p", {2, 4, 4}, 3, "---"},
        {"tpu-v5p", {4, 4, 2}, 3, "---"},   {"tpu-v5p", {4, 4, 4}, 3, "www"},
        {"tpu-v5p", {4, 4, 8}, 3, "www"},   {"tpu-v5p", {16, 20, 28}, 3, "www"},
        {"tpu-v5p", {4, 4, 6}, 3, "---"},   {"tpu-v5p", {4, 4}, 2, "--"},
        {"tpu-v4", {4, 4, 4}, 3, "www"},    {"tpu-v4", {8, 8, 12}, 3, "www"},
        {"tpu-v7", {16, 24, 24}, 3, "www"}, {"tpu-v2", {16, 16}, 2, "ww"},
        {"tpu-v2", {8, 16}, 2, "--"},       {"tpu-v3", {32, 32}, 2, "ww"},
        {"tpu-v3", {16, 32}, 2, "--"},      {"trn2", {4, 4}, 2, "ww"},
        {"trn2", {2, 4}, 2, "-w"},          {"trn2", {1, 1}, 2, "--"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int a = 0; a < rows[i].dims; a++)
            if (sm_wraps(chip_of(rows[i].chip), rows[i].shape, rows[i].dims, a) !=
                (rows[i].wraps[a] == 'w'))
                fail_msg("row %zu axis %d", i, a);
    const int shape[3] = {4, 4, 4};
    assert_false(sm_wraps(chip_of("tpu-v5p"), shape, 3, 3));
    assert_false(sm_wraps(chip_of("tpu-v5p"), shape, 3, -1));
    assert_false(sm_wraps(chip_of("tpu-v5p"), shape, 4, 0));
}

/* Shapes of the tables at docs.cloud.google.com/tpu/docs/v5e, v5p, v6e (read 2026). */
static void bare_counts_take_public_shapes(void **state) {
    static const struct {
        const char *bare, *text;
    } rows[] = {
        {"tpu-v5e:1", "tpu-v5e"},
        {"tpu-v5e:4", "tpu-v5e:2x2"},
        {"tpu-v5e:8", "tpu-v5e:2x4"},
        {"tpu-v5e:16", "tpu-v5e:4x4"},
        {"tpu-v5e:32", "tpu-v5e:4x8"},
        {"tpu-v5e:64", "tpu-v5e:8x8"},
        {"tpu-v5e:128", "tpu-v5e:8x16"},
        {"tpu-v5e:256", "tpu-v5e:16x16"},
        {"tpu-v6e:256", "tpu-v6e:16x16"},
        {"tpu-v5p:4", "tpu-v5p:2x2x1"},
        {"tpu-v5p:8", "tpu-v5p:2x2x2"},
        {"tpu-v5p:16", "tpu-v5p:2x2x4"},
        {"tpu-v5p:32", "tpu-v5p:2x4x4"},
        {"tpu-v5p:64", "tpu-v5p:4x4x4"},
        {"tpu-v5p:128", "tpu-v5p:4x4x8"},
        {"tpu-v5p:256", "tpu-v5p:4x8x8"},
        {"tpu-v5p:512", "tpu-v5p:8x8x8"},
        {"tpu-v5p:1024", "tpu-v5p:8x8x16"},
        {"tpu-v5p:2048", "tpu-v5p:8x16x16"},
        {"tpu-v5p:4096", "tpu-v5p:16x16x16"},
        {"tpu-v5p:6144", "tpu-v5p:16x16x24"},
        {"tpu-v5p:8960", "tpu-v5p:16x20x28"},
        {"tpu-v4:4096", "tpu-v4:16x16x16"},
        {"tpu-v7:9216", "tpu-v7:16x24x24"},
        {"tpu-v3:1024", "tpu-v3:32x32"},
        {"tpu-v5e:512", "tpu-v5e:16x16x2slices"},
        {"tpu-v5e:320", "tpu-v5e:8x8x5slices"},
        {"tpu-v5p:17920", "tpu-v5p:16x20x28x2slices"},
        {"tpu-v5p:64x2slices", "tpu-v5p:4x4x4x2slices"},
        {"tpu-v5e:16x16x1slices", "tpu-v5e:16x16"},
        {"v5p:4x4", "tpu-v5p:4x4x1"},
        {"trn2:64", "trn2:4x4x4slices"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(system_of(rows[i].bare).text, rows[i].text);
}

/* The least a + b + c over whole-cube boxes of that volume, by trying all of them. */
static int brute_force_sum(int chips) {
    int best = INT_MAX;
    for (int a = 4; a <= chips; a += 4)
        for (int b = 4; chips % a == 0 && b <= chips / a; b += 4)
            if (chips / a % b == 0 && chips / a / b % 4 == 0 && a + b + chips / a / b < best)
                best = a + b + chips / a / b;
    return best;
}

static void slices_of_cubes_are_the_most_cubic(void **state) {
    for (int cubes = 1; cubes <= 140; cubes += 3) {
        char text[40];
        snprintf(text, sizeof text, "tpu-v5p:%d", 64 * cubes);
        sm_system s = system_of(text);
        int sum = 0;
        assert_int_equal(s.slices, 1);
        for (int i = 0; i < s.levels; i++) {
            sum += s.level[i].size;
            assert_true(s.level[i].wrap && s.level[i].kind == SM_LEVEL_TORUS);
        }
        assert_int_equal(sum, brute_force_sum(64 * cubes));
    }
}

/* ---- levels ---- */

static void assert_level(const sm_system *s, int i, const char *name, int size, double bandwidth) {
    assert_string_equal(s->level[i].name, name);
    assert_int_equal(s->level[i].size, size);
    assert_near(s->level[i].bytes_per_s_oneway, bandwidth);
}

static void torus_levels(void **state) {
    sm_system s = system_of("tpu-v5e:8x16x4slices");
    assert_int_equal(s.chips, 512);
    assert_int_equal(s.slices, 4);
    assert_int_equal(s.torus_dims, 2);
    assert_int_equal(s.levels, 3);
    assert_level(&s, 0, "ici", 8, 4.5e10);
    assert_level(&s, 1, "ici", 16, 4.5e10);
    assert_level(&s, 2, "dcn", 4, 128 * 3.125e9);
    assert_true(!s.level[0].wrap && s.level[1].wrap);
    assert_near(s.level[0].hop_latency_s, 1e-6);
    assert_int_equal(s.level[2].kind, SM_LEVEL_SWITCH);
    s = system_of("tpu-v5p:2x1x4");
    assert_int_equal(s.levels, 2);
    assert_level(&s, 0, "ici", 2, 9e10);
    assert_level(&s, 1, "ici", 4, 9e10);
    s = system_of("tpu-v5p");
    assert_int_equal(s.levels, 1);
    assert_level(&s, 0, "ici", 1, 9e10);
}

static void switch_levels(void **state) {
    sm_system s = system_of("h100-sxm:128x8");
    assert_int_equal(s.chips, 1024);
    assert_int_equal(s.levels, 3);
    assert_int_equal(s.torus_dims, 0);
    assert_level(&s, 0, "nvlink", 8, 450e9);
    assert_level(&s, 1, "leaf", 32, 400e9);
    assert_level(&s, 2, "spine", 4, 12.8e12);
    assert_true(s.level[0].in_network_reduction && !s.level[1].in_network_reduction);
    s = system_of("h100-sxm:2048x8");
    assert_int_equal(s.levels, 4);
    assert_level(&s, 3, "core", 8, 102.4e12);
    s = system_of("gb200-nvl72:8x72");
    assert_int_equal(s.levels, 2);
    assert_level(&s, 0, "nvlink", 72, 900e9);
    assert_level(&s, 1, "leaf", 8, 3600e9);
    s = system_of("h100-sxm:100x8"); /* 25 divides 100, 32 does not */
    assert_level(&s, 1, "leaf", 25, 400e9);
    assert_level(&s, 2, "spine", 4, 25 * 400e9);
    s = system_of("h100-sxm:37x8"); /* a prime number of nodes: one level, each child a node */
    assert_int_equal(s.levels, 2);
    assert_level(&s, 1, "core", 37, 400e9);
    s = system_of("h100-sxm:16x4"); /* half of each node brings half of the NICs */
    assert_level(&s, 0, "nvlink", 4, 450e9);
    assert_level(&s, 1, "leaf", 16, 200e9);
    s = system_of("h100-sxm");
    assert_int_equal(s.levels, 1);
    assert_level(&s, 0, "nvlink", 1, 450e9);
}

static void switch_texts(void **state) {
    static const struct {
        const char *written, *text;
    } rows[] = {
        {"h100:1024", "h100-sxm:128x8"},      {"h100:4x32x8", "h100-sxm:128x8"},
        {"h100:8x16x8", "h100-sxm:8x16x8"},   {"h100:5x1x8", "h100-sxm:5x1x8"},
        {"h100:1x8", "h100-sxm:8"},           {"h100:1", "h100-sxm"},
        {"H100 : 16 X 8", "h100-sxm:16x8"},   {"gb200:576", "gb200-nvl72:8x72"},
        {"gb200:36", "gb200-nvl72:36"},       {"a100:128x8", "a100-80:128x8"},
        {"h100:8x8x32x8", "h100-sxm:2048x8"}, {"cpu-host:4", "cpu-host:4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(system_of(rows[i].written).text, rows[i].text);
}

/* ---- properties over many systems ---- */

static void assert_same_system(const sm_system *a, const sm_system *b) {
    assert_string_equal(a->text, b->text);
    assert_string_equal(a->chip.name, b->chip.name);
    assert_int_equal(a->chips, b->chips);
    assert_int_equal(a->slices, b->slices);
    assert_int_equal(a->levels, b->levels);
    assert_int_equal(a->torus_dims, b->torus_dims);
    assert_memory_equal(a->level, b->level, sizeof a->level);
}

static void check_system(const sm_system *s) {
    int64_t chips = 1;
    assert_in_range(s->levels, 1, SM_MAX_LEVELS);
    for (int i = 0; i < s->levels; i++) {
        chips *= s->level[i].size;
        assert_true(s->level[i].bytes_per_s_oneway > 0 && s->level[i].hop_latency_s > 0);
        assert_true(s->levels == 1 || s->level[i].size > 1);
        assert_true(s->level[i].kind == SM_LEVEL_TORUS ? i < s->torus_dims : i >= s->torus_dims);
    }
    assert_true(chips == s->chips);
    sm_system again = system_of(s->text);
    assert_same_system(s, &again);
}

/* A bare count, or a made-up shape that suits the fabric. */
static void random_text(const sm_chip *c, sm_rng *rng, char *text, size_t size) {
    uint64_t kind = sm_rng_below(rng, 3);
    int a = 1 << sm_rng_below(rng, 5), b = 1 + (int)sm_rng_below(rng, 16);
    int d = 1 + (int)sm_rng_below(rng, 8);
    if (kind == 0) snprintf(text, size, "%s:%d", c->name, a * b);
    else if (c->fabric == SM_FABRIC_TORUS && kind == 1)
        snprintf(text, size, "%s:%dx%dx%dslices", c->name, a, b, d);
    else if (c->torus_axes == 3) snprintf(text, size, "%s:%dx%dx%d", c->name, 4 * d, b, a);
    else if (kind == 1) snprintf(text, size, "%s:%dx%dx%d", c->name, d, b, a);
    else snprintf(text, size, "%s:%dx%d", c->name, b * d, a);
}

static void hundreds_of_systems_round_trip(void **state) {
    sm_rng rng = {20261121};
    int accepted = 0, refused = 0;
    for (int i = 0; i < 4000; i++) {
        char text[80];
        sm_system system;
        sm_error err = {0};
        random_text(sm_chip_at(sm_rng_below(&rng, sm_chip_count())), &rng, text, sizeof text);
        sm_source source = sm_source_of("--on", text);
        if (sm_system_parse(&source, NULL, 0, &system, &err) == SM_OK) {
            check_system(&system);
            accepted++;
        } else {
            assert_int_equal(err.status, SM_BAD_INPUT);
            assert_true(err.sentence[0] && err.line == 1 && err.column >= 1);
            refused++;
        }
    }
    assert_true(accepted > 1000 && refused > 100);
}

/* The link out of a group is never wider than the links into it. */
static void partial_trees_do_not_widen(void **state) {
    for (int nodes = 1; nodes <= 300; nodes++) {
        char text[40];
        snprintf(text, sizeof text, "h100-sxm:%dx%d", nodes, 1 + nodes % 8);
        sm_system s = system_of(text);
        check_system(&s);
        for (int i = 1; i < s.levels; i++)
            assert_true(s.level[i].bytes_per_s_oneway <=
                        s.level[i - 1].size * s.level[i - 1].bytes_per_s_oneway * 1.000001);
    }
}

static void parts_are_systems_with_the_links_of_the_whole(void **state) {
    static const struct {
        const char *whole;
        int chips;
        const char *part; /* NULL: none */
    } rows[] = {
        {"tpu-v5p:16x20x28", 4096, "tpu-v5p:16x16x16"},
        {"tpu-v5p:16x20x28", 6144, "tpu-v5p:16x16x24"},
        {"tpu-v5p:28x4x4", 384, NULL}, /* 4x8x12 */
        {"tpu-v5e:12x16", 128, "tpu-v5e:8x16"},
        {"tpu-v5e:12x16", 7, NULL},
        {"tpu-v5p:4x4x4x3slices", 128, "tpu-v5p:4x4x4x2slices"},
        {"tpu-v5p:4x4x4x3slices", 64, "tpu-v5p:4x4x4"},
        {"tpu-v5p:4x4x4x3slices", 32, "tpu-v5p:2x4x4"},
        {"tpu-v5p:4x4x4x3slices", 96, NULL},
        {"h100-sxm:125x8", 704, "h100-sxm:88x8"},
        {"h100-sxm:8", 7, "h100-sxm:7"},
        {"h100-sxm:125x8", 1008, NULL},
        {"gb200-nvl72:7x72", 288, "gb200-nvl72:4x72"},
        {"gb200-nvl72:7x72", 448, "gb200-nvl72:7x64"},
        {"gb200-nvl72:7x72", 450, NULL},
        {"h100-sxm:8", 0, NULL},
        {"cpu-host", 2, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_system whole = system_of(rows[i].whole), part;
        for (int l = 0; l < whole.levels; l++) whole.level[l].bytes_per_s_oneway = 1e9 * (l + 1);
        bool is_part = sm_system_part(&whole, rows[i].chips, &part);
        if (is_part != (rows[i].part != NULL)) fail_msg("%s: %d", rows[i].whole, rows[i].chips);
        if (!is_part) continue;
        sm_system own = system_of(rows[i].part);
        for (int l = 0; l < own.levels; l++) own.level[l].bytes_per_s_oneway = 1e9 * (l + 1);
        assert_same_system(&part, &own);
    }
}

static void resize_is_the_natural_shape(void **state) {
    static const struct {
        const char *from;
        int chips;
        const char *to;
    } rows[] = {
        {"tpu-v5p:4x4x4", 8960, "tpu-v5p:16x20x28"},
        {"h100-sxm:2x8", 16384, "h100-sxm:2048x8"},
        {"tpu-v5e:16x16x4slices", 64, "tpu-v5e:8x8"},
        {"h100-sxm:8", 1, "h100-sxm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_system from = system_of(rows[i].from), to = system_of(rows[i].to), out;
        assert_int_equal(sm_system_resize(&from, rows[i].chips, &out, NULL), SM_OK);
        assert_same_system(&out, &to);
        assert_int_equal(sm_system_resize(&from, rows[i].chips, &from, NULL), SM_OK);
        assert_same_system(&from, &to); /* in place */
    }
    sm_system from = system_of("h100-sxm:2x8"), out;
    sm_error err = {0};
    assert_int_equal(sm_system_resize(&from, 12, &out, &err), SM_BAD_INPUT);
    assert_string_equal(err.source, "chips");
    assert_int_equal(sm_system_resize(&from, 0, &out, &err), SM_BAD_INPUT);
    assert_int_equal(sm_system_resize(&from, -8, &out, &err), SM_BAD_INPUT);
    assert_int_equal(sm_system_resize(&from, INT_MAX, &out, &err), SM_BAD_INPUT);
}

/* ---- errors ---- */

static void errors_say_what_and_where(void **state) {
    static const struct {
        const char *text;
        int column, span;
        const char *sentence;
    } rows[] = {
        {"h100-smx", 1, 8, "unknown chip \"h100-smx\"; the nearest is \"h100-sxm\""},
        {"h100x8", 1, 6, "unknown chip \"h100x8\"; did you mean h100-sxm:8?"},
        {"8x h100", 1, 7, "unknown chip \"8x h100\"; did you mean h100-sxm:8?"},
        {"a100-16", 1, 7, "unknown chip \"a100-16\"; did you mean a100-80:16?"},
        {"8x", 1, 2, "unknown chip \"8x\": 'chip' lists all, --system FILE takes your own"},
        {"tpu-v5q:4x4", 1, 7, "unknown chip \"tpu-v5q\"; the nearest is \"tpu-v5e\""},
        {"", 1, 1, "expected a system such as tpu-v5p:16x20x28 or h100-sxm:128x8"},
        {"h100:", 6, 1, "expected a number: a shape is written as in 16x20x28, 128x8 or 8960"},
        {"h100:8x", 8, 1, "expected a number: a shape is written as in 16x20x28, 128x8 or 8960"},
        {"h100:8*8", 7, 1, "expected \"x\", \"slices\" or the end"},
        {"h100 8", 6, 1, "expected \":\" and a shape, or the end"},
        {"v5e:4x4x2slices!", 16, 1, "expected nothing after \"slices\""},
        {"tpu-v5p:0x4", 9, 1, "expected a whole number from 1 to 1048576, found 0"},
        {"h100-sxm:99999999999x8", 10, 11,
         "expected a whole number from 1 to 1048576, found 99999999999"},
        {"tpu-v5p:16x20x28x4", 9, 10,
         "tpu-v5p is a torus of 3 axes and this shape has 4; several slices are written as in "
         "4x4x2slices"},
        {"tpu-v5e:32x16", 9, 5,
         "this slice is larger than a pod of tpu-v5e, which is 16x16 (256 chips); more chips are "
         "several slices, as in tpu-v5e:16x16x2slices"},
        {"v5p:16x20x32", 5, 8,
         "this slice is larger than a pod of tpu-v5p, which is 16x20x28 (8960 chips); more chips "
         "are several slices, as in tpu-v5p:16x20x28x2slices"},
        {"v5p:9000x2slices", 5, 4,
         "this slice is larger than a pod of tpu-v5p, which is 16x20x28 (8960 chips); more chips "
         "are several slices, as in tpu-v5p:16x20x28x2slices"},
        {"v5e:12", 5, 2, "no slice of tpu-v5e has 12 chips; the nearest have 8 and 16"},
        {"v5p:100", 5, 3, "no slice of tpu-v5p has 100 chips; the nearest have 64 and 128"},
        {"v5p:8959", 5, 4, "no slice of tpu-v5p has 8959 chips; the nearest have 8896 and 8960"},
        {"h100:12", 6, 2,
         "12 chips are not a whole number of nodes: a node of h100-sxm has 8; the nearest counts "
         "are 8 and 16"},
        {"gb200:100", 7, 3,
         "100 chips are not a whole number of nodes: a node of gb200-nvl72 has 72; the nearest "
         "counts are 96 and 104"},
        {"h100:8x128", 8, 3,
         "the nvlink level of h100-sxm holds at most 8, not 128; sizes are written outer to "
         "inner, as in 128x8"},
        {"h100:2x64x8", 8, 2,
         "the leaf level of h100-sxm holds at most 32, not 64; sizes are written outer to inner, "
         "as in 128x8"},
        {"h100:1x1x1x1x8", 6, 9, "h100-sxm has 4 levels of switches and this shape has 5 numbers"},
        {"h100:1x1x1x1x1x1x1", 18, 1, "a shape has at most 5 numbers"},
        {"h100:8x2slices", 6, 1,
         "h100-sxm has no slices: its groups are written outer to inner, as in 128x8"},
        {"v5p:4slices", 5, 1,
         "write the shape of a slice before the number of slices, as in 16x16x4slices"},
        {"v5p:4x4x4x100000slices", 5, 12, "this system has more than 1048576 chips"},
        {"h100:1048576x8", 6, 9, "this system has more than 1048576 chips"},
        {"trn3:288", 6, 3, "no network above a node of 144 is known for trn3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_source source = sm_source_of("--on", rows[i].text);
        sm_system system;
        sm_error err = {0};
        if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_BAD_INPUT)
            fail_msg("%s is accepted", rows[i].text);
        assert_string_equal(err.sentence, rows[i].sentence);
        assert_string_equal(err.source, "--on");
        assert_int_equal(err.line, 1);
        if (err.column != rows[i].column || err.span != rows[i].span)
            fail_msg("%s: column %d span %d", rows[i].text, err.column, err.span);
        assert_int_equal(sm_system_parse(&source, NULL, 0, &system, NULL), SM_BAD_INPUT);
    }
}

static void hostile_texts_are_refused(void **state) {
    enum { LONG = 1 << 20 };
    static const char *const heads[] = {"h100:", "tpu-v5p:4x", "", "h100:8x8x", "tpu-v5e:4x4x4"};
    char *text = malloc(LONG);
    sm_system system;
    sm_error err;
    for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++) {
        memset(text, '9', LONG);
        memcpy(text, heads[h], strlen(heads[h]));
        sm_source source = {"--on", text, LONG};
        assert_int_equal(sm_system_parse(&source, NULL, 0, &system, &err), SM_BAD_INPUT);
    }
    memset(text, ' ', LONG);
    sm_source blanks = {"--on", text, LONG};
    assert_int_equal(sm_system_parse(&blanks, NULL, 0, &system, &err), SM_BAD_INPUT);
    for (size_t i = 0; i + 1 < LONG; i += 2) memcpy(text + i, "x4", 2);
    memcpy(text, "v5p:4", 5);
    sm_source chain = {"--on", text, LONG};
    assert_int_equal(sm_system_parse(&chain, NULL, 0, &system, &err), SM_BAD_INPUT);
    free(text);
}

static void random_bytes_never_crash(void **state) {
    static const char alphabet[] = "h100v5e-:xX0123456789slices \t\n\xff.";
    sm_rng rng = {7};
    for (int i = 0; i < 50000; i++) {
        char text[24];
        size_t n = sm_rng_below(&rng, sizeof text), head = sm_rng_below(&rng, 3);
        for (size_t j = 0; j < n; j++) text[j] = alphabet[sm_rng_below(&rng, sizeof alphabet)];
        if (head == 1 && n > 5) memcpy(text, "h100:", 5);
        if (head == 2 && n > 4) memcpy(text, "v5p:", 4);
        sm_source source = {"--on", text, n};
        sm_system system;
        if (sm_system_parse(&source, NULL, 0, &system, NULL) == SM_OK) check_system(&system);
    }
}

static void extra_chips_come_first(void **state) {
    sm_chip mine = *chip_of("h100-sxm");
    mine.memory_bytes = (sm_fact){1e11, "mine"};
    sm_source source = sm_source_of("--on", "h100:2x8");
    sm_system system;
    assert_int_equal(sm_system_parse(&source, &mine, 1, &system, NULL), SM_OK);
    assert_near(system.chip.memory_bytes.value, 1e11);
    mine.name = "h101";
    mine.aliases = "";
    source = sm_source_of("--on", "h102");
    sm_error err;
    assert_int_equal(sm_system_parse(&source, &mine, 1, &system, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "unknown chip \"h102\"; the nearest is \"h101\"");
    mine.fabric = SM_FABRIC_NONE;
    source = sm_source_of("--on", "h101:2");
    assert_int_equal(sm_system_parse(&source, &mine, 1, &system, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "h101 has no network in the catalogue: only one chip of it "
                                      "can be asked for");
    source = sm_source_of("--on", "h101");
    assert_int_equal(sm_system_parse(&source, &mine, 1, &system, NULL), SM_OK);
    assert_int_equal(system.chips, 1);
}

static void parsing_allocates_nothing(void **state) {
    uint64_t before = sm_allocation_count();
    system_of("h100-sxm:2048x8");
    system_of("tpu-v5p:8960");
    assert_true(sm_allocation_count() == before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_names_and_aliases),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(facts_have_sources_and_plausible_units),
        cmocka_unit_test(every_chip_has_what_pricing_needs),
        cmocka_unit_test(ratios_between_types),
        cmocka_unit_test(peaks_follow_from_the_units),
        cmocka_unit_test(halves_are_halves),
        cmocka_unit_test(trees_do_not_widen_upwards),
        cmocka_unit_test(tori_are_whole),
        cmocka_unit_test(prices_have_provider_and_date),
        cmocka_unit_test(figures_of_the_book),
        cmocka_unit_test(wraparound_rules),
        cmocka_unit_test(bare_counts_take_public_shapes),
        cmocka_unit_test(slices_of_cubes_are_the_most_cubic),
        cmocka_unit_test(torus_levels),
        cmocka_unit_test(switch_levels),
        cmocka_unit_test(switch_texts),
        cmocka_unit_test(hundreds_of_systems_round_trip),
        cmocka_unit_test(partial_trees_do_not_widen),
        cmocka_unit_test(resize_is_the_natural_shape),
        cmocka_unit_test(parts_are_systems_with_the_links_of_the_whole),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(hostile_texts_are_refused),
        cmocka_unit_test(random_bytes_never_crash),
        cmocka_unit_test(extra_chips_come_first),
        cmocka_unit_test(parsing_allocates_nothing),
    };
    return cmocka_run_group_tests_name("hw", tests, NULL, NULL);
}

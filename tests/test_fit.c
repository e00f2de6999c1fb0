/* The fit of a calibration: constants that are known are recovered from times made with them. */
#include "unit.h"
#include "model_of.h"
#include "failing_alloc.h"
#include "scalemodel/truth.h"
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 512, ALL = (1 << SM_CONSTANT_COUNT) - 1 };

typedef struct set {
    sm_truth_row row[MOST_ROWS];
    sm_ready_row ready[MOST_ROWS];
    size_t n;
    sm_calibration start, known;
    sm_rng rng;
    sm_arena *arena;
    sm_fit fit;
    sm_error err;
} set;

static int set_up(void **state) {
    set *s = sm_calloc(1, sizeof *s);
    *state = s;
    s->arena = sm_arena_new();
    s->rng.state = 11;
    s->start = (sm_calibration){.chip = "h100",
                                .software = "start",
                                .source = "",
                                .range = "",
                                .matmul_efficiency = 0.8,
                                .matmul_efficiency_fp8 = 0.7,
                                .matmul_half_k = 192,
                                .attention_efficiency = 0.6,
                                .attention_efficiency_backward = 0.5,
                                .memory_efficiency = 0.9,
                                .network_efficiency_inner = 0.8,
                                .network_efficiency_outer = 0.85,
                                .launch_s = 3e-6,
                                .collective_s = 3e-6,
                                .overlap = 0.85,
                                .step_overhead_s = 5e-3,
                                .elementwise_bytes = 1};
    s->known = s->start;
    return 0;
}

static int tear_down(void **state) {
    set *s = *state;
    for (size_t i = 0; i < s->n; i++) sm_truth_case_free(s->ready[i].c);
    sm_arena_free(s->arena);
    sm_free(s);
    return 0;
}

/* Nearly normal: the sum of twelve uniform numbers. */
static double normal(sm_rng *rng) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) sum += sm_rng_unit(rng);
    return sum;
}

/* The row takes what the known constants predict, times an error. */
static void add(set *s, sm_truth_row row, double noise) {
    assert_true(s->n < MOST_ROWS);
    s->row[s->n] = row;
    s->row[s->n].id = "row";
    s->row[s->n].chip = "h100_sxm";
    s->row[s->n].measured_s = 1.0;
    s->ready[s->n].row = &s->row[s->n];
    assert_int_equal(sm_truth_case_new(&s->row[s->n], &s->ready[s->n].c, &s->err), SM_OK);
    sm_prediction p;
    sm_truth_predict(s->ready[s->n].c, &s->known, &p);
    assert_null(p.unknown);
    s->row[s->n].measured_s = p.expected_s * exp(noise * normal(&s->rng));
    s->n++;
}

static sm_truth_row gemm(const char *dtype, double m, double n, double k, const char *source) {
    return (sm_truth_row){.kind = SM_TRUTH_GEMM,
                          .source = source,
                          .of.gemm = {.dtype = dtype, .m = m, .n = n, .k = k}};
}

/* Matmuls of many shapes: large ones, thin ones that memory bounds, tiny ones that a launch bounds.
 */
static void add_gemms(set *s, const char *dtype, size_t n, double noise) {
    static const double sizes[] = {512, 1024, 2048, 4096, 8192};
    static const char *const sources[] = {"lab: one", "works: two", "lab: three"};
    for (size_t i = 0; i < n; i++) {
        double m = sm_rng_below(&s->rng, 3) ? sizes[sm_rng_below(&s->rng, 5)]
                                            : 1.0 + (double)sm_rng_below(&s->rng, 64);
        add(s,
            gemm(dtype, m, sizes[sm_rng_below(&s->rng, 5)], sizes[sm_rng_below(&s->rng, 5)],
                 sources[i % 3]),
            noise);
    }
}

/* A step of a Llama-like model of this width on these chips. */
static sm_truth_row step(const char *name, int width, int layers, int chips, int tp, double micro) {
    sm_truth_row row = {.kind = SM_TRUTH_TRAINING, .source = "runs of ours"};
    sm_training_row *t = &row.of.training;
    memset(t, 0, sizeof *t);
    t->title = "runs of ours";
    t->task = "pretrain";
    t->quality = "A";
    t->duplicate_of = t->flags = t->model.notes = t->notes = t->schedule = t->schedule_detail = "";
    t->inter_node_network = t->intra_node_link = t->hardware_notes = "";
    t->recompute_detail = t->attention_kernel = t->optimizer = "";
    t->recompute = "none";
    t->precision = t->precision_class = "bf16";
    t->model.name = name;
    t->model.layers = layers;
    t->model.d_model = width;
    t->model.d_ff = 4 * width;
    t->model.heads = t->model.kv_heads = width / 128;
    t->model.d_head = 128;
    t->model.vocab = 32000;
    t->model.gated_mlp = SM_NO;
    t->model.tied = SM_NO;
    t->chips = t->devices = chips;
    t->chips_per_node = 8;
    t->seq_len = 2048;
    t->microbatch = micro;
    t->global_batch_sequences = micro * (chips / tp) * 8;
    t->tp = tp;
    t->cp = t->pp = t->vp = t->ep = 1;
    t->dp = chips / tp;
    t->sp = tp > 1 ? SM_YES : SM_NO;
    t->fsdp = SM_NO;
    t->zero_stage = 1;
    t->flash_attention = SM_YES;
    t->tokens_per_s_per_chip = t->model_tflops_per_chip = t->hw_tflops_per_chip = NAN;
    t->mfu = t->hfu = t->step_time_s = t->peak_memory_bytes = t->derived_step_time_s = NAN;
    t->per_device_batch_size = NAN;
    return row;
}

static sm_status fit(set *s, unsigned free) {
    sm_fit_options options = {.free = free, .prior_weight = 1.0, .arena = s->arena};
    return sm_calibrate(s->ready, s->n, &s->start, &options, &s->fit, &s->err);
}

static const sm_fit_constant *constant(const set *s, sm_constant which) {
    for (int i = 0; i < s->fit.constants; i++)
        if (s->fit.constant[i].which == which) return &s->fit.constant[i];
    fail_msg("the constant was not free");
    return NULL;
}

static void expect_recovered(const set *s, sm_constant which, double tolerance) {
    double known = sm_calibration_get(&s->known, which);
    double found = sm_calibration_get(&s->fit.calibration, which);
    if (fabs(found / known - 1.0) > tolerance)
        fail_msg("%s: %g in place of %g", sm_constant_of(which)->name, found, known);
    assert_true(constant(s, which)->identified);
    assert_true(s->fit.calibration.fitted >> which & 1);
}

/* ---- recovery ---- */

static void test_constants_are_recovered_from_matmuls(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.66;
    s->known.memory_efficiency = 0.7;
    s->known.launch_s = 7e-6;
    add_gemms(s, "bf16", 300, 0.02);
    assert_int_equal(fit(s, ALL), SM_OK);
    expect_recovered(s, SM_CONSTANT_matmul_efficiency, 0.04);
    expect_recovered(s, SM_CONSTANT_memory_efficiency, 0.04);
    expect_recovered(s, SM_CONSTANT_launch_s, 0.06);
    assert_true(s->fit.held_out_median < 0.03 && s->fit.before_median > 0.1);
    assert_true(s->fit.held_out_p90 < 0.08);
}

static void test_a_tenth_of_wild_rows_does_no_harm(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.66;
    s->known.memory_efficiency = 0.7;
    add_gemms(s, "bf16", 300, 0.02);
    for (size_t i = 0; i < s->n; i += 10)
        s->row[i].measured_s *= i % 20 ? 4.0 : 0.3; /* a source that confuses its units */
    assert_int_equal(fit(s, ALL), SM_OK);
    expect_recovered(s, SM_CONSTANT_matmul_efficiency, 0.05);
    expect_recovered(s, SM_CONSTANT_memory_efficiency, 0.05);
    assert_int_equal(s->fit.outliers, 30);
    for (size_t i = 0; i < s->fit.rows; i++) assert_int_equal(s->fit.row[i].outlier, i % 10 == 0);
}

static void test_what_no_row_feels_keeps_its_value(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 60, 0.02);
    assert_int_equal(fit(s, ALL), SM_OK);
    static const sm_constant unfelt[] = {
        SM_CONSTANT_matmul_efficiency_fp8, SM_CONSTANT_attention_efficiency,
        SM_CONSTANT_network_efficiency_outer, SM_CONSTANT_overlap, SM_CONSTANT_step_overhead_s};
    for (size_t i = 0; i < sizeof unfelt / sizeof unfelt[0]; i++) {
        const sm_fit_constant *c = constant(s, unfelt[i]);
        assert_true(c->after == c->before);
        assert_false(c->identified);
        assert_false(s->fit.calibration.fitted >> unfelt[i] & 1);
    }
}

static void test_only_free_constants_move(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.6;
    s->known.memory_efficiency = 0.6;
    add_gemms(s, "bf16", 100, 0.02);
    assert_int_equal(fit(s, 1u << SM_CONSTANT_matmul_efficiency), SM_OK);
    assert_int_equal(s->fit.constants, 1);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++)
        if (i != SM_CONSTANT_matmul_efficiency)
            assert_true(sm_calibration_get(&s->fit.calibration, (sm_constant)i) ==
                        sm_calibration_get(&s->start, (sm_constant)i));
    assert_true(s->fit.calibration.matmul_efficiency < 0.7);
}

static void test_constants_stay_in_their_ranges(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 60, 0.02);
    for (size_t i = 0; i < s->n; i++) s->row[i].measured_s *= 0.2; /* faster than any chip */
    assert_true(fit(s, ALL) <= SM_NEGATIVE);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        double value = sm_calibration_get(&s->fit.calibration, (sm_constant)i);
        assert_true(value >= info->low && value <= info->high);
    }
}

static void test_three_steps_are_enough(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.55;
    add(s, step("a", 4096, 32, 8, 1, 1), 0.01);
    add(s, step("a", 4096, 32, 16, 2, 2), 0.01);
    add(s, step("b", 5120, 40, 16, 4, 1), 0.01);
    assert_int_equal(fit(s, ALL), SM_OK);
    assert_true(constant(s, SM_CONSTANT_matmul_efficiency)->identified);
    assert_true(s->fit.in_sample_median < 0.05 && s->fit.before_median > 0.1);
    assert_true(isfinite(s->fit.held_out_median) && s->fit.held_out_median < 0.12);
    assert_true(isnan(s->fit.held_out_by_source_median)); /* one source */
    assert_true(s->fit.measure_next[0] != 0);
}

/* Behind a hill: a network so poor, and launches so slow, that from the start neither is felt. */
static void test_a_poor_network_is_found_from_a_good_one(void **state) {
    set *s = *state;
    s->known.network_efficiency_inner = 0.2;
    s->known.network_efficiency_outer = 0.05;
    s->known.launch_s = 5e-5;
    static const int widths[] = {2048, 3072, 4096, 5120};
    for (int i = 0; i < 24; i++)
        add(s, step("sweep", widths[i % 4], 16, i % 3 ? 16 : 8, 1 << (i % 4), 1 + i % 2), 0.01);
    assert_int_equal(fit(s, ALL), SM_OK);
    assert_true(s->fit.before_median > 0.25);
    assert_true(s->fit.in_sample_median < 0.02 && s->fit.held_out_median < 0.04);
    assert_true(s->fit.calibration.network_efficiency_inner < 0.3);
}

/* Steps that all take twice what the start says are not noise of 100 %. */
static void test_what_is_far_off_is_not_taken_for_noise(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.3;
    s->known.memory_efficiency = 0.35;
    for (int i = 0; i < 10; i++) add(s, step("one", 4096, 16, 8, 1 << (i % 3), 1 + i / 5), 0.02);
    assert_int_equal(fit(s, ALL), SM_OK);
    assert_true(s->fit.before_median > 0.45);
    assert_true(s->fit.in_sample_median < 0.06);
    assert_int_equal(s->fit.outliers, 0);
}

/* Rows of one width are held out by layout: those of the group are not what they are judged by. */
static void test_layouts_of_one_width_are_held_out_together(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.6;
    for (int i = 0; i < 8; i++) add(s, step("one", 4096, 16, 8, 1 + i / 4, 1), 0.0);
    for (int i = 4; i < 8; i++) s->row[i].measured_s *= 1.2; /* what tp=2 loses, tp=1 cannot know */
    assert_int_equal(fit(s, 1u << SM_CONSTANT_matmul_efficiency), SM_OK);
    for (size_t i = 0; i < 4; i++) assert_true(s->fit.row[i].held_out > 0.04);
    for (size_t i = 4; i < 8; i++) assert_true(s->fit.row[i].held_out < -0.10);
}

static void test_many_matmuls_do_not_drown_a_few_steps(void **state) {
    set *s = *state;
    sm_calibration kernels = s->known;
    kernels.matmul_efficiency = 0.8;
    s->known = kernels;
    add_gemms(s, "bf16", 400, 0.02);
    s->known.matmul_efficiency = 0.5; /* a framework gets less of the same chip */
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < 30; i++)
        add(s, step(names[i % 6], 2048 + 1024 * (i % 6), 24, 8 << (i % 3), 1 << (i % 2), 1), 0.02);
    assert_int_equal(fit(s, 1u << SM_CONSTANT_matmul_efficiency), SM_OK);
    assert_true(fabs(s->fit.calibration.matmul_efficiency / 0.5 - 1.0) < 0.1);
}

/* ---- what it says about itself ---- */

static void test_the_fit_is_the_same_again(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.7;
    add_gemms(s, "bf16", 80, 0.05);
    assert_int_equal(fit(s, ALL), SM_OK);
    sm_calibration first = s->fit.calibration;
    double held_out = s->fit.held_out_p90;
    assert_int_equal(fit(s, ALL), SM_OK);
    assert_memory_equal(&s->fit.calibration, &first, sizeof first);
    assert_true(s->fit.held_out_p90 == held_out);
}

static void test_intervals_are_learned_from_rows_held_out(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 300, 0.1);
    assert_int_equal(fit(s, ALL), SM_OK);
    double lowest = s->fit.calibration.interval[SM_REGIME_matmul].lowest;
    double highest = s->fit.calibration.interval[SM_REGIME_matmul].highest;
    assert_int_equal(s->fit.calibration.interval[SM_REGIME_matmul].n, 300);
    assert_int_equal(s->fit.calibration.interval[SM_REGIME_step].n, 0);
    /* 10 % and 90 % of a normal error of 0.1: +-1.2816 sigma */
    assert_true(fabs(log(lowest) + 0.128) < 0.03 && fabs(log(highest) - 0.128) < 0.03);
    size_t inside = 0;
    for (size_t i = 0; i < s->fit.rows; i++) {
        double ratio = 1.0 / (1.0 + s->fit.row[i].held_out);
        inside += ratio >= lowest && ratio <= highest;
    }
    assert_true(inside >= 235 && inside <= 245);
}

/* Four rows in five of what was held out lie in the interval that the others teach. */
static void test_coverage_is_counted_on_what_the_others_teach(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 300, 0.1);
    assert_int_equal(fit(s, ALL), SM_OK);
    size_t covered = 0;
    for (size_t i = 0; i < s->fit.rows; i++) covered += s->fit.row[i].covered;
    assert_true(covered > 225 && covered < 255);
}

/* Of n = 8 rows the 10 % quantile of rows to come is the least but a tenth of a step. */
static void test_few_rows_teach_their_extremes(void **state) {
    set *s = *state;
    s->start.interval[SM_REGIME_experts].lowest = s->start.interval[SM_REGIME_experts].highest = 1;
    s->start.interval[SM_REGIME_experts].n = 9; /* of other constants: of no use with these */
    for (int i = 0; i < 8; i++) add(s, step("one", 1024 * (2 + i), 8, 8, 1, 1), 0.05);
    assert_int_equal(fit(s, 1u << SM_CONSTANT_matmul_efficiency), SM_OK);
    assert_int_equal(s->fit.calibration.interval[SM_REGIME_experts].n, 0);
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < s->fit.rows; i++) {
        double ratio = 1.0 / (1.0 + s->fit.row[i].held_out);
        least = fmin(least, ratio);
        most = fmax(most, ratio);
    }
    assert_true(fabs(s->fit.calibration.interval[SM_REGIME_step].lowest / least - 1.0) < 1e-3);
    assert_true(fabs(s->fit.calibration.interval[SM_REGIME_step].highest / most - 1.0) < 1e-3);
}

static void test_held_out_is_no_better_than_in_sample(void **state) {
    set *s = *state;
    s->known.launch_s = 6e-6;
    add_gemms(s, "bf16", 40, 0.1);
    assert_int_equal(fit(s, ALL), SM_OK);
    assert_true(s->fit.held_out_median > 0.9 * s->fit.in_sample_median);
    assert_true(isfinite(s->fit.held_out_by_source_median));
    for (size_t i = 0; i < s->fit.rows; i++) assert_true(isfinite(s->fit.row[i].held_out));
}

static void test_without_a_prior_the_rows_alone_decide(void **state) {
    set *s = *state;
    s->known.matmul_efficiency = 0.4;
    add(s, gemm("bf16", 8192, 8192, 8192, "x"), 0.0);
    add(s, gemm("bf16", 4096, 8192, 8192, "x"), 0.0);
    sm_fit_options options = {
        .free = 1u << SM_CONSTANT_matmul_efficiency, .prior_weight = 0.0, .arena = s->arena};
    assert_int_equal(sm_calibrate(s->ready, s->n, &s->start, &options, &s->fit, &s->err), SM_OK);
    expect_recovered(s, SM_CONSTANT_matmul_efficiency, 0.002);
    options.prior_weight = 100.0;
    assert_int_equal(sm_calibrate(s->ready, s->n, &s->start, &options, &s->fit, &s->err), SM_OK);
    assert_true(s->fit.calibration.matmul_efficiency > 0.6); /* held where it started */
}

/* ---- refusals ---- */

static void test_nothing_identified_is_refused(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 20, 0.02);
    assert_int_equal(fit(s, 1u << SM_CONSTANT_network_efficiency_outer), SM_NEGATIVE);
    assert_string_equal(s->err.sentence,
                        "20 rows say no more about any constant than was known before; measure an "
                        "all-reduce of 1 GiB across nodes, for network_efficiency_outer");
    assert_int_equal(fit(s, 0), SM_NEGATIVE);
    assert_string_equal(s->err.sentence, "no constant is free to be fitted");
    s->err.sentence[0] = 0;
    sm_fit_options options = {.free = ALL, .prior_weight = 1.0, .arena = s->arena};
    assert_int_equal(sm_calibrate(NULL, 0, &s->start, &options, &s->fit, &s->err), SM_NEGATIVE);
    assert_string_equal(s->err.sentence, "there is no row to fit to");
}

static void test_rows_that_cannot_be_predicted_are_refused(void **state) {
    set *s = *state;
    add(s, gemm("bf16", 4096, 4096, 4096, "x"), 0.0);
    s->row[0].measured_s = NAN;
    assert_int_equal(fit(s, ALL), SM_NEGATIVE);
    assert_string_equal(s->err.sentence,
                        "none of the 1 rows can be fitted to: the source states no time");
}

static void test_any_allocation_may_fail(void **state) {
    set *s = *state;
    add_gemms(s, "bf16", 6, 0.02);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_fit_options options = {.free = 1, .prior_weight = 1.0, .arena = arena};
        sm_status status = sm_calibrate(s->ready, s->n, &s->start, &options, &s->fit, &s->err);
        assert_true(status == SM_OK || status == SM_INTERNAL);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        sm_arena_free(arena);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_constants_are_recovered_from_matmuls),
        TEST(test_a_tenth_of_wild_rows_does_no_harm),
        TEST(test_what_no_row_feels_keeps_its_value),
        TEST(test_only_free_constants_move),
        TEST(test_constants_stay_in_their_ranges),
        TEST(test_three_steps_are_enough),
        TEST(test_a_poor_network_is_found_from_a_good_one),
        TEST(test_what_is_far_off_is_not_taken_for_noise),
        TEST(test_layouts_of_one_width_are_held_out_together),
        TEST(test_many_matmuls_do_not_drown_a_few_steps),
        TEST(test_the_fit_is_the_same_again),
        TEST(test_intervals_are_learned_from_rows_held_out),
        TEST(test_coverage_is_counted_on_what_the_others_teach),
        TEST(test_few_rows_teach_their_extremes),
        TEST(test_held_out_is_no_better_than_in_sample),
        TEST(test_without_a_prior_the_rows_alone_decide),
        TEST(test_nothing_identified_is_refused),
        TEST(test_rows_that_cannot_be_predicted_are_refused),
        TEST(test_any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

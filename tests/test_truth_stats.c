/* Statistics of errors against cases worked by hand, definitions and properties. */
#include "unit.h"
#include "scalemodel/truth.h"
#include <math.h>
#include <stdlib.h>

static void near(double value, double wanted) {
    if (!(fabs(value - wanted) <= 1e-12 * fmax(1.0, fabs(wanted))))
        fail_msg("%.17g, and %.17g was expected", value, wanted);
}

/* ---- one comparison ---- */

static void test_error_is_relative_to_measured(void **state) {
    near(sm_comparison_error(&(sm_comparison){.measured = 2.0, .expected = 3.0}), 0.5);
    near(sm_comparison_error(&(sm_comparison){.measured = 4.0, .expected = 3.0}), -0.25);
}

static void test_below_the_bound(void **state) {
    assert_true(sm_comparison_below(&(sm_comparison){.measured = 0.999, .lower = 1.0}));
    assert_false(sm_comparison_below(&(sm_comparison){.measured = 1.0, .lower = 1.0}));
    /* 0.1 + 0.2 is no measurement below 0.3 */
    assert_false(sm_comparison_below(&(sm_comparison){.measured = 0.3, .lower = 0.1 + 0.2}));
    assert_false(sm_comparison_below(&(sm_comparison){.measured = 1.0, .lower = NAN}));
}

/* ---- quantiles ---- */

static void test_quantiles_by_hand(void **state) {
    double values[] = {40.0, 10.0, 30.0, 20.0};
    near(sm_quantile(values, 4, 0.0), 10.0);
    near(sm_quantile(values, 4, 0.5), 25.0);
    near(sm_quantile(values, 4, 0.9), 37.0); /* at 2.7: 30 + 0.7 x 10 */
    near(sm_quantile(values, 4, 1.0), 40.0);
    near(values[0], 10.0); /* sorted in place */
    double one = 7.0;
    near(sm_quantile(&one, 1, 0.9), 7.0);
    assert_true(isnan(sm_quantile(&one, 0, 0.5)));
}

/* Every place of many lists, of few different numbers too, holds what it does once sorted. */
static void test_selected_numbers_are_the_sorted_ones(void **state) {
    sm_rng rng = {.state = 19};
    for (int round = 0; round < 400; round++) {
        double sorted[60], mixed[60];
        size_t n = 1 + sm_rng_next(&rng) % 60, kinds = 1 + sm_rng_next(&rng) % 90;
        for (size_t i = 0; i < n; i++) mixed[i] = sorted[i] = (double)(sm_rng_next(&rng) % kinds);
        sm_sort_numbers(sorted, n);
        for (size_t i = 0; i < n; i++) near(sm_select_number(mixed, n, i), sorted[i]);
        double one = mixed[n / 2];
        near(sm_select_number(mixed, n, n / 2), one);
    }
}

static void test_quantiles_are_monotone_and_within(void **state) {
    sm_rng rng = {11};
    for (int round = 0; round < 200; round++) {
        double values[40];
        size_t n = 1 + (size_t)sm_rng_below(&rng, 40);
        for (size_t i = 0; i < n; i++) values[i] = sm_rng_unit(&rng);
        double before = -1.0;
        for (int q = 0; q <= 20; q++) {
            double value = sm_quantile(values, n, q / 20.0);
            assert_true(value >= before && value >= values[0] && value <= values[n - 1]);
            before = value;
        }
    }
}

/* ---- statistics of many ---- */

static void test_stats_by_hand(void **state) {
    /* errors +10 %, -20 %, +40 %, 0 % */
    sm_comparison c[] = {
        {.measured = 10.0, .lower = 5.0, .expected = 11.0, .low = 9.0, .high = 12.0},
        {.measured = 10.0, .lower = 10.5, .expected = 8.0, .low = 6.0, .high = 9.0},
        {.measured = 10.0, .lower = 1.0, .expected = 14.0, .low = NAN, .high = NAN},
        {.measured = 10.0, .lower = 1.0, .expected = 10.0, .low = 10.0, .high = 11.0},
    };
    double scratch[4];
    sm_error_stats stats = sm_error_stats_of(c, 4, scratch);
    assert_int_equal(stats.n, 4);
    near(stats.median, 0.15);
    near(stats.mean, 0.175);
    near(stats.p90, 0.34); /* sorted 0, 0.1, 0.2, 0.4; at 2.7 */
    near(stats.bias, 0.05);
    near(stats.coverage, 2.0 / 3.0); /* ends count as inside; no interval, no vote */
    assert_int_equal(stats.below_lower, 1);
}

static void test_stats_of_none(void **state) {
    sm_error_stats stats = sm_error_stats_of(NULL, 0, NULL);
    assert_int_equal(stats.n, 0);
    assert_int_equal(stats.below_lower, 0);
    assert_true(isnan(stats.median) && isnan(stats.mean) && isnan(stats.p90));
    assert_true(isnan(stats.bias) && isnan(stats.coverage));
}

/* A unit has no say in an error; nor has the order of the rows. */
static void test_stats_do_not_depend_on_unit_or_order(void **state) {
    enum { ROWS = 50 };
    sm_comparison c[ROWS], other[ROWS];
    double scratch[ROWS];
    sm_rng rng = {12};
    for (int i = 0; i < ROWS; i++) {
        double m = 1.0 + sm_rng_unit(&rng), e = 1.0 + sm_rng_unit(&rng);
        c[i] = (sm_comparison){m, 1.2, e, 0.8 * e, 1.3 * e};
        other[ROWS - 1 - i] =
            (sm_comparison){1024.0 * m, 1024.0 * 1.2, 1024.0 * e, 819.2 * e, 1331.2 * e};
    }
    sm_error_stats a = sm_error_stats_of(c, ROWS, scratch);
    sm_error_stats b = sm_error_stats_of(other, ROWS, scratch);
    near(a.median, b.median);
    near(a.mean, b.mean);
    near(a.p90, b.p90);
    near(a.bias, b.bias);
    near(a.coverage, b.coverage);
    assert_int_equal(a.below_lower, b.below_lower);
    assert_true(a.below_lower > 0 && a.below_lower < ROWS);
}

/* ---- rankings ---- */

/* As it is defined: pair by pair. */
static double slow_tau(const double *a, const double *b, size_t n) {
    double score = 0.0, untied_a = 0.0, untied_b = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
            score += x * y;
            untied_a += x != 0;
            untied_b += y != 0;
        }
    return untied_a > 0.0 && untied_b > 0.0 ? score / sqrt(untied_a * untied_b) : NAN;
}

static double tau_of(const double *a, const double *b, size_t n) {
    double room[4 * 32], fast, slow = slow_tau(a, b, n);
    assert_true(n <= 32);
    fast = sm_kendall_tau(a, b, n, room);
    assert_true(isnan(slow) ? isnan(fast) : fabs(fast - slow) < 1e-12);
    return fast;
}

static void kendall_counts_ties(void **state) {
    sm_rng rng = {3};
    for (int i = 0; i < 500; i++) {
        double a[32], b[32];
        size_t n = sm_rng_below(&rng, 32);
        for (size_t k = 0; k < n; k++) {
            a[k] = (double)sm_rng_below(&rng, 6);
            b[k] = (double)sm_rng_below(&rng, 1 + (uint64_t)i % 9);
        }
        tau_of(a, b, n);
    }
}

static double apart_of(const double *a, const double *b, size_t n, double apart) {
    double room[4 * 32], in_order = 0.0, pairs = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            if (!(b[i] > b[k] * apart)) continue;
            pairs += 1.0;
            in_order += a[i] > a[k] ? 1.0 : a[i] < a[k] ? -1.0 : 0.0;
        }
    double fast = sm_kendall_tau_apart(a, b, n, apart, room);
    assert_true(pairs > 0.0 ? fast == in_order / pairs : isnan(fast));
    return fast;
}

/* Of six pairs two are within 5 %, one of them out of order; of the four others one is. */
static void near_pairs_have_no_order(void **state) {
    double a[] = {2, 1, 4, 3.9}, b[] = {100, 104, 200, 207};
    near(apart_of(a, b, 4, 1.0), 2.0 / 6.0);
    near(apart_of(a, b, 4, 1.05), 1.0);
    double c[] = {2, 1, 1.5, 3};
    near(apart_of(c, b, 4, 1.05), 2.0 / 4.0);
    double same[] = {1, 1, 1, 1};
    near(apart_of(same, b, 4, 1.05), 0.0);
    assert_true(isnan(apart_of(a, b, 4, 10.0)));
    sm_rng rng = {5};
    for (int i = 0; i < 500; i++) {
        double x[32], y[32];
        size_t n = sm_rng_below(&rng, 32);
        for (size_t k = 0; k < n; k++) {
            x[k] = (double)sm_rng_below(&rng, 9);
            y[k] = 1 + (double)sm_rng_below(&rng, 20) / 10;
        }
        apart_of(x, y, n, 1 + (double)(i % 3) / 20);
    }
}

static void test_tau_by_hand(void **state) {
    double a[] = {1, 2, 3, 4}, same[] = {10, 20, 30, 40}, back[] = {4, 3, 2, 1};
    double swapped[] = {2, 1, 3, 4}; /* one of six pairs discordant */
    near(tau_of(a, same, 4), 1.0);
    near(tau_of(a, back, 4), -1.0);
    near(tau_of(a, swapped, 4), 4.0 / 6.0);
    double tied[] = {1, 1, 2, 3}; /* five pairs concordant, one tied */
    near(tau_of(a, tied, 4), 5.0 / sqrt(6.0 * 5.0));
    double flat[] = {5, 5, 5, 5};
    assert_true(isnan(tau_of(a, flat, 4)));
    assert_true(isnan(tau_of(a, same, 1)));
}

/* Pairs that agree less pairs that do not, among all: for lists without ties. */
static double tau_of_pairs(const double *a, const double *b, size_t n) {
    int agree = 0, differ = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            if (a[i] < a[j] && b[i] < b[j]) agree++;
            if (a[i] < a[j] && b[i] > b[j]) differ++;
        }
    return (double)(agree - differ) / (double)(agree + differ);
}

static void test_tau_properties(void **state) {
    sm_rng rng = {13};
    for (int round = 0; round < 100; round++) {
        double a[20], b[20], logs[20], minus[20];
        for (int i = 0; i < 20; i++) {
            a[i] = sm_rng_unit(&rng);
            b[i] = sm_rng_unit(&rng);
            logs[i] = log(b[i] + 1e-9);
            minus[i] = -b[i];
        }
        double tau = tau_of(a, b, 20);
        near(tau, tau_of_pairs(a, b, 20));
        near(tau, tau_of(b, a, 20));
        near(tau, tau_of(a, logs, 20)); /* ranks alone matter */
        near(tau, -tau_of(a, minus, 20));
    }
}

static void test_time_lost(void **state) {
    double expected[] = {3, 2, 4}, measured[] = {10, 12, 11};
    near(sm_time_lost(expected, measured, 3), 0.2);
    near(sm_time_lost(measured, measured, 3), 0.0);
    double equal[] = {2, 2, 2};
    near(sm_time_lost(equal, measured, 3), 0.0); /* the first of equals */
    assert_true(isnan(sm_time_lost(expected, measured, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_is_relative_to_measured),
        cmocka_unit_test(test_below_the_bound),
        cmocka_unit_test(test_quantiles_by_hand),
        cmocka_unit_test(test_selected_numbers_are_the_sorted_ones),
        cmocka_unit_test(test_quantiles_are_monotone_and_within),
        cmocka_unit_test(test_stats_by_hand),
        cmocka_unit_test(test_stats_of_none),
        cmocka_unit_test(test_stats_do_not_depend_on_unit_or_order),
        cmocka_unit_test(test_tau_by_hand),
        cmocka_unit_test(near_pairs_have_no_order),
        cmocka_unit_test(test_tau_properties),
        cmocka_unit_test(kendall_counts_ties),
        cmocka_unit_test(test_time_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rows of numbers, against the same in double precision. */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "train_parts.h"
#include "scalemodel/base.h"

enum { MOST = 67 };

static void fill(sm_rng *rng, float *x, size_t n, float most) {
    for (size_t i = 0; i < n; i++)
        x[i] = most * (float)((double)sm_rng_below(rng, 2000001) / 1e6 - 1);
}

static void exponentials_are_within_single_precision(void **state) {
    for (double v = -87.2; v < 87.2; v += 0.00173) {
        float x = (float)v, y;
        row_exponential(&x, 0, 1, &y);
        assert_true(fabs((double)y / exp((double)x) - 1) < 3e-7);
    }
}

static void lengths_that_are_no_multiple_are_whole(void **state) {
    sm_rng rng = {3};
    float x[MOST] = {0}, y[MOST + 1] = {0};
    for (size_t n = 0; n <= MOST; n++) {
        fill(&rng, x, n, 20);
        y[n] = 42;
        double sum = 0, told = (double)row_exponential(x, 1.5F, n, y);
        for (size_t i = 0; i < n; i++) {
            assert_true(fabs((double)y[i] / exp((double)(x[i] - 1.5F)) - 1) < 3e-7);
            sum += (double)y[i];
        }
        assert_true(fabs(told - sum) <= 1e-6 * sum);
        assert_true(y[n] == 42);
        row_exponential(x, 1.5F, n, x); /* in place */
        assert_memory_equal(x, y, n * sizeof *x);
    }
}

static void beyond_the_range_the_ends_are_taken(void **state) {
    float x[] = {INFINITY, 1e30F, -INFINITY, -1e30F, 87.3F, -87.3F, NAN}, y[7];
    row_exponential(x, 0, 7, y);
    assert_true(y[0] == y[4] && y[1] == y[4] && y[2] == y[5] && y[3] == y[5]);
    assert_true(isfinite(y[4]) && y[5] > 0 && isnan(y[6]));
}

static void sums_are_those_of_double_precision(void **state) {
    sm_rng rng = {4};
    float x[MOST] = {0}, y[MOST] = {0}, z[MOST] = {0}, to[MOST];
    for (size_t n = 0; n <= MOST; n++) {
        double sum = 0, dot = 0;
        float most = -INFINITY;
        fill(&rng, x, n, 1), fill(&rng, y, n, 1), fill(&rng, z, n, 1);
        memcpy(to, z, sizeof to);
        for (size_t i = 0; i < n; i++) {
            sum += (double)x[i];
            dot += (double)x[i] * (double)y[i];
            if (x[i] > most) most = x[i];
        }
        assert_true(fabs((double)row_sum(x, n) - sum) < 1e-5);
        assert_true(fabs((double)row_dot(x, y, n) - dot) < 1e-5);
        assert_true(row_most(x, n) == most);
        row_add(x, 0.5F, n, to);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)to[i] - ((double)z[i] + 0.5 * (double)x[i])) < 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_are_within_single_precision),
        cmocka_unit_test(lengths_that_are_no_multiple_are_whole),
        cmocka_unit_test(beyond_the_range_the_ends_are_taken),
        cmocka_unit_test(sums_are_those_of_double_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

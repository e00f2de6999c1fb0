/* Drawn arrivals against their distributions, and the histogram against sorted values. */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../src/serve/percentiles.h"
#include "scalemodel/simulate.h"

typedef struct moments {
    double mean, cv;
} moments;

static moments moments_of(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return (moments){sum / n, sqrt(squares / n) / (sum / n)};
}

static void assert_near(double value, double expected, double within) {
    if (!(fabs(value - expected) <= within)) fail_msg("%.6g is not near %.6g", value, expected);
}

enum { DRAWN = 200000 };
static double gap[DRAWN], prompt[DRAWN], output[DRAWN];

static void draw(sm_synthetic d) {
    sm_arrivals arrivals = sm_synthetic_arrivals(&d);
    sm_request q;
    double last = 0;
    for (int i = 0; i < DRAWN; i++) {
        assert_int_equal(arrivals.next(arrivals.context, &q, NULL), 1);
        gap[i] = q.arrival_s - last;
        last = q.arrival_s;
        prompt[i] = q.prompt;
        output[i] = q.output;
        assert_true(gap[i] >= 0 && q.prompt >= 1 && q.prompt == floor(q.prompt));
    }
    assert_int_equal(arrivals.next(arrivals.context, &q, NULL), 0);
}

static void test_moments(void **state) {
    const double cvs[] = {0.5, 1, 3};
    for (int i = 0; i < 3; i++) {
        draw((sm_synthetic){.kind = SM_ARRIVALS_GAMMA,
                            .rate_per_s = 20,
                            .cv = cvs[i],
                            .requests = DRAWN,
                            .lengths = {500, cvs[i], 90, 0},
                            .seed = 3});
        moments gaps = moments_of(gap, DRAWN), prompts = moments_of(prompt, DRAWN);
        assert_near(gaps.mean * 20, 1, 0.02 * cvs[i]);
        assert_near(gaps.cv, cvs[i], 0.03 * cvs[i]);
        assert_near(prompts.mean / 500, 1, 0.02 * cvs[i]);
        assert_near(prompts.cv, cvs[i], 0.1 * cvs[i]);
        moments outputs = moments_of(output, DRAWN);
        assert_true(outputs.mean == 90 && outputs.cv == 0);
    }
    draw((sm_synthetic){.kind = SM_ARRIVALS_POISSON,
                        .rate_per_s = 20,
                        .requests = DRAWN,
                        .lengths = {1, 0, 1, 0},
                        .seed = 3});
    moments gaps = moments_of(gap, DRAWN);
    assert_near(gaps.mean * 20, 1, 0.01);
    assert_near(gaps.cv, 1, 0.02);
    draw((sm_synthetic){.kind = SM_ARRIVALS_UNIFORM,
                        .rate_per_s = 20,
                        .requests = DRAWN,
                        .lengths = {1, 0, 1, 0},
                        .seed = 3});
    gaps = moments_of(gap, DRAWN);
    assert_near(gaps.mean * 20, 1, 1e-9);
    assert_near(gaps.cv, 0, 1e-6);
}

static void test_seed_decides(void **state) {
    sm_synthetic d = {.kind = SM_ARRIVALS_POISSON,
                      .rate_per_s = 20,
                      .requests = DRAWN,
                      .lengths = {50, 1, 50, 1},
                      .seed = 9};
    draw(d);
    double first = gap[100], prompts = prompt[DRAWN - 1];
    draw(d);
    assert_true(gap[100] == first && prompt[DRAWN - 1] == prompts);
    d.seed = 10;
    draw(d);
    assert_true(gap[100] != first);
}

static void expect(sm_synthetic d, const char *sentence) {
    sm_arrivals arrivals = sm_synthetic_arrivals(&d);
    sm_request q;
    sm_error err = {.status = SM_OK};
    assert_int_equal(arrivals.next(arrivals.context, &q, &err), -1);
    assert_string_equal(err.sentence, sentence);
}

static void test_refusals(void **state) {
    sm_synthetic d = {.kind = SM_ARRIVALS_POISSON,
                      .rate_per_s = 20,
                      .requests = 5,
                      .lengths = {50, 1, 50, 1},
                      .seed = 9};
    sm_synthetic bad = d;
    bad.rate_per_s = NAN;
    expect(bad, "arrivals need a rate above 0");
    bad = d;
    bad.lengths.prompt = 0;
    expect(bad, "prompts and outputs have 1 to 1000000000 tokens");
    bad = d;
    bad.lengths.output_cv = -1;
    expect(bad, "a coefficient of variation lies between 0 and 100");
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_histogram(void **state) {
    sm_rng rng = {4};
    const double shares[] = {0.001, 0.5, 0.9, 0.99, 0.9999, 1};
    sim_histogram *h = calloc(1, sizeof *h);
    assert_non_null(h);
    double sum = 0;
    for (int i = 0; i < DRAWN; i++) {
        gap[i] = exp(12 * sm_rng_unit(&rng) - 9);
        sum += gap[i];
        sim_histogram_add(h, gap[i]);
    }
    qsort(gap, DRAWN, sizeof *gap, by_value);
    for (int i = 0; i < 6; i++) {
        double exact = gap[(int)ceil(shares[i] * DRAWN) - 1];
        assert_near(sim_histogram_quantile(h, shares[i]) / exact, 1, 0.004);
    }
    sm_percentiles p = sim_histogram_read(h);
    assert_near(p.mean, sum / DRAWN, 1e-9);
    assert_true(p.most == gap[DRAWN - 1]);
    free(h);
}

/* Nothing, zeros, one value, and values beyond both ends. */
static void test_histogram_ends(void **state) {
    sim_histogram *h = calloc(1, sizeof *h);
    assert_non_null(h);
    assert_true(sim_histogram_quantile(h, 0.5) == 0);
    sim_histogram_add(h, 0.123456);
    assert_true(sim_histogram_quantile(h, 0.5) == 0.123456);
    sim_histogram_add(h, 0);
    sim_histogram_add(h, 0);
    assert_true(sim_histogram_quantile(h, 0.5) == 0);
    assert_near(sim_histogram_quantile(h, 1), 0.123456, 0.0005);
    memset(h, 0, sizeof *h);
    sim_histogram_add(h, 1e-300);
    sim_histogram_add(h, 1e300);
    assert_true(sim_histogram_quantile(h, 0.5) >= 1e-300);
    assert_true(sim_histogram_read(h).most == 1e300);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),        cmocka_unit_test(test_seed_decides),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_histogram_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

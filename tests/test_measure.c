/* Measuring: fits recover what synthetic timings were made with, hostile numbers are refused, and a
 * quick measurement on threads fills every place. No test looks at how long anything took. */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "scalemodel/measure.h"

static void assert_near(double got, double wanted, double share) {
    if (!(fabs(got - wanted) <= share * fabs(wanted)))
        fail_msg("%.17g is not within %g of %.17g", got, share, wanted);
}

/* ---- spread ---- */

static void spread_of_known_samples(void **state) {
    double five[] = {5.0, 1.0, 4.0, 2.0, 3.0}, four[] = {4.0, 3.0, 2.0, 1.0}, one[] = {7.0};
    sm_spread s = sm_spread_of(five, 5);
    assert_near(s.least, 1.0, 0.0);
    assert_near(s.low, 2.0, 0.0);
    assert_near(s.median, 3.0, 0.0);
    assert_near(s.high, 4.0, 0.0);
    assert_int_equal(s.n, 5);
    s = sm_spread_of(four, 4);
    assert_near(s.low, 1.75, 0.0);
    assert_near(s.median, 2.5, 0.0);
    assert_near(s.high, 3.25, 0.0);
    s = sm_spread_of(one, 1);
    assert_near(s.low + s.median + s.high, 21.0, 0.0);
    assert_int_equal(sm_spread_of(one, 0).n, 0);
}

/* ---- lines ---- */

enum { SIZES = 13 };
static void line_sizes(double *bytes) {
    for (int i = 0; i < SIZES; i++) bytes[i] = 1024.0 * pow(4.0, i * 0.75);
}

static void line_is_recovered(void **state) {
    double bytes[SIZES], seconds[SIZES];
    sm_measured_line line;
    sm_error err;
    line_sizes(bytes);
    for (int way = 0; way < 20; way++) {
        double latency = 1e-7 * pow(3.0, way % 10), slope = 1e-12 * pow(4.0, (way * 3) % 7);
        for (int i = 0; i < SIZES; i++) seconds[i] = latency + slope * bytes[i];
        assert_int_equal(sm_measure_line(bytes, seconds, SIZES, &line, &err), SM_OK);
        assert_near(line.line.latency_s, latency, 1e-6);
        assert_near(line.line.s_per_byte, slope, 1e-6);
        assert_near(line.crossover_bytes, latency / slope, 1e-5);
        assert_true(line.error < 1e-9);
    }
}

/* Timings are off by up to 2 % either way, and two of them by a factor of ten: a fit by least
 * squares would be far off. */
static void disturbed_line_is_recovered(void **state) {
    double bytes[8 * SIZES], seconds[8 * SIZES];
    sm_measured_line line;
    sm_error err;
    sm_rng rng = {1};
    for (int i = 0; i < 8; i++) line_sizes(bytes + i * SIZES);
    for (int i = 0; i < 8 * SIZES; i++)
        seconds[i] = (5e-6 + bytes[i] / 4e9) * (1.0 + 0.02 * (2.0 * sm_rng_unit(&rng) - 1.0));
    seconds[3] *= 10.0;
    seconds[40] *= 10.0;
    assert_int_equal(sm_measure_line(bytes, seconds, 8 * SIZES, &line, &err), SM_OK);
    assert_near(line.line.latency_s, 5e-6, 0.01);
    assert_near(line.line.s_per_byte, 1.0 / 4e9, 0.01);
}

/* Times that fall with size have no slope; times through the origin no latency. */
static void line_is_never_negative(void **state) {
    double bytes[] = {1.0, 2.0, 4.0}, falling[] = {4.0, 2.0, 1.0}, steep[] = {1.0, 3.0, 9.0};
    sm_measured_line line;
    sm_error err;
    assert_int_equal(sm_measure_line(bytes, falling, 3, &line, &err), SM_OK);
    assert_true(line.line.s_per_byte <= 0.0 && line.line.latency_s > 0.0 &&
                line.crossover_bytes <= 0.0);
    assert_int_equal(sm_measure_line(bytes, steep, 3, &line, &err), SM_OK);
    assert_true(line.line.latency_s <= 0.0 && line.line.s_per_byte > 0.0);
}

static void hostile_lines_are_refused(void **state) {
    double bytes[] = {1.0, 2.0, 4.0}, same[] = {8.0, 8.0, 8.0}, seconds[] = {1.0, 2.0, 3.0};
    static const double hostile[] = {0.0, -1.0, NAN, INFINITY, -INFINITY};
    sm_measured_line line;
    sm_error err;
    assert_int_equal(sm_measure_line(bytes, seconds, 0, &line, &err), SM_BAD_INPUT);
    assert_int_equal(sm_measure_line(bytes, seconds, 1, &line, &err), SM_BAD_INPUT);
    assert_int_equal(sm_measure_line(same, seconds, 3, &line, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "a line needs timings of two sizes");
    for (int i = 0; i < 5; i++) {
        seconds[1] = hostile[i];
        assert_int_equal(sm_measure_line(bytes, seconds, 3, &line, &err), SM_BAD_INPUT);
        assert_non_null(strstr(err.sentence, "timing 2 is "));
        seconds[1] = 2.0;
        bytes[2] = i == 0 ? -0.5 : hostile[i];
        assert_int_equal(sm_measure_line(bytes, seconds, 3, &line, &err), SM_BAD_INPUT);
        bytes[2] = 4.0;
    }
}

/* ---- constants ---- */

/* A matmul: work over efficiency, longer where the contraction is short, and a start. */
typedef struct matmul_rows {
    const double *k;
} matmul_rows;
static double matmul_s(const double *constant, int row, void *context) {
    const matmul_rows *rows = context;
    double k = rows->k[row];
    return 1e-9 * k / constant[0] * (k + constant[1]) / k + 1e-9;
}

static void constants_are_recovered(void **state) {
    static const double k[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    enum { ROWS = sizeof k / sizeof *k };
    matmul_rows rows = {k};
    double seconds[ROWS], error = 1.0;
    sm_error err;
    for (int way = 0; way < 9; way++) {
        double wanted[] = {0.1 + 0.4 * (way % 3), 4.0 * pow(9.0, way / 3)};
        for (int i = 0; i < ROWS; i++) seconds[i] = matmul_s(wanted, i, &rows);
        bool disturbed = way % 2;
        if (disturbed) seconds[5] *= 3.0;
        sm_measured_constant c[] = {{0.05, 1.0, 0.8}, {1.0, 4096.0, 16.0}};
        sm_timings timings = {matmul_s, &rows, seconds, ROWS};
        assert_int_equal(sm_measure_constants(&timings, c, 2, &error, &err), SM_OK);
        assert_near(c[0].value, wanted[0], disturbed ? 0.02 : 1e-3);
        assert_near(c[1].value, wanted[1], disturbed ? 0.02 : 1e-3);
        assert_true(error < 0.01);
    }
}

/* What lies outside the range is held at its end. */
static void constants_stay_in_range(void **state) {
    static const double k[] = {1e6, 2e6};
    matmul_rows rows = {k};
    double beyond[] = {4.0, 1.0}, seconds[2], error;
    sm_error err;
    for (int i = 0; i < 2; i++) seconds[i] = matmul_s(beyond, i, &rows);
    sm_measured_constant c[] = {{0.05, 1.0, 0.8}, {1.0, 4096.0, 16.0}};
    sm_timings timings = {matmul_s, &rows, seconds, 2};
    assert_int_equal(sm_measure_constants(&timings, c, 2, &error, &err), SM_OK);
    assert_near(c[0].value, 1.0, 1e-9);
    assert_near(error, log(4.0), 0.01);
}

static double no_time(const double *constant, int row, void *context) {
    (void)constant, (void)row, (void)context;
    return NAN;
}

static void hostile_searches_are_refused(void **state) {
    static const double k[] = {16, 32};
    matmul_rows rows = {k};
    double seconds[] = {1.0, 1.0}, error;
    sm_measured_constant good[] = {{0.05, 1.0, 0.8}, {1.0, 4096.0, 16.0}}, bad[2];
    sm_error err;
#define REFUSED(model, n, c, constants)                                                            \
    assert_int_equal(                                                                              \
        sm_measure_constants(&(sm_timings){model, &rows, seconds, n}, c, constants, &error, &err), \
        SM_BAD_INPUT)
    REFUSED(matmul_s, 0, good, 2);
    REFUSED(matmul_s, 2, good, 0);
    REFUSED(matmul_s, 2, good, SM_MOST_MEASURED_CONSTANTS + 1);
    REFUSED(no_time, 2, good, 2);
    assert_string_equal(err.sentence, "the model gives no time where its constants start");
    static const sm_measured_constant hostile[] = {
        {0.0, 1.0, 0.5}, {0.5, 0.1, 0.3}, {0.1, 1.0, 2.0}, {0.1, NAN, 0.5}, {0.1, 1.0, NAN}};
    for (int i = 0; i < 5; i++) {
        memcpy(bad, good, sizeof bad);
        bad[1] = hostile[i];
        REFUSED(matmul_s, 2, bad, 2);
        assert_non_null(strstr(err.sentence, "constant 2 starts at "));
    }
    seconds[0] = -1.0;
    REFUSED(matmul_s, 2, good, 2);
    assert_string_equal(err.sentence, "timing 1 is -1 s");
}

/* ---- on ranks ---- */

static sm_measure_job quick_job(sm_measurements *out) {
    return (sm_measure_job){.quick = true,
                            .most_repeats = 5,
                            .stream_bytes = 2097152,
                            .cached_bytes = 16384,
                            .out = out};
}

static void check_spread(sm_spread s) {
    assert_true(s.n >= 5);
    assert_true(s.least > 0.0 && s.least <= s.low && s.low <= s.median && s.median <= s.high);
}

static int collectives_of(const sm_measurements *m, sm_collective op, int ranks) {
    int found = 0;
    for (int i = 0; i < m->collectives; i++)
        found += m->collective[i].op == op && m->collective[i].ranks == ranks;
    return found;
}

/* 4 ranks: groups of 4 and of 2; every collective at three sizes, whose V the group divides. */
static void ranks_measure_everything(void **state) {
    static sm_measurements m;
    sm_measure_job job = quick_job(&m);
    sm_error err;
    memset(&m, 0, sizeof m);
    assert_int_equal(sm_run_threads(4, sm_measure_body, &job, &err), SM_OK);
    assert_int_equal(m.ranks, 4);
    assert_true(m.matmuls >= 10 && m.sends == 3);
    for (int i = 0; i < m.matmuls; i++) check_spread(m.matmul[i].seconds);
    for (int i = 0; i < m.sends; i++) check_spread(m.send[i].seconds);
    for (int i = 0; i < SM_SWEEP_COUNT; i++) {
        check_spread(m.stream[i].seconds);
        assert_true(m.stream[i].bytes + m.stream[i].flops > 0.0);
    }
    assert_int_equal(m.collectives, 7 * 3 * 2);
    for (int i = 0; i < m.collectives; i++) {
        check_spread(m.collective[i].seconds);
        assert_true(fmod(m.collective[i].bytes, m.collective[i].ranks * 4.0) <= 0.0);
        assert_true(m.collective[i].bytes >= 4096.0);
    }
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) {
        assert_int_equal(collectives_of(&m, (sm_collective)op, 4), 3);
        assert_int_equal(collectives_of(&m, (sm_collective)op, 2), 3);
    }
}

static void one_rank_has_no_network(void **state) {
    static sm_measurements m;
    sm_measure_job job = quick_job(&m);
    sm_error err;
    memset(&m, 0, sizeof m);
    assert_int_equal(sm_run_threads(1, sm_measure_body, &job, &err), SM_OK);
    assert_int_equal(m.sends + m.collectives, 0);
    assert_true(m.matmuls > 0);
}

static void hostile_jobs_are_refused(void **state) {
    static sm_measurements m;
    sm_error err;
    sm_measure_job job = quick_job(&m);
    job.most_repeats = 4;
    assert_int_equal(sm_run_threads(2, sm_measure_body, &job, &err), SM_BAD_INPUT);
    job = quick_job(&m);
    job.budget_s = NAN;
    assert_int_equal(sm_run_threads(2, sm_measure_body, &job, &err), SM_BAD_INPUT);
    job = quick_job(&m);
    job.stream_bytes = 8;
    assert_int_equal(sm_run_threads(2, sm_measure_body, &job, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "a measurement repeats 5 times or more, on 4 KiB or more");
    job.stream_bytes = SIZE_MAX / 8;
    assert_int_equal(sm_run_threads(1, sm_measure_body, &job, &err), SM_INTERNAL);
}

static void streams_have_names(void **state) {
    assert_string_equal(sm_sweep_name(SM_SWEEP_COPY), "copy");
    assert_string_equal(sm_sweep_name(SM_SWEEP_VECTOR), "vector");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spread_of_known_samples),
        cmocka_unit_test(line_is_recovered),
        cmocka_unit_test(disturbed_line_is_recovered),
        cmocka_unit_test(line_is_never_negative),
        cmocka_unit_test(hostile_lines_are_refused),
        cmocka_unit_test(constants_are_recovered),
        cmocka_unit_test(constants_stay_in_range),
        cmocka_unit_test(hostile_searches_are_refused),
        cmocka_unit_test(ranks_measure_everything),
        cmocka_unit_test(one_rank_has_no_network),
        cmocka_unit_test(hostile_jobs_are_refused),
        cmocka_unit_test(streams_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

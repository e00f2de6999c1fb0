/* units: dtypes and the printing of quantities. */
#include "unit.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/attention.h"

static void dtypes_round_trip(void **state) {
    for (int i = 0; i < SM_DTYPE_COUNT; i++) {
        const char *name = sm_dtype_name((sm_dtype)i);
        sm_dtype parsed = SM_DTYPE_COUNT;
        assert_ptr_equal(name, sm_dtype_names[i]);
        assert_true(sm_dtype_parse(name, strlen(name), &parsed));
        assert_int_equal(parsed, i);
        assert_true(sm_dtype_bytes(parsed) > 0);
    }
}

static void dtype_sizes(void **state) {
    assert_true(sm_dtype_bytes(SM_BF16) == 2);
    assert_true(sm_dtype_bytes(SM_TF32) == 4);
    assert_true(sm_dtype_bytes(SM_INT4) == 0.5);
    assert_true(sm_dtype_bytes(SM_MXFP4) == 4.25 / 8); /* 4 bits, and 8 for each 32 */
    assert_true(sm_dtype_bytes(SM_DTYPE_COUNT) == 0);
    assert_string_equal(sm_dtype_name(SM_DTYPE_COUNT), "?");
}

static void dtype_aliases_and_case(void **state) {
    sm_dtype dtype = SM_DTYPE_COUNT;
    assert_true(sm_dtype_parse("BFloat16,", 8, &dtype));
    assert_int_equal(dtype, SM_BF16);
    assert_true(sm_dtype_parse("s8", 2, &dtype));
    assert_int_equal(dtype, SM_INT8);
    assert_true(sm_dtype_parse("PRED", 4, &dtype));
    assert_int_equal(dtype, SM_BOOL);
    assert_false(sm_dtype_parse("bf1", 3, &dtype));
    assert_false(sm_dtype_parse("bf16x", 5, &dtype));
    assert_false(sm_dtype_parse("", 0, &dtype));
}

typedef char *formatter(char *, size_t, double);

typedef struct example {
    formatter *format;
    double value;
    const char *text;
} example;

static const example examples[] = {
    {sm_format_count, 0, "0"},
    {sm_format_count, -0.0, "0"},
    {sm_format_count, 128, "128"},
    {sm_format_count, 999, "999"},
    {sm_format_count, 999.4, "999"},
    {sm_format_count, 999.6, "1k"},
    {sm_format_count, 4194304, "4.19M"},
    {sm_format_count, 999999, "1M"},
    {sm_format_count, 70.6e9, "70.6B"},
    {sm_format_count, 15e12, "15T"},
    {sm_format_count, 0.5, "0.5"},
    {sm_format_count, 0.0123, "0.0123"},
    {sm_format_count, -1234, "-1.23k"},
    {sm_format_count, 1e-9, "1.00e-09"},
    {sm_format_count, 1e300, "1.00e+282E"},
    {sm_format_bytes, 95.7e9, "95.7 GB"},
    {sm_format_bytes, 17179869184.0, "17.2 GB"},
    {sm_format_bytes, 12, "12 B"},
    {sm_format_seconds, 2.19, "2.19 s"},
    {sm_format_seconds, 0.31, "310 ms"},
    {sm_format_seconds, 6.2e-6, "6.2 us"},
    {sm_format_seconds, 1e-9, "1 ns"},
    {sm_format_seconds, 1e-10, "0.1 ns"},
    {sm_format_seconds, 0, "0 s"},
    {sm_format_seconds, 90, "90 s"},
    {sm_format_seconds, 120, "2 min"},
    {sm_format_seconds, 6000, "1.67 h"},
    {sm_format_seconds, 44.3 * 86400, "44.3 d"},
    {sm_format_usd, 1.23e6, "$1.23M"},
    {sm_format_usd, 4.2, "$4.20"},
    {sm_format_usd, 0.0042, "$0.0042"},
    {sm_format_usd, 123.4, "$123"},
    {sm_format_usd, 0, "$0"},
    {sm_format_usd, -5, "-$5.00"},
    {sm_format_usd, 99.996, "$100"},
    {sm_format_percent, 0.453, "45.3 %"},
    {sm_format_percent, 1, "100 %"},
    {sm_format_percent, 0.99999, "100 %"},
    {sm_format_exact, 4194304, "4194304"},
    {sm_format_exact, 0.1, "0.1"},
    {sm_format_exact, 1e18, "1e+18"},
    {sm_format_exact, -0.0, "0"},
    {sm_format_exact, -2.5, "-2.5"},
};

static void short_forms(void **state) {
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        char out[64];
        assert_ptr_equal(examples[i].format(out, sizeof out, examples[i].value), out);
        assert_string_equal(out, examples[i].text);
    }
}

static void rates_and_values(void **state) {
    char out[64];
    assert_string_equal(sm_format_rate(out, sizeof out, 459e12, "FLOP/s"), "459 TFLOP/s");
    assert_string_equal(sm_format_rate(out, sizeof out, 2.77e12, "B/s"), "2.77 TB/s");
    assert_string_equal(sm_format_value(out, sizeof out, 2.19, "s"), "2.19 s");
    assert_string_equal(sm_format_value(out, sizeof out, 1e9, "B"), "1 GB");
    assert_string_equal(sm_format_value(out, sizeof out, 2e15, "FLOP"), "2 PFLOP");
    assert_string_equal(sm_format_value(out, sizeof out, 4.5, "USD"), "$4.50");
    assert_string_equal(sm_format_value(out, sizeof out, 4194304, "tokens"), "4.19M tokens");
    assert_string_equal(sm_format_value(out, sizeof out, 240, "FLOP/B"), "240 FLOP/B");
    assert_string_equal(sm_format_value(out, sizeof out, 8, ""), "8");
}

/* Whatever the value: at most three significant digits away, and short. */
static void short_forms_are_close(void **state) {
    sm_rng rng = {3};
    for (int i = 0; i < 20000; i++) {
        double value = pow(10, 30 * sm_rng_unit(&rng) - 10);
        char out[64];
        sm_format_bytes(out, sizeof out, value);
        char *end = NULL;
        double read = strtod(out, &end);
        static const char prefixes[] = "kMGTPE";
        const char *prefix = end[0] == ' ' ? strchr(prefixes, end[1]) : NULL;
        if (prefix != NULL) read *= pow(1000, (double)(prefix - prefixes + 1));
        if (fabs(read - value) > 0.00501 * value) fail_msg("%.17g printed as %s", value, out);
        assert_true(strlen(out) <= 16);
    }
}

static void exact_reads_back(void **state) {
    sm_rng rng = {5};
    char out[64];
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = sm_rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        sm_format_exact(out, sizeof out, value);
        if (strtod(out, NULL) != value) fail_msg("%a printed as %s", value, out);
    }
    for (double value = 1; value < 1e16; value = value * 3 + 1) {
        sm_format_exact(out, sizeof out, value);
        assert_true(strtod(out, NULL) == value);
    }
}

static void small_buffers_are_respected(void **state) {
    char out[4] = "xxx";
    sm_format_bytes(out, sizeof out, 95.7e9);
    assert_string_equal(out, "95.");
    sm_format_exact(out, 1, 0.125);
    assert_string_equal(out, "");
}

static void non_finite_values_do_not_break(void **state) {
    char out[64];
    assert_string_equal(sm_format_seconds(out, sizeof out, (double)INFINITY), "inf s");
    assert_string_equal(sm_format_count(out, sizeof out, (double)NAN), "nan");
    assert_string_equal(sm_format_usd(out, sizeof out, (double)INFINITY), "$inf");
    sm_format_exact(out, sizeof out, (double)NAN);
    sm_format_exact(out, sizeof out, -(double)INFINITY);
}

/* A locale with a decimal comma changes nothing. Skipped where none is installed. */
static void locale_changes_nothing(void **state) {
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL) skip();
    char out[64];
    sm_format_exact(out, sizeof out, 2.5);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(out, "2.5");
}

/* Pair by pair: T queries, the last of S positions, or with more queries than positions the first
 * before all of them. */
static void keys_met_are_the_pairs_of_the_mask(void **state) {
    for (int T = 1; T <= 9; T++)
        for (int S = 1; S <= 9; S++)
            for (int window = 0; window <= 4; window++)
                for (int chunk = 0; chunk <= 4; chunk += 2) {
                    double pairs = 0;
                    for (int q = S - T + 1; q <= S; q++) /* positions of queries */
                        for (int k = 1; k <= q; k++)
                            pairs += chunk    ? (k - 1) / chunk == (q - 1) / chunk
                                     : window ? q - k < window
                                              : 1;
                    assert_true(fabs(sm_keys_met(T, S, true, window, chunk) - pairs / T) < 1e-12);
                }
    assert_true(sm_keys_met(5, 3, false, 0, 0) == 3 && sm_keys_met(5, 3, false, 2, 0) == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_round_trip),
        cmocka_unit_test(dtype_sizes),
        cmocka_unit_test(dtype_aliases_and_case),
        cmocka_unit_test(short_forms),
        cmocka_unit_test(rates_and_values),
        cmocka_unit_test(short_forms_are_close),
        cmocka_unit_test(exact_reads_back),
        cmocka_unit_test(small_buffers_are_respected),
        cmocka_unit_test(non_finite_values_do_not_break),
        cmocka_unit_test(locale_changes_nothing),
        cmocka_unit_test(keys_met_are_the_pairs_of_the_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* text: places of errors, nearest names, quantities, the cursor. */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/text.h"

/* ---- places ---- */

static void expect_error(const char *text, sm_span span, const char *expected) {
    char out[2000];
    sm_error err;
    sm_source source = sm_source_of("f.json", text);
    assert_int_equal(sm_fail_at(&err, &source, span, "wrong"), SM_BAD_INPUT);
    size_t length = sm_error_format(&err, out, sizeof out);
    assert_string_equal(out, expected);
    assert_int_equal(length, strlen(out));
}

static void errors_underline_their_span(void **state) {
    expect_error("hidden: 12x", (sm_span){8, 3},
                 "f.json:1:9: wrong\n"
                 "  hidden: 12x\n"
                 "          ^~~");
    expect_error("a\nbb\nccc\n", (sm_span){6, 1},
                 "f.json:3:2: wrong\n"
                 "  ccc\n"
                 "   ^");
    expect_error("a\r\nbb\r\n", (sm_span){3, 2},
                 "f.json:2:1: wrong\n"
                 "  bb\n"
                 "  ^~");
    expect_error("\tx\ty", (sm_span){3, 1},
                 "f.json:1:4: wrong\n"
                 "   x y\n"
                 "     ^");
}

static void spans_are_clamped_to_their_line(void **state) {
    expect_error("ab\ncd", (sm_span){1, 100}, "f.json:1:2: wrong\n  ab\n   ^");
    expect_error("ab", (sm_span){2, 0}, "f.json:1:3: wrong\n  ab\n    ^");
    expect_error("ab", (sm_span){SIZE_MAX, SIZE_MAX}, "f.json:1:3: wrong\n  ab\n    ^");
    expect_error("ab\r\ncd", (sm_span){3, 1}, "f.json:1:3: wrong\n  ab\n    ^");
    expect_error("ab\n", (sm_span){3, 1}, "f.json:2:1: wrong");
    expect_error("", (sm_span){0, 0}, "f.json:1:1: wrong");
}

static void columns_count_characters_and_carets_count_width(void **state) {
    /* e-acute is two bytes and one column; the ideograph three bytes and two columns. */
    expect_error("\xC3\xA9\xE6\x97\xA5 bad", (sm_span){6, 3},
                 "f.json:1:4: wrong\n"
                 "  \xC3\xA9\xE6\x97\xA5 bad\n"
                 "      ^~~");
    expect_error("\xE6\x97\xA5", (sm_span){0, 3},
                 "f.json:1:1: wrong\n"
                 "  \xE6\x97\xA5\n"
                 "  ^~");
}

static void hostile_bytes_are_replaced(void **state) {
    expect_error("a\x1b[2J\xff\x7f bad", (sm_span){8, 3},
                 "f.json:1:9: wrong\n"
                 "  a?[2J?? bad\n"
                 "          ^~~");
}

static void sources_need_not_be_terminated(void **state) {
    char *bytes = malloc(3);
    sm_error err;
    memcpy(bytes, "a\0b", 3);
    sm_source source = {"raw", bytes, 3};
    sm_fail_at(&err, &source, (sm_span){2, 1}, "here");
    assert_string_equal(err.excerpt, "a?b");
    assert_int_equal(err.excerpt_column, 3);
    assert_int_equal(err.column, 3);
    free(bytes);
}

static void long_lines_are_cut_around_the_span(void **state) {
    char line[1001];
    sm_error err;
    for (size_t i = 0; i < 1000; i++) line[i] = (char)('a' + i % 26);
    line[1000] = '\0';
    sm_source source = sm_source_of("long", line);
    for (size_t at = 0; at < 1000; at += 7) {
        sm_fail_at(&err, &source, (sm_span){at, 1}, "here");
        assert_true(strlen(err.excerpt) <= 78);
        assert_int_equal(err.excerpt[err.excerpt_column - 1], line[at]);
        assert_int_equal(err.column, at + 1);
        assert_int_equal(err.span, 1);
        assert_int_equal(strncmp(err.excerpt, "...", 3) == 0, at > 30);
    }
    sm_fail_at(&err, &source, (sm_span){10, 900}, "here");
    assert_int_equal(err.excerpt_column + err.span - 1, 72);
}

static void long_lines_of_wide_characters_fit_the_excerpt(void **state) {
    char line[3001] = "";
    sm_error err;
    for (size_t i = 0; i < 3000; i += 3) memcpy(line + i, "\xE6\x97\xA5", 3);
    sm_source source = {"wide", line, 3000};
    for (size_t at = 0; at < 3000; at++) { /* also in the middle of a character */
        sm_fail_at(&err, &source, (sm_span){at, 3}, "here");
        assert_true(strlen(err.excerpt) < sizeof err.excerpt);
        assert_true(err.excerpt_column >= 1 && err.excerpt_column < 80);
        assert_int_equal(strchr(err.excerpt, '?') != NULL, 0);
    }
}

static void a_hundred_megabytes_are_quick(void **state) {
    size_t length = 100000000;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, 'x', length);
    sm_error err;
    sm_source source = {"big", text, length};
    double start = sm_clock_s();
    sm_fail_at(&err, &source, (sm_span){length - 10, 5}, "here");
    assert_true(sm_clock_s() - start < 3);
    assert_int_equal(err.line, 1);
    assert_int_equal(err.column, 99999991);
    free(text);
}

static void errors_without_place_print_plainly(void **state) {
    sm_error err;
    char out[100], tiny[8];
    sm_fail(&err, SM_USAGE, "no verb");
    assert_int_equal(sm_error_format(&err, out, sizeof out), 7);
    assert_string_equal(out, "no verb");
    assert_int_equal(sm_error_format(&err, NULL, 0), 7);
    snprintf(err.source, sizeof err.source, "model.json");
    sm_error_format(&err, out, sizeof out);
    assert_string_equal(out, "model.json: no verb");
    assert_int_equal(sm_error_format(&err, tiny, sizeof tiny), 19);
    assert_string_equal(tiny, "model.j");
    assert_int_equal(sm_fail_at(NULL, NULL, (sm_span){0, 0}, "x"), SM_BAD_INPUT);
    sm_fail_at(&err, NULL, (sm_span){0, 0}, "no source");
    assert_int_equal(err.line, 0);
}

/* ---- nearest names ---- */

static const char *const chips[] = {"tpu-v4",   "tpu-v5e",   "tpu-v5p",
                                    "h100-sxm", "h100-pcie", "b200"};

static const char *near(const char *word) {
    const char *name = sm_nearest(word, strlen(word), chips, sizeof chips / sizeof *chips);
    return name != NULL ? name : "none";
}

static void nearest_names(void **state) {
    assert_string_equal(near("tpu-v5p"), "tpu-v5p");
    assert_string_equal(near("tpuv5p"), "tpu-v5p");
    assert_string_equal(near("TPU-V5E"), "tpu-v5e");
    assert_string_equal(near("h100"), "h100-sxm"); /* a beginning */
    assert_string_equal(near("h100-pci"), "h100-pcie");
    assert_string_equal(near("b2000"), "b200");
    assert_string_equal(near("h010-sxm"), "h100-sxm"); /* neighbours swapped */
    assert_string_equal(near("zebra"), "none");
    assert_string_equal(near(""), "none");
    char huge[200];
    memset(huge, 'h', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_string_equal(near(huge), "none");
    assert_null(sm_nearest("x", 1, NULL, 0));
}

/* ---- quantities ---- */

typedef struct reading {
    sm_quantity_kind kind;
    const char *text;
    double value;
} reading;

static const reading readings[] = {
    {SM_Q_COUNT, "4M", 4e6},
    {SM_Q_COUNT, "8k", 8000},
    {SM_Q_COUNT, "8K", 8000},
    {SM_Q_COUNT, "15T", 15e12},
    {SM_Q_COUNT, "70B", 70e9},
    {SM_Q_COUNT, "70G", 70e9},
    {SM_Q_COUNT, "1P", 1e15},
    {SM_Q_COUNT, "1E", 1e18},
    {SM_Q_COUNT, "1E3", 1000},
    {SM_Q_COUNT, "1e6", 1e6},
    {SM_Q_COUNT, "1.5e+3k", 1.5e6},
    {SM_Q_COUNT, "2500e-2", 25},
    {SM_Q_COUNT, "4.35k", 4350},
    {SM_Q_COUNT, "0.1T", 1e11},
    {SM_Q_COUNT, ".5M", 5e5},
    {SM_Q_COUNT, "5.M", 5e6},
    {SM_Q_COUNT, " 4096 ", 4096},
    {SM_Q_COUNT, "4Ki", 4096},
    {SM_Q_COUNT, "0", 0},
    {SM_Q_COUNT, "000000000000000000000000000000000007", 7},
    {SM_Q_COUNT, "1e-400", 0},
    {SM_Q_COUNT, "0e999999999999999999999", 0},
    {SM_Q_BYTES, "16GiB", 17179869184.0},
    {SM_Q_BYTES, "80GB", 80e9},
    {SM_Q_BYTES, "80 GB", 80e9},
    {SM_Q_BYTES, "512MB", 512e6},
    {SM_Q_BYTES, "1kB", 1000},
    {SM_Q_BYTES, "1KiB", 1024},
    {SM_Q_BYTES, "1.5TiB", 1.5 * 1099511627776.0},
    {SM_Q_BYTES, "100", 100},
    {SM_Q_BYTES, "100B", 100},
    {SM_Q_SECONDS, "15ms", 0.015},
    {SM_Q_SECONDS, "1us", 1e-6},
    {SM_Q_SECONDS, "1\xC2\xB5s", 1e-6},
    {SM_Q_SECONDS, "20ns", 20e-9},
    {SM_Q_SECONDS, "2s", 2},
    {SM_Q_SECONDS, "2", 2},
    {SM_Q_SECONDS, "3min", 180},
    {SM_Q_SECONDS, "1h", 3600},
    {SM_Q_SECONDS, "3d", 259200},
    {SM_Q_BYTES_PER_S, "450GB/s", 450e9},
    {SM_Q_BYTES_PER_S, "1.2e12B/s", 1.2e12},
    {SM_Q_BYTES_PER_S, "400Gbit/s", 50e9},
    {SM_Q_BYTES_PER_S, "1GiB/s", 1073741824.0},
    {SM_Q_FLOPS_PER_S, "989TFLOP/s", 989e12},
    {SM_Q_FLOPS_PER_S, "989TFLOPS", 989e12},
    {SM_Q_FLOPS_PER_S, "1.98PFLOPs/s", 1.98e15},
    {SM_Q_FLOPS_PER_S, "394TOP/s", 394e12},
    {SM_Q_FLOPS_PER_S, "1e15", 1e15},
    {SM_Q_PER_S, "50", 50},
    {SM_Q_PER_S, "0.5/s", 0.5},
    {SM_Q_PER_S, "3k/min", 50},
    {SM_Q_PER_S, "1800/h", 0.5},
    {SM_Q_USD, "4.20", 4.2},
    {SM_Q_USD, "$4.20", 4.2},
    {SM_Q_USD, "1.5M", 1.5e6},
};

static sm_status parse(sm_quantity_kind kind, const char *text, double *value, sm_error *err) {
    sm_source source = sm_source_of("--x", text);
    return sm_quantity_parse(&source, (sm_span){0, source.length}, kind, value, err);
}

static void quantities_are_read(void **state) {
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        double value = -1;
        sm_error err;
        if (parse(readings[i].kind, readings[i].text, &value, &err) != SM_OK)
            fail_msg("%s: %s", readings[i].text, err.sentence);
        if (value != readings[i].value) fail_msg("%s read as %.17g", readings[i].text, value);
    }
}

typedef struct refusal {
    sm_quantity_kind kind;
    const char *text;
    int column, span;
    const char *sentence;
} refusal;

#define COUNT_HINT "a number such as 4096, 8k or 4M"
#define COUNT_UNITS "expected one of k, M, B (or G), T, P, E, Ki, Mi"
#define BYTE_UNITS "expected one of B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB"
static const refusal refusals[] = {
    {SM_Q_COUNT, "", 1, 1, "expected " COUNT_HINT},
    {SM_Q_COUNT, "   ", 4, 1, "expected " COUNT_HINT},
    {SM_Q_COUNT, "abc", 1, 3, "expected " COUNT_HINT ", found 'abc'"},
    {SM_Q_COUNT, "nan", 1, 3, "expected " COUNT_HINT ", found 'nan'"},
    {SM_Q_COUNT, "inf", 1, 3, "expected " COUNT_HINT ", found 'inf'"},
    {SM_Q_COUNT, "-", 1, 1, "expected " COUNT_HINT ", found '-'"},
    {SM_Q_COUNT, "+4", 1, 2, "expected " COUNT_HINT ", found '+4'"},
    {SM_Q_COUNT, "-3", 1, 2, "-3 is negative: expected " COUNT_HINT},
    {SM_Q_COUNT, "4Q", 2, 1, "unknown unit 'Q': " COUNT_UNITS},
    {SM_Q_COUNT, "4MM", 2, 2, "unknown unit 'MM': " COUNT_UNITS},
    {SM_Q_COUNT, "4kB", 2, 2, "unknown unit 'kB': " COUNT_UNITS},
    {SM_Q_COUNT, "4m", 2, 1, "unknown unit 'm': " COUNT_UNITS},
    {SM_Q_COUNT, "1.2.3", 4, 2, "unknown unit '.3': " COUNT_UNITS},
    {SM_Q_COUNT, "0x10", 2, 3, "unknown unit 'x10': " COUNT_UNITS},
    {SM_Q_COUNT, "1e", 2, 1, "unknown unit 'e': " COUNT_UNITS},
    {SM_Q_COUNT, "4M tokens", 2, 8, "unknown unit 'M tokens': " COUNT_UNITS},
    {SM_Q_COUNT, ".", 1, 1, "this number has no digits, or more than 400 of them"},
    {SM_Q_COUNT, "1e400", 1, 5, "this number is too large: the most is 1.8e+308"},
    {SM_Q_COUNT, "1e99999999999999999999", 1, 22, "this number is too large: the most is 1.8e+308"},
    {SM_Q_BYTES, "80Gb", 3, 2, "unknown unit 'Gb': " BYTE_UNITS},
    {SM_Q_BYTES, "80gb", 3, 2, "unknown unit 'gb': " BYTE_UNITS},
    {SM_Q_BYTES, "80G", 3, 1, "unknown unit 'G': " BYTE_UNITS},
    {SM_Q_SECONDS, "3kms", 2, 3, "unknown unit 'kms': expected one of s, ms, us, ns, min, h, d"},
    {SM_Q_BYTES_PER_S, "450GB", 4, 2,
     "unknown unit 'GB': expected one of B/s, GB/s, TB/s, GiB/s, Gbit/s"},
    {SM_Q_PER_S, "5/d", 2, 2, "unknown unit '/d': expected one of /s, k/s, /min, /h"},
    {SM_Q_USD, "$", 2, 1, "expected an amount in dollars such as 4.20 or 1.5M"},
};

static void bad_quantities_are_explained(void **state) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        double value = -1;
        sm_error err;
        if (parse(r->kind, r->text, &value, &err) != SM_BAD_INPUT) fail_msg("%s passed", r->text);
        assert_string_equal(err.sentence, r->sentence);
        if (err.column != r->column || err.span != r->span)
            fail_msg("'%s': column %d, span %d", r->text, err.column, err.span);
        assert_true(value == -1);
    }
}

static void quantities_with_endless_digits(void **state) {
    size_t length = 1000000;
    char *digits = malloc(length + 1);
    memset(digits, '9', length);
    digits[length] = '\0';
    double value;
    sm_error err;
    assert_int_equal(parse(SM_Q_COUNT, digits, &value, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "this number has no digits, or more than 400 of them");
    digits[300] = '\0';
    assert_int_equal(parse(SM_Q_COUNT, digits, &value, &err), SM_OK);
    assert_true(value == 1e300);
    free(digits);
}

static void quantities_in_the_middle_of_a_text(void **state) {
    sm_source source = sm_source_of("--dims", "I=4k,J=xx");
    double value = 0;
    sm_error err;
    assert_int_equal(sm_quantity_parse(&source, (sm_span){2, 2}, SM_Q_COUNT, &value, &err), SM_OK);
    assert_true(value == 4000);
    sm_quantity_parse(&source, (sm_span){7, 2}, SM_Q_COUNT, &value, &err);
    assert_int_equal(err.column, 8);
    sm_quantity_parse(&source, (sm_span){100, 200}, SM_Q_COUNT, &value, &err);
    assert_int_equal(err.column, 10);
}

static sm_status integer(const char *text, int64_t lowest, int64_t highest, int64_t *value,
                         sm_error *err) {
    sm_source source = sm_source_of("--n", text);
    return sm_integer_parse(&source, (sm_span){0, source.length}, lowest, highest, value, err);
}

static void integers_are_read(void **state) {
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"8", 8},
                 {"4M", 4000000},
                 {"1.5k", 1500},
                 {"1e6", 1000000},
                 {"-3", -3},
                 {" 7 ", 7},
                 {"9223372036854775807", INT64_MAX},
                 {"-9223372036854775808", INT64_MIN},
                 {"9007199254740993", 9007199254740993}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        sm_error err;
        assert_int_equal(integer(cases[i].text, INT64_MIN, INT64_MAX, &value, &err), SM_OK);
        assert_true(value == cases[i].value);
    }
}

static void bad_integers_are_explained(void **state) {
    int64_t value = 77;
    sm_error err;
    assert_int_equal(integer("9", 1, 8, &value, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "expected a whole number from 1 to 8, found 9");
    integer("1.5", 1, INT64_MAX, &value, &err);
    assert_string_equal(err.sentence, "expected a whole number of at least 1, found 1.5");
    integer("9223372036854775808", 0, INT64_MAX, &value, &err);
    assert_string_equal(err.sentence,
                        "expected a whole number of at least 0, found 9223372036854775808");
    integer("1e300", 0, 5, &value, &err);
    assert_string_equal(err.sentence, "expected a whole number from 0 to 5, found 1e300");
    integer("four", 0, 5, &value, &err);
    assert_string_equal(err.sentence, "expected " COUNT_HINT ", found 'four'");
    integer("-1", 0, 5, &value, &err);
    assert_string_equal(err.sentence, "expected a whole number from 0 to 5, found -1");
    assert_int_equal(value, 77);
}

/* Any bytes whatever: an answer or an error with a place inside the text. */
static void random_bytes_never_break_quantities(void **state) {
    static const char alphabet[] = "0123456789..eE+-kKMGTPEiBs/ \t\n$%xFLOPbitmnuhd\xC2\xB5\xFF";
    sm_rng rng = {11};
    for (int i = 0; i < 100000; i++) {
        char text[24];
        size_t length = (size_t)sm_rng_below(&rng, sizeof text);
        for (size_t b = 0; b < length; b++)
            text[b] = alphabet[sm_rng_below(&rng, sizeof alphabet - 1)];
        sm_source source = {"random", text, length};
        sm_quantity_kind kind = (sm_quantity_kind)sm_rng_below(&rng, SM_Q_USD + 1);
        double value = -1;
        sm_error err;
        sm_status status = sm_quantity_parse(&source, (sm_span){0, length}, kind, &value, &err);
        if (status == SM_OK) assert_true(value >= 0 && value < 1e308 * 2);
        else assert_true(err.line >= 1 && err.column >= 1 && err.sentence[0] != '\0');
    }
}

/* ---- cursor ---- */

static void cursor_walks_a_grammar(void **state) {
    sm_source source = sm_source_of("x", " A [I_X2 , 16] -> C");
    sm_cursor c = {&source, 0};
    sm_cursor_blanks(&c);
    sm_span name = sm_cursor_name(&c);
    assert_int_equal(name.offset, 1);
    assert_int_equal(name.length, 1);
    assert_true(sm_cursor_accept(&c, '['));
    assert_int_equal(sm_cursor_name(&c).length, 1);
    assert_false(sm_cursor_accept(&c, ','));
    assert_true(sm_cursor_accept(&c, '_'));
    assert_int_equal(sm_cursor_name(&c).length, 2);
    assert_true(sm_cursor_accept(&c, ','));
    sm_cursor_blanks(&c);
    assert_int_equal(sm_cursor_name(&c).length, 0);
    assert_int_equal(sm_cursor_digits(&c).length, 2);
    assert_int_equal(sm_cursor_peek(&c), ']');
    assert_true(sm_cursor_accept(&c, ']'));
    assert_false(sm_cursor_accept_word(&c, "=>"));
    assert_true(sm_cursor_accept_word(&c, "->"));
    assert_false(sm_cursor_end(&c));
    assert_true(sm_cursor_accept(&c, 'C'));
    assert_true(sm_cursor_end(&c));
    assert_int_equal(sm_cursor_peek(&c), -1);
    assert_false(sm_cursor_accept(&c, 'C'));
    assert_false(sm_cursor_accept_word(&c, "slices"));
    assert_int_equal(sm_cursor_digits(&c).length, 0);
}

static void cursor_past_the_end_is_harmless(void **state) {
    sm_source source = {"x", "ab", 2};
    sm_cursor c = {&source, 99};
    assert_int_equal(sm_cursor_peek(&c), -1);
    assert_true(sm_cursor_end(&c));
    assert_false(sm_cursor_accept_word(&c, "b"));
    assert_int_equal(sm_cursor_name(&c).length, 0);
    sm_source high = {"x", "\xFF", 1};
    sm_cursor d = {&high, 0};
    assert_int_equal(sm_cursor_peek(&d), 0xFF); /* not -1 */
    assert_true(sm_cursor_accept(&d, '\xFF'));
}

static void source_of_null_is_empty(void **state) {
    sm_source source = sm_source_of(NULL, NULL);
    assert_string_equal(source.name, "");
    assert_int_equal(source.length, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_underline_their_span),
        cmocka_unit_test(spans_are_clamped_to_their_line),
        cmocka_unit_test(columns_count_characters_and_carets_count_width),
        cmocka_unit_test(hostile_bytes_are_replaced),
        cmocka_unit_test(sources_need_not_be_terminated),
        cmocka_unit_test(long_lines_are_cut_around_the_span),
        cmocka_unit_test(long_lines_of_wide_characters_fit_the_excerpt),
        cmocka_unit_test(a_hundred_megabytes_are_quick),
        cmocka_unit_test(errors_without_place_print_plainly),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(quantities_are_read),
        cmocka_unit_test(bad_quantities_are_explained),
        cmocka_unit_test(quantities_with_endless_digits),
        cmocka_unit_test(quantities_in_the_middle_of_a_text),
        cmocka_unit_test(integers_are_read),
        cmocka_unit_test(bad_integers_are_explained),
        cmocka_unit_test(random_bytes_never_break_quantities),
        cmocka_unit_test(cursor_walks_a_grammar),
        cmocka_unit_test(cursor_past_the_end_is_harmless),
        cmocka_unit_test(source_of_null_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

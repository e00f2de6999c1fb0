/* Scatter plots: where points and lines fall, what is left out, and that names cannot break the
 * file. */
#include "unit.h"
#include "scalemodel/render.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A chart of one square panel. */
typedef struct scatter {
    sm_panel panel;
} scatter;

static sm_status render(const scatter *s, FILE *out, sm_error *err) {
    const sm_chart chart = {"title", "below", 1, &s->panel};
    return sm_render_chart(&chart, out, err);
}

static char *draw(const scatter *s) {
    char *text = NULL;
    size_t length = 0;
    sm_error err = {0};
    FILE *memory = open_memstream(&text, &length);
    assert_non_null(memory);
    assert_int_equal(render(s, memory, &err), SM_OK);
    fclose(memory);
    return text;
}

static scatter plot_of(const sm_series *series, size_t n) {
    return (scatter){{.x_label = "measured",
                      .y_label = "expected",
                      .x_unit = "s",
                      .y_unit = "s",
                      .x_scale = SM_SCALE_LOG,
                      .y_scale = SM_SCALE_LOG,
                      .n = n,
                      .series = series,
                      .diagonal = true,
                      .band = 0.1}};
}

static size_t count(const char *text, const char *words) {
    size_t n = 0;
    for (; (text = strstr(text, words)); text += strlen(words)) n++;
    return n;
}

/* The square is 500 wide from (84, 92): two decades from 1 to 100 give 250 each. */
static void test_points_fall_where_they_should(void **state) {
    double x[] = {1.0, 10.0, 100.0}, y[] = {1.0, 100.0, 10.0};
    sm_series series[] = {{"chip", SM_MARK_DOT, 3, x, y, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    assert_non_null(strstr(text, "d=\"M84 592h0M334 92h0M584 342h0\""));
    assert_non_null(strstr(text, "points=\" 84.0,592.0 584.0,92.0\"")); /* the diagonal */
    free(text);
}

static void test_band_lies_about_the_diagonal(void **state) {
    double x[] = {1.0}, y[] = {10.0};
    sm_series series[] = {{"chip", SM_MARK_DOT, 1, x, y, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    /* one decade: y = 1.1 x starts log10(1.1) x 500 = 20.7 above the corner */
    assert_non_null(strstr(text, "points=\" 84.0,571.3 563.3,92.0\""));
    assert_int_equal(count(text, "<polyline"), 3);
    free(text);
    s.panel.band = 0.0;
    text = draw(&s);
    assert_int_equal(count(text, "<polyline"), 1);
    free(text);
}

static void test_ticks_are_decades_in_their_unit(void **state) {
    double x[] = {2e-6}, y[] = {0.5e-3}, slow[] = {20.0}, slower[] = {2e4};
    sm_series series[] = {{"chip", SM_MARK_DOT, 1, x, y, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    const char *const labels[] = {">1 us<", ">10 us<", ">100 us<", ">1 ms<"};
    for (int i = 0; i < 4; i++) assert_int_equal(count(text, labels[i]), 2);
    assert_null(strstr(text, ">10 ms<"));
    free(text);
    series[0] = (sm_series){"chip", SM_MARK_DOT, 1, slow, slower, NULL};
    text = draw(&s);
    assert_int_equal(count(text, ">100 s<"), 2);
    assert_int_equal(count(text, ">10 ks<"), 2);
    free(text);
}

static void test_what_has_no_logarithm_is_left_out(void **state) {
    double x[] = {1.0, 0.0, -1.0, NAN, 2.0, INFINITY}, y[] = {1.0, 1.0, 1.0, 1.0, NAN, 1.0};
    sm_series series[] = {{"chip", SM_MARK_DOT, 6, x, y, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    assert_non_null(strstr(text, "d=\"M84 592h0\""));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
}

static void test_one_mark_a_pixel(void **state) {
    double x[1000], y[1000];
    for (int i = 0; i < 1000; i++) x[i] = y[i] = 1.0 + 1e-6 * i;
    sm_series series[] = {{"a", SM_MARK_DOT, 1000, x, y, NULL},
                          {"b", SM_MARK_DOT, 1000, x, y, NULL}};
    scatter s = plot_of(series, 2);
    char *text = draw(&s);
    assert_int_equal(count(text, "d=\"M84 592h0\""), 2); /* once in each series */
    free(text);
}

static void test_dashes_lie_below_dots(void **state) {
    double x[] = {10.0, 10.0}, y[] = {1.0, 1.0}, bound[] = {1.0, 0.1};
    sm_series series[] = {{"chip", SM_MARK_DOT, 1, x, y, NULL},
                          {"bound", SM_MARK_DASH, 2, x, bound, NULL}};
    scatter s = plot_of(series, 2);
    char *text = draw(&s);
    /* the second dash is a decade below all dots */
    const char *dash = strstr(text, "d=\"M581 592h6\""), *dot = strstr(text, "d=\"M584 592h0\"");
    assert_non_null(dash);
    assert_non_null(dot);
    assert_true(dash < dot);
    assert_true(strstr(text, ">chip<") < strstr(text, ">bound<")); /* the legend as given */
    free(text);
}

static void test_nothing_to_draw(void **state) {
    scatter s = plot_of(NULL, 0);
    char *text = draw(&s);
    assert_non_null(strstr(text, ">1 s<"));
    assert_non_null(strstr(text, "</svg>\n"));
    free(text);
}

static void test_names_cannot_break_the_file(void **state) {
    double one[] = {1.0};
    sm_series series[] = {{"</svg><script>&\"\x01\xff", SM_MARK_DOT, 1, one, one, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    assert_non_null(strstr(text, ">&lt;/svg&gt;&lt;script&gt;&amp;&quot;?\?<"));
    assert_null(strstr(text, "<script"));
    free(text);
}

/* However far apart, every number is within the picture and ticks do not pile up. */
static void test_extremes(void **state) {
    double x[] = {5e-324, 1.7e308}, y[] = {1.7e308, 5e-324};
    sm_series series[] = {{"chip", SM_MARK_DOT, 2, x, y, NULL}};
    scatter s = plot_of(series, 1);
    char *text = draw(&s);
    assert_true(count(text, "<line") < 80);
    assert_int_equal(count(text, "h0"), 3); /* the legend's too */
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "nan"));
    free(text);
}

static void test_out_of_memory_and_full_streams(void **state) {
    scatter s = plot_of(NULL, 0);
    sm_error err = {0};
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    sm_allocation_fail_at(1);
    assert_int_equal(render(&s, out, &err), SM_INTERNAL);
    sm_allocation_fail_at(0);
    fclose(out);
    out = fopen("/dev/full", "w");
    if (!out) skip();
    assert_int_equal(render(&s, out, &err), SM_IO);
    fclose(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_fall_where_they_should),
        cmocka_unit_test(test_band_lies_about_the_diagonal),
        cmocka_unit_test(test_ticks_are_decades_in_their_unit),
        cmocka_unit_test(test_what_has_no_logarithm_is_left_out),
        cmocka_unit_test(test_one_mark_a_pixel),
        cmocka_unit_test(test_dashes_lie_below_dots),
        cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_names_cannot_break_the_file),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_out_of_memory_and_full_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

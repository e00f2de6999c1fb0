/* Charts as SVG: what is drawn, and that nothing without a place is. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/render.h"

static char *drawn(const sm_chart *chart) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(sm_render_chart(chart, out, NULL), SM_OK);
    fclose(out);
    char *copy = strdup(text);
    free(text);
    assert_non_null(copy);
    return copy;
}

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) n++;
    return n;
}

static const double x[] = {1, 2, 4, 8}, y[] = {10, 20, 40, 80}, holed[] = {10, NAN, 40, 80};

static void draw_one(const double *values, sm_scale scale, bool stacked, void (*check)(char *)) {
    sm_series series[] = {{"a & b", SM_MARK_LINE_DOTS, 4, x, values, NULL},
                          {"c", SM_MARK_LINE, 4, x, y, NULL}};
    sm_panel panel = {"panel", "batch", "time", "",    "tok", scale, scale,
                      stacked, 2,       series, false, 0,     NULL};
    sm_chart chart = {"title", "subtitle", 1, &panel};
    char *text = drawn(&chart);
    check(text);
    free(text);
}

static void check_lines(char *text) {
    assert_int_equal(count(text, "<circle"), 4);
    assert_int_equal(count(text, "fill=\"none\""), 2);
    assert_non_null(strstr(text, "a &amp; b"));
    assert_non_null(strstr(text, ">100 tok<"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}
static void lines_have_dots_and_escaped_names(void **state) {
    draw_one(y, SM_SCALE_LOG, false, check_lines);
}

static void check_hole(char *text) {
    assert_int_equal(count(text, "<circle"), 3);
    assert_int_equal(count(text, "nan"), 0);
    const char *path = strstr(text, "stroke-width=\"2\" d=\"");
    const char *end = strchr(path + 20, '"');
    size_t moves = 0;
    for (; path < end; path++) moves += *path == 'M';
    assert_int_equal(moves, 2);
}
static void a_point_without_a_place_breaks_the_line(void **state) {
    draw_one(holed, SM_SCALE_LINEAR, false, check_hole);
}

static void check_stacked(char *text) {
    assert_int_equal(count(text, "<polygon"), 2);
    assert_non_null(strstr(text, ">150 tok<")); /* 80 + 80 is below 200 */
}
static void stacked_series_are_added(void **state) {
    draw_one(y, SM_SCALE_LINEAR, true, check_stacked);
}

static void nothing_at_all_is_still_a_picture(void **state) {
    static const double bad[] = {-1, 0};
    sm_series series = {"none", SM_MARK_LINE_DOTS, 2, bad, bad, NULL};
    sm_panel panel = {"p",   "x", "y",     "",    "", SM_SCALE_LOG, SM_SCALE_LOG,
                      false, 1,   &series, false, 0,  NULL};
    sm_chart chart = {"t", NULL, 1, &panel};
    char *text = drawn(&chart);
    assert_int_equal(count(text, "<circle"), 0);
    assert_null(strstr(text, "nan"));
    assert_int_equal(count(text, "</svg>"), 1);
    free(text);
}

/* Dots by area, and a timeline: a rectangle a slice, those that are too narrow once. */
static void dots_and_tracks(void **state) {
    static const double at[] = {1, 10}, high[] = {1, 100}, area[] = {1, 4};
    static const char *const names[] = {"kernels", "network"};
    static const sm_slice slices[] = {{0, "a", "matmul", 0, 1},
                                      {1, "b", "copy", 0.5, 1e-9},
                                      {1, "c", "copy", 0.5, 1e-9},
                                      {7, "d", "copy", 0, 1}};
    const sm_tracks tracks = {.n = 2, .track = names, .slices = 4, .slice = slices};
    const sm_series dots = {"matmul", SM_MARK_DOT, 2, at, high, area};
    const sm_panel panels[] = {{.title = "roof",
                                .x_unit = "",
                                .y_unit = "",
                                .x_scale = SM_SCALE_LOG,
                                .y_scale = SM_SCALE_LOG,
                                .n = 1,
                                .series = &dots},
                               {.title = "time", .x_unit = "s", .y_unit = "", .tracks = &tracks}};
    const sm_chart chart = {"t", NULL, 2, panels};
    char *text = drawn(&chart);
    assert_non_null(strstr(text, "r=\"7.0\""));
    assert_non_null(strstr(text, "r=\"14.0\""));
    int rectangles = 0;
    for (const char *found = text; (found = strstr(found, "<rect")); found++) rectangles++;
    assert_int_equal(rectangles, 1 + 2 + 2); /* the ground, slices, kinds */
    free(text);
}

/* A heat map: a rectangle a cell, its name in it where there is room, grey without a value, names
 * of columns below; bars go both ways from where they begin. */
static void heat_maps_and_bars(void **state) {
    static const char *const rows[] = {"tensor 1", "tensor 2"}, *const columns[] = {"8k", "64k"};
    static const sm_slice cells[] = {{0, "1 s", NULL, 0, 1},
                                     {0, "2 s", NULL, 1, 1},
                                     {1, "3 s", NULL, 0, 1},
                                     {1, "-", NULL, 1, 1}};
    static const double shade[] = {0, 0.5, 1, NAN};
    static const sm_slice bars[] = {
        {0, "a", "more", 10, -5}, {0, "a", "less", 10, 10}, {1, "b", NULL, 10, NAN}};
    const sm_tracks heat = {.n = 2,
                            .track = rows,
                            .slices = 4,
                            .slice = cells,
                            .columns = 2,
                            .column = columns,
                            .shade = shade};
    const sm_tracks tornado = {.n = 2, .track = rows, .slices = 3, .slice = bars};
    const sm_panel panels[] = {{.title = "heat", .x_unit = "", .y_unit = "", .tracks = &heat},
                               {.title = "bars", .x_unit = "s", .y_unit = "", .tracks = &tornado}};
    const sm_chart chart = {"t", NULL, 2, panels};
    char *text = drawn(&chart);
    assert_int_equal(count(text, "<rect"), 1 + 4 + 2 + 2); /* the ground, cells, bars, kinds */
    assert_int_equal(count(text, "fill=\"#dddddd\" fill-opacity=\"1.00\""), 1);
    assert_int_equal(count(text, "fill-opacity=\"0.92\""), 1);
    assert_int_equal(count(text, ">3 s<"), 1);
    assert_int_equal(count(text, ">64k<"), 1);
    assert_int_equal(count(text, "x=\"84.0\" y=\"225.0\" width=\"180.00\""),
                     1); /* 5 s to 10 s of 15 */
    assert_int_equal(count(text, "x=\"264.0\" y=\"225.0\" width=\"360.00\""), 1);
    assert_int_equal(count(text, "nan"), 0);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_and_tracks),
        cmocka_unit_test(heat_maps_and_bars),
        cmocka_unit_test(lines_have_dots_and_escaped_names),
        cmocka_unit_test(a_point_without_a_place_breaks_the_line),
        cmocka_unit_test(stacked_series_are_added),
        cmocka_unit_test(nothing_at_all_is_still_a_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

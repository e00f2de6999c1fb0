/* Measured collectives in a calibration: their text, and that they are what is priced. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/cost.h"
#include "scalemodel/text.h"
#include <math.h>
#include <string.h>

#define HEAD "[h100 mine]\nbase = h100 default\n"

static sm_calibration *list;
static sm_error error;

static sm_status parse(sm_arena *arena, const char *text) {
    sm_source source = sm_source_of("mine.txt", text);
    size_t n = 0;
    memset(&error, 0, sizeof error);
    return sm_calibration_parse(&source, arena, &list, &n, &error);
}

static void test_lines_read_back(void **state) {
    sm_arena *arena = sm_arena_new();
    assert_int_equal(parse(arena, HEAD "line.all-reduce.2 = 20us 4e-11 # measured\n"
                                       "line.all-gather.4 =\t1e-5\t 3.5e-11\n"),
                     SM_OK);
    char *text = sm_calibration_format(&list[0], arena);
    assert_non_null(strstr(text, "\nline.all-reduce.2 = 2e-05 4e-11\n"));
    assert_int_equal(parse(arena, text), SM_OK);
    assert_int_equal(list[0].lines, 2);
    const sm_collective_line *line = sm_calibration_line(&list[0], SM_ALL_GATHER, 4);
    assert_non_null(line);
    assert_true(fabs(line->line.latency_s - 1e-5) < 1e-18 &&
                fabs(line->line.s_per_byte - 3.5e-11) < 1e-24);
    assert_null(sm_calibration_line(&list[0], SM_ALL_GATHER, 2));
    assert_null(sm_calibration_line(&list[0], SM_ALL_TO_ALL, 4));
    sm_arena_free(arena);
}

/* Of the group that was measured the line is the price at every size; other groups and collectives
 * cost what they did. */
static void test_what_was_measured_is_priced(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_system system;
    sm_source on = sm_source_of("system", "h100-sxm:8");
    assert_int_equal(sm_system_parse(&on, NULL, 0, &system, &error), SM_OK);
    assert_int_equal(parse(arena, HEAD), SM_OK);
    sm_calibration usual = list[0];
    assert_int_equal(parse(arena, HEAD "line.all-reduce.8 = 1ms 1e-9\n"), SM_OK);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        for (int n = 2; n <= 8; n *= 2)
            for (double bytes = 1; bytes < 1e10; bytes *= 100) {
                sm_group g = {.parts = 1, .part = {{0, n, 1}}, .size = n};
                sm_curve curve = sm_collective_curve(&system, (sm_collective)op, &g, 1);
                double s = sm_curve_cost(&curve, &system, &list[0], bytes).expected_s;
                double before = sm_curve_cost(&curve, &system, &usual, bytes).expected_s;
                bool here = op == SM_ALL_REDUCE && n == 8;
                double wanted = here ? 1e-3 + bytes * 1e-9 : before;
                assert_true(fabs(s - wanted) <= 1e-12 * wanted);
            }
    sm_arena_free(arena);
}

static void test_errors_have_a_place(void **state) {
    static const struct {
        const char *line, *sentence;
        int column;
    } wrong[] = {
        {"line.all-reduce = 1 2", "expected line.COLLECTIVE.RANKS, as in line.all-reduce.2", 1},
        {"line.sum.2 = 1 2", "expected line.COLLECTIVE.RANKS, as in line.all-reduce.2", 1},
        {"line.all-reduce.1 = 1 2", "expected a whole number from 2 to 1000000, found 1", 17},
        {"line.all-reduce.2 = 1",
         "expected seconds of latency and seconds per byte, as in 2e-5 4e-11", 21},
        {"line.all-reduce.2 = 2 0", "both lie from 0 to 1 s", 21},
        {"line.all-reduce.2 = 0 -1", NULL, 0},
        {"line.all-reduce.2 = 1e-5 1e-11\nline.all-reduce.2 = 1e-5 1e-11",
         "all-reduce of 2 ranks is given twice", 1},
    };
    sm_arena *arena = sm_arena_new();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[300] = HEAD;
        strcat(text, wrong[i].line);
        assert_int_equal(parse(arena, text), SM_BAD_INPUT);
        if (!wrong[i].sentence) continue;
        assert_string_equal(error.sentence, wrong[i].sentence);
        assert_int_equal(error.column, wrong[i].column);
    }
    assert_int_equal(parse(arena, "line.all-reduce.2 = 1 2\n"), SM_BAD_INPUT);
    sm_arena_free(arena);
}

static void test_any_allocation_may_fail(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status status = parse(arena, HEAD "line.all-reduce.2 = 1e-5 1e-11\n"
                                             "line.all-gather.2 = 1e-5 1e-11\n");
        assert_true(status == SM_OK || status == SM_INTERNAL);
        if (!status) sm_calibration_format(&list[0], arena);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_read_back),
        cmocka_unit_test(test_what_was_measured_is_priced),
        cmocka_unit_test(test_errors_have_a_place),
        cmocka_unit_test(test_any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

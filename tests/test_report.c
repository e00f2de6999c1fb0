/* report: the data tree, derivations, tables, pages. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

static int setup(void **state) {
    *state = sm_arena_new();
    return *state == NULL;
}

static int teardown(void **state) {
    sm_arena_free(*state);
    return 0;
}

static void objects_keep_their_order(void **state) {
    sm_report r = {.arena = *state};
    sm_data *object = sm_data_object(r.arena);
    sm_put(&r, object, "b|a|c", 2.0, "text", (bool)true);
    const sm_data *child = object->first;
    assert_string_equal(child->key, "b");
    assert_string_equal(child->next->key, "a");
    assert_string_equal(child->next->next->key, "c");
    assert_null(child->next->next->next);
    assert_true(sm_data_get(object, "b")->number == 2);
    assert_string_equal(sm_data_get(object, "a")->string, "text");
    assert_true(sm_data_get(object, "c")->truth);
    assert_null(sm_data_get(object, "d"));
    assert_null(sm_data_get(NULL, "a"));
    assert_null(sm_data_get(child, "a"));
    assert_false(r.out_of_memory);
}

static void keys_and_strings_are_copied(void **state) {
    sm_report r = {.arena = *state};
    char key[] = "key", text[] = "text";
    sm_data *object = sm_data_object(r.arena);
    sm_put(&r, object, key, (const char *)text);
    key[0] = text[0] = 'X';
    assert_string_equal(sm_data_get(object, "key")->string, "text");
}

static void arrays_grow(void **state) {
    sm_report r = {.arena = *state};
    sm_data *array = sm_put_array(&r, sm_data_object(r.arena), "list");
    for (int i = 0; i < 1000; i++) sm_put(&r, array, NULL, i);
    int i = 0;
    for (const sm_data *child = array->first; child != NULL; child = child->next, i++)
        assert_true(child->number == i);
    assert_int_equal(i, 1000);
}

static void what_json_cannot_hold_is_null(void **state) {
    sm_report r = {.arena = *state};
    sm_data *object = sm_data_object(r.arena);
    sm_put(&r, object, "nan|more|less|text", (double)NAN, (double)INFINITY, -(double)INFINITY,
           (const char *)NULL);
    for (const sm_data *child = object->first; child != NULL; child = child->next)
        assert_int_equal(child->kind, SM_DATA_NULL);
    assert_string_equal(object->last->key, "text");
}

static void null_and_wrong_parents_are_refused(void **state) {
    sm_report r = {.arena = *state};
    sm_data *object = sm_data_object(r.arena), *array = sm_put_array(&r, object, "list");
    sm_data *other = sm_data_object(r.arena);
    assert_false(sm_data_put(NULL, r.arena, "k", other));
    assert_false(sm_data_put(object, r.arena, "k", NULL));
    assert_false(sm_data_put(object, r.arena, NULL, other));
    assert_false(sm_data_put(array, r.arena, "k", other));
    assert_false(sm_data_put(array, r.arena, NULL, NULL));
    assert_false(sm_data_put(NULL, r.arena, NULL, other));
    assert_ptr_equal(object->first, array);
    assert_null(array->first);
    assert_false(r.out_of_memory);
    sm_put(&r, array, "k", 1.0);
    assert_true(r.out_of_memory);
}

static void derivations_hang_together(void **state) {
    (void)state;
    sm_report *r = sm_report_new();
    sm_why *sum = sm_page_why(r, NULL, "sum", "a + b", 3, "s");
    sm_page_leaf(r, sum, "a", 1, "s", "given");
    sm_page_leaf(r, sum, "b", 2, "s", NULL);
    sm_why_add(sum, NULL);
    sm_why_add(NULL, sum->first);
    assert_string_equal(sum->first->label, "a");
    assert_string_equal(sum->first->source, "given");
    assert_null(sum->first->formula);
    assert_string_equal(sum->last->label, "b");
    assert_null(sum->last->source);
    assert_null(sum->last->next);
    assert_ptr_equal(sum->first->next, sum->last);
    sm_report_free(r);
}

static void tables_copy_their_cells(void **state) {
    (void)state;
    sm_report *r = sm_report_new();
    sm_table *table = sm_page_table(r, "t", "<name|>size");
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "row%d", i);
        sm_page_cells(r, table, (const char *[]){name, NULL});
    }
    assert_int_equal(table->rows, 100);
    assert_string_equal(table->cells[0][0], "row0");
    assert_string_equal(table->cells[99][0], "row99");
    assert_string_equal(table->cells[99][1], "");
    assert_string_equal(table->heads[1], "size");
    assert_int_equal(table->aligns[1], SM_RIGHT);
    assert_ptr_equal(r->first->table, table);
    assert_null(r->first->next);
    assert_false(r->out_of_memory);
    sm_page_cells(r, NULL, (const char *[]){"x", "y"});
    assert_true(r->out_of_memory);
    sm_report_free(r);
}

static void pages_keep_their_order(void **state) {
    sm_report *r = sm_report_new();
    sm_report_heading(r, "head %d", 1);
    sm_report_text(r, "text");
    sm_report_lines(r, "one\ntwo\n");
    sm_report_table(r, sm_page_table(r, NULL, "<x"));
    sm_report_bar(r, "memory", "B", 10, 1, &(sm_bar_part){"params", 4});
    static const sm_block_kind kinds[] = {SM_BLOCK_HEADING, SM_BLOCK_TEXT, SM_BLOCK_LINES,
                                          SM_BLOCK_TABLE, SM_BLOCK_BAR};
    const sm_block *block = r->first;
    for (size_t i = 0; i < 5; i++, block = block->next) assert_int_equal(block->kind, kinds[i]);
    assert_null(block);
    assert_string_equal(r->first->text, "head 1");
    assert_int_equal(r->data->kind, SM_DATA_OBJECT);
    assert_false(r->out_of_memory);
    sm_report_free(r);
    sm_report_free(NULL);
}

static void adders_accept_null(void **state) {
    sm_report_heading(NULL, "x");
    sm_report_text(NULL, "x");
    sm_report_lines(NULL, "x");
    sm_report_table(NULL, NULL);
    sm_report_bar(NULL, "x", "B", 1, 0, NULL);
    sm_report *r = sm_report_new();
    sm_report_table(r, NULL);
    assert_true(r->out_of_memory);
    sm_report_free(r);
}

static void fill(sm_report *r) {
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    sm_report_heading(r, "%s", long_text);
    sm_report_text(r, "%s", long_text);
    sm_table *table = sm_page_table(r, long_text, long_text);
    for (int i = 0; i < 20 && table != NULL; i++)
        sm_page_cells(r, table, (const char *[]){long_text});
    sm_report_bar(r, long_text, long_text, 1, 1, &(sm_bar_part){long_text, 1});
    sm_page_why(r, NULL, long_text, long_text, 1, "s");
    sm_put(r, r->data, long_text, (const char *)long_text);
}

/* Whichever allocation fails, the report knows that it is not whole. */
static void reports_know_when_memory_was_out(void **state) {
    uint64_t turns = 0;
    FOR_EACH_FAILING_ALLOCATION(loop) {
        turns = loop.n;
        sm_report *r = sm_report_new();
        if (r == NULL) continue;
        fill(r);
        assert_int_equal(r->out_of_memory, failing_alloc_refused(&loop));
        sm_report_free(r);
    }
    assert_true(turns > 4);
}

static sm_data *sample(sm_arena *arena) {
    sm_report r = {.arena = arena};
    sm_data *object = sm_data_object(arena);
    sm_put(&r, object, "a \"key\"", "t\nx\x01\xff");
    sm_put(&r, sm_put_array(&r, object, "list"), NULL, 0.1, 1e14, (bool)false);
    sm_put_object(&r, object, "none");
    return r.out_of_memory ? NULL : object;
}

static void json_has_two_layouts(void **state) {
    static const char line[] = "{\"a \\\"key\\\"\":\"t\\nx\\u0001\xEF\xBF\xBD\","
                               "\"list\":[0.1,100000000000000,false],\"none\":{}}";
    static const char page[] = "{\n  \"a \\\"key\\\"\": \"t\\nx\\u0001\xEF\xBF\xBD\",\n"
                               "  \"list\": [0.1, 100000000000000, false],\n  \"none\": {}\n}\n";
    char *text;
    size_t length;
    const sm_data *data = sample(*state);
    assert_int_equal(sm_json_format(data, SM_JSON_LINE, *state, &text, &length, NULL), SM_OK);
    assert_string_equal(text, line);
    assert_int_equal(length, sizeof line - 1);
    assert_int_equal(sm_json_format(data, SM_JSON_PAGE, *state, &text, &length, NULL), SM_OK);
    assert_string_equal(text, page);
    assert_int_equal(sm_json_format(NULL, SM_JSON_LINE, *state, &text, &length, NULL), SM_INTERNAL);
}

static void json_survives_failing_allocations(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        char *text;
        size_t length;
        sm_arena *arena = sm_arena_new();
        sm_status status = sm_json_format(sample(arena), SM_JSON_LINE, arena, &text, &length, NULL);
        assert_int_equal(status, failing_alloc_refused(&loop) ? SM_INTERNAL : SM_OK);
        sm_arena_free(arena);
    }
}

static const sm_chart *chart_of_three(sm_report *r) {
    double x[] = {1, 2, 3}, y[] = {4, 5, 6};
    const sm_series series = {"one", SM_MARK_LINE, 3, x, y, NULL};
    const sm_panel panel = {.title = "panel", .n = 1, .series = &series};
    sm_report_chart(r, &(sm_chart){"title", "below", 1, &panel});
    memset(x, 0, sizeof x);
    return r->chart;
}

static void charts_are_copied_with_their_numbers(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_report *r = sm_report_new();
        const sm_chart *chart = r ? chart_of_three(r) : NULL;
        if (failing_alloc_refused(&loop)) {
            assert_null(chart);
            assert_true(!r || r->out_of_memory);
        } else {
            const sm_series *series = chart->panel[0].series;
            assert_string_equal(chart->title, "title");
            assert_true(series->n == 3 && series->x[2] >= 3 && series->y[2] >= 6);
            assert_null(series->area);
        }
        sm_report_free(r);
    }
}

/* Where its first row was appended, whenever it was made; without rows it is nowhere. */
static void tables_stand_where_their_rows_begin(void **state) {
    (void)state;
    sm_report *r = sm_report_new();
    sm_table *none = sm_page_table(r, "none", "<a"), *some = sm_page_table(r, NULL, "<a|>b");
    sm_report_heading(r, "before");
    sm_page_row(r, some, "x", "1");
    sm_report_text(r, "after");
    sm_page_cells(r, some, (const char *[]){"y", "2"});
    assert_true(none != NULL && some->rows == 2 && !r->out_of_memory);
    assert_int_equal(r->first->kind, SM_BLOCK_HEADING);
    assert_int_equal(r->first->next->kind, SM_BLOCK_TABLE);
    assert_ptr_equal(r->first->next->table, some);
    assert_ptr_equal(r->first->next->next, r->last);
    assert_int_equal(r->last->kind, SM_BLOCK_TEXT);
    sm_report_free(r);
}

static void is_row(const sm_table *t, size_t row, const char *const *cells) {
    for (size_t i = 0; i < t->columns; i++) assert_string_equal(t->cells[row][i], cells[i]);
}

static void numbers_of_a_row_are_shown_in_the_unit_of_their_column(void **state) {
    const bool yes = true, no = false; /* true alone is an int */
    (void)state;
    sm_report *r = sm_report_new();
    sm_table *t = sm_page_table(
        r, NULL, "<name|>{s}a|>{B}b|>{B/s}c|>{$}d|>{%}e|>{+%}f|>{n}g|>{=}h|>{#}i|>j|<k");
    assert_int_equal(t->columns, 12);
    assert_string_equal(t->heads[5], "e");
    assert_string_equal(t->units[3], "B/s");
    sm_page_row(r, t, "x", 559e-6, 2147483648.0, 459e9, 1.23e6, 0.453, -0.2, 7e9, 12345678, 1.5,
                2048, yes);
    is_row(t, 0,
           (const char *[]){"x", "559 us", "2.15 GB", "459 GB/s", "$1.23M", "45.3 %", "-20.0 %",
                            "7B", "12345678", "1.5", "2048", "yes"});
    const double none = NAN;
    sm_page_row(r, t, "y", none, none, none, none, none, none, none, none, none, "text", no);
    is_row(t, 1, (const char *[]){"y", "-", "-", "-", "-", "-", "-", "-", "-", "-", "text", "no"});
    sm_report_free(r);
}

static void lists_are_rows_of_the_data_and_of_the_page(void **state) {
    const bool yes = true, no = false;
    const double none = NAN;
    (void)state;
    sm_report *r = sm_report_new();
    sm_listing list = sm_page_list(r, r->data, "steps", "Steps",
                                   "op<what|time.mean>{s}time|>{%}share|n|time.fits>fits");
    assert_int_equal(list.table->columns, 4);
    sm_data *first = sm_list_row(&list, true, "a", 0.002, 0.5, 3, yes);
    sm_put(r, first, "more", "of this row");
    assert_non_null(sm_list_row(&list, false, "b", none, 0.5, 4, no));
    assert_int_equal(list.table->rows, 1);
    is_row(list.table, 0, (const char *[]){"a", "2 ms", "50 %", "yes"});
    char *text;
    size_t n;
    assert_int_equal(sm_json_format(r->data, SM_JSON_LINE, r->arena, &text, &n, NULL), SM_OK);
    assert_string_equal(text,
                        "{\"steps\":[{\"op\":\"a\",\"time\":{\"mean\":0.002,\"fits\":true},\"n\":3,"
                        "\"more\":\"of this row\"},"
                        "{\"op\":\"b\",\"time\":{\"mean\":null,\"fits\":false},\"n\":4}]}");
    sm_report_free(r);
}

/* What is left out has a value in every row and none on the page; a list goes on where it is. */
static void columns_are_left_out(void **state) {
    (void)state;
    for (int out = 0; out < 2; out++) {
        sm_report *r = sm_report_new();
        sm_data *there = sm_put_array(r, r->data, "steps");
        sm_put_array(r, r->data, "behind");
        sm_listing list =
            sm_page_list(r, r->data, "steps", NULL,
                         sm_textf(r, "name<step|count%s>{=}runs|%s>{s}alone|time_s>{s}time",
                                  out ? "-" : "", out ? "-" : ""));
        sm_list_row(&list, true, "add", 3, 0.5, 0.25);
        assert_ptr_equal(list.data, there);
        assert_int_equal(list.table->columns, out ? 2 : 4);
        const char *const all[] = {"add", "3", "500 ms", "250 ms"}, *const some[] = {"add",
                                                                                     "250 ms"};
        is_row(list.table, 0, out ? some : all);
        assert_string_equal(r->data->first->key, "steps");
        assert_true(sm_data_get(there->first, "count")->number == 3);
        assert_null(sm_data_get(there->first, "alone"));
        sm_report_free(r);
    }
}

static void dots_lead_into_objects(void **state) {
    sm_report *r = sm_report_new();
    const char *const keys[] = {"a.b.c", "d", "a.b.e", "a.f"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *key = keys[i];
        sm_data *object = sm_put_nested(r, r->data, &key);
        assert_int_equal(strlen(key), 1);
        sm_put(r, object, key, i);
    }
    char *text;
    size_t n;
    assert_int_equal(sm_json_format(r->data, SM_JSON_LINE, r->arena, &text, &n, NULL), SM_OK);
    assert_string_equal(text, "{\"a\":{\"b\":{\"c\":0,\"e\":2},\"f\":3},\"d\":1}");
    assert_null(sm_put_nested(r, NULL, &(const char *){"a.b"}));
    sm_report_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_stand_where_their_rows_begin),
        cmocka_unit_test(numbers_of_a_row_are_shown_in_the_unit_of_their_column),
        cmocka_unit_test(lists_are_rows_of_the_data_and_of_the_page),
        cmocka_unit_test(columns_are_left_out),
        cmocka_unit_test(dots_lead_into_objects),
        cmocka_unit_test_setup_teardown(objects_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_and_strings_are_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(what_json_cannot_hold_is_null, setup, teardown),
        cmocka_unit_test_setup_teardown(null_and_wrong_parents_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(derivations_hang_together, setup, teardown),
        cmocka_unit_test_setup_teardown(tables_copy_their_cells, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(json_has_two_layouts, setup, teardown),
        cmocka_unit_test(json_survives_failing_allocations),
        cmocka_unit_test(charts_are_copied_with_their_numbers),
        cmocka_unit_test(adders_accept_null),
        cmocka_unit_test(reports_know_when_memory_was_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The acceptance set of the book stays reproduced: every item of the chapters that are due, and
 * what the later ones already had. tests/book prints the misses with their reasons. */
#include "unit.h"
#include "book/book.h"
#include <string.h>

/* ---- the comparison itself can fail ---- */

static void wrong(book_item *item) { book_is(item, "the value", 1.006, 1); }
static void right(book_item *item) { book_is(item, "the value", 1.004, 1); }
static void silent(book_item *item) { (void)item; }
static void not_a_number(book_item *item) {
    double zero = 0;
    book_is(item, "the value", zero / zero, 1);
}

static void half_right(book_item *item) {
    book_exactly(item, "first", 2, 2);
    book_exactly(item, "second", 3, 4);
    book_holds(item, "third", false);
}

static void wrong_answers_are_misses(void **state) {
    static const book_answer right_one = {"a", right, NULL}, wrong_one = {"b", wrong, NULL},
                             nan_one = {"c", not_a_number, NULL}, silent_one = {"d", silent, NULL},
                             half = {"e", half_right, NULL}, none = {"f", NULL, "no way yet"};
    book_item item;
    assert_true(book_run(&right_one, &item));
    assert_false(book_run(&wrong_one, &item));
    assert_string_equal(item.why, "the value is 1.006, not 1");
    assert_false(book_run(&nan_one, &item));
    assert_false(book_run(&silent_one, &item));
    assert_string_equal(item.why, "nothing was compared");
    assert_false(book_run(&half, &item));
    assert_string_equal(item.why, "second is 3, not 4");
    assert_false(book_run(&none, &item));
    assert_string_equal(item.why, "no way yet");
}

/* ---- the chapters ---- */

static void the_set_is_whole(void **state) {
    static const char *ids[300];
    int n = 0;
    for (int c = 0; c < BOOK_CHAPTERS; c++)
        for (int i = 0; i < book_chapters[c]->n; i++) ids[n++] = book_chapters[c]->answers[i].id;
    assert_int_equal(n, 258);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(ids[i], ids[j]);
}

static void chapters_due_are_reproduced(void **state) {
    book_item item;
    for (int c = 0; c < BOOK_CHAPTERS; c++)
        for (int i = 0; book_chapters[c]->required && i < book_chapters[c]->n; i++)
            if (!book_run(&book_chapters[c]->answers[i], &item))
                print_error("%s: %s\n", item.id, item.why);
    for (int c = 0; c < BOOK_CHAPTERS; c++)
        if (book_chapters[c]->required)
            assert_int_equal(book_reproduced(book_chapters[c]), book_chapters[c]->n);
}

static void later_chapters_keep_what_they_have(void **state) {
    assert_true(book_reproduced(&book_jax) >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_answers_are_misses),
        cmocka_unit_test(the_set_is_whole),
        cmocka_unit_test(chapters_due_are_reproduced),
        cmocka_unit_test(later_chapters_keep_what_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

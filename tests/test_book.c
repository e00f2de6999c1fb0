/* The acceptance set of the book stays reproduced, and docs/book shows it. */
#include "unit.h"
#include "book/book.h"
#include <stdio.h>
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

/* ---- the pages of docs/book ---- */

/* "| ID | what is asked | the book | the library | remarks |": the fourth cell, or "". */
static void cell_of(const char *page, const char *id, char *cell, size_t size) {
    char start[80];
    snprintf(start, sizeof start, "\n| %s | ", id);
    const char *row = strstr(page, start);
    *cell = '\0';
    if (row == NULL) return;
    assert_null(strstr(row + 1, start));
    row += strlen(start);
    for (int i = 0; i < 2; i++) row = strstr(row, " | ") + 3;
    snprintf(cell, size, "%.*s", (int)(strstr(row, " | ") - row), row);
}

/* Every item that can be answered is reproduced, and has its row on the page of its part, with the
 * figures that it is answered with. */
static void items_are_reproduced_and_shown(void **state) {
    book_item item;
    char path[120], cell[500];
    static char page[1 << 17];
    for (int c = 0; c < BOOK_CHAPTERS; c++) {
        snprintf(path, sizeof path, "docs/book/%s.md", book_chapters[c]->page);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        page[fread(page, 1, sizeof page - 1, f)] = '\0';
        fclose(f);
        for (int i = 0; i < book_chapters[c]->n; i++) {
            bool right = book_run(&book_chapters[c]->answers[i], &item);
            if (!right && item.values > 0) fail_msg("%s: %s", item.id, item.why);
            cell_of(page, item.id, cell, sizeof cell);
            if (strcmp(cell, right ? item.given : item.why) != 0)
                fail_msg("%s: %s has \"%s\", not \"%s\"; make book-pages", path, item.id, cell,
                         right ? item.given : item.why);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_answers_are_misses),
        cmocka_unit_test(the_set_is_whole),
        cmocka_unit_test(items_are_reproduced_and_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

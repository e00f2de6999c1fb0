/* Records of CSV: cells and their places, quotes, and what is refused. */
#include "unit.h"
#include "csv_record.h"

#include <stdlib.h>
#include <string.h>

/* The cells of the record at *at, joined by '|'. */
static const char *cells(const sm_source *s, size_t *at, sm_arena *arena) {
    csv_record r;
    const char *all = "";
    assert_true(csv_read(s, at, 0, &r));
    for (int i = 0; i < r.n; i++)
        all = sm_arena_printf(arena, "%s%s%s", all, i ? "|" : "", csv_copy(s, r.cell[i], arena));
    return all;
}

static void reads_records(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_source s = sm_source_of("t", "a, b ,\"c\"\r\n\"x \"\"y\"\",\nz\" ,,\r,2\n,\nlast");
    size_t at = 0;
    assert_string_equal(cells(&s, &at, arena), "a|b|c");
    assert_int_equal(at, 11);
    assert_string_equal(cells(&s, &at, arena), "x \"y\",\nz||\r|2");
    assert_string_equal(cells(&s, &at, arena), "|");
    assert_string_equal(cells(&s, &at, arena), "last");
    assert_int_equal(at, s.length);
    sm_arena_free(arena);
}

static void refuses(const char *text, int columns, size_t offset, size_t length,
                    const char *sentence) {
    sm_source s = sm_source_of("t", text);
    size_t at = 0;
    csv_record r;
    assert_false(csv_read(&s, &at, columns, &r));
    assert_string_equal(r.sentence, sentence);
    assert_int_equal(r.wrong.offset, offset);
    assert_int_equal(r.wrong.length, length);
}

static void refuses_what_is_no_record(void **state) {
    refuses("a,\"b\n", 0, 2, 1, "this quote is never closed");
    refuses("a,\"b\"\"", 0, 2, 1, "this quote is never closed");
    refuses("\"b\" c,d", 0, 4, 1,
            "expected a comma or the end of the line after the closing quote");
    refuses("1,2\n", 3, 0, 3, "this row has 2 cells, but the header names 3 columns");
    refuses("1,2,3,4", 3, 0, 7, "this row has 4 cells, but the header names 3 columns");
    char many[2 * CSV_MOST_CELLS + 1];
    for (int i = 0; i < 2 * CSV_MOST_CELLS; i++) many[i] = i & 1 ? ',' : '1';
    many[2 * CSV_MOST_CELLS] = 0;
    refuses(many, 0, 2 * CSV_MOST_CELLS, 1, "a row has at most 256 cells");
}

static void random_text_ends_well(void **state) {
    static const char bytes[] = "\"\",,\r\n\n ab";
    sm_rng rng = {5};
    for (int turn = 0; turn < 3000; turn++) {
        size_t n = 1 + (size_t)sm_rng_below(&rng, 40), at = 0;
        char *text = malloc(n); /* exactly as long, so that a read past it is seen */
        for (size_t i = 0; i < n; i++) text[i] = bytes[sm_rng_below(&rng, sizeof bytes - 1)];
        sm_source s = {"t", text, n};
        csv_record r;
        for (size_t before = 0; at < n && csv_read(&s, &at, 0, &r); before = at)
            assert_true(at > before && at <= n && r.whole.offset + r.whole.length <= n);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_records),
        cmocka_unit_test(refuses_what_is_no_record),
        cmocka_unit_test(random_text_ends_well),
    };
    return cmocka_run_group_tests_name("csv_record", tests, NULL, NULL);
}

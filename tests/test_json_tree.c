/* JSON as values with places: hand-made cases, typed readers and their errors, and jansson as the
 * oracle on random documents and on damaged ones. */
#include "unit.h"
#include "failing_alloc.h"
#include "json_tree.h"
#include "scalemodel/io.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char document[] =
    "{\n"
    "  \"a\": 1,\n"
    "  \"b\" : {\"c\": [10, {\"d\": \"x]}\\\"y\"}, [ ], true],\"a\":null},\n"
    "  \"ab\": -1.5e3 }\n";

typedef struct reading {
    sm_source source;
    sm_error err;
    json_document in;
    const json_value *root;
} reading;

static sm_status read_bytes(reading *r, const char *text, size_t length, bool python) {
    r->source = (sm_source){"doc", text, length};
    r->in = (json_document){
        .source = &r->source, .arena = sm_arena_new(), .err = &r->err, .python = python};
    return json_parse(&r->in, &r->root);
}

static void read_text(reading *r, const char *text) {
    assert_int_equal(read_bytes(r, text, strlen(text), false), SM_OK);
}

static void assert_span(const char *path, size_t at, size_t length, const char *expected) {
    if (length != strlen(expected) || memcmp(document + at, expected, length) != 0)
        fail_msg("%s is %.*s", path, (int)length, document + at);
}

static void finds_values_and_keys(void **state) {
    static const char *const cases[][3] = {
        {"a", "1", "\"a\""},
        {"ab", "-1.5e3", "\"ab\""},
        {"b.c[0]", "10", ""},
        {"b.c[1]", "{\"d\": \"x]}\\\"y\"}", ""},
        {"b.c[1].d", "\"x]}\\\"y\"", "\"d\""},
        {"b.c[2]", "[ ]", ""},
        {"b.c[3]", "true", ""}, /* an element has no key */
        {"b.a", "null", "\"a\""},
        {"b.c", "[10, {\"d\": \"x]}\\\"y\"}, [ ], true]", "\"c\""},
    };
    reading r;
    read_text(&r, document);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const json_value *v = json_find(r.root, cases[i][0]);
        assert_non_null(v);
        assert_span(cases[i][0], v->at, v->length, cases[i][1]);
        assert_span(cases[i][0], v->key_at, v->key_length, cases[i][2]);
    }
    assert_string_equal(json_text(json_find(r.root, "b.c[1].d")), "x]}\"y");
    assert_true(json_number(json_get(r.root, "ab")) == -1500);
    assert_ptr_equal(json_find(r.root, ""), r.root);
    sm_arena_free(r.in.arena);
}

static void absent_paths_are_null(void **state) {
    static const char *const paths[] = {"z",   "b.z",  "b.c[4]", "b.c[2][0]", "b.c[1]x",
                                        "a.b", "a[0]", "b.c.d",  "[0]",       "b.c]"};
    reading r;
    read_text(&r, document);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_null(json_find(r.root, paths[i]));
    assert_null(json_get(NULL, "a"));
    assert_null(json_text(json_get(r.root, "a")));
    assert_true(json_number(NULL) == 0);
    assert_ptr_equal(json_nearest(r.root, "b.c[1].q.r[3]"), json_find(r.root, "b.c[1]"));
    assert_ptr_equal(json_nearest(r.root, "q"), r.root);
    assert_int_equal(json_fail(json_find(r.root, "b.c[3]"), "number %d", 7), SM_BAD_INPUT);
    assert_string_equal(r.err.sentence, "number 7");
    assert_true(r.err.line == 3 && r.err.span == 4);
    sm_arena_free(r.in.arena);
}

/* ---- typed readers ---- */

static void check_error(const reading *r, sm_status status, int column, const char *sentence) {
    assert_int_equal(status, SM_BAD_INPUT);
    assert_string_equal(r->err.sentence, sentence);
    assert_int_equal(r->err.column, column);
}

static void typed_readers_check(void **state) {
    static const char *const names[] = {"torus", "switch"}, *const keys[] = {"n", "x", "kind"};
    reading r;
    int n = 7, list[3] = {0};
    double x = 7;
    bool yes = false;
    const char *text = "old";
    read_text(&r, "{\"n\":4,\"x\":2.5,\"kind\":\"swich\",\"t\":true,\"l\":[1,2,0]}");
    assert_int_equal(json_read_count(json_get(r.root, "n"), 4, &n), SM_OK);
    assert_int_equal(json_read_number(json_get(r.root, "x"), 1, 3, &x), SM_OK);
    assert_int_equal(json_read_bool(json_get(r.root, "t"), &yes), SM_OK);
    assert_int_equal(json_read_text(json_get(r.root, "absent"), &text), SM_OK);
    assert_true(n == 4 && x == 2.5 && yes && strcmp(text, "old") == 0);
    check_error(&r, json_read_count(json_get(r.root, "n"), 3, &n), 6,
                "expected a whole number from 1 to 3");
    check_error(&r, json_read_count(json_get(r.root, "x"), 3, &n), 12,
                "expected a whole number from 1 to 3");
    check_error(&r, json_read_number(json_get(r.root, "x"), 3, 4, &x), 12,
                "expected a number from 3 to 4, found 2.5");
    check_error(&r, json_read_number(json_get(r.root, "t"), 3, 4, &x), 35,
                "expected a number, found true or false");
    check_error(&r, json_read_text(json_get(r.root, "n"), &text), 6,
                "expected a text, found a number");
    check_error(&r, json_read_choice(json_get(r.root, "kind"), names, 2, &n), 23,
                "unknown kind \"swich\": the nearest is \"switch\"");
    check_error(&r, json_read_counts(json_get(r.root, "l"), 1, 2, 9, list, &n), 44,
                "expected 1 to 2 whole numbers, found 3");
    check_error(&r, json_read_counts(json_get(r.root, "l"), 1, 3, 9, list, &n), 49,
                "expected a whole number from 1 to 9");
    check_error(&r, json_check_keys(r.root, keys, 3), 31,
                "unknown key \"t\": expected one of n, x, kind");
    assert_true(n == 4 && x == 2.5);
    sm_arena_free(r.in.arena);
}

/* ---- syntax ---- */

static void refuses_what_is_no_json(void **state) {
    static const struct {
        const char *text;
        int column, span;
        const char *sentence;
    } cases[] = {
        {"{\"a\":1,\"a\":2}", 8, 3, "this key is given twice"},
        {"[1e999]", 2, 5, "this number is too large"},
        {"[123456789012345678901]", 2, 21, "this number is too large"},
        {"\"a\\u0000b\"", 1, 10, "a text may not hold the character \\u0000"},
        {"[NaN]", 2, 3, "this is not valid JSON: invalid token near 'NaN'"},
        {"[1] 2", 5, 1, "this is not valid JSON: end of file expected near '2'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reading r;
        assert_int_equal(read_bytes(&r, cases[i].text, strlen(cases[i].text), false), SM_BAD_INPUT);
        assert_string_equal(r.err.sentence, cases[i].sentence);
        assert_int_equal(r.err.column, cases[i].column);
        assert_int_equal(r.err.span, cases[i].span);
        sm_arena_free(r.in.arena);
    }
}

static void reads_numbers_as_python_writes_them(void **state) {
    static const char text[] = "{\"NaN\": [NaN, Infinity,-Infinity ,1], \"s\": \"a NaN \\\" NaN\"}";
    static const char *const wrong[] = {"[1NaN]", "[aNaN]", "[NaNs]", "[Infinit]", "[NaN NaN]"};
    reading r;
    assert_int_equal(read_bytes(&r, text, sizeof text - 1, true), SM_OK);
    assert_true(isnan(json_number(json_find(r.root, "NaN[0]"))));
    assert_true(json_number(json_find(r.root, "NaN[1]")) == INFINITY);
    assert_true(json_number(json_find(r.root, "NaN[2]")) == -INFINITY);
    assert_true(!json_find(r.root, "NaN[2]")->whole && json_find(r.root, "NaN[3]")->whole);
    assert_int_equal(json_find(r.root, "NaN[2]")->length, 9);
    assert_string_equal(json_text(json_get(r.root, "s")), "a NaN \" NaN");
    sm_arena_free(r.in.arena);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_bytes(&r, wrong[i], strlen(wrong[i]), true), SM_BAD_INPUT);
        sm_arena_free(r.in.arena);
    }
}

static void every_cut_is_an_error(void **state) {
    for (size_t n = 0; n + 2 < sizeof document - 1; n++) {
        reading r;
        char *copy = malloc(n + 1); /* exactly as long, so that a read past it is seen */
        memcpy(copy, document, n);
        assert_int_equal(read_bytes(&r, copy, n, n & 1), SM_BAD_INPUT);
        assert_null(r.root);
        sm_arena_free(r.in.arena);
        free(copy);
    }
}

static void limits_are_errors(void **state) {
    reading r;
    size_t n = JSON_MOST_BYTES + 1;
    char *text = malloc(n);
    memset(text, '[', n);
    assert_int_equal(read_bytes(&r, text, n, false), SM_BAD_INPUT);
    assert_string_equal(r.err.sentence,
                        "the document has 16777217 bytes; at most 16777216 are read");
    sm_arena_free(r.in.arena);
    assert_int_equal(read_bytes(&r, text, n - 1, false), SM_BAD_INPUT);
    assert_string_equal(r.err.sentence, "lists and objects are nested too deep");
    sm_arena_free(r.in.arena);
    memset(text + 2000, ']', 2000);
    assert_int_equal(read_bytes(&r, text, 4000, false), SM_OK);
    sm_arena_free(r.in.arena);
    free(text);
}

/* ---- random documents: jansson has the same value at each place ---- */

static json_t *random_value(sm_rng *rng, int depth) {
    static const char *const texts[] = {"", "a\"b", "]", "}{", "\\", ",:", "\xc3\xa9", "tab\t"};
    uint64_t kind = sm_rng_below(rng, depth > 0 ? 8 : 5);
    uint64_t n = sm_rng_below(rng, 4);
    if (kind == 0) return json_integer((json_int_t)sm_rng_below(rng, 1000) - 500);
    if (kind == 1) return json_real(sm_rng_unit(rng));
    if (kind == 2) return json_string(texts[sm_rng_below(rng, 8)]);
    if (kind == 3) return json_boolean(n & 1);
    if (kind == 4) return json_null();
    json_t *v = kind == 5 ? json_array() : json_object();
    for (uint64_t i = 0; i < n; i++) {
        char key[8];
        snprintf(key, sizeof key, i & 1 ? "k%d\n" : "k%d", (int)(n - i));
        if (kind == 5) json_array_append_new(v, random_value(rng, depth - 1));
        else json_object_set_new(v, key, random_value(rng, depth - 1));
    }
    return v;
}

static int check_value(const json_value *v, const json_t *expected) {
    const sm_source *s = v->in->source;
    int checked = 1;
    json_t *there = json_loadb(s->text + v->at, v->length, JSON_DECODE_ANY, NULL);
    if (!there || !json_equal(there, expected)) fail_msg("another value at %u", v->at);
    json_decref(there);
    if (v->kind == IS_NUMBER) assert_true(v->number == json_number_value(expected));
    if (v->kind == IS_TEXT) assert_string_equal(v->text, json_string_value(expected));
    if (v->kind == IS_LIST) assert_int_equal(v->n, json_array_size(expected));
    if (v->kind == IS_OBJECT) assert_int_equal(v->n, json_object_size(expected));
    for (uint32_t i = 0; v->kind >= IS_LIST && i < v->n; i++) {
        const json_value *item = &v->item[i];
        const json_t *of =
            v->kind == IS_LIST ? json_array_get(expected, i) : json_object_get(expected, item->key);
        json_t *key = json_loadb(s->text + item->key_at, item->key_length, JSON_DECODE_ANY, NULL);
        if (item->key) assert_string_equal(json_string_value(key), item->key);
        json_decref(key);
        checked += check_value(item, of);
    }
    return checked;
}

static void agrees_with_jansson(void **state) {
    sm_rng rng = {42};
    int checked = 0;
    for (int i = 0; i < 300; i++) {
        reading r;
        json_t *v = random_value(&rng, 5);
        size_t flags = JSON_ENCODE_ANY | (i & 1 ? JSON_INDENT(3) : JSON_COMPACT) |
                       (i & 2 ? JSON_ENSURE_ASCII : 0);
        char *text = json_dumps(v, flags);
        read_text(&r, text);
        checked += check_value(r.root, v);
        sm_arena_free(r.in.arena);
        json_decref(v);
        free(text);
    }
    assert_true(checked > 600);
}

/* Bytes changed, left out and doubled: what one takes for JSON, the other does. */
static void agrees_with_jansson_on_damage(void **state) {
    static const char bytes[] = "{}[]:,\"\\u0123dDcC89eE+-.ntfalsr \n\x01\xc3\xa9\xed\xa0\xf0\x9f";
    sm_rng rng = {7};
    int good = 0, bad = 0;
    for (int i = 0; i < 20000; i++) {
        reading r;
        char text[256];
        json_t *v = random_value(&rng, 3);
        char *whole = json_dumps(v, JSON_ENCODE_ANY | (i & 1 ? JSON_ENSURE_ASCII : 0));
        size_t n = strlen(whole) < 200 ? strlen(whole) : 200;
        memcpy(text, whole, n);
        for (uint64_t changes = sm_rng_below(&rng, 4); changes > 0 && n > 0; changes--) {
            size_t at = sm_rng_below(&rng, n);
            char byte = bytes[sm_rng_below(&rng, sizeof bytes - 1)];
            if (sm_rng_below(&rng, 2)) text[at] = byte;
            else if (sm_rng_below(&rng, 2)) memmove(text + at, text + at + 1, --n - at);
            else memmove(text + at + 1, text + at, n++ - at);
        }
        json_t *theirs = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        bool ours = read_bytes(&r, text, n, false) == SM_OK;
        if (ours != (theirs != NULL)) fail_msg("%.*s: %s", (int)n, text, r.err.sentence);
        if (ours) check_value(r.root, theirs);
        good += ours;
        bad += !ours;
        sm_arena_free(r.in.arena);
        json_decref(theirs);
        json_decref(v);
        free(whole);
    }
    assert_true(good > 2000 && bad > 2000);
}

/* ---- memory ---- */

static void survives_failing_allocations(void **state) {
    uint64_t refusals = 0;
    FOR_EACH_FAILING_ALLOCATION(loop) {
        reading r;
        sm_status status = read_bytes(&r, document, sizeof document - 1, true);
        assert_int_equal(status, failing_alloc_refused(&loop) ? SM_INTERNAL : SM_OK);
        sm_arena_free(r.in.arena);
        refusals = loop.n;
    }
    assert_true(refusals > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_values_and_keys),
        cmocka_unit_test(absent_paths_are_null),
        cmocka_unit_test(typed_readers_check),
        cmocka_unit_test(refuses_what_is_no_json),
        cmocka_unit_test(reads_numbers_as_python_writes_them),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(limits_are_errors),
        cmocka_unit_test(agrees_with_jansson),
        cmocka_unit_test(agrees_with_jansson_on_damage),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("json_tree", tests, NULL, NULL);
}

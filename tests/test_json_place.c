/* Places of values in JSON text: hand-made cases, and jansson as the oracle on random documents. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_load.h"
#include "json_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char document[] =
    "{\n"
    "  \"a\": 1,\n"
    "  \"b\" : {\"c\": [10, {\"d\": \"x]}\\\"y\"}, [ ], true],\"a\":null},\n"
    "  \"e.f\": 2, \"ab\": -1.5e3 }\n";

static void assert_place(const char *path, bool of_key, const char *expected) {
    sm_source source = sm_source_of("doc", document);
    sm_span span = sm_json_place(&source, path, of_key);
    if (!expected) {
        assert_int_equal(span.length, 0);
        return;
    }
    if (span.length != strlen(expected) || memcmp(document + span.offset, expected, span.length))
        fail_msg("%s is %.*s", path, (int)span.length, document + span.offset);
}

static void finds_values_and_keys(void **state) {
    (void)state;
    assert_place("a", false, "1");
    assert_place("a", true, "\"a\"");
    assert_place("ab", false, "-1.5e3");
    assert_place("b.c[0]", false, "10");
    assert_place("b.c[1]", false, "{\"d\": \"x]}\\\"y\"}");
    assert_place("b.c[1].d", false, "\"x]}\\\"y\"");
    assert_place("b.c[1].d", true, "\"d\"");
    assert_place("b.c[2]", false, "[ ]");
    assert_place("b.c[3]", false, "true");
    assert_place("b.c[3]", true, "true"); /* an element has no key */
    assert_place("b.a", false, "null");
    assert_place("b.c", true, "\"c\"");
}

static void absent_paths_have_no_length(void **state) {
    (void)state;
    static const char *const paths[] = {"z",      "b.z",  "b.c[4]", "b.c[2][0]", "a.b", "a[0]",
                                        "b.c[1]x", "b..c", "b.c.d",  "[0]",       "."};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_place(paths[i], false, NULL);
}

static void the_nearest_place_is_never_empty(void **state) {
    (void)state;
    sm_source source = sm_source_of("doc", document);
    sm_span whole = sm_json_place(&source, "", false);
    assert_int_equal(whole.offset, 0);
    assert_int_equal(whole.length, strlen(document) - 1);
    sm_span span = sm_json_nearest_place(&source, "b.c[1].q.r[3]", true);
    assert_true(document[span.offset] == '{' && document[span.offset + 2] == 'd');
    assert_int_equal(span.length, 1);
    span = sm_json_nearest_place(&source, "q", true);
    assert_true(span.offset == 0 && span.length == 1);
    sm_error err;
    assert_int_equal(sm_json_fail(&err, &source, "b.c[3]", false, "number %d", 7), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "number 7");
    assert_true(err.line == 3 && err.span == 4);
}

/* ---- random documents: what stands at each place parses to the value jansson has there ---- */

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
        snprintf(key, sizeof key, "k%d", (int)i);
        if (kind == 5) json_array_append_new(v, random_value(rng, depth - 1));
        else json_object_set_new(v, key, random_value(rng, depth - 1));
    }
    return v;
}

static void check_place(const sm_source *source, const char *path, const json_t *expected) {
    sm_span span = sm_json_place(source, path, false);
    assert_true(span.length > 0 && span.offset + span.length <= source->length);
    json_t *there =
        json_loadb(source->text + span.offset, span.length, JSON_DECODE_ANY, NULL);
    if (!there || !json_equal(there, expected)) fail_msg("%s: another value", path);
    json_decref(there);
}

static int check_all(const sm_source *source, const char *path, const json_t *v) {
    char inner[256];
    int checked = 1;
    check_place(source, path, v);
    for (size_t i = 0; i < json_array_size(v); i++) {
        snprintf(inner, sizeof inner, "%s[%zu]", path, i);
        checked += check_all(source, inner, json_array_get(v, i));
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)v, key, value) {
        snprintf(inner, sizeof inner, "%s%s%s", path, path[0] ? "." : "", key);
        sm_span span = sm_json_place(source, inner, true);
        assert_true(span.length == strlen(key) + 2 &&
                    memcmp(source->text + span.offset + 1, key, strlen(key)) == 0);
        checked += check_all(source, inner, value);
    }
    return checked;
}

static void agrees_with_jansson(void **state) {
    (void)state;
    sm_rng rng = {42};
    int checked = 0;
    for (int i = 0; i < 300; i++) {
        json_t *v = random_value(&rng, 5);
        size_t flags = JSON_ENCODE_ANY | (i & 1 ? JSON_INDENT(3) : JSON_COMPACT) |
                       (i & 2 ? JSON_ENSURE_ASCII : 0);
        char *text = json_dumps(v, flags);
        sm_source source = sm_source_of("doc", text);
        checked += check_all(&source, "", v);
        json_decref(v);
        free(text);
    }
    assert_true(checked > 600);
}

static void broken_text_stays_inside(void **state) {
    (void)state;
    static const char *const paths[] = {"", "a", "b.c[1].d", "b.c[3]", "e", "ab"};
    for (size_t n = 0; n < sizeof document; n++) {
        char *copy = malloc(n + 1); /* exactly as long, so that a read past it is seen */
        memcpy(copy, document, n);
        sm_source source = {"doc", copy, n};
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
            sm_span span = sm_json_nearest_place(&source, paths[i], i & 1);
            assert_true(span.offset <= n && span.length <= n - span.offset);
        }
        free(copy);
    }
}

static void deep_text_costs_no_stack(void **state) {
    (void)state;
    enum { DEEP = 4000000 };
    char *text = malloc(DEEP + 16);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', DEEP);
    memcpy(text + 5 + DEEP, ",\"b\":1}", 7);
    sm_source source = {"doc", text, DEEP + 12};
    assert_int_equal(sm_json_place(&source, "b", false).length, 0);
    assert_int_equal(sm_json_place(&source, "a", false).length, DEEP + 7);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_values_and_keys),
        cmocka_unit_test(absent_paths_have_no_length),
        cmocka_unit_test(the_nearest_place_is_never_empty),
        cmocka_unit_test(agrees_with_jansson),
        cmocka_unit_test(broken_text_stays_inside),
        cmocka_unit_test(deep_text_costs_no_stack),
    };
    return cmocka_run_group_tests_name("json_place", tests, NULL, NULL);
}

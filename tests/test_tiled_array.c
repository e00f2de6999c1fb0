/* Arrays in the text of HLO: what tiles make of their sizes, and what is wrong with a text. */
#include "unit.h"
#include <stdio.h>
#include "scalemodel/module.h"

typedef struct tiled {
    int rank, minor;
    double bytes, padded_bytes, padded[8];
} tiled;

static tiled parsed(const char *text) {
    tiled a;
    const sm_module_shape *shape;
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    sm_source source = sm_source_of("hlo", text);
    if (sm_module_shape_parse(&source, arena, &shape, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    a = (tiled){.rank = shape->dim.n,
                .minor = shape->minor.n ? (int)shape->minor.at[0] : shape->dim.n - 1,
                .bytes = sm_module_data_bytes(shape),
                .padded_bytes = sm_module_bytes(shape, -1)};
    sm_module_padded(shape, a.padded);
    sm_arena_free(arena);
    return a;
}

/* Sizes are whole numbers. */
static bool same(double a, double b) { return !(a < b) && !(a > b); }

static void fails(const char *text, int column, const char *sentence) {
    const sm_module_shape *shape;
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    sm_source source = sm_source_of("hlo", text);
    assert_int_equal(sm_module_shape_parse(&source, arena, &shape, &err), SM_BAD_INPUT);
    sm_arena_free(arena);
    assert_string_equal(err.sentence, sentence);
    assert_int_equal(err.column, column);
}

static void without_tiles_nothing_is_padded(void **state) {
    tiled a = parsed("f32[3,5]");
    assert_int_equal(a.rank, 2);
    assert_true(same(a.bytes, 60));
    assert_true(same(a.padded_bytes, 60));
    assert_int_equal(a.minor, 1);
    assert_true(same(parsed("pred[]").bytes, 1));
    assert_true(same(parsed(" s8[ 7 ]{ 0 } ").padded_bytes, 7));
    assert_true(same(parsed("bf16[4,6]{0,1}").padded_bytes, 48));
}

static void minor_dimensions_are_rounded_to_tiles(void **state) {
    tiled a = parsed("f32[3,5]{1,0:T(2,2)}");
    assert_true(same(a.padded[0], 4));
    assert_true(same(a.padded[1], 6));
    assert_true(same(a.padded_bytes, 96));
    a = parsed("f32[3,5]{0,1:T(2,4)}"); /* dimension 0 is the minor one: 4 of it, 2 of the other */
    assert_true(same(a.padded[0], 4));
    assert_true(same(a.padded[1], 6));
    a = parsed("f32[9,3,5]{2,1,0:T(2,2)}");
    assert_true(same(a.padded[0], 9));
    a = parsed("f32[100]{0:T(128)}");
    assert_true(same(a.padded_bytes, 512));
}

static void later_tiles_cut_the_tile_before(void **state) {
    assert_true(same(parsed("bf16[32,32,8192]{2,1,0:T(8,128)(2,1)}").padded_bytes, 16777216));
    assert_true(same(parsed("bf16[3,5]{1,0:T(8,128)(2,1)S(1)}").padded_bytes, 2048));
    assert_true(same(parsed("s8[1,1]{1,0:T(3,1)(2,1)}").padded_bytes, 4)); /* 3 becomes 4 */
}

/* Whatever the tile: at least as large, whole tiles, less than one tile more. */
static void padding_is_least(void **state) {
    sm_rng rng = {3};
    for (int i = 0; i < 3000; i++) {
        char text[80];
        int size[2], tile[2];
        for (int d = 0; d < 2; d++) {
            size[d] = 1 + (int)sm_rng_below(&rng, 300);
            tile[d] = 1 + (int)sm_rng_below(&rng, 130);
        }
        snprintf(text, sizeof text, "s8[%d,%d]{1,0:T(%d,%d)}", size[0], size[1], tile[0], tile[1]);
        tiled a = parsed(text);
        for (int d = 0; d < 2; d++) {
            assert_true(a.padded[d] >= size[d] && a.padded[d] < size[d] + tile[d]);
            assert_int_equal((int)a.padded[d] % tile[d], 0);
        }
        assert_true(same(a.padded_bytes, a.padded[0] * a.padded[1]));
    }
}

static void wrong_texts_are_refused(void **state) {
    fails("", 1, "expected a shape");
    fails("bf17[3]", 1, "expected a shape; did you mean bf16[..]?");
    fails("f32[3,]", 7, "expected the size of a dimension");
    fails("f32[3,5", 8, "expected ',' between sizes");
    fails("f32[3,5]{1,1}", 13, "a layout names a dimension twice");
    fails("f32[3,5]{1}", 11, "a layout orders 1 of 2 dimensions");
    fails("f32[3,5]{1,2}", 13, "expected a dimension of the array");
    fails("f32[3,5]{1,0:T(0,2)}", 17, "expected the size of a tile");
    fails("f32[3,5]{1,0} x", 15, "expected the end of the shape");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tiles_nothing_is_padded),
        cmocka_unit_test(minor_dimensions_are_rounded_to_tiles),
        cmocka_unit_test(later_tiles_cut_the_tile_before),
        cmocka_unit_test(padding_is_least),
        cmocka_unit_test(wrong_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where mesh axes land on the levels of a system, and the groups that follow. */
#include "unit.h"
#include "scalemodel/cost.h"
#include <stdio.h>
#include <string.h>

static sm_system system_of(const char *text) {
    sm_system system;
    sm_error err = {0};
    sm_source source = sm_source_of("system", text);
    if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    return system;
}

/* "4@0/1+2@1/4": parts as size @ level / stride. */
static void write_group(const sm_group *group, char *out, size_t size) {
    int at = snprintf(out, size, "%s", group->parts ? "" : "-");
    for (int p = 0; p < group->parts; p++)
        at += snprintf(out + at, size - (size_t)at, "%s%d@%d/%d", p ? "+" : "", group->part[p].size,
                       group->part[p].level, group->part[p].stride);
}

static void write_placement(const sm_placement *placement, char *out, size_t size) {
    int at = 0;
    out[0] = '\0';
    for (int a = 0; a < placement->axes; a++) {
        char group[100];
        write_group(&placement->axis[a], group, sizeof group);
        at += snprintf(out + at, size - (size_t)at, "%s%s", a ? " " : "", group);
    }
}

static sm_status place(const char *system_text, const char *mesh_text, sm_placement *placement,
                       sm_error *err) {
    sm_system system = system_of(system_text);
    sm_source source = sm_source_of("--mesh", mesh_text);
    sm_mesh mesh;
    memset(err, 0, sizeof *err);
    assert_int_equal(sm_mesh_parse(&source, &mesh, err), SM_OK);
    return sm_placement_of_mesh(&system, &mesh, &source, placement, err);
}

static void expect_placed(const char *system, const char *mesh, const char *want, int idle) {
    sm_placement placement;
    sm_error err;
    char got[400];
    if (place(system, mesh, &placement, &err) != SM_OK)
        fail_msg("%s on %s: %s", mesh, system, err.sentence);
    write_placement(&placement, got, sizeof got);
    if (strcmp(got, want) != 0) fail_msg("%s on %s: %s, expected %s", mesh, system, got, want);
    assert_int_equal(placement.idle, idle);
}

static void expect_refused(const char *system, const char *mesh, const char *sentence, int column) {
    sm_placement placement;
    sm_error err;
    assert_int_equal(place(system, mesh, &placement, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    assert_int_equal(err.column, column);
    assert_int_equal(err.span, 1); /* the name of the axis */
}

static void test_axes_take_dimensions_in_order(void **state) {
    expect_placed("tpu-v4:4x4x4", "X=4,Y=4,Z=4", "4@0/1 4@1/1 4@2/1", 1);
    expect_placed("tpu-v5e:16x16", "X=16,Y=16", "16@0/1 16@1/1", 1);
    expect_placed("tpu-v5e:8x4", "X=8,Y=4", "8@0/1 4@1/1", 1);
    expect_placed("tpu-v5e:8x4", "X=4,Y=8", "4@1/1 8@0/1", 1);
}

static void test_other_axes_take_factors_row_major(void **state) {
    expect_placed("tpu-v5e:4x4", "X=16", "4@0/1+4@1/1", 1);
    expect_placed("tpu-v5e:4x4", "X=2,Y=8", "2@0/2 2@0/1+4@1/1", 1);
    expect_placed("tpu-v4:4x4x4", "X=16,Y=4", "4@1/1+4@2/1 4@0/1", 1);
    expect_placed("tpu-v5p:16x20x28", "X=4,Y=80,Z=28", "4@0/4 4@0/1+20@1/1 28@2/1", 1);
}

static void test_smaller_mesh_leaves_chips_idle(void **state) {
    expect_placed("tpu-v5e:4x4", "X=4", "4@0/1", 4);
    expect_placed("h100-sxm:128x8", "X=8", "8@0/1", 128);
    expect_placed("tpu-v5e:16x16x4slices", "X=16,Y=16", "16@0/1 16@1/1", 4);
}

static void test_last_axis_sits_innermost_on_switches(void **state) {
    expect_placed("h100-sxm:128x8", "data=128,tensor=8", "32@1/1+4@2/1 8@0/1", 1);
    expect_placed("h100-sxm:128x8", "data=64,fsdp=4,tensor=4", "16@1/2+4@2/1 2@0/4+2@1/1 4@0/1", 1);
    expect_placed("h100-sxm:2x8", "X=16", "8@0/1+2@1/1", 1);
}

static void test_slices_go_to_the_first_axis(void **state) {
    expect_placed("tpu-v5e:16x16x4slices", "D=4,X=16,Y=16", "4@2/1 16@0/1 16@1/1", 1);
    expect_placed("tpu-v5e:16x16x4slices", "D=8,X=128", "2@0/8+4@2/1 8@0/1+16@1/1", 1);
    expect_placed("tpu-v5e:4x4x4slices", "D=4,X=4,Y=4", "4@2/1 4@0/1 4@1/1", 1);
}

static void test_named_levels_are_obeyed(void **state) {
    expect_placed("tpu-v5p:16x20x28", "X=28@2,Y=20@1,Z=16@0", "28@2/1 20@1/1 16@0/1", 1);
    expect_placed("h100-sxm:128x8", "X=8@1,Y=128@0", "8@0/1 32@1/1+4@2/1", 1);
    expect_placed("h100-sxm:128x8", "X=4@0,Y=8@1", "4@1/1 8@0/1", 32);
    expect_placed("tpu-v4:4x4x8", "X=32@0.2,Y=4", "4@0/1+8@2/1 4@1/1", 1);
    expect_placed("tpu-v5e:4x4x4slices", "D=4@2,X=16", "4@2/1 4@0/1+4@1/1", 1);
    expect_placed("tpu-v5e:1x4", "X=4@1", "4@0/1", 1);
}

static void test_refusals_say_why_and_where(void **state) {
    expect_refused("tpu-v5e:4x4", "X=8,Y=4", "the mesh has 32 chips but tpu-v5e:4x4 has only 16",
                   5);
    expect_refused("tpu-v5e:4x4", "X=3", "axis X=3 does not divide what is left of tpu-v5e:4x4", 1);
    expect_refused("h100-sxm:128x8", "X=8@5",
                   "h100-sxm:128x8 has no level 5: its shape has levels 0 to 1", 1);
    expect_refused("tpu-v5e:4x4", "X=8@0",
                   "axis X=8 does not divide what is left of the levels named after @", 1);
    expect_refused("tpu-v5e:4x4", "X=4@0,Y=2@0",
                   "axis X=4 does not divide what is left of the levels named after @", 1);
}

/* ---- fill ---- */

static void test_fill_takes_levels_from_the_inside(void **state) {
    sm_system system = system_of("h100-sxm:128x8");
    sm_placement placement;
    char got[200];
    assert_true(
        sm_placement_fill(&system, 3, (int[]){8, 16, 8}, (int[]){2, 0, 1}, NULL, &placement));
    write_placement(&placement, got, sizeof got);
    assert_string_equal(got, "8@1/1 4@1/8+4@2/1 8@0/1");
    assert_int_equal(placement.used, 1024);
    assert_false(sm_placement_fill(&system, 1, (int[]){3}, NULL, NULL, &placement));
    assert_false(sm_placement_fill(&system, 1, (int[]){0}, NULL, NULL, &placement));
    assert_false(sm_placement_fill(&system, 1, (int[]){2048}, NULL, NULL, &placement));
}

static void test_fill_follows_the_level_order(void **state) {
    sm_system system = system_of("tpu-v5p:16x20x28");
    sm_placement placement;
    char got[200];
    assert_true(sm_placement_fill(&system, 2, (int[]){4, 20}, NULL, (int[]){2, 1, 0}, &placement));
    write_placement(&placement, got, sizeof got);
    assert_string_equal(got, "4@2/1 20@1/1");
    assert_false(sm_placement_fill(&system, 1, (int[]){4}, NULL, (int[]){2, 1, 1}, &placement));
    assert_false(sm_placement_fill(&system, 1, (int[]){4}, NULL, (int[]){3, 1, 0}, &placement));
    assert_false(sm_placement_fill(&system, 1, (int[]){4}, NULL, (int[]){-1, 1, 0}, &placement));
}

/* The chip at the given coordinates of all axes: what a placement means. */
static int chip_at(const sm_system *system, const sm_placement *placement, const int *coordinate) {
    int chip = 0, below[SM_MAX_LEVELS + 1] = {1};
    for (int l = 0; l < system->levels; l++) below[l + 1] = below[l] * system->level[l].size;
    for (int a = 0; a < placement->axes; a++) {
        int rest = coordinate[a];
        for (int p = 0; p < placement->axis[a].parts; p++) {
            const sm_part *part = &placement->axis[a].part[p];
            chip += rest % part->size * part->stride * below[part->level];
            rest /= part->size;
        }
    }
    return chip;
}

/* Random divisors in random order: every chip is used exactly once. */
static void test_fill_uses_every_chip_once(void **state) {
    static const char *const texts[] = {"tpu-v5p:4x4x8", "h100-sxm:16x8", "tpu-v5e:4x4x2slices",
                                        "h100-sxm:64x8"};
    sm_rng rng = {1};
    for (int round = 0; round < 2000; round++) {
        sm_system system = system_of(texts[round % 4]);
        int sizes[4], order[4] = {0, 1, 2, 3}, left = system.chips;
        for (int a = 0; a < 4; a++) {
            do sizes[a] = 1 + (int)sm_rng_below(&rng, 16);
            while (left % sizes[a] != 0);
            left /= sizes[a];
            int other = (int)sm_rng_below(&rng, (uint64_t)a + 1), swap = order[a];
            order[a] = order[other];
            order[other] = swap;
        }
        sm_placement placement;
        assert_true(sm_placement_fill(&system, 4, sizes, order, NULL, &placement));
        assert_int_equal(placement.used * left, system.chips);
        assert_int_equal(placement.idle, left);
        bool seen[512] = {false};
        for (int i = 0; i < placement.used; i++) {
            int c[4], rest = i;
            for (int a = 0; a < 4; a++) {
                c[a] = rest % sizes[a];
                rest /= sizes[a];
            }
            int chip = chip_at(&system, &placement, c);
            assert_in_range(chip, 0, system.chips - 1);
            assert_false(seen[chip]);
            seen[chip] = true;
        }
    }
}

static void test_joining_merges_what_touches(void **state) {
    sm_placement placement;
    sm_error err;
    char got[200];
    assert_int_equal(place("tpu-v5e:16x16", "X=4,Y=2,Z=2,W=16", &placement, &err), SM_OK);
    write_placement(&placement, got, sizeof got);
    assert_string_equal(got, "4@1/4 2@1/2 2@1/1 16@0/1");
    sm_group all = sm_group_join(&placement, 0xf), ends = sm_group_join(&placement, 0x5);
    write_group(&all, got, sizeof got);
    assert_string_equal(got, "16@0/1+16@1/1");
    assert_int_equal(all.size, 256);
    write_group(&ends, got, sizeof got);
    assert_string_equal(got, "2@1/1+4@1/4");
    sm_group none = sm_group_join(&placement, 0);
    assert_int_equal(none.size, 1);
    assert_int_equal(none.parts, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes_take_dimensions_in_order),
        cmocka_unit_test(test_other_axes_take_factors_row_major),
        cmocka_unit_test(test_smaller_mesh_leaves_chips_idle),
        cmocka_unit_test(test_last_axis_sits_innermost_on_switches),
        cmocka_unit_test(test_slices_go_to_the_first_axis),
        cmocka_unit_test(test_named_levels_are_obeyed),
        cmocka_unit_test(test_refusals_say_why_and_where),
        cmocka_unit_test(test_fill_takes_levels_from_the_inside),
        cmocka_unit_test(test_fill_follows_the_level_order),
        cmocka_unit_test(test_fill_uses_every_chip_once),
        cmocka_unit_test(test_joining_merges_what_touches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

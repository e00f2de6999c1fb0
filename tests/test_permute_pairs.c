/* Permutes of compiled modules: by the links that the messages between their pairs pass, counted by
 * hand. */
#include "unit.h"
#include "scalemodel/profile.h"

#include <math.h>
#include <stdio.h>

static sm_arena *arena;

static int make_arena(void **state) { return (arena = sm_arena_new()) == NULL; }
static int free_arena(void **state) {
    sm_arena_free(arena);
    return 0;
}

static sm_system system_of(const char *text) {
    sm_system system;
    sm_source source = sm_source_of("--on", text);
    assert_int_equal(sm_system_parse(&source, NULL, 0, &system, NULL), SM_OK);
    return system;
}

/* Pairs of devices of a mesh of rows x columns: everybody `down` rows and `right` columns on, round
 * at the ends; rows and columns in each other's place; or as told. */
typedef struct permute_case {
    const char *system;
    int rows, columns;
    int down, right;
    bool transposed;
    const char *pairs, *permute, *slices; /* NULL: all, of one array, whole */
    int level; /* the one whose links are busiest, with so many messages on one of them */
    double messages;
} permute_case;

static const char *pairs_of(const permute_case *k) {
    int devices = k->rows * k->columns;
    char *text = sm_arena_alloc(arena, (size_t)devices * 16 + 1), *end = text;
    if (k->pairs) return k->pairs;
    for (int i = 0; i < devices; i++) {
        int row = i / k->columns, column = i % k->columns;
        int to = (row + k->down) % k->rows * k->columns + (column + k->right) % k->columns;
        if (k->transposed) to = column * k->columns + row;
        end += sprintf(end, "%s{%d,%d}", i > 0 ? "," : "", i, to);
    }
    return text;
}

static const sm_profile_collective *permute_of(const permute_case *k) {
    sm_system *system = sm_arena_alloc(arena, sizeof *system);
    *system = system_of(k->system);
    sm_mesh mesh = {.axes = 2,
                    .axis = {{.name = "X", .size = k->rows}, {.name = "Y", .size = k->columns}}};
    sm_source text = sm_source_of(
        "m.hlo",
        sm_arena_printf(
            arena,
            "HloModule m, num_partitions=%d\nENTRY e {\n  a = f32[1048576] parameter(0)\n"
            "  z = s32[] constant(0)\n  i = (s32[]) tuple(z)\n"
            "  ROOT r = %s, channel_id=1, source_target_pairs={%s}%s\n}\n",
            k->rows * k->columns, k->permute ? k->permute : "f32[1048576] collective-permute(a)",
            pairs_of(k), k->slices ? k->slices : ""));
    const sm_module *m = NULL;
    assert_int_equal(sm_module_parse(&text, arena, &m, NULL), SM_OK);
    const sm_profile *p = NULL;
    sm_profile_setup setup = {.module = m,
                              .system = system,
                              .calibration = sm_calibration_of(&system->chip),
                              .mesh = &mesh};
    assert_int_equal(sm_profile_new(&setup, arena, &p, NULL), SM_OK);
    assert_int_equal(p->collectives, 1);
    const sm_profile_collective *c = &p->collective[0];
    assert_true(c->lower_s <= c->expected_s && c->expected_s <= c->upper_s);
    return c;
}

static void permutes_pass_the_links_between_their_pairs(void **state) {
    static const permute_case cases[] = {
        /* a ring of 8: by one, by three, to the other side half each way */
        {.system = "tpu-v5p:4x4x8",
         .rows = 16,
         .columns = 8,
         .right = 1,
         .level = 2,
         .messages = 1},
        {.system = "tpu-v5p:4x4x8",
         .rows = 16,
         .columns = 8,
         .right = 3,
         .level = 2,
         .messages = 3},
        {.system = "tpu-v5p:4x4x8",
         .rows = 16,
         .columns = 8,
         .right = 4,
         .level = 2,
         .messages = 2},
        /* a line of 8: the last go back past all */
        {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .right = 1, .level = 1, .messages = 1},
        {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .right = 3, .level = 1, .messages = 3},
        {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .down = 1, .level = 0, .messages = 1},
        {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .down = 2, .level = 0, .messages = 2},
        /* a quarter of a row passes the middle */
        {.system = "tpu-v5e:8x8", .rows = 8, .columns = 8, .transposed = true, .messages = 2},
        {.system = "tpu-v5e:4x4", .rows = 4, .columns = 4, .transposed = true, .messages = 1},
        /* few send: one straight way is all there is */
        {.system = "tpu-v5e:4x8",
         .rows = 4,
         .columns = 8,
         .pairs = "{0,1}",
         .level = 1,
         .messages = 1},
        {.system = "tpu-v5e:4x8",
         .rows = 4,
         .columns = 8,
         .pairs = "{0,3},{1,4}",
         .level = 1,
         .messages = 2},
        /* nodes of 8: inside one, all from one to the next, three into one */
        {.system = "h100-sxm:4x8", .rows = 4, .columns = 8, .right = 3, .level = 0, .messages = 1},
        {.system = "h100-sxm:4x8", .rows = 4, .columns = 8, .down = 1, .level = 1, .messages = 8},
        {.system = "h100-sxm:4x8",
         .rows = 4,
         .columns = 8,
         .pairs = "{0,8}",
         .level = 1,
         .messages = 1},
        {.system = "h100-sxm:4x8",
         .rows = 4,
         .columns = 8,
         .pairs = "{0,24},{8,25},{16,26}",
         .level = 1,
         .messages = 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const permute_case *k = &cases[i];
        sm_system system = system_of(k->system);
        double link = system.level[k->level].bytes_per_s_oneway;
        double seconds = permute_of(k)->lower_s, by_hand = 4194304 * k->messages / link;
        if (fabs(seconds / by_hand - 1) > 1e-9)
            fail_msg("case %zu on %s: %g, by hand %g", i, k->system, seconds, by_hand);
    }
}

/* Which way a message goes makes no odds where each has one, on however many chips. */
static void straight_ways_leave_nothing_open(void **state) {
    static const permute_case shift = {
        .system = "tpu-v5p:16x20x28", .rows = 320, .columns = 28, .right = 1};
    const sm_profile_collective *c = permute_of(&shift);
    assert_true(c->upper_s <= c->expected_s * 1.001);
}

/* Seven hops along a line take longer than one, and whoever sends to itself for none. */
static void permutes_wait_for_their_hops(void **state) {
    permute_case far = {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .pairs = "{0,7}"};
    permute_case near = far, none = far;
    near.pairs = "{0,1}", none.pairs = "{0,0}";
    sm_system system = system_of(far.system);
    double hops = permute_of(&far)->expected_s - permute_of(&near)->expected_s;
    assert_true(fabs(hops / (6 * system.level[1].hop_latency_s) - 1) < 1e-6);
    assert_true(permute_of(&none)->expected_s == 0);
}

/* A permute into another array has four operands, of which one is sent, or pieces of it. */
static void what_says_where_is_not_sent(void **state) {
    static const char into[] = "f32[1048576] collective-permute(a, a, i, i)",
                      four[] = "(f32[1048576], f32[1048576], f32[1048576], f32[1048576]) "
                               "collective-permute(a, a, a, a)";
    permute_case k = {.system = "tpu-v5e:4x8", .rows = 4, .columns = 8, .pairs = "{0,1}"};
    k.permute = into;
    assert_true(permute_of(&k)->bytes == 4 * 1048576.0);
    k.slices = ", slice_sizes={{1000},{24}}";
    assert_true(permute_of(&k)->bytes == 4 * 1024.0);
    k.permute = four, k.slices = NULL;
    assert_true(permute_of(&k)->bytes == 16 * 1048576.0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(permutes_pass_the_links_between_their_pairs),
        TEST(straight_ways_leave_nothing_open),
        TEST(permutes_wait_for_their_hops),
        TEST(what_says_where_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* StableHLO: what is read of it, the program of one device that its shardings make of it and the
 * collectives in it; every allocation may fail; what is refused, and where. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/spmd.h"

#include <string.h>

static sm_arena *arena;
static int make_arena(void **state) { return (arena = sm_arena_new()) == NULL; }
static int free_arena(void **state) {
    sm_arena_free(arena);
    return 0;
}

static const char mesh[] = "sdy.mesh @mesh = <[\"data\"=2, \"tensor\"=4]>\n";

static const sm_module *whole_of(const char *text) {
    const sm_module *m = NULL;
    sm_error err;
    sm_source source = sm_source_of("m.mlir", text);
    if (sm_module_parse(&source, arena, &m, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.sentence);
    return m;
}

static const sm_module *device_of(const sm_module *whole) {
    const sm_module *m = NULL;
    sm_error err;
    if (sm_module_partition(whole, arena, &m, &err)) fail_msg("%s", err.sentence);
    return m;
}

/* A function of x and w of these types, with what follows in it. */
static const sm_module *program_of(const char *x, const char *w, const char *result,
                                   const char *lines) {
    return device_of(whole_of(
        sm_arena_printf(arena,
                        "module @m attributes {mhlo.num_partitions = 8 : i32} {\n  %s"
                        "  func.func public @main(%%x: %s, %%w: %s) -> (%s) {\n%s\n  }\n}\n",
                        mesh, x, w, result, lines)));
}

#define AT(axes) "{sdy.sharding = #sdy.sharding<@mesh, [" axes "]>}"

static const char *sizes_of(const sm_module_shape *s) {
    const char *text = "";
    for (int i = 0; i < s->dim.n; i++)
        text = sm_arena_printf(arena, "%s%s%lld", text, i ? "x" : "", (long long)s->dim.at[i]);
    return text;
}

/* "all-gather 64x8 over 4; ..." of the entry. */
static const char *collectives_of(const sm_module *m) {
    const sm_computation *c = &m->computation[m->entry];
    const char *text = "";
    for (int i = 0; i < c->n; i++) {
        const sm_instruction *it = &c->instruction[i];
        if (sm_module_class_of(it->opcode) != SM_CLASS_COLLECTIVE) continue;
        text = sm_arena_printf(arena, "%s%s%s %s over %d", text, text[0] ? "; " : "",
                               it->opcode_name, sizes_of(it->shape), it->groups.size);
    }
    return text;
}

static const char *result_of(const sm_module *m) {
    const sm_computation *c = &m->computation[m->entry];
    return sizes_of(c->instruction[c->root].shape);
}

#define PRODUCT                                                                                    \
    "    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xbf16>, "  \
    "tensor<32x64xbf16>) -> tensor<16x64xbf16>\n"
#define RETURN "    return %0 : tensor<16x64xbf16>"

/* The four cases of the book's chapter 3, and the two ways to end the third. */
static void a_product_is_partitioned(void **state) {
    static const struct {
        const char *x, *w, *out, *collectives, *result;
    } cases[] = {
        {AT("{\"data\"}, {}"), AT("{}, {\"tensor\"}"), AT("{\"data\"}, {\"tensor\"}"), "", "8x16"},
        {AT("{\"data\"}, {}"), AT("{\"data\"}, {}"), AT("{\"data\"}, {}"),
         "all-gather 32x64 over 2", "8x64"},
        {AT("{}, {\"tensor\"}"), AT("{\"tensor\"}, {}"), AT("{}, {}"), "all-reduce 16x64 over 4",
         "16x64"},
        {AT("{}, {\"tensor\"}"), AT("{\"tensor\"}, {}"), AT("{\"tensor\"}, {}"),
         "reduce-scatter 4x64 over 4", "4x64"},
        {AT("{\"data\"}, {}"), AT("{}, {\"data\", \"tensor\"}"), AT("{\"data\"}, {\"tensor\"}"),
         "all-to-all 32x16 over 2", "8x16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_module *m = program_of(
            sm_arena_printf(arena, "tensor<16x32xbf16> %s", cases[i].x),
            sm_arena_printf(arena, "tensor<32x64xbf16> %s", cases[i].w),
            sm_arena_printf(arena, "tensor<16x64xbf16> %s", cases[i].out), PRODUCT RETURN);
        if (i < 4) assert_string_equal(collectives_of(m), cases[i].collectives);
        assert_string_equal(result_of(m), cases[i].result);
        assert_true(m->partitioned && !m->whole);
    }
}

/* What nobody shards follows those that are: through an elementwise chain, a reshape, a loop. */
static void shardings_spread(void **state) {
    const sm_module *m =
        program_of("tensor<16x32xbf16> " AT("{\"data\"}, {\"tensor\"}"), "tensor<16x32xbf16>",
                   "tensor<16x8x4xbf16>",
                   "    %0 = stablehlo.add %x, %w : tensor<16x32xbf16>\n"
                   "    %1 = stablehlo.exponential %0 : tensor<16x32xbf16>\n"
                   "    %2 = stablehlo.reshape %1 : (tensor<16x32xbf16>) -> tensor<16x8x4xbf16>\n"
                   "    return %2 : tensor<16x8x4xbf16>");
    assert_string_equal(collectives_of(m), "");
    assert_string_equal(result_of(m), "8x2x4");
    assert_string_equal(sizes_of(m->computation[m->entry].instruction[1].shape), "8x8");
}

static const char loop[] =
    "module @loop attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "  sdy.mesh @mesh = <[\"data\"=2, \"tensor\"=4]>\n"
    "  func.func public @main(%arg0: tensor<5x32x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, "
    "[{}, "
    "{\"tensor\"}, {}]>, tf.aliasing_output = 0 : i32} loc(\"w\"), %arg1: tensor<16x32xbf16> "
    "{sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>}) -> (tensor<5x32x32xbf16>, "
    "tensor<16x32xbf16> {jax.result_info = \"x\"}) {\n"
    "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg1) : tensor<i32>, "
    "tensor<16x32xbf16>\n"
    "    cond {\n"
    "      %c_1 = stablehlo.constant dense<5> : tensor<i32>\n"
    "      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "      stablehlo.return %1 : tensor<i1>\n"
    "    } do {\n"
    "      %1 = func.call @layer(%arg0, %iterArg, %iterArg_0) : (tensor<5x32x32xbf16>, "
    "tensor<i32>, "
    "tensor<16x32xbf16>) -> tensor<16x32xbf16> loc(#loc2)\n"
    "      %c_1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "      %2 = stablehlo.add %iterArg, %c_1 : tensor<i32>\n"
    "      stablehlo.return %2, %1 : tensor<i32>, tensor<16x32xbf16>\n"
    "    } loc(#loc1)\n"
    "    %3 = \"stablehlo.case\"(%0#0) ({\n"
    "      stablehlo.return %0#1 : tensor<16x32xbf16>\n"
    "    }, {\n"
    "      %4 = stablehlo.negate %0#1 : tensor<16x32xbf16>\n"
    "      stablehlo.return %4 : tensor<16x32xbf16>\n"
    "    }) : (tensor<i32>) -> tensor<16x32xbf16>\n"
    "    return %arg0, %3 : tensor<5x32x32xbf16>, tensor<16x32xbf16>\n"
    "  }\n"
    "  func.func private @layer(%arg0: tensor<5x32x32xbf16>, %arg1: tensor<i32>, %arg2: "
    "tensor<16x32xbf16>) -> tensor<16x32xbf16> {\n"
    "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 32, 32] : "
    "(tensor<5x32x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xbf16>\n"
    "    %1 = stablehlo.reshape %0 : (tensor<1x32x32xbf16>) -> tensor<32x32xbf16>\n"
    "    %2 = stablehlo.dot_general %arg2, %1, contracting_dims = [1] x [0], precision = [DEFAULT, "
    "DEFAULT] : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<16x32xbf16> loc(#loc3)\n"
    "    return %2 : tensor<16x32xbf16>\n"
    "  }\n"
    "}\n"
    "#loc = loc(\"model.py\":12:3 to :9)\n"
    "#loc1 = loc(\"jit(f)/while\"(#loc))\n"
    "#loc2 = loc(\"jit(f)/while/body/closed_call\"(#loc))\n"
    "#loc3 = loc(\"dot_general\"(callsite(#loc at #loc1)))\n";

static const sm_instruction *first_of(const sm_module *m, sm_module_opcode opcode,
                                      int *computation) {
    for (int c = 0; c < m->computations; c++)
        for (int i = 0; i < m->computation[c].n; i++)
            if (m->computation[c].instruction[i].opcode == opcode) {
                if (computation) *computation = c;
                return &m->computation[c].instruction[i];
            }
    fail_msg("no %s", sm_module_opcode_name(opcode));
    return NULL;
}

/* Functions are read where they are called, a loop is handed what its body reads from around it,
 * and runs as often as its condition says; places come from locations. */
static void loops_and_calls_are_read(void **state) {
    const sm_module *m = whole_of(loop);
    const sm_module_analysis *a;
    int body, entry;
    const sm_instruction *dot = first_of(m, SM_OPCODE_DOT, &body);
    const sm_instruction *w = first_of(m, SM_OPCODE_WHILE, &entry);
    assert_true(m->whole);
    assert_int_equal(m->devices, 8);
    assert_int_equal(entry, m->entry);
    assert_int_equal(sm_module_trips(m, &m->computation[entry], w), 5);
    assert_int_equal(w->shape->parts, 3);
    assert_string_equal(dot->op_name, "jit(f)/while/body/closed_call/dot_general");
    assert_string_equal(dot->file, "model.py");
    assert_int_equal(dot->file_line, 12);
    assert_int_equal(m->in_place.n, 1);
    assert_int_equal(sm_module_analyse(m, arena, &a, NULL), SM_OK);
    assert_true(a->runs[body].times == 5);
    assert_true(sm_module_work_of(a, &m->computation[body], dot).matrix_flops == 2. * 16 * 32 * 32);
    /* Of a device: what the loop carries is cut as the weights that multiply it are. */
    m = device_of(m);
    const sm_instruction *c = first_of(m, SM_OPCODE_REDUCE_SCATTER, &body);
    assert_string_equal(sizes_of(c->shape), "8x8");
    assert_int_equal(c->groups.size, 4);
    assert_int_equal(c->groups.member[3], 3);
    assert_string_equal(sizes_of(&first_of(m, SM_OPCODE_WHILE, NULL)->shape->part[1]), "8x8");
    assert_string_equal(sizes_of(first_of(m, SM_OPCODE_NEGATE, NULL)->shape), "8x8");
}

/* Inside a shard_map the program's own collectives stand, on its own parts. */
static void a_shard_map_stays_as_it_is(void **state) {
    const sm_module *m = program_of(
        "tensor<16x32xbf16>", "tensor<32x64xbf16>", "tensor<16x64xbf16>",
        "    %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{\"data\"}, {}]>, <@mesh, "
        "[{}, "
        "{\"tensor\"}]>] out_shardings=[<@mesh, [{\"data\"}, {}]>] manual_axes={\"data\", "
        "\"tensor\"} "
        "(%a: tensor<8x32xbf16>, %b: tensor<32x16xbf16>) {\n"
        "      %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>\n"
        "      %2 = \"stablehlo.all_gather\"(%1) <{all_gather_dim = 1 : i64, channel_handle = "
        "#stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], "
        "[4, 5, "
        "6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<8x16xbf16>) -> "
        "tensor<8x64xbf16>\n"
        "      sdy.return %2 : tensor<8x64xbf16>\n"
        "    } : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>\n" RETURN);
    assert_string_equal(collectives_of(m), "all-gather 8x64 over 4");
}

/* Sums of two partial sums are reduced once, and where only slices of them are read, scattered. */
static void sums_are_reduced_once(void **state) {
    const sm_module *m = program_of(
        "tensor<16x32xbf16> " AT("{}, {\"tensor\"}"), "tensor<32x64xbf16> " AT("{\"tensor\"}, {}"),
        "tensor<16x64xbf16> " AT("{\"tensor\"}, {}"),
        PRODUCT "    %1 = stablehlo.negate %x : tensor<16x32xbf16>\n"
                "    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : "
                "(tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>\n"
                "    %3 = stablehlo.add %0, %2 : tensor<16x64xbf16>\n"
                "    %4 = sdy.sharding_constraint %3 <@mesh, [{}, {}]> : tensor<16x64xbf16>\n"
                "    return %4 : tensor<16x64xbf16>");
    assert_string_equal(collectives_of(m), "reduce-scatter 4x64 over 4");
}

static void refusals_have_a_place(void **state) {
    static const struct {
        const char *text;
        int line;
        const char *sentence;
    } cases[] = {
        {"module {\n}\n", 3, "the module has no function"},
        {"func.func @main(%a: tensor<2xf33>) {\n}", 1,
         "expected the type of an array's elements: bf16, f32, i32"},
        {"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %b : tensor<2xf32>\n}", 2,
         "no value of this name stands before this one"},
        {"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = call @g(%a) : "
         "(tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}",
         2, "the module has no function of this name"},
        {"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = call @main(%a) : "
         "(tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}",
         3, "functions and regions within each other: too many"},
        {"func.func @main(%a: tensor<2xf32>) {\n  %0 = sdy.sharding_constraint %a <@mesh, "
         "[{\"x\"}]> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}",
         2, "the module's mesh has no axis of this name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_module *m;
        sm_error err;
        sm_source source = sm_source_of("m.mlir", cases[i].text);
        assert_int_equal(sm_module_parse(&source, arena, &m, &err), SM_BAD_INPUT);
        assert_string_equal(err.sentence, cases[i].sentence);
        assert_int_equal(err.line, cases[i].line);
    }
}

static void every_allocation_may_fail(void **state) {
    sm_source source = sm_source_of("m.mlir", loop);
    FOR_EACH_FAILING_ALLOCATION(over) {
        const sm_module *m;
        sm_arena *own = sm_arena_new();
        sm_status status = SM_INTERNAL;
        if (own) status = sm_module_parse(&source, own, &m, NULL);
        if (own && !status) status = sm_module_partition(m, own, &m, NULL);
        sm_arena_free(own);
        assert_true(status == (failing_alloc_refused(&over) ? SM_INTERNAL : SM_OK));
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)
    const struct CMUnitTest tests[] = {
        TEST(a_product_is_partitioned),  TEST(shardings_spread),
        TEST(loops_and_calls_are_read),  TEST(a_shard_map_stays_as_it_is),
        TEST(sums_are_reduced_once),     TEST(refusals_have_a_place),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

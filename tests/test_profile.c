/* Compiled modules: what is read of their text, FLOPs, trips of loops, groups of devices, memory,
 * the timeline; every allocation may fail; what is refused, and where. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/io.h"
#include "scalemodel/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire_written.h"

static const sm_module *module_of(const char *text) {
    const sm_module *m = NULL;
    sm_error err;
    sm_source source = sm_source_of("m.hlo", text);
    if (sm_module_parse(&source, arena, &m, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.sentence);
    return m;
}

static const sm_module_analysis *analysis_of(const sm_module *m) {
    const sm_module_analysis *a = NULL;
    assert_int_equal(sm_module_analyse(m, arena, &a, NULL), SM_OK);
    return a;
}

/* An entry of these lines, after parameters a and b of these shapes. */
static const sm_module *entry_of(const char *a, const char *b, const char *lines) {
    return module_of(sm_arena_printf(arena,
                                     "HloModule m, num_partitions=8\n"
                                     "sum (x: f32[], y: f32[]) -> f32[] {\n"
                                     "  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
                                     "  ROOT s = f32[] add(x, y)\n}\n"
                                     "ENTRY e {\n  a = %s parameter(0)\n  b = %s parameter(1)\n"
                                     "  %s\n}\n",
                                     a, b, lines));
}

static const sm_instruction *root_of(const sm_module *m) {
    const sm_computation *e = &m->computation[m->entry];
    return &e->instruction[e->root];
}

static sm_module_work work_of_root(const sm_module *m) {
    return sm_module_work_of(analysis_of(m), &m->computation[m->entry], root_of(m));
}

static int make_arena(void **state) { return (arena = sm_arena_new()) == NULL; }
static int free_arena(void **state) {
    sm_arena_free(arena);
    return 0;
}

/* ---- reading ---- */

static void a_module_is_read(void **state) {
    const sm_module *m = module_of(
        "HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, "
        "entry_computation_layout={(f32[2]{0}, /*index=1*/s32[])->f32[2]{0}}, replica_count=2, "
        "num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = "
        "#sdy.mesh<[\"data\"=4, \"model\"=2]>}}\n\n"
        "FileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n"
        "1 {file_name_id=1 function_name_id=1 line=58 end_line=58 column=12 end_column=44}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n"
        "%add.1 (x: f32[], y: f32[]) -> f32[] {\n"
        "  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
        "  ROOT %add.2 = f32[] add(%x, %y)\n}, execution_thread=\"main\"\n\n"
        "ENTRY %main (p: f32[2], q: s32[]) -> f32[2] {\n"
        "  %p = f32[2]{0:T(256)} parameter(0), metadata={op_name=\"x[\\'w\\']\"}\n"
        "  %q = s32[] parameter(1)\n"
        "  %c = f32[2,2]{1,0} constant({ {1, 2}, {3, -inf} })\n"
        "  %k = s32[] constant(-7), metadata={op_name=\"k\" stack_frame_id=1}\n"
        "  ROOT %r = f32[2]{0:T(256)} all-reduce(f32[2]{0:T(256)} %p), channel_id=1,\n"
        "    replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, to_apply=%add.1\n}\n");
    assert_string_equal(m->name, "jit_f");
    assert_int_equal(m->devices, 8);
    assert_true(m->scheduled);
    assert_int_equal(m->axes, 2);
    assert_string_equal(m->axis[1].name, "model");
    assert_int_equal(m->in_place.n, 1);
    const sm_computation *e = &m->computation[m->entry];
    assert_string_equal(e->name, "main");
    assert_int_equal(e->n, 5);
    assert_true(e->instruction[3].known);
    assert_int_equal(e->instruction[3].number, -7);
    assert_string_equal(e->instruction[3].file, "a.py");
    assert_int_equal(e->instruction[3].file_line, 58);
    const sm_instruction *r = root_of(m);
    assert_int_equal(r->groups.n, 2);
    assert_int_equal(r->groups.size, 4);
    assert_int_equal(r->groups.member[1], 2);
    assert_string_equal(m->computation[r->call[0]].name, "add.1");
}

/* The same groups in every spelling. */
static void groups_in_each_spelling(void **state) {
    static const char *const spelling[] = {"{{0,2,4,6},{1,3,5,7}}",
                                           "[2,4]<=[4,2]T(1,0)",
                                           "mesh['x'=4,'y'=2] {'x'}",
                                           "mesh['x'=4,'y'=2,'z'=1] {'x','z'}",
                                           "mesh['x'=8] {'x':(1)4}",
                                           "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}",
                                           "mesh['x'=2,'y'=4], device_ids=(0,2,4,6,1,3,5,7) {'y'}"};
    for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++) {
        const sm_module *m =
            entry_of("f32[8]", "f32[8]",
                     sm_arena_printf(arena,
                                     "ROOT r = f32[8] all-reduce(a), channel_id=1, "
                                     "replica_groups=%s, to_apply=sum",
                                     spelling[i]));
        const sm_module_groups *g = &root_of(m)->groups;
        assert_int_equal(g->n, 2);
        assert_int_equal(g->size, 4);
        for (int k = 0; k < 8; k++) assert_int_equal(g->member[k], k < 4 ? 2 * k : 2 * (k - 4) + 1);
    }
}

static void bytes_have_the_padding_of_tiles(void **state) {
    const sm_module *m = entry_of("f32[3,5]{1,0:T(2,2)}",
                                  "(bf16[100,100]{0,1:T(8,128)(2,1)S(1)}, s4[16]{0:E(4)}, token[])",
                                  "ROOT r = f32[3,5] copy(a)");
    const sm_instruction *it = m->computation[m->entry].instruction;
    assert_true(sm_module_bytes(it[0].shape, 0) == 4 * 6 * 4);
    assert_true(sm_module_data_bytes(it[0].shape) == 60);
    assert_true(sm_module_bytes(it[1].shape, 1) == 128 * 104 * 2);
    assert_true(sm_module_bytes(it[1].shape, 0) == 8);
}

/* ---- work ---- */

static void products_count_their_multiplications(void **state) {
    static const struct {
        const char *a, *b, *line;
        double flops;
    } cases[] = {
        {"bf16[4,8,16]", "bf16[4,16,32]",
         "ROOT r = bf16[4,8,32] dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_batch_dims={0}, rhs_contracting_dims={1}",
         2.0 * 4 * 8 * 16 * 32},
        {"bf16[8]", "bf16[16]",
         "ROOT r = bf16[8,16] dot(a, b), lhs_contracting_dims={}, rhs_contracting_dims={}",
         2.0 * 8 * 16},
        /* as TPUs write a product */
        {"bf16[8,16]", "bf16[16,32]", "ROOT r = bf16[8,32] convolution(a, b), dim_labels=bf_io->bf",
         2.0 * 8 * 16 * 32},
        {"f32[1,6,6,3]", "f32[3,3,3,5]",
         "ROOT r = f32[1,6,6,5] convolution(a, b), window={size=3x3 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f",
         2.0 * 16 * 16 * 3 * 5}, /* 16 of 18 rows and columns of windows are no padding */
        /* heads as a window: of 8 outputs each meets one of 8 places */
        {"bf16[2,512,64]", "bf16[64,8,16]",
         "ROOT r = bf16[2,512,8,16] convolution(a, b), window={size=1x8 pad=0_0x7_7 "
         "rhs_reversal=0x1}, dim_labels=0bf_i1o->0b1f",
         2.0 * 2 * 512 * 64 * 8 * 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sm_module_work w = work_of_root(entry_of(cases[i].a, cases[i].b, cases[i].line));
        assert_true(w.matrix_flops == cases[i].flops);
        assert_true(fabs(2 * w.batch * w.m * w.n * w.k - w.matrix_flops) < 1e-6 * w.matrix_flops);
    }
}

/* What the configuration of a custom call says of its work, bare or in a quoted string. */
static void custom_calls_tell_their_work(void **state) {
    static const struct {
        const char *a, *b, *call;
        double flops, batch, m, n, k;
    } known[] = {
        {"bf16[64,32]", "bf16[32,16]",
         "(bf16[64,16], s8[9]) custom-call(a, b), custom_call_target=\"__cublas$gemm\", "
         "backend_config={\"gemm_backend_config\":{\"dot_dimension_numbers\":{"
         "\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],"
         "\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]}}}",
         2.0 * 64 * 16 * 32, 1, 64, 16, 32},
        {"f8e4m3fn[4,64,32]", "f8e4m3fn[4,16,32]",
         "bf16[4,64,16] custom-call(a, b), "
         "backend_config=\"{\\\"lhs_contracting_dimensions\\\":[\\\"2\\\"],"
         "\\\"rhs_contracting_dimensions\\\":[\\\"2\\\"],\\\"lhs_batch_dimensions\\\":[\\\"0\\\"],"
         "\\\"rhs_batch_dimensions\\\":[\\\"0\\\"]}\", "
         "custom_call_target=\"__cublas$lt$matmul$f8\"",
         2.0 * 4 * 64 * 16 * 32, 4, 64, 16, 32},
        {"bf16[2,128,8,64]", "bf16[2,128,8,64]",
         "bf16[2,8,128,64] custom-call(a, b, b), custom_call_target=\"__cudnn$fmhaSoftmax\", "
         "backend_config={\"mask_type\":\"NO_MASK\",\"intermediate_tensor_shape\":{"
         "\"dimensions\":[\"2\",\"8\",\"128\",\"128\"]}}",
         2 * 2.0 * 16 * 128 * 128 * 64, 16, 128, 128, 64},
        {"bf16[2,128,8,64]", "bf16[2,128,8,64]",
         "bf16[2,8,128,64] custom-call(a, b, b), "
         "custom_call_target=\"__cudnn$fmhaSoftmaxBackward\", "
         "backend_config={\"mask_type\":\"CAUSAL\",\"intermediate_tensor_shape\":{"
         "\"dimensions\":[\"2\",\"8\",\"128\",\"128\"]}}",
         5 * 2.0 * 16 * 128 * 64.5 * 64, 16, 128, 64.5, 64},
        /* Transformer Engine: 8 heads that share 2 of keys, values of another size */
        {"bf16[2,128,8,64]", "bf16[2,128,2,64]",
         "(bf16[2,128,8,32], f32[2,8,128,1]) custom-call(a, b, b), "
         "custom_call_target=\"te_fused_attn_forward_ffi\", backend_config={attn_heads = 8 : i64, "
         "input_batch = 2 : i64, kv_max_seqlen = 128 : i64, mask_type = 2 : i64, "
         "num_gqa_groups = 2 : i64, q_max_seqlen = 128 : i64, qk_head_dim = 64 : i64, "
         "v_head_dim = 32 : i64, window_size_left = -1 : i64}",
         2.0 * 16 * 128 * 64.5 * (64 + 32), 16, 128, 64.5, 64},
        /* and under a window of 31 keys before the query's own, which only queries from the 32nd
         * on fill: (1 + ... + 31 + 97 * 32) / 128 keys */
        {"bf16[2,128,8,64]", "bf16[2,128,8,64]",
         "(bf16[2,128,8,64], f32[2,8,128,1]) custom-call(a, b, b), "
         "custom_call_target=\"te_fused_attn_backward_ffi\", backend_config={attn_heads = 8 : i64, "
         "input_batch = 2 : i64, kv_max_seqlen = 128 : i64, mask_type = 3 : i64, "
         "num_gqa_groups = 8 : i64, q_max_seqlen = 128 : i64, qk_head_dim = 64 : i64, "
         "v_head_dim = 64 : i64, window_size_left = 31 : i64}",
         5 * 2.0 * 16 * 64 * (31 * 16 + 97 * 32), 16, 128, (31 * 16 + 97 * 32) / 128.0, 64},
        {"bf16[2,16,16,8]", "bf16[4,3,3,8]",
         "(bf16[2,16,16,4], u8[0]) custom-call(a, b), window={size=3x3 pad=1_1x1_1}, "
         "dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convForward\"",
         2.0 * 2 * 16 * 16 * 4 * 72, 1, 512, 4, 72},
        {"bf16[2,16,16,8]", "bf16[2,16,16,4]",
         "(bf16[4,3,3,8], u8[0]) custom-call(a, b), window={size=3x3 pad=1_1x1_1}, "
         "dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBackwardFilter\"",
         2.0 * 2 * 16 * 16 * 4 * 72, 1, 512, 4, 72},
        {"bf16[64,32]", "bf16[32,16]",
         "bf16[64,16] custom-call(a, b), custom_call_target=\"tpu_custom_call\", "
         "backend_config={\"custom_call_config\":{\"body\":\"x\",\"cost_estimate\":{"
         "\"flops\":65536,\"transcendentals\":7,\"bytes_accessed\":9}}}",
         65536, 65536 / (2.0 * 4096 * 4096 * 4096), 4096, 4096, 4096},
        {"bf16[64,32]", "bf16[32,16]",
         "bf16[64,16] custom-call(a, b), custom_call_target=\"mine\", "
         "backend_config={\"x\":[\"1\"]}",
         0, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const sm_module *m =
            entry_of(known[i].a, known[i].b, sm_arena_printf(arena, "ROOT r = %s", known[i].call));
        sm_module_work w = work_of_root(m);
        assert_true(fabs(w.matrix_flops - known[i].flops) <= 1e-9 * known[i].flops);
        assert_true(w.batch == known[i].batch && w.m == known[i].m && w.n == known[i].n &&
                    w.k == known[i].k);
        assert_int_equal(sm_module_is_understood(root_of(m)), known[i].flops > 0);
    }
}

static void bytes_are_those_that_are_read(void **state) {
    static const struct {
        const char *line;
        double bytes;
    } cases[] = {
        {"ROOT r = f32[64,64] add(a, b)", 3 * 64 * 64 * 4},
        {"ROOT r = f32[1,64] slice(a), slice={[0:1], [0:64]}", 2 * 64 * 4},
        {"z = s32[] constant(0)\n u = f32[1,64] slice(b), slice={[0:1], [0:64]}\n"
         "ROOT r = f32[64,64] dynamic-update-slice(a, u, z, z)",
         2 * 64 * 4},
        {"ROOT r = (f32[64,64], f32[64,64]) tuple(a, b)", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *line = sm_arena_printf(
            arena, "f = f32[64,64] fusion(a), kind=kLoop, calls=f1\n%s", cases[i].line);
        const sm_module *m = module_of(sm_arena_printf(
            arena,
            "HloModule m\nf1 {\n p = f32[64,64] parameter(0)\n ROOT n = f32[64,64] negate(p)\n}\n"
            "ENTRY e {\n a = f32[64,64] parameter(0)\n b = f32[64,64] parameter(1)\n %s\n}\n",
            line));
        assert_true(work_of_root(m).bytes == cases[i].bytes);
    }
}

static double entry_flops(const sm_module *m) {
    const sm_module_analysis *a = analysis_of(m);
    double flops = 0;
    for (int c = 0; c < m->computations; c++)
        for (int i = 0; i < m->computation[c].n; i++)
            flops += a->runs[c].times *
                     sm_module_work_of(a, &m->computation[c], &m->computation[c].instruction[i])
                         .matrix_flops;
    return flops;
}

/* A loop whose trips the compiler says, and one whose condition and step say them. */
static void loops_run_as_often_as_they_say(void **state) {
    static const struct {
        const char *from, *step, *direction, *bound, *config;
        double trips;
    } cases[] = {
        {"0", "1", "LT", "4", "", 4},
        {"0", "3", "LT", "10", "", 4},
        {"1", "1", "LE", "4", "", 4},
        {"9", "-2", "GT", "1", "", 4},
        {"0", "1", "LT", "0", "", 0},
        {"0", "0", "LT", "4", "", 1}, /* cannot be known: once */
        {"0", "1", "NE", "4", ", backend_config={\"known_trip_count\":{\"n\":\"4\"}}", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_module *m = module_of(sm_arena_printf(
            arena,
            "HloModule m\n"
            "cond {\n p = (s32[], f32[8,8]) parameter(0)\n i = s32[] get-tuple-element(p), "
            "index=0\n"
            " n = s32[] constant(%s)\n ROOT c = pred[] compare(i, n), direction=%s\n}\n"
            "body {\n p = (s32[], f32[8,8]) parameter(0)\n i = s32[] get-tuple-element(p), "
            "index=0\n"
            " x = f32[8,8] get-tuple-element(p), index=1\n s = s32[] constant(%s)\n"
            " j = s32[] add(i, s)\n y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}\n ROOT t = (s32[], f32[8,8]) tuple(j, y)\n}\n"
            "ENTRY e {\n z = s32[] constant(%s)\n a = f32[8,8] parameter(0)\n"
            " t = (s32[], f32[8,8]) tuple(z, a)\n"
            " ROOT w = (s32[], f32[8,8]) while(t), body=body, condition=cond%s\n}\n",
            cases[i].bound, cases[i].direction, cases[i].step, cases[i].from, cases[i].config));
        assert_true(entry_flops(m) == cases[i].trips * 2 * 8 * 8 * 8);
    }
}

/* ---- on a machine ---- */

static sm_system system_of(const char *text) {
    sm_system system;
    sm_source source = sm_source_of("--on", text);
    assert_int_equal(sm_system_parse(&source, NULL, 0, &system, NULL), SM_OK);
    return system;
}

static const sm_profile *profile_of(const sm_module *m, const sm_system *system) {
    const sm_profile *p = NULL;
    sm_profile_setup setup = {m, system, sm_calibration_of(&system->chip), NULL, NULL};
    sm_error err;
    if (sm_profile_new(&setup, arena, &p, &err)) fail_msg("%s", err.sentence);
    return p;
}

/* What runs between start and done hides the collective; without it all is exposed. */
static void what_lies_between_start_and_done_hides(void **state) {
    static const char *const between[] = {
        "", "d = bf16[8192,8192] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"};
    const sm_profile *p[2];
    sm_system system = system_of("tpu-v5e:2x4");
    for (int i = 0; i < 2; i++)
        p[i] = profile_of(
            entry_of("bf16[1024,1024]", "bf16[8192,8192]",
                     sm_arena_printf(arena,
                                     "s = (bf16[1024,1024], bf16[8192,1024]) all-gather-start(a), "
                                     "channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}\n"
                                     "%sROOT r = bf16[8192,1024] all-gather-done(s)",
                                     between[i])),
            &system);
    const sm_profile_collective *alone = &p[0]->collective[0], *beside = &p[1]->collective[0];
    assert_int_equal(p[0]->collectives, 1);
    assert_true(alone->bytes == 8192.0 * 1024 * 2);
    assert_true(alone->bytes_per_chip == 7.0 * 1024 * 1024 * 2);
    assert_true(alone->exposed_s == alone->expected_s);
    assert_true(beside->exposed_s < 0.5 * beside->expected_s);
    double parts = p[1]->time.compute_s + p[1]->time.exposed_s + p[1]->time.copies_s;
    assert_true(fabs(p[1]->time.expected_s - parts) <= 1e-3 * parts);
    assert_true(p[1]->time.lower_s <= p[1]->time.expected_s);
    assert_true(p[1]->time.expected_s <= p[1]->time.upper_s);
}

/* The axes of a mesh from how the groups of collectives lie. */
/* A collective that fusions start before a loop, carry on in its body and end after it is one. */
static void a_collective_may_go_on_in_a_loop(void **state) {
    const sm_module *m = module_of(
        "HloModule m, num_partitions=8\n"
        "start (x: bf16[64,64]) -> (bf16[64,64], bf16[512,64]) {\n  x = bf16[64,64] parameter(0)\n"
        "  g = bf16[512,64] all-gather(x), channel_id=5, replica_groups=[1,8]<=[8], "
        "dimensions={0}\n"
        "  ROOT s = (bf16[64,64], bf16[512,64]) custom-call(x, g), "
        "custom_call_target=\"AsyncCollectiveStart\"\n}\n"
        "step (x: bf16[64,64], y: bf16[512,64]) -> (bf16[64,64], bf16[512,64]) {\n"
        "  x = bf16[64,64] parameter(0)\n  y = bf16[512,64] parameter(1)\n"
        "  g = bf16[512,64] all-gather(x), channel_id=5, replica_groups=[1,8]<=[8], "
        "dimensions={0}\n"
        "  n = bf16[64,64] negate(x)\n  ROOT t = (bf16[64,64], bf16[512,64]) tuple(n, g)\n}\n"
        "done (x: bf16[64,64], y: bf16[512,64]) -> bf16[512,64] {\n"
        "  x = bf16[64,64] parameter(0)\n  y = bf16[512,64] parameter(1)\n"
        "  g = bf16[512,64] all-gather(x), channel_id=5, replica_groups=[1,8]<=[8], "
        "dimensions={0}\n"
        "  ROOT s = bf16[512,64] custom-call(y, g), custom_call_target=\"AsyncCollectiveDone\"\n}\n"
        "cond (c: (bf16[64,64], bf16[512,64])) -> pred[] {\n"
        "  c = (bf16[64,64], bf16[512,64]) parameter(0)\n  ROOT t = pred[] constant(true)\n}\n"
        "body (c: (bf16[64,64], bf16[512,64])) -> (bf16[64,64], bf16[512,64]) {\n"
        "  c = (bf16[64,64], bf16[512,64]) parameter(0)\n"
        "  x = bf16[64,64] get-tuple-element(c), index=0\n"
        "  y = bf16[512,64] get-tuple-element(c), index=1\n"
        "  ROOT f = (bf16[64,64], bf16[512,64]) fusion(x, y), kind=kLoop, calls=step\n}\n"
        "ENTRY e {\n  a = bf16[64,64] parameter(0)\n"
        "  s = (bf16[64,64], bf16[512,64]) fusion(a), kind=kCustom, calls=start\n"
        "  w = (bf16[64,64], bf16[512,64]) while(s), condition=cond, body=body, "
        "backend_config={\"known_trip_count\":{\"n\":\"3\"}}\n"
        "  x = bf16[64,64] get-tuple-element(w), index=0\n"
        "  y = bf16[512,64] get-tuple-element(w), index=1\n"
        "  ROOT d = bf16[512,64] fusion(x, y), kind=kCustom, calls=done\n}\n");
    sm_system system = system_of("tpu-v5e:2x4");
    const sm_profile *p = profile_of(m, &system);
    assert_int_equal(p->collectives, 1);
    assert_true(p->collective[0].times == 1 && p->collective[0].starts);
    assert_non_null(p->collective[0].done);
    assert_true(p->ops > 0);
}

/* A fusion whose root updates a part of an operand writes where the operand is. */
static void a_fused_update_is_in_place(void **state) {
    const sm_module *m = module_of(
        "HloModule m\nput (x: f32[64,64], y: f32[8,64], i: s32[]) -> f32[64,64] {\n"
        "  x = f32[64,64] parameter(0)\n  y = f32[8,64] parameter(1)\n  i = s32[] parameter(2)\n"
        "  n = f32[8,64] negate(y)\n"
        "  ROOT u = f32[64,64] dynamic-update-slice(x, n, i, i)\n}\n"
        "ENTRY e {\n  a = f32[64,64] parameter(0)\n  b = f32[8,64] parameter(1)\n"
        "  i = s32[] parameter(2)\n  c = f32[64,64] copy(a)\n"
        "  ROOT f = f32[64,64] fusion(c, b, i), kind=kLoop, calls=put\n}\n");
    sm_system system = system_of("tpu-v5e");
    const sm_profile *p = profile_of(m, &system);
    assert_true(p->temporary_bytes == 0);
    assert_true(p->result_bytes == 64 * 64 * 4);
}

static void the_mesh_is_found(void **state) {
    sm_system system = system_of("h100-sxm:8");
    const sm_profile *p = profile_of(
        entry_of(
            "f32[64]", "f32[64]",
            "c = f32[64] all-reduce(a), channel_id=1, replica_groups=[4,2]<=[8], to_apply=sum\n"
            "d = f32[64] all-reduce(c), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), "
            "to_apply=sum\n"
            "ROOT e = f32[64] collective-permute(d), channel_id=3, "
            "source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}"),
        &system);
    assert_int_equal(p->mesh.axes, 2);
    assert_int_equal(p->mesh.axis[0].size, 4);
    assert_int_equal(p->mesh.axis[1].size, 2);
    assert_int_equal(p->collective[0].axes, 2);
    assert_int_equal(p->collective[1].axes, 1);
    assert_int_equal(p->collective[2].axes, 1);
    assert_int_equal(p->collective[2].op, SM_PERMUTE);
}

/* ---- the judge: programs that JAX compiled, FLOPs counted by hand, memory as XLA has it ---- */

static double fact(const char *text, const char *key) {
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtod(at + strlen(key) + 2, NULL);
}

static void compiled_programs_are_what_they_are(void **state) {
    static const struct {
        const char *name;
        double memory; /* the farthest that the peak lies from XLA's */
        double all_gathers, all_reduces, reduce_scatters;
    } programs[] = {{"cpu8.fsdp", 0.001, 8, 1, 0},       {"cpu8.tp", 0.001, 0, 7, 0},
                    {"cpu8.fsdp_tp", 0.001, 8, 8, 0},    {"cpu8.scan", 0.001, 16, 5, 0},
                    {"cpu8.scan_remat", 0.02, 16, 5, 0}, {"v5e-2x4.fsdp", 0.4, 8, 1, 1},
                    {"v5e-2x4.fsdp_tp", 0.4, 8, 9, 1},   {"v5e-2x4.scan", 0.4, 16, 1, 4}};
    sm_system system = system_of("tpu-v5e:2x4");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *name = programs[i].name;
        sm_source text, facts;
        const sm_module *m;
        assert_int_equal(sm_io_read_packed(
                             sm_arena_printf(arena, "tests/cli/inputs/profile/%s.hlo.txt.gz", name),
                             1 << 24, arena, &text, NULL),
                         SM_OK);
        assert_int_equal(
            sm_io_read(sm_arena_printf(arena, "tests/cli/inputs/profile/%s.json", name), arena,
                       &facts, NULL),
            SM_OK);
        assert_int_equal(sm_module_parse(&text, arena, &m, NULL), SM_OK);
        const sm_profile *p = profile_of(m, &system);
        assert_true(p->work.matrix_flops == fact(facts.text, "\"flops\""));
        assert_true(p->argument_bytes == fact(facts.text, "\"argument_bytes\""));
        double peak = fact(facts.text, "\"argument_bytes\"") +
                      fact(facts.text, "\"temporary_bytes\"") +
                      fact(facts.text, "\"result_bytes\"");
        assert_true(fabs(p->peak_bytes / peak - 1) <= programs[i].memory);
        double n[SM_COLLECTIVE_COUNT] = {0};
        for (int c = 0; c < p->collectives; c++) n[p->collective[c].op] += p->collective[c].times;
        assert_true(n[SM_ALL_GATHER] == programs[i].all_gathers);
        assert_true(n[SM_ALL_REDUCE] == programs[i].all_reduces);
        assert_true(n[SM_REDUCE_SCATTER] == programs[i].reduce_scatters);
    }
}

static const sm_profile *profile_of_file(const char *name, const sm_system *system) {
    sm_source source;
    const sm_module *m;
    sm_error err;
    const char *path = sm_arena_printf(arena, "tests/cli/inputs/profile/%s", name);
    if (sm_io_read_packed(path, 1 << 24, arena, &source, &err) ||
        sm_module_parse(&source, arena, &m, &err))
        fail_msg("%s: %s", path, err.sentence);
    return profile_of(m, system);
}

/* Text and protobuf are one program. */
static void a_protobuf_is_the_same_program(void **state) {
    static const char *const name[][2] = {{"cpu8.scan.hlo.txt.gz", "cpu8.scan.hlo.pb.gz"},
                                          {"v5e-2x4.scan.hlo.txt.gz", "v5e-2x4.scan.hlo.pb.gz"}};
    sm_system system = system_of("tpu-v5e:2x4");
    for (int i = 0; i < 2; i++) {
        const sm_profile *a = profile_of_file(name[i][0], &system);
        const sm_profile *b = profile_of_file(name[i][1], &system);
        assert_string_equal(a->module->name, b->module->name);
        assert_int_equal(a->ops, b->ops);
        assert_int_equal(a->collectives, b->collectives);
        assert_memory_equal(&a->time, &b->time, sizeof a->time);
        assert_memory_equal(&a->work, &b->work, sizeof a->work);
        assert_true(a->peak_bytes == b->peak_bytes);
        for (int k = 0; k < a->collectives; k++) {
            assert_string_equal(a->collective[k].instruction->op_name,
                                b->collective[k].instruction->op_name);
            assert_int_equal(a->collective[k].axes, b->collective[k].axes);
        }
    }
}

/* Cut short at each byte, and with each byte another: read or refused, never worse. */
static void a_damaged_protobuf_is_refused(void **state) {
    sm_source source;
    assert_int_equal(sm_io_read_packed("tests/cli/inputs/profile/cpu8.scan.hlo.pb.gz", 1 << 24,
                                       arena, &source, NULL),
                     SM_OK);
    char *text = sm_arena_copy(arena, source.text, source.length);
    int refused = 0;
    for (size_t i = 0; i < source.length; i += 1 + source.length / 64) {
        const sm_module *m;
        sm_error err = {0};
        sm_arena *own = sm_arena_new();
        sm_source part = {"m.pb", text, i};
        sm_status status = sm_module_parse(&part, own, &m, &err);
        assert_true(status == SM_OK || (status == SM_BAD_INPUT && err.sentence[0]));
        refused += status != SM_OK;
        text[i] = (char)~text[i];
        part.length = source.length;
        status = sm_module_parse(&part, own, &m, &err);
        assert_true(status == SM_OK || (status == SM_BAD_INPUT && err.sentence[0]));
        text[i] = (char)~text[i];
        sm_arena_free(own);
    }
    assert_true(refused > 60);
}

/* What the compiler assigned, and an assignment that stands alone. */
static void an_assignment_stands_beside_its_module(void **state) {
    sm_source source, alone = {"a.pb", "\x0a\x02\x10\x08\x1a\x06\x08\x01\x10\x80\x80\x01", 12};
    const sm_module *m;
    sm_error err = {0};
    assert_int_equal(sm_io_read_packed("tests/cli/inputs/profile/cpu.assigned.hlo.pb.gz", 1 << 20,
                                       arena, &source, NULL),
                     SM_OK);
    assert_int_equal(sm_module_parse(&source, arena, &m, NULL), SM_OK);
    assert_true(m->assigned.known); /* as memory_analysis() told when it was compiled */
    assert_true(m->assigned.argument_bytes == 2359296 && m->assigned.result_bytes == 2097152 &&
                m->assigned.temporary_bytes == 7077888);
    assert_int_equal(sm_module_parse(&alone, arena, &m, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "a buffer assignment without its module"));
}

/* ---- what ran ---- */

/* A row of a map: of names of statistics (5), or of events (4) with one statistic, of bytes (6) or
 * text (5). */
static void put_row(bytes *plane, int map, uint64_t id, const char *name, const bytes *stat) {
    bytes *row = message(), *metadata = message();
    put_number(metadata, 1, id);
    put_text(metadata, 2, name);
    if (stat) put_message(metadata, 5, stat);
    put_number(row, 1, id);
    put_message(row, 2, metadata);
    put_message(plane, map, row);
}

static bytes *stat_of(uint64_t name, int field, const char *at, size_t n) {
    bytes *stat = message();
    put_number(stat, 1, name);
    put_bytes(stat, field, at, n);
    return stat;
}

static void put_event(bytes *line, uint64_t name, double seconds) {
    bytes *event = message();
    put_number(event, 1, name);
    put_number(event, 3, (uint64_t)(seconds * 1e12 + 0.5));
    put_message(line, 4, event);
}

/* One device on which a module ran twice, each kernel twice as long as it is priced. */
static const bytes *trace_of(const sm_profile *p, const sm_source *module) {
    bytes *space = message(), *device = message(), *host = message(), *ops = message();
    bytes *modules = message(), *proto = message();
    put_text(device, 2, "/device:TPU:0");
    put_text(ops, 2, "XLA Ops");
    put_text(modules, 2, "XLA Modules");
    put_row(device, 5, 1, "program_id", NULL);
    put_row(device, 4, 1000, "jit_step(77)", NULL);
    for (int run = 0; run < 2; run++) {
        put_event(modules, 1000, 1.0);
        for (int i = 0; i < p->ops; i++)
            for (int n = 0; n < p->op[i].times; n++)
                put_event(ops, (uint64_t)i + 1, 2 * p->op[i].expected_s);
    }
    put_message(device, 3, ops);
    for (int i = 0; i < p->ops; i++)
        put_row(device, 4, (uint64_t)i + 1, p->op[i].instruction->name, stat_of(1, 5, "77", 2));
    put_message(device, 3, modules);
    put_text(host, 2, "/host:metadata");
    put_row(host, 5, 9, "Hlo Proto", NULL);
    put_bytes(proto, 1, module->text, module->length);
    put_row(host, 4, 3, "jit_step(77)", stat_of(9, 6, proto->at, proto->n));
    put_message(space, 1, device);
    put_message(space, 1, host);
    return space;
}

static void what_ran_lies_beside_what_it_should_take(void **state) {
    sm_system system = system_of("tpu-v5e:2x4");
    sm_source file;
    assert_int_equal(sm_io_read_packed("tests/cli/inputs/profile/cpu8.scan.hlo.pb.gz", 1 << 24,
                                       arena, &file, NULL),
                     SM_OK);
    const sm_module *m;
    assert_int_equal(sm_module_parse(&file, arena, &m, NULL), SM_OK);
    assert_false(sm_trace_is_xplane(&file));
    const bytes *space = trace_of(profile_of(m, &system), &file);
    sm_source source = {"t.xplane.pb", space->at, space->n};
    const sm_trace *t;
    sm_error err;
    assert_true(sm_trace_is_xplane(&source));
    if (sm_trace_parse_xplane(&source, arena, &t, &err)) fail_msg("%s", err.sentence);
    assert_int_equal(t->devices, 1);
    assert_int_equal(t->programs, 1);
    assert_string_equal(t->program[0].name, "jit_step");
    assert_true(t->program[0].runs == 2);
    assert_int_equal(sm_module_parse(&t->program[0].module, arena, &m, NULL), SM_OK);
    sm_profile_setup setup = {m, &system, sm_calibration_of(&system.chip), NULL, &t->program[0]};
    const sm_profile *p;
    assert_int_equal(sm_profile_new(&setup, arena, &p, NULL), SM_OK);
    assert_true(p->measured.step_s == 1.0);
    assert_true(fabs(p->measured.kernels_s / p->time.compute_s - 2) < 1e-5);
    assert_true(fabs(p->measured.idle_s + p->measured.kernels_s - 1) < 1e-9);
    for (int i = 0; i < p->ops; i++)
        assert_true(fabs(p->op[i].measured_s / p->op[i].expected_s - 2) < 1e-5);
    for (size_t n = 0; n < source.length; n += 1 + source.length / 97) {
        sm_source part = {"t.xplane.pb", space->at, n};
        sm_status status = sm_trace_parse_xplane(&part, arena, &t, &err);
        assert_true(status == SM_OK || status == SM_BAD_INPUT);
    }
}

/* An event with times of both clocks, in picoseconds; device's below 0: it has none. */
static void put_timed(bytes *line, uint64_t name, const int64_t host[2], const int64_t device[2]) {
    bytes *event = message();
    put_number(event, 1, name);
    for (int i = 0; i < 2; i++) put_number(event, 2 + i, (uint64_t)host[i]);
    for (int i = 0; i < 2 && device[0] >= 0; i++) {
        bytes *stat = message();
        put_number(stat, 1, (uint64_t)(2 + i));
        put_number(stat, 3, (uint64_t)device[i]);
        put_message(event, 4, stat);
    }
    put_message(line, 4, event);
}

/* The host's clock is set right by 105 us while the second copy waits: xprof tells the device's
 * time, which says nothing of it. */
static void ops_take_what_the_devices_clock_says(void **state) {
    static const int64_t host[][2] = {
        {5000, 189000}, {194000, 299000}, {493000, 8000}, {501000, 7}};
    static const int64_t device[][2] = {{4000, 189000}, {193000, 194000}, {387000, 8000}, {-1, -1}};
    bytes *space = message(), *plane = message(), *ops = message();
    put_text(plane, 2, "/device:TPU:0");
    put_text(ops, 2, "XLA Ops");
    put_row(plane, 5, 1, "program_id", NULL);
    put_row(plane, 5, 2, "device_offset_ps", NULL);
    put_row(plane, 5, 3, "device_duration_ps", NULL);
    put_row(plane, 4, 10, "copy-done", stat_of(1, 5, "77", 2));
    for (int i = 0; i < 4; i++) put_timed(ops, 10, host[i], device[i]);
    put_message(plane, 3, ops);
    put_message(space, 1, plane);
    sm_source source = {"t.xplane.pb", space->at, space->n};
    const sm_trace *t;
    assert_int_equal(sm_trace_parse_xplane(&source, arena, &t, NULL), SM_OK);
    assert_int_equal(t->events, 4);
    for (int i = 0; i < 3; i++) {
        assert_true(t->event[i].duration_ps == device[i][1]);
        assert_true(t->event[i].start_ps - t->event[0].start_ps == device[i][0] - device[0][0]);
    }
    assert_true(t->event[0].start_ps == host[0][0]);
    assert_true(t->event[3].start_ps == host[3][0] && t->event[3].duration_ps == 7);
}

/* ---- what goes wrong ---- */

static void mistakes_are_shown_where_they_are(void **state) {
    static const struct {
        const char *text, *sentence;
        int line, column;
    } cases[] = {
        {"", "no HLO: it begins with \"HloModule NAME\"", 1, 1},
        {"{\"a\": 1}", "no HLO", 1, 1},
        {"# Copyright\nentries {}\n", "no HLO", 1, 1},
        {"HloModule m\nENTRY e {\n  a = f33[2] parameter(0)\n}\n", "did you mean f32[..]?", 3, 7},
        {"HloModule m\nENTRY e {\n  a = f32[2] negate(b)\n}\n", "no instruction of this name", 3,
         21},
        {"HloModule m\nENTRY e {\n  a = f32[2] parameter(0), to_apply=sum\n}\n",
         "no computation has this name", 3, 37},
        {"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n", "expected an instruction or '}'", 4,
         1},
        {"HloModule m\nENTRY e {\n  a = f32[2] parameter(x)\n}\n", "the number of a parameter", 3,
         24},
        {"HloModule m\nENTRY e {\n}\n", "a computation has no instruction", 3, 1},
        {"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(a), "
         "replica_groups={{0,1},{2}}\n}\n",
         "a group has 1 devices, another 2", 4, 56},
        {"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(a), "
         "replica_groups=[3,2]<=[8]\n}\n",
         "groups that do not hold all devices", 4, 50},
        {"HloModule m, num_partitions=x\n", "a number of devices", 1, 29},
        {"HloModule m\n", "no computation", 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_module *m;
        sm_error err = {0};
        sm_source source = sm_source_of("m.hlo", cases[i].text);
        assert_int_equal(sm_module_parse(&source, arena, &m, &err), SM_BAD_INPUT);
        if (!strstr(err.sentence, cases[i].sentence) || err.line != cases[i].line ||
            err.column != cases[i].column)
            fail_msg("case %zu: %d:%d: %s", i, err.line, err.column, err.sentence);
    }
}

static void computations_in_a_circle_are_refused(void **state) {
    const sm_module *m = module_of("HloModule m\nf {\n ROOT a = f32[] call(), to_apply=g\n}\n"
                                   "g {\n ROOT a = f32[] call(), to_apply=f\n}\n"
                                   "ENTRY e {\n ROOT a = f32[] call(), to_apply=f\n}\n");
    const sm_module_analysis *a;
    assert_int_equal(sm_module_analyse(m, arena, &a, NULL), SM_BAD_INPUT);
}

static void too_few_chips_are_refused(void **state) {
    const sm_module *m = entry_of("f32[8]", "f32[8]", "ROOT r = f32[8] add(a, b)");
    sm_system system = system_of("h100-sxm:4");
    sm_profile_setup setup = {m, &system, sm_calibration_of(&system.chip), NULL, NULL};
    const sm_profile *p;
    sm_error err;
    assert_int_equal(sm_profile_new(&setup, arena, &p, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "runs on 8 devices"));
}

static void every_allocation_may_fail(void **state) {
    sm_system system = system_of("h100-sxm:8");
    sm_source source;
    assert_int_equal(sm_io_read_packed("tests/cli/inputs/profile/cpu8.scan_remat.hlo.txt.gz",
                                       1 << 24, arena, &source, NULL),
                     SM_OK);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *own = sm_arena_new();
        const sm_module *m = NULL;
        const sm_profile *p = NULL;
        sm_error err = {0};
        sm_status status = own ? sm_module_parse(&source, own, &m, &err) : SM_INTERNAL;
        sm_profile_setup setup = {m, &system, sm_calibration_of(&system.chip), NULL, NULL};
        if (!status) status = sm_profile_new(&setup, own, &p, &err);
        assert_true(status == (failing_alloc_refused(&loop) ? SM_INTERNAL : SM_OK));
        sm_arena_free(own);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)
    const struct CMUnitTest tests[] = {
        TEST(a_module_is_read),
        TEST(groups_in_each_spelling),
        TEST(bytes_have_the_padding_of_tiles),
        TEST(products_count_their_multiplications),
        TEST(custom_calls_tell_their_work),
        TEST(bytes_are_those_that_are_read),
        TEST(loops_run_as_often_as_they_say),
        TEST(what_lies_between_start_and_done_hides),
        TEST(a_collective_may_go_on_in_a_loop),
        TEST(a_fused_update_is_in_place),
        TEST(the_mesh_is_found),
        TEST(compiled_programs_are_what_they_are),
        TEST(a_protobuf_is_the_same_program),
        TEST(a_damaged_protobuf_is_refused),
        TEST(an_assignment_stands_beside_its_module),
        TEST(what_ran_lies_beside_what_it_should_take),
        TEST(ops_take_what_the_devices_clock_says),
        TEST(mistakes_are_shown_where_they_are),
        TEST(computations_in_a_circle_are_refused),
        TEST(too_few_chips_are_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

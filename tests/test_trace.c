/* Traces of what ran: each format and what trips readers of it; parts of a step; kernels and
 * collectives; what is cut short or no trace; every allocation may fail. Inputs are made by
 * scripts/trace-samples.py. */
#include "unit.h"
#include "failing_alloc.h"
#include "json_lexer.h"
#include "scalemodel/breakdown.h"
#include "scalemodel/io.h"
#include "scalemodel/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUTS "tests/cli/inputs/traces/"

static sm_arena *arena;

static int make_arena(void **state) { return (arena = sm_arena_new()) == NULL; }
static int free_arena(void **state) {
    sm_arena_free(arena);
    return 0;
}

static const sm_trace *read_files(const char *const *path, int n, bool partial) {
    sm_profiled what;
    sm_error err = {0};
    if (sm_io_read_profiled(path, n, partial, arena, &what, &err)) fail_msg("%s", err.sentence);
    assert_non_null(what.trace);
    return what.trace;
}

static const sm_trace *read_one(const char *path) { return read_files(&path, 1, false); }

static const sm_trace_breakdown *break_down(const sm_trace *t) {
    const sm_trace_breakdown *b;
    assert_int_equal(sm_trace_break_down(t, arena, &b, NULL), SM_OK);
    return b;
}

static const char *written(const char *text) {
    static char path[] = "/tmp/test_trace.XXXXXX";
    strcpy(path, "/tmp/test_trace.XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    return path;
}

static double kind_s(const sm_trace *t, sm_trace_kind kind) {
    double all = 0;
    for (int i = 0; i < t->events; i++)
        if (t->event[i].kind == kind) all += (double)t->event[i].duration_ps * 1e-12;
    return all;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

/* A step is the sum of its parts. */
static void check_sums(const sm_trace_breakdown *b) {
    for (int i = 0; i < b->devices; i++)
        for (int k = 0; k < b->device[i].steps; k++) {
            const sm_trace_step *s = &b->device[i].step[k];
            double parts = 0;
            for (int p = 0; p < SM_PARTS; p++) parts += s->part_s[p];
            assert_true(near(parts, (double)(s->end_ps - s->start_ps) * 1e-12));
            assert_true(s->overlapped_s <= s->part_s[SM_PART_COMPUTE] * (1 + 1e-9));
        }
}

/* ---- formats ---- */

/* HolisticTraceAnalysis 0.5 says of rank 0, once the bare nan is taken out: compute 1500 us, other
 * 360, all 2712, half of the communication hidden; of rank 1 a third. It leaves out graph_add,
 * which no launch names: 150 us, and the last one ends the trace 60 us later. */
static void kineto_is_broken_down(void **state) {
    const sm_trace *t = read_one(INPUTS "kineto-rank0.json");
    const sm_trace_breakdown *b = break_down(t);
    const sm_device_time *d = &b->device[0];
    assert_string_equal(t->file[0].format, "Kineto");
    assert_string_equal(t->device, "NVIDIA H100 80GB HBM3");
    assert_int_equal(t->file[0].world, 2);
    check_sums(b);
    assert_int_equal(d->steps, 3);
    assert_int_equal(b->steps_from, SM_STEPS_MARKED);
    assert_true(near(d->whole.part_s[SM_PART_COMPUTE] - 150e-6, 1500e-6));
    assert_true(near(d->whole.part_s[SM_PART_EXPOSED] + d->whole.part_s[SM_PART_COPIES], 360e-6));
    assert_true(near((double)(d->whole.end_ps - d->whole.start_ps) * 1e-12 - 60e-6, 2712e-6));
    assert_true(near(d->whole.overlapped_s / d->whole.part_s[SM_PART_EXPOSED], 1));
    const sm_trace_step *late = &break_down(read_one(INPUTS "kineto-rank1.json.gz"))->device->whole;
    assert_true(near(late->overlapped_s / late->part_s[SM_PART_EXPOSED], 0.5));
    /* Until the launch has returned the host is waited for; a kernel that began before does not. */
    assert_true(near(d->mean.part_s[SM_PART_COMPUTE], 550e-6));
    assert_true(near(kind_s(t, SM_TRACE_SYNC), 900e-6));
}

/* MTIA's own names: what waits for an event is no work, a request of its DMA moves bytes. Judged by
 * scripts/traces-against-hta.py on a public trace. */
static void mtia_waits_copies_and_computes(void **state) {
    const sm_trace *t = read_one(
        written("[{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"event_wait\",\"pid\":1,"
                "\"tid\":1,\"ts\":0,\"dur\":70},\n"
                "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"event_record\",\"pid\":1,"
                "\"tid\":1,\"ts\":80,\"dur\":3},\n"
                "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"dma_request\",\"pid\":1,"
                "\"tid\":2,\"ts\":20,\"dur\":5},\n"
                "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"pe_exe\",\"pid\":1,"
                "\"tid\":3,\"ts\":22,\"dur\":28}]"));
    const sm_device_time *d = &break_down(t)->device[0];
    assert_true(near(kind_s(t, SM_TRACE_SYNC), 73e-6));
    assert_true(near(d->whole.part_s[SM_PART_COMPUTE], 28e-6));
    assert_true(near(d->whole.part_s[SM_PART_COPIES], 2e-6));
    assert_true(near((double)(d->whole.end_ps - d->whole.start_ps) * 1e-12, 30e-6));
}

/* 9007199254740993 ns and the like: doubles would be 1 ns off. */
static void times_are_exact_beyond_2_to_53(void **state) {
    const sm_trace *t = read_one(INPUTS "kineto-rank0.json");
    for (int i = 0; i < t->events; i++)
        if (t->event[i].kind == SM_TRACE_STEP) assert_true(t->event[i].start_ps % 1000000000 == 0);
    t = read_one(written("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"pid\":0,\"tid\":7,"
                         "\"ts\":9007199254740.993,\"dur\":0.001},\n"
                         "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":0,\"tid\":7,"
                         "\"ts\":9007199254740.994,\"dur\":1e-06}]"));
    assert_true(t->event[1].start_ps - t->event[0].start_ps == 1000);
    assert_true(t->event[0].duration_ps == 1000 && t->event[1].duration_ps == 1);
}

static void names_of_2021_are_read(void **state) {
    const sm_trace *t = read_one(INPUTS "kineto-2021.json");
    const sm_trace_breakdown *b = break_down(t);
    check_sums(b);
    assert_int_equal(b->device[0].steps, 2);
    assert_true(near(b->mean.part_s[SM_PART_COMPUTE], 800e-6));
    assert_true(near(b->mean.part_s[SM_PART_COPIES], 50e-6));
    assert_string_equal(b->row[0].op, "aten::addmm");
    assert_true(b->row[0].flops == 2 * 2.0 * 128 * 512 * 256);
}

static void hip_is_read(void **state) {
    const sm_trace *t = read_one(INPUTS "kineto-amd.json");
    const sm_trace_breakdown *b = break_down(t);
    assert_int_equal(t->on[b->device[0].device].ordinal, 2);
    assert_int_equal(b->comms, 1);
    assert_int_equal(b->steps_from, SM_STEPS_NONE);
    check_sums(b);
}

/* Loops count by what runs within; collectives from start to done lie beside the rest. */
static void lines_of_jax_are_told_by_name(void **state) {
    const sm_trace *t = read_one(INPUTS "jax-tpu.trace.json");
    const sm_trace_breakdown *b = break_down(t);
    check_sums(b);
    assert_int_equal(b->device[0].steps, 2);
    assert_true(near(b->mean.part_s[SM_PART_COMPUTE], 500e-6));
    assert_true(near(b->mean.overlapped_s, 200e-6));
    assert_int_equal(t->programs, 1);
    assert_true(t->program[0].runs == 2 && near(t->program[0].seconds, 1800e-6));
}

/* Without a device: an op works where none that it calls does. */
static void ops_of_a_host_are_its_work(void **state) {
    const sm_trace_breakdown *b = break_down(read_one(
        written("[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":1,\"tid\":1,"
                "\"ts\":10,\"dur\":100,\"args\":{\"External id\":5}},"
                "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,"
                "\"ts\":20,\"dur\":60,\"args\":{\"External id\":6,\"Input Dims\":[[2,3],[3,4]],"
                "\"Input type\":[\"float\",\"float\"]}}]")));
    assert_string_equal(b->trace->device, "CPU");
    assert_true(near(b->mean.part_s[SM_PART_COMPUTE], 100e-6));
    assert_string_equal(b->row[0].op, "aten::mm");
    assert_true(near(b->row[0].seconds, 60e-6) && b->row[0].flops == 48);
    assert_true(near(b->row[1].seconds, 40e-6) && b->row[1].calls == 1);
}

/* An attention of PyTorch counts the keys that its mask lets queries meet: of 6 heads that share 2
 * of keys, 8 queries and keys of size 16. */
static void attention_counts_by_its_mask(void **state) {
    static const struct {
        const char *op, *dims, *values;
        double keys, products; /* of a query; of [8, keys] by 16 */
        bool masked, causal;
    } cases[] = {
        {"_flash_attention_forward", "[2,8,6,16],[2,8,2,16],[2,8,2,16]",
         "\"\",\"\",\"\",\"\",\"\",\"8\",\"8\",\"0.\",\"True\",\"False\"", 4.5, 2, true, true},
        {"_scaled_dot_product_cudnn_attention", "[2,6,8,16],[2,2,8,16],[2,2,8,16]",
         "\"\",\"\",\"\",\"\",\"True\",\"0.\",\"False\",\"False\"", 8, 2, true, false},
        {"_efficient_attention_forward", "[2,8,6,16],[2,8,2,16],[2,8,2,16]",
         "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"0.\",\"1\"", 4.5, 2, true, true},
        {"_flash_attention_backward", "[2,8,6,16],[2,8,6,16],[2,8,2,16],[2,8,2,16]",
         "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"8\",\"8\",\"0.\",\"True\"", 4.5, 5, true, true},
        {"_scaled_dot_product_flash_attention", "[2,6,8,16],[2,2,8,16],[2,2,8,16]", "", 8, 2, false,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sm_trace_breakdown *b = break_down(read_one(written(sm_arena_printf(
            arena,
            "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::%s\",\"pid\":1,\"tid\":1,\"ts\":10,"
            "\"dur\":50,\"args\":{\"External id\":5,\"Concrete Inputs\":[%s],\"Input Dims\":[%s],"
            "\"Input type\":[\"half\",\"half\",\"half\"]}}]",
            cases[i].op, cases[i].values, cases[i].dims))));
        const sm_trace_attention *a = &b->row[0].attention;
        assert_true(near(b->row[0].flops, cases[i].products * 2 * 2 * 6 * 8 * cases[i].keys * 16));
        assert_true(a->shape.batch == 2 && a->shape.heads == 6 && a->shape.kv_heads == 2 &&
                    a->shape.q_len == 8);
        assert_int_equal(a->masked, cases[i].masked);
        assert_int_equal(a->causal, cases[i].causal);
        assert_int_equal(a->backward, cases[i].products == 5);
    }
}

/* ---- Perfetto and Nsight Systems ---- */

/* The same slices with names inline and absolute times, and interned with a clock that counts. */
static void both_encodings_of_perfetto_are_one(void **state) {
    const sm_trace *a = read_one(INPUTS "inline.perfetto.pb");
    const sm_trace *b = read_one(INPUTS "interned.perfetto.pb");
    assert_string_equal(a->file[0].format, "Perfetto");
    assert_true(a->events == b->events && a->events >= 8);
    for (int i = 0; i < a->events; i++) {
        assert_true(a->event[i].start_ps == b->event[i].start_ps);
        assert_true(a->event[i].duration_ps == b->event[i].duration_ps);
        assert_int_equal(a->event[i].kind, b->event[i].kind);
        assert_string_equal(a->name[a->event[i].name], b->name[b->event[i].name]);
    }
}

static void tables_of_nsight_are_read(void **state) {
    const sm_trace *t = read_one(INPUTS "nsys.sqlite.gz");
    const sm_trace_breakdown *b = break_down(t);
    check_sums(b);
    assert_string_equal(t->device, "NVIDIA H100 80GB HBM3");
    assert_int_equal(b->steps_from, SM_STEPS_MARKED);
    assert_int_equal(b->device[0].steps, 2);
    assert_true(near(b->mean.part_s[SM_PART_COMPUTE], 400e-6));
    assert_true(near(b->mean.part_s[SM_PART_EXPOSED], 100e-6));
    assert_true(b->row[0].count == 2 && strstr(b->row[0].op, "gemm"));
    const sm_trace_breakdown *csv = break_down(read_one(INPUTS "cuda_gpu_trace.csv"));
    assert_true(near(csv->device[0].whole.part_s[SM_PART_COMPUTE], 800e-6));
    assert_true(near(csv->device[0].whole.part_s[SM_PART_COPIES], 40e-6));
}

/* ---- what is told of it ---- */

static void ops_are_joined_to_kernels(void **state) {
    const sm_trace_breakdown *b = break_down(read_one(INPUTS "kineto-rank0.json"));
    assert_string_equal(b->row[0].op, "aten::mm");
    assert_string_equal(b->row[0].shapes, "[2048,8192] x [8192,8192]");
    assert_string_equal(b->row[0].module, "nn.Module: Linear_0");
    assert_true(b->row[0].flops == 3 * 2.0 * 2048 * 8192 * 8192);
    assert_int_equal(b->row[0].dtype, SM_BF16);
    assert_true(b->row[0].count == 3 && b->row[0].calls == 3);
}

/* Two ranks: 150 us move the bytes, rank 0 waits 50 more for rank 1. */
static void waiting_is_told_from_sending(void **state) {
    const char *const paths[] = {INPUTS "kineto-rank0.json", INPUTS "kineto-rank1.json.gz"};
    const sm_trace_breakdown *b = break_down(read_files(paths, 2, false));
    assert_int_equal(b->devices, 2);
    for (int i = 0; i < 2; i++) {
        int rank = b->trace->on[b->device[i].device].rank;
        assert_true(fabs(b->device[i].wait_s - (rank == 0 ? 50e-6 : 0)) < 1e-12);
    }
    const sm_comm_row *row = &b->comm[0];
    assert_string_equal(row->op, "all-reduce");
    assert_int_equal(row->members, 2);
    assert_true(row->bytes == 2.0 * 4194304 && row->bus_factor == 1 && row->count == 6);
    assert_true(near(row->least_s, 150e-6) && near(row->seconds, 6 * 175e-6));
}

static void a_folder_is_all_its_ranks(void **state) {
    char folder[] = "/tmp/test_trace.XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        sm_source text;
        const char *names[] = {"rank0.json", "rank1.json.gz", "notes.txt"};
        const char *from[] = {INPUTS "kineto-rank0.json", INPUTS "kineto-rank1.json.gz",
                              INPUTS "kineto-2021.json"};
        assert_int_equal(sm_io_read(from[i], arena, &text, NULL), SM_OK);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(sm_io_write(path, text.text, text.length, NULL), SM_OK);
    }
    assert_int_equal(read_one(folder)->files, 2);
}

/* The same as one file, packed by xz; where it is cut or changed, that is told. */
static void an_archive_is_all_its_ranks(void **state) {
    sm_source tar;
    sm_profiled out;
    sm_error err;
    assert_int_equal(sm_io_read_packed(INPUTS "ranks.tar.xz", 1 << 24, arena, &tar, NULL), SM_OK);
    const sm_trace *t = read_one(INPUTS "ranks.tar.xz"),
                   *alone = read_one(INPUTS "kineto-rank0.json");
    assert_int_equal(t->files, 2);
    assert_string_equal(t->file[0].name, "ranks/rank0.json");
    assert_int_equal(t->file[0].world, 2);
    assert_true(near(break_down(t)->device[0].whole.part_s[SM_PART_COMPUTE],
                     break_down(alone)->device[0].whole.part_s[SM_PART_COMPUTE]));
    for (size_t n = 512; n < tar.length; n += 397) {
        sm_source part = {"ranks.tar", tar.text, n};
        sm_status status = sm_io_profiled_of(&part, false, arena, &out, &err);
        assert_true(status == SM_OK || (status == SM_BAD_INPUT && err.sentence[0]));
    }
    sm_source packed;
    assert_int_equal(sm_io_read(INPUTS "ranks.tar.xz", arena, &packed, NULL), SM_OK);
    packed.length -= 40;
    assert_int_equal(sm_io_profiled_of(&packed, false, arena, &out, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "the xz data is damaged or cut short at byte "));
    char *changed = sm_arena_copy(arena, tar.text, tar.length);
    changed[3]++; /* of a name: its sum is another */
    sm_source wrong = {"ranks.tar", changed, tar.length};
    assert_int_equal(sm_io_profiled_of(&wrong, false, arena, &out, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "damaged or cut short at byte 0"));
}

static void rooflines_and_findings(void **state) {
    sm_source on = sm_source_of("--on", "h100-sxm");
    sm_system system;
    const sm_profile_ran *p;
    assert_int_equal(sm_system_parse(&on, NULL, 0, &system, NULL), SM_OK);
    const sm_trace_breakdown *b = break_down(read_one(INPUTS "kineto-rank0.json"));
    assert_int_equal(sm_profile_ran_on(b, &system, arena, &p, NULL), SM_OK);
    double flops = b->row[0].flops;
    assert_true(near(p->lower_s[0], flops / sm_chip_peak(&system.chip, SM_BF16, NULL)));
    assert_int_equal(p->bound[0], SM_PROFILE_MATRIX);
    assert_true(p->findings >= 2);
    for (int i = 0; i + 1 < p->findings; i++)
        assert_true(p->finding[i].seconds >= p->finding[i + 1].seconds);
}

static void steps_repeat_where_nothing_marks_them(void **state) {
    char text[8192] = "[";
    size_t n = 1;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"pid\":0,"
                              "\"tid\":7,\"ts\":%d,\"dur\":5}",
                              i ? "," : "", i % 4, 10 * i);
    snprintf(text + n, sizeof text - n, "]");
    const sm_trace_breakdown *b = break_down(read_one(written(text)));
    assert_int_equal(b->steps_from, SM_STEPS_REPEATED);
    assert_int_equal(b->device[0].steps, 9);
    assert_true(near(b->device[0].median_s, 40e-6));
    check_sums(b);
}

/* ---- bad input ---- */

static void refused(const char *text, const char *why) {
    const char *path = written(text);
    sm_profiled what;
    sm_error err = {0};
    assert_int_equal(sm_io_read_profiled(&path, 1, false, arena, &what, &err), SM_BAD_INPUT);
    if (!strstr(err.sentence, why)) fail_msg("%s", err.sentence);
}

static void what_is_no_trace_is_refused(void **state) {
    refused("SQLite format 3 and no more than that", "the database is damaged");
    refused("Time (%),Total Time (ns),Instances,Name\n1,2,3,k\n", "no start and duration");
    refused("{\"schema\": \"1.0.1\", \"nodes\": [{\"id\": 1}]}", "is no trace of what ran");
    refused("[[1, 2, 3]]", "is no trace of what ran");
    refused("[{\"cols\": [], \"rows\": []}]", "no \"traceEvents\"");
    refused("{\"a\": 1}", "no \"traceEvents\"");
    refused("{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1", "byte");
    refused("{\"traceEvents\": [{\"ph\": \"X", "a text does not end");
}

static void what_is_cut_short_is_read_up_to_there(void **state) {
    sm_source whole;
    assert_int_equal(sm_io_read(INPUTS "kineto-rank0.json", arena, &whole, NULL), SM_OK);
    char *text = sm_arena_copy(arena, whole.text, whole.length / 2);
    refused(text, "this is not valid JSON");
    const char *path = written(text);
    const sm_trace *t = read_files(&path, 1, true);
    assert_true(t->file[0].partial && t->events > 10);
    assert_true(t->file[0].end <= whole.length / 2);
}

/* The same through windows of any size. */
typedef struct drip {
    const char *text;
    size_t left, step;
} drip;

static sm_status read_drip(void *context, char *to, size_t most, size_t *got, sm_error *err) {
    drip *d = context;
    *got = d->left < d->step ? d->left : d->step;
    if (*got > most) *got = most;
    memcpy(to, d->text, *got);
    d->text += *got;
    d->left -= *got;
    return SM_OK;
}

static void tokens_may_lie_across_windows(void **state) {
    static const char text[] =
        " {\"a\\\"b\" : [1.5, -2e3 , \"x\\u00e9\\\\\" , {\"y\":[\"]\"]}, nan]} ";
    for (size_t step = 1; step < 8; step++) {
        drip d = {text, strlen(text), step};
        sm_source name = {"s", "", 0};
        json_document in = {.source = &name, .arena = arena, .err = NULL};
        sm_bytes bytes = {"s", &d, read_drip};
        json_lexer l;
        json_raw raw;
        char plain[16];
        json_stream_begin(&l, &in, &bytes);
        assert_true(json_take(&l, '{') && json_stream_more(&l, '}') && json_stream_key(&l, &raw));
        assert_true(raw.length == 4 && !memcmp(raw.text, "a\\\"b", 4) && raw.escapes);
        assert_true(json_take(&l, '[') && json_stream_more(&l, ']'));
        assert_true(json_stream_scalar(&l, &raw) && raw.kind == IS_NUMBER && raw.length == 3);
        assert_true(json_stream_more(&l, ']') && json_stream_scalar(&l, &raw) && raw.length == 4);
        assert_true(json_stream_more(&l, ']') && json_stream_scalar(&l, &raw));
        assert_int_equal(json_raw_decode(&raw, plain), 4);
        assert_memory_equal(plain, "x\xc3\xa9\\", 4);
        assert_true(json_stream_more(&l, ']') && json_stream_value(&l, &raw));
        assert_true(raw.length == 11 && !memcmp(raw.text, "{\"y\":[\"]\"]}", 11));
        assert_true(json_stream_more(&l, ']') && json_stream_scalar(&l, &raw));
        assert_true(raw.kind == IS_NULL && !json_stream_more(&l, ']'));
        assert_true(!json_stream_more(&l, '}') && json_next(&l) == 0 && l.status == SM_OK);
        json_stream_end(&l);
    }
}

static void every_allocation_may_fail(void **state) {
    static const char *const paths[] = {INPUTS "kineto-rank0.json", INPUTS "kineto-rank1.json.gz"};
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *own = sm_arena_new();
        sm_profiled what;
        const sm_trace_breakdown *b = NULL;
        const sm_profile_ran *p = NULL;
        sm_error err = {0};
        sm_status status =
            own ? sm_io_read_profiled(paths, 2, false, own, &what, &err) : SM_INTERNAL;
        if (!status) status = sm_trace_break_down(what.trace, own, &b, &err);
        if (!status) status = sm_profile_ran_on(b, NULL, own, &p, &err);
        assert_true(status == (failing_alloc_refused(&loop) ? SM_INTERNAL : SM_OK));
        sm_arena_free(own);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)
    const struct CMUnitTest tests[] = {
        TEST(kineto_is_broken_down),
        TEST(times_are_exact_beyond_2_to_53),
        TEST(mtia_waits_copies_and_computes),
        TEST(names_of_2021_are_read),
        TEST(hip_is_read),
        TEST(lines_of_jax_are_told_by_name),
        TEST(ops_of_a_host_are_its_work),
        TEST(attention_counts_by_its_mask),
        TEST(both_encodings_of_perfetto_are_one),
        TEST(tables_of_nsight_are_read),
        TEST(ops_are_joined_to_kernels),
        TEST(waiting_is_told_from_sending),
        TEST(a_folder_is_all_its_ranks),
        TEST(an_archive_is_all_its_ranks),
        TEST(rooflines_and_findings),
        TEST(steps_repeat_where_nothing_marks_them),
        TEST(what_is_no_trace_is_refused),
        TEST(what_is_cut_short_is_read_up_to_there),
        TEST(tokens_may_lie_across_windows),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

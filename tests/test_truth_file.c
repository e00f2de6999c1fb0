/* Files of measured rows: what is read, that both forms of a row are one, what is refused and
 * where, what is suspected, and the rows that the project ships. */
#include "unit.h"
#include "truth_form.h"
#include "failing_alloc.h"
#include "scalemodel/io.h"
#include "truth_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parsed {
    sm_arena *arena;
    sm_truth truth;
    sm_status status;
    sm_error err;
} parsed;

static parsed parse_bytes(const char *text, size_t length) {
    parsed p = {.arena = sm_arena_new()};
    sm_source source = {"rows", text, length};
    p.status = sm_truth_parse(&source, p.arena, &p.truth, &p.err);
    if (p.status != SM_OK) assert_true(p.truth.n == 0 && p.truth.row == NULL);
    return p;
}

static parsed parse_good(const char *text) {
    parsed p = parse_bytes(text, strlen(text));
    if (p.status != SM_OK) fail_msg("%d:%d: %s", p.err.line, p.err.column, p.err.sentence);
    return p;
}

static void done(parsed *p) { sm_arena_free(p->arena); }

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* ---- what is read ---- */

static void reads_gemm(void **state) {
    parsed p = parse_good("chip,dtype,m,n,k,time_us,source\n"
                          "h100_sxm,bf16,4096,8192,1024,125.5,\"vidur, by hand: \"\"x\"\"\"\n"
                          "a100,fp8,1,2,3,,\n");
    assert_int_equal(p.truth.kind, SM_TRUTH_GEMM);
    assert_int_equal(p.truth.n, 2);
    assert_string_equal(p.truth.file, "rows");
    const sm_truth_row *r = p.truth.row;
    assert_string_equal(r->id, "2");
    assert_int_equal(r->line, 2);
    assert_string_equal(r->chip, "h100_sxm");
    assert_string_equal(r->of.gemm.dtype, "bf16");
    assert_string_equal(r->source, "vidur, by hand: \"x\"");
    assert_near(r->of.gemm.m, 4096);
    assert_near(r->of.gemm.n, 8192);
    assert_near(r->of.gemm.k, 1024);
    assert_near(r->measured_s, 125.5e-6);
    assert_string_equal(r[1].id, "3");
    assert_string_equal(r[1].source, "");
    assert_true(isnan(r[1].measured_s));
    done(&p);
}

static void reads_attention(void **state) {
    parsed p =
        parse_good("chip,phase,batch,q_len,kv_len,n_heads,n_kv_heads,d_head,dtype,time_us,source\n"
                   "h20,decode,16,1,4096,32,8,128,bf16_kvfp8,88,infersim:x\n");
    const sm_attention_row *a = &p.truth.row->of.attention;
    assert_int_equal(p.truth.kind, SM_TRUTH_ATTENTION);
    assert_string_equal(a->phase, "decode");
    assert_string_equal(a->dtype, "bf16_kvfp8");
    assert_true(a->batch >= 16 && a->q_len <= 1 && a->kv_len >= 4096);
    assert_int_equal(a->n_heads, 32);
    assert_int_equal(a->n_kv_heads, 8);
    assert_int_equal(a->d_head, 128);
    assert_near(p.truth.row->measured_s, 88e-6);
    done(&p);
}

static void reads_collectives_without_a_time(void **state) {
    parsed p = parse_good("system,op,ranks,nodes,bytes,time_us,busbw_GBps,source\n"
                          "h100_sxm_node,all_reduce,8,1,1048576,40,45.9,nccl\n"
                          "h800_node,deepep_normal_combine,8,1,0,,158,deepep\n");
    const sm_truth_row *r = p.truth.row;
    assert_int_equal(p.truth.kind, SM_TRUTH_COLLECTIVE);
    assert_string_equal(r->chip, "h100_sxm_node");
    assert_string_equal(r->of.collective.op, "all_reduce");
    assert_int_equal(r->of.collective.ranks, 8);
    assert_int_equal(r->of.collective.nodes, 1);
    assert_near(r->of.collective.bytes, 1048576);
    assert_near(r->of.collective.busbw_GBps, 45.9);
    assert_near(r->measured_s, 40e-6);
    assert_true(isnan(r[1].measured_s));
    assert_near(r[1].of.collective.busbw_GBps, 158);
    done(&p);
}

static void reads_memops_and_inference(void **state) {
    parsed p = parse_good("chip,op,rows,cols,dtype,bytes,time_us,source\n"
                          "a100_sxm_80gb,gelu,1,1024,fp16,4096,48.16,llmcompass:fig5\n");
    assert_int_equal(p.truth.kind, SM_TRUTH_MEMOP);
    assert_string_equal(p.truth.row->of.memop.op, "gelu");
    assert_near(p.truth.row->of.memop.cols, 1024);
    assert_near(p.truth.row->of.memop.bytes, 4096);
    done(&p);
    p = parse_good("{\"id\":\"s1\",\"source\":\"splitwise\",\"model\":{\"name\":\"bloom\"},"
                   "\"chip\":\"a100\",\"input_len\":512,\"output_len\":null,"
                   "\"measured\":{\"ttft_ms\":173}}");
    assert_int_equal(p.truth.kind, SM_TRUTH_INFERENCE);
    assert_string_equal(p.truth.row->id, "s1");
    assert_string_equal(p.truth.row->source, "splitwise");
    assert_string_equal(p.truth.row->chip, "a100");
    assert_near(p.truth.row->measured_s, 0.173);
    done(&p);
}

/* Any order, blanks, further columns, comments, empty lines, a byte order mark, lines ended either
 * way, a line end inside quotes: the same row, and the right number of its line. */
static void reads_csv_as_people_write_it(void **state) {
    parsed p = parse_good("\xEF\xBB\xBF# of my cluster\r\n\r\n"
                          "k, \"m\" ,who,time_us,n,chip\r\n"
                          "3,1,\"two\r\nlines\",\t1e3 ,2,h100\r\n\r\n  # more\r\n4,1,,5.,2,h100");
    assert_int_equal(p.truth.n, 2);
    assert_int_equal(p.truth.row[0].line, 4);
    assert_near(p.truth.row[0].of.gemm.k, 3);
    assert_near(p.truth.row[0].measured_s, 1e-3);
    assert_string_equal(p.truth.row[0].of.gemm.dtype, "");
    assert_string_equal(p.truth.row[1].id, "8");
    assert_near(p.truth.row[1].of.gemm.k, 4);
    done(&p);
    p = parse_good("m,n,k,time_us"); /* a table without rows */
    assert_true(p.truth.n == 0 && p.truth.warnings == 0);
    done(&p);
    p = parse_good("id,m,n,k,time_us\nmine,1,1,1,9\n");
    assert_string_equal(p.truth.row->id, "mine");
    done(&p);
}

static void reads_operations_as_json_too(void **state) {
    parsed p = parse_good("\n{\"chip\":\"h100\",\"m\":64,\"n\":128,\"k\":256,\"time_us\":9,"
                          "\"id\":7,\"other\":[{}]}\n\n");
    assert_int_equal(p.truth.kind, SM_TRUTH_GEMM);
    assert_string_equal(p.truth.row->id, "7");
    assert_int_equal(p.truth.row->line, 2);
    assert_near(p.truth.row->of.gemm.k, 256);
    done(&p);
}

/* ---- training steps: two forms, one convention ---- */

static const truth_schema *schema_of(sm_truth_kind kind) {
    for (size_t i = 0; i < SM_TRUTH_KIND_COUNT; i++)
        if (rows_schemas[i].kind == kind) return &rows_schemas[i];
    return NULL;
}

static void assert_same_field(const truth_field *f, const char *x, const char *y) {
    double a, b;
    switch (f->type) {
    case TRUTH_TEXT:
    case TRUTH_LABEL:
    case TRUTH_WORDS:
        assert_string_equal(*(const char *const *)(const void *)x,
                            *(const char *const *)(const void *)y);
        return;
    case TRUTH_NUMBER:
    case TRUTH_TIME:
    case TRUTH_SIZE:
        memcpy(&a, x, sizeof a);
        memcpy(&b, y, sizeof b);
        if (!(isnan(a) && isnan(b))) assert_near(a, b);
        return;
    case TRUTH_COUNT:
    case TRUTH_STAGE:
    case TRUTH_FLAG: assert_memory_equal(x, y, sizeof(int)); return;
    }
}

static void assert_same_row(const sm_truth_row *x, const sm_truth_row *y) {
    const truth_schema *schema = schema_of(x->kind);
    const sm_training_row *s = &x->of.training, *t = &y->of.training;
    assert_int_equal(x->kind, y->kind);
    for (size_t i = 0; i < schema->n; i++)
        if (schema->field[i].offset < offsetof(truth_draft, label))
            assert_same_field(&schema->field[i], (const char *)x + schema->field[i].offset,
                              (const char *)y + schema->field[i].offset);
    assert_string_equal(x->source, y->source);
    assert_true(s->oom == t->oom && s->model.kv_lora == t->model.kv_lora);
    assert_true(isnan(x->measured_s)
                    ? isnan(y->measured_s)
                    : x->measured_s <= y->measured_s && x->measured_s >= y->measured_s);
    assert_true((isnan(s->peak_memory_bytes) && isnan(t->peak_memory_bytes)) ||
                fabs(s->peak_memory_bytes - t->peak_memory_bytes) < 1);
}

static void both_forms_are_one(void **state) {
    parsed json = parse_good(as_json), csv = parse_good(as_csv);
    assert_int_equal(json.truth.n, 6);
    assert_int_equal(csv.truth.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_same_row(&json.truth.row[i], &csv.truth.row[i]);
        assert_int_equal(csv.truth.row[i].line, i + 2);
        assert_int_equal(json.truth.row[i].line, i + 1);
    }
    done(&json);
    done(&csv);
}

static void reads_experts_and_latent_attention(void **state) {
    parsed p = parse_good(as_json);
    const sm_truth_row *r = p.truth.row;
    const sm_training_row *t = &r->of.training;
    assert_string_equal(r->chip, "GB300");
    assert_string_equal(r->source, "NVIDIA Megatron-Bridge performance summary");
    assert_int_equal(t->year, 2026);
    assert_int_equal(t->model.layers, 61);
    assert_int_equal(t->model.experts, 256);
    assert_true(t->model.kv_lora > 0);
    assert_int_equal(t->model.kv_lora, 512);
    assert_int_equal(t->model.v_dim, 128);
    assert_int_equal(t->model.d_head, 0);
    assert_true(t->model.gated_mlp == SM_YES && t->model.tied == SM_NO && t->sp == SM_NO);
    assert_true(t->fsdp == SM_UNSTATED && t->zero_stage == -1 && isnan(t->model.params_b));
    assert_string_equal(t->flags,
                        "moe_forced_balance mtp_inferred_from_flops mtp_inferred_from_flops");
    assert_string_equal(t->duplicate_of, "");
    assert_true(t->vp == 8 && t->ep == 32 && t->dp == 128 && t->devices == 256);
    assert_false(p.truth.row[2].of.training.model.kv_lora > 0);
    assert_int_equal(p.truth.row[2].of.training.zero_stage, 0);
    done(&p);
}

static void times_have_one_convention(void **state) {
    parsed p = parse_good(as_json);
    const sm_truth_row *r = p.truth.row;
    assert_near(r[0].measured_s, 4096.0 * 4096 / (6288.0 * 256)); /* printed tokens/s */
    assert_near(r[0].of.training.derived_step_time_s, 10.4224);
    assert_true(isnan(r[1].measured_s) && r[1].of.training.oom); /* out of memory */
    assert_string_equal(r[1].of.training.notes, "says \"nothing\", twice");
    assert_near(r[2].measured_s, 0.37216); /* printed seconds */
    assert_false(r[2].of.training.oom);
    assert_near(r[3].of.training.peak_memory_bytes, 64.653e9);
    assert_near(r[4].of.training.peak_memory_bytes, 62.166 * 1073741824.0);
    assert_true(isnan(r[2].of.training.peak_memory_bytes));
    assert_near(r[5].measured_s, 13.828); /* from printed FLOP/s */
    assert_near(r[5].of.training.mfu, 0.567);
    done(&p);
}

static void prefers_printed_seconds(void **state) {
    const char *header = "hardware.chip,hardware.chips,seq_len,global_batch_sequences,"
                         "measured.step_time_s,measured.tokens_per_s_per_chip,"
                         "derived.step_time_s_from_tflops,flags\n";
    static const struct {
        const char *row;
        double seconds;
    } rows[] = {
        {"x,8,100,16,2.5,80,9,\n", 2.5}, {"x,8,100,16,,80,9,a\n", 2.5},
        {"x,,100,16,,80,9,OOMs\n", 9},   {"x,8,,16,,80,9,\n", 9},
        {"x,8,100,16,,,9,no_OOM\n", 9},  {"x,8,100,16,,,,b OOM c\n", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s%s", header, rows[i].row);
        parsed p = parse_good(text);
        assert_int_equal(p.truth.row->of.training.oom, isnan(rows[i].seconds));
        if (isnan(rows[i].seconds)) assert_true(isnan(p.truth.row->measured_s));
        else assert_near(p.truth.row->measured_s, rows[i].seconds);
        done(&p);
    }
}

/* ---- what is refused ---- */

static void refuses(const char *text, const char *shown) {
    parsed p = parse_bytes(text, strlen(text));
    char out[1200];
    assert_int_equal(p.status, SM_BAD_INPUT);
    sm_error_format(&p.err, out, sizeof out);
    assert_string_equal(out, shown);
    done(&p);
}

#define KINDS                                                                                      \
    "hardware.chip (training); input_len, output_len (inference); m, n, k (gemm); "                \
    "q_len, kv_len (attention); op, ranks (collective); op, bytes (memop)"

static void refuses_bad_csv(void **state) {
    refuses("m,n,k,time_us\n1,2,3,4\n1,2,x3,4\n",
            "rows:3:5: k: expected a number, found \"x3\"\n  1,2,x3,4\n      ^~");
    refuses("m,n,k,time_us\n1,2,3,fast\n",
            "rows:2:7: time_us: expected a number, found \"fast\"\n  1,2,3,fast\n        ^~~~");
    refuses("m,n,k,time_us\n1,2,3,0\n",
            "rows:2:7: time_us: expected a number above 0, found \"0\"\n  1,2,3,0\n        ^");
    refuses("m,n,k,time_us\n1,2,3,\"1,5\"\n",
            "rows:2:7: time_us: expected a number, found \"1,5\"\n  1,2,3,\"1,5\"\n        ^~~~~");
    refuses("m,n,k,time_us\n1,2.5,3,4\n",
            "rows:2:3: n: expected a whole number from 1, found \"2.5\"\n  1,2.5,3,4\n    ^~~");
    refuses("op,ranks,bytes,time_us\na,8,-1,4\n",
            "rows:2:5: bytes: expected a number of at least 0, found \"-1\"\n  a,8,-1,4\n      ^~");
    refuses("hardware.chip,sp\nh100,maybe\n",
            "rows:2:6: sp: expected true or false, found \"maybe\"\n  h100,maybe\n       ^~~~~");
    refuses("hardware.chip,tp\nh100,nan\n",
            "rows:2:6: tp: expected a whole number, found \"nan\"\n  h100,nan\n       ^~~");
    refuses("m,n,k,time_us\n1,2,3\n", "rows:2:1: this row has 3 cells, but the header names 4 "
                                      "columns\n  1,2,3\n  ^~~~~");
    refuses("m,n,k,time_us\n1,\"2,3,4\n", "rows:2:3: this quote is never closed\n"
                                          "  1,\"2,3,4\n    ^");
    refuses("m,n,k,time_us\n1,\"2\" 3,4\n",
            "rows:2:7: expected a comma or the end of the line after the closing quote\n"
            "  1,\"2\" 3,4\n        ^");
}

static void refuses_bad_headers(void **state) {
    refuses("", "rows:1:1: there are no measured rows: expected CSV with a header, or one JSON "
                "object a line");
    refuses("[]", "rows:1:1: there are no measured rows: an empty list\n  []\n  ^~");
    refuses("[3]", "rows:1:2: expected an object {...}: one row a line\n  [3]\n   ^");
    refuses("m,n,k,time\n", "rows:1:7: gemm rows need the column \"time_us\"; the nearest here is "
                            "\"time\"\n  m,n,k,time\n        ^~~~");
    refuses("q_len,kv_len\n", "rows:1:1: attention rows need the column \"time_us\"\n"
                              "  q_len,kv_len\n  ^~~~~~~~~~~~");
    refuses("m,n,k,m\n", "rows:1:7: the column \"m\" is named twice\n  m,n,k,m\n        ^");
    refuses("a,b\n1,2\n",
            "rows:1:1: the header tells no kind of measured rows: expected one of " KINDS
            "\n  a,b\n  ^~~");
}

static void refuses_bad_json(void **state) {
    refuses("{\"m\":1,\"n\":1,\"k\":1}\n{\"m\":1,}\n",
            "rows:2:8: this is not valid JSON: string or '}' expected near '}'\n"
            "  {\"m\":1,}\n         ^");
    refuses("{\"m\":1,\"n\":1,\"k\":\"1\"}",
            "rows:1:18: k: expected a number, found \"1\"\n  {\"m\":1,\"n\":1,\"k\":\"1\"}\n"
            "                   ^~~");
    refuses("{\"a\":1}", "rows:1:1: the keys tell no kind of measured row: expected one of " KINDS
                         "\n  {\"a\":1}\n  ^");
    refuses("\n{\"m\":1,\"n\":1,\"k\":1}\n{\"op\":1,\"ranks\":1}\n",
            "rows:3:1: this row is of another kind: the file began with gemm\n"
            "  {\"op\":1,\"ranks\":1}\n  ^");
    refuses("{\"m\":1,\"n\":1,\"k\":1}\n[1]\n",
            "rows:2:1: expected an object {...}: one row a line\n  [1]\n  ^~~");
    refuses("{\"hardware\":{\"chip\":\"x\"},\"model\":\"gpt\"}",
            "rows:1:34: model: expected an object {...}\n"
            "  {\"hardware\":{\"chip\":\"x\"},\"model\":\"gpt\"}\n"
            "                                   ^~~~~");
    refuses("{\"hardware\":{\"chip\":\"x\"},\"flags\":[1]}",
            "rows:1:34: flags: expected a list of texts, found a list\n"
            "  {\"hardware\":{\"chip\":\"x\"},\"flags\":[1]}\n"
            "                                   ^~~");
    refuses("{\"hardware\":{\"chip\":\"x\"},\"tp\":true}",
            "rows:1:31: tp: expected a whole number, found \"true\"\n"
            "  {\"hardware\":{\"chip\":\"x\"},\"tp\":true}\n"
            "                                ^~~~");
}

static void refuses_too_many_columns(void **state) {
    char text[600] = "";
    memset(text, ',', 300);
    parsed p = parse_bytes(text, 300);
    assert_int_equal(p.status, SM_BAD_INPUT);
    assert_string_equal(p.err.sentence, "a row has at most 256 cells");
    assert_int_equal(p.err.column, 257);
    done(&p);
}

static void names_a_missing_file(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err;
    assert_int_equal(sm_truth_read("data/none.csv", arena, &truth, &err), SM_IO);
    assert_string_equal(err.sentence, "cannot open data/none.csv: No such file or directory");
    sm_arena_free(arena);
}

/* ---- what is suspected ---- */

static void warns(const char *text, const char *warning) {
    parsed p = parse_good(text);
    if (p.truth.warnings != 1) fail_msg("%zu warnings", p.truth.warnings);
    assert_string_equal(p.truth.warning->text, warning);
    done(&p);
}

static void warns_nothing(const char *text) {
    parsed p = parse_good(text);
    if (p.truth.warnings) fail_msg("%s", p.truth.warning->text);
    done(&p);
}

#define GEMM "chip,m,n,k,time_us\n"
#define STEP                                                                                       \
    "hardware.chip,hardware.chips,hardware.devices,model.layers,model.d_model,model.d_ff,"         \
    "seq_len,global_batch_sequences,measured.step_time_s,measured.tokens_per_s_per_chip,tp,cp,"    \
    "pp,dp,measured.peak_memory_gib\n"

static void suspects_units(void **state) {
    warns_nothing(GEMM "h100_sxm,8192,8192,8192,1700\nh100_sxm,1,64,64,5\nnone,1,1,1,1e-9\n");
    warns(GEMM "h100_sxm,8192,8192,8192,1.7\n",
          "time_us says 1.7 us, but h100-sxm needs 556 us at its datasheet's rates; is it in "
          "milliseconds?");
    warns(GEMM "h100_sxm,8192,8192,8192,1.7e-3\n",
          "time_us says 1.7 ns, but h100-sxm needs 556 us at its datasheet's rates; is it in "
          "seconds?");
    warns(GEMM "h100_sxm,8192,8192,8192,1.7e6\n",
          "time_us says 1.7 s, 3060 times what h100-sxm needs at its datasheet's rates; is it "
          "in nanoseconds?");
    warns(GEMM "h100_sxm,8,8,8,0.006\n",
          "time_us says 6 ns, but no kernel is that short; is it in milliseconds?");
    warns("system,op,ranks,nodes,bytes,time_us,busbw_GBps\nx,all_reduce,8,1,1e9,4000,0.4\n",
          "busbw_GBps says 400 MB/s, but bytes and time_us give 250 GB/s");
}

static void suspects_steps(void **state) {
    warns_nothing(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,,8,1,1,1,70\n");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24000,,8,1,1,1,\n",
          "step_time_s says 6.67 h, 16070 times what h100-sxm needs at its datasheet's rates; is "
          "it in milliseconds?");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,524288,24,,8,1,1,1,\n",
          "step_time_s says 24 s, but h100-sxm needs 1.7 h at its datasheet's rates; is the "
          "batch in tokens?");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,,4,1,1,1,\n",
          "tp 4 x cp 1 x pp 1 x dp 1 is 4, but there are 8 devices");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,3000,8,1,1,1,\n",
          "step_time_s says 24 s, but tokens_per_s_per_chip gives 21.8 s");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,,8,1,1,1,70000\n",
          "the peak memory is 75.2 TB, but h100-sxm has 85 GB; is it in MiB, or of all chips?");
    warns(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,,8,1,1,1,0.06\n",
          "the peak memory is 64.4 MB of the 85 GB that h100-sxm has; is it a share, or in TiB?");
}

static void suspects_contradictions(void **state) {
    warns(GEMM "h100_sxm,8192,8192,8192,1700\nh100_sxm,8192,8192,8192,3500\n"
               "h100_sxm,8192,8192,8192,2000\n",
          "3.5 ms here, but 1.7 ms in line 2 for the same configuration");
    warns_nothing(GEMM "h100_sxm,8192,8192,8192,1700\nh100_sxm,8192,8192,8192,3300\n"
                       "h100_sxm,8192,8192,8191,3500\nh100_sxm,8192,8192,8192,\n");
    warns("id,m,n,k,time_us\na,1,1,1,5\nb,1,1,1,5\na,1,1,2,5\n",
          "the id \"a\" is also that of line 2");
    parsed p = parse_good(STEP "H100-SXM-80GB,8,8,32,4096,16384,4096,128,24,,8,1,1,1,\n"
                               "H100-SXM-80GB,8,8,32,4096,16384,4096,128,50,,4,1,1,1,\n"
                               "H100-SXM-80GB,8,8,32,4096,16384,4096,128,50,,8,1,1,1,\n");
    assert_int_equal(p.truth.warnings, 2); /* in the order of the lines */
    assert_int_equal(p.truth.warning[0].line, 3);
    assert_int_equal(p.truth.warning[1].line, 4);
    assert_string_equal(p.truth.warning[1].id, "4");
    done(&p);
}

/* ---- the rows of the project ---- */

static parsed read_shipped(const char *name) {
    parsed p = {.arena = sm_arena_new()};
    char path[200];
    snprintf(path, sizeof path, "data/truth/%s.csv", name);
    p.status = sm_truth_read(path, p.arena, &p.truth, &p.err);
    if (p.status != SM_OK) fail_msg("%s:%d: %s", path, p.err.line, p.err.sentence);
    return p;
}

static void shipped_rows_are_whole(void **state) {
    static const struct {
        const char *name;
        sm_truth_kind kind;
        size_t rows, warnings;
        bool timed;
    } files[] = {
        {"training", SM_TRUTH_TRAINING, 1038, 1, true},
        {"training_small", SM_TRUTH_TRAINING, 952, 0, true},
        {"training_oom", SM_TRUTH_TRAINING, 224, 0, false},
        {"training_new", SM_TRUTH_TRAINING, 292, 0, true},
        {"training_ci", SM_TRUTH_TRAINING, 168, 29, true},
        {"training_tuned", SM_TRUTH_TRAINING, 202, 0, true},
        {"gemm", SM_TRUTH_GEMM, 2992, 0, true},
        {"attention", SM_TRUTH_ATTENTION, 2710, 1, true},
        {"collectives", SM_TRUTH_COLLECTIVE, 2373, 0, true},
        {"memops", SM_TRUTH_MEMOP, 445, 0, true},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        parsed p = read_shipped(files[i].name);
        assert_int_equal(p.truth.kind, files[i].kind);
        assert_int_equal(p.truth.n, files[i].rows);
        assert_int_equal(p.truth.warnings, files[i].warnings);
        for (size_t k = 0; k < p.truth.n; k++) {
            const sm_truth_row *r = &p.truth.row[k];
            assert_true(r->source[0] != 0 && r->chip[0] != 0);
            assert_int_equal(r->measured_s > 0, files[i].timed);
            if (r->kind == SM_TRUTH_TRAINING) assert_int_equal(r->of.training.oom, !files[i].timed);
        }
        done(&p);
    }
}

static bool can_be_compared(const sm_truth_row *r) {
    const sm_training_row *t = &r->of.training;
    bool sized = t->model.layers > 0 && t->model.d_model > 0 && t->chips > 0 && t->seq_len > 0 &&
                 t->global_batch_sequences > 0;
    return sized && (r->measured_s > 0 || t->oom);
}

/* Rows apart lack a fact; the others have those that every prediction needs. */
static void rows_with_missing_facts_are_apart(void **state) {
    static const char *const whole[] = {"training", "training_small", "training_oom"};
    for (size_t i = 0; i < 3; i++) {
        parsed p = read_shipped(whole[i]);
        for (size_t k = 0; k < p.truth.n; k++) assert_true(can_be_compared(&p.truth.row[k]));
        done(&p);
    }
    parsed p = read_shipped("incomplete");
    assert_int_equal(p.truth.n, 146);
    for (size_t k = 0; k < p.truth.n; k++) {
        const sm_training_row *t = &p.truth.row[k].of.training;
        bool batched = t->microbatch > 0 || t->per_device_batch_size > 0;
        bool wide = t->model.experts > 0 ? t->model.d_ff_expert > 0 : t->model.d_ff > 0;
        if (can_be_compared(&p.truth.row[k]) && batched && wide && t->model.heads > 0)
            fail_msg("%s lacks nothing", p.truth.row[k].id);
    }
    done(&p);
    p = read_shipped("incomplete_collectives");
    for (size_t k = 0; k < p.truth.n; k++) assert_true(isnan(p.truth.row[k].measured_s));
    done(&p);
}

/* A step printed both in seconds and in tokens/s is one time. */
static void normalised_times_agree(void **state) {
    size_t both = 0;
    static const char *const names[] = {"training", "training_small"};
    for (size_t i = 0; i < 2; i++) {
        parsed p = read_shipped(names[i]);
        for (size_t k = 0; k < p.truth.n; k++) {
            const sm_training_row *t = &p.truth.row[k].of.training;
            double by_tokens =
                t->global_batch_sequences * t->seq_len / (t->tokens_per_s_per_chip * t->chips);
            if (!(t->step_time_s > 0) || !(by_tokens > 0)) continue;
            both++;
            if (fabs(by_tokens / t->step_time_s - 1) > 0.02)
                fail_msg("%s: %g s by tokens, %g s printed", p.truth.row[k].id, by_tokens,
                         t->step_time_s);
        }
        done(&p);
    }
    if (both < 150) fail_msg("only %zu rows print both", both);
}

/* FLOP/s count as the source counts: where tokens/s are printed too, the file's own arithmetic from
 * tokens is the time that is read. */
static void derived_times_agree(void **state) {
    parsed p = read_shipped("training");
    size_t derived = 0;
    for (size_t k = 0; k < p.truth.n; k++) {
        const sm_truth_row *r = &p.truth.row[k];
        if (!(r->of.training.derived_step_time_s > 0)) continue;
        derived++;
        if (fabs(r->measured_s / r->of.training.derived_step_time_s - 1) > 0.02)
            fail_msg("%s: %g s, derived %g s", r->id, r->measured_s,
                     r->of.training.derived_step_time_s);
    }
    assert_true(derived > 300);
    done(&p);
}

/* Write the rows of a shipped file of operations with all times times factor. */
static char *scaled(const char *name, const char *columns, double factor, size_t *rows) {
    parsed p = read_shipped(name);
    char *text = malloc(200 * (p.truth.n + 1));
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "%s\n", columns);
    for (size_t k = 0; k < p.truth.n; k++) {
        const sm_truth_row *r = &p.truth.row[k];
        double us = r->measured_s * 1e6 * factor;
        if (p.truth.kind == SM_TRUTH_GEMM)
            at += (size_t)sprintf(text + at, "%s,%.0f,%.0f,%.0f,%.9g\n", r->chip, r->of.gemm.m,
                                  r->of.gemm.n, r->of.gemm.k, us);
        else
            at += (size_t)sprintf(
                text + at, "%s,%s,%.0f,%.0f,%.0f,%d,%d,%d,%.9g\n", r->chip, r->of.attention.phase,
                r->of.attention.batch, r->of.attention.q_len, r->of.attention.kv_len,
                r->of.attention.n_heads, r->of.attention.n_kv_heads, r->of.attention.d_head, us);
    }
    *rows = p.truth.n;
    done(&p);
    return text;
}

static void assert_found(const char *name, const char *columns, double factor) {
    size_t rows, found = 0;
    char *text = scaled(name, columns, factor, &rows);
    parsed p = parse_good(text);
    for (size_t i = 0; i < p.truth.warnings; i++)
        found += strncmp(p.truth.warning[i].text, "time_us says", 12) == 0;
    if (found * 100 < rows * 95)
        fail_msg("%s times %g: %zu of %zu rows are suspected", name, factor, found, rows);
    done(&p);
    free(text);
}

/* Every shipped matmul and attention with its time in the wrong unit: at least 95 % are named. */
static void wrong_units_are_found(void **state) {
    const char *attention = "chip,phase,batch,q_len,kv_len,n_heads,n_kv_heads,d_head,time_us";
    assert_found("gemm", "chip,m,n,k,time_us", 1e-3);
    assert_found("gemm", "chip,m,n,k,time_us", 1e3);
    assert_found("attention", attention, 1e-3);
    assert_found("attention", attention, 1e3);
}

static void survives_every_failed_allocation(void **state) {
    static const char *const texts[] = {as_json, as_csv,
                                        GEMM "h100,1,1,1,1\nh100,1,1,1,1e9\nh100,1,1,1,5\n"};
    for (size_t i = 0; i < 3; i++) {
        FOR_EACH_FAILING_ALLOCATION(loop) {
            sm_arena *arena = sm_arena_new();
            if (!arena) continue;
            sm_source source = sm_source_of("rows", texts[i]);
            sm_truth truth;
            sm_error err = {0};
            sm_status status = sm_truth_parse(&source, arena, &truth, &err);
            if (status != SM_OK) {
                assert_int_equal(status, SM_INTERNAL);
                assert_string_equal(err.sentence, "out of memory");
            } else if (!failing_alloc_refused(&loop)) {
                assert_int_equal(truth.n, i < 2 ? 6 : 3);
            }
            if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
            sm_arena_free(arena);
        }
    }
}

/* Every cut and many damaged bytes of good files: an answer or a placed error, never more. */
static void survives_damage(void **state) {
    static const char *const texts[] = {as_json, as_csv, GEMM "h100,1,1,1,\"5\"\n"};
    sm_rng rng = {7};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(texts[i]);
        for (int turn = 0; turn < 300; turn++) {
            size_t cut = (size_t)sm_rng_below(&rng, length) + 1;
            char *text = malloc(cut);
            assert_non_null(text);
            memcpy(text, texts[i], cut);
            for (int k = 0; k < turn % 4; k++)
                text[sm_rng_below(&rng, cut)] = (char)sm_rng_below(&rng, 256);
            parsed p = parse_bytes(text, cut);
            if (p.status != SM_OK) assert_true(p.err.line >= 1 && p.err.sentence[0] != 0);
            done(&p);
            free(text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_gemm),
        cmocka_unit_test(reads_attention),
        cmocka_unit_test(reads_collectives_without_a_time),
        cmocka_unit_test(reads_memops_and_inference),
        cmocka_unit_test(reads_csv_as_people_write_it),
        cmocka_unit_test(reads_operations_as_json_too),
        cmocka_unit_test(both_forms_are_one),
        cmocka_unit_test(reads_experts_and_latent_attention),
        cmocka_unit_test(times_have_one_convention),
        cmocka_unit_test(prefers_printed_seconds),
        cmocka_unit_test(refuses_bad_csv),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_bad_json),
        cmocka_unit_test(refuses_too_many_columns),
        cmocka_unit_test(names_a_missing_file),
        cmocka_unit_test(suspects_units),
        cmocka_unit_test(suspects_steps),
        cmocka_unit_test(suspects_contradictions),
        cmocka_unit_test(shipped_rows_are_whole),
        cmocka_unit_test(rows_with_missing_facts_are_apart),
        cmocka_unit_test(normalised_times_agree),
        cmocka_unit_test(derived_times_agree),
        cmocka_unit_test(wrong_units_are_found),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rows written to a file read back as they were, and predict the same. */
#include <math.h>
#include "unit.h"
#include "sanitized.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "model_of.h"
#include "scalemodel/io.h"

static char folder[] = "/tmp/scalemodel-rows-XXXXXX";
static char path[80], other[80];

static int begin(void **state) {
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/rows.jsonl", folder);
    snprintf(other, sizeof other, "%s/again.jsonl", folder);
    return 0;
}

static int end(void **state) {
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static sm_truth read_rows(const char *from, sm_arena *arena) {
    sm_truth truth;
    sm_error err = {.status = SM_OK};
    if (sm_truth_read(from, arena, &truth, &err)) fail_msg("%s", err.sentence);
    return truth;
}

static double predicted(const sm_truth_row *row, bool *known) {
    sm_truth_case *c;
    sm_prediction p;
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_truth_case_new(row, &c, &err), SM_OK);
    sm_truth_predict(c, NULL, &p);
    *known = p.unknown == NULL;
    sm_truth_case_free(c);
    return *known ? p.expected_s : 0;
}

static bool same_number(double a, double b) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b);
}

static void append(const char *to, const sm_truth_row *row) {
    sm_error err = {.status = SM_OK};
    if (sm_truth_append(to, row, &err)) fail_msg("%s", err.sentence);
}

/* Rows of each kind as they were published, some from every part of their file. */
static void published_rows_come_back(void **state) {
    static const char *const files[] = {"data/truth/training.csv",    "data/truth/gemm.csv",
                                        "data/truth/attention.csv",   "data/truth/collectives.csv",
                                        "data/truth/memops.csv",      "data/truth/inference.csv",
                                        "data/truth/training_oom.csv"};
    enum { ROWS = 12 };
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        sm_arena *arena = sm_arena_new();
        sm_truth all = read_rows(files[f], arena);
        unlink(path);
        for (size_t i = 0; i < ROWS; i++) append(path, &all.row[i * all.n / ROWS]);
        sm_truth back = read_rows(path, arena);
        assert_int_equal(back.n, ROWS);
        assert_int_equal(back.kind, all.kind);
        for (size_t i = 0; i < ROWS; i++) {
            const sm_truth_row *x = &all.row[i * all.n / ROWS], *y = &back.row[i];
            bool known, again;
            assert_string_equal(y->id, x->id);
            assert_string_equal(y->chip, x->chip);
            assert_string_equal(y->source, x->source);
            assert_true(same_number(y->measured_s, x->measured_s));
            double first = predicted(x, &known), second = predicted(y, &again);
            assert_true(known == again && same_number(second, first));
        }
        sm_arena_free(arena);
    }
}

static sm_truth_row own_step(void) {
    sm_truth_row row;
    sm_truth_row_blank(SM_TRUTH_TRAINING, &row);
    row.id = "a \"quoted\" name";
    row.chip = "desk";
    row.source = SM_TRUTH_RUN;
    row.software = SM_TRUTH_RUN_SOFTWARE;
    row.measured_s = row.of.training.step_time_s = 0.1 + 0.2;
    row.of.training.flags = "quick rough";
    row.of.training.peak_memory_bytes = 3e9;
    row.of.training.zero_stage = 0;
    row.of.training.sp = SM_NO;
    row.of.training.model.layers = 4;
    row.of.training.plan = "tensor=2,context_by=gather";
    return row;
}

static void own_rows_come_back(void **state) {
    sm_truth_row row = own_step();
    sm_arena *arena = sm_arena_new();
    unlink(path);
    append(path, &row);
    append(path, &row);
    sm_truth back = read_rows(path, arena);
    assert_int_equal(back.n, 2);
    const sm_truth_row *y = &back.row[1];
    assert_string_equal(y->id, row.id);
    assert_string_equal(y->source, SM_TRUTH_RUN);
    assert_string_equal(sm_truth_software(y), "scalemodel-run");
    assert_true(y->measured_s == 0.1 + 0.2);
    assert_string_equal(y->of.training.flags, "quick rough");
    assert_string_equal(y->of.training.plan, row.of.training.plan);
    assert_true(same_number(y->of.training.peak_memory_bytes, 3e9));
    assert_int_equal(y->of.training.zero_stage, 0);
    assert_int_equal(y->of.training.sp, SM_NO);
    assert_int_equal(y->of.training.fsdp, SM_UNSTATED);
    assert_true(isnan(y->of.training.seq_len));
    assert_int_equal(y->of.training.model.layers, 4);
    sm_arena_free(arena);
}

static void write_text(const char *text) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_io_write(path, text, strlen(text), &err), SM_OK);
}

static void refused(const char *text, const char *why) {
    sm_truth_row row = own_step();
    sm_error err = {.status = SM_OK};
    char sentence[200];
    sm_arena *arena = sm_arena_new();
    sm_source after;
    write_text(text);
    assert_int_equal(sm_truth_append(path, &row, &err), SM_BAD_INPUT);
    snprintf(sentence, sizeof sentence, why, path);
    assert_string_equal(err.sentence, sentence);
    assert_int_equal(sm_io_read(path, arena, &after, &err), SM_OK);
    assert_int_equal(after.length, strlen(text));
    sm_arena_free(arena);
}

static void other_files_are_left_alone(void **state) {
    refused("chip,dtype,m,n,k,time_us\nh100,bf16,8,8,8,1\n",
            "%s holds no JSON lines: rows are added to those alone");
    refused("{\"chip\":\"h100\",\"dtype\":\"bf16\",\"m\":8,\"n\":8,\"k\":8,\"time_us\":1}",
            "%s holds rows of gemm, and this one is of training");
    write_text("\n{\"hardware\":{\"chip\":\"x\"},\"id\":\"first\"}"); /* no end of line */
    sm_truth_row row = own_step();
    append(path, &row);
    sm_arena *arena = sm_arena_new();
    sm_truth back = read_rows(path, arena);
    assert_int_equal(back.n, 2);
    assert_string_equal(back.row[0].id, "first");
    sm_arena_free(arena);
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_truth_append("/nowhere/at/all", &row, &err), SM_IO);
}

/* A chip that the catalogue has not is the one that is given. */
static void rows_of_own_chips_are_predicted(void **state) {
    sm_truth_row row;
    bool known;
    sm_truth_row_blank(SM_TRUTH_GEMM, &row);
    row.id = "1";
    row.chip = "desk";
    row.of.gemm.dtype = "bf16";
    row.of.gemm.m = row.of.gemm.n = row.of.gemm.k = 1024;
    predicted(&row, &known);
    assert_false(known);
    sm_chip chip = *sm_chip_find("h100-sxm", 8);
    chip.name = "desk";
    row.on = &chip;
    double own_s = predicted(&row, &known);
    assert_true(known);
    row.on = NULL;
    row.chip = "h100-sxm";
    assert_true(own_s > 0 && own_s < 2 * predicted(&row, &known));
    row.of.gemm.dtype = "fp32";
    assert_true(predicted(&row, &known) > own_s && known);
}

static const char *reason(const sm_truth_row *row) {
    static char kept[200];
    sm_truth_case *c;
    sm_prediction p;
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_truth_case_new(row, &c, &err), SM_OK);
    sm_truth_predict(c, NULL, &p);
    snprintf(kept, sizeof kept, "%s", p.unknown ? p.unknown : "");
    sm_truth_case_free(c);
    return kept;
}

/* A step of this program's runtime is priced as the runtime executes it, under the plan it states,
 * whatever the row's degrees say. */
static void own_steps_are_priced_as_run(void **state) {
    sm_truth_row row = own_step();
    sm_training_row *t = &row.of.training;
    sm_error err = {.status = SM_OK};
    sm_arena *arena = sm_arena_new();
    sm_model model;
    sm_system system;
    sm_plan plan;
    sm_train *train = NULL;
    sm_price_of_plan price;
    bool known;
    assert_int_equal(sm_io_model_load("tests/cli/inputs/tiny-llama.json", arena, &model, &err), 0);
    row.chip = "h100-sxm";
    t->model.layers = model.L;
    t->model.d_model = model.D;
    t->model.d_ff = model.kind[0].F;
    t->model.heads = model.kind[0].N;
    t->model.kv_heads = model.kind[0].K;
    t->model.d_head = model.kind[0].H;
    t->model.vocab = model.V;
    t->model.gated_mlp = SM_YES;
    t->model.tied = model.tied ? SM_YES : SM_NO;
    t->chips = 4;
    t->tp = 1;
    t->seq_len = 32;
    t->global_batch_sequences = 8;
    t->flags = "";
    t->plan = "data=2,tensor=2,microbatch=2,dtype=fp32";
    sm_source chips = sm_source_of("chips", "h100-sxm:4"), words = sm_source_of("plan", t->plan);
    assert_int_equal(sm_system_parse(&chips, NULL, 0, &system, &err), SM_OK);
    assert_int_equal(sm_plan_parse(&words, &plan, &err), SM_OK);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &model,
                  .system = &system,
                  .batch_tokens = 256,
                  .seq = 32,
                  .usd_per_chip_hour = -1};
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    sm_train_set_software(train, &sm_train_runtime);
    assert_int_equal(sm_train_price(train, &plan, &price, &err), SM_OK);
    assert_true(same_number(predicted(&row, &known), price.expected_s) && known);
    row.software = "of somebody else";
    assert_false(same_number(predicted(&row, &known), price.expected_s));
    t->plan = "data=2,tensr=2";
    assert_string_equal(reason(&row), "the plan as stated cannot be read");
    t->plan = "data=8";
    assert_string_equal(reason(&row),
                        "the plan takes 8 chips, which do not lay out on the 4 of h100-sxm:4");
    sm_train_free(train);
    sm_arena_free(arena);
}

/* Rows of inference are folded with all that they state; of one configuration are those that state
 * the same figures, on whatever day. */
static void alike_rows_of_inference_are_folded(void **state) {
    enum { MANY = 300 };
    char *text = malloc(MANY * 128), *at = text;
    const sm_truth_given given = {.fold = true};
    double rows = 0, logs = 0;
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {.status = SM_OK};
    assert_non_null(text);
    at += sprintf(at, "id,model.name,chip,chips,parallel.tp,batch,input_len,output_len,phase,"
                      "measured.ttft_ms,measured.tpot_ms,date\n");
    for (int i = 0; i < MANY; i++) {
        double ms = exp(i * 7919 % MANY / 1000.0);
        at += sprintf(at, "r%d,llama-3.1-8b,h100,1,1,4,512,128,e2e,%.9f,%.9f,day %d\n", i, 10 * ms,
                      ms, i);
    }
    sprintf(at, "first,llama-3.1-8b,h100,1,1,4,512,128,e2e,20,,day 1\n");
    write_text(text);
    free(text);
    if (sm_truth_read_given(path, &given, arena, &truth, &err)) fail_msg("%s", err.sentence);
    assert_in_range(truth.n, 1 + SM_TRUTH_MOST_ALIKE / 2, 1 + SM_TRUTH_MOST_ALIKE);
    for (size_t i = 0; i < truth.n; i++) {
        const sm_inference_row *r = &truth.row[i].of.inference;
        double count = 1.0 + truth.row[i].alike;
        if (!(r->tpot_s > 0)) continue;
        rows += count;
        logs += count * log(r->tpot_s * 1e3);
        assert_true(fabs(r->ttft_s / r->tpot_s - 10) < 1e-6);
        assert_true(fabs(truth.row[i].measured_s / r->tpot_s - 1) < 1e-9);
    }
    assert_true(rows == MANY);
    assert_true(fabs(logs / MANY - (MANY - 1) / 2000.0) < 1e-6);
    sm_arena_free(arena);
    (void)state;
}

/* Megabytes that this process had at most. */
static double most_mb(void) {
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (double)used.ru_maxrss / 1024;
}

/* 40 MB of lines of JSON, of two configurations: a few rows are kept and none of the text, blank
 * lines and ends of other systems are as they were, and what is wrong has its place. */
static void lines_of_json_are_read_one_by_one(void **state) {
    enum { MANY = 40000 };
    const sm_truth_given given = {.fold = true};
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {.status = SM_OK};
    FILE *file = fopen(path, "w");
    double rows = 0;
    assert_non_null(file);
    fprintf(file, "\xEF\xBB\xBF\n");
    for (int i = 0; i < MANY; i++)
        fprintf(file,
                "{\"chip\": \"h100\", \"m\": %d, \"n\": 8, \"k\": 8, \"time_us\": %d, \"label\": "
                "\"%01000d\"}\r\n",
                i % 2 + 1, i % 7 + 1, 0);
    assert_int_equal(fclose(file), 0);
    double before = most_mb();
    if (sm_truth_read_given(path, &given, arena, &truth, &err)) fail_msg("%s", err.sentence);
    if (!SANITIZED) assert_true(most_mb() - before < 10);
    assert_true(truth.n <= 2 * SM_TRUTH_MOST_ALIKE);
    for (size_t i = 0; i < truth.n; i++) rows += 1.0 + truth.row[i].alike;
    assert_true(rows == MANY);
    file = fopen(path, "a");
    assert_non_null(file);
    fprintf(file, "\n{\"chip\": \"h100\", \"m\": 1, \"n\": 8, \"k\": -8, \"time_us\": 1}\n");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(sm_truth_read_given(path, &given, arena, &truth, &err), SM_BAD_INPUT);
    assert_int_equal(err.line, MANY + 3);
    sm_arena_free(arena);
    (void)state;
}

/* Of 999 rows of one configuration, 5 of another and 1 without a time: all are counted, few are
 * kept, and what was measured keeps its mean and its middle; a configuration of few keeps every
 * row. */
static void alike_rows_are_folded(void **state) {
    enum { MANY = 999 };
    char *text = malloc(MANY * 64), *at = text;
    const sm_truth_given given = {.fold = true};
    double rows = 0, logs = 0, least = INFINITY, most = 0;
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {.status = SM_OK};
    assert_non_null(text);
    at += sprintf(at, "id,chip,dtype,m,n,k,time_us\n");
    for (int i = 0; i < MANY; i++) {
        if (i % 200 == 0) at += sprintf(at, "few%d,h100,bf16,16,8,8,%d\n", i, i + 1);
        at += sprintf(at, "r%d,h100,bf16,8,8,8,%.6f\n", i, exp(i * 7919 % MANY / 1000.0));
    }
    sprintf(at, "none,h100,bf16,8,8,8,\n");
    write_text(text);
    free(text);
    if (sm_truth_read_given(path, &given, arena, &truth, &err)) fail_msg("%s", err.sentence);
    assert_in_range(truth.n, 6 + SM_TRUTH_MOST_ALIKE / 2, 6 + SM_TRUTH_MOST_ALIKE);
    for (size_t i = 0; i < truth.n; i++) {
        const sm_truth_row *row = &truth.row[i];
        double count = 1.0 + row->alike, s = row->measured_s * 1e6;
        assert_true(row->alike >= 0 && row->id[0] && row->line >= 2);
        if (row->of.gemm.m > 8 || isnan(row->measured_s)) {
            assert_int_equal(row->alike, 0);
            continue;
        }
        rows += count;
        logs += count * log(s);
        least = fmin(least, s);
        most = fmax(most, s);
    }
    assert_true(rows == MANY);
    assert_true(fabs(logs / MANY - (MANY - 1) / 2000.0) < 1e-6); /* six digits are written */
    assert_true(least < exp(0.15) && most > exp(0.85));
    truth = read_rows(path, arena);
    assert_int_equal(truth.n, MANY + 6);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_rows_come_back),
                                       cmocka_unit_test(own_rows_come_back),
                                       cmocka_unit_test(other_files_are_left_alone),
                                       cmocka_unit_test(lines_of_json_are_read_one_by_one),
                                       cmocka_unit_test(alike_rows_are_folded),
                                       cmocka_unit_test(alike_rows_of_inference_are_folded),
                                       cmocka_unit_test(rows_of_own_chips_are_predicted),
                                       cmocka_unit_test(own_steps_are_priced_as_run)};
    return cmocka_run_group_tests_name("truth_write", tests, begin, end);
}

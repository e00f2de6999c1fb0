/* A program that knows the public headers alone asks each question of answer.h and gets what the
 * command prints with --json, but for the seconds that a search took. */
#include "unit.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scalemodel/answer.h"
#include "scalemodel/load.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"

static sm_arena *arena;

/* What a question points to. */
static const sm_model *model_named(const char *name) {
    sm_model *model = sm_arena_alloc(arena, sizeof *model);
    sm_error err;
    assert_int_equal(sm_io_model_load(name, arena, model, &err), SM_OK);
    return model;
}

static const sm_system *system_named(const char *name) {
    sm_system *system = sm_arena_alloc(arena, sizeof *system);
    sm_source source = sm_source_of("system", name);
    sm_error err;
    assert_int_equal(sm_system_parse(&source, NULL, 0, system, &err), SM_OK);
    return system;
}

/* Lines without the seconds that a search took, and nothing else left out. */
static char *without_seconds(char *text) {
    for (char *at = text; (at = strstr(at, "\"seconds\": ")) != NULL;) {
        char *end = at + strcspn(at, ",\n}");
        memmove(at, end, strlen(end) + 1);
    }
    char *kept = text; /* nor the blanks: how long a number is decides where a line ends */
    for (const char *at = text; *at; at++)
        if (*at != ' ' && *at != '\n') *kept++ = *at;
    *kept = '\0';
    return text;
}

static char *read_all(FILE *in) {
    size_t room = 1 << 16, n = 0, got;
    char *text = malloc(room);
    assert_non_null(text);
    while ((got = fread(text + n, 1, room - n - 1, in)) > 0) {
        n += got;
        if (n + 1 < room) continue;
        room *= 2;
        text = realloc(text, room);
        assert_non_null(text);
    }
    text[n] = '\0';
    return text;
}

/* The program lies beside the folder of this test. */
static char *printed_by(const char *arguments) {
    char here[2048], command[4096];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    assert_true(n > 0);
    here[n] = '\0';
    *strrchr(here, '/') = '\0';
    snprintf(command, sizeof command, "%s/../scalemodel %s --json", here, arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    char *text = read_all(out);
    pclose(out);
    return without_seconds(text);
}

/* The answer of the library, as --json prints it, is that of the command; frees the report. */
static void same(sm_report *report, sm_status status, const sm_error *err, const char *arguments) {
    char *text = NULL;
    size_t length = 0;
    sm_error own;
    if (status > SM_NEGATIVE) print_error("%s: %s\n", arguments, err->sentence);
    assert_true(status <= SM_NEGATIVE);
    assert_false(report->out_of_memory);
    assert_non_null(report->first); /* there is a page too */
    FILE *memory = open_memstream(&text, &length);
    assert_int_equal(sm_render_json(report, memory, &own), SM_OK);
    fclose(memory);
    char *printed = printed_by(arguments);
    assert_string_equal(without_seconds(text), printed);
    free(text);
    free(printed);
    sm_report_free(report);
}

#define SAME(verb, question, arguments)                                                            \
    do {                                                                                           \
        sm_report *report_ = sm_report_new();                                                      \
        sm_error err_ = {.status = SM_OK};                                                         \
        sm_status status_ = sm_answer_##verb(question, report_, &err_);                            \
        same(report_, status_, &err_, arguments);                                                  \
    } while (0)

static void test_chip(void **state) {
    sm_chip_question q = SM_QUESTION(sm_chip_question);
    SAME(chip, &q, "chip");
    q.chip = sm_chip_find("h100-sxm", strlen("h100-sxm"));
    SAME(chip, &q, "chip h100-sxm");
    q.calibration = sm_calibration_of(q.chip);
    SAME(chip, &q, "chip h100-sxm --calibration");
}

static void test_model(void **state) {
    sm_model_question q = SM_QUESTION(sm_model_question);
    SAME(model, &q, "model");
    q.model = model_named("llama-3.1-70b");
    SAME(model, &q, "model llama-3.1-70b");
    q.seq = 8192;
    q.kv = SM_INT8;
    SAME(model, &q, "model llama-3.1-70b --seq 8192 --kv-dtype int8");
}

static void test_plan(void **state) {
    sm_plan_question q = SM_QUESTION(sm_plan_question);
    SAME(plan, &q, "plan");
    q.use = SM_PLAN_SERVING;
    q.plan = sm_source_of("plan", "tensor=8,fsdp=2");
    q.model = model_named("llama-3.1-70b");
    q.system = system_named("tpu-v5e:4x4");
    SAME(plan, &q, "plan tensor=8,fsdp=2 --use serving --model llama-3.1-70b --on tpu-v5e:4x4");
}

static void test_roofline(void **state) {
    sm_roofline_question q = SM_QUESTION(sm_roofline_question);
    const sm_source critical = sm_source_of("critical", "B");
    q.chip = &system_named("tpu-v5e")->chip;
    q.einsum = sm_source_of("einsum", "bf16[B,D] int8[D,F] -> bf16[B,F]");
    q.dims = sm_source_of("dims", "D=4096,F=4096");
    q.critical = &critical;
    q.n_critical = 1;
    SAME(roofline, &q,
         "roofline 'bf16[B,D] int8[D,F] -> bf16[B,F]' --on tpu-v5e --dims D=4096,F=4096 "
         "--critical B");
}

static void test_matmul(void **state) {
    sm_matmul_question q = SM_QUESTION(sm_matmul_question);
    q.system = system_named("tpu-v5e:4x4");
    q.einsum = sm_source_of("einsum", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]");
    q.mesh = sm_source_of("mesh", "X=4,Y=4");
    q.dims = sm_source_of("dims", "I=8192,J=8192,K=8192");
    SAME(matmul, &q,
         "matmul 'A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]' --mesh X=4,Y=4 --on tpu-v5e:4x4 "
         "--dims I=8192,J=8192,K=8192");
}

static void test_collective(void **state) {
    sm_collective_question q = SM_QUESTION(sm_collective_question);
    q.system = system_named("h100-sxm:4x8");
    q.op = SM_ALL_TO_ALL;
    q.array = sm_source_of("array", "1MB..1GB");
    q.top_k = 8;
    SAME(collective, &q, "collective all-to-all 1MB..1GB --on h100-sxm:4x8 --top-k 8");
}

static void test_train(void **state) {
    sm_train_question q = SM_QUESTION(sm_train_question);
    q.model = model_named("llama-3.1-8b");
    q.system = system_named("tpu-v5p:4x4x4");
    q.batch_tokens = 4e6;
    q.tokens = 15e12;
    q.dtype = sm_source_of("dtype", "fp8");
    SAME(train, &q, "train llama-3.1-8b --on tpu-v5p:4x4x4 --batch 4M --tokens 15T --dtype fp8");
    const int chips[] = {16, 32, 64};
    q.n_chips = 3;
    q.chips = chips;
    q.plan = sm_source_of("plan", "tensor=4");
    SAME(train, &q,
         "train llama-3.1-8b --on tpu-v5p:4x4x4 --batch 4M --tokens 15T --dtype fp8 "
         "--chips 16..64 --plan tensor=4");
}

static void test_serve(void **state) {
    sm_serve_question q = SM_QUESTION(sm_serve_question);
    q.model = model_named("llama-3.1-8b");
    q.system = system_named("h100-sxm:8");
    q.prompt = 1024;
    q.weights = (sm_dtype_list){2, {SM_INT8, SM_BF16}};
    q.tpot_s = 0.02;
    q.requests_per_s = 10;
    SAME(serve, &q,
         "serve llama-3.1-8b --on h100-sxm:8 --prompt 1024 --weights int8,bf16 --tpot 20ms "
         "--qps 10");
}

static void test_simulate(void **state) {
    sm_simulation simulation;
    sm_synthetic drawn = {.kind = SM_ARRIVALS_POISSON, .rate_per_s = 4, .seed = 1};
    sm_simulate_question q = SM_QUESTION(sm_simulate_question);
    q.model = model_named("llama-3.1-70b");
    q.system = system_named("h100-sxm:1x8");
    q.plan = sm_source_of("plan", "tensor=8");
    sm_simulation_defaults(&simulation);
    sm_simulation_follow(&simulation, sm_software_of(NULL), false);
    simulation.ttft_s = 1.0;
    simulation.tpot_s = 0.05;
    q.simulation = &simulation;
    q.drawn = &drawn;
    q.requests = 500;
    SAME(simulate, &q,
         "simulate llama-3.1-70b --on h100-sxm:1x8 --plan tensor=8 --arrivals poisson:4/s "
         "--ttft 1s --tpot 50ms --requests 500");
}

static void test_operating_points(void **state) {
    sm_simulation simulation;
    sm_synthetic drawn = {.kind = SM_ARRIVALS_UNIFORM, .rate_per_s = 1, .seed = 1};
    sm_simulate_question q = SM_QUESTION(sm_simulate_question);
    q.model = model_named("llama-3.1-8b");
    q.system = system_named("h100-sxm:1");
    q.plan = sm_source_of("plan", "tensor=1");
    sm_simulation_defaults(&simulation);
    sm_simulation_follow(&simulation, sm_software_of(NULL), false);
    simulation.concurrency = 1;
    q.clients = (sm_range){.first = 1, .last = 6};
    q.simulation = &simulation;
    q.drawn = &drawn;
    SAME(simulate, &q, "simulate llama-3.1-8b --on h100-sxm:1 --plan tensor=1 --concurrency 1..6");
}

static void test_validate(void **state) {
    const char *const files[] = {"data/truth/attention.csv"};
    sm_validate_question q = SM_QUESTION(sm_validate_question);
    q.files = 1;
    q.file = files;
    q.rows = true;
    SAME(validate, &q, "validate data/truth/attention.csv");
}

static void test_calibrate(void **state) {
    const char *const files[] = {"data/truth/attention.csv"};
    sm_calibrate_question q = SM_QUESTION(sm_calibrate_question);
    q.files = 1;
    q.file = files;
    q.chip = sm_chip_find("h100-sxm", strlen("h100-sxm"));
    SAME(calibrate, &q, "calibrate data/truth/attention.csv --chip h100-sxm");
}

static void test_support(void **state) {
    sm_support_question q = SM_QUESTION(sm_support_question);
    q.model = model_named("llama-3.1-70b");
    q.system = system_named("h100-sxm:1x8");
    q.software = "vllm-2025";
    q.any_type = true;
    q.prompt = 2048;
    SAME(support, &q, "support llama-3.1-70b h100-sxm:1x8 --software vllm-2025 --prompt 2048");
}

/* ---- what a question may be ---- */

static void test_size(void **state) {
    sm_model_question q = {.size = 0};
    sm_report *r = sm_report_new();
    sm_error err;
    assert_int_equal(sm_answer_model(&q, r, &err), SM_USAGE);
    q.size = sizeof q + 8; /* of a newer header */
    assert_int_equal(sm_answer_model(&q, r, &err), SM_USAGE);
    q.size = offsetof(sm_model_question, seq); /* of an older one */
    q.model = model_named("llama-3.1-8b");
    q.seq = -1;
    assert_int_equal(sm_answer_model(&q, r, &err), SM_OK);
    assert_true(sm_data_get(r->data, "seq")->number == 4096.0);
    sm_report_free(r);
}

/* What a question cannot do without, and numbers beyond its limits, are errors. */
#define REFUSED(verb, question)                                                                    \
    do {                                                                                           \
        sm_report *report_ = sm_report_new();                                                      \
        sm_error err_;                                                                             \
        assert_int_equal(sm_answer_##verb(question, report_, &err_), SM_USAGE);                    \
        assert_true(err_.sentence[0] != '\0');                                                     \
        sm_report_free(report_);                                                                   \
    } while (0)

static void test_what_is_missing(void **state) {
    REFUSED(roofline, &SM_QUESTION(sm_roofline_question));
    REFUSED(matmul, &SM_QUESTION(sm_matmul_question));
    REFUSED(collective, &SM_QUESTION(sm_collective_question));
    REFUSED(train, &SM_QUESTION(sm_train_question));
    REFUSED(serve, &SM_QUESTION(sm_serve_question));
    REFUSED(simulate, &SM_QUESTION(sm_simulate_question));
    REFUSED(validate, &SM_QUESTION(sm_validate_question));
    REFUSED(calibrate, &SM_QUESTION(sm_calibrate_question));
    sm_train_question q = SM_QUESTION(sm_train_question);
    q.model = model_named("llama-3.1-8b");
    q.system = system_named("h100-sxm:8");
    REFUSED(train, &q); /* no batch */
    q.batch_tokens = 1e6;
    q.top = SM_MAX_TOP + 1;
    REFUSED(train, &q);
    sm_serve_question s = SM_QUESTION(sm_serve_question);
    s.model = q.model;
    s.system = q.system;
    s.kv.n = SM_MAX_DTYPES + 1;
    REFUSED(serve, &s);
}

/* Errors show the text under the name that the question gives it. */
static void test_error_names_its_source(void **state) {
    sm_train_question q = SM_QUESTION(sm_train_question);
    sm_report *r = sm_report_new();
    sm_error err;
    q.model = model_named("llama-3.1-8b");
    q.system = system_named("h100-sxm:8");
    q.batch_tokens = 1e6;
    q.plan = sm_source_of("my plan", "tensor=8,microbach=1");
    assert_int_equal(sm_answer_train(&q, r, &err), SM_BAD_INPUT);
    assert_string_equal(err.source, "my plan");
    assert_int_equal(err.column, 10);
    assert_non_null(strstr(err.sentence, "microbatch"));
    sm_report_free(r);
}

static double seconds_on(const sm_tracks *t, const char *track, bool passes) {
    double s = 0;
    for (size_t i = 0; i < t->slices; i++)
        if (strcmp(t->track[t->slice[i].track], track) == 0 &&
            (!passes || strncmp(t->slice[i].category, "end", 3) != 0))
            s += t->slice[i].seconds;
    return s;
}

/* What the streams of the busiest stage show fills its passes. */
static void test_streams(void **state) {
    (void)state;
    static const char *const plans[] = {
        "tensor=4,pipeline=2,data=2,microbatch=1,recompute=full", "fsdp=8,tensor=2,microbatch=1",
        "tensor=2,pipeline=4,virtual=2,schedule=interleaved,data=2,microbatch=1",
        "pipeline=4,schedule=zb-h1,data=4,microbatch=1"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        sm_train_question q = SM_QUESTION(sm_train_question);
        sm_report *r = sm_report_new();
        sm_error err;
        char stage[32], ops[64], waited[64];
        q.model = model_named("llama-3.2-1b");
        q.system = system_named("h100-sxm:2x8");
        q.batch_tokens = 524288;
        q.plan = sm_source_of("plan", plans[i]);
        q.timeline = true;
        assert_true(sm_answer_train(&q, r, &err) <= SM_NEGATIVE);
        const char *name = r->tracks->track[r->tracks->n - 3];
        snprintf(stage, sizeof stage, "%.*s", (int)strcspn(name, ":"), name);
        snprintf(ops, sizeof ops, "%s: ops", stage);
        snprintf(waited, sizeof waited, "%s: collectives waited for", stage);
        double passes = seconds_on(r->tracks, stage, true);
        double streams = seconds_on(r->tracks, ops, false) + seconds_on(r->tracks, waited, false);
        if (!(streams <= passes * (1 + 1e-9) && streams > 0.9 * passes))
            fail_msg("%s: %g s of streams in %g s of passes", plans[i], streams, passes);
        sm_report_free(r);
    }
}

/* The first plan of an answer, of the framework named (NULL: of any), and the upper end of its
 * step's interval; NULL: none. */
static const char *first_plan(const sm_train_question *asked, const sm_frameworks *all,
                              const char *framework, double *step, double *high) {
    sm_train_question q = *asked;
    sm_report *r = sm_report_new();
    sm_error err;
    const sm_calibration *c = NULL;
    q.framework = framework ? sm_framework_find(all, framework, strlen(framework)) : NULL;
    if (q.framework) {
        const sm_framework_job job = {q.framework, SM_EVIDENCE_TRAINING, q.model, &q.system->chip};
        assert_int_equal(sm_framework_calibration(&job, NULL, arena, &c, &err), SM_OK);
        q.calibration = c;
    }
    sm_status status = sm_answer_train(&q, r, &err);
    const sm_data *plans = sm_data_get(r->data, "plans");
    const char *plan = NULL;
    assert_true(status <= SM_NEGATIVE || status == SM_BAD_INPUT);
    if (status == SM_OK && plans && plans->first) {
        const sm_data *time = sm_data_get(plans->first, "step_time_s");
        *step = sm_data_get(time, "expected")->number;
        *high = sm_data_get(time, "interval")->last->number;
        plan = sm_arena_printf(arena, "%s", sm_data_get(plans->first, "plan")->string);
    }
    sm_report_free(r);
    return plan;
}

/* Without a framework the answer is that of the one whose step is surest to be short, and the plan
 * found costs the same when it is given. */
static void test_frameworks(void **state) {
    (void)state;
    static const char *const jobs[][3] = {{"llama-3.2-1b", "h100-sxm:8", "64k"},
                                          {"mixtral-8x7b", "b200:2x8", "1M"},
                                          {"qwen3-30b-a3b", "h200:2x8", "1M"},
                                          {"llama-3.1-8b", "tpu-v5e:4x4", "256k"},
                                          {"llama-3.1-8b", "mi300x:8", "512k"}};
    sm_frameworks *all;
    sm_error err;
    assert_int_equal(sm_frameworks_shipped(arena, &all, &err), SM_OK);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        sm_train_question q = SM_QUESTION(sm_train_question);
        double step, high, least = 1e99, one, its;
        q.model = model_named(jobs[i][0]);
        q.system = system_named(jobs[i][1]);
        q.batch = sm_source_of("batch", jobs[i][2]);
        q.top = 1;
        const char *plan = first_plan(&q, all, NULL, &step, &high);
        assert_non_null(plan);
        for (int k = 0; k < all->n; k++) {
            const sm_framework *f = all->of[k];
            if (sm_framework_use(f) != SM_PLAN_TRAINING || sm_framework_is_program(f)) continue;
            if (first_plan(&q, all, sm_framework_name(f), &one, &its) && its < least) least = its;
        }
        if (high > least * (1 + 1e-9) || high < least * (1 - 1e-9))
            fail_msg("%s on %s: within %g s, %g s of a framework named", jobs[i][0], jobs[i][1],
                     high, least);
        q.plan = sm_source_of("plan", plan);
        assert_non_null(first_plan(&q, all, NULL, &one, &its));
        if (one > step * (1 + 1e-9) || one < step * (1 - 1e-9))
            fail_msg("%s: %g s when found, %g s when given", plan, step, one);
    }
}

/* The best of each engine is what the engine's name answers by the same constants; none is told
 * where one is named. */
static void test_engines(void **state) {
    (void)state;
    static const char *const jobs[][2] = {{"qwen3-32b", "h100-sxm:8"},
                                          {"gpt-oss-120b", "b200:4"},
                                          {"llama-3.1-8b", "mi300x:2"},
                                          {"llama-3.1-8b", "tpu-v6e:4"}};
    sm_frameworks *all;
    sm_error err;
    int rows = 0;
    assert_int_equal(sm_frameworks_shipped(arena, &all, &err), SM_OK);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        sm_serve_question q = SM_QUESTION(sm_serve_question);
        sm_report *r = sm_report_new();
        q.model = model_named(jobs[i][0]);
        q.system = system_named(jobs[i][1]);
        q.tpot_s = 0.04;
        q.prompt = 3000;
        q.concurrency = i % 2 ? 48 : 0;
        assert_int_equal(sm_answer_serve(&q, r, &err), SM_OK);
        const sm_data *engines = sm_data_get(r->data, "engines");
        assert_non_null(engines);
        for (const sm_data *e = engines->first; e; e = e->next, rows++) {
            const char *name = sm_data_get(e, "framework")->string;
            sm_serve_question one = q;
            sm_report *own = sm_report_new();
            one.framework = sm_framework_find(all, name, strlen(name));
            one.software = sm_data_get(e, "software")->string;
            one.calibration = sm_software_calibration(&q.system->chip, one.software);
            assert_int_equal(sm_answer_serve(&one, own, &err), SM_OK);
            assert_null(sm_data_get(own->data, "engines"));
            const sm_data *best = sm_data_get(own->data, "best");
            assert_string_equal(sm_data_get(e, "plan")->string, sm_data_get(best, "plan")->string);
            static const char *const same[] = {"batch", "tokens_per_s_per_chip", "chips"};
            for (int k = 0; k < 3; k++) {
                double a = sm_data_get(e, same[k])->number, b = sm_data_get(best, same[k])->number;
                if (a > b * (1 + 1e-9) || a < b * (1 - 1e-9))
                    fail_msg("%s in %s: %s of %g, by its name %g", jobs[i][0], name, same[k], a, b);
            }
            sm_report_free(own);
        }
        sm_report_free(r);
    }
    assert_true(rows > 6);
}

/* A plot and a timeline are parts of the report. */
static void test_attachments(void **state) {
    sm_train_question q = SM_QUESTION(sm_train_question);
    sm_report *r = sm_report_new();
    sm_error err;
    q.model = model_named("llama-3.2-1b");
    q.system = system_named("h100-sxm:4");
    q.batch_tokens = 65536;
    q.plan = sm_source_of("plan", "pipeline=4,microbatch=4");
    q.timeline = true;
    assert_true(sm_answer_train(&q, r, &err) <= SM_NEGATIVE);
    assert_non_null(r->tracks);
    assert_int_equal(r->tracks->n, 4 + 3); /* stages, and the streams of one */
    assert_true(r->tracks->slices > 4);
    assert_null(r->chart);
    sm_report_free(r);
}

static int open_arena(void **state) {
    arena = sm_arena_new();
    return arena ? 0 : -1;
}

static int close_arena(void **state) {
    sm_arena_free(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_frameworks),
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_chip),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_collective),
        cmocka_unit_test(test_train),
        cmocka_unit_test(test_serve),
        cmocka_unit_test(test_simulate),
        cmocka_unit_test(test_operating_points),
        cmocka_unit_test(test_validate),
        cmocka_unit_test(test_calibrate),
        cmocka_unit_test(test_support),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_error_names_its_source),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_attachments),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}

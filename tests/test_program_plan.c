/* A program with a plan beside its lines: the lines add up to the step that the plan makes, and
 * what is printed reads back. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/answer.h"
#include "scalemodel/io.h"
#include "scalemodel/load.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Three layers of gated DeltaNet to one of attention. */
static const char scanning[] =
    "{\"model_type\": \"qwen3_next\", \"hidden_size\": 512, \"num_hidden_layers\": 8, "
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"head_dim\": 64, \"vocab_size\": "
    "1024, "
    "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 128, "
    "\"shared_expert_intermediate_size\": 128, \"linear_num_key_heads\": 8, "
    "\"linear_num_value_heads\": 16, \"linear_key_head_dim\": 64, \"linear_value_head_dim\": 64}";

typedef struct planned {
    const char *model, *system, *plan;
    sm_text_phase phase;
    double batch, seq;
} planned;

static const planned cases[] = {
    {"llama-3-8b", "tpu-v5p:4x4x4", "fsdp=16,tensor=4,microbatch=1", SM_TEXT_TRAIN, 1 << 20, 4096},
    {"llama-3-8b", "h100-sxm:2x8", "data=2,tensor=4,pipeline=2,microbatch=1,recompute=full",
     SM_TEXT_TRAIN, 1 << 18, 4096},
    {"llama-3-8b", "h100-sxm:8", "tensor=8,attention=unfused,microbatch=1,recompute=selective",
     SM_TEXT_TRAIN, 1 << 16, 2048},
    {"mixtral-8x7b", "h100-sxm:8x8", "tensor=4,expert=2,fsdp=2,pipeline=4,microbatch=1",
     SM_TEXT_TRAIN, 1 << 20, 4096},
    {"deepseek-v3", "tpu-v5p:8x8x8", "fsdp=8,expert=32,tensor=2,microbatch=1", SM_TEXT_TRAIN,
     1 << 22, 4096},
    {"llama-3-8b", "h100-sxm:8", "context=8,context_by=ring,microbatch=1", SM_TEXT_TRAIN, 1 << 18,
     32768},
    {"llama-3-70b", "h100-sxm:8", "tensor=8", SM_TEXT_DECODE, 16, 4096},
    {"llama-3-70b", "h100-sxm:8", "tensor=8,seq=on", SM_TEXT_PREFILL, 16, 4096},
    {"llama-3-70b", "tpu-v5e:4x4", "tensor=16,seq=on", SM_TEXT_PREFILL, 4, 2048},
    {"mixtral-8x7b", "h100-sxm:8", "tensor=4,pipeline=2", SM_TEXT_DECODE, 32, 1024},
    {"deepseek-v3", "h200:8x8", "tensor=8,expert=8,cache_by=batch", SM_TEXT_DECODE, 256, 4096},
    {scanning, "h100-sxm:8", "data=4,tensor=2,microbatch=1", SM_TEXT_TRAIN, 1 << 17, 4096},
    {scanning, "h100-sxm:8", "data=4,tensor=2", SM_TEXT_DECODE, 64, 4096},
    {"llama-3-8b", "h100-sxm:8", "tensor=4,fsdp=2,embedding=gathered,microbatch=1", SM_TEXT_TRAIN,
     1 << 16, 2048}};
enum { CASES = sizeof cases / sizeof *cases };

static const char *name_of(const planned *p) { return p->model == scanning ? "scans" : p->model; }

static sm_status answer(const planned *p, sm_report *r, sm_error *err) {
    static sm_model model;
    sm_system system;
    sm_train_question train = SM_QUESTION(sm_train_question);
    sm_serve_question serve = SM_QUESTION(sm_serve_question);
    sm_program_question q = SM_QUESTION(sm_program_question);
    const sm_source on = sm_source_of("--on", p->system);
    const sm_source config = sm_source_of("config", p->model);
    sm_status status = p->model == scanning
                           ? sm_model_parse(NULL, NULL, &config, r->arena, &model, err)
                           : sm_io_model_load(p->model, r->arena, &model, err);
    if (!status) status = sm_system_parse(&on, NULL, 0, &system, err);
    if (status) return status;
    train.model = serve.model = &model;
    train.system = serve.system = &system;
    train.plan = serve.plan = sm_source_of("--plan", p->plan);
    train.batch_tokens = serve.batch = p->batch;
    train.seq = serve.prompt = serve.context = p->seq;
    q.architecture = model.architecture;
    q.name = name_of(p);
    q.phase = p->phase;
    q.train = &train;
    q.serve = &serve;
    return sm_answer_program(&q, r, err);
}

/* ---- sums ---- */

static double number(const sm_data *object, const char *key) {
    const sm_data *value = sm_data_get(object, key);
    return value ? value->number : 0;
}

typedef struct sums {
    double time_s, memory_s, exposed_s;
    int lines, collectives;
} sums;

static void add_collectives(const sm_data *object, sums *to) {
    const sm_data *list = sm_data_get(object, "collectives");
    for (const sm_data *c = list->first; c; c = c->next) {
        to->exposed_s += number(c, "exposed_s");
        to->collectives++;
        assert_true(number(c, "time_s") >= number(c, "exposed_s") * (1 - 1e-9));
    }
}

static void add_line(const sm_data *line, sums *to) {
    double ops_s = 0;
    const sm_data *ops = sm_data_get(line, "ops");
    for (const sm_data *op = ops->first; op; op = op->next) ops_s += number(op, "time_s");
    assert_true(fabs(ops_s - number(line, "time_s")) <= 1e-12 * ops_s);
    to->time_s += ops_s;
    to->memory_s += number(line, "memory_s");
    to->lines += ops_s > 0;
    add_collectives(line, to);
}

static sums sums_of(const sm_data *data) {
    sums all = {.time_s = number(data, "launches_s")};
    const sm_data *kinds = sm_data_get(data, "kinds");
    for (const sm_data *kind = kinds->first; kind; kind = kind->next)
        for (const sm_data *line = sm_data_get(kind, "lines")->first; line; line = line->next)
            add_line(line, &all);
    add_collectives(data, &all);
    return all;
}

static void is_near(double a, double b, double whole) {
    if (fabs(a - b) > 1e-9 * whole) fail_msg("%.17g, not %.17g", a, b);
}

static double degree(const char *plan, const char *key) {
    const char *at = strstr(plan, key);
    return at ? strtod(at + strlen(key), NULL) : 1;
}

/* Training: the lines are math and memory of the breakdown. Serving: with what shows of the
 * collectives and the overhead of the engine they are the step. */
static void check_sums(const planned *p, const sm_data *data) {
    const sm_data *step = sm_data_get(data, "step");
    double whole = number(step, "expected_s");
    sums all = sums_of(data);
    assert_true(all.lines > 12 && all.collectives > 0 && whole > 0);
    if (p->phase == SM_TEXT_TRAIN) {
        is_near(all.time_s, number(step, "math") + number(step, "memory"), whole);
        is_near(all.memory_s, number(step, "memory"), whole);
        return;
    }
    sm_system system;
    const sm_source on = sm_source_of("--on", p->system);
    assert_int_equal(sm_system_parse(&on, NULL, 0, &system, NULL), SM_OK);
    sm_calibration usual = sm_serve_usual_calibration(&system.chip);
    assert_true((number(step, "scans") > 0) == (p->model == scanning));
    is_near(all.exposed_s, number(step, "network"), whole);
    /* a pipeline's stages work on as many groups of sequences at a time, and ranks of data and of
     * experts have sequences of their own */
    double groups =
        degree(p->plan, "pipeline=") * degree(p->plan, "data=") * degree(p->plan, "expert=");
    double decoding = p->phase == SM_TEXT_DECODE ? number(data, "sequences") / groups : 0;
    double host_s = decoding * sm_software_of(NULL)->host_s_per_sequence;
    is_near(all.time_s + all.exposed_s + usual.step_overhead_s + host_s, whole, whole);
}

/* ---- the text ---- */

/* The text reads back to a model of as many parameters. */
static void check_text(const planned *p, const sm_report *r) {
    sm_library *library;
    sm_error err = {0};
    const sm_architecture *a = NULL;
    const char *text = sm_data_get(r->data, "program")->string;
    const sm_source printed = sm_source_of("page", text), nothing = sm_source_of("config", "{}");
    assert_int_equal(sm_library_new(r->arena, NULL, &library, &err), SM_OK);
    if (sm_library_read(library, &printed, &err) || sm_library_check(library, &err) ||
        sm_architecture_new(library, &nothing, name_of(p), r->arena, &a, &err))
        fail_msg("%s: %s", name_of(p), err.sentence);
    assert_true(sm_architecture_counts(a)->total == number(r->data, "params"));
}

static void lines_add_up_to_the_step(void **state) {
    for (int i = 0; i < CASES; i++) {
        sm_report *r = sm_report_new();
        sm_error err = {0};
        if (answer(&cases[i], r, &err) > SM_NEGATIVE) fail_msg("%d: %s", i, err.sentence);
        assert_false(r->out_of_memory);
        check_sums(&cases[i], r->data);
        check_text(&cases[i], r);
        sm_report_free(r);
    }
}

static void failed_allocations_are_reported(void **state) {
    sm_report *whole = sm_report_new();
    sm_error err = {0};
    assert_int_equal(answer(&cases[6], whole, &err), SM_OK);
    const char *text = sm_data_get(whole->data, "program")->string;
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_report *r = sm_report_new();
        if (!r) continue;
        sm_status status = answer(&cases[6], r, &err);
        if (status) assert_int_equal(status, SM_INTERNAL);
        else if (!r->out_of_memory)
            assert_string_equal(sm_data_get(r->data, "program")->string, text);
        if (!failing_alloc_refused(&loop)) assert_true(!status && !r->out_of_memory);
        sm_report_free(r);
    }
    sm_report_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_add_up_to_the_step),
                                       cmocka_unit_test(failed_allocations_are_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

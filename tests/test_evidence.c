/* Evidence: data/evidence against the rows it is of, what sets a question apart against the
 * held-out table, and what is nearest. */
#include "scalemodel/evidence.h"
#include "scalemodel/io.h"
#include "sanitized.h"
#include "scalemodel/truth.h"
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static sm_model model_of(const char *name, sm_arena *arena) {
    const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
    sm_model model;
    sm_error err = {0};
    assert_non_null(entry);
    sm_source source = sm_source_of(name, entry->config_json);
    assert_int_equal(sm_model_parse(NULL, NULL, &source, arena, &model, &err), SM_OK);
    return model;
}

static sm_evidence_question ask(sm_evidence_use use, const sm_model *model, const char *chip,
                                const char *software) {
    return (sm_evidence_question){.use = use,
                                  .model = model,
                                  .chip = sm_chip_find(chip, strlen(chip)),
                                  .software = software,
                                  .type = SM_DTYPE_COUNT};
}

/* Lines of one software on one chip hold no more rows than the file has of it; all lines together
 * all but the few that cannot be predicted, and those that a fit leaves out. */
static int rows_in(const sm_truth *truth, const sm_evidence *e) {
    int n = 0;
    for (size_t i = 0; i < truth->n; i++) {
        const sm_chip *chip = sm_truth_row_chip(&truth->row[i]);
        n += chip && strcmp(chip->name, e->chip) == 0 &&
             (!e->software[0] || strcmp(sm_truth_software(&truth->row[i]), e->software) == 0);
    }
    return n;
}
static void expect_rows(const char *file, sm_evidence_use use, double share) {
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {0};
    int known = 0, pooled = 0;
    assert_int_equal(sm_truth_read(file, arena, &truth, &err), SM_OK);
    for (size_t i = 0; i < sm_evidence_count(); i++) {
        const sm_evidence *e = sm_evidence_at(i), *other;
        int same = 0;
        if (e->use != use) continue;
        for (size_t k = 0; (other = sm_evidence_at(k)) != NULL; k++)
            if (other->use == use && strcmp(other->chip, e->chip) == 0 &&
                strcmp(other->software, e->software) == 0)
                same += other->rows;
        if (use == SM_EVIDENCE_SERVING) assert_true(same <= rows_in(&truth, e));
        *(e->software[0] ? &known : &pooled) += e->rows;
    }
    assert_int_equal(known, pooled);
    assert_true(known >= share * (double)truth.n);
    sm_arena_free(arena);
}
static void test_rows(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* sums of what others read there */
    expect_rows("data/truth/inference.csv", SM_EVIDENCE_SERVING, 0.97);
    expect_rows("data/truth/training.csv", SM_EVIDENCE_TRAINING, 0.9);
    assert_null(sm_evidence_at(sm_evidence_count()));
}

/* The column after the count of a line of the held-out table: the median. */
static double median_of(const char *text, const char *set) {
    const char *line = strstr(text, set);
    assert_non_null(line);
    return strtod(strchr(line + strlen(set) + 1, ',') + 1, NULL);
}
static double apart(const char *text, const char *left_out, const char *hidden) {
    char set[80];
    snprintf(set, sizeof set, "inference-%sconfiguration-tpot", hidden);
    double base = median_of(text, set);
    snprintf(set, sizeof set, "inference-%s%s-tpot", hidden, left_out);
    double more = median_of(text, set);
    return sqrt(fmax(0, more * more - base * base));
}
/* What the fit writes beside its evidence is what its held-out table has (of chips, only of rows
 * that both have), and a question that is apart in one thing alone is off by both. */
/* Of as many layers, as wide and as large, but with half the experts, each twice as wide. */
static void test_other_experts_are_another_model(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    const sm_model deepseek = model_of("deepseek-v3", arena),
                   mistral = model_of("mistral-large-3", arena);
    sm_evidence_question q = ask(SM_EVIDENCE_SERVING, &deepseek, "b200", "sglang-2026");
    sm_evidence_near near;
    assert_int_equal(sm_evidence_find(&q, &near, 1), 1);
    assert_true(near.same_model);
    q.model = &mistral;
    assert_int_equal(sm_evidence_find(&q, &near, 1), 1);
    assert_false(near.same_model);
    sm_arena_free(arena);
}

static void test_apart(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    sm_source table;
    sm_error err = {0};
    sm_evidence_near near[60];
    assert_int_equal(sm_io_read("data/calibration/held-out-serving.csv", arena, &table, &err),
                     SM_OK);
    sm_model model = model_of("qwen3-32b", arena);
    for (int known = 0; known < 2; known++) {
        const sm_evidence_apart *a = sm_evidence_apart_of(SM_EVIDENCE_SERVING, known);
        const char *hidden = known ? "" : "hidden-";
        char set[80];
        snprintf(set, sizeof set, "inference-%sconfiguration-tpot", hidden);
        assert_true(fabs(a->whole - median_of(table.text, set)) < 2e-4);
        assert_true(fabs(a->model - apart(table.text, "model", hidden)) < 2e-3);
        assert_true(fabs(a->chip - apart(table.text, "chip", hidden)) < 2e-3);
        assert_true(fabs(a->sizes - apart(table.text, "layout", "")) < 2e-3);
        sm_evidence_question q =
            ask(SM_EVIDENCE_SERVING, &model, "h100-sxm", known ? "vllm-2024" : NULL);
        size_t n = sm_evidence_find(&q, near, 60), seen = 0;
        for (size_t i = 0; i < n; i++) {
            double size = fabs(log(near[i].of->params / sm_model_params(&model).total));
            if (near[i].same_model || !near[i].same_constants || !near[i].same_software) continue;
            double more = hypot(a->model, a->size * size);
            if (near[i].of->experts > 0) more = hypot(more, a->experts);
            assert_true(fabs(near[i].wider - hypot(a->whole, more) / a->whole) < 1e-9);
            seen++;
        }
        assert_true(seen > 0);
    }
    sm_arena_free(arena);
}

/* A mixture of experts where only models without were measured, of a fiftieth of its size: both are
 * named, and the rows' own error says nothing of it. */
static void test_other_kind(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    sm_evidence_near near[40];
    sm_model mixture = model_of("mixtral-8x22b", arena), dense = model_of("llama-3.1-8b", arena);
    const sm_evidence_apart *a = sm_evidence_apart_of(SM_EVIDENCE_TRAINING, false);
    sm_evidence_question q = ask(SM_EVIDENCE_TRAINING, &mixture, "a100-80", NULL);
    size_t n = sm_evidence_find(&q, near, 40), small = 0;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        double times = sm_model_params(&mixture).total / near[i].of->params;
        bool larger = times > 4;
        if (near[i].of->experts > 0 || !near[i].same_chip) continue;
        assert_non_null(strstr(near[i].beyond, "experts"));
        if (larger) assert_non_null(strstr(near[i].beyond, "model size"));
        if (times > 0.5 && times < 2) assert_null(strstr(near[i].beyond, "model size"));
        assert_true(near[i].error >= hypot(a->whole, a->experts) - 1e-12);
        small += larger;
    }
    assert_true(small > 0);
    q = ask(SM_EVIDENCE_TRAINING, &dense, "gb300-nvl72", NULL);
    n = sm_evidence_find(&q, near, 40);
    for (size_t i = 0; i < n; i++)
        if (near[i].of->experts > 0) assert_non_null(strstr(near[i].beyond, "no experts"));
    sm_arena_free(arena);
}

/* The same model on the same chip under the same software comes first; DeepSeek-R1's rows are
 * DeepSeek-V3's, with the layer that predicts tokens or without. */
/* A chip with constants of its own: rows of the very model on a sibling come before one row of
 * another model here. */
static void test_the_model_on_a_sibling(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    const sm_model qwen = model_of("qwen3-235b-a22b", arena);
    const sm_evidence_question q = ask(SM_EVIDENCE_TRAINING, &qwen, "h200", NULL);
    sm_evidence_near near;
    assert_int_equal(sm_evidence_find(&q, &near, 1), 1);
    assert_true(near.same_model);
    assert_string_equal(near.of->chip, "h100-sxm");
    sm_arena_free(arena);
}

static void test_nearest(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    sm_evidence_near near[8];
    sm_model qwen = model_of("qwen3-32b", arena), deepseek = model_of("deepseek-v3", arena);
    sm_evidence_question q = ask(SM_EVIDENCE_SERVING, &qwen, "h100-sxm", "vllm-0.12");
    assert_int_equal(sm_evidence_find(&q, near, 8), 8);
    assert_true(near[0].same_model && near[0].same_chip && near[0].same_software);
    assert_string_equal(near[0].beyond, "");
    assert_true(near[0].wider <= 1.0);
    q = ask(SM_EVIDENCE_SERVING, &deepseek, "h200", "sglang-2026");
    assert_int_equal(sm_evidence_find(&q, near, 1), 1);
    assert_true(near[0].same_model && strstr(near[0].of->model, "DeepSeek"));
    q = ask(SM_EVIDENCE_TRAINING, &deepseek, "gb300-nvl72", NULL);
    assert_int_equal(sm_evidence_find(&q, near, 1), 1);
    assert_true(near[0].same_model && near[0].same_chip);
    sm_arena_free(arena);
}

/* What lies beyond rows is named, makes the interval wider and the error no smaller. */
static void test_beyond(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    sm_evidence_near within, beyond;
    sm_model qwen = model_of("qwen3-32b", arena);
    sm_asked_size size[] = {{"chips", 8}, {"prompt", 4096}};
    sm_evidence_question q = ask(SM_EVIDENCE_SERVING, &qwen, "h100-sxm", "vllm-0.12");
    q.size = size, q.sizes = 2, q.type = SM_BF16;
    assert_int_equal(sm_evidence_find(&q, &within, 1), 1);
    size[1].value = 1e6;
    assert_int_equal(sm_evidence_find(&q, &beyond, 1), 1);
    assert_string_equal(within.beyond, "");
    assert_string_equal(beyond.beyond, "prompt");
    assert_true(beyond.wider > within.wider && beyond.error > within.error);
    q.type = SM_INT4;
    assert_int_equal(sm_evidence_find(&q, &beyond, 1), 1);
    assert_non_null(strstr(beyond.beyond, "int4"));
    /* A layout that its rows have, in any number of replicas, and one that they have not. */
    sm_plan plan = {.tensor = 8, .data = 3, .expert = 1, .fsdp = 1, .pipeline = 1};
    size[1].value = 4096, q.type = SM_BF16, q.plan = &plan;
    assert_int_equal(sm_evidence_find(&q, &within, 1), 1);
    plan.tensor = 16;
    assert_int_equal(sm_evidence_find(&q, &beyond, 1), 1);
    assert_string_equal(within.beyond, "");
    assert_string_equal(beyond.beyond, "layout");
    assert_true(beyond.wider > within.wider && beyond.error > within.error);
    q.plan = NULL;
    assert_int_equal(sm_evidence_find(&q, &beyond, 0), 0);
    q.software = "no such thing";
    assert_int_equal(sm_evidence_find(&q, &beyond, 1), 1);
    assert_false(beyond.same_software);
    sm_arena_free(arena);
}

/* Of chips joined otherwise no error can be told. */
static void test_far(void **state) {
    (void)state;
    sm_arena *arena = sm_arena_new();
    sm_evidence_near near;
    sm_model qwen = model_of("qwen3-32b", arena);
    sm_chip alone = *sm_chip_find("h100-sxm", 8);
    alone.name = "mine";
    alone.fabric = SM_FABRIC_NONE;
    sm_evidence_question q = ask(SM_EVIDENCE_SERVING, &qwen, "h100-sxm", NULL);
    q.chip = &alone;
    assert_int_equal(sm_evidence_find(&q, &near, 1), 1);
    assert_true(isnan(near.error));
    assert_false(near.same_chip);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_experts_are_another_model),
                                       cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_other_kind),
                                       cmocka_unit_test(test_the_model_on_a_sibling),
                                       cmocka_unit_test(test_nearest),
                                       cmocka_unit_test(test_beyond),
                                       cmocka_unit_test(test_far)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

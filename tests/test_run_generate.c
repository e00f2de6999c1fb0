/* Generating on ranks: the program of serving, with its cache, gives the scores of the program of
 * training, whether bytes come at once or one by one, on any ranks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scalemodel/run_train.h"

enum { TOKENS = 12, WORDS = 256, MOST_KEPT = 200, NAME = 20 };

/* Sequences begin at byte 0 or 1 of it. */
static const unsigned char text[TOKENS + 2] = "the cache tel";

static sm_model model_of(sm_layer_kind kind) {
    sm_model m = {.name = "small", .D = 16, .L = 2, .V = WORDS, .final_norm = true, .causal = true,
                  .kinds = 1};
    m.kind[0] = kind;
    return m;
}

static sm_layer_kind dense(void) {
    return (sm_layer_kind){.name = "dense", .N = 4, .K = 2, .H = 4, .V_head = 4, .norms = 2,
                           .F = 32};
}

static sm_train_setup setup_of(const sm_model *model) {
    sm_train_setup s;
    sm_train_setup_defaults(&s);
    s.model = model;
    s.tokens = TOKENS;
    s.sequences = s.microbatch = 1;
    s.data = text;
    s.data_bytes = sizeof text;
    s.seed = 5;
    return s;
}

/* ---- the weights, and the loss of one sequence ---- */

typedef struct kept {
    const sm_train_setup *setup;
    int n;
    sm_train_array array[MOST_KEPT];
    char name[MOST_KEPT][NAME];
    double loss;
} kept;

static sm_status keep(sm_train_array *a, void *context, sm_error *err) {
    kept *k = context;
    (void)err;
    assert_true(k->n < MOST_KEPT);
    snprintf(k->name[k->n], NAME, "%s", a->name);
    k->array[k->n++] = *a;
    a->data = NULL;
    return SM_OK;
}

static sm_status find(sm_train_array *a, void *context, sm_error *err) {
    const kept *k = context;
    for (int i = 0; i < k->n; i++)
        if (k->array[i].layer == a->layer && k->array[i].part == a->part &&
            strcmp(k->name[i], a->name) == 0) {
            assert_memory_equal(k->array[i].size, a->size, (size_t)a->rank * sizeof *a->size);
            a->data = k->array[i].data;
            return SM_OK;
        }
    return sm_fail(err, SM_INTERNAL, "%s of layer %d was not kept", a->name, a->layer);
}

static sm_status train(sm_communicator *world, void *context, sm_error *err) {
    kept *k = context;
    sm_trainer *t = NULL;
    sm_train_result r;
    sm_status status = sm_trainer_new(world, k->setup, &t, err);
    for (int i = 0; !status && i < 3; i++) status = sm_trainer_step(t, i, &r, err);
    if (!status) status = sm_trainer_gradients(t, 3, &r, err);
    if (!status) status = sm_trainer_save(t, keep, k, err);
    k->loss = r.loss;
    sm_trainer_free(t);
    return status;
}

static void drop(kept *k) {
    for (int i = 0; i < k->n; i++) sm_free(k->array[i].data);
}

/* ---- generating ---- */

typedef struct asked {
    const kept *kept;
    const sm_train_setup *setup;
    int first; /* byte of the text the sequence begins with */
    size_t at_once;
    float scores[TOKENS][WORDS]; /* after each byte that was fed alone, or last of several */
} asked;

static sm_status feed(sm_communicator *world, void *context, sm_error *err) {
    asked *q = context;
    sm_generator *g = NULL;
    float scores[WORDS];
    sm_status status = sm_generator_new(world, q->setup, &g, err);
    if (!status) status = sm_generator_load(g, find, (void *)(uintptr_t)q->kept, err);
    for (size_t at = 0; !status && at < TOKENS;) {
        size_t n = at == 0 ? q->at_once : 1;
        status = sm_generator_feed(g, text + q->first + at, n, scores, err);
        at += n;
        if (world->rank == 0) memcpy(q->scores[at - 1], scores, sizeof scores);
    }
    sm_generator_free(g);
    return status;
}

static void ask(asked *q, const kept *k, const sm_train_setup *s, int first, size_t at_once) {
    sm_error err = {.status = SM_OK};
    *q = (asked){.kept = k, .setup = s, .first = first, .at_once = at_once};
    if (sm_run_threads(sm_train_setup_ranks(s), feed, q, &err))
        print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
}

static double loss_of(const asked *q) {
    double loss = 0;
    for (int i = 0; i < TOKENS; i++) {
        double sum = 0;
        for (int v = 0; v < WORDS; v++) sum += exp((double)q->scores[i][v]);
        loss += log(sum) - (double)q->scores[i][text[q->first + i + 1]];
    }
    return loss / TOKENS;
}

static void scores_are_those_of_training(void **state) {
    (void)state;
    static kept k;
    static asked a, b;
    sm_model model = model_of(dense());
    sm_train_setup s = setup_of(&model);
    k = (kept){.setup = &s};
    assert_int_equal(sm_run_threads(1, train, &k, NULL), SM_OK);
    ask(&a, &k, &s, 0, 1);
    ask(&b, &k, &s, 1, 1);
    double error = fmin(fabs(loss_of(&a) - k.loss), fabs(loss_of(&b) - k.loss));
    if (error > 1e-5) print_message("%g %g, %g\n", loss_of(&a), loss_of(&b), k.loss);
    assert_true(error <= 1e-5);
    drop(&k);
}

static int best(const float *scores) {
    int at = 0;
    for (int v = 1; v < WORDS; v++)
        if (scores[v] > scores[at]) at = v;
    return at;
}

static void expect_equal(const asked *q, const asked *one) {
    for (size_t i = q->at_once - 1; i < TOKENS; i++) {
        for (int v = 0; v < WORDS; v++)
            assert_true(fabs((double)q->scores[i][v] - (double)one->scores[i][v]) < 1e-4);
        assert_int_equal(best(q->scores[i]), best(one->scores[i]));
    }
}

static void scores_do_not_depend_on_ranks(void **state) {
    (void)state;
    static const int degrees[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
    static const size_t prompts[] = {1, 5, TOKENS};
    static kept k;
    static asked one, q;
    sm_model model = model_of(dense());
    sm_train_setup s = setup_of(&model);
    k = (kept){.setup = &s};
    assert_int_equal(sm_run_threads(1, train, &k, NULL), SM_OK);
    ask(&one, &k, &s, 0, 1);
    for (size_t d = 0; d < sizeof degrees / sizeof *degrees; d++)
        for (size_t p = 0; p < sizeof prompts / sizeof *prompts; p++) {
            s.degree[SM_AXIS_TENSOR] = degrees[d][0];
            s.degree[SM_AXIS_TENSOR_Q] = degrees[d][1];
            ask(&q, &k, &s, 0, prompts[p]);
            expect_equal(&q, &one);
        }
    drop(&k);
}

/* ---- refusals ---- */

static void expect_refused(const sm_train_setup *s, const char *sentence) {
    sm_communicator *self;
    sm_generator *g;
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, s, &g, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    sm_communicator_free(self);
}

static void refuses_what_it_cannot(void **state) {
    (void)state;
    sm_layer_kind kind = dense();
    kind.E = 4;
    kind.k_top = 2;
    kind.F = 0;
    kind.F_expert = 8;
    sm_model model = model_of(dense()), experts = model_of(kind);
    sm_train_setup s = setup_of(&experts);
    expect_refused(&s,
                   "small has experts or parallel branches, from which cannot be generated yet");
    s = setup_of(&model);
    s.degree[SM_AXIS_DATA] = 2;
    expect_refused(&s, "one sequence is split over tensor alone");
    s = setup_of(&model);
    s.stages = 2;
    expect_refused(&s, "a pipeline does not generate yet");
}

static void fills_no_more_than_the_cache(void **state) {
    (void)state;
    sm_model model = model_of(dense());
    sm_train_setup s = setup_of(&model);
    sm_communicator *self;
    sm_generator *g;
    float scores[WORDS];
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, &s, &g, &err), SM_OK);
    assert_int_equal(sm_generator_feed(g, text, 0, scores, &err), SM_BAD_INPUT);
    assert_int_equal(sm_generator_feed(g, text, TOKENS, scores, &err), SM_OK);
    assert_int_equal(sm_generator_feed(g, text, 1, scores, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the cache has room for 12 bytes, and 1 come after 12");
    sm_generator_free(g);
    sm_communicator_free(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_training),
        cmocka_unit_test(scores_do_not_depend_on_ranks),
        cmocka_unit_test(refuses_what_it_cannot),
        cmocka_unit_test(fills_no_more_than_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Learning from pairs (DPO): the loss is that of the formula (TRL's "sigmoid") of probabilities
 * that the serving program gives, its gradients are slopes, plans agree with one rank, and what is
 * preferred becomes more probable. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "drawn_plans.h"
#include "kept_weights.h"
#include "scalemodel/run_generate.h"

enum { PAIRS = 5, SEQUENCES = 8, STEPS = 3, WORDS = 256 };
static const double BETA = 0.3;

static const char *const prompts[PAIRS] = {"a plan ", "The p", "o", "of the ", "is a "};
static const char *const answers[PAIRS][2] = {{"is good", "was"},
                                              {"rice.", "rogram"},
                                              {"k", "ther wo"},
                                              {"mesh", "price"},
                                              {"sharding", "x"}};

static const sm_train_pair *pairs(void) {
    static char text[PAIRS][2][32];
    static sm_train_pair pair[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < 2; k++) {
            snprintf(text[i][k], sizeof text[i][k], "%s%s", prompts[i], answers[i][k]);
            pair[i].text[k] = (const unsigned char *)text[i][k];
            pair[i].bytes[k] = strlen(text[i][k]);
            pair[i].prompt = strlen(prompts[i]);
        }
    return pair;
}

static void learn_from_pairs(sm_train_setup *s) {
    s->pair = pairs();
    s->pairs = PAIRS;
    s->beta = BETA;
    s->data = NULL;
    s->data_bytes = 0;
}

/* ---- one step, held to the formula ---- */

typedef struct job {
    const sm_train_setup *setup;
    int steps;
    bool reference;
    kept *kept; /* the weights before the last step, that of its loss; NULL: not asked */
    double loss[64], norm[64], apart;
} job;

static sm_status learn(sm_communicator *world, void *context, sm_error *err) {
    job *j = context;
    sm_trainer *t = NULL;
    double apart = 0;
    sm_status status = sm_trainer_new(world, j->setup, &t, err);
    if (!status && j->reference) status = sm_trainer_score_pairs(t, err);
    for (int i = 0; !status && i < j->steps; i++) {
        sm_train_result r;
        if (j->kept && i + 1 == j->steps) status = sm_trainer_save(t, keep, j->kept, err);
        if (!status) status = sm_trainer_step(t, i, &r, err);
        for (int k = 0; !status && k < SM_COLLECTIVE_COUNT; k++)
            apart += fabs(r.bytes_counted[k] - r.bytes_predicted[k]);
        if (world->rank) continue;
        j->loss[i] = r.loss;
        j->norm[i] = r.gradient_norm;
    }
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (world->rank == 0) j->apart = apart;
    sm_trainer_free(t);
    return status;
}

static void run_job(job *j) {
    sm_error err = {.status = SM_OK};
    if (sm_run_threads(sm_train_setup_ranks(j->setup), learn, j, &err))
        fail_msg("%s", err.sentence);
}

typedef struct answer {
    const kept *kept;
    const sm_train_setup *setup;
    const unsigned char *text;
    size_t bytes, prompt;
    double log_p;
} answer;

/* Byte by byte, by the serving program. */
static sm_status read_answer(sm_communicator *world, void *context, sm_error *err) {
    answer *a = context;
    static float scores[WORDS];
    sm_generator *g = NULL;
    const size_t one = 1;
    sm_status status = sm_generator_new(world, a->setup, NULL, &g, err);
    if (!status) status = sm_generator_load(g, find, (void *)(uintptr_t)a->kept, err);
    for (size_t i = 0; !status && i + 1 < a->bytes; i++) {
        const int32_t token = a->text[i];
        const sm_generator_pass pass = {1, &token, &one, false};
        double sum = 0;
        status = sm_generator_feed(g, &pass, scores, NULL, err);
        if (i + 1 < a->prompt) continue;
        for (int v = 0; v < WORDS; v++) sum += exp((double)scores[v]);
        a->log_p += (double)scores[a->text[i + 1]] - log(sum);
    }
    sm_generator_free(g);
    return status;
}

static double log_p(const kept *k, const sm_train_setup *s, size_t pair, int side) {
    sm_error err = {.status = SM_OK};
    const sm_train_pair *p = &pairs()[pair];
    sm_train_setup one = *s;
    one.pairs = 0;
    one.sequences = one.microbatch = 1;
    answer a = {k, &one, p->text[side], p->bytes[side], p->prompt, 0};
    expect_ok(sm_run_threads(1, read_answer, &a, &err), &err);
    return a.log_p;
}

static void the_loss_is_the_formula(void **state) {
    static kept before, after;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        sm_train_setup s = train_setup_of(&model);
        learn_from_pairs(&s);
        job first = {&s, 1, true, &before, {0}, {0}, 0},
            second = {&s, 2, true, &after, {0}, {0}, 0};
        after.n = 0;
        train_on_one(&before, &s, 0);
        double alone = 0; /* of the first batch, where nothing is held against a reference */
        for (size_t pair = 0; pair < SEQUENCES / 2; pair++) {
            double apart = log_p(&before, &s, pair, 0) - log_p(&before, &s, pair, 1);
            alone += log1p(exp(-BETA * apart)) / (SEQUENCES / 2.0);
        }
        assert_true(fabs(before.loss - alone) < 1e-5);
        run_job(&first);
        run_job(&second);
        assert_true(fabs(first.loss[0] - log(2)) < 1e-6); /* the model is its reference */
        double loss = 0;
        for (size_t i = 0; i < SEQUENCES / 2; i++) { /* those of the second step */
            size_t pair = (SEQUENCES / 2 + i) % PAIRS;
            double z[2];
            for (int k = 0; k < 2; k++)
                z[k] = log_p(&after, &s, pair, k) - log_p(&before, &s, pair, k);
            loss += log1p(exp(-BETA * (z[0] - z[1]))) / (SEQUENCES / 2.0);
        }
        print_message("%s: %.7f for %.7f\n", model.name, second.loss[1], loss);
        assert_true(fabs(loss - log(2)) > 1e-3 && fabs(second.loss[1] - loss) < 1e-5);
        drop(&before);
        drop(&after);
    }
}

/* ---- gradients ---- */

static double loss_at(sm_trainer *t) {
    sm_train_result r;
    sm_error err = {.status = SM_OK};
    expect_ok(sm_trainer_gradients(t, 0, &r, &err), &err);
    return r.loss;
}

static void gradients_are_slopes(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2); /* no choice of experts that changes on the way */
    sm_train_setup s = train_setup_of(&model);
    sm_communicator *self;
    sm_trainer *t;
    sm_train_weight w;
    learn_from_pairs(&s);
    assert_int_equal(sm_communicator_self(&self, NULL), SM_OK);
    assert_int_equal(sm_trainer_new(self, &s, &t, NULL), SM_OK);
    int checked = 0;
    for (int layer = -1; layer <= model.L; layer++)
        for (int i = 0; sm_trainer_weight(t, layer, i, &w); i++, checked++) {
            double told = 0, step = 2e-3;
            float kept_value[1 << 13];
            loss_at(t); /* without a reference: its probabilities are 1 */
            assert_true(sm_trainer_weight(t, layer, i, &w));
            size_t n = 1;
            for (int d = 0; d < w.rank; d++) n *= w.size[d];
            assert_true(n <= sizeof kept_value / sizeof *kept_value);
            memcpy(kept_value, w.value, n * sizeof *kept_value);
            float along[1 << 13];
            for (size_t k = 0; k < n; k++) along[k] = w.gradient[k];
            for (size_t k = 0; k < n; k++) told += (double)along[k] * (double)along[k];
            if (told < 1e-8) continue;
            step = 1e-3 / sqrt(told);
            double side[2];
            for (int k = 0; k < 2; k++) {
                for (size_t e = 0; e < n; e++)
                    w.value[e] = kept_value[e] + (float)((k ? -step : step) * (double)along[e]);
                side[k] = loss_at(t);
            }
            memcpy(w.value, kept_value, n * sizeof *kept_value);
            double seen = (side[0] - side[1]) / (2 * step);
            if (fabs(seen / told - 1) > 0.05) fail_msg("%s: %g against %g", w.name, seen, told);
        }
    assert_true(checked > 10);
    sm_trainer_free(t);
    sm_communicator_free(self);
}

/* ---- plans ---- */

static void plans_are_equal(void **state) {
    static const char *const plans[][2] = {
        {"microbatch=2", "dense"},
        {"data=2,microbatch=2,zero=2", "dense"},
        {"fsdp=2,tensor=2,seq=on,microbatch=2", "dense"},
        {"context=2,tensor=2,microbatch=4,recompute=full", "dense"},
        {"pipeline=2,schedule=gpipe,microbatch=2,tensor=2", "dense"},
        {"pipeline=2,schedule=zb-h1,microbatch=2", "dense"},
        {"pipeline=2,schedule=dualpipe,microbatch=2,context=2", "dense"},
        {"expert=2,tensor=2,expert_tensor=on,microbatch=2", "experts"},
        {"expert=2,context=2,microbatch=4,lora=2", "experts"},
        {"data=2,microbatch=2,lora=4,targets=qv", "dense"}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i += SANITIZED ? 3 : 1) {
        sm_error err = {.status = SM_OK};
        sm_plan plan;
        sm_arena *arena = sm_arena_new();
        const drawn_model m = {plans[i][1],
                               train_model(plans[i][1][0] == 'd' ? TRAIN_DENSE : TRAIN_EXPERTS, 2),
                               TRAIN_TOKENS};
        sm_train_setup s;
        expect_ok(drawn_setup_of(&m, plans[i][0], arena, &plan, &s, &err), &err);
        sm_train_setup alone = drawn_reference(&m, &s);
        s.rate = alone.rate = 3e-3;
        learn_from_pairs(&s);
        learn_from_pairs(&alone);
        job one = {&alone, STEPS, true, NULL, {0}, {0}, 0},
            j = {&s, STEPS, true, NULL, {0}, {0}, 0};
        run_job(&one);
        run_job(&j);
        for (int k = 0; k < STEPS; k++)
            if (fabs(j.loss[k] - one.loss[k]) > 2e-5 ||
                fabs(j.norm[k] - one.norm[k]) > 2e-3 * one.norm[k] || j.apart > 0) {
                print_message("%s, step %d: %.6f for %.6f, norm %.5f for %.5f, bytes apart by %g\n",
                              plans[i][0], k, j.loss[k], one.loss[k], j.norm[k], one.norm[k],
                              j.apart);
                wrong++;
            }
        sm_arena_free(arena);
    }
    assert_int_equal(wrong, 0);
}

static void what_is_preferred_becomes_likely(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup s = train_setup_of(&model);
    learn_from_pairs(&s);
    job j = {&s, 40, true, NULL, {0}, {0}, 0};
    s.rate = 1e-2;
    s.steps = 40;
    run_job(&j);
    print_message("%g -> %g\n", j.loss[0], j.loss[39]);
    assert_true(j.loss[39] < 0.2);
}

static void what_parts_a_pair_is_refused(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup s = train_setup_of(&model);
    sm_error err = {.status = SM_OK};
    learn_from_pairs(&s);
    s.microbatch = 1;
    assert_int_equal(sm_train_setup_check(&s, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "part a pair"));
    s.microbatch = 2;
    s.tokens = 8;
    err.status = SM_OK;
    assert_int_equal(sm_train_setup_check(&s, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "pair 1 has a text of 7 bytes behind a prompt of 7"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_the_formula),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(plans_are_equal),
        cmocka_unit_test(what_is_preferred_becomes_likely),
        cmocka_unit_test(what_parts_a_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

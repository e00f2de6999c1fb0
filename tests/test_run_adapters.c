/* Training of adapters beside weights that stay: y = x W + (x A) B. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train_plans.h"
#include "unit.h"

enum { RANK = 4, STEPS = 3, MOST_ARRAYS = 96, NUMBERS = 4096 };

typedef struct kept {
    int n;
    sm_train_array array[MOST_ARRAYS];
    float value[MOST_ARRAYS][NUMBERS];
} kept;

static size_t count_of(const sm_train_array *a) {
    size_t n = 1;
    for (int d = 0; d < a->rank; d++) n *= a->size[d];
    return n;
}

static sm_status keep(sm_train_array *a, void *context, sm_error *err) {
    kept *k = context;
    if (a->part != SM_TRAIN_VALUE) return SM_OK;
    assert_true(k->n < MOST_ARRAYS && count_of(a) <= NUMBERS);
    k->array[k->n] = *a;
    memcpy(k->value[k->n++], a->data, count_of(a) * sizeof(float));
    return SM_OK;
}

/* Of a weight's array beside which there are adapters, or the array itself; -1: none. */
static int find(const kept *k, const sm_train_array *a, sm_adapter which) {
    for (int i = 0; i < k->n; i++)
        if (k->array[i].layer == a->layer && k->array[i].array == a->array &&
            k->array[i].adapter == which)
            return i;
    return -1;
}

/* W + A B, where W is [in, out], or of each expert. */
static sm_status merge(sm_train_array *a, void *context, sm_error *err) {
    kept *k = context;
    int w = find(k, a, SM_ADAPTER_NONE), first = find(k, a, SM_ADAPTER_A);
    int second = find(k, a, SM_ADAPTER_B);
    assert_true(w >= 0 && (first < 0) == (second < 0));
    float *to = k->value[w];
    a->data = to;
    if (first < 0) return SM_OK;
    size_t all = count_of(&k->array[w]), of_a = count_of(&k->array[first]);
    size_t of_b = count_of(&k->array[second]);
    size_t copies = of_a * of_b / (RANK * RANK * all), in = of_a / RANK / copies,
           out = of_b / RANK / copies;
    assert_int_equal(copies * in * out, all);
    for (size_t e = 0; e < copies; e++)
        for (size_t i = 0; i < in; i++)
            for (size_t j = 0; j < out; j++)
                for (size_t r = 0; r < RANK; r++)
                    to[(e * in + i) * out + j] += k->value[first][(e * in + i) * RANK + r] *
                                                  k->value[second][(e * out + j) * RANK + r];
    return SM_OK;
}

typedef struct trained {
    const sm_train_setup *setup;
    double loss;
    kept *kept;
} trained;

static sm_status train(sm_communicator *world, void *context, sm_error *err) {
    trained *x = context;
    sm_trainer *t = NULL;
    sm_train_result r = {.loss = 0};
    sm_status status = sm_trainer_new(world, x->setup, &t, err);
    for (int i = 0; !status && i < STEPS; i++) status = sm_trainer_step(t, i, &r, err);
    if (!status) status = sm_trainer_save(t, keep, x->kept, err);
    if (!status) status = sm_trainer_gradients(t, STEPS, &r, err);
    x->loss = r.loss;
    sm_trainer_free(t);
    return status;
}

static sm_status evaluate(sm_communicator *world, void *context, sm_error *err) {
    trained *x = context;
    sm_trainer *t = NULL;
    sm_train_result r = {.loss = 0};
    sm_status status = sm_trainer_new(world, x->setup, &t, err);
    if (!status) status = sm_trainer_load(t, false, merge, x->kept, err);
    if (!status) status = sm_trainer_gradients(t, STEPS, &r, err);
    x->loss = r.loss;
    sm_trainer_free(t);
    return status;
}

/* On the one rank of this thread, in which assertions may fail. */
static void alone(sm_rank_body body, void *context) {
    sm_error err = {.status = SM_OK};
    sm_communicator *self;
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    if (body(self, context, &err)) fail_msg("%s", err.sentence);
    sm_communicator_free(self);
}

static sm_train_setup setup_of(const sm_model *model) {
    sm_train_setup s = train_setup_of(model);
    s.rules.lora = RANK;
    s.rate = 0.05;
    return s;
}

/* What adapters learned, added into the weights, is a model of the same loss; the weights
 * themselves are as they were drawn. */
static void adapters_can_be_merged(void **state) {
    static kept after, drawn;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        sm_train_setup s = setup_of(&model), plain = train_setup_of(&model);
        trained with = {&s, 0, &after}, merged = {&plain, 0, &after};
        after.n = drawn.n = 0;
        alone(train, &with);
        sm_train_setup still = plain;
        still.rate = 0;
        alone(train, &(trained){&still, 0, &drawn});
        int adapters = 0;
        for (int i = 0; i < after.n; i++) {
            adapters += after.array[i].adapter != SM_ADAPTER_NONE;
            if (after.array[i].adapter) continue;
            int other = find(&drawn, &after.array[i], SM_ADAPTER_NONE);
            assert_memory_equal(after.value[i], drawn.value[other],
                                count_of(&after.array[i]) * sizeof(float));
        }
        assert_int_equal(adapters, 2 * 2 * 7); /* layers, matrices of each, A and B */
        alone(evaluate, &merged);
        print_message("%g with adapters, %g merged\n", with.loss, merged.loss);
        assert_true(train_about_equal(with.loss, merged.loss, 1e-5));
    }
}

/* A step against the gradient lowers the loss by its square. */
static sm_status descend(sm_communicator *world, void *context, sm_error *err) {
    static const double step = 1e-3;
    sm_trainer *t = NULL;
    sm_train_result before, after;
    sm_train_weight w;
    double squares = 0;
    sm_status status = sm_trainer_new(world, context, &t, err);
    for (int i = 0; !status && i < STEPS; i++) status = sm_trainer_step(t, i, &before, err);
    for (int half = 0; !status && half < 2; half++) {
        status = sm_trainer_gradients(t, STEPS, half ? &after : &before, err);
        for (int layer = 0; layer < 2; layer++)
            for (int k = 0; sm_trainer_weight(t, layer, k, &w); k++) {
                size_t n = 1;
                for (int d = 0; d < w.rank; d++) n *= w.size[d];
                assert_int_equal(!w.gradient, strncmp(w.name, "lora_", 5) != 0);
                for (size_t i = 0; !half && w.gradient && i < n; i++) {
                    squares += (double)w.gradient[i] * (double)w.gradient[i];
                    w.value[i] -= (float)step * w.gradient[i];
                }
            }
    }
    if (!status) print_message("%g of %g\n", (before.loss - after.loss) / step, squares);
    if (!status) assert_true(fabs((before.loss - after.loss) / step / squares - 1) < 0.02);
    sm_trainer_free(t);
    return status;
}

static void gradients_are_slopes(void **state) {
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        sm_train_setup s = setup_of(&model);
        alone(descend, &s);
    }
}

static const train_plan plans[] = {
    {.words = "data=2,zero=1"},
    {.words = "fsdp=2,tensor=2,zero=3,seq"},
    {.words = "context=2,recompute=2"},
    {.words = "expert=2,tensor=2,seq,expert_tensor"},
    {.words = "tensor=2,seq,recompute=3"},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
};

static void plans_are_equal(void **state) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        static train_job job;
        train_curve one, c;
        train_kind kind = i % 2 ? TRAIN_EXPERTS : TRAIN_DENSE;
        assert_true(train_job_of(&plans[i], kind, &job));
        sm_train_setup base = setup_of(&job.model);
        job.setup.rules.lora = base.rules.lora;
        job.setup.rules.targets = base.rules.targets = i % 3 ? SM_LORA_ALL : SM_LORA_ATTENTION;
        job.setup.rate = base.rate;
        train_curve_on_threads(&base, TRAIN_STEPS, &one);
        train_curve_on_threads(&job.setup, TRAIN_STEPS, &c);
        wrong += train_curve_compare(&plans[i], &one, &c);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_can_be_merged),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(plans_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

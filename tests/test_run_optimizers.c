/* Optimizers of training against plain updates written here, and what is kept in host memory: the
 * same numbers, other accounts. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "scalemodel/run_train.h"
#include "train_plans.h"

enum { MOST = 4200, BLOCK = 256, UPDATES = 4 };

/* ---- how moments are rounded ---- */

/* Eight significant bits, ties to even. */
static double bf16(double x) {
    int exponent;
    double part = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

/* What a code stands for: zeros before the first one are a decimal exponent. */
static double tree(int code, int bits) {
    int zeros = 0;
    if (!code) return 0;
    while (!(code >> (bits - 1 - zeros) & 1)) zeros++;
    int f = bits - 1 - zeros;
    double fraction = (code % (1 << f) + 1) / (double)(1 << f);
    return pow(10, -zeros) * (0.1 + 0.9 * fraction);
}

static double nearest(double part, int bits, bool never_zero) {
    double best = 0;
    for (int code = 0; code < 1 << bits; code++)
        if (fabs(tree(code, bits) - part) < fabs(best - part)) best = tree(code, bits);
    return never_zero && part > 0 && !(best > 0) ? tree(1, bits) : best;
}

static void in_8_bits(double *x, size_t n, bool second) {
    for (size_t from = 0; from < n; from += BLOCK) {
        double most = 0;
        size_t end = from + BLOCK < n ? from + BLOCK : n;
        for (size_t i = from; i < end; i++) most = fmax(most, fabs(x[i]));
        for (size_t i = from; i < end && most > 0; i++)
            x[i] = copysign(most * nearest(fabs(x[i]) / most, second ? 8 : 7, second), x[i]);
    }
}

static void store(sm_train_optimizer which, double *x, size_t n, bool second) {
    for (size_t i = 0; i < n && which == SM_TRAIN_ADAM_BF16; i++) x[i] = bf16(x[i]);
    if (which == SM_TRAIN_ADAM_8BIT) in_8_bits(x, n, second);
}

/* ---- the weights of a layer in a row, as they are updated together on one rank ---- */

static size_t row_of(sm_trainer *t, int layer, bool gradient, double *row) {
    size_t n = 0;
    sm_train_weight w;
    for (int k = 0; sm_trainer_weight(t, layer, k, &w); k++) {
        size_t count = 1;
        for (int d = 0; d < w.rank; d++) count *= w.size[d];
        assert_true(n + count <= MOST);
        for (size_t i = 0; i < count; i++)
            row[n++] = (double)(gradient ? w.gradient[i] : w.value[i]);
    }
    return n;
}

typedef struct plain {
    double weight[MOST], slope[MOST], first[MOST], second[MOST], after[MOST];
} plain;

static void update(const sm_train_setup *s, plain *p, size_t n, int step, double rate,
                   double scale) {
    double bias1 = 1 - pow(s->beta1, step), bias2 = 1 - pow(s->beta2, step);
    for (size_t i = 0; i < n; i++) {
        double slope = scale * p->slope[i];
        p->first[i] = s->beta1 * p->first[i] + (1 - s->beta1) * slope;
        p->second[i] = s->beta2 * p->second[i] + (1 - s->beta2) * slope * slope;
        double down = p->first[i] / bias1 / (sqrt(p->second[i] / bias2) + s->epsilon);
        p->weight[i] -= rate * (s->optimizer == SM_TRAIN_SGD ? slope : down);
    }
    store(s->optimizer, p->first, n, false);
    store(s->optimizer, p->second, n, true);
}

/* The share of weights that moved otherwise than the plain update says: a moment on the edge
 * between two codes may fall on either side, which the rounding of the next ones forgets. */
static const double MOST_APART = 0.002;
static double compare(const plain *p, size_t n, double rate) {
    size_t apart = 0;
    for (size_t i = 0; i < n; i++) apart += fabs(p->after[i] - p->weight[i]) > 2e-3 * rate;
    return (double)apart / (double)n;
}

static sm_status follow(sm_communicator *world, void *context, sm_error *err) {
    const sm_train_setup *s = context;
    static plain p[4];
    sm_trainer *t;
    sm_status status = sm_trainer_new(world, s, &t, err);
    if (status) return status;
    memset(p, 0, sizeof p);
    for (int step = 0; !status && step < UPDATES; step++) {
        size_t n[4];
        sm_train_result r;
        status = sm_trainer_gradients(t, step, &r, err);
        for (int l = 0; l < 4; l++) {
            row_of(t, l - 1, true, p[l].slope);
            n[l] = row_of(t, l - 1, false, p[l].weight);
        }
        if (!status) status = sm_trainer_step(t, step, &r, err);
        double scale = r.gradient_norm > s->clip ? s->clip / r.gradient_norm : 1;
        for (int l = 0; l < 4; l++) {
            update(s, &p[l], n[l], step + 1, r.rate, scale);
            row_of(t, l - 1, false, p[l].after);
            double apart = compare(&p[l], n[l], r.rate);
            if (apart > MOST_APART)
                print_message("layer %d, step %d: %g apart\n", l - 1, step, apart);
            assert_true(apart <= MOST_APART);
        }
    }
    sm_trainer_free(t);
    return status;
}

static void updates_are_plain(void **state) {
    for (int o = 0; o < SM_TRAIN_OPTIMIZER_COUNT; o++)
        for (int host = 0; host < 2; host++) {
            sm_error err = {.status = SM_OK};
            sm_model model = train_model(TRAIN_DENSE, 2);
            sm_train_setup s = train_setup_of(&model);
            s.optimizer = (sm_train_optimizer)o;
            s.offload_optimizer = host;
            s.sequences = s.microbatch = 2;
            print_message("optimizer %d, host %d\n", o, host);
            sm_communicator *self;
            assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
            if (follow(self, &s, &err)) print_message("%s\n", err.sentence);
            assert_int_equal(err.status, SM_OK);
            sm_communicator_free(self);
        }
}

/* ---- weights in bf16 ---- */

enum { STORED = 8 };
typedef struct moved {
    const sm_train_setup *setup;
    double by, wanted, most; /* along the gradient; the largest step of a weight in its last bits */
} moved;

static void row_in_bf16(sm_trainer *t, int layer, float *row) {
    sm_train_weight w;
    for (int k = 0; sm_trainer_weight(t, layer, k, &w); k++) {
        size_t count = 1;
        for (int d = 0; d < w.rank; d++) count *= w.size[d];
        sm_elements_read(SM_ELEMENT_BF16, w.value, 0, count, row);
        row += count;
    }
}

/* An update far below the last bit of a weight: how far all of a layer move along the gradient. */
static sm_status move_a_little(sm_communicator *world, void *context, sm_error *err) {
    moved *m = context;
    static float before[MOST], after[MOST];
    static double slope[MOST];
    sm_trainer *t;
    sm_train_result r;
    sm_status status = sm_trainer_new(world, m->setup, &t, err);
    for (int step = 0; !status && step < STORED; step++) {
        status = sm_trainer_gradients(t, 0, &r, err);
        size_t n = row_of(t, 0, true, slope);
        row_in_bf16(t, 0, before);
        if (!status) status = sm_trainer_step(t, 0, &r, err);
        row_in_bf16(t, 0, after);
        double scale = r.gradient_norm > m->setup->clip ? m->setup->clip / r.gradient_norm : 1;
        for (size_t i = 0; i < n; i++) {
            double by = (double)before[i] - (double)after[i];
            m->by += by * slope[i];
            m->wanted += r.rate * scale * slope[i] * slope[i];
            m->most = fmax(m->most, fabs(by) / ldexp(1, ilogb((double)before[i]) - 7));
        }
    }
    sm_trainer_free(t);
    return status;
}

/* Rounded at random they move as they should on the whole, none by much more than its last bit; the
 * weights of an optimizer that has its own stay until the sum of its updates is worth a bit. */
static void small_updates_are_not_lost(void **state) {
    sm_error err = {.status = SM_OK};
    sm_model model = train_model(TRAIN_DENSE, 2);
    for (int rounded = 0; rounded < 2; rounded++) {
        sm_train_setup s = train_setup_of(&model);
        moved m = {.setup = &s};
        s.stored = SM_ELEMENT_BF16;
        s.optimizer = SM_TRAIN_SGD;
        s.rounded = rounded;
        s.rate = 3e-4;
        assert_int_equal(sm_run_threads(1, move_a_little, &m, &err), SM_OK);
        print_message("moved %g of what was wanted, %g last bits\n", m.by / m.wanted, m.most);
        if (rounded) assert_true(fabs(m.by / m.wanted - 1) < 0.25 && m.most < 2.01);
        else assert_true(m.by < 0.25 * m.wanted);
    }
}

/* ---- the same on every plan ---- */

static const train_plan plans[] = {
    {.words = "micro=2"},
    {.words = "data=2"},
    {.words = "data=4,zero=1"},
    {.words = "data=2,zero=2,micro=1"},
    {.words = "fsdp=2,tensor=2,zero=3,seq"},
    {.words = "expert=2,data=2,zero=1"},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
};
enum { PLANS = sizeof plans / sizeof *plans };

/* Blocks of 8 bits follow a rank's part of the weights, so that plans round apart. */
static double tolerance_of(sm_train_optimizer o) {
    return o == SM_TRAIN_ADAM_8BIT ? 1e-3 : train_tolerance;
}

static void plans_are_equal(void **state) {
    for (int o = SM_TRAIN_ADAM_BF16; o < SM_TRAIN_OPTIMIZER_COUNT; o++)
        for (int i = SANITIZED ? o % 2 : 0; i < PLANS; i += SANITIZED ? 3 : 1) {
            static train_job job;
            train_kind kind = i % 2 ? TRAIN_EXPERTS : TRAIN_DENSE;
            train_curve one, c;
            assert_true(train_job_of(&plans[i], kind, &job));
            sm_train_setup base = train_setup_of(&job.model);
            base.optimizer = job.setup.optimizer = (sm_train_optimizer)o;
            base.rate = job.setup.rate = o == SM_TRAIN_SGD ? 0.3 : base.rate;
            train_curve_on_threads(&base, TRAIN_STEPS, &one);
            train_curve_on_threads(&job.setup, TRAIN_STEPS, &c);
            assert_true(c.status == SM_OK && !(c.difference > 0));
            assert_true(one.loss[TRAIN_STEPS - 1] < one.loss[0]);
            for (int k = 0; k < TRAIN_STEPS; k++) {
                double apart = fabs(c.loss[k] / one.loss[k] - 1);
                if (apart > tolerance_of(base.optimizer))
                    print_message("%d %s: %g\n", o, plans[i].words, apart);
                assert_true(apart <= tolerance_of(base.optimizer));
            }
        }
}

/* ---- host memory ---- */

typedef struct watched {
    const sm_train_setup *setup;
    double loss[TRAIN_STEPS];
    sm_train_memory memory;
} watched;

static sm_status watch(sm_communicator *world, void *context, sm_error *err) {
    watched *w = context;
    sm_trainer *t = NULL;
    sm_status status = sm_trainer_new(world, w->setup, &t, err);
    for (int i = 0; !status && i < TRAIN_STEPS; i++) {
        sm_train_result r;
        status = sm_trainer_step(t, i, &r, err);
        if (world->rank == 0) w->loss[i] = r.loss;
    }
    if (!status && world->rank == 0) sm_trainer_memory(t, &w->memory);
    sm_trainer_free(t);
    return status;
}

static watched watched_of(sm_train_setup *setup, bool optimizer, bool activations) {
    watched w = {.setup = setup};
    sm_error err = {.status = SM_OK};
    setup->offload_optimizer = optimizer;
    setup->offload_activations = activations;
    if (sm_run_threads(sm_train_setup_ranks(setup), watch, &w, &err))
        print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    return w;
}

static const train_plan hosted[] = {
    {.words = "micro=4"},
    {.words = "data=2,zero=1,micro=2"},
    {.words = "tensor=2,seq,recompute=1"},
    {.words = "context=2"},
    {.words = "expert=2,recompute=2"},
    {"micro=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1,tensor=2", SM_SCHEDULE_DUALPIPE, 2, 2},
};

/* The losses of a plan do not change at all; moments and activations change their place. */
static void offloading_changes_no_number(void **state) {
    for (size_t i = 0; i < sizeof hosted / sizeof *hosted; i += SANITIZED ? 3 : 1) {
        static train_job job;
        assert_true(train_job_of(&hosted[i], i % 2 ? TRAIN_EXPERTS : TRAIN_DENSE, &job));
        watched none = watched_of(&job.setup, false, false);
        watched moments = watched_of(&job.setup, true, false);
        watched both = watched_of(&job.setup, true, true);
        assert_memory_equal(none.loss, moments.loss, sizeof none.loss);
        assert_memory_equal(none.loss, both.loss, sizeof none.loss);
        assert_true(!(none.memory.most[SM_TRAIN_MEMORY_HOST] > 0));
        assert_true(!(moments.memory.most[SM_TRAIN_MEMORY_OPTIMIZER] > 0));
        assert_true(moments.memory.most[SM_TRAIN_MEMORY_HOST] ==
                    none.memory.most[SM_TRAIN_MEMORY_OPTIMIZER]);
        assert_true(both.memory.most[SM_TRAIN_MEMORY_HOST] >=
                    moments.memory.most[SM_TRAIN_MEMORY_HOST]);
        assert_true(both.memory.total < none.memory.total);
    }
}

/* Of eight layers three stay: what is kept in the rank's memory falls to three eighths and the
 * head's. */
static void three_layers_stay(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 8);
    sm_train_setup s = train_setup_of(&model), few = s;
    watched none = watched_of(&s, false, false), away = watched_of(&s, false, true);
    sm_model small = train_model(TRAIN_DENSE, 3);
    few.model = &small;
    watched three = watched_of(&few, false, false);
    double kept = none.memory.most[SM_TRAIN_MEMORY_ACTIVATIONS];
    double left = away.memory.most[SM_TRAIN_MEMORY_ACTIVATIONS];
    double host = away.memory.most[SM_TRAIN_MEMORY_HOST];
    print_message("kept %g, of three %g, left %g, host %g\n", kept,
                  three.memory.most[SM_TRAIN_MEMORY_ACTIVATIONS], left, host);
    assert_true(left <= three.memory.most[SM_TRAIN_MEMORY_ACTIVATIONS] * 1.001);
    assert_true(train_about_equal(left + host, kept, 1e-3));
    assert_true(away.memory.total < none.memory.total);
}

/* ---- from one place to another ---- */

static void odd_optimizers_are_refused(void **state) {
    sm_error err = {.status = SM_OK};
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup s = train_setup_of(&model);
    s.optimizer = SM_TRAIN_OPTIMIZER_COUNT;
    assert_int_equal(sm_train_setup_check(&s, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "there is no optimizer of number 4");
    s.stored = SM_ELEMENT_F64;
    assert_int_equal(sm_train_setup_check(&s, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "arrays of 8 bytes an element cannot be run");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_plain), cmocka_unit_test(small_updates_are_not_lost),
        cmocka_unit_test(plans_are_equal),   cmocka_unit_test(offloading_changes_no_number),
        cmocka_unit_test(three_layers_stay), cmocka_unit_test(odd_optimizers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

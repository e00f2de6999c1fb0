/* Every shipped calibration keeps the bounds: no constant promises more than the data sheet, and
 * lower <= expected <= upper holds for operations, collectives, steps of training and points of
 * serving on every chip under every software that its user can name. Nothing in the library moves
 * one of the three times to fit another. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include "random_jobs.h"
#include "sanitized.h"
#include "serve_cases.h"

/* ---- every pair of a chip and constants ---- */

typedef void (*visit)(const sm_chip *chip, const sm_calibration *c);

static bool is_first_of(const char *software, size_t before) {
    for (size_t i = 0; i < before; i++)
        if (strcmp(sm_calibration_at(i)->software, software) == 0) return false;
    return true;
}

static void visit_chip(const sm_chip *chip, visit visitor) {
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        const char *software = sm_calibration_at(i)->software;
        const sm_calibration *c = sm_calibration_for(chip, software);
        if (c && is_first_of(software, i)) visitor(chip, c);
    }
}

static void visit_all(visit visitor) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        if (sm_chip_peak(chip, SM_BF16, NULL) > 0) visit_chip(chip, visitor);
    }
}

static void in_order(const sm_chip *chip, const sm_calibration *c, const char *what, double lower,
                     double expected, double upper) {
    double slack = 1 + 1e-9; /* sums of the same terms in another order */
    if (!(lower >= 0 && lower <= expected * slack && expected <= upper * slack && isfinite(upper)))
        fail_msg("%s under [%s %s], %s: lower %.6g, expected %.6g, upper %.6g", chip->name, c->chip,
                 c->software, what, lower, expected, upper);
}

/* ---- constants ---- */

static void shares_are_of_the_data_sheet(void **state) {
    static const sm_constant shares[] = {
        SM_CONSTANT_matmul_efficiency,       SM_CONSTANT_matmul_efficiency_fp8,
        SM_CONSTANT_attention_efficiency,    SM_CONSTANT_attention_efficiency_backward,
        SM_CONSTANT_memory_efficiency,       SM_CONSTANT_network_efficiency_inner,
        SM_CONSTANT_network_efficiency_outer};
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        const sm_calibration *c = sm_calibration_at(i);
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            double value = sm_calibration_get(c, shares[k]);
            if (!(value > 0 && value <= 1))
                fail_msg("[%s %s] %s = %g", c->chip, c->software, sm_constant_of(shares[k])->name,
                         value);
        }
        assert_true(c->overlap >= 0 && c->overlap <= 1);
        assert_true(c->launch_s >= 0 && c->collective_s >= 0 && c->step_overhead_s >= 0);
        assert_int_equal(c->lines, 0); /* measured lines have rates of their own */
    }
}

/* ---- operations ---- */

static void matmuls(const sm_chip *chip, const sm_calibration *c) {
    static const double sizes[][4] = {{1, 8192, 8192, 8192}, {1, 16, 4096, 4096},
                                      {64, 2048, 128, 2048}, {1, 4096, 28672, 64},
                                      {8, 300, 1000, 7},     {1, 1, 1, 1}};
    static const sm_dtype dtypes[] = {SM_BF16, SM_FP8, SM_FP4, SM_INT8, SM_FP32};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            const double *s = sizes[i];
            double bytes = 2 * s[0] * (s[1] * s[2] + s[2] * s[3] + s[1] * s[3]);
            sm_op_cost cost = sm_matmul_cost(chip, c, dtypes[k],
                                             (sm_product_shape){s[0], s[1], s[2], s[3]}, bytes);
            in_order(chip, c, "matmul", cost.lower_s, cost.expected_s, cost.upper_s);
        }
}

static sm_attention_shape random_attention(sm_rng *rng) {
    double keys = pow(2, (double)sm_rng_below(rng, 18)),
           group = pow(2, (double)sm_rng_below(rng, 5));
    double queries =
        sm_rng_below(rng, 3) == 0 ? 1 : fmin(keys, pow(2, (double)sm_rng_below(rng, 16)));
    bool narrow = sm_rng_below(rng, 3) == 0;
    sm_attention_shape s = {.batch = 1 + (double)sm_rng_below(rng, 64),
                            .q_len = queries,
                            .kv_len = keys,
                            .keys = keys - (queries - 1) / 2,
                            .kv_heads = 1 + (double)sm_rng_below(rng, 16),
                            .head_size = 32 * (1 + (double)sm_rng_below(rng, 18)),
                            .dtype = narrow ? SM_FP8 : SM_BF16,
                            .kv_bytes = narrow ? 1 : 2,
                            .one_kernel = sm_rng_below(rng, 2),
                            .head_blocks = sm_rng_below(rng, 2),
                            .kernel = (int)sm_rng_below(rng, 4)};
    s.heads = s.kv_heads * group;
    s.v_head_size = s.head_size;
    if (s.kernel != SM_ATTENTION_UNFUSED && sm_rng_below(rng, 6) == 0) s.panel = 128;
    return s;
}

static void operations(const sm_chip *chip, const sm_calibration *c) {
    sm_rng rng = {7};
    matmuls(chip, c);
    for (int i = 0; i < 40; i++) {
        sm_attention_shape s = random_attention(&rng);
        sm_op_cost cost = sm_attention_cost(chip, c, &s, i % 2);
        in_order(chip, c, "attention", cost.lower_s, cost.expected_s, cost.upper_s);
    }
    for (double bytes = 1; bytes < 1e10; bytes *= 100) {
        sm_op_cost cost = sm_vector_cost(chip, c, bytes, bytes);
        in_order(chip, c, "vector op", cost.lower_s, cost.expected_s, cost.upper_s);
    }
}

static void operations_keep_their_order(void **state) { visit_all(operations); }

/* ---- collectives ---- */

static bool system_of(const sm_chip *chip, const char *shape, sm_system *system) {
    char text[96];
    sm_error err = {0};
    snprintf(text, sizeof text, "%s:%s", chip->name, shape);
    sm_source source = sm_source_of("system", text);
    return sm_system_parse(&source, NULL, 0, system, &err) == SM_OK;
}

/* Shapes of 16 chips: a torus of two or three dimensions, or two nodes. */
static bool sixteen(const sm_chip *chip, sm_system *system) {
    static const char *const shapes[] = {"2x8", "2x2x4", "4x4", "16"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (system_of(chip, shapes[i], system)) return true;
    return false;
}

static void collectives_of(const sm_system *system, const sm_calibration *c, int members) {
    sm_placement placement;
    int sizes[] = {members, system->chips / members}, order[] = {0, 1};
    if (!sm_placement_fill(system, 2, sizes, order, NULL, &placement)) return;
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        for (int axis = 0; axis < 2; axis++) {
            sm_curve curve =
                sm_collective_curve(system, (sm_collective)op, &placement.axis[axis], 1);
            for (double bytes = 1; bytes < 1e11; bytes *= 30) {
                sm_collective_cost cost = sm_curve_cost(&curve, system, c, bytes);
                in_order(&system->chip, c, sm_collective_name((sm_collective)op), cost.lower_s,
                         cost.expected_s, cost.upper_s);
            }
        }
}

static void collectives(const sm_chip *chip, const sm_calibration *c) {
    sm_system system;
    if (!sixteen(chip, &system)) return;
    for (int members = 2; members <= 16; members *= 2) collectives_of(&system, c, members);
}

static void collectives_keep_their_order(void **state) { visit_all(collectives); }

/* ---- steps of training ---- */

/* Each pair prices every second of them, in turn. */
enum { JOBS = REPEATED ? 2 : 4, PLANS = 60 };

static struct {
    random_job job;
    sm_train *train;
    int plans;
    sm_plan plan[PLANS];
} trained[JOBS];
static size_t steps_priced;

/* Jobs of this chip, with the plans of each that can be. */
static void fill_jobs(const sm_system *system, sm_rng *rng) {
    sm_price_of_plan price;
    sm_error err = {0};
    for (int j = 0; j < JOBS; j++) {
        random_job_fill(&trained[j].job, rng);
        trained[j].job.system = *system;
        trained[j].plans = 0;
        trained[j].train = NULL;
        if (sm_train_new(&trained[j].job.job, &trained[j].train, &err))
            fail_msg("%s", err.sentence);
        for (int i = 0; i < PLANS; i++) {
            sm_plan *plan = &trained[j].plan[trained[j].plans];
            random_plan(&trained[j].job, rng, plan);
            plan->attention = sm_rng_below(rng, 4) == 0;
            trained[j].plans += sm_train_price(trained[j].train, plan, &price, &err) == SM_OK;
        }
    }
}

static const char *words_of(const sm_plan *plan) {
    static char words[512];
    sm_plan_format(plan, 0, words, sizeof words);
    return words;
}

static void steps(const sm_chip *chip, const sm_calibration *c) {
    sm_price_of_plan p;
    sm_error err = {0};
    static int pairs;
    for (int j = pairs++ % 2; j < JOBS; j += 2) {
        sm_train_set_calibration(trained[j].train, c);
        for (int i = 0; i < trained[j].plans; i++) {
            assert_int_equal(sm_train_price(trained[j].train, &trained[j].plan[i], &p, &err),
                             SM_OK);
            in_order(chip, c, words_of(&trained[j].plan[i]), p.lower_s, p.expected_s, p.upper_s);
            steps_priced++;
        }
    }
}

static void steps_of_training_keep_their_order(void **state) {
    sm_rng rng = {1};
    sm_system system;
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0) || !sixteen(chip, &system)) continue;
        fill_jobs(&system, &rng);
        visit_chip(chip, steps);
        for (int j = 0; j < JOBS; j++) sm_train_free(trained[j].train);
    }
    assert_true(steps_priced > (REPEATED ? 10000 : 30000));
}

/* ---- points of serving ---- */

static serve_case served;
static sm_serve *serving;

/* Each pair has one of the plans with one of the batches, in turn. */
static void points(const sm_chip *chip, const sm_calibration *c) {
    static const char *const plans[] = {"tensor=8", "tensor=4,data=2", "tensor=2,pipeline=4"};
    static const double batches[] = {1, 16, 256};
    static size_t pairs;
    const char *words = plans[pairs % 3];
    sm_plan plan = serve_plan(words);
    sm_serve_point p;
    sm_error err = {0};
    sm_serve_set_calibration(serving, c);
    if (sm_serve_point_of(serving, &plan, batches[pairs++ / 3 % 3], &p, &err))
        fail_msg("%s", err.sentence);
    in_order(chip, c, words, p.tpot_s[0], p.tpot_s[1], p.tpot_s[2]);
    in_order(chip, c, "prefill", p.ttft_s[0], p.ttft_s[1], p.ttft_s[2]);
}

static void points_of_serving_keep_their_order(void **state) {
    static const char *const models[] = {"llama-3.1-8b", "mixtral-8x7b", "gpt-oss-20b"};
    sm_system system;
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        if (!(sm_chip_peak(chip, SM_BF16, NULL) > 0)) continue;
        if (!system_of(chip, "8", &system) && !system_of(chip, "2x4", &system) &&
            !system_of(chip, "2x2x2", &system))
            continue;
        serve_case_fill(&served, models[i % 3], "h100-sxm:8");
        served.system = system;
        serving = serve_case_new(&served);
        visit_chip(chip, points);
        sm_serve_free(serving);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_of_the_data_sheet),
        cmocka_unit_test(operations_keep_their_order),
        cmocka_unit_test(collectives_keep_their_order),
        cmocka_unit_test(steps_of_training_keep_their_order),
        cmocka_unit_test(points_of_serving_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

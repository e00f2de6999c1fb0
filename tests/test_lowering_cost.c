/* The price of a lowered einsum: each step against the functions it is made of, the overlapped
 * variants against a naive pipeline of chunks, and bounds that hold for every alternative of random
 * products. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "scalemodel/lowering.h"

enum { MOST_FOUND = 512 };

typedef struct problem {
    sm_system system;
    sm_mesh mesh;
    sm_placement placement;
    sm_einsum einsum;
    sm_lowering_input input;
    int n;
    sm_lowering found[MOST_FOUND];
} problem;

static bool collect(const sm_lowering *lowering, void *context) {
    problem *p = context;
    if (p->n == MOST_FOUND) return false;
    p->found[p->n++] = *lowering;
    return true;
}

static void pose(problem *p, const char *on, const char *mesh, const char *einsum,
                 const char *dims) {
    sm_error err;
    sm_source system_text = sm_source_of("--on", on), mesh_text = sm_source_of("--mesh", mesh);
    sm_source einsum_text = sm_source_of("EINSUM", einsum),
              dims_text = sm_source_of("--dims", dims);
    p->n = 0;
    assert_int_equal(sm_system_parse(&system_text, NULL, 0, &p->system, &err), SM_OK);
    assert_int_equal(sm_mesh_parse(&mesh_text, &p->mesh, &err), SM_OK);
    assert_int_equal(sm_placement_of_mesh(&p->system, &p->mesh, &mesh_text, &p->placement, &err),
                     SM_OK);
    assert_int_equal(sm_einsum_parse(&einsum_text, &p->mesh, &p->einsum, &err), SM_OK);
    assert_int_equal(sm_einsum_infer_output(&p->einsum, &einsum_text, &err), SM_OK);
    assert_int_equal(sm_dims_parse(&dims_text, &p->einsum, &err), SM_OK);
    assert_int_equal(sm_einsum_check(&p->einsum, &p->mesh, &einsum_text, &err), SM_OK);
    p->input = (sm_lowering_input){&p->system,
                                   &p->mesh,
                                   &p->placement,
                                   &p->einsum,
                                   sm_calibration_of(&p->system.chip),
                                   p->einsum.in[0].dtype,
                                   SM_LOCAL_PRODUCT,
                                   0,
                                   0,
                                   0};
    assert_int_equal(sm_einsum_alternatives(&p->einsum, &p->mesh, collect, p, &err), SM_OK);
    assert_true(p->n > 0);
}

/* The lowering whose steps are exactly these: 'g' all-gather, 'r' reduce-scatter, 'a' all-reduce,
 * 't' all-to-all, 's' slice, 'E' einsum. */
static const sm_lowering *find(const problem *p, const char *steps) {
    for (int i = 0; i < p->n; i++) {
        char text[SM_MAX_STEPS + 1] = "";
        for (int s = 0; s < p->found[i].steps; s++) {
            const sm_step *step = &p->found[i].step[s];
            text[s] = step->kind == SM_STEP_EINSUM  ? 'E'
                      : step->kind == SM_STEP_SLICE ? 's'
                                                    : "gratpb"[step->op];
        }
        if (strcmp(text, steps) == 0) return &p->found[i];
    }
    fail_msg("no lowering with the steps %s", steps);
    return NULL;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

static double collective_s(const problem *p, const sm_step *step, double *lower_s) {
    sm_group group = sm_group_join(&p->placement, step->axes);
    sm_curve curve = sm_collective_curve(&p->system, step->op, &group, 1.0);
    sm_collective_cost cost = sm_curve_cost(&curve, &p->system, p->input.calibration, step->bytes);
    *lower_s = cost.lower_s;
    return cost.expected_s;
}

/* ---- the steps ---- */

static void gather_of_weights(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", "I=8192,J=8192,K=8192");
    const sm_lowering *l = find(p, "gE");
    sm_lowering_cost cost = sm_lowering_price(&p->input, l, -1);
    double flops = 2.0 * 2048 * 8192 * 2048,
           bytes = 2.0 * (2048.0 * 8192 + 8192.0 * 2048 + 2048.0 * 2048);
    assert_true(near(cost.math_s, flops / 197e12));
    assert_true(near(cost.memory_s, bytes / 819e9));
    /* 8192 x 2048 bf16 gathered on a line of 4: three quarters cross one link. The book, part 3. */
    assert_true(near(cost.network_s, 0.75 * 2.0 * 8192 * 2048 / 45e9));
    assert_true(near(cost.lower_s, cost.network_s));
    assert_int_equal(cost.overlapped, -1);
    assert_int_equal(cost.chunks, 1);
}

static void expected_is_the_sum_of_the_steps(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", "I=8192,J=8192,K=8192");
    for (int i = 0; i < p->n; i++) {
        sm_lowering_cost cost = sm_lowering_price(&p->input, &p->found[i], -1);
        double expected = 0.0, network = 0.0;
        for (int s = 0; s < p->found[i].steps; s++) {
            const sm_step *step = &p->found[i].step[s];
            double lower = 0.0;
            if (step->kind == SM_STEP_COLLECTIVE)
                assert_true(near(cost.step[s].expected_s, collective_s(p, step, &lower)));
            if (step->kind == SM_STEP_SLICE) assert_true(cost.step[s].expected_s <= 0.0);
            expected += cost.step[s].expected_s;
            network += lower;
        }
        assert_true(near(cost.expected_s, expected));
        assert_true(near(cost.network_s, network));
    }
}

static void einsum_is_priced_as_the_local_matmul(void **state) {
    problem *p = *state;
    pose(p, "h100-sxm:8", "X=2,Y=2,Z=2", "A[B_X,I_Y,J] W[B_X,J,K_Z] -> C[B_X,I_Y,K_Z]",
         "B=4,I=2048,J=4096,K=1024");
    const sm_lowering *l = find(p, "E");
    sm_lowering_cost cost = sm_lowering_price(&p->input, l, -1);
    double bytes = 2.0 * 2.0 * (1024.0 * 4096 + 4096.0 * 512 + 1024.0 * 512);
    sm_op_cost op = sm_matmul_cost(&p->system.chip, p->input.calibration, SM_BF16,
                                   (sm_product_shape){2, 1024, 512, 4096}, bytes);
    assert_true(near(cost.expected_s, op.expected_s));
    assert_true(near(cost.upper_s, op.upper_s));
    assert_true(near(cost.lower_s, op.lower_s));
}

static void elementwise_product_runs_on_the_vector_unit(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4", "X=4", "A[I_X,J] B[I_X,J] -> C[I_X,J]", "I=4096,J=4096");
    sm_lowering_cost cost = sm_lowering_price(&p->input, find(p, "E"), -1);
    double elements = 1024.0 * 4096;
    sm_op_cost op =
        sm_vector_cost(&p->system.chip, p->input.calibration, 2.0 * elements, 6.0 * elements);
    assert_true(near(cost.expected_s, op.expected_s));
    assert_true(near(cost.math_s, 2.0 * elements / p->system.chip.vector_flops_per_s.value));
}

/* ---- collectives inside the einsum ---- */

/* One chunk is there from the start and the others arrive one transfer apart; the multiplier takes
 * them in order. */
static double gather_pipeline_s(int n, double chunk_s, double transfer_s) {
    double arrived = 0.0, done = 0.0;
    for (int i = 0; i < n; i++) {
        if (i > 0) arrived += transfer_s;
        done = fmax(done, arrived) + chunk_s;
    }
    return done;
}

static void overlapped_gather_cuts_the_contraction(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", "I=8192,J=8192,K=8192");
    const sm_lowering *l = find(p, "gE");
    int steps[SM_MAX_STEPS];
    assert_int_equal(sm_lowering_overlaps(l, steps), 1);
    assert_int_equal(steps[0], 0);
    sm_lowering_cost cost = sm_lowering_price(&p->input, l, 0);
    /* A quarter of J: a quarter of A and B each, and the whole output, which is added to. */
    double bytes = 2.0 * (2048.0 * 2048 + 2048.0 * 2048 + 2048.0 * 2048);
    sm_op_cost chunk = sm_matmul_cost(&p->system.chip, p->input.calibration, SM_BF16,
                                      (sm_product_shape){1, 2048, 2048, 2048}, bytes);
    double lower, transfer = collective_s(p, &l->step[0], &lower) / 3.0;
    assert_int_equal(cost.chunks, 4);
    assert_true(near(cost.expected_s, gather_pipeline_s(4, chunk.expected_s, transfer)));
}

static void overlapped_scatter_cuts_the_output(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J_Y] B[J_Y,K] -> C[I_X,K_Y]", "I=8192,J=8192,K=8192");
    const sm_lowering *l = find(p, "Er");
    int steps[SM_MAX_STEPS];
    assert_int_equal(sm_lowering_overlaps(l, steps), 1);
    assert_int_equal(steps[0], 1);
    sm_lowering_cost cost = sm_lowering_price(&p->input, l, 1);
    double bytes = 2.0 * (2048.0 * 2048 + 2048.0 * 2048 + 2048.0 * 2048);
    sm_op_cost chunk = sm_matmul_cost(&p->system.chip, p->input.calibration, SM_BF16,
                                      (sm_product_shape){1, 2048, 2048, 2048}, bytes);
    double lower, transfer = collective_s(p, &l->step[1], &lower) / 3.0;
    assert_true(near(cost.expected_s, 3.0 * fmax(chunk.expected_s, transfer) + chunk.expected_s));
}

static void overlapping_what_is_long_hides_the_short(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]",
         "I=131072,J=8192,K=8192");
    const sm_lowering *l = find(p, "gE");
    sm_lowering_cost apart = sm_lowering_price(&p->input, l, -1),
                     inside = sm_lowering_price(&p->input, l, 0);
    /* Sixteen times the rows: math dominates, and almost all of the gather disappears behind it. */
    assert_true(apart.math_s > 5.0 * apart.network_s);
    assert_true(apart.expected_s - inside.expected_s > 0.6 * apart.step[0].expected_s);
    assert_true(near(inside.lower_s, apart.lower_s));
    assert_true(near(inside.upper_s, apart.upper_s));
}

static void others_cannot_overlap(void **state) {
    problem *p = *state;
    int steps[SM_MAX_STEPS];
    pose(p, "tpu-v5e:4", "X=4", "A[I,J_X] B[J_X,K] -> C[I,K]", "I=1024,J=1024,K=1024");
    assert_int_equal(sm_lowering_overlaps(find(p, "Ea"), steps), 0);
    pose(p, "tpu-v5e:4", "X=4", "A[I_X,J] B[J,K] -> C[I_X,K]", "I=1024,J=1024,K=1024");
    assert_int_equal(sm_lowering_overlaps(find(p, "E"), steps), 0);
}

/* ---- bounds ---- */

static void check_bounds(const problem *p) {
    for (int i = 0; i < p->n; i++) {
        const sm_lowering *l = &p->found[i];
        sm_lowering_cost cost = sm_lowering_price(&p->input, l, -1);
        double largest = fmax(cost.network_s, fmax(cost.math_s, cost.memory_s));
        assert_true(near(cost.lower_s, largest));
        assert_true(cost.lower_s <= cost.expected_s * (1.0 + 1e-9));
        assert_true(cost.expected_s <= cost.upper_s * (1.0 + 1e-9));
        assert_true(isfinite(cost.upper_s));
        int steps[SM_MAX_STEPS], n = sm_lowering_overlaps(l, steps);
        for (int o = 0; o < n; o++) {
            sm_lowering_cost inside = sm_lowering_price(&p->input, l, steps[o]);
            assert_int_equal(l->step[steps[o]].kind, SM_STEP_COLLECTIVE);
            assert_true(inside.expected_s >= inside.step[steps[o]].expected_s);
            assert_true(inside.expected_s >= inside.lower_s * (1.0 - 1e-9));
            assert_int_equal(inside.chunks, (int)sm_mesh_size(&p->mesh, l->step[steps[o]].axes));
        }
    }
}

static const char *random_axes(sm_rng *rng, unsigned *left) {
    static const char *const names[] = {"", "_X", "_Y", "_XY", "_YX"};
    static const unsigned uses[] = {0, 1, 2, 3, 3};
    uint64_t i = sm_rng_below(rng, 5);
    if (uses[i] & ~*left) return "";
    *left &= ~uses[i];
    return names[i];
}

static void bounds_hold_for_random_products(void **state) {
    problem *p = *state;
    static const char *const systems[] = {"tpu-v5e:4x4", "tpu-v4:4x4x1", "h100-sxm:2x8",
                                          "tpu-v6e:16x16", "h100-sxm:16"};
    sm_rng rng = {2026};
    for (int t = 0; t < 120; t++) {
        unsigned a = 3, b = 3, c = 3;
        char einsum[160], dims[80];
        const char *ai = random_axes(&rng, &a), *aj = random_axes(&rng, &a),
                   *bj = random_axes(&rng, &b);
        const char *bk = random_axes(&rng, &b), *ci = random_axes(&rng, &c),
                   *ck = random_axes(&rng, &c);
        snprintf(einsum, sizeof einsum, "A[I%s,J%s] B[J%s,K%s] -> C[I%s,K%s]", ai, aj, bj, bk, ci,
                 ck);
        int i = 1 << (4 + sm_rng_below(&rng, 10)), j = 1 << (4 + sm_rng_below(&rng, 10));
        snprintf(dims, sizeof dims, "I=%d,J=%d,K=%d", i, j, 1 << (4 + sm_rng_below(&rng, 10)));
        pose(p, systems[sm_rng_below(&rng, 5)], "X=4,Y=4", einsum, dims);
        check_bounds(p);
    }
}

static void pricing_allocates_nothing(void **state) {
    problem *p = *state;
    pose(p, "h100-sxm:2x8", "X=2,Y=8", "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", "I=8192,J=8192,K=8192");
    uint64_t before = sm_allocation_count();
    for (int i = 0; i < p->n; i++) sm_lowering_price(&p->input, &p->found[i], -1);
    assert_true(sm_allocation_count() == before);
}

int main(void) {
    static problem shared;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(gather_of_weights, &shared),
        cmocka_unit_test_prestate(expected_is_the_sum_of_the_steps, &shared),
        cmocka_unit_test_prestate(einsum_is_priced_as_the_local_matmul, &shared),
        cmocka_unit_test_prestate(elementwise_product_runs_on_the_vector_unit, &shared),
        cmocka_unit_test_prestate(overlapped_gather_cuts_the_contraction, &shared),
        cmocka_unit_test_prestate(overlapped_scatter_cuts_the_output, &shared),
        cmocka_unit_test_prestate(overlapping_what_is_long_hides_the_short, &shared),
        cmocka_unit_test_prestate(others_cannot_overlap, &shared),
        cmocka_unit_test_prestate(bounds_hold_for_random_products, &shared),
        cmocka_unit_test_prestate(pricing_allocates_nothing, &shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

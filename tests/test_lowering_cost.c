/* The price of a lowered einsum: each step against the functions it is made of, the overlapped
 * variants against a naive pipeline of chunks, and bounds that hold for every alternative of random
 * products. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "oracle_collectives.h"
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

/* A row of next to nothing in a matrix unit of 128 by 128 takes the vector unit no longer than its
 * bytes take the memory; a wide product is the matrix unit's. */
static void what_leaves_tiles_empty_runs_on_the_vector_unit(void **state) {
    problem *p = *state;
    static const struct {
        const char *einsum, *dims;
        bool vector;
    } cases[] = {{"A[I_X,J] -> C[I_X]", "I=4,J=16M", true},
                 {"A[I_X,J] B[J,K] -> C[I_X,K]", "I=1000003,J=3,K=1", true},
                 {"A[I_X,J] B[J,K] -> C[I_X,K]", "I=8192,J=8192,K=8192", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pose(p, "tpu-v5e:4", "X=4", cases[i].einsum, cases[i].dims);
        sm_lowering_cost cost = sm_lowering_price(&p->input, find(p, "E"), -1);
        sm_product_shape shape = sm_lowering_product(&p->input, find(p, "E"));
        const sm_calibration *c = p->input.calibration;
        sm_op_cost matrix = sm_matmul_cost(&p->system.chip, c, SM_BF16, shape,
                                           cost.memory_s * p->system.chip.memory_bytes_per_s.value);
        assert_true(cases[i].vector ? cost.expected_s < 0.5 * matrix.expected_s
                                    : near(cost.expected_s, matrix.expected_s));
        if (cases[i].vector)
            assert_true(cost.expected_s - c->launch_s < 1.2 * cost.memory_s / c->memory_efficiency);
    }
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
    assert_true(inside.upper_s >= apart.upper_s * (1.0 - 1e-9));
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
            assert_true(inside.expected_s <= inside.upper_s * (1.0 + 1e-9));
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

/* ---- permutes ---- */

/* Of a padded dimension too, blocks that stay where they are take no permute before a gather. */
static void nothing_that_stays_is_permuted(void **state) {
    problem *p = *state;
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I,J_Y] -> A[I,J]", "I=3,J=1");
    assert_int_equal(p->n, 1);
    find(p, "gE");
    pose(p, "tpu-v5e:4x4", "X=4,Y=4", "A[I_X,J] B[J,K_Y] -> C[I_X,K_Y]", "I=1000003,J=3,K=1");
    for (int i = 0; i < p->n; i++)
        for (int s = 0; s < p->found[i].steps; s++)
            assert_true(p->found[i].step[s].kind != SM_STEP_COLLECTIVE ||
                        p->found[i].step[s].axes != 0);
}

/* Block (x, y) of a transposition over an n x n torus goes from row x to row y: of the n^2/4 blocks
 * that pass the middle of a line each way one in n takes each of its links; a ring has two middles
 * and passes n/8. By fixed routes, rows first, all n - 1 blocks that row y gets in come over the
 * link to its place y (of a ring of 16 eight from each side), and as many leave along the column.
 * Of eight chips in each of eight nodes seven send out, of the ports of eight. */
static void transpositions_pass_the_middle(void **state) {
    problem *p = *state;
    static const struct {
        const char *on, *mesh;
        double times, bytes_per_s, routes;
    } cases[] = {{"tpu-v5e:8x8", "X=8,Y=8", 2, 45e9, 14},
                 {"tpu-v5e:16x16", "X=16,Y=16", 2, 45e9, 16},
                 {"tpu-v5e:4x4", "X=4,Y=4", 1, 45e9, 6},
                 {"h100-sxm:8x8", "X=8,Y=8", 7.0 / 8, 50e9, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pose(p, cases[i].on, cases[i].mesh, "A[I_X,J_Y] -> C[I_Y,J_X]", "I=8192,J=8192");
        sm_lowering_cost cost = sm_lowering_price(&p->input, find(p, "pE"), -1);
        double bytes = p->found[0].step[0].bytes;
        if (!near(cost.network_s, cases[i].times * bytes / cases[i].bytes_per_s))
            fail_msg("%s: %g", cases[i].on, cost.network_s * cases[i].bytes_per_s / bytes);
        assert_true(cost.upper_s >= cost.expected_s && cost.expected_s > cost.network_s);
        assert_true(cost.upper_s > cases[i].routes * bytes / cases[i].bytes_per_s);
    }
}

/* The number of a chip in its group, as the oracle counts: the innermost part fastest. */
static int rank_of(const sm_placement *placement, const sm_group *group, sm_axes axes,
                   const int *at) {
    int position[SM_MAX_LEVELS] = {0}, rank = 0, step = 1;
    for (int a = 0; a < placement->axes; a++)
        for (int k = 0, rest = at[a]; (axes >> a & 1) && k < placement->axis[a].parts; k++) {
            const sm_part *part = &placement->axis[a].part[k];
            position[part->level] += rest % part->size * part->stride;
            rest /= part->size;
        }
    for (int k = 0; k < group->parts; k++) {
        rank += position[group->part[k].level] / group->part[k].stride % group->part[k].size * step;
        step *= group->part[k].size;
    }
    return rank;
}

static void member(const sm_mesh *mesh, sm_axes axes, int number, int *at) {
    for (int a = 0; a < mesh->axes; a++) {
        at[a] = axes >> a & 1 ? number % mesh->axis[a].size : 0;
        if (axes >> a & 1) number /= mesh->axis[a].size;
    }
}

/* The blocks of a permute as messages, each sent to a chip that has not got one yet and has that
 * block afterwards. */
static oracle_schedule messages_of(const problem *p, const sm_placement *placement,
                                   const sm_mesh *mesh, const sm_step *step,
                                   const sm_group *group) {
    oracle_schedule s = {0};
    bool taken[256] = {false};
    int n = (int)sm_mesh_size(mesh, step->axes), from[SM_MAX_AXES], to[SM_MAX_AXES];
    const sm_array *array = step->array < 0 ? &p->einsum.out : &p->einsum.in[step->array];
    assert_true(n <= 256);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            bool same = !taken[k];
            member(mesh, step->axes, i, from);
            member(mesh, step->axes, k, to);
            for (int d = 0; d < array->rank; d++)
                same = same && sm_layout_part(mesh, &step->before, d, step->axes, from) ==
                                   sm_layout_part(mesh, &step->after, d, step->axes, to);
            if (!same) continue;
            taken[k] = true;
            oracle_send(&s, (oracle_message){rank_of(placement, group, step->axes, from),
                                             rank_of(placement, group, step->axes, to), 0, 1.0, 0});
            break;
        }
    assert_int_equal(s.messages, n);
    oracle_round(&s, true);
    return s;
}

/* Over switches a permute takes what its messages take; over tori no more, for these go in the
 * order of the dimensions, and no less than a tenth. */
static void permutes_are_their_messages(void **state) {
    problem *p = *state;
    static const char *const cases[][4] = {
        {"tpu-v5e:4x8", "X=4,Y=8", "A[I_X,J_Y] -> C[I_Y,J_X]", "I=512,J=512"},
        {"tpu-v5p:4x4x4", "X=4,Y=4,Z=4", "A[I_X,J_Y,K_Z] -> C[I_Y,J_Z,K_X]", "I=64,J=64,K=64"},
        {"tpu-v5p:4x4x4", "X=8,Y=8", "A[I_XY,J] -> C[I_YX,J]", "I=512,J=512"},
        {"tpu-v5e:16", "X=2,Y=8", "A[I_XY,J] -> C[I_YX,J]", "I=512,J=512"},
        {"h100-sxm:4x8", "X=4,Y=8", "A[I_XY,J] -> C[I_YX,J]", "I=512,J=512"},
        {"h100-sxm:4x8", "X=8,Y=4", "A[I_X,J_Y] -> C[I_Y,J_X]", "I=512,J=512"},
        {"h100-sxm:16", "X=4,Y=4", "A[I_X,J_Y] -> C[I_Y,J_X]", "I=512,J=512"},
        {"h100-sxm:8", "X=2,Y=4", "A[I_XY,J] -> C[I_YX,J]", "I=512,J=512"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int permutes = 0;
        pose(p, cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
        for (int f = 0; f < p->n; f++)
            for (int s = 0; s < p->found[f].steps; s++) {
                const sm_step *step = &p->found[f].step[s];
                sm_placement placement;
                sm_mesh mesh;
                sm_placement_split(&p->placement, &p->found[f], &placement);
                sm_lowering_mesh(&p->found[f], &p->mesh, &mesh);
                if (step->kind != SM_STEP_COLLECTIVE || step->op != SM_PERMUTE) continue;
                sm_group group = sm_group_join(&placement, step->axes);
                sm_curve curve = sm_step_curve(&p->system, &placement, &mesh, step);
                oracle_network *net = oracle_network_new(&p->system, &group);
                oracle_schedule sent = messages_of(p, &placement, &mesh, step, &group);
                oracle_time time = oracle_deliver(net, &sent);
                double s_per_byte = curve.algorithm[0].line.s_per_byte;
                bool torus = p->system.level[0].kind == SM_LEVEL_TORUS;
                if (s_per_byte > time.transfer_s * (1 + 1e-9) ||
                    s_per_byte < time.transfer_s * (torus ? 0.1 : 1 - 1e-9))
                    fail_msg("%s on %s: %g, messages %g", cases[i][2], cases[i][0], s_per_byte,
                             time.transfer_s);
                permutes++;
                oracle_schedule_free(&sent);
                oracle_network_free(net);
            }
        assert_true(permutes > 0);
    }
}

int main(void) {
    static problem shared;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(gather_of_weights, &shared),
        cmocka_unit_test_prestate(expected_is_the_sum_of_the_steps, &shared),
        cmocka_unit_test_prestate(einsum_is_priced_as_the_local_matmul, &shared),
        cmocka_unit_test_prestate(elementwise_product_runs_on_the_vector_unit, &shared),
        cmocka_unit_test_prestate(what_leaves_tiles_empty_runs_on_the_vector_unit, &shared),
        cmocka_unit_test_prestate(overlapped_gather_cuts_the_contraction, &shared),
        cmocka_unit_test_prestate(overlapped_scatter_cuts_the_output, &shared),
        cmocka_unit_test_prestate(overlapping_what_is_long_hides_the_short, &shared),
        cmocka_unit_test_prestate(others_cannot_overlap, &shared),
        cmocka_unit_test_prestate(bounds_hold_for_random_products, &shared),
        cmocka_unit_test_prestate(nothing_that_stays_is_permuted, &shared),
        cmocka_unit_test_prestate(transpositions_pass_the_middle, &shared),
        cmocka_unit_test_prestate(permutes_are_their_messages, &shared),
        cmocka_unit_test_prestate(pricing_allocates_nothing, &shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Chains of einsums: orders and shardings against the statements one by one, each by the ranking of
 * single einsums with what is made on the way in every sharding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "scalemodel/lowering.h"

/* ---- a question ---- */

typedef struct problem {
    sm_system system;
    sm_mesh mesh;
    sm_placement placement;
    sm_einsum einsum;
    sm_chain chain;
    sm_chain_input input;
    sm_arena *arena;
} problem;

static void read_einsum(const problem *p, const char *words, const char *dims, sm_einsum *einsum) {
    sm_error err;
    sm_source text = sm_source_of("EINSUM", words), sizes = sm_source_of("--dims", dims);
    if (sm_einsum_parse(&text, &p->mesh, einsum, &err) ||
        sm_einsum_infer_output(einsum, &text, &err) || sm_dims_parse(&sizes, einsum, &err) ||
        sm_einsum_check(einsum, &p->mesh, &text, &err))
        fail_msg("%s: %s", words, err.sentence);
}

static void stand_on(problem *p, const char *on, const char *mesh) {
    sm_error err;
    sm_source system_text = sm_source_of("--on", on), mesh_text = sm_source_of("--mesh", mesh);
    assert_int_equal(sm_system_parse(&system_text, NULL, 0, &p->system, &err), SM_OK);
    assert_int_equal(sm_mesh_parse(&mesh_text, &p->mesh, &err), SM_OK);
    assert_int_equal(sm_placement_of_mesh(&p->system, &p->mesh, &mesh_text, &p->placement, &err),
                     SM_OK);
}

static void ask(problem *p, const char *einsum, const char *dims) {
    read_einsum(p, einsum, dims, &p->einsum);
    sm_chain_of_einsum(&p->einsum, &p->chain);
    p->input = (sm_chain_input){&p->system,    &p->mesh,
                                &p->placement, sm_calibration_of_operations(&p->system.chip),
                                SM_BF16,       &p->chain};
}

static sm_chain_plan best_of(const problem *p) {
    sm_chain_plan plan;
    sm_error err;
    if (sm_chain_best(&p->input, p->arena, &plan, &err)) fail_msg("%s", err.sentence);
    return plan;
}

/* ---- the product of three ---- */

static void three_are_priced_in_pairs(void **state) {
    problem p = {.arena = sm_arena_new()};
    sm_chain_plan *orders;
    sm_error err;
    int n = 0;
    (void)state;
    stand_on(&p, "h100-sxm:8", "X=8");
    ask(&p, "A[I_X,J] B[J,K] D[K,L] -> C[I_X,L]", "I=4096,J=4096,K=4096,L=4096");
    sm_chain_plan best = best_of(&p);
    /* two products of 512 x 4096 x 4096 on a chip, of 2 FLOPs each: nothing moves */
    assert_true(best.flops_per_chip == 2.0 * 2 * 512 * 4096.0 * 4096);
    assert_true(best.network_s == 0.0);
    assert_int_equal(best.steps, 2);
    assert_string_equal(best.order, "(A B) D");
    /* A, B, D; AB [I_X,K] and C [I_X,L] */
    assert_true(best.peak_bytes == 2.0 * (3 * 512 * 4096.0 + 2 * 4096.0 * 4096));
    assert_int_equal(sm_chain_orders(&p.input, p.arena, &orders, &n, &err), SM_OK);
    assert_int_equal(n, 3);
    assert_true(orders[0].expected_s == best.expected_s);
    assert_string_equal(orders[1].order, "A (B D)");
    sm_arena_free(p.arena);
}

/* Nothing is summed: one kernel, and no order. */
static void elementwise_products_are_one(void **state) {
    problem p = {.arena = sm_arena_new()};
    sm_chain_plan *orders;
    sm_error err;
    int n = 7;
    (void)state;
    stand_on(&p, "h100-sxm:8", "X=8");
    ask(&p, "A[I_X] B[I_X] D[I_X] -> C[I_X]", "I=4194304");
    sm_chain_plan best = best_of(&p);
    assert_int_equal(best.steps, 1);
    assert_int_equal(sm_chain_orders(&p.input, p.arena, &orders, &n, &err), SM_OK);
    assert_int_equal(n, 0);
    sm_arena_free(p.arena);
}

/* Of ten matrices that get smaller the last are multiplied first. */
static void ten_operands_have_an_order(void **state) {
    problem p = {.arena = sm_arena_new()};
    (void)state;
    stand_on(&p, "tpu-v5e:4x4", "X=4,Y=4");
    ask(&p, "A[a_X,b] B[b,c] C[c,d_Y] D[d,e] E[e,f] F[f,g] G[g,h] H[h,i] M[i,j] N[j,k] -> Z[a_X,k]",
        "a=1024,b=1024,c=1024,d=1024,e=1024,f=1024,g=1024,h=1024,i=1024,j=1024,k=16");
    sm_chain_plan best = best_of(&p);
    assert_int_equal(best.steps, 9);
    assert_string_equal(best.order, "A (B (C (D (E (F (G (H (M N))))))))");
    sm_arena_free(p.arena);
}

/* ---- random products against the statements one by one ---- */

enum { TEXT = 200 };

static void say_array(char *text, const char *name, const char *dims, const int *at,
                      const char *axes) {
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, TEXT - n, "%s[", name);
    for (int d = 0; dims[d]; d++) {
        n += (size_t)snprintf(text + n, TEXT - n, "%s%c", d ? "," : "", dims[d]);
        bool first = true;
        for (int a = 0; axes[a]; a++)
            if (at[a] == d) {
                n += (size_t)snprintf(text + n, TEXT - n, "%s%c", first ? "_" : "", axes[a]);
                first = false;
            }
    }
    snprintf(text + n, TEXT - n, "] ");
}

/* An array with each axis on a random dimension, or none. */
static void say_random(char *text, const char *name, const char *dims, const char *axes,
                       sm_rng *rng) {
    int at[4] = {-1, -1, -1, -1};
    uint64_t n = strlen(dims);
    for (int a = 0; axes[a]; a++) {
        uint64_t place = sm_rng_below(rng, n + 1);
        at[a] = place < n ? (int)place : -1;
    }
    say_array(text, name, dims, at, axes);
}

static bool has(const char *set, char c) { return strchr(set, c) != NULL; }

/* Of "B=8,I=64,..." what the text names. */
static void sizes_of(const char *all, const char *text, char *sizes) {
    *sizes = 0;
    for (const char *at = all; *at; at += strcspn(at, ","), at += *at == ',')
        if (has(text, *at))
            snprintf(sizes + strlen(sizes), TEXT - strlen(sizes), "%s%.*s", *sizes ? "," : "",
                     (int)strcspn(at, ","), at);
}

/* The best way to do one statement as it stands; infinite: there is none. */
static double price_of(const problem *p, const char *words, const char *all) {
    sm_einsum einsum;
    sm_ranking found;
    sm_error err;
    char sizes[TEXT];
    sizes_of(all, words, sizes);
    read_einsum(p, words, sizes, &einsum);
    const sm_lowering_input input = {&p->system,           &p->mesh, &p->placement,    &einsum,
                                     p->input.calibration, SM_BF16,  SM_LOCAL_PRODUCT, 0};
    sm_status status = sm_rank_lowerings(&input, p->arena, &found, &err);
    if (status == SM_NEGATIVE) return INFINITY;
    if (status) fail_msg("%s: %s", words, err.sentence);
    return found.kept[0]->cost.expected_s;
}

typedef struct random_case {
    char array[4][TEXT]; /* the operands and the output as written */
    const char *dims[4];
    const char *axes, *sizes;
} random_case;

/* The least over the shardings of what the first two make. */
static double one_by_one(const problem *p, const random_case *c, int x, int y, int z) {
    char made[9] = "";
    size_t n = 0;
    for (int o = 0; o < 2; o++)
        for (const char *d = c->dims[o ? y : x]; *d; d++)
            if (!has(made, *d) && (has(c->dims[3], *d) || has(c->dims[z], *d))) made[n++] = *d;
    double best = INFINITY;
    int at[4] = {-1, -1, -1, -1}, axes = (int)strlen(c->axes);
    for (;;) {
        char first[TEXT] = "", second[TEXT] = "", array[TEXT] = "";
        say_array(array, "T", made, at, c->axes);
        snprintf(first, sizeof first, "%.60s%.60s-> %.60s", c->array[x], c->array[y], array);
        /* in the order of the operands: the rows of a product and its columns are priced apart */
        snprintf(second, sizeof second, "%.60s%.60s-> %.60s", z == 0 ? c->array[z] : array,
                 z == 0 ? array : c->array[z], c->array[3]);
        double s = price_of(p, first, c->sizes);
        if (s < best) best = fmin(best, s + price_of(p, second, c->sizes));
        int a = 0;
        while (a < axes && ++at[a] == (int)n) at[a++] = -1;
        if (a == axes) return best;
    }
}

static void random_products_of_three(void **state) {
    static const char *const forms[][4] = {{"IJ", "JK", "KL", "IL"},    {"BIJ", "JK", "KL", "BIL"},
                                           {"IJ", "IK", "KL", "JL"},    {"IJ", "JK", "IK", "I"},
                                           {"BIJ", "BJK", "KL", "BIL"}, {"IJ", "KJ", "LK", "LI"},
                                           {"IJ", "JK", "K", "I"},      {"BIJ", "JK", "BIK", "JK"}};
    static const char *const sizes[] = {"B=8,I=512,J=2048,K=1024,L=256",
                                        "B=16,I=4096,J=512,K=512,L=4096",
                                        "B=8,I=64,J=4096,K=4096,L=64"};
    static const char *const systems[][3] = {{"tpu-v5e:4", "X=4", "X"},
                                             {"tpu-v5p:2x2", "X=2,Y=2", "XY"},
                                             {"h100-sxm:8", "X=2,Y=4", "XY"}};
    sm_rng rng = {20261123};
    (void)state;
    for (int i = 0; i < 60; i++) {
        problem p = {.arena = sm_arena_new()};
        random_case c = {.axes = systems[i % 3][2]};
        const char *const *form = forms[sm_rng_below(&rng, sizeof forms / sizeof *forms)];
        char text[4 * TEXT] = "";
        c.sizes = sizes[sm_rng_below(&rng, 3)];
        stand_on(&p, systems[i % 3][0], systems[i % 3][1]);
        for (int o = 0; o < 4; o++) {
            c.dims[o] = form[o];
            say_random(c.array[o], (const char *[]){"P", "Q", "R", "S"}[o], form[o], c.axes, &rng);
            strcat(text, o == 3 ? "-> " : "");
            strcat(text, c.array[o]);
        }
        char used[TEXT];
        sizes_of(c.sizes, text, used);
        ask(&p, text, used);
        sm_chain_plan best = best_of(&p), *orders;
        sm_error err;
        int n;
        double least = fmin(one_by_one(&p, &c, 0, 1, 2),
                            fmin(one_by_one(&p, &c, 0, 2, 1), one_by_one(&p, &c, 1, 2, 0)));
        if (best.expected_s > least * (1 + 1e-9))
            fail_msg("%s (%s): %g, one by one %g", text, used, best.expected_s, least);
        assert_int_equal(sm_chain_orders(&p.input, p.arena, &orders, &n, &err), SM_OK);
        assert_int_equal(n, 3);
        for (int k = 0; k < n; k++)
            assert_true(best.expected_s <= orders[k].expected_s * (1 + 1e-9));
        sm_arena_free(p.arena);
    }
}

/* ---- allocations that fail ---- */

static void memory_may_run_out(void **state) {
    problem p = {.arena = NULL};
    (void)state;
    stand_on(&p, "tpu-v5e:2x2", "X=2,Y=2");
    ask(&p, "A[I_X,J] B[J_Y,K] D[K,L] -> C[I_X,L]", "I=64,J=128,K=256,L=64");
    p.arena = sm_arena_new();
    double whole = best_of(&p).expected_s;
    sm_arena_free(p.arena);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_chain_plan plan, *orders;
        sm_error err;
        int n;
        p.arena = sm_arena_new();
        if (!p.arena) continue;
        sm_status status = sm_chain_best(&p.input, p.arena, &plan, &err);
        if (!status) status = sm_chain_orders(&p.input, p.arena, &orders, &n, &err);
        if (status) assert_int_equal(status, SM_INTERNAL);
        else if (plan.expected_s != whole || orders[0].expected_s != whole)
            fail_msg("another answer where memory was lacking");
        sm_arena_free(p.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_are_priced_in_pairs),
        cmocka_unit_test(elementwise_products_are_one),
        cmocka_unit_test(ten_operands_have_an_order),
        cmocka_unit_test(random_products_of_three),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

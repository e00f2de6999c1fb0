/* Best-first branch and bound against brute force, and Pareto sets against their definition. */
#include "unit.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- branch and bound ---- */

enum { NODES = 700, LANES = 8 };

/* Each node has one value; its bound lies at or below it. */
typedef struct forest {
    double value[NODES], bound[NODES];
    int top, found; /* the best so many, sorted */
    double best[16];
    double place[SM_BATCH]; /* what expand found, HUGE_VAL when nothing beats the threshold */
    size_t of_place[SM_BATCH];
    atomic_int calls;
    size_t merged, order[NODES];
    double seen[NODES]; /* threshold each node was expanded with */
    int busy[LANES];    /* lanes are not shared */
    atomic_int clashes;
    double limit; /* thresholds are at most this */
    volatile int stop;
    size_t stop_after;
} forest;

static void expand(void *context, int lane, int place, size_t node, double threshold) {
    forest *f = context;
    if (lane < 0 || lane >= LANES || f->busy[lane]++) atomic_fetch_add(&f->clashes, 1);
    atomic_fetch_add(&f->calls, 1);
    f->seen[node] = threshold;
    f->place[place] = f->value[node] < threshold ? f->value[node] : HUGE_VAL;
    f->of_place[place] = node;
    f->busy[lane]--;
}

static void keep(forest *f, double value) {
    int at = f->found < f->top ? f->found++ : f->top - 1;
    for (; at > 0 && f->best[at - 1] > value; at--) f->best[at] = f->best[at - 1];
    f->best[at] = value;
}

static double limit_of(const forest *f) {
    return f->found == f->top ? fmin(f->best[f->top - 1], f->limit) : f->limit;
}

static double merge(void *context, int place, size_t node) {
    forest *f = context;
    assert_int_equal(f->of_place[place], node);
    f->order[f->merged++] = node;
    if (f->place[place] < limit_of(f)) keep(f, f->place[place]);
    if (f->stop_after && f->merged >= f->stop_after) f->stop = 1;
    return limit_of(f);
}

static void plant(forest *f, uint64_t seed, size_t n, int top) {
    sm_rng rng = {seed};
    memset(f, 0, sizeof *f);
    f->top = top;
    f->limit = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        f->value[i] = floor(100 * sm_rng_unit(&rng)); /* ties happen */
        f->bound[i] = f->value[i] * sm_rng_unit(&rng);
        if (sm_rng_below(&rng, 4) == 0) f->bound[i] = f->value[i];
    }
}

static sm_branching_result hunt(forest *f, size_t n, int threads) {
    sm_error err = {0};
    sm_branching_result result = {99, false, 0};
    sm_branching b = {.context = f,
                      .nodes = n,
                      .threshold = f->limit,
                      .bound = f->bound,
                      .expand = expand,
                      .merge = merge,
                      .stop = &f->stop};
    assert_int_equal(sm_search_best_first(&b, threads, &result, &err), SM_OK);
    assert_int_equal(atomic_load(&f->clashes), 0);
    assert_int_equal((size_t)atomic_load(&f->calls), result.expanded);
    assert_int_equal(f->merged, result.expanded);
    return result;
}

static double refine(void *context, int lane, size_t node, double threshold) {
    forest *f = context;
    assert_true(lane >= 0 && lane < LANES);
    atomic_fetch_add(&f->calls, 1);
    f->seen[node] = threshold;
    return f->bound[node];
}

/* A node reaches its value, by which the threshold of those after it falls. None is left out that
 * has the value itself. */
static double refined(void *context, size_t node) {
    forest *f = context;
    f->limit = fmin(f->limit, nextafter(f->value[node], HUGE_VAL));
    return limit_of(f);
}

static void what_refined_nodes_reach_spares_the_rest(void **state) {
    static forest f, other;
    for (uint64_t seed = 2000; seed < 2100; seed++) {
        int calls[2];
        for (int i = 0; i < 3; i++) {
            forest *at = i == 2 ? &other : &f;
            sm_branching_result r;
            sm_error err = {0};
            plant(at, seed, NODES, 1);
            sm_branching b = {.context = at, .nodes = NODES, .bound = at->bound};
            b.threshold = HUGE_VAL;
            b.refine = refine;
            b.refined = i ? refined : NULL;
            b.expand = expand;
            b.merge = merge;
            assert_int_equal(sm_search_best_first(&b, i == 2 ? 4 : 1, &r, &err), SM_OK);
            double least = HUGE_VAL;
            for (int n = 0; n < NODES; n++) least = fmin(least, at->value[n]);
            assert_true(at->found == 1 && at->best[0] == least);
            if (i < 2) calls[i] = atomic_load(&at->calls);
        }
        assert_true(calls[1] < calls[0]);
        assert_int_equal(atomic_load(&f.calls), atomic_load(&other.calls)); /* of any threads */
        assert_memory_equal(f.seen, other.seen, sizeof f.seen);
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void the_best_of_random_forests_is_found(void **state) {
    static forest f;
    sm_rng rng = {3};
    size_t spared = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        size_t n = 1 + sm_rng_below(&rng, NODES - 1);
        int top = 1 + (int)sm_rng_below(&rng, 10);
        plant(&f, seed, n, top);
        double sorted[NODES];
        memcpy(sorted, f.value, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, ascending);
        sm_branching_result r = hunt(&f, n, 1);
        assert_true(r.finished);
        assert_int_equal(f.found, (size_t)top < n ? (size_t)top : n);
        for (int i = 0; i < f.found; i++) assert_true(f.best[i] == sorted[i]);
        for (size_t i = 1; i < r.expanded; i++)
            assert_true(f.bound[f.order[i - 1]] <= f.bound[f.order[i]]);
        spared += n - r.expanded;
    }
    assert_true(spared > 10000); /* bounds spare work */
}

static void counts_do_not_depend_on_threads(void **state) {
    static forest one, many;
    for (uint64_t seed = 1000; seed < 1100; seed++) {
        plant(&one, seed, NODES, 5);
        sm_branching_result a = hunt(&one, NODES, 1);
        for (int threads = 2; threads <= 4; threads++) {
            plant(&many, seed, NODES, 5);
            sm_branching_result b = hunt(&many, NODES, threads);
            assert_int_equal(a.expanded, b.expanded);
            assert_memory_equal(one.best, many.best, sizeof one.best);
            assert_memory_equal(one.order, many.order, a.expanded * sizeof one.order[0]);
            assert_memory_equal(one.seen, many.seen, sizeof one.seen);
        }
    }
}

static void a_threshold_to_start_with_spares_the_rest(void **state) {
    static forest f;
    plant(&f, 7, NODES, NODES > 16 ? 16 : NODES);
    f.limit = 20;
    size_t below = 0;
    for (size_t i = 0; i < NODES; i++) below += f.bound[i] < 20;
    sm_branching_result r = hunt(&f, NODES, 2);
    assert_true(r.finished);
    assert_true(r.expanded <= below);
    for (int i = 0; i < f.found; i++) assert_true(f.best[i] < 20);
}

static void a_stop_ends_between_batches(void **state) {
    static forest f;
    plant(&f, 11, NODES, 1);
    for (size_t i = 0; i < NODES; i++) f.bound[i] = 0; /* nothing can be pruned */
    f.stop_after = 1;
    f.value[0] = 50; /* the first node is node 0, a batch of its own */
    sm_branching_result r = hunt(&f, NODES, 2);
    assert_false(r.finished);
    assert_int_equal(r.expanded, 1);
    assert_true(f.best[0] == 50);
    plant(&f, 11, NODES, 1);
    f.stop = 1;
    r = hunt(&f, NODES, 2);
    assert_int_equal(r.expanded, 0);
    assert_false(r.finished);
}

static double last_fraction;
static void watch(double fraction, void *context) {
    (void)context;
    assert_true(fraction > last_fraction && fraction <= 1);
    last_fraction = fraction;
}

static void progress_rises_to_one(void **state) {
    static forest f;
    sm_error err = {0};
    sm_branching_result r;
    plant(&f, 5, NODES, 1);
    for (size_t i = 0; i < NODES; i++) f.bound[i] = 0;
    for (size_t i = 0; i < NODES; i++) f.value[i] += 1;
    sm_branching b = {.context = &f,
                      .nodes = NODES,
                      .threshold = HUGE_VAL,
                      .bound = f.bound,
                      .expand = expand,
                      .merge = merge,
                      .progress = watch};
    last_fraction = 0;
    assert_int_equal(sm_search_best_first(&b, 1, &r, &err), SM_OK);
    assert_true(last_fraction == 1);
    assert_int_equal(r.expanded, NODES);
}

static void no_nodes_and_no_memory(void **state) {
    static forest f;
    sm_error err = {0};
    sm_branching_result r;
    plant(&f, 1, 10, 1);
    sm_branching_result none = hunt(&f, 0, 3);
    assert_true(none.finished && none.expanded == 0);
    sm_branching b = {.context = &f,
                      .nodes = 10,
                      .threshold = HUGE_VAL,
                      .bound = f.bound,
                      .expand = expand,
                      .merge = merge};
    sm_allocation_fail_at(1);
    assert_int_equal(sm_search_best_first(&b, 1, &r, &err), SM_INTERNAL);
    sm_allocation_fail_at(0);
    assert_string_equal(err.sentence, "out of memory");
    assert_int_equal(sm_search_threads(3), 3);
    assert_int_equal(sm_search_threads(1000), SM_MAX_LANES);
    assert_true(sm_search_threads(0) >= 1);
}

/* ---- Pareto ---- */

static bool beaten(size_t n, const double *x, const double *y, size_t i) {
    for (size_t k = 0; k < n; k++) {
        if (x[k] > x[i] || y[k] > y[i]) continue;
        if (x[k] < x[i] || y[k] < y[i] || k < i) return true; /* of equals the first stays */
    }
    return false;
}

static void pareto_equals_its_definition(void **state) {
    enum { POINTS = 120 };
    sm_rng rng = {17};
    double x[POINTS], y[POINTS];
    size_t order[POINTS];
    bool kept[POINTS];
    for (int round = 0; round < 600; round++) {
        size_t n = sm_rng_below(&rng, POINTS + 1);
        double grid = 2 + (double)sm_rng_below(&rng, 1000);
        for (size_t i = 0; i < n; i++) {
            x[i] = floor(grid * sm_rng_unit(&rng));
            y[i] = round % 3 ? floor(grid * sm_rng_unit(&rng)) : grid - x[i];
        }
        sm_pareto(n, x, y, order, kept);
        for (size_t i = 0; i < n; i++) assert_int_equal(kept[i], !beaten(n, x, y, i));
    }
}

/* ---- robust fits ---- */

/* y = exp(u0) + exp(u1) x, a tenth of the rows four times too large; row 7 has no say. */
enum { FIT_ROWS = 40 };
static void line_residuals(void *context, const double *u, double *residual) {
    const double *wanted = context;
    for (int i = 0; i < FIT_ROWS; i++) {
        double y = exp(wanted[0]) + exp(wanted[1]) * i, off = i % 10 == 3 ? 4 : 1;
        residual[i] = i == 7 ? NAN : log((exp(u[0]) + exp(u[1]) * i) / (y * off));
    }
}

static void even_spreads(void *context, const double *residual, bool settled, double *spread) {
    (void)context, (void)residual, (void)settled;
    for (int i = 0; i < FIT_ROWS; i++) spread[i] = 0.01;
}

static void a_robust_fit_ignores_what_does_not_fit(void **state) {
    static double weight[FIT_ROWS], room[FIT_ROWS * 64];
    double wanted[] = {-3.0, -5.0}, u[SM_MAX_PARAMETERS] = {0}, deviation[SM_MAX_PARAMETERS];
    double sensitivity[SM_MAX_PARAMETERS];
    for (int i = 0; i < FIT_ROWS; i++) weight[i] = 1;
    sm_robust_fit f = {.context = wanted,
                       .residuals = line_residuals,
                       .spreads = even_spreads,
                       .rows = FIT_ROWS,
                       .weight = weight,
                       .parameters = 2,
                       .low = {-20, -20},
                       .high = {20, 20},
                       .room = room};
    assert_true(sm_robust_room(FIT_ROWS) <= sizeof room / sizeof *room);
    double before = sm_robust_merit(&f, 0.01, u);
    sm_robust_descend(&f, 200, u);
    assert_true(fabs(u[0] - wanted[0]) < 0.01 && fabs(u[1] - wanted[1]) < 0.01);
    assert_true(sm_robust_merit(&f, 0.01, u) < before / 5);
    sm_robust_deviations(&f, u, deviation, sensitivity);
    for (int j = 0; j < 2; j++) assert_true(deviation[j] < 0.05 && sensitivity[j] > 0.1);
    f.high[1] = -6, u[1] = -8; /* the best lies beyond its range */
    sm_robust_descend(&f, 200, u);
    assert_true(u[1] <= -6 && u[1] > -6.01 && u[0] > wanted[0]);
    double prior[] = {1e8, 0};
    memcpy(f.precision, prior, sizeof prior);
    f.u0[0] = u[0] = 1, u[1] = -8, f.high[1] = 20;
    sm_robust_descend(&f, 200, u);
    assert_true(fabs(u[0] - 1) < 0.5 * fabs(wanted[0] - 1)); /* held near its start */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_random_forests_is_found),
        cmocka_unit_test(counts_do_not_depend_on_threads),
        cmocka_unit_test(what_refined_nodes_reach_spares_the_rest),
        cmocka_unit_test(a_threshold_to_start_with_spares_the_rest),
        cmocka_unit_test(a_stop_ends_between_batches),
        cmocka_unit_test(progress_rises_to_one),
        cmocka_unit_test(no_nodes_and_no_memory),
        cmocka_unit_test(pareto_equals_its_definition),
        cmocka_unit_test(a_robust_fit_ignores_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

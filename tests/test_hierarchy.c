/* The hierarchical fit of scripts/hierarchy.c on rows that are made of constants that are known. */
#include "unit.h"

#include "../scripts/hierarchy.c"

enum { CELLS = 6, ROWS = 40 };

static const parameter parameters[COMPUTE + 1] = {
    [SM_CONSTANT_matmul_efficiency] = {.15, .97, {.6, .5, .3, .3, .9}},
    [SM_CONSTANT_attention_efficiency] = {.08, .9, {.6, .6, .4, .4, .9}},
    [SM_CONSTANT_memory_efficiency] = {.3, .99, {.8, .6, .6, .6, 1.2}},
    [SM_CONSTANT_step_overhead_s] = {5e-5, .05, {1.4, .6, 1.4, 1.4, 2.4}},
    [COMPUTE] = {0, 0, {.4, .4, .4, .4, .9}},
};
static hierarchy *of;
static double measured[CELLS][ROWS];

/* A step that matmuls or the memory bound, with attention and the host beside it. */
static double step_s(const sm_calibration *k, int row) {
    double flops = 1e-3 * (1 + row % 8), bytes = 1e-3 * (1 + row / 8), attention = 5e-4 * (row % 3);
    return fmax(flops / k->matmul_efficiency, bytes / k->memory_efficiency) +
           attention / k->attention_efficiency + k->step_overhead_s;
}
static void predict_rows(int c, const double *x, double *at) {
    sm_calibration k = constants_at(of, &of->cell[c], x);
    for (int i = 0; i < ROWS; i++) at[c * ROWS + i] = log(step_s(&k, i) / measured[c][i]);
}
static sm_calibration truth_of(int c) {
    sm_calibration k = *sm_calibration_of(sm_chip_find("h100-sxm", 8));
    k.matmul_efficiency = .5 + .05 * (c / 2) + .1 * (c % 2);
    k.attention_efficiency = .4 - .05 * (c / 2);
    k.memory_efficiency = c == 3 ? .99 : .8; /* at its bound */
    k.step_overhead_s = c % 2 ? 4e-4 : 4e-3;
    return k;
}
static hierarchy *open_fit(double away) {
    static const char *const chips[] = {"h100-sxm", "a100-80", "b200"};
    of = calloc(1, sizeof *of);
    *of = (hierarchy){.program = "test",
                      .parameter = parameters,
                      .parameters = COMPUTE + 1,
                      .predict = predict_rows,
                      .arena = sm_arena_new()};
    of->residual = fit_array(of, CELLS * ROWS, sizeof *of->residual);
    of->residuals = CELLS * ROWS;
    for (int c = 0; c < CELLS; c++) {
        bool is_new;
        const sm_chip *chip = sm_chip_find(chips[c / 2], strlen(chips[c / 2]));
        sm_calibration start = *sm_calibration_of(chip), truth = truth_of(c);
        cell_index(of, chip, c % 2 ? "one" : "other", c % 2 ? "one" : "other", &start, &is_new);
        for (int i = 0; i < ROWS; i++) {
            measured[c][i] = step_s(&truth, i) * (1 + .02 * sin(7 * i + c));
            of->residual[c * ROWS + i] = (residual){.cell = c, .weight = 1, .spread = .08};
        }
    }
    for (int c = 0; c < 3; c++) of->term[CHIP][c][SM_CONSTANT_memory_efficiency] = away;
    for (int s = 0; s < 2; s++) of->term[SOFTWARE][s][COMPUTE] = -away;
    return of;
}
static void close_fit(hierarchy *h) {
    sm_arena_free(h->arena);
    free(h);
}

static void close_to(double got, double wanted, double within) {
    if (!(fabs(got - wanted) <= within)) fail_msg("%g is not %g", got, wanted);
}
/* From wherever it starts it ends at the same constants, near those that made the rows. */
static void starts_end_at_one_place(void **state) {
    static const double away[] = {0, .5, -1};
    sm_calibration first[CELLS];
    for (int i = 0; i < 3; i++) {
        hierarchy *h = open_fit(away[i]);
        fit_terms(h, 60);
        for (int c = 0; c < CELLS; c++) {
            sm_calibration k = constants_at(h, &h->cell[c], h->cell[c].x), truth = truth_of(c);
            close_to(k.matmul_efficiency, truth.matmul_efficiency, .03);
            close_to(k.memory_efficiency, truth.memory_efficiency, .08);
            if (i == 0) first[c] = k;
            close_to(k.matmul_efficiency, first[c].matmul_efficiency, .005);
            close_to(k.memory_efficiency, first[c].memory_efficiency, .005);
            close_to(k.step_overhead_s / first[c].step_overhead_s, 1, .02);
        }
        close_fit(h);
    }
}

/* With no row left out nothing moves; a software that has none left on a chip stands between what
 * it is elsewhere and what else runs there, and the others stay. */
static void what_is_left_out_alone_moves(void **state) {
    hierarchy *h = open_fit(0);
    enum { AT = SM_CONSTANT_step_overhead_s };
    double x[P], y[P];
    fit_terms(h, 60);
    double(*kept)[LEVELS][MOST_GROUPS][P] = malloc(sizeof *kept);
    memcpy(kept, h->term, sizeof *kept);
    fit_drift(h);
    memcpy(h->term, kept, sizeof *kept);
    fit_without(h);
    for (int c = 0; c < CELLS; c++) {
        place(h, &h->cell[c], LEVELS, x);
        for (int j = 0; j < h->parameters; j++)
            if (is_solved(h, j)) close_to(stands_at(h, x, j), stands_at(h, h->cell[c].x, j), 1e-3);
    }
    for (int i = 0; i < h->residuals; i++) h->residual[i].masked = h->residual[i].cell == 3;
    fit_without(h);
    place(h, &h->cell[3], LEVELS, x);
    place(h, &h->cell[1], LEVELS, y);
    close_to(y[AT], h->cell[1].x[AT], .2);
    assert_true(x[AT] > h->cell[3].x[AT] + .5 && x[AT] < h->cell[2].x[AT]);
    assert_true(x[SM_CONSTANT_memory_efficiency] <
                h->cell[3].x[SM_CONSTANT_memory_efficiency] - .5);
    free(kept);
    close_fit(h);
}

/* Constants that are known become terms of which each chip and software has its own again. */
static void constants_become_terms(void **state) {
    hierarchy *h = open_fit(0);
    double x[MOST_GROUPS][MOST_PARAMETERS], y[P];
    memset(x, 0, sizeof x);
    for (int c = 0; c < CELLS; c++) {
        sm_calibration truth = truth_of(c);
        for (int j = 0; j < SM_CONSTANT_COUNT; j++)
            x[c][j] = to_line(h, j, sm_calibration_get(&truth, (sm_constant)j));
    }
    fit_start(h, x);
    for (int c = 0; c < CELLS; c++) {
        place(h, &h->cell[c], LEVELS, y);
        for (int j = 0; j < SM_CONSTANT_COUNT; j++)
            if (is_solved(h, j)) close_to(stands_at(h, y, j), x[c][j], 1e-3);
    }
    close_fit(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_end_at_one_place),
        cmocka_unit_test(what_is_left_out_alone_moves),
        cmocka_unit_test(constants_become_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

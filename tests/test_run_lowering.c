/* Lowerings executed on ranks of threads: two thousand random einsums of whole numbers, every way
 * to lower each, against the product of the whole arrays; bytes counted against bytes predicted. */
#include "unit.h"
#include "random_einsums.h"
#include "sanitized.h"

/* As users compile it all of them; a quarter, drawn otherwise, under a sanitizer and by clang. */
#if SANITIZED
enum { PART = 4, DRAW = 1000 };
#elif defined(__clang__)
enum { PART = 4, DRAW = 2000 };
#else
enum { PART = 1, DRAW = 0 };
#endif

static int run_on(int ranks, int cases) {
    random_einsums all = {.cases = cases, .seed = drawn_from(20261121 + DRAW + (uint64_t)ranks)};
    sm_error err = {.status = SM_OK};
    if (sm_run_threads(ranks, random_einsums_run, &all, &err)) fail_msg("%s", err.sentence);
    return all.ways;
}

static void random_einsums_equal_the_whole_product(void **state) {
    int ways = run_on(1, 320 / PART) + run_on(2, 1200 / PART) + run_on(4, 400 / PART) +
               run_on(8, 120 / PART);
    if (ways < 7000 / PART) fail_msg("%d ways", ways);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_einsums_equal_the_whole_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lowerings executed on ranks of threads: two thousand random einsums of whole numbers, every way
 * to lower each, against the product of the whole arrays; bytes counted against bytes predicted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_einsums.h"

static int run_on(int ranks, int cases) {
    random_einsums all = {.cases = cases, .seed = 20261121 + (uint64_t)ranks};
    sm_error err = {.status = SM_OK};
    if (sm_run_threads(ranks, random_einsums_run, &all, &err)) fail_msg("%s", err.sentence);
    return all.ways;
}

static void random_einsums_equal_the_whole_product(void **state) {
    (void)state;
    int ways = run_on(1, 300) + run_on(2, 1200) + run_on(4, 400) + run_on(8, 100);
    if (ways < 8000) fail_msg("%d ways", ways);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_einsums_equal_the_whole_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
